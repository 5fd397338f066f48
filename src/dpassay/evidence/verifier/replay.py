"""Re-checks a certificate step by step with the verifier's own mathematics."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.ceilings import sharpen
from dpassay.evidence.verifier.fields import Bounded, Claim, Decision, Holds, Repair, StageStep, Witness
from dpassay.evidence.verifier.mechanism import Bounds, Ends, analyse
from dpassay.evidence.verifier.numbers import INF, Number, iv, largest, show, smallest
from dpassay.evidence.verifier.reading import Certificate
from dpassay.evidence.verifier.regions import NOISES, Reach, Stage, contains, equal_sets
from dpassay.evidence.verifier.rules import SINGLE, after, incoming
from dpassay.evidence.verifier.text import Call, disagreement, read_text
from dpassay.evidence.verifier.witness import check_event, check_pair

TIE = iv.mpf("1e-30")
_TINY = iv.mpf("1e-40")  # what no statement on epsilon or delta depends on
_PROOF = "1e-3"


@dataclass
class Replay:
    """What was established and what failed, as sentences that begin with their step."""

    certificate: Certificate
    established: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Check all steps in order; a failure does not stop the others, unless the mechanism itself is in doubt."""
        with np.errstate(all="ignore"):  # absurd numbers overflow; what comes of them is not taken for a bound
            self._run()

    def _run(self) -> None:
        certificate = self.certificate
        for i, (name, intact) in enumerate(zip(certificate.names, certificate.intact, strict=True)):
            if not intact:
                self.failures.append(f"step {i} ({name}): its contents were changed after it was written")
        parts = list(zip(certificate.names, certificate.steps, strict=True))
        claim = certificate.steps[0]
        assert isinstance(claim, Claim)
        stage_steps = [step for step in certificate.steps if isinstance(step, StageStep)]
        model = _Model(claim, stage_steps, certificate.verdict)
        checks: dict[type, Callable[..., str]] = {
            Claim: model.claim_step,
            StageStep: model.stage_step,
            Witness: model.witness_step,
            Bounded: model.bounds_step,
            Holds: model.holds_step,
            Repair: model.repair_step,
            Decision: lambda step: model.decision_step(step, certificate),
        }
        for i, (name, step) in enumerate(parts):
            if model.doubtful and not isinstance(step, StageStep):
                break  # what follows would speak of another mechanism
            try:
                self.established.append(f"step {i} ({name}): {checks[type(step)](step)}")
            except CertificateError as error:
                self.failures.append(f"step {i} ({name}): {error}")
                model.doubtful |= isinstance(step, StageStep)
            except (ValueError, ArithmeticError, LookupError, TypeError, AssertionError, MemoryError) as error:
                what = f"{type(error).__name__} {error}".strip()
                self.failures.append(f"step {i} ({name}): cannot be re-checked with these numbers ({what})"[:300])


