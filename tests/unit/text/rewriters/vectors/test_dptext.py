"""DPText for real: its noise, what an audit finds of it, what training learns and measures, and its files."""

import json
import math

import numpy as np
import pytest

from dpassay import InputError, Open, Proven, Refuted, audit, check, claims
from dpassay.pipeline.distributions import Laplace, OneSided
from dpassay.text.corpora.corpus import Utterance
from dpassay.text.corpora.dialects import dialects
from dpassay.text.corpora.flights import flights
from dpassay.text.models.encoders import Remembering
from dpassay.text.models.words import ModelVocabulary

torch = pytest.importorskip("torch", reason="DPText is trained with pip install 'dpassay[text]'")
pytest.importorskip("safetensors", reason="models are kept as safetensors: pip install 'dpassay[text]'")

from dpassay.text.rewriters.vectors import dptext  # noqa: E402
from dpassay.text.rewriters.vectors.dptext import (  # noqa: E402
    READINGS,
    Dptext,
    Network,
    Reader,
    load,
    save,
    seen,
    standard_noise,
    train,
)

CLAIMS = {"zero": "dptext-zero", "resampled": "dptext-resampled", "nan": "dptext-nan", "right": "dptext-corrected"}
PUBLISHED = READINGS[:3]
TINY = {"dim": 4, "steps": 6, "hidden": 8, "embedding": 8}
PAIR = ("what would a round trip to edinburgh cost please", "show me decent flights to graz at dusk")


@pytest.fixture(scope="module")
def trained():
    """A tiny system of each reading, its ε learned in a few steps, and its report; `right` has a fixed ε."""
    said = flights(60)
    return {
        reading: train(said, reading, epsilon=1 if reading == "right" else None, seed=1, **TINY) for reading in READINGS
    }


def letters() -> Remembering:
    """The share of each of three letters in a text."""
    return Remembering("letters", 3, lambda texts: [[t.count(c) / max(1, len(t)) for c in "abc"] for t in texts])


def test_the_published_formula_and_what_its_readings_draw():
    """Each number is the quantile of the distribution; for v above ½ the logarithm has no value."""
    v = torch.arange(1, 100, dtype=torch.float64) / 100
    low = v < 0.5
    noise = {reading: standard_noise(v[v != 0.5], reading).numpy() for reading in READINGS}
    low = low[v != 0.5].numpy()
    v = v[v != 0.5].numpy()
    assert OneSided(1).cdf(noise["nan"][low]) == pytest.approx(2 * v[low])
    assert np.isnan(noise["nan"][~low]).all()
    assert np.array_equal(noise["zero"], np.nan_to_num(noise["nan"]))
    assert OneSided(1).cdf(noise["resampled"]) == pytest.approx(v)
    assert Laplace(1).cdf(noise["right"]) == pytest.approx(v)


@pytest.mark.parametrize("reading", READINGS)
def test_noise_in_training_is_finite_at_the_ends(reading):
    """The numbers that training draws next to 0, ½ and 1; at those themselves the logarithm may be infinite."""
    ends = np.array([0, 2**22 - 1, 2**22, 2**23 - 1])
    noise = standard_noise(torch.from_numpy(((ends + 0.5) / 2**23).astype(np.float32)), reading)
    assert noise.isnan().tolist() == [reading == "nan" and end >= 2**22 for end in ends]
    assert not noise.isinf().any()


@pytest.mark.parametrize("reading", READINGS)
def test_the_system_is_the_one_in_the_registry(reading):
    """The same stages except the decoder, which is post-processing."""
    system = Dptext(letters(), epsilon=0.7, reading=reading)
    claimed = claims[CLAIMS[reading]](epsilon="0.7", dim=3)
    assert f"{system.pipeline} | decode" == str(claimed.mechanism)
    ours, theirs = check(system.pipeline, epsilon=0.7, neighbours="any"), check(claimed)
    assert type(ours) is type(theirs) is (Proven if reading == "right" else Refuted)
    assert ours.epsilon == theirs.epsilon
    assert math.isinf(ours.epsilon.upper) == (reading != "right")


