"""Evidence that is none, repairs of something else, and verdicts that do not follow."""

import json

import pytest
from mpmath import mp, mpf

import oracles
from dpassay import CertificateError, certify, check, verify
from dpassay.evidence.verifier import examine
from forging import block, claim, exactly, lower, rechained, sealed, upper


def test_a_pair_that_sticks_out_by_1e_30():
    given = claim("clip(l1, 1) | laplace(2)", "0.5")
    inside, outside = "0." + "9" * 31, "1." + "0" * 29 + "1"
    assert verify(sealed("refuted", given, lower("laplace", 1, "0.9", [block(inside, "-" + inside)]))).ok
    with pytest.raises(CertificateError, match="the second vector lies outside"):
        verify(sealed("refuted", given, lower("laplace", 1, "0.9", [block(inside, "-" + outside)])))


def test_a_pair_where_it_is_not_known_what_comes_in():
    given = claim("clip(l2, 3) | round | laplace(2)", "1.5")
    pair = [block("2.9", "-2.9")]
    assert verify(sealed("refuted", given, lower("laplace", 2, "2.9", pair, at=1))).ok
    with pytest.raises(CertificateError, match="not known which pairs can come in at stage 2"):
        verify(sealed("refuted", given, lower("laplace", 2, "2.9", pair, at=2)))


GRIDS = [("1e-300", "1"), ("1000000", "1"), ("0.01", "1000000"), ("1e-9", "0"), ("0.7071", "1000000")]


@pytest.mark.parametrize(("step", "tilt"), GRIDS)
def test_absurd_grids_prove_nothing_false(step, tilt):
    # The true δ of 8 coordinates with a shift of 1 each, by the oracle's exact sum.
    true = oracles.laplace_sum_delta([("1", 8)], "4")
    grid = {"step": exactly(step), "tilt": exactly(tilt)}
    for sign, word in ((-1, "proven"), (1, "refuted")):
        delta = mp.nstr(true * (1 + sign * mpf("1e-6")), 30)
        given = claim("clip(linf, 1) | laplace(2)", 4, delta, dim=8)
        size = "0." + "9" * 31
        shown = lower("laplace", 1, 4, [block(size, "-" + size, 8)], delta, quantity="delta", grid=grid)
        assert not examine(sealed(word, given, upper("worst-shift", 1, 4, delta, grid=grid) if sign < 0 else shown)).ok


@pytest.mark.parametrize(("field", "value"), [("step", "0"), ("step", "-1"), ("step", "1e7"), ("tilt", "-1")])
def test_grids_that_cannot_be(field, value):
    grid = {"step": exactly("0.01"), "tilt": exactly(1), field: exactly(value)}
    with pytest.raises(CertificateError, match=rf"field steps\[1\]\.grid\.{field} must be"):
        verify(sealed("proven", claim("clip(l1, 1) | laplace(2)", 1), upper("laplace", 1, 1, grid=grid)))


@pytest.mark.parametrize("order", ["1.0000000001", "1." + "0" * 50 + "1", "1000000000000"])
def test_absurd_orders_prove_nothing_false(order):
    true = oracles.laplace_sum_delta([("0.5", 16)], "4")  # the even pair of an l2 ball, which shows this much
    given = claim("clip(l2, 1) | laplace(1)", 4, mp.nstr(true * mpf("0.999"), 20), dim=16)
    step = upper("renyi", 1, 4, mp.nstr(true * mpf("0.999"), 20), order=exactly(order))
    assert not examine(sealed("proven", given, step)).ok


@pytest.mark.parametrize("order", ["1", "1." + "0" * 300 + "1", "0", "-1", "1e13", "inf"])
def test_orders_that_cannot_be(order):
    with pytest.raises(CertificateError, match=r"field steps\[1\]\.order"):
        verify(sealed("proven", claim("clip(l1, 1) | laplace(2)", 1), upper("renyi", 1, 1, order=exactly(order))))


TILTS = [("1e-9", 4), ("0.5", 4), ("5", 4), ("200", 4), ("1000000", 4), ("5", 64), ("1000000", 64)]


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("tilt", "dim"), TILTS)
def test_absurd_tilts_prove_nothing_false(tilt, dim):
    even, epsilon = {4: ("0.5", "1.5"), 64: ("0.125", "2.5")}[dim]  # of the even pair, whose l2 norm is 1
    true = oracles.laplace_sum_delta([(even, dim)], epsilon)
    low, high = (mp.nstr(true * mpf(factor), 20) for factor in ("0.999", "1.2"))
    for theorem in ("levels", "saddlepoint"):
        step = upper(theorem, 1, epsilon, low, tilt=exactly(tilt))
        assert not examine(sealed("proven", claim("clip(l2, 1) | laplace(2)", epsilon, low, dim=dim), step)).ok
    good = upper("levels", 1, epsilon, high, tilt=exactly(tilt))
    if tilt == "5":
        assert verify(sealed("proven", claim("clip(l2, 1) | laplace(2)", epsilon, high, dim=dim), good)).ok


