"""What an audit decides about: a mechanism, a guarantee, which inputs are neighbors, and which may be compared."""

from dataclasses import fields, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from dpassay.adapters import adapted
from dpassay.adapters.base import ReadObject
from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.inputs.candidate_pairs import input_sets
from dpassay.audit.inputs.checks import shown
from dpassay.audit.inputs.hostile_inputs import hostile_pairs
from dpassay.audit.inputs.text_pairs import read_vocabulary
from dpassay.audit.mechanisms.seeding import seed_all
from dpassay.audit.mechanisms.targets import Loaded, as_mechanism, describe, draw
from dpassay.audit.options import INPUT_SOURCES, AuditOptions
from dpassay.audit.testing.expected_power import Hypothesis
from dpassay.audit.testing.experiment import Experiment
from dpassay.claims.claim import Claim
from dpassay.compute.devices import usable
from dpassay.core.guarantee import EpsilonDelta, epsilon_delta, make_guarantee, stated_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.core.parameters import refuse_misspelled
from dpassay.errors import InputError
from dpassay.pipeline.mechanism import Failure, Mechanism
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Region, SensitivityBall
from dpassay.values import dataclass


@dataclass(frozen=True)
class ResolvedAudit:
    """The question of an audit with everything resolved, and its options."""

    mechanism: Mechanism
    name: str
    source: str
    guarantee: EpsilonDelta
    neighbours: Neighbours
    input_sets: list[tuple[Any, ...]]  # the pairs that may be audited, or a single set of M candidates
    region: Region | None
    options: AuditOptions
    outside: tuple[tuple[Any, Any], ...] = ()  # hostile pairs that the claim is not known to cover

    @property
    def many(self) -> bool:
        """Whether there are more than two inputs to choose from."""
        return len(self.input_sets[0]) > 2

    @property
    def pipeline(self) -> Pipeline | None:
        """The mechanism, if it is a pipeline."""
        return self.mechanism if isinstance(self.mechanism, Pipeline) else None

    @property
    def hypothesis(self) -> Hypothesis:
        """What rules are chosen to refute."""
        runs = self.options.runs if self.options.fixed else 0
        claimed = self.guarantee.epsilon, self.guarantee.delta
        return Hypothesis(*claimed, len(self.input_sets[0]), runs, self.options.alpha)

    def experiment(self, inputs: tuple[Any, ...], number: int, hypothesis: Hypothesis | None = None) -> Experiment:
        """The experiment that shows whether some inputs can be distinguished."""
        options = self.options
        return Experiment(
            self.mechanism,
            inputs,
            hypothesis or self.hypothesis,
            options.seed,
            number,
            None if options.guesser is None else CustomDistinguisher(options.guesser),
            "also" if options.bits else "no",
            options.device,
            options.unknown,
            isinstance(self.region, SensitivityBall),
        )


def resolve(subject: Any, options: AuditOptions) -> tuple[ResolvedAudit, str]:
    """The question posed by a subject and some options, and a note if another device has to be used."""
    known, asked = adapted(subject), options
    subject, options = _adapted(known, subject, options)
    claim = _claim(subject, options)
    mechanism = as_mechanism(subject) if claim is None else claim.runnable
    if claim is None and options.epsilon is None:
        raise InputError("state the claimed epsilon: audit(..., epsilon=1)")
    guarantee = (
        make_guarantee(options.epsilon, 0 if options.delta is None else options.delta)
        if claim is None
        else epsilon_delta(claim.guarantee)
    )
    mechanism = seed_all(mechanism) if options.seed_all else mechanism
    neighbours = _neighbours(options, claim, mechanism)
    region = options.region
    if isinstance(region, str):
        from dpassay.audit.inputs.region_pairs import region_of

        region = region_of(region, options.dim)
    sources = {**{source: getattr(options, source) for source in INPUT_SOURCES}, "region": region}
    if claim is not None and all(value is None for value in sources.values()):
        sources["pairs"] = claim.trial.pairs
    # A cluster's workers determine for themselves which device they have.
    device, note = usable(options.device) if options.cluster is None else (options.device, "")
    options = replace(options, device=device)
    name, source = (_name(mechanism), "") if claim is None else (claim.name, claim.source)
    if claim is None and known is not None:
        name = name if isinstance(mechanism, Loaded) else known.name
        source = known.source(asked.epsilon, runs=True)
    words = [] if options.vocabulary is None else read_vocabulary(options.vocabulary)
    sets = input_sets(mechanism, neighbours, sources, words, options.odd_words)
    hostile = _hostile(mechanism, sets, neighbours, options.seed) if options.hostile else []
    stated = options.neighbours is not None or options.text is not None or (claim is not None and claim.neighbours)
    sets, outside = (sets + hostile, ()) if stated else (sets, tuple(hostile))
    return ResolvedAudit(mechanism, name, source, guarantee, neighbours, sets, region, options, outside), note


