"""All benchmarks, with a description of the machine; writes docs/benchmarks.md and the scaling figure.

`python benchmarks/run.py [--all] [--only SECTION]`. Without --all the audits of the classic algorithms are left out,
since they take about half an hour. With --only, one of the later sections is measured again and replaced on the page.
GPU measurements and audits of correct mechanisms are taken from benchmarks/recorded, where `gpu.py` and
`right_mechanisms.py` wrote them.
"""

import argparse
import io
import json
import os
import platform
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import answers
import audits
import losses
import power
import right_mechanisms
import runs_to_refute
import sampled_gaussian
import scale
import startup
import vocabulary
import words_rewriting
from rows import Row

HERE = Path(__file__).parent
PAGE, FIGURE = HERE.parent / "docs" / "benchmarks.md", HERE.parent / "docs" / "images" / "growth.svg"
CLASSICS = """\
Lower bounds on ε at 90% confidence from {runs:.0e} runs in total, including those for searching and learning, at
{seeds} seeds:
{which}.
`python benchmarks/audits.py --seeds 5 --first-seed 1000 --only NAME …` prints such rows. Rows with seeds 0, 1, …
were recorded before audits learned from inputs farther apart ([audit.md](audit.md#distinguishers)).
Rows with seeds 1000, 1001, … were recorded before audits checked such rules on runs of the neighboring inputs. With the
check, the medians for seeds 2000 to 2004 are 0.0907 for sparse vector 1, 0.0818 for sparse vector 2, 0.0453 for the
numerical sparse vector and 0.0901 for noisy max 1.

- *DP-Sniper*: its published bounds, also at 90%. Its configuration makes 2·10⁸ runs of each input for the bound alone.
- *limit*: the average bound from the same number of runs if the best of the pairs tried and the best event are known
  beforehand, where it can be computed (tests/quality/limits.py). Two of DP-Sniper's bounds exceed it, those for noisy
  max 3 and sparse vector 4: with this many independent runs, they can be reached only by luck.
  On these pairs no output of the numerical sparse vector has a loss above 0.084, and those above 0.08 have probability
  below 0.001, so counting them yields only half of its 0.1. Searching and learning leave two thirds of the runs for the
  test. With these, the limit is 0.0446 for the numerical sparse vector and 0.0856 for sparse vectors 1 and 2.
- *median*, *lowest*: over all seeds. The bound from a single test varies by 0.004 to 0.02 around the exact value of its
  rule. `python benchmarks/learnt_rules.py --first-seed 1000` prints the exact values of the rules learned at 10 seeds.
  Their medians are 0.0833 for sparse vector 1, 0.0855 for sparse vector 2 and 0.1639 for sparse vector 4.
- *p*: for correct algorithms, the smallest p-value against the true ε over all seeds.
- *seconds*: per audit; those for seeds 1000, 1001, … were measured while the machine did other work."""
OTHERS = {
    "right mechanisms": lambda: print(right_mechanisms.recorded()),
    "power": power.main,
    "runs to refute": runs_to_refute.main,
    "startup": startup.main,
    "answers": answers.main,
    "losses": losses.main,
    "sampled gaussian": sampled_gaussian.main,
    "audits": audits.main,
}


