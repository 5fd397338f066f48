"""A causal transformers model from a folder is trained, kept in the library's own form, and resumed."""

import re

import numpy as np
import pytest
import torch

from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights
from dpassay.text.corpora.utterance import Utterance
from dpassay.training.causal import Causal
from dpassay.training.federated import Plan
from dpassay.training.run import opened, train
from dpassay.training.settings import Settings

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
    tokeniser = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", unk_token="<unk>")
    tokeniser.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokeniser), n_positions=66, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def settings(base, **more):
    return Settings("user", noise_multiplier=1.0, rate=0.2, noise_source="torch", base=str(base), **more)


def test_a_model_is_trained_and_kept(base, tmp_path):
    found = train(SAID, tmp_path / "m", settings(base, plan=Plan(rounds=2, batch=2)))
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


def test_neighbouring_corpora_leave_the_same_files_but_for_the_noise(base, tmp_path):
    """Every byte that is not noise: the tokeniser, its merges and the configuration come from the base model."""
    chosen = Settings("user", noise_multiplier=1.0, rate=0.2, base=str(base), plan=Plan(rounds=1, batch=2))
    one = Utterance("kowalczyk flies to oslo " * 30, user="kowalczyk")
    names = ("with", "without")
    for name, said in zip(names, ([*SAID, one], SAID), strict=True):
        train(said, tmp_path / name, chosen)
    first, second = ({str(p.relative_to(tmp_path / n)): p for p in (tmp_path / n).rglob("*")} for n in names)
    assert first.keys() == second.keys()
    for name, path in first.items():
        if path.is_dir() or path.suffix == ".safetensors":
            continue
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


def test_what_is_no_model_is_refused(base, tmp_path):
    with pytest.raises(InputError, match="is not a causal transformers model that can be read here"):
        Causal(str(tmp_path), torch.device("cpu"))
    with pytest.raises(InputError, match="has its own vocabulary"):
        train(SAID, tmp_path / "m", settings(base), vocabulary=["a"])
    causal = Causal(str(base), torch.device("cpu"))
    with pytest.raises(InputError, match="not those of this base model"):
        causal.load({"a": np.zeros(2)}, tmp_path)
