"""Whether the rows of one batch are independent runs.

An audit that wrongly assumes independence refutes correct mechanisms. So rows count for a refutation only if they
come from calls that ask for one output, or if they are known to be independent. Here a few small batches, drawn for
training anyway, are examined: batches that repeat each other and rows that agree too well are reported.
"""

from collections.abc import Sequence
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.mechanisms.seeding import Seeded
from dpassay.audit.mechanisms.targets import Loaded, RunnableObject
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.outputs import Outputs
from dpassay.pipeline.pipeline import Pipeline

BATCHES, ROWS = 8, 8  # compared, for each of two inputs
SHUFFLES = 20_000  # rows must beat all of them: two tests of two inputs give a false alarm in one of 5,000 audits
SURELY = 1e-6  # a repetition less likely than this is not attributed to chance
COLUMNS = 8  # of an output's numbers
SHARED, REPEATED, UNCONFIRMED = "shared", "repeated", "unconfirmed"
IN_BATCHES = (
    "Outputs from batches distinguish the inputs better than the claim allows; outputs from calls that ask for a "
    "single one do not. The rows of one batch do not seem to be independent."
)
SAID = {
    "": "",
    SHARED: "The rows of one batch are not independent: they agree more than rows of different batches do, beyond what "
    "chance allows. Noise that several rows share protects none of them from anyone who sees two. Each run was "
    "therefore made in a separate call, and the verdict is about one output.",
    REPEATED: "Every batch gives the same outputs: the mechanism makes its noise from the same seed in each call. "
    "Noise that is reused is known to anyone who has seen it once. Each run was therefore made in a separate call.",
    UNCONFIRMED: f"{IN_BATCHES} Each later run was therefore made in a separate call.",
}


def known_independent(mechanism: Any) -> bool:
    """Whether the rows of one batch are known to be independent: by construction, or because the mechanism declares it.

    >>> from dpassay.pipeline.parser import parse
    >>> known_independent(parse("laplace(2)", dim=3)), known_independent(len)
    (True, False)
    """
    if isinstance(mechanism, Loaded | Seeded):
        return known_independent(mechanism.mechanism)
    if isinstance(mechanism, RunnableObject):  # what a method declares, or the object that it belongs to
        owner = getattr(mechanism.function, "__self__", None)
        return known_independent(mechanism.function) or known_independent(owner)
    return isinstance(mechanism, Pipeline) or bool(getattr(mechanism, "independent_rows", False))


def dependence(batches: Sequence[Outputs], rng: np.random.Generator) -> str:
    """What is wrong with some batches of equal size from one input: REPEATED, SHARED, or empty.

    >>> from dpassay.audit.outputs.outputs import read
    >>> rng = np.random.default_rng(1)
    >>> dependence([read(rng.random(8)) for _ in range(8)], rng)
    ''
    >>> dependence([read(np.full(8, rng.random())) for _ in range(8)], rng)
    'shared'
    >>> dependence([read(np.random.default_rng(5).random(8)) for _ in range(8)], rng)
    'repeated'
    """
    keys = np.stack([batch.keys() for batch in batches])
    if _repeated(keys):
        return REPEATED
    codes = np.unique(keys, return_inverse=True)[1].reshape(keys.shape)
    if _beats_shuffles(codes[:, :, None], _equal_pairs, rng):
        return SHARED
    numbers = [batch.numbers for batch in batches]
    if any(rows is None or not rows.size or rows.shape != numbers[0].shape for rows in numbers):  # type: ignore[union-attr]
        return ""
    ranks = _ranks(np.stack([rows for rows in numbers if rows is not None]))
    return SHARED if _beats_shuffles(ranks, _apart, rng) else ""


def _repeated(keys: NDArray[Any]) -> bool:
    """Whether all batches are identical, in an order that independent rows would hardly have every time."""
    if (keys != keys[0]).any():
        return False
    size = keys.shape[1]
    orders = lgamma(size + 1) - sum(lgamma(n + 1) for n in np.unique(keys[0], return_counts=True)[1].tolist())
    return (len(keys) - 1) * orders >= -log(SURELY)


def _ranks(rows: NDArray[Any]) -> NDArray[Any]:
    """Twice the rank of each number in its column: an integer, so that no sum is rounded."""
    chosen = rows[:, :, distinct(np.linspace(0, rows.shape[2] - 1, COLUMNS).astype(int))].reshape(rows[..., 0].size, -1)
    ranks = [twice_ranks(column) for column in np.where(np.isnan(chosen), np.inf, chosen).T]
    return np.stack(ranks, axis=1).reshape(*rows.shape[:2], -1)


def twice_ranks(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Twice the rank of each number among all, counted from 1; ties share their mean rank.

    >>> twice_ranks(np.array([0.5, 3.0, 0.5, -1.0])).tolist()
    [5, 8, 5, 2]
    """
    ordered = np.sort(numbers)
    return ordered.searchsorted(numbers, "left") + ordered.searchsorted(numbers, "right") + 1


def _equal_pairs(rows: NDArray[Any]) -> NDArray[Any]:
    """For each arrangement into batches: how many pairs of rows within one batch are equal."""
    codes = rows[..., 0]
    return np.asarray((codes[..., :, None] == codes[..., None, :]).sum(axis=(-3, -2, -1)))


def _apart(rows: NDArray[Any]) -> NDArray[Any]:
    """For each arrangement into batches: how far apart the batches' rank sums are, and so how similar their rows."""
    return np.asarray((rows.sum(axis=-2) ** 2).sum(axis=(-2, -1)))


def _beats_shuffles(rows: NDArray[Any], statistic: Any, rng: np.random.Generator) -> bool:
    """Whether rows agree more than in every one of many arrangements of the same rows, drawn at random."""
    observed, flat = statistic(rows[None])[0], rows.reshape(-1, rows.shape[-1])
    left, some = SHUFFLES, 20
    while left > 0:
        places = rng.permuted(np.tile(np.arange(len(flat)), (min(some, left), 1)), axis=1)
        if (statistic(flat[places].reshape(-1, *rows.shape)) >= observed).any():
            return False
        left, some = left - some, 1_000
    return True
