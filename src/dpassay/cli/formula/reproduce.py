"""The reproduce command: the figures and tables of the documents, made again."""

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import (
    AsJson,
    ClusterAddress,
    Device,
    Page,
    Python,
    check_writable,
    command_line,
    executor_of,
    needs,
    note,
    print_json,
    print_rich,
    progress_bar,
    usable_device,
    working,
    write_page,
)
from dpassay.cli.completion import complete_figure
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.reproduce import Reproduction

Name = Annotated[
    str | None,
    typer.Argument(help="A figure's name, or 'all'. Without a name: list the figures.", autocompletion=complete_figure),
]
Out = Annotated[Path, typer.Option(help="The folder to write into.")]
Runs = Annotated[
    int | None, typer.Option(help="Number of runs, pairs or draws, if something is sampled. Default: the figure's own.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Workers = Annotated[
    int | None, typer.Option(help="Number of local processes. Default: this process, whose kernels use all cores.")
]
GivenCorpus = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        help="uedp-perplexity: a second corpus, with a user for each text. dpnr-accuracy: corpora with labels, a,b.",
    ),
]
UserColumn = Annotated[str, typer.Option(help="With --corpus: the column of users, if it is not called user.")]
EntitiesFrom = Annotated[str, typer.Option(help="With --corpus: corpus, iob, list:FILE, spacy or presidio.")]
Words = Annotated[str, typer.Option("--vocabulary", help="With --corpus: a public list of words, one per line.")]
Formula = Annotated[
    str | None,
    typer.Option(
        "--pipeline", help="sanity-check: check this pipeline, or say which one the --python code implements."
    ),
]
Epsilons = Annotated[
    str | None,
    typer.Option("--epsilon", help="sanity-check: the claimed values, such as 0.5,1,2. Default: the paper's."),
]
Dims = Annotated[
    str | None,
    typer.Option("--dim", help="sanity-check: the lengths of the inputs, such as 1,8,32. Default: the paper's."),
]
Documents = Annotated[
    Path | None, typer.Option("--page", help="Write the table of everything that the documents describe to this file.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip results that the folder already contains, made with the same options.")
]


