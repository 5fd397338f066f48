"""What two data sets show if their records are sampled, held against laws computed here from the definition."""

import math

import numpy as np
import pytest

from dpassay import certify, check, parse, verify
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import number
from dpassay.exact.analysis import analyse


def laplace_above(t):
    """P(Laplace noise of scale 1 > t)."""
    return math.exp(-t) / 2 if t >= 0 else 1 - math.exp(t) / 2


def clamped(centres, low, high, cells=2000):
    """The law of a mixture of Laplace noises around some centres, clamped: both ends, and cells between them."""
    edges = np.linspace(low, high, cells + 1)
    above = np.zeros(cells + 1)
    for weight, centre in centres:
        t = edges - centre
        tail = np.exp(-np.abs(t)) / 2
        above += weight * np.where(t >= 0, tail, 1 - tail)
    return np.concatenate([[1 - above[0]], above[:-1] - above[1:], [above[-1]]])


def hockey_stick(first, second, epsilon):
    """Σ (P − e^ε Q)⁺: of cells, so from below, and here nearly exact."""
    return float(np.maximum(0.0, first - math.exp(epsilon) * second).sum())


def largest(pairs, epsilon, low, high):
    laws = [(clamped(x, low, high), clamped(y, low, high)) for x, y in pairs]
    return max(max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) for p, q in laws)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("more", ["", " | times(3)", " | squash(tanh)"])
@pytest.mark.parametrize("drawn", ["subsample(100, 200)", "subsample(200, 200)"])
def test_a_batch_lies_where_its_other_records_put_it(drawn, more):
    """Every sum is at least 200, so the output is 6 but for half of e^−194."""
    verdict = check(f"{drawn} | clamp(2, 5) | laplace(1) | clamp(0, 6){more}", epsilon=0.5, delta=0.1, dim=1)
    assert verdict.open
    assert verdict.delta.lower < 1e-80
    assert verify(certify(verdict)).ok


def test_a_batch_of_nine_shows_less_than_a_record_alone():
    """All data sets of ten records of five values; what `check` states at most is what they show at most."""
    values, epsilon, size = (-1, -0.5, 0, 0.5, 1), 1, 9
    pairs = []
    for v in values:
        for other in values:
            for w in values:  # all nine others
                rest = (0.1, size * w)
                pairs.append(([(0.9, 8 * w + v), rest], [(0.9, 8 * w + other), rest]))
    most = largest(pairs, epsilon, -1, 1)
    verdict = check("subsample(9, 10) | clip(l2, 1) | laplace(1) | clamp(-1, 1)", epsilon=1, delta=0.33, dim=1)
    assert verdict.delta.lower <= most * (1 + 1e-9)
    assert most < 0.3130
    assert verdict.open


def test_on_a_sphere_the_others_are_sampled_too():
    """(0.8, 0.021) is not refuted: no data set shows more than 0.0199."""
    text = "poisson(0.5) | normalise(l2) | laplace(1) | clamp(-0.36, 0.36)"
    assert check(text, epsilon=0.8, delta=0.021, dim=2).open
    # One coordinate: records ±1, up to three of them.
    one = check("poisson(0.5) | normalise(l2) | laplace(1) | clamp(-0.36, 0.36)", epsilon=0.5, delta=0.01, dim=1)
    sums = [[(1.0, 0.0)]]
    for _ in range(3):
        sums += [[(w / 2, s + r) for w, s in law for r in (0, v)] for law in sums[-2:] for v in (1, -1)]
    pairs = [([(w / 2, s + r) for w, s in law for r in (0, v)], law) for law in sums for v in (1, -1)]
    assert one.delta.lower <= largest(pairs, 0.5, -0.36, 0.36) * (1 + 1e-9)


def test_small_records_of_a_ball_move_both_sums():
    """A thousand records of −1/1000 on average put the sums near ±1/2, where limits at ±0.6 hide nothing."""
    verdict = check("poisson(0.5) | clip(l2, 1) | laplace(1) | clamp(-0.6, 0.6)", epsilon=0.2, delta=0.1, dim=1)
    inner = math.log(1 + (math.exp(0.2) - 1) / 0.5)
    assert verdict.delta.lower == pytest.approx(0.5 * (1 - math.exp((inner - 1) / 2)), rel=1e-9)
    assert verify(certify(verdict)).ok