class _Model:
    """The mechanism as the certificate describes it, and its bounds, computed when first needed."""

    def __init__(self, claim: Claim, steps: list[StageStep], expected: str) -> None:
        self.claim, self.steps, self.expected = claim, steps, expected
        self.stages = [step.stage for step in steps]
        self.reaches = [incoming(self.stages, claim.dim)]
        for step in steps:
            far = after(step.stage, self.reaches[-1], claim.dim).far
            self.reaches.append(Reach(step.shape, step.exact, far))
        self.pure = claim.delta.b <= 0
        self.doubtful = False
        self._bounds: Bounds | None = None
        self._calls: list[Call] | None = None
        self._verdict: str | None = None

    @property
    def bounds(self) -> Bounds:
        if self._bounds is None:
            self._bounds = analyse(self.stages, self.reaches, self.claim.neighbours)
        return self._bounds

    def claim_step(self, step: Claim) -> str:
        """The text can be read, and names as many stages as are recorded."""
        own = {"eps": step.epsilon, "delta": step.delta}
        self._calls = read_text(step.text, {**step.parameters, **own})
        if len(self._calls) != len(self.steps):
            raise CertificateError(f"the text names {len(self._calls)} stages, recorded are {len(self.steps)}")
        given = step.parameters.get("dim")
        if given is not None and not given.a == given.b == step.dim:
            raise CertificateError(f"dim is {step.dim}, among the parameters it is {show(given)}")
        return f"{step.name or 'a pipeline'} is claimed to keep epsilon {show(step.epsilon)}, delta {show(step.delta)}"

    def stage_step(self, step: StageStep) -> str:
        """The stage is the text's, and its region follows from the one before."""
        if step.index >= len(self.steps) or self.steps[step.index] is not step:
            raise CertificateError(f"its index is {step.index}, which is another place")
        before = self.reaches[step.index]
        _check_order(self.stages, step.index, before)
        if self._calls is not None and step.index < len(self._calls):
            why = disagreement(self._calls[step.index], step.stage, before.shape)
            if why:
                raise CertificateError(f"{step.stage.name} is not what the claim's text says: {why}")
        mine = after(step.stage, before, self.claim.dim)
        if step.stage.name == "decode" and step.shape.dim == self.claim.dim:
            # A function may go back to the pipeline's own dimension.
            mine = after(replace(step.stage, name="encode"), before, self.claim.dim)
        if equal_sets(mine.shape, step.shape):
            if step.exact != mine.exact:
                word = "can" if mine.exact else "need not"
                raise CertificateError(
                    f"exact is {step.exact}, but any two of these values {word} come from neighbours"
                )
            return f"{step.stage.name} puts out the region {step.shape.kind}"
        if not step.exact and contains(step.shape, mine.shape):
            return f"{step.stage.name} puts out no more than the region {step.shape.kind}"
        raise CertificateError(
            f"the region {step.shape.kind} does not follow: {step.stage.name} puts out {_told(mine)}"
        )

    def witness_step(self, step: Witness) -> str:
        where = check_pair(step, self.stages, self.reaches, self.claim.neighbours)
        shown = check_event(step, self.claim, self.stages) if step.event else self._pair_alone(step)
        return f"{where}; {shown}"

    def _pair_alone(self, step: Witness) -> str:
        """Where no event is named the pair's own loss must break the claim; of unbounded values any pair will do."""
        claim = self.claim
        alone = analyse(self.stages, self.reaches, claim.neighbours, step.pair)
        if self.bounds.pure_ends()[0].a == INF and alone.pure_ends()[0].b <= 0:
            return "values can be any distance apart"
        shown = (alone.pure_ends() if self.pure else alone.delta_ends(claim.epsilon))[0]
        limit = claim.epsilon if self.pure else claim.delta
        if shown.b <= (limit * (1 - iv.mpf("1e-9"))).a:
            what = "epsilon" if self.pure else "delta"
            raise CertificateError(f"the pair does not break the claim: its {what} is {show(shown)}")
        return f"its own {'epsilon' if self.pure else 'delta'} is {show(shown)}"

    def bounds_step(self, step: Bounded) -> str:
        """The recorded bounds are those that follow."""
        claim = self.claim
        if step.quantity == "delta":
            if self.pure:
                raise CertificateError("bounds on delta are given, but no delta is claimed")
            low, high = self.bounds.delta_ends(claim.epsilon)
        else:
            low, high = self.bounds.pure_ends() if self.pure else self.agreeing(self.bounds.epsilon_ends(claim.delta))
        closed = self.pure or self.bounds.closed
        # Pairs that were carried through stages in doubles are known to nine digits only.
        carried = any(not self.reaches[i].exact for i, stage in enumerate(self.stages) if stage.name in NOISES)
        strong, weak = ("1e-6", "1e-4") if carried else ("1e-9", "1e-9")
        _compare(step, low, high, *((strong, weak) if closed else (_PROOF, "0.05")))
        return f"{step.quantity} lies between {show(iv.mpf(low.a))} and {show(iv.mpf(high.b))}"

    def agreeing(self, ends: Ends) -> Ends:
        """ε at δ > 0, cut to what is known of δ: both are one statement."""
        claimed, verdict = self.claim.epsilon, self.verdict()
        low, high = ends
        if verdict == "proven" and high.b > claimed.b:
            return smallest([low, claimed]), claimed
        if verdict == "refuted" and low.a < claimed.a:
            return claimed, largest([high, claimed])
        return ends

    def verdict(self) -> str:
        """What these bounds say of the claim."""
        if self._verdict is None:
            self._verdict = self._decided()
            if self._verdict == "open" and self.expected != "open" and not self.pure:
                for curve in (*self.bounds.lowers, *self.bounds.uppers):
                    sharpen(curve, self.claim.epsilon)
                self._verdict = self._decided()
        return self._verdict

    def _decided(self) -> str:
        limit = self.claim.epsilon if self.pure else self.claim.delta
        value = self.bounds.pure() if self.pure else self.bounds.delta(self.claim.epsilon)
        if value.b <= (limit * (1 + TIE)).b:
            return "proven"
        return "refuted" if value.a > (limit * (1 + TIE)).b else "open"

    def holds_step(self, step: Holds) -> str:
        """A guarantee that is said to hold, does; and it is not far weaker than what holds."""
        bounds, slack = self.bounds, 1 + iv.mpf(_PROOF)
        if step.delta.b <= 0:
            quick = bounds.pure()
        else:
            quick = smallest([INF, *(curve.epsilon(step.delta) for curve in bounds.quick)])
        mine = quick
        if quick.b > (step.epsilon * slack).b and step.delta.b > 0:
            mine = smallest([quick, *(curve.epsilon(step.delta) for curve in bounds.uppers)])
        if mine.b > (step.epsilon * slack).b:
            raise CertificateError(f"at delta {show(step.delta)} only {show(iv.mpf(mine.b))} can be proved")
        if step.epsilon.a > (iv.mpf(quick.b) * slack).b:
            raise CertificateError(f"at delta {show(step.delta)} it says {show(step.epsilon)}, {show(quick)} follows")
        return f"epsilon {show(step.epsilon)} holds at delta {show(step.delta)}"

    def repair_step(self, step: Repair) -> str:
        """The stated guarantee follows for the stated stages."""
        if any(stage.name in ("query", "rows") for stage in step.stages[:1]) and step.stages[0] != self.stages[0]:
            raise CertificateError(f"its {step.stages[0].name} speaks of other neighbours than the claim")
        reaches = [incoming(step.stages, self.claim.dim)]
        for i, stage in enumerate(step.stages):
            _check_order(step.stages, i, reaches[-1])
            reaches.append(after(stage, reaches[-1], self.claim.dim))
        bounds = analyse(step.stages, reaches, self.claim.neighbours)
        if not _proves(bounds, step):
            raise CertificateError(
                f"epsilon {show(step.epsilon)} at delta {show(step.delta)} cannot be proved for these stages"
            )
        return f"these stages keep epsilon {show(step.epsilon)} at delta {show(step.delta)}"

    def decision_step(self, step: Decision, certificate: Certificate) -> str:
        """The verdict follows from the bounds that were computed here."""
        if certificate.verdict != step.verdict:
            raise CertificateError(f"the certificate says {certificate.verdict}, its last step {step.verdict}")
        found = self.verdict()
        if step.verdict == "open":
            self._stays_open(certificate)
            return "the recorded bounds do not decide the claim"
        if found != step.verdict:
            raise CertificateError(f"{step.verdict} does not follow: by these bounds the claim is {found}")
        return f"the claim is {found}"

    def _stays_open(self, certificate: Certificate) -> None:
        """Neither verdict follows from the recorded bounds."""
        quantity, limit = ("epsilon", self.claim.epsilon) if self.pure else ("delta", self.claim.delta)
        for step in certificate.steps:
            if isinstance(step, Bounded) and step.quantity == quantity:
                if step.upper.b <= limit.a:
                    raise CertificateError("open, but the recorded bounds prove the claim")
                if step.lower.a > limit.b:
                    raise CertificateError("open, but the recorded bounds refute the claim")
                return
        raise CertificateError(f"no bounds on {quantity} are recorded")


