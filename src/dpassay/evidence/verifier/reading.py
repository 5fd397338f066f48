"""From a file to the steps of a certificate. Data only: JSON of a known form and size, nothing is executed.

Every field is known, typed and bounded. Anything else is refused with a message that names the field.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier.arithmetic.lattice import Grid
from dpassay.evidence.verifier.arithmetic.numbers import INF, ZERO, Number, exactly, is_decimal, is_narrow, iv, show
from dpassay.evidence.verifier.arithmetic.work import KEPT_NUMBER, spend
from dpassay.evidence.verifier.regions.pairs import Pair, PairBlock
from dpassay.evidence.verifier.regions.regions import LARGEST
from dpassay.evidence.verifier.text import TAKEN
from dpassay.values import dataclass

SCHEMA = "dpassay/certificate/2"
LARGEST_FILE = 3_000_000  # bytes
LONGEST_TEXT, MOST_STEPS, MOST_BLOCKS, MOST_STAGES, MOST_POINTS = 10_000, 200, 10_000, 100, 400
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_COUNTED = re.compile(r"(group|words|tokens)\(([1-9][0-9]{0,5}|1000000)\)")
_ORDER = re.compile(r"claim( witness)?( upper| lower){0,60}( repair){0,20} decision")
_NOTHING = iv.mpf("1e-60")
_OF_A_DIGIT = 1000  # work, as measured with long decimals


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A guarantee other than by ε and δ: metric DP in a metric, Rényi DP of an order, zCDP or Gaussian DP."""

    kind: str
    value: Number
    order: Number | None = None
    metric: str = ""

    @property
    def parameter(self) -> str:
        return {"zcdp": "rho", "gdp": "mu"}.get(self.kind, "epsilon")

    def same_kind(self, other: "Guarantee") -> bool:
        """Whether both are about the same parameter, of the same order or metric."""
        orders = [None if one.order is None else one.order._mpi_ for one in (self, other)]
        return (self.kind, self.metric, orders[0]) == (other.kind, other.metric, orders[1])

    def __str__(self) -> str:
        value = show(self.value)
        order = "" if self.order is None else show(self.order)
        said = {"metric": f"metric {value}-DP in {self.metric}", "renyi": f"({order}, {value})-Rényi DP"}
        return said.get(self.kind) or f"{value}-{'zCDP' if self.kind == 'zcdp' else 'GDP'}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step; which of the fields it has depends on its name. docs/certificate.md describes each."""

    step: str
    digest: str = ""
    epsilon: Number = ZERO
    delta: Number = ZERO
    guarantee: Guarantee | None = None
    name: str = ""
    source: str = ""
    pipeline: str = ""
    parameters: Mapping[str, Number] = field(default_factory=dict)
    dim: int = 0
    neighbours: str = ""
    theorem: str = ""
    noise: int = 0
    order: Number | None = None
    tilt: Number | None = None
    grid: Grid | None = None
    points: tuple[Number, ...] = ()
    quantity: str = ""
    at: int = 0
    pair: Pair = ()
    thresholds: tuple[Number, ...] = ()
    event: str = ""
    log_p: Number = ZERO
    log_q: Number = ZERO
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The steps as read, and for each whether its digest is correct."""

    verdict: str
    steps: tuple[Step, ...]
    intact: tuple[bool, ...]


def refused(where: str, why: str) -> CertificateError:
    """The message about an invalid field."""
    return CertificateError(f"the certificate does not hold: field {where} {why}")


def _shown(value: Any) -> str:
    """A value, short enough to print; a container by its kind only, since it may be deep."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


# ── Readers: from a value, and its place in the file, to its meaning ────────────────────────────

Reader = Callable[[Any, str], Any]


def _text(*allowed: str) -> Reader:
    what = f"one of {', '.join(allowed)}" if allowed else f"a text of at most {LONGEST_TEXT} characters"

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or len(value) > LONGEST_TEXT or (allowed and value not in allowed):
            raise refused(where, f"must be {what}, got {_shown(value)}")
        return value

    return read


