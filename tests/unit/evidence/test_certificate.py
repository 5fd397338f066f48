"""Certificates as they are written: stable, chained, whole or not at all."""

import hashlib
import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from dpassay.api import check
from dpassay.claims.registry import REGISTRY
from dpassay.errors import InputError
from dpassay.evidence.certificate import SCHEMA, certify, save
from dpassay.evidence.verdict import Verdict
from dpassay.evidence.verifier import examine
from dpassay.evidence.verifier.arithmetic.numbers import forget
from published import published_verdict

CASES = {
    "refuted": ("clip(l2, C) | laplace(2*C/eps)", {"epsilon": 1, "dim": 32, "C": 1}),
    "proven": ("clip(l1, C) | laplace(2*C/eps)", {"epsilon": "0.1", "dim": 32, "C": 1}),
    "open": ("clip(l2, 1) | laplace(2) | times(4)", {"epsilon": "6.5", "delta": "1e-3", "dim": 4}),
    "gaussian": ("query(l2, 1) | gaussian(0.3)", {"epsilon": 10, "delta": "1e-5"}),
    "infinite": ("encode | laplace(1)", {"epsilon": 1, "dim": 3}),
    "silent": ("encode | minmax", {"epsilon": 1, "dim": 3}),
    "bits": ("binary(1, 1) | bits(0.9, 0.3, 0.2)", {"epsilon": 1, "dim": 3}),
    "dropout": ("dropout(0.5) | encode | minmax | laplace(20)", {"epsilon": 1, "dim": 768}),
    "choice": ("squash(tanh) | exponential(3)", {"epsilon": 1, "dim": 3}),
    "category": ("category(4) | flip(0.9)", {"epsilon": 1}),
    "rows": ("rows | clamp(0, 1) | laplace(1)", {"epsilon": "0.5", "dim": 9}),
    "lost": ("encode | clamp(0, 1) | onesided(dim/eps, 0, 1/2)", {"epsilon": 1, "dim": 9}),
    "leak": ("rows | leak(delta)", {"epsilon": 1, "delta": "1e-6", "dim": 9}),
    "repeated": ("encode | minmax | repeat(3) | laplace(1/eps)", {"epsilon": "0.5", "dim": 9}),
    "hashed": ("hash(4) | flip(0.9)", {"epsilon": 1}),
    "bloom": ("bloom(32, 2) | flip(0.75)", {"epsilon": 1}),
}


@cache
def verdict(name: str) -> Verdict:
    text, claim = CASES[name]
    return check(text, **claim)


@cache
def certified(name: str) -> str:
    return json.dumps(certify(verdict(name)))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", CASES)
def test_is_the_same_every_time(name: str) -> None:
    text, claim = CASES[name]
    assert json.dumps(certify(check(text, **claim))) == certified(name)
    json.loads(certified(name), parse_constant=pytest.fail)


