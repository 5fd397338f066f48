"""The inputs that an audit may compare: pairs, a list, a region, the words of a text, or many candidates.

Every pair is covered by the guarantee, as far as that can be seen from the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.audit.inputs.checks import (
    MOST_PAIRS,
    InputPair,
    check_inputs,
    check_neighbours,
    check_pair,
    check_runs,
    shown,
    why_not_neighbours,
    why_not_run,
)
from dpassay.audit.inputs.text_pairs import word_pairs
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.pipeline.mechanism import is_pipeline

TRIED = 64  # sets of inputs on which a pipeline is run before the audit begins

if TYPE_CHECKING:
    from dpassay.pipeline.pipeline import Pipeline


def input_sets(
    mechanism: Any,
    relation: Neighbours,
    sources: dict[str, Any],
    vocabulary: Sequence[str] = (),
    odd_words: bool = True,
) -> list[tuple[Any, ...]]:
    """All pairs, or larger sets, of inputs that may be audited, from the single source given.

    In a text, a word may be replaced by a word of the vocabulary and, unless told otherwise, by odd words.
    """
    given = [name for name, value in sources.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"specify the inputs to compare in one way, not in {len(given)}: {' and '.join(given)}")
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
        raise InputError("specify the inputs to compare: pairs=[(X, Y)], or inputs, a region, a text, or candidates")
    value = sources[given[0]]
    if given[0] == "region":
        from dpassay.audit.inputs.region_pairs import region_pairs

        found: list[tuple[Any, ...]] = [tuple(pair) for pair in region_pairs(value)]
    elif given[0] == "text":
        found = _text_pairs(word_pairs(value, vocabulary, odd_words, relation.relation == "any"), pipeline)
    else:
        found = _listed(given[0], value)
    if given[0] != "inputs":
        for inputs in found[:TRIED]:
            check_neighbours(inputs, relation, pipeline)
        for inputs in found[TRIED:]:  # all are tried as neighbors, but not all are run
            check_pair(inputs[0], inputs[1], relation, pipeline)
        return found
    neighbouring = [(x, y) for x, y in found if not why_not_neighbours(x, y, relation, pipeline)]
    if not neighbouring:
        x, y = found[0]
        raise InputError(f"no two of the inputs are neighbors: {why_not_neighbours(x, y, relation, pipeline)}")
    for x in neighbouring[0]:
        check_runs(pipeline, x)
    return list(neighbouring)


def _text_pairs(found: Sequence[InputPair], pipeline: Pipeline | None) -> list[tuple[Any, ...]]:
    """Texts that differ in a word. A pipeline need not know every word: texts that it cannot process are left out."""
    if pipeline is None:
        return list(found)
    check_runs(pipeline, found[0][0])
    usable = [pair for pair in found if not why_not_run(pipeline, pair[1])]
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
