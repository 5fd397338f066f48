"""No change to a certificate makes `verify` accept something false: thousands of mutants, judged by the oracle.

A mutant that is refused, or does not hold, is harmless. One that verifies must state only what is true, as far as
tests/oracle knows. What a certificate states is read by `statements`, the one place that knows the format.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from mpmath import mp, mpf

import tiers
from dpassay import certify, check, claims
from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verdict import Verdict
from dpassay.evidence.verifier import examine
from mutations import (
    Mutant,
    at_leaf,
    edited,
    get,
    hybrid,
    is_decimal,
    leaves,
    of_structure,
    rechained,
    transplanted,
)
from oracle import Statement, Truth, Unreadable, false_statement, truth_of
from random_pipelines import Case, Maker
from tiers import repetitions

SEED = 20261116
SLOW = ("adept-gaussian", "gaussian-exact", "group")  # more than a second to verify: in full only


# ── The adapter: what a certificate states ──────────────────────────────────────────────────────


@dataclass(frozen=True)
class Subject:
    """The mechanism that a statement is about."""

    text: str
    values: tuple[tuple[str, mpf], ...]
    dim: int
    neighbours: str

    def truth(self) -> Truth:
        return truth_of(self.text, dict(self.values), self.dim, self.neighbours)


def _number(value: Any) -> mpf:
    with mp.workdps(50):
        return (mpf(value[0]) + mpf(value[1])) / 2


def statements(certificate: dict[str, Any]) -> Iterator[tuple[Subject, Statement]]:
    """Everything that a certificate says of a mechanism's loss."""
    steps = certificate["steps"]
    claim = steps[0]
    epsilon, delta = _number(claim["epsilon"]), _number(claim["delta"])
    values = {key: _number(value) for key, value in claim["parameters"].items() if key != "dim"}
    values |= {"eps": epsilon, "delta": delta}
    subject = Subject(claim["pipeline"], tuple(values.items()), claim["dim"], claim["neighbours"])
    if certificate["verdict"] != "open":
        yield subject, Statement(certificate["verdict"], epsilon, delta)
    for step in steps[1:-1]:
        at = {name: _number(step[name]) for name in ("epsilon", "delta") if name in step}
        if step["step"] == "upper":
            yield subject, Statement("proven", at["epsilon"], at["delta"])
        if step["step"] == "lower":
            yield subject, Statement(f"{step['quantity']} at least", at["epsilon"], at["delta"])
        if step["step"] == "repair":
            own = {"eps": epsilon, "delta": delta}
            yield (
                Subject(step["pipeline"], tuple(own.items()), subject.dim, subject.neighbours),
                Statement("proven", **at),
            )


# ── The judge ───────────────────────────────────────────────────────────────────────────────────


def falsehoods(certificate: dict[str, Any]) -> tuple[list[str], int]:
    """What a certificate states and the oracle knows to be false; and how many statements it could not read."""
    found, unread = [], 0
    for subject, said in statements(certificate):
        try:
            why = false_statement(subject.truth(), said)
        except Unreadable:
            unread += 1
            continue
        if why:
            found.append(f"{subject.text} (dim {subject.dim}, {subject.neighbours}): {why}")
    return found, unread


def outcome(mutant: Mutant) -> tuple[str, str]:
    """What became of a mutant, and for a harmful one why."""
    try:
        verification = examine(mutant.data)
    except (InputError, CertificateError):
        return "unreadable", ""
    except Exception as error:
        return "CRASH", f"{type(error).__name__}: {error}"
    if not verification.ok:
        return "does not hold", ""
    false, unread = falsehoods(mutant.data)
    if false:
        return "HARMFUL", false[0]
    return ("true, in part unknown" if unread else "true"), ""


# ── Certificates ────────────────────────────────────────────────────────────────────────────────


def generated(count: int) -> Iterator[Verdict]:
    """Random pipelines that both dpassay and the oracle read, each with a claim at δ = 0 and one above."""
    maker, made = Maker(SEED), 0
    while made < count:
        case = maker.case()
        try:
            _ = case.truth
            above = case.delta if case.delta != "0" else "1e-6"
            both = [check(case.text, **replace(case, delta=delta).arguments) for delta in ("0", above)]
        except (Unreadable, InputError):
            continue
        made += 1
        yield from both


@cache
def certificates() -> list[dict[str, Any]]:
    """Those of all published claims, and of the generated pipelines."""
    published = [name for name in claims if tiers.in_full or name not in SLOW]
    verdicts = [*(check(name) for name in published), *generated(repetitions(reduced=8, full=60))]
    return [certify(verdict) for verdict in verdicts]


CLASSIC_TWINS = [
    (Case("clip(l1, 1) | laplace(2)", 32, "any", "1"), Case("clip(l2, 1) | laplace(2)", 32, "any", "1")),
    (Case("clip(linf, 0.1) | laplace(2)", 5, "any", "1"), Case("squash(tanh) | laplace(2)", 5, "any", "1")),
    (Case("clip(l1, 1) | laplace(2)", 9, "any", "1"), Case("clip(linf, 1) | laplace(2)", 9, "any", "1")),
    (
        Case("rows | clamp(0, 1) | laplace(2)", 6, "replace-record", "1"),
        Case("clamp(0, 1) | laplace(2)", 6, "any", "1"),
    ),
]


