"""Audits: refute a claim from a mechanism's outputs alone, with the error probability stated.

Search for a promising pair, learn what tells its outputs apart, play the guessing game on fresh runs, and shrink what
was found. An audit gives lower bounds only: where it refutes nothing it has proved nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.audit import checkpoint as files
from dpassay.audit import float_artifacts as lastbits
from dpassay.audit.candidate_pairs import region_of, what_to_tell_apart
from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.experiment import COMPARE, Game, against_distribution, bound, rejected, stream
from dpassay.audit.inference import AlphaBudget, anytime_delta
from dpassay.audit.inputs import InputPair, same, size, smaller, why_not_neighbours
from dpassay.audit.options import (
    MOST_RUNS,
    AuditOptions,
    Progress,
    name_of,
    read_claim,
    read_guarantee,
    read_relation,
    whole,
)
from dpassay.audit.pair_search import search
from dpassay.audit.sampled import judged
from dpassay.audit.sequential import Player, anytime, here
from dpassay.audit.sequential import fixed as fixed_runs
from dpassay.audit.targets import as_mechanism
from dpassay.claims.claim import Claim
from dpassay.compute.devices import usable
from dpassay.core.interval import Interval
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError, MechanismError
from dpassay.evidence.played import SampledWitness
from dpassay.evidence.verdict import Verdict
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Region

RUNS = 100_000
ALPHA = 0.001
DISTRIBUTION_SHARE, SHRINK_SHARE, BITS_SHARE = 0.1, 0.1, 0.01
SHRINK = 1_000_000  # numbers of games: the main one is 0, the search has those from 1 on
MOST_SHRINKS = 24
SEARCHED = 0.15  # of the runs, at most, where there are several pairs
SAVING = 0.05  # of the time, at most, goes into writing the file


def audit(
    subject: Any,
    /,
    pairs: Sequence[InputPair] | None = None,
    *,
    epsilon: Any = None,
    delta: Any = None,
    inputs: Sequence[Any] | None = None,
    region: Region | str | None = None,
    text: str | None = None,
    candidates: Sequence[Any] | None = None,
    dim: int | None = None,
    neighbours: Neighbours | str | None = None,
    alpha: float = ALPHA,
    runs: int = RUNS,
    fixed: bool = False,
    search_runs: int | None = None,
    shrink: bool = True,
    seed: int = 0,
    guesser: Callable[[list[Any]], Any] | None = None,
    bits: bool | None = None,
    save: str | Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
    **parameters: Any,
) -> Verdict:
    """Try to refute a claim by running the mechanism.

    The mechanism is anything with `sample(x, n, rng)`, a function `f(x)`, `f(x, rng)` or `f(x, n, rng)`, a pipeline or
    its text, or a `Claim`. What to tell apart: `pairs`, a list of `inputs`, a `region` (also as text), the words of a
    `text`, or M `candidates`. At most `runs` runs are made and the total error probability is at most `alpha`.

    The last bits of floats tell more than the formula of a mechanism says. With `bits` they count; without, a few runs
    look at them and what they tell is a warning; with `bits=False` nobody looks.

    The game is played in this process, in so many local `workers`, or on the Dask `cluster` at an address; kernels make
    their numbers on the `device`, "cpu" or "cuda". The same seed gives the same counts everywhere.

    >>> import numpy as np
    >>> def noisy(x, n, rng):
    ...     return x + rng.laplace(scale=0.5, size=n)
    >>> verdict = audit(noisy, [(0.0, 1.0)], epsilon=1)
    >>> verdict.word, verdict.epsilon.lower > 1, verdict.runs < 2000
    ('refuted', True, True)
    """
    claim = read_claim(subject, epsilon, delta, dim, parameters)
    mechanism = claim.runnable if isinstance(claim, Claim) else as_mechanism(subject)
    guarantee = claim.guarantee if isinstance(claim, Claim) else read_guarantee(epsilon, delta)
    relation = read_relation(neighbours, claim, mechanism, text)
    region = region_of(region, dim) if isinstance(region, str) else region
    ways = {"pairs": pairs, "inputs": inputs, "region": region, "text": text, "candidates": candidates}
    if isinstance(claim, Claim) and not any(value is not None for value in ways.values()):
        ways["pairs"] = claim.trial.pairs
    offered = what_to_tell_apart(mechanism, relation, ways)
    request = AuditOptions(
        mechanism=mechanism,
        name=claim.name if isinstance(claim, Claim) else name_of(mechanism),
        source=claim.source if isinstance(claim, Claim) else "",
        guarantee=guarantee,
        neighbours=relation,
        offered=offered,
        many=candidates is not None and len(offered[0]) > 2,
        ledger=AlphaBudget(alpha),
        runs=whole(runs, "runs", 1, MOST_RUNS),
        fixed=fixed,
        search_runs=int(SEARCHED * runs) if search_runs is None else min(runs, whole(search_runs, "search_runs", 0)),
        shrink=shrink,
        seed=whole(seed, "seed", 0),
        own=None if guesser is None else CustomDistinguisher(guesser),
        bits=bits,
        region=region,
        save=None if save is None else Path(save),
        progress=progress,
        device=usable(device)[0] if cluster is None else device,  # a cluster's workers find out for themselves
    )
    notes = [usable(device)[1]] if cluster is None else []
    if workers is None and cluster is None:  # and nothing is imported that only others need
        return _Audit(request, resume, here, notes=notes).verdict()
    if guesser is not None:
        raise InputError("a guesser of your own cannot travel to workers: leave workers and cluster out")
    from dpassay.audit.distributed import named, sharing
    from dpassay.compute.executors import gathered

    named(mechanism)  # what cannot travel is refused before anything is run
    with closing(gathered(workers, cluster)) as executor:
        return _Audit(request, resume, sharing(executor), executor.describe, notes).verdict()


class _Audit:
    """One audit under way: it remembers how many runs were made and when it was last saved."""

    def __init__(
        self,
        request: AuditOptions,
        resume: bool,
        player: Player,
        who: Callable[[], str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.request, self.player, self.who = request, player, who
        self.spent = self.searched = 0
        self.game = Game(kept=[[] for _ in request.offered[0]])
        self.inputs: tuple[Any, ...] | None = None
        self.witness: tuple[Game, tuple[Any, ...], int, float] | None = None
        self.stopped = False
        self.warnings = [note for note in notes if note]
        self.saved, self.cost = time.monotonic(), 0.0  # when it was saved last, and how long that took
        game, distribution, bits = self._shares()
        self.alpha = request.ledger.take("the guessing game", game)
        self.distribution_alpha = (
            request.ledger.take("the sampler against its distribution", distribution) if distribution else 0.0
        )
        self.bits_alpha = request.ledger.take("the last bits of floats", bits) if bits else 0.0
        self.look, self.told_by_bits = 0, ""  # runs that are left for them, and what they told
        if resume:
            self._resume()
        elif request.save is not None and request.save.exists():
            raise InputError(f"{request.save} is there already: go on with it by resume, or save to another file")

    def _shares(self) -> tuple[float, float, float]:
        """Shares of the error probability: the game, the sampler against its distribution, the last bits of floats."""
        request = self.request
        known = request.table(request.offered[0], 0).distributions() is not None
        distribution = DISTRIBUTION_SHARE if known and request.own is None else 0.0
        if request.bits and known:
            raise InputError(
                "bits=True (--bits) is for mechanisms whose distribution is unknown: where it is known, it is judged"
            )
        looks = request.bits is None and request.own is None and not (request.many or request.fixed or known)
        bits = BITS_SHARE if looks else 0.0
        can_shrink = request.shrink and not request.many and any(True for o in request.offered for _ in smaller(o))
        return 1.0 - distribution - bits - (SHRINK_SHARE if can_shrink else 0.0), distribution, bits

    def verdict(self) -> Verdict:
        """Do all of it; an interruption keeps what there is."""
        request = self.request
        try:
            self._search()
            self._leave_runs_for_bits()
            self._play()
            if self.refuted and request.shrink and not request.many:
                self._shrink()
            if self.look and not self.refuted:
                self._look_at_bits()
        except KeyboardInterrupt:
            self.stopped = True
        except MechanismError as error:
            self._save("unfinished")
            raise MechanismError(f"{error}\n{self._kept()}") from None
        if self.distribution_alpha and not self.stopped:
            self._compare_with_law()
        result = self._judge()
        self._save("unfinished" if self.stopped else result.word)
        return result

    def _kept(self) -> str:
        right, wrong, runs = self.game.totals()
        if not runs:
            return "No run had been played until then."
        counts = f"Until then: {runs:,} runs played, {right:,} right and {wrong:,} wrong guesses."
        if self.request.save is None:
            return counts + " With --save FILE such counts are kept, and --resume goes on from them."
        return counts + f" They are kept in {self.request.save}; --resume goes on from them."

    @property
    def refuted(self) -> bool:
        """Whether the main game rejects the claim."""
        return rejected(self.game, self.request.aim, self.alpha, self.request.fixed)

    def _tell(self, note: str) -> None:
        if self.request.progress is not None:
            self.request.progress(self.spent, self.request.runs, note)
        if self.request.save is not None and time.monotonic() - self.saved > self.cost / SAVING:
            self._save("unfinished")

    def _search(self) -> None:
        """Find the pair that promises most."""
        request = self.request
        if self.inputs is None and len(request.offered) == 1:
            self.inputs = request.offered[0]
        if self.inputs is not None:
            return
        aim = replace(request.aim, runs=request.runs)
        for cost, found in search(request.table, request.offered, aim, request.search_runs, request.fixed):
            self.searched += cost
            self.spent, self.inputs = self.searched, found
            self._tell("searching for a pair")

    def _play(self) -> None:
        request = self.request
        assert self.inputs is not None
        table = request.table(self.inputs, 0)
        budget = request.runs - self.searched - self.look
        if not request.fixed and self.refuted:
            return
        if request.fixed:
            steps = fixed_runs(table, self.game, budget, self.player)
        else:
            steps = anytime(table, self.game, budget, self.alpha, self.player)
        for _ in steps:
            self.spent = self.searched + self.game.runs
            self._tell("playing" if self.who is None else f"playing, {self.who()}")
        self.spent = self.searched + self.game.runs

    def _shrink(self) -> None:
        """Look for a smaller pair that still refutes; each attempt has its own small share of the error probability."""
        request = self.request
        assert self.inputs is not None
        pair: InputPair = (self.inputs[0], self.inputs[1])
        each = max(2_000, 4 * self.game.runs)
        budget = min(request.runs, self.spent + 5 * each)
        attempt, found = 0, True
        aim = replace(request.aim, runs=0)
        while found and attempt < MOST_SHRINKS:
            found = False
            for candidate in smaller(pair):
                if attempt >= MOST_SHRINKS or self.spent >= budget:
                    return
                if same(*candidate) or size(candidate) >= size(pair):
                    continue
                if not self._allowed(candidate):
                    continue
                attempt += 1
                alpha = request.ledger.take("a smaller pair", SHRINK_SHARE * 6 / (math.pi * attempt) ** 2)
                game, table = Game(kept=[[], []]), request.table(candidate, SHRINK + attempt, aim)
                before = self.spent
                for _ in anytime(table, game, min(each, budget - before), alpha):
                    self.spent = before + game.runs
                    self._tell("shrinking the pair")
                self.spent = before + game.runs
                if rejected(game, aim, alpha, False):
                    pair, found = candidate, True
                    self.witness = (game, candidate, SHRINK + attempt, alpha)
                    break

    def _allowed(self, pair: InputPair) -> bool:
        """Whether the guarantee speaks of a pair, and the region holds it."""
        request = self.request
        pipeline = request.mechanism if isinstance(request.mechanism, Pipeline) else None
        if why_not_neighbours(*pair, request.neighbours, pipeline):
            return False
        if request.neighbours.kind == "add-remove-record" and pipeline is not None:
            return False  # part of a record against nothing is no neighbour
        return request.region is None or all(request.region.contains(np.asarray(x)) for x in pair)

    def _leave_runs_for_bits(self) -> None:
        """Set runs aside for the last bits of floats, or give back what they would have cost."""
        request = self.request
        assert self.inputs is not None
        self.look, probed = lastbits.wanted(request, self.inputs, self.bits_alpha, request.runs - self.searched)
        self.searched += probed
        if self.bits_alpha and not self.look:
            request.ledger.give_back("the last bits of floats")

    def _look_at_bits(self) -> None:
        """Whether the last bits of floats would refute the claim: a warning, if so."""
        assert self.inputs is not None
        before = self.spent

        def tell(runs: int) -> None:
            self.spent = before + runs
            self._tell("looking at the last bits")

        runs, self.told_by_bits = lastbits.look(self.request, self.inputs, self.look, self.bits_alpha, tell)
        self.spent = before + runs
        self.warnings += [self.told_by_bits] if self.told_by_bits else []

    def _compare_with_law(self) -> None:
        """Whether the outputs that were drawn follow the declared distribution."""
        request = self.request
        assert self.inputs is not None
        distributions = request.table(self.inputs, 0).distributions() or []
        for i, (distribution, batches) in enumerate(zip(distributions, self.game.kept, strict=False)):
            chance = against_distribution(batches, distribution, stream(request.seed, COMPARE, i)) if batches else 1.0
            if chance <= self.distribution_alpha / len(distributions):
                self.warnings.append(
                    f"The sampler does not draw from the declared distribution for input {i + 1} "
                    f"(by chance with probability at most {chance:.2g}): what was proved of that says nothing of it."
                )

    def _judge(self) -> Verdict:
        request, game = self.request, self.game
        # At δ > 0 there are two bounds, on ε and on δ, and each may be wrong: each gets a half.
        alpha = self.alpha / 2 if request.guarantee.delta and not request.many else self.alpha
        lower = bound(game, request.aim, alpha, request.fixed)
        delta = None
        if request.guarantee.delta:
            floor = (
                anytime_delta(game.tallies, alpha, request.guarantee.epsilon) if len(request.offered[0]) == 2 else 0.0
            )
            delta = Interval(min(floor, 1.0), 1.0, "the guessing game", "nothing")
        played = self._played()
        return judged(
            request=request,
            game=game,
            refuted=self.refuted,
            lower=lower,
            delta=delta,
            alpha=self.alpha,
            spent=self.spent,
            played=played,
            stopped=self.stopped,
            shrunk=self.witness is not None,
            warnings=tuple(self.warnings),
        )

    def _played(self) -> SampledWitness | None:
        game, inputs, number, alpha = self.witness or (self.game, self.inputs, 0, self.alpha)
        if inputs is None or game.rule is None:
            return None
        best = game.best(self.request.aim)
        counts = best.tally.right, best.tally.wrong, best.tally.runs
        return SampledWitness(inputs, best.rule.describe(), *counts, alpha, self.request.seed, number)

    def _save(self, word: Any) -> None:
        request = self.request
        if request.save is None:
            return
        begun = time.monotonic()
        main = None if self.inputs is None else files.game_record(self.game, self.inputs, 0, self.alpha)
        witness = None if self.witness is None else files.game_record(*self.witness)
        asked = request.asked()
        counts = {"runs": self.spent, "searched": self.searched}
        told = {"main": main, "witness": witness, "bits": self.told_by_bits}
        files.save(files.Journal(asked=asked, verdict=word, **counts, **told), request.save)
        self.saved = time.monotonic()
        self.cost = self.saved - begun

    def _resume(self) -> None:
        request = self.request
        if request.save is None:
            raise InputError("to go on with an audit, say which: resume=True needs save=FILE")
        found = files.load(request.save)
        asked = request.asked()
        if found.asked != asked:
            changed = [k for k in type(asked).model_fields if getattr(asked, k) != getattr(found.asked, k)]
            raise InputError(
                f"{request.save} is another audit: it differs in {', '.join(changed)}. "
                "Ask the same question again, or save to another file."
            )
        if found.main is not None:
            self.inputs = next((o for o in request.offered if [plain(x) for x in o] == found.main.inputs), None)
            if self.inputs is None:
                raise InputError(f"{request.save} is damaged: its inputs are not among those that were offered")
            distributions = request.table(self.inputs, 0).distributions()
            kept = self.game.kept
            self.game = files.game_of(found.main, distributions, request.own)
            self.game.kept = kept
        self.distribution_alpha = 0.0  # the outputs that were to be compared with the distribution are gone
        self.bits_alpha = 0.0  # and one look at the bits is all that is paid for
        self.told_by_bits = found.bits
        self.warnings += [found.bits] if found.bits else []
        self.warnings.append(
            f"{self.game.runs:,} of these runs come from {request.save}; start anew if the mechanism has changed since."
        )
        self.searched = found.searched
        self.spent = self.searched + self.game.runs
