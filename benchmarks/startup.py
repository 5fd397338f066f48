"""How long a user waits for a command to start: processor time, as multiples of `import numpy` in the same run.

The limits are stated in seconds for two idle cores, where numpy takes 0.19 s to import; the last column is the share
of the limit after scaling by what numpy takes here. `answers.py` measures answers that need computing.
"""

import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

NUMPY = 0.19  # seconds, where the limits were stated
PIPELINE = "clip(l2, C) | laplace(2*C/eps)"
COMMANDS = {
    "dpassay --help": (["-m", "dpassay", "--help"], 0.12),
    "import dpassay": (["-c", "import dpassay"], 0.15),
    "check at delta 0, 32 dimensions": (
        ["-m", "dpassay", "check", "--pipeline", PIPELINE, "--set", "C=1", "--dim", "32", "--epsilon", "1"],
        0.45,
    ),
    "check at delta 0, 100000 dimensions": (
        ["-m", "dpassay", "check", "--pipeline", PIPELINE, "--set", "C=1", "--dim", "100000", "--epsilon", "1"],
        0.45,
    ),
    "check at delta 0, 7680 bits (OME)": (["-m", "dpassay", "check", "ome"], 0.45),
    "audit of a function, refuted": (
        ["-m", "dpassay", "audit", "--python", "startup:noisy", "--pair", "[0, 1]", "--epsilon", "1"],
        0.7,
    ),
    "trace of a function": (
        ["-m", "dpassay", "trace", "--python", "startup:noisy", "--pair", "[0, 1]", "--epsilon", "1"],
        0.7,
    ),
    "trace of a function without noise": (
        ["-m", "dpassay", "trace", "--python", "startup:same", "--pair", "[0, 1]", "--epsilon", "5"],
        0.7,
    ),
    "trace of a correct function": (
        ["-m", "dpassay", "trace", "--python", "startup:correct", "--pair", "[0, 1]", "--epsilon", "1"],
        1.0,
    ),
    "trace of a correct coin": (
        ["-m", "dpassay", "trace", "--python", "startup:coin", "--pair", "[0, 1]", "--epsilon", "1"],
        1.0,
    ),
}


def noisy(x, rng):
    """Laplace noise of half the size that ε = 1 needs."""
    return x + rng.laplace(scale=0.5)


def correct(x, rng):
    """Laplace noise of the size that ε = 1 needs."""
    return x + rng.laplace(scale=1)


def coin(x):
    """Randomized response for ε = 1."""
    return x if random.random() < math.e / (1 + math.e) else 1 - x


def same(x):
    """No noise."""
    return x


def seconds(arguments: list[str], repeats: int = 5) -> tuple[float, float]:
    """The shortest wall time, and the shortest processor time."""
    # A user's modules are compiled once; without this they would be compiled at every start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    clock, processor = [], []
    for _ in range(repeats + 1):
        start, before = time.perf_counter(), os.times()
        command = [sys.executable, *arguments]
        subprocess.run(command, capture_output=True, check=False, env=environment, cwd=HERE)
        after = os.times()
        clock.append(time.perf_counter() - start)
        processor.append(after[2] + after[3] - before[2] - before[3])
    return min(clock[1:]), min(processor[1:])


def imports(statement: str, most: int = 6) -> list[tuple[float, str]]:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", statement], capture_output=True, text=True, check=True
    )
    rows = []
    for line in run.stderr.splitlines()[1:]:
        _, total, name = line.removeprefix("import time:").split("|")
        if not name.startswith("   "):  # nested deeper: counted in what imports it
            rows.append((int(total) / 1e6, name.strip()))
    return sorted(rows, reverse=True)[:most]


def main() -> None:
    _, numpy = seconds(["-c", "import numpy"])
    print(f"import numpy: {numpy:.3f} s of processor time\n")
    print(f"{'from a cold start':36s} {'seconds':>8s} {'of CPU':>8s} {'of numpy':>9s} {'limit':>6s} {'of limit':>9s}")
    for name, (arguments, limit) in COMMANDS.items():
        took, worked = seconds(arguments)
        ratio, most = worked / numpy, limit / NUMPY
        print(f"{name:36s} {took:8.3f} {worked:8.3f} {ratio:9.1f} {most:6.1f} {ratio / most:9.0%}")
    for statement in ("import dpassay.cli.main", "import dpassay.api"):
        print(f"\n{statement}")
        for took, name in imports(statement):
            print(f"  {took:6.3f} s  {name}")


if __name__ == "__main__":
    main()
