"""A certificate speaks of all numbers between the two ends of each number in it: where a function jumps, both sides.

Each forgery gives a number near a jump, or on both sides of it, and states what holds on one side only.
"""

from fractions import Fraction

import pytest

from dpassay import verify
from dpassay.errors import CertificateError
from forging import Data, block, exactly, lower, sealed, upper
from forging import claim as any_claim

ONE_LESS = "0." + "9" * 41  # 1 − 1e-41
UP_TO_ONE = [ONE_LESS, "1"]
FROM_ONE = ["1", "1." + "0" * 40 + "1"]
LITTLE = Fraction(1, 2**137)  # 5.7e-42, so that 1/2 ± this is known exactly in binary too
AROUND_HALF = [f"{(Fraction(1, 2) + sign * LITTLE) * 10**137}e-137" for sign in (-1, 1)]
FROM_HALF = ["0.5", "0.5" + "0" * 43 + "1"]


def claim(pipeline: str, epsilon: object, delta: object = 0, dim: int = 1, **others: object) -> Data:
    """The first step, with the neighbours that the first stage needs."""
    known = {"query": "query", "counts": "query", "rows": "replace-record"}
    own = known.get(pipeline.partition(" ")[0].partition("(")[0], "any")
    return any_claim(pipeline, epsilon, delta, dim, neighbours=own, **others)


def widely(step: Data, **ends: list[str]) -> Data:
    """A step with some numbers as enclosures of their own."""
    return {**step, **ends}


