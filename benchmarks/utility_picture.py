"""The pictures of all rewriters in docs/systems/rewriters.md, from the tables of that page.

`python benchmarks/utility_picture.py`. `dpassay utility --html` draws the same of a measurement of one's own.
"""

import re
from pathlib import Path

from dpassay.report.utility_summary import in_words, summary_figure
from dpassay.text.measurements import Estimate, MeasuredRow, Stated

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {"original text": "original", "most common label": "commonest"}


def rows_of(table: list[str]) -> list[MeasuredRow]:
    """The rows of a table in Markdown; its accuracies have the longer side of their interval."""
    heads, _, *lines = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in table)
    found = []
    for line in lines:
        cells = dict(zip(heads, line, strict=True))
        estimates = {}
        for head, metric in (("label, words", "accuracy_original"), ("label, encoder", "encoder_original")):
            if match := re.fullmatch(r"(\d+) ± (\d+)", cells[head]):
                share, side = (int(number) / 100 for number in match.groups())
                estimates[metric] = Estimate(share, share - side, min(1.0, share + side))
        name = NAMES.get(cells["rewriter"], cells["rewriter"])
        epsilon = float(cells["true ε"].replace(",", "")) if cells["true ε"] else None
        held = epsilon and Stated(epsilon=epsilon, true_epsilon=epsilon, delta=0.0, neighbours="any")
        found.append(MeasuredRow(name, name, held or None, 1, 1, estimates))
    return found


def main() -> None:
    text = (DOCS / "systems" / "rewriters.md").read_text(encoding="utf-8")
    for corpus in ("ATIS", "SNIPS"):
        part = text.split(f"\n## {corpus}\n")[1].split("\n## ")[0]
        rows = rows_of([line for line in part.splitlines() if line.startswith("|")])
        path = DOCS / "images" / f"utility-{corpus.lower()}.svg"
        path.write_bytes(summary_figure(rows, "svg"))
        print(f"{corpus}: {in_words(rows)}")


if __name__ == "__main__":
    main()
