"""Data sets that differ in one record: their records' vectors are summed, and the first noise is added to the sum.

This is how `replace-record` and `add-remove-record` are interpreted for a pipeline whose first stage does not itself
define how neighbors differ, as `query` and `rows` do. docs/concepts.md has a table of what each relation means.
"""

from dataclasses import replace

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import ZERO, middle
from dpassay.errors import InputError
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import (
    Array,
    Categories,
    OneHot,
    Pair,
    Sphere,
    Squashed,
)
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.query import Counts
from dpassay.pipeline.stages.sampling import Sampling

INF = float("inf")


def check_neighbours(pipeline: Pipeline, neighbours: Neighbours) -> None:
    """Refuse a relation that has no defined meaning for the pipeline."""
    first = pipeline.stages[0]
    if neighbours.kind == "element" and not first.one_per_person:
        raise InputError(
            "neighbors that differ in one element need a pipeline that begins with rows, which states that elements "
            "change one at a time: 'rows | clamp(0, 1) | laplace(1/eps)'. The elements of an encoded text do not: one "
            f"word can change them all. For {first.name}, use neighbours='word' or neighbours='any'"
        )
    if first.neighbours and neighbours.relation not in first.neighbours:
        raise InputError(
            f"a pipeline that begins with {first.name} is about the neighbors {', '.join(first.neighbours)}, "
            f"got {neighbours.kind}; leave neighbours out, or replace {first.name} by a stage that bounds any two "
            "inputs"
        )
    if isinstance(first, Sampling) and neighbours.count > 1:
        raise InputError(
            f"{first.name} draws each record independently, so {neighbours.count} of them are not one larger "
            f"record; check one record, and apply group privacy to the result"
        )
    if isinstance(first, Counts) and neighbours.count > 1:
        _check_group_of_counts(first, neighbours.count)
    if sums_records(pipeline, neighbours):
        _check_sum(pipeline, neighbours.kind)


def _check_group_of_counts(first: Counts, count: int) -> None:
    """Refuse a distance of which n records, each moving integers, need not reach n times: docs/concepts.md."""
    whole = first.distance.a == first.distance.b == round(middle(first.distance))
    if first.norm == "l2" or not whole:
        raise InputError(
            f"{first} says how far one record moves answers that are whole numbers, and {count} records need not move "
            f"them {count} times as far; give a whole distance in l1 or linf, or state how far all {count} move "
            "them and leave neighbours out"
        )


def sums_records(pipeline: Pipeline, neighbours: Neighbours) -> bool:
    """Whether neighbors are data sets whose records' vectors are summed before the first noise."""
    return neighbours.relation in ("replace-record", "add-remove-record") and not pipeline.stages[0].neighbours


def adds_a_record(pipeline: Pipeline, position: int, neighbours: Neighbours) -> bool:
    """Whether neighbors give a stage two sums, one with an extra vector; after a noise they no longer do."""
    before_noise = all(position <= i for i in pipeline.noise_positions)
    return before_noise and neighbours.relation == "add-remove-record" and sums_records(pipeline, neighbours)


def _check_sum(pipeline: Pipeline, relation: str) -> None:
    """Refuse names, which have no sum, and a first noise that is not added to one."""
    position = (pipeline.noise_positions or [len(pipeline.stages)])[0]
    stage = pipeline.stages[position] if pipeline.noise_positions else None
    summed = f"{relation} means that the records' vectors are summed and the noise is added to the sum"
    if stage is not None and stage.chooses:
        raise InputError(
            f"{summed}; {stage.name} adds no noise, and what it chooses depends on all records' scores. State "
            f"how far one record moves a score, for example query(linf, 1) | {stage}"
        )
    if stage is not None and not stage.adds_to_vectors:
        raise InputError(
            f"{summed}; {stage.name} randomizes each record on its own, which is local DP: state neighbours='any', or "
            "leave neighbours out"
        )
    if isinstance(pipeline.output_regions()[position].region, Categories):
        raise InputError(f"{summed}; category names cannot be summed. Put onehot(k) before the noise to count them")


def with_record_added(outputs: OutputRegion, count: int = 1) -> OutputRegion:
    """How far a sum moves when up to `count` vectors of the region are added or removed: docs/proofs/record-sums.md.

    >>> with_record_added(OutputRegion(OneHot(4))).region.kind
    'rows'
    """
    inner = outputs.region.one_copy
    exact = outputs.exact and not isinstance(inner, Squashed)
    moved = outputs.region.moving_a_sum()
    if count > 1:
        exact = exact and not isinstance(inner, OneHot)
        moved = moved.moved_by(count)
    return replace(outputs, region=moved, exact=exact, rounded=outputs.whole)


def can_lie_around_zero(outputs: OutputRegion) -> bool:
    """Whether other records can shift two sums so that a pair lies as in the region after `with_record_added`.

    True for all except sums of numbers ±r, which are multiples of r: unit vectors in one dimension, or integers that
    are clipped.
    """
    inner = outputs.region.one_copy
    return not (inner.dim == 1 and (isinstance(inner, Sphere) or outputs.far))


def one_record(pair: Pair, count: int = 1) -> Pair:
    """The first vector of a pair, `count` times over, against the empty sum."""
    return Pair(tuple(replace(block, x=block.x * count, y=ZERO) for block in pair.blocks))


def against_no_record(vector: Array, count: int = 1) -> Pair:
    """A record's vector, computed in doubles, `count` times over against the empty sum."""
    # Making it a little shorter absorbs the rounding of doubles.
    return Pair.of(count * vector * (1 - 1e-9), 0 * vector)
