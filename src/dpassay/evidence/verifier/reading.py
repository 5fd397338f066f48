"""From a file to the steps of a certificate. Data only: JSON of a known form and size, nothing is executed.

Every field is known, typed and bounded. Whatever does not fit is refused with a sentence that names the field.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier.losses import Grid
from dpassay.evidence.verifier.lowers import Shown
from dpassay.evidence.verifier.numbers import INF, Number, is_decimal, iv, middle
from dpassay.evidence.verifier.pairs import Block, Pair
from dpassay.evidence.verifier.regions import LARGEST
from dpassay.evidence.verifier.text import TAKEN
from dpassay.evidence.verifier.uppers import Evidence

SCHEMA = "dpassay/certificate/2"
LARGEST_FILE = 3_000_000  # bytes
LONGEST_TEXT, MOST_STEPS, MOST_BLOCKS, MOST_STAGES = 10_000, 200, 10_000, 100
NEIGHBOURS = ("any", "word", "replace-record", "add-remove-record", "query")
VERDICTS = ("proven", "refuted", "open")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_ORDER = re.compile(r"claim( witness)?( upper| lower){0,60}( repair){0,20} decision")
_NARROW, _NOTHING = iv.mpf("1e-40"), iv.mpf("1e-60")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed, and for which pipeline."""

    name: str
    source: str
    text: str
    parameters: dict[str, Number]
    dim: int
    neighbours: str
    epsilon: Number
    delta: Number


@dataclass(frozen=True, slots=True)
class Upper:
    """(ε, δ)-DP holds, by the theorem of this name about the noise at this stage."""

    epsilon: Number
    delta: Number
    theorem: str
    noise: int
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Lower:
    """ε at this δ, or δ at this ε, is no smaller: a pair that comes in at a stage shows it."""

    quantity: str
    epsilon: Number
    delta: Number
    theorem: str
    noise: int
    shown: Shown


@dataclass(frozen=True, slots=True)
class Witness:
    """Two values that come in at a stage, and an event with the logarithms of its probabilities."""

    noise: int
    shown: Shown
    event: str
    log_p: Number
    log_q: Number


@dataclass(frozen=True, slots=True)
class Repair:
    """A mechanism that keeps a guarantee, and why."""

    text: str
    bound: Upper


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict."""

    verdict: str


Step = Claim | Upper | Lower | Witness | Repair | Decision


@dataclass(frozen=True, slots=True)
class Certificate:
    """The steps as read, and for each whether its digest is the right one."""

    verdict: str
    names: tuple[str, ...]
    steps: tuple[Step, ...]
    intact: tuple[bool, ...]


class Fields:
    """The fields of one object; each is taken once, by its type, and none may be left."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise refused(where, f"must be an object, got {_shown(value)}")
        self.left, self.where = dict(value), where

    def take(self, name: str) -> tuple[Any, str]:
        """A field's value, and where it stands."""
        where = f"{self.where}.{name}".lstrip(".")
        if name not in self.left:
            raise refused(where, "is missing")
        return self.left.pop(name), where

    def end(self, read: T) -> T:
        """What was read, if no field is left."""
        for name in self.left:
            raise refused(f"{self.where}.{_shown(name)}".lstrip("."), "is not known")
        return read

    def text(self, name: str, allowed: tuple[str, ...] = ()) -> str:
        value, where = self.take(name)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT or (allowed and value not in allowed):
            what = f"one of {', '.join(allowed)}" if allowed else f"a text of at most {LONGEST_TEXT} characters"
            raise refused(where, f"must be {what}, got {_shown(value)}")
        return value

    def whole(self, name: str, low: int, high: int) -> int:
        value, where = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise refused(where, f"must be a whole number from {low} to {high}, got {_shown(value)}")
        return value

    def number(self, name: str, low: float | None = None, high: float | None = None) -> Number:
        """A number as two decimals that enclose it narrowly."""
        value, where = self.take(name)
        found = _enclosed(value, where, low, high)
        if low is None and abs(found).b == INF:
            raise refused(where, "must be finite")
        return _narrow(found, where)

    def items(self, name: str, most: int) -> list[tuple[Any, str]]:
        """A list that is not too long, each item with where it stands."""
        value, where = self.take(name)
        if not isinstance(value, list) or len(value) > most:
            raise refused(where, f"must be a list of at most {most}, got {_shown(value)}")
        return [(item, f"{where}[{i}]") for i, item in enumerate(value)]


