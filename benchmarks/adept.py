"""ADePT in practice: what is reproduced without noise, how fast lines are rewritten, and what the attack finds.

`python benchmarks/adept.py MODEL TEST_CORPUS [--candidates CORPUS] [--runs N]`. Bars: 85 % of the tokens of unseen ATIS
utterances, 600 released lines per second and 2,000 without noise on two cores (on a busy machine, look at the lines per
second of CPU time: two idle cores have twice as many); `--runs 0` leaves the attack out; at claimed ε = 1 with 100
candidates ADePT as published is refuted from text alone and correct mechanisms are not. Needs the extras `text` and
`release`.
"""

import argparse
import time

import numpy as np

from dpassay import audit
from dpassay.text.corpora.corpus import read_corpus
from dpassay.text.models.training import token_accuracy
from dpassay.text.reconstruction import far_apart, learn
from dpassay.text.rewriters.vectors.adept import load
from dpassay.text.rewriters.vectors.latent import LatentRewriter, Unprotected
from dpassay.text.rewriters.vectors.release import MECHANISMS, Release

DELTA = 1e-6


def made(model, mechanism: str, epsilon: float) -> LatentRewriter:
    delta = DELTA if mechanism == "gaussian" else 0.0
    return LatentRewriter(model, Release(mechanism, epsilon, delta, dim=model.about.latent, clip=model.about.clip))


def speed(model, texts: list[str]) -> None:
    print(f"{'':30s} {'lines/s':>8s} {'bar':>6s} {'lines/s of CPU':>15s}")
    ways = {"without noise": (lambda: Unprotected(model).release(texts), 2000)}
    for mechanism in MECHANISMS:
        private = made(model, mechanism, 10.0)
        private.release(texts[:1])
        ways[f"{mechanism}, released"] = (lambda p=private: p.release(texts), 600)
    for name, (work, bar) in ways.items():
        start, used = time.perf_counter(), time.process_time()
        work()
        wall, used = time.perf_counter() - start, time.process_time() - used
        print(f"{name:30s} {len(texts) / wall:8,.0f} {bar:6,d} {len(texts) / used:15,.0f}", flush=True)


def attack(model, texts: list[str], mechanism: str, epsilon: float, runs: int, seed: int) -> None:
    start = time.perf_counter()
    private = made(model, mechanism, epsilon)
    candidates = far_apart(private, texts, 100)
    guesser = learn(private, candidates, seed=seed)
    delta = private.noise.delta or None
    verdict = audit(private, candidates=candidates, epsilon=epsilon, delta=delta, runs=runs, guesser=guesser, seed=seed)
    played = verdict.witness
    counts = "" if played is None else f", {played.right:,} of {played.right + played.wrong:,} guesses right"
    print(f"{mechanism:20s} {verdict.word:8s} lower bound {verdict.epsilon.lower:.4f}, {verdict.runs:,} runs{counts}, "
          f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("corpus", help="utterances that the model has not seen")
    parser.add_argument("--candidates", help="a corpus to choose the candidates from; by default the same")
    parser.add_argument("--mechanism", action="append", choices=MECHANISMS)
    parser.add_argument("--runs", type=int, default=400_000)
    parser.add_argument("--right-runs", type=int, default=50_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model, texts = load(given.model), [u.text for u in read_corpus(given.corpus)]
    numbers = model.vocabulary.numbers(texts, 10**6)
    print(f"{token_accuracy(model.network, numbers):.1%} of the tokens of {len(texts)} unseen utterances come back")
    speed(model, texts)
    if not given.runs:
        return
    print(f"the attack at claimed eps {given.epsilon:g}, alpha 0.001, 100 candidates, text alone; "
          f"limit {np.exp(given.epsilon) / (np.exp(given.epsilon) + 99):.4f}")  # fmt: skip
    pool = texts if given.candidates is None else [u.text for u in read_corpus(given.candidates)]
    for mechanism in given.mechanism or MECHANISMS[::-1]:
        runs = given.runs if mechanism == "adept-as-published" else given.right_runs
        attack(model, pool, mechanism, given.epsilon, runs, given.seed)


if __name__ == "__main__":
    main()
