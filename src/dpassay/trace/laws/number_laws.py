"""The law of each number that is followed: the kind of its noise, its center, and its scale.

Two numbers have a known law as a difference of exponential or geometric numbers, as a random sign times an exponential
number, as a sum of Gaussian ones, or in the Box-Muller formula. Anything other than these and inverse distribution
functions of one uniform number is unknown.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy import array, asarray, full, zeros

from dpassay.trace.laws.formulas import GRID, REMEMBERED, Law, at_uniform, bases, source_law, uniform_law
from dpassay.trace.watch.record import Array, DrawRecord, Node, distinct
from dpassay.values import dataclass

NOISE_KINDS = ("laplace", "gaussian", "exponential", "discrete laplace", "logistic", "cauchy", "gumbel")

# The names that numpy and Python give to the arguments of functions that draw, in order, and their defaults.
PARAMETERS = {
    "laplace": ("loc", "scale"),
    "normal": ("loc", "scale"),
    "gumbel": ("loc", "scale"),
    "logistic": ("loc", "scale"),
    "uniform": ("low", "high"),
    "exponential": ("scale",),
    "gauss": ("mu", "sigma"),
    "normalvariate": ("mu", "sigma"),
    "expovariate": ("lambd",),
    "geometric": ("p",),
    "binomial": ("n", "p"),
    "integers": ("low", "high", "size", "dtype", "endpoint"),
    "randint": ("low", "high"),
    "randrange": ("start", "stop", "step"),
    "getrandbits": ("k",),
    "multivariate_normal": ("mean", "cov"),
    "multinomial": ("n", "pvals"),
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "laplace": {"loc": 0.0, "scale": 1.0},
    "normal": {"loc": 0.0, "scale": 1.0},
    "gauss": {"mu": 0.0, "sigma": 1.0},
    "normalvariate": {"mu": 0.0, "sigma": 1.0},
    "uniform": {"low": 0.0, "high": 1.0},
    "exponential": {"scale": 1.0},
    "expovariate": {"lambd": 1.0},
}


@lru_cache(maxsize=REMEMBERED)
def law_of(draw: DrawRecord) -> Law | None:
    """The law of the numbers of a draw, flat; None if it is not known."""
    return source_law(draw) if draw.formula is None else _of_product(draw) or uniform_law(draw)


def _of_product(draw: DrawRecord) -> Law | None:
    """A random sign times an exponential number, and the Box-Muller formula."""
    formula = draw.formula
    if formula is None or formula.function is not np.multiply or len(formula.nodes) != 2:
        return None
    apart = [set(distinct(np.stack(bases(node)))) - {-1} for node in formula.nodes]
    if apart[0] & apart[1] or len(formula.parts) != 2:
        return None
    for sign, size in (formula.nodes, formula.nodes[::-1]):
        one, other = node_law(sign), node_law(size)
        if _is(one, "bernoulli") and _is(other, "exponential") and (one.share == 0.5).all() and not other.share.any():
            ends = one.centre, one.centre + one.scale
            if (ends[0] == -ends[1]).all() and (other.centre == 0).all():
                return _spread(draw, "laplace", np.abs(one.centre * other.scale))
        if _is(other, "rayleigh") and (other.centre == 0).all() and (wave := _wave(sign)) is not None:
            return _spread(draw, "gaussian", np.abs(wave * other.scale))
    return None


def _spread(draw: DrawRecord, kind: str, scale: Array) -> Law:
    flat = np.broadcast_to(scale, draw.shape).reshape(-1)
    return Law(kind, zeros(flat.size), flat, product=True)


def _is(law: NodeLaw, kind: str) -> bool:
    return bool((law.kind == kind).all()) and not law.mixed.any()


def _wave(node: Node) -> float | None:
    """The amplitude of a number that is a cosine or a sine of a full turn times a uniform number."""
    if len(node.draws) != 1 or node.draws[0].formula is None or (node.offset != 0).any() or not node.alone:
        return None
    got = at_uniform(node.draws[0], GRID)
    if got is None:
        return None
    for wave in (np.cos(2 * math.pi * GRID), np.sin(2 * math.pi * GRID)):
        for sign in (1, -1):
            if (np.abs(got - sign * wave[:, None]) <= 1e-12).all() and len(distinct(node.factor)) == 1:
                return float(node.factor.flat[0])
    return None


@dataclass(frozen=True, eq=False)
class NodeLaw:
    """For each number of a node: the kind of its noise, its center, and its scale.

    `mixed` means that the center contains other noise: then its loss is only bounded from above.
    """

    kind: Array
    centre: Array
    scale: Array
    share: Array
    mixed: Array
    atom: Array


def node_law(node: Node) -> NodeLaw:
    """The law of each number of a node; its kind is "" if unknown, and "none" if it has no noise."""
    if node.law is None:
        node.law = _node_law(node)
    return node.law  # type: ignore[no-any-return]


def _node_law(node: Node) -> NodeLaw:
    rows = []
    for index, factor in node.terms:
        used = (index >= 0) & (factor != 0)
        kind = node.of_numbers(lambda draw: field_of(draw, "kind"), index)
        location, scale, share, atom = (
            node.of_numbers(lambda draw, name=name: field_of(draw, name), index)  # type: ignore[misc]
            for name in ("location", "scale", "share", "atom")
        )
        rows.append((used, np.where(used, kind, "none"), factor * location, factor * scale, share, factor * atom))
    used, kind, location, scale, share, atom = (np.stack(column) for column in zip(*rows, strict=True))
    many = used.sum(axis=0)
    first = np.argmax(used, axis=0)[None]

    def pick(column: Array) -> Array:
        return asarray(np.take_along_axis(column, first, axis=0)[0])

    with np.errstate(all="ignore"):
        centre = node.offset + np.where(used, location, 0.0).sum(axis=0)
    kinds = np.where(many == 0, "none", np.where(many == 1, pick(kind), ""))
    scales, shares = np.where(many == 1, pick(scale), 0.0), np.where(many == 1, pick(share), 0.0)
    mixed = zeros(many.shape, bool)
    if (many > 1).any():
        kinds, centre, scales, mixed = _of_sums(node, (used, kind, location, scale, share), (kinds, centre, scales))
        shares = np.where(kinds == "discrete laplace", pick(share), shares)
    return NodeLaw(kinds, centre, scales, shares, mixed, node.offset + pick(atom))


def field_of(draw: DrawRecord, name: str) -> Any:
    """One of the parameters of a draw's law, for each of its numbers."""
    law = law_of(draw)
    if name == "kind":
        return full(draw.shape, law.kind if law is not None else "", dtype="<U20")
    value = 0.0 if law is None else getattr(law, name)  # per number, or one for all
    return np.reshape(value, draw.shape) if np.ndim(value) else full(draw.shape, value)


