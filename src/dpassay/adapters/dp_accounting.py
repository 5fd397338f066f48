"""dp-accounting's events: each as a pipeline, compared with the ε of the library's own accountant.

An event states no ε, so a δ is needed: the claim is then what `PLDAccountant` gives there, or `RdpAccountant` for
events that the first does not know. Neighbors are data sets with one record added or removed, as in the accountants by
default, unless the event or the user states otherwise.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpassay.adapters.base import ReadObject, attributes, is_own, shown
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

KNOWN = (
    "GaussianDpEvent, LaplaceDpEvent, DiscreteLaplaceDpEvent, RandomizedResponseDpEvent, NonPrivateDpEvent, "
    "SingleEpochTreeAggregationDpEvent, Gaussian noise on samples without replacement, a PoissonSampledDpEvent of "
    "Gaussian or Laplace noise, and compositions of equal events or of Gaussian ones"
)
NO_MECHANISM = {
    "NoOpDpEvent": "it releases nothing: its epsilon is 0, and there is nothing to check",
    "UnsupportedDpEvent": "it is a placeholder: use an event that describes the mechanism",
    "ZCDpEvent": "it is a guarantee, not a mechanism: compose guarantees with dpassay.compose",
}
# For each event the neighbors that it can be judged for, the usual ones first, and the accountant's name for them.
ADDED, REPLACED = ("add-remove-record", "ADD_OR_REMOVE_ONE"), ("replace-record", "REPLACE_ONE")
RELATIONS = {
    "GaussianDpEvent": (ADDED, REPLACED),
    "PoissonSampledDpEvent": (ADDED, REPLACED),
    "SampledWithoutReplacementDpEvent": (REPLACED,),
    "RandomizedResponseDpEvent": (("any", "REPLACE_ONE"),),
    "SingleEpochTreeAggregationDpEvent": (("query", "REPLACE_SPECIAL"),),
    "NonPrivateDpEvent": (ADDED, REPLACED),
}


def read(thing: Any) -> ReadObject | None:
    """An event as a claim; None for the library's other objects."""
    return _claim(thing) if any(base.__name__ == "DpEvent" for base in type(thing).__mro__) else None


def _claim(event: Any, neighbours: Neighbours | None = None) -> ReadObject:
    """An event as a claim between these neighbors."""
    step, times = _unrolled(event)
    kind = type(step).__name__
    if not is_own(step, "dp_accounting"):
        raise InputError(f"{kind} is not one of dp-accounting's own events: dpassay cannot know what it describes")
    known = RELATIONS.get("GaussianDpEvent" if _sigma(step) is not None else kind, (ADDED,))
    relation = next((one for one in known if neighbours in (None, Neighbours(one[0]))), None)
    if relation is None:
        allowed = " or ".join(name for name, _ in known)
        raise InputError(f"dp-accounting's {kind} is checked for the neighbors {allowed}, got {neighbours}")
    stages = _stages(step, replaced=relation == REPLACED)
    accountant = "PLDAccountant"
    if kind in ("SampledWithoutReplacementDpEvent", "SingleEpochTreeAggregationDpEvent"):
        accountant = "RdpAccountant"
    return ReadObject(
        f"dp-accounting's {type(event).__name__}",
        pipeline=stages if times == 1 else f"{stages} | times({times})",
        dim=None if relation[0] == "any" else 1,
        neighbours=Neighbours(relation[0]),
        epsilon_at=lambda delta: _accounted(event, delta, accountant, relation[1]),
        by=f"dp-accounting's {accountant}, {relation[1]}",
        under=lambda other: _claim(event, other),
        caveats=("An event describes a mechanism: no code of it was run, and only its description was judged.",),
    )


def _unrolled(event: Any) -> tuple[Any, int]:
    """The one event that is repeated, and how often; a composition of Gaussian ones is one of them."""
    kind = type(event).__name__
    if kind == "SelfComposedDpEvent":
        inner, count = attributes(event, "event", "count")
        step, times = _unrolled(inner)
        return step, times * int(count)
    if kind == "ComposedDpEvent":
        parts = [_unrolled(part) for part in event.events if type(part).__name__ != "NoOpDpEvent"]
        open_ones = [part for part in parts if type(part[0]).__name__ == "NonPrivateDpEvent"]
        if open_ones:
            return open_ones[0]
        if parts and all(type(part[0]).__name__ == "GaussianDpEvent" for part in parts):
            return (parts[0][0], sum(times for _, times in parts)) if _alike(parts) else (event, 1)
        if not parts or not _alike(parts):
            raise InputError(
                "a ComposedDpEvent of different events is not a single pipeline; compose pipelines and guarantees "
                "with dpassay.compose"
            )
        return parts[0][0], sum(times for _, times in parts)
    return event, 1


