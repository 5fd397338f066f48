"""Changes to certificates, made over JSON alone: nothing here knows what a step means, but that steps are chained.

A mutant differs from its certificate in one place, or in every place where the same value stands, and its digests are
made right again: only mathematics can tell that it was changed.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Path = tuple[Any, ...]
Json = Any
DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
NUMBER_IN_TEXT = re.compile(r"(?<![A-Za-z_0-9.])\d+(\.\d+)?([eE][+-]?\d+)?")
# Words that mean something where a field of this name stands.
WORDS = {
    "verdict": "proven refuted open",
    "quantity": "epsilon delta",
    "neighbours": "any word query replace-record add-remove-record user entity group(2) group(3) words(2)",
    "kind": "metric renyi zcdp gdp",
    "metric": "l1 l2 linf angle mahalanobis",
    "positions": "all even odd",
    "step": "claim witness upper lower repair decision",
    "theorem": "laplace gaussian radial one-sided mixture randomized-response exponential top-k bounded-range "
    "diameters worst-shift renyi saddlepoint levels pure-to-approximate hockey-stick composition dropout record-sums "
    "post-processing two-noises unbounded no-noise metric guarantees poisson lattice-sums fixed-size shuffle "
    "optimal-composition sphere noisy-max discrete-laplace discrete-gaussian grid bounded-laplace truncated-laplace "
    "staircase",
}
NAMES = (
    *(name for words in WORDS.values() for name in words.split()),
    "l1",
    "l2",
    "linf",
    "tanh",
    "sigmoid",
    "pi",
    "eps",
)
STAGES = (
    *("encode", "decode", "round", "minmax", "normalise", "rows", "squash(tanh)", "squash(sigmoid)", "clamp(0, 1)"),
    *("clip(l1, 1)", "clip(l2, 1)", "clip(linf, 1)", "repeat(2)", "dropout(0.5)", "binary(1, 1)", "query(l1, 1)"),
    *("query(linf, 1)", "laplace(1)", "gaussian(1)", "radial(l2, 1)", "radial(linf, 1)", "onesided(1)", "leak(0.5)"),
    *("onehot(3)", "category(3)", "bloom(4, 2)", "flip(0.75)", "bits(0.6, 0.7, 0.2)", "exponential(1)"),
    *("counts(l1, 2)", "counts(l2, 3)", "discrete_laplace(1)", "discrete_gaussian(2)", "truncated_laplace(1, 3)"),
    *("staircase(1, 1, 0.4)", "bounded_laplace(1, 0, 2)", "mahalanobis(1, 0.25, 4)", "vmf(1)", "purkayastha(1)"),
    *("noisymax(laplace, 1)", "noisymax(exponential, 1)", "noisymax(gumbel, 1)"),
    *("softmax(2)", "topk(1)", "topk(2)", "times(2)", "poisson(0.5)", "subsample(1, 2)", "shuffle(2)"),
)


@dataclass(frozen=True)
class Mutant:
    """A changed certificate, how it was changed, and where."""

    kind: str
    where: str
    data: Json


def rechained(certificate: Json) -> Json:
    """The same with every digest made right again: SHA-256 over the canonical JSON of each step behind the last."""
    fixed = copy.deepcopy(certificate)
    last = hashlib.sha256(str(fixed.get("schema")).encode()).hexdigest()
    for step in fixed.get("steps", []):
        if isinstance(step, dict):
            plain = {key: value for key, value in step.items() if key != "digest"}
            text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            last = hashlib.sha256(f"{last}\n{text}".encode()).hexdigest()
            step["digest"] = last
    return fixed


def places(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every value with the way to it; two decimals that enclose a number count as one leaf."""
    yield path, value
    if is_enclosure(value):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key != "digest":
            yield from places(inner, (*path, key))


def is_decimal(value: Json) -> bool:
    return isinstance(value, str) and DECIMAL.fullmatch(value) is not None


def is_enclosure(value: Json) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_decimal, value))


def leaves(certificate: Json) -> list[Path]:
    """The ways to all leaves."""
    return [path for path, value in places(certificate) if not isinstance(value, dict | list) or is_enclosure(value)]


def get(data: Json, path: Path) -> Json:
    for key in path:
        data = data[key]
    return data


def put(data: Json, path: Path, value: Json) -> Json:
    """A copy with one value replaced."""
    if not path:
        return value
    changed = copy.deepcopy(data)
    get(changed, path[:-1])[path[-1]] = value
    return changed