def refused(where: str, why: str) -> CertificateError:
    """What is said of a field that cannot stand as it is."""
    return CertificateError(f"the certificate does not hold: field {where} {why}")


def _enclosed(value: Any, where: str, low: float | None = None, high: float | None = None) -> Number:
    ends = value if isinstance(value, list) and len(value) == 2 else [None, None]
    if not all(is_decimal(end) or end in ("inf", "-inf") for end in ends):
        raise refused(where, f"must be two decimals that enclose a number, got {_shown(value)}")
    first, second = (iv.mpf(end) for end in ends)
    if first.a > second.b:
        raise refused(where, f"must be two decimals in order, got {_shown(value)}")
    found = iv.mpf([first.a, second.b])
    infinite = found.b == INF or found.a == -INF
    if infinite and low is not None and found.a < found.b:
        raise refused(where, f"is not known precisely enough: {_shown(ends[0])} to {_shown(ends[1])}")
    if (low is not None and found.b < low) or (high is not None and found.a > high) or (infinite and high is not None):
        limits = f"at least {low:g}" if high is None else f"from {low:g} to {high:g}"
        raise refused(where, f"must be {limits}, got {_shown(ends[0])}")
    return found


def _narrow(value: Number, where: str) -> Number:
    if (value.b - value.a) > (_NARROW * abs(value)).b + _NOTHING.a:
        raise refused(where, "is not known precisely enough")
    return value


