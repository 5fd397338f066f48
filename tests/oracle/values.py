"""What two neighbours can bring to a noise stage, by the definition of the stages before it.

`walk` gives a set whose diameters are exact where `tight`, and upper bounds elsewhere; `pairs` gives pairs that inputs
really have, pushed through the stages in doubles, for lower bounds where nothing better is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mpmath import mp, mpf

from oracle.text import Stage, Unreadable

ZERO, TWO = mpf(0), mpf(2)
P = {"l1": mpf(1), "l2": mpf(2), "linf": mpf("inf")}
WHOLE_NOISES = ("discrete_laplace", "discrete_gaussian")
DIRECTIONS = ("vmf", "purkayastha")
# Added to a vector, or kept from it.
ADDITIVE = (
    *("laplace", "gaussian", "onesided", "leak", "radial", "mahalanobis", "truncated_laplace", "staircase"),
    *WHOLE_NOISES,
)
CHOICES = ("exponential", "noisymax")
NOISES = (*ADDITIVE, *DIRECTIONS, *CHOICES, "flip", "bits", "bounded_laplace")
BIT_KINDS = ("onehot", "sparse", "bits")


def root(n: object, q: mpf) -> mpf:
    """The lq norm of n ones."""
    return mpf(1) if mp.isinf(q) else mpf(n) ** (1 / q)


def whole(value: object) -> int:
    """A count."""
    if not isinstance(value, mpf) or value != int(value) or not 0 <= value < 2**40:
        raise Unreadable(f"not a count: {value}")
    return int(value)


@dataclass(frozen=True)
class Values:
    """A set of vectors (or of pairs of them, for `query` and `rows`), possibly with each repeated some times."""

    kind: str  # everything, ball, box, sphere, minmax, onehot, sparse, bits, categories, query, rows
    dim: int
    p: mpf = TWO
    size: mpf = ZERO  # radius, distance, number of ones
    low: mpf = ZERO
    high: mpf = ZERO
    times: int = 1
    tight: bool = True
    codes: tuple[tuple[int, ...], ...] = ()  # what one person's number can be written as, for `rows` in bits
    rounded: bool = False  # all numbers are whole ones, and all whole ones of the set are reached

    @property
    def unbounded(self) -> bool:
        return self.kind == "everything" or (self.kind == "rows" and mp.isinf(self.high))

    @property
    def whole(self) -> bool:
        """Whether all differences between neighbours are whole numbers."""
        few = (self.kind == "minmax" and self.dim <= 2) or (self.kind == "sphere" and self.dim == 1)
        return self.rounded or few or self.kind in BIT_KINDS or self.constant()

    def constant(self, added: bool = False) -> bool:
        """Whether neighbours never differ."""
        return not self.unbounded and self.diameter(mpf("inf"), added) == 0

    def differing(self, added: bool = False) -> int:
        """In how many coordinates two neighbours can differ at most, before they are repeated."""
        n = self.dim
        if self.kind in ("rows", "categories"):
            return 1 if self.kind == "rows" or n > 1 else 0
        if self.kind == "onehot":
            return 0 if n == 1 and not added else 1 if added else 2
        if self.kind == "sparse":
            ones = int(self.size)
            return ones if added else 0 if n == 1 else min(2 * ones, n)
        if self.kind == "minmax":
            return 0 if n == 1 else n - 1 if added else n
        return n

    def gap(self, added: bool = False) -> mpf:
        """The most that one coordinate differs."""
        if self.unbounded:
            return mp.inf
        if self.kind in ("box", "rows"):
            return max(abs(self.low), abs(self.high)) if added else self.high - self.low
        if self.kind in ("ball", "sphere"):
            return self.size * (1 if added else 2)
        if self.kind == "query":
            return mp.floor(self.size) if self.rounded else self.size
        return mpf(1)

    def rise(self, added: bool = False) -> mpf:
        """The largest total growth of the growing coordinates, from one of two neighbours to the other."""
        if self.kind in ("onehot", "sparse", "minmax") and not added:
            if self.dim == 1:
                return mpf(0)
            return {"onehot": mpf(1), "sparse": min(self.size, mpf(self.dim - 1))}.get(self.kind, mpf(self.dim - 1))
        return self.diameter(mpf(1), added) / self.times

    def diameter(self, q: mpf, added: bool = False) -> mpf:
        """The largest lq distance between neighbours' vectors; with `added`, the largest lq norm of one vector.

        Textbook: of n coordinates that may all differ by D it is D·n^(1/q), of an lp ball of radius D/2 (by symmetry
        the two ends are antipodes) D·n^max(0, 1/q − 1/p).
        """
        if self.unbounded:
            return mp.inf
        if self.kind in ("ball", "sphere", "query"):
            spread = self.dim ** max(mpf(0), (0 if mp.isinf(q) else 1 / q) - (0 if mp.isinf(self.p) else 1 / self.p))
            size = self.size if self.kind == "query" and spread > 1 else self.gap(added)
            if self.kind == "query" and self.rounded and self.p == 2 and q == 2 and self.dim > 1:
                size = mp.sqrt(mp.floor(self.size**2 + mpf(10) ** -30))
            return size * spread * root(self.times, q)
        count = self.differing(added) * self.times
        return self.gap(added) * root(count, q) if count else mpf(0)


def _after(stage: Stage, v: Values) -> Values:
    """The set behind one more stage without noise; whole numbers stay so if they are left alone."""
    found = _behind(stage, v)
    if stage.name == "round":
        return found
    limits = stage.name == "clamp" and stage.low == mp.floor(stage.low) and stage.high == mp.floor(stage.high)
    return replace(found, rounded=v.rounded and (limits or stage.name in ("repeat", "dropout")))


def _behind(stage: Stage, v: Values) -> Values:
    name = stage.name
    if name in ("encode", "decode"):
        if v.diameter(mpf("inf")) == 0:
            return Values("box", v.dim, tight=v.tight)
        return Values("everything", v.dim, tight=v.tight)
    if name in ("repeat", "dropout"):
        return replace(v, times=v.times * whole(stage.times)) if name == "repeat" else v
    if v.times > 1:
        raise Unreadable("stages between repeat and the noise")
    if name in ("category", "hash", "onehot", "bloom"):
        if v.dim != 1 and not (name == "onehot" and v.dim == whole(stage.k)):
            raise Unreadable("one value only")
        kind = {"onehot": "onehot", "bloom": "sparse"}.get(name, "categories")
        tight = v.tight and (v.kind == "everything" or (v.kind == "categories" and name in ("category", "onehot")))
        if v.kind != "everything" and v.dim != whole(stage.k):
            tight = False
        return Values(kind, whole(stage.k), size=getattr(stage, "hashes", mpf(0)), tight=tight)
    if v.kind == "categories":
        raise Unreadable("a category is no vector")
    if name == "clip":
        return _clipped(v, P[str(stage.norm)], stage.radius)  # type: ignore[arg-type]
    if name == "normalise":
        free = v.tight and v.kind in ("everything", "ball", "sphere")
        if v.kind in ("rows", "query"):
            free = False
        return Values("sphere", v.dim, size=mpf(1), tight=free)
    if name == "minmax":
        return Values("minmax", v.dim, tight=v.tight and v.kind in ("everything", "ball", "box", "minmax"))
    if name == "squash":
        return _squashed(v, str(stage.kind))
    if name == "clamp":
        return _clamped(v, stage.low, stage.high)  # type: ignore[arg-type]
    if name == "round":
        return _rounded(v)
    if name == "binary":
        length = 1 + whole(stage.integer) + whole(stage.fraction)
        if v.kind == "rows" and length <= 8:
            codes = _codes(v, whole(stage.integer), whole(stage.fraction))
            return Values("bits", v.dim * length, size=mpf(length), tight=v.tight, codes=codes)
        return Values("bits", v.dim * length, size=mpf(length), tight=v.tight and v.kind == "everything")
    raise Unreadable(f"{name} here")


def _rounded(v: Values) -> Values:
    """The nearest whole numbers, of two the even one: coordinate by coordinate, so that a box becomes a box."""
    if v.kind in (*BIT_KINDS, "minmax", "everything") or v.rounded or (v.kind == "sphere" and v.dim == 1):
        return replace(v, rounded=True)
    if v.kind == "rows":
        ends = (v.low, v.high) if v.unbounded else (mp.nint(v.low), mp.nint(v.high))
        return replace(v, low=ends[0], high=ends[1], rounded=True)
    if v.kind == "query":  # by D + 1 at most; 1/2 and 3/2 become 0 and 2, but 1/2 and 5/2 become 0 and 2, too
        low = mp.floor(v.size)
        far = low + 1 if v.size != low or low % 2 == 1 else low
        return replace(v, p=mpf("inf"), size=far, rounded=True, tight=v.tight and (v.dim == 1 or mp.isinf(v.p)))
    low, high = (v.low, v.high) if v.kind == "box" else (-v.size, v.size)
    exact = v.kind == "box" or v.dim == 1 or (v.kind == "ball" and mp.isinf(v.p))
    return Values("box", v.dim, low=mp.nint(low), high=mp.nint(high), tight=v.tight and exact, rounded=True)


def _parts(budget: mpf, p: mpf, most: int, count: int) -> Iterator[tuple[int, ...]]:
    """Whole numbers that fall, none above `most`, at most `count` of them, whose p-th powers sum up to a budget."""
    yield ()
    if count:
        for first in range(1, min(most, int(mp.floor(budget ** (1 / p) + mpf(10) ** -30))) + 1):
            for rest in _parts(budget - mpf(first) ** p, p, first, count - 1):
                yield (first, *rest)


def shapes(v: Values, added: bool = False) -> list[tuple[tuple[mpf, int], ...]] | None:
    """Shifts (sizes with how many coordinates have each), one of which exceeds each possible shift in each coordinate.

    Of a ball, or of many whole numbers, there is no short list of them: None.
    """
    if v.kind in ("ball", "sphere", "query") and v.dim > 1 and not mp.isinf(v.p):
        if v.kind != "query" or not v.rounded or v.size > 8:
            return None
        every = list(itertools.islice(_parts(v.size**v.p, v.p, 9, min(v.dim, 40)), 400))
        if len(every) == 400:
            return None
        # Left out where one more unit in the largest, or in the next coordinate, is possible too.
        room = v.size**v.p + mpf(10) ** -30
        last = [s for s in every if len(s) == v.dim or mp.fsum(mpf(k) ** v.p for k in (*s, 1)) > room]
        return [tuple((mpf(k), s.count(k) * v.times) for k in sorted(set(s))) for s in last]
    count = v.differing(added) * v.times
    return [((v.gap(added), count),) if count and v.gap(added) > 0 else ()]


def _codes(v: Values, integer: int, fraction: int) -> tuple[tuple[int, ...], ...]:
    """The strings of all numbers between the limits: a sign, and the whole part of |x|·2^fraction, at most the top."""
    found, unit, top = [], 2**fraction, 2 ** (integer + fraction) - 1
    for size in range(top + 1):
        end = mp.inf if size == top else mpf(size + 1) / unit
        digits = tuple(size >> place & 1 for place in range(integer + fraction - 1, -1, -1))
        if v.high >= mpf(size) / unit and v.low < end and v.high >= 0:
            found.append((0, *digits))
        if v.low < 0 and -v.low >= mpf(size) / unit and -v.high < end:
            found.append((1, *digits))
    return tuple(found)


def _clipped(v: Values, p: mpf, radius: mpf) -> Values:
    if v.kind == "everything":
        return Values("ball", v.dim, p=p, size=radius, tight=v.tight)
    if v.kind == "query" and p == 2 and v.p == 2:  # projection to a convex set brings l2 distances no farther apart
        return replace(v, tight=False)
    if v.kind == "ball" and v.p == p:
        return replace(v, size=min(v.size, radius))
    if v.kind in ("onehot", "bits", "sparse", "minmax", "box", "sphere"):
        ones = {"onehot": 1, "sparse": int(v.size)}.get(v.kind, v.dim)
        most = max(abs(v.low), abs(v.high)) * root(v.dim, p) if v.kind == "box" else root(ones, p)
        if v.kind == "sphere":
            most = root(v.dim, p) / root(v.dim, mpf(2)) if p < 2 else mpf(1)
        if most <= radius:
            return v
    ball = Values("ball", v.dim, p=p, size=radius, tight=False)
    return _smaller(ball, v)


def _smaller(new: Values, old: Values) -> Values:
    """Of two outer bounds the one with the smaller l2 diameter."""
    if old.kind in ("rows", "query", "everything"):
        return new
    closer = min((new, old), key=lambda v: v.diameter(mpf(2)))
    return replace(closer, tight=False) if closer.kind in ("ball", "box") else new


def _squashed(v: Values, kind: str) -> Values:
    def at(x: mpf) -> mpf:
        return mp.tanh(x) if kind == "tanh" else 1 / (1 + mp.exp(-x))

    low, high = mpf(-1 if kind == "tanh" else 0), mpf(1)
    if v.kind == "rows":
        ends = (low, high) if v.unbounded else (at(v.low), at(v.high))
        return replace(v, low=ends[0], high=ends[1])
    if v.kind == "everything":
        return Values("box", v.dim, low=low, high=high, tight=v.tight)
    if v.kind == "box":
        return replace(v, low=at(v.low), high=at(v.high))
    if v.kind == "ball" and mp.isinf(v.p):
        return Values("box", v.dim, low=at(-v.size), high=at(v.size), tight=v.tight)
    if v.kind == "query":  # tanh is 1-Lipschitz, the sigmoid 1/4-Lipschitz
        return replace(v, size=v.size * (1 if kind == "tanh" else mpf(1) / 4), tight=False)
    return Values("box", v.dim, low=low, high=high, tight=False)


def _clamped(v: Values, low: mpf, high: mpf) -> Values:
    def at(x: mpf) -> mpf:
        return max(low, min(high, x))

    if v.kind == "rows":
        return replace(v, low=low if v.unbounded else at(v.low), high=high if v.unbounded else at(v.high))
    if v.kind == "everything":
        return Values("box", v.dim, low=low, high=high, tight=v.tight)
    if v.kind == "box":
        return replace(v, low=at(v.low), high=at(v.high))
    if v.kind in (*BIT_KINDS, "minmax") and low <= 0 and high >= 1:
        return v
    if v.kind == "ball" and low <= -v.size and high >= v.size:
        return v
    if v.kind == "query":  # each coordinate comes closer
        return replace(v, tight=False)
    return _smaller(Values("box", v.dim, low=low, high=high, tight=False), v)


def walk(stages: Sequence[Stage], dim: int) -> Values:
    """The set behind these stages; behind noise anything, of which it is not known what neighbours reach."""
    v = Values("everything", dim)
    for i, stage in enumerate(stages):
        if stage.name == "query" and i == 0:
            whole_ones = bool(stage.given.get("whole"))
            size: mpf = stage.distance  # type: ignore[assignment]
            size = mp.floor(size) if whole_ones and (stage.norm != "l2" or dim == 1) else size
            v = Values("query", dim, p=P[str(stage.norm)], size=size, rounded=whole_ones)
        elif stage.name == "rows" and i == 0:
            v = Values("rows", dim, low=-mp.inf, high=mp.inf)
        elif stage.name in ("query", "rows"):
            raise Unreadable(f"{stage.name} comes first")
        elif stage.name in ("flip", "bits"):
            v = Values("bits" if v.kind != "categories" else "categories", v.dim, size=mpf(1), tight=False)
        elif stage.name in CHOICES:
            v = Values("categories", v.dim * v.times, tight=False)
        elif stage.name in DIRECTIONS:
            v = Values("sphere", v.dim, size=mpf(1), tight=False)
        elif stage.name == "bounded_laplace":
            low, high = stage.low, stage.high
            v = Values("box", v.dim * v.times, low=low, high=high, tight=False)  # type: ignore[arg-type]
        elif stage.name in NOISES:
            v = Values("everything", v.dim * v.times, tight=False)
        else:
            v = _after(stage, v)
    return v


# ── Pairs that inputs really have, in doubles ───────────────────────────────────────────────────


def run(stage: Stage, x: np.ndarray) -> np.ndarray:
    """Apply a stage without noise to rows of doubles."""
    if stage.name in ("encode", "decode"):
        return x
    if stage.name == "repeat":
        return np.tile(x, whole(stage.times))
    if stage.name == "clip":
        norm = np.linalg.norm(x, ord=float(P[str(stage.norm)]), axis=-1, keepdims=True)
        return x * np.minimum(1.0, float(stage.radius) / np.maximum(norm, 1e-300))  # type: ignore[arg-type]
    if stage.name == "normalise":
        return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300)
    if stage.name == "minmax":
        low, high = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
        return (x - low) / np.where(high > low, high - low, 1.0)
    if stage.name == "squash":
        return np.tanh(x) if stage.kind == "tanh" else 0.5 + 0.5 * np.tanh(x / 2)
    if stage.name == "clamp":
        return np.clip(x, float(stage.low), float(stage.high))  # type: ignore[arg-type]
    if stage.name == "round":
        return np.rint(x)
    if stage.name == "binary":
        return _binary(x, whole(stage.integer), whole(stage.fraction))
    raise Unreadable(f"{stage.name} is not run")


def _binary(x: np.ndarray, integer: int, fraction: int) -> np.ndarray:
    size = np.minimum(np.floor(np.abs(x) * 2.0**fraction), 2.0 ** (integer + fraction) - 1).astype(np.int64)
    bits = [np.signbit(x), *((size >> k & 1) for k in range(integer + fraction - 1, -1, -1))]
    return np.stack(bits, axis=-1).reshape(*x.shape[:-1], -1).astype(float)


def _starts(dim: int, rng: np.random.Generator) -> np.ndarray:
    signs = np.array(list(itertools.islice(itertools.product((-1.0, 1.0), repeat=dim), 32)))
    units = np.concatenate([np.eye(dim), -np.eye(dim)])
    shapes = np.concatenate([signs, units, rng.normal(size=(12, dim))])
    return np.concatenate([shapes * scale for scale in (1e4, 7.0, 1.0, 0.3)] + [np.zeros((1, dim))])


def pairs(stages: Sequence[Stage], dim: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two blocks of rows: values that neighbouring inputs bring to the end of these stages, row by row."""
    rng, first = np.random.default_rng(0), stages[0].name if stages else ""
    if dim > 8 or any(s.name in NOISES or s.name in ("category", "hash", "bloom", "onehot") for s in stages):
        return
    x = _starts(dim, rng)
    plain = [s for s in stages if s.name not in ("query", "rows", "dropout")]
    if first == "query":
        steps = x / np.maximum(np.linalg.norm(x, ord=float(P[str(stages[0].norm)]), axis=1, keepdims=True), 1e-300)
        steps = steps * float(stages[0].distance)  # type: ignore[arg-type]
        one, other = np.repeat(x, len(steps), axis=0), np.tile(steps, (len(x), 1))
        other = one + other * (1 - 1e-9)
        if stages[0].given.get("whole"):
            one, other = np.rint(one), np.rint(one) + np.trunc(other - one + np.sign(other - one) * 1e-6)
    elif first == "rows":
        one, other = np.repeat(x, len(x), axis=0), np.tile(x, (len(x), 1))
        place = np.arange(len(one)) % dim
        mixed = one.copy()
        mixed[np.arange(len(one)), place] = other[np.arange(len(one)), place]
        other = mixed
    else:
        one, other = np.repeat(x, len(x), axis=0), np.tile(x, (len(x), 1))
    for stage in plain:
        one, other = run(stage, one), run(stage, other)
    yield one, other
