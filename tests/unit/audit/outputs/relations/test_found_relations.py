"""Relations between numbers: which are found, that chance seldom gives one, and that single audits find them."""

import datetime as times
import math

import numpy as np
import pytest

import dpassay
from dpassay.audit.outputs.leaf_views import View
from dpassay.audit.outputs.outputs import read
from dpassay.audit.outputs.relations.related import related_numbers, related_outputs
from dpassay.audit.outputs.texts.ngrams import count_path
from dpassay.audit.storage.checkpoint import load

RUNS = 256  # of each input
RNG = np.random.default_rng


def found(make, width):
    """Relations of columns that `make` gives for 0 and for 1."""
    paths = [f"output[{j}]" for j in range(width)] if width > 1 else ["output"]
    return related_numbers([make(x, RNG(x)).reshape(RUNS, width) for x in (0, 1)], paths)


@pytest.mark.parametrize("modulus", [2, 3, 7, 10])
def test_residues_of_an_integer(modulus):
    views = found(lambda x, rng: modulus * rng.integers(-(10**6), 10**6, RUNS) + x, 1)
    assert math.lcm(int(views[0].modulus), modulus) == modulus  # or a divisor, which shows as much: 10r + 1 is odd
    assert views[0].paths == ("output",)


def test_residues_of_sums_and_differences_of_all_pairs():
    def make(x, rng):
        rows = rng.integers(0, 999, size=(RUNS, 12))
        rows[:, 10] = rows[:, 3] + 5 * rng.integers(0, 200, RUNS) + x
        return rows

    best = found(make, 12)[0]
    assert (best.look, set(best.paths), best.modulus) == ("difference", {"output[3]", "output[10]"}, 5)


def test_the_parity_of_any_three():
    def make(x, rng):
        bits = rng.integers(0, 2, size=(RUNS, 20))
        bits[:, 17] = (bits[:, 4] + bits[:, 9] + x) % 2
        return bits

    assert found(make, 20) == [View("sum", ("output[4]", "output[9]", "output[17]"), modulus=2.0)]


def test_the_sum_of_all_integers():
    def make(x, rng):
        rows = rng.integers(0, 256, size=(RUNS, 16))
        rows[:, 15] += (rows.sum(axis=1) + x) % 2
        return rows

    best = found(make, 16)[0]
    assert (best.look, len(best.paths), best.modulus) == ("sum", 16, 2)


def test_digits_after_the_point():
    """Of numbers with three digits after the point, and of such plus half a unit of the last."""
    best = found(lambda x, rng: np.round(rng.laplace(0, 10, RUNS), 3) + 0.0005 * x, 1)[0]
    assert best == View("numbers", ("output",), modulus=0.001)
    shown = [np.unique(best.of(read(np.round(RNG(1).laplace(0, 10, RUNS), 3) + shift)).numbers) for shift in (0, 5e-4)]
    assert [values.tolist() for values in shown] == [[0.0], [0.0005]]


def test_correlations_of_all_pairs():
    def correlated(x, rng):
        rows = rng.normal(size=(RUNS, 50))
        rows[:, 41] = rows[:, 3] + 0.1 * rows[:, 41] if x else rows[:, 41]
        return rows

    def shifted(x, rng):
        rows = 100 * rng.normal(size=(RUNS, 50))
        rows[:, 41] = x + 1 - rows[:, 3]
        return rows

    assert View("numbers", ("output[3]", "output[41]")) in found(correlated, 50)
    assert found(shifted, 50)[0] == View("sum", ("output[3]", "output[41]"))


def test_chance_seldom_gives_a_relation():
    """Each sort exceeds its limit with probability about e^−5 = 0.007: three sorts, 100 tries, 2 expected."""
    seen = 0
    for seed in range(100):
        rng = RNG(seed)
        columns = np.column_stack([rng.integers(0, 99, (2 * RUNS, 5)), rng.normal(size=(2 * RUNS, 5))])
        seen += bool(related_numbers([columns[:RUNS], columns[RUNS:]], [f"output[{j}]" for j in range(10)]))
    assert seen <= 10


def test_repeated_words_and_the_sum_of_characters():
    words = [[f"w{i}" for i in RNG(k).choice(500, 8, replace=False)] for k in range(2 * RUNS)]
    once, twice = words[:RUNS], [[*row[:-1], row[0]] for row in words[RUNS:]]
    assert related_outputs([read([" ".join(row) for row in rows]) for rows in (once, twice)])[0].look == "repeats"
    even = ["".join(chr(97 + c) for c in (*row, row.sum() % 2)) for row in RNG(0).integers(0, 25, (2 * RUNS, 9))]
    odd = [text[:-1] + chr(ord(text[-1]) ^ 3) for text in even[RUNS:]]  # a and b, whose codes are 97 and 98
    views = related_outputs([read(even[:RUNS]), read(odd)])
    assert View("code points", ("output",), modulus=2.0) in views


