"""What dpassay answers: Proven, Refuted or Open, never a bool, with the evidence for it.

A verdict has a few parts: the claim that was judged, the bounds on the truth, the exact and the sampled evidence, and
advice. What users ask for most is reachable on the verdict itself, such as `verdict.epsilon`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dpassay.core.guarantee import Guarantee
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.errors import AmbiguousError, InputError, escape_control_chars
from dpassay.evidence.sampled import SampledWitness
from dpassay.pipeline.mechanism import is_pipeline
from dpassay.values import dataclass

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.evidence.word_witness import WordWitness
    from dpassay.exact.pld.privacy_loss import PrivacyLoss
    from dpassay.exact.profiles.profile import PrivacyProfile
    from dpassay.exact.repair import Repair
    from dpassay.exact.witness import Witness

T = TypeVar("T")


@dataclass(frozen=True)
class JudgedClaim:
    """What was judged: who claims which guarantee for which mechanism, between which neighbors."""

    name: str
    source: str
    mechanism: Any
    text: str
    neighbours: Neighbours
    guarantee: Guarantee
    parameters: dict[str, Any] = field(default_factory=dict)
    expected: str = ""

    @classmethod
    def of(cls, claim: Any, mechanism: Any, guarantee: Guarantee, neighbours: Neighbours) -> JudgedClaim:
        """What a `Claim` says, about this mechanism and between these neighbors."""
        parameters = {**claim.parameters, **({} if claim.dim is None else {"dim": claim.dim})}
        who = claim.name, claim.source, mechanism, claim.pipeline
        return cls(*who, neighbours, guarantee, parameters, claim.expected)


@dataclass(frozen=True)
class Bounds:
    """What is known about the truth: the claimed parameter, δ at the claimed ε, and the δ that every finite ε needs.

    The parameter is ε at the claimed δ, or whatever parameter the guarantee has: ρ of zCDP, μ of Gaussian DP.
    """

    value: Interval
    delta: Interval | None = None
    least_delta: float = 0.0


@dataclass(frozen=True)
class ExactEvidence:
    """The privacy profile that decided the claim, a counterexample, and the theorems used; empty after an audit alone.

    `loss` is the exact loss between two inputs of a mechanism that is not a pipeline but knows its distributions.
    """

    profile: PrivacyProfile | None = field(default=None, compare=False, repr=False)
    loss: PrivacyLoss | None = field(default=None, compare=False, repr=False)
    witness: Witness | WordWitness | None = None
    theorems: tuple[Theorem, ...] = ()


@dataclass(frozen=True)
class SampledEvidence:
    """What running the mechanism showed, and where its error probability `alpha` was spent; empty without runs."""

    witness: SampledWitness | None = None
    theorems: tuple[Theorem, ...] = ()
    alpha: float | None = None
    runs: int = 0
    seed: int | None = None
    alpha_budget: tuple[tuple[str, float], ...] = ()
    interrupted: bool = False
    replays: bool = True  # whether the seed gives the same outputs again


class Later(Generic[T]):
    """A value that is computed when it is first asked for: many readers of a verdict need none of its advice.

    >>> later = Later(lambda: (1, 2))
    >>> later.value, later == Later(lambda: (1, 2))
    ((1, 2), True)
    """

    def __init__(self, find: Callable[[], T]) -> None:
        self.find = find

    @cached_property
    def value(self) -> T:
        """What is found."""
        return self.find()

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Later) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Advice:
    """The guarantees that do hold (δ and the interval of ε), mechanisms that satisfy the claim, and warnings."""

    holds: tuple[tuple[float, Interval], ...] | Later[tuple[tuple[float, Interval], ...]] = ()
    repairs: tuple[Repair, ...] | Later[tuple[Repair, ...]] = ()
    warnings: tuple[str, ...] = ()

    def complete(self) -> None:
        """Compute now what otherwise waits until it is asked for, which may take seconds."""
        for one in (self.holds, self.repairs):
            if isinstance(one, Later):
                one.value  # noqa: B018


class _Of(Generic[T]):
    """An attribute of one of a verdict's parts, as an attribute of the verdict."""

    def __init__(self, part: str, name: str = "") -> None:
        self.part, self.name = part, name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, verdict: Verdict | None, owner: type) -> T:
        if verdict is None:  # accessed on the class, as help() does
            raise AttributeError(f"{self.name} is known of a verdict, not of {owner.__name__}")
        found = getattr(getattr(verdict, self.part), self.name)
        return found.value if isinstance(found, Later) else found  # type: ignore[no-any-return]


