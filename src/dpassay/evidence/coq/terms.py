"""The text of a pipeline as stages whose arguments are terms of Coq, with all rational parts computed exactly."""

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mpmath import mp

from dpassay.errors import InputError

DIGITS = 60  # to which a file is written; of the numbers that are compared or suggested here, which Coq checks
_LARGEST_EXPONENT = 1_000
_LARGEST_EXP = 700
_LARGEST_BITS = 10_000


class Unsupported(InputError):
    """A claim that no theorem of the folder `proofs` speaks about."""


@dataclass(frozen=True, slots=True)
class CoqNumber:
    """A real number: as Coq writes it, exactly if it is rational, and as a float of the precision in use."""

    text: str
    exact: Fraction | None
    about: Any = field(compare=False)

    @classmethod
    def of(cls, value: Fraction | int) -> "CoqNumber":
        """A rational number.

        >>> CoqNumber.of(Fraction(-1, 20)).text
        '(- 1 / 20)'
        """
        value = Fraction(value)
        if max(abs(value.numerator), value.denominator).bit_length() > _LARGEST_BITS:
            raise Unsupported("a number of more than 3,000 digits cannot be written for Coq")
        sign, size = "- " if value < 0 else "", abs(value)
        text = f"{size.numerator}" if size.denominator == 1 else f"{size.numerator} / {size.denominator}"
        about = mp.mpf(value.numerator) / value.denominator
        return cls(text if text.isdigit() and not sign else f"({sign}{text})", value, about)

    @classmethod
    def near(cls, value: Any, slack: Any) -> "CoqNumber":
        """A decimal near a number, exact to a thousandth of the slack."""
        digits = max(3, 3 - int(mp.floor(mp.log10(slack))))
        return cls.of(Fraction(int(mp.nint(value * mp.mpf(10) ** digits)), 10**digits))

    def whole(self, what: str, least: int = 1) -> int:
        """A number of coordinates, categories, bits or steps."""
        if self.exact is None or self.exact.denominator != 1 or self.exact < least:
            raise Unsupported(f"{what} must be a whole number for Coq, got {self.text}")
        return int(self.exact)


@dataclass(frozen=True, slots=True)
class CoqStage:
    """A stage of a pipeline's text: its name, words such as l2, and numbers."""

    name: str
    words: tuple[str, ...]
    numbers: tuple[CoqNumber, ...]


def read_stages(text: str, values: Mapping[str, Fraction]) -> list[CoqStage]:
    """The stages of a text.

    >>> stages = read_stages("clip(l2, C) | laplace(2*C/eps)", {"C": Fraction(3), "eps": Fraction(1, 2)})
    >>> [(stage.name, stage.words, [n.text for n in stage.numbers]) for stage in stages]
    [('clip', ('l2',), ['3']), ('laplace', (), ['12'])]
    """
    source = re.sub(r"(?<![A-Za-z0-9_.])(?=[A-Za-z_])", "_", " ".join(text.split()).replace("^", "**"))
    try:
        tree, nodes = ast.parse(source, mode="eval").body, []
    except SyntaxError as error:
        raise Unsupported(f"the pipeline's text cannot be read: {error.msg}") from None
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        nodes.append(tree.right)
        tree = tree.left
    reader = _TermReader(source, values)
    return [reader.stage(node) for node in [tree, *reversed(nodes)]]


class _TermReader:
    def __init__(self, source: str, values: Mapping[str, Fraction]) -> None:
        self.source, self.values = source, values

    def stage(self, node: ast.expr) -> CoqStage:
        if isinstance(node, ast.Name):
            return CoqStage(node.id[1:], (), ())
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            raise Unsupported(f"cannot be read for Coq: {ast.unparse(node)}")
        words = [a.id[1:] for a in node.args if isinstance(a, ast.Name) and a.id[1:] not in self.values]
        words = [word for word in words if word != "pi"]
        numbers = [a for a in node.args if not (isinstance(a, ast.Name) and a.id[1:] in words)]
        return CoqStage(node.func.id[1:], tuple(words), tuple(self.term(a) for a in numbers))

    def term(self, node: ast.expr) -> CoqNumber:
        match node:
            case ast.Constant():
                return CoqNumber.of(Fraction(ast.get_source_segment(self.source, node) or "0"))
            case ast.Name(id="_pi"):
                return CoqNumber("PI", None, +mp.pi)
            case ast.Name(id=name) if name[1:] in self.values:
                return CoqNumber.of(self.values[name[1:]])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _combined(ast.Sub(), CoqNumber.of(0), self.term(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.term(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(op, self.term(left), self.term(right))
            case ast.Call(func=ast.Name(id=function), args=[argument], keywords=[]):
                return _applied(function[1:], self.term(argument))
        raise Unsupported(f"cannot be written in Coq: {ast.unparse(node).replace('_', '')}")


def _combined(op: ast.operator, a: CoqNumber, b: CoqNumber) -> CoqNumber:
    if isinstance(op, ast.Div) and b.about == 0:
        raise Unsupported(f"a division by zero: {a.text} / {b.text}")
    if isinstance(op, ast.Pow):
        return _power(a, b)
    sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(op))
    if sign is None:
        raise Unsupported("a formula for Coq has only + - * / ^")
    x, y = (a.about, b.about) if a.exact is None or b.exact is None else (a.exact, b.exact)
    value = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[sign]()
    if isinstance(value, Fraction):
        return CoqNumber.of(value)
    return CoqNumber(f"({a.text} {sign} {b.text})", None, value)


def _power(a: CoqNumber, b: CoqNumber) -> CoqNumber:
    if b.exact is None or b.exact.denominator != 1 or abs(b.exact) > _LARGEST_EXPONENT:
        raise Unsupported(f"an exponent must be a whole number for Coq, got {b.text}")
    size = abs(int(b.exact))
    if a.exact is not None:
        return CoqNumber.of(a.exact ** int(b.exact))
    power = f"{a.text} ^ {size}"
    return CoqNumber(f"({power})" if b.exact >= 0 else f"(/ {power})", None, a.about ** int(b.exact))


def _applied(function: str, a: CoqNumber) -> CoqNumber:
    if function == "sqrt" and a.exact is not None and a.exact >= 0:
        root = Fraction(math.isqrt(a.exact.numerator), math.isqrt(a.exact.denominator))
        if root * root == a.exact:
            return CoqNumber.of(root)
    known = {"exp": mp.exp, "ln": mp.log, "sqrt": mp.sqrt}
    if function not in known:
        raise Unsupported(f"the function {function} is not known in Coq")
    if {"exp": a.about > _LARGEST_EXP, "ln": a.about <= 0, "sqrt": a.about < 0}[function]:
        raise Unsupported(f"{function}({a.text}) is not a number, or is too large")
    if function == "exp" and a.exact is not None and a.exact < 0:  # so that Coq sees that e^-x e^x is 1
        return CoqNumber(f"(/ (exp {CoqNumber.of(-a.exact).text}))", None, mp.exp(a.about))
    return CoqNumber(f"({function} {a.text})", None, known[function](a.about))
