"""Certificates: a verdict with all its evidence in one JSON file, for `dpassay verify`.

Each bound names its theorem and carries what the theorem needs: the pair, the order of a Rényi divergence, the grid.
What is written was checked by the verifier before; a bound that its arithmetic cannot show to the last digit is
written a little weaker. docs/certificate.md describes the format.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dpassay.core.files import write_whole
from dpassay.core.numbers import INFINITY, ONE, TIE, ZERO, Number, digits, exactly, iv, maximum, minimum, number
from dpassay.core.theorems import Theorem
from dpassay.errors import CertificateError, DpassayError, InputError
from dpassay.evidence.grids import LEVELS, grid_for
from dpassay.evidence.verdict import Verdict
from dpassay.evidence.verifier import Model, chained, read_step
from dpassay.exact.analysis import analyse, sources
from dpassay.exact.profile import PrivacyProfile
from dpassay.exact.profile_bounds import DropoutBound, PairBound, ProfileBound, RenyiBound, before_dropout
from dpassay.exact.witness import Witness
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Block, Box, Pair, Region, Repeated, RowBits, Rows
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.stages.binary import Binary

SCHEMA = "dpassay/certificate/2"
_INWARD = 1 - iv.mpf("1e-35")  # a pair this much nearer to the middle lies in its region beyond doubt
# By how much a bound is weakened until the verifier can show it.
_WEAKER = ("0", "1e-12", "1e-9", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "5e-2")
Data = dict[str, Any]


def certify(verdict: Verdict) -> Data:
    """Write a verdict down with its evidence, step by step.

    >>> from dpassay import check
    >>> written = certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    >>> written["verdict"], [step["step"] for step in written["steps"]][:3]
    ('refuted', ['claim', 'witness', 'lower'])
    """
    if not isinstance(verdict.mechanism, Pipeline):
        raise InputError(
            "a certificate is for a pipeline's exact verdict; an audit is saved with audit(..., save=FILE)"
        )
    claim = _claim(verdict)
    writer = _Writer(verdict, Model(read_step(claim)))
    steps = [claim, *writer.witness(), *writer.bounds(), *writer.repairs()]
    steps.append({"step": "decision", "verdict": verdict.word})
    linked, last = [], hashlib.sha256(SCHEMA.encode()).hexdigest()
    for i, step in enumerate(steps):
        if step in steps[:i]:
            continue  # what decides the claim may also be one of the bounds
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
    text, parameters = _text(verdict)
    return {
        "step": "claim",
        "name": verdict.name,
        "source": verdict.source,
        "pipeline": text,
        "parameters": {key: _enclosed(number(value)) for key, value in parameters.items()},
        "dim": verdict.mechanism.dim,
        "neighbours": verdict.neighbours.kind,
        "epsilon": _enclosed(verdict.guarantee.exact_epsilon),
        "delta": _enclosed(verdict.guarantee.exact_delta),
    }


def _text(verdict: Verdict) -> tuple[str, dict[str, Any]]:
    """A text that says all of the mechanism, and the parameters that it names."""
    from dpassay.pipeline.parser import parse

    pipeline, guarantee = verdict.mechanism, verdict.guarantee
    claimed = {"eps": guarantee.exact_epsilon, "delta": guarantee.exact_delta}
    if pipeline.told_by_its_text:
        for text, parameters in ((verdict.text, verdict.parameters), (str(pipeline), {})):
            try:
                read = parse(text, pipeline.dim, {**claimed, **parameters})
            except InputError:
                continue
            if [stage.to_data() for stage in read.stages] == [stage.to_data() for stage in pipeline.stages]:
                return text, parameters
    raise InputError(
        "this pipeline has no text that says all of it, so it cannot have a certificate: build it with parse(), "
        "or from stages whose numbers print as they are"
    )


def _enclosed(value: Number) -> list[str]:
    return list(digits(value))


def _point(value: Number) -> list[str]:
    """One decimal, given as both ends."""
    return [digits(value)[0]] * 2


class _Writer:
    """Finds evidence for each statement of a verdict that the verifier accepts."""

    def __init__(self, verdict: Verdict, model: Model) -> None:
        self.verdict, self.model = verdict, model
        self.pipeline, self.guarantee = verdict.mechanism, verdict.guarantee
        profile = verdict.profile
        assert profile is not None
        self.profile = profile

    def bounds(self) -> Iterator[Data]:
        """The bounds on ε and δ, what decides the claim, and what else holds."""
        verdict, epsilon, delta = self.verdict, self.guarantee.exact_epsilon, self.guarantee.exact_delta
        found = self.profile.pure if delta == 0 else None
        if verdict.proven:
            yield self._needed(self.upper(epsilon, delta, ("0",)))
        if verdict.delta is None:
            lower, upper = (found.a, found.b) if found is not None else (verdict.epsilon.lower, verdict.epsilon.upper)
            decided = self.lower("epsilon", iv.mpf(lower), delta)
            yield from [self._needed(decided)] if verdict.refuted else decided
            yield from self.upper(iv.mpf(upper), delta)
        else:
            least = exactly(verdict.delta.lower)
            decided = self.lower(
                "delta", epsilon, maximum(least, iv.mpf((delta * (1 + 2 * TIE)).b)) if verdict.refuted else least
            )
            yield from [self._needed(decided)] if verdict.refuted else decided
            yield from self.upper(epsilon, exactly(verdict.delta.upper), weaken="delta")
            yield from self.lower("epsilon", exactly(verdict.epsilon.lower), delta)
            yield from self.upper(exactly(verdict.epsilon.upper), delta)
        for at, held in verdict.holds:
            if number(at) == delta:
                continue  # it stands above
            yield from self.upper(exactly(held.upper), number(at))

    def _needed(self, steps: Iterator[Data]) -> Data:
        for step in steps:
            return step
        raise DpassayError(
            f"the verifier cannot show that the claim is {self.verdict.word}: please report this defect of dpassay"
        )

    def upper(
        self, epsilon: Number, delta: Number, weaker: tuple[str, ...] = _WEAKER, weaken: str = "epsilon"
    ) -> Iterator[Data]:
        """(ε, δ)-DP, or what is a little weaker, by the first theorem that the verifier accepts; nothing if none."""
        if epsilon == INFINITY or delta.b >= 1:
            return
        yield from _first_upper(self.model, self.profile, self.pipeline, epsilon, delta, weaker, weaken)

    def lower(self, quantity: str, epsilon: Number, delta: Number) -> Iterator[Data]:
        """ε at δ, or δ at ε, is at least this, or a little less, by a pair that the verifier accepts."""
        if (epsilon if quantity == "epsilon" else delta) == 0:
            return
        options = list(self._pairs(epsilon, delta))
        for weaker in ("1e-33", *_WEAKER[1:]):
            less = 1 - iv.mpf(weaker)
            at = (epsilon * less, delta) if quantity == "epsilon" else (epsilon, delta * less)
            if at[0].b == INFINITY:
                at = (INFINITY, delta)
            ends = {"epsilon": _enclosed(at[0]), "delta": _enclosed(at[1])}
            ends[quantity] = _point(at[0] if quantity == "epsilon" else at[1])
            for option in options:
                step = {"step": "lower", "quantity": quantity, **ends, **option}
                if _accepted(self.model, step):
                    yield step
                    return

    def _pairs(self, epsilon: Number, delta: Number) -> Iterator[Data]:
        """Pairs that may show a lower bound, with their theorems, the strongest first."""
        positions = self.pipeline.noise_positions or [len(self.pipeline.stages)]
        best = self.profile.dominating_pure() if delta == 0 else self.profile.dominating_at(epsilon)
        candidates = sorted(self.profile.candidates, key=lambda candidate: candidate is not best)
        for position in positions:
            for theorem in ("unbounded", "exponential"):
                yield {"theorem": theorem, "noise": position, "at": position, "pair": []}
            for candidate in candidates[:4]:
                bound = candidate.bound.bound if isinstance(candidate.bound, DropoutBound) else candidate.bound
                assert isinstance(bound, PairBound)
                for grid in _grids(bound, before_dropout(epsilon, self.profile.mu), delta, LEVELS[:2], below=True):
                    for at, pair in self._places(candidate.pair, position):
                        start = {"theorem": bound.theorem.value, "noise": position, "at": at}
                        yield {**start, "pair": pair_data(pair), **grid}
            if self.profile.pair is not None:
                for at, pair in self._places(self.profile.pair, position):
                    for theorem in ("two-noises", "laplace", "gaussian", "radial"):
                        yield {"theorem": theorem, "noise": position, "at": at, "pair": pair_data(pair)}

    def _places(self, pair: Pair, position: int) -> Iterator[tuple[int, Pair]]:
        """Where a pair can come in: just before the noise, or what the stages make such a pair of, before them."""
        regions = self.pipeline.output_regions()
        if isinstance(bits := regions[position].region, RowBits):
            yield from _rows_with_bits(bits, self.pipeline.stages, regions)
        for start in range(position, -1, -1):
            yield start, _inwards(pair, regions[start].region)
        start, found = sources(self.pipeline, position)
        for source in found:
            yield start, _inwards(source, regions[start].region)

    def witness(self) -> Iterator[Data]:
        """The counterexample's event, where the verifier knows it."""
        witness = self.verdict.witness
        if not isinstance(witness, Witness) or not witness.event:
            return
        logs = {
            name: _enclosed(_widened(value)) for name, value in (("log_p", witness.log_p), ("log_q", witness.log_q))
        }
        for position in self.pipeline.noise_positions or [len(self.pipeline.stages)]:
            for at, pair in self._places(witness.pair, position):
                data = {"noise": position, "at": at, "pair": pair_data(pair), "event": witness.event, **logs}
                if _accepted(self.model, step := {"step": "witness", **data}):
                    yield step
                    return

    def repairs(self) -> Iterator[Data]:
        """Mechanisms that keep a guarantee."""
        for repair in self.verdict.repairs:
            if repair.mechanism is None or repair.guarantee is None:
                continue
            profile = analyse(repair.mechanism, self.verdict.neighbours)
            at = repair.guarantee.exact_epsilon, repair.guarantee.exact_delta
            text = {"pipeline": str(repair.mechanism)}
            yield from _first_upper(self.model, profile, repair.mechanism, *at, ("0",), "epsilon", text)


