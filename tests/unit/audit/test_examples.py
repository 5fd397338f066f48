"""Examples of outputs: safe, short, and never without the part in which they differ."""

import numpy as np
import pytest

from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.examples import LONGEST, SHOWN, _text, examples, shown_apart
from dpassay.audit.outputs.outputs import read
from dpassay.audit.testing.decision_rule import DecisionRule
from dpassay.pipeline.mechanism import Failure


def rule_by(score) -> DecisionRule:
    """Names the first input up to -1 and the second from 1 on."""
    return DecisionRule(CustomDistinguisher(lambda rows: [score(row) for row in rows]), -1.0, 1.0, 1, 1, 1.0, 1.0)


NEITHER = rule_by(lambda row: 0.0)


def of(first, second, rule=NEITHER):
    found, _ = examples([read(first), read(second)], rule)
    return [[example for example in found if example.input == side] for side in (0, 1)]


def test_each_says_what_the_rule_named_and_none_comes_twice():
    first, second = of(
        ["no", "no", "yes", "well", "so"], ["yes"] * 9, rule_by(lambda row: {"no": -1, "yes": 1}.get(row, 0))
    )
    assert [(one.output, one.named) for one in first] == [("'no'", 0), ("'yes'", 1), ("'well'", None)]
    assert [(one.output, one.named) for one in second] == [("'yes'", 1)]


def test_outputs_for_which_this_input_is_named_come_before_others_though_they_are_rare():
    first, _ = of([f"a{i}" for i in range(40)] + ["rare"], ["b"], rule_by(lambda row: -1.0 if row == "rare" else 0.0))
    assert [one.output for one in first] == ["'a0'", "'a1'", "'rare'"]
    assert len(first) == SHOWN


@pytest.mark.parametrize("place", [0, 50, 99])
@pytest.mark.parametrize("wrap", [str, lambda text: {"rest": ["x"], "text": text}, lambda text: (1, [text])])
def test_the_differing_part_of_a_long_output_is_always_shown(place, wrap):
    rng = np.random.default_rng(0)

    def text(word):
        words = rng.choice(["lorem", "ipsum", "dolor"], 100).tolist()
        words[place] = word
        return wrap(" ".join(words))

    first, second = of([text("secret") for _ in range(9)], [text("public") for _ in range(9)])
    assert all("secret" in one.output and "public" not in one.output for one in first)
    assert all("public" in one.output for one in second)
    assert all(len(one.output) < LONGEST + 30 for one in first + second)


def test_the_differing_coordinate_of_a_long_vector_is_always_shown():
    rows = np.random.default_rng(0).normal(size=(2, 40, 300))
    rows[1, :, 217] += 50
    first, second = of(rows[0], rows[1])
    assert all("output[217] = " in one.output and one.output.endswith("of 300 numbers") for one in first + second)
    rows[1, :, 217], rows[1, :, 30] = np.nan, 7.0
    first, second = of(rows[0], rows[1])
    assert all("output[217] = nan" in one.output and "output[30] = 7" in one.output for one in second)


def test_the_last_bits_of_numbers_are_shown():
    first, second = of([0.1 + 0.2], [0.3])
    assert (first[0].output, second[0].output) == ("0.30000000000000004", "0.3")


def test_what_a_terminal_would_obey_is_escaped():
    class Rude(dict):
        def __repr__(self):
            return "red\x1b[31m\nline"

    class Broken(dict):
        def __repr__(self):
            raise RuntimeError

    first, second = of(["\x1b[2J\u202e", Rude()], [Broken(), "\ud800"])
    assert [one.output for one in first] == [r"'\x1b[2J\u202e'", r"red\x1b[31m line"]
    assert [one.output for one in second] == ["a Broken", r"'\ud800'"]


def test_a_failure_is_shown_with_what_it_said_and_its_exception_is_kept():
    error = ValueError("no such word")
    found, kept = examples([read(["a"]), read([Failure("ValueError", "no such word", error)])], NEITHER)
    assert found[1].output == "fails: ValueError: no such word"
    assert kept is error


@pytest.mark.parametrize(
    ("x", "y"), [("a" * 5000 + "b", "a" * 5000 + "c"), ("b" + "a" * 500, "a" * 500), ("a", "a" * 999)]
)
def test_two_long_inputs_are_cut_where_they_differ(x, y):
    first, second = shown_apart(x, y, 100)
    assert first != second
    assert max(len(first), len(second)) <= 102


def test_numbers_in_lists_are_shown_without_their_types():
    assert _text([np.float64(0.5), (np.int64(2),), {"a": np.bool_(True)}]) == "[0.5, (2,), {'a': True}]"
