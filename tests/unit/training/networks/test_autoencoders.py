"""ADePT trained with privacy: each cell's update is its own, the folder gives nothing away, and ε adds up."""

import json
import os
import signal

import numpy as np
import pytest
import torch

from dpassay import check
from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights, known_words
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.autoencoder import Autoencoder, Shape, shifted
from dpassay.text.models.folder import WEIGHTS, from_bytes
from dpassay.text.models.training import EpochPlan as Steps
from dpassay.text.models.words import PAD, SPECIAL, UNKNOWN, ModelVocabulary
from dpassay.text.rewriters.base import WEIGHTS as NOT_COVERED
from dpassay.text.rewriters.base import covering
from dpassay.text.rewriters.vectors.adept import load
from dpassay.text.rewriters.vectors.adept import train as without_privacy
from dpassay.text.rewriters.vectors.latent import adept
from dpassay.training.aggregation import PerUnit
from dpassay.training.federated import RoundPlan
from dpassay.training.networks.autoencoders import AutoencoderTraining, Coins
from dpassay.training.run import SECRETS, train
from dpassay.training.settings import Latent, Settings
from processes import interruptible

CPU = torch.device("cpu")
SAID = flights(80)
WORDS = known_words()
SHAPE = Shape(len(ModelVocabulary(tuple(sorted(set(WORDS))))), latent=5, hidden=6, embedding=4, clip=2.0)


def settings(privacy="user", rounds=3, **more):
    noise = {} if "epsilon" in more else {"noise_multiplier": 1.2}
    small = {"embedding": 4, "hidden": 4, "rate": 0.3, "autoencoder": Latent(5)}
    return Settings(privacy, plan=RoundPlan(rounds=rounds, batch=2), **{**small, **noise, **more})


@pytest.fixture
def network():
    torch.manual_seed(1)
    return Autoencoder(SHAPE)


def table(texts):
    return torch.from_numpy(ModelVocabulary(tuple(sorted(set(WORDS)))).numbers(texts))[:, None, None]


def updates(network, tables, round_=3):
    weights = {name: tensor.data for name, tensor in network.named_parameters()}
    return AutoencoderTraining(SHAPE, CPU).updates(weights, tables, 1.0, round_)


def test_an_update_is_the_gradient_of_the_network(network):
    tables = table([u.text for u in SAID[:6]])
    found = updates(network, tables)
    coins = Coins.of(tables.numpy().reshape(6, -1), 3, SHAPE.latent, SHAPE.clip)
    assert 0 < coins.hidden.mean() < 0.5
    assert 0 < (coins.noise != 0).any(axis=1).mean() < 1
    for i in range(6):
        words = tables[i, 0][:, : int((tables[i] != PAD).sum())]
        vectors = network.encode(words)
        bounded = vectors * (SHAPE.clip / vectors.abs().sum(1, keepdim=True).clamp(min=SHAPE.clip))
        before = shifted(words)
        before[torch.from_numpy(coins.hidden[i : i + 1, : words.shape[1]]) & (before >= SPECIAL)] = UNKNOWN
        given = (bounded + torch.from_numpy(coins.noise[i : i + 1])) * SHAPE.latent**0.5
        loss = torch.nn.functional.cross_entropy(network.logits(given, before).transpose(1, 2), words)
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        for (name, _), gradient in zip(network.named_parameters(), gradients, strict=True):
            torch.testing.assert_close(found[name][i], -gradient, rtol=1e-4, atol=1e-6)


def test_an_update_depends_on_its_own_texts_alone(network):
    """Also with other cells beside it, longer ones, in another order: sums of neighbours differ by one cell's part."""
    texts = sorted((u.text for u in SAID[:5]), key=lambda text: len(text.split()))  # the shortest gets padding
    alone, together = updates(network, table(texts[:1])), updates(network, table([*texts[1:], texts[0]]))
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name][-1], tensor[0], rtol=1e-4, atol=1e-6)
    other = updates(network, table(texts[:1]), round_=4)
    assert any((other[name] != tensor).any() for name, tensor in alone.items())  # new coins in each round
    one = PerUnit(5, 1.0, 0.01)
    whole, less = one.combine(range(5), [(range(5), together)]), {n: t[:-1] for n, t in together.items()}
    assert float((whole - one.combine(range(4), [(range(4), less)])).norm()) <= 0.01


