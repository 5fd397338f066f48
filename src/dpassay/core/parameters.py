"""The parameters of a pipeline or a claim: their own namespace, separate from options."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dpassay.errors import InputError, did_you_mean

# What is claimed, or the dimension: a separate argument, under the name on the right.
CLAIMED = {"eps": "epsilon", "epsilon": "epsilon", "delta": "delta", "dim": "dim"}


def refuse_misspelled(given: Iterable[str], options: Iterable[str], text: str = "") -> None:
    """Refuse a name that is nearly an option's, unless the text of the subject names it too.

    >>> refuse_misspelled(["sead"], ["seed"], "laplace(sead)")
    >>> refuse_misspelled(["sead"], ["seed"])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: unknown option sead; did you mean 'seed'?
    """
    options = list(options)
    for name in given:
        if not re.search(rf"\b{re.escape(name)}\b", text) and (near := did_you_mean(name, options)):
            raise InputError(f"unknown option {name}{near}")


def merge_parameters(parameters: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a pipeline from a mapping and from keyword arguments; none may be given twice.

    >>> merge_parameters({"device": 2}, {"C": 1})
    {'device': 2, 'C': 1}
    """
    if not isinstance(parameters, Mapping | None) or not all(isinstance(name, str) for name in parameters or ()):
        raise InputError(f"parameters must be a mapping of names to values, got {parameters!r:.60}")
    if own := CLAIMED.keys() & {*(parameters or ()), *more}:
        raise InputError(f"{min(own)} is not a parameter: pass it as {CLAIMED[min(own)]}=VALUE")
    if twice := sorted(set(parameters or ()) & set(more)):
        raise InputError(f"{twice[0]} is given twice: in parameters and as a keyword argument")
    return {**(parameters or {}), **more}
