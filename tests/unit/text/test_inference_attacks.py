"""Attacks on what is released: their success is what the noise allows, and ε is at least what it shows."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta, binomtest, norm

from dpassay.cli.text.attack import _print
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.inference_attacks import (
    AttackResult,
    AttackTrials,
    attribute_inference,
    inversion,
    texts_by,
    vectors_by,
)
from dpassay.text.rewriters.base import TextGuarantee
from dpassay.text.rewriters.vectors.dpnr import Dpnr
from dpassay.text.rewriters.vectors.dptext import Dptext
from dpassay.text.rewriters.vectors.release import Release
from statistics_helper import frequency_p_value, generator, require

SAID = [Utterance(f"{word} {i}", attribute=word.upper()) for word in ("left", "right") for i in range(40)]
TRIALS = 3000


class FirstWord:
    """Randomized response on the first word of a text, left or right."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = float(epsilon)

    @property
    def guarantee(self) -> TextGuarantee:
        return TextGuarantee(self.epsilon)

    def rewrite(self, texts, rng):
        kept = rng.random(len(texts)) < 1 / (1 + math.exp(-self.epsilon))
        return ["left" if text.startswith("left") == keep else "right" for text, keep in zip(texts, kept, strict=True)]


class Length:
    """An encoder of one number: 0 for a text of one word, 1 for a longer one."""

    dim, name = 1, "length"

    def encode(self, texts):
        return np.array([[float(len(text.split()) > 1)] for text in texts])


def seed_of(name: str) -> int:
    return int(generator(name).integers(2**31))


def test_the_numbers_of_a_result_are_those_of_the_formulas():
    found = AttackResult.of("inversion", 40, 50, 100, TextGuarantee(2, 1e-3), alpha=0.05)
    expected = binomtest(40, 50).proportion_ci(0.95, "exact")
    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-9)
    least = float(beta.ppf(0.05, 40, 11))
    assert found.lower == pytest.approx(math.log(99 * (1 - 1e-3) / (1 - least) - 99), rel=1e-6)
    assert found.allowed == pytest.approx((math.exp(2) + 99e-3) / (math.exp(2) + 99), rel=1e-12)
    assert found.advantage(found.success) == pytest.approx((0.8 - 0.01) / 0.99)
    assert found.refuted
    assert found.to_dict()["epsilon"] == {"claimed": 2, "delta": 1e-3, "at_least": found.lower}
    both = AttackResult("membership", 6, 10, 2, 0.0, 1.0, 1e-3, steps=2)  # 2ε, and δ(1 + e^ε)
    delta = 1e-3 * (1 + math.e)
    assert both.allowed == pytest.approx((math.exp(2) + delta) / (math.exp(2) + 1), rel=1e-12)


def test_a_claim_that_does_not_hold_is_called_so():
    published = TextGuarantee(8, claimed=2, as_published=True)
    found = AttackResult.of("attribute", right=9, trials=10, answers=2, guarantee=published)
    assert found.epsilon == 2
    assert found.notes == (
        "the claimed epsilon does not hold: as published, epsilon 8 (claimed: 2) for any two texts (local DP)",
    )
    assert not AttackResult.of("attribute", right=9, trials=10, answers=2, guarantee=TextGuarantee(8)).notes


def test_a_guarantee_for_few_words_bounds_no_attack():
    for guarantee in (None, TextGuarantee(math.inf), TextGuarantee(2, neighbours=Neighbours("words(3)"))):
        found = AttackResult.of("attribute", 100, 100, 2, guarantee)
        assert (found.epsilon, found.allowed, found.refuted, found.lower > 2) == (None, None, False, True)
        assert ("the guarantee allows any success" in str(found.notes)) == (guarantee is not None)


def test_an_attribute_is_inferred_as_often_as_the_noise_allows():
    name = "inferred attributes"
    rewriter = FirstWord(1.5)
    found = attribute_inference(texts_by(rewriter), SAID, rewriter.guarantee, AttackTrials(TRIALS, seed=seed_of(name)))
    require(name, frequency_p_value(found.right, TRIALS, 1 / (1 + math.exp(-1.5))))
    assert found.measured == {"success_on_the_texts_themselves": 1.0}
    assert found.answers == 2
    too_low = AttackResult.of("attribute", found.right, found.trials, 2, TextGuarantee(1))
    assert too_low.refuted  # by 13 standard deviations


