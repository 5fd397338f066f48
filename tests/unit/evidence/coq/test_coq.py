"""Certificates for Coq: what they state, what is refused, and that Coq refuses forged ones."""

import importlib.util
import math
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dpassay import certify, check
from dpassay.claims.registry import REGISTRY, SYSTEMS
from dpassay.errors import InputError
from dpassay.evidence.coq import Unsupported, coq_file
from dpassay.evidence.coq.terms import read_stages
from dpassay.report.claims.coq import modules

ROOT = Path(__file__).parents[4]
PROOFS = ROOT / "proofs"

needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or not (PROOFS / "Certificate.vo").exists(),
    reason="needs Coq, and the theorems that make proofs compiles",
)


def certificate(text: str, **given: Any) -> dict[str, Any]:
    return certify(check(text, **given))


def verdict_line(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("Theorem verdict"))


def adept(epsilon: float = 1, dim: int = 32) -> str:
    return coq_file(certificate("clip(l2, C) | laplace(2*C/eps)", epsilon=epsilon, dim=dim, C=1))


# ── Formulas ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("formula", "term"),
    [
        ("2*C/eps", "40"),
        ("0.1 + 0.2", "(3 / 10)"),
        ("-C", "(- 1)"),
        ("sqrt(dim)", "(sqrt 32)"),
        ("sqrt(2*dim)", "8"),
        ("2*C*sqrt(dim)/eps", "((2 * (sqrt 32)) / (1 / 20))"),
        ("exp(eps)/(1 + exp(eps))", "((exp (1 / 20)) / (1 + (exp (1 / 20))))"),
        ("ln(pi)^3", "((ln PI) ^ 3)"),
        ("exp(1)^(-2)", "(/ (exp 1) ^ 2)"),
        ("exp(-eps)", "(/ (exp (1 / 20)))"),
    ],
)
def test_a_formula_is_a_term_with_its_rational_parts_computed(formula: str, term: str) -> None:
    values = {"C": Fraction(1), "eps": Fraction(1, 20), "dim": Fraction(32)}
    (stage,) = read_stages(f"laplace({formula})", values)
    assert stage.numbers[0].text == term


@pytest.mark.parametrize(
    "formula", ["1/0", "1/(C - C)", "exp(1)^0.5", "exp(1e9)", "1e3500", "ln(0)", "least_sigma(1, 1)", "unknown + 1"]
)
def test_what_is_no_number_for_coq_is_refused(formula: str) -> None:
    with pytest.raises(Unsupported):
        read_stages(f"laplace({formula})", {"C": Fraction(1)})


# ── Statements ──────────────────────────────────────────────────────────────────────────────────

CUBE = "~ laplace_private (I := index 4) 1 1 (both (in_cube (- 3) 3))"
MONOTONE = "dp 1 0 (monotone_near 1) (exponential some 1)"
STATED = [
    ("clip(l1, 3) | laplace(6)", {"epsilon": 1, "dim": 4}, "laplace_private (I := index 4) 6 1 (both (in_l1 3))"),
    ("clip(linf, 3) | laplace(1)", {"epsilon": 1, "dim": 4}, CUBE),
    ("query(l1, 2) | laplace(2)", {"epsilon": 1}, "laplace_private (I := index 1) 2 1 (l1_near 2)"),
    ("category(3) | flip(0.9)", {"epsilon": 1}, "~ dp 1 0 any_two (response two p01)"),
    ("category(3) | flip(0.9)", {"epsilon": 1, "delta": 0.8}, "dp 1 (4 / 5) any_two (response two p01)"),
    ("query(l2, 2) | gaussian(1/2)", {"epsilon": 1, "delta": "0.1"}, "~ gaussian_private (1 / 2) 1 (1 / 10) 2"),
    ("query(l2, 1) | gaussian(3)", {"epsilon": 1, "delta": "0.1"}, "gaussian_private 3 1 (1 / 10) 1"),
    ("query(linf, 1, monotone) | exponential(1)", {"epsilon": 1, "dim": 5}, MONOTONE),
]


