"""A claim that the verifier cannot follow stays open; what it follows now, and forged cousins that it must refuse."""

import math

import pytest

from dpassay import MetricDP, certify, check, verify
from dpassay.claims.claim import Claim
from dpassay.claims.judge import quick_check
from dpassay.evidence.verifier import examine
from forging import block, claim, exactly, lower, sealed, upper

# Two noises with a clamp between them: the prover knows a limit that the verifier has no theorem for.
UNFOLLOWED = "laplace(1) | clamp(0, 1) | staircase(1, 1, 0.4)"


def test_what_the_verifier_cannot_follow_is_open() -> None:
    verdict = check(UNFOLLOWED, epsilon="0.6", dim=1)
    assert verdict.open
    assert "no certificate could be written" in verdict.reason
    assert verdict.epsilon.lower == 0
    assert verdict.epsilon.lower_from == "nothing"
    assert verdict.epsilon.upper >= 1  # the prover's own upper end stays
    assert verdict.witness is None
    assert not verdict.repairs
    assert verify(certify(verdict)).verdict == "open"
    assert quick_check(Claim("two noises", UNFOLLOWED, epsilon="0.6", dim=1))[0] == "open"


def test_a_claim_as_large_as_any_that_can_be_stated_has_a_certificate() -> None:
    verdict = check("query(l1, 1) | laplace(1)", epsilon="1e300")
    assert (verdict.word, verify(certify(verdict)).verdict) == ("proven", "proven")


@pytest.mark.parametrize("delta", [None, 0.1])
def test_a_choice_among_unbounded_scores_that_keeps_the_largest_is_refuted_by_a_pair(delta: float | None) -> None:
    verdict = check("topk(1) | softmax(1)", dim=7, epsilon=50, delta=delta)
    assert (verdict.word, verify(certify(verdict)).verdict) == ("refuted", "refuted")


# Records that are all 1: one more moves each coordinate of the sum by 1, so that ε is 1/scale times the dimension.
@pytest.mark.parametrize(("neighbours", "records"), [("add-remove-record", 1), ("group(3)", 3)])
@pytest.mark.parametrize("text", ["clamp(0, 1/3) | clamp(1, 2)", "minmax | clamp(1, 4)", "bloom(2, 2) | clamp(1, 4)"])
def test_constant_records(text: str, neighbours: str, records: int) -> None:
    dim = 1 if text.startswith("bloom") else 2
    numbers = 2 if text.startswith("bloom") else dim
    truth = records * numbers / 4
    for epsilon, word in ((truth * 4, "proven"), (truth * 0.999, "refuted")):  # above, limits are not looked at closely
        verdict = check(f"{text} | laplace(4)", epsilon=epsilon, dim=dim, neighbours=neighbours)
        assert verify(certify(verdict)).verdict == word


# A function gives some other constant, which may be as large as one likes, and stays unknown behind other stages.
@pytest.mark.parametrize("between", ["encode", "encode | squash(tanh)", "encode | clamp(0, 1)", "encode | repeat(2)"])
def test_a_constant_that_a_function_gave_is_not_known(between: str) -> None:
    text = f"clamp(0, 1/3) | clamp(1, 2) | {between} | laplace(4)"
    noise = text.count("|")
    about = claim(text, 1, neighbours="add-remove-record")
    for step in (upper("laplace", noise, 1), upper("laplace", noise, 0)):
        assert not examine(sealed("proven", about, step)).ok
    shown = lower("laplace", noise, "0.2", [block(1, 0, 2 if "repeat" in between else 1)])
    assert not examine(sealed("refuted", {**about, "epsilon": exactly("0.1")}, shown)).ok


def test_a_constant_is_not_exceeded() -> None:
    """The pair names what one record adds; a forged one with more shows no more."""
    about = claim("clamp(0, 0.5) | clamp(1, 2) | laplace(4)", "0.26", neighbours="add-remove-record")
    for pair in ([block(2, 0)], [block(1, 0)], [block(1, -1)], [block("0.5", 0)]):
        assert not examine(sealed("refuted", about, lower("laplace", 2, "0.27", pair))).ok


def metric(text: str, value: object, name: str, dim: int) -> dict:
    plain = claim(text, 0, dim=dim)
    kept = {key: part for key, part in plain.items() if key not in ("epsilon", "delta")}
    return {**kept, "guarantee": {"kind": "metric", "value": exactly(value), "metric": name}}


def shown(theorem: str, noise: int, value: object, name: str, pair: list) -> dict:
    stated = {"kind": "metric", "value": exactly(value), "metric": name}
    return {"step": "lower", "guarantee": stated, "theorem": theorem, "noise": noise, "at": noise, "pair": pair}


def accepted(text: str, theorem: str, value: float, name: str, dim: int, pair: list, noise: int = 0) -> bool:
    about = metric(text, value * 0.9, name, dim)
    return examine(sealed("refuted", about, shown(theorem, noise, value, name, pair))).ok


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize(("name", "change"), [("l1", 1), ("l2", math.sqrt(2)), ("linf", 2)])
def test_noisy_max_per_unit_of_distance(noise: str, name: str, change: float) -> None:
    text = f"noisymax({noise}, 0.5)"
    assert accepted(text, "noisy-max", 2 * change * 0.999999, name, 4, [])
    assert not accepted(text, "noisy-max", 2 * change * 1.000001, name, 4, [])
    assert not accepted(text, "noisy-max", 2 * change * 0.999999, name, 1, [])  # one score is always the largest
    assert not accepted(f"clamp(0, 1) | {text}", "noisy-max", 2 * change * 0.999999, name, 4, [], 1)
    assert not accepted("exponential(2)", "noisy-max", 2 * change * 0.999999, name, 4, [])


def test_mahalanobis_distances() -> None:
    text = "mahalanobis(0.2, 0.25, 4)"
    along, across = [block(1, 0), block(0, 0, 7)], [block(0, 0, 7), block(1, 0)]
    assert accepted(text, "radial", 4.99999, "mahalanobis", 8, along)
    assert not accepted(text, "radial", 5.00001, "mahalanobis", 8, along)
    assert not accepted(text, "radial", 4.99999, "mahalanobis", 8, across)
    assert not accepted("radial(l2, 0.2)", "radial", 4.99999, "mahalanobis", 8, along)


def test_unit_vectors_are_named_by_their_directions() -> None:
    near = [block("0.001", 0), block(1, 1), block(0, 0, 3)]
    for scale in (1, 50):
        pair = [block(float(b["x"][0]) * scale, b["y"][0], b["count"]) for b in near]
        assert accepted("vmf(3)", "sphere", 2.999, "angle", 5, pair)
        assert not accepted("vmf(3)", "sphere", 3.001, "angle", 5, pair)
    assert not accepted("vmf(3)", "sphere", 2.999, "l2", 5, [block(0, 0, 4), block(0, 1)])  # no direction
    assert not accepted("purkayastha(3)", "sphere", 2.999, "angle", 5, near)
    assert check("vmf(3)", guarantee=MetricDP("2.99", "l1"), dim=5).refuted
