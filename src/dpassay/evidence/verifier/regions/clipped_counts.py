"""How far apart l2 clipping moves two count vectors that differ by one: docs/proofs/diameters.md, point 20."""

import math

from dpassay.evidence.verifier.arithmetic.numbers import ONE, Number, cached, iv, largest, middle, smallest
from dpassay.evidence.verifier.arithmetic.work import spend

_MOST_STEPS = 500_000
_OF_A_STEP = 5_000  # nanoseconds
_DEEPEST = 450
_NEARLY = 1 - 1e-9  # far more than the rounding error of doubles


@cached(16)
def largest_clipped_step(dim: int, radius: Number) -> Number | None:
    """The largest l1 distance of clipped counts x and x + e_i; None if there are too many to look at.

    With a = x_i ≥ 0 it depends on the others only by their sum and their sum of squares, and grows with the sum.
    """
    r, left = middle(radius), [_MOST_STEPS]
    if not 1e-6 < r < 1e4 or (radius.b - radius.a) > radius.a * 1e-20:
        return None
    steps = _largest_steps(dim, r, left)
    return None if steps is None else largest(_moved_exactly(radius, *step) for step in steps)


def _largest_steps(dim: int, r: float, left: list[int]) -> list[tuple[int, int, int]] | None:
    """x_i, and the others' sum of squares and sum, of all steps that may be the largest, in order of |x|."""
    best = _moved(r, 0, 0, 0)
    kept = [(best, (0, 0, 0))]
    square = max(0, int(r * r - 2 * r) - 3)  # (|x| + 1)² > r², or nothing is clipped
    while square <= r * r or _most_from(dim, r, math.sqrt(square)) > best * _NEARLY:
        spend((math.isqrt(square) + 1) * _OF_A_STEP)
        for a in range(math.isqrt(square) + 1):
            left[0] -= 1
            others = square - a * a
            if dim == 1 and others:
                continue
            total = _largest_sum(dim - 1, others)
            while total * total >= others and (value := _moved(r, a, others, total)) > best * _NEARLY:
                exists = _exists(dim - 1, total, others, left)
                if exists is None:
                    return None
                if exists:
                    kept.append((value, (a, others, total)))
                    best = max(best, value)
                    break
                total -= 2  # the sum of numbers is as even as that of their squares
                if total < 0:
                    break
        if left[0] < 0:
            return None
        square += 1
    return [step for value, step in kept if value >= best * _NEARLY]


def _moved(r: float, a: int, others: int, total: int) -> float:
    """|c(x + e_i) − c(x)| in l1: the moving coordinate grows, the others shrink."""
    here, there = a * a + others, (a + 1) ** 2 + others
    first = r / math.sqrt(here) if here > r * r else 1.0
    second = r / math.sqrt(there) if there > r * r else 1.0
    return (a + 1) * second - a * first + (first - second) * total


def _moved_exactly(radius: Number, a: int, others: int, total: int) -> Number:
    here, there = a * a + others, (a + 1) ** 2 + others
    first = smallest([ONE, radius / iv.sqrt(iv.mpf(here))]) if here else ONE
    second = smallest([ONE, radius / iv.sqrt(iv.mpf(there))])
    return (a + 1) * second - a * first + (first - second) * total


def _most_from(dim: int, r: float, length: float) -> float:
    """A bound on all steps that begin at this distance or farther out, beyond the ball."""
    return min(r / length * (1 + math.sqrt(dim)) / 2, r / length + r * 2 / math.sqrt(27))


def _largest_sum(count: int, squares: int) -> int:
    """(x − t)(x − t − 1) ≥ 0 for integers, so (2t + 1) Σx ≤ Σx² + count·t(t + 1) for every t."""
    if not count:
        return 0
    t = math.isqrt(squares // count)
    most = (squares + count * t * (t + 1)) // (2 * t + 1)
    return most if (most + squares) % 2 == 0 else most - 1


def _exists(count: int, total: int, squares: int, left: list[int]) -> bool | None:
    """Whether `count` counts can have this sum and this sum of squares; None if that takes too long to find out."""
    if not count:
        return total == squares == 0
    t = total // count
    ones = total - t * count  # of these differences from t the sum is `ones`, and that of d(d − 1)/2 is `pairs`
    pairs, odd = divmod(squares - 2 * t * total + t * t * count - ones, 2)
    if odd or pairs < 0:
        return False
    if pairs > _DEEPEST:
        return None
    return _differences(pairs, t, count, ones, (pairs, 1), left)


def _differences(pairs: int, t: int, count: int, ones: int, last: tuple[int, int], left: list[int]) -> bool | None:
    """Whether `count` differences of at least −t have these sums; those with d(d − 1)/2 > 0 in descending order."""
    left[0] -= 1
    spend(_OF_A_STEP)
    if left[0] < 0:
        return None
    if not pairs or not count:
        return not pairs and 0 <= ones <= count
    k = min(last[0], (math.isqrt(8 * pairs + 1) - 1) // 2)
    while k:
        for up in (1, 0):
            if (k, up) <= last and (up or k <= t):
                d = k + 1 if up else -k
                found = _differences(pairs - k * (k + 1) // 2, t, count - 1, ones - d, (k, up), left)
                if found is None or found:
                    return found
        k -= 1
    return False