def test_a_vector_with_laplace_noise_is_inverted_as_often_as_it_allows():
    """Two centres at distance 1 and noise of scale 1/ε: the nearer one is right with probability 1 − e^(−ε/2)/2."""
    name = "inverted vectors of dptext"
    system = Dptext(Length(), epsilon=2, reading="right")
    found = inversion(system, ["rome", "to rome"], system.guarantee, AttackTrials(TRIALS, seed=seed_of(name)))
    require(name, frequency_p_value(found.right, TRIALS, 1 - math.exp(-1) / 2))
    assert found.lower < 2
    assert found.allowed == pytest.approx(1 / (1 + math.exp(-2)))


def test_two_numbers_with_laplace_noise_give_more_away():
    """The losses of both numbers add up, S = L + L′.

    Each is ε with probability ½, −ε with ½e^(−ε), and has the density ¼e^((l−ε)/2) between.
    So P(S < 0) = ¼e^(−ε)(1 + ε) and P(S = 0) = ½e^(−ε), and the guess is wrong with ½e^(−ε)(1 + ε/2).
    """
    name = "inverted vectors of dpnr"
    found = inversion(Dpnr(Two(), epsilon=2, mu=0), ["rome", "to rome"], None, AttackTrials(TRIALS, seed=seed_of(name)))
    require(name, frequency_p_value(found.right, TRIALS, 1 - math.exp(-2) * (1 + 2 / 2) / 2))
    assert 0.5 < found.measured["words_recovered"] <= 1


class Two:
    """An encoder of two numbers that min-max scaling leaves as they are: the first or the second is 1."""

    dim, name = 2, "two"

    def encode(self, texts):
        return np.array([[1.0, 0.0] if len(text.split()) > 1 else [0.0, 1.0] for text in texts])


def test_a_vector_with_gaussian_noise_is_inverted_as_often_as_it_allows():
    name = "inverted gaussian vectors"
    noise = Release("gaussian", 1, 0.01, dim=2, clip=1)
    centres = {"a": [0.6, 0.8], "b": [-0.6, 0.8]}
    system = SimpleNamespace(
        noise=noise, model=SimpleNamespace(vectors=lambda texts: np.array([centres[t] for t in texts]))
    )
    found = inversion(system, ["a", "b"], TextGuarantee(1, 0.01), AttackTrials(TRIALS, seed=seed_of(name)))
    require(name, frequency_p_value(found.right, TRIALS, float(norm.cdf(0.6 / noise.scale()))))
    assert not found.refuted


def test_rewritings_that_share_their_randomness_are_made_one_by_one():
    class OneCoin(FirstWord):
        """The same coin for all texts of a call: counted as independent, its guesses would show far too much."""

        def rewrite(self, texts, rng):
            keep = rng.random() < 1 / (1 + math.exp(-self.epsilon))
            return ["left" if text.startswith("left") == keep else "right" for text in texts]

    name = "attributes one by one"
    found = attribute_inference(
        texts_by(OneCoin(0.5)), SAID, TextGuarantee(0.5), AttackTrials(TRIALS, seed=seed_of(name))
    )
    require(name, frequency_p_value(found.right, TRIALS, 1 / (1 + math.exp(-0.5))))


def test_what_cannot_be_attacked_is_refused():
    released = texts_by(FirstWord(1))
    with pytest.raises(InputError, match="1 of 81 texts have no attribute"):
        attribute_inference(released, [*SAID, Utterance("left")], None)
    with pytest.raises(InputError, match="different values or more, got 1"):
        attribute_inference(released, SAID[:40], None)
    with pytest.raises(InputError, match="2 different candidates or more, got 1"):
        inversion(Dptext(Length(), 2, "right"), ["a", "a"], None)
    assert vectors_by(Dptext(Length(), 2, "nan"))(["a"] * 9, np.random.default_rng(0)).shape == (9, 1)


def test_the_command_attacks_a_rewriter_and_says_what_that_shows(here, tmp_path):
    corpus = tmp_path / "said.csv"
    corpus.write_text("text,attribute\n" + "".join(f"{u.text},{u.attribute}\n" for u in SAID))
    line = ("attack", "--python", "sample_rewriters:Whole", "--epsilon", 0.5, "--corpus", corpus, "--trials", 500)
    code, out, _ = here(*line, "--json")
    (found,) = json.loads(out)["attacks"]
    assert (code, found["attack"], found["refuted"]) == (1, "attribute", True)  # it claims 0.5 and keeps the text
    assert found["success"]["share"] == 1
    code, out, _ = here(*line)
    assert (code, "attribute: refuted: epsilon is at least" in out) == (1, True)
    for options, message in (
        (("--kind", "inversion"), "inversion needs vectors"),
        (("--kind", "membership"), "membership inference needs the folder of a model"),
        (("--kind", "guess"), "unknown attack 'guess'"),
        (("--trials", 0), "--trials must be 1 or more"),
        (("--alpha", 2), "alpha"),
        (("--seed", -1), "--seed must be 0 or more"),
        (("--others", corpus), "--others is for membership"),
    ):
        code, _, err = here(*line, *options)
        assert (code, message in err) == (2, True), err