def _of_sums(node: Node, rows: Any, found: Any) -> tuple[Array, Array, Array, Array]:
    """Coordinates with several numbers in them."""
    used, kind, location, scale, share = rows
    kinds, centre, scales = (array(one) for one in found)
    kinds, mixed = kinds.astype("<U20"), zeros(kinds.shape, bool)
    apart = _independent(node)
    values = [by * node.of_numbers(lambda draw: draw.values, index) for index, by in node.terms]
    for at in map(tuple, np.argwhere(used.sum(axis=0) > 1).tolist()):
        rows_of = [k for k in range(len(used)) if used[(k, *at)]]
        here = {str(kind[(k, *at)]) for k in rows_of}
        sizes, shares = [scale[(k, *at)] for k in rows_of], [share[(k, *at)] for k in rows_of]
        pair = len(rows_of) == 2 and math.isclose(sizes[0], -sizes[1], rel_tol=1e-12) and shares[0] == shares[1]
        if apart and here == {"gaussian"}:
            kinds[at], scales[at] = "gaussian", math.sqrt(sum(size**2 for size in sizes))
        elif apart and here == {"exponential"} and pair and not shares[0]:
            kinds[at], scales[at] = "laplace", abs(sizes[0])
        elif apart and here == {"geometric"} and pair and abs(sizes[0]) == 1 and 0 < shares[0] < 1:
            kinds[at], scales[at] = "discrete laplace", -1 / math.log1p(-shares[0])
        else:
            main = next((k for k in rows_of if kind[(k, *at)] in ("laplace", "gaussian")), None)
            if main is None:
                continue
            kinds[at], scales[at], mixed[at] = kind[(main, *at)], scale[(main, *at)], True
            others = sum(values[k][at] for k in rows_of if k != main)
            centre[at] = node.offset[at] + location[(main, *at)] + others
    return kinds, centre, scales, mixed


def _independent(node: Node) -> bool:
    """Whether the numbers that are added were made from different drawn ones."""
    if all(draw.formula is None for draw in node.draws):
        return True
    terms = [Node(node.draws, (term,), node.offset, node.place) for term in node.terms]
    seen = [np.stack(bases(term)) for term in terms]
    for k, one in enumerate(seen):
        for other in seen[k + 1 :]:
            if ((one[:, None] == other[None]) & (one[:, None] >= 0)).any():
                return False
    return True
