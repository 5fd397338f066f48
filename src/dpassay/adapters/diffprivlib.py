"""diffprivlib's mechanisms and models: the claim is their ε and δ, a mechanism's formula that of its class.

A model is run: it is fitted again to each data set, and its output is its fitted attributes. If a class searches for
its scale, the scale it found is used, to twelve digits and rounded up: the last bits of a search are not a claim. A
formula counts only if runs of the object agree with it. Classes without a formula here are run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from functools import partial
from typing import Any

import numpy as np

from dpassay.adapters.base import FormulaReading, ReadObject, attributes, is_own, is_patched, shown
from dpassay.adapters.confirming import MANY, Confirmation, ConfirmingTrial, Numbers, by_runs
from dpassay.core.guarantee import make_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict

PACKAGE = "diffprivlib"
WHOLE = ("Geometric", "GeometricTruncated", "GeometricFolded", "GaussianDiscrete")


SEEDED = "The noise comes from a RandomState of numpy: whoever knows its seed knows the noise."


def read(thing: Any) -> ReadObject | None:
    """A mechanism or a model as a claim; None for the library's other objects."""
    bases = {base.__name__ for base in type(thing).__mro__}
    if "DiffprivlibMixin" in bases:
        return _model(thing)
    if "DPMechanism" not in bases:
        return None
    kind = type(thing).__name__
    epsilon, delta, randomise = attributes(thing, "epsilon", "delta", "randomise")
    pairs, chooses = _pairs(thing, kind), hasattr(thing, "utility")
    known = is_own(thing, PACKAGE) and not is_patched(thing, PACKAGE)
    pipeline = _formula(thing, kind, shown(epsilon), shown(delta)) if known else None
    confirm = partial(_chosen, thing, pipeline) if chooses and pipeline is not None else None
    if pipeline is not None and isinstance(seed := getattr(thing, "random_state", None), int | np.integer):
        confirm = partial(_seeded, int(seed))
    return ReadObject(
        f"diffprivlib's {kind}",
        make_guarantee(shown(epsilon), shown(delta)),
        pipeline,
        len(thing.utility) if chooses else None if kind == "Binary" else 1,
        Neighbours("any" if kind == "Binary" else "query"),
        None if chooses else lambda x: randomise(x),
        pairs,
        reading=_reading(thing, kind),
        confirm=confirm,
        caveats=(SEEDED,) if type(getattr(thing, "_rng", None)).__name__ == "RandomState" else (),
    )


def _seeded(seed: int, _: Verdict) -> Confirmation:
    said = f"Its random_state={seed} is a fixed seed: each new process draws the same random numbers again."
    return Confirmation(False, said)


def _reading(thing: Any, kind: str) -> FormulaReading:
    if kind == "Binary":
        values = [thing.value0, thing.value1]
        return FormulaReading(values.index, values.index, runs=MANY)
    if kind.endswith("Truncated") and _is_half_open(thing):
        return FormulaReading(finish=lambda values: np.clip(values, thing.lower, thing.upper), runs=MANY)
    folds = kind.endswith("Folded")
    return FormulaReading(finish=_folded(thing.lower, thing.upper) if folds else None, runs=MANY)


def _is_half_open(thing: Any) -> bool:
    return math.inf in (abs(getattr(thing, "lower", 0)), abs(getattr(thing, "upper", 0)))


def _folded(low: float, high: float) -> Callable[[Numbers], Numbers]:
    """Values beyond a bound are reflected at it, as often as it takes."""

    def fold(values: Numbers) -> Numbers:
        if not high > low:
            return np.full_like(values, low)
        if math.isinf(high - low):  # reflected at the finite bound only
            return values if math.isinf(low) and math.isinf(high) else _reflected(values, low, high)
        beyond = (values - low) % (2 * (high - low))
        return low + np.minimum(beyond, 2 * (high - low) - beyond)

    return fold


def _reflected(values: Numbers, low: float, high: float) -> Numbers:
    return low + abs(values - low) if math.isinf(high) else high - abs(high - values)


def _chosen(thing: Any, pipeline: str, verdict: Verdict) -> Confirmation:
    """A mechanism that chooses between candidates has its input within."""
    named = getattr(thing, "candidates", None) or list(range(len(thing.utility)))
    trial = ConfirmingTrial(thing.utility, thing.utility)
    return by_runs(lambda _: thing.randomise(), pipeline, len(thing.utility), [trial], named.index, MANY)


