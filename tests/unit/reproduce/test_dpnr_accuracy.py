"""DPNR's two noises: one number per text can be undone, one per element cannot; with a tiny encoder."""

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="classifiers need the extra: pip install 'dpassay[text]'")

from dpassay.errors import InputError
from dpassay.reproduce import dpnr_accuracy, find_figure
from dpassay.reproduce.result import ReproductionOptions
from dpassay.text.models.encoders import Encoder, Remembering
from dpassay.text.rewriters.vectors.dpnr import Dpnr
from dpassay.text.rewriters.vectors.shared_noise import SharedNoise, attack, recovered
from dpassay.training.comparison import TextSource


def letters() -> Encoder:
    """How often a text has each of four letters."""
    return Remembering("letters", 4, lambda texts: [[text.count(letter) for letter in "abcr"] for text in texts])


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    lines = [f"{label},{' '.join([label] * 8)}" for label in "abc" for _ in range(40)]
    order = np.random.default_rng(0).permutation(len(lines))
    path = tmp_path / "letters.csv"
    path.write_text("".join(f"{lines[i]}\n" for i in order), encoding="utf-8")
    return str(path)


def test_one_number_is_added_to_all_elements() -> None:
    code = SharedNoise(Dpnr(letters(), epsilon=0.05, mu=0))
    drawn = code.sample("aa b", 4, np.random.default_rng(7))
    noise = np.random.default_rng(7).laplace(scale=20, size=(4, 1))
    assert drawn == pytest.approx(np.array([1, 0.5, 0, 0]) + noise)
    assert recovered(drawn) == pytest.approx(np.tile([1, 0.5, 0, 0], (4, 1)))
    score = attack(Dpnr(letters(), 0.05), "a b", "a c")
    assert (score(code.sample("b", 3, np.random.default_rng(0))) < 0).all()
    assert (score(code.sample("c", 3, np.random.default_rng(0))) > 0).all()


def test_the_accuracies_and_the_verdicts(corpus: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dpnr_accuracy, "AUDIT_RUNS", 400)
    monkeypatch.setattr(dpnr_accuracy, "STEPS", 300)
    seen: list[float] = []
    options = ReproductionOptions(
        runs=2, corpora=(TextSource(corpus),), progress=seen.append, partial=tmp_path / "p.json"
    )
    result = dpnr_accuracy.dpnr_accuracy(options, letters())
    at = {row["way"]: row for row in result.rows}
    # All eight words are dropped together with probability 1/256 only, so vectors without noise are as good as clean
    # ones. A third of 24 held-out texts is right by chance; noise of scale 20 on 4 elements leaves nothing.
    assert at["clean"]["accuracy"] == 1
    assert at["dropped"]["accuracy"] > 0.9
    assert at["shared"]["accuracy"] == pytest.approx(at["dropped"]["accuracy"], abs=0.1)
    assert at["written"]["accuracy"] < 0.75
    assert at["right"]["accuracy"] < 0.75
    assert at["shared"]["true_epsilon"] == math.inf
    assert at["written"]["true_epsilon"] == pytest.approx(math.log(0.5 * math.exp(0.2) + 0.5), rel=1e-9)
    assert at["right"]["true_epsilon"] == pytest.approx(math.log(0.5 * math.exp(0.05) + 0.5), rel=1e-9)
    shares = [float(share) for share in at["shared"]["accuracies"].split()]
    assert at["shared"]["standard_error"] == pytest.approx(np.std(shares, ddof=1) / math.sqrt(2), abs=1e-4)
    assert "no finite ε holds" in result.found[1]
    assert seen[-1] == 1
    again = dpnr_accuracy.dpnr_accuracy(options, letters())  # from what was kept
    assert again.rows == result.rows


def test_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("a text\n" * 30, encoding="utf-8")
    with pytest.raises(InputError, match="each with a label"):
        dpnr_accuracy.dpnr_accuracy(ReproductionOptions(corpora=(TextSource(str(path)),)), letters())
    assert find_figure("dpnr-accuracy").long
