"""Claims: what they promise of which mechanism, and how parameters change."""

import pytest

from dpassay.claims.claim import Claim
from dpassay.core.guarantee import ApproxDP, PureDP
from dpassay.errors import ExpressionError, InputError

ADEPT = Claim("adept", "clip(l2, C) | laplace(2*C/eps)", epsilon="0.5", dim=8, parameters={"C": 3})


def test_guarantee_and_mechanism() -> None:
    assert isinstance(ADEPT.guarantee, PureDP)
    assert str(ADEPT.mechanism) == "clip(l2, 3) | laplace(12)"
    assert ADEPT.mechanism.dim == 8
    approximate = Claim("g", "query(l2, 1) | gaussian(ln(1/delta)/eps)", epsilon=1, delta="0.5")
    assert isinstance(approximate.guarantee, ApproxDP)
    assert str(approximate.mechanism).startswith("query(l2, 1) | gaussian(0.69314718")


def test_calling_changes_parameters_and_leaves_the_claim() -> None:
    other = ADEPT(epsilon=2, C=1, dim=4)
    assert str(other.mechanism) == "clip(l2, 1) | laplace(1)"
    assert (other.dim, other.guarantee.epsilon) == (4, 2)
    assert str(ADEPT.mechanism) == "clip(l2, 3) | laplace(12)"
    assert other.name == ADEPT.name
    assert ADEPT(delta="1e-5").guarantee.delta == 1e-5
    assert ADEPT() == ADEPT


@pytest.mark.parametrize("name", ["D", "name", "pipeline", "self", "changes"])
def test_unknown_parameters_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"no parameter {name}.*epsilon, delta, dim, C"):
        ADEPT(**{name: 1})


def test_what_is_claimed_is_no_parameter() -> None:
    with pytest.raises(InputError, match="eps is not a parameter: pass it as epsilon=VALUE"):
        ADEPT(eps=1)


def test_what_is_wrong_is_said_when_it_is_used() -> None:
    with pytest.raises(ExpressionError, match="unknown stage"):
        _ = Claim("x", "clop(1)", epsilon=1).mechanism
    with pytest.raises(InputError, match="epsilon"):
        _ = Claim("x", "query(l1, 1) | laplace(1)", epsilon=-1).guarantee
    with pytest.raises(AttributeError):
        ADEPT.epsilon = 3  # type: ignore[misc]
