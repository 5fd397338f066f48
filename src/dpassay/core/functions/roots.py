"""Roots of decreasing functions, as certified brackets.

Certified bounds rest on the bracket: the function is above 0 at one end and not above 0 at the other.
scipy.optimize returns a point without it, and importing it takes longer than a whole check.
"""

from collections.abc import Callable


def falling_root(gap: Callable[[float], float], low: float, high: float, width: float) -> tuple[float, float]:
    """Shrink a bracket of the root of a decreasing function: gap(low) > 0 ≥ gap(high) stays true."""
    at_low, at_high = gap(low), gap(high)
    for i in range(200):
        if high - low <= width * high:
            break
        # Regula falsi, with a bisection every third step so that neither end can stall.
        halve = i % 3 == 2 or not at_low > at_high  # if it is flat, there is no slope to follow
        share = 0.5 if halve else min(0.95, max(0.05, at_low / (at_low - at_high)))
        point = low + share * (high - low)
        value = gap(point)
        if value <= 0:
            high, at_high = point, min(value, -1e-300)
        else:
            low, at_low = point, value
    return low, high