def _whole(low: int, high: int) -> Reader:
    def read(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise refused(where, f"must be a whole number from {low} to {high}, got {_shown(value)}")
        return value

    return read


def _enclosed(value: Any, where: str) -> Number:
    """Two decimals, or infinities, that enclose a number."""
    ends = value if isinstance(value, list) and len(value) == 2 else [None, None]
    if not all(is_decimal(end) or end in ("inf", "-inf") for end in ends):
        raise refused(where, f"must be two decimals that enclose a number, got {_shown(value)}")
    spend(KEPT_NUMBER + sum(map(len, ends)) * _OF_A_DIGIT)
    if ends[0] == ends[1] and is_decimal(ends[0]):
        return exactly(Fraction(str(ends[0])))
    first, second = (iv.mpf(end) for end in ends)
    if first.a > second.b:
        raise refused(where, f"must be two decimals in order, got {_shown(value)}")
    return iv.mpf([first.a, second.b])


def _number(low: float, high: float = math.inf, above: float = -math.inf, infinite: bool = False) -> Reader:
    """A number between two limits, both allowed, and above another one, known to 40 digits; or an infinite one."""
    limits = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"

    def read(value: Any, where: str) -> Number:
        found = _enclosed(value, where)
        boundless = abs(found).b == INF
        if found.a < found.b and (boundless or not is_narrow(found, _NOTHING)):
            raise refused(where, "is not known precisely enough")
        if found.b < low or found.a > high or (boundless and not infinite):
            raise refused(where, f"must be {limits}, got {_shown(value[0])}")
        if not found.a > above and above > -math.inf:
            raise refused(where, f"must be above {above:g}")
        return found

    return read


def _list(item: Reader, most: int) -> Reader:
    def read(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > most:
            raise refused(where, f"must be a list of at most {most}, got {_shown(value)}")
        return tuple(item(one, f"{where}[{i}]") for i, one in enumerate(value))

    return read


def _object(required: Mapping[str, Reader], optional: Mapping[str, Reader] | None = None) -> Reader:
    readers = {**required, **(optional or {})}

    def read(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refused(where, f"must be an object, got {_shown(value)}")
        found = {}
        for name, reader in readers.items():
            if name in value:
                found[name] = reader(value[name], f"{where}.{name}".lstrip("."))
            elif name in required:
                raise refused(f"{where}.{name}".lstrip("."), "is missing")
        for name in value:
            if name not in readers:
                raise refused(f"{where}.{_shown(name)}".lstrip("."), "is not known")
        return found

    return read


def _parameters(value: Any, where: str) -> Any:
    """Numbers under names that change no other meaning of the pipeline's text."""
    names = list(value) if isinstance(value, dict) else []
    if len(names) > 100:
        raise refused(where, "must have at most 100 numbers")
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in TAKEN:
            raise refused(f"{where}.{_shown(name)}", "would change the meaning of the pipeline's text")
    return _object(dict.fromkeys(names, _number(-math.inf)))(value, where)


def _made(make: Callable[..., Any], fields: Mapping[str, Reader]) -> Reader:
    return lambda value, where: make(**_object(fields)(value, where))


_KINDS: dict[str, dict[str, Reader]] = {
    "metric": {"metric": _text("l1", "l2", "linf", "angle", "mahalanobis")},
    "renyi": {"order": _number(1, 1e6, above=1)},
    "zcdp": {},
    "gdp": {},
}


def _guarantee(amount: Reader) -> Reader:
    """A guarantee of a known kind, with the fields of this kind, and its value."""

    def read(value: Any, where: str) -> Guarantee:
        kind = value.get("kind") if isinstance(value, dict) else None
        more = _KINDS.get(kind, {}) if isinstance(kind, str) else {}
        return Guarantee(**_object({"kind": _text(*_KINDS), "value": amount, **more})(value, where))

    return read


def _neighbours(value: Any, where: str) -> str:
    known = ("any", "word", "element", "replace-record", "add-remove-record", "query", "user", "entity", "user-entity")
    if isinstance(value, str) and (value in known or _COUNTED.fullmatch(value)):
        return value
    counted = "group(n), words(n) or tokens(n) with n from 1 to 1000000"
    raise refused(where, f"must be one of {', '.join(known)}, or {counted}, got {_shown(value)}")


_ANY, _INDEX, _VERDICT = _text(), _whole(0, MOST_STAGES), _text("proven", "refuted", "open")
_EPSILON, _DELTA, _COORDINATE = _number(0, 1e300), _number(0, 1), _number(-1e300, 1e300)
_GRID = _made(Grid, {"step": _number(0, 1e6, above=0), "tilt": _number(0, 1e6)})
_PLACE = {"count": _whole(1, 61 * LARGEST), "positions": _text("all", "even", "odd")}
_BLOCKS = _list(_made(PairBlock, {"x": _COORDINATE, "y": _COORDINATE, **_PLACE}), MOST_BLOCKS)
_THRESHOLDS = _list(_number(-math.inf, infinite=True), MOST_BLOCKS)
_CLAIM = {"name": _ANY, "source": _ANY, "pipeline": _ANY, "parameters": _parameters, "dim": _whole(1, LARGEST)}
_UPPER = {"epsilon": _EPSILON, "delta": _DELTA, "theorem": _ANY, "noise": _INDEX}
_EVIDENCE = {"order": _number(1, 1e12, above=1), "tilt": _number(0, 1e6), "grid": _GRID}
_LOWER = {"quantity": _text("epsilon", "delta"), "epsilon": _number(0, infinite=True), "delta": _DELTA}
_PAIR = {"noise": _INDEX, "at": _INDEX, "pair": _BLOCKS}
_STEPS: dict[str, tuple[dict[str, Reader], dict[str, Reader]]] = {  # required fields, and optional ones
    "claim": ({**_CLAIM, "neighbours": _neighbours, "epsilon": _EPSILON, "delta": _DELTA}, {}),
    "witness": ({**_PAIR, "event": _ANY, "log_p": _enclosed, "log_q": _enclosed}, {}),
    "upper": (_UPPER, _EVIDENCE),
    "lower": ({**_LOWER, "theorem": _ANY, **_PAIR}, {"grid": _GRID, "thresholds": _THRESHOLDS}),
    "repair": ({"pipeline": _ANY, **_UPPER}, _EVIDENCE),
    "decision": ({"verdict": _VERDICT}, {}),
}
_STATED = {"guarantee": _guarantee(_EPSILON), "theorem": _ANY, "noise": _INDEX}
_AT = {"points": _list(_number(0, 1e12), MOST_POINTS), **_EVIDENCE}
_SHOWN_AT = {"order": _number(1, 1e12, above=1), "epsilon": _EPSILON, "grid": _GRID, "thresholds": _THRESHOLDS}
_OTHERS: dict[str, tuple[dict[str, Reader], dict[str, Reader]]] = {  # the same for other guarantees
    "claim": ({**_CLAIM, "neighbours": _neighbours, "guarantee": _guarantee(_EPSILON)}, {}),
    "upper": (_STATED, _AT),
    "lower": ({"guarantee": _guarantee(_number(0, infinite=True)), "theorem": _ANY, **_PAIR}, _SHOWN_AT),
    "repair": ({"pipeline": _ANY, **_STATED}, _AT),
}
_WHOLE = {"schema": _ANY, "written_by": _ANY, "verdict": _VERDICT, "steps": _list(lambda *item: item, MOST_STEPS)}


def read_step(data: Any, where: str = "step", sealed: bool = False) -> Step:
    """One step, with its digest if it is sealed."""
    name = data.get("step") if isinstance(data, dict) else None
    table = _OTHERS if isinstance(data, dict) and "guarantee" in data else _STEPS
    required, optional = table.get(name, ({}, {})) if isinstance(name, str) else ({}, {})
    digest = {"digest": _ANY} if sealed else {}
    return Step(**_object({"step": _text(*_STEPS), **digest, **required}, optional)(data, where))


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
            "this certificate is of version 1, whose bounds carry no evidence; make a new one "
            "with dpassay check ... --certificate FILE"
        )
    if schema != SCHEMA:
        shown = _shown(schema) if isinstance(schema, str) else "missing"
        audit = "; a saved audit is replayed by 'dpassay verify FILE'" if shown.startswith("'dpassay/audit/") else ""
        if shown == "missing":
            raise InputError(f'this is not a certificate: it has no "schema" field, which would be {SCHEMA!r}')
        raise InputError(f"this is not a certificate: the schema is {shown}, not {SCHEMA!r}{audit}")
    whole = _object(_WHOLE)(data, "")
    steps, intact = [], []
    last = hashlib.sha256(SCHEMA.encode()).hexdigest()
    for item, where in whole["steps"]:
        step = read_step(item, where, sealed=True)
        steps.append(step)
        intact.append(step.digest == chained(last, {name: item[name] for name in item if name != "digest"}))
        last = step.digest  # so that a change is reported at its own step only
    names = [step.step for step in steps]
    if not _ORDER.fullmatch(" ".join(names)):
        raise refused("steps", f"must be in order, got {', '.join(names) or 'none'}"[:300])
    return Certificate(whole["verdict"], tuple(steps), tuple(intact))


def chained(previous: str, step: dict[str, Any]) -> str:
    """The digest of a step that follows another: SHA-256 of the previous digest followed by the step's canonical JSON.

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
            parse_int=_short_enough,
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
    """A number that no field can have; when the field is read, the error names it."""

    text: str

    def __repr__(self) -> str:
        return self.text if len(self.text) <= 40 else f"{self.text[:20]}... of {len(self.text)} digits"


def _short_enough(text: str) -> int | _Unfit:
    return int(text) if len(text) <= 20 else _Unfit(text)
