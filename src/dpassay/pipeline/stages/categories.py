"""Stages that take one value, not a vector: a category, or a value that a public function hashes."""

from typing import Any

import numpy as np

from dpassay.errors import InputError
from dpassay.pipeline.regions import Categories, Everything, OneHot, Region, Sparse
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import Syntax, count
from dpassay.values import dataclass


def _check_single(stage: Stage, before: OutputRegion) -> None:
    """Refuse a vector where a single value is needed."""
    if before.region.dim != 1:
        raise InputError(
            f"{stage} takes one value, but its input has {before.region.dim} coordinates: use "
            f"dim 1, or a stage for vectors"
        )


def _all_names(region: Region, size: int) -> bool:
    """Whether all of these names are among the values, and neighbors can have any two of them."""
    return isinstance(region, Everything) or region == Categories(size)


@dataclass(frozen=True)
class Category(Stage):
    """The input is one of k categories.

    They are written 0 to k−1.

    >>> Category(3).output_region(OutputRegion(Everything(1))).region
    Categories(size=3)
    """

    syntax = Syntax("category", order=80, size=count(called="k"))
    takes_one_value = True
    size: int

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The categories; with fewer values, or other names, it is not known which of them can occur."""
        _check_single(self, before)
        return OutputRegion(Categories(self.size), before.exact and _all_names(before.region, self.size))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        names = np.asarray(batch, dtype=float)
        if names.shape[-1] != 1:
            raise InputError(f"{self} takes one number, got a vector of {names.shape[-1]}")
        if not ((names >= 0) & (names < self.size) & (names == np.floor(names))).all():
            raise InputError(f"categories are the numbers 0 to {self.size - 1}")
        return batch


@dataclass(frozen=True)
class OneHotEncode(Stage):
    """Write one of k categories as a vector with a single 1.

    >>> OneHotEncode(3).run(np.array([[2.0]]), np.random.default_rng()).tolist()
    [[0.0, 0.0, 1.0]]
    """

    syntax = Syntax("onehot", order=90, size=count(called="k"))
    takes_one_value = True
    size: int

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The k vectors, all of which can occur if all categories, or all of these vectors, can be inputs."""
        if before.region.dim != self.size:
            _check_single(self, before)
        whole = _all_names(before.region, self.size) or before.region == OneHot(self.size)
        return OutputRegion(OneHot(self.size), before.exact and whole)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Look up each category; a vector that is already one-hot passes unchanged."""
        batch = np.asarray(batch, dtype=float)
        if batch.shape[-1] == self.size and self.size > 1:
            if not (np.isin(batch, (0, 1)).all() and (batch.sum(axis=-1) == 1).all()):
                raise InputError(f"expected a category or a vector of {self.size} with a single 1")
            return batch
        Category(self.size).run(batch, rng)
        return np.eye(self.size)[batch[..., 0].astype(int)]


def _scrambled(values: np.ndarray, salt: int) -> np.ndarray:
    """A fixed 64-bit hash of integers: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(salt + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _named(batch: Any, stage: Stage) -> np.ndarray:
    """Values that can be hashed: one integer per row."""
    values = np.asarray(batch, dtype=float)
    if values.shape[-1] != 1 or not (np.isfinite(values) & (values >= 0) & (values == np.floor(values))).all():
        raise InputError(f"{stage.name} takes one whole number from 0 as the name of a value")
    return values[..., 0].astype(np.int64)


@dataclass(frozen=True)
class Hash(Stage):
    """Hash a value, given as a whole number, to one of k categories.

    The function is public. Bounds on the loss hold for every function: two values that collide are only better hidden.

    >>> Hash(4).run(np.array([[0.0], [1.0], [2.0]]), np.random.default_rng()).ravel().tolist()
    [3.0, 1.0, 2.0]
    """

    syntax = Syntax("hash", order=100, size=count(called="k"))
    takes_one_value = True
    size: int

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The categories. There are more values than that, so each is reached; for a few values that is not known."""
        _check_single(self, before)
        return OutputRegion(Categories(self.size), before.exact and isinstance(before.region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return (_scrambled(_named(batch, self), 0) % np.uint64(self.size)).astype(float)[..., None]


@dataclass(frozen=True)
class Bloom(Stage):
    """Write a value as a Bloom filter of k bits, with this many hashes.

    >>> Bloom(8, 2).run(np.array([[5.0]]), np.random.default_rng()).tolist()
    [[1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """

    syntax = Syntax("bloom", order=110, size=count("bloom: size", called="k"), hashes=count("bloom: hashes"))
    takes_one_value = True
    size: int
    hashes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        Sparse(self.size, self.hashes)  # refuses more ones than bits

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Strings with few ones, and at least one; two values among very many set different bits."""
        _check_single(self, before)
        return OutputRegion(Sparse(self.size, self.hashes), before.exact and isinstance(before.region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        values = _named(batch, self)
        bits = np.zeros((*values.shape, self.size))
        for salt in range(self.hashes):
            places = (_scrambled(values, salt) % np.uint64(self.size)).astype(np.int64)
            np.put_along_axis(bits, places[..., None], 1.0, axis=-1)
        return bits
