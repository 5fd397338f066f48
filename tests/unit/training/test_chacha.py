"""ChaCha20 by the test vectors of RFC 8439 and by openssl's, and noise that is drawn from it."""

import math
import shutil
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the extra: pip install 'dpassay[training]'")

from dpassay.training.chacha import blocks, uniform_doubles  # noqa: E402
from dpassay.training.randomness import Keyed  # noqa: E402

CPU = torch.device("cpu")


def stream(key: bytes, first: int, count: int, nonce: bytes = bytes(12)) -> bytes:
    return blocks(key, first, count, CPU, nonce).reshape(-1).numpy().astype("<u4").tobytes()


def test_the_block_of_rfc_8439() -> None:
    nonce = bytes.fromhex("000000090000004a00000000")
    expected = (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )  # section 2.3.2
    assert stream(bytes(range(32)), 1, 1, nonce).hex() == expected


def test_the_key_stream_is_that_of_openssl() -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key = bytes(range(7, 39))
    asked = ["openssl", "enc", "-chacha20", "-K", key.hex(), "-iv", "03000000" + "00" * 12]  # begins with block 3
    theirs = subprocess.run(asked, input=bytes(64 * 50), capture_output=True, check=True).stdout
    assert stream(key, 3, 50) == theirs


def test_numbers_are_the_high_bits_of_two_words_each() -> None:
    words = np.frombuffer(stream(bytes(32), 5, 2), dtype="<u8")
    expected = [(int(word) >> 11) * 2.0**-53 for word in words[:13]]
    assert uniform_doubles(bytes(32), 5, 13, CPU).tolist() == expected


def test_a_stream_has_an_end() -> None:
    with pytest.raises(ValueError, match=r"2\^32 blocks"):
        blocks(bytes(32), 2**32 - 1, 2, CPU)


def test_noise_is_the_formula_of_box_and_muller_and_no_part_repeats_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.training.randomness.DRAWN", 64)
    keyed = Keyed(bytes(32))
    drawn = keyed.by_cipher(3, 150, 2.0, CPU)
    assert torch.equal(drawn, keyed.by_cipher(3, 150, 2.0, CPU))
    assert len(set(drawn.tolist())) == 150
    assert not set(drawn.tolist()) & set(keyed.by_cipher(4, 150, 2.0, CPU).tolist())
    import hashlib

    key = hashlib.shake_256(bytes(32) + b"dpassay noise 3").digest(32)
    first = uniform_doubles(key, 8, 64, CPU).tolist()  # of the second part: 64 numbers are eight blocks
    expected = [2 * math.sqrt(-2 * math.log1p(-first[i])) * math.cos(2 * math.pi * first[32 + i]) for i in range(32)]
    assert drawn[64:96].tolist() == pytest.approx(expected, rel=1e-6)
