"""The oracle is right where it is easy to tell: against integrals, all mixtures of a few outputs, random inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

from oracle import Statement, Unreadable, false_statement, truth_of
from oracle.text import formula
from oracles import hockey_stick, laplace_density

TESTS = Path(__file__).parents[1]


def test_it_imports_nothing_of_dpassay() -> None:
    code = "import sys, oracle, random_pipelines, mutations; print([m for m in sys.modules if m.startswith('dpassay')])"
    path = os.pathsep.join([str(TESTS), str(TESTS / "support")])
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("epsilon", ["0", "0.3", "1.4"])
def test_laplace_and_gaussian_against_integrals(epsilon: str) -> None:
    e = mpf(epsilon)
    laplace = hockey_stick(laplace_density, lambda t: laplace_density(t - 3), e, [0, 3], 1)
    low, high = truth_of("rows | clamp(-1, 2) | laplace(1)", {}, 4, "replace-record").delta(e)
    assert low == pytest.approx(laplace, rel=1e-12)
    assert high == pytest.approx(laplace, rel=1e-12)
    gaussian = hockey_stick(mp.npdf, lambda t: mp.npdf(t - 2), e, [0, 2], 1)
    low, high = truth_of("clip(l2, 2) | gaussian(2)", {}, 4, "any").delta(e)
    assert low == pytest.approx(gaussian, rel=1e-10)
    assert high == pytest.approx(gaussian, rel=1e-10)


def laplace_cells(gap: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses of Laplace noise around 0 and around a gap: both tails, and `count` cells between."""
    edges = np.linspace(0, gap, count + 1)
    between = np.diff(-np.exp(-edges) / 2), np.diff(np.exp(edges - gap) / 2)
    tail = np.exp(-gap) / 2
    return np.concatenate([[0.5], between[0], [tail]]), np.concatenate([[tail], between[1], [0.5]])


@pytest.mark.parametrize("text", ["clip(l2, 1) | laplace(1)", "clip(l1, 1) | laplace(1)", "clip(linf, 1) | laplace(1)"])
def test_no_shift_in_the_plane_beats_the_upper_end(text: str) -> None:
    """Merging cells is post-processing, so that what they show is reached."""
    norm = {"l2": 2, "l1": 1, "linf": np.inf}[text[5 : text.index(",")]]
    known, most = truth_of(text, {}, 2, "any"), 0.0
    for angle in np.linspace(0, np.pi / 2, 19):
        direction = np.array([np.cos(angle), np.sin(angle)])
        gaps = 2 * direction / np.linalg.norm(direction, ord=norm)
        (p1, q1), (p2, q2) = (laplace_cells(gap, 300) for gap in gaps)
        excess = np.multiply.outer(p1, p2) - np.exp(0.5) * np.multiply.outer(q1, q2)
        most = max(most, float(np.maximum(0, excess).sum()))
    low, high = known.delta(mpf("0.5"))
    assert most <= high
    assert most == pytest.approx(float(low), rel=0.03)


def chosen(scores: np.ndarray, rate: float) -> np.ndarray:
    weights = np.exp(rate * scores)
    return weights / weights.sum(axis=1, keepdims=True)


def test_no_scores_in_a_cube_beat_its_vertices() -> None:
    rng, known = np.random.default_rng(0), truth_of("clamp(0, 1) | exponential(2)", {}, 3, "any")
    x, y = (rng.beta(0.2, 0.2, size=(20_000, 3)) for _ in range(2))
    p, q = chosen(x, 2), chosen(y, 2)
    assert 0.95 * float(known.pure[0]) < np.log(p / q).max() <= known.pure[1]
    for e in (0.0, 0.5, 2.0):
        most = np.maximum(0, p - np.exp(e) * q).sum(axis=1).max()
        assert 0.9 * float(known.delta(mpf(e))[0]) < most <= known.delta(mpf(e))[1]


def test_a_dropped_word_against_all_mixtures() -> None:
    """Both texts give the third one's output with probability 0.4: all triples of three categories."""
    keep, other = 0.7, 0.15
    rows = np.full((3, 3), other) + np.eye(3) * (keep - other)
    e = 0.3
    mixed = [
        np.maximum(0, 0.6 * rows[a] + 0.4 * rows[c] - np.exp(e) * (0.6 * rows[b] + 0.4 * rows[c])).sum()
        for a in range(3)
        for b in range(3)
        for c in range(3)
    ]
    known = truth_of("category(3) | flip(0.7)", {}, 1, "any").behind_dropout(mpf("0.4"))
    assert known.delta(mpf(e))[0] == pytest.approx(max(mixed), rel=1e-9)


def test_texts_mean_what_they_mean() -> None:
    values = {"C": mpf(3)}
    assert formula("-2^2^C/4 + C*(1-.5e1)", values) == -64 - 12
    assert formula("2**3", values) == 8
    for text in (
        "clip(l3, 1)",
        "C.real",
        "laplace(D)",
        "clip(l2, 1)) | laplace(1)",
        "__import__('os')",
        "laplace(1/0)",
    ):
        with pytest.raises(Unreadable):
            truth_of(text, values, 1, "any")


def test_what_is_false_is_called_false() -> None:
    known = truth_of("clip(l1, 1) | laplace(2)", {}, 4, "any")
    one, tiny = mpf(1), mpf("1e-9")
    assert false_statement(known, Statement("proven", one, mpf(0))) is None
    assert false_statement(known, Statement("proven", one - tiny, mpf(0)))
    assert false_statement(known, Statement("refuted", one, mpf(0)))
    assert false_statement(known, Statement("refuted", one - tiny, mpf(0))) is None
    assert false_statement(known, Statement("epsilon at least", one + tiny, mpf(0)))
    at_half = -mp.expm1(mpf("-0.25"))
    assert false_statement(known, Statement("delta at most", mpf("0.5"), at_half * (1 + tiny))) is None
    assert false_statement(known, Statement("delta at most", mpf("0.5"), at_half * (1 - tiny)))
    assert false_statement(known, Statement("epsilon at most", mpf("0.5") - tiny, at_half))
    assert false_statement(known, Statement("epsilon at least", mpf("0.5") + tiny, at_half))
