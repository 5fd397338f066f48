"""A causal transformers model from a folder is trained, kept in the library's own form, and resumed."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
import torch

from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.folder import from_bytes
from dpassay.training.federated import RoundPlan
from dpassay.training.networks.causal import Adapter, Causal
from dpassay.training.run import opened, train
from dpassay.training.settings import Settings
from dpassay.training.statement import JSON_FILE

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
SAID = flights(60)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A tiny GPT-2 with words for tokens."""
    folder = tmp_path_factory.mktemp("base")
    words = sorted({word for u in SAID for word in u.text.split()})
    model = tokenizers.models.WordLevel({"<end>": 0, "<unk>": 1, **{w: i for i, w in enumerate(words, 2)}}, "<unk>")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", unk_token="<unk>")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=66, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def settings(base, **more):
    return Settings("user", noise_multiplier=1.0, rate=0.2, noise_source="torch", base=str(base), **more)


def test_a_model_is_trained_and_kept(base, tmp_path):
    found = train(SAID, tmp_path / "m", settings(base, plan=RoundPlan(rounds=2, batch=2)))
    assert any("base model" in line for line in found.statement["assumptions"])
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "m" / "transformers", local_files_only=True)
    own = dict(found.network.model.named_parameters())
    first = transformers.AutoModelForCausalLM.from_pretrained(base, local_files_only=True)
    for name, tensor in again.named_parameters():
        assert torch.equal(tensor, own[name])
    assert any(not torch.equal(p, own[name]) for name, p in first.named_parameters())
    network, words, _ = opened(tmp_path / "m")
    assert words is None
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), found.network.parameters(), strict=True))


@pytest.mark.parametrize("adapter", ["", "lora:2"])
def test_neighbouring_corpora_leave_the_same_files_but_for_the_noise(base, tmp_path, adapter):
    """Every byte that is not noise: the tokenizer, its merges and the configuration come from the base model."""
    if adapter:
        pytest.importorskip("peft", reason="needs pip install 'dpassay[adapters]'")
    given = {"noise_multiplier": 1.0, "rate": 0.2, "base": str(base), "adapter": adapter}
    chosen = Settings("user", **given, plan=RoundPlan(rounds=1, batch=2))
    one = Utterance("kowalczyk flies to oslo " * 30, user="kowalczyk")
    names = ("with", "without")
    for name, said in zip(names, ([*SAID, one], SAID), strict=True):
        train(said, tmp_path / name, chosen)
    first, second = ({str(p.relative_to(tmp_path / n)): p for p in (tmp_path / n).rglob("*")} for n in names)
    assert first.keys() == second.keys()
    for name, path in first.items():
        if path.is_dir():
            continue
        if path.suffix == ".safetensors":  # the names, shapes and types of the weights
            found = [
                {n: (array.shape, array.dtype) for n, array in from_bytes(one.read_bytes(), one.parent).items()}
                for one in (path, second[name])
            ]
        else:
            found = [one.read_text() for one in (path, second[name])]
        if name == "model.json":  # its sha256 is that of the weights
            found = [re.sub('"sha256": "[0-9a-f]{64}"', "", text) for text in found]
        assert found[0] == found[1], name


def test_scores_are_those_of_the_library(base):
    causal = Causal(str(base), torch.device("cpu"))
    numbers = causal.numbers(["fly to goa", "to"])
    assert numbers[1].tolist()[1:] == [1, 0, 0]  # the end, numbered from 1, then padding
    tokens = torch.tensor([[0, *(numbers[0, :-1] - 1)]])
    with torch.no_grad():
        theirs, ours = causal.model(input_ids=tokens).logits, causal.network(torch.from_numpy(numbers))
    torch.testing.assert_close(ours[:1, :, 1:], theirs)
    assert (ours[:, :, 0] < -1e8).all()


