"""What a forger would write: every certificate here states something false, and none of them verifies."""

import pytest
from mpmath import mp, mpf

import oracles
from dpassay import CertificateError, certify, check, verify
from dpassay.core.theorems import Theorem
from dpassay.evidence.verifier import Model, examine, read_step
from forging import block, claim, exactly, lower, sealed, upper

GRID = {"grid": {"step": exactly("0.01"), "tilt": exactly(1)}}
EVIDENCE = ({}, GRID, {"order": exactly(2)})
THEOREMS = sorted({theorem.value for theorem in Theorem} | {"unbounded", "two-noises", "no-noise", "one-sided"})


def ball(radius, dim):
    """Opposite corners of an l2 ball, a little inside."""
    size = mpf(radius) / mp.sqrt(dim) * (1 - mpf("1e-12"))
    return [block(mp.nstr(size, 40), mp.nstr(-size, 40), dim)]


# ── Found by trying: regions and pairs that are nearly right ────────────────────────────────────

NEAR_HALF = ["0.5", "0.5" + "0" * 45 + "1"]
NINES = exactly("0." + "9" * 41)
FALSE_REFUTATIONS = {
    # Two answers are near one another and in the ball: ln((1 − e^−0.4/2)/(e^−0.6/2)) = 0.885 is the most.
    "far from the ball": (
        claim("query(l2, 1) | clip(l2, 0.6) | laplace(1) | normalise", "0.95", neighbours="query"),
        lower("post-processing", 2, "0.96", [block(-99, -100)]),
    ),
    "scores far from the ball": (
        claim("query(l2, 1) | clip(l2, 0.6) | exponential(1)", "0.95", dim=2, neighbours="query"),
        lower("exponential", 2, "0.96", [block(-99, -100), block(0, 0)]),
    ),
    # Copies of one score are equal, so every output is as likely as every other.
    "copies of one score": (
        claim("encode | repeat(5) | exponential(1)", 1),
        lower("unbounded", 2, "inf", []),
    ),
    # No two of these directions are more than a right angle apart: √2 is the most. The zero vector has no opposite.
    "zero is its own opposite": (
        claim("clamp(0, 1) | normalise | vmf(1)", "1.5", dim=2),
        lower("sphere", 2, "1.9", [block(0, 0, 2)], at=0),
    ),
    "a right angle is not a straight one": (
        claim("clamp(0, 1) | normalise | vmf(1)", "1.5", dim=2),
        lower("sphere", 2, "1.9", [block(1, 0), block(0, 1)], at=0),
    ),
    # Along the second axis the eigenvalue is 9, not 1: the distance is 2/3.
    "another axis than the least one": (
        claim("rows | clamp(-1, 1) | mahalanobis(1, 1, 9)", "2.1", dim=2, neighbours="replace-record"),
        lower("radial", 2, "2.2", [block(0, 0), block(-1, 1)]),
    ),
    # Positive numbers are all normalised to 1; rounding makes no difference of it.
    "rounding leaks": (
        claim("squash(sigmoid) | normalise | leak(0.1)", 0, "0.05"),
        lower("mixture", 2, 0, [block("0.3", "0.7")], "0.06", at=1, quantity="delta"),
    ),
    "rounding under normal noise": (
        claim("squash(sigmoid) | normalise | gaussian(1)", 1),
        lower("gaussian", 2, 2, [block("0.3", "0.7")], at=1),
    ),
    # From 0 to 10 and then from 10 to 20: every output is 10.
    "limits that share one number": (
        claim("clamp(-1, 1) | laplace(1) | clamp(0, 10) | clamp(10, 20)", "0.5"),
        lower("post-processing", 1, "1.9", [block(1, -1)], thresholds=[exactly(10)]),
    ),
    "limits that share one number, without a bound": (
        claim("laplace(1) | clamp(0, 10) | clamp(10, 20)", "0.5"),
        lower("unbounded", 0, 100, [], thresholds=[exactly(10)]),
    ),
    # What is 1.5 at most becomes 1.5, which is rounded to 2 like all else: every output is 2.
    "a tie at the limit of a clamp": (
        claim("clamp(-2, 2) | laplace(1) | clamp(1.5, 2.4) | round", "0.5"),
        lower("post-processing", 1, "3.5", [block(2, -2)], thresholds=[exactly("1.5")]),
    ),
    # Between 0 and 1, and then between 0.5 and 2: never above 1.
    "a value that an earlier clamp keeps away": (
        claim("clamp(0, 1) | clamp(0.5, 2) | laplace(1)", "0.6"),
        lower("laplace", 2, "1.4", [block(2, "0.5")]),
    ),
    # The sigmoid of a sigmoid is above 1/2: rounded, every output is 1.
    "bits that are squashed and rounded": (
        claim("binary(0, 1) | flip(0.9) | squash(sigmoid) | squash(sigmoid) | round", 1),
        lower("randomized-response", 1, 4, [block(0, 1, 2)]),
    ),
    "an output that is squashed and rounded": (
        claim("clip(linf, 1) | exponential(1) | squash(sigmoid) | squash(sigmoid) | round", "0.5", dim=2),
        lower("exponential", 1, "0.9", [block(1, -1), block(-1, 1)]),
    ),
    # A sigmoid never is 1, so the integer bit never is 1.
    "the end of an open interval": (
        claim("squash(sigmoid) | binary(1, 0) | flip(0.9)", 1),
        lower("randomized-response", 2, 2, [block("0.5", 1)], at=1),
    ),
    "the end of an open interval of rows": (
        claim("rows | squash(sigmoid) | binary(1, 0) | flip(0.9)", 1, neighbours="replace-record"),
        lower("randomized-response", 3, 2, [block("0.5", 1)], at=2),
    ),
    "a radius that is nearly 1": (
        claim("clamp(-1, 1) | clip(linf, r) | binary(1, 0) | flip(0.9)", 3, parameters={"r": NINES}),
        lower("randomized-response", 3, 4, [block("-0.5", 1)], at=2),
    ),
    "limits that are nearly 1": (
        claim("clip(linf, 1) | clamp(-r, r) | binary(1, 0) | flip(0.9)", 3, parameters={"r": NINES}),
        lower("randomized-response", 3, 4, [block("-0.5", 1)], at=2),
    ),
    # These bits are 0, always.
    "a probability of 0 written as a formula": (
        claim("onehot(4) | bits(sqrt(2)^2-2, sqrt(2)^2-2, 0)", 1),
        lower("randomized-response", 1, "inf", [block(1, 0), block(0, 1), block(0, 0, 2)]),
    ),
    "many such bits": (
        claim("binary(2, 2) | bits(sqrt(2)^2-2, sqrt(2)^2-2, 0)", 1),
        lower("randomized-response", 1, "inf", [block(1, 0, 5)]),
    ),
    # Both keep the first of the equal scores: all three, or the first two of them.
    "ties that are broken in the second's disfavour": (
        claim("clamp(0, 1) | topk(2) | softmax(1)", 5, dim=3),
        lower("top-k", 2, "inf", [block(1, 0), block(0, 0, 2)]),
    ),
    "scores that are not known to differ": (
        claim("clamp(0, 1) | topk(1) | softmax(1)", 5, dim=2),
        lower("top-k", 2, "inf", [block(NEAR_HALF, "0.5"), block("0.5", "0.4")]),
    ),
    "as many as there are": (
        claim("clamp(0, 1) | topk(3) | softmax(1)", 5, dim=3),
        lower("top-k", 2, "inf", [block(0, 1, 2), block(1, 0)]),
    ),
    "more than is outside the other's top k": (
        claim("clamp(0, 1) | topk(2) | softmax(1)", 5, "0.74", dim=3),  # e/(1 + e) = 0.7311
        lower("top-k", 2, 5, [block(0, 1, 2), block(1, 0)], "0.75", quantity="delta"),
    ),
    "a pair that is none": (claim("clip(l1, 1) | laplace(1)", 1), lower("laplace", 1, "1.5", [block(1, 1)])),
    "more coordinates than there are": (
        claim("clip(linf, 1) | laplace(2)", 4, dim=4),
        lower("laplace", 1, 5, [block("0.99", "-0.99", 6)]),
    ),
    "another person's number, too": (
        claim("rows | clamp(0, 1) | laplace(1)", 1, dim=2, neighbours="replace-record"),
        lower("laplace", 2, "1.5", [block("0.1", "0.9", 2)]),
    ),
    "clipping comes after the noise": (
        claim("clip(l2, 1) | laplace(1) | clip(l2, 1) | laplace(2)", "1.5", dim=4),
        lower("laplace", 3, "1.9", ball(1, 4), at=3),
    ),
    "a pair behind the noise": (
        claim("clip(l1, 1) | laplace(2)", 1),
        lower("laplace", 1, 2, [block(5, -5)], at=2),
    ),
    "unequal even and odd places": (
        claim("binary(0, 0) | bits(0.9, 0.5, 0.5)", 2, dim=4),
        lower("randomized-response", 1, 5, [block(1, 0, 4, "even")]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("steps", FALSE_REFUTATIONS.values(), ids=FALSE_REFUTATIONS)
def test_a_false_refutation_does_not_verify(steps):
    assert not examine(sealed("refuted", *steps)).ok


TINY = "0.50000000000000000001"
FALSE_PROOFS = {
    # Probabilities that differ by less than the verifier's 60 digits.
    "bits that differ beyond all digits": (
        claim("binary(0, 1) | bits(0.5 + 1e-65, 0.5 + 1e-65, 0.5 + 2e-65)", 0),
        upper("randomized-response", 1, 0),
    ),
    "all outputs, of which two are kept": (
        claim("clamp(0, 1) | topk(2) | softmax(1)", 9, dim=3),
        upper("exponential", 2, 9),
    ),
    "a range, of which two are kept": (
        claim("clamp(0, 1) | topk(2) | softmax(1)", 9, "0.1", dim=3),
        upper("bounded-range", 2, 9, "0.1", order=exactly(2)),
    ),
    "less than is outside the other's top k": (
        claim("clamp(0, 1) | topk(2) | softmax(1)", 9, "0.73", dim=3),  # e/(1 + e) = 0.7311
        upper("top-k", 2, 9, "0.73"),
    ),
    "less than two tokens show": (
        claim("clamp(0, 1) | topk(2) | softmax(1) | times(2)", 9, "0.92", dim=3),  # 1 − (1 − 0.7311)² = 0.9277
        upper("top-k", 2, 9, "0.92"),
    ),
    "fewer tokens than there are": (  # each loses 1 + ln((1/e + 2)/(1 + 2/e)) = 1.3105, all 26.21
        claim("clamp(0, 1) | softmax(1) | times(20)", 26, dim=3),
        upper("exponential", 1, 26),
    ),
    # 45 ln 10 of the even bit and 55 ln 10 of the odd one, 230.26 together.
    "bits that are nearly alike": (
        claim("binary(0, 1) | bits(1 - 1e-45, 1 - 1e-55, 1e-45)", 230),
        upper("randomized-response", 1, 230),
    ),
    # Each bit shows 2·10⁻²⁰ of itself.
    "probabilities that doubles cannot tell apart": (
        claim(f"binary(0, 0) | bits(0.5, 0.5, {TINY})", 0, dim=3),
        upper("randomized-response", 1, 0, **GRID),
    ),
    "probabilities that 60 digits cannot tell apart": (
        claim(f"binary(0, 0) | bits(0.5, 0.5, 0.5{'0' * 70}1)", 0, dim=3),
        upper("randomized-response", 1, 0, **GRID),
    ),
    # Who is whose neighbour is said by the pipeline's first stage.
    "rows of any two people": (
        claim("rows | clamp(0, 1) | laplace(1)", 1, dim=3),
        upper("laplace", 2, 1),
    ),
    "a query of any two inputs": (claim("query(l1, 1) | laplace(1)", 1), upper("laplace", 1, 1)),
    "one record less, behind the noise": (
        claim("encode | laplace(1) | clip(l1, 1) | laplace(1)", 1, neighbours="add-remove-record"),
        upper("laplace", 3, 1),
    ),
    "another dimension": (claim("clip(l2, C) | laplace(2*C/eps)", 1, dim=32, parameters={"C": exactly(1)}),
                          upper("laplace", 1, 1)),
    "noise that comes after a query only": (claim("clip(l1, 1) | laplace(2)", "0.5", neighbours="query"),
                                            upper("laplace", 1, "0.5")),
    "a tie upon a tie": (claim("clip(l1, 1) | laplace(2)", "0." + "9" * 29 + "85"),
                         upper("laplace", 1, "0." + "9" * 30 + "2")),
}  # fmt: skip


@pytest.mark.parametrize("steps", FALSE_PROOFS.values(), ids=FALSE_PROOFS)
def test_a_false_proof_does_not_verify(steps):
    assert not examine(sealed("proven", *steps)).ok


# ── The first forgeries ─────────────────────────────────────────────────────────────────────────


# The true epsilons are sqrt(32) = 5.66, 768, and 47 at delta 1e-5.
@pytest.mark.parametrize(
    ("pipeline", "dim", "delta"),
    [
        ("clip(l2, 1) | laplace(2)", 32, 0),
        ("squash(tanh) | laplace(2)", 768, 0),
        ("clip(linf, 1) | gaussian(10)", 1024, "1e-5"),
    ],
)
@pytest.mark.parametrize("theorem", THEOREMS)
def test_regions_cannot_be_stated_smaller(pipeline, dim, delta, theorem):
    for evidence in EVIDENCE:
        given = claim(pipeline, 1, delta, dim=dim)
        assert not examine(sealed("proven", given, upper(theorem, 1, 1, delta, **evidence))).ok
        region = {"kind": "box", "dim": dim, "sides": [{"low": exactly(-1), "high": exactly(1), "count": 1}]}
        with pytest.raises(CertificateError, match="field steps"):
            verify(sealed("proven", given, {**upper(theorem, 1, 1, delta), "region": region, "exact": False}))


NAMES = ["2", "pi", "exp", "l2", "eps", "delta", "2*C", "", " C", "least_sigma", "٢", "C" * 201, "tanh", "2e0"]


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_redefines_nothing_that_the_text_says(name):
    forged = claim("clip(l2, 1) | laplace(2)", 1, dim=32, parameters={name: exactly(2000)})
    with pytest.raises(CertificateError, match="would change the meaning of the pipeline's text"):
        verify(sealed("proven", forged, upper("laplace", 1, 1)))


def test_the_dimension_is_the_dimension():
    forged = claim("clip(l2, 1) | laplace(2*sqrt(dim))", 1, dim=32, parameters={"dim": exactly(33)})
    with pytest.raises(CertificateError, match="dim is 32, but the parameters give 33"):
        verify(sealed("proven", forged, upper("laplace", 1, 1)))


@pytest.mark.parametrize(
    "term", ["1e100*(pi - sqrt(pi^2))", "1e100*(sqrt(2)^2 - 2)", "1e100*(exp(1)^2 - exp(2))", "1e30*(A - B)"]
)
@pytest.mark.parametrize("epsilon", [1, 10**6])
def test_a_formula_that_is_known_only_roughly_is_no_number(term, epsilon):
    wide = ["1", "1." + "0" * 40 + "1"]
    given = claim(f"clip(l2, 1) | laplace(2 + {term})", epsilon, dim=32, parameters={"A": wide, "B": wide})
    with pytest.raises(CertificateError, match=r"not known precisely enough|must be positive"):
        verify(sealed("proven", given, upper("laplace", 1, epsilon)))


TEXTS = [
    "clip(l1, 1, 1) | laplace(4)",
    "clip(l1, radius=1, radius=1) | laplace(4)",
    "clip(radius=1, 1) | laplace(4)",
    "clip(l1, 1) | laplace(٤)",
    "clip(l1, 1) | laplace(scale=4, scale=4)",
    "clip(l1, 1) | laplace(4))",
    "clip(l1, 1) | laplace(4) | ",
    "clip(l1, 1)",
    "laplace(4) | query(l1, 1)",
    "clip(l1, 1) | laplace(4) | dropout(0.5)",
    "clip(l1, 1) | repeat(0) | laplace(4)",
    "clip(l1, 1) | repeat(1.5) | laplace(4)",
    "clip(l1, 1) | repeat(10000001) | laplace(4)",
    "clip(l1, 1) | laplace(-4)",
    "clip(l1, 1) | laplace(4) | unknown",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_say_nothing(text):
    assert not examine(sealed("proven", claim(text, 1, dim=3), upper("laplace", 1, 1))).ok


# ── Every theorem's name at every place, and what holds moved by one part in 10⁹ ────────────────

KNOWN = [  # the true epsilon at δ = 0
    ("clip(l1, 1) | laplace(2)", 4, "any", lambda: mpf(1)),
    ("clip(l2, 1) | laplace(2)", 32, "any", lambda: mp.sqrt(32)),
    ("clip(linf, 1) | laplace(2)", 4, "any", lambda: mpf(4)),
    ("squash(tanh) | laplace(2)", 5, "any", lambda: mpf(5)),
    ("rows | clamp(0, 1) | laplace(1)", 6, "replace-record", lambda: mpf(1)),
    ("query(l1, 1) | laplace(1)", 3, "query", lambda: mpf(1)),
    ("clip(l1, 1) | repeat(3) | laplace(2)", 2, "any", lambda: mpf(3)),
    ("clip(l2, 1) | radial(l2, 2)", 5, "any", lambda: mpf(1)),
    ("clip(l2, 1) | mahalanobis(2, 0.25, 9)", 5, "any", lambda: mpf(2)),
    ("normalise | vmf(1.5)", 4, "any", lambda: mpf(3)),
    ("purkayastha(2)", 3, "any", lambda: 2 * mp.pi),
    ("clip(l2, 1) | laplace(2)", 9, "add-remove-record", lambda: mpf(3) / 2),
    ("category(5) | flip(0.9)", 1, "any", lambda: mp.log(36)),
    ("onehot(5) | flip(0.75)", 1, "any", lambda: 2 * mp.log(3)),
    ("bloom(9, 2) | flip(0.75)", 1, "any", lambda: 4 * mp.log(3)),
    ("onehot(5) | bits(0.5, 0.5, 0.2)", 1, "any", lambda: mp.log(4)),
    ("clip(linf, 1) | exponential(1/2)", 2, "any", lambda: mpf(1)),
    ("query(linf, 1) | exponential(1/2)", 7, "query", lambda: mpf(1)),
    ("clip(linf, 1) | noisymax(exponential, 2)", 2, "any", lambda: mp.log(2 * mp.e - 1)),
    ("query(linf, 1) | noisymax(laplace, 2)", 7, "query", lambda: mpf(1)),
    ("clip(linf, 1) | softmax(2)", 2, "any", lambda: mpf(1)),
    ("clip(linf, 1) | topk(2) | softmax(2)", 2, "any", lambda: mpf(1)),
    ("query(linf, 1) | softmax(2) | times(3)", 7, "query", lambda: mpf(3)),
]


def written(value):
    return exactly(mp.nstr(value, 45))


def verifies(model, step):
    try:
        model.check(read_step(step))
    except (CertificateError, ArithmeticError, ValueError, LookupError):
        return False
    return True


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("pipeline", "dim", "neighbours", "truth"), KNOWN, ids=[f"{k[0]} {k[2]}" for k in KNOWN])
def test_only_the_truth_verifies(pipeline, dim, neighbours, truth):
    with mp.workdps(50):
        true = truth()
        below, above = (true * (1 + sign * mpf("1e-9")) for sign in (-1, 1))
        weakest = mp.nstr(below * (1 - mpf("1e-9")), 40)
    model = Model(read_step(claim(pipeline, weakest, dim=dim, neighbours=neighbours)))
    certificate = certify(check(pipeline, epsilon=weakest, dim=dim, neighbours=neighbours))
    assert certificate["verdict"] == "refuted"
    steps = [{k: v for k, v in step.items() if k != "digest"} for step in certificate["steps"]]
    lowers = [step for step in steps if step["step"] == "lower"]
    uppers = [s for s in steps if s["step"] == "upper" and float(s["delta"][0]) == 0]
    assert lowers
    assert uppers
    for step in lowers:
        assert verifies(model, {**step, "epsilon": written(below)})
        for theorem in {step["theorem"], *THEOREMS}:
            assert not verifies(model, {**step, "theorem": theorem, "epsilon": written(above)})
    for step in uppers:
        assert verifies(model, {**step, "epsilon": written(above)})
    for theorem in THEOREMS:
        for noise in range(4):
            for evidence in EVIDENCE:
                step = {**upper(theorem, noise, 1, **evidence), "epsilon": written(below)}
                assert not verifies(model, step)


AT_DELTA = [  # a pipeline, ε, and the true δ there
    ("clip(l1, 1) | laplace(2)", 3, "0.5", lambda: 1 - mp.exp(mpf("-0.25"))),
    ("clip(l2, 1) | gaussian(2)", 3, "1", lambda: oracles.gaussian_delta("1", "1")),
    ("clip(l2, 1) | gaussian(3) | gaussian(4)", 3, "1", lambda: oracles.gaussian_delta("0.4", "1")),
    ("clamp(0, 1) | onesided(1)", 1, "3", lambda: 1 - mp.exp(-1)),
    ("rows | leak(0.25)", 4, "1", lambda: mpf("0.25")),
    ("category(5) | flip(0.9)", 1, "1", lambda: mpf("0.9") - mp.e * mpf("0.025")),
    ("onehot(6) | flip(0.75)", 1, "1", lambda: mpf("0.5625") - mp.e * mpf("0.0625")),
    ("clamp(0, 1) | topk(3) | softmax(1)", 4, "5", lambda: mp.e / (mp.e + 2)),
    ("clamp(0, 1) | topk(3) | softmax(1) | times(2)", 4, "9", lambda: 1 - (2 / (mp.e + 2)) ** 2),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("pipeline", "dim", "epsilon", "truth"), AT_DELTA, ids=[a[0] for a in AT_DELTA])
def test_only_the_true_delta_verifies(pipeline, dim, epsilon, truth):
    with mp.workdps(50):
        true = truth()
        below, above = (true * (1 + sign * mpf("1e-9")) for sign in (-1, 1))
        weakest = mp.nstr(below * (1 - mpf("1e-9")), 40)
    neighbours = "replace-record" if pipeline.startswith("rows") else "any"
    model = Model(read_step(claim(pipeline, epsilon, weakest, dim=dim, neighbours=neighbours)))
    steps = certify(check(pipeline, epsilon=epsilon, delta=weakest, dim=dim))["steps"]
    shown = [{k: v for k, v in s.items() if k != "digest"} for s in steps if s.get("quantity") == "delta"]
    assert shown
    for step in shown:
        assert verifies(model, {**step, "delta": written(below)})
        for theorem in THEOREMS:
            assert not verifies(model, {**step, "theorem": theorem, "delta": written(above)})
    holds = 0
    for theorem in THEOREMS:
        for noise in range(3):
            for evidence in EVIDENCE:
                step = {**upper(theorem, noise, epsilon, **evidence), "delta": written(below)}
                assert not verifies(model, step)
                holds += verifies(model, {**step, "delta": written(above)})
    assert holds
