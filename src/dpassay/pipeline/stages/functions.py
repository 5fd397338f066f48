"""Functions about which nothing is known: the encoder, and whatever comes after the noise."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpassay.errors import InputError
from dpassay.pipeline.regions import Array, Box, Everything
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import INF, Syntax
from dpassay.values import dataclass


def _of_any_function(before: OutputRegion, dim: int | None) -> OutputRegion:
    """Everything, for the worst function; but every function maps a constant to a constant."""
    dim = dim or before.region.dim
    if before.region.diameter(INF) == 0:
        return OutputRegion(Box.cube(0, 0, dim), before.exact)
    return OutputRegion(Everything(dim), before.exact)


@dataclass(frozen=True)
class Encode(Stage):
    """Any encoder to vectors; nothing is known about its output.

    >>> Encode(4).output_region(OutputRegion(Everything(4))).region
    Everything(dim=4)
    """

    syntax = Syntax("encode", order=10)
    keeps = "all"
    opaque = True
    outweighs_noise = True
    dim: int | None = None  # of its vectors; by default that of the input
    function: Callable[[Any], Array] | None = None

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return _of_any_function(before, self.dim)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Apply the function, if one was given; vectors pass unchanged."""
        if self.function is not None:
            return np.asarray(self.function(batch), dtype=float)
        if not isinstance(batch, np.ndarray):
            raise InputError("this encode stage is only a name: give it a function to run it on texts")
        return batch


@dataclass(frozen=True)
class Function(Stage):
    """Any function; after the noise it is post-processing.

    Nothing is known about it, so bounds hold for the worst such function (one that loses nothing).

    >>> Function(lambda batch: batch * 2).run(np.array([[1.0]]), np.random.default_rng()).tolist()
    [[2.0]]
    """

    syntax = Syntax("decode", order=240)
    keeps = "all"
    opaque = True
    outweighs_noise = True
    function: Callable[[Any], Any] | None = None
    dim: int | None = None  # of its output; by default that of the input

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return _of_any_function(before, self.dim)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return batch if self.function is None else self.function(batch)
