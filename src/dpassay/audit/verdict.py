"""The verdict of an audit: what was guessed, what the claim allows, and what that implies about epsilon."""

import math

from dpassay.audit.mechanisms.batches import IN_BATCHES, SAID
from dpassay.audit.mechanisms.targets import describe
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.resolved import ResolvedAudit
from dpassay.audit.storage.saving import AuditState
from dpassay.audit.testing.experiment import bound, rejected
from dpassay.audit.testing.inference import (
    AlphaBudget,
    anytime_delta,
    evidence_needed,
    log_evidence,
    log_limits,
    most_certifiable,
    runs_to_reach,
)
from dpassay.audit.witness import witness_of
from dpassay.core.interval import Interval, outward
from dpassay.core.theorems import Theorem
from dpassay.errors import counted
from dpassay.evidence.verdict import Advice, Bounds, JudgedClaim, Open, Refuted, SampledEvidence, Verdict

ENOUGH_RUNS = 16  # of an input, that show whether its output changes
PROVES_NOTHING = "Open, which proves nothing:"


def is_refuted(question: ResolvedAudit, state: AuditState) -> bool:
    """Whether the main game rejects the claim."""
    return rejected(state.game, question.hypothesis, state.alpha, question.options.fixed)


def conclude(
    question: ResolvedAudit, state: AuditState, budget: AlphaBudget, interrupted: bool, warnings: tuple[str, ...]
) -> Verdict:
    """Refuted if the game rejects the claim, otherwise Open: samples prove no claim."""
    guarantee, refuted = question.guarantee, is_refuted(question, state)
    source = f"a guessing game with {counted(state.spent, 'run')}, wrong with probability at most {budget.total:g}"
    if not refuted and any(one.screening for one in state.game.rounds):
        source += ", assuming that the rows of one batch are independent"
    lower, delta = _bounds(question, state, refuted, source)
    kind: type[Verdict] = Refuted if refuted else Open
    if refuted:
        reason = f"{_why_refuted(question, state, lower)}{_after(state)}."
    else:
        reason = f"{PROVES_NOTHING} {_why_open(question, state, lower, interrupted)}"
    text = describe(question.mechanism).get("pipeline", question.name)
    return kind(
        JudgedClaim(question.name, question.source, question.mechanism, text, question.neighbours, guarantee),
        Bounds(Interval(lower, math.inf, source, "nothing: samples give no upper bound"), delta),
        reason,
        sampled=SampledEvidence(
            witness=witness_of(question, state),
            theorems=_theorems(question),
            alpha=budget.total,
            runs=state.spent,
            seed=question.options.seed,
            alpha_budget=budget.by_purpose(),
            interrupted=interrupted,
            replays=state.game.replays and bool(getattr(question.mechanism, "replays", True)),
        ),
        advice=Advice(
            warnings=(
                *_about_batches(question, state, refuted),
                *_same_every_run(state),
                *warnings,
                *_blind(state, interrupted),
            )
        ),
    )


def _about_batches(question: ResolvedAudit, state: AuditState, refuted: bool) -> list[str]:
    """A description of what is wrong with the rows of one batch."""
    found = [SAID[state.game.batches]] if state.game.batches else []
    screening = [one.counts for one in state.game.rounds if one.screening]
    if found or refuted or not screening or not state.batches_alpha:
        return found
    claimed = question.guarantee.epsilon, question.guarantee.delta, len(question.input_sets[0])
    return [IN_BATCHES] if log_evidence(screening, *claimed) >= evidence_needed(state.batches_alpha) else []


def _same_every_run(state: AuditState) -> list[str]:
    """A warning if each input gave the same output in every run, and not all of them the same."""
    shown = state.game.shown
    if len(shown) < 2 or len(repeated(state)) < len(shown) or len({int(one.keys()[0]) for one in shown}) == 1:
        return []
    return [
        "Each input gave the same output in every run: the mechanism adds no noise, or the same noise in every call "
        "(a fixed seed, or noise that was drawn once and kept). If it reads answers to earlier calls from a file or a "
        "database, the verdict is about those: give it an empty one for each call."
    ]


def repeated(state: AuditState) -> dict[int, int]:
    """The inputs that gave the same output in all stored runs, and were named alike in all others; and in how many."""
    found = {}
    for side, outputs in enumerate(state.game.shown):
        rows = [counts.table()[side] for counts in state.game.counts if side < len(counts.table())]
        alike = all(runs in (first, second, runs - first - second) for first, second, runs in rows)
        if alike and len(outputs) >= ENOUGH_RUNS and len(distinct(outputs.keys())) == 1:
            found[side] = len(outputs) + sum(runs for _, _, runs in rows)
    return found


