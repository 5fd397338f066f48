"""What clamps, rounding and squashes leave of noise: against sums over the cells of the output, and formulas."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import middle, number
from dpassay.exact.analysis import analyse
from dpassay.exact.composition import mechanism_answer
from dpassay.exact.profiles.bounds import CurveBound
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import run
from dpassay.pipeline.thresholds import Thresholds

E = math.e


def profile_of(text: str, dim: int = 1, kind: str | None = None):
    pipeline = parse(text, dim=dim)
    return analyse(pipeline, Neighbours(kind) if kind else pipeline.neighbours)


def cells(text: str, centre: float, scale: float = 1.0) -> np.ndarray:
    """The output's probabilities for one value, on a fine grid of noisy values: equal outputs are one cell."""
    pipeline = parse(text, dim=1)
    (position,) = pipeline.noise_positions
    noise = laplace if "laplace" in text else norm
    edges = np.linspace(-16, 16, 64_001)
    inside = (edges[1:] + edges[:-1]) / 2
    points = np.concatenate([[-50.0], inside, [50.0]])[:, None]
    outputs = run(pipeline.stages[position + 1 :], points, np.random.default_rng())[:, 0]
    far = np.concatenate([[-np.inf], edges, [np.inf]])
    tails = noise.sf(far, centre, scale), noise.cdf(far, centre, scale)
    masses = np.where(far[1:] <= centre, tails[1][1:] - tails[1][:-1], tails[0][:-1] - tails[0][1:])
    _, which = np.unique(outputs, return_inverse=True)
    return np.bincount(which, weights=masses)


CHAINS = [
    "clamp(0, 10)",
    "clamp(-0.5, 0.5)",
    "clamp(0.25, 0.75)",
    "clamp(-3, 0.3)",
    "clamp(0, 1) | clamp(-1, 0.5)",
    "clamp(-2, 2) | round",
    "clamp(0.2, 3.7) | round",
    "round | clamp(0.2, 3.7)",
    "round | clamp(-1, 1)",
    "squash(tanh) | round",
    "squash(sigmoid) | round",
    "squash(tanh) | clamp(-0.4, 0.6)",
    "squash(sigmoid) | clamp(-1, 0.5)",
    "round | squash(sigmoid) | clamp(-1, 0.5)",
    "clamp(-1, 1) | squash(tanh) | round",
    "clamp(0, 3) | round | squash(tanh)",
    "clip(l2, 1)",
    "clamp(0.1, 0.4) | round",
    "squash(tanh) | clamp(2, 3)",
    "clamp(0, 10) | clamp(10, 20)",
]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("noise", ["laplace(1)", "gaussian(1)"])
@pytest.mark.parametrize("box", [(-1.0, 1.0), (0.25, 2.0), (-2.0, -1.5)])
def test_bounds_hold_for_the_cells_of_the_output(chain: str, noise: str, box: tuple[float, float]) -> None:
    text = f"clamp({box[0]}, {box[1]}) | {noise} | {chain}"
    profile = profile_of(text)
    p, q = (cells(text, centre) for centre in box[::-1])
    seen = (p > 1e-290) & (q > 1e-290)
    losses = np.log(p[seen] / q[seen])
    finite = max(losses.max(), -losses.min(), 0.0)  # of a grid: from below where far-out cells matter
    pure = profile.pure
    assert finite <= float(pure.b) + 1e-9
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        delta = max(np.maximum(0, a - math.exp(epsilon) * b).sum() for a, b in ((p, q), (q, p)))
        bounds = profile.delta(number(epsilon))
        assert float(bounds.a) <= delta + 1e-4  # the grid loses a little
        assert delta <= float(bounds.b) + 1e-9
    if float(pure.a) < math.inf and "clip" not in chain:
        # A threshold is off by less than a cell of 1/2000, and the loss changes with it by the gap, or 1, at most.
        assert float(pure.a) <= finite + max(1.0, box[1] - box[0]) / 2000


