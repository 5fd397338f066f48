"""Replay a saved audit: with the recorded seed, which must give the same counts, and with a fresh one.

Nothing that a file names is run: a pipeline is parsed from its text, and any other mechanism must be given.
"""

import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.audit.distinguishers.base import Bits
from dpassay.audit.distinguishers.boosted_tables import uses_float_bits
from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.inputs.checks import check_inputs, check_neighbours, shown
from dpassay.audit.inputs.data_sets import why_not_records
from dpassay.audit.mechanisms.batches import known_independent
from dpassay.audit.mechanisms.fresh_calls import FreshCalls
from dpassay.audit.mechanisms.kept_files import Stores
from dpassay.audit.mechanisms.seeding import seed_all
from dpassay.audit.mechanisms.targets import as_mechanism, describe, draw, refuse_kept_answers, stores_now
from dpassay.audit.outputs.outputs import read
from dpassay.audit.storage.checkpoint import GameRecord, Journal, game_of, inputs_of, load
from dpassay.audit.testing.decision_rule import DecisionRule, resolution_of
from dpassay.audit.testing.expected_power import Hypothesis
from dpassay.audit.testing.experiment import (
    COMPARE,
    TRUST,
    TRUST_IN_DISTRIBUTION,
    Experiment,
    GameState,
    RoundResult,
    rejected,
    stream,
)
from dpassay.audit.testing.inference import evidence_needed
from dpassay.audit.testing.sent_rule import fresh_calls, refuse_dependent_runs
from dpassay.audit.testing.sequential import anytime, run_task, tasks_of
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.evidence.verifier import Verification
from dpassay.pipeline.mechanism import Mechanism
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline

GLANCE = 64  # outputs of each input that show the size of a rule's scores
FINEST = 1e-3  # of the resolution that these suggest
LONGER = 4  # a fresh game may take this many times the runs of the recorded one, or more with a smaller α
MOST_FRESH_ALPHA = 0.001  # of a fresh game, since the author of the file chose the recorded α


def replay(
    path: str | Path,
    mechanism: Any = None,
    *,
    seed: int | None = None,
    guesser: Callable[[list[Any]], Any] | None = None,
) -> Verification:
    """Replay a saved audit. `seed` is the fresh one; by default it is drawn at random.

    >>> import tempfile
    >>> from dpassay import audit
    >>> def noisy(x, n, rng):
    ...     return x + rng.laplace(scale=0.5, size=n)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = f"{folder}/noisy.json"
    ...     word = audit(noisy, [(0.0, 1.0)], epsilon=1, save=saved).word
    ...     word, replay(saved, noisy, seed=1).ok
    ('refuted', True)
    """
    journal = load(Path(path))
    if seed is not None and seed < 0:
        raise InputError(f"a seed must be a whole number, 0 or more, got {seed}")
    if seed == journal.asked.seed:
        raise InputError(f"{seed} is the recorded seed; a fresh game needs another one")
    subject = _subject(journal, mechanism)
    subject = seed_all(subject) if journal.asked.seed_all else subject
    record = journal.witness or journal.main
    if record is None or not record.epochs:
        raise InputError(f"{path} has no game to replay: the audit ended before one began")
    covered = list(_covered(journal, record, subject))
    if not all(holds for holds, _ in covered):  # a game that is not about the claim is not run
        return _verification(journal, covered)
    experiment = _experiment(journal, record, subject)
    stores = stores_now(experiment.mechanism)
    own = () if guesser is None else (CustomDistinguisher(guesser),)
    game = game_of(record, experiment.distributions(), (*own, *experiment.at_hand()))
    with closing(fresh_calls(experiment, [experiment.inputs])) as fresh:
        checks = [*covered, *_admissible(experiment, game), *_recorded(journal, record, experiment, game)]
        if journal.verdict == "refuted":
            seed = secrets.randbits(32) if seed is None else seed
            checks.append(_fresh(record, experiment, game, seed, stores, fresh))
    return _verification(journal, checks)


def _verification(journal: Journal, checks: Sequence[tuple[bool, str]]) -> Verification:
    asked = journal.asked
    claim = f"epsilon {asked.epsilon:g}" + (f", delta {asked.delta:g}" if asked.delta else "") + _of(asked.subject)
    established, failures = (tuple(said for holds, said in checks if holds is wanted) for wanted in (True, False))
    return Verification(journal.verdict, claim, established, failures)


