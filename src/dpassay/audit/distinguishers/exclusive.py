"""Events that occurred for one input only, however rare: a value, an interval, a word, a key, a kind of output.

A rule for all outputs would miss them, because an event in one of a thousand runs hardly moves any average. They are
proposed by training runs and tested on others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet, in_digits, require, shown_names
from dpassay.audit.distinguishers.frequencies import in_words
from dpassay.audit.outputs.features import anomalies, coordinate_name
from dpassay.audit.outputs.leaf_screening import found_in
from dpassay.audit.outputs.leaf_views import View
from dpassay.audit.outputs.leaves import ROOT, is_value
from dpassay.audit.outputs.outputs import LONGEST, Array, Outputs, Ragged
from dpassay.audit.outputs.texts.ngrams import how_often, words_in
from dpassay.values import dataclass

PARTS = 4  # of the runs, each of which tests what the others propose
FEWEST = 1024  # outputs of both inputs from which events are proposed: with fewer, others find what is not rare
MOST_TIMES = 256  # larger counts are treated alike: they never occur by chance
COST = 4.0  # correct guesses that a wrong one outweighs
MOST_CELLS = 1 << 18  # numbers that are sorted, if there are several coordinates
MOST_COORDINATES = 64
FAR = 700.0  # exponentials of larger numbers overflow
MOST_EVENTS = 256  # of one coordinate, or words
MOST_COMPARED = 64  # events of one sort whose outputs are compared with those of others
# Two numbers belong together if they are at most this far apart, in units of their spread. The finest is far coarser
# than rounding errors: it must not matter which of two adjacent floats an output is.
FINEST = 1e-9
COARSER = 1.5  # by what factor events of coarser intervals must be better
NARROWEST = FINEST / 4  # width of an interval in a file, in units of its numbers
NEARNESS = (FINEST, 1e-3, 1e-2, 1e-1)

Interval: TypeAlias = tuple[int, float, float, int]  # coordinate, from, to, input


@dataclass(frozen=True)
class Exclusive(Distinguisher):
    """1 for an output with an event that only the second input gave, −1 for one of the first, NaN for neither."""

    intervals: tuple[Interval, ...] = ()  # in order, disjoint
    words: tuple[tuple[str, int], ...] = ()
    kinds: tuple[tuple[str, int], ...] = ()  # anomalies
    width: int = 0
    inputs: tuple[Any, ...] = ()  # for anomalies
    paths: tuple[tuple[str, int], ...] = ()  # that lead to a leaf of a structured output: keys, positions, members
    columns: tuple[str, ...] = ()  # of structured outputs: the paths of the coordinates

    kind = "Exclusive"
    order = 55
    decided = True

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """For two inputs, if there are more such events than chance would propose."""
        seen = cls._seen(training)
        if seen:
            yield from cls._proposed(seen, training)

    @classmethod
    def cross_fit(cls, training: TrainingSet) -> tuple[Self, list[Scores]] | None:
        """One from all runs, and for each quarter of the runs the scores from one fitted to the others."""
        seen = cls._seen(training)
        whole = next(cls._proposed(seen, training), None) if seen else None
        if whole is None:
            return None
        scores: list[list[Scores]] = [[np.zeros(0)] for _ in seen]
        for quarter in range(PARTS):
            others, own = ([one.part(quarter, inside=inside) for one in seen] for inside in (False, True))
            for fitted in cls._proposed(others, training):
                for side, outputs in zip(scores, own, strict=True):
                    side.append(fitted._score(outputs))
        return whole, [np.concatenate(side) for side in scores]

    @classmethod
    def _seen(cls, training: TrainingSet) -> list[_ExaminedOutputs]:
        runs = sum(map(len, training.outputs))
        if len(training.outputs) != 2 or runs < FEWEST:
            return []
        columns = _number_paths(training.outputs) if training.structured else ()
        width = len(columns) or min(training.width, MOST_COORDINATES)
        return [_ExaminedOutputs.of(outputs, width, training.inputs, columns) for outputs in training.outputs]

    @classmethod
    def _proposed(cls, seen: Sequence[_ExaminedOutputs], training: TrainingSet) -> Iterator[Self]:
        intervals = _intervals([one.rows for one in seen], training)
        words: tuple[tuple[str, int], ...] = ()
        if seen[0].vocabulary != seen[1].vocabulary:  # else no word is one input's alone
            words = _exclusive([Counter(chain.from_iterable(one.words)) for one in seen], training)
        often = [_times(one.paths) for one in seen]
        values = [Counter({path: times for path, times in some.items() if is_value(path)}) for some in often]
        # All paths to one leaf occur together; counted separately, they would make chance seem less likely than it is.
        paths = _exclusive(values if values[0].keys() != values[1].keys() else often, training)
        kinds = _exclusive([one.kinds() for one in seen], training)
        kinds, paths, words, intervals = _needed(seen, kinds, paths, words, intervals)
        if intervals or words or kinds or paths:
            width = 1 + max((interval[0] for interval in intervals), default=-1)
            columns = seen[0].columns[:width]
            yield cls(tuple(intervals), words, kinds, width, training.inputs if kinds else (), paths, columns)

    def score(self, outputs: Outputs) -> Scores:
        looks = bool(self.words), bool(self.kinds), bool(self.paths)
        return self._score(_ExaminedOutputs.of(outputs, self.width, self.inputs, self.columns, *looks))

    def _score(self, seen: _ExaminedOutputs) -> Scores:
        votes = np.zeros(len(seen.rows))
        for j in sorted({interval[0] for interval in self.intervals}):
            column, of_column = seen.rows[:, j], [interval[1:] for interval in self.intervals if interval[0] == j]
            low, high, side = (np.array(some) for some in zip(*of_column, strict=True))
            where = np.searchsorted(low, column, side="right") - 1
            inside = (where >= 0) & (column <= high[where])
            votes += np.where(inside, 2 * side[where] - 1, 0)
        if self.words and seen.spoken is not None:
            of = np.array([2 * side - 1 for _, side in self.words])
            votes += (how_often(seen.spoken, [word for word, _ in self.words]) > 0) @ of
        if self.paths and seen.paths:
            named = dict(self.paths)
            votes += [sum(2 * named[name] - 1 for name in named.keys() & one) for one in seen.paths]
        if self.kinds:
            named = dict(self.kinds)
            for code, name in seen.meaning.items():
                votes += (2 * named[name] - 1) * (seen.codes == code) if name in named else 0
        return np.where(votes == 0, np.nan, np.sign(votes))

    def describe(self) -> str:
        return "events that only one input gave"

    def event(self, side: int) -> str:
        """What names an input, in words."""
        names = self.columns or [coordinate_name(j, self.width) for j in range(self.width)]
        paths = sorted(
            (path for path, of in self.paths if of == side),
            key=lambda path: not (is_value(path) and path.startswith(ROOT)),
        )
        said = [f"{path} is there" for path in paths]
        said += [f"the word {word!r} appears" for word, of in self.words if of == side]
        said += [_range(names[j], low, high) for j, low, high, of in self.intervals if of == side]
        said += [f"the output is {in_words(name)}" for name, of in self.kinds if of == side]
        return shown_names(said)

    def to_data(self) -> dict[str, Any]:
        data = super().to_data()
        return {name: value for name, value in data.items() if value or name not in ("paths", "columns")}

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        intervals = tuple((int(j), float(low), float(high), int(of)) for j, low, high, of in data["intervals"])
        words, kinds, paths = (
            tuple((str(name), int(of)) for name, of in data.get(some, ())) for some in ("words", "kinds", "paths")
        )
        width = int(data["width"])
        require(len(intervals) + len(words) + len(kinds) + len(paths) > 0, "an event")
        require(all(event[-1] in (0, 1) for event in (*intervals, *words, *kinds, *paths)), "events of two inputs")
        require(all(0 <= j < width for j, _, _, _ in intervals), "intervals of its width")
        columns = tuple(map(str, data.get("columns", ())))
        require(len(columns) in (0, width), "a path for each coordinate")
        wide = (high - low >= NARROWEST * max(abs(low), abs(high)) for _, low, high, _ in intervals)
        require(all(wide), "intervals far wider than rounding errors")
        ordered = pairwise(intervals)
        require(all(a[0] < b[0] or (a[0] == b[0] and a[2] < b[1]) for a, b in ordered), "intervals in order")
        return cls(intervals, words, kinds, width, tuple(data["inputs"]), paths, columns)


@dataclass(frozen=True)
class _ExaminedOutputs:
    """What is examined in the outputs of one input: numbers, words, anomalies, paths to leaves."""

    rows: Array
    texts: list[str]
    codes: NDArray[np.int64]
    meaning: dict[int, str]
    paths: Sequence[Iterable[str]]  # of structured outputs; none if there are none
    columns: tuple[str, ...] = ()
    spoken: Ragged | None = None  # the words of the texts, by their numbers

    @classmethod
    def of(
        cls,
        outputs: Outputs,
        width: int,
        inputs: tuple[Any, ...],
        columns: tuple[str, ...] = (),
        words: bool = True,
        kinds: bool = True,
        paths: bool = True,
    ) -> Self:
        has_words = words and outputs.numbers is None
        texts = [text[: 8 * LONGEST] for text in outputs.texts()] if has_words else []
        found = anomalies(outputs, inputs) if kinds else (np.zeros(0, dtype=np.int64), {})
        apart = outputs.apart if paths else ()
        leaves = [() if known is None else known.paths for known in apart]
        shown = View("numbers", columns[:width]).of(outputs) if columns and width else outputs
        rows = shown.matrix(width) if width else np.zeros((len(outputs), 0))
        return cls(rows, texts, *found, leaves, columns, words_in(outputs) if has_words else None)

    def part(self, quarter: int, *, inside: bool) -> Self:
        """What is in one quarter of the outputs, or in the others."""
        chosen = (np.arange(len(self.rows)) % PARTS == quarter) == inside
        places = np.flatnonzero(chosen).tolist()
        texts = [self.texts[i] for i in places] if self.texts else []
        paths = [self.paths[i] for i in places] if self.paths else []
        made = replace(self, rows=self.rows[chosen], texts=texts, codes=self.codes[chosen], paths=paths)
        if self.spoken is not None:
            made = replace(made, spoken=self.spoken.chosen(chosen))
        if texts and "words" in vars(self):  # they are found once for all parts
            vars(made)["words"] = [self.words[i] for i in places]
        return made

    @cached_property
    def words(self) -> list[set[str]]:
        """The words of each text."""
        return [set(text.split()) for text in self.texts]

    @cached_property
    def vocabulary(self) -> set[str]:
        """All words of all texts, found in a fraction of the time."""
        if self.spoken is None:
            return set()
        return {self.spoken.of.words[number] for number in np.flatnonzero(np.bincount(self.spoken.values)).tolist()}

    def of_kind(self, event: tuple[str, int]) -> NDArray[np.bool_]:
        """Which outputs have this anomaly."""
        return np.isin(self.codes, [code for code, name in self.meaning.items() if name == event[0]])

    def with_path(self, event: tuple[str, int]) -> NDArray[np.bool_]:
        """Which outputs have a leaf at this path. Outputs of one form share one collection of paths."""
        with_it = {key for key, some in {id(some): some for some in self.paths}.items() if event[0] in some}
        return np.array([id(some) in with_it for some in self.paths], dtype=bool)

    def with_word(self, event: tuple[str, int]) -> NDArray[np.bool_]:
        """Which texts have this word."""
        assert self.spoken is not None
        return np.asarray(how_often(self.spoken, [event[0]])[:, 0] > 0)

    def inside(self, event: Interval) -> NDArray[np.bool_]:
        """Which outputs have a number in this interval."""
        place, low, high, _ = event
        with np.errstate(invalid="ignore"):
            return np.asarray((self.rows[:, place] >= low) & (self.rows[:, place] <= high))

    def kinds(self) -> Counter[str]:
        """How often each anomaly occurs."""
        return Counter({name: int(np.count_nonzero(self.codes == code)) for code, name in self.meaning.items()})


def _needed(seen: Sequence[_ExaminedOutputs], *events: Any) -> tuple[Any, ...]:
    """Kinds, paths, words and intervals without those that only occur together with more frequent ones.

    An event that many things show is said in one way: of a longer list, its kind, not each of its entries.
    """
    kept: list[list[Any]] = [[] for _ in events]
    for side, outputs in enumerate(seen):
        finders: tuple[Callable[[Any], NDArray[np.bool_]], ...] = (
            outputs.of_kind,
            outputs.with_path,
            outputs.with_word,
            outputs.inside,
        )
        found = []
        for sort, (finder, some) in enumerate(zip(finders, events, strict=True)):
            of_side = [event for event in some if event[-1] == side]
            found += [(sort, event, finder(event)) for event in of_side[:MOST_COMPARED]]
            kept[sort] += of_side[MOST_COMPARED:]
        covered = np.zeros(len(outputs.rows), dtype=bool)
        for sort, event, where in sorted(found, key=lambda one: (-np.count_nonzero(one[2]), not _is_telling(one[1]))):
            if not covered[where].all():
                kept[sort].append(event)
                covered |= where
    return tuple(type(some)(event for event in some if event in of) for some, of in zip(events, kept, strict=True))


def _is_telling(event: tuple[Any, ...]) -> bool:
    """Whether it is no path to a length, a type or a position."""
    return not isinstance(event[0], str) or not event[0].startswith(("list(", "len(", "type("))


def _number_paths(outputs: Sequence[Outputs]) -> tuple[str, ...]:
    """The paths to numbers in structured outputs, of values before lengths and positions."""
    found = found_in(outputs)
    paths = [path for path in found.columns if path not in found.offsets]
    return tuple(sorted(paths, key=lambda path: not is_value(path))[:MOST_COORDINATES])


def _times(paths: Sequence[Iterable[str]]) -> Counter[str]:
    """How many outputs have each path. Outputs of one form share one collection of paths."""
    found: Counter[str] = Counter()
    shared = {id(some): some for some in paths}
    for place, times in Counter(map(id, paths)).items():
        for path in shared[place]:
            found[path] += times
    return found


def _range(name: str, low: float, high: float) -> str:
    middle, half = (low + high) / 2, (high - low) / 2
    if half <= 1e-6 * max(abs(middle), half):
        return f"{name} is {in_digits(middle)}"
    return f"{name} is between {in_digits(low)} and {in_digits(high)}"


def _exclusive(counts: Sequence[Counter[str]], training: TrainingSet) -> tuple[tuple[str, int], ...]:
    """The names that only one input has, and whose they are."""
    names = sorted(counts[0] | counts[1])
    table = np.array([[count[name] for name in names] for count in counts], dtype=np.int64)
    kept, _ = _beyond_chance(table[0], table[1], training)
    best = kept[np.argsort(-table[:, kept].sum(axis=0), kind="stable")[:MOST_EVENTS]]
    return tuple((names[i], int(table[1, i] > 0)) for i in best.tolist())


def _beyond_chance(first: NDArray[Any], second: NDArray[Any], training: TrainingSet) -> tuple[NDArray[np.int64], float]:
    """Which events occurred for one input only, often enough that chance rarely proposes such events,
    and what they are worth, in correct guesses.

    An event that one input makes e^ε times as likely as the other, which the claim allows, comes n times from one input
    alone with probability p^n + (1 − p)^n, p = e^ε / (1 + e^ε). Those that came from both show how many such events
    there are, and so how many of them look exclusive by chance: the share of false discoveries (Storey 2002), taken
    over all events of at least n times.
    """
    times = np.minimum(first + second, MOST_TIMES)
    alone = (np.minimum(first, second) == 0) & (times > 0)
    most = int(times.max(initial=0)) if alone.any() else 0
    if most < 2:
        return np.zeros(0, dtype=np.int64), 0.0
    epsilon = training.epsilon
    likelier, rarer = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(min(epsilon, FAR)))
    chance = np.minimum(likelier ** np.arange(most + 1) + rarer ** np.arange(most + 1), 1.0)
    found = np.bincount(times[alone], minlength=most + 1)
    of_both = np.bincount(times, minlength=most + 1) - found
    by_chance = np.where(chance < 1, of_both * chance / np.maximum(1 - chance, 0.5), 0.0)
    few = _from_on(by_chance) + chance <= training.by_chance * _from_on(found)
    # A wrong guess costs as much as several correct ones gain, so events due to chance have a negative value.
    times_each = np.arange(most + 1)
    worth = _from_on(times_each * (found - COST * by_chance)) - COST * times_each * chance / 2
    worth[~few] = 0.0
    worth[:2] = 0.0
    least = int(worth.argmax())
    return np.flatnonzero(alone & (times >= least) & (worth[least] > 0)), float(worth[least])


def _from_on(counts: NDArray[Any]) -> NDArray[Any]:
    """For each entry, the sum from there on."""
    return np.asarray(counts[::-1].cumsum()[::-1])


def _intervals(sides: Sequence[Array], training: TrainingSet) -> list[Interval]:
    """Intervals of a coordinate that only one input gave: numbers that lie together and apart from others."""
    width = min(sides[0].shape[1], max(1, MOST_CELLS // sum(map(len, sides))))
    columns = [column for j in range(width) if (column := _Column.of(j, [rows[:, j] for rows in sides])) is not None]
    best: list[Interval] = []
    most = 0.0
    for nearness in NEARNESS if columns else ():
        groups = [column.groups(nearness) for column in columns]
        low, high, first, second = (np.concatenate(some) for some in zip(*groups, strict=True))
        kept, worth = _beyond_chance(first, second, training)
        if worth > most:
            most, times = COARSER * worth, (first + second)[kept]
            kept = np.sort(kept[np.argsort(-times, kind="stable")[:MOST_EVENTS]])
            place = np.repeat([column.place for column in columns], [len(some[0]) for some in groups])[kept]
            of = (second[kept] > 0).astype(int)
            best = list(zip(place.tolist(), low[kept].tolist(), high[kept].tolist(), of.tolist(), strict=True))
    return best


@dataclass(frozen=True)
class _Column:
    """The numbers of one coordinate in order: of both inputs, and of the second."""

    place: int
    values: Array
    of_second: Array
    spread: float

    @classmethod
    def of(cls, place: int, sides: Sequence[Array]) -> Self | None:
        finite = [side[np.isfinite(side)] for side in sides]
        values, quarter = np.sort(np.concatenate(finite)), sum(map(len, finite)) // 4
        if len(values) < 4:
            return None
        with np.errstate(over="ignore"):
            spread = float(values[-1 - quarter] - values[quarter]) or float(values[-1] - values[0])
        return cls(place, values, np.sort(finite[1]), spread) if np.isfinite(spread) else None

    def groups(self, nearness: float) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]:
        """Where groups of two or more neighboring numbers begin and end, and how many of them each input gave."""
        apart = max(nearness * self.spread, FINEST * float(np.abs(self.values[[0, -1]]).max()))
        ends = np.append(np.flatnonzero(np.diff(self.values) > apart) + 1, len(self.values))
        starts = np.concatenate([[0], ends[:-1]])
        some = ends - starts > 1
        starts, ends = starts[some], ends[some]
        low, high = self.values[starts], self.values[ends - 1]
        second = np.searchsorted(self.of_second, high, side="right") - np.searchsorted(self.of_second, low)
        return low - apart / 3, high + apart / 3, ends - starts - second, second
