"""Rules about the scale of noise: what it is proportional to, and what it should be."""

from __future__ import annotations

import ast

from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.terms import Term
from dpassay.scan.reading.values import (
    ARRAY,
    CLIPPED,
    COLUMN,
    COUNT,
    MEAN,
    NORM1,
    NORM2,
    ONE_SIDED,
    RAW,
    RESCALED,
    SCALAR,
    STAT,
    SUM,
    SourceLine,
    Used,
    Value,
)
from dpassay.scan.rules.context import Context, protects

SENSITIVITIES = {"sensitivity", "clip", "bound"}
COUNTING = ("count", "vote", "bit", "indicator", "mask", "hist", "flag", "hit", "binary", "label", "onehot", "one_hot")


def check_scales(context: Context) -> None:
    """All rules about scales, on each use of noise in a function."""
    for use in context.uses():
        terms = use.noise.terms
        if terms:
            inverted(context, use, terms)
            sensitivity_missing(context, use, terms)
            variance(context, use, terms)
            divided_by_records(context, use, terms)
            shrunk(context, use, terms)
            gaussian_without_delta(context, use, terms)
            if use.noise.law == "gaussian":
                classic_gaussian(context, use.noise, use.where.chain)
        wrong_norm(context, use)
        shared(context, use)
        from_data(context, use)
        sided(context, use)
    for one in context.log.returns:
        for part in one.value.items or (one.value,):
            if part.terms and "noise" not in part.marks and context.private:
                classic_gaussian(context, part, one.where.chain)
    uniform(context)


def _at(use: Used) -> SourceLine:
    """The line that made the scale, or else the one that uses it."""
    return use.noise.place or use.where.place


def inverted(context: Context, use: Used, terms: tuple[Term, ...]) -> None:
    """The scale grows with ε."""
    if not all(one.exponent("epsilon") > 0 for one in terms) or (use.noise.law == "formula" and use.other is None):
        return
    one = terms[0]
    plain = {atom for atom, _ in one.powers} <= {"epsilon", "sensitivity"} and one.exponent("epsilon") == 1
    shown = ""
    if plain and use.noise.law == "laplace" and one.coefficient > 0:
        shown = f" At sensitivity 1 and a claimed ε of 0.1 the true ε is {1 / (one.coefficient * 0.1):.4g}."
    said = (
        f"The scale of the {use.noise.law} noise is {one}: it grows with ε, so a stronger claim gets less noise.{shown}"
    )
    context.report("scale-inverted", "refuted", _at(use), said)


def _only(term: Term, allowed: set[str]) -> bool:
    return all(atom in allowed or (atom.startswith("log(") and "delta" in atom) for atom, _ in term.powers)


def sensitivity_missing(context: Context, use: Used, terms: tuple[Term, ...]) -> None:
    """The scale is a number over ε, although the function has a sensitivity or sums unbounded values."""
    if not all(one.exponent("epsilon") < 0 and _only(one, {"epsilon", "delta"}) for one in terms):
        return
    if use.other is None:
        return
    summed = use.other.has(SUM) and CLIPPED in use.other.marks and not use.other.has(COUNT, RESCALED)
    if not summed and any(role_of(name) in SENSITIVITIES for name in use.other.leaves):
        return
    stated = [name for name in context.log.parameters if role_of(name) == "sensitivity"]
    unused = [name for name in stated if not _read(context.function.node, name)]
    if unused:
        said = f"The scale is {terms[0]}, whatever {unused[0]} is: the parameter is accepted and never used."
        context.report("sensitivity-missing", "refuted", _at(use), said)
        return
    for clip in context.log.clips:
        roles = {role_of(name) for name in clip.bound.leaves}
        bounds = roles | clip.bound.names
        if ("clip" in bounds or ("bound" in bounds and summed)) and clip.where.place.line <= use.where.place.line:
            said = (
                f"Values are clipped to {clip.bound.term or 'a bound'}, but the scale is {terms[0]} without that bound."
            )
            context.report("sensitivity-missing", "refuted", _at(use), said)
            return
    unbounded = use.other.has(SUM, MEAN) and RAW in use.other.marks and "clipped" not in use.other.marks
    counting = any(word in name.lower() for name in use.other.leaves for word in COUNTING)
    if unbounded and not counting and not stated and not context.log.clips:
        said = (
            f"A sum or mean of values that nothing bounds gets noise of scale {terms[0]}, as if its sensitivity were 1."
        )
        context.report("sensitivity-missing", "suspicious", _at(use), said)


def _read(node: ast.AST, name: str) -> bool:
    """Whether a parameter is read other than to be checked."""
    checked = {
        id(one)
        for test in ast.walk(node)
        if isinstance(test, ast.If) and all(isinstance(line, ast.Raise | ast.Expr) for line in test.body)
        for one in ast.walk(test)
    }
    checked |= {id(one) for test in ast.walk(node) if isinstance(test, ast.Assert) for one in ast.walk(test)}
    loads = (
        one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    )
    return any(id(one) not in checked for one in loads)


