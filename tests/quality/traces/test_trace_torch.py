"""A trace names each fault of real code in torch and leaves the code beside it alone."""

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import trace_torch as code
from dpassay.trace.runner import trace

X, Y = [0.6, -0.2, 0.1], [-0.3, 0.1, -0.5]
L1, L2 = 0.9 + 0.3 + 0.6, math.sqrt(0.81 + 0.09 + 0.36)

FAULTS: dict[str, tuple[Any, str, float]] = {
    "one number for all coordinates": (code.shared_number, "shared-noise", math.inf),
    "one number for each row": (code.shared_column, "shared-noise", math.inf),
    "fixed seed": (code.fixed_seed, "fixed-seed", math.inf),
    "noise made in the first call": (code.NoisyLayer(8.5, made_once=True), "noise-made-once", math.inf),
    "1/eps and eps swapped": (code.swapped, "loss-too-large", L1 / 0.5),
}


@pytest.mark.long(every=12)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refuted_at_its_line(fault: str) -> None:
    subject, rule, epsilon = FAULTS[fault]
    result = trace(subject, [X, Y], epsilon=1)
    assert result.verdict.refuted
    assert result.rules[0] == rule
    assert result.findings[0].place is not None
    assert result.findings[0].place.file == code.__file__
    assert result.traced_epsilon.lower == pytest.approx(epsilon, rel=1e-6)
    assert 1 < result.pair_epsilon.lower <= epsilon


@pytest.mark.long(every=5)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("subject", [code.original, code.appended])
def test_what_goes_around_the_noise_is_refuted_by_counting(subject: Any) -> None:
    result = trace(subject, [X, Y], epsilon=1)
    assert (result.verdict.refuted, result.rules) == (True, ("leak",))


@pytest.mark.long(every=5)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("right", [code.laplace, code.laplace_as_list])
def test_right_code_is_left_alone(right: Any) -> None:
    result = trace(right, [X, Y], epsilon=1)
    assert (result.verdict.open, result.rules) == (True, ())
    assert result.traced_epsilon.lower == pytest.approx(L1 / 2, rel=1e-6)
    assert (result.pair_epsilon.lower, result.pair_epsilon.upper) == (0, pytest.approx(L1 / 2, rel=1e-6))


@pytest.mark.long(every=77)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("right", [code.in_place, code.deviation, code.by_distribution, code.NoisyLayer(8.5)])
def test_gaussian_noise_is_left_alone(right: Any) -> None:
    result = trace(right, [X, Y], epsilon=1, delta=1e-5)
    assert (result.verdict.open, result.rules) == (True, ())
    assert result.pipeline == f"l2 norm at most {math.sqrt(0.41):.6g} on 2 inputs | gaussian(8.5)"
    assert result.pair_epsilon.upper < 1


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_a_residual_doubles_the_shift() -> None:
    """With a shift of 2·1.12 and a deviation of 2.24, μ is 1."""
    mu_1 = 4.377178  # ε at δ = 1e-5 of 1-GDP, by the formula of Balle and Wang
    result = trace(code.NoisyLayer(2 * L2, residual=True), [X, Y], epsilon=1, delta=1e-5)
    assert (result.verdict.refuted, result.rules) == (True, ("loss-too-large",))
    assert result.traced_epsilon.lower == pytest.approx(mu_1, rel=1e-5)


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_the_variance_is_not_the_deviation() -> None:
    result = trace(code.variance, [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], epsilon=0.3, delta=1e-5)
    assert (result.verdict.refuted, result.rules) == (True, ("loss-too-large",))


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_what_comes_after_the_noise_loses_no_more_than_the_sums() -> None:
    result = trace(code.greatest, [X, Y], epsilon=1)
    assert (result.verdict.open, result.rules, result.pair_epsilon.lower) == (True, (), 0)
    assert result.pair_epsilon.upper <= L1 / 2 * (1 + 1e-6)


@pytest.mark.long(every=77)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("right", [code.one_by_one, code.noise_put_together, code.by_items, code.inverse_cdf])
def test_noise_is_followed_through_lists_and_formulas(right: Any) -> None:
    result = trace(right, [X, Y], epsilon=1)
    assert (result.verdict.word, result.rules) == ("open", ())
    assert result.traced_epsilon.lower == pytest.approx(L1 / 2, rel=1e-6)
    assert (result.pair_epsilon.lower, result.pair_epsilon.upper) == (0, pytest.approx(L1 / 2, rel=1e-6))


