"""OpenDP measurements: the claim is what `map` states for neighbors, the formula what its constructors were given.

Neighbors are at distance 1 in the input metric, unless `at` states another; between data sets of a known size that is
one record replaced, which the symmetric distance counts as 2. After a transformation the formula starts from its
answer, which is assumed to be as stable as the transformation's own map states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpassay.adapters.base import FormulaReading, ReadObject, exact
from dpassay.core.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

# Combinators that restate the guarantee of the same outputs.
RESTATING = (
    *("make_fix_delta", "make_zCDP_to_approxDP", "make_pureDP_to_zCDP", "make_approximate"),
    "make_fixed_approxDP_to_approxDP",
)
COMPOSING = ("make_composition", "make_basic_composition")
# Measurements whose output is an object for further queries.
INTERACTIVE = (
    *("make_adaptive_composition", "make_sequential_composition", "make_fully_adaptive_composition"),
    *("make_privacy_filter", "make_alp_queryable"),
)
AMPLIFIED = "make_population_amplification"
PARTITIONS = ("L01InfDistance", "L02InfDistance")  # how many parts change, by how much in total, and each at most
GRID = {"f64": -1074, "f32": -149}  # the smallest power of 2 of which all values of a type are multiples
SIGMAS = 0.01, 100_000.0  # range of σ, in units of its grid, for which our pipeline has the discrete Gaussian's law
CLOSE = 1 + 1e-9  # answers that are further apart than this times what a map allows contradict it
RECORDS = ("SymmetricDistance", "InsertDeleteDistance")  # one more record is a distance of 1
REPLACED = ("ChangeOneDistance", "HammingDistance")
NORMS = {"AbsoluteDistance": "l1", "L1Distance": "l1", "L2Distance": "l2", "LInfDistance": "linf"}
SAMPLES: dict[str, tuple[Any, Any]] = {"bool": (False, True), "String": ("a", "b")}


def read(thing: Any) -> ReadObject | None:
    """A measurement as a claim; None for OpenDP's other objects."""
    kind = type(thing).__name__
    if kind == "Transformation":
        raise InputError("an OpenDP transformation draws no noise: chain it with a measurement, such as then_laplace")
    if kind in ("Odometer", "Context", "Query", "Queryable"):
        raise InputError(_asked_further(kind))
    return at(thing) if kind == "Measurement" else None


def at(measurement: Any, d_in: Any = None) -> ReadObject:
    """A measurement as a claim about inputs at this distance in its own metric; by default about neighbors."""
    metric, size = _name(measurement.input_metric), _size(measurement.input_domain)
    if d_in is None:
        replaced = metric in RECORDS and size is not None
        d_in = (1, 1, 1) if metric in PARTITIONS else 2 if replaced else 1
    if (inner := _contains(measurement, INTERACTIVE)) is not None:
        raise InputError(_asked_further(inner))
    if _contains(measurement, (AMPLIFIED,)):
        raise InputError(
            f"OpenDP's {AMPLIFIED} states what holds if the data are a secret sample of a larger population; the "
            "measurement draws no sample, and for a fixed one its map does not hold: check the measurement inside it, "
            "or write the sampling as a pipeline, 'subsample(m, n) | clip(l1, 1) | laplace(2)'"
        )
    guarantee, epsilon_at = _stated(measurement, d_in)
    pipeline, dim = _formula(measurement, d_in)
    name = f"OpenDP's {_function(measurement) or 'measurement'}"
    if guarantee is None and epsilon_at is None:
        name += f" (map({d_in}) is infinite)"
    return ReadObject(
        f"{name}, before its post-processing" if _is_processed(measurement) else name,
        guarantee,
        pipeline,
        dim,
        _neighbours(metric, size, d_in),
        lambda x: measurement(x),
        _pairs(measurement, metric, d_in),
        epsilon_at,
        by=f"{name}, its map({d_in}) in {measurement.output_measure}",
        reading=FormulaReading() if pipeline is None else _reading(measurement, d_in),
    )


def _asked_further(kind: str) -> str:
    return (
        f"OpenDP's {kind} is interactive, and its outputs depend on the queries it receives: check "
        "each measurement separately"
    )


def _inner(measurement: Any) -> list[Any]:
    """The measurements that a measurement is made of."""
    given = _arguments(measurement)
    several = given.get("measurements") or ()
    return [*(given[key] for key in ("measurement", "measurement0", "measurement1") if key in given), *several]


def _contains(measurement: Any, functions: tuple[str, ...]) -> str | None:
    """The first of these constructors that a measurement was made by, at any depth."""
    function = _function(measurement)
    if function in functions:
        return function
    return next((found for inner in _inner(measurement) if (found := _contains(inner, functions)) is not None), None)


