"""The utility command: how useful rewritten text still is, and what it reveals, at the ε that really holds."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import (
    AsJson,
    Page,
    check_writable,
    command_line,
    needs,
    note,
    print_json,
    progress_bar,
    working,
    write_page,
)
from dpassay.errors import InputError, counted

if TYPE_CHECKING:
    from dpassay.compute.executors import Executor
    from dpassay.text.corpora.utterance import Utterance
    from dpassay.text.measurements import Measurement
    from dpassay.text.utility import Bench

TEST_SHARE = 0.2  # of a corpus without test texts
NO_ENCODER = "none"

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A rewriter: a name, or the folder of a trained model, with settings: santext,vocabulary=glove.txt; "
        "repeatable.",
        show_default=False,
    ),
]
Pythons = Annotated[
    list[str] | None,
    typer.Option("--python", help="A rewriter of your own, package.module:name; repeatable.", show_default=False),
]
Corpus = Annotated[
    str,
    typer.Option(help="Texts with labels to rewrite and train on: a file, flights or hf:NAME.", show_default=False),
]
Test = Annotated[
    str | None, typer.Option(help="Texts with labels to test on. Default: a fifth of the corpus is held out.")
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", help="Of each --model, the same as --model MODEL,mechanism=NAME; repeatable."),
]
Epsilons = Annotated[list[str] | None, typer.Option("--epsilon", "-e", help="As the authors define it; repeatable.")]
TrueEpsilons = Annotated[
    list[str] | None,
    typer.Option(help="The epsilon that holds for one text; repeatable. Default, without --epsilon: 10, 100 and 1000."),
]
Delta = Annotated[float | None, typer.Option("--delta", "-d", help="For rewriters that have one. Default: their own.")]
Seed = Annotated[int, typer.Option(help="The first seed. The same seed gives the same numbers.")]
Seeds = Annotated[int, typer.Option(help="With five or more, each metric gets an interval over seeds.")]
Limit = Annotated[
    int | None, typer.Option(help="Train on at most this many utterances, and test on as many. Default: all.")
]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="minilm, a folder, a hub name, or none. Default: minilm if installed.")
]
Perplexity = Annotated[bool, typer.Option("--perplexity", help="Measure fluency under a small language model: slow.")]
Candidates = Annotated[int, typer.Option(help="Test texts among which an attacker looks for the true one; 0: none.")]
GuessNumber = Annotated[int, typer.Option("--guesses", help="Guesses of the attacker, for each rewriter and seed.")]
Workers = Annotated[int | None, typer.Option(help="Number of local processes. Default: one per core.")]
Csv = Annotated[Path | None, typer.Option(help="Write all numbers to this file.")]
Drawing = Annotated[Path | None, typer.Option(help="Plot them to this file (.svg, .pdf or .png).")]
Save = Annotated[Path | None, typer.Option(help="Save measurements to this file as they are finished, for --resume.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the measurement in the --save file.")]


def utility(
    corpus: Corpus,
    model: Models = None,
    python: Pythons = None,
    mechanism: Mechanisms = None,
    test: Test = None,
    epsilon: Epsilons = None,
    true_epsilon: TrueEpsilons = None,
    delta: Delta = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    limit: Limit = None,
    encoder: EncoderName = None,
    perplexity: Perplexity = False,
    candidates: Candidates = 50,
    guesses: GuessNumber = 500,
    workers: Workers = None,
    save: Save = None,
    resume: Resume = False,
    as_json: AsJson = False,
    csv: Csv = None,
    figure: Drawing = None,
    html: Page = None,
) -> None:
    """Measure the utility of rewritten text, next to its true epsilon.

    Texts are rewritten by each rewriter at each epsilon. Classifiers for their labels are trained on the rewritten
    texts and tested on original and on rewritten ones; BLEU, chrF and the similarity of sentence vectors show how close
    the rewritten test texts are to the original ones. The report also shows how often an attacker identifies the
    original text. The randomness is numpy's: this is a measurement, not a release.

    \b
    Examples:
      dpassay utility --model models/adept --corpus flights:2000
      dpassay utility --model models/adept --mechanism l1 --mechanism gaussian --corpus train.csv --test test.csv
      dpassay utility --model santext,vocabulary=glove.txt --python my.package:Rewriter --corpus train.csv -e 1 -e 10
      dpassay utility --model models/adept --corpus train.csv --seeds 5 --save u.json --resume --html utility.html
    """
    _check_options(save, resume, limit, figure, csv, html)
    rewriters = _rewriters(model, python, mechanism)
    asked = [_number(text) for text in epsilon or ()], [_number(text) for text in true_epsilon or ()]
    _check_seeds(seed, seeds)
    needs("torch", "text")
    from dpassay.text.utility import Bench, UtilityOptions

    if perplexity:
        from dpassay.text.models.language_models import SMOLLM2, tokenizer_of

        tokenizer_of(SMOLLM2)  # anything missing is reported now
    options = UtilityOptions(_usable(encoder), perplexity, candidates, guesses)
    bench = Bench.of(*_texts(corpus, test, seed, limit), options)
    kept = _Kept(bench, save, resume)
    interrupted = False
    try:
        with closing(_executor(workers)) as executor:
            _measure(kept, rewriters, asked, delta, range(seed, seed + seeds), executor)
    except KeyboardInterrupt:
        interrupted = True
    _show(kept, not interrupted, as_json, csv, figure, html)
    if interrupted:
        told = f"they are kept in {save}; to continue, add --resume" if save else "with --save FILE they would be kept"
        print(f"interrupted after {len(kept.now)} measurements; {told}", file=sys.stderr)
        raise typer.Exit(130)


class _Kept:
    """The measurements of this run, and in the file those of earlier ones."""

    def __init__(self, bench: Bench, save: Path | None, resume: bool) -> None:
        from dpassay.text.measurements import load

        self.bench, self.path, self.asked = bench, save, bench.question()
        self.before = load(save, self.asked) if resume and save is not None and save.exists() else []
        self.now: list[Measurement] = []

    def add(self, one: Measurement) -> None:
        from dpassay.text.measurements import save

        self.now.append(one)
        if self.path is not None:
            keys = {known.key for known in self.now}
            save(self.path, self.asked, [*self.now, *(known for known in self.before if known.key not in keys)])


def _measure(
    kept: _Kept,
    rewriters: Sequence[str],
    asked: tuple[list[float], list[float]],
    delta: float | None,
    seeds: Sequence[int],
    executor: Executor,
) -> None:
    from dpassay.text.planning import plan
    from dpassay.text.utility import cells, in_order, measure

    with working("looking at the rewriters"):
        subjects, notes = plan(rewriters, *asked, delta, executor)
    for sentence in notes:
        note(sentence)
    try:
        with progress_bar(1) as bar:
            for one in measure(kept.bench, subjects, seeds, executor, bar, kept.before):
                kept.add(one)
    finally:
        kept.now = in_order(kept.now, cells(subjects, seeds))


def _executor(workers: int | None) -> Executor:
    """Processes, or this process if one is enough."""
    from dpassay.compute.executors import cores
    from dpassay.compute.workers import make_executor

    number = cores() if workers is None else workers
    return make_executor() if number == 1 else make_executor(number)


def _rewriters(models: list[str] | None, pythons: list[str] | None, mechanisms: list[str] | None) -> list[str]:
    """All requested rewriters, each model with each mechanism.

    >>> _rewriters(["adept"], ["my:Own"], ["l1", "none"])
    ['adept,mechanism=l1', 'adept,mechanism=none', 'my:Own']
    """
    if not models and not pythons:
        raise InputError("name a rewriter: --model NAME, --model FOLDER or --python package.module:name")
    if mechanisms and not models:
        raise InputError("--mechanism is for --model: name one")
    from dpassay.text.rewriters.catalogue import Specification

    takes = {name: Specification.read(name).takes("mechanism") for name in models or () if mechanisms}
    if not all(takes.values()):
        other = next(name for name, known in takes.items() if not known)
        fitting = [name for name, known in takes.items() if known]
        right = [f"--model {name},mechanism={one}" for name in fitting for one in mechanisms or ()]
        hint = f": write {' '.join([*right, f'--model {other}'])}" if right else ": leave --mechanism out"
        raise InputError(f"{other} has no mechanism to choose, and --mechanism applies to every --model{hint}")
    named = [f"{name},mechanism={one}" for name in models or () for one in mechanisms or ()]
    return [*(named if mechanisms else models or ()), *(pythons or ())]


def _check_options(save: Path | None, resume: bool, limit: int | None, figure: Path | None, *more: Path | None) -> None:
    """Check before the work is done whether its result can be written."""
    if resume and save is None:
        raise InputError("--resume needs --save FILE, the file of the measurement to continue")
    if save is not None and save.exists() and not resume:
        raise InputError(f"{save} exists already: continue it with --resume, or save to another file")
    if limit is not None and limit < 2:
        raise InputError(f"limit must be 2 or more utterances, got {limit}")
    if figure is not None:
        from dpassay.report.claims.gallery import check_suffix

        check_suffix(figure)
    check_writable(save, figure, *more)


def _check_seeds(seed: int, seeds: int) -> None:
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    if not 1 <= seeds <= 10_000:
        raise InputError(f"--seeds must be from 1 to 10,000, got {seeds}")
    from dpassay.text.measurements import LEAST_SEEDS

    if 1 < seeds < LEAST_SEEDS:
        note(f"warning: {seeds} seeds are too few for an interval; take one, or at least {LEAST_SEEDS}")


def _usable(encoder: str | None) -> str | None:
    """The encoder to be used; by default one that is installed, and a note if there is none."""
    from dpassay.text.models.encoders import MINILM, sentence_encoder
    from dpassay.text.utility import usable_encoder

    if encoder == NO_ENCODER:
        return None
    if encoder is not None:
        return sentence_encoder(encoder).name  # any problem with it is reported now
    found, sentence = usable_encoder(MINILM)
    if sentence:
        note(sentence)
    return found


def _texts(corpus: str, test: str | None, seed: int, limit: int | None) -> tuple[list[Utterance], list[Utterance]]:
    from dpassay.text.corpora.corpus import read_corpus, split

    train = read_corpus(corpus)
    if test is not None:
        held_out = read_corpus(test)
    else:
        train, held_out = split(train, seed, (1 - TEST_SHARE, TEST_SHARE))
    return _some(train, limit, seed), _some(held_out, limit, seed)


def _some(utterances: Sequence[Utterance], limit: int | None, seed: int) -> list[Utterance]:
    """At most `limit` utterances, drawn from all of them and kept in order.

    >>> len(_some("abcdefgh", 3, 0)), _some("abc", 3, 0), _some("abc", None, 0)
    (3, ['a', 'b', 'c'], ['a', 'b', 'c'])
    """
    if limit is None or limit >= len(utterances):
        return list(utterances)
    rng = random.Random(f"dpassay utility {seed}")
    drawn = sorted((rng.random(), place) for place in range(len(utterances)))[:limit]
    return [utterances[place] for place in sorted(place for _, place in drawn)]


def _number(text: str) -> float:
    """An ε that was typed.

    >>> _number("ten")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: epsilon must be a number, got 'ten'
    """
    with suppress(ValueError):
        return float(text)
    raise InputError(f"epsilon must be a number, got {text!r}")


def _show(kept: _Kept, complete: bool, as_json: bool, csv: Path | None, figure: Path | None, html: Path | None) -> None:
    from dpassay.core.files import write_whole
    from dpassay.report.utility import utility_csv, utility_figure, utility_tables
    from dpassay.text.measurements import rows_of, to_data

    rows = rows_of(kept.now)
    if as_json:
        about = {"command": command_line(), "complete": complete}
        print_json({**to_data(kept.asked, kept.now), **about, "rows": [row.to_dict() for row in rows]})
    if not rows:
        return
    if not as_json:
        _print(lambda width: utility_tables(rows, width))
    if csv is not None:
        write_whole(csv, utility_csv(rows))
        note(f"{csv} written")
    if figure is not None:
        write_whole(figure, utility_figure(rows, figure.suffix.removeprefix(".").lower()))
        note(f"{figure} written")
    if html is not None:
        from dpassay.report.pages.page import utility_page

        write_page(utility_page(rows, _facts(kept.bench), command_line()), html)


def _print(tables: Any) -> None:
    from rich.console import Console

    console = Console()
    for i, table in enumerate(tables(console.width)):
        if i:
            console.print()
        console.print(table)


def _facts(bench: Bench) -> list[tuple[str, str]]:
    """What a page says about the texts."""
    guesses = counted(bench.options.guesses, "guess", "guesses")
    return [
        ("trained on", f"{counted(len(bench.train), 'text')} with {counted(len(set(bench.labels)), 'label')}"),
        ("tested on", counted(len(bench.test), "text")),
        ("encoder", bench.options.encoder or "none"),
        ("the attacker", f"{guesses} among {counted(len(bench.candidates), 'test text')}"),
    ]