MORE_FAULTS: dict[str, tuple[Any, str, float]] = {
    "the formula for (−½, ½) on (0, 1)": (code.wrong_uniform, "wrong-formula", math.inf),
    "its NaN replaced": (code.wrong_uniform_replaced, "wrong-formula", math.inf),
    "a tensor full of one number": (code.full_of_one, "shared-noise", math.inf),
    "rounded before the noise": (code.rounded_before, "loss-too-large", 1 / 0.5),
    "dropout": (code.dropout, "loss-too-large", math.inf),
    "top-k before sampling": (code.top_k, "loss-too-large", math.inf),
    "sampling after a public argmax": (code.temperature_after_argmax, "loss-too-large", math.inf),
}


@pytest.mark.long(every=77)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("fault", MORE_FAULTS)
def test_more_faults_are_refuted(fault: str) -> None:
    subject, rule, epsilon = MORE_FAULTS[fault]
    result = trace(subject, [X, Y], epsilon=1)
    assert (result.verdict.word, result.rules[0]) == ("refuted", rule)
    assert result.findings[0].place is not None
    assert result.findings[0].place.file == code.__file__
    assert result.traced_epsilon.lower == pytest.approx(epsilon, rel=1e-6)
    assert 1 < result.pair_epsilon.lower <= epsilon


FAR = [[5.0, 5.0, 0.0], [-5.0, -5.0, 0.0]]


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_bounding_after_the_noise_and_not_before() -> None:
    """At 5 and −5 P(v ≥ 1) is 1 − e^(−2)/2 and e^(−3)/2, with a scale of 2; for each of two numbers."""
    wrong = trace(code.clipped_after, FAR, epsilon=1)
    assert (wrong.verdict.word, wrong.rules) == ("refuted", ("loss-too-large",))
    expected = 2 * math.log((1 - math.exp(-2) / 2) / (math.exp(-3) / 2))
    assert wrong.traced_epsilon.lower == pytest.approx(expected, rel=1e-6)
    assert trace(code.clamped, FAR, epsilon=1).verdict.open


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_norms() -> None:
    wrong = trace(code.wrong_norm, FAR, epsilon=1)
    assert (wrong.verdict.word, wrong.rules) == ("refuted", ("loss-too-large",))
    assert wrong.traced_epsilon.lower == pytest.approx(4 / math.sqrt(2) / 2, rel=1e-6)
    inputs = [[5.0, 0.0, 5.0, 0.0], [-5.0, 0.0, -5.0, 0.0]]
    singly = trace(code.clipped_singly, inputs, epsilon=1)
    assert (singly.verdict.word, singly.rules) == ("refuted", ("loss-too-large",))
    assert singly.traced_epsilon.lower == pytest.approx(2, rel=1e-6)
    assert trace(code.clipped_together, inputs, epsilon=1).rules == ()


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_nan_that_is_replaced_after_the_noise() -> None:
    inputs = [[math.nan, 0.0, 0.0], [0.5, 0.0, 0.0]]
    assert trace(code.nan_replaced, inputs, epsilon=1).rules == ("leak",)
    assert trace(code.nan_replaced_first, inputs, epsilon=1).rules == ()


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_tokens() -> None:
    def logs(x: list[float], most: float) -> list[float]:
        weights = [math.exp(max(-most, min(most, v))) for v in x]
        return [math.log(w / sum(weights)) for w in weights]

    def loss(one: list[float], other: list[float], most: float) -> float:
        return max(abs(a - b) for a, b in zip(logs(one, most), logs(other, most), strict=True))

    for right in (code.token, code.token_by_distribution):
        result = trace(right, [X, Y], epsilon=1)
        assert (result.verdict.word, result.rules) == ("open", ())
        assert result.pair_epsilon.upper == pytest.approx(loss(X, Y, 0.25), rel=1e-4)
    for wrong, times in ((code.unclipped, 1), (code.unclipped_sequence, 2)):
        result = trace(wrong, FAR, epsilon=1)
        assert (result.verdict.word, result.rules) == ("refuted", ("loss-too-large",))
        assert result.traced_epsilon.lower == pytest.approx(times * loss(*FAR, 9), rel=1e-4)
