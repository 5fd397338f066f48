"""The utility of rewritten text: a classifier is trained on it, and it is compared with the original.

Each mechanism is measured at each ε with numpy's noise, so nothing of a measurement may be released. Each cell has a
random stream of its own, so that it comes out the same whichever others are measured.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from dpassay.audit.inference import proportion_interval
from dpassay.audit.options import Progress
from dpassay.core.files import write_whole
from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.classifier import bag_of_words, fit
from dpassay.text.models.folder import first_fault, read_json
from dpassay.text.models.words import tokenise
from dpassay.text.rewriters.adept import Model
from dpassay.text.rewriters.latent import LatentRewriter
from dpassay.text.rewriters.release import MECHANISMS, Floats, Release

SCHEMA = "dpassay/utility/1"
EPSILONS = (1.0, 10.0, 100.0, 1000.0)
# What the mechanisms are compared with: the text itself, the autoencoder without noise, and always the same label.
REFERENCES = ("original", "none", "commonest")
ERROR = 0.05  # probability that an accuracy's interval misses the truth
LARGEST_FILE = 10_000_000  # bytes
BLEU_MISSING = "BLEU is computed by sacrebleu, which is not installed: pip install 'dpassay[text]'"

Count = Annotated[int, Field(ge=0, le=10**15)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]  # what a file may hold: it can be drawn
Key = tuple[str, float | None, float | None]


@dataclass(frozen=True, slots=True, config=ConfigDict(strict=True, allow_inf_nan=False))
class Row:
    """One mechanism at one ε. The classifier was trained on rewritten text in all rows but the first.

    `epsilon` is what the mechanism claims and `true_epsilon` what it guarantees; references have neither. The
    accuracies are on the original and on the rewritten test texts. BLEU, and the shares of unchanged utterances and of
    kept words, compare rewritten test texts with the original ones.

    >>> row = Row("l1", 10, 0, 10, right_original=70, right_rewritten=40, utterances=100)
    >>> row.accuracy_original, [round(end, 2) for end in row.interval_original]
    (0.7, [0.6, 0.79])
    """

    mechanism: str
    epsilon: Number | None
    delta: Number | None
    true_epsilon: Number | None
    right_original: Count
    right_rewritten: Count
    utterances: Count
    bleu: Number | None = None
    unchanged: Number | None = None
    words_kept: Number | None = None

    def __post_init__(self) -> None:
        if max(self.right_original, self.right_rewritten) > self.utterances or not self.utterances:
            raise ValueError("a row has more right guesses than utterances")

    @property
    def key(self) -> Key:
        """What identifies it among the rows of a measurement."""
        return self.mechanism, self.epsilon, self.delta

    @property
    def accuracy_original(self) -> float:
        """The classifier's accuracy on the original test texts."""
        return self.right_original / self.utterances

    @property
    def accuracy_rewritten(self) -> float:
        """Its accuracy on test texts that were rewritten too."""
        return self.right_rewritten / self.utterances

    @property
    def interval_original(self) -> tuple[float, float]:
        """The 95 % interval of the first accuracy; it covers the choice of test texts, not the training."""
        return proportion_interval(self.right_original, self.utterances, ERROR)

    @property
    def interval_rewritten(self) -> tuple[float, float]:
        """The 95 % interval of the second accuracy."""
        return proportion_interval(self.right_rewritten, self.utterances, ERROR)

    def to_dict(self) -> dict[str, Any]:
        """The row with accuracies and intervals, ready for JSON or a table."""
        found = asdict(self)
        for name in ("original", "rewritten"):
            found[f"accuracy_{name}"] = getattr(self, f"accuracy_{name}")
            found[f"low_{name}"], found[f"high_{name}"] = getattr(self, f"interval_{name}")
        return found


