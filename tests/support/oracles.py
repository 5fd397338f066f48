"""Independent values to compare with: formulas in mpmath and fractions, none of them from dpassay.

Each function works at the precision it says and checks itself by repeating at a higher one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from mpmath import mp, mpf

Groups = Sequence[tuple[object, int]]


def settled(compute: Callable[[], mpf], digits: int, agreeing: int = 30) -> mpf:
    """Compute at increasing precision until two results agree to the given number of digits."""
    last = None
    while digits < 6000:
        with mp.workdps(digits):
            value = compute()
            if last is not None and abs(value - last) <= mpf(10) ** -agreeing * abs(value):
                return value
            last = value
        digits = digits * 3 // 2
    raise ArithmeticError("the oracle does not settle")


# ── One coordinate ──────────────────────────────────────────────────────────────────────────────


def read(value: object) -> mpf:
    """Read a number at the working precision; a float is read as the decimal it prints as."""
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    return mpf(repr(value)) if isinstance(value, float) else mpf(value)


def normal_cdf(x: mpf) -> mpf:
    """Φ(x)."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gaussian_delta(mu: object, epsilon: object) -> mpf:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), for any real ε (Balle and Wang 2018), at the working precision."""
    m, e = read(mu), read(epsilon)
    return normal_cdf(m / 2 - e / m) - mp.exp(e) * normal_cdf(-m / 2 - e / m)


def gaussian_epsilon(mu: object, delta: object) -> mpf:
    """Solve gaussian_delta(μ, ε) = δ for ε ≥ 0, on the logarithm, by a bracketing method."""
    m, d = read(mu), read(delta)
    high = m**2 / 2 + m * mp.sqrt(2 * mp.log(1 / d))  # P(L > ε) ≤ e^(−(ε − μ²/2)²/(2μ²)) there equals δ
    return mp.findroot(
        lambda e: mp.log(gaussian_delta(m, e) / d), (mpf(0), high), solver="anderson", tol=mpf(10) ** (-mp.dps)
    )


def laplace_density(t: mpf, scale: object = 1) -> mpf:
    """e^(−|t|/b)/(2b)."""
    return mp.exp(-abs(t) / read(scale)) / (2 * read(scale))