def test_updates_are_those_of_plain_gradient_descent(base):
    causal = Causal(str(base), torch.device("cpu"))
    weights = {name: p.data for name, p in causal.network.named_parameters()}
    table = torch.from_numpy(causal.numbers(["fly to goa"]))[None, None]
    found = causal.local.updates(weights, table, 0.5, 0)
    loss = torch.nn.functional.cross_entropy(causal.network(table[0, 0])[0], table[0, 0, 0])
    gradients = torch.autograd.grad(loss, list(causal.network.parameters()))
    for update, gradient in zip(found.values(), gradients, strict=True):
        torch.testing.assert_close(update[0], -0.5 * gradient, rtol=1e-4, atol=1e-6)


def test_code_that_comes_with_a_base_model_is_not_executed(base, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(base, own)
    config = json.loads((own / "config.json").read_text())
    config |= {"model_type": "mine", "architectures": ["Mine"], "auto_map": {"AutoModelForCausalLM": "mine.Mine"}}
    (own / "config.json").write_text(json.dumps(config))
    (own / "mine.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    with pytest.raises(InputError, match="is not a causal transformers model that can be read here"):
        Causal(str(own), torch.device("cpu"))
    assert not (tmp_path / "executed").exists()


def test_a_base_model_is_read_and_kept_without_a_word(base, tmp_path, capfd):
    train(SAID, tmp_path / "m", settings(base, plan=RoundPlan(rounds=1, batch=2)))
    assert capfd.readouterr() == ("", "")


def test_what_is_no_model_is_refused(base, tmp_path):
    for folder, message in (
        ("empty", "has no weights"),
        ("pickled", r"pytorch_model\.bin holds pickled weights, which can run code when read"),
        ("odd", "is not a causal transformers model that can be read here"),
        ("./none", "there is no folder"),
    ):
        place = tmp_path / folder
        if folder != "./none":
            place.mkdir()
        if folder == "pickled":
            shutil.copytree(base, place, dirs_exist_ok=True)
            (place / "model.safetensors").unlink()
            torch.save({}, place / "pytorch_model.bin")
        if folder == "odd":
            (place / "model.safetensors").write_bytes(b"")
        with pytest.raises(InputError, match=message):
            Causal(str(place), torch.device("cpu"))
    with pytest.raises(InputError, match="has its own vocabulary"):
        train(SAID, tmp_path / "m", settings(base), vocabulary=["a"])
    causal = Causal(str(base), torch.device("cpu"))
    with pytest.raises(InputError, match="not those of this base model"):
        causal.load({"a": np.zeros(2)}, tmp_path)


def by_hand(network, weights, tables, rate):
    """Local steps of one cell after the other, with autograd alone."""
    rows = []
    for table in tables:
        own = {name: tensor.clone() for name, tensor in weights.items()}
        for texts in table:
            if (texts != 0).any():
                own = {name: tensor.detach().requires_grad_() for name, tensor in own.items()}
                scores = torch.func.functional_call(network, own, (texts,))
                loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), texts.flatten(), ignore_index=0)
                gradients = torch.autograd.grad(loss, list(own.values()))
                own = {n: (t - rate * g).detach() for (n, t), g in zip(own.items(), gradients, strict=True)}
        rows.append({name: own[name] - weights[name] for name in weights})
    return {name: torch.stack([row[name] for row in rows]) for name in weights}


@pytest.mark.parametrize("steps", [1, 3])
def test_cells_computed_together_have_the_updates_of_cells_computed_alone(base, steps):
    causal = Causal(str(base), torch.device("cpu"))
    weights = {name: p.data for name, p in causal.network.named_parameters()}
    numbers = causal.numbers([u.text for u in SAID[: 4 * steps * 2]])
    tables = torch.from_numpy(numbers.reshape(4, steps, 2, -1))
    tables[1, -1, 1] = 0  # a cell with fewer texts, and one without any
    tables[3] = 0
    before = {name: tensor.clone() for name, tensor in weights.items()}
    found = causal.local.updates(weights, tables, 0.5, 0)
    expected = by_hand(causal.network, weights, tables, 0.5)
    for name, update in found.items():
        torch.testing.assert_close(update, expected[name], rtol=1e-3, atol=1e-5)
        assert torch.equal(weights[name], before[name])
        assert not update[3].any()
    assert any(update[0].any() for update in found.values())


