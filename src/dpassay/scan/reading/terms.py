"""Formulas of scales as products of powers, which is all that rules about scales need to see.

`sensitivity * sqrt(2*log(1.25/delta)) / epsilon` is a coefficient and the powers of its atoms. What is no product, such
as a sum of different terms, is an atom of its own that remembers the names in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

FUNCTIONS: dict[str, Callable[[float], float]] = {"log": math.log, "exp": math.exp, "abs": abs, "log2": math.log2}
MOST_ATOMS = 12
MOST_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Term:
    """A coefficient times atoms to their powers; `names` are the roles that occur anywhere in it.

    >>> scale = named("sensitivity").times(named("epsilon").power(-1))
    >>> str(scale), scale.exponent("epsilon")
    ('sensitivity/epsilon', -1.0)
    """

    coefficient: float = 1.0
    powers: tuple[tuple[str, float], ...] = ()
    names: frozenset[str] = frozenset()

    def exponent(self, atom: str) -> float:
        """The power of an atom; 0 if it is not a factor."""
        return dict(self.powers).get(atom, 0.0)

    @property
    def constant(self) -> bool:
        """Whether it is a number."""
        return not self.powers

    def times(self, other: Term) -> Term:
        """The product."""
        powers = dict(self.powers)
        for atom, power in other.powers:
            powers[atom] = powers.get(atom, 0.0) + power
        return _made(self.coefficient * other.coefficient, powers, self.names | other.names)

    def power(self, exponent: float) -> Term | None:
        """A power with a constant exponent; None if it is no real number."""
        try:
            coefficient = self.coefficient**exponent
        except (OverflowError, ZeroDivisionError):
            return None
        if isinstance(coefficient, complex):
            return None
        return _made(coefficient, {atom: power * exponent for atom, power in self.powers}, self.names)

    def plus(self, other: Term, sign: float = 1.0) -> Term:
        """The sum or difference: one term if both are alike, otherwise an atom."""
        if self.powers == other.powers:
            return _made(self.coefficient + sign * other.coefficient, dict(self.powers), self.names | other.names)
        between = " + " if sign > 0 else " - "
        return opaque(f"({self}{between}{other})", self.names | other.names)

    def __str__(self) -> str:
        above = [_written(atom, power) for atom, power in self.powers if power > 0]
        below = [_written(atom, -power) for atom, power in self.powers if power < 0]
        number = f"{self.coefficient:g}"
        if not above or self.coefficient != 1:
            above.insert(0, number)
        return "*".join(above) + "".join(f"/{one}" for one in below)


def _written(atom: str, power: float) -> str:
    if power == 1:
        return atom
    return f"sqrt({atom})" if power == 0.5 else f"{atom}^{power:g}"


def _made(coefficient: float, powers: dict[str, float], names: frozenset[str]) -> Term:
    kept = tuple(sorted((atom, power) for atom, power in powers.items() if abs(power) > 1e-12))
    if len(kept) > MOST_ATOMS or not math.isfinite(coefficient):
        return opaque("…", names)
    return Term(coefficient, kept, names)


def number(value: float) -> Term:
    """A constant."""
    return Term(float(value)) if math.isfinite(value) else opaque(str(value), frozenset())


def named(role: str) -> Term:
    """A quantity known by its role or its name."""
    return Term(1.0, ((role, 1.0),), frozenset({role}))


def opaque(text: str, names: frozenset[str]) -> Term:
    """What is no product of powers."""
    short = text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
    return Term(1.0, ((short, 1.0),), names)


def function(name: str, inner: Term) -> Term:
    """A function of a term: the number if it is constant, otherwise an atom such as log(1.25/delta)."""
    if inner.constant:
        try:
            return number(FUNCTIONS[name](inner.coefficient))
        except (KeyError, ValueError, OverflowError):
            pass
    if name == "abs" and inner.coefficient < 0:
        return Term(-inner.coefficient, inner.powers, inner.names)
    if name == "abs":
        return inner
    return opaque(f"{name}({inner})", inner.names)
