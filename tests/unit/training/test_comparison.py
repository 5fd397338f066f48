"""Models trained in four ways are measured on the same text, by a probability that sums to 1."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the extra: pip install 'dpassay[text]'")
import torch

from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.words import ModelVocabulary
from dpassay.training import comparison
from dpassay.training.comparison import (
    ARMS,
    MASK,
    ComparedRun,
    Setup,
    TextSource,
    TrainingTask,
    masked,
    perplexity,
    run,
    stand_ins,
)
from dpassay.training.networks.language_model import LanguageModel, Sizes

TINY = Setup(rounds=1, size=2, rate=0.3)


def model(words: int, seed: int = 0) -> LanguageModel:
    torch.manual_seed(seed)
    return LanguageModel(Sizes(words, 3, 3))


def test_a_model_that_knows_nothing_has_the_number_of_words_as_perplexity():
    network = model(11)
    for weights in network.parameters():
        torch.nn.init.zeros_(weights)
    numbers = np.array([[5, 10, 4, 1], [7, 1, 0, 0]])
    assert perplexity(network, numbers, numbers) == pytest.approx(11)
    spread = perplexity(network, numbers, np.array([[5, 6, 4, 1], [7, 1, 0, 0]]), stands_for=[6, 8], mask=10)
    # five words of probability 1/11, and one that has half of the mask's as well
    assert spread == pytest.approx((11**5 * 11 / 1.5) ** (1 / 6))


def test_spreading_the_mask_leaves_a_probability():
    network, history = model(9), np.array([[5, 8, 4, 1]])
    total = sum(
        1 / perplexity(network, history[:, :1], np.array([[word]]), stands_for=[3, 6, 7], mask=8)
        for word in range(1, 8)
    )
    padding = torch.softmax(network(torch.tensor(history[:, :1])), -1)[0, 0, 0].item()  # no target is padding
    assert total + padding == pytest.approx(1, abs=1e-6)


def test_words_are_predicted_from_what_is_seen_before_them():
    network = model(9)
    seen, said = np.array([[8, 4, 1]]), np.array([[6, 4, 1]])
    scores = torch.log_softmax(network(torch.tensor(seen)).double(), -1)[0].detach()
    expected = math.exp(-float(scores[0, 6] + scores[1, 4] + scores[2, 1]) / 3)
    assert perplexity(network, seen, said) == pytest.approx(expected)
    assert perplexity(network, seen, said) != pytest.approx(perplexity(network, said, said))


def test_unigrams_are_counted():
    trained, said = [[4, 4, 5, 1], [6, 1, 0, 0]], [[4, 6, 1], [7, 1, 0]]
    counts = Counter(word for row in trained for word in row if word)
    chance = {word: Fraction(counts[word] + 1, 6 + 8) for word in range(8)}
    product = math.prod(chance[word] for row in said for word in row if word)
    found = comparison.unigram_perplexity(np.array(trained), np.array(said), 8)
    assert found == pytest.approx(float(1 / product) ** (1 / 5))


@pytest.mark.parametrize(
    ("text", "entities", "shown"),
    [
        ("Fly to New  York, now", ("new york",), f"fly to {MASK} {MASK} now"),
        ("york or new york", ("New York", "york"), f"{MASK} or {MASK} {MASK}"),
        ("romeo to rome rome", ("rome",), f"romeo to {MASK} {MASK}"),
        ("Nothing Here", (), "nothing here"),
        ("a (c++) b", ("c++",), f"a {MASK} b"),
    ],
)
def test_each_word_of_an_entity_is_masked(text, entities, shown):
    assert masked(Utterance(text, entities=entities)) == shown


def test_no_entity_is_left_in_de_identified_text():
    for said in flights(300):
        left = masked(said).split()
        assert len(left) == len(said.text.split())
        assert not {word for entity in said.entities for word in entity.split()} & set(left)


def test_a_mask_stands_for_the_words_it_hid():
    known = ModelVocabulary(("bern", "new", "to", "york"))
    said = [
        Utterance("to new york", entities=("new york",)),
        Utterance("to bern"),
        Utterance("oslo", entities=("oslo",)),
    ]
    assert stand_ins(said, known) == [3, 5, 7]  # oslo is an unknown word; bern was not hidden


def test_all_models_are_measured_on_the_same_words(monkeypatch):
    measured = {}

    def look(network, seen, said, stands_for=(), mask=-1):
        measured.setdefault(arm, []).append((seen, said, len(stands_for)))
        return 2.0

    monkeypatch.setattr(comparison, "perplexity", look)
    source = TextSource("flights:300")
    for arm in ARMS:
        assert run(TrainingTask(source, arm, 1.0 if arm in comparison.PRIVATE else 0.0, setup=TINY)) == ComparedRun(
            2.0, 2.0, 2.0
        )
    (first, said, none), (_, to_choose, _) = measured["none"]
    assert none == 0
    assert first is said
    assert all(np.array_equal(texts, said) for arm in ARMS for _, texts, _ in measured[arm][: len(measured[arm]) // 2])
    assert all(
        np.array_equal(texts, to_choose) for arm in ARMS for _, texts, _ in measured[arm][len(measured[arm]) // 2 :]
    )
    (as_read, _, _), (hidden, _, stood_for), *_ = measured["de-identified"]
    assert np.array_equal(as_read, said)
    assert stood_for > 10
    held_out = comparison.held_out(source)
    words = sum(len(entity.split()) for u in held_out for entity in set(u.entities))
    assert (hidden != said).sum() >= words > 0


def test_nobody_measures_who_was_trained_on_or_chose():
    source = TextSource("flights:300")
    trained, measured, chose = (
        {u.user for u in some}
        for some in (comparison.trained_on(source), comparison.held_out(source), comparison.held_out(source, True))
    )
    assert measured
    assert chose
    assert not measured & chose
    assert not trained & (measured | chose)
    assert trained | measured | chose == {u.user for u in comparison.read(source)}


@pytest.mark.parametrize("arm", ARMS)
def test_the_same_seed_gives_the_same_model(arm):
    task = TrainingTask(TextSource("flights:150"), arm, 1.0 if arm in comparison.PRIVATE else 0.0, 3, setup=TINY)
    found = run(task)
    assert found == run(task)
    assert found != run(replace(task, seed=4))
    assert found != run(replace(task, learning_rate=0.02))
    assert (found.perplexity != found.as_read) == (arm == "de-identified")


def test_a_corpus_needs_users_and_words(tmp_path):
    (tmp_path / "a.csv").write_text("label,text\na,to rome\nb,to oslo\n")
    (tmp_path / "names.txt").write_text("rome\n")
    with pytest.raises(InputError, match=r"2 of 2 texts .* have no user"):
        comparison.read(TextSource(str(tmp_path / "a.csv"), f"list:{tmp_path / 'names.txt'}"))
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="is empty"):
        comparison.words_of(TextSource("flights", vocabulary=str(tmp_path / "empty.txt")))
    with pytest.raises(InputError, match="cannot be read"):
        comparison.words_of(TextSource("flights", vocabulary=str(tmp_path / "none.txt")))
