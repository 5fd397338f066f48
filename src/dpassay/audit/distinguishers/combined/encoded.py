"""What an output reveals under the mechanism's own encoder, through a method `encode(x, output)`.

A local hashing mechanism draws a public hash, encodes its input with it, randomizes the code and outputs both. Such an
output reveals nothing by itself: the only information is whether its code is that of one input or the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet, require, shown_names
from dpassay.audit.distinguishers.boosted_tables import BoostedTables
from dpassay.audit.distinguishers.logistic_regression import LogisticRegression
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.leaf_dict import Leaves
from dpassay.audit.outputs.leaf_views import number
from dpassay.audit.outputs.leaves import ROOT, element, is_value, leaves_of
from dpassay.audit.outputs.outputs import Array, Outputs, part
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass

LOOKED_AT = 512  # outputs of each input used to choose which leaves are compared
MOST_COMPARED, BEST = 64, 8  # leaves compared with a code, and how many of them are kept
MOST_ENTRIES = 8  # of a row of numbers, compared one by one
MEASURES = ("the agreement", "the product", "the nearness")  # of a leaf and a code


@dataclass(frozen=True, eq=False)
class LeafEncoder:
    """How inputs are encoded, given an output of the mechanism."""

    encode: Callable[[Any, Any], Any]  # of an output and an input
    inputs: tuple[Any, ...]

    def codes(self, outputs: Outputs) -> list[list[Leaves]]:
        """The leaves of each input's code, for each output; none if the run failed."""
        if self not in outputs.projections:
            outputs.projections[self] = [self._codes(output) for output in outputs.rows()]
        found: list[list[Leaves]] = outputs.projections[self]
        return found

    def _codes(self, output: Any) -> list[Leaves]:
        if isinstance(output, Failure):
            return [Leaves() for _ in self.inputs]
        return [leaves_of(self.encode(output, x)) for x in self.inputs]