def test_a_round_is_the_same_however_many_cells_fit_into_memory(base, tmp_path):
    """Virtual batches: each cell is bounded by itself, the sums add up, and there is one noise for the whole round."""
    found = [
        train(SAID, tmp_path / str(n), settings(base, at_once=n, plan=RoundPlan(rounds=2, batch=2)))
        for n in (1, 3, 1000)
    ]
    weights = [dict(one.network.named_parameters()) for one in found]
    for name, tensor in weights[0].items():
        for other in weights[1:]:
            torch.testing.assert_close(tensor, other[name], rtol=1e-3, atol=1e-5)
    assert len({str(one.statement["guarantee"]) for one in found}) == 1
    (tmp_path / "1" / JSON_FILE).unlink()  # as if it had been killed after the key was deleted
    again = train(SAID, tmp_path / "1", settings(base, at_once=7, plan=RoundPlan(rounds=2, batch=2)), resume=True)
    assert (again.about.done, again.statement["finished"]) == (2, True)


def test_an_adapter_trains_small_matrices_and_leaves_the_base_model(base, tmp_path):
    pytest.importorskip("peft", reason="needs pip install 'dpassay[adapters]'")
    chosen = settings(base, adapter="lora:2", plan=RoundPlan(rounds=2, batch=2))
    found = train(SAID, tmp_path / "m", chosen)
    trained = {name for name, p in found.network.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)
    first = transformers.AutoModelForCausalLM.from_pretrained(base, local_files_only=True)
    kept = {name.replace("base_layer.", "").replace("model.base_model.model.", ""): p
            for name, p in found.network.named_parameters() if name not in trained}  # fmt: skip
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, kept[name]), name
    network, _, about = opened(tmp_path / "m")  # the matrices are added to the weights
    assert about.settings["adapter"] == "lora:2"
    table = torch.from_numpy(Causal(str(base), torch.device("cpu")).numbers(["fly to goa"]))
    with torch.no_grad():
        torch.testing.assert_close(network(table), found.network(table), rtol=1e-4, atol=1e-5)
        assert not torch.allclose(network(table)[..., 1:], first(input_ids=table - 1).logits, atol=1e-4)
    assert (tmp_path / "m" / "adapter" / "adapter_model.safetensors").exists()
    named = json.loads((tmp_path / "m" / "adapter" / "adapter_config.json").read_text())["target_modules"]
    assert (len(named) > 1, named) == (True, sorted(named))  # not in the order of a set, which differs between runs
    causal = Causal(str(base), torch.device("cpu"), Adapter(2))
    weights = {name: p.data for name, p in causal.network.named_parameters() if p.requires_grad}
    tables = torch.from_numpy(causal.numbers([u.text for u in SAID[:6]]).reshape(3, 1, 2, -1))
    expected = by_hand(causal.network, weights, tables, 0.5)
    for name, update in causal.local.updates(weights, tables, 0.5, 0).items():
        torch.testing.assert_close(update, expected[name], rtol=1e-3, atol=1e-6)


def test_an_adapter_that_cannot_be_had_is_refused(base, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="--adapter and --at-once are for training from a base model"):
        Settings("user", epsilon=1, adapter="lora")
    with pytest.raises(InputError, match="at_once must be a whole number"):
        settings(base, at_once=0)
    for said, match in (("prefix", "there is lora"), ("lora:0", "rank"), ("lora:x", "rank")):
        with pytest.raises(InputError, match=match):
            Adapter.read(said)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[adapters\]'"):
        train(SAID, tmp_path / "m", settings(base, adapter="lora"))
