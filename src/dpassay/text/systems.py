"""Trained models of published systems: the claim that each belongs to, and how to attack it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpassay.api import check, with_samples
from dpassay.audit.options import Progress
from dpassay.audit.runner import audit
from dpassay.claims.claim import Claim
from dpassay.core.guarantee import ApproxDP, PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import middle, number
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict
from dpassay.text.models.folder import system_of

if TYPE_CHECKING:
    from dpassay.text.rewriters.base import TextGuarantee
    from dpassay.text.rewriters.catalogue import Specification

MOST_CANDIDATES = 100
MOST_COMPARED = 200
MOST_PAIRS = 3
CHECK_RUNS = 5000  # of a short audit
# The mechanism, reading or variant of a model that each claim is about.
REWRITERS = {
    "adept": "adept-as-published",
    "adept-l1": "l1",
    "adept-sqrt-n": "sqrt-n",
    "adept-gaussian": "gaussian",
}
READINGS = {"dptext-zero": "zero", "dptext-resampled": "resampled", "dptext-nan": "nan", "dptext-corrected": "right"}
ENCODINGS = {
    "ome": "ome",
    "latent-moue": "latent-moue",
    "latent-uer": "latent-uer",
    "binary-symmetric": "symmetric",
}
WITH_GAUSSIAN = ("dpnr-gaussian", "dpnr-gaussian-fixed")
EMBEDDINGS = (
    *("dpnr", "dpnr-element", "dpnr-dropout", "dpnr-scaled", "dpnr-corrected", "dpnr-dropout-fixed"),
    *WITH_GAUSSIAN,
)
SETTABLE = {"epsilon", "delta", "e", "mu"}  # may be set in a claim about a model; the model fixes everything else
SENTENCES = ("book a flight to rome", "book a flight to boston")


@dataclass(frozen=True)
class Running:
    """A system that can be run, and what an audit of it needs: inputs, and perhaps a distinguisher for its model."""

    subject: Any
    parameters: dict[str, Any]  # of the claim, with the model's values
    inputs: dict[str, Any] = field(default_factory=dict)
    guesser: Callable[[list[Any]], Any] | None = None


def check_model(
    claim: Claim,
    folder: str | Path,
    *,
    texts: Sequence[str] | None = None,
    runs: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
    **changes: Any,
) -> Verdict:
    """Check a claim for a trained model: exactly with the model's own parameters, and with `runs` from its outputs too.

    Its inputs are chosen from `texts`, by default the shipped corpus.
    """
    system = opened(claim, Path(folder), changes)
    asked = claim(**{**system.parameters, **changes})
    exact = check(asked)
    if not runs:
        return exact
    claimed = (exact.guarantee.value, exact.guarantee.exact_delta, exact.neighbours)
    return with_samples(exact, _sampled(system, claimed, texts, runs, seed, progress))


def _sampled(
    system: Running,
    claimed: tuple[Any, Any, Neighbours],
    texts: Sequence[str] | None,
    runs: int,
    seed: int,
    progress: Progress | None,
) -> Verdict:
    """What runs of a system show about a claimed ε and δ, with the best known attack on it."""
    system = attacked(system, texts, seed, progress, draws=max(1000, 2 * runs))
    epsilon, delta, neighbours = claimed
    return audit(
        system.subject,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        runs=runs,
        seed=seed,
        guesser=system.guesser,
        progress=progress,
        **system.inputs,
    )


def opened(claim: Claim, folder: Path, changes: dict[str, Any]) -> Running:
    """The system that a claim is about, from a model's folder; `changes` are parameters that the user gives."""
    name, kind = claim.name, system_of(folder)
    wanted = next((s for s, names in CLAIMS.items() if name in names), None)
    if wanted is None:
        known = ", ".join(name for names in CLAIMS.values() for name in names)
        raise InputError(f"{name} is not a claim about a system that can be trained; there are {known}")
    if wanted != kind:
        raise InputError(f"{name} is a claim about {wanted}; {folder} is a model of {kind}")
    system = OPENERS[kind](claim, folder, changes)
    for given in changes.keys() - SETTABLE:
        if str(changes[given]) != str(system.parameters.get(given)):
            what = f"{given}, {system.parameters[given]}" if given in system.parameters else f"{given}, or runs without"
            raise InputError(f"{folder} has its own {what}: leave {given} out, or train another model")
    return system


