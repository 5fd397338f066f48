"""The attack: it names the right candidate where the noise lets it, and an audit counts it."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")

from dpassay import InputError, Open, Refuted, audit  # noqa: E402
from dpassay.text import reconstruction  # noqa: E402
from dpassay.text.reconstruction import far_apart, learn  # noqa: E402
from dpassay.text.rewriters.vectors.latent import LatentRewriter  # noqa: E402
from dpassay.text.rewriters.vectors.release import Release  # noqa: E402


def rewriter(model, mechanism="adept-as-published", epsilon=40.0) -> LatentRewriter:
    return LatentRewriter(model, Release(mechanism, epsilon, dim=model.about.latent, clip=model.about.clip))


@pytest.fixture
def candidates(model, texts) -> list[str]:
    return far_apart(rewriter(model), texts, 12)


def test_the_true_candidate_comes_first_far_more_often_than_by_chance(model, candidates):
    leaky = rewriter(model)
    attack = learn(leaky, candidates, draws=3000)
    rng = np.random.default_rng(1)
    right = sum(
        int((attack.log_posterior(leaky.rewrite([text] * 100, rng)).argmax(axis=1) == i).sum())
        for i, text in enumerate(candidates)
    )
    assert right > 0.5 * 1200  # 100 by chance


def test_probabilities_are_calibrated(model, candidates):
    leaky = rewriter(model, epsilon=10.0)
    attack = learn(leaky, candidates, draws=6000)
    rng = np.random.default_rng(2)
    written = [leaky.rewrite([text] * 200, rng) for text in candidates]
    probabilities = np.concatenate([np.exp(attack.log_posterior(texts)) for texts in written])
    best, said = probabilities.argmax(axis=1), probabilities.max(axis=1)
    right = best == np.repeat(np.arange(12), 200)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert abs(float(said.mean() - right.mean())) < 0.08  # 2,400 texts: eight standard errors
    assert right[said > np.median(said)].mean() > right[said <= np.median(said)].mean()


def test_an_audit_refutes_from_text_alone_what_is_claimed_too_low(model, candidates):
    leaky = rewriter(model)
    attack = learn(leaky, candidates, draws=3000, claimed=1.0)
    verdict = audit(leaky, candidates=candidates, epsilon=1, runs=4000, guesser=attack, until_refuted=True)
    assert isinstance(verdict, Refuted)
    assert verdict.epsilon.lower > 1
    assert verdict.runs < 4000


def test_an_audit_does_not_refute_a_right_mechanism(model, candidates):
    right = rewriter(model, "sqrt-n", 1.0)
    verdict = audit(right, candidates=candidates, epsilon=1, runs=1000, guesser=learn(right, candidates, draws=500))
    assert isinstance(verdict, Open)


def test_it_abstains_where_the_likeliest_is_not_likely(model, candidates):
    leaky = rewriter(model, epsilon=8.0)
    attack = learn(leaky, candidates, draws=4000, claimed=1.0)
    texts = leaky.rewrite(candidates[:1] * 300, np.random.default_rng(3))
    likeliest, scores = np.exp(attack.log_posterior(texts)).max(axis=1), attack(texts)
    unsure = likeliest < attack.least
    assert 0 < unsure.sum() < 300
    assert np.isnan(scores[unsure]).all()
    assert (scores[~unsure].sum(axis=1) == 1).all()
    assert (scores[~unsure].argmax(axis=1) == attack.log_posterior(texts).argmax(axis=1)[~unsure]).all()


def test_the_writers_likelihood_prefers_what_was_written(model, texts):
    quiet = rewriter(model, epsilon=1e4)
    known = far_apart(quiet, texts, 6)
    attack = learn(quiet, known, draws=500)
    written = model.texts(model.vectors(known))
    found = [int(attack.log_likelihood(text).argmax()) for text in written]
    assert found == list(range(6))


def test_texts_are_chosen_far_apart(model, texts):
    private = rewriter(model)
    chosen = far_apart(private, [*texts, *texts], 10)
    assert len(set(chosen)) == 10

    def nearest(some: list[str]) -> float:
        vectors = model.vectors(some)
        gaps = np.abs(vectors[:, None] - vectors).sum(axis=2)
        return float((gaps + np.where(np.eye(len(some)), math.inf, 0)).min())

    assert nearest(chosen) > nearest(texts[:10])
    assert far_apart(private, ["a", "b", "a"], 10) == ["a", "b"]


def test_what_cannot_be_learned_is_said(model):
    with pytest.raises(InputError, match="2 different candidates"):
        learn(rewriter(model), ["same", "same"])
    with pytest.raises(InputError, match="100 draws"):
        learn(rewriter(model), ["a", "b"], draws=5)


def test_an_output_that_is_no_text_is_no_reason_to_stop(model, candidates):
    attack = learn(rewriter(model), candidates, draws=500)
    assert attack([None, "a flight"]).shape == (2, 12)
    assert attack([]).shape == (0, 12)


def test_a_text_that_was_scored_before_has_the_same_score_again(model, candidates, monkeypatch):
    private = rewriter(model, "l1", 20.0)
    attack = learn(private, candidates, draws=400)
    texts = private.rewrite(candidates * 3, np.random.default_rng(2))
    logs = attack.log_posterior(texts)
    expected = np.zeros(logs.shape)
    expected[np.arange(len(texts)), logs.argmax(axis=1)] = 1.0
    expected[np.exp(logs.max(axis=1)) < attack.least] = np.nan
    np.testing.assert_array_equal(attack(texts), expected)
    monkeypatch.setattr(type(attack), "log_posterior", None)  # nothing is computed again
    np.testing.assert_array_equal(attack(texts[::-1]), expected[::-1])
    monkeypatch.undo()
    monkeypatch.setattr(reconstruction, "MOST_KEPT", 1)
    np.testing.assert_array_equal(attack(texts), expected)
