"""Sums, products and powers of what is known: where noise meets data, and how the scale of noise changes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from dpassay.scan.reading.terms import Term, opaque
from dpassay.scan.reading.values import (
    ARRAY,
    BY_DATA,
    CLIPPED,
    COLUMN,
    CONSTANT,
    COUNT,
    INPUT,
    MEAN,
    MOST_TERMS,
    NOISE,
    NOISY,
    NORM1,
    NORM2,
    OF_DATA,
    OF_NORM,
    OF_NORM1,
    RAW,
    RESCALED,
    SCALAR,
    SHAPES,
    STAT,
    SUM,
    Value,
    combined,
)

TWO_SIDED = {"exponential": "laplace", "gumbel": "logistic", "geometric": "two-sided geometric", "gamma": "laplace"}


def paired(a: Value, b: Value, how: Callable[[Term, Term], Term | None]) -> tuple[Term, ...]:
    """The formulas of a combination of two values; none if one of them is not known."""
    found = [how(one, other) for one in a.terms for other in b.terms]
    if not found or len(found) > MOST_TERMS or any(one is None for one in found):
        return ()
    return tuple(dict.fromkeys(one for one in found if one is not None))


def is_noise(value: Value) -> bool:
    """Whether it is noise alone."""
    return NOISE in value.marks and NOISY not in value.marks and RAW not in value.marks


def multiplied(a: Value, b: Value, divide: bool = False) -> Value:
    """A product or quotient. The scale of noise changes with it."""

    def how(one: Term, other: Term) -> Term | None:
        if not divide:
            return one.times(other)
        inverse = other.power(-1) if other.coefficient else None
        return None if inverse is None else one.times(inverse)

    terms = paired(a, b, how)
    if is_noise(a) or (is_noise(b) and not divide):
        return _rescaled(a, b, terms)
    keep = frozenset({CONSTANT}) if CONSTANT in a.marks and CONSTANT in b.marks else frozenset()
    if divide or CONSTANT in a.marks or CONSTANT in b.marks:
        keep |= {CLIPPED, NORM1, NORM2}
    made = combined([a, b], terms, keep)
    for norm, clipped in ((OF_NORM, NORM2), (OF_NORM1, NORM1)):
        if (a.has(RAW, NOISY) and norm in b.marks and norm not in a.marks) or (
            not divide and b.has(RAW, NOISY) and norm in a.marks and norm not in b.marks
        ):
            made = made.marked(clipped, without=frozenset({norm, STAT}))
    if divide and RAW in a.marks and STAT in b.marks and SCALAR not in a.marks and not b.has(OF_NORM, OF_NORM1):
        made = made.marked(BY_DATA)
    if divide and CLIPPED in a.marks and b.names & {"bound", "clip", "sensitivity"}:
        made = made.marked(RESCALED)
    if divide and SUM in a.marks and _counts(b):
        return made.marked(MEAN)
    return made.marked(*_shape(a, b), without=SHAPES)


def _counts(value: Value) -> bool:
    return "size" in value.marks or "count" in value.names


def _rescaled(a: Value, b: Value, terms: tuple[Term, ...]) -> Value:
    noise, factor = (a, b) if is_noise(a) else (b, a)
    if is_noise(factor) and a.draws == b.draws:  # noise over its own norm is a direction
        return replace(a, terms=(Term(),), law="formula", scale_marks=frozenset())
    if is_noise(factor):
        law = noise.law if noise.law == factor.law else "formula"
        law = TWO_SIDED.get(noise.law, TWO_SIDED.get(factor.law, law))
        made = combined([a, b], terms)
        return replace(made, law=law, scale_marks=noise.scale_marks | factor.scale_marks).marked(NOISE)
    return replace(
        noise,
        terms=terms,
        leaves=noise.leaves | factor.leaves,
        scale_marks=noise.scale_marks | (factor.marks & OF_DATA),
        place=factor.place or noise.place,
        text="",
    ).marked(*_shape(a, b), without=SHAPES)


def _shape(a: Value, b: Value) -> frozenset[str]:
    for shape in (ARRAY, COLUMN):
        if shape in a.marks or shape in b.marks:
            return frozenset({shape})
    return frozenset({SCALAR}) if SCALAR in a.marks and SCALAR in b.marks else frozenset()


def _sum(one: Term, other: Term, sign: float, same: bool) -> Term:
    """A sum or difference. Two quantities with one role are not the same: two bounds differ by a width."""
    if one.powers != other.powers or one.constant or same:
        return one.plus(other, sign)
    if sign < 0 and one.coefficient == other.coefficient and one.powers == (("bound", 1.0),):
        return one
    return opaque(f"({one} {'+' if sign > 0 else '-'} {other})", one.names | other.names)


def added(a: Value, b: Value, sign: float) -> tuple[Value, str]:
    """A sum or difference, and what happened: "use" (noise meets a value), "mixed" (data meets it again), or ""."""
    terms = paired(a, b, lambda one, other: _sum(one, other, sign, a.leaves == b.leaves))
    if is_noise(a) and is_noise(b):
        law = TWO_SIDED.get(a.law, a.law) if sign < 0 else a.law
        return replace(a, law=law, draws=a.draws | b.draws, leaves=a.leaves | b.leaves), ""
    if is_noise(a) or is_noise(b):
        noise, other = (a, b) if is_noise(a) else (b, a)
        if CONSTANT in other.marks:
            return noise, ""
        protected = other.marks - OF_DATA
        made = Value(
            (),
            (protected - SHAPES) | {NOISY} | _shape(a, b),
            a.draws | b.draws,
            a.leaves | b.leaves,
        )
        return made, "use"
    keep = frozenset({CONSTANT}) if CONSTANT in a.marks and CONSTANT in b.marks else frozenset()
    made = combined([a, b], terms, keep | ({COUNT, SUM} if CONSTANT in a.marks or CONSTANT in b.marks else frozenset()))
    made = made.marked(*_shape(a, b), without=SHAPES)
    noisy, raw = (a, b) if NOISY in a.marks else (b, a)
    if NOISY in noisy.marks and RAW not in noisy.marks and raw.has(RAW, INPUT) and NOISY not in raw.marks:
        return made, "mixed"
    return made, ""


def raised(a: Value, b: Value) -> Value:
    """A power."""
    exponent = b.constant
    if is_noise(a):
        return replace(a, law="formula", terms=())
    if exponent is None:
        return combined([a, b])
    found = [one.power(exponent) for one in a.terms]
    terms = tuple(one for one in found if one is not None) if all(one is not None for one in found) else ()
    keep = frozenset({CONSTANT}) if CONSTANT in a.marks else frozenset()
    return combined([a], terms, keep).marked(*(a.marks & SHAPES), without=SHAPES)


def operated(op: ast.operator, a: Value, b: Value) -> tuple[Value, str]:
    """A binary operation, and what happened."""
    if isinstance(op, ast.Add):
        return added(a, b, 1.0)
    if isinstance(op, ast.Sub):
        return added(a, b, -1.0)
    if isinstance(op, ast.Mult | ast.Div | ast.FloorDiv):
        made = multiplied(a, b, not isinstance(op, ast.Mult))
        noisy, raw = (a, b) if NOISY in a.marks else (b, a)
        mixed = NOISY in noisy.marks and RAW not in noisy.marks and raw.has(RAW, INPUT) and NOISY not in raw.marks
        return made, "mixed" if mixed and not (is_noise(a) or is_noise(b)) else ""
    if isinstance(op, ast.Pow):
        return raised(a, b), ""
    return combined([a, b]), ""
