"""The progress of an audit, saved in its file from time to time and read back to continue it."""

import hashlib
import json
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any

from dpassay.audit.mechanisms.targets import describe
from dpassay.audit.resolved import ResolvedAudit
from dpassay.audit.testing.experiment import GameResult, GameState, rejected
from dpassay.core.json import plain
from dpassay.errors import InputError
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.audit.storage import checkpoint

AHEAD = 16  # runs are announced ahead by one in this many of all earlier runs
MOST_TIME = 0.05  # fraction of the time spent on writing the file, at most


@dataclass
class AuditState:
    """The games of an audit so far, and how many runs were made."""

    alpha: float  # the main game's share of the error probability
    batches_alpha: float = 0.0  # for a bound that rests on batches
    game: GameState = field(default_factory=GameState)
    inputs: tuple[Any, ...] | None = None  # of the main game, once they are found
    witness: GameResult | None = None  # of the smallest pair
    refuted_after: int = 0  # the runs of the main game when it refuted the claim
    attempts: int = 0  # at a smaller pair
    shrunk: bool = False  # whether all attempts have been made
    spent: int = 0
    searched: int = 0
    artifacts: str = ""  # the warning about floating-point artifacts
    announced: int = 0  # runs of the main game that may have been begun, if δ > 0
    restarted: str = ""  # the warning that the audit was killed while it ran


class AuditFile:
    """The file of an audit, if it has one; it remembers when it was last written."""

    def __init__(self, question: ResolvedAudit) -> None:
        self.question, self.path = question, question.options.save
        self.saved, self.cost = time.monotonic(), 0.0  # when it was last saved, and how long that took
        if self.path is not None and self.path.exists() and not question.options.resume:
            raise InputError(f"{self.path} already exists: resume=True continues it; or save to another file")

    @property
    def begun(self) -> bool:
        """Whether there is something to continue."""
        return self.path is not None and self.path.exists()

    def save(self, state: AuditState, word: Any, *, running: bool = False) -> None:
        """Write the current state of the audit; `running` if it continues, so that a kill would lose later runs."""
        if self.path is None:
            return
        from dpassay.audit.storage import checkpoint

        begun = time.monotonic()
        main = None if state.inputs is None else GameResult(state.game, state.inputs, 0, state.alpha)
        journal = checkpoint.Journal(
            asked=_asked(self.question),
            verdict=word,
            runs=state.spent,
            searched=state.searched,
            main=None if main is None else checkpoint.game_record(main),
            witness=None if state.witness is None else checkpoint.game_record(state.witness),
            bits=state.artifacts,
            refuted_after=state.refuted_after,
            attempts=state.attempts,
            running=running,
            announced=state.announced,
        )
        checkpoint.save(journal, self.path)
        self.saved = time.monotonic()
        self.cost = self.saved - begun

    def save_if_due(self, state: AuditState) -> None:
        """Write the current state of the audit, unless that was done a moment ago."""
        if self.path is not None and time.monotonic() - self.saved > self.cost / MOST_TIME:
            self.save(state, "unfinished", running=True)

    def announce(self, state: AuditState, runs: int) -> None:
        """Write how many runs there will be before they are made: if killed, all of these count as wrong guesses.

        That is needed if δ > 0 and the mechanism's own draws may kill the process.
        """
        if self.path is not None and runs > state.announced:
            state.announced = runs + runs // AHEAD
            self.save(state, "unfinished", running=True)

    def resume(self, state: AuditState) -> None:
        """Restore the state of the audit in the file."""
        from dpassay.audit.storage import checkpoint

        assert self.path is not None
        found, asked = checkpoint.load(self.path), _asked(self.question)
        if found.asked != asked:
            changed = [k for k in type(asked).model_fields if getattr(asked, k) != getattr(found.asked, k)]
            told = ", ".join(_difference(k, getattr(found.asked, k), getattr(asked, k)) for k in changed)
            raise InputError(
                f"{self.path} is another audit: it differs in {told}. "
                "Ask the same question again, or save to another file."
            )
        if found.main is not None:
            sets = self.question.input_sets
            state.inputs = next((one for one in sets if [plain(x) for x in one] == found.main.inputs), None)
            if state.inputs is None:
                raise InputError(f"{self.path} is damaged: its inputs are not among those that may be compared")
            experiment, kept = self.question.experiment(state.inputs, 0), state.game.kept
            state.game = checkpoint.game_of(found.main, experiment.distributions(), experiment.at_hand())
            state.game.kept = kept
            state.alpha = found.main.alpha  # so that a refutation remains valid
        if found.witness is not None:
            inputs = checkpoint.inputs_of(found.witness)
            experiment = self.question.experiment(inputs, found.witness.number)
            game = checkpoint.game_of(found.witness, experiment.distributions(), experiment.at_hand())
            state.witness = GameResult(game, inputs, found.witness.number, found.witness.alpha)
        state.artifacts, state.searched = found.bits, found.searched
        state.refuted_after, state.attempts = found.refuted_after, found.attempts
        state.shrunk = found.verdict == "refuted"
        if found.running and self.question.pipeline is None:
            self._restart(state, found.announced)
        state.spent = found.runs if state.shrunk else state.searched + state.game.runs

    def _restart(self, state: AuditState, announced: int) -> None:
        """Continue an audit that was killed: no lost task is repeated with the same coins.

        Its outputs would be conditioned on not killing the process. A refuted claim stays refuted, and no smaller
        pair is looked for.
        """
        question = self.question
        refuted = rejected(state.game, question.hypothesis, state.alpha, question.options.fixed)
        lost = max(0, announced - state.game.runs) if question.guarantee.delta and not refuted else 0
        state.game.restart(lost)
        state.shrunk = state.shrunk or refuted
        counted = f", and {lost:,} runs that may have been made by then count as wrong guesses" if lost else ""
        state.restarted = f"The audit was killed while it ran. What it had not saved is not used{counted}."


_DIGESTS = {"subject": "the mechanism", "inputs": "the inputs"}
_NAMED = {
    "version": "the version of dpassay",
    "fixed": "the number of runs that fixed=True fixes",
    "bits": "whether the last bits of floats count",
    "unknown": "how outputs of unknown types are read",
    "seed_all": "whether seed_all=True",
}


def _difference(field: str, saved: Any, now: Any) -> str:
    """What differs between a saved audit and the one that is asked for, in words."""
    if field in _DIGESTS:
        return _DIGESTS[field]
    there, here = ("none" if field == "fixed" and not value else value for value in (saved, now))
    return f"{_NAMED.get(field, field)} ({there} in the file, {here} here)"


def _asked(question: ResolvedAudit) -> "checkpoint.SavedQuestion":
    """The part of the question that must not change when the audit is continued."""
    from dpassay import __version__
    from dpassay.audit.storage import checkpoint

    options = question.options
    inputs = json.dumps([[plain(x) for x in one] for one in question.input_sets], sort_keys=True)
    return checkpoint.SavedQuestion(
        version=__version__,
        subject=describe(question.mechanism),
        inputs=hashlib.sha256(inputs.encode("utf-8", "surrogatepass")).hexdigest(),
        epsilon=question.guarantee.epsilon,
        delta=question.guarantee.delta,
        alpha=options.alpha,
        neighbours=question.neighbours.kind,
        seed=options.seed,
        fixed=options.runs if options.fixed else 0,
        bits=options.bits,
        seed_all=options.seed_all,
        unknown=options.unknown,
    )
