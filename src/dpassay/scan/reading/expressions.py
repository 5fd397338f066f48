"""Expressions: names followed to what they refer to, calls to the functions of the package, draws to their scale."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dpassay.scan.reading.arithmetic import is_noise
from dpassay.scan.reading.calls import function_of
from dpassay.scan.reading.index import Class, FunctionSource, Index, Module, dotted
from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.terms import Term
from dpassay.scan.reading.values import (
    ARRAY,
    CONSTANT,
    COUNT,
    DISTINCT,
    GENERATOR,
    INDICATOR,
    INPUT,
    NOISE,
    NOISY,
    NORM1,
    NORM2,
    OF_DATA,
    OF_NORM,
    OF_NORM1,
    RAW,
    SHAPES,
    SIZE,
    Log,
    Value,
    combined,
    joined,
    of_number,
    of_role,
)

if TYPE_CHECKING:
    from dpassay.scan.reading.frames import Frame

DEEPEST = 4
MOST_ITEMS = 40
TRANSPARENT = {"T", "values", "data", "real", "grad", "iloc", "loc", "at", "iat", "array"}


class Expressions:
    """The part of a walk that reads expressions."""

    index: Index
    log: Log
    chain: tuple[FunctionSource, ...]
    steps: int

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """What is known of an expression."""
        handler = getattr(self, f"of_{type(node).__name__.lower()}", None)
        if handler is not None:
            found: Value = handler(node, frame)
            return found
        parts = [self.value(one, frame) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return combined(parts)

    def of_constant(self, node: ast.Constant, frame: Frame) -> Value:
        """A number or a text."""
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return of_number(node.value)
        return Value(marks=frozenset({CONSTANT}) if node.value is not None else frozenset(), text=str(node.value)[:40])

    def of_name(self, node: ast.Name, frame: Frame) -> Value:
        """A local name, or what the module defines or imports."""
        if node.id in frame.names:
            return frame.names[node.id]
        return self.global_name(node.id, frame)

    def global_name(self, name: str, frame: Frame) -> Value:
        """A name of the module."""
        found = self.index.resolve(frame.module, name)
        if isinstance(found, ast.expr):
            if self.steps > 2_500:
                return of_role(role_of(name), name)
            self.steps += 3
            value = self.at_definition(found, frame.module)  # type: ignore[attr-defined]
            return value if value.terms or value.marks else of_role(role_of(name), name)
        if isinstance(found, str):
            known = "." in found or name in frame.module.imports
            return Value(refers=found) if known else replace(of_role(role_of(name), name), refers=found)
        return Value(refers=found)

    def of_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        """An attribute: of self, of a module, of an object that the package built, or of anything else."""
        base = self.value(node.value, frame)
        refers = base.refers
        if refers == "self" and frame.attributes is not None:
            return self.own_attribute(node.attr, frame)
        if isinstance(refers, dict) and node.attr in refers:
            found: Value = refers[node.attr]
            return found
        if isinstance(refers, dict) and isinstance(refers.get("«class»"), Class):
            owner = refers["«class»"]
            method = self.index.method(owner, node.attr)
            if method is not None and "property" in method.decorators and len(self.chain) < DEEPEST:
                return self.call_own(method, [Value(refers="self")], {}, refers, owner)
        if isinstance(refers, Module | Class) or (isinstance(refers, str) and refers not in ("self", "required")):
            name = dotted(node)
            found_there = self.index._member(refers, node.attr, 0)
            if isinstance(found_there, ast.expr):
                return self.value(found_there, module_frame(frame.module))
            if found_there:
                return Value(refers=found_there)
            return of_role(role_of(name), node.attr)
        if node.attr in ("shape", "size", "ndim"):
            return function_of("shape", [], base)
        if node.attr in TRANSPARENT or (base.has(RAW, NOISY, NOISE) and not role_of(node.attr)):
            return replace(base, refers=None, terms=base.terms if node.attr in TRANSPARENT else ())
        return of_role(role_of(node.attr), f"{dotted(node.value)}.{node.attr}".lstrip("."))

    def own_attribute(self, name: str, frame: Frame) -> Value:
        """self.name."""
        attributes = frame.attributes or {}
        if name in attributes:
            found = attributes[name]
            return replace(found, leaves=found.leaves | {f"self.{name}"})
        method = self.index.method(frame.owner, name) if frame.owner is not None else None
        if method is not None and "property" in method.decorators and len(self.chain) < DEEPEST:
            return self.call_own(method, [Value(refers="self")], {}, frame.attributes, frame.owner)
        if method is not None:
            return Value(refers=method)
        return of_role(role_of(name), f"self.{name}")

    def of_binop(self, node: ast.BinOp, frame: Frame) -> Value:
        """Arithmetic."""
        return self.operation(node.op, self.value(node.left, frame), self.value(node.right, frame), node, frame)

    def operation(self, op: ast.operator, a: Value, b: Value, node: ast.AST, frame: Frame) -> Value:
        """A binary operation."""
        raise NotImplementedError

    def call_own(
        self,
        function: FunctionSource,
        args: list[Value],
        words: dict[str, Value],
        attributes: dict[str, Value] | None,
        owner: Class | None,
        around: dict[str, Value] | None = None,
    ) -> Value:
        """A call of a function of the package."""
        raise NotImplementedError

    def of_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        """A sign, or a negation."""
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.USub):
            if is_noise(value):
                return value
            return replace(value, terms=tuple(one.times(Term(-1.0)) for one in value.terms))
        return combined([value])

    def of_compare(self, node: ast.Compare, frame: Frame) -> Value:
        """A comparison depends on both sides; one with None or a text is about the configuration."""
        sides = [self.value(one, frame) for one in (node.left, *node.comparators)]
        made = combined(sides)
        known = any(one.has(INPUT) or not one.has(RAW) for one in sides[:1])
        if known and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return made.marked(without=OF_DATA)
        return made.marked(INDICATOR)

    def of_ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        """One of two values."""
        test = self.value(node.test, frame)
        arms = [self.value(node.body, frame), self.value(node.orelse, frame)]
        if not test.has(OF_NORM, OF_NORM1):
            return joined(arms)
        return joined(arms).marked(*({NORM1, NORM2} & (arms[0].marks | arms[1].marks)))  # x if norm < c else x*c/norm

    def of_boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        """`a or b` gives one of them."""
        return joined([self.value(one, frame) for one in node.values])

    def of_tuple(self, node: ast.Tuple | ast.List, frame: Frame) -> Value:
        """A few values side by side."""
        items = [self.value(one.value if isinstance(one, ast.Starred) else one, frame) for one in node.elts]
        items = [replace(one, items=None) if _deep(one) else one for one in items][:MOST_ITEMS]
        marks = frozenset().union(*(one.marks for one in items)) if items else frozenset()
        same = marks - SHAPES - {CONSTANT, INPUT} | (
            {CONSTANT} if items and all(CONSTANT in i.marks for i in items) else set()
        )
        made = combined(items)
        return replace(made, marks=same | {ARRAY}, items=tuple(items), terms=())

    of_list = of_tuple

    def of_dict(self, node: ast.Dict, frame: Frame) -> Value:
        """The values of a dictionary."""
        values = [self.value(one, frame) for one in node.values]
        keys = [self.value(one, frame) for one in node.keys if one is not None]
        made = combined([*values, *keys])
        return replace(made, items=tuple(values) if values else None)

    def of_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        """An item of something."""
        base = self.value(node.value, frame)
        at = node.slice
        place = at.value if isinstance(at, ast.Constant) and isinstance(at.value, int) else None
        if base.items is not None and place is not None and -len(base.items) <= place < len(base.items):
            return base.items[place]
        if (
            isinstance(at, ast.Constant)
            and isinstance(at.value, str)
            and role_of(at.value)
            and not base.has(RAW, NOISY)
        ):
            return of_role(role_of(at.value), at.value)
        if SIZE in base.marks and base.terms and not isinstance(at, ast.Slice):
            first = isinstance(at, ast.Constant) and at.value == 0
            return base if first else Value(of_role("dimension", "shape").terms, leaves=base.leaves)
        index = self.value(at, frame)
        if NOISY in index.marks and RAW not in index.marks:
            return replace(combined([index]), leaves=index.leaves | base.leaves).marked(without=SHAPES)
        if isinstance(at, ast.Constant) and at.value in ("count", "counts", "n") and base.has(RAW):
            return combined([base]).marked(COUNT)
        kept = base.marks - ({INPUT, CONSTANT} if RAW in base.marks else {CONSTANT})
        whole = isinstance(at, ast.Slice) and at.lower is None and at.upper is None
        return replace(base, marks=base.marks if whole else kept - SHAPES, items=None, refers=None)

    def of_listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Value:
        """What is made of each item."""
        from dpassay.scan.reading.values import Loop

        inner = replace_names(frame)
        loops = self.loops  # type: ignore[has-type]
        conditions = []
        for one in node.generators:
            over = self.value(one.iter, inner)
            for target, part in _targets(one.target, self.item(over, one.iter)):
                inner.names[target] = part
            conditions += [self.value(test, inner) for test in one.ifs]
            self.loops = (*self.loops, Loop(ast.unparse(one.iter)[:80], over, ast.unparse(one.target)[:40], node))  # type: ignore[has-type]
        if isinstance(node, ast.DictComp):
            made = combined([self.value(node.key, inner), self.value(node.value, inner)])
        else:
            made = self.value(node.elt, inner)
            if CONSTANT in made.marks and over.has(RAW, INPUT):  # sum(1 for record in data if …) counts records
                made = combined([made, over, *conditions]).marked(INDICATOR, without=frozenset({DISTINCT}))
        self.loops = loops
        if isinstance(node, ast.SetComp) and RAW in made.marks:
            made = made.marked(DISTINCT)
        return replace(made.marked(ARRAY, without=SHAPES | {INPUT}), items=None, refers=None)

    of_setcomp = of_generatorexp = of_dictcomp = of_listcomp

    def of_await(self, node: ast.Await, frame: Frame) -> Value:
        """The value that is waited for."""
        return self.value(node.value, frame)

    def of_starred(self, node: ast.Starred, frame: Frame) -> Value:
        """The items of something."""
        return self.value(node.value, frame)

    def of_lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        """A function that is called later; what it draws is drawn then."""
        inner = replace_names(frame)
        for one in node.args.args:
            inner.names[one.arg] = Value(marks=frozenset({RAW}), leaves=frozenset({one.arg}))
        return replace(self.value(node.body, inner), refers=None)

    def of_namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        """`(name := value)`."""
        value = self.value(node.value, frame)
        frame.names[node.target.id] = value
        return value

    def item(self, over: Value, node: ast.expr) -> Value:
        """One item of what a loop runs over."""
        if isinstance(node, ast.Call) and dotted(node.func) in ("range", "tqdm.trange", "trange"):
            return Value()
        if isinstance(node, ast.Call) and dotted(node.func) in ("zip", "enumerate") and over.items:
            sides = tuple(self.item(one, ast.Name("_")) for one in over.items)
            return replace(over, items=sides if dotted(node.func) == "zip" else (Value(), *sides), refers=None)
        if over.items is not None and over.items:
            return joined(list(over.items))
        lost = SHAPES | ({INPUT} if GENERATOR in over.marks else {INPUT, CONSTANT})  # a part of a fixed key is fixed
        return replace(over, marks=over.marks - lost, items=None, refers=None)


def _deep(value: Value) -> bool:
    return any(one.items is not None for one in value.items or ())


def _targets(target: ast.expr, value: Value) -> list[tuple[str, Value]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Tuple | ast.List):
        items = value.items if value.items is not None and len(value.items) == len(target.elts) else None
        return [p for i, one in enumerate(target.elts) for p in _targets(one, items[i] if items else value)]
    return []


def module_frame(module: Module) -> Frame:
    """The names of a module alone."""
    from dpassay.scan.reading.frames import Frame

    return Frame(None, module, {})


def replace_names(frame: Frame) -> Frame:
    """A frame whose names can change without changing those of this one."""
    from dpassay.scan.reading.frames import Frame

    return Frame(frame.function, frame.module, dict(frame.names), frame.attributes, frame.owner)
