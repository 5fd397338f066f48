"""The verifier: it accepts what follows, with the verdict that follows. Forgeries are in test_forgeries.py."""

import subprocess
import sys

import pytest

from dpassay import CertificateError, InputError, Pipeline, api, certify, check, save, verify
from dpassay.core.numbers import ONE
from dpassay.errors import DpassayError
from dpassay.evidence.verifier import examine
from dpassay.exact.dataflow import propagated_pairs
from dpassay.pipeline.distributions import Laplace, Mixture, OneSided
from dpassay.pipeline.regions import Block, Pair, Sparse
from dpassay.pipeline.stages import categories
from dpassay.pipeline.stages.bounds.scaling import Clip
from dpassay.pipeline.stages.noises.additive import Additive
from forging import block, claim, exactly, lower, sealed, upper

# The prover decides these, but the writer finds no evidence that the verifier accepts.

LONG = pytest.mark.long
ROUND_TRIPS = [
    # one neighbour's absence, one value's names, strings with a 1, values between the limits
    (
        "encode | laplace(1) | clip(l1, 1) | laplace(1)",
        {"epsilon": 2, "dim": 1, "neighbours": "add-remove-record"},
        "proven",
    ),
    (
        "clip(l1, 1) | laplace(1) | laplace(2)",
        {"epsilon": "0.4", "dim": 2, "neighbours": "add-remove-record"},
        "refuted",
    ),
    ("rows | clamp(0.3, 3) | leak(1/4)", {"epsilon": 0, "delta": "0.25", "dim": 3}, "proven"),
    (
        "rows | clamp(0.5, 3) | repeat(2) | squash(sigmoid) | leak(1/4)",
        {"epsilon": 0, "delta": "0.43", "dim": 3},
        "refuted",
    ),
    ("bloom(1, 1) | flip(0.75)", {"epsilon": 0}, "proven"),
    ("bloom(2, 2) | onesided(1)", {"epsilon": 0, "delta": "0.633"}, "proven"),
    ("bloom(2, 2) | onesided(1)", {"epsilon": 0, "delta": "0.632"}, "refuted"),
    ("bloom(3, 3) | bits(1/2, 1/2, 1/(1+exp(3)))", {"epsilon": 5}, "refuted"),
    ("bloom(3, 3) | flip(0.75)", {"epsilon": "3.3"}, "proven"),
    ("hash(1) | onehot(3) | flip(0.9)", {"epsilon": 1}, "open"),
    ("category(3) | onehot(3) | flip(0.9)", {"epsilon": 1}, "refuted"),
    ("category(3) | encode | clip(l1, 1) | laplace(1)", {"epsilon": 2, "dim": 7}, "proven"),
    ("onehot(3) | flip(0.9)", {"epsilon": 1, "dim": 3}, "refuted"),
    ("rows | squash(sigmoid) | binary(1, 0) | flip(0.9)", {"epsilon": 0, "dim": 1}, "open"),
    ("rows | squash(sigmoid) | clip(l2, 0.5) | laplace(1)", {"epsilon": "0.1", "dim": 2}, "refuted"),
    ("minmax | clamp(0, 1) | laplace(1)", {"epsilon": 2, "dim": 2}, "proven"),
    ("onehot(3) | clamp(0, 1) | flip(0.9)", {"epsilon": 1}, "refuted"),
    # Laplace: l1, l2 and linf balls, a box, min-max, one-hot
    ("clip(l2, C) | laplace(2*C/eps)", {"epsilon": 1, "dim": 32, "C": 1}, "refuted"),
    ("clip(l2, C) | laplace(2*C*sqrt(dim)/eps)", {"epsilon": 1, "dim": 1024, "C": "0.1"}, "proven"),
    pytest.param("clip(l2, 1) | laplace(2)", {"epsilon": "4.40", "delta": 1e-6, "dim": 32}, "refuted", marks=LONG),
    pytest.param("clip(l2, 1) | laplace(2)", {"epsilon": "4.42", "delta": 1e-6, "dim": 32}, "open", marks=LONG),
    ("clip(l2, 1) | laplace(2)", {"epsilon": "4.5", "delta": 1e-6, "dim": 32}, "proven"),
    pytest.param("clip(l2, 1) | laplace(2)", {"epsilon": "4.7", "delta": 1e-6, "dim": 32}, "proven", marks=LONG),
    ("clip(l1, 1) | laplace(2)", {"epsilon": 1, "dim": 4}, "proven"),
    ("clip(l1, 1) | laplace(2)", {"epsilon": "0.9", "delta": 1e-6, "dim": 4}, "refuted"),
    ("clip(linf, 1) | laplace(2)", {"epsilon": "3.99", "delta": "0.01", "dim": 4}, "proven"),
    ("squash(sigmoid) | laplace(1)", {"epsilon": "0.9", "dim": 3}, "refuted"),
    ("minmax | laplace(1)", {"epsilon": 8, "dim": 8}, "proven"),
    ("onehot(5) | laplace(1)", {"epsilon": 1, "dim": 1}, "refuted"),
    ("normalise | laplace(1)", {"epsilon": 1, "dim": 3}, "refuted"),
    ("clip(l2, 1) | clip(linf, 0.5) | laplace(1)", {"epsilon": 4, "dim": 9}, "refuted"),
    ("query(l1, 1) | laplace(1/eps)", {"epsilon": 2}, "proven"),
    ("query(l1, 1) | clip(l1, 1) | laplace(1)", {"epsilon": "1.5", "dim": 4}, "open"),
    ("clip(l2, 1) | laplace(1)", {"epsilon": 3, "dim": 9, "neighbours": "add-remove-record"}, "proven"),
    ("clip(l2, 1) | laplace(1)", {"epsilon": 3, "dim": 9, "neighbours": "replace-record"}, "refuted"),
    pytest.param("clip(l2, 3) | round | laplace(2)", {"epsilon": 1, "dim": 4}, "refuted"),
    ("clip(l2, 1) | squash(tanh) | laplace(1)", {"epsilon": 4, "dim": 3}, "proven"),
    # Gaussian
    ("query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)", {"epsilon": 10, "delta": 1e-5}, "refuted"),
    ("query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)", {"epsilon": "0.5", "delta": 1e-5}, "proven"),
    ("clip(l2, 1) | gaussian(1)", {"epsilon": 1, "dim": 3}, "refuted"),
    ("clip(l2, 1) | clip(linf, 0.5) | gaussian(6)", {"epsilon": 1, "delta": 1e-3, "dim": 9}, "proven"),
    # one-sided, no noise, no bound
    ("clip(l2, 1) | onesided(1)", {"epsilon": 1, "delta": "0.5", "dim": 3}, "refuted"),
    ("minmax | onesided(1)", {"epsilon": 1, "delta": "0.9", "dim": 3}, "open"),
    ("encode | decode", {"epsilon": 10, "delta": "0.5", "dim": 3}, "refuted"),
    ("minmax", {"epsilon": 0, "dim": 1}, "proven"),
    ("encode | laplace(2) | decode", {"epsilon": 1, "dim": 3}, "refuted"),
    ("encode | gaussian(2)", {"epsilon": 1, "delta": "0.5", "dim": 3}, "refuted"),
    # bits, categories, scores
    ("category(5) | flip(0.9)", {"epsilon": 1}, "refuted"),
    ("category(5) | flip(0.9)", {"epsilon": "3.5", "delta": "0.2"}, "proven"),
    ("category(2) | flip(1/2)", {"epsilon": 0}, "proven"),
    ("category(2) | flip(1)", {"epsilon": 5}, "refuted"),
    ("binary(2, 1) | flip(0.9)", {"epsilon": 20, "delta": 1e-3, "dim": 3}, "refuted"),
    ("binary(2, 1) | flip(0.55)", {"epsilon": 2, "delta": "0.1", "dim": 3}, "proven"),
    ("binary(2, 1) | bits(0.5, 0.4, 0.2)", {"epsilon": 3, "dim": 3}, "refuted"),
    pytest.param("binary(0, 0) | bits(0.5, 0.4, 0.2)", {"epsilon": 1, "delta": "0.1", "dim": 2}, "proven"),
    ("onehot(5) | bits(0.5, 0.4, 0.2)", {"epsilon": "0.1", "delta": 1e-3}, "refuted"),
    ("onehot(5) | bits(0.5, 0.4, 0.2)", {"epsilon": 3}, "proven"),
    ("clip(l2, 1) | binary(2, 1) | flip(0.7)", {"epsilon": 5, "dim": 3}, "open"),
    ("clip(linf, 1) | exponential(3)", {"epsilon": 1, "delta": 1e-5, "dim": 3}, "refuted"),
    ("clip(l2, 1) | exponential(3)", {"epsilon": 6, "dim": 3}, "proven"),
    ("clip(l2, 1) | exponential(3)", {"epsilon": 5, "dim": 5}, "open"),
    ("query(linf, 1) | exponential(eps/2)", {"epsilon": 1, "dim": 10}, "proven"),
    # clamped values, rows, lost values
    *(
        (
            f"encode | clamp(0, 1) | onesided(dim/eps{lost}) | decode",
            {"epsilon": 1, "delta": delta, "dim": dim},
            "refuted",
        )
        for lost in ("", ", 1/2", ", 0, 1/2")
        for delta in (0, "0.1")
        for dim in (1, 32)
    ),
    ("encode | clamp(0, 1) | onesided(dim/eps, 0, 1/2)", {"epsilon": 1, "delta": "0.4", "dim": 32}, "proven"),
    ("rows | leak(delta)", {"epsilon": 0, "delta": 1e-6, "dim": 10**6}, "proven"),
    ("rows | leak(2*delta)", {"epsilon": 0, "delta": 1e-6, "dim": 10**6}, "refuted"),
    ("category(1000) | leak(delta)", {"epsilon": 1, "delta": 1e-6}, "proven"),
    ("category(1000) | leak(1/2)", {"epsilon": 1, "delta": 1e-6}, "refuted"),
    ("encode | onesided(1, 0, 1/2)", {"epsilon": 1, "delta": "0.1", "dim": 4}, "refuted"),
    ("encode | leak(1/2) | clip(l2, 1) | laplace(1)", {"epsilon": 1, "delta": "0.1", "dim": 1}, "open"),
    pytest.param(
        "encode | leak(1/2) | clip(l2, 1) | laplace(1)",
        {"epsilon": 1, "delta": "0.1", "dim": 4},
        "open",
        marks=LONG,
    ),
    ("encode | laplace(1) | leak(1/10)", {"epsilon": 1, "delta": "0.5", "dim": 1}, "proven"),
    ("onehot(5) | onesided(1, 0, 1/2)", {"epsilon": 1, "delta": "0.4"}, "open"),
    ("rows | clamp(0, 1) | laplace(1/eps)", {"epsilon": 1, "dim": 30}, "proven"),
    ("rows | clamp(0, 1) | laplace(1)", {"epsilon": "0.5", "delta": "0.1", "dim": 30}, "refuted"),
    ("rows | clamp(0, 3) | round | laplace(1)", {"epsilon": "0.5", "dim": 3}, "refuted"),
    ("rows | squash(tanh) | gaussian(1)", {"epsilon": "0.5", "delta": 1e-6, "dim": 3}, "refuted"),
    ("rows | clamp(0, 1) | normalise | laplace(1)", {"epsilon": 2, "dim": 3}, "open"),
    ("rows | laplace(1)", {"epsilon": 1, "delta": "0.1", "dim": 30}, "refuted"),
    ("query(l1, 1) | clamp(0, 10) | laplace(1/eps)", {"epsilon": 1, "dim": 4}, "proven"),
    ("clip(l2, 1) | clamp(0, 1/2) | laplace(1)", {"epsilon": 1, "dim": 4}, "refuted"),
    # repeated, hashed, calibrated
    ("encode | minmax | repeat(T) | laplace(1/eps)", {"epsilon": "0.05", "dim": 768, "T": 10}, "refuted"),
    ("query(l1, 1) | repeat(k) | laplace(k/eps)", {"epsilon": 1, "k": 5, "dim": 3}, "proven"),
    ("query(l1, 1) | repeat(5) | laplace(5)", {"epsilon": "0.5", "delta": 1e-6, "dim": 3}, "refuted"),
    pytest.param(
        "clip(l2, 1) | repeat(3) | laplace(2)",
        {"epsilon": 1, "delta": 1e-6, "dim": 32},
        "refuted",
        marks=LONG,
    ),
    ("encode | repeat(3) | laplace(2)", {"epsilon": 1, "dim": 4}, "refuted"),
    ("rows | clamp(0, 1) | repeat(3) | onesided(1, 1/4, 1/4)", {"epsilon": 1, "delta": "0.1", "dim": 3}, "refuted"),
    ("clip(l2, 1) | clip(linf, 0.8) | repeat(2) | gaussian(1)", {"epsilon": 1, "delta": 1e-6, "dim": 4}, "refuted"),
    pytest.param("normalise | repeat(2) | exponential(1)", {"epsilon": 1, "dim": 4}, "refuted"),
    ("hash(4) | flip(exp(eps)/(exp(eps)+3))", {"epsilon": 1}, "proven"),
    ("category(3) | hash(4) | flip(0.9)", {"epsilon": 1}, "open"),
    ("bloom(32, 2) | flip(1-f/2)", {"epsilon": 1, "f": "0.5"}, "refuted"),
    ("bloom(32, 6) | flip(3/4)", {"epsilon": 3, "delta": 1e-6}, "refuted"),
    ("bloom(32, 2) | flip(3/4)", {"epsilon": "4.4"}, "proven"),
    pytest.param("bloom(32, 2) | bits(0.9, 0.7, 0.2)", {"epsilon": 3}, "refuted", marks=LONG),
    ("bloom(32, 2) | onesided(1)", {"epsilon": 3, "delta": "0.87"}, "proven"),
    (
        "encode | clip(l2, C) | gaussian(least_sigma(eps, delta, 2*C))",
        {"epsilon": 1, "delta": 1e-6, "dim": 32, "C": 1},
        "proven",
    ),
    # word dropout
    ("dropout(0.5) | encode | minmax | laplace(1/eps)", {"epsilon": "0.05", "dim": 64}, "refuted"),
    ("dropout(0.5) | minmax | gaussian(5)", {"epsilon": 1, "delta": 1e-3, "dim": 3}, "proven"),
    ("dropout(0.5) | encode | laplace(3)", {"epsilon": 1, "delta": "0.1", "dim": 3}, "refuted"),
    # two noises, and what comes after the noise
    ("clip(l2, 1) | laplace(1) | laplace(2)", {"epsilon": "0.9", "dim": 1}, "refuted"),
    pytest.param("clip(l2, 1) | laplace(1) | laplace(2)", {"epsilon": "1.7", "dim": 3}, "refuted", marks=LONG),
    pytest.param(
        "clip(l2, 1) | laplace(1) | laplace(2)",
        {"epsilon": "1.7", "delta": "0.05", "dim": 3},
        "proven",
        marks=LONG,
    ),
    ("clip(l2, 1) | gaussian(3) | gaussian(4)", {"epsilon": 1, "delta": 2e-3, "dim": 3}, "proven"),
    ("clip(l2, 1) | laplace(1) | clip(l2, 1) | laplace(2)", {"epsilon": "1.5", "dim": 4}, "open"),
    ("encode | laplace(1) | clip(l2, 1) | laplace(2)", {"epsilon": "1.5", "dim": 4}, "refuted"),
    ("clip(l2, 1) | laplace(1) | round", {"epsilon": 1, "dim": 3}, "refuted"),
    ("clip(l2, 1) | laplace(1) | clip(l2, 1)", {"epsilon": 1, "dim": 3}, "refuted"),
    ("clip(l2, 1) | gaussian(1) | normalise", {"epsilon": "0.1", "delta": 1e-3, "dim": 3}, "refuted"),
    ("clip(l2, 1) | laplace(1) | minmax", {"epsilon": 1, "dim": 3}, "open"),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("pipeline", "claim", "verdict"), ROUND_TRIPS, ids=lambda value: str(value)[:40])
