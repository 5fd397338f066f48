"""Scans: point dpassay at a folder or a package, and learn which of its guarantees are real.

`dpassay.scan` is both this package and its main function.

>>> import dpassay, tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> text = "import numpy as np\\ndef f(x, epsilon):\\n    return x + np.random.laplace(0, epsilon)\\n"
>>> _ = (folder / "noise.py").write_text(text)
>>> [(one.rule, one.place.line) for one in dpassay.scan(folder).alarms]
[('scale-inverted', 3)]
"""

from __future__ import annotations

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay.scan.findings import Scan


class _Scan(ModuleType):
    """The package, callable as `dpassay.scan.session.scan`, which is imported when first called."""

    def __call__(self, *args: Any, **options: Any) -> Scan:
        from dpassay.scan.session import scan

        return scan(*args, **options)

    @property
    def __signature__(self) -> Signature:
        from dpassay.scan.session import scan

        return signature(scan)


sys.modules[__name__].__class__ = _Scan
