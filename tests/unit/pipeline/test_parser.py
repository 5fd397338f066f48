from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.core.enclosure import exact_fraction
from dpassay.core.numbers import INFINITY, Number, number, real
from dpassay.errors import ExpressionError, InputError
from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteLaplace
from dpassay.pipeline.distributions import Gaussian, Laplace, OneSided
from dpassay.pipeline.parser import MAX_LENGTH, parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.base import STAGES, Stage
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.bounds.round import Round
from dpassay.pipeline.stages.bounds.scaling import Clip, MinMaxScale, Normalise
from dpassay.pipeline.stages.bounds.squash import Squash
from dpassay.pipeline.stages.categories import Bloom, Category, Hash, OneHotEncode
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.pipeline.stages.exponential import Choose, Softmax, TopK
from dpassay.pipeline.stages.functions import Encode, Function
from dpassay.pipeline.stages.noises.additive import Additive, leak, one_sided
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.stages.query import Counts, PersonRows, Query
from dpassay.pipeline.stages.repeat import Repeat
from dpassay.pipeline.stages.sampling import Poisson, Shuffle, Subsample, Times
from dpassay.pipeline.staircase import Staircase
from dpassay.pipeline.truncated_laplace import TruncatedLaplace
from tiers import repetitions

quick = settings(derandomize=True, deadline=None, max_examples=300)


def evaluate(text: str, **values: Any) -> Number:
    """The enclosure of a positive number's text."""
    stage = parse(f"laplace({text})", dim=7, values=values).stages[0]
    assert isinstance(stage, Additive)
    assert isinstance(stage.noise, Laplace)
    return stage.noise.scale


def ends(value: Number) -> tuple[Fraction, Fraction]:
    """Both ends, exactly."""
    return exact_fraction(value.a), exact_fraction(value.b)


def encloses(value: Number, exact: Fraction, width: Fraction = Fraction(1, 10**45)) -> bool:
    low, high = ends(value)
    return low <= exact <= high and high - low <= width * max(abs(exact), Fraction(1, 10**30))


def error(text: str, dim: int | None = 4, **values: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse(text, dim, values)
    assert caught.value.text == text
    return caught.value


# ---- numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("1", Fraction(1)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        ("1e-6", Fraction(1, 10**6)),
        ("1E+2", Fraction(100)),
        ("1.25e3", Fraction(1250)),
        ("1 + 2*3", Fraction(7)),
        ("(1 + 2)*3", Fraction(9)),
        ("10 - 4 - 3", Fraction(3)),
        ("16 / 4 / 2", Fraction(2)),
        ("16 / 4 * 2", Fraction(8)),
        ("2^3^2", Fraction(512)),
        ("2**3**2", Fraction(512)),
        ("2 ^ 3 ** 2", Fraction(512)),
        ("(2^3)^2", Fraction(64)),
        ("2*3^2", Fraction(18)),
        ("10 + -2^2", Fraction(6)),
        ("(-2)^2", Fraction(4)),
        ("-(-2)^3", Fraction(8)),
        ("2^-1", Fraction(1, 2)),
        ("2^--1", Fraction(2)),
        ("2^-2^2", Fraction(1, 16)),
        ("- - 3", Fraction(3)),
        ("-+-3", Fraction(3)),
        ("+3", Fraction(3)),
        ("3 - -2", Fraction(5)),
        ("2*-3*-1", Fraction(6)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1/3", Fraction(1, 3)),
        ("2*C/eps", Fraction(2 * 10, 3)),
        ("dim*C", Fraction(7)),
        ("1 + 0^2", Fraction(1)),
        ("1 + 0^0.5", Fraction(1)),
        ("0^0", Fraction(1)),
        ("1^1e15", Fraction(1)),
        ("\t1\n+\r\n2 ", Fraction(3)),
    ],
)
def test_arithmetic_is_enclosed(text: str, exact: Fraction) -> None:
    used = {name: value for name, value in {"C": "1", "eps": "0.3"}.items() if name in text}
    assert encloses(evaluate(text, **used), exact)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("pi", lambda mp: +mp.pi),
        ("sqrt(2)", lambda mp: mp.sqrt(2)),
        ("2^0.5", lambda mp: mp.sqrt(2)),
        ("exp(1)", lambda mp: mp.e),
        ("exp(-20)", lambda mp: mp.exp(-20)),
        ("ln(10)", lambda mp: mp.log(10)),
        ("exp(ln(3)) * sqrt(pi^2)", lambda mp: 3 * mp.pi),
        ("exp(1e7) / exp(1e7 - 1)", lambda mp: mp.e),
        ("2^-0.75", lambda mp: mp.mpf(2) ** mp.mpf("-0.75")),
        ("sqrt(2*ln(1.25/delta))/eps", lambda mp: mp.sqrt(2 * mp.log(mp.mpf("1.25") / mp.mpf("1e-5"))) / mp.mpf("0.3")),
        ("sqrt(0) + 1", lambda mp: mp.mpf(1)),
    ],
)
def test_functions_agree_with_an_independent_computation(text: str, reference: Callable[[Any], Any]) -> None:
    mp = mpmath.MPContext()
    mp.dps = 90
    used = {name: value for name, value in {"eps": 0.3, "delta": "1e-5"}.items() if name in text}
    value, exact = evaluate(text, **used), reference(mp)
    low, high = (mp.mpf(end.numerator) / end.denominator for end in ends(value))
    slack = exact * mp.mpf("1e-80")
    assert low <= exact + slack
    assert high >= exact - slack
    assert (high - low) / exact < mp.mpf("1e-42")


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("0.3", Fraction(3, 10)),
        (" 0.3\n", Fraction(3, 10)),
        ("+2e-1", Fraction(1, 5)),
        (3, Fraction(3)),
        (0.3, Fraction(3, 10)),
        (np.float64(0.3), Fraction(3, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (number("0.3"), Fraction(3, 10)),
    ],
)
def test_values_of_every_type(value: Any, exact: Fraction) -> None:
    assert encloses(evaluate("C", C=value), exact)


