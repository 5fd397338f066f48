"""The bounded Laplace mechanism. Expected values come from its densities, and a formula of Holohan's."""

import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay.api import check
from dpassay.core.guarantee import MetricDP
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import examine, verify
from dpassay.exact.analysis import analyse
from dpassay.exact.mechanisms.bounded_laplace import BoundedLaplaceLoss, pair_bound
from dpassay.pipeline.pair import Pair
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from forging import block, claim, lower, sealed


def densities(x: float, y: float, scale: float, low: float, high: float):
    """Both densities by the definition, each with its integral from mpmath."""

    def law(centre: float):
        centre = mpf(min(max(centre, low), high))
        total = mp.quad(lambda t: mp.exp(-abs(t - centre) / scale), sorted({mpf(low), centre, mpf(high)}))
        return lambda t: mp.exp(-abs(t - centre) / scale) / total

    return law(x), law(y)


def quadrature(x: float, y: float, scale: float, low: float, high: float, epsilon: float) -> mpf:
    p, q = densities(x, y, scale, low, high)
    rise = mp.exp(epsilon)

    def excess(t: mpf) -> mpf:
        return max(mpf(0), p(t) - rise * q(t))

    ends = sorted({mpf(low), mpf(high), *(mpf(min(max(v, low), high)) for v in (x, y))})
    cuts = [a + (b - a) * k / 64 for a, b in pairwise(ends) for k in range(64)] + [ends[-1]]
    return mp.quad(excess, cuts)


CASES = [(0.0, 1.0, 1.0, 0.0, 10.0), (1.0, 0.0, 1.0, 0.0, 2.0), (0.3, 1.9, 0.7, 0.0, 2.0), (-4.0, 1.0, 2.0, 0.0, 1.0)]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_delta_of_a_pair_by_quadrature(case: tuple[float, ...], epsilon: float) -> None:
    x, y, scale, low, high = case
    loss = pair_bound(BoundedLaplace(scale, low, high), Pair.of([x], [y])).losses[0]
    truth, found = quadrature(*case, epsilon), loss.delta_number(number(epsilon))
    assert down(found) == pytest.approx(float(truth), abs=2e-5)
    assert up(found) - down(found) < 1e-15


@pytest.mark.parametrize("case", CASES)
def test_the_largest_loss_and_the_mean_by_quadrature(case: tuple[float, ...]) -> None:
    x, y, scale, low, high = case
    (component, _) = pair_bound(BoundedLaplace(scale, low, high), Pair.of([x], [y])).losses[0].components[0]
    p, q = densities(*case)
    grid = np.linspace(low, high, 401)
    largest = max(float(mp.log(p(t) / q(t))) for t in grid)
    assert down(component.pure) == pytest.approx(largest, rel=1e-9)
    ends = sorted({mpf(low), mpf(high), *(mpf(min(max(v, low), high)) for v in (x, y))})
    mean = mp.quad(lambda t: p(t) * mp.log(p(t) / q(t)), ends)
    assert float(component.mean.mid) == pytest.approx(float(mean), rel=1e-9)


def test_cells_have_the_masses_of_both_laws() -> None:
    component = BoundedLaplaceLoss(number("0.3"), number(2), number(5))
    cells = component.cells(0.1, 1, upper=True)
    assert cells.mass.sum() == pytest.approx(1, abs=1e-12)
    assert (cells.mass * np.exp(-cells.centre)).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("scale", "high", "distance"), [(1, 10, 1), (1, 2, 1), (0.5, 4, 3), (2, 1, 1), (3, 1, 7)])
def test_holohan(scale: float, high: float, distance: float) -> None:
    # Theorem 3.5 of their paper: ε = Δ/b + ln ΔC, ΔC = C(l + Δ)/C(l).
    def inside(x: float) -> float:
        return 1 - (math.exp(-x / scale) + math.exp(-(high - x) / scale)) / 2

    apart = min(distance, high)
    epsilon = apart / scale + math.log(inside(apart) / inside(0))
    pipeline = parse(f"query(l1, {distance}) | bounded_laplace({scale}, 0, {high})", 1)
    pure = analyse(pipeline, pipeline.neighbours).pure
    assert down(pure) == pytest.approx(epsilon, rel=1e-12)
    assert up(pure) == pytest.approx(epsilon, rel=1e-12)


def test_the_scale_of_laplace_noise_is_too_small() -> None:
    verdict = check("query(l1, 1) | bounded_laplace(1/eps, 0, 10)", epsilon=1, dim=1)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(1.48984991, rel=1e-8)
    assert verify(certify(verdict)).verdict == "refuted"
    assert check("query(l1, 1) | laplace(1/eps) | clamp(0, 10)", epsilon=1, dim=1).proven
    assert "because the probability of landing there depends on the input" in verdict.reason


@pytest.mark.parametrize("epsilon", ["0", "0.4", "1", "1.3", "1.48"])
def test_wherever_a_pair_of_answers_lies(epsilon: str) -> None:
    pipeline = parse("query(l1, 1) | bounded_laplace(1, 0, 10)", 1)
    delta = analyse(pipeline, pipeline.neighbours).delta(number(epsilon))
    places = np.concatenate([np.geomspace(1e-6, 9, 400), [0, 4.5]])
    losses = [BoundedLaplaceLoss(number(x), number(1), number(10)) for x in places.tolist()]
    truth = max(up(loss.delta(number(epsilon))) for loss in losses)
    assert truth <= up(delta) <= truth * 1.01 + 1e-12
    assert truth * 0.9 <= down(delta) <= truth * (1 + 1e-3)  # places between those tried here may show more


