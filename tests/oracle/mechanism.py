"""From a pipeline's text to what is true of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from mpmath import mp, mpf

from oracle.choices import noisy_max_truth, spread, top_k_truth
from oracle.line import line_truth
from oracle.losses import (
    ALL_LOST,
    INF,
    NO_LOSS,
    NOTHING_KNOWN,
    Ends,
    Finite,
    Truth,
    disc,
    gaussian_pair,
    laplace_pair,
    one_sided,
    pure_delta,
    renyi_delta,
)
from oracle.noises import mahalanobis_truth, shift_truth
from oracle.placed import bounded_truth, direction_truth
from oracle.steps import steps_truth
from oracle.text import ROUNDED_UP, Stage, Unreadable, stages
from oracle.values import (
    ADDITIVE,
    BIT_KINDS,
    CHOICES,
    DIRECTIONS,
    NOISES,
    TWO,
    P,
    Values,
    pairs,
    root,
    run,
    walk,
    whole,
)

MOST_INPUTS, MOST_OUTPUTS = 256, 256
RECORDS = ("replace-record", "add-remove-record")
DIGITS = 50


@lru_cache(maxsize=2000)
def _truth(text: str, given: tuple[tuple[str, mpf], ...], dim: int, neighbours: str) -> Truth:
    with mp.workdps(DIGITS):
        return steps_truth(stages(text, dict(given)), dim, neighbours, _of)


def truth_of(text: str, values: Mapping[str, object], dim: int, neighbours: str) -> Truth:
    """What is true of a pipeline, with numbers for its names (`eps`, `delta` and `dim` among them).

    >>> known = truth_of("clip(l2, 1) | laplace(2)", {}, 32, "any")
    >>> print(mp.nstr(known.pure[0], 8), mp.nstr(known.pure[1], 8))
    5.6568542 5.6568542
    """
    with mp.workdps(DIGITS):
        read = tuple((key, value if isinstance(value, mpf) else mpf(str(value))) for key, value in values.items())
        known = _truth(text, (*read, ("dim", mpf(dim))), dim, neighbours)
        if "least_sigma" not in text:
            return known
        more = _truth(text, (*read, ("dim", mpf(dim)), (ROUNDED_UP, 1 + mpf("1e-14"))), dim, neighbours)
        return known.or_else(more)


def _of(all_stages: Sequence[Stage], dim: int, neighbours: str, words: int = 1) -> Truth:
    first = all_stages[0].name
    if first == "query" and neighbours not in ("query", *RECORDS):
        raise Unreadable(f"{first} does not speak of neighbours {neighbours}")
    if first == "rows" and neighbours != "replace-record":
        raise Unreadable("rows speak of replaced records")
    positions = [i for i, stage in enumerate(all_stages) if stage.name in NOISES]
    if not positions:
        return _without_noise(all_stages, dim, neighbours)
    if neighbours in RECORDS and first not in ("query", "rows") and all_stages[positions[0]].name not in ADDITIVE:
        raise Unreadable("records are summed, and this noise does not speak of sums")
    if (
        neighbours in RECORDS
        and first == "query"
        and all_stages[positions[0]].name
        not in (
            *ADDITIVE,
            *CHOICES,
            "bounded_laplace",
        )
    ):
        raise Unreadable("a query's answers are numbers")
    known = _at(all_stages, positions[0], dim, neighbours)
    for i in positions[1:]:
        known = known.at_most(_at(all_stages, i, dim, neighbours))
        if all(stage.name in ADDITIVE for stage in all_stages[positions[0] : i + 1]):
            # Added right after one another, the order does not matter, and each alone loses no less.
            alone = [*all_stages[: positions[0]], all_stages[i]]
            known = known.at_most(_at(alone, positions[0], dim, neighbours))
    kept = 1
    for stage in all_stages:
        if stage.name == "dropout" and neighbours == "word":
            kept = kept * (1 - stage.mu)  # type: ignore[operator]
    return known.behind_dropout((1 - mpf(kept)) ** words)


def _without_noise(all_stages: Sequence[Stage], dim: int, neighbours: str) -> Truth:
    """A function reveals its input, unless it is constant."""
    v = walk(all_stages, dim)
    if not v.unbounded and v.diameter(mpf(1), neighbours == "add-remove-record") == 0:
        return NO_LOSS
    if v.tight:
        return ALL_LOST
    differ = any(bool((np.abs(one - other) > 1e-9).any()) for one, other in pairs(all_stages, dim))
    return ALL_LOST if differ and neighbours != "add-remove-record" else NOTHING_KNOWN


def _at(all_stages: Sequence[Stage], position: int, dim: int, neighbours: str) -> Truth:
    """The loss of one noise stage on its inputs, and how much of it the later stages leave."""
    before, noise, after = all_stages[:position], all_stages[position], all_stages[position + 1 :]
    first = not any(stage.name in NOISES for stage in before)
    v, added = (
        walk([s for s in before if s.name != "topk"], dim),
        neighbours == "add-remove-record" and all_stages[0].name != "query",
    )
    sampled = (lambda: pairs(before, dim)) if first and not added else (lambda: iter(()))
    if before and before[-1].name == "topk":
        return _top_k(before[:-1], whole(before[-1].k), noise, after, dim)
    if noise.name in ("flip", "bits", "exponential"):
        return _finite(before, noise, after, v, dim)
    if noise.name == "noisymax":
        return noisy_max_truth(v, noise, _cube(v), first and not after)
    if v.kind == "categories" and noise.name != "leak":
        raise Unreadable("noise on a category's name")
    if noise.name in ("radial", "mahalanobis") and v.times > 1:
        raise Unreadable("one noise vector for copies")
    if noise.name == "radial" and (noise.norm == "l1" or v.dim == 1):
        noise = Stage("laplace", {"scale": noise.scale})
    if noise.name == "gaussian" and first:
        # Independent normal noises add up to one.
        while after and after[0].name == "gaussian":
            sigma = mp.sqrt(noise.sigma**2 + after[0].sigma ** 2)  # type: ignore[operator]
            noise, after = Stage("gaussian", {"sigma": sigma}), after[1:]
    if noise.name in ("laplace", "gaussian", "onesided", "radial") and v.kind == "query" and v.rounded and v.dim > 1:
        v = v if v.p != 2 else replace(v, tight=False)  # whole numbers: not all of the ball
    if noise.name in DIRECTIONS:
        unit = Values("sphere", dim, size=mpf(1))  # where it comes first, unit vectors come in
        known = direction_truth(v if before else unit, noise)
    elif noise.name == "bounded_laplace":
        known = bounded_truth(v, noise, added)
    else:
        known = LAWS.get(noise.name, shift_truth)(v, noise, added, sampled)
    if first and all(stage.name in ("encode", "decode") for stage in after):
        return known
    if first and v.tight and noise.name in ("laplace", "gaussian"):
        known = _far_out(known, v, added, [noise, *after])
        if known.pure[0] > 0 and after[0].name in ADDITIVE:
            return Truth(known.pure, known.forgotten().delta)
    known = known.forgotten()
    found = line_truth(noise, v, after) if first and not added and noise.name in ("laplace", "gaussian") else None
    return known if found is None else known.at_most(found).at_least(found)


def _far_out(known: Truth, v: Values, added: bool, noises: Sequence[Stage]) -> Truth:
    """Laplace and Gaussian noise added right after one another: far out the widest Laplace noise decides."""
    scales = [stage.scale for stage in noises if stage.name == "laplace"]
    if not scales or any(stage.name not in ("laplace", "gaussian", "encode", "decode") for stage in noises):
        return known
    pure = v.diameter(mpf(1), added) / max(scales)  # type: ignore[type-var]
    return Truth((pure, pure), known.delta)


Sampled = Callable[[], object]


def _gaps(sampled: Sampled, norm: int) -> np.ndarray | None:
    """The largest gap, in this norm, of the pairs that were tried; a little less, for what doubles lose."""
    best = None
    for one, other in sampled():  # type: ignore[attr-defined]
        gap = np.abs(one - other) * (1 - 1e-9)
        row = gap[np.linalg.norm(gap, ord=norm, axis=1).argmax()]
        best = row if best is None or np.linalg.norm(row, ord=norm) > np.linalg.norm(best, ord=norm) else best
    return best


def _laplace(v: Values, noise: Stage, added: bool, sampled: Sampled) -> Truth:
    scale: mpf = noise.scale  # type: ignore[assignment]
    if v.unbounded:
        return ALL_LOST if v.tight else NOTHING_KNOWN
    pure = v.diameter(mpf(1), added) / scale
    above = Truth((mpf(0), pure), lambda e: (mpf(0), pure_delta(pure, e)))
    in_l2 = v.kind in ("ball", "sphere", "query") and v.p == 2 and v.dim > 1
    gap = (v.diameter(TWO, added) / root(v.times, TWO) if in_l2 else v.gap(added)) / scale
    if in_l2 or (v.kind in ("ball", "query") and v.p == 1):
        counts = sorted({1, 2, 3, v.dim // 2 or 1, v.dim}) if in_l2 else [1]
        shifts = [((gap / root(n, v.p), n * v.times),) for n in counts if n <= v.dim]
    else:
        shifts = [((gap, v.differing(added) * v.times),)]
    known = [laplace_pair(shift) for shift in shifts]
    if not v.tight:
        row = _gaps(sampled, 1)
        found = NO_LOSS if row is None else laplace_pair([(mpf(g) / scale, 1) for g in row.tolist() if g > 0][:6])
        # Outer sets bound from above only; their worst shift is one of `known` unless they are l2 balls.
        even = ((gap / root(v.dim, mpf(2)), v.dim * v.times),)
        tops = above.at_most(
            Truth((mpf(0), pure), lambda e: (mpf(0), renyi_delta(even, e))) if in_l2 else _upper(known)
        )
        return tops.at_least(found)
    truth = above
    for pair in known:
        truth = truth.at_least(pair)
    if not in_l2:  # coordinates apart: each grows alone; on an l1 ball: docs/proofs/worst-shift.md
        return truth.at_most(_upper(known))
    # Of all shifts of one l2 norm the even one has the largest moments: docs/proofs/renyi.md
    even = ((gap / root(v.dim, mpf(2)), v.dim * v.times),)
    moments = lambda order: (mpf(0), laplace_pair(even).renyi(order)[1])  # noqa: E731
    truth = truth.at_most(Truth((mpf(0), pure), lambda e: (mpf(0), renyi_delta(even, e)), moments))
    if v.dim == 2 and v.times == 1:
        top = disc(gap)
        return truth.at_most(Truth((mpf(0), pure), lambda e: (mpf(0), top(e))))
    return truth


def _upper(known: Sequence[Truth]) -> Truth:
    alone = (lambda order: (mpf(0), known[0].renyi(order)[1])) if len(known) == 1 else None
    pure = max(k.pure[1] for k in known)
    return Truth((mpf(0), pure), lambda e: (mpf(0), max(k.delta(e)[1] for k in known)), alone)


def _gaussian(v: Values, noise: Stage, added: bool, sampled: Sampled) -> Truth:
    if v.unbounded:
        return ALL_LOST if v.tight else NOTHING_KNOWN
    sigma: mpf = noise.sigma  # type: ignore[assignment]
    known = gaussian_pair(v.diameter(mpf(2), added) / sigma)
    if v.tight:
        return known
    row = _gaps(sampled, 2)
    found = NO_LOSS if row is None else gaussian_pair(mpf(float(np.linalg.norm(row))) * (1 - mpf("1e-12")) / sigma)
    return known.forgotten().at_least(found)


def _one_sided(v: Values, noise: Stage, added: bool, sampled: Sampled) -> Truth:
    scale, zero, lost = (getattr(noise, key) for key in ("scale", "zero", "lost"))
    if zero + lost > 1:
        raise Unreadable("probabilities above 1")
    differing = v.differing(added) * v.times
    rest = 1 - zero - lost
    shared = lost + (0 if v.unbounded else rest * mp.exp(-v.gap(added) / scale))
    # ∫ min(P, Q) of a product is at least the product of the coordinates' own, and δ(ε) ≤ δ(0) = 1 − ∫ min(P, Q).
    top = 1 - shared**differing
    pure = INF if top > 0 else mpf(0)
    above = Truth((mpf(0), pure), lambda e: (mpf(0), top))
    if zero == 0 and lost == 0 and not v.unbounded:
        # δ(ε) = 1 − min(e^−R, e^(ε − F)), the second value rising by R and falling by F in all: the largest R counts.
        known = one_sided(v.rise(added) * v.times / scale)
        return known if v.tight else known.forgotten()
    if not v.tight and (row := _gaps(sampled, 1)) is not None and row.max() > 0:
        seen = zero + rest * -mp.expm1(-mpf(float(row.max())) / scale)  # in one coordinate, one way or the other
        return above.at_least(Truth((INF if seen > 0 else mpf(0), INF), lambda e: (seen * (1 - mpf("1e-9")), mpf(1))))
    if not v.tight or v.kind == "onehot" or v.kind == "sparse" or v.kind == "minmax" or added:
        return above
    if v.unbounded:
        return Truth((pure, pure), lambda e: (top, top))
    if v.kind in ("box", "rows", "bits") or v.dim == 1 or (v.kind in ("ball", "query") and mp.isinf(v.p)):
        # Every coordinate shifted by the most, all one way: P alone has its atom and what lies before Q's start.
        return (
            Truth((pure, pure), lambda e: (top, top))
            if differing == 1
            else above.at_least(_one_way(shared, lost, differing))
        )
    return above


def _one_way(shared: mpf, lost: mpf, n: int) -> Truth:
    """P's own part has probability 1 − shared a coordinate: where any coordinate is there, Q is impossible."""
    top = 1 - shared**n
    return Truth((INF if top > 0 else mpf(0), INF), lambda e: (top, mpf(1)))