def test_a_negative_value() -> None:
    assert encloses(evaluate("-C", C="-0.25"), Fraction(1, 4))


@pytest.mark.parametrize(
    "value", ["", "abc", "1/3", "0x10", "inf", "nan", "1e", "--1", "[1, 2]", "1 +- 2", "1_000", "٣"]
)
def test_a_value_that_is_no_number(value: str) -> None:
    fault = error("laplace(2*C)", C=value)
    assert fault.position == 10
    assert "expected a number such as" in fault.message
    assert repr(value) in fault.message


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), INFINITY, True, None, [1], 1j])
def test_a_value_that_is_not_finite_or_of_another_type(value: Any) -> None:
    fault = error("laplace(2*C)", C=value)
    assert fault.position == 10
    assert "number, got" in fault.message


def test_a_value_that_is_nan() -> None:
    fault = error("laplace(2*C)", C=float("nan"))
    assert (fault.position, fault.message) == (10, "expected a number, got NaN")


def test_a_long_value_is_shown_in_part() -> None:
    assert len(error("laplace(C)", C="x" * 5000).message) < 200


# A tree of arithmetic: its text with only the parentheses it needs, how tightly it binds, and its exact value.
Tree = tuple[str, int, Fraction | None]
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)


def _inside(tree: Tree, least: int) -> str:
    return tree[0] if tree[1] >= least else f"({tree[0]})"


def _binary(symbol: str, first: Tree, second: Tree) -> Tree:
    level = SUM if symbol in "+-" else PRODUCT
    text = f"{_inside(first, level)} {symbol} {_inside(second, level + 1)}"
    a, b = first[2], second[2]
    if a is None or b is None or (symbol == "/" and b == 0):
        return text, level, None
    return text, level, {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}[symbol]


def _power(base: Tree, exponent: int, symbol: str) -> Tree:
    text = f"{_inside(base, ATOM)}{symbol}{exponent}"
    if base[2] is None or (base[2] == 0 and exponent < 0):
        return text, POWER, None
    return text, POWER, base[2] ** exponent


def _sign(symbol: str, tree: Tree) -> Tree:
    value = -tree[2] if tree[2] is not None and symbol == "-" else tree[2]
    return symbol + _inside(tree, SIGN), SIGN, value


leaves = st.builds(
    lambda digits, places: (str(Fraction(digits)) if not places else f"{digits}e-{places}", ATOM, digits / 10**places),
    st.integers(0, 99).map(Fraction),
    st.integers(0, 2),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(_binary, st.sampled_from("+-*/"), inner, inner),
        st.builds(_power, inner, st.integers(-3, 3), st.sampled_from(["^", "**"])),
        st.builds(_sign, st.sampled_from("+-"), inner),
    ),
    max_leaves=12,
)


@given(trees)
@quick
def test_random_arithmetic_is_enclosed(tree: Tree) -> None:
    text, _, exact = tree
    if exact is None or exact == 0:
        with pytest.raises(ExpressionError):
            evaluate(text)
        return
    assert encloses(evaluate(f"-({text})" if exact < 0 else text), abs(exact), Fraction(1, 10**35))


# ---- numbers that are refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("laplace(1/0)", 9, "division by zero"),
        ("laplace(1 / (1-1))", 10, "division by zero"),
        ("laplace(1/(sqrt(2)^2-2))", 9, "may be zero"),
        ("laplace(ln(0))", 8, "certainly positive"),
        ("laplace(1 + ln(-1))", 12, "certainly positive"),
        ("laplace(ln(sqrt(2)^2-2))", 8, "certainly positive"),
        ("laplace(sqrt(-1))", 8, "0 or more"),
        ("laplace(sqrt(sqrt(2)^2-2))", 8, "0 or more"),
        ("laplace(exp(1e7+1))", 8, "too large"),
        ("laplace(exp(-1e8))", 8, "too large"),
        ("laplace(10^10^10)", 10, "too large"),
        ("laplace(10^(0-10^10))", 10, "too large"),
        ("laplace(1^1e30)", 9, "too large"),
        ("laplace((-10)^(10^8))", 13, "too large"),
        ("laplace((-2)^0.5)", 12, "whole exponent"),
        ("laplace((-2)^(sqrt(2)^2))", 12, "whole exponent"),
        ("laplace((sqrt(2)^2-2)^0.5)", 21, "whole exponent"),
        ("laplace(0^-1)", 9, "certainly positive"),
        ("laplace((sqrt(2)^2-2)^-2)", 21, "certainly positive"),
        ("laplace(0^((sqrt(2)^2-2)^2))", 9, "certainly positive"),
        ("laplace(1e10001)", 8, "exponent"),
        ("laplace(1 + 1e-10001)", 12, "exponent"),
        ("laplace(1e999999999999999999)", 8, "exponent"),
        ("laplace(" + "1" * 1001 + ")", 8, "1001 characters long"),
        ("laplace(1e" + "0" * 5000 + "1)", 8, "characters long"),
    ],
)
def test_numbers_that_are_refused(text: str, position: int, message: str) -> None:
    fault = error(text)
    assert (fault.position, message in fault.message) == (position, True), fault.message