def hockey_stick(
    p: Callable[[mpf], mpf],
    q: Callable[[mpf], mpf],
    epsilon: object,
    points: Sequence[object],
    width: object,
    tail: bool = False,
) -> mpf:
    """∫ max(0, p − e^ε q), or for the tail ∫ p where p > e^ε q, between the points and 80 widths beyond them.

    The points must contain every kink of p and q; the zeros of p − e^ε q are looked for in fine cells.
    """
    weight, w, total = mp.exp(read(epsilon)), read(width), mpf(0)

    def excess(t: mpf) -> mpf:
        return p(t) - weight * q(t)

    marks = sorted({read(x) for x in points})
    marks = [*(marks[0] - k * w for k in (80, 20, 5)), *marks, *(marks[-1] + k * w for k in (5, 20, 80))]
    for left, right in itertools.pairwise(marks):
        for a, b in itertools.pairwise([left + (right - left) * i / 12 for i in range(13)]):
            # A kink's own value belongs to neither side: look just inside.
            inside = (b - a) * mpf(10) ** (-mp.dps // 2)
            above = excess(a + inside) > 0, excess(b - inside) > 0
            if not any(above):
                continue
            piece = [a, b]
            if not all(above):
                zero = mp.findroot(excess, (a + inside, b - inside), solver="anderson", tol=mpf(10) ** (-2 * mp.dps))
                piece = [a, zero] if above[0] else [zero, b]
            total += mp.quad(p if tail else excess, piece, method="gauss-legendre")
    return total


# ── Sums of Laplace losses ──────────────────────────────────────────────────────────────────────
#
# One loss has under P atoms 1/2 at a and e^−a/2 at −a, and between them the density e^((ℓ−a)/2)/4.
# That is e^(ℓ/2) times a symmetric measure whose two-sided Laplace transform is
#     e^(−a/2)/2 · [e^(sa)(1 + 1/2s) + e^(−sa)(1 − 1/2s)].
# The product over all coordinates is a sum of e^(s·τ)·(1 + 1/2s)^(N−K)(1 − 1/2s)^K, each inverted
# by hand: s^−r is y^(r−1)/(r−1)!, s^0 an atom.


def _damped_powers(c: mpf, top: mpf, count: int) -> list[mpf]:
    """∫₀^top e^(−cy) y^(r−1)/(r−1)! dy for r = 1 … count; for r = 0 the atom, 1."""
    values = [mpf(1), (1 - mp.exp(-c * top)) / c]
    term = mp.exp(-c * top)
    for r in range(1, count):
        term = term * top / r
        values.append((values[-1] - term) / c)
    return values


def _polynomials(total: int) -> list[list[mpf]]:
    """The coefficients of (1 + x)^(N−k) (1 − x)^k for each k, with x = 1/2s: that of x^r divided by 2^r."""
    whole, found = [math.comb(total, r) for r in range(total + 1)], []
    for _ in range(total + 1):
        found.append([mpf(c) / mpf(2) ** r for r, c in enumerate(whole)])
        quotient = list(itertools.accumulate(whole[:-1], lambda before, c: c - before))  # by 1 + x
        whole = [a - b for a, b in zip([*quotient, 0], [0, *quotient], strict=True)]
    return found


def _laplace_sums(groups: Groups, epsilon: object) -> tuple[mpf, mpf]:
    """P(L > ε) and Q(L > ε) for the sum of n losses of each shift a, at the working precision."""
    shifts, counts = [read(a) for a, _ in groups], [n for _, n in groups]
    total, e = sum(counts), read(epsilon)
    most = sum((a * n for a, n in zip(shifts, counts, strict=True)), mpf(0))
    polynomials = _polynomials(total)
    under_p = under_q = mpf(0)
    for ks in itertools.product(*(range(n + 1) for n in counts)):
        below = 2 * sum((a * k for a, k in zip(shifts, ks, strict=True)), mpf(0))
        top = most - e - below
        if top <= 0:
            continue
        ways = math.prod(math.comb(n, k) for n, k in zip(counts, ks, strict=True))
        poly = polynomials[sum(ks)]
        for_p, for_q = _damped_powers(mpf(1) / 2, top, total), _damped_powers(mpf(-1) / 2, top, total)
        under_p += ways * mp.exp(-below / 2) * mp.fdot(poly, for_p)
        under_q += ways * mp.exp(below / 2 - most) * mp.fdot(poly, for_q)
    return under_p / 2**total, under_q / 2**total


def laplace_sum_delta(groups: Groups, epsilon: object) -> mpf:
    """δ(ε) of independent Laplace coordinates, n of each shift a (in scales), for any real ε; 30 digits."""

    def compute() -> mpf:
        under_p, under_q = _laplace_sums(groups, epsilon)
        return under_p - mp.exp(read(epsilon)) * under_q

    return settled(compute, 50 + sum(n for _, n in groups))


def laplace_sum_tail(groups: Groups, epsilon: object) -> mpf:
    """P(L > ε), likewise."""
    return settled(lambda: _laplace_sums(groups, epsilon)[0], 50 + sum(n for _, n in groups))


# ── Bits and finite pmfs ────────────────────────────────────────────────────────────────────────


def bits_delta(n: int, p: Fraction, q: Fraction, epsilon: object) -> mpf:
    """δ(ε) of n bits, 1 with probability p under P and q under Q: Σ_k C(n,k)·max(0, P_k − e^ε Q_k)."""
    weight = mp.exp(read(epsilon))
    terms = (
        math.comb(n, k) * (read(p**k * (1 - p) ** (n - k)) - weight * read(q**k * (1 - q) ** (n - k)))
        for k in range(n + 1)
    )
    return sum((t for t in terms if t > 0), mpf(0))


def many_bits_delta(n: int, p: object, q: object, epsilon: object) -> mpf:
    """The same by recurrences of both binomials, for large n, at the working precision (n roundings are lost)."""
    one, other = read(p), read(q)
    ups = one / (1 - one), other / (1 - other)
    under_p, under_q, total = (1 - one) ** n, (1 - other) ** n * mp.exp(read(epsilon)), mpf(0)
    for k in range(n + 1):
        if under_p > under_q:
            total += under_p - under_q
        grow = mpf(n - k) / (k + 1)
        under_p, under_q = under_p * grow * ups[0], under_q * grow * ups[1]
    return total


def finite_delta(p: Sequence[Fraction], q: Sequence[Fraction], epsilon: object) -> mpf:
    """Σ max(0, p − e^ε q)."""
    weight = mp.exp(read(epsilon))
    return sum((max(mpf(0), read(a) - weight * read(b)) for a, b in zip(p, q, strict=True)), mpf(0))


# ── Comparing ───────────────────────────────────────────────────────────────────────────────────


def encloses(interval: object, truth: mpf, digits: int = 25) -> bool:
    """Whether an interval of doubles contains a number that is known to the given number of digits."""
    room = abs(truth) * mpf(10) ** -digits
    return bool(interval.lower <= truth + room and truth - room <= interval.upper)


def relative_width(interval: object) -> float:
    """Width over upper end, 0 where both are 0."""
    return 0.0 if interval.upper == 0 else (interval.upper - interval.lower) / interval.upper


def ends(number: object) -> tuple[Fraction, Fraction]:
    """Both ends of an enclosure, exactly."""
    found = [end.man_exp() for end in (number.a, number.b)]  # type: ignore[attr-defined]
    low, high = (Fraction(mantissa) * Fraction(2) ** exponent for mantissa, exponent in found)
    return low, high


def holds(number: object, truth: mpf, digits: int = 40) -> bool:
    """Whether an enclosure contains a number that is known to the given number of digits."""
    of_mpmath = getattr(number, "_mpi_", None)  # the verifier's arithmetic
    both = map(mp.make_mpf, of_mpmath) if of_mpmath else (mpf(number.a), mpf(number.b))  # type: ignore[attr-defined]
    low, high = both
    room = abs(truth) * mpf(10) ** -digits
    return bool(low <= truth + room and truth - room <= high)
