"""Checks a certificate step by step: each bound's premises, and its value by the theorem it names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import INF, ONE, ZERO, Number, iv, show
from dpassay.evidence.verifier.guarantees.divergences import least, most
from dpassay.evidence.verifier.guarantees.metric import least_per_unit, length, most_per_unit, start_of
from dpassay.evidence.verifier.lowers import NoisePlace, lower
from dpassay.evidence.verifier.noises.known_noises import joined_noise, upper
from dpassay.evidence.verifier.noises.losses import Loss, leak_loss, pure_loss
from dpassay.evidence.verifier.premises import Use, require_bounded, require_shown
from dpassay.evidence.verifier.reading import MOST_STAGES, Certificate, Guarantee, Step
from dpassay.evidence.verifier.regions.pairs import on_sphere
from dpassay.evidence.verifier.regions.record_sums import moved_sums
from dpassay.evidence.verifier.regions.regions import (
    ADDITIVE,
    DIRECTIONS,
    INFINITE,
    NOISES,
    ParsedStage,
    Reach,
    diameter,
)
from dpassay.evidence.verifier.regions.rules import after, incoming
from dpassay.evidence.verifier.sampling.lowers import sampled_lower
from dpassay.evidence.verifier.sampling.steps import Amplified, SampledSteps
from dpassay.evidence.verifier.text import Call, check_place, read_text, stage_of
from dpassay.evidence.verifier.witness import check_event

TIE = iv.mpf("1e-30")  # a claim that holds up to this holds
_SAFE = 1 - iv.mpf("1e-38")  # regions that touch up to 40 digits are taken to touch


def replay(certificate: Certificate) -> tuple[list[str], list[str]]:
    """Check all steps in order: what was established, and what failed, as sentences that begin with their step.

    A failure does not stop the others, unless the mechanism itself is in doubt.
    """
    steps = [(step, f"step {i} ({step.step})") for i, step in enumerate(certificate.steps)]
    changed = (name for (_, name), intact in zip(steps, certificate.intact, strict=True) if not intact)
    established, failures = [], [f"{name}: it was changed after it was written" for name in changed]
    model: Model | None = None
    with np.errstate(all="ignore"):  # absurd numbers overflow, which never counts as a bound
        for step, name in steps:
            try:
                if model is None:
                    model = Model(step)
                    said = model.said
                else:
                    decision = step.step == "decision"
                    said = _decided(model.claim, certificate, step.verdict) if decision else model.check(step)
                established.append(f"{name}: {said}")
            except CertificateError as error:
                failures.append(f"{name}: {error}")
            except (ValueError, ArithmeticError, LookupError, TypeError, AssertionError, MemoryError) as error:
                what = f"{type(error).__name__} {error}".strip()
                failures.append(f"{name}: cannot be checked with these numbers ({what})"[:300])
            if model is None:
                break  # what follows would be about another mechanism
    return established, failures


class Model:
    """The mechanism of a claim: its stages, which values neighbors can have at each, and word dropout."""

    def __init__(self, claim: Step, text: str | None = None) -> None:
        self.claim = claim
        given = claim.parameters.get("dim")
        if given is not None and not given.a == given.b == claim.dim:
            raise CertificateError(f"dim is {claim.dim}, but the parameters give {show(given)}")
        if not claim.delta.b < 1:
            raise CertificateError("delta must be below 1")
        self.relation, self.count = relation(claim.neighbours)
        own = {**_stated_names(claim), "dim": iv.mpf(claim.dim)}
        if own.keys() & claim.parameters.keys() - {"dim"}:
            raise CertificateError("a parameter has a name that is reserved for the claim")
        calls = read_text(claim.pipeline, {**own, **claim.parameters}) if text is None else read_text(text, own)
        if len(calls) > MOST_STAGES:
            raise CertificateError(f"the pipeline's text has {len(calls)} stages, at most {MOST_STAGES} are allowed")
        self.stages: list[ParsedStage] = []
        self.reaches = [incoming([call.name for call in calls], claim.dim)]
        for call in calls:
            stage = self._for_group(stage_of(call, self.reaches[-1].shape), calls)
            check_place(self.stages, stage, self.reaches[-1].shape)
            self.stages.append(stage)
            self.reaches.append(after(stage, self.reaches[-1], claim.dim))
        if self.stages[-1].name == "topk":
            raise CertificateError("topk must come right before exponential or softmax")
        _check_neighbours(self.stages, self.reaches, self.relation, self.count)
        if claim.neighbours == "element" and self.stages[0].name != "rows":
            raise CertificateError("neighbors that differ in one element need a pipeline that begins with rows")
        self.mu = _dropped(self.stages, self.relation, self.count)
        self.steps = SampledSteps.of(self.stages, self.relation)

    @property
    def said(self) -> str:
        claim = self.claim
        what = f"epsilon {show(claim.epsilon)} and delta {show(claim.delta)} are claimed"
        if claim.guarantee is not None:
            what = f"{claim.guarantee} is claimed"
        return f"{what} for {claim.pipeline} in dimension {claim.dim}, neighbors {claim.neighbours}"

    def _for_group(self, stage: ParsedStage, calls: Sequence[Call]) -> ParsedStage:
        """A query whose answers several records move: docs/proofs/group.md. For added noise they may rise and fall."""
        if stage.name != "query" or self.count == 1:
            return stage
        noises = [call.name for call in calls if call.name in (*NOISES, "leak", "softmax")]
        moves = stage.words["moves"] if set(noises) <= {"exponential", "softmax", "noisymax"} else "any"
        each = stage.numbers["distance"]
        if "values" in stage.words and (stage.words["norm"] == "l2" or not each.a == each.b == int(each.a)):
            raise CertificateError(
                "only a whole distance in l1 or linf says how far several records move whole numbers"
            )
        far = each * self.count
        return replace(stage, numbers={"distance": far}, words={**stage.words, "moves": moves})

    def check(self, step: Step) -> str:
        """What a step establishes; raises CertificateError if it does not."""
        checks = {"upper": self._upper, "lower": self._lower, "witness": self._witness, "repair": self._repair}
        return checks[step.step](step)

    def place(self, position: int, moved: bool = False) -> NoisePlace:
        """A noise's position; after all stages if there is none."""
        noises = [i for i, stage in enumerate(self.stages) if stage.name in NOISES] or [len(self.stages)]
        if position not in noises:
            raise CertificateError(f"noise {position}: there is no noise at this stage")
        one_more = self._sums and (self.relation == "add-remove-record" or moved)
        if not one_more or position != _first_noise(self.stages):
            return NoisePlace(self.stages, self.reaches, position)
        reach = self.reaches[position]
        exact = reach.exact and reach.shape.one.kind != "squashed" and reach.shape.one.values != "minmax"
        exact |= reach.shape.constant is not None  # each record moves the sum by it, and no other way
        shape = moved_sums(reach, self.count)
        return NoisePlace(self.stages, self.reaches, position, Reach(shape, exact, reach.far), self.count)

    @property
    def _sums(self) -> bool:
        """Whether records are summed before the first noise, so that values there are not those of one record."""
        return self.relation.endswith("record") and self.stages[0].name not in ("query", "rows")

    def _first_added(self, position: int) -> int:
        """The first of the noises that are added to one another here: their order does not matter."""
        added = [i < len(self.stages) and self.stages[i].name in ADDITIVE for i in range(position + 1)]
        while position > 0 and added[position - 1] and added[position]:
            position -= 1
        return position

    def _upper(self, step: Step) -> str:
        """The theorem gives no more than the guarantee allows."""
        if step.guarantee is not None and step.guarantee.kind == "metric":
            return self._metric_upper(step, step.guarantee)
        moved = self.steps.kind == "poisson"
        place = self.place(step.noise, moved)
        first, joined = self.place(self._first_added(step.noise), moved), joined_noise(place.added)
        # Behind another noise, or if sums of records leave the region, later limits imply nothing.
        alone = joined is not None and first.position == place.position and not self._sums
        behind = place.behind if alone else ()
        noise = joined or place.noise
        named = replace(step, theorem=self.steps.theorem(step.theorem, noise))
        require_bounded(Use(first, self.steps, self._sums, named))
        apart, base = None, leak_loss(ONE)
        if step.theorem != "unbounded":
            base = upper(named, noise, first.reach.shape, behind)
        if moved and self.relation == "replace-record" and step.theorem != "unbounded":
            apart = upper(named, noise, self.place(first.position).reach.shape, behind)
        loss = self.steps.upper(step, self._behind_dropout(base), apart)
        if step.guarantee is not None:
            known = loss if self.mu.b <= 0 else pure_loss(loss.pure)
            return _at_most(step, step.guarantee, most(known, step))
        what, found, limit = "epsilon", loss.pure, step.epsilon * (1 + TIE)
        if not found.b <= limit.a and step.delta.a > 0:
            what, found, limit = "delta", loss.delta(iv.mpf(step.epsilon.a), True), step.delta * (1 + TIE)
        if not found.b <= limit.a:
            raise CertificateError(
                f"epsilon {show(step.epsilon)} at delta {show(step.delta)} does not follow: "
                f"{step.theorem} gives {what} {show(iv.mpf(found.b))}, not {show(limit)}"
            )
        return f"by {step.theorem}, epsilon {show(step.epsilon)} holds at delta {show(step.delta)}"

    def _lower(self, step: Step) -> str:
        """The pair shows as much as is stated."""
        if step.epsilon.b == INF and step.quantity == "delta":
            raise CertificateError("delta is bounded at a finite epsilon")
        place = self.place(step.noise)
        if step.pair and step.at == 0 and self.stages[0].name in DIRECTIONS:  # a unit vector, named by its direction
            step = replace(step, pair=on_sphere(step.pair))
        require_shown(Use(place, self.steps, self._sums, step))
        if self.steps.sampled:
            loss = sampled_lower(self.steps, place, step)
        else:
            base = lower(place, replace(step, theorem=self.steps.theorem(step.theorem, place.noise)))
            loss = self.steps.lower(step, self._behind_dropout(base))
        if step.guarantee is not None:
            return self._other_lower(step, step.guarantee, loss)
        epsilon, delta = step.epsilon, step.delta
        if step.quantity == "epsilon" and step.delta.b <= 0:
            shown, enough = loss.pure, loss.pure.a == INF or (loss.pure * _SAFE).a >= epsilon.b
        else:
            shown = getattr(loss, "infinite", ZERO) if epsilon.b == INF else loss.delta(iv.mpf(epsilon.b), False)
            least = (shown * _SAFE).a
            enough = least > delta.b if step.quantity == "epsilon" else least >= delta.b
        if not enough:
            raise CertificateError(
                f"{step.quantity} at least {show(step.epsilon if step.quantity == 'epsilon' else step.delta)} "
                f"does not follow: the pair shows {show(iv.mpf(shown.a))}"
            )
        if step.quantity == "epsilon":
            return f"by {step.theorem}, epsilon is at least {show(step.epsilon)} at delta {show(step.delta)}"
        return f"by {step.theorem}, delta is at least {show(step.delta)} at epsilon {show(step.epsilon)}"

    def _metric_upper(self, step: Step, stated: Guarantee) -> str:
        start = start_of(self.stages, stated, self.claim.neighbours, self.claim.dim)
        if step.theorem != "metric" or step.noise != _first_noise(self.stages):
            raise CertificateError("a loss per unit of distance is bounded by the theorem 'metric' at the first noise")
        shape = self.reaches[step.noise].shape
        if diameter(shape, INFINITE).b <= 0:  # all inputs have the same value before the noise
            return _at_most(step, stated, ZERO)
        return _at_most(step, stated, most_per_unit(self.stages, start, step.noise, shape.dim, stated))

    def _other_lower(self, step: Step, stated: Guarantee, loss: Loss) -> str:
        """The parameter of a guarantee other than (ε, δ)-DP is no smaller."""
        if stated.kind == "metric":
            start = start_of(self.stages, stated, self.claim.neighbours, self.claim.dim)
            if step.at != start or (not step.pair and step.theorem != "noisy-max"):
                raise CertificateError(f"the distance is that of two vectors that come in at stage {start}")
            own = self.stages[start] if step.noise == start else None
            shown = least_per_unit(loss.pure, step.pair, stated.metric, own) if step.pair else loss.pure
        elif self.mu.b > 0:
            raise CertificateError("for word dropout, only epsilon and delta have lower bounds")
        else:
            shown = least(loss, step)
        # The stated value itself comes back if δ at one ε, compared directly, shows that it is needed.
        if not (shown.a == INF or shown is stated.value or (shown * _SAFE).a >= stated.value.b):
            raise CertificateError(
                f"{stated.parameter} at least {show(stated.value)} does not follow: the pair shows {show(shown)}"
            )
        return f"by {step.theorem}, {stated.parameter} of {stated} is no smaller"

    def _behind_dropout(self, loss: Loss) -> Loss:
        """The loss of a step in which the differing words are dropped with some probability: docs/proofs/dropout.md."""
        return loss if self.mu.b <= 0 else Amplified(loss, 1 - self.mu, 1)

    def _witness(self, step: Step) -> str:
        self.steps.refuse_event()
        place, claim = self.place(step.noise), self.claim
        if claim.guarantee is not None:  # at the distance of the pair, metric DP is ε-DP
            stated = claim.guarantee
            if stated.kind != "metric" or step.at != start_of(self.stages, stated, claim.neighbours, claim.dim):
                raise CertificateError("an event breaks epsilon and delta, or metric DP of vectors that come in")
            claim = replace(claim, epsilon=stated.value * length(step.pair, stated.metric))
        return check_event(step, claim, place, place.pair(step), self.mu)

    def _repair(self, step: Step) -> str:
        """The guarantee follows for the other mechanism, between the same neighbors."""
        repaired = Model(self.claim, step.pipeline)
        first, own = repaired.stages[0], self.stages[0]
        if {"query", "rows"} & {first.name, own.name} and first != own:
            raise CertificateError(f"its {first.name} is about different neighbors from those of the claim")
        return f"{step.pipeline}: {repaired._upper(step)}"


