"""Drawing words: uniform numbers of any size, tables that keep small probabilities, and the law of what is drawn."""

import math
from collections import Counter

import numpy as np
import pytest

from dpassay.words.mechanisms import CusText, SanText
from dpassay.words.sampling import WordSampler, bits_of, system_bits, uniforms
from dpassay.words.vocabulary import Vocabulary
from statistics_helper import frequencies_p_value, generator, require

THREE = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [3.0]]) * math.log(2))


def fixed(*numbers):
    """Bits that are known: each call takes the next ones."""
    left = list(numbers)
    return lambda n: np.array([left.pop(0) for _ in range(n)], dtype=np.uint64)


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        ((2**64 - 1,), 1 - 2.0**-53),  # rounded down, never to 1
        ((2**63,), 0.5),
        ((2**63 + 2**10,), 0.5),  # what follows the first 53 bits is cut off
        ((2**63 + 2**11,), 0.5 + 2.0**-53),
        ((2**53 + 2,), (2**53 + 2) * 2.0**-64),
        ((2**53 - 1, 2**63), (2**53 - 1) * 2.0**-64),  # 53 bits are there already
        ((1, 2**63 + 1), 2.0**-64 + 2.0**-65),  # 53 bits from the first one on, and no more
        ((0, 0, 3), 3 * 2.0**-192),
    ],
)
def test_uniform_numbers_have_53_significant_bits(bits, expected):
    assert uniforms(1, fixed(*bits, 0, 0, 0)).tolist() == [expected]


def test_uniform_numbers_of_zeros_alone_end():
    assert 0 <= uniforms(1, lambda n: np.zeros(n, dtype=np.uint64))[0] < 1e-300


def test_uniform_numbers_of_all_sizes():
    name = "uniform numbers of all sizes"
    runs, limits = 2_000_000, [2.0**-k for k in range(1, 16)]  # below 2^-11 more bits are drawn
    found = uniforms(runs, bits_of(generator(name)))
    require(name, frequencies_p_value(np.array([(found < one).sum() for one in limits]), runs, np.array(limits)))


def test_small_probabilities_keep_their_digits():
    # Scores from 0 down to −650: added up from the largest, all beyond −37 would be lost.
    line = Vocabulary(tuple(f"w{i}" for i in range(1301)), np.arange(1301.0)[:, None])
    made = SanText(line, 1.0)
    sums, outputs = WordSampler(made)._table(made.log_probabilities(0))
    widths = np.diff(sums, prepend=0.0)
    assert sums[-1] == 1.0
    assert sorted(outputs.tolist()) == list(range(1301))
    expected = np.exp(-0.5 * outputs.astype(float)) * (1 - math.exp(-0.5)) / (1 - math.exp(-650.5))
    np.testing.assert_allclose(widths, expected, rtol=8 * 1305 * 2.0**-53 + 1e-12)


def test_what_is_beyond_doubles_stays_possible():
    far = Vocabulary(("a", "b"), np.array([[0.0], [10.0]]))
    sums, outputs = WordSampler(SanText(far, 1e5))._table(SanText(far, 1e5).log_probabilities(0))
    assert outputs.tolist() == [1, 0]
    assert 0 < sums[0] <= math.exp(-679)


def test_impossible_words_never_come_out():
    groups = CusText(Vocabulary(tuple("abcd"), np.array([[0.0], [1.0], [8.0], [9.0]])), 1, K=2)
    drawn = WordSampler(groups).draw(np.repeat([0, 2], 1000), bits_of(np.random.default_rng(0)))
    assert set(drawn[:1000].tolist()) == {0, 1}
    assert set(drawn[1000:].tolist()) == {2, 3}


def test_memory_changes_nothing_that_is_drawn():
    vectors = np.random.default_rng(2).standard_normal((400, 3))
    made = SanText(Vocabulary(tuple(map(str, range(400))), vectors), 2)
    places = np.random.default_rng(3).integers(-1, 400, size=3000)
    full, none = WordSampler(made), WordSampler(made, room=0)
    for _ in range(2):
        drawn = [sampler.draw(places, bits_of(np.random.default_rng(4))).tolist() for sampler in (full, none)]
        assert drawn[0] == drawn[1]
    assert not none._tables
    assert len(full._tables) == len(set(places.tolist()))


def test_bits_of_the_system_differ_each_time():
    assert len(Counter(system_bits(1000).tolist())) == 1000
