"""The shape of what a certificate's steps are made of: texts, numbers, stages, regions.

Whatever does not fit is refused with an InputError that names the step and the field. Nothing is computed here.
"""

from typing import Any

from dpassay.errors import InputError
from dpassay.evidence.verifier.numbers import INF, ZERO, Number, enclose, is_decimal, iv
from dpassay.evidence.verifier.regions import INFINITE, NORMS, Shape, Stage

LARGEST = 10_000_000  # dimension, or number of categories
LONGEST_TEXT = 10_000
# Numbers that describe a mechanism must be known to this relative width; evidence may be wider.
_NARROW = iv.mpf("1e-12")


class Reader:
    """Reads values of one step; its complaints say where they are."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str) -> InputError:
        return InputError(f"this certificate cannot be read: {self.where}: {what}")

    def record(self, value: Any, fields: set[str], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
        """An object with exactly these fields."""
        if not isinstance(value, dict):
            raise self.fail(f"expected an object, got {_shown(value)}")
        missing, extra = fields - value.keys(), value.keys() - fields - optional
        if missing:
            raise self.fail(f"the field {min(missing)} is missing")
        if extra:
            raise self.fail(f"unknown field {_shown(min(map(str, extra)))}")
        return value

    def text(self, value: Any, field: str, allowed: tuple[str, ...] = ()) -> str:
        """A text that is not too long."""
        if not isinstance(value, str) or len(value) > LONGEST_TEXT or (allowed and value not in allowed):
            hint = f"one of {', '.join(allowed)}" if allowed else f"a text of at most {LONGEST_TEXT} characters"
            raise self.fail(f"{field} must be {hint}, got {_shown(value)}")
        return value

    def flag(self, value: Any, field: str) -> bool:
        if not isinstance(value, bool):
            raise self.fail(f"{field} must be true or false, got {_shown(value)}")
        return value

    def whole(self, value: Any, field: str, low: int = 1, high: int = LARGEST) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(f"{field} must be a whole number from {low} to {high}, got {_shown(value)}")
        return value

    def items(self, value: Any, field: str, most: int) -> list[Any]:
        """A list that is not too long."""
        if not isinstance(value, list) or len(value) > most:
            raise self.fail(f"{field} must be a list of at most {most}, got {_shown(value)}")
        return value

    def number(self, value: Any, field: str, low: int | None = None, high: int | None = None) -> Number:
        """A number that describes a mechanism, as two decimals that enclose it narrowly."""
        found = self.evidence(value, field, ())
        if (found.b - found.a) > (_NARROW * abs(found).b + iv.mpf("1e-40")).b:
            raise self.fail(f"{field} is not known precisely enough: {_shown(value)}")
        if (low is not None and found.b < low) or (high is not None and found.a > high):
            most = "" if high is None else f" and at most {high}"
            raise self.fail(f"{field} must be at least {low}{most}, got {_shown(value)}")
        return found

    def evidence(self, value: Any, field: str, allowed: tuple[str, ...] = ("inf", "-inf")) -> Number:
        """A number as two decimals that enclose it; they may be far apart, or infinite."""
        ends: list[Any] = value if isinstance(value, list) and len(value) == 2 else [None, None]
        if any(not (is_decimal(end) or (isinstance(end, str) and end in allowed)) for end in ends):
            raise self.fail(f"{field} must be two decimals that enclose a number, got {_shown(value)}")
        if enclose(ends[0], ends[0]).a > enclose(ends[1], ends[1]).b:
            raise self.fail(f"{field} must be two decimals in order, got {_shown(value)}")
        return enclose(ends[0], ends[1])

    def positive(self, value: Any, field: str) -> Number:
        """A number that is surely positive."""
        found = self.number(value, field)
        if not found.a > 0:
            raise self.fail(f"{field} must be positive, got {_shown(value)}")
        return found

    def double(self, value: Any, field: str) -> Number:
        """A double of at least 0 as its decimal, or infinity."""
        if value == "inf":
            return INF
        if not is_decimal(value) or value.startswith("-"):
            raise self.fail(f"{field} must be a decimal of at least 0, or inf, got {_shown(value)}")
        return iv.mpf(value)


def _shown(value: Any) -> str:
    """A value, short enough to print; a container by its kind only, since it may be deep."""
    if isinstance(value, dict | list):
        short = len(value) <= 4 and all(not isinstance(v, dict | list) for v in value)
        return repr(value)[:80] if short and isinstance(value, list) else f"a {type(value).__name__}"
    if isinstance(value, int) and abs(value) > 10**40:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_stage(read: Reader, data: dict[str, Any], around: frozenset[str] = frozenset()) -> Stage:
    """A stage's name and parameters; `around` are fields that belong to others."""
    name = read.text(data.get("stage"), "stage", (*_STAGES, "mixture"))
    if name == "mixture":
        return _read_mixture(read, data, around)
    needed = _STAGES[name]
    read.record(data, {"stage", *needed}, around)
    words: dict[str, str] = {}
    wholes: dict[str, int] = {}
    numbers: dict[str, Number] = {}
    for field, kind in needed.items():
        if kind == "norm":
            words[field] = read.text(data[field], field, tuple(NORMS) if name != "normalise" else ("l2",))
        elif kind == "squash":
            words[field] = read.text(data[field], field, ("tanh", "sigmoid"))
        elif kind == "size":
            wholes[field] = read.whole(data[field], field)
        elif kind == "bits":
            wholes[field] = read.whole(data[field], field, 0, 30)
        elif kind == "positive":
            numbers[field] = read.positive(data[field], field)
        elif kind == "real":
            numbers[field] = read.number(data[field], field)
        else:
            numbers[field] = read.number(data[field], field, 0, 1)
    if name == "dropout" and not numbers["mu"].b < 1:
        raise read.fail("mu must be below 1")
    if name == "clamp" and not numbers["low"].b < numbers["high"].a:
        raise read.fail("low must be below high")
    if name == "bloom" and wholes["hashes"] > wholes["size"]:
        raise read.fail("there are more hashes than bits")
    return Stage(name, words, wholes, numbers)


