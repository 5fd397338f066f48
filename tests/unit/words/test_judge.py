"""Verdicts on word mechanisms: what is proven, refuted by which words, and what rules for other words reveal."""

import math

import numpy as np
import pytest

import dpassay
from dpassay.core.guarantee import MetricDP, PureDP, RenyiDP
from dpassay.errors import InputError
from dpassay.words.judge import check_words
from dpassay.words.mechanisms import TEM, SanText
from dpassay.words.vocabulary import Vocabulary

LINE = Vocabulary(("low", "middle", "high"), np.array([[0.0], [1.0], [2.0]]))
ENDS, BETWEEN = 1 + math.exp(-1) + math.exp(-2), 1 + 2 * math.exp(-1)  # Z for epsilon 2


def test_santext_on_a_line_by_hand():
    verdict = dpassay.check("santext", epsilon=2, vocabulary=LINE)
    exact = 1 + math.log(BETWEEN / ENDS)  # an end against the middle
    assert verdict.proven
    assert verdict.epsilon.lower <= exact <= verdict.epsilon.upper
    assert verdict.epsilon.width < 1e-12
    assert verdict.guarantee == MetricDP(2, "l2")
    assert "'middle'" in verdict.reason


def test_the_same_mechanism_is_refuted_at_less():
    verdict = check_words(SanText(LINE, 2), epsilon=1.1)
    assert verdict.refuted
    seen = verdict.witness
    assert (seen.x, seen.y, seen.output, seen.distance) in [
        ("low", "middle", "low", 1.0),
        ("high", "middle", "high", 1.0),
    ]
    assert seen.log_p.lower <= -math.log(ENDS) <= seen.log_p.upper
    assert seen.log_q.lower <= -1 - math.log(BETWEEN) <= seen.log_q.upper


def test_plain_dp_is_the_largest_loss():
    for epsilon, word in ((2.0001, "proven"), (1.9999, "refuted")):
        verdict = check_words(SanText(LINE, 2), PureDP(epsilon))
        assert verdict.word == word
        assert verdict.epsilon.lower <= 2 <= verdict.epsilon.upper
    assert check_words("santext", epsilon=2, delta=0, vocabulary=LINE).guarantee == PureDP(2)


def test_two_words_lose_half_of_what_is_claimed():
    two = Vocabulary(("a", "b"), np.array([[0.0], [3.0]]))
    verdict = check_words("santext", epsilon=4, vocabulary=two)
    assert verdict.epsilon.lower <= 2 <= verdict.epsilon.upper


def test_a_mechanism_by_l1_keeps_no_claim_in_linf():
    """Both words of a diagonal pair are 2 apart in l1 and 1 in linf: epsilon/2 per unit becomes epsilon."""
    two = Vocabulary(("a", "b"), np.array([[0.0, 0.0], [1.0, 1.0]]))
    verdict = check_words(SanText(two, 3, distance="l1"), MetricDP(2.9, "linf"))
    assert verdict.refuted
    assert verdict.epsilon.lower <= 3 <= verdict.epsilon.upper


def test_squared_distances_are_refuted():
    """0, 1, …, 9 on a line: 1 against 0 at the output 9, whose squared distances are 64 and 81."""
    line = Vocabulary(tuple("abcdefghij"), np.arange(10.0)[:, None])
    verdict = check_words("santext", epsilon=2, vocabulary=line, distance="squared-l2")
    assert verdict.refuted
    first, second = (sum(math.exp(-((x - y) ** 2)) for y in range(10)) for x in (0, 1))
    assert verdict.epsilon.lower == pytest.approx(17 + math.log(first / second), abs=1e-9)
    assert {verdict.witness.x, verdict.witness.output} in ({"b", "j"}, {"i", "a"})