def test_what_follows_is_accepted(pipeline, claim, verdict):
    found = verify(certify(check(pipeline, **claim)))
    assert found.ok
    assert found.verdict == verdict
    assert found.established[-1].endswith(f"the claim is {verdict}" if verdict != "open" else "do not decide the claim")


def test_what_has_no_text_has_no_certificate():
    noise = Additive(Mixture(0, (("0.5", Laplace(1)), ("0.5", Laplace(2)))))
    verdict = check(Pipeline((Clip("linf", "0.5"), noise), dim=1), epsilon="0.1", delta=1e-3)
    with pytest.raises(InputError, match="does not describe all of it"):
        certify(verdict)


def test_a_mechanism_made_in_python_has_one():
    assert verify(certify(check(Pipeline((Clip("linf", "0.5"), Additive(OneSided(2))), dim=1), epsilon=5))).ok


def test_a_saved_certificate_is_read(tmp_path):
    save(check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4), tmp_path / "claim.json")
    assert verify(tmp_path / "claim.json").claim == "pipeline"
    assert verify(str(tmp_path / "claim.json")).ok


def test_weaker_statements_verify_as_weaker():
    """1 is what holds, and what a pair shows; twice as much holds too, and half as much is shown."""
    given = claim("clip(l1, 1) | laplace(2)", 3)
    pair = [block("0.9", "-0.9")]
    shown = [lower("laplace", 1, value, pair) for value in ("0.5", "0.8")]
    holds = [upper("laplace", 1, value) for value in ("1", "2", "1000")]
    sentences = verify(sealed("proven", given, *holds, *shown)).established
    assert sentences[1] == "step 1 (upper): by laplace, epsilon 1 holds at delta 0"
    assert sentences[3] == "step 3 (upper): by laplace, epsilon 1000 holds at delta 0"
    assert sentences[5] == "step 5 (lower): by laplace, epsilon is at least 0.8 at delta 0"


