"""A trace knows what code loses that draws one of several things, and leaves the code beside it alone."""

import math
import re
from typing import Any

import numpy as np
import pytest

import tiers
import trace_choices as code
from dpassay.trace.runner import trace
from trace_choices import X, Y, clipped, log_ratio, softmax


def loss(most: float = math.inf, temperature: float = 1.0) -> float:
    return log_ratio(softmax(clipped(X, most) / temperature), softmax(clipped(Y, most) / temperature))


def merged_loss() -> float:
    first, second = (float(softmax(np.asarray(one))[:3].sum()) for one in (X, Y))
    return max(abs(math.log(first / second)), abs(math.log((1 - first) / (1 - second))))


def loss_until_the_end() -> float:
    """Of all texts: one or two other tokens and the end, or three tokens."""
    logs = np.log(softmax(np.asarray(X[:3]))) - np.log(softmax(np.asarray(Y[:3])))
    texts = [(0,), *((i, 0) for i in (1, 2)), *((i, j, k) for i in (1, 2) for j in (1, 2) for k in range(3))]
    return max(abs(float(sum(logs[i] for i in text))) for text in texts)


FAULTS: dict[str, tuple[Any, float]] = {
    "unclipped logits": (code.unclipped, loss()),
    "top-k before sampling": (code.top_k, math.inf),
    "sampling after a public argmax": (code.temperature_after_argmax, math.inf),
    "too low a temperature": (code.too_cold, loss(0.25, 0.1)),
    "a sequence of unclipped logits": (code.unclipped_sequence, 2 * loss(temperature=2)),
    "a sequence that a token ends": (code.until_the_end, loss_until_the_end()),
}
TWINS: dict[str, tuple[Any, float]] = {
    "clipped logits": (code.token, loss(0.25)),
    "words by numpy": (code.token_of_names, loss(0.25)),
    "words by Python": (code.token_by_python, loss(0.25)),
    "several words are one output": (code.merged, merged_loss()),
    "a sequence": (code.tokens, 2 * loss(0.125)),
    "a sequence at once": (code.tokens_at_once, 2 * loss(0.125)),
}


@pytest.mark.long(every=3)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refuted_at_its_line(fault: str) -> None:
    subject, epsilon = FAULTS[fault]
    result = trace(subject, pairs=[(X, Y)], epsilon=1)
    assert (result.verdict.word, result.rules) == ("refuted", ("loss-too-large",))
    assert result.findings[0].place is not None
    assert result.findings[0].place.file == code.__file__
    assert result.traced_epsilon.lower == pytest.approx(epsilon)
    assert 1 < result.pair_epsilon.lower <= epsilon
    assert ("can never give it" in result.findings[0].message) == (epsilon == math.inf)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("right", TWINS)
@pytest.mark.usefixtures("patient")
def test_right_code_is_left_alone(right: str) -> None:
    subject, epsilon = TWINS[right]
    result = trace(subject, pairs=[(X, Y)], epsilon=1)
    assert (result.verdict.word, result.rules) == ("open", ())
    assert result.traced_epsilon.lower == pytest.approx(epsilon)
    assert result.pair_epsilon.lower <= epsilon
    assert result.pair_epsilon.upper >= epsilon * (1 - 1e-9)


@pytest.mark.usefixtures("patient")
def test_a_public_choice_of_words_is_no_fault() -> None:
    result = trace(code.public_top_k, pairs=[(X, Y)], epsilon=1)
    assert (result.verdict.word, result.rules) == ("open", ())
    assert result.pipeline.startswith("one of 6, with probabilities that differ by a factor of at most e^0.1735")


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_the_delta_of_a_choice_is_that_of_its_probabilities() -> None:
    """δ(1) between the two vectors is Σ max(0, p − e·q)."""
    first, second = (softmax(np.asarray(one)) for one in (X, Y))
    deltas = [float(np.maximum(0, p - math.e * q).sum()) for p, q in ((first, second), (second, first))]
    right = trace(code.unclipped, pairs=[(X, Y)], epsilon=1, delta=max(deltas) + 1e-6)
    assert right.verdict.open
    assert right.traced_epsilon.lower <= 1
    assert right.pair_epsilon.upper <= 1 + 1e-9
    near = trace(code.unclipped, pairs=[(X, Y)], epsilon=1, delta=max(deltas) - 1e-6)  # too near for counts
    assert near.traced_epsilon.lower > 1
    assert near.pair_epsilon.upper == math.inf or near.pair_epsilon.upper > 1
    assert trace(code.unclipped, pairs=[(X, Y)], epsilon=1, delta=max(deltas) / 2).verdict.refuted


