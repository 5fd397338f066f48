"""Which rewriters are compared, and at which ε: the one of their authors, or the true one for one text.

A rewriter is named as on the command line and made where it is needed: names are sent to other processes, but models
are not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dpassay.compute.executors import Executor, InProcess
from dpassay.errors import InputError
from dpassay.text.measurements import Stated
from dpassay.text.rewriters.base import Rewriter, describe
from dpassay.text.rewriters.catalogue import Specification

TRUE_EPSILONS = (10.0, 100.0, 1000.0)  # if none are given


@dataclass(frozen=True)
class PlannedSubject:
    """A rewriter at one ε, as plain data: how it was specified, what it guarantees, and what identifies it.

    `true` means that `epsilon` is the true one. A rewriter without an ε is the same at every ε.
    """

    rewriter: str
    epsilon: float | None
    true: bool
    delta: float | None
    identity: str
    guarantee: Stated | None = None

    def made(self) -> Rewriter:
        """The rewriter itself."""
        asked = Specification.read(self.rewriter)
        if self.true and self.epsilon is not None:
            return asked.at_true(self.epsilon, self.delta)
        return asked.at(self.epsilon, self.delta)

    def __str__(self) -> str:
        if self.guarantee is None or math.isinf(self.guarantee.epsilon):
            return self.rewriter
        return f"{self.rewriter}, ε = {self.guarantee.epsilon:g}"


def plan(
    rewriters: Sequence[str],
    epsilons: Sequence[float] = (),
    true_epsilons: Sequence[float] = (),
    delta: float | None = None,
    executor: Executor | None = None,
) -> tuple[list[PlannedSubject], list[str]]:
    """Each rewriter at each ε, its authors' or true, in ascending order, and notes on what is left out.

    A rewriter that has no ε, or a fixed one, appears once. One for which no finite ε holds has no true ε to choose, so
    it is measured only at its authors' values.
    """
    if not epsilons and not true_epsilons:
        true_epsilons = TRUE_EPSILONS
    for one in (*epsilons, *true_epsilons):
        if not 0 < one < math.inf:
            raise InputError(f"epsilon must be a number above 0, got {one:g}")
    names = list(dict.fromkeys(rewriters))
    if not names:
        raise InputError("name one rewriter or more")
    asked = [(name, tuple(epsilons), tuple(true_epsilons), delta) for name in names]
    found: list[PlannedSubject] = []
    notes: list[str] = []
    for subjects, reasons in (executor or InProcess()).map(_planned, asked):
        if not subjects:
            raise InputError(reasons[0])
        found += subjects
        notes += [f"{reason}; left out" for reason in reasons]
    return found, notes


def _planned(
    asked: tuple[str, tuple[float, ...], tuple[float, ...], float | None],
) -> tuple[list[PlannedSubject], list[str]]:
    """A rewriter at each ε, and why some of the true ones are missing."""
    name, epsilons, true_epsilons, delta = asked
    specification = Specification.read(name)
    found, reasons = [], []
    with one_thread():
        any_epsilon = (*epsilons, *true_epsilons)[0]
        first = specification.at(any_epsilon, delta)
        if _fixed(specification, first, any_epsilon / 2, delta):
            return [_subject(specification, None, False, delta, first)], []
        found = [_subject(specification, e, False, delta, specification.at(e, delta)) for e in epsilons]
        if true_epsilons and math.isinf(first.guarantee.epsilon):
            reasons.append(f"{name} satisfies no finite epsilon, so it is compared at the epsilon of its authors alone")
            true_epsilons = ()
        for e in true_epsilons:
            try:
                found.append(_subject(specification, e, True, delta, specification.at_true(e, delta)))
            except InputError as error:  # it can be made, so this ε is the problem
                reasons.append(f"no parameter of {name} was found with a true epsilon of {e:g} ({error})")
    different = {subject.identity: subject for subject in reversed(found)}  # no duplicates
    return sorted(different.values(), key=_size), reasons


def _fixed(specification: Specification, first: Rewriter, other: float, delta: float | None) -> bool:
    """Whether another ε gives the same rewriter."""
    try:
        second = specification.at(other, delta)
    except InputError:  # out of range
        return False
    return describe(first) == describe(second) and first.guarantee == second.guarantee


def _subject(
    named: Specification, epsilon: float | None, true: bool, delta: float | None, rewriter: Rewriter
) -> PlannedSubject:
    name, held = str(named), named.guarantee_of(rewriter)
    own = float(describe(rewriter).get("epsilon", held.stated))
    stated = Stated(
        epsilon=float(held.stated),
        parameter=None if own == held.stated else own,
        true_epsilon=float(held.epsilon),
        delta=float(held.delta),
        neighbours=held.neighbours.kind,
        declared=bool(held.declared_by),
    )
    identity = sha256_of([name, describe(rewriter), repr(held.epsilon), repr(held.stated), repr(held.delta)])
    return PlannedSubject(name, epsilon, true, delta, identity, stated)


def _size(subject: PlannedSubject) -> tuple[float, float]:
    held = subject.guarantee
    return (held.true_epsilon, held.epsilon) if held is not None else (0.0, 0.0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: the same sum in other threads can differ in its last digits."""
    try:
        import torch
    except ImportError:
        raise InputError("a measurement needs torch: pip install 'dpassay[text]'") from None
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def sha256_of(data: Any) -> str:
    """The SHA-256 of data that JSON can hold."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()
