"""Every kind of claim that can be written for Coq: the true statement compiles, and forged ones do not."""

import copy
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dpassay import certify, check
from dpassay.evidence.coq import Unsupported, coq_file, coq_modules
from dpassay.evidence.coq.terms import CoqNumber

PROOFS = Path(__file__).parents[4] / "proofs"

needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or not (PROOFS / "Certificate.vo").exists(),
    reason="needs Coq, and the theorems that make proofs compiles",
)


class Kind(NamedTuple):
    """A claim, and an epsilon on the other side of the truth: below it if the claim holds, else at least as large."""

    pipeline: str
    epsilon: float | str
    wrong: float | str
    given: dict[str, Any] = {}  # noqa: RUF012  (never changed)


# The true epsilon of each is a formula of the page in docs/proofs that is about it.
KINDS = {
    "l2 ball": Kind("clip(l2, 1) | laplace(2)", 1, 2.01, {"dim": 4}),  # sqrt 4
    "l2 ball, a square dimension": Kind("clip(l2, 2.7) | laplace(2.7)", 4, 3.99, {"dim": 4}),  # 2 sqrt 4
    "l1 ball": Kind("clip(l1, 1) | laplace(2)", 1, 0.99, {"dim": 4}),  # 1
    "linf ball": Kind("clip(linf, 1) | laplace(2)", 4, 3.99, {"dim": 4}),  # 4
    "records": Kind("clamp(0, 3) | laplace(1)", 2, 3, {"dim": 1, "neighbours": "replace-record"}),  # 3
    "min-max": Kind("minmax | laplace(1)", 3, 4, {"dim": 4}),  # 4
    "rows": Kind("rows | clamp(0, 3) | laplace(1)", 3, 2.9, {"dim": 4, "neighbours": "replace-record"}),  # 3
    "query": Kind("query(l1, 2) | laplace(1)", 2, 1.9, {"dim": 3}),  # 2
    "repeated query": Kind("query(l1, 2) | repeat(5) | laplace(1)", 10, 9.9),  # 10
    "group": Kind("query(l1, 2) | laplace(1)", 6, 5.9, {"dim": 3, "neighbours": "group(3)"}),  # 3 times 2
    "rounded": Kind("query(l1, 2) | laplace(1) | round", 1.9, 2),  # 2
    "counts": Kind("counts(l1, 1.5) | laplace(1)", 1, 0.9),  # 1
    "counts, refuted": Kind("counts(l1, 2.5) | laplace(1)", 1.9, 2, {"dim": 3}),  # 2
    "no dropout": Kind("dropout(0) | encode | minmax | laplace(10)", 0.4, 0.39, {"dim": 4, "neighbours": "word"}),
    "dropout": Kind("dropout(1/2) | encode | minmax | laplace(1)", 3.3, 3.4, {"dim": 4, "neighbours": "word"}),  # 3.325
    "two categories": Kind("category(2) | flip(exp(1)/(1 + exp(1)))", 1, 0.9),
    "two categories, a negative exponent": Kind("category(2) | flip(1/(1 + exp(-1)))", 1, 0.9),
    "three categories": Kind("category(3) | flip(0.9)", 2.89, 2.9),  # ln 18 = 2.890...
    "a lie is likelier": Kind("category(3) | flip(0.1)", 1.6, 1.5),  # ln 4.5 = 1.504...
    "a lie is likelier, refuted": Kind("category(3) | flip(0.1)", 1.5, 1.51),
    "categories at delta": Kind("category(3) | flip(0.9)", 2, 1.5, {"delta": 0.6}),  # 0.9 - 0.05 e^2 = 0.530...
    "categories at delta, refuted": Kind("category(3) | flip(0.9)", 1, 2, {"delta": 0.6}),
    "hash": Kind("hash(4) | flip(0.5)", 1.1, 1),  # ln 3
    "hash, refuted": Kind("hash(4) | flip(0.5)", 1, 1.1),
    "several categories": Kind("category(2) | flip(0.75) | times(10)", 11, 10.9),  # 10 ln 3 = 10.986...
    "one-hot": Kind("onehot(5) | flip(0.3)", 1.7, 1.69),  # 2 ln(7/3) = 1.694...
    "one-hot, refuted": Kind("onehot(5) | flip(0.7)", 1.69, 1.7),
    "one-hot bits": Kind("onehot(5) | bits(0.6, 0.6, 0.2)", 1.8, 1.79),  # ln 6 = 1.791...
    "one-hot bits, swapped": Kind("onehot(5) | bits(0.2, 0.2, 0.6)", 1.79, 1.8),
    "Bloom filter": Kind("bloom(8, 2) | flip(0.75)", 4.4, 4.39),  # 4 ln 3 = 4.394...
    "small Bloom filter": Kind("bloom(3, 2) | flip(0.25)", 3.3, 3.29),  # 3 ln 3 = 3.295...
    "Bloom filter, refuted": Kind("bloom(8, 2) | flip(0.75)", 4.39, 4.4),
    "binary": Kind("encode | binary(1, 1) | flip(0.75)", 3.3, 3.29, {"dim": 1}),
    "binary, a tie": Kind("encode | binary(3, 4) | flip(exp(1/4)/(1 + exp(1/4)))", 2, 1.9, {"dim": 1}),  # 8/4
    "binary, parities": Kind("encode | binary(1, 1) | bits(0.9, 0.6, 0.2)", 5.26, 5.25, {"dim": 1}),  # 2 ln 8 + ln 3
    "binary, refuted": Kind("encode | binary(1, 1) | bits(0.9, 0.6, 0.2)", 5.25, 5.26, {"dim": 1}),
    "scores": Kind("clamp(0, 1) | exponential(1)", 1.48, 1.47, {"dim": 4}),  # ln(e (1 + 3e) / (e + 3)) = 1.470...
    "scores, refuted": Kind("clamp(0, 1) | exponential(1)", 1.47, 1.48, {"dim": 4}),
    "nearly equal scores": Kind("clamp(0, 1) | exponential(1e-90)", 2e-90, 1e-90, {"dim": 4}),  # above 1e-90
    "two scores": Kind("clamp(0, 1) | exponential(1)", 1, 0.99, {"dim": 2}),
    "tokens": Kind("encode | clamp(0, 1) | softmax(1) | times(10)", 14.71, 14.7, {"dim": 4}),
    "unbounded tokens": Kind("encode | softmax(1) | times(10)", 5, "", {"dim": 4}),
    "best tokens": Kind("encode | clamp(0, 1) | topk(2) | softmax(1) | times(3)", 5, "", {"dim": 4}),
    "linf scores": Kind("query(linf, 1) | exponential(1)", 2, 1.9, {"dim": 5}),
    "linf scores, refuted": Kind("query(linf, 1) | exponential(1)", 1.9, 2, {"dim": 5}),
    "l1 scores": Kind("query(l1, 1) | exponential(1)", 0.9, 1, {"dim": 5}),
    "l2 scores": Kind("query(l2, 1) | exponential(1)", 1.42, 1.41, {"dim": 5}),  # sqrt 2
    "monotone scores": Kind("query(linf, 1, monotone) | exponential(1)", 0.9, 1, {"dim": 5}),
    "Gaussian": Kind("query(l2, 2) | gaussian(2)", 1.1, 0.9, {"delta": 0.12}),  # delta(1) = 0.1269...
    "Gaussian, refuted": Kind("query(l2, 2) | gaussian(2)", 1, 1.1, {"delta": 0.12}),
    "Gaussian without delta": Kind("query(l2, 1) | gaussian(1)", 100, ""),
    "much Gaussian noise": Kind("query(l2, 1) | gaussian(1e300)", 2, "", {"delta": 0.1}),
    "a large epsilon of Gaussian noise": Kind("query(l2, 1) | gaussian(1)", 1e4, "", {"delta": 0.1}),
    "Gaussian, far apart, a large epsilon": Kind("query(l2, 500) | gaussian(1)", 5e4, "", {"delta": 0.1}),
    "Gaussian, far apart": Kind("query(l2, 500) | gaussian(1)", 1, "", {"delta": 0.1}),  # delta(1) > 1 - 10^-100
    "one-sided": Kind("clamp(0, 1) | onesided(1)", 100, "", {"dim": 1}),
    "no noise": Kind("clamp(0, 1)", 100, "", {"delta": 0.5, "dim": 3}),
    "leak": Kind("category(9) | leak(0.1)", 1, "", {"delta": 0.09}),
    "leak of a number": Kind("clamp(0, 1) | leak(0.1)", 1, "", {"delta": 0.1, "dim": 1}),
}  # fmt: skip


