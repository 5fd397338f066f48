"""A claim: a guarantee, a mechanism written as text, its parameters, and who claimed it where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dpassay.errors import InputError
from dpassay.expression import parse
from dpassay.guarantee import Guarantee, guarantee
from dpassay.neighbours import Neighbours
from dpassay.pipeline import Pipeline


@dataclass(frozen=True)
class Claim:
    """Somebody's guarantee for a mechanism. Calling it changes parameters.

    >>> claim = Claim("mine", "clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, parameters={"C": 1})
    >>> print(claim.guarantee, "for", claim.mechanism)
    1-DP for clip(l2, 1) | laplace(2)
    >>> print(claim(epsilon=2).guarantee)
    2-DP
    """

    name: str
    pipeline: str
    epsilon: Any
    delta: Any = 0
    dim: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    neighbours: Neighbours | None = None
    source: str = ""
    title: str = ""
    why: str = ""
    expected: Literal["proven", "refuted", "open", ""] = ""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        return guarantee(self.epsilon, self.delta)

    @property
    def mechanism(self) -> Pipeline:
        """The pipeline that the text stands for."""
        values = {**self.parameters, "eps": self.epsilon, "delta": self.delta}
        return parse(self.pipeline, self.dim, values)

    def __call__(self, /, **changes: Any) -> Claim:
        """The same claim with other parameters: epsilon, delta, dim, or one that the text uses."""
        own = {key: changes.pop(key) for key in ("epsilon", "delta", "dim") if key in changes}
        unknown = set(changes) - set(self.parameters)
        if unknown:
            known = ", ".join(["epsilon", "delta", "dim", *self.parameters])
            raise InputError(f"{self.name} has no parameter {', '.join(sorted(unknown))}; it has {known}")
        return replace(self, parameters={**self.parameters, **changes}, **own)
