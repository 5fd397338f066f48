"""Which of many pairs to audit: the one whose outputs look most promising.

Every input runs once for all pairs that contain it. With very many pairs, those with similar outputs are discarded
by comparing frequencies; rules are learned for the others, and the best third continues with more runs. These runs are
never used to test a claim, so the verdict is valid whatever is chosen here.
"""

import json
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.mechanisms.common_numbers import common_numbers
from dpassay.audit.outputs.leaf_dict import Leaves, written
from dpassay.audit.outputs.outputs import Array, Outputs, join, part
from dpassay.audit.outputs.texts.ngrams import ngrams
from dpassay.audit.testing.decision_rule import FAR_SPREADS, DecisionRule, best_of_many, learn
from dpassay.audit.testing.expected_power import Hypothesis
from dpassay.audit.testing.experiment import FARTHEST, FIRST_ROUND, LEARN, Experiment, factor_for, stream
from dpassay.audit.testing.training import (
    LEARNT_CELLS,
    UNKNOWN_WIDTH,
    Extrapolated,
    check_alive,
    draw_outputs,
    guess_rate,
    learn_rule,
    runs_on,
    training_outputs,
)
from dpassay.core.json import plain
from dpassay.errors import InputError, MechanismError
from dpassay.values import dataclass

SEARCH = 1  # experiments of the search are numbered from here
CHECK = 1000  # the random stream of the runs that check a pair
SCREENED = 12  # pairs for which rules are learned; if there are more, only those whose frequencies differ most
MOST_WITH_DISTRIBUTIONS = 256
NEARLY, NEARLY_FIXED = 0.1, 0.02  # by what share a simpler pair may fall short of the best promise
ENOUGH_EACH = 400  # runs for each pair from which on some use inputs farther apart
FEWEST_EACH = 16  # runs of an input
REFUSALS = 2  # pairs farther apart that the mechanism may refuse before no more of them are tried
CHECKED = 5  # one in this many of the runs farther apart is kept to check the chosen pair on neighbors
BINS, COLUMNS, HASHED = 16, 64, 512  # cells in which frequencies are compared

Inputs = tuple[Any, ...]


def search(
    experiment_of: Callable[[Inputs, int, Hypothesis], Experiment],
    input_sets: Sequence[Inputs],
    hypothesis: Hypothesis,
    budget: int,
    fixed: bool,
) -> Iterator[tuple[int, Inputs | None]]:
    """After every step, the number of runs it took, and the pair once it is found.

    If there are many runs, a third goes to the pairs themselves. If these show little, the others go to inputs that are
    farther apart by some factor, if such inputs exist: their loss is larger by about this factor, and
    the square of the factor fewer runs show it. They also show which pair is best, unless its own runs contradict that.
    """
    # With many runs to come, a pair's potential is in the tails, where there are few outputs yet; else in the counts.
    hypothesis = replace(hypothesis, spreads=FAR_SPREADS if fixed else 0.0)
    enough = fixed and len(input_sets) > 1 and budget >= ENOUGH_EACH * len(input_sets)
    both = enough and experiment_of(input_sets[0], SEARCH, hypothesis).farther(FARTHEST) is not None
    left, found, promise = budget - budget // 3, 0, 0.0
    for cost, best in _tournament(experiment_of, input_sets, hypothesis, budget - left * both, fixed, validated=both):
        if best is not None:
            found, promise = best.place, best.promise
        yield cost, None
    factor = factor_for(promise) if both else 1
    if factor > 1:
        for cost, other in _farther(experiment_of, input_sets, hypothesis, left, factor, promise):
            found = found if other is None else other
            yield cost, None
    yield 0, input_sets[found]


