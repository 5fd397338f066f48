"""The names of one call, and small questions about parameters and blocks."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dpassay.scan.reading.index import Class, FunctionSource, Module
from dpassay.scan.reading.values import ARRAY, NOTHING, SCALAR, Value, joined

ARRAY_WORDS = ("ndarray", "array", "tensor", "series", "dataframe", "list", "sequence", "iterable", "arraylike")
NUMBER_WORDS = ("float", "int", "bool")


@dataclass
class Frame:
    """The names of one call."""

    function: FunctionSource | None
    module: Module
    names: dict[str, Value]
    attributes: dict[str, Value] | None = None  # of self
    owner: Class | None = None
    returned: list[Value] = field(default_factory=list)


def tiny(value: object) -> bool:
    """A number so small that it guards against division by zero."""
    return isinstance(value, float) and 0 <= value < 1e-3


def shape_of(annotation: str, name: str) -> frozenset[str]:
    """What an annotation says about the shape."""
    if any(word in annotation for word in ARRAY_WORDS):
        return frozenset({ARRAY}) if "union" not in annotation and "|" not in annotation else frozenset()
    if annotation in NUMBER_WORDS:
        return frozenset({SCALAR})
    return frozenset()


def is_plain(annotation: str) -> bool:
    """Whether an annotation is that of a setting rather than of data."""
    return annotation in ("int", "bool", "str", "float", "callable") or "callable" in annotation


def loaded(node: ast.expr) -> ast.expr:
    """A target as an expression to read."""
    copy = type(node)(**{name: getattr(node, name) for name in node._fields})
    copy.ctx = ast.Load()  # type: ignore[attr-defined]
    return ast.copy_location(copy, node)


def merged(ends: list[dict[str, Value]]) -> dict[str, Value]:
    """The names after branches have met."""
    if len(ends) == 1:
        return ends[0]
    return {
        name: joined([one.get(name, NOTHING) for one in ends if name in one]) for name in {k for e in ends for k in e}
    }


def returns(body: list[ast.stmt]) -> bool:
    """Whether a block ends by returning."""
    return bool(body) and isinstance(body[-1], ast.Return)


def warns(body: list[ast.stmt]) -> bool:
    """Whether a block warns its user that privacy is lost."""
    for one in body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            said = ast.unparse(one.value).lower()
            if "warn" in said.partition("(")[0] and ("priva" in said or "leak" in said):
                return True
    return False
