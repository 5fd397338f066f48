"""Lower bounds on a composition of sampled mechanisms: one record for all. docs/proofs/composition.md, point 10.

The data sets are the empty one and the one with this record. Each part sums the record's vector, as its own stages make
it, in some of its steps.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from dpassay.core.numbers import ZERO, Number, maximum, middle, number
from dpassay.exact.dataflow.carried import carried
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.pld.loss_components import GaussianLoss, LaplaceLoss, LossComponent
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import Pipeline, run
from dpassay.pipeline.regions import Array, Pair
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.query import PersonRows, Query
from dpassay.pipeline.stages.sampling import Poisson

ADDED = "add-remove-record"
_SAFE = 1e-9  # more than the rounding error of the stages in doubles
_LARGE = 1e3
WAYS: tuple[Literal["remove", "add"], ...] = ("remove", "add")


def records(dim: int, pairs: Sequence[Pair]) -> Iterator[Array]:
    """Large records to try: along one axis, along several, and where two data sets of one part differ."""
    for count in sorted({1, min(2, dim), dim, *(4**i for i in range(1, 6) if 4**i < dim)}):
        yield np.where(np.arange(dim) < count, _LARGE, 0.0)
    for pair in pairs:
        apart = np.asarray(pair.first - pair.second, dtype=float)
        if len(apart) == dim and apart.any() and np.isfinite(apart).all():
            yield apart
            yield apart / np.abs(apart).max() * _LARGE * max(1.0, float(np.abs(apart).max()))


def record_losses(pipeline: Pipeline, record: Array) -> tuple[PrivacyLoss, ...]:
    """The losses of all steps between data sets with this record only and without any, then in the other order.

    They are certified from below; there are none if they are not known.

    >>> from dpassay.pipeline.parser import parse
    >>> steps = parse("poisson(0.1) | clip(l1, 1) | laplace(1) | times(10)", dim=2)
    >>> there, back = record_losses(steps, np.array([5.0, 0.0]))
    >>> round(float(there.pure.mid), 6)  # 10·ln(0.9 + 0.1·e)
    1.585651
    """
    steps = Steps.of(pipeline)
    inner, positions = steps.inner.stages, steps.inner.noise_positions
    if not isinstance(pipeline.stages[0], Poisson) or len(positions) != 1:
        return ()
    stage, before, after = inner[positions[0]], inner[: positions[0]], inner[positions[0] + 1 :]
    if any(each.keeps != "all" for each in after) or not isinstance(stage, Additive):
        return ()
    if any(isinstance(s, Query | PersonRows) or s.on_words or s.takes_one_value for s in inner):
        return ()  # these state what a record can be, and do not make it so
    if any(getattr(each, "function", None) for each in before):
        return ()
    if any(each.jumps for each in before):  # doubles may lie on the other side of a jump
        pair = carried(before, Pair.of(record, record))
        moved = record * 0 if pair is None else pair.first
    else:
        moved = np.asarray(run(before, record[None, :], np.random.default_rng(0))[0], dtype=float)
    if not np.isfinite(moved).all() or not moved.any():
        return ()
    rate = number(1) if steps.sampling is None else pipeline.stages[0].rate
    return tuple(PrivacyLoss(((step, steps.count),)) for step in _of_noise(stage, moved, rate))


def _of_noise(stage: Additive, moved: Array, rate: Number) -> Iterator[LossComponent]:
    """One step in both orders; for Laplace noise only the coordinate that moves most is looked at."""
    sizes = np.abs(moved)
    slack = number(_SAFE * float(sizes.max()))
    if isinstance(stage.noise, Laplace):
        shift = maximum(ZERO, number(float(sizes.max())) - slack) / stage.noise.scale
        yield from (LaplaceLoss(shift) if rate == 1 else SampledLaplaceLoss(rate, shift, way) for way in WAYS)
    elif isinstance(stage.noise, Gaussian):
        values, counts = np.unique(sizes, return_counts=True)
        shifts = [(maximum(ZERO, number(v) - slack), int(n)) for v, n in zip(values.tolist(), counts, strict=True)]
        ((component, _),) = PrivacyLoss.of_shifts(stage.noise, shifts).components
        assert isinstance(component, GaussianLoss)
        yield from (component if rate == 1 else SampledLoss(rate, component.mu, way) for way in WAYS)


def common_losses(parts: Sequence[tuple[Pipeline, int]], pairs: Sequence[Pair]) -> list[tuple[PrivacyLoss, ...]]:
    """For records that all parts may have, and both orders of the data sets: the losses of the parts that are known.

    A record that moves no sum by more than another one does, up to rounding, is left out.
    """
    dims = {pipeline.dim for pipeline, _ in parts}
    if len(dims) != 1:
        return []
    kept: list[tuple[float, ...]] = []
    found: list[tuple[PrivacyLoss, ...]] = []
    for record in records(dims.pop(), pairs):
        each = [record_losses(pipeline, record) for pipeline, _ in parts]
        sizes = tuple(_size(losses) for losses in each)
        if not any(sizes) or any(all(a <= b * (1 + 1e-7) for a, b in zip(sizes, old, strict=True)) for old in kept):
            continue
        kept.append(sizes)
        for way in range(2):
            shown = [(losses, count) for losses, (_, count) in zip(each, parts, strict=True) if losses]
            found.append(tuple(losses[way].times(count) for losses, count in shown))
    return found


def _size(losses: Sequence[PrivacyLoss]) -> float:
    """How far one step moves the sum; larger is worse, of one part."""
    component = losses[0].components[0][0] if losses else None
    if isinstance(component, SampledLoss | GaussianLoss):
        return middle(component.mu)
    return middle(component.shift) if isinstance(component, SampledLaplaceLoss | LaplaceLoss) else 0.0
