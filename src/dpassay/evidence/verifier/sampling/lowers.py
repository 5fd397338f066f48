"""What two data sets show if their records are sampled: docs/proofs/poisson.md and docs/proofs/fixed-size.md.

A step has the law (1 − q)·N_b + q·N_a in the first data set, where the sum is a with the record that differs and b
without it, and N_b in the second; or, if a record is replaced after Poisson sampling, both laws are such mixtures. If
something is lost after the noise, it matters where a and b lie, and in which order they are compared.
"""

from collections.abc import Sequence
from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.binomial import BitGroups, joined
from dpassay.evidence.verifier.arithmetic.numbers import INF, ONE, ZERO, is_infinite, is_point
from dpassay.evidence.verifier.lowers import NoisePlace, all_between, lower, radial_loss, told_far
from dpassay.evidence.verifier.noises.known_noises import KNOWN, joined_noise, pair_loss
from dpassay.evidence.verifier.noises.losses import (
    FEW_BITS,
    FiniteOutcomes,
    Loss,
    LossCurve,
    Worst,
    bits_loss,
    chance_above,
    loss_at_zero,
    pure_loss,
)
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, PairBlock, same
from dpassay.evidence.verifier.regions.regions import ParsedStage
from dpassay.evidence.verifier.sampling.laplace import SampledLaplace, sampled_laplace
from dpassay.evidence.verifier.sampling.sampled import Sampled
from dpassay.evidence.verifier.sampling.steps import Absent, Amplified, SampledSteps, amplified_replaced

# Noises whose loss between two values is the same in both orders.
_EVEN = ("", "laplace", "gaussian", "staircase", "discrete_laplace", "discrete_gaussian", "truncated_laplace")
_RADIAL = ("radial", "mahalanobis")
_UNBOUNDED = ("gaussian", "truncated_laplace")  # there they are infinite
_ONE_SIDE = ("laplace", "discrete_laplace", "staircase")  # far out on one side all ratios are the largest


def sampled_lower(steps: SampledSteps, place: NoisePlace, step: Step) -> Loss:
    """The loss that two data sets show in all steps, by the theorem named in a step."""
    own = {"poisson": "poisson", "subsample": "fixed-size"}.get(steps.kind, "")
    if step.theorem in ("poisson", "fixed-size", "shuffle", "optimal-composition") and step.theorem != own:
        raise CertificateError(f"the theorem {step.theorem!r} does not say what a pair shows in these steps")
    inner = replace(step, theorem=steps.theorem(step.theorem, place.noise))
    if not step.pair or inner.theorem == "no-noise":
        return Amplified(_unbounded(place, inner), steps.rate, steps.count)
    if steps.kind == "poisson" and steps.replaced:
        return _replaced(steps, place, inner)
    if not _location_free(place, inner):
        located = _located(steps, place, inner)
        first = [_drawn(steps, loss, step) for loss, with_record in located if with_record]
        return Worst([*first, *(Absent(loss, steps.rate, steps.count) for loss, with_it in located if not with_it)])
    if place.noise.name not in (*_EVEN, *_RADIAL) and not _both_orders(steps, place):
        raise CertificateError(f"the loss of {place.noise.name} depends on which data set has the record")
    loss = lower(place, inner)
    if not own:  # every record takes part
        return steps.lower(step, loss)
    mu = loss.mu if isinstance(loss, LossCurve) else None
    if mu is not None and step.theorem == own:
        orders = ("in", "out")
        return Worst([Sampled(steps.rate, mu, order, steps.count, step.grid) for order in orders])
    return _drawn(steps, loss, step)


def _drawn(steps: SampledSteps, loss: Loss, step: Step) -> Loss:
    """The loss of all steps, if the record takes part in each with some probability; Laplace noise in both orders."""
    laplace = step.theorem == "laplace" and steps.added
    exact = sampled_laplace(loss, steps.rate, steps.count, step.grid) if laplace else None
    return Amplified(loss, steps.rate, steps.count) if exact is None else exact


def _unbounded(place: NoisePlace, step: Step) -> Loss:
    """Without noise, or without a bound, the record is revealed whenever it takes part."""
    if step.theorem not in ("unbounded", "no-noise"):
        raise CertificateError(f"the theorem {step.theorem!r} needs a pair after sampling")
    return lower(place, step)


