"""Forged certificates about values that neighbours cannot have: on a lattice, in other dimensions, in other steps."""

import pytest

from dpassay import CertificateError, certify, check, verify
from forging import block, claim, exactly, lower, sealed, upper

ADDED, REPLACED, QUERY = ({"neighbours": name} for name in ("add-remove-record", "replace-record", "query"))
GROUP = {"neighbours": "group(2)"}


def shown(theorem, noise, epsilon, delta, pair, **more):
    """δ at ε is at least this."""
    return lower(theorem, noise, epsilon, pair, delta, quantity="delta", **more)


def guaranteed(pipeline, guarantee, dim=1):
    """A claim of another guarantee than (ε, δ)-DP."""
    stated = {key: value for key, value in claim(pipeline, 0, dim=dim).items() if key not in ("epsilon", "delta")}
    return {**stated, "guarantee": guarantee}


def shown_of(theorem, noise, pair, guarantee, **more):
    place = {"noise": noise, "at": noise, "pair": pair}
    return {"step": "lower", "guarantee": guarantee, "theorem": theorem, **place, **more}


def renyi(value):
    return {"kind": "renyi", "value": exactly(value), "order": exactly(2)}


def zcdp(value):
    return {"kind": "zcdp", "value": exactly(value)}


@pytest.mark.parametrize(
    ("stated", "step"),
    [
        # Records are −1, 0 and 1, so sums are integers; the sign of one shows 1/2 at most.
        (
            claim("round | clip(l2, 1) | gaussian(0.1) | normalise", 0, "0.6", **ADDED),
            shown("post-processing", 2, 0, "0.99", [block("0.5", "-0.5")], thresholds=[exactly(0)]),
        ),
        # Φ(0.5/0.3) = 0.9522, and 6/7·Φ(2.5) = 0.852: integers at most 2 apart, of which −4.5 is visible.
        (
            claim(
                "subsample(6,6) | round | clip(l2, 1) | gaussian(0.3) | clamp(-4.5001,-4.4999)", 0, "0.97", **REPLACED
            ),
            shown("post-processing", 3, 0, "0.99", [block("0.999", "-0.909")], thresholds=[exactly("-4.5")]),
        ),
        (
            claim(
                "subsample(6,7) | round | clip(l2, 1) | gaussian(0.2) | clamp(-4.5001,-4.4999)", 0, "0.856", **REPLACED
            ),
            shown("post-processing", 3, 0, "0.8565", [block("0.999", "-0.909")], thresholds=[exactly("-4.5")]),
        ),
        # A function to one coordinate: ε is 2.
        (
            claim("clip(linf,1) | repeat(3) | encode | clip(linf,1) | laplace(1)", 3),
            lower("laplace", 4, 5, [block("0.9", "-0.9")], at=0),
        ),
        (
            claim("binary(5,5) | encode | clip(linf,1) | laplace(1)", 3),
            lower("laplace", 3, 9, [block("31.99", "-0.001")], at=0),
        ),
        (
            claim("repeat(5) | decode | clip(linf,1) | gaussian(1)", 1, "0.9", dim=2),
            shown("gaussian", 3, 1, "0.95", [block(2, -2, 2)], at=0),
        ),
        # Integers that are 1 apart do not have opposite signs, nor opposite orders: ε is 1.
        (
            claim("counts(l1,1) | normalise | laplace(1)", "1.5", **QUERY),
            lower("laplace", 2, "1.9", [block(1, -1)]),
        ),
        (
            claim("counts(l1,1) | minmax | laplace(1)", "1.5", dim=2, **QUERY),
            lower("laplace", 2, "1.9", [block(1, 0), block(0, 1)]),
        ),
        (
            claim("counts(l1,1) | normalise | vmf(1)", "1.5", dim=2, **QUERY),
            lower("sphere", 2, "1.9", [block(1, -1), block(0, 0)]),
        ),
        # One number, normalised, is −1 or 1 (or 0): integers, and ε is 1, 2 if two records are added.
        *(
            (claim(f"normalise(l2) | {between}discrete_laplace(1)", 3, **relation), step)
            for between, noise, copies in (("", 1, 1), ("repeat(2) | ", 2, 2), ("clip(l2, 1) | ", 2, 1))
            for relation in (ADDED, REPLACED, GROUP)
            for step in (
                lower("discrete-laplace", noise, "inf", [block("0.25", "-0.25", copies)]),
                lower("discrete-laplace", noise, "inf", [block("0.5", 0, copies)]),
                lower("discrete-laplace", noise, "inf", [block("0.7", "-0.3", copies)], at=noise),
            )
        ),
        (  # sums of one-hot vectors are integers, as are their copies
            claim("onehot(2) | repeat(2) | discrete_laplace(1)", 3, **ADDED),
            lower("discrete-laplace", 2, "inf", [block("0.5", 0, 2), block(0, 0, 2)]),
        ),
        (
            claim("normalise(l2) | discrete_gaussian(0.3)", 5, "0.5", **ADDED),
            shown("discrete-gaussian", 1, 5, "0.99", [block("0.25", "-0.25")]),
        ),
        (
            claim("poisson(0.9) | normalise(l2) | discrete_gaussian(0.5) | times(2)", "0.1", "0.9", **ADDED),
            shown("poisson", 2, "0.1", "0.98", [block("0.25", "-0.25")]),
        ),
        # Behind the sigmoid of the sigmoid a number is above 1/2, which it approaches only: always rounded to 1.
        *(
            (
                claim("squash(sigmoid) | squash(sigmoid) | round | discrete_laplace(2)", "0.2"),
                lower("discrete-laplace", 3, "0.49", [block(x, y)], at=at),
            )
            for at, x, y in (
                (3, 1, 0),
                (2, "0.7", "0.5"),
                (2, "0.7", "0.4999"),
                (1, "0.5", 0),
                (1, "0.5", "-0.01"),
                (0, 5, "-1e9"),
                (0, 5, "-1e100"),
            )
        ),
        (
            claim("clamp(0, 9) | squash(tanh) | binary(1, 0) | laplace(1)", "0.2"),
            lower("laplace", 3, "0.9", [block(1, 0)], at=2),
        ),
        # Noise between limits has a smaller divergence than noise without: 2.088, and 1.04 for zCDP at that order.
        (
            guaranteed("clamp(-1,1) | bounded_laplace(1,-1,1)", renyi("2.2"), dim=2),
            shown_of("bounded-laplace", 1, [block(1, -1, 2)], renyi("3.1")),
        ),
        (
            guaranteed("clamp(-1,1) | bounded_laplace(1,-1,1)", zcdp("1.1"), dim=2),
            shown_of("bounded-laplace", 1, [block(1, -1, 2)], zcdp("1.5"), order=exactly(2)),
        ),
        # Words are dropped anew in each step: 2·ln(1/2 + e/2) = 1.2402.
        (
            claim("dropout(0.5) | encode | clip(l1,1) | laplace(2) | times(2)", "1.3", neighbours="word"),
            lower("laplace", 3, "1.43", [block("0.9999999", "-0.9999999")]),
        ),
        # No coordinate is 1, as tanh is below it: two sign bits differ at most, 2·ln 9 = 4.394.
        (
            claim("squash(tanh) | clip(l2, 1) | binary(1,0) | flip(0.9)", 5, dim=2),
            lower("randomized-response", 3, "6.5", [block(1, "-0.5"), block(0, "-0.5")], at=2),
        ),
        # Two records move all scores the same way, by 2 at most.
        (
            claim("query(linf, 1, monotone) | noisymax(laplace, 1)", 3, dim=2, **GROUP),
            lower("noisy-max", 1, "3.9", [block(-100, -102), block(0, 2)]),
        ),
        (
            claim("query(linf, 1, monotone) | noisymax(gumbel, 1)", 3, dim=2, **GROUP),
            lower("exponential", 1, "3.9", []),
        ),
    ],
)
def test_what_neighbours_cannot_have_is_refused(stated, step):
    with pytest.raises(CertificateError):
        verify(sealed("refuted", stated, step))


