"""The noise of a text rewriter: draws per second from OpenDP on doubles and on integers, and from `Release`.

Bar: 300 utterances of 64 numbers per second, 19,200 draws, with time to spare for a decoder on the same two cores.
`python benchmarks/release.py`. Needs the `release` extra.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import opendp.prelude as dp

from dpassay.text.rewriters.vectors.release import Release

DIM, BAR = 64, 300 * 64
DRAWS = 100 * DIM


def rate(draw: Callable[[], Any], draws: int = DRAWS, repeats: int = 3) -> float:
    """Draws per second of wall time, the best of several."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - start)
    return draws / best


def noise(law: str, kind: str, scale: float) -> Any:
    domain = dp.vector_domain(dp.atom_domain(T=kind, nan=False) if kind == "f64" else dp.atom_domain(T=kind))
    if law == "Laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=kind), scale)


def beside(measurement: Any, halves: list[np.ndarray]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(measurement, halves))


def ways(law: str) -> dict[str, Callable[[], Any]]:
    """The same number of draws in several ways; the first is the baseline."""
    whole = np.full(DRAWS, 5)
    found: dict[str, Callable[[], Any]] = {}

    def add(name: str, measurement: Any, given: Any) -> None:
        found[name] = lambda: measurement(given)

    add("doubles, scale 2", noise(law, "f64", 2.0), np.full(DRAWS, 0.3))
    for kind in ("i32", "i64"):
        add(f"{kind}, scale 8192", noise(law, kind, 8192.0), whole.astype(f"int{kind[1:]}"))
    for scale in (1.0, 64.0, 8191.0, 8191.3, 2.0**40):
        add(f"i64, scale {scale:.15g}", noise(law, "i64", scale), whole)
    usual = noise(law, "i64", 8192.0)
    add("i64, scale 8192, from a list", usual, whole.tolist())
    found["i64, scale 8192, 64 at a time"] = lambda: [usual(part) for part in whole.reshape(-1, DIM)]
    found["i64, scale 8192, two threads"] = lambda: beside(usual, np.array_split(whole, 2))
    return found


def main() -> None:
    dp.enable_features("contrib")
    for law in ("Laplace", "Gaussian"):
        print(f"{'OpenDP, discrete ' + law:42s} {'draws/s':>10s} {'of doubles':>11s} {'of the bar':>11s}")
        first = 0.0
        for name, draw in ways(law).items():
            speed = rate(draw)
            first = first or speed
            print(f"{name:42s} {speed:10,.0f} {speed / first:10.1f}x {speed / BAR:10.1f}x")
        print()
    latents = np.random.default_rng(1).normal(size=(DRAWS // DIM, DIM))
    rng = np.random.default_rng(2)
    print(f"{'Release, eps 1':42s} {'draws/s':>10s} {'of numpy':>11s} {'of the bar':>11s}")
    for mechanism in ("gaussian", "l1", "sqrt-n", "adept-as-published"):
        asked = Release(mechanism, 1, 1e-6 if mechanism == "gaussian" else 0)
        asked.release(latents[:1])
        speed = rate(lambda asked=asked: asked.release(latents))
        numpys = rate(lambda asked=asked: asked.sample(latents, rng))
        print(f"{mechanism + ', release':42s} {speed:10,.0f} {speed / numpys:10.3f}x {speed / BAR:10.1f}x")
        print(f"{mechanism + ', sample (numpy, audits only)':42s} {numpys:10,.0f} {1:10.3f}x {numpys / BAR:10.1f}x")


if __name__ == "__main__":
    main()
