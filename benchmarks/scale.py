"""Speed and scale on this machine's cores: kernels against straightforward numpy, workers, memory, and how time grows.

`python benchmarks/scale.py [--figure FILE]`. Each ratio is measured in one run; the shortest of repeated timings
counts.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing

import numpy as np

import pairs
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.mechanisms.kernels import KERNELS_FROM
from dpassay.audit.remote.distributed import pack, run_batch
from dpassay.audit.testing.decision_rule import DecisionRule, Hypothesis
from dpassay.audit.testing.experiment import Experiment, RoundResult
from dpassay.audit.testing.inference import RoundCounts
from dpassay.audit.testing.sequential import Task
from dpassay.compute.executors import Executor, Processes, Threads, cores
from dpassay.compute.kernels.majority_vote import Ballot, ones, rounding
from dpassay.pipeline.parser import parse
from dpassay.reproduce.published.acl2022 import DIMENSIONS, EPSILONS
from dpassay.reproduce.result import ReproductionOptions
from dpassay.reproduce.sanity import MECHANISMS, exact_loss, sampled_votes
from rows import Row

RANDOM = [m for m in MECHANISMS if m not in ("copy", "coin flip")]
MEMORY = """
from pathlib import Path
from dpassay.reproduce.result import Options, save
from dpassay.reproduce.sanity import sanity_check
save(sanity_check(ReproductionOptions({runs})), "sanity-check", Path({folder!r}), {{}})
# Not getrusage: a process starts with the peak of the one that started it.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""


def least(work: Callable[[], object], times: int = 3) -> float:
    """The shortest of several timings, in seconds."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def straightforward(runs: int) -> float:
    """Nanoseconds per draw of the plain program: draw, round, average, compare; all runs of a cell in one array."""
    rng, seconds, draws = np.random.default_rng(0), 0.0, 0
    for mechanism in RANDOM:
        for epsilon in map(float, EPSILONS):
            for n in DIMENSIONS:
                b = 1 / epsilon if mechanism == "adept" else n / epsilon
                for x in (0.0, 1.0):
                    begun = time.perf_counter()
                    if mechanism == "dptext":
                        with np.errstate(invalid="ignore"):
                            u = rng.random((runs, n))
                            noise = np.nan_to_num(-b * np.sign(u) * np.log(1 - 2 * np.abs(u)), nan=0.0)
                    else:
                        noise = rng.laplace(0.0, b, (runs, n))
                    outputs = (x + noise) / 2 if mechanism == "halved" else x + noise
                    rounded = np.where(outputs >= 0.5, 1.0, 0.0)
                    np.count_nonzero(rounded.mean(axis=1) > 0.5)
                    seconds += time.perf_counter() - begun
                    draws += runs * n
    return 1e9 * seconds / draws


def kernels(runs: int) -> float:
    """Nanoseconds per draw of ours, for the same cells on all cores; DPText's ones need no draw and are not counted."""
    cells = [(m, float(e), n) for m in RANDOM for e in EPSILONS for n in DIMENSIONS]
    sampled_votes(cells, ReproductionOptions(1000))
    seconds = least(lambda: sampled_votes(cells, ReproductionOptions(runs)), 1)
    words = sum(n for m, e, n in cells for x in (0, 1) if rounding(m, e, n, x).width < 1 << 32)
    return 1e9 * seconds / (runs * words)


def peak(runs: int) -> int:
    """Peak megabytes of a process that makes the figure and writes it in all formats."""
    with tempfile.TemporaryDirectory() as folder:
        code = MEMORY.format(runs=runs, folder=folder)
        return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


def sanity() -> list[Row]:
    theirs, ours = straightforward(20_000), kernels(1_000_000)
    ratio = theirs / ours
    whole = ours * 1e7 * 7 * (7 * sum(DIMENSIONS) + 2 * len(DIMENSIONS)) / 1e9
    peaks = [peak(runs) for runs in (10_000, 1_000_000)]
    return [
        Row(
            f"sanity-check grid, {cores()} cores, against numpy",
            "≥ 40×",
            f"{ratio:.0f}× ({theirs:.1f} ns per draw, {ours:.2f} ns; the whole grid of 10⁷ runs in {whole:.0f} s)",
            ratio >= 40,
        ),
        Row(
            "its peak memory, including drawing the figures",
            "≤ 300 MB",
            f"{peaks[0]} MB with 10⁴ runs per cell, {peaks[1]} MB with 10⁶",
            max(peaks) <= 300,
        ),
    ]


