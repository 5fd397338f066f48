"""The verdict as data, with a JSON Schema (docs/verdict.schema.json). Infinities are the string "inf"."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

from dpassay.core.guarantee import Guarantee, MetricDP, RenyiDP
from dpassay.core.json import plain
from dpassay.core.numbers import Number, down, middle, up
from dpassay.evidence.sampled import SampledWitness
from dpassay.evidence.word_witness import WordWitness
from dpassay.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict


def _write(value: float) -> float | str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


Real = Annotated[
    float,
    PlainSerializer(_write, return_type=float | str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}),
]


class _CertificateModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class ClaimRecord(_CertificateModel):
    """Who claimed what about which mechanism."""

    name: str
    source: str
    pipeline: str
    mechanism: str
    dim: int | None
    parameters: dict[str, str]
    neighbours: str


class GuaranteeRecord(_CertificateModel):
    """Which guarantee is claimed; `text` states it in full."""

    text: str
    kind: Literal["pure", "approximate", "metric", "renyi", "zcdp", "gdp"]
    metric: str | None = None
    order: Real | None = None


class EpsilonRecord(_CertificateModel):
    """ε at one δ: claimed, and the bounds on the truth."""

    claimed: Real
    lower: Real
    upper: Real
    delta: Real


class ParameterRecord(_CertificateModel):
    """δ at the claimed ε, or ρ, or μ: claimed, and the bounds on the truth."""

    claimed: Real
    lower: Real
    upper: Real


class BlockRecord(_CertificateModel):
    """`count` coordinates with these two values."""

    x: Real
    y: Real
    count: int
    positions: Literal["all", "even", "odd"]


class WitnessRecord(_CertificateModel):
    """Two values just before the noise, in blocks of equal coordinates, and an event on the output.

    If records are sampled, `data_sets` says which two data sets have these values.
    """

    blocks: list[BlockRecord]
    data_sets: list[str] = Field(default=[], description="the two data sets in words, if records are sampled")
    event: str
    log_p: list[Real] = Field(description="bounds on the event's log-probability for the first value")
    log_q: list[Real] = Field(description="bounds on the event's log-probability for the second value")


class WordWitnessRecord(_CertificateModel):
    """Two words and an output word, empty if a word is dropped; the distance is null if a word has no vector."""

    words: list[str]
    output: str
    distance: Real | None
    log_p: list[Real] = Field(description="bounds on the output's log-probability for the first word")
    log_q: list[Real] = Field(description="bounds on the output's log-probability for the second word")


class ExampleRecord(_CertificateModel):
    """An output of one of two inputs, shortened, and which input the rule named for it: 0, 1, or null for neither."""

    input: int
    output: str
    named: int | None


class NamedRecord(_CertificateModel):
    """In the runs of one input: how often the first and the second input were named, or neither."""

    first: int
    second: int
    neither: int
    runs: int


class RateRecord(_CertificateModel):
    """How often an input (0 or 1) was named in its own runs and in those of the other, and the ratio of both."""

    named: int
    own: Real
    other: Real
    ratio: Real


class PlayedRecord(_CertificateModel):
    """Inputs that were told apart by their outputs, and how often that succeeded: the guessing game."""

    inputs: list[Any]
    event: str
    right: int
    wrong: int
    runs: int
    alpha: Real
    seed: int
    number: int = Field(description="which of the random streams of this seed")
    table: list[NamedRecord] = Field(default=[], description="the counts of each of two inputs, where they are known")
    rates: list[RateRecord] = Field(default=[], description="how often each input was named, the most telling first")
    features: list[str] = Field(default=[], description="what weighs most in the rule, in words")
    examples: list[ExampleRecord] = Field(default=[], description="a few outputs of each of two inputs")


class HoldsRecord(_CertificateModel):
    """A guarantee that does hold."""

    delta: Real
    epsilon: Real


class RepairRecord(_CertificateModel):
    """A mechanism for which a guarantee holds."""

    advice: str
    mechanism: str | None
    epsilon: Real | None
    delta: Real | None
    noise_deviation: Real | None


class VerdictRecord(_CertificateModel):
    """A verdict with its evidence."""

    schema_: Literal["dpassay/verdict/1"] = Field(alias="schema", default="dpassay/verdict/1")
    verdict: Literal["proven", "refuted", "open"]
    claim: ClaimRecord
    guarantee: GuaranteeRecord
    epsilon: EpsilonRecord | None = Field(description="null where the guarantee is stated by rho or mu")
    rho: ParameterRecord | None = None
    mu: ParameterRecord | None = None
    delta: ParameterRecord | None
    least_delta: Real = Field(description="the delta that no finite epsilon goes below")
    lower_evidence: str
    upper_evidence: str
    witness: WitnessRecord | WordWitnessRecord | PlayedRecord | None
    reason: str
    holds: list[HoldsRecord]
    repairs: list[RepairRecord]
    warnings: list[str]
    theorems: list[str]
    alpha: Real | None
    runs: int
    seed: int | None
    ledger: dict[str, Real] = Field(description="where alpha was spent")
    interrupted: bool = Field(description="whether an audit was stopped before its end")
    replays: bool = Field(
        default=True, description="whether the seed gives the same outputs again; not if the mechanism has its own"
    )


def record(verdict: Verdict) -> VerdictRecord:
    """Turn a verdict into data."""
    guarantee = verdict.guarantee
    interval, delta = verdict.value, verdict.delta
    ends: dict[str, Any] = {"claimed": guarantee.claimed, "lower": interval.lower, "upper": interval.upper}
    stated = guarantee.parameter
    return VerdictRecord(
        verdict=verdict.word,
        claim=ClaimRecord(
            name=verdict.name,
            source=verdict.source,
            pipeline=verdict.text,
            mechanism=verdict.subject,
            dim=verdict.mechanism.dim if isinstance(verdict.mechanism, Pipeline) else None,
            parameters={key: _parameter(value) for key, value in verdict.parameters.items()},
            neighbours=verdict.neighbours.kind,
        ),
        guarantee=_guarantee(guarantee),
        epsilon=EpsilonRecord(**ends, delta=guarantee.delta) if stated == "epsilon" else None,
        rho=ParameterRecord(**ends) if stated == "rho" else None,
        mu=ParameterRecord(**ends) if stated == "mu" else None,
        delta=None if delta is None else ParameterRecord(claimed=guarantee.delta, lower=delta.lower, upper=delta.upper),
        least_delta=verdict.least_delta,
        lower_evidence=interval.lower_from,
        upper_evidence=interval.upper_from,
        witness=_witness(verdict),
        reason=verdict.reason,
        holds=[HoldsRecord(delta=d, epsilon=held.upper) for d, held in verdict.holds],
        repairs=_repairs(verdict),
        warnings=list(verdict.warnings),
        theorems=[theorem.value for theorem in verdict.theorems],
        alpha=verdict.alpha,
        runs=verdict.runs,
        seed=verdict.seed,
        ledger=dict(verdict.alpha_budget),
        interrupted=verdict.interrupted,
        replays=verdict.replays,
    )


def _guarantee(guarantee: Guarantee) -> GuaranteeRecord:
    order = guarantee.order if isinstance(guarantee, RenyiDP) else None
    metric = guarantee.metric if isinstance(guarantee, MetricDP) else None
    return GuaranteeRecord(text=str(guarantee), kind=guarantee.kind, metric=metric, order=order)


def _witness(verdict: Verdict) -> WitnessRecord | WordWitnessRecord | PlayedRecord | None:
    if verdict.witness is None:
        return None
    if isinstance(verdict.witness, WordWitness):
        seen = verdict.witness
        log_p, log_q = ([log.lower, log.upper] for log in (seen.log_p, seen.log_q))
        return WordWitnessRecord(
            words=[seen.x, seen.y], output=seen.output, distance=seen.distance, log_p=log_p, log_q=log_q
        )
    if isinstance(verdict.witness, SampledWitness):
        return _played(verdict.witness)
    blocks = [
        BlockRecord(x=middle(b.x), y=middle(b.y), count=b.count, positions=b.positions)
        for b in verdict.witness.pair.blocks
    ]
    logs = (verdict.witness.log_p, verdict.witness.log_q)
    log_p, log_q = ([_double(v, down), _double(v, up)] for v in logs)
    sets = verdict.witness.data_sets
    named = [] if sets is None else [sets.first, sets.second]
    return WitnessRecord(blocks=blocks, data_sets=named, event=verdict.witness.event, log_p=log_p, log_q=log_q)


def _played(witness: SampledWitness) -> PlayedRecord:
    same = ("event", "right", "wrong", "runs", "alpha", "seed", "number")
    return PlayedRecord(
        inputs=[plain(x) for x in witness.inputs],
        **{name: getattr(witness, name) for name in same},
        table=[
            NamedRecord(first=first, second=second, neither=runs - first - second, runs=runs)
            for first, second, runs in witness.table
        ],
        rates=[RateRecord(named=r.named, own=r.own, other=r.other, ratio=r.ratio) for r in witness.rates],
        features=list(witness.features),
        examples=[ExampleRecord(**asdict(example)) for example in witness.examples],
    )


def _double(value: Number, side: Any) -> float:
    return float(side(value))


def _repairs(verdict: Verdict) -> list[RepairRecord]:
    return [
        RepairRecord(
            advice=repair.advice,
            mechanism=None if repair.mechanism is None else str(repair.mechanism),
            epsilon=None if repair.guarantee is None else repair.guarantee.claimed,
            delta=None if repair.guarantee is None else repair.guarantee.delta,
            noise_deviation=repair.deviation,
        )
        for repair in verdict.repairs
    ]


def _parameter(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else f"{middle(value):.17g}"