def certificate(kind: Kind) -> dict[str, Any]:
    verdict = check(kind.pipeline, epsilon=kind.epsilon, **kind.given)
    assert not verdict.open
    return certify(verdict)


def forged(kind: Kind) -> list[str]:
    """Files that are wrong: of the opposite verdict, or of an epsilon on the other side of the truth.

    The certificate is changed, and written for Coq. Where it is refused before that, the file itself is changed.
    """
    data = certificate(kind)
    other = copy.deepcopy(data)
    other["verdict"] = "proven" if data["verdict"] == "refuted" else "refuted"
    text = coq_file(data)
    opposite = ("verdict : ~ ", "verdict : ") if data["verdict"] == "refuted" else ("verdict : ", "verdict : ~ ")
    files = [_written(other) or _with_other_verdict(text, *opposite)]
    if kind.wrong:
        moved = copy.deepcopy(data)
        moved["steps"][0]["epsilon"] = [str(kind.wrong)] * 2
        old, new = (f" {CoqNumber.of(Fraction(str(epsilon))).text} " for epsilon in (kind.epsilon, kind.wrong))
        files.append(_written(moved) or _with_other_verdict(text, old, new))
    return files


def _written(data: dict[str, Any]) -> str:
    try:
        return coq_file(data)
    except Unsupported:
        return ""


