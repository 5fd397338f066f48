"""Forged certificates about sampled records: a theorem of one record's pair where others are drawn beside it."""

import pytest

from dpassay import CertificateError, verify
from forging import block, claim, exactly, lower, sealed

REPLACED, ADDED = {"neighbours": "replace-record"}, {"neighbours": "add-remove-record"}
NEAR_ONE = "0.99999999999999999999999999999999999"


def shown(theorem, noise, epsilon, delta, pair, **more):
    """δ at ε is at least this."""
    return lower(theorem, noise, epsilon, pair, delta, quantity="delta", **more)


@pytest.mark.parametrize(
    ("text", "relation", "claimed", "step"),
    [
        (  # every sum is at least 200
            "subsample(100, 200) | clamp(2, 5) | laplace(1) | clamp(0, 6)",
            REPLACED,
            ("0.5", "0.1"),
            shown("laplace", 2, "0.5", "0.33", [block(5, 2)]),
        ),
        (  # the same if all records are drawn
            "subsample(200, 200) | clamp(2, 5) | laplace(1) | clamp(0, 6)",
            REPLACED,
            ("0.5", "0.1"),
            shown("laplace", 2, "0.5", "0.6", [block(5, 2)]),
        ),
        (  # at most 0.3130 is true
            "subsample(9, 10) | clip(l2, 1) | laplace(1) | clamp(-1, 1)",
            REPLACED,
            ("1", "0.32"),
            shown("laplace", 2, "1", "0.335", [block(NEAR_ONE, f"-{NEAR_ONE}")]),
        ),
        (  # δ(2) is at most 0.666
            "subsample(9, 10) | clip(l2, 1) | gaussian(0.5) | normalise(l2)",
            REPLACED,
            ("2", "0.69"),
            shown("post-processing", 2, "2", "0.7", [block(NEAR_ONE, f"-{NEAR_ONE}")], thresholds=[exactly(0)]),
        ),
        (  # on a sphere no other record is small
            "poisson(0.5) | normalise(l2) | laplace(1) | clamp(-0.36, 0.36)",
            ADDED,
            ("0.8", "0.021"),
            shown("laplace", 2, "0.8", "0.0219", [block("0.3535", "-0.3535", 2)]),
        ),
        (  # one number: −1 or 1, half of the time
            "poisson(0.5) | normalise(l2) | laplace(1) | clamp(-0.6, 0.6)",
            ADDED,
            ("0.2", "0.08"),
            shown("laplace", 2, "0.2", "0.09", [block("0.5", "-0.5")]),
        ),
        (  # 0.6201 is true
            "poisson(0.5) | clip(l1, 0.3) | staircase(1, 1, 0.5)",
            REPLACED,
            ("0.7", "0"),
            lower("poisson", 2, "0.99", [block("0.29", "-0.29")]),
        ),
        (  # what no record shows against the record is not amplified: 0.65 is true
            "poisson(0.5) | clamp(0, 3) | laplace(1) | clamp(-5, 0)",
            ADDED,
            ("1", "0"),
            lower("post-processing", 2, "2.3", [block(3, 0)], thresholds=[exactly("-4.9999")]),
        ),
        (  # behind another noise two records are no farther apart than a record and none
            "poisson(0.5) | laplace(1) | clip(l1, 1) | laplace(2)",
            REPLACED,
            ("0.7", "0"),
            lower("poisson", 3, "0.99", [block("0.99999", "-0.99999")]),
        ),
    ],
)
def test_a_pair_of_one_record_says_nothing_where_others_are_drawn(text, relation, claimed, step):
    dim = sum(block["count"] for block in step["pair"])
    certificate = sealed("refuted", claim(text, *claimed, dim=dim, **relation), step)
    with pytest.raises(CertificateError):
        verify(certificate)


def test_a_loss_of_both_orders_is_not_amplified_unless_both_occur():
    """Exponential noise reveals records below others; records from 0 to 1 only raise the sum."""
    text = "poisson(0.5) | clamp(0, 1) | onesided(1)"
    certificate = sealed("refuted", claim(text, 1, **ADDED), lower("one-sided", 2, "inf", [block(1, 0)]))
    with pytest.raises(CertificateError, match="the sum with the record comes first"):
        verify(certificate)


# Where only a part of a ball or of a sphere is reached, the opposite of a record is not one.
@pytest.mark.parametrize(
    ("text", "claimed", "step"),
    [
        (  # at most 0.7458 is true
            "poisson(0.9) | clamp(0, 1.6) | normalise(l2) | onesided(0.5)",
            ("1", "0.8"),
            shown("one-sided", 3, "1", "0.84", [block(1, 0, 2)], at=2),
        ),
        (  # all records are 1, and 0.0025 is true
            "poisson(0.01) | clamp(2, 2.5) | normalise(l2) | onesided(0.5, 0.25, 0)",
            ("0.1", "0.005"),
            shown("mixture", 3, "0.1", "0.0089", [block("2.4", "2.1")], at=2),
        ),
        (  # the density ratio of a sum with the record is at most (1 + e^√2)/2, and no output is impossible
            "poisson(0.5) | squash(sigmoid) | normalise(l2) | onesided(1)",
            ("3", "0"),
            lower("one-sided", 3, "inf", [block("0.5", "0.25", 2)], at=2),
        ),
        (
            "poisson(0.5) | clamp(0, 1) | clip(l2, 0.5) | onesided(1)",
            ("3", "0"),
            lower("one-sided", 3, "inf", [block(1, 0, 2)], at=2),
        ),
        (
            "poisson(0.5) | minmax | normalise(l2) | onesided(1)",
            ("3", "0"),
            lower("one-sided", 3, "inf", [block(1, 0), block(0, 1)], at=2),
        ),
    ],
)
def test_a_part_of_a_sphere_has_no_opposites(text, claimed, step):
    dim = sum(block["count"] for block in step["pair"])
    certificate = sealed("refuted", claim(text, *claimed, dim=dim, **ADDED), step)
    with pytest.raises(CertificateError, match="the sum with the record comes first"):
        verify(certificate)


def test_a_whole_sphere_has_opposites():
    certificate = sealed(
        "refuted",
        claim("poisson(0.5) | normalise(l2) | onesided(1)", 3, dim=2, **ADDED),
        lower("one-sided", 2, "inf", [block(1, 0), block(0, 0)], at=1),
    )
    assert verify(certificate).verdict == "refuted"
