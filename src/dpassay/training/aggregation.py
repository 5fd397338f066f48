"""Who takes part in a round, how updates are bounded and summed, and how far apart neighbors' sums can be.

This is everything that the guarantee of private training rests on, besides noise and accountant. The update of a unit
is one vector: all its tensors together are projected onto a ball. docs/proofs/user-entity.md has the sensitivities.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpassay.errors import InputError
from dpassay.training.randomness import Randomness

INWARD = 1 - 2.0**-16  # of a radius: rounding to 32 bits cannot move a projected vector out of its ball

Stack = dict[str, Tensor]  # tensors with a row per cell
Part = tuple[Sequence[int], Stack]  # some cells and their updates


class Aggregation(Protocol):
    """One step of private training. A cell is a set of sentences that is trained on together."""

    @property
    def rate(self) -> float:
        """The probability that a round depends on whether the unit is present."""

    @property
    def sensitivity(self) -> float:
        """The largest l2 distance between the sums of neighbors, given the same coins."""

    def drawn(self, randomness: Randomness, round_: int) -> list[int]:
        """The cells that take part in a round."""

    def combine(self, cells: Sequence[int], parts: Iterable[Part], step: float | None = None) -> Tensor:
        """The sum of the bounded updates of some cells, which come in parts; in integer steps if there is a step."""


def flat(updates: Stack) -> Tensor:
    """One row per cell, with all of its tensors concatenated."""
    return torch.cat([tensor.flatten(1) for tensor in updates.values()], dim=1)


def projected(rows: Tensor, radius: float) -> Tensor:
    """Rows scaled down to an l2 norm of at most `radius`; a row that is not finite becomes 0.

    >>> projected(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0).norm(dim=1).round(decimals=3).tolist()
    [1.0, 0.5]
    """
    lengths = torch.linalg.vector_norm(rows, dim=1)
    finite = torch.isfinite(lengths)
    if not bool(finite.all()):
        rows = torch.where(finite[:, None], rows, 0.0)
        lengths = torch.where(finite, lengths, 0.0)
    scale = radius * INWARD / lengths.clamp(min=radius * INWARD)
    return torch.mul(rows, scale[:, None])


def bounded_sum(updates: Stack, radius: float) -> Tensor:
    """The sum of `projected(flat(updates), radius)`, in the memory of the updates, which are overwritten.

    >>> updates = {"a": torch.tensor([[3.0], [0.0]]), "b": torch.tensor([[4.0], [0.5]])}
    >>> bounded_sum(updates, 1.0).round(decimals=3).tolist()
    [0.6000000238418579, 1.2999999523162842]
    """
    parts = [tensor.flatten(1) for tensor in updates.values()]
    lengths = torch.stack([torch.linalg.vector_norm(part, dim=1) for part in parts]).double().norm(dim=0)
    finite = torch.isfinite(lengths)
    scale = torch.where(finite, radius * INWARD / lengths.clamp(min=radius * INWARD), 0.0).to(parts[0].dtype)
    if not bool(finite.all()):
        parts = [torch.where(finite[:, None], part, 0.0) for part in parts]
    return torch.cat([part.mul_(scale[:, None]).sum(0) for part in parts])


@dataclass(frozen=True)
class PerUnit:
    """Each unit takes part with probability `rate`, and its whole update is projected onto the ball of radius `clip`.

    Units are disjoint: one added or removed moves the sum by at most `clip`.

    >>> PerUnit(units=100, rate=0.1, clip=0.5).sensitivity
    0.5
    """

    units: int
    rate: float
    clip: float

    def __post_init__(self) -> None:
        _check_rate(self.rate, "rate")
        _check_radius(self.clip, "clip")

    @property
    def sensitivity(self) -> float:
        return self.clip

    def drawn(self, randomness: Randomness, round_: int) -> list[int]:
        return np.flatnonzero(randomness.uniform(round_, 0, self.units) < self.rate).tolist()

    def combine(self, cells: Sequence[int], parts: Iterable[Part], step: float | None = None) -> Tensor:
        total: Tensor | None = None
        for _, updates in parts:
            if step is None:
                found = bounded_sum(updates, self.clip)
            else:
                found = _whole(projected(flat(updates), self.clip), step).sum(0)
            total = found if total is None else total.add_(found)
        assert total is not None, "parts have at least one cell"
        return total


@dataclass(frozen=True, eq=False)
class UserEntity:
    """Users and entities are drawn; a cell holds a user's sentences with one entity, and takes part if both are drawn.

    A cell's update is projected onto the ball of radius `cell_clip`, the sum of a user's cells onto that of `clip`, and
    at most `most` users take part in a round.
    """

    users: tuple[str, ...]
    user_of: NDArray[np.int64]  # for each cell
    entity_of: NDArray[np.int64]
    user_rate: float
    entity_rate: float
    clip: float
    cell_clip: float
    most: int

    def __post_init__(self) -> None:
        _check_rate(self.user_rate, "rate")
        _check_rate(self.entity_rate, "entity rate")
        _check_radius(self.clip, "clip")
        if not 0 < self.cell_clip <= self.clip:
            raise InputError(f"the clip of a cell must lie between 0 and the clip, {self.clip}, got {self.cell_clip}")
        if self.most < 1:
            raise InputError(f"at least one user must be able to take part, got {self.most}")

    @property
    def rate(self) -> float:
        exact = 1 - (1 - Fraction(self.user_rate)) * (1 - Fraction(self.entity_rate))
        found = float(exact)
        return found if found >= exact else math.nextafter(found, 1)

    @property
    def sensitivity(self) -> float:
        return 2 * self.clip + (self.most - 1) * self.cell_clip

    def drawn(self, randomness: Randomness, round_: int) -> list[int]:
        heads = np.flatnonzero(randomness.uniform(round_, 0, len(self.users)) < self.user_rate)
        if len(heads) > self.most:  # users without sentences count too: who they are does not depend on an entity
            heads = np.array(sorted(heads, key=lambda user: _mixed(round_, self.users[user]))[: self.most])
        entities = randomness.uniform(round_, 1, int(self.entity_of.max()) + 1) < self.entity_rate
        chosen = np.isin(self.user_of, heads) & entities[self.entity_of]
        return np.flatnonzero(chosen).tolist()

    def combine(self, cells: Sequence[int], parts: Iterable[Part], step: float | None = None) -> Tensor:
        left = Counter(int(self.user_of[cell]) for cell in cells)
        sums: dict[int, Tensor] = {}
        total: Tensor | None = None
        for some, updates in parts:
            for cell, row in zip(some, projected(flat(updates), self.cell_clip), strict=True):
                user = int(self.user_of[cell])
                sums[user] = sums[user] + row if user in sums else row
                left[user] -= 1
                if not left[user]:
                    found = _whole(projected(sums.pop(user)[None], self.clip), step)[0]
                    total = found if total is None else total + found
        assert total is not None, "parts have at least one cell"
        return total


def usual_most(users: int, rate: float) -> int:
    """A number of users that few rounds exceed: two standard deviations above the mean.

    >>> usual_most(1000, 0.05)
    64
    """
    mean = rate * users
    return max(1, math.ceil(mean + 2 * math.sqrt(mean * (1 - rate))))


def in_parts(cells: Sequence[int], sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """The cells in groups of similar size, so that there is little padding.

    >>> list(in_parts([4, 5, 6], [1, 9, 2], 2))
    [[4, 6], [5]]
    """
    order = sorted(range(len(cells)), key=lambda i: sizes[i])
    for start in range(0, len(order), most):
        yield [cells[i] for i in order[start : start + most]]


def _whole(rows: Tensor, step: float | None) -> Tensor:
    """Rounded toward zero to integer multiples of the step, if there is a step: no norm grows."""
    return rows if step is None else torch.trunc(rows.double() / step)


def _mixed(round_: int, user: str) -> bytes:
    """A fixed public hash: it orders the users differently in each round."""
    return hashlib.blake2b(f"dpassay {round_} {user}".encode(), digest_size=16).digest()


def _check_rate(rate: float, name: str) -> None:
    if not 0 < rate <= 1:
        raise InputError(f"the {name} is a probability above 0 and at most 1, got {rate}")


def _check_radius(radius: float, name: str) -> None:
    if not 1e-10 <= radius <= 1e10:
        raise InputError(f"the {name} must be a number from 1e-10 to 1e10, got {radius}")