def equal_pair(x, rng):
    row = rng.normal(size=8)
    row[rng.integers(4)] = row[4 + rng.integers(4)] if x else 0.5
    return row.tolist()


def seconds(x, rng):
    return times.datetime(2024, 1, 1) + times.timedelta(seconds=2 * int(rng.integers(10**6)) + x)


def negative_zero(x, rng):
    return max(0.0, rng.laplace()) or (-0.0 if x else 0.0)


def one_bit(x, rng):
    bits = np.array([rng.laplace()]).view(np.uint64)
    return float(((bits & ~np.uint64(1 << 20)) | np.uint64(x << 20)).view(np.float64)[0])


@pytest.mark.parametrize(
    ("subject", "words", "options"),
    [
        (lambda x, rng: int(2 * rng.integers(10**6)) + x, "output % 2", {}),
        (equal_pair, "two equal fractions", {}),
        (seconds, "output.second % 2", {}),
        (negative_zero, "−0.0", {}),
        (one_bit, "bit 20 of the mantissa", {"bits": True}),
    ],
    ids=["parity", "equal pair", "seconds", "negative zero", "one bit"],
)
def test_a_total_leak_that_no_number_shows_is_refuted_and_named(subject, words, options):
    verdict = dpassay.audit(subject, [(0, 1)], epsilon=1, runs=1000, seed=0, until_refuted=True, **options)
    assert verdict.refuted
    assert words in verdict.sampled.witness.event


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_numbers_of_any_size_are_taken(scale):
    with np.errstate(all="raise", under="ignore"):
        related_numbers([scale * RNG(x).normal(size=(RUNS, 4)) for x in (0, 1)], [f"output[{j}]" for j in range(4)])


@pytest.mark.parametrize(("modulus", "digits"), [(2, 3), (3, 1), (5, 2)])
def test_residues_of_the_last_digit(modulus, digits):
    def make(x, rng):
        return (modulus * rng.integers(-(10**4), 10**4, RUNS) + x) / 10**digits

    best = found(make, 1)[0]
    assert (best.look, best.paths, best.modulus) == ("numbers", ("output",), pytest.approx(modulus / 10**digits))


@pytest.mark.parametrize("bit", [4, 11, 25])
def test_one_bit_of_an_integer(bit):
    def make(x, rng):
        return (rng.integers(0, 2**31, RUNS) & ~(1 << bit)) | (x << bit)

    moduli = {view.modulus for view in found(make, 1)}
    assert 2.0 ** (bit + 1) in moduli


@pytest.mark.parametrize("bit", [1, 7, 19])
def test_one_bit_of_an_exclusive_or(bit):
    def make(x, rng):
        first, second = rng.integers(0, 2**20, size=(2, RUNS))
        second &= ~(1 << bit)
        return np.column_stack([first, rng.integers(0, 2**20, RUNS), first ^ second ^ (x << bit)])

    assert View("xor", ("output[0]", "output[2]"), modulus=float(1 << bit)) in found(make, 3)


def test_the_parity_of_all_bits():
    def make(x, rng):
        return np.array([n ^ (n.bit_count() % 2 ^ x) for n in rng.integers(0, 2**40, RUNS).tolist()])

    assert View("xor", ("output",)) in found(make, 1)


def test_chance_seldom_gives_a_relation_of_texts():
    """Each sort exceeds its limit with probability about e^−5 = 0.007: five sorts, 60 tries, 2 expected."""
    seen = 0
    for seed in range(60):
        rng = RNG(seed)
        texts = [
            f"{''.join(map(chr, rng.integers(97, 123, 6)))} {rng.integers(10**5, 10**6)} w" for _ in range(2 * RUNS)
        ]
        seen += bool(related_outputs([read(texts[:RUNS]), read(texts[RUNS:])]))
    assert seen <= 10


def first_word_again(x, rng):
    words = [f"w{'abcdefgh'[i]}" for i in rng.integers(8, size=9)]
    return " ".join([*words[:-1], words[0] if x else words[-1]])


def first_letter_again(x, rng):
    letters = [chr(97 + i) for i in rng.integers(26, size=8)]
    return "".join([*letters[:-1], letters[0] if x else letters[-1]])