def _edited(case: Case, rng: np.random.Generator) -> tuple[Case, Case]:
    return case, replace(case, text=edited(case.text, rng), dim=case.dim * int(rng.choice([1, 1, 2])))


@cache
def twins() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Certificates of pipelines that differ in a number, a norm or the dimension: only one of them keeps the claim."""
    rng, maker, found = np.random.default_rng(SEED), Maker(SEED + 1), []
    candidates = itertools.chain(CLASSIC_TWINS, (_edited(maker.case(), rng) for _ in itertools.count()))
    while len(found) < repetitions(reduced=8, full=40):
        case, other = next(candidates)
        try:
            pair = sorted(
                ((check(c.text, **replace(c, delta="0").arguments).epsilon, c) for c in (case, other)),
                key=lambda one: one[0].upper,
            )
            (least, one), (most, two) = pair
            if not least.upper < 0.99 * most.lower:
                continue
            claimed = repr(float(np.nextafter(least.upper, np.inf)))
            both = [check(c.text, **replace(c, epsilon=claimed, delta="0").arguments) for c in (one, two)]
        except (InputError, ZeroDivisionError):
            continue
        if [verdict.word for verdict in both] == ["proven", "refuted"]:
            found.append((certify(both[0]), certify(both[1])))
    return found


class Leaves:
    """The leaves of a certificate in random order, each once before any comes again; words less often than the rest."""

    def __init__(self, certificate: dict[str, Any], rng: np.random.Generator) -> None:
        self.rng = rng
        words = [path for path in leaves(certificate) if _is_word(get(certificate, path))]
        self.kinds = [[path for path in leaves(certificate) if path not in words], words]
        self.left: list[list[Any]] = [[], []]

    def __next__(self) -> tuple[Any, ...]:
        kind = int(self.rng.random() > 0.8)
        if not self.left[kind]:
            self.left[kind] = [self.kinds[kind][i] for i in self.rng.permutation(len(self.kinds[kind]))]
        return self.left[kind].pop()


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and not is_decimal(value) and "|" not in value


def mutants(count: int) -> Iterator[tuple[Mutant, dict[str, Any]]]:
    """So many, of each certificate in turn: changed leaves, changed structure, and parts of other certificates."""
    rng, all_of_them = np.random.default_rng(SEED), certificates()
    ways = [Leaves(certificate, rng) for certificate in all_of_them]
    order = rng.permutation(len(all_of_them)).tolist()
    for i in itertools.islice(itertools.cycle(order), count):
        certificate, mutant = all_of_them[i], None
        while mutant is None or mutant.data == certificate:
            roll = rng.random()
            if roll < 0.7:
                mutant = at_leaf(certificate, next(ways[i]), rng)
            elif roll < 0.85:
                mutant = of_structure(certificate, rng)
            elif roll < 0.93:
                mutant = hybrid(*twins()[int(rng.integers(len(twins())))], rng)
            else:
                mutant = transplanted(certificate, all_of_them[int(rng.integers(len(all_of_them)))], rng)
        yield mutant, certificate


def table(counts: dict[str, Counter[str]]) -> str:
    """Kinds of changes and what became of them."""
    columns = sorted({word for row in counts.values() for word in row})
    lines = [f"{'':28}" + "".join(f"{column:>24}" for column in columns)]
    for kind, row in sorted(counts.items()):
        lines.append(f"{kind:28}" + "".join(f"{row[column]:>24}" for column in columns))
    total = Counter[str]()
    for row in counts.values():
        total += row
    return "\n".join([*lines, f"{'all':28}" + "".join(f"{total[column]:>24}" for column in columns)])


def test_no_mutant_verifies_and_states_something_false() -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    harmful = []
    for mutant, _ in mutants(repetitions(reduced=300, full=3000)):
        what, why = outcome(mutant)
        counts[mutant.kind][what] += 1
        if what in ("HARMFUL", "CRASH"):
            harmful.append(f"{what}: {mutant.kind} at {mutant.where}: {why}")
    shown = table(counts)
    print(shown)
    assert not harmful, "\n".join([shown, *harmful[:40]])


def test_the_certificates_themselves_are_true() -> None:
    for certificate in certificates():
        false, _ = falsehoods(certificate)
        assert not false, false


def test_the_judge_sees_a_falsehood() -> None:
    """So that no harm found means something: certificates that state false things, with nothing to check them."""
    right = certify(check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4))
    assert falsehoods(right) == ([], 0)
    for pipeline in ("clip(l2, 1) | laplace(2)", "clip(l1, 1) | laplace(1.9)"):
        wrong = rechained(right)
        wrong["steps"][0]["pipeline"] = pipeline
        assert falsehoods(wrong)[0], pipeline
    wrong = rechained(right)
    wrong["verdict"] = "refuted"
    assert falsehoods(wrong)[0]
