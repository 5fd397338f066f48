"""Claims in files: what may stand there, and errors that name the line."""

import os
from pathlib import Path

import pytest

from dpassay.api import check
from dpassay.claims.claim import CAVEATS
from dpassay.claims.toml import MOST_BYTES, read_claim, read_folder
from dpassay.errors import InputError
from tiers import repetitions

WHOLE = """
# as in the paper, section 3
title = "Their rewriter"
source = "Somebody, 2031, Theorem 2"
pipeline = "clip(l2, C) | laplace(2*C/e)"
epsilon = "2*e"
dim = 16
neighbours = "word"
brief = "clips in l2"
why = "They say so."
expected = "refuted"
people = 1000
caveats = ["per-word", "encoder-training"]

[parameters]
C = 0.1
e = 1
"""


def written(folder: Path, text: str, name: str = "theirs.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_whole_claim(tmp_path: Path) -> None:
    claim = read_claim(written(tmp_path, WHOLE))
    assert (claim.name, claim.title, claim.dim, claim.people) == ("theirs", "Their rewriter", 16, 1000)
    assert claim.caveats == ("per-word", "encoder-training")
    verdict = check(claim)
    assert verdict.word == claim.expected
    assert verdict.guarantee.epsilon == 2
    assert verdict.epsilon.lower == pytest.approx(4)  # √16 · 1
    assert CAVEATS["per-word"] in verdict.warnings
    # 0.1 is read as a decimal: twice it is 0.2 exactly, so noise of scale 0.2 is what 1-DP needs in one dimension.
    assert check(claim, dim=1, epsilon=1).word == "proven"


def test_the_least_claim(tmp_path: Path) -> None:
    claim = read_claim(written(tmp_path, 'pipeline = "query(l1, 1) | laplace(1/eps)"\nepsilon = 0.5'))
    assert check(claim).word == "proven"
    assert claim.expected == ""


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("dim = 16", "dim = 16.5"), 7, ["dim", "whole number", "16.5"]),
        (("dim = 16", "dim = -1"), 7, ["dim", "-1"]),
        (("dim = 16", "dim = true"), 7, ["dim"]),
        (("dim = 16", "dims = 16"), 7, ["unknown key 'dims'; did you mean 'dim'?", "allowed: pipeline, "]),
        (('epsilon = "2*e"', "epsilon = true"), 6, ["epsilon", "number"]),
        (('epsilon = "2*e"', "epsilon = -1"), 6, ["epsilon"]),
        (('epsilon = "2*e"', 'epsilon = "2*e*("'), 6, ["("]),
        (("clip(l2, C)", "clop(l2, C)"), 5, ["unknown stage", "clip"]),
        (("clip(l2, C)", "clip(l2, D)"), 5, ["unknown name 'D'"]),
        (('neighbours = "word"', 'neighbours = "cousins"'), 8, ["cousins", "replace-record"]),
        (('neighbours = "word"', "neighbours = 3"), 8, ["neighbours", "text"]),
        (('expected = "refuted"', 'expected = "maybe"'), 11, ["maybe", "proven, refuted, open"]),
        (("people = 1000", "people = 0"), 12, ["people", "0"]),
        (("people = 1000", "people = 10_000_000_000_000"), 12, ["people", "1,000,000,000,000"]),
        (("people = 1000", 'people = 1000\nname = " "'), 13, ["name must be a text, got ' '"]),
        (('caveats = ["per-word"', 'caveats = ["per-letter"'), 13, ["per-letter", "per-word", "epsilon-learnt"]),
        (('caveats = ["per-word"', 'caveats = [["per-word"]'), 13, ["caveats", "per-word"]),
        (("[parameters]", "[parameters]\nD = 3"), 15, ["among the parameters, but never used", "D"]),
        (('epsilon = "2*e"', 'epsilon = "2*ee"'), 6, ["unknown name 'ee'"]),
        (("[parameters]", "[parameters]\neps = 3"), 15, ["eps", "not a parameter"]),
        (("[parameters]", "[parameter]"), 15, ["parameter", "parameters"]),
        (("C = 0.1", "C = [1]"), 15, ["parameters", "numbers"]),
        (("dim = 16", "dim = = 16"), 7, ["line 7", "TOML"]),
        (("dim = 16", "dim = 16\ndim = 17"), 8, ["line 8"]),
    ],
)
def test_bad_files_name_the_line(tmp_path: Path, change: tuple[str, str], line: int, words: list[str]) -> None:
    assert change[0] in WHOLE
    with pytest.raises(InputError) as caught:
        read_claim(written(tmp_path, WHOLE.replace(*change)))
    said = str(caught.value)
    assert f"line {line}" in said, said
    assert "theirs.toml" in said
    for word in words:
        assert word in said, said