def test_integers_are_not_small():
    """Rounded and clipped records are −1, 0 or 1, as on a sphere."""
    clipped = "poisson(0.5) | round | clip(l2, 1) | laplace(1) | clamp(-0.36, 0.36)"
    found = analyse(parse(clipped, dim=1), Neighbours("add-remove-record")).delta(number("0.5"))
    law = [(1.0, 0.0)]
    pairs = [([(0.5, 0.0), (0.5, v)], law) for v in (1, -1)]
    pairs += [([(w / 2, s + r) for w, s in x for r in (0, v)], x) for x, _ in pairs for v in (1, -1)]
    assert float(found.a) <= largest(pairs, 0.5, -0.36, 0.36) * (1 + 1e-9)


@pytest.mark.parametrize(("low", "high"), [(-5, 0), (0, 5)])
def test_the_record_comes_first(low, high):
    """What no record shows against a record must not be amplified: it is at most −ln(1 − q)."""
    text = f"poisson(0.5) | clamp(0, 3) | laplace(1) | clamp({low}, {high})"
    verdict = check(text, epsilon=0.5, dim=1)
    # Any sum s ≥ 0 of others: outputs at the limits, where all ratios are the largest.
    largest_loss = 0.0
    for i in range(200):
        s = 0.05 * i
        for limit, sign in ((high, 1), (low, -1)):
            without, with_it = (laplace_above(sign * (limit - centre)) for centre in (s, s + 3))
            mixed = (without + with_it) / 2
            largest_loss = max(largest_loss, abs(math.log(mixed / without)))
    assert verdict.epsilon.lower <= largest_loss * (1 + 1e-9)
    assert verify(certify(verdict)).ok


def staircase_level(t, gamma):
    return math.floor(abs(t) + 1 - gamma)


@pytest.mark.parametrize("size", [0.3, 0.5, 0.7, 1, 1.2, 1.5, 1.9, 2])
@pytest.mark.parametrize("gamma", [0.2, 0.5])
def test_staircase_noise_on_a_record_replaced(size, gamma):
    """The largest ratio over outputs and records on a fine grid, by the staircase's levels."""
    q = 0.5
    records = [size * i / 20 for i in range(-20, 21)]
    outputs = [-4 + 0.0137 * i for i in range(600)]
    best = 0.0
    for t in outputs:
        plain = staircase_level(t, gamma)
        mixed = [1 - q + q * math.exp(plain - staircase_level(t - v, gamma)) for v in records]
        best = max(best, math.log(max(mixed) / min(mixed)))
    text = f"poisson({q}) | clip(l1, {size}) | staircase(1, 1, {gamma})"
    verdict = check(text, epsilon=0.01, dim=1, neighbours="replace-record")
    assert verdict.epsilon.lower <= best * (1 + 1e-9)
    assert verdict.epsilon.upper >= best * (1 - 1e-9)
    alone, apart = math.ceil(size), math.ceil(2 * size)
    expected = math.log((1 - q + q * math.exp(alone)) / (1 - q + q * math.exp(alone - apart)))
    assert verdict.epsilon.upper == pytest.approx(expected, rel=1e-9)
    assert verdict.epsilon.lower == pytest.approx(expected, rel=1e-9)
    assert verify(certify(verdict)).ok


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clamp(2, 5) | laplace(1)", math.log((1 + math.e**5) / (1 + math.e**2))),
        ("clip(l1, 1) | laplace(1)", math.log((1 + math.e) / (1 + 1 / math.e))),
        ("onehot(4) | discrete_laplace(1)", math.log((1 + math.e) / (1 + 1 / math.e))),
        ("onehot(4) | laplace(1)", math.log((1 + math.e) / (1 + 1 / math.e))),
        ("clip(l2, 1) | radial(l2, 1)", math.log((1 + math.e) / (1 + 1 / math.e))),
        ("laplace(1) | clip(l1, 1) | laplace(2)", math.log((1 + math.e) / 2)),  # behind noise any two are 1 apart
    ],
)
def test_a_record_replaced_is_exact_where_one_output_has_both_ratios(text, expected):
    verdict = check(f"poisson(0.5) | {text}", epsilon=0.1, dim=1, neighbours="replace-record")
    assert verdict.epsilon.lower == pytest.approx(expected, rel=1e-9)
    assert verdict.epsilon.upper == pytest.approx(expected, rel=1e-9)
    assert verify(certify(verdict)).ok


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.6])
def test_a_record_replaced_at_delta(epsilon):
    """Records 1 and −1 with Laplace noise: the likelihood ratio grows, so the best event is beyond a threshold."""
    first, second = ([(0.5, 0.0), (0.5, v)] for v in (1, -1))
    truth = hockey_stick(clamped(first, -12, 12, 20_000), clamped(second, -12, 12, 20_000), epsilon)
    verdict = check("poisson(0.5) | clip(l1, 1) | laplace(1)", epsilon=epsilon, delta=1e-3, neighbours="replace-record")
    assert 0.9 * truth < verdict.delta.lower <= truth * (1 + 1e-4)
    assert truth * (1 - 1e-4) <= verdict.delta.upper < 1.25 * truth
    assert verify(certify(verdict)).ok


