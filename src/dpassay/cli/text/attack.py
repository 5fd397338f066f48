"""The command that attacks trained models and rewriters, and says what that shows about epsilon."""

from __future__ import annotations

import random
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import AsJson, needs, note, print_json, print_rich, progress_bar
from dpassay.cli.text import rewriters
from dpassay.cli.text.rewrite import Corpus, Seed, order_of
from dpassay.errors import InputError, counted

if TYPE_CHECKING:
    from dpassay.text.inference_attacks import AttackResult

KINDS = ("membership", "attribute", "inversion")
VECTORS = ("dptext", "dpnr", "binary")  # systems that release vectors


def attack(
    model: rewriters.RewriterName = None,
    python: rewriters.RewriterPath = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="membership, attribute or inversion; repeatable. Default: those that apply to the model."),
    ] = None,
    source: Corpus = "flights",
    others: Annotated[
        str | None,
        typer.Option(help="For membership: texts that the model was not trained on. Default: held-out ones."),
    ] = None,
    at_random: Annotated[
        bool,
        typer.Option("--at-random", help="Chance alone decided which texts are in --others: epsilon is bounded too."),
    ] = False,
    mechanism: rewriters.MechanismName = None,
    settings: rewriters.RewriterSettings = None,
    epsilon: rewriters.ReleaseEpsilon = None,
    true_epsilon: rewriters.TrueEpsilon = None,
    delta: rewriters.ReleaseDelta = None,
    candidates: Annotated[int, typer.Option(help="For inversion: how many texts a vector could be of.")] = 100,
    trials: Annotated[int, typer.Option(help="For attribute and inversion: number of guesses.")] = 2000,
    alpha: Annotated[float, typer.Option(help="The error probability of each interval and lower bound.")] = 0.05,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Attack a model or a rewriter: how often is an attack right, and which epsilon does that show?

    \b
    membership  was a text, or a user, in the corpus that a model of 'train adept' or 'train lm' was trained on?
    attribute   which private attribute does the author of a released text or vector have?
    inversion   which of some candidates does a released vector belong to?

    Each share of right answers has a confidence interval, next to what the guarantee allows, and shows a lower bound on
    epsilon. If that is above the claimed epsilon, the exit code is 1. That an attack fails proves nothing.

    \b
    Examples:
      dpassay attack --model models/lm --corpus flights
      dpassay attack --model models/adept --mechanism l1 --epsilon 100 --corpus flights
      dpassay attack --kind attribute --model dp-mlm,model=bert --true-epsilon 100 --corpus reviews.csv
    """
    for option, value, least in (("--candidates", candidates, 2), ("--trials", trials, 1), ("--seed", seed, 0)):
        if value < least:
            raise InputError(f"{option} must be {least} or more, got {value}")
    needs("torch", "text")
    from dpassay.audit.options import check_alpha
    from dpassay.text.corpora.corpus import read_corpus

    check_alpha(alpha)
    if at_random and others is None:
        raise InputError("--at-random is for the texts of --others: those that 'dpassay train' holds out are chosen so")
    system, given = _system(model), (epsilon, true_epsilon, delta)
    noisy = any(v is not None for v in given) or python is not None
    chosen = _kinds(kind, system, noisy or mechanism == "none", noisy)
    corpus = read_corpus(source)
    if kind is None and len(chosen) > 1 and "attribute" in chosen and not all(u.attribute for u in corpus):
        note("attribute inference is left out: not all texts of the corpus have an attribute")
        chosen.remove("attribute")
    found: list[AttackResult] = []
    if "membership" in chosen:
        found.append(_membership(str(model), corpus, others, at_random, (alpha, seed)))
    elif others is not None:
        raise InputError("--others is for membership inference")
    if rest := [one for one in chosen if one != "membership"]:
        if system in VECTORS:
            subject, guarantee = _of_vectors(system, str(model))
        else:
            from dpassay.text.rewriters.rewriting import opened

            order = order_of(model, python, mechanism, settings, given, "cpu", None)
            subject = opened(order)
            guarantee = order.guarantee_of(subject)
        how, who = (trials, alpha, seed), "" if system in VECTORS else str(model or python)
        found += _released(rest, subject, guarantee, corpus, candidates, how, who)
    if as_json:
        print_json({"model": model or python, "corpus": source, "attacks": [one.to_dict() for one in found]})
    else:
        _print(found, alpha)
    if any(one.refuted for one in found):
        raise typer.Exit(1)


def _system(model: str | None) -> str:
    """The system of a model's folder; "" for a rewriter by its name."""
    from dpassay.text.models.folder import MODEL, system_of

    return system_of(Path(model)) if model is not None and (Path(model) / MODEL).is_file() else ""


