"""What the verifier needs to check a lower bound: a pair, where it enters, and which part of its loss is used."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exactly, maximum, middle, minimum, number, real
from dpassay.core.theorems import Theorem
from dpassay.evidence.upper_evidence import LEVELS, Data, enclosed, grids, of_sampled_laplace, point
from dpassay.exact.dataflow.post_processing import VisibleThresholds, kept_after
from dpassay.exact.dataflow.propagated_pairs import sources
from dpassay.exact.dataflow.sampled_pairs import AbsentBound, EventBound, SampledBound
from dpassay.exact.dataflow.sampling import ShuffledBound
from dpassay.exact.profiles.bounds import CurveBound, DropoutBound, before_dropout
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import (
    Ball,
    Box,
    Everything,
    Region,
    Repeated,
    Rounded,
    RowBits,
    Rows,
    SensitivityBall,
    Sphere,
    Squashed,
)
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bounds.round import Round
from dpassay.pipeline.stages.bounds.scaling import MinMaxScale
from dpassay.pipeline.stages.bounds.squash import Squash
from dpassay.pipeline.stages.noises.additive import Additive

_INWARD = 1 - real("1e-35")  # a pair this much nearer to the middle certainly lies in its region
_LARGE = 1_000  # an epsilon at which only outputs that reveal a value still count
_FAR: Data = {"thresholds": [["inf", "inf"]]}
__all__ = ["enclosed", "lower_evidence", "pair_data", "places", "point"]


def lower_evidence(
    pipeline: Pipeline, profile: PrivacyProfile, neighbours: Neighbours, epsilon: Number, delta: Number
) -> Iterator[Data]:
    """Pairs that may show a lower bound on ε at δ or on δ at ε, with their theorems, the strongest first."""
    finite = epsilon if epsilon.b < INFINITY else number(_LARGE)
    best = profile.dominating_pure() if delta == 0 else profile.dominating_at(finite)
    candidates = sorted(profile.candidates, key=lambda candidate: candidate is not best)
    before = before_dropout(finite, profile.mu)
    for position in pipeline.noise_positions or [len(pipeline.stages)]:
        kept = _kept(pipeline, position, neighbours)
        nowhere = {"noise": position, "at": position, "pair": []}
        yield {"theorem": "unbounded", **nowhere, **_any_threshold(kept)}
        yield {"theorem": "exponential", **nowhere}
        yield {"theorem": "noisy-max", **nowhere}
        for candidate in candidates[:6]:
            yield from _of_candidate(pipeline, position, candidate, kept, before, delta)
        if profile.pair is not None and delta == 0:
            yield from _far_out(pipeline, position, profile.pair, kept, profile.theorems)


def _kept(pipeline: Pipeline, position: int, neighbours: Neighbours) -> VisibleThresholds | None:
    """What the stages after a noise, and after noises added right after it, leave of it."""
    if position == len(pipeline.stages):
        return None
    while position + 1 < len(pipeline.stages) and isinstance(pipeline.stages[position + 1], Additive):
        position += 1
    return kept_after(pipeline, position, neighbours)


def _any_threshold(kept: VisibleThresholds | None) -> Data:
    """Thresholds as far out as possible, or any."""
    if kept is None or kept.thresholds is None:
        return {}
    told = kept.thresholds
    return _FAR if told.unlimited else {"thresholds": [_certain(kept, told.nearest(ZERO))]}


def _of_candidate(
    pipeline: Pipeline,
    position: int,
    candidate: Candidate,
    kept: VisibleThresholds | None,
    epsilon: Number,
    delta: Number,
) -> Iterator[Data]:
    bound = candidate.bound.bound if isinstance(candidate.bound, DropoutBound | AbsentBound) else candidate.bound
    if isinstance(candidate.bound, SampledBound):
        epsilon = before_dropout(epsilon, candidate.bound.mu)
    elif isinstance(candidate.bound, AbsentBound):
        epsilon = candidate.bound.inner(epsilon) or epsilon
    theorem = Theorem.LAPLACE if of_sampled_laplace(bound) else bound.theorem
    pair, name = candidate.pair, {"theorem": theorem.value, "noise": position}
    looked_at: Iterator[Data] | list[Data] = grids(bound, epsilon, delta, LEVELS[:2], below=True)
    if bound.theorem == Theorem.POST_PROCESSING and kept is not None:
        if isinstance(bound, CurveBound):
            pair = _at_best_threshold(pair, kept, pipeline.stages[position], epsilon)
        sums = pair if candidate.data_sets is None else candidate.data_sets.sums
        looked_at = [{"thresholds": _thresholds(sums, kept, pipeline.stages[position], epsilon, bound)}]
    if isinstance(bound, EventBound):
        assert kept is not None
        looked_at = [{"thresholds": [_certain(kept, one) for one in bound.best(epsilon)]}]
    if isinstance(bound, ShuffledBound):
        looked_at = [{"thresholds": [point(exactly(bound.threshold(middle(epsilon))))]}]
    for found in looked_at:
        for at, placed in places(pipeline, pair, position):
            yield {**name, "at": at, "pair": pair_data(placed), **found}
            if theorem == Theorem.UNBOUNDED:  # which says nothing of top-k, and there one pair is enough
                yield {**name, "theorem": Theorem.TOP_K.value, "at": at, "pair": pair_data(placed), **found}


def _best_offset(noise: Stage, gap: Number, epsilon: Number) -> Number:
    """How far beyond the middle of two values the threshold lies that distinguishes them best at an ε."""
    if isinstance(noise, Additive) and isinstance(noise.noise, Gaussian):
        return epsilon * noise.noise.sigma**2 / gap
    return epsilon * noise.noise.scale / 2 if isinstance(noise, Additive) and isinstance(noise.noise, Laplace) else ZERO


def _at_best_threshold(pair: Pair, kept: VisibleThresholds, noise: Stage, epsilon: Number) -> Pair:
    """A query's answers shifted so that the best threshold for an ε is visible."""
    if not kept.anywhere or kept.thresholds is None:
        return pair
    block = next(block for block in pair.blocks if not block.same)
    best = (block.x + block.y) / 2 + _best_offset(noise, abs(block.gap), epsilon)
    shift = kept.thresholds.nearest(ZERO) - best
    return Pair(tuple(replace(b, x=b.x + shift, y=b.x + shift if b.same else b.y + shift) for b in pair.blocks))


