"""Lower bounds on a composition: one pair of inputs for all answers. docs/proofs/composition.md, points 7, 8 and 10.

A guarantee, and a pipeline that begins with `query`, state only how far answers may move, so each may have its own
worst pair. All other pipelines get the same two vectors.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpassay.core.numbers import ZERO, Number, maximum, number, real
from dpassay.exact.dataflow.carried import carried
from dpassay.exact.mechanisms.discrete_mechanisms import bit_bound, category_bound
from dpassay.exact.mechanisms.exponential_mechanism import choose_bound
from dpassay.exact.pld.privacy_loss import RESOLUTIONS, PrivacyLoss
from dpassay.exact.profiles.common_records import ADDED, common_losses
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.distributions import Gaussian, Laplace, OneSided
from dpassay.pipeline.pipeline import Pipeline, run
from dpassay.pipeline.regions import Array, Block, Pair
from dpassay.pipeline.stages.base import NoiseStage
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.categories import Category, OneHotEncode
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.query import Query
from dpassay.pipeline.stages.sampling import Sampling
from dpassay.values import dataclass

Choices = list[tuple[PrivacyLoss, ...]]  # for each pair of inputs and each order of it, the losses of all parts
_SAFE = 1e-9  # more than the rounding error of the stages in doubles
_LARGE = 1e3
_MANY_COORDINATES = 1 << 17  # beyond this many, only a few pairs are tried


@dataclass(frozen=True)
class Part:
    """A mechanism, what is known about it, and how often it answers.

    >>> from dpassay.exact.analysis import analyse
    >>> from dpassay.pipeline.parser import parse
    >>> text = parse("query(l1, 1) | laplace(1)")
    >>> Part(text, text.neighbours.kind, analyse(text, text.neighbours), 2).free
    True
    """

    pipeline: Pipeline
    kind: str
    profile: PrivacyProfile
    count: int

    @property
    def free(self) -> bool:
        """Whether its answers to two neighbors can be any that the stage allows."""
        return isinstance(self.pipeline.stages[0], Query)

    def choices(self) -> Choices:
        """The losses of its own pairs, in both directions."""
        own = [c.bound.losses for c in self.profile.candidates if c.bound.losses]
        return [(loss.times(self.count),) for losses in own for loss in losses]


def largest_epsilon(parts: Sequence[Part], known: Sequence[PrivacyLoss], delta: Number) -> Number:
    """The largest ε(δ) found for a pair of inputs; `known` are losses that every pair may have in addition."""
    parts = _joined(parts)
    fixed = [part for part in parts if not part.free]
    shared = fixed[0].choices() if len(fixed) == 1 else _common(fixed) if fixed else []
    groups = [group for group in (shared, *(part.choices() for part in parts if part.free)) if group]
    chosen = [group[0] for group in groups]
    for _ in range(2 if len(groups) > 1 else 1):
        for i, group in enumerate(groups):
            if len(group) > 1:
                others = [loss for j, choice in enumerate(chosen) if j != i for loss in choice]
                chosen[i] = max(group, key=lambda c: composed([*known, *others, *c]).epsilon_below(delta).a)
    total = composed([*known, *(loss for choice in chosen for loss in choice)])
    # Ignoring an answer is post-processing, so what one part shows alone counts as well.
    bounds = [c.bound for part in parts if part.free or _decides(part, fixed) for c in part.profile.candidates]
    alone = [bound.pure if delta == 0 else bound.epsilon(delta) for bound in bounds]
    shown = total.epsilon_below(delta, RESOLUTIONS[1])
    return real(max(ZERO.a, shown.a, *(value.a for value in alone)))


def share_a_pair(parts: Sequence[Part]) -> bool:
    """Whether all parts can have their worst pairs at the same time: at most one of them is not free."""
    return len(_joined([part for part in parts if not part.free])) <= 1


def _decides(part: Part, fixed: Sequence[Part]) -> bool:
    """Whether its neighbors are those of the whole: all have the same, or the others allow any two inputs."""
    return all(other.kind in (part.kind, "any") for other in fixed)


def composed(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """The loss of several answers together."""
    return PrivacyLoss(()).compose(*losses)


def _joined(parts: Iterable[Part]) -> list[Part]:
    """Equal mechanisms merged into one that answers as often as all of them together."""
    joined: list[Part] = []
    for part in parts:
        same = [i for i, other in enumerate(joined) if (other.pipeline, other.kind) == (part.pipeline, part.kind)]
        if same:
            first = joined[same[0]]
            joined[same[0]] = replace(first, count=first.count + part.count)
        else:
            joined.append(part)
    return joined


def _common(parts: Sequence[Part]) -> Choices:
    """For pairs of inputs that are neighbors for every part: the losses of those parts for which they are known."""
    if all(part.kind == ADDED for part in parts):
        pairs = [c.pair for part in parts for c in part.profile.candidates[:4]]
        return common_losses([(part.pipeline, part.count) for part in parts], pairs)
    found: dict[tuple[PrivacyLoss, ...], None] = {}
    for x, y in _inputs(parts):
        each = [(part, losses) for part in parts if (losses := pair_losses(part.pipeline, x, y))]
        for way in range(max((len(losses) for _, losses in each), default=0)):
            found[tuple(losses[min(way, len(losses) - 1)].times(part.count) for part, losses in each)] = None
    return list(found)


def _inputs(parts: Sequence[Part]) -> Iterator[tuple[Array, Array]]:
    """Pairs to try: each part's own, as they are and far out, and opposite vectors spread ever wider."""
    if {part.kind for part in parts} - {"any", "replace-record"}:
        return
    firsts = [part.pipeline.stages[0] for part in parts]
    if all(isinstance(first, Category | OneHotEncode) and first.size > 1 for first in firsts):
        yield np.zeros(1), np.ones(1)
    dims = {part.pipeline.dim for part in parts}
    if len(dims) > 1 or any(
        stage.on_words or stage.takes_one_value for part in parts for stage in part.pipeline.stages
    ):
        return  # it is unclear which input of one corresponds to which of the other
    dim, rows = dims.pop(), any(first.one_per_person for first in firsts)
    if rows and any(p.kind != "any" and not p.pipeline.stages[0].one_per_person for p in parts):
        return  # one person's coordinate is not a record whose vector is summed
    few = dim > _MANY_COORDINATES
    pairs = [c.pair for part in parts for c in part.profile.candidates[: 1 if few else 4]]
    own = [(pair.first, pair.second) for pair in pairs]
    scale = max((float(np.abs(x).max()) for x, _ in own), default=1.0) or 1.0
    counts = {1, dim} if few else {1, min(2, dim), dim, *(4**i for i in range(1, 6) if 4**i < dim)}
    for count in sorted(counts):
        spread = np.where(np.arange(dim) < count, scale, 0.0)
        own.append((spread, -spread))
    for x, y in own:
        if len(x) == dim and (not rows or np.count_nonzero(x != y) == 1):
            centre = (x + y) / 2
            for size in (1.0, _LARGE):
                yield centre + (x - centre) * size, centre + (y - centre) * size


