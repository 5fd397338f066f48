"""DP-Prompt with its defaults at several true ε: the rows of it in docs/systems/rewriters.md.

`python benchmarks/prompted.py DATA OUT [--corpus atis] [--device cuda] [--batch 512]` rewrites all training and test
texts of each corpus at each ε, and lets the exact attack guess among candidates: DATA has folders with train.csv and
test.csv, `label,text` per line, and OUT gets one file for each corpus. This needs numpy, scipy, torch, transformers and
gguf, and SmolLM2. `--judge` then measures what `dpassay utility` measures, and prints rows of the table.
"""

import argparse
import csv
import gzip
import json
import time
from pathlib import Path

import numpy as np

from dpassay.text import attacks
from dpassay.text.rewriters.tokens import prompt

EPSILONS = (10.0, 100.0, 250.0, 500.0, 1000.0)
CANDIDATES, GUESSES = 50, 200


def read(path: Path) -> tuple[list[str], list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return [row[0] for row in rows], [row[1] for row in rows]


def rewritten(given: argparse.Namespace, corpus: str, epsilon: float) -> dict:
    """Texts as rewritten at one ε, and how many of the attacker's guesses are right."""
    (_, train), (_, test) = (read(given.data / corpus / f"{part}.csv") for part in ("train", "test"))
    train, test = train[: given.limit], test[: given.limit]
    rewriter = prompt.make(epsilon, "smollm2", batch=str(given.batch), device=given.device)
    words, guesses = np.random.default_rng([given.seed, int(epsilon)]).spawn(2)
    began = time.perf_counter()
    written = [str(text) for text in rewriter.rewrite([*train, *test], words)]
    wrote = time.perf_counter()
    attack = attacks.ExactPosterior(rewriter, tuple(attacks.of_equal_length(test, CANDIDATES)))
    return {
        "epsilon": epsilon,
        "true_epsilon": rewriter.guarantee.epsilon,
        "tokens": rewriter.tokens,
        "train": written[: len(train)],
        "test": written[len(train) :],
        "right": attacks.right_guesses(attack, rewriter, given.guesses, guesses),
        "runs": given.guesses,
        "candidates": len(attack.candidates),
        "bound": attacks.highest_success(rewriter.guarantee, attack.candidates),
        "seconds": [wrote - began, time.perf_counter() - wrote],
    }


def judge(given: argparse.Namespace, corpus: str, found: list[dict]) -> None:
    """Measure as `dpassay utility` does, and print a row of the table for each ε."""
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.measurements import GuessedTexts, Measurement, Stated, rows_of
    from dpassay.text.utility import Bench, UtilityOptions, _compared

    texts = (list(read_corpus(str(given.data / corpus / f"{part}.csv")))[: given.limit] for part in ("train", "test"))
    bench = Bench.of(*texts, UtilityOptions(perplexity=True))
    for one in (one for one in found if one["epsilon"] in (given.epsilon or EPSILONS)):
        compared = _compared(bench, [*one["train"], *one["test"]], given.seed)
        stated = Stated(epsilon=one["epsilon"], true_epsilon=one["true_epsilon"], delta=0.0, neighbours="any")
        guesses = GuessedTexts(**{name: one[name] for name in ("right", "runs", "candidates", "bound")}, how="exact")
        name = f"dp-prompt {one['epsilon']:g}"
        about = {"rewriter": name, "identity": name, "seed": given.seed, "utterances": len(bench.test)}
        (row,) = rows_of([Measurement(**about, **compared, guarantee=stated, guesses=guesses)])
        print(in_table(one, row.estimates), f"<!-- {one['tokens']} tokens -->", flush=True)


def in_table(one: dict, measured: dict) -> str:
    """A row in Markdown; ± is the longer side of an interval."""

    def share(name: str) -> str:
        found = measured[name]
        return f"{100 * found.mean:.0f} ± {100 * max(found.high - found.mean, found.mean - found.low):.0f}"

    def mean(name: str, form: str, factor: int = 1) -> str:
        return format(factor * measured[name].mean, form)

    perplexity = measured["perplexity"].mean
    cells = [
        "dp-prompt",
        f"{one['epsilon']:,g}",
        f"{one['epsilon']:,g}",
        share("accuracy_original"),
        share("encoder_original"),
        mean("bleu", ".1f"),
        mean("chrf", ".1f"),
        mean("similarity", ".2f"),
        f"{perplexity:,.0f}" if perplexity < 1e5 else f"{perplexity:.1e}".replace("e+0", "e"),
        mean("unchanged", ".0f", 100),
        mean("words_kept", ".0f", 100),
        mean("length", ".2f"),
        share("attack") + " *",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--epsilon", type=float, action="append")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--guesses", type=int, default=GUESSES)
    parser.add_argument("--limit", type=int, help="texts of each part, to try the script")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge", action="store_true")
    given = parser.parse_args()
    for corpus in given.corpus or sorted(p.name for p in given.data.iterdir() if (p / "train.csv").exists()):
        path = given.out / f"prompted-{corpus}.json.gz"
        if given.judge:
            with gzip.open(path, "rt") as file:
                judge(given, corpus, json.load(file))
            continue
        found: list[dict] = []
        for epsilon in given.epsilon or EPSILONS:
            found.append(rewritten(given, corpus, epsilon))
            seconds = " and ".join(f"{seconds:.0f} s" for seconds in found[-1]["seconds"])
            print(f"{corpus}, {epsilon:g}: {seconds}, {found[-1]['right']} of {given.guesses} right", flush=True)
            with gzip.open(path, "wt") as file:
                json.dump(found, file)


if __name__ == "__main__":
    main()
