"""Code that decides by random numbers: the loss between two inputs is that of all outcomes, enumerated by hand."""

import bisect
import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.core.guarantee import make_guarantee
from dpassay.trace.laws.choices import _in_words, judged_choices
from dpassay.trace.natural.outputs import described
from dpassay.trace.session import trace
from dpassay.trace.watch.tracer import Tracer

LN2, LN3 = math.log(2), math.log(3)
P, Q = [0.5, 0.2, 0.3], [0.25, 0.25, 0.5]


def _cards(x: int, shuffle: Any) -> int:
    cards = ["truth", "truth", "lie"]
    shuffle(cards)
    return x if cards[0] == "truth" else 1 - x


def _flip(x: int, rng: Any) -> Any:
    """Three bits, two of which are the same for both inputs."""
    return np.array([x, 1, 0]) ^ (rng.random(3) < 0.25).astype(int)


def _permute_and_flip(x: int, rng: Any) -> int:
    """Scores of 2 and 1, or of 1 and 2; the better is kept at once, the other with probability 1/e."""
    scores = [2, 1] if x else [1, 2]
    while True:
        for at in rng.permutation(2):
            if rng.random() <= math.exp(scores[at] - 2):
                return int(at)


def _law(x: int) -> list[float]:
    return Q if x else P


CODE: dict[str, tuple[Callable[..., Any], float]] = {
    "where": (lambda x, rng: np.where(rng.random(2) < 0.75, [x, 1], [1 - x, 0]).tolist(), LN3),
    "xor of an array": (lambda x, rng: _flip(x, rng).tolist(), LN3),
    "xor of a bit": (lambda x, rng: int(x ^ rng.binomial(1, 0.25)), LN3),
    "binomial array": (lambda x, rng: (np.array([x, 0]) ^ rng.binomial(1, [0.25, 0.5])).tolist(), LN3),
    "whole part": (lambda x, rng: x if int(rng.random() * 4) else 1 - x, LN3),
    "floor": (lambda x, rng: x if math.floor(4 * random.random()) > 0 else 1 - x, LN3),
    "bits": (lambda x: x if random.getrandbits(2) else 1 - x, LN3),
    "randrange": (lambda x: x if random.randrange(4) else 1 - x, LN3),
    "from the other end": (lambda x, rng: x if 1 - rng.random() < 0.75 else 1 - x, LN3),
    "scaled": (lambda x, rng: x if rng.uniform(2, 6) > 3 else 1 - x, LN3),
    "log": (lambda x, rng: x if -math.log(rng.random()) < math.log(4) else 1 - x, LN3),
    "cards": (lambda x: _cards(x, random.shuffle), math.log(2)),
    "cards of a generator": (lambda x, rng: _cards(x, rng.shuffle), math.log(2)),
    "cards of numpy": (lambda x: _cards(x, np.random.shuffle), math.log(2)),
    "a permutation": (lambda x, rng: x if rng.permutation(3)[0] else 1 - x, math.log(2)),
    "a sample": (lambda x: x if 0 not in random.sample(range(4), 1) else 1 - x, LN3),
    "searchsorted": (lambda x, rng: int(np.searchsorted(np.cumsum(_law(x)), rng.random())), math.log(2)),
    "bisect": (lambda x, rng: bisect.bisect(list(itertools.accumulate(_law(x))), rng.random()), math.log(2)),
    "digitize": (lambda x, rng: int(np.digitize(rng.random(), np.cumsum(_law(x))[:2])), math.log(2)),
    "first above": (lambda x, rng: int(np.argmax(np.cumsum(_law(x)) > rng.random())), math.log(2)),
    "choices": (lambda x: random.choices("abc", _law(x))[0], math.log(2)),
    "two tokens": (lambda x: random.choices("abc", _law(x), k=2), 2 * math.log(2)),
    "unequal tokens": (lambda x: [*random.choices("abc", _law(x)), *random.choices("ab", [1 + x, 2 - x])], 2 * LN2),
}


def judged(subject: Any, epsilon: float = 1.0) -> Any:
    tracer = Tracer(subject)
    tracer.run(0)
    return judged_choices(tracer, (0, 1), (tracer.run(0), tracer.run(1)), make_guarantee(epsilon, 0))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", CODE)
