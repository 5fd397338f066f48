"""Bits and words that are decided one by one: as many as there are, their losses are known, and nothing else is."""

import math
import random
import re
from typing import Any

import numpy as np
import pytest

from dpassay.trace.laws.coordinatewise import coordinates_of, laws_that_differ
from dpassay.trace.session import trace
from dpassay.trace.watch.tracer import Tracer

WORDS = ["a", "flight", "to", "rome", "paris", "oslo"]


def unary(x: int, rng: Any) -> Any:
    bits = np.eye(40)[x]
    return np.where(rng.random(40) < 0.25, 1 - bits, bits)


def optimised_unary(x: int) -> list[bool]:
    return [random.random() < (0.5 if k == x else 0.25) for k in range(12)]


def words(text: str) -> str:
    return " ".join(random.choices(WORDS, [math.exp(2.0 * (word == one)) for word in WORDS])[0] for one in text.split())


def coin_and_word(text: str) -> str:
    """Each word is kept with probability 3/4, otherwise any of six: it comes out with 3/4 + 1/24 or 1/24."""
    return " ".join(one if random.random() < 0.75 else random.choice(WORDS) for one in text.split())


def digits(text: str) -> str:
    """Each digit is kept with probability 1/2, otherwise any of ten: 1/2 + 1/20 or 1/20."""
    return re.sub(r"\d", lambda one: one.group() if random.random() < 0.5 else str(random.randrange(10)), text)


def with_their_sum(x: int, rng: Any) -> list[float]:
    bits = unary(x, rng)
    return [*bits.tolist(), float(bits.sum())]


def with_a_rare_copy(x: int, rng: Any) -> list[float]:
    bits = unary(x, rng)
    return [*bits.tolist()[:-1], float(x) if bits[5] and bits[6] else float(bits[-1])]


def by_the_last(x: int, rng: Any) -> list[bool]:
    """Each bit is flipped with a probability that depends on the one before."""
    found = [bool(rng.random() < 0.5)]
    for k in range(8):
        found.append(bool(rng.random() < (0.5 if found[-1] else 0.25 + 0.25 * (k == x))))
    return found


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("subject", "pair", "epsilon", "truth"),
    [
        (unary, (3, 7), 2.2, 2 * math.log(3)),  # two bits that differ, each kept with probability 3/4
        (optimised_unary, (0, 11), 1.1, math.log(3)),  # (1/2)/(1/4) · (3/4)/(1/2)
        (words, ("a flight to rome a flight", "a flight to oslo a flight"), 2.01, 2.0),
        (coin_and_word, ("a flight to rome", "a flight to oslo"), 3, math.log(19)),
        (digits, ("5-12", "5-19"), 2.5, math.log(11)),
    ],
)
def test_the_loss_is_that_of_the_parts_that_differ(
    subject: Any, pair: Any, epsilon: float, truth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpassay.trace.runner.MOST_TRIALS", 300)
    result = trace(subject, pairs=[pair], epsilon=epsilon, hostile=False)
    assert result.verdict.open
    assert result.traced_epsilon.lower == pytest.approx(truth, rel=1e-9)
    assert result.pair_epsilon.upper == pytest.approx(truth, rel=1e-9)
    assert result.apart_from < 1


def test_each_number_has_its_own_part_of_the_output() -> None:
    tracer = Tracer(unary)
    first, second = coordinates_of(tracer, 3, 100), coordinates_of(tracer, 7, 100)
    assert first is not None
    assert second is not None
    assert [len(one.where) for one in first.decided] == [1] * 40
    apart = laws_that_differ(first, second)
    assert apart is not None
    assert sorted(sorted(p.values()) for p, _ in apart) == [[0.25, 0.75]] * 2


def test_a_number_that_is_drawn_only_after_some_others_belongs_to_them() -> None:
    found = coordinates_of(Tracer(coin_and_word), "a flight to rome", 200)
    assert found is not None
    assert [sorted(one.where) for one in found.decided] == [[0], [1], [2], [3]]
    law = found.law(frozenset([1]))
    assert law is not None
    assert sorted(law.values()) == pytest.approx([1 / 24] * 5 + [3 / 4 + 1 / 24])


def test_most_draws_at_first_are_no_answers_that_are_kept() -> None:
    """One run in 256 replaces all four words, which takes most draws; only code that keeps its answers never varies."""
    pair = ("a flight to rome", "a flight to oslo")
    tracer = Tracer(coin_and_word)
    for x in pair:
        run = tracer.run(x, {k: np.asarray(0.9) for k in range(8)})
        assert len(run.draws) == 8
    result = trace(tracer, pairs=[pair], epsilon=3, hostile=False)
    assert result.traced_epsilon.lower == pytest.approx(math.log(19), rel=1e-9)


@pytest.mark.parametrize("subject", [with_their_sum, by_the_last])
def test_numbers_that_decide_something_together_are_not_taken_apart(subject: Any) -> None:
    assert coordinates_of(Tracer(subject), 3, 100) is None


def test_what_happens_now_and_then_is_found_by_the_trials() -> None:
    """Two flips together, with probability 1/16, let the input out: no bound, whatever single changes show."""
    result = trace(with_a_rare_copy, pairs=[(3, 7)], epsilon=2.2, hostile=False, time="2s")
    assert result.verdict.refuted or result.pair_epsilon.upper == math.inf


def when_four_flip(x: int, rng: Any) -> list[float]:
    """Bits that are flipped one by one; if four of them are, with probability 1/256, the input comes out."""
    bits, flipped = np.eye(8)[x], rng.random(8) < 0.25
    shown = np.where(flipped, 1 - bits, bits).tolist()
    return [*shown[:-1], float(x) if flipped[2:6].all() else shown[-1]]


def test_a_run_that_the_tables_do_not_predict_does_not_agree() -> None:
    tracer, key = Tracer(when_four_flip), (0, 0, 0)
    found = coordinates_of(tracer, 3, 100)
    assert found is not None  # changes of single numbers do not show it
    for flips, said in (
        ([0] * 8, ""),
        ([1, 0, 1, 0, 1, 0, 1, 1], ""),
        ([0, 0, 1, 1, 1, 1, 0, 0], "output[7] depends on more"),
    ):
        run = tracer.run(3, {0: np.where(flips, 0.1, 0.9)}, key=key)
        assert found.difference(run).startswith(said)
        assert bool(found.difference(run)) is bool(said)


def test_other_parts_or_other_probabilities_do_not_agree() -> None:
    """The tables of one program do not predict another that flips with another probability, or draws more often."""
    found = coordinates_of(Tracer(unary), 3, 100)
    assert found is not None

    def other(x: int, rng: Any) -> Any:
        bits = np.eye(40)[x]
        return np.where(rng.random(40) < 0.3, 1 - bits, bits)

    def longer(x: int, rng: Any) -> Any:
        return unary(x, rng) + 0 * float(rng.random() < 0.5)

    def weighted(first: float) -> Any:
        return lambda x, rng: [int(rng.choice(2, p=[first, 1 - first])) for _ in range(3)]

    of_choices = coordinates_of(Tracer(weighted(0.4)), 0, 100)
    assert of_choices is not None
    assert of_choices.difference(Tracer(weighted(0.4)).run(0, key=(0, 0, 0))) == ""
    assert "is compared with" in of_choices.difference(Tracer(weighted(0.6)).run(0, key=(0, 0, 0)))
    assert "depends on more than the number" in found.difference(Tracer(other).run(3, key=(0, 0, 0)))
    assert "something else" in found.difference(Tracer(longer).run(3, key=(0, 0, 0)))