def _radial(v: Values, noise: Stage, added: bool, sampled: Sampled) -> Truth:
    """‖z − d‖ − ‖z‖ ≤ ‖d‖, with equality at z = −t·d: at δ = 0 the distance counts, in the noise's own norm."""
    if v.unbounded:
        return ALL_LOST if v.tight else NOTHING_KNOWN
    norm = P[str(noise.norm)]
    pure = v.diameter(norm, added) / noise.scale  # type: ignore[operator]
    low = pure
    if not v.tight:
        row = _gaps(sampled, int(norm) if norm < 3 else np.inf)
        low = (
            mpf(0)
            if row is None
            else mpf(float(np.linalg.norm(row, ord=float(norm)))) * (1 - mpf("1e-12")) / noise.scale
        )  # type: ignore[operator]
    return Truth((min(low, pure), pure), lambda e: (mpf(0), pure_delta(pure, e)))


def _leak(v: Values, noise: Stage, added: bool, sampled: Sampled) -> Truth:
    chance: mpf = noise.chance  # type: ignore[assignment]
    top = 1 - (1 - chance) ** (v.differing(added) * v.times)
    known = Truth((INF, INF) if top > 0 else (mpf(0), mpf(0)), lambda e: (top, top))
    return known if v.tight else known.forgotten()