# ── Single values ───────────────────────────────────────────────────────────────────────────────


def decimal(value: Fraction) -> str:
    """A fraction as a decimal of 50 digits."""
    from mpmath import mp

    with mp.workdps(50):
        return str(mp.nstr(mp.mpf(value.numerator) / value.denominator, 50, min_fixed=-60, max_fixed=60))


def _digit(text: str, rng: np.random.Generator) -> str:
    spots = [i for i, c in enumerate(text) if c.isdigit()][:20]
    i = spots[int(rng.integers(len(spots)))]
    return text[:i] + str((int(text[i]) + int(rng.integers(1, 10))) % 10) + text[i + 1 :]


def _numeric(value: Json, rng: np.random.Generator) -> Iterator[tuple[str, Json]]:
    """Other numbers in place of a decimal, or of an enclosure, whose ends change equally."""
    pair = is_enclosure(value)
    ends = value if pair else [value]

    def scaled(factor: Fraction) -> Json:
        new = [decimal(Fraction(end) * factor) for end in ends]
        return (new if factor >= 0 else new[::-1]) if pair else new[0]

    yield "a digit", [_digit(ends[0], rng)] * 2 if pair else _digit(value, rng)
    yield "the sign", scaled(Fraction(-1))
    yield "a billionth more", scaled(1 + Fraction(1, 10**9))
    yield "a billionth less", scaled(1 - Fraction(1, 10**9))
    yield "a hair", scaled(1 + Fraction(int(rng.choice([-1, 1])), 10**20))
    yield "a thousandth", scaled(1 + Fraction(int(rng.choice([-1, 1])), 1000))
    yield "another size", scaled(Fraction(*((1, 2), (2, 1), (99, 100), (1000, 1))[int(rng.integers(4))]))
    yield "no number", "nan" if not pair else ["nan", "nan"]
    yield "zero or infinity", [w := str(rng.choice(["0.0", "inf"])), w] if pair else str(rng.choice(["0.0", "inf"]))
    if pair:
        yield "wider ends", [decimal(Fraction(ends[0]) / 2), decimal(Fraction(ends[1]) * 2)]
        yield "ends swapped", ends[::-1] if ends[0] != ends[1] else [ends[0], decimal(Fraction(ends[1]) - 1)]


def _text(value: str, rng: np.random.Generator) -> Iterator[tuple[str, Json]]:
    """Other words, and edits of a text that has parts."""
    yield "a name", str(rng.choice([name for name in NAMES if name != value]))
    numbers = list(NUMBER_IN_TEXT.finditer(value))
    if numbers:
        found = numbers[int(rng.integers(len(numbers)))]
        other = _digit(found[0], rng) if rng.random() < 0.5 else decimal(Fraction(found[0]) * int(rng.integers(2, 50)))
        yield "a number in a text", value[: found.start()] + other + value[found.end() :]
    norms = list(re.finditer(r"\b(l1|l2|linf|tanh|sigmoid)\b", value))
    if norms and "|" in value:
        found = norms[int(rng.integers(len(norms)))]
        yield "a norm in a text", value[: found.start()] + str(rng.choice(["l1", "l2", "linf"])) + value[found.end() :]
    if "|" in value:
        stages = value.split("|")
        i = int(rng.integers(len(stages)))
        yield "a stage less in a text", "|".join([*stages[:i], *stages[i + 1 :]])
        yield "a stage more in a text", "|".join([*stages[:i], f" {rng.choice(STAGES)} ", *stages[i:]])
        yield "another stage in a text", "|".join([*stages[:i], f" {rng.choice(STAGES)} ", *stages[i + 1 :]])
    names = [
        m for m in re.finditer(r"[A-Za-z_]\w*", value) if m[0] in ("laplace", "gaussian", "clip", "C", "eps", "dim")
    ]
    if names and "|" in value:
        found = names[int(rng.integers(len(names)))]
        yield (
            "a word in a text",
            value[: found.start()]
            + str(rng.choice(["gaussian", "laplace", "eps", "pi", "dim"]))
            + value[found.end() :],
        )


def others(value: Json, rng: np.random.Generator) -> Iterator[tuple[str, Json]]:
    """What may stand in a leaf's place, each with the kind of the change."""
    if isinstance(value, bool):
        yield "a flag", not value
    elif isinstance(value, int):
        yield "a count", value + int(rng.choice([-1, 1]))
        yield "another count", int(rng.choice([0, -value, 2 * value, 10**1000 % 10**60]))  # and one of sixty digits
    elif is_decimal(value) or is_enclosure(value):
        yield from _numeric(value, rng)
    elif isinstance(value, str):
        yield from _text(value, rng)
    if rng.random() < 0.2:  # nearly always unreadable, so seldom
        yield "another type", [{}, [], None, 1, "x", True][int(rng.integers(6))]