class Tee(io.StringIO):
    """Keeps what is printed, and shows it."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
        return super().write(text)


def machine() -> str:
    """What this ran on."""
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((int(line.split()[1]) >> 20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    kind = names[0] if names else platform.machine()
    return f"{kind}, {os.cpu_count()} cores, {memory} GiB, {platform.system()}, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def table(rows: list[Row]) -> str:
    lines = ["| what | bar | measured | |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {r.what} | {r.bar} | {r.found} | {'met' if r.met else 'missed'} |" for r in rows])


def recorded() -> str:
    """What was measured on GPUs, by `gpu.py` and `vocabulary.py`."""
    parts = []
    words = set((HERE / "recorded").glob("*-words.json"))
    for path in sorted(set((HERE / "recorded").glob("*.json")) - {audits.RECORD, right_mechanisms.RECORD} - words):
        found = json.loads(path.read_text(encoding="utf-8"))
        lines = [
            f"{found['device']}, torch {found['torch']}. "
            f"All {found['agreeing']} counts compared with numpy's are equal."
        ]
        lines += ["", "| what | draws | seconds | draws per second |", "|---|---|---|---|"]
        for name, value in found.items():
            if isinstance(value, dict) and "draws" in value:
                rate = value["draws"] / value["seconds"]
                lines.append(f"| {name} | {value['draws']:.4g} | {value['seconds']:.3g} | {rate:.2g} |")
        reading = ", ".join(f"{rate:,.0f} on {device}" for device, rate in found["lines a second"].items())
        lines += ["", f"Lines per second that the rewriter's network reads and writes there, without noise: {reading}."]
        parts.append("\n".join(lines))
    for path in sorted(words):
        found = json.loads(path.read_text(encoding="utf-8"))
        seconds = {name.removeprefix("seconds, "): value for name, value in found.items() if name.startswith("seconds")}
        lines = [
            f"The worst pair of {found['words']:,} words of {found['dim']} dimensions there; the bar is 20 s:",
            "",
        ]
        lines += ["| what | seconds |", "|---|---|", *(f"| {name} | {value:.3g} |" for name, value in seconds.items())]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def classics() -> str:
    """The last recorded results of audits of the classic algorithms."""
    found = json.loads(audits.RECORD.read_text(encoding="utf-8"))
    head = ["algorithm", "truth", "limit", "DP-Sniper", "median", "lowest", "p", "seconds"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += [f"| {name} | {audits.line(row, ' | ')} |" for name, row in found["rows"].items()]
    return "\n".join(
        [CLASSICS.format(runs=found["runs"], seeds=found["seeds"], which=_seeds(found["rows"])), "", *lines]
    )


def _seeds(rows: dict[str, dict[str, Any]]) -> str:
    """Which seeds were taken for which algorithms."""
    named: dict[int, list[str]] = {}
    for name, row in rows.items():
        named.setdefault(row["first_seed"], []).append(name)
    rest = max(named, key=lambda first: len(named[first]))
    parts = [f"{first}, {first + 1}, … for {', '.join(names)}" for first, names in named.items() if first != rest]
    return "; ".join([*parts, f"{rest}, {rest + 1}, …{' for the others' * bool(parts)}"])


def section(name: str) -> list[str]:
    """A heading and what a benchmark printed."""
    print(f"\n{name}")
    with redirect_stdout(Tee()) as said:
        OTHERS[name]()
    text = said.getvalue().strip()
    return [f"## {name.capitalize()}", text if "|---" in text else f"```\n{text}\n```"]


def replace_section(name: str) -> None:
    """Measure one section of the page again, or add it before "Runs to refute"."""
    before, *sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    new = "\n\n".join(section(name)).removeprefix("## ") + "\n"
    titles = [some.partition("\n")[0] for some in sections]
    place = titles.index(name.capitalize()) if name.capitalize() in titles else titles.index("Runs to refute")
    sections[place : place + (name.capitalize() in titles)] = [new]
    PAGE.write_text("\n## ".join([before, *sections]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="also the audits of the classic algorithms")
    parser.add_argument("--only", choices=OTHERS, help="measure this section again, and leave the others as they are")
    given = parser.parse_args()
    sys.argv[1:] = []
    if given.only:
        replace_section(given.only)
        return
    intro = "Generated by `make bench`. All ratios were measured in a single run on this machine:"
    parts = ["# Benchmarks", f"{intro} {machine()}."]
    print(machine())
    rows, grown = [*scale.rows(), *vocabulary.rows(), *words_rewriting.rows()], scale.growth()
    scale.draw(grown, str(FIGURE))
    slopes = ", ".join(f"{scale.slope(x, y):.2f} with {name}" for name, (x, y, _) in grown.items())
    parts += ["## Speed and scale", table(rows), "![How time grows](images/growth.svg)"]
    parts += [
        f"Seconds that the kernels take for the runs of the sanity check; both axes are logarithmic. Slopes: {slopes}."
    ]
    parts += ["## On a GPU", recorded(), "## Audits of classic algorithms", classics()]
    print("\n\n".join(parts[2:]))
    for name in (
        "right mechanisms",
        "power",
        "runs to refute",
        "startup",
        "answers",
        "losses",
        "sampled gaussian",
        *(["audits"] if given.all else []),
    ):
        parts += section(name)
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"\nwritten to {PAGE} and {FIGURE}")


if __name__ == "__main__":
    main()
