"""How long a user waits: the command line from a cold start, and where the time goes.

Limits, on two idle cores: `dpassay --help` 0.3 s, a check at delta = 0 0.6 s, the whole gallery 3 s, an audit
of a Python function that is refuted 0.7 s. On a busy machine
processor time is more meaningful than wall time.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

COMMANDS = {
    "dpassay --help": (["--help"], 0.3),
    "check at delta 0, 32 dimensions": (
        ["check", "--pipeline", "clip(l2, C) | laplace(2*C/eps)", "--set", "C=1", "--dim", "32", "--epsilon", "1"],
        0.6,
    ),
    "check at delta 0, 100000 dimensions": (
        ["check", "--pipeline", "clip(l2, 1) | laplace(2)", "--dim", "100000", "--epsilon", "1"],
        0.6,
    ),
    "check at delta 0, 7680 bits (OME)": (["check", "ome"], 0.6),
    "gallery": (["gallery"], 3.0),
    "audit of a function, refuted": (
        ["audit", "--python", "startup:noisy", "--pair", "[0, 1]", "--epsilon", "1"],
        0.7,
    ),
}


def noisy(x, rng):
    """Laplace noise of half the size that ε = 1 needs."""
    return x + rng.laplace(scale=0.5)


def seconds(arguments: list[str], repeats: int = 5) -> tuple[float, float]:
    """The shortest wall time, and the shortest processor time."""
    # A user's modules are compiled once; without this they would be compiled at every start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    clock, processor = [], []
    for _ in range(repeats + 1):
        start, before = time.perf_counter(), os.times()
        command = [sys.executable, "-m", "dpassay", *arguments]
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
    print(f"{'from a cold start':36s} {'seconds':>8s} {'of CPU':>8s} {'limit':>6s} {'share of limit':>15s}")
    for name, (arguments, limit) in COMMANDS.items():
        took, worked = seconds(arguments)
        print(f"{name:36s} {took:8.3f} {worked:8.3f} {limit:6.1f} {took / limit:14.0%}")
    for statement in ("import dpassay.cli.main", "import dpassay.api"):
        print(f"\n{statement}")
        for took, name in imports(statement):
            print(f"  {took:6.3f} s  {name}")


if __name__ == "__main__":
    main()