def test_noise_around_the_vector_of_the_text():
    text, vector = "a cab", np.array([2, 1, 1]) / 5
    drawn = {r: Dptext(letters(), 2, r).sample(text, 500, np.random.default_rng(0)) - vector for r in READINGS}
    with np.errstate(invalid="ignore"):
        assert all((drawn[reading] < -1e-6).sum() == 0 for reading in PUBLISHED)
        assert {r: bool((abs(drawn[r]) < 1e-6).any()) for r in READINGS} == {r: r == "zero" for r in READINGS}
    assert {r: bool(np.isnan(drawn[r]).any()) for r in READINGS} == {r: r == "nan" for r in READINGS}
    assert (drawn["right"] < 0).any()
    distribution = Dptext(letters(), 2, "right").distribution(text)
    assert distribution.centre == pytest.approx(vector)
    assert distribution.noise.log_density(np.array(0.0)) == pytest.approx(-math.log(2 * 3 / 2))  # b = n/ε = 3/2


def test_vectors_lie_between_0_and_1_in_training_and_after(trained):
    reader = trained["zero"][0].encoder
    texts = [u.text for u in flights(50)]
    vectors = reader.encode(texts)
    assert vectors.shape == (50, 4)
    assert ((vectors > 0) & (vectors < 1)).all()
    assert np.ptp(vectors, axis=0).max() > 1e-4
    numbers = torch.from_numpy(reader.vocabulary.numbers(texts))
    assert reader.network.encode(numbers).detach().numpy() == pytest.approx(vectors, abs=1e-5)


def test_networks_behind_the_noise_see_a_lost_coordinate_as_zero(trained):
    reader = trained["nan"][0].encoder
    lost, middle = np.full((1, 4), 0.9), np.full((1, 4), 0.9)
    lost[0, 2], middle[0, 2] = np.nan, 0.5
    assert seen(torch.from_numpy(lost))[0, 2] == 0
    assert reader.predict(lost) == reader.predict(middle)
    assert reader.texts(lost) == reader.texts(middle)


@pytest.mark.parametrize("reading", PUBLISHED)
def test_the_learned_epsilon_is_refuted_from_noisy_vectors_of_two_utterances(trained, reading):
    system, report = trained[reading]
    assert system.learnt
    assert system.epsilon == report["epsilon"] != dptext.START
    verdict = audit(system, [PAIR], epsilon=system.epsilon, alpha=0.001, runs=20_000, shrink=False)
    assert isinstance(verdict, Refuted)
    assert verdict.warnings == ()  # the sampler follows the distribution it declares


def test_right_noise_is_not_refuted(trained):
    system, report = trained["right"]
    assert (system.epsilon, system.learnt, report["epsilon"]) == (1, False, 1)
    assert isinstance(audit(system, [PAIR], epsilon=1, alpha=1e-6, runs=4000), Open)
    assert isinstance(check(system.pipeline, epsilon=1, neighbours="any"), Proven)


@pytest.mark.parametrize("reading", PUBLISHED)
def test_the_gradient_through_the_noise_reaches_epsilon(trained, reading):
    """ε is learned: it depends on the texts, which a guarantee must not."""
    other, _ = train(flights(60)[::-1], reading, seed=1, **TINY)
    assert trained[reading][0].epsilon != other.epsilon


def test_the_report_says_what_is_left_of_what(trained):
    for reading, (system, report) in trained.items():
        assert (report["reading"], report["dim"], report["learnt"]) == (reading, 4, reading != "right")
        assert (report["texts"], report["held_out"], system.dim) == (48, 12, 4)
        assert report["adversary"] == 1
        shares = set(report) - {"reading", "epsilon", "learnt", "dim", "texts", "held_out", "adversary", "guarantee"}
        assert shares == {
            *(f"{way}{what}" for way in ("", "clean_", "commonest_") for what in ("task", "attacker")),
            "tokens",
            "clean_tokens",
            "chance",
        }
        assert report["chance"] in (report["commonest_attacker"], pytest.approx(1 - report["commonest_attacker"]))
        assert report["chance"] >= 0.5  # of two dialects, one has at least half
        assert all(0 <= report[share] <= 1 for share in shares)
        json.dumps(report, allow_nan=False)


