"""What a person would name is found and named: equal numbers, a row's order or range, digits, sorts of characters."""

import math

import numpy as np
import pytest

import dpassay
from dpassay.audit.outputs.leaf_views import View
from dpassay.audit.outputs.outputs import read
from dpassay.audit.outputs.relations.row_views import FEWEST, ROWS

WORDS = ["the", "cat", "sat", "on", "a", "red", "mat", "and", "saw", "one", "big", "dog", "run", "far", "from", "home"]


def some_words(rng, number=8):
    return [str(word) for word in rng.permutation(WORDS)[:number]]


def opposite(x, rng):
    row = rng.normal(size=12)
    row[9] = -row[3] if x else row[9]
    return row.tolist()


def product(x, rng):
    first, second, other = rng.normal(size=3)
    return [first, second, first * second if x else other * rng.normal()]


def total(x, rng):
    first, second = rng.integers(0, 10**4, size=2).tolist()
    return {"a": first, "b": second, "c": first + second if x else int(rng.integers(2 * 10**4))}


def member(x, rng):
    drawn = rng.permutation(1000)[:9].tolist()
    return {"chosen": drawn[int(rng.integers(8))] if x else drawn[8], "of": drawn[:8]}


def largest(x, rng):
    row = rng.normal(size=8)
    best, place = int(np.argmax(row)), 2 * int(rng.integers(4)) + x
    row[best], row[place] = row[place], row[best]
    return row


def permutation(x, rng):
    row = rng.permutation(5)
    odd = sum(row[i] > row[j] for i in range(5) for j in range(i + 1, 5)) % 2
    return (row if odd == x else row[[1, 0, 2, 3, 4]]).tolist()


def longest_run(x, rng):
    while True:
        bits = rng.integers(0, 2, 24).tolist()
        longest = max(map(len, "".join(map(str, bits)).replace("01", "0 1").replace("10", "1 0").split()))
        if (longest >= 6) == bool(x):
            return bits


def signs(x, rng):
    row = rng.normal(size=10)
    row[7] = math.copysign(row[7], row[2] if x else -row[2])
    return row


def digits(x, rng):
    number = 10 * int(rng.integers(10**5))
    return number + 2 * int(rng.integers(5)) + (sum(map(int, str(number))) + x) % 2


def hexadecimal(x, rng):
    return f"{2 * int(rng.integers(2**46)) + x:012x}"


def capitals(x, rng):
    text = "".join(letter.upper() if rng.random() < 0.5 else letter for letter in "abcdefghijkl")
    return text if sum(map(str.isupper, text)) % 2 == x else text[0].swapcase() + text[1:]


def invisible(x, rng):
    words = some_words(rng)
    words[int(rng.integers(8))] += "\u200b" * x
    return " ".join(words)


def length(x, rng):
    text = " ".join(some_words(rng, 6))
    return text + "!" * ((len(text) + x) % 2)


def one_character(x, rng):
    return "".join(rng.choice(list("ghijk"), 5)) + ("aglmcvst", "bhdenuwx")[x][int(rng.integers(8))]


SUBJECTS = [
    (opposite, "whether output[3] + output[9] is 0"),
    (product, "whether output[0] * output[1] is output[2]"),
    (total, 'whether output["a"] + output["b"] is output["c"]'),
    (member, 'whether output["chosen"] is in output["of"]'),
    (largest, "(the position of the largest of output) % 2"),
    (permutation, "(the number of pairs in output in descending order) % 2"),
    (longest_run, "the longest run of equal entries of output"),
    (signs, "output[2] * output[7]"),
    (digits, "(the sum of the digits of output) % 2"),
    (hexadecimal, "(hexadecimal number 1 of the text) % 2"),
    (capitals, "(the number of capitals) % 2"),
    (invisible, "the number of invisible characters"),
    (length, "len(text) % 2"),
    (one_character, "character 6 of the text"),
]


@pytest.mark.long(every=4)
@pytest.mark.parametrize(("subject", "words"), SUBJECTS, ids=[subject.__name__ for subject, _ in SUBJECTS])
def test_the_event_is_the_one_that_a_person_would_name(subject, words):
    verdict = dpassay.audit(subject, [(0, 1)], epsilon=1, runs=2000, until_refuted=True, shrink=False)
    assert verdict.refuted
    assert f"based on {words}" in verdict.witness.event.replace("which value ", "")


@pytest.mark.parametrize("look", ROWS)
def test_every_row_is_shown_by_itself_and_whatever_is_in_it(look):
    paths = tuple(f"output[{j}]" for j in range(max(3, FEWEST.get(look, 2))))
    rows = [
        [1.0, 1.0, 2.0],
        [0.5, math.nan, 0.5],
        [math.inf, -math.inf, 0.0],
        [1e300, 1e300, -1e300],
        [3.0],
        [2.0**60] * 3,
    ]
    view = View(look, paths)
    alone = [view.of(read([row, None])).numbers[0].tolist() for row in rows]
    assert repr(view.of(read([*rows, None])).numbers.tolist()[:-1]) == repr(alone)


def test_rounding_decides_nothing():
    rows = read([[0.1 + 0.2, 0.3], [0.3, 0.3], [0.3 + 1e-6, 0.3]])
    assert View("equal", ("output[0]", "output[1]")).of(rows).numbers[:, 0].tolist() == [1.0, 1.0, 0.0]
