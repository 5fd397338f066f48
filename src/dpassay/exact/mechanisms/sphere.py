"""The loss of random directions on the unit sphere: opposite vectors are the worst. Proof: docs/proofs/sphere.md."""

from functools import cached_property

import numpy as np

from dpassay.core.functions.log_concave import log_integral
from dpassay.core.functions.roots import falling_root
from dpassay.core.numbers import (
    ONE,
    PI,
    ZERO,
    Number,
    atan2,
    between,
    cos,
    down,
    exactly,
    exp,
    log,
    minimum,
    number,
    real,
    sin,
    sqrt,
    up,
)
from dpassay.core.theorems import Theorem
from dpassay.exact.mechanisms.questions import Surroundings, least_loss, metric_reason, profile_of, reason
from dpassay.exact.profiles.bounds import GeneralBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.regions import Array, Block, Pair, Region, Sphere
from dpassay.pipeline.stages.noises.directions import Direction
from dpassay.values import dataclass

_LARGEST_ERROR = 1e-4  # of a logarithm in doubles; if it may be larger, only what ε-DP implies is stated
SMALL_ANGLE = real("1e-3")
_NOTHING = real("1e-3000")


@dataclass(frozen=True)
class OppositeBound(GeneralBound):
    """The profile of two opposite unit vectors, which dominate all pairs; both directions are equal.

    >>> from dpassay.pipeline.stages.noises.directions import VonMisesFisher
    >>> bound = OppositeBound(VonMisesFisher(1), 3)
    >>> float(bound.pure.mid), round(float(bound.delta(ZERO).mid), 6)  # (e − 1)/(e + 1)
    (2.0, 0.462117)
    """

    noise: Direction
    dim: int
    theorem: Theorem = Theorem.SPHERE

    @property
    def pure(self) -> Number:
        return self.noise.largest_loss

    @cached_property
    def _log_total(self) -> tuple[float, float]:
        return self.noise.half(self.dim).log_total()

    def delta(self, epsilon: Number) -> Number:
        """E[max(0, 1 − e^(ε−L))] as an integral over the outputs nearer to the first vector."""
        if epsilon.a >= self.pure.b:
            return ZERO
        most = PureBound(self.pure, self.theorem).delta(epsilon)
        half = self.noise.half(self.dim)
        if half.error > _LARGEST_ERROR:
            return between(ZERO, most)
        low = self._log_numerator(up(epsilon) + 2 * half.error)[0] - self._log_total[1]
        high = self._log_numerator(max(0.0, down(epsilon) - 2 * half.error))[1] - self._log_total[0]
        found = (exp(exactly(end)) if end > -np.inf else other for end, other in ((low, ZERO), (high, ONE)))
        return minimum(between(*found), most)

    def _log_numerator(self, epsilon: float) -> tuple[float, float]:
        half = self.noise.half(self.dim)

        def phi(c: Array) -> Array:
            return half.near(c) + np.log(np.maximum(0.0, -np.expm1(epsilon - half.loss(c))))

        return log_integral(phi, 0.0, half.reach(epsilon), 2 * half.error)

    def epsilon(self, delta: Number) -> Number:
        """The point where the decreasing δ(ε) passes δ: guessed, then verified on both sides."""
        if self.delta(ZERO).b <= delta.a:
            return ZERO
        target = log(delta)

        def above(epsilon: float) -> float:
            found = self.delta(number(epsilon))
            return float((log(real(found.mid) if found.mid > 0 else _NOTHING) - target).mid)

        guess = number(falling_root(above, 0.0, up(self.pure), 1e-7)[0]) if above(0.0) > 0 else ZERO
        for slack in ("1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1"):
            low, high = guess * (1 - real(slack)), minimum(self.pure, guess * (1 + real(slack)) + real(slack))
            if self.delta(high).b <= delta.a and (low.b <= 0 or self.delta(low).a > delta.b):
                return between(low, high)
        return between(ZERO, PureBound(self.pure, self.theorem).epsilon(delta))

    epsilon_above = epsilon


@profile_of.register(Direction)
def direction_profile(stage: Direction, around: Surroundings) -> PrivacyProfile:
    """Random directions around unit vectors."""
    outputs = around.outputs
    bound = OppositeBound(stage, outputs.region.dim)
    theorems = (Theorem.SPHERE, Theorem.POST_PROCESSING) if around.after else (Theorem.SPHERE,)
    candidates = (Candidate(outputs.region.farthest(2), bound),) if outputs.exact and around.shown else ()
    return PrivacyProfile(candidates, (PureBound(bound.pure, Theorem.SPHERE), bound), theorems, region=outputs.region)


@reason.register(Direction)
def _(stage: Direction, region: Region, profile: PrivacyProfile) -> str:
    return "Two inputs can have opposite directions"


@metric_reason.register(Direction)
def _(stage: Direction, metric: str) -> str:
    if metric == "angle":
        return ""
    return (
        "Two vectors near 0 are close to each other, but normalise can map them to opposite unit vectors (if "
        "inputs are unit vectors already, leave normalise out)"
    )


@least_loss.register(Direction)
def pair_loss(stage: Direction, pair: Pair) -> Number:
    """The largest loss between two unit vectors."""
    return stage.kappa * (pair.distance(2) if stage.by_distance else pair_angle(pair))


def pair_angle(pair: Pair) -> Number:
    """The angle between two unit vectors."""
    return angle_of(minimum(real(2), pair.distance(2)))


def angle_of(chord: Number) -> Number:
    """The angle between two unit vectors, given their distance: 2 arcsin(c/2).

    >>> round(float(angle_of(real(1)).mid), 9)  # π/3
    1.047197551
    """
    if chord.b >= 2:
        return between(angle_of(real(chord.a)), +PI) if chord.a < 2 else +PI
    return 2 * atan2(chord, sqrt(4 - chord**2))


def loss_per_distance(stage: Direction, metric: str, dim: int) -> Number:
    """The supremum of the loss of two unit vectors over their distance: docs/proofs/sphere.md, point 4."""
    if metric == "angle":
        return stage.kappa
    chord = stage.kappa if stage.by_distance else stage.largest_loss / 2
    return chord * (sqrt(real(dim)) if metric == "linf" else ONE)


def steepest_pair(stage: Direction, metric: str, dim: int) -> Pair:
    """Two unit vectors with the largest loss per unit of distance, or nearly so; opposite ones if they have it."""
    if metric == "linf":
        return Sphere(ONE, dim).farthest(1)
    if metric == "l2" or not stage.by_distance:
        return Sphere(ONE, dim).farthest(2)
    rest = (Block(ZERO, ZERO, dim - 2),) if dim > 2 else ()
    return Pair((Block(ZERO, sin(SMALL_ANGLE), 1), Block(ONE, cos(SMALL_ANGLE), 1), *rest))