def _alike(parts: list[tuple[Any, int]]) -> bool:
    return all(part[0] == parts[0][0] for part in parts)


def _stages(event: Any, replaced: bool) -> str:
    """One event as a pipeline. Replacing a record removes one and adds another: the distance is 2."""
    kind = type(event).__name__
    far = 2 if replaced else 1
    if (sigma := _sigma(event)) is not None:
        return f"query(l2, {far}) | gaussian({sigma})"
    if kind == "LaplaceDpEvent":
        return f"query(l1, 1) | laplace({shown(event.noise_multiplier)})"
    if kind == "DiscreteLaplaceDpEvent":
        return f"counts(l1, {shown(event.sensitivity)}) | discrete_laplace(1/{shown(event.noise_parameter)})"
    if kind == "RandomizedResponseDpEvent":  # the bucket drawn at random may be the true one
        wrong, many = event.noise_parameter, event.num_buckets
        return f"category({many}) | flip(1 - {shown(wrong)}*({many} - 1)/{many})"
    if kind == "NonPrivateDpEvent":
        return "query(l1, 1) | leak(1)"
    if kind == "SingleEpochTreeAggregationDpEvent":  # a record is in one leaf, and in all nodes above it
        steps = event.step_counts if isinstance(event.step_counts, list | tuple) else [event.step_counts]
        return f"query(l2, sqrt({max(steps).bit_length()})) | gaussian({shown(event.noise_multiplier)})"
    found = _sampled(event, kind)
    if found is None:
        why = NO_MECHANISM.get(kind, f"it knows {KNOWN}")
        raise InputError(f"dpassay cannot judge a {kind} as a pipeline; {why}")
    return found


def _sigma(event: Any) -> str | None:
    """The noise multiplier of Gaussian noise; several on the same data are one whose 1/σ² are added up."""
    kind = type(event).__name__
    if kind == "GaussianDpEvent":
        return shown(event.noise_multiplier)
    if kind == "SelfComposedDpEvent":
        sigma = _sigma(event.event)
        return None if sigma is None else f"({sigma})/sqrt({event.count})"
    if kind == "ComposedDpEvent":
        sigmas = [_sigma(part) for part in event.events if type(part).__name__ != "NoOpDpEvent"]
        if sigmas and None not in sigmas:
            return f"1/sqrt({' + '.join(f'1/({sigma})**2' for sigma in sigmas)})"
    return None


def _sampled(event: Any, kind: str) -> str | None:
    """Records of norm at most 1, some of which are drawn, and noise on their sum."""
    inner: Any = getattr(event, "event", None)
    sigma = _sigma(inner)
    if kind == "PoissonSampledDpEvent":
        drawn = f"poisson({shown(event.sampling_probability)})"
        if type(inner).__name__ == "LaplaceDpEvent":
            return f"{drawn} | clip(l1, 1) | laplace({shown(inner.noise_multiplier)})"
        return f"{drawn} | clip(l2, 1) | gaussian({sigma})" if sigma is not None else None
    if kind == "SampledWithoutReplacementDpEvent" and sigma is not None:  # its σ is for two samples, a record replaced
        return f"subsample({event.sample_size}, {event.source_dataset_size}) | clip(l2, 0.5) | gaussian({sigma})"
    return None


def _accounted(event: Any, delta: float, accountant: str, relation: str) -> float:
    """ε by one of the library's accountants."""
    between = getattr(import_module("dp_accounting").NeighboringRelation, relation)
    module = import_module("dp_accounting.pld" if accountant == "PLDAccountant" else "dp_accounting.rdp")
    try:
        made = getattr(module, accountant)(neighboring_relation=between)
        return float(made.compose(event).get_epsilon(delta))
    except Exception as error:
        raise InputError(f"dp-accounting gives no epsilon at delta {delta:g}: {str(error)[:200]}; state one") from None
