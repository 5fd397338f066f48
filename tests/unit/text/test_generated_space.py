"""A search space that a language model writes: the model, what is written, the attack on it, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="language models need the extra: pip install 'dpassay[text]'")

from dpassay.errors import InputError
from dpassay.text import generated_space
from dpassay.text.generated_space import attack_all, generate, nearness, search_space, similarity_of
from dpassay.text.models.next_word import CorpusWriter, prompted, train
from dpassay.text.rewriters.vectors.latent import LatentRewriter
from dpassay.text.rewriters.vectors.release import Release

PAIRS = ["fly to rome", "fly to oslo", "book a train", "book a bus"]


@pytest.fixture(scope="module")
def writer() -> CorpusWriter:
    return train(PAIRS * 10, steps=150)


class Told:
    """A writer that knows some texts, and writes one of those that begin as is wanted."""

    at_once = 100

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def write(self, beginnings, rng):  # type: ignore[no-untyped-def]
        fitting = [[t for t in self.texts if t.startswith(beginning)] or self.texts for beginning in beginnings]
        return [some[int(rng.integers(len(some)))] for some in fitting]


def test_a_language_model_of_four_texts(writer: CorpusWriter) -> None:
    # The best loss per word (ends included) is the entropy of the choice, ln 4, over the 4 words of each text.
    assert writer.loss == pytest.approx(np.log(4) / 4, abs=0.05)
    written = writer.write([""] * 200, np.random.default_rng(0))
    assert set(written) >= set(PAIRS)
    assert sum(text in PAIRS for text in written) > 180
    begun = writer.write(["book a"] * 50 + ["fly"] * 50, np.random.default_rng(1))
    assert all(text.startswith("book a") for text in begun[:50])
    assert all(text.startswith("fly") for text in begun[50:])
    again = train(PAIRS * 10, steps=3)
    assert again.loss == train(PAIRS * 10, steps=3).loss
    with pytest.raises(InputError, match="2 texts or more"):
        train(["one", " "])


def test_a_transformers_model_writes_lines(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
    import tiny_models

    folder = tiny_models.saved(tiny_models.causal(), tmp_path / "m")
    writer = prompted(folder, ["show me flights", "from boston to rome in the morning please"])
    written = writer.write(["", "show me"], np.random.default_rng(0))
    assert written == writer.write(["", "show me"], np.random.default_rng(0))
    assert written[1].startswith("show me")
    known = {*tiny_models.WORDS, "<mask>"}
    assert all(set(text.split()) <= known for text in written)
    with pytest.raises(InputError, match="needs a causal one"):
        prompted(tiny_models.saved(tiny_models.masked(), tmp_path / "n"), ["show me"])


def test_an_audit_has_its_candidates_written(here, folder, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    trained_on, known = [], ["fly to rome", "show me trains to oslo", "i need a ticket", "book a bus"]

    def told(texts, seed, progress):  # type: ignore[no-untyped-def]
        trained_on.extend(texts)
        return Told(known)

    monkeypatch.setattr("dpassay.text.models.next_word.train", told)
    line = ("--model", folder, "--mechanism", "sqrt-n", "--epsilon", "1", "--runs", "200")
    saved = tmp_path / "audit.json"
    code, _, err = here("audit", *line, "--generate", "3", "--corpus", "flights:20", "--save", saved)
    assert code == 0, err
    assert len(trained_on) == 20
    assert sum(text in saved.read_text() for text in known) == 3
    for wrong, said in (("--candidates", "leave --candidates"), ("--text", "leave --candidates")):
        code, _, err = here("audit", *line, "--generate", "3", wrong, __file__)
        assert (code, said in err) == (2, True)
    code, _, err = here("audit", "--pipeline", "laplace(1)", "--dim", "1", "--epsilon", "1", "--generate", "3")
    assert code == 2
    assert "give one with --model" in err


def test_generated_texts_are_different(writer: CorpusWriter) -> None:
    texts = generate(writer, 4, np.random.default_rng(0))
    assert len(texts) == len(set(texts)) == 4
    for number in (1, 10**7):
        with pytest.raises(InputError, match="can be generated"):
            generate(writer, number, np.random.default_rng(0))
    with pytest.raises(InputError, match="only one text"):
        generate(Told(["fly"]), 3, np.random.default_rng(0))


@pytest.mark.long
def test_the_attack_finds_what_little_noise_leaves(model, texts, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(generated_space, "NEW", 20)
    different = list(dict.fromkeys(texts))[:60]
    spaces = {}
    for epsilon in (1e4, 1e-3):
        rewriter = LatentRewriter(model, Release("l1", epsilon, dim=16, clip=model.about.clip))
        space = search_space(rewriter, Told(different), 60, draws=400)
        spaces[epsilon] = attack_all(space, different[:12], top=3)
        assert spaces[epsilon]["in_search_space"] == 1
    # Almost no noise: the original is among the three nearest far more often than by chance, 3 of 60. With noise of a
    # thousand times the vector's size the guess is one of 60.
    assert spaces[1e4]["best"]["exact"] > 0.4
    assert spaces[1e4]["first"]["words"] > spaces[1e4]["random"]["words"] + 0.1
    assert spaces[1e-3]["best"]["exact"] < 0.4
    for found in spaces.values():
        assert all(found["best"][name] >= found["first"][name] for name in ("exact", "words", "bleu", "similarity"))


def test_the_neighbourhood_is_explored(model, texts) -> None:  # type: ignore[no-untyped-def]
    different = list(dict.fromkeys(texts))[:40]
    rewriter = LatentRewriter(model, Release("l1", 1e4, dim=16, clip=model.about.clip))
    space = search_space(rewriter, Told(different[:20]), 20, draws=400)
    wider = generated_space.SearchSpace(rewriter, Told(different), space.probe, space.texts, space.vectors)
    released = rewriter.rewrite([different[30]], np.random.default_rng(0))[0]
    before = space.nearest(released, 3, np.random.default_rng(0))
    after = wider.nearest(released, 3, np.random.default_rng(0))
    assert after[0][1] >= before[0][1]  # what was found by exploring is at least as near
    assert {text for text, _ in before} <= set(different[:20])


def test_how_near_a_guess_is(model) -> None:  # type: ignore[no-untyped-def]
    rewriter = LatentRewriter(model, Release("l1", 1.0, dim=16, clip=model.about.clip))
    same = nearness("fly to Rome", "fly to rome", similarity_of(rewriter))
    assert same == {"exact": 1, "words": 1, "bleu": pytest.approx(100), "similarity": pytest.approx(1)}
    other = nearness("fly to oslo today", "fly to rome", similarity_of(rewriter))
    assert (other["exact"], other["words"]) == (0, pytest.approx(2 / 3))
    with pytest.raises(InputError, match="vectors of an autoencoder"):
        search_space(object(), Told(PAIRS), 4)


def test_the_command(here, folder, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(generated_space, "NEW", 10)
    monkeypatch.setattr("dpassay.text.models.next_word.STEPS", 5)
    seen: list[list[str]] = []

    def learned(texts, seed=0, progress=None):  # type: ignore[no-untyped-def]
        seen.append(list(texts))
        return train(texts, seed, 5)

    monkeypatch.setattr("dpassay.text.models.next_word.train", learned)
    secret = tmp_path / "secret.txt"
    secret.write_text("fly to rome\nbook a bus\n", encoding="utf-8")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join([*PAIRS, "Fly to  Rome"]) + "\n", encoding="utf-8")
    common = ("--model", folder, "--mechanism", "l1", "--epsilon", 50, "--generate", 20, "--draws", 100)
    common += ("--corpus", corpus)
    code, out, _ = here("reconstruct", *common, "--originals", secret, "--top", 2)
    assert code == 0
    assert "best of the 2 nearest" in out
    assert "guarantee: epsilon 50 for any two texts" in out
    assert seen[-1] == ["fly to oslo", "book a train"]  # nothing that is under attack, however it is written
    code, out, err = here("reconstruct", "fly to", *common, "--original", "book a train", "--top", 3, "--json")
    found = json.loads(out)
    assert code == 0
    assert len(found["nearest"]) == 3
    assert set(found["nearest"][0]) == {"candidate", "nearness", "exact", "words", "bleu", "similarity"}
    assert "book a train" not in seen[-1]
    for words, said in (
        (("fly",), "--candidates FILE, or --generate N"),
        (("fly", *common, "--candidates", secret), "not both"),
        (common, "either a rewritten text or --originals"),
        (("fly", *common, "--originals", secret), "either a rewritten text or --originals"),
        (("fly", "--candidates", secret, "--original", "x", "--model", folder), "are for --generate"),
        (("fly", *common, "--top", 0), "must be 1 or more"),
        (("fly", *common, "--language-model", "./no/such"), "there is no folder"),
    ):
        code, _, err = here("reconstruct", *words)
        assert (code, said in err) == (2, True), (words, err)
