"""What a request asks: a claim in a query string, read within limits, and the matching claim, command and code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlencode

from dpassay.claims.claim import Claim
from dpassay.core.guarantee import METRICS, statement
from dpassay.core.interval import outward
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import Number, as_written, up
from dpassay.errors import InputError
from dpassay.pipeline.parser import NUMBER

MOST_TEXT, MOST_DIGITS, MOST_NAMES = 2_000, 40, 12  # characters of a pipeline, of a number; parameters
MOST_DIMENSIONS = 1_000_000
NUMBERS = ("epsilon", "delta", "order", "rho", "mu")
FIELDS = ("pipeline", "set", "dim", "neighbours", "metric", *NUMBERS)
_NUMBER, _NAME = re.compile(f"[+-]?{NUMBER}", re.ASCII), re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}", re.ASCII)


@dataclass(frozen=True)
class PageQuestion:
    """A claim as stated in a query string; omitted fields are empty.

    >>> asked = read([("pipeline", "clip(l2, C) | laplace(2*C/eps)"), ("set", "C=1"), ("dim", "32"), ("epsilon", "1")])
    >>> print(asked.claim().guarantee, "for", asked.claim().mechanism)
    1-DP for clip(l2, 1) | laplace(2)
    """

    pipeline: str
    values: Mapping[str, str] = field(default_factory=dict)
    dim: int | None = None
    neighbours: str = ""
    metric: str = ""
    epsilon: str = ""
    delta: str = ""
    order: str = ""
    rho: str = ""
    mu: str = ""

    def claim(self) -> Claim:
        """The claim to judge. It is the user's own, so it has no name."""
        return Claim(
            "this pipeline",
            self.pipeline,
            epsilon=self.epsilon or None,
            delta=self.delta or 0,
            dim=self.dim,
            parameters=dict(self.values),
            neighbours=Neighbours(self.neighbours) if self.neighbours else None,
            metric=self.metric or None,
            order=self.order or None,
            rho=self.rho or None,
            mu=self.mu or None,
        )

    @property
    def stated(self) -> dict[str, str]:
        """What is stated besides the pipeline and its parameters."""
        own = {name: str(getattr(self, name) or "") for name in ("dim", *NUMBERS, "metric", "neighbours")}
        return {name: value for name, value in own.items() if value}

    @property
    def address(self) -> str:
        """The query string that states the same."""
        settings = [("set", f"{name}={value}") for name, value in self.values.items()]
        return urlencode([("pipeline", self.pipeline), *settings, *self.stated.items()])

    @property
    def command(self) -> str:
        """The command that judges the same."""
        words = ["dpassay", "check", "--pipeline", self.pipeline]
        for name, value in self.values.items():
            words += ["--set", f"{name}={value}"]
        for name, value in self.stated.items():
            words += [f"--{name}", value]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """The Python that judges the same."""
        others = {"metric": "MetricDP", "order": "RenyiDP", "rho": "ZCDP", "mu": "GDP"}
        kind = next((name for name in others if getattr(self, name)), "")
        first = {"metric": "epsilon", "order": "order", "rho": "rho", "mu": "mu", "": ""}[kind]
        second = {"metric": "metric", "order": "epsilon"}.get(kind, "")
        options = [f"dim={self.dim}"] if self.dim is not None else []
        if kind:
            given = [f"{getattr(self, name)!r}" for name in (first, second) if name]
            options.append(f"guarantee=dpassay.{others[kind]}({', '.join(given)})")
        else:
            options += [f"{name}={getattr(self, name)!r}" for name in ("epsilon", "delta") if getattr(self, name)]
        options += [f"neighbours={self.neighbours!r}"] if self.neighbours else []
        options += [f"parameters={dict(self.values)!r}"] if self.values else []
        arguments = ", ".join([repr(self.pipeline), *options])
        return f"import dpassay\n\nverdict = dpassay.check({arguments})\nprint(verdict)"

    def to_data(self) -> dict[str, Any]:
        """All of it as JSON-ready data."""
        return asdict(self)


