"""Generators that the code seeds with drawn numbers: who knows or guesses these numbers knows the noise."""

from __future__ import annotations

from typing import Any

from dpassay.errors import MechanismError
from dpassay.trace.natural.failing import WatchedTooLong
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.tracer import Tracer

PROBES = 4  # runs in which other numbers are drawn


def seeded_by_draws(tracer: Tracer, x: Any, run: RecordedRun) -> str:
    """What is drawn from a generator that begins elsewhere if other numbers are drawn before it; "" if nothing is."""
    began = _began(tracer, run)
    if not any(k for k, _ in began):
        return ""
    reached, key = 0, run.key or ()
    for n in range(PROBES):
        try:
            other = tracer.run(x, key=(tracer.seed, 10, PROBES * key[-1] + n))
            probe = tracer.run(x, {k: draw.values for k, draw in enumerate(other.draws)}, key=key)
        except WatchedTooLong:
            raise
        except MechanismError:
            continue
        its = [state for _, state in _began(tracer, probe, key)]
        for (k, state), there in zip(began, its, strict=False):
            if state != there:
                said = f"{_place(run, k)} draws from a generator that is seeded with a drawn number"
                return f"{said}: whoever has or guesses that number has the noise"
        reached = max(reached, len(its))
        if reached >= len(began):
            return ""
    return f"whether a drawn number seeds the generator of {_place(run, began[reached][0])} cannot be seen"


def _began(tracer: Tracer, run: RecordedRun, key: tuple[int, ...] = ()) -> list[tuple[int, Any]]:
    """Where generators began that are neither shared, nor held by the code, nor seeded by the system."""
    if not any(k for k, _ in run.starts):
        return []
    known = tracer.first_states(key or run.key or ())
    return [(k, state) for k, state in run.starts if state not in known]


def _place(run: RecordedRun, k: int) -> str:
    return str(run.draws[min(k, len(run.draws) - 1)].place)
