"""OpenDP measurements: the claim is what `map` states for neighbours, the formula what its constructors were given.

Neighbours are at distance 1 in the input metric; between data sets of a known size that is one record replaced, which
the symmetric distance counts as 2. Behind a transformation the formula starts from its answer, which is taken to be as
stable as the transformation's own map says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dpassay.adapters.base import Adapted, exact
from dpassay.core.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

# Combinators that restate the guarantee of the same outputs.
RESTATING = ("make_fix_delta", "make_zCDP_to_approxDP", "make_pureDP_to_zCDP", "make_approximate")
RECORDS = ("SymmetricDistance", "InsertDeleteDistance")  # one more record is a distance of 1
REPLACED = ("ChangeOneDistance", "HammingDistance")
NORMS = {"AbsoluteDistance": "l1", "L1Distance": "l1", "L2Distance": "l2", "LInfDistance": "linf"}
SAMPLES: dict[str, tuple[Any, Any]] = {"bool": (False, True), "String": ("a", "b")}


def read(thing: Any) -> Adapted | None:
    """A measurement as a claim; None for OpenDP's other objects."""
    if type(thing).__name__ == "Transformation":
        raise InputError("a transformation of OpenDP draws no noise: chain it with a measurement, such as then_laplace")
    if type(thing).__name__ != "Measurement":
        return None
    metric = _name(thing.input_metric)
    size = _size(thing.input_domain)
    d_in = 2 if metric in RECORDS and size is not None else 1
    guarantee, epsilon_at = _stated(thing, d_in)
    pipeline, dim = _formula(thing, d_in)
    return Adapted(
        f"OpenDP's {_function(thing) or 'measurement'}",
        guarantee,
        pipeline,
        dim,
        _neighbours(metric, size),
        lambda x: thing(x),
        _pairs(thing, metric, d_in),
        epsilon_at,
    )


def _stated(measurement: Any, d_in: int) -> tuple[Guarantee | None, Any]:
    """The guarantee of the measurement's own map; for a whole privacy profile, the function that reads ε from it."""
    measure = str(measurement.output_measure)
    try:
        mapped = measurement.map(d_in)
    except Exception as error:
        raise InputError(
            f"the measurement's map({d_in}) failed: {str(error).strip()[:200]}; state the guarantee yourself and audit "
            "a function that runs it"
        ) from None
    if measure == "MaxDivergence":
        return PureDP(exact(mapped)), None
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(exact(mapped)), None
    if measure == "Approximate(MaxDivergence)":
        epsilon, delta = mapped
        return (ApproxDP(exact(epsilon), exact(delta)) if delta else PureDP(exact(epsilon))), None
    if measure == "SmoothedMaxDivergence":
        return None, mapped.epsilon
    raise InputError(
        f"the measurement states its loss as {measure}, which dpassay does not know; convert it with one of OpenDP's "
        "combinators, such as make_zCDP_to_approxDP and make_fix_delta"
    )


def _formula(measurement: Any, d_in: Any) -> tuple[str | None, int | None]:
    """The pipeline and its dimension, where the constructors are known; else none."""
    function, given = _function(measurement), _arguments(measurement)
    if function in RESTATING:
        return _formula(given["measurement"], d_in)
    if function == "make_chain_mt":
        moved = given["transformation0"].map(d_in)
        return _formula(given["measurement1"], moved) if isinstance(moved, int | float) and moved > 0 else (None, None)
    if function in ("make_randomized_response", "make_randomized_response_bool"):
        return f"category({len(given.get('categories', (0, 1)))}) | flip({exact(given['prob'])})", None
    metric, size = _name(measurement.input_metric), _size(measurement.input_domain)
    dim = 1 if metric == "AbsoluteDistance" else size
    noise = _noise(function, given, whole=_is_whole(measurement.input_domain))
    if noise is None or dim is None or metric not in NORMS or "monotonic" in str(measurement.input_metric):
        return None, None
    answers = "counts" if "discrete" in noise else "query"
    return f"{answers}({NORMS[metric]}, {exact(d_in)}) | {noise}", dim