LAWS: dict[str, Callable[..., Truth]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "onesided": _one_sided,
    "leak": _leak,
    "radial": _radial,
    "mahalanobis": mahalanobis_truth,
}


# ── Finitely many outputs ───────────────────────────────────────────────────────────────────────


def _strings(v: Values) -> list[tuple[int, ...]]:
    """All bit strings of the set."""
    if v.kind == "onehot":
        return [tuple(int(i == j) for j in range(v.dim)) for i in range(v.dim)]
    if v.codes:
        rows = v.dim // int(v.size)
        if len(v.codes) ** rows > MOST_INPUTS:
            raise OverflowError
        return [tuple(itertools.chain(*codes)) for codes in itertools.product(v.codes, repeat=rows)]
    if 2**v.dim > MOST_INPUTS:
        raise OverflowError
    every = itertools.product((0, 1), repeat=v.dim)
    return [s for s in every if v.kind == "bits" or 1 <= sum(s) <= v.size]


def _bit_rows(strings: Sequence[Sequence[int]], noise: Stage) -> tuple[list[list[mpf]], np.ndarray]:
    n = len(strings[0])
    if 2**n > MOST_OUTPUTS:
        raise OverflowError
    outputs = list(itertools.product((0, 1), repeat=n))
    if noise.name == "flip":
        ones = [(noise.keep, 1 - noise.keep)] * n  # type: ignore[operator]
    else:
        ones = [(noise.even if i % 2 == 0 else noise.odd, noise.zero) for i in range(n)]
    rows = []
    for string in strings:
        chances = [ones[i][0] if bit else ones[i][1] for i, bit in enumerate(string)]
        rows.append([mp.fprod(c if o else 1 - c for c, o in zip(chances, out, strict=True)) for out in outputs])
    return rows, np.array(outputs, dtype=float)


