"""The text form of a pipeline, such as `clip(l2, C) | laplace(2*C/eps)`: parsed, never evaluated as code.

Numbers are enclosed to 50 digits. What is wrong with the text is an ExpressionError that points at the character.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from dpassay.core.numbers import Number, iv
from dpassay.errors import ExpressionError, InputError
from dpassay.pipeline.arithmetic import FUNCTIONS, MAX_WHOLE, NUMBER, OPERATIONS, apply, read_number, whole_number
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import MAX_STAGES, Pipeline
from dpassay.pipeline.regions import Everything, check_dimension
from dpassay.pipeline.stages import noise
from dpassay.pipeline.stages import vector as stages

MAX_LENGTH, MAX_DEPTH = 10_000, 100  # characters; parentheses inside each other


@dataclass(frozen=True, slots=True)
class StageForm:
    """How a stage is written: its parameters in order, each a word, a number or whole; what makes it; what it does.

    >>> clip = STAGES["clip"]
    >>> clip.parameters, str(clip.build("l2", 1)), clip.usage("clip")
    ({'norm': 'word', 'radius': 'number'}, 'clip(l2, 1)', 'clip(norm, radius)')
    """

    parameters: dict[str, str]
    build: Callable[..., stages.Stage]
    help: str
    optional: int = 0  # how many of the last parameters may be left out; they are numbers, and then 0

    def usage(self, name: str) -> str:
        """Write the stage with its parameters' names."""
        return f"{name}({', '.join(self.parameters)})" if self.parameters else name


_WORDS = {"norm": tuple(stages.NORMS), "kind": ("tanh", "sigmoid")}
_KINDS = dict.fromkeys(_WORDS, "word") | dict.fromkeys(("k", "integer", "fraction", "hashes", "times"), "whole")


def _form(names: str, build: Callable[..., stages.Stage], text: str, optional: int = 0) -> StageForm:
    return StageForm({name: _KINDS.get(name, "number") for name in names.split()}, build, text, optional)


_ONE_SIDED = "add exponential noise, never negative; none with probability zero, NaN with probability lost"
# Every stage that a text can name. Encode and decode are made from the pipeline's dimension, others from arguments.
STAGES: dict[str, StageForm] = {
    "encode": _form("", stages.Encode, "any encoder to vectors; nothing is known of what it puts out"),
    "clip": _form("norm radius", stages.Clip, "scale a vector down to this norm (l1, l2, linf) if it is longer"),
    "normalise": _form("norm", stages.Normalise, "scale a vector to l2 norm 1", optional=1),
    "minmax": _form("", stages.MinMaxScale, "shift and scale each vector so that it spans 0 to 1"),
    "squash": _form("kind", stages.Squash, "apply tanh or sigmoid to each coordinate"),
    "clamp": _form("low high", stages.Clamp, "move each coordinate to the nearest value between two limits"),
    "repeat": _form("times", stages.Repeat, "write the vector down so often; each copy gets noise of its own"),
    "category": _form("k", stages.Category, "the input is one of k categories"),
    "onehot": _form("k", stages.OneHotEncode, "write one of k categories as a vector with a single 1"),
    "hash": _form("k", stages.Hash, "hash a value, named by a whole number, to one of k categories"),
    "bloom": _form("k hashes", stages.Bloom, "write a value as a Bloom filter of k bits, so many hashes each"),
    "binary": _form("integer fraction", stages.Binary, "each coordinate in bits: sign, integer bits, fraction bits"),
    "query": _form("norm distance", stages.Query, "neighbours' answers are at most so far apart; only as first stage"),
    "rows": _form("", stages.PersonRows, "one coordinate a person: neighbours differ in one; only as first stage"),
    "dropout": _form("mu", stages.Dropout, "leave each word out with probability mu; only before all others"),
    "laplace": _form("scale", lambda scale: noise.Additive(Laplace(scale)), "add Laplace noise to each coordinate"),
    "gaussian": _form("sigma", lambda sigma: noise.Additive(Gaussian(sigma)), "add normal noise to each coordinate"),
    "onesided": _form("scale zero lost", noise.one_sided, _ONE_SIDED, optional=2),
    "leak": _form("chance", noise.leak, "show each coordinate with this probability, else nothing (NaN)"),
    "flip": _form("keep", noise.Flip, "keep each bit, or the category, with this probability"),
    "bits": _form("even odd zero", noise.BitNoise, "redraw bits: P(1→1) at even and odd positions, P(0→1)"),
    "exponential": _form("rate", noise.Choose, "name coordinate j with probability proportional to e^(rate·x_j)"),
    "round": _form("", stages.Round, "round each coordinate to the nearest whole number"),
    "decode": _form("", stages.Function, "any function; after the noise it is post-processing"),
}
_ALIASES = {"normalize": "normalise"}
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


