"""Tokens drawn from the softmax of clipped logits: the distribution as integer weights, and its ε.

Clipped logits become integer weights, and a token is drawn in proportion to them. The largest is at most e^w times the
smallest, w = (high − low)/T, whatever a network computes and however it is rounded. So the loss of a token is at most
that of docs/proofs/exponential.md, point 3, and none of it relies on floating-point numbers.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpassay.core.numbers import Number, double_above, exp, log, number, real, sqrt, up
from dpassay.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

WIDTH = 20.0
MOST_TOKENS = 24  # of a text, if no number is given
SURPLUS = 5.0  # of a token's ε, beyond what makes the likeliest token as likely as all that are clipped together
TEMPERATURE = 0.3  # if no limits are given: the likeliest tokens, with some variety
SUM_BITS = 62  # of the weights of all tokens together
Below = Callable[[NDArray[np.int64]], NDArray[np.int64]]  # uniform integers, each below its limit


class DrawnText(str):
    """A text that was drawn token by token, with the tokens.

    >>> text = DrawnText("to rome", (5, 9, 2))
    >>> text, text.tokens
    ('to rome', (5, 9, 2))
    """

    tokens: tuple[int, ...]

    def __new__(cls, text: str, tokens: tuple[int, ...]) -> DrawnText:
        made = super().__new__(cls, text)
        made.tokens = tokens
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return DrawnText, (str(self), self.tokens)


@dataclass(frozen=True, slots=True)
class LogitLimits:
    """The range that logits are clipped to: [low, high], or a given width below the largest of them.

    Logits may be shifted before they are clipped: that does not change the softmax. With limits relative to the
    largest, the likeliest tokens keep their order, whatever the size of a model's logits.

    >>> LogitLimits.read(width="12"), LogitLimits.read(low="-5", high="5")
    (LogitLimits(low=-12.0, high=0.0, shifted=True), LogitLimits(low=-5.0, high=5.0, shifted=False))
    """

    low: float
    high: float
    shifted: bool = False

    @staticmethod
    def read(low: Any = None, high: Any = None, width: Any = None) -> LogitLimits:
        """The limits from their settings: `low` and `high`, or `width`."""
        if (low is None) != (high is None) or (low is not None and width is not None):
            raise InputError("logits are clipped to low=…,high=… or to width=… below the largest: give one of the two")
        if low is None or high is None:
            return LogitLimits(-real_setting(WIDTH if width is None else width, "width", 1e-3, 1e4), 0.0, shifted=True)
        limits = LogitLimits(real_setting(low, "low", -1e4, 1e4), real_setting(high, "high", -1e4, 1e4))
        if limits.high - limits.low < 1e-3:
            raise InputError(f"high must be above low, got low={low} and high={high}")
        return limits

    @property
    def width(self) -> Number:
        """How far apart two clipped logits can be."""
        return number(self.high) - number(self.low)

    def clip(self, logits: Tensor) -> Tensor:
        """Logits within the limits, in double precision; NaN counts as the lowest."""
        wide = logits.double().nan_to_num(nan=-1e300, posinf=1e300, neginf=-1e300)
        if self.shifted:
            wide = wide - wide.amax(dim=-1, keepdim=True)
        return wide.clamp(self.low, self.high)


@dataclass(frozen=True, slots=True)
class TokenLaw:
    """One token of `size`, drawn from the softmax of clipped logits at a temperature.

    >>> law = TokenLaw.keeping(20, LogitLimits(-5, 5), 32_128)
    >>> round(law.temperature, 5), law.epsilon <= 20
    (0.96745, True)
    """

    limits: LogitLimits
    size: int
    temperature: float

    @staticmethod
    def keeping(epsilon: float, limits: LogitLimits, size: int, times: int = 1) -> TokenLaw:
        """The law with the lowest temperature at which `times` tokens together lose at most ε."""
        if size < 2:
            raise InputError(f"a token is drawn from 2 or more, got {size}")
        return _keeping(float(epsilon), limits, size, times)

    @property
    def spread(self) -> Number:
        """The logarithm of the largest possible weight over the smallest."""
        return self.limits.width / number(self.temperature)

    @property
    def loss(self) -> Number:
        """The exact loss of one token, over all pairs of clipped logits: exponential.md, point 3."""
        likely = exp(self.spread)
        return self.spread + log((1 + (self.size - 1) * likely) / (likely + self.size - 1))

    @property
    def epsilon(self) -> float:
        """The loss of one token, rounded up."""
        return up(self.loss)

    @property
    def bits(self) -> int:
        """The largest weight is 2 to this power; the weights of all tokens add up to less than 2^62."""
        return SUM_BITS - self.size.bit_length()

    @property
    def least(self) -> int:
        """The smallest weight: at least e^−spread times the largest, and at least 1."""
        return _least(self)

    def weights(self, logits: Tensor) -> Tensor:
        """The integer weights in proportion to which tokens are drawn; logits have one row per draw."""
        import torch

        clipped = self.limits.clip(logits)
        relative = (clipped - clipped.amax(dim=-1, keepdim=True)) / self.temperature
        return (relative.exp() * 2.0**self.bits).to(torch.int64).clamp(self.least, 1 << self.bits)

    def draw(self, logits: Tensor, below: Below) -> tuple[Tensor, Tensor]:
        """A token for each row, and its log-probability."""
        import torch

        sums = self.weights(logits).cumsum(dim=-1)
        totals = sums[..., -1]
        places = torch.from_numpy(below(totals.cpu().numpy())).to(sums.device)
        tokens = torch.searchsorted(sums, places[..., None], right=True)
        before = torch.where(tokens > 0, sums.gather(-1, (tokens - 1).clamp(min=0)), 0)
        weights = sums.gather(-1, tokens) - before
        return tokens[..., 0], weights[..., 0].double().log() - totals.double().log()

    def log_probs(self, logits: Tensor) -> Tensor:
        """The log-probability of every token, from the same integer weights."""
        weights = self.weights(logits)
        return weights.double().log() - weights.sum(dim=-1, keepdim=True).double().log()

    def pipeline(self, times: int) -> str:
        """Drawing `times` tokens, as a pipeline that `dpassay check` reads."""
        clamped = f"clamp({self.limits.low!r}, {self.limits.high!r})"
        return f"encode | {clamped} | softmax({self.temperature!r}) | times({times})"

    def to_dict(self) -> dict[str, Any]:
        """How a token is drawn, ready for JSON."""
        relative = " of the largest" if self.limits.shifted else ""
        return {
            "logits_clipped_to": f"[{self.limits.low:g}, {self.limits.high:g}]{relative}",
            "temperature": self.temperature,
            "tokens_to_choose_from": self.size,
            "epsilon_per_token": self.epsilon,
            "weights": f"whole numbers from {self.least} to 2^{self.bits}",
        }


def affordable(epsilon: float, size: int) -> int:
    """How many tokens a total ε can afford with few random ones among them; `size` is that of the vocabulary.

    A token that costs e has a spread of about e − ln k. The likeliest token is then e^(e − 2 ln k) times as likely as
    all k clipped ones together: at 2 ln k + 5 they come in 1% of the draws, and below 2 ln k they are most of them.

    >>> [affordable(epsilon, 49_152) for epsilon in (10, 100, 250, 500, 1000, 2000)]
    [1, 4, 9, 19, 24, 24]
    """
    return min(MOST_TOKENS, max(1, round(epsilon / (2 * math.log(size) + SURPLUS))))


def sharpest(epsilon: float, size: int, times: int) -> LogitLimits:
    """The limits at which `times` tokens together lose ε at a low temperature.

    The spread of the weights follows from ε alone. A wide range of logits needs a high temperature for it, at which the
    likeliest token is hardly preferred to the next.

    >>> limits = sharpest(100, 49_152, 4)
    >>> round(-limits.low, 2), round(TokenLaw.keeping(100, limits, 49_152, 4).temperature, 3)
    (4.27, 0.3)
    """
    spread = up(TokenLaw.keeping(epsilon, LogitLimits(-1.0, 0.0, shifted=True), size, times).spread)
    return LogitLimits(-min(max(TEMPERATURE * spread, 1e-3), WIDTH), 0.0, shifted=True)


@lru_cache(maxsize=4096)
def _keeping(asked: float, limits: LogitLimits, size: int, times: int) -> TokenLaw:
    epsilon = number(asked)
    share = exp(epsilon / times)
    # A spread w has this ε if e^ε = x(1 + (k−1)x)/(x + k−1) with x = e^w: a quadratic equation for x.
    others = real(size - 1)
    likely = (share - 1 + sqrt((share - 1) ** 2 + 4 * others**2 * share)) / (2 * others)
    law = TokenLaw(limits, size, double_above(limits.width / log(likely)))
    while up(times * law.loss) > asked:  # rounding in the last digit of the temperature: go up
        law = TokenLaw(limits, size, math.nextafter(law.temperature, math.inf))
    return law


@lru_cache(maxsize=4096)
def _least(law: TokenLaw) -> int:
    return max(1, math.ceil(up(exp(-law.spread) * 2**law.bits)))


def seeded(rng: np.random.Generator) -> Below:
    """Random integers below limits, from a generator: for audits and simulations."""
    return lambda limits: rng.integers(0, limits, dtype=np.int64)


def secret(limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Unpredictable random integers below limits: for texts that are released.

    >>> secret(np.array([1, 1])).tolist()
    [0, 0]
    """
    return np.array([secrets.randbelow(limit) for limit in limits.ravel().tolist()], dtype=np.int64).reshape(
        limits.shape
    )


def real_setting(value: Any, what: str, low: float, high: float) -> float:
    """A setting that is a number.

    >>> real_setting("0.5", "clip", 0, 1)
    0.5
    """
    try:
        given = float(value)
    except (TypeError, ValueError, OverflowError):
        given = math.nan
    if not low <= given <= high:
        raise InputError(f"{what} must be a number from {low:g} to {high:g}, got {value!r:.60}")
    return given


def whole(value: Any, what: str, low: int, high: int) -> int:
    """A setting that is a whole number.

    >>> whole("3.5", "tokens", 1, 100)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: tokens must be a whole number from 1 to 100, got '3.5'
    """
    try:
        given = int(value) if not isinstance(value, bool) and int(value) == float(value) else low - 1
    except (TypeError, ValueError, OverflowError):
        given = low - 1
    if not low <= given <= high:
        raise InputError(f"{what} must be a whole number from {low:,} to {high:,}, got {value!r:.60}")
    return given
