"""Interval arithmetic with 60 digits, ends rounded outward, whose every operation is counted before it is done."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from mpmath.ctx_iv import MPIntervalContext
from mpmath.libmp import finf, from_man_exp, fzero, mpi_exp

from dpassay.evidence.verifier.arithmetic.work import count_number

Number: TypeAlias = Any  # an interval of the context below; mpmath has no types
T = TypeVar("T")

_LARGEST_POWER = 64  # bits before the point of what is raised to a power of e; beyond it ends are 0 or infinite
_OF_A_TEXT = 10  # what the shortest decimal with a power of ten costs, in products


class _Counted(MPIntervalContext):  # type: ignore[misc]
    """Interval arithmetic whose every operation is counted, and takes about the same time for numbers of any size."""

    def make_mpf(self, ends: Any) -> Number:
        """A number from its ends: all operations end here."""
        count_number()
        return super().make_mpf(ends)

    def _init_builtins(self) -> None:
        super()._init_builtins()
        self.exp, self.log = self._exp, _dearer(self.ln, 12)
        for name, times in (("sqrt", 4), ("loggamma", 16)):
            setattr(self, name, _dearer(getattr(self, name), times))
        self.mpf._compare = _compared
        self.mpf.__pow__ = _dearer(self.mpf.__pow__, 24)

    def convert(self, value: Any) -> Number:
        """An interval from a number or a text; digits are counted before they are read."""
        if isinstance(value, str):
            count_number(_OF_A_TEXT + len(value) // 16)
        return super().convert(value)

    def _exp(self, value: Number) -> Number:
        """e to a number. Exact powers of huge numbers would need as many digits as these have bits."""
        count_number(10)
        low, high = self.convert(value)._mpi_
        near = _clamped(low), _clamped(high)
        least, most = mpi_exp(near, self.prec)
        vanishes, unbounded = near[0] != low and low[0], near[1] != high and not high[0]
        return self.make_mpf((fzero if vanishes else least, finf if unbounded else most))


def _compared(first: Number, second: Any, comparison: Callable[..., Any]) -> Any:
    """A comparison, in which mpmath would take a refusal of more work for a number that cannot be read."""
    if isinstance(second, int | float):
        second = first.ctx.convert(second)
    return comparison(first._mpi_, second._mpi_) if hasattr(second, "_mpi_") else NotImplemented


def _dearer(function: Callable[..., T], times: int) -> Callable[..., T]:
    """A function that takes `times` as long as a product; its cost is counted before it begins."""

    def counting(*arguments: Any) -> T:
        count_number(times)
        return function(*arguments)

    return counting


def _clamped(end: Any) -> Any:
    """An end of an interval, or the number of its sign from which on powers of e are not computed."""
    sign, mantissa, exponent, bits = end
    far = mantissa and exponent + bits > _LARGEST_POWER
    return from_man_exp(-1 if sign else 1, _LARGEST_POWER) if far else end


iv = _Counted()
iv.dps = 60
