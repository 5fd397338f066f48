"""How numbers with noise in them are followed through the code, in the form offset + factor · number + ….

Sums and products with plain numbers keep this form. Anything else is a formula: its result gets its own numbers, and
the function and its parts are recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import array, asarray, full, zeros

from dpassay.trace.watch.record import Array, DrawRecord, Node, NumberFormula, caller, constant, current, distinct

SUMS = (np.add, np.subtract)
_PRODUCTS = (np.multiply, np.true_divide)
_SIGNS = (np.negative, np.positive)
MOST_TERMS, MOST_NUMBERS, MOST_PRODUCTS = 100, 1 << 20, 1 << 14


def of_draw(draw: DrawRecord) -> Node:
    """A draw itself: no offset, and a factor of 1."""
    shape = draw.values.shape
    index = draw.start + np.arange(draw.values.size).reshape(shape) if shape else asarray(draw.start)
    return Node((draw,), ((index, constant(1.0, shape)),), constant(0.0, shape), draw.place)


def moved(node: Node, move: Callable[[Array], Any]) -> Node:
    """The same numbers in another order or shape, or some of them."""
    terms = tuple((asarray(move(index)), asarray(move(factor))) for index, factor in node.terms)
    return _made([node], terms, asarray(move(node.offset)), node.added, node)


def combined(function: Any, nodes: Sequence[Node | None], values: Sequence[Any], options: Any = None) -> Node | None:
    """The result of applying a function to each number; None if it is not followed."""
    if not options and function in _SIGNS and nodes[0] is not None:
        return _scaled(nodes[0], function, ())
    found = None
    if not options and function in SUMS and len(nodes) == 2:
        found = _sum(function, nodes, values)
    elif not options and function in _PRODUCTS and len(nodes) == 2:
        found = _product(function, nodes, values)
    elif not options and function is np.log and nodes[0] is not None:
        found = _log_of_quotient(nodes[0])
    return found or _formula(function, nodes, values, options or {})


def difference(nodes: Sequence[Node | None], values: Sequence[Any]) -> Node | None:
    """What is compared with 0 when two sides are compared; None if it is no sum of drawn numbers."""
    return _sum(np.subtract, nodes, values)


def _numbers(value: Any) -> Array | None:
    found = asarray(value)
    return found if found.dtype.kind in "biuf" else None


def _sum(function: Any, nodes: Sequence[Node | None], values: Sequence[Any]) -> Node | None:
    parts = [_numbers(value) if node is None else node.offset for node, value in zip(nodes, values, strict=True)]
    if parts[0] is None or parts[1] is None:
        return None
    offset = asarray(function(*(asarray(part, dtype=float) for part in parts)))
    terms: list[tuple[Array, Array]] = []
    real = [node for node in nodes if node is not None]
    if offset.shape == () and len(real) == 1 and real[0].single:  # as below, in less time
        ((index, factor),) = real[0].terms
        sign = -1 if real[0] is nodes[1] and function is np.subtract else 1
        return _made(real, ((index, asarray(sign * factor)),), offset, True)
    for sign, node in ((1, nodes[0]), (1 if function is np.add else -1, nodes[1])):
        for index, factor in node.terms if node is not None else ():
            _add_term(terms, _spread(index, offset.shape), _spread(sign * factor, offset.shape))
    if len(terms) > MOST_TERMS:
        return None
    added = any(node.added for node in real) or len(real) == 1
    return _made(real, tuple(terms), offset, added)


def _spread(part: Any, shape: tuple[int, ...]) -> Array:
    part = asarray(part)
    return part if part.shape == shape else np.broadcast_to(part, shape)


def _add_term(terms: list[tuple[Array, Array]], index: Array, factor: Array) -> None:
    """Add factors of the same number, and insert a term if there is none yet."""
    left = index >= 0
    for at, (own, times) in enumerate(terms):
        if not left.any():
            return
        alike, free = left & (own == index), left & (own < 0)
        if alike.any() or free.any():
            terms[at] = (
                np.where(free, index, own),
                np.where(alike, times + factor, np.where(free, factor, times)),
            )
            left = left & ~alike & ~free
    if left.any() or not terms:
        terms.append((np.where(left, index, -1), np.where(left, factor, 0.0)))


def _product(function: Any, nodes: Sequence[Node | None], values: Sequence[Any]) -> Node | None:
    at = 0 if nodes[0] is not None else 1
    node, other = nodes[at], values[1 - at]
    if node is None or nodes[1 - at] is not None or (function is np.true_divide and at == 1):
        return None
    times = _numbers(other)
    return None if times is None else _scaled(node, function, (times.astype(float),))


def _log_of_quotient(node: Node) -> Node | None:
    """The logarithm of a quotient of two drawn numbers as the difference of their logarithms; None of anything else."""
    formula = node.draws[0].formula if len(node.draws) == 1 and node.alone else None
    whole = formula is not None and not node.offset.any() and (node.factor == 1).all()
    if formula is None or not whole or formula.function is not np.true_divide or len(formula.nodes) != 2:
        return None
    drawn = [draw for one in formula.nodes for draw in one.draws]
    if any(draw.formula is not None for draw in drawn) or len({draw.start for draw in drawn}) < len(drawn):
        return None
    parts = [combined(np.log, [one], [one.value]) for one in formula.nodes]
    return None if None in parts else combined(np.subtract, parts, [one.value for one in parts if one is not None])


def _scaled(node: Node, function: Any, other: tuple[Any, ...]) -> Node:
    offset = asarray(function(node.offset, *other))
    terms = tuple(
        (_spread(index, offset.shape), _spread(function(factor, *other), offset.shape)) for index, factor in node.terms
    )
    return _made([node], terms, offset, node.added)


def _formula(function: Any, nodes: Sequence[Node | None], values: Sequence[Any], options: Any) -> Node | None:
    """The results of a function of other numbers, as new numbers."""
    run, parts = current(), []
    for node, value in zip(nodes, values, strict=True):
        plain = value if node is not None or value is None else _numbers(value)
        if plain is None and value is not None:
            return None
        parts.append(node if node is not None else plain)
    with np.errstate(all="ignore"):
        try:
            result = asarray(function(*values, **options))
        except (TypeError, ValueError):
            return None
    if run is None or result.dtype.kind not in "biuf" or result.size > MOST_NUMBERS:
        return None
    draw = run.made(result, NumberFormula(function, tuple(parts), dict(options)))
    made = of_draw(draw)
    made.parents = tuple(node for node in nodes if node is not None)
    made.added = any(node.added for node in made.parents)
    return made


def _made(parents: Sequence[Node], terms: Any, offset: Array, added: bool, place_of: Node | None = None) -> Node:
    draws = parents[0].draws
    if any(node.draws != draws for node in parents[1:]):
        draws = tuple(sorted({draw.start: draw for node in parents for draw in node.draws}.values(), key=_start))
    place = caller() if place_of is None else place_of.place
    return Node(draws, terms, offset, place, added, tuple(parents))


def _start(draw: DrawRecord) -> int:
    return draw.start


def joined(parts: Sequence[tuple[Node | None, Array]], join: Callable[[list[Array]], Any]) -> Node | None:
    """Nodes and plain numbers combined into one array, each with its numbers."""
    nodes = [node for node, _ in parts if node is not None]
    if not nodes or any(values.dtype.kind not in "biuf" for _, values in parts):
        return None
    many = max(len(node.terms) for node in nodes)
    offset = join([asarray(values if node is None else node.offset, dtype=float) for node, values in parts])
    terms = []
    for at in range(many):
        here = [
            node.terms[at]
            if node is not None and at < len(node.terms)
            else (full(values.shape, -1), zeros(values.shape))
            for node, values in parts
        ]
        terms.append((asarray(join([index for index, _ in here])), asarray(join([by for _, by in here]))))
    node = _made(nodes, tuple(terms), asarray(offset), any(one.added for one in nodes))
    places = {one.place for one in nodes}
    if len(places) == 1:
        node.place = places.pop()
    return node


def assigned(node: Node | None, values: Array, key: Any, other: Node | None, given: Any) -> Node | None:
    """Numbers some of which are overwritten by a node or by plain numbers."""
    part = (other, asarray(given if other is None else other.offset))

    def join(arrays: list[Array]) -> Array:
        whole = array(np.broadcast_to(arrays[0], values.shape))
        whole[key] = arrays[1]
        return whole

    return joined([(node, asarray(values)), part], join)


def summed(node: Node, axis: Any, mean: bool) -> Node | None:
    """The sum or the mean of numbers along an axis, or of all."""
    if axis is None:
        node, axis = moved(node, lambda part: part.reshape(-1)), 0
    if not isinstance(axis, int) or node.offset.ndim == 0:
        return None
    many = node.offset.shape[axis]
    if not 0 < many * len(node.terms) <= MOST_TERMS * 8:
        return None
    parts = [(np.take(index, k, axis), np.take(by, k, axis)) for index, by in node.terms for k in range(many)]
    used = np.stack([index for index, _ in parts])
    terms: list[tuple[Array, Array]] = parts
    kept = used[used >= 0]
    if len(distinct(kept)) != kept.size:
        terms = []
        for index, factor in parts:
            _add_term(terms, index, factor)
    times = 1 / many if mean else 1.0
    terms = [(index, factor * times) for index, factor in terms]
    return _made([node], tuple(terms), asarray(node.offset.sum(axis=axis) * times), node.added)


def accumulated(node: Node, axis: Any) -> Node | None:
    """The running sums of numbers along an axis, or of all."""
    if axis is None:
        node, axis = moved(node, lambda part: part.reshape(-1)), 0
    if not isinstance(axis, int) or node.offset.ndim == 0:
        return None
    many = node.offset.shape[axis]
    if not 0 < many * len(node.terms) <= MOST_TERMS:
        return None
    terms: list[tuple[Array, Array]] = []
    for index, factor in node.terms:
        rows, times = np.moveaxis(index, axis, 0), np.moveaxis(factor, axis, 0)
        for k in range(many):
            later = np.reshape(np.arange(many) >= k, (many, *[1] * (rows.ndim - 1)))
            _add_term(terms, np.where(later, rows[k], -1), np.where(later, times[k], 0.0))
    placed = [(np.moveaxis(index, 0, axis), np.moveaxis(factor, 0, axis)) for index, factor in terms]
    return _made([node], tuple(placed), asarray(np.cumsum(node.offset, axis)), node.added)


def dotted(nodes: Sequence[Node | None], values: Sequence[Any]) -> Node | None:
    """The product of two matrices or vectors, one of them plain."""
    left, right = (np.shape(value) for value in values)
    if len(nodes) != 2 or (nodes[0] is None) == (nodes[1] is None) or {len(left), len(right)} - {1, 2}:
        return None
    if left[-1] != right[0]:
        return None
    wide = len(right) == 2  # then each row of the left one meets each column of the right one
    if wide and np.prod(left) * right[1] > MOST_PRODUCTS:
        return None
    first = moved(nodes[0], lambda part: part[..., None]) if nodes[0] is not None and wide else nodes[0]
    parts = [asarray(values[0])[..., None] if wide else asarray(values[0]), asarray(values[1])]
    found = combined(np.multiply, [first, nodes[1]], parts)
    total = None if found is None else summed(found, len(left) - 1, mean=False)
    if total is not None and any((factor == 0).any() for _, factor in total.terms):  # those numbers do not occur in it
        terms: list[tuple[Array, Array]] = []
        for index, factor in total.terms:
            _add_term(terms, np.where(factor == 0, -1, index), factor)
        total.terms = tuple(terms)
    return total


def consistent(node: Node, values: Any) -> bool:
    """Whether a node is still valid: numbers that were changed unnoticed are no longer followed."""
    if type(values) is float and node.single and len(node.draws) == 1 and node.draws[0].values.size == 1:
        offset, noise = float(node.offset), float(node.factor) * float(node.draws[0].values.item())
        most = 1e3 * node.rounding * (abs(offset) + 1e-300 + abs(noise))
        return not (abs(offset + noise - values) > most and math.isfinite(values))
    result = asarray(values, dtype=float)
    if node.offset.shape != result.shape:
        return False
    with np.errstate(all="ignore"):
        value, size = node.offset, np.abs(node.offset) + 1e-300
        for part in node.parts():
            value, size = value + part, size + np.abs(part)
        off = np.abs(value - result) > 1e3 * node.rounding * size
    return not bool((off & np.isfinite(result)).any())