@contextmanager
def _pointing(text: str, position: int) -> Iterator[None]:
    """Point at a place in the text if something there is refused."""
    try:
        yield
    except ExpressionError:
        raise
    except ValueError as error:
        # mpmath raises an empty ValueError where two enclosures overlap, so that neither is surely the larger.
        message = str(error) or "50 digits cannot tell this number from a limit: write it as a plain decimal"
        raise ExpressionError(message, text, position) from None


def _suggest(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


_RESERVED = {"pi", *FUNCTIONS, *STAGES, *_ALIASES, *(word for words in _WORDS.values() for word in words)}
_FLAGS = {"eps": "--epsilon", "delta": "--delta", "dim": "--dim"}
_TOKEN = re.compile(rf"(?P<space>[ \t\r\n]+)|(?P<name>{_NAME})|(?P<number>{NUMBER})|(?P<symbol>\*\*|[|(),=+\-*/^])")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # name, number, symbol or end
    text: str
    position: int


def _tokens(text: str) -> Iterator[_Token]:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the text has {len(text)} characters; at most {MAX_LENGTH} are read", text, MAX_LENGTH)
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise ExpressionError(f"unknown character {text[position]!a}", text, position)
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0].replace("**", "^"), position)
        position = match.end()
    yield _Token("end", "end of text", position)


@dataclass(frozen=True, slots=True)
class _Call:
    """A stage as it stands in the text: where it starts, and where to point if it refuses its arguments."""

    build: Callable[..., stages.Stage]
    values: list[Any]
    position: int
    fault: int


