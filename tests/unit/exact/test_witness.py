"""Witnesses replayed: the pair can occur, and the event's probabilities, computed again, break the claim."""

import math
import re

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay.api import check
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, log, number, real
from dpassay.evidence.verdict import Verdict
from dpassay.exact.witness import Witness
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Block, Pair, SensitivityBall


@pytest.fixture(autouse=True)
def forty_digits():  # type: ignore[no-untyped-def]
    with mp.workdps(40):
        yield


def refuted(
    text: str, dim: int | None = None, neighbours: str | None = None, **claim: object
) -> tuple[Verdict, Witness]:
    verdict = check(text, dim=dim, neighbours=neighbours, **claim)
    assert verdict.word == "refuted"
    assert verdict.witness is not None
    return verdict, verdict.witness


def breaks(verdict: Verdict) -> None:
    """P > e^ε Q + δ, strictly, at the worst ends of what the witness says."""
    witness = verdict.witness
    assert witness is not None
    assert witness.event
    epsilon, delta = mpf(repr(verdict.guarantee.epsilon)), mpf(repr(verdict.guarantee.delta))
    assert mp.exp(mpf(witness.log_p.a)) > mp.exp(mpf(witness.log_q.b) + epsilon) + delta


def agrees(witness: Witness, log_p: mpf, log_q: mpf, room: str = "1e-25") -> None:
    """The probabilities are those computed here."""
    for said, truth in ((witness.log_p, log_p), (witness.log_q, log_q)):
        slack = mpf(room) * max(1, abs(truth))
        assert mpf(said.a) - slack <= truth <= mpf(said.b) + slack
        assert mpf(said.b) - mpf(said.a) <= 2 * slack


def inside(text: str, dim: int | None, witness: Witness) -> None:
    """Both values can come to the noise."""
    pipeline = parse(text, dim, {"eps": 1, "delta": "1e-5"})
    positions = pipeline.noise_positions
    region = pipeline.output_regions()[positions[-1] if positions else -1].region
    assert region.contains(witness.pair.first)
    assert region.contains(witness.pair.second)
    assert len(witness.pair.first) == region.dim
    if isinstance(region, SensitivityBall):
        gap = np.linalg.norm(witness.pair.first - witness.pair.second, ord=region.p)
        assert gap <= float(region.distance.mid) * (1 + 1e-12)


def gaps(witness: Witness) -> list[mpf]:
    return [
        abs(mpf(repr(float(b.x.mid))) - mpf(repr(float(b.y.mid)))) for b in witness.pair.blocks for _ in range(b.count)
    ]


def normal_tail(z: mpf) -> mpf:
    return mp.erfc(z / mp.sqrt(2)) / 2


# ── Laplace ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("clip(l2, 1) | laplace(2)", 32),
        ("clip(l2, 1) | laplace(2)", 1000),
        ("clip(l1, 1) | laplace(0.5)", 5),
        ("minmax | laplace(1)", 8),
        ("squash(tanh) | laplace(1)", 3),
        ("normalise | laplace(1)", 4),
        ("query(l2, 1) | laplace(0.5)", 4),
        ("onehot(4) | laplace(1)", None),
    ],
)
def test_pure_laplace(text: str, dim: int | None) -> None:
    verdict, witness = refuted(text, dim, epsilon=1)
    inside(text, dim, witness)
    breaks(verdict)
    scale = mpf(text.rpartition("(")[2].rstrip(")"))
    differing = [g for g in gaps(witness) if g]
    log_p = -len(differing) * mp.log(2)
    agrees(witness, log_p, log_p - mp.fsum(differing) / scale, "1e-12")


@pytest.mark.parametrize("epsilon", ["0.3", "1"])
def test_laplace_with_delta_in_one_dimension(epsilon: str) -> None:
    verdict, witness = refuted("query(l1, 1) | laplace(0.5)", epsilon=epsilon, delta="1e-5")
    inside("query(l1, 1) | laplace(0.5)", None, witness)
    breaks(verdict)
    # The loss exceeds ε below the middle of the two values, ε/2 scales earlier.
    a, e = mpf(2), mpf(epsilon)
    agrees(witness, mp.log(1 - mp.exp(-(a - e) / 2) / 2), mp.log(mp.exp(-(a + e) / 2) / 2), "1e-4")


def test_laplace_with_delta_in_many_dimensions() -> None:
    verdict, witness = refuted("clip(l2, 1) | laplace(2)", 2, epsilon="0.5", delta="1e-3")
    breaks(verdict)
    inside("clip(l2, 1) | laplace(2)", 2, witness)
    edges = [np.linspace(0, float(g) / 2, 3001) for g in gaps(witness) if g]
    p = q = loss = np.zeros(1)
    p, q = np.ones(1), np.ones(1)
    for cut in edges:
        gap = cut[-1]
        one = np.concatenate([[0.5], np.diff(-np.exp(-cut) / 2), [math.exp(-gap) / 2]])
        here = np.concatenate([[gap], gap - cut[1:] - cut[:-1], [-gap]])
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, one[::-1]).ravel()
        loss = np.add.outer(loss, here).ravel()
    agrees(witness, mp.log(p[loss > 0.5].sum()), mp.log(q[loss > 0.5].sum()), "2e-3")


