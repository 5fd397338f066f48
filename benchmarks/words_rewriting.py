"""Words rewritten per second on this machine, including the time to make the tables of all words that occur.

`PYTHONPATH=src python benchmarks/words_rewriting.py` rewrites 200,000 words, with natural frequencies (Zipf), over
5,000 words of 50 dimensions; `--words 20000` over a larger vocabulary.
"""

import argparse
import time

import numpy as np

from dpassay.text.rewriters.words.word_level import custext, madlib, santext, santext_plus, tem
from dpassay.words.vocabulary import Vocabulary
from rows import Row

DIM, EPSILON, LENGTH, TOTAL, BAR = 50, 10.0, 10, 200_000, 20_000
MAKERS = {"santext": santext, "santext-plus": santext_plus, "tem": tem, "custext": custext, "madlib": madlib}


def texts_of(vocabulary: Vocabulary) -> list[str]:
    """Texts whose n-th word is drawn with a probability proportional to 1/n."""
    weights = 1 / np.arange(1.0, len(vocabulary) + 1)
    drawn = np.random.default_rng(0).choice(vocabulary.words, size=TOTAL, p=weights / weights.sum()).tolist()
    return [" ".join(drawn[start : start + LENGTH]) for start in range(0, TOTAL, LENGTH)]


def measured(words: int) -> dict[str, float]:
    """Words per second for each rewriter, from texts to texts."""
    vectors = np.random.default_rng(words).standard_normal((words, DIM))
    vocabulary = Vocabulary(tuple(f"word{i}" for i in range(words)), vectors)
    texts, found = texts_of(vocabulary), {}
    for name, make in MAKERS.items():
        make(EPSILON, vocabulary=vocabulary).rewrite(texts[:1], np.random.default_rng(0))  # compiles kernels
        rewriter = make(EPSILON * 1.001, vocabulary=vocabulary)
        begun = time.perf_counter()
        rewriter.rewrite(texts, np.random.default_rng(0))
        found[name] = TOTAL / (time.perf_counter() - begun)
    return found


def rows() -> list[Row]:
    """The benchmark table's rows on 5,000 words."""
    return [
        Row(f"rewriting with {name}, 5,000 words known", f"≥ {BAR:,} words/s", f"{rate:,.0f} words/s", rate >= BAR)
        for name, rate in measured(5_000).items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=5_000)
    for name, rate in measured(parser.parse_args().words).items():
        print(f"{name}: {rate:,.0f} words per second")


if __name__ == "__main__":
    main()
