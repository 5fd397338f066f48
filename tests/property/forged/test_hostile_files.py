"""Small files that ask for a great deal: the verifier answers each with little work and little memory.

Work is counted, not timed: what a certificate may cost is stated in `verifier/work.py`, and one operation with 60
digits is counted as it happens. Memory is what Python and numpy allocate.
"""

import json
import re
import tracemalloc

import pytest

import dpassay
from dpassay.errors import CertificateError
from dpassay.evidence.verifier import examine
from dpassay.evidence.verifier.arithmetic import work
from dpassay.evidence.verifier.arithmetic.numbers import forget, iv
from dpassay.evidence.verifier.arithmetic.work import ALL_WORK, limited
from forging import rechained

MOST_MEMORY = 200 << 20  # bytes, on top of the interpreter; 500 MB in all are promised
POINT = {"tilt": ["1", "1"], "step": ["1e-6", "1e-6"]}


def claim(pipeline, dim=3, epsilon="1", delta="0.000001", neighbours="any", **parameters):
    stated = {name: [value, value] for name, value in parameters.items()}
    return {
        "step": "claim",
        "name": "hostile",
        "source": "",
        "pipeline": pipeline,
        "parameters": stated,
        "dim": dim,
        "neighbours": neighbours,
        "epsilon": [epsilon] * 2,
        "delta": [delta] * 2,
    }


def upper(theorem, noise, **more):
    grid = {"grid": POINT} if more.pop("on_grid", True) else {}
    bound = {"epsilon": ["1", "1"], "delta": ["0.000001"] * 2, "theorem": theorem, "noise": noise, **grid}
    return {"step": "upper", **bound, **more}


def lower(theorem, noise, pair, at=0, **more):
    shown = {"quantity": "delta", "epsilon": ["1", "1"], "delta": ["0.5", "0.5"], "theorem": theorem}
    return {"step": "lower", **shown, "noise": noise, "at": at, "pair": pair, **more}


def block(x, y, count=1):
    return {"x": [x, x], "y": [y, y], "count": count, "positions": "all"}


def certificate(*steps):
    decided = {"step": "decision", "verdict": "open"}
    data = {"schema": "dpassay/certificate/2", "written_by": "nobody", "verdict": "open", "steps": [*steps, decided]}
    return rechained(json.loads(json.dumps(data)))


def counts(norm, distance, noise, more=""):
    return claim(f"counts({norm}, {distance}) | {noise}{more}", neighbours="query")


