"""Stages on words, categories and bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay.core.numbers import Number, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.regions import Bits, Categories, Everything, OneHot, Region, Sparse, check_dimension
from dpassay.pipeline.stages.base import Keeps, OutputRegion, Stage, written


def _check_single(stage: Stage, before: OutputRegion) -> None:
    """Refuse a vector where a single value is needed."""
    if before.region.dim != 1:
        raise InputError(
            f"{stage} takes one value, what comes in has {before.region.dim} coordinates: use dim 1, "
            "or another stage for vectors"
        )


def _all_names(region: Region, size: int) -> bool:
    """Whether every one of so many names is among the values, and neighbours can have any two."""
    return isinstance(region, Everything) or region == Categories(size)


@dataclass(frozen=True)
class Category:
    """The input is one of k categories, written 0 to k−1.

    >>> Category(3).output_region(OutputRegion(Everything(1))).region
    Categories(size=3)
    """

    name: ClassVar[str] = "category"
    keeps: ClassVar[Keeps] = "nothing"
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_dimension(self.size))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The categories; of fewer values, and of other names, it is not known which of them can come."""
        _check_single(self, before)
        return OutputRegion(Categories(self.size), before.exact and _all_names(before.region, self.size))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Check the names; they pass as they are."""
        names = np.asarray(batch, dtype=float)
        if names.shape[-1] != 1:
            raise InputError(f"{self} takes one number, got a vector of {names.shape[-1]}")
        if not ((names >= 0) & (names < self.size) & (names == np.floor(names))).all():
            raise InputError(f"categories are the numbers 0 to {self.size - 1}")
        return batch

    def __str__(self) -> str:
        return f"category({self.size})"


@dataclass(frozen=True)
class OneHotEncode:
    """Write one of k categories as a vector with a single 1.

    >>> OneHotEncode(3).run(np.array([[2.0]]), np.random.default_rng()).tolist()
    [[0.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "onehot"
    keeps: ClassVar[Keeps] = "nothing"
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_dimension(self.size))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The k vectors, of which all can come if all categories, or all of these vectors, can come in."""
        if before.region.dim != self.size:
            _check_single(self, before)
        whole = _all_names(before.region, self.size) or before.region == OneHot(self.size)
        return OutputRegion(OneHot(self.size), before.exact and whole)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Look each category up; a vector that is one-hot already passes as it is."""
        batch = np.asarray(batch, dtype=float)
        if batch.shape[-1] == self.size and self.size > 1:
            if not (np.isin(batch, (0, 1)).all() and (batch.sum(axis=-1) == 1).all()):
                raise InputError(f"expected a category or a vector of {self.size} with a single 1")
            return batch
        Category(self.size).run(batch, rng)
        return np.eye(self.size)[batch[..., 0].astype(int)]

    def __str__(self) -> str:
        return f"onehot({self.size})"


def _scrambled(values: np.ndarray, salt: int) -> np.ndarray:
    """A fixed hash of whole numbers, in 64 bits: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(salt + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _named(batch: Any, stage: str) -> np.ndarray:
    """Values that can be hashed: one whole number a row."""
    values = np.asarray(batch, dtype=float)
    if values.shape[-1] != 1 or not (np.isfinite(values) & (values >= 0) & (values == np.floor(values))).all():
        raise InputError(f"{stage} takes one whole number from 0 as the name of a value")
    return values[..., 0].astype(np.int64)


@dataclass(frozen=True)
class Hash:
    """Hash a value, named by a whole number, to one of k categories with a public function.

    What is known of the loss holds for every function: two values that collide are only better hidden.

    >>> Hash(4).run(np.array([[0.0], [1.0], [2.0]]), np.random.default_rng()).ravel().tolist()
    [3.0, 1.0, 2.0]
    """

    name: ClassVar[str] = "hash"
    keeps: ClassVar[Keeps] = "nothing"
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_dimension(self.size))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The categories. There are more values than that, so each is reached; of a few values that is not known."""
        _check_single(self, before)
        return OutputRegion(Categories(self.size), before.exact and isinstance(before.region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Hash each value."""
        return (_scrambled(_named(batch, self.name), 0) % np.uint64(self.size)).astype(float)[..., None]

    def __str__(self) -> str:
        return f"hash({self.size})"


@dataclass(frozen=True)
class Bloom:
    """Write a value, named by a whole number, as a Bloom filter: so many hashes each set one of the bits.

    >>> Bloom(8, 2).run(np.array([[5.0]]), np.random.default_rng()).tolist()
    [[1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """

    name: ClassVar[str] = "bloom"
    keeps: ClassVar[Keeps] = "nothing"
    size: int
    hashes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_dimension(self.size, "bloom: size"))
        object.__setattr__(self, "hashes", check_dimension(self.hashes, "bloom: hashes"))
        self.output_region(OutputRegion(Everything(1)))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Strings with few ones, and at least one; two values among very many set different bits."""
        _check_single(self, before)
        return OutputRegion(Sparse(self.size, self.hashes), before.exact and isinstance(before.region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Set the bits."""
        values = _named(batch, self.name)
        bits = np.zeros((*values.shape, self.size))
        for salt in range(self.hashes):
            places = (_scrambled(values, salt) % np.uint64(self.size)).astype(np.int64)
            np.put_along_axis(bits, places[..., None], 1.0, axis=-1)
        return bits

    def __str__(self) -> str:
        return f"bloom({self.size}, {self.hashes})"


@dataclass(frozen=True)
class Binary:
    """Write each coordinate in bits: its sign, m integer bits and n fraction bits, cut off beyond.

    >>> Binary(2, 1).run(np.array([[-2.5]]), np.random.default_rng()).tolist()
    [[1.0, 1.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "binary"
    keeps: ClassVar[Keeps] = "signs"
    integer: int
    fraction: int

    def __post_init__(self) -> None:
        for what, bits in (("integer", self.integer), ("fraction", self.fraction)):
            if bits not in range(31):
                raise InputError(f"binary needs a whole number of {what} bits from 0 to 30, got {bits}")
            object.__setattr__(self, what, int(bits))

    @property
    def length(self) -> int:
        """Bits for each coordinate."""
        return 1 + self.integer + self.fraction

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All bit strings, if the coordinates are not bounded more tightly than the bits are."""
        region = before.region
        unbounded = isinstance(region, Everything)
        return OutputRegion(Bits(region.dim * self.length), before.exact and unbounded)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Write each row as one bit string."""
        batch = np.asarray(batch, dtype=float)
        over = np.abs(batch) >= 2.0**self.integer
        size = np.where(over, 0.0, np.abs(batch))
        whole = np.floor(size)
        parts = [np.signbit(batch)[..., None]]
        # Both parts are written apart: together they may have more bits than a double.
        for value, length in ((whole, self.integer), ((size - whole) * 2.0**self.fraction, self.fraction)):
            powers = 2 ** np.arange(length - 1, -1, -1, dtype=np.int64)
            parts.append((value.astype(np.int64)[..., None] // powers) % 2 | over[..., None])
        with_sign = np.concatenate(parts, axis=-1)
        return with_sign.reshape(*batch.shape[:-1], -1).astype(float)

    def __str__(self) -> str:
        return f"binary({self.integer}, {self.fraction})"


@dataclass(frozen=True)
class Dropout:
    """Leave each word out with probability mu, before the encoder sees the text.

    >>> Dropout("0.5").run(["a b c"], np.random.default_rng(0))
    ['a']
    """

    name: ClassVar[str] = "dropout"
    keeps: ClassVar[Keeps] = "nothing"
    mu: Number

    def __post_init__(self) -> None:
        mu = number(self.mu)
        if mu.a < 0 or mu.b >= 1:
            raise InputError(f"dropout needs a probability from 0 up to, not including, 1, got {middle(mu):g}")
        object.__setattr__(self, "mu", mu)

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Texts are not bounded."""
        return before

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Drop words of each text; vectors, which have no words, cannot be run."""
        if isinstance(batch, np.ndarray) and batch.dtype.kind == "f":
            raise InputError("dropout works on words: run this pipeline on texts")
        mu = middle(self.mu)
        return [" ".join(w for w in str(text).split() if rng.random() >= mu) for text in batch]

    def __str__(self) -> str:
        return f"dropout({written(self.mu)})"
