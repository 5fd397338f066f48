"""What used to cost more than it counted: each kind of work is refused by its count, before it is done."""

import io
import json
import struct
import tracemalloc
import zipfile
from fractions import Fraction

import numpy as np
import pytest

from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier import examine, read_step
from dpassay.evidence.verifier.arithmetic import lattice, work
from dpassay.evidence.verifier.arithmetic.numbers import ONE, exactly, forget, iv, largest, smallest
from dpassay.evidence.verifier.arithmetic.work import limited
from dpassay.evidence.verifier.noises import fourier, levels
from dpassay.evidence.verifier.sampling import sampled
from dpassay.evidence.verifier.text import read_text
from dpassay.evidence.verifier.words import word_vectors
from dpassay.evidence.verifier.words.certificates import check_words
from forging import block, claim, lower, sealed, upper

TOO_LONG = "takes too long to be checked"


def spent(action):
    """The work that something counts."""
    with limited():
        left = work._LEFT.get()[0]
        action()
        return work.ALL_WORK - left[0]


@pytest.mark.parametrize(
    ("action", "microseconds"),
    [
        (lambda: ONE + ONE, 3),
        (lambda: iv.exp(ONE), 40),
        (lambda: iv.log(iv.mpf(3)), 50),
        (lambda: iv.loggamma(iv.mpf(300)), 58),
        (lambda: iv.mpf("0.1") ** 1_000_000, 80),
        (lambda: iv.mpf("1e-1000"), 42),
        (lambda: exactly(Fraction(1, 3)), 20),
    ],
)
def test_functions_count_what_they_cost(action, microseconds):
    """The times were measured on the slowest machine; what is counted is at least that, in nanoseconds."""
    assert spent(action) >= 1000 * microseconds


def test_the_largest_of_many_exact_numbers_takes_few_comparisons():
    rising = [exactly(Fraction(n, 3 * 1000)) for n in range(1, 1000) if n % 3]
    for find, end in ((largest, rising[-1]), (smallest, rising[0])):
        for values in (rising, rising[::-1]):
            assert spent(lambda values=values, find=find: find(values)) < 10 * len(values) * work.OF_A_NUMBER
            assert find(values) is end


@pytest.mark.parametrize("depth", [10, 60])
def test_nested_roots_have_short_names(depth):
    """Each level of quotes doubles a name's length: 2^60 characters at this depth."""
    stage = read_text("laplace(" + "sqrt(" * depth + "2" + ")" * depth + ")", {})[0]
    value = stage.arguments["scale"]
    assert abs(value - iv.mpf(2) ** (ONE / 2**depth)).b < 1e-50


