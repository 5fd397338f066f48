"""Laplace noise on all vectors of an l2 ball at once, level by level. Proof: docs/proofs/levels.md.

`level_tables` cuts the ball into levels, `level_branches` finds the largest δ(ε) of all vectors of levels.
"""

import math
from functools import cached_property

from dpassay.core.numbers import ONE, ZERO, Number, exactly, exp, log, maximum, middle, minimum, real, sqrt, up
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import GeneralBound
from dpassay.exact.profiles.level_branches import log_delta
from dpassay.exact.profiles.level_tables import COUNTED, Levels
from dpassay.exact.profiles.saddlepoint import SaddlepointBound
from dpassay.pipeline.distributions import Laplace
from dpassay.values import dataclass

SMALLEST_NORM, LARGEST_NORM, LARGEST_NORM_OF_MANY = 1e-6, 16.0, 7.5  # scales; above these other bounds are as good
SHORT, MEDIUM, LONG = 1e-11, 1e-4, 0.02  # δ below which the integral of saddlepoint.md is as good; norms up to 1.25, 4


@dataclass(frozen=True)
class LevelBound(GeneralBound):
    """Laplace noise, every shift vector whose lp norm is at most `norm` scales, p ≥ 2. docs/proofs/levels.md.

    >>> bound = LevelBound(exactly(0.5), 2.0, 8)
    >>> 1.218 < middle(bound.epsilon(real("1e-3"))) < 1.235
    True
    """

    norm: Number
    p: float
    dim: int
    theorem: Theorem = Theorem.LEVELS

    @property
    def pure(self) -> Number:
        return self._integral.pure

    @cached_property
    def _integral(self) -> SaddlepointBound:
        return SaddlepointBound(self.norm, self.p, self.dim)

    @cached_property
    def euclidean(self) -> float:
        """The largest l2 norm, from above."""
        return up(sqrt(self.dim * exactly(self._integral.mean_square)))

    @property
    def is_useful(self) -> bool:
        """Whether it is better than other bounds at some δ."""
        largest = LARGEST_NORM if self.dim <= COUNTED else LARGEST_NORM_OF_MANY
        return SMALLEST_NORM < self.euclidean <= largest and self.dim > 1

    def _is_useful_at(self, log_delta: float) -> bool:
        least = SHORT if self.euclidean <= 1.25 else MEDIUM if self.euclidean <= 4.01 else LONG
        return self.is_useful and log_delta > math.log(least)

    def best_tilt(self, epsilon: Number) -> float:
        """The tilt that gives good levels, one of few so that nearly equal ε share a table."""
        return math.exp(round(4 * math.log(self._integral.best_tilt(epsilon))) / 4)

    def _levels(self, epsilon: float) -> Levels:
        return Levels.of(self.euclidean, self.dim, self.best_tilt(exactly(epsilon)), epsilon)

    def delta(self, epsilon: Number) -> Number:
        claimed, tilt = middle(real(epsilon.a)), self.best_tilt(epsilon)
        near = self._integral.near(tilt) - tilt * claimed
        if not 0 <= claimed < middle(self.pure) or not self._is_useful_at(near + 1):
            return ONE
        levels = self._levels(claimed)
        return minimum(ONE, exp(exactly(log_delta(levels, claimed, levels.reach(claimed)))))

    def epsilon(self, delta: Number) -> Number:
        if not self._is_useful_at(middle(log(delta))):
            return self.pure
        wanted, found, near = middle(log(real(delta.a))), 0.0, min(middle(self.pure), self._guess(delta))
        for attempt in range(6):
            tilt = self.best_tilt(exactly(near))
            levels = self._levels(near)
            least = _least(levels, wanted, near, tilt)
            near = found = max(found, least) if attempt > 1 else least  # other levels, which that ε has, may be better
            fits = self._levels(found) == levels or attempt > 1
            if fits and self.delta(exactly(found)).b <= delta.a:
                return maximum(ZERO, minimum(self.pure, exactly(found)))
        return self.pure

    def _guess(self, delta: Number) -> float:
        """About what ε(δ) is: slightly more than that of 1, 2, 4 or all shifts, if they are equal."""
        counts = {count for count in (1, 2, 4, self.dim) if count <= self.dim}
        shifts = ((exactly(self.euclidean) / sqrt(count), count) for count in counts)
        return 1.008 * max(up(PrivacyLoss.of_shifts(Laplace(ONE), [shift]).epsilon_number(delta)) for shift in shifts)

    def epsilon_above(self, delta: Number) -> Number:
        return self.pure  # a table is not quick


def _least(levels: Levels, wanted: float, near: float, slope: float) -> float:
    """An ε at which ln δ is just as small as wanted; close to it ln δ falls about by the slope. Rows cost time."""
    reach = levels.reach(near)
    low, high, at = -1, reach, min(reach - 1, round(near / levels.step))
    while high - low > 1:
        over = log_delta(levels, at * levels.step, reach) - wanted
        low, high = (at, high) if over > 0 else (low, at)
        at = max(low + 1, min(high - 1, math.ceil(at + over / (slope * levels.step) - (over <= 0))))
    left, right = max(0, low) * levels.step, high * levels.step
    for _ in range(22):
        half = (left + right) / 2
        left, right = (half, right) if log_delta(levels, half, reach) > wanted else (left, half)
    return right * (1 + 1e-8)