def test_what_is_proven_at_a_smaller_delta_is_proven():
    given = claim("clip(l1, 1) | laplace(2)", 1, "0.1")
    assert verify(sealed("proven", given, upper("laplace", 1, 1))).ok
    assert verify(sealed("proven", given, upper("worst-shift", 1, "0.9", "0.05"))).ok  # 1 − e^−0.05 = 0.0488


def test_all_failures_are_collected():
    given = claim("clip(l1, 1) | laplace(2)", 1, parameters={"C": exactly(7)})
    found = examine(sealed("refuted", given, upper("laplace", 1, "0.9"), lower("laplace", 1, 3, [block(1, -1)])))
    assert not found.ok
    assert [failure[:6] for failure in found.failures] == ["step 1", "step 2"]
    with pytest.raises(CertificateError) as caught:
        verify(sealed("refuted", given, upper("laplace", 1, "0.9"), lower("laplace", 1, 3, [block(1, -1)])))
    assert caught.value.failures == found.failures
    assert str(caught.value) == found.failures[0]


def test_an_event_is_held_to_its_probabilities():
    """At or beyond the first value: P = 1/2, and e^−1.8 times that at the second value, for a scale of 1."""
    given = claim("clip(l1, 1) | laplace(1)", 1)
    event = "every differing coordinate lies at or beyond the first value, on the side away from the second"
    witness = {"step": "witness", "noise": 1, "at": 1, "pair": [block("0.9", "-0.9")], "event": event}
    logs = {"log_p": ["-0.69314719", "-0.69314718"], "log_q": ["-2.49314719", "-2.49314718"]}
    shown = lower("laplace", 1, "1.7", [block("0.9", "-0.9")])
    assert verify(sealed("refuted", given, {**witness, **logs}, shown)).ok
    for name, wrong in (("log_p", "-0.6931471"), ("log_q", "-2.4931473")):
        with pytest.raises(CertificateError, match=f"{name} does not follow from the pair and the noise"):
            verify(sealed("refuted", given, {**witness, **logs, name: exactly(wrong)}, shown))
    with pytest.raises(CertificateError, match="is not known for laplace noise"):
        verify(sealed("refuted", given, {**witness, **logs, "event": "the moon is full"}, shown))
    with pytest.raises(CertificateError, match="the event does not break the claim"):
        verify(sealed("open", {**given, "epsilon": exactly(2)}, {**witness, **logs}, shown))


