"""Categories and bits: randomized response, one-hot strings, Bloom filters, numbers in binary."""

from fractions import Fraction
from typing import Any

from mpmath import mp

from dpassay.evidence.coq.claim import CertifiedClaim, Proof, verdict_theorem
from dpassay.evidence.coq.terms import CoqNumber, CoqStage, Unsupported

_CLOSEST = 1e-40  # a difference of costs, relative to them, that interval arithmetic decides


def category(claim: CertifiedClaim, stages: list[CoqStage]) -> Proof:
    """Randomized response, of one step."""
    size, keep = stages[0].numbers[0].whole("the number of categories"), stages[1].numbers[0]
    if size < 2:
        raise Unsupported("a response of one category cannot be written for Coq")
    lemmas = (
        f"Lemma two : (1 < #|index {size}|)%nat. Proof. count. Qed.",
        f"Lemma p01 : 0 <= {keep.text} <= 1. Proof. split; number. Qed.",
    )
    kind = "response" if claim.delta == 0 else "response_delta"
    lie = "_false" if claim.refuted and keep.about * size < 1 else ""
    return Proof("any_two", "(response two p01)", f"apply: {kind}_{claim.verdict}{lie}; number", lemmas)


def hashed(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    """Randomized response after a hash, whatever the hash is."""
    shown = category(claim, stages)
    says = f"hashed_private {shown.mechanism} {claim.eps} {claim.allowed}"
    return [*shown.lemmas, "", *verdict_theorem(claim, says, "rewrite hashed_exact.", f"{shown.tactic}.")]


def one_hot(claim: CertifiedClaim, stages: list[CoqStage]) -> Proof:
    """One-hot strings, of one step."""
    size = stages[0].numbers[0].whole("the number of categories")
    if size < 2:
        raise Unsupported("a one-hot string of one bit cannot be written for Coq")
    p, q = _probabilities(stages[1])
    mechanism = f"(fun j => equal_bits p01 q01 (@one_hot (Z.to_nat {size}) j))"
    if stages[1].name == "flip" and not claim.refuted:  # both bits cost the same, perhaps half of epsilon exactly
        half = CoqNumber.of(claim.epsilon / 2).text
        tactic = f"apply: (@one_hot_proven _ _ _ _ _ _ {half} {half}); side"
    else:
        odds = "one_hot_odds" if q.about <= p.about else "one_hot_odds_swapped"
        tactic = f"rewrite {odds}; [{'apply: Rlt_not_le; ' if claim.refuted else ''}number | side | number | number]"
    return Proof("any_two", mechanism, tactic, _strictly_between(p=p, q=q))


def bloom(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    """Bloom filters, whatever the hashes are."""
    size, hashes = (n.whole("the size of a Bloom filter") for n in stages[0].numbers)
    if size < 2:
        raise Unsupported("a Bloom filter of one bit cannot be written for Coq")
    p, _ = _probabilities(stages[1])
    differ = min(2 * hashes, size)
    lemmas = [
        *_strictly_between(p=p),
        f"Lemma q01 : 0 < 1 - {p.text} < 1. Proof. split; number. Qed.",
        "",
    ]
    says = f"bloom_private (Z.to_nat {size}) (Z.to_nat {hashes}) p01 q01 {claim.eps}"
    sizes = "lia | lia | lia"
    if claim.refuted:
        cost = _largest_cost(p, CoqNumber("", None, 1 - p.about))
        proof = f"eapply (@bloom_refuted _ _ _ _ _ {differ}); [{sizes} | exact: {cost} | number]."
    else:
        each = CoqNumber.of(claim.epsilon / differ).text
        proof = f"apply: (@bloom_proven _ _ _ _ _ {differ} _ _ _ _ {each}); [{sizes} | number | number | number]."
    return lemmas + verdict_theorem(claim, says, proof)


def binary(claim: CertifiedClaim, stages: list[CoqStage]) -> Proof:
    """The bits of numbers, of one step. A bit costs the same at all even positions, and at all odd ones."""
    integer, fraction = (n.whole("the number of bits", least=0) for n in stages[0].numbers)
    size = claim.dim * (1 + integer + fraction)
    even, odd, q = _by_parity(stages[1])
    count = f"{size} {size - size // 2} {size // 2}"
    mechanism = f"(parity_bits even01 odd01 q01 (n := Z.to_nat {size}))"
    lemmas = _strictly_between(even=even, odd=odd, q=q)
    if claim.refuted:
        costs = f"exact: {_largest_cost(even, q)} | exact: {_largest_cost(odd, q)}"
        tactic = f"eapply (@parity_refuted _ _ _ _ _ _ {count}); [lia | lia | lia | {costs} | number]"
        return Proof("any_two", mechanism, tactic, lemmas)
    a, c = _limits(claim.epsilon, size, _cost(even, q), _cost(odd, q))
    costs = "by apply: (cost_le even01 q01); number | by apply: (cost_le odd01 q01); number"
    tactic = f"apply: (@parity_proven _ _ _ _ _ _ {count} _ _ _ _ {a} {c}); [lia | lia | lia | {costs} | number]"
    return Proof("any_two", mechanism, tactic, lemmas)


def _limits(epsilon: Fraction, size: int, even: Any, odd: Any) -> tuple[str, str]:
    """What a bit may cost at even and odd positions: the same, if epsilon allows, or slightly more than each does."""
    whole, each = CoqNumber.of(epsilon).about, CoqNumber.of(epsilon / size)
    if max(even, odd) <= each.about * (1 + mp.mpf(_CLOSEST)):
        return each.text, each.text
    rest = whole - even * (size - size // 2) - odd * (size // 2)
    if rest <= _CLOSEST * whole:
        raise Unsupported("this claim is too close to call: the costs of its bits add up to nearly epsilon")
    part = rest / (2 * size)
    return CoqNumber.near(even + part, part).text, CoqNumber.near(odd + part, part).text


def _by_parity(noise: CoqStage) -> tuple[CoqNumber, CoqNumber, CoqNumber]:
    if noise.name == "flip":
        p, q = _probabilities(noise)
        return p, p, q
    even, odd, q = noise.numbers
    return even, odd, q


def _probabilities(noise: CoqStage) -> tuple[CoqNumber, CoqNumber]:
    """With which probability a 1 stays 1, and a 0 becomes 1."""
    if noise.name == "flip":
        keep = noise.numbers[0]
        other = (
            CoqNumber.of(1 - keep.exact)
            if keep.exact is not None
            else CoqNumber(f"(1 - {keep.text})", None, 1 - keep.about)
        )
        return keep, other
    if noise.numbers[0] != noise.numbers[1]:
        raise Unsupported("one-hot strings with probabilities that depend on the position cannot be written for Coq")
    return noise.numbers[0], noise.numbers[2]


def _strictly_between(**given: CoqNumber) -> tuple[str, ...]:
    for p in given.values():
        if not 0 < p.about < 1 or p.exact in (0, 1):
            raise Unsupported(f"bits that are kept or set with certainty cannot be written for Coq, got {p.text}")
    return tuple(f"Lemma {name}01 : 0 < {p.text} < 1. Proof. split; number. Qed." for name, p in given.items())


def _ratios(p: CoqNumber, q: CoqNumber) -> dict[str, Any]:
    return {
        "cost_ge_fall1": p.about / q.about,
        "cost_ge_rise1": q.about / p.about,
        "cost_ge_fall0": (1 - p.about) / (1 - q.about),
        "cost_ge_rise0": (1 - q.about) / (1 - p.about),
    }


def _largest_cost(p: CoqNumber, q: CoqNumber) -> str:
    ratios = _ratios(p, q)
    return max(ratios, key=lambda name: ratios[name])


def _cost(p: CoqNumber, q: CoqNumber) -> Any:
    return mp.log(max(_ratios(p, q).values()))
