"""Perplexity against the true ε: user-level DP, user-entity DP, de-identification and no privacy.

The same small model is trained in all four ways and measured on the same held-out text. The noise is chosen such that
the certified accountant gives the same ε for user-level and user-entity DP, each for its own neighbors.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.compute.executors import Executor, cores
from dpassay.compute.workers import make_executor
from dpassay.errors import InputError
from dpassay.reproduce.result import COLOURS, FigureResult, Partial, ReproductionOptions, label
from dpassay.training.accountant import Account, least_noise

if TYPE_CHECKING:
    from dpassay.core.interval import Interval
    from dpassay.training.comparison import Setup, TextSource, TrainingTask

NAME = "uedp-perplexity"
EPSILONS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
DELTA = 1e-5
RUNS = 3  # models for each point, each with its own seed
RATES = (0.05, 0.01, 0.002)  # learning rates tried for each point
CLAIMED = (0.5, 3.0)  # budgets at which the released code saves results
NAMES = {
    "user": "user-level DP",
    "user-entity": "user-entity DP",
    "de-identified": "de-identified",
    "none": "no privacy",
}


def uedp_perplexity(options: ReproductionOptions) -> FigureResult:
    """Figure 2: four ways of training, on the shipped corpus and on a given one."""
    if find_spec("torch") is None:
        raise InputError(f"{NAME} trains language models and needs torch: pip install 'dpassay[text]'")
    from dpassay.training.comparison import Setup

    sources, setup, runs = all_sources(options.corpora), Setup(), options.runs or RUNS
    wanted = all_tasks(sources, runs, options.seed, options.device, setup)
    found = _trained(wanted, header(sources, runs, options.seed, setup), options)
    rows = _chosen([_row(name, task, *found[name]) for name, task in wanted.items()])
    references = {source.name: _references(source) for source in sources}
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw(figure, rows, references),
        caption=_caption(sources, runs, setup),
        published="Lai et al. 2022, Figure 2: perplexity against the privacy budget for UeDP, user-level DP, "
        "de-identification and a model without noise. The documents do not tabulate its curves, so there are no "
        "numbers of "
        "theirs to compare with. In words, the paper claims that UeDP outperforms the baseline approaches in model "
        "utility "
        "at the same privacy budget. Its models are an AWD-LSTM and GPT-2; ours is a much smaller LSTM on other text, "
        "so only the order of the four can be compared, not the perplexities.",
        found=tuple(_findings(rows, references)),
        size=(4.4 * len(sources) + 0.6, 4.6),
    )


def all_sources(given: Sequence[TextSource]) -> tuple[TextSource, ...]:
    """The shipped corpus, and the given ones."""
    from dpassay.training.comparison import TextSource

    found = (TextSource(), *given)
    names = [source.name for source in found]
    if len(set(names)) < len(names):
        raise InputError(f"two corpora have the same name, {names[-1]!r}: rename the file")
    return found


def all_tasks(
    sources: Sequence[TextSource], runs: int, seed: int, device: str, setup: Setup
) -> dict[str, TrainingTask]:
    """One model for each corpus, way of training, ε, learning rate and seed, by name."""
    from dpassay.training.comparison import ARMS, PRIVATE, TrainingTask

    found = {}
    for source in sources:
        for arm in ARMS:
            for epsilon in EPSILONS if arm in PRIVATE else (math.inf,):
                noise = least_noise(epsilon, DELTA, rate(arm, setup), setup.rounds) if arm in PRIVATE else 0.0
                for learning_rate, run in itertools.product(RATES, range(runs)):
                    name = f"{source.name}/{arm}/{epsilon:g}/{learning_rate:g}/{run}"
                    found[name] = TrainingTask(source, arm, noise, 1000 * seed + run, learning_rate, setup, device)
    return found


def rate(arm: str, setup: Setup) -> float:
    """The probability that a round depends on whether a unit is present."""
    import numpy as np

    from dpassay.training.aggregation import UserEntity

    none = np.zeros(0, dtype=np.int64)
    drawn = UserEntity((), none, none, setup.rate, setup.entity_rate, setup.clip, setup.cell_clip, 1)
    return drawn.rate if arm == "user-entity" else setup.rate


@lru_cache(maxsize=64)
def true_epsilon(arm: str, noise_multiplier: float, setup: Setup) -> Interval:
    """An interval that contains the true ε of a way of training, for its own neighbors."""
    return Account(rate(arm, setup), 1.0, noise_multiplier, setup.rounds, DELTA).epsilon()


def header(sources: Sequence[TextSource], runs: int, seed: int, setup: Setup) -> dict[str, Any]:
    """What must be the same for finished models to be reused."""
    from dpassay.training.comparison import read, words_of

    prints = {s.name: hashlib.sha256(repr((read(s), words_of(s))).encode()).hexdigest()[:16] for s in sources}
    made = {"figure": NAME, "runs": runs, "seed": seed, "learning_rates": list(RATES)}
    return {**made, "setup": asdict(setup), "corpora": prints}


def _trained(
    wanted: dict[str, TrainingTask], made: dict[str, Any], options: ReproductionOptions
) -> dict[str, list[Any]]:
    """Perplexities of all models; those in the partial file are not trained again."""
    from dpassay.training.comparison import run

    partial = Partial(options.partial, made, _are_perplexities)
    left = {name: task for name, task in wanted.items() if name not in partial.found}
    options.progress(1 - len(left) / len(wanted))
    with _workers(options, len(left)) as executor:
        for name, found in zip(left, executor.map(run, left.values()), strict=True):
            partial.keep(name, [found.perplexity, found.as_read, found.to_choose])
            options.progress(1 - (len(wanted) - len(partial.found)) / len(wanted))
    return partial.found


def _workers(options: ReproductionOptions, models: int) -> AbstractContextManager[Executor]:
    """The given executor, or otherwise one process per core, if there is work for several."""
    if options.executor is not None:
        return nullcontext(options.executor)
    several = options.device == "cpu" and models > 1 and cores() > 1
    return closing(make_executor(workers=cores() if several else None))


def _are_perplexities(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 3 and all(isinstance(p, float) and p >= 1 for p in found)


def _row(name: str, task: TrainingTask, perplexity: float, as_read: float, to_choose: float) -> dict[str, Any]:
    corpus, arm, epsilon, _, run = name.rsplit("/", 4)
    private = task.noise_multiplier > 0
    true = true_epsilon(arm, task.noise_multiplier, task.setup) if private else None
    return {
        "corpus": corpus,
        "training": arm,
        "epsilon": float(epsilon),
        "true_lower": true.lower if true else math.inf,
        "true_upper": true.upper if true else math.inf,
        "rate": rate(arm, task.setup) if private else math.nan,
        "noise_multiplier": task.noise_multiplier,
        "learning_rate": task.learning_rate,
        "run": int(run),
        "perplexity": perplexity,
        "perplexity_as_read": as_read,
        "perplexity_to_choose": to_choose,
    }


def _chosen(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with a flag for the learning rate chosen for its point: the best on other users' text."""

    def point(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["corpus"], row["training"], row["epsilon"]

    tried: dict[tuple[Any, ...], dict[float, list[float]]] = {}
    for row in rows:
        losses = tried.setdefault(point(row), {}).setdefault(row["learning_rate"], [])
        losses.append(math.log(row["perplexity_to_choose"]))
    best = {at: min(rates, key=lambda rate: statistics.fmean(rates[rate])) for at, rates in tried.items()}
    return [{**row, "chosen": row["learning_rate"] == best[point(row)]} for row in rows]


def _references(source: TextSource) -> dict[str, float]:
    """The perplexity of a model that gives all words equal probability, or each its frequency in the training text.

    And the proportion of held-out words outside the vocabulary: all of these are one word.
    """
    from dpassay.text.models.words import PAD, UNKNOWN, ModelVocabulary
    from dpassay.training.comparison import LONGEST, held_out, trained_on, unigram_perplexity, words_of

    words = ModelVocabulary(words_of(source))
    trained, said = (words.numbers([u.text for u in some], LONGEST) for some in (trained_on(source), held_out(source)))
    unknown = float((said == UNKNOWN).sum() / (said != PAD).sum())
    unigram = unigram_perplexity(trained, said, len(words))
    return {"uniform": float(len(words)), "unigram": unigram, "unknown": unknown}


def _caption(sources: Sequence[TextSource], runs: int, setup: Setup) -> str:
    return (
        f"Perplexity on held-out text over the true ε at δ = {DELTA:g}, on {' and '.join(s.name for s in sources)}. "
        "User-level and user-entity DP have the same true ε, certified by the accountant, each for its own neighbors. "
        f"Marks are means of {runs} models at the best of {len(RATES)} learning rates, bars one standard deviation "
        "over their seeds. De-identified: trained "
        "without noise on text whose entities are masked; at test time the words before each word are masked too, and "
        "the mask's probability is spread evenly over the words that it stood for. Dotted: no model, each word by its "
        f"frequency. The model is a small LSTM ({setup.size} numbers, {setup.rounds} rounds). Gray: the budgets that "
        "the paper claims; at the gray line, the true ε of UeDP as published where 2.2 is claimed."
    )


def _means(
    rows: Sequence[dict[str, Any]], corpus: str, arm: str, key: str = "perplexity"
) -> dict[float, tuple[float, float]]:
    """For each ε the mean of the runs at the chosen learning rate, and their standard deviation."""
    found: dict[float, list[float]] = {}
    for row in rows:
        if row["corpus"] == corpus and row["training"] == arm and row["chosen"]:
            found.setdefault(row["epsilon"], []).append(row[key])
    return {e: (statistics.fmean(some), statistics.stdev(some) if len(some) > 1 else 0.0) for e, some in found.items()}


def _findings(rows: Sequence[dict[str, Any]], references: dict[str, dict[str, float]]) -> list[str]:
    found = []
    for corpus, reference in references.items():
        user, both = (_means(rows, corpus, arm) for arm in ("user", "user-entity"))
        (plain, _), (hidden, _) = (_means(rows, corpus, arm)[math.inf] for arm in ("none", "de-identified"))
        (as_read, _) = _means(rows, corpus, "de-identified", "perplexity_as_read")[math.inf]
        better = sum(both[epsilon][0] < user[epsilon][0] for epsilon in user)
        low, high = min(user), max(user)
        found += [
            f"{corpus}: {plain:.1f} without privacy, {hidden:.1f} de-identified ({as_read:.0f} if it reads names "
            f"unmasked and its mask counts for nothing); {reference['unigram']:.0f} by the frequency of each word "
            f"alone and {reference['uniform']:.0f} if all words are equally likely. {reference['unknown']:.1%} of the "
            "words are not in the vocabulary and count as one word.",
            f"{corpus}: at the true ε {low:g} user-level DP reaches {user[low][0]:.0f} and user-entity DP "
            f"{both[low][0]:.0f}; at {high:g}, {user[high][0]:.0f} and {both[high][0]:.0f}. User-entity DP is better "
            f"at {better} of {len(user)} ε.",
        ]
        over = [f"{epsilon:g}" for epsilon, (mean, _) in both.items() if mean > reference["uniform"]]
        if over:
            found.append(
                f"{corpus}: at ε {', '.join(over)} user-entity DP is worse than all words equally likely, at each "
                "learning rate that was tried."
            )
    spread = max(1 - row["true_lower"] / row["epsilon"] for row in rows if math.isfinite(row["epsilon"]))
    published = quick_check(REGISTRY["uedp"])[1].upper
    return [
        *found,
        f"The true ε of each private model is certified: at most what the figure says, and at most {spread:.2%} less.",
        f"UeDP as published has a true ε of {published:.0f} where 2.2 is claimed; this figure has the variant that "
        "holds, uedp-cells, whose noise hides an entity in everyone's sentences.",
        f"Each point has the one of the learning rates {', '.join(f'{rate:g}' for rate in RATES)} that is best on the "
        "text of half of the held-out users; the perplexity is that of the other half. ε covers neither this choice "
        "nor that of the clip of a user's sentences with one entity, which was made after a few trials on the shipped "
        "corpus.",
    ]


def _draw(figure: Any, rows: list[dict[str, Any]], references: dict[str, dict[str, float]]) -> None:
    axes = figure.subplots(1, len(references), squeeze=False)[0]
    published = quick_check(REGISTRY["uedp"])[1].upper
    for axis, (corpus, reference) in zip(axes, references.items(), strict=True):
        axis.axvspan(*CLAIMED, color="0.9", zorder=0, label="ε claimed for UeDP as published")
        axis.axvline(published, color="0.7", linewidth=3, zorder=0, label=f"its true ε, {published:.0f}")
        for arm, colour, mark in (("user", COLOURS[0], "o"), ("user-entity", COLOURS[1], "s")):
            means = _means(rows, corpus, arm)
            y, bars = zip(*means.values(), strict=True)
            axis.errorbar(list(means), y, yerr=bars, color=colour, marker=mark, capsize=2, label=NAMES.get(arm, arm))
        for arm, colour, dash in (("de-identified", COLOURS[2], "--"), ("none", COLOURS[6], "-.")):
            (mean, bar) = _means(rows, corpus, arm)[math.inf]
            axis.axhline(mean, color=colour, linestyle=dash, label=NAMES.get(arm, arm))
            axis.axhspan(mean - bar, mean + bar, color=colour, alpha=0.15, linewidth=0)
        axis.axhline(reference["unigram"], color="0.4", linestyle=":", label="word frequencies")
        axis.set_title(corpus, fontsize=9)
        label(axis, f"true ε at δ = {DELTA:g}", log="xy")
    label(axes[0], y="perplexity on held-out text")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
