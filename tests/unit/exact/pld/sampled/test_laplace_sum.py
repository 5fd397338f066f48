"""Laplace noise behind Poisson sampling: several coordinates, and a record replaced.

Expected values are enclosures computed here from the definition: outputs in small cells with their exact probabilities
under both laws, losses rounded down or up to a fine grid, and steps convolved.
"""

import numpy as np
import pytest
from scipy.signal import fftconvolve

from dpassay import certify, check, verify
from dpassay.core.numbers import down, number, up
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss
from dpassay.exact.pld.sampled.laplace_sum import SampledSumLoss

STEP = 1e-4


def below(t, centre):
    """P(Laplace noise of scale 1 around a value ≤ t)."""
    gap = np.asarray(t) - centre
    tail = np.exp(-np.abs(gap)) / 2
    return np.where(gap < 0, tail, 1 - tail)


def delta_of_steps(losses, mass, steps, epsilon):
    """E[(1 − e^(ε − L))⁺] of the sum of some losses on the grid."""
    least = int(losses.min())
    one = np.bincount(losses - least, weights=mass)
    whole = one
    for _ in range(steps - 1):
        whole = np.maximum(0.0, fftconvolve(whole, one))
    total = (steps * least + np.arange(len(whole))) * STEP
    return float((whole * np.maximum(0.0, -np.expm1(epsilon - total))).sum())


def coordinates(rate, shift, copies, steps, epsilon, absent):
    """δ(ε), from below and from above, of a record that moves some coordinates, or of its absence."""
    t = np.linspace(0, shift, round(2 * shift / 1e-3) + 1)  # the noise's own loss at t is 2t − a
    ends = []
    for rounding, at in ((np.floor, t[:-1]), (np.ceil, t[1:])):
        laws = []
        for centre in (shift, 0.0):
            inner = np.diff(below(t, centre))
            places = np.concatenate([[-shift], 2 * at - shift, [shift]])
            masses = np.concatenate([[below(0.0, centre)], inner, [1 - below(shift, centre)]])
            index = rounding(np.round(places / STEP, 6)).astype(int)
            laws.append((int(index.min()), np.bincount(index - index.min(), weights=masses)))
        (least, moved), (_, still) = laws
        whole = [moved, still]
        for _ in range(copies - 1):
            whole = [np.maximum(0.0, fftconvolve(w, one)) for w, one in zip(whole, (moved, still), strict=True)]
        u = (copies * least + np.arange(len(whole[0]))) * STEP
        lost = np.log1p(rate * np.expm1(u))
        mass = whole[1] if absent else (1 - rate) * whole[1] + rate * whole[0]
        ends.append((lost, mass))
    (low, low_mass), (high, high_mass) = ends[::-1] if absent else ends
    sign = -1 if absent else 1
    least = delta_of_steps(np.floor(sign * low / STEP).astype(int), low_mass, steps, epsilon)
    return least, delta_of_steps(np.ceil(sign * high / STEP).astype(int), high_mass, steps, epsilon)


def opposites(rate, shift, steps, epsilon):
    """δ(ε), from below and from above, of a record against its opposite."""
    t = np.linspace(-shift, shift, round(2 * shift / 1e-4) + 1)
    edges = np.concatenate([[-np.inf], t, [np.inf]])
    mass = (1 - rate) * np.diff(below(edges, 0.0)) + rate * np.diff(below(edges, shift))

    def loss(at):
        ratios = [(1 - rate) + rate * np.exp(np.abs(at) - np.abs(at - v)) for v in (shift, -shift)]
        return np.log(ratios[0] / ratios[1])

    at = np.concatenate([[-shift], t, [shift]])
    low, high = loss(at[:-1]), loss(at[1:])
    found = (
        delta_of_steps(rounding(np.round(values / STEP, 6)).astype(int), mass, steps, epsilon)
        for rounding, values in ((np.floor, low), (np.ceil, high))
    )
    return tuple(found)


