"""Which inputs an audit may compare: pairs, a list, a region, the words of a text, or many candidates.

Every pair is covered by the guarantee, as far as that can be seen from the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.audit.inputs.data_sets import why_not_records
from dpassay.audit.inputs.text_pairs import word_pairs
from dpassay.audit.outputs.outputs import as_row
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.pipeline.mechanism import is_pipeline

if TYPE_CHECKING:
    from dpassay.pipeline.pipeline import Pipeline

InputPair = tuple[Any, Any]
MOST_PAIRS = 5000


def input_sets(
    mechanism: Any,
    relation: Neighbours,
    sources: dict[str, Any],
    vocabulary: Sequence[str] = (),
    odd_words: bool = True,
) -> list[tuple[Any, ...]]:
    """All pairs, or larger sets, of inputs that may be audited, from the one source that is given.

    In a text, a word may be replaced by a word of the vocabulary and, unless told otherwise, by odd words.
    """
    given = [name for name, value in sources.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"say in one way which inputs to compare, not in {len(given)}: {' and '.join(given)}")
    pipeline = mechanism if is_pipeline(mechanism) else None
    if not given:
        if pipeline is not None and relation.relation == "add-remove-record" and relation.count > 1:
            raise InputError(
                f"a pipeline is run on one record, which says nothing about {relation}; give pairs of inputs, or audit "
                "the query that sums the records: query(norm, distance)"
            )
        if pipeline is not None:
            from dpassay.audit.inputs.region_pairs import pipeline_pairs

            return [tuple(pair) for pair in pipeline_pairs(pipeline, relation)]
        raise InputError("say which inputs to compare: pairs, inputs, a region, a text, or candidates")
    value = sources[given[0]]
    if given[0] == "region":
        from dpassay.audit.inputs.region_pairs import region_pairs

        found: list[tuple[Any, ...]] = [tuple(pair) for pair in region_pairs(value)]
    elif given[0] == "text":
        found = _text_pairs(word_pairs(value, vocabulary, odd_words, relation.relation == "any"), pipeline)
    else:
        found = _listed(given[0], value)
    if given[0] != "inputs":
        for inputs in found[:64]:
            check_neighbours(inputs, relation, pipeline)
        return found
    neighbouring = [(x, y) for x, y in found if not why_not_neighbours(x, y, relation, pipeline)]
    if not neighbouring:
        x, y = found[0]
        raise InputError(f"no two of the inputs are neighbours: {why_not_neighbours(x, y, relation, pipeline)}")
    for x in neighbouring[0]:
        _check_runs(pipeline, x)
    return list(neighbouring)


def _text_pairs(found: Sequence[InputPair], pipeline: Pipeline | None) -> list[tuple[Any, ...]]:
    """Texts that differ in a word. A pipeline need not know every word: texts that it cannot process are left out."""
    if pipeline is None:
        return list(found)
    _check_runs(pipeline, found[0][0])
    usable = [pair for pair in found if not _why_not_run(pipeline, pair[1])]
    return list(usable or found)


def _listed(name: str, value: Any) -> list[tuple[Any, ...]]:
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise InputError(f"{name} must be a list, got {value!r:.60}")
    if not len(value):
        raise InputError(f"the list of {name} is empty")
    if name == "inputs":
        return [tuple(pair) for pair in pairs_of(list(value))]
    if name == "candidates":
        return [check_inputs(list(value))]
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InputError(f"a pair is two inputs, pairs=[(x, y), …]; got {shown(pair)}")
    return [check_inputs(pair) for pair in value]


def check_neighbours(inputs: tuple[Any, ...], relation: Neighbours, pipeline: Pipeline | None) -> None:
    """Refuse inputs that a pipeline cannot be run on, and inputs of which two are seen not to be neighbours."""
    for x in inputs:
        _check_runs(pipeline, x)
    for x, y in combinations(inputs[:64], 2):
        why = why_not_neighbours(x, y, relation, pipeline)
        if why:
            raise InputError(f"{shown(x)} and {shown(y)} are not neighbours: {why}")


def _check_runs(pipeline: Pipeline | None, x: Any) -> None:
    """Refuse an input on which a pipeline cannot be run at all."""
    why = _why_not_run(pipeline, x)
    if why:
        raise InputError(why)


def _why_not_run(pipeline: Pipeline | None, x: Any) -> str:
    """Why a pipeline cannot be run on an input; empty if it can."""
    if pipeline is None:
        return ""
    from dpassay.pipeline.distributions import as_vector

    try:
        if not isinstance(x, str):
            vector = as_vector(x)
            if len(vector) != pipeline.dim or not np.isfinite(vector).all():
                raise InputError(f"it takes {pipeline.dim} finite numbers, got {shown(x)}")
        pipeline.sample(x, 1, np.random.default_rng(0))
    except Exception as error:  # whatever a stage raises, it cannot use this input
        return f"{pipeline} cannot be run on {shown(x)}: {error}"
    return ""


def same(x: Any, y: Any) -> bool:
    """Whether two inputs are identical.

    >>> same([0, 1], np.array([0.0, 1.0])), same("a", "b"), same(1, [1])
    (True, False, False)
    """
    try:
        return _alike(plain(x), plain(y))
    except InputError:
        return x is y


def _alike(x: Any, y: Any) -> bool:
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(_alike, x, y))
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[key], y[key]) for key in x)
    if isinstance(x, str) or isinstance(y, str) or isinstance(x, list | dict) or isinstance(y, list | dict):
        return type(x) is type(y) and bool(x == y)
    return bool(x == y) or (x != x and y != y)  # NaN is the same as NaN


def why_not_neighbours(x: Any, y: Any, relation: Neighbours, pipeline: Pipeline | None = None) -> str:
    """Why a guarantee does not cover two inputs; empty if it does, or if that cannot be seen from them.

    >>> why_not_neighbours("fly to Rome", "fly from Paris", Neighbours("word"))
    'they differ in 2 words, and neighbours differ in one'
    """
    if relation.relation == "word":
        if not isinstance(x, str) or not isinstance(y, str):
            return "neighbours are two texts, and these are not"
        if relation.kind.startswith("tokens"):
            return ""  # only the mechanism knows what a token is
        first, second = x.split(), y.split()
        most = "one" if relation.count == 1 else f"at most {relation.count}"
        if len(first) != len(second):
            replaced = f"{most} word{'s' * (relation.count > 1)} replaced"
            return f"they have {len(first)} and {len(second)} words, and neighbours differ in {replaced}"
        differing = sum(a != b for a, b in zip(first, second, strict=True))
        if 1 <= differing <= relation.count:
            return ""
        return f"they differ in {differing} words, and neighbours differ in {most}"
    if pipeline is None:
        return why_not_records(x, y, relation) if relation.kind == "element" else ""
    from dpassay.audit.inputs.pipeline_neighbours import why_not_neighbours_of

    return why_not_neighbours_of(pipeline, x, y, relation)


def check_inputs(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Inputs that can be told apart: at least two, no two of them equal."""
    given = tuple(inputs)
    if len(given) < 2:
        raise InputError(f"an audit needs at least two inputs to compare, got {len(given)}")
    for (i, x), (j, y) in combinations(enumerate(given), 2):
        if same(x, y):
            raise InputError(f"inputs {i + 1} and {j + 1} are the same, {shown(x)}: they cannot be distinguished")
    return given


