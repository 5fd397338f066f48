"""What the rules are worth that audits of sparse vectors learn: their expected bounds, exactly, without a test's luck.

`python benchmarks/learnt_rules.py [--runs 1e7] [--seeds 10] [--first-seed 0]`. A pair is searched and a rule is learned
as in an audit with a fixed number of runs. The bound that it is worth on the runs that are left needs no test: the only
outcomes are where the first ⊤ stands, and their probabilities are known (tests/quality/limits.py). A bound from a test
scatters by about 0.008, as much as two ways to learn differ.
"""

import argparse
import math
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support"), str(TESTS / "quality")]

from classics import CLASSICS, Classic, SparseVector  # noqa: E402
from limits import first_top, limit  # noqa: E402

from dpassay.audit.inputs.pair_search import search  # noqa: E402
from dpassay.audit.mechanisms.targets import as_mechanism  # noqa: E402
from dpassay.audit.options import AuditOptions  # noqa: E402
from dpassay.audit.outputs.outputs import read  # noqa: E402
from dpassay.audit.resolved import resolve  # noqa: E402
from dpassay.audit.testing.inference import accuracy_bound  # noqa: E402
from dpassay.audit.testing.training import learn_well  # noqa: E402
from dpassay.pipeline.regions import SensitivityBall  # noqa: E402

ALPHA = 0.1


def worth(classic: Classic, runs: int, seed: int) -> float:
    """The bound at the expected counts of the rule that is learned with this seed."""
    answers = SensitivityBall(math.inf, 1, classic.dim)
    given = {"region": answers, "epsilon": 1e-9, "alpha": ALPHA, "runs": runs, "fixed": True, "seed": seed}
    options = AuditOptions.of(given)
    question, _ = resolve(as_mechanism(classic.mechanism), options)
    hypothesis = replace(question.hypothesis, runs=runs)
    spent, inputs = 0, question.input_sets[0]
    for cost, found in search(question.experiment, question.input_sets, hypothesis, options.search_budget, fixed=True):
        spent, inputs = spent + cost, found or inputs
    training = learn_well(question.experiment(inputs, 0), runs - spent)
    assert training.rule is not None
    right = wrong = 0.0
    for side, x in enumerate(inputs):
        for output, chance in zip(outcomes(classic.dim), first_top(classic.mechanism, x), strict=True):
            guess = training.rule.count(read(output[None]), side)
            right, wrong = right + chance * guess[0], wrong + chance * guess[1]
    each = (runs - spent - training.cost) / 2
    return accuracy_bound(math.ceil(each * right), int(each * wrong), ALPHA)


def outcomes(dim: int) -> np.ndarray:
    """⊤ at each place, and nowhere: 0 before it, and nothing after it."""
    before = np.tri(dim + 1, dim, -1)  # row i: ones before place i
    return np.where(np.eye(dim + 1, dim) > 0, 1.0, np.where(before > 0, 0.0, np.nan))


def main(runs: int, seeds: int, first_seed: int) -> None:
    print(f"{f'expected bounds, {runs:.0e} runs, 90%':36s} {'limit':>8s} {'median':>8s} {'mean':>8s} {'lowest':>8s}")
    for classic in CLASSICS:
        match classic.mechanism:
            case SparseVector(stop=1, gives="mark"):
                found = [worth(classic, runs, seed) for seed in range(first_seed, first_seed + seeds)]
                figures = limit(classic, runs, ALPHA), statistics.median(found), statistics.mean(found), min(found)
                print(f"{classic.name:36s} " + " ".join(f"{figure or 0:8.5f}" for figure in figures), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=float, default=1e7)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    main(int(given.runs), given.seeds, given.first_seed)