def test_limits_that_are_just_kept() -> None:
    assert encloses(evaluate("3e10000 / 1e10000"), Fraction(3))
    assert encloses(evaluate("3e-10000 / 1e-10000"), Fraction(3))
    assert encloses(evaluate("3" * 1000 + "/1e999"), Fraction((10**1000 - 1) // 3, 10**999))
    assert encloses(evaluate("2^14000000 / 2^13999999"), Fraction(2))


# ---- stages ----------------------------------------------------------------------------------------------------

EVERY_STAGE: list[tuple[str, Stage]] = [
    ("encode", Encode(4)),
    ("counts(l1, 2)", Counts("l1", 2)),
    ("discrete_laplace(scale=2)", Additive(DiscreteLaplace(2))),
    ("discrete_gaussian(2)", Additive(DiscreteGaussian(2))),
    ("truncated_laplace(2, bound=3)", Additive(TruncatedLaplace(2, 3))),
    ("staircase(1, sensitivity=2, gamma=0.25)", Additive(Staircase(1, 2, "0.25"))),
    ("bounded_laplace(2, -1, 3)", BoundedLaplace(2, -1, 3)),
    ("clip(l1, 1.5)", Clip("l1", "1.5")),
    ("clip(l2, 2)", Clip("l2", 2)),
    ("clip(linf, radius=2)", Clip("linf", 2)),
    ("clip(radius=2, norm=linf)", Clip("linf", 2)),
    ("normalise", Normalise()),
    ("normalise()", Normalise()),
    ("normalise(l2)", Normalise("l2")),
    ("normalize(norm=l2)", Normalise("l2")),
    ("minmax", MinMaxScale()),
    ("squash(tanh)", Squash("tanh")),
    ("squash(kind=sigmoid)", Squash("sigmoid")),
    ("category(3)", Category(3)),
    ("onehot(k=2^3)", OneHotEncode(8)),
    ("binary(3, 5)", Binary(3, 5)),
    ("binary(fraction=5, integer=3)", Binary(3, 5)),
    ("query(l2, 0.1)", Query("l2", "0.1")),
    ("query(l2, distance=0.1)", Query("l2", "0.1")),
    ("poisson(0.01)", Poisson("0.01")),
    ("poisson(rate=1)", Poisson(1)),
    ("subsample(256, 60000)", Subsample(256, 60000)),
    ("shuffle(100)", Shuffle(100)),
    ("times(1000)", Times(1000)),
    ("dropout(0.1)", Dropout("0.1")),
    ("dropout(mu=0)", Dropout(0)),
    ("laplace(2)", Additive(Laplace(2))),
    ("laplace(scale=2)", Additive(Laplace(2))),
    ("gaussian(0.7)", Additive(Gaussian("0.7"))),
    ("gaussian(sigma=0.7)", Additive(Gaussian("0.7"))),
    ("radial(l2, 3)", Radial("l2", 3)),
    ("radial(scale=3, norm=linf)", Radial("linf", 3)),
    ("onesided(3)", Additive(OneSided(3))),
    ("onesided(scale=3)", Additive(OneSided(3))),
    ("onesided(3, 1/4)", one_sided(3, "0.25")),
    ("onesided(3, lost=1/2)", one_sided(3, 0, "0.5")),
    ("leak(0.1)", leak("0.1")),
    ("clamp(-1/2, 3)", Clamp("-0.5", 3)),
    ("clamp(high=3, low=0)", Clamp(0, 3)),
    ("repeat(5)", Repeat(5)),
    ("rows", PersonRows()),
    ("hash(7)", Hash(7)),
    ("bloom(32, 2)", Bloom(32, 2)),
    ("bloom(hashes=2, k=32)", Bloom(32, 2)),
    ("exponential(0.5)", Choose("0.5")),
    ("exponential(rate=0.5)", Choose("0.5")),
    ("softmax(0.5)", Softmax("0.5")),
    ("softmax(temperature=1/2)", Softmax("0.5")),
    ("round", Round()),
    ("decode", Function(dim=4)),
]


@pytest.mark.parametrize(("text", "stage"), EVERY_STAGE)
def test_every_stage_alone(text: str, stage: Stage) -> None:
    dim = 1 if isinstance(stage, Category | OneHotEncode | Hash | Bloom) else 4
    assert parse(text, dim=dim) == Pipeline((stage,), dim)


def test_stages_on_bits_and_categories() -> None:
    onehot, three_quarters = OneHotEncode(3), number("0.75")
    assert parse("onehot(3) | flip(keep=0.75)") == Pipeline((onehot, Flip(three_quarters)), 1)
    assert parse("category(3) | flip(0.75)").stages == (Category(3), Flip(three_quarters, 3))
    bits = BitNoise("0.9", "0.8", "0.1")
    assert parse("binary(1, 2) | bits(0.9, 0.8, 0.1)", 5) == Pipeline((Binary(1, 2), bits), 5)
    assert parse("binary(1, 2) | bits(0.9, zero=0.1, odd=0.8)", 5) == Pipeline((Binary(1, 2), bits), 5)


def test_top_k_stands_before_a_choice() -> None:
    assert parse("topk(3) | softmax(2)", 5) == Pipeline((TopK(3), Softmax(2)), 5)
    assert parse("topk(k=3) | exponential(2)", 5) == Pipeline((TopK(3), Choose(2)), 5)
    assert str(parse("clamp(0, 1) | topk(3) | softmax(0.5)", 5)) == "clamp(0, 1) | topk(3) | softmax(0.5)"


def test_a_whole_pipeline() -> None:
    read = parse("encode|clip(l2,C)|laplace(2*C/eps)|decode", dim=32, values={"C": "1", "eps": "1", "delta": "1e-5"})
    assert read == Pipeline((Encode(32), Clip("l2", 1), Additive(Laplace(2)), Function(dim=32)), 32)
    assert parse(str(read), dim=32) == read


def test_the_least_deviation_of_normal_noise() -> None:
    # The exact curve, in 40 digits, meets δ just there, and not with a deviation 10⁻¹² smaller.
    sigma = evaluate("least_sigma(2, 1/10^6, 3)")
    with mpmath.mp.workdps(40):
        exact = mpmath.mpf(str(sigma.mid.a).strip("[]").split(",")[0])
        deltas = []
        for factor in (1, 1 - mpmath.mpf("1e-12")):
            mu = 3 / (exact * factor)
            first, second = (mpmath.ncdf(s * mu / 2 - 2 / mu) for s in (1, -1))
            deltas.append(first - mpmath.exp(2) * second)
        assert deltas[0] <= mpmath.mpf("1e-6") < deltas[1]


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("gaussian(least_sigma(1, 1e-6))", 9, "least_sigma takes epsilon, delta and the l2 distance, got 2 numbers"),
        ("gaussian(least_sigma(1, 0, 2))", 9, "Gaussian noise never gives pure DP"),
        ("laplace(exp(1, 2))", 8, "exp takes one number, got 2"),
        ("clamp(1, 1)", 0, "clamp needs a lower limit below the upper one, got 1 and 1"),
        ("repeat(0)", 7, "repeat: times must be a whole number from 1"),
        ("repeat(1.5)", 7, "repeat needs a whole number, got 1.5"),
        ("bloom(4, 5)", 0, "at most 4 of 4 bits can be ones, got 5"),
        ("onesided(1, 0.7, 0.7)", 0, "zero and lost can add up to at most 1, got 1.4"),
        ("softmax(0)", 8, "softmax: temperature must be positive"),
        ("topk(0) | softmax(1)", 5, "topk: k must be a whole number from 1"),
        ("topk(2)", 0, "topk must come right before exponential or softmax"),
        ("topk(2) | laplace(1)", 0, "topk must come right before exponential or softmax"),
        ("repeat(2) | topk(2) | softmax(1)", 12, "leave repeat out"),
        ("leak(2)", 5, "leak must be a probability, 0 to 1, got 2"),
        ("encode | rows", 9, "rows must be the first stage"),
        ("poisson(0) | gaussian(1)", 8, "poisson needs a sampling rate above 0 and at most 1, got 0"),
        ("poisson(1.2) | gaussian(1)", 8, "poisson needs a sampling rate above 0 and at most 1, got 1.2"),
        ("subsample(3, 2) | gaussian(1)", 0, "subsample needs m at most n, got 3 of 2 records"),
        ("shuffle(0) | gaussian(1)", 8, "shuffle: batches must be a whole number from 1"),
        ("encode | poisson(0.5)", 9, "poisson must be the first stage"),
        ("gaussian(1) | times(0)", 20, "times: steps must be a whole number from 1"),
        ("gaussian(1) | times(2.5)", 20, "times needs a whole number, got 2.5"),
        ("gaussian(1) | times(3) | decode", 25, "times must be the last stage"),
    ],
)
def test_new_arguments_that_are_refused(text: str, position: int, message: str) -> None:
    fault = error(text)
    assert (fault.position, message in str(fault)) == (position, True), str(fault)


