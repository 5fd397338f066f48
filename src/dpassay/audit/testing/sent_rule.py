"""What a decision rule names in this process and in new ones: where they differ, runs depend on each other."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from dpassay.audit.distinguishers.base import Distinguisher
from dpassay.audit.mechanisms.fresh_calls import FreshCalls
from dpassay.audit.mechanisms.memory import memory_in_use
from dpassay.audit.mechanisms.targets import draw_each
from dpassay.audit.outputs.outputs import read
from dpassay.audit.testing.decision_rule import DecisionRule
from dpassay.audit.testing.experiment import COMPARE, SETTLING, Experiment, RoundResult
from dpassay.core.json import plain
from dpassay.errors import InputError

COMPARED, SECONDS = 200, 1.0  # calls of each input in this process, and seconds for those still to be made
PORTION = 20  # calls of an input in a row
Named = tuple[int, int, int]  # how often the first and the second input were named, and the calls


def fresh_calls(experiment: Experiment, input_sets: Sequence[tuple[Any, ...]]) -> FreshCalls:
    """New processes for the calls of an experiment's mechanism, from before the first one. They must be closed."""
    return FreshCalls(experiment.mechanism, input_sets, lambda data: named_by(data, experiment))


def refuse_dependent_runs(fresh: FreshCalls, at: int, experiment: Experiment, counted: RoundResult) -> None:
    """Refuse a mechanism that a rule distinguishes less often in new processes than in this one.

    `at` is the place of the experiment's inputs among those that the new processes know.
    """
    if fresh.process is None or len(experiment.inputs) != 2:
        return
    claimed, rule = experiment.hypothesis, counted.rule
    odds = math.exp(min(claimed.epsilon, 700.0)) + claimed.delta
    most, forgets = min(odds / (1 + odds), 1 - 1e-12), memory_in_use(experiment.mechanism)
    table, begun = _named_here(experiment, counted), time.monotonic()
    draw_each(experiment.mechanism, experiment.inputs, experiment.stream(COMPARE, SETTLING, 1))
    each = (time.monotonic() - begun) / 2
    if fresh.named_otherwise(at, sent(rule), table, most, forgets, each):
        raise InputError(
            f"the rule that would refute the claim ({rule.describe()}) distinguishes the inputs less often in new "
            "processes than in these runs: a call depends on what earlier calls left, or on what was undone after each "
            "call, so the runs are not independent and show nothing; let the mechanism keep nothing"
        )


def sent(rule: DecisionRule) -> bytes:
    """The rule, but for distinguishers that the other process has itself."""
    data = {"distinguisher": plain(rule.distinguisher.to_data()), "low": rule.low, "high": rule.high}
    return json.dumps({**data, "resolution": rule.resolution}).encode()


def named_by(data: bytes, experiment: Experiment) -> Callable[[Any], int]:
    """A function that says which input the rule names for an output: 0, 1, or −1 for neither."""
    asked = json.loads(data)
    found = Distinguisher.from_data(asked["distinguisher"], experiment.at_hand())
    rule = DecisionRule(found, asked["low"], asked["high"], 0, 0, 0.0, asked["resolution"])

    def names(output: Any) -> int:
        first, second = rule.count(read([output], experiment.unknown), 0)
        return 0 if first else 1 if second else -1

    return names


def _named_here(experiment: Experiment, counted: RoundResult) -> list[Named]:
    """What the rule named in the counted runs of two inputs, and in further calls where these are few."""
    rule, rng = counted.rule, experiment.stream(COMPARE, SETTLING)
    found = [list(row) for row in counted.counts.table()] or [[0, 0, 0], [0, 0, 0]]
    until = time.monotonic() + SECONDS
    while min(row[2] for row in found) < COMPARED and time.monotonic() < until:
        for side, x in enumerate(experiment.inputs):
            outputs = draw_each(experiment.mechanism, [x] * PORTION, rng)
            right, wrong = rule.count(read(outputs, experiment.unknown), side)
            found[side][side] += right
            found[side][1 - side] += wrong
            found[side][2] += PORTION
    return [(first, second, runs) for first, second, runs in found]
