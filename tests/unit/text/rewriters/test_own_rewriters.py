"""A rewriter of one's own: its guarantee is its word, a fixed seed is found, and failures name their line."""

import json
import math
import re
import sys
from pathlib import Path

import pytest

from dpassay.cli import main as cli
from dpassay.errors import InputError, MechanismError
from dpassay.report.utility import cells_of, notes_of
from dpassay.text.inference_attacks import AttackResult
from dpassay.text.measurements import GuessedTexts, Measurement, Stated, rows_of
from dpassay.text.planning import plan
from dpassay.text.rewriters.base import TextGuarantee
from dpassay.text.rewriters.catalogue import STEPS, Specification
from dpassay.text.rewriters.rewriting import CALLS, PROBES, Order, chance_of_no_randomness, likeliest, opened

MINE = """
import math
import numpy as np
from dpassay.core.neighbours import Neighbours
from dpassay.text.rewriters.base import TextGuarantee

WORDS = "flights fares to from boston denver monday airlines".split()

class RR:
    def __init__(self, epsilon, longest="12"):
        self.epsilon, self.longest = float(epsilon), int(longest)
        self.stays = math.exp(self.epsilon) / (math.exp(self.epsilon) + len(WORDS) - 1)

    @property
    def guarantee(self):
        return TextGuarantee(self.epsilon * self.longest, neighbours=Neighbours(f"words({self.longest})"))

    def rewrite(self, texts, rng):
        return [" ".join(self.word(word, rng) for word in text.split()[: self.longest]) for text in texts]

    def word(self, word, rng):
        others = [other for other in WORDS if other != word]
        return word if word in WORDS and rng.random() < self.stays else others[rng.integers(len(others))]

class EachCall(RR):
    def rewrite(self, texts, rng):
        return super().rewrite(texts, np.random.default_rng(0))

class Once(RR):
    def rewrite(self, texts, rng):
        self.rng = getattr(self, "rng", None) or np.random.default_rng(1)
        return super().rewrite(texts, self.rng)

class Capitals(RR):
    def rewrite(self, texts, rng):
        return [text.upper() for text in texts]

class Bit(RR):  # one bit of each text, by randomised response: few of its outputs differ
    @property
    def guarantee(self):
        return TextGuarantee(self.epsilon)

    def rewrite(self, texts, rng):
        lies = 1 / (1 + math.exp(self.epsilon))
        return [("even", "odd")[(len(text) % 2) ^ (rng.random() < lies)] for text in texts]

class BitEachCall(Bit):
    def rewrite(self, texts, rng):
        return super().rewrite(texts, np.random.default_rng(0))

class BitOfModule(Bit):
    shared = np.random.default_rng(7)

    def rewrite(self, texts, rng):
        return super().rewrite(texts, self.shared)

class BitOfText(Bit):
    def rewrite(self, texts, rng):
        return [super(BitOfText, self).rewrite([text], np.random.default_rng(len(text)))[0] for text in texts]

class BitCapitals(Bit):
    def rewrite(self, texts, rng):
        return [text.upper() for text in texts]

class Later(RR):  # of its calls, only the first ones use the generator that is given to them
    first = 1

    def rewrite(self, texts, rng):
        self.calls = getattr(self, "calls", 0) + 1
        return super().rewrite(texts, rng if self.calls <= self.first else np.random.default_rng(0))

class MuchLater(Later):
    first = 5

class BitLater(Bit):
    def rewrite(self, texts, rng):
        self.calls = getattr(self, "calls", 0) + 1
        return super().rewrite(texts, rng if self.calls == 1 else np.random.default_rng(self.calls))

class CapitalsLater(RR):
    def rewrite(self, texts, rng):
        self.calls = getattr(self, "calls", 0) + 1
        return super().rewrite(texts, rng) if self.calls == 1 else [text.upper() for text in texts]

class OneCoin(RR):
    def rewrite(self, texts, rng):
        return [rng.integers(2) and "" or ""] * len(texts) if rng.random() < 0.5 else ["x"] * len(texts)

class Leaky(RR):
    def rewrite(self, texts, rng):
        return [text if rng.random() < 0.9 else "" for text in texts]

class Floor(RR):
    @property
    def guarantee(self):
        return TextGuarantee(118.9 + self.epsilon, neighbours=Neighbours("words(12)"))

class Overflows(RR):
    def __init__(self, epsilon):
        self.epsilon, self.longest, self.stays = float(epsilon), 12, 0.5

    @property
    def guarantee(self):
        return TextGuarantee(12 * math.log(math.exp(self.epsilon)), neighbours=Neighbours("words(12)"))

class Saturates(Overflows):
    @property
    def guarantee(self):
        return TextGuarantee(12 * self.epsilon if self.epsilon < 36 else math.inf, neighbours=Neighbours("words(12)"))

overflows = Overflows(1000)

class Chatty(RR):
    def rewrite(self, texts, rng):
        print("working")
        return super().rewrite(texts, rng)

class Number(RR):
    guarantee = 3

class Broken(RR):
    def rewrite(self, texts, rng):
        return [text[1000] for text in texts]
"""


