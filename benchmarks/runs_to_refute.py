"""How many runs a refutation takes, compared with jax-privacy: medians and 90% quantiles at α = 0.001.

`python benchmarks/runs_to_refute.py [--seeds 50] [--first-seed 6000] [--only WORD …] [--no-peers]`. A run is one output
of the mechanism for one input. All are counted: those that train a rule, test it, are compared with each other or
repeated, up to the refutation. "single" subjects do not declare the rows of one batch independent, which is the
default, so that single calls count; "batches" have `independent_rows = True`.

A peer is given what an audit has to learn: the best possible score, the exact log-likelihood ratio. Its figure is the
smallest power of two, of both inputs together, with which it refutes the claim for nine of ten seeds. It needs the
extra `bench`; without it the script prints how to install it, and continues.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpassay

ALPHA = 0.001
MOST = 1_000_000  # runs of an audit
LARGEST = 18  # the largest power of two that peers get
WORDS, TRUE = 50, 2.6
INSTALL = "jax-privacy is not installed, so there are no peers: pip install -c constraints.txt -e '.[bench]'"


class Laplace:
    """Laplace noise of true ε 2 between 0 and 1."""

    def sample(self, x: float, n: int, rng: np.random.Generator) -> Any:
        return x + rng.laplace(scale=0.5, size=n)

    def score(self, outputs: Any) -> Any:
        """The log-likelihood ratio of 1 and 0."""
        return np.round(2 * (np.abs(outputs) - np.abs(outputs - 1)), 6)  # the last bits reveal more than the noise


class RandomWords:
    """Each word is kept with odds e^2.6 against each other word of 50."""

    def sample(self, text: str, n: int, rng: np.random.Generator) -> list[str]:
        words = np.array([int(word) for word in text.split()])
        kept = rng.random((n, len(words))) < math.exp(TRUE) / (math.exp(TRUE) + WORDS - 1)
        others = (words + rng.integers(1, WORDS, size=kept.shape)) % WORDS
        return [" ".join(map(str, row)) for row in np.where(kept, words, others).tolist()]


@dataclass(frozen=True)
class Row:
    name: str
    subject: Any
    pair: tuple[Any, Any]
    claimed: float
    bar: tuple[int, int]  # median and 90% quantile

    def score(self, outputs: Any) -> Any:
        """The log-likelihood ratio of the second input and the first."""
        if isinstance(self.subject, Laplace):
            return self.subject.score(outputs)
        first, second = (x.split() for x in self.pair)
        rows = [text.split() for text in outputs]
        return np.array(
            [TRUE * sum((w == b) - (w == a) for w, a, b in zip(r, first, second, strict=True)) for r in rows]
        )


ONE, THREE = ("1", "4"), ("1 2 3", "4 5 6")
ROWS = (
    Row("Laplace of true 2, claim 1", Laplace(), (0.0, 1.0), 1.0, (450, 600)),
    Row("Laplace of true 2, claim 1.9", Laplace(), (0.0, 1.0), 1.9, (40_000, 100_000)),
    Row("random word of 50, claim 1", RandomWords(), ONE, 1.0, (450, 900)),
    Row("random word of 50, claim 2", RandomWords(), ONE, 2.0, (3_500, 8_000)),
    Row("three such words, claim 1", RandomWords(), THREE, 1.0, (700, 950)),
)


def runs_to_refute(row: Row, seed: int, independent: bool = False) -> float:
    """The runs of one audit until it refutes the claim; infinite if it does not."""

    class Subject:
        independent_rows = independent
        sample = staticmethod(row.subject.sample)

    options = {"epsilon": row.claimed, "alpha": ALPHA, "runs": MOST, "seed": seed, "until_refuted": True}
    verdict = dpassay.audit(Subject(), [row.pair], shrink=False, **options)
    return verdict.runs if verdict.word == "refuted" else math.inf


def peers() -> dict[str, Callable[[Any, Any], float]]:
    """Auditors of jax-privacy: from scores of both inputs to a lower bound on ε."""
    try:
        from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split
    except ImportError:
        print(INSTALL)
        return {}

    def clopper_pearson(strategy: Any) -> Callable[[Any, Any], float]:
        return lambda first, second: CanaryScoreAuditor(second, first).epsilon_clopper_pearson(
            ALPHA, one_sided=False, threshold_strategy=strategy
        )

    def one_run(first: Any, second: Any) -> float:
        auditor = CanaryScoreAuditor(second, first)
        return auditor.epsilon_one_run(ALPHA, 1e-12, threshold_strategy=Split(0.5, seed=0))

    return {
        "Clopper-Pearson, all thresholds": clopper_pearson(Bonferroni()),
        "Clopper-Pearson, split": clopper_pearson(Split(0.5, seed=0)),
        "one run, split": one_run,
    }


def smallest(row: Row, auditor: Callable[[Any, Any], float], seeds: range) -> float:
    """The smallest power of two with which a peer refutes the claim for nine of ten seeds."""
    for power in range(7, LARGEST + 1):
        missed = 0
        for seed in seeds:
            rng = np.random.default_rng([power, seed])
            scores = [np.asarray(row.score(row.subject.sample(x, 2 ** (power - 1), rng))) for x in row.pair]
            missed += not auditor(scores[0], scores[1]) > row.claimed
            if missed > len(seeds) // 10:
                break
        else:
            return 2.0**power
    return math.inf


def shown(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=6000, help="constants were chosen with seeds below 6000")
    parser.add_argument("--only", nargs="*", default=[], help="rows whose name has one of these words")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    known = {} if given.no_peers else peers()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    print(
        f"α = {ALPHA}, seeds {seeds[0]} to {seeds[-1]}: median / 90% quantile of the runs up to the refutation. "
        "Peers are given the exact likelihood ratio. Seconds are CPU seconds for all seeds.\n"
    )
    print("| subject, claim | runs | dpassay | bar | of the bar | best peer | s |\n|" + "---|" * 7)
    for row in ROWS:
        if given.only and not any(word in row.name for word in given.only):
            continue
        found = {name: smallest(row, auditor, seeds) for name, auditor in known.items()}
        best = min(found, key=lambda name: found[name]) if found else ""
        for independent in (False, True):
            start = time.process_time()
            taken = [runs_to_refute(row, seed, independent) for seed in seeds]
            median, most = float(np.median(taken)), float(np.quantile(taken, 0.9, method="inverted_cdf"))
            of_bar = " / ".join(f"{a / b:.2f}" for a, b in zip((median, most), row.bar, strict=True))
            cells = [
                row.name,
                "batches" if independent else "single",
                f"{shown(median)} / {shown(most)}",
                f"{row.bar[0]:,} / {row.bar[1]:,}",
                of_bar,
                f"{shown(found[best])} ({best})" if best else "–",
                f"{time.process_time() - start:.0f}",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