def pair_losses(pipeline: Pipeline, x: Array, y: Array) -> tuple[PrivacyLoss, ...]:
    """The losses between two inputs, one for each order where they differ, certified from below; none if not known.

    >>> from dpassay.pipeline.parser import parse
    >>> loss, = pair_losses(parse("clip(l1, 1) | laplace(1)", dim=2), np.array([5.0, 5.0]), np.array([-5.0, -5.0]))
    >>> round(float(loss.pure.mid), 6)
    2.0
    """
    positions = pipeline.noise_positions
    if isinstance(pipeline.stages[0], Sampling):
        return ()  # about two records, not two vectors that all take part
    if len(positions) != 1 or any(stage.keeps != "all" for stage in pipeline.stages[positions[0] + 1 :]):
        return ()
    before, stage = pipeline.stages[: positions[0]], pipeline.stages[positions[0]]
    if any(getattr(each, "function", None) for each in before):
        return ()
    if any(each.jumps for each in before):
        pair = carried(before, Pair.of(x, y))
        if pair is None:
            return ()
        u, v = pair.first, pair.second
    else:
        u, v = (np.asarray(value, dtype=float) for value in run(before, np.stack([x, y]), np.random.default_rng(0)))
    if np.array_equal(u, v) or not (np.isfinite(u).all() and np.isfinite(v).all()):
        return ()
    assert isinstance(stage, NoiseStage)
    return _noise_losses(stage, u, v)


def _noise_losses(stage: NoiseStage, u: Array, v: Array) -> tuple[PrivacyLoss, ...]:
    """The losses of a noise between two values that were computed in doubles by the stages before it."""
    slack = number(_SAFE * max(float(np.abs(u).max()), float(np.abs(v).max())))
    if isinstance(stage, Additive) and isinstance(stage.noise, Laplace | Gaussian | OneSided):
        # The loss grows with every coordinate's difference, so a smaller one is on the safe side.
        gaps, counts = np.unique(v - u, return_counts=True)
        shifts = [(_nearer(number(gap), slack), n) for gap, n in zip(gaps.tolist(), counts.tolist(), strict=True)]
        ways = (shifts, [(-gap, n) for gap, n in shifts])
        there, back = (PrivacyLoss.of_shifts(stage.noise, way) for way in ways)
        return (there,) if there == back else (there, back)
    if isinstance(stage, Choose):
        ends, counts = np.unique(np.stack([u, v], axis=1), axis=0, return_counts=True)
        around = real([-slack.b, slack.b])
        blocks = [
            Block(number(x) + around, number(y) + around, n)
            for (x, y), n in zip(ends.tolist(), counts.tolist(), strict=True)
        ]
        return choose_bound(stage, Pair(tuple(blocks))).losses
    if not (np.array_equal(u, np.rint(u)) and np.array_equal(v, np.rint(v))):
        return ()
    if isinstance(stage, Flip) and stage.size > 1:
        return category_bound(stage, stage.size).losses
    return bit_bound(stage, Pair.of(u, v)).losses if isinstance(stage, BitNoise) else ()


def _nearer(gap: Number, slack: Number) -> Number:
    """A difference reduced by what rounding may have added to it."""
    size = maximum(ZERO, abs(gap) - slack)
    return size if gap.mid > 0 else -size
