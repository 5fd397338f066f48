"""The exact loss of n copies of a loss with two atoms (bits flipped with equal probability), in integer arithmetic.

Of n copies, k take the larger loss with weight w_k = C(n,k) p^k r^(n−k). The weights are computed
relative to the largest one in fixed point, rounded down and up, so that both ends are certified.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from dpassay.core.enclosure import dyadic
from dpassay.core.numbers import INFINITY, ZERO, Number, between, ceiling, exp, floor, log, maximum, number, real
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.values import dataclass

_BITS = 256
_UNIT = 1 << _BITS


def _fixed(value: Number) -> tuple[int, int]:
    """A number as fixed point, rounded down and up; an error if an end is infinite."""
    fixed = value * _UNIT
    return floor(fixed), ceiling(fixed)


def _number(low: int, high: int) -> Number:
    return dyadic(max(0, low), high, -_BITS)


def _from_mode(ratio: Number, shares: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Weights in one direction from the largest: each is the previous one times the ratio and a fraction."""
    low, high = _UNIT, _UNIT
    weights: list[tuple[int, int]] = []
    for times, by in shares:
        if not weights:  # where there are none, the ratio may be of any size
            ratio_low, ratio_high = _fixed(ratio)
        low = low * ratio_low * times // (by << _BITS)
        high = high * ratio_high * times // (by << _BITS) + 1
        weights.append((low, high))
        if low == 0:
            break
    return weights


@dataclass(frozen=True)
class _Scaled:
    """Numbers in fixed point, from below and from above, times a scale; few of them are asked for."""

    fixed: Sequence[tuple[int, int]]
    scale: Number

    def __len__(self) -> int:
        return len(self.fixed)

    def __getitem__(self, i: int) -> Number:
        return _number(*self.fixed[i]) * self.scale


@dataclass(frozen=True)
class TwoAtomPower:
    """n copies of a two-atom loss.

    >>> bit = AtomLoss.between((number("0.75"), number("0.25")), (number("0.25"), number("0.75")))
    >>> round(float(TwoAtomPower(bit, 2).delta(ZERO).mid), 9)  # 0.75² − 0.25²
    0.5
    """

    component: AtomLoss
    count: int

    @cached_property
    def _ordered(self) -> tuple[tuple[Number, Number], tuple[Number, Number]]:
        (a, p), (b, r) = self.component.atoms
        return ((a, p), (b, r)) if a.mid >= b.mid else ((b, r), (a, p))

    @property
    def gap(self) -> Number:
        """The distance between neighboring losses."""
        (high, _), (low, _) = self._ordered
        return high - low

    def loss(self, k: int) -> Number:
        """The loss when k copies take the larger value."""
        (high, _), (low, _) = self._ordered
        return high * k + low * (self.count - k)

    @cached_property
    def _weights(self) -> tuple[int, list[int], list[int]]:
        """First k, and the weights from there, as fixed point from below and from above."""
        n = self.count
        (_, p), (_, r) = self._ordered
        mode = min(n, int(float((p / (p + r)).mid) * (n + 1)))
        right = _from_mode(p / r, ((n - k, k + 1) for k in range(mode, n)))
        left = _from_mode(r / p, ((k, n - k + 1) for k in range(mode, 0, -1)))
        both = [*reversed(left), (_UNIT, _UNIT), *right]
        return mode - len(left), [w for w, _ in both], [w for _, w in both]

    @cached_property
    def _sums(self) -> tuple[int, _Scaled, _Scaled]:
        """Suffix sums: of the weights, and of the weights damped by e^−(loss − first loss)."""
        first, low, high = self._weights
        (_, p), (_, r) = self._ordered
        # Weights left out on either side are each below the last one kept.
        beyond = self.count * high[-1] if first + len(high) <= self.count else 0
        spare = beyond + (self.count * high[0] if first else 0)
        finite = (p + r) ** self.count
        scale = finite / _number(sum(low), sum(high) + spare)
        damp_low, damp_high = _fixed(exp(-self.gap))
        total = damp = (0, beyond)
        totals, damped = [], []
        for w_low, w_high in zip(reversed(low), reversed(high), strict=True):
            total = total[0] + w_low, total[1] + w_high
            damp = w_low + (damp[0] * damp_low >> _BITS), w_high + (damp[1] * damp_high >> _BITS) + 1
            totals.append(total)
            damped.append(damp)
        return first, _Scaled(totals[::-1], scale), _Scaled(damped[::-1], scale)

    def _at(self, i: int, epsilon: Number) -> Number:
        """δ(ε) if the ith kept loss is the first above ε."""
        first, totals, damped = self._sums
        if i >= len(totals):
            return ZERO if first + len(totals) > self.count else between(ZERO, totals[-1])
        return totals[i] - exp(epsilon - self.loss(first + i)) * damped[i]

    def _first(self, holds: Callable[[int], bool]) -> int:
        """The first kept loss of which something holds that holds of all after it, or how many are kept."""
        return bisect_left(range(len(self._sums[1])), True, key=holds)

    def delta(self, epsilon: Number) -> Number:
        """The finite part of δ(ε).

        It is the largest `_at(i)`: that of the first loss above ε. Where it is uncertain which one that is, all that
        may be are tried.
        """
        if epsilon.a >= self.loss(self.count).b:
            return ZERO
        first = self._sums[0]
        earliest = self._first(lambda i: bool(self.loss(first + i).b > epsilon.a))
        latest = self._first(lambda i: bool(self.loss(first + i).a > epsilon.b))
        return maximum(ZERO, *(self._at(i, epsilon) for i in range(earliest, latest + 1)))

    def epsilon(self, delta: Number) -> Number:
        """The least ε ≥ 0 whose finite δ(ε) is at most the one given.

        At ε equal to the ith loss δ is `_at(i + 1)`: from the first i where that is at most δ, ε is where `_at(i)` is.
        Any other i gives less, so where it is uncertain which one is the first, the largest of all is taken.
        """
        first, totals, damped = self._sums

        def there(i: int) -> Number:
            return self._at(i + 1, self.loss(first + i))

        earliest, latest = (
            self._first(lambda i: bool(there(i).a <= delta.b)),
            self._first(lambda i: bool(there(i).b <= delta.a)),
        )
        if earliest == len(totals):
            return between(self.loss(first + earliest - 1), self.loss(self.count))
        found = [ZERO]
        for i in range(earliest, min(latest + 1, len(totals))):
            ratio = (totals[i] - delta) / damped[i]
            if ratio.b > 0:
                found.append(
                    self.loss(first + i) + (log(ratio) if ratio.a > 0 else between(-INFINITY, log(real(ratio.b))))
                )
        largest = maximum(*found)
        return between(largest, self.loss(self.count)) if latest == len(totals) else largest

    def tail(self, epsilon: Number) -> Number:
        """P(loss > ε), the finite part; if a loss may equal ε, both with and without it."""
        first, totals, _ = self._sums

        def beyond(surely: bool) -> Number:
            def above(i: int) -> bool:
                loss = self.loss(first + i)
                return bool(loss.a > epsilon.b if surely else loss.b > epsilon.a)

            i = bisect_left(range(len(totals)), True, key=above)
            return totals[i] if i < len(totals) else self._at(i, epsilon)

        return between(beyond(surely=True), beyond(surely=False))


def two_atom_power(component: AtomLoss, count: int) -> TwoAtomPower | None:
    """The exact power, if the component has two different atoms."""
    if len(component.atoms) != 2 or number(0) in (component.atoms[0][0] - component.atoms[1][0]):
        return None
    return TwoAtomPower(component, count)
