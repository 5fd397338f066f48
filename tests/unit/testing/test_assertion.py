"""assert_dp outside a session, and the arithmetic of budgets."""

import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

import dpassay
from dpassay.testing import assertion as asserting
from dpassay.testing.assertion import AlphaShares, AuditWarning, NotPrivate, assert_dp, merged, two_digits


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asserting, "RUNNING", [])


def noisy(x: float, n: int, rng: Any) -> Any:
    return x + rng.laplace(scale=1, size=n)


def test_a_claim_that_holds_gives_the_verdict_of_the_audit_with_our_defaults() -> None:
    verdict = assert_dp(noisy, [(0.0, 1.0)], epsilon=1)
    assert verdict.word == "open"
    assert (verdict.alpha, verdict.seed, verdict.runs) == (1e-4, 0, 20_000)
    same = dpassay.audit(noisy, [(0.0, 1.0)], epsilon=1, alpha=1e-4, runs=20_000, seed=0, bits=False)
    assert verdict.witness == same.witness


def test_a_claim_that_fails_raises_with_all_that_shows_it() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_dp(noisy, [(0.0, 4.0)], epsilon=1, runs=5_000, seed=3)
    assert isinstance(caught.value, NotPrivate)
    verdict = caught.value.verdict
    lines = str(caught.value).splitlines()
    assert lines[0] == f"the claim of 1-DP for {__name__}.noisy is refuted"
    rows = dict(line.split(maxsplit=1) for line in lines[1:] if line[2] != " ")
    assert list(rows) == ["reason", "first", "gives", "second", "event", "counts", "rates", "alpha", "replay"]
    cells = [line.split() for line in lines if line.startswith(11 * " ") and "→" not in line]
    assert [cells[0][0], *(row[0] for row in cells[1:])] == ["input", "first", "second"]
    assert sum(int(row[-1].replace(",", "")) for row in cells[1:]) == verdict.witness.runs
    assert rows["reason"] == verdict.reason
    witness: Any = verdict.witness
    assert (rows["first"], rows["second"]) == tuple(repr(x) for x in witness.inputs)
    guesses = witness.right + witness.wrong
    assert rows["counts"] == f"{witness.right:,} of {guesses:,} guesses correct in {witness.runs:,} runs"
    assert rows["alpha"].startswith("0.0001,")
    assert rows["replay"] == "call assert_dp again with seed=3, runs=5000 and alpha=0.0001"


def test_a_long_input_is_shortened_and_foreign_randomness_is_noted() -> None:
    with pytest.raises(NotPrivate) as caught:
        assert_dp(lambda x: x, [("a" * 5000, "b" * 5000)], epsilon=1, shrink=False)
    assert all(len(line) < 400 for line in str(caught.value).splitlines())
    assert "a replay draws other outputs" in str(caught.value)


def test_a_claim_out_of_reach_passes_with_a_warning_that_says_what_it_takes() -> None:
    with pytest.warns(AuditWarning, match="cannot fail") as caught:
        assert_dp(noisy, [(0.0, 1.0)], epsilon=10, runs=1000)
    # All of N guesses right must be less likely than alpha: N ln(1 + e^-10) > ln(1/alpha).
    needed = math.ceil(math.log(1e4) / math.log1p(math.exp(-10)))
    number = int(str(caught[0].message).split("it takes at least ")[1].split()[0].replace(",", ""))
    assert needed <= number <= 1.001 * needed + 2
    assert caught[0].filename == __file__


def test_more_candidates_are_within_reach_where_two_are_not() -> None:
    with pytest.warns(AuditWarning):
        assert_dp(noisy, candidates=[0.0, 1.0], epsilon=6, runs=2000)
    assert_dp(noisy, candidates=[0.0, 1.0, 2.0, 3.0], epsilon=6, runs=2000)  # a warning would be an error


def test_bad_input_and_a_mechanism_that_fails_are_errors_not_failures() -> None:
    with pytest.raises(dpassay.InputError, match="epsilon"):
        assert_dp(noisy, [(0.0, 1.0)])
    with pytest.raises(dpassay.InputError, match="whole number"):
        assert_dp(noisy, [(0.0, 1.0)], epsilon=1, runs=-1)
    with pytest.raises(dpassay.InputError, match="unknown option"):
        assert_dp(noisy, [(0.0, 1.0)], epsilon=1, epsilom=1)

    def dying(x: float, n: int, rng: Any) -> Any:
        raise dpassay.MechanismError("it died")

    with pytest.raises(dpassay.MechanismError, match="it died"):
        assert_dp(dying, [(0.0, 1.0)], epsilon=1)


def test_an_interruption_is_not_swallowed() -> None:
    def interrupted(x: float, n: int, rng: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assert_dp(interrupted, [(0.0, 1.0)], epsilon=1)


def test_a_pipeline_and_a_claim_keep_their_own_parameters() -> None:
    assert assert_dp("clip(l1, C) | laplace(2*C/eps)", epsilon=1, dim=2, C=3, runs=2000).word == "open"
    claim = dpassay.Claim("mine", "clip(l1, 1) | laplace(2)", 1, 0, 2)
    assert assert_dp(claim, runs=2000).guarantee == dpassay.PureDP(1)


@pytest.mark.parametrize("alpha", [1e-4, 0.25, 1e-4 / 7, 9.9999e-9, 1.0, 3.3e-05, 5e-324])
def test_two_digits_round_down_and_stay(alpha: float) -> None:
    rounded = two_digits(alpha)
    assert alpha / 1.1 <= rounded <= alpha
    assert two_digits(rounded) == rounded
    assert len(f"{Fraction(repr(rounded)).numerator}".rstrip("0")) <= 2 or rounded >= 0.01


def test_a_tests_calls_never_spend_more_than_its_share() -> None:
    budget = AlphaShares(3.3e-5, 0, 100, "test_a.py::test_b", "")
    spent = [budget.next() for _ in range(1000)]
    assert sum(Fraction(turn["alpha"]) for turn in spent) <= Fraction(3.3e-5)
    for k in (1, 2, 10):
        assert spent[k - 1]["alpha"] == pytest.approx(3.3e-5 * 6 / (math.pi * k) ** 2, rel=0.1)
    assert len({turn["seed"] for turn in spent}) == 1000


def test_streams_depend_on_seed_place_and_call_alone() -> None:
    def first(seed: int, place: str, alpha: float = 1e-4) -> int:
        return int(AlphaShares(alpha, seed, 100, place, "").next()["seed"])

    assert first(0, "test_a.py::test_b") == first(0, "test_a.py::test_b", 1e-7)
    assert len({first(seed, place) for seed in (0, 1) for place in ("a", "b")}) == 4


def test_the_inner_arguments_win() -> None:
    assert merged({"epsilon": 1, "runs": 5}, {"runs": 6}) == {"epsilon": 1, "runs": 6}
    assert merged({"pairs": 1}, {"text": "a"}) == {"text": "a"}
    assert merged({"pairs": 1}, {"delta": 0.1}) == {"pairs": 1, "delta": 0.1}


def test_pytest_is_not_needed_outside_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None\n"
        "from dpassay import assert_dp\n"
        "print(sorted({'numpy', 'scipy', 'pydantic'} & set(sys.modules)))\n"
        "print(assert_dp(lambda x, n, rng: rng.laplace(size=n), [(0, 1)], epsilon=1, runs=500).word)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["[]", "open"]
