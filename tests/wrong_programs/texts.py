"""Rewritten texts that keep what they should hide."""

import math
import zlib

from wrong_programs.program import INF, Program, adding_to

PROGRAMS: list[Program] = []
words, marks = adding_to(PROGRAMS, "words"), adding_to(PROGRAMS, "marks of a text")
EPSILON = 1.0
COMMON = ("the", "a", "we", "you", "they", "see", "book", "find", "show", "me", "cheap", "late", "early", "flight")
COMMON += ("train", "hotel", "to", "from", "in", "on")
FIRST, SECOND = "book a flight to boston", "book a flight to denver"


def any_word(rng):
    return COMMON[int(rng.integers(len(COMMON)))]


def replaced(word, rng, epsilon=EPSILON):
    """Randomised response over the common words and the word itself."""
    return word if rng.random() < math.exp(epsilon) / (math.exp(epsilon) + len(COMMON)) else any_word(rng)


@words(FIRST, SECOND, EPSILON, INF)
def names_are_not_in_the_list(text, rng):
    return " ".join(replaced(word, rng) for word in text.split())


@words(FIRST, SECOND, EPSILON, INF)
def unknown_words_are_copied(text, rng):
    return " ".join(any_word(rng) if word in COMMON else word for word in text.split())


@words("we see a train", "we find a hotel", EPSILON, INF)
def synonyms_of_the_word(text, rng):
    near = {"see": ("see", "watch"), "find": ("find", "locate"), "train": ("train", "rail"), "hotel": ("hotel", "inn")}
    return " ".join(near.get(word, (word,))[int(rng.integers(len(near.get(word, (word,)))))] for word in text.split())


@words("we see", "we find", EPSILON, math.log(1 + len(COMMON)))
def half_of_the_words_are_kept(text, rng):
    """Kept with ½, and otherwise one of 20 words, which may be the same: (½ + ½/20)/(½/20) = 21."""
    return " ".join(word if rng.random() < 0.5 else any_word(rng) for word in text.split())


@words("late late flight", "late early flight", EPSILON, INF)
def words_in_random_order(text, rng):
    return " ".join(rng.permutation(text.split()).tolist())


@words("to be or not to be", "to be or not to see", EPSILON, INF)
def every_word_of_a_text_by_its_own_cipher(text, rng):
    code: dict[str, str] = {}
    for word in text.split():
        while word not in code:
            new = f"w{rng.integers(1000)}"
            code |= {} if new in code.values() else {word: new}
    return " ".join(code[word] for word in text.split())


@words("cheap", "early", EPSILON, INF)
def dropped_or_kept(text, rng):
    return " ".join(word for word in text.split() if rng.random() < 0.1)


@marks("a cheap flight", "a very cheap flight", EPSILON, INF)
def as_many_words_as_before(text, rng):
    return " ".join(any_word(rng) for _ in text.split())


@marks("see me.", "see me", EPSILON, INF)
def punctuation_stays(text, rng):
    return " ".join(any_word(rng) for _ in text.split()) + ("." if text.endswith(".") else "")


@marks("Denver is late", "denver is late", EPSILON, INF)
def capitals_stay(text, rng):
    drawn = [any_word(rng) for _ in text.split()]
    return " ".join(w.capitalize() if old[0].isupper() else w for w, old in zip(drawn, text.split(), strict=True))


@marks("cheap", "early", EPSILON, INF)
def first_letters_stay(text, rng):
    return text[0] + "".join("abcdefghij"[int(rng.integers(10))] for _ in range(5))


@marks(FIRST, SECOND, EPSILON, INF)
def a_number_for_the_record(text, rng):
    return f"{any_word(rng)} {any_word(rng)} #{zlib.crc32(text.encode()) % 1000}"


@marks("see", "find", EPSILON, INF)
def spaces_at_the_end(text, rng):
    return f"{any_word(rng)} {any_word(rng)}".ljust(20 + len(text) % 2)


@marks("see me", "see you", EPSILON, INF)
def a_space_that_nobody_sees(text, rng):
    words = [any_word(rng) for _ in range(8)]
    words[int(rng.integers(8))] += "\u200b" if text == "see you" else ""
    return " ".join(words)
