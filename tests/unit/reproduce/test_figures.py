"""The documents' figures, made again: numbers against formulas and against what was published."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpassay.compute.kernels.majority_vote import ballots
from dpassay.compute.kernels.philox import key
from dpassay.core.numbers import number
from dpassay.errors import InputError
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Laplace
from dpassay.reproduce import FIGURES, adept, dptext, find_figure, sanity, tables
from dpassay.reproduce.published.acl2022 import DIMENSIONS, EPSILONS, published
from dpassay.reproduce.result import SUFFIXES, Partial, PublishedComparison, ReproductionOptions, finished, save

FEW = ReproductionOptions(runs=500)


class Made(dict):  # type: ignore[type-arg]
    """Every figure's result, made when it is first needed."""

    def __missing__(self, name: str) -> object:
        return self.setdefault(name, FIGURES[name].make(FEW))


@pytest.fixture(scope="module")
def results() -> dict:
    return Made()


# ── Files ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if not figure.long])
def test_every_figure_is_written_whole(results: dict, tmp_path: Path, name: str) -> None:
    result = results[name]
    parameters = {"version": "1", "runs": 500, "seed": 0}
    paths = save(result, name, tmp_path, parameters)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.{suffix}" for suffix in SUFFIXES)
    assert all(path.stat().st_size > 100 for path in paths)
    data = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as opened:
        assert len(list(csv.DictReader(opened))) == len(data["rows"]) == len(result.rows)
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert result.caption in text
    assert result.published in text
    assert "nan" not in text.lower()[: text.lower().index("## published")] or name in ("inverse-cdf", "sampled-laplace")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert finished(name, tmp_path, parameters)
    assert not finished(name, tmp_path, {**parameters, "seed": 1})
    (tmp_path / f"{name}.json").write_text(json.dumps({k: v for k, v in data.items() if k != "found"}))
    assert not finished(name, tmp_path, parameters)  # damaged
    (tmp_path / f"{name}.json").write_text(json.dumps(data))
    assert finished(name, tmp_path, parameters)
    (tmp_path / f"{name}.svg").unlink()
    assert not finished(name, tmp_path, parameters)


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        save(FIGURES["sampled-laplace"].make(FEW), "sampled-laplace", tmp_path / folder, {})
    for suffix in ("csv", "json", "svg", "md"):
        one, two = ((tmp_path / folder / f"sampled-laplace.{suffix}").read_bytes() for folder in ("one", "two"))
        assert one == two, suffix
    other = FIGURES["sampled-laplace"].make(ReproductionOptions(runs=500, seed=1))
    assert [row["count"] for row in other.rows] != [row["count"] for row in FIGURES["sampled-laplace"].make(FEW).rows]


def test_names() -> None:
    with pytest.raises(InputError, match=r"did you mean 'sanity-check'\?"):
        find_figure("sanity-chek")
    with pytest.raises(InputError, match="Known: adept-violations"):
        find_figure("xyzzy")


def test_distances_in_standard_errors() -> None:
    assert PublishedComparison("x", 1.2, 1.0, 0.1).apart == pytest.approx(2)
    assert math.isnan(PublishedComparison("x", 1.2, 1.0).apart)
    assert PublishedComparison("x", math.inf, math.inf).apart == 0


# ── ADePT ───────────────────────────────────────────────────────────────────────────────────────


def test_the_integrated_curve() -> None:
    curve = adept.normal_curve()
    # One difference of N(0, 2): P(|d| > 20) is below 1e-40. Many: the sum is nearly normal with mean 2n/√π.
    assert curve[1][0] < 1e-12
    for n in (18, 25, 40):
        mean, variance = 2 * n / math.sqrt(math.pi), n * (2 - 4 / math.pi)
        assert np.mean(curve[n]) == pytest.approx(stats.norm.sf(20, mean, math.sqrt(variance)), abs=0.02)
        assert curve[n][1] - curve[n][0] < 0.02
    # Two of them: the density of the sum integrates in closed form; here by scipy's quadrature of one fold.
    tail = stats.halfnorm(scale=math.sqrt(2))
    grid = np.linspace(0, 20, 200_001)
    two = tail.sf(20) + np.trapezoid(tail.pdf(grid) * tail.sf(20 - grid), grid)
    assert curve[2][0] <= two + 1e-9
    assert two <= curve[2][1] + 1e-9


