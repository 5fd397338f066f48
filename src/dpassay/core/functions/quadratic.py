"""The length of a vector in units of correlated noise, certified by elimination in interval arithmetic."""

from collections.abc import Sequence
from typing import Any

from dpassay.core.numbers import ZERO, Number, maximum, real, sqrt


def lengths(covariance: Sequence[Sequence[Any]], vectors: Sequence[Sequence[Any]]) -> list[Number] | None:
    """√(vᵀM⁻¹v) for each vector v; None if it is not certain that the symmetric matrix M is positive definite.

    With M = LDLᵀ and Ly = v this is Σ y²/D. Only the upper triangle of M is read.

    >>> [round(float(one.mid), 9) for one in lengths([[4, 0], [0, 9]], [[2, 0], [2, 3]])]
    [1.0, 1.414213562]
    >>> lengths([[1, 1], [1, 1]], [[1, 1]]) is None
    True
    """
    rows = [[real(one) for one in row] for row in covariance]
    left = [[real(one) for one in vector] for vector in vectors]
    squares = [ZERO] * len(left)
    for k, row in enumerate(rows):
        if not row[k].a > 0:
            return None
        for at, vector in enumerate(left):
            squares[at] = squares[at] + vector[k] ** 2 / row[k]
        for i in range(k + 1, len(rows)):
            if row[i].is_exact and row[i] == 0:
                continue
            times = row[i] / row[k]
            for j in range(i, len(rows)):
                rows[i][j] = rows[i][j] - times * row[j]
            for vector in left:
                vector[i] = vector[i] - times * vector[k]
    return [sqrt(maximum(ZERO, one)) for one in squares]
