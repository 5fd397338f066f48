"""A reader of a pipeline's text of its own.

Stages are separated by |; their arguments are l1, l2, linf, tanh, sigmoid, or formulas with + − * / ^, brackets,
exp, ln, sqrt, least_sigma, pi and the names that the claim gives values to. Nothing is evaluated as code.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.normal import gaussian_delta
from dpassay.evidence.verifier.numbers import ONE, ZERO, Number, is_decimal, iv, largest, middle, show
from dpassay.evidence.verifier.regions import LARGEST, SINGLE, Shape, Stage

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|\*\*|[|(),=+\-*/^])")
_DEEPEST, _LARGEST_LOG, _MOST_SEARCHES = 100, 10**7, 4
_NARROW, _NOTHING = iv.mpf("1e-40"), iv.mpf("1e-50")  # how precisely a formula must be known
_FUNCTIONS = {"exp": iv.exp, "ln": iv.log, "sqrt": iv.sqrt}
_STAGES: dict[str, dict[str, str]] = {  # the parameters in order, and what each must be
    "encode": {},
    "decode": {},
    "minmax": {},
    "round": {},
    "rows": {},
    "poisson": {"rate": "probability"},
    "subsample": {"m": "size", "n": "size"},
    "shuffle": {"batches": "size"},
    "times": {"steps": "size"},
    "clamp": {"low": "real", "high": "real"},
    "repeat": {"times": "size"},
    "hash": {"k": "size"},
    "bloom": {"k": "size", "hashes": "size"},
    "clip": {"norm": "l1 l2 linf", "radius": "positive"},
    "normalise": {"norm": "l2"},
    "squash": {"kind": "tanh sigmoid"},
    "category": {"k": "size"},
    "onehot": {"k": "size"},
    "binary": {"integer": "bits", "fraction": "bits"},
    "query": {"norm": "l1 l2 linf", "distance": "positive", "moves": "any monotone"},
    "dropout": {"mu": "probability"},
    "laplace": {"scale": "positive"},
    "gaussian": {"sigma": "positive"},
    "radial": {"norm": "l1 l2 linf", "scale": "positive"},
    "onesided": {"scale": "positive", "zero": "probability", "lost": "probability"},
    "leak": {"chance": "probability"},
    "flip": {"keep": "probability"},
    "bits": {"even": "probability", "odd": "probability", "zero": "probability"},
    "exponential": {"rate": "positive"},
}
_DEFAULTS: dict[str, Number | str] = {"norm": "l2", "zero": ZERO, "lost": ZERO, "moves": "any"}
_MAY_BE_LEFT_OUT = {"normalise": ("norm",), "onesided": ("zero", "lost"), "query": ("moves",)}
_WORDS = frozenset(word for stage in _STAGES.values() for kind in stage.values() for word in kind.split())
_WORDS -= {"real", "size", "bits", "positive", "probability"}
TAKEN = frozenset({*_WORDS, *_FUNCTIONS, "least_sigma", "pi", "eps", "delta"})  # names that mean something already


@dataclass(frozen=True, slots=True)
class Call:
    """A stage as the text has it."""

    name: str
    arguments: dict[str, Number | str]


class _Text:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, values: Mapping[str, Number]) -> None:
        self.values, self.depth, self.at, self.searches = values, 0, 0, 0
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
        if name not in _STAGES:
            raise CertificateError(f"the pipeline's text names the unknown stage {name[:40]!r}")
        names = tuple(_STAGES[name])
        arguments: dict[str, Number | str] = {}
        if self.take("("):
            while not self.take(")"):
                if len(arguments) >= len(names):
                    raise CertificateError(f"the pipeline's text gives {name} too many arguments")
                key = names[len(arguments)]
                if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == "=":
                    key = self.take()
                    self.need("=")
                if key in arguments or key not in names:
                    raise CertificateError(
                        f"the pipeline's text gives {name} the argument {key[:40]!r}, or gives it twice"
                    )
                arguments[key] = self.take(*_WORDS) or self.sum()
                if self.here != ")":
                    self.need(",")
        return Call(name, arguments)

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
            self.searches += 1
            if self.searches > _MOST_SEARCHES:
                raise CertificateError("the pipeline's text needs too many least_sigma")
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
    """A deviation of normal noise that is enough for epsilon, delta and an l2 distance: the least, as a double."""
    if len(values) != 3 or not (values[0].a >= 0 and values[1].a > 0 and values[1].b < 1 and values[2].a > 0):
        raise CertificateError("the pipeline's text needs least_sigma(epsilon, delta, distance), delta and it positive")
    epsilon, delta, distance = values
    near, target = (middle(value) for value in (epsilon, delta))
    low, high = 1e-12, 1e12  # to guess with, in doubles
    while high - low > 1e-15 * high:
        half = math.sqrt(low * high) if high > 2 * low else (low + high) / 2
        if not low < half < high:
            break
        low, high = (half, high) if _rough_delta(near, 1 / half) > target else (low, half)
    for slack in range(60):  # the guess is off by rounding only
        sigma = iv.mpf(high * (1 + 2.0 ** (slack - 52)))
        if gaussian_delta(epsilon, 1 / sigma).b <= delta.a:
            return distance * sigma
    raise CertificateError("the pipeline's text needs a least_sigma that cannot be found")


def _rough_delta(epsilon: float, mu: float) -> float:
    """δ of normal noise in doubles; the logarithms of its tails are what counts far out."""
    logs = []
    for z in (epsilon / mu - mu / 2, epsilon / mu + mu / 2):
        far = -z * z / 2 - math.log(max(z, 1.0) * math.sqrt(2 * math.pi)) - 1 / max(z, 1.0) ** 2
        logs.append(math.log(math.erfc(z / math.sqrt(2)) / 2) if z < 20 else far)
    return math.exp(logs[0]) * -math.expm1(min(0.0, epsilon + logs[1] - logs[0]))


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


def stage_of(call: Call, before: Shape) -> Stage:
    """A stage as the text has it, for values of a region; arguments that it cannot have are refused."""
    name, given = call.name, dict(call.arguments)
    for key in _MAY_BE_LEFT_OUT.get(name, ()):
        given.setdefault(key, _DEFAULTS[key])
    missing = _STAGES[name].keys() - given.keys()
    if missing:
        raise CertificateError(f"the pipeline's text gives {name} no {min(missing)}")
    words: dict[str, str] = {}
    wholes: dict[str, int] = {}
    numbers: dict[str, Number] = {}
    for key, kind in _STAGES[name].items():
        value, own = given[key], f"the pipeline's text: {name}: {key}"
        if isinstance(value, str):
            if value not in kind.split():
                raise CertificateError(f"{own} cannot be {value}")
            words[key] = value
            continue
        if not (value.b - value.a) <= (_NARROW * abs(value)).b + _NOTHING.a:
            raise CertificateError(f"{own} is not known precisely enough")
        if kind in ("size", "bits"):
            wholes[key] = _whole(value, own, *((1, LARGEST) if kind == "size" else (0, 30)))
        elif kind == "positive" and not value.a > 0:
            raise CertificateError(f"{own} must be positive, it is {show(value)}")
        elif kind not in ("positive", "real", "probability"):
            raise CertificateError(f"{own} must be one of {kind}, it is a number")
        else:
            numbers[key] = _probability(value, own) if kind == "probability" else value
    return _for_region(Stage(name, words, wholes, numbers), before)


def _whole(value: Number, own: str, low: int, high: int) -> int:
    if not (value.a == value.b and low <= value.a and value.b <= high and value.a == int(middle(value))):
        raise CertificateError(f"{own} must be a whole number from {low} to {high}, it is {show(value)}")
    return int(middle(value))


def _probability(value: Number, own: str) -> Number:
    """An enclosure of 0 or 1 may stick out by what rounding makes; a probability does not."""
    if value.b < 0 or value.a > 1:
        raise CertificateError(f"{own} must be from 0 to 1, it is {show(value)}")
    return iv.mpf([max(value.a, ZERO), min(value.b, ONE)])


def _for_region(stage: Stage, before: Shape) -> Stage:
    """The same stage in the words of the others: leak and lost noise are mixtures, flipped bits are bits."""
    name, numbers = stage.name, stage.numbers
    if name == "dropout" and not numbers["mu"].b < 1:
        raise CertificateError("the pipeline's text: dropout: mu must be below 1")
    if name == "clamp" and not numbers["low"].b < numbers["high"].a:
        raise CertificateError("the pipeline's text: clamp: low must be below high")
    if name == "bloom" and stage.wholes["hashes"] > stage.wholes["k"]:
        raise CertificateError("the pipeline's text: bloom: there are more hashes than bits")
    if name == "radial" and (stage.words["norm"] == "l1" or before.dim == 1):
        return Stage("laplace", {}, {}, numbers)
    if name == "leak":
        return Stage("mixture", {}, {}, {"atom": numbers["chance"], "lost": 1 - numbers["chance"]})
    if name == "onesided" and (numbers["zero"].b > 0 or numbers["lost"].b > 0):
        rest = 1 - numbers["zero"] - numbers["lost"]
        if rest.b < 0:
            raise CertificateError("the pipeline's text: onesided: zero and lost are more than 1 together")
        part = Stage("onesided", {}, {}, {"scale": numbers["scale"]})
        return Stage(
            "mixture", {}, {}, {"atom": numbers["zero"], "lost": numbers["lost"]}, ((largest([ZERO, rest]), part),)
        )
    if name == "flip" and before.kind == "categories":
        return Stage("flip", {}, {"k": before.count}, numbers)
    if name == "flip":
        keep = numbers["keep"]
        return Stage("bits", {}, {}, {"even": keep, "odd": keep, "zero": 1 - keep})
    return stage


def check_place(stages: list[Stage], stage: Stage, before: Shape) -> None:
    """Refuse a stage where it makes no sense: behind these stages, on values of this region."""
    name, kind = stage.name, before.kind
    if name in ("query", "rows", "poisson", "subsample", "shuffle") and stages:
        raise CertificateError(f"{name} must be the first stage")
    if stages and stages[-1].name == "times":
        raise CertificateError("times must be the last stage")
    if name == "subsample" and stage.wholes["m"] > stage.wholes["n"]:
        raise CertificateError("the pipeline's text: subsample: m must be at most n")
    if name == "poisson" and not stage.numbers["rate"].a > 0:
        raise CertificateError("the pipeline's text: poisson: rate must be above 0")
    if name == "dropout" and any(earlier.name != "dropout" for earlier in stages):
        raise CertificateError("dropout must come before all other stages")
    if name == "bits" and kind not in ("bits", "row-bits", "onehot", "sparse"):
        raise CertificateError(f"bits cannot be flipped in the region {kind}")
    if name in SINGLE and before.dim != 1 and not (name == "onehot" and before.dim == stage.wholes["k"]):
        raise CertificateError(f"{name} takes one value, but {before.dim} coordinates come in")
    if name == "radial" and kind == "repeated":
        raise CertificateError("radial draws one noise for the whole vector, not one for each copy")
    vectors = name in ("laplace", "gaussian", "onesided", "radial", "exponential", "repeat") or bool(stage.parts)
    if vectors and kind == "categories":
        raise CertificateError(f"{name} cannot work on a category's name")
