"""Noise on whole numbers. Expected values come from sums over outputs, written here, and from dp-accounting."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from mpmath import mp, mpf

from dpassay.api import check
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import ZERO, Number, down, number, real, sqrt, up
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import examine, verify
from dpassay.exact.analysis import analyse
from dpassay.exact.mechanisms.integer_noise import broken_pair
from dpassay.exact.pld.noises.integer import DiscreteLaplaceLoss, surely_broken, whole_number
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.discrete_noise import DiscreteLaplace
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Ball, Box, Counted, MinMax, SensitivityBall
from forging import block, claim, lower, sealed

EPSILONS = ("0", "0.1", "0.37", "0.5", "0.9", "1.3")


def laplace_chances(scale: str) -> dict[int, mpf]:
    """P(t) by the definition, as far out as 40 digits go."""
    far = math.ceil(110 * float(scale)) + 40
    weights = {t: mp.exp(-abs(t) / mpf(scale)) for t in range(-far, far + 1)}
    total = sum(weights.values())
    return {t: weight / total for t, weight in weights.items()}


def summed_delta(chances: dict[int, mpf], shift: int, epsilon: str) -> mpf:
    """Σ max(0, P − e^ε Q) over all outputs."""
    rise = mp.exp(mpf(epsilon))
    return sum(max(mpf(0), p - rise * chances.get(t - shift, mpf(0))) for t, p in chances.items())


def losses_delta(chances: dict[int, mpf], shifts: tuple[int, ...], epsilon: str) -> mpf:
    """The same for independent coordinates, by adding up the losses of all outputs."""
    total = {0: (mpf(1), mpf(1))}  # by the loss's multiple of 1/scale: P and Q
    for shift in shifts:
        found: dict[int, tuple[mpf, mpf]] = {}
        for t, p in chances.items():
            q = chances.get(t - shift)
            if q is None:
                continue
            step = abs(t - shift) - abs(t)
            for loss, (one, other) in total.items():
                old = found.get(loss + step, (mpf(0), mpf(0)))
                found[loss + step] = old[0] + one * p, old[1] + other * q
        total = found
    return sum(max(mpf(0), p - mp.exp(mpf(epsilon)) * q) for p, q in total.values())


def enclosed(truth: mpf, value: Number, slack: str = "1e-30") -> bool:
    return bool(mpf(value.a) - mpf(slack) <= truth <= mpf(value.b) + mpf(slack))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("scale", "shift"), [("1", 1), ("2", 2), ("0.7", 3), ("4", 7), ("3", -2)])
def test_one_coordinate_by_summation(scale: str, shift: int, epsilon: str) -> None:
    with mp.workdps(40):
        loss = PrivacyLoss.of_shifts(DiscreteLaplace(scale), [(number(shift), 1)])
        truth, found = summed_delta(laplace_chances(scale), shift, epsilon), loss.delta_number(number(epsilon))
        assert enclosed(truth, found)
        assert found.delta < 1e-40


@pytest.mark.parametrize("shifts", [(1, 1, 1), (2, 2), (3, 1), (1, 2, 3)])
@pytest.mark.parametrize("epsilon", ["0", "0.4", "1.1"])
def test_several_coordinates_by_summation(shifts: tuple[int, ...], epsilon: str) -> None:
    with mp.workdps(40):
        truth = losses_delta(laplace_chances("2"), shifts, epsilon)
        loss = PrivacyLoss.of_shifts(DiscreteLaplace(2), [(number(shift), 1) for shift in shifts])
        found = loss.delta_number(number(epsilon))
        assert enclosed(truth, found)
        assert found.delta < 1e-4 * truth + 1e-30


def test_delta_is_that_of_laplace_noise_at_the_nodes() -> None:
    for node in range(6):
        found = DiscreteLaplaceLoss(5, number(2)).delta((5 - 2 * number(node)) / 2) if node < 3 else ZERO
        truth = 1 - math.exp(-node / 2) if node < 3 else 0
        assert down(found) <= truth * (1 + 1e-15)
        assert up(found) >= truth * (1 - 1e-15)


def test_the_mean_and_the_cells() -> None:
    with mp.workdps(40):
        chances = laplace_chances("3")
        truth = sum(p * (abs(t - 4) - abs(t)) / 3 for t, p in chances.items())
        assert enclosed(truth, DiscreteLaplaceLoss(4, number(3)).mean)
    for size in (2, 7, 10_000):
        cells = DiscreteLaplaceLoss(size, number(50)).cells(0.1, 1, upper=True)
        assert cells.mass.sum() == pytest.approx(1, abs=1e-12)
        assert (cells.mass * np.exp(-cells.centre)).sum() == pytest.approx(1, abs=1e-9)  # the masses under Q
        assert (cells.low <= cells.centre).all()
        assert (cells.centre <= cells.high).all()
        assert len(cells.mass) <= 4098


def test_dp_accounting_agrees() -> None:
    # Its answer is pessimistic, on a grid of 1e-4.
    theirs = privacy_loss_distribution.from_discrete_laplace_mechanism(0.4, sensitivity=3)
    profile = analyse(parse("counts(l1, 3) | discrete_laplace(2.5)"), Neighbours("query"))
    for epsilon in (0.0, 0.3, 0.8, 1.1):
        delta = profile.delta(number(epsilon))
        assert down(delta) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), abs=2e-4)
        assert up(delta) <= theirs.get_delta_for_epsilon(epsilon) + 1e-9


@pytest.mark.long(every=2)
@pytest.mark.parametrize("scale", ["0.4", "1", "3"])
def test_one_coordinate_is_the_worst_of_an_l1_distance(scale: str) -> None:
    # docs/proofs/discrete-laplace.md, point 6, and the growth of point 5.
    with mp.workdps(40):
        chances = laplace_chances(scale)
        for epsilon in ("0", "0.2", "1", "2.3"):
            whole = [summed_delta(chances, k, epsilon) for k in range(1, 6)]
            assert whole == sorted(whole)
            for shifts in ((1, 1), (2, 1), (1, 1, 1), (2, 2), (3, 1), (2, 1, 1), (3, 2), (4, 1)):
                assert losses_delta(chances, shifts, epsilon) <= whole[sum(shifts) - 1] + mpf("1e-35")


@pytest.mark.parametrize(
    ("text", "dim", "epsilon"),
    [
        ("counts(l1, 1) | discrete_laplace(1/0.7)", 1, 0.7),
        ("counts(l1, 3.9) | discrete_laplace(2)", 8, 1.5),
        ("counts(linf, 2) | discrete_laplace(4)", 8, 4),
        ("counts(l2, 2) | discrete_laplace(4)", 9, 1),  # four ones
        ("query(l1, 1) | round | discrete_laplace(1)", 1, 2),  # of 0.5 and 1.5 come 0 and 2
        ("onehot(6) | discrete_laplace(2)", 1, 1),
        ("bloom(32, 2) | discrete_laplace(2)", 1, 2),
        ("binary(1, 1) | discrete_laplace(2)", 1, 1.5),
        ("clamp(0, 5) | round | discrete_laplace(2)", 3, 7.5),
        ("clamp(-0.4, 5.4) | round | discrete_laplace(2)", 1, 2.5),
        ("clip(l2, 3) | round | discrete_laplace(2)", 1, 3),
        ("rows | clamp(0, 3) | round | discrete_laplace(2)", 4, 1.5),
        ("clamp(0, 2) | round | repeat(3) | discrete_laplace(2)", 1, 3),
        ("counts(l1, 1) | discrete_laplace(2) | decode", 3, 0.5),
    ],
)
def test_pure_epsilon_is_the_l1_distance_over_the_scale(text: str, dim: int, epsilon: float) -> None:
    pipeline = parse(text, dim)
    pure = analyse(pipeline, pipeline.neighbours).pure
    assert down(pure) <= epsilon * (1 + 1e-15)
    assert up(pure) >= epsilon * (1 - 1e-15)
    assert up(pure) - down(pure) < 1e-12 * epsilon


def test_a_histogram_with_a_record_more() -> None:
    for neighbours, epsilon in (("add-remove-record", 1), ("replace-record", 2)):
        pure = analyse(parse("onehot(4) | discrete_laplace(1)"), Neighbours(neighbours)).pure
        assert down(pure) == up(pure) == epsilon


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("query(l1, 1) | discrete_laplace(5)", 1),
        ("clip(l2, 1) | discrete_laplace(5)", 3),
        ("clip(linf, 2) | discrete_laplace(5)", 3),
        ("clamp(0, 4) | discrete_laplace(5)", 2),
        ("minmax | discrete_laplace(5)", 3),
        ("squash(tanh) | discrete_laplace(5)", 2),
        ("rows | clamp(0, 1) | discrete_laplace(5)", 4),
        ("clip(l2, 1) | repeat(2) | discrete_laplace(5)", 3),
        ("normalise | discrete_laplace(5)", 3),
    ],
)
def test_numbers_that_are_not_whole_are_given_away(text: str, dim: int) -> None:
    verdict = check(text, epsilon=100, delta="0.999", dim=dim)
    assert verdict.refuted
    gaps = verdict.witness.pair.first - verdict.witness.pair.second
    assert (gaps != np.rint(gaps)).any()
    assert "have no output in common" in verdict.reason
    assert verify(certify(verdict)).verdict == "refuted"


def test_a_real_pair_shows_that_numbers_are_not_whole() -> None:
    # The region is an outer bound only, but tanh of ±5/2, clamped, differs by a fraction.
    verdict = check("clip(l2, 5) | squash(tanh) | clamp(0, 1) | discrete_laplace(5)", epsilon=9, dim=4)
    assert verdict.refuted
    assert verify(certify(verdict)).verdict == "refuted"


def test_what_is_not_known_to_be_whole_stays_open() -> None:
    # In two dimensions min-max gives zeros and ones.
    assert check("minmax | discrete_laplace(5)", epsilon=9, dim=2).word == "open"


def test_rounding_after_the_noise_does_not_make_numbers_whole() -> None:
    assert check("clamp(0, 4) | discrete_laplace(5) | round", epsilon=100, dim=1).word == "open"
    # tanh 0 and tanh 4 differ by a fraction.
    verdict = check("clamp(0, 4) | round | squash(tanh) | discrete_laplace(5)", epsilon=9, dim=1)
    assert verdict.refuted
    assert verify(certify(verdict)).verdict == "refuted"


def test_broken_pairs_lie_in_their_regions() -> None:
    for region in (Ball(2, 3, 4), Box.cube(0, 4, 2), SensitivityBall(1, 6, 3), MinMax(3)):
        pair = broken_pair(region)
        assert pair is not None
        assert region.contains(pair.first)
        assert region.contains(pair.second)
        assert any(surely_broken(block.gap) for block in pair.blocks)
    assert broken_pair(MinMax(2)) is None


def test_what_is_a_whole_number() -> None:
    assert whole_number(number(-3)) == -3
    assert whole_number(number("0.1") * 10) == 1
    assert whole_number(sqrt(real(2)) ** 2) is None  # it may be another number next to 2
    assert not surely_broken(sqrt(real(2)) ** 2)
    assert surely_broken(number("2.5"))
    assert whole_number(number("1e300")) is None


@pytest.mark.parametrize(("p", "dim"), [(1, 1), (1, 3), (2, 2), (2, 3), (float("inf"), 2)])
@pytest.mark.parametrize("distance", ["0.5", "1", "1.5", "1.8", "2", "2.5", "3"])
def test_counts_differ_by_whole_vectors(p: float, dim: int, distance: str) -> None:
    region = Counted(SensitivityBall(p, distance, dim))
    inside = [m for m in itertools.product(range(4), repeat=dim) if np.linalg.norm(m, ord=p) <= float(distance) + 1e-12]
    for q in (1.0, 2.0, float("inf")):
        largest = max(np.linalg.norm(m, ord=q) for m in inside)
        assert down(region.diameter(q)) <= largest + 1e-12
        assert up(region.diameter(q)) >= largest - 1e-12
    assert up(region.diameter(1)) == pytest.approx(max(map(sum, inside)))
    if region.complete and p != 1:
        named = [sorted(pair.first, reverse=True) for pair in region.pairs()]
        assert all(any((np.array(n) >= sorted(m, reverse=True)).all() for n in named) for m in inside)


def test_counts_are_hidden_by_other_noise_too() -> None:
    assert check("counts(l1, 1.9) | laplace(1)", epsilon=1, dim=5).proven
    assert check("query(l1, 1.9) | laplace(1)", epsilon=1, dim=5).refuted
    verdict = check("counts(l1, 1.9) | laplace(1)", epsilon="0.99", dim=5)
    assert verdict.refuted
    assert verify(certify(verdict)).verdict == "refuted"
    assert check("counts(l2, 1.5) | gaussian(1)", epsilon=1, delta="0.2", dim=5).epsilon.upper == pytest.approx(
        check("query(l2, sqrt(2)) | gaussian(1)", epsilon=1, delta="0.2", dim=5).epsilon.upper
    )


@pytest.mark.long(every=3)
@pytest.mark.parametrize("claim", [{"epsilon": "0.9"}, {"epsilon": 1}, {"epsilon": "0.8", "delta": "0.01"}])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("counts(l1, 1) | discrete_laplace(1)", 1),
        ("counts(l1, 3) | discrete_laplace(3)", 4),
        ("counts(linf, 2) | discrete_laplace(8)", 4),
        ("counts(linf, 1) | discrete_laplace(8)", 8),
        ("query(l1, 1) | round | discrete_laplace(2)", 1),
        ("onehot(5) | discrete_laplace(2)", 1),
        ("clamp(0, 10) | round | discrete_laplace(20)", 2),
        ("counts(l1, 3) | discrete_laplace(30) | times(10)", 1),
    ],
)
def test_verdicts_have_certificates(text: str, dim: int, claim: dict[str, str]) -> None:
    verdict = check(text, dim=dim, **claim)
    assert verdict.word != "open"
    assert verify(certify(verdict)).verdict == verdict.word


def test_bad_input() -> None:
    with pytest.raises(InputError, match="discrete_laplace: scale must be positive"):
        parse("counts(l1, 1) | discrete_laplace(0)")
    with pytest.raises(InputError, match="put onehot"):
        parse("category(3) | discrete_laplace(1)")
    with pytest.raises(InputError, match="must be the first stage"):
        parse("clip(l2, 1) | counts(l1, 1) | discrete_laplace(1)", 2)
    with pytest.raises(InputError, match="sensitivity must be positive"):
        parse("counts(l1, 0) | discrete_laplace(1)")


def test_the_law() -> None:
    noise = DiscreteLaplace("1.7")
    t = np.arange(-40, 41)
    masses = np.exp(noise.log_density(t.astype(float)))
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    assert noise.cdf(t) == pytest.approx(np.cumsum(masses), abs=1e-9)
    assert noise.survival(t + 0.5) == pytest.approx(1 - np.cumsum(masses), abs=1e-9)
    assert math.sqrt((masses * t**2).sum()) == pytest.approx(noise.deviation, rel=1e-6)
    assert np.isneginf(noise.log_density(np.array([0.5])))


@pytest.mark.parametrize(
    ("before", "delta", "truth"),
    [
        ("round | clip(l2, 1)", 0, 2),  # -1, 0 and 1 are all that comes out: 2 apart at most, noise of scale 1
        # 1 or -1 comes out of clip with probability e^-1/2 at least, and e^-1 of the noise around both is alike.
        ("laplace(1) | clip(l2, 1)", 0.95, 0),
    ],
)
def test_values_reached_in_the_limit_alone_refute_nothing(before, delta, truth):
    verdict = check(f"{before} | discrete_laplace(1)", epsilon=3, delta=delta, dim=1)
    assert verdict.bounds.value.lower <= truth
    assert not verdict.refuted
    pair = [block(1, "0.5")]
    given = claim(f"{before} | discrete_laplace(1)", 3, delta, dim=1)
    noise = before.count("|") + 1
    assert not examine(sealed("refuted", given, lower("discrete-laplace", noise, 1000, pair, delta))).ok


def test_answers_that_cannot_move_lose_nothing():
    # Whole numbers that are at most 1/2 apart are equal.
    verdict = check("counts(l1, 0.5) | discrete_gaussian(1)", epsilon=1, delta="1e-5", dim=2)
    assert verdict.bounds.delta.upper == 0
    assert verify(certify(verdict)).ok


# One number, normalised, is −1 or 1, or 0 if it was 0.
@pytest.mark.parametrize(
    "before", ["normalise", "clamp(-2, 3) | normalise", "normalise | clip(l2, 1)", "round | normalise"]
)
@pytest.mark.parametrize(
    ("neighbours", "shift"), [("any", 2), ("replace-record", 2), ("add-remove-record", 1), ("user", 1), ("group(3)", 3)]
)
def test_one_number_that_is_normalised_is_whole(before: str, neighbours: str, shift: int) -> None:
    text = f"{before} | discrete_laplace(2)"
    pure = analyse(parse(text, 1), Neighbours(neighbours)).pure
    assert down(pure) == up(pure) == shift / 2
    for epsilon, word in ((shift * 0.5, "proven"), (shift * 0.499, "refuted")):
        assert verify(certify(check(text, epsilon=epsilon, dim=1, neighbours=neighbours))).verdict == word
    for epsilon in EPSILONS[1:3]:
        truth = float(summed_delta(laplace_chances("2"), shift, epsilon))
        found = check(text, epsilon=epsilon, delta="1e-9", dim=1, neighbours=neighbours).delta
        assert found.lower <= truth * (1 + 1e-12)
        assert found.upper >= truth * (1 - 1e-12)
        assert found.upper - found.lower < 1e-9


def test_copies_of_a_sign_are_whole_and_other_numbers_are_not() -> None:
    for dim, word in ((1, "proven"), (2, "refuted")):
        text = "normalise | repeat(2) | discrete_laplace(1)"
        verdict = check(text, epsilon=2, dim=dim, neighbours="add-remove-record")
        assert verdict.word == word
        assert verify(certify(verdict)).verdict == word