def _category_rows(k: int, keep: mpf) -> list[list[mpf]]:
    if k == 1:
        return [[mpf(1)]]
    return [[keep if i == j else (1 - keep) / (k - 1) for j in range(k)] for i in range(k)]


def _choice_row(scores: Sequence[mpf]) -> list[mpf]:
    top = max(scores)
    weights = [mp.exp(s - top) for s in scores]
    total = mp.fsum(weights)
    return [w / total for w in weights]


def _finite(before: Sequence[Stage], noise: Stage, after: Sequence[Stage], v: Values, dim: int) -> Truth:
    first = not any(stage.name in NOISES for stage in before)
    if noise.name == "exponential":
        return _exponential(before, noise, after, v, dim, first)
    if v.kind not in (*BIT_KINDS, "categories"):
        raise Unreadable(f"{noise.name} on {v.kind}")
    if v.kind == "categories" and noise.name == "bits":
        raise Unreadable("bits on a category")
    try:
        if v.kind == "categories":
            k = min(v.dim, 40) if not after else v.dim
            if v.dim > 40:
                return _k_ary(v, noise.keep) if first and not after else _k_ary(v, noise.keep).forgotten()  # type: ignore[arg-type]
            rows, outputs = _category_rows(k, noise.keep), np.arange(k, dtype=float)[:, None]  # type: ignore[arg-type]
            related = None
        else:
            strings = _strings(v) if v.times == 1 else [s * v.times for s in _strings(v)]
            rows, outputs = _bit_rows(strings, noise)
            related = _rows_related(before, strings, v)
    except OverflowError:
        known = _many_bits(noise, v)
        return known if first and not after else known.forgotten()
    whole_set = Finite(rows, related)
    pushed = _pushed(whole_set, outputs, after) if after else whole_set
    if not first:
        return whole_set.truth().forgotten()
    if v.tight and pushed is not None:
        return pushed.truth()
    above = whole_set.truth().forgotten()
    if pushed is None:
        return above
    found = NO_LOSS
    for one, other in pairs(before, dim):
        index = {tuple(map(int, s)): i for i, s in enumerate(strings)}
        met = np.zeros((len(strings), len(strings)), dtype=bool)
        for a, b in {(tuple(map(int, x)), tuple(map(int, y))) for x, y in zip(one, other, strict=True)}:
            met[index[a], index[b]] = met[index[b], index[a]] = True
        found = Finite(pushed.rows, met).truth()
    return above.at_least(found)


