"""Certificates: a verdict with all its evidence in one JSON file, for `dpassay verify`.

Each bound names its theorem and carries what the theorem needs: the pair, the order of a Rényi divergence, the grid.
Everything is checked by the verifier before it is written; a bound that its arithmetic cannot confirm to the last digit
is written slightly weaker. docs/certificate.md describes the format.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpassay.core.files import write_whole
from dpassay.core.guarantee import GDP, ApproxDP, PureDP
from dpassay.core.numbers import INFINITY, ONE, TIE, Number, exactly, minimum, number, real
from dpassay.errors import CertificateError, InputError
from dpassay.evidence.lower_evidence import enclosed, lower_evidence, pair_data, places, point
from dpassay.evidence.other_evidence import guarantee_data, other_lower_evidence, other_upper_evidence
from dpassay.evidence.upper_evidence import LEVELS, upper_evidence
from dpassay.evidence.verdict import Verdict
from dpassay.evidence.verifier import Model, chained, examine, read_step
from dpassay.evidence.verifier.arithmetic.numbers import forget
from dpassay.evidence.verifier.arithmetic.work import limited
from dpassay.exact.analysis import analyse
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.exact.witness import Witness
from dpassay.pipeline.distributions import Mixture, OneSided
from dpassay.pipeline.parser import evaluate, parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.noises.additive import Additive

SCHEMA = "dpassay/certificate/2"
# By how much a bound is weakened until the verifier can confirm it.
_WEAKER = ("0", "1e-12", "1e-9", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "5e-2")
_FEW = ("0", "1e-9", "1e-4", "1e-2", "5e-2")
_PARTS = 8  # a lower bound that does not decide the claim may take an eighth of the verifier's work
Data = dict[str, Any]


def certify(verdict: Verdict) -> Data:
    """The certificate of a verdict: its evidence, step by step.

    >>> from dpassay import check
    >>> written = certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    >>> written["verdict"], [step["step"] for step in written["steps"]][:3]
    ('refuted', ['claim', 'witness', 'lower'])
    """
    if hasattr(verdict.mechanism, "certify"):  # words have their own certificates
        return dict(verdict.mechanism.certify(verdict))
    if not isinstance(verdict.mechanism, Pipeline):
        raise InputError(
            "a certificate is for a pipeline's exact verdict; an audit is saved with audit(..., save=FILE)"
        )
    claim, writer = _claim_and_writer(verdict)
    steps = [claim, *writer.witness(), *writer.bounds(), *writer.repairs()]
    steps.append({"step": "decision", "verdict": verdict.word})
    whole = _linked(verdict, steps)
    # Each step was checked on its own; all together may exceed the verifier's work limit. Then repairs are left out,
    # and next all bounds after the first, which decides the claim: the others only add information.
    spare = [step for step in steps if step["step"] in ("upper", "lower")][1:]
    spare += [step for step in steps if step["step"] == "repair"]
    dear = any(step["step"] == "repair" or step.get("theorem") == "levels" for step in steps)
    while dear and spare and not _holds(whole):
        steps.remove(spare.pop())
        whole = _linked(verdict, steps)
    return whole


def deciding_step(verdict: Verdict) -> Data:
    """The step that decides a claim, stated as weakly as possible: that is accepted at once. InputError if none is."""
    _, writer = _claim_and_writer(verdict)
    writer.strongest_first = False
    return next(writer.bounds())


def _claim_and_writer(verdict: Verdict) -> "tuple[Data, _Writer]":
    claim = _claim(verdict)
    try:
        model = Model(read_step(claim))
    except CertificateError as error:
        raise InputError(f"this pipeline cannot have a certificate: {error}") from None
    return claim, (_OtherWriter if "guarantee" in claim else _Writer)(verdict, model)


def _holds(certificate: Data) -> bool:
    """Whether the verifier accepts a certificate as a whole, with nothing cached from before."""
    forget()
    return examine(certificate).ok


def _linked(verdict: Verdict, steps: list[Data]) -> Data:
    """The certificate of some steps, chained."""
    linked, last = [], hashlib.sha256(SCHEMA.encode()).hexdigest()
    for i, step in enumerate(steps):
        if step in steps[:i]:
            continue  # the bound that decides the claim may also be one of the others
        last = chained(last, step)
        linked.append({**step, "digest": last})
    return {"schema": SCHEMA, "written_by": _version(), "verdict": verdict.word, "steps": linked}


def save(verdict: Verdict, path: str | Path) -> None:
    """Write a certificate to a file, whole or not at all.

    >>> import tempfile
    >>> from dpassay import check
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4), f"{folder}/claim.json")
    ...     Path(folder, "claim.json").exists()
    True
    """
    write_whole(Path(path), json.dumps(certify(verdict), indent=1, ensure_ascii=False) + "\n")


def _version() -> str:
    from dpassay import __version__

    return f"dpassay {__version__}"


def _claim(verdict: Verdict) -> Data:
    guarantee = verdict.guarantee
    text, parameters = _text(verdict)
    claimed: Data = (
        {"epsilon": enclosed(guarantee.exact_epsilon), "delta": enclosed(guarantee.exact_delta)}
        if isinstance(guarantee, PureDP | ApproxDP)
        else {"guarantee": guarantee_data(guarantee)}
    )
    return {
        "step": "claim",
        "name": verdict.name,
        "source": verdict.source,
        "pipeline": text,
        "parameters": {key: enclosed(number(value)) for key, value in parameters.items()},
        "dim": verdict.mechanism.dim,
        "neighbours": verdict.neighbours.kind,
        **claimed,
    }


def _text(verdict: Verdict) -> tuple[str, dict[str, Any]]:
    """A text that fully describes the mechanism, and the parameters that it names."""
    pipeline, guarantee = verdict.mechanism, verdict.guarantee
    claimed = {"eps": guarantee.value, "delta": guarantee.exact_delta}
    if guarantee.parameter != "epsilon":
        used = re.search(rf"\b{guarantee.parameter}\b", verdict.text)
        claimed = {guarantee.parameter: guarantee.value} if used else {}
    for text, parameters in ((verdict.text, verdict.parameters), (str(pipeline), {}), _with_names(pipeline)):
        try:
            read = parse(text, pipeline.dim, {**claimed, **parameters})
        except InputError:
            continue
        if [stage.to_data() for stage in read.stages] == [stage.to_data() for stage in pipeline.stages]:
            return _searched(text, parameters, {**claimed, "dim": pipeline.dim, **parameters})
    raise InputError(
        "this pipeline cannot have a certificate: its text does not describe all of it; build it with parse(), or "
        "from stages "
        "whose numbers print as they are"
    )


def _with_names(pipeline: Pipeline) -> tuple[str, dict[str, Any]]:
    """The text of a pipeline with names for all its numbers, for those that do not print as they are."""
    stages: list[str] = []
    numbers: dict[str, Any] = {}
    for stage in pipeline.stages:
        own, text = (stage.noise if isinstance(stage, Additive) else stage), str(stage)
        if isinstance(own, Mixture) and len(own.parts) == 1 and isinstance(own.parts[0][1], OneSided):
            name = f"c{len(numbers)}"  # its scale is printed first
            text, numbers[name] = re.sub(r"(?<=\()[^,)]+", name, text, count=1), own.parts[0][1].scale
        for field, parameter in own.syntax.parameters.items() if hasattr(own, "syntax") else ():  # a leak has none
            if parameter.kind == "number":
                name, value = f"c{len(numbers)}", getattr(own, field)
                printed = rf"(?<=[(, ]){re.escape(parameter.text(value))}(?=[,)])"
                text, numbers[name] = re.sub(printed, name, text, count=1), value
        stages.append(text)
    used = " | ".join(stages)
    return used, {name: value for name, value in numbers.items() if re.search(rf"\b{name}\b", used)}


def _searched(text: str, parameters: dict[str, Any], values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A text with names for the standard deviations that least_sigma(...) finds: the verifier does not search."""
    found, numbers = "", dict(parameters)
    while match := re.search(r"\bleast_sigma\s*\(", text):
        end, depth = match.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        names = (f"sigma{i or ''}" for i in itertools.count())
        name = next(name for name in names if name not in values and name not in numbers)
        numbers[name] = evaluate(text[match.start() : end], values)
        found, text = found + text[: match.start()] + name, text[end:]
    return found + text, numbers


