"""Sums of losses of different kinds, against enumeration, numerical convolution in the test, and dp-accounting."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from mpmath import mp, mpf

from dpassay.core.numbers import ONE, ZERO, down, exp, middle, number, up
from dpassay.exact.pld.atom_sum import AtomSum, atoms_delta
from dpassay.exact.pld.lattice_cells import cells_of, has_cells
from dpassay.exact.pld.lattice_window import Limits
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss
from dpassay.exact.pld.loss_sum import LatticeSum
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss

Law = list[tuple[mpf, mpf]]  # probabilities of outcomes under both laws


def response(epsilon: str) -> tuple[AtomLoss, Law]:
    """Randomized response, for the code and for the test."""
    keep = mp.exp(mpf(epsilon)) / (1 + mp.exp(mpf(epsilon)))
    e = number(epsilon)
    kept = 1 / (1 + exp(-e))
    return AtomLoss(((e, kept), (-e, 1 - kept))), [(keep, 1 - keep), (1 - keep, keep)]


def category(keep: str, size: int) -> tuple[AtomLoss, Law]:
    """One of some names, kept with a probability and otherwise any other one."""
    p, q = mpf(keep), (1 - mpf(keep)) / (size - 1)
    k, o = number(keep), (1 - number(keep)) / (size - 1)
    atoms = AtomLoss.between((k, o, o * (size - 2)), (o, k, o * (size - 2)))
    return atoms, [(p, q), (q, p), (q * (size - 2), q * (size - 2))]


def enumerated(laws: list[Law], epsilon: mpf) -> mpf:
    """δ(ε) by all outcomes."""
    rise = mp.exp(epsilon)
    return sum(
        max(mpf(0), mp.fprod(p for p, _ in outcome) - rise * mp.fprod(q for _, q in outcome))
        for outcome in itertools.product(*laws)
    )


@pytest.mark.parametrize("epsilon", ["0", "0.3", "1.7", "4"])
def test_atoms_by_enumeration(epsilon: str) -> None:
    with mp.workdps(40):
        kinds = [(*response("0.5"), 3), (*response("0.83"), 2), (*category("0.6", 5), 3)]
        truth = enumerated([law for _, law, n in kinds for _ in range(n)], mpf(epsilon))
        parts = tuple((atoms, n) for atoms, _, n in kinds)
        for found in (atoms_delta(parts, number(epsilon)), LatticeSum(parts).delta(number(epsilon))):
            assert found is not None
            assert found.a <= truth <= found.b
        listed = atoms_delta(parts, number(epsilon))
        assert listed.delta <= 1e-11 * truth + 1e-25


def test_atoms_that_are_left_out_count_from_above_only() -> None:
    kinds = [(*response("0.5"), 6), (*response("0.83"), 5)]
    with mp.workdps(40):
        truth = enumerated([law for _, law, n in kinds for _ in range(n)], mpf(1))
    coarse = AtomSum.of([(atoms, n) for atoms, _, n in kinds], 1e-3)
    assert coarse is not None
    assert coarse.rest > 0
    found = coarse.delta(ONE)
    assert found.a <= truth <= found.b
    assert found.delta > 1e-4


def mixture(counts: list[tuple[str, int]], delta: float) -> mpf:
    """ε(δ) of some randomized responses whose parameters are multiples of 0.01, by exact sums on that lattice."""
    sums: dict[int, mpf] = {0: mpf(1)}
    for text, count in counts:
        size, keep = round(float(text) * 100), 1 / (1 + mp.exp(-mpf(text)))
        chances = [mp.binomial(count, k) * keep**k * (1 - keep) ** (count - k) for k in range(count + 1)]
        new: dict[int, mpf] = {}
        for place, chance in sums.items():
            for k, other in enumerate(chances):
                at = place + size * (2 * k - count)
                new[at] = new.get(at, mpf(0)) + chance * other
        sums = new
    best = p = q = mpf(0)
    for place in sorted(sums, reverse=True):
        p, q = p + sums[place], q + sums[place] * mp.exp(-mpf(place) / 100)
        if p > delta:
            best = max(best, mp.log((p - mpf(delta)) / q))
    return best


@pytest.mark.parametrize(
    "counts", [[("0.1", 40), ("0.23", 25)], [("0.05", 60), ("0.1", 30), ("0.35", 8)]], ids=["two", "three"]
)
def test_guarantees_of_several_sizes(counts: list[tuple[str, int]]) -> None:
    with mp.workdps(40):
        truth = mixture(counts, 1e-6)
        parts = tuple((response(text)[0], n) for text, n in counts)
        for found in (PrivacyLoss(parts).epsilon_number(number("1e-6")), LatticeSum(parts).epsilon(number("1e-6"))):
            assert found.a <= truth <= found.b
            assert found.delta <= 1e-9


def test_many_copies_go_to_their_common_lattice() -> None:
    parts = tuple((response(text)[0], n) for text, n in (("0.01", 20000), ("0.02", 5000)))
    assert LatticeSum(parts).unit == pytest.approx(0.02)
    found = PrivacyLoss(parts).epsilon_number(number("1e-6"))
    assert found.delta < 1e-6
    # The central limit: variance 4·p(1 − p)·ε² each; the mean is half of it. A Gaussian of this μ is near.
    square = sum(n * e * e / math.cosh(e / 2) ** 2 for e, n in ((0.01, 20000), (0.02, 5000)))
    near = PrivacyLoss(((GaussianLoss(number(math.sqrt(square))), 1),)).epsilon_number(number("1e-6"))
    assert middle(found) == pytest.approx(middle(near), rel=1e-3)


def test_a_leak_is_added_to_what_is_finite() -> None:
    with mp.workdps(40):
        leak, keep = mpf("0.001"), 1 / (1 + mp.exp(mpf("-0.5")))
        law = [
            (leak, mpf(0)),
            ((1 - leak) * keep, (1 - leak) * (1 - keep)),
            ((1 - leak) * (1 - keep), (1 - leak) * keep),
        ]
        other = response("0.83")
        truth = enumerated([law] * 3 + [other[1]] * 2, mpf(1))
        kept = (1 - number("0.001")) / (1 + exp(-number("0.5")))
        leaky = AtomLoss(((number("0.5"), kept), (-number("0.5"), 1 - number("0.001") - kept)), number("0.001"))
        found = PrivacyLoss(((leaky, 3), (other[0], 2))).delta_number(ONE)
        assert found.a <= truth <= found.b
        assert found.delta < 1e-11


# ── One sampled step with Laplace noise ─────────────────────────────────────────────────────────


def laplace_delta(q: mpf, a: mpf, way: str, epsilon: mpf) -> mpf:
    """∫ (P − e^ε Q)⁺ over the outputs of one coordinate, by mpmath, the record at a."""

    def gap(t: mpf) -> mpf:
        still, moved = mp.exp(-abs(t)) / 2, mp.exp(-abs(t - a)) / 2
        mixed = (1 - q) * still + q * moved
        p, r = (mixed, still) if way == "remove" else (still, mixed)
        return p - mp.exp(epsilon) * r

    # The ratio is monotone between 0 and a.
    cut = mp.findroot(gap, (mpf(0), a), solver="anderson") if gap(mpf(0)) * gap(a) < 0 else a / 2
    places = [mpf(-60), mpf(0), cut, a, a + 60]
    return mp.quad(lambda t: max(mpf(0), gap(t)), places)


@pytest.mark.parametrize("way", ["remove", "add"])
@pytest.mark.parametrize(("q", "a"), [("0.1", "1"), ("0.01", "3"), ("0.9", "0.2")])
def test_one_sampled_laplace_step_by_quadrature(way: str, q: str, a: str) -> None:
    loss = SampledLaplaceLoss(number(q), number(a), way)  # type: ignore[arg-type]
    with mp.workdps(25):
        for share in ("0", "0.3", "0.9"):
            epsilon = mpf(share) * mpf(middle(loss.pure))
            truth = laplace_delta(mpf(q), mpf(a), way, epsilon)
            assert middle(loss.delta(number(float(epsilon)))) == pytest.approx(float(truth), rel=1e-9)
    assert loss.delta(loss.pure).b <= 1e-40
    assert loss.mean.a == 0


def test_the_pure_losses_are_those_of_the_outermost_outputs() -> None:
    q, a = 0.3, 2.0
    remove, add = (SampledLaplaceLoss(number(q), number(a), way) for way in ("remove", "add"))  # type: ignore[arg-type]
    assert middle(remove.pure) == pytest.approx(math.log(1 - q + q * math.exp(a)), rel=1e-14)
    assert middle(add.pure) == pytest.approx(-math.log(1 - q + q * math.exp(-a)), rel=1e-14)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        SampledLaplaceLoss(number("0.1"), ONE, "remove"),
        SampledLaplaceLoss(number("0.1"), ONE, "add"),
        LaplaceLoss(number("1.7")),
        GaussianLoss(number("0.8")),
        SampledLoss(number("0.2"), ONE, "remove"),
        response("0.37")[0],
    ],
    ids=["laplace-remove", "laplace-add", "laplace", "gaussian", "sampled", "atoms"],
)
def test_cells_bound_one_loss(loss, upper: bool) -> None:  # type: ignore[no-untyped-def]
    """From above the spread cells, from below the best event of cells: on either side of the closed form."""
    assert has_cells(loss)
    cells = cells_of(loss, 0.013, upper, Limits(1e-25))
    for epsilon in (0.0, 0.02, 0.05, 0.3):
        truth = loss.delta(number(epsilon))
        if upper:
            points = cells.spread
            losses = cells.lowest + cells.blur + cells.step * np.arange(len(points))
            found = float((points * np.maximum(0.0, -np.expm1(epsilon - losses))).sum() + cells.first[1][-1])
            assert found >= down(truth)
            assert found <= up(truth) + 0.01
        else:
            p, q = (np.cumsum(side[::-1]) for side in (cells.first[0], cells.second[1]))
            found = float((p - math.exp(epsilon) * q).max(initial=0.0))
            assert found <= up(truth)
            assert found >= down(truth) - 0.01


# ── Sums of different kinds ─────────────────────────────────────────────────────────────────────


def convolved(parts: list[tuple[np.ndarray, np.ndarray, int]], step: float) -> tuple[np.ndarray, np.ndarray]:
    """Losses and probabilities of a sum: each point split between its two neighbours on a grid, keeping the mean."""
    length = 1 << math.ceil(math.log2(2 + sum(n * (np.ptp(losses) / step + 2) for losses, _, n in parts)))
    start, spectrum = 0, np.ones(length // 2 + 1, dtype=complex)
    for losses, chances, count in parts:
        below = np.floor(losses / step).astype(int)
        share, first = losses / step - below, int(below.min())
        one = np.bincount(below - first, chances * (1 - share), length)
        one += np.bincount(below - first + 1, chances * share, length)
        spectrum, start = spectrum * np.fft.rfft(one) ** count, start + count * first
    return step * (start + np.arange(length)), np.fft.irfft(spectrum, length)


def near_epsilon(parts: list[tuple[np.ndarray, np.ndarray, int]], step: float, delta: float) -> float:
    losses, chances = convolved(parts, step)
    low, high = 0.0, float(losses[-1])
    for _ in range(60):
        half = (low + high) / 2
        above = losses > half
        found = float((chances[above] * -np.expm1(half - losses[above])).sum())
        low, high = (half, high) if found > delta else (low, half)
    return high


def sampled_points(q: float, shift: float, noise: str, way: str) -> tuple[np.ndarray, np.ndarray]:
    """The loss of one step at the middles of narrow cells of outputs, with their probabilities."""
    from scipy.stats import laplace, norm

    law = laplace if noise == "laplace" else norm
    edges = np.linspace(-12.0, 12.0 + shift, 40001) if noise == "normal" else np.linspace(-40.0, 40.0 + shift, 80001)
    still, moved = np.diff(law.cdf(edges)), np.diff(law.cdf(edges - shift))
    middles = (edges[1:] + edges[:-1]) / 2
    ratio = (1 - q) + q * np.exp(law.logpdf(middles - shift) - law.logpdf(middles))
    mixed = (1 - q) * still + q * moved
    return (np.log(ratio), mixed) if way == "remove" else (-np.log(ratio), still)


@pytest.mark.parametrize("way", ["remove", "add"])
def test_two_kinds_of_sampled_noise_by_convolution(way: str) -> None:
    parts = (
        (SampledLaplaceLoss(number("0.1"), ONE, way), 12),  # type: ignore[arg-type]
        (SampledLoss(number("0.2"), number("0.7"), way), 8),  # type: ignore[arg-type]
    )
    found = PrivacyLoss(parts).epsilon_number(number("1e-4"))
    points = [(*sampled_points(0.1, 1.0, "laplace", way), 12), (*sampled_points(0.2, 0.7, "normal", way), 8)]
    truth = near_epsilon(points, 2e-4, 1e-4)
    assert found.delta <= 2e-5 * found.b
    assert middle(found) == pytest.approx(truth, rel=1e-5)


def test_responses_with_gaussian_and_laplace_noise_by_convolution() -> None:
    parts = ((response("0.3")[0], 10), (GaussianLoss(number("0.5")), 1), (LaplaceLoss(number("0.4")), 5))
    found = PrivacyLoss(parts).epsilon_number(number("1e-5"))
    keep = 1 / (1 + math.exp(-0.3))
    z = np.linspace(-9, 9, 40001)
    bell = np.exp(-z * z / 2)
    t = (np.arange(20000) + 0.5) * 0.4 / 20000  # between the two centres
    points = [
        (np.array([0.3, -0.3]), np.array([keep, 1 - keep]), 10),
        (0.5 * z + 0.125, bell / bell.sum(), 1),
        (
            np.concatenate([[0.4, -0.4], 0.4 - 2 * t]),
            np.concatenate([[0.5, math.exp(-0.4) / 2], np.exp(-t) * 0.4 / 20000 / 2]),
            5,
        ),
    ]
    assert found.delta <= 2e-5 * found.b
    assert middle(found) == pytest.approx(near_epsilon(points, 1e-4, 1e-5), rel=1e-5)


def test_sampled_laplace_steps_against_dp_accounting() -> None:
    """Its optimistic and pessimistic estimates enclose the truth, where its grid is fine."""
    both = [
        privacy_loss_distribution.from_laplace_mechanism(
            1.0, sampling_prob=0.1, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic
        )
        .self_compose(100)
        .get_epsilon_for_delta(1e-5)
        for pessimistic in (False, True)
    ]
    ours = [
        PrivacyLoss(((SampledLaplaceLoss(number("0.1"), ONE, way), 100),)).epsilon_number(number("1e-5"))  # type: ignore[arg-type]
        for way in ("remove", "add")
    ]
    found = max(ours, key=lambda one: one.b)
    assert both[0] * (1 - 1e-6) <= up(found)
    assert down(found) <= both[1] * (1 + 1e-6)
    assert found.delta <= 1e-5 * found.b


def test_losses_without_cells_are_left_to_the_grid() -> None:
    assert not has_cells(AtomLoss((), ONE))
    assert not has_cells(GaussianLoss(number(80)))
    assert not has_cells(LaplaceLoss(ZERO))


@pytest.mark.parametrize("way", ["remove", "add"])
def test_tails_of_sampled_laplace_steps(way: str) -> None:
    """P(L > ε) of 12 steps, by convolution in the test; the tail is not δ, and needs limits of every loss."""
    loss = PrivacyLoss(((SampledLaplaceLoss(number("0.1"), ONE, way), 12),))  # type: ignore[arg-type]
    losses, chances = convolved([(*sampled_points(0.1, 1.0, "laplace", way), 12)], 2e-4)
    for epsilon in (0.1, 0.3):
        found = loss.tail(epsilon)
        low, high = (float(chances[losses > epsilon + off].sum()) for off in (0.01, -0.01))
        assert low <= found.upper
        assert found.lower <= high
        assert found.upper - found.lower < 0.2


@pytest.mark.parametrize("step", [1e-3, 0.05, 0.3, 7.0])
@pytest.mark.parametrize("upper", [False, True])
def test_no_mass_is_lost_whatever_the_step(step: float, upper: bool) -> None:
    """Also if one cell has all of a loss, both atoms included: sums from below are at most 1, from above at least."""
    for loss in (
        SampledLaplaceLoss(number("0.1"), ONE, "remove"),
        SampledLaplaceLoss(number("0.1"), ONE, "add"),
        LaplaceLoss(ONE),
        GaussianLoss(number("0.3")),
        response("0.37")[0],
    ):
        cells = cells_of(loss, step, upper, Limits(1e-25))
        for law in (cells.first, cells.second):
            assert 1 - 1e-9 <= float(law[0].sum()) <= 1 + 1e-12
            assert 1 - 1e-12 <= float(law[1].sum()) <= 1 + 1e-9
        if upper:
            assert float(cells.spread.sum()) + float(cells.first[1][-1]) >= 1 - 1e-12


def test_a_small_loss_beside_a_large_one_changes_little() -> None:
    """Three rare steps beside Gaussian noise: between the noise alone and basic composition."""
    alone = PrivacyLoss(((GaussianLoss(number("1.01")), 1),)).epsilon_number(number("1.01e-8"))
    rare = SampledLaplaceLoss(number("6.59e-5"), number("2.19"), "remove")
    both = PrivacyLoss(((GaussianLoss(number("1.01")), 1), (rare, 3))).epsilon_number(number("1.01e-8"))
    assert alone.a <= both.b
    assert both.a <= alone.b + 3 * rare.pure.b
    assert both.delta <= 1e-4 * both.b