def _rows_related(before: Sequence[Stage], strings: Sequence[Sequence[int]], v: Values) -> np.ndarray | None:
    """Behind `rows` only one person's bits differ."""
    if before[0].name != "rows":
        return None
    table = np.array(strings)
    length = int(v.size)
    differ = (table[:, None, :] != table[None, :, :]).reshape(len(table), len(table), -1, length).any(axis=3)
    return np.asarray(differ.sum(axis=2) <= 1)


def composed_truth(texts: Sequence[str], dim: int) -> Truth:
    """Several finite mechanisms that answer about the same input: all pairs of inputs, all tuples of answers.

    Of scores only the vertices of a cube are tried, which bounds from below.
    """
    with mp.workdps(DIGITS):
        rows: list[list[mpf]] = []
        for text in texts:
            *before, noise = stages(text, {"dim": mpf(dim)})
            v = walk(before, dim)
            if not v.tight:
                raise Unreadable("inputs that are not all known")
            if noise.name == "exponential":
                points = _vertices(v) or []
                found = [_choice_row([noise.rate * s for s in point]) for point in points]  # type: ignore[operator]
            elif v.kind == "categories":
                found = _category_rows(v.dim, noise.keep)  # type: ignore[arg-type]
            else:
                found = _bit_rows(_strings(v), noise)[0]
            if rows and len(rows) != len(found):
                raise Unreadable("other inputs")
            rows = [[a * b for a in one for b in two] for one, two in zip(rows, found, strict=True)] if rows else found
        known = Finite(rows).truth()
        if any("exponential" in text for text in texts):  # of two choices other scores than these may show more
            return Truth((known.pure[0], INF), lambda e: (known.delta(e)[0], mpf(1)))
        return known