def _thresholds(pair: Pair, kept: VisibleThresholds, noise: Stage, epsilon: Number, bound: object) -> list[list[str]]:
    """For each block of a pair a threshold that distinguishes its two values well."""
    assert kept.thresholds is not None
    found = []
    for block in pair.blocks:
        wanted = (block.x + block.y) / 2
        if isinstance(bound, CurveBound) and not block.same:
            beyond = wanted + _best_offset(noise, abs(block.gap), epsilon)
            below = wanted - _best_offset(noise, abs(block.gap), epsilon)
            wanted = next((c for c in (beyond, below) if _reached(kept, c)), wanted)
        found.append(_certain(kept, kept.thresholds.nearest(wanted)))
    return found


def _certain(kept: VisibleThresholds, threshold: Number) -> list[str]:
    """A threshold that is certainly visible: between the limits any will do, and one at a limit is moved inwards."""
    told = kept.thresholds
    if told is None or _reached(kept, threshold):
        return point(threshold)  # near 0 an enclosure has no digits
    if not told.whole:
        return enclosed(threshold)
    little = real("1e-35") * (1 + abs(threshold))
    return point(threshold + little if threshold.b <= told.low.b else threshold - little)


def _reached(kept: VisibleThresholds, threshold: Number) -> bool:
    told = kept.thresholds
    return told is not None and bool(told.low.b <= threshold.a and threshold.b <= told.high.a)


