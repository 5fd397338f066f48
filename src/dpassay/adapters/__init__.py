"""Objects of other libraries as claims: what they guarantee, how they are run, and on which inputs.

One file per library, imported when such an object is given; the object is recognized by the name of its module, and
the library itself is not imported here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.adapters.base import ReadObject

# The package in which a class is defined, and our file that reads its objects.
LIBRARIES = {
    "opendp": "opendp",
    "dp_accounting": "dp_accounting",
    "opacus": "opacus",
    "transformers": "transformers",
    "diffprivlib": "diffprivlib",
    "pure_ldp": "pure_ldp",
    "multi_freq_ldpy": "multi_freq_ldpy",
}


def adapted(thing: Any) -> ReadObject | None:
    """The guarantee of an object of a known library; None for anything else.

    >>> adapted("clip(l2, 1) | laplace(2)"), adapted(len)
    (None, None)
    """
    packages = _packages(thing)
    if "dpassay" in packages:
        from dpassay.adapters.base import ReadObject

        if isinstance(thing, ReadObject):
            return thing
    for package in packages:
        if package in LIBRARIES:
            reader = import_module(f"dpassay.adapters.{LIBRARIES[package]}")
            try:
                found: ReadObject | None = reader.read(thing)
            except AttributeError as error:
                raise InputError(
                    f"an object of {type(thing).__module__}.{type(thing).__qualname__} cannot be read ({error}); "
                    "dpassay "
                    "may not know this version: write the mechanism as a pipeline, or audit a "
                    "function that runs it"
                ) from error
            if found is not None:
                return found
    return None


def _packages(thing: Any) -> list[str]:
    """The packages that define the object: its class and base classes, a function, or a partial function."""
    inner = getattr(thing, "func", None)  # of functools.partial
    named = [thing, inner, *type(thing).__mro__]
    modules = [getattr(one, "__module__", None) for one in named]
    return list(dict.fromkeys(module.partition(".")[0] for module in modules if isinstance(module, str)))
