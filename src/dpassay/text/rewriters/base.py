"""What a rewriter is: it rewrites texts, and states its guarantee for one text.

Everything that uses rewriters (`rewrite`, `utility`, `reconstruct`, `audit --model`) needs two members:

    rewrite(texts, rng) -> list of texts    one rewriting of each text
    guarantee -> TextGuarantee              what holds for one text

and uses these optional members, if a rewriter has them:

    independent_rows -> bool                whether the rewritings of one batch are independent, so that an audit may
                                            count each of them; otherwise it runs one text at a time to be sure
    log_prob(output, text) -> float         the exact log-probability of an output: the strongest attack there is
    log_probs(output, texts) -> numbers     the same for several texts, if that is faster than one after another
    release(texts) -> list of texts         rewritings that may be published, with randomness that nobody can guess
    exact() -> Verdict                      the exact verdict on what is claimed
    statement() -> dict                     more about the guarantee, for the file that goes with a release
    describe() -> dict of texts             what identifies it: its mechanism, its parameters, its model's sha256
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpassay.audit.rewriting import as_mechanism, checked, describe
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

__all__ = ["Rewriter", "TextGuarantee", "as_mechanism", "checked", "describe", "released", "statement"]


@dataclass(frozen=True)
class TextGuarantee:
    """The guarantee for one text: an ε that holds by a theorem, for which neighbours, and what it does not cover.

    `claimed` is the ε that the mechanism's authors state for these parameters, if it differs. An infinite ε means that
    no finite one holds.

    >>> print(TextGuarantee(50, neighbours=Neighbours("words(5)"), outside="the number of words is visible"))
    epsilon 50 for two texts that differ in at most 5 words; the number of words is visible
    >>> print(TextGuarantee(800, claimed=100))
    epsilon 800 (claimed: 100) for any two texts (local DP)
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = field(default_factory=Neighbours)
    claimed: float | None = None
    outside: str = ""
    proofs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0 or not 0 <= self.delta < 1:
            raise InputError(
                f"a guarantee has an epsilon of 0 or more and a delta from 0 to 1, got {self.epsilon} and {self.delta}"
            )

    @property
    def stated(self) -> float:
        """The claimed ε: the authors', or the one that holds."""
        return self.epsilon if self.claimed is None else self.claimed

    @property
    def holds(self) -> bool:
        """Whether the claimed ε holds."""
        return self.epsilon <= self.stated

    def __str__(self) -> str:
        whom = "any two texts (local DP)" if self.neighbours.kind == "any" else str(self.neighbours)
        delta = f", delta {self.delta:g}" if self.delta else ""
        claimed = "" if self.holds else f" (claimed: {self.claimed:g})"
        held = "no finite epsilon" if math.isinf(self.epsilon) else f"epsilon {self.epsilon:g}"
        return f"{held}{delta}{claimed} for {whom}" + (f"; {self.outside}" if self.outside else "")

    def to_dict(self) -> dict[str, Any]:
        """The guarantee, ready for JSON."""
        return {
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "claimed_epsilon": self.stated if math.isfinite(self.stated) else "inf",
            "holds": self.holds,
            "neighbours": self.neighbours.kind,
            "sentence": str(self),
            "proofs": list(self.proofs),
        }


@runtime_checkable
class Rewriter(Protocol):
    """A mechanism from text to text, with its guarantee for one text.

    >>> class Shout:
    ...     guarantee = TextGuarantee(math.inf)
    ...     def rewrite(self, texts, rng):
    ...         return [text.upper() for text in texts]
    >>> isinstance(Shout(), Rewriter)
    True
    """

    @property
    def guarantee(self) -> TextGuarantee:
        """What holds for one text."""

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text; the same generator gives the same texts."""


def released(rewriter: Rewriter, texts: Sequence[str]) -> list[str]:
    """Rewritings to be published: from the rewriter's own `release`, or with a generator seeded by the system."""
    own = getattr(rewriter, "release", None)
    if own is not None:
        return checked(own(texts), texts)
    return checked(rewriter.rewrite(texts, np.random.default_rng(secrets.randbits(128))), texts)


def statement(rewriter: Rewriter) -> dict[str, Any]:
    """The guarantee of a release, ready for JSON, with what the rewriter itself adds."""
    own: dict[str, Any] = getattr(rewriter, "statement", dict)()
    return {"schema": "dpassay/rewriting/2", "per": "text", "guarantee": rewriter.guarantee.to_dict(), **own}
