"""The verifier's arithmetic, piece by piece, against mpmath, fractions and the exact sums of oracles.py."""

import time
from fractions import Fraction

import pytest
from mpmath import mp, mpf

import oracles
from dpassay import CertificateError
from dpassay.evidence.verifier import text
from dpassay.evidence.verifier.arithmetic import binomial, lattice, normal
from dpassay.evidence.verifier.arithmetic.numbers import INF, ZERO, above, below, hull, is_infinite, iv, middle, number
from dpassay.evidence.verifier.noises import discrete, losses


def precisely(compute, *arguments):
    """What an oracle gives at 60 digits."""
    with mp.workdps(60):
        return compute(*arguments)


def holds(interval, truth):
    """Whether an enclosure contains a number, up to its 30th digit."""
    return precisely(oracles.holds, interval, truth, 30)


def fraction(value):
    return iv.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize(
    "z", ["-9", "-1", "-1e-30", "0", "1e-30", "0.3", "2.9", "5.999", "6", "6.5", "12", "40", "300"]
)
def test_the_normal_tail(z):
    found, truth = normal.tail(number(z)), precisely(lambda: oracles.normal_cdf(-mpf(z)))
    assert holds(found, truth)
    assert above(found.delta / found.b) < 1e-45


def test_the_normal_tail_far_out():
    assert normal.tail(INF) == 0
    assert normal.tail(-INF) == 1
    with mp.workdps(60):  # φ(z)/z·(1 − 1/z²) < P(Z > z) < φ(z)/z
        most = mp.exp(-(mpf("1e200") ** 2) / 2) / mp.sqrt(2 * mp.pi) / mpf("1e200")
        assert mp.almosteq(mp.mpf(normal.tail(number("1e200")).mid._mpi_[0]), most, rel_eps=mpf("1e-20"))


@pytest.mark.parametrize(("epsilon", "mu"), [("0.5", "0.1"), ("1", "1"), ("10", "2.06408"), ("300", "25"), ("0", "3")])
def test_the_gaussian_curve(epsilon, mu):
    truth = precisely(oracles.gaussian_delta, mu, epsilon)
    assert holds(normal.gaussian_delta(number(epsilon), number(mu)), truth)
    assert f"{middle(normal.gaussian_delta(number(10), 1 / number('0.48448'))):.4g}" == "2.265e-05"


SUMS = [("0.5", 2, "0.3"), ("0.5", 2, "0.99"), ("0.17677669", 32, "1"), ("0.17677669", 32, "5"), ("2", 5, "4")]


@pytest.mark.parametrize(("shift", "count", "epsilon"), SUMS)
@pytest.mark.parametrize("tilt", ["0", "2"])
def test_sums_of_laplace_losses(shift, count, epsilon, tilt):
    """From below and from above the exact sum, within a thousandth."""
    grid = lattice.Grid(number(shift) / 256, number(tilt))
    loss = losses.laplace_loss([(number(shift), count)], number(1), grid)
    truth = oracles.laplace_sum_delta([(shift, count)], epsilon)
    low, high = (loss.delta(number(epsilon), upper) for upper in (False, True))
    assert holds(hull(low, high), truth)
    assert below(low) > 0.999 * float(truth)
    assert above(high) < 1.001 * float(truth)


def test_sums_of_unequal_laplace_losses():
    groups = [("0.3", 3), ("0.71", 2)]
    shifts = [(number(shift), count) for shift, count in groups]
    loss = losses.laplace_loss(shifts, number(1), lattice.Grid(number("0.001"), ZERO))
    for epsilon in ("0.2", "1.5"):
        low, high = (loss.delta(number(epsilon), upper) for upper in (False, True))
        assert holds(hull(low, high), oracles.laplace_sum_delta(groups, epsilon))
        assert above(high) / below(low) < 1.02
    with pytest.raises(CertificateError, match="needs a grid"):
        losses.laplace_loss(shifts, number(1), None).delta(number(1), True)


def test_a_tilt_beyond_doubles_is_refused():
    """Where e^(−tilt·gap) is rounded by more than a quarter nothing is said."""
    parts = [(lattice.LaplaceShift(number("5e9")), 200)]
    composed = lattice.compose(parts, lattice.Grid(number("1e6"), number("1e6")), True)
    with pytest.raises(CertificateError, match="tilt is too large"):
        composed.delta(number("999999999999.9"), True)


@pytest.mark.parametrize(("p", "q", "n"), [("3/4", "1/4", 7), ("2/5", "1/5", 12), ("1/10", "9/10", 5), ("1", "1/3", 4)])
def test_equal_bits(p, q, n):
    p, q = Fraction(p), Fraction(q)
    bits = binomial.BitGroups(((*binomial.ones_first(fraction(p), fraction(q)), n),))
    for epsilon in ("0", "0.4", "2"):
        assert holds(bits.delta(number(epsilon), True), precisely(oracles.bits_delta, n, p, q, epsilon))


def test_a_probability_that_may_be_0_gives_nothing_away():
    maybe = iv.mpf([0, "1e-55"])
    for loss in (
        binomial.BitGroups(((maybe, ZERO, 9),)),
        losses.FiniteOutcomes(((maybe, ZERO), (1 - maybe, 1 - ZERO))),
    ):
        assert loss.pure.a <= 0
        assert is_infinite(loss.pure)
        assert loss.delta(ZERO, False).a <= 0
        assert loss.delta(ZERO, True).b >= 1e-55
    assert losses.gaussian_loss(maybe).pure.a == 0
    assert is_infinite(losses.gaussian_loss(maybe).pure)
    assert losses.FiniteOutcomes(((number("0.5"), ZERO), (number("0.5"), number(1)))).pure.a == INF