def _shown(value: Any) -> str:
    """A value, short enough to print; a container by its kind only, since it may be deep."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__}"
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


def _claim(fields: Fields) -> Claim:
    given = Fields(*fields.take("parameters"))
    if len(given.left) > 100:
        raise refused(given.where, "must have at most 100 numbers")
    for name in given.left:
        if not _NAME.fullmatch(name) or name in TAKEN:
            raise refused(f"{given.where}.{_shown(name)}", "would change the meaning of the pipeline's text")
    return Claim(
        fields.text("name"),
        fields.text("source"),
        fields.text("pipeline"),
        {name: given.number(name) for name in list(given.left)},
        fields.whole("dim", 1, LARGEST),
        fields.text("neighbours", NEIGHBOURS),
        fields.number("epsilon", 0, 1e12),
        fields.number("delta", 0, 1),
    )


def _grid(fields: Fields) -> Grid | None:
    if "grid" not in fields.left:
        return None
    grid = Fields(*fields.take("grid"))
    step, tilt = grid.number("step", 0, 1e6), grid.number("tilt", 0, 1e6)
    if not step.a > 0:
        raise refused(f"{grid.where}.step", "must be positive")
    return grid.end(Grid(step, middle(tilt)))


def _upper(fields: Fields) -> Upper:
    epsilon, delta = fields.number("epsilon", 0, 1e12), fields.number("delta", 0, 1)
    order = None
    if "order" in fields.left:
        order = fields.number("order", 1, 1e12)
        if not order.a > 1:
            raise refused(f"{fields.where}.order", "must be above 1")
    theorem, noise = fields.text("theorem"), fields.whole("noise", 0, MOST_STAGES)
    tilt = fields.number("tilt", 0, 1e6) if "tilt" in fields.left else None
    return Upper(epsilon, delta, theorem, noise, Evidence(_grid(fields), order, tilt))


def _lower(fields: Fields) -> Lower:
    return Lower(
        fields.text("quantity", ("epsilon", "delta")),
        fields.number("epsilon", 0),
        fields.number("delta", 0, 1),
        fields.text("theorem"),
        fields.whole("noise", 0, MOST_STAGES),
        Shown(fields.whole("at", 0, MOST_STAGES), _pair(fields), _grid(fields), _thresholds(fields)),
    )


def _thresholds(fields: Fields) -> tuple[Number, ...]:
    if "thresholds" not in fields.left:
        return ()
    return tuple(_narrow(_enclosed(*item), item[1]) for item in fields.items("thresholds", MOST_BLOCKS))


def _pair(fields: Fields) -> Pair:
    blocks = []
    for item, where in fields.items("pair", MOST_BLOCKS):
        block = Fields(item, where)
        count, parity = block.whole("count", 1, 61 * LARGEST), block.text("positions", ("all", "even", "odd"))
        blocks.append(
            block.end(Block(block.number("x", -1e300, 1e300), block.number("y", -1e300, 1e300), count, parity))
        )
    return tuple(blocks)


def _witness(fields: Fields) -> Witness:
    noise, start = fields.whole("noise", 0, MOST_STAGES), fields.whole("at", 0, MOST_STAGES)
    shown, event = Shown(start, _pair(fields)), fields.text("event")
    return Witness(noise, shown, event, *(_enclosed(*fields.take(name)) for name in ("log_p", "log_q")))


def _repair(fields: Fields) -> Repair:
    return Repair(fields.text("pipeline"), _upper(fields))


def _decision(fields: Fields) -> Decision:
    return Decision(fields.text("verdict", VERDICTS))


_STEPS: dict[str, Callable[[Fields], Step]] = {
    "claim": _claim,
    "upper": _upper,
    "lower": _lower,
    "witness": _witness,
    "repair": _repair,
    "decision": _decision,
}


def read_step(data: Any, where: str = "step") -> Any:
    """One step without its digest."""
    fields = Fields(data, where)
    return fields.end(_STEPS[fields.text("step", tuple(_STEPS))](fields))


def load(source: str | Path | dict[str, Any]) -> Certificate:
    """Read a certificate from a file, or from data that was one.

    >>> load({"schema": "something else"})
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: this is not a certificate: the schema is 'something else', not ...
    """
    data = source if isinstance(source, dict) else _from_file(Path(source))
    schema = data.get("schema")
    if schema == "dpassay/certificate/1":
        raise InputError(
            "this certificate is of version 1, whose bounds carried no evidence; make it anew with "
            "dpassay check ... --certificate FILE"
        )
    if schema != SCHEMA:
        shown = _shown(schema) if isinstance(schema, str) else "missing"
        audit = "; a saved audit is replayed by 'dpassay verify FILE'" if shown.startswith("'dpassay/audit/") else ""
        raise InputError(f"this is not a certificate: the schema is {shown}, not {SCHEMA!r}{audit}")
    fields = Fields(data, "")
    fields.text("schema")
    fields.text("written_by")
    verdict, raw = fields.text("verdict", VERDICTS), fields.items("steps", MOST_STEPS)
    fields.end(None)
    names, steps, intact = [], [], []
    last = hashlib.sha256(SCHEMA.encode()).hexdigest()
    for item, where in raw:
        step = Fields(item, where)
        digest = step.text("digest")
        steps.append(read_step(step.left, where))
        names.append(step.text("step"))
        last = chained(last, {"step": names[-1], **step.left})
        intact.append(digest == last)
        last = digest  # so that a change is reported at its own step only
    if not _ORDER.fullmatch(" ".join(names)):
        raise refused("steps", f"must be in order, got {', '.join(names) or 'none'}"[:300])
    return Certificate(verdict, tuple(names), tuple(steps), tuple(intact))


def chained(previous: str, step: dict[str, Any]) -> str:
    """The digest of a step that follows another: SHA-256 of its canonical JSON behind the digest before.

    >>> chained("", {"step": "decision"})[:8]
    '00bd3e0d'
    """
    text = json.dumps(step, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _from_file(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() and path.exists():
            raise InputError(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE:
        raise InputError(f"{path} is too large: a certificate has at most {LARGEST_FILE} bytes")
    if not content.strip():
        raise InputError(f"{path} is empty; a certificate is a JSON file that dpassay check --certificate writes")
    try:
        data = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_doubles,
            parse_int=_whole,
            parse_float=_Unfit,
            parse_constant=_Unfit,
        )
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    except RecursionError:
        raise refused("steps", "is nested too deeply") from None
    except CertificateError:
        if SCHEMA.encode() in content:
            raise
        raise InputError(f"{path} is not a certificate: nothing in it says {SCHEMA!r}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON, or was cut off: {error}"[:300]) from None
    if not isinstance(data, dict):
        raise InputError(f"{path} is not a certificate: expected a JSON object")
    return data


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise refused(_shown(name), "is given twice")
        found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class _Unfit:
    """A number that no field can have; the field that has it is named when it is read."""

    text: str

    def __repr__(self) -> str:
        return self.text if len(self.text) <= 40 else f"{self.text[:20]}... of {len(self.text)} digits"


def _whole(text: str) -> int | _Unfit:
    return int(text) if len(text) <= 20 else _Unfit(text)