def reproduce(
    name: Name = None,
    out: Out = Path("reproduced"),
    runs: Runs = None,
    seed: Seed = 0,
    resume: Resume = False,
    workers: Workers = None,
    cluster: ClusterAddress = None,
    device: Device = "cpu",
    corpus: GivenCorpus = None,
    user_column: UserColumn = "",
    entities_from: EntitiesFrom = "corpus",
    vocabulary: Words = "",
    python: Python = None,
    pipeline: Formula = None,
    epsilon: Epsilons = None,
    dim: Dims = None,
    html: Page = None,
    page: Documents = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce figures and tables of the papers, next to the published numbers.

    Each is written as data (CSV, JSON), as a figure (SVG, PDF, PNG) and as a short text (Markdown): what was published,
    what we get, how far apart the two are, and what else was found.

    With --python or --pipeline, sanity-check is made for a mechanism of yours: an f(x, epsilon, rng) that gives as many
    numbers as it gets. It exits with 1 if the claimed epsilon is refuted.

    \b
    Examples:
      dpassay reproduce                                list the figures
      dpassay reproduce sanity-check --runs 10000000 --device cuda
      dpassay reproduce all --out figures --resume
      dpassay reproduce sanity-check --python mymodule:mechanism
      dpassay reproduce sanity-check --pipeline 'laplace(dim/eps)' --epsilon 0.5,1,2 --dim 1,8,32
      dpassay reproduce dpnr-accuracy --corpus atis.csv,snips.csv --runs 5
      dpassay reproduce --page documents.md            everything in the documents, with commands and numbers
      dpassay reproduce uedp-perplexity --corpus plays.csv --entities-from list:names.txt --vocabulary words.txt
    """
    from dpassay.reproduce import FIGURES, find_figure

    if runs is not None and not 1 <= runs <= 10**9:
        raise InputError(f"runs must be from 1 to 1,000,000,000, got {runs}")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    if name is None:
        if html is not None or resume:
            raise InputError("say which figure to make: a name of 'dpassay reproduce', or all")
        _write_documents(page) if page is not None else _list(as_json)
        return
    own = _own_check(name, python, pipeline, epsilon, dim)
    if own is not None and (workers is not None or cluster is not None or device != "cpu"):
        raise InputError("a mechanism of yours runs in this process: leave out --workers, --cluster and --device")
    if page is not None:
        raise InputError(f"--page writes the table of the documents, not {name}: leave out one of them")
    chosen = [f for f in FIGURES.values() if not f.long] if name == "all" else [own or find_figure(name)]
    corpora = _corpora(name, corpus, user_column, entities_from, vocabulary)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is not a folder")
    out.mkdir(parents=True, exist_ok=True)
    check_writable(html, out / "x")
    made: dict[str, Any] = {}
    device = usable_device(device, cluster)
    options = {"runs": runs, "seed": seed, "device": device, "corpora": corpora}
    try:
        with executor_of(workers, cluster) as executor:
            for figure in chosen:
                made[figure.name] = _make(figure, out, {**options, "executor": executor}, resume, as_json)
    except KeyboardInterrupt:
        begun = [figure.name for figure in chosen if (out / f"{figure.name}.partial.json").exists()]
        kept = f"{len(made)} of {len(chosen)}" + (f", and a part of {begun[0]}," if begun else "")
        print(f"interrupted; {kept} are in {out}. To continue, add --resume", file=sys.stderr)
        raise typer.Exit(130) from None
    if html is not None:
        from dpassay.report.pages.page import figures_page
        from dpassay.reproduce.result import read_back

        write_page(figures_page([read_back(figure.name, out) for figure in chosen], command_line()), html)
    if as_json:
        print_json(made)
    if own is not None and made[own.name]["refuted"]:
        raise typer.Exit(1)


def _own_check(
    name: str, python: str | None, pipeline: str | None, epsilon: str | None, dim: str | None
) -> "Reproduction | None":
    """The sanity check of a mechanism that was given, instead of the paper's mechanisms."""
    if python is None and pipeline is None:
        if epsilon is not None or dim is not None:
            raise InputError("--epsilon and --dim are for the sanity check of a mechanism: give --python or --pipeline")
        return None
    if name != "sanity-check":
        raise InputError(f"--python and --pipeline are for sanity-check, not for {name}")
    from dpassay.reproduce import ACL, Reproduction
    from dpassay.reproduce.vote import Subject, VoteGrid, mechanisms, sanity_check_of

    subject, grid = Subject(python, pipeline), VoteGrid.read(epsilon, dim)
    with redirect_stdout(sys.stderr):
        mechanisms(subject, grid)  # before anything is written
    given = {**subject.data(), "epsilons": list(grid.epsilons), "dims": list(grid.dims)}
    make = partial(sanity_check_of, subject, grid)
    return Reproduction(subject.name, "the vote on your mechanism", f"{ACL}, section 4", make, given=given)


def _write_documents(path: Path) -> None:
    from dpassay.core.files import write_whole
    from dpassay.reproduce.documents import page

    check_writable(path)
    with working("computing"):
        text = page()
    write_whole(path, text)
    note(f"written to {path}")


def _corpora(name: str, corpus: str | None, user_column: str, entities_from: str, vocabulary: str) -> tuple[Any, ...]:
    """The corpus that a figure is made on besides the shipped one, if one was given."""
    if corpus is None:
        if user_column or vocabulary or entities_from != "corpus":
            raise InputError("--user-column, --entities-from and --vocabulary require --corpus")
        return ()
    if name not in ("uedp-perplexity", "dpnr-accuracy"):
        raise InputError(f"--corpus is for uedp-perplexity and dpnr-accuracy, not for {name}")
    needs("torch", "text")
    from dpassay.training.comparison import TextSource, read, words_of

    if name == "dpnr-accuracy":
        if user_column or vocabulary or entities_from != "corpus":
            raise InputError("--user-column, --entities-from and --vocabulary are for uedp-perplexity")
        return tuple(TextSource(one.strip()) for one in dict.fromkeys(corpus.split(",")))

    source = TextSource(corpus, entities_from, vocabulary, user_column)
    read(source)  # before anything is trained
    words_of(source)
    return (source,)


def _make(figure: "Reproduction", out: Path, options: dict[str, Any], resume: bool, as_json: bool) -> dict[str, Any]:
    from dpassay import __version__
    from dpassay.reproduce.result import ReproductionOptions, finished, save

    parameters = {"version": __version__, "runs": options["runs"], "seed": options["seed"]}
    parameters |= figure.given
    if options["corpora"]:
        parameters["corpora"] = [asdict(source) for source in options["corpora"]]
    unfinished = out / f"{figure.name}.partial.json"
    if not resume:
        unfinished.unlink(missing_ok=True)
    path = str(out / f"{figure.name}.md")
    if resume and finished(figure.name, out, parameters):
        note(f"{figure.name}: already there")
        return {"text": path, "made": False, **_judged(figure, out, as_json)}
    with progress_bar(1000) as bar:

        def tell(share: float) -> None:
            if bar is not None:
                bar(round(1000 * share), 1000, figure.name)

        with redirect_stdout(sys.stderr):  # what a mechanism prints must not get into the result
            result = figure.make(ReproductionOptions(progress=tell, partial=unfinished, **options))
        save(result, figure.name, out, parameters)
        unfinished.unlink(missing_ok=True)
    if not as_json:
        print(f"{figure.name}: {path}")
        for sentence in result.found:
            print(f"  {sentence}")
    return {"text": path, "made": True, "found": list(result.found), **_judged(figure, out, as_json)}


def _judged(figure: "Reproduction", out: Path, as_json: bool) -> dict[str, bool]:
    """For a mechanism that was given: print its tables, and say whether the claimed epsilon is refuted."""
    if not figure.given:
        return {}
    from rich.table import Table

    from dpassay.reproduce.result import numbers_of, read_back
    from dpassay.reproduce.vote import TABLES, VoteGrid, table

    rows = [numbers_of(row) for row in read_back(figure.name, out)[0]["rows"]]
    grid = VoteGrid(tuple(figure.given["epsilons"]), tuple(figure.given["dims"]))
    for what, title in {} if as_json else TABLES.items():
        if (lines := table(rows, grid, what)) is not None:
            shown = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
            for head in ("claimed ε", *(f"n = {n}" for n in grid.dims)):
                shown.add_column(head, justify="right")
            for line in lines:
                shown.add_row(*line)
            print(f"\n{title}")
            print_rich(shown)
    return {"refuted": any(row["refuted"] for row in rows)}


def _list(as_json: bool) -> None:
    from dpassay.reproduce import FIGURES

    if as_json:
        print_json([{"name": f.name, "shows": f.shows, "source": f.source} for f in FIGURES.values()])
        return
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("name", style="bold")
    table.add_column("what it shows")
    table.add_column("from", style="dim")
    for figure in FIGURES.values():
        table.add_row(figure.name, figure.shows, figure.source)
    print_rich(table)
