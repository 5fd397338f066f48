"""Sampled and repeated steps in the verifier: what follows is accepted, what is a little more is not."""

import math

import pytest

from dpassay import CertificateError, verify
from dpassay.evidence.verifier.arithmetic.numbers import ONE, ZERO, middle, number
from dpassay.evidence.verifier.noises.losses import gaussian_loss
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.sampling.sampled import Sampled
from dpassay.evidence.verifier.sampling.steps import SampledSteps, repeated
from forging import block, claim, exactly, lower, sealed, upper

SGD = "poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)"
GRID = {"step": exactly("0.0005"), "tilt": exactly("3")}
ADDED, REPLACED = {"neighbours": "add-remove-record"}, {"neighbours": "replace-record"}
VECTOR = "0.99999999999999999999999999999999999"


def phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


@pytest.mark.parametrize(("order", "epsilon"), [("in", 1.0), ("out", 0.05), ("both", 1.0), ("fixed", 1.0)])
def test_many_steps_on_the_lattice_are_one_by_its_formula(order, epsilon):
    """The closed form of one step judges the cells, the folding and the transforms."""
    from dpassay.evidence.verifier.sampling.sampled import _lower, _upper, largest_at

    truth = middle(Sampled(number("0.1"), ONE, order, 1, None).delta(number(epsilon), True))
    curves = [bound(0.1, 1.0, order, 1, 1 / 1024, 2.0) for bound in (_lower, _upper)]
    low, high = largest_at(curves[0], epsilon, False), largest_at(curves[1], epsilon, True)
    # 0.1 as a double lies 5e-18 above 0.1.
    assert low <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= high
    assert high - low <= 1e-3 * truth


@pytest.mark.parametrize(("epsilon", "holds"), [("1.8287", True), ("1.8275", False)])
def test_upper_bounds_are_as_good_as_the_truth_and_no_better(epsilon, holds):
    """The truth is 1.8282, by dp-accounting."""
    certificate = sealed(
        "proven", claim(SGD, epsilon, "1e-5", **ADDED), upper("poisson", 2, epsilon, "1e-5", grid=GRID)
    )
    if holds:
        assert verify(certificate).ok
    else:
        with pytest.raises(CertificateError, match="does not follow"):
            verify(certificate)


@pytest.mark.parametrize(("epsilon", "holds"), [("1.8275", True), ("1.8287", False)])
def test_lower_bounds_are_as_good_as_the_truth_and_no_better(epsilon, holds):
    shown = lower("poisson", 2, epsilon, [block(VECTOR, 0)], "1e-5", grid=GRID)
    certificate = sealed("refuted", claim(SGD, 1, "1e-5", **ADDED), shown)
    if holds:
        assert verify(certificate).ok
    else:
        with pytest.raises(CertificateError, match="does not follow"):
            verify(certificate)


@pytest.mark.parametrize(
    ("text", "relation", "step", "message"),
    [
        (SGD, ADDED, upper("gaussian", 2, 1, "1e-5", grid=GRID), "does not follow"),
        (SGD, ADDED, upper("fixed-size", 2, 1, "1e-5", grid=GRID), "does not apply to these steps"),
        (SGD, ADDED, upper("optimal-composition", 2, 1, "1e-5"), "does not apply to these steps"),
        (SGD, ADDED, upper("poisson", 2, 2, "1e-5"), "needs a grid"),
        ("clip(l2, 1) | gaussian(1)", REPLACED, upper("poisson", 1, 9, "1e-5"), "does not apply to these steps"),
        (
            "shuffle(10) | clip(l2, 1) | gaussian(1)",
            REPLACED,
            upper("poisson", 2, 9, "1e-5"),
            "does not apply to these steps",
        ),
        (
            SGD,
            REPLACED,
            lower("poisson", 2, 1, [block("0.9", "-0.8")], "1e-5", grid=GRID),
            "does not follow",
        ),
        (
            "subsample(1, 10) | clip(l2, 1) | gaussian(1)",
            REPLACED,
            lower("shuffle", 2, 1, [block("0.9", "-0.9")], "1e-5", thresholds=[exactly(3)]),
            "does not say what a pair shows",
        ),
        (
            "poisson(0.5) | clamp(0, 1) | onesided(1)",
            ADDED,
            lower("one-sided", 2, 1, [block("0.5", 0)], "1e-5"),
            "unless both orders are equal",
        ),
    ],
)
def test_what_does_not_follow_is_refused(text, relation, step, message):
    with pytest.raises(CertificateError, match=message):
        verify(sealed("open", claim(text, 1, "1e-5", **relation), step))


@pytest.mark.parametrize(
    ("text", "relation", "message"),
    [
        ("poisson(0) | gaussian(1)", ADDED, "rate must be above 0"),
        ("poisson(1.5) | gaussian(1)", ADDED, "must be from 0 to 1"),
        ("encode | poisson(0.5) | gaussian(1)", ADDED, "poisson must be the first stage"),
        ("gaussian(1) | times(2) | decode", ADDED, "times must be the last stage"),
        ("gaussian(1) | times(0)", ADDED, "must be a whole number from 1"),
        ("subsample(3, 2) | gaussian(1)", REPLACED, "m must be at most n"),
        ("poisson(0.5) | gaussian(1)", {"neighbours": "any"}, "poisson does not apply to the neighbors any"),
        ("shuffle(5) | gaussian(1)", ADDED, "shuffle does not apply to the neighbors add-remove-record"),
    ],
)
def test_texts_that_make_no_sense_are_refused(text, relation, message):
    with pytest.raises(CertificateError, match=message):
        verify(sealed("open", claim(text, 1, "1e-5", **relation)))


def test_repeated_gaussian_noise_is_gaussian():
    assert middle(repeated(gaussian_loss(ONE), 4, True).mu) == 2


def test_what_is_not_sampled_needs_no_theorem_of_its_own():
    steps = SampledSteps(1, "", ONE, 1, replaced=True)
    loss = gaussian_loss(ONE)
    assert steps.upper(Step("upper", theorem="gaussian"), loss) is loss
    assert middle(loss.delta(ZERO, True)) == pytest.approx(2 * phi(0.5) - 1)
