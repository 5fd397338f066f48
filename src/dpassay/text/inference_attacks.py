"""Attacks that infer something about a text from what is released, and what their success says about ε.

An attack is a game with M equally likely answers. Under (ε, δ)-DP between any two texts no attack is right more often
than (e^ε + (M−1)δ)/(e^ε + M−1), whether the answers are texts or attributes of texts: docs/proofs/candidates.md, points
3 and 5. So the number of right answers has a confidence interval, and gives a lower bound on ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import Progress, check_alpha
from dpassay.audit.testing.inference import accuracy_bound, log_limits, proportion_interval
from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.words import tokenise
from dpassay.text.rewriters.base import Rewriter, TextGuarantee, blamed, checked

Floats = NDArray[np.float64]
Released = Callable[[list[str], np.random.Generator], Any]  # texts to texts, or to a vector in each row

LEARNED = 8_000  # releases that an attack on an attribute learns from
AT_ONCE = 1024  # texts released at a time


@dataclass(frozen=True)
class AttackResult:
    """How often an attack was right, what the guarantee allows, and the ε that the attack shows.

    The interval and the lower bound are each wrong with a probability of at most α. `epsilon` and `delta` are what is
    guaranteed between neighbors, None if nothing is; the answers are at most `steps` neighbors apart.

    >>> found = AttackResult.of("attribute", right=90, trials=100, answers=2, guarantee=TextGuarantee(1))
    >>> [round(end, 3) for end in found.interval], round(found.allowed, 3), found.refuted
    ([0.824, 0.951], 0.731, True)
    """

    kind: str
    right: int
    trials: int
    answers: int
    lower: float
    epsilon: float | None = None
    delta: float = 0.0
    alpha: float = 0.05
    steps: int = 1
    measured: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(
        kind: str,
        right: int,
        trials: int,
        answers: int,
        guarantee: TextGuarantee | None,
        alpha: float = 0.05,
        **more: Any,
    ) -> AttackResult:
        """The result of independent trials, in each of which the attack names an answer."""
        check_alpha(alpha)
        held = guarantee is not None and math.isfinite(guarantee.stated) and guarantee.neighbours.kind == "any"
        delta = guarantee.delta if guarantee is not None and held else 0.0
        epsilon = guarantee.stated if guarantee is not None and held else None
        lower = accuracy_bound(right, trials - right, alpha, answers, delta)
        if guarantee is not None and guarantee.declared_by:
            said = f"the claimed epsilon is what {guarantee.declared_by} declares; it was not checked"
            more["notes"] = (*more.get("notes", ()), said)
        if guarantee is not None and held and not guarantee.holds:
            more["notes"] = (*more.get("notes", ()), f"the claimed epsilon does not hold: {guarantee}")
        if guarantee is not None and not held:
            more["notes"] = (*more.get("notes", ()), f"the guarantee allows any success: {guarantee}")
        return AttackResult(kind, right, trials, answers, lower, epsilon, delta, alpha, **more)

    @property
    def success(self) -> float:
        """The share of right answers."""
        return self.right / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval of the probability of a right answer."""
        return proportion_interval(self.right, self.trials, self.alpha)

    @property
    def allowed(self) -> float | None:
        """The largest probability of a right answer that the guarantee allows, if it allows less than certainty."""
        if self.epsilon is None:
            return None
        delta = self.delta * sum(math.exp(min(700.0, k * self.epsilon)) for k in range(self.steps))
        return math.exp(log_limits(self.steps * self.epsilon, self.answers, delta)[0]) if delta < 1 else 1.0

    @property
    def refuted(self) -> bool:
        """Whether the attack shows more than the ε that is claimed."""
        return self.epsilon is not None and self.lower > self.epsilon

    def advantage(self, success: float) -> float:
        """How far a probability of success is from chance to certainty: 0 for guessing, 1 for always right."""
        return (success - 1 / self.answers) / (1 - 1 / self.answers)

    def to_dict(self) -> dict[str, Any]:
        """The result, ready for JSON."""
        low, high = self.interval
        return {
            "attack": self.kind,
            "trials": self.trials,
            "right": self.right,
            "success": {"share": self.success, "lower": low, "upper": high, "chance": 1 / self.answers},
            "advantage": {
                name: self.advantage(x) for name, x in (("share", self.success), ("lower", low), ("upper", high))
            },
            "allowed": None
            if self.allowed is None
            else {"success": self.allowed, "advantage": self.advantage(self.allowed)},
            "epsilon": {"claimed": self.epsilon, "delta": self.delta, "at_least": self.lower},
            "alpha": self.alpha,
            "refuted": self.refuted,
            "measured": self.measured,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class AttackTrials:
    """How often an attack guesses, and how sure its interval is.

    >>> AttackTrials().alpha
    0.05
    """

    number: int = 2000
    alpha: float = 0.05
    seed: int = 0
    progress: Progress | None = None

    def in_parts(self, what: str) -> Iterator[range]:
        """The trials in parts, each of which is reported when it is done."""
        for start in range(0, self.number, AT_ONCE):
            yield range(start, min(start + AT_ONCE, self.number))
            _tell(self.progress, min(start + AT_ONCE, self.number), self.number, what)


def texts_by(rewriter: Rewriter, who: str = "the rewriter") -> Released:
    """What a rewriter releases of texts: texts. Unless they are independent, each is rewritten by a call of its own."""

    def released(texts: list[str], rng: np.random.Generator) -> list[str]:
        calls = [texts] if getattr(rewriter, "independent_rows", False) else [[text] for text in texts]
        with blamed(who):
            return [new for some in calls for new in checked(rewriter.rewrite(some, rng), some)]

    return released


def vectors_by(system: Any) -> Released:
    """What a system releases of texts: noisy vectors. ADePT's are those that its texts are decoded from."""
    if hasattr(system, "noise"):
        return lambda texts, rng: system.noise.sample(system.model.vectors(texts), rng)
    return lambda texts, rng: np.nan_to_num(np.asarray(system.release(texts, rng), dtype=float))


def attribute_inference(
    released: Released,
    utterances: Sequence[Utterance],
    guarantee: TextGuarantee | None,
    trials: AttackTrials = AttackTrials(),
) -> AttackResult:
    """Infer the private attribute of a text from its release, by a classifier learned from releases of other texts.

    Each trial draws one of the attribute's values, then a text with this value; so chance is 1 over their number.
    """
    rng = np.random.default_rng([trials.seed, 0xA77])
    known, targets = _halves(utterances, rng)
    values = sorted(known)
    learning = _draw(known, values, LEARNED, rng)
    reads = _reader(released, learning, trials.seed, rng, trials.progress)
    told = _draw(targets, values, trials.number, rng)
    right = 0
    for part in trials.in_parts("guessing attributes"):
        texts, truth = zip(*told[part.start : part.stop], strict=True)
        right += sum(a == b for a, b in zip(reads(released(list(texts), rng)), truth, strict=True))
    plain = _reader(lambda texts, rng: texts, learning, trials.seed, rng, None)
    texts, truth = zip(*told, strict=True)
    open_ = sum(a == b for a, b in zip(plain(list(texts)), truth, strict=True)) / trials.number
    measured = {"success_on_the_texts_themselves": open_}
    return AttackResult.of("attribute", right, trials.number, len(values), guarantee, trials.alpha, measured=measured)


def inversion(
    system: Any,
    candidates: Sequence[str],
    guarantee: TextGuarantee | None,
    trials: AttackTrials = AttackTrials(),
) -> AttackResult:
    """Infer from a noisy vector which of some candidates it is of: the likeliest one, by the density of the noise.

    `measured` has the share of a text's words that the guess has too.
    """
    names = list(dict.fromkeys(candidates))
    if len(names) < 2:
        raise InputError(f"an inversion needs 2 different candidates or more, got {len(names)}")
    rng = np.random.default_rng([trials.seed, 0x1AF])
    likelihoods = _likelihoods(system, names)
    released, words = vectors_by(system), [set(tokenise(name)) for name in names]
    right, kept = 0, 0.0
    for part in trials.in_parts("inverting vectors"):
        who = rng.integers(0, len(names), len(part))
        guesses = likelihoods(released([names[i] for i in who], rng)).argmax(axis=1)
        right += int((guesses == who).sum())
        kept += sum(len(words[i] & words[g]) / max(1, len(words[i])) for i, g in zip(who, guesses, strict=True))
    measured = {"words_recovered": kept / trials.number}
    return AttackResult.of("inversion", right, trials.number, len(names), guarantee, trials.alpha, measured=measured)


def _likelihoods(system: Any, names: list[str]) -> Callable[[Floats], Floats]:
    """The log-density of noisy vectors for each candidate, up to what is the same for all: a row per vector."""
    if hasattr(system, "noise"):
        from dpassay.text.reconstruction import log_densities

        vectors = system.noise.bounded(system.model.vectors(names))
        return lambda rows: log_densities(system.noise, rows, vectors)
    from dpassay.text.rewriters.vectors.dpnr import Dpnr, log_likelihood

    if isinstance(system, Dpnr):
        each: list[Callable[[Any], Any]] = [log_likelihood(system, name) for name in names]
    else:
        each = [system.distribution(name).log_likelihood for name in names]
    return lambda rows: np.stack([np.asarray(one(rows)) for one in each], axis=1)


def _halves(
    utterances: Sequence[Utterance], rng: np.random.Generator
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The texts of each value of the attribute: those that the attacker has, and other ones."""
    if lacking := sum(not u.attribute for u in utterances):
        raise InputError(
            f"{lacking:,} of {len(utterances):,} texts have no attribute to infer: give a corpus that has this column"
        )
    different = list({" ".join(tokenise(u.text)): u for u in utterances}.values())
    values: dict[str, list[str]] = {}
    for i in rng.permutation(len(different)):
        values.setdefault(different[i].attribute, []).append(different[i].text)
    if len(values) < 2:
        raise InputError(f"an attribute to infer needs 2 different values or more, got {len(values)}")
    if few := [value for value, texts in values.items() if len(texts) < 2]:
        raise InputError(
            "each value of the attribute needs 2 different texts or more, one of which the attacker has: "
            f"{few[0]!r:.60} has only 1"
        )
    halves = tuple({value: texts[start::2] for value, texts in values.items()} for start in (0, 1))
    return halves[0], halves[1]


def _draw(
    texts: dict[str, list[str]], values: list[str], number: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Texts with their attributes: first a value is drawn, then a text that has it."""
    drawn = [values[i] for i in rng.integers(0, len(values), number)]
    return [(texts[value][rng.integers(0, len(texts[value]))], value) for value in drawn]


def _reader(
    released: Released,
    learning: list[tuple[str, str]],
    seed: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Callable[[Any], list[str]]:
    """A classifier of releases by attribute: of texts by their words, of vectors by their numbers."""
    from dpassay.text.models.classifier import bag_of_words, fit

    outputs: list[Any] = []
    for start in range(0, len(learning), AT_ONCE):
        outputs.extend(released([text for text, _ in learning[start : start + AT_ONCE]], rng))
        _tell(progress, min(start + AT_ONCE, len(learning)), len(learning), "learning from releases")
    values = [value for _, value in learning]
    if not isinstance(outputs[0], str):
        of_vectors = fit(np.asarray(outputs, dtype=float), values, seed)
        return lambda rows: of_vectors.predict(np.asarray(rows, dtype=float))
    rows, words = bag_of_words(outputs)
    if not words:
        return lambda texts: [values[0]] * len(texts)
    of_words = fit(rows, values, seed)
    return lambda texts: of_words.predict(bag_of_words(texts, words)[0])


def _tell(progress: Progress | None, done: int, whole: int, what: str) -> None:
    if progress is not None:
        progress(done, whole, what)
