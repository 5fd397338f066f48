"""Smaller counterexamples: pairs that differ in less and still refute the claim."""

import math
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from dpassay.audit.candidate_pairs import InputPair, same, why_not_neighbours
from dpassay.audit.experiment import Game, GameResult, rejected
from dpassay.audit.features import as_row
from dpassay.audit.inference import AlphaBudget
from dpassay.audit.question import Question
from dpassay.audit.sequential import anytime

SHARE = 0.1  # of the error probability
NUMBER = 1_000_000  # of the first attempt's experiment
MOST_ATTEMPTS = 24


def can_shrink(question: Question) -> bool:
    """Whether a smaller pair is wanted, and there is one to try."""
    wanted = question.options.shrink and not question.many
    return wanted and any(True for pair in question.input_sets for _ in smaller((pair[0], pair[1])))


def shrink(
    question: Question, pair: InputPair, budget: AlphaBudget, each: int, most: int
) -> Iterator[tuple[int, GameResult | None]]:
    """Try smaller pairs: after every step the runs so far, and the smallest pair yet that refutes the claim.

    Each attempt has `each` runs at most and its own small share of the error probability.
    """
    attempt, spent, found = 0, 0, True
    hypothesis = replace(question.hypothesis, runs=0)
    while found and attempt < MOST_ATTEMPTS:
        found = False
        for candidate in smaller(pair):
            if attempt >= MOST_ATTEMPTS or spent >= most:
                return
            if same(*candidate) or size(candidate) >= size(pair) or not _allowed(question, candidate):
                continue
            attempt += 1
            alpha = budget.take("a smaller pair", SHARE * 6 / (math.pi * attempt) ** 2)
            game, number = Game(kept=[[], []]), NUMBER + attempt
            for _ in anytime(question.experiment(candidate, number, hypothesis), game, min(each, most - spent), alpha):
                yield spent + game.runs, None
            spent += game.runs
            found = rejected(game, hypothesis, alpha, False)
            yield spent, GameResult(game, candidate, number, alpha) if found else None
            if found:
                pair = candidate
                break


def _allowed(question: Question, pair: InputPair) -> bool:
    """Whether the guarantee speaks of a pair, and the region holds it."""
    if why_not_neighbours(*pair, question.neighbours, question.pipeline):
        return False
    if question.neighbours.kind == "add-remove-record" and question.pipeline is not None:
        return False  # part of a record against nothing is no neighbour
    return question.region is None or all(question.region.contains(np.asarray(x)) for x in pair)


def size(pair: InputPair) -> tuple[int, int]:
    """How large a pair is: differing coordinates or words first, then all that are not 0 (or all words)."""
    x, y = pair
    if isinstance(x, str) and isinstance(y, str):
        first, second = x.split(), y.split()
        common = sum(block.size for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
        return max(len(first), len(second)) - common, len(first) + len(second)
    one, other = as_row(x), as_row(y)
    if one is None or other is None or len(one) != len(other):
        return 0, 0
    return int(np.count_nonzero(one != other)), int(np.count_nonzero(one) + np.count_nonzero(other))


def smaller(pair: InputPair) -> Iterator[InputPair]:
    """Pairs that differ in fewer coordinates or words, or have fewer of them; much smaller ones first."""
    x, y = pair
    if isinstance(x, str) and isinstance(y, str):
        yield from (found for found in _smaller_texts(x.split(), y.split()) if size(found) < size(pair))
        return
    one, other = as_row(x), as_row(y)
    if one is None or other is None or len(one) != len(other) or len(one) < 2:
        return
    differing = np.flatnonzero(one != other)
    for kept in _halves(differing.tolist()):
        chosen = np.isin(np.arange(len(one)), kept)
        yield one, np.where(chosen, other, one)
    common = (one == other) & (one != 0)
    if common.any():
        yield np.where(common, 0.0, one), np.where(common, 0.0, other)


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
    for _, a, b, c, d in changes if len(changes) > 1 else []:  # one of several changes alone
        yield " ".join(first), " ".join([*first[:a], *second[c:d], *first[b:]])
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    shared = [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]
    for kept in _halves(list(range(len(shared)))) if len(shared) > 1 else iter([[]] if shared else []):
        gone = [shared[i] for i in range(len(shared)) if i not in set(kept)]
        x = [word for i, word in enumerate(first) if i not in {a for a, _ in gone}]
        y = [word for i, word in enumerate(second) if i not in {b for _, b in gone}]
        if x != y:
            yield " ".join(x), " ".join(y)