def number_in_a_message(x, rng):
    if rng.random() < 0.5:
        raise ValueError(f"record {2 * rng.integers(10**6) + x} is out of range")
    return rng.normal()


def number_in_a_field(x, rng):
    return {"name": f"id-{7 * rng.integers(10**5) + x}", "value": rng.normal()}


def parity_of_three_characters(x, rng):
    bits = rng.integers(0, 2, size=20)
    bits[17] = (bits[3] + bits[11] + x) % 2
    return "".join(map(str, bits))


def seconds_as_text(x, rng):
    return (times.datetime(2024, 1, 1) + times.timedelta(seconds=2 * int(rng.integers(10**6)) + x)).isoformat()


def parity_of_one_word(x, rng):
    """The words after it make up for its count, so that the number of words tells nothing."""
    words = rng.choice(["red", "green", "blue"], 9).tolist()
    return " ".join([*words, "red" if words.count("red") % 2 != x else "grey"])


def one_word_or_another(x, rng):
    """Each of two words is there in half of the texts; for one input both or neither, for the other one of them."""
    there = int(rng.integers(2))
    words = [*rng.choice(["red", "green", "blue"], 8).tolist(), *["left"] * there, *["right"] * (there ^ x)]
    return " ".join([*words, *["up"] * (10 - len(words))])


def one_word_or_another_in_fields(x, rng):
    words = one_word_or_another(x, rng).split()
    return {"names": words[:5], "others": {"tags": words[5:]}}


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (parity_of_one_word, "(the count of 'red') % 2"),
        (one_word_or_another, "(the count of 'left' + the count of 'right') % 2"),
        (one_word_or_another_in_fields, "(the count of 'left' + the count of 'right') % 2"),
        (first_word_again, "whether the first and the last of its words are equal"),
        (first_letter_again, "whether the first and the last of its characters are equal"),
        (number_in_a_message, "(number 1 of the text) % 2"),
        (number_in_a_field, "(number 1 of the text) % 7"),
        (parity_of_three_characters, "(character 4 of the text + character 12 of the text + character 18 of the text)"),
        (seconds_as_text, "(number 6 of the text) % 2"),
    ],
)
def test_what_a_text_tells_is_found_and_named(subject, words, tmp_path):
    saved = tmp_path / "audit.json"
    verdict = dpassay.audit(subject, [(0, 1)], epsilon=1, runs=1000, until_refuted=True, save=saved)
    assert verdict.refuted
    assert words in verdict.sampled.witness.event
    assert load(saved).main.epochs[-1].rule.guesser["look"] in ("ends", "numbers", "sum")


def test_a_parity_of_three_is_looked_for_whatever_else_is_found():
    """With the same random numbers, the parities of pairs may be opposite: chance then looks twice as large."""
    bits = RNG(11).integers(0, 2, size=(16, 20))
    sides = []
    for x in (0, 1):
        side = bits.copy()
        side[:, 18] = (side[:, 3] + side[:, 11] + x) % 2
        sides.append(side.astype(float))
    paths = [f"output[{j}]" for j in range(20)]
    assert View("sum", ("output[3]", "output[11]", "output[18]"), modulus=2.0) in related_numbers(sides, paths)


def test_outputs_without_words_have_no_count_in_whatever_batch_they_come():
    view = View("sum", (count_path("a"), count_path("b")), modulus=2.0)
    for some in ([1.0, 2.0], np.ones((2, 3)), [[1.0, 2.0], None], ["", 1.0], [{}, None]):
        for batch in (some, [*some, "a b a"]):
            shown = view.of(read(batch)).numbers[:, 0]
            assert np.isnan(shown[:2]).all()
            assert shown[2:].tolist() == [1.0] * (len(batch) - 2)


@pytest.mark.parametrize(("decimals", "grain"), [(0, 1.0), (1, 0.1)])
def test_numbers_that_are_rounded_further_now_and_then(decimals, grain):
    """Multiples of the coarser grain are about 10% and 30% of the outputs: ε is ln 3 or nearly so."""

    def code(x, rng):
        noisy = round(float(rng.laplace(scale=10)), 3)
        return float(round(noisy, decimals)) if rng.random() < (0.3 if x else 0.1) else noisy

    verdict = dpassay.audit(code, [(0, 1)], epsilon=0.5, runs=20_000)
    assert verdict.refuted
    assert f"the distance of output from a multiple of {grain:g}" in verdict.witness.event
    assert not verdict.warnings  # the last bits follow from the decimals, so they are no artifacts
