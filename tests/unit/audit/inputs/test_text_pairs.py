"""Texts that differ in one word: which are offered, what a vocabulary may be, and which leaks they show by default."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay import InputError, audit
from dpassay.audit.inputs.checks import MOST_PAIRS, why_not_neighbours
from dpassay.audit.inputs.text_pairs import MOST_OF_VOCABULARY, ODD_WORDS, read_vocabulary, word_pairs
from dpassay.core.neighbours import Neighbours
from dpassay.testing.assertion import merged
from statistics_helper import FALSE_ALARMS, require

WORDS = ["book", "a", "cheap", "flight", "to", "rome", "from", "paris"]
TEXT = "book a cheap flight to rome"


def replaced(text: str, **options: object) -> set[str]:
    return {other for _, other in word_pairs(text, **options)}


# ── Which texts ─────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(st.sampled_from(["fly", "to", "Rome", "zebra", "🦓", "a", "ß", "ǆ"]), min_size=1, max_size=12),
    st.sampled_from([" ", "  ", "\n"]),
    st.lists(st.text(min_size=1).filter(lambda word: word.split() == [word]), max_size=5),
)
@settings(derandomize=True, max_examples=30)
def test_all_differ_in_one_word_and_none_comes_twice(words, between, vocabulary):
    found = word_pairs(between.join(words), vocabulary)
    assert found
    assert not any(why_not_neighbours(x, y, Neighbours("word")) for x, y in found)
    assert len(found) == len(set(found)) <= MOST_PAIRS


def test_own_words_come_first_then_odd_ones():
    found = word_pairs("hi  you\n")
    assert found[:2] == [("hi you", "you you"), ("hi you", "hi hi")]
    others = replaced("hi you")
    assert {f"{word} you" for word in ODD_WORDS} | {f"hi {word}" for word in ODD_WORDS} <= others
    assert {"HI you", "Hi you", "hi YOU", "hi You", "hi! you", "hi you!"} <= others
    assert "fly to rome" in replaced("fly to Rome")  # and back to small letters


def test_without_odd_words_only_its_own_and_the_vocabulary():
    assert word_pairs("hi you", odd=False) == [("hi you", "you you"), ("hi you", "hi hi")]
    assert replaced("hi", vocabulary=["no", "hi"], odd=False) == {"no"}


def test_a_word_is_left_out_only_where_any_two_texts_are_neighbours():
    assert {"hi", "you"} & replaced("hi you") == set()
    assert {"hi", "you"} <= replaced("hi you", fewer=True)
    assert "" in replaced("hi", fewer=True)


def test_a_large_vocabulary_is_spread_and_a_long_text_is_not_tried_in_every_place():
    vocabulary = [f"w{i}" for i in range(10_000)]
    offered = {word for text in replaced("fly to Rome", vocabulary=vocabulary, odd=False) for word in text.split()}
    assert {"w0", "w9999"} <= offered
    assert len(offered & set(vocabulary)) == MOST_OF_VOCABULARY
    assert {"yes to Rome", "fly yes Rome", "fly to yes"} <= replaced("fly to Rome", vocabulary=["yes"])
    assert 100 < len(word_pairs(" ".join(f"w{i}" for i in range(500)))) <= MOST_PAIRS


def test_texts_that_cannot_be_used():
    for text in ("", "  \n"):
        with pytest.raises(InputError, match="has no words"):
            word_pairs(text)
    for text in ("hi", "hi hi"):
        assert word_pairs(text)
        with pytest.raises(InputError, match="1 different word"):
            word_pairs(text, odd=False)
    with pytest.raises(InputError, match="text must be a text, got 3"):
        word_pairs(3)


# ── Vocabularies ────────────────────────────────────────────────────────────────────────────────


def test_a_vocabulary_is_a_list_or_a_file(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("\ufeffyes\n\n  no \nyes\n", encoding="utf-8")
    assert read_vocabulary(file) == read_vocabulary(str(file)) == read_vocabulary(("yes", "no", "yes")) == ["yes", "no"]


@pytest.mark.parametrize(
    ("given_words", "said"),
    [
        (["yes", "no way"], "entry 2, is not one word: 'no way'"),
        (["yes", 3], "entry 2, is not one word: 3"),
        ([""], "entry 1, is not one word"),
        ([], "has no words"),
        (3, "got 3"),
        (b"yes", "got b'yes'"),
    ],
)
def test_what_is_no_vocabulary_is_refused(given_words, said):
    with pytest.raises(InputError, match=said):
        read_vocabulary(given_words)


def test_files_that_are_no_vocabulary_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_vocabulary(tmp_path / "missing.txt")
    for content, said in ((b"\xff\xfe\x00", "is not UTF-8"), (b"\n\n", "has no words"), (b"a\nb c\n", "entry 2")):
        (tmp_path / "words.txt").write_bytes(content)
        with pytest.raises(InputError, match=said):
            read_vocabulary(tmp_path / "words.txt")


def test_a_vocabulary_needs_a_text():
    with pytest.raises(InputError, match="give one, text="):
        audit(lambda x: x, [("a", "b")], epsilon=1, vocabulary=["a"])


def test_in_pytest_a_vocabulary_goes_with_its_text():
    outer = {"text": "fly to Rome", "vocabulary": ["yes"]}
    assert merged(outer, {"text": "go home"}) == {"text": "go home", "vocabulary": ["yes"]}
    assert merged(outer, {"pairs": [("a", "b")]}) == {"pairs": [("a", "b")]}


# ── What they show ──────────────────────────────────────────────────────────────────────────────


def response(word, rng):
    """Randomized response over WORDS at epsilon 1; what is unknown is taken for the first of them."""
    share = (math.e - 1) / (math.e - 1 + len(WORDS))
    return (word if word in WORDS else WORDS[0]) if rng.random() < share else WORDS[rng.integers(len(WORDS))]


def rewriting(passes):
    """A mechanism that passes some words through in clear and randomizes the others."""

    def rewrite(text, rng):
        return " ".join(word if passes(word) else response(word, rng) for word in text.split())

    return rewrite


def keeping_capitals(text, rng):
    words = [(word, response(word.lower(), rng)) for word in text.split()]
    return " ".join(new.upper() if old.isupper() else new for old, new in words)


def keeping_punctuation(text, rng):
    words = [(word, response(word.rstrip("!?."), rng)) for word in text.split()]
    return " ".join(new + old[len(old.rstrip("!?.")) :] for old, new in words)


def keeping_the_length(text, rng):
    return " ".join(response(word, rng) for word in text.split()).ljust(400)[: len(text)]


WRONG = {
    "unknown words": rewriting(lambda word: word not in WORDS),
    "stop words": rewriting(lambda word: word in {"the", "of", "and"}),
    "numbers": rewriting(str.isdigit),
    "names": rewriting(str.istitle),
    "emoji": rewriting(lambda word: not word.isascii()),
    "words that look empty": rewriting(lambda word: not word.isprintable()),
    "long words": rewriting(lambda word: len(word) > 30),
    "capitals": keeping_capitals,
    "punctuation": keeping_punctuation,
    "the length": keeping_the_length,
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("what", WRONG)
def test_what_passes_in_clear_is_refuted_by_default(what):
    verdict = audit(WRONG[what], text=TEXT, epsilon=1, runs=10_000, until_refuted=True)
    assert verdict.word == "refuted"
    assert verdict.epsilon.lower > 1


def test_a_word_of_a_vocabulary_that_passes_in_clear_is_refuted():
    names_a_disease = rewriting(lambda word: word == "asthma")
    assert audit(names_a_disease, text=TEXT, epsilon=1, runs=5_000).word == "open"
    vocabulary = ["apple", "asthma", "autumn"]
    options = {"runs": 5_000, "vocabulary": vocabulary, "until_refuted": True}
    assert audit(names_a_disease, text=TEXT, epsilon=1, **options).word == "refuted"


def test_what_randomizes_every_word_is_not_refuted():
    name = "audits of right rewriters"
    right = [
        rewriting(lambda word: False),
        lambda text, rng: " ".join(WORDS[rng.integers(len(WORDS))] for _ in text.split()),
        lambda text, rng: len(text.split()),  # one word replaced leaves the number of words as it is
    ]
    alpha = FALSE_ALARMS[name] / len(right)
    refuted = [audit(one, text=TEXT, epsilon=1, runs=4_000, alpha=alpha).word == "refuted" for one in right]
    require(name, 0.0 if any(refuted) else 1.0)


def test_a_mechanism_for_known_words_alone_can_be_audited_on_those():
    def only_known(text, rng):
        return " ".join(response(WORDS[WORDS.index(word)], rng) for word in text.split())

    verdict = audit(only_known, text=TEXT, epsilon=1, runs=4_000)
    assert verdict.word == "refuted"  # it fails for other words, and that can be seen
    assert audit(only_known, text=TEXT, epsilon=2, runs=4_000, odd_words=False, vocabulary=WORDS).word == "open"