# ── Structure ───────────────────────────────────────────────────────────────────────────────────


def _pick(rng: np.random.Generator, items: list[Any]) -> Any:
    return items[int(rng.integers(len(items)))] if items else None


def _in_a_list(certificate: Json, rng: np.random.Generator, steps: bool) -> tuple[Path, list[Any]] | None:
    lists = [
        (path, value)
        for path, value in places(certificate)
        if isinstance(value, list) and value and not is_enclosure(value) and (path == ("steps",)) == steps
    ]
    return _pick(rng, lists)


def _listed(change: Callable[[list[Any], np.random.Generator], list[Any]], steps: bool) -> Callable[..., Any]:
    def make(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json] | None:
        found = _in_a_list(certificate, rng, steps)
        return None if found is None else (found[0], change(list(found[1]), rng))

    return make


def _removed(items: list[Any], rng: np.random.Generator) -> list[Any]:
    del items[int(rng.integers(len(items)))]
    return items


def _doubled(items: list[Any], rng: np.random.Generator) -> list[Any]:
    i = int(rng.integers(len(items)))
    return [*items[: i + 1], copy.deepcopy(items[i]), *items[i + 1 :]]


def _swapped(items: list[Any], rng: np.random.Generator) -> list[Any]:
    i, j = (int(x) for x in rng.integers(len(items), size=2))
    items[i], items[j] = items[j], items[i]
    return items


def _objects(certificate: Json) -> list[tuple[Path, dict[str, Any]]]:
    return [(path, value) for path, value in places(certificate) if isinstance(value, dict) and value]


def _renamed(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json]:
    path, value = _pick(rng, _objects(certificate))
    key = _pick(rng, [k for k in value if k != "digest"])
    new = _pick(rng, ["2", "pi", "eps", "l2", "C", "D", "dim", "x", "delta", *NAMES[:8]])
    return path, {(new if k == key else k): v for k, v in value.items()}


def _unfielded(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json]:
    path, value = _pick(rng, _objects(certificate))
    key = _pick(rng, [k for k in value if k != "digest"])
    return path, {k: v for k, v in value.items() if k != key}


def _fielded(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json]:
    path, value = _pick(rng, _objects(certificate))
    return path, {
        **value,
        _pick(rng, ["2", "pi", "exact", "tolerance", "dim", "note"]): _pick(rng, [["9.0", "9.0"], True, 1]),
    }


def _exchanged(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json] | None:
    """An object put where another one was: a region for a region, a bound for a bound."""
    found = [(path, value) for path, value in _objects(certificate) if len(path) > 1]
    if len(found) < 2:
        return None
    (path, one), (_, other) = _pick(rng, found), _pick(rng, found)
    alike = [v for _, v in found if v is not one and set(v) & set(one)]
    return path, copy.deepcopy(_pick(rng, alike) or other)


def _replacing(value: Json, new: Json) -> Callable[[str], str]:
    """What puts one number in another's place in a text."""
    try:
        old, now = (Fraction(v[0] if is_enclosure(v) else str(v)) for v in (value, new))
    except ValueError:  # inf and nan are not written in texts
        return lambda text: text
    return lambda text: NUMBER_IN_TEXT.sub(lambda m: decimal(now) if Fraction(m[0]) == old else m[0], text)


def _everywhere(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json] | None:
    """One number changed wherever it stands, in texts too: a certificate that agrees with itself."""
    numbers = [
        v
        for _, v in places(certificate)
        if (isinstance(v, int) and not isinstance(v, bool)) or is_decimal(v) or is_enclosure(v)
    ]
    value = _pick(rng, numbers)
    if value is None:
        return None
    _, new = _pick(rng, [o for o in others(value, rng) if o[0] not in ("another type", "no number")])
    in_texts = _replacing(value, new)
    changed = copy.deepcopy(certificate)
    for path, inner in list(places(certificate)):
        if path and inner == value and type(inner) is type(value):
            get(changed, path[:-1])[path[-1]] = copy.deepcopy(new)
        elif path and isinstance(inner, str) and "|" in inner:
            get(changed, path[:-1])[path[-1]] = in_texts(inner)
    return (), changed