def variance(context: Context, use: Used, terms: tuple[Term, ...]) -> None:
    """A variance where the sampler takes a standard deviation, or the other way round."""
    if use.noise.law not in ("gaussian", "laplace"):
        return
    squared = all(one.exponent("epsilon") == -2 for one in terms)
    of_sigma = all(
        one.exponent("sigma") == 2 or one.exponent("variance") == 1 or one.exponent("multiplier") == 2 for one in terms
    )
    drawn = [context.log.draws[number].library for number in use.noise.draws if number < len(context.log.draws)]
    covariance = any("multivariate" in one for one in drawn)
    rooted = covariance and all(one.exponent("epsilon") == -0.5 or one.exponent("sigma") == 0.5 for one in terms)
    if squared:
        said = (
            f"The scale is {terms[0]}, a variance: for large ε it is far below the standard deviation that is needed."
        )
        context.report("variance-for-deviation", "refuted", _at(use), said)
    elif of_sigma and use.noise.law == "gaussian":
        said = f"The sampler takes a standard deviation and gets {terms[0]}, a variance: below 1 it is too small."
        context.report("variance-for-deviation", "suspicious", _at(use), said)
    elif rooted and use.noise.law == "gaussian":
        said = f"The covariance is a standard deviation, so the noise has standard deviation {terms[0]}."
        context.report("variance-for-deviation", "suspicious", _at(use), said)


def classic_gaussian(context: Context, scale: Value, chain: tuple[object, ...]) -> None:
    """sqrt(2 ln(1.25/δ))·Δ/ε for every ε, although its proof needs ε < 1."""
    if not scale.terms or not all(_is_classic(one) for one in scale.terms):
        return
    place = scale.place or SourceLine(context.function.module.file, context.function.node.lineno)
    functions = (*(one for one in chain if hasattr(one, "node")), *context.at(place))
    if context.guarded(functions, "epsilon", 1.0):  # type: ignore[arg-type]
        return
    said = (
        "The classic Gaussian formula is used for every ε, although it is proved for ε below 1 only: "
        "at a claimed ε of 10 and δ of 1e-5 the true ε is 10.39."
    )
    context.report("gaussian-epsilon-range", "refuted", place, said)


def _is_classic(term: Term) -> bool:
    logs = [(atom, power) for atom, power in term.powers if atom.startswith("log(") and "delta" in atom]
    return term.exponent("epsilon") == -1 and len(logs) == 1 and logs[0][1] == 0.5 and "/delta" in logs[0][0]


def divided_by_records(context: Context, use: Used, terms: tuple[Term, ...]) -> None:
    """Noise for a mean is added to a count or a sum."""
    if not all(one.exponent("count") <= -1 and one.exponent("epsilon") < 0 for one in terms) or use.other is None:
        return
    if use.other.has(COUNT, SUM) and not use.other.has(MEAN):
        what = "counts" if use.other.has(COUNT) else "a sum"
        said = f"The scale {terms[0]} suits a mean of n records, but the noise is added to {what}: n times too little."
        context.report("scale-divided-by-n", "refuted", _at(use), said)


def shrunk(context: Context, use: Used, terms: tuple[Term, ...]) -> None:
    """A factor below 1 makes the noise smaller than the sensitivity over ε."""
    if use.noise.law != "laplace" or not all(one.exponent("epsilon") == -1 for one in terms):
        return
    if _counted_less(context, use, terms) or not all(one.exponent("sensitivity") == 1 for one in terms):
        return
    rest = [atom for atom, _ in terms[0].powers if atom not in ("epsilon", "sensitivity")]
    if not rest and all(0 < one.coefficient < 1 for one in terms):
        said = f"The scale is {terms[0]}: {terms[0].coefficient:g} times what ε-DP needs, so the true ε is {1 / terms[0].coefficient:.4g} times the claimed one."  # noqa: E501
        context.report("scale-shrunk", "refuted", _at(use), said)
    elif len(rest) == 1 and len(terms) == 1 and terms[0].exponent(rest[0]) == 1:
        name = rest[0].strip("‹›")
        given = context.log.parameters.get(name)
        default = given.refers[1] if given is not None and isinstance(given.refers, tuple) else None
        if isinstance(default, int | float) and 0 < default < 1 and terms[0].coefficient <= 1:
            said = f"The scale is {terms[0]}, and {name} is {default:g} unless it is given: too little for ε-DP."
            context.report("scale-shrunk", "suspicious", _at(use), said)


