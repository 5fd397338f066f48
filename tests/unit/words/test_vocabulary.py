"""Words with vectors, from every form of file; and what is refused, in words."""

import gzip
import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

from dpassay.errors import InputError
from dpassay.words.vocabulary import Vocabulary, read_vocabulary

WORDS = ("the", "cat", "naïve", "3.5")
VECTORS = np.array([[0.1, -2.0, 3e-5], [1.0, 0.25, -0.0], [7.5, 1e10, 2.0], [0.0, 0.0, 1.0]])


def written_text(path, header=False, space=" "):
    lines = [f"{len(WORDS)} 3"] if header else []
    lines += [space.join([word, *(repr(float(v)) for v in row)]) for word, row in zip(WORDS, VECTORS, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def written_npz(path):
    np.savez(path, words=np.array(WORDS), vectors=VECTORS)


def written_safetensors(path):
    save_file({"vectors": VECTORS}, path, metadata={"words": json.dumps(WORDS)})


FORMS = {
    "v.txt": written_text,
    "header.txt": lambda path: written_text(path, header=True),
    "tabs.txt": lambda path: written_text(path, space="\t"),
    "v.npz": written_npz,
    "v.safetensors": written_safetensors,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_words_and_doubles(tmp_path, name):
    FORMS[name](tmp_path / name)
    found = read_vocabulary(tmp_path / name)
    assert found.words == WORDS
    assert np.array_equal(found.vectors, VECTORS)
    assert found.digest == Vocabulary(WORDS, VECTORS).digest


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_shorter_numbers_are_read_as_they_are(tmp_path, dtype):
    short = VECTORS[:, :2].clip(-9, 9).astype(dtype)
    save_file({"emb": short}, tmp_path / "v.safetensors", metadata={"words": json.dumps(WORDS)})
    assert np.array_equal(read_vocabulary(tmp_path / "v.safetensors").vectors, short.astype(np.float64))


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    data = np.array([1.0, -2.5, 0.0, 3.0], np.float32)
    header = {"v": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}, "__metadata__": {"words": '["a", "b"]'}}
    text = json.dumps(header).encode()
    halves = (data.view(np.uint32) >> 16).astype("<u2").tobytes()
    (tmp_path / "v.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + halves)
    assert read_vocabulary(tmp_path / "v.safetensors").vectors.tolist() == [[1.0, -2.5], [0.0, 3.0]]


def test_words_may_have_spaces_as_in_gloves_largest_file(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n")
    assert read_vocabulary(tmp_path / "v.txt").words == ("a", ". . .", "at name@domain.com")


@pytest.mark.parametrize("name", FORMS)
def test_a_limit_takes_the_first_words(tmp_path, name):
    FORMS[name](tmp_path / name)
    found = read_vocabulary(tmp_path / name, limit=2)
    assert found.words == WORDS[:2]
    assert found.digest == Vocabulary(WORDS[:2], VECTORS[:2]).digest


REFUSED = {
    "nan": (b"a 1 2\nb nan 3\n", "the vector of 'b' in .* has NaN or an infinite number"),
    "infinite": (b"a 1 2\nb 1e999 3\n", "NaN or an infinite number"),
    "too large": (b"a 1 2\nb 1e200 3\n", "beyond 1e100"),
    "equal words": (b"a 1 2\nb 1 3\na 4 5\n", "the word 'a' twice, as words 1 and 3"),
    "one word": (b"a 1 2\n", "1 word: at least two"),
    "more numbers": (b"a 1 2\nb 1 2 3\n", "line 2: 3 numbers, where the vectors of this file have 2"),
    "fewer numbers": (b"a 1 2\nb 1\n", "line 2: "),
    "another header": (b"2 5\na 1 2\nb 3 4\n", "line 2: "),
    "no numbers": (b"once upon a time\nthere was\n", "'upon' is not a number"),
    "words only": (b"a\nb\n", "expected a word and its numbers"),
    "underscores": (b"a 1 2\nb 1_0 2\n", "'1_0' is not a number"),
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "binary": (b"\xff\xfe\x00\x01\n\x80", "not UTF-8"),
    "pickle": (pickle.dumps({"a": [1.0]}), "pickle, which could run code"),
    "gzip": (gzip.compress(b"a 1 2\n"), "compressed: unpack it first"),
    "broken npz": (b"PK\x03\x04nothing", "cannot be read as npz"),
    "broken safetensors": ((9).to_bytes(8, "little") + b'{"a": 1}}' + b"....", "safetensors|has no words|tables"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_files_are_refused_in_words(tmp_path, case):
    content, message = REFUSED[case]
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vocabulary(tmp_path / "v.txt")


def test_objects_in_an_npz_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["a", None], dtype=object), vectors=np.eye(2))
    with pytest.raises(InputError, match="cannot be read as npz"):
        read_vocabulary(tmp_path / "v.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"vectors": np.eye(2)}, "no array 'words' .it has vectors."),
        ({"words": np.array(["a", "b", "c"]), "vectors": np.eye(2)}, "3 words and 2 vectors"),
        ({"words": np.array(["a", "b"]), "vectors": np.array(["x", "y"])}, "expected numbers"),
        ({"words": np.arange(2), "vectors": np.eye(2)}, "expected one row of text"),
        ({"words": np.array(["a", "b"]), "vectors": np.ones(2)}, "one vector per word"),
    ],
)
def test_npz_that_does_not_fit_together(tmp_path, arrays, message):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_vocabulary(tmp_path / "v.npz")


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_vocabulary(path)


def test_the_digest_sees_every_word_and_number():
    base = Vocabulary(WORDS, VECTORS).digest
    assert Vocabulary((*WORDS[:3], "3.6"), VECTORS).digest != base
    assert Vocabulary(WORDS, np.nextafter(VECTORS, 1)).digest != base
    assert Vocabulary(("ab", "c"), np.eye(2)).digest != Vocabulary(("a", "bc"), np.eye(2)).digest