# ── Gaussian ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long(every=2)
@pytest.mark.parametrize("delta", ["0", "1e-5", "0.01"])
@pytest.mark.parametrize(
    ("text", "dim", "sigma"),
    [
        ("query(l2, 1) | gaussian(0.4)", 1, "0.4"),
        ("clip(l2, 1) | gaussian(1)", 7, "1"),
        ("query(l2, 1) | gaussian(0.3) | gaussian(0.4)", 3, "0.5"),  # variances add up
    ],
)
def test_gaussian(text: str, dim: int, sigma: str, delta: str) -> None:
    verdict, witness = refuted(text, dim, epsilon=2, delta=delta)
    breaks(verdict)
    mu = mp.sqrt(mp.fsum(g**2 for g in gaps(witness))) / mpf(sigma)
    # Some threshold on the likelihood ratio: find it from P, then Q must follow.
    z = mp.findroot(lambda x: mp.log(normal_tail(x)) - (mpf(witness.log_p.a) + mpf(witness.log_p.b)) / 2, 0.5)
    agrees(witness, mp.log(normal_tail(z)), mp.log(normal_tail(z + mu)), "1e-12")


# ── Finite outputs ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delta", ["0", "1e-6", "0.01"])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("encode | binary(4, 5) | flip(0.6)", 10),
        ("encode | binary(1, 1) | flip(0.1)", 1),
        ("encode | binary(0, 1) | bits(0.9, 0.3, 0.2)", 1),
        ("onehot(5) | flip(0.9)", None),
        ("onehot(5) | bits(0.9, 0.3, 0.2)", None),
    ],
)
def test_bits(text: str, dim: int | None, delta: str) -> None:
    verdict, witness = refuted(text, dim, epsilon=1, delta=delta)
    inside(text, dim, witness)
    breaks(verdict)


@pytest.mark.parametrize("keep", ["0.6", "0.1", "1", "0"])
def test_bits_that_speak_most_for_the_first_string(keep: str) -> None:
    _, witness = refuted(f"encode | binary(1, 1) | flip({keep})", 2, epsilon=1)
    more, less = max(mpf(keep), 1 - mpf(keep)), min(mpf(keep), 1 - mpf(keep))
    assert abs(mpf(witness.log_p.a) - 6 * mp.log(more)) < mpf("1e-30")
    if less:
        assert abs(mpf(witness.log_q.a) - 6 * mp.log(less)) < mpf("1e-30")
    else:
        assert witness.log_q == -INFINITY


@pytest.mark.parametrize("delta", ["0", "1e-6", "0.01"])
@pytest.mark.parametrize(("k", "keep"), [(2, "0.9"), (2, "0.1"), (5, "0.7"), (5, "0.01"), (3, "1"), (3, "0")])
def test_categories(k: int, keep: str, delta: str) -> None:
    text = f"category({k}) | flip({keep})"
    verdict, witness = refuted(text, epsilon="0.5", delta=delta)
    inside(text, None, witness)
    breaks(verdict)
    other = (1 - mpf(keep)) / (k - 1)
    more, less = max(mpf(keep), other), min(mpf(keep), other)
    assert abs(mpf(witness.log_p.a) - mp.log(more)) < mpf("1e-30")
    if less:
        assert abs(mpf(witness.log_q.a) - mp.log(less)) < mpf("1e-30")
    else:
        assert witness.log_q == -INFINITY


@pytest.mark.parametrize("delta", ["0", "0.01"])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("squash(tanh) | exponential(2)", 4),
        ("query(linf, 1) | exponential(2)", 4),
        ("clip(l2, 1) | exponential(3)", 4),
        ("minmax | exponential(3)", 4),
        ("onehot(4) | exponential(3)", None),
    ],
)
def test_exponential(text: str, dim: int | None, delta: str) -> None:
    verdict, witness = refuted(text, dim, epsilon=1, delta=delta)
    breaks(verdict)
    if "query" not in text:
        inside(text, dim, witness)
    rate = mpf(text.rpartition("(")[2].rstrip(")"))
    both = []
    for side in (witness.pair.first, witness.pair.second):
        weights = [mp.exp(rate * mpf(repr(float(v)))) for v in side]
        first = re.findall(r"one of the (\d+) outputs", witness.event) or ["1"]
        both.append(mp.log(mp.fsum(weights[: int(first[0])]) / mp.fsum(weights)))
    agrees(witness, *both, "1e-12")


