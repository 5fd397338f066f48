"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing from another host."""

from __future__ import annotations

from functools import cache


class UnknownFormula(ValueError):
    """A formula that would be shown wrongly."""


@cache  # many occur again and again
def to_mathml(formula: str, block: bool = False) -> str:
    """A formula in LaTeX as MathML; one with a command that is not known, or with an open brace, is an error.

    >>> "<mi>ε</mi>" in to_mathml(r"\\varepsilon").replace("&#x003B5;", "ε")
    True
    """
    from latex2mathml.converter import convert

    plain = formula.replace(r"\{", "").replace(r"\}", "")
    try:
        shown = convert(formula, display="block" if block else "inline")
    except Exception as error:  # the library has no class of its own for all of its errors
        raise UnknownFormula(f"the formula {formula!r} cannot be read: {type(error).__name__}") from None
    if "\\" in shown or plain.count("{") != plain.count("}"):
        raise UnknownFormula(f"the formula {formula!r} has a command that is not known, or an open brace")
    return shown