@pytest.fixture
def here(monkeypatch, capfd, tmp_path):
    """The command line in a folder with the rewriters above: exit code, stdout, stderr."""
    (tmp_path / "own_words.py").write_text(MINE)
    (tmp_path / "in.txt").write_text("flights to boston\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_words", raising=False)

    def call(name, *arguments):
        line = ["rewrite", "--python", f"own_words:{name}", "--in", "in.txt", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", ["dpassay", *line])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfd.readouterr()
        return int(stopped.value.code or 0), out, err

    yield call
    sys.modules.pop("own_words", None)


def test_a_declared_epsilon_is_said_to_be_declared(here):
    code, out, err = here("RR", "--epsilon", 1, "--out", "out.txt")
    assert (code, out) == (0, "")
    said = "epsilon 12 (declared by own_words:RR, not checked) for two texts that differ in at most 12 words"
    assert f"guarantee: {said}\n" in err
    stated = json.loads(Path("out.txt.json").read_text())["guarantee"]
    assert (stated["sentence"], stated["declared_by"], stated["holds"]) == (said, "own_words:RR", None)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("name", "epsilon", "why"),
    [
        ("EachCall", 1, "none: its randomness comes from a fixed seed"),
        ("Once", 1, "none: its randomness comes from a fixed seed"),
        ("Capitals", 0.1, "none: no randomness was seen"),
        ("BitEachCall", 2, "none: its randomness comes from a fixed seed"),
        ("BitOfModule", 2, "none: its randomness comes from a fixed seed"),
        ("BitEachCall", 7, "none: its randomness comes from a fixed seed"),  # one lie in 1,100: long calls show them
        ("BitOfModule", 7, "none: its randomness comes from a fixed seed"),
        ("BitOfText", 2, "none: no randomness was seen"),
        ("BitCapitals", 2, "none: no randomness was seen"),
        ("Later", 1, "none: its randomness comes from a fixed seed"),
        ("MuchLater", 1, "none: its randomness comes from a fixed seed"),
        ("BitLater", 2, "none: its randomness comes from a fixed seed"),
        ("BitLater", 7, "none: its randomness comes from a fixed seed"),
        ("CapitalsLater", 0.1, "none: no randomness was seen"),
    ],
)
def test_randomness_that_is_no_secret_is_found(here, name, epsilon, why):
    code, out, err = here(name, "--epsilon", epsilon)
    assert (code, out) == (2, "")
    assert why in err
    assert f"declared by own_words:{name}" in err


def test_what_chance_could_explain_is_said_and_not_doubted(here):
    """At ε = 12 a rewriter may repeat itself for long: its sentence says what was seen."""
    code, _, err = here("BitCapitals", "--epsilon", 12, "--out", "out.txt")
    said = "epsilon 12 (declared by own_words:BitCapitals, not checked) for any two texts (local DP); no randomness"
    assert (code, f"guarantee: {said} was seen in 16 calls and more\n" in err) == (0, True)
    for epsilon in (2, 7):
        code, _, err = here("Bit", "--epsilon", epsilon)
        assert (code, "randomness" in err.split("guarantee: ")[1]) == (0, False)


def test_every_command_says_that_an_epsilon_is_declared(here):
    order = Order("own_words:Bit", 2.0)
    guarantee = order.guarantee_of(opened(order))
    assert "(declared by own_words:Bit, not checked)" in str(guarantee)
    attacked = AttackResult.of("attribute", 90, 100, 2, guarantee)
    assert attacked.notes == ("the claimed epsilon is what own_words:Bit declares; it was not checked",)
    assert AttackResult.of("attribute", 90, 100, 2, TextGuarantee(2)).notes == ()
    subjects, _ = plan(["own_words:Bit"], [2.0])
    assert [subject.guarantee.declared for subject in subjects] == [True]


@pytest.mark.parametrize(("right", "beaten"), [(500, True), (190, False)])
def test_a_measurement_shows_a_declared_epsilon_as_such(right, beaten):
    """At most 40% of the guesses can be right: 500 of 500 are more by any interval, 190 are not."""
    stated = Stated(epsilon=2.0, true_epsilon=2.0, delta=0.0, neighbours="any", declared=True)
    guesses = GuessedTexts(right=right, runs=500, candidates=12, how="learnt", bound=0.4)
    one = Measurement(
        rewriter="own:Bit", identity="x", seed=0, utterances=10, right={}, guarantee=stated, guesses=guesses
    )
    (row,) = rows_of([one])
    assert (row.to_dict()["holds"], row.to_dict()["declared"]) == (None, True)
    heads, cells = cells_of([row])
    assert cells[heads.index("true ε")] == "2?"
    said = notes_of([row])
    assert "The ε of Bit is what it declares, and was not checked." in said
    assert ("The attacker of Bit was right more often than that ε allows." in said) is beaten


