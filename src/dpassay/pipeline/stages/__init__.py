"""The stages, one file each. Importing the package imports them all: a new stage only needs its file."""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