def test_tem_holds_as_published_and_fails_as_the_package_has_it():
    """A word with many near words and one with none: the package weighs the far words of the first by too little."""
    points = np.concatenate([np.zeros(30), [1.01], np.full(30, 2.02)])[:, None]
    words = Vocabulary(tuple(f"w{i}" for i in range(61)), points)
    assert check_words(TEM(words, 1, gamma=1.0), epsilon=1).proven
    verdict = check_words(TEM(words, 1, gamma=1.0, far="ratio"), epsilon=1)
    # From w0: 30 near words of weight 1; the far ones weigh e^-0.5 * 61/30. From w30: 1 near word, 60 far ones.
    far = math.exp(-0.5)
    first, lonely = 30 + far * 61 / 30, 1 + far * 61
    at_first = math.log(1 / first) - math.log(far * 61 / 60 / lonely)
    at_lonely = math.log(1 / lonely) - math.log(far * 61 / 30 / 31 / first)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(max(at_first, at_lonely) / 1.01, abs=1e-9)


def test_custext_tells_groups_apart():
    words = Vocabulary(tuple("abcd"), np.array([[0.0], [9.0], [1.0], [8.0]]))
    verdict = dpassay.check("custext", epsilon=4, vocabulary=words, K=2)
    assert verdict.refuted
    assert verdict.guarantee == PureDP(4)
    assert verdict.epsilon.lower == math.inf
    assert verdict.least_delta == 1
    assert (verdict.witness.x, verdict.witness.y, verdict.witness.log_q.upper) == ("a", "b", -math.inf)
    assert "Within a group the largest loss is 2." in verdict.reason  # two words: half of epsilon


def test_custext_with_one_group_loses_no_more_than_it_claims():
    words = Vocabulary(tuple("abc"), np.array([[0.0], [1.0], [4.0]]))
    verdict = check_words("custext", epsilon=2, vocabulary=words)
    scores = -np.array([[0, 0.25, 1], [1 / 3, 0, 1], [1, 0.75, 0]])
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    exact = (logs[:, None] - logs[None, :]).max()
    assert verdict.proven
    assert verdict.epsilon.lower <= exact + 1e-15
    assert exact - 1e-15 <= verdict.epsilon.upper <= exact + 1e-12
    metric = check_words("custext", epsilon=2, metric="l2", vocabulary=words)
    apart = np.array([[9, 1, 4], [1, 9, 3], [4, 3, 9]])
    assert metric.epsilon.lower == pytest.approx(((logs[:, None] - logs[None, :]).max(axis=2) / apart).max(), abs=1e-12)


@pytest.mark.parametrize("kind", ["unknown", "stop_words", "numbers"])
@pytest.mark.parametrize("rule", ["copied", "dropped"])
@pytest.mark.parametrize("name", ["santext", "custext", "tem"])
def test_what_is_copied_or_dropped_is_given_away(name, rule, kind):
    words = Vocabulary(("cat", "of", "7", "zzyzx"), np.eye(4))
    verdict = check_words(name, epsilon=4, vocabulary=words, **{kind: rule})
    assert verdict.refuted
    assert verdict.epsilon.lower == math.inf
    seen, rules = verdict.witness, verdict.mechanism.rules
    assert rules.rule_of(seen.x, words) == rule
    assert seen.output == (seen.x if rule == "copied" else "")
    drawn = [verdict.mechanism.sample(word, 50, np.random.default_rng(0)) for word in (seen.x, seen.y)]
    assert set(drawn[0]) == {seen.output}
    assert seen.output not in drawn[1]


def test_dropping_every_word_gives_nothing_away():
    words = Vocabulary(("the", "of"), np.eye(2))
    with pytest.raises(InputError, match="every word of the vocabulary is dropped"):
        check_words("santext", epsilon=4, vocabulary=words, stop_words="dropped", unknown="dropped")


def test_unknown_words_replaced_uniformly():
    verdict = check_words("santext", epsilon=2, delta=0, vocabulary=LINE, unknown="replaced")
    # Uniform against an end: at the far end 1/3 over e^-2/Z, at the end itself e^0/Z over 1/3.
    exact = max(2.0, math.log(ENDS / 3) + 2, math.log(3 / ENDS))
    assert verdict.epsilon.lower <= exact <= verdict.epsilon.upper
    far = Vocabulary(("a", "b", "c"), np.array([[0.0], [0.1], [50.0]]))
    verdict = check_words("santext", epsilon=1, delta=0, vocabulary=far, unknown="replaced")
    between = 25 + math.log((1 + math.exp(-0.05) + math.exp(-25)) / (1 + math.exp(-25) + math.exp(-24.95)))
    assert verdict.epsilon.lower <= between <= verdict.epsilon.upper