def _adept(claim: Claim, folder: Path, changes: dict[str, Any]) -> Running:
    from dpassay.text.rewriters.base import as_mechanism
    from dpassay.text.rewriters.vectors.latent import adept

    guarantee = claim(**{k: v for k, v in changes.items() if k in ("epsilon", "delta")}).guarantee
    subject = adept(guarantee.claimed, guarantee.delta, model=str(folder), mechanism=REWRITERS[claim.name])
    about = subject.model.about
    return Running(as_mechanism(subject), {"dim": about.latent, "C": repr(about.clip)})


def _dptext(claim: Claim, folder: Path, changes: dict[str, Any]) -> Running:
    from dpassay.text.rewriters.vectors.dptext import load

    subject = load(folder)
    if READINGS[claim.name] != subject.reading:
        right = next(name for name, reading in READINGS.items() if reading == subject.reading)
        raise InputError(f"{folder} has the noise of {right}; check that, or train with --reading")
    if "epsilon" in changes:
        own = f"{subject.epsilon:g}" + " (learned, and therefore not a guarantee)" * subject.learnt
        raise InputError(f"{folder} has its own epsilon, {own}: leave --epsilon out, or train another")
    return Running(subject, {"dim": subject.dim, "epsilon": repr(subject.epsilon)})


def _dpnr(claim: Claim, folder: Path, changes: dict[str, Any]) -> Running:
    from dpassay.text.rewriters.vectors.dpnr import load

    subject, _ = load(folder)
    if (subject.delta > 0) != (claim.name in WITH_GAUSSIAN):
        drawn, other = ("Gaussian", "without") if subject.delta else ("Laplace", "with")
        raise InputError(f"{folder} has {drawn} noise, {claim.name} is about another; train {other} --delta for that")
    dropout, noise = "mu" in claim.parameters, "e" if "e" in claim.parameters else "epsilon"
    for given, own in ((noise, subject.epsilon), ("mu", subject.mu), ("delta", subject.delta)):
        if given in changes and float(changes[given]) != own:
            raise InputError(f"{folder} has its own {given}, {own:g}: leave {given} out, or train another model")
    subject = replace(subject, mu=subject.mu if dropout else 0, scale=None)
    parameters = {"dim": subject.dim, noise: repr(subject.epsilon), **({"mu": repr(subject.mu)} if dropout else {})}
    parameters |= {"delta": repr(subject.delta)} if subject.delta else {}
    return Running(subject.scaled() if claim.name.endswith("-scaled") else subject, parameters)


def _binary(claim: Claim, folder: Path, changes: dict[str, Any]) -> Running:
    from dpassay.text.rewriters.vectors.binary import load

    subject, _ = load(folder)
    if ENCODINGS[claim.name] != subject.mechanism:
        right = next(name for name, mechanism in ENCODINGS.items() if mechanism == subject.mechanism)
        raise InputError(f"{folder} has the probabilities of {right}; check that, or train with --mechanism")
    if "epsilon" in changes and float(changes["epsilon"]) != subject.epsilon:
        raise InputError(f"{folder} has its own epsilon, {subject.epsilon:g}: leave --epsilon out, or train another")
    return Running(subject, subject.parameters)


CLAIMS = {"adept": tuple(REWRITERS), "dptext": tuple(READINGS), "dpnr": EMBEDDINGS, "binary": tuple(ENCODINGS)}
OPENERS = {"adept": _adept, "dptext": _dptext, "dpnr": _dpnr, "binary": _binary}