def test_the_command_attacks_a_trained_autoencoder(here, folder):
    line = ("attack", "--model", folder, "--corpus", "flights:200", "--trials", 200, "--candidates", 20, "--json")
    options = ("--kind", "inversion", "--kind", "attribute", "--mechanism", "l1", "--epsilon", 500)
    code, out, _ = here(*line, *options)
    found = {one["attack"]: one for one in json.loads(out)["attacks"]}
    assert (code, set(found)) == (0, {"inversion", "attribute"})
    assert found["inversion"]["success"]["lower"] > 1 / 20
    assert found["inversion"]["epsilon"]["at_least"] < 500
    code, _, err = here(*line)  # membership: it was trained on other texts
    assert (code, "give the corpus that it was trained on" in err) == (2, True)


def test_without_attributes_the_other_attacks_are_made(here, folder, tmp_path):
    (tmp_path / "some.csv").write_text("label,text\n" + "".join(f"a,show flight {i}\n" for i in range(9)))
    (tmp_path / "others.txt").write_text("".join(f"book flight {i}\n" for i in range(9)))
    some = ("--corpus", tmp_path / "some.csv", "--trials", 5)
    line = ("attack", "--model", folder, *some, "--mechanism", "l1", "--epsilon", 5)
    code, out, err = here(*line, "--others", tmp_path / "others.txt", "--json")
    assert [one["attack"] for one in json.loads(out)["attacks"]] == ["membership", "inversion"]
    assert (code, "attribute inference is left out: not all texts of the corpus have an attribute" in err) == (0, True)
    only = ("attack", "--python", "sample_rewriters:Whole", "--epsilon", 5, *some)
    for asked in ((*line, "--kind", "inversion", "--kind", "attribute"), only):
        code, _, err = here(*asked)
        assert (code, "9 of 9 texts have no attribute to infer" in err) == (2, True)


def test_each_value_of_an_attribute_is_in_both_halves_whatever_the_seed():
    """With two texts of each value, a division of all texts in two would often miss one."""
    few = [Utterance(f"{word} {i}", attribute=word.upper()) for word in ("left", "right") for i in range(2)]
    for seed in range(10):
        assert attribute_inference(lambda texts, rng: texts, few, None, AttackTrials(5, seed=seed)).answers == 2
    with pytest.raises(InputError, match="'RIGHT' has only 1"):
        attribute_inference(lambda texts, rng: texts, few[:3], None, AttackTrials(5))


def test_a_lower_bound_is_shown_rounded_down(capsys):
    _print([AttackResult("attribute", 5, 10, 2, 0.53786, 0.4)], 0.05)
    assert "0.537 " in (out := capsys.readouterr().out)
    assert "at least 0.537860, not 0.4" in out


@pytest.mark.parametrize(("right", "trials"), [(0, 50), (50, 50), (1999, 2000), (37, 50), (1, 3000)])
def test_a_shown_interval_contains_the_interval_and_stays_within_0_and_100(capsys, monkeypatch, right, trials):
    monkeypatch.setenv("COLUMNS", "200")
    one = AttackResult("attribute", right, trials, 2, 0.1, 3.0)
    _print([one], 0.05)
    low, high = map(float, re.search(r"([\d.]+)% to ([\d.]+)%", out := capsys.readouterr().out).groups())
    truth = [100 * float(end) for end in binomtest(right, trials).proportion_ci(method="exact")]
    assert 0 <= low <= truth[0] + 1e-9
    assert truth[1] - 1e-9 <= high <= 100
    assert max(truth[0] - low, high - truth[1]) < 0.1 + 1e-9
    assert "95.3%" in out  # at most 95.2574% at epsilon 3: rounded up


def test_what_has_no_noise_has_no_density_to_invert(here, folder):
    line = ("attack", "--model", folder, "--corpus", "flights:40", "--mechanism", "none", "--kind", "inversion")
    code, _, err = here(*line)
    assert (code, "inversion needs vectors with noise" in err) == (2, True)
    code, _, err = here(*line, "--seed", -1)
    assert (code, "--seed must be 0 or more, got -1" in err) == (2, True)
