"""What hostile inputs show about traced code.

A finding is a warning. It refutes a claim if the claim covers the pair and counted runs, or the exact loss, bound ε
from below.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from dpassay.audit.inputs.hostile_inputs import HostileInput, hostile_inputs
from dpassay.core.interval import Interval, bound
from dpassay.core.neighbours import Neighbours
from dpassay.evidence.verdict import Bounds, ExactEvidence, Refuted, SampledEvidence
from dpassay.trace.findings.findings import Finding
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.natural.counting import Counting
from dpassay.trace.natural.failing import RunError, SubjectGone
from dpassay.trace.natural.outputs import CannotBeRead, leaves, same
from dpassay.trace.result import TraceResult
from dpassay.trace.runner import ALPHA
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

MOST_RUNS = 200  # of a trace, including the counted runs of hostile inputs
LEAST_RUNS = 185  # for hostile inputs, even if earlier steps needed more runs
MOST_PROBING = 90  # of these for exploration
MOST_SECONDS, SECONDS = 60.0, 2.0  # for slow code; for the counted runs of one finding
MOST_COUNTED, SHARE = 4, ALPHA / 8  # findings whose runs are counted, and the error probability of each
WHOLE_ALPHA = 2 * ALPHA  # of a whole trace: ALPHA for the given pairs, SHARE for a huge one, and for each count
ORDINARY, STEADY, MOST_KEPT = 4, 6, 24  # runs of the ordinary input; of one that never changes; of a text's odd word
MOST_ORDINARY = 12  # of the ordinary input, if all of the first had its own words
BY_CHANCE = 1e-3  # probability that a word treated like the others is kept as often
LARGE = 1e15  # from here a number counts as unbounded


@contextmanager
def quiet() -> Iterator[None]:
    """Silence numpy and others, which warn about exactly what hostile inputs provoke."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class _Refused(Exception):
    """The code raised an exception for this input."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A finding about a hostile input, and the event in the output that shows it; None if a loss is exact."""

    one: HostileInput
    finding: Finding
    event: Callable[[Any], bool] | None


