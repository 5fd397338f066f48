"""dp-accounting's events: what happened as a pipeline, and beside it the ε of the library's own accountant.

An event states no ε, so that a δ is needed: the claim is then what `PLDAccountant` gives there. Neighbours are data
sets with one record added or removed, which is that accountant's default.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpassay.adapters.base import Adapted, attributes, shown
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

KNOWN = (
    "GaussianDpEvent, LaplaceDpEvent, DiscreteLaplaceDpEvent, RandomizedResponseDpEvent, a PoissonSampledDpEvent of "
    "the first two, and SelfComposedDpEvent and ComposedDpEvent of equal ones"
)


def read(thing: Any) -> Adapted | None:
    """An event as a claim; None for the library's other objects."""
    if not any(base.__name__ == "DpEvent" for base in type(thing).__mro__):
        return None
    step, times = _unrolled(thing)
    kind = type(step).__name__
    stages = _sampled(step) if kind == "PoissonSampledDpEvent" else _once(step)
    if stages is None:
        raise InputError(f"dpassay cannot judge a {kind} as a pipeline; it knows {KNOWN}")
    local = kind == "RandomizedResponseDpEvent"
    return Adapted(
        f"dp-accounting's {type(thing).__name__}",
        pipeline=stages if times == 1 else f"{stages} | times({times})",
        dim=None if local else 1,
        neighbours=Neighbours("any" if local else "add-remove-record"),
        epsilon_at=lambda delta: _accounted(thing, delta, local),
    )


def _unrolled(event: Any) -> tuple[Any, int]:
    """The one event that is repeated, and how often."""
    kind = type(event).__name__
    if kind == "SelfComposedDpEvent":
        inner, count = attributes(event, "event", "count")
        step, times = _unrolled(inner)
        return step, times * int(count)
    if kind == "ComposedDpEvent":
        parts = [_unrolled(part) for part in event.events if type(part).__name__ != "NoOpDpEvent"]
        if not parts or any(part[0] != parts[0][0] for part in parts):
            raise InputError(
                "a ComposedDpEvent of different events is no single pipeline; dpassay.compose adds up pipelines and "
                "guarantees"
            )
        return parts[0][0], sum(times for _, times in parts)
    return event, 1


def _once(event: Any) -> str | None:
    """One event that is about the whole data set, as the answer to a query of sensitivity 1."""
    kind = type(event).__name__
    if kind == "GaussianDpEvent":
        return f"query(l2, 1) | gaussian({shown(event.noise_multiplier)})"
    if kind == "LaplaceDpEvent":
        return f"query(l1, 1) | laplace({shown(event.noise_multiplier)})"
    if kind == "DiscreteLaplaceDpEvent":
        return f"counts(l1, {shown(event.sensitivity)}) | discrete_laplace(1/{shown(event.noise_parameter)})"
    if kind == "RandomizedResponseDpEvent":  # the bucket drawn at random may be the true one
        wrong, many = event.noise_parameter, event.num_buckets
        return f"category({many}) | flip(1 - {shown(wrong)}*({many} - 1)/{many})"
    return None


def _sampled(event: Any) -> str | None:
    """Poisson sampling of records of norm at most 1, and noise on their sum."""
    inner, rate = event.event, event.sampling_probability
    norm, noise = {"GaussianDpEvent": ("l2", "gaussian"), "LaplaceDpEvent": ("l1", "laplace")}.get(
        type(inner).__name__, ("", "")
    )
    return f"poisson({shown(rate)}) | clip({norm}, 1) | {noise}({shown(inner.noise_multiplier)})" if norm else None


def _accounted(event: Any, delta: float, local: bool) -> float:
    """ε by the library's accountant of privacy-loss distributions."""
    relations = import_module("dp_accounting").NeighboringRelation
    accountant = import_module("dp_accounting.pld").PLDAccountant
    relation = relations.REPLACE_ONE if local else relations.ADD_OR_REMOVE_ONE
    try:
        return float(accountant(relation).compose(event).get_epsilon(delta))
    except Exception as error:
        raise InputError(f"dp-accounting gives no epsilon at delta {delta:g}: {str(error)[:200]}; say which") from None
