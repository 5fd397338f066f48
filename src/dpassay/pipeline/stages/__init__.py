"""The stages, one file each. Importing the package imports them all: a new stage only needs its file."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