@pytest.mark.parametrize("way", ["remove", "add"])
@pytest.mark.parametrize(("rate", "shift", "copies", "steps"), [(0.5, 1, 3, 5), (0.1, 0.5, 4, 8), (0.2, 2, 2, 3)])
def test_several_coordinates(rate, shift, copies, steps, way):
    loss = PrivacyLoss(((SampledSumLoss(number(str(rate)), number(shift), copies, way), steps),))
    for epsilon in (0.0, 0.3, 0.9):
        least, most = coordinates(rate, shift, copies, steps, epsilon, way == "add")
        found = loss.delta_number(number(epsilon))
        assert down(found) <= most + 1e-12
        assert up(found) >= least - 1e-12
        assert up(found) - down(found) < 1e-3 * max(up(found), 1e-3)


def test_one_coordinate_is_the_known_loss():
    one, same = (
        PrivacyLoss(((component, 7),)).epsilon_number(number("1e-4"))
        for component in (
            SampledSumLoss(number("0.3"), number(1), 1, "remove"),
            SampledLaplaceLoss(number("0.3"), number(1), "remove"),
        )
    )
    assert one.a <= same.b
    assert same.a <= one.b


@pytest.mark.parametrize(("rate", "shift", "steps"), [(0.5, 1, 1), (0.5, 1, 6), (0.1, 2, 8), (0.9, 0.5, 3)])
def test_a_record_against_its_opposite(rate, shift, steps):
    loss = PrivacyLoss(((SampledLaplaceLoss(number(str(rate)), number(shift), "replace"), steps),))
    for epsilon in (0.0, 0.3, 0.9):
        least, most = opposites(rate, shift, steps, epsilon)
        found = loss.delta_number(number(epsilon))
        assert down(found) <= most + 1e-12
        assert up(found) >= least - 1e-12
        assert up(found) - down(found) < 1e-3 * max(up(found), 1e-3)


def test_no_two_records_of_a_ball_exceed_opposite_ones():
    """Point 11: H_γ of all pairs of vectors of an l1 ball in the plane, by sums over a grid of outputs."""
    t = np.arange(-12, 12, 0.05) + 0.025
    x, y = np.meshgrid(t, t)
    vectors = [(1.0, 0.0), (-1.0, 0.0), (0.5, 0.5), (0.5, -0.5), (0.3, 0.0), (0.0, 0.0), (0.0, 1.0), (-0.2, 0.7)]

    def law(v, rate):
        noise = [np.exp(-np.abs(x - c[0]) - np.abs(y - c[1])) for c in ((0.0, 0.0), v)]
        return sum(w * one / one.sum() for w, one in zip((1 - rate, rate), noise, strict=True))

    for rate in (0.2, 0.7):
        laws = [law(v, rate) for v in vectors]
        for gamma in (0.2, 0.6, 0.9, 1.0, 1.2, 1.7, 3.0):
            largest = np.maximum(0, laws[0] - gamma * laws[1]).sum()
            assert all(np.maximum(0, p - gamma * q).sum() <= largest + 1e-3 for p in laws for q in laws)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("text", "dim", "neighbours", "bounds"),
    [
        (
            "poisson(0.5) | clamp(0, 1) | laplace(1)",
            3,
            "add-remove-record",
            lambda e: coordinates(0.5, 1, 3, 4, e, False),
        ),
        ("poisson(0.5) | clamp(-1, 1) | laplace(1)", 1, "replace-record", lambda e: opposites(0.5, 1, 4, e)),
        ("poisson(0.5) | clip(l1, 1) | laplace(1)", 3, "replace-record", lambda e: opposites(0.5, 1, 4, e)),
    ],
)
def test_claims_about_steps_are_decided_and_certified(text, dim, neighbours, bounds):
    epsilon = 1.5
    least, most = bounds(epsilon)
    for delta, word in ((least * 0.99, "refuted"), (most * 1.01, "proven")):
        verdict = check(f"{text} | times(4)", epsilon=epsilon, delta=delta, dim=dim, neighbours=neighbours)
        assert verdict.word == word
        assert verify(certify(verdict)).verdict == word


def test_a_ball_of_another_norm_is_at_most_as_bad_as_its_l1_distance():
    """Records of l2 norm 1 in four dimensions move the sum by at most 2 in l1."""
    verdict = check("poisson(0.1) | clip(l2, 1) | laplace(2) | times(2)", epsilon=0.3, delta=0.02, dim=4)
    most = max(coordinates(0.1, 1.0, 1, 2, 0.3, absent)[1] for absent in (False, True))
    assert verdict.delta.upper <= most * 1.001
    assert verify(certify(verdict)).verdict == verdict.word
