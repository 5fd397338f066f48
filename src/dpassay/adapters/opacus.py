"""Opacus: the steps that an engine, an accountant or an optimizer recorded, and the ε that Opacus accounts for them.

Opacus states ε for a δ of the user's choice; the claim is its answer at that δ. The formula is Poisson sampling, which
Opacus' accountants assume: nothing in these objects shows that a run had `poisson_sampling=False`, and for
such a run the verdict does not hold, as a line of it says. An engine and an accountant are records; an optimizer clips
and adds noise once more, and must do it as recorded. `step` is one step of training on two batches, as the optimizer
does it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpassay.adapters.base import FormulaReading, ReadObject, attributes, shown
from dpassay.adapters.confirming import Confirmation, ConfirmingTrial, by_runs
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import number
from dpassay.errors import InputError, in_one_line
from dpassay.evidence.verdict import Verdict
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Gaussian

UNSEEN = (
    "Opacus accounts for Poisson sampling whatever the data loader did, and does not record what it did: with "
    "poisson_sampling=False, or a loader of one's own, neither its epsilon nor this verdict holds."
)
HELD = ("grad", "grad_sample", "summed_grad")  # what an optimizer keeps at its parameters
MOST = 10_000  # numbers of its noise that are looked at
CLOSE = 1 + 1e-4  # relative: gradients are computed with single precision
# Optimizers that clip each example's whole gradient to one norm.
FLAT = ("DPOptimizer", "DistributedDPOptimizer", "DPOptimizerFastGradientClipping")


def read(thing: Any) -> ReadObject | None:
    """An engine, an accountant or an optimizer as a claim; None for the library's other objects."""
    names = [base.__name__ for base in type(thing).__mro__]
    if "PrivacyEngine" in names:
        return _claim(attributes(thing, "accountant")[0], "PrivacyEngine", 1.0)
    if "IAccountant" in names:
        return _claim(thing, names[0], 1.0)
    if "DPOptimizer" in names:
        if names[0] not in FLAT:
            raise InputError(f"dpassay knows no formula for Opacus' {names[0]}: check its engine or its accountant")
        norm = attributes(thing, "max_grad_norm")[0]
        made = _claim(_accountant_of(thing), names[0], norm, partial(_confirmed, thing, norm))
        return replace(made, caveats=(*made.caveats, *_seeded(thing)))
    return None


def _seeded(optimizer: Any) -> tuple[str, ...]:
    """The caveat for noise from the user's own generator: one that was given no seed always has the same seed."""
    seed = getattr(getattr(optimizer, "generator", None), "initial_seed", lambda: None)()
    if seed is None:
        return ()
    said = f"The noise comes from a generator that began with the seed {seed}: whoever knows that seed knows the noise."
    return (said,)


def step(model: Any, optimizer: Any, loss: Callable[..., Any], batch: tuple[Any, Any]) -> ReadObject:
    """One private step on a batch of inputs and targets, to be traced or run, against the same without one example.

    The output is the gradient that the optimizer has clipped and noised; neither the model nor the accountant is
    changed. The claim is the noise multiplier's: ε of Gaussian noise at sensitivity 1, without amplification by
    sampling.
    """
    kind = type(optimizer).__name__
    noise, norm = attributes(optimizer, "noise_multiplier", "max_grad_norm", "pre_step", "step_hook", "params")[:2]
    if "FastGradientClipping" in kind or not hasattr(model, "_module"):
        raise InputError(
            f"a step needs the model and the optimizer that make_private returns, without ghost clipping; got a "
            f"{type(model).__name__} and a {kind}"
        )
    inputs, targets = batch
    if not 2 <= len(inputs) == len(targets):
        raise InputError(
            f"a batch has inputs and targets for at least two examples, got {len(inputs)} and {len(targets)}"
        )
    if not noise > 0:
        raise InputError(f"a noise multiplier of {noise} means no noise: no finite epsilon holds")
    flat = kind in FLAT
    return ReadObject(
        f"Opacus' {kind}, one step",
        pipeline=f"query(l2, {shown(norm)}) | gaussian({shown(noise)}*{shown(norm)})" if flat else None,
        dim=sum(parameter.numel() for parameter in optimizer.params) if flat else None,
        neighbours=Neighbours("add-remove-record"),
        caveats=_seeded(optimizer),
        mechanism=lambda x: _noisy_gradient(model, optimizer, loss, x),
        pairs=tuple((batch, _without(batch, at)) for at in range(min(4, len(inputs)))),
        epsilon_at=lambda delta: PrivacyLoss.of_shifts(Gaussian(noise), [(number(1), 1)]).epsilon(delta).upper,
        by=f"the noise multiplier {shown(noise)}, for one step without sampling",
        reading=_reading(model, optimizer, loss, float(norm)) if flat else FormulaReading(),
    )


