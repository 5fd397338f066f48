"""Rényi divergences of the exponential mechanism: docs/proofs/exponential.md, points 8 and 9."""

import itertools
import math

import numpy as np
import pytest

from dpassay import ZCDP, RenyiDP, certify, check, verify
from dpassay.core.numbers import down, number, up
from dpassay.errors import CertificateError
from dpassay.exact.analysis import analyse
from dpassay.exact.guarantees.renyi import renyi
from dpassay.pipeline.parser import parse
from forging import exactly, rechained

ORDERS = [1.01, 1.5, 2.0, 4.0, 16.0]


def found(text: str, dim: int, order: float) -> tuple[float, float]:
    """What a pair shows, and the bound on all pairs."""
    pipeline = parse(text, dim)
    shown, bound = renyi(analyse(pipeline, pipeline.neighbours), number(order))
    return down(shown.value), up(bound)


def divergence(first: np.ndarray, second: np.ndarray, order: float) -> float:
    """Of the softmax of two vectors of scores."""
    p, q = (np.exp(u - u.max()) / np.exp(u - u.max()).sum() for u in (first, second))
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


def two_losses(top: float, span: float, order: float) -> float:
    """The divergence of two outputs with the losses t and t − r, from their probabilities."""
    p = math.expm1(top - span) / math.expm1(-span)
    losses = ((p, top), (1 - p, top - span))
    return math.log(sum(chance * math.exp((order - 1) * loss) for chance, loss in losses)) / (order - 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("query(linf, 1) | exponential(1)", 2.0),
        ("query(l1, 3) | softmax(2)", 1.5),
        ("query(l2, 1) | exponential(2)", 2 * math.sqrt(2)),
        ("query(linf, 1, monotone) | exponential(1)", 1.0),
    ],
)
def test_answers_to_a_query_reach_the_bound(text: str, span: float, order: float) -> None:
    """Both ends are the largest divergence of two losses whose difference is the range."""
    truth = max(two_losses(span * i / 4000, span, order) for i in range(1, 4000))
    low, high = found(text, 5, order)
    assert high == pytest.approx(truth, rel=1e-5)
    assert low == pytest.approx(high, rel=1e-12)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("width", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_rows_by_enumeration(dim: int, width: float, order: float) -> None:
    """No two rows of a grid exceed the upper end, and some nearly reach it."""
    grid = np.linspace(0, width, 13)
    best = max(
        max(divergence(np.array([x, *rest]), np.array([y, *rest]), order) for x in grid for y in grid)
        for rest in itertools.combinations_with_replacement(grid, dim - 1)
    )
    low, high = found(f"rows | clamp(0, {width}) | exponential(1)", dim, order)
    assert best <= high * (1 + 1e-9)
    assert high == pytest.approx(best, rel=2e-2)
    assert low == pytest.approx(high, rel=1e-9)


def test_where_the_best_loss_is_not_possible() -> None:
    """Five rows of width 1: one at the top and four at the bottom, against all at the bottom."""
    truth = divergence(np.array([1.0, 0, 0, 0, 0]), np.zeros(5), 2)
    assert found("rows | clamp(0, 1) | exponential(1)", 5, 2) == pytest.approx((truth, truth), rel=1e-12)


@pytest.mark.parametrize(("dim", "width"), [(7, 1.0), (50, 3.0)])
@pytest.mark.parametrize("order", ORDERS)
def test_the_best_split_of_a_cube(dim: int, width: float, order: float) -> None:
    """The lower end is no less than what any split of the outputs shows."""
    splits = []
    for size in range(1, dim):
        first = np.where(np.arange(dim) < size, width, 0.0)
        splits.append(divergence(first, width - first, order))
    low, high = found(f"clamp(0, {width}) | exponential(1)", dim, order)
    assert max(splits) <= low * (1 + 1e-9)
    assert low <= high


@pytest.mark.parametrize(
    ("text", "pure", "pair"),
    [
        ("counts(linf, 1) | exponential(1)", 2.0, ([1.0, 0, 0, 0, 0], [0.0, 1, 1, 1, 1])),
        ("counts(l1, 1) | exponential(1)", 1.0, ([1.0, 0, 0, 0, 0], [0.0] * 5)),
        ("counts(l2, 1) | exponential(1)", 1.0, ([1.0, 0, 0, 0, 0], [0.0] * 5)),
        ("counts(l1, 1) | repeat(3) | exponential(1)", 1.0, ([1.0, 0, 0, 0, 0], [0.0] * 5)),
    ],
)
def test_counts(text: str, pure: float, pair: tuple[list[float], list[float]]) -> None:
    """Base points may be any integers: the largest loss is approached, and no divergence is below a known pair's."""
    for claimed, word in ((pure, "proven"), (pure * (1 - 1e-9), "refuted")):
        verdict = check(text, epsilon=claimed, dim=5)
        assert verdict.word == word
        assert verify(certify(verdict)).verdict == word
    for order in ORDERS:
        known = divergence(np.array(pair[0]), np.array(pair[1]), order)
        low, high = found(text, 5, order)
        assert known <= low * (1 + 1e-9) <= high * (1 + 2e-9)


ROWS = divergence(np.array([1.0, 0, 0, 0, 0]), np.zeros(5), 2)
ANSWERS = max(two_losses(2 * i / 40000, 2.0, 2) for i in range(1, 40000))


@pytest.mark.parametrize(
    ("text", "truth"), [("rows | clamp(0, 1) | exponential(1)", ROWS), ("query(linf, 1) | exponential(1)", ANSWERS)]
)
def test_certificates(text: str, truth: float) -> None:
    """Claims on both sides of the truth are decided, and the verifier refuses one that states less."""
    for claimed, word in ((truth * (1 + 1e-6), "proven"), (truth * (1 - 1e-6), "refuted")):
        verdict = check(text, guarantee=RenyiDP(2, claimed), dim=5)
        assert verdict.word == word
        assert verify(certify(verdict)).verdict == word
    written = certify(check(text, guarantee=RenyiDP(2, truth * (1 + 1e-6)), dim=5))
    data = written if isinstance(written, dict) else written.to_data()
    stated = str(truth * (1 + 1e-6))
    less = str(truth * (1 - 1e-6))
    steps = [_changed(step, stated, less) for step in data["steps"]]
    assert steps != data["steps"]
    with pytest.raises(CertificateError):
        verify(rechained({**data, "steps": steps}))


def _changed(value: object, old: str, new: str) -> object:
    """The same with one number in place of another, wherever it stands."""
    if isinstance(value, dict):
        return {key: _changed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return exactly(new) if value == exactly(old) else [_changed(each, old, new) for each in value]
    return value


def test_rho_of_answers() -> None:
    """The limit at order 1 of the largest divergence: that of two losses with the best t."""
    truth = max(two_losses(2 * i / 4000, 2.0, 1 + 1e-6) for i in range(1, 4000))
    for claimed, word in ((truth * 1.001, "proven"), (truth * 0.999, "refuted")):
        verdict = check("query(linf, 1) | exponential(1)", guarantee=ZCDP(claimed), dim=5)
        assert verdict.word == word
        assert verify(certify(verdict)).verdict == word
