"""Audits: refute a claim from a mechanism's outputs alone, with the error probability stated.

Search for a promising pair, learn what distinguishes its outputs, test that on fresh runs, and shrink the
counterexample. An audit gives only lower bounds: if it refutes nothing, it proves nothing.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from dpassay.audit.inputs.checks import shown
from dpassay.audit.inputs.pair_search import search
from dpassay.audit.inputs.shrinking import SHARE as SHRINK_SHARE
from dpassay.audit.inputs.shrinking import Shrinking, can_shrink
from dpassay.audit.mechanisms.batches import known_independent
from dpassay.audit.mechanisms.isolation import Watch, watching
from dpassay.audit.mechanisms.mechanism_hints import misnamed
from dpassay.audit.mechanisms.python_objects import answers
from dpassay.audit.mechanisms.targets import one_at_a_time, refuse_kept_answers, stores_now
from dpassay.audit.options import AuditOptions, show_options
from dpassay.audit.remote.timing import OutOfTime, check_time, time_budget
from dpassay.audit.resolved import ResolvedAudit, resolve
from dpassay.audit.storage.saving import AuditFile, AuditState
from dpassay.audit.testing import float_artifacts
from dpassay.audit.testing.experiment import (
    COMPARE,
    GameResult,
    GameState,
    against_distribution,
    bound,
    rejected,
    stream,
)
from dpassay.audit.testing.inference import AlphaBudget
from dpassay.audit.testing.sent_rule import fresh_calls, refuse_dependent_runs
from dpassay.audit.testing.sequential import ALONE, MOST_ALONE, Outcomes, TaskRunner, anytime, fixed, in_this_process
from dpassay.audit.testing.training import only_none
from dpassay.audit.verdict import conclude, is_refuted
from dpassay.errors import ONLY_NONE, InputError, MechanismError, counted, escape_control_chars
from dpassay.evidence.verdict import Verdict

DISTRIBUTION_SHARE, ARTIFACTS_SHARE, BATCHES_SHARE, OUTSIDE_SHARE = 0.1, 0.01, 0.05, 0.1  # of the error probability
OUTSIDE_RUNS = 0.2  # of the runs, for inputs that the claim is not known to cover
AGAIN = 4_000  # runs after a refutation, at least, that show how wrong the claim is…
AGAIN_ALONE = 1_000  # …and if each call gives one output
AGAIN_SLOW, SLOW = 100, 0.005  # …and if a run takes more seconds than this, so that the user does not wait long
BATCHES, OUTSIDE = "a bound from batches", "inputs outside the claim"
GAME, DISTRIBUTION, ARTIFACTS = "the guessing game", "the sampler against its distribution", "the last bits of floats"


@show_options()
def audit(subject: Any, /, pairs: Sequence[tuple[Any, Any]] | None = None, **more: Any) -> Verdict:
    """Try to refute a claim by running the mechanism.

    The mechanism is anything with `sample(x, n, rng)`, a function `f(x)`, `f(x, rng)` or `f(x, n, rng)`, a pipeline or
    its text, or a `Claim`. What to distinguish: `pairs`, a list of `inputs`, a `region` (also as text), the words of a
    `text`, or M `candidates`. At most `runs` runs are made and the total error probability is at most `alpha`.

    Keywords that are not options are parameters of the claim or the pipeline; `parameters`, a mapping, takes those
    whose names are also options.

    Floating-point artifacts in the last bits of outputs reveal more than a mechanism's formula suggests. With `bits`
    they count; by default a few runs test for them and may give a warning; `bits=False` disables that.

    The mechanism runs in this process, in local processes (`workers` is their number), or on the Dask `cluster` at an
    address; kernels run on the `device`, "cpu" or "cuda". The same seed gives the same counts everywhere.

    >>> import numpy as np
    >>> def noisy(x, n, rng):
    ...     return x + rng.laplace(scale=0.5, size=n)
    >>> verdict = audit(noisy, [(0.0, 1.0)], epsilon=1)
    >>> verdict.word, verdict.epsilon.lower > 1
    ('refuted', True)
    >>> audit(noisy, [(0.0, 1.0)], epsilon=1, until_refuted=True).runs < 2000
    True
    """
    return run_audit(subject, AuditOptions.of({"pairs": pairs, **more}))


def run_audit(subject: Any, options: AuditOptions) -> Verdict:
    """The same with the options as one object."""
    question, note = resolve(subject, options)
    if options.workers is None and options.cluster is None:  # and nothing that only workers need is imported
        return _Audit(question, note, in_this_process).verdict()
    from dpassay.audit.remote.distributed import named, on_executor
    from dpassay.compute.workers import make_executor

    named(question.mechanism)  # refuses a mechanism that cannot be sent, before anything is run
    with closing(make_executor(options.workers, options.cluster)) as executor:
        return _Audit(question, note, on_executor(executor), executor.describe).verdict()


class _Audit:
    """One audit in progress: its phases, in order, on one state."""

    def __init__(
        self, question: ResolvedAudit, note: str, run_tasks: TaskRunner, workers: Callable[[], str] | None = None
    ) -> None:
        self.outside_runs = int(OUTSIDE_RUNS * question.options.runs) if question.outside else 0
        options = replace(question.options, runs=question.options.runs - self.outside_runs)
        self.question, self.options = replace(question, options=options), options
        self._run_tasks, self.workers = run_tasks, workers
        self.seconds_of_runs = 0.0  # without learning
        self.budget = AlphaBudget(self.options.alpha)
        alphas = self._shares()
        self.distribution_alpha, self.artifacts_alpha = alphas[DISTRIBUTION], alphas[ARTIFACTS]
        self.outside_alpha = alphas[OUTSIDE]
        self.state = AuditState(alphas[GAME], alphas[BATCHES], GameState(kept=[[] for _ in question.input_sets[0]]))
        self.warnings = [said for said in (note, misnamed(question.mechanism)) if said]
        self.interrupted = self.out_of_time = False
        self.watch, self.stores = Watch(), stores_now(question.mechanism)
        self.file = AuditFile(self.question)
        if self.options.resume and self.file.begun:
            self._resume()

    def _shares(self) -> dict[str, float]:
        """How much of the error probability each test may spend; 0 for a test that is not made."""
        question, options = self.question, self.options
        known = question.experiment(question.input_sets[0], 0).distributions() is not None
        if options.bits and known:
            raise InputError(
                "bits=True is for mechanisms whose distribution is unknown: "
                "if it is known, the verdict is about the distribution"
            )
        custom = options.guesser is not None
        looks = options.bits is None and not (custom or question.many or options.fixed or known)
        distribution = DISTRIBUTION_SHARE if known and not custom else 0.0
        artifacts = ARTIFACTS_SHARE if looks else 0.0
        alone = one_at_a_time(question.mechanism) or known_independent(question.mechanism)
        batches = 0.0 if alone or options.runs <= (MOST_ALONE if options.fixed else ALONE) else BATCHES_SHARE
        outside = OUTSIDE_SHARE if question.outside else 0.0
        game = 1.0 - distribution - artifacts - batches - outside - (SHRINK_SHARE if can_shrink(question) else 0.0)
        shares = {GAME: game, DISTRIBUTION: distribution, ARTIFACTS: artifacts, BATCHES: batches, OUTSIDE: outside}
        return {what: self.budget.take(what, share) if share else 0.0 for what, share in shares.items()}

    def _resume(self) -> None:
        state = self.state
        self.file.resume(state)
        if state.alpha != dict(self.budget.entries)[GAME]:  # it was begun with other options, and keeps its share
            self.budget.entries, state.batches_alpha, state.shrunk = [(GAME, state.alpha)], 0.0, True
        self.distribution_alpha = 0.0  # the outputs to compare with the distribution are gone
        self.artifacts_alpha = self.outside_alpha = 0.0  # and there is α for only one look at artifacts and outside
        self.warnings += [said for said in (state.artifacts, state.restarted) if said]
        self.warnings.append(
            f"{state.game.runs:,} of these runs come from {self.file.path}; start again if the mechanism has changed."
        )

    def verdict(self) -> Verdict:
        """Run all phases; an interruption, or the end of the time, keeps the results so far."""
        try:
            with time_budget(self.options.seconds), watching(self.watch):
                self._with_fresh_calls()
        except KeyboardInterrupt:
            self.interrupted = True
            self.state.spent = max(self.state.spent, self.state.searched + self.state.game.runs)
        except OutOfTime:
            self._out_of_time()
        except MechanismError as error:
            if str(error) == ONLY_NONE:  # no counts are worth keeping
                raise
            self.file.save(self.state, "unfinished")
            raise MechanismError(f"{error}\n{self._kept()}") from error.__cause__  # the mechanism's own, if it raised
        if self._gave_only_none():
            raise MechanismError(ONLY_NONE)
        # Problems that were recovered from.
        notes: list[str] = [*getattr(self.question.mechanism, "notes", list)(), *self.watch.notes()]
        warnings = (*self.warnings, *(escape_control_chars(note[:1].upper() + note[1:]) for note in notes))
        result = conclude(self.question, self.state, self.budget, self.interrupted, warnings)
        unfinished = self.interrupted or (self.out_of_time and result.word == "open")
        self.file.save(self.state, "unfinished" if unfinished else result.word)
        return result

    def _gave_only_none(self) -> bool:
        """Whether all stored outputs were None and the code may lack a `return`."""
        game = self.state.game
        seen = [*game.shown, *(outputs for batches in game.kept for outputs in batches)]
        return only_none(seen) and not answers(self.question.mechanism) and not is_refuted(self.question, self.state)

    def _with_fresh_calls(self) -> None:
        question = self.question
        with closing(fresh_calls(question.experiment(question.input_sets[0], 0), question.input_sets)) as self.fresh:
            self._phases()

    def _phases(self) -> None:
        self.state.searched += self.question.experiment(self.question.input_sets[0], 0).settle()
        inputs = self._find_inputs()
        left = self._leave_runs_for_artifacts(inputs)
        self._test(inputs, left)
        if is_refuted(self.question, self.state):
            rng = stream(self.options.seed, COMPARE, len(inputs))
            refuse_kept_answers(self.question.mechanism, inputs, rng, self.stores, here=self.workers is None)
            self._refuse_dependent_runs(inputs)
            self._say_how_wrong(inputs)
            self._shrink(inputs)
        elif left:
            self._look_for_artifacts(inputs, left)
        if self.distribution_alpha:
            self._compare_with_distribution(inputs)
        if self.outside_alpha:
            self._look_outside()

    def _out_of_time(self) -> None:
        self.out_of_time = True
        state, options = self.state, self.options
        state.spent = max(state.spent, state.searched + state.game.runs)
        how = "with save=FILE it could be continued" if self.file.path is None else "resume=True continues it"
        self.warnings.append(
            f"The time limit of {options.time} was reached after {state.spent:,} of {counted(options.runs, 'run')}; "
            f"{how}."
        )

    def _kept(self) -> str:
        right, wrong, runs = self.state.game.totals()
        if not runs:
            return "No guess had been made by then."
        guesses, were = counted(right + wrong, "guess", "guesses"), "was" if right == 1 else "were"
        counts = f"Until then, {right:,} of {guesses} in {counted(runs, 'run')} {were} correct."
        if self.file.path is None:
            return counts + " With save=FILE such counts are kept, and resume=True continues from them."
        return counts + f" They are kept in {self.file.path}; resume=True continues from them."

    def _tell(self, spent: int, note: str, of: int | None = None) -> None:
        """Report progress, and save the audit if it is time to."""
        self.state.spent = spent
        if self.options.progress is not None:
            self.options.progress(spent, of or self.options.runs, note)
        self.file.save_if_due(self.state)

    def _announce(self, runs: int) -> None:
        self.file.announce(self.state, runs)

    def _find_inputs(self) -> tuple[Any, ...]:
        """The inputs of the main game: the most promising pair."""
        question, options, state = self.question, self.options, self.state
        if state.inputs is None and len(question.input_sets) == 1:
            state.inputs = question.input_sets[0]
        if state.inputs is None:
            hypothesis = replace(question.hypothesis, runs=options.runs)
            steps = search(
                question.experiment, question.input_sets, hypothesis, options.search_budget, fixed=options.fixed
            )
            for cost, found in steps:
                state.searched, state.inputs = state.searched + cost, found
                self._tell(state.searched, "searching for a pair")
                check_time()
        assert state.inputs is not None
        return state.inputs

    def _leave_runs_for_artifacts(self, inputs: tuple[Any, ...]) -> int:
        """Reserve runs to test for floating-point artifacts, or return what that would have cost."""
        left = self.options.runs - self.state.searched
        runs, probed = float_artifacts.wanted(self.question, inputs, self.artifacts_alpha, left)
        self.state.searched += probed
        if self.artifacts_alpha and not runs:
            self.budget.give_back(ARTIFACTS)
        return runs

    def _test(self, inputs: tuple[Any, ...], left_over: int) -> None:
        state, game = self.state, self.state.game
        if self.question.guarantee.delta and self.question.pipeline is None:
            game.announce = self._announce
        experiment = self.question.experiment(inputs, 0)
        budget = self.options.runs - state.searched - left_over
        if self.options.fixed:
            steps = fixed(experiment, game, budget, self.run_tasks)
        elif is_refuted(self.question, state):
            return
        else:
            steps = anytime(experiment, game, budget, state.alpha, self.run_tasks)
        for _ in steps:
            self._tell(state.searched + game.runs, "testing" if self.workers is None else f"testing, {self.workers()}")
        state.spent = state.searched + game.runs

    def run_tasks(self, *tasks: Any) -> Outcomes:
        """The outcomes of tasks, and how long they took."""
        with closing(self._run_tasks(*tasks)) as outcomes:  # type: ignore[type-var]
            while True:
                begun = time.monotonic()
                one = next(outcomes, None)
                self.seconds_of_runs += time.monotonic() - begun
                if one is None:
                    return
                yield one

    def _refuse_dependent_runs(self, inputs: tuple[Any, ...]) -> None:
        question = self.question
        at = next((k for k, one in enumerate(question.input_sets) if one is inputs), None)
        if at is not None:
            best = self.state.game.best(question.hypothesis)
            refuse_dependent_runs(self.fresh, at, question.experiment(inputs, 0), best)

    def _say_how_wrong(self, inputs: tuple[Any, ...]) -> None:
        """Continue after a refutation, for a higher bound. Until there is one, the first refutation stands.

        How long depends only on the number of runs, and on whether a run takes milliseconds: otherwise a slow machine
        gives the same counts as a fast one. The bound holds simultaneously at all times, so the highest may be
        reported.
        """
        options, state, game = self.options, self.state, self.state.game
        state.refuted_after = state.refuted_after or game.runs
        if options.fixed or options.until_refuted or state.shrunk:
            return
        experiment, longer = self.question.experiment(inputs, 0), replace(game, rounds=list(game.rounds))
        before, once, spent = game.runs, state.refuted_after, state.spent
        again = max(once, AGAIN_ALONE if one_at_a_time(self.question.mechanism) else AGAIN)
        again = max(once // 4, AGAIN_SLOW) if self.seconds_of_runs > SLOW * max(1, game.runs) else again
        most = min(options.runs - state.searched, once + again)
        try:
            for _ in anytime(experiment, longer, most, None, self.run_tasks):
                said = "refuted; tightening the bound"
                self._tell(state.searched + longer.runs, said, state.searched + most)
        except MechanismError as error:
            self.warnings.append(f"The claim was refuted; in a later run the mechanism failed: {error}"[:500])
        finally:
            state.spent = spent + longer.runs - before
            claimed = self.question.hypothesis
            before_it, after = (bound(one, claimed, state.alpha, False) for one in (game, longer))
            if after >= before_it and rejected(longer, claimed, state.alpha, False):
                state.game = longer

    def _shrink(self, inputs: tuple[Any, ...]) -> None:
        """Look for a smaller pair that still refutes the claim. The original refutation is never lost."""
        state, before = self.state, self.state.spent
        if not self.options.shrink or self.question.many or state.shrunk:
            return
        each = max(2_000, 4 * state.refuted_after)
        most = min(self.options.runs - before, 5 * each)
        found = GameResult(state.game, inputs, 0, state.alpha)
        shrinking = Shrinking(self.question, found, self.budget, each, most)
        smallest = inputs if state.witness is None else state.witness.inputs
        for attempts, smaller in shrinking.steps((smallest[0], smallest[1]), state.attempts):
            state.attempts, state.witness = attempts, smaller or state.witness
            self._tell(before + shrinking.spent, "shrinking the pair")
        state.spent = before + shrinking.spent

    def _look_for_artifacts(self, inputs: tuple[Any, ...], most: int) -> None:
        """Whether floating-point artifacts would refute the claim, which gives a warning."""
        state, before = self.state, self.state.spent
        for runs, state.artifacts in float_artifacts.look(self.question, inputs, most, self.artifacts_alpha):
            self._tell(before + runs, "looking at the last bits")
        self.warnings += [state.artifacts] if state.artifacts else []

    def _look_outside(self) -> None:
        """Whether hostile inputs that the claim is not known to cover are distinguished, which gives a warning."""
        question, before = self.question, self.state.spent
        options = replace(
            self.options,
            runs=max(1, self.outside_runs),
            alpha=self.outside_alpha,
            until_refuted=True,
            fixed=False,
            shrink=False,
            bits=False,
            save=None,
            resume=False,
            time=None,
            progress=None,
        )
        pairs: list[tuple[Any, ...]] = list(question.outside)
        there = _Audit(replace(question, input_sets=pairs, outside=(), options=options), "", self.run_tasks)
        try:
            there._with_fresh_calls()
        except MechanismError as error:
            self.warnings.append(f"On inputs outside the claim the mechanism failed: {error}"[:500])
        except InputError:  # its runs there depend on each other, and show nothing
            return
        self._tell(before + there.state.spent, "looking outside the claim")
        if not is_refuted(there.question, there.state):
            return
        assert there.state.inputs is not None
        x, y = (shown(one, 60) for one in there.state.inputs)
        self.warnings.append(
            f"Outside the claim: the inputs {x} and {y} can be distinguished more often than {question.guarantee} "
            f"allows (wrong with probability at most {self.outside_alpha:.3g}). The stated inputs do not include this "
            "pair, so it refutes nothing; it would if the guarantee is meant to cover such inputs."
        )

    def _compare_with_distribution(self, inputs: tuple[Any, ...]) -> None:
        """Whether the outputs that were drawn follow the declared distribution."""
        distributions = self.question.experiment(inputs, 0).distributions() or []
        for i, (distribution, batches) in enumerate(zip(distributions, self.state.game.kept, strict=False)):
            rng = stream(self.options.seed, COMPARE, i)
            chance = against_distribution(batches, distribution, rng) if batches else 1.0
            if chance <= self.distribution_alpha / len(distributions):
                self.warnings.append(
                    f"The sampler does not draw from the declared distribution for input {i + 1} (such outputs have "
                    f"probability at most {chance:.2g} under it): what was proved about the distribution does not hold "
                    "for the sampler."
                )
