"""The pictures in docs/systems/rewriters.md, from the tables of that page.

`python benchmarks/utility_picture.py`. `dpassay utility --figure` and `--html` draw the same of a measurement of one's
own. The tables have the longer side of an interval, so the bars here are that long on both sides.
"""

import re
from pathlib import Path

from dpassay.report.utility import utility_figure
from dpassay.report.utility_summary import in_words, summary_figure
from dpassay.text.measurements import Estimate, GuessedTexts, MeasuredRow, Stated

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {"original text": "original", "most common label": "commonest"}
SHARES = {"label, words": "accuracy_original", "label, encoder": "encoder_original", "found %": "attack"}
SCORES = {"BLEU": "bleu", "cosine": "similarity", "perplexity": "perplexity"}
CANDIDATES, GUESSES = 50, 200  # of the attack


def rows_of(table: list[str]) -> list[MeasuredRow]:
    """The rows of a table in Markdown."""
    heads, _, *lines = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in table)
    found = []
    for line in lines:
        cells = dict(zip(heads, line, strict=True))
        estimates, guesses = {}, None
        for head, metric in SHARES.items():
            if match := re.match(r"(\d+) ± (\d+)", cells[head]):
                share, side = (int(number) / 100 for number in match.groups())
                estimates[metric] = Estimate(share, max(0.0, share - side), min(1.0, share + side))
        for head, metric in SCORES.items():
            if cells[head]:
                estimates[metric] = Estimate(float(cells[head].replace(",", "")))
        if "attack" in estimates:
            right, how = round(GUESSES * estimates["attack"].mean), "exact" if "*" in cells["found %"] else "learnt"
            guesses = GuessedTexts(right=right, runs=GUESSES, candidates=CANDIDATES, how=how)
        name = NAMES.get(cells["rewriter"], cells["rewriter"])
        epsilon = float(cells["true ε"].replace(",", "")) if cells["true ε"] else None
        held = epsilon and Stated(epsilon=epsilon, true_epsilon=epsilon, delta=0.0, neighbours="any")
        found.append(MeasuredRow(name, name, held or None, 1, 1, estimates, guesses))
    return found


def main() -> None:
    text = (DOCS / "systems" / "rewriters.md").read_text(encoding="utf-8")
    for corpus in ("ATIS", "SNIPS"):
        part = text.split(f"\n## {corpus}\n")[1].split("\n## ")[0]
        rows = rows_of([line for line in part.splitlines() if line.startswith("|")])
        for name, draw in (("utility", summary_figure), ("rewriters", utility_figure)):
            (DOCS / "images" / f"{name}-{corpus.lower()}.svg").write_bytes(draw(rows, "svg"))
        print(f"{corpus}: {in_words(rows)}")


if __name__ == "__main__":
    main()