class Letters(Reader):
    """A reader whose vectors are known: where a text has an a and where it has a b."""

    def _read(self, texts):
        return np.array([[float(letter in text) for letter in "ab"] for text in texts], dtype=np.float32)

    def predict(self, vectors):
        return ["a" if vector[0] > 0.5 else "none" for vector in vectors]

    def texts(self, vectors):
        return ["a" for _ in vectors]


def test_the_report_counts_right():
    """The first coordinate is the label, the second the attribute; the noise hides both or neither."""
    shape = dptext.Shape(words=5, latent=2, hidden=2, embedding=2, clip=dptext.BEYOND)
    reader = Letters(Network(shape, 2, 2), ModelVocabulary(("a",)), ("a", "none"), ("b", "none"))
    said = [Utterance(f"{x} {y}", {"a": "a"}.get(x, "none"), {"b": "b"}.get(y, "none")) for x in "ac" for y in "bbd"]
    loud, quiet = (dptext.report(Dptext(reader, epsilon, "right"), said * 50, said * 50) for epsilon in (1e-3, 1e6))
    for report, way in ((quiet, ""), (quiet, "clean_"), (loud, "clean_")):
        assert [report[f"{way}{what}"] for what in ("task", "attacker", "tokens")] == [1, 1, 0.25]
    assert quiet["commonest_task"] == 0.5
    assert quiet["commonest_attacker"] == pytest.approx(2 / 3)
    assert loud["task"] < 0.75  # a fair coin, 300 times: beyond 0.75 with probability below 1e-17
    assert loud["attacker"] < 0.85


def test_the_encoder_learns_against_the_discriminator(monkeypatch):
    """With the task and the words switched off, what the encoder does raises the discriminator's loss."""
    losses = {}
    for adversary in (0.0, 1.0):
        kept = []
        monkeypatch.setattr(dptext, "take_step", lambda optimiser, loss, *rest, kept=kept: kept.append(loss.item()))
        train(flights(40), "right", epsilon=1, adversary=adversary, **{**TINY, "steps": 1})
        losses[adversary] = kept
    guess, without = losses[0.0][0], losses[0.0][-1]
    again, against = losses[1.0][0], losses[1.0][-1]
    assert len(losses[1.0]) == dptext.PRACTICE + 1
    assert again == guess
    assert against == pytest.approx(without - guess)


@pytest.mark.long
@pytest.mark.parametrize("adversary", [0.0, 3.0])
def test_the_attacker_finds_the_dialect_unless_the_adversary_hides_it(adversary):
    """A positive control, with noise too small to hide anything. Both ways the label is kept.

    An attacker who guesses is right more often than `most` with probability below 1e-6: 4.76 standard deviations.
    """
    _, report = train(dialects(1000), "right", epsilon=400, steps=200, adversary=adversary)
    most = report["chance"] + 4.76 * math.sqrt(0.25 / report["held_out"])
    assert most < 0.7
    assert report["task"] > 0.9
    assert (report["attacker"] > most) == (adversary == 0)


def test_training_is_the_same_each_time_and_leaves_the_generator_of_torch_alone(trained):
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    told = []
    system, report = train(flights(60), "nan", seed=1, progress=lambda *step: told.append(step), **TINY)
    assert torch.equal(torch.rand(1), before)
    assert report == trained["nan"][1]
    assert [step[:2] for step in told] == [(i, 6) for i in range(1, 7)]
    assert f"epsilon {system.epsilon:.3g} (learned: not a guarantee)" in told[-1][2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reading": "none"}, "unknown reading 'none'; there are zero, resampled, nan, right"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"dim": 0}, "dim must be a whole number"),
        ({"steps": 0}, "steps must be a whole number"),
    ],
)
def test_parameters_that_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        train(flights(20), **{**TINY, **options})