@pytest.mark.long
def test_a_hundred_thousand_bits():
    keep = 1 / (1 + iv.exp(-number("0.01")))

    def oracle():
        p = 1 / (1 + mp.exp(-mpf("0.01")))
        return oracles.many_bits_delta(10**5, p, 1 - p, "6")

    start = time.process_time()
    found = binomial.BitGroups(((keep, 1 - keep, 10**5),)).delta(number(6), True)
    assert time.process_time() - start < 30
    assert holds(found, precisely(oracle))


KINDS = [
    (Fraction(1, 2), Fraction(1, 5), 3),
    (Fraction(2, 5), Fraction(3, 5), 2),
    (Fraction(1, 7), Fraction(1, 3), 2),
]


@pytest.mark.parametrize("kinds", [KINDS[:2], KINDS], ids=len)
def test_some_kinds_of_bits_from_below(kinds):
    """All outputs, one by one."""
    outputs = [(Fraction(1), Fraction(1))]
    for a, b, count in kinds:
        for _ in range(count):
            outputs = [(p * x, q * y) for p, q in outputs for x, y in ((a, b), (1 - a, 1 - b))]
    loss = losses.bits_loss([(fraction(a), fraction(b), n) for a, b, n in kinds])
    for epsilon in ("0.1", "1", "2.5"):
        ways = [oracles.finite_delta(*zip(*way, strict=True), epsilon) for way in (outputs, [o[::-1] for o in outputs])]
        assert below(loss.delta(number(epsilon), False)) == pytest.approx(float(max(ways)), rel=1e-12)


@pytest.mark.parametrize(("p", "q"), [("9/10", "3/10"), ("1", "1/4"), ("1/2", "1/2"), ("2/3", "1/3")])
def test_the_dominating_pair_of_a_bit(p, q):
    """At every ε it is the larger of both ways, and no more."""
    p, q = Fraction(p), Fraction(q)
    if p == q:
        atoms = discrete._envelope(number("0.5"), number("0.5"))
        assert [middle(loss) for loss, _ in atoms.atoms] == [0.0]
        return
    atoms = discrete._envelope(fraction(p), fraction(q))
    for epsilon in ("0", "0.3", "1", "1.5", "1.9"):
        rise = iv.exp(number(epsilon))
        found = middle(atoms.infinite) + sum(
            max(0.0, middle(mass * (1 - rise / iv.exp(loss)))) for loss, mass in atoms.atoms
        )
        ways = (oracles.bits_delta(1, p, q, epsilon), oracles.bits_delta(1, q, p, epsilon))
        assert found == pytest.approx(float(max(ways)), rel=1e-12, abs=1e-15)


def test_renyi_bounds_lie_above_the_truth():
    shift, count = "0.17677669", 32
    for order in ("1.5", "4", "20"):
        bound = losses.renyi_loss(number(shift), count, number(order))
        for epsilon in ("1", "3", "5"):
            truth = oracles.laplace_sum_delta([(shift, count)], epsilon)
            assert truth < above(bound.delta(number(epsilon), True))
    best = min(above(losses.renyi_loss(number(shift), count, number(o)).delta(number(3), True)) for o in range(2, 20))
    assert best < 40 * oracles.laplace_sum_delta([(shift, count)], "3")


def test_factorials():
    for n in (0, 5, 199, 200, 10**6):
        assert holds(binomial.log_factorial(n), precisely(lambda n=n: mp.loggamma(n + 1)))


# ── The text ────────────────────────────────────────────────────────────────────────────────────


def test_texts_are_read_as_they_are_meant():
    values = {"lambda": number(3), "C": number(2), "eps": number("0.5"), "dim": number(9)}
    cases = {
        "clip(l2, 2*C/eps)": 8.0,
        "clip(norm=l2, radius=C^2^3)": 256.0,
        "clip(l2, radius = -C + 3*sqrt(dim))": 7.0,
        "clip(l2, (1 - .5)**2 * exp(ln(8)))": 2.0,
        "clip(l2, 1e2 / -(-4))": 25.0,
        "clip(l2, -2^2 + 5)": 1.0,
        "clip(l2, 2. + pi - pi)": 2.0,
        "clip(l2, lambda*1e-1 + 7e0)": 7.3,
    }
    for written, expected in cases.items():
        assert middle(text.read_text(written, values)[0].arguments["radius"]) == pytest.approx(expected, rel=1e-14)
    wrong = [
        "clip(l2, D)",
        "gaussian(least_sigma(1, 1e-6, 1))",  # the writer finds it, and gives it a name
        "clip(l2, 1//2)",
        "clip(l2, 0x10)",
        "clip(l2, 1_0)",
        "clip(l2, 1 if 1 else 2)",
        "clip(l2, (1, 2))",
        "clip(*l2)",
        "clip(l2, '1')",
        "clip.l2(1)",
        "clip(l2, 1)(2)",
        "clip(l2, 1 | 2)",
        "clip(l2, exp(1, 2))",
        "clip(l2, x=1)",
        "clip(l2, 1, norm=l1)",
        "clip(l2, 1/0)",
        "chop(l2, 1)",
        "clip(l2",
        "clip(l2, 1) |",
        "clip(l2, ((1)",
        "",
        "clip(l2, 1;2)",
    ]
    for written in wrong:
        with pytest.raises(CertificateError, match="text"):
            text.read_text(written, values)
    with pytest.raises(CertificateError, match="deeply"):
        text.read_text(f"clip(l2, {'(' * 500}1{')' * 500})", values)
