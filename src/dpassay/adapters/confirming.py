"""Whether an object does what the formula says that was read from it: it is run, and its outputs are compared.

The object is run some times on each of a few inputs, and the formula is sampled for the same ones. Events are fixed
before the object runs: single numbers of the output, their sums, and the change from one run to the next, at most some
quantile of the formula, or equal to some value. The probability of an event has a Clopper-Pearson interval for the
object and another for the formula; if two of them are disjoint, object and formula differ. All intervals hold at once
except with probability `ALPHA`, so an object that does what its formula says is doubted at most at that rate.
Conversely, agreement only means that no event differs by more than the runs can show.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from dpassay.core.interval import Interval
from dpassay.errors import counted, escape_control_chars, in_one_line
from dpassay.evidence.verdict import Advice, Bounds, Open, Verdict
from dpassay.pipeline.distributions import as_vector
from dpassay.pipeline.mechanism import Failure, Mechanism
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.adapters.base import ReadObject

Numbers: TypeAlias = npt.NDArray[np.float64]

ALPHA = 1e-6  # the probability of doubting an object that does what its formula says
SHOWN = "the probabilities of the object's outputs for two inputs"
MANY = 4_000  # runs, of an object that draws fast
RUNS = 1_000  # of the object on each input; if each number of an output has its own noise, numbers of all outputs
LEAST = 20  # runs of an object with several numbers
DRAWS = 50_000  # of the formula
MOST = 4_000_000  # numbers drawn from the formula
QUANTILES = (0.005, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 0.995)
FEW = 40  # values: that many are tested one by one
COORDINATES = 8  # of an output that are tested one by one


@dataclass(frozen=True)
class Confirmation:
    """Whether an object agrees with the formula read from it, and the sentence that says so in the verdict.

    A formula may hold for more inputs than the object can have. `lower` is then what the object itself showed of the
    claimed parameter, `delta` what it showed of δ at the claimed ε, and `refutes` whether that exceeds the claim.
    """

    agrees: bool
    sentence: str
    lower: float | None = None
    refutes: bool = False
    delta: float = 0.0


@dataclass(frozen=True)
class ConfirmingTrial:
    """An input of an object, the formula's input in its place, and the last step applied to the formula's outputs.

    `finish` is a deterministic last step for which the formula has no stage of its own.
    """

    given: Any
    answer: Any
    finish: Callable[[Numbers], Numbers] | None = None


@dataclass(frozen=True)
class ConfirmingEvent:
    """A set of outputs: those whose `feature` is at most a value, equals it, or is none of those that are possible."""

    feature: str
    kind: str
    value: float = 0.0
    among: tuple[float, ...] = ()

    def happens(self, features: dict[str, Numbers]) -> tuple[int, int]:
        """How often it happened, and of how many times."""
        values = features[self.feature]
        if self.kind == "other":
            hits = ~np.isin(values, self.among)
        else:
            hits = values <= self.value if self.kind == "most" else values == self.value
        return int(hits.sum()), len(values)

    def __str__(self) -> str:
        if self.kind == "other":
            return f"{self.feature} is none of the {len(self.among)} possible values"
        return f"{self.feature} {'is at most' if self.kind == 'most' else 'equals'} {self.value:.6g}"


def with_confirmation(
    verdict: Verdict,
    known: ReadObject,
    as_mechanism: Callable[[Any], Mechanism],
    pairs: Sequence[tuple[Any, Any]] | None,
) -> Verdict:
    """The verdict on a formula as one on the object it was read from: Open, unless the object confirms the formula."""
    found, warnings = known.confirmed(verdict, as_mechanism, pairs), (*verdict.warnings, *known.caveats)
    if found is None:
        return replace(verdict, advice=replace(verdict.advice, warnings=warnings))
    claim = replace(verdict.claim, mechanism=known.mechanism or known.name, text=known.name)
    if not found.agrees:
        reason = (
            f"{known.name} was read as {verdict.mechanism}, but running it does not confirm that. {found.sentence} So "
            "the formula decides nothing about this object: test it with dpassay.audit or dpassay.trace."
        )
        nothing = Interval(0.0, math.inf, "nothing", "nothing: the object does not confirm the formula")
        return Open(claim, Bounds(nothing), reason, advice=Advice(warnings=warnings))
    if found.lower is not None:
        value = Interval(min(found.lower, verdict.value.upper), verdict.value.upper, SHOWN, verdict.value.upper_from)
        if verdict.refuted and not found.refutes:
            reason = f"Some logits exceed the claim, but no inputs of the object were found that do. {found.sentence}"
            return Open(claim, Bounds(value), reason, advice=Advice(warnings=warnings))
        own = "The object's own outputs exceed the claim." if verdict.refuted else verdict.reason
        verdict = replace(verdict, bounds=Bounds(value, _of_object(verdict.delta, found.delta)), reason=own)
    reason = f"{verdict.reason} {found.sentence}"
    return replace(verdict, reason=reason, advice=replace(verdict.advice, warnings=warnings))


def _of_object(delta: Interval | None, shown: float) -> Interval | None:
    """δ at the claimed ε: at most that of the formula, at least what the object showed."""
    if delta is None:
        return None
    return Interval(min(shown, delta.upper), delta.upper, SHOWN, delta.upper_from)


def by_runs(
    run: Callable[[Any], Any],
    pipeline: str,
    dim: int | None,
    trials: Sequence[ConfirmingTrial],
    numbers: Callable[[Any], Any] = lambda output: output,
    runs: int = RUNS,
) -> Confirmation:
    """Run an object on each input and compare its outputs, as `numbers`, with the formula's.

    >>> rng = np.random.default_rng(0)
    >>> by_runs(lambda x: x + rng.laplace(0, 2), "query(l1, 1) | laplace(2)", 1, [ConfirmingTrial(0.0, 0.0)]).sentence
    '1,000 runs of the object agree with this formula (false-alarm rate 1e-06).'
    >>> by_runs(lambda x: x + rng.laplace(0, 1), "query(l1, 1) | laplace(2)", 1, [ConfirmingTrial(0.0, 0.0)]).agrees
    False
    """
    formula = parse(pipeline, dim, {})
    if not trials:
        return Confirmation(False, "No input is known on which the object could be run: give some with pairs=[(X, Y)].")
    total = 0
    for trial in trials:
        events, expected, width = _expected(formula, trial)
        found = _observed(run, trial, numbers, _how_many(formula, runs, width))
        if isinstance(found, str):
            return Confirmation(False, f"{_on(trial)} {found}")
        if found.shape[1] != width:
            return Confirmation(
                False,
                f"{_on(trial)} the object's output has {counted(found.shape[1], 'number')} where the formula has "
                f"{width}.",
            )
        total += len(found)
        difference = _difference(events, _features(found, trial, _is_additive(formula)), expected, len(trials))
        if difference is not None:
            return Confirmation(False, f"{_on(trial)} {difference}.")
    return Confirmation(True, f"{total:,} runs of the object agree with this formula (false-alarm rate {ALPHA:g}).")


def _how_many(formula: Pipeline, runs: int, width: int) -> int:
    """How often to run an object: less often if each run shows many independent numbers."""
    return max(2, min(LEAST, 2 * RUNS // width), runs // width) if _is_additive(formula) else runs


def _on(trial: ConfirmingTrial) -> str:
    return f"On the input {as_text(trial.given)[:60]}"


def as_text(value: Any) -> str:
    r"""A value in one line.

    >>> as_text(np.eye(2)), as_text("a\nb")
    ('array([[1., 0.], [0., 1.]])', "'a\\nb'")
    """
    return escape_control_chars(" ".join(repr(value).split()))


def _is_additive(formula: Pipeline) -> bool:
    """Whether each number of the output is that of the input with noise of its own, of the same law for all."""
    first, *rest = (stage for stage in formula.stages if stage.name != "times")
    return first.name in ("query", "counts", "onehot") and len(rest) == 1 and isinstance(rest[0], Additive)


def _expected(
    formula: Pipeline, trial: ConfirmingTrial
) -> tuple[list[ConfirmingEvent], dict[ConfirmingEvent, tuple[int, int]], int]:
    """The events, how often each happens by the formula, and how many numbers an output has.

    The events come from other draws than the counts.
    """
    rng = np.random.default_rng(0)
    additive = _is_additive(formula)
    width = _drawn(formula, trial, 1, rng).shape[1]
    draws = min(DRAWS, max(LEAST, MOST // width))
    pilot = _features(_drawn(formula, trial, draws // 5, rng), trial, additive)
    events = [event for name, values in pilot.items() for event in _events(name, values, trial)]
    counted = _features(_drawn(formula, trial, draws, rng), trial, additive)
    return events, {event: event.happens(counted) for event in events}, width


def _drawn(formula: Pipeline, trial: ConfirmingTrial, n: int, rng: np.random.Generator) -> Numbers:
    drawn = np.asarray(formula.sample(trial.answer, n, rng), dtype=float).reshape(n, -1)
    return drawn if trial.finish is None else trial.finish(drawn)


def _observed(
    run: Callable[[Any], Any], trial: ConfirmingTrial, numbers: Callable[[Any], Any], runs: int
) -> Numbers | str:
    """The outputs of an object, one per row; or a sentence that says why there are none."""
    rows: list[Numbers] = []
    with undisturbed():
        for _ in range(runs):
            try:
                output = run(trial.given)
            except Exception as error:
                return f"the object raised {in_one_line(type(error).__name__, str(error))[:120]}."
            if isinstance(output, Failure):
                return f"the object raised {in_one_line(output.kind, output.said)[:120]}."
            try:
                rows.append(np.asarray(numbers(output), dtype=float).ravel())
            except (TypeError, ValueError, LookupError):
                return f"the object put out {as_text(output)[:60]}, which the formula cannot."
            if not np.isfinite(rows[-1]).all() or rows[-1].shape != rows[0].shape:
                return f"the object put out {as_text(output)[:60]}, which the formula cannot."
    return np.stack(rows)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Restore the generators of Python and numpy afterwards: a check must not change later results."""
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)


