"""Floating-point artifacts: a short game on the last bits of outputs, which gives a warning, never a verdict.

Noise added in floating point leaves traces in them, so that no finite epsilon holds (Mironov 2012). If they counted as
evidence, hardly any sampler would pass; if they were ignored, nobody would notice. docs/audit.md describes the options.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dpassay.audit.mechanisms.targets import draw
from dpassay.audit.outputs.outputs import read
from dpassay.audit.resolved import ResolvedAudit
from dpassay.audit.testing.experiment import LEARN, GameState, rejected
from dpassay.audit.testing.inference import runs_to_reach
from dpassay.audit.testing.sequential import anytime
from dpassay.audit.testing.training import FEWEST_RUNS
from dpassay.errors import MechanismError

NUMBER = 999_999  # of its experiment, below those of attempts to shrink
MOST, PART = 4_000, 0.04  # its runs at most, and as a fraction of all runs
SHOWN = 8  # outputs of each input used to see whether a mechanism gives fractions


def wanted(question: ResolvedAudit, inputs: tuple[Any, ...], alpha: float, left: int) -> tuple[int, int]:
    """How many runs to reserve for the game, and how many runs it took to decide that.

    None if there are no fractions, or if so few runs could not refute the claim.
    """
    runs, probe = min(MOST, int(PART * question.options.runs), left), SHOWN * len(inputs)
    if not alpha or runs < max(FEWEST_RUNS + probe, runs_to_reach(question.guarantee.epsilon, alpha)):
        return 0, 0
    rng = question.experiment(inputs, NUMBER).stream(LEARN)
    try:
        shown = [read(draw(question.mechanism, x, SHOWN, rng), question.options.unknown) for x in inputs]
    except MechanismError:
        return 0, 0  # the main game will find out
    return (runs - probe if any(outputs.unrounded for outputs in shown) else 0), probe


def look(question: ResolvedAudit, inputs: tuple[Any, ...], runs: int, alpha: float) -> Iterator[tuple[int, str]]:
    """After every step the number of runs made, and finally the warning; empty if the bits did not refute the claim."""
    hypothesis, game = replace(question.hypothesis, runs=0), GameState(kept=[[], []])
    try:
        for _ in anytime(replace(question.experiment(inputs, NUMBER, hypothesis), bits="only"), game, runs, alpha):
            yield game.runs, ""
    except MechanismError as error:
        yield game.runs, f"The test for floating-point artifacts failed: {error}"[:500]
        return
    right, wrong, _ = game.totals()
    told = (
        f"Floating-point artifacts reveal which input was used: based on the last bits, {right:,} of "
        f"{right + wrong:,} guesses were correct; under {question.guarantee} such a result has probability at most "
        f"{alpha:.2g}. Noise added in floating point leaves such traces, and the verdict is about the formula "
        "without them. Released outputs need a sampler made for this purpose. "
        "With bits=True the last bits count as evidence, with bits=False they are ignored."
    )
    yield game.runs, told if rejected(game, hypothesis, alpha, False) else ""
