"""The result of a reproduction: data, a figure, the published and our results, their distance, and findings.

It is written as CSV, JSON, SVG, PDF, PNG and a short text. The JSON comes last: where it exists, everything does.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpassay.compute.batching import bundled
from dpassay.compute.devices import has_numba
from dpassay.compute.executors import Executor, cores
from dpassay.compute.kernels.majority_vote import draws_of
from dpassay.compute.workers import make_executor
from dpassay.core.files import write_whole

if TYPE_CHECKING:
    from dpassay.training.comparison import TextSource

SCHEMA, PARTIAL = "dpassay/reproduction/1", "dpassay/partial/1"
FIELDS = ("caption", "published", "found", "compared", "comparisons", "rows")  # of the JSON, besides the parameters
SUFFIXES = ("csv", "svg", "pdf", "png", "md", "json")
# Okabe and Ito's colors, which color-blind readers can distinguish; lines differ in dashes too, for black print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (10, 3)), (0, (1, 1)))
MARKS = ("o", "s", "^", "D", "v", "P", "X")
STYLE = {
    **{"svg.hashsalt": "dpassay", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"},
    **{"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.4},
}

Task = TypeVar("Task")
Found = TypeVar("Found")


def label(axis: Any, x: str = "", y: str = "", log: str = "", **legend: Any) -> None:
    """Name the axes of a plot, make those in `log` logarithmic, and add a legend if its options are given."""
    axis.set(**{f"{name}label": text for name, text in (("x", x), ("y", y)) if text})
    axis.set(**{f"{name}scale": "log" for name in log})
    if legend:
        axis.legend(**legend)


@dataclass(frozen=True)
class PublishedComparison:
    """A published number and ours; `error` is the standard error of the one that was sampled."""

    what: str
    published: float
    ours: float
    error: float = math.nan

    @property
    def apart(self) -> float:
        """How far apart they are, in standard errors; NaN if nothing was sampled."""
        if self.published == self.ours:
            return 0.0
        # An infinite estimate means that something was not observed, not how far away it is.
        return (self.published - self.ours) / self.error if math.isfinite(self.published) else math.nan


@dataclass(frozen=True)
class FigureResult:
    """The result of one reproduction."""

    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[Any], None]
    caption: str
    published: str
    found: Sequence[str] = ()
    comparisons: Sequence[PublishedComparison] = ()
    compared: str = "Ours is exact."  # what is compared with what
    size: tuple[float, float] = (6.4, 4.0)


@dataclass(frozen=True)
class ReproductionOptions:
    """How a reproduction is made: runs where something is sampled (None: the default), the seed, and where."""

    runs: int | None = None
    seed: int = 0
    progress: Callable[[float], None] = field(default=lambda share: None, compare=False)
    device: str = "cpu"
    executor: Executor | None = None
    partial: Path | None = None  # where a long one saves its progress, to resume after an interruption
    corpora: tuple[TextSource, ...] = ()  # besides the shipped one, for figures that train models

    @contextmanager
    def at_work(self) -> Iterator[Executor]:
        """The given executor, or otherwise this process, with one thread per core if there are kernels."""
        if self.executor is not None:
            yield self.executor
            return
        executor = make_executor(threads=cores() if self.device == "cpu" and has_numba() else 1)
        with closing(executor):
            yield executor


class Partial:
    """The counts of a reproduction so far, saved in a file and resumed by one with the same parameters.

    The file must hold two counts of at most `runs` for each part, unless `valid` defines something else.

    >>> Partial(None, {"runs": 10}).found
    {}
    """

    def __init__(self, path: Path | None, made: Mapping[str, Any], valid: Callable[[Any], bool] | None = None) -> None:
        from dpassay import __version__

        valid = valid or (lambda found: _counts(found, made["runs"]))
        self.path, self.made = path, {"schema": PARTIAL, "version": __version__, **made}
        self.found: dict[str, list[Any]] = {}
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # another's, or damaged: start over
            data = json.loads((path or Path()).read_text(encoding="utf-8"))
            counts = data.pop("counts").items()
            self.found = {k: v for k, v in counts if valid(v)} if data == self.made else {}

    def keep(self, name: str, counts: Sequence[float]) -> None:
        """Save the counts of one part."""
        self.found[name] = list(counts)
        if self.path is not None:
            write_whole(self.path, json.dumps({**self.made, "counts": self.found}) + "\n")


def sampled_counts(
    parts: Mapping[str, Callable[[], Iterable[Task]]],
    run: Callable[[tuple[Task, ...]], Sequence[Found]],
    counts: Callable[[Task, Found], tuple[int, int]],
    draws: Callable[[Task], int],
    made: Mapping[str, Any],
    options: ReproductionOptions,
) -> dict[str, list[int]]:
    """Two counts for each part, summed over its tasks; in constant memory, and resumable part by part.

    `run` computes several tasks in a worker, `counts` is what one task adds, `draws` is how much work it is.
    """
    partial = Partial(options.partial, {**made, "seed": options.seed})
    left = {name: tasks for name, tasks in parts.items() if name not in partial.found}
    work, done = sum(draws(task) for tasks in left.values() for task in tasks()), 0
    with options.at_work() as executor:
        bundles = bundled((task for tasks in left.values() for task in tasks()), draws, draws_of(options.device))
        results = chain.from_iterable(executor.map(run, bundles))
        for name, tasks in left.items():
            total = [0, 0]
            for task in tasks():
                total = [a + b for a, b in zip(total, counts(task, next(results)), strict=True)]
                done += draws(task)
                options.progress(done / work)
            partial.keep(name, total)
        assert next(results, None) is None, "a result without a task"
    return partial.found


def _counts(found: Any, most: int) -> bool:
    """Whether something is two counts of at most `most` each."""
    return isinstance(found, list) and len(found) == 2 and all(type(c) is int and 0 <= c <= most for c in found)


def save(result: FigureResult, name: str, folder: Path, parameters: Mapping[str, Any]) -> list[Path]:
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
    complete = isinstance(data, dict) and all(key in data for key in FIELDS)
    return whole and complete and all(data.get(key) == value for key, value in wanted.items())


def read_back(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """The data and the drawing of a reproduction in a folder."""
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return data, (folder / f"{name}.svg").read_text(encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def numbers_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it was before it was written as JSON.

    >>> numbers_of({"loss": "inf", "exact": None, "dim": 8})
    {'loss': inf, 'exact': nan, 'dim': 8}
    """
    return {key: {None: math.nan, "inf": math.inf, "-inf": -math.inf}.get(value, value) for key, value in row.items()}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with a header; fields that do not apply are empty."""
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
            figure.set_layout_engine("none")  # to lay it out takes as long as to write it, and is the same for each
    return made


def _words(result: FigureResult, name: str) -> str:
    parts = [f"# {name}", f"![{name}]({name}.svg)", result.caption, "## Published", result.published]
    if result.comparisons:
        parts += ["## Published and ours", result.compared, _compared(result.comparisons)]
    if result.found:
        parts += ["## Additional findings", "\n".join(f"- {sentence}" for sentence in result.found)]
    return "\n\n".join(parts) + "\n"


def _compared(comparisons: Sequence[PublishedComparison]) -> str:
    lines = ["| what | published | ours | apart |", "|---|---|---|---|"]
    for c in comparisons:
        apart = "" if math.isnan(c.apart) else f"{c.apart:+.2f} standard errors"
        lines.append(f"| {c.what} | {c.published:.6g} | {c.ours:.6g} | {apart} |")
    return "\n".join(lines)