def _proves(bounds: Bounds, step: Repair) -> bool:
    """Whether an upper bound is small enough, on the finest lattice if need be."""
    if step.delta.b <= 0:
        return bool(bounds.pure().b <= (step.epsilon * (1 + TIE)).b)
    limit = (step.delta * (1 + TIE)).b
    slow = [curve for curve in bounds.uppers if curve not in bounds.quick]
    if any(curve.delta(step.epsilon).b <= limit for curve in (*bounds.quick, *slow)):
        return True
    for curve in slow:
        sharpen(curve, step.epsilon)
    return any(curve.delta(step.epsilon).b <= limit for curve in slow)


def _check_order(stages: list[Stage] | tuple[Stage, ...], index: int, before: Reach) -> None:
    """Stages that make sense in some places only."""
    stage = stages[index]
    if stage.name in ("query", "rows") and index:
        raise CertificateError(f"{stage.name} must be the first stage")
    if stage.name == "dropout" and any(earlier.name != "dropout" for earlier in stages[:index]):
        raise CertificateError("dropout must come before all other stages")
    allowed = {"bits": ("bits", "onehot", "sparse"), "flip": ("categories",)}.get(stage.name)
    if allowed and before.shape.kind not in allowed:
        raise CertificateError(f"{stage.name} cannot work on the region {before.shape.kind}")
    if stage.name == "flip" and stage.wholes["size"] != before.shape.count:
        raise CertificateError(f"flip is for {stage.wholes['size']} categories, but there are {before.shape.count}")
    if (
        stage.name in SINGLE
        and before.shape.dim != 1
        and not (stage.name == "onehot" and before.shape.dim == stage.wholes["size"])
    ):
        raise CertificateError(f"{stage.name} takes one value, but {before.shape.dim} coordinates come in")
    names = ("laplace", "gaussian", "onesided", "exponential", "repeat")
    needs_vectors = stage.name in names or (stage.name == "mixture" and bool(stage.parts))
    if needs_vectors and before.shape.kind == "categories":
        raise CertificateError(f"{stage.name} cannot work on a category's name")