@pytest.mark.parametrize("chain", CHAINS[:4] + CHAINS[11:13])
@pytest.mark.parametrize("noise", ["laplace(1)", "gaussian(1)"])
def test_clamped_noise_on_a_box_is_exact(chain: str, noise: str) -> None:
    profile = profile_of(f"clamp(-1, 1) | {noise} | {chain}", 3)
    assert profile.pure.a == profile.pure.b or profile.pure.delta < 1e-30


def test_tails_survive_a_clamp() -> None:
    profile = profile_of("query(l1, 1) | laplace(1) | clamp(0, 10)", 4)
    assert middle(profile.pure) == 1
    # One number: 1 − e^((ε−1)/2) = δ.
    assert middle(profile.epsilon(number("0.001"))) == pytest.approx(1 + 2 * math.log(0.999), rel=1e-12)
    assert middle(profile.delta(number("0.5"))) == pytest.approx(1 - math.exp(-0.25), rel=1e-12)


@pytest.mark.parametrize("chain", ["clamp(3, 3.5)", "clamp(7, 9) | round", "round", "squash(sigmoid) | round"])
def test_answers_may_lie_on_any_threshold(chain: str) -> None:
    laplace_noise = profile_of(f"query(l1, 2) | laplace(1) | {chain}", 2)
    gaussian = profile_of(f"query(l2, 2) | gaussian(1) | {chain}", 2)
    assert middle(laplace_noise.pure) == 2
    assert gaussian.pure.a == float("inf")
    # For each ε a place for the two answers: the threshold lies where the likelihood ratio is e^ε.
    for epsilon in (0.0, 0.7, 1.5):
        exact = 1 - math.exp((epsilon - 2) / 2), norm.sf(epsilon / 2 - 1) - math.exp(epsilon) * norm.sf(epsilon / 2 + 1)
        for profile, delta in zip((laplace_noise, gaussian), exact, strict=True):
            assert float(profile.delta(number(epsilon)).a) == pytest.approx(delta, rel=1e-9)
            assert float(profile.delta(number(epsilon)).b) == pytest.approx(delta, rel=1e-9)


def test_no_single_place_shows_all_so_it_is_not_composed() -> None:
    # One bit of each answer: two of them show less than two whole answers.
    narrow = parse("query(l1, 2) | laplace(1) | squash(sigmoid) | round", dim=1)
    assert isinstance(profile_of(str(narrow)).candidates[0].bound, CurveBound)
    assert not mechanism_answer(narrow, 2).exact
    assert mechanism_answer(parse("query(l1, 2) | laplace(1) | clamp(0, 2)", dim=1), 2).exact
    assert not mechanism_answer(parse("query(l1, 2) | laplace(1) | clamp(0, 1.9)", dim=1), 2).exact


def test_clamped_gaussian_noise_has_a_finite_epsilon_on_bounded_values() -> None:
    profile = profile_of("clip(linf, 1) | gaussian(1) | clamp(-1, 1)", 3)
    assert middle(profile.pure) == pytest.approx(3 * (math.log(norm.sf(0)) - norm.logsf(2)), rel=1e-12)
    far = profile_of("clip(linf, 1) | gaussian(1) | clamp(0, 10)", 1)
    assert middle(far.pure) == pytest.approx(norm.logsf(9) - norm.logsf(11), rel=1e-12)
    assert profile_of("clip(linf, 1) | gaussian(1) | round", 1).pure.a == float("inf")
    assert profile_of("query(l2, 1) | gaussian(1) | clamp(0, 10)", 1).pure.a == float("inf")


def test_limits_between_the_values_cut_the_loss() -> None:
    # P(1 + Z ≥ ½) = 1 − e^−½/2 and P(−1 + Z ≥ ½) = e^−1½/2.
    profile = profile_of("clip(linf, 1) | laplace(1) | clamp(-1/2, 1/2)", 2)
    one = math.log((1 - math.exp(-0.5) / 2) / (math.exp(-1.5) / 2))
    assert middle(profile.pure) == pytest.approx(2 * one, rel=1e-12)
    assert profile.pure.delta < 1e-30