def _first_upper(
    model: Model,
    profile: PrivacyProfile,
    pipeline: Pipeline,
    epsilon: Number,
    delta: Number,
    weaker: tuple[str, ...],
    weaken: str,
    repaired: Data | None = None,
) -> Iterator[Data]:
    """The first theorem, with its evidence, that the verifier accepts for (ε, δ)-DP."""
    positions = pipeline.noise_positions or [len(pipeline.stages)]
    levels = LEVELS if len(weaker) == 1 else LEVELS[:1]
    evidence = [
        found for bound in profile.uppers for found in _upper_evidence(bound, epsilon, delta, profile.mu, levels)
    ]
    name = {"step": "upper"} if repaired is None else {"step": "repair", **repaired}
    for slack in weaker:
        more = 1 + iv.mpf(slack)
        at = (epsilon * more, delta) if weaken == "epsilon" else (epsilon, minimum(iv.mpf(1), delta * more))
        ends = {"epsilon": _enclosed(at[0]), "delta": _enclosed(at[1])}
        for position in positions:
            for found in evidence:
                step = {**name, **ends, **found, "noise": position}
                if _accepted(model, step):
                    yield step
                    return


def _upper_evidence(
    bound: ProfileBound, epsilon: Number, delta: Number, mu: Number, levels: tuple[int, ...]
) -> Iterator[Data]:
    """What the theorem of an upper bound needs."""
    if isinstance(bound, DropoutBound):
        yield from _upper_evidence(bound.bound, before_dropout(epsilon, mu), delta, mu, levels)
    elif isinstance(bound, RenyiBound):
        order = bound.best_order(epsilon) if delta.b > 0 else number(2)
        yield {"theorem": bound.theorem.value, "order": _point(iv.mpf(order.mid))}
    else:
        for grid in _grids(bound, epsilon, delta, levels):
            yield {"theorem": bound.theorem.value, **grid}