def _of(subject: Mapping[str, str]) -> str:
    """What was audited, in words.

    >>> _of({"kind": "pipeline", "pipeline": "laplace(1)", "dim": "2"}), _of({"kind": "python", "path": "mine:f"})
    (' of laplace(1) in dimension 2', ' of mine:f')
    """
    name = next((subject[key] for key in ("pipeline", "path", "command", "url", "type") if key in subject), "")
    dim = f" in dimension {subject['dim']}" if "dim" in subject else ""
    return f" of {name:.200}{dim}" if name else ""


def _covered(journal: Journal, record: GameRecord, subject: Mechanism) -> Iterator[tuple[bool, str]]:
    """Whether the claim covers the recorded inputs: they are neighbors, as far as that can be seen from them."""
    inputs, pipeline = inputs_of(record), subject if isinstance(subject, Pipeline) else None
    names = " and ".join(shown(x) for x in inputs[:2]) if len(inputs) == 2 else f"{len(inputs)} candidates"
    try:
        relation = Neighbours(journal.asked.neighbours)
        check_inputs(inputs)
        check_neighbours(inputs, relation, pipeline)
        unlike = next(filter(None, (why_not_records(x, y, relation) for x, y in combinations(inputs, 2))), "")
        if pipeline is None and unlike:
            raise InputError(f"{names} are not neighbors: {unlike}")
    except InputError as error:
        if any(getattr(stage, "name", "") == "encode" for stage in getattr(pipeline, "stages", ())) and any(
            isinstance(x, str) for x in inputs
        ):
            raise InputError(f"the audit cannot be replayed from its file: {error}") from None
        yield False, f"the claim does not cover the recorded inputs: {error}"
        return
    seen = pipeline is not None or relation.kind == "any" or relation.kind.startswith("word")
    yield True, f"the inputs {names} are {'' if seen else 'taken for '}neighbors: {relation}"


def _admissible(experiment: Experiment, game: GameState) -> Iterator[tuple[bool, str]]:
    """Whether the recorded rules may decide about this mechanism; none of them is chosen here."""
    rules = [one.rule for one in game.evidence]
    if not known_independent(experiment.mechanism) and not all(one.singly for one in game.evidence):
        yield False, "the recorded runs were made in batches, whose rows may depend on each other"
    if any(one.counts.sides != one.rule.initial_counts(0.0).sides for one in game.evidence):
        yield False, "a rule is recorded as naming fewer inputs than it does"
    if isinstance(experiment.mechanism, Pipeline):
        why = next(filter(None, (_why_not_for_formula(experiment, rule) for rule in rules)), "")
        if why or not game.replays:
            yield False, why or "the file says that the seed cannot be replayed, but for a pipeline it can"
    best = game.best(experiment.hypothesis)
    yield True, f"the rule is the recorded one, {best.rule.describe()}"


def _why_not_for_formula(experiment: Experiment, rule: DecisionRule) -> str:
    """Why a rule cannot decide about a formula: it may detect how floating-point numbers are rounded."""
    found = rule.distinguisher
    if experiment.bits != "no" or uses_float_bits(found.to_data()):
        return "a rule examines the bit patterns of floats, and the claim is about a formula"
    if experiment.distributions() is not None and not isinstance(found, LikelihoodRatio | CustomDistinguisher):
        return "a rule does not use the pipeline's distribution, which is known"
    streams = experiment.paired_streams(0)
    drawn = [draw(experiment.mechanism, x, GLANCE, rng) for x, rng in zip(experiment.inputs, streams, strict=True)]
    coarse = resolution_of([found.score(read(batch)) for batch in drawn])
    return "" if rule.resolution >= FINEST * coarse else "a rule's scores are so fine that they show rounding errors"


