"""What is derived from an output is computed once, and its text form is the same for equal outputs."""

import pickle

from dpassay.audit.outputs.apart import Apart
from dpassay.audit.outputs.leaf_dict import canonical, once
from dpassay.audit.outputs.leaves import leaves_of
from dpassay.audit.outputs.outputs import join, part, read


def test_what_is_derived_from_an_output_is_computed_once_in_all_its_batches():
    made = []

    def count(one):
        made.append(one)
        return len(one.leaves) if one else 0

    outputs = read([{"a": 1.5, "b": "x"}, {"a": 2.5, "b": "y"}])
    again = join([part(outputs, 1), part(outputs, 0, 1)])
    numbers = [once(known, count, known) for batch in (outputs, again) for known in batch.apart]
    assert len(made) == 2
    assert len(set(numbers)) == 1
    assert once(None, count, None) == 0  # a plain output


def test_keys_and_numbers_of_a_batch_are_those_of_its_parts():
    outputs = read([{"a": k / 2, "b": [k, None], "c": "x" * k} for k in range(4)])
    alone = [read([item]) for item in outputs.items]
    assert outputs.keys().tolist() == [int(one.keys()[0]) for one in alone]
    assert part(outputs, 2).keys().tolist() == outputs.keys()[2:].tolist()
    assert outputs.matrix(2).tolist() == [one.matrix(2)[0].tolist() for one in alone] == [[k / 2, k] for k in range(4)]
    assert outputs.texts() == [one.texts()[0] for one in alone]


def test_equal_outputs_have_equal_texts_whatever_the_order_of_their_keys():
    one, other = ({"b": 1, "a": 0.5}, {"a": 0.5, "b": 1})
    assert canonical(leaves_of(one)) == canonical(leaves_of(other))
    assert canonical(leaves_of(one)) != canonical(leaves_of({"a": 0.5, "b": True}))
    assert leaves_of(one) != leaves_of(other)  # the order is a leaf of its own


def test_outputs_travel_without_what_was_derived():
    one = Apart({"a": 0.5})
    once(one, len, one.leaves)
    there = pickle.loads(pickle.dumps(one))
    assert there.leaves == one.leaves
    assert one.derived
    assert not there.derived
