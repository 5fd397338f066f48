"""Sets of values that a stage can put out."""

from dpassay.pipeline.pair import Array, Block, Pair, check_dimension, check_positive
from dpassay.pipeline.regions.discrete import Bits, Categories, Finite, MinMax, OneHot, Rows, Sparse
from dpassay.pipeline.regions.vector import Apart, Ball, Both, Box, Everything, Region, Repeated, Sphere

__all__ = [
    "Apart",
    "Array",
    "Ball",
    "Bits",
    "Block",
    "Both",
    "Box",
    "Categories",
    "Everything",
    "Finite",
    "MinMax",
    "OneHot",
    "Pair",
    "Region",
    "Repeated",
    "Rows",
    "Sparse",
    "Sphere",
    "check_dimension",
    "check_positive",
]