def _noise(function: str, given: Mapping[str, Any], whole: bool) -> str | None:
    """The stage that a constructor stands for."""
    if given.get("bounds") is not None or not given.get("scale"):
        return None
    scale, discrete = exact(given["scale"]), "discrete_" if whole else ""
    if function == "make_laplace" or (function == "make_geometric" and whole):
        return f"{discrete}laplace({scale})"
    if function == "make_gaussian":
        return f"{discrete}gaussian({scale})"
    if function == "make_noisy_max":  # permute-and-flip, or Gumbel noise where the loss is bounded by zCDP
        kind = "exponential" if str(given["output_measure"]) == "MaxDivergence" else "gumbel"
        return f"noisymax({kind}, {scale})"
    return None


def _pairs(measurement: Any, metric: str, d_in: int) -> tuple[tuple[Any, Any], ...]:
    """Neighbours in the domain, where it is a plain one."""
    domain = measurement.input_domain
    size = _size(domain)
    if metric == "DiscreteDistance":
        values = _arguments(measurement).get("categories") or SAMPLES.get(_atom(domain))
        return () if values is None else tuple((values[0], other) for other in values[1:])
    if _atom(domain) not in SAMPLES and not re.fullmatch(r"[fiu]\d+|usize", _atom(domain)):
        return ()
    low, high = _range(domain, None if metric in (*RECORDS, *REPLACED) else d_in)
    if metric == "AbsoluteDistance":
        return ((low, high),)
    some = 2 if size is None else size
    if metric in NORMS:
        if metric == "LInfDistance" and "monotonic" not in str(
            measurement.input_metric
        ):  # every score moves, and the first and the others in opposite directions
            return (([low] + [high] * (some - 1), [high] + [low] * (some - 1)),)
        return (([low] * some, [high] + [low] * (some - 1)),)
    if metric in (*RECORDS, *REPLACED):
        other = [low] * (some - 1) + [high]
        return (([low] * some, other),) if size or metric in REPLACED else (([low] * (some - 1), other),)
    return ()


def _range(domain: Any, distance: int | None) -> tuple[Any, Any]:
    """Two values of the domain at this distance; without one, the ends of its bounds, or 0 and 1."""
    atom = _atom(domain)
    element = getattr(domain, "element_domain", domain)
    if atom in SAMPLES:
        return SAMPLES[atom]
    try:
        bounds = element.bounds
    except Exception:  # OpenDP raises where there are none
        bounds = None
    kind = float if atom.startswith("f") else int
    if bounds is None:
        return kind(0), kind(distance or 1)
    low, high = bounds
    return kind(low), kind(high if distance is None else min(high, low + distance))


def _neighbours(metric: str, size: int | None) -> Neighbours:
    if metric in NORMS:
        return Neighbours("query")
    if metric in REPLACED or (metric in RECORDS and size is not None):
        return Neighbours("replace-record")
    return Neighbours("add-remove-record" if metric in RECORDS else "any")


def _name(metric: Any) -> str:
    return str(metric).partition("(")[0]


def _atom(domain: Any) -> str:
    """The type of the values: f64, i32, bool, String."""
    found = re.search(r"AtomDomain<(\w+)>", str(domain.type))
    return found[1] if found else ""


def _is_whole(domain: Any) -> bool:
    return re.fullmatch(r"[iu]\d+|usize", _atom(domain)) is not None


def _size(domain: Any) -> int | None:
    try:
        size = domain.size
    except Exception:  # only vectors have one, and OpenDP may raise where it is unknown
        return None
    return size if isinstance(size, int) else None


def _function(measurement: Any) -> str:
    return str(getattr(measurement, "__opendp_dict__", {}).get("__function__", ""))


def _arguments(measurement: Any) -> dict[str, Any]:
    return dict(getattr(measurement, "__opendp_dict__", {}).get("__kwargs__", {}))