def relation(neighbours: str) -> tuple[str, int]:
    """How two inputs differ, and how many words, tokens or records may: docs/concepts.md.

    A user, or an entity, is a record as long as the stages see all of their data at once.
    """
    name, _, count = neighbours.rstrip(")").partition("(")
    basic = {"words": "word", "tokens": "word", "element": "replace-record"}
    basic |= dict.fromkeys(("user", "entity", "user-entity", "group"), "add-remove-record")
    return basic.get(name, name), int(count or 1)


def _stated_names(claim: Step) -> dict[str, Number]:
    """The names that the text may use for the claimed numbers."""
    if claim.guarantee is None:
        return {"eps": claim.epsilon, "delta": claim.delta}
    if claim.guarantee.parameter != "epsilon":
        return {claim.guarantee.parameter: claim.guarantee.value}
    return {"eps": claim.guarantee.value, "delta": ZERO}


def _at_most(step: Step, stated: Guarantee, found: Number) -> str:
    if not found.b <= (stated.value * (1 + TIE)).a:
        raise CertificateError(f"{stated} does not follow: {step.theorem} gives {show(iv.mpf(found.b))}")
    return f"by {step.theorem}, {stated} holds"


def _dropped(stages: list[ParsedStage], neighbours: str, count: int) -> Number:
    """The probability that all differing words are dropped; it does not help if neighbors are any two texts."""
    kept = ONE
    for stage in stages:
        if stage.name == "dropout" and neighbours == "word":
            kept *= 1 - stage.numbers["mu"]
    return ZERO if kept.a == 1 else (1 - kept) ** count


