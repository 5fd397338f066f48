"""The gallery of published claims: each verdict is the expected one, and the values are those of FACTS."""

import math

import pytest

import dpassay
from dpassay.checking import check
from dpassay.claims import REGISTRY, find
from dpassay.errors import InputError

# What FACTS says: word, true ε at the claimed δ.
FACTS = {
    "laplace": ("proven", 1.0),
    "randomized-response": ("proven", 1.0),
    "exponential": ("proven", 1.0),
    "copy": ("refuted", math.inf),
    "coin-flip": ("proven", 0.0),
    "adept": ("refuted", math.sqrt(32)),
    "adept-l1": ("proven", 1.0),
    "adept-sqrt-n": ("proven", 1.0),
    "dpnr": ("refuted", 38.4),
    "dpnr-corrected": ("proven", 38.4),
    "binary-symmetric": ("proven", 1.0),
    "ome": ("refuted", 53013.36),
    "latent-moue": ("proven", 7680 * math.log((1 + 100 * math.exp(1 / 7680)) / 101)),
    "gaussian": ("proven", None),
    "gaussian-large-eps": ("refuted", None),
}


@pytest.mark.parametrize("name", REGISTRY)
def test_every_claim_is_as_expected(name: str) -> None:
    claim = REGISTRY[name]
    verdict = check(claim)
    assert verdict.word == claim.expected
    word, epsilon = FACTS.get(name, (claim.expected, None))
    assert verdict.word == word
    if epsilon is not None:
        assert verdict.epsilon.lower == pytest.approx(epsilon, rel=1e-7)
        assert verdict.epsilon.upper == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("claim", REGISTRY.values(), ids=lambda c: c.name)
def test_every_claim_is_told_in_full(claim: dpassay.Claim) -> None:
    assert claim.expected in ("proven", "refuted", "open")
    assert claim.source
    assert claim.why.endswith(".")
    assert claim.title
    assert claim.name == claim.name.lower()
    assert " " not in claim.name


def test_the_package_is_the_registry() -> None:
    assert dpassay.claims["adept"] is REGISTRY["adept"]
    assert list(dpassay.claims) == list(REGISTRY)
    assert len(dpassay.claims) == len(REGISTRY)
    assert set(FACTS) <= set(REGISTRY)


def test_unknown_names() -> None:
    with pytest.raises(InputError, match=r"unknown claim 'adpet'; did you mean adept\?"):
        find("adpet")
    with pytest.raises(InputError, match=r"unknown claim 'xyzzy'[;.:,] ?[Kk]nown: .*adept"):
        find("xyzzy")


@pytest.mark.parametrize("n", [2, 32, 1024])
def test_adept_in_other_dimensions(n: int) -> None:
    assert check(find("adept"), dim=n).epsilon.lower == pytest.approx(math.sqrt(n), rel=1e-12)


def test_other_parameters_of_the_binary_encodings() -> None:
    assert check(find("ome"), L=1).word == "proven"
    # LATENT's UER is OME with α for λ.
    assert check(find("ome"), L=10, dim=10).word == "refuted"
    assert check(find("latent-moue"), a=3, dim=10, epsilon=5).word == "proven"
