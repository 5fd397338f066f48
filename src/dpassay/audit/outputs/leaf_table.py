"""The numbers among the leaves of many outputs as arrays, from which the columns of many paths are taken at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.apart import MOST_FORMS, Apart, Form
from dpassay.audit.outputs.doubles import EXACT
from dpassay.audit.outputs.leaf_dict import once
from dpassay.values import dataclass

Array: TypeAlias = NDArray[np.float64]
MOST_PATHS = 1 << 18  # paths that are numbered; outputs with others are examined path by path
_NUMBER_OF: dict[str, int] = {}  # of each path that was seen


@dataclass(frozen=True)
class LeafTable:
    """For every leaf that is a number: its output, its path, and the number."""

    outputs: NDArray[np.int64]
    paths: NDArray[np.int64]
    numbers: Array
    size: int

    def columns(self, paths: Sequence[str]) -> Array:
        """One column per path; NaN where there is no number.

        >>> LeafTable.of([Apart({"a": 1.5}), Apart({"b": True})]).columns(['output["b"]', 'output["a"]']).tolist()
        [[nan, 1.5], [1.0, nan]]
        """
        column = np.full(len(_NUMBER_OF), -1, dtype=np.int64)
        for j, path in enumerate(paths):
            number = _NUMBER_OF.get(path)
            if number is not None:
                column[number] = j
        where = column[self.paths]
        there = where >= 0
        found = np.full((self.size, len(paths)), np.nan)
        found[self.outputs[there], where[there]] = self.numbers[there]
        return found

    @classmethod
    def of(cls, outputs: Sequence[Apart | None]) -> LeafTable | None:
        """None if some output is plain, has too many paths, or numbers that floats may not hold."""
        parts = []
        for one in outputs:
            known = None if one is None else once(one, _numbered, one)
            if known is None:
                return None
            parts.append(known)
        sizes = [len(numbers) for _, numbers in parts]
        places = np.repeat(np.arange(len(parts)), sizes)
        paths, numbers = (np.concatenate(some) for some in zip(*parts, strict=True))
        return cls(places, paths, numbers, len(parts))


def _numbered(one: Apart) -> tuple[NDArray[np.int64], Array] | None:
    form = one.form
    if form is not None and form.fixed and one.regular:
        places = _places_of(form)
        return None if places is None else (places, form.numbers(one.values))
    paths: list[int] = []
    numbers: list[Any] = []
    for path, leaf in one.leaves.items():
        kind = type(leaf)
        if kind is str or kind is np.ndarray or leaf is None or kind is bytes:
            continue
        if kind is not float and kind is not bool and (kind is not int or not -EXACT <= leaf <= EXACT):
            return None
        number = _NUMBER_OF.get(path)
        if number is None:
            if len(_NUMBER_OF) >= MOST_PATHS:
                return None
            number = _NUMBER_OF.setdefault(path, len(_NUMBER_OF))
        paths.append(number)
        numbers.append(leaf)
    return np.array(paths, dtype=np.int64), np.array(numbers, dtype=float)


@lru_cache(maxsize=MOST_FORMS)
def _places_of(form: Form) -> NDArray[np.int64] | None:
    """The numbers of the paths to an output's numbers, the same for all outputs of one form."""
    for path in form.numbered:
        if path not in _NUMBER_OF and len(_NUMBER_OF) < MOST_PATHS:
            _NUMBER_OF[path] = len(_NUMBER_OF)
    found = [_NUMBER_OF.get(path) for path in form.numbered]
    return None if None in found else np.array(found, dtype=np.int64)