def _counted_less(context: Context, use: Used, terms: tuple[Term, ...]) -> bool:
    """A number below 1 over ε for counts, of which one record changes one by 1, or below the range of a mean."""
    other = use.other
    if other is None:
        return False
    counts = other.has(COUNT) or any(word in name.lower() for name in other.leaves for word in COUNTING)
    counts = counts and all({atom for atom, _ in one.powers} == {"epsilon"} for one in terms)
    means = other.has(MEAN) and all(
        {atom for atom, _ in one.powers} == {"bound", "count", "epsilon"} and one.exponent("bound") == 1
        for one in terms
    )
    if not (counts or means) or not all(0 < one.coefficient < 1 and one.coefficient != 0.5 for one in terms):
        return False
    factor = terms[0].coefficient
    said = f"The scale is {terms[0]}: {factor:.3g} times what ε-DP needs, so ε is {1 / factor:.4g} times as large."
    context.report("scale-shrunk", "refuted" if counts else "suspicious", _at(use), said)
    return True


def gaussian_without_delta(context: Context, use: Used, terms: tuple[Term, ...]) -> None:
    """Gaussian noise for a pure ε."""
    if use.noise.law != "gaussian" or not all(
        one.exponent("epsilon") == -1 and _only(one, {"epsilon", "sensitivity"}) and "delta" not in one.names
        for one in terms
    ):
        return
    text = context.function.text.lower()
    if any(word in text for word in ("delta", "rho", "zcdp", "gdp", "renyi", "mu_")) or "delta" in context.roles:
        return
    said = f"Gaussian noise of scale {terms[0]}, with no δ anywhere: Gaussian noise satisfies no pure ε-DP."
    context.report("gaussian-without-delta", "refuted", _at(use), said)


def wrong_norm(context: Context, use: Used) -> None:
    """Clipped in l2, with Laplace noise per coordinate."""
    if use.noise.law != "laplace" or use.other is None or NORM2 not in use.other.marks or SCALAR in use.noise.marks:
        return
    names = use.noise.names
    unit = bool(use.noise.terms) and all(
        one.exponent("epsilon") == -1 and _only(one, {"epsilon"}) and one.coefficient <= 4 for one in use.noise.terms
    )
    if not (names & SENSITIVITIES or unit) or "dimension" in names or "count" in names:
        return
    if any("l1" in name.lower() for name in use.noise.leaves):
        return
    shown = use.noise.terms[0] if use.noise.terms else "?"
    said = (
        f"The vector is clipped in the l2 norm, but Laplace noise of scale {shown} "
        "is calibrated to l1: in n dimensions the true ε is up to √n times the claimed one."
    )
    context.report("wrong-norm", "refuted", _at(use), said)


def shared(context: Context, use: Used) -> None:
    """One number of noise for many coordinates."""
    if use.other is None or not use.noise.has(SCALAR, COLUMN) or not use.noise.draws or not protects(use):
        return
    if COLUMN in use.noise.marks:
        if use.other.has(NORM1, NORM2):
            said = "One random number per row is added to every coordinate of the row, so differences have no noise."
            context.report("shared-noise", "refuted", use.where.place, said, use.where.warned)
        return
    draws = [context.log.draws[number] for number in use.noise.draws if number < len(context.log.draws)]
    outside = all(
        len(one.where.loops) < len(use.where.loops) and use.where.loops[len(one.where.loops)].over.has(RAW)
        for one in draws
    )
    if ARRAY in use.other.marks or (draws and outside):
        said = "One random number is added to every coordinate, so differences of coordinates come out without noise."
        context.report("shared-noise", "refuted", use.where.place, said, use.where.warned)


def from_data(context: Context, use: Used) -> None:
    """The scale depends on the data."""
    if STAT in use.noise.scale_marks and use.noise.names | {""} and context.private:
        said = (
            "The scale of the noise is computed from the data (a maximum, quantile, deviation or norm): neighbors get "
            "different scales, and outputs far out tell them apart without limit."
        )
        context.report("scale-from-data", "suspicious", _at(use), said, use.where.warned)


def sided(context: Context, use: Used) -> None:
    """Noise of one sign."""
    one_sided = use.noise.law in ("exponential", "one-sided") or ONE_SIDED in use.noise.marks
    if not one_sided or not protects(use) or not use.noise.names & {"epsilon", "sensitivity"}:
        return
    text = context.function.text
    if "argmax" in text or "max(" in text or "sign" in text or "argmin" in text:
        return  # noisy max may use exponential noise
    if any(each.other is not None and each.other.draws & use.noise.draws for each in context.log.uses):
        return  # a second draw is subtracted from the first
    said = "The noise is never negative: an output below one input's value is impossible for it, and shows the other."
    context.report("one-sided-noise", "refuted", use.where.place, said)


def uniform(context: Context) -> None:
    """Uniform noise, which has an end."""
    if "epsilon" not in context.roles or not context.private:
        return
    for use in context.log.uses:
        if use.noise.law != "uniform" or not protects(use) or use.where.conditions:
            continue
        if RAW in use.noise.scale_marks:
            continue  # a point between two values of the data
        if use.result.draws and any(use.result.draws & one.value.draws for one in context.log.returns):
            said = "Uniform noise has an end: some outputs are possible for one input only, so no finite ε holds."
            context.report("bounded-noise", "refuted", use.where.place, said)