def test_truncated_noise_is_sampled():
    """The leak is that of one record, when it takes part: (e − 1)/(2(e^4 − 1)), and ε is infinite below it."""
    leak = 0.5 * (math.e - 1) / (2 * (math.e**4 - 1))
    text = "poisson(0.5) | clip(l1, 1) | truncated_laplace(1, 4)"
    below, above = (check(text, epsilon=9, delta=delta, dim=1) for delta in (leak * 0.99, leak * 1.01))
    assert below.refuted
    assert above.proven
    assert verify(certify(below)).ok
    assert verify(certify(above)).ok


@pytest.mark.parametrize(
    ("text", "neighbours", "sets"),
    [
        ("poisson(0.5) | clip(l2, 1) | laplace(1)", None, "one record (1) against no record"),
        ("poisson(0.5) | clip(l2, 1) | laplace(1)", "replace-record", "one record (1) against one record (-1)"),
        (
            "subsample(3, 10) | clip(l2, 1) | laplace(1)",
            None,
            "one record (1) beside 9 others (-1) against 10 records (-1)",
        ),
        ("shuffle(2) | clip(l2, 1) | laplace(1)", None, "one record (1) beside 1 other (-1) against 2 records (-1)"),
    ],
)
def test_the_witness_names_data_sets(text, neighbours, sets):
    verdict = check(text, epsilon=0.1, dim=1, neighbours=neighbours)
    assert verdict.refuted
    assert str(verdict.witness.data_sets) == sets
    assert verdict.to_dict()["witness"]["data_sets"] == sets.split(" against ")


@pytest.mark.parametrize(("low", "high"), [(-5, 0), (-2, 1), (0, 4), (-1, 8)])
@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_both_orders_of_a_record_and_its_absence_count(low, high, rate):
    """A record 3 or 0 against none, in both orders; other records can only move both sums up."""
    text = f"poisson({rate}) | clamp(0, 3) | laplace(1) | clamp({low}, {high})"
    mixed, alone = [(rate, 3.0), (1 - rate, 0.0)], [(1.0, 0.0)]
    with_it, without = (clamped(law, low, high) for law in (mixed, alone))
    shown = max(float(np.log(with_it / without).max()), float(np.log(without / with_it).max()))
    verdict = check(text, epsilon=0.99 * shown, dim=1)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(shown, rel=1e-3)
    assert verify(certify(verdict)).verdict == "refuted"
    # One bit, which side of a threshold, is known to show at least this much of each order.
    split = [(law[0], law[1:].sum()) for law in (with_it, without)]
    epsilon = shown / 2
    bit = max(
        max(p - math.exp(epsilon) * q for p, q in zip(first, second, strict=True))
        for first, second in (split, split[::-1])
    )
    found = check(text, epsilon=epsilon, delta=0.5, dim=1)
    assert found.delta.lower <= largest([(mixed, alone)], epsilon, low, high) + 1e-6  # cells show a little less
    assert found.delta.upper >= bit
    assert verify(certify(found)).verdict == found.word


@pytest.mark.long
def test_what_absence_shows_in_several_steps():
    shown = 2 * math.log(2 / (1 + math.exp(-3)))
    verdict = check("poisson(0.5) | clamp(0, 3) | laplace(1) | clamp(-5, 0) | times(2)", epsilon=shown - 1e-6, dim=1)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(shown, rel=1e-9)
    assert verify(certify(verdict)).verdict == "refuted"