@dataclass(frozen=True)
class Encoded(Distinguisher):
    """How well leaves of the output agree with the code of the second input, compared with that of the first.

    By itself it counts equal entries. A `base` uses two more measures: products, and how close numbers are.
    """

    encoder: LeafEncoder
    compared: tuple[tuple[str, str], ...] = ()  # paths to a leaf of the output and to one of the code
    base: Distinguisher | None = None

    kind = "Encoded"
    order = 15

    @property
    def candidates(self) -> int:
        return len(self.encoder.inputs)

    @property
    def asks(self) -> bool:
        return True

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """With the mechanism's encoder: the single leaves that agree best, then several together."""
        for offered in training.offered:
            if not isinstance(offered, cls):
                continue
            some = [part(outputs, 0, LOOKED_AT) for outputs in training.outputs]
            best = cls._agreeing(offered.encoder, some)
            for pair in best[:2]:
                yield cls(offered.encoder, (pair,))
            if len(some) == 2 and best:
                several = cls(offered.encoder, tuple(best))
                shown = TrainingSet(tuple(Outputs(several.matrix(outputs)) for outputs in training.outputs), ())
                for kind in (Statistic, LogisticRegression, BoostedTables):
                    for base in kind.fit(shown):
                        yield cls(offered.encoder, several.compared, base)

    @classmethod
    def _agreeing(cls, encoder: LeafEncoder, sides: Sequence[Outputs]) -> list[tuple[str, str]]:
        """The most informative leaves of outputs and codes, best first."""
        found: dict[tuple[str, str], float] = {}
        for outputs in sides:
            for leaves, codes in zip(outputs.leaves, encoder.codes(outputs), strict=True):
                found |= dict.fromkeys(_comparable(leaves, codes[0]), 0.0)
                if len(found) >= MOST_COMPARED:
                    break
        for pair in list(found)[:MOST_COMPARED]:
            for side, outputs in enumerate(sides):
                measures = cls(encoder, (pair,)).measured(outputs)[:, :, 0]
                apart = np.nan_to_num(measures[:, side] - measures.mean(axis=1))
                spread = np.nan_to_num(apart.std(axis=0)) + 1e-9
                found[pair] += float(np.abs(apart.mean(axis=0) / spread).max(initial=0.0)) if len(apart) else 0.0
        return sorted(found, key=lambda pair: -found[pair])[:BEST]

    def measured(self, outputs: Outputs) -> Array:
        """The three measures for each output, input and pair of leaves, with axes in this order."""
        shape = (len(outputs), len(self.encoder.inputs), len(self.compared), len(MEASURES))
        rows = [
            [[_measures(element(leaves, path), code.get(of)) for path, of in self.compared] for code in codes]
            for leaves, codes in zip(outputs.leaves, self.encoder.codes(outputs), strict=True)
        ]
        return np.array(rows, dtype=float).reshape(shape)

    def matrix(self, outputs: Outputs) -> Array:
        """For two inputs: by how much each measure is larger for the second, one row per output."""
        measured = self.measured(outputs)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.ascontiguousarray((measured[:, 1] - measured[:, 0]).reshape(len(outputs), -1))

    def score(self, outputs: Outputs) -> Scores:
        if self.base is not None:
            return self.base.score(Outputs(self.matrix(outputs)))
        agreement = self.measured(outputs)[..., 0].sum(axis=2)
        return np.asarray(agreement[:, 1] - agreement[:, 0]) if self.candidates == 2 else agreement

    @property
    def estimates_odds(self) -> bool:
        return self.base is not None and self.base.estimates_odds

    @property
    def turned(self) -> bool:
        return self.base is not None and self.base.turned

    def describe(self) -> str:
        if self.base is not None:
            return self.base.describe_of(self._names())
        paths = shown_names(list(dict.fromkeys(path for path, _ in self.compared)))
        rest = "" if self.candidates > 2 else " for the second input, minus that for the first"
        return f"the agreement of {paths} with encode(x, output){rest}"

    def _names(self) -> list[str]:
        codes = [(path, "encode(x, output)" + of.removeprefix(ROOT)) for path, of in self.compared]
        return [f"{measure} of {path} with {code}" for path, code in codes for measure in MEASURES]

    def to_data(self) -> dict[str, Any]:
        base = None if self.base is None else self.base.to_data()
        return {"kind": self.kind, "compared": [list(pair) for pair in self.compared], "base": base}

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        encoders = [one.encoder for one in at_hand if isinstance(one, cls)]
        require(len(encoders) > 0, "a mechanism with a method encode(x, output)")
        compared = tuple((str(path), str(of)) for path, of in data["compared"])
        require(len(compared) > 0, "leaves that are compared")
        base = None if data["base"] is None else cls.from_data(data["base"], at_hand)
        require(base is None or not isinstance(base, Encoded), "a distinguisher of other outputs")
        return cls(encoders[0], compared, base)


def _comparable(leaves: Leaves, code: Leaves) -> list[tuple[str, str]]:
    """Leaves of an output and of a code that may correspond: all of them for a one-leaf code, else equal paths."""
    parts = [path for path in code if is_value(path)]
    if parts != [ROOT]:
        return [(path, path) for path in parts if path in leaves]
    found = []
    for path, leaf in leaves.items():
        if isinstance(leaf, np.ndarray) and not isinstance(code[ROOT], np.ndarray):
            found += [f"{path}[{j}]" for j in range(min(len(leaf), MOST_ENTRIES))]
        found += [path] if is_value(path) or isinstance(leaf, np.ndarray) else []
    return [(path, ROOT) for path in found]


def _measures(leaf: Any, code: Any) -> tuple[float, float, float]:
    """The number of equal entries, the product, and the negative distance. NaN if they are not numbers."""
    if isinstance(leaf, np.ndarray):
        if not isinstance(code, np.ndarray):  # one of many
            return float((leaf == number(code)).any()), np.nan, np.nan
        if len(leaf) != len(code):
            return 0.0, np.nan, np.nan
        with np.errstate(invalid="ignore", over="ignore"):
            return float((leaf == code).sum()), float((leaf * code).sum()), -float(np.abs(leaf - code).sum())
    if isinstance(code, np.ndarray) or leaf in (None, ...) or code is None:
        return 0.0, np.nan, np.nan
    one, other = number(leaf), number(code)
    return float(leaf == code), one * other, -abs(one - other)
