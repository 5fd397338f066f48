"""Cases in which dpassay and the oracle once disagreed, or dpassay failed with an internal error."""

from random_pipelines import Case

KEPT: list[Case] = [
    # Bits that are never, or always, flipped, at δ > 0: a ratio of probabilities by 0.
    Case("onehot(4) | flip(1)", 1, "any", "1", "0.01"),
    Case("onehot(2) | flip(0)", 1, "any", "0.7278", "1e-6"),
    Case("bloom(3, 3) | flip(1)", 1, "any", "1.836", "0.9"),
    Case("bloom(5, 5) | flip(0)", 1, "word", "100", "0.9"),
    Case("encode | binary(1, 0) | flip(0)", 2, "any", "3", "0.9"),
    Case("encode | binary(1, 0) | flip(1)", 1, "any", "100", "0.3"),
    Case("rows | binary(1, 1) | flip(1)", 2, "replace-record", "10", "0.9169"),
    Case("rows | binary(0, 1) | flip(1)", 2, "replace-record", "0", "0.9"),
    # The same of bits that are redrawn with different probabilities.
    Case("onehot(3) | bits(1, 0.345, 0)", 1, "any", "0.1", "1e-6"),
    Case("rows | binary(0, 1) | bits(0.386, 1, 0)", 2, "replace-record", "3", "1e-6"),
    Case("rows | binary(1, 1) | bits(0.809, 1, 0)", 1, "replace-record", "3", "1e-6"),
    Case("onehot(2) | bits(0.452, 0, 1)", 1, "any", "0.1", "0.7"),
    # Clamped rows whose bits can all differ, though not in every way: 11 and 00 are written, 01 is not.
    Case(
        "rows | clamp(-0.7, -0.7 + 0.919) | binary(0, 1) | bits(0.193, 0.383, 0.308)", 2, "replace-record", "0", "0.01"
    ),
]