class _Parser:
    """Recursive descent. Only a parenthesis makes it recurse, so MAX_DEPTH bounds the stack."""

    def __init__(self, text: str, values: Mapping[str, Any]) -> None:
        self.text, self.values, self.used = text, values, set[str]()
        self.tokens, self.index, self.depth = list(_tokens(text)), 0, 0

    @property
    def here(self) -> _Token:
        return self.tokens[self.index]

    def take(self, *symbols: str) -> _Token | None:
        """Go on to the next token if this one is any of the symbols."""
        token = self.here
        self.index += token.text in symbols
        return token if token.text in symbols else None

    def fail(self, message: str, token: _Token | None = None) -> NoReturn:
        raise ExpressionError(message, self.text, (token or self.here).position)

    def close(self, opening: _Token, wanted: str) -> None:
        if self.here.kind == "end":
            self.fail("this '(' is never closed", opening)
        if not self.take(")"):
            hint = "" if self.here.kind == "symbol" else "; to multiply, write *"
            self.fail(f"expected {wanted}, got {self.here.text!r}{hint}")

    def pipeline(self) -> list[_Call]:
        calls = [self.stage()]
        while bar := self.take("|"):
            if self.here.kind == "end":
                self.fail("a stage is missing after this '|'", bar)
            if len(calls) == MAX_STAGES:
                self.fail(f"too many stages: a pipeline has at most {MAX_STAGES}")
            calls.append(self.stage())
        if self.here.kind != "end":
            self.fail(f"expected '|' or the end of the text, got {self.here.text!r}")
        return calls

    def stage(self) -> _Call:
        token = self.here
        if token.kind != "name":
            self.fail(f"expected a stage such as clip(l2, 1), got {token.text!r}")
        name = _ALIASES.get(token.text, token.text)
        if name not in STAGES:
            self.fail(f"unknown stage {name!r}; known: {', '.join(STAGES)}{_suggest(name, STAGES)}")
        self.index += 1
        form, opening = STAGES[name], self.take("(")
        arguments = self.arguments(name, form, opening) if opening else {}
        needed = list(form.parameters)[: len(form.parameters) - form.optional]
        if missing := [p for p in needed if p not in arguments]:
            self.fail(f"{name} needs {' and '.join(missing)}: write {form.usage(name)}", token)
        last = max((i for i, p in enumerate(form.parameters) if p in arguments), default=-1)
        values = [arguments[p][1] if p in arguments else 0 for p in list(form.parameters)[: last + 1]]
        fault = next(iter(arguments.values()))[0] if len(values) == 1 else token.position
        return _Call(form.build, values, token.position, fault)

    def arguments(self, name: str, form: StageForm, opening: _Token) -> dict[str, tuple[int, Any]]:
        found, more, named = dict[str, tuple[int, Any]](), self.here.text != ")", False
        while more:
            token, parameter = self.here, [*form.parameters, ""][len(found)]
            if token.kind == "name" and self.tokens[self.index + 1].text == "=":
                named, parameter = True, token.text
                self.index += 2
            elif named:
                self.fail(f"{name}: arguments without a name must come before those with one")
            if parameter not in form.parameters:
                what = f"parameter {parameter!r}" if named else "more arguments"
                hint = _suggest(parameter, form.parameters)
                self.fail(f"{name} takes no {what}: write {form.usage(name)}{hint}", token)
            if parameter in found:
                self.fail(f"{name}: {parameter} is given twice", token)
            found[parameter] = self.here.position, self.argument(name, parameter, form.parameters[parameter])
            more = bool(self.take(","))
        self.close(opening, "',' or ')'")
        return found

    def argument(self, name: str, parameter: str, kind: str) -> Any:
        token = self.here
        if kind == "word":
            if not self.take(*_WORDS[parameter]):
                self.fail(f"{name}: {parameter} must be one of {', '.join(_WORDS[parameter])}, got {token.text!r}")
            return token.text
        value = self.expression()
        if kind == "whole" and whole_number(value) is None:
            limit = "" if abs(value).b <= MAX_WHOLE else f" of at most {MAX_WHOLE} in size"
            self.fail(f"{name} needs a whole number{limit}, got {stages.written(value)}", token)
        return value if kind == "number" else whole_number(value)

    def operate(self, symbol: _Token, first: Number, second: Number) -> Number:
        with _pointing(self.text, symbol.position):
            return OPERATIONS[symbol.text](first, second)

    def expression(self, symbols: str = "+-") -> Number:  # a sum of products, or one product
        value = self.expression("*/") if symbols == "+-" else self.factor()
        while symbol := self.take(*symbols):
            value = self.operate(symbol, value, self.expression("*/") if symbols == "+-" else self.factor())
        return value

    def factor(self) -> Number:
        """Read signs and powers: a^b^c is a^(b^c), and -a^b is -(a^b)."""
        powers: list[tuple[int, Number, _Token | None]] = []
        while not powers or powers[-1][2]:
            sign = 1
            while symbol := self.take("+", "-"):
                sign *= -1 if symbol.text == "-" else 1
            powers.append((sign, self.atom(), self.take("^")))
        value = None
        for sign, base, symbol in reversed(powers):
            value = sign * (self.operate(symbol, base, value) if symbol else base)
        return value

    def atom(self) -> Number:
        token, opening = self.here, self.take("(")
        if not opening:
            if token.kind not in ("name", "number"):
                self.fail(f"expected a number, a name or '(', got {token.text!r}")
            self.index += 1
            opening = self.take("(") if token.kind == "name" else None
        with _pointing(self.text, token.position):
            if not opening:
                return read_number(token.text) if token.kind == "number" else self.named(token.text)
            if opening is not token and token.text not in FUNCTIONS:
                raise InputError(f"unknown function {token.text!r}; known: {', '.join(FUNCTIONS)}")
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.fail(f"nested too deeply: at most {MAX_DEPTH} parentheses inside each other", opening)
            values = [self.expression()]
            while opening is not token and self.take(","):
                values.append(self.expression())
            self.close(opening, "')'")
            self.depth -= 1
            return values[0] if opening is token else apply(token.text, *values)

    def named(self, name: str) -> Number:
        known = sorted(self.values)
        if name in self.values:
            self.used.add(name)
            return read_number(self.values[name])
        if name in _FLAGS:
            raise InputError(f"{name} comes from {_FLAGS[name]}, which was not given")
        if name in _RESERVED:
            hint = f": write {name}(...)" if name in FUNCTIONS else ""
            raise InputError(f"expected a number, got the word {name!r}{hint}")
        hint = f"give it with --set {name}=VALUE{_suggest(name, {*known, *_FLAGS})}"
        raise InputError(f"unknown name {name!r}; known: {', '.join(known)}; {hint}")


