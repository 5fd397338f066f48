"""What an adapter gives: a library's object as a claim, or as something to run, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from inspect import isfunction
from typing import Any

import numpy as np

from dpassay.adapters.confirming import RUNS, Confirmation, ConfirmingTrial, Numbers, as_text, by_runs
from dpassay.claims.claim import Claim
from dpassay.core.guarantee import ZCDP, Guarantee, make_guarantee, statement
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import log, sqrt, up
from dpassay.errors import InputError, in_one_line
from dpassay.evidence.verdict import Verdict
from dpassay.pipeline.mechanism import Mechanism
from dpassay.values import dataclass

DELTA = "1e-6"  # at which runs test a guarantee without a δ


@dataclass(frozen=True)
class FormulaReading:
    """How the runs of an object are compared with the formula that was read from it.

    `answer` is what the formula takes for an input of the object, `numbers` the object's output as the formula has it;
    `finish` is a deterministic last step of the object for which the formula has no stage. `run` is what is run, if not
    the mechanism itself. `too_far` tells whether two answers differ by more than those of neighbors may.

    >>> FormulaReading(numbers=["no", "yes"].index).numbers("yes")
    1
    """

    answer: Callable[[Any], Any] = lambda x: x
    numbers: Callable[[Any], Any] = lambda output: output
    finish: Callable[[Numbers], Numbers] | None = None
    run: Callable[[Any], Any] | None = None
    runs: int = RUNS
    too_far: Callable[[Any, Any], str] = lambda x, y: ""


@dataclass(frozen=True)
class ReadObject:
    """A library's object: the guarantee it states, its formula if known, and how and on what to run it.

    `pipeline` is the formula in our text form; an object without one can only be run. `epsilon_at` is the ε that the
    library states for a δ, if it states one for every δ. `mechanism` is what an audit runs: a function or an
    object; `pairs` are neighbors to run it on. `by` names the part of the object that makes the claim, if not all of
    it; `under` is the claim between other neighbors, if the library has one.

    Before a formula is used, the object confirms it: its runs on the pairs are compared with it as `reading` states,
    or by `confirm`, if the object has another way. `caveats` are lines of the verdict.

    >>> known = ReadObject("mine", pipeline="query(l1, 1) | laplace(2)", epsilon_at=lambda delta: 0.5)
    >>> print(known.claim(delta=1e-6).guarantee)
    (0.5, 1e-06)-DP
    """

    name: str
    guarantee: Guarantee | None = None
    pipeline: str | None = None
    dim: int | None = None
    neighbours: Neighbours | None = None
    mechanism: Any = None
    pairs: tuple[tuple[Any, Any], ...] = ()
    epsilon_at: Callable[[float], float] | None = None
    by: str = ""
    under: Callable[[Neighbours], ReadObject] | None = None
    reading: FormulaReading = FormulaReading()
    confirm: Callable[[Verdict], Confirmation] | None = None
    caveats: tuple[str, ...] = ()

    def confirmed(
        self,
        verdict: Verdict,
        as_mechanism: Callable[[Any], Mechanism],
        pairs: Sequence[tuple[Any, Any]] | None = None,
    ) -> Confirmation | None:
        """Whether the object does what its formula says; None for a record or a setting, which nothing can run."""
        if self.confirm is not None:
            return self.confirm(verdict)
        if self.pipeline is None or self.mechanism is None:
            return None
        reading, trials = self.reading, []
        for pair in pairs or self.pairs[:1]:
            try:
                answers = [reading.answer(x) for x in pair]
            except Exception as error:  # of the object's own code
                said = in_one_line(type(error).__name__, str(error))[:120]
                return Confirmation(False, f"On the inputs {as_text(pair)[:80]} it raised {said}.")
            if far := reading.too_far(*answers):
                return Confirmation(False, f"On the inputs {as_text(pair)[:80]} {far}.")
            trials += [ConfirmingTrial(x, answer, reading.finish) for x, answer in zip(pair, answers, strict=True)]
        made, rng = as_mechanism(self.mechanism), np.random.default_rng()
        run = reading.run or (lambda x: made.sample(x, 1, rng)[0])
        return by_runs(run, self.pipeline, self.dim, trials, reading.numbers, reading.runs)

    def between(self, neighbours: Neighbours | str | None) -> ReadObject:
        """The same claim between these neighbors, if the library states one for them."""
        if neighbours is None or self.under is None:
            return self
        return self.under(Neighbours(neighbours) if isinstance(neighbours, str) else neighbours)

    def stated(self, epsilon: Any = None, delta: Any = None, guarantee: Guarantee | None = None) -> dict[str, Any]:
        """The guarantee to judge, as the options of a claim: the user's, or otherwise the library's."""
        if guarantee is not None:
            return statement(guarantee)
        if epsilon is not None:
            return {"epsilon": epsilon, "delta": 0 if delta is None else delta}
        if delta is not None and self.epsilon_at is not None:
            found = self.epsilon_at(float(delta))
            if not 0 <= found < float("inf"):
                raise InputError(f"{self.name} states epsilon {found} at delta {delta}: state the claimed epsilon")
            return {"epsilon": exact(found), "delta": delta}
        if self.guarantee is None:
            remedy = "epsilon=1)" if self.epsilon_at is None else "delta=1e-5), for its own epsilon there"
            raise InputError(f"{self.name} states no epsilon of its own: use check(..., {remedy}")
        if delta is not None:
            raise InputError(f"{self.name} states {self.guarantee}: to check another guarantee, give epsilon too")
        return statement(self.guarantee)

    def tested(self, epsilon: Any = None, delta: Any = None) -> dict[str, Any]:
        """The guarantee to judge by runs, as `stated` has it; for ρ-zCDP the ε that it implies at δ.

        >>> from dpassay.core.guarantee import ZCDP
        >>> ReadObject("mine", ZCDP("0.5")).tested(delta=1e-6)
        {'epsilon': '5.756521770', 'delta': 1e-06}
        """
        if epsilon is None and isinstance(self.guarantee, ZCDP):
            delta = DELTA if delta is None else delta
            return {"epsilon": _implied(self.guarantee, delta), "delta": delta}
        return self.stated(epsilon, delta)

    def source(self, epsilon: Any = None, guarantee: Guarantee | None = None, runs: bool = False) -> str:
        """Whose claim is judged: the library's, or that of the user."""
        if epsilon is None and guarantee is None:
            implied = f", {self.guarantee}" if runs and isinstance(self.guarantee, ZCDP) else ""
            return f"stated by {self.by or self.name}{implied}"
        own = "" if self.guarantee is None else f", which states {self.guarantee}"
        return f"stated by the user, not by {self.name}{own}"

    def claim(
        self, epsilon: Any = None, delta: Any = None, guarantee: Guarantee | None = None, dim: int | None = None
    ) -> Claim:
        """The claim that the formula satisfies the guarantee."""
        if self.pipeline is None:
            raise InputError(f"the formula of {self.name} cannot be read; run it with audit(...)")
        if self.dim is not None and dim not in (None, self.dim):
            raise InputError(f"{self.name} already has dimension {self.dim}: leave dim={dim} out")
        said = self.stated(epsilon, delta, guarantee)
        return Claim(
            self.name,
            self.pipeline,
            **said,
            dim=self.dim if dim is None else dim,
            neighbours=self.neighbours,
            source=self.source(epsilon, guarantee),
        )