def measure(
    model: Model,
    train: Sequence[Utterance],
    test: Sequence[Utterance],
    mechanisms: Iterable[str] = MECHANISMS,
    epsilons: Iterable[float] = EPSILONS,
    delta: float = 1e-6,
    seed: int = 0,
    progress: Progress | None = None,
    done: Iterable[Row] = (),
) -> Iterator[Row]:
    """The references, then each mechanism at each ε, row by row. Rows in `done` are taken over.

    Arguments are checked at once, before the first row is asked for.
    """
    releases = cells(model, mechanisms, epsilons, delta)
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    _check_labels(train, "the training corpus", least=2)
    _check_labels(test, "the test corpus", least=1)
    _sacrebleu()
    return _rows(_Bench(model, train, test, seed), releases, progress, {row.key: row for row in done})


def cells(model: Model, mechanisms: Iterable[str], epsilons: Iterable[float], delta: float) -> list[Release]:
    """Each mechanism at each ε, in ascending order, none twice."""
    names, steps = list(dict.fromkeys(mechanisms)), list(dict.fromkeys(epsilons))
    if not names or not steps:
        raise InputError("give one mechanism and one epsilon, or more")
    about = model.about
    found = [
        Release(name, epsilon, delta if name == "gaussian" else 0.0, about.latent, about.clip)
        for name in names
        for epsilon in steps
    ]
    return sorted(found, key=lambda release: (names.index(release.mechanism), release.epsilon))


def true_epsilon(release: Release) -> float:
    """The ε that a mechanism guarantees: the claimed one, times what its noise must hide over what it is scaled to.

    >>> true_epsilon(Release("adept-as-published", 100, dim=64)), true_epsilon(Release("l1", 100, dim=64))
    (800.0, 100.0)
    """
    recipe = release.recipe
    too_narrow = recipe.noise == "Laplace" and recipe.norm == 2 and not recipe.widened
    return release.epsilon * math.sqrt(release.dim) if too_narrow else release.epsilon


