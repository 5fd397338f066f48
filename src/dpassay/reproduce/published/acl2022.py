"""The numbers behind Figure 2 of Habernal, ACL 2022, in acl2022.csv: empirical loss by mechanism, ε and dimension."""

import csv
import math
from functools import cache
from pathlib import Path

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5", "10")
DIMENSIONS = (1, 2, 8, 32, 64, 128)
ALWAYS_INFINITE = ("copy", "dptext")
NOT_PUBLISHED = ("clipped",)


def published(mechanism: str, epsilon: str, dim: int) -> float:
    """The published loss of one cell; NaN if there is none.

    >>> published("laplace", "1", 1), published("copy", "1", 1), published("clipped", "1", 1)
    (0.832471, inf, nan)
    """
    if mechanism in NOT_PUBLISHED:
        return math.nan
    return math.inf if mechanism in ALWAYS_INFINITE else _table()[mechanism, epsilon, dim]


@cache
def _table() -> dict[tuple[str, str, int], float]:
    with Path(__file__).with_name("acl2022.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["mechanism"], row["epsilon"], dim): float(row[str(dim)]) for row in rows for dim in DIMENSIONS}