def batches(dim: int, runs: int, size: int, before: int) -> list[object]:
    """An audit's tasks as sent to workers: by kernels, or by numpy if they come before all kernels."""
    pipeline = parse(f"clamp(0, 1) | laplace({dim})", dim=dim)
    experiment = Experiment(pipeline, (np.zeros(dim), np.ones(dim)), Hypothesis(1.0), 5)
    rule = DecisionRule(LikelihoodRatio(tuple(experiment.distributions() or ())), -1e5, 1e5, 9, 1, 0.1, 1e-6)
    current = RoundResult(rule, RoundCounts(), 0, 10**15)
    tasks = [Task(0, i, min(size, runs - start), before) for i, start in enumerate(range(0, runs, size))]
    each = max(1, len(tasks) // 16)
    return [pack(experiment, current, tuple(tasks[i : i + each])) for i in range(0, len(tasks), each)]


def seconds_of(executor: Executor, work: list[object], times: int = 2) -> float:
    return least(lambda: list(executor.map(run_batch, work)), times)  # type: ignore[arg-type]


def audits() -> list[Row]:
    dim, runs, few = 128, 10**7, 200_000
    with closing(Processes(2)) as two, closing(Processes(1)) as one:
        for executor in (two, one):  # start them, and load the kernels
            list(executor.map(run_batch, batches(dim, 64_000, 1000, KERNELS_FROM)))  # type: ignore[arg-type]
        fast = seconds_of(two, batches(dim, runs, 1 << 16, KERNELS_FROM)) / runs
        slow = seconds_of(two, batches(dim, few, 1 << 13, 0)) / few
        alone = seconds_of(one, batches(dim, runs, 1 << 16, KERNELS_FROM)) / runs
        slow_alone = seconds_of(one, batches(dim, few, 1 << 13, 0)) / few
    return [
        Row(
            "likelihood-ratio audit, 10⁷ × 128, in two processes, against numpy in two processes",
            "≥ 8×",
            f"{slow / fast:.0f}× ({1e9 * slow / dim:.1f} ns per coordinate, {1e9 * fast / dim:.2f} ns)",
            slow / fast >= 8,
        ),
        Row(
            "two local workers against one",
            "≥ 1.8×",
            f"{alone / fast:.2f}× by kernels, {slow_alone / slow:.2f}× by numpy",
            min(alone / fast, slow_alone / slow) >= 1.8,
        ),
    ]


def exact() -> list[Row]:
    cells = [(m, float(e), n) for m in MECHANISMS for e in EPSILONS for n in DIMENSIONS]
    took = least(lambda: [exact_loss(*cell) for cell in cells])
    return [Row(f"exact grid, all {len(cells)} cells", "≤ 2 s", f"{took:.3f} s", took <= 2)]


def growth() -> dict[str, tuple[list[float], list[float], str]]:
    """Seconds over runs, over dimensions and over workers, for the sanity check by kernels on all cores."""

    def took(executor: Executor, runs: int, dim: int, parts: int) -> float:
        each = runs // parts // 16 * 16
        work = [Ballot("laplace", 1.0, dim, 0, 0, 0, part * each, each) for part in range(parts)]
        return least(lambda: list(executor.map(ones, work)), 3)

    found: dict[str, tuple[list[float], list[float], str]] = {}
    with closing(Threads(cores())) as all_cores:
        took(all_cores, 10_000, 8, 2)
        runs = [10**5, 10**6, 10**7, 10**8]
        found["runs"] = ([*map(float, runs)], [took(all_cores, r, 32, 8) for r in runs], "32 dimensions")
        dims = [1, 4, 16, 64, 256, 1024]
        found["dimensions"] = ([*map(float, dims)], [took(all_cores, 10**6, d, 8) for d in dims], "10⁶ runs")
    many = [1 << i for i in range(cores().bit_length())]
    times = []
    for number in many:
        with closing(Processes(number)) as executor:
            took(executor, 10_000, 8, 2 * number)
            times.append(took(executor, 10**7, 64, 16))
    found["workers"] = ([*map(float, many)], times, "10⁷ runs × 64")
    return found


def slope(x: list[float], y: list[float]) -> float:
    """The exponent of a power distribution through the upper half of the points, where start-up no longer counts."""
    half = max(2, len(x) // 2 + 1)
    return float(np.polyfit(np.log(x[-half:]), np.log(y[-half:]), 1)[0])


def draw(found: dict[str, tuple[list[float], list[float], str]], path: str) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from dpassay.reproduce.result import STYLE

    with rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(8.4, 2.9), layout="constrained")
        for axis, (name, (x, y, held)) in zip(figure.subplots(1, 3), found.items(), strict=True):
            axis.loglog(x, y, "o-", color="#0072B2", markersize=4)
            axis.set_xlabel(name)
            axis.set_title(f"{held}: slope {slope(x, y):.2f}", fontsize=9)
            if name == "workers":
                axis.set_xticks(x, [f"{value:g}" for value in x])
                axis.set_yticks(y, [f"{value:.2f}" for value in y])
                axis.minorticks_off()
        figure.axes[0].set_ylabel("seconds")
        figure.savefig(path, metadata={"Date": None})


def rows() -> list[Row]:
    return [*sanity(), *audits(), *exact(), *pairs.rows()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", help="where the figure of growth goes")
    given, _ = parser.parse_known_args()
    for row in rows():
        print(f"{row.what}\n    {row.found}; bar {row.bar}: {'met' if row.met else 'missed'}")
    found = growth()
    print()
    for name, (x, y, held) in found.items():
        points = ", ".join(f"{value:g}: {seconds:.3g} s" for value, seconds in zip(x, y, strict=True))
        print(f"growth with {name} ({held}): slope {slope(x, y):.2f}; {points}")
    if given.figure:
        draw(found, given.figure)


if __name__ == "__main__":
    main()