def attacked(
    system: Running,
    texts: Sequence[str] | None,
    seed: int,
    progress: Progress | None,
    draws: int | None = None,
) -> Running:
    """The same system with inputs to tell apart and the best known distinguisher for it."""
    subject = system.subject
    if hasattr(subject, "rewriter"):
        return _attacked_rewriter(system, _texts(texts), seed, progress, draws)
    if hasattr(subject, "encoder") and hasattr(subject, "mu"):
        from dpassay.text.rewriters.vectors.dpnr import distinguisher

        pair = SENTENCES if texts is None else _pair(_texts(texts))
        return replace(system, inputs={"pairs": [pair]}, guesser=distinguisher(subject, *pair) if subject.mu else None)
    return replace(system, inputs={"pairs": [_farthest(subject, list(dict.fromkeys(_texts(texts)))[:MOST_COMPARED])]})


def _attacked_rewriter(
    system: Running, texts: list[str], seed: int, progress: Progress | None, draws: int | None
) -> Running:
    """With the attack that knows an autoencoder's vectors; for other rewriters, with texts to tell apart.

    The audit itself uses a rewriter's own output probabilities.
    """
    from dpassay.text.rewriters.vectors.latent import LatentRewriter

    rewriter = system.subject.rewriter
    if isinstance(rewriter, LatentRewriter):
        from dpassay.text.reconstruction import DRAWS, far_apart, learn

        candidates = far_apart(rewriter, texts, MOST_CANDIDATES)
        draws = None if draws is None else min(draws, DRAWS * len(candidates))
        guesser = learn(rewriter, candidates, draws, seed, progress)
        return replace(system, inputs={"candidates": candidates}, guesser=guesser)
    return replace(system, inputs={"pairs": _neighbouring(texts, rewriter.guarantee.neighbours)})


def _neighbouring(texts: list[str], neighbours: Neighbours) -> list[tuple[str, str]]:
    """Maximally different pairs of texts that a guarantee covers."""
    from dpassay.audit.inputs.checks import why_not_neighbours

    some = list(dict.fromkeys(texts))[:MOST_COMPARED]
    pairs = (
        (first, second)
        for i, first in enumerate(some)
        for second in some[:i]
        if not why_not_neighbours(second, first, neighbours, None)
    )
    found = sorted(pairs, key=lambda pair: len(set(pair[0].split()) & set(pair[1].split())))[:MOST_PAIRS]
    if not found:
        raise InputError(f"of the texts no two are {neighbours}; give some that are")
    return found


def _texts(texts: Sequence[str] | None) -> list[str]:
    if texts is not None:
        if odd := [text for text in texts if not isinstance(text, str)]:
            raise InputError(f"a text system takes texts, got {odd[0]!r}"[:200])
        return list(texts)
    from dpassay.text.corpora.flights import flights

    return [utterance.text for utterance in flights(1000)]


def _farthest(subject: Any, texts: list[str]) -> tuple[str, str]:
    """The two texts whose vectors are farthest apart in l1."""
    import numpy as np

    if len(texts) < 2:
        raise InputError(f"at least 2 different texts are needed, got {len(texts)}")
    vectors = subject.encoder.encode(texts)
    gaps = np.abs(vectors[:, None] - vectors).sum(axis=2)
    first, second = divmod(int(gaps.argmax()), len(texts))
    return texts[first], texts[second]


def _pair(texts: Sequence[str]) -> tuple[str, str]:
    """The first two texts that differ in one word."""
    from dpassay.audit.inputs.checks import why_not_neighbours

    some = list(dict.fromkeys(texts))[:200]
    for i, first in enumerate(some):
        for second in some[:i]:
            if not why_not_neighbours(second, first, Neighbours("word"), None):
                return second, first
    raise InputError("no two of the texts differ in one word only; give some that do")


def claimed_of(named: Specification, epsilon: Any, delta: Any) -> tuple[Any, TextGuarantee, Verdict | None]:
    """A rewriter as a mechanism, its guarantee for one text, and the exact verdict on what it claims for one."""
    from dpassay.text.rewriters.base import as_mechanism

    made_with = {"epsilon": _float(epsilon), "delta": _float(delta)}
    rewriter = named.at(made_with["epsilon"], made_with["delta"])
    guarantee = rewriter.guarantee
    if named.ready:  # it cannot be made with another ε: the given one is the claimed one
        guarantee = replace(guarantee, claimed=guarantee.claimed if epsilon is None else made_with["epsilon"])
    if math.isinf(guarantee.stated):
        raise InputError(f"there is nothing to test, since no finite epsilon is claimed: {guarantee}")
    exact: Verdict | None = rewriter.exact() if hasattr(rewriter, "exact") else None
    if exact is not None and not _same_claim(exact, guarantee):  # such as the loss of one word
        exact = None
    known = {name: str(value) for name, value in made_with.items() if value is not None}
    return as_mechanism(rewriter, known), guarantee, exact


