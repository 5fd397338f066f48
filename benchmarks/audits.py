"""Audits by sampling: runs needed for a refutation, bounds on the classic algorithms, false alarms, and overhead.

`python benchmarks/audits.py [--runs 1e7] [--seeds 1] [--first-seed 0] [--only NAME …] [--record]`,
subjects in tests/quality.
With --record the classics' bounds go into benchmarks/recorded/classics.json, from where docs/benchmarks.md takes them;
with --only too, they replace those rows alone.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support"), str(TESTS / "quality")]

import test_audits as quality  # noqa: E402
from classics import CLASSICS  # noqa: E402
from limits import limit  # noqa: E402
from scipy.stats import binom  # noqa: E402

import dpassay  # noqa: E402
from dpassay.audit.testing.inference import p_value  # noqa: E402
from dpassay.evidence.sampled import SampledWitness  # noqa: E402

DIM = 32
SNIPER_ALPHA = 0.1  # DP-Sniper's bounds hold at 90%
RECORD = Path(__file__).parent / "recorded" / "classics.json"
MEMORY = """
import sys; sys.path.insert(0, {here!r})
import audits
audits.wide({runs}, {fixed})
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class Timed:
    """A mechanism that measures how long drawing takes."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism
        self.seconds = 0.0

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        start = time.perf_counter()
        drawn = self.mechanism.sample(x, n, rng)
        self.seconds += time.perf_counter() - start
        return drawn


def medians() -> None:
    print(f"{'Laplace, true ε 2, α 0.05: runs in all':42s} {'median':>8s} {'bar':>8s} {'s':>6s}")
    for name, mechanism, claimed, bar in (
        ("distribution known, claimed 1", quality.Known(0.5), 1.0, 100),
        ("distribution known, claimed 1.9", quality.Known(0.5), 1.9, 15_000),
        ("learnt, claimed 1", quality.Noisy(0.5), 1.0, 1_500),
        ("learnt, claimed 1.9", quality.Noisy(0.5), 1.9, 100_000),
    ):
        start = time.perf_counter()
        print(f"{name:42s} {quality.runs_taken(mechanism, claimed):8.0f} {bar:8d} {time.perf_counter() - start:6.1f}")


def encodings() -> None:
    print(f"\n{'true ε 2, 10⁶ runs, α 0.001':42s} {'bound':>8s} {'bar':>8s}")
    for name, mechanism in (("symmetric", quality.symmetric(2.0)), ("optimized", quality.optimized(2.0))):
        verdict = dpassay.audit(mechanism, [(0, 1)], epsilon=1, alpha=0.001, runs=10**6, fixed=True, shrink=False)
        print(f"{name + ' unary encoding':42s} {verdict.epsilon.lower:8.4f} {1.98:8.2f}")


def false_alarms(audits: int = 2000, runs: int = 600) -> None:
    title = f"right, {audits} audits of {runs} runs, α 0.05"
    print(f"\n{title:42s} {'refuted':>8s} {'P(≥ so many)':>13s} {'ms each':>8s}")
    for name in quality.RIGHT:
        start = time.perf_counter()
        refuted = quality.refutations(name, audits, runs)
        each = 1000 * (time.perf_counter() - start) / audits
        print(f"{name:42s} {refuted:8d} {binom.sf(refuted - 1, audits, quality.ALPHA):13.3g} {each:8.1f}")


def classics(runs: int, only: list[str], seeds: int, first_seed: int = 0) -> dict[str, Any]:
    """The bounds of several audits of each classic algorithm; the last column is for right ones, at their true ε."""
    title = f"classics, {runs:.0e} runs, pairs searched, 90%"
    print(
        f"\n{title:42s} {'truth':>7s} {'limit':>7s} {'DP-Sniper':>9s} {'median':>7s} {'lowest':>7s} {'p':>7s} {'s':>5s}"
    )
    found: dict[str, Any] = {}
    for classic in CLASSICS:
        if only and not any(word in classic.name for word in only):
            continue
        start, bounds, chances = time.perf_counter(), [], []
        for seed in range(first_seed, first_seed + seeds):
            verdict = quality.audited(
                classic, runs, 1e-9, SNIPER_ALPHA, seed
            )  # no claim at which the bound would be capped
            bounds.append(verdict.epsilon.lower)
            if classic.right and isinstance(verdict.witness, SampledWitness):
                chances.append(p_value(verdict.witness.right, verdict.witness.wrong, classic.true_epsilon))
        row = {
            "truth": classic.true_epsilon if math.isfinite(classic.true_epsilon) else "inf",
            "limit": limit(classic, runs, SNIPER_ALPHA),
            "sniper": classic.sniper,
            "bounds": bounds,
            "p": min(chances, default=None),
            "seconds": (time.perf_counter() - start) / seeds,
            "first_seed": first_seed,
        }
        found[classic.name] = row
        print(f"{classic.name:42s} {line(row)}", flush=True)
    return {"runs": runs, "seeds": seeds, "rows": found}


def line(row: dict[str, Any], between: str = " ") -> str:
    """One algorithm's figures."""
    median, lowest = statistics.median(row["bounds"]), min(row["bounds"])
    shown = [row["truth"], row["limit"], row["sniper"], median, lowest, row["p"]]
    texts = ["–" if value is None else value if value == "inf" else f"{value:.4g}" for value in shown]
    widths = (7, 7, 9, 7, 7, 7)
    return between.join([*(f"{t:>{w}s}" for t, w in zip(texts, widths, strict=True)), f"{row['seconds']:5.0f}"])