def _bounds(question: ResolvedAudit, state: AuditState, refuted: bool, source: str) -> tuple[float, Interval | None]:
    """The lower bounds on ε and, if a δ is claimed, on δ. They are consistent with the verdict: one joint statement."""
    guarantee, best, game = question.guarantee, max if refuted else min, state.game
    # At δ > 0 there are two bounds, on ε and on δ, and each may be wrong: each gets half of α.
    part = 0.5 if guarantee.delta and not question.many else 1.0
    looks = [(False, part * state.alpha)]  # whether rows of batches count, and the error probability
    if not refuted and state.batches_alpha and len(game.evidence) < len(game.rounds):
        looks.append((True, part * state.batches_alpha))
    fixed = question.options.fixed
    found = max(bound(game, question.hypothesis, alpha, fixed, batches) for batches, alpha in looks)
    lower = best(found, guarantee.epsilon)
    if not guarantee.delta:
        return lower, None
    chosen = [(game.rounds if batches else game.evidence, alpha) for batches, alpha in looks]
    floors = [anytime_delta([one.counts for one in rounds], alpha, guarantee.epsilon) for rounds, alpha in chosen]
    floor = 0.0 if question.many else min(1.0, max(floors))
    return lower, Interval(best(floor, guarantee.delta), 1.0, source, "nothing")


def _theorems(question: ResolvedAudit) -> tuple[Theorem, ...]:
    used = [Theorem.GUESSING_GAME, *([Theorem.CANDIDATES] if question.many else [])]
    if question.guarantee.delta and not question.many:
        used.append(Theorem.BETTING)
    elif not question.options.fixed:
        used.append(Theorem.ANYTIME)
    return tuple(used)


def _after(state: AuditState) -> str:
    """When the claim was refuted, if runs were made after that."""
    if not 0 < state.refuted_after < state.game.runs:
        return ""
    after = counted(state.refuted_after, "run")
    return f"; the claim was refuted after {after}; the remaining runs tighten the lower bound"


def _why_refuted(question: ResolvedAudit, state: AuditState, lower: float) -> str:
    guarantee, inputs = question.guarantee, len(question.input_sets[0])
    counts = state.game.best(question.hypothesis).counts
    right, guesses = counts.right, counts.right + counts.wrong
    whom = f" as to which of {inputs} inputs was used" if question.many else ""
    were = "was" if right == 1 else "were"
    seen = f"{right:,} of {counted(guesses, 'guess', 'guesses')}{whom} {were} correct ({right / max(1, guesses):.1%})"
    rules = sum(one.counts.runs > 0 for one in state.game.evidence)
    result = "such a result" if rules == 1 else f"the result of all {rules} rules together"
    chance = f"{result} has probability at most {state.alpha:.3g}"
    if guarantee.delta and not question.many:
        return f"{seen}, and under {guarantee} {chance}"
    allowed = math.exp(log_limits(guarantee.epsilon, inputs, guarantee.delta)[0])
    least = outward(lower, -1, 5)
    more = f"at least {least}" if float(least) > guarantee.epsilon else f"more than {guarantee.epsilon:.6g}"
    return f"{seen} where {guarantee} allows at most {allowed:.1%}, so epsilon is {more}; under the claim {chance}"


def _why_open(question: ResolvedAudit, state: AuditState, lower: float, interrupted: bool) -> str:
    guarantee, options, spent = question.guarantee, question.options, counted(state.spent, "run")
    if interrupted:
        how = "only a saved audit can be resumed" if options.save is None else f"resume it from {options.save}"
        return f"the audit was interrupted after {spent}; {how}."
    out = out_of_reach(guarantee.epsilon, options.runs, state.alpha, len(question.input_sets[0]))
    if out:
        return out
    if not state.game.rounds:
        return f"nothing could be tested: no decision rule could be learned from {spent} of such outputs."
    least = f"epsilon is at least {outward(lower, -1, 5)}" if lower > 0 else "no more is known about epsilon"
    return f"{spent} did not refute {guarantee}; {least}."


def _blind(state: AuditState, interrupted: bool) -> list[str]:
    """A warning if the audit has no basis for a judgment."""
    if state.game.rounds or interrupted:
        return []
    return [
        f"Nothing was tested: no decision rule could be learned from {counted(state.spent, 'run')}, so this audit "
        "could not have refuted any claim. Give it more runs, or your own guesser."
    ]


def out_of_reach(epsilon: float, runs: int, alpha: float, candidates: int) -> str:
    """Why this number of runs cannot refute the claim whatever they show; empty if it can."""
    most = most_certifiable(runs, alpha, candidates)
    if most > epsilon:
        return ""
    needed = runs_to_reach(epsilon, alpha, candidates)
    count = (
        f"{needed:,}" if needed < 10**15 else f"about 10^{round((epsilon + math.log(-math.log(alpha))) / math.log(10))}"
    )
    return (
        f"undetectable with {counted(runs, 'run')}, which can show an epsilon of at most {most:.4g} even if every "
        f"guess is correct; it takes at least {count} runs to refute {epsilon:.6g}."
    )
