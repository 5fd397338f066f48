"""The literature's classic algorithms, right and wrong, each with its exact ε: what an audit is measured on.

`CLASSICS` has one line for each algorithm of Ding et al. (2018), Lyu, Su and Li (2017) and Bichsel et al. (2021),
with the settings under which DP-Sniper's figures were obtained. `true_epsilon` is the smallest pure ε over all
neighbouring inputs, derived beside the line; some of these are limits that only inputs far from the threshold come
near.

Written ⊥ below, ⊤ above, F the distribution function and f the density of Laplace noise of scale b. Two facts carry
most derivations: F(t)/F(t−1) ≤ e^(1/b), with equality as long as t ≤ 0, and f(t)/f(t−1) ≤ e^(1/b), with equality
where t ≤ 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpassay.pipeline.mechanism import Mechanism

EPSILON = 0.1


# ── Mechanisms: sample(x, n, rng) gives n outputs for the input x, an array ────────────────────────


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise on every number."""

    scale: float

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        shape = n if len(x) == 1 else (n, len(x))
        return x + rng.laplace(scale=self.scale, size=shape)


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """A count between 0 and `most` with two-sided geometric noise, P(k) ∝ e^(−ε|k|), cut off at both ends."""

    epsilon: float
    most: int

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        up, down = rng.geometric(-math.expm1(-self.epsilon), size=(2, n))
        return np.clip(x + up - down, 0, self.most)


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """The largest of several noisy numbers: where it stands, or (wrongly) what it is."""

    noise: Literal["laplace", "exponential"]
    scale: float
    gives: Literal["index", "value"]

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        draw = rng.laplace if self.noise == "laplace" else rng.exponential
        noisy = x + draw(scale=self.scale, size=(n, len(x)))
        return noisy.max(axis=1) if self.gives == "value" else noisy.argmax(axis=1)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Is query + Laplace(`query_scale`) ≥ `threshold` + Laplace(`threshold_scale`)? Asked of one query after the other.

    An output has one entry for each query: 0 for ⊥, and for ⊤ either 1, or the noisy value that was compared, or the
    query with fresh noise of `release_scale`. After `stop` times ⊤ the run ends; entries that are never reached are
    NaN.
    """

    threshold: float
    threshold_scale: float
    query_scale: float
    stop: float = math.inf
    refresh: bool = False  # whether the threshold gets new noise after each ⊤
    gives: Literal["mark", "compared", "fresh"] = "mark"
    release_scale: float = 0.0

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        out = np.full((len(x), n), np.nan)
        tops = np.zeros(n, dtype=np.int64)
        level = self.threshold + rng.laplace(scale=self.threshold_scale, size=n)
        for answer, query in zip(out, x, strict=True):
            noisy = query + rng.laplace(scale=self.query_scale, size=n)
            running = tops < self.stop
            above = running & (noisy >= level)
            answer[running] = 0.0
            answer[above] = self._released(query, noisy[above], rng)
            tops += above
            if self.refresh:
                level[above] = self.threshold + rng.laplace(scale=self.threshold_scale, size=int(above.sum()))
        return out.T

    def _released(self, query: float, compared: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.gives == "mark":
            return np.ones_like(compared)
        return (
            compared if self.gives == "compared" else query + rng.laplace(scale=self.release_scale, size=len(compared))
        )


@dataclass(frozen=True, slots=True)
class Rappor:
    """A value's hashes set bits; each bit is randomised once for good (f) and once for each report (p, q).

    With p = 0 and q = 1 the second step changes nothing: one-time RAPPOR. Hash j of v is (m_j(v+1) mod 101) mod `bits`.
    """

    f: float
    p: float = 0.0
    q: float = 1.0
    bits: int = 20
    multipliers: tuple[int, ...] = (7, 19, 37, 73)

    def filled(self, value: float) -> np.ndarray:
        """The Bloom filter of one value."""
        places = [int(value + 1) * m % 101 % self.bits for m in self.multipliers]
        return np.isin(np.arange(self.bits), places)

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        kept = rng.random((n, self.bits))
        permanent = np.where(kept < self.f, kept < self.f / 2, self.filled(x[0]))
        return (rng.random((n, self.bits)) < np.where(permanent, self.q, self.p)).astype(float)


@dataclass(frozen=True, slots=True)
class RunningSum:
    """The sums of the first 1, 2, … outputs of another mechanism."""

    mechanism: Mechanism

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.cumsum(self.mechanism.sample(x, n, rng), axis=1)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several mechanisms on the same input, each with its own noise, and their outputs side by side."""

    mechanisms: tuple[Mechanism, ...]

    def sample(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.column_stack([mechanism.sample(x, n, rng) for mechanism in self.mechanisms])


def sparse_vector(algorithm: int, epsilon: float, c: int, threshold: float) -> SparseVector:
    """Algorithm 1 to 6 of Lyu, Su and Li, "Understanding the sparse vector technique", for queries of sensitivity 1."""
    half, quarter = epsilon / 2, epsilon / 4
    match algorithm:
        case 1:
            return SparseVector(threshold, 1 / half, 2 * c / half, stop=c)
        case 2:
            return SparseVector(threshold, c / half, 2 * c / half, stop=c, refresh=True)
        case 3:
            return SparseVector(threshold, 1 / half, c / half, stop=c, gives="compared")
        case 4:
            return SparseVector(threshold, 1 / quarter, 1 / (3 * quarter), stop=c)
        case 5:
            return SparseVector(threshold, 1 / half, 0.0)
        case 6:
            return SparseVector(threshold, 1 / half, 1 / half)
    raise ValueError(f"there is no sparse vector algorithm {algorithm}: they are numbered 1 to 6")


def numerical_sparse_vector(epsilon: float, c: int, threshold: float) -> SparseVector:
    """Dwork and Roth's: ε₁ = 8ε/9 finds the queries above, ε₂ = 2ε/9 is for their values. It is ε-DP.

    A run is c rounds, each with threshold noise of its own and up to one ⊤. Change every query by at most 1. In a
    round move the threshold's noise by 1, so that every ⊥ stays one: costs 1/(2c/ε₁) = ε₁/(2c). Move the noise of the
    one query that is ⊤ by at most 2, so that it stays ⊤: costs 2/(4c/ε₁) = ε₁/(2c). So a round costs ε₁/c and c of
    them ε₁. Each of at most c values has noise of its own and costs 1/(2c/ε₂) = ε₂/(2c), together ε₂/2. The sum is
    8ε/9 + ε/9 = ε.
    """
    first, second = 8 * epsilon / 9, 2 * epsilon / 9
    return SparseVector(
        threshold, 2 * c / first, 4 * c / first, stop=c, refresh=True, gives="fresh", release_scale=2 * c / second
    )


# ── The table ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Classic:
    """One algorithm, what it is sold as, what is true of it, and what the best published audit found."""

    name: str
    mechanism: Mechanism
    dim: int
    norm: Literal["l1", "linf", "values"]  # one entry by at most 1; every entry by at most 1; two of `values`
    claimed: float
    right: bool
    true_epsilon: float
    sniper: float | None  # DP-Sniper's lower bound, at 90% from 2·10⁸ runs of each input
    pair: tuple[tuple[float, ...], tuple[float, ...]]  # neighbours on which much of the true ε shows in 10⁷ runs
    values: tuple[float, ...] = ()
    step: float = math.inf  # how far apart two of `values` may be to be neighbours


RAPPOR = Rappor(f=0.75, p=0.45, q=0.55)
ONE_TIME_RAPPOR = Rappor(f=0.95)

CLASSICS: tuple[Classic, ...] = (
    # f(t)/f(t−1) = e^ε for every output at or below both inputs.
    Classic("laplace", Laplace(1 / EPSILON), 1, "l1", 0.1, True, EPSILON, 0.097, ((0,), (1,))),
    # P(0 | x) = e^(−εx)/(1 + e^−ε), and every other ratio is e^±ε too.
    Classic(
        *("truncated geometric", TruncatedGeometric(EPSILON, 5), 1, "values", 0.1, True, EPSILON, None, ((0,), (1,))),
        values=tuple(range(6)),
        step=1,
    ),
    # One of the five counts moves: the Laplace mechanism; with scale ε its ratio is e^(1/ε) at or below both counts.
    Classic("noisy histogram 1", Laplace(1 / EPSILON), 5, "l1", 0.1, True, EPSILON, None, ((0,) * 5, (1, 0, 0, 0, 0))),
    Classic("noisy histogram 2", Laplace(EPSILON), 5, "l1", 0.1, False, 1 / EPSILON, 4.60, ((0,) * 5, (1, 0, 0, 0, 0))),
    # Given the others' noise an index wins with probability 1 − F(gap), and the gap moves by at most 2: 2/(2/ε) = ε.
    # The ratio tends to e^ε as the first number falls behind. Exponential noise has P(noise > gap) = e^(−gap/b) for
    # every gap ≥ 0, and the gap is never below 0 where the first is not above the others: e^ε exactly.
    Classic(
        *("noisy max 1", NoisyMax("laplace", 2 / EPSILON, "index"), 5, "linf", 0.1, True, EPSILON, None),
        ((-20, 0, 0, 0, 0), (-21, 1, 1, 1, 1)),
    ),
    Classic(
        *("noisy max 2", NoisyMax("exponential", 2 / EPSILON, "index"), 5, "linf", 0.1, True, EPSILON, None),
        ((0,) * 5, (-1, 1, 1, 1, 1)),
    ),
    # All five noisy numbers cost 5·ε/2, so their maximum costs no more; P(max ≤ 0) is 2^−5 at five zeros and
    # e^(−5ε/2)·2^−5 at five ones. With exponential noise the maximum is never below the largest number: an output may
    # be impossible.
    Classic(
        *("noisy max 3", NoisyMax("laplace", 2 / EPSILON, "value"), 5, "linf", 0.1, False, 5 * EPSILON / 2, 0.248),
        ((0,) * 5, (1,) * 5),
    ),
    Classic(
        *("noisy max 4", NoisyMax("exponential", 2 / EPSILON, "value"), 5, "linf", 0.1, False, math.inf, 0.346),
        ((10, -10, -10, -10, -10), (11, -10, -10, -10, -10)),
    ),
    # 1 and 2: moving the threshold's noise by 1 keeps every ⊥, moving the last query's by 2 keeps ⊤: ε/2 + 2/(4/ε) =
    # ε. For ⊥⁹⊤ both are needed in full as nine queries L rise to L + 1 and the tenth falls by 1, L → ∞: the
    # integrand over the threshold's noise z, e^(−εz/2)·e^(9εz/4)·e^(−εz/4) up to L, has its mass next to z = L, where
    # every ratio is exact.
    Classic(
        *("sparse vector 1", sparse_vector(1, EPSILON, 1, 0.5), 10, "linf", 0.1, True, EPSILON, 0.086),
        ((0,) * 7 + (10,) * 3, (1,) * 7 + (9,) * 3),
    ),
    Classic(
        *("sparse vector 2", sparse_vector(2, EPSILON, 1, 1.0), 10, "linf", 0.1, True, EPSILON, None),
        ((0,) * 7 + (10,) * 3, (1,) * 7 + (9,) * 3),
    ),
    # 3: the output ⊥ᵏv has density f(v−x_{k+1}) ∫ p(z) ΠF(T+z−x_i) dz over z ≤ v−T, so each of at most ten queries
    # costs at most ε/2 without moving z; all ten do so at once, exactly, for ⊥⁹v with v ≤ 0, ten zeros and ten ones:
    # 10·ε/2.
    Classic(
        *("sparse vector 3", sparse_vector(3, EPSILON, 1, 1.0), 10, "linf", 0.1, False, 5 * EPSILON, 0.172),
        ((1,) * 6 + (5, 7, 0, 1), (2,) * 6 + (6, 8, -1, 0)),
    ),
    # 4: as 1, with ε/4 for the threshold and 2·3ε/4 for the query above: 7ε/4, in the same limit.
    Classic(
        *("sparse vector 4", sparse_vector(4, EPSILON, 1, 1.0), 10, "linf", 0.1, False, 7 * EPSILON / 4, 0.169),
        ((1,) * 6 + (5,) * 4, (2,) * 6 + (4,) * 4),
    ),
    # 5: one threshold and no other noise, so a larger query is never ⊥ while a smaller one is ⊤. A pair l, l + 15/8
    # changes its order when it becomes l + 1, l + 7/8: then ⊥⊤ cannot be.
    Classic(
        *("sparse vector 5", sparse_vector(5, EPSILON, 1, 1.0), 10, "linf", 0.1, False, math.inf, 1.76),
        (
            tuple(low + more for low in (-4, -2, 0, 2, 4) for more in (0, 1.875)),
            tuple(low + more for low in (-4, -2, 0, 2, 4) for more in (1, 0.875)),
        ),
    ),
    # 6: every query costs ε/2, without moving the threshold: at most 10·ε/2. In the limit all is needed: five queries
    # K rise and are ⊥, five at −K fall and are ⊤. The factors of the ten together do not depend on z while |z| < K.
    Classic(
        *("sparse vector 6", sparse_vector(6, EPSILON, 1, 1.0), 10, "linf", 0.1, False, 5 * EPSILON, 0.272),
        ((3,) * 5 + (-1,) * 5, (2,) * 5 + (0,) * 5),
    ),
    # c = 2. Of 3: ten queries at 1/(2c/ε) = ε/4 each. Of 4: ε/4 + 2·2·3ε/4. Both are needed in the limit: eight
    # queries L rise and are ⊥, two low ones fall and are ⊤, with values above those two and below L.
    Classic(
        "sparse vector 3 and 4",
        SideBySide((sparse_vector(3, EPSILON, 2, 1.0), sparse_vector(4, EPSILON, 2, 1.0))),
        *(10, "linf", 0.2, False, 10 * EPSILON / 4 + 13 * EPSILON / 4, 0.261),
        ((1,) * 10, (2,) * 5 + (0,) * 5),
    ),
    # At most ε is proven above. Needed in full in the limit: twice four queries L that rise and are ⊥, then one that
    # falls and is ⊤ with a value above it. Over the threshold's noise, in units of ε₁/(4c), four ⊥ grow by 4 and
    # noise and ⊤ fall by 3.
    Classic(
        *("numerical sparse vector", numerical_sparse_vector(EPSILON, 2, 1.0), 10, "linf", 0.1, True, EPSILON, None),
        (((0,) * 4 + (10,)) * 2, ((1,) * 4 + (9,)) * 2),
    ),
    # A bit is 1 with probability q* = f(p+q)/2 + (1−f)q if it is set, else p* = f(p+q)/2 + (1−f)p. Here p* = 1 − q*,
    # so each of the bits in which two values differ, at most 2·4, costs ln(q*/p*). Values 0 and 11 share no bit: the
    # worst pair, with 1 on all four bits of the one and 0 on all four of the other. Neither algorithm is wrong: this
    # is what they promise.
    Classic(
        *("rappor", RAPPOR, 1, "values", 8 * math.log(0.5125 / 0.4875), True, 8 * math.log(0.5125 / 0.4875), 0.293),
        ((0,), (11,)),
        values=tuple(range(100)),
    ),
    Classic(
        *("one-time rappor", ONE_TIME_RAPPOR, 1, "values", 8 * math.log(0.525 / 0.475), True),
        *(8 * math.log(0.525 / 0.475), 0.598, ((0,), (11,))),
        values=tuple(range(100)),
    ),
    # The differences of its outputs are the ten numbers with Laplace noise of scale 1/ε each. It is ε-DP if one
    # number changes, and sold so; where all ten may change it is 10ε, for ten differences at or below both.
    Classic(
        *("prefix sum", RunningSum(Laplace(1 / EPSILON)), 10, "linf", 0.1, False, 10 * EPSILON, 0.504),
        ((0,) * 10, (1,) * 10),
    ),
    # Independent answers add up, and all are at or below both inputs at once with probability 2^−20: 20·0.005.
    Classic(
        *("twenty laplace answers", SideBySide((Laplace(1 / 0.005),) * 20), 1, "l1", 0.1, True, 20 * 0.005, None),
        ((0,), (1,)),
    ),
)

for kind in {type(classic.mechanism) for classic in CLASSICS}:
    kind.independent_rows = True  # each row has random numbers of its own, so runs may be made in batches
