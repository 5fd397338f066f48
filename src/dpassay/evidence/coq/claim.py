"""A claim with exact numbers, and how a theorem is written for Coq."""

from dataclasses import dataclass
from fractions import Fraction

from dpassay.evidence.coq.terms import Stage, Term


@dataclass(frozen=True)
class Claim:
    """What a certificate claims, with exact numbers."""

    verdict: str
    stages: tuple[Stage, ...]
    dim: int
    neighbours: str
    epsilon: Fraction
    delta: Fraction
    between: tuple[Fraction, Fraction] | None = None

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    @property
    def eps(self) -> str:
        return Term.of(self.epsilon).text

    @property
    def index(self) -> str:
        return f"index {self.dim}"


def theorem(name: str, says: str, *proof: str) -> list[str]:
    """A statement with its proof."""
    return [f"Theorem {name} : {says}.", "Proof.", *(f"  {line}" for line in proof), "Qed."]


def verdict_theorem(claim: Claim, says: str, *proof: str) -> list[str]:
    """The verdict: what is claimed, or that it is false."""
    return theorem("verdict", f"~ {says}" if claim.refuted else says, *proof)
