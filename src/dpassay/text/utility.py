"""What rewritten text is still good for: a classifier learns from it, and it is compared with what was said.

Each mechanism is measured at each ε with numpy's noise. This is a measurement and no release: nothing of it may leave
the house. Each cell has a random stream of its own, so that it comes out the same whichever others are measured.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.audit.inference import proportion_interval
from dpassay.core.files import write_whole
from dpassay.errors import InputError
from dpassay.text.corpora.corpus import Utterance
from dpassay.text.models.classifier import bag_of_words, fit
from dpassay.text.models.words import tokenise
from dpassay.text.rewriters.adept import Model
from dpassay.text.rewriters.release import MECHANISMS, Floats, Release
from dpassay.text.rewriters.rewriting import Rewriter

SCHEMA = "dpassay/utility/1"
EPSILONS = (1.0, 10.0, 100.0, 1000.0)
# What the mechanisms are measured by: the text itself, the autoencoder without noise, and a guess of always the same.
REFERENCES = ("original", "none", "commonest")
ERROR = 0.05  # probability that an accuracy's interval misses the truth
LARGEST_FILE = 10_000_000  # bytes
BLEU_MISSING = "BLEU is computed by sacrebleu, which is not installed: pip install 'dpassay[text]'"

Progress = Callable[[int, int, str], None]
Key = tuple[str, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism at one ε. The classifier has learnt from rewritten text in all rows but the first.

    `epsilon` is what the mechanism promises and `true_epsilon` what it keeps; references have none. The accuracies are
    on the original and on the rewritten test texts. BLEU, and the shares of unchanged utterances and of kept words,
    compare rewritten test texts with the original ones.

    >>> row = Row("l1", 10, 0, 10, right_original=70, right_rewritten=40, utterances=100)
    >>> row.accuracy_original, [round(end, 2) for end in row.interval_original]
    (0.7, [0.6, 0.79])
    """

    mechanism: str
    epsilon: float | None
    delta: float | None
    true_epsilon: float | None
    right_original: int
    right_rewritten: int
    utterances: int
    bleu: float | None = None
    unchanged: float | None = None
    words_kept: float | None = None

    @property
    def key(self) -> Key:
        """What tells it from the other rows of a measurement."""
        return self.mechanism, self.epsilon, self.delta

    @property
    def accuracy_original(self) -> float:
        """How often the classifier is right about what was really said."""
        return self.right_original / self.utterances

    @property
    def accuracy_rewritten(self) -> float:
        """How often it is right about test texts that were rewritten too."""
        return self.right_rewritten / self.utterances

    @property
    def interval_original(self) -> tuple[float, float]:
        """The 95 % interval of the first accuracy; it knows of the draw of test texts, not of the training."""
        return proportion_interval(self.right_original, self.utterances, ERROR)

    @property
    def interval_rewritten(self) -> tuple[float, float]:
        """The 95 % interval of the second one."""
        return proportion_interval(self.right_rewritten, self.utterances, ERROR)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON or a table."""
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
    """The references, then each mechanism at each ε: a row as soon as it is known. Rows in `done` are taken as given.

    What is given is checked at once, before the first row is asked for.
    """
    releases = cells(model, mechanisms, epsilons, delta)
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    _check_labels(train, "the corpus to learn from", least=2)
    _check_labels(test, "the test corpus", least=1)
    _sacrebleu()
    return _rows(_Bench(model, train, test, seed), releases, progress, {row.key: row for row in done})


def cells(model: Model, mechanisms: Iterable[str], epsilons: Iterable[float], delta: float) -> list[Release]:
    """What is measured on a model: each mechanism at each ε, in rising order, none twice."""
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
    """The ε that a mechanism keeps, by what its noise must hide over what it is scaled to.

    >>> true_epsilon(Release("adept-as-published", 100, dim=64)), true_epsilon(Release("l1", 100, dim=64))
    (800.0, 100.0)
    """
    recipe = release.recipe
    too_narrow = recipe.law == "Laplace" and recipe.norm == 2 and not recipe.widened
    return release.epsilon * math.sqrt(release.dim) if too_narrow else release.epsilon


def bleu(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """BLEU of rewritten texts, all together, against the original ones; upper and lower case are the same.

    >>> bleu(["show me flights to rome"], ["Show me flights to Rome"])
    100.0
    """
    score = _sacrebleu().corpus_bleu(list(rewritten), [list(original)], lowercase=True, force=True).score
    return min(100.0, float(score))  # rounding can bring it to a hair above


def unchanged(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """The share of utterances that came back word for word.

    >>> unchanged(["fly to rome", "to oslo"], ["Fly to Rome", "to bergen"])
    0.5
    """
    pairs = zip(rewritten, original, strict=True)
    return sum(tokenise(new) == tokenise(old) for new, old in pairs) / len(original)


def words_kept(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """The share of the original words that the rewritten utterance has too, at whatever place.

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
    """A model with texts to measure on. It remembers the texts' vectors, which all cells share."""

    def __init__(self, model: Model, train: Sequence[Utterance], test: Sequence[Utterance], seed: int) -> None:
        self.model, self.seed = model, seed
        self.train, self.test = [u.text for u in train], [u.text for u in test]
        self.labels, self.truth = [u.label for u in train], [u.label for u in test]
        self._vectors: Floats | None = None

    @property
    def vectors(self) -> Floats:
        """Those of the texts to learn from, then those of the test texts."""
        if self._vectors is None:
            self._vectors = np.asarray(self.model.vectors([*self.train, *self.test]), dtype=np.float64)
        return self._vectors

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
        written = Rewriter(self.model, release).write(release.sample(self.vectors, rng))
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
        if not words:  # all came back empty: there is nothing to learn but how frequent the labels are
            return [_commonest(self.labels)] * len(asked)
        return fit(rows, self.labels, self.seed).predict(bag_of_words(asked, words)[0])


