"""Bits of real vectors: what is drawn, what holds, how good a classifier is, its files, and its command."""

import json
import math

import numpy as np
import pytest

from dpassay import InputError, claims
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models import encoders
from dpassay.text.models.classifier import Classifier
from dpassay.text.models.encoders import Encoder, Remembering
from dpassay.text.rewriters.vectors import binary
from dpassay.text.rewriters.vectors.binary import BinaryText, load, save, train

TEXTS = [Utterance(text, label) for text, label in (("a a a", "x"), ("b b b", "y")) for _ in range(30)]


def letters() -> Encoder:
    """How often a text has each of two letters."""
    return Remembering("letters", 2, lambda texts: [[text.count(letter) for letter in "ab"] for text in texts])


def ome_loss(strength: float, bit_budget: float, bits: int) -> float:
    """The sum over bits of the larger of |ln p/q| and |ln (1-p)/(1-q)|; even and odd positions differ."""
    zero = 1 / (1 + strength * math.exp(bit_budget))
    ones = (strength / (1 + strength), 1 / (1 + strength**3))
    each = [max(abs(math.log(p / zero)), abs(math.log((1 - p) / (1 - zero)))) for p in ones]
    return sum(each[i % 2] for i in range(bits))


def test_bits_of_a_vector_and_their_probabilities() -> None:
    system = BinaryText(letters(), 6, "symmetric", integer=2, fraction=1)
    # 3 is 0 11 0 and 1 is 0 01 0; each bit is kept with probability e^s/(1+e^s), s = 6/8.
    keep = math.exp(0.75) / (1 + math.exp(0.75))
    wanted = np.where(np.array([0, 1, 1, 0, 0, 0, 1, 0]) == 1, keep, 1 - keep)
    assert system.distribution("aaa b").one == pytest.approx(wanted)
    assert system.bits == 8
    doubled = BinaryText(letters(), 6, "symmetric", integer=2, fraction=1, factor=0.5)  # 1.5 and 0.5
    assert (doubled.distribution("aaa b").one > 0.5).tolist() == [False, False, True, True, False, False, False, True]


@pytest.mark.parametrize(
    ("mechanism", "strength"), [("ome", 3.0), pytest.param("latent-uer", 100.0, marks=pytest.mark.long)]
)
def test_the_true_epsilon_is_the_sum_of_the_bits(mechanism: binary.MechanismName, strength: float) -> None:
    held = BinaryText(letters(), 2, mechanism, integer=2, fraction=1, strength=strength).guarantee
    assert held.epsilon == pytest.approx(ome_loss(strength, 0.25, 8), rel=1e-9)
    assert (held.stated, held.holds, held.as_published) == (2, False, True)


def test_what_holds_as_claimed() -> None:
    for mechanism, strength in (("latent-moue", 100.0), ("ome", 1.0)):
        held = BinaryText(letters(), 2, mechanism, integer=2, fraction=1, strength=strength).guarantee  # type: ignore[arg-type]
        assert held.holds
        assert not held.as_published
        assert held.epsilon <= 2


def test_768_numbers_of_ten_bits() -> None:
    wide = Remembering("wide", 768, lambda texts: np.zeros((len(texts), 768)))
    assert BinaryText(wide, 1, "ome").guarantee.epsilon == pytest.approx(53_013.36, abs=0.01)


def test_a_classifier_on_redrawn_bits() -> None:
    # At λ = 100 even positions keep a one with probability 0.99: OME's bits are as good as clean ones, and symmetric
    # flips at the claimed ε are coins. Two texts, 12 of 60 held out.
    system = BinaryText(letters(), 0.01, "ome", integer=2, fraction=1)
    classifier, report = train(TEXTS, system)
    assert report["accuracy_bits"] == report["accuracy_vectors"] == 1
    assert report["accuracy_redrawn_bits"] > 0.9
    assert report["accuracy_symmetric_at_claimed_epsilon"] < 0.9
    assert report["accuracy_symmetric_at_true_epsilon"] == 1
    assert report["epsilon_true"] == pytest.approx(ome_loss(100, 0.01 / 8, 8), rel=1e-9)
    assert classifier.width == 8
    _, report = train(TEXTS, BinaryText(letters(), 80, integer=2, fraction=1))
    assert "accuracy_symmetric_at_true_epsilon" not in report  # the claim is the truth
    assert report["accuracy_redrawn_bits"] > 0.9


