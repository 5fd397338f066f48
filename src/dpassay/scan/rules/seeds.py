"""Rules about where randomness comes from: seeds, and noise that is drawn once."""

from __future__ import annotations

import ast

from dpassay.scan.reading.index import Module, dotted
from dpassay.scan.reading.libraries import GLOBAL_SEEDS
from dpassay.scan.reading.values import CONSTANT, DEFAULT, GENERATOR, RAW, SIZE, DrawnValue, SourceLine, Value
from dpassay.scan.rules.context import NOISES, Context

FAMILIES = {"numpy": "numpy", "random": "random", "torch": "torch", "tensorflow": "tensorflow"}


def check_seeds(context: Context) -> None:
    """Seeds of the generators that draw the noise of a function, and of the global ones."""
    protecting = _protecting(context)
    if not protecting or context.measuring:
        return
    for draw in protecting:
        if GENERATOR in draw.generator.marks:
            _seeded(context, draw.generator, draw.generator.place or draw.where.place)
        elif draw.library.startswith("scipy") and draw.generator.marks:
            _seeded(context, draw.generator, draw.where.place)
    for seed in context.log.seeds:
        family = seed.library.partition(".")[0]
        drawn = [one for one in protecting if GENERATOR not in one.generator.marks and one.library.startswith(family)]
        if seed.everywhere and drawn:
            _seeded(context, seed.seed, seed.where.place, everywhere=True)
    _drawn_once(context)


def _protecting(context: Context) -> list[DrawnValue]:
    """The draws that are meant to protect."""
    used = {number for use in context.uses() for number in use.noise.draws}
    chosen = context.private and ("epsilon" in context.roles or context.claim)
    return [
        one
        for one in context.log.draws
        if one.number in used
        or (chosen and one.law in ("choice", "uniform", "geometric", "binomial") and not context.measuring)
    ]


def _seeded(context: Context, seed: Value, place: SourceLine, everywhere: bool = False) -> None:
    text = "the global generator" if everywhere else "the generator of the noise"
    default = seed.refers if isinstance(seed.refers, tuple) and seed.refers[:1] == ("default",) else None
    if seed.has(RAW, SIZE) and not seed.has(CONSTANT):
        said = f"The seed of {text} is computed from the data: whoever tries an input knows its noise."
        context.report("seed-from-data", "refuted", place, said)
    elif default is not None and DEFAULT in seed.marks:
        said = f"The seed of {text} is {default[1]} unless it is given: every new process draws the same, known noise."
        context.report("seed-default", "refuted", place, said)
    elif CONSTANT in seed.marks and (seed.terms or seed.text):
        said = f"The seed of {text} is fixed in the code: every run draws the same noise, which anyone can subtract."
        context.report("seed-fixed", "refuted", place, said)
    elif everywhere:
        said = (
            "A function seeds the global generator: other code that draws from it repeats its noise with the same seed."
        )
        context.report("seed-global", "information", place, said)


def _drawn_once(context: Context) -> None:
    """Noise drawn when the object, the module or a default was made, and added in later calls."""
    if context.function.name in ("__init__", "__post_init__"):
        return
    for use in context.uses():
        if use.other is None or use.other.constant is not None:
            continue
        for number in use.noise.draws:
            draw = context.log.draws[number] if number < len(context.log.draws) else None
            if draw is None or draw.law not in NOISES:
                continue
            first = draw.where.chain[0].name if draw.where.chain else ""
            cached = draw.where.chain and draw.where.chain[-1].decorators & {"cache", "lru_cache", "cached_property"}
            if not draw.where.chain or first in ("__init__", "__post_init__") or (cached and len(draw.where.chain) > 1):
                when = "when the object is built" if first else "once" if cached else "when the module is imported"
                said = f"The noise is drawn {when} and added in every call: the difference of two outputs has no noise."
                context.report("noise-drawn-once", "suspicious", draw.where.place, said)


def check_module_seeds(module: Module, context: Context) -> None:
    """A seed that a module sets when it is imported."""
    for node in module.tree.body:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        name = context.index.resolve(module, dotted(node.value.func)) if dotted(node.value.func) else ""
        if isinstance(name, str) and name in GLOBAL_SEEDS and node.value.args:
            family = name.partition(".")[0]
            drawn = [
                one
                for one in _protecting(context)
                if GENERATOR not in one.generator.marks and one.library.startswith(family)
            ]
            fixed = isinstance(node.value.args[0], ast.Constant) or _is_constant(module, node.value.args[0])
            if drawn and fixed:
                said = "The module seeds the global generator with a constant when it is imported: its noise is known."
                context.report("seed-fixed", "refuted", SourceLine(module.file, node.lineno), said)


def _is_constant(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and isinstance(module.constants.get(node.id), ast.Constant)
