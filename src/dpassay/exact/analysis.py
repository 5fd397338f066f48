"""From a pipeline to bounds on its privacy loss: one walk along the stages.

The region just before the noise gives pairs of neighbors, the noise gives each pair's exact loss, and
a theorem bounds all pairs at once. What comes after the noise is post-processing. The result is a
`PrivacyProfile`: the losses of real pairs (from below) and bounds that hold for all pairs (from above).
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import ONE, ZERO, Number, minimum, sqrt
from dpassay.core.theorems import Theorem
from dpassay.exact import mechanisms
from dpassay.exact.dataflow.post_processing import kept_after, thresholds_told
from dpassay.exact.dataflow.propagated_pairs import pushed_pairs
from dpassay.exact.dataflow.record_sums import (
    adds_a_record,
    check_neighbours,
    sums_records,
    with_record_added,
)
from dpassay.exact.dataflow.sampled_lowers import Drawn
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.mechanisms.questions import Surroundings, profile_of
from dpassay.exact.mechanisms.top_k import scores_kept
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.premises import require_premises
from dpassay.exact.profiles.bounds import DropoutBound, PairBound, PureBound
from dpassay.exact.profiles.dominating_pairs import dominating_pairs
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Gaussian, Noise
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import (
    MinMax,
    Pair,
    Region,
)
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.exponential import TopK
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.radial import Radial, in_dimension
from dpassay.pipeline.stages.query import Query
from dpassay.pipeline.stages.repeat import Repeat
from dpassay.pipeline.stages.sampling import Poisson, Subsample

INF = float("inf")

for _module in iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
    import_module(_module.name)  # each answers for its own noises


def analyse(pipeline: Pipeline, neighbours: Neighbours) -> PrivacyProfile:
    """Bound the loss of a pipeline between neighbors.

    >>> from dpassay.pipeline.parser import parse
    >>> profile = analyse(parse("clip(l2, 1) | laplace(2)", dim=32), Neighbours())
    >>> round(float(profile.pure.mid), 9)
    5.656854249
    """
    check_neighbours(pipeline, neighbours)
    steps = Steps.of(pipeline)
    one = _one_step(steps.inner, steps.relation(neighbours))
    drawn = _drawn(steps, neighbours) if steps.sampling is not None and steps.sampling.amplifies else None
    return require_premises(pipeline, neighbours, steps.profile(one, drawn))


def _drawn(steps: Steps, neighbours: Neighbours) -> Drawn:
    """What the lower bounds of sampled steps need to know of the stages around the first noise."""
    inner, sampling = steps.inner, steps.sampling
    assert isinstance(sampling, Poisson | Subsample)
    noises = inner.noise_positions or [len(inner.stages)]
    outputs, one_record = inner.output_regions()[noises[0]], Neighbours("replace-record")
    stage = inner.stages[noises[0]] if inner.noise_positions else None
    pairs: list[Pair] = []
    if outputs.exact and stage is not None and stage.added_noise is not None:
        pairs = dominating_pairs(stage.added_noise, outputs.region)[0]
    elif outputs.exact and stage is not None and stage.adds_to_vectors:
        pairs = [outputs.region.farthest(q) for q in (1.0, 2.0, INF)]
    elif not outputs.exact:
        pairs = pushed_pairs(inner, noises[0], one_record)
    batch = {"size": sampling.size, "of": sampling.records} if isinstance(sampling, Subsample) else {}
    changed = sampling.on_its_own and neighbours.relation == "replace-record"
    return Drawn(
        rate=sampling.rate,
        theorem=Theorem.POISSON if sampling.on_its_own else Theorem.FIXED_SIZE,
        outputs=outputs,
        pairs=tuple(pairs),
        told=thresholds_told(inner.stages[noises[-1] + 1 :]),
        apart=_one_step(inner, one_record) if changed else None,
        swamped=noises != list(range(noises[0], noises[-1] + 1)),
        radial=radial if isinstance(radial := stage and in_dimension(stage, outputs.region.dim), Radial) else None,
        **batch,
    )


def _one_step(pipeline: Pipeline, neighbours: Neighbours) -> PrivacyProfile:
    """The profile of a pipeline that is not repeated, and in which all records take part."""
    check_neighbours(pipeline, neighbours)
    first = pipeline.stages[0]
    if isinstance(first, Query) and neighbours.count > 1:
        # Monotone answers of several records may rise and fall, but are no farther apart than if all rise.
        chosen = all(pipeline.stages[i].chooses for i in pipeline.noise_positions)
        moves = first.moves if chosen else "any"
        moved = replace(first, distance=first.distance * neighbours.count, moves=moves)
        profile = _one_step(replace(pipeline, stages=(moved, *pipeline.stages[1:])), Neighbours("query"))
        return replace(profile, theorems=(*profile.theorems, Theorem.GROUP))
    profiles = [_at_noise(pipeline, position, neighbours) for position in pipeline.noise_positions]
    if not profiles:
        profile = _without_noise(pipeline, neighbours)
    else:
        profile = profiles[0] if len(profiles) == 1 else _several(pipeline, profiles, neighbours)
    if sums_records(pipeline, neighbours):
        profile = replace(profile, theorems=(*profile.theorems, Theorem.RECORD_SUMS))
    return _behind_dropout(pipeline, neighbours, profile)


def _several(pipeline: Pipeline, profiles: list[PrivacyProfile], neighbours: Neighbours) -> PrivacyProfile:
    """Noise after noise is post-processing, so every stage's upper bound holds."""
    positions = pipeline.noise_positions
    stages = [pipeline.stages[i] for i in positions]
    noises = [stage.added_noise for stage in stages if stage.added_noise is not None]
    adjacent = positions == list(range(positions[0], positions[-1] + 1))
    if adjacent and len(noises) == len(stages):
        return _sum_of_noises(pipeline, noises, neighbours)
    # With unbounded inputs, a first noise is as good as none.
    last = profiles[-1]
    swamped = pipeline.output_regions()[positions[-1]].exact
    uppers = tuple(bound for profile in profiles for bound in profile.uppers)
    return replace(last, uppers=uppers, candidates=last.candidates if swamped else (), theorems=(Theorem.TWO_NOISES,))


