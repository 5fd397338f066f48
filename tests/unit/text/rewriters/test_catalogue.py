"""Rewriters by name, folder, path and entry point, and the parameter that keeps an ε."""

import math
import sys
from types import ModuleType

import numpy as np
import pytest

from dpassay import InputError, audit
from dpassay.text.rewriters import catalogue
from dpassay.text.rewriters.base import Rewriter, TextGuarantee, as_mechanism, released, statement
from dpassay.text.rewriters.catalogue import Specification
from dpassay.text.systems import claimed_of


class Kept:
    """Each word stays with probability e^ε/(e^ε+1), else it becomes "x"; texts of one word."""

    def __init__(self, epsilon: float, factor: float = 1.0) -> None:
        self.epsilon, self.factor = epsilon, factor

    @property
    def guarantee(self) -> TextGuarantee:
        return TextGuarantee(self.factor * self.epsilon)

    def rewrite(self, texts, rng):
        stays = rng.random(len(texts)) < 1 / (1 + math.exp(-self.epsilon))
        return [text if here else "x" for text, here in zip(texts, stays, strict=True)]


@pytest.fixture
def mine(monkeypatch):
    module = ModuleType("mine_rewriters")
    module.proportional = lambda epsilon, factor="7": Kept(epsilon, float(factor))
    module.ready = Kept(2.0)
    module.broken = lambda epsilon: 3
    module.without_any = lambda epsilon: type("Plain", (Kept,), {"guarantee": TextGuarantee(math.inf)})(1.0)
    monkeypatch.setitem(sys.modules, "mine_rewriters", module)
    return module


def test_a_path_names_a_rewriter_or_what_makes_one(mine):
    made = Specification.read("mine_rewriters:proportional,factor=3").at(5.0)
    assert isinstance(made, Rewriter)
    assert made.guarantee.epsilon == 15
    assert Specification.read("mine_rewriters:ready").at(None) is mine.ready
    with pytest.raises(InputError, match="made int, which is not a rewriter"):
        Specification.read("mine_rewriters:broken").at(1.0)
    with pytest.raises(InputError, match="there is no setting 'colour'; there are factor"):
        Specification.read("mine_rewriters:proportional,colour=red").at(1.0)
    with pytest.raises(InputError, match="is a rewriter already"):
        Specification.read("mine_rewriters:ready,factor=2").at(1.0)
    with pytest.raises(InputError, match="specify the epsilon"):
        Specification.read("mine_rewriters:proportional").at(None)


def test_an_entry_point_adds_a_name(mine, monkeypatch):
    class Point:
        name, module, dist = "theirs", "mine_rewriters", None

        def load(self):
            return mine.proportional

    monkeypatch.setattr(catalogue, "entry_points", lambda group: [Point()] if group == "dpassay.rewriters" else [])
    assert "theirs" in catalogue.names()
    assert Specification.read("theirs").at(2.0).guarantee.epsilon == 14
    with pytest.raises(InputError, match="did you mean 'theirs'"):
        Specification.read("their").at(1.0)


@pytest.mark.parametrize(
    "kept",
    [
        lambda e: e,
        lambda e: 7 * e,
        lambda e: e**2,
        lambda e: e + 10 * math.tanh(e),
        lambda e: 48 * math.log1p(e) * e,
        lambda e: e * 1e-3,
        lambda e: 3 * e if e <= 60 else math.nan,  # refused beyond: a guarantee is no NaN
    ],
)
@pytest.mark.parametrize("asked", [0.5, 10.0, 100.0])
def test_the_parameter_that_keeps_an_epsilon_is_found_from_below(mine, kept, asked):
    tried = []

    def make(epsilon):
        tried.append(epsilon)
        rewriter = Kept(epsilon)
        mine_guarantee = TextGuarantee(kept(epsilon))
        return type("One", (Kept,), {"guarantee": mine_guarantee})(rewriter.epsilon)

    mine.make = make
    found = Specification.read("mine_rewriters:make").at_true(asked)
    assert asked * (1 - 1e-8) <= found.guarantee.epsilon <= asked
    assert len(tried) <= 30


def test_an_epsilon_that_no_parameter_keeps_is_refused(mine):
    mine.capped = lambda epsilon: type("One", (Kept,), {"guarantee": TextGuarantee(min(epsilon, 50.0))})(epsilon)
    with pytest.raises(InputError, match="no parameter was found with which epsilon 100 holds"):
        Specification.read("mine_rewriters:capped").at_true(100.0)
    with pytest.raises(InputError, match="satisfies no finite epsilon"):
        Specification.read("mine_rewriters:without_any").at_true(10.0)


def test_the_guarantee_is_a_sentence_and_a_release_is_one_line_per_text(mine):
    stated = statement(mine.ready)
    assert stated["guarantee"]["sentence"] == "epsilon 2 for any two texts (local DP)"
    assert set(released(mine.ready, ["a", "b"])) <= {"a", "b", "x"}
    with pytest.raises(InputError, match="2 texts went in, 1 came out"):
        released(type("Short", (Kept,), {"rewrite": lambda self, texts, rng: ["a"]})(1.0), ["a", "b"])


class OneCoin(Kept):
    """Randomised response between two texts that is right for each, with one coin for a whole batch."""

    def rewrite(self, texts, rng):
        stays = rng.random() < 1 / (1 + math.exp(-self.epsilon))
        return [text if stays else {"yes": "no", "no": "yes"}[text] for text in texts]


def test_rows_are_not_taken_for_independent_unless_the_rewriter_says_so():
    # α is 10⁻⁶ for each: a right mechanism is refuted by chance with probability 4·10⁻⁶ in all.
    for seed in range(4):
        assert not audit(OneCoin(1.0), [("yes", "no")], epsilon=1, runs=4000, seed=seed, alpha=1e-6).refuted
    said = type("Said", (Kept,), {"independent_rows": True})(1.0)
    assert [as_mechanism(one).independent_rows for one in (OneCoin(1.0), said)] == [False, True]


def test_the_epsilon_given_with_a_rewriter_that_is_ready_is_what_is_claimed(mine):
    named = Specification.read("mine_rewriters:ready")
    assert [claimed_of(named, epsilon, None)[1].stated for epsilon in (None, 5)] == [2, 5]
    assert claimed_of(Specification.read("mine_rewriters:proportional"), 5, None)[1].stated == 35


def test_any_rewriter_is_audited_as_it_is(mine):
    # Its claim of 2 is wrong: an output "a" has come from "a", so that no finite epsilon holds.
    verdict = audit(mine.ready, [("a", "b")], epsilon=2, runs=2000, seed=1)
    assert verdict.refuted
    assert np.isinf(TextGuarantee(math.inf).epsilon)


def test_a_missing_model_is_asked_for_with_what_it_can_be() -> None:
    with pytest.raises(InputError, match=r"dp-prompt,model=… \(a transformers model.*, or smollm2\)"):
        Specification.read("dp-prompt").at(10.0)
    with pytest.raises(InputError, match=r"needs the setting model: dp-mlm,model=… \(a masked"):
        Specification.read("dp-mlm").at(10.0)