def _grids(
    bound: ProfileBound, epsilon: Number, delta: Number, levels: tuple[int, ...], below: bool = False
) -> Iterator[Data]:
    """No grid first, then grids that get finer, for sums of losses at δ > 0."""
    yield {}
    if not isinstance(bound, PairBound) or delta.b <= 0 or bound.theorem in (Theorem.UNBOUNDED, Theorem.NO_NOISE):
        return
    loss = max(bound.losses, key=lambda loss: loss.pure.a)
    if sum(count for _, count in loss.components) > 1 and loss.pure.b < INFINITY:
        for points in levels:
            yield {"grid": grid_for(loss, epsilon, points, below)}


def _accepted(model: Model, step: Data) -> bool:
    """Whether the verifier can show a step."""
    try:
        model.check(read_step(step))
    except (CertificateError, ArithmeticError, ValueError):
        return False
    return True


def _inwards(pair: Pair, region: Region) -> Pair:
    """A pair moved a little to the middle of its region, so that rounding leaves no doubt that it lies inside."""
    inner = region.region if isinstance(region, Repeated) else region
    if not isinstance(inner, Box | Rows) and not inner.surrounds_zero:
        return pair
    centre = ZERO
    if isinstance(inner, Box):
        centre = (inner.sides[0][0] + inner.sides[0][1]) / 2
    elif isinstance(inner, Rows) and inner.limits is not None:
        centre = (inner.limits[0] + inner.limits[1]) / 2
    blocks = []
    for block in pair.blocks:
        x, y = (centre + (value - centre) * _INWARD for value in (block.x, block.y))
        blocks.append(Block(x, x if block.same else y, block.count, block.positions))
    return Pair(tuple(blocks))