def _with_other_verdict(text: str, old: str, new: str) -> str:
    before, after = text.split("Theorem ", 1)
    assert old in after or (old == "verdict : ~ " and "  ~ " in after)
    return before + "Theorem " + (after.replace(old, new, 1) if old in after else after.replace("  ~ ", "  ", 1))


def attempt(number: int, text: str) -> str:
    """A file with `Fail` before the proof of its verdict, as a module."""
    body = text.split("Certificate.\n", 1)[1]
    before, says, proof = re.split(r"Theorem verdict : (.*?)\.\nProof\.\n", body, maxsplit=1, flags=re.DOTALL)
    steps = [line.strip().removesuffix(".") for line in proof.split("Qed.")[0].strip().splitlines()]
    script = "; ".join(f"({step})" for step in steps)
    return f"Module m{number}.\n{before}Goal {says}.\nProof. Fail ({script}). Abort.\nEnd m{number}.\n"


def compiled(text: str, folder: Path) -> str:
    """What coqc says against a file; nothing, if it compiles."""
    file = folder / "claim.v"
    file.write_text(text)
    command = ["coqc", "-w", "none", "-Q", str(PROOFS), "Dpassay", str(file)]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return told.stderr if told.returncode else ""


def refused(names: list[str]) -> str:
    """A file in which the proof of every forged statement must fail."""
    files = [text for name in names for text in forged(KINDS[name])]
    return "\n".join(["From Dpassay Require Import Certificate.", *(attempt(i, text) for i, text in enumerate(files))])


@pytest.mark.long(every=4)
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_written(name: str) -> None:
    text = coq_file(certificate(KINDS[name]))
    assert "Theorem verdict" in text


@needs_coq
def test_coq_accepts_several_kinds(tmp_path: Path) -> None:
    names = list(KINDS)[::7]
    assert compiled(coq_modules("kinds", {f"k{i}": certificate(KINDS[n]) for i, n in enumerate(names)}), tmp_path) == ""


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_coq_accepts_every_kind(part: int, tmp_path: Path) -> None:
    names = list(KINDS)[part::6]
    assert compiled(coq_modules("kinds", {f"k{i}": certificate(KINDS[n]) for i, n in enumerate(names)}), tmp_path) == ""


@needs_coq
def test_coq_refuses_forged_certificates_of_several_kinds(tmp_path: Path) -> None:
    assert compiled(refused(list(KINDS)[3::18]), tmp_path) == ""


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_coq_refuses_forged_certificates_of_every_kind(part: int, tmp_path: Path) -> None:
    assert compiled(refused(list(KINDS)[part::6]), tmp_path) == ""


@needs_coq
def test_a_true_certificate_does_not_count_as_refused(tmp_path: Path) -> None:
    text = attempt(0, coq_file(certificate(KINDS["query"])))
    assert "has not failed" in compiled(f"From Dpassay Require Import Certificate.\n{text}", tmp_path)