def _reading(model: Any, optimizer: Any, loss: Callable[..., Any], norm: float) -> FormulaReading:
    """The answer is the gradient that the optimizer clips and sums up without noise."""

    def numbers(output: list[Any]) -> Any:
        mean = optimizer.loss_reduction == "mean"
        return _numbers(output) * (optimizer.expected_batch_size if mean else 1)

    def answer(batch: tuple[Any, Any]) -> Any:
        noise, optimizer.noise_multiplier = optimizer.noise_multiplier, 0.0
        try:
            return numbers(_noisy_gradient(model, optimizer, loss, batch))
        finally:
            optimizer.noise_multiplier = noise

    def too_far(x: Any, y: Any) -> str:
        far = float(np.linalg.norm(x - y))
        return f"the clipped gradients are {far:g} apart, where the norm is {norm:g}" if far > norm * CLOSE else ""

    return FormulaReading(answer, numbers, too_far=too_far)


def _numbers(tensors: list[Any]) -> Any:
    """The numbers of several tensors in one vector, as doubles."""
    return np.concatenate([tensor.detach().double().cpu().numpy().ravel() for tensor in tensors])


def _confirmed(optimizer: Any, norm: float, verdict: Verdict) -> Confirmation:
    """Let the optimizer clip large gradients and add noise; its parameters and generators are then as before."""
    import torch

    recorded = next(stage for stage in str(verdict.mechanism).split(" | ") if stage.startswith("gaussian"))
    kept = [{name: getattr(p, name, None) for name in HELD} for p in optimizer.params]
    generator = optimizer.generator if isinstance(optimizer.generator, torch.Generator) else None
    state = None if generator is None else generator.get_state()
    size = min(MOST, sum(p.numel() for p in optimizer.params))

    def noise(_: Any) -> Any:
        for p in optimizer.params:
            p.summed_grad = torch.zeros_like(p)
        optimizer.add_noise()
        return _numbers([p.grad for p in optimizer.params])[:size]

    try:
        with torch.random.fork_rng(), torch.no_grad():
            if type(optimizer).__name__ == "DPOptimizer" and (wrong := _unclipped(optimizer, norm)):
                return Confirmation(False, wrong)
            return by_runs(noise, f"query(l2, 1) | {recorded}", size, [ConfirmingTrial("no gradient", [0.0] * size)])
    except Exception as error:  # of the optimizer
        return Confirmation(False, f"The optimizer raised {in_one_line(type(error).__name__, str(error))[:200]}.")
    finally:
        for p, before in zip(optimizer.params, kept, strict=True):
            for name, value in before.items():
                setattr(p, name, value)
        if generator is not None and state is not None:
            generator.set_state(state)


def _unclipped(optimizer: Any, norm: float) -> str:
    """Whether the gradient of one example exceeds the norm after clipping, as a sentence; else nothing."""
    import torch

    for p in optimizer.params:
        p.grad_sample, p.summed_grad = torch.full((1, *p.shape), 1e3 * norm, dtype=p.dtype, device=p.device), None
    optimizer.clip_and_accumulate()
    far = float(np.linalg.norm(_numbers([p.summed_grad for p in optimizer.params])))
    return f"A large gradient has a norm of {far:g} after clipping to {norm:g}." if far > norm * CLOSE else ""


def _without(batch: tuple[Any, Any], at: int) -> tuple[Any, Any]:
    kept = [i for i in range(len(batch[0])) if i != at]
    return batch[0][kept], batch[1][kept]


def _noisy_gradient(model: Any, optimizer: Any, loss: Callable[..., Any], batch: tuple[Any, Any]) -> list[Any]:
    hook, optimizer.step_hook = optimizer.step_hook, None  # the accountant must not count it
    try:
        optimizer.zero_grad()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Full backward hook")  # inputs that need no gradient cause it
            loss(model(batch[0]), batch[1]).backward()
        optimizer.pre_step()
        return [parameter.grad.detach().clone() for parameter in optimizer.params]
    finally:
        optimizer.step_hook = hook
        optimizer.zero_grad()


def _claim(
    accountant: Any, name: str, norm: float, confirm: Callable[[Verdict], Confirmation] | None = None
) -> ReadObject:
    """The recorded steps; without an optimizer the norm is 1, and only its ratio to the noise matters."""
    history = attributes(accountant, "history")[0]
    if not history:
        raise InputError(
            f"Opacus' {name} has recorded no steps yet: check it after training, or write the plan as a pipeline, "
            "'poisson(q) | clip(l2, 1) | gaussian(noise_multiplier) | times(steps)'"
        )
    steps: dict[tuple[float, float], int] = {}
    for noise, rate, count in history:
        steps[noise, rate] = steps.get((noise, rate), 0) + count
    if len(steps) > 1:
        raise InputError(
            f"Opacus' {name} has recorded {len(steps)} kinds of steps, which are not a single pipeline; compose "
            "them with "
            f"dpassay.compose({', '.join(repr(_pipeline(*kind, count)) for kind, count in steps.items())}, delta=...)"
        )
    ((noise, rate), count) = steps.popitem()
    return ReadObject(
        f"Opacus' {name}",
        pipeline=_pipeline(noise, rate, count, norm),
        dim=1,
        neighbours=Neighbours("add-remove-record"),
        epsilon_at=lambda delta: float(accountant.get_epsilon(delta)),
        by=f"Opacus' {type(accountant).__name__}",
        confirm=confirm,
        caveats=(UNSEEN,),
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
            "the optimizer does not report its steps to an accountant, so their number and the sampling rate are "
            "unknown: "
            "check the PrivacyEngine, or write the run as a pipeline"
        )
    return found
