"""n equal bits against exact sums: fractions up to 200 copies, mpmath beyond."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core.interval import Interval
from dpassay.core.numbers import ZERO, between, down, log, number, real, up
from dpassay.exact.pld.binomial import TwoAtomPower, two_atom_power
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from oracles import bits_delta, encloses, many_bits_delta, read, relative_width

quick = settings(derandomize=True, deadline=None, max_examples=40)


def bit(p, q):
    one, other = number(p), number(q)
    return AtomLoss.between((one, 1 - one), (other, 1 - other))


def bits(n, p, q):
    return PrivacyLoss(((bit(p, q), n),))


def narrow(interval):
    return relative_width(interval) <= 1e-12


probabilities = st.tuples(st.integers(1, 999), st.sampled_from([1000, 1001, 10**6])).map(lambda t: Fraction(*t))


@quick
@given(st.sampled_from([2, 3, 7, 20, 57, 200]), probabilities, probabilities, st.floats(0, 1))
def test_delta_against_fractions(n, p, q, position):
    if p == q:
        return
    with mp.workdps(80):
        largest = n * max(abs(mp.log(read(p / q))), abs(mp.log(read((1 - p) / (1 - q)))))
        epsilon = round(float(largest) * position, 6)
        truth = bits_delta(n, p, q, epsilon)
        interval = bits(n, p, q).delta(epsilon)
        assert encloses(interval, truth, digits=60)
        if truth > mpf(10) ** -40:
            assert narrow(interval)


@quick
@given(
    st.sampled_from([2, 5, 40, 200]), probabilities, probabilities, st.sampled_from(["1e-20", "1e-6", "0.05", "0.4"])
)
def test_epsilon_against_fractions(n, p, q, delta):
    if p == q:
        return
    interval = bits(n, p, q).epsilon(delta)
    assert narrow(interval)
    with mp.workdps(80):
        # δ falls: it is at least δ at the lower end and at most δ at the upper one.
        room = mpf(10) ** -60
        assert bits_delta(n, p, q, mpf(interval.upper)) <= read(delta) * (1 + room)
        if interval.lower > 0:
            assert bits_delta(n, p, q, mpf(interval.lower)) >= read(delta) * (1 - room)


def exact_tail(n, p, losses_above):
    return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if losses_above(k)), Fraction(0))


@pytest.mark.parametrize("n", [2, 3, 4, 10, 101])
@pytest.mark.parametrize("keep", ["0.55", "0.6", "0.75", "0.8", "0.9", "0.999", "0.47"])
def test_the_tail_at_zero_of_flipped_bits(n, keep):
    # With symmetric flipping the loss is (2k − n)·ln(p/(1−p)): exactly 0 when half of the bits are kept.
    p = Fraction(keep)
    truth = exact_tail(n, p, lambda k: (2 * k > n) if p > Fraction(1, 2) else (2 * k < n))
    interval = bits(n, p, 1 - p).tail(0)
    assert interval.lower <= truth <= interval.upper


@quick
@given(st.sampled_from([2, 7, 60]), probabilities, probabilities, st.floats(0.01, 0.99))
def test_the_tail_against_fractions(n, p, q, position):
    if p == q:
        return
    with mp.workdps(60):
        gains = mp.log(read(p / q)), mp.log(read((1 - p) / (1 - q)))
        epsilon = round(float(n * max(gains)) * position, 6)
        truth = exact_tail(n, p, lambda k: k * gains[0] + (n - k) * gains[1] > read(epsilon))
    interval = bits(n, p, q).tail(epsilon)
    assert interval.lower <= truth <= interval.upper
    assert interval.upper >= bits(n, p, q).delta(epsilon).lower


@pytest.mark.long
def test_a_hundred_thousand_bits_against_mpmath():
    n, p, q = 100_000, "0.505", "0.495"
    loss = bits(n, p, q)
    with mp.workdps(40):
        for epsilon in ("20", "45"):
            truth = many_bits_delta(n, p, q, epsilon)
            interval = loss.delta(epsilon)
            assert encloses(interval, truth)
            assert narrow(interval)
        back = loss.epsilon(float(truth))
        assert narrow(back)
        assert back.lower <= 45 * (1 + 1e-12)
        assert back.upper >= 45 * (1 - 1e-12)


@pytest.mark.parametrize("loss_each", ["0.001", "1", "10"])
def test_a_hundred_thousand_bits_up_to_an_epsilon_of_a_million(loss_each):
    n = 100_000
    with mp.workdps(60):
        keep = 1 / (1 + mp.exp(-read(loss_each)))
        p = mp.nstr(keep, 55)
        gain = mp.log(read(p) / (1 - read(p)))
    loss = bits(n, p, 1 - number(p))
    pure = Interval.around(loss.pure)
    assert encloses(pure, n * gain)
    assert narrow(pure)
    for delta in ("1e-12", "1e-6", "0.1"):
        interval = loss.epsilon(delta)
        assert narrow(interval)
        assert 0 < interval.lower < pure.upper
        there = loss.delta(interval.lower)
        assert narrow(there)
        assert there.lower >= float(delta) * (1 - 1e-6)


@pytest.mark.parametrize("n", [2, 3, 10, 61])
@pytest.mark.parametrize(("lower", "upper"), [("0", "0.5"), ("0.9", "1.2"), ("1.0986", "1.0987"), ("0", "30")])
def test_an_epsilon_that_is_only_enclosed(n, lower, upper):
    """Which loss is the first above ε is uncertain: δ holds for every ε between the ends, and so does ε for every δ."""
    enclosed = between(number(lower), number(upper))
    loss = TwoAtomPower(bit("0.75", "0.25"), n)
    found = loss.delta(enclosed)
    with mp.workdps(60):
        ends = [bits_delta(n, Fraction(3, 4), Fraction(1, 4), mpf(end)) for end in (upper, lower)]
        assert mpf(down(found)) <= ends[0]
        assert ends[1] <= mpf(up(found))
        back = loss.epsilon(between(number("1e-9"), number("0.1")))
        for delta, end in (("0.1", down(back)), ("1e-9", up(back))):
            there = bits_delta(n, Fraction(3, 4), Fraction(1, 4), mpf(end))
            assert there >= read(delta) if delta == "0.1" and end > 0 else there <= read(delta)


@pytest.mark.parametrize("n", [2, 4, 10])
def test_an_epsilon_that_is_a_loss(n):
    """ln 3 times a whole number is a loss itself, and no enclosure of it is a point."""
    loss, three = TwoAtomPower(bit("0.75", "0.25"), n), log(real(3))
    for k in range(0, n, 2):
        there = [Fraction(math.comb(n, i) * 3**i, 4**n) for i in range(n + 1)]
        truth = sum(max(Fraction(0), there[i] - 3**k * there[n - i]) for i in range(n + 1))
        found = loss.delta(k * three)
        assert exactly_between(found, truth)
        assert narrow(Interval.around(found))


def exactly_between(found, truth):
    return number(truth).b >= found.a and found.b >= number(truth).a


def test_beyond_the_largest_loss_delta_is_zero():
    for n in (2, 1000, 100_000):
        loss = bits(n, "0.75", "0.25")
        assert loss.delta(number(3 * n)).upper == 0


def test_the_claim_of_symmetric_flipping():
    # FACTS §6: P(keep) = e^s/(1+e^s), s = ε/(r·l): r·l·s = ε.
    n = 7680
    with mp.workdps(60):
        s = mpf(1) / n
        p = mp.nstr(1 / (1 + mp.exp(-s)), 55)
        assert encloses(Interval.around(bits(n, p, 1 - number(p)).pure), mpf(1), digits=40)


def test_omes_pure_loss():
    # FACTS §6: r=768, l=10, ε=1, λ=100 gives 53,013.36: the sum over bits of the larger of the two log ratios.
    n, lam = 7680, 100
    with mp.workdps(60):
        q = 1 / (1 + lam * mp.exp(mpf(1) / n))
        even, odd = mpf(lam) / (1 + lam), 1 / (1 + mpf(lam) ** 3)
        truth = sum((n // 2) * max(abs(mp.log(p / q)), abs(mp.log((1 - p) / (1 - q)))) for p in (even, odd))
        assert mp.nstr(truth, 7) == "53013.36"
        # The larger loss of an odd bit is on the other direction: P has the 0 there.
        texts = [mp.nstr(x, 55) for x in (even, q, odd)]
    loss = bits(n // 2, texts[0], texts[1]).compose(bits(n // 2, texts[1], texts[2]))
    with mp.workdps(60):
        assert encloses(Interval.around(loss.pure), truth, digits=30)


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_bits_that_q_never_sets(n):
    # Where Q never has a 1, any 1 gives it away: δ = 1 − (1 − p)^n + (1 − p)^n · max(0, 1 − e^ε/(1−p)^n) for each ε.
    loss = bits(n, "0.1", 0)
    with mp.workdps(60):
        for epsilon in ("0", "1"):
            assert encloses(loss.delta(epsilon), 1 - mpf("0.9") ** n, digits=40)


def test_losses_in_order():
    power = TwoAtomPower(bit("0.2", "0.7"), 5)
    losses = [power.loss(k).mid for k in range(6)]
    assert losses == sorted(losses)
    with mp.workdps(60):
        gap = mp.log(mpf(8) / 3) - mp.log(mpf(2) / 7)
        assert encloses(Interval.around(power.gap), gap)


def test_no_power_where_both_atoms_are_equal_or_one_is_missing():
    assert two_atom_power(bit("0.3", "0.3"), 5) is None
    assert two_atom_power(AtomLoss(((ZERO, number(1)),)), 5) is None
    assert two_atom_power(AtomLoss.between((number(1),), (number(1),)), 5) is None


@pytest.mark.parametrize(
    ("p", "q"), [("1e-30", "0.5"), ("0.5", "1e-30"), ("1e-100", "1e-90"), ("0.999999999999", "0.5")]
)
def test_extreme_probabilities(p, q):
    n = 20
    with mp.workdps(400):
        for epsilon in ("0", "10", "100"):
            truth = bits_delta(n, Fraction(p), Fraction(q), epsilon)
            assert encloses(bits(n, p, q).delta(epsilon), truth, digits=60)
