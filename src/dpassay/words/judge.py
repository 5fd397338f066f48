"""From a claim about words to a verdict: the worst pair of words, or a rule that reveals words."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.kernels.word_gaps import distances
from dpassay.core.guarantee import Guarantee, MetricDP, PureDP
from dpassay.core.interval import Interval, outward
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import TIE, exactly, number, up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.evidence.confirm import confirmed
from dpassay.evidence.verdict import Advice, Bounds, ExactEvidence, JudgedClaim, Open, Proven, Refuted, Verdict
from dpassay.evidence.word_witness import WordWitness
from dpassay.values import dataclass
from dpassay.words.certificate import certify_words
from dpassay.words.groups import worst_in_groups
from dpassay.words.mechanisms import MECHANISMS, CusText, ScoredWords, WordMechanism, need_directions
from dpassay.words.rules import Rule, Rules
from dpassay.words.vocabulary import Vocabulary, read_vocabulary
from dpassay.words.worst_pair import Extreme, worst_pairs

EVERY_PAIR = "the largest loss over all pairs of words and all outputs, docs/proofs/vocabulary.md"
OUTSIDE = "(a word outside the vocabulary)"


@dataclass(frozen=True, eq=False)
class Treatment:
    """What is judged: a mechanism, and what happens to the words it does not handle."""

    mechanism: WordMechanism
    rules: Rules

    def __str__(self) -> str:
        return f"{self.mechanism}" + (f", {self.rules}" if str(self.rules) else "")

    def sample(self, x: str, n: int, rng: np.random.Generator) -> NDArray[np.str_]:
        """Draw n outputs for the word x; a dropped word gives the empty text."""
        words = self.mechanism.vocabulary
        rule = self.rules.rule_of(x, words)
        if rule is None:
            return self.mechanism.sample(x, n, rng)
        if rule == "replaced":
            return np.array(words.words)[rng.integers(len(words), size=n)]
        return np.array([x if rule == "copied" else ""] * n)

    def certify(self, verdict: Verdict) -> dict[str, Any]:
        """A certificate of a verdict about this subject."""
        from dpassay.words.certificate import certify_words

        return certify_words(verdict)


def check_words(
    subject: str | WordMechanism,
    guarantee: Guarantee | None = None,
    *,
    epsilon: Any = None,
    delta: Any = None,
    metric: str | None = None,
    vocabulary: str | Path | Vocabulary | None = None,
    words: int | None = None,
    unknown: Rule | None = None,
    stop_words: Rule | None = None,
    numbers: Rule | None = None,
    device: str = "cpu",
    **parameters: Any,
) -> Verdict:
    """Judge a claim about a mechanism that replaces words.

    The mechanism is `santext`, `custext` or `tem`, made for the claimed ε over a vocabulary (or the first `words` of
    its file), or an object that has its own ε. An ε without a δ is taken as the authors' claim: metric DP, and for
    CusText ε-DP; a δ of 0 means ε-DP. `unknown`, `stop_words` and `numbers` determine whether such words are copied,
    dropped or replaced by any word; by default, words outside the vocabulary are not considered.

    >>> words = Vocabulary(("good", "great", "bad"), np.array([[0.0], [1.0], [5.0]]))
    >>> print(check_words("santext", epsilon=4, vocabulary=words))
    PROVEN: metric 4-DP in l2 holds: of all 3 words and outputs, 'bad' and 'great' lose most per unit of distance...
    >>> check_words("custext", epsilon=4, vocabulary=words, K=2).epsilon.upper
    inf
    """
    claimed = guarantee or _claimed(subject, epsilon, delta, metric)
    if not isinstance(claimed, PureDP | MetricDP):
        raise InputError(f"word mechanisms are checked for epsilon-DP or metric DP, not for {claimed}")
    if isinstance(subject, WordMechanism):
        if parameters or vocabulary is not None:
            raise InputError(
                "a mechanism object already has its vocabulary and parameters; give them only with a mechanism's name"
            )
        mechanism = subject
    else:
        mechanism = make_mechanism(subject, claimed.epsilon, _vocabulary(subject, vocabulary, words), parameters)
    if isinstance(claimed, MetricDP) and claimed.metric == "angle":
        need_directions(mechanism.vocabulary)
    return judge(mechanism, claimed, Rules(unknown, stop_words, numbers), device)


def _claimed(subject: str | WordMechanism, epsilon: Any, delta: Any, metric: str | None) -> Guarantee:
    if epsilon is None:
        raise InputError("state the claimed epsilon: check(..., epsilon=1)")
    if delta is not None and (not number(delta) == 0 or metric is not None):
        raise InputError("word mechanisms are checked for epsilon-DP (delta 0) or metric DP: leave delta out")
    name = subject if isinstance(subject, str) else subject.name
    if delta is not None or (metric is None and name == CusText.name):
        return PureDP(epsilon)
    return MetricDP(epsilon, metric or "l2")


def _vocabulary(name: str, given: str | Path | Vocabulary | None, words: int | None) -> Vocabulary:
    if given is None:
        raise InputError(f"{name} needs a vocabulary: check(..., vocabulary=FILE)")
    if isinstance(given, Vocabulary):
        if words is not None:
            raise InputError(
                "only a vocabulary file can be cut to its first words; this vocabulary is already in memory"
            )
        return given
    return read_vocabulary(given, words)


def make_mechanism(name: str, epsilon: float, vocabulary: Vocabulary, parameters: dict[str, Any]) -> WordMechanism:
    """The mechanism with this name, its parameters given as numbers or texts.

    >>> words = Vocabulary(("a", "b", "c"), np.eye(3))
    >>> print(make_mechanism("tem", 2, words, {"gamma": "1.5"}))
    tem over 3 words (epsilon 2, gamma 1.5)
    """
    if name not in MECHANISMS:
        raise InputError(f"unknown word mechanism {name!r}; there are {', '.join(MECHANISMS)}")
    made = MECHANISMS[name]
    allowed = {"santext": ("distance",), "custext": ("K",), "tem": ("distance", "gamma", "far")}[name]
    read: dict[str, Any] = {}
    for key, value in parameters.items():
        if key not in allowed:
            raise InputError(f"{name} has no parameter {key!r}; it has {', '.join(allowed)}")
        try:
            read[key] = int(str(value)) if key == "K" else float(value) if key == "gamma" else value
        except (TypeError, ValueError):
            kind = "a whole number" if key == "K" else "a number"
            raise InputError(f"{key} of {name} must be {kind}, got {value!r}") from None
    return made(vocabulary, epsilon, **read)


def judge(mechanism: WordMechanism, claimed: PureDP | MetricDP, rules: Rules, device: str = "cpu") -> Verdict:
    """The verdict on a mechanism with rules for other words."""
    treated = mechanism
    given_away = rules.example(mechanism.vocabulary)
    if given_away is not None:
        return confirmed(_given_away(Treatment(mechanism, rules), claimed, *given_away), certify_words)
    if all(rules.rule_of(word, mechanism.vocabulary) == "dropped" for word in mechanism.vocabulary.words):
        raise InputError("every word of the vocabulary is dropped: there is no output to judge")
    replaced, outside = rules.replaced(mechanism.vocabulary), rules.replaces_others
    if isinstance(treated, ScoredWords):
        treated = replace(treated, uniform=tuple(sorted({*treated.uniform, *replaced})))
        metric = claimed.metric if isinstance(claimed, MetricDP) else "l2"
        found = worst_pairs(treated, metric, claimed.epsilon, device, outside=outside)
    elif isinstance(treated, CusText):
        if replaced:
            raise InputError("custext cannot be checked with words that are replaced uniformly: use copied or dropped")
        metric = claimed.metric if isinstance(claimed, MetricDP) else "l2"
        found = worst_in_groups(treated, metric, claimed.epsilon, outside)
    else:
        raise InputError(f"{type(mechanism).__name__} has no exact analysis; santext, custext and tem have one")
    return confirmed(_decided(Treatment(mechanism, rules), treated, claimed, found), certify_words)


def _decided(
    subject: Treatment, treated: WordMechanism, claimed: PureDP | MetricDP, found: dict[str, Extreme]
) -> Verdict:
    worst, limit = found["ratio" if isinstance(claimed, MetricDP) else "loss"], claimed.value
    upper = min(worst.upper, _by_theorem(treated, claimed))
    kind: type[Verdict] = Open
    if exactly(upper).b <= (limit * (1 + TIE)).b:
        kind = Proven
    elif exactly(worst.lower).a > (limit * (1 + TIE)).b:
        kind = Refuted
    witness = _witness(treated, worst)
    least = 1.0 if math.isinf(worst.lower) else 0.0
    return kind(
        _judged(subject, claimed),
        Bounds(Interval(min(worst.lower, upper), upper, EVERY_PAIR, EVERY_PAIR), least_delta=least),
        _reason(kind.word, subject, claimed, worst, found, witness),
        ExactEvidence(witness=witness if kind is Refuted else None, theorems=(Theorem.VOCABULARY,)),
        advice=Advice(warnings=_warnings(subject.rules, claimed)),
    )


def _by_theorem(mechanism: WordMechanism, claimed: PureDP | MetricDP) -> float:
    """What follows from the triangle inequality, whatever the words: docs/proofs/vocabulary.md, points 2 and 3."""
    if not isinstance(claimed, MetricDP) or not isinstance(mechanism, ScoredWords):
        return math.inf
    known = mechanism.is_metric and claimed.metric == mechanism.metric
    return up(number(mechanism.epsilon)) if known else math.inf


def _judged(subject: Treatment, claimed: PureDP | MetricDP) -> JudgedClaim:
    made = subject.mechanism
    parameters = {**made.parameters, "words": len(made.vocabulary), "dim": made.vocabulary.dim}
    return JudgedClaim(str(subject), made.about, subject, "", Neighbours("any"), claimed, parameters)


def _witness(mechanism: WordMechanism, worst: Extreme) -> WordWitness:
    """The words of an extreme, with their probabilities; a place of −1 is a word outside the vocabulary."""
    words, uniform = mechanism.vocabulary.words, -math.log(len(mechanism.vocabulary))
    logs = [uniform if n < 0 else float(mechanism.log_probabilities(n)[worst.output]) for n in (worst.x, worst.y)]
    room = [0.0 if math.isinf(log) else worst.error for log in logs]
    p, q = (Interval(log - more, min(log + more, 0.0)) for log, more in zip(logs, room, strict=True))
    x, y = (OUTSIDE if n < 0 else words[n] for n in (worst.x, worst.y))
    distance = None if min(worst.x, worst.y) < 0 else worst.distance
    return WordWitness(x, y, words[worst.output], p, q, distance)


def _given_away(subject: Treatment, claimed: PureDP | MetricDP, kind: str, rule: str, x: str, y: str) -> Verdict:
    """The verdict if a rule reveals words: docs/proofs/vocabulary.md, point 7."""
    output, sure, never = (x if rule == "copied" else ""), Interval(0.0, 0.0), Interval(-math.inf, -math.inf)
    seen = f"{x!r} is always left out, and {y!r} never is, which the length of the text reveals"
    if rule == "copied":
        seen = f"{x!r} always comes out as {x!r}, and {y!r} never does"
    why, apart, words = "no finite epsilon covers that", None, subject.mechanism.vocabulary
    if isinstance(claimed, MetricDP) and x in words and y in words:
        first, second = (words.vectors[[words.words.index(word)]] for word in (x, y))
        apart = float(distances(first, second, claimed.metric)[0, 0])
    elif isinstance(claimed, MetricDP):
        why = "they have no vectors and so no distance, and no finite epsilon covers that at any finite distance"
    return Refuted(
        _judged(subject, claimed),
        Bounds(Interval(math.inf, math.inf, EVERY_PAIR, EVERY_PAIR), least_delta=1.0),
        f"{claimed} fails: {kind} are {rule}. {seen}: {why}.",
        ExactEvidence(witness=WordWitness(x, y, output, sure, never, apart), theorems=(Theorem.VOCABULARY,)),
    )


def _reason(
    word: str,
    subject: Treatment,
    claimed: PureDP | MetricDP,
    worst: Extreme,
    found: dict[str, Extreme],
    witness: WordWitness,
) -> str:
    many = f"{len(subject.mechanism.vocabulary):,} words and outputs"
    loss, pair = outward(worst.loss, 1, 6), f"{witness.x!r} and {witness.y!r}"
    if word == "refuted" and math.isinf(worst.lower):
        within = found.get("within")
        inside = "" if within is None else f" Within a group the largest loss is {outward(within.upper, 1, 6)}."
        never = f"{witness.x!r} can become {witness.output!r} and {witness.y!r} never does"
        return f"{claimed} fails: {never}, so no finite epsilon holds between them.{inside}"
    per_unit = isinstance(claimed, MetricDP)
    per = f"a loss of {loss} at distance {worst.distance:.6g}" if per_unit else f"a loss of {loss}"
    most = "lose most per unit of distance" if per_unit else "lose most"
    if word == "refuted":
        times = outward(worst.lower, -1, 6)
        more = f", {times} per unit of distance" if per_unit else ""
        excess = found["excess"]
        beyond = f" The largest excess over the claim is {outward(excess.upper, 1, 6)}." if per_unit else ""
        return f"{claimed} fails: of all {many}, {pair} {most}, {per}{more}.{beyond}"
    verb = "holds" if word == "proven" else "is undecided"
    shown = f", {outward(worst.upper, 1, 6)} per unit" if per_unit else ""
    return f"{claimed} {verb}: of all {many}, {pair} {most}, {per}{shown}."


def _warnings(rules: Rules, claimed: PureDP | MetricDP) -> tuple[str, ...]:
    found = []
    if rules.unknown is None:
        found.append(
            "This covers only the words of the vocabulary. The option 'unknown' says what happens to other words: "
            "they are copied, dropped or replaced."
        )
    elif isinstance(claimed, MetricDP):
        found.append(
            "Words outside the vocabulary have no vector: a guarantee per unit of distance does not cover them."
        )
    return (*found, "This epsilon is for one word; the losses of the words of a text add up.")
