"""Valid certificates with one number after another widened: what then verifies is true for all numbers in between.

The mechanisms have a loss that jumps, in closed form. A widened number lies on both sides of a jump, or of what is
claimed; the truth is computed in fractions at both ends and in the middle of it, where the jump is.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from dpassay import certify, check
from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier import examine
from forging import rechained

WIDTH = Fraction(1, 3 * 10**41)  # relative; anything much wider is refused as imprecise
Values = dict[str, Fraction]


def rounded_apart(d: Fraction) -> int:
    """How far apart two numbers can be once rounded, ties to even, that were at most d apart."""
    if d.denominator > 1:
        return math.ceil(d)
    return int(d) + 1 if d % 2 else int(d)


def to_even(c: Fraction) -> int:
    return round(c)  # Python's rule for fractions: ties to even


def bits_apart(limit: Fraction) -> int:
    """In how many of three bits two integers from 0 to a limit can differ."""
    values = range(min(7, math.floor(limit)) + 1)
    return max(bin(a ^ b).count("1") for a in values for b in values)


def logarithm(x: Fraction) -> mpf:
    return mp.log(mpf(x.numerator) / x.denominator)


# pipeline, dimension, the truth, and parameters at a jump
CASES: list[tuple[str, int, Callable[[Values], Any], dict[str, list[str]]]] = [
    ("query(l1, D) | laplace(b)", 1, lambda v: v["D"] / v["b"], {"D": ["1"], "b": ["2", "0.7"]}),
    (
        "query(l1, D) | round | laplace(b)",
        1,
        lambda v: rounded_apart(v["D"]) / v["b"],
        {"D": ["1", "2", "3"], "b": ["2"]},
    ),
    (
        "query(linf, D) | round | discrete_laplace(b)",
        1,
        lambda v: rounded_apart(v["D"]) / v["b"],
        {"D": ["1", "4"], "b": ["2"]},
    ),
    ("counts(l1, D) | discrete_laplace(b)", 1, lambda v: math.floor(v["D"]) / v["b"], {"D": ["1", "3"], "b": ["2"]}),
    ("counts(l1, D) | laplace(b)", 3, lambda v: math.floor(v["D"]) / v["b"], {"D": ["2"], "b": ["2"]}),
    (
        "query(l1, D) | staircase(e, S, 0.4)",
        1,
        lambda v: v["e"] * max(1, math.ceil(v["D"] / v["S"])),
        {"D": ["1", "0.6"], "S": ["1", "0.3"], "e": ["0.5"]},
    ),
    (
        "clip(linf, C) | round | laplace(b)",
        1,
        lambda v: 2 * to_even(v["C"]) / v["b"],
        {"C": ["0.5", "1.5", "2.5"], "b": ["2"]},
    ),
    (
        "rows | clamp(0, H) | binary(3, 0) | flip(0.75)",
        1,
        lambda v: bits_apart(v["H"]) * logarithm(Fraction(3)),
        {"H": ["1", "2", "4"]},
    ),
    ("category(2) | flip(k)", 1, lambda v: abs(logarithm(v["k"] / (1 - v["k"]))), {"k": ["0.5", "0.75"]}),
]


def _numbers(step: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where numbers are: lists of two decimals."""
    if isinstance(step, dict):
        for key, value in step.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(step, list) and len(step) == 2 and all(isinstance(end, str) for end in step):
        if "inf" not in step:
            yield path
    elif isinstance(step, list):
        for i, value in enumerate(step):
            yield from _numbers(value, (*path, i))


def _decimal(value: Fraction, up: bool) -> str:
    scaled = value * 10**60
    return f"{math.ceil(scaled) if up else math.floor(scaled)}e-60"