def test_the_table_is_a_reference() -> None:
    written = {text.partition("(")[0] for text, _ in EVERY_STAGE} | {"flip", "bits", "topk", "poisson", "times"}
    written |= {"vmf", "purkayastha", "mahalanobis", "noisymax"}
    assert set(STAGES) == written - {"normalize"}
    for name, form in STAGES.items():
        assert {parameter.kind for parameter in form.syntax.arguments.values()} <= {"word", "number", "whole"}
        assert form.help
        assert form.help[0].islower()
        assert not form.help.endswith(".")
        assert form.syntax.usage.startswith(name)
    assert STAGES["bits"].syntax.usage == "bits(even, odd, zero)"
    assert {name: p.kind for name, p in STAGES["binary"].syntax.arguments.items()} == dict.fromkeys(
        ("integer", "fraction"), "whole"
    )
    with pytest.raises(FrozenInstanceError):
        STAGES["bits"].syntax.name = ""  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("onehot(2.5)", 7, "onehot needs a whole number, got 2.5"),
        ("category(sqrt(2)^2 + 1e-19)", 9, "category needs a whole number, got 2"),
        ("onehot(3 + 1e-30)", 7, "onehot needs a whole number, got 3"),
        ("binary(1, 1/3)", 10, "binary needs a whole number, got 0.333333333333"),
        ("onehot(2^60)", 7, "onehot needs a whole number of at most 9007199254740992 in size"),
        ("onehot(2^14000000)", 7, "onehot needs a whole number of at most 9007199254740992 in size"),
        ("category(0)", 9, "dimension must be a whole number from 1"),
        ("binary(-1, 2)", 0, "binary needs a whole number of integer bits from 0 to 30, got -1"),
        ("round | binary(2, 40)", 8, "fraction bits from 0 to 30, got 40"),
    ],
)
def test_whole_numbers_that_are_refused(text: str, position: int, message: str) -> None:
    fault = error(text)
    assert (fault.position, message in fault.message) == (position, True), fault.message


