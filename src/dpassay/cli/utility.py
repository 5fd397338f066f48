"""The utility command: what rewritten text is still good for, at the ε that is really kept."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import (
    AsJson,
    check_writable,
    command_line,
    needs,
    note,
    print_json,
    print_rich,
    progress_bar,
)
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.text.corpora.utterance import Utterance
    from dpassay.text.utility import Row

TEST_SHARE = 0.2  # of a corpus that comes without test texts

ModelFolder = Annotated[Path, typer.Option("--model", help="Folder of a trained autoencoder.", show_default=False)]
Corpus = Annotated[
    str,
    typer.Option(help="Texts with labels to rewrite and train on: a file, flights or hf:NAME.", show_default=False),
]
Test = Annotated[
    str | None, typer.Option(help="Texts with labels to test on. Default: a fifth of the corpus is held out.")
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", help="gaussian, l1, sqrt-n or adept-as-published; repeatable. Default: all."),
]
Epsilons = Annotated[
    list[str] | None, typer.Option("--epsilon", "-e", help="Repeatable. Default: 1, 10, 100 and 1000.")
]
Delta = Annotated[float, typer.Option("--delta", "-d", help="For Gaussian noise; the others guarantee pure DP.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Limit = Annotated[
    int | None, typer.Option(help="Train on at most this many utterances, and test on as many. Default: all.")
]
Csv = Annotated[Path | None, typer.Option(help="Write all numbers to this file.")]
Drawing = Annotated[Path | None, typer.Option(help="Plot them to this file (.svg, .pdf or .png).")]
Save = Annotated[Path | None, typer.Option(help="Save rows to this file as they are finished, for --resume.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the measurement in the --save file.")]


def utility(
    model: ModelFolder,
    corpus: Corpus,
    test: Test = None,
    mechanism: Mechanisms = None,
    epsilon: Epsilons = None,
    delta: Delta = 1e-6,
    seed: Seed = 0,
    limit: Limit = None,
    as_json: AsJson = False,
    csv: Csv = None,
    figure: Drawing = None,
    save: Save = None,
    resume: Resume = False,
) -> None:
    """Measure the utility of rewritten text, next to its true epsilon.

    Texts are rewritten by each mechanism at each epsilon. A classifier for their labels is trained on the rewritten
    texts and tested on original and on rewritten ones. BLEU and the share of unchanged utterances show how close the
    rewritten test texts are to the original ones. The noise comes from numpy: this is a measurement, not a release.

    \b
    Examples:
      dpassay utility --model model --corpus flights:2000
      dpassay utility --model model --corpus train.csv --test test.csv --figure utility.svg
      dpassay utility --model model --corpus train.csv --mechanism gaussian -e 50 -e 200 --limit 500 --json
      dpassay utility --model model --corpus train.csv --save utility.json --resume
    """
    _check_options(save, resume, limit, figure, csv)
    steps = None if epsilon is None else [_number(text) for text in epsilon]
    rows: list[Row] = []
    asked: dict[str, Any] = {}
    interrupted = False
    needs("torch", "text")
    try:
        from dpassay.text import utility as measuring
        from dpassay.text.rewriters.adept import load
        from dpassay.text.rewriters.release import MECHANISMS

        trained = load(model)
        train, held_out = _texts(corpus, test, seed, limit)
        asked = measuring.question(trained, train, held_out, seed)
        done = measuring.load(save, asked) if resume and save is not None and save.exists() else []
        chosen = (mechanism or MECHANISMS, steps or measuring.EPSILONS, delta, seed)
        with progress_bar(1) as bar:
            for row in measuring.measure(trained, train, held_out, *chosen, progress=bar, done=done):
                rows.append(row)
                if save is not None:
                    measuring.save(save, asked, _merged(done, rows))
    except KeyboardInterrupt:
        interrupted = True
    _show(rows, {"command": command_line(), "asked": asked, "complete": not interrupted}, as_json, csv, figure)
    if interrupted:
        kept = f"they are kept in {save}; to continue, add --resume" if save else "with --save FILE they would be kept"
        print(f"interrupted after {len(rows)} rows; {kept}", file=sys.stderr)
        raise typer.Exit(130)


def _check_options(save: Path | None, resume: bool, limit: int | None, figure: Path | None, csv: Path | None) -> None:
    """Find out before the work is done whether its result can be written."""
    if resume and save is None:
        raise InputError("--resume needs --save FILE, the file of the measurement to continue")
    if save is not None and save.exists() and not resume:
        raise InputError(f"{save} exists already: continue it with --resume, or save to another file")
    if limit is not None and limit < 2:
        raise InputError(f"limit must be 2 or more utterances, got {limit}")
    if figure is not None:
        from dpassay.report.gallery import check_suffix

        check_suffix(figure)
    check_writable(save, csv, figure)


def _texts(corpus: str, test: str | None, seed: int, limit: int | None) -> tuple[list[Utterance], list[Utterance]]:
    from dpassay.text.corpora.corpus import read_corpus, split

    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    train = read_corpus(corpus)
    if test is not None:
        held_out = read_corpus(test)
    else:
        train, held_out = split(train, seed, (1 - TEST_SHARE, TEST_SHARE))
    return _some(train, limit, seed), _some(held_out, limit, seed)


def _some(utterances: Sequence[Utterance], limit: int | None, seed: int) -> list[Utterance]:
    """So many utterances at most, drawn from all of them and left in their order.

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


def _merged(done: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """All rows, each once: those of this run, and of the file those that it did not ask for."""
    now = {row.key for row in rows}
    return [*rows, *(row for row in done if row.key not in now)]


def _show(rows: Sequence[Row], about: dict[str, Any], as_json: bool, csv: Path | None, figure: Path | None) -> None:
    if as_json:
        print_json({"schema": "dpassay/utility/1", **about, "rows": [row.to_dict() for row in rows]})
    if not rows:
        return
    from dpassay.core.files import write_whole
    from dpassay.report.utility import utility_csv, utility_figure, utility_table

    if not as_json:
        print_rich(utility_table(rows))
    if csv is not None:
        write_whole(csv, utility_csv(rows))
        note(f"{csv} written")
    if figure is not None:
        write_whole(figure, utility_figure(rows, figure.suffix.removeprefix(".").lower()))
        note(f"{figure} written")
