"""Sets of values that a stage can output."""

from dpassay.pipeline.pair import Array, Block, Pair, check_dimension, check_positive
from dpassay.pipeline.regions.base import Region
from dpassay.pipeline.regions.clipped_counts import clipped_step
from dpassay.pipeline.regions.discrete import Bits, Categories, Finite, MinMax, OneHot, RowBits, Rows, Sparse
from dpassay.pipeline.regions.images import Counted, Rounded, Squashed
from dpassay.pipeline.regions.vector import (
    Ball,
    Box,
    ClippedAnswers,
    Everything,
    Intersection,
    MonotoneBall,
    Repeated,
    SensitivityBall,
    Sphere,
)

__all__ = [
    "Array",
    "Ball",
    "Bits",
    "Block",
    "Box",
    "Categories",
    "ClippedAnswers",
    "Counted",
    "Everything",
    "Finite",
    "Intersection",
    "MinMax",
    "MonotoneBall",
    "OneHot",
    "Pair",
    "Region",
    "Repeated",
    "Rounded",
    "RowBits",
    "Rows",
    "SensitivityBall",
    "Sparse",
    "Sphere",
    "Squashed",
    "check_dimension",
    "check_positive",
    "clipped_step",
]
