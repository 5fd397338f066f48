"""Objects with the names and attributes of a library's, for libraries that need not be installed."""

from typing import Any


def recorded(module: str, names: str, **attributes: Any) -> Any:
    """An object whose class has these names, the last one its own, and these attributes."""
    kind: type = object
    for name in names.split():
        kind = type(name, (kind,), {"__module__": module})
    made = kind()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made
