"""Verdicts as data: pure JSON, valid against the schema, all keys of DESIGN, infinities as "inf"."""

import json
import math
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from dpassay.api import check
from dpassay.claims.registry import REGISTRY
from dpassay.core.guarantee import ApproxDP
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.evidence.sampled import Example, SampledWitness
from dpassay.evidence.schema import VerdictRecord, record
from dpassay.evidence.verdict import Advice, Bounds, ExactEvidence, JudgedClaim, Refuted, SampledEvidence
from dpassay.exact.repair import Repair
from published import published_verdict

SCHEMA = VerdictRecord.model_json_schema(mode="serialization", by_alias=True)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PUBLISHED = Path(__file__).parents[3] / "docs" / "verdict.schema.json"
CASES = [
    ("clip(l1, 1) | laplace(2)", {"epsilon": 1, "dim": 4}),
    ("clip(l2, 1) | laplace(2)", {"epsilon": 1, "dim": 4}),
    ("clip(l2, 1) | laplace(2) | times(4)", {"epsilon": "6.5", "delta": "1e-3", "dim": 4}),
    ("query(l2, 1) | gaussian(0.3)", {"epsilon": 1, "delta": "1e-6"}),
    ("encode | laplace(1)", {"epsilon": 1, "dim": 4}),
    ("encode", {"epsilon": 1, "dim": 4}),
    ("category(3) | flip(1)", {"epsilon": 1}),
    ("binary(1, 1) | bits(0.9, 0.2, 0.1)", {"epsilon": 1, "dim": 3}),
]


def strict(text: str) -> object:
    """JSON proper: no NaN, no Infinity."""

    def refuse(constant: str) -> object:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(("text", "claim"), CASES)
def test_valid(text: str, claim: dict[str, object]) -> None:
    data = check(text, **claim).to_dict()
    again = strict(json.dumps(data))
    assert again == data
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(again, SCHEMA)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_published_claim_is_valid(name: str) -> None:
    VALIDATOR.validate(strict(json.dumps(published_verdict(name).to_dict())))


def test_the_published_schema_is_this_one() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == SCHEMA
    for text, claim in CASES:
        VALIDATOR.validate(check(text, **claim).to_dict())


def test_all_keys_of_the_design() -> None:
    data = check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1).to_dict()
    assert data["schema"] == "dpassay/verdict/1"
    assert data["verdict"] == "refuted"
    assert {"name", "source", "parameters", "neighbours"} <= set(data["claim"])
    assert {"claimed", "lower", "upper", "delta"} <= set(data["epsilon"])
    keys = {"lower_evidence", "upper_evidence", "witness", "reason", "alpha", "runs", "seed"}
    assert keys <= set(data)
    assert data["epsilon"]["claimed"] == 1
    assert data["epsilon"]["lower"] <= math.sqrt(32) <= data["epsilon"]["upper"]
    assert data["claim"]["parameters"] == {"C": "1", "dim": "32"}
    assert data["claim"]["neighbours"] == "any"
    assert (data["alpha"], data["runs"], data["seed"]) == (None, 0, None)
    (block,) = data["witness"]["blocks"]
    assert (block["count"], block["positions"]) == (32, "all")
    assert block["x"] == -block["y"] == pytest.approx(1 / math.sqrt(32), rel=1e-15)
    low, high = data["witness"]["log_p"]
    assert low <= -32 * math.log(2) <= high


def test_infinities() -> None:
    data = check("encode | laplace(1)", epsilon=1, dim=2).to_dict()
    assert data["epsilon"]["lower"] == data["epsilon"]["upper"] == "inf"
    assert {row["epsilon"] for row in data["holds"]} == {"inf"}
    silent = check("encode", epsilon=1, dim=2).to_dict()
    assert silent["witness"]["log_q"] == ["-inf", "-inf"]
    gaussian = check("clip(l2, 1) | gaussian(1)", epsilon=1, dim=2).to_dict()
    assert gaussian["holds"][0] == {"delta": 0.0, "epsilon": "inf"}