def test_a_wide_enclosure_is_no_whole_number() -> None:
    assert error("onehot(C)", C=real(["2.75", "3.25"])).message == "onehot needs a whole number, got 3"


def test_whole_numbers_may_be_computed() -> None:
    assert parse("onehot(0.1*30)").stages == (OneHotEncode(3),)
    assert parse("onehot(sqrt(16))").stages == (OneHotEncode(4),)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("laplace(-1)", 8, "Laplace scale must be positive and finite, got -1"),
        ("encode | laplace(1-1)", 17, "Laplace scale must be positive and finite, got 0"),
        ("gaussian(sigma=-2)", 15, "sigma must be positive and finite, got -2"),
        ("onesided(0)", 9, "exponential scale must be positive and finite, got 0"),
        ("exponential(0)", 12, "exponential: rate must be positive"),
        ("encode | clip(l2, -1)", 9, "clipping constant must be positive and finite, got -1"),
        ("query(l2, 0)", 0, "sensitivity must be positive"),
        ("dropout(1)", 8, "dropout needs a probability"),
        ("onehot(3) | flip(1.5)", 17, "flip: keep must be a probability, 0 to 1, got 1.5"),
        ("onehot(3) | bits(0.5, -0.5, 0)", 12, "bits: odd must be a probability, 0 to 1, got -0.5"),
        ("normalise(l1)", 10, "normalise supports only l2, got 'l1'"),
    ],
)
def test_what_a_stage_refuses_is_pointed_at(text: str, position: int, message: str) -> None:
    fault = error(text)
    assert (fault.position, message in fault.message) == (position, True), fault.message
    assert "^" not in fault.message


def test_a_probability_that_may_stick_out_by_rounding_is_cut_to_1() -> None:
    stage = parse("onehot(3) | flip(0.1*10)").stages[1]
    assert isinstance(stage, BitNoise)
    assert stage.even.b == 1
    assert stage.even.a > 0.999


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("clip(l2, 1) | flip(0.9)", 14, "flip cannot be applied to its input here: put binary"),
        (
            "encode | round | flip(0.9) | decode | clip(l2, 1)",
            17,
            "flip cannot be applied to its input here: put binary",
        ),
        ("flip(0.5)", 0, "flip cannot be applied to its input here: put binary"),
        ("encode | bits(1, 1, 0) | decode", 9, "bits cannot be applied to its input here: put binary"),
        ("encode | query(l2, 1) | laplace(1)", 9, "query must be the first stage"),
        ("encode | dropout(0.5)", 9, "dropout works on words"),
        ("category(3) | laplace(1)", 14, "noise cannot be added to a category's name"),
        ("category(3) | exponential(1)", 14, "exponential needs a vector of scores"),
        ("round | category(3)", 8, "category(3) takes one value, but its input has 4 coordinates"),
    ],
)
def test_what_a_pipeline_refuses_is_pointed_at(text: str, position: int, message: str) -> None:
    fault = error(text, 1) if text.startswith("category") else error(text)
    assert (fault.position, message in fault.message) == (position, True), fault.message


