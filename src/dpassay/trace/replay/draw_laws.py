"""The laws of all draws of a run, to compare with those of other runs and of the other input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy import asarray

from dpassay.trace.laws.formulas import covariance_of
from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.replay.cheapest_shift import numbers_of
from dpassay.trace.watch.record import Array, DrawRecord, RecordedRun


class PathDraw(NamedTuple):
    """A draw: its name and shape, the law of its noise, and where that lies."""

    name: str
    shape: tuple[int, ...]
    law: tuple[Any, ...]
    location: bytes


Laws = tuple[PathDraw, ...]


def laws_of(run: RecordedRun, shifted: Iterable[int] = ()) -> Laws:
    """The draws of a run, and the numbers made from them that are shifted."""
    where = numbers_of(run) if shifted else {}
    made = [where[k][0] for k in sorted(shifted) if k in where and where[k][0].formula is not None]
    return tuple(map(_drawn, [*run.draws, *made]))


def _drawn(draw: DrawRecord) -> PathDraw:
    law, rows = law_of(draw), covariance_of(draw)
    if law is None and rows is None:
        given = tuple(sorted((name, str(asarray(value).tolist())) for name, value in draw.parameters.items()))
        return PathDraw(draw.distribution, draw.shape, given, b"")
    location = np.array(location_of(draw), dtype=float).tobytes()
    if law is None and rows is not None:
        return PathDraw(draw.distribution, draw.shape, ("correlated", rows[1].tobytes()), location)
    assert law is not None
    scale = np.array(law.scale, dtype=float).tobytes()
    return PathDraw(draw.distribution, draw.shape, (law.kind, scale, law.share), location)


def location_of(draw: DrawRecord) -> Array:
    """Where the noise of each number of a draw lies, flat; 0 if its law is not known."""
    law, rows = law_of(draw), covariance_of(draw)
    if law is None:
        return np.zeros(max(draw.values.size, 1)) if rows is None else np.broadcast_to(rows[0], draw.shape).reshape(-1)
    return law.location


def same_but_for_location(mine: Laws, its: Laws) -> bool:
    """Whether two runs draw the same noise, though perhaps around other locations."""
    return [one[:3] for one in mine] == [one[:3] for one in its]
