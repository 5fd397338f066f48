"""DPNR's accuracy at ε = 0.05: with the noise of its paper, with that of its released code, and with enough noise.

The paper reports that accuracy hardly suffers. Its released code draws one noise number per text and adds it to every
element, which a classifier can undo; noise drawn for each element, as the paper has it, leaves nothing at that ε.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.runner import audit
from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.errors import InputError
from dpassay.pipeline.pipeline import run
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.reproduce.result import COLOURS, FigureResult, Partial, ReproductionOptions, label

if TYPE_CHECKING:
    from dpassay.text.corpora.utterance import Utterance
    from dpassay.text.models.encoders import Encoder

NAME = "dpnr-accuracy"
CORPUS = "flights:1000"
EPSILON, MU = 0.05, 0.5
SEEDS, MOST = 5, 1500  # repetitions, and utterances of a corpus
HELD_OUT, CHOOSING = 0.2, 0.25  # of the utterances to measure on, and of the others to choose a classifier by
STEPS = 1000  # of fitting: noise that all elements share takes long to be ignored
AUDIT_RUNS = 2000
WAYS = {
    "clean": "no noise, no dropout",
    "dropped": "no noise",
    "shared": "one number per text, as in the released code",
    "written": "one number per element, as in the paper",
    "right": "one number per element, scale k/ε",
    "commonest": "always the most common label",
}

Floats = NDArray[np.float64]


def dpnr_accuracy(options: ReproductionOptions, encoder: Encoder | None = None) -> FigureResult:
    """The accuracy of a classifier for each kind of noise, with standard errors over seeds, and the verdicts."""
    if find_spec("torch") is None:
        raise InputError(f"{NAME} fits classifiers and needs torch: pip install 'dpassay[text]'")
    from dpassay.text.models.encoders import sentence_encoder

    corpora = {name: _labelled(name) for name in (source.corpus for source in options.corpora)} or {
        CORPUS: _labelled(CORPUS)
    }
    encoder = encoder or sentence_encoder()
    seeds = options.runs or SEEDS
    made = {"figure": NAME, "runs": seeds, "seed": options.seed, "encoder": encoder.name, "epsilon": EPSILON, "mu": MU}
    prints = {name: hashlib.sha256(repr(found).encode()).hexdigest()[:16] for name, found in corpora.items()}
    partial = Partial(options.partial, {**made, "corpora": prints}, _are_shares)
    wanted = [(name, seed) for name in corpora for seed in range(seeds)]
    for done, (name, seed) in enumerate(wanted):
        options.progress(done / len(wanted))
        if f"{name}/{seed}" not in partial.found:
            found = accuracies(corpora[name], encoder, 1000 * options.seed + seed)
            partial.keep(f"{name}/{seed}", [found[way] for way in WAYS])
    options.progress(1.0)
    rows = [
        _row(_short(name), way, [partial.found[f"{name}/{seed}"][place] for seed in range(seeds)], encoder.dim)
        for name in corpora
        for place, way in enumerate(WAYS)
    ]
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw(figure, rows),
        caption=f"Accuracy of a linear classifier on noisy vectors of {encoder.name}, k = {encoder.dim}, "
        f"ε = {EPSILON}, μ = {MU}, on at most {MOST:,} utterances of which a fifth is held out; bars: one standard "
        f"error, over {seeds} seeds, each with its own split, dropped words and noise.",
        published="Lyu, He and Li, Findings of EMNLP 2020, Table 2: at ε = 0.05 almost the same accuracy as without "
        "noise, on other corpora and with an encoder that is trained too. Lai et al. 2022 ask how that can be.",
        found=findings(rows, encoder),
        size=(3.4 * len(corpora) + 2.6, 3.6),
    )


def _labelled(name: str) -> list[Utterance]:
    from dpassay.text.corpora.corpus import read_corpus

    found = list(read_corpus(name))[:MOST]
    if len(found) < 20 or not all(utterance.label for utterance in found):
        raise InputError(f"{NAME} needs 20 utterances or more, each with a label; {name} has {len(found)}")
    return found


def _short(corpus: str) -> str:
    return corpus.replace("\\", "/").rpartition("/")[2].partition(".")[0]


def _are_shares(found: Any) -> bool:
    return isinstance(found, list) and len(found) == len(WAYS) and all(0 <= share <= 1 for share in found)


def accuracies(utterances: Sequence[Utterance], encoder: Encoder, seed: int) -> dict[str, float]:
    """The accuracy on held-out utterances for each way, with one split, one dropout and one draw of the noise."""
    from dpassay.text.rewriters.vectors.dpnr import Dpnr
    from dpassay.text.rewriters.vectors.shared_noise import SharedNoise

    rng = np.random.default_rng(seed)
    system = Dpnr(encoder, EPSILON, MU)
    texts, labels = [u.text for u in utterances], [u.label for u in utterances]
    order = rng.permutation(len(texts))
    cut = len(texts) - int(HELD_OUT * len(texts))
    *before, noise = system.pipeline.stages
    dropped = run(before, texts, rng)
    ways = {
        "clean": run([stage for stage in before if not isinstance(stage, Dropout)], texts, rng),
        "dropped": dropped,
        "shared": SharedNoise(system).noisy(dropped, rng),
        "written": noise.run(dropped, rng),
        "right": system.scaled().pipeline.stages[-1].run(dropped, rng),
    }
    seen, asked = [labels[i] for i in order[:cut]], [labels[i] for i in order[cut:]]
    spread = float(np.sqrt(np.mean((dropped - dropped.mean(axis=0)) ** 2)))
    found = {
        way: _best(rows[order[:cut]], seen, spread, seed).accuracy(rows[order[cut:]], asked)
        for way, rows in ways.items()
    }
    commonest = Counter(seen).most_common(1)[0][0]
    return {**found, "commonest": asked.count(commonest) / len(asked)}


def _best(rows: Floats, labels: Sequence[str], spread: float, seed: int) -> Any:
    """The better of two classifiers, by utterances that neither is fitted to.

    One takes the noise for what matters and is hardly misled by it; the other knows how far apart vectors are without
    noise, and makes the most of noise that does not matter.
    """
    from dpassay.text.models.classifier import fit

    cut = len(rows) - int(CHOOSING * len(rows))
    found = [fit(rows[:cut], labels[:cut], seed, unit, STEPS) for unit in (None, spread)]
    return max(found, key=lambda one: one.accuracy(rows[cut:], labels[cut:]))


def _row(corpus: str, way: str, shares: Sequence[float], dim: int) -> dict[str, Any]:
    error = statistics.stdev(shares) / math.sqrt(len(shares)) if len(shares) > 1 else math.nan
    row = {"corpus": corpus, "way": way, "noise": WAYS[way], "true_epsilon": true_epsilon(way, dim)}
    row |= {"accuracy": statistics.fmean(shares), "standard_error": error, "seeds": len(shares)}
    return row | {"accuracies": " ".join(f"{share:.4f}" for share in shares)}


def true_epsilon(way: str, dim: int) -> float:
    """The ε that holds for one word, with dropout; infinite where the vector, or the noise, can be recovered.

    >>> round(true_epsilon("written", 768), 4), true_epsilon("shared", 768)
    (37.7069, inf)
    """
    if way == "commonest":
        return 0.0
    if way == "written":
        return quick_check(REGISTRY["dpnr-dropout"](dim=dim, e=repr(EPSILON), mu=repr(MU)))[1].upper
    return math.log((1 - MU) * math.exp(EPSILON) + MU) if way == "right" else math.inf


def findings(rows: Sequence[dict[str, Any]], encoder: Encoder) -> list[str]:
    """The verdicts on both kinds of noise, and what remains of each corpus."""
    from dpassay.text.rewriters.vectors.dpnr import Dpnr
    from dpassay.text.rewriters.vectors.shared_noise import SharedNoise, attack
    from dpassay.text.systems import SENTENCES

    system, claimed = Dpnr(encoder, EPSILON, MU), true_epsilon("right", encoder.dim)
    verdict = audit(
        SharedNoise(system), [SENTENCES], epsilon=claimed, runs=AUDIT_RUNS, guesser=attack(system, *SENTENCES)
    )
    found = [
        f"As written, one number per element: refuted, the true ε for one word is "
        f"{true_epsilon('written', encoder.dim):.6g} where {claimed:.4g} is claimed.",
        "As in the released code, one number per text: refuted, no finite ε holds, because the smallest number "
        f"is the noise; {verdict.runs:,} runs on two sentences show at least {verdict.epsilon.lower:.3g}.",
    ]
    at = {(row["corpus"], row["way"]): row for row in rows}
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        shown = {way: _with_error(at[corpus, way]) for way in WAYS}
        found.append(
            f"{corpus}: {shown['shared']} with the noise of the code, {shown['dropped']} without noise, "
            f"{shown['written']} with the noise of the paper, {shown['right']} with enough noise, {shown['commonest']} "
            "by always guessing the most common label."
        )
    return found


def _with_error(row: dict[str, Any]) -> str:
    error = row["standard_error"]
    return f"{row['accuracy']:.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}")


def _draw(figure: Any, rows: Sequence[dict[str, Any]]) -> None:
    corpora = list(dict.fromkeys(row["corpus"] for row in rows))
    axes = figure.subplots(1, len(corpora), sharey=True, squeeze=False)[0]
    for axis, corpus in zip(axes, corpora, strict=True):
        chosen = [row for row in rows if row["corpus"] == corpus][::-1]
        places = range(len(chosen))
        axis.barh(places, [row["accuracy"] for row in chosen], color=COLOURS[4], height=0.6)
        errors = [0.0 if math.isnan(row["standard_error"]) else row["standard_error"] for row in chosen]
        axis.errorbar([row["accuracy"] for row in chosen], places, xerr=errors, fmt="none", ecolor="black", capsize=2)
        axis.set_yticks(places, [row["noise"] for row in chosen])
        axis.set_xlim(0, 1)
        axis.set_title(corpus, fontsize=9)
        label(axis, "accuracy")