@pytest.mark.parametrize("name", CASES)
def test_the_chain(name: str) -> None:
    written = json.loads(certified(name))
    assert written["schema"] == SCHEMA == "dpassay/certificate/2"
    last = hashlib.sha256(b"dpassay/certificate/2").hexdigest()
    for step in written["steps"]:
        said = step.pop("digest")
        text = json.dumps(step, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        last = hashlib.sha256((last + "\n" + text).encode("utf-8")).hexdigest()
        assert said == last
    assert written["steps"][0]["step"] == "claim"
    assert written["steps"][-1] == {"step": "decision", "verdict": written["verdict"]}


def numbers(value: object, name: str = "") -> list[tuple[str, str, str]]:
    """All pairs of decimals in the steps, with the names of their fields."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers(item, key)]
    if isinstance(value, list):
        if len(value) == 2 and all(isinstance(v, str) and set(v) <= set("-+.e0123456789") for v in value):
            return [(value[0], value[1], name)]
        return [found for item in value for found in numbers(item, name)]
    return []


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_enclosed(name: str) -> None:
    pairs = numbers(json.loads(certified(name))["steps"])
    assert pairs
    for low, high, field in pairs:
        assert Fraction(low) <= Fraction(high)
        # Logarithms of probabilities are a little wider, so that other arithmetic lies within.
        narrow = Fraction(1, 10**27 if field.startswith("log") else 10**40)
        assert Fraction(high) - Fraction(low) <= abs(Fraction(high)) * narrow


def test_decimals_enclose_what_was_claimed() -> None:
    claim = certify(check("query(l1, 1) | laplace(1/eps)", epsilon="0.1"))["steps"][0]
    low, high = map(Fraction, claim["epsilon"])
    assert low <= Fraction("0.1") <= high
    assert claim["pipeline"] == "query(l1, 1) | laplace(1/eps)"
    steps = certify(verdict("refuted"))["steps"]
    largest = max(Fraction(step["epsilon"][1]) for step in steps if step["step"] == "lower")
    assert largest**2 <= 32 <= (largest * (1 + Fraction(1, 10**12))) ** 2
    (block,) = next(step for step in steps if step["step"] == "witness")["pair"]
    assert block["count"] == 32
    assert 1 - Fraction(1, 10**30) <= Fraction(block["x"][0]) ** 2 * 32 <= Fraction(block["x"][1]) ** 2 * 32 <= 1


# ── Files ───────────────────────────────────────────────────────────────────────────────────────


def test_saved_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    save(verdict("refuted"), path)
    assert json.loads(path.read_text(encoding="utf-8")) == certify(verdict("refuted"))
    assert [p.name for p in tmp_path.iterdir()] == ["claim.json"]
    before = path.read_bytes()
    save(verdict("refuted"), str(path))
    assert path.read_bytes() == before


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "claim.json"
    path.write_text("old", encoding="utf-8")

    def full(self: Path, target: Path) -> Path:
        assert self.stat().st_size > 100  # written beside its place, and not yet moved there
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(InputError, match="No space"):
            save(verdict("proven"), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["claim.json"]


def test_a_failed_replacement_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "claim.json"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot write"):
        save(verdict("proven"), folder)
    assert [p.name for p in tmp_path.iterdir()] == ["claim.json"]


def test_text_that_is_not_ascii(tmp_path: Path) -> None:
    claim = REGISTRY["adept"]
    named = type(claim)('ε-Ädept \u2028 "quoted"', claim.pipeline, 1, dim=2, parameters={"C": 1}, source="Łódź 你好")
    save(check(named), tmp_path / "x.json")
    steps = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["steps"]
    assert steps[0]["name"] == named.name
    assert steps[0]["source"] == "Łódź 你好"


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", REGISTRY)
def test_every_published_claim_can_be_certified(name: str) -> None:
    verdict = published_verdict(name)
    written = certify(verdict)
    assert written["verdict"] == REGISTRY[name].expected
    assert len(written["steps"]) >= 3


@pytest.mark.parametrize("pipeline", ["onehot(1) | gaussian(1)", "minmax | gaussian(1)", "onehot(1) | laplace(1)"])
@pytest.mark.parametrize("delta", ["0", "0.1"])
def test_inputs_that_never_differ(pipeline: str, delta: str) -> None:
    """There is no loss to put on a grid."""
    certificate = certify(check(pipeline, dim=1, epsilon=1, delta=delta))
    assert certificate["verdict"] == "proven"
    assert examine(certificate).ok


def test_a_certificate_holds_for_somebody_who_has_checked_nothing_before() -> None:
    """Its steps, each of which holds alone, were more work together than the verifier does."""
    written = certify(check("dp-bart"))
    forget()
    assert examine(written).ok


@pytest.mark.parametrize("name", CASES)
def test_every_bound_names_its_theorem_and_carries_its_evidence(name: str) -> None:
    steps = certify(verdict(name))["steps"]
    names = " ".join(step["step"] for step in steps)
    assert re.fullmatch(r"claim( witness)?( upper| lower)*( repair)* decision", names)
    for step in steps:
        if step["step"] in ("upper", "lower", "repair"):
            assert step["theorem"]
            assert 0 <= step["noise"] <= 10
        if step["step"] == "lower":
            assert set(step) >= {"quantity", "at", "pair"}
            assert step["at"] <= step["noise"]


def test_a_grid_an_order_and_a_tilt_are_written_where_they_are_needed() -> None:
    steps = certify(check("clip(l2, 1) | laplace(2)", epsilon=1, delta="0.1", dim=2))["steps"]
    tilted = [step for step in steps if step.get("theorem") in ("saddlepoint", "levels")]
    assert any(Fraction(step["tilt"][0]) > 0 for step in tilted)
    assert any(step.get("theorem") == "renyi" and Fraction(step["order"][0]) > 1 for step in steps)
    grids = [step["grid"] for step in steps if step["step"] == "lower" and "grid" in step]
    assert grids
    for grid in grids:
        assert Fraction(grid["step"][0]) > 0
        assert Fraction(grid["tilt"][0]) >= 0
