"""How code takes its batches, and which sampling its privacy accountant assumes.

An accountant's ε is about the sampling that it assumes, usually Poisson: each record is in a batch independently of
all others. It does not apply to the batches of a shuffled loader. Needs only the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, wraps
from types import FrameType
from typing import Any

from dpassay.trace.watch.record import CodeLine, RecordedRun, caller, current, unwatched

_POISSON = "Poisson sampling"
_WITHOUT, _WITH = "samples without replacement", "samples with replacement"
_EVENTS = {
    "PoissonSampledDpEvent": _POISSON,
    "SampledWithoutReplacementDpEvent": _WITHOUT,
    "SampledWithReplacementDpEvent": _WITH,
}
_IN_ORDER, _SHUFFLED = "batches in a fixed order", "batches of a shuffled data set"


def mismatch(run: RecordedRun, by_hand: bool) -> tuple[CodeLine, str] | None:
    """The line that takes batches in another way than an accountant assumes, and a sentence.

    None if some loader takes them as assumed: another one may read test data. Without a loader the
    code takes them itself, `by_hand`, if it draws nothing but orders and noise.
    """
    orders = [(_SHUFFLED if whole else _WITHOUT, place) for _, whole, place in run.orders]
    for assumed, accountant, at in run.accounted:
        fits = {assumed, _SHUFFLED} if assumed == _WITHOUT else {assumed}
        known = [(taken, place) for taken, place in (run.batches or (orders if by_hand else [])) if taken]
        if known and not any(taken in fits for taken, _ in known):
            taken, place = known[0]
            said = f"{place} takes {taken}, and {accountant} at {at} accounts for {assumed}"
            return place, f"{said}: the ε that it computes does not apply to these batches"
    return None


def watched_methods() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Methods and functions of the loaders and accountants that are loaded: whose, the name, and what takes note."""
    if (data := sys.modules.get("torch.utils.data")) is not None:
        yield data.DataLoader, "__iter__", _taking(data.DataLoader.__iter__)
    if (opacus := sys.modules.get("opacus.accountants")) is not None:
        for name in ("RDPAccountant", "PRVAccountant", "GaussianAccountant"):
            if (kind := getattr(opacus, name, None)) is not None:
                yield kind, "step", _stepping(kind.step, f"Opacus' {name}")
    if (accounting := sys.modules.get("dp_accounting")) is not None:
        kind = accounting.PrivacyAccountant
        yield kind, "compose", _composing(kind.compose)
    for module, name in (("utils", "get_noise_multiplier"), ("analysis.rdp", "compute_rdp")):
        if (loaded := sys.modules.get(f"opacus.accountants.{module}")) is not None:
            yield loaded, name, _computing(getattr(loaded, name), f"Opacus' {name}")


@cache
def _taking(own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def taking(loader: Any) -> Any:
        if (run := current()) is not None:
            run.batches.append((sampling_of(loader), caller()))
        return own(loader)

    return taking


def sampling_of(loader: Any) -> str:
    """How a torch loader takes its batches, in words; empty if that is not known, or if one batch has all records."""
    batches = getattr(loader, "batch_sampler", None)
    names = {kind.__name__ for one in (batches, getattr(loader, "sampler", None)) for kind in type(one).__mro__}
    if {"UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler"} & names:
        return _POISSON  # as Opacus calls it
    try:
        if loader.batch_size is None or loader.batch_size >= len(loader.dataset):
            return ""
    except TypeError:  # of unknown length
        return ""
    if "RandomSampler" in names:
        return _WITH if getattr(loader.sampler, "replacement", False) else _SHUFFLED
    return _IN_ORDER if "SequentialSampler" in names else ""


def is_base_seed(frame: FrameType | None) -> bool:
    """Whether a torch loader without worker processes draws the number that would seed them: it is never used."""
    while frame is not None and frame.f_code.co_filename.endswith(os.path.join("utils", "_stats.py")):
        frame = frame.f_back  # torch counts calls there
    if frame is None or frame.f_code.co_name != "__init__":
        return False
    if not frame.f_code.co_filename.endswith(os.path.join("utils", "data", "dataloader.py")):
        return False
    return getattr(frame.f_locals.get("loader"), "num_workers", 1) == 0


@cache
def _stepping(own: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(own)
    def step(accountant: Any, *given: Any, **options: Any) -> Any:
        rate = options.get("sample_rate", given[1] if len(given) > 1 else 1)
        if (run := current()) is not None and rate < 1:
            run.accounted.append((_POISSON, name, caller()))
        return own(accountant, *given, **options)

    return step


@cache
def _computing(own: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(own)
    def compute(*given: Any, **options: Any) -> Any:
        at, rate = caller(), options.get("sample_rate", options.get("q", 1))
        if (run := current()) is not None and rate < 1 and f"{os.sep}opacus{os.sep}" not in at.file:
            run.accounted.append((_POISSON, name, at))
        with unwatched():
            return own(*given, **options)

    return compute


@cache
def _composing(own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def compose(accountant: Any, event: Any, *given: Any, **options: Any) -> Any:
        if (run := current()) is not None:
            for assumed in _assumed(event):
                run.accounted.append((assumed, f"dp-accounting's {type(accountant).__name__}", caller()))
        with unwatched():
            return own(accountant, event, *given, **options)

    return compose


def _assumed(event: Any) -> Iterator[str]:
    """The samplings in an event of dp-accounting."""
    name = type(event).__name__
    if name in _EVENTS and getattr(event, "sampling_probability", 0) < 1:
        yield _EVENTS[name]
    for inner in (getattr(event, "event", None), *(getattr(event, "events", None) or ())):
        if inner is not None:
            yield from _assumed(inner)
