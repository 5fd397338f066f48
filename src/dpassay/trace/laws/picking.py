"""The largest of several noisy numbers, as a draw of its index: Gumbel-max, report-noisy-max, permute-and-flip.

The probability of each index is the integral of its density times the distribution functions of the others, by
Gauss-Legendre quadrature between the points where these have a kink. It is an approximation, not a certified bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy import array, asarray

from dpassay.trace.laws.formulas import sources_of
from dpassay.trace.laws.number_laws import node_law
from dpassay.trace.watch.deciding import found_largest
from dpassay.trace.watch.record import Array, Node, current, distinct

MOST_PICKED = 64  # numbers of which the largest is asked for
_FAR = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 11, 15, 20, 28, 38)  # in units of the scale
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_ROOT = math.sqrt(2)


def _erf(t: Array) -> Array:
    return array([math.erf(one) for one in t.ravel().tolist()]).reshape(t.shape)


# For each standard noise: its density, and its distribution function.
_STANDARD: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "laplace": (
        lambda t: np.exp(-np.abs(t)) / 2,
        lambda t: np.where(t < 0, np.exp(-np.abs(t)) / 2, 1 - np.exp(-np.abs(t)) / 2),
    ),
    "gaussian": (lambda t: np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi), lambda t: (1 + _erf(t / _ROOT)) / 2),
    "exponential": (
        lambda t: np.where(t < 0, 0.0, np.exp(-np.maximum(t, 0))),
        lambda t: np.where(t < 0, 0.0, -np.expm1(-np.maximum(t, 0))),
    ),
    "logistic": (
        lambda t: np.exp(-np.abs(t)) / (1 + np.exp(-np.abs(t))) ** 2,
        lambda t: np.where(t < 0, np.exp(-np.abs(t)), 1.0) / (1 + np.exp(-np.abs(t))),
    ),
}


def winning(kind: str, centres: Array, scales: Array) -> Array | None:
    """The probability of each of several independent noisy numbers to be the largest.

    >>> np.round(winning("gumbel", np.array([0.0, np.log(3)]), np.ones(2)), 12).tolist()
    [0.25, 0.75]
    """
    if kind == "gumbel":
        if (scales <= 0).any() or len(set(scales.tolist())) != 1:
            return None
        weights = np.exp((centres - centres.max()) / scales)
        return asarray(weights / weights.sum())
    if kind == "exponential" and (scales < 0).all() and len(set(centres.tolist())) == 1:
        return asarray((1 / scales) / (1 / scales).sum())  # the first of several: as likely as its rate is high
    if kind not in _STANDARD or (scales == 0).any() or (kind == "exponential" and (scales < 0).any()):
        return None
    density, below = _STANDARD[kind]
    scales = np.abs(scales)
    away = array([0.0, *_FAR, *(-one for one in _FAR)])
    ends = distinct(centres[:, None] + scales[:, None] * away)
    half = np.diff(ends)[:, None] / 2
    t = ((ends[1:] + ends[:-1])[:, None] / 2 + half * _POINTS).reshape(-1)
    by = (half * _WEIGHTS).reshape(-1)
    standard = (t[None] - centres[:, None]) / scales[:, None]
    under = below(standard)
    found = []
    for k in range(len(centres)):
        others = np.prod(np.delete(under, k, axis=0), axis=0)
        found.append(float((by * density(standard[k]) / scales[k] * others).sum()))
    p = array(found)
    return p / p.sum() if abs(p.sum() - 1) < 1e-9 else None


def picked(node: Node | None, index: int, largest: bool) -> int:
    """The index of the largest or smallest number; recorded as a draw if its probabilities are known."""
    run = current()
    found_largest(node, index, largest)
    if node is None or run is None or node.offset.ndim != 1 or not 2 <= node.offset.size <= MOST_PICKED:
        return index
    law = node_law(node)
    kinds = set(law.kind.tolist())
    apart = node.alone and len(distinct(node.index)) == node.index.size and (node.index >= 0).all()
    if len(kinds) != 1 or law.mixed.any() or law.share.any() or not apart:
        return index
    sign = 1.0 if largest else -1.0
    with np.errstate(all="ignore"):
        p = winning(kinds.pop(), sign * law.centre, sign * law.scale)
    if p is None or not np.isfinite(p).all():
        return index
    return run.picked(p, index, {one.start for draw in node.draws for one in sources_of(draw)})
