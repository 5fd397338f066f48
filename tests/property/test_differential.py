"""Random pipelines, judged by dpassay and by an oracle that shares nothing with it: no two statements may disagree.

The oracle (tests/oracle) enumerates finite mechanisms and integrates noise; what it knows is an interval, and so is
what dpassay says. Both contain the truth, so they overlap: at δ = 0, at the claimed δ, and where a guarantee is said to
hold.
"""

from __future__ import annotations

from collections import Counter

import pytest
from differential_cases import KEPT
from mpmath import mp, mpf

from dpassay import check, compose
from dpassay.errors import InputError
from oracle import Statement, Unreadable, composed_truth, false_statement
from random_pipelines import Case, Maker

SEED = 20261116


def disagreements(case: Case) -> list[str]:
    """What dpassay says of a case and the oracle knows to be false. Refusals are no statements."""
    try:
        verdict = check(case.text, **case.arguments)
    except InputError:
        return ["refused"]
    try:
        truth = case.truth
    except Unreadable:
        return ["unknown"]
    with mp.workdps(50):
        e, d = mpf(case.epsilon), mpf(case.delta)
        said = [
            Statement("epsilon at least", mpf(verdict.epsilon.lower), d),
            Statement("epsilon at most", mpf(verdict.epsilon.upper), d),
            *(Statement("epsilon at most", mpf(held.upper), mpf(repr(at))) for at, held in verdict.holds),
        ]
        if verdict.delta is not None:
            said.append(Statement("delta at least", e, mpf(verdict.delta.lower)))
            said.append(Statement("delta at most", e, mpf(verdict.delta.upper)))
        if verdict.word != "open":
            said.append(Statement(verdict.word, e, d))
        return [why for statement in said if (why := false_statement(truth, statement))]


def examine(case: Case) -> str:
    """One word for what came of a case; a disagreement fails."""
    try:
        found = disagreements(case)
    except Exception as error:
        raise AssertionError(f"{case} ends in {type(error).__name__}: {error}") from error
    if found in (["refused"], ["unknown"]):
        return found[0]
    assert not found, f"{case}: {found}"
    return "agrees"


@pytest.mark.long(reduced=15, full=600)
@pytest.mark.parametrize("part", range(4))
def test_random_pipelines_agree_with_the_oracle(part: int, repetitions: int) -> None:
    maker, outcomes, failures = Maker(SEED + part), Counter[str](), []
    for _ in range(repetitions):
        case = maker.case()
        try:
            outcomes[examine(case)] += 1
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join([f"{len(failures)} of {repetitions}", *failures[:40]])
    # Most cases are judged by both: a generator that makes only refused pipelines would find nothing.
    assert outcomes["agrees"] >= repetitions * 0.7, outcomes


def composed_wrongly(texts: list[str], dim: int, delta: str) -> str:
    """Why what `compose` says of two mechanisms is false, or nothing."""
    said, truth = compose(*texts, delta=delta, dim=dim), composed_truth(texts, dim)
    with mp.workdps(50):
        at = mpf(delta)
        for name, found in (("exact", said.exact), ("basic", said.basic)):
            most = Statement("epsilon at most", mpf(found.upper), at)
            if why := false_statement(truth, most):
                return f"{name} {texts}, dim {dim}: {why}"
        return false_statement(truth, Statement("epsilon at least", mpf(said.exact.lower), at)) or ""


@pytest.mark.long(reduced=10, full=300)
def test_two_mechanisms_against_all_common_pairs(repetitions: int) -> None:
    maker = Maker(SEED)
    failures = [why for _ in range(repetitions) if (why := composed_wrongly(*maker.composed()))]
    assert not failures, "\n".join([f"{len(failures)} of {repetitions}", *failures[:40]])


@pytest.mark.parametrize("case", KEPT, ids=lambda case: f"{case.text} {case.dim} {case.neighbours} {case.delta}")
def test_what_was_once_wrong_agrees_with_the_oracle(case: Case) -> None:
    examine(case)
