import pytest

from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

KINDS = ["any", "word", "replace-record", "add-remove-record", "query"]


def test_local_dp_is_the_default():
    assert Neighbours() == Neighbours("any")


def test_each_kind_says_what_it_means_in_words_of_its_own():
    words = {str(Neighbours(kind)) for kind in KINDS}
    assert len(words) == len(KINDS)
    assert all(" two " in f" {text} " for text in words)


@pytest.mark.parametrize("kind", ["", "Any", "words", None, 3])
def test_an_unknown_kind_is_refused_with_the_allowed_ones(kind):
    with pytest.raises(InputError) as caught:
        Neighbours(kind)
    assert all(name in str(caught.value) for name in KINDS)


def test_neighbours_can_be_keys():
    assert len({Neighbours("word"), Neighbours("word"), Neighbours("query")}) == 2


def test_neighbours_cannot_be_changed():
    with pytest.raises(AttributeError):
        Neighbours().kind = "word"


@pytest.mark.parametrize(
    "kind", ["group(0)", "group(-1)", "group", "words()", "tokens(1.5)", "group(1e9)", "user(2)", ""]
)
def test_relations_that_do_not_exist(kind: str) -> None:
    with pytest.raises(InputError, match="allowed: any, word, words"):
        Neighbours(kind)
