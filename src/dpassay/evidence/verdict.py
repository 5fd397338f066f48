"""What dpassay answers: Proven, Refuted or Open, never a bool, with the evidence for it."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpassay.core.guarantee import Guarantee
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.evidence.sampled import SampledWitness
from dpassay.exact.repair import Repair
from dpassay.exact.witness import Witness
from dpassay.pipeline.pipeline import Pipeline

SCHEMA = "dpassay/verdict/1"


@dataclass(frozen=True)
class Verdict:
    """A judgement on a claim. `epsilon` contains the true ε at the claimed δ, `delta` the true δ at the claimed ε.

    >>> from dpassay import check
    >>> verdict = check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1)
    >>> verdict.word, str(verdict.epsilon)
    ('refuted', '[5.656854249, 5.656854250]')
    """

    word: ClassVar[str] = ""
    exit_code: ClassVar[int] = 0

    name: str
    source: str
    mechanism: Any
    text: str
    parameters: dict[str, Any]
    neighbours: Neighbours
    guarantee: Guarantee
    epsilon: Interval
    delta: Interval | None
    reason: str
    witness: Witness | SampledWitness | None = None
    holds: tuple[tuple[float, Interval], ...] = ()
    repairs: tuple[Repair, ...] = ()
    warnings: tuple[str, ...] = ()
    theorems: tuple[Theorem, ...] = ()
    alpha: float | None = None
    runs: int = 0
    seed: int | None = None
    ledger: tuple[tuple[str, float], ...] = ()
    interrupted: bool = False
    least_delta: float = 0.0  # δ that no finite ε goes below
    expected: str = field(default="", repr=False)

    @property
    def subject(self) -> str:
        """The mechanism in words: a pipeline's stages, or the name of a program, an object or an address."""
        return str(self.mechanism) if isinstance(self.mechanism, Pipeline) else self.name

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready data; its schema is docs/verdict.schema.json."""
        from dpassay.evidence.schema import record

        return record(self).model_dump(mode="json")

    def __str__(self) -> str:
        return f"{self.word.upper()}: {self.reason}"

    def __rich__(self) -> Any:
        from dpassay.report.terminal import render

        return render(self)

    def _repr_html_(self) -> str:
        from rich.console import Console

        console = Console(record=True, width=100, file=_nowhere())
        console.print(self)
        # rich escapes what it prints; the plain text is escaped once more for the fallback.
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>") or html.escape(str(self))


def _nowhere() -> Any:
    import io

    return io.StringIO()


@dataclass(frozen=True)
class Proven(Verdict):
    """The claim holds: an upper bound that follows from theorems does not exceed it.

    >>> from dpassay import check
    >>> type(check("clip(l1, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1)).__name__
    'Proven'
    """

    word: ClassVar[str] = "proven"
    exit_code: ClassVar[int] = 0


@dataclass(frozen=True)
class Refuted(Verdict):
    """The claim fails: two neighbours show a larger loss than claimed.

    >>> from dpassay import check
    >>> type(check("encode | laplace(1/eps)", epsilon=1, dim=8)).__name__
    'Refuted'
    """

    word: ClassVar[str] = "refuted"
    exit_code: ClassVar[int] = 1


@dataclass(frozen=True)
class Open(Verdict):
    """Neither could be shown. This proves nothing, in either direction.

    >>> from dpassay import check
    >>> type(check("clip(l2, 1) | laplace(2)", epsilon=4.5, delta=1e-6, dim=32)).__name__
    'Open'
    """

    word: ClassVar[str] = "open"
    exit_code: ClassVar[int] = 0
