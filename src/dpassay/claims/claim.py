"""A claim: a guarantee, a mechanism written as text, its parameters, and who claimed it, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Literal

from dpassay.core.guarantee import Guarantee, stated_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import Number
from dpassay.core.parameters import merge_parameters
from dpassay.errors import InputError
from dpassay.pipeline.parser import evaluate, parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.functions import Encode
from dpassay.values import dataclass

# What a formula cannot show, but a reader of the verdict must know. A claim names those that apply to it.
CAVEATS = {
    "epsilon-learnt": "Epsilon is learned from the private data: a number learned from them is not a guarantee.",
    "encoder-training": "The encoder is trained without privacy on the very texts that it is meant to protect; "
    "this claim does not cover what its weights memorize.",
    "per-word": "This epsilon is for one word but is reported as if for a whole text: "
    "a text of w words may lose up to w times as much.",
}


MOST_PEOPLE = 10**12


def names(formula: str) -> set[str]:
    """The names in a formula.

    >>> sorted(names("dim*e + 1e-5"))
    ['dim', 'e']
    """
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", formula))


@dataclass(frozen=True)
class Trial:
    """How a claim is tested by running it: with which changes (small dimensions), on which pairs, with which encoder.

    >>> dict(Trial({"dim": 2}).changes)
    {'dim': 2}
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    pairs: Sequence[tuple[Any, Any]] | None = None
    encoder: Callable[[Sequence[str], int], Any] | None = None  # texts and the dimension to vectors
    runs: int = 20_000


@dataclass(frozen=True)
class Claim:
    """A guarantee that someone claims for a mechanism. Calling it returns the claim with other parameters.

    The claimed values (`epsilon` with `delta`, `metric` or `order`, or `rho`, or `mu`) are numbers or formulas of
    the parameters such as `dim*e`; see `stated_guarantee`. `people` is the number of rows in the data, `beside` has
    other people's formulas to show next to the true value, and `grid` the parameters at which the report shows the
    loss.
    `privacy_unit` and `deployment_model` describe whose data are protected and who is trusted; nothing is computed from
    them.

    >>> claim = Claim("mine", "clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, parameters={"C": 1})
    >>> print(claim.guarantee, "for", claim.mechanism)
    1-DP for clip(l2, 1) | laplace(2)
    >>> print(claim(epsilon=2).guarantee)
    2-DP
    """

    name: str
    pipeline: str
    epsilon: Any = None
    delta: Any = 0
    dim: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    neighbours: Neighbours | None = None
    source: str = ""
    title: str = ""
    brief: str = ""
    why: str = ""
    expected: Literal["proven", "refuted", "open", ""] = ""
    people: int | None = None
    caveats: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    trial: Trial = field(default=Trial(), repr=False)
    metric: str | None = None
    order: Any = None
    rho: Any = None
    mu: Any = None
    privacy_unit: str = ""
    deployment_model: str = ""

    def __post_init__(self) -> None:
        unknown = [caveat for caveat in self.caveats if caveat not in CAVEATS]
        if unknown:
            raise InputError(f"unknown caveat {unknown[0]!r}; allowed: {', '.join(CAVEATS)}")
        taken = {"eps", "delta", "dim", "epsilon"} & set(self.parameters)
        if taken:
            raise InputError(f"{min(taken)} is not a parameter: it is what is claimed, or the dimension")
        if self.people is not None and not (isinstance(self.people, int) and 1 <= self.people <= MOST_PEOPLE):
            raise InputError(f"people must be a whole number from 1 to {MOST_PEOPLE:,}, got {self.people}")
        for name in ("parameters", "beside", "grid"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def guarantee(self) -> Guarantee:
        """What is claimed, with its formulas evaluated."""
        epsilon, order, rho, mu = (self.value(stated) for stated in (self.epsilon, self.order, self.rho, self.mu))
        delta = self.value(self.delta, **({} if epsilon is None else {"eps": epsilon}))
        return stated_guarantee(epsilon, delta, self.metric, order, rho, mu)

    @property
    def _stated(self) -> dict[str, Number]:
        """The names of the guarantee's parameters in the pipeline's text."""
        guarantee = self.guarantee
        name = guarantee.parameter
        if name != "epsilon":
            return {name: guarantee.value} if name in names(self.pipeline) else {}
        return {"eps": guarantee.value, "delta": guarantee.exact_delta}

    @property
    def _formulas(self) -> str:
        """All formulas of the guarantee, to look for names in."""
        stated = (self.epsilon, self.delta, self.order, self.rho, self.mu)
        return " ".join(str(formula) for formula in stated if formula is not None)

    def value(self, formula: Any, **more: Any) -> Any:
        """The value of a formula of the parameters and `dim`; anything else is returned unchanged."""
        known = {**self.parameters, **more, **({} if self.dim is None else {"dim": self.dim})}
        plain = not isinstance(formula, str) or not names(formula) - {"inf", "nan", "infinity"}
        return formula if plain else evaluate(formula, known)

    @property
    def mechanism(self) -> Pipeline:
        """The pipeline that the text stands for."""
        elsewhere = names(self._formulas) - names(self.pipeline)  # used by the guarantee alone
        values = {name: value for name, value in self.parameters.items() if name not in elsewhere}
        return parse(self.pipeline, self.dim, {**self._stated, **values})

    @property
    def runnable(self) -> Pipeline:
        """The pipeline with the trial's encoder, if there is one: it can be run on texts."""
        pipeline, encode = self.mechanism, self.trial.encoder
        if encode is None:
            return pipeline
        encoder = Encode(pipeline.dim, lambda texts: encode(texts, pipeline.dim))
        return replace(pipeline, stages=tuple(encoder if s.name == "encode" else s for s in pipeline.stages))

    def __call__(self, parameters: Mapping[str, Any] | None = None, /, **changes: Any) -> Claim:
        """The same claim with other parameters: epsilon, delta, dim, people, or one that the text uses."""
        stated = [key for key in ("metric", "order", "rho", "mu") if getattr(self, key) is not None]
        own = {key: changes.pop(key) for key in ("epsilon", "delta", "dim", "people", *stated) if key in changes}
        changes = merge_parameters(parameters, changes)
        unknown = set(changes) - set(self.parameters)
        if unknown:
            from difflib import get_close_matches

            known = [*(stated or ["epsilon", "delta"]), "dim", *self.parameters]
            near = [close[0] for name in sorted(unknown) if (close := get_close_matches(name, known, n=1))]
            hint = f"did you mean {near[0]!r}? It" if near else "it"
            raise InputError(
                f"{self.name} has no parameter {', '.join(sorted(unknown))}; {hint} has {', '.join(known)}"
            )
        changed = replace(self, parameters={**self.parameters, **changes}, **own)
        # A name that only a replaced formula used is no longer a parameter.
        gone = names(self._formulas) - names(f"{changed._formulas} {self.pipeline}")
        return replace(changed, parameters={k: v for k, v in changed.parameters.items() if k not in gone})

    def _repr_html_(self) -> str:
        from dpassay.report.pages.cards import claim_card

        return claim_card(self)


@dataclass(frozen=True)
class System:
    """A published system: what it does, where its reasoning fails or why it is correct, and its claims.

    >>> System("mine", "Mine", "It copies.", "Nothing is random.", ()).title
    'Mine'
    """

    name: str
    title: str
    what: str
    reasoning: str
    claims: tuple[Claim, ...]