def _told(reach: Reach) -> str:
    shape = reach.shape
    size = f" of size {show(shape.size)}" if shape.kind in ("ball", "apart", "sphere") else ""
    return f"{shape.kind}{size} in dimension {shape.dim}{'' if reach.exact else ' or less'}"


def _compare(step: Bounded, low: Number, high: Number, strong: str, weak: str) -> None:
    """Both ends must be ours, up to rounding: no better than can be proved, and not much worse."""
    what, lower, upper = step.quantity, step.lower, step.upper
    if lower.a > upper.b:
        raise CertificateError(f"the lower bound {show(lower)} is above the upper bound {show(upper)}")
    if _beyond(lower, iv.mpf(low.b), strong):
        raise CertificateError(f"{what} is said to be at least {show(lower)}; only {show(low)} can be shown")
    if _beyond(iv.mpf(high.a), upper, strong):
        raise CertificateError(f"{what} is said to be at most {show(upper)}; only {show(high)} can be proved")
    if _beyond(iv.mpf(low.a), lower, weak):
        raise CertificateError(f"{what} is said to be at least {show(lower)}, but it is at least {show(low)}")
    if _beyond(upper, iv.mpf(high.b), weak):
        raise CertificateError(f"{what} is said to be at most {show(upper)}, but at most {show(high)} follows")


def _beyond(larger: Number, smaller: Number, tolerance: str) -> bool:
    """Whether a number exceeds another by more than the tolerance."""
    if smaller.b == INF:
        return False
    return bool(larger.a > (smaller * (1 + iv.mpf(tolerance)) + _TINY).b)
