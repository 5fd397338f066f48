"""A trace as an assertion: `assert_trace` passes unless the noise of the code, as it is written, refutes the claim."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dpassay.testing.assertion import RUNNING, SEED, AuditWarning, NotPrivate, merged

if TYPE_CHECKING:
    from dpassay.trace.result import TraceResult

MARKED = ("inputs", "pairs", "epsilon", "delta", "neighbours")  # arguments of a mark that apply to a trace


def assert_trace(
    f: Any,
    inputs: Sequence[Any] | None = None,
    *,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    epsilon: Any = None,
    delta: Any = None,
    neighbours: Any = None,
    hostile: bool = True,
    seed: int | None = None,
    time: str | float | None = None,
) -> TraceResult:
    """Trace code and raise an AssertionError that names the line if its claim is refuted; otherwise return the result.

    It takes what `dpassay.trace` takes, including hostile inputs. What these show is an AuditWarning, or a failure if
    `neighbours` states that the claim covers them. A trace takes about 3 seconds of work, or `time` ("10s"), if it
    is not decided sooner.

    >>> import numpy as np
    >>> def noisy(x, rng):
    ...     return np.clip(np.nan_to_num(x), 0, 1) + rng.laplace(scale=0.5)
    >>> assert_trace(noisy, pairs=[(0.0, 1.0)], epsilon=2).verdict.word
    'open'
    >>> assert_trace(noisy, pairs=[(0.0, 1.0)], epsilon=1)
    Traceback (most recent call last):
    ...
    dpassay.testing.assertion.NotPrivate: the claim of 1-DP for noisy is refuted
      reason   ...:2 adds Laplace noise of scale 0.5 to a number that differs by 1: ε = 2 for this pair, where ...
    ...
    """
    __tracebackhide__ = True
    from dpassay.errors import InputError
    from dpassay.trace.hostile import WHOLE_ALPHA
    from dpassay.trace.runner import ALPHA
    from dpassay.trace.session import trace

    given = {"inputs": inputs, "pairs": pairs, "epsilon": epsilon, "delta": delta, "neighbours": neighbours}
    asked = {name: value for name, value in given.items() if value is not None}
    budget = RUNNING[-1] if RUNNING else None
    if budget is not None:
        marked = {name: value for name, value in budget.defaults.items() if name in MARKED}
        asked = merged(marked, asked)
    if "epsilon" not in asked:
        raise InputError("state the claimed epsilon: assert_trace(..., epsilon=1)")
    if seed is None:
        seed = SEED if budget is None else budget.next_trace()
    result = trace(f, **asked, hostile=hostile, seed=seed, time=time)
    if budget is not None:
        budget.traces.append((result.verdict.refuted, WHOLE_ALPHA if hostile else ALPHA))
    if result.verdict.refuted:
        again = f"call assert_trace again with seed={seed}"
        raise NotPrivate(_failure(result, again if budget is None else budget.replay), result.verdict)
    for warning in result.warnings:
        warnings.warn(f"{result.verdict.name}: {warning.message}", AuditWarning, stacklevel=2)
    return result


def _failure(result: TraceResult, replay: str) -> str:
    """What a refuted claim prints: the sentence with the line, the line itself, the pair, and how to reproduce it."""
    lines = [f"the claim of {result.verdict.guarantee} for {result.verdict.name} is refuted"]
    rows = [("reason", result.verdict.reason), *_rows(result), ("replay", replay)]
    return "\n".join([*lines, *(f"  {label:<8} {words}".rstrip() for label, words in rows)])


def _rows(result: TraceResult) -> Iterator[tuple[str, str]]:
    from dpassay.audit.inputs.checks import shown
    from dpassay.trace.findings.code import code_around
    from dpassay.trace.findings.rules import meaning

    finding = result.findings[0]
    if finding.place is not None:
        yield "file", f"{finding.place.file}:{finding.place.line}"
        for number, text, marked in code_around(finding.place.file, finding.place.line):
            yield "", f"{'>' if marked else ' '} {number} {text}"
    yield "rule", f"{finding.rule}: {meaning(finding.rule)}"
    yield "as coded", result.as_coded
    for label, x in zip(("first", "second"), result.pair, strict=True):
        yield label, shown(x, 200)
    for draw in dict.fromkeys(map(str, result.draws)):
        yield "drawn", draw
    if result.verdict.alpha is not None:
        yield "alpha", f"{result.verdict.alpha:g}, the probability that this trace refutes a correct mechanism"
    for one in (*result.findings[1:], *result.warnings):
        yield "also", one.message
