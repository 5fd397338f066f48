"""The options of an audit: each with its default, its limits and its help, in one place.

`dpassay.audit`, `assert_dp` and the command line all build an `AuditOptions`, and present its fields as their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from inspect import Parameter, signature
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from dpassay.core.parameters import merge_parameters
from dpassay.errors import InputError
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.core.neighbours import Neighbours
    from dpassay.pipeline.regions import Region

MOST_RUNS = 10**12
MOST_ALPHA = 0.2  # a refutation that is wrong more often than this is meaningless
SEARCH_SHARE = 0.15  # of the runs, at most, if there are several pairs
Unknown = Literal["refuse", "repr", "bytes"]  # what to do with outputs of types that cannot be read
INPUT_SOURCES = ("pairs", "inputs", "region", "text", "candidates")  # what to distinguish: exactly one of them

Progress = Callable[[int, int, str], None]
Function = TypeVar("Function", bound=Callable[..., Any])


def whole(value: Any, what: str, least: int = 1, most: int = 2**128 - 1) -> int:
    """An integer within its limits."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{what} must be a whole number, {least} or more, got {value}")
    if int(value) > most:
        raise InputError(f"{what} must be at most {most:,}, got {int(value):,}")
    return int(value)


def check_alpha(alpha: float) -> float:
    """The error probability, if it is valid.

    >>> check_alpha(0.001)
    0.001
    """
    if not isinstance(alpha, int | float) or not 0 < alpha <= MOST_ALPHA:
        raise InputError(f"alpha is an error probability: it must be above 0 and at most {MOST_ALPHA}, got {alpha}")
    return float(alpha)


def _option(default: Any, text: str) -> Any:
    """A field that the command line offers too, with this help."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class AuditOptions:
    """Everything that specifies an audit besides the mechanism.

    >>> AuditOptions(runs=200).search_budget
    30
    >>> AuditOptions(runs=0)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: runs must be a whole number, 1 or more, got 0
    """

    pairs: Sequence[tuple[Any, Any]] | None = None
    epsilon: Any = None
    delta: Any = None
    inputs: Sequence[Any] | None = None
    region: Region | str | None = None
    text: str | None = None
    vocabulary: Sequence[str] | str | Path | None = None
    candidates: Sequence[Any] | None = None
    dim: int | None = None
    neighbours: Neighbours | str | None = None
    odd_words: bool = _option(
        True, "With --text, also try words that may be treated differently: unknown words, numbers, emoji."
    )
    hostile: bool = _option(
        False, "Also try inputs that code is seldom tested on: NaN, huge numbers, unknown words, empty texts."
    )
    alpha: float = _option(0.001, "Total probability of refuting a claim that holds, at most 0.2.")
    runs: int = _option(100_000, "Maximum number of runs of the mechanism.")
    time: str | None = _option(
        None, "Stop after this time, such as 90s, 10m or 2h, with the results so far; --resume continues."
    )
    fixed: bool = _option(False, "Make all runs and give the best bound. Default: stop when enough is known.")
    until_refuted: bool = _option(
        False, "Stop once the claim is refuted. Default: make as many runs again, at least 1,000, to tighten the bound."
    )
    search_runs: int | None = _option(None, "How many of the runs may be used to find a pair. Default: 15 of 100.")
    shrink: bool = _option(True, "Look for a smaller pair that still refutes the claim.")
    seed: int = _option(0, "The same seed gives the same counts.")
    seed_all: bool = _option(
        False,
        "Seed the global generators of numpy, random and torch around each call, so that the seed replays them too.",
    )
    guesser: Callable[[list[Any]], Any] | None = None
    bits: bool | None = _option(
        None,
        "Whether floating-point artifacts count as evidence. Default: a few runs test for them and may give a warning.",
    )
    unknown: Unknown = _option(
        "refuse", "Outputs of types that cannot be read: refuse them, or read their repr or their bytes."
    )
    save: Path | None = _option(None, "Keep rules and counts in this file, for --resume and 'dpassay verify'.")
    resume: bool = _option(
        False, "Continue the audit in the --save file, or begin it if there is none; give the same options again."
    )
    workers: int | None = _option(None, "Number of local processes. Default: work in this process.")
    cluster: str | None = _option(None, "The address of a Dask scheduler, such as tcp://127.0.0.1:8786.")
    device: str = _option("cpu", "Where to compute: cpu, cuda, or numpy (no kernels).")
    progress: Progress | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of a pipeline or a claim, whatever their names

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        known = {"runs": whole(self.runs, "runs", 1, MOST_RUNS), "seed": whole(self.seed, "seed", 0)}
        if self.search_runs is not None:
            known["search_runs"] = whole(self.search_runs, "search_runs", 0)
        if self.fixed and self.until_refuted:
            raise InputError("fixed=True makes all runs but until_refuted=True stops early: specify only one of them")
        if self.unknown not in get_args(Unknown):
            raise InputError(f"unknown must be one of {', '.join(get_args(Unknown))}, got {self.unknown!r}")
        _ = self.seconds  # raises here if it is not a duration
        if self.vocabulary is not None and self.text is None:
            raise InputError("a vocabulary gives replacement words for a text: give one, text='book a flight'")
        if self.resume and self.save is None:
            raise InputError("to continue an audit, specify its file: resume=True needs save=FILE")
        if self.guesser is not None and not (self.workers is None and self.cluster is None):
            raise InputError("your own guesser cannot be sent to workers: leave out workers and cluster")
        save = None if self.save is None else Path(self.save)
        for name, value in {**known, "save": save, "parameters": merge_parameters(self.parameters, {})}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AuditOptions:
        """Options from keyword arguments; all others are parameters of the pipeline.

        >>> AuditOptions.of({"runs": 5, "C": 1, "parameters": {"device": 2}}).parameters
        {'device': 2, 'C': 1}
        """
        names = {option.name for option in fields(cls)}
        more = {name: value for name, value in given.items() if name not in names}
        options = {name: value for name, value in given.items() if name in names}
        return cls(**{**options, "parameters": merge_parameters(given.get("parameters"), more)})

    @property
    def claimed(self) -> dict[str, Any]:
        """The fields that state the claim itself."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "dim": self.dim}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def seconds(self) -> float | None:
        """How long the audit may take.

        >>> AuditOptions(time="10m").seconds
        600.0
        """
        if self.time is None:
            return None
        from dpassay.audit.remote.timing import duration

        return duration(self.time)

    @property
    def search_budget(self) -> int:
        """The runs that may be spent on finding a pair."""
        return int(SEARCH_SHARE * self.runs) if self.search_runs is None else min(self.runs, self.search_runs)


def show_options(**defaults: Any) -> Callable[[Function], Function]:
    """Make a function that takes options as keywords show each of them in its signature, with these defaults."""

    def shown(function: Function) -> Function:
        own = signature(function)
        *named, rest = own.parameters.values()
        options = []
        for option in fields(AuditOptions):
            if option.name not in own.parameters:
                default = defaults.get(option.name, {} if option.default is MISSING else option.default)
                kind = option.type
                options.append(Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
        vars(function)["__signature__"] = own.replace(parameters=[*named, *options, rest])
        return function

    return shown