# ── Infinite losses, dropout ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delta", ["0", "1e-5", "0.5", "0.999"])
@pytest.mark.parametrize("noise", ["laplace(1)", "gaussian(2)", "laplace(0.001)", "laplace(100) | laplace(1)"])
def test_unbounded(noise: str, delta: str) -> None:
    verdict, witness = refuted(f"encode | {noise}", 3, epsilon=2, delta=delta)
    first, second = float(witness.pair.first[0]), float(witness.pair.second[0])
    assert first > 0 > second
    if "100" in noise:
        # Both noises spread the values. With Laplace noise of scale 100 alone less can be seen than with both.
        bound = 1 - mp.exp(-mpf(first) / 100) / 2
        assert not witness.event or mp.exp(mpf(witness.log_p.b)) <= bound
        return
    breaks(verdict)
    scale = mpf(noise.rpartition("(")[2].rstrip(")"))
    p, q = (
        (mp.exp(-abs(mpf(v)) / scale) / 2 if "laplace" in noise else normal_tail(abs(mpf(v)) / scale))
        for v in (first, second)
    )
    agrees(witness, mp.log(1 - p), mp.log(q), "1e-12")


@pytest.mark.parametrize("text", ["encode", "clip(l2, 1)", "encode | minmax", "category(3)"])
def test_no_noise(text: str) -> None:
    verdict, witness = refuted(text, 3 if "category" not in text else None, epsilon=100, delta="0.999")
    breaks(verdict)
    assert witness.log_p == 0
    assert witness.log_q == -INFINITY
    assert (witness.pair.first != witness.pair.second).any()
    inside(text, 3 if "category" not in text else None, witness)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("mu", "delta"), [("0.5", "0"), ("0.5", "1e-6"), ("0.5", "0.49"), ("0.9", "0.05")])
@pytest.mark.parametrize(
    "text", ["encode | laplace(1)", "encode | minmax | laplace(0.2)", "encode | clip(l2, 3) | gaussian(1)", "encode"]
)
def test_dropout(text: str, mu: str, delta: str) -> None:
    verdict, witness = refuted(f"dropout({mu}) | {text}", 6, epsilon="0.5", delta=delta)
    breaks(verdict)
    # With probability μ the word is dropped, and then the second text's output comes.
    assert mpf(witness.log_p.b) <= mp.log((1 - mpf(mu)) + mpf(mu) * mp.exp(mpf(witness.log_q.b))) + mpf("1e-30")


def test_dropout_mixes_the_two_outputs() -> None:
    _, witness = refuted("dropout(0.25) | encode | clip(l1, 1) | laplace(0.5)", 3, epsilon=1)
    p, q = mpf(1) / 2, mp.exp(-4) / 2
    agrees(witness, mp.log(mpf("0.75") * p + mpf("0.25") * q), mp.log(q))


@pytest.mark.parametrize("delta", ["0", "1e-5"])
def test_one_sided(delta: str) -> None:
    # An output below the second value is impossible for it.
    verdict, witness = refuted("clip(l2, 1) | onesided(2)", 4, epsilon=3, delta=delta)
    inside("clip(l2, 1) | onesided(2)", 4, witness)
    breaks(verdict)
    assert witness.log_q == -INFINITY


# ── Behind the noise ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", ["decode", "squash(tanh)"])
def test_what_can_be_undone_keeps_the_event(after: str) -> None:
    verdict, _ = refuted(f"clip(l2, 1) | laplace(2) | {after}", 32, epsilon=1)
    breaks(verdict)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("after", ["round", "clip(l2, 1)", "normalise", "binary(2, 2)"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_no_event_is_named_that_cannot_be_seen(after: str, delta: str) -> None:
    verdict = check(f"clip(l2, 1) | laplace(0.2) | {after}", epsilon=1, delta=delta, dim=4)
    if verdict.witness is not None:
        assert verdict.witness.event == ""


# ── The type ────────────────────────────────────────────────────────────────────────────────────


def test_ratio_and_excess() -> None:
    pair = Pair((Block(number(1), number(0), 1),))
    witness = Witness(pair, "an event", log(number("0.5")), log(number("0.125")))
    assert float(witness.ratio.mid) == pytest.approx(math.log(4))
    assert float(witness.excess(log(number(2))).mid) == pytest.approx(0.25)
    assert Witness(pair, "an event", real(0), -INFINITY).ratio == INFINITY
    assert witness.behind_dropout(real(0)) is witness


def test_a_proven_claim_has_no_witness() -> None:
    assert check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4).witness is None
    assert check("clip(l2, 1) | laplace(2) | times(4)", epsilon="6.5", delta="1e-3", dim=4).witness is None
    assert Neighbours().kind == "any"
