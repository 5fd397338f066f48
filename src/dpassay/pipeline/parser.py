"""The text form of a pipeline, such as `clip(l2, C) | laplace(2*C/eps)`: parsed, never evaluated as code.

Numbers are enclosed to 50 digits. An error in the text is an ExpressionError that points at the character.
"""

import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NoReturn

from dpassay.core.functions.normal import gaussian_sigma
from dpassay.core.guarantee import make_guarantee
from dpassay.core.known import quotient, remembered, square_root
from dpassay.core.numbers import INFINITY, PI, Number, exp, log, middle, number
from dpassay.errors import ExpressionError, InputError, did_you_mean
from dpassay.pipeline.pipeline import MAX_STAGES, Pipeline
from dpassay.pipeline.regions import Counted, Everything, Repeated, Rounded, Squashed, check_dimension, check_positive
from dpassay.pipeline.stages.base import STAGES, Stage
from dpassay.pipeline.syntax import Parameter, Syntax, written
from dpassay.values import dataclass

MAX_LENGTH, MAX_DEPTH = 10_000, 100  # characters; nested parentheses
MAX_DIGITS, MAX_EXPONENT = 1000, 10_000  # of one number as it is written
MAX_LOG, MAX_WHOLE = 10**7, 2**53  # of results of exp and ^; of integers and exponents
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


def read_number(value: Any) -> Number:
    """Read a number: a literal of the text, or the value given for a name."""
    if isinstance(value, str):
        value, shown = value.strip(), value if len(value) <= 40 else value[:37] + "..."
        if not re.fullmatch(f"[+-]?{NUMBER}", value):
            raise InputError(f"expected a number such as 2, 0.5 or 1e-6, got {shown!r}")
        if len(value) > MAX_DIGITS:
            raise InputError(f"the number {shown} is {len(value)} characters long; at most {MAX_DIGITS} are read")
        if abs(int(value.lower().partition("e")[2] or 0)) > MAX_EXPONENT:
            raise InputError(f"the exponent of {shown} is too large: the limit is {MAX_EXPONENT}, up and down")
    if value != value:
        raise InputError("expected a number, got NaN")
    enclosed = number(value)
    if not (enclosed.a > -INFINITY and enclosed.b < INFINITY):
        raise InputError(f"expected a finite number, got {written(enclosed)}")
    return enclosed


def whole_number(value: Number) -> int | None:
    """A number as an integer; None if it is not one, or not known to be one."""
    if not (abs(value).b <= MAX_WHOLE and value.delta == 0):
        return None
    nearest = round(middle(value))
    return nearest if nearest == value else None


# The ends of an enclosure are compared, never the whole: an undecided comparison must count as "not certain".
def _divide(first: Number, second: Number) -> Number:
    if 0 in second:
        raise InputError("division by zero" if second == 0 else "division by a number that may be zero")
    return quotient(first, second)


def _power(base: Number, exponent: Number) -> Number:
    size = abs(base).b if 0 in base else abs(base)
    if not abs(exponent).b <= MAX_WHOLE or (size != 0 and not abs(exponent * log(size)).b <= MAX_LOG):
        raise InputError(f"too large: the result's natural logarithm may be at most {MAX_LOG} in size")
    if base.a < 0 and (exponent.delta != 0 or whole_number(exponent) is None):
        raise InputError("a base that may be negative needs a whole exponent")
    if 0 in base and exponent != 0 and not exponent.a > 0:
        raise InputError("a base that may be zero needs an exponent that is certainly positive")
    return base**exponent


def apply(name: str, *values: Number) -> Number:
    """Call a function of the text by its name.

    >>> round(float(apply("least_sigma", number(10), number("1e-5"), number(1)).mid), 5)
    0.49989
    """
    value = values[0]
    if name == "least_sigma":
        if len(values) != 3:
            raise InputError(f"least_sigma takes epsilon, delta and the l2 distance, got {len(values)} numbers")
        sigma = gaussian_sigma(make_guarantee(*values[:2]), check_positive(values[2], "l2 distance"))
        return remembered(sigma, name, *values)
    if len(values) != 1:
        raise InputError(f"{name} takes one number, got {len(values)}")
    if name == "exp" and not abs(value).b <= MAX_LOG:
        raise InputError(f"too large: exp takes numbers of at most {MAX_LOG} in size")
    if name != "exp" and not (value.a > 0 or (name == "sqrt" and value.a == 0)):
        allowed = "0 or more" if name == "sqrt" else "positive"
        raise InputError(f"{name} needs a number that is certainly {allowed}, got {written(value)}")
    return remembered(FUNCTIONS[name](value), name, value)