class _Writer:
    """Finds evidence for each statement of a verdict that the verifier accepts."""

    strongest_first = True

    def __init__(self, verdict: Verdict, model: Model) -> None:
        self.verdict, self.guarantee, self.model = verdict, verdict.guarantee, model
        self.pipeline = verdict.mechanism
        profile = verdict.exact.profile or verdict.profile
        assert profile is not None
        self.profile = profile

    def bounds(self) -> Iterator[Data]:
        """The bounds on ε and δ, what decides the claim, and what else holds."""
        verdict, epsilon, delta = self.verdict, self.guarantee.value, self.guarantee.exact_delta
        found = self.profile.pure if delta == 0 else None
        if verdict.proven:
            yield self._needed(self.upper(epsilon, delta, ("0",)))
        if verdict.delta is None:
            lower, upper = (found.a, found.b) if found is not None else (verdict.epsilon.lower, verdict.epsilon.upper)
            decided = self.lower("epsilon", real(lower), delta, verdict.refuted)
            yield from [self._needed(decided)] if verdict.refuted else decided
            yield from self.upper(real(upper), delta)
        else:
            decided = self.lower("delta", epsilon, exactly(verdict.delta.lower), verdict.refuted)
            yield from [self._needed(decided)] if verdict.refuted else decided
            yield from self.upper(epsilon, exactly(verdict.delta.upper), weaken="delta")
            yield from self.lower("epsilon", exactly(verdict.epsilon.lower), delta)
            yield from self.upper(exactly(verdict.epsilon.upper), delta)
        yield from self.holding([at for at, _ in verdict.holds if number(at) != delta])  # that stands above

    def holding(self, deltas: list[float]) -> Iterator[Data]:
        """The (ε, δ)-DP that holds, at some δ."""
        for at, held in self.verdict.holds:
            if at in deltas:
                yield from self.upper(exactly(held.upper), number(at))

    def _needed(self, steps: Iterator[Data]) -> Data:
        for step in steps:
            return step
        raise InputError(
            f"this verdict has no certificate: the verifier cannot show that the claim is {self.verdict.word}, "
            "because it does not support everything that was used"
        )

    def upper(
        self, epsilon: Number, delta: Number, weaker: tuple[str, ...] = _WEAKER, weaken: str = "epsilon"
    ) -> Iterator[Data]:
        """(ε, δ)-DP, or slightly weaker, by the first theorem that the verifier accepts; nothing if none."""
        if epsilon == INFINITY or delta.b >= 1:
            return
        yield from self._first(self.pipeline, self.profile, {"step": "upper"}, epsilon, delta, weaker, weaken)

    def _first(
        self,
        pipeline: Pipeline,
        profile: PrivacyProfile,
        name: Data,
        epsilon: Number,
        delta: Number,
        weaker: tuple[str, ...] = ("0",),
        weaken: str = "epsilon",
    ) -> Iterator[Data]:
        """The first theorem with its evidence that the verifier accepts for a guarantee of a pipeline."""
        levels = LEVELS if len(weaker) == 1 else LEVELS[:1]
        found: list[Data] = []
        rest = upper_evidence(pipeline, profile, epsilon, delta, levels)
        for slack in weaker:
            more = 1 + real(slack)
            at = (epsilon * more, delta) if weaken == "epsilon" else (epsilon, minimum(ONE, delta * more))
            for evidence in _again(found, rest):
                step = {**name, "epsilon": enclosed(at[0]), "delta": enclosed(at[1]), **evidence}
                if _accepted(self.model, step):
                    yield step
                    return

    def lower(self, quantity: str, epsilon: Number, delta: Number, refutes: bool = False) -> Iterator[Data]:
        """ε at δ, or δ at ε, is at least this, or slightly less, by a pair that the verifier accepts.

        A bound that refutes the claim stays above the claim.
        """
        claimed = self.guarantee.value if quantity == "epsilon" else self.guarantee.exact_delta
        if (epsilon if quantity == "epsilon" else delta) == 0:
            return
        found: list[Data] = []
        more = lower_evidence(self.pipeline, self.profile, self.verdict.neighbours, epsilon, delta)
        value = epsilon if quantity == "epsilon" else delta
        for less in _less(value, claimed if refutes else None, self.strongest_first):
            ends = {"epsilon": enclosed(epsilon), "delta": enclosed(delta), quantity: point(less)}
            for option in _again(found, more):
                step = {"step": "lower", "quantity": quantity, **ends, **option}
                if _accepted(self.model, step, 1 if refutes else _PARTS):
                    yield step
                    return

    def witness(self) -> Iterator[Data]:
        """The counterexample's event, if the verifier knows it."""
        witness = self.verdict.witness
        if not isinstance(witness, Witness) or not witness.event:
            return
        logs = {name: enclosed(_widened(value)) for name, value in (("log_p", witness.log_p), ("log_q", witness.log_q))}
        for position in self.pipeline.noise_positions or [len(self.pipeline.stages)]:
            for at, pair in places(self.pipeline, witness.pair, position):
                data = {"noise": position, "at": at, "pair": pair_data(pair), "event": witness.event, **logs}
                if _accepted(self.model, step := {"step": "witness", **data}):
                    yield step
                    return

    def repairs(self) -> Iterator[Data]:
        """Mechanisms that satisfy a guarantee."""
        for repair in self.verdict.repairs:
            if repair.mechanism is None or not isinstance(repair.guarantee, PureDP | ApproxDP):
                continue
            profile = analyse(repair.mechanism, self.verdict.neighbours)
            at = repair.guarantee.exact_epsilon, repair.guarantee.exact_delta
            name = {"step": "repair", "pipeline": str(repair.mechanism)}
            yield from self._first(repair.mechanism, profile, name, *at)