def _farther(
    experiment_of: Callable[[Inputs, int, Hypothesis], Experiment],
    input_sets: Sequence[Inputs],
    hypothesis: Hypothesis,
    budget: int,
    factor: int,
    promise: float,
) -> Iterator[tuple[int, int | None]]:
    """After every step, the number of runs it took; at the end the pair that is best farther apart, if there is one."""
    usable: list[int] = []
    farther: list[Inputs] = []
    left, refused = budget - budget // CHECKED, 0
    for k, pair in enumerate(input_sets):
        at = experiment_of(pair, SEARCH + k, hypothesis).farther(factor)
        if at is None or refused == REFUSALS or left < 2:
            continue
        left -= 2
        yield 2, None
        if runs_on(at, LEARN):
            usable.append(k)
            farther.append(at.inputs)
        else:
            refused += 1
    if not usable:
        return
    fewer = replace(hypothesis, runs=max(1, hypothesis.runs // factor**2))
    best: _Best | None = None
    try:
        for cost, found in _tournament(experiment_of, farther, fewer, left, True, validated=True):
            left, best = left - cost, found
            yield cost, None
    except (InputError, MechanismError):  # about inputs that nobody asked about
        yield left, None
        return
    if best is None or best.rule is None:
        return
    k = usable[best.place]
    checked = Extrapolated(best.rule, factor, best.rate)
    at = experiment_of(input_sets[k], SEARCH + k, hypothesis)
    seen, _ = training_outputs(at, budget // CHECKED, at.paired_streams(CHECK))
    checked.look(seen)
    yield sum(map(len, seen)), k if checked.holds_against(promise) else None


@dataclass(frozen=True)
class _Best:
    """The best pair of a tournament: its place, its promise, the rule that gives it, and how often that guesses."""

    place: int
    promise: float
    rule: DecisionRule | None = None
    rate: float = 0.0


def _tournament(
    experiment_of: Callable[[Inputs, int, Hypothesis], Experiment],
    input_sets: Sequence[Inputs],
    hypothesis: Hypothesis,
    budget: int,
    fixed: bool,
    validated: bool = False,
) -> Iterator[tuple[int, _Best | None]]:
    """After every step, the number of runs it took; at the end, the best pair.

    A `validated` promise is measured on other runs than those that thresholds are chosen on.
    """
    first = experiment_of(input_sets[0], SEARCH, hypothesis)
    known = first.custom is None and first.distributions() is not None
    pool = _Pool(first, input_sets, budget)
    alive = pool.distinct()
    most = MOST_WITH_DISTRIBUTIONS if known else budget // (2 * FEWEST_EACH)
    alive = [alive[i] for i in _thinned(len(alive), most)]
    if len(alive) == 1:
        yield 0, _Best(alive[0], 0.0)
        return
    screening = not known and len(alive) > SCREENED
    stages = max(1, math.ceil(math.log(min(len(alive), SCREENED) if screening else len(alive), 3) - 0.5))
    quota = budget // (stages + screening)
    if screening:
        yield pool.fill(alive, quota, FIRST_ROUND * 4 if not fixed else budget, 0), None
        alive = _screened(pool, alive)
    for stage in range(stages):
        if not known:
            yield pool.fill(alive, quota, FIRST_ROUND * 4 * 3**stage if not fixed else budget, 1 + stage), None
        promises, rate = [], 0.0
        for k in alive:
            at = experiment_of(input_sets[k], SEARCH + k, hypothesis)
            if known:
                rules = [learn_rule(at, max(32, quota // len(alive)), stage).rule]
            else:
                halves = list(zip(*(pool.halves(i) for i in pool.places[k]), strict=True))
                ways = (halves, halves[::-1]) if stage == stages - 1 else (halves,)
                looks = at.bits, at.offered()
                if validated:
                    fitted = ((fit_all(fit, at.inputs, *looks), iter([rest])) for fit, rest in ways)
                    rules = [best_of_many(*some, hypothesis) for some in fitted]
                else:
                    rules = [learn(fit, rest, at.inputs, hypothesis, None, at.custom, *looks) for fit, rest in ways]
                rate = 0.0 if rules[0] is None else guess_rate(rules[0], ways[0][1])
            promise = sum(-1e300 if rule is None else rule.expected_power for rule in rules) / len(rules)
            promises.append(_Best(k, promise, rules[0], rate))
            yield 0, None
        best = max(each.promise for each in promises)
        if stage == stages - 1:  # among pairs that promise nearly the same, the first is the simplest
            nearly = best - (NEARLY_FIXED if fixed else NEARLY) * abs(best)
            yield 0, next(each for each in promises if each.promise >= nearly)
            return
        order = np.argsort([-each.promise for each in promises], kind="stable")[: math.ceil(len(alive) / 3)]
        alive = sorted(alive[i] for i in order)


def _thinned(number: int, most: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, number - 1, max(1, min(number, most))).astype(int))]


class _Pool:
    """The outputs of each input so far."""

    def __init__(self, experiment: Experiment, input_sets: Sequence[Inputs], budget: int) -> None:
        self.left = budget  # runs that may still be made
        names: dict[Any, int] = {}
        self.experiment = experiment
        self.places = [[names.setdefault(_name(x), len(names)) for x in pair] for pair in input_sets]
        self.inputs = {
            i: x for pair, where in zip(input_sets, self.places, strict=True) for x, i in zip(pair, where, strict=True)
        }
        self.outputs: dict[int, Outputs] = {}

    def distinct(self) -> list[int]:
        """Pairs in order, without those that already occurred in reverse."""
        first = {frozenset(where): k for k, where in reversed(list(enumerate(self.places)))}
        return sorted(first.values())

    def fill(self, alive: Sequence[int], runs: int, most: int, stage: int) -> int:
        """Run all inputs of these pairs, discard the others; return how many runs it took."""
        needed = sorted({i for k in alive for i in self.places[k]})
        self.outputs = {i: outputs for i, outputs in self.outputs.items() if i in needed}
        room = max(1, LEARNT_CELLS // len(needed))
        cost, share = 0, self.left // len(needed)
        for i in needed:
            rng = common_numbers(stream(self.experiment.seed, SEARCH, LEARN, stage))  # alike for all inputs
            old = self.outputs.get(i)
            left = room if old is None else room - len(old) * max(1, old.width or UNKNOWN_WIDTH)
            each = min(max(FEWEST_EACH, min(runs // len(needed), most)), share)
            if each < 1 or (old is not None and left <= 0):
                continue
            (new,), _, _ = draw_outputs(self.experiment, (self.inputs[i],), each, [rng], left)
            cost += len(new)
            self.outputs[i] = new if old is None else join([old, new])
        check_alive(list(self.outputs.values()), self.experiment.mechanism)
        self.left -= cost
        return cost

    def halves(self, i: int) -> tuple[Outputs, Outputs]:
        """Outputs to fit and outputs to calibrate on."""
        outputs = self.outputs[i]
        return part(outputs, 0, len(outputs) // 2), part(outputs, len(outputs) // 2)


def _name(x: Any) -> Any:
    """A name that is the same for equal inputs."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x.dtype.str, x.shape, x.tobytes()
    try:
        return json.dumps(plain(x))
    except (InputError, ValueError):
        return id(x)


def _screened(pool: _Pool, alive: Sequence[int]) -> list[int]:
    """The pairs whose frequencies differ most: half of them in all cells together, half in a single one."""
    rows, runs = _frequencies(pool.outputs)
    first, second = (np.array([pool.places[k][side] for k in alive]) for side in (0, 1))
    together, single = np.zeros(len(alive)), np.zeros(len(alive))
    for start in range(0, len(alive), 1024):
        i, j = first[start : start + 1024], second[start : start + 1024]
        sizes = 1 / runs[i] + 1 / runs[j]
        gap = (rows[i] - rows[j]) ** 2 / ((rows[i] + rows[j]) / 2 + 0.5 * sizes[:, None]) / sizes[:, None]
        together[start : start + 1024], single[start : start + 1024] = gap.sum(axis=1), gap.max(axis=1)
    chosen: dict[int, None] = {}
    for i, j in zip(
        np.argsort(-together, kind="stable").tolist(), np.argsort(-single, kind="stable").tolist(), strict=True
    ):
        chosen.update({alive[i]: None, alive[j]: None})
        if len(chosen) >= SCREENED:
            break
    return sorted(list(chosen)[:SCREENED])


def _frequencies(pool: dict[int, Outputs]) -> tuple[Array, NDArray[Any]]:
    """For each input, how often an output falls into each of many cells: bins of numbers, hashed outputs, n-grams."""
    everything = list(pool.values())
    widths = {outputs.width for outputs in everything}
    width = min(COLUMNS, next(iter(widths)) or 0) if len(widths) == 1 else 0
    edges = []
    for column in range(width):
        some = np.concatenate([outputs.matrix(outputs.width or 1)[:200, column] for outputs in everything])
        finite = some[np.isfinite(some)]
        edges.append(
            np.unique(np.quantile(finite, np.arange(1, BINS) / BINS, method="nearest")) if len(finite) else finite
        )
    frequencies, runs = np.zeros((max(pool) + 1, width * (BINS + 1) + 2 * HASHED)), np.ones(max(pool) + 1)
    for i, outputs in pool.items():
        row = frequencies[i]
        for column, cuts in enumerate(edges):
            values = outputs.matrix(outputs.width or 1)[:, column]
            where = np.where(np.isnan(values), BINS, np.searchsorted(cuts, values, side="right"))
            row[column * (BINS + 1) :][: BINS + 1] = np.bincount(where, minlength=BINS + 1)
        row[width * (BINS + 1) :][:HASHED] = np.bincount(
            (outputs.keys() >> np.uint64(40)).astype(np.int64) % HASHED, minlength=HASHED
        )
        if outputs.numbers is None:
            numbers, cells = ngrams(outputs.texts())
            each = np.unique(numbers * HASHED + cells % HASHED)
            row[-HASHED:] += np.bincount(each % HASHED, minlength=HASHED)
        for leaves in outputs.leaves if outputs.structured else ():
            row[-HASHED:][_leaf_cells(leaves)] += 1
        runs[i] = max(1, len(outputs))
    return frequencies / runs[:, None], runs


def _leaf_cells(leaves: Leaves) -> list[int]:
    """A cell for each leaf with its path: numbers by sign and size, others by value."""
    cells = set()
    for path, leaf in leaves.items():
        entries = leaf[:COLUMNS].tolist() if isinstance(leaf, np.ndarray) else [leaf]
        for j, entry in enumerate(entries):
            said = f"{entry:.1g}" if isinstance(entry, float) else written(entry)
            cells.add(zlib.crc32(f"{path} {j} {said}".encode("utf-8", "surrogatepass")) % HASHED)
    return sorted(cells)