def test_one_coin_for_a_whole_call_is_no_fixed_seed(here):
    assert here("OneCoin", "--epsilon", 1)[0] == 0


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("name", "code"), [("RR", 0), ("Leaky", 2)])
def test_a_check_stands_beside_what_is_declared(here, name, code):
    found, _, err = here(name, "--epsilon", 0.01, "--check")
    assert found == code
    said = (
        r"not refuted by an audit of 5,000 runs",
        r"none: (an audit of [\d,]+ runs refuted it: epsilon is at least|no randomness was seen)",
    )
    assert [re.search(one, err) is not None for one in said] == [code == 0, code == 2]


def test_a_check_is_for_ones_own(here, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["dpassay", "rewrite", "--model", "santext", "--check", "--in", "in.txt"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert (stopped.value.code, "--check is for a rewriter of your own" in capfd.readouterr().err) == (2, True)


def line_of(code):
    return 1 + MINE.split("\n").index(next(line for line in MINE.split("\n") if code in line))


def test_a_failure_is_the_rewriters_own_and_names_its_line(here):
    code, _, err = here("RR", "--epsilon", 1000)
    assert code == 4
    assert f"OverflowError: math range error (own_words.py, line {line_of('self.stays = ')})" in err
    code, _, err = here("Broken", "--epsilon", 1)
    assert (code, f"own_words.py, line {line_of('text[1000]')}" in err) == (4, True)


def test_a_number_is_no_guarantee(here):
    for options in (("--epsilon", 1), ("--true-epsilon", 1)):
        code, out, err = here("Number", *options)
        assert (code, out) == (4, "")
        assert "has int as its guarantee, which says too little: give a" in err


def test_what_a_rewriter_prints_is_no_rewriting(here):
    code, out, err = here("Chatty", "--epsilon", 1)
    assert (code, out.count("\n"), "working" in out, "working" in err) == (0, 1, False, True)


def test_a_true_epsilon_is_found_below_what_overflows(here):
    code, _, err = here("RR", "--true-epsilon", 1000)
    assert (code, "guarantee: epsilon 1000 (declared" in err) == (0, True)


def test_a_guarantee_that_cannot_be_computed_is_the_rewriters_own_failure(here):
    line = f"OverflowError: math range error (own_words.py, line {line_of('math.log(math.exp')})"
    for name, options in (("Overflows", ("--epsilon", 1000)), ("overflows", ())):
        code, _, err = here(name, *options)
        assert (code, line in err) == (4, True)
    assert here("Overflows", "--true-epsilon", 1000)[0] == 0


def test_an_epsilon_that_is_infinite_at_first_is_looked_for_below(here):
    code, _, err = here("Saturates", "--true-epsilon", 100)
    assert (code, "guarantee: epsilon 100 (declared" in err) == (0, True)
    code, _, err = here("Saturates", "--true-epsilon", 1000)
    assert (code, "the largest that was found is 43" in err) == (2, True)  # 12 times a little less than 36


def test_the_least_epsilon_is_named(here):
    code, _, err = here("Floor", "--true-epsilon", 100)
    assert code == 2
    assert "needs at least epsilon 118.9 for two texts that differ in at most 12 words" in err


def test_the_search_tells_how_far_it_is_and_what_is_wrong(here, monkeypatch):
    told = []
    Specification.read("own_words:RR").at_true(100.0, progress=lambda *given: told.append(given))
    assert told[0] == (0, STEPS, "looking for the parameter that gives epsilon 100")
    with pytest.raises(InputError, match="cannot read no-such-file"):
        Specification.read("santext,vocabulary=no-such-file").at_true(10.0)
    asked = Specification.read("own_words:RR")
    monkeypatch.setattr(sys.modules["own_words"], "RR", lambda epsilon: int("never"))
    with pytest.raises(MechanismError, match="ValueError: invalid literal"):
        asked.at_true(10.0)


def test_bounds_on_chance():
    # Three of four rewritings are the same: 4 orders. All four different: 24.
    assert likeliest([list("abbb"), list("abcd")]) == 1 / 96
    # Eight texts, no information: each of eight different rewritings has at most 1/8.
    assert chance_of_no_randomness(TextGuarantee(0.0), 8, CALLS) == pytest.approx(8.0**-15)
    assert chance_of_no_randomness(TextGuarantee(50.0), 8, CALLS) == pytest.approx(1.0)
    assert chance_of_no_randomness(TextGuarantee(math.log(7)), 8, 3) == pytest.approx(1 / 4)
    assert {len(text.split()) for text in PROBES} == {5}
