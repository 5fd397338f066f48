"""The commands for text systems: rewrite texts, and guess what a text was."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import (
    AsJson,
    ClusterAddress,
    Workers,
    check_writable,
    needs,
    note,
    print_json,
    print_rich,
    progress_bar,
    working,
)
from dpassay.cli.rewriters import (
    MechanismName,
    ReleaseDelta,
    ReleaseEpsilon,
    RewriterName,
    RewriterPath,
    RewriterSettings,
    TrueEpsilon,
    epsilon_of,
    specification,
)
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.text.corpora.records import Lines, Table
    from dpassay.text.rewriters.base import Rewriter
    from dpassay.text.rewriters.rewriting import Order

Corpus = Annotated[
    str,
    typer.Option(
        "--corpus",
        help="A .csv (label,text), .tsv, .jsonl, .iob or .txt file, 'flights' for the shipped one, atis, snips, sst2, "
        "imdb, ag-news or hf:NAME.",
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="cpu, or cuda if available.")]


def rewrite(
    model: RewriterName = None,
    python: RewriterPath = None,
    mechanism: MechanismName = None,
    settings: RewriterSettings = None,
    epsilon: ReleaseEpsilon = None,
    true_epsilon: TrueEpsilon = None,
    delta: ReleaseDelta = None,
    source: Annotated[
        Path | None,
        typer.Option("--in", help="Lines, or a .csv, .tsv or .jsonl file. Default: lines from the standard input."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file for what is rewritten. Default: standard output.")] = None,
    column: Annotated[
        str, typer.Option(help="The column of a .csv, .tsv or .jsonl file to rewrite. Default: text.")
    ] = "",
    statement: Annotated[
        Path | None, typer.Option(help="The file that states the guarantee. Default: OUT.json, next to the output.")
    ] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Allow a published mechanism although its claim does not hold.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue after what is already in OUT.")] = False,
    device: Device = "cpu",
    workers: Workers = None,
    cluster: ClusterAddress = None,
    names: Annotated[bool, typer.Option("--list", help="List the rewriters that have a name, and stop.")] = False,
) -> None:
    """Rewrite texts, one per line and in the same order, so that each is protected by differential privacy.

    The guarantee is for one text. What it covers and what it rests on is written as JSON next to the output. Empty
    lines, unknown words and very long lines are texts like any other. Of a .csv, .tsv or .jsonl file the column text is
    rewritten; all others stay as they are, and the guarantee does not cover them.

    \b
    Examples:
      dpassay rewrite --model models/adept --epsilon 50 --in in.txt --out out.txt
      echo 'book a flight to rome' | dpassay rewrite --model models/adept --mechanism l1 --epsilon 500
      dpassay rewrite --model models/adept --mechanism none --in in.txt --out same.txt --workers 4
      dpassay rewrite --model models/adept --epsilon 50 --in train.csv --out rewritten.csv      labels are kept
      dpassay rewrite --model models/adept --epsilon 50 --in in.jsonl --column question --out out.jsonl
      dpassay rewrite --python mymodule:rewriter --true-epsilon 100 --in in.txt --out out.txt
    """
    if names:
        _list_rewriters()
        return
    if resume and (out is None or not out.is_file()):
        where = "--resume needs --out FILE" if out is None else f"there is no file {out}"
        raise InputError(f"{where}: say which rewriting to continue")
    if out is not None and out.exists() and not resume:
        raise InputError(f"{out} exists already: continue it with --resume, or write to another file")
    statement = statement if statement is not None or out is None else out.with_name(out.name + ".json")
    _check_files(source, out, statement)
    form = _form(source, out, column)
    order = _order(model, python, mechanism, settings, (epsilon, true_epsilon, delta), device, cluster)
    from dpassay.compute.executors import make_executor
    from dpassay.core.files import write_whole
    from dpassay.text.rewriters.base import released
    from dpassay.text.rewriters.base import statement as state
    from dpassay.text.rewriters.rewriting import opened

    with working("reading the model"):
        rewriter = opened(order)
        stated = state(rewriter)
    _check_published(rewriter, as_published)
    stated["input"] = "standard input" if source is None else source.name  # no fingerprint, which would be a leak
    stated |= _about_columns(form)
    done = _behind(out, statement, stated, form) if resume and out is not None else 0
    work: Callable[[list[str]], list[str]] = partial(released, rewriter)
    if workers is not None or cluster is not None:
        work = _at_workers(order, stated, several=workers != 1)
    with closing(make_executor(workers, cluster)) as executor:
        print(f"guarantee: {rewriter.guarantee}", file=sys.stderr)
        if statement is not None and not resume:
            write_whole(statement, json.dumps(stated, indent=1, ensure_ascii=False) + "\n")
        _rewrite_texts(partial(executor.map, work), form, source, out, done)


def _list_rewriters() -> None:
    from rich.table import Table

    from dpassay.text.rewriters.catalogue import names

    table = Table("rewriter", "what it is", box=None, header_style="bold")
    for name, about in names().items():
        table.add_row(name, about)
    print_rich(table)


def _order(
    model: str | None,
    python: str | None,
    mechanism: str | None,
    settings: list[str] | None,
    asked: tuple[str | None, str | None, float | None],
    device: str,
    cluster: str | None,
) -> Order:
    """The job, as plain data. The device is checked here; a cluster's workers determine it themselves."""
    if model is not None and Path(model).is_dir():
        needs("torch", "text")
    if device != "cpu" and cluster is None:
        from dpassay.text.models.training import usable

        device = usable(device).type
    named = specification(model, python, mechanism, settings, device)
    from dpassay.text.rewriters.rewriting import Order

    value, true = epsilon_of(*asked[:2])
    if named.settings.get("mechanism") == "none" and (value is not None or asked[2]):
        raise InputError("without noise there is no epsilon: leave --epsilon and --delta out")
    return Order(str(named), value, asked[2], true)


