"""Play a saved audit again: with the recorded seed, where the counts must be the same, and with a fresh one.

Nothing that a file names is run: a pipeline is parsed from its text, and any other mechanism must be given.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.audit.checkpoint import GameRecord, Journal, game_of, load
from dpassay.audit.decision_rule import Hypothesis
from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.experiment import TRUST, TRUST_IN_LAW, Epoch, Experiment, Game, rejected
from dpassay.audit.inference import Counts
from dpassay.audit.sequential import anytime, play, tasks_of
from dpassay.audit.targets import as_mechanism, describe
from dpassay.errors import InputError
from dpassay.evidence.verifier import Verification
from dpassay.pipeline.mechanism import Mechanism
from dpassay.pipeline.parser import parse

LONGER = 4  # a fresh game may take so many times the runs of the recorded one


def replay(
    path: str | Path,
    mechanism: Any = None,
    *,
    seed: int | None = None,
    guesser: Callable[[list[Any]], Any] | None = None,
) -> Verification:
    """Play a saved audit again. `seed` is the fresh one; by default it is drawn at random.

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
    record = journal.witness or journal.main
    if record is None or not record.epochs:
        raise InputError(f"{path} has no game to play again: the audit ended before one was played")
    table = _table(journal, record, subject)
    game = game_of(record, table.distributions(), None if guesser is None else CustomDistinguisher(guesser))
    established: list[str] = []
    failures: list[str] = []
    _recorded(journal, record, table, game, established, failures)
    if journal.verdict == "refuted":
        fresh = secrets.randbits(32) if seed is None else seed
        _fresh(record, table, game, fresh, established, failures)
    claim = f"epsilon {journal.asked.epsilon:g}" + (f", delta {journal.asked.delta:g}" if journal.asked.delta else "")
    return Verification(journal.verdict, claim, tuple(established), tuple(failures))


def _subject(journal: Journal, mechanism: Any) -> Mechanism:
    asked = journal.asked.subject
    if mechanism is None:
        if asked.get("kind") != "pipeline":
            options = {"command": "--command", "url": "--url", "path": "--python"}
            if asked.get("kind") == "model":
                raise InputError("the audit was of a trained model; give its folder again: --model DIR")
            named = next((f"{option} {shlex.quote(asked[key])}" for key, option in options.items() if key in asked), "")
            how = f"give it again: {named}" if named else "give it again: dpassay.audit.replay.replay(file, mechanism)"
            raise InputError(f"the audit was of something that this file must not start by itself; {how}")
        try:
            return parse(asked["pipeline"], int(asked["dim"]), {})
        except (KeyError, ValueError) as error:
            raise InputError(f"the file names a pipeline that cannot be read: {error}") from None
    found = as_mechanism(mechanism)
    if describe(found) != asked:
        given = describe(found)
        odd = [key for key in {**asked, **given} if asked.get(key) != given.get(key)]
        was, now = ({key: str(told.get(key))[:80] for key in odd} for told in (asked, given))
        raise InputError(f"the audit was of something else: {was}, not {now}")
    return found


def _table(journal: Journal, record: GameRecord, subject: Mechanism) -> Experiment:
    asked = journal.asked
    fixed = record is journal.main and asked.fixed
    aim = Hypothesis(asked.epsilon, asked.delta, len(record.inputs), asked.fixed if fixed else 0, asked.alpha)
    inputs = tuple(np.array(x, dtype=float) if _vector(x) else x for x in record.inputs)
    return Experiment(subject, inputs, aim, asked.seed, record.number, bits="also" if asked.bits else "no")


def _vector(x: Any) -> bool:
    return isinstance(x, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in x)


def _recorded(
    journal: Journal, record: GameRecord, table: Experiment, game: Game, established: list[str], failures: list[str]
) -> None:
    right, wrong, runs = game.totals()
    if not getattr(table.mechanism, "replays", True):
        established.append("the recorded seed says nothing: the mechanism makes its own randomness")
    else:
        found = np.zeros(3, dtype=int)
        for number, epoch in enumerate(game.epochs):
            lost = epoch.tally.runs - epoch.finished
            found += (0, lost, lost)
            for task in tasks_of(game, number):
                found += play(table, epoch, task, [])
        again = f"{found[0]:,} right and {found[1]:,} wrong guesses in {found[2]:,} runs"
        if found.tolist() == [right, wrong, runs]:
            established.append(f"with the recorded seed {journal.asked.seed}: {again}, as recorded")
        else:
            failures.append(f"with the recorded seed: {again}, where {right:,} and {wrong:,} in {runs:,} are recorded")
    exact = bool(table.aim.runs)
    refutes = rejected(game, table.aim, record.alpha, exact)
    if refutes == (journal.verdict == "refuted"):
        what = "refute the claim" if refutes else "do not refute the claim"
        established.append(f"these counts {what} at an error probability of {record.alpha:.3g}")
    else:
        what = "refute it" if refutes else "do not refute it"
        failures.append(f"the file says that the claim is {journal.verdict}, but its counts {what}")


def _fresh(
    record: GameRecord, table: Experiment, recorded: Game, seed: int, established: list[str], failures: list[str]
) -> None:
    """The last rule once more, on runs that nobody has seen."""
    last = recorded.epochs[-1]
    again = replace(table, seed=seed)
    tally: Counts = last.rule.initial_counts(TRUST if last.learnt_from else TRUST_IN_LAW)
    game = Game([Epoch(last.rule, tally, 0, 10**15, last.singly, rows=last.rows)])
    aim = table.aim
    for _ in anytime(again, game, max(2000, LONGER * recorded.totals()[2]), record.alpha):
        pass
    right, wrong, runs = game.totals()
    counts = f"with the fresh seed {seed}: {right:,} right and {wrong:,} wrong guesses in {runs:,} runs"
    if rejected(game, aim, record.alpha, False):
        established.append(f"{counts} refute the claim again")
    else:
        failures.append(f"{counts} do not refute the claim")
