"""Opacus: the steps that an engine, an accountant or an optimizer recorded, and the ε that Opacus accounts for them.

Opacus states ε for a δ that one asks for; the claim is its answer at that δ. The formula is Poisson sampling, which
Opacus' accountants take for granted: nothing in these objects shows that a run had `poisson_sampling=False`, and for
such a run the verdict does not hold.
"""

from __future__ import annotations

import inspect
from typing import Any

from dpassay.adapters.base import Adapted, attributes, shown
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

# Optimizers that clip each example's whole gradient to one norm.
FLAT = ("DPOptimizer", "DistributedDPOptimizer", "DPOptimizerFastGradientClipping")


def read(thing: Any) -> Adapted | None:
    """An engine, an accountant or an optimizer as a claim; None for the library's other objects."""
    names = [base.__name__ for base in type(thing).__mro__]
    if "PrivacyEngine" in names:
        return _claim(attributes(thing, "accountant")[0], "PrivacyEngine", 1.0)
    if "IAccountant" in names:
        return _claim(thing, names[0], 1.0)
    if "DPOptimizer" in names:
        if names[0] not in FLAT:
            raise InputError(f"dpassay knows no formula for Opacus' {names[0]}: check its engine or its accountant")
        return _claim(_accountant_of(thing), names[0], attributes(thing, "max_grad_norm")[0])
    return None


def _claim(accountant: Any, name: str, norm: float) -> Adapted:
    """The recorded steps; without an optimizer the norm is 1, and only its ratio to the noise matters."""
    history = attributes(accountant, "history")[0]
    if not history:
        raise InputError(
            f"Opacus' {name} has recorded no step yet: check it after training, or write the plan as a pipeline, "
            "'poisson(q) | clip(l2, 1) | gaussian(noise_multiplier) | times(steps)'"
        )
    steps: dict[tuple[float, float], int] = {}
    for noise, rate, count in history:
        steps[noise, rate] = steps.get((noise, rate), 0) + count
    if len(steps) > 1:
        raise InputError(
            f"Opacus' {name} has recorded {len(steps)} kinds of steps, which are no single pipeline; add them up with "
            f"dpassay.compose({', '.join(repr(_pipeline(*kind, count)) for kind, count in steps.items())}, delta=...)"
        )
    ((noise, rate), count) = steps.popitem()
    return Adapted(
        f"Opacus' {name}",
        pipeline=_pipeline(noise, rate, count, norm),
        dim=1,
        neighbours=Neighbours("add-remove-record"),
        epsilon_at=lambda delta: float(accountant.get_epsilon(delta)),
    )


def _pipeline(noise: float, rate: float, steps: int, norm: float = 1.0) -> str:
    stages = (
        f"clip(l2, {shown(norm)}) | gaussian({shown(noise)}*{shown(norm)})"
        if norm != 1
        else f"clip(l2, 1) | gaussian({shown(noise)})"
    )
    return f"poisson({shown(rate)}) | {stages} | times({steps})"


def _accountant_of(optimizer: Any) -> Any:
    """The accountant that the optimizer reports its steps to."""
    hook = attributes(optimizer, "step_hook")[0]
    found = inspect.getclosurevars(hook).nonlocals.get("self") if inspect.isfunction(hook) else None
    if found is None:
        raise InputError(
            "the optimizer reports its steps to no accountant, so that their number and the sampling rate are unknown: "
            "check the PrivacyEngine, or write the run as a pipeline"
        )
    return found
