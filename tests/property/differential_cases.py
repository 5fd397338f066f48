"""Cases in which dpassay and the oracle once disagreed, or dpassay ended in an error of its own."""

from random_pipelines import Case

KEPT: list[Case] = [
    # A probability of 0 or 1 at δ > 0.
    Case("onehot(4) | flip(1)", 1, "any", "1", "0.01"),
]