FALSE_PROOFS = {
    # One number at most 1 away: two ties, 0.5 and 1.5, are rounded to 0 and 2. Below 1 only 1 apart.
    "ties of rounding, Laplace": [
        claim("query(l1, D) | round | laplace(1)", 1, parameters={"D": UP_TO_ONE}),
        upper("laplace", 2, 1),
    ],
    "ties of rounding, worst shift": [
        claim("query(l1, D) | round | laplace(1)", 1, parameters={"D": UP_TO_ONE}),
        upper("worst-shift", 2, 1),
    ],
    "ties of rounding, discrete Laplace": [
        claim("query(l1, D) | round | discrete_laplace(1)", 1, parameters={"D": UP_TO_ONE}),
        upper("discrete-laplace", 2, 1),
    ],
    "ties of rounding in l2": [  # at most 1 apart in l2: (2, 0), or (1, 1)
        claim("query(l2, D) | round | gaussian(10)", 1, "1e-50", dim=2, parameters={"D": UP_TO_ONE}),
        upper("gaussian", 2, 1, "1e-50"),
    ],
    "whole numbers up to a distance": [
        claim("counts(l1, D) | discrete_laplace(1)", "0.5", parameters={"D": UP_TO_ONE}),
        upper("discrete-laplace", 1, "0.5"),
    ],
    # The loss of staircase noise is ⌈distance/sensitivity⌉ times its ε.
    "a step of staircase noise, by the distance": [
        claim("query(l1, D) | staircase(1, 1, 0.4)", 1, parameters={"D": FROM_ONE}),
        upper("staircase", 1, 1),
    ],
    "a step of staircase noise, by the sensitivity": [
        claim("query(l1, 1) | staircase(1, S, 0.4)", 1, parameters={"S": UP_TO_ONE}),
        upper("staircase", 1, 1),
    ],
    "a step of staircase noise, by two numbers of equal enclosures": [
        claim("query(l1, D) | staircase(1, S, 0.4)", 1, parameters={"D": FROM_ONE, "S": FROM_ONE}),
        upper("staircase", 1, 1),
    ],
    "a step of staircase noise that 1e-31 is beyond": [
        claim("query(l1, 1.0000000000000000000000000000001) | staircase(1, 1, 0.4)", 1),
        upper("staircase", 1, 1),
    ],
    "two steps of staircase noise": [
        claim("clip(linf, C) | staircase(1, 1, 0.4)", 2, parameters={"C": FROM_ONE}),
        upper("staircase", 1, 2),
    ],
    # 3 becomes 3 − 1e-41, which is no integer: it has no output in common with 0.
    "clipped integers": [
        claim("clamp(-3, 3) | round | clip(linf, 3 - 1e-41) | discrete_laplace(6)", 1),
        upper("discrete-laplace", 3, 1),
    ],
    "clipped copies of integers": [
        claim("clamp(-3, 3) | round | repeat(2) | clip(linf, 3 - 1e-41) | discrete_laplace(12)", 1),
        upper("discrete-laplace", 4, 1),
    ],
    "clamped copies of integers": [
        claim("clamp(-3, 3) | round | repeat(2) | clamp(-3, 3 - 1e-41) | discrete_laplace(12)", 1),
        upper("discrete-laplace", 4, 1),
    ],
    # All of (h, …, h), h = 1.5 + 9e-42, becomes 1.5 + 5e-42 and is rounded to 2; if one coordinate is 1.5 + 1e-42,
    # scaling makes it less than 1.5.
    "scaled past a tie": [
        claim(
            "clamp(1.5 + 1e-42, 1.5 + 9e-42) | clip(l2, sqrt(dim)*(1.5 + 5e-42)) | round | laplace(1)", "0.5", dim=100
        ),
        upper("laplace", 3, "0.5"),
    ],
    # |ln(k/(1 − k))| is 0 at 1/2 only.
    "a category kept half of the time": [
        claim("category(2) | flip(k)", 0, parameters={"k": AROUND_HALF}),
        upper("randomized-response", 1, 0),
    ],
    # Between 0 and H the first bit is always 0, unless H is 1.
    "a bit of a number": [
        claim("rows | clamp(0, H) | binary(1, 0) | flip(0.75)", "0.5", parameters={"H": UP_TO_ONE}),
        upper("randomized-response", 3, "0.5"),
    ],
    # Gaussian noise is not ε-DP for any ε, so nothing holds at the δ = 0 that the claim includes.
    "a delta that may be 0": [
        widely(claim("query(l2, 1) | gaussian(1)", 20), delta=["0", "1e-60"]),
        upper("gaussian", 1, 20, "1e-60"),
    ],
    "an epsilon that may be less": [
        widely(claim("query(l1, 1) | laplace(1)", 1), epsilon=["0." + "9" * 40, "1"]),
        upper("laplace", 1, 1),
    ],
    "a number of steps": [
        claim("query(l1, 1) | laplace(3) | times(T)", 1, parameters={"T": ["3", "3." + "0" * 40 + "1"]}),
        upper("laplace", 1, 1),
    ],
    "a number of copies": [
        claim("clip(l1, 1) | repeat(T) | laplace(6)", 1, parameters={"T": ["2." + "9" * 41, "3"]}),
        upper("laplace", 2, 1),
    ],
}


@pytest.mark.parametrize("kind", FALSE_PROOFS)
def test_a_proof_holds_on_both_sides_of_a_jump(kind):
    with pytest.raises(CertificateError):
        verify(sealed("proven", *FALSE_PROOFS[kind]))


