"""A claim with exact numbers, and how a theorem is written for Coq."""

from dataclasses import dataclass
from fractions import Fraction

from dpassay.evidence.coq.terms import CoqNumber, CoqStage, Unsupported


@dataclass(frozen=True)
class CertifiedClaim:
    """What a certificate claims, with exact numbers."""

    verdict: str
    stages: tuple[CoqStage, ...]
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
        return CoqNumber.of(self.epsilon).text

    @property
    def allowed(self) -> str:
        """Delta."""
        return CoqNumber.of(self.delta).text

    @property
    def index(self) -> str:
        return f"index {self.dim}"

    @property
    def single_step(self) -> bool:
        """Whether neighbors are one step apart, rather than n words or records."""
        return "(" not in self.neighbours


@dataclass(frozen=True)
class Proof:
    """What is shown of a mechanism with finitely many outputs: who are neighbors, and the tactics for one step.

    `lemmas` come first. A tactic is for epsilon and delta as the claim states them, or for one of several steps.
    """

    near: str
    mechanism: str
    tactic: str
    lemmas: tuple[str, ...] = ()


def theorem(name: str, says: str, *proof: str) -> list[str]:
    """A statement with its proof."""
    return [f"Theorem {name} : {says}.", "Proof.", *(f"  {line}" for line in proof), "Qed."]


def verdict_theorem(claim: CertifiedClaim, says: str, *proof: str) -> list[str]:
    """The verdict: what is claimed, or that it is false."""
    return theorem("verdict", f"~ {says}" if claim.refuted else says, *proof)


def finite_verdict(claim: CertifiedClaim, shown: Proof, steps: int | None) -> list[str]:
    """The verdict on a mechanism with finitely many outputs, or on several steps of it, each chosen adaptively."""
    lines = [*shown.lemmas, ""] if shown.lemmas else []
    if steps is None:
        says = f"dp {claim.eps} {claim.allowed} {shown.near} {shown.mechanism}"
        return lines + verdict_theorem(claim, says, f"{shown.tactic}.")
    if claim.delta != 0:
        raise Unsupported("several steps can be written for Coq at delta 0 only")
    says = f"times_private {shown.near} {shown.mechanism} (Z.to_nat {steps}) {claim.eps} 0"
    each = CoqNumber.of(claim.epsilon / steps).text
    by = f"apply: (times_{claim.verdict} (e := {each})); [count | number |]."
    return lines + verdict_theorem(claim, says, by, f"{shown.tactic}.")
