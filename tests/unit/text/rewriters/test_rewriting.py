"""Rewriting: whatever the input, input line n is output line n, and the guarantee is stated."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")
opendp = pytest.importorskip("opendp", reason="noise that is released needs the extra: pip install 'dpassay[release]'")

from dpassay import InputError  # noqa: E402
from dpassay.audit.mechanisms.targets import describe  # noqa: E402
from dpassay.compute import threads  # noqa: E402
from dpassay.text.rewriters.base import (  # noqa: E402
    DOUBLES,
    PREDICTABLE,
    REPEATED,
    WEIGHTS,
    as_mechanism,
    released,
    statement,
)
from dpassay.text.rewriters.rewriting import Order, in_groups, lines_of, opened, rewritten  # noqa: E402
from dpassay.text.rewriters.vectors.latent import LatentRewriter  # noqa: E402
from dpassay.text.rewriters.vectors.release import MECHANISMS, Release  # noqa: E402

ODD = ["", "   ", "🛫 à rome", "nul \0 byte", "word " * 10_000, "unknownword", "\x1b[2J", "line\x85sep\u2028here"]


def rewriter(model, mechanism="l1", epsilon=5.0, **changes) -> LatentRewriter:
    delta = 1e-6 if mechanism == "gaussian" else 0.0
    sizes = {"dim": model.about.latent, "clip": 1.0, **changes}
    return LatentRewriter(model, Release(mechanism, epsilon, delta, **sizes))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_line_comes_out_once_and_holds_known_words_only(model, mechanism):
    private = rewriter(model, mechanism)
    for written in (private.release(ODD), private.rewrite(ODD, np.random.default_rng(0))):
        assert len(written) == len(ODD)
        assert all("\n" not in line for line in written)
        assert {word for line in written for word in line.split()} <= set(model.vocabulary.words)


def test_little_noise_changes_little_and_much_noise_much(model, texts):
    plain = model.texts(model.vectors(texts))
    for mechanism in MECHANISMS:
        quiet, loud = (rewriter(model, mechanism, e).rewrite(texts, np.random.default_rng(0)) for e in (1e4, 0.1))
        same, other = (np.mean([a == b for a, b in zip(plain, w, strict=True)]) for w in (quiet, loud))
        assert same > 0.5 > 0.1 > other, mechanism


def test_not_even_the_last_digit_of_a_vector_depends_on_another_line(model, texts):
    # Else another line could move this one by a step of the grid, and would lose more than the noise hides.
    lines = texts[:40]
    alone, longest = model.vectors_apart(lines[:1]), " ".join(["flight"] * 48)
    together = model.vectors_apart(lines)
    assert np.allclose(together, model.vectors(lines), atol=1e-6)
    assert np.array_equal(together[:1], alone)
    for place, other in ((1, ""), (1, longest), (39, longest), (20, lines[0])):
        changed = model.vectors_apart([*lines[:place], other, *lines[place + 1 :]])
        assert np.array_equal(np.delete(changed, place, 0), np.delete(together, place, 0))
    assert model.vectors_apart([]).shape == (0, 16)
    many = (texts * 3)[:300]  # several groups
    assert np.allclose(model.vectors_apart(many), model.vectors(many), atol=1e-6)


def test_a_line_keeps_its_place_whichever_thread_rewrites_it(model, texts, monkeypatch):
    # A row's rounding may depend on its place in a table: the place must not depend on how lines are shared out.
    monkeypatch.setattr(threads, "cores", lambda: 3)
    lines, parts, kept = (texts * 3)[:150], [], torch.get_num_threads()
    private = rewriter(model)
    monkeypatch.setattr(type(private), "_released", lambda self, some: parts.append(some) or list(some))
    try:
        torch.set_num_threads(3)
        assert private.release(lines) == lines
    finally:
        torch.set_num_threads(kept)
    assert sorted(map(len, parts)) == [32, 54, 64]  # of five groups of 32, the last with 22


def test_an_audit_writes_and_reads_in_threads_of_one_each(model, monkeypatch):
    """Threads that shared each small matrix took eight times the CPU time of one."""
    monkeypatch.setattr(threads, "cores", lambda: 2)
    private, seen, kept, network = rewriter(model), [], torch.get_num_threads(), type(model.network)
    said = ["a flight", "to rome"] * 300
    whole, vectors = private.rewrite(said, np.random.default_rng(0)), model.vectors(said)
    for name in ("write", "_read"):
        real = getattr(network, name)

        def watched(self, rows, *rest, real=real, name=name):
            seen.append((name, torch.get_num_threads()))
            made = real(self, rows, *rest)
            assert not made.requires_grad
            return made

        monkeypatch.setattr(network, name, watched)
    try:
        torch.set_num_threads(2)
        assert private.rewrite(said, np.random.default_rng(0)) == whole
        assert (model.vectors(said) == vectors).all()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(kept)
    groups = 3  # of 256, each read in both directions
    assert sorted(seen) == [("_read", 1)] * 2 * groups + [("write", 1)] * groups


def test_rewriting_encodes_each_line_apart(model, monkeypatch):
    asked = []
    monkeypatch.setattr(type(model), "vectors", lambda self, lines: pytest.fail("encoded beside other lines"))
    apart = type(model).vectors_apart
    monkeypatch.setattr(type(model), "vectors_apart", lambda self, lines: asked.extend(lines) or apart(self, lines))
    rewriter(model).release(["a flight", "to rome"])
    assert asked == ["a flight", "to rome"]


def test_samples_follow_the_generator(model):
    private = as_mechanism(rewriter(model))
    first, again, other = (private.sample("a flight", 20, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == 20


def test_what_is_promised_is_stated(model):
    stated = statement(rewriter(model, "gaussian", 3.0))
    assert stated["guarantee"]["epsilon"] == 3.0 >= stated["drawn"]["epsilon_by_opendp"]
    assert stated["guarantee"]["delta"] == 1e-6
    assert stated["per"] == "text"
    assert stated["model"]["sha256"] == model.about.sha256
    published = statement(rewriter(model, "adept-as-published", 1.0))
    assert published["guarantee"]["epsilon"] == pytest.approx(4.0)  # sqrt(16) times the claimed one
    assert published["drawn"]["epsilon_by_opendp"] == pytest.approx(4.0)
    assert published["guarantee"]["holds"] is False
    assert published["guarantee"]["as_published"] is True
    assert published["guarantee"]["sentence"].startswith("as published, epsilon 4 (claimed: 1)")
    # One epsilon is the guarantee's; that of the mechanism's authors is a parameter.
    assert "epsilon" not in published
    assert published["parameter"] == {"epsilon": 1.0, "delta": 0.0, "per": "text, as its authors define it"}


@pytest.mark.parametrize(
    ("mechanism", "doubles"), [("l1", False), ("gaussian", False), ("k-norm", True), ("vmf", True)]
)
def test_what_is_not_covered_is_said(model, mechanism, doubles):
    said = statement(rewriter(model, mechanism))["guarantee"]["not_covered"]
    assert said == [WEIGHTS, *[DOUBLES, PREDICTABLE] * doubles, REPEATED]


def test_a_rewriter_says_what_it_is_and_fits_its_model(model):
    assert describe(rewriter(model))["mechanism"] == "l1"
    with pytest.raises(InputError, match="16 coordinates, the noise has 8"):
        rewriter(model, dim=8)
    with pytest.raises(InputError, match=r"clipped at 1\.0, the mechanism clips at 2\.0"):
        rewriter(model, "sqrt-n", clip=2.0)
    with pytest.raises(InputError, match="takes a text, got 3"):
        as_mechanism(rewriter(model)).sample(3, 1, np.random.default_rng(0))


def test_a_worker_rewrites_with_the_model_that_is_named_and_loads_it_once(model, folder, texts, monkeypatch):
    plain = f"{folder},mechanism=none"
    whole = opened(Order(plain))
    order = Order(plain, sha256=model.about.sha256, threads=1)
    assert rewritten(order, texts[:5]) == released(whole, texts[:5]) == model.texts(model.vectors(texts[:5]))
    monkeypatch.setattr("dpassay.text.rewriters.rewriting.opened", lambda *_: pytest.fail("made twice"))
    assert len(rewritten(order, texts[:3])) == 3
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"holds another model at a worker on .*; copy the model"):
        rewritten(Order(f"{folder},mechanism=l1", 2.0, sha256="0" * 64), texts)


def test_lines_are_split_at_line_feeds_alone():
    import io

    content = "a\x0cb\x85c\n\r\n last\0".encode()
    assert list(lines_of(io.BytesIO(content))) == ["a\x0cb\x85c", "", " last\0"]
    with pytest.raises(InputError, match="here, line 2, is not UTF-8"):
        list(lines_of([b"ok\n", b"\xff\n"], "here"))
    assert [len(group) for group in in_groups(iter("x" * 1100))] == [512, 512, 76]
