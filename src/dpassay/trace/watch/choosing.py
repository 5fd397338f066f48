"""Draws of one of several things, recorded as the index of what was drawn, with all probabilities.

The code gets what it would have got from the same random bits, unless another draw was requested.
"""

from __future__ import annotations

import ctypes
import math
import pickle
import random
from collections.abc import Callable, Sequence
from functools import cache, wraps
from itertools import permutations
from typing import Any

import numpy as np
from numpy import array, asarray, full, zeros

from dpassay.trace.watch.follow import moved, of_draw
from dpassay.trace.watch.numbers import node_of, plain, with_node
from dpassay.trace.watch.overriding import has_its_law
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun, caller, current, drawing, importing

PYTHON_CHOICES = ("choice", "choices")
PYTHON_ORDERS = ("shuffle", "sample")
CHOICE = "choice"
MOST_ORDERS = 120  # orders of which one is drawn: 5!
_SIMPLE = (str, bytes, int, float, bool, type(None))


def _state(generator: Any) -> Any:
    """The state of a generator; None if it has none that can be read."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    try:
        return generator.bit_generator.state if hasattr(generator, "bit_generator") else generator.get_state()
    except (AttributeError, NotImplementedError):
        return None


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


_mixed = [False]  # whether a run drew from Python's generators and from numpy's of the same kind


def state_of(generator: Any) -> Any:
    """A value that identifies the state of a Python or numpy generator; None if the state cannot be read.

    A Python state is slow to read, so it is read only if a run has used both kinds: one may have the other's state.
    """
    bits = getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", None)
    python = isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom)
    run = current()
    if run is not None and (python or isinstance(bits, np.random.MT19937)):
        run.twisters.add(python)
        _mixed[0] = _mixed[0] or len(run.twisters) > 1
    if python:
        return hash(array(generator.getstate()[1], dtype=np.uint32).tobytes()) if _mixed[0] else None
    if isinstance(bits, np.random.MT19937):
        return hash(ctypes.string_at(bits.ctypes.state_address, 2500))  # 624 numbers and a place among them
    try:
        state = None if bits is None else bits.state
    except (AttributeError, NotImplementedError):
        return None
    if state is not None and type(bits) is np.random.PCG64:  # the usual kind, in less time
        now = state["state"]
        return now["state"], now["inc"], state["has_uint32"], state["uinteger"]
    return None if state is None else str(state)


def note_set_state() -> None:
    """Record that later draws may repeat earlier ones."""
    run = current()
    if run is not None and not drawing and not importing():
        run.opaque.append(("a generator whose state it sets", caller()))


@cache
def setting(set_state: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sets the state of a Python generator, recorded."""

    @wraps(set_state)
    def noted(self: Any, state: Any) -> Any:
        note_set_state()
        return set_state(self, state)

    return noted


def with_index(generator: Any, naturally: Callable[[], Any], index: Callable[[], Any]) -> tuple[Any, Any]:
    """The result of a draw and its index, from the same random bits.

    The index is None if it needs other bits, and the result is None if the generator's state cannot be read.
    """
    before = _state(generator)
    begun = state_of(generator)
    drawing.append(True)
    try:
        if before is None:
            return None, index()
        result = naturally()
        after = _state(generator)
        _set_state(generator, before)
        at = index()
        if pickle.dumps(_state(generator)) == pickle.dumps(after):
            return result, at
        _set_state(generator, after)
        return result, None
    finally:
        drawing.pop()
        _take_bits(generator, begun)


def _take_bits(generator: Any, begun: Any) -> None:
    run = current()
    if run is not None:
        run.take_bits(begun, state_of(generator))


def unread(run: RecordedRun, source: str, name: str) -> None:
    """Record a draw whose result is not followed."""
    run.opaque.append((f"{source} {name}", caller()))


