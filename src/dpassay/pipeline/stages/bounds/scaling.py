"""Stages that scale a vector as a whole: clipping, normalizing, min-max scaling."""

from typing import Any

import numpy as np

from dpassay.core.numbers import ONE, Number, down, middle, minimum, real, sqrt, up
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Array,
    Ball,
    Box,
    ClippedAnswers,
    Counted,
    Everything,
    Intersection,
    MinMax,
    MonotoneBall,
    Rows,
    SensitivityBall,
    Sphere,
    clipped_step,
)
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import NORM, NORMS, Parameter, Syntax, positive
from dpassay.values import dataclass


def _in_units(batch: Any, p: float) -> tuple[Array, Array, Array]:
    """Each row divided by its largest coordinate, that coordinate, and the quotient's norm: nothing overflows."""
    batch = np.asarray(batch, dtype=float)
    top = np.max(np.abs(batch), axis=-1, keepdims=True)
    unit = batch / np.where(top == 0, 1.0, top)
    return unit, top, np.asarray(np.linalg.norm(unit, ord=p, axis=-1, keepdims=True))


@dataclass(frozen=True)
class Clip(Stage):
    """Scale a vector down to this norm (l1, l2, linf) if it is longer.

    >>> Clip("l2", 1).run(np.array([[3.0, 4.0]]), np.random.default_rng()).tolist()
    [[0.6..., 0.8...]]
    """

    syntax = Syntax("clip", order=20, norm=NORM, radius=positive("clipping constant"))
    keeps = "signs"
    outweighs_noise = True
    contracts = True
    norm: str
    radius: Number

    def output_region(self, before: OutputRegion) -> OutputRegion:
        region, p = before.region, NORMS[self.norm]
        ball = Ball(p, self.radius, region.dim)
        if isinstance(region, Everything):
            return OutputRegion(ball, before.exact)
        if isinstance(region, SensitivityBall):
            return self._of_answers(region, ball, before.exact)
        if isinstance(region, Counted) and (near := real(region.diameter(region.p).b)).b > 0:
            step = clipped_step(region.dim, self.radius) if self.norm == "l2" and region.unit_steps else None
            p = 1.0 if step else region.p
            return self._of_answers(SensitivityBall(p, near, region.dim), ball, False, step.distance if step else None)
        if region.largest_norm(p) <= down(self.radius):
            return before
        if isinstance(region, Ball):
            if region.p == p:
                return OutputRegion(Ball(p, minimum(region.radius, self.radius), region.dim), before.exact)
            inside = ball.largest_norm(region.p) <= down(region.radius)
            return OutputRegion(ball if inside else Intersection(region, ball), before.exact)
        if isinstance(region, Box) and all(
            up(low) <= -up(self.radius) and down(high) >= up(self.radius) for low, high, _ in region.sides
        ):
            return OutputRegion(ball, before.exact)
        return OutputRegion(ball, exact=False)

    def _of_answers(self, region: SensitivityBall, ball: Ball, exact: bool, step: Number | None = None) -> OutputRegion:
        """l2 clipping never increases an l2 distance; in any norm clipping at most doubles a distance.

        `step`: how far apart in l1 it moves counts that differ by one.
        """
        if isinstance(region, MonotoneBall):  # scaled answers may move both ways, but not to any two of the ball
            region, exact = SensitivityBall(region.p, region.distance, region.dim), False
        if isinstance(region, ClippedAnswers):  # what another clip does to the other distance is not known
            region = SensitivityBall(2, region.distance, region.dim)
        if self.norm == "l2" and region.p == 2:
            if down(region.distance) > up(2 * self.radius):
                return OutputRegion(ball, exact)
            return OutputRegion(region, exact)
        if self.norm == "l2":
            near = region.diameter(2)
            known = step is not None  # diameters.md, points 19 and 20
            stretch = step if known else (1 + sqrt(real(region.dim))) / 2
            other = SensitivityBall(region.p, region.distance * stretch, region.dim)
            if near.b < (2 * self.radius).a:
                return OutputRegion(ClippedAnswers(2, near, region.dim, other), exact=False)
        if region.p == ball.p:
            doubled = SensitivityBall(ball.p, 2 * minimum(region.distance, self.radius), region.dim)
            return OutputRegion(doubled, exact=False)
        return OutputRegion(ball, exact=False)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        radius = middle(self.radius)
        unit, top, norm = _in_units(batch, NORMS[self.norm])
        norm = np.where(norm == 0, 1.0, norm)
        return np.where(top <= radius / norm, batch, unit * (radius / norm))


def _check_norm(norm: str) -> str:
    if norm != "l2":
        raise InputError(f"normalise supports only l2, got {norm!r}; use clip for other norms")
    return norm


@dataclass(frozen=True)
class Normalise(Stage):
    """Scale a vector to l2 norm 1.

    A zero vector stays zero.

    >>> Normalise("l2").run(np.array([[3.0, 4.0]]), np.random.default_rng()).tolist()
    [[0.6, 0.8]]
    """

    syntax = Syntax("normalise", order=30, norm=Parameter("word", _check_norm, tuple(NORMS), default="l2"))
    keeps = "signs"
    outweighs_noise = True
    norm: str = "l2"

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The sphere (and the zero vector, which is never farther from anything); in one dimension −1 and 1."""
        region = before.region
        every_direction = region.surrounds_zero or isinstance(region, Sphere)
        return OutputRegion(Sphere(ONE, region.dim), before.exact and every_direction, rounded=region.dim == 1)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        unit, _, norm = _in_units(batch, 2)
        return unit / np.where(norm == 0, 1.0, norm)


@dataclass(frozen=True)
class MinMaxScale(Stage):
    """Shift and scale each vector so that it spans 0 to 1.

    A constant vector has no range; it becomes all zeros.

    >>> MinMaxScale().run(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]]), np.random.default_rng()).tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]
    """

    syntax = Syntax("minmax", order=40)
    depends_on_dimension = True
    outweighs_noise = True

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All vectors with a 0, a 1 and the rest between; one person's value can move them from end to end."""
        region = before.region
        free = isinstance(region, Rows) and (region.limits is None or region.limits[0].b < region.limits[1].a)
        cube = isinstance(region, Box) and len(region.sides) == 1 and region.sides[0][0].b < region.sides[0][1].a
        whole = region.surrounds_zero or cube or free or isinstance(region, Sphere | MinMax)
        return OutputRegion(MinMax(region.dim), before.exact and whole)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        low = np.min(batch, axis=-1, keepdims=True)
        span = np.max(batch, axis=-1, keepdims=True) - low
        return (batch - low) / np.where(span == 0, 1.0, span)