@pytest.mark.parametrize(
    ("text", "theorem", "noise"),
    [
        ("dropout(0.5) | encode | clip(l1,1) | gaussian(0.01) | times(3)", "gaussian", 3),
        ("dropout(0.5) | encode | clip(l1,1) | laplace(0.01) | times(3)", "laplace", 3),
        ("dropout(0.5) | category(2) | flip(0.999999) | times(3)", "randomized-response", 2),
        ("dropout(0.5) | encode | leak(0.9) | times(3)", "mixture", 2),
    ],
)
def test_words_that_are_dropped_in_one_step_are_kept_in_another(text, theorem, noise):
    """A word is kept in one of three steps with probability 7/8, and then the noise hides hardly anything."""
    certificate = sealed("proven", claim(text, 1, "0.51", neighbours="word"), upper(theorem, noise, 1, "0.51"))
    with pytest.raises(CertificateError, match="does not follow"):
        verify(certificate)


@pytest.mark.parametrize("noise", ["gaussian(0.1)", "laplace(0.1)"])
def test_clipped_integers_are_summed_on_a_lattice(noise):
    """The sign of a noisy integer against that of its neighbour: at most 1/2."""
    verdict = check(
        f"round | clip(l2, 1) | {noise} | normalise", epsilon=0, delta=0.6, dim=1, neighbours="add-remove-record"
    )
    assert verdict.open
    assert verdict.delta.lower <= 0.5


@pytest.mark.parametrize(("epsilon", "word"), [(1.2, "refuted"), (1.25, "proven")])
def test_words_are_dropped_in_each_step(epsilon, word):
    text = "dropout(0.5) | encode | clip(l1, 1) | laplace(2) | times(2)"
    assert verify(certify(check(text, epsilon=epsilon, dim=1, neighbours="word"))).verdict == word
