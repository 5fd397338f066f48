"""The one sentence: true, plain, and never at odds with the verdict."""

import re

import pytest

from dpassay.api import check
from dpassay.claims.registry import REGISTRY
from dpassay.core.guarantee import GDP, ZCDP, Guarantee, PureDP, RenyiDP
from published import published_verdict

CASES = [
    ("clip(l2, 1) | laplace(2)", 32, {"epsilon": 1}, ["l1", "11.31", "5.65685", "5.657 times", "claimed 1"]),
    ("query(l2, 1) | laplace(0.5)", 4, {"epsilon": 1}, ["neighbors' answers", "2 apart in l1"]),
    (
        "query(l2, 1) | gaussian(0.48448)",
        1,
        {"epsilon": 10, "delta": "1e-5"},
        ["1 apart in l2", "2265", "claimed 1e-05"],
    ),
    ("encode | laplace(1)", 8, {"epsilon": 1}, ["Nothing bounds", "infinite"]),
    ("encode", 8, {"epsilon": 1}, ["Nothing is random", "infinite"]),
    ("binary(1, 1) | flip(0.9)", 4, {"epsilon": 1}, ["12 bits"]),
    ("category(3) | flip(0.9)", None, {"epsilon": 1}, ["category"]),
    ("query(linf, 2) | exponential(1)", 4, {"epsilon": 1}, ["scores", "differ by 2"]),
    ("clip(l2, 1) | onesided(1)", 4, {"epsilon": 1}, ["never negative", "infinite"]),
    ("dropout(0.5) | encode | minmax | laplace(1)", 8, {"epsilon": 1}, ["dropout"]),
    ("clip(l1, 1) | laplace(1) | laplace(0.5)", 8, {"epsilon": 1}, ["Even the largest noise", "at least 2"]),
    ("clip(l2, 5) | clamp(-1, 1) | laplace(1)", 64, {"epsilon": 1}, ["can be 79.9999, and at most 128, apart"]),
    ("rows | binary(2, 2) | flip(0.9)", 4, {"epsilon": 1}, ["5 of the 20 bits can differ between two neighbors"]),
    ("rows | binary(2, 2) | flip(0.9)", 1, {"epsilon": 1}, ["All of the 5 bits can differ between two neighbors"]),
    ("clip(l2, 5) | binary(1, 1) | flip(0.9)", 4, {"epsilon": 1}, ["at most 12, of the 12 bits"]),
    ("clip(l2, 1) | laplace(2)", 4, {"epsilon": "1.9999999"}, ["at least 2,", "the claimed 1.9999999."]),
    ("clip(l2, 1) | laplace(2)", 4, {"epsilon": "2.00000000004"}, ["2.00000000004-DP holds", "at most 2."]),
    ("query(l1, 1) | laplace(1/eps)", 4, {"epsilon": "1.00000000004"}, ["1.00000000004-DP", "most 1.00000000004."]),
    ("query(l1, 1.00000000004) | laplace(1)", 4, {"epsilon": 1}, ["at least 1.0000000000", "claimed 1."]),
    ("category(2) | flip(0.51)", None, {"epsilon": 0}, ["not 0"]),
    ("query(l1, 1) | laplace(1)", 1, {"epsilon": "1e-310"}, ["more than 1e308 times the claimed 1e-310"]),
    ("query(l1, 1) | laplace(1)", 1, {"epsilon": "1e-330"}, ["at least 1, not 1.0e-330"]),
    (
        "query(l1, 1.0000000000000000000000000000001) | staircase(1, 1, 0.4)",
        1,
        {"epsilon": 1},
        ["is 1 for every 1, or part of it,", "1.0000000000000000000000000000001 apart in l1", "at least 2"],
    ),
    ("query(l1, 1) | staircase(2, 1, 0.4)", 1, {"epsilon": 1, "delta": "1e-6"}, ["is 2 for every 1", "1 apart"]),
    ("query(l1, 1) | truncated_laplace(1, 3)", 1, {"epsilon": 1}, ["possible for one input and impossible for"]),
    ("clip(l1, 1) | laplace(2)", 4, {"epsilon": 1}, ["1-DP holds", "at most 1."]),
    ("clip(l1, 1) | laplace(20)", 4, {"epsilon": "0.1"}, ["0.1-DP holds", "at most 0.1."]),
    ("query(l1, 1) | laplace(1)", None, {"epsilon": "0.5", "delta": "0.3"}, ["holds", "0.2212"]),
    (
        "clip(l2, 1) | laplace(2) | times(4)",
        4,
        {"epsilon": "6.5", "delta": "1e-3"},
        ["proves nothing", "so does the claimed"],
    ),
]