def _pushed(whole_set: Finite, outputs: np.ndarray, after: Sequence[Stage]) -> Finite | None:
    """The mechanism with the stages after it; None where noise follows that is not enumerated."""
    rows = whole_set.rows
    for stage in after:
        if stage.name in ("flip", "bits") and outputs.shape[1] > 1 and np.isin(outputs, (0, 1)).all():
            strings = [tuple(map(int, o)) for o in outputs]
            table, outputs = _bit_rows(strings, stage)
            rows = [[mp.fdot(row, column) for column in zip(*table, strict=True)] for row in rows]
            continue
        if stage.name in NOISES or stage.name in ("category", "hash", "onehot", "bloom"):
            return None
        images = run(stage, outputs)
        outputs, place = np.unique(images, axis=0, return_inverse=True)
        merged = []
        for row in rows:
            total = [mpf(0)] * len(outputs)
            for value, where in zip(row, place.ravel().tolist(), strict=True):
                total[where] += value
            merged.append(total)
        rows = merged
    return Finite(rows, whole_set.neighbours)


def _k_ary(v: Values, keep: mpf) -> Truth:
    """Two of many categories: keep, one other name, and all the rest."""
    other = (1 - keep) / (v.dim - 1)
    rest = other * (v.dim - 2)
    known = Finite([[keep, other, rest], [other, keep, rest]]).truth()
    return known if v.tight else known.forgotten()