@pytest.mark.parametrize("privacy", ["example", "user"])
def test_the_weights_of_neighbours_have_folders_that_differ_in_noise_alone(tmp_path, privacy):
    secret = [Utterance("kowalczyk owes 7391 to rome", user="k"), *[Utterance("call kowalczyk", user="k")] * 9]
    more = secret[:1] if privacy == "example" else secret
    for name, said in (("a", SAID), ("b", [*SAID, *more])):
        train(said, tmp_path / name, settings(privacy), vocabulary=WORDS)
    for file in ("statement.json", "statement.md"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    models = [json.loads((tmp_path / name / "model.json").read_text()) | {"sha256": ""} for name in "ab"]
    assert models[0] == models[1]
    assert {path.name for path in (tmp_path / "b").iterdir()} == {
        *("model.json", "statement.json", "statement.md", WEIGHTS),
    }
    sizes = [{n: a.shape for n, a in arrays(tmp_path / name).items()} for name in "ab"]
    assert sizes[0] == sizes[1]
    assert load(tmp_path / "a").texts(np.zeros((1, 5)))  # it can be used


def arrays(folder):
    return from_bytes((folder / WEIGHTS).read_bytes(), folder)


@pytest.mark.parametrize("privacy", ["example", "user"])
def test_training_and_release_are_one_statement(tmp_path, privacy):
    found = train(SAID, tmp_path / "m", settings(privacy), vocabulary=WORDS).statement
    rewriter = adept(50, model=str(tmp_path / "m"), mechanism="l1")
    verdict = check(
        found["mechanism"]["pipeline"], epsilon=9, delta=1e-5, neighbours="add-remove-record", dim=1
    )  # an account of its own
    assert verdict.proven
    assert (rewriter.weights.epsilon, rewriter.weights.delta) == (verdict.epsilon.upper, 1e-5)
    assert not rewriter.guarantee.caveats
    one, many = (
        covering(rewriter.guarantee, weights=rewriter.weights),
        covering(rewriter.guarantee, 4, rewriter.weights),
    )
    assert one.epsilon == pytest.approx(50 + verdict.epsilon.upper, rel=1e-15)
    assert many.epsilon == pytest.approx(200 + (verdict.epsilon.upper if privacy == "user" else 0), rel=1e-15)
    assert many.delta == (1e-5 if privacy == "user" else 0)


def test_noise_from_a_known_seed_covers_no_weights(tmp_path):
    train(SAID, tmp_path / "m", settings(noise_source="torch"), vocabulary=WORDS)
    rewriter = adept(50, model=str(tmp_path / "m"), mechanism="l1")
    assert rewriter.weights is None
    assert "the model's weights and words are not covered: noise from a known seed" in str(rewriter.guarantee.caveats)


def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path):
    chosen = settings(rounds=4, noise_source="torch", seed=3)

    def interrupt(done, rounds, note):
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    train(SAID, tmp_path / "whole", chosen, vocabulary=WORDS)
    with interruptible(), pytest.raises(KeyboardInterrupt):
        train(SAID, tmp_path / "cut", chosen, vocabulary=WORDS, progress=interrupt)
    assert (tmp_path / "cut" / SECRETS).exists()
    unfinished = adept(50, model=str(tmp_path / "cut"), mechanism="l1")
    assert (unfinished.weights, unfinished.guarantee.caveats[0][-28:]) == (None, "its training is not finished")
    train(SAID, tmp_path / "cut", chosen, vocabulary=WORDS, resume=True)
    whole, cut = arrays(tmp_path / "whole"), arrays(tmp_path / "cut")
    assert whole.keys() == cut.keys()
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)


def test_what_cannot_be_trained_is_refused(here, tmp_path):
    for wrong in ({"privacy": "entity"}, {"base": "gpt2"}):
        with pytest.raises(InputError, match="example or user privacy"):
            settings(**wrong)
    with pytest.raises(InputError, match=r"--vocabulary FILE\. With"):
        train(SAID, tmp_path / "m", settings())
    without_privacy(["to rome", "to oslo"], [], tmp_path / "old", Steps(1, 2), latent=2, hidden=2, embedding=2)
    with pytest.raises(InputError, match="was trained without privacy"):
        train(SAID, tmp_path / "old", settings(), vocabulary=WORDS, resume=True)
    for options, message in (
        (("--privacy", "example"), "give --epsilon 8"),
        (("--privacy", "example", "--epsilon", 3, "--batch", 4), "--rate says how many take part"),
        (("--epsilon", 3), "add --privacy example or user"),
        (("--delta", 1e-7), "add --privacy example or user"),
        (("--gradient-clip", 1), "add --privacy example or user"),
        (("--privacy", "user", "--epsilon", 3, "--seed", -1), "a seed must be"),
    ):
        code, _, err = here("train", "adept", "--corpus", "flights:50", "--out", tmp_path / "n", *options)
        assert (code, message in err) == (2, True)
    assert not (tmp_path / "n").exists()


def test_the_command_trains_and_the_rewriting_states_the_sum(here, tmp_path):
    place, out = tmp_path / "m", tmp_path / "out.jsonl"
    options = ("--privacy", "user", "--epsilon", 4, "--latent", 4, "--steps", 1, "--rate", 1, "--json")
    code, told, _ = here("train", "adept", "--corpus", "flights:60", "--out", place, *options)
    found = json.loads(told)
    assert (code, found["system"], found["guarantee"]["delta"]) == (0, "adept", 1e-5)
    assert 0 <= found["private"]["token_accuracy"] <= 1
    (tmp_path / "in.jsonl").write_text('{"text": "to rome", "user": "ann"}\n' * 3)
    line = ("rewrite", "--model", place, "--mechanism", "l1", "--epsilon", 50, "--in", tmp_path / "in.jsonl")
    code, _, err = here(*line, "--per-author", 2, "--out", out)
    assert (code, "in training and release together" in err, NOT_COVERED in err) == (0, True, False)
    held = json.loads((tmp_path / "out.jsonl.json").read_text())["guarantee"]
    upper = found["guarantee"]["epsilon"]["upper"]
    assert held["epsilon"] == pytest.approx(100 + upper, rel=1e-15)
    assert [part["epsilon"] for part in held["composed_of"]] == [upper, 50]
