"""Kernels on a GPU: the whole published grid, audits by likelihood ratio, and whether the counts equal numpy's.

Also how fast the text systems' network reads and writes lines there, without noise. It needs only numpy, torch and
Triton: `PYTHONPATH=src python benchmarks/gpu.py [FILE]` writes the measurements as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from dpassay.compute.kernels import numpy_kernels as plain
from dpassay.compute.kernels import triton_kernels as gpu
from dpassay.compute.kernels.draws import WordNoise
from dpassay.compute.kernels.likelihood_ratio import of_bits, of_noise
from dpassay.compute.kernels.majority_vote import Ballot, drawn, ones, rounding
from dpassay.compute.kernels.philox import key
from dpassay.text.models.autoencoder import Autoencoder, Shape

MECHANISMS = ("copy", "coin flip", "laplace", "adept", "dptext", "halved")
EPSILONS, DIMENSIONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (1, 2, 8, 32, 64, 128)
GRID = [(m, e, n, x) for m in MECHANISMS for e in EPSILONS for n in DIMENSIONS for x in (0, 1)]


def grid(runs: int, every_draw: bool) -> tuple[float, int]:
    """Seconds for the whole grid, and how many words were drawn.

    A copy needs no random number, a coin flip one for the whole vector, and DPText's ones are ones whatever the noise;
    with `every_draw` all n of each run are drawn anyway, as in the published program.
    """
    jobs = []
    for cell, (m, e, n, x) in enumerate(GRID):
        dim, span = drawn(m, n), rounding(m, e, n, x)
        if every_draw and (m == "coin flip" or span.width in (0, 1 << 32)):
            dim, span = n, rounding("coin flip", e, n, x)
        jobs.append((key(0, cell), 0, runs, dim, span))
    torch.cuda.synchronize()
    begun = time.perf_counter()
    [int(count) for count in [gpu.votes_under_way(*job) for job in jobs]]
    words = sum(runs * dim for _, _, _, dim, span in jobs if 0 < span.width < 1 << 32)
    return time.perf_counter() - begun, words


def timed(work: Callable[[], Any]) -> float:
    found = []
    for _ in range(3):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def agreeing() -> int:
    """How many counts of votes and guesses equal numpy's exactly; one that does not ends the benchmark."""
    number = 0
    for m, e, n, x in GRID[::7]:
        one, other = (ones(Ballot(m, e, n, x, 3, 5, 1600, 5000, device)) for device in ("cuda", "numpy"))
        assert one == other, (m, e, n, x, one, other)
        number += 1
    first, second = np.linspace(-1, 1, 9), np.linspace(0, -2, 9)
    for side in (0, 1):
        tellings = [
            of_noise(WordNoise(kind, 2.0), first, second, side) for kind in ("laplace", "gaussian", "exponential")
        ]
        tellings += [of_noise(WordNoise("exponential", 2.0, 0.5, lost), first, second, side) for lost in (0.0, 0.5)]
        tellings.append(of_bits(np.linspace(0.1, 0.9, 9), np.linspace(0.7, 0.2, 9), side))
        for telling in tellings:
            assert telling is not None
            made = (key(8), 0, 200_000, telling, -3e5, 3e5, 1e-6)
            one, other = gpu.count_guesses(*made), plain.count_guesses(*made)
            assert one == other, (telling.kind, side, one, other)
            number += 1
    return number


def lines_a_second(device: str, lines: int) -> float:
    """Lines that an untrained network of the usual size reads and writes."""
    network = Autoencoder(Shape(words=900)).to(device).eval()
    numbers = np.random.default_rng(0).integers(4, 900, (lines, network.shape.longest))
    network.rows(network.vectors(numbers[:512]))
    begun = time.perf_counter()
    network.rows(network.vectors(numbers))
    return lines / (time.perf_counter() - begun)


def main() -> None:
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "agreeing": agreeing()}
    begun = time.perf_counter()
    grid(1000, True)
    found["start"] = time.perf_counter() - begun
    for name, every in (("whole grid, every draw", True), ("whole grid", False)):
        seconds, words = min(grid(10**7, every) for _ in range(3))
        found[name] = {"seconds": seconds, "draws": words}
    for dim in (1, 32, 128):
        for kind in ("laplace", "gaussian"):
            telling = of_noise(WordNoise(kind, float(dim)), np.zeros(dim), np.ones(dim), 0)
            runs = 10**7 if dim > 1 else 10**8
            seconds = timed(partial(gpu.count_guesses, key(1), 0, runs, telling, -1e5, 1e5, 1e-6))
            found[f"likelihood ratio, {kind}, {dim}"] = {"seconds": seconds, "draws": runs * dim}
    found["lines a second"] = {device: lines_a_second(device, n) for device, n in (("cuda", 50_000), ("cpu", 2_000))}
    found["memory"] = torch.cuda.max_memory_allocated()
    text = json.dumps(found, indent=1)
    print(text)
    for path in sys.argv[1:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