def _check_published(rewriter: Rewriter, allowed: bool) -> None:
    """Refuse a rewriter whose claim does not hold, unless that is wanted."""
    guarantee = rewriter.guarantee
    if guarantee.holds or allowed:
        return
    from dpassay.text.rewriters.base import describe
    from dpassay.text.rewriters.rewriting import WHY_NOT

    if describe(rewriter).get("mechanism") == "adept-as-published":
        raise InputError(WHY_NOT)
    raise InputError(f"this rewriter is not as private as claimed: {guarantee}. To run it anyway, add --as-published.")


def _at_workers(order: Order, stated: dict[str, Any], several: bool) -> Callable[[list[str]], list[str]]:
    """The same work in another process, with the same model; several of them do not compete for the cores."""
    from dpassay.text.rewriters.catalogue import Specification
    from dpassay.text.rewriters.rewriting import rewritten

    named = Specification.read(order.rewriter)
    if Path(named.name).is_dir():
        named = Specification(str(Path(named.name).absolute()), named.settings)
    sha256 = stated.get("model", {}).get("sha256")
    return partial(rewritten, replace(order, rewriter=str(named), sha256=sha256, threads=1 if several else None))


def _check_files(source: Path | None, out: Path | None, statement: Path | None) -> None:
    """Check before anything is written that the input exists, and that it is not overwritten."""
    check_writable(out, statement)
    if source is not None and (source.is_dir() or not os.access(source, os.R_OK)):
        raise InputError(f"cannot read {source}: give a file of utterances, one per line")
    places = [path.resolve() for path in (source, out, statement) if path is not None]
    if len(set(places)) < len(places):
        raise InputError("--in, --out and --statement must be different files: one would be written over another")


def _form(source: Path | None, out: Path | None, column: str) -> Lines | Table:
    """How the input is read and the output written: as lines, or as tables, by the files' suffixes."""
    from dpassay.text.corpora.records import TABLES, Lines, Table

    allowed = ", ".join(TABLES)
    into_table = out is not None and out.suffix.lower() in TABLES
    if source is None or source.suffix.lower() not in TABLES:
        if into_table:
            raise InputError(f"{out} would be a table, but lines come in: give --in a file ending in {allowed}")
        if column:
            raise InputError(f"--column is for files ending in {allowed}; lines have no columns")
        return Lines(str(source or "the input"))
    if out is not None and not into_table:
        raise InputError(
            f"{source} is a table, and {out} would be lines: give --out the ending {allowed}, or make lines of it "
            f"first: dpassay corpus --corpus {source} --out lines.txt"
        )
    return Table(source, out, column)


def _about_columns(form: Lines | Table) -> dict[str, str]:
    """What a statement says about a table's columns; users read it as well."""
    from dpassay.text.corpora.records import Lines

    if isinstance(form, Lines):
        return {}
    if not form.named:
        note(f"{form.source} has no header: what comes before the first separator is the label, the rest is the text")
    note(f"only {form.rewritten!r} is rewritten: other columns stay as they are, and the guarantee does not cover them")
    return {"column": form.rewritten, "other_columns": "as they were; the guarantee does not cover them"}