@pytest.mark.parametrize(("text", "dim", "claim", "words"), CASES)
def test_says_why(text: str, dim: int | None, claim: dict[str, object], words: list[str]) -> None:
    reason = check(text, dim=dim, **claim).reason
    for word in words:
        assert word in reason.replace("2.2654e-05", "0.000022654"), reason


FULL_SUPPORT = [  # every output is possible for every input
    "query(l1, 3) | staircase(1, 1, 0.4)",
    "clip(l2, 1) | staircase(1, 1, 0.4)",
    "query(l1, 3) | laplace(1)",
    "query(l2, 3) | gaussian(1)",
    "clip(l2, 3) | radial(l2, 1)",
    "counts(l1, 3) | discrete_laplace(1)",
    "counts(l1, 3) | discrete_gaussian(1)",
    "query(l1, 3) | round | discrete_laplace(1)",
    "query(l1, 3) | bounded_laplace(1, 0, 5)",
]


@pytest.mark.parametrize("text", FULL_SUPPORT)
def test_nothing_is_called_impossible_that_is_possible(text: str) -> None:
    verdict = check(text, dim=2, epsilon="0.1")
    assert verdict.word == "refuted"
    assert "impossible" not in verdict.reason
    assert "no output in common" not in verdict.reason


@pytest.mark.parametrize(("text", "dim", "claim", "_"), CASES)
def test_is_one_plain_sentence(text: str, dim: int | None, claim: dict[str, object], _: object) -> None:
    reason = check(text, dim=dim, **claim).reason
    assert reason[0].isupper() or reason[0].isdigit() or reason[0] == "("
    assert reason.endswith(".")
    assert "\n" not in reason
    assert not re.search(r"\. [A-Z]", reason)
    assert "mpi(" not in reason
    assert "nan" not in reason.lower()
    assert "inf times" not in reason


@pytest.mark.parametrize("epsilon", ["0.1", "0.2", "0.3", "0.7", "1.1", "38.4", "0.123456789"])
def test_a_tie_is_not_told_as_more_than_the_claim(epsilon: str) -> None:
    reason = check("query(l1, 1) | laplace(1/eps)", epsilon=epsilon).reason
    stated = float(re.search(r"at most ([0-9.e+-]*[0-9])", reason)[1])
    assert stated <= float(epsilon)


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "1", "9.99"])
def test_a_refuted_claim_is_told_less_than_the_truth(epsilon: str) -> None:
    verdict = check("query(l1, 1) | laplace(0.1)", epsilon=epsilon)
    stated = float(re.search(r"at least ([0-9.e+-]*[0-9])", verdict.reason)[1])
    assert float(epsilon) < stated <= 10


def test_dropout_without_noise_is_random() -> None:
    # A word is dropped with probability ½: the output gives it away only if it is not.
    assert "Nothing is random" not in check("dropout(0.5) | encode", epsilon=1, dim=2).reason


@pytest.mark.parametrize("claim", REGISTRY.values(), ids=lambda c: c.name)
def test_of_every_published_claim(claim: object) -> None:
    reason = published_verdict(claim.name).reason
    assert reason.endswith(".")
    assert len(reason) < 250


def test_what_an_outer_bound_allows_is_not_told_as_reached() -> None:
    # 64·5/8 is the most that one vector of the ball has, clamped or not, and its opposite the farthest.
    reason = check("clip(l2, 5) | clamp(-1, 1) | laplace(1)", epsilon=1, dim=64).reason
    stated, most = (float(x) for x in re.search(r"can be ([0-9.]+), and at most ([0-9.]+),", reason).groups())
    assert stated <= 80 <= most
    # A region whose farthest pair is reached has no second number.
    assert "at most" not in check("clip(l2, 5) | laplace(1)", epsilon=1, dim=64).reason
    assert "at most" not in check("normalise | gaussian(1)", epsilon=1, delta="1e-9", dim=64).reason


def test_a_huge_factor_is_written_in_a_few_digits():
    verdict = check("query(l1, 1e20) | laplace(1e-20)", epsilon=1, dim=1)
    assert "1e+40 times the claimed 1" in verdict.reason


@pytest.mark.parametrize(
    ("noise", "guarantee"),
    [
        ("gaussian", GDP("1e-300")),
        ("gaussian", ZCDP("1e-300")),
        ("laplace", RenyiDP(2, "1e-300")),
        ("laplace", PureDP("1e-320")),
        ("laplace", ZCDP("1e-310")),
    ],
)
def test_a_factor_beyond_doubles_is_not_infinite(noise: str, guarantee: Guarantee) -> None:
    reason = check(f"query(l2, 1) | {noise}(1e-300)", dim=1, guarantee=guarantee).reason
    assert "inf times" not in reason
    assert "more than 1e308 times" in reason
