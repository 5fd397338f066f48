"""The sanity check of a given mechanism: counts against binomial tails, bounds against true losses, refusals."""

import csv
import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpassay.cli import main as cli
from dpassay.errors import InputError, MechanismError
from dpassay.reproduce import sanity, vote
from dpassay.reproduce.published.acl2022 import published
from dpassay.reproduce.result import ReproductionOptions
from dpassay.reproduce.sanity import one_rounds
from dpassay.reproduce.vote import Subject, VoteGrid, Votes

CODE = """
import numpy as np

def laplace(x, epsilon, rng):
    return x + rng.laplace(scale=len(x) / epsilon, size=len(x))

def too_little(x, eps):
    print("noise")
    return x + np.random.default_rng().laplace(scale=1 / eps, size=len(x))

class Batches:
    def __init__(self, epsilon):
        self.scale = 1 / epsilon
    def sample(self, x, n, rng):
        return x + rng.laplace(scale=len(x) * self.scale, size=(n, len(x)))

class Refuses:
    def __init__(self, epsilon):
        raise RuntimeError("no")

def fixed(x, rng):
    return x + rng.laplace(scale=len(x), size=len(x))

def dptext(x, epsilon, rng):
    v = rng.uniform(size=len(x))
    with np.errstate(invalid="ignore"):
        return x - len(x) / epsilon * np.sign(v) * np.log(1 - 2 * v)

def shorter(x, epsilon):
    return x[:-1]

def words(x, epsilon):
    return "a text"

def failing(x, epsilon):
    raise ZeroDivisionError("by zero")

def many(x, epsilon, a, b, c):
    return x
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"voted_{abs(hash(tmp_path)) % 10**9}"
    (tmp_path / f"{name}.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def reproduce(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dpassay", "reproduce", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), *capsys.readouterr()

    return reproduce


def voted(subject: Subject, epsilons: tuple[float, ...], dims: tuple[int, ...], runs: int) -> list[dict[str, float]]:
    return [
        dict(row)
        for row in vote.sanity_check_of(subject, VoteGrid(epsilons, dims), ReproductionOptions(runs=runs)).rows
    ]


@pytest.mark.parametrize("name", ["laplace", "Batches"])
def test_votes_against_binomial_tails(code: str, name: str) -> None:
    of = vote.mechanisms(Subject(f"{code}:{name}"), VoteGrid())
    for epsilon, n in ((1.0, 1), (5.0, 8)):
        counted = vote.votes(of(epsilon, n)[0], n, 3000, (0, 1), lambda more: None)
        for ones, p in zip((counted.of_zeros, counted.of_ones), one_rounds("laplace", epsilon, n), strict=True):
            truth = stats.binom.sf(n // 2, n, p)
            # false alarm below 1e-9 each, exactly
            assert stats.binom.cdf(ones, 3000, truth) > 5e-10
            assert stats.binom.sf(ones - 1, 3000, truth) > 5e-10


@pytest.mark.long
def test_bounds_of_a_right_and_of_a_wrong_mechanism(code: str) -> None:
    # The true losses: ε for noise n/ε, nε for noise 1/ε.
    right = voted(Subject(f"{code}:laplace", "laplace(dim/eps)"), (1.0, 4.0), (1, 8), 2000)
    assert [row["exact"] for row in right] == [1.0, 1.0, 4.0, 4.0]
    assert all(row["vote_bound"] <= row["empirical"] for row in right)
    wrong = voted(Subject(f"{code}:laplace", "laplace(1/eps)"), (1.0,), (8,), 500)
    assert wrong[0]["exact"] == 8.0
    assert not wrong[0]["refuted"]  # the formula is not that of the code
    assert voted(Subject(pipeline="laplace(1/eps)"), (1.0,), (8,), 500)[0]["refuted"]


class Repeating:
    """Right Laplace noise, once for all rows of a batch."""

    def sample(self, x, n, rng):  # type: ignore[no-untyped-def]
        return np.tile(x + rng.laplace(size=1), (n, 1))


class Drifting:
    """The input is ignored; from some call on the output is another."""

    def __init__(self) -> None:
        self.calls = 0

    def sample(self, x, n, rng):  # type: ignore[no-untyped-def]
        self.calls += n
        return np.full((n, 1), float(self.calls > 1000))


def test_runs_that_are_not_independent_do_not_mislead_the_vote() -> None:
    counted = vote.votes(Repeating(), 1, 1000, (0, 1), lambda more: None)
    for ones, p in zip((counted.of_zeros, counted.of_ones), one_rounds("laplace", 1.0, 1), strict=True):
        # false alarm below 1e-9 each, exactly; a batch as a whole would give 0 or 1,000
        assert min(stats.binom.cdf(ones, 1000, p), stats.binom.sf(ones - 1, 1000, p)) > 5e-10
    drifted = vote.votes(Drifting(), 1, 1000, (0, 1), lambda more: None)
    assert drifted.of_zeros + drifted.of_ones == 1000
    # hypergeometric: which calls get which input does not depend on the outputs; false alarm below 1e-9
    law = stats.hypergeom(2000, 1000, 1000)
    assert min(law.cdf(drifted.of_ones), law.sf(drifted.of_ones - 1)) > 5e-10


@pytest.mark.parametrize("output", [None, 1j, "1.5", [None], [1.0, 2.0]])
def test_outputs_that_are_not_n_real_numbers_are_refused(output: object) -> None:
    with pytest.raises(InputError, match="turn n numbers into n numbers"):
        vote.vectors([output], 1)


def test_an_interrupted_cell_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    audit = vote.run_audit

    def interrupted(mechanism, options):  # type: ignore[no-untyped-def]
        found = audit(mechanism, options)
        return replace(found, sampled=replace(found.sampled, interrupted=True))

    monkeypatch.setattr(vote, "run_audit", interrupted)
    options = ReproductionOptions(runs=100, partial=tmp_path / "partial.json")
    with pytest.raises(KeyboardInterrupt):
        vote.sanity_check_of(Subject(pipeline="laplace(dim/eps)"), VoteGrid((1.0,), (1,)), options)
    assert not options.partial.exists()


def test_the_bound_of_votes() -> None:
    # Clopper-Pearson by scipy's beta quantiles, each at half of α.
    a, b = (stats.beta.ppf([0.0125, 0.9875], [k, k + 1], [101 - k, 100 - k]) for k in (20, 90))
    assert Votes(20, 90, 0).bound(100, 0.05) == pytest.approx(
        max(math.log(b[0] / a[1]), math.log((1 - a[1]) / (1 - b[0])))
    )
    assert Votes(50, 50, 0).bound(100, 0.05) == 0


def test_the_command(code: str, run: Run, tmp_path: Path) -> None:
    asked = ["sanity-check", "--python", f"{code}:too_little", "--epsilon", "1", "--dim", "1,32", "--runs", "600"]
    code_, out, err = run(*asked, "--out", "figures")
    assert code_ == 1  # refuted: 32 coordinates lose 32
    assert "Empirical ε of the majority vote" in out
    assert "noise" not in out
    assert "noise" in err
    name = f"sanity-check-{code}-too_little"
    data = json.loads((tmp_path / "figures" / f"{name}.json").read_text(encoding="utf-8"))
    assert [row["refuted"] for row in data["rows"]] == [False, True]
    assert all(row["exact"] is None for row in data["rows"])
    with (tmp_path / "figures" / f"{name}.csv").open(encoding="utf-8") as opened:
        assert [row["dim"] for row in csv.DictReader(opened)] == ["1", "32"]
    assert (tmp_path / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    code_, out, err = run(*asked, "--out", "figures", "--resume")
    assert (code_, "already there" in err, "32" in out) == (1, True, True)
    code_, out, _ = run(*asked, "--out", "figures", "--resume", "--json")
    assert (code_, json.loads(out)[name]["refuted"]) == (1, True)


def test_a_pipeline(run: Run, tmp_path: Path) -> None:
    where = ["--epsilon", "1", "--dim", "1,2", "--runs", "300", "--out", tmp_path]
    code, out, _ = run("sanity-check", "--pipeline", "laplace(dim/eps)", *where)
    assert code == 0
    assert "Exact loss of the stated distribution between n zeros and n ones" in out
    assert "Nothing was refuted" in out


def test_nan_is_rounded_to_zero(code: str) -> None:
    rows = voted(Subject(f"{code}:dptext"), (1.0,), (2,), 400)
    result = vote.sanity_check_of(Subject(f"{code}:dptext"), VoteGrid((1.0,), (2,)), ReproductionOptions(runs=400))
    assert rows[0]["nan"] > 0
    assert any("NaN" in sentence for sentence in result.found)


def test_a_fixed_epsilon(code: str) -> None:
    with pytest.raises(InputError, match="has no parameter epsilon"):
        vote.mechanisms(Subject(f"{code}:fixed"), VoteGrid())
    assert vote.mechanisms(Subject(f"{code}:fixed"), VoteGrid((1.0,), (1,)))(1.0, 1)[1] is None


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("shorter", InputError, "n numbers into n numbers"),
        ("words", InputError, "n numbers into n numbers"),
        ("failing", MechanismError, "ZeroDivisionError: by zero"),
        ("many", InputError, r"takes \(x, a, b, c\)"),
        ("Refuses", InputError, "raised RuntimeError: no"),
        ("nothing", InputError, "has no 'nothing'"),
    ],
)
def test_what_cannot_be_checked(code: str, name: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        vote.mechanisms(Subject(f"{code}:{name}"), VoteGrid((1.0,), (8,)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bayes", "--pipeline", "laplace(1)"], "are for sanity-check, not for bayes"),
        (["sanity-check", "--epsilon", "1"], "give --python or --pipeline"),
        (["sanity-check", "--pipeline", "laplace(1)", "--epsilon", "x"], "takes numbers with commas"),
        (["sanity-check", "--pipeline", "laplace(1)", "--epsilon", "-1"], "from 1e-06"),
        (["sanity-check", "--pipeline", "laplace(1)", "--epsilon", "nan"], "from 1e-06"),
        (["sanity-check", "--pipeline", "laplace(1)", "--dim", "0"], "from 1 to"),
        (["sanity-check", "--pipeline", "laplace(1)", "--dim", "1.5"], "takes numbers with commas"),
        (["sanity-check", "--pipeline", "laplas(1)"], "laplas"),
        (["sanity-check", "--python", "nowhere:x"], "no module"),
        (["sanity-check", "--pipeline", "laplace(1)", "--device", "cuda"], "leave out"),
    ],
)
def test_bad_input(run: Run, words: list[str], said: str) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert said in err


def test_progress_reaches_the_end(code: str) -> None:
    seen: list[float] = []
    vote.sanity_check_of(
        Subject(f"{code}:laplace"), VoteGrid((1.0,), (1,)), ReproductionOptions(runs=200, progress=seen.append)
    )
    assert seen[-1] == pytest.approx(1)
    assert np.all(np.diff(seen) >= 0)


def test_adept_with_its_clipping() -> None:
    # n times ±1, clipped to l2 norm 1, are ±1/√n; noise of scale 2/ε. By scipy: the chance that a sign is right.
    for epsilon in (0.5, 1.0, 5.0):
        for n in (1, 8, 128):
            p = stats.laplace.sf(0, loc=1 / math.sqrt(n), scale=2 / epsilon)
            right, wrong = stats.binom.sf(n // 2, n, p), stats.binom.sf(n // 2, n, 1 - p)
            voted = max(math.log(right / wrong), math.log((1 - wrong) / (1 - right)))
            assert sanity.exact_loss("clipped", epsilon, n) == pytest.approx(voted, rel=1e-6)
            # Its own loss is that of the l1 distance, 2√n, in scales.
            assert sanity._true("clipped", epsilon, n) == pytest.approx(math.sqrt(n) * epsilon)
    assert math.isnan(published("clipped", "1", 8))
