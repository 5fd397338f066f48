"""The witness as a person reads it: one sentence, examples, a table whose counts add up, and what weighs most."""

import json
import math
import re

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.distinguishers import fit_all
from dpassay.audit.mechanisms.targets import as_mechanism, draw
from dpassay.audit.outputs.features import FEATURES, FLOAT_BITS, feature_count, feature_name
from dpassay.audit.outputs.outputs import read
from dpassay.audit.witness import table_rows, witness_rows
from dpassay.core.guarantee import make_guarantee
from dpassay.evidence.sampled import Rate, SampledWitness

PAIR = [(0, 1)]


def laplace(x, n, rng):
    return x + rng.laplace(scale=0.5, size=n)


def answer(x, rng):
    return ["yes", "no", "well"][x if rng.random() < 0.8 else rng.integers(3)]


def hidden(x, n, rng):
    """Two of 40 coordinates tell, one of them the other way round; the sum tells nothing."""
    rows = rng.normal(size=(n, 40))
    rows[:, 17] += 1.5 * x
    rows[:, 3] -= 1.5 * x
    return rows


def words(x, rng):
    return " ".join(rng.choice(["lorem", "ipsum", "dolor"], 9)) + (
        " secret" if rng.random() < 0.1 + 0.8 * x else " public"
    )


def lengths(x, rng):
    return "".join(rng.choice(list("abcdefgh"), rng.integers(5, 9) + 4 * x))


def failing(x, rng):
    if rng.random() < 0.9 * x:
        raise KeyError("unknown word")
    return rng.normal()


SUBJECTS = [laplace, answer, hidden, words, lengths, failing]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.__name__)
@pytest.mark.parametrize("fixed", [False, True])
def test_the_table_and_the_rates_are_those_of_the_counts(subject, fixed):
    witness = audit(subject, PAIR, epsilon=1, runs=1500, fixed=fixed, bits=False).witness
    (one, other, runs), (this, that, more) = witness.table
    assert (one + that, other + this, runs + more) == (witness.right, witness.wrong, witness.runs)
    assert {rate.named: (rate.own, rate.other) for rate in witness.rates}.items() <= {
        0: (one / runs, this / more),
        1: (that / more, other / runs),
    }.items()
    cells = table_rows(witness)
    assert [len(row) for row in cells] == [5, 5, 5]
    for row in cells[1:]:
        *named, all_of_them = (int(cell.replace(",", "")) for cell in row[1:])
        assert sum(named) == all_of_them


