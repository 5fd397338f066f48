"""The last bits of floats: a short game of their own, of which a warning comes, never a verdict.

Noise that is added in floating point leaves traces there for which no finite epsilon holds (Mironov 2012). Were they
evidence, hardly any sampler would pass; were they not looked at, nobody would know. docs/audit.md has the ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpassay.audit.experiment import FEWEST_RUNS, LEARN, Game, rejected
from dpassay.audit.inference import runs_to_reach
from dpassay.audit.options import AuditOptions
from dpassay.audit.outputs import read
from dpassay.audit.sequential import anytime
from dpassay.audit.targets import draw
from dpassay.errors import MechanismError

GAME = 999_999  # its number, below those of attempts to shrink
MOST, PART = 4_000, 0.04  # its runs at most, and which part of all runs
SHOWN = 8  # outputs of each input that show whether a mechanism gives fractions


def wanted(request: AuditOptions, inputs: tuple[Any, ...], alpha: float, left: int) -> tuple[int, int]:
    """How many runs to leave for the look, and how many it took to find out.

    None where there are no fractions, or where so few could not refute the claim.
    """
    runs, probe = min(MOST, int(PART * request.runs), left), SHOWN * len(inputs)
    if not alpha or runs < max(FEWEST_RUNS + probe, runs_to_reach(request.guarantee.epsilon, alpha)):
        return 0, 0
    rng = request.table(inputs, GAME).stream(LEARN)
    try:
        shown = [read(draw(request.mechanism, x, SHOWN, rng)) for x in inputs]
    except MechanismError:
        return 0, 0  # the game will find out
    return (runs - probe if any(outputs.fractional for outputs in shown) else 0), probe


def look(
    request: AuditOptions, inputs: tuple[Any, ...], runs: int, alpha: float, tell: Callable[[int], None]
) -> tuple[int, str]:
    """How many runs were made, and the warning; empty if the bits did not refute the claim."""
    aim, game = replace(request.aim, runs=0), Game(kept=[[], []])
    try:
        for _ in anytime(replace(request.table(inputs, GAME, aim), bits="only"), game, runs, alpha):
            tell(game.runs)
    except MechanismError as error:
        return game.runs, f"The look at the last bits of its numbers broke off: {error}"[:500]
    if not rejected(game, aim, alpha, False):
        return game.runs, ""
    right, wrong, _ = game.totals()
    return game.runs, (
        f"The last bits of its numbers tell these inputs apart: {right:,} of {right + wrong:,} guesses were right, "
        f"better than {request.guarantee} allows but with probability {alpha:.2g}. Noise added in floating point "
        "leaves such traces; the verdict judges the formula without them. Released outputs need a sampler "
        "made for it. "
        "With --bits (bits=True) they count, with --no-bits nobody looks."
    )
