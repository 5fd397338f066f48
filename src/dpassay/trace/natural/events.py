"""Events that may distinguish two inputs, found in some of their outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from dpassay.trace.natural.columns import Array, OutputColumn, RunOutputs, part
from dpassay.trace.natural.projections import Centres, likelihood_ratio, projections
from dpassay.trace.natural.whole import WholeReading, numbers_in
from dpassay.trace.watch.record import distinct
from dpassay.values import dataclass

MOST_COLUMNS, MOST_PAIRED, MOST_CROSSED, MOST_VALUES, MOST_FORMS = 400, 40, 6, 12, 4
USUAL = 0.95  # of the texts: a few may happen to be read differently
OF_TYPE = "the type of "  # begins the path of an event that is about a type
_QUADRANTS = ((True, True), (True, False), (False, True), (False, False))
AGAIN = 3  # times that a number is output, which is unlikely with noise
_FEATURES: dict[str, Callable[[Any], Any]] = {
    "the last character of": lambda value: value[-1:] if isinstance(value, str | bytes) else None,
    "the length of": lambda value: len(value) if isinstance(value, str | bytes) else None,
}


@dataclass(frozen=True)
class CountedEvent:
    """A property of an output: its description, and which of some outputs have it."""

    said: str
    tests: Callable[[RunOutputs], Array]
    path: str = ""  # of the part that has a value
    value: Any = None

    def hits(self, outputs: RunOutputs) -> int:
        """How many outputs have it."""
        return int(np.count_nonzero(self.tests(outputs)))


def _each(test: Callable[..., bool], *given: Any) -> Callable[[RunOutputs], Array]:
    """A test of one output, for many."""
    return lambda outputs: outputs.where(partial(test, *given))


def candidates(
    first: RunOutputs, second: RunOutputs, delta: float = 0.0, centres: Centres | None = None
) -> Iterator[CountedEvent]:
    """Events whose frequencies differ in these outputs of two inputs, the simplest first.

    >>> from dpassay.trace.natural.whole import read
    >>> print(next(candidates(RunOutputs([read([1, 2])] * 9), RunOutputs([read([1, 3])] * 9))).said)
    output[1] is 2
    """
    yield from _shapes(first, second)
    for (paths, kinds), _ in Counter((one.paths, one.kinds) for one in (*first, *second)).most_common(MOST_FORMS):
        both = [
            RunOutputs([one for one in side if one.paths == paths and one.kinds == kinds]) for side in (first, second)
        ]
        if all(map(len, both)):
            yield from _of_one_form(paths, both, delta, centres)


def _of_one_form(
    paths: Sequence[str], both: Sequence[RunOutputs], delta: float, centres: Centres | None
) -> Iterator[CountedEvent]:
    yield from _texts(paths, both)
    columns = [
        OutputColumn(path, partial(_numbers, at, path))
        for at, path in enumerate(paths)
        if all(isinstance(side[0].values[at], float) for side in both)
    ]
    columns = [*columns, *_numbers_in_texts(paths, both)][:MOST_COLUMNS]
    if columns:
        tables = [np.stack([column.of(side) for column in columns], axis=1) for side in both]
        yield from _values(columns, tables)
        yield from _thresholds(columns, tables, delta)
    yield from _wholes(both)
    if columns:
        yield from _together(columns, tables, delta, centres)


def _numbers(at: int, path: str, outputs: RunOutputs) -> Array:
    return outputs.numbers(at, path)


def _shapes(first: RunOutputs, second: RunOutputs) -> Iterator[CountedEvent]:
    """Which parts there are: keys, lengths, types, exceptions."""
    sides = [Counter((one.paths, one.kinds) for one in side) for side in (first, second)]
    if len(set(sides[0]) | set(sides[1])) < 2:
        return
    parts = [
        Counter(part for one in side for part in set(zip(one.paths, one.kinds, strict=True)))
        for side in (first, second)
    ]
    rates = {
        part: (parts[0][part] / len(first), parts[1][part] / len(second)) for part in set(parts[0]) | set(parts[1])
    }
    there = [Counter(path for one in side for path in set(one.paths)) for side in (first, second)]
    always = {path for path in there[0] if there[0][path] == len(first) and there[1][path] == len(second)}
    for path, kind in sorted(rates, key=lambda part: (-abs(rates[part][0] - rates[part][1]), part))[:MOST_VALUES]:
        if rates[path, kind] == (1.0, 1.0):
            continue
        said, about = f"there is {path}" + f" ({kind})" * bool(kind), path
        if path == "exception":
            said = f"it raises {kind}"
        elif path in always:
            said, about = f"{path} has the type {kind}", f"{OF_TYPE}{path}"
        yield CountedEvent(said, _each(_has, path, kind), about)
    for form, _ in (*sides[0].most_common(3), *sides[1].most_common(3)):
        said = ", ".join(f"{path} {kind}".strip() for path, kind in zip(*form, strict=True))
        yield CountedEvent(f"the output has this form: {said}"[:200], _each(_has_form, form))


def _has(path: str, kind: str, one: WholeReading) -> bool:
    return (path, kind) in zip(one.paths, one.kinds, strict=True)


def _has_form(form: Any, one: WholeReading) -> bool:
    return bool((one.paths, one.kinds) == form)


def _texts(paths: Sequence[str], both: Sequence[RunOutputs]) -> Iterator[CountedEvent]:
    """Whole texts, and words in them."""
    sizes = [len(side) for side in both]
    for at, path in enumerate(paths):
        if not any(isinstance(side[0].values[at], str | bytes) for side in both):
            continue
        for value in _different([Counter(one.values[at] for one in side) for side in both], sizes):
            yield CountedEvent(f"{path} is {_short(value)}", _each(_is, at, path, value), path, value)
        words = [Counter(word for one in side for word in set(str(one.values[at]).split())) for side in both]
        for word in _different(words, sizes):
            yield CountedEvent(f"{path} has the word {_short(word)}", _each(_has_word, at, path, word))
        for said, of in _FEATURES.items():
            counts = [Counter(of(one.values[at]) for one in side) for side in both]
            for value in _different(counts, sizes):
                yield CountedEvent(f"{said} {path} is {_short(value)}", _each(_has_feature, at, path, of, value))


def _wholes(both: Sequence[RunOutputs]) -> Iterator[CountedEvent]:
    """Whole outputs that repeat: their single parts may not distinguish the inputs."""
    if len(both[0][0].values) < 2:
        return
    counts = [Counter(one.values for one in side) for side in both]
    if sum(map(len, counts)) > sum(map(len, both)) / AGAIN:
        return
    first = both[0][0]
    varying = [k for k, own in enumerate(first.values) if any(values[k] != own for one in counts for values in one)]
    for values in _different(counts, [len(side) for side in both]) if len(varying) > 1 else ():
        said = " and ".join(f"{first.paths[k]} is {_short(values[k])}" for k in varying)
        yield CountedEvent(said[:200], _each(_is_whole, (first.paths, first.kinds, values)))


def _is_whole(form: Any, one: WholeReading) -> bool:
    return bool((one.paths, one.kinds, one.values) == form)


def _numbers_in_texts(paths: Sequence[str], both: Sequence[RunOutputs]) -> Iterator[OutputColumn]:
    """The numbers in a text, if it nearly always has the same number of them."""
    for at, path in enumerate(paths):
        if not any(isinstance(side[0].values[at], str | bytes) for side in both):
            continue
        counts = Counter(len(numbers_in(one.values[at])) for side in both for one in side)
        ((many, times),) = counts.most_common(1)
        if times >= USUAL * counts.total():
            for k in range(many):
                yield OutputColumn(f"number {k + 1} in {path}", partial(_written, at, path, k, many))


def _written(at: int, path: str, k: int, many: int, outputs: RunOutputs) -> Array:
    return outputs.written(at, path, k, many)


def _has_feature(at: int, path: str, of: Callable[[Any], Any], value: Any, one: WholeReading) -> bool:
    return bool(of(part(one, at, path)) == value)


def _is(at: int, path: str, value: Any, one: WholeReading) -> bool:
    return bool(part(one, at, path) == value)


def _has_word(at: int, path: str, word: str, one: WholeReading) -> bool:
    return word in str(part(one, at, path)).split()


def _different(sides: Sequence[Counter[Any]], sizes: Sequence[int]) -> list[Any]:
    """The values whose frequencies differ most."""
    seen = set(sides[0]) | set(sides[1])
    rates = {one: (sides[0][one] / sizes[0], sides[1][one] / sizes[1]) for one in seen}
    order = sorted(seen, key=lambda one: (-abs(math.log((rates[one][0] + 1e-3) / (rates[one][1] + 1e-3))), str(one)))
    also = sorted(seen, key=lambda one: (-abs(rates[one][0] - rates[one][1]), str(one)))
    return list(dict.fromkeys(order[:MOST_VALUES] + also[:MOST_VALUES]))


def _values(columns: Sequence[OutputColumn], tables: Sequence[Array]) -> Iterator[CountedEvent]:
    """Numbers that are output repeatedly."""
    sizes = [len(table) for table in tables]
    for k, column in enumerate(columns):
        if any(np.isnan(table[:, k]).any() for table in tables):
            yield CountedEvent(f"{column.said} is NaN", partial(_is_nan, column))
        sides = [Counter(value for value in table[:, k].tolist() if value == value) for table in tables]
        if sum(len(side) for side in sides) > sum(side.total() for side in sides) * 0.9:
            yield from _hidden_bits(column, [table[:, k] for table in tables])
            sides = [Counter({value: n for value, n in side.items() if n >= AGAIN}) for side in sides]
        for value in _different(sides, sizes):
            if sides[0][value] * sizes[1] == sides[1][value] * sizes[0]:
                continue
            yield CountedEvent(f"{column.said} is {value:.10g}", partial(_equals, column, value), column.said, value)
        yield from _behind_decimals(column, [table[:, k] for table in tables])


def _is_nan(column: OutputColumn, outputs: RunOutputs) -> Array:
    return np.isnan(column.of(outputs))


def _equals(column: OutputColumn, value: float, outputs: RunOutputs) -> Array:
    return np.asarray(column.of(outputs) == value)


def _hidden_bits(column: OutputColumn, sides: Sequence[Array]) -> Iterator[CountedEvent]:
    """Last bits, and remainders, that a number mostly has for one input.

    In correct code, too, rounding makes some last bits likelier, but it never determines most of them.
    """
    for said, modulus in (("the last byte of", 256), ("the last hexadecimal digit of", 16)):
        counts = [Counter((_last_bytes(side) % modulus).tolist()) for side in sides]
        for value in _different(counts, [len(side) for side in sides])[:4]:
            if not any(count[value] > len(side) / 2 for count, side in zip(counts, sides, strict=True)):
                continue
            yield CountedEvent(f"{said} {column.said} is {value}", partial(_has_bits, column, modulus, value))
    odd = [float(np.mean(_last_bytes(side) % 2)) for side in sides]
    if max(odd) > 0.9 and min(odd) < 0.1:
        yield CountedEvent(f"the last bit of {column.said} is 1", partial(_has_bits, column, 2, 1))
    if all((side == np.floor(side)).all() for side in sides if np.isfinite(side).all()):
        for modulus in (2, 3, 5):
            for rest in range(modulus):
                yield CountedEvent(f"{column.said} % {modulus} is {rest}", partial(_has_rest, column, modulus, rest))


def _behind_decimals(column: OutputColumn, sides: Sequence[Array]) -> Iterator[CountedEvent]:
    """What follows the decimals of a number that was rounded and then changed slightly."""
    for places in (0, 1, 2, 3, 6):
        behind = [side - np.round(side, places) for side in sides]
        middles = [_middle(side) for side in behind]
        near = abs(middles[0] - middles[1]) / 4
        if all((np.abs(side - middle) < near).mean() > 0.9 for side, middle in zip(behind, middles, strict=True)):
            said = f"{column.said} is a number with {places} decimals plus {middles[0]:.3g}"
            yield CountedEvent(said, partial(_is_behind, column, places, middles[0], near))


def _has_bits(column: OutputColumn, modulus: int, value: int, outputs: RunOutputs) -> Array:
    numbers = column.of(outputs)
    return np.asarray(np.isfinite(numbers) & (_last_bytes(numbers) % modulus == value))


def _middle(values: Array) -> float:
    """A number in the middle; `np.median` would import numpy.ma."""
    return float(np.sort(values)[len(values) // 2])


def _is_behind(column: OutputColumn, places: int, middle: float, near: float, outputs: RunOutputs) -> Array:
    numbers = column.of(outputs)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(numbers) & (np.abs(numbers - np.round(numbers, places) - middle) < near))


def _has_rest(column: OutputColumn, modulus: int, rest: int, outputs: RunOutputs) -> Array:
    numbers = column.of(outputs)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(numbers) & (np.mod(numbers, modulus) == rest))


def _last_bytes(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype="<f8").view(np.uint8).reshape(-1, 8)[:, 0].astype(int)


def _thresholds(columns: Sequence[OutputColumn], tables: Sequence[Array], delta: float) -> Iterator[CountedEvent]:
    """A number above or below a limit, the two best limits for each, or between two."""
    for k, column in enumerate(columns):
        sides = [table[:, k] for table in tables]
        for limit, above in _best_limits(sides[0], sides[1], delta):
            yield _beyond(column.said, limit, above, column.of)
        for low, high in _best_ranges(sides) if k < MOST_PAIRED else ():
            yield CountedEvent(f"{column.said} is from {low:.6g} to {high:.6g}", partial(_within, column, low, high))


def _best_ranges(sides: Sequence[Array]) -> Iterator[tuple[float, float]]:
    """Ranges in which numbers of one input lie most often, compared with once or three times those of the other."""
    sides = [side[np.isfinite(side)] for side in sides]
    if not all(side.size for side in sides):
        return
    pooled = np.concatenate(sides)
    order = np.argsort(pooled, kind="stable")
    values, own = pooled[order], (np.arange(pooled.size) < sides[0].size)[order]
    for first, times in ((True, 1), (True, 3), (False, 1), (False, 3)):
        gains = np.where(own == first, 1 / sides[0 if first else 1].size, -times / sides[1 if first else 0].size)
        sums = np.concatenate([[0.0], np.cumsum(gains)])
        last = int(np.argmax(sums - np.minimum.accumulate(sums)))
        start = int(np.argmin(sums[: last + 1]))
        if 0 < start < last < pooled.size:  # otherwise it is a limit
            yield float(values[start - 1] + values[start]) / 2, float(values[last - 1] + values[last]) / 2


def _within(column: OutputColumn, low: float, high: float, outputs: RunOutputs) -> Array:
    numbers = column.of(outputs)
    return np.asarray((numbers >= low) & (numbers <= high))


def _beyond(what: str, limit: float, above: bool, value: Callable[[RunOutputs], Array]) -> CountedEvent:
    if above:
        return CountedEvent(f"{what} is at least {limit:.6g}", lambda outputs: value(outputs) >= limit)
    return CountedEvent(f"{what} is at most {limit:.6g}", lambda outputs: value(outputs) <= limit)


def _best_limits(first: Array, second: Array, delta: float) -> list[tuple[float, bool]]:
    """Limits for which the frequencies differ most, in both directions."""
    first, second = first[np.isfinite(first)], second[np.isfinite(second)]
    if not first.size or not second.size:
        return []
    pooled = distinct(np.concatenate([first, second]))
    if pooled.size < 2:
        return []
    limits = (pooled[1:] + pooled[:-1]) / 2
    limits = limits[np.linspace(0, limits.size - 1, min(limits.size, 400)).astype(int)]
    a = np.searchsorted(np.sort(first), limits) / first.size
    b = np.searchsorted(np.sort(second), limits) / second.size
    found = []
    for above in (False, True):
        p, q = (1 - a, 1 - b) if above else (a, b)
        for one, other, n in ((p, q, second.size), (q, p, first.size)):
            spread = 1.5 * np.sqrt(other * (1 - other) / n + 1 / n**2) + 1 / n
            least = one - 1.5 * np.sqrt(one * (1 - one) / n) - delta
            with np.errstate(divide="ignore", invalid="ignore"):
                score = np.where(least > 0, np.log(np.maximum(least, 1e-12) / (other + spread)), -np.inf)
            best = int(np.argmax(score))
            if score[best] > 0:
                found.append((float(limits[best]), above))
    return found


def _together(
    columns: Sequence[OutputColumn], tables: Sequence[Array], delta: float, centres: Centres | None
) -> Iterator[CountedEvent]:
    """Several numbers at once: their differences and sums, and the direction that separates the inputs."""
    if len(columns) < 2:
        return
    if centres is not None and len(columns) == centres.first.size:
        of = likelihood_ratio(columns, centres)
        sides = [of.of_rows(table[np.isfinite(table).all(axis=1)]) for table in tables]
        for limit, above in _best_limits(sides[0], sides[1], delta):
            yield _beyond("the log-likelihood ratio of the noise as coded", limit, above, of)
    few = list(range(min(len(columns), MOST_PAIRED)))
    for i in few:
        for j in few[:i]:
            for sign, word in ((-1, "−"), (1, "+")):
                sides = [table[:, i] + sign * table[:, j] for table in tables]
                said = f"{columns[i].said} {word} {columns[j].said}"
                yield from _steady(said, (columns[i], columns[j], sign), sides)
    finite = [table[np.isfinite(table).all(axis=1)] for table in tables]
    if min(map(len, finite)) < 10:
        return
    yield from _corners(columns[:MOST_CROSSED], finite)
    for of in projections(columns, finite):
        sides = [of.of_rows(table) for table in finite]
        for limit, above in _best_limits(sides[0], sides[1], delta):
            yield _beyond(str(of), limit, above, of)


def _corners(columns: Sequence[OutputColumn], tables: Sequence[Array]) -> Iterator[CountedEvent]:
    """One number above and another one below its median for one of the inputs, or both above, or below."""
    found = []
    for middles in ([_middle(side) for side in table.T] for table in tables):
        high = [table[:, : len(columns)] > middles[: len(columns)] for table in tables]
        for (i, j), above in product(combinations(range(len(columns)), 2), _QUADRANTS):
            rates = [float(np.mean((side[:, i] == above[0]) & (side[:, j] == above[1]))) for side in high]
            told = abs(math.log((rates[0] + 1e-2) / (rates[1] + 1e-2)))
            found.append((told, (i, j), above, (middles[i], middles[j])))
    for _, (i, j), above, limits in sorted(found, reverse=True)[:4]:
        both, words = (columns[i], columns[j]), [">" if one else "≤" for one in above]
        said = " and ".join(f"{one.said} {w} {t:.6g}" for one, w, t in zip(both, words, limits, strict=True))
        yield CountedEvent(said, partial(_is_in_corner, both, limits, above))


def _is_in_corner(
    both: tuple[OutputColumn, OutputColumn], limits: tuple[float, float], above: tuple[bool, bool], outputs: RunOutputs
) -> Array:
    i, j = ((one.of(outputs) > limit) == high for one, limit, high in zip(both, limits, above, strict=True))
    return np.asarray(i & j & np.isfinite(both[0].of(outputs)) & np.isfinite(both[1].of(outputs)))


def _steady(what: str, place: tuple[OutputColumn, OutputColumn, int], sides: Sequence[Array]) -> Iterator[CountedEvent]:
    """A difference or sum that is constant although its numbers vary."""
    for side, other in (sides, sides[::-1]):
        middle = _middle(side) if np.isfinite(side).all() else math.nan
        near = 1e-9 * max(1.0, abs(middle))
        if (np.abs(side - middle) <= near).mean() > 0.5 and (np.abs(other - middle) <= near).mean() < 0.5:
            yield CountedEvent(f"{what} is {middle:.6g}", partial(_is_near, place, middle, near))
            return


def _is_near(place: tuple[OutputColumn, OutputColumn, int], middle: float, near: float, outputs: RunOutputs) -> Array:
    i, j, sign = place
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(i.of(outputs) + sign * j.of(outputs) - middle) <= near)


def _short(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