def shown(x: Any, most: int = 60) -> str:
    """An input in a few characters; equal neighbours in a vector are counted, not repeated.

    >>> shown(np.array([0.5] * 30 + [-1.0])), shown("fly to Rome")
    ('[0.5 × 30, -1]', "'fly to Rome'")
    """
    row = as_row(x) if isinstance(x, np.ndarray | list | tuple) else None
    if row is None:
        text = repr(x.item() if isinstance(x, np.generic) else x)
    else:
        runs = [(f"{value:.6g}", len(list(same_values))) for value, same_values in groupby(row.tolist())]
        text = "[" + ", ".join(value if count == 1 else f"{value} × {count}" for value, count in runs) + "]"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def pairs_of(inputs: Sequence[Any]) -> list[InputPair]:
    """All pairs of a list; for a long list only some, both near each other and far apart.

    >>> pairs_of(["a", "b", "c"])
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    distinct = list({_key(x): x for x in inputs}.values())
    if len(distinct) < 2:
        raise InputError(f"the list of inputs needs at least two that differ, got {len(distinct)} of them")
    number = len(distinct)
    if number * (number - 1) // 2 <= MOST_PAIRS:
        return list(combinations(distinct, 2))
    found: dict[tuple[int, int], None] = {}
    step = 1
    while len(found) < MOST_PAIRS:  # irregular steps, so that many distances occur
        for i in np.linspace(0, number - 1, min(number, MOST_PAIRS // 8)).astype(int).tolist():
            j = (i + step) % number
            if i != j:
                found[min(i, j), max(i, j)] = None
        step = 2 * step + 1
        if step > 64 * number:
            break
    return [(distinct[i], distinct[j]) for i, j in list(found)[:MOST_PAIRS]]


def _key(x: Any) -> str:
    """The same text for the same input."""
    try:
        return repr(_numbers_as_floats(plain(x)))
    except InputError:
        return f"object {id(x)}"


def _numbers_as_floats(x: Any) -> Any:
    if isinstance(x, list):
        return [_numbers_as_floats(entry) for entry in x]
    if isinstance(x, dict):
        return {key: _numbers_as_floats(x[key]) for key in sorted(x)}
    whole = isinstance(x, int) and abs(x) < 2**53
    return float(x) if whole else x