@pytest.mark.long(every=2)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.__name__)
def test_examples_are_outputs_of_their_input(subject):
    witness = audit(subject, PAIR, epsilon=1, runs=3000, bits=False).witness
    assert {example.input for example in witness.examples} == {0, 1}
    assert all(sum(example.input == side for example in witness.examples) <= 3 for side in (0, 1))
    if subject is failing:
        assert "fails: KeyError: 'unknown word'" in {e.output for e in witness.examples if e.input == 1}
        assert not any("fails" in e.output for e in witness.examples if e.input == 0)
        assert isinstance(witness.failure, KeyError)
        assert witness.failure.__traceback__.tb_frame.f_code is failing.__code__


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("kind", "subject", "telling"),
    [
        ("Ngrams", words, {("'secret' in ", "of the second's"), ("'public' in ", "of the first's")}),
        ("Counted", answer, {("'no' in ", "of the second's"), ("'yes' in ", "of the first's")}),
        ("Linear", hidden, {("output[17] above ", "of the second's"), ("output[3] at most ", "of the second's")}),
        ("Boosted", hidden, {("output[17] above ", "of the second's"), ("output[3] ", "of the ")}),
        ("Boosted", lengths, {("the length above 8 in ", "of the second's")}),
        ("Guarded", failing, {("fails: KeyError in ", "of the second's")}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_weighs_most_is_named(kind, subject, telling):
    rng = np.random.default_rng(0)
    outputs = [read(draw(as_mechanism(subject), x, 2000, rng)) for x in (0, 1)]
    found = next(one for one in fit_all(outputs, (0, 1)) if one.kind == kind and one.weightiest(outputs))
    heaviest = found.weightiest(outputs)[:2]
    for what, whose in telling:  # which input has it more often comes first
        assert any(one.startswith(what) and whose in one.partition("%")[2].partition(" and ")[0] for one in heaviest)
    assert len(found.weightiest(outputs)) <= 3


def test_what_weighs_most_among_leaves_is_named_by_its_path():
    def record(x, rng):
        return {"noise": [float(v) for v in rng.normal(size=4)], "age": rng.normal() + 3 * x, "id": "a"}

    rng = np.random.default_rng(0)
    outputs = [read(draw(as_mechanism(record), x, 2000, rng)) for x in (0, 1)]
    leaves = [one for one in fit_all(outputs, (0, 1)) if one.kind == "Leaves"]
    linear = next(one for one in leaves if one.base.kind == "Linear")
    boosted = next(one for one in leaves if one.base.kind == "Boosted")
    assert linear.weightiest(outputs)[0].startswith('output["age"] above ')
    assert boosted.weightiest(outputs)[0].startswith('output["age"] above ')


def test_a_rule_of_one_number_has_no_weights():
    outputs = [read(draw(as_mechanism(laplace), x, 500, np.random.default_rng(0))) for x in (0, 1)]
    assert [one.weightiest(outputs) for one in fit_all(outputs, (0, 1)) if one.kind == "Statistic"] == [[], [], []]


def test_the_words_of_features():
    assert feature_name("coordinates", 0, 1) == "the output"
    assert [feature_name(FLOAT_BITS, j, 2) for j in (0, 7)] == [
        "the zeros at the end of output[0]",
        "the last three bits of output[1]",
    ]
    assert all(feature_name(kind, j, 3) for kind in FEATURES for j in range(feature_count(kind, 3)))


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1},
        {"epsilon": 1, "delta": 1e-3},
        {"epsilon": 1, "fixed": True},
        {"epsilon": 50, "runs": 1000},
        {"epsilon": 3},
        {"epsilon": 1, "candidates": ["0", "1", "2"]},
    ],
)
def test_the_reason_is_one_sentence(options):
    def noisy(x, n, rng):
        return float(x) + rng.laplace(scale=0.5, size=n)

    pairs = None if "candidates" in options else PAIR
    reason = audit(noisy, pairs, **{"runs": 5000, **options}).reason
    assert reason.endswith(".")
    assert not re.search(r"\.\s", reason)
    assert "\n" not in reason


def test_the_rows_say_how_often_and_how_much_more_than_allowed():
    witness = SampledWitness(("a", "b"), "an event", 80, 20, 110, 0.01, 0, 0, ((30, 10, 50), (10, 50, 60)))
    rows = dict(witness_rows(witness, make_guarantee(1)))
    assert list(rows) == ["first", "second", "event", "counts", "rates"]
    # 50/60 against 10/50, and 30/50 against 10/60: 4.17 and 3.6 times
    assert witness.rates == (Rate(1, 50 / 60, 10 / 50), Rate(0, 30 / 50, 10 / 60))
    assert rows["rates"] == (
        "the second input is named in 83.3% of its runs and in 20% of the first's, 4.17 times as often; "
        f"1-DP allows {math.e:.3g} times as often"
    )
    assert witness_rows(witness, make_guarantee(1, 0.01))[-1][1].endswith("2.72 times as often plus 0.01")


def test_a_shrunk_pair_is_said_to_be_one():
    def both(x, n, rng):
        return np.asarray(x, dtype=float) + rng.laplace(scale=[0.2, 100.0], size=(n, 2))

    verdict = audit(both, [([0, 0], [1, 1])], epsilon=1)
    labels = [label for label, _ in witness_rows(verdict.witness, verdict.guarantee)]
    assert labels[:2] == ["pair", "first"]
    assert "pair" not in [
        label for label, _ in witness_rows(audit(laplace, PAIR, epsilon=1).witness, verdict.guarantee)
    ]


def test_an_output_that_cannot_be_put_into_words_costs_no_verdict():
    class Unspeakable(dict):
        def __repr__(self):
            raise SystemError

    assert audit(lambda x: Unspeakable(x=x), PAIR, epsilon=1, runs=2000).word == "refuted"


def test_it_is_json_and_stays_on_file(tmp_path):
    saved = tmp_path / "audit.json"
    verdict = audit(answer, PAIR, epsilon=1, save=saved)
    data = json.loads(json.dumps(verdict.to_dict()))["witness"]
    assert [row["runs"] for row in data["table"]] == [runs for _, _, runs in verdict.witness.table]
    assert data["features"] == list(verdict.witness.features)
    assert len(data["examples"]) == len(verdict.witness.examples)
    again = audit(answer, PAIR, epsilon=1, save=saved, resume=True)
    assert again.witness.table == verdict.witness.table
    assert again.witness.examples == ()  # outputs are not kept on file
    # A file of before has no counts by input.
    old = json.loads(saved.read_text())
    for one in old["main"]["epochs"]:
        del one["second"]
    saved.write_text(json.dumps(old))
    older = audit(answer, PAIR, epsilon=1, save=saved, resume=True)
    assert (older.witness.table, older.witness.rates, older.word) == ((), (), "refuted")
    assert table_rows(older.witness) == []