def test_blocks_are_counted_as_they_are_read(monkeypatch):
    pair = [block(f"0.{i:05}", f"0.9{i:05}") for i in range(5_000)]
    steps = [lower("laplace", 0, 1, pair) for _ in range(20)]
    monkeypatch.setattr(work, "ALL_WORK", work.ALL_WORK // 20)
    with pytest.raises(CertificateError, match=TOO_LONG):
        examine(sealed("open", claim("laplace(1)", 1, dim=5_000), *steps))


def test_a_refusal_in_a_comparison_is_one(monkeypatch):
    """mpmath takes any error in a comparison for a number of another kind."""
    for other in (0, 0.5):
        monkeypatch.setattr(work, "ALL_WORK", 10)
        with limited(), pytest.raises(CertificateError, match=TOO_LONG):
            assert other < ONE
    assert ONE != "a text"
    assert ONE == 1


def test_long_decimals_are_counted():
    short, long = (spent(lambda text=text: read_step(upper("laplace", 0, text))) for text in ("1", "1." + "3" * 390))
    assert long - short >= 200_000  # nanoseconds, as measured


@pytest.mark.parametrize(
    ("theorem", "module", "name"), [("levels", levels, "_least"), ("saddlepoint", fourier, "log_mass")]
)
def test_bounds_for_a_whole_ball_are_few(theorem, module, name, monkeypatch):
    """On the slowest machine tables take up to 5 seconds, and an integral 0.35: not many are made."""
    made = []
    monkeypatch.setattr(levels, "_FOUND", {})
    monkeypatch.setattr(module, name, lambda *arguments: made.append(arguments) or 0.0)
    steps = [upper(theorem, 1, f"1.{i:03}", "0.1", tilt=[f"1.{i:03}"] * 2) for i in range(60)]
    found = examine(sealed("open", claim("clip(l2, 0.5) | laplace(1)", 1, "0.1", dim=1000), *steps))
    assert 0 < len(made) <= {"levels": 8, "saddlepoint": 60}[theorem]
    assert sum(TOO_LONG in said for said in found.failures) >= 60 - len(made)


def test_cells_of_both_orders_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(sampled, "_normal_cells", None)
    given = claim("poisson(0.01) | clip(l2, 1) | gaussian(1) | times(2)", 1, "1e-6", neighbours="replace-record")
    grid = {"tilt": ["1", "1"], "step": ["5e-6", "5e-6"]}
    found = examine(sealed("open", given, upper("poisson", 2, 1, "1e-6", grid=grid)))
    assert any("into too many cells" in said for said in found.failures)


def test_products_of_long_losses_are_taken_in_pieces():
    """So that they are not handed to several threads; the values are those of one piece."""
    rng = np.random.default_rng(3)
    for sizes in ((3, 5), (9000, 20000), (20000, 9000), (1, 1)):
        first, second = (rng.random(size) for size in sizes)
        assert lattice._convolved(first, second) == pytest.approx(np.convolve(first, second), rel=1e-12)


# ── Vocabularies ────────────────────────────────────────────────────────────────────────────────


def member(shape, kind="<f8", size=0):
    """A file whose header states this shape and whose data has `size` bytes."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(size)


def archive(path, vectors, claimed=None):
    words = io.BytesIO()
    np.save(words, np.array(["a", "b", "c"]))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("words.npy", words.getvalue())
        written.writestr("vectors.npy", vectors)
    if claimed is not None:  # the directory lies
        content = bytearray(path.read_bytes())
        for mark, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
            at = content.rfind(mark)
            content[at + place : at + place + 4] = struct.pack("<I", claimed)
        path.write_bytes(bytes(content))
    return path


@pytest.mark.parametrize(
    ("array", "claimed", "said"),
    [
        (((3, 30_000_000), "<f8", 160 << 20), None, "at most 128 MB unpacked"),
        (((3, 30_000_000), "<f8", 160 << 20), 1 << 20, "cannot be read|not what they say"),
        (((10**12, 10**6),), None, "not what they say they are"),
        (((3,), "|O", 24), None, "not what they say they are"),
    ],
    ids=["a bomb", "a bomb that lies", "a huge shape", "objects"],
)
def test_archives_are_refused_before_they_are_unpacked(array, claimed, said, tmp_path):
    path = archive(tmp_path / "words.npz", member(*array), claimed)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=said):
            word_vectors.read_vectors(path, 3)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_too_many_words_or_numbers_are_refused(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a 1 2\nb 3 4\n")
    assert word_vectors.read_vectors(path, 2).rows.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match="at most 500,000 words"):
        word_vectors.read_vectors(path, 10**7)
    with pytest.raises(InputError, match="at most 16,777,216 numbers"):
        word_vectors._allow(1 << 25)


def test_work_with_words_is_counted(tmp_path, monkeypatch):
    """Groups of two words each: half as many orders as there are words, each of all words."""
    rng = np.random.default_rng(0)
    path, count = tmp_path / "words.npz", 2000
    np.savez(path, words=np.array([f"w{i}" for i in range(count)]), vectors=rng.normal(size=(count, 3)))
    digest = word_vectors.read_vectors(path, count).digest
    data = {
        "schema": "dpassay/word-certificate/1",
        "written_by": "nobody",
        "verdict": "refuted",
        "claim": {
            "mechanism": "custext",
            "epsilon": "1",
            "parameters": {"K": 2},
            "rules": {"unknown": None, "stop_words": None, "numbers": None},
            "stop_words": [],
            "guarantee": {"epsilon": "1", "metric": None},
        },
        "vocabulary": {"words": count, "dim": 3, "sha256": digest},
        "evidence": {"kind": "pair", "x": "w1999", "y": "w1998", "output": "w3", "loss": "inf", "distance": None},
    }
    monkeypatch.setattr(work, "ALL_WORK", 20_000_000)
    with limited(), pytest.raises(CertificateError, match=TOO_LONG):
        check_words(json.loads(json.dumps(data)), path)
    forget()


def test_an_archive_of_very_many_members_is_refused(tmp_path):
    path = archive(tmp_path / "words.npz", member((3, 1), size=24))
    with zipfile.ZipFile(path, "a") as written:
        for name in range(30_000):
            written.writestr(f"{name:050}", b"")
    with pytest.raises(InputError, match="too many members"):
        word_vectors.read_vectors(path, 3)