def wide(runs: int, fixed: bool) -> tuple[float, float]:
    """Seconds in total and for drawing, for a claim that holds, so that all runs are made."""
    timed = Timed(quality.Noisy(DIM / 2.0))
    start = time.perf_counter()
    dpassay.audit(timed, [(np.zeros(DIM), np.ones(DIM))], epsilon=2.0, runs=runs, fixed=fixed, shrink=False)
    return time.perf_counter() - start, timed.seconds


def overhead() -> None:
    print(f"\n{f'overhead, {DIM} coordinates':42s} {'drawing':>8s} {'ours':>8s} {'ratio':>8s} {'bar':>5s}")
    wide(1000, False)  # what is imported when first used
    for runs, fixed in ((10**6, False), (10**6, True)):
        total, drawing = wide(runs, fixed)
        name = f"{runs:.0e} runs, {'fixed' if fixed else 'anytime'}"
        print(f"{name:42s} {drawing:8.2f} {total - drawing:8.2f} {(total - drawing) / drawing:8.2f} {1:5d}")
    print(f"\n{'peak memory':42s} {'MB':>8s}")
    for runs, fixed in ((10**6, False), (4 * 10**6, False), (10**6, True), (4 * 10**6, True)):
        code = MEMORY.format(here=str(Path(__file__).parent), runs=runs, fixed=fixed)
        peak = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        name = f"{runs:.0e} runs, {'fixed' if fixed else 'anytime'}"
        print(f"{name:42s} {int(peak) / 1024:8.0f}")


def main(
    runs: int = 10**7, only: list[str] | None = None, seeds: int = 1, record: bool = False, first_seed: int = 0
) -> None:
    if not only:
        medians()
        encodings()
        overhead()
        false_alarms()
    found = classics(runs, only or [], seeds, first_seed)
    if record:
        if only:
            known = json.loads(RECORD.read_text(encoding="utf-8"))
            found["rows"] = {name: found["rows"].get(name, row) for name, row in known["rows"].items()}
        RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=float, default=1e7)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0, help="seeds that nothing was tuned on show the truth")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if given.record and given.only:
        kept = json.loads(RECORD.read_text(encoding="utf-8"))
        if (given.runs, given.seeds) != (kept["runs"], kept["seeds"]):
            parser.error(
                f"the other rows have {kept['runs']:.0e} runs and {kept['seeds']} seeds: take as many, or all rows"
            )
    main(int(given.runs), given.only, given.seeds, given.record, given.first_seed)
