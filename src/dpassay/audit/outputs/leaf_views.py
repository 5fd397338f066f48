"""Some leaves of outputs, presented as outputs themselves: rows of numbers, categories or texts for distinguishers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.apart import Apart, numbers_at, rows_at, texts_at, tokens_at
from dpassay.audit.outputs.doubles import EXACT, exact
from dpassay.audit.outputs.leaf_dict import Leaves, canonical, once, written
from dpassay.audit.outputs.leaf_table import LeafTable
from dpassay.audit.outputs.leaves import MOST_MEMBERS, ROOT, element, leaves_of
from dpassay.audit.outputs.outputs import Array, Outputs, as_row
from dpassay.audit.outputs.relations.row_views import ROWS, said
from dpassay.audit.outputs.texts.ngrams import OF_WORD, code_points, how_often, word_of, words_in
from dpassay.audit.outputs.texts.text_views import (
    CODES,
    HEXADECIMAL,
    IN_TEXT,
    OF_TEXT,
    SORT_NAMES,
    SORTS,
    repeats,
    same_ends,
    text_rows,
)
from dpassay.values import dataclass

Look: TypeAlias = str  # one of `LOOKS`
INDEX, COUNT = f"{ROOT}.index(", f"{ROOT}.count("
LOOKS = ("numbers", "values", "text", "difference", "sum", "xor", "whole", "repeats", "code points", "ends", *ROWS)
PHASES, MOST_STEPS = 1 << 10, 1e9  # of a number between two multiples, and multiples that doubles still distinguish
MOST_NAMED = 3  # numbers of a sum
FEW_PATHS = 8  # are looked at one by one
FRACTION = math.pi  # stands for any number that is not an integer


@dataclass(frozen=True)
class View:
    """What a view shows: the leaves at some paths, and in which form.

    >>> from dpassay.audit.outputs.outputs import read
    >>> View("difference", ('output["b"]', 'output["a"]')).of(read([{"a": 1.0, "b": 3.0}])).numbers.tolist()
    [[2.0]]
    """

    look: Look
    paths: tuple[str, ...]
    offsets: tuple[int, ...] = ()  # subtracted from numbers that are too large for floats; none: 0 for all
    modulus: float = 0.0  # of which residues are shown; 0: the numbers themselves

    def of(self, outputs: Outputs) -> Outputs:
        """The outputs as this view shows them. What is shown of an output depends on that output alone."""
        if self not in outputs.projections:
            outputs.projections[self] = self._made(outputs)
        shown: Outputs = outputs.projections[self]
        return shown

    def _made(self, outputs: Outputs) -> Outputs:
        if self.look == "whole":
            return without_fractions(outputs)
        if self.look == "values":
            return Outputs(
                None, list(map("\0".join, zip(*(_tokens(outputs, path) for path in self.paths), strict=True)))
            )
        if self.look == "text":
            texts = zip(*(_texts(outputs, path) for path in self.paths), strict=True)
            return Outputs(None, ["\n".join([t for t in some if t]) for some in texts])
        if self.look in ("repeats", "code points"):
            shown = (repeats if self.look == "repeats" else code_points)(outputs)[:, None]
        elif self.look == "ends":
            shown = same_ends(outputs, self.paths[0])[:, None]
        else:
            shown = self._matrix(outputs)
        if self.look == "xor":
            return Outputs(exclusive_or(shown, self.modulus)[:, None])
        with np.errstate(invalid="ignore", over="ignore"):
            if self.look == "difference":
                shown = shown[:, :1] - shown[:, 1:]
            elif self.look == "sum":
                shown = shown.sum(axis=1, keepdims=True)
            elif self.look in ROWS:
                shown = ROWS[self.look][0](shown)[:, None]
        return Outputs(np.ascontiguousarray(residues(shown, self.modulus) if self.modulus else shown))

    def _matrix(self, outputs: Outputs) -> Array:
        array = outputs.numbers
        if array is not None and (not outputs.items or self._plain(outputs, array)):
            return columns_of_array(array, self.paths)
        return columns(outputs, self.paths, self.offsets)

    def _plain(self, outputs: Outputs, array: Array) -> bool:
        """Whether its paths are columns of the array: outputs are rows of two numbers or more, not tables."""
        if array.shape[1] < 2 or outputs.apart or any(self.offsets) or not all(map(_is_coordinate, self.paths)):
            return False
        return all(getattr(item, "ndim", 1) == 1 for item in outputs.items)

    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        names = self._names()
        if self.look == "xor":
            bits = f"bit {int(self.modulus).bit_length() - 1}" if self.modulus else "the parity of all bits"
            return (f"{bits} of {names[0]}",)
        if not self.modulus:
            return names
        shown = [f"({name})" if " " in name else name for name in names]
        if self.modulus >= 2:
            return tuple(f"{name} % {self.modulus:g}" for name in shown)
        return tuple(f"the distance of {name} from a multiple of {self.modulus:g}" for name in shown)

    def _names(self) -> tuple[str, ...]:
        if self.look == "whole":
            return (f"the {ROOT} without its fractions",)
        if self.look == "repeats":
            return ("the number of words or entries that repeat another",)
        if self.look == "code points":
            return ("the sum of the characters' codes",)
        if self.look == "ends":
            return (f"whether the first and the last of its {self.paths[0]} are equal",)
        paths = tuple(map(in_words, self.paths))
        if self.look in ROWS:
            return (said(self.look, paths, _together),)
        if self.look == "sum" and len(paths) > MOST_NAMED:
            return (f"the sum of {', '.join(paths[:MOST_NAMED])} and {len(paths) - MOST_NAMED} more",)
        if self.look in _SIGNS:
            return (f" {_SIGNS[self.look]} ".join(paths),)
        offsets = self.offsets or (0,) * len(paths)
        return tuple(f"{path} - {_shown(o)}" if o else path for path, o in zip(paths, offsets, strict=True))


def residues(numbers: Array, modulus: float) -> Array:
    """Residues of integers; for a modulus below 2, how far each number is from the nearest multiple.

    The distance is rounded to a thousandth of the modulus, far coarser than rounding errors. NaN for other numbers, and
    for those so large that doubles do not resolve the modulus.

    >>> residues(np.array([5.0, -1.0, 0.5]), 3.0).tolist(), residues(np.array([2.25, 7.0]), 1.0).tolist()
    ([2.0, 2.0, nan], [0.25, 0.0])
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if modulus >= 2:
            return np.where(numbers == np.rint(numbers), np.mod(numbers, modulus), np.nan)
        steps = numbers / modulus
        phases = np.rint((steps - np.rint(steps)) * PHASES)
        phases = np.where(phases == -PHASES // 2, PHASES // 2, phases) / PHASES * modulus
        return np.where(np.abs(steps) <= MOST_STEPS, phases + 0.0, np.nan)


_SIGNS = {"difference": "-", "sum": "+", "xor": "^"}


def in_words(path: str) -> str:
    """A path for a reader: parts of texts are counted from 1."""
    if path.startswith(OF_WORD):
        return f"the count of {word_of(path)!r}"
    base, place = base_of(path)
    if base == SORTS:
        return SORT_NAMES[place]
    kind = {IN_TEXT: "number", HEXADECIMAL: "hexadecimal number", CODES: "character"}.get(base)
    return f"{kind} {place + 1} of the text" if kind else path


def _together(names: Sequence[str]) -> str:
    """Several numbers as one: the row that has them all, or some of their names."""
    places = [base_of(name) for name in names]
    if places and places[0][0] and {base for base, _ in places} == {places[0][0]} and len(names) > MOST_NAMED:
        return places[0][0]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def exclusive_or(integers: Array, bit: float) -> Array:
    """This bit of the exclusive or of the integers in each row, or the parity of all bits for 0; NaN for other rows.

    >>> exclusive_or(np.array([[5.0, 1.0], [7.0, 7.0], [0.5, 1.0]]), 4.0).tolist()
    [1.0, 0.0, nan]
    """
    with np.errstate(invalid="ignore"):
        whole = ((integers == np.rint(integers)) & (np.abs(integers) < EXACT)).all(axis=1)
    folded = np.bitwise_xor.reduce(np.where(whole[:, None], integers, 0.0).astype(np.int64), axis=1)
    if bit:
        folded >>= int(bit).bit_length() - 1
    else:
        folded &= EXACT - 1
        for shift in (32, 16, 8, 4, 2, 1):
            folded ^= folded >> shift
    return np.where(whole, folded & 1, np.nan)


def _is_coordinate(path: str) -> bool:
    return path == ROOT or base_of(path)[0] == ROOT


def without_fractions(outputs: Outputs) -> Outputs:
    """What remains of outputs if all non-integers are treated as equal: which values are where.

    >>> from dpassay.audit.outputs.outputs import read
    >>> len(set(without_fractions(read(np.array([[0.0, 0.3], [0.0, 0.9], [1.0, 0.9]]))).keys().tolist()))
    2
    """
    if outputs.numbers is not None:
        return Outputs(_whole(outputs.numbers))
    apart = outputs.apart or [None] * len(outputs.items)
    return Outputs(None, [_one_whole(item, known) for item, known in zip(outputs.items, apart, strict=True)])


def _one_whole(item: Any, known: Apart | None) -> Any:
    vector = as_row(item)
    if vector is not None:
        return _whole(vector)
    if known is None:
        return _whole_text(leaves_of(item))
    return once(known, _whole_text, known.leaves) if known.form is None else once(known, _whole_of_form, known)


def _whole_of_form(known: Apart) -> str:
    """The same, kept for all outputs of one form that differ by fractions alone."""
    values, form = known.values.copy(), known.form
    assert form is not None
    for i in form.floats:
        value = values[i]
        if value == 0 or value - value != 0:  # 0.0 and -0.0 are equal, and NaN is not equal to itself
            return _whole_text(known.leaves)
        if value != int(value):
            values[i] = FRACTION
    key = form, *values
    text = _WHOLE.get(key)
    if text is None:
        if len(_WHOLE) >= MOST_WHOLE:
            _WHOLE.clear()
        text = _WHOLE[key] = _whole_text(known.leaves)
    return text


_WHOLE: dict[tuple[Any, ...], str] = {}
MOST_WHOLE = 1 << 14


def _whole_text(leaves: Leaves) -> str:
    return canonical({path: _whole(leaf) for path, leaf in leaves.items()})


def partly_whole(outputs: Outputs) -> bool:
    """Whether there are fractions, and something else.

    >>> from dpassay.audit.outputs.outputs import read
    >>> [partly_whole(read(np.array([row]))) for row in ([0.0, 0.5], [0.5, 0.5], [0.0, 1.0])]
    [True, False, False]
    """
    if outputs.numbers is None:
        return outputs.fractional
    fractions = _fractions(outputs.numbers)
    return bool(fractions.any() and not fractions.all())


def _fractions(numbers: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(numbers) & (numbers != np.rint(numbers)))


def _whole(leaf: Any) -> Any:
    if type(leaf) is str or type(leaf) is int:  # most of them
        return leaf
    if isinstance(leaf, np.ndarray):
        return np.where(_fractions(leaf), FRACTION, leaf)
    return FRACTION if isinstance(leaf, float | Fraction) and leaf - leaf == 0 and leaf != int(leaf) else leaf


def _shown(offset: int) -> str:
    return str(offset) if abs(offset) < 10**40 else f"{hex(offset)[:20]}…"


def columns(outputs: Outputs, paths: Sequence[str], offsets: Sequence[int] = ()) -> Array:
    """The numbers at some paths, one column per path; NaN if there is none."""
    rows = np.full((len(outputs), len(paths)), np.nan)
    places = [(*base_of(path), j, path, offsets[j] if offsets else 0) for j, path in enumerate(paths)]
    single = [place for place in places if not place[0] and not place[3].startswith(OF_WORD)]
    if len(single) > FEW_PATHS and not offsets and outputs.apart and (table := _table(outputs)) is not None:
        rows[:, [place[2] for place in single]] = table.columns([place[3] for place in single])
        places = [place for place in places if place[0] or place[3].startswith(OF_WORD)]
    for _, group in groupby(places, key=lambda place: (place[0], "" if place[0] else place[3])):
        several = list(group)
        if not several[0][0] or (len(several) == 1 and several[0][0] not in OF_TEXT):
            for _, _, j, path, offset in several:
                rows[:, j] = _column(outputs, path, offset)
            continue
        base, entries = several[0][0], np.array([place[1] for place in several])
        into = np.array([place[2] for place in several])
        found = _rows_at(outputs, base)
        if isinstance(found, np.ndarray):
            there = entries < found.shape[1]
            rows[:, into[there]] = found[:, entries[there]]
            continue
        for i, row in enumerate(found):
            if isinstance(row, np.ndarray):
                there = entries < len(row)
                rows[i, into[there]] = row[entries[there]]
                continue
            for _, _, j, path, offset in several:
                rows[i, j] = _number_at(outputs.leaves[i], path, offset)
    return rows


def _table(outputs: Outputs) -> LeafTable | None:
    if "table" not in outputs.projections:
        outputs.projections["table"] = LeafTable.of(outputs.apart)
    made: LeafTable | None = outputs.projections["table"]
    return made


def _rows_at(outputs: Outputs, base: str) -> Array | Sequence[Any]:
    """The rows of numbers at a path: one array if all have the same length."""
    if base in OF_TEXT:
        return text_rows(outputs, base)
    made = outputs.projections.get(base)
    if made is None:
        made = rows_at(outputs.apart, base) if outputs.apart else None
    if made is None:
        made = [found.get(base) for found in outputs.leaves]
        if {*map(type, made)} == {np.ndarray} and len({row.shape for row in made}) == 1:
            made = np.stack(made)
    outputs.projections[base] = made
    found: Array | Sequence[Any] = made
    return found


def _column(outputs: Outputs, path: str, offset: int) -> Any:
    """The numbers at one path; None and NaN mean that there is none."""
    made = outputs.projections.get((path, offset))
    if made is None:
        made = outputs.projections[path, offset] = np.array(_numbers(outputs, path, offset), dtype=float)
    return made


def _numbers(outputs: Outputs, path: str, offset: int) -> Sequence[float | None]:
    if path.startswith(OF_WORD):
        return how_often(words_in(outputs), [word_of(path)])[:, 0]  # type: ignore[return-value]
    column = numbers_at(outputs.apart, path) if outputs.apart and not offset else None
    if column is not None:
        return column
    leaves = outputs.leaves
    base, place = base_of(path)
    rows = [found.get(base) for found in leaves] if base else []
    if any(isinstance(row, np.ndarray) for row in rows):
        pairs = zip(rows, leaves, strict=True)
        return [
            _number_at(found, path, offset)
            if not isinstance(row, np.ndarray)
            else float(row[place])
            if place < len(row)
            else None
            for row, found in pairs
        ]
    column = [found.get(path) for found in leaves]
    kinds = set(map(type, column))
    if not offset and kinds <= _AS_THEY_ARE and (int not in kinds or all(map(_small, column))):
        return column
    return [_number_at(found, path, offset) for found in leaves]


_AS_THEY_ARE = {float, int, bool, type(None)}


def _small(leaf: Any) -> bool:
    return type(leaf) is not int or -EXACT <= leaf <= EXACT


def _number_at(found: Leaves, path: str, offset: int) -> float:
    leaf = found.get(path)
    return leaf if type(leaf) is float and not offset else math.nan if leaf is None else number(leaf, offset)


def columns_of_array(numbers: Array, paths: Sequence[str]) -> Array:
    """The same for a batch that is one array: what `columns` gives for the leaves of its rows."""
    rows, width = np.full((len(numbers), len(paths)), np.nan), numbers.shape[1]
    for j, path in enumerate(paths):
        base, place = base_of(path)
        if width == 1:
            base, place = path, 0
        if path.startswith((INDEX, COUNT)):
            rows[:, j] = _places(numbers, path)
        elif base == ROOT and place < width:
            rows[:, j] = numbers[:, place]
    return rows


def _places(numbers: Array, path: str) -> Array:
    """Where each row first has an integer, or how often if more than once; rows with fractions have no positions."""
    sought, width = path[path.index("(") + 1 : -1], numbers.shape[1]
    none = np.full(len(numbers), np.nan)
    if not 1 < width <= MOST_MEMBERS or not sought.lstrip("-").isdigit() or not exact(int(sought)):
        return none
    there = numbers == float(int(sought))
    there &= (np.isfinite(numbers) & (numbers == np.rint(numbers))).all(axis=1)[:, None]
    often = there.sum(axis=1)
    if path.startswith(INDEX):
        return np.where(often > 0, there.argmax(axis=1), none)
    return np.where(often > 1, often, none)


def base_of(path: str) -> tuple[str, int]:
    """The row that a path points into, and the position; an empty name if it points into none.

    >>> base_of("output[3]"), base_of("output.a")
    (('output', 3), ('', 0))
    """
    base, _, place = path[:-1].rpartition("[")
    return (base, int(place)) if path.endswith("]") and place.isdigit() else ("", 0)


def number(leaf: Any, offset: int = 0) -> float:
    """A leaf as a number; NaN if it is not one. From a number too large for a float, the offset is subtracted first."""
    if type(leaf) is str:
        return math.nan
    if type(leaf) is not float and not isinstance(leaf, float | int | Fraction):
        return math.nan
    if not offset or (isinstance(leaf, float) and not math.isfinite(leaf)):
        try:
            return float(leaf)
        except OverflowError:
            return math.inf if leaf > 0 else -math.inf
    try:
        return float(Fraction(leaf) - offset)
    except OverflowError:
        return math.inf if leaf > offset else -math.inf


def _tokens(outputs: Outputs, path: str) -> list[str]:
    shown = tokens_at(outputs.apart, path) if outputs.apart else None
    return [_token(element(found, path)) for found in outputs.leaves] if shown is None else shown


def _texts(outputs: Outputs, path: str) -> list[str | None]:
    shown = texts_at(outputs.apart, path) if outputs.apart else None
    return [_text(found.get(path)) for found in outputs.leaves] if shown is None else shown


def _token(leaf: Any) -> str:
    return "" if leaf is ... else written(leaf)


def _text(leaf: Any) -> str | None:
    return leaf if isinstance(leaf, str) else leaf.decode("latin-1") if isinstance(leaf, bytes) else None
