"""How long an answer takes, from a cold start: processor time, and as multiples of `import numpy` in the same run.

Limits are multiples of numpy's import, which takes 0.19 s on two idle cores: machines differ, the ratios less. Of
several runs the shortest counts. The verdict is printed too: a fast answer that is another one is no answer.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NUMPY = 0.19  # seconds on the machine for which the limits in seconds are stated
LAPLACE = ["check", "--pipeline", "clip(l2, C) | laplace(2*C/eps)", "--set", "C=1", "--epsilon", "1"]

# What is asked, and its limit in seconds.
ANSWERS = {
    "check at delta 0": ([*LAPLACE, "--dim", "32"], 0.45),
    "adept at delta 1e-6": (["check", "adept", "--delta", "1e-6"], 0.8),
    "dpnr at delta 1e-6": (["check", "dpnr", "--delta", "1e-6"], 0.8),
    "ome at delta 1e-6": (["check", "ome", "--delta", "1e-6"], 0.8),
    "100,000 dimensions at delta 1e-6": ([*LAPLACE, "--dim", "100000", "--delta", "1e-6"], 2.0),
    "adept at delta 1e-6, --tight": (["check", "adept", "--delta", "1e-6", "--tight"], 15.0),
    "gallery": (["gallery"], 2.0),
}


def processor_time(command: list[str], repeats: int) -> tuple[float, str]:
    """The shortest processor time of a command and its children, and what it printed."""
    # A user's modules are compiled once; without this they would be compiled at every start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    shortest, printed = float("inf"), ""
    for _ in range(repeats):
        before = os.times()
        run = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, env=environment)
        after = os.times()
        shortest = min(shortest, after[2] + after[3] - before[2] - before[3])
        printed = run.stdout
    return shortest, printed


def verdict(printed: str) -> str:
    """The verdict and its interval, of an answer as JSON."""
    try:
        found = json.loads(printed)
    except ValueError:
        return ""
    epsilon = found.get("epsilon", {}) if isinstance(found, dict) else {}
    return f"{found['verdict']}, {epsilon.get('lower')} to {epsilon.get('upper')}" if epsilon else ""


def row(name: str, command: list[str], limit: float, numpy: float, repeats: int = 3) -> None:
    took, printed = processor_time(["-m", "dpassay", *command], repeats)
    ratio = took / numpy
    print(f"{name:36s} {took:8.2f} {ratio:9.1f} {limit / NUMPY:9.1f} {ratio * NUMPY / limit:9.0%}  {verdict(printed)}")


def main() -> None:
    numpy, _ = processor_time(["-c", "import numpy"], 7)
    print(f"import numpy: {numpy:.3f} s of processor time\n")
    print(f"{'from a cold start':36s} {'seconds':>8s} {'of numpy':>9s} {'limit':>9s} {'of limit':>9s}  answer")
    for name, (command, limit) in ANSWERS.items():
        as_json = ["--json"] if command[0] == "check" else []
        row(name, [*command, *as_json], limit, numpy, 1 if limit > 5 else 3)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "claim.json")
        row(
            "certificate of adept at delta 1e-6", ["check", "adept", "--delta", "1e-6", "--certificate", file], 3, numpy
        )
        row("verify it", ["verify", file], 2, numpy)


if __name__ == "__main__":
    main()
