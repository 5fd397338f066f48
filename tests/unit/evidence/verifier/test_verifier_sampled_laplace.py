"""The verifier's sampled Laplace steps: against formulas, convolution in the test, and what the prover finds."""

import math

import numpy as np
import pytest

from dpassay import certify, check, verify
from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic import lattice
from dpassay.evidence.verifier.arithmetic.lattice import Grid
from dpassay.evidence.verifier.arithmetic.numbers import ONE, ZERO, iv
from dpassay.evidence.verifier.noises.losses import Summed, Worst, pure_loss
from dpassay.evidence.verifier.sampling.laplace import SampledLaplace, sampled_laplace


def one_step(q: float, a: float, order: str, epsilon: float) -> float:
    """δ(ε) by the two atoms of the noise's loss u, and the density ¼e^((u−a)/2) between them, on a fine grid."""
    edges = np.linspace(-a, a, 400001)
    u = (edges[1:] + edges[:-1]) / 2
    with_it = np.concatenate([[math.exp(-a) / 2], np.exp((u - a) / 2) / 4 * (edges[1] - edges[0]), [0.5]])
    u = np.concatenate([[-a], u, [a]])
    without = with_it * np.exp(-u)
    mixed = (1 - q) * without + q * with_it
    p, r = (mixed, without) if order == "in" else (without, mixed)
    return float(np.maximum(0.0, p - math.exp(epsilon) * r).sum())


@pytest.mark.parametrize("order", ["in", "out"])
@pytest.mark.parametrize(("q", "a"), [(0.1, 1.0), (0.6, 3.0)])
def test_one_step(order: str, q: float, a: float) -> None:
    loss = SampledLaplace(iv.mpf(q), iv.mpf(a), order, 1, None)
    largest = math.log(1 - q + q * math.exp(a)) if order == "in" else -math.log(1 - q + q * math.exp(-a))
    assert float(loss.pure.mid) == pytest.approx(largest, rel=1e-14)
    for epsilon in (0.0, 0.4 * largest, 0.9 * largest):
        found = loss.delta(iv.mpf(epsilon), True)
        assert float(found.mid) == pytest.approx(one_step(q, a, order, epsilon), rel=1e-8)
    assert loss.delta(iv.mpf(largest * 1.0001), True).b <= 0


def many(q: float, a: float, order: str, count: int, epsilons: list[float]) -> list[float]:
    """δ(ε) of several steps: 60,001 points of u, each split between two places of a grid so that its mean stays."""
    u = np.linspace(-a, a, 60001)
    u = (u[1:] + u[:-1]) / 2
    still = np.concatenate([[0.5], np.exp(-(u + a) / 2) / 4 * 2 * a / 60000, [math.exp(-a) / 2]])
    raised = np.log(1 - q + q * np.exp(np.concatenate([[-a], u, [a]])))
    losses, chances = (raised, still * np.exp(raised)) if order == "in" else (-raised, still)
    step, length = 1e-4, 1 << 20
    below = np.floor(losses / step).astype(int)
    share, first = losses / step - below, int(below.min())
    one = np.bincount(below - first, chances * (1 - share), length) + np.bincount(
        below - first + 1, chances * share, length
    )
    total = np.fft.irfft(np.fft.rfft(one) ** count, length)
    at = step * (first * count + np.arange(length))
    return [float((total[at > e] * -np.expm1(e - at[at > e])).sum()) for e in epsilons]


@pytest.mark.parametrize("order", ["in", "out"])
def test_many_steps_on_any_grid(order: str) -> None:
    """A grid that fits badly, or is tilted badly, gives a weak bound, not a wrong one."""
    epsilons = [0.2, 0.8, 1.6]
    truth = many(0.1, 1.0, order, 30, epsilons)
    best = [0.0] * 3, [1.0] * 3
    for step in (0.3, 0.05, 0.011, 0.002):
        for tilt in (0.5, 3.0, 9.0, 40.0):
            grid = Grid(iv.mpf(step), iv.mpf(tilt))
            loss = SampledLaplace(iv.mpf("0.1"), ONE, order, 30, grid)
            for i, epsilon in enumerate(epsilons):
                low, high = float(loss.delta(iv.mpf(epsilon), False).a), float(loss.delta(iv.mpf(epsilon), True).b)
                assert low <= truth[i] * (1 + 1e-6)
                assert high >= truth[i] * (1 - 1e-6)
                best[0][i], best[1][i] = max(best[0][i], low), min(best[1][i], high)
    assert best[0] == pytest.approx(truth, rel=1e-3)
    assert best[1] == pytest.approx(truth, rel=1e-3)


def test_only_equal_coordinates_with_laplace_noise() -> None:
    one, grid = Summed(((lattice.LaplaceShift(ONE), 1),)), Grid(iv.mpf("0.01"), ONE)
    found = sampled_laplace(Worst([one]), iv.mpf("0.1"), 5, grid)
    assert isinstance(found, Worst)
    assert len(found.losses) == 2
    for other in (
        Summed(((lattice.LaplaceShift(ONE), 65),)),
        Summed(((lattice.LaplaceShift(ONE), 1), (lattice.LaplaceShift(iv.mpf(2)), 1))),
        Summed(((lattice.LaplaceShift(ONE, iv.mpf("0.1")), 1),)),
        Worst([one, one]),
        pure_loss(ONE),
    ):
        assert sampled_laplace(other, iv.mpf("0.1"), 5, grid) is None
    two = Summed(((lattice.LaplaceShift(ONE), 2),))
    assert sampled_laplace(two, iv.mpf("0.1"), 5, grid) is not None
    assert sampled_laplace(two, iv.mpf("0.1"), 1, grid) is None  # there its curve is known without a sum of steps
    assert sampled_laplace(one, iv.mpf("0.1"), 5, None) is None
    assert sampled_laplace(one, iv.mpf("0.1"), 1, None) is not None


def test_a_grid_with_too_many_cells_is_refused() -> None:
    loss = SampledLaplace(iv.mpf("0.1"), ONE, "in", 5, Grid(iv.mpf("1e-300"), ONE))
    with pytest.raises(CertificateError, match="too many"):
        loss.delta(ZERO, True)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("text", "delta", "dim"),
    [
        ("poisson(0.1) | clip(l1, 1) | laplace(1) | times(100)", "1e-5", 2),
        ("poisson(0.3) | clip(l1, 1) | laplace(1)", "1e-3", 3),
    ],
)
def test_both_verdicts_have_certificates(text: str, delta: str, dim: int) -> None:
    found = check(text, epsilon=1, delta=delta, dim=dim).epsilon
    assert found.upper - found.lower <= 2e-5 * found.upper
    for epsilon, word in ((found.upper * 1.002, "proven"), (found.lower * 0.998, "refuted")):
        verdict = check(text, epsilon=epsilon, delta=delta, dim=dim)
        assert verdict.word == word
        result = verify(certify(verdict))
        assert (result.ok, result.verdict) == (True, word)