FUNCTIONS: dict[str, Any] = {"exp": exp, "ln": log, "sqrt": square_root, "least_sigma": gaussian_sigma}
_PI = remembered(+PI, "pi")
OPERATIONS: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "^": _power}
_ALIASES = {"normalize": "normalise"}
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


@contextmanager
def _pointing(text: str, position: int) -> Iterator[None]:
    """Point at a place in the text if something there is invalid."""
    try:
        yield
    except ExpressionError:
        raise
    except ValueError as error:
        # mpmath raises an empty ValueError if two enclosures overlap, so that neither is certainly larger.
        message = str(error) or "this number cannot be distinguished from a limit: write it as a plain decimal"
        raise ExpressionError(message, text, position) from None


def _reserved() -> set[str]:
    """Words that have a meaning in a text."""
    parameters = [parameter for form in STAGES.values() for parameter in form.syntax.parameters.values()]
    return {"pi", *FUNCTIONS, *STAGES, *_ALIASES, *(word for parameter in parameters for word in parameter.words)}


_CLAIMED = {"eps": "epsilon=1", "delta": "delta=VALUE", "dim": "dim=N"}
# How the names and signs of papers are written here.
_SPELLED = {"ε": "eps", "δ": "delta", "π": "pi", "√": "sqrt(…)", "×": "*", "·": "*", "÷": "/", "−": "-", "｜": "|"}
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
            instead = _SPELLED.get(text[position])
            hint = f"; write {instead}" if instead else ""
            raise ExpressionError(f"unknown character {text[position]!a}{hint}", text, position)
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0].replace("**", "^"), position)
        position = match.end()
    yield _Token("end", "end of text", position)


@dataclass(frozen=True, slots=True)
class _Call:
    """A stage as written in the text: where it starts, and where to point if it refuses its arguments."""

    build: Callable[..., Stage]
    values: list[Any]
    position: int
    fault: int


class _Parser:
    """Recursive descent. It recurses only at parentheses, so MAX_DEPTH bounds the stack."""

    def __init__(self, text: str, values: Mapping[str, Any]) -> None:
        self.text, self.values, self.used = text, values, set[str]()
        self.tokens, self.index, self.depth = list(_tokens(text)), 0, 0

    @property
    def here(self) -> _Token:
        return self.tokens[self.index]

    def take(self, *symbols: str) -> _Token | None:
        """Move to the next token if this one is any of the symbols."""
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
            self.fail(f"unknown stage {name!r}{did_you_mean(name, STAGES) or ';'} 'dpassay check --stages' lists all")
        self.index += 1
        (syntax, build), opening = STAGES[name], self.take("(")
        given = self.arguments(syntax, opening) if opening else {}
        arguments = syntax.arguments
        if missing := [p for p, parameter in arguments.items() if p not in given and parameter.default is None]:
            self.fail(f"{name} needs {' and '.join(missing)}: write {syntax.usage}", token)
        values = [given[p][1] if p in given else parameter.default for p, parameter in arguments.items()]
        fault = next(iter(given.values()))[0] if len(given) == 1 else token.position
        return _Call(build, values, token.position, fault)

    def arguments(self, syntax: Syntax, opening: _Token) -> dict[str, tuple[int, Any]]:
        name, known = syntax.name, syntax.arguments
        found, more, named = dict[str, tuple[int, Any]](), self.here.text != ")", False
        while more:
            token, parameter = self.here, [*known, ""][len(found)]
            if token.kind == "name" and self.tokens[self.index + 1].text == "=":
                named, parameter = True, token.text
                self.index += 2
            elif named:
                self.fail(f"{name}: arguments without a name must come before those with one")
            if parameter not in known:
                what = f"parameter {parameter!r}" if named else "more arguments"
                hint = did_you_mean(parameter, known)
                self.fail(f"{name} takes no {what}: write {syntax.usage}{hint}", token)
            if parameter in found:
                self.fail(f"{name}: {parameter} is given twice", token)
            found[parameter] = self.here.position, self.argument(name, parameter, known[parameter])
            more = bool(self.take(","))
        self.close(opening, "',' or ')'")
        return found

    def argument(self, name: str, parameter: str, kind: Parameter) -> Any:
        token = self.here
        if kind.words:
            if not self.take(*kind.words):
                self.fail(f"{name}: {parameter} must be one of {', '.join(kind.words)}, got {token.text!r}")
            return token.text
        value = self.expression()
        if kind.kind == "number":
            return value
        whole = whole_number(value)
        if whole is None:
            limit = "" if abs(value).b <= MAX_WHOLE else f" of at most {MAX_WHOLE} in size"
            self.fail(f"{name} needs a whole number{limit}, got {written(value)}", token)
        return whole

    def operate(self, symbol: _Token, first: Number, second: Number) -> Number:
        with _pointing(self.text, symbol.position):
            found: Number = OPERATIONS[symbol.text](first, second)
        return found

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
        sign, value, _ = powers.pop()
        value = sign * value
        for sign, base, symbol in reversed(powers):
            assert symbol
            value = sign * self.operate(symbol, base, value)
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
                self.fail(f"nested too deeply: at most {MAX_DEPTH} nested parentheses", opening)
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
        if name in _CLAIMED:
            raise InputError(f"{name} was not given: pass {_CLAIMED[name]}")
        if name in _reserved():
            hint = f": write {name}(...)" if name in FUNCTIONS else ""
            raise InputError(f"expected a number, got the word {name!r}{hint}")
        hint = f"pass parameters={{'{name}': VALUE}}{did_you_mean(name, {*known, *_CLAIMED})}"
        raise InputError(f"unknown name {name!r}; known: {', '.join(known)}; {hint}")