def _sum_of_noises(pipeline: Pipeline, noises: list[Noise], neighbours: Neighbours) -> PrivacyProfile:
    """Noises added one after another: each bounds the sum; in the far tails the widest Laplace decides."""
    first, last = pipeline.noise_positions[0], pipeline.noise_positions[-1]

    def alone(noise: Noise) -> PrivacyProfile:
        stages = (*pipeline.stages[:first], Additive(noise), *pipeline.stages[last + 1 :])
        return _at_noise(Pipeline(stages, pipeline.dim), first, neighbours)

    sigmas = [noise.sigma for noise in noises if isinstance(noise, Gaussian)]
    if len(sigmas) == len(noises):
        joined = alone(Gaussian(sqrt(sum((sigma**2 for sigma in sigmas), ZERO))))
        return replace(joined, theorems=(*joined.theorems, Theorem.TWO_NOISES))
    each = [alone(noise) for noise in noises]
    # Clamps cut off the sum, about which no single noise gives information.
    uppers = tuple(bound for p in each for bound in p.uppers if bound.theorem != Theorem.POST_PROCESSING)
    profile = PrivacyProfile((), uppers, theorems=(Theorem.TWO_NOISES,), region=each[0].region)
    kept = kept_after(pipeline, first, neighbours)
    tails = kept.thresholds is not None and (kept.thresholds.unlimited or kept.anywhere)
    known = tails and all(noise.known_tails for noise in noises)
    if any(noise.drops_values for noise in noises):
        return profile
    if any(Theorem.UNBOUNDED in p.theorems for p in each):
        return replace(each[0], uppers=uppers)
    if not known:
        return profile
    pairs = [c.pair for p in each for c in p.candidates] + [p.pair for p in each if p.pair is not None]
    return replace(profile, tail_lower_bound=minimum(*(p.lower_pure for p in each)), pair=pairs[0] if pairs else None)