def _subject(journal: Journal, mechanism: Any) -> Mechanism:
    asked = journal.asked.subject
    if mechanism is None:
        if asked.get("kind") != "pipeline":
            options = {"command": "--command", "url": "--url", "path": "--python"}
            if asked.get("kind") == "model":
                raise InputError("the audit was of a trained model; give its folder again: --model DIR")
            named = next((f"{option} {shlex.quote(asked[key])}" for key, option in options.items() if key in asked), "")
            how = (
                f"give it again: {named}"
                if named
                else "give it again: dpassay.audit.storage.replay.replay(file, mechanism)"
            )
            raise InputError(f"verify never starts code that a file names; {how}")
        try:
            return parse(asked["pipeline"], int(asked["dim"]), {})
        except (KeyError, ValueError) as error:
            raise InputError(f"the file names a pipeline that cannot be read: {error}") from None
    found = as_mechanism(mechanism)
    if describe(found) != asked:
        given = describe(found)
        odd = [key for key in {**asked, **given} if asked.get(key) != given.get(key)]
        was, now = ({key: str(one.get(key))[:80] for key in odd} for one in (asked, given))
        raise InputError(f"the audit was of something else: {was}, not {now}")
    return found


def _experiment(journal: Journal, record: GameRecord, subject: Mechanism) -> Experiment:
    asked = journal.asked
    fixed = record is journal.main and asked.fixed
    hypothesis = Hypothesis(asked.epsilon, asked.delta, len(record.inputs), asked.fixed if fixed else 0, asked.alpha)
    inputs = inputs_of(record)
    bits: Bits = "also" if asked.bits else "no"
    return Experiment(subject, inputs, hypothesis, asked.seed, record.number, bits=bits, unknown=asked.unknown)


def _recorded(
    journal: Journal, record: GameRecord, experiment: Experiment, game: GameState
) -> Iterator[tuple[bool, str]]:
    """Whether the recorded seed gives the recorded counts, and those give the recorded verdict."""
    right, wrong, runs = game.totals()
    if not (record.replays and getattr(experiment.mechanism, "replays", True)):
        yield True, "the recorded seed cannot be replayed, because the mechanism uses its own random source"
    else:
        found = np.zeros(3, dtype=int)
        for number, current in enumerate(game.rounds):
            lost = current.counts.runs - current.finished
            found += (0, lost, lost)
            for task in tasks_of(game, number):
                found += run_task(experiment, current, task, [])
        same = found.tolist() == [right, wrong, runs]
        again = f"{found[0]:,} right and {found[1]:,} wrong guesses in {found[2]:,} runs"
        recorded = "as recorded" if same else f"where {right:,} and {wrong:,} in {runs:,} are recorded"
        yield same, f"with the recorded seed {journal.asked.seed}: {again}, {recorded}"
    refutes = rejected(game, experiment.hypothesis, record.alpha, exact=bool(experiment.hypothesis.runs))
    what = "refute" if refutes else "do not refute"
    if refutes == (journal.verdict == "refuted"):
        yield True, f"these counts {what} the claim at an error probability of {record.alpha:.3g}"
    else:
        yield False, f"the file says that the claim is {journal.verdict}, but its counts {what} it"


def _fresh(
    record: GameRecord, experiment: Experiment, recorded: GameState, seed: int, stores: Stores, fresh: FreshCalls
) -> tuple[bool, str]:
    """Whether the best rule refutes the claim again, on fresh runs."""
    best = recorded.best(experiment.hypothesis)
    learnt = best.learnt_from or experiment.distributions() is None
    expected = best.rule.initial_counts(TRUST if learnt else TRUST_IN_DISTRIBUTION)
    singly = best.singly or best.screening or not known_independent(experiment.mechanism)
    game = GameState([RoundResult(best.rule, expected, 0, 10**15, singly, rows=best.rows)])
    alpha = min(record.alpha, MOST_FRESH_ALPHA)
    longer = LONGER * evidence_needed(alpha) / evidence_needed(record.alpha)
    for _ in anytime(replace(experiment, seed=seed), game, int(max(2000, longer * recorded.totals()[2])), alpha):
        pass
    right, wrong, runs = game.totals()
    refutes = rejected(game, experiment.hypothesis, alpha, exact=False)
    if refutes:
        refuse_kept_answers(experiment.mechanism, experiment.inputs, stream(seed, COMPARE), stores)
        refuse_dependent_runs(fresh, 0, experiment, game.rounds[0])
    counts = f"with the fresh seed {seed}: {right:,} right and {wrong:,} wrong guesses in {runs:,} runs"
    how = f"refute the claim again, at an error probability of {alpha:.3g}" if refutes else "do not refute the claim"
    return refutes, f"{counts} {how}"
