"""A budget per author: how many lines are rewritten, what is stated, and that an interruption does not add any."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.text.corpora.records import AuthorLimit, Table
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.rewriters.base import (
    ONE_SENTENCE,
    REPEATED,
    TextGuarantee,
    WeightsGuarantee,
    covering,
    statement,
)
from dpassay.text.rewriters.words import word_level
from dpassay.training.units import gathered
from dpassay.words.vocabulary import Vocabulary

RESPONSE = ("rewrite", "--python", "sample_rewriters:Response", "--epsilon", 2, "--set", "longest=3", "--as-published")
LOUD = ("rewrite", "--python", "sample_rewriters:loud", "--as-published")  # without ε, which takes less time
THREE = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [3.0]]))
SAID = [("ann", "to boston"), ("bob", "to denver"), ("ann", "fares"), ("ann", "from boston"), ("bob", "monday")]


def lines(said):
    return "".join(json.dumps({"text": text, "author": who}) + "\n" for who, text in said)


def authors(path):
    return [json.loads(line)["author"] for line in path.read_text().splitlines()]


def test_an_author_has_so_many_lines_and_the_rest_are_counted(here, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(lines([*SAID, ("cy", "fares")]))
    code, _, err = here(*RESPONSE, "--in", source, "--per-author", 2, "--out", out)
    assert (code, "4 records in" in err, "left out: 1 record beyond --per-author" in err) == (0, False, True)
    assert authors(out) == ["ann", "bob", "ann", "bob", "cy"]
    stated = json.loads((tmp_path / "out.jsonl.json").read_text())
    held = stated["guarantee"]
    assert stated["per"] == "author"
    assert (held["epsilon"], held["claimed_epsilon"]) == (2 * 2 * 3, 2 * 2)  # two lines of three words
    assert held["sentence"] in err
    assert held["composed_of"] == [{"part": "release", "epsilon": 6.0, "delta": 0.0, "times": 2}]
    assert "docs/proofs/composition.md" in held["proofs"]


def test_an_interruption_does_not_raise_the_budget(here, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    options = (*LOUD, "--in", source, "--out", out, "--per-author")
    source.write_text(lines(SAID[:3]) + "broken\n" + lines(SAID[3:]))
    assert here(*options, 2)[0] == 2
    assert authors(out) == ["ann", "bob", "ann"]
    renamed = [("ann again" if who == "ann" else who, text) for who, text in SAID]
    for said, most, message in ((renamed, 2, "another input"), (SAID, 3, "with other options")):
        source.write_text(lines(said))
        code, _, err = here(*options, most, "--resume")
        assert (code, message in err) == (2, True)
    source.write_text(lines(SAID))
    code, _, err = here(*options, 2, "--resume")
    assert (code, "left out: 1 record beyond --per-author" in err) == (0, True)
    assert authors(out) == ["ann", "bob", "ann", "bob"]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("in.txt", "to boston\n", (), "give --in a file ending in .csv"),
        ("in.jsonl", '{"text": "fares"}\n', (), "there is no column 'user'; the columns are text; see --author"),
        ("in.jsonl", '{"text": "fares", "user": null}\n', (), "must be a name or a number, got None"),
        ("in.jsonl", '{"text": "fares", "user": 1}\n', ("--author", "who"), "there is no column 'who'"),
        ("in.csv", "text,user\nfares, \n", (), "line 2: the author, 'user', must be a name"),
        ("in.jsonl", '{"text": "fares", "user": 1}\n', ("--per-author", 0), "--per-author must be a whole number"),
    ],
)
def test_whose_a_text_is_must_be_known(here, tmp_path, name, content, options, message):
    (tmp_path / name).write_text(content)
    code, _, err = here(*LOUD, "--in", tmp_path / name, "--per-author", 1, *options)
    assert (code, message in err) == (2, True)
    assert here(*LOUD, "--in", tmp_path / name, "--author", "user")[0] == 2


def test_a_record_without_an_author_is_left_out_on_request(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"text": "a", "user": 1}\n{"text": "b"}\n{"text": "c", "user": "1 "}\n{"text": "d", "user": 2}\n'
    )
    table = Table(source, skip_invalid=True, authors=AuthorLimit(1))
    with source.open("rb") as stream:
        assert list(table.texts(stream)) == ["a", "d"]  # 1 and "1 " are the same author
    assert (table.skipped, table.beyond) == (1, 1)


def test_epsilon_and_delta_add_up_and_are_rounded_up():
    one = TextGuarantee(0.1, 1e-7, Neighbours("words(3)"), claimed=0.05, caveats=("noted",))
    found = covering(one, lines=3, weights=WeightsGuarantee(0.7, 1e-5, "author", ("a page",), ("public words",)))
    for value, exact in (
        (found.epsilon, 3 * Fraction(0.1) + Fraction(0.7)),
        (found.delta, 3 * Fraction(1e-7) + Fraction(1e-5)),
        (found.claimed, 3 * Fraction(0.05) + Fraction(0.7)),
    ):
        assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 2**52))
    assert found.unit == "author"
    assert "training 0.7 (delta 1e-05) and 3 times release 0.1" in str(found)
    assert (found.proofs[0], found.assumptions[0]) == ("a page", "public words")
    assert "the author is in the training corpus" in found.between
    visible = "how many texts of an author are rewritten, and where they are among the others, is visible"
    assert [visible in covering(TextGuarantee(1), lines=n).not_covered for n in (1, 3)] == [True, True]
    weights = WeightsGuarantee(4, 1e-5, "author")
    assert visible not in covering(TextGuarantee(1), weights=weights).not_covered


def test_weights_that_hide_a_sentence_do_not_hide_an_author():
    weights = WeightsGuarantee(4, 1e-5, "text")
    found = covering(TextGuarantee(50), lines=2, weights=weights)
    assert (found.epsilon, found.delta, ONE_SENTENCE in found.not_covered) == (100, 0, True)
    assert covering(TextGuarantee(50), weights=weights).epsilon == 54
    assert covering(TextGuarantee(50)) == TextGuarantee(50)
    assert covering(TextGuarantee(float("inf")), lines=2).holds is False
    with pytest.raises(InputError):
        AuthorLimit(10**10)


def test_one_name_in_two_encodings_is_one_author(tmp_path):
    """é is one code point or two, which look the same and are canonically equivalent."""
    source = tmp_path / "in.jsonl"
    source.write_text(lines([("Jos\u00e9", "to boston"), ("Jose\u0301", "fares"), (" Jos\u00e9 ", "monday")]))
    table = Table(source, authors=AuthorLimit(1))
    with source.open("rb") as stream:
        assert list(table.texts(stream)) == ["to boston"]
    assert table.beyond == 2
    said = [Utterance("to boston", user="Jos\u00e9"), Utterance("fares", user="Jose\u0301 "), Utterance("a", user="b")]
    assert sorted(map(len, gathered(said, "user", held_out=["x"]).cells)) == [1, 2]


def test_a_rewriting_goes_on_with_the_same_column_of_authors(here, tmp_path):
    """Up to the interruption both columns have the same names; after it the other one would allow a second line."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    said = [{"text": "a", "user": "ann", "who": "ann"}, {"text": "b", "user": "ann", "who": "bob"}]
    first, second = (json.dumps(one) + "\n" for one in said)
    source.write_text(first + "broken\n" + second)
    options = (*LOUD, "--in", source, "--out", out, "--per-author", 1)
    assert here(*options, "--author", "user")[0] == 2
    source.write_text(first + second)
    code, _, err = here(*options, "--author", "who", "--resume")
    assert (code, "with other options" in err) == (2, True)
    assert here(*options, "--author", "user", "--resume")[0] == 0
    assert len(out.read_text().splitlines()) == 1
    assert json.loads((tmp_path / "out.jsonl.json").read_text())["author_column"] == "user"