def _behind_dropout(pipeline: Pipeline, neighbours: Neighbours, profile: PrivacyProfile) -> PrivacyProfile:
    mu = dropped_share(pipeline, neighbours)
    if mu == 0:
        return profile
    candidates = tuple(replace(c, bound=DropoutBound(c.bound, mu)) for c in profile.candidates)
    uppers = tuple(DropoutBound(bound, mu) for bound in profile.uppers)
    tails = profile.tail_lower_bound
    if tails is not None:
        tails = DropoutBound(PureBound(tails, Theorem.LAPLACE), mu).pure
    theorems = (*profile.theorems, Theorem.DROPOUT)
    return replace(profile, candidates=candidates, uppers=uppers, tail_lower_bound=tails, mu=mu, theorems=theorems)


def dropped_share(pipeline: Pipeline, neighbours: Neighbours) -> Number:
    """The probability that all words that differ are dropped; 0 between any two texts."""
    kept = ONE
    for stage in pipeline.stages:
        if neighbours.relation == "word":
            kept *= 1 - stage.dropped
    return (1 - kept) ** neighbours.count


def _without_noise(pipeline: Pipeline, neighbours: Neighbours) -> PrivacyProfile:
    """A deterministic mechanism reveals its input, unless all inputs give the same output."""
    outputs = region_at(pipeline, len(pipeline.stages), neighbours)
    pairs = [outputs.region.farthest(1)] if outputs.exact else pushed_pairs(pipeline, len(pipeline.stages), neighbours)
    different = [pair for pair in pairs if pair.distance(1).a > 0]
    loss = PrivacyLoss(((AtomLoss((), ONE), 1),))
    bound = PairBound((loss,), Theorem.NO_NOISE)
    if different:
        return PrivacyProfile((Candidate(different[0], bound),), (bound,), theorems=(Theorem.NO_NOISE,))
    constant = PureBound(ZERO, Theorem.NO_NOISE)
    known = outputs.region.diameter(INF) == 0
    return PrivacyProfile((), (constant if known else bound,), theorems=(Theorem.NO_NOISE,))


def _at_noise(pipeline: Pipeline, position: int, neighbours: Neighbours) -> PrivacyProfile:
    """The bounds that one noise stage gives."""
    outputs = region_at(pipeline, position, neighbours)
    stage = in_dimension(pipeline.stages[position], outputs.region.dim)
    anywhere = all(isinstance(before, Query | Repeat | TopK) for before in pipeline.stages[:position])
    if stage.chooses and not anywhere and _tells_differences_alone(pipeline, outputs.region):
        outputs = replace(outputs, exact=False)  # the loss depends on where the scores are
    scores = scores_kept(pipeline, position)
    pushed = [] if outputs.exact or scores else pushed_pairs(pipeline, position, neighbours)
    kept = kept_after(pipeline, position, neighbours)
    return profile_of(stage, Surroundings(outputs, pushed, kept, pipeline.stages[position + 1 :], anywhere, scores))


def _tells_differences_alone(pipeline: Pipeline, region: Region) -> bool:
    """Whether neighbors are defined by their distance, so that not every two vectors of the region are neighbors."""
    inner = region.one_copy
    return inner.by_distance or (pipeline.stages[0].one_per_person and isinstance(inner, MinMax))


def region_at(pipeline: Pipeline, position: int, neighbours: Neighbours) -> OutputRegion:
    """The values that two neighbors can have before a noise. After the first noise there is one noisy sum."""
    outputs = pipeline.output_regions()[position]
    if not adds_a_record(pipeline, position, neighbours):
        return outputs
    return with_record_added(outputs, neighbours.count)