def _far_out(
    pipeline: Pipeline, position: int, pair: Pair, kept: VisibleThresholds | None, theorems: Sequence[Theorem]
) -> Iterator[Data]:
    """ε at δ = 0 as outputs beyond the outermost thresholds show it."""
    looked_at: list[tuple[str, Data]] = []
    told = kept.thresholds if kept is not None else None
    if kept is not None and told is not None:
        outermost = _FAR if told.unlimited else {"thresholds": [enclosed(told.nearest(ZERO))]}
        looked_at = [(theorem, outermost) for theorem in ("post-processing", "two-noises")]
        if abs(told.low).b < INFINITY and abs(told.high).b < INFINITY:
            for upwards in (True, False):
                ends = [told.high if (b.x.mid > b.y.mid) == upwards else told.low for b in pair.blocks]
                centre = (told.low + told.high) / 2
                for less in (ONE, _INWARD) if told.whole else (ONE,):  # a limit may be known only to some digits
                    within = [point(centre + (end - centre) * less) for end in ends]
                    looked_at.append(("post-processing", {"thresholds": within}))
    for at, placed in places(pipeline, pair, position):
        names = dict.fromkeys((*theorems, Theorem.RADIAL, Theorem.ONE_SIDED, Theorem.MIXTURE))
        own: list[tuple[str, Data]] = [(theorem.value, {}) for theorem in names]
        for theorem, found in (*looked_at, *own):
            yield {"theorem": theorem, "noise": position, "at": at, "pair": pair_data(placed), **found}


def places(pipeline: Pipeline, pair: Pair, position: int) -> Iterator[tuple[int, Pair]]:
    """Where a pair can enter: just before the noise, or before earlier stages as a pair that they map to this one."""
    regions, stages = pipeline.output_regions(), pipeline.stages
    yield from _images(pair, regions[: position + 1], stages)
    for start in range(position, -1, -1):
        before = _uncopied(pair, regions[start].region.dim)
        yield start, _inwards(before, regions[start].region)
    last, found = sources(pipeline, position)
    for start in range(last, -1, -1):
        for source in found:
            before = _close_enough(_uncopied(source, regions[start].region.dim), regions[start].region)
            yield start, _inwards(before, regions[start].region)
            yield start, before  # rounding reacts to the smallest move


