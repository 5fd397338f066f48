"""How often audits refute right mechanisms, which they may with probability α.

`python benchmarks/right_mechanisms.py [--audits 2000] [--processes N] [--record]`. The mechanisms are in
tests/support/right_kinds.py, each at its exact guarantee. With --record the counts are written to benchmarks/recorded.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from scipy.stats import binom  # noqa: E402

from right_kinds import ALPHA, KINDS, audited, resumed, with_workers  # noqa: E402

RECORD = Path(__file__).parent / "recorded" / "right-kinds.json"
CHUNK = 50
RESUMED, WORKERS = "resumed halfway", "with two workers"
SHARES = {WORKERS: 0.05}  # of the audits: each of these starts two processes


def refutations(kind: str, first: int, audits: int) -> tuple[str, int, int, float]:
    """How many of some audits of one kind refuted, and the CPU seconds."""
    begun, refuted = time.process_time(), 0
    for seed in range(first, first + audits):
        if kind == RESUMED:
            with tempfile.TemporaryDirectory() as folder:
                refuted += resumed(seed, Path(folder) / "audit.json")
        else:
            refuted += with_workers(seed) if kind == WORKERS else audited(kind, seed).refuted
    return kind, audits, refuted, time.process_time() - begun


def line(kind: str, audits: int, refuted: int) -> str:
    """A row of the table, with the probability of so many refutations if each has probability α."""
    return f"| {kind} | {audits:,} | {refuted} | {refuted / audits:.2%} | {binom.sf(refuted - 1, audits, ALPHA):.2g} |"


def table(found: dict) -> str:
    """The recorded counts as text."""
    rows = found["rows"]
    audits, refuted = (sum(row[place] for row in rows.values()) for place in (0, 1))
    head = (
        f"Correct mechanisms at their exact guarantee (tests/support/right_kinds.py), each audited at α = {ALPHA} "
        f"with seeds 0, 1, 2, …. *Refuted* is the number of audits that refuted the guarantee; *p* is the probability "
        f"of at least that many if each audit refutes with probability α. Recorded on {found['machine']} in "
        f"{found['seconds']:.0f} s; no row may have a p below 0.01 / {len(rows)}.\n"
    )
    lines = ["| kind | audits | refuted | share | p |", "|---|---|---|---|---|"]
    lines += [line(kind, *row) for kind, row in rows.items()]
    return "\n".join([head, *lines, f"| all | {audits:,} | {refuted} | {refuted / audits:.2%} | |"])


def recorded() -> str:
    """The counts that were recorded last."""
    return table(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else "Not recorded yet."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--record", action="store_true", help=f"write the counts to {RECORD.name}")
    given = parser.parse_args()
    begun = time.perf_counter()
    wanted = {kind: max(CHUNK, int(given.audits * SHARES.get(kind, 1))) for kind in (*KINDS, RESUMED, WORKERS)}
    tasks = [
        (kind, first, min(CHUNK, audits - first))
        for kind, audits in wanted.items()
        for first in range(0, audits, CHUNK)
    ]
    tasks.sort(key=lambda task: (task[1], task[0] != WORKERS))  # a part of each kind first
    counts = {kind: [0, 0, 0.0] for kind in wanted}
    with ProcessPoolExecutor(given.processes) as pool:
        for done in as_completed([pool.submit(refutations, *task) for task in tasks]):
            try:
                kind, *more = done.result()
            except ImportError as error:  # files of audits and worker processes need pydantic
                print(f"{error}; that kind is left out")
                continue
            counts[kind] = [a + b for a, b in zip(counts[kind], more, strict=True)]
            took = time.perf_counter() - begun
            found = {"machine": f"{platform.machine()}, {given.processes} processes", "seconds": took}
            found["rows"] = {name: row[:2] for name, row in counts.items() if row[0]}
            if given.record:
                RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(found))
    print("\nCPU seconds: " + ", ".join(f"{kind} {row[2]:.0f}" for kind, row in counts.items()))


if __name__ == "__main__":
    main()
