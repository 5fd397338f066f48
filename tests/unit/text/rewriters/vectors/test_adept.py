"""Training: it learns, it resumes to the same weights, and an incomplete folder is refused."""

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from processes import interruptible, killed_at_each_moment

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")

from dpassay import InputError  # noqa: E402
from dpassay.text.models.autoencoder import Autoencoder, Shape  # noqa: E402
from dpassay.text.models.folder import MODEL, WEIGHTS, from_bytes  # noqa: E402
from dpassay.text.models.training import EpochPlan, Learner, TrainingRecipe, likeness, made_up, token_accuracy, usable  # noqa: E402
from dpassay.text.models.words import END, PAD, SPECIAL, ModelVocabulary  # noqa: E402
from dpassay.text.rewriters.vectors.adept import load, train  # noqa: E402

TINY = {"latent": 4, "hidden": 8, "embedding": 8}
PLAN = EpochPlan(steps=6, batch=4, learning_rate=0.01)
TEXTS = ["fly to rome", "fly to oslo today", "a flight", "rome please", "to oslo", ""]


def weights(folder: Path) -> dict[str, np.ndarray]:
    return from_bytes((folder / WEIGHTS).read_bytes(), folder)


def test_it_learns_to_give_texts_back(model, texts):
    numbers = model.vocabulary.numbers(texts)
    torch.manual_seed(0)
    untaught = Autoencoder(model.network.shape).eval()
    assert token_accuracy(model.network, numbers) > 2 * token_accuracy(untaught, numbers)
    assert model.about.token_accuracy is not None


def test_token_accuracy_counts_words_at_their_place(model):
    class Fixed:
        def vectors(self, numbers):
            return numbers

        def rows(self, numbers):
            return np.array([[5, 6, END, END], [9, END, END, END]])

    # fly to rome / oslo: of 4 words one is right (5 at the first place); what is missing is wrong
    numbers = np.array([[5, 7, 8, END], [4, END, PAD, PAD]])
    assert token_accuracy(Fixed(), numbers) == 0.25


def test_a_run_that_is_killed_at_any_moment_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr("dpassay.text.rewriters.vectors.adept.SAVED_EVERY", -1.0)
    plan = EpochPlan(2, 4, 0.01)
    whole = train(TEXTS, [], tmp_path / "whole", plan, **TINY).about
    killed = killed_at_each_moment(monkeypatch, tmp_path, lambda place: train(TEXTS, [], place, plan, **TINY))
    for place in killed:
        assert train(TEXTS, [], place, plan, **TINY, resume=True).about.sha256 == whole.sha256
        assert {path.name for path in place.iterdir() if not path.match(".*.part")} == {MODEL, WEIGHTS}
    assert int(place.name) > 9  # three operations for each of three saves


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(TEXTS, [], tmp_path / name, EpochPlan(6, 4, 0.01, seed), **TINY)
    same, other = weights(tmp_path / "a"), weights(tmp_path / "c")
    assert all((array == same[name]).all() for name, array in weights(tmp_path / "b").items())
    assert any((array != same[name]).any() for name, array in other.items())


def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path):
    train(TEXTS, [], tmp_path / "whole", PLAN, **TINY)

    def interrupt(step: int, steps: int, note: str) -> None:
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    with interruptible():
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            train(TEXTS, [], tmp_path / "cut", PLAN, **TINY, progress=interrupt)
        assert signal.getsignal(signal.SIGINT) is before
    assert load(tmp_path / "cut").about.steps == 3
    train(TEXTS, [], tmp_path / "cut", PLAN, **TINY, resume=True)
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert expected.keys() == found.keys()
    assert all((expected[name] == found[name]).all() for name in expected)
    assert train(TEXTS, [], tmp_path / "cut", PLAN, **TINY, resume=True).about.steps == 6  # nothing left to do