class _OtherWriter(_Writer):
    """The same for a guarantee that is stated by other numbers than ε and δ."""

    def bounds(self) -> Iterator[Data]:
        """The bounds on the claimed parameter, what decides the claim, and which (ε, δ)-DP holds."""
        verdict, claimed, found = self.verdict, self.guarantee.value, self.verdict.value
        if verdict.proven:
            yield self._needed(self.most(claimed, ("0",)))
        decided = self.least(exactly(found.lower), verdict.refuted)
        yield from [self._needed(decided)] if verdict.refuted else decided
        if found.upper < math.inf:
            yield from self.most(exactly(found.upper), _WEAKER if self.guarantee.parameter != "mu" else _FEW)
        yield from self.holding([at for at, _ in verdict.holds])

    def most(self, value: Number, weaker: tuple[str, ...]) -> Iterator[Data]:
        """The parameter is at most this, or slightly more."""
        yield from self._at_most(self.pipeline, self.profile, {"step": "upper"}, value, weaker)

    def _at_most(
        self, pipeline: Pipeline, profile: PrivacyProfile, name: Data, value: Number, weaker: tuple[str, ...]
    ) -> Iterator[Data]:
        guarantee = self.verdict.guarantee
        assert not isinstance(guarantee, PureDP | ApproxDP)
        evidence: list[Data] = []
        for slack in weaker:
            at = value * (1 + real(slack))
            if not evidence or isinstance(guarantee, GDP):  # whose points depend on the value
                evidence = list(other_upper_evidence(pipeline, profile, guarantee, at))
            for found in evidence:
                step = {**name, "guarantee": guarantee_data(guarantee, at), **found}
                if _accepted(self.model, step):
                    yield step
                    return

    def least(self, value: Number, refutes: bool) -> Iterator[Data]:
        """The parameter is at least this, or slightly less, by a pair; a refuting bound stays above the claim."""
        guarantee = self.verdict.guarantee
        assert not isinstance(guarantee, PureDP | ApproxDP)
        if value == 0:
            return
        arguments = self.pipeline, self.profile, self.verdict.neighbours, guarantee
        found: list[Data] = []
        more = other_lower_evidence(*arguments, value)
        for less in _less(value, guarantee.value if refutes else None, self.strongest_first):
            stated = {**guarantee_data(guarantee), "value": point(less)}
            for option in _again(found, more):
                step = {"step": "lower", "guarantee": stated, **option}
                if _accepted(self.model, step):
                    yield step
                    return

    def repairs(self) -> Iterator[Data]:
        """Mechanisms that satisfy the guarantee."""
        for repair in self.verdict.repairs:
            if repair.mechanism is not None and repair.guarantee == self.verdict.guarantee:
                profile = analyse(repair.mechanism, self.verdict.neighbours)
                name = {"step": "repair", "pipeline": str(repair.mechanism)}
                yield from self._at_most(repair.mechanism, profile, name, self.guarantee.value, ("0",))


