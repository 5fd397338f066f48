"""Certificates as they are written: stable, chained, whole or not at all."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import pytest

from dpassay.api import check
from dpassay.claims.registry import REGISTRY
from dpassay.errors import InputError
from dpassay.evidence.certificate import SCHEMA, certify, save
from dpassay.evidence.verdict import Verdict

CASES = {
    "refuted": ("clip(l2, C) | laplace(2*C/eps)", {"epsilon": 1, "dim": 32, "C": 1}),
    "proven": ("clip(l1, C) | laplace(2*C/eps)", {"epsilon": "0.1", "dim": 32, "C": 1}),
    "open": ("clip(l2, 1) | laplace(2)", {"epsilon": "4.5", "delta": "1e-6", "dim": 32}),
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


def verdict(name: str) -> Verdict:
    text, claim = CASES[name]
    return check(text, **claim)


@pytest.mark.parametrize("name", CASES)
def test_is_the_same_every_time(name: str) -> None:
    once, twice = (json.dumps(certify(verdict(name))) for _ in range(2))
    assert once == twice
    json.loads(once, parse_constant=pytest.fail)


@pytest.mark.parametrize("name", CASES)
def test_the_chain(name: str) -> None:
    written = json.loads(json.dumps(certify(verdict(name))))
    assert written["schema"] == SCHEMA == "dpassay/certificate/1"
    last = hashlib.sha256(b"dpassay/certificate/1").hexdigest()
    for step in written["steps"]:
        said = step.pop("digest")
        text = json.dumps(step, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        last = hashlib.sha256((last + "\n" + text).encode("utf-8")).hexdigest()
        assert said == last
    assert written["steps"][0]["step"] == "claim"
    assert written["steps"][-1] == {"step": "decision", "verdict": written["verdict"]}


def numbers(value: object) -> list[tuple[str, str]]:
    """All pairs of decimals in the steps."""
    if isinstance(value, dict):
        return [pair for item in value.values() for pair in numbers(item)]
    if isinstance(value, list):
        if (
            len(value) == 2
            and all(isinstance(v, str) for v in value)
            and all(set(v) <= set("-+.e0123456789") for v in value)
        ):
            return [(value[0], value[1])]
        return [pair for item in value for pair in numbers(item)]
    return []


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_enclosed(name: str) -> None:
    pairs = numbers(certify(verdict(name))["steps"])
    assert pairs
    for low, high in pairs:
        assert Fraction(low) <= Fraction(high)
        assert Fraction(high) - Fraction(low) <= abs(Fraction(high)) * Fraction(1, 10**40)


def test_decimals_enclose_what_was_claimed() -> None:
    claim = certify(check("query(l1, 1) | laplace(1/eps)", epsilon="0.1"))["steps"][0]
    low, high = map(Fraction, claim["epsilon"])
    assert low <= Fraction("0.1") <= high
    assert claim["pipeline"] == "query(l1, 1) | laplace(1/eps)"
    refuted = certify(verdict("refuted"))
    bounds = next(s for s in refuted["steps"] if s["step"] == "bounds")
    assert Fraction(bounds["lower"]) ** 2 <= 32 <= Fraction(bounds["upper"]) ** 2
    blocks = next(s for s in refuted["steps"] if s["step"] == "witness")["blocks"]
    assert Fraction(blocks[0]["x"][0]) ** 2 * 32 <= 1 <= Fraction(blocks[0]["x"][1]) ** 2 * 32
    assert blocks[0]["count"] == 32


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

    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
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


@pytest.mark.parametrize("name", REGISTRY)
def test_every_published_claim_can_be_certified(name: str) -> None:
    written = certify(check(REGISTRY[name]))
    assert written["verdict"] == REGISTRY[name].expected
    assert len(written["steps"]) >= 4


def test_stages_and_regions_are_written_with_their_numbers() -> None:
    def stage(name: str, index: int) -> dict[str, object]:
        return certify(verdict(name))["steps"][1 + index]

    assert stage("rows", 0)["region"] == {"kind": "rows", "dim": 9}
    clamped = stage("rows", 1)
    assert (clamped["low"], clamped["high"]) == (["0.0", "0.0"], ["1.0", "1.0"])
    assert clamped["region"] == {"kind": "rows", "dim": 9, "low": ["0.0", "0.0"], "high": ["1.0", "1.0"]}
    lost = stage("lost", 2)
    assert (lost["stage"], lost["atom"], lost["lost"]) == ("mixture", ["0.0", "0.0"], ["0.5", "0.5"])
    assert "lost" not in certify(check("clip(l1, 1) | onesided(1, 1/2)", epsilon=1, dim=1))["steps"][2]
    repeated = stage("repeated", 2)
    assert repeated["times"] == 3
    assert repeated["region"] == {"kind": "repeated", "region": {"kind": "minmax", "dim": 9}, "times": 3}
    assert (stage("hashed", 0)["size"], stage("hashed", 0)["region"]) == (4, {"kind": "categories", "size": 4})
    assert (stage("bloom", 0)["size"], stage("bloom", 0)["hashes"]) == (32, 2)
    assert stage("bloom", 0)["region"] == {"kind": "sparse", "dim": 32, "ones": 2}
