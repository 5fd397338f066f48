"""DPText on the shipped corpus: the ε that it learns, how well task and dialect are recovered, and what ε holds.

`python benchmarks/dptext.py [--utterances 2000] [--steps 600]` prints the table of docs/systems/dptext.md, in less
than five minutes on two cores. Needs the `text` extra.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import torch
from scipy.spatial.distance import cdist

import dpassay
from dpassay.text.corpora.flights import flights
from dpassay.text.rewriters.vectors.dptext import Dptext, Reading, train

CLAIMS = {"zero": "dptext-zero", "resampled": "dptext-resampled", "nan": "dptext-nan", "right": "dptext-corrected"}
OFFERED = 200  # utterances; the audit distinguishes the two of them whose vectors are farthest apart
ROWS: list[tuple[Reading, float | None, float]] = [  # reading, ε if it is fixed, weight of the adversary
    ("zero", None, 1.0),
    ("zero", None, 0.0),
    ("resampled", None, 1.0),
    ("nan", None, 1.0),
    ("right", None, 1.0),
    ("right", 1.0, 1.0),
]
HEAD = ("reading", "adversary", "ε", "task", "attacker", "attacker, no noise", "words", "exact guarantee", "audit")


def farthest(system: Dptext) -> tuple[str, str]:
    texts = [u.text for u in flights(OFFERED)]
    vectors = system.encoder.encode(texts)
    first, second = divmod(int(cdist(vectors, vectors, "cityblock").argmax()), OFFERED)
    return texts[first], texts[second]


def row(given: tuple[Reading, float | None, float], utterances: int, steps: int) -> tuple[list[str], dict[str, float]]:
    reading, epsilon, adversary = given
    torch.set_num_threads(1)
    start = time.process_time()
    system, report = train(flights(utterances), reading, epsilon=epsilon, steps=steps, adversary=adversary)
    seconds = time.process_time() - start
    exact = dpassay.check(dpassay.claims[CLAIMS[reading]](epsilon=repr(system.epsilon), dim=system.dim))
    asked = {"epsilon": system.epsilon, "runs": 100_000, "shrink": False, "until_refuted": True}
    tried = dpassay.audit(system, [farthest(system)], **asked)
    shown = [
        reading,
        "yes" if adversary else "no",
        f"{system.epsilon:.2f}" + (", learnt" if system.learnt else ", fixed"),
        *(f"{report[name]:.3f}" for name in ("task", "attacker", "clean_attacker", "tokens")),
        "none: ε = ∞" if exact.word == "refuted" else "none: ε was learnt" if system.learnt else f"{system.epsilon:g}",
        f"{tried.word}, {tried.runs:,} runs",
    ]
    return shown, {"seconds": seconds, **{name: report[f"commonest_{name}"] for name in ("task", "attacker")}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--utterances", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    work = partial(row, utterances=options.utterances, steps=options.steps)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for shown, rest in pool.map(work, ROWS):
            print("| " + " | ".join(shown) + " |", flush=True)
            commonest = f"the commonest label {rest['task']:.3f}, the commonest dialect {rest['attacker']:.3f}"
            seconds = rest["seconds"]
    print(f"\nAlways named: {commonest}. The last system took {seconds:.0f} s of one core.")


if __name__ == "__main__":
    main()
