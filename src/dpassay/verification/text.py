"""A reader of a pipeline's text of its own: do the recorded stages say what the claim's text says?

Stages are separated by |; their arguments are l1, l2, linf, tanh, sigmoid, or formulas with + − * / ^, brackets,
exp, ln, sqrt, pi and the names that the claim gives values to. Nothing is evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dpassay.errors import CertificateError
from dpassay.verification.numbers import Number, close, is_decimal, iv, middle, show
from dpassay.verification.regions import NORMS, Shape, Stage

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|\*\*|[|(),=+\-*/^])")
_DEEPEST, _LARGEST_LOG = 100, 10**7
# A pipeline that was made in Python is written with the digits of doubles.
_AGREE = "3e-16"
_WORDS = (*NORMS, "tanh", "sigmoid")
_FUNCTIONS = {"exp": iv.exp, "ln": iv.log, "sqrt": iv.sqrt}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "clip": ("norm", "radius"),
    "normalise": ("norm",),
    "squash": ("kind",),
    "category": ("k",),
    "onehot": ("k",),
    "binary": ("integer", "fraction"),
    "query": ("norm", "distance"),
    "dropout": ("mu",),
    "laplace": ("scale",),
    "gaussian": ("sigma",),
    "onesided": ("scale",),
    "flip": ("keep",),
    "bits": ("even", "odd", "zero"),
    "exponential": ("rate",),
    "noise": ("",),  # how a noise that the text form does not know is written
}
_PLAIN = ("encode", "minmax", "round", "decode")


@dataclass(frozen=True, slots=True)
class Call:
    """A stage as the text has it."""

    name: str
    arguments: dict[str, Number | str]


class _Text:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, values: Mapping[str, Number]) -> None:
        self.values, self.depth, self.at = values, 0, 0
        self.tokens, position = [], 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise CertificateError(f"the pipeline's text cannot be read at {stripped[position : position + 20]!r}")
            self.tokens.append(match[1].replace("**", "^"))
            position = match.end()

    @property
    def here(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token, if it is one of these."""
        token = self.here
        if not token or (wanted and token not in wanted):
            return ""
        self.at += 1
        return token

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise CertificateError(f"the pipeline's text cannot be read: expected {wanted!r}, got {self.here[:40]!r}")

    def stages(self) -> list[Call]:
        found = [self.stage()]
        while self.take("|"):
            found.append(self.stage())
        if self.here:
            raise CertificateError(f"the pipeline's text cannot be read: unexpected {self.here[:40]!r}")
        return found

    def stage(self) -> Call:
        name = self.take().replace("normalize", "normalise")
        names = _PARAMETERS.get(name, ())
        if not names and name not in _PLAIN:
            raise CertificateError(f"the pipeline's text names the unknown stage {name[:40]!r}")
        arguments: dict[str, Number | str] = {}
        if self.take("("):
            while not self.take(")"):
                if len(arguments) >= len(names):
                    raise CertificateError(f"the pipeline's text gives {name} too many arguments")
                key = names[len(arguments)]
                if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == "=":
                    key = self.take()
                    self.need("=")
                arguments[key] = self.argument(name)
                if self.here != ")":
                    self.need(",")
        return Call(name, arguments)

    def argument(self, stage: str) -> Number | str:
        word = self.take(*_WORDS) or (self.take() if stage == "noise" else "")
        return word or self.sum()

    def sum(self) -> Number:
        value = self.product()
        while sign := self.take("+", "-"):
            other = self.product()
            value = value + other if sign == "+" else value - other
        return value

    def product(self) -> Number:
        value = self.power()
        while sign := self.take("*", "/"):
            other = self.power()
            if sign == "/" and 0 in other:
                raise CertificateError("the pipeline's text divides by zero")
            value = value * other if sign == "*" else value / other
        return value

    def power(self) -> Number:
        """Signs bind weaker than powers, and powers group to the right."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise CertificateError("the pipeline's text is nested too deeply")
        sign = 1
        while token := self.take("+", "-"):
            sign = -sign if token == "-" else sign
        value = self.atom()
        if self.take("^"):
            value = _raised(value, self.power())
        self.depth -= 1
        return sign * value

    def atom(self) -> Number:
        token = self.take()
        if token == "(":
            value = self.sum()
            self.need(")")
            return value
        if token in _FUNCTIONS and self.take("("):
            value = self.sum()
            self.need(")")
            if (token == "exp" and abs(value).b > _LARGEST_LOG) or (token != "exp" and not value.a > 0):
                raise CertificateError(f"the pipeline's text takes {token} of {show(value)}")
            return _FUNCTIONS[token](value)
        if token in self.values:
            return self.values[token]
        if is_decimal(token.lstrip(".") and token.rstrip(".").replace("E", "e")):
            return iv.mpf(token)
        if re.fullmatch(r"\.[0-9]{1,400}([eE][+-]?[0-9]{1,4})?", token):
            return iv.mpf(f"0{token}")
        raise CertificateError(f"the pipeline's text uses {token[:40]!r}, which the claim gives no value to")


def _raised(base: Number, exponent: Number) -> Number:
    whole = round(middle(exponent))
    if exponent.a == whole and exponent.b == whole and abs(whole) <= 10_000:
        return base**whole
    if not base.a > 0 or abs(exponent * iv.log(base)).b > _LARGEST_LOG:
        raise CertificateError("the pipeline's text takes a power that is too large or not real")
    return iv.exp(exponent * iv.log(base))


def read_text(text: str, values: Mapping[str, Number]) -> list[Call]:
    """The stages that a text names, with the numbers of their arguments.

    >>> read_text("clip(l2, C) | decode", {"C": iv.mpf(2)})[0].arguments["norm"]
    'l2'
    """
    return _Text(text, {"pi": +iv.pi, **values}).stages()


def disagreement(call: Call, stage: Stage, before: Shape) -> str:
    """How a recorded stage differs from the text's, or nothing."""
    name, given = call.name, dict(call.arguments)
    if name == "noise":
        known = {"OneSided": "onesided", "Mixture": "mixture"}.get(str(given.get("")), "")
        return "" if known == stage.name else f"the text says {given.get('')}"
    if name == "flip" and before.kind != "categories":
        name, keep = "bits", given.pop("keep", "")
        given |= {"even": keep, "odd": keep, "zero": keep if isinstance(keep, str) else 1 - keep}
    elif name == "flip":
        given["size"] = iv.mpf(before.count)
    if name == "normalise":
        given.setdefault("norm", "l2")
    if "k" in given:
        given["size"] = given.pop("k")
    if name != stage.name:
        return f"the text says {name}"
    recorded: dict[str, Number | str] = {**stage.words, **stage.numbers}
    recorded |= {key: iv.mpf(value) for key, value in stage.wholes.items()}
    if recorded.keys() != given.keys():
        return "the text gives other arguments"
    for key, value in recorded.items():
        wanted = given[key]
        if isinstance(value, str) or isinstance(wanted, str):
            if value != wanted:
                return f"{key} is {value if isinstance(value, str) else show(value)}, the text says {wanted}"
        elif not close(value, wanted, _AGREE):
            return f"{key} is {show(value)}, by the text it is {show(wanted)}"
    return ""