def bleu(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """Corpus BLEU of rewritten texts against the original ones, ignoring case.

    >>> bleu(["show me flights to rome"], ["Show me flights to Rome"])
    100.0
    """
    score = _sacrebleu().corpus_bleu(list(rewritten), [list(original)], lowercase=True, force=True).score
    return min(100.0, float(score))  # rounding can bring it slightly above


def unchanged(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """The share of utterances that are unchanged, word for word.

    >>> unchanged(["fly to rome", "to oslo"], ["Fly to Rome", "to bergen"])
    0.5
    """
    pairs = zip(rewritten, original, strict=True)
    return sum(tokenise(new) == tokenise(old) for new, old in pairs) / len(original)


def words_kept(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """The share of the original words that the rewritten utterance contains too, at any position.

    >>> words_kept(["rome rome via"], ["fly to rome via pisa"])
    0.4
    """
    pairs = [(Counter(tokenise(new)), Counter(tokenise(old))) for new, old in zip(rewritten, original, strict=True)]
    return sum((new & old).total() for new, old in pairs) / max(1, sum(old.total() for _, old in pairs))


# --- one measurement ---


def _rows(
    bench: _Bench, releases: Sequence[Release], progress: Progress | None, known: dict[Key, Row]
) -> Iterator[Row]:
    steps: list[tuple[Key, Release | None]] = [((name, None, None), None) for name in REFERENCES]
    steps += [((release.mechanism, release.epsilon, release.delta), release) for release in releases]
    for number, (key, release) in enumerate(steps):
        if progress is not None:
            progress(number, len(steps), key[0] if release is None else f"{key[0]}, ε = {key[1]:g}")
        if key in known:
            yield known[key]
        else:
            yield bench.reference(key[0]) if release is None else bench.private(release)
    if progress is not None:
        progress(len(steps), len(steps), "done")


class _Bench:
    """A model with texts to measure on, and their vectors, which all cells share."""

    def __init__(self, model: Model, train: Sequence[Utterance], test: Sequence[Utterance], seed: int) -> None:
        self.model, self.seed = model, seed
        self.train, self.test = [u.text for u in train], [u.text for u in test]
        self.labels, self.truth = [u.label for u in train], [u.label for u in test]

    @cached_property
    def vectors(self) -> Floats:
        """Those of the training texts, then those of the test texts."""
        return np.asarray(self.model.vectors([*self.train, *self.test]), dtype=np.float64)

    def reference(self, name: str) -> Row:
        if name == "original":
            return self._row((name, None, None), None, [*self.train, *self.test])
        if name == "none":
            return self._row((name, None, None), None, self.model.texts(self.vectors))
        right = self.truth.count(_commonest(self.labels))
        return Row(name, None, None, None, right, right, len(self.truth))

    def private(self, release: Release) -> Row:
        key = (release.mechanism, release.epsilon, release.delta)
        rng = np.random.default_rng([self.seed, *repr(key).encode()])
        written = LatentRewriter(self.model, release).write(release.sample(self.vectors, rng))
        return self._row(key, true_epsilon(release), written)

    def _row(self, key: Key, kept: float | None, written: Sequence[str]) -> Row:
        learnt, new = written[: len(self.train)], written[len(self.train) :]
        guesses = self._guesses(learnt, [*self.test, *new])
        truth = [*self.truth, *self.truth]
        hits = [guess == label for guess, label in zip(guesses, truth, strict=True)]
        right = sum(hits[: len(new)]), sum(hits[len(new) :])
        close = bleu(new, self.test), unchanged(new, self.test), words_kept(new, self.test)
        return Row(*key, kept, *right, len(new), *close)

    def _guesses(self, learnt: Sequence[str], asked: Sequence[str]) -> list[str]:
        rows, words = bag_of_words(learnt)
        if not words:  # all are empty: there is nothing to learn but the frequencies of the labels
            return [_commonest(self.labels)] * len(asked)
        return fit(rows, self.labels, self.seed).predict(bag_of_words(asked, words)[0])


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


def _sacrebleu() -> Any:
    try:
        return importlib.import_module("sacrebleu")
    except ImportError:
        raise InputError(BLEU_MISSING) from None


# --- a measurement on file ---


def question(model: Model, train: Sequence[Utterance], test: Sequence[Utterance], seed: int) -> dict[str, Any]:
    """What all rows of one measurement share: only rows that agree in this may stand in one table."""
    from dpassay import __version__

    texts = {"train": _digest(train), "test": _digest(test)}
    return {"version": __version__, "model": model.about.sha256, **texts, "seed": seed}


def _digest(utterances: Sequence[Utterance]) -> str:
    return hashlib.sha256(json.dumps([(u.text, u.label) for u in utterances]).encode()).hexdigest()


def save(path: Path, asked: dict[str, Any], rows: Iterable[Row]) -> None:
    """Write the question and the rows so far, whole or not at all."""
    data = {"schema": SCHEMA, "asked": asked, "rows": [asdict(row) for row in rows]}
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def load(path: Path, asked: dict[str, Any]) -> list[Row]:
    """The rows of a file about the same question. Other mechanisms and other ε may be added to it."""
    absent = "without --resume it is started from scratch"
    data = read_json(path, "a measurement's file", ("schema", SCHEMA), absent, LARGEST_FILE)
    known, rows = data.get("asked"), data.get("rows")
    if not isinstance(known, dict) or not isinstance(rows, list):
        raise InputError(f"{path} is damaged: it has no question or no rows; measure again into another file")
    if changed := [name for name, value in asked.items() if known.get(name) != value]:
        raise InputError(
            f"{path} is another measurement: it differs in {', '.join(changed)}. "
            "Give the same model, corpus and options again, or save to another file."
        )
    try:
        found = [Row(**row) for row in rows]
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {first_fault(error)}; measure again into another file"[:300]) from None
    except TypeError as error:
        raise InputError(f"{path} is damaged: {error}; measure again into another file"[:300]) from None
    for row in found:
        if row.epsilon is not None and (empty := [name for name, value in asdict(row).items() if value is None]):
            raise InputError(f"{path} is damaged: a row of {row.mechanism!r} has no {empty[0]}; measure again")
    return found