@dataclass(frozen=True, repr=False)
class Verdict:
    """A judgment on a claim. `epsilon` contains the true ε at the claimed δ, `delta` the true δ at the claimed ε.

    For a claim that is stated by ρ or μ, `rho` or `mu` contains the true one; `value` is whichever was claimed.

    >>> from dpassay import check
    >>> verdict = check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1)
    >>> verdict
    <Refuted: 1-DP for clip(l2, 1) | laplace(2), true epsilon [5.656854249, 5.656854250]>
    >>> verdict.refuted, verdict.epsilon > 5
    (True, True)
    """

    word: ClassVar[str] = ""
    exit_code: ClassVar[int] = 0

    claim: JudgedClaim
    bounds: Bounds
    reason: str
    exact: ExactEvidence = ExactEvidence()
    sampled: SampledEvidence = SampledEvidence()
    advice: Advice = Advice()

    name = _Of[str]("claim")
    source = _Of[str]("claim")
    mechanism = _Of[Any]("claim")
    text = _Of[str]("claim")
    parameters = _Of[dict[str, Any]]("claim")
    neighbours = _Of[Neighbours]("claim")
    guarantee = _Of[Guarantee]("claim")
    expected = _Of[str]("claim")
    value = _Of[Interval]("bounds")
    delta = _Of[Interval | None]("bounds")
    least_delta = _Of[float]("bounds")
    alpha = _Of[float | None]("sampled")
    runs = _Of[int]("sampled")
    seed = _Of[int | None]("sampled")
    alpha_budget = _Of[tuple[tuple[str, float], ...]]("sampled")
    ledger = _Of[tuple[tuple[str, float], ...]]("sampled", "alpha_budget")  # as the JSON calls it
    interrupted = _Of[bool]("sampled")
    replays = _Of[bool]("sampled")
    holds = _Of[tuple[tuple[float, Interval], ...]]("advice")
    repairs = _Of["tuple[Repair, ...]"]("advice")
    warnings = _Of[tuple[str, ...]]("advice")

    @property
    def proven(self) -> bool:
        """Whether the claim holds."""
        return self.word == "proven"

    @property
    def refuted(self) -> bool:
        """Whether the claim fails."""
        return self.word == "refuted"

    @property
    def open(self) -> bool:
        """Whether the claim was neither proven nor refuted."""
        return self.word == "open"

    def __bool__(self) -> bool:
        raise AmbiguousError(
            f"a verdict is neither true nor false, this one is {self.word}: ask for .refuted, .proven or .open"
        )

    @property
    def epsilon(self) -> Interval:
        """An interval that contains the true ε."""
        return self._claimed("epsilon")

    @property
    def rho(self) -> Interval:
        """An interval that contains the true ρ of a zCDP claim."""
        return self._claimed("rho")

    @property
    def mu(self) -> Interval:
        """An interval that contains the true μ of a GDP claim."""
        return self._claimed("mu")

    def _claimed(self, parameter: str) -> Interval:
        if parameter != self.guarantee.parameter:
            raise InputError(f"{self.guarantee} is not stated by {parameter}: ask for .{self.guarantee.parameter}")
        return self.value

    @property
    def witness(self) -> Witness | WordWitness | SampledWitness | None:
        """The counterexample: the exact one if there is one."""
        return self.exact.witness or self.sampled.witness

    @property
    def theorems(self) -> tuple[Theorem, ...]:
        """Everything that the verdict rests on."""
        return tuple(dict.fromkeys([*self.exact.theorems, *self.sampled.theorems]))

    @property
    def subject(self) -> str:
        """A description of the mechanism: a pipeline's stages, or the name of a program, an object or an address."""
        return str(self.mechanism) if is_pipeline(self.mechanism) else self.name

    @cached_property
    def profile(self) -> PrivacyProfile | None:
        """Bounds on the loss at every ε and δ, for a pipeline. After an audit it is computed when first accessed."""
        if self.exact.profile is None and is_pipeline(self.mechanism):
            from dpassay.exact.analysis import analyse  # a sampled verdict needs none of it

            return analyse(self.mechanism, self.neighbours)
        used = self.exact.profile
        return used if used is None or used.whole is None else used.whole

    @cached_property
    def loss(self) -> PrivacyLoss | None:
        """The exact loss of the pair with the largest one, the witness's if there is a witness; None if unknown.

        With word dropout no such loss is known.

        >>> from dpassay import check
        >>> print(check("query(l1, 1) | laplace(1)", epsilon=1).loss.mean())  # 1/e
        [0.3678794411, 0.3678794412]
        """
        if self.profile is None:
            return self.exact.loss
        return self.profile.dominating_loss(self.guarantee) if self.profile.mu == 0 else None

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready data; its schema is docs/verdict.schema.json."""
        from dpassay.evidence.schema import record

        return record(self).model_dump(mode="json")

    def to_html(self, made_by: str = "verdict.to_html()") -> str:
        """The verdict as a self-contained page; `made_by` is the line that the page shows as its origin.

        >>> from dpassay import check
        >>> check("query(l1, 1) | laplace(1)", epsilon=1).to_html().startswith("<!doctype html>")
        True
        """
        from dpassay.report.pages.page import verdict_page

        return verdict_page(self, made_by)

    def save_certificate(self, path: str | Path) -> None:
        """Write a certificate that `dpassay.verify` re-checks, whole or not at all.

        >>> import dpassay, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dpassay.check("query(l1, 1) | laplace(1)", epsilon=1).save_certificate(f"{folder}/claim.json")
        ...     dpassay.verify(f"{folder}/claim.json").ok
        True
        """
        from dpassay.evidence.certificate import save

        save(self, path)

    def plot(self) -> Figure:
        """Draw the bounds on δ at every ε, with the claim marked, as a matplotlib figure.

        >>> from dpassay import check
        >>> figure = check("query(l1, 1) | laplace(1)", epsilon=1, delta=1e-6).plot()
        >>> figure.axes[0].get_ylabel()
        'δ(ε)'
        """
        from dpassay.report.pictures.plot import plot_profile

        return plot_profile(self)

    def __repr__(self) -> str:
        at = f" at delta {self.guarantee.delta:.6g}" if self.guarantee.delta else ""
        what = escape_control_chars(f"{self.guarantee} for {self.subject}").replace("\n", " ")
        return f"<{type(self).__name__}: {what}, {self.guarantee.truth} {self.value}{at}>"

    def __str__(self) -> str:
        return f"{self.word.upper()}: {self.reason}"

    def __rich__(self) -> Any:
        from dpassay.report.terminal import render

        return render(self)

    def _repr_html_(self) -> str:
        from dpassay.report.pages.cards import verdict_card

        return verdict_card(self)


@dataclass(frozen=True, repr=False)
class Proven(Verdict):
    """The claim holds: an upper bound that follows from theorems does not exceed it.

    >>> from dpassay import check
    >>> check("clip(l1, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1).proven
    True
    """

    word: ClassVar[str] = "proven"
    exit_code: ClassVar[int] = 0


@dataclass(frozen=True, repr=False)
class Refuted(Verdict):
    """The claim fails: two neighbors show a larger loss than claimed.

    >>> from dpassay import check
    >>> check("encode | laplace(1/eps)", epsilon=1, dim=8).refuted
    True
    """

    word: ClassVar[str] = "refuted"
    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, repr=False)
class Open(Verdict):
    """The claim was neither proven nor refuted.

    >>> from dpassay import check
    >>> check("clip(l2, 1) | laplace(2)", epsilon=4.42, delta=1e-6, dim=32).open
    True
    """

    word: ClassVar[str] = "open"
    exit_code: ClassVar[int] = 0
