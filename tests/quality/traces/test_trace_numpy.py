"""A trace names each fault of real code in numpy and leaves the code beside it alone."""

import math
from typing import Any

import numpy as np
import pytest

import trace_numpy as code
from dpassay.errors import InputError
from dpassay.trace.runner import trace

L1, L2 = 0.9 + 0.3 + 0.6, math.sqrt(0.81 + 0.09 + 0.36)

# For each fault what is traced, the rule, and the ε of the pair as the noise was watched.
FAULTS: dict[str, tuple[Any, str, float]] = {
    "one number for all coordinates": (code.shared_number, "shared-noise", math.inf),
    "one number for each row": (code.shared_column, "shared-noise", math.inf),
    "noise made in the first call": (code.MadeOnce(), "noise-made-once", math.inf),
    "fixed seed": (code.fixed_seed, "fixed-seed", math.inf),
    "fixed seed of the process": (code.legacy_seed, "fixed-seed", math.inf),
    "a fixed seed of what is held": (code.HELD, "fixed-seed", L1 / 2),
    "1/eps and eps swapped": (code.swapped, "loss-too-large", L1 / 0.5),
    "a residual around the noise": (code.residual, "loss-too-large", 2 * L1 / 2),
    "a residual after noise in place": (code.in_place_residual, "loss-too-large", 2 * L1 / 2),
    "noise used twice": (code.reused, "noise-reused", math.inf),
    "the noise is returned": (code.noise_returned, "noise-reused", math.inf),
    "too little, by location": (code.located_too_little, "loss-too-large", L1 / 0.5),
}
# What is found by counting runs, which show an ε above the claim of 1.
COUNTED = {
    "noise made with the object": (code.MadeBefore(), "no-noise"),
    "the largest number beside the noise": (code.appended, "leak"),
    "the original is returned": (code.original, "leak"),
    "the noise is taken away again": (code.cancelled, "leak"),
}
# For each right one what is traced and the exact ε of the pair.
TWINS: dict[str, tuple[Any, float]] = {
    "laplace": (code.laplace, L1 / 2),
    "sums that move together": (code.column_of_sums, 1.2 / 2),
    "a generator that is held": (code.HeldGenerator(), L1 / 2),
    "the process's generator": (code.legacy, L1 / 2),
    "scipy": (code.from_scipy, L1 / 2),
    "the budget is split": (code.split_budget, L1 / 4 + (0.3 + 0.4 + 0.5) / 4),
    "by location": (code.located, L1 / 2),
    "a transformer": (code.Transformer(), L1 / 2),
    "a list": (code.as_a_list, L1 / 2),
    "the mean": (code.mean_of_rows, 1.2 / 2),
    "a formula": (code.by_inverse_cdf, L1 / 2),
    "number by number": (code.collected, L1 / 2),
}


@pytest.mark.long(every=14)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refuted_at_its_line(fault: str) -> None:
    subject, rule, epsilon = FAULTS[fault]
    result = trace(subject, [code.X, code.Y], epsilon=1)
    assert result.verdict.refuted
    assert result.rules[0] == rule
    assert result.findings[0].place is not None
    assert result.findings[0].place.file == code.__file__
    assert f"trace_numpy.py:{result.findings[0].place.line}" in str(result.verdict)
    assert result.traced_epsilon.lower == pytest.approx(epsilon, rel=1e-12)
    assert result.pair_epsilon.lower > 1
    assert "; counted: " in result.findings[0].message


@pytest.mark.long(every=14)
@pytest.mark.parametrize("fault", COUNTED)
@pytest.mark.usefixtures("patient")
def test_what_goes_around_the_noise_is_refuted_by_counting(fault: str) -> None:
    subject, rule = COUNTED[fault]
    result = trace(subject, [code.X, code.Y], epsilon=1)
    assert result.verdict.refuted
    assert rule in result.rules
    assert 1 < result.pair_epsilon.lower < 10  # of a few runs, whatever the loss is


