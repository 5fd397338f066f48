"""What canaries of one run show about Gaussian noise, compared with jax-privacy: medians of 20 seeds at 95%.

`python benchmarks/canaries.py [--seeds 20] [--no-peers]`. Each canary's score is N(0, 1), moved by μ if it was in,
where μ-GDP is exactly (ε, 1e-5)-DP. Both see the same scores. "Gaussian" bounds μ and converts it to ε; "any" assumes
only (ε, δ)-DP. jax-privacy's three are its one-run bound (any), its f-DP bound (Gaussian), and Clopper-Pearson, which
treats the canaries as independent; each with its default thresholds, and with half of the canaries used to choose one.
The peers need the extra `bench`; without it the script prints how to install it, and continues.
"""

import argparse
import math
import time
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpassay.training.canaries.audit import audit_training
from dpassay.training.canaries.scores import CanaryScores

DELTA, ALPHA = 1e-5, 0.05
INSTALL = "jax-privacy is not installed, so there are no peers: pip install -c constraints.txt -e '.[bench]'"
METHODS = {"one-run": "epsilon_one_run", "f-DP": "epsilon_one_run_fdp", "Clopper-Pearson": "epsilon_clopper_pearson"}


def epsilon_of(mu: float) -> float:
    """ε of μ-GDP at δ."""

    def excess(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - DELTA)

    return float(brentq(excess, 0, 100)) if mu > 0 and excess(0) > 0 else 0.0


def canaries(mu: float, m: int, seed: int) -> CanaryScores:
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return CanaryScores(rng.normal(size=m) + mu * included, included)


def peers(scores: CanaryScores, auditing: Any) -> dict[str, float]:
    auditor = auditing.CanaryScoreAuditor(scores.score[scores.included], scores.score[~scores.included])
    found = {}
    for strategy in (auditing.Bonferroni(), auditing.Split(seed=0)):
        for name, method in METHODS.items():
            label = f"{name}, {type(strategy).__name__}"
            found[label] = getattr(auditor, method)(ALPHA, DELTA, threshold_strategy=strategy)
    return found


def main() -> None:
    """Print the table, a row for each ε and number of canaries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--no-peers", action="store_true")
    asked = parser.parse_args()
    auditing = None
    if not asked.no_peers:
        try:
            from jax_privacy import auditing
        except ImportError:
            print(INSTALL)
    print(f"{'true ε':>6} {'canaries':>8} {'Gaussian':>9} {'any':>6} {'seconds':>8}  peers")
    for epsilon in (1.0, 4.0, 8.0):
        mu = brentq(lambda value, epsilon=epsilon: epsilon_of(value) - epsilon, 1e-3, 10)
        for m in (1_000, 100_000):
            gaussian, anything, others, spent = [], [], [], 0.0
            for seed in range(asked.seeds):
                scores = canaries(mu, m, seed)
                begun = time.perf_counter()
                gaussian.append(epsilon_of(audit_training(scores, mu=0, alpha=ALPHA).mu.lower))
                spent += time.perf_counter() - begun
                anything.append(audit_training(scores, epsilon=0, delta=DELTA, alpha=ALPHA).epsilon.lower)
                if auditing is not None:
                    others.append(peers(scores, auditing))
            medians = {name: float(np.median([other[name] for other in others])) for name in (others or [{}])[0]}
            told = ", ".join(f"{name} {value:.2f}" for name, value in medians.items())
            figures = f"{np.median(gaussian):>9.2f} {np.median(anything):>6.2f} {spent / asked.seeds:>8.2f}"
            print(f"{epsilon:>6g} {m:>8,} {figures}  {told}", flush=True)


if __name__ == "__main__":
    main()