def _features(outputs: Numbers, trial: ConfirmingTrial, additive: bool) -> dict[str, Numbers]:
    """What is compared of the outputs: single numbers or all noise together, sums, and changes between runs."""
    width = outputs.shape[1]
    answer = as_vector(trial.answer)
    if width == 1:
        found = {"the output": outputs[:, 0]}
    elif additive and width % len(answer) == 0 and trial.finish is None:
        found = {"the noise": (outputs - np.tile(answer, width // len(answer))).ravel()}
    else:
        spread = np.unique(np.linspace(0, width - 1, COORDINATES).astype(int))
        found = {f"output[{i}]": outputs[:, i] for i in spread}
    if width > 1:
        signs = np.where(np.arange(width) % 2, -1.0, 1.0)
        found |= {"the sum of the outputs": outputs.sum(axis=1), "their alternating sum": outputs @ signs}
    even = len(outputs) // 2 * 2
    return found | {"the change between two runs": (outputs[1:even:2] - outputs[0:even:2]).sum(axis=1)}


def _events(name: str, values: Numbers, trial: ConfirmingTrial) -> list[ConfirmingEvent]:
    """Single values if there are few, otherwise quantiles; also that the output is what it is without noise."""
    distinct = np.unique(values)
    if len(distinct) <= FEW:
        among = tuple(float(value) for value in distinct)
        return [
            *(ConfirmingEvent(name, "equals", value) for value in among),
            ConfirmingEvent(name, "other", among=among),
        ]
    found = [ConfirmingEvent(name, "most", float(np.quantile(values, q))) for q in QUANTILES]
    if name == "the sum of the outputs":
        return found
    still = float(as_vector(trial.answer)[0]) if name == "the output" else 0.0
    return [*found, ConfirmingEvent(name, "equals", still)]


def _difference(
    events: Sequence[ConfirmingEvent],
    features: dict[str, Numbers],
    expected: dict[ConfirmingEvent, tuple[int, int]],
    parts: int,
) -> str | None:
    """The event whose probabilities differ most clearly, as a sentence; None if none does."""
    level = ALPHA / (4 * len(events) * parts)  # two ends of two intervals for each event
    worst, said = 0.0, None
    for event in events:
        low, high = clopper_pearson(*event.happens(features), level)
        least, most = clopper_pearson(*expected[event], level)
        gap = max(low - most, least - high)
        if gap > worst:
            worst = gap
            said = f"{event} in {_share(low, high)} of runs, where the formula has {_share(least, most)}"
    return said


def _share(low: float, high: float) -> str:
    return f"{100 * low:.3g}% to {100 * high:.3g}%"


def clopper_pearson(hits: int, runs: int, level: float) -> tuple[float, float]:
    """An interval for a probability, each end of which is wrong with probability at most `level`.

    >>> low, high = clopper_pearson(0, 100, 0.01)
    >>> low, round(high, 6) == round(1 - 0.01 ** (1 / 100), 6)
    (0.0, True)
    """
    from scipy.special import betainccinv, betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, level))
    high = 1.0 if hits == runs else float(betainccinv(hits + 1, runs - hits, level))
    return (0.0 if math.isnan(low) else low), (1.0 if math.isnan(high) else high)
