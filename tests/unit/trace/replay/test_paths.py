"""Shifts of the noise on each path through the code, found by a linear program and tried in replays."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpassay
from dpassay.errors import InputError
from dpassay.trace.replay.paths import Paths, Shift, judged, learned, path_of
from dpassay.trace.replay.trials import ReplayTrials
from dpassay.trace.storage.saved import load_trace
from dpassay.trace.watch.tracer import Tracer

COUNTS = ([50, 40, 52], [51, 41, 51])


def above(counts: list[float], rng: Any) -> int | None:
    limit = 50 + rng.laplace(0, 2.0)
    for i, c in enumerate(counts):
        if c + rng.laplace(0, 4.0) > limit:
            return i
    return None


def costs(paths: Paths, at: int) -> list[float]:
    return sorted(one.epsilon for one in paths.shifts[at].values())


def test_the_cheapest_shifts_of_a_sparse_vector() -> None:
    """By hand, from the counts (50, 40, 52) to (51, 41, 51); the limit costs 1/2 and a query 1/4.

    The first is reported: it is larger anyway, 0. The second: the first must stay below, with 1 less for it, and the
    second is larger anyway, 1/4. The third: both 1 less, and 1 more for it, 3/4; none: 1/2, the limit 1 more.
    In the other direction: 1/4 (1 more for the first), 1/4, 0, and 1/4 (1 less for the last).
    """
    paths = learned(Tracer(above), COUNTS, 1.0)
    assert paths is not None
    assert costs(paths, 0) == pytest.approx([0, 0.25, 0.5, 0.75])
    assert costs(paths, 1) == pytest.approx([0, 0.25, 0.25, 0.25])
    assert paths.epsilon == pytest.approx(0.75)


def test_too_dear_a_path_is_no_bound() -> None:
    assert learned(Tracer(above), COUNTS, 0.7) is None


def test_a_wrong_shift_is_noticed() -> None:
    tracer = Tracer(above)
    paths = learned(tracer, COUNTS, 1.0)
    assert paths is not None

    def said(paths: Paths) -> set[str | None]:
        found = set()
        for k in range(60):
            run = tracer.run(COUNTS[0], key=(0, 9, k))
            run.key = (0, 9, k)
            found.add(judged(tracer, COUNTS, 0, run, paths))
        return found

    assert said(paths) == {""}
    still = {path: replace(one, by={}) for path, one in paths.shifts[0].items()}
    assert "the code uses the shifted noise differently for the two inputs" in said(Paths(1.0, (still, {})))
    assert said(Paths(1.0, ({}, {}))) == {None}


def test_noise_of_another_scale_is_not_shifted() -> None:
    """The scale depends on the input, so no shift of the noise of one is that of the other."""

    def code(x: float, rng: Any) -> bool:
        return bool(x + rng.laplace(0, 1 + x) > 3)

    assert learned(Tracer(code), (1.0, 2.0), 10.0) is None


def test_gaussian_noise_is_not_shifted() -> None:
    def code(x: float, rng: Any) -> bool:
        return bool(x + rng.normal() > 3)

    assert learned(Tracer(code), (1.0, 2.0), 10.0) is None


@pytest.mark.parametrize("size", [1.0, -1.0])
def test_exponential_noise_is_shifted_up_only(size: float) -> None:
    """Numbers above x can be made to stay above y, which is larger, by no shift; the other way by one of 1."""

    def code(x: float, rng: Any) -> bool:
        return bool(x + size * rng.exponential(2.0) > 3)

    paths = learned(Tracer(code), (2.0, 2.5), 10.0)
    assert (paths is None) == (size > 0)  # from 2 to 2.5, "not above 3" needs less noise, which may be below 0
    if paths is not None:
        assert paths.epsilon == pytest.approx(0.25)


def test_a_path_is_what_all_comparisons_answered() -> None:
    tracer = Tracer(above)
    runs = [tracer.run(COUNTS[0]) for _ in range(60)]
    outputs = {path_of(run): run.output for run in runs}
    assert set(outputs.values()) == {0, 1, 2, None}
    assert len(outputs) == 4


def test_paths_that_are_not_known_are_left_out() -> None:
    """The bound of Clopper and Pearson, from scipy's beta distribution."""
    for left, agreed in ((1, 199), (7, 4993)):
        expected = stats.beta.ppf(0.999, left + 1, agreed)
        assert ReplayTrials(agreed, 1e-3, left_out=left).p == pytest.approx(expected)
    assert ReplayTrials(5000, 1e-3).p < ReplayTrials(4999, 1e-3, left_out=1).p


def test_a_bound_over_paths_is_saved_and_verified(tmp_path: Any) -> None:
    path = tmp_path / "trace.json"
    result = dpassay.trace(above, pairs=[COUNTS], epsilon=1, hostile=False, save=path)
    assert result.pair_epsilon.upper == pytest.approx(0.75)
    assert "comparisons of numbers with noise (laplace(2), laplace(4)): 4 paths" in result.verdict.reason
    assert result.trials is not None
    record = load_trace(path)
    assert (record.replays, record.left_out) == (result.trials.agreed, result.trials.left_out)
    changed = json.loads(path.read_text()) | {"left_out": record.left_out + 3}
    path.write_text(json.dumps(changed))
    with pytest.raises(InputError, match="leave out a probability"):
        load_trace(path)