def _steps(certificate: Json, *names: str) -> list[int]:
    return [i for i, step in enumerate(certificate["steps"]) if step.get("step") in names]


def _times(value: Json, factor: Fraction) -> Json:
    """An enclosure with both ends scaled equally."""
    return [decimal(Fraction(end) * factor) if is_decimal(end) else end for end in value]


def other_evidence(step: Json, rng: np.random.Generator) -> Json:
    """A step with one thing changed of what its theorem needs."""
    step = copy.deepcopy(step)
    numbers = [Fraction(1, 2), Fraction(2), Fraction(10), Fraction(1, 10), Fraction(99, 100), Fraction(101, 100)]
    what = _pick(rng, ["theorem", "noise", "at", "grid", "grid", "order", "pair", "pair", "pair", "pair"])
    if what == "theorem":
        step["theorem"] = _pick(rng, WORDS["theorem"].split())
    elif what in ("noise", "at"):
        step[what] = max(0, step.get(what, 0) + _pick(rng, [-1, 1, -2, 2]))
    elif what == "grid":
        grid = step.get("grid") or {"step": ["0.01", "0.01"], "tilt": ["1.0", "1.0"]}
        key = _pick(rng, ["step", "tilt"])
        step["grid"] = {**grid, key: _times(grid[key], _pick(rng, numbers))}
    elif what == "order" and step.get("points"):
        i = int(rng.integers(len(step["points"])))
        step["points"] = [*step["points"][:i], *step["points"][i + int(rng.integers(1, 20)) :]]
    elif what == "order" and "order" in step:
        step["order"] = _times(step["order"], _pick(rng, numbers))
    elif step.get("pair"):
        step["pair"] = _other_pair(step["pair"], rng)
    return step


def _other_pair(pair: list[Json], rng: np.random.Generator) -> list[Json]:
    """Another pair of vectors, mostly one that is farther apart."""
    i, j = (int(x) for x in rng.integers(len(pair), size=2))
    what, factor = int(rng.integers(7)), Fraction(_pick(rng, [2, 3, 10, -1]))
    if what == 0:
        return [{**block, "x": _times(block["x"], factor), "y": _times(block["y"], factor)} for block in pair]
    if what == 1:
        return [{**block, "y": _times(block["y"], factor)} for block in pair]
    if what == 2:
        return [{**block, "x": block["y"], "y": block["x"]} for block in pair]
    if what == 3 and pair[j]["count"] > 1:  # a coordinate of one block given to another
        moved = [dict(block) for block in pair]
        moved[i]["count"] += 1
        moved[j]["count"] -= 1
        return moved
    if what == 4:
        return [{**block, "x": pair[j]["y"] if k == i else block["x"]} for k, block in enumerate(pair)]
    if what == 5:
        return [{**block, "positions": _pick(rng, ["all", "even", "odd"])} for block in pair]
    changed = [dict(block) for block in pair]
    changed[i]["count"] = max(1, changed[i]["count"] + _pick(rng, [-1, 1, 2, 100]))
    return changed


def _stronger(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json] | None:
    """A bound that says more than before, mostly by other evidence; the claim may be moved to where it decides it."""
    found = _steps(certificate, "upper", "lower", "repair")
    if not found:
        return None
    made, i = copy.deepcopy(certificate), _pick(rng, found)
    step = made["steps"][i]
    for _ in range(int(rng.integers(3))):
        step = other_evidence(step, rng)
    share = _pick(rng, [Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)])
    factor = 1 + share if step["step"] == "lower" else 1 - share
    if "guarantee" in step:
        stated = step["guarantee"]
        step["guarantee"] = {**stated, "value": _times(stated["value"], factor)}
    else:
        key = step.get("quantity") or _pick(rng, ["epsilon", "epsilon", "delta"])
        step[key] = _times(step[key], factor)
    made["steps"][i] = step
    if step["step"] != "repair" and rng.random() < 0.5:
        made["verdict"] = made["steps"][-1]["verdict"] = "proven" if step["step"] == "upper" else "refuted"
        room = Fraction(1) if step["step"] == "upper" else 1 - Fraction(1, 10**12)
        moved = [
            name for name in ("epsilon", "delta") if name in made["steps"][0] and step.get(name, ["inf"])[0] != "inf"
        ]
        made["steps"][0].update({name: _times(step[name], room) for name in moved})
        claimed, stated = made["steps"][0].get("guarantee"), step.get("guarantee")
        if claimed and stated and stated["value"][0] != "inf":
            made["steps"][0]["guarantee"] = {**claimed, "value": _times(stated["value"], room)}
    return (), made