def test_pairs_beyond_the_bound() -> None:
    result = FIGURES["adept-violations"].make(ReproductionOptions(runs=4000))
    rows = {(row["dim"], row["distribution"]): row for row in result.rows}
    assert all(row["l1_clipped"] == 0 for row in result.rows)
    assert rows[1, "uniform"]["beyond"] == rows[1, "normal"]["beyond"] == 0
    assert rows[32, "uniform"]["share"] > 0.99  # "almost none of the data points would be protected"
    # Each count against the integrated probability; false alarm below 64 · 1e-9 (the band is exact up to its width).
    for n in range(2, 65):
        row = rows[n, "normal"]
        assert stats.binom.sf(row["beyond"] - 1, 4000, min(1, row["exact_high"] + 1e-12)) > 1e-9, n
        assert stats.binom.cdf(row["beyond"], 4000, max(0, row["exact_low"] - 1e-12)) > 1e-9, n


def test_the_released_simulation(results: dict) -> None:
    # What the released code counts against the integrated probability, and against ours by Fisher's exact test: false
    # alarms below (63 + 128) · 2e-9 in all.
    result = results["adept-violations"]
    assert (adept.released("uniform", 4), adept.released("normal", 16)) == (6023, 2765)
    assert len(result.comparisons) == 128
    for row, compared in zip(result.rows, result.comparisons, strict=True):
        table = [[row["beyond"], 500 - row["beyond"]], [row["released"], 10_000 - row["released"]]]
        assert stats.fisher_exact(table).pvalue > 2e-9, row
        assert compared.published == row["released"] / 10_000
        assert math.isfinite(compared.apart)
        if row["distribution"] == "normal" and row["dim"] > 1:
            assert stats.binom.sf(row["released"] - 1, 10_000, min(1, row["exact_high"] + 1e-12)) > 1e-9
            assert stats.binom.cdf(row["released"], 10_000, max(0, row["exact_low"] - 1e-12)) > 1e-9
    assert f"{max(abs(c.apart) for c in result.comparisons):.2f} standard errors in 128 cells" in result.found[-1]


def test_growth_of_the_sensitivity(results: dict) -> None:
    for row in results["adept-sensitivity"].rows:
        assert row["true"] == pytest.approx(2 * math.sqrt(row["dim"]), rel=1e-12)


# ── DPText ──────────────────────────────────────────────────────────────────────────────────────


def test_inverses() -> None:
    u = np.array([0.01, 0.3, 0.5, 0.75, 0.99])
    assert dptext.right_inverse(u) == pytest.approx(stats.laplace.ppf(u), abs=1e-12)
    assert np.isnan(dptext.wrong_inverse(np.array([0.5001, 0.7, 0.99]))).all()
    assert (dptext.wrong_inverse(np.array([0.01, 0.2, 0.499])) > 0).all()


# docs/proofs/inverse-cdf.md: both forms of the inverse are Laplace's quantiles; DPText's formula gives those of the
# exponential distribution, at 2v below 1/2, and its real part the same again, decreasing, above.
def test_the_curves_of_figure_1(results: dict) -> None:
    rows = [row for row in results["inverse-cdf"].rows if abs(row["u"] - 0.5) > 1e-9]
    u = np.array([row["u"] for row in rows])
    curve = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for name in ("right", "by_cases", "shifted"):
        assert curve[name] == pytest.approx(stats.laplace.ppf(u), abs=1e-12), name
    assert curve["v"] == pytest.approx(u - 0.5, abs=1e-15)
    below = u < 0.5
    assert curve["wrong"][below] == pytest.approx(stats.expon.ppf(2 * u[below]), abs=1e-12)
    assert np.isnan(curve["wrong"][~below]).all()
    assert curve["wrong_real_part"][~below] == pytest.approx(stats.expon.isf(2 * u[~below] - 1), abs=1e-12)
    assert (np.diff(curve["wrong_real_part"][~below]) < 0).all()
    # Python's own complex logarithm has this real part.
    assert -np.log(1 - 2 * (0.8 + 0j)).real == pytest.approx(float(dptext.real_part(np.array(0.8))))


