"""A budget per author: how many lines are rewritten, what is stated, and that an interruption does not add any."""

import json
from fractions import Fraction

import pytest

from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.text.corpora.records import AuthorLimit, Table
from dpassay.text.rewriters.base import ONE_SENTENCE, TextGuarantee, WeightsGuarantee, covering

RESPONSE = ("rewrite", "--python", "sample_rewriters:Response", "--epsilon", 2, "--set", "longest=3", "--as-published")
LOUD = ("rewrite", "--python", "sample_rewriters:loud", "--as-published")  # without ε, which takes less time
SAID = [("ann", "to boston"), ("bob", "to denver"), ("ann", "fares"), ("ann", "from boston"), ("bob", "monday")]


def lines(said):
    return "".join(json.dumps({"text": text, "author": who}) + "\n" for who, text in said)


def authors(path):
    return [json.loads(line)["author"] for line in path.read_text().splitlines()]


def test_an_author_has_so_many_lines_and_the_rest_are_counted(here, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(lines([*SAID, ("cy", "fares")]))
    code, _, err = here(*RESPONSE, "--in", source, "--per-author", 2, "--out", out)
    assert (code, "4 records in" in err, "1 records were left out" in err) == (0, False, True)
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
    assert (code, "1 records were left out" in err) == (0, True)
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


def test_weights_that_hide_a_sentence_do_not_hide_an_author():
    weights = WeightsGuarantee(4, 1e-5, "text")
    found = covering(TextGuarantee(50), lines=2, weights=weights)
    assert (found.epsilon, found.delta, ONE_SENTENCE in found.not_covered) == (100, 0, True)
    assert covering(TextGuarantee(50), weights=weights).epsilon == 54
    assert covering(TextGuarantee(50)) == TextGuarantee(50)
    assert covering(TextGuarantee(float("inf")), lines=2).holds is False
    with pytest.raises(InputError):
        AuthorLimit(10**10)