def widened(certificate: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Each number in turn, and with it those of the same value, down, up, and both ways."""
    for path in _numbers(certificate["steps"]):
        own = _at(certificate["steps"], path)
        alike = [place for place in _numbers(certificate["steps"]) if _at(certificate["steps"], place) == own]
        for (down, up), places in itertools.product(((1, 0), (0, 1), (1, 1)), ([path], alike)):
            forged = deepcopy(certificate)
            low, high = map(Fraction, own)
            by = max(abs(low), abs(high)) * WIDTH or Fraction(1, 10**60)
            for place in places:
                _at(forged["steps"], place)[:] = [_decimal(low - down * by, False), _decimal(high + up * by, True)]
            yield path, rechained(forged)


def _at(steps: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        steps = steps[key]
    return steps


def falsehoods(certificate: dict[str, Any], truth: Callable[[Values], Any]) -> Iterator[str]:
    """What a certificate at δ = 0 states that is not so for some numbers in it."""
    claim, *steps = certificate["steps"]
    names = claim["parameters"]
    ends = [tuple(map(Fraction, names[name])) for name in names]
    places = itertools.product(*({low, high, Fraction(round((low + high) / 2, 30))} for low, high in ends))
    inside = [place for place in places if all(low <= x <= high for x, (low, high) in zip(place, ends, strict=True))]
    for place in inside:
        with mp.workdps(80):
            true = truth(dict(zip(names, place, strict=True)))
            loss = mpf(true.numerator) / true.denominator if isinstance(true, Fraction | int) else mpf(true)
            for step in [claim, *steps]:
                if "epsilon" not in step or step["step"] == "repair":
                    continue
                low, high = (mp.inf if end == "inf" else mpf(end) for end in step["epsilon"])
                positive = mpf(step["delta"][1]) > 0
                kind = {"claim": certificate["verdict"], "upper": "proven", "lower": "refuted"}[step["step"]]
                if kind == "proven" and not positive and not loss <= low * (1 + mpf(10) ** -30):
                    yield f"{step['step']}: epsilon {low} at {place}, where it is {loss}"
                if kind == "refuted" and not positive:
                    beyond = loss > high if step["step"] == "claim" else loss >= high
                    if not beyond:
                        yield f"{step['step']}: not epsilon {high} at {place}, where it is {loss}"


NEXT_TO = ("1e-17", "1e-31", "1e-42", "1e-49", "1e-70")


def _next_to_a_jump() -> Iterator[tuple[str, int, Callable[[Values], Any], dict[str, str]]]:
    for pipeline, dim, truth, given in CASES:
        for name, chosen in given.items():
            for value in chosen:
                yield pipeline, dim, truth, {other: own[0] for other, own in given.items()} | {name: value}


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("pipeline", "dim", "truth", "values"), list(_next_to_a_jump()))
def test_the_interval_contains_the_truth_next_to_a_jump(pipeline, dim, truth, values):
    """With each number in turn a little smaller or larger, as a decimal, or as a sum or a quotient in the text."""
    for name, by, sign in itertools.product(values, NEXT_TO, "+-"):
        exact = {key: Fraction(value) for key, value in values.items()}
        exact[name] += Fraction(by) * int(f"{sign}1")
        decimal = f"{exact[name] * 10**80}e-80"
        summed = re.sub(rf"\b{name}\b", f"({values[name]} {sign} {by})", pipeline)
        parts = re.sub(rf"\b{name}\b", f"(({values[name]}/7 {sign} {by}/7)/(1/7))", pipeline)
        rest = {key: value for key, value in values.items() if key != name}
        with mp.workdps(100):
            true = truth(exact)
            loss = mpf(true.numerator) / true.denominator if isinstance(true, Fraction | int) else true
        for text, given in ((pipeline, values | {name: decimal}), (summed, rest), (parts, rest)):
            found = check(text, epsilon="0.77", dim=dim, **given).bounds.value  # no tie with what is claimed
            assert found.lower <= loss <= found.upper, (text, given, found, loss)


def _is_pure(step: dict[str, Any]) -> bool:
    """Whether a step is about δ = 0, or the decision; the others say nothing about the truth here."""
    return step["step"] in ("claim", "decision", "upper", "lower") and mpf(step.get("delta", "0")[-1]) == 0


def _claims() -> Iterator[tuple[str, int, Callable[[Values], Any], dict[str, str], str]]:
    for pipeline, dim, truth, given in CASES:
        for chosen in itertools.product(*given.values()):
            values = dict(zip(given, chosen, strict=True))
            loss = truth({name: Fraction(value) for name, value in values.items()})
            exact = isinstance(loss, Fraction | int) and Fraction(loss).denominator in (1, 2, 4, 5, 10)
            some = [str(float(loss))] if exact else ["3.5"]
            yield from ((pipeline, dim, truth, values, epsilon) for epsilon in [*some, str(float(loss) / 2)])


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("pipeline", "dim", "truth", "values", "epsilon"), list(_claims()))
def test_what_verifies_is_true_for_all_numbers_of_its_enclosures(pipeline, dim, truth, values, epsilon):
    certificate = certify(check(pipeline, epsilon=epsilon, dim=dim, **values))
    certificate["steps"] = [step for step in certificate["steps"] if _is_pure(step)]
    assert examine(rechained(certificate)).ok
    assert not list(falsehoods(certificate, truth))
    for path, forged in widened(certificate):
        try:
            found = examine(forged)
        except (CertificateError, InputError):
            continue
        assert not found.ok or not list(falsehoods(forged, truth)), path
