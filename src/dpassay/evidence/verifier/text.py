"""A reader of a pipeline's text of its own: do the recorded stages say what the claim's text says?

Stages are separated by |; their arguments are l1, l2, linf, tanh, sigmoid, or formulas with + − * / ^, brackets,
exp, ln, sqrt, least_sigma, pi and the names that the claim gives values to. Nothing is evaluated as code.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.normal import gaussian_delta
from dpassay.evidence.verifier.numbers import ONE, ZERO, Number, close, hull, is_decimal, iv, middle, show
from dpassay.evidence.verifier.regions import NORMS, Shape, Stage

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|\*\*|[|(),=+\-*/^])")
_DEEPEST, _LARGEST_LOG = 100, 10**7
# A pipeline that was made in Python is written with the digits of doubles.
_AGREE = "3e-16"
_NARROW = iv.mpf("1e-12")  # how precisely a formula must be known; least_sigma gives 14 digits
_WORDS = (*NORMS, "tanh", "sigmoid")
_FUNCTIONS = {"exp": iv.exp, "ln": iv.log, "sqrt": iv.sqrt}
TAKEN = frozenset({*_WORDS, *_FUNCTIONS, "least_sigma", "pi", "eps", "delta"})  # names that mean something already
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
    "onesided": ("scale", "zero", "lost"),
    "leak": ("chance",),
    "clamp": ("low", "high"),
    "repeat": ("times",),
    "hash": ("k",),
    "bloom": ("k", "hashes"),
    "flip": ("keep",),
    "bits": ("even", "odd", "zero"),
    "exponential": ("rate",),
    "noise": ("",),  # how a noise that the text form does not know is written
}
_PLAIN = ("encode", "minmax", "round", "rows", "decode")


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
        if token == "least_sigma" and self.take("("):
            values = [self.sum()]
            while self.take(","):
                values.append(self.sum())
            self.need(")")
            return _least_sigma(*values)
        if token in self.values:
            return self.values[token]
        if is_decimal(token.lstrip(".") and token.rstrip(".").replace("E", "e")):
            return iv.mpf(token)
        if re.fullmatch(r"\.[0-9]{1,400}([eE][+-]?[0-9]{1,4})?", token):
            return iv.mpf(f"0{token}")
        raise CertificateError(f"the pipeline's text uses {token[:40]!r}, which the claim gives no value to")


def _least_sigma(*values: Number) -> Number:
    """The least deviation of normal noise for epsilon, delta and an l2 distance, to about 14 digits."""
    if len(values) != 3 or not (values[0].a >= 0 and values[1].a > 0 and values[1].b < 1 and values[2].a > 0):
        raise CertificateError("the pipeline's text needs least_sigma(epsilon, delta, distance), delta and it positive")
    epsilon, delta, distance = values
    low = high = 1.0
    while gaussian_delta(epsilon, 1 / iv.mpf(high)).b > delta.a:
        low, high = high, 2 * high
    while gaussian_delta(epsilon, 1 / iv.mpf(low)).b <= delta.a:
        low, high = low / 2, low
    while high - low > 1e-15 * high and low < (low + high) / 2 < high:
        half = (low + high) / 2
        low, high = (low, half) if gaussian_delta(epsilon, 1 / iv.mpf(half)).b <= delta.a else (half, high)
    return distance * hull(iv.mpf(low), iv.mpf(high) * (1 + iv.mpf("1e-14")))


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
    if name == "leak" or (name == "onesided" and stage.name == "mixture"):
        return _other_mixture(given, stage)
    if name == "onesided":  # nothing is left out, nothing lost
        given = {key: value for key, value in given.items() if key == "scale" or not _is_zero(value)}
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
        elif not _agree(value, wanted):
            return f"{key} is {show(value)}, by the text it is {show(wanted)}"
    return ""


def _agree(recorded: Number, wanted: Number) -> bool:
    """Whether two numbers are alike. A formula that is known only roughly agrees with nothing, rather than with all."""
    width = wanted.b - wanted.a
    return bool(width <= (_NARROW * abs(wanted)).a + iv.mpf("1e-40").a) and close(recorded, wanted, _AGREE)


def _is_zero(value: Number | str) -> bool:
    return not isinstance(value, str) and bool(value.a == 0 and value.b == 0)


def _other_mixture(given: Mapping[str, Number | str], stage: Stage) -> str:
    """How a recorded mixture differs from leak(chance) or onesided(scale, zero, lost), or nothing."""
    if stage.name != "mixture" or any(isinstance(value, str) for value in given.values()):
        return "the text says another noise"
    if "chance" in given:
        zero, lost, scale = given["chance"], ONE - given["chance"], None
    else:
        zero, lost, scale = given.get("zero", ZERO), given.get("lost", ZERO), given.get("scale")
    rest = ONE - zero - lost if scale is not None else ZERO
    wanted = [("atom", zero, stage.numbers["atom"]), ("lost", lost, stage.numbers["lost"])]
    for weight, part in stage.parts:
        wanted += [("weight", rest, weight), ("scale", scale, part.numbers.get("scale"))]
    surely = rest.a > iv.mpf(_AGREE).b
    if len(stage.parts) > 1 or (surely and not stage.parts) or any(part.name != "onesided" for _, part in stage.parts):
        return "the text says another noise"
    for key, mine, theirs in wanted:
        if mine is None or not (_agree(theirs, mine) or abs(theirs - mine).b < iv.mpf(_AGREE).b):
            return f"{key} is {show(theirs)}, the text says otherwise"
    return ""
