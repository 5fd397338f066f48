"""What a rewriter is: it rewrites texts, and states its guarantee for one text. All statements are made here.

Everything that uses rewriters (`rewrite`, `utility`, `reconstruct`, `audit --model`) needs two members:

    rewrite(texts, rng) -> list of texts    one rewriting of each text
    guarantee -> TextGuarantee              what holds for one text

and uses these optional members, if a rewriter has them:

    independent_rows -> bool                whether the rewritings of one batch are independent, so that an audit may
                                            count each of them; otherwise it runs one text at a time to be sure
    log_prob(output, text) -> float         the exact log-probability of an output: the strongest attack there is
    log_probs(output, texts) -> numbers     the same for several texts, if that is faster than one after another
    release(texts) -> list of texts         rewritings that may be published, with randomness that nobody can guess
    exact() -> Verdict                      the exact verdict on what is claimed
    weights -> WeightsGuarantee             what holds for its model, if that was trained with privacy
    statement() -> dict                     how texts are drawn, for the file that goes with a release
    describe() -> dict of texts             what identifies it: its mechanism, its parameters, its model's sha256
"""

from __future__ import annotations

import math
import secrets
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpassay.audit.mechanisms.rewriting import as_mechanism, checked, describe
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError, MechanismError, in_one_line

__all__ = ["Rewriter", "TextGuarantee", "as_mechanism", "checked", "covering", "describe", "released", "statement"]

# Caveats. All but the first are named by the rewriters to which they apply.
REPEATED = "each further rewriting of the same text spends its epsilon and delta again"
WEIGHTS = (
    "the model's weights and words, and all else in its folder, are not covered: it was trained without privacy on the "
    "texts of its corpus"
)
NAMED = "the names of labels and attributes, which the model's folder lists, are not covered"
TIMING = "how long a rewriting took is not covered"
PRETRAINED = "what the model's weights reveal of the texts that it was trained on is not covered"
ELSEWHERE = "texts of the same author that are rewritten elsewhere spend their epsilon and delta again"
FURTHER = "each further text of the same author spends the release's epsilon and delta again; --per-author limits them"
ONE_SENTENCE = (
    "the model's weights are covered for one sentence of its corpus, not for all sentences of an author: train it with "
    "--privacy user"
)
COUNTED = "how many texts of an author are rewritten, and where they are among the others, is visible"
SPENDING = frozenset((REPEATED, ELSEWHERE, FURTHER))  # what only a finite epsilon has to say
SAME_NAME = "all texts of a person carry the same author name"
DOUBLES = "the noise is drawn in double precision and the theorem is about real numbers: rounding is not covered"

PREDICTABLE = (
    "the noise is drawn by numpy's PCG64, seeded by the operating system: it is not a cryptographic generator, and "
    "whoever can work out its state knows the noise"
)


@dataclass(frozen=True)
class GuaranteePart:
    """One of the guarantees that another is composed of, and how often it counts.

    >>> print(GuaranteePart("release", 50, 1e-6, times=5))
    5 times release 50 (delta 1e-06)
    """

    name: str
    epsilon: float
    delta: float = 0.0
    times: int = 1

    def __str__(self) -> str:
        often = f"{self.times:,} times " if self.times > 1 else ""
        return f"{often}{self.name} {upward(self.epsilon)}" + (f" (delta {upward(self.delta)})" if self.delta else "")