@pytest.mark.long(every=2)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("subject", "epsilon"),
    [
        (code.by_hand, 1),
        (code.by_hand_in_python, 1),
        (code.kept_too_often, math.log(2 * math.e + 1)),
        (code.kept_by_python, math.log(2 * math.e + 1)),
        (code.one_of_three, math.log(2)),
    ],
)
def test_a_uniform_number_that_is_compared_is_a_choice(subject: Any, epsilon: float) -> None:
    result = trace(subject, pairs=[(0, 1)], epsilon=1)
    assert (result.traced_epsilon.lower, result.traced_epsilon.upper) == pytest.approx((epsilon, epsilon))
    assert result.verdict.word == ("refuted" if epsilon > 1.1 else "open")
    assert result.rules == (("loss-too-large",) if epsilon > 1.1 else ())


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    "subject",
    [
        lambda x, rng: [u := rng.random(), u < 0.5 + x / 4],
        lambda x, rng: float(rng.random()) < 0.5 + x / 4,
        lambda x, rng: rng.random() - x / 4 < 0.5,
        lambda x, rng: (u := rng.random()) < 0.5 or float(u) < 0.5 + x / 4,
        lambda x, rng: rng.random(2)[1] < 0.5 + x / 4,
    ],
    ids=["released", "out of sight", "moved", "partly out of sight", "beside one that was not used"],
)
def test_a_uniform_number_with_other_uses_is_left_open(subject: Any) -> None:
    """ε is ln 1.5 at least for each, and the comparisons that are seen alone do not say so."""
    result = trace(subject, pairs=[(0, 1)], epsilon=10)
    assert result.verdict.open
    assert result.pair_epsilon.upper >= math.log(1.5)


SEEDS = range(6)


@pytest.mark.long(every=6)
@pytest.mark.parametrize(("subject", "pair"), [(code.kept_answer, (False, True)), (code.one_of_four, (0, 1))])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("patient")
def test_equal_outputs_are_one_outcome(subject: Any, pair: tuple[Any, Any], seed: int) -> None:
    """ε is ln 3 for each, as equal outputs are counted together, and no others."""
    result = trace(subject, pairs=[pair], epsilon=1.1, seed=seed)
    assert result.verdict.open
    assert (result.traced_epsilon.lower, result.traced_epsilon.upper) == pytest.approx((math.log(3), math.log(3)))
    assert result.pair_epsilon.upper == pytest.approx(math.log(3))


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("subject", "pair"), [(code.kept_word, ("a", "b")), (code.signed_zero, (1.0, -1.0))])
@pytest.mark.usefixtures("patient")
def test_no_bound_is_said_where_equal_outputs_are_not_the_same(subject: Any, pair: tuple[Any, Any]) -> None:
    """The type of a text and the sign of a zero tell the input, although the values lose ln 3 only."""
    result = trace(subject, pairs=[pair], epsilon=1.1)
    assert result.traced_epsilon.upper == pytest.approx(math.log(3))
    assert result.pair_epsilon.upper == math.inf
    assert result.verdict.refuted or "type, order or last bits of output" in result.verdict.reason


@pytest.mark.usefixtures("patient")
def test_an_order_that_tells_the_input_is_refuted() -> None:
    assert trace(code.in_another_order, pairs=[(0, 1)], epsilon=1.1).verdict.refuted


@pytest.mark.usefixtures("patient")
def test_equal_sets_are_one_outcome_and_other_keys_another() -> None:
    found = trace(code.a_set, pairs=[(0, 1)], epsilon=1.1)
    assert (found.verdict.word, found.pair_epsilon.upper) == ("open", pytest.approx(math.log(3)))
    assert trace(lambda x, rng: {f"key {x}": int(rng.choice(2))}, pairs=[(0, 1)], epsilon=4).verdict.refuted


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "make",
    [
        *(lambda: code.flipped_between, lambda: code.flipped_by_a_search, lambda: code.flipped_by_a_rest),
        *(lambda: code.flipped_if_smaller, lambda: code.flipped_by_one_number),
        *(code.Kept, code.Counting, lambda: code.InRounds(13), lambda: code.InRounds(17)),
    ],
)
def test_right_code_with_more_than_can_be_seen_is_left_open(make: Any) -> None:
    """None of them loses more than ln 3 between 0 and 1, and most lose as much."""
    for seed in range(tiers.repetitions(1, 4)):
        result = trace(make(), pairs=[(0, 1)], epsilon=1.1, seed=seed)
        assert result.verdict.open
        assert result.pair_epsilon.lower <= math.log(3) * (1 + 1e-9)
        assert result.pair_epsilon.upper >= math.log(3) * (1 - 1e-9)


def test_what_was_not_gone_through_may_lose_anything() -> None:
    """One of 1,000 things, equally likely for both inputs; only the last few reveal the input, so ε is ∞."""
    assert trace(code.mostly_public, pairs=[(0, 1)], epsilon=1).pair_epsilon.upper == math.inf


@pytest.mark.usefixtures("patient")
def test_a_finding_names_the_output() -> None:
    result = trace(code.kept_by_python, pairs=[(0, 1)], epsilon=1)
    assert re.search(r": the output [01] has probability", result.findings[0].message)