def test_what_each_reading_draws() -> None:
    rng = np.random.default_rng(0)
    for reading in dptext.READINGS:
        noise = dptext.draws(reading, 20_000, rng)
        negative = 0.5 if reading in ("laplace", "shifted") else 0.0
        missing = 0.5 if reading == "kept" else 0.0
        zero = 0.5 if reading == "zero" else 0.0
        for share, truth in ((noise < 0, negative), (np.isnan(noise), missing), (noise == 0, zero)):
            # six deviations of 20,000 coins: false alarm below 1e-8 each
            assert abs(share.mean() - truth) <= 6 * math.sqrt(truth * (1 - truth) / 20_000), reading


# ── The sanity check ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("n", "loss"), [(1, 0.83180), (2, 0.89967), (8, 0.36552), (32, 0.16151), (64, 0.10989), (128, 0.07557)]
)
def test_the_exact_vote_of_facts(n: int, loss: float) -> None:
    assert sanity.exact_loss("laplace", 1.0, n) == pytest.approx(loss, abs=5.5e-6)


def test_the_exact_vote_elsewhere() -> None:
    assert sanity.exact_loss("adept", 1.0, 128) == pytest.approx(13.7432, abs=5e-5)
    assert sanity.exact_loss("copy", 1.0, 8) == math.inf
    assert sanity.exact_loss("dptext", 1.0, 8) == math.inf
    assert sanity.exact_loss("coin flip", 1.0, 8) == 0
    for epsilon in (0.1, 2.0, 10.0):  # halving is post-processing, and at n = 1 the vote then sees all of ε
        assert sanity.exact_loss("halved", epsilon, 1) == pytest.approx(epsilon, rel=1e-12)
    # By scipy's binomial distribution: p = 1 − e^(−1/2b)/2 of the coordinates keep their side; a tie counts as zeros.
    p = 1 - math.exp(-0.5 / 4) / 2
    right, wrong = stats.binom.sf(4, 8, p), stats.binom.sf(4, 8, 1 - p)
    assert sanity.exact_loss("laplace", 2.0, 8) == pytest.approx(math.log(right / wrong), rel=1e-9)


@pytest.mark.parametrize("mechanism", ["laplace", "adept", "halved"])
def test_the_published_numbers_agree_with_the_exact_ones(mechanism: str) -> None:
    checked = 0
    for epsilon in EPSILONS:
        for n in DIMENSIONS:
            there, exact = published(mechanism, epsilon, n), sanity.exact_loss(mechanism, float(epsilon), n)
            kept = 10**7 if n <= 16 else 10**6  # of more than 16 dimensions one batch of ten was kept
            error = sanity.standard_error(mechanism, float(epsilon), n, kept)
            if math.isinf(there):
                assert exact > math.log(kept) - 3  # no mistake was seen: too rare for so many runs
            elif error < 0.2:  # where the estimate is nearly normal
                assert abs(there - exact) < 5 * error, (epsilon, n)
                checked += 1
    assert checked > 25


@pytest.mark.parametrize("counts", [{"0": [1]}, {"0": [65, 0]}, {"0": "x"}, {"0": [1.5, 2]}, [], {"0": [-1, 2]}])
def test_a_damaged_part_is_made_anew(tmp_path: Path, counts: object) -> None:
    path = tmp_path / "x.json"
    made = {"figure": "f", "runs": 64}
    Partial(path, made).keep("0", [1, 2])
    assert Partial(path, made).found == {"0": [1, 2]}
    assert Partial(path, {**made, "runs": 65}).found == {}
    path.write_text(json.dumps({**json.loads(path.read_text()), "counts": counts}))
    assert Partial(path, made).found == {}


def test_every_cell_and_input_has_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "dpassay.compute.kernels.majority_vote.key", lambda *place: asked.append(key(*place)) or asked[-1]
    )
    sanity.sampled_votes([("laplace", 1.0, 8), ("laplace", 1.0, 8), ("adept", 0.5, 4)], ReproductionOptions(100))
    assert len(set(asked)) == len(asked) == 6


def test_a_grid_goes_on_at_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [("laplace", 1.0, 8), ("adept", 0.5, 4), ("halved", 2.0, 2)]
    whole = sanity.sampled_votes(cells, ReproductionOptions(500))
    options = ReproductionOptions(500, partial=tmp_path / "part.json")
    sanity.sampled_votes(cells[:2], options)
    asked = []
    monkeypatch.setattr(sanity, "ballots", lambda *a: asked.append(a[0]) or ballots(*a))
    assert sanity.sampled_votes(cells, options) == whole
    assert set(asked) == {2}


