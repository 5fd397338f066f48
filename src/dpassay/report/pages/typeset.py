"""Text as pages write it: ε and δ, powers of ten with exponents, thousands in groups. Commands keep `1e-5`."""

from __future__ import annotations

import re

_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?)0*(\d+)(?![\w.]*\d)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALL = re.compile(r"(?<![\w.,])0\.0000+([1-9]\d*)(?![\w.]*\w)")
_ROOT = re.compile(r"\*?sqrt\(([a-z])\)")  # of a letter in prose; what can be pasted has longer names
# In prose; options and code keep the word.
_LETTER = re.compile(r"(?<!\w\()(?<![\w.`'\"=-])(epsilon|delta)(?![\w`'\"=(])")
_SCALE = re.compile(r"(?<=\d[A-Z]/)eps\b")
_LETTERS = {"epsilon": "ε", "delta": "δ"}
_CODE = re.compile(r"\w+[._:(\[/]\w")  # a file or a name in code keeps its first letter
_LONG = re.compile(r"(?<![\w.,/])(?:\d{5,}|\d{4}(?=\.\d))(?![\w,]|\.\d*e)")  # 2021 may be a year


def typeset(text: str) -> str:
    """A sentence whose numbers are written as in print.

    >>> typeset("(2, 1e-05)-DP"), typeset("8.84e-05 of 2.5e+07"), typeset("10^265:1"), typeset("at δ = 1e-300")
    ('(2, 10⁻⁵)-DP', '8.84×10⁻⁵ of 2.5×10⁷', '10²⁶⁵:1', 'at δ = 10⁻³⁰⁰')
    >>> typeset("53013.3 and 1550.5 in 100000 dimensions, 2021")
    '53,013.3 and 1,550.5 in 100,000 dimensions, 2021'
    >>> typeset("at most 0.00000943917, up to 2C*sqrt(n)")
    'at most 9.43917×10⁻⁶, up to 2C√n'
    >>> typeset("at epsilon 2 the true delta, noise of scale 2C/eps, --epsilon 2, laplace(epsilon)")
    'at ε 2 the true δ, noise of scale 2C/ε, --epsilon 2, laplace(epsilon)'
    """
    text = _LETTER.sub(lambda found: _LETTERS[found[1]], _SCALE.sub("ε", text))
    text = _SMALL.sub(lambda found: f"{float(found[0]):.{len(found[1]) - 1}e}", text)
    text = _ROOT.sub(r"√\1", text)
    text = re.sub(r"(?<!\d)10\^(-?\d+)", lambda found: "10" + found[1].translate(_RAISED), text)
    text = _SCIENTIFIC.sub(_power, text)
    return _LONG.sub(lambda found: f"{int(found[0]):,}", text)


def _power(found: re.Match[str]) -> str:
    power = "10" + (found[2].replace("+", "") + found[3]).translate(_RAISED)
    return power if found[1] == "1" else f"{found[1]}×{power}"


def sentence(text: str) -> str:
    """A phrase of the terminal as a sentence: typeset, with a capital letter and a full stop.

    >>> sentence("every coordinate is at least 1: probability 2.5e-10 against 1e-12")
    'Every coordinate is at least 1: probability 2.5×10⁻¹⁰ against 10⁻¹².'
    >>> sentence("noise.py:10 adds no noise")
    'noise.py:10 adds no noise.'
    """
    shown = typeset(text).strip()
    first = shown if _CODE.match(shown) or shown.startswith(("ε", "δ")) else f"{shown[:1].upper()}{shown[1:]}"
    return f"{first}{'' if shown.endswith(('.', '?', '!')) else '.'}"