def test_the_verifier_stands_alone():
    """None of the modules whose work it checks is imported."""
    code = """
import sys
import dpassay.evidence.verifier
made = "api claims core exact pipeline evidence.certificate evidence.schema evidence.verdict evidence.grids"
print([name for name in made.split() if f"dpassay.{name}" in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# ── What a mistaken analysis would write ────────────────────────────────────────────────────────


def _nothing(*_):
    pass


def _with_an_empty_filter(region, q):
    others = min(region.ones, region.dim - region.ones)
    blocks = (Block(one, zero, n) for one, zero, n in ((ONE, 0 * ONE, region.ones), (0 * ONE, ONE, others)) if n)
    return Pair(tuple(blocks))


MISTAKEN = [
    (Sparse, "farthest", _with_an_empty_filter, "bloom(1, 1) | flip(0.75)", {"epsilon": "0.5"}),
    (Sparse, "farthest", _with_an_empty_filter, "bloom(2, 2) | onesided(1)", {"epsilon": 0, "delta": "0.64"}),
    (Sparse, "farthest", _with_an_empty_filter, "bloom(9, 9) | bits(1/2, 1/2, 1/(1+exp(3)))", {"epsilon": 20}),
    (categories, "_check_single", _nothing, "category(2) | leak(1/4)", {"epsilon": 0, "delta": "0.25", "dim": 3}),
    (categories, "_check_single", _nothing, "hash(2) | flip(3/4)", {"epsilon": 2, "dim": 3}),
    (categories, "_all_names", lambda *_: True, "hash(1) | onehot(3) | flip(0.9)", {"epsilon": 4}),
    (categories, "_all_names", lambda *_: True, "hash(2) | onehot(3) | bits(0.9, 0.5, 0.5)", {"epsilon": 2}),
    (categories, "_all_names", lambda *_: True, "minmax | onehot(3) | laplace(1)", {"epsilon": 1}),
    (categories, "_all_names", lambda *_: True, "clamp(0, 0.5) | category(3) | flip(0.9)", {"epsilon": 1}),
    (categories, "_all_names", lambda *_: True, "query(l1, 0.1) | category(3) | flip(0.9)", {"epsilon": 1}),
    (
        propagated_pairs,
        "_inwards",
        lambda _, ends: ends,
        "rows | squash(sigmoid) | binary(1, 0) | flip(0.9)",
        {"epsilon": 0},
    ),
    (propagated_pairs, "_inwards", lambda _, ends: ends, "squash(sigmoid) | binary(1, 0) | flip(0.9)", {"epsilon": 0}),
]


@pytest.mark.long(every=2)
# The names of tests must not hold addresses of functions: two processes would not agree on them.
@pytest.mark.parametrize(("owner", "name", "mistake", "pipeline", "claim"), MISTAKEN, ids=[m[3] for m in MISTAKEN])
def test_a_verdict_of_a_mistaken_analysis_is_not_accepted(monkeypatch, owner, name, mistake, pipeline, claim):
    """It becomes no decided verdict, as `check` asks the verifier; nor a certificate, if `check` did not ask."""
    monkeypatch.setattr(owner, name, mistake)
    asked = check(pipeline, **{"dim": 1, **claim})
    assert asked.open
    assert "no certificate could be written" in asked.reason
    monkeypatch.setattr(api, "confirmed", lambda verdict: verdict)
    verdict = check(pipeline, **{"dim": 1, **claim})
    assert verdict.word in ("proven", "refuted")
    with pytest.raises(DpassayError, match=rf"cannot show that the claim is {verdict.word}|takes one value"):
        certify(verdict)
