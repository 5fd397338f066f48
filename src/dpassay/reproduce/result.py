"""What a reproduction gives: data, a figure, what was published, what we get, how far apart, and what was found.

It is written as CSV, JSON, SVG, PDF, PNG and a short text. The JSON comes last: where it is there, all is.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpassay.compute.devices import has_numba
from dpassay.compute.executors import Executor, cores, make_executor
from dpassay.core.files import write_whole

SCHEMA, PARTIAL = "dpassay/reproduction/1", "dpassay/partial/1"
TOLD = ("caption", "published", "found", "compared", "comparisons", "rows")  # what the JSON says besides
SUFFIXES = ("csv", "svg", "pdf", "png", "md", "json")
# Okabe and Ito's colours, told apart by colour-blind readers; lines differ in dashes too, for print in black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
MARKS = ("o", "s", "^", "D", "v", "P", "X")
STYLE = {
    **{"svg.hashsalt": "dpassay", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"},
    **{"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.4},
}


@dataclass(frozen=True)
class Comparison:
    """One published number beside ours; `error` is the standard error of the one that was sampled."""

    what: str
    published: float
    ours: float
    error: float = math.nan

    @property
    def apart(self) -> float:
        """How far apart they are, in standard errors; NaN where nothing was sampled."""
        if self.published == self.ours:
            return 0.0
        # An infinite estimate says that something was not seen, not how far away it is.
        return (self.published - self.ours) / self.error if math.isfinite(self.published) else math.nan


@dataclass(frozen=True)
class Result:
    """What one reproduction gives."""

    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[Any], None]
    caption: str
    published: str
    found: Sequence[str] = ()
    comparisons: Sequence[Comparison] = ()
    compared: str = "Ours is exact."  # what is compared with what
    size: tuple[float, float] = (6.4, 4.0)


@dataclass(frozen=True)
class Options:
    """How a reproduction is made: runs where something is sampled (None: its own number), the seed, and where."""

    runs: int | None = None
    seed: int = 0
    progress: Callable[[float], None] = field(default=lambda share: None, compare=False)
    device: str = "cpu"
    executor: Executor | None = None
    partial: Path | None = None  # where a long one keeps what it has, to go on after an interruption

    @contextmanager
    def at_work(self) -> Iterator[Executor]:
        """The executor that was given, or else this process, with a thread for each core where there are kernels."""
        if self.executor is not None:
            yield self.executor
            return
        executor = make_executor(threads=cores() if self.device == "cpu" and has_numba() else 1)
        with closing(executor):
            yield executor


class Partial:
    """What a reproduction has so far, kept in a file that is written whole, and taken up by one made the same way.

    >>> Partial(None, {"runs": 10}).found
    {}
    """

    def __init__(self, path: Path | None, made: Mapping[str, Any]) -> None:
        from dpassay import __version__

        self.path, self.made = path, {"schema": PARTIAL, "version": __version__, **made}
        self.found: dict[str, list[int]] = {}
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # another's, or damaged: start anew
            data = json.loads((path or Path()).read_text(encoding="utf-8"))
            counts = data.pop("counts").items()
            self.found = {k: v for k, v in counts if _counts(v, made["runs"])} if data == self.made else {}

    def keep(self, name: str, counts: Sequence[int]) -> None:
        """Note the counts of one part."""
        self.found[name] = list(counts)
        if self.path is not None:
            write_whole(self.path, json.dumps({**self.made, "counts": self.found}) + "\n")


def _counts(found: Any, most: int) -> bool:
    """Whether something is two counts of so many runs each."""
    return isinstance(found, list) and len(found) == 2 and all(type(c) is int and 0 <= c <= most for c in found)


def save(result: Result, name: str, folder: Path, parameters: Mapping[str, Any]) -> list[Path]:
    """Write all files of a result, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {
        "csv": as_csv(result.rows).encode(),
        **pictures(result.draw, result.size),
        "md": _words(result, name).encode(),
    }
    data = {"schema": SCHEMA, "name": name, **parameters, "caption": result.caption, "published": result.published}
    data |= {"found": list(result.found), "compared": result.compared}
    pairs = [(c.what, c.published, c.ours, c.apart) for c in result.comparisons]
    keys = ("what", "published", "ours", "apart")
    data["comparisons"] = [dict(zip(keys, map(_plain, pair), strict=True)) for pair in pairs]
    data["rows"] = [{key: _plain(value) for key, value in row.items()} for row in result.rows]
    written["json"] = (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    paths = []
    for suffix in SUFFIXES:
        paths.append(folder / f"{name}.{suffix}")
        write_whole(paths[-1], written[suffix])
    return paths


def finished(name: str, folder: Path, parameters: Mapping[str, Any]) -> bool:
    """Whether a folder holds this reproduction, made with these parameters."""
    try:
        data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    whole = all((folder / f"{name}.{suffix}").is_file() for suffix in SUFFIXES)
    wanted = {"schema": SCHEMA, "name": name, **parameters}
    told = isinstance(data, dict) and all(key in data for key in TOLD)
    return whole and told and all(data.get(key) == value for key, value in wanted.items())


def read_back(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """What a folder holds of a reproduction: its data and its drawing."""
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return data, (folder / f"{name}.svg").read_text(encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with a header; what does not apply is left empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if _plain(value) is None else _plain(value) for key, value in row.items()})
    return text.getvalue()


def pictures(
    draw: Callable[[Any], None], size: tuple[float, float], suffixes: Sequence[str] = ("svg", "pdf", "png")
) -> dict[str, bytes]:
    """A drawing as files, by their suffixes. Nothing in them depends on the time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    style: Any = STYLE
    with mpl.rc_context(style):
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
        draw(figure)
        made = {}
        for suffix in suffixes:
            file = io.BytesIO()
            dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}
            figure.savefig(file, format=suffix, metadata=dates[suffix], dpi=160)
            made[suffix] = file.getvalue()
    return made


def _words(result: Result, name: str) -> str:
    parts = [f"# {name}", f"![{name}]({name}.svg)", result.caption, "## Published", result.published]
    if result.comparisons:
        parts += ["## Published and ours", result.compared, _compared(result.comparisons)]
    if result.found:
        parts += ["## Found on the way", "\n".join(f"- {sentence}" for sentence in result.found)]
    return "\n\n".join(parts) + "\n"


def _compared(comparisons: Sequence[Comparison]) -> str:
    lines = ["| what | published | ours | apart |", "|---|---|---|---|"]
    for c in comparisons:
        apart = "" if math.isnan(c.apart) else f"{c.apart:+.2f} standard errors"
        lines.append(f"| {c.what} | {c.published:.6g} | {c.ours:.6g} | {apart} |")
    return "\n".join(lines)