def test_all_outcomes_are_known(name: str) -> None:
    subject, epsilon = CODE[name]
    chosen = judged(subject)
    assert chosen is not None
    assert float(chosen.upper.b) == pytest.approx(epsilon, rel=1e-9)
    assert float(chosen.lower.a) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("name", ["where", "xor of a bit", "choices", "cards"])
def test_the_event_shows_the_loss(name: str) -> None:
    """P and Q of the event, counted in plain runs, differ in the direction that is stated."""
    subject, _ = CODE[name]
    chosen = judged(subject, 0.1)
    rng = np.random.default_rng(5)
    call = (lambda x: subject(x, rng)) if subject.__code__.co_argcount == 2 else subject
    hits = [sum(described(call(x)) in chosen.event for _ in range(400)) for x in (0, 1)]
    assert hits[chosen.more_often] > hits[1 - chosen.more_often] + 40  # 5 standard deviations in each case


def test_equal_draws_by_chance_are_not_taken_for_a_fixed_seed() -> None:
    """The first sixteen numbers from this seed are below 1/2: the same letter each time, although drawn afresh."""
    subject, _ = CODE["choices"]
    assert all(one == "a" for one in random.Random(110114).choices("abc", P, k=16))
    kept = random.getstate()
    try:
        random.seed(110114)
        assert judged(subject, 0.1) is not None
    finally:
        random.setstate(kept)
    assert judged(lambda x: random.Random(110114).choices("abc", _law(x))[0], 0.1) is None


def test_permute_and_flip_is_known_as_far_as_there_are_runs() -> None:
    """The better one first, or the other one kept, or turned down: 1/2 + 1/2·(1 − 1/e) against 1/(2e)."""
    chosen = judged(_permute_and_flip)
    assert chosen is not None
    better = 1 - 1 / (2 * math.e)
    assert float(chosen.lower.a) == pytest.approx(math.log(better * 2 * math.e), rel=0.05)


@pytest.mark.parametrize(
    "subject",
    [
        lambda x, rng: [u := rng.random(), u < 0.5 + x / 4],
        lambda x, rng: np.float64(rng.random()) < 0.5 + x / 4,
        lambda x, rng: rng.random() < rng.random() + x / 4,
    ],
    ids=["released", "out of sight", "compared with each other"],
)
def test_what_is_not_seen_is_left_open(subject: Any) -> None:
    assert judged(subject) is None


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    subjects = [
        lambda x: (torch.tensor([x, 1]) ^ torch.bernoulli(torch.full((2,), 0.25)).long()).tolist(),
        lambda x: torch.where(torch.rand(1) < 0.75, x, 1 - x).tolist(),
        lambda x: x if torch.randint(4, (1,)).item() else 1 - x,
        lambda x: x if int(torch.rand(1).item() * 4) else 1 - x,
    ]
    for subject in subjects:
        assert float(judged(subject).upper.b) == pytest.approx(LN3, rel=1e-6)
    chosen = judged(lambda x: torch.distributions.Categorical(torch.tensor(_law(x))).sample().item())
    assert float(chosen.upper.b) == pytest.approx(math.log(2), rel=1e-6)
    chosen = judged(lambda x: x if torch.randperm(3)[0] else 1 - x)
    assert float(chosen.upper.b) == pytest.approx(math.log(2), rel=1e-6)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    "flip",
    [
        lambda v, rng: v ^ (rng.random(v.shape) < 0.25).astype(int),
        lambda v, rng: v ^ rng.binomial(1, 0.25, v.shape),
        lambda v, rng: (v.astype(bool) ^ (rng.random(v.shape) < 0.25)).astype(int),
        lambda v, rng: v & rng.integers(0, 2, v.shape) | (v << rng.integers(0, 2, v.shape)),
    ],
    ids=["cast", "binomial", "bool", "other operators"],
)
def test_bits_of_arrays_are_traced(flip: Any) -> None:
    """The whole trace, of three bits that are the same but for the first."""

    def subject(x: int, rng: np.random.Generator) -> Any:
        return flip(np.array([x, 1, 0]), rng).tolist()

    assert trace(subject, pairs=[(0, 1)], epsilon=2, hostile=False).verdict.word in ("open", "refuted")


@pytest.mark.parametrize(
    ("output", "shown"), [("0.0", "0"), ('["a"] 1.0, ["b"] 2.05', '["a"] 1, ["b"] 2.05'), ("'version 1.0'",) * 2]
)
def test_whole_numbers_are_shown_as_such(output: str, shown: str) -> None:
    assert _in_words(output) == shown
