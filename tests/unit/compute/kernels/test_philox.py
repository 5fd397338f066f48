"""The generator against its authors' known answers, and words that do not depend on how the work is divided."""

import numpy as np
import pytest

from dpassay.compute.kernels.philox import RUNS, block, key, words

# Random123's known answers for philox4x32-10: counter, key, words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "its_key", "answer"), KNOWN)
def test_known_answers(counter, its_key, answer):
    assert tuple(int(word) for word in block(counter, its_key)) == answer


def test_many_counters_at_once():
    found = block((np.array([0, 0xFFFFFFFF]), np.array([0, 0xFFFFFFFF]), 0, 0), (0, 0))
    assert [int(word[0]) for word in found] == list(KNOWN[0][2])
    assert all(len(word) == 2 for word in found)


def test_a_word_is_a_byte_of_one_block_and_three_of_another():
    its_key = (7, 9)
    found = words(its_key, 32, 40, range(5, 7))
    for run, coordinate in ((32, 5), (37, 6), (71, 5)):
        first = int(block((coordinate, run // 16, 0, 0), its_key)[run % 16 // 4]) >> 8 * (run % 4) & 0xFF
        rest = int(block((coordinate, run // 4, 0, 1), its_key)[run % 4]) >> 8
        assert int(found[run - 32, coordinate - 5]) == first << 24 | rest


def test_any_division_gives_the_same_words():
    whole = words((1, 2), 0, 100, range(6))
    parts = [words((1, 2), start, min(48, 100 - start), range(6)) for start in (0, 48, 96)]
    assert (np.concatenate(parts) == whole).all()
    assert (np.hstack([words((1, 2), 0, 100, range(2)), words((1, 2), 0, 100, range(2, 6))]) == whole).all()


def test_runs_beyond_the_thirty_second_bit():
    far = RUNS << 33
    assert not (words((1, 2), far, 16, range(2)) == words((1, 2), 0, 16, range(2))).all()


def test_a_stream_cannot_be_entered_anywhere():
    with pytest.raises(ValueError, match="every 16th run"):
        words((1, 2), 8, 16, range(1))


def test_keys_of_places():
    places = [(seed, *place) for seed in (0, 1, 2**70) for place in ((), (0,), (1,), (0, 0), (0, 1), (2**40,))]
    assert len({key(*place) for place in places}) == len(places)