def _check_neighbours(stages: list[ParsedStage], reaches: list[Reach], neighbours: str, count: int) -> None:
    """Refuse a relation that has no defined meaning for the stages.

    Records are summed before the first noise; noise that is not added to the sum would be another mechanism.
    """
    records = ("replace-record", "add-remove-record")
    known = {"query": ("query", *records), "rows": records[:1], "poisson": records}
    known |= {"subsample": records[:1], "shuffle": records[:1]}
    first = stages[0].name
    if neighbours not in known.get(first, (neighbours,)):
        raise CertificateError(f"{first} does not apply to the neighbors {neighbours}")
    if count > 1 and first in ("poisson", "subsample", "shuffle"):
        raise CertificateError(f"{first} draws each record independently, so several records are not one larger record")
    if first in ("query", "rows") or not neighbours.endswith("record"):
        return
    noise = _first_noise(stages)
    if noise < len(stages) and stages[noise].name not in ADDITIVE:
        raise CertificateError(f"{stages[noise].name} is not added to a sum of records")
    if reaches[noise].shape.kind == "categories":
        raise CertificateError("category names cannot be summed")


def _first_noise(stages: list[ParsedStage]) -> int:
    return next((i for i, stage in enumerate(stages) if stage.name in NOISES), len(stages))


