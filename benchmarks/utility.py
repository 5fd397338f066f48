"""What rewritten text is good for, over mechanisms and ε: prints the command, the table and the time.

`python benchmarks/utility.py MODEL [CORPUS] [--mechanism NAME ...] [--test FILE] [--limit N] [-e TRUE_EPSILON ...]
[--seeds N] [--figure FILE]`. Without a corpus it takes the shipped one. MODEL is a trained model's folder, or any
rewriter with `--mechanism ''`. Needs the `text` extra. No bar: it only shows the results.
"""

import argparse
import shlex
import subprocess
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="model")
    parser.add_argument("corpus", nargs="?", default="flights")
    parser.add_argument("--mechanism", action="append")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--test")
    parser.add_argument("--limit", type=int)
    parser.add_argument("-e", "--epsilon", type=float, action="append")
    parser.add_argument("--figure")
    parser.add_argument("--csv")
    given = parser.parse_args()
    options = ["--model", given.model, "--corpus", given.corpus]
    for name in ("test", "limit", "seeds", "figure", "csv"):
        if getattr(given, name) is not None:
            options += [f"--{name}", str(getattr(given, name))]
    for mechanism in given.mechanism or ("none", "gaussian", "l1", "sqrt-n", "adept-as-published"):
        options += ["--mechanism", mechanism] if mechanism else []
    for epsilon in given.epsilon or (10, 100, 1000):
        options += ["--true-epsilon", f"{epsilon:g}"]
    print(shlex.join(["dpassay", "utility", *options]), flush=True)
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-m", "dpassay", "utility", *options], check=False)
    print(f"{time.perf_counter() - start:.0f} s in all")
    raise SystemExit(run.returncode)


if __name__ == "__main__":
    main()