FALSE_REFUTATIONS = {
    # Integers that are less than 1 apart are equal.
    "whole numbers up to a distance": [
        claim("counts(l1, D) | discrete_laplace(1)", "0.5", parameters={"D": UP_TO_ONE}),
        lower("discrete-laplace", 1, "0.9", [block(1, 0)]),
    ],
    "whole numbers up to a distance in l2": [
        claim("counts(l2, D) | discrete_laplace(1)", "0.5", parameters={"D": UP_TO_ONE}),
        lower("discrete-laplace", 1, "0.9", [block(1, 0)]),
    ],
    # 1 is clipped to C: 1/2 is rounded to 0, more to 1.
    "a tie of rounding": [
        claim("clip(linf, C) | round | laplace(1)", "0.5", parameters={"C": FROM_HALF}),
        lower("laplace", 2, "0.9", [block(1, 0)], at=0),
    ],
    "the first bit of a number": [
        claim("clip(linf, C) | binary(1, 0) | flip(0.75)", "0.5", parameters={"C": UP_TO_ONE}),
        lower("randomized-response", 2, "0.9", [block(1, 0)], at=0),
    ],
    "one step of staircase noise more": [
        claim("query(l1, D) | staircase(1, 1, 0.4)", 1, parameters={"D": FROM_ONE}),
        lower("staircase", 1, "1.9", [block(FROM_ONE[1], 0)]),
    ],
    "noise that is whole, on what may be": [
        claim("query(l1, 1) | discrete_laplace(1)", 1),
        lower("discrete-laplace", 1, "inf", [block(1, ["0", "1e-60"])]),
    ],
    # Below the limit of a clamp nothing can be told.
    "a threshold at a limit": [
        claim("query(l1, 1) | laplace(1) | clamp(L, 9)", "0.5", parameters={"L": ["0", "1e-60"]}),
        lower("post-processing", 1, "0.9", [block(1, 0)], thresholds=[exactly(0)]),
    ],
}


@pytest.mark.parametrize("kind", FALSE_REFUTATIONS)
def test_a_refutation_holds_on_both_sides_of_a_jump(kind):
    with pytest.raises(CertificateError):
        verify(sealed("refuted", *FALSE_REFUTATIONS[kind]))


RIGHT = {
    # The same name is the same number, wherever it lies in its enclosure; and decimals are exact.
    "D over D": [
        claim("query(l1, D) | staircase(1, D, 0.4)", 1, parameters={"D": ["0.2" + "9" * 44, "0.3" + "0" * 43 + "1"]}),
        upper("staircase", 1, 1),
    ],
    "2C over 2C": [
        claim("clip(linf, C) | staircase(1, 2*C, 0.4)", 1, parameters={"C": FROM_ONE}),
        upper("staircase", 1, 1),
    ],
    "a quotient of decimals": [claim("query(l1, 0.9/3) | staircase(1, 0.3, 0.4)", 1), upper("staircase", 1, 1)],
    "a root": [claim("query(l1, sqrt(2)/2) | staircase(1, sqrt(2)/2, 0.4)", 1), upper("staircase", 1, 1)],
    "the root of a square": [claim("query(l1, 0.3) | staircase(1, sqrt(0.09), 0.4)", 1), upper("staircase", 1, 1)],
    "a decimal that is given": [
        claim("query(l1, D) | staircase(1, 0.3, 0.4)", 1, parameters={"D": exactly("0.3")}),
        upper("staircase", 1, 1),
    ],
    "ties of rounding": [
        claim("query(l1, D) | round | laplace(1)", 2, parameters={"D": UP_TO_ONE}),
        upper("laplace", 2, 2),
    ],
    "whole numbers": [
        claim("counts(l1, 0.3/0.1) | discrete_laplace(1)", 3),
        upper("discrete-laplace", 1, 3),
        lower("discrete-laplace", 1, "2.999", [block(3, 0)]),
    ],
    "a category kept a third of the time": [
        claim("category(3) | flip(1/3)", 0),
        upper("randomized-response", 1, 0),
    ],
    "a claimed enclosure": [
        widely(claim("query(l1, 1) | laplace(1/eps)", "0.3"), epsilon=["0.2" + "9" * 43, "0.3" + "0" * 42 + "1"]),
        widely(upper("laplace", 1, "0.3"), epsilon=["0.2" + "9" * 43, "0.3" + "0" * 42 + "1"]),
    ],
}


@pytest.mark.parametrize("kind", RIGHT)
def test_what_holds_for_all_numbers_verifies(kind):
    assert verify(sealed("proven", *RIGHT[kind])).verdict == "proven"
