"""Calls: the functions of the package are followed, draws noted with their scale, and library functions looked up."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpassay.scan.reading.calls import function_of
from dpassay.scan.reading.expressions import Expressions, module_frame
from dpassay.scan.reading.index import Class, FunctionSource, Module, dotted
from dpassay.scan.reading.libraries import CALIBRATED, GENERATORS, GLOBAL_SEEDS, IN_PLACE, Draw, drawn, drawn_by
from dpassay.scan.reading.names import is_generator
from dpassay.scan.reading.values import (
    ARRAY,
    BY_DATA,
    COLUMN,
    CONSTANT,
    COUNT,
    DISTINCT,
    GENERATOR,
    INPUT,
    NOISE,
    NOISY,
    NORM1,
    NORM2,
    NOTHING,
    OF_DATA,
    OF_NORM,
    OF_NORM1,
    RAW,
    SCALAR,
    SHAPES,
    STAT,
    Clipped,
    DrawnValue,
    SeededValue,
    SourceLine,
    Value,
    combined,
    joined,
    of_number,
)

if TYPE_CHECKING:
    from dpassay.scan.reading.frames import Frame

DEEPEST = 4
DRAWN_SHAPES = {"array": {ARRAY}, "like": {ARRAY}, "column": {COLUMN}, "one": {SCALAR}}
MOST_OF_CALLED = 80  # statements of a function that is followed
MOST_OF_OTHERS = 14  # the same where it draws nothing


class Following(Expressions):
    """The part of a walk that follows calls."""

    outer: SourceLine | None
    here: SourceLine

    # ------------------------------------------------------------------ calls

    def of_call(self, node: ast.Call, frame: Frame) -> Value:
        """A call: of something in the package, of a library, or of a method."""
        if len(self.chain) == 1:
            self.here = SourceLine(frame.module.file, node.lineno)
        args = [self.value(one, frame) for one in node.args]
        words = {one.arg: self.value(one.value, frame) for one in node.keywords if one.arg is not None}
        if isinstance(node.func, ast.Attribute):
            return self.method_call(node, node.func, args, words, frame)
        callee = self.value(node.func, frame)
        return self.called(callee, node, args, words, frame)

    def called(self, callee: Value, node: ast.Call, args: list[Value], words: dict[str, Value], frame: Frame) -> Value:
        """A call of what a value refers to."""
        refers = callee.refers
        if isinstance(refers, tuple) and len(refers) == 2 and isinstance(refers[0], FunctionSource):
            outer = refers[1]
            return self.call_own(refers[0], args, words, outer.attributes, outer.owner, outer.names)
        if isinstance(refers, FunctionSource):
            return self.call_own(refers, args, words, None, None)
        if isinstance(refers, Class):
            return self.construct(refers, args, words)
        if isinstance(refers, str) and refers not in ("self", "required"):
            return self.library_call(refers, node, args, words, frame)
        return combined([*args, *words.values(), callee])

    def method_call(
        self, node: ast.Call, func: ast.Attribute, args: list[Value], words: dict[str, Value], frame: Frame
    ) -> Value:
        """object.method(...)."""
        base = self.value(func.value, frame)
        refers = base.refers
        if refers == "self" and frame.owner is not None:
            method = self.index.method(frame.owner, func.attr)
            if method is not None:
                return self.call_own(method, [base, *args], words, frame.attributes, frame.owner)
        if isinstance(func.value, ast.Call) and dotted(func.value.func) == "super" and frame.owner is not None:
            for one in self.index.lineage(frame.owner)[1:]:
                if func.attr in one.methods:
                    own = Value(refers="self")
                    return self.call_own(one.methods[func.attr], [own, *args], words, frame.attributes, frame.owner)
        if isinstance(refers, dict) and isinstance(refers.get("«class»"), Class):
            method = self.index.method(refers["«class»"], func.attr)
            if method is not None:
                return self.call_own(method, [Value(refers="self"), *args], words, refers, refers["«class»"])
        if isinstance(refers, Module | Class) or (isinstance(refers, str) and refers not in ("self", "required")):
            return self.called(self.of_attribute(func, frame), node, args, words, frame)
        return self.object_method(node, func, base, args, words, frame)

    def object_method(
        self, node: ast.Call, func: ast.Attribute, base: Value, args: list[Value], words: dict[str, Value], frame: Frame
    ) -> Value:
        """A method of an array, a generator, or something unknown."""
        name = func.attr
        if isinstance(base.refers, Draw) and name in ("sample", "rsample", "rvs", "sample_n"):
            return self.draw_again(node, base, args, words, frame)
        certain = GENERATOR in base.marks or (not base.has(RAW, NOISY) and is_generator(dotted(func.value)))
        if name in ("manual_seed", "seed") and GENERATOR in base.marks and args:
            return self.reseeded(node, func, base, args[0], frame)
        how = drawn_by(name, certain) if GENERATOR in base.marks or not base.has(RAW, NOISE, NOISY) else None
        if how is not None:
            return self.draw(how, f"generator.{name}", node, args, words, frame, base)
        if name in IN_PLACE:
            return self.draw(replace(IN_PLACE[name], like=False), name, node, args, words, frame, NOTHING, base)
        if name in CALIBRATED:
            return self.draw(Draw(CALIBRATED[name], 0, ("scale",)), f"opendp.{name}", node, args, words, frame, NOTHING)
        if name in ("add", "add_", "sub", "sub_") and args:
            op: ast.operator = ast.Add() if name.startswith("add") else ast.Sub()
            made = self.operation(op, base, args[0], node, frame)
            if name.endswith("_") and isinstance(func.value, ast.Name):
                frame.names[func.value.id] = made
            return made
        if name in ("append", "extend", "add", "update", "insert") and isinstance(func.value, ast.Name) and args:
            old = frame.names.get(func.value.id, NOTHING)
            last = args[-1]
            marks = old.marks | (last.marks - {INPUT, CONSTANT} - SHAPES) | {ARRAY}
            frame.names[func.value.id] = replace(
                old, marks=marks - {CONSTANT}, draws=old.draws | last.draws, items=None
            )
            return NOTHING
        made = function_of(name, [*args, *words.values()], base)
        if made.has(RAW, NOISY):
            made = made.marked(*_norm(name, [base, *args], words))
        if name in ("size", "count") and "groupby" in ast.unparse(func.value) and base.has(RAW):
            made = combined([base]).marked(COUNT, DISTINCT)
        self.clipping(name, node, [base, *args], words, frame)
        return made

    def library_call(
        self, name: str, node: ast.Call, args: list[Value], words: dict[str, Value], frame: Frame
    ) -> Value:
        """A function of a library or a builtin."""
        last = name.rpartition(".")[2]
        how = drawn(name)
        if how is not None and name.startswith("torch.distributions."):
            return replace(
                combined([*args, *words.values()]), refers=how, items=(*args, *words.values()), text=_words(words)
            )
        if how is not None:
            first = args[0] if name.startswith("jax.") and args else NOTHING
            state = next((words[one] for one in ("random_state", "generator", "key") if one in words), first)
            return self.draw(how, name, node, args, words, frame, state)
        if name in ("jax.random.split", "jax.random.clone") and args:
            return args[0].marked(ARRAY, without=SHAPES)
        if name in GLOBAL_SEEDS:
            seed = args[0] if args else words.get("seed", NOTHING)
            self.log.seeds.append(SeededValue(self.where(node, frame), name, seed, True))  # type: ignore[attr-defined]
            return NOTHING
        if name in GENERATORS:
            return self.generator(name, node, args, words, frame)
        if last in CALIBRATED:
            return self.draw(
                Draw(CALIBRATED[last], 1 if last.startswith("make") else 0, ("scale",)),
                name,
                node,
                args,
                words,
                frame,
                NOTHING,
            )
        if (
            last in ("add", "subtract", "sub")
            and len(args) >= 2
            and name.partition(".")[0] in ("numpy", "torch", "tensorflow")
        ):
            return self.operation(ast.Add() if last == "add" else ast.Sub(), args[0], args[1], node, frame)
        if last in ("where", "select") and len(args) == 3:
            return joined(args[1:])
        if name.startswith("sklearn.preprocessing."):
            if last != "fit_transform" or not args:
                return Value(refers=name)
            return combined([args[0]]).marked(ARRAY, *((BY_DATA,) if _scales_by_data(name) else ()))
        self.clipping(last, node, args, words, frame)
        made = function_of(name, [*args, *(one for key, one in words.items() if key not in ("axis", "dtype"))], None)
        return made.marked(*_norm(last, args, words)) if made.has(RAW, NOISY) else made

    def generator(self, name: str, node: ast.Call, args: list[Value], words: dict[str, Value], frame: Frame) -> Value:
        """A generator with its seed."""
        seed = args[0] if args else words.get("seed", NOTHING)
        if GENERATOR in seed.marks:
            return seed
        place = SourceLine(frame.module.file, node.lineno)
        if not name.startswith("secrets") and not name.endswith("SystemRandom") and (args or words):
            self.log.seeds.append(SeededValue(self.where(node, frame), name, seed, False))  # type: ignore[attr-defined]
        return Value(
            seed.terms, seed.marks | {GENERATOR}, leaves=seed.leaves, place=place, refers=seed.refers, text=name
        )

    def reseeded(self, node: ast.Call, func: ast.Attribute, base: Value, seed: Value, frame: Frame) -> Value:
        """generator.manual_seed(seed), which gives the generator back."""
        place = SourceLine(frame.module.file, node.lineno)
        made = replace(base, terms=seed.terms, marks=seed.marks | {GENERATOR}, place=place, refers=seed.refers)
        made = replace(made, leaves=seed.leaves)
        self.log.seeds.append(SeededValue(self.where(node, frame), base.text, seed, False))  # type: ignore[attr-defined]
        holder = func.value
        if isinstance(holder, ast.Name) and holder.id in frame.names:
            frame.names[holder.id] = made
        elif isinstance(holder, ast.Attribute) and dotted(holder.value) == "self" and frame.attributes is not None:
            frame.attributes[holder.attr] = made
        return made

    def draw_again(
        self, node: ast.Call, base: Value, args: list[Value], words: dict[str, Value], frame: Frame
    ) -> Value:
        """A sample of a distribution object."""
        how: Draw = base.refers
        items = list(base.items or ())
        named = base.text.split(",") if base.text else []
        count = len(items) - len(named)
        given = dict(zip(named, items[count:], strict=True))
        centre = items[0] if count > 0 else next((given[one] for one in how.centre_words if one in given), NOTHING)
        scale = (
            items[how.scale]
            if 0 <= how.scale < count
            else next((given[o] for o in how.scale_words if o in given), of_number(1))
        )
        shaped = bool(args) or scale.has(ARRAY) or centre.has(ARRAY)
        words = {
            "scale": scale,
            "loc": centre,
            "rate": scale,
            **({"size": Value(marks=frozenset({ARRAY}))} if shaped else {}),
        }
        return self.draw(
            replace(how, scale=-1, centre=-1, size=-1), f"torch {how.law}", node, [], words, frame, NOTHING
        )

    def draw(
        self,
        how: Draw,
        library: str,
        node: ast.Call,
        args: list[Value],
        words: dict[str, Value],
        frame: Frame,
        generator: Value,
        into: Value = NOTHING,
    ) -> Value:
        """Random numbers: an event, and a value whose formula is the scale."""
        scale = _argument(args, words, how.scale, how.scale_words, of_number(1.0))
        if how.inverse:
            inverted = [one.power(-1) if one.coefficient else None for one in scale.terms]
            scale = replace(scale, terms=tuple(one for one in inverted if one is not None))
        centre = _argument(args, words, how.centre, how.centre_words, of_number(0.0))
        if how.law == "choice" and how.centre < 0:
            centre = args[0] if args else words.get("a", NOTHING)
        shape = _shape(how, args, words, scale, centre, into)
        where = self.where(node, frame)  # type: ignore[attr-defined]
        text = ast.unparse(node)[:120]
        event = DrawnValue(len(self.log.draws), where, how.law, library, scale, centre, shape, generator, text)
        self.log.draws.append(event)
        marks = {NOISE, *DRAWN_SHAPES.get(shape, ())}
        if "multivariate" in library:
            scale = replace(scale, terms=tuple(t for t in (one.power(0.5) for one in scale.terms) if t is not None))
        noise = Value(
            scale.terms,
            frozenset(marks),
            frozenset({event.number}),
            scale.leaves,
            how.law,
            scale.marks & OF_DATA,
            scale.place or where.place,
        )
        if centre.constant is None and (centre.has(RAW, INPUT, NOISY) or centre.terms) and how.law not in ("choice",):
            return self.operation(ast.Add(), centre, noise, node, frame)
        return noise

    def clipping(self, name: str, node: ast.Call, args: list[Value], words: dict[str, Value], frame: Frame) -> None:
        """Note a call that bounds a value."""
        if name in ("clip", "clamp", "clamp_", "clip_by_value") and args:
            bounds = [
                *args[1:],
                *(words[one] for one in ("a_min", "a_max", "min", "max", "lower", "upper") if one in words),
            ]
            if bounds:
                bound = joined([bounds[-1]]) if len(bounds) == 1 else replace(combined(bounds), terms=bounds[-1].terms)
                self._note_clip(node, "box", bound, args[0], frame)
        elif name in ("minimum", "min") and len(args) == 2:
            value, bound = args if args[0].has(RAW, NOISY) else (args[1], args[0])
            if value.has(RAW, NOISY) and not bound.has(RAW) and bound.names & {"clip", "bound"}:
                self._note_clip(node, "box", bound, value, frame)
        elif name.startswith("histogram") and args and ("bins" in words or "range" in words):
            bound = combined([words[one] for one in ("bins", "range") if one in words])
            if bound.has(STAT):
                self._note_clip(node, "range", bound, args[0], frame)
        elif name in ("clip_grad_norm_", "clip_by_norm", "clip_by_global_norm", "renorm") and args:
            bound = words.get("max_norm", words.get("clip_norm", args[1] if len(args) > 1 else NOTHING))
            self._note_clip(node, "l2", bound, args[0], frame)

    def _note_clip(self, node: ast.AST, norm: str, bound: Value, value: Value, frame: Frame) -> None:
        event = Clipped(self.where(node, frame), norm, bound, value)  # type: ignore[attr-defined]
        self.log.clips.append(event)
        self.log.order.append(event)

    # ------------------------------------------------------------------ the package's own

    def call_own(
        self,
        function: FunctionSource,
        args: list[Value],
        words: dict[str, Value],
        attributes: dict[str, Value] | None,
        owner: Class | None,
        around: dict[str, Value] | None = None,
    ) -> Value:
        """A function of the package: its body is read with these arguments, or what goes in may come out."""
        everything = [*args, *words.values()]
        most = MOST_OF_CALLED if function.name in self.index.drawing or function.name == "__init__" else MOST_OF_OTHERS
        if len(self.chain) >= DEEPEST or function in self.chain or function.statements > most:
            return combined(everything)
        given = dict(around or {})
        names = [arg.arg for arg, _ in function.parameters]
        if owner is not None and function.owner is not None and "staticmethod" in function.decorators:
            args = args[1:]
        elif function.owner is not None and args and args[0].refers != "self" and names[:1] in (["self"], ["cls"]):
            args = [Value(refers="self"), *args]
        for arg, default in function.parameters:
            given[arg.arg] = self.parameter(arg, default, function).marked(without=frozenset({RAW, INPUT}))  # type: ignore[attr-defined]
            if isinstance(default, ast.Constant) and isinstance(default.value, int | float):
                given[arg.arg] = of_number(default.value)
        for name, value in zip(names, args, strict=False):
            given[name] = value
        given.update({name: value for name, value in words.items() if name in given})
        if "clip" in function.name.lower():
            bound = next((one for one in everything if "clip" in one.names), None)
            data = next((one for one in everything if one.has(RAW) or not one.terms), NOTHING)
            if bound is not None and self.chain:
                event = Clipped(self.where(function.node, module_frame(function.module)), "own", bound, data)  # type: ignore[attr-defined]
                self.log.order.append(event)
        outer = self.outer
        if len(self.chain) == 1:
            self.outer = self.here
        result: Value = self.run(function, given, attributes, owner)  # type: ignore[attr-defined]
        self.outer = outer
        return result

    def construct(self, made: Class, args: list[Value], words: dict[str, Value]) -> Value:
        """An object of the package: its attributes as the constructor leaves them with these arguments."""
        attributes: dict[str, Any] = {}
        for one in reversed(self.index.lineage(made)):
            for name, value in one.fields.items():
                attributes[name] = self.of_field(name, value, one)  # type: ignore[attr-defined]
        constructor = self.index.method(made, "__init__")
        if constructor is not None:
            self.call_own(constructor, [Value(refers="self"), *args], words, attributes, made)
        else:
            attributes.update(zip(made.fields, args, strict=False))
            attributes.update(words)
        attributes["«class»"] = made
        return Value(marks=combined([*args, *words.values()]).marks & {RAW}, refers=attributes)


def _argument(
    args: list[Value], words: dict[str, Value], place: int, names: tuple[str, ...], otherwise: Value
) -> Value:
    for name in names:
        if name in words:
            return words[name]
    return args[place] if 0 <= place < len(args) else otherwise


def _shape(how: Draw, args: list[Value], words: dict[str, Value], scale: Value, centre: Value, into: Value) -> str:
    if how.like or into.has(ARRAY) or into is not NOTHING:
        return "like"
    size = _argument(args, words, how.size, how.size_words, NOTHING)
    if how.variadic:
        if not args or (len(args) == 1 and args[0].constant == 1 and "size" not in words):
            return "one"
        sides = args[0].items if len(args) == 1 and args[0].items else tuple(args)
        return "column" if _is_column(sides) else "array"
    if size is NOTHING:
        return "one" if not (scale.has(ARRAY) or centre.has(ARRAY)) else "array"
    if size.constant == 1 or (size.items is not None and all(one.constant == 1 for one in size.items)):
        return "one"
    if _is_column(size.items or ()):
        return "column"
    return "array" if size.terms or size.marks or size.items is not None else "unknown"


def _scales_by_data(method: str) -> bool:
    """Whether a transformer of scikit-learn takes extremes or deviations from what it is fitted to."""
    scaler = method.rpartition(".")[0]
    return scaler.endswith(("Scaler", "QuantileTransformer", "PowerTransformer", "KBinsDiscretizer"))


def _is_column(sides: tuple[Value, ...]) -> bool:
    """Whether a shape is (n, 1): a number for each row, the same for all its coordinates."""
    return len(sides) >= 2 and sides[-1].constant == 1 and any(one.constant != 1 for one in sides)


def _norm(last: str, args: list[Value], words: dict[str, Value]) -> tuple[str, ...]:
    """What a call makes of a norm: the norm of a value, or a value scaled to norm 1."""
    if last == "normalize" and "norm" not in words:
        power = words.get("p", args[1] if len(args) > 1 else NOTHING)
        return (NORM1,) if power.constant == 1 else (NORM2,) if power is NOTHING or power.constant == 2 else ()
    if last == "normalize":
        return {"l1": (NORM1,), "l2": (NORM2,)}.get(words["norm"].text, ())
    if last not in ("norm", "vector_norm"):
        return ()
    order = words.get("ord", words.get("p", args[1] if len(args) > 1 else NOTHING))
    return (OF_NORM1,) if order.constant == 1 else (OF_NORM,) if order is NOTHING or order.constant == 2 else ()


def _words(words: dict[str, Value]) -> str:
    return ",".join(words)