def _same_claim(exact: Verdict, guarantee: TextGuarantee) -> bool:
    """Whether an exact verdict is on the ε, the δ and the neighbors of a rewriter's guarantee for a text."""
    same = exact.guarantee.claimed == guarantee.stated and exact.guarantee.delta == guarantee.delta
    return same and isinstance(exact.guarantee, PureDP | ApproxDP) and exact.neighbours == guarantee.neighbours


def _float(value: Any) -> float | None:
    return None if value is None else middle(number(value))


def check_rewriter(
    named: Specification,
    epsilon: Any = None,
    delta: Any = None,
    *,
    texts: Sequence[str] | None = None,
    runs: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Verdict:
    """Check what a rewriter claims for one text: exactly where possible, and with `runs` from its outputs too."""
    if not runs:
        rewriter = named.at(_float(epsilon), _float(delta))
        if not hasattr(rewriter, "exact"):
            raise InputError(
                f"{named.name} has no exact analysis: specify the number of runs with --sample or --runs 10000"
            )
        return cast(Verdict, rewriter.exact())
    subject, guarantee, exact = claimed_of(named, epsilon, delta)
    claimed = (guarantee.stated, guarantee.delta, guarantee.neighbours)
    sampled = _sampled(Running(subject, {}), claimed, texts, runs, seed, progress)
    return sampled if exact is None else with_samples(exact, sampled)


def audit_declared(rewriter: Any, guarantee: TextGuarantee, progress: Progress | None = None) -> Verdict:
    """A short audit of the ε that somebody's own rewriter declares, on texts of the shipped corpus."""
    from dpassay.text.rewriters.base import as_mechanism

    claimed = (guarantee.stated, guarantee.delta, guarantee.neighbours)
    return _sampled(Running(as_mechanism(rewriter), {}), claimed, None, CHECK_RUNS, 0, progress)


def of_audit(file: Path, named: Specification) -> tuple[Any, Callable[[list[Any]], Any] | None]:
    """The rewriter and the distinguisher of a saved audit, made from the model; nothing in the file is executed."""
    from dpassay.audit.storage.checkpoint import load
    from dpassay.text.rewriters.base import as_mechanism
    from dpassay.text.rewriters.catalogue import Specification
    from dpassay.text.rewriters.vectors.latent import LatentRewriter

    journal = load(file)
    asked, record = journal.asked.subject, journal.witness or journal.main
    if asked.get("kind") != "model" or record is None or journal.main is None:
        raise InputError(f"{file} is not an audit of a model; leave --model out")
    if named.takes("mechanism") and "mechanism" in asked:
        named = Specification(named.name, {"mechanism": str(asked["mechanism"]), **named.settings})
    try:
        made_with = {"epsilon": asked["epsilon"], **({"delta": asked["delta"]} if "delta" in asked else {})}
    except KeyError as missing:
        raise InputError(f"{file} is damaged: it does not say which {missing} the model was audited with") from None
    rewriter = named.at(_float(made_with["epsilon"]), _float(made_with.get("delta")))
    subject = as_mechanism(rewriter, {name: str(value) for name, value in made_with.items()})
    own = any(e.rule.guesser.get("kind") == "Own" for e in record.epochs)
    if not isinstance(rewriter, LatentRewriter) or (len(record.inputs) == 2 and not own):
        return subject, None
    from dpassay.text.reconstruction import learn

    # What was learned for the first pair also tells a smaller pair apart.
    return subject, learn(rewriter, [str(text) for text in journal.main.inputs], seed=journal.asked.seed)