def _rows_with_bits(
    bits: RowBits, stages: Sequence[Stage], regions: Sequence[OutputRegion]
) -> Iterator[tuple[int, Pair]]:
    """Rows of which one person's number is written as the one or the other string, before they are written in bits."""
    at, stage = next((i, stage) for i, stage in enumerate(stages) if isinstance(stage, Binary))
    rows = regions[at].region
    low, high = (rows.limits if isinstance(rows, Rows) else None) or (ZERO, ONE)
    rest = (low + high) / 2
    for part in (ZERO, ONE / 2):  # the number as it is written, or one that is cut off to it
        first, second = (
            (-1) ** int(string[0]) * (int("0" + string[1:], 2) + part) / iv.mpf(2) ** stage.fraction
            for string in (bits.first, bits.second)
        )
        for before in range(min(2, rows.dim)):
            counts = ((rest, rest, before), (first, second, 1), (rest, rest, rows.dim - 1 - before))
            yield at, Pair(tuple(Block(x, y, count) for x, y, count in counts if count))


def pair_data(pair: Pair) -> list[Data]:
    """A pair of vectors in blocks."""
    return [{"x": _enclosed(b.x), "y": _enclosed(b.y), "count": b.count, "positions": b.positions} for b in pair.blocks]


def _widened(value: Number) -> Number:
    return value if abs(value).b == INFINITY else value * iv.mpf([1 - iv.mpf("1e-28").b, 1 + iv.mpf("1e-28").b])