def choosing(choice: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's choice, of a new or an old generator."""

    @wraps(choice)
    def chosen(
        self: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, *rest: Any, **options: Any
    ) -> Any:
        run = current()
        a, p, size, rest = plain(a), plain(p), plain(size), plain(rest)
        options = {key: plain(one) for key, one in options.items()}
        if run is None or drawing or importing() or not has_its_law(run, self, choice, CHOICE):
            return choice(self, a, size, replace, p, *rest, **options)
        axis = options.get("axis", rest[0] if rest else 0)
        things = np.arange(a) if np.ndim(a) == 0 else asarray(a)
        many = things.shape[axis] if things.ndim else 0
        shuffled = {"shuffle": options["shuffle"]} if "shuffle" in options else {}
        natural, at = with_index(
            self,
            lambda: choice(self, a, size, replace, p, *rest, **options),
            lambda: asarray(choice(self, many, size, replace, p, **shuffled)),
        )
        if at is None:
            unread(run, "numpy", "choice")
            return natural
        if not replace and at.ndim == 1 and not shuffled and len(rest) < 2:
            at = _without_replacement(run, at, p, many)
        else:
            at = noted(run, "numpy", at, p, many, replace or at.ndim == 0).values
        same = np.take(things, at, axis=axis)
        result = natural if np.array_equal(same, natural) else _typed(same, natural)
        last = run.draws[-1]
        node = _affine(last, things) if last.shape == np.shape(result) else None
        return with_node(result, node, scalar=not isinstance(result, np.ndarray))

    return chosen


def _typed(values: Any, natural: Any) -> Any:
    """Values with the type of what was drawn."""
    if isinstance(natural, np.ndarray):
        return asarray(values)
    return type(natural)(asarray(values)[()])


def _without_replacement(run: RecordedRun, at: Array, p: Any, many: int) -> Array:
    """Several different ones, in the order of their draw."""
    if p is not None or math.perm(many, len(at)) > MOST_ORDERS:
        run.orders.append((len(run.draws), len(at) == many, caller()))
        return noted(run, "numpy", at, p, many, replace=False).values
    return array(ordered(run, "numpy", at.tolist(), range(many)), dtype=at.dtype)


def noted(run: RecordedRun, source: str, at: Array, p: Any, many: int, replace: bool) -> DrawRecord:
    """Record the index of what was drawn."""
    weights = full(many, 1 / many) if p is None else asarray(p, dtype=float)
    return run.drawn(source, CHOICE if replace else "choice without replacement", {"p": weights}, at)


def _affine(draw: DrawRecord, things: Array) -> Node | None:
    """One of the numbers a, a + b, a + 2b …"""
    if things.ndim != 1 or things.dtype.kind not in "biuf" or len(things) < 2:
        return None
    things = things.astype(float)
    step = things[1] - things[0]
    if not np.array_equal(things, things[0] + step * np.arange(len(things))):
        return None
    node = moved(of_draw(draw), np.array)
    node.terms = ((node.index, full(draw.shape, step)),)
    node.offset = full(draw.shape, things[0])
    return node


def ordered(run: RecordedRun, source: str, at: Sequence[int], things: Sequence[Any]) -> list[int]:
    """Record that some of several things were drawn in an order, all equally likely; returns the order to use.

    Indistinguishable orders count as one. If there are too many, they are recorded without their probabilities.
    """
    run.orders.append((len(run.draws), len(at) == len(things), caller()))
    if math.perm(len(things), len(at)) > MOST_ORDERS:
        run.drawn(source, "order", {}, zeros(0))
        return list(at)
    simple = all(type(one) in _SIMPLE for one in things)

    def look(order: Sequence[int]) -> Any:
        return tuple((type(things[i]), repr(things[i])) for i in order) if simple else tuple(order)

    weights: dict[Any, float] = {}
    first: dict[Any, tuple[int, ...]] = {}
    for order in permutations(range(len(things)), len(at)):
        key = look(order)
        weights[key] = weights.get(key, 0.0) + 1
        first.setdefault(key, order)
    keys = list(first)
    own = keys.index(look(at))
    p = array([weights[key] for key in keys])
    draw = run.drawn(source, CHOICE, {"p": p / p.sum()}, asarray(own))
    now = int(draw.values)
    return list(at) if now == own else list(first[keys[now]])


@cache
def choosing_in_python(choose: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Python's choice and choices."""

    @wraps(choose)
    def chosen(self: Any, population: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or drawing or importing() or not has_its_law(run, self, choose, name):
            return choose(self, population, *arguments, **options)
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        natural, at = with_index(
            self,
            lambda: choose(self, population, *given, **more),
            lambda: asarray(choose(self, range(len(population)), *given, **more)),
        )
        if at is None:
            unread(run, "random", name)
            return natural
        weights = given[0] if given else more.get("weights")
        if (together := more.get("cum_weights")) is not None:
            weights = np.diff([0.0, *together])
        weights = None if weights is None else asarray(list(weights), dtype=float)
        p = None if weights is None else weights / weights.sum()
        draw = noted(run, "random", at, p, len(population), True)
        if name == "choices":
            return [population[i] for i in draw.values.tolist()]
        thing = population[int(draw.values)]
        countable = isinstance(thing, int | float | np.number) and node_of(thing) is None
        node = _affine(draw, asarray(plain(list(population)))) if countable else None
        return thing if node is None else with_node(thing, node, scalar=True)

    return chosen


@cache
def ordering_in_python(order: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Python's shuffle, in place, and sample."""

    @wraps(order)
    def drawn(self: Any, population: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or drawing or importing() or not has_its_law(run, self, order, name):
            return order(self, population, *arguments, **options)
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        many = len(population) if hasattr(population, "__len__") else 0
        if name == "sample":
            natural, at = with_index(
                self,
                lambda: order(self, population, *given, **more),
                lambda: order(self, range(many), *given, **more),
            )
            if at is None or more.get("counts") is not None:
                unread(run, "random", name)
                return order(self, population, *given, **more) if natural is None else natural
            use = ordered(run, "random", at, population)
            return natural if use == at and natural is not None else [population[i] for i in use]
        at = list(range(many))
        if type(population) is not list:
            unread(run, "random", name)
            at = population
        drawing.append(True)
        try:
            order(self, at, *arguments, **options)  # it depends on nothing but the length
        finally:
            drawing.pop()
        if at is not population:
            before = list(population)
            population[:] = [before[i] for i in ordered(run, "random", at, before)]
        return None

    return drawn


def shuffling(shuffle: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's shuffle of an array or a list, in place."""

    @wraps(shuffle)
    def shuffled(self: Any, x: Any, *arguments: Any, **options: Any) -> None:
        run = current()
        if run is None or drawing or importing() or not has_its_law(run, self, shuffle, "shuffle"):
            shuffle(self, x, *arguments, **options)
            return
        raw = plain(x) if isinstance(x, np.ndarray) else x
        axis = options.get("axis", arguments[0] if arguments else 0)
        few = hasattr(raw, "__len__") and math.factorial(min(len(raw), 9)) <= MOST_ORDERS
        simple = type(raw) is list or (type(raw) is np.ndarray and raw.ndim == 1 and raw.dtype.kind in "biufUS")
        if not few or not simple or axis:
            run.orders.append((len(run.draws), True, caller()))
            run.drawn("numpy", "shuffle", {}, zeros(0))
            shuffle_as_it_is(shuffle, self, raw, *arguments, **options)
        else:
            at: Any = list(range(len(raw))) if type(raw) is list else np.arange(len(raw))
            shuffle_as_it_is(shuffle, self, at)
            before: Any = list(raw) if type(raw) is list else raw.copy()
            things = before if type(raw) is list else before.tolist()
            order = ordered(run, "numpy", list(map(int, at)), things)
            raw[:] = [before[i] for i in order] if type(raw) is list else before[order]
        if x is not raw:
            x.node = None

    return shuffled


def shuffle_as_it_is(shuffle: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The function itself, inside a draw that is recorded in another way."""
    begun = state_of(arguments[0])
    drawing.append(True)
    try:
        return shuffle(*arguments, **options)
    finally:
        drawing.pop()
        _take_bits(arguments[0], begun)


def permuting(permutation: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's permutation and permuted, of a number or of an array with one axis."""

    @wraps(permutation)
    def permuted(self: Any, x: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or drawing or importing() or not has_its_law(run, self, permutation, permutation.__name__):
            return permutation(self, x, *arguments, **options)
        x = plain(x)
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        whole = isinstance(x, int | np.integer)
        things = np.arange(x) if whole else asarray(x)
        few = things.ndim == 1 and math.factorial(min(len(things), 9)) <= MOST_ORDERS
        if not few or given or more:
            run.orders.append((len(run.draws), True, caller()))
            run.drawn("numpy", permutation.__name__, {}, zeros(0))
            return shuffle_as_it_is(permutation, self, x, *given, **more)
        natural, at = with_index(self, lambda: permutation(self, x), lambda: permutation(self, np.arange(len(things))))
        if at is None:
            unread(run, "numpy", permutation.__name__)
            return natural
        order = ordered(run, "numpy", at.tolist(), things.tolist())
        return natural if order == at.tolist() else things[order]

    return permuted