def test_what_only_much_more_noise_shows_is_no_bound() -> None:
    def code(x: list[float], rng: Any) -> float | None:
        return None if len(x) + rng.laplace() < 20 else float(np.median(x))

    result = dpassay.trace(code, pairs=[([1.0, 2.0], [1.0, 2.0, 3.0])], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper == np.inf


@pytest.mark.parametrize("ends", [(0.0, np.inf), (-5.0, 5.0)])
def test_a_function_of_several_sums_is_not_taken_for_one(ends: tuple[float, float]) -> None:
    """Shares of a total: the two counts differ by 1 each, so the loss of 0.1 noise is about 10 to 20."""

    def shares(counts: list[float], rng: Any) -> Any:
        noisy = np.clip(np.array(counts) + rng.laplace(0, 0.1, 2), *ends)
        return noisy / max(noisy.sum(), 1e-9)

    result = dpassay.trace(shares, pairs=[([5.0, 5.0], [6.0, 4.0])], epsilon=2, hostile=False)
    assert result.verdict.refuted
    assert learned(Tracer(shares), ([5.0, 5.0], [6.0, 4.0]), 5.0) is None


def test_draws_of_an_unknown_law_are_not_taken_to_be_the_same() -> None:
    """How often a word comes depends on the input, whatever was drawn: 1 for the first word, against e^−1."""

    def counted(x: float, rng: Any) -> bool:
        return bool(rng.poisson(x) + rng.laplace() > 2)

    assert learned(Tracer(counted), (1.0, 2.0), 10.0) is None

    def one_hot(scores: list[float], rng: Any) -> int:
        weights = np.exp(np.array(scores))
        return int(rng.multinomial(1, weights / weights.sum()).argmax())

    pair = ([0.5, 0.0, -0.5], [-0.5, 0.0, 0.5])
    for seed in range(3):  # values that happen to be the same in two runs show nothing
        result = dpassay.trace(one_hot, pairs=[pair], epsilon=0.2, hostile=False, seed=seed)
        assert result.pair_epsilon.upper == np.inf


def test_texts_of_noisy_sums_need_the_same_sums() -> None:
    def share(counts: list[float], rng: Any) -> str:
        noisy = np.array(counts) + rng.laplace(0, 1, 2)
        return f"{100 * noisy[0] / max(noisy.sum(), 1):.1f} %"

    paths = learned(Tracer(share), ([5.0, 5.0], [6.0, 5.0]), 2.0)
    assert paths is not None
    assert paths.epsilon == pytest.approx(1.0)


def test_an_order_is_kept_by_keeping_each_difference() -> None:
    """The first count is 1 larger: between the order (0, 1) of both nothing is needed, or 1 of one of them."""

    def order(counts: list[float], rng: Any) -> list[int]:
        return np.argsort(-(np.array(counts) + rng.laplace(0, 2, 2))).tolist()

    paths = learned(Tracer(order), ([5.0, 5.0], [6.0, 5.0]), 2.0)
    assert paths is not None
    assert costs(paths, 0) == pytest.approx([0, 0.5])
    assert costs(paths, 1) == pytest.approx([0, 0.5])


def test_noise_that_was_not_shifted_as_stated_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last query is never compared with anything that its noise would change, so that the outputs agree anyway."""

    def code(counts: list[float], rng: Any) -> bool:
        answer = bool(counts[0] + rng.laplace(0, 2.0) > 3)
        rng.laplace(0, 1.0)
        return answer

    tracer, pair = Tracer(code), ([2.0], [3.0])
    paths = learned(tracer, pair, 1.0)
    assert paths is not None
    run = tracer.run(pair[0], key=(0, 9, 0))
    run.key = (0, 9, 0)
    assert judged(tracer, pair, 0, run, paths) == ""

    requested = Tracer.run

    def moved(self: Tracer, x: Any, noise: Any = None, **more: Any) -> Any:
        return requested(self, x, {**noise, 1: noise[1] + 5.0} if noise else noise, **more)

    monkeypatch.setattr(Tracer, "run", moved)
    assert judged(tracer, pair, 0, run, paths) == "the code cannot draw the shifted noise"


def kept_if_large(x: float, rng: Any) -> float | None:
    noisy = x + rng.laplace(0, 2.0)
    return float(noisy) if noisy > 0 else None


def test_a_sum_is_made_the_same_by_its_noise_and_not_by_force() -> None:
    """The rounding of a released sum is taken from the first run, which must not hide that the sum is another one."""
    tracer, pair = Tracer(kept_if_large), (3.0, 4.0)
    paths = learned(tracer, pair, 1.0)
    assert paths is not None
    runs = [tracer.run(3.0, key=(0, 9, k)) for k in range(20)]
    for k, run in enumerate(runs):
        run.key = (0, 9, k)
    assert {judged(tracer, pair, 0, run, paths) for run in runs} == {""}
    still = {path: replace(one, by={}) for path, one in paths.shifts[0].items()}
    said = {judged(tracer, pair, 0, run, Paths(1.0, (still, {}))) for run in runs}
    assert "a sum with noise is different with the shifted noise" in said


@pytest.mark.parametrize("side", [0, 1])
def test_the_laws_of_a_path_are_those_from_which_its_loss_was_computed(side: int) -> None:
    tracer, pair = Tracer(kept_if_large), (3.0, 4.0)
    paths = learned(tracer, pair, 1.0)
    assert paths is not None

    def other(shift: Shift) -> Shift:
        laws = list(shift.laws)
        laws[side] = tuple(one._replace(law=("laplace", b"another scale", 0.0)) for one in laws[side])
        return replace(shift, laws=(laws[0], laws[1]))

    changed = Paths(1.0, ({path: other(one) for path, one in paths.shifts[0].items()}, {}))
    run = tracer.run(3.0, key=(0, 9, 0))
    run.key = (0, 9, 0)
    assert judged(tracer, pair, 0, run, paths) == ""
    assert judged(tracer, pair, 0, run, changed)