def _commonest(labels: Sequence[str]) -> str:
    """The most frequent label; of several, the first by the alphabet.

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
        raise InputError(f"{what} has one label only, {utterances[0].label!r}: there is nothing to tell apart")


def _sacrebleu() -> Any:
    try:
        return importlib.import_module("sacrebleu")
    except ImportError:
        raise InputError(BLEU_MISSING) from None


# --- a measurement on file ---


def question(model: Model, train: Sequence[Utterance], test: Sequence[Utterance], seed: int) -> dict[str, Any]:
    """What all rows of one measurement share: rows of two that are equal in this may stand in one table."""
    from dpassay import __version__

    texts = {"train": _digest(train), "test": _digest(test)}
    return {"version": __version__, "model": model.about.sha256, **texts, "seed": seed}


def _digest(utterances: Sequence[Utterance]) -> str:
    return hashlib.sha256(json.dumps([(u.text, u.label) for u in utterances]).encode()).hexdigest()


def save(path: Path, asked: dict[str, Any], rows: Iterable[Row]) -> None:
    """Write what was asked and the rows so far, whole or not at all."""
    data = {"schema": SCHEMA, "asked": asked, "rows": [asdict(row) for row in rows]}
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def load(path: Path, asked: dict[str, Any]) -> list[Row]:
    """The rows of a file, if it is of the same question. Other mechanisms and other ε may be added to it."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than any file of a measurement ({LARGEST_FILE} bytes)")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; without --resume it is begun") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no file of a measurement, or was cut off: {error}"[:300]) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("asked"), dict):
        raise InputError(f"{path} is no file of a measurement: its schema is not {SCHEMA!r}")
    if changed := [name for name, value in asked.items() if data["asked"].get(name) != value]:
        raise InputError(
            f"{path} is another measurement: it differs in {', '.join(changed)}. "
            "Give the same model, corpus and options again, or save to another file."
        )
    try:
        return [_row_of(row) for row in data["rows"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}; measure again into another file"[:300]) from None


def _row_of(data: Any) -> Row:
    """A row from its data.

    >>> _row_of({"mechanism": "l1", "epsilon": "ten"})
    Traceback (most recent call last):
    ...
    ValueError: the epsilon of a row is 'ten'
    """
    found = {field.name: data[field.name] for field in fields(Row) if field.name in data}
    whole = ("right_original", "right_rewritten", "utterances")
    for name, value in found.items():
        kinds: Any = str if name == "mechanism" else int if name in whole else int | float | None
        if not isinstance(value, kinds) or isinstance(value, bool) or (kinds is not str and not _usual(value)):
            raise ValueError(f"the {name} of a row is {value!r}")
    row = Row(**found)
    if row.epsilon is not None and (empty := [name for name, value in asdict(row).items() if value is None]):
        raise ValueError(f"a row of {row.mechanism!r} has no {empty[0]}")
    if not 0 <= min(row.right_original, row.right_rewritten) <= max(row.right_original, row.right_rewritten):
        raise ValueError("a row counts less than nothing")
    if max(row.right_original, row.right_rewritten) > row.utterances or row.utterances < 1:
        raise ValueError("a row has more right guesses than utterances")
    return row


def _usual(value: float | None) -> bool:
    return value is None or (abs(value) <= 1e15 and math.isfinite(value))