@pytest.mark.parametrize("weight", [-1, math.inf, math.nan])
def test_a_weight_of_the_adversary_that_is_refused(weight):
    with pytest.raises(InputError, match=r"weight of the adversary must be 0 .* or a positive number"):
        train(flights(20), adversary=weight, **TINY)


def test_epsilon_is_reported_with_what_holds(trained):
    """What holds by the exact check of the pipeline; an ε that was learned holds in no reading."""
    for reading, (system, report) in trained.items():
        exact = check(system.pipeline, epsilon=system.epsilon, neighbours="any")
        assert system.guarantee.epsilon == exact.epsilon.upper
        assert report["guarantee"]["epsilon"] == (1 if reading == "right" else "inf")
        assert report["guarantee"]["claimed_epsilon"] == report["epsilon"]
        assert ("docs/proofs/laplace.md" in report["guarantee"]["proofs"]) == (reading == "right")
        assert ("epsilon was learned" in report["guarantee"]["sentence"]) == system.learnt
    learned = Dptext(letters(), epsilon=1, reading="right", learnt=True).guarantee
    assert (learned.epsilon, learned.holds) == (math.inf, False)


def test_utterances_that_are_refused():
    for given in (flights(4), [Utterance("to rome", "flight")] * 9):
        with pytest.raises(InputError, match="5 utterances or more, each with a label and a private attribute"):
            train(given, **TINY)
    with pytest.raises(InputError, match="nothing to hide"):
        train([Utterance("to rome", "flight", "british")] * 9, **TINY)


def test_only_texts_are_taken():
    system = Dptext(letters(), epsilon=1)
    for attempt in (lambda: system.sample(np.zeros(3), 1, np.random.default_rng(0)), lambda: system.distribution(3)):
        with pytest.raises(InputError, match="takes a text"):
            attempt()


@pytest.fixture
def saved(trained, tmp_path):
    save(trained["nan"][0], tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_system_comes_back(trained, saved):
    system, again = trained["nan"][0], load(saved)
    assert (again.epsilon, again.reading, again.learnt, again.dim) == (system.epsilon, "nan", True, 4)
    assert again.encoder.encode(list(PAIR)) == pytest.approx(system.encoder.encode(list(PAIR)), abs=1e-6)
    noisy = system.release(PAIR, np.random.default_rng(0))
    assert again.encoder.predict(noisy) == system.encoder.predict(noisy)
    assert again.encoder.texts(noisy) == system.encoder.texts(noisy)
    stated = json.loads((saved / "model.json").read_text(encoding="utf-8"))
    assert (stated["format"], stated["system"], stated["learnt"]) == ("dpassay/model/1", "dptext", True)
    assert sorted(path.name for path in saved.iterdir()) == ["model.json", "weights.safetensors"]


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_missing_and_damaged_files_are_named(saved, name):
    whole = (saved / name).read_bytes()
    for damaged in (b"", whole[:-9], b"\x80\x04." + whole):
        (saved / name).write_bytes(damaged)
        with pytest.raises(InputError, match=f"{name} is .*(again|folder)"):
            load(saved)
    (saved / name).unlink()
    with pytest.raises(InputError, match=f"{name} cannot be read"):
        load(saved)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"system": "adept"}, "another system, 'adept', not dptext"),
        ({"reading": "other"}, "is damaged: reading"),
        ({"epsilon": 0}, "is damaged: epsilon"),
        ({"dim": 5}, "does not fit the network .*; train it again"),
        ({"labels": ["only"]}, "does not fit the network"),
        ({"words": ["only"]}, "does not fit the network"),
        ({"sha256": "0"}, "not the one that belongs"),
    ],
)
def test_a_changed_model_is_refused(saved, change, said):
    path = saved / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}))
    with pytest.raises(InputError, match=said):
        load(saved)


def test_a_system_that_was_not_trained_cannot_be_saved(tmp_path):
    with pytest.raises(InputError, match="only a system that was trained"):
        save(Dptext(letters(), epsilon=1), tmp_path / "model")