# ---- the text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "expected a stage"),
        ("  \n", 3, "expected a stage"),
        ("|", 0, "expected a stage"),
        ("| round", 0, "expected a stage"),
        ("round |", 6, "a stage is missing after this '|'"),
        ("round |  ", 6, "a stage is missing after this '|'"),
        ("round || round", 7, "expected a stage"),
        ("round | | round", 8, "expected a stage"),
        ("3", 0, "expected a stage"),
        ("(round)", 0, "expected a stage"),
        ("round round", 6, "expected '|' or the end"),
        ("round)", 5, "expected '|' or the end"),
        ("laplace(1))", 10, "expected '|' or the end"),
        ("laplace 1", 0, "laplace needs scale: write laplace(scale)"),
        ("clop(l2, 1)", 0, "did you mean 'clip'?"),
        ("round | sqrt(2)", 8, "unknown stage 'sqrt'; 'dpassay check --stages' lists all"),
        ("round | laplace(1", 15, "this '(' is never closed"),
        ("laplace((1 + 2)", 7, "this '(' is never closed"),
        ("laplace(sqrt(2)", 7, "this '(' is never closed"),
        ("laplace(2*(1 + 2", 10, "this '(' is never closed"),
        ("laplace(2*sqrt(2", 14, "this '(' is never closed"),
        ("laplace(", 8, "expected a number"),
        ("clip(", 5, "norm must be one of"),
        ("laplace(1 +)", 11, "expected a number"),
        ("laplace(*2)", 8, "expected a number"),
        ("laplace(1 * / 2)", 12, "expected a number"),
        ("laplace(())", 9, "expected a number"),
        ("laplace(2^)", 10, "expected a number"),
        ("laplace(-)", 9, "expected a number"),
        ("laplace(2 C)", 10, "to multiply, write *"),
        ("laplace(2C)", 9, "to multiply, write *"),
        ("laplace(1e)", 9, "to multiply, write *"),
        ("laplace(1..5)", 10, "expected ',' or ')'"),
        ("laplace(1 = 2)", 10, "expected ',' or ')'"),
        ("laplace(2*(1, 2))", 12, "expected ')'"),
        ("laplace(sqrt(1, 2))", 8, "sqrt takes one number, got 2"),
        ("laplace(1 | 2)", 10, "expected ',' or ')'"),
        ("laplace()", 0, "laplace needs scale"),
        ("round | clip(l2)", 8, "clip needs radius: write clip(norm, radius)"),
        ("clip", 0, "clip needs norm and radius"),
        ("bits(odd=1)", 0, "bits needs even and zero"),
        ("laplace(1, 2)", 11, "laplace takes no more arguments: write laplace(scale)"),
        ("laplace(1,)", 10, "laplace takes no more arguments"),
        ("round(1)", 6, "round takes no more arguments: write round"),
        ("clip(l2,)", 8, "expected a number"),
        ("clip(, 1)", 5, "norm must be one of l1, l2, linf"),
        ("clip(1, l2)", 5, "norm must be one of l1, l2, linf, got '1'"),
        ("clip(C, l2)", 5, "norm must be one of l1, l2, linf, got 'C'"),
        ("clip(l3, 1)", 5, "norm must be one of l1, l2, linf, got 'l3'"),
        ("clip(l2 + 1, 1)", 8, "expected ',' or ')'"),
        ("squash(l2)", 7, "kind must be one of tanh, sigmoid, got 'l2'"),
        ("laplace(l2)", 8, "expected a number, got the word 'l2'"),
        ("laplace(2*tanh)", 10, "expected a number, got the word 'tanh'"),
        ("laplace(sqrt)", 8, "write sqrt(...)"),
        ("laplace(clip)", 8, "expected a number, got the word 'clip'"),
        ("laplace(log(2))", 8, "unknown function 'log'; known: exp, ln, sqrt"),
        ("laplace(pi(2))", 8, "unknown function 'pi'"),
        ("clip(l2, radios=1)", 9, "did you mean 'radius'?"),
        ("clip(l2, 1, radios=1)", 12, "clip takes no parameter 'radios'"),
        ("round(x=1)", 6, "round takes no parameter 'x'"),
        ("clip(l2, norm=l1)", 9, "norm is given twice"),
        ("clip(l2, radius=1, radius=1)", 19, "radius is given twice"),
        ("clip(radius=1, l2)", 15, "arguments without a name must come before"),
        ("laplace(scale=)", 14, "expected a number"),
        ("laplace(scale==1)", 14, "expected a number"),
        ("laplace(1) # why", 11, "unknown character '#'"),
        ("laplace(ε)", 8, r"unknown character '\u03b5'; write eps"),
        ("laplace(2·eps)", 9, r"unknown character '\xb7'; write *"),
        ("clamp(−1, 1)", 6, r"unknown character '\u2212'; write -"),
        ("clip(l1, √2)", 9, r"unknown character '\u221a'; write sqrt(…)"),
        ("laplace(２)", 8, r"unknown character '\uff12'"),
        ("laplace(1)\x00", 10, r"unknown character '\x00'"),
        ("laplace(\x1b[31m1)", 8, r"unknown character '\x1b'"),
        ("laplace(1)\u00a0", 10, r"unknown character '\xa0'"),
        ("laplace(\ud800)", 8, r"unknown character '\ud800'"),
        ("__import__('os')", 11, 'unknown character "\'"'),
        ("laplace(__import__(1))", 8, "unknown function '__import__'"),
        ("laplace(1 if 1 else 2)", 10, "expected ',' or ')'"),
        ("laplace(.)", 8, "unknown character '.'"),
    ],
)
def test_faults_in_the_text_are_pointed_at(text: str, position: int, message: str) -> None:
    fault = error(text)
    assert (fault.position, message in fault.message) == (position, True), (fault.position, fault.message)