def test_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    system = BinaryText(letters(), 2, "latent-uer", 2, 1, 7.0, 0.5)
    classifier, _ = train(TEXTS[::10], system)
    save(system, classifier, tmp_path / "m")
    read, same = load(tmp_path / "m", letters())
    assert (read.mechanism, read.integer, read.fraction, read.strength, read.factor) == ("latent-uer", 2, 1, 7.0, 0.5)
    assert read.guarantee.epsilon == json.loads((tmp_path / "m" / "model.json").read_text())["true_epsilon"]
    assert same.labels == classifier.labels
    with pytest.raises(InputError, match="for an encoder of 2 elements"):
        load(tmp_path / "m", Remembering("one", 1, lambda texts: np.zeros((len(texts), 1))))
    with pytest.raises(InputError, match="the classifier takes 3 bits"):
        save(system, Classifier(("x",), np.zeros((3, 1)), np.zeros(1)), tmp_path / "n")


def test_bad_settings() -> None:
    for given, said in (
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1, "mechanism": "oem"}, "mechanism must be"),
        ({"epsilon": 1, "mechanism": "ome", "strength": -1}, "lambda"),
        ({"epsilon": 1, "integer": 40}, "integer bits from 0 to 30"),
        ({"epsilon": 1, "factor": 0}, "factor"),
    ):
        with pytest.raises(InputError, match=said):
            BinaryText(letters(), **given)
    with pytest.raises(InputError, match="each with a label"):
        train([Utterance("a", "")] * 9, BinaryText(letters(), 1))


def test_the_command(here, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(encoders, "sentence_encoder", lambda name: letters())
    monkeypatch.setattr(binary, "sentence_encoder", lambda name: letters())
    common = ("--corpus", "dialects:40", "--integer", 2, "--fraction", 1, "--epsilon", 2)
    code, _, err = here("train", "binary", *common, "--mechanism", "ome", "--out", tmp_path / "o")
    assert (code, "the guarantee would be: as published, epsilon" in err, "--as-published" in err) == (2, True, True)
    assert not (tmp_path / "o").exists()
    code, out, _ = here("train", "binary", *common, "--mechanism", "ome", "--as-published", "--out", tmp_path / "o")
    true = ome_loss(100, 0.25, 8)
    assert code == 0
    shown = f"{math.ceil(true * 1e4) / 1e4:.6g}"  # never below the truth
    assert f"what holds: as published, epsilon {shown} (claimed: 2) for any two texts" in out
    assert f"epsilon true: {shown}" in out
    code, out, _ = here("train", "binary", *common, "--out", tmp_path / "s", "--json")
    found = json.loads(out)
    assert (code, found["mechanism"], found["guarantee"]["holds"]) == (0, "symmetric", True)
    for claim, model, expected in (("ome", "o", 1), ("binary-symmetric", "s", 0)):
        code, out, _ = here("check", claim, "--model", tmp_path / model, "--json")
        assert (code, json.loads(out)["claim"]["dim"]) == (expected, 2)
    code, out, _ = here("check", "ome", "--model", tmp_path / "o", "--json", "--runs", 100)
    assert (code, 0 < json.loads(out)["runs"] <= 100) == (1, True)
    code, _, err = here("check", "latent-moue", "--model", tmp_path / "o")
    assert (code, "has the probabilities of ome" in err) == (2, True)
    code, _, err = here("check", "binary-symmetric", "--model", tmp_path / "s", "--epsilon", "0.5")
    assert (code, "has its own epsilon, 2" in err) == (2, True)
    code, _, err = here("train", "binary", *common, "--lambda", "1e300", "--mechanism", "ome", "--out", tmp_path / "x")
    assert (code, "lambda must be a number from 1e-06 to 1,000,000" in err) == (2, True)
    for mechanism, epsilon, message in (
        ("symmetric", "1e-300", "epsilon must be a number from 1e-06"),
        ("symmetric", "1e6", "no bound on the true epsilon is known"),
        ("latent-moue", "1e6", "no bound on the true epsilon is known"),
    ):
        code, _, err = here(
            "train", "binary", *common, "--mechanism", mechanism, "--epsilon", epsilon, "--out", tmp_path / "x"
        )
        assert (code, message in err) == (2, True)
    assert here("train", "binary", *common, "--mechanism", "x", "--out", tmp_path / "x")[0] == 2


def test_the_registry_names_them_all() -> None:
    assert set(binary.CLAIMS.values()) <= set(claims)