_STAGES: dict[str, dict[str, str]] = {
    "encode": {},
    "decode": {},
    "minmax": {},
    "round": {},
    "rows": {},
    "clamp": {"low": "real", "high": "real"},
    "repeat": {"times": "size"},
    "hash": {"size": "size"},
    "bloom": {"size": "size", "hashes": "size"},
    "clip": {"norm": "norm", "radius": "positive"},
    "normalise": {"norm": "norm"},
    "squash": {"kind": "squash"},
    "category": {"size": "size"},
    "onehot": {"size": "size"},
    "binary": {"integer": "bits", "fraction": "bits"},
    "query": {"norm": "norm", "distance": "positive"},
    "dropout": {"mu": "probability"},
    "laplace": {"scale": "positive"},
    "gaussian": {"sigma": "positive"},
    "onesided": {"scale": "positive"},
    "flip": {"keep": "probability", "size": "size"},
    "bits": {"even": "probability", "odd": "probability", "zero": "probability"},
    "exponential": {"rate": "positive"},
}


def _read_mixture(read: Reader, data: dict[str, Any], around: frozenset[str]) -> Stage:
    read.record(data, {"stage", "atom", "parts"}, around | {"lost"})
    parts = []
    for part in read.items(data["parts"], "parts", 100):
        if not isinstance(part, dict) or part.get("stage") not in ("laplace", "gaussian", "onesided"):
            raise read.fail("a mixture's parts must be laplace, gaussian or onesided")
        weight = read.number(part.get("weight"), "weight", 0, 1)
        parts.append((weight, read_stage(read, part, frozenset({"weight"}))))
    atom = read.number(data["atom"], "atom", 0, 1)
    lost = read.number(data["lost"], "lost", 0, 1) if "lost" in data else ZERO
    if lost.b > 0 and (len(parts) > 1 or any(part.name != "onesided" for _, part in parts)):
        raise read.fail("values may be lost beside exponential noise or none only")
    total = sum((weight for weight, _ in parts), atom + lost)
    if not (total.a <= 1 + 1e-12 and total.b >= 1 - 1e-12):
        raise read.fail("a mixture's weights must sum to 1")
    return Stage("mixture", {}, {}, {"atom": atom, "lost": lost}, tuple(parts))


