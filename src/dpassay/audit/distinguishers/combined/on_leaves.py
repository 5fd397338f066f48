"""A distinguisher that uses some leaves of the output, its numbers, categories or texts, by their paths."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet, in_digits, require, shown_names
from dpassay.audit.distinguishers.boosted_tables import MOST_BITS, MOST_COORDINATES, BoostedTables
from dpassay.audit.distinguishers.frequencies import Frequencies, hardly_repeat
from dpassay.audit.distinguishers.logistic_regression import WIDEST, LogisticRegression
from dpassay.audit.distinguishers.naive_bayes import NaiveBayes
from dpassay.audit.distinguishers.nearest_input import NearestInput
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.leaf_screening import (
    BEST,
    MOST_ROWS,
    SCREENED,
    ScreenedLeaf,
    best_numbers,
    best_texts,
    best_values,
    found_in,
    positions,
    views_of_vectors,
)
from dpassay.audit.outputs.leaf_views import FRACTION, LOOKS, View, partly_whole
from dpassay.audit.outputs.leaves import ROOT
from dpassay.audit.outputs.outputs import Outputs, part
from dpassay.audit.outputs.relations.related import related_numbers, related_outputs
from dpassay.audit.outputs.relations.row_views import FEWEST, ROWS
from dpassay.audit.outputs.texts.text_views import CHARACTERS, CODES, WORDS
from dpassay.values import dataclass

_HEXADECIMAL = re.compile(r"-?0x[0-9a-f]{1,30}")
_COORDINATE = re.compile(r"output\[(\d+)\]|the output")
POSITIONED = 64  # entries of a vector of whole numbers whose positions are used


@dataclass(frozen=True)
class OnLeaves(Distinguisher):
    """Another distinguisher, applied to what a view shows of each output."""

    view: View
    base: Distinguisher

    kind = "Leaves"
    order = 45

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """First the single leaves that differ most, then pairs of them, then many together."""
        if not training.structured:
            yield from cls._fit_vectors(training)
            return
        found = found_in(training.outputs)
        numbers, pairs = best_numbers(found, training.outputs) if len(training.outputs) == 2 else ([], [])
        for view in [found.view([path]) for path in numbers[:BEST]] + pairs:
            yield from cls._fit(view, replace(training, inputs=()), Statistic)
        yield from cls._fit_values(found, training)
        yield from cls._fit_whole(training)
        for path, length in list(found.rows.items())[:MOST_ROWS]:
            if length <= WIDEST:
                yield from cls._fit(
                    found.view([f"{path}[{j}]" for j in range(length)]), training, Statistic, NearestInput
                )
        if len(training.outputs) == 2:
            yield from cls._fit_relations(found.columns[:MOST_COORDINATES], training)
        if numbers:
            yield from cls._fit(found.view(numbers[:MOST_COORDINATES]), training, BoostedTables)
            if len(numbers) > 1:
                yield from cls._fit(found.view(numbers[:WIDEST]), training, LogisticRegression)

    @classmethod
    def fit_float_bits(cls, training: TrainingSet) -> Iterator[Self]:
        """Only on the bit patterns of floats."""
        numbers = best_numbers(found_in(training.outputs), training.outputs)[0][:MOST_BITS]
        if numbers:
            view = View("numbers", tuple(numbers))
            for base in BoostedTables.fit_float_bits(cls._shown(view, training)):
                yield cls(view, base)

    @classmethod
    def _fit_values(cls, found: ScreenedLeaf, training: TrainingSet) -> Iterator[Self]:
        for view in best_values(found):
            yield from cls._fit(view, training, Frequencies)
        for paths in best_texts(found):
            yield from cls._fit(View("text", paths), training, NaiveBayes)

    @classmethod
    def _fit_whole(cls, training: TrainingSet) -> Iterator[Self]:
        """If fractions are mixed with other values: which values these are, and where."""
        some = [part(outputs, 0, SCREENED) for outputs in training.outputs]
        view = View("whole", (ROOT,))
        if training.width > 1 and any(map(partly_whole, some)) and not hardly_repeat(training.outputs, view.of):
            yield from cls._fit(view, replace(training, inputs=()), Frequencies)

    @classmethod
    def _fit_relations(cls, paths: Sequence[str], training: TrainingSet) -> Iterator[Self]:
        some = [part(outputs, 0, SCREENED) for outputs in training.outputs]
        views = related_outputs(some)
        if paths:
            columns = View("numbers", tuple(paths))
            views += related_numbers([columns.of(outputs).matrix(len(paths)) for outputs in some], paths)
        for view in views:
            single = view.modulus or view.look not in ("numbers", "difference", "sum") or view.paths[1:] == ()
            kinds = (Statistic, Frequencies) if single else (Statistic, BoostedTables)
            yield from cls._fit(view, replace(training, inputs=()), *kinds)

    @classmethod
    def _fit_vectors(cls, training: TrainingSet) -> Iterator[Self]:
        yield from cls._fit_whole(training)
        if len(training.outputs) == 2:
            width = min(training.width, MOST_COORDINATES) if training.vectors else 0
            yield from cls._fit_relations(
                [f"{ROOT}[{j}]" if training.width > 1 else ROOT for j in range(width)], training
            )
        if not training.vectors:
            return
        for view in views_of_vectors(training.outputs, training.width, MOST_COORDINATES):
            kinds: dict[str, type[Distinguisher]] = {"values": Frequencies, "numbers": BoostedTables}
            yield from cls._fit(view, replace(training, inputs=()), kinds.get(view.look, Statistic))
        if 2 < training.width <= POSITIONED and _few_whole_numbers(training):
            found = positions(training.outputs, training.width)
            numbers, pairs = best_numbers(found, training.outputs)
            for view in [found.view([path]) for path in numbers[:1]] + pairs:
                yield from cls._fit(view, replace(training, inputs=()), Statistic)
            if numbers:
                yield from cls._fit(found.view(numbers[:MOST_COORDINATES]), training, BoostedTables)

    @staticmethod
    def _shown(view: View, training: TrainingSet) -> TrainingSet:
        return TrainingSet(tuple(view.of(outputs) for outputs in training.outputs), training.inputs, training.bits)

    @classmethod
    def _fit(cls, view: View, training: TrainingSet, *kinds: type[Distinguisher]) -> Iterator[Self]:
        shown = cls._shown(view, training)
        for kind in kinds:
            for base in kind.fit(shown):
                yield cls(view, base)

    @property
    def candidates(self) -> int | None:
        return self.base.candidates

    @property
    def estimates_odds(self) -> bool:
        return self.base.estimates_odds

    @property
    def by_features(self) -> bool:
        return self.base.by_features

    @property
    def turned(self) -> bool:
        return self.base.turned

    def score(self, outputs: Outputs) -> Scores:
        return self.base.score(self.view.of(outputs))

    def describe(self) -> str:
        return self.base.describe_of(self.view.names())

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """What weighs most among the leaves, by their paths."""
        shown, names = [self.view.of(some) for some in outputs], self.view.names()
        if isinstance(self.base, Frequencies):
            return self.base.heaviest_values(shown, self._value) if len(self.base.logs) == 2 else []
        found = self.base.weightiest(shown)
        if self.view.look == "text":
            return found
        short = [shown_names([name]) for name in names]
        return [_COORDINATE.sub(lambda place: short[int(place[1] or 0)], feature) for feature in found]

    def _value(self, row: Any) -> str:
        """What a category of this view says of the leaves: `output["k"] = 3`."""
        names = self.view.names()
        if isinstance(row, str) and self.view.look == "values":
            return " with ".join(
                f"{name} = {_token_in_words(one)}" for name, one in zip(names, row.split("\0"), strict=False)
            )
        numbers = np.atleast_1d(row).tolist() if not isinstance(row, str) else []
        if self.view.paths[0].startswith(f"{CODES}[") and self.view.look == "numbers" and not self.view.modulus:
            return f"{names[0]} = {''.join(chr(int(code)) for code in numbers)!r}"
        said = ["a fraction" if number == FRACTION else in_digits(number) for number in numbers]
        value = row if isinstance(row, str) else said[0] if len(said) == 1 else f"[{', '.join(said)}]"
        return f"{names[0]} = {value}"

    def to_data(self) -> dict[str, Any]:
        view = {"look": self.view.look, "paths": list(self.view.paths), "offsets": [hex(o) for o in self.view.offsets]}
        modulus = {"modulus": self.view.modulus} if self.view.modulus else {}
        return {"kind": self.kind, **view, **modulus, "base": self.base.to_data()}

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        look, paths = data["look"], tuple(map(str, data["paths"]))
        offsets = tuple(int(offset, 16) for offset in data["offsets"])
        require(look in LOOKS and len(paths) > 0, f"a look that is one of {', '.join(LOOKS)}, and paths")
        require(len(offsets) in (0, len(paths)), "an offset for each path")
        require(look != "difference" or len(paths) == 2, "two paths")
        require(look not in ROWS or FEWEST.get(look, 2) <= len(paths), "as many paths as it compares")
        modulus = float(data.get("modulus", 0.0))
        require(modulus == 0 or 1e-9 <= modulus <= 1e9, "a modulus from 1e-9 to 1e9")
        require(look != "ends" or paths in ((WORDS,), (CHARACTERS,)), "words or characters")
        require(look != "xor" or (len(paths) <= 2 and math.frexp(modulus)[0] in (0, 0.5)), "a bit of one or two")
        base = cls.from_data(data["base"], at_hand)
        require(not isinstance(base, OnLeaves), "a distinguisher of other outputs")
        return cls(View(look, paths, offsets, modulus), base)


def _token_in_words(token: str) -> str:
    """A leaf from its `written` form, for a reader: there, integers are hexadecimal and a missing leaf is empty."""
    return str(int(token, 16)) if _HEXADECIMAL.fullmatch(token) else token or "missing"


def _few_whole_numbers(training: TrainingSet) -> bool:
    """Whether all coordinates are whole numbers with few distinct values, so that each may have its own position."""
    some = np.concatenate([outputs.matrix(training.width)[:200] for outputs in training.outputs])
    return bool(np.isfinite(some).all() and (some == np.rint(some)).all()) and 2 < len(distinct(some)) <= POSITIONED
