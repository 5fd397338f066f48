"""Certificates about words: each kind of evidence holds, and what is changed in it does not."""

import copy
import json
import math

import numpy as np
import pytest

import dpassay
from dpassay.core.guarantee import PureDP
from dpassay.errors import CertificateError, InputError
from dpassay.words.judge import check_words
from dpassay.words.mechanisms import TEM, SanText
from dpassay.words.vocabulary import Vocabulary

WORDS = Vocabulary(
    ("cat", "the", "7", *(f"w{i}" for i in range(30))), np.random.default_rng(4).standard_normal((33, 4))
)
ONE_GROUP = {"K": 40}
CASES = {
    "triangle": (lambda v: check_words("santext", epsilon=4, vocabulary=v), "triangle inequality"),
    "triangle of tem": (lambda v: check_words("tem", epsilon=4, vocabulary=v, gamma=1.5), "triangle inequality"),
    "all pairs": (lambda v: check_words(SanText(v, 4), PureDP(40)), "all pairs"),
    "all pairs per unit": (lambda v: check_words(SanText(v, 4, distance="squared-l2"), epsilon=90), "all pairs"),
    "all pairs and others": (lambda v: check_words(SanText(v, 4), PureDP(40), unknown="replaced"), "all pairs"),
    "all pairs of one group": (lambda v: check_words("custext", epsilon=4, vocabulary=v, **ONE_GROUP), "all pairs"),
    "plain": (lambda v: check_words("santext", epsilon=4, delta=0, vocabulary=v), "pair"),
    "squares": (lambda v: check_words("santext", epsilon=4, vocabulary=v, distance="squared-l2"), "pair"),
    "another metric": (lambda v: check_words(SanText(v, 4, distance="l1"), epsilon=2.5, metric="linf"), "pair"),
    "angles": (lambda v: check_words(SanText(v, 4, distance="angle"), epsilon=2.01, metric="angle"), "pair"),
    "the package's tem": (lambda v: check_words(TEM(v, 4, gamma=1.0, far="ratio"), epsilon=2.1), "pair"),
    "stop words replaced": (
        lambda v: check_words("santext", epsilon=1, delta=0, vocabulary=v, stop_words="replaced"),
        "pair",
    ),
    "groups": (lambda v: check_words("custext", epsilon=4, vocabulary=v), "pair"),
    "copied": (lambda v: check_words("santext", epsilon=4, vocabulary=v, unknown="copied"), "rule"),
    "dropped": (lambda v: check_words("tem", epsilon=4, vocabulary=v, numbers="dropped"), "rule"),
    "stop words copied": (lambda v: check_words("custext", epsilon=4, vocabulary=v, stop_words="copied"), "rule"),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "v.txt"
    rows = zip(WORDS.words, WORDS.vectors.tolist(), strict=True)
    path.write_text("".join(" ".join([word, *map(repr, row)]) + "\n" for word, row in rows))
    return path


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_evidence_holds(case, file, tmp_path):
    make, kind = CASES[case]
    verdict = make(WORDS)
    verdict.save_certificate(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["evidence"]["kind"] == kind
    found = dpassay.verify(tmp_path / "c.json", file)
    assert found.ok
    assert found.verdict == verdict.word


def changed(certificate, place, value):
    found = copy.deepcopy(certificate)
    part = found
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return found


FORGED = [
    ("plain", ("evidence", "loss"), "99.5"),
    ("plain", ("claim", "guarantee", "epsilon"), "20"),
    ("plain", ("claim", "epsilon"), "1.0"),
    ("plain", ("evidence", "output"), "cat"),
    ("plain", ("evidence", "y"), "nobody"),
    ("plain", ("evidence", "x"), None),
    ("plain", ("evidence", "loss"), "inf"),
    ("plain", ("verdict",), "proven"),
    ("squares", ("evidence", "distance"), "0.001"),
    ("squares", ("claim", "parameters", "distance"), "l2"),
    ("squares", ("claim", "guarantee", "epsilon"), "900"),
    ("triangle", ("claim", "guarantee", "epsilon"), "3.9"),
    ("triangle", ("claim", "epsilon"), "4.5"),
    ("triangle", ("claim", "guarantee", "metric"), "linf"),
    ("triangle", ("claim", "guarantee", "metric"), None),
    ("triangle", ("claim", "parameters", "distance"), "squared-l2"),
    ("triangle", ("claim", "rules", "unknown"), "copied"),
    ("triangle", ("claim", "rules", "numbers"), "replaced"),
    ("triangle", ("verdict",), "refuted"),
    ("triangle of tem", ("claim", "parameters", "far"), "ratio"),
    ("all pairs", ("evidence", "at_most"), "5"),
    ("all pairs", ("evidence", "at_most"), "50"),
    ("all pairs", ("claim", "epsilon"), "40"),
    ("all pairs per unit", ("claim", "guarantee", "epsilon"), "2"),
    ("all pairs of one group", ("claim", "parameters", "K"), 5),
    ("groups", ("claim", "parameters", "K"), 40),
    ("groups", ("evidence", "y"), "cat"),
    ("copied", ("claim", "rules", "unknown"), "replaced"),
    ("copied", ("claim", "rules", "unknown"), None),
    ("copied", ("evidence", "x"), "cat"),
    ("copied", ("evidence", "y"), "zzyzx"),
    ("dropped", ("evidence", "y"), "8"),
    ("stop words copied", ("claim", "stop_words"), []),
    ("plain", ("vocabulary", "sha256"), "0" * 64),
    ("plain", ("vocabulary", "words"), 32),
    ("plain", ("vocabulary", "words"), "33"),
    ("plain", ("claim", "epsilon"), "nan"),
    ("plain", ("claim", "epsilon"), 4.0),
    ("plain", ("claim", "mechanism"), "santext2"),
    ("plain", ("evidence",), []),
    ("plain", ("claim",), None),
    ("plain", ("evidence", "more"), 1),
    ("plain", ("evidence", "kind"), ["pair"]),
    ("plain", ("claim", "mechanism"), {}),
    ("plain", ("claim", "rules", "unknown"), [1]),
    ("triangle of tem", ("claim", "parameters", "gamma"), "1e999"),
    ("groups", ("claim", "parameters", "K"), "20"),
    ("plain", ("evidence", "output"), ["cat"]),
]


@pytest.mark.parametrize(("case", "place", "value"), FORGED)
def test_what_is_changed_does_not_hold(case, place, value, file):
    certificate = dpassay.certify(CASES[case][0](WORDS))
    with pytest.raises(CertificateError):
        dpassay.verify(changed(certificate, place, value), file)


def test_another_vocabulary_is_refused(tmp_path):
    certificate = dpassay.certify(CASES["plain"][0](WORDS))
    np.savez(tmp_path / "other.npz", words=np.array(WORDS.words), vectors=np.nextafter(WORDS.vectors, 9))
    with pytest.raises(CertificateError, match="not the vocabulary of this certificate"):
        dpassay.verify(certificate, tmp_path / "other.npz")


def test_the_vocabulary_has_to_be_given():
    certificate = dpassay.certify(CASES["plain"][0](WORDS))
    with pytest.raises(InputError, match="vocabulary=FILE"):
        dpassay.verify(certificate)
    with pytest.raises(InputError, match="cannot read"):
        dpassay.verify(certificate, "nowhere.txt")


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_the_form_of_the_file_does_not_matter(form, tmp_path):
    from safetensors.numpy import save_file

    certificate = dpassay.certify(CASES["squares"][0](WORDS))
    if form == "npz":
        np.savez(tmp_path / "v.npz", words=np.array(WORDS.words), vectors=WORDS.vectors)
    else:
        save_file({"v": WORDS.vectors}, tmp_path / "v.safetensors", metadata={"words": json.dumps(WORDS.words)})
    assert dpassay.verify(certificate, tmp_path / f"v.{form}").ok


def test_a_proof_by_all_pairs_of_many_words_has_no_certificate_and_is_open():
    many = Vocabulary(tuple(f"w{i}" for i in range(1001)), np.random.default_rng(1).standard_normal((1001, 2)))
    verdict = check_words(SanText(many, 1), PureDP(99))
    assert verdict.open
    assert "at most 1,000 words" in verdict.reason
    assert verdict.epsilon.upper == math.inf
    few = Vocabulary(many.words[:300], many.vectors[:300])
    assert check_words(SanText(few, 1), PureDP(99)).proven


def test_words_without_an_angle_between_them_are_not_overlooked(tmp_path):
    parallel = Vocabulary(("a", "b", "c"), np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    np.savez(tmp_path / "v.npz", words=np.array(parallel.words), vectors=parallel.vectors)
    certificate = dpassay.certify(check_words(SanText(parallel, 2), PureDP(99)))
    assert dpassay.verify(certificate, tmp_path / "v.npz").ok
    with pytest.raises(CertificateError, match="loses more than stated"):
        dpassay.verify(changed(certificate, ("claim", "guarantee", "metric"), "angle"), tmp_path / "v.npz")
