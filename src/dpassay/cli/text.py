"""The commands for text systems: make a corpus, train a model, rewrite lines, and guess what a line was."""

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
    from dpassay.text.rewriters.base import Rewriter
    from dpassay.text.rewriters.rewriting import Order

Corpus = Annotated[
    str,
    typer.Option(
        "--corpus", help="A .csv (label,text), .jsonl, .iob or .txt file, 'flights' for the shipped one, or hf:NAME."
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="cpu, or cuda if available.")]


def corpus(
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .jsonl, or .txt for the texts alone.")],
    source: Annotated[str, typer.Option("--corpus", help="What to read; see 'dpassay train --help'.")] = "flights",
    lines: Annotated[int | None, typer.Option(help="Number of utterances; for another corpus, the first ones.")] = None,
    seed: Seed = 0,
) -> None:
    """Write the shipped corpus of flight-booking utterances, or convert another corpus.

    \b
    Examples:
      dpassay corpus --out flights.csv --lines 2000
      dpassay corpus --corpus atis.iob --out atis.jsonl
      dpassay corpus --corpus atis.csv --out lines.txt      input for 'dpassay rewrite'
    """
    from dpassay.text.corpora.corpus import read_corpus, write_corpus
    from dpassay.text.corpora.flights import flights

    check_writable(out)
    if out.exists():
        raise InputError(f"{out} exists already; give another file")
    if lines is not None and lines < 2:
        raise InputError(f"a corpus needs 2 utterances or more, got {lines}")
    found = flights(lines or 5000, seed) if source == "flights" else read_corpus(source)[:lines]
    write_corpus(found, out)
    note(f"{len(found):,} utterances written to {out}")


def rewrite(
    model: RewriterName = None,
    python: RewriterPath = None,
    mechanism: MechanismName = None,
    settings: RewriterSettings = None,
    epsilon: ReleaseEpsilon = None,
    true_epsilon: TrueEpsilon = None,
    delta: ReleaseDelta = None,
    source: Annotated[Path | None, typer.Option("--in", help="The lines to rewrite. Default: standard input.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file for the rewritten lines. Default: standard output.")
    ] = None,
    statement: Annotated[
        Path | None, typer.Option(help="The file that states the guarantee. Default: OUT.json, next to the output.")
    ] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Allow a published mechanism although its claim does not hold.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue after the lines that are already in OUT.")] = False,
    device: Device = "cpu",
    workers: Workers = None,
    cluster: ClusterAddress = None,
    names: Annotated[bool, typer.Option("--list", help="List the rewriters that have a name, and stop.")] = False,
) -> None:
    """Rewrite texts, one per line and in the same order, so that each is protected by differential privacy.

    The guarantee is for one text. What it covers and what it rests on is written as JSON next to the output. Empty
    lines, unknown words and very long lines are texts like any other.

    \b
    Examples:
      dpassay rewrite --model models/adept --epsilon 50 --in in.txt --out out.txt
      echo 'book a flight to rome' | dpassay rewrite --model models/adept --mechanism l1 --epsilon 500
      dpassay rewrite --model models/adept --mechanism none --in in.txt --out same.txt --workers 4
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
    stated["input"] = "standard input" if source is None else source.name  # no more: its fingerprint would be a leak
    done = _behind(out, statement, stated) if resume and out is not None else 0
    work: Callable[[list[str]], list[str]] = partial(released, rewriter)
    if workers is not None or cluster is not None:
        work = _at_workers(order, stated, several=workers != 1)
    with closing(make_executor(workers, cluster)) as executor:
        print(f"guarantee: {rewriter.guarantee}", file=sys.stderr)
        if statement is not None and not resume:
            write_whole(statement, json.dumps(stated, indent=1, ensure_ascii=False) + "\n")
        _rewrite_lines(partial(executor.map, work), source, out, done)


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
    """What is to be done, as plain data. The device is checked here; a cluster's workers find out for themselves."""
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
    """Refuse what does not hold what it claims, unless that is wanted."""
    guarantee = rewriter.guarantee
    if guarantee.holds or allowed:
        return
    from dpassay.text.rewriters.base import describe
    from dpassay.text.rewriters.rewriting import WHY_NOT

    if describe(rewriter).get("mechanism") == "adept-as-published":
        raise InputError(WHY_NOT)
    raise InputError(f"this rewriter is not as private as claimed: {guarantee}. To run it anyway, add --as-published.")


def _at_workers(order: Order, stated: dict[str, Any], several: bool) -> Callable[[list[str]], list[str]]:
    """The same work in another process, with the same model; several of them do not fight for the cores."""
    from dpassay.text.rewriters.catalogue import Specification
    from dpassay.text.rewriters.rewriting import rewritten

    named = Specification.read(order.rewriter)
    if Path(named.name).is_dir():
        named = Specification(str(Path(named.name).absolute()), named.settings)
    sha256 = stated.get("model", {}).get("sha256")
    return partial(rewritten, replace(order, rewriter=str(named), sha256=sha256, threads=1 if several else None))


def _check_files(source: Path | None, out: Path | None, statement: Path | None) -> None:
    """Find out before anything is written whether the input is there, and that nothing is written over it."""
    check_writable(out, statement)
    if source is not None and (source.is_dir() or not os.access(source, os.R_OK)):
        raise InputError(f"cannot read {source}: give a file of utterances, one per line")
    places = [path.resolve() for path in (source, out, statement) if path is not None]
    if len(set(places)) < len(places):
        raise InputError("--in, --out and --statement must be different files: one would be written over another")


def _behind(out: Path, statement: Path | None, stated: dict[str, Any]) -> int:
    """How many lines are rewritten already, if they were rewritten in the same way; half a line is cut off."""
    try:
        before = json.loads((statement or out).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{statement} does not say how {out} was made: start again with another file") from None
    if before != json.loads(json.dumps(stated)):
        raise InputError(
            f"{out} was rewritten with other options, see {statement}: give the same ones, or another file"
        )
    with out.open("r+b") as file:
        number = whole = 0
        for line in file:
            if line.endswith(b"\n"):
                number, whole = number + 1, whole + len(line)
        file.truncate(whole)
    return number


def _rewrite_lines(
    work: Callable[[Iterable[list[str]]], Iterator[list[str]]], source: Path | None, out: Path | None, done: int
) -> None:
    from dpassay.text.rewriters.rewriting import in_groups, lines_of

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

        lines = lines_of(counted(), str(source or "the input"))
        if sum(1 for _ in islice(lines, done)) < done:
            raise InputError(f"the input has fewer lines than {out}: it is not the one that was being rewritten")
        try:
            for group in work(in_groups(lines)):
                target.write("".join(f"{line}\n" for line in group).encode("utf-8"))
                target.flush()
                number += len(group)
                if tell is not None:
                    tell(read, max(total, read), f"{number:,} lines")
        except KeyboardInterrupt:
            kept = f"{number:,} lines are in {out}. To continue, add --resume"
            how = "no file was changed" if out is None else kept
            print(f"interrupted; {how}", file=sys.stderr)
            raise typer.Exit(130) from None
    if out is not None:
        note(f"{number:,} lines in {out}")


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
