"""One function read statement by statement, with the functions of the package that it calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from dpassay.scan.reading.arithmetic import is_noise, operated
from dpassay.scan.reading.following import Following
from dpassay.scan.reading.frames import Frame, is_plain, loaded, merged, returns, shape_of, tiny, warns
from dpassay.scan.reading.index import Class, FunctionSource, Index, Module, dotted
from dpassay.scan.reading.names import is_configuration, is_data, role_of
from dpassay.scan.reading.values import (
    CONSTANT,
    DEFAULT,
    INPUT,
    NOISE,
    NORM1,
    NORM2,
    NOTHING,
    OF_DATA,
    OF_NORM,
    OF_NORM1,
    RAW,
    Clipped,
    Log,
    Loop,
    Mixed,
    Returned,
    Set,
    SourceLine,
    Used,
    Value,
    Where,
    joined,
    of_role,
)

MOST_STEPS = 1_500  # statements of one function and all that it calls
DEEPEST = 4


class Walk(Following):
    """The reading of one function: `log` fills with what is seen."""

    def __init__(self, index: Index, function: FunctionSource) -> None:
        self.index = index
        self.log = Log(function)
        self.steps = 0
        self.chain: tuple[FunctionSource, ...] = ()
        self.branches: tuple[tuple[int, int], ...] = ()
        self.loops: tuple[Loop, ...] = ()
        self.conditions: tuple[Value, ...] = ()
        self.handler = self.warned = False
        self.outer: SourceLine | None = None  # the line of the function itself from which others are called
        self.here = SourceLine(function.module.file, function.node.lineno)
        self.ended = False  # the block has returned or raised

    def read(self) -> Log:
        """Read the function as a caller from outside meets it."""
        function = self.log.function
        attributes = None
        if function.owner is not None and "staticmethod" not in function.decorators:
            attributes = self.built(function.owner) if function.name != "__init__" else {}
        given = {arg.arg: self.parameter(arg, default, function) for arg, default in function.parameters}
        self.log.parameters = given
        self.run(function, given, attributes, function.owner)
        return self.log

    def parameter(self, arg: ast.arg, default: ast.expr | None, function: FunctionSource) -> Value:
        """What is known of a parameter by its name, annotation and default."""
        name = arg.arg
        if name in ("self", "cls"):
            return Value(refers="self")
        role = role_of(name)
        if role == "epsilon" and isinstance(default, ast.Constant) and tiny(default.value):
            role = ""  # a guard against division by zero
        written = ast.unparse(arg.annotation).lower() if arg.annotation is not None else ""
        shape = shape_of(written, name)
        if isinstance(default, ast.Call):
            drawn = self.at_definition(default, function.module)
            if is_noise(drawn):
                return drawn
        kind = self.index.resolve(function.module, dotted(arg.annotation)) if arg.annotation is not None else ""
        if isinstance(kind, Class) and not is_data(name) and len(self.chain) < DEEPEST:
            return Value(leaves=frozenset({name}), refers={**self.built(kind), "«class»": kind})
        if is_data(name) or (not is_configuration(name) and default is None and not is_plain(written)):
            made = Value(marks=shape | {RAW, INPUT}, leaves=frozenset({name}))
            return made if not role else replace(made, terms=of_role(role, name).terms)
        made = of_role(role, name)
        if isinstance(default, ast.Constant) and isinstance(default.value, int | float) and default.value is not True:
            made = replace(made, refers=("default", default.value, default.lineno)).marked(DEFAULT)
        elif default is None:
            made = replace(made, refers="required")
        return made.marked(*shape)

    def at_definition(self, node: ast.expr, module: Module) -> Value:
        """A value that is computed once, when the module is imported."""
        chain, self.chain = self.chain, ()
        found = self.value(node, Frame(None, module, {}))
        self.chain = chain
        return found

    def built(self, owner: Class) -> dict[str, Value]:
        """The attributes of an object as its constructor leaves them, by the names of the constructor's parameters."""
        attributes: dict[str, Value] = {}
        for one in reversed(self.index.lineage(owner)):
            for name, value in one.fields.items():
                attributes[name] = self.of_field(name, value, one)
        constructor = self.index.method(owner, "__init__")
        if constructor is not None and len(self.chain) < DEEPEST:
            given = {arg.arg: self.parameter(arg, default, constructor) for arg, default in constructor.parameters}
            silent = Walk(self.index, constructor)
            silent.steps = self.steps
            silent.log.draws = self.log.draws  # so that draws keep their numbers
            silent.run(constructor, given, attributes, owner)
            self.steps = silent.steps
            self.log.seeds.extend(silent.log.seeds)
        return attributes

    def of_field(self, name: str, value: ast.expr | None, owner: Class) -> Value:
        """An attribute that the class body defines, such as a field of a dataclass."""
        made = of_role(role_of(name), name)
        if (
            isinstance(value, ast.Constant)
            and isinstance(value.value, int | float)
            and not isinstance(value.value, bool)
        ):
            made = replace(made, refers=("default", value.value, value.lineno)).marked(DEFAULT)
        return made

    # ------------------------------------------------------------------ functions

    def run(
        self,
        function: FunctionSource,
        given: dict[str, Value],
        attributes: dict[str, Value] | None,
        owner: Class | None,
    ) -> Value:
        """Read a function's body with what its parameters hold, and give what it returns."""
        frame = Frame(function, function.module, dict(given), attributes, owner)
        before = self.chain, self.branches, self.loops, self.conditions, self.handler, self.ended, self.warned
        self.chain, self.ended = (*self.chain, function), False
        self.block(function.node.body, frame)
        self.chain, self.branches, self.loops, self.conditions, self.handler, self.ended, self.warned = before
        return joined(frame.returned) if frame.returned else NOTHING

    def where(self, node: ast.AST, frame: Frame) -> Where:
        """The circumstances of what a node does."""
        place = SourceLine(frame.module.file, getattr(node, "lineno", 1))
        outer = self.outer or place
        return Where(place, self.chain, self.branches, self.loops, self.conditions, self.handler, self.warned, outer)

    # ------------------------------------------------------------------ statements

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Read statements in order, until one ends the block."""
        for statement in body:
            self.steps += 1
            if self.ended or self.steps > MOST_STEPS:
                return
            handler = getattr(self, f"on_{type(statement).__name__.lower()}", None)
            if handler is not None:
                handler(statement, frame)

    def on_expr(self, node: ast.Expr, frame: Frame) -> None:
        """A call for its effect."""
        self.value(node.value, frame)

    def on_assign(self, node: ast.Assign, frame: Frame) -> None:
        """Names, attributes and items get a value."""
        value = self.value(node.value, frame)
        for target in node.targets:
            self.store(target, value, frame, node)

    def on_annassign(self, node: ast.AnnAssign, frame: Frame) -> None:
        """The same with a type."""
        if node.value is not None:
            self.store(node.target, self.value(node.value, frame), frame, node)

    def on_augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        """`x += y`."""
        left = self.value(loaded(node.target), frame)
        value = self.operation(node.op, left, self.value(node.value, frame), node, frame)
        self.store(node.target, value, frame, node)

    def store(self, target: ast.expr, value: Value, frame: Frame, node: ast.stmt) -> None:
        """Put a value where the target says. What the code warns about is its user's decision."""
        if self.warned:
            value = value.marked(without=OF_DATA)
            value = (
                replace(value, items=tuple(one.marked(without=OF_DATA) for one in value.items))
                if value.items
                else value
            )
        if isinstance(target, ast.Name):
            frame.names[target.id] = self.known_as(target.id, value, node, frame)
        elif isinstance(target, ast.Tuple | ast.List):
            items = value.items if value.items is not None and len(value.items) == len(target.elts) else None
            for i, one in enumerate(target.elts):
                plain = one.value if isinstance(one, ast.Starred) else one
                self.store(plain, items[i] if items else replace(value, terms=(), items=None), frame, node)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            value = self.known_as(target.attr, value, node, frame)
            if frame.attributes is not None:
                frame.attributes[target.attr] = value
            event = Set(self.where(node, frame), target.attr, value)
            self.log.sets.append(event)
            self.log.order.append(event)
        elif isinstance(target, ast.Subscript | ast.Attribute):
            self.into(target.value, value, frame, node)

    def into(self, container: ast.expr, value: Value, frame: Frame, node: ast.stmt) -> None:
        """A part of something is replaced: the whole can be either."""
        if isinstance(container, ast.Name):
            old = frame.names.get(container.id, NOTHING)
            keep = value.marks | (old.marks - {INPUT, CONSTANT})
            law = "formula" if NOISE in old.marks else old.law
            draws = old.draws | value.draws
            frame.names[container.id] = replace(old, marks=keep, draws=draws, terms=(), items=None, law=law)
        elif isinstance(container, ast.Attribute | ast.Subscript):
            self.value(container, frame)

    def known_as(self, name: str, value: Value, node: ast.stmt, frame: Frame) -> Value:
        """A value under a name: where nothing was read, the name says what it is."""
        role = role_of(name)
        place = SourceLine(frame.module.file, node.lineno)
        if not value.terms and role and not is_noise(value) and value.items is None and value.refers is None:
            value = replace(value, terms=of_role(role, name).terms, leaves=value.leaves | {name})
        return replace(value, place=value.place if value.place and value.constant is None else place)

    def on_return(self, node: ast.Return, frame: Frame) -> None:
        """The function ends with a value."""
        value = self.value(node.value, frame) if node.value is not None else NOTHING
        frame.returned.append(value)
        if len(self.chain) == 1:
            self.log.returns.append(Returned(self.where(node, frame), value))
        for one in value.items or (value,):
            if is_noise(one) and NOISE in one.marks and len(self.chain) == 1:
                self.log.uses.append(Used(self.where(node, frame), one, None, one))
        self.ended = True

    def on_raise(self, node: ast.Raise, frame: Frame) -> None:
        """The function ends without a value."""
        self.ended = True

    def on_continue(self, node: ast.stmt, frame: Frame) -> None:
        """The rest of the loop's body is left out."""
        self.ended = True

    on_break = on_continue

    def on_if(self, node: ast.If, frame: Frame) -> None:
        """Both arms, each with its own names; what they leave is joined."""
        condition = self.value(node.test, frame)
        before, conditions, branches, warned = dict(frame.names), self.conditions, self.branches, self.warned
        ends: list[tuple[dict[str, Value], bool]] = []
        for arm, body in enumerate((node.body, node.orelse)):
            frame.names = dict(before)
            self.conditions, self.branches = (*conditions, condition), (*branches, (id(node), arm))
            self.warned = warned or warns(body)
            self.ended = False
            self.block(body, frame)
            ends.append((frame.names, self.ended))
        self.conditions, self.branches, self.warned = conditions, branches, warned
        open_ends = [names for names, ended in ends if not ended]
        self.ended = not open_ends
        if len(open_ends) == 1:  # the rest belongs to the arm that goes on
            arm = 0 if not ends[0][1] else 1
            self.branches = (*branches, (id(node), arm))
            self.conditions = (*conditions, condition) if ends[0][1] and returns(node.body) else conditions
        frame.names = merged(open_ends) if open_ends else before
        if condition.has(OF_NORM):  # `if norm > c: x = x * c / norm` bounds x in either case
            for name, value in frame.names.items():
                if any(names.get(name, NOTHING).has(NORM2, NORM1) for names in open_ends):
                    norms = {m for names in open_ends for m in names.get(name, NOTHING).marks & {NORM1, NORM2}}
                    frame.names[name] = value.marked(*norms)

    def on_for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> None:
        """The body once, with its target as one of the items."""
        over = self.value(node.iter, frame)
        self.store(node.target, self.item(over, node.iter), frame, node)
        self.repeated(node, over, ast.unparse(node.iter)[:80], ast.unparse(node.target)[:40], frame)

    on_asyncfor = on_for

    def on_while(self, node: ast.While, frame: Frame) -> None:
        """The body once."""
        self.repeated(node, self.value(node.test, frame), ast.unparse(node.test)[:80], "", frame)

    def repeated(
        self, node: ast.For | ast.AsyncFor | ast.While, over: Value, text: str, target: str, frame: Frame
    ) -> None:
        """A loop's body; names that it changes are joined with what they were."""
        before, loops, branches = dict(frame.names), self.loops, self.branches
        self.loops = (*loops, Loop(text, over, target, node))
        self.block(node.body, frame)
        self.loops, self.branches, self.ended = loops, branches, False
        frame.names = merged([before, frame.names]) if isinstance(node, ast.While) else {**before, **frame.names}
        self.block(node.orelse, frame)

    def on_with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> None:
        """A block with a context."""
        for item in node.items:
            value = self.value(item.context_expr, frame)
            if item.optional_vars is not None:
                self.store(item.optional_vars, value, frame, node)
        self.block(node.body, frame)

    on_asyncwith = on_with

    def on_try(self, node: ast.Try, frame: Frame) -> None:
        """The body; then each handler, with the names as they were before."""
        before, branches = dict(frame.names), self.branches
        self.branches = (*branches, (id(node), 0))
        self.block([*node.body, *node.orelse], frame)
        ends = [(frame.names, self.ended)]
        for arm, handler in enumerate(node.handlers, 1):
            frame.names, self.ended, was = dict(before), False, self.handler
            self.branches, self.handler = (*branches, (id(node), arm)), True
            self.block(handler.body, frame)
            self.handler = was
            ends.append((frame.names, self.ended))
        self.branches = branches
        open_ends = [names for names, ended in ends if not ended]
        self.ended = not open_ends
        frame.names = merged(open_ends) if open_ends else before
        if node.finalbody:
            was_ended, self.ended = self.ended, False
            self.block(node.finalbody, frame)
            self.ended = was_ended

    def on_match(self, node: ast.Match, frame: Frame) -> None:
        """Each case, as arms of a branch."""
        subject = self.value(node.subject, frame)
        before, branches = dict(frame.names), self.branches
        ends = []
        for arm, case in enumerate(node.cases):
            frame.names, self.ended = dict(before), False
            self.branches = (*branches, (id(node), arm))
            self.conditions = (*self.conditions, subject)
            self.block(case.body, frame)
            self.conditions = self.conditions[:-1]
            ends.append((frame.names, self.ended))
        self.branches = branches
        open_ends = [names for names, ended in ends if not ended]
        self.ended = False
        frame.names = merged([*open_ends, before])

    def on_functiondef(self, node: ast.FunctionDef, frame: Frame) -> None:
        """A function inside a function: called later, with the names around it."""
        frame.names[node.name] = Value(refers=(FunctionSource(node.name, node, frame.module), frame))

    on_asyncfunctiondef = on_functiondef

    # ------------------------------------------------------------------ events

    def operation(self, op: ast.operator, a: Value, b: Value, node: ast.AST, frame: Frame) -> Value:
        """A binary operation, with what it means for noise."""
        made, happened = operated(op, a, b)
        made = replace(made, place=SourceLine(frame.module.file, getattr(node, "lineno", 1)))
        if happened == "use":
            noise, other = (a, b) if is_noise(a) else (b, a)
            event = Used(self.where(node, frame), noise, other, made)
            self.log.uses.append(event)
            self.log.order.append(event)
        elif made.has(NORM1, NORM2) and not a.has(NORM1, NORM2) and not b.has(NORM1, NORM2):
            value, factor = (a, b) if a.has(RAW, "noisy") and not a.has(OF_NORM, OF_NORM1) else (b, a)
            clip = Clipped(self.where(node, frame), "own", factor, value)
            self.log.clips.append(clip)
            self.log.order.append(clip)
        elif happened == "mixed":
            noisy, raw = (a, b) if RAW not in a.marks and "noisy" in a.marks else (b, a)
            self.log.mixed.append(Mixed(self.where(node, frame), noisy, raw, type(op).__name__))
        return made