def _implied(guarantee: ZCDP, delta: Any) -> str:
    """An ε that ρ-zCDP implies at δ, ρ + 2·sqrt(ρ·ln(1/δ)), rounded up (Bun and Steinke 2016, proposition 1.3)."""
    least = make_guarantee(1, delta).exact_delta
    if not least.a > 0:
        raise InputError(f"{guarantee} implies no epsilon at delta 0: pass delta=1e-5")
    found = guarantee.value + 2 * sqrt(guarantee.value * -log(least))
    return str(Decimal(up(found)).quantize(Decimal("1e-9"), ROUND_CEILING))


def shown(value: Any) -> str:
    """A number as text, also from numpy or torch.

    >>> import numpy as np
    >>> shown(np.float64(0.1)), shown(3)
    ('0.1', '3')
    """
    return repr(value.item() if hasattr(value, "item") else value)


def exact(value: float) -> str:
    """A double as text, to the last bit: the library computes with this number, not with the decimal it shows.

    >>> exact(0.5), exact(3), exact(0.1)
    ('0.5', '3', '0.1000000000000000055511151231257827021181583404541015625')
    """
    plain = shown(value)
    return plain if Fraction(plain) == Fraction(value) else str(Decimal(value))


def is_own(thing: Any, package: str) -> bool:
    """Whether the class of an object is the library's own, not a subclass, which may do something else.

    >>> is_own(3, "builtins"), is_own(InputError("no"), "builtins")
    (True, False)
    """
    return str(type(thing).__module__).partition(".")[0] == package


def is_patched(thing: Any, package: str) -> bool:
    """Whether a method of a library's object was replaced, in the object or in its class: it may do anything.

    >>> class Half:
    ...     def answer(self): return 0.5
    >>> half = Half()
    >>> is_patched(half, __name__), setattr(half, "answer", lambda: 1), is_patched(half, __name__)
    (False, None, True)
    """
    own = [kind for kind in type(thing).__mro__ if str(kind.__module__).partition(".")[0] == package.partition(".")[0]]
    held = getattr(thing, "__dict__", {})
    if any(callable(held.get(name)) for kind in own for name, method in vars(kind).items() if isfunction(method)):
        return True
    methods = (method for kind in own for method in vars(kind).values() if isfunction(method))
    return any(str(method.__module__).partition(".")[0] != package.partition(".")[0] for method in methods)


def attributes(thing: Any, *names: str) -> list[Any]:
    """Attributes of an object, or an error that names the missing one.

    >>> attributes(1 + 2j, "real", "imag")
    [1.0, 2.0]
    >>> attributes(1, "scale")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: an object of builtins.int without scale cannot be read; ...
    """
    missing = [name for name in names if not hasattr(thing, name)]
    if missing:
        kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
        raise InputError(
            f"an object of {kind} without {' and '.join(missing)} cannot be read; dpassay may not know this "
            "version: write the mechanism as a pipeline, or audit a function that runs it"
        )
    return [getattr(thing, name) for name in names]
