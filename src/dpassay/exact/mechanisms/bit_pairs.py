"""All kinds of pairs of short bit strings, and their exact losses: docs/proofs/randomized-response.md, point 10.

With noise that depends on the bit and on the parity of its position, a pair is known by how many even and odd positions
have a 1 in the first string only, and in the second only.
"""

from collections.abc import Iterator
from itertools import product
from math import comb
from typing import Literal, NamedTuple

from dpassay.core.numbers import ONE, ZERO, Number
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.regions import Bits, Block, Pair, Region, RowBits, Sparse
from dpassay.pipeline.stages.bits import BitNoise

MOST_BITS = 8  # for which all kinds are listed
_PARITIES: tuple[Literal["even", "odd"], ...] = ("even", "odd")


class Kind(NamedTuple):
    """How many even positions have (1, 0) and how many (0, 1), and the same for odd positions."""

    even_falls: int
    even_rises: int
    odd_falls: int
    odd_rises: int

    @property
    def swapped(self) -> "Kind":
        """The kind of the same pair in the other order."""
        return Kind(self.even_rises, self.even_falls, self.odd_rises, self.odd_falls)


def worst_kinds(region: Region) -> list[Kind]:
    """The kinds of pairs of a region, without those whose differences are a part of another kind's.

    >>> len(worst_kinds(Bits(2))), worst_kinds(Sparse(2, 1))
    (4, [Kind(even_falls=0, even_rises=1, odd_falls=1, odd_rises=0), Kind(even_falls=1, even_rises=0, odd_falls=0...])
    """
    n = region.dim
    if n > MOST_BITS or isinstance(region, RowBits) or not isinstance(region, Bits | Sparse):
        return []
    even, odd = n - n // 2, n // 2
    found = [
        Kind(*sizes)
        for sizes in product(range(even + 1), range(even + 1), range(odd + 1), range(odd + 1))
        if sizes[0] + sizes[1] <= even and sizes[2] + sizes[3] <= odd and _occurs(region, Kind(*sizes))
    ]
    return [one for one in found if not any(other != one and _within(one, other) for other in found)]


def _within(one: Kind, other: Kind) -> bool:
    return all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


def _occurs(region: Region, kind: Kind) -> bool:
    """Whether two strings of the region differ like this; a string without a 1 of its own shares one."""
    if not isinstance(region, Sparse):
        return True
    falls, rises = kind.even_falls + kind.odd_falls, kind.even_rises + kind.odd_rises
    shared = _shared(kind)
    return max(falls, rises) + shared <= region.ones and falls + rises + shared <= region.dim


def _shared(kind: Kind) -> int:
    return 0 if kind.even_falls + kind.odd_falls and kind.even_rises + kind.odd_rises else 1


def pair_of(region: Region, kind: Kind) -> Pair:
    """Two strings of a kind."""
    rooms = {"even": region.dim - region.dim // 2, "odd": region.dim // 2}
    shared = _shared(kind) if isinstance(region, Sparse) else 0
    blocks = []
    for parity, (falls, rises) in zip(_PARITIES, (kind[:2], kind[2:]), strict=True):
        room = rooms[parity] - falls - rises
        both = min(shared, room)
        shared -= both
        for x, y, count in ((ONE, ZERO, falls), (ZERO, ONE, rises), (ONE, ONE, both), (ZERO, ZERO, room - both)):
            blocks += [Block(x, y, count, parity)] if count else []
    return Pair(tuple(blocks))


def kind_loss(stage: BitNoise, kind: Kind) -> PrivacyLoss:
    """The loss of the first string against the second: how many of each sort of position show a 1."""
    sorts = (
        (stage.even, stage.zero, kind.even_falls),
        (stage.zero, stage.even, kind.even_rises),
        (stage.odd, stage.zero, kind.odd_falls),
        (stage.zero, stage.odd, kind.odd_rises),
    )
    laws: list[tuple[Number, Number]] = [(ONE, ONE)]
    for p, q, count in sorts:
        laws = [(one * a, other * b) for one, other in laws for a, b in _counts(p, q, count)]
    first, second = zip(*laws, strict=True)
    return PrivacyLoss(((AtomLoss.between(first, second), 1),))


def _counts(p: Number, q: Number, count: int) -> Iterator[tuple[Number, Number]]:
    """The probabilities of each number of ones among equal bits, under both strings."""
    for ones in range(count + 1):
        ways = comb(count, ones)
        first, second = (ways * chance**ones * (1 - chance) ** (count - ones) for chance in (p, q))
        yield first, second