def parse(text: str, dim: int | None = None, values: Mapping[str, Any] | None = None) -> Pipeline:
    """Read a pipeline from its text, with numbers for the names in it.

    Without a dimension it must start with category, onehot or query, and its loss be the same in every dimension.

    >>> print(parse("clip(l2, C) | laplace(2*C/eps)", dim=32, values={"C": "0.5", "eps": 1}))
    clip(l2, 0.5) | laplace(1)
    >>> parse("query(l1, 1) | laplace(1/0)")
    Traceback (most recent call last):
    ...
    dpassay.errors.ExpressionError: division by zero
      query(l1, 1) | laplace(1/0)
                              ^
    """
    given = dict(values or {})
    for name in given:
        if not re.fullmatch(_NAME, name) or name in _RESERVED:
            raise InputError(f"{name!r} cannot be given a value: choose letters, digits and _ that mean nothing else")
    dims = {check_dimension(whole_number(read_number(d)) or d) for d in (dim, given.pop("dim", None)) if d is not None}
    if len(dims) > 1:
        raise InputError(f"two dimensions were given: {' and '.join(map(str, sorted(dims)))}")
    parser = _Parser(text, {"pi": +iv.pi, **given, **({"dim": min(dims)} if dims else {})})
    calls = parser.pipeline()
    if unused := sorted(set(given) - parser.used - set(_FLAGS)):
        raise InputError(f"given with --set, but never used in the pipeline: {', '.join(unused)}")
    pipeline = _assemble(text, calls, min(dims, default=1))
    if not dims and _needs_dimension(pipeline):
        raise InputError("this pipeline depends on the dimension of its vectors: say --dim N")
    return pipeline


def evaluate(text: str, values: Mapping[str, Any]) -> Number:
    """Read a formula, with numbers for the names in it.

    >>> round(float(evaluate("ln((1-mu)*exp(k*e) + mu)", {"mu": "0.5", "k": 768, "e": "0.05"}).mid), 5)
    37.70685
    """
    parser = _Parser(text, {"pi": +iv.pi, **values})
    value = parser.expression()
    if parser.here.kind != "end":
        parser.fail(f"expected the end of the formula, got {parser.here.text!r}")
    return value


def _assemble(text: str, calls: list[_Call], dim: int) -> Pipeline:
    """Make the stages and join them, pointing at the first one that is refused."""
    made: tuple[stages.Stage, ...] = ()
    for call in calls:
        with _pointing(text, call.fault):
            opaque: dict[Any, tuple[Any, ...]] = {stages.Encode: (dim,), stages.Function: (None, dim)}
            made += (call.build(*opaque.get(call.build, call.values)),)

    def refused(last: int) -> bool:
        with suppress(ValueError):
            Pipeline(made[: last + 1], dim)
            return False
        return True

    try:
        return Pipeline(made, dim)
    except ValueError:
        first = bisect_left(range(len(made) - 1), True, key=refused)
        with _pointing(text, calls[first].position):
            raise


def _needs_dimension(pipeline: Pipeline) -> bool:
    """Whether a pipeline, read in dimension 1, may lose another amount in another dimension; yes if in doubt."""
    first, positions, outputs = pipeline.stages[0], pipeline.noise_positions, pipeline.output_regions()
    if isinstance(first, stages.Category | stages.OneHotEncode | stages.Hash | stages.Bloom):
        before = pipeline.stages[: max(pipeline.noise_positions, default=0)]
        return any(isinstance(stage, stages.Encode | stages.Function) for stage in before)
    if not isinstance(first, stages.Query) or any(isinstance(stage, stages.MinMaxScale) for stage in pipeline.stages):
        return True
    # Laplace noise measures shifts in l1, Gaussian in l2. The lq diameter of an lp ball is free of the dimension
    # if p ≤ q. Noise after noise may be counted as if it had come first, so every noise must suit every region.
    noises = [getattr(pipeline.stages[i], "noise", None) for i in positions]
    regions = [getattr(outputs[i].region, "region", outputs[i].region) for i in positions]  # repeated or not
    q = min((1 if isinstance(n, Laplace) else 2 if isinstance(n, Gaussian) else 0 for n in noises), default=0)
    p = max((1 if isinstance(r, Everything) else getattr(r, "p", float("inf")) for r in regions), default=float("inf"))
    return bool(p > q)
