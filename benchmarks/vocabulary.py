"""The worst pair of words over a vocabulary: all pairs and all outputs, against plain numpy, on a CPU or a GPU.

`PYTHONPATH=src python benchmarks/vocabulary.py` measures 5,000 words on this machine's CPU. With `--device cuda` it
measures 33,860 words of 300 dimensions on a GPU, which needs only numpy, torch and Triton, and compares the results for
fewer words with numpy. `--json FILE` writes the measurements.
"""

import argparse
import json
import time
from typing import Any

import numpy as np

from dpassay.compute.devices import usable
from dpassay.words.mechanisms import TEM, SanText, ScoredWords
from dpassay.words.vocabulary import Vocabulary
from dpassay.words.worst_pair import AIMS, worst_pairs
from rows import Row

EPSILON, DIM, SCALE = 4.0, 300, 0.3  # distances of about 7, as GloVe's vectors of 300 dimensions have
SAMPLED_ROWS = 20  # of plain numpy; the others take equally long


def vocabulary(words: int) -> Vocabulary:
    vectors = SCALE * np.random.default_rng(words).standard_normal((words, DIM))
    return Vocabulary(tuple(f"word{i}" for i in range(words)), vectors)


def plain_seconds(mechanism: ScoredWords, rows: int = SAMPLED_ROWS) -> float:
    """What plain numpy takes for all pairs and outputs, from some of the words: (L[x] − L).max(axis=1) for each x."""
    logs = np.array([mechanism.log_probabilities(x) for x in range(rows)])
    logs = np.tile(logs, (-(-len(mechanism.vocabulary) // rows), 1))[: len(mechanism.vocabulary)]
    begun = time.perf_counter()
    for x in range(rows):
        (logs[x] - logs).max(axis=1)
    return (time.perf_counter() - begun) / rows * len(mechanism.vocabulary)


def timed(mechanism: ScoredWords, device: str, every: bool) -> tuple[float, dict[str, Any]]:
    begun = time.perf_counter()
    found = worst_pairs(mechanism, device=device, every=every)
    return time.perf_counter() - begun, found


def compared(words: int, device: str, other: str) -> float:
    """The largest distance between two devices' intervals; disjoint intervals end the benchmark."""
    gap = 0.0
    for mechanism in (SanText(vocabulary(words), EPSILON), TEM(vocabulary(words), EPSILON, far="ratio")):
        here, there = (worst_pairs(mechanism, device=where, every=True) for where in (device, other))
        for aim in AIMS:
            assert max(here[aim].lower, there[aim].lower) <= min(here[aim].upper, there[aim].upper), (mechanism, aim)
            gap = max(gap, abs(here[aim].lower - there[aim].lower))
    return gap


def measured(device: str, words: int) -> dict[str, Any]:
    mechanism = SanText(vocabulary(words), EPSILON)
    # Compiles the kernels: Triton does so for each remainder by 16, and for whole and cut strips of 1,024 words.
    worst_pairs(SanText(vocabulary(1024 + 304 + words % 16), EPSILON), device=device, every=True)
    seconds, found = timed(mechanism, device, every=True)
    short, again = timed(mechanism, device, every=False)
    general, other = timed(TEM(mechanism.vocabulary, EPSILON, far="ratio"), device, every=False)
    assert all(found[aim].lower <= again[aim].upper and again[aim].lower <= found[aim].upper for aim in AIMS)
    rows: dict[str, Any] = {"device": device, "words": words, "dim": DIM, "seconds, all outputs": seconds}
    rows |= {"seconds, by the triangle inequality": short, "seconds, TEM as mldp-text has it": general}
    rows |= {"ratio": [found["ratio"].lower, found["ratio"].upper], "pair": [found["ratio"].x, found["ratio"].y]}
    rows |= {"TEM, ratio": [other["ratio"].lower, other["ratio"].upper]}
    if words <= 10_000:
        rows |= {"seconds, plain numpy": (plain := plain_seconds(mechanism)), "times plain numpy": plain / seconds}
    return rows


def rows() -> list[Row]:
    """The benchmark table's rows on 5,000 words on this machine."""
    found = measured("cpu", 5_000)
    seconds, times = found["seconds, all outputs"], found["times plain numpy"]
    what = "worst pair of 5,000 words of 300 dimensions, all pairs and outputs"
    said = f"{seconds:.1f} s, {times:.0f} times plain numpy"
    return [Row(what, "30 s, 50 times plain numpy", said, seconds <= 30 and times >= 50)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--words", type=int)
    parser.add_argument("--json")
    given = parser.parse_args()
    device, sentence = usable(given.device)
    if sentence:
        raise SystemExit(sentence)
    rows = measured(device, given.words or (33_860 if device == "cuda" else 5_000))
    rows["largest difference from numpy, 700 words"] = compared(700, device, "numpy")
    for name, value in rows.items():
        print(f"{name}: {value}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