SCORES = [block(str(i), str(i + 1)) for i in range(2000)]
SPACED = [block(f"0.{i:05}", f"1.{i * i:08}") for i in range(1, 2000)]
FILES = {
    "counts far apart": [counts("linf", "1e15", "discrete_laplace(1)"), upper("discrete-laplace", 1)],
    "counts far apart, twice": [
        counts("l1", "1e12", "discrete_laplace(1)", " | times(2)"),
        upper("discrete-laplace", 1),
        lower("discrete-laplace", 1, [block("0", "1e12"), block("0", "0", 2)]),
    ],
    "a wide discrete Gaussian": [
        claim("counts(l2, 1) | discrete_gaussian(1e7)", dim=1, neighbours="query"),
        upper("discrete-gaussian", 1),
    ],
    "a wide discrete Gaussian, twice": [
        claim("counts(l2, 1) | discrete_gaussian(1e5) | times(2)", dim=1, neighbours="query"),
        upper("discrete-gaussian", 1),
    ],
    "many scores": [
        claim("query(linf, 1) | topk(1000) | exponential(1)", dim=2000, neighbours="query"),
        lower("top-k", 2, SCORES, at=1),
    ],
    "many kinds of bits": [
        claim("clip(linf, 1e5) | laplace(1) | round", dim=1999),
        lower("post-processing", 1, SPACED, at=1, thresholds=[["0.5", "0.5"]] * 1999),
    ],
    "many gaps": [claim("laplace(1)", dim=1999), lower("laplace", 0, SPACED, grid=POINT)],
    "a fine grid": [claim("clip(linf, 1e9) | laplace(1)", dim=1000), upper("worst-shift", 1)],
    "huge powers": [claim("query(l1, (1e1000^10000)^10000) | laplace(1)", neighbours="query"), upper("laplace", 1)],
    "huge counts": [counts("l1", "1e1000^100", "discrete_laplace(1)"), upper("discrete-laplace", 1)],
    "a huge exponent": [claim("query(l1, exp(1e7)) | laplace(exp(-1e7))", neighbours="query"), upper("laplace", 1)],
    "a far tail": [
        claim("query(l2, exp(1e7)) | gaussian(exp(-1e7))", neighbours="query"),
        upper("gaussian", 1, on_grid=False),
    ],
    "many answers": [
        claim("poisson(0.5) | clip(l2, 1) | gaussian(0.1) | times(10000000)", neighbours="add-remove-record"),
        upper("poisson", 2),
    ],
    "levels at a hostile tilt": [
        claim("clip(l2, 3) | laplace(1)", dim=10_000_000),
        upper("levels", 1, on_grid=False, tilt=["1e-6"] * 2),
    ],
    "levels far out": [
        claim("clip(l2, 12) | laplace(1)", dim=40),
        upper("levels", 1, on_grid=False, tilt=["0.01"] * 2, epsilon=["140", "140"]),
    ],
    "many bits": [
        claim("binary(30, 30) | bits(0.7, 0.6, 0.1)", dim=100_000),
        upper("randomized-response", 1, on_grid=False),
        upper("randomized-response", 1),
    ],
    "deep nesting": [claim("laplace(" + "(" * 4000 + "1" + ")" * 4000 + ")"), upper("laplace", 0)],
    "long sums": [claim("laplace(" + "+".join(["1"] * 4900) + ")"), upper("laplace", 0)],
    "many steps": [counts("linf", "30000", "discrete_laplace(30000)"), *[upper("discrete-laplace", 1)] * 60],
}
SLOW = (
    "a wide discrete Gaussian",
    "many answers",
    "levels far out",
    "many steps",
    "many kinds of bits",
    "many gaps",
    "many scores",
)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in SLOW else n for n in FILES])
def test_a_small_file_takes_little_work_and_memory(name, monkeypatch):
    reduced = ALL_WORK >> 5  # a thirty-second of what is allowed, so that the test is quick
    monkeypatch.setattr(work, "ALL_WORK", reduced)
    forget()
    spent = counted(monkeypatch)
    data = certificate(*FILES[name])
    assert len(json.dumps(data)) < 400_000
    tracemalloc.start()
    try:
        said = _said(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said
    assert peak < MOST_MEMORY
    assert spent() <= 2 * reduced // work.OF_A_NUMBER


def _said(data):
    """What the verifier says, or that reading the file alone takes too long."""
    try:
        found = examine(data)
    except CertificateError as error:
        return re.findall("takes too long to be checked", str(error))
    return found.established or found.failures


def counted(monkeypatch):
    """How many operations with 60 digits there were, whether they were allowed or not."""
    total, make = [0], type(iv).make_mpf

    def making(self, ends):
        total[0] += 1
        return make(self, ends)

    monkeypatch.setattr(type(iv), "make_mpf", making)
    return lambda: total[0]


def test_operations_with_many_digits_count_themselves(monkeypatch):
    monkeypatch.setattr(work, "ALL_WORK", 100 * work.OF_A_NUMBER)
    value = iv.mpf(2)
    with limited(), pytest.raises(CertificateError, match="takes too long"):
        sum([value] * 101, value)
    assert sum([value] * 101, value) == 204  # outside nothing is counted


@pytest.mark.parametrize(
    ("text", "exact", "delta"),
    [
        ("counts(linf, 1e15) | discrete_laplace(1)", 3e15, 0),
        pytest.param("counts(linf, 1e15) | discrete_laplace(1)", 3e15, "1e-6", marks=pytest.mark.long),
        ("counts(l1, 1e12) | discrete_laplace(1) | times(2)", 2e12, 0),
        pytest.param("counts(l1, 1e12) | discrete_laplace(1) | times(2)", 2e12, "1e-6", marks=pytest.mark.long),
    ],
)
def test_distant_counts_are_judged_and_verified(text, exact, delta):
    """ε at δ = 0 is the l1 distance over the scale: 3·10^15, and twice 10^12. One coordinate alone has δ(1) near 1."""
    verdict = dpassay.check(text, epsilon=1, delta=delta, dim=3)
    assert verdict.refuted
    assert verdict.epsilon.lower <= exact
    assert verdict.epsilon.upper >= exact or delta
    assert examine(dpassay.certify(verdict)).ok


@pytest.mark.parametrize("blocks", [3, 2000])
def test_the_largest_scores_are_sorted(blocks):
    """Of 0, 1, …, n − 1 and of 1, …, n the largest half is the same, and so is the law: the loss is 0."""
    half = blocks // 2
    pair = [block(str(i), str(i + 1)) for i in range(blocks)]
    data = certificate(
        claim(f"query(linf, 1) | topk({half}) | exponential(1)", dim=blocks, neighbours="query", epsilon="0"),
        lower("top-k", 2, pair, at=1),
    )
    sentences = [said for said in examine(data).failures if "(lower)" in said]
    assert len(sentences) == 1
    assert "the pair shows" in sentences[0]
    assert float(sentences[0].rpartition(" ")[2]) == pytest.approx(0, abs=1e-40)