def parse(text: str, dim: int | None = None, values: Mapping[str, Any] | None = None) -> Pipeline:
    """Read a pipeline from its text, with values for the names in it.

    Without a dimension it must start with category, onehot or query, and its loss must be the same in every dimension.

    >>> print(parse("clip(l2, C) | laplace(2*C/eps)", dim=32, values={"C": "0.5", "eps": 1}))
    clip(l2, 0.5) | laplace(1)
    >>> parse("query(l1, 1) | laplace(1/0)")
    Traceback (most recent call last):
    ...
    dpassay.errors.ExpressionError: division by zero
      query(l1, 1) | laplace(1/0)
                              ^
    """
    given, reserved = dict(values or {}), _reserved()
    for name in given:
        if not re.fullmatch(_NAME, name) or name in reserved:
            raise InputError(f"{name!r} cannot name a parameter: use letters, digits and _, and no reserved name")
    dims = {check_dimension(whole_number(read_number(d)) or d) for d in (dim, given.pop("dim", None)) if d is not None}
    if len(dims) > 1:
        raise InputError(f"two dimensions were given: {' and '.join(map(str, sorted(dims)))}")
    parser = _Parser(text, {"pi": _PI, **given, **({"dim": min(dims)} if dims else {})})
    calls = parser.pipeline()
    if unused := sorted(set(given) - parser.used - set(_CLAIMED)):
        near = did_you_mean(unused[0], _CLAIMED)
        raise InputError(f"given as parameters, but never used in the pipeline: {', '.join(unused)}{near}")
    pipeline = _assemble(text, calls, min(dims, default=1))
    if not dims and _needs_dimension(pipeline):
        raise InputError("this pipeline depends on the dimension of its vectors: pass dim=N")
    return pipeline


def evaluate(text: str, values: Mapping[str, Any]) -> Number:
    """Read a formula, with values for the names in it.

    >>> round(float(evaluate("ln((1-mu)*exp(k*e) + mu)", {"mu": "0.5", "k": 768, "e": "0.05"}).mid), 5)
    37.70685
    """
    parser = _Parser(text, {"pi": _PI, **values})
    value = parser.expression()
    if parser.here.kind != "end":
        parser.fail(f"expected the end of the formula, got {parser.here.text!r}")
    return value


def _assemble(text: str, calls: list[_Call], dim: int) -> Pipeline:
    """Make the stages and join them, pointing at the first one that is refused."""
    made: tuple[Stage, ...] = ()
    for call in calls:
        with _pointing(text, call.fault):
            stage: Any = call.build(*call.values)
            made += (replace(stage, dim=dim) if stage.opaque else stage,)

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
    """Whether a pipeline, read in dimension 1, may have a different loss in another dimension; yes if in doubt."""
    first, positions, outputs = pipeline.stages[0], pipeline.noise_positions, pipeline.output_regions()
    if first.takes_one_value:
        return any(stage.opaque for stage in pipeline.stages[: max(positions, default=0)])
    if not first.neighbours or any(stage.depends_on_dimension for stage in pipeline.stages):
        return True
    # Laplace noise measures shifts in l1, Gaussian in l2. The lq diameter of an lp ball does not depend on the
    # dimension if p ≤ q. Noise after noise may be counted as if it had come first, so every noise must suit every
    # region.
    noises = [getattr(pipeline.stages[i], "noise", None) for i in positions]
    places = [outputs[i].region for i in positions]
    regions = [place.region if isinstance(place, Repeated) else place for place in places]
    q = min((getattr(noise, "norm", 0) for noise in noises), default=0)
    p = max((1 if isinstance(r, Everything) else getattr(r, "p", float("inf")) for r in regions), default=float("inf"))
    return bool(p > q) or any(isinstance(r, Squashed | Rounded) and not isinstance(r, Counted) for r in regions)