def _with_other_evidence(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json] | None:
    found = _steps(certificate, "upper", "lower", "repair", "witness")
    if not found:
        return None
    i = _pick(rng, found)
    return ("steps", i), other_evidence(certificate["steps"][i], rng)


def _redefined(certificate: Json, rng: np.random.Generator) -> tuple[Path, Json] | None:
    """A parameter more, called as something that means a number already."""
    found = [
        path for path, value in places(certificate) if path and path[-1] == "parameters" and isinstance(value, dict)
    ]
    if not found:
        return None
    path = _pick(rng, found)
    texts = " ".join(value for _, value in places(certificate) if isinstance(value, str) and "|" in value)
    names = [m[0] for m in NUMBER_IN_TEXT.finditer(texts)] + ["pi", "eps", "delta", "dim", "l2", "exp", "sqrt"]
    return path, {**get(certificate, path), _pick(rng, names): [w := _pick(rng, ["1000.0", "0.001"]), w]}


STRUCTURES: dict[str, Callable[[Json, np.random.Generator], tuple[Path, Json] | None]] = {
    "a step removed": _listed(_removed, steps=True),
    "a step doubled": _listed(_doubled, steps=True),
    "two steps swapped": _listed(_swapped, steps=True),
    "an item removed": _listed(_removed, steps=False),
    "an item doubled": _listed(_doubled, steps=False),
    "two items swapped": _listed(_swapped, steps=False),
    "a field renamed": _renamed,
    "a field removed": _unfielded,
    "a field more": _fielded,
    "one object for another": _exchanged,
    "a number everywhere": _everywhere,
    "a stronger bound": _stronger,
    "other evidence": _with_other_evidence,
    "a literal redefined": _redefined,
}


def _shown(path: Path) -> str:
    return "/".join(map(str, path)) or "everywhere"


def at_leaf(certificate: Json, path: Path, rng: np.random.Generator) -> Mutant:
    """One leaf changed in one of the ways that suit it."""
    value = get(certificate, path)
    kind, new = _pick(rng, [other for other in others(value, rng) if other[1] != value] or [("no text", None)])
    if path[-1] in WORDS and rng.random() < 0.8:
        kind, new = "a word", _pick(rng, [word for word in WORDS[path[-1]].split() if word != value])
    return Mutant(kind, _shown(path), rechained(put(certificate, path, new)))


def of_structure(certificate: Json, rng: np.random.Generator) -> Mutant | None:
    """The structure changed in one way."""
    kind = _pick(rng, list(STRUCTURES))
    made = STRUCTURES[kind](certificate, rng)
    return None if made is None else Mutant(kind, _shown(made[0]), rechained(put(certificate, *made)))


def transplanted(certificate: Json, donor: Json, rng: np.random.Generator) -> Mutant:
    """One step, or one field of a step, taken from another certificate."""
    i = int(rng.integers(len(certificate["steps"])))
    name = certificate["steps"][i].get("step")
    alike = [step for step in donor["steps"] if step.get("step") == name] or donor["steps"]
    step = copy.deepcopy(_pick(rng, alike))
    if rng.random() < 0.5:
        key = _pick(rng, [k for k in step if k != "digest"])
        step = {**certificate["steps"][i], key: step[key]}
    return Mutant("from another certificate", f"steps/{i}", rechained(put(certificate, ("steps", i), step)))


def hybrid(evidence: Json, claim: Json, rng: np.random.Generator) -> Mutant:
    """One of two twins' claims, with the verdict and most of the evidence of the other one."""
    made = copy.deepcopy(evidence)
    made["steps"][0] = copy.deepcopy(claim["steps"][0])
    share = rng.random()
    for step in made["steps"][1:]:
        alike = [other for other in claim["steps"][1:-1] if other["step"] == step["step"]]
        if alike and rng.random() < share:
            other = _pick(rng, alike)
            for key in step.keys() & other.keys() - {"step", "digest"}:
                if rng.random() < share:
                    step[key] = copy.deepcopy(other[key])
    return Mutant("evidence of a twin", "everywhere", rechained(made))


def edited(text: str, rng: np.random.Generator) -> str:
    """A text with one number or norm changed."""
    kinds = ("a number in a text", "a norm in a text")
    return str(_pick(rng, [new for kind, new in _text(text, rng) if kind in kinds] or [text]))