def test_a_run_goes_on_to_more_or_fewer_steps(tmp_path):
    train(TEXTS, [], tmp_path / "m", PLAN, **TINY)
    before = weights(tmp_path / "m")
    more = train(TEXTS, [], tmp_path / "m", EpochPlan(9, 4, 0.01), **TINY, resume=True).about
    assert (more.steps, more.plan["steps"]) == (9, 9)
    assert any((array != before[name]).any() for name, array in weights(tmp_path / "m").items())
    assert (
        train(TEXTS, [], tmp_path / "m", EpochPlan(4, 4, 0.01), **TINY, resume=True).about.steps == 9
    )  # nothing to undo

    def interrupt(step: int, steps: int, note: str) -> None:
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with interruptible(), pytest.raises(KeyboardInterrupt):
        train(TEXTS, [], tmp_path / "n", PLAN, **TINY, progress=interrupt)
    fewer = train(TEXTS, [], tmp_path / "n", EpochPlan(2, 4, 0.01), **TINY, resume=True).about
    assert fewer.steps == 3
    assert not any(":" in name for name in weights(tmp_path / "n"))


def test_another_run_is_not_gone_on_with(tmp_path):
    train(TEXTS, [], tmp_path / "m", PLAN, **TINY)
    with pytest.raises(InputError, match="differs in batch"):
        train(TEXTS, [], tmp_path / "m", EpochPlan(6, 5, 0.01), **TINY, resume=True)
    with pytest.raises(InputError, match="differs in words"):
        train([*TEXTS[:-1], "paris"], [], tmp_path / "m", PLAN, **TINY, resume=True)
    with pytest.raises(InputError, match="was trained on another corpus"):  # of the same words
        train(TEXTS[::-1], [], tmp_path / "m", PLAN, **TINY, resume=True)
    with pytest.raises(InputError, match="was trained on another corpus"):
        train(TEXTS, ["fly to rome"], tmp_path / "m", PLAN, **TINY, resume=True)
    assert train(TEXTS, [], tmp_path / "m", PLAN, **TINY, labels=["a"] * 6, resume=True).about.steps == 6  # not used
    with pytest.raises(InputError, match="already exists"):
        train(TEXTS, [], tmp_path / "m", PLAN, **TINY)
    with pytest.raises(InputError, match="cannot be read"):
        train(TEXTS, [], tmp_path / "none", PLAN, **TINY, resume=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"latent": 0}, "latent must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"device": "abacus"}, "unknown device"),
    ],
)
def test_what_cannot_be_trained_is_said(tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        train(TEXTS, [], tmp_path / "m", PLAN, **{**TINY, **change})
    assert not (tmp_path / "m").exists()


def test_plans_and_devices_that_do_not_exist():
    with pytest.raises(InputError, match="steps must be"):
        EpochPlan(steps=0)
    with pytest.raises(InputError, match="learning rate"):
        EpochPlan(learning_rate=2.0)
    with pytest.raises(InputError, match="2 texts or more"):
        train(["one"], [], "nowhere", PLAN, **TINY)


def test_without_a_cuda_device_the_cpu_works_and_it_is_said_once(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert usable("cuda") == torch.device("cpu")
    assert capfd.readouterr().err == "there is no CUDA device that torch can use here: working on the CPU\n"
    train(TEXTS, [], tmp_path / "m", PLAN, **TINY, device="cuda")
    assert capfd.readouterr().err.count("working on the CPU") == 1


def damaged(folder: Path, place: Path, how: str) -> None:
    place.mkdir()
    for name in (MODEL, WEIGHTS):
        (place / name).write_bytes((folder / name).read_bytes())
    about = json.loads((place / MODEL).read_text())
    if how == "no weights":
        (place / WEIGHTS).unlink()
    elif how == "truncated":
        (place / WEIGHTS).write_bytes((place / WEIGHTS).read_bytes()[:-10])
    elif how == "a pickle":
        (place / WEIGHTS).write_bytes(b"\x80\x04cos\nsystem\n")
    elif how == "half a file":
        (place / MODEL).write_text(json.dumps(about)[:50])
    elif how == "foreign":
        (place / MODEL).write_text('{"architectures": ["BertModel"]}')
    elif how == "another system":
        (place / MODEL).write_text(json.dumps({**about, "system": "dpnr"}))
    elif how == "a word too few":
        (place / MODEL).write_text(json.dumps({**about, "words": about["words"][:-1]}))
    elif how == "a wrong size":
        (place / MODEL).write_text(json.dumps({**about, "latent": -1}))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no weights", "weights.safetensors cannot be read"),
        ("truncated", "damaged, or not the one that belongs"),
        ("a pickle", "damaged, or not the one that belongs"),
        ("half a file", "not a model's file, or is incomplete"),
        ("foreign", "its format is not"),
        ("another system", "another system, 'dpnr', not adept"),
        ("a word too few", "embedding.weight"),
        ("a wrong size", "latent: Input should be"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(folder, tmp_path, how, said):
    damaged(folder, tmp_path / "m", how)
    with pytest.raises(InputError, match=said):
        load(tmp_path / "m")


def test_made_up_batches_are_texts():
    words = ModelVocabulary.of(TEXTS)
    numbers = words.numbers(TEXTS)
    likely = np.cumsum(np.r_[np.zeros(SPECIAL), np.full(len(words.words), 1 / len(words.words))])
    batch, own = made_up(numbers, 500, likely, np.random.default_rng(0))
    ends = (batch == END).argmax(axis=1)
    assert ((batch == END).sum(axis=1) == 1).all()
    assert all(
        (row[end + 1 :] == PAD).all() and (row[:end] >= SPECIAL).all() for row, end in zip(batch, ends, strict=True)
    )
    seen = set(map(tuple, numbers.tolist()))
    strange = sum(tuple(row) not in seen for row in batch.tolist())
    assert 100 < strange < 500  # most are made up, some are the texts themselves
    assert 0.1 < np.mean(own < 0) < 0.5  # 0.3 of them get another end, where that leaves a text
    kept = own >= 0
    assert ((batch[kept] != PAD) == (numbers[own[kept]] != PAD)).all()  # of these at most words were replaced
    assert np.mean(batch[kept] == numbers[own[kept]]) > 0.8


def test_likeness_is_the_mean_squared_cosine():
    rng = np.random.default_rng(0)
    vectors = torch.from_numpy(rng.normal(size=(7, 3)))
    cosines = np.array(
        [float(torch.cosine_similarity(a, b, dim=0)) for i, a in enumerate(vectors) for b in vectors[:i]]
    )
    assert float(likeness(vectors)) == pytest.approx((cosines**2).mean())


def test_a_learner_starts_from_its_moments():
    torch.manual_seed(0)
    words = ModelVocabulary.of(TEXTS)
    first = Learner(Autoencoder(Shape(len(words), **TINY)), words, TEXTS, [], PLAN)
    first.learn()
    second = Learner(first.network, words, TEXTS, [], PLAN)
    second.resume(1, first.moments())
    assert second.moments().keys() == first.moments().keys()
    assert all((array == first.moments()[name]).all() for name, array in second.moments().items())
    assert second.step == 1


def test_a_model_for_an_epsilon_has_its_sizes_and_is_not_continued_for_another(tmp_path):
    plan = EpochPlan(steps=2, batch=4, for_epsilon=16.0)
    made = train(TEXTS, TEXTS, tmp_path / "m", plan, embedding=8)
    assert (made.about.latent, made.about.hidden) == (10, 320)  # 2.4 * sqrt(16) = 9.6
    assert made.about.plan["for_epsilon"] == 16
    with pytest.raises(InputError, match="differs in for_epsilon"):
        train(
            TEXTS, TEXTS, tmp_path / "m", EpochPlan(steps=4, batch=4), latent=10, hidden=320, embedding=8, resume=True
        )
    with pytest.raises(InputError, match="for an epsilon from 1 to 10,000, got -1"):
        EpochPlan(for_epsilon=-1)
    assert train(TEXTS, TEXTS, tmp_path / "n", PLAN, **TINY).about.plan["for_epsilon"] == 0


def test_noise_in_training_has_the_epsilons_and_the_share_of_its_recipe():
    words = ModelVocabulary.of(TEXTS)
    shape = Shape(words=len(words), **TINY)
    vectors = torch.zeros(4000, 4)
    for epsilon, recipe in ((0.0, TrainingRecipe()), (100.0, TrainingRecipe(24, 320, 0.8, (40.0, 2000.0), 0.05, 1.0))):
        learner = Learner(Autoencoder(shape), words, TEXTS, TEXTS, EpochPlan(steps=2, batch=4, for_epsilon=epsilon))
        assert learner.recipe == recipe
        noise = learner._as_in_use(vectors, np.random.default_rng(1)).numpy()
        noisy = (noise != 0).any(axis=1)
        assert abs(noisy.mean() - recipe.noisy) < 0.05  # six standard errors
        sizes = np.abs(noise[noisy]).mean(axis=1) / 2  # of Laplace noise of scale 2/epsilon, times the root of 4
        low, high = (2 / e for e in recipe.epsilons[::-1])
        assert low / 20 < np.quantile(sizes, 0.02) < np.quantile(sizes, 0.98) < 4 * high


def test_an_autoencoder_for_an_epsilon_learns_to_tell_labels_from_its_vectors():
    texts = [f"{verb} {thing} {number}" for verb in ("fly", "stay") for thing in "abcd" for number in "1234"]
    labels = ["", *(text.split()[0] for text in texts[1:])]  # one has none
    words, plan = ModelVocabulary.of(texts), EpochPlan(steps=40, batch=16, learning_rate=0.02, for_epsilon=100.0)

    def learned(given: list[str]) -> tuple[Learner, torch.Tensor]:
        torch.manual_seed(0)
        learner = Learner(Autoencoder(Shape(len(words), **TINY)), words, texts, [], plan, given)
        while learner.step < plan.steps:
            learner.learn()
        vectors = learner.network.encode(torch.from_numpy(learner.numbers))
        return learner, learner.network.seen(vectors).detach()

    told, vectors = learned(labels)
    assert told.labels.tolist() == [-1, *[0] * 15, *[1] * 16]
    right = (told.teller(vectors).argmax(dim=1).numpy() == told.labels)[1:]
    assert right.mean() > 0.9  # guessing has 0.52
    untold, others = learned([])
    assert untold.teller is None
    assert not torch.equal(vectors, others)  # the encoder learns from the labels too


def test_labels_do_not_matter_without_an_epsilon_and_must_be_as_many_as_texts(tmp_path):
    labels = ["a" if i % 2 else "b" for i in range(len(TEXTS))]
    first, second = (
        train(TEXTS, [], tmp_path / name, PLAN, labels=given, **TINY) for name, given in (("a", labels), ("b", ()))
    )
    assert first.about.sha256 == second.about.sha256
    with pytest.raises(InputError, match=r"a label for each text or none at all: got 1 for"):
        train(TEXTS, [], tmp_path / "c", PLAN, labels=["a"], **TINY)


def test_a_run_with_labels_resumes_to_the_same_weights(tmp_path):
    labels = ["a" if i % 2 else "b" for i in range(len(TEXTS))]
    plan = EpochPlan(steps=6, batch=4, for_epsilon=16.0)

    def stop(step, steps, note):
        if step == 3:
            signal.raise_signal(signal.SIGINT)

    whole = train(TEXTS, [], tmp_path / "whole", plan, labels=labels, **TINY)
    with interruptible(), pytest.raises(KeyboardInterrupt):
        train(TEXTS, [], tmp_path / "cut", plan, labels=labels, progress=stop, **TINY)
    assert "teller:weight" in weights(tmp_path / "cut")
    resumed = train(TEXTS, [], tmp_path / "cut", plan, labels=labels, resume=True, **TINY)
    assert resumed.about.sha256 == whole.about.sha256
    with pytest.raises(InputError, match="was trained on another corpus"):
        train(TEXTS, [], tmp_path / "cut", plan, labels=labels[::-1], resume=True, **TINY)