@dataclass
class Probing:
    """Runs of hostile inputs, compared with those of an ordinary one, `x`."""

    tracer: Tracer
    x: Any
    until: int = MOST_RUNS
    refused: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    accepted: dict[str, list[str]] = field(default_factory=dict)
    gone: bool = False  # whether no more runs can be made
    most: int | None = None  # hostile inputs, if not limited by the time they take
    tried: int = 0

    def __post_init__(self) -> None:
        self.usual = [leaves(run.output) for run in (self.run(self.x) for _ in range(ORDINARY))]
        self.words = [_words(self.run(self.x).output)] if _has_text(self.usual[0]) else []
        self.varies = all(one != other for i, one in enumerate(self.usual) for other in self.usual[:i])
        self.last = self.tracer.runs + MOST_PROBING
        self.ends = time.monotonic() + MOST_SECONDS

    def run(self, x: Any) -> RecordedRun:
        """One run."""
        with quiet():
            try:
                return self.tracer.run(x)
            except Exception as error:
                self.gone = isinstance(error, SubjectGone)
                raise _Refused(error.kind if isinstance(error, RunError) else type(error).__name__) from error

    def look(self, one: HostileInput) -> Seen | None:
        """What one hostile input shows; None if nothing, or if it is refused."""
        try:
            first = self.run(one.value)
            found = next((seen for ask in self._questions() if (seen := ask(one, first)) is not None), None)
        except CannotBeRead:
            return None
        except _Refused as error:
            self.refused.setdefault(one.kind, []).append((one.what, str(error)))
            return None
        self.accepted.setdefault(one.kind, []).append(one.what)
        return found

    def look_at_all(self, offered: Sequence[HostileInput]) -> Iterator[Seen]:
        """What all of them show, one sentence per kind; the last one is about those that are refused."""
        said: set[str] = set()
        for one in offered:
            late = time.monotonic() > self.ends if self.most is None else self.tried >= self.most
            if late or self.gone or self.tracer.runs >= min(self.last, self.until - 2):
                break
            self.tried += 1
            seen = self.look(one)
            if seen is not None and (key := _key(seen.finding)) not in said:
                said.add(key)
                yield seen
        for kind, refused in self.refused.items():
            if kind in self.accepted:
                yield Seen(HostileInput("", kind, None, frozenset()), _some_refused(refused, self.accepted[kind]), None)

    def _questions(self) -> tuple[Callable[[HostileInput, RecordedRun], Seen | None], ...]:
        return (self._not_finite, self._unbounded, self._kept, self._size, self._steady)

    def _not_finite(self, one: HostileInput, first: RecordedRun) -> Seen | None:
        usual = max(map(_not_finite, self.usual))
        found = leaves(first.output)
        if _not_finite(found) <= usual or _not_finite(leaves(self.run(one.value).output)) <= usual:
            return None
        kinds = [leaf for leaf in found if isinstance(leaf, float) and not math.isfinite(leaf)]
        what = "NaN" if any(map(math.isnan, kinds)) else "an infinity"
        where = "" if len(found) == 1 else f" in {len(kinds):,} coordinate{'s' * (len(kinds) > 1)}"
        finding = Finding("not-finite", None, f"{one.what} produces {what}{where}")
        return Seen(one, finding, lambda output: _not_finite(leaves(output)) > usual)

    def _unbounded(self, one: HostileInput, first: RecordedRun) -> Seen | None:
        if _largest(leaves(one.value)) < LARGE or max(map(_largest, [leaves(self.x), *self.usual])) >= LARGE:
            return None
        nodes = [(float(np.abs(node.offset).max(initial=0.0)), node.place) for node in first.nodes if node.added]
        size, place = max(nodes, key=lambda found: found[0], default=(0.0, None))
        if place is not None and LARGE <= size < math.inf:
            said = f"nothing bounds what {place} adds noise to: {one.what} reaches it as {size:.3g}"
            return Seen(one, Finding("unbounded-input", place, said), None)
        out = _largest(leaves(first.output))
        if out < LARGE:
            return None
        said = f"nothing bounds the output: {one.what} comes out as {out:.3g}"
        return Seen(one, Finding("unbounded-input", None, said), None)

    def _kept(self, one: HostileInput, first: RecordedRun) -> Seen | None:
        if not one.word or one.word in " ".join(map(str, leaves(self.x))).split():
            return None
        enough = self._enough(one)
        if enough > MOST_KEPT or any(one.word in words for words in self.words):
            return None
        for k in range(enough):
            if one.word not in _words((first if k == 0 else self.run(one.value)).output):
                return None
        other = ", where other words are changed" if isinstance(self.x, str) else ""
        said = f"{one.what} comes out unchanged{other} ({one.word[:20]!r}, in {enough} of {enough} runs)"
        return Seen(one, Finding("odd-word-kept", None, said), lambda output: one.word in _words(output))

    def _enough(self, one: HostileInput) -> int:
        """How many runs distinguish a word that is always kept from one kept as often as the others of a text."""
        if not isinstance(self.x, str):
            return STEADY
        while True:
            own = [word in words for words in self.words for word in self.x.split()]
            rate = (sum(own) + 1) / (len(own) + 2)
            enough = max(ORDINARY, math.ceil(math.log(BY_CHANCE) / math.log(rate)))
            # A word that comes out half of the time is there in 4 of 4 runs once in 16 traces.
            if len(self.words) >= (ORDINARY if enough <= MOST_KEPT else MOST_ORDINARY):
                return enough
            self.words.append(_words(self.run(self.x).output))

    def _size(self, one: HostileInput, first: RecordedRun) -> Seen | None:
        sizes = {len(usual) for usual in self.usual}
        length = len(leaves(first.output))
        if (
            one.kind != "rows"
            or len(sizes) != 1
            or length in sizes
            or len(leaves(self.run(one.value).output)) != length
        ):
            return None
        said = f"{one.what} changes the size of the output, from {sizes.pop():,} to {length:,}"
        return Seen(one, Finding("size-shows", None, said), lambda output: len(leaves(output)) == length)

    def _steady(self, one: HostileInput, first: RecordedRun) -> Seen | None:
        value = leaves(first.output)
        if not self.varies or not value:
            return None
        for _ in range(STEADY - 1):
            if not all(same(value, leaves(self.run(one.value).output))):
                return None
        finding = Finding("same-every-run", None, f"{one.what} comes out the same in every run, as {_short(value)}")
        return Seen(one, finding, lambda output: all(same(value, leaves(output))))


def with_hostile(
    result: TraceResult, tracer: Tracer, x: Any, relation: Neighbours | None, most: int | None = None
) -> TraceResult:
    """The same result with what hostile inputs show: warnings, or a refutation if the relation allows the pair."""
    try:
        probing = Probing(tracer, x, max(MOST_RUNS, tracer.runs + LEAST_RUNS), most=most)
    except (_Refused, CannotBeRead):  # it fails occasionally, or its output is not read
        return result
    rows = relation is not None and relation.relation == "add-remove-record"  # otherwise a list of numbers is a vector
    offered = [one for one in hostile_inputs(x) if rows or one.kind != "entries"]
    found = _joined(probing.look_at_all(offered))
    result = replace(result, tried=probing.tried)
    if result.verdict.open and relation is not None:
        counted = 0
        for seen in found:
            if seen.event is None or not seen.one.neighbours(relation) or counted == MOST_COUNTED:
                continue
            counted += 1
            refuted, finding = count(result, probing, seen)
            if refuted is not None:
                others = tuple(other.finding for other in found if other is not seen)
                return _counted_with(refuted, tracer, others)
            found[found.index(seen)] = replace(seen, finding=finding)
    return _counted_with(result, tracer, tuple(seen.finding for seen in found))


