"""Laws of drawn numbers, and of formulas of one uniform number.

A formula is recognized if its values at points of (0, 1) agree with an inverse distribution function up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy import array, asarray, full, ones, zeros

from dpassay.trace.watch.record import Array, CodeLine, DrawRecord, Node
from dpassay.values import dataclass

# For each distribution of a library, its law, and the names of its location and its scale.
NOISES = {
    "laplace": ("laplace", "loc", "scale"),
    "normal": ("gaussian", "loc", "scale"),
    "standard_normal": ("gaussian", "", ""),
    "gauss": ("gaussian", "mu", "sigma"),
    "normalvariate": ("gaussian", "mu", "sigma"),
    "exponential": ("exponential", "", "scale"),
    "standard_exponential": ("exponential", "", ""),
    "gumbel": ("gumbel", "loc", "scale"),
    "logistic": ("logistic", "loc", "scale"),
    "standard_cauchy": ("cauchy", "", ""),
}
_UNIFORM = {"random", "uniform", "random_sample", "rand", "sample", "ranf"}
REMEMBERED = 4096  # draws whose law and sources are cached
_HALF = (np.arange(64) + 0.5) / 128
GRID = np.concatenate([[1e-9, 1e-6, 1e-4], _HALF, 1 - _HALF[::-1], [1 - 1e-4, 1 - 1e-6, 1 - 1e-9]])


@dataclass(frozen=True, eq=False)
class Law:
    """For each number of a draw: location + scale · a standard number of this kind.

    `share` is a Bernoulli number's probability of 1, a geometric number's probability of stopping, and for exponential
    numbers the probability of `atom` instead, which may be NaN. `falling`: it decreases as the uniform number it was
    made from increases; `span`: the uniform numbers that do not give the atom.
    """

    kind: str
    location: Array
    scale: Array
    share: float = 0.0
    falling: bool = False
    span: tuple[float, float] = (0.0, 1.0)
    atom: Any = math.nan
    product: bool = False  # of two independent numbers


def source_law(draw: DrawRecord) -> Law | None:
    """The law of numbers that a library drew, flat; None if it is not known."""
    given = draw.parameters

    def flat(value: Any) -> Array:
        return np.broadcast_to(asarray(value, dtype=float), draw.shape).reshape(-1)

    name = draw.distribution
    try:
        if name in NOISES:
            kind, location, scale = NOISES[name]
            return Law(kind, flat(given.get(location, 0.0)), flat(given.get(scale, 1.0)))
        if name == "multivariate_normal":
            return _independent_normal(draw)
        if name == "expovariate":
            return Law("exponential", flat(0.0), 1 / flat(given["lambd"]))
        if name in _UNIFORM and draw.values.dtype.kind == "f":
            low, high = flat(given.get("low", 0.0)), flat(given.get("high", 1.0))
            return Law("uniform", low, high - low)
        if name == "geometric" and np.ndim(given["p"]) == 0:
            return Law("geometric", flat(0.0), flat(1.0), float(given["p"]))
        if (p := _bernoulli(draw)) is not None:
            return Law("bernoulli", flat(0.0), flat(1.0), p)
    except (KeyError, ValueError, TypeError):
        return None
    return None


def _independent_normal(draw: DrawRecord) -> Law | None:
    """Gaussian numbers with a diagonal covariance, which are independent."""
    mean, spread = (asarray(draw.parameters[key], dtype=float) for key in ("mean", "cov"))
    if spread.ndim != 2 or (spread != np.diag(np.diag(spread))).any():
        return None
    scale = np.broadcast_to(np.sqrt(np.diag(spread)), draw.shape)
    return Law("gaussian", np.broadcast_to(mean, draw.shape).reshape(-1), scale.reshape(-1))


def covariance_of(draw: DrawRecord) -> tuple[Array, Array] | None:
    """The mean and the covariance of rows of Gaussian numbers; None if the draw is not one of those."""
    if draw.distribution != "multivariate_normal" or draw.formula is not None:
        return None
    try:
        mean, spread = (asarray(draw.parameters[key], dtype=float) for key in ("mean", "cov"))
    except (KeyError, ValueError, TypeError):
        return None
    known = mean.ndim == 1 and spread.shape == (mean.size, mean.size) and draw.shape[-1:] == mean.shape
    finite = known and np.isfinite(mean).all() and np.isfinite(spread).all()
    return (mean, spread) if finite and np.array_equal(spread, spread.T) else None  # else numpy draws by another one


def _bernoulli(draw: DrawRecord) -> float | None:
    """The probability of 1 of numbers that are 0 or 1."""
    name, given = draw.distribution, draw.parameters
    p: Any = given.get("p")
    if name == "choice" and np.shape(p) == (2,):
        return float(asarray(p)[1])
    if name == "bernoulli" or (name == "binomial" and np.array_equal(given["n"], 1)):
        return float(p) if np.ndim(p) == 0 and p is not None else None
    if name in ("integers", "randint") and not set(given) - {"low", "high"}:
        ends = (0, given["low"]) if given.get("high") is None else (given["low"], given["high"])
        if draw.source == "random":
            ends = (ends[0], ends[1] + 1)
        return 0.5 if ends == (0, 2) else None
    return None


@lru_cache(maxsize=REMEMBERED)
def bases_of_draw(draw: DrawRecord) -> tuple[Array, ...]:
    """The drawn numbers that each number of a draw was made from, flat; −1 if there is none."""
    if draw.formula is None:
        return (draw.start + np.arange(max(draw.values.size, 1)),)
    found: list[Array] = []
    for node in draw.formula.nodes:
        for base in bases(node):
            _put_base(found, np.broadcast_to(base, draw.shape).reshape(-1))
    return tuple(found)


def bases(node: Node) -> tuple[Array, ...]:
    """The drawn numbers that each number of a node was made from."""
    found: list[Array] = []
    for index, _ in node.terms:
        for draw in node.draws:
            inside = (index >= draw.start) & (index < draw.start + draw.values.size)
            if inside.any():
                at = np.where(inside, index - draw.start, 0)
                for base in bases_of_draw(draw):
                    _put_base(found, np.where(inside, base[at], -1))
    return tuple(found)


def _put_base(found: list[Array], base: Array) -> None:
    left = base >= 0
    for own in found:
        left = left & (own != base)
    for at, own in enumerate(found):
        free = left & (own < 0)
        found[at] = np.where(free, base, own)
        left = left & ~free
    if left.any():
        found.append(np.where(left, base, -1))


def evaluated(part: Any, numbers: Callable[[DrawRecord], Array], instead: dict[int, Array] | None = None) -> Array:
    """A node, or a plain number, evaluated at several values of each drawn number, which form the first axis.

    `instead` gives some nodes their values.
    """
    if not isinstance(part, Node):
        return asarray(part)
    if instead and id(part) in instead:
        return instead[id(part)]
    flat = np.concatenate([_of_draw(draw, numbers, instead) for draw in part.draws], axis=1)
    starts = array([draw.start for draw in part.draws])
    before = np.cumsum([0, *(max(draw.values.size, 1) for draw in part.draws)])[:-1]
    total = asarray(part.offset, dtype=float)[None]
    for index, factor in part.terms:
        which = np.maximum(np.searchsorted(starts, index, side="right") - 1, 0)
        at = np.where(index < 0, 0, before[which] + index - starts[which])
        total = total + np.where(index < 0, 0.0, factor * flat[:, at])
    return asarray(total)


def _of_draw(draw: DrawRecord, numbers: Callable[[DrawRecord], Array], instead: Any) -> Array:
    if draw.formula is None:
        return numbers(draw)
    parts: list[Array | None] = []
    for part in draw.formula.parts:
        if part is None:
            parts.append(None)
            continue
        values = evaluated(part, numbers, instead)
        if isinstance(part, Node):
            missing = len(draw.shape) - (values.ndim - 1)
            values = values.reshape(values.shape[0], *[1] * missing, *values.shape[1:])
        parts.append(values)
    with np.errstate(all="ignore"):
        try:
            result = asarray(draw.formula.function(*parts, **draw.formula.options), dtype=float)
        except TypeError:  # of bits, which are whole
            whole = [None if part is None else np.nan_to_num(part).astype(np.int64) for part in parts]
            result = asarray(draw.formula.function(*whole, **draw.formula.options), dtype=float)
    many = max((len(part) for part in parts if part is not None and part.ndim > len(draw.shape)), default=1)
    return np.broadcast_to(result, (many, *draw.shape)).reshape(many, -1)


def at_uniform(draw: DrawRecord, t: Array) -> Array | None:
    """A formula of one uniform number at points of (0, 1), one row each; None if it is not such a formula."""
    found = bases_of_draw(draw)
    assert draw.formula is not None
    sources = sources_of(draw)
    kinds = [source_law(one) for one in sources]
    if len(found) != 1 or any(law is None or law.kind != "uniform" for law in kinds):
        return None
    if draw.values.size * len(t) > 4_000_000:
        return None
    laws = {one.start: law for one, law in zip(sources, kinds, strict=True)}

    def numbers(one: DrawRecord) -> Array:
        law = laws[one.start]
        assert law is not None
        upper = t[:, None] > 0.5
        ends = law.location + law.scale
        lower = law.location + law.scale * t[:, None]
        return asarray(np.where(upper, ends - law.scale * (1 - t[:, None]), lower))

    return _of_draw(draw, numbers, None)


@lru_cache(maxsize=REMEMBERED)
def sources_of(draw: DrawRecord) -> tuple[DrawRecord, ...]:
    """The draws that a formula ultimately depends on, in order."""
    if draw.formula is None:
        return (draw,)
    found = {one.start: one for node in draw.formula.nodes for part in node.draws for one in sources_of(part)}
    return tuple(found[start] for start in sorted(found))


def uniform_law(draw: DrawRecord) -> Law | None:
    """The law of a formula of one uniform number; None if it is not recognized."""
    values = at_uniform(draw, GRID)
    if values is None or not draw.values.size:
        return None
    if (steps := _two_values(draw, values) or _geometric(draw, values)) is not None:
        return steps
    span, share, lost, atom = (0.0, 1.0), 0.0, zeros(len(GRID), bool), full(values.shape[1], math.nan)
    for end in (0, -1):
        here = (values == values[end]) | (np.isnan(values) & np.isnan(values[end]))
        if here.all() or (here != here[:, :1]).any() or here[:, 0].sum() < 8:
            continue
        edges = _edges(draw, lambda got, end=end: _alike(got[:, 0], values[end, 0]))  # type: ignore[misc]
        if len(edges) != 1:
            return None
        span, lost, atom = ((edges[0], 1.0) if end == 0 else (0.0, edges[0])), here[:, 0], values[end]
        share = 1 - (span[1] - span[0])
    t, got = (GRID[~lost] - span[0]) / (span[1] - span[0]), values[~lost]
    if not np.isfinite(got).all():
        return None
    law = recognised(t, got, share, span)
    return law if law is None or not share else replace(law, atom=atom)


def _alike(values: Array, other: float) -> Array:
    return asarray((values == other) | (np.isnan(values) & math.isnan(other)))


def recognised(t: Array, got: Array, share: float, span: tuple[float, float]) -> Law | None:
    """The law whose inverse distribution function has these values, one row for each point; None if there is none."""
    candidates = [("exponential", False), ("exponential", True)]
    if not share:
        candidates += [("laplace", False), ("gaussian", False), ("uniform", False), ("rayleigh", False)]
        candidates += [("rayleigh", True), ("gumbel", False), ("gumbel", True), ("logistic", False), ("cauchy", False)]
    first, second = len(t) // 4, len(t) - len(t) // 3
    slack = 1e-12 + 1e-14 / np.minimum(t, 1 - t)
    for kind, falling in candidates:
        standard = _QUANTILES[kind](1 - t if falling else t)
        scale = (got[second] - got[first]) / (standard[second] - standard[first])
        location = got[first] - scale * standard[first]
        size = np.abs(location) + np.abs(scale) * (1 + np.abs(standard[:, None]))
        error = np.abs(got - location - scale * standard[:, None])
        if (scale != 0).all() and (error <= slack[:, None] * size).all():
            location = np.where(np.abs(location) < 1e-12 * np.abs(scale), 0.0, location)
            return Law(kind, _tidy(location), _tidy(scale), share, falling, span)
    return None


def _tidy(values: Array) -> Array:
    """Rounded to twelve digits, all of which are reliable."""
    return array([float(f"{value:.12g}") for value in values.tolist()])


def _edges(draw: DrawRecord, of: Callable[[Array], Array]) -> list[float]:
    """Where a property of the first number changes, as the uniform number goes from 0 to 1."""
    got = at_uniform(draw, GRID)
    assert got is not None
    has = of(got)
    found = []
    for k in np.nonzero(has[1:] != has[:-1])[0].tolist():
        low, high = float(GRID[k]), float(GRID[k + 1])
        for _ in range(8):
            points = np.linspace(low, high, 65)
            rows = at_uniform(draw, points)
            assert rows is not None
            still = int(np.argmin(of(rows) == has[k]))
            low, high = (float(points[still - 1]), float(points[still])) if still else (low, float(points[1]))
        found.append(float(f"{high:.12g}"))
    return found


def _two_values(draw: DrawRecord, got: Array) -> Law | None:
    """A Bernoulli number: one value below a point and another above it."""
    if np.isnan(got).any():
        return None
    low, high = got.min(axis=0), got.max(axis=0)
    above = got == high
    if (low == high).any() or not ((got == low) | above).all() or (above != above[:, :1]).any():
        return None
    edges = _edges(draw, lambda values: values[:, 0] == high[0])
    if len(edges) != 1:
        return None
    falling = bool(above[0, 0])
    return Law("bernoulli", low, high - low, edges[0] if falling else 1 - edges[0], falling)


def _geometric(draw: DrawRecord, got: Array) -> Law | None:
    """A geometric number: ⌊log u / log a⌋ and the like, with the steps at the powers of a."""
    if not np.isfinite(got).all() or (got != np.rint(got)).any() or (got != got[:, :1]).any():
        return None
    least, falling = float(got.min()), bool(got[0, 0] > got[-1, 0])
    edges = _edges(draw, lambda values: values[:, 0] == least)
    if len(edges) != 1:
        return None
    rest = GRID if falling else 1 - GRID  # what is left of (0, 1) beyond a number
    more = edges[0] if falling else 1 - edges[0]
    if not 0 < more < 1:
        return None
    steps = np.log(rest) / math.log(more)
    near = np.abs(steps - np.rint(steps)) < 1e-6 * np.maximum(1.0, steps)
    if (near | (got[:, 0] - least == np.floor(steps))).all() and len(set(got[~near, 0].tolist())) > 2:
        location = full(got.shape[1], least - 1)
        return Law("geometric", location, ones(got.shape[1]), 1 - more, falling)
    return None


_NORMAL = NormalDist()
_QUANTILES: dict[str, Callable[[Array], Array]] = {
    "exponential": lambda t: -np.log1p(-t),
    "uniform": lambda t: t,
    "laplace": lambda t: np.where(t < 0.5, np.log(2 * t), -np.log(2 * (1 - t))),
    "gaussian": lambda t: array([_NORMAL.inv_cdf(float(one)) for one in t]),
    "rayleigh": lambda t: np.sqrt(-2 * np.log1p(-t)),
    "gumbel": lambda t: -np.log(-np.log(t)),
    "logistic": lambda t: np.log(t) - np.log1p(-t),
    "cauchy": lambda t: np.tan(math.pi * (t - 0.5)),
}


_WORDS = {
    **{"absolute": "|{}|", "multiply": "{}·{}", "power": "{}^{}", "true_divide": "{}/{}", "divide": "{}/{}"},
    **{"less": "[{} < {}]", "greater": "[{} > {}]", "less_equal": "[{} ≤ {}]", "greater_equal": "[{} ≥ {}]"},
}


def in_words(draw: DrawRecord) -> str:
    """A formula as text, for its first number: "log(1 − 2·|u − 0.5|)"."""
    if draw.formula is None:
        law = source_law(draw)
        return {"uniform": "u", "gaussian": "n", "exponential": "e"}.get(law.kind if law is not None else "", "z")
    parts = [_part_in_words(part) for part in draw.formula.parts if part is not None]
    form = _WORDS.get(draw.distribution)
    if form is not None and len(parts) == form.count("{}"):
        return form.format(*(f"({part})" if _is_sum(part) and form[0] not in "[|" else part for part in parts))
    return f"{draw.distribution}({', '.join(parts)})"


def _is_sum(text: str) -> bool:
    """Whether it needs parentheses as a factor."""
    deep = 0
    for sign in text.replace("|", ""):
        deep += (sign in "([") - (sign in ")]")
        if sign == " " and not deep:
            return True
    return False


def _part_in_words(part: Any) -> str:
    if not isinstance(part, Node):
        return f"{float(asarray(part).flat[0]):.6g}"
    offset = float(asarray(part.offset).flat[0])
    text = f"{offset:.6g}" if offset else ""
    for index, factor in part.terms:
        times, number = float(factor.flat[0]), int(index.flat[0])
        if number < 0 or not times:
            continue
        draw = next(one for one in part.draws if one.start <= number < one.start + max(one.values.size, 1))
        word = in_words(draw)
        word = word if abs(times) == 1 else f"{abs(times):.6g}·{word}"
        sign = "−" if times < 0 else "+"
        text = f"{text} {sign} {word}" if text else word if times > 0 else f"−{word}"
    return text or "0"


def place_of_nan(draw: DrawRecord) -> CodeLine:
    """The line where a formula first gives NaN; otherwise where it ends."""
    waiting = [draw]
    found = draw.place
    while waiting:
        one = waiting.pop()
        got = at_uniform(one, GRID) if one.formula is not None else None
        if one.formula is not None and got is not None and np.isnan(got).any():
            found = one.place
            waiting += [part for node in one.formula.nodes for part in node.draws]
    return found