@pytest.mark.parametrize(
    ("radius", "dim", "evidence"),
    [
        ("1", 16, {}),
        ("1", 16, {"tilt": exactly(0)}),
        ("30", 16, {"tilt": exactly(1)}),
        ("20", 64, {"tilt": exactly(1)}),
    ],
)
def test_levels_need_a_tilt_and_a_small_ball(radius, dim, evidence):
    given = claim(f"clip(l2, {radius}) | laplace(2)", 4, "0.5", dim=dim)
    with pytest.raises(CertificateError, match=r"needs its tilt, above 0|levels are for norms|levels are too coarse"):
        verify(sealed("proven", given, upper("levels", 1, 4, "0.5", **evidence)))


def test_levels_need_two_coordinates():
    given = claim("clip(l2, 1) | laplace(2)", "0.9", "0.1")
    with pytest.raises(CertificateError, match="two or more coordinates"):
        verify(sealed("proven", given, upper("levels", 1, "0.9", "0.1", tilt=exactly(1))))


@pytest.mark.parametrize(
    ("query", "holds"), [("counts(l1, 1)", True), ("counts(l1, 1.5)", False), ("counts(l2, 1)", False)]
)
def test_several_records_move_whole_answers_as_far_as_known_alone(query, holds):
    given = claim(f"{query} | discrete_laplace(1)", 4, dim=4, neighbours="group(2)")
    assert examine(sealed("proven", given, upper("discrete-laplace", 1, 4))).ok == holds


@pytest.mark.parametrize("noise", [0, 2, 3, 100])
def test_noise_where_there_is_none(noise):
    with pytest.raises(CertificateError, match="there is no noise at this stage"):
        verify(sealed("proven", claim("clip(l1, 1) | laplace(2) | decode", 1), upper("laplace", noise, 1)))


# ── Repairs and decisions ───────────────────────────────────────────────────────────────────────


def repair(pipeline, noise=1, epsilon=1):
    return {**upper("laplace", noise, epsilon), "step": "repair", "pipeline": pipeline}


def test_a_repair_speaks_of_the_same_neighbours():
    refuted = claim("query(l1, 1) | laplace(1/2)", 1, neighbours="query"), lower("laplace", 1, "1.9", [block(0, 1)])
    assert verify(sealed("refuted", *refuted, repair("query(l1, 1) | laplace(1)"))).ok
    others = (
        "query(l1, 0.5) | laplace(1/2)",
        "query(l1, 0.999999999) | laplace(0.999999999)",
        "clip(l1, 1/2) | laplace(1)",
    )
    for other in others:
        with pytest.raises(CertificateError, match="is about different neighbors from those of the claim"):
            verify(sealed("refuted", *refuted, repair(other)))
    for wrong in ("", "query(l1, 1) | laplace(0.999999999)", "query(l2, 1) | laplace(1)"):
        assert not examine(sealed("refuted", *refuted, repair(wrong))).ok


BOUNDS = {
    "proven": upper("laplace", 1, 1),
    "refuted": lower("laplace", 1, "0.99", [block("0.999", "-0.999")]),
    "weaker": upper("laplace", 1, 2),
}


@pytest.mark.parametrize("verdict", ["proven", "refuted", "open"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_only_what_follows_is_decided(verdict, bound):
    given = claim("clip(l1, 1) | laplace(2)", "0.5" if bound == "refuted" else 1)
    follows = {"weaker": "open"}.get(bound, bound)
    assert examine(sealed(verdict, given, BOUNDS[bound])).ok == (verdict == follows)


def test_bounds_that_decide_the_claim_are_not_called_undecided():
    pair = [block("0.9999", "-0.9999")]
    given = claim("clip(l1, 1) | laplace(1)", 1, "0.1")
    found = examine(sealed("open", given, lower("laplace", 1, "1.5", pair, "0.1")))
    assert found.failures == ("step 2 (decision): open does not follow: by these bounds the claim is refuted",)


def test_the_verdict_at_the_top_is_the_last_step():
    certificate = sealed("proven", claim("clip(l1, 1) | laplace(2)", 1), upper("laplace", 1, 1))
    with pytest.raises(CertificateError, match="the certificate says refuted, but its last step says proven"):
        verify({**certificate, "verdict": "refuted"})


def test_steps_cannot_be_dropped_exchanged_or_changed():
    right = certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=4, C=1))
    for i in range(1, len(right["steps"]) - 1):
        without = {**right, "steps": [*right["steps"][:i], *right["steps"][i + 1 :]]}
        with pytest.raises(CertificateError, match=rf"step {i} .*changed after it was written"):
            verify(without)
    with pytest.raises(CertificateError, match="must be in order"):
        verify(rechained({**right, "steps": right["steps"][::-1]}))
    text = json.dumps(right).replace("laplace(2*C/eps)", "laplace(2.0*C/eps)", 1)
    with pytest.raises(CertificateError, match=r"step 0 \(claim\): it was changed"):
        verify(json.loads(text))


@pytest.mark.long
def test_a_stated_epsilon_of_a_grid_is_near_what_the_grid_gives():
    """δ of 32 equal coordinates at ε = 3: stated within a thousandth of the exact sum, and not above it."""
    shift = mp.nstr(2 / mp.sqrt(32) / 2, 40)
    true = oracles.laplace_sum_delta([(shift, 32)], "3")
    certificate = certify(check("clip(l2, 1) | laplace(2)", epsilon=3, delta="1e-6", dim=32))
    stated = [mpf(s["delta"][0]) for s in certificate["steps"] if s.get("quantity") == "delta"]
    assert stated
    for delta in stated:
        assert true * (1 - mpf("1e-3")) < delta <= true
