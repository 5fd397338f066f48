"""Pairs that certainly can occur before the noise, for regions that are only outer bounds."""

from dataclasses import replace

import numpy as np

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import ZERO, Number, real
from dpassay.exact.dataflow.carried import carried
from dpassay.exact.dataflow.clamped_pairs import between_limits
from dpassay.exact.dataflow.record_sums import adds_a_record, against_no_record, one_record
from dpassay.pipeline.pipeline import Pipeline, run
from dpassay.pipeline.regions import (
    Ball,
    Box,
    Counted,
    Everything,
    Intersection,
    Pair,
    Region,
    Repeated,
    RowBits,
    Rows,
    SensitivityBall,
    clipped_step,
)
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.bounds.scaling import Clip
from dpassay.pipeline.stages.query import PersonRows

INF = float("inf")
_LITTLE, _MORE = real("1e-8"), real(2) ** -20


def sources(pipeline: Pipeline, position: int) -> tuple[int, list[Pair]]:
    """The last place before a noise whose region is known exactly, and its farthest pairs."""
    regions = pipeline.output_regions()
    start = max(i for i in range(position + 1) if regions[i].exact)
    region = regions[start].region
    if isinstance(region, Everything):
        pairs = [Everything(region.dim).farthest(1, size) for size in (1, 20)]
    else:
        pairs = [region.farthest(q) for q in (1.0, 2.0, INF)]
    if isinstance(region, Counted) and start < position:
        pairs += _before_clip(region, pipeline.stages[start])
    clamps = [stage for stage in pipeline.stages[start:position] if isinstance(stage, Clamp)]
    moved = list(between_limits(region, pairs, clamps[0])) if clamps else []
    return start, [*(_inwards(region, pair) for pair in pairs), *moved]


def _before_clip(region: Counted, stage: Stage) -> list[Pair]:
    """The counts, one apart, that l2 clipping moves farthest apart: docs/proofs/diameters.md, point 20."""
    if not (isinstance(stage, Clip) and stage.norm == "l2" and region.unit_steps and region.diameter(1).a >= 1):
        return []
    step = clipped_step(region.dim, stage.radius)
    return [] if step is None else [step.pair]


def pushed_pairs(pipeline: Pipeline, position: int, neighbours: Neighbours) -> list[Pair]:
    """Pairs that certainly can occur: the farthest pairs of the last exact region, run through the stages after it."""
    regions = pipeline.output_regions()
    if isinstance(here := regions[position].region, RowBits) and _clamped_rows(pipeline, position):
        return [here.farthest(1)]
    start, found = sources(pipeline, position)
    between = pipeline.stages[start:position]
    if any(stage.random or stage.takes_one_value for stage in between):
        return []  # there is noise, or a function that is not known to take these values
    if any(isinstance(stage, Binary) for stage in between) and any(
        isinstance(r.region, Repeated) for r in regions[start:position]
    ):
        return []  # copies move together in a pair, and positions in a bit string have a parity
    pairs, rng, added = [], np.random.default_rng(0), adds_a_record(pipeline, position, neighbours)
    jumps = any(stage.jumps for stage in between)
    for source in found:
        x, y = run(between, np.stack([source.first, source.second]), rng)
        whole = isinstance(regions[start].region, Counted)
        if jumps or whole or (np.all(x == np.rint(x)) and np.all(y == np.rint(y))):  # integers must be certain
            tried = (source, *_nearer(regions[start].region, source))
            known = [pair for one in tried if (pair := carried(between, one)) is not None]
            pairs += [one_record(pair, neighbours.count) if added else pair for pair in known[: 2 if jumps else 1]]
            if jumps or known:
                continue
        # Doubles carry the values through the stages; moving both a little inwards absorbs their rounding.
        inwards = (y - x) * 5e-10
        pairs.append(against_no_record(x, neighbours.count) if added else Pair.of(x + inwards, y - inwards))
    return pairs


def _clamped_rows(pipeline: Pipeline, position: int) -> bool:
    """Whether the bits come from clamped rows and nothing else: then the limits themselves, if known, are reached."""
    limits = [r.region.limits for r in pipeline.output_regions()[:position] if isinstance(r.region, Rows)]
    exact = all(limit.delta == 0 for limit in (limits[-1] if limits else None) or ())
    return exact and all(isinstance(stage, PersonRows | Clamp | Binary) for stage in pipeline.stages[:position])


def _inwards(region: Region, pair: Pair) -> Pair:
    """A pair moved a little toward the middle of its region, whose limits may never be reached."""
    inner = region.one_copy
    limited = isinstance(inner, Box) or (inner.row_limits is not None)
    return _towards_middle(inner, pair, _LITTLE) if limited else pair


def _nearer(region: Region, pair: Pair) -> list[Pair]:
    """The pair once more, clearly away from where a jump may be just at the border; none if it would leave the region.

    What is convex around 0 contains vectors nearer to 0. A box, for example of what a squash puts out, need not.
    """
    inner = region.one_copy
    known = isinstance(inner, Ball | Intersection | SensitivityBall | Everything | Box | Rows)
    return [_towards_middle(inner, pair, _MORE)] if known else []


def _towards_middle(region: Region, pair: Pair, share: Number) -> Pair:
    """Both vectors moved toward the middle of a region by a share of the way; it is 0 if there are no limits."""
    blocks = []
    for block in pair.blocks:
        centre = ZERO
        if isinstance(region, Box):
            centre = (block.x + block.y) / 2
        elif region.row_limits is not None:
            centre = (region.row_limits[0] + region.row_limits[1]) / 2
        x, y = (centre + (value - centre) * (1 - share) for value in (block.x, block.y))
        blocks.append(replace(block, x=x, y=x if block.same else y))
    return Pair(tuple(blocks))
