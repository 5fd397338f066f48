"""Rules that one function's text shows by itself: places, counts and names that do not fit together."""

from __future__ import annotations

import ast
import re

from dpassay.scan.reading.index import FunctionSource, dotted
from dpassay.scan.reading.libraries import JAX
from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.values import INPUT, RAW, SourceLine
from dpassay.scan.rules.context import Context, mentions

NAN = {"nanmean", "nanvar", "nanstd", "nanmedian"}


def check_slips(context: Context) -> None:
    """All rules of this file, on one function."""
    if not context.function.module.about_privacy:
        return
    swapped(context)
    nan_counted(context)
    fixed_place(context)
    key_again(context)
    half_exponent(context)
    words_counted(context)


def key_again(context: Context) -> None:
    """The same key of jax in each turn of a loop: what has the same shape gets the same noise."""
    if not context.private and not context.noises:
        return
    for turn in context.function.nodes:
        mapped = isinstance(turn, ast.Call) and dotted(turn.func).rpartition(".")[2] in ("tree_map", "map")
        inner = turn.args[0] if mapped and isinstance(turn, ast.Call) and turn.args else turn
        if not isinstance(inner, ast.Lambda if mapped else ast.For | ast.ListComp | ast.GeneratorExp | ast.DictComp):
            continue
        made = {one.id for one in ast.walk(inner) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        made |= {one.arg for one in ast.walk(inner) if isinstance(one, ast.arg)}
        for one in ast.walk(inner):
            if not isinstance(one, ast.Call) or not one.args or not isinstance(one.args[0], ast.Name):
                continue
            name = context.index.resolve(context.function.module, dotted(one.func))
            if isinstance(name, str) and name in JAX and one.args[0].id not in made:
                said = f"Every turn draws with the same key {one.args[0].id}: values of one shape get the same noise."
                place = SourceLine(context.function.module.file, one.lineno)
                context.report("shared-noise", "refuted", place, said)
                return


def half_exponent(context: Context) -> None:
    """Weights e^(ε·u/Δ) for a choice, where the exponential mechanism has e^(ε·u/(2Δ))."""
    if (
        not context.function.called & {"choice", "choices", "multinomial", "categorical"}
        or "epsilon" not in context.roles
    ):
        return
    if re.search(r"monoton|one[- ]sided", f"{context.function.documentation} {context.function.text}".lower()):
        return
    for one in context.function.nodes:
        if not (isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in ("exp", "softmax") and one.args):
            continue
        names = {role_of(dotted(part)) for part in ast.walk(one.args[0]) if isinstance(part, ast.Name | ast.Attribute)}
        halved = any(isinstance(part, ast.Constant) and part.value in (2, 2.0, 0.5) for part in ast.walk(one.args[0]))
        divided = any(
            isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) and mentions(part.right, "sensitivity")
            for part in ast.walk(one.args[0])
        )
        if {"epsilon", "sensitivity"} <= names and divided and not halved:
            said = (
                "The weights are e^(ε·u/Δ): unless no utility falls when another rises, the choice satisfies 2ε only."
            )
            place = SourceLine(context.function.module.file, one.lineno)
            context.report("scale-shrunk", "suspicious", place, said)


def words_counted(context: Context) -> None:
    """ε for a whole text, divided by its number of words: the output has as many."""
    if not context.private:
        return
    split = {
        dotted(one.targets[0])
        for one in context.function.nodes
        if isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Call)
        and re.search(r"(^|_)(split|tokeni[sz]e|encode)$", dotted(one.value.func).rpartition(".")[2])
    }
    for one in context.function.nodes:
        if not (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) and mentions(one.left, "epsilon")):
            continue
        counted = one.right
        if isinstance(counted, ast.Call) and dotted(counted.func) == "max" and counted.args:
            counted = next((each for each in counted.args if isinstance(each, ast.Call)), counted)
        if isinstance(counted, ast.Call) and dotted(counted.func) == "len" and dotted(counted.args[0]) in split:
            said = (
                "ε is divided by the number of words of the input, and the output has as many: "
                "for texts of any length the claim covers no two that differ in it."
            )
            place = SourceLine(context.function.module.file, one.lineno)
            context.report("input-shapes-output", "suspicious", place, said)
            return


def nan_counted(context: Context) -> None:
    """NaN are left out of the mean, but counted in the number that the sensitivity is divided by."""
    if not context.function.called & NAN or not context.private:
        return
    for one in context.function.nodes:
        given = one.value if isinstance(one, ast.keyword) and role_of(one.arg or "") == "sensitivity" else None
        if isinstance(one, ast.Assign) and role_of(dotted(one.targets[0])) == "sensitivity":
            given = one.value
        for part in ast.walk(given) if given is not None else ():
            divided = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) and _counts(part.right)
            if divided and given is not None:
                said = (
                    "NaN are left out of the statistic, but counted in the number that its sensitivity is divided by."
                )
                place = SourceLine(context.function.module.file, given.lineno)
                context.report("nan-counted", "suspicious", place, said)
                return


def _counts(node: ast.expr) -> bool:
    sized = isinstance(node, ast.Attribute) and node.attr == "size"
    return sized or (isinstance(node, ast.Call) and dotted(node.func) == "len")


def fixed_place(context: Context) -> None:
    """The true value always at the first place, and random ones after it."""
    if not context.private:
        return
    first: dict[str, ast.Assign] = {}
    for one in context.function.nodes:
        if not (isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript)):
            continue
        target = one.targets[0]
        names = {each.id for each in ast.walk(one.value) if isinstance(each, ast.Name)}
        data = {name for name, value in context.log.parameters.items() if value.has(RAW, INPUT)}
        if isinstance(target.slice, ast.Constant) and target.slice.value == 0 and names & data:
            first[dotted(target.value)] = one
        drawn = any(
            isinstance(each, ast.Attribute) and each.attr in ("choice", "sample") for each in ast.walk(one.value)
        )
        if isinstance(target.slice, ast.Slice) and drawn and dotted(target.value) in first:
            said = "The true value is always at the first place, so the order of the output shows it."
            line = first[dotted(target.value)].lineno
            context.report("fixed-place", "suspicious", SourceLine(context.function.module.file, line), said)


def swapped(context: Context) -> None:
    """Results that are unpacked under each other's names."""
    node = context.function.node
    for one in context.function.nodes:
        if not (
            isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and isinstance(one.targets[0], ast.Tuple)
        ):
            continue
        names = [dotted(each).rpartition(".")[2] for each in one.targets[0].elts]
        if len(names) != 2 or "" in names:
            continue
        callee = _callee(one.value, context)
        if callee is None or callee.node is node:
            continue
        for back in ast.walk(callee.node):
            if isinstance(back, ast.Return) and isinstance(back.value, ast.Tuple) and len(back.value.elts) == 2:
                inside = [{n.id for n in ast.walk(part) if isinstance(n, ast.Name)} for part in back.value.elts]
                crossed = names[0] in inside[1] - inside[0] and names[1] in inside[0] - inside[1]
                if crossed:
                    said = f"{names[0]} and {names[1]} are unpacked in one order and returned in the other."
                    context.report(
                        "results-swapped", "suspicious", SourceLine(context.function.module.file, one.lineno), said
                    )


def _callee(call: ast.Call, context: Context) -> FunctionSource | None:
    name = dotted(call.func)
    if name.startswith("self.") and context.function.owner is not None:
        return context.index.method(context.function.owner, name[5:])
    found = context.index.resolve(context.function.module, name) if name else None
    return found if isinstance(found, FunctionSource) else None
