"""Finite mechanisms with probabilities 0 and 1, at all δ: nothing breaks, and enumeration agrees."""

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from dpassay import check
from dpassay.core.functions.roots import falling_root
from dpassay.core.numbers import down, number, up
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.binary import Binary

Law = dict[tuple[int, ...], Fraction]
CHANCES = ("0", "1", "0", "1", "0.5", "0.25", "0.9", "1e-9")
DELTAS = ("0", "1e-6", "0.01", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95")
EPSILONS = ("0", "0.1", "1", "3", "700")
LIMITS = (None, (0, 1), (-1, 1), (0, 1.5), (-0.7, 0.4), (-3, 9), (0.4, 2.6), (-2, 0), (-2.5, -1), (0.3, 0.4))


def bit_law(bits: tuple[int, ...], even: Fraction, odd: Fraction, zero: Fraction) -> Law:
    """The distribution of redrawn bits, by enumeration."""
    ones = [(odd if i % 2 else even) if bit else zero for i, bit in enumerate(bits)]
    return {
        out: math.prod((p if bit else 1 - p for bit, p in zip(out, ones, strict=True)), start=Fraction(1))
        for out in itertools.product((0, 1), repeat=len(bits))
    }


def category_laws(size: int, keep: Fraction) -> list[Law]:
    if size == 1:
        return [{(0,): Fraction(1)}]
    return [{(j,): keep if j == c else (1 - keep) / (size - 1) for j in range(size)} for c in range(size)]


def one_persons_strings(whole: int, fraction: int, limits: tuple[float, float] | None) -> list[tuple[int, ...]]:
    """What binary writes for numbers between the limits, on a fine grid that has all multiples of 1/4."""
    if limits is None:
        return list(itertools.product((0, 1), repeat=1 + whole + fraction))
    points = np.concatenate([np.linspace(*limits, 2001), np.clip(np.arange(-40, 41) / 4, *limits)])
    written = Binary(whole, fraction).run(np.where(points == 0, 0.0, points)[:, None], np.random.default_rng(0))
    return [tuple(row) for row in np.unique(written, axis=0).astype(int).tolist()]


def mechanisms(count: int, seed: int) -> Iterator[tuple[str, int, list[tuple[Law, Law]], bool]]:
    """Random texts, dimensions, all pairs of neighbours' distributions, and whether the loss must be known exactly."""
    rng = random.Random(seed)
    for kind in itertools.islice(itertools.cycle(["category", "onehot", "bloom", "binary", "rows"]), count):
        size, dim = rng.randint(1, 4), 1
        whole, fraction = rng.randint(0, 2), rng.randint(0, 1)
        limits = rng.choice(LIMITS)
        chances = [rng.choice(CHANCES) for _ in range(3)]
        flip = kind == "category" or rng.random() < 0.6
        keep = Fraction(chances[0])
        noise = f"flip({chances[0]})" if flip else f"bits({', '.join(chances)})"
        even, odd, zero = (keep, keep, 1 - keep) if flip else map(Fraction, chances)
        if kind == "category":
            laws = category_laws(size, keep)
            yield f"category({size}) | {noise}", 1, list(itertools.product(laws, laws)), True
            continue
        if kind == "onehot":
            text, groups = f"onehot({size})", [[tuple(row) for row in np.eye(size, dtype=int).tolist()]]
        elif kind == "bloom":
            ones = rng.randint(1, size)
            strings = [s for s in itertools.product((0, 1), repeat=size) if 1 <= sum(s) <= ones]
            text, groups = f"bloom({size}, {ones})", [strings]
        elif kind == "binary":
            text, dim = f"binary({whole}, {fraction})", 1
            groups = [list(itertools.product((0, 1), repeat=1 + whole + fraction))]
        else:
            clamp = "" if limits is None else f"clamp({limits[0]}, {limits[1]}) | "
            text, dim = f"rows | {clamp}binary({whole}, {fraction})", 2
            own = one_persons_strings(whole, fraction, limits)
            groups = [[(*s, *own[0]) for s in own], [(*own[0], *s) for s in own]]
        tables = [[bit_law(bits, even, odd, zero) for bits in group] for group in groups]
        yield f"{text} | {noise}", dim, [pair for laws in tables for pair in itertools.product(laws, laws)], flip


def true_delta(pairs: list[tuple[Law, Law]], epsilon: float) -> float:
    return max(sum(max(0.0, p - math.exp(epsilon) * other[out]) for out, p in law.items()) for law, other in pairs)


def true_pure(pairs: list[tuple[Law, Law]]) -> float:
    ratios = [(p, other[out]) for law, other in pairs for out, p in law.items() if p]
    return math.inf if any(q == 0 for _, q in ratios) else max(math.log(p / q) for p, q in ratios)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("seed", range(6))
def test_extreme_probabilities_agree_with_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    for text, dim, pairs, exact in mechanisms(15, seed):
        delta, epsilon = rng.choice(DELTAS), rng.choice(EPSILONS)
        verdict = check(text, epsilon=epsilon, dim=dim, **({} if delta == "0" else {"delta": delta}))
        pipeline = parse(text, dim)
        found = analyse(pipeline, pipeline.neighbours)
        pure, at = true_pure(pairs), true_delta(pairs, float(epsilon))
        assert down(found.pure) <= pure * (1 + 1e-12) + 1e-12, text
        assert up(found.pure) >= pure * (1 - 1e-12), text
        assert down(found.delta(number(epsilon))) <= at + 1e-12, text
        assert up(found.delta(number(epsilon))) >= at - 1e-12, text
        if exact:
            assert down(found.pure) == pytest.approx(pure, rel=1e-12, abs=1e-12), text
        if delta != "0":
            most = up(found.epsilon(number(delta)))
            assert most > 700 or true_delta(pairs, most) <= float(delta) + 1e-12, text
        decided = pure <= float(epsilon) if delta == "0" else at <= float(delta)
        assert (
            verdict.word in ("open", "proven" if decided else "refuted")
            or min(abs(pure - float(epsilon)), abs(at - float(delta))) < 1e-12
        ), text
        for repair in verdict.repairs:
            if repair.mechanism is not None:
                held = {"epsilon": repair.guarantee.exact_epsilon, "delta": repair.guarantee.exact_delta}
                assert check(repair.mechanism, **held).word == "proven", text


@pytest.mark.parametrize("delta", ["1e-9", "0.01", "0.5", "0.95"])
@pytest.mark.parametrize(
    "text", ["onehot(4) | flip(1)", "onehot(4) | flip(0)", "onehot(4) | bits(1, 1, 0)", "bloom(4, 2) | flip(1)"]
)
def test_what_is_never_changed_is_given_away(text: str, delta: str) -> None:
    verdict = check(text, epsilon=1, delta=delta)
    assert verdict.refuted
    assert verdict.epsilon.lower == math.inf


def test_the_tail_of_losses_that_are_infinite_or_zero() -> None:
    certain = PrivacyLoss(((AtomLoss((), number(1)), 1),))
    assert (certain.tail(1).lower, certain.tail(1).upper) == (1, 1)
    half = PrivacyLoss(((AtomLoss(((number(0), number("0.5")),), number("0.5")), 2),))
    assert (half.tail(0).lower, half.tail(0).upper) == (0.75, 0.75)
    # 0.9 against 0.1 and back: the loss ln 9 has probability 0.9.
    bit = PrivacyLoss(((AtomLoss.of_bits("0.9", "0.1"), 1),))
    assert bit.tail(2).lower <= 0.9 <= bit.tail(2).upper
    assert bit.tail(2).width < 1e-15
    assert bit.tail("2.2").upper == 0


def test_a_flat_function_has_no_slope_to_follow() -> None:
    low, high = falling_root(lambda _: 0.0, 0.0, 1.0, 1e-6)
    assert 0 <= low <= high <= 1


def test_a_delta_that_equals_the_chance_of_an_infinite_loss() -> None:
    # The first of two strings sets an even bit with probability 1/2, the second never: δ is 1/2 at every ε.
    assert check("onehot(3) | bits(0.5, 0.3333333333333333, 0)", epsilon=700, delta="0.5").proven


def test_bits_that_are_nearly_alike_are_not_taken_to_be() -> None:
    epsilon = check("binary(0, 1) | bits(1 - 1e-45, 1 - 1e-55, 1e-45)", epsilon=208, dim=1).epsilon
    assert epsilon.lower <= 100 * math.log(10) <= epsilon.upper  # 45 ln 10 of the even bit, 55 ln 10 of the odd one


@pytest.mark.parametrize(
    ("text", "dim"),
    [("binary(0, 1) | flip(0.9)", 1), ("clip(linf, 1) | exponential(1)", 2), ("category(2) | flip(0.9)", 1)],
)
def test_outputs_that_are_squashed_may_be_rounded_to_one(text: str, dim: int) -> None:
    # The sigmoid of a sigmoid is above 1/2.
    constant = f"{text} | squash(sigmoid) | squash(sigmoid) | round"
    given = {} if text.startswith("category") else {"dim": dim}
    assert check(constant, epsilon="0.5", **given).epsilon.lower == 0
    assert check(f"{text} | round", epsilon="0.5", **given).refuted
