"""What a rule may take for granted: whether code is about privacy, and what it accepts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dpassay.scan.findings import ScanFinding, Severity
from dpassay.scan.reading.index import FunctionSource, Index
from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.values import NOISY, RAW, DrawnValue, Log, SourceLine, Used

PRIVATE_ROLES = {"epsilon", "sensitivity", "multiplier"}
NOISES = {
    "laplace",
    "gaussian",
    "exponential",
    "gumbel",
    "logistic",
    "formula",
    "one-sided",
    "two-sided geometric",
    "cauchy",
}
# Code that measures or shows a mechanism may hold the data next to the noisy value.
MEASURING = re.compile(
    r"(^|_)(errors?|mse|mae|rmse|accuracy|evaluat\w*|compare\w*|plot\w*|tests?|bench\w*|metrics?|distance|score|"
    r"examples?|demos?|main|simulat\w*|experiments?|utility|bias|validate\w*|visuali\w*|print\w*|show)($|_)",
    re.IGNORECASE,
)


@dataclass
class Context:
    """One function with what was seen in it."""

    index: Index
    log: Log
    found: list[ScanFinding] = field(default_factory=list)

    @property
    def function(self) -> FunctionSource:
        """The function that was read."""
        return self.log.function

    @cached_property
    def roles(self) -> set[str]:
        """The roles of its parameters, and of the attributes of its class."""
        own = {role_of(name) for name in self.log.parameters}
        if self.function.owner is not None:
            own |= {role_of(name) for name in self.function.owner.attributes}
            own |= {role_of(name) for name in self.function.owner.fields}
        return own

    @cached_property
    def claim(self) -> str:
        """What its documentation claims; that of the module counts where the function has ε or a sensitivity."""
        return self.function.claim or (self.function.module.claim if self.roles & PRIVATE_ROLES else "")

    @cached_property
    def private(self) -> bool:
        """Whether the function is meant to protect: it claims to, or has ε."""
        if "epsilon" in self.roles:
            return self.function.module.about_privacy
        owner = self.function.owner
        if owner is not None and self.function.module.about_privacy:
            for method in owner.methods.values():
                if any(role_of(arg.arg) == "epsilon" for arg, _ in method.parameters):
                    return True
        return bool(self.claim) or bool(self.roles & PRIVATE_ROLES)

    @cached_property
    def measuring(self) -> bool:
        """Whether it measures a mechanism rather than being one."""
        return MEASURING.search(self.function.name) is not None

    @cached_property
    def noises(self) -> list[DrawnValue]:
        """Draws of noise, or of choices where the function has ε."""
        return [one for one in self.log.draws if one.law in NOISES or one.law in ("uniform", "choice", "geometric")]

    def calibrated(self, use: Used) -> bool:
        """Whether the noise is scaled by ε, a sensitivity or a clipping bound."""
        return bool(use.noise.names & {"epsilon", "sensitivity", "clip", "multiplier", "delta"})

    def uses(self) -> Iterator[Used]:
        """Noise that meets something and is meant to protect it."""
        for use in self.log.uses:
            if use.noise.law in NOISES and (self.calibrated(use) or self.private):
                yield use

    @cached_property
    def noisy_returned(self) -> bool:
        """Whether some path returns a noisy value."""
        values = [one.value for one in self.log.returns]
        parts = [part for one in values for part in (one, *(one.items or ()))]
        return any(one.has(NOISY, "noise") or one.draws for one in parts)

    def report(self, rule: str, severity: Severity, place: SourceLine, message: str, warned: bool = False) -> None:
        """Keep a finding; where the code itself warns about it, it is information."""
        kept: Severity = "information" if warned else severity
        code = self.line(place)
        self.found.append(ScanFinding(rule, kept, place, self.named(place), message, code))

    def line(self, place: SourceLine) -> str:
        """The text of a line."""
        module = next((one for one in self.index.modules if one.file == place.file), None)
        lines = module.lines if module is not None else []
        return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""

    def at(self, place: SourceLine) -> tuple[FunctionSource, ...]:
        """The function of the package that holds a line."""
        module = next((one for one in self.index.modules if one.file == place.file), None)
        methods = (one for each in module.classes.values() for one in each.methods.values()) if module else ()
        functions = (*module.functions.values(), *methods) if module else ()
        return tuple(one for one in functions if one.node.lineno <= place.line <= (one.node.end_lineno or 0))

    def named(self, place: SourceLine) -> str:
        """The function that a place is in: this one, or one that it calls."""
        for one in (self.function, *(f for use in self.log.uses for f in use.where.chain)):
            node = one.node
            if one.module.file == place.file and node.lineno <= place.line <= (node.end_lineno or node.lineno):
                return one.qualified
        return self.function.qualified

    def guarded(self, chain: tuple[FunctionSource, ...], role: str, bound: float) -> bool:
        """Whether a quantity is compared with a number in these functions or their classes."""
        scopes: list[ast.AST] = []
        for one in dict.fromkeys((self.function, *chain)):
            scopes.append(one.node)
            if one.owner is not None:
                scopes += [each.node for each in self.index.lineage(one.owner)]
        return any(_compares(node, role, bound) for scope in scopes for node in ast.walk(scope))


def _compares(node: ast.AST, role: str, bound: float) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(_number(one) == bound for one in sides) and any(mentions(one, role) for one in sides)
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
        "min",
        "minimum",
        "clip",
    ):
        return any(_number(one) == bound for one in node.args) and any(mentions(one, role) for one in node.args)
    return False


def _number(node: ast.AST) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def mentions(node: ast.AST, role: str) -> bool:
    """Whether an expression names a quantity of this role."""
    for one in ast.walk(node):
        name = one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""
        if name and role_of(name) == role:
            return True
    return False


def protects(use: Used) -> bool:
    """Whether the noise is added to data, as far as one can see."""
    return use.other is not None and use.other.has(RAW)
