"""Audits: refute a claim from a mechanism's outputs alone, with the error probability stated.

`dpassay.audit` is this package and its main function at once; `dpassay.audit.runner.audit` lists the options.

>>> import dpassay
>>> verdict = dpassay.audit(lambda x, rng: x + rng.laplace(scale=0.5), [(0.0, 1.0)], epsilon=1)
>>> verdict.word
'refuted'
"""

from __future__ import annotations

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict


class _CallablePackage(ModuleType):
    """The package, callable as `dpassay.audit.runner.audit`, which is imported when first called."""

    def __call__(self, *args: Any, **options: Any) -> Verdict:
        from dpassay.audit.runner import audit

        return audit(*args, **options)

    @property
    def __signature__(self) -> Signature:
        from dpassay.audit.runner import audit

        return signature(audit)


sys.modules[__name__].__class__ = _CallablePackage