def test_half_a_curve_is_enough_for_the_profile() -> None:
    # The best thresholds for ε ≥ 0 lie between the middle, 0, and the upper value, 1.
    profile = profile_of("clip(l1, 1) | laplace(1) | clamp(0, 10)", 4)
    for epsilon in (0.0, 0.5, 1.9):
        assert middle(profile.delta(number(epsilon))) == pytest.approx(1 - math.exp((epsilon - 2) / 2), rel=1e-9)
    assert not mechanism_answer(parse("clip(l1, 1) | laplace(1) | clamp(0, 10)", dim=4), 2).exact


def test_where_a_record_against_none_lies_is_not_guessed() -> None:
    # Sums of ±1 are whole numbers: ±½ is the distance of two of them, not their place. Numbers from -1 to 1 can have
    # the sums ±½, of which the outputs at or above 1 lose 1, and the signs ln((1 − t)/t), t = e^−½/2.
    tail = math.exp(-0.5) / 2
    for chain, loss in (("clamp(0, 1)", 1), ("normalise", math.log((1 - tail) / tail))):
        assert profile_of(f"normalise | laplace(1) | {chain}", 1, "add-remove-record").lower_pure == 0
        ball = profile_of(f"clip(l2, 1) | laplace(1) | {chain}", 1, "add-remove-record")
        assert middle(ball.lower_pure) == pytest.approx(loss, rel=1e-12)
    for first in ("normalise", "clip(l2, 1)"):
        assert middle(profile_of(f"{first} | laplace(1) | round", 1, "add-remove-record").pure) == 1


def test_thresholds() -> None:
    def told(text: str) -> Thresholds | None:
        left: Thresholds | None = Thresholds()
        for stage in reversed(parse(text, dim=2).stages):
            left = None if left is None else stage.thresholds_before(left)
        return left

    def ends(text: str) -> tuple[float, float, bool]:
        left = told(text)
        assert left is not None
        return middle(left.low), middle(left.high), left.whole

    assert told("squash(tanh) | decode").everything
    assert told("squash(tanh) | clamp(-1, 1)").everything
    assert ends("clamp(0, 10)") == (0, 10, True)
    assert ends("clamp(0, 10) | round") == (0.5, 9.5, False)
    assert ends("clamp(0.5, 2.5) | round") == (1.5, 1.5, False)
    assert ends("round | clamp(0, 10)") == (0.5, 9.5, False)
    assert ends("squash(tanh) | round") == pytest.approx((-math.atanh(0.5), math.atanh(0.5), False))
    assert ends("squash(sigmoid) | clamp(-1, 0.5)") == (-math.inf, 0, True)
    assert ends("squash(tanh) | clip(l2, 1)") == (0, 0, False)
    assert ends("clip(l2, 1) | clamp(0, 1)") == (0, 0, False)
    assert ends("binary(2, 2) | round") == (0, 0, False)
    for lost in (
        "squash(sigmoid) | clip(l2, 1)",
        "round | clip(l2, 1)",
        "clip(l2, 5) | round",
        "clamp(0, 10) | clamp(10, 20)",
        "clamp(0.1, 0.4) | round",
        "binary(2, 2) | clip(l2, 1)",
        "minmax",
    ):
        assert told(lost) is None, lost


def test_a_clamp_behind_two_noises_strengthens_no_bound() -> None:
    # The limits cut off what the sum of both noises is beyond them; a bound for one noise alone would need a proof.
    profile = analyse(parse("clip(linf, 1) | gaussian(1) | laplace(0.2) | clamp(-1, 1)", dim=1), Neighbours())
    assert float(profile.pure.b) == pytest.approx(10)  # what the Laplace noise gives by itself, 2/0.2
