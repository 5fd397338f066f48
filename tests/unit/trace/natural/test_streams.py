"""Streams of keys are numpy's own, for every key."""

import numpy as np
import pytest

from dpassay.trace.natural.bits import AT_ONCE, stream_of

KEYS = [
    *((seed, at, k) for seed in (0, 7, 2**32 - 1) for at in (0, 9) for k in (0, 1, AT_ONCE - 1, AT_ONCE, 10_000)),
    *([(0,), (AT_ONCE,), (3, 4), (1, 2, 3, 4), (2**32 - AT_ONCE,), (2**32 - 1, 2**32 - 1)]),
    *([(2**32, 1), (0, 2**32), (0, 2**40, 1), (1, 2, 3, 4, 5), (0, 0, 0, 0), (2**64, 1, 2)]),  # which numpy hashes
]


@pytest.mark.parametrize("key", KEYS)
def test_a_stream_has_the_bits_and_the_children_of_numpys(key: tuple[int, ...]) -> None:
    numpys, ours = np.random.Generator(np.random.PCG64(list(key))), np.random.Generator(stream_of(key))
    assert ours.bit_generator.state == numpys.bit_generator.state
    assert [one.random() for one in ours.spawn(2)] == [one.random() for one in numpys.spawn(2)]
    assert ours.bit_generator.seed_seq.entropy == numpys.bit_generator.seed_seq.entropy
    assert ours.random(3).tolist() == numpys.random(3).tolist()