@pytest.mark.long(every=14)
@pytest.mark.parametrize("right", TWINS)
@pytest.mark.usefixtures("patient")
def test_right_code_is_left_alone(right: str) -> None:
    subject, epsilon = TWINS[right]
    result = trace(subject, [code.X, code.Y], epsilon=1)
    assert result.verdict.open
    assert result.rules == ()
    assert result.traced_epsilon.lower == pytest.approx(epsilon, rel=1e-9)
    assert result.traced_epsilon.upper == pytest.approx(epsilon, rel=1e-9)
    assert result.pair_epsilon.lower == 0
    assert result.pair_epsilon.upper == pytest.approx(epsilon, rel=1e-9)
    assert result.apart_from < 1


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_the_variance_is_not_the_deviation() -> None:
    wrong = trace(code.variance, [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], epsilon=0.3, delta=1e-5)
    assert wrong.rules == ("loss-too-large",)
    assert wrong.verdict.refuted
    for right in (code.gaussian, code.one_by_one):
        result = trace(right, [code.X, code.Y], epsilon=1, delta=1e-5)
        assert (result.verdict.open, result.rules) == (True, ())
        assert result.pair_epsilon.upper < 1


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_the_wrong_norm() -> None:
    side = 1 / math.sqrt(3)
    result = trace(code.wrong_norm, [[side] * 3, [-side] * 3], epsilon=1)
    assert result.rules == ("loss-too-large",)
    assert result.traced_epsilon.lower == pytest.approx(6 * side / 2)
    assert trace(code.laplace, [[side] * 3, [-side] * 3], epsilon=1).verdict.open


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_what_comes_after_the_noise_loses_no_more_than_the_sums() -> None:
    right = trace(code.greatest, [code.X, code.Y], epsilon=1)
    assert (right.verdict.open, right.rules) == (True, ())
    assert loss_of_the_greatest() * (1 - 1e-6) <= right.pair_epsilon.upper <= L1 / 2 * (1 + 1e-9)
    wrong = trace(code.greatest, [code.X, code.Y], epsilon=0.1)
    assert wrong.verdict.refuted
    assert 0.1 < wrong.pair_epsilon.lower <= loss_of_the_greatest()


def loss_of_the_greatest() -> float:
    """The probability that a number is the greatest is ∫ f(v − c_i) Π F(v − c_j) dv, with Laplace noise of scale 2."""

    def probabilities(x: list[float]) -> list[float]:
        v = np.linspace(-60, 60, 600_001)
        others = [np.where(v < c, np.exp((v - c) / 2) / 2, 1 - np.exp((c - v) / 2) / 2) for c in x]
        found = []
        for i, c in enumerate(x):
            density = np.exp(-np.abs(v - c) / 2) / 4 * np.prod([o for j, o in enumerate(others) if j != i], axis=0)
            found.append(float(density.sum() * (v[1] - v[0])))
        return found

    return max(abs(math.log(p / q)) for p, q in zip(probabilities(code.X), probabilities(code.Y), strict=True))


@pytest.mark.long(every=5)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("subject", "scale"), [(code.rounded, 2), (code.clamped_far_out, 0.1)])
def test_rounding_and_clamping_take_nothing_from_the_tails_of_laplace_noise(subject: Any, scale: float) -> None:
    """Above both centres one input is e^(distance / scale) times as likely as the other, whatever is rounded there."""
    result = trace(subject, [code.X, code.Y], epsilon=0.1)
    assert (result.verdict.refuted, result.rules) == (True, ("loss-too-large",))
    assert result.traced_epsilon.lower == pytest.approx(L1 / scale)
    assert "after rounding or clamping too" in result.findings[0].message
    assert trace(subject, [code.X, code.Y], epsilon=L1 / scale).verdict.open


def test_an_input_of_zeros_is_no_reuse_of_noise() -> None:
    assert trace(code.laplace, [[0.0] * 3, code.X], epsilon=1).rules == ()


def test_noise_of_two_draws_is_not_taken_for_one() -> None:
    result = trace(code.two_noises, [code.X, code.Y], epsilon=1)
    assert result.verdict.open
    assert result.traced_epsilon.lower == 0
    # Shifts in proportion to the variances 1 and 50², of 1/2501 and 2500/2501 of each gap; the tails lose L1/50.
    assert L1 / 50 < result.traced_epsilon.upper == pytest.approx(L1 * (1 / 2501 + 50 / 2501))


def test_a_scale_that_depends_on_the_input_is_named_where_the_runs_are_too_few() -> None:
    """Scales of 3.2 and 3: the loss is infinite far out, where no run comes."""
    result = trace(code.scale_of_data, [code.X, code.Y], epsilon=1)
    assert result.verdict.open
    assert result.traced_epsilon.lower == math.inf
    assert "depends on the input" in result.verdict.reason
    assert "trace_numpy.py:" in result.verdict.reason


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_the_pipeline_as_coded() -> None:
    assert trace(code.laplace, [code.X, code.Y], epsilon=1).pipeline == "l1 norm at most 0.9 on 2 inputs | laplace(2)"
    shared = trace(code.shared_number, [code.X, code.Y], epsilon=1)
    assert shared.pipeline.endswith("laplace(2), one number for all 3 coordinates")
    assert np.random.default_rng is code.default_rng  # everything is put back


@pytest.mark.long(every=12)
@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_judged_alone_where_other_randomness_hides_the_input_too(seed: int) -> None:
    """Between a sum with one more number and without, ε is ln(1 + 0.9 (e − 1)) = 0.9346, although the noise gives 1."""
    result = trace(code.sampled, [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], epsilon=0.95, seed=seed)
    assert result.verdict.open
    assert trace(code.branching, [[0.0], [1.0]], epsilon=0.51, seed=seed).verdict.open  # its loss is 0.50002