def test_long_deep_and_wide_texts() -> None:
    assert error("x" * (MAX_LENGTH + 1)).position == MAX_LENGTH
    assert "10001 characters" in error(" " * (MAX_LENGTH + 1)).message
    assert parse("round" + " " * (MAX_LENGTH - 5), 1).stages == (Round(),)

    assert encloses(evaluate("(" * 100 + "1" + ")" * 100), Fraction(1))
    fault = error("laplace(" + "(" * 101 + "1" + ")" * 101 + ")")
    assert (fault.position, "nested too deeply" in fault.message) == (108, True)
    assert error("laplace(" + "sqrt(" * 101 + "1" + ")" * 101 + ")").position == 8 + 5 * 101 - 1
    assert "nested too deeply" in error("laplace(" + "(" * 9000).message
    assert encloses(evaluate(" + ".join(["(1)"] * 500)), Fraction(500))

    assert len(parse(" | ".join(["round"] * 100), 1).stages) == 100
    fault = error("|".join(["round"] * 101))
    assert (fault.position, "at most 100" in fault.message) == (600, True)


def test_long_chains_do_not_recurse() -> None:
    assert encloses(evaluate("-" * 5000 + "1"), Fraction(1))
    assert encloses(evaluate("1^" * 2000 + "1"), Fraction(1))
    assert encloses(evaluate("1+" * 4000 + "1"), Fraction(4001))
    assert encloses(evaluate("1*" * 4000 + "1"), Fraction(1))


def test_the_deepest_text_leaves_room_on_the_stack() -> None:
    def under(frames: int) -> Number:
        return under(frames - 1) if frames else evaluate("1+2*(" * 100 + "0" + ")" * 100)

    assert encloses(under(300), Fraction(2**100 - 1))


# ---- names -----------------------------------------------------------------------------------------------------


def test_unknown_names() -> None:
    fault = error("laplace(2*Cl)", C="1", Z="2")
    assert fault.position == 10
    assert fault.message == (
        "unknown name 'Cl'; known: C, Z, dim, pi; pass parameters={'Cl': VALUE}; did you mean 'C'?"
    )
    fault = error("query(l1, 1) | laplace(zzz)", dim=None)
    assert fault.message == "unknown name 'zzz'; known: pi; pass parameters={'zzz': VALUE}"
    assert "did you mean 'eps'?" in error("laplace(epsilon)").message


@pytest.mark.parametrize(("name", "argument"), [("eps", "epsilon=1"), ("delta", "delta=VALUE"), ("dim", "dim=N")])
def test_names_that_come_from_an_argument(name: str, argument: str) -> None:
    fault = error(f"query(l1, 1) | laplace(1/{name})", dim=None)
    assert (fault.position, argument in fault.message) == (25, True)


@pytest.mark.parametrize(
    "name", ["sqrt", "ln", "exp", "pi", "l1", "l2", "linf", "tanh", "sigmoid", "clip", "normalize"]
)
def test_names_with_a_meaning_cannot_be_given(name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}' cannot name a parameter"):
        parse("round", 1, {name: 1})


@pytest.mark.parametrize("name", ["", "1C", "C D", "ε", "C=", "-C", "C\n"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InputError, match="cannot name a parameter"):
        parse("round", 1, {name: 1})


def test_values_that_are_not_used() -> None:
    with pytest.raises(InputError, match="never used in the pipeline: D, E") as caught:
        parse("laplace(C)", 1, {"C": 1, "E": 1, "D": 1})
    assert not isinstance(caught.value, ExpressionError)
    assert parse("round", 1, {"eps": 1, "delta": "1e-5", "dim": 1})
    # A parameter's name is not a use of the value.
    with pytest.raises(InputError, match="never used in the pipeline: scale"):
        parse("laplace(scale=1)", 1, {"scale": 1})
    assert encloses(evaluate("scale=scale", scale=3), Fraction(3))


def test_values_of_unused_options_are_not_read() -> None:
    assert parse("round", 1, {"eps": "inf"})


def test_the_values_given_are_left_alone() -> None:
    values = {"C": "1", "dim": 3}
    parse("laplace(C)", None, values)
    assert values == {"C": "1", "dim": 3}


# ---- the dimension ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "category(3) | flip(0.9)",
        "onehot(5) | laplace(1)",
        "onehot(5) | gaussian(1) | decode",
        "onehot(5) | flip(0.9) | flip(0.8)",
        "query(l1, 1) | laplace(1)",
        "query(l1, 1) | gaussian(1)",
        "query(l2, 1) | gaussian(1)",
        "query(l2, 1) | clip(l2, 3) | gaussian(1) | round",
        "query(l1, 1) | clip(l1, 3) | laplace(1) | clip(l2, 1)",
        "query(l2, 1) | gaussian(1) | gaussian(2)",
        "query(l1, 1) | decode | laplace(1)",
    ],
)
def test_pipelines_that_need_no_dimension(text: str) -> None:
    assert parse(text).dim == 1