def _model(thing: Any) -> ReadObject:
    """A data set is X, or a pair (X, y); two of them are neighbors if they differ in one row."""
    epsilon, get_params = attributes(thing, "epsilon", "get_params")

    def fitted(data: Any) -> dict[str, Any]:
        model = type(thing)(**get_params())
        model.fit(*data) if isinstance(data, tuple) else model.fit(data)
        return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}

    name = f"diffprivlib's {type(thing).__name__}"
    return ReadObject(name, make_guarantee(shown(epsilon), "0"), None, None, Neighbours("replace-record"), fitted)


def _formula(thing: Any, kind: str, epsilon: str, delta: str) -> str | None:
    """The pipeline of a class; None if there is no stage for it."""
    if kind == "Binary":
        return f"category(2) | flip((exp({epsilon}) + {delta})/(exp({epsilon}) + 1))"
    if not hasattr(thing, "sensitivity"):
        return None
    far = shown(thing.sensitivity)
    if not float(far) > 0:
        raise InputError(
            f"diffprivlib's {kind} has sensitivity {far}: its answers cannot differ, so there is nothing to hide"
        )
    if kind == "LaplaceBoundedDomain" and _is_half_open(thing):
        return None
    if kind in ("Exponential", "PermuteAndFlip"):
        return _choice(thing, kind, epsilon, far)
    answer, scale = f"query(l1, {far})", f"{far}/({epsilon} - ln(1 - {delta}))"
    bounds = f"{shown(thing.lower)}, {shown(thing.upper)}" if hasattr(thing, "lower") else ""
    clamped = "decode" if _is_half_open(thing) else f"clamp({bounds})"  # no number is beyond an infinite bound
    whole = f"counts(l1, {far}) | discrete_laplace({far}/{epsilon})"
    noise = f"{far}/{epsilon}"
    formulas = {
        "Laplace": lambda: f"{answer} | laplace({scale})",
        "LaplaceTruncated": lambda: f"{answer} | laplace({scale}) | {clamped}",
        "LaplaceFolded": lambda: f"{answer} | laplace({scale}) | decode",
        "LaplaceBoundedDomain": lambda: f"{answer} | bounded_laplace({_found(thing)}, {bounds})",
        "LaplaceBoundedNoise": lambda: (
            f"{answer} | truncated_laplace({noise}, {noise}*ln(1 + (exp({epsilon}) - 1)/(2*{delta})))"
        ),
        "Staircase": lambda: f"{answer} | staircase({epsilon}, {far}, {shown(thing.gamma)})",
        "Geometric": lambda: whole,
        "GeometricTruncated": lambda: f"{whole} | {clamped}",
        "GeometricFolded": lambda: f"{whole} | decode",
        "Gaussian": lambda: f"query(l2, {far}) | gaussian(sqrt(2*ln(1.25/{delta}))*{noise})",
        "GaussianAnalytic": lambda: f"query(l2, {far}) | gaussian({_found(thing)})",
        "GaussianDiscrete": lambda: f"counts(l2, {far}) | discrete_gaussian({shown(thing._scale)})",
    }
    return formulas[kind]() if kind in formulas else None


def _choice(thing: Any, kind: str, epsilon: str, far: str) -> str | None:
    """A choice between candidates, whose utilities move by at most the sensitivity."""
    monotone = bool(thing.monotonic)
    if kind == "PermuteAndFlip":
        return None if monotone else f"query(linf, {far}) | noisymax(exponential, 2*{far}/{epsilon})"
    if getattr(thing, "measure", None) is not None:
        return None
    moves, factor = (", monotone", "") if monotone else ("", "/2")
    return f"query(linf, {far}{moves}) | exponential({epsilon}/{far}{factor})"


def _found(thing: Any) -> str:
    """The scale that a mechanism searched for."""
    scale = attributes(thing, "_find_scale")[0]()
    return str(Context(prec=12, rounding=ROUND_CEILING).create_decimal(Decimal(float(scale))))


def _pairs(thing: Any, kind: str) -> tuple[tuple[Any, Any], ...]:
    """Two values at the distance of the sensitivity, within the bounds if there are any."""
    if kind == "Binary":
        return ((thing.value0, thing.value1),)
    if hasattr(thing, "utility") or not hasattr(thing, "sensitivity") or kind == "Bingham":  # that one takes a matrix
        return ()
    low, far = getattr(thing, "lower", 0), thing.sensitivity
    low = low if math.isfinite(low) else min(0, getattr(thing, "upper", 0) - far)
    high = min(low + far, getattr(thing, "upper", low + far))
    return ((int(low), int(high)),) if kind in WHOLE else ((float(low), float(high)),)