def _location_free(place: NoisePlace, step: Step) -> bool:
    """Whether only the difference of two sums matters: nothing is lost, or outputs far out show it."""
    far = bool(step.thresholds) and all(is_infinite(abs(one)) for one in step.thresholds)
    if step.theorem == "post-processing" or step.theorem == "two-noises":
        return far and told_far(place.behind)
    return place.keeps_all or step.theorem == "radial"


def _both_orders(steps: SampledSteps, place: NoisePlace) -> bool:
    """Whether a record can also be replaced the other way round, or its opposite can be added.

    Where the set is only known to contain all records, their opposites need not be among them.
    """
    shape, exact = place.reach.shape.one, place.reaches[place.position].exact
    return steps.batch[1] > 1 or (exact and (shape.kind == "answers" or shape.everything))


def _located(steps: SampledSteps, place: NoisePlace, step: Step) -> list[tuple[Loss, bool]]:
    """What is visible of two sums where they lie, and whether the one with the record comes first."""
    noise = joined_noise(place.added)
    if noise is None or noise.name not in ("laplace", "gaussian"):
        raise CertificateError(f"not all of what {place.noise.name} leaves of the pair is known to survive")
    found: list[tuple[Loss, bool]] = []
    for pair in _sums(steps, place, step):
        if step.theorem == noise.name == "laplace" and all_between(place.behind, pair):
            found.append((pair_loss(noise, pair, step.grid), True))
        elif step.theorem == "post-processing" and len(step.thresholds) == len(pair) and place.tells(step):
            found.append((_sides(noise, pair, step), True))
            found.append((_sides(noise, tuple(replace(b, x=b.y, y=b.x) for b in pair), step), False))
    if not found:
        raise CertificateError("the output does not reveal on which side of these thresholds the two sums lie")
    return found


def _sums(steps: SampledSteps, place: NoisePlace, step: Step) -> list[Pair]:
    """The sums with the record and without it, in all orders that are possible."""
    pair = place.pair(step)
    other = tuple(replace(block, x=block.y, y=block.x) for block in pair)
    if steps.batch[1]:  # all other records have the second vector
        if place.reach.far and steps.batch[0] > 1:
            raise CertificateError("where sums of values lie that are reached only in the limit is not known")
        return [_in_a_batch(each, steps.batch[0]) for each in (pair, other)]
    if steps.kind != "poisson":
        raise CertificateError("it is not known where the sums lie")
    shape = place.reach.shape.one
    if step.at == place.position and shape.kind == "answers":
        # Others that are small and many move both sums of a ball; on a sphere none is small.
        ball = place.reaches[place.position].shape.one.kind == "ball"
        if shape.free and not place.reach.far and ball:
            return [pair, other]
        return [tuple(replace(b, x=sign * (b.x - b.y), y=ZERO) for b in pair) for sign in (1, -1)]
    if all(is_point(block.x, 0) for block in pair):
        return [other]
    if all(is_point(block.y, 0) for block in pair):
        return [pair]
    raise CertificateError("it is not known which of the two sums has the record")


def _in_a_batch(pair: Pair, size: int) -> Pair:
    """The sum of a batch with one record of the first vector, and of one without; the others have the second."""
    return tuple(
        block if same(block) and size == 1 else replace(block, x=block.x + (size - 1) * block.y, y=size * block.y)
        for block in pair
    )


def _sides(noise: ParsedStage, pair: Pair, step: Step) -> Loss:
    """On which side of its threshold each coordinate lies, under the first law against the second."""
    groups = []
    for block, threshold in zip(pair, step.thresholds, strict=True):
        if not same(block):
            p, q = (chance_above(noise, value, threshold) for value in (block.x, block.y))
            groups.append((p, q, block.count))
    kinds = joined(groups)
    if sum(count for _, _, count in kinds) > FEW_BITS:
        return BitGroups(kinds)
    outcomes = [(ONE, ONE)]
    for p, q, count in kinds:
        for _ in range(count):
            outcomes = [(a * x, b * y) for a, b in outcomes for x, y in ((p, q), (1 - p, 1 - q))]
    return FiniteOutcomes(tuple(outcomes))