@pytest.mark.parametrize(
    "text",
    [
        "clip(l2, 1) | laplace(1)",
        "clip(l2, 1) | gaussian(1)",
        "encode | normalise | gaussian(1)",
        "dropout(0.5) | encode | clip(l1, 1) | laplace(1)",
        "category(3) | encode | clip(l2, 1) | laplace(1)",
        "query(l2, 1) | laplace(1)",
        "query(linf, 1) | laplace(1)",
        "query(linf, 1) | gaussian(1)",
        "query(l1, 1) | onesided(1)",
        "query(l1, 1) | exponential(1)",
        "query(l1, 1) | clip(l2, 1) | laplace(1)",
        "query(l1, 1) | minmax | clip(l1, 1) | laplace(1)",
        "query(l1, 1) | squash(tanh) | laplace(1)",
        "query(l1, 1) | round | laplace(1)",
        "query(l2, 1) | round | gaussian(1)",
        "query(l1, 1) | binary(2, 2) | flip(0.9)",
        "query(l2, 1) | gaussian(1) | laplace(1)",
        "query(l1, 1) | laplace(9) | clip(l2, 1) | laplace(1)",
        "query(l1, 1)",
    ],
)
def test_pipelines_that_need_a_dimension(text: str) -> None:
    with pytest.raises(InputError, match=r"^this pipeline depends on the dimension of its vectors: pass dim=N$"):
        parse(text)
    assert parse(text, dim=3).dim == 3


def test_the_dimension_is_checked() -> None:
    for dim in (0, -1, 2.5, 10**8, float("nan"), "x"):
        with pytest.raises(InputError):
            parse("round", dim)  # type: ignore[arg-type]


def test_the_dimension_among_the_values() -> None:
    assert parse("encode | laplace(dim)", None, {"dim": "32"}) == Pipeline((Encode(32), Additive(Laplace(32))), 32)
    assert parse("round", 32, {"dim": "32"}).dim == 32
    with pytest.raises(InputError, match="two dimensions were given: 16 and 32"):
        parse("round", 32, {"dim": "16"})
    with pytest.raises(InputError, match=r"sensitivity must lie between 1e-300 and 1e300, got 1\.0e\+?400"):
        parse("query(l1, 1e400) | laplace(1)")
    with pytest.raises(InputError, match=r"dimension must be a whole number from 1 to 10,000,000, got 2\.5"):
        parse("round", None, {"dim": "2.5"})


def test_faults_come_before_the_question_for_the_dimension() -> None:
    assert error("encode | flip(0.9)", dim=None).position == 9


# ---- anything at all -------------------------------------------------------------------------------------------

PIECES = [
    *STAGES,
    *("|", "(", ")", ",", "=", "+", "-", "*", "/", "^", "**", " ", "\n", "é", "\x00", ".", "1.e"),
    *("l1", "l2", "linf", "tanh", "sigmoid", "sqrt", "ln", "exp", "pi", "eps", "dim", "C", "x", "norm"),
    *("0", "1", "2", "0.5", "0.1*10", "1e-60", "1e5000", "1e-5000", "1e99999", "exp(1e7)", "exp(-1e7)", "3^9^9"),
]
NUMBERS = [
    "1",
    "2",
    "0.5",
    "0.9",
    "1/3",
    "0.1*10",
    "1e-60",
    "1e300",
    "1e5000",
    "1e-5000",
    "exp(1e7)",
    "-1",
    "0",
    "C",
    "dim",
]


def _stages() -> st.SearchStrategy[str]:
    numbers = st.sampled_from(NUMBERS)
    kinds = {"word": st.sampled_from(["l1", "l2", "linf", "tanh", "sigmoid"]), "whole": numbers, "number": numbers}

    def arguments(name: str) -> st.SearchStrategy[str]:
        parts = st.tuples(*(kinds[parameter.kind] for parameter in STAGES[name].syntax.arguments.values()))
        return parts.map(lambda given: f"{name}({', '.join(given)})")

    return st.sampled_from(list(STAGES)).flatmap(arguments)


texts = st.one_of(
    st.text(),
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
    st.lists(_stages(), min_size=1, max_size=5).map(" | ".join),
)


@given(texts, st.sampled_from([None, 1, 2, 5]), st.sampled_from([{}, {"C": "0.7"}, {"C": real([-1, 2]), "eps": 1}]))
@settings(quick, max_examples=repetitions(300, 600))
def test_any_text_is_read_or_refused(text: str, dim: int | None, values: dict[str, Any]) -> None:
    fault = None
    try:
        assert isinstance(parse(text, dim, values), Pipeline)
    except InputError as refused:
        fault = refused
    if isinstance(fault, ExpressionError):
        assert 0 <= fault.position <= len(text)
    assert fault is None or str(fault)


def test_a_text_that_is_cut_says_so() -> None:
    long = " | ".join(["clip(l2, 1)"] * 12 + ["clop(1)"] + ["clip(l2, 1)"] * 8)
    shown = str(error(long)).splitlines()
    assert shown[1].startswith("  …")
    assert shown[1].endswith("…")
    assert shown[1][shown[2].index("^") :].startswith("clop(1)")
    short = "subsample(5, 3) | clip(l2, 1) | laplace(1)"
    assert str(error(short)).splitlines()[1] == f"  {short}"