def _is_processed(measurement: Any) -> bool:
    return _function(measurement) == "make_chain_pm" or any(_is_processed(inner) for inner in _inner(measurement))


def _stated(measurement: Any, d_in: Any) -> tuple[Guarantee | None, Any]:
    """The guarantee of the measurement's own map; for a whole privacy profile, the function that reads ε from it.

    There is neither if the map is infinite, as without noise.
    """
    measure = str(measurement.output_measure)
    try:
        mapped = measurement.map(d_in)
    except Exception as error:
        raise InputError(
            f"the measurement's map({d_in}) failed: {str(error).strip()[:200]}; state the guarantee yourself and audit "
            "a function that runs it"
        ) from None
    if any(loss == math.inf for loss in (mapped if isinstance(mapped, tuple) else (mapped,))):
        return None, None
    if measure == "MaxDivergence":
        return PureDP(exact(mapped)), None
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(exact(mapped)), None
    if measure == "Approximate(MaxDivergence)":
        epsilon, delta = mapped
        return (ApproxDP(exact(epsilon), exact(delta)) if delta else PureDP(exact(epsilon))), None
    if measure == "Approximate(ZeroConcentratedDivergence)" and mapped[1] == 0:
        return ZCDP(exact(mapped[0])), None
    if measure == "SmoothedMaxDivergence":
        return None, mapped.epsilon
    if measure == "RenyiDivergence":
        raise InputError(
            f"the measurement states a Rényi divergence for every order, {exact(mapped(2.0))} at 2: write it as a "
            "pipeline and check one order, check(..., guarantee=dpassay.RenyiDP(2, ...)), or audit a function"
        )
    raise InputError(
        f"the measurement states its loss as {measure}, which dpassay does not know; convert it with one of OpenDP's "
        "combinators, such as make_zCDP_to_approxDP and make_fix_delta"
    )


def _formula(measurement: Any, d_in: Any) -> tuple[str | None, int | None]:
    """The pipeline and its dimension, if the constructors are known; otherwise None."""
    function, given = _function(measurement), _arguments(measurement)
    if function in RESTATING:
        return _formula(given["measurement"], d_in)
    if function == "make_chain_mt":
        moved = given["transformation0"].map(d_in)
        return _formula(given["measurement1"], moved) if isinstance(moved, int | float) and moved > 0 else (None, None)
    if function == "make_chain_pm":
        return _formula(given["measurement0"], d_in)
    if function in COMPOSING:
        return _composed(given["measurements"], d_in)
    if function in ("make_randomized_response", "make_randomized_response_bool"):
        return f"category({len(given.get('categories', (0, 1)))}) | flip({exact(given['prob'])})", None
    metric, domain = _name(measurement.input_metric), measurement.input_domain
    dim = 1 if metric == "AbsoluteDistance" else _size(domain)
    if dim is None or metric not in NORMS or "monotonic" in str(measurement.input_metric) or not given.get("scale"):
        return None, None
    least = 0 if _is_whole(domain) else GRID.get(_atom(domain))
    grid = least if given.get("k") is None else given["k"]
    noise = _noise(function, given)
    if noise is None or grid is None or given.get("bounds") is not None:
        return None, None
    scale = exact(given["scale"])
    if noise.startswith("noisymax"):
        return f"query({NORMS[metric]}, {exact(d_in)}) | {noise}, {scale})", dim
    if grid < 0 and grid == least:
        return f"query({NORMS[metric]}, {exact(d_in)}) | {noise}({scale})", dim
    return _on_grid(noise, given["scale"], metric, d_in, grid, dim, rounded=grid != least)


def _reading(measurement: Any, d_in: Any) -> FormulaReading:
    """How runs are compared with the formula: the answers are the transformation's own, of which it takes any two.

    What is run is the measurement itself, without a post-processing function.
    """
    function, given = _function(measurement), _arguments(measurement)
    if function in RESTATING:
        return _reading(given["measurement"], d_in)
    if function == "make_chain_mt":
        transformation = given["transformation0"]
        inner = _reading(given["measurement1"], transformation.map(d_in))
        run = inner.run or given["measurement1"]
        return replace(
            inner,
            answer=lambda x: inner.answer(transformation(x)),
            run=(lambda x: run(transformation(x))) if _is_processed(measurement) else measurement,
        )
    if function == "make_chain_pm":
        inner = _reading(given["measurement0"], d_in)
        return replace(inner, run=inner.run or given["measurement0"])
    if function in COMPOSING:
        parts = [(one, _reading(one, d_in)) for one in given["measurements"]]
        return replace(
            parts[0][1],
            numbers=lambda outputs: np.concatenate(
                [np.ravel(part.numbers(out)) for (_, part), out in zip(parts, outputs, strict=True)]
            ),
            run=(lambda x: [(part.run or one)(x) for one, part in parts])
            if _is_processed(measurement)
            else measurement,
        )
    if "prob" in given:
        values = list(given.get("categories", (False, True)))
        return FormulaReading(values.index, values.index, run=measurement)
    grid = None if _noise(function, given) in ("laplace", "gaussian") else 0
    return _of_noise(measurement, d_in, given.get("k") if grid is None else 0)


