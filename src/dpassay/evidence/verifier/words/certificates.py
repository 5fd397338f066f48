"""Re-checks certificates about mechanisms that replace words, with its own reader and arithmetic.

Such a certificate identifies its vocabulary by a digest; the file itself must be given, since a probability depends on
all of its vectors. docs/certificate.md describes the format.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.evidence.verifier.reading import LARGEST_FILE
from dpassay.evidence.verifier.words.word_vectors import Vectors, read_vectors

SCHEMA = "dpassay/word-certificate/1"
MOST_FOR_ALL_PAIRS = 1_000  # words of a proof that goes through all of them
_DECIMAL = re.compile(r"[0-9]{1,40}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*")
_FIELDS = {
    "": {"schema", "written_by", "verdict", "claim", "vocabulary", "evidence"},
    "claim": {"mechanism", "epsilon", "parameters", "rules", "stop_words", "guarantee"},
    "guarantee": {"epsilon", "metric"},
    "rules": {"unknown", "stop_words", "numbers"},
    "vocabulary": {"words", "dim", "sha256"},
}
_EVIDENCE = {
    "rule": {"kind", "x", "y"},
    "pair": {"kind", "x", "y", "output", "loss", "distance"},
    "triangle inequality": {"kind"},
    "all pairs": {"kind", "at_most"},
}
_PARAMETERS = {"santext": {"distance"}, "tem": {"distance", "gamma", "far"}, "custext": {"K"}}
_OF_A_WORD = 1000  # work of a law, a rule or an order, as measured
Row = NDArray[np.float64]


def is_word_certificate(data: Any) -> bool:
    """Whether data declares itself to be such a certificate."""
    return isinstance(data, dict) and data.get("schema") == SCHEMA


def check_words(data: dict[str, Any], vocabulary: str | Path | None) -> list[str]:
    """What a certificate shows, sentence by sentence. Raises CertificateError if it is not valid."""
    try:
        certificate = _Certificate(data)
        if vocabulary is None:
            raise InputError("this certificate is about a vocabulary: give its file, verify(..., vocabulary=FILE)")
        vectors = read_vectors(vocabulary, certificate.count)
        if vectors.digest != data["vocabulary"]["sha256"]:
            raise CertificateError(f"{vocabulary} is not the vocabulary of this certificate: its digest differs")
        size = (certificate.count, data["vocabulary"]["dim"])
        _require((vectors.count, vectors.dim) == size, "the vocabulary's size")
        return [f"the vocabulary has the digest {vectors.digest[:16]}…", certificate.evidence(vectors)]
    except InputError:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:  # a number or a field of an unexpected kind
        raise CertificateError(f"the certificate does not hold: {error}"[:200]) from None


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise CertificateError(f"the certificate does not hold: {what}")


def _decimal(value: Any, what: str) -> Fraction:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise CertificateError(f"{what} must be a decimal number, got {value!r:.40}")
    return Fraction(value)


def _fields(data: Any, names: set[str], what: str) -> None:
    if not isinstance(data, dict) or set(data) != names:
        raise CertificateError(f"{what or 'a certificate'} must have the fields {', '.join(sorted(names))}")


class _Certificate:
    def __init__(self, data: dict[str, Any]) -> None:
        _fields(data, _FIELDS[""], "")
        claim, about = data["claim"], data["vocabulary"]
        for part, value in (("claim", claim), ("vocabulary", about)):
            _fields(value, _FIELDS[part], part)
        for part in ("guarantee", "rules"):
            _fields(claim[part], _FIELDS[part], part)
        self.name, self.rules, self.found = claim["mechanism"], claim["rules"], data["evidence"]
        if self.name not in _PARAMETERS:
            raise CertificateError(f"unknown mechanism {self.name!r:.40}")
        _fields(claim["parameters"], _PARAMETERS[self.name], "the parameters")
        if not isinstance(self.found, dict) or self.found.get("kind") not in _EVIDENCE:
            raise CertificateError("unknown evidence")
        _fields(self.found, _EVIDENCE[self.found["kind"]], "the evidence")
        rules = (None, "copied", "dropped", "replaced")
        stops = claim["stop_words"]
        whole = isinstance(about["words"], int) and 2 <= about["words"] <= 10**7
        listed = isinstance(stops, list) and all(isinstance(word, str) for word in stops)
        if not whole or not listed or any(rule not in rules for rule in self.rules.values()):
            raise CertificateError("the number of words, the stop words or a rule cannot be read")
        self.count, self.stops = about["words"], set(stops)
        self.parameters = claim["parameters"]
        self.own = _decimal(claim["epsilon"], "the mechanism's epsilon")
        self.claimed = _decimal(claim["guarantee"]["epsilon"], "the claimed epsilon")
        self.metric = claim["guarantee"]["metric"]
        if self.metric not in (None, "l2", "l1", "linf", "angle") or data["verdict"] not in ("proven", "refuted"):
            raise CertificateError("unknown metric or verdict")
        self.verdict = data["verdict"]
        if not 0 < self.own <= 10**6:
            raise CertificateError("the mechanism's epsilon must be above 0 and at most 1e6")
        if self.name == "custext":
            size = self.parameters["K"]
            _require(isinstance(size, int) and size >= 2, "the size of a group")
        else:
            _require(self.parameters["distance"] in ("l2", "l1", "linf", "angle", "squared-l2"), "the distance")
        if self.name == "tem":
            self.gamma = float(_decimal(self.parameters["gamma"], "gamma"))
            _require(self.parameters["far"] in ("count", "ratio") and self.gamma > 0, "the parameters of tem")

    def evidence(self, vectors: Vectors) -> str:
        kind = self.found["kind"]
        said: Callable[[Vectors], str] = {
            "rule": self._rule,
            "pair": self._pair,
            "triangle inequality": self._triangle,
            "all pairs": self._all_pairs,
        }[kind]
        _require((kind in ("rule", "pair")) == (self.verdict == "refuted"), "its evidence is for another verdict")
        return said(vectors)

    def rule_of(self, word: str, vectors: Vectors) -> str | None:
        kind = "numbers" if _NUMBER.fullmatch(word) else "stop_words" if word.lower() in self.stops else None
        rule: str | None = None if kind is None else self.rules[kind]
        return rule or (None if word in vectors.places else self.rules["unknown"])

    def _rule(self, vectors: Vectors) -> str:
        x, y = self.found["x"], self.found["y"]
        _require(isinstance(x, str) and isinstance(y, str) and x != y, "two different words are needed")
        first, second = self.rule_of(x, vectors), self.rule_of(y, vectors)
        reached = second is not None or y in vectors.places
        _require(first in ("copied", "dropped") and reached, f"no rule gives {x!r} away")
        _require(first != second or first == "copied", "both words are dropped")
        seen = "comes out as itself" if first == "copied" else "is left out"
        return f"{x!r} always {seen}, which {y!r} does not always do: the loss is infinite"

    def _pair(self, vectors: Vectors) -> str:
        x, y = (self._place(self.found[name], vectors) for name in ("x", "y"))
        output = vectors.places.get(self.found["output"], -1)
        _require(x != y and output >= 0, "the pair or the output is not of this vocabulary")
        p, q = (self._law(n, vectors) for n in (x, y))
        if self.found["loss"] == "inf":
            _require(math.isfinite(p[0][output]) and q[0][output] == -math.inf, "the output is possible for both words")
            return (
                f"{self.found['output']!r} is possible for {self.found['x']!r} and impossible for {self.found['y']!r}"
            )
        stated = _decimal(self.found["loss"], "the loss")
        found = Fraction(float(p[0][output] - q[0][output])) - Fraction(p[1] + q[1])
        _require(found >= stated, "the loss is smaller than stated")
        limit = self.claimed
        if self.metric is not None:
            _require(min(x, y) >= 0, "a word outside the vocabulary has no distance")
            apart = _decimal(self.found["distance"], "the distance")
            _require(Fraction(vectors.farthest(x, y, self.metric)) <= apart, "the distance is larger than stated")
            limit = limit * apart
        _require(stated > limit, "the loss is no larger than what is claimed")
        return f"{self.found['x']!r} against {self.found['y']!r} at {self.found['output']!r} loses more than claimed"

    def _place(self, word: Any, vectors: Vectors) -> int:
        """A word's index; −1 for null, any word outside the vocabulary, which has to be replaced."""
        if word is None:
            _require("replaced" in self.rules.values(), "no rule says what unknown words become")
            return -1
        _require(isinstance(word, str) and word in vectors.places, f"{word!r:.40} is not of this vocabulary")
        _require(self.rule_of(word, vectors) in (None, "replaced"), f"{word!r} is copied or dropped")
        return vectors.places[word]

    def _law(self, x: int, vectors: Vectors) -> tuple[Row, float]:
        """ln P(y|x) of all words y, and how far it may be off."""
        spend(vectors.count * _OF_A_WORD)
        if x < 0 or self.rule_of(vectors.words[x], vectors) == "replaced":
            return np.full(vectors.count, -math.log(vectors.count)), 2.0**-40
        half = float(self.own) / 2
        if self.name == "custext":
            return self._group_law(x, vectors, half)
        metric = "l2" if self.parameters["distance"] == "squared-l2" else self.parameters["distance"]
        apart, error = vectors.distances(x, metric)
        scores = -half * (apart**2 if self.parameters["distance"] == "squared-l2" else apart)
        if self.name == "tem":
            far = -half * (self.gamma**2 if self.parameters["distance"] == "squared-l2" else self.gamma)
            near = apart <= self.gamma
            if self.parameters["far"] == "ratio":
                _require(bool((abs(apart - self.gamma) > 1e-12 * self.gamma).all()), "a distance is gamma, to rounding")
                far += math.log(vectors.count / near.sum()) - math.log(max(1, vectors.count - near.sum()))
            scores = np.where(near, scores, far)
        slope = half * (2 * float(apart.max()) if self.parameters["distance"] == "squared-l2" else 1.0)
        return _normalised(scores, slope * error, vectors.count)

    def _group_law(self, x: int, vectors: Vectors, half: float) -> tuple[Row, float]:
        free = list(range(vectors.count))
        group: list[int] = []
        while x not in group:
            spend(3 * vectors.count * _OF_A_WORD)
            apart, _ = vectors.distances(free[0], "l2")
            group = sorted(free, key=lambda n: (float(apart[n]), n))[: self.parameters["K"]]
            taken = set(group)
            free = [n for n in free if n not in taken]
        apart, error = vectors.distances(x, "l2")
        largest = max(float(apart[n]) for n in group)
        scores = np.full(vectors.count, -np.inf)
        scores[group] = [0.0 if largest == 0 else -half * float(apart[n]) / largest for n in group]
        return _normalised(scores, 0.0 if largest == 0 else 2 * half * error / largest, vectors.count)

    def _triangle(self, vectors: Vectors) -> str:
        given_away = any(rule in ("copied", "dropped") for rule in self.rules.values())
        spend(vectors.count * _OF_A_WORD)
        replaced = any(self.rule_of(word, vectors) == "replaced" for word in vectors.words)
        _require(not given_away and not replaced, "a rule treats some words differently")
        fits = self.name in ("santext", "tem") and self.parameters["distance"] == self.metric
        _require(fits and self.parameters.get("far", "count") == "count", "the triangle inequality does not apply here")
        _require(self.own <= self.claimed, "the mechanism's epsilon is larger than the claimed one")
        return f"{self.name} loses at most {self.own} per unit of {self.metric} distance, by the triangle inequality"

    def _all_pairs(self, vectors: Vectors) -> str:
        given_away = any(rule in ("copied", "dropped") for rule in self.rules.values())
        _require(not given_away, "a rule reveals some words")
        if vectors.count > MOST_FOR_ALL_PAIRS:
            raise CertificateError(f"all pairs can be checked for at most {MOST_FOR_ALL_PAIRS:,} words")
        most = _decimal(self.found["at_most"], "the largest loss")
        _require(most <= self.claimed, "the largest loss is more than what is claimed")
        laws = [self._law(x, vectors) for x in range(vectors.count)]
        if "replaced" in self.rules.values() and self.metric is None:  # words outside the vocabulary
            laws.append(self._law(-1, vectors))
        logs = np.array([law for law, _ in laws])
        _require(bool(np.isfinite(logs).all()), "some outputs are impossible for some words")
        room = 2 * max(error for _, error in laws)
        spend(len(logs) * (vectors.rows.size + 4 * logs.size))
        treated = np.array([self.rule_of(word, vectors) == "replaced" for word in vectors.words])
        for x, row in enumerate(logs):
            losses = (row - logs).max(axis=1) + room
            least = float(most) * (1 - 2.0**-50)
            limit = np.full(len(losses), least)
            if self.metric is not None:
                apart, error = vectors.distances(x, self.metric)
                limit = least * np.maximum(apart - error, 0)
                alike = treated == treated[x]  # then the same vector gives the same law
                losses[alike & (vectors.rows == vectors.rows[x]).all(axis=1)] = 0
            losses[x] = 0
            _require(bool((losses <= limit).all()), f"a pair with {x} loses more than stated")
        return f"no pair of the {vectors.count:,} words loses more than {float(most):.6g}"


def _normalised(scores: Row, error: float, count: int) -> tuple[Row, float]:
    """Scores as ln P, and how far these may be off; sums and logarithms are far more accurate than that."""
    spend(len(scores) * _OF_A_WORD)
    finite = scores[np.isfinite(scores)]
    top, size = float(finite.max()), float(abs(finite).max())
    total = math.fsum(math.exp(score - top) for score in finite.tolist())
    return scores - (top + math.log(total)), 2 * error + (8 * size + count + 100) * 2.0**-50


def load_words(source: str | Path | dict[str, Any]) -> dict[str, Any] | None:
    """A certificate about words, from a file or as data; None if it is something else."""
    if isinstance(source, dict):
        return source if is_word_certificate(source) else None
    try:
        with Path(source).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # the next reader reports why it cannot be read
    if len(content) > LARGEST_FILE:
        return None  # likewise
    if f'"{SCHEMA}"' not in text[:200]:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{source} is damaged: it is not JSON") from None
    return data if is_word_certificate(data) else None
