"""Claims: what a claim is, users' claims in files, and the registry of published ones.

`dpassay.claims` is both this package and the registry: `dpassay.claims["adept"]` is a claim.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpassay.claims.claim import Claim


class _Claims(ModuleType):
    """The registry as a mapping from names to claims. It is imported when first used."""

    def __getitem__(self, name: str) -> Claim:
        from dpassay.claims.registry import find

        return find(name)

    def __iter__(self) -> Iterator[str]:
        from dpassay.claims.registry import REGISTRY

        return iter(REGISTRY)

    def __len__(self) -> int:
        from dpassay.claims.registry import REGISTRY

        return len(REGISTRY)


sys.modules[__name__].__class__ = _Claims
