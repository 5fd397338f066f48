"""Words that an output shares with its inputs."""

import numpy as np

from dpassay import audit
from dpassay.audit.distinguishers.base import Distinguisher, TrainingSet
from dpassay.audit.distinguishers.shared_words import SharedWords
from dpassay.audit.outputs.outputs import read

TEXTS = read(["Flights to BOSTON", "flights to rome or oslo", "nothing", ""])


def fitted(*inputs, outputs=TEXTS):
    return list(SharedWords.fit(TrainingSet((outputs,) * len(inputs), inputs)))


def test_words_that_all_inputs_have_do_not_count():
    (found,) = fitted("flights to boston", "Flights to Rome to Oslo")
    assert found.words == (("boston",), ("oslo", "rome"))
    assert np.array_equal(found.score(TEXTS), [-1, 2, 0, np.nan], equal_nan=True)
    said = found.describe()
    assert said == (
        "how many words the output has of the second input ('oslo', 'rome'), less those of the first ('boston')"
    )


def test_of_several_inputs_each_has_its_count():
    (found,) = fitted("to boston", "to rome", "to rome or oslo")
    assert found.candidates == 3
    assert found.score(read(["oslo or rome", "boston"])).tolist() == [[0, 1, 3], [1, 0, 0]]


def test_it_is_for_texts_that_differ_in_their_words():
    assert not fitted("to boston", "Boston to")
    assert not fitted(0.0, 1.0)
    assert not fitted("to boston", "to rome", outputs=read([1.0, 2.0]))
    assert not fitted("to boston", "to rome", outputs=read([{"said": "to rome"}]))


def test_its_data_form_is_itself():
    (found,) = fitted("to boston", "to rome")
    assert Distinguisher.from_data(found.to_data()) == found


def test_three_words_of_fifty_are_told_apart_by_what_is_kept():
    """Learning which of 50 words speak for which text would take far more than 128 texts."""

    def rewritten(text, rng):
        words = text.split()
        return " ".join(word if rng.random() < 0.2 else f"w{rng.integers(50)}" for word in words)

    verdict = audit(rewritten, [("w1 w2 w3", "w4 w5 w6")], epsilon=1, shrink=False, until_refuted=True)
    assert verdict.word == "refuted"
    assert "words the output has of the second input" in verdict.witness.event