@pytest.mark.parametrize(
    ("text", "dim", "epsilon"),
    [
        ("bounded_laplace(2, 0, 3)", 1, 1.5),  # any two inputs: the limits
        ("bounded_laplace(2, 0, 3)", 4, 6),
        ("clamp(0, 3) | bounded_laplace(2, -1, 4)", 2, 3),  # evenly between the limits: no more than Laplace noise
        ("clamp(0, 3) | bounded_laplace(2, 0, 3)", 2, 3),
        ("onehot(5) | bounded_laplace(2, 0, 1)", 1, 1),
        ("rows | clamp(0, 3) | bounded_laplace(2, 0, 3)", 5, 1.5),
        ("clamp(0, 3) | repeat(2) | bounded_laplace(2, 0, 3)", 1, 3),
    ],
)
def test_pure_epsilon(text: str, dim: int, epsilon: float) -> None:
    pipeline = parse(text, dim)
    pure = analyse(pipeline, pipeline.neighbours).pure
    assert down(pure) == pytest.approx(epsilon, rel=1e-12)
    assert up(pure) == pytest.approx(epsilon, rel=1e-12)


def test_limits_that_are_not_even() -> None:
    # C(1) over C(3), limits 0 and 4, scale 1, values from 0.5 to 1; the worse order.
    def inside(x: float) -> float:
        return 2 - math.exp(-x) - math.exp(x - 4)

    epsilon = 0.5 + math.log(inside(1) / inside(0.5))
    for dim in (1, 3):
        pure = analyse(parse("clamp(0.5, 1) | bounded_laplace(1, 0, 4)", dim), parse("laplace(1)", 1).neighbours).pure
        assert down(pure) == pytest.approx(dim * epsilon, rel=1e-12)
        assert up(pure) == pytest.approx(dim * epsilon, rel=1e-12)


def test_several_coordinates_at_a_delta() -> None:
    # Two coordinates, by a sum over a fine grid of the losses of one.
    pipeline = parse("clamp(0, 1) | bounded_laplace(2, 0, 1)", 2)
    t = (np.arange(4000) + 0.5) / 4000
    p = np.exp(-t / 2) / np.exp(-t / 2).sum()
    q = p[::-1]
    joint = np.maximum(0, np.outer(p, p) - math.exp(0.3) * np.outer(q, q)).sum()
    delta = analyse(pipeline, pipeline.neighbours).delta(number("0.3"))
    assert down(delta) == pytest.approx(joint, rel=1e-3)
    assert up(delta) == pytest.approx(joint, rel=1e-3)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("claim", [{"epsilon": "0.9"}, {"epsilon": "1.5"}, {"epsilon": "0.7", "delta": "0.02"}])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("query(l1, 1) | bounded_laplace(1, 0, 10)", 1),
        ("bounded_laplace(2, 0, 2)", 1),
        ("clamp(0, 1) | bounded_laplace(4, 0, 1)", 4),
        ("clamp(0, 1) | bounded_laplace(1, -1, 3)", 1),
        ("rows | clamp(0, 1) | bounded_laplace(1, 0, 1)", 3),
    ],
)
def test_verdicts_have_certificates(text: str, dim: int, claim: dict[str, str]) -> None:
    verdict = check(text, dim=dim, **claim)
    assert verdict.word != "open"
    assert verify(certify(verdict)).verdict == verdict.word


def test_nothing_is_known_of_what_rounding_leaves() -> None:
    verdict = check("clamp(0, 1) | bounded_laplace(1, 0, 1) | round", epsilon="0.5", dim=1)
    assert verdict.word == "open"
    assert verdict.epsilon.upper == pytest.approx(1)


def test_the_density_and_bad_input() -> None:
    noise = BoundedLaplace("0.7", -1, 2)
    t = np.linspace(-1, 2, 30_001)
    for centre in (0.3, -1.0, 5.0):
        density = np.exp(noise.distribution(np.array([centre])).log_likelihood(t[:, None]))
        assert np.trapezoid(density, t) == pytest.approx(1, abs=1e-6)
    with pytest.raises(InputError, match="a finite lower limit below the upper one, got 3 and 1"):
        parse("query(l1, 1) | bounded_laplace(1, 3, 1)", 1)
    with pytest.raises(InputError, match="bounded_laplace: scale must be positive"):
        parse("query(l1, 1) | bounded_laplace(0, 0, 1)", 1)
    with pytest.raises(InputError, match="put onehot"):
        parse("category(3) | bounded_laplace(1, 0, 1)")


@pytest.mark.parametrize("before", ["onehot(3)", "minmax"])
def test_coordinates_that_move_in_opposite_directions_have_a_certificate(before):
    # (1, 0) against (0, 1), limits 0 and 1: no constant depends on the input, and each coordinate loses 1.
    text, dim = f"{before} | bounded_laplace(1, 0, 1)", 1 if before == "onehot(3)" else 2
    refuted = check(text, epsilon="1.99", dim=dim)
    assert refuted.refuted
    assert verify(certify(refuted)).ok
    pair = [block(1, 0), block(0, 1), *([block(0, 0)] if before == "onehot(3)" else [])]
    for epsilon, holds in ((2.01, False), (1.99, True)):
        given = claim(text, epsilon, dim=dim)
        assert examine(sealed("refuted", given, lower("bounded-laplace", 1, epsilon + 0.001, pair))).ok is holds


def test_per_unit_of_distance_it_loses_twice_what_laplace_noise_does():
    verdict = check("bounded_laplace(1, 0, 3)", guarantee=MetricDP(1, "l1"), dim=2)
    assert verdict.refuted
    assert verdict.epsilon.upper == pytest.approx(2)
