"""No change to a certificate makes `verify` accept something false: thousands of mutants, judged independently.

A mutant that is refused, or does not hold, is harmless. One that verifies must state only what is true, as far as the
judges of `stated.py` know: brute force over small data sets, and the formulas of tests/oracle.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from mpmath import mp, mpf

import tiers
from dpassay import GDP, ZCDP, MetricDP, RenyiDP, certify, check
from dpassay.claims.registry import REGISTRY
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
from oracle import Unreadable
from random_pipelines import Case, Maker
from stated import judge, number
from tiers import repetitions

SEED = 20261116
MOST_UNKNOWN = 0.2  # of the mutants that verify
LONGEST = 5  # seconds of CPU time for one certificate, whatever it says


# ── The mutants' fates ─────────────────────────────────────────────────────────────────────────


def outcome(mutant: Mutant) -> tuple[str, str]:
    """What became of a mutant, and for one that should not be why."""
    start = time.thread_time()
    try:
        verification = examine(mutant.data)
    except (InputError, CertificateError):
        return "unreadable", ""
    except Exception as error:
        return "CRASH", f"{type(error).__name__}: {error}"
    took = time.thread_time() - start
    if took > LONGEST:
        return "SLOW", f"{took:.1f} s"
    if not verification.ok:
        return "does not hold", ""
    false, unknown = judge(mutant.data)
    if false:
        return "HARMFUL", false[0]
    return ("unknown", unknown[0]) if unknown else ("true", "")


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


# Other guarantees, neighbours that differ in more, and stages that sample, repeat and choose: each true and false.
CHOSEN: list[tuple[str, int, dict[str, Any]]] = [
    (text, dim, {**more, key: one})
    for text, dim, more, key, both in [
        ("clip(l2, 1) | gaussian(2)", 3, {}, "guarantee", (GDP(1), GDP("0.9"))),
        ("clip(l2, 1) | gaussian(rho)", 3, {}, "guarantee", (ZCDP(2), ZCDP("0.5"))),
        ("query(l2, 1) | gaussian(2)", 2, {}, "guarantee", (RenyiDP(4, "0.5"), RenyiDP(4, "0.4"))),
        ("query(l1, 1) | laplace(1)", 2, {}, "guarantee", (RenyiDP(2, "0.62"), RenyiDP(2, "0.61"))),
        ("query(l1, 1) | laplace(1)", 2, {}, "guarantee", (ZCDP("0.37"), ZCDP("0.36"))),
        ("query(l1, 1) | laplace(1)", 2, {}, "guarantee", (GDP("1.04"), GDP("1.02"))),
        ("category(4) | flip(0.6)", 1, {}, "guarantee", (ZCDP("0.9"), RenyiDP(3, 1))),
        ("clip(l2, 1) | laplace(4)", 4, {}, "guarantee", (RenyiDP(2, 1), RenyiDP(2, "0.1"))),
        ("laplace(1)", 4, {}, "guarantee", (MetricDP(2, "l2"), MetricDP("1.9", "l2"))),
        ("radial(l2, 1/eps)", 4, {}, "guarantee", (MetricDP(2, "l2"), MetricDP(2, "linf"))),
        ("normalise(l2) | laplace(1)", 4, {}, "guarantee", (MetricDP(2, "angle"), MetricDP("1.5", "angle"))),
        ("squash(sigmoid) | laplace(1)", 2, {}, "guarantee", (MetricDP("0.25", "l1"), MetricDP("0.2", "l1"))),
        ("exponential(1)", 4, {}, "guarantee", (MetricDP(2, "linf"), MetricDP(1, "linf"))),
        ("gaussian(1)", 2, {}, "guarantee", (MetricDP(2, "linf"), MetricDP(1, "l2"))),
        ("clip(l2, 1) | gaussian(3) | times(4)", 2, {"neighbours": "user"}, "guarantee", (GDP(1), GDP("0.6"))),
        ("clip(l2, 1) | laplace(1)", 4, {"neighbours": "group(3)"}, "epsilon", ("6", "5.9")),
        ("clip(l2, 1) | gaussian(2)", 4, {"neighbours": "group(3)", "delta": "1e-3"}, "epsilon", ("6", "4")),
        ("query(l1, 1) | laplace(1)", 2, {"neighbours": "group(5)"}, "epsilon", ("5", "4.9")),
        ("clamp(-1, 3) | laplace(2)", 2, {"neighbours": "entity"}, "epsilon", ("3", "2.9")),
        ("dropout(0.5) | encode | clip(l1, 1) | laplace(1)", 2, {"neighbours": "words(2)"}, "epsilon", ("1.8", "1.7")),
        ("poisson(0.1) | clip(l2, 1) | gaussian(1)", 2, {"delta": "1e-3"}, "epsilon", ("2", "0.5")),
        ("poisson(0.1) | clip(l2, 1) | gaussian(1) | times(20)", 2, {"delta": "1e-5"}, "epsilon", ("6", "0.5")),
        ("poisson(0.2) | clip(l1, 1) | laplace(1) | times(3)", 2, {}, "epsilon", ("1", "0.8")),
        ("subsample(10, 100) | clip(l2, 1) | gaussian(2)", 2, {"delta": "1e-3"}, "epsilon", ("1", "0.05")),
        ("shuffle(10) | clip(l2, 1) | gaussian(1)", 2, {"delta": "1e-3"}, "epsilon", ("8", "0.5")),
        ("clip(l1, 1) | laplace(2) | times(3)", 2, {"delta": "1e-2"}, "epsilon", ("3", "1")),
        ("clamp(0, 1) | topk(4) | softmax(1)", 5, {"epsilon": "1"}, "delta", ("0.9", "0.1")),
        ("clamp(0, 1) | softmax(0.5) | times(4)", 5, {}, "epsilon", ("16", "10")),
        ("vmf(1)", 3, {"epsilon": "0.5"}, "delta", ("0.33", "0.31")),
        ("vmf(2)", 4, {}, "guarantee", (MetricDP(2, "l2"), MetricDP(2, "linf"))),
        ("normalise(l2) | purkayastha(1)", 2, {}, "epsilon", ("3.15", "3.14")),
        ("normalise(l2) | purkayastha(1)", 2, {}, "guarantee", (MetricDP(1, "angle"), MetricDP("0.9", "angle"))),
        ("mahalanobis(1, 0.25, 4)", 3, {}, "guarantee", (MetricDP(1, "mahalanobis"), MetricDP("1.9", "l2"))),
        ("clip(l2, 1) | mahalanobis(1, 0.25, 4)", 3, {}, "epsilon", ("4", "3.9")),
        ("query(linf, 1) | noisymax(laplace, 1)", 4, {}, "epsilon", ("2", "1.9")),
        ("clamp(0, 1) | noisymax(exponential, 1)", 3, {}, "epsilon", ("1.71", "1.7")),
        ("clamp(0, 1) | noisymax(gumbel, 1)", 5, {}, "epsilon", ("1.57", "1.56")),
        ("counts(l1, 2.5) | discrete_laplace(1)", 3, {"delta": "0.1"}, "epsilon", ("2", "0.5")),
        ("counts(l1, 1) | discrete_gaussian(2)", 1, {"epsilon": "0.5"}, "delta", ("0.055", "0.054")),
        ("counts(l2, 2) | discrete_gaussian(2)", 3, {"delta": "1e-3"}, "epsilon", ("5", "1")),
        ("query(l1, 1) | truncated_laplace(1, 3)", 1, {"epsilon": "1"}, "delta", ("0.0451", "0.045")),
        ("query(l1, 1) | staircase(1, 1, 0.38)", 1, {}, "epsilon", ("1", "0.9")),
        ("query(l2, 3) | staircase(0.5, 1, 0.38)", 4, {}, "epsilon", ("4.5", "3.9")),
        ("query(l1, 1) | bounded_laplace(1, 0, 10)", 1, {}, "epsilon", ("1.49", "1.48")),
        ("clamp(0, 1) | bounded_laplace(1, 0, 1)", 3, {"epsilon": "0.5"}, "delta", ("0.245", "0.24")),
        ("clamp(0, 1) | topk(3) | exponential(1)", 4, {"epsilon": "1.4"}, "delta", ("0.58", "0.57")),
    ]
    for one in both
]


@cache
def certificates() -> list[dict[str, Any]]:
    """Those of all published claims that have one, and of the generated pipelines.

    In the reduced form every fourth is taken, by a hash of its name, so that a new claim changes no other's turn.
    """
    published = [name for name in REGISTRY if tiers.in_full or crc32(name.encode()) % 4 == 0]
    verdicts = [*(check(name) for name in published), *generated(repetitions(reduced=4, full=60))]
    verdicts += [check(text, dim=dim, **claim) for text, dim, claim in CHOSEN[:: 1 if tiers.in_full else 5]]
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
    while len(found) < repetitions(reduced=4, full=40):
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
            with suppress(InputError):  # not every verdict has a certificate
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
    """`count` forgeries, of each certificate in turn: changed leaves or structure, parts of other certificates."""
    rng, all_of_them = np.random.default_rng(SEED), certificates()
    ways = [Leaves(certificate, rng) for certificate in all_of_them]
    order = rng.permutation(len(all_of_them)).tolist()
    for i in itertools.islice(itertools.cycle(order), count):
        certificate, mutant = all_of_them[i], None
        while mutant is None or mutant.data == certificate:
            roll = rng.random()
            if roll < 0.5:
                mutant = at_leaf(certificate, next(ways[i]), rng)
            elif roll < 0.82:
                mutant = of_structure(certificate, rng)
            elif roll < 0.93:
                both = twins()[int(rng.integers(len(twins())))]
                mutant = hybrid(*(both if rng.random() < 0.5 else both[::-1]), rng)
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
    harmful, unknown, verified = [], [], 0
    for mutant, _ in mutants(repetitions(reduced=300, full=3000)):
        what, why = outcome(mutant)
        counts[mutant.kind][what] += 1
        verified += what in ("true", "unknown", "HARMFUL")
        if what.isupper():
            harmful.append(f"{what}: {mutant.kind} at {mutant.where}: {why}")
        if what == "unknown":
            unknown.append(why)
    shown = table(counts)
    print(shown, f"of {verified} that verify, {len(unknown)} are unknown to the oracle", sep="\n")
    assert not harmful, "\n".join([shown, *harmful[:40]])
    # An oracle that cannot tell would find no harm in anything.
    assert len(unknown) <= MOST_UNKNOWN * verified, "\n".join([shown, *unknown[:40]])


def test_the_certificates_themselves_are_true() -> None:
    for certificate in certificates():
        assert examine(certificate).ok, certificate["steps"][0]
        false, _ = judge(certificate)
        assert not false, false


def test_the_judge_sees_a_falsehood() -> None:
    """So that no harm found means something: certificates that state false things, with nothing to check them."""
    right = certify(check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4))
    assert judge(right) == ([], [])
    for pipeline in ("clip(l2, 1) | laplace(2)", "clip(l1, 1) | laplace(1.9)"):
        wrong = rechained(right)
        wrong["steps"][0]["pipeline"] = pipeline
        assert judge(wrong)[0], pipeline
    wrong = rechained(right)
    wrong["verdict"] = "refuted"
    assert judge(wrong)[0]
    for i, step in enumerate(right["steps"]):
        if step["step"] in ("upper", "lower"):
            wrong = rechained(right)
            with mp.workdps(50):
                hair = 1 + (mpf(10) ** -25 if step["step"] == "lower" else -(mpf(10) ** -25))
                wrong["steps"][i]["epsilon"] = [mp.nstr(number(step["epsilon"]) * hair, 50)] * 2
            assert judge(wrong)[0] or number(step["delta"]) > 0, step