def test_sampled_votes_against_the_exact_probabilities() -> None:
    cells = [("laplace", 1.0, 8), ("adept", 0.5, 32), ("dptext", 1.0, 2), ("halved", 2.0, 8), ("copy", 1.0, 2)]
    cells.append(("clipped", 1.0, 32))
    sampled = sanity.sampled_votes(cells, ReproductionOptions(20_000))
    for votes, (mechanism, epsilon, n) in zip(sampled, cells, strict=True):
        for ones, p in zip(votes, sanity.one_rounds(mechanism, epsilon, n), strict=True):
            truth = stats.binom.sf(n // 2, n, p)
            # false alarm below 1e-9 each, exactly
            assert stats.binom.cdf(ones, 20_000, truth) > 5e-10, mechanism
            assert stats.binom.sf(ones - 1, 20_000, truth) > 5e-10, mechanism


def test_the_five_findings(results: dict) -> None:
    found = results["sanity-check"].found
    assert len(found) == 5
    for sentence, words in zip(
        found,
        (["13.7432"], ["128", "11.31", "0.8465"], ["11.3", "1.0", "1.1"], ["0.0756"], ["post-processing"]),
        strict=True,
    ):
        for word in words:
            assert word in sentence, sentence


def test_the_most_telling_outputs() -> None:
    # One coordinate of Laplace noise: beyond the first value the loss is 1, and that is half of all outputs.
    loss = PrivacyLoss.of_shifts(Laplace(1), [(number(1), 1)])
    assert sanity._most_telling(loss) == pytest.approx(1, abs=1e-3)
    # 128 of scale 128 are nearly normal: mean μ²/2 and deviation μ = √128/128 · √(1 + …); by simulation of the tail.
    noise = np.random.default_rng(0).laplace(scale=128, size=(200_000, 128))
    losses = ((np.abs(noise - 1) - np.abs(noise)) / 128).sum(axis=1)
    cut = np.quantile(losses, 1 - 1e-3)
    telling = -math.log(np.mean(np.exp(-losses[losses > cut])))
    assert (
        sanity._most_telling(PrivacyLoss.of_shifts(Laplace(128), [(number(1), 128)])) > telling
    )  # rarer outputs tell more


def test_the_losses_of_votes() -> None:
    assert sanity.votes_loss(30, 70, 100) == pytest.approx(math.log(7 / 3))
    assert sanity.votes_loss(0, 70, 100) == math.inf
    assert sanity.votes_loss(0, 0, 100) == 0
    assert sanity.votes_loss(20, 90, 100) == pytest.approx(math.log(8))


# ── Budgets, bits, the lecture ──────────────────────────────────────────────────────────────────


def test_dpnr_budgets(results: dict) -> None:
    for row in results["dpnr-budgets"].rows:
        k_eps, mu = row["dim"] * row["epsilon"], row["mu"]
        true = k_eps + math.log((1 - mu) + mu * math.exp(-k_eps))
        assert row["true"] == pytest.approx(row["steps"] * true, rel=1e-9)
        claimed = math.log((1 - mu) * math.exp(row["epsilon"]) + mu)
        assert row["claimed"] == pytest.approx(claimed, rel=1e-9)


def test_binary_encoding(results: dict) -> None:
    rows = results["binary-encoding"].rows
    assert sum(row["weighted"] for row in rows[:10]) * 768 == pytest.approx(4.796875)
    assert sum(row["ome"] for row in rows[:10]) * 768 == pytest.approx(53_013.36, abs=0.01)
    assert rows[-1]["true"] == pytest.approx(53_013.36, abs=0.01)
    assert rows[10]["true"] < 1


def test_the_lecture(results: dict) -> None:
    for row in results["likelihood-ratio"].rows:
        # ln of the ratio of two Laplace densities: (|t - 1| - |t|)/b, at most 1/b
        assert row["loss"] == pytest.approx((abs(row["output"] - 1) - abs(row["output"])) / row["scale"], abs=1e-12)
        assert row["first"] == pytest.approx(stats.laplace.pdf(row["output"], scale=row["scale"]))
    assert len({row["scale"] for row in results["likelihood-ratio"].rows}) == 4
    for row in results["loss-variable"].rows[:51]:
        e = row["epsilon"]
        # Laplace: P(L > ε) = 1 − e^((ε−1)/2)/2 and δ = 1 − e^((ε−1)/2) below 1; Gaussian: L is N(1/2, 1).
        half = math.exp((e - 1) / 2)
        if e < 0.999:
            assert row["laplace_tail"] == pytest.approx(1 - half / 2, abs=1e-4)
            assert row["laplace_delta"] == pytest.approx(1 - half, abs=1e-9)
        assert row["gaussian_tail"] == pytest.approx(stats.norm.sf(e - 0.5), abs=1e-9)
        exact = stats.norm.cdf(0.5 - e) - math.exp(e) * stats.norm.cdf(-0.5 - e)
        assert row["gaussian_delta"] == pytest.approx(exact, abs=1e-9)
        assert row["gaussian_delta"] <= row["gaussian_tail"]
    # The law of the loss: a density and two atoms of total mass 1 and of mean 1/e, the divergence of the two counts.
    law = results["loss-variable"].rows[51:]
    inside = [row for row in law if abs(row["loss"]) <= 1]
    losses = np.array([row["loss"] for row in inside])
    density = np.exp((losses - 1) / 2) / 4
    assert [row["laplace_density"] for row in inside[1:-1]] == pytest.approx(density[1:-1].tolist())
    atoms = {row["loss"]: row["laplace_atom"] for row in law if row["laplace_atom"]}
    assert atoms == {1.0: 0.5, -1.0: pytest.approx(math.exp(-1) / 2)}
    assert np.trapezoid(density, losses) + sum(atoms.values()) == pytest.approx(1, abs=1e-4)
    mean = np.trapezoid(density * losses, losses) + sum(loss * mass for loss, mass in atoms.items())
    assert mean == pytest.approx(math.exp(-1), abs=1e-4)
    for row in law:
        assert row["gaussian_density"] == pytest.approx(stats.norm.pdf(row["loss"], 0.5))
    gaussian = {round(row["epsilon"], 6): row for row in results["gaussian"].rows}
    assert gaussian[10.0]["classic"] == pytest.approx(0.48448, abs=5e-6)
    assert gaussian[10.0]["exact"] == pytest.approx(0.49989, abs=5e-6)
    for row in results["delta-extremes"].rows:
        assert row["somebody"] == pytest.approx(1 - (1 - row["delta"]) ** row["people"], rel=1e-6, abs=1e-9)
    for row in results["bayes"].rows:
        if 0 < row["prior"] < 1:
            odds = row["prior"] / (1 - row["prior"]) * math.exp(row["epsilon"])
            assert row["most"] == pytest.approx(odds / (1 + odds), rel=1e-12)


# ── The lecture's tables ────────────────────────────────────────────────────────────────────────


def test_the_tables_of_the_lecture(results: dict) -> None:
    rows = [tuple(row.values()) for row in results["lecture-tables"].rows]
    database = [
        ("Alice", 2024, 32, "yes"),
        ("Bob", 2020, 21, "no"),
        ("Charlie", 2023, 45, "no"),
        ("Xander", 2020, 31, "yes"),
    ]
    for table in (1, 3, 4):
        assert [row[1:] for row in rows if row[0] == table] == database
    assert {row[1:] for row in rows if row[0] == 5} <= set(database)
    assert any(row[0] == 5 for row in rows)
    assert any(row[0] == 2 for row in rows)


@pytest.mark.parametrize("delta", [0.1, 1e-6, 0.5])
@pytest.mark.parametrize("people", [1, 2, 6])
def test_rows_that_leak_are_as_likely_as_delta(people: int, delta: float) -> None:
    # With and without a person, the outputs that contain her are all that differ: their probability is δ.
    assert tables.subset_delta(people, delta) == pytest.approx(delta, rel=1e-9)


def test_both_algorithms_leak_as_often_as_the_lecture_says() -> None:
    rng = np.random.default_rng(0)
    runs, delta = 4000, 0.3
    whole = sum(tables.everything(tables.PEOPLE, delta, rng) == tables.PEOPLE for _ in range(runs))
    somebody = sum(bool(tables.some_rows(tables.PEOPLE, delta, rng)) for _ in range(runs))
    # false alarm below 1e-9 each, exactly; a random table is never the database but for 1e-20
    for count, truth in ((whole, delta), (somebody, 1 - (1 - delta) ** 4)):
        assert stats.binom.cdf(count, runs, truth) > 5e-10
        assert stats.binom.sf(count - 1, runs, truth) > 5e-10
