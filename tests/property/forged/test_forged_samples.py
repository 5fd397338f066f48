"""Certificates of sampled pipelines, and of stages behind the noise, changed in every way and judged by brute force.

As in test_forged_certificates.py a mutant that verifies must state only what is true. Here the only judge is the
enumeration of small data sets, and nearly all certificates are of pipelines that it knows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from test_forged_certificates import Leaves

from brute_force.drawn import Drawer
from dpassay import certify, check
from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier import examine
from mutations import Mutant, at_leaf, of_structure, rechained, transplanted
from random_pipelines import Case
from stated import by_brute_force, statements
from tiers import repetitions

SEED = 20261117
Certificate = dict[str, Any]

CHOSEN = [
    # Verdicts that were once wrong, in what moves the sum among the limits behind the noise.
    Case("subsample(100, 200) | clamp(2, 5) | laplace(1) | clamp(0, 6)", 1, "replace-record", "0.5", "0.1"),
    Case("subsample(9, 10) | clip(l2, 1) | laplace(1) | clamp(-1, 1)", 1, "replace-record", "1", "0.32"),
    Case("poisson(0.5) | normalise(l2) | laplace(1) | clamp(-0.36, 0.36)", 2, "add-remove-record", "0.8", "0.021"),
    Case("query(l1, 1.0000000000000000000000000000001) | staircase(1, 1, 0.4)", 1, "query", "1"),
    Case("poisson(0.5) | clip(l2, 1) | laplace(1)", 1, "add-remove-record", "0.7"),
    Case("poisson(0.5) | clip(l2, 1) | laplace(1)", 1, "add-remove-record", "0.3"),
    Case("poisson(0.5) | clip(l1, 0.3) | staircase(1, 1, 0.5)", 1, "replace-record", "1"),
    Case("poisson(0.3) | clip(l2, 1) | gaussian(1)", 1, "add-remove-record", "0.5", "0.05"),
    Case("poisson(0.3) | clip(l2, 1) | gaussian(1)", 2, "add-remove-record", "0.5", "0.01"),
    Case("poisson(0.3) | clip(l2, 1) | laplace(1) | clamp(-1, 1)", 1, "add-remove-record", "0.5"),
    Case("poisson(0.3) | clamp(0, 1) | laplace(1) | clamp(-1, 1)", 1, "replace-record", "0.2", "0.01"),
    Case("subsample(2, 4) | clip(l2, 1) | laplace(2)", 1, "replace-record", "0.7"),
    Case("subsample(2, 4) | clip(l2, 1) | laplace(2)", 1, "replace-record", "0.4"),
    Case("subsample(2, 4) | clip(l2, 1) | gaussian(2)", 1, "replace-record", "0.5", "0.1"),
    Case("subsample(9, 10) | clip(l2, 1) | laplace(1) | clamp(-1, 1)", 1, "replace-record", "2"),
    Case("subsample(1, 3) | clamp(0, 2) | laplace(1) | round", 1, "replace-record", "0.5"),
    Case("query(l1, 1) | laplace(1) | clamp(0, 10)", 1, "query", "0.9"),
    Case("query(l1, 1) | gaussian(1) | round", 1, "query", "0.5", "0.2"),
    Case("clamp(2, 5) | laplace(1) | clamp(0, 6)", 1, "replace-record", "3"),
    Case("clamp(2, 5) | laplace(1) | clamp(0, 6)", 1, "add-remove-record", "1", "0.1"),
    Case("counts(l1, 2) | discrete_laplace(1) | clamp(0, 3)", 1, "query", "2"),
    Case("query(l1, 1) | staircase(1, 1, 0.4)", 1, "query", "1"),
    Case("clip(l1, 1) | truncated_laplace(1, 3)", 1, "add-remove-record", "1", "0.05"),
    Case("shuffle(2) | clip(l2, 1) | laplace(1)", 1, "replace-record", "2"),
]


@cache
def certificates() -> list[Certificate]:
    """Those of the chosen claims and of random ones, where the verdict has one."""
    drawer, found = Drawer(SEED), []
    wanted = len(CHOSEN) + repetitions(reduced=20, full=200)
    for case in itertools.chain(CHOSEN, (drawer.case() for _ in itertools.count())):
        try:
            made = certify(check(case.text, **case.arguments))
        except InputError:
            continue
        if case in CHOSEN or false_statements(made)[0]:
            found.append(made)
        if len(found) == wanted:
            return found
    raise AssertionError


def false_statements(certificate: Certificate) -> tuple[int, list[str]]:
    """How many statements the enumeration judges, and those that it contradicts."""
    counted, wrong = 0, []
    with mp.workdps(50):
        for subject, said in statements(certificate):
            word, why = by_brute_force(subject, said)
            counted += word != "unknown"
            wrong += [f"{subject.text} (dim {subject.dim}, {subject.neighbours}): {why}"] if word == "false" else []
    return counted, wrong


def mutants(count: int) -> Iterator[Mutant]:
    """Forgeries of each certificate in turn."""
    rng, all_of_them = np.random.default_rng(SEED), certificates()
    ways = [Leaves(certificate, rng) for certificate in all_of_them]
    for i in itertools.islice(itertools.cycle(range(len(all_of_them))), count):
        certificate, mutant = all_of_them[i], None
        while mutant is None or mutant.data == certificate:
            roll = rng.random()
            if roll < 0.4:
                mutant = at_leaf(certificate, next(ways[i]), rng)
            elif roll < 0.85:
                mutant = of_structure(certificate, rng)
            else:
                mutant = transplanted(certificate, all_of_them[int(rng.integers(len(all_of_them)))], rng)
        yield mutant


def verifies(certificate: Certificate) -> bool:
    try:
        return examine(certificate).ok
    except (InputError, CertificateError):
        return False


@pytest.mark.long(reduced=150, full=4000)
def test_no_mutant_of_a_sampled_certificate_states_something_false(repetitions: int) -> None:
    words, harmful = Counter[str](), []
    for mutant in mutants(repetitions):
        if not verifies(mutant.data):
            words["does not hold"] += 1
            continue
        judged, wrong = false_statements(mutant.data)
        words["judged" if judged else "unknown"] += 1
        harmful += [f"{mutant.kind} at {mutant.where}: {why}" for why in wrong]
    print(words)
    assert not harmful, "\n".join([str(words), *harmful[:40]])
    # An enumeration that refuses would find no harm in anything.
    assert words["judged"] >= 0.7 * (words["judged"] + words["unknown"]), words


def test_the_certificates_themselves_are_true() -> None:
    for certificate in certificates():
        assert verifies(certificate), certificate["steps"][0]
        assert not false_statements(certificate)[1]


def test_the_judge_sees_a_falsehood() -> None:
    right = certify(check("poisson(0.5) | clip(l2, 1) | laplace(1)", epsilon="0.7", dim=1))
    assert false_statements(right)[1] == []
    for pipeline in ("poisson(0.6) | clip(l2, 1) | laplace(1)", "poisson(0.5) | clip(l2, 1) | laplace(0.9)"):
        wrong = rechained(right)
        wrong["steps"][0]["pipeline"] = pipeline
        assert false_statements(wrong)[1], pipeline
    wrong = rechained(right)
    wrong["verdict"] = "refuted"
    assert false_statements(wrong)[1]