def _decided(claim: Step, certificate: Certificate, verdict: str) -> str:
    """The verdict follows from the bounds, each of which was checked at its own step."""
    if certificate.verdict != verdict:
        raise CertificateError(f"the certificate says {certificate.verdict}, but its last step says {verdict}")
    epsilon, delta = claim.epsilon, claim.delta
    found = "open"
    for step in certificate.steps[1:]:
        if claim.guarantee is not None or step.guarantee is not None:
            found = _decided_by(claim, step) or found
            continue
        # A bound holds for all numbers between the ends of its own, hence for the lower ends. The tolerance for ties,
        # applied at a bound's own step, is not applied again.
        if step.step == "upper" and step.epsilon.a <= epsilon.a and step.delta.a <= delta.a:
            found = "proven"
        if step.step == "lower":
            more = step.delta.a > (delta * (1 + TIE)).b and step.epsilon.b >= epsilon.b
            larger = step.epsilon.a > (epsilon * (1 + TIE)).b and step.delta.b >= delta.b
            if more or (larger and step.quantity == "epsilon"):
                found = "refuted"
    if found != verdict:
        raise CertificateError(f"{verdict} does not follow: by these bounds the claim is {found}")
    return "the recorded bounds do not decide the claim" if found == "open" else f"the claim is {found}"


def _decided_by(claim: Step, step: Step) -> str:
    """What a bound on the parameter of another guarantee decides, if it is the claimed one."""
    stated, claimed = step.guarantee, claim.guarantee
    if stated is None or claimed is None or not stated.same_kind(claimed):
        return ""
    if step.step == "upper" and stated.value.a <= claimed.value.a:
        return "proven"
    return "refuted" if step.step == "lower" and stated.value.a > (claimed.value * (1 + TIE)).b else ""
