"""The oracle's own reader of pipeline texts: names and numbers, without dpassay's parser.

Numbers are rewritten as calls and the rest is read by Python's own parser, whose `**`, signs and parentheses mean the
same; what the tree holds beyond sums, products, powers, calls and names is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mpmath import mp, mpf

from oracles import gaussian_delta

_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<other>\s+|.)"
)
WORDS = ("l1", "l2", "linf", "tanh", "sigmoid")
NOISE_WORDS = ("laplace", "exponential", "gumbel")
ARGUMENTS = {
    "encode": (),
    "decode": (),
    "round": (),
    "rows": (),
    "minmax": (),
    "normalise": ("norm",),
    "clip": ("norm", "radius"),
    "squash": ("kind",),
    "clamp": ("low", "high"),
    "repeat": ("times",),
    "category": ("k",),
    "onehot": ("k",),
    "hash": ("k",),
    "bloom": ("k", "hashes"),
    "binary": ("integer", "fraction"),
    "query": ("norm", "distance"),
    "counts": ("norm", "distance"),
    "dropout": ("mu",),
    "poisson": ("rate",),
    "subsample": ("m", "n"),
    "shuffle": ("batches",),
    "times": ("steps",),
    "topk": ("k",),
    "laplace": ("scale",),
    "gaussian": ("sigma",),
    "radial": ("norm", "scale"),
    "onesided": ("scale", "zero", "lost"),
    "leak": ("chance",),
    "flip": ("keep",),
    "bits": ("even", "odd", "zero"),
    "exponential": ("rate",),
    "softmax": ("temperature",),
    "noisymax": ("noise", "scale"),
    "mahalanobis": ("scale", "least", "largest"),
    "vmf": ("kappa",),
    "purkayastha": ("kappa",),
    "discrete_laplace": ("scale",),
    "discrete_gaussian": ("sigma",),
    "truncated_laplace": ("scale", "bound"),
    "bounded_laplace": ("scale", "low", "high"),
    "staircase": ("epsilon", "sensitivity", "gamma"),
}
# Under this key, which is no name, comes the factor by which least_sigma is rounded up: it is a double that suffices.
ROUNDED_UP = "least_sigma, rounded up"
DEFAULTS = {"norm": "l2", "zero": mpf(0), "lost": mpf(0)}


class Unreadable(ValueError):
    """A text that this reader makes nothing of."""


@dataclass(frozen=True)
class Stage:
    """A stage's name with its arguments, numbers in mpmath."""

    name: str
    given: Mapping[str, object]

    def __getattr__(self, key: str) -> object:
        try:
            return self.given[key]
        except KeyError:
            raise AttributeError(key) from None


def least_sigma(epsilon: mpf, delta: mpf, distance: mpf) -> mpf:
    """The least σ at which Gaussian noise hides this distance at (ε, δ), by bisection of Balle and Wang's formula."""
    low, high = mpf(0), distance * (mp.sqrt(2 * mp.log(mpf(5) / (4 * delta))) + 1) / min(mpf(1), epsilon or delta) * 2
    for _ in range(int(mp.prec) + 30):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(distance / middle, epsilon) > delta else (low, middle)
    return high


FUNCTIONS: dict[str, Callable[..., mpf]] = {"sqrt": mp.sqrt, "ln": mp.log, "exp": mp.exp, "least_sigma": least_sigma}


def _tree(text: str) -> ast.expr:
    parts = []
    for match in _TOKEN.finditer(text):
        if match["number"]:
            parts.append(f'_("{match[0]}")')
        else:
            parts.append("**" if match[0] == "^" else match[0])
    try:
        return ast.parse("".join(parts).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Unreadable(f"{text!r}: {error}") from None


def _value(node: ast.expr, values: Mapping[str, mpf]) -> mpf:
    if isinstance(node, ast.BinOp):
        a, b = _value(node.left, values), _value(node.right, values)
        if isinstance(node.op, ast.Pow) and abs(b) < 10**6:
            return a**b
        pairs = {ast.Add: a.__add__, ast.Sub: a.__sub__, ast.Mult: a.__mul__, ast.Div: a.__truediv__}
        if type(node.op) in pairs:
            return pairs[type(node.op)](b)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return -_value(node.operand, values) if isinstance(node.op, ast.USub) else _value(node.operand, values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id == "_" and isinstance(node.args[0], ast.Constant):
            return mpf(str(node.args[0].value))
        if node.func.id in FUNCTIONS:
            found = FUNCTIONS[node.func.id](*(_value(arg, values) for arg in node.args))
            return found * values.get(ROUNDED_UP, 1) if node.func.id == "least_sigma" else found
    if isinstance(node, ast.Name) and (node.id in values or node.id == "pi"):
        return +mp.pi if node.id == "pi" else values[node.id]
    raise Unreadable(ast.dump(node)[:80])


def formula(text: str, values: Mapping[str, mpf]) -> mpf:
    """Read a formula such as `2*C/eps`, at the working precision."""
    try:
        value = _value(_tree(text), values)
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise Unreadable(f"{text!r}: {error}") from None
    if not isinstance(value, mpf) or not mp.isfinite(value):
        raise Unreadable(f"{text!r} is not a real number")
    return value


def _stage(text: str, values: Mapping[str, mpf]) -> Stage:
    node = _tree(text)
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    name = getattr(call.func, "id", "").replace("normalize", "normalise")
    if name not in ARGUMENTS or len(call.args) > len(ARGUMENTS[name]):
        raise Unreadable(f"no such stage: {text!r}")
    nodes = dict(zip(ARGUMENTS[name], call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    given: dict[str, object] = {}
    for key in ARGUMENTS[name]:
        node = nodes.pop(key, None)
        if node is None and (key not in DEFAULTS or name in ("clip", "query", "counts", "radial")):
            raise Unreadable(f"{name} needs {key}")
        words = {"norm": WORDS, "kind": WORDS, "noise": NOISE_WORDS}.get(key, ())
        word = isinstance(node, ast.Name) and node.id in words
        if key == "noise" and not word:
            raise Unreadable(f"{name} knows no such noise")
        given[key] = DEFAULTS[key] if node is None else node.id if word else _value(node, values)  # type: ignore[union-attr]
    if nodes:
        raise Unreadable(f"{name} takes no {', '.join(nodes)}")
    if name == "softmax":
        return Stage("exponential", {"rate": 1 / given["temperature"]})  # type: ignore[operator]
    if name == "noisymax" and given["noise"] == "gumbel":  # the difference of two Gumbel noises is logistic
        return Stage("exponential", {"rate": 1 / given["scale"]})  # type: ignore[operator]
    if name == "counts":
        return Stage("query", {**given, "whole": True})
    return Stage(name, given)


def stages(text: str, values: Mapping[str, mpf]) -> list[Stage]:
    """Read a whole pipeline.

    >>> [s.name for s in stages("clip(l2, C) | laplace(2*C/eps)", {"C": mpf(1), "eps": mpf(1)})]
    ['clip', 'laplace']
    """
    try:
        return [_stage(part, values) for part in text.split("|")]
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise Unreadable(f"{text!r}: {error}") from None