def _hostile(
    mechanism: Mechanism, sets: list[tuple[Any, ...]], neighbours: Neighbours, seed: int
) -> list[tuple[Any, Any]]:
    """The first input paired with hostile ones that are its neighbors, without those that the mechanism refuses.

    They count if the relation was stated. Otherwise the claim is about the stated inputs, and these lie outside it.
    """
    if isinstance(mechanism, Pipeline) or len(sets[0]) > 2:
        raise InputError("hostile inputs are for code that is run on pairs: omit hostile=True")
    known = [shown(y, 10**6) for _, y in sets]
    found: list[tuple[Any, Any]] = []
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore")
        for x, y in hostile_pairs([sets[0][0]], neighbours):
            if shown(y, 10**6) not in known and not isinstance(draw(mechanism, y, 1, rng)[0], Failure):
                found.append((x, y))
    return found


def _adapted(known: ReadObject | None, subject: Any, options: AuditOptions) -> tuple[Any, AuditOptions]:
    """What to run for a library's object, and the options including what it states itself; others are unchanged."""
    if known is None:
        return subject, options
    known = known.between(options.neighbours)
    if known.mechanism is None:
        claim = known.claim(options.epsilon, options.delta, dim=options.dim)
        return claim, replace(options, epsilon=None, delta=None, dim=None)
    claimed = epsilon_delta(stated_guarantee(**known.tested(options.epsilon, options.delta)))
    options = replace(options, epsilon=claimed.exact_epsilon, delta=claimed.exact_delta)
    options = replace(options, neighbours=options.neighbours or known.neighbours)
    if known.pairs and all(getattr(options, source) is None for source in INPUT_SOURCES):
        options = replace(options, pairs=known.pairs)
    return known.mechanism, options


def _claim(subject: Any, options: AuditOptions) -> Claim | None:
    """The claim that a subject is, or that it makes with its parameters; None for anything that can only be run."""
    parameters = dict(options.parameters)
    if isinstance(subject, str):
        from dpassay.claims.registry import claim_called

        subject = claim_called(subject) or subject
    if isinstance(subject, Claim):
        return subject(parameters, **options.claimed)
    if isinstance(subject, str):
        if options.epsilon is None:
            raise InputError("state the claimed epsilon: audit(..., epsilon=1)")
        return Claim("pipeline", subject, options.epsilon, options.delta or 0, options.dim, parameters)
    if parameters:
        refuse_misspelled(parameters, [option.name for option in fields(AuditOptions)])
        unknown = ", ".join(sorted(parameters))
        raise InputError(f"unknown option {unknown}: only a claim or a pipeline's text has parameters of its own")
    return None


def _neighbours(options: AuditOptions, claim: Claim | None, mechanism: Mechanism) -> Neighbours:
    """Which inputs are neighbors: as given, as claimed, or as the mechanism suggests."""
    if options.neighbours is not None:
        told = options.neighbours
        return Neighbours(told) if isinstance(told, str) else told
    if claim is not None and claim.neighbours is not None:
        return claim.neighbours
    if isinstance(mechanism, Pipeline):
        return mechanism.neighbours
    return Neighbours("word" if options.text is not None else "any")


def _name(mechanism: Mechanism) -> str:
    described = describe(mechanism)
    return next(
        (described[key] for key in ("path", "command", "url", "pipeline", "type") if key in described), "mechanism"
    )
