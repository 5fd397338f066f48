"""What a region is: a set of values that a stage can output."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpassay.core.numbers import Number, digits
from dpassay.errors import InputError
from dpassay.pipeline.pair import Array, Pair, check_dimension, check_positive
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.pipeline.regions.vector import Ball

INF = float("inf")
SAFE = 1 + 1e-12  # more than the rounding error of a norm in doubles


def _check_power(p: float) -> float:
    if not p >= 1:
        raise InputError(f"a norm needs p from 1 to infinity, got {p}")
    return float(p)


_CHECKS: dict[str, Callable[[Any], Any]] = {  # checks of a region's numbers, by their names
    **dict.fromkeys(("dim", "size", "ones"), check_dimension),
    "times": partial(check_dimension, what="times"),
    **{name: partial(check_positive, what=name) for name in ("radius", "distance")},
    "p": _check_power,
}


@dataclass(frozen=True)
class Region:
    """A set of vectors of one dimension. It knows its farthest pair, exactly, in any lq norm."""

    kind: ClassVar[str]  # its name in a certificate
    by_distance: ClassVar[bool] = False  # neighbors are defined by their distance, wherever they lie
    monotone: ClassVar[bool] = False  # between neighbors either no coordinate falls or none rises
    all_vectors: ClassVar[bool] = False
    unit: ClassVar[bool] = False  # coordinates lie between 0 and 1, and can be either
    around_zero: ClassVar[bool] = False  # with a vector it contains all multiples between it and its opposite
    if TYPE_CHECKING:

        @property
        def dim(self) -> int:
            """How many coordinates its vectors have; an attribute, or computed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in _CHECKS:
                object.__setattr__(self, field.name, _CHECKS[field.name](getattr(self, field.name)))

    def farthest(self, q: float) -> Pair:
        """Two of its vectors with the largest lq distance (for an open set, one that is never exceeded)."""
        raise NotImplementedError

    def knows_farthest(self, q: float) -> bool:
        """Whether no pair is farther apart in lq than the one that is named."""
        return True

    @property
    def ball(self) -> "Ball | None":
        """A ball with the farthest pairs of the region, up to a shift."""
        return None

    def diameter(self, q: float) -> Number:
        """The lq distance of the farthest pair; an interval if it is known only within bounds."""
        return self.farthest(q).distance(q)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether a vector lies in the set, up to rounding; every finite vector does if nothing bounds them."""
        return bool(np.isfinite(value).all())

    def largest_norm(self, p: float) -> float:
        """The largest lp norm in it, from above."""
        return INF

    @property
    def one_copy(self) -> "Region":
        """What one vector can be if each is repeated; the region itself if none is."""
        return self

    @property
    def copies(self) -> int:
        """How often each vector is repeated."""
        return 1

    def repeat(self, pair: Pair) -> Pair:
        """A pair of `one_copy` as one of this region."""
        return pair

    @property
    def row_limits(self) -> tuple[Number, Number] | None:
        """The limits of each coordinate, if neighbors differ in one of them and it has limits."""
        return None

    @property
    def cube_ends(self) -> tuple[Number, Number] | None:
        """The two ends of a cube all of whose corners, except the two constant ones, are in it."""
        return None

    def moving_a_sum(self) -> "Region":
        """How far a sum moves when one of its vectors is added or removed: docs/proofs/record-sums.md."""
        raise unknown_move(type(self).__name__)

    def moved_by(self, count: int) -> "Region":
        """How far several vectors move a sum, each of which moves it as the region describes."""
        raise NotImplementedError

    @property
    def surrounds_zero(self) -> bool:
        """Whether every direction, scaled down, lies in it and two such points can be neighbors."""
        return False

    def to_data(self) -> dict[str, Any]:
        """Its kind and numbers as in a certificate."""
        return {"kind": self.kind, **{field.name: _data(getattr(self, field.name)) for field in fields(self)}}


def unknown_move(what: str) -> InputError:
    """What to say of vectors if it is not known how far one of them moves a sum."""
    return InputError(
        f"add-remove-record is not supported for {what}: it is not known how far one more vector "
        "moves the sum. State it with query(norm, distance) instead"
    )


def _data(value: Any) -> Any:
    if isinstance(value, Region):
        return value.to_data()
    if isinstance(value, Number):
        return list(digits(value))
    return repr(value) if isinstance(value, float) else value  # repr(inf) is "inf"
