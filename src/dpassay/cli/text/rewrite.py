"""The command that rewrites texts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import (
    ClusterAddress,
    Workers,
    check_writable,
    needs,
    note,
    print_rich,
    progress_bar,
    working,
)
from dpassay.cli.text.rewriters import (
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
from dpassay.errors import InputError, MechanismError

if TYPE_CHECKING:
    from dpassay.text.corpora.records import AuthorLimit, RecordLines, Table
    from dpassay.text.rewriters.base import Rewriter, TextGuarantee
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
LEFT_OUT = "records_without_text"  # in a statement


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
        bool, typer.Option("--as-published", help="Allow a rewriter although its claim does not hold.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="With --python: audit the declared epsilon first, with 5,000 runs.")
    ] = False,
    skip_invalid: Annotated[
        bool,
        typer.Option("--skip-invalid", help="Leave out and count records of a .jsonl file without a text."),
    ] = False,
    per_author: Annotated[
        int | None,
        typer.Option(help="Rewrite at most this many records of each author, and leave out the others."),
    ] = None,
    author: Annotated[
        str, typer.Option(help="With --per-author: the author's column. Default: user, user_id, speaker or author.")
    ] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Continue after what is already in OUT.")] = False,
    device: Device = "cpu",
    workers: Workers = None,
    cluster: ClusterAddress = None,
    names: Annotated[bool, typer.Option("--list", help="List the named rewriters and exit.")] = False,
) -> None:
    """Rewrite texts, one per line and in the same order, so that each is protected by differential privacy.

    The guarantee is for one text, or with --per-author for all texts of an author. What it covers and what it rests on
    is written as JSON next to the output. Empty lines, unknown words and very long lines are texts like any other. Of a
    .csv, .tsv or .jsonl file the column text is rewritten; all others stay as they are, and the guarantee does not
    cover them. The guarantee of a rewriter of your own is what it declares: it is not checked, except that its
    randomness must differ from run to run.

    \b
    Examples:
      dpassay rewrite --model models/adept --epsilon 50 --in in.txt --out out.txt
      echo 'book a flight to rome' | dpassay rewrite --model models/adept --mechanism l1 --epsilon 500
      dpassay rewrite --model models/adept --mechanism none --in in.txt --out same.txt --workers 4
      dpassay rewrite --model models/adept --epsilon 50 --in train.csv --out rewritten.csv      labels are kept
      dpassay rewrite --model models/adept --epsilon 50 --in in.jsonl --column question --out out.jsonl
      dpassay rewrite --model models/adept --epsilon 50 --in mail.jsonl --per-author 5 --out out.jsonl
      dpassay rewrite --python mymodule:rewriter --true-epsilon 100 --check --in in.txt --out out.txt
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
    form = _form(source, out, column, skip_invalid, _author_limit(per_author, author, source))
    if check and python is None:
        raise InputError("--check is for a rewriter of your own, --python; for others see 'dpassay check --model'")
    order = order_of(model, python, mechanism, settings, (epsilon, true_epsilon, delta), device, cluster)
    from dpassay.compute.workers import make_executor
    from dpassay.core.files import write_whole
    from dpassay.text.rewriters.base import covering, released
    from dpassay.text.rewriters.base import statement as state
    from dpassay.text.rewriters.rewriting import opened

    with progress_bar(1) if order.true else working("reading the model") as bar:
        rewriter = opened(order, bar)
    guarantee = covering(_guarantee_of(order, rewriter, check), per_author, getattr(rewriter, "weights", None))
    with working("reading the model"):
        stated = state(rewriter, guarantee)
    if why := _check_published(rewriter, guarantee, as_published):
        stated["allowed_by"] = f"--as-published: {why}"
    stated["input"] = "standard input" if source is None else source.name  # no fingerprint, which would be a leak
    stated |= _about_columns(form)
    done = None
    if resume and out is not None:
        stated, done = _behind(out, statement, stated, form)
    work: Callable[[list[str]], list[str]] = partial(released, rewriter, who=order.rewriter)
    if workers is not None or cluster is not None:
        work = _at_workers(order, stated, several=workers != 1)
    with closing(make_executor(workers, cluster)) as executor:
        note(f"guarantee: {guarantee}")
        for sentence in guarantee.not_covered:
            note(f"  {sentence}")
        if statement is not None:
            write_whole(statement, json.dumps(stated, indent=1, ensure_ascii=False) + "\n")
        _rewrite_texts(partial(executor.map, work), form, source, out, done)