def test_an_empty_file_is_told_once_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_claim(written(tmp_path, ""))
    needs = "every claim needs a pipeline and an epsilon (or rho, or mu)"
    assert str(caught.value).endswith(f"theirs.toml has no pipeline; {needs}")


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_claim(written(tmp_path, 'titel = "x"\nepsilon = true\ndim = "16"'))
    said = str(caught.value).splitlines()
    assert len(said) == 4
    assert said[0].endswith("theirs.toml has no pipeline; every claim needs a pipeline and an epsilon (or rho, or mu)")
    assert "line 2: epsilon must be a number, or a formula of the parameters as a text, got True" in said[2]
    assert "line 3: dim must be a whole number above 0, got '16'" in said[3]
    assert "line 1: unknown key 'titel'; did you mean 'title'?" in said[1]


@pytest.mark.parametrize("text", ["", "epsilon = 1", 'pipeline = "query(l1, 1) | laplace(1)"'])
def test_what_is_missing_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"needs a pipeline and an epsilon|one of epsilon .*, rho or mu; got none"):
        read_claim(written(tmp_path, text))


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("rho = 0.5", "0.5-zCDP"),
        ("mu = 1", "1-GDP"),
        ("epsilon = 2\norder = 8", "(8, 2)-Rényi DP"),
        ('epsilon = 2\nmetric = "l1"', "metric 2-DP in l1"),
    ],
)
def test_other_guarantees(tmp_path: Path, stated: str, said: str) -> None:
    text = f'pipeline = "clip(l2, 1) | gaussian(2)"\ndim = 2\n{stated}'
    assert str(read_claim(written(tmp_path, text)).guarantee) == said


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_claim(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot read"):
        read_claim(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'title = "caf\xe9"')
    with pytest.raises(InputError, match="not UTF-8"):
        read_claim(tmp_path / "latin.toml")
    (tmp_path / "big.toml").write_text("#" * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="more than 1,000,000 bytes"):
        read_claim(tmp_path / "big.toml")


def test_odd_files_are_refused_in_words(tmp_path: Path) -> None:
    for text in ("dim = " + "9" * 5000, "epsilon = " + "[" * 3000 + "]" * 3000):
        with pytest.raises(InputError, match="not TOML"):
            read_claim(written(tmp_path, text))
    deep = 'pipeline = "laplace(1)"\nepsilon = 1\nparameters' + ".a" * repetitions(5_000, 20_000) + " = 1"
    with pytest.raises(InputError, match="line 3: parameters must be a table of numbers"):
        read_claim(written(tmp_path, deep))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="it is not a file"):
        read_claim(tmp_path / "pipe.toml")


def test_formulas(tmp_path: Path) -> None:
    text = 'pipeline = "query(l1, 1) | laplace(1)"\nepsilon = "2*q"\nparameters.q = 0.5\n'
    claim = read_claim(written(tmp_path, text))
    assert claim.guarantee.epsilon == 1
    assert check(claim, epsilon=3).word == "proven"  # the formula is replaced, and with it what only it used
    assert read_claim(written(tmp_path, text.replace("2*q", "ln(2)*q"))).guarantee.epsilon == pytest.approx(0.34657359)
    both = read_claim(written(tmp_path, 'delta = "eps*1e-5"\n' + text))
    assert both.guarantee.delta == pytest.approx(1e-5)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.toml file"):
        read_folder(tmp_path)
    written(tmp_path, WHOLE, "b.toml")
    written(tmp_path, WHOLE, "a.toml")
    (tmp_path / "notes.txt").write_text("not a claim")
    assert [claim.name for claim in read_folder(tmp_path)] == ["a", "b"]
    written(tmp_path, 'name = "a"\n' + WHOLE, "c.toml")
    written(tmp_path, "dim = 3", "d.toml")
    with pytest.raises(InputError) as caught:  # all that is wrong at once
        read_folder(tmp_path)
    assert "also has a claim named 'a'" in str(caught.value)
    assert "d.toml has no pipeline" in str(caught.value)