@pytest.mark.parametrize(("text", "given", "says"), STATED)
def test_the_statement_has_the_claims_own_numbers(text: str, given: dict[str, Any], says: str) -> None:
    assert verdict_line(coq_file(certificate(text, **given))) == f"Theorem verdict : {says}."


def test_an_epsilon_between_two_numbers_is_stated_at_the_larger_one() -> None:
    data = certify(check("dpnr-dropout-fixed"))
    low, high = (Fraction(end) for end in data["steps"][0]["epsilon"])
    stated = re.search(r"dropped_private \(I := index 768\) 20 \(1 / 2\) \((\d+) / (\d+)\)", coq_file(data))
    assert low < high
    assert stated is not None
    assert Fraction(int(stated[1]), int(stated[2])) == high


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("query(l2, 1) | gaussian(3)", {"epsilon": 1, "delta": 1e-3, "dim": 2}),
        ("clip(l2, 1) | radial(l2, 2)", {"epsilon": 1, "dim": 3}),
        ("clip(l2, 1) | laplace(2)", {"epsilon": 3, "dim": 3, "neighbours": "add-remove-record"}),
        ("query(l2, 1) | laplace(1)", {"epsilon": 3, "dim": 3}),
        ("counts(l1, 1) | laplace(1)", {"epsilon": 3, "neighbours": "group(3)"}),  # whose counts differ by 3
        ("query(l2, 1) | gaussian(3) | round", {"epsilon": 1, "delta": 0.1}),
        ("query(l2, 500) | gaussian(1)", {"epsilon": 125_500, "delta": 0.3}),  # true, and too far apart for integrals
        ("clamp(0, 1) | exponential(1)", {"epsilon": 1, "dim": 1}),
        ("onehot(3) | bits(0.9, 0.8, 0.2)", {"epsilon": 9}),
        ("onehot(3) | bits(1, 1, 0.2)", {"epsilon": 9}),
        ("query(l1, 1) | laplace(10) | times(10)", {"epsilon": 1}),
    ],
)
def test_a_claim_that_no_theorem_decides_is_refused(text: str, given: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        coq_file(certificate(text, **given))


def test_an_encoder_behind_a_clip_is_not_left_out() -> None:
    data = certificate("clip(l1, 1) | laplace(2)", epsilon=1, dim=3)
    data["steps"][0]["pipeline"] = "clip(l1, 1) | encode | laplace(2)"  # the clip bounds nothing here
    with pytest.raises(Unsupported):
        coq_file(data)


def test_a_name_cannot_end_the_comment() -> None:
    data = certificate("clip(l1, 1) | laplace(2)", epsilon=1, dim=3)
    data["steps"][0]["source"] = 'x *) Axiom false : False. (* "\n'
    text = coq_file(data)
    outside = checker().without_comments(text)
    assert "Axiom" in text
    assert "Axiom" not in outside
    assert '"' not in text


def test_a_file_that_is_no_certificate_of_a_pipeline_is_refused() -> None:
    with pytest.raises(InputError, match="only certificates of pipelines"):
        coq_file({"schema": "dpassay/word-certificate/1"})


# ── What the repository holds ───────────────────────────────────────────────────────────────────


@pytest.mark.long(every=3)
@pytest.mark.parametrize("path", sorted((PROOFS / "claims").glob("*.v")), ids=lambda path: path.stem)
def test_published_claims_are_stated_as_they_are_checked(path: Path) -> None:
    name = next(name for name in SYSTEMS if name.replace("-", "_") == path.stem)
    claims = [claim for claim in SYSTEMS[name].claims if claim.name in path.read_text().replace("_", "-")]
    written = modules({claim.name: check(claim) for claim in claims})
    assert written == {path.name: path.read_text()}


def test_every_published_refutation_of_the_text_systems_is_stated() -> None:
    stated = {
        name for path in (PROOFS / "claims").glob("*.v") for name in re.findall(r"Module (\w+)", path.read_text())
    }
    wanted = {"adept", "dptext_zero", "dptext_resampled", "dptext_nan", "dpnr", "dpnr_dropout", "dpnr_training", "ome"}
    assert wanted <= stated
    assert {name.replace("-", "_") for name in REGISTRY} >= stated


def test_every_published_claim_of_the_kinds_that_coq_checks_is_stated() -> None:
    """Epsilon alone with these noises, and (epsilon, delta) of Gaussian noise on one answer."""
    pure = r"\b(laplace|onesided|flip|bits|exponential|softmax)\b"
    one_answer = r"query\(\w+, [^|]+\) \| gaussian\([^|]*"
    wanted = set()
    for name, claim in REGISTRY.items():
        if any(other is not None for other in (claim.metric, claim.order, claim.rho, claim.mu)):
            continue
        if re.search(pure, claim.pipeline) if str(claim.delta) == "0" else re.fullmatch(one_answer, claim.pipeline):
            wanted.add(name)
    stated = {
        name
        for path in (PROOFS / "claims").glob("*.v")
        for name in re.findall(r"^Module (\w+)", path.read_text(), re.M)
    }
    assert len(wanted) > 45
    assert {name for name in wanted if name.replace("-", "_") not in stated} == set()


def checker() -> ModuleType:
    """proofs/check.py, which is not part of the package."""
    spec = importlib.util.spec_from_file_location("proofs_check", PROOFS / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_and_tables_name_the_right_lines() -> None:
    told = subprocess.run(
        [sys.executable, PROOFS / "check.py", "--tables"], capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stdout) == (0, "")


def test_nothing_is_admitted() -> None:
    module = checker()
    assert [line for path in module.sources() for line in module.not_admitted(path, path.read_text())] == []


@pytest.mark.parametrize(
    "added",
    ["Axiom false : False.", "Lemma x : False. Proof. Admitted.", "Parameter x : False.", "Hypothesis x : False.",
     "Section S. End S. \nHypothesis x : False.", "Section S.\nEnd S.\nVariable x : False.", "Lemma x : False. admit.",
     "Unset Positivity Checking.", "Unset Universe Checking.", "Declare Module X : T.", "Lemma x : False. give_up."],
)  # fmt: skip
def test_an_assumption_is_found(added: str) -> None:
    module = checker()
    path = PROOFS / "Finite.v"
    assert module.not_admitted(path, path.read_text() + added)
    assert not module.not_admitted(path, path.read_text() + f"(* {added} *)")


# ── Coq ─────────────────────────────────────────────────────────────────────────────────────────


def compiles(text: str, folder: Path) -> bool:
    file = folder / "claim.v"
    file.write_text(text)
    command = ["coqc", "-w", "none", "-Q", str(PROOFS), "Dpassay", str(file)]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


@needs_coq
def test_coq_accepts_a_certificate(tmp_path: Path) -> None:
    assert compiles(adept(), tmp_path)


# sqrt(32) is 5.6568...: claims below it are refuted, claims above it are not.
FORGED = {
    "a true claim as refuted": ("2 1 (both", "2 (57 / 10) (both"),
    "a false claim as proven": ("verdict : ~ ", "verdict : "),
    "a smaller epsilon": ("(5656854249493 / 1000000000000)", "(56 / 10)"),
    "less noise for the same epsilon": ("true_epsilon (I := index 32) 2 ", "true_epsilon (I := index 32) (19 / 10) "),
    "another dimension": ("(I := index 32) 2 1", "(I := index 1) 2 1"),
    "another ball": ("2 1 (both (in_l2 1))", "2 1 (both (in_l1 1))"),
}


@needs_coq
@pytest.mark.long(every=3)
@pytest.mark.parametrize("kind", FORGED)
def test_coq_refuses_a_forged_certificate(kind: str, tmp_path: Path) -> None:
    old, new = FORGED[kind]
    true = adept()
    assert math.sqrt(32) < 5.7
    assert true.count(old) >= 1
    forged = true.replace(old, new, 1).replace(
        "refuted_by", "proven_by" if kind == "a false claim as proven" else "refuted_by"
    )
    assert not compiles(forged, tmp_path)


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize(("text", "given", "says"), STATED)
def test_coq_accepts_statements_of_every_kind(text: str, given: dict[str, Any], says: str, tmp_path: Path) -> None:
    assert compiles(coq_file(certificate(text, **given)), tmp_path)
