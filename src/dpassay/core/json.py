"""Values as JSON-ready data."""

from typing import Any

import numpy as np

from dpassay.errors import InputError


def plain(x: Any) -> Any:
    """An input as JSON-ready data."""
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    if isinstance(x, str | int | float | bool) or x is None:
        return x
    if isinstance(x, list | tuple):
        return [plain(entry) for entry in x]
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    raise InputError(f"the input {x!r:.60} cannot be written to a file: use numbers, lists or text")
