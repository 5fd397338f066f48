"""Random pipelines against data sets of a few records: nothing that `check` says of them may be contradicted.

The enumeration (tests/brute_force) knows no theorem about a mechanism. It takes records from a few values, samples
them in every way, and compares the laws of the outputs cell by cell. An upper end, or a proof, is wrong if a pair of
data sets loses more. A lower end, or a refutation, is wrong if no pair comes near it; the pairs include ones that bound
every data set from above.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from mpmath import mp, mpf

import brute_force
import tiers
from brute_force import Refused, Said, contradictions, found_in
from brute_force.drawn import Drawer
from dpassay import ApproxDP, PureDP, check
from dpassay.claims import judge
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict
from random_pipelines import Case

SEED = 20261117
PARTS = 40  # of 1,000 cases, in full of 20,000

# Each was once answered wrongly.
KEPT = [
    # The other records move the sum: where it lies among the limits behind the noise is not the prover's choice.
    Case("subsample(100, 200) | clamp(2, 5) | laplace(1) | clamp(0, 6)", 1, "replace-record", "0.5", "0.1"),
    Case("subsample(9, 10) | clip(l2, 1) | laplace(1) | clamp(-1, 1)", 1, "replace-record", "1", "0.32"),
    Case("subsample(9, 10) | clip(l2, 1) | laplace(1) | clamp(-1, 1) | squash(tanh)", 1, "replace-record", "1", "0.32"),
    Case("poisson(0.5) | normalise(l2) | laplace(1) | clamp(-0.36, 0.36)", 2, "add-remove-record", "0.8", "0.021"),
    Case("subsample(3, 5) | clamp(-3, -2) | laplace(1.5) | clamp(-3, -2)", 1, "replace-record", "0.3", "0.02"),
    Case("subsample(3, 5) | clamp(1.58, 3.58) | laplace(0.3) | clamp(1.08, 4.08)", 2, "replace-record", "1", "0.3"),
    Case("subsample(10, 20) | onehot(2) | radial(l1, 0.3) | clamp(-1.3, 1.5)", 1, "replace-record", "2", "0.2"),
    Case("subsample(2, 3) | onehot(2) | laplace(0.3) | clamp(-1.333, 1.41)", 1, "replace-record", "0.5", "0.575"),
    Case("subsample(3, 3) | clamp(-1.83, -0.83) | laplace(0.3) | clamp(-0.08, 0.42)", 1, "replace-record", "1", "0.02"),
    # Records of one sign have no sum of the other one.
    Case("poisson(0.01) | squash(sigmoid) | laplace(1) | clamp(-3, -2.6) | times(2)", 2, "add-remove-record", "0.1"),
    Case("poisson(0.5) | clamp(2, 5) | laplace(1) | clamp(0, 1)", 1, "add-remove-record", "3"),
    Case("poisson(0.5) | clamp(0, 1) | laplace(1) | clamp(-1, 0.5)", 1, "add-remove-record", "0.6"),
    Case("poisson(0.9) | squash(sigmoid) | laplace(0.99) | normalise(l2)", 1, "add-remove-record", "0.9"),
    Case("poisson(0.01) | squash(sigmoid) | laplace(1) | clamp(0, 0.65)", 2, "add-remove-record", "0.055"),
    Case("poisson(0.5) | onehot(2) | laplace(1) | clamp(-1, 0)", 1, "add-remove-record", "0.6"),
    # The search for a repair ended in an error.
    Case("poisson(1) | onehot(1) | truncated_laplace(0.5, 1)", 1, "add-remove-record", "0.492", "0.1"),
    # Sampling makes the steps of a staircase smaller on one side only.
    Case("poisson(0.5) | clip(l1, 0.3) | staircase(1, 1, 0.5)", 1, "replace-record", "0.7"),
    # What the enumeration itself once missed: a diagonal beside two opposite records, and answers at ties.
    Case("subsample(2, 3) | normalise(l2) | laplace(1) | clamp(-3, -0.1)", 2, "replace-record", "1", "0.1"),
    Case("query(l1, 1) | round | discrete_laplace(1)", 1, "query", "1", "0.1"),
    Case("query(l2, sqrt(2)) | round | laplace(1)", 2, "query", "2"),
    # A distance just above the width of a step.
    Case("query(l1, 1.0000000000000000000000000000001) | staircase(1, 1, 0.4)", 1, "query", "1"),
    # A sphere in one dimension is −1 and 1: integers, and none of them is small.
    Case("normalise(l2) | discrete_laplace(1)", 1, "add-remove-record", "5"),
    Case("normalise(l2) | discrete_laplace(2)", 1, "user", "1"),
    Case("normalise(l2) | discrete_gaussian(0.3)", 1, "add-remove-record", "5", "1e-4"),
    Case("poisson(0.9) | normalise(l2) | discrete_gaussian(0.5) | times(2)", 1, "add-remove-record", "0.1", "0.5"),
    Case("normalise(l2) | discrete_laplace(1)", 1, "any", "3"),
    Case("subsample(2, 3) | normalise(l2) | discrete_laplace(1)", 1, "replace-record", "1"),
    Case("clamp(-2, 3) | normalise(l2) | round | discrete_laplace(1)", 1, "add-remove-record", "5"),
    # What stands before normalise may leave a part of the sphere only, without the opposites of its vectors.
    Case("poisson(0.9) | clamp(0, 1.6) | normalise(l2) | onesided(0.5)", 2, "add-remove-record", "1", "0.02"),
    Case(
        "poisson(0.01) | clamp(2, 2.5) | normalise(l2) | onesided(0.5, 0.25, 0)", 1, "add-remove-record", "0.1", "0.1"
    ),
    Case("poisson(0.5) | squash(sigmoid) | normalise(l2) | onesided(1)", 2, "add-remove-record", "0.3"),
    Case("poisson(0.5) | clamp(0, 1) | clip(l2, 0.5) | onesided(1)", 2, "add-remove-record", "0.3", "0.1"),
    Case("poisson(0.9) | minmax | normalise(l2) | onesided(0.5, 0.25, 0)", 2, "add-remove-record", "0.1", "0.1"),
    # A limit of squash is not attained, so that a jump just there shows nothing.
    Case("squash(sigmoid) | squash(sigmoid) | round | discrete_laplace(2)", 1, "any", "0.2"),
    Case("squash(sigmoid) | squash(sigmoid) | round | laplace(1)", 2, "any", "0.2", "0.1"),
    Case("clamp(0, 9) | squash(tanh) | binary(1, 0) | laplace(1)", 1, "any", "0.2"),
    Case("clip(l1, 1) | laplace(1) | squash(sigmoid) | squash(sigmoid) | round", 1, "any", "0.2"),
]


def statements(verdict: Verdict, epsilon: float, delta: float) -> list[Said]:
    """What a verdict says."""
    said = [
        Said("epsilon at least", float(verdict.epsilon.lower), delta),
        Said("epsilon at most", float(verdict.epsilon.upper), delta),
        *(Said("epsilon at most", float(held.upper), float(at)) for at, held in verdict.holds),
    ]
    if verdict.delta is not None:
        said.append(Said("delta at least", epsilon, float(verdict.delta.lower)))
        said.append(Said("delta at most", epsilon, float(verdict.delta.upper)))
    if verdict.word != "open":
        said.append(Said(verdict.word, epsilon, delta))
    return said


def repaired(verdict: Verdict) -> Iterator[tuple[str, Said]]:
    """The mechanisms that a verdict says would keep a guarantee."""
    for repair in verdict.repairs:
        if repair.mechanism is not None and isinstance(repair.guarantee, PureDP | ApproxDP):
            yield str(repair.mechanism), Said("proven", repair.guarantee.epsilon, repair.guarantee.delta)


def outcome(case: Case) -> tuple[str, list[str]]:
    """One word for what came of a case, and what is wrong of what was said."""
    try:
        verdict = check(case.text, **case.arguments)
    except InputError:
        return "refused", []
    values = (("eps", case.epsilon), ("delta", case.delta))
    said = statements(verdict, float(case.epsilon), float(case.delta))
    wrong = contradictions(case.text, values, case.dim, case.neighbours, said)
    if wrong is None:
        return "unknown", []
    for text, one in repaired(verdict):
        wrong += [f"{text}: {why}" for why in contradictions(text, values, case.dim, case.neighbours, [one]) or []]
    return "judged", wrong


@contextmanager
def without_advice(leave_out: bool) -> Iterator[None]:
    """What holds instead of a refuted claim, and repairs, take two thirds of the time of `check`."""
    with pytest.MonkeyPatch.context() as patch:
        if leave_out:
            patch.setattr(judge, "_holding", lambda *_: ())
            patch.setattr(judge, "find_repairs", lambda *_: ())
        yield


@pytest.mark.long(every=3)
@pytest.mark.long(reduced=12, full=500)
@pytest.mark.parametrize("part", range(PARTS))
def test_small_data_sets_contradict_nothing(part: int, repetitions: int) -> None:
    drawer, words, failures = Drawer(SEED + part), Counter[str](), []
    for i in range(repetitions):
        case = drawer.case()
        with without_advice(not tiers.in_full and i % 5 > 0):
            word, wrong = outcome(case)
        words[word] += 1
        failures += [f"{case}: {why}" for why in wrong]
    assert not failures, "\n".join([f"{len(failures)} of {repetitions}", *failures[:40]])
    assert words["judged"] >= 0.7 * repetitions, words  # a generator of refused texts would find nothing


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.text)
def test_what_was_once_wrong_is_not_contradicted(case: Case) -> None:
    word, wrong = outcome(case)
    assert word == "judged"
    assert not wrong, wrong


def test_the_enumeration_imports_nothing_of_dpassay() -> None:
    folder = Path(brute_force.__file__).parent
    imported = re.compile(r"^\s*(?:from|import)\s+dpassay", re.MULTILINE)
    assert not [path.name for path in folder.glob("*.py") if imported.search(path.read_text())]


# ── The enumeration itself, against formulas ────────────────────────────────────────────────────


def laplace_delta(distance: float, scale: float, epsilon: float) -> float:
    return max(0.0, float(1 - mp.exp((mpf(epsilon) - mpf(distance) / scale) / 2)))


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu))


def sampled(delta: Callable[[float], float], q: float, epsilon: float) -> float:
    """Adding a record that is sampled with probability q: the record's side of Balle, Barthe and Gaboardi's theorem."""
    return q * delta(float(mp.log(1 + (mp.exp(epsilon) - 1) / q)))


@pytest.mark.parametrize(
    ("text", "dim", "neighbours", "epsilon", "truth"),
    [
        ("clip(l1, 1) | laplace(1)", 1, "any", 0.5, laplace_delta(2, 1, 0.5)),
        ("clip(l1, 1) | laplace(1)", 1, "add-remove-record", 0.5, laplace_delta(1, 1, 0.5)),
        ("query(l2, 1) | gaussian(2)", 2, "query", 0.1, gaussian_delta(0.5, 0.1)),
        ("clip(l2, 1) | gaussian(1) | times(2)", 1, "any", 1, gaussian_delta(2 * 2**0.5, 1)),
        (
            *("poisson(0.3) | clip(l2, 1) | laplace(1)", 1, "add-remove-record", 0.1),
            sampled(partial(laplace_delta, 1, 1), 0.3, 0.1),
        ),
        (
            *("subsample(1, 4) | clip(l2, 1) | laplace(1)", 1, "replace-record", 0.1),
            sampled(partial(laplace_delta, 2, 1), 0.25, 0.1),
        ),
        ("query(l1, 1) | truncated_laplace(1, 3)", 1, "query", 1, float((mp.e - 1) / (2 * (mp.exp(3) - 1)))),
        # Behind the sign, answers of −1/2 and 1/2 tell most.
        ("query(l1, 1) | laplace(1) | normalise(l2)", 1, "query", 0, float(1 - mp.exp(-mpf(1) / 2))),
        # Answers of 1/2 and 3/2 are rounded to 0 and 2.
        ("query(l1, 1) | round | laplace(1)", 1, "query", 1, laplace_delta(2, 1, 1)),
        ("query(l1, 0.99) | round | laplace(1)", 1, "query", 0, laplace_delta(1, 1, 0)),
        # From 1/2 to 3/2 in one coordinate; with a longer way, also across 1/2 in the other one.
        ("query(l2, 1) | round | gaussian(2)", 2, "query", 0.5, gaussian_delta(1, 0.5)),
        ("query(l2, 1.01) | round | gaussian(2)", 2, "query", 0.5, gaussian_delta(5**0.5 / 2, 0.5)),
        # Records of one sign: no sum is below 0.
        ("clamp(2, 5) | laplace(1) | clamp(-9, 0)", 1, "add-remove-record", 0, float((1 - mp.exp(-5)) / 2)),
    ],
)
def test_the_enumeration_knows_closed_forms(text: str, dim: int, neighbours: str, epsilon: float, truth: float) -> None:
    for level in (1, 2):
        found = found_in(text, {}, dim, neighbours, level)
        assert found.at_least(epsilon) <= truth * (1 + 1e-9)
        assert found.at_least(epsilon) >= truth * 0.97
    assert found.tried(epsilon) == pytest.approx(truth, rel=3e-3)


@pytest.mark.parametrize(
    ("text", "neighbours", "truth"),
    [
        ("clip(l1, 1) | laplace(2)", "any", 1),
        ("poisson(0.5) | clip(l1, 1) | laplace(1)", "add-remove-record", float(mp.log((1 + mp.e) / 2))),
        # One side of a step, (1 − q + q e)/(1 − q + q e^0), of a distance of 0.6 within a step of 1.
        ("poisson(0.5) | clip(l1, 0.3) | staircase(1, 1, 0.5)", "replace-record", float(mp.log((1 + mp.e) / 2))),
        ("query(l1, 1.01) | staircase(1, 1, 0.4)", "query", 2),
        ("query(l1, 1 + 10^-31) | staircase(1, 1, 0.4)", "query", 2),
        ("counts(l1, 2) | discrete_laplace(3)", "query", 2 / 3),
        # Records from 0 to 1, sampled: no sum is below 0, so only the smaller side is shown through the sign.
        (
            *("poisson(0.9) | squash(sigmoid) | laplace(1) | normalise(l2)", "add-remove-record"),
            float(-mp.log(mpf("0.1") + mpf("0.9") * mp.exp(-1))),
        ),
    ],
)
def test_the_enumeration_knows_pure_losses(text: str, neighbours: str, truth: float) -> None:
    found = found_in(text, {}, 1, neighbours)
    assert found.pure_at_least == pytest.approx(truth, rel=1e-7)
    assert found.pure_tried() == pytest.approx(truth, rel=1e-7)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize(("scale", "norm", "moved"), [(1, "linf", 2), (0.25, "linf", 2), (1, "l1", 1)])
def test_the_enumeration_shows_no_more_than_noisy_max_loses(noise: str, scale: float, norm: str, moved: int) -> None:
    """P(the lower one of two scores wins) is e^(−t)/2 or (2 + t)e^(−t)/4, whose logarithms fall by at most 1 per t."""
    found = found_in(f"query({norm}, 1) | noisymax({noise}, {scale})", {}, 2, "query")
    assert found.pure_at_least <= moved / scale * (1 + 1e-12)
    assert found.pure_at_least >= moved / scale * (1 - 1e-12 if noise == "exponential" else 0.9)


def test_the_enumeration_finds_a_diagonal_beside_opposite_records() -> None:
    """(1, 1)/√2 in the place of the opposite vector, beside it: 2/3·(p² − γq²), as the verdict's witness shows."""
    with mp.workdps(30):
        p = 1 - mp.exp(-1 / mp.sqrt(2)) / 2
        shown = float(mpf(2) / 3 * (p**2 - (1 + 3 * (mp.e - 1) / 2) * (1 - p) ** 2))
    found = found_in("subsample(2, 3) | normalise(l2) | laplace(1) | clamp(-3, -0.1)", {}, 2, "replace-record", 2)
    assert shown == pytest.approx(0.2335, abs=1e-4)
    assert found.tried(1) >= shown


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("onehot(2) | radial(linf, 0.3)", 1),  # its two coordinates are not independent
        ("clip(l2, 1) | laplace(1)", 3),
        ("query(l1, 1) | exponential(1)", 9),
        ("clip(l2, 1) | discrete_laplace(100)", 1),  # reaches farther than is laid out
    ],
)
def test_what_is_not_enumerated_is_refused(text: str, dim: int) -> None:
    with pytest.raises(Refused):
        found_in(text, {}, dim, "query" if text.startswith("query") else "any")
