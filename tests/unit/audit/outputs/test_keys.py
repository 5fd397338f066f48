"""Keys: equal rows and texts have equal keys, in every process."""

import hashlib

import numpy as np

from dpassay.audit.outputs.keys import row_keys, text_key


def test_rows_that_differ_in_a_bit_have_different_keys():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, np.nextafter(1.0, 2.0)], [0.0, 1.0]])
    keys = row_keys(rows).tolist()
    assert keys[0] == keys[4]
    assert len(set(keys)) == 4


def test_a_long_row_has_a_key_that_depends_on_each_of_its_numbers():
    row = np.zeros((1, 1500))
    keys = {int(row_keys(row)[0])}
    for place in (0, 511, 512, 1023, 1499):
        changed = row.copy()
        changed[0, place] = 1.0
        keys.add(int(row_keys(changed)[0]))
    assert len(keys) == 6


def test_the_key_of_a_text_is_a_digest_and_so_the_same_everywhere():
    digest = hashlib.blake2b("caf\u00e9".encode(), digest_size=8).digest()
    assert text_key("caf\u00e9") == int.from_bytes(digest, "little")