def _uncopied(pair: Pair, dim: int) -> Pair:
    """One of the copies that a pair consists of, if it has too many coordinates."""
    times = sum(block.count for block in pair.blocks) // max(1, dim)
    if times < 2 or any(block.count % times for block in pair.blocks):
        return pair
    return Pair(tuple(replace(block, count=block.count // times) for block in pair.blocks))


def _close_enough(pair: Pair, region: Region) -> Pair:
    """A pair scaled down to what a query's neighbors can differ by: some stages ignore the scale."""
    if not isinstance(region, SensitivityBall):
        return pair
    factor = minimum(ONE, region.distance / pair.distance(region.p))
    return Pair(tuple(replace(b, x=b.x * factor, y=b.y * factor) for b in pair.blocks))


def _images(pair: Pair, regions: Sequence[OutputRegion], stages: Sequence[Stage]) -> Iterator[tuple[int, Pair]]:
    """Pairs that squashing, rounding, min-max scaling or writing in bits maps to such a pair."""
    for at, (stage, before) in enumerate(zip(stages, regions[:-1], strict=False)):
        region, after = before.region, regions[at + 1].region
        if isinstance(stage, Squash) and isinstance(after, Squashed):
            ball = region.ball if isinstance(region, SensitivityBall) else region
            spread = Ball(2, ball.radius, ball.dim) if isinstance(ball, Sphere) else ball
            if isinstance(spread, Ball):
                opposite = spread.diagonal(pair.blocks[0].count)
                for start in range(at, -1, -1):
                    yield start, _inwards(opposite, regions[start].region)
        elif isinstance(stage, Round) and isinstance(after, Rounded):
            yield at, _before_rounding(pair)
        elif isinstance(stage, MinMaxScale) and isinstance(region, Rows) and region.dim > 1:
            low, high = region.limits or (-ONE, ONE)
            middle, step = (low + high) / 2, (high - low) / 4
            yield at, Pair((Block(middle + step, middle - step, 1), Block(middle, middle, region.dim - 1)))
        elif isinstance(stage, Binary) and isinstance(after, RowBits):
            for strings in ((after.first, after.second), _strings_of_a_row(pair, after.length)):
                yield from ((at, rows) for rows in _rows_with_bits(strings, stage, region))


def _before_rounding(pair: Pair) -> Pair:
    """Answers that are rounded to a pair of integers, as near to each other as possible.

    From a tie to a tie, both rounded away from each other, for even differences; just beyond them for odd ones.
    """
    blocks = []
    for block in pair.blocks:
        gap, half, little = block.x - block.y, ONE / 2, real("1e-20")
        if block.same:
            blocks.append(Block(ZERO, ZERO, block.count))
            continue
        more = ZERO if round(float(gap.mid)) % 2 == 0 else little
        base = real(2 * (int(float(block.y.mid)) // 2))  # shifted by an even number, ties stay as they are
        blocks.append(Block(base + gap - half + more, base + half - more, block.count))
    return Pair(tuple(blocks))


def _strings_of_a_row(pair: Pair, length: int) -> tuple[str, str]:
    """How the row that differs is written in the two vectors."""
    first, second = pair.first, pair.second
    at = int((first != second).argmax()) // length * length
    one, other = ("".join(str(int(bit)) for bit in side[at : at + length]) for side in (first, second))
    return one, other


def _rows_with_bits(strings: tuple[str, str], stage: Binary, rows: Region) -> Iterator[Pair]:
    """Rows in which one person's number is written as one or the other string, before they are written in bits."""
    limits = rows.limits if isinstance(rows, Rows) else None
    rest = (limits[0] + limits[1]) / 2 if limits else ZERO
    for exactly_written in (True, False):
        first, second = (_number_with_bits(string, stage, limits, exactly_written) for string in strings)
        for before in range(min(2, rows.dim)):
            counts = ((rest, rest, before), (first, second, 1), (rest, rest, rows.dim - 1 - before))
            yield Pair(tuple(Block(x, y, count) for x, y, count in counts if count))


def _number_with_bits(
    string: str, stage: Binary, limits: tuple[Number, Number] | None, exactly_written: bool
) -> Number:
    """The number that a string of bits represents, or one between the limits that is truncated to it."""
    sign, whole, unit = real((-1) ** int(string[0])), int("0" + string[1:], 2), real(2) ** stage.fraction
    if exactly_written:
        return sign * whole / unit
    ends = sorted((sign * whole / unit, sign * (whole + 1) / unit), key=lambda end: end.mid)
    low, high = (maximum(limits[0], ends[0]), minimum(limits[1], ends[1])) if limits else ends
    return (low + high) / 2


def _inwards(pair: Pair, region: Region) -> Pair:
    """A pair moved a little toward the middle of its region, so that it certainly lies inside despite rounding."""
    inner = region.region if isinstance(region, Repeated) else region
    centre = ZERO
    if isinstance(inner, Box):
        centre = (inner.sides[0][0] + inner.sides[0][1]) / 2
    elif isinstance(inner, Rows) and inner.limits is not None:
        centre = (inner.limits[0] + inner.limits[1]) / 2
    elif isinstance(inner, Everything) or not (isinstance(inner, SensitivityBall) or inner.surrounds_zero):
        return pair
    elif isinstance(inner, SensitivityBall):
        return Pair(tuple(b if b.same else replace(b, x=b.y + (b.x - b.y) * _INWARD) for b in pair.blocks))
    blocks = []
    for block in pair.blocks:
        x, y = (centre + (value - centre) * _INWARD for value in (block.x, block.y))
        blocks.append(replace(block, x=x, y=x if block.same else y))
    return Pair(tuple(blocks))


def pair_data(pair: Pair) -> list[Data]:
    """A pair of vectors in blocks. Any pair will do, so coordinates are decimals, not enclosures."""
    return [{"x": point(b.x), "y": point(b.y), "count": b.count, "positions": b.positions} for b in pair.blocks]
