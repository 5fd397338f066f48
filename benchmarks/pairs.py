"""Pairs beyond 2C, Figure 1 of Habernal, EMNLP 2021: the straightforward numpy program against ours on two threads.

`python benchmarks/pairs.py [--pairs 1e6] [--dim 64] [--seconds 8]`. Each program is repeated for that many seconds, and
its shortest time is taken. Ours also counts the control, pairs that are beyond 2C after l1 clipping; the
straightforward program is timed without it and with it.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.compute.executors import Threads
from dpassay.compute.kernels.numba_pairs import count_beyond
from dpassay.compute.kernels.philox import RUNS, key
from rows import Row

CLIP = 10.0
SHAPES = ("uniform", "normal")
THREADS, PIECES, BAR = 2, 16, 20
MEMORY = """
import sys; sys.path.insert(0, {here!r})
import resource
import pairs
pairs.ours("normal", 128, {dim})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pairs.{program}("normal", {pairs}, {dim})
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def straightforward(shape: str, pairs: int, dim: int, control: bool = False) -> tuple[int, ...]:
    """All pairs at once."""
    rng = np.random.default_rng(0)
    if shape == "uniform":
        x, y = (rng.uniform(-CLIP, CLIP, (pairs, dim)) for _ in range(2))
    else:
        x, y = (rng.normal(0.0, np.sqrt(0.1 * CLIP), (pairs, dim)) for _ in range(2))
    found = []
    for norm in (2, 1) if control else (2,):
        a, b = (v * np.minimum(1, CLIP / np.linalg.norm(v, ord=norm, axis=1, keepdims=True)) for v in (x, y))
        most = 2 * CLIP if norm == 2 else 2 * CLIP * (1 + 1e-12)
        found.append(int(np.count_nonzero(np.abs(a - b).sum(axis=1) > most)))
    return tuple(found)


def ours(shape: str, pairs: int, dim: int) -> tuple[int, int]:
    """In pieces, two at a time."""
    size = max(1, pairs // PIECES // RUNS) * RUNS
    stream, executor = key(0, 0, dim, SHAPES.index(shape)), Threads(THREADS)

    def piece(start: int) -> tuple[int, int]:
        return count_beyond(stream, start, min(size, pairs - start), dim, shape, CLIP)

    counts = list(executor.map(piece, range(0, pairs, size)))
    executor.close()
    return sum(beyond for beyond, _ in counts), sum(control for _, control in counts)


def fastest(seconds: float, program: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """The shortest time, of as many repeats as fit into the seconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        found = program(*given)
        best = min(best, time.perf_counter() - start)
    return best, found


def speed(pairs: int, dim: int, seconds: float) -> None:
    print()
    title = f"{dim} dimensions × {pairs:.0e} pairs, {THREADS} threads"
    print(f"{title:42s} {'numpy':>8s} {'+control':>8s} {'ours':>8s} {'ratio':>6s} {'+control':>8s} {'bar':>4s}  shares")
    total = np.zeros(3)
    for shape in SHAPES:
        ours(shape, 128, dim)  # what is compiled when first used
        mine, (beyond, control) = fastest(seconds, ours, shape, pairs, dim)
        short, theirs = fastest(seconds, straightforward, shape, pairs, dim)
        long, both = fastest(seconds, straightforward, shape, pairs, dim, True)
        total += (short, long, mine)
        shares = f"{theirs[0] / pairs:.5f} {beyond / pairs:.5f}, control {both[1]} {control}"
        print(f"{_line(shape, short, long, mine)}  {shares}", flush=True)
    print(_line("together", *total))


def _line(name: str, short: float, long: float, mine: float) -> str:
    return f"{name:42s} {short:8.3f} {long:8.3f} {mine:8.3f} {short / mine:6.1f} {long / mine:8.1f} {BAR:4d}"


def memory(pairs: int, dim: int) -> None:
    print(f"{'peak memory, MB':42s} {'before':>8s} {'after':>8s}")
    for program, number in (("ours", pairs), ("ours", 4 * pairs), ("straightforward", pairs)):
        code = MEMORY.format(here=str(Path(__file__).parent), program=program, pairs=number, dim=dim)
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        before, after = (int(peak) / 1024 for peak in told.split())
        print(f"{f'{program}, {number:.0e} pairs':42s} {before:8.0f} {after:8.0f}")


def rows() -> list[Row]:
    """The ratio compared with its bar: both shapes together, with the control in both programs."""
    theirs = mine = 0.0
    for shape in SHAPES:
        ours(shape, 128, 64)
        mine += fastest(3.0, ours, shape, 10**6, 64)[0]
        theirs += fastest(6.0, straightforward, shape, 10**6, 64, True)[0]
    what = "pair-violation simulation, 64 dimensions × 10⁶ pairs, uniform and normal, two threads"
    found = f"{theirs / mine:.0f}× ({theirs:.2f} s, {mine:.3f} s)"
    return [Row(what, f"≥ {BAR}×", found, theirs / mine >= BAR)]


def main(pairs: int = 10**6, dim: int = 64, seconds: float = 8.0) -> None:
    memory(pairs, dim)  # first, since a process inherits the peak memory of its parent
    speed(pairs, dim, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=float, default=1e6)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    main(int(given.pairs), given.dim, given.seconds)
