"""How long a person waits: the command line from a cold start, and where the time goes.

Bars: `dpassay --help` within 0.3 s, a pure-ε check within 1 s.
"""

import subprocess
import sys
import time

COMMANDS = {
    "dpassay --help": (["--help"], 0.3),
    "pure check, 32 dimensions": (
        ["check", "--pipeline", "clip(l2, C) | laplace(2*C/eps)", "--set", "C=1", "--dim", "32", "--epsilon", "1"],
        1.0,
    ),
    "pure check, 100000 dimensions": (
        ["check", "--pipeline", "clip(l2, 1) | laplace(2)", "--dim", "100000", "--epsilon", "1"],
        1.0,
    ),
    "pure check, 7680 bits (OME)": (["check", "ome"], 1.0),
}


def seconds(arguments: list[str], repeats: int = 5) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dpassay", *arguments], capture_output=True, check=False)
        best = min(best, time.perf_counter() - start)
    return best


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
    print(f"{'from a cold start':34s} {'seconds':>8s} {'bar':>6s} {'share of bar':>13s}")
    for name, (arguments, bar) in COMMANDS.items():
        took = seconds(arguments)
        print(f"{name:34s} {took:8.3f} {bar:6.1f} {took / bar:12.0%}")
    for statement in ("import dpassay.cli.main", "import dpassay.api"):
        print(f"\n{statement}")
        for took, name in imports(statement):
            print(f"  {took:6.3f} s  {name}")


if __name__ == "__main__":
    main()
