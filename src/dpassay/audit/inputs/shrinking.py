"""Smaller counterexamples: pairs that differ less and still refute the claim through the same flaw."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher
from dpassay.audit.inputs.checks import InputPair, same, why_not_neighbours
from dpassay.audit.mechanisms.batches import twice_ranks
from dpassay.audit.mechanisms.targets import draw
from dpassay.audit.outputs.features import anomalies
from dpassay.audit.outputs.outputs import Outputs, join, read
from dpassay.audit.resolved import ResolvedAudit
from dpassay.audit.testing.experiment import LEARN, Experiment, GameResult, GameState, rejected
from dpassay.audit.testing.inference import AlphaBudget
from dpassay.audit.testing.sequential import anytime
from dpassay.errors import DpassayError

SHARE = 0.1  # of the error probability
NUMBER = 1_000_000  # of the first attempt's experiment
MOST_ATTEMPTS = 24
MOST_BROKEN = 8  # attempts that the mechanism aborted
COMPARED = 200  # outputs of each input, at most, used to compare the flaws
DEVIATIONS = 4.0  # how many standard deviations the scores of two inputs must be apart


def can_shrink(question: ResolvedAudit) -> bool:
    """Whether a smaller pair is wanted, and there is one to try."""
    wanted = question.options.shrink and not question.many
    return wanted and any(True for pair in question.input_sets for _ in smaller((pair[0], pair[1])))


class Shrinking:
    """Attempts at a smaller pair, each with at most `each` runs and its own small share of the error probability.

    A pair on which the mechanism fails, or that shows another flaw, does not count as smaller.
    """

    def __init__(self, question: ResolvedAudit, found: GameResult, budget: AlphaBudget, each: int, most: int) -> None:
        self.question, self.found, self.budget, self.each, self.most = question, found, budget, each, most
        self.hypothesis = replace(question.hypothesis, runs=0)
        self.spent = self.broken = 0
        self.shown: list[Outputs] | None = None

    def steps(self, pair: InputPair, attempt: int) -> Iterator[tuple[int, GameResult | None]]:
        """After every step the number of attempts begun, and the smallest pair so far if the step found one."""
        found = True
        while found:
            found = False
            for candidate in smaller(pair):
                if attempt >= MOST_ATTEMPTS or self.broken >= MOST_BROKEN or self.spent >= self.most:
                    return
                if same(*candidate) or size(candidate) >= size(pair) or not _allowed(self.question, candidate):
                    continue
                attempt += 1
                yield attempt, None  # the attempt counts, whatever happens next
                for result in self._attempt(candidate, attempt):
                    found = result is not None
                    yield attempt, result
                if found:
                    pair = candidate
                    break

    def _attempt(self, pair: InputPair, attempt: int) -> Iterator[GameResult | None]:
        alpha = self.budget.take("a smaller pair", SHARE * 6 / (math.pi * attempt) ** 2)
        game, before = GameState(kept=[[], []]), self.spent
        experiment = self.question.experiment(pair, NUMBER + attempt, self.hypothesis)
        try:
            for _ in anytime(experiment, game, min(self.each, self.most - before), alpha):
                self.spent = before + game.runs
                yield None
            if rejected(game, self.hypothesis, alpha, False) and self._same_flaw(game, experiment):
                yield GameResult(game, pair, NUMBER + attempt, alpha)
        except DpassayError:  # it was refuted before, and it is refuted now
            self.broken += 1
        finally:
            self.spent = max(self.spent, before + game.runs)

    def _same_flaw(self, game: GameState, experiment: Experiment) -> bool:
        """Whether a smaller pair shows the same flaw: no new anomalies, and the same differences.

        The distinguisher of either pair must also distinguish the inputs of the other.
        """
        first, now = self.found.game.best(self.hypothesis).rule, game.best(self.hypothesis).rule
        if experiment.distributions() is not None or not all(game.kept):
            return True
        if self.shown is None:
            self.shown = self._what_was_found()
        smaller_pair = [join(batches) for batches in game.kept]
        if _oddities(smaller_pair) - _oddities(self.shown):
            return False
        if experiment.custom is not None or (first.distinguisher.asks and now.distinguisher.asks):
            return True
        return _tells_apart(now.distinguisher, self.shown) or _tells_apart(first.distinguisher, smaller_pair)

    def _what_was_found(self) -> list[Outputs]:
        """Outputs of the original pair: those of its game, or new ones."""
        if self.found.game.kept and all(self.found.game.kept):
            return [join(batches) for batches in self.found.game.kept]
        experiment = self.question.experiment(self.found.inputs, NUMBER)
        rng = experiment.stream(LEARN)
        self.spent += 2 * COMPARED
        return [read(draw(experiment.mechanism, x, COMPARED, rng), experiment.unknown) for x in self.found.inputs]


def _oddities(sides: Sequence[Outputs]) -> set[str]:
    """The kinds of outputs that occur: numbers, text, NaN, each kind of failure."""
    return {name for outputs in sides for name in anomalies(outputs, ())[1].values()}


def _tells_apart(distinguisher: Distinguisher, sides: Sequence[Outputs]) -> bool:
    """Whether scores are higher for the second input, far beyond chance (Mann-Whitney). No verdict depends on it."""
    try:
        first, second = (distinguisher.score(outputs) for outputs in sides)
    except DpassayError:  # outputs of another shape
        return False
    scores = np.concatenate([first, second])
    known = ~np.isnan(scores)
    chosen, one = scores[known], int(known[: len(first)].sum())
    other = len(chosen) - one
    if not one or not other:
        return False
    ranks = twice_ranks(chosen) / 2
    spread = math.sqrt(one * other * float(np.var(ranks, ddof=1)) / (one + other)) if one + other > 2 else 0.0
    return bool(ranks[one:].sum() - other * (one + other + 1) / 2 > DEVIATIONS * spread > 0)


def _allowed(question: ResolvedAudit, pair: InputPair) -> bool:
    """Whether the guarantee covers a pair, and the region contains it."""
    if why_not_neighbours(*pair, question.neighbours, question.pipeline):
        return False
    if question.neighbours.relation == "add-remove-record" and question.pipeline is not None:
        return False  # a part of a record is not a neighbor of no record
    return question.region is None or all(question.region.contains(np.asarray(x)) for x in pair)


def size(pair: InputPair) -> tuple[int, int]:
    """The size of a pair: first the number of differing coordinates or words, then of nonzero ones (or all words)."""
    x, y = pair
    if isinstance(x, str) and isinstance(y, str):
        first, second = x.split(), y.split()
        common = sum(block.size for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
        return max(len(first), len(second)) - common, len(first) + len(second)
    if _shape(x) != _shape(y):
        return 0, 0
    one, other = _leaves(x), _leaves(y)
    if not (len(one) > 1 or all(isinstance(leaf, _NUMBERS) for leaf in (*one, *other))):
        return 0, 0
    return sum(not same(a, b) for a, b in zip(one, other, strict=True)), sum(map(_large, chain(one, other)))


def smaller(pair: InputPair) -> Iterator[InputPair]:
    """Pairs that differ in fewer coordinates or words, or have fewer of them; much smaller ones first.

    A list of integers stays one, and every other structure is preserved too, however nested.

    >>> next(smaller(([1, 0, 7], [2, 1, 7])))
    ([1, 0, 7], [1, 1, 7])
    >>> list(smaller(({"age": 40, "seen": (1.5, True)}, {"age": 40, "seen": (1.5, False)})))
    [({'age': 0, 'seen': (0.0, True)}, {'age': 0, 'seen': (0.0, False)})]
    """
    x, y = pair
    if isinstance(x, str) and isinstance(y, str):
        yield from (found for found in _smaller_texts(x.split(), y.split()) if size(found) < size(pair))
        return
    if _shape(x) != _shape(y):
        return
    one, other = _leaves(x), _leaves(y)
    if len(one) < 2:
        return
    differing = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if not same(a, b)]
    for kept in _halves(differing):
        chosen = set(kept)
        yield x, _rebuilt(x, iter([other[i] if i in chosen else leaf for i, leaf in enumerate(one)]), y)
    common = [i not in set(differing) and _large(leaf) for i, leaf in enumerate(one)]
    if any(common):
        zeros = [
            [type(leaf)(0) if gone else leaf for gone, leaf in zip(common, some, strict=True)] for some in (one, other)
        ]
        yield _rebuilt(x, iter(zeros[0]), x), _rebuilt(y, iter(zeros[1]), y)


_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def _large(leaf: Any) -> bool:
    """Whether it is a number other than 0."""
    return isinstance(leaf, _NUMBERS) and not isinstance(leaf, np.timedelta64) and bool(leaf != 0)


def _shape(x: Any) -> Any:
    """The structure of an input, without the values in it."""
    if isinstance(x, np.ndarray):
        return "array", x.shape
    if isinstance(x, list | tuple):
        return type(x).__name__, tuple(map(_shape, x))
    if isinstance(x, dict):
        return "dict", tuple((repr(key), _shape(value)) for key, value in x.items())
    return "text" if isinstance(x, str) else "value"


def _leaves(x: Any) -> list[Any]:
    """The values in an input, in order."""
    if isinstance(x, np.ndarray):
        return list(x.ravel())
    if isinstance(x, list | tuple):
        return [leaf for entry in x for leaf in _leaves(entry)]
    if isinstance(x, dict):
        return [leaf for value in x.values() for leaf in _leaves(value)]
    return [x]


def _rebuilt(x: Any, leaves: Iterator[Any], other: Any) -> Any:
    """An input with the structure of this one and other values; an array's dtype is widened for them if necessary."""
    if isinstance(x, np.ndarray):
        kind = np.result_type(x, other) if x.dtype != other.dtype else x.dtype
        built = np.empty(x.size, dtype=kind)
        built[:] = [next(leaves) for _ in range(x.size)]
        return built.reshape(x.shape)
    if isinstance(x, list | tuple):
        entries = [_rebuilt(entry, leaves, also) for entry, also in zip(x, other, strict=True)]
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*entries)
        return type(x)(entries)
    if isinstance(x, dict):
        return {key: _rebuilt(value, leaves, other[key]) for key, value in x.items()}
    return next(leaves)


def _halves(items: list[int]) -> Iterator[list[int]]:
    """Fewer of some items: a half, three quarters, all but one."""
    for parts in (2, 4, len(items)):
        if parts < 2 or parts > len(items):
            continue
        for piece in np.array_split(np.array(items), parts)[: 16 if parts > 4 else parts]:
            left = [i for i in items if i not in set(piece.tolist())]
            if left:
                yield left


def _smaller_texts(first: list[str], second: list[str]) -> Iterator[InputPair]:
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    for _, a, b, c, d in changes if len(changes) > 1 else []:  # a single one of several changes
        yield " ".join(first), " ".join([*first[:a], *second[c:d], *first[b:]])
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    shared = [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]
    for kept in _halves(list(range(len(shared)))) if len(shared) > 1 else iter([[]] if shared else []):
        gone = [shared[i] for i in range(len(shared)) if i not in set(kept)]
        x = [word for i, word in enumerate(first) if i not in {a for a, _ in gone}]
        y = [word for i, word in enumerate(second) if i not in {b for _, b in gone}]
        if x != y:
            yield " ".join(x), " ".join(y)