@dataclass(frozen=True)
class WeightsGuarantee:
    """What holds for the weights and words of a model that was trained with privacy.

    `unit` is what the corpus may have or lack: "text", one sentence, or "author", all sentences of a user.
    """

    epsilon: float
    delta: float
    unit: str
    proofs: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextGuarantee:
    """The guarantee for one text: an ε that holds by a theorem, for which neighbors, and what it does not cover.

    A guarantee composed by `covering` has `parts`; its `between` states which inputs it makes hard to distinguish.

    `claimed` is the ε that the mechanism's authors state for these parameters, if it differs. An infinite ε means that
    no finite one holds. `outside` is part of the sentence, `caveats` follow it. `declared_by` names who declared
    the ε, if no theorem of ours supports it; `audit` says what an audit of it found, and `doubt` why it does not hold.

    >>> print(TextGuarantee(50, neighbours=Neighbours("words(5)"), outside="the number of words is visible"))
    epsilon 50 for two texts that differ in at most 5 words; the number of words is visible
    >>> print(TextGuarantee(800, claimed=100))
    epsilon 800 (claimed: 100) for any two texts (local DP)
    >>> print(TextGuarantee(2, declared_by="mine:RR"))
    epsilon 2 (declared by mine:RR, not checked) for any two texts (local DP)
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = field(default_factory=Neighbours)
    claimed: float | None = None
    outside: str = ""
    proofs: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    as_published: bool = False
    declared_by: str = ""
    audit: str = ""
    doubt: str = ""
    unit: str = "text"
    between: str = ""
    parts: tuple[GuaranteePart, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0 or not 0 <= self.delta < 1:
            raise InputError(
                f"a guarantee has an epsilon of 0 or more and a delta from 0 to 1, got {self.epsilon} and {self.delta}"
            )

    @property
    def stated(self) -> float:
        """The claimed ε: the authors', or the one that holds."""
        return self.epsilon if self.claimed is None else self.claimed

    @property
    def holds(self) -> bool:
        """Whether the claimed ε holds; nothing infinite does."""
        return self.epsilon <= self.stated and math.isfinite(self.epsilon) and not self.doubt

    @property
    def why_not(self) -> str:
        """Why the claim does not hold; empty if it does.

        >>> TextGuarantee(math.inf, outside="unknown words are copied").why_not
        'no finite epsilon holds; unknown words are copied'
        """
        if self.holds:
            return ""
        if self.doubt:
            return self.doubt
        if math.isfinite(self.epsilon):
            return f"epsilon {upward(self.epsilon)} holds, not the claimed {self.stated:g}"
        return "; ".join(filter(None, ("no finite epsilon holds", self.outside)))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee does not cover, in sentences; where there is no ε, none is spent again."""
        if math.isfinite(self.epsilon) and not self.doubt:
            return (*self.caveats, REPEATED)
        return tuple(caveat for caveat in self.caveats if caveat not in SPENDING)

    def __str__(self) -> str:
        whom = "any two texts (local DP)" if self.neighbours.kind == "any" else str(self.neighbours)
        whom = f"{self._whose()}: {' and '.join(map(str, self.parts))}, for {whom}" if self.parts else whom
        delta = f", delta {upward(self.delta)}" if self.delta else ""
        if self.doubt:
            return f"none: {self.doubt} (declared by {self.declared_by}: epsilon {self.stated:g}{delta} for {whom})"
        told = [f"claimed: {self.stated:g}"] * (not self.holds and math.isfinite(self.stated))
        told += [f"declared by {self.declared_by}, {self.audit or 'not checked'}"] * bool(self.declared_by)
        held = "no finite epsilon" if math.isinf(self.epsilon) else f"epsilon {upward(self.epsilon)}"
        held = f"{'as published, ' * self.as_published}{held}{delta}" + (f" ({'; '.join(told)})" if told else "")
        return f"{held} for {whom}" + (f"; {self.outside}" if self.outside else "")

    def _whose(self) -> str:
        both = " in training and release together" if len(self.parts) > 1 else ""
        if self.unit == "text":
            return f"one text{both}"
        most = self.parts[-1].times
        texts = f"{most:,} texts are" if most > 1 else "1 text is"
        return f"one author, of whom at most {texts} rewritten{',' * bool(both)}{both}"

    def to_dict(self) -> dict[str, Any]:
        """The guarantee, ready for JSON."""
        parts = [{"part": p.name, "epsilon": p.epsilon, "delta": p.delta, "times": p.times} for p in self.parts]
        composed = {"composed_of": parts, "between": self.between, "assumptions": list(self.assumptions)}
        return {
            "epsilon": None if self.doubt else "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "claimed_epsilon": self.stated if math.isfinite(self.stated) else None,
            "holds": None if self.declared_by and self.holds else self.holds,
            "declared_by": self.declared_by or None,
            "audit": self.audit or None,
            "as_published": self.as_published,
            "neighbours": self.neighbours.kind,
            "sentence": str(self),
            "proofs": list(self.proofs),
            "not_covered": list(self.not_covered),
            **(composed if self.parts else {}),
        }


def covering(
    guarantee: TextGuarantee, lines: int | None = None, weights: WeightsGuarantee | None = None
) -> TextGuarantee:
    """The guarantee of all that is published: at most `lines` lines per author, and the model's weights.

    ε and δ add up (docs/proofs/composition.md, point 11): a release is private for every value of the weights.

    >>> print(covering(TextGuarantee(50), lines=5))
    epsilon 250 for one author, of whom at most 5 texts are rewritten: 5 times release 50, for any two texts (local DP)
    >>> print(covering(TextGuarantee(50), weights=WeightsGuarantee(4, 1e-5, "text")))
    epsilon 54, delta 1e-05 for one text in training and release together: training 4 (delta 1e-05) and release 50, \
