"""A few outputs of each input for people to read: short, safe to print, and showing the part that differs."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay.audit.outputs.outputs import Array, Outputs, part
from dpassay.audit.testing.decision_rule import DecisionRule, rounded
from dpassay.errors import escape_control_chars
from dpassay.evidence.sampled import Example
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass

SHOWN = 3  # outputs of each input
TYPICAL = 2  # of these, outputs for which the rule names this input, if there are any
LOOKED_AT = 64  # outputs of each input from which they are chosen
LONGEST = 80  # characters of an output
FEW_NUMBERS = 4  # of a vector that is shown in full
MOST_CHARACTERS = 20_000  # of an output, examined

_TOKEN = re.compile(r"\w+|[^\w\s]")


def examples(outputs: Sequence[Outputs], rule: DecisionRule) -> tuple[tuple[Example, ...], BaseException | None]:
    """A few of the outputs of each of two inputs, and the exception if one is a failure."""
    sides = [part(one, 0, LOOKED_AT) for one in outputs]
    shown = _Shortener.of(sides)
    found, failure = [], None
    for side, some in enumerate(sides):
        named, rows = _named(rule, some), some.rows()
        for i in _chosen(named, [shown.words(row, side) for row in rows], side):
            found.append(Example(side, shown.words(rows[i], side), named[i]))
            failure = rows[i].error if failure is None and isinstance(rows[i], Failure) else failure
    return tuple(found), failure


def _named(rule: DecisionRule, outputs: Outputs) -> list[int | None]:
    """Which of two inputs the rule names for each output; None if it abstains."""
    scores = rounded(rule.distinguisher.score(outputs), rule.resolution).tolist()
    return [0 if score <= rule.low else 1 if score >= rule.high else None for score in scores]


def _chosen(named: Sequence[int | None], words: Sequence[str], side: int) -> list[int]:
    """Distinct outputs in the order in which they came: some for which this input is named, and others."""
    first = {text: i for i, text in reversed(list(enumerate(words)))}
    places = sorted(first.values())
    typical = [i for i in places if named[i] == side]
    others = [i for i in places if named[i] != side]
    chosen = typical[: TYPICAL if others else SHOWN]
    return sorted(chosen + others[: SHOWN - len(chosen)])


@dataclass(frozen=True)
class _Shortener:
    """Which coordinates, or which parts of a text, come from one input more often than from the other."""

    coordinates: tuple[int, ...]  # for long vectors, the most informative
    shares: tuple[Counter[str], Counter[str]]  # how many outputs of each input contain a part

    @classmethod
    def of(cls, sides: Sequence[Outputs]) -> "_Shortener":
        first, second = sides
        if first.numbers is not None and second.numbers is not None and first.width == second.width:
            return cls(_most_telling(first.numbers, second.numbers), (Counter(), Counter()))
        counts = [Counter(token for row in side.rows() for token in set(_parts(_text(row)))) for side in sides]
        for count, side in zip(counts, sides, strict=True):
            for token in count:
                count[token] = round(1e6 * count[token] / len(side))
        return cls((), (counts[0], counts[1]))

    def words(self, row: Any, side: int) -> str:
        vector = isinstance(row, np.ndarray) and not isinstance(row, np.ma.MaskedArray) and row.ndim == 1
        if vector and len(row) > FEW_NUMBERS and len(self.coordinates):
            some = ", ".join(f"output[{j}] = {row[j]:.6g}" for j in self.coordinates)
            return f"{some}, of {len(row)} numbers" if len(row) > len(self.coordinates) else some
        text = _text(row)
        return text if len(text) <= LONGEST else self._cut(text, side)

    def _cut(self, text: str, side: int) -> str:
        """A long text around the part most typical of its input; its beginning and its end if there is none."""
        own, other = self.shares[side], self.shares[1 - side]
        found = max(_TOKEN.finditer(text), key=lambda m: own[m.group()] - other[m.group()], default=None)
        length = f" ({len(text):,} characters)"
        if found is None or own[found.group()] <= other[found.group()]:
            return f"{text[: LONGEST // 2]}…{text[-LONGEST // 3 :]}{length}"
        start = max(0, min(found.start() - LONGEST // 4, len(text) - LONGEST))
        end = start + LONGEST
        return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}{length}"


def _parts(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _text(row: Any) -> str:
    """An output in one line."""
    if isinstance(row, Failure):
        words = f"fails: {row.kind}: {row.said}".removesuffix(": ")
    elif isinstance(row, np.ndarray):
        words = "[" + ", ".join(repr(value) for value in row.ravel().tolist()) + "]"
    else:
        try:
            words = repr(_plain(row))
        except Exception:  # its repr fails
            words = f"a {type(row).__name__}"
    return escape_control_chars(words[:MOST_CHARACTERS].replace("\n", " "))


def _plain(value: Any) -> Any:
    """The same with Python's numbers in place of numpy's, which are written with their types."""
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {key: _plain(entry) for key, entry in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _most_telling(first: Array, second: Array) -> tuple[int, ...]:
    """The coordinates whose means, spreads or missing values differ most between two inputs."""
    with np.errstate(all="ignore"):
        missing = np.abs(np.isnan(second).mean(axis=0) - np.isnan(first).mean(axis=0))
        one, other = np.nan_to_num(first), np.nan_to_num(second)
        spread = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 2)
        apart = np.abs(other.mean(axis=0) - one.mean(axis=0)) / np.maximum(spread, 1e-300)
        wider = np.abs(np.log((other.std(axis=0) + 1e-12) / (one.std(axis=0) + 1e-12)))
    telling = np.nan_to_num(missing + apart + wider, nan=0.0, posinf=1e300)
    return tuple(sorted(int(j) for j in np.argsort(-telling, kind="stable")[:SHOWN]))


def shown_apart(x: str, y: str, most: int) -> tuple[str, str]:
    """Two texts, each cut to at most `most` characters around the first place where they differ.

    >>> shown_apart("a" * 90 + "b", "a" * 90 + "c", 12)
    ('…aaaaaab', '…aaaaaac')
    """
    if max(len(x), len(y)) <= most:
        return x, y
    same = next((i for i, (a, b) in enumerate(zip(x, y, strict=False)) if a != b), min(len(x), len(y)))
    start = max(0, same - most // 2)
    cut = [f"{'…' if start else ''}{text[start : start + most]}" for text in (x, y)]
    ends = ["…" if len(text) > start + most else "" for text in (x, y)]
    return cut[0] + ends[0], cut[1] + ends[1]
