"""The verdict of an audit, in words: what was guessed, what the claim allows, and what that says."""

from __future__ import annotations

import math
from typing import Any

from dpassay.audit.experiment import Game
from dpassay.audit.inference import log_limits, most_certifiable, runs_to_reach
from dpassay.audit.options import AuditOptions
from dpassay.audit.targets import describe
from dpassay.core.interval import Interval, outward
from dpassay.core.theorems import Theorem
from dpassay.evidence.played import SampledWitness
from dpassay.evidence.verdict import Open, Refuted, Verdict

SHRUNK = " The pair below is the smallest that was found to refute it too, with an event and counts of its own."


def judged(
    *,
    request: AuditOptions,
    game: Game,
    refuted: bool,
    lower: float,
    delta: Interval | None,
    alpha: float,
    spent: int,
    played: SampledWitness | None,
    stopped: bool,
    shrunk: bool,
    warnings: tuple[str, ...],
) -> Verdict:
    """Refuted where the game rejects the claim, else Open: samples prove no claim."""
    guarantee = request.guarantee
    kind: type[Verdict] = Refuted if refuted else Open
    if refuted and lower < guarantee.epsilon:
        lower = guarantee.epsilon  # the claim itself is rejected: both are one statement
    elif not refuted:
        lower = min(lower, guarantee.epsilon)
    source = f"a guessing game with {spent:,} runs, wrong with probability at most {request.ledger.total:g}"
    if delta is not None:
        low = max(delta.lower, guarantee.delta) if refuted else min(delta.lower, guarantee.delta)
        delta = Interval(low, 1.0, source, "nothing")
    subject = describe(request.mechanism)
    theorems = [Theorem.GUESSING_GAME, *([Theorem.CANDIDATES] if request.many else [])]
    if guarantee.delta and not request.many:
        theorems.append(Theorem.BETTING)
    elif not request.fixed:
        theorems.append(Theorem.ANYTIME)
    return kind(
        name=request.name,
        source=request.source,
        mechanism=request.mechanism,
        text=subject.get("pipeline", request.name),
        parameters={},
        neighbours=request.neighbours,
        guarantee=guarantee,
        epsilon=Interval(lower, math.inf, source, "nothing: samples give no upper bound"),
        delta=delta,
        reason=_reason(request, game, refuted, lower, alpha, spent, stopped) + (SHRUNK if shrunk else ""),
        witness=played,
        warnings=warnings,
        theorems=tuple(theorems),
        alpha=request.ledger.total,
        runs=spent,
        seed=request.seed,
        interrupted=stopped,
        ledger=tuple(_merged(request.ledger.entries)),
    )


def _more(lower: float, claimed: float) -> str:
    """The bound in words; where it is the claim itself, that was rejected, ε is more than it."""
    least = outward(lower, -1, 5)
    return f"at least {least}" if float(least) > claimed else f"more than {claimed:.6g}"


def _merged(entries: list[tuple[str, float]]) -> list[tuple[str, float]]:
    total: dict[str, float] = {}
    for what, alpha in entries:
        total[what] = total.get(what, 0.0) + alpha
    return list(total.items())


def _reason(
    request: AuditOptions, game: Game, refuted: bool, lower: float, alpha: float, spent: int, stopped: bool
) -> str:
    guarantee = request.guarantee
    if refuted:
        tally = game.best(request.aim).tally
        right, wrong = tally.right, tally.wrong
        whom = "which of two inputs" if not request.many else f"which of {len(request.offered[0])} inputs"
        allowed = math.exp(log_limits(guarantee.epsilon, len(request.offered[0]), guarantee.delta)[0])
        seen = f"Guessing {whom} an output came from was right {right:,} times of {right + wrong:,}"
        if guarantee.delta and not request.many:
            return f"{seen}; {guarantee} allows so much only with probability {alpha:.3g} or less."
        rules = sum(epoch.tally.runs > 0 for epoch in game.epochs)
        chance = "so many by chance only" if rules == 1 else f"what all {rules} rules got together comes by chance only"
        return (
            f"{seen}, {right / max(1, right + wrong):.1%}; {guarantee} allows {allowed:.1%}, and {chance} with "
            f"probability {alpha:.3g} or less. So epsilon is {_more(lower, guarantee.epsilon)}."
        )
    if stopped:
        how = "--resume goes on" if request.save is not None else "with --save FILE it could go on later"
        return f"Open, which proves nothing: the audit was interrupted after {spent:,} runs; {how}."
    out = out_of_reach(guarantee.epsilon, request.runs, alpha, len(request.offered[0]))
    if out:
        return f"Open, which proves nothing: {out}"
    if game.wasted and not game.epochs:
        return f"Open, which proves nothing: nothing could be learnt from {spent:,} runs of such outputs."
    least = f"epsilon is at least {outward(lower, -1, 5)}" if lower > 0 else "no more is known of epsilon"
    return f"Open, which proves nothing: {spent:,} runs did not refute {guarantee}; {least}."


def out_of_reach(epsilon: float, runs: int, alpha: float, candidates: int) -> str:
    """Why so many runs cannot refute a claim at all; empty if they can."""
    most = most_certifiable(runs, alpha, candidates)
    if most > epsilon:
        return ""
    needed = runs_to_reach(epsilon, alpha, candidates)
    count = (
        f"{needed:,}" if needed < 10**15 else f"about 10^{round((epsilon + math.log(-math.log(alpha))) / math.log(10))}"
    )
    return (
        f"undetectable with {runs:,} runs. Even if every guess were right they would show an epsilon of {most:.4g} at "
        f"most; it takes at least {count} runs to refute {epsilon:.6g}."
    )


def play_words(played: SampledWitness) -> list[tuple[str, Any]]:
    """The rows that describe a game: the inputs, the event, the counts."""
    from dpassay.audit.inputs import shown

    rows = [(("first", "second")[i], shown(x, 200)) for i, x in enumerate(played.inputs[:2])]
    if len(played.inputs) > 2:
        rows = [("inputs", f"{len(played.inputs)} candidates, the first {shown(played.inputs[0], 100)}")]
    rows.append(("event", played.event))
    guesses = played.right + played.wrong
    rows.append(("counts", f"{played.right:,} right of {guesses:,} guesses in {played.runs:,} runs"))
    return rows