def test_an_unknown_word_can_be_the_worst():
    """Words with the same vector except one far away; an input never near is worse than that one's neighbours."""
    words = Vocabulary(tuple("abcdefgh"), np.array([[0.0]] * 7 + [[30.0]]))
    verdict = check_words("santext", epsilon=1, delta=0, vocabulary=words, unknown="replaced")
    sums = (7 + math.exp(-15), 1 + 7 * math.exp(-15))
    exact = max(15 + abs(math.log(sums[0] / sums[1])), math.log(sums[0] / 8) + 15)
    assert verdict.epsilon.lower <= exact <= verdict.epsilon.upper


def test_stop_words_replaced_uniformly_are_rows_of_their_own():
    words = Vocabulary(("cat", "the", "dog"), np.array([[0.0], [1.0], [2.0]]))
    verdict = check_words("santext", epsilon=2, vocabulary=words, stop_words="replaced")
    logs = np.array([[0, -1, -2], [0, 0, 0], [-2, -1, 0.0]])
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    losses = (logs[:, None] - logs[None, :]).max(axis=2)
    apart = np.array([[9, 1, 2], [1, 9, 1], [2, 1, 9]])
    assert verdict.epsilon.lower == pytest.approx((losses / apart).max(), abs=1e-12)


def test_what_was_not_stated_is_said():
    assert "only the words of the vocabulary" in check_words("santext", epsilon=2, vocabulary=LINE).warnings[0]
    replaced = check_words("santext", epsilon=2, vocabulary=LINE, unknown="replaced")
    assert "have no vector" in replaced.warnings[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": LINE}, "state the claimed epsilon"),
        ({"epsilon": 2}, "needs a vocabulary"),
        ({"epsilon": 2, "vocabulary": LINE, "delta": 1e-5}, "leave delta out"),
        ({"epsilon": 2, "vocabulary": LINE, "delta": 0, "metric": "l2"}, "leave delta out"),
        ({"epsilon": 2, "vocabulary": LINE, "metric": "cosine"}, "metric must be one of"),
        ({"epsilon": 2, "vocabulary": LINE, "metric": "angle"}, "'low' is zero and has no angle"),
        ({"epsilon": 2, "vocabulary": LINE, "K": 20}, "santext has no parameter 'K'; it has distance"),
        ({"epsilon": 0, "vocabulary": LINE}, "above 0"),
        ({"epsilon": 2, "vocabulary": LINE, "unknown": "kept"}, "copied, dropped or replaced, got 'kept'"),
        ({"guarantee": RenyiDP(2, 1), "vocabulary": LINE}, "not for .2, 1.-Rényi DP"),
    ],
)
def test_bad_claims_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        dpassay.check("santext", **options)


def test_parameters_that_are_no_numbers():
    with pytest.raises(InputError, match="gamma of tem must be a number, got 'far'"):
        check_words("tem", epsilon=2, vocabulary=LINE, gamma="far")
    with pytest.raises(InputError, match=r"K of custext must be a whole number, got '2\.5'"):
        check_words("custext", epsilon=2, vocabulary=LINE, K="2.5")


def test_a_verdict_can_be_shown_and_written(tmp_path):
    verdict = check_words(SanText(LINE, 2), epsilon=1.1)
    data = verdict.to_dict()
    assert data["guarantee"]["kind"] == "metric"
    assert data["witness"]["words"] == [verdict.witness.x, verdict.witness.y]
    assert "two words" in verdict.to_html()
    assert "SanText" not in repr(verdict)
    given_away = check_words("santext", epsilon=2, vocabulary=LINE, unknown="copied")
    assert given_away.to_dict()["witness"]["log_q"] == ["-inf", "-inf"]
    assert "never does" in str(given_away)