def test_a_feature_says_how_often_each_input_has_it():
    """The noise of 0 is at most t in F(t) of its runs, that of 3 in F(t − 3): they differ most at 1.5, by symmetry."""
    rng = np.random.default_rng(0)
    outputs = [read(np.column_stack([rng.normal(3 * x, size=20_000), rng.normal(size=20_000)])) for x in (0, 1)]
    boosted = next(one for one in fit_all(outputs, (0, 1)) if one.kind == "Boosted")
    place, own, other = (
        float(re.search(pattern, boosted.weightiest(outputs)[0])[1])
        for pattern in (
            r"output\[0\] above ([\d.]+) in",
            r"in ([\d.]+)% of the second",
            r"and ([\d.]+)% of the first's",
        )
    )
    assert math.isclose(place, 1.5, abs_tol=0.3)
    tail = 50 * math.erfc(1.5 / math.sqrt(2))
    assert math.isclose(other, tail, abs_tol=3)
    assert math.isclose(own, 100 - tail, abs_tol=3)


def test_a_wider_noise_is_named_by_its_size_and_without_odds():
    def wider(x, rng):
        return rng.normal() * (1 + 9 * x)

    described = audit(wider, [(0.0, 1.0)], epsilon=1, runs=1500, bits=False).witness.event
    assert re.match(r"based on \|output\|: the first input where it is at most [\d.]+ and the second input", described)
    assert "odds" not in described


def test_a_rule_of_many_words_names_one_and_tells_no_odds():
    def fails(x, rng):  # three words of ten have four letters, whatever the input
        often = [0.6, 0.2, 0.1, 0.1] if x else [0.1, 0.1, 0.2, 0.6]
        raise ValueError(" ".join(rng.choice(["tan", "blue", "gold", "red"], 6, p=often)))

    def sometimes(x, rng):
        return 1.0 if rng.random() < 0.5 else fails(x, rng)

    for subject in (words, sometimes):
        event = audit(subject, PAIR, epsilon=1, runs=1500, bits=False).witness.event
        assert re.match(r"based on the words and characters of the output, above all '[a-z ]+' in [\d.]+% of", event)
        assert event.endswith("the input that this is more typical of")
        assert "odds" not in event


def test_an_event_that_shows_nothing_is_not_told():
    verdict = audit(lambda x, rng: rng.normal(), PAIR, epsilon=1, runs=1000, bits=False)
    rows = dict(witness_rows(verdict.witness, verdict.guarantee))
    assert (verdict.word, verdict.witness.event, verdict.witness.features) == ("open", "", ())
    assert rows["event"].startswith("none: ")
    assert "rates" not in rows


def two_together(x, rng):
    one = int(rng.integers(4))
    return {"a": "wxyz"[one], "b": (one + 7 * x) % 4 + 20, "noise": rng.normal()}


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (two_together, r'output\["a"\] = \'[w-z]\' with output\["b"\] = 2[0-3] in '),
        (lambda x, rng: rng.bytes(8 + x).hex(), r"based on len\(text\): the first input where it is at most 16 "),
    ],
)
def test_a_category_is_named_as_a_reader_knows_it(subject, said):
    event = audit(subject, PAIR, epsilon=1, runs=1500, bits=False, shrink=False).witness.event
    assert re.search(said, event), event
    assert "odds" not in event


def test_what_only_one_input_gives_is_named():
    def sometimes_none(x, rng):
        return None if x and rng.random() < 0.5 else rng.normal()

    event = audit(sometimes_none, PAIR, epsilon=1, runs=1500, bits=False, shrink=False).witness.event
    assert "the second input where the output is none" in event


def test_what_the_first_outputs_do_not_show_is_looked_for_in_others():
    """One output in 500 has another key, with the input: none is among the first 64 of each input."""

    def seldom(x, rng):
        return {"noise": rng.random(), **({"user": x} if rng.random() < 0.002 else {})}

    witness = audit(seldom, PAIR, epsilon=1, runs=30_000, until_refuted=True, seed=1).witness
    assert "user" in witness.event
    assert "100%" not in witness.event
