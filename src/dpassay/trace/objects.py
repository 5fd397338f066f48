"""A trace of a library's object: the claim and the inputs come with it, as for `check` and `audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from dpassay.adapters import adapted
from dpassay.core.guarantee import epsilon_delta, stated_guarantee
from dpassay.core.numbers import up
from dpassay.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from dpassay.trace.result import TraceResult


def trace_object(f: Any, inputs: Sequence[Any] = (), **options: Any) -> TraceResult:
    """`dpassay.trace.runner.trace` with the object's own claim for whatever is not given here.

    >>> trace_object(lambda x, rng: x + rng.laplace(scale=0.5), [0.0, 1.0], epsilon=1).verdict.word
    'refuted'
    >>> trace_object(lambda x, rng: x + rng.laplace(scale=0.5), [0.0, 1.0])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: state the claimed epsilon: trace(..., epsilon=1)
    """
    from dpassay.trace.session import trace

    if unknown := sorted(set(options) - set(signature(trace).parameters)):
        raise InputError(f"unknown option {unknown[0]}{did_you_mean(unknown[0], signature(trace).parameters)}")
    if len(inputs) and all(type(one) is tuple and len(one) == 2 for one in inputs):
        options["pairs"], inputs = [*inputs, *options.get("pairs", ())], ()
    known = adapted(f)
    epsilon, delta = options.pop("epsilon", None), options.pop("delta", None)
    if known is not None and known.mechanism is None:
        raise InputError(f"{known.name} is a record or a setting, not code that could be run: check it instead")
    if epsilon is None and known is None:
        raise InputError("state the claimed epsilon: trace(..., epsilon=1)")
    if not inputs and not options.get("pairs"):
        options["pairs"] = () if known is None else known.pairs
        if not options["pairs"]:
            raise InputError("give the inputs to run it on: pairs=[(X, Y)], or more inputs")
    if known is None:
        return trace(f, inputs, epsilon=epsilon, delta=0 if delta is None else delta, **options)
    claimed = epsilon_delta(stated_guarantee(**known.tested(epsilon, delta)))
    options["name"] = options.get("name") or known.name
    options |= {"epsilon": up(claimed.exact_epsilon), "delta": up(claimed.exact_delta)}
    result = trace(known.mechanism, inputs, **options)
    verdict, source = result.verdict, known.source(epsilon, runs=True)
    claim = replace(verdict.claim, source=source, neighbours=known.neighbours or verdict.neighbours)
    reason = f"{verdict.reason.removesuffix('.')}. The claim of {claimed} is {source}."
    return replace(result, verdict=replace(verdict, claim=claim, reason=reason))