def _guarantee_of(order: Order, rewriter: Rewriter, check: bool) -> TextGuarantee:
    """The guarantee to be stated: for somebody's own rewriter what it declares, and what is seen of that."""
    from dpassay.text.rewriters.rewriting import with_randomness_seen

    guarantee = order.guarantee_of(rewriter)
    if not guarantee.declared_by:
        return guarantee
    try:
        with working("looking whether its randomness is fixed"):
            guarantee = with_randomness_seen(order, rewriter, guarantee)
    except (InputError, MechanismError) as error:  # it may be made for other texts
        note(f"whether its randomness is fixed was not tested: {error}")
    if not check or guarantee.doubt:
        return guarantee
    from dpassay.core.interval import outward
    from dpassay.text.systems import audit_declared

    with progress_bar(1) as bar, redirect_stdout(sys.stderr):
        verdict = audit_declared(rewriter, guarantee, bar)
    if verdict.refuted:
        least = outward(verdict.epsilon.lower, -1, 4)
        shown = f"epsilon is at least {least}, with an error probability of at most {verdict.alpha:g}"
        return replace(guarantee, doubt=f"an audit of {verdict.runs:,} runs refuted it: {shown}")
    return replace(guarantee, audit=f"not refuted by an audit of {verdict.runs:,} runs on texts about flights")


def _list_rewriters() -> None:
    from rich.table import Table

    from dpassay.text.rewriters.catalogue import names

    table = Table("rewriter", "what it is", box=None, header_style="bold")
    for name, about in names().items():
        table.add_row(name, about)
    print_rich(table)