def _of_noise(measurement: Any, d_in: Any, grid: int | None) -> FormulaReading:
    """For noise on multiples of 2^grid, to which answers are rounded, halves up."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}.get(NORMS.get(_name(measurement.input_metric), ""))

    def too_far(x: Any, y: Any) -> str:
        if order is None:
            return ""
        far = float(np.linalg.norm(np.ravel(np.subtract(x, y, dtype=float)), order))
        allowed = float(d_in) if not grid else math.ceil(Fraction(d_in) / Fraction(2) ** grid)
        return f"the answers are {far:g} apart, where the map allows {allowed:g}" if far > allowed * CLOSE else ""

    if not grid:
        return FormulaReading(run=measurement, too_far=too_far)
    return FormulaReading(
        lambda x: math.floor(Fraction(x) / Fraction(2) ** grid + Fraction(1, 2)),
        lambda output: np.asarray(output, dtype=float) / 2.0**grid,
        run=measurement,
        too_far=too_far,
    )


def _on_grid(
    noise: str, scale: float, metric: str, d_in: Any, grid: int, dim: int, rounded: bool
) -> tuple[str | None, int | None]:
    """Noise on multiples of 2^grid; answers that are not on the grid are rounded to the nearest multiple, halves up.

    Two numbers that are d apart are then at most ⌈d / 2^grid⌉ multiples apart, and some are. Several numbers can
    cross a boundary at once, for which there is no stage here.
    """
    noise_scale = Fraction(scale) / Fraction(2) ** grid
    far = math.ceil(Fraction(d_in) / Fraction(2) ** grid)
    sigma_known = noise == "laplace" or SIGMAS[0] <= noise_scale <= SIGMAS[1]
    if (rounded and dim > 1) or not sigma_known:
        return None, None
    return f"counts({NORMS[metric]}, {far}) | discrete_{noise}({exact(float(noise_scale))})", dim


def _noise(function: str, given: Mapping[str, Any]) -> str | None:
    """The stage that a constructor stands for, without its scale."""
    pure = str(given.get("output_measure", "MaxDivergence")) == "MaxDivergence"
    if function in ("make_laplace", "make_geometric") or (function == "make_noise" and pure):
        return "laplace"
    if function in ("make_gaussian", "make_noise"):
        return "gaussian"
    # Permute-and-flip, or Gumbel noise where the loss is bounded by zCDP.
    if function == "make_noisy_max" or (function == "make_noisy_top_k" and given["k"] == 1):
        return f"noisymax({'exponential' if pure else 'gumbel'}"
    return None


def _composed(measurements: Any, d_in: Any) -> tuple[str | None, int | None]:
    """Measurements of the same data, side by side: a pipeline if they are all the same."""
    found = {_formula(one, d_in) for one in measurements}
    pipeline, dim = found.pop()
    if found or pipeline is None or "times(" in pipeline:
        return None, None
    return f"{pipeline} | times({len(measurements)})", dim


def _pairs(measurement: Any, metric: str, d_in: Any) -> tuple[tuple[Any, Any], ...]:
    """Neighbors in the domain, if it is a simple one."""
    domain = measurement.input_domain
    if metric in PARTITIONS:  # a part that one person causes to appear, next to a large one
        fits = re.search(r"MapDomain.*String.*AtomDomain<[iu]\d+>", str(domain.type)) and min(d_in) >= 1
        return (({"a": 1000}, {"a": 1000, "b": 1}),) if fits else ()
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
    except Exception:  # OpenDP raises if there are none
        bounds = None
    kind = float if atom.startswith("f") else int
    if bounds is None:
        return kind(0), kind(distance or 1)
    low, high = bounds
    return kind(low), kind(high if distance is None else min(high, low + distance))


def _neighbours(metric: str, size: int | None, d_in: Any) -> Neighbours:
    usual = (1, 1, 1) if metric in PARTITIONS else 2 if metric in RECORDS and size is not None else 1
    if metric in NORMS or d_in != usual:
        return Neighbours("query")
    if metric in PARTITIONS:
        return Neighbours("add-remove-record")
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
    except Exception:  # only vectors have one, and OpenDP may raise if it is unknown
        return None
    return size if isinstance(size, int) else None


def _function(measurement: Any) -> str:
    return str(getattr(measurement, "__opendp_dict__", {}).get("__function__", ""))


def _arguments(measurement: Any) -> dict[str, Any]:
    return dict(getattr(measurement, "__opendp_dict__", {}).get("__kwargs__", {}))