def read(pairs: Iterable[tuple[str, str]]) -> PageQuestion:
    """Read the names and values of a query string; anything not allowed is refused with a message.

    >>> read([("file", "/etc/passwd")])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: unknown field 'file'; allowed: pipeline, set, dim, neighbours, metric, ...
    """
    given: dict[str, str] = {}
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in FIELDS:
            raise InputError(f"unknown field {name[:40]!r}; allowed: {', '.join(FIELDS)}")
        if name == "set":
            _set(values, value)
        elif name in given:
            raise InputError(f"{name} is given twice")
        elif value.strip():
            given[name] = value.strip()
    text = given.pop("pipeline", "")
    if not text:
        raise InputError("give a pipeline, such as clip(l2, 1) | laplace(2)")
    if len(text) > MOST_TEXT:
        raise InputError(f"the pipeline has {len(text):,} characters; at most {MOST_TEXT:,} are read here")
    if not {"epsilon", "rho", "mu"} & set(given):
        raise InputError("state the claim: epsilon, rho or mu")
    for name in NUMBERS:
        if name in given:
            _check_number(name, given[name])
    if given.get("metric", "l2") not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {given['metric'][:40]!r}")
    Neighbours(given.get("neighbours", "any")[:60])  # raises here if unknown
    dim = given.pop("dim", "")
    return PageQuestion(text, values, _dimension(dim) if dim else None, **given)


def _set(values: dict[str, str], setting: str) -> None:
    name, equals, value = (part.strip() for part in setting.partition("="))
    if not equals or not _NAME.fullmatch(name):
        raise InputError(f"set takes NAME=VALUE, with a name of letters, digits and _; got {setting[:60]!r}")
    if name in values:
        raise InputError(f"{name} is set twice")
    if name in ("eps", "epsilon", "delta", "dim"):
        raise InputError(f"{name} has its own field: it is not a parameter to set")
    if len(values) == MOST_NAMES:
        raise InputError(f"at most {MOST_NAMES} parameters can be set here")
    _check_number(name, value)
    values[name] = value


def _check_number(name: str, text: str) -> None:
    shown = text if len(text) <= MOST_DIGITS else text[: MOST_DIGITS - 3] + "..."
    if len(text) > MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise InputError(f"{name} must be a number such as 2, 0.5 or 1e-6, got {shown!r}")
    if abs(int(text.lower().partition("e")[2] or 0)) > 300:
        raise InputError(f"{name} must lie between 1e-300 and 1e300, got {shown}")


def _dimension(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not 1 <= int(text) <= MOST_DIMENSIONS:
        raise InputError(f"dim must be a whole number from 1 to {MOST_DIMENSIONS:,} here, got {text[:40]!r}")
    return int(text)


def of_claim(claim: Claim) -> PageQuestion:
    """A claim of the registry with all its formulas evaluated, as the page shows it.

    >>> from dpassay.claims.registry import find
    >>> of_claim(find("laplace")).address
    'pipeline=query%28l1%2C+1%29+%7C+laplace%281%2Feps%29&epsilon=1'
    """
    stated = {name: value if isinstance(value, str) else _written(value) for name, value in _numbers(claim).items()}
    used = {name: str(value) for name, value in claim.parameters.items() if re.search(rf"\b{name}\b", claim.pipeline)}
    relation = "" if claim.neighbours is None else claim.neighbours.kind
    asked: dict[str, Any] = {"dim": claim.dim, "neighbours": relation, **stated}
    return PageQuestion(claim.pipeline, used, **asked)


def _written(value: Number) -> str:
    """A number as written; the value of a formula is rounded up, so that a claim that holds still does."""
    text = as_written(value)
    return text if len(text) <= 12 else outward(up(value), 1, 12)


def _numbers(claim: Claim) -> dict[str, Any]:
    return {name: value for name, value in statement(claim.guarantee).items() if name in FIELDS}