def read_region(read: Reader, value: Any, depth: int = 0) -> Shape:
    """A region: its kind, and the numbers that the kind has."""
    kinds = ("ball", "apart", "sphere", "box", "both", "categories", "rows", "sparse", "repeated", *_PLAIN)
    kind = read.text(value.get("kind") if isinstance(value, dict) else None, "region kind", kinds)
    if kind in ("ball", "apart"):
        size = "radius" if kind == "ball" else "distance"
        data = read.record(value, {"kind", "p", size, "dim"})
        p = INFINITE if data["p"] == "inf" else float(read.double(data["p"], "p").mid)
        if not p >= 1:
            raise read.fail(f"p must be at least 1, got {_shown(data['p'])}")
        return Shape(kind, read.whole(data["dim"], "dim"), p, read.positive(data[size], size))
    if kind == "sphere":
        data = read.record(value, {"kind", "radius", "dim"})
        return Shape(kind, read.whole(data["dim"], "dim"), 2.0, read.positive(data["radius"], "radius"))
    if kind == "box":
        data = read.record(value, {"kind", "sides", "dim"})
        sides = [_read_side(read, side) for side in read.items(data["sides"], "sides", 1000)]
        dim = read.whole(data["dim"], "dim")
        if sum(count for _, _, count in sides) != dim:
            raise read.fail(f"the counts of a box's sides must add up to its dim, {dim}")
        return Shape(kind, dim, sides=tuple(sides))
    if kind == "both":
        if depth > 1:
            raise read.fail("two balls may not be nested in others")
        data = read.record(value, {"kind", "first", "second"})
        parts = tuple(read_region(read, data[side], 2) for side in ("first", "second"))
        if any(part.kind != "ball" or part.dim != parts[0].dim for part in parts):
            raise read.fail("both must be two balls of one dimension")
        return Shape(kind, parts[0].dim, parts=parts)
    if kind == "repeated":
        if depth:
            raise read.fail("a region may not be nested more than once")
        data = read.record(value, {"kind", "region", "times"})
        inner, times = read_region(read, data["region"], 1), read.whole(data["times"], "times")
        if inner.dim * times > LARGEST:
            raise read.fail(f"{times} copies of {inner.dim} coordinates are more than {LARGEST}")
        return Shape(kind, inner.dim * times, parts=(inner,), count=times)
    return _read_set(read, kind, value)


_PLAIN = ("minmax", "bits", "onehot", "everything")


def _read_set(read: Reader, kind: str, value: Any) -> Shape:
    if kind == "rows":
        data = read.record(value, {"kind", "dim"}, frozenset({"low", "high"}))
        dim = read.whole(data["dim"], "dim")
        if "low" not in data and "high" not in data:
            return Shape(kind, dim)
        read.record(value, {"kind", "dim", "low", "high"})
        return Shape(kind, dim, sides=((*_read_limits(read, data), dim),))
    if kind == "sparse":
        data = read.record(value, {"kind", "dim", "ones"})
        dim = read.whole(data["dim"], "dim")
        return Shape(kind, dim, count=read.whole(data["ones"], "ones", high=dim))
    if kind == "categories":
        data = read.record(value, {"kind", "size"})
        return Shape(kind, 1, count=read.whole(data["size"], "size"))
    data = read.record(value, {"kind", "dim"})
    return Shape(kind, read.whole(data["dim"], "dim", high=61 * LARGEST))


def _read_side(read: Reader, value: Any) -> tuple[Number, Number, int]:
    data = read.record(value, {"low", "high", "count"})
    return *_read_limits(read, data), read.whole(data["count"], "count")


def _read_limits(read: Reader, data: dict[str, Any]) -> tuple[Number, Number]:
    low, high = read.number(data["low"], "low"), read.number(data["high"], "high")
    if not low.a <= high.b:
        raise read.fail("low must not be above high")
    return low, high
