"""Hostile inputs are of the type of the one they are made from, and neighbours only where a relation says so."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.inputs.checks import why_not_neighbours
from dpassay.audit.inputs.hostile_inputs import hostile_inputs, hostile_pairs
from dpassay.audit.options import AuditOptions
from dpassay.audit.resolved import resolve
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError


def values(x: Any, relation: str) -> list[Any]:
    return [y for _, y in hostile_pairs([x], Neighbours(relation))]


def test_numbers() -> None:
    found = values(0.5, "any")
    assert any(math.isnan(one) for one in found)
    assert {math.inf, -math.inf, 1e30, 1e300, 1e-300} <= set(found)
    assert any(one == 0 and math.copysign(1, one) < 0 for one in found)
    assert values(3, "any") == [0, -1, 10**18]
    assert all(type(one) is int for one in values(3, "any"))
    assert all(type(one) is np.float32 for one in values(np.float32(1), "any"))
    assert values(np.uint8(3), "any") == [0]
    assert np.isfinite([one for one in values(np.float32(1), "any") if one > 1 and one < math.inf]).all()
    assert values(0.5, "word") == values(0.5, "replace-record") == []
    assert hostile_inputs(True) == hostile_inputs(None) == []


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_a_vector_keeps_its_form_and_under_any_its_dimension(form: Any) -> None:
    x = form([1.0, 2.0, 3.0])
    found = values(x, "any")
    assert {type(one) for one in found} == {type(x)}
    assert {len(one) for one in found} == {3}
    assert any(list(one) == [1e30] * 3 for one in found)


def test_a_record_replaced_is_one_entry_and_one_added_is_one_more() -> None:
    replaced = values([1.0, 2.0, 3.0], "replace-record")
    assert replaced
    for one in replaced:
        assert one[1:] == [2.0, 3.0]
    assert values([1.0, 2.0, 3.0], "add-remove-record") == [[1.0, 2.0, 3.0, 1.0]]
    table = [[1.0, 2.0], [3.0, 4.0]]
    assert all(one[1:] == table[1:] and one[0] != table[0] for one in values(table, "replace-record"))
    assert values(table, "add-remove-record") == [[*table, table[0]]]
    assert ["zxqvkj", "b"] in values(["a", "b"], "replace-record")
    assert ["a", "b", "zxqvkj"] in values(["a", "b"], "add-remove-record")


def test_texts_differ_in_one_word() -> None:
    found = values("book a flight", "word")
    assert len(found) == 9
    for one in found:
        assert why_not_neighbours("book a flight", one, Neighbours("word")) == ""
    whole = values("book a flight", "any")
    assert "" in whole
    assert max(len(one.split()) for one in whole) > 1000
    assert {"zxqvkj", "the", "48213", "Alice", "🙂"} <= {word for one in found for word in one.split()}


def test_entries_of_a_dict_and_types_that_are_not_known() -> None:
    assert {"age": 3, "word": "zxqvkj"} in values({"age": 3, "word": "yes"}, "any")
    assert values({"age": 3.0}, "word") == []
    assert hostile_inputs(object()) == hostile_inputs([]) == hostile_inputs([[1], [1, 2]]) == []


def test_whole_numbers_of_an_array_stay_whole() -> None:
    for one in hostile_inputs(np.array([1, 2])):
        assert one.value.dtype.kind == "i"


def test_what_a_type_cannot_hold_is_left_out() -> None:
    found = [one for one in hostile_inputs(np.zeros(2, np.float32)) if one.kind == "size"]
    assert all(np.isfinite(one.value).all() for one in found)
    assert {"a vector of 1e+30"} == {one.what for one in found if one.value.max() > 1e20 and one.value.min() > 1e20}


def clipped(x: Any, rng: Any) -> float:
    return min(1.0, max(0.0, x)) + rng.laplace(scale=1.0) if x == x else math.nan


def clipped_or_refused(x: Any, rng: Any) -> float:
    if x != x:
        raise ValueError("no NaN")
    return clipped(x, rng)


OPTIONS: dict[str, Any] = {"epsilon": 1.1, "runs": 3000, "seed": 1}


def test_an_audit_compares_them_when_the_claim_covers_them() -> None:
    assert audit(clipped, [(0.0, 1.0)], neighbours="any", **OPTIONS).word == "open"
    verdict = audit(clipped, [(0.0, 1.0)], neighbours="any", hostile=True, **OPTIONS)
    assert verdict.word == "refuted"
    assert math.isnan(verdict.witness.inputs[1])
    assert audit(clipped_or_refused, [(0.0, 1.0)], neighbours="any", hostile=True, **OPTIONS).word == "open"
    with pytest.raises(InputError, match="hostile inputs are for code"):
        audit("clip(l2, 1) | laplace(2)", dim=2, hostile=True, **OPTIONS)


@pytest.mark.parametrize("given", [{"pairs": [(0.0, 1.0)]}, {"inputs": [0.0, 1.0]}])
def test_stated_inputs_bound_the_claim(given: Any) -> None:
    """Laplace noise is 1-DP on 0 and 1. NaN and 1e300 lie outside, and show something of another kind."""
    plain = audit(lambda x, rng: x + rng.laplace(), **given, hostile=True, **OPTIONS)
    assert plain.word == "open"
    (said,) = plain.warnings
    assert said.startswith("Outside the claim: the inputs 0.0 and ")
    assert "probability at most 0.0001" in said
    assert plain.runs <= 3000
    bounded = audit(clipped_or_refused, **given, hostile=True, **OPTIONS)
    assert bounded.word == "open"
    assert not bounded.warnings
    assert math.fsum(alpha for _, alpha in plain.alpha_budget) <= 0.001


def test_what_the_stated_inputs_show_refutes_whatever_lies_outside() -> None:
    verdict = audit(lambda x, rng: x + 0.2 * rng.laplace(), [(0.0, 1.0)], hostile=True, **OPTIONS)
    assert verdict.word == "refuted"
    assert verdict.witness.inputs == (0.0, 1.0)


def test_an_audit_leaves_out_what_is_no_neighbour() -> None:
    with_row = resolve(clipped, AuditOptions(pairs=[(0.0, 1.0)], epsilon=1, hostile=True, neighbours="replace-record"))
    assert with_row[0].input_sets == [(0.0, 1.0)]
    texts = AuditOptions(text="book a flight", epsilon=1, hostile=True)
    pairs = resolve(lambda x, rng: x, texts)[0].input_sets
    assert len({y for _, y in pairs}) == len(pairs)
    assert ("book a flight", "book syzygy flight") in pairs
    assert all(why_not_neighbours(x, y, Neighbours("word")) == "" for x, y in pairs)