def _many_bits(noise: Stage, v: Values) -> Truth:
    """Bits beyond enumeration: the pure loss is a sum over bits; of δ only what pure loss allows is known."""
    even, odd, zero = (
        (noise.keep, noise.keep, 1 - noise.keep) if noise.name == "flip" else (noise.even, noise.odd, noise.zero)  # type: ignore[operator]
    )

    def bit(p: mpf, q: mpf, ways: str) -> mpf:
        pairs_ = {"up": [(p, q), (1 - p, 1 - q)], "down": [(q, p), (1 - q, 1 - p)]}
        found = [(a, b) for way in ways.split() for a, b in pairs_[way] if a > 0]
        return max(INF if b == 0 else mp.log(a / b) for a, b in found)

    if v.kind == "onehot":
        # Two bits differ, one each way; with the parities that there are.
        up, down = ([bit(p, zero, way) for p in (even, odd)] for way in ("up", "down"))
        pure = max(up[i] + down[j] for i in (0, 1) for j in (0, 1))
        return Truth((pure, pure), lambda e: (mpf(0), pure_delta(pure, e)))
    per = [bit(p, zero, "up down") for p in (even, odd)]
    n = v.dim * v.times
    pure = per[0] * (n - n // 2) + per[1] * (n // 2)
    if v.kind == "sparse":
        if noise.name != "flip":
            return Truth((mpf(0), pure), lambda e: (mpf(0), pure_delta(pure, e)))
        pure = per[0] * v.differing() * v.times
    known = Truth((pure, pure), lambda e: (mpf(0), pure_delta(pure, e)))
    return known if v.tight and v.times == 1 else known.forgotten()


def _exponential(
    before: Sequence[Stage], noise: Stage, after: Sequence[Stage], v: Values, dim: int, first: bool
) -> Truth:
    """The exponential mechanism.

    For each set S of outputs P(S) grows with the scores in S and falls with all others. So on a cube the largest
    P(S) − e^ε Q(S) is at a vertex for P and at the opposite one for Q: all pairs of vertices are all pairs.
    """
    rate: mpf = noise.rate  # type: ignore[assignment]
    if v.unbounded:
        return ALL_LOST if v.tight and v.dim > 1 and not after else NOTHING_KNOWN if v.dim > 1 else NO_LOSS
    if v.dim == 1:
        return NO_LOSS
    general = 2 * rate * v.diameter(mpf("inf"))
    above = Truth((mpf(0), general), lambda e: (mpf(0), pure_delta(general, e)))
    if v.kind == "query" and v.tight:
        # One score up by a, one other down by b with a^p + b^p = D^p, each the only one that counts: a + b at most.
        pure = rate * spread(v)
        known = Truth((pure if not after and v.times == 1 else mpf(0), pure), lambda e: (mpf(0), pure_delta(pure, e)))
        return above.at_most(known).at_least(known)
    points = _vertices(v)
    cube = _cube(v)
    if cube is not None and v.times == 1 and not after and first and v.tight:
        return _choice_on_a_cube(rate * cube[0], rate * cube[1], v.dim)
    if points is not None:
        rows = [_choice_row([rate * s for s in p] * v.times) for p in points]
        finite = Finite(rows)
        pushed = _pushed(finite, np.arange(len(rows[0]), dtype=float)[:, None], after) if after else finite
        if pushed is None or not first or not v.tight:
            return finite.truth().forgotten()
        # Behind a function of the output vertices are some inputs, not all.
        return pushed.truth() if not after else finite.truth().forgotten().at_least(pushed.truth())
    found = NO_LOSS
    if first and not after:
        for one, other in pairs(before, dim):
            rows_ = [np.exp(float(rate) * (s - s.max(axis=1, keepdims=True))) for s in (one, other)]
            p, q = (r / r.sum(axis=1, keepdims=True) for r in rows_)
            pick = int(np.log(p / np.maximum(q, 1e-300)).max(axis=1).argmax())
            exact = [_choice_row([rate * mpf(x) for x in s[pick].tolist()]) for s in (one, other)]
            pair = Finite(exact).truth()

            def less(e: mpf, pair: Truth = pair) -> Ends:
                return max(mpf(0), pair.delta(e)[0] - mpf("1e-7")), mpf(1)

            found = Truth((pair.pure[0] * (1 - mpf("1e-7")), INF), less)
    return above.at_least(found)


def _top_k(before: Sequence[Stage], k: int, noise: Stage, after: Sequence[Stage], dim: int) -> Truth:
    """A choice among the k largest scores, of equal ones the first."""
    if noise.name != "exponential":
        raise Unreadable("topk stands before a choice")
    v = walk(before, dim)
    if k >= v.dim:
        return _exponential(before, noise, after, v, dim, True)
    return top_k_truth(v, k, noise.rate, _cube(v), not after)  # type: ignore[arg-type]


def _choice_on_a_cube(low: mpf, high: mpf, n: int) -> Truth:
    """Of k outputs the scores are high and the others' low, against the other way round; all k are tried."""

    def both(k: int) -> tuple[mpf, mpf]:
        weights = [(k * mp.exp(a - high), (n - k) * mp.exp(b - high)) for a, b in ((high, low), (low, high))]
        one, other = (inside / (inside + outside) for inside, outside in weights)
        return one, other

    pure = mp.log(both(1)[0] / both(1)[1])
    chances = [both(k) for k in ({*range(1, n)} if n <= 200 else {1, 2, n // 2, n - 1})]

    def delta(e: mpf) -> Ends:
        found = max(mpf(0), *(p - mp.exp(e) * q for p, q in chances))
        return found, found if n <= 200 else max(found, pure_delta(pure, e))

    return Truth((pure, pure), delta)


def _cube(v: Values) -> tuple[mpf, mpf] | None:
    if v.kind == "ball" and mp.isinf(v.p):
        return -v.size, v.size
    return (v.low, v.high) if v.kind == "box" else (mpf(0), mpf(1)) if v.kind == "bits" else None


def _vertices(v: Values) -> list[list[mpf]] | None:
    n = v.dim
    if v.kind == "onehot" and n <= 40:
        return [[mpf(int(i == j)) for j in range(n)] for i in range(n)]
    cube = (mpf(0), mpf(1)) if v.kind == "minmax" else _cube(v)
    if cube is None or 2**n > MOST_INPUTS:
        return None
    points = [list(p) for p in itertools.product(cube, repeat=n)]
    # Min-max scaled vectors have a 0 and a 1; the vertices that matter have both, or all scores are alike.
    return [p for p in points if len(set(p)) > 1 or v.kind != "minmax"]