def _less(value: Number, claimed: Number | None, strongest_first: bool) -> list[Number]:
    """A lower bound and weaker ones; one that refutes a claim stays above it."""
    weaker = [value * (1 - real(slack)) if value.b < INFINITY else value for slack in ("1e-33", *_WEAKER[1:])]
    if claimed is None:
        return weaker
    least = (claimed * (1 + 2 * TIE)).b
    found = [less for less in (*weaker, real((claimed * (1 + 3 * TIE)).b)) if less.a > least]
    return found if strongest_first else found[::-1]


def _again(found: list[Data], more: Iterator[Data]) -> Iterator[Data]:
    """What was found before, and then more: to find evidence takes time, and the first often fits."""
    yield from tuple(found)
    for one in more:
        found.append(one)
        yield one


def _accepted(model: Model, step: Data, parts: int = 1) -> bool:
    """Whether the verifier can confirm a step with the work that is allowed, divided by `parts`."""
    try:
        with limited(parts):
            model.check(read_step(step))
    except (CertificateError, ArithmeticError, ValueError):
        return False
    return True


def _widened(value: Number) -> Number:
    """A number with a margin for moving a pair inwards."""
    return value if abs(value).b == INFINITY else value * real([1 - real("1e-28").b, 1 + real("1e-28").b])