def test_what_is_not_in_the_schema_is_refused() -> None:
    data = check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4).to_dict()
    for change in ({"verdict": "maybe"}, {"extra": 1}, {"reason": None}, {"schema": "dpassay/verdict/2"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**data, **change}, SCHEMA)
        with pytest.raises(ValidationError):
            VerdictRecord.model_validate({**data, **change})


def test_can_be_read_back() -> None:
    for text, claim in CASES:
        verdict = check(text, **claim)
        read = VerdictRecord.model_validate_json(record(verdict).model_dump_json())
        assert read == record(verdict)
        assert read.verdict == verdict.word


def test_the_json_of_a_verdict_from_every_part_is_as_written_here() -> None:
    """Each field from a literal, so that a change of the parts inside cannot change the file."""
    claim = JudgedClaim("n", "s", None, "t", Neighbours("word"), ApproxDP(1, "0.25"), {"C": "2"}, "open")
    bounds = Bounds(Interval(1.5, math.inf, "below", "above"), Interval(0.5, 1.0), 0.125)
    table, some = ((2, 1, 4), (0, 1, 6)), (Example(0, "'x'", None), Example(1, "'y'", 1))
    played = SampledWitness(("a", "b"), "an event", 3, 1, 10, 0.01, 7, 0, table, ("'y' (for the second)",), some)
    sampled = SampledEvidence(played, (Theorem.GUESSING_GAME,), 0.01, 10, 7, (("the guessing game", 0.01),), True)
    advice = Advice(((0.0, Interval(0.0, 2.0)),), (Repair("Do it."),), ("Mind it.",))
    exact = ExactEvidence(theorems=(Theorem.LAPLACE, Theorem.GUESSING_GAME))
    assert json.dumps(Refuted(claim, bounds, "Because.", exact, sampled, advice).to_dict()) == (
        '{"schema": "dpassay/verdict/1", "verdict": "refuted", "claim": {"name": "n", "source": "s", "pipeline": "t", '
        '"mechanism": "n", "dim": null, "parameters": {"C": "2"}, "neighbours": "word"}, '
        '"guarantee": {"text": "(1, 0.25)-DP", "kind": "approximate", "metric": null, "order": null}, '
        '"epsilon": {"claimed": 1.0, "lower": 1.5, "upper": "inf", "delta": 0.25}, "rho": null, "mu": null, '
        '"delta": {"claimed": 0.25, "lower": 0.5, "upper": 1.0}, "least_delta": 0.125, "lower_evidence": "below", '
        '"upper_evidence": "above", "witness": {"inputs": ["a", "b"], "event": "an event", "right": 3, "wrong": 1, '
        '"runs": 10, "alpha": 0.01, "seed": 7, "number": 0, '
        '"table": [{"first": 2, "second": 1, "neither": 1, "runs": 4}, '
        '{"first": 0, "second": 1, "neither": 5, "runs": 6}], '
        '"rates": [{"named": 0, "own": 0.5, "other": 0.0, "ratio": "inf"}, '
        f'{{"named": 1, "own": {1 / 6}, "other": 0.25, "ratio": {1 / 6 / 0.25}}}], '
        '"features": ["\'y\' (for the second)"], '
        '"examples": [{"input": 0, "output": "\'x\'", "named": null}, '
        '{"input": 1, "output": "\'y\'", "named": 1}]}, "reason": "Because.", '
        '"holds": [{"delta": 0.0, "epsilon": 2.0}], "repairs": [{"advice": "Do it.", "mechanism": null, '
        '"epsilon": null, "delta": null, "noise_deviation": null}], "warnings": ["Mind it."], '
        '"theorems": ["laplace", "guessing-game"], "alpha": 0.01, "runs": 10, "seed": 7, '
        '"ledger": {"the guessing game": 0.01}, "interrupted": true, "replays": true}'
    )
