"""Traces: which line of real code drew which noise, what it was added to, and the loss that this gives.

`dpassay.trace` is this package and its main function at once; `dpassay.trace.session.trace` lists the options.

>>> import dpassay
>>> result = dpassay.trace(lambda x, rng: x + rng.laplace(scale=0.5), [0.0, 1.0], epsilon=1)
>>> result.verdict.word, result.rules
('refuted', ('loss-too-large',))
"""

from __future__ import annotations

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay.trace.result import TraceResult


class _Trace(ModuleType):
    """The package, callable as `dpassay.trace.session.trace`, which is imported when first called."""

    def __call__(self, *args: Any, **options: Any) -> TraceResult:
        from dpassay.trace.objects import trace_object  # which brings the claims of libraries' objects

        return trace_object(*args, **options)

    @property
    def __signature__(self) -> Signature:
        from dpassay.trace.session import trace

        return signature(trace)


sys.modules[__name__].__class__ = _Trace