def _behind(out: Path, statement: Path | None, stated: dict[str, Any], form: Lines | Table) -> int:
    """How many texts are already rewritten, if in the same way; an incomplete record is removed."""
    try:
        before = json.loads((statement or out).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{statement} does not say how {out} was made: start again with another file") from None
    if before != json.loads(json.dumps(stated)):
        raise InputError(
            f"{out} was rewritten with other options, see {statement}: give the same ones, or another file"
        )
    with out.open("r+b") as file:
        number, whole = form.finished(file)
        file.truncate(whole)
    return number


def _rewrite_texts(
    work: Callable[[Iterable[list[str]]], Iterator[list[str]]],
    form: Lines | Table,
    source: Path | None,
    out: Path | None,
    done: int,
) -> None:
    from dpassay.text.rewriters.rewriting import in_groups

    number = done
    with ExitStack() as files:
        stream: IO[bytes] = sys.stdin.buffer if source is None else files.enter_context(source.open("rb"))
        target: IO[bytes] = sys.stdout.buffer if out is None else files.enter_context(out.open("ab"))
        total = 0 if source is None else source.stat().st_size
        tell = files.enter_context(progress_bar(total or 1)) if out is not None else None
        read = 0

        def counted() -> Iterator[bytes]:
            nonlocal read
            for line in stream:
                read += len(line)
                yield line

        texts = form.texts(counted(), done)
        if sum(1 for _ in islice(texts, done)) < done:
            raise InputError(f"the input has fewer {form.unit} than {out}: it is not the one that was being rewritten")
        try:
            for group in work(in_groups(texts)):
                target.write(form.written(group).encode("utf-8"))
                target.flush()
                number += len(group)
                if tell is not None:
                    tell(read, max(total, read), f"{number:,} {form.unit}")
            target.write(form.written([]).encode("utf-8"))  # a header without records
        except KeyboardInterrupt:
            kept = f"{number:,} {form.unit} are in {out}. To continue, add --resume"
            how = "no file was changed" if out is None else kept
            print(f"interrupted; {how}", file=sys.stderr)
            raise typer.Exit(130) from None
    if out is not None:
        note(f"{number:,} {form.unit} in {out}")


def reconstruct(
    text: Annotated[str, typer.Argument(help="A rewritten text.")],
    candidates: Annotated[Path, typer.Option(help="A file of possible original texts, one per line.")],
    model: RewriterName = None,
    python: RewriterPath = None,
    mechanism: MechanismName = None,
    settings: RewriterSettings = None,
    epsilon: ReleaseEpsilon = None,
    true_epsilon: TrueEpsilon = None,
    delta: ReleaseDelta = None,
    draws: Annotated[
        int | None, typer.Option(help="Number of rewritings to learn from. Default: 400 per candidate.")
    ] = None,
    most: Annotated[int, typer.Option(help="How many candidates to show.")] = 10,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Guess the original of a rewritten text: the attack that 'dpassay audit --model' uses.

    Where the rewriter knows the probability of what it writes, the guess is the best that anybody can make. Otherwise
    the attack learns from rewritings of the candidates.

    \b
    Examples:
      dpassay reconstruct 'on april first i need a ticket' --model models/atis --mechanism adept-as-published \\
        --candidates atis.txt --epsilon 100
    """
    if most < 1:
        raise InputError(f"--most must be 1 or more, got {most}")
    from dpassay.cli.audit import read_inputs

    known = list(dict.fromkeys(str(line) for line in read_inputs(candidates)))
    order = _order(model, python, mechanism, settings, (epsilon, true_epsilon, delta), "cpu", None)
    from dpassay.text.reconstruction import attack_on, ranking
    from dpassay.text.rewriters.rewriting import opened

    attacked = opened(order)
    with progress_bar(draws or 1) as bar:
        attack = attack_on(attacked, known, draws, seed, bar)
    rows = ranking(attack, known, text, most, seed)
    if as_json:
        print_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    from dpassay.errors import harmless

    with_likelihood = any("log_likelihood" in row for row in rows)
    table = Table("probability", *(["log-likelihood"] if with_likelihood else []), "candidate", box=None)
    table.header_style = "bold"
    for row in rows:
        likely = [f"{math.exp(row['log_probability']):.3%}"]
        likely += [f"{row['log_likelihood']:.1f}"] if with_likelihood else []
        table.add_row(*likely, Text(harmless(str(row["candidate"]))))
    print_rich(table)