def test_a_delta_is_never_shown_below_its_value():
    found = covering(TextGuarantee(1, 1.2345612e-6), 3)
    shown = [float(part.split()[0].rstrip("),")) for part in str(found).split("delta ")[1:]]
    assert Fraction(shown[0]) >= Fraction(found.delta) > 3 * Fraction("1.23456e-6")
    assert Fraction(shown[1]) >= Fraction(1.2345612e-6)
    assert "delta 1.2e-05" in str(covering(TextGuarantee(5, 1e-6), 2, WeightsGuarantee(8, 1e-5, "author")))


def test_a_delta_of_one_guarantees_nothing_and_says_why():
    with pytest.raises(InputError, match=r"delta.*of 10,000 texts.*1.*smaller --per-author"):
        covering(TextGuarantee(1, 1e-3), 10_000)


def test_one_text_is_not_in_the_plural():
    assert "at most 1 text is rewritten" in str(covering(TextGuarantee(50), 1))


@pytest.mark.parametrize("kind", ["words(5)", "words(1)", "tokens(3)"])
@pytest.mark.parametrize("lines", [None, 1, 4])
def test_texts_that_must_be_neighbors_are_not_said_to_be_any(kind, lines):
    one = TextGuarantee(3, neighbours=Neighbours(kind), outside="the number of words is visible")
    for weights in (None, WeightsGuarantee(4, 1e-5, "author")):
        if (lines, weights) == (None, None):
            continue
        held = covering(one, lines, weights).to_dict()
        assert "any other" not in held["between"]
        for field in (held["between"], held["sentence"]):
            assert str(Neighbours(kind)) in field
            assert field.endswith("; the number of words is visible")
        assert held["neighbours"] == kind
    assert covering(TextGuarantee(3), 2).between == "an author's texts are rewritten, or any others are instead"


@pytest.mark.parametrize(
    "mechanism",
    [
        word_level.santext(2, vocabulary=THREE, longest=5),
        word_level.madlib(2, vocabulary=THREE, longest=5),
        word_level.custext_as_published(2, vocabulary=THREE, longest=5, K=3, unknown="replaced"),
    ],
    ids=["santext", "madlib", "custext-as-published"],
)
def test_the_statement_of_word_mechanisms_agrees_with_itself(mechanism):
    held = statement(mechanism, covering(mechanism.guarantee, 2))["guarantee"]
    assert held["neighbours"] == "words(5)"
    for field in (held["between"], held["sentence"]):
        assert "two texts that differ in at most 5 words; the number of words is visible" in field


def test_a_statement_of_a_word_mechanism_says_it(here, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(lines(SAID))
    assert here(*RESPONSE, "--in", source, "--per-author", 2, "--out", out)[0] == 0
    held = json.loads((tmp_path / "out.jsonl.json").read_text())["guarantee"]
    assert held["between"] == (
        "an author's texts are rewritten, or others are instead; each text and the one in its place are two texts "
        "that differ in at most 3 words"
    )


@pytest.mark.parametrize("lines", [None, 2])
def test_where_there_is_no_epsilon_none_is_spent_again(lines):
    doubted = TextGuarantee(2, declared_by="mine:RR", doubt="an audit refuted it", caveats=("noted",))
    for none in (doubted, TextGuarantee(math.inf, caveats=("noted",))):
        said = covering(none, lines).not_covered
        assert said[0] == "noted"
        assert not any("again" in one for one in said)
    assert REPEATED in covering(TextGuarantee(2), lines).not_covered
    weights = WeightsGuarantee(4, 1e-5, "author")
    assert not any("again" in one for one in covering(doubted, None, weights).not_covered)