def _kinds(asked: list[str] | None, system: str, with_epsilon: bool, noisy: bool) -> list[str]:
    """The attacks to make: those requested, or all that apply."""
    apply = {
        "membership": system in ("adept", "lm"),
        "attribute": system in VECTORS or (system != "lm" and (with_epsilon or system == "")),
        "inversion": system in VECTORS or (system == "adept" and noisy),
    }
    if asked is None:
        if system == "adept" and not with_epsilon:
            note("only the weights are attacked; to attack what is released, add --epsilon")
        return [name for name in KINDS if apply[name]]
    for name in asked:
        if name not in KINDS:
            raise InputError(f"unknown attack {name!r}; there are {', '.join(KINDS)}")
        if not apply[name]:
            why = {
                "membership": "needs the folder of a model from 'dpassay train adept' or 'train lm'",
                "attribute": "needs a rewriter with its --epsilon, or a system that releases vectors",
                "inversion": "needs vectors with noise: ADePT with its --epsilon, DPText, DPNR or binary",
            }
            raise InputError(f"{name} {'inference ' * (name != 'inversion')}{why[name]}")
    return list(dict.fromkeys(asked))


def _membership(
    model: str, corpus: list[Any], others: str | None, at_random: bool, how: tuple[float, int]
) -> AttackResult:
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.training.canaries.membership import TrainedSubject, apart, grouped, membership

    subject = TrainedSubject.of(model)
    if others is None:
        inside, outside = subject.divided(corpus)
    else:
        strangers, known = apart(corpus, read_corpus(others), subject.privacy)
        if known:
            note(f"{counted(known, 'text')} of --others, also in --corpus or of one of its users, left out")
        inside, outside = (grouped(some, subject.privacy) for some in (corpus, strangers))
    with progress_bar(1) as bar:
        if bar is not None:
            bar(0, 1, "reading the corpus as the model does")
        return membership(subject, inside, outside, *how, at_random=at_random or others is None)


def _of_vectors(system: str, folder: str) -> tuple[Any, Any]:
    """A system that releases vectors, and its guarantee for one text if it has one."""
    from importlib import import_module

    loaded = import_module(f"dpassay.text.rewriters.vectors.{system}").load(folder)
    subject = loaded[0] if isinstance(loaded, tuple) else loaded
    return subject, getattr(subject, "guarantee", None)


def _released(
    kinds: list[str],
    subject: Any,
    guarantee: Any,
    corpus: list[Any],
    candidates: int,
    how: tuple[int, float, int],
    who: str,
) -> list[AttackResult]:
    from dpassay.text.inference_attacks import AttackTrials, attribute_inference, inversion, texts_by, vectors_by

    found = []
    with progress_bar(1) as bar, redirect_stdout(sys.stderr):
        trials = AttackTrials(*how, bar)
        if "attribute" in kinds:
            seen = texts_by(subject, who) if who else vectors_by(subject)
            found.append(attribute_inference(seen, corpus, guarantee, trials))
        if "inversion" in kinds:
            texts = list(dict.fromkeys(u.text for u in corpus))
            names = random.Random(f"dpassay candidates {trials.seed}").sample(texts, min(candidates, len(texts)))
            found.append(inversion(subject, names, guarantee, trials))
    return found


def _print(found: list[AttackResult], alpha: float) -> None:
    from rich.table import Column, Table

    from dpassay.core.interval import outward, outward_fixed
    from dpassay.text.rewriters.base import upward

    interval = f"{100 * (1 - alpha):.4g}% interval"
    columns = (
        Column("attack", no_wrap=True, min_width=10),
        "right",
        "share",
        interval,
        "chance",
        "allowed",
        "claimed ε",
        "ε at least",
    )
    table = Table(*columns, box=None, header_style="bold")
    for one in found:
        low, high = one.interval
        table.add_row(
            one.kind,
            f"{one.right:,} of {one.trials:,}",
            f"{one.success:.1%}",
            f"{outward_fixed(low, -1, unit=100)}% to {outward_fixed(high, 1, unit=100)}%",
            f"{1 / one.answers:.1%}",
            "-" if one.allowed is None else f"{outward_fixed(one.allowed, 1, unit=100)}%",
            "-" if one.epsilon is None else upward(one.epsilon),
            outward(one.lower, -1, 3),
        )
    print_rich(table)
    for one in found:
        for name, value in one.measured.items():
            print(f"{one.kind}: {name.replace('_', ' ')}: {value:.1%}")
        for sentence in one.notes:
            print(f"{one.kind}: {sentence}")
        if one.refuted:
            print(f"{one.kind}: refuted: epsilon is at least {outward(one.lower, -1, 6)}, not {one.epsilon:.6g}")
    print(f"Each interval and each lower bound on epsilon is wrong with a probability of at most {alpha:g}.")
