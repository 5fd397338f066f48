"""Arguments for a function that nobody described: from the names, annotations and defaults of its parameters."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dpassay.scan.reading.index import Class, FunctionSource, Index
from dpassay.scan.reading.names import is_configuration, is_data, is_generator, role_of

# Not 1: a scale of ε for 1/ε, or without a sensitivity, would be right by chance. Below 1: the classic formula holds.
EPSILON, DELTA, SENSITIVITY = 0.5, 1e-5, 2.0
TWO_STEPS = 2.7e-5  # at least (1 + e^ε)·δ: two steps of (ε, δ)-DP are (2ε, (1 + e^ε)·δ)-DP
VALUES = {
    "epsilon": str(EPSILON),
    "delta": str(DELTA),
    "sensitivity": str(SENSITIVITY),
    "clip": str(SENSITIVITY),
    "count": "4",
    "dimension": "4",
    "seed": "None",
}
BOUNDS = {"bounds": "(0.0, 2.0)", "low": "0.0", "min": "0.0", "up": "2.0", "high": "2.0", "max": "2.0", "cap": "2.0"}
TEXTS = ("word", "text", "token", "sentence", "document")


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of input: how the program converts it from JSON, and two neighbors; `whole` if they are one value."""

    name: str
    code: str
    first: object
    second: object
    whole: bool = False


# The two inputs of a form differ in one entry, by at most 2: neighbors for a sensitivity of 2 and bounds from 0 to 2.
# For a sensitivity of 1, which code without a parameter for it assumes, they are two steps apart: 2ε covers them.
FORMS = {
    "number": InputKind("number", "float(x)", 0.0, 2.0, True),
    "array": InputKind("array", "np.array(x, dtype=float)", [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]),
    "integers": InputKind("integers", "np.array(x, dtype=int)", [0, 1, 1, 0], [1, 1, 1, 0]),
    "list": InputKind("list", "list(x)", [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]),
    "series": InputKind("series", "__import__('pandas').Series(x)", [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]),
    "tensor": InputKind("tensor", "__import__('torch').tensor(x)", [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]),
    "bit": InputKind("bit", "int(x)", 0, 1, True),
    "text": InputKind("text", "str(x)", "paris", "london", True),
}


# Two vectors of l2 norm 2 that are far apart in l1: what shows Laplace noise for an l2 ball.
DIAGONAL = InputKind("array", "np.array(x, dtype=float)", [0.5] * 16, [-0.5] * 16)


@dataclass(frozen=True, slots=True)
class ArgumentCall:
    """How a mechanism is called: the text of the call with `x` for the data, the forms to try, and what is claimed."""

    imports: str
    setup: str
    call: str
    forms: tuple[InputKind, ...]
    delta: float
    exact: bool  # whether the pair is certainly covered by the claim at ε; otherwise at 2ε, as for a replaced record


def call_of(index: Index, function: FunctionSource) -> ArgumentCall | str:
    """How to call a function or method, or why that is not known."""
    owner = function.owner
    if function.name.startswith("__") and function.name != "__call__":
        return "it is called by Python itself"
    if isinstance(function.node, ast.AsyncFunctionDef):
        return "it is asynchronous"
    constructor = index.method(owner, "__init__") if owner is not None else None
    parameters = [*function.parameters, *(constructor.parameters if constructor is not None else [])]
    names = [arg.arg for arg, _ in parameters]
    if not any(role_of(name) == "epsilon" for name in names):
        return "no parameter carries ε, so nothing is claimed"
    own = _arguments(function, data=True)
    if isinstance(own, str):
        return own
    words, datum = own
    if datum is None:
        return "no parameter is known to hold the data"
    setup, target = "", function.name
    if owner is not None and "staticmethod" not in function.decorators:
        built = _built(owner, constructor)
        if built is None:
            return f"how to build {owner.name} is not known"
        setup, target = f"subject = {built}", f"subject.{function.name}"
    elif owner is not None:
        target = f"{owner.name}.{function.name}"
    imported = owner.name if owner is not None else function.name
    roles = {role_of(name) for name in names}
    exact = bool(roles & {"sensitivity"})
    forms = _forms(datum)
    if forms[0].name == "text" and _is_metric(function):
        return "its ε is multiplied by a distance between texts, which is not known"
    delta = 0.0 if "delta" not in roles else DELTA if exact else TWO_STEPS
    text = f"from {function.module.name} import {imported}"
    return ArgumentCall(text, setup, f"{target}({', '.join(words)})", forms, delta, exact)


def _is_metric(function: FunctionSource) -> bool:
    """Whether the claim is that of metric DP, by its documentation or by noise whose length is a gamma number."""
    said = f"{function.documentation} {function.module.claim}".lower()
    return re.search(r"\bmetric|distance|d_?χ|d_?chi|mldp", said) is not None or "gamma(" in function.text


def _built(owner: Class, constructor: FunctionSource | None) -> str | None:
    if constructor is None:
        return None if owner.fields else f"{owner.name}()"
    made = _arguments(constructor, data=False)
    return None if isinstance(made, str) else f"{owner.name}({', '.join(made[0])})"


def _arguments(function: FunctionSource, data: bool) -> tuple[list[str], ast.arg | None] | str:
    """The arguments of a call as text, and the parameter that holds the data."""
    words: list[str] = []
    datum: ast.arg | None = None
    starred = {one.arg for one in (function.node.args.vararg, function.node.args.kwarg) if one is not None}
    for arg, default in function.parameters:
        name = arg.arg
        if name in ("self", "cls") or name in starred:
            continue
        role = role_of(name)
        value = VALUES.get(role) or (_bound(name) if role == "bound" else None)
        if data and datum is None and default is None and (is_data(name) or not is_configuration(name)):
            datum = arg
            words.append(f"{name}=x")
        elif value is not None and (
            role in ("epsilon", "delta", "sensitivity") or default is None or _is_none(default)
        ):
            if not (role == "seed" and default is not None):
                words.append(f"{name}={value}")
        elif default is None and is_generator(name):
            words.append(f"{name}=np.random.default_rng()")
        elif default is None:
            return f"what to give its parameter {name!r} is not known"
    return words, datum


def _is_none(node: ast.expr) -> bool:
    """Whether a default is None, which often means: take it from the data."""
    return isinstance(node, ast.Constant) and node.value is None


def _bound(name: str) -> str:
    return next((value for word, value in BOUNDS.items() if word in name.lower()), "2.0")


def _forms(datum: ast.arg) -> tuple[InputKind, ...]:
    """The forms to try, the likeliest first."""
    annotation = ast.unparse(datum.annotation).lower() if datum.annotation is not None else ""
    name = datum.arg.lower()
    likely = [
        *(["text"] if any(word in name for word in TEXTS) or annotation == "str" else []),
        *(["number"] if annotation in ("float", "int") or name in ("value", "count", "age", "x", "number") else []),
        *(["tensor"] if "tensor" in annotation else []),
        *(["series"] if "series" in annotation else []),
        *(["bit"] if "bit" in name else []),
    ]
    if likely == ["text"]:
        return (FORMS["text"],)
    rest = ["array", "integers", "list", "number", "tensor", "series", "bit"]
    return tuple(FORMS[one] for one in dict.fromkeys([*likely, *rest]))
