"""User-entity training: the example of docs/proofs/uedp.md enumerated, and the budgets against another accountant."""

import itertools
import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp.rdp_privacy_accountant import _compute_rdp_poisson_subsampled_gaussian as renyi
from scipy.stats import norm

from dpassay import check
from dpassay.claims.registry import REGISTRY
from dpassay.reproduce import uedp
from dpassay.reproduce.result import FigureResult, ReproductionOptions

BETA, Q_E = 0.1, 0.5


@pytest.fixture(scope="module")
def made() -> FigureResult:
    return uedp.uedp_budgets(ReproductionOptions())


def rows(result: FigureResult, level: str) -> dict:
    return {row["rounds"]: row for row in result.rows if row["level"] == level}


# ── The example: one round, all draws ───────────────────────────────────────────────────────────


def sums(users: dict[str, list], drawn: int, entities: list[str], always: bool) -> dict[float, float]:
    """The distribution of the sum of clipped changes. A sentence is (its entities, the number it adds to a change)."""
    found: dict[float, float] = {}
    chosen = list(itertools.combinations(users, drawn))
    for taken in itertools.product([True, False], repeat=len(entities)):
        names = {name for name, take in zip(entities, taken, strict=True) if take}
        chance = math.prod(Q_E if take else 1 - Q_E for take in taken) / len(chosen)
        for some in chosen:
            total = 0.0
            for user in some:
                used = [add for has, add in users[user] if has & names or (always and not has)]
                total += max(-BETA, min(BETA, sum(used)))
            key = round(total, 9)
            found[key] = found.get(key, 0.0) + chance
    return found


@pytest.mark.parametrize(("others", "rate"), [([], 0.5), (["oslo"], 0.75), (["oslo", "bonn", "bern"], 0.9375)])
def test_an_entity_in_everybodys_sentences(others: list[str], rate: float) -> None:
    named, plain = ({"rome", *others}, 2 * BETA), (set(), -BETA)
    with_rome = sums({f"u{i}": [named, plain] for i in range(5)}, 3, ["rome", *others], True)
    without = sums({f"u{i}": [plain] for i in range(4)}, 3, others, True)
    assert without == pytest.approx({-0.3: 1})
    assert with_rome == pytest.approx({0.3: rate, -0.3: 1 - rate})  # 2·m·β apart, where (m + 1)·β = 0.4 is assumed


def test_many_names_in_a_sentence_make_the_first_estimator_the_same() -> None:
    names = [f"n{i}" for i in range(8)]
    named, plain = ({"rome", *names}, 2 * BETA), (set(names), -BETA)
    with_rome = sums({f"u{i}": [named, plain] for i in range(3)}, 2, ["rome", *names], False)
    without = sums({f"u{i}": [plain] for i in range(2)}, 2, names, False)
    assert with_rome[0.2] == pytest.approx(1 - 0.5**9)  # in all rounds but those in which no name at all is drawn
    assert without[-0.2] == pytest.approx(1 - 0.5**8)


def test_one_round_shows_more_than_is_claimed() -> None:
    # At ε = 0 δ is the total variation: the rate times that of two normal distributions.
    claimed = 0.025 * (2 * norm.cdf(1 / 4) - 1)
    true = check("query(l2, 10) | gaussian(10.2)", epsilon=0, delta=str(claimed)).delta
    assert claimed == pytest.approx(0.00493532, abs=5e-9)
    assert true.lower == pytest.approx(2 * norm.cdf(100 / 102 / 2) - 1, rel=1e-7)
    assert true.lower == pytest.approx(0.376005, abs=5e-7)


# ── Budgets ─────────────────────────────────────────────────────────────────────────────────────


def epsilon(rate: float, noise: float, rounds: int, interval: float) -> float:
    """By dp-accounting, from above."""
    loss = pld.from_gaussian_mechanism(noise, sampling_prob=rate, value_discretization_interval=interval)
    return loss.self_compose(rounds).get_epsilon_for_delta(1e-5)


@pytest.mark.parametrize(("rate", "rounds"), [(0.05, 1000), (0.025, 10), (0.5, 100)])
def test_the_moments_accountant(rate: float, rounds: int) -> None:
    orders = [float(k) for k in range(2, 65)]
    moments = renyi(rate, 2.0, orders)
    least = min(rounds * r + math.log(1e5) / (a - 1) for r, a in zip(moments, orders, strict=True))
    assert uedp.moments_epsilon(rate, 2, rounds, 1e-5) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("rounds", [10, 100])
def test_the_true_budgets_against_another_accountant(made: FigureResult, rounds: int) -> None:
    users, entities = rows(made, "user")[rounds], rows(made, "f_E")[rounds]
    alone = epsilon(0.5, 2 * 51 / 100, rounds, 1e-3)
    assert entities["alone_lower"] <= alone <= entities["alone_upper"] * (1 + 1e-4)
    user = epsilon(0.05, 2, rounds, 1e-4)
    assert users["true_lower"] <= user <= users["true_upper"] * (1 + 1e-4)


def test_a_right_mechanism_against_another_accountant() -> None:
    assert epsilon(0.525, 31, 1000, 5e-5) == pytest.approx(2.15451, abs=5e-6)
    assert check(REGISTRY["uedp-cells"]).word == "proven"
    assert check(REGISTRY["uedp-cells"](epsilon="2.15")).word == "refuted"


@pytest.mark.parametrize("rounds", uedp.ROUNDS)
def test_the_whole_truth_is_that_of_one_gaussian(made: FigureResult, rounds: int) -> None:
    mu = math.sqrt(rounds) * 100 / 102
    for level in ("f_E", "f_E+"):
        row = rows(made, level)[rounds]
        tail = norm.logcdf(mu / 2 - row["true_upper"] / mu)
        other = row["true_upper"] + norm.logcdf(-mu / 2 - row["true_upper"] / mu)
        assert math.exp(tail) - math.exp(other) == pytest.approx(1e-5, rel=1e-6)
        assert row["claimed"] < row["alone_lower"] < row["true_lower"] <= row["true_upper"]
    user = rows(made, "user")[rounds]
    assert user["true_upper"] < user["claimed"]


def test_the_published_rounds_are_those_of_whole_and_half_budgets(made: FigureResult) -> None:
    assert len(made.comparisons) == 34
    for comparison in made.comparisons:
        within = 0.04 if comparison.what.startswith("misc") else 0.006
        assert comparison.ours == pytest.approx(comparison.published, rel=within), comparison.what