def _replaced(steps: SampledSteps, place: NoisePlace, step: Step) -> Loss:
    """One record against another one, no others: outputs of both mixtures."""
    pair, noise = place.pair(step), joined_noise(place.added)
    if noise is None:
        raise CertificateError("for a sum of different noises, nothing is known of a record replaced")
    if step.theorem not in (KNOWN[noise.name].theorem, "post-processing", "radial"):
        raise CertificateError(f"the theorem {step.theorem!r} does not say what a record replaced shows")
    finite = bool(step.thresholds) and not any(is_infinite(abs(one)) for one in step.thresholds)
    if finite and noise.name in ("laplace", "gaussian"):
        return _event(steps, place, noise, step, pair)
    if noise.name == "gaussian" and place.keeps_all and _opposite(pair):
        loss = pair_loss(noise, pair, None)
        assert isinstance(loss, LossCurve)
        assert loss.mu is not None
        return Sampled(steps.rate, loss.mu / 2, "both", steps.count, step.grid)
    if noise.name == "laplace" and step.grid is not None and place.keeps_all:
        return _on_an_axis(steps, noise, step, pair)
    alone = tuple(replace(block, y=ZERO) for block in pair)
    if noise.name in _RADIAL and _opposite(pair):
        losses = [radial_loss(noise, place, each) for each in (alone, pair)]
    else:
        visible = place.keeps_all or (noise.name in ("laplace", "gaussian") and told_far(place.behind))
        if noise.name not in (*_ONE_SIDE, *_UNBOUNDED) or not visible:
            raise CertificateError(
                f"no output of {noise.name} is known to have the largest ratio against both distributions"
            )
        if not all(same(block) or (block.x * (block.x - block.y)).a >= 0 for block in pair):
            raise CertificateError(
                "no output is known to have the largest ratio against both the other record and none"
            )
        if noise.name in _UNBOUNDED:
            if not any((block.x * (block.x - block.y)).a > 0 for block in pair):
                raise CertificateError("no coordinate of the record is known to be farther out than both others")
            return loss_at_zero(INF)
        losses = [pair_loss(noise, each, None) for each in (alone, pair)]
    return loss_at_zero(amplified_replaced(losses[0].pure, losses[1].pure, steps.rate) * steps.count)


def _on_an_axis(steps: SampledSteps, noise: ParsedStage, step: Step, pair: Pair) -> Loss:
    """A record on an axis against its opposite, or against the vector 0, which is as good as no record."""
    moved = [block for block in pair if not same(block)]
    if sum(block.count for block in moved) != 1 or not all(is_point(b.x, 0) for b in pair if same(b)):
        raise CertificateError("the two records do not lie on one axis")
    block, scale = moved[0], noise.numbers["scale"]
    if _opposite(moved):
        return SampledLaplace(steps.rate, abs(block.x) / scale, "both", steps.count, step.grid)
    if not (is_point(block.x, 0) or is_point(block.y, 0)):
        raise CertificateError("neither is one of the two records 0, nor is it the opposite of the other one")
    size = abs(block.x - block.y) / scale
    return Worst([SampledLaplace(steps.rate, size, order, steps.count, step.grid) for order in ("in", "out")])


def _opposite(pair: Sequence[PairBlock]) -> bool:
    return all(block.x.a == -block.y.b and block.x.b == -block.y.a for block in pair)


def _event(steps: SampledSteps, place: NoisePlace, noise: ParsedStage, step: Step, pair: Pair) -> Loss:
    """Whether every coordinate that differs lies beyond its threshold, on the side of the first vector."""
    if len(step.thresholds) != len(pair) or not place.tells(step):
        raise CertificateError("the output does not reveal on which side of these thresholds the values lie")
    chances = []
    for side in ("x", "y", ""):
        chance = ONE
        for block, threshold in zip(pair, step.thresholds, strict=True):
            if same(block):
                continue
            sign = 1 if block.x.a >= block.y.b else -1
            if sign < 0 and not block.x.b <= block.y.a:
                raise CertificateError("it is not known which value of a coordinate is the larger one")
            value = getattr(block, side) if side else ZERO
            chance *= chance_above(noise, sign * value, sign * threshold) ** block.count  # the noise is even
        chances.append(chance)
    p, q = (steps.rate * chance + (1 - steps.rate) * chances[2] for chance in chances[:2])
    return bits_loss([(p, q, steps.count)]) if p.a > q.b else pure_loss(ZERO)