@pytest.mark.long
def test_no_bound_is_said_where_a_draw_decides_what_the_noise_is_added_to() -> None:
    result = trace(code.chosen, [[0.0] * 9, [0.0] * 8 + [1.0]], epsilon=1)
    assert (result.verdict.word, result.pair_epsilon.upper) == ("open", math.inf)


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_noise_that_is_not_followed_is_no_leak() -> None:
    """Two-sided geometric noise of ratio 1/2 on numbers that differ by 3: ε = 3 ln 2 = 2.08."""
    pair = [code.X, [1.0, 1.0, 1.0]]
    right = trace(code.geometric, pair, epsilon=2.1)
    assert (right.verdict.word, right.rules) == ("open", ())
    assert right.pair_epsilon.upper >= 3 * math.log(2) * (1 - 1e-9)  # infinite if the machine is too busy
    wrong = trace(code.geometric, pair, epsilon=1)
    # Its law is known if there was time to see all that it gives, and only its counts if not.
    assert (wrong.verdict.word, wrong.rules) in [("refuted", ("told-apart",)), ("refuted", ("loss-too-large",))]
    assert 1 < wrong.pair_epsilon.lower <= 3 * math.log(2)


@pytest.mark.parametrize("subject", [code.from_bytes, pytest.param(code.from_elsewhere, marks=pytest.mark.long)])
@pytest.mark.usefixtures("patient")
def test_sources_that_cannot_be_seen_are_said_to_be_so(subject: Any) -> None:
    """Equally likely numbers from 0 and from 3: of five δ = 3/5 at any ε, of four δ = 3/4."""
    pair = [code.X, [1.0, 1.0, 1.0]]
    result = trace(subject, pair, epsilon=1, delta=0.76)
    assert (result.verdict.word, result.rules) == ("open", ("opaque",))
    assert trace(code.from_the_system, pair, epsilon=1, delta=0.3).verdict.refuted


def test_no_bound_is_said_where_the_loss_differs_from_run_to_run() -> None:
    result = trace(code.adaptive, [[0.0, 0.0], [0.0, 1.0]], epsilon=1)
    assert (result.traced_epsilon.lower, result.traced_epsilon.upper) == (0, math.inf)
    assert result.pair_epsilon.upper == math.inf


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_parts_that_are_clipped_one_by_one() -> None:
    inputs = [[5.0, 0.0, 5.0, 0.0], [-5.0, 0.0, -5.0, 0.0]]
    wrong = trace(code.clipped_singly, inputs, epsilon=1)
    assert (wrong.verdict.refuted, wrong.rules) == (True, ("loss-too-large",))
    assert wrong.traced_epsilon.lower == pytest.approx(2)  # each of the two parts differs by 2
    right = trace(code.clipped_together, inputs, epsilon=1)
    assert (right.verdict.word, right.rules) == ("open", ())
    assert right.pair_epsilon.upper == pytest.approx(1)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("odd_first", [True, False])
@pytest.mark.usefixtures("patient")
def test_nan_that_is_replaced_after_the_noise(odd_first: bool) -> None:
    inputs = [[math.nan, 0.0, 0.0], [0.5, 0.0, 0.0]]
    inputs = inputs if odd_first else inputs[::-1]
    wrong = trace(code.nan_replaced, inputs, epsilon=1)
    assert (wrong.verdict.refuted, wrong.rules) == (True, ("leak",))
    right = trace(code.nan_replaced_first, inputs, epsilon=1)
    assert (right.verdict.word, right.rules) == ("open", ())


def test_more_pairs_than_a_trace_can_take_are_refused() -> None:
    with pytest.raises(InputError, match="at most 8 pairs, got 9"):
        trace(code.laplace, pairs=[(code.X, code.Y)] * 9, epsilon=1)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (code.appended, 'output["largest"] is a value of the argument x of appended (trace_numpy.py:'),
        (code.MadeBefore(), "output[0] is what __call__ returns (trace_numpy.py:"),
    ],
)
@pytest.mark.usefixtures("patient")
def test_a_leak_is_named_with_its_value_and_its_line(subject: Any, said: str) -> None:
    found = trace(subject, [code.X, code.Y], epsilon=1).findings[0]
    assert found.message.startswith(said)
    assert found.place is not None
    assert found.place.file == code.__file__


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_the_norm_is_that_of_all_inputs_and_a_clip_is_seen() -> None:
    inputs = [[size, -size, 0.5] for size in (0.1, 0.2, 1.0, 2.0, 4.0)]
    pipeline = trace(code.laplace, inputs, epsilon=1).pipeline
    assert pipeline == "l1 norm at most 1 on 5 inputs, and exactly that on 3, as after a clip | laplace(2)"