for any two texts (local DP)
    """
    caveats = guarantee.caveats
    if weights is not None and lines is not None and weights.unit == "text":
        weights, caveats = None, (ONE_SENTENCE, *caveats)
    if weights is None and lines is None:
        return guarantee
    training = () if weights is None else (GuaranteePart("training", weights.epsilon, weights.delta),)
    parts = (*training, GuaranteePart("release", guarantee.epsilon, guarantee.delta, lines or 1))
    delta = _total((part.times, part.delta) for part in parts)
    if delta >= 1:
        raise InputError(
            f"the delta of {lines or 1:,} texts would add up to {delta:.4g}, and from 1 on nothing is guaranteed: "
            "give a smaller --per-author or a smaller --delta"
        )
    claimed = None if guarantee.claimed is None else (*training, replace(parts[-1], epsilon=guarantee.claimed))
    by_author = weights is not None and weights.unit == "author"
    more = [COUNTED, ELSEWHERE] if lines is not None else [FURTHER] if by_author else []
    proofs, assumed = (weights.proofs, weights.assumptions) if weights is not None else ((), ())
    return replace(
        guarantee,
        epsilon=_total((part.times, part.epsilon) for part in parts),
        delta=delta,
        claimed=None if claimed is None else _total((part.times, part.epsilon) for part in claimed),
        proofs=tuple(dict.fromkeys((*guarantee.proofs, *proofs, Theorem.COMPOSITION.page))),
        caveats=(*caveats, *more),
        unit="text" if lines is None else "author",
        between=_between(guarantee, lines, weights),
        parts=parts,
        assumptions=(*assumed, *((SAME_NAME,) if by_author or lines is not None else ())),
    )


def _between(guarantee: TextGuarantee, lines: int | None, weights: WeightsGuarantee | None) -> str:
    """Which two inputs are hard to distinguish; the texts are neighbors of those in their place.

    >>> _between(TextGuarantee(50, neighbours=Neighbours("words(5)")), 3, None)
    "an author's texts are rewritten, or others are instead; each text and the one in its place are two texts that \
differ in at most 5 words"
    """
    near = guarantee.neighbours.kind != "any"
    texts, others = ("a text is", "another is") if lines is None else ("an author's texts are", "any others are")
    others = others.removeprefix("any ") if near else others
    between = f"{texts} rewritten, or {others} instead"
    if weights is not None:
        here = {"text": "is", "author": "its author is"}[weights.unit] if lines is None else "the author is"
        lost = {"text": "the first", "author": "the author"}[weights.unit]
        between = (
            f"{texts} rewritten and {here} in the training corpus, or {others} rewritten and the corpus lacks {lost}"
        )
    if not near:
        return between
    pair = "the text and the one in its place" if lines is None else "each text and the one in its place"
    return "; ".join(filter(None, (between, f"{pair} are {guarantee.neighbours}", guarantee.outside)))


def _total(terms: Iterable[tuple[int, float]]) -> float:
    """The sum of products, rounded up.

    >>> _total([(1, 0.1), (2, 0.1)]) >= 0.3
    True
    """
    pairs = list(terms)
    if any(math.isinf(value) for _, value in pairs):
        return math.inf
    exact = sum(times * Fraction(value) for times, value in pairs)
    found = float(exact)
    return found if found >= exact else math.nextafter(found, math.inf)


def upward(value: float) -> str:
    """The value rounded up to six digits, where an excess as small as repeated rounding up can add is ignored.

    >>> upward(57.998014), upward(250.0), upward(math.inf), upward(0.1 + 0.2)
    ('57.9981', '250', 'inf', '0.3')
    """
    shown = f"{value:.6g}"
    if float(shown) >= value * (1 - 1e-12):
        return shown
    unit = 10.0 ** (math.floor(math.log10(value)) - 5)
    return f"{(math.floor(value / unit) + 1) * unit:.6g}"


@runtime_checkable
class Rewriter(Protocol):
    """A mechanism from text to text, with its guarantee for one text.

    >>> class Shout:
    ...     guarantee = TextGuarantee(math.inf)
    ...     def rewrite(self, texts, rng):
    ...         return [text.upper() for text in texts]
    >>> isinstance(Shout(), Rewriter)
    True
    """

    @property
    def guarantee(self) -> TextGuarantee:
        """What holds for one text."""

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text; the same generator gives the same texts."""


@contextmanager
def blamed(who: str) -> Iterator[None]:
    """Whatever goes wrong in a rewriter is its own failure: the message names the line.

    >>> with blamed("mine:RR"):
    ...     math.exp(1000)
    Traceback (most recent call last):
    ...
    dpassay.errors.MechanismError: mine:RR failed: OverflowError: math range error (...)
    """
    try:
        yield
    except (InputError, MechanismError):
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        others = str(Path(__file__).parents[2]), sysconfig.get_path("stdlib"), "site-packages"
        own = [one for one in frames if not any(place in one.filename for place in others)]
        place = (own or frames)[-1]
        said = in_one_line(type(error).__name__, str(error))[:400]
        raise MechanismError(f"{who} failed: {said} ({Path(place.filename).name}, line {place.lineno})") from error


def released(rewriter: Rewriter, texts: Sequence[str], who: str = "the rewriter") -> list[str]:
    """Rewritings to be published: from the rewriter's own `release`, or with a generator seeded by the system.

    What a rewriter prints must not end up among them.
    """
    own = getattr(rewriter, "release", None)
    with blamed(who), redirect_stdout(sys.stderr):
        if own is not None:
            return checked(own(texts), texts)
        return checked(rewriter.rewrite(texts, np.random.default_rng(secrets.randbits(128))), texts)


def statement(rewriter: Rewriter, guarantee: TextGuarantee | None = None) -> dict[str, Any]:
    """The guarantee of a release, ready for JSON, and what the rewriter adds: how texts are drawn."""
    own: dict[str, Any] = getattr(rewriter, "statement", dict)()
    held = guarantee or rewriter.guarantee
    return {**own, "schema": "dpassay/rewriting/3", "per": held.unit, "guarantee": held.to_dict()}