def order_of(
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

        device = usable(device, note).type
    named = specification(model, python, mechanism, settings, device)
    from dpassay.text.rewriters.rewriting import Order

    value, true = epsilon_of(*asked[:2])
    if named.settings.get("mechanism") == "none" and (value is not None or asked[2]):
        raise InputError("without noise there is no epsilon: leave --epsilon and --delta out")
    return Order(str(named), value, asked[2], true)


def _check_published(rewriter: Rewriter, guarantee: TextGuarantee, allowed: bool) -> str:
    """Why a rewriter needs --as-published, or an empty text: refused without it, as published or with a false claim."""
    from dpassay.text.rewriters.base import describe
    from dpassay.text.rewriters.rewriting import WHY_NOT

    mechanism = describe(rewriter).get("mechanism")
    if (guarantee.holds and not guarantee.as_published) or mechanism == "none":  # no noise, by name
        return ""
    if allowed:
        return guarantee.why_not or "the mechanism is used as its authors published it"
    if mechanism == "adept-as-published":
        raise InputError(WHY_NOT)
    raise InputError(f"the guarantee would be: {guarantee}. To run it anyway, add --as-published.")


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


def _author_limit(most: int | None, column: str, source: Path | None) -> AuthorLimit | None:
    from dpassay.text.corpora.records import TABLES, AuthorLimit

    if most is None:
        if column:
            raise InputError("--author is for --per-author N, the number of records of an author that are rewritten")
        return None
    if source is None or source.suffix.lower() not in TABLES:
        allowed = ", ".join(TABLES)
        raise InputError(f"--per-author needs to know whose each text is: give --in a file ending in {allowed}")
    return AuthorLimit(most, column)


def _form(
    source: Path | None, out: Path | None, column: str, skip_invalid: bool, authors: AuthorLimit | None
) -> RecordLines | Table:
    """How the input is read and the output written: as lines, or as tables, by the files' suffixes."""
    from dpassay.text.corpora.records import TABLES, RecordLines, Table

    allowed = ", ".join(TABLES)
    into_table = out is not None and out.suffix.lower() in TABLES
    if skip_invalid and (source is None or source.suffix.lower() != ".jsonl"):
        raise InputError("--skip-invalid is for a .jsonl file, whose objects may lack a text: give one with --in")
    if source is None or source.suffix.lower() not in TABLES:
        if into_table:
            raise InputError(f"{out} would be a table, but lines come in: give --in a file ending in {allowed}")
        if column:
            raise InputError(f"--column is for files ending in {allowed}; lines have no columns")
        return RecordLines(str(source or "the input"))
    if out is not None and not into_table:
        raise InputError(
            f"{source} is a table, and {out} would be lines: give --out the ending {allowed}, or make lines of it "
            f"first: dpassay corpus --corpus {source} --out lines.txt"
        )
    return Table(source, out, column, skip_invalid, authors)


def _about_columns(form: RecordLines | Table) -> dict[str, str]:
    """What a statement says about a table's columns; users read it as well."""
    from dpassay.text.corpora.records import RecordLines

    if isinstance(form, RecordLines):
        return {}
    if not form.named:
        note(f"{form.source} has no header: what comes before the first separator is the label, the rest is the text")
    note(f"only {form.rewritten!r} is rewritten: other columns stay as they are, and the guarantee does not cover them")
    left_out = {LEFT_OUT: "left out"} if form.skip_invalid else {}
    if form.authors is not None:
        left_out["records_of_an_author"] = f"all but the first {form.authors.most:,} left out"
        left_out["author_column"] = form.authors.column or "user, user_id, speaker or author"
    return {"column": form.rewritten, "other_columns": "as they were; the guarantee does not cover them", **left_out}


def _behind(
    out: Path, statement: Path | None, stated: dict[str, Any], form: RecordLines | Table
) -> tuple[dict[str, Any], int]:
    """The statement, and how many texts are already rewritten, if in the same way.

    Records without a text may be left out from now on: such a record may be why the rewriting ended.
    """
    try:
        before = json.loads((statement or out).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{statement} does not say how {out} was made: start again with another file") from None
    now, free = json.loads(json.dumps(stated)), {"input": "", LEFT_OUT: ""}
    if not isinstance(before, dict) or before | free != now | free:
        raise InputError(
            f"{out} was rewritten with other options, see {statement}: give the same ones, or another file"
        )
    with out.open("rb") as file:
        return before | now, form.finished(file)[0]


def _cut(out: Path, form: RecordLines | Table) -> None:
    """Remove an incomplete last record."""
    with out.open("r+b") as file:
        file.truncate(form.finished(file)[1])


def _rewrite_texts(
    work: Callable[[Iterable[list[str]]], Iterator[list[str]]],
    form: RecordLines | Table,
    source: Path | None,
    out: Path | None,
    done: int | None,
) -> None:
    """Rewrite all texts, or those after the first `done` ones, which are in the output already."""
    from dpassay.cli.text.resuming import Rewritten
    from dpassay.text.rewriters.rewriting import in_groups

    authors = getattr(form, "authors_digest", str)
    number, kept = done or 0, None if out is None else Rewritten(out, authors)
    with ExitStack() as files:
        stream: IO[bytes] = sys.stdin.buffer if source is None else files.enter_context(source.open("rb"))
        total = 0 if source is None else source.stat().st_size
        tell = files.enter_context(progress_bar(total or 1)) if out is not None else None
        read = 0

        def counted() -> Iterator[bytes]:
            nonlocal read
            for line in stream:
                read += len(line)
                yield line

        texts = form.texts(counted(), number)
        if kept is not None and done is not None:
            texts = kept.behind(texts, done)
            _cut(kept.out, form)
        elif kept is not None:
            kept.begin()
        target: IO[bytes] = sys.stdout.buffer if out is None else files.enter_context(out.open("ab"))
        groups = in_groups(texts)
        try:
            for group in work(groups if kept is None else kept.groups(groups)):
                target.write(form.written(group).encode("utf-8"))
                target.flush()
                number += len(group)
                if kept is not None:
                    kept.written()
                if tell is not None:
                    tell(read, max(total, read), f"{number:,} {form.unit}")
            target.write(form.written([]).encode("utf-8"))  # a header without records
        except KeyboardInterrupt:
            told = f"{number:,} {form.unit} are in {out}. To continue, add --resume"
            how = "no file was changed" if out is None else told
            print(f"interrupted; {how}", file=sys.stderr)
            raise typer.Exit(130) from None
    if kept is not None:
        kept.finish()
        note(f"{_counted(number, form.unit)} in {out}")
    if skipped := getattr(form, "skipped", 0):
        missing = "a text or an author" if getattr(form, "authors", None) else "a text"
        note(f"left out: {_counted(skipped, 'records')} without {missing}")
    if beyond := getattr(form, "beyond", 0):
        note(
            f"left out: {_counted(beyond, 'records')} beyond --per-author, whose authors have others that are rewritten"
        )


def _counted(number: int, units: str) -> str:
    """A number of lines or records.

    >>> _counted(1, "lines"), _counted(2000, "records")
    ('1 line', '2,000 records')
    """
    return f"{number:,} {units if number != 1 else units.removesuffix('s')}"