def _counted_with(result: TraceResult, tracer: Tracer, warnings: tuple[Finding, ...]) -> TraceResult:
    runs = tracer.runs + tracer.natural.runs
    verdict = replace(result.verdict, sampled=replace(result.verdict.sampled, runs=runs))
    return replace(result, verdict=verdict, warnings=(*result.warnings, *warnings), runs=runs)


def count(result: TraceResult, probing: Probing, seen: Seen) -> tuple[TraceResult | None, Finding]:
    """Count natural runs of both inputs; the refuted result, if they refute the claim, and the finding."""
    verdict, tracer, pair = result.verdict, probing.tracer, (probing.x, seen.one.value)
    claimed, delta = verdict.guarantee.claimed, verdict.guarantee.delta
    natural = tracer.natural
    if natural.kept:
        return None, seen.finding
    budget = TimeBudget(SECONDS)
    natural.until = budget.ends
    with quiet():
        if natural.remembers(pair, [(tracer.seed, 4, 0)]) is not False:
            return None, seen.finding  # watched runs have changed what later ones do
        found = Counting(natural, pair, claimed, delta, SHARE, tracer.seed + 1, False, budget).decide()
    if found is None:
        return None, seen.finding
    said = f"{seen.finding.message}; counted: {found}"
    if found.epsilon <= claimed:
        more = f"{said}: ε ≥ {bound(found.epsilon, -1, significant=3)}, an audit with more runs may show more"
        return None, replace(seen.finding, message=more)
    finding = replace(
        seen.finding, message=f"{said}: ε ≥ {bound(found.epsilon, -1, significant=3)} (error probability {SHARE:.2g})"
    )
    bounds = Bounds(Interval(found.epsilon, math.inf, "counted runs", "nothing"))
    sampled = SampledEvidence(alpha=WHOLE_ALPHA, runs=tracer.runs + natural.runs, seed=verdict.seed)
    refuted = Refuted(verdict.claim, bounds, finding.message, ExactEvidence(), sampled)
    findings, around = (finding, *result.findings), Interval(found.epsilon, math.inf)
    changed = replace(result, verdict=refuted, findings=findings, pair=pair, pair_epsilon=around, count=found)
    return replace(changed, trials=None, traced_epsilon=Interval(0.0, math.inf)), finding


def _some_refused(refused: list[tuple[str, str]], accepted: list[str]) -> Finding:
    kinds = ", ".join(dict.fromkeys(kind for _, kind in refused))
    names = ", ".join(dict.fromkeys(what for what, _ in refused))
    said = f"refused with {kinds}: {names}; not refused: {', '.join(dict.fromkeys(accepted))}"
    return Finding("some-refused", None, f"{said}. A failure reveals which it was")


def _joined(found: Iterator[Seen]) -> list[Seen]:
    """The same, with all odd words of a text that are kept in one sentence."""
    several = list(found)
    kept = [seen for seen in several if seen.finding.rule == "odd-word-kept" and "word" in seen.one.relations]
    if len(kept) < 2:
        return several
    also = ", ".join(seen.one.what for seen in kept[1:])
    message = f"{kept[0].finding.message}; so do these: {also}"
    first = replace(kept[0], finding=replace(kept[0].finding, message=message))
    return [first, *(seen for seen in several if seen not in kept)]


def _key(finding: Finding) -> str:
    """What identifies a finding to be reported once: for unbounded inputs any one is enough."""
    return finding.rule if finding.rule == "unbounded-input" else finding.message


def _words(output: Any) -> set[str]:
    """The words of an output, including the keys of dicts."""
    if isinstance(output, dict):
        keys = {word for key in output if isinstance(key, str) for word in key.split()}
        return keys.union(*map(_words, output.values()))
    if isinstance(output, list | tuple | set | frozenset):
        return set().union(*map(_words, output))
    if isinstance(output, np.ndarray) and output.dtype.kind in "UO":
        return _words(output.tolist())
    return set(output.split()) if isinstance(output, str) else set()


def _has_text(found: list[Any]) -> bool:
    return any(isinstance(leaf, str) for leaf in found)


def _not_finite(found: list[Any]) -> int:
    return sum(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in found)


def _largest(found: list[Any]) -> float:
    return max((abs(leaf) for leaf in found if isinstance(leaf, float) and math.isfinite(leaf)), default=0.0)


def _short(value: list[Any]) -> str:
    text = repr(value[0] if len(value) == 1 else value)
    return text if len(text) <= 60 else f"{text[:59]}…"
