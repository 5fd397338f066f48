"""The command for corpora: write the shipped one, of any length, convert another, or count what is in one."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpassay.cli.common import AsJson, check_writable, in_words, note, print_json, progress_bar
from dpassay.cli.text.rewrite import Seed
from dpassay.errors import InputError, counted

if TYPE_CHECKING:
    from dpassay.text.corpora.utterance import Utterance

SAMPLE = 300  # utterances generated to estimate how long all of them take
TELL_EVERY = 1000
SOON = 1.0  # seconds; longer jobs are announced


def corpus(
    out: Annotated[
        Path | None, typer.Option(help="The file to write: .csv, .tsv, .jsonl, or .txt for the texts alone.")
    ] = None,
    source: Annotated[str, typer.Option("--corpus", help="What to read; see 'dpassay train --help'.")] = "flights",
    lines: Annotated[int | None, typer.Option(help="Number of utterances; for another corpus, the first ones.")] = None,
    counted: Annotated[
        bool, typer.Option("--statistics", help="Print the lengths, the vocabulary and the size of the search space.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write the shipped corpus of flight-booking utterances, convert another corpus, or count what is in one.

    \b
    Examples:
      dpassay corpus --out flights.csv --lines 2000
      dpassay corpus --corpus atis.iob --out atis.jsonl
      dpassay corpus --corpus train.csv --out train.tsv
      dpassay corpus --corpus sst2:validation --out sst2.csv      a data set from the hub
      dpassay corpus --corpus atis.csv --out lines.txt            the texts alone, one per line
      dpassay corpus --corpus atis.csv --statistics               lengths, vocabulary, search space
    """
    from dpassay.text.corpora.corpus import SHIPPED, read_corpus, write_corpus
    from dpassay.text.corpora.flights import endless

    if out is None and not counted:
        raise InputError("specify --out FILE to write a corpus, --statistics to count it, or both")
    if as_json and not counted:
        raise InputError("--json prints the statistics: specify --statistics too")
    check_writable(out)
    if out is not None and out.exists():
        raise InputError(f"{out} exists already; give another file")
    if lines is not None and lines < 2:
        raise InputError(f"a corpus needs 2 utterances or more, got {lines}")
    number, names = lines or 5000, source == "bookings"
    found: Iterable[Utterance] = ()
    if source in SHIPPED:
        if out is not None:
            _write_shipped(out, number, seed, names)
        if counted:
            found = islice(endless(seed, names), number)
    else:
        found = read_corpus(source)[:lines]
        number = len(found)
        if out is not None:
            write_corpus(found, out)
    if out is not None:
        note(f"{number:,} utterances written to {out}")
    if counted:
        _print_statistics(found, as_json)


def _print_statistics(utterances: Iterable[Utterance], as_json: bool) -> None:
    from dpassay.text.corpora.statistics import statistics

    found = statistics(utterances)
    if as_json:
        print_json({**asdict(found), "log10_search_space": found.log10_search_space})
        return
    exponent = math.floor(found.log10_search_space)
    size = f"{10 ** (found.log10_search_space - exponent):.1f}e{exponent}"
    apart = f" ({found.split_vocabulary:,} if words are split before apostrophes)"
    print(f"utterances    {found.utterances:,}, {found.different:,} of them different")
    print(f"length        {found.shortest:,} to {counted(found.longest, 'word')}, {found.mean:.2f} on average")
    print(f"vocabulary    {counted(found.vocabulary, 'word')}{apart * (found.split_vocabulary != found.vocabulary)}")
    print(f"search space  {found.vocabulary:,}^{found.longest:,}, about {size} sequences of words")


def _write_shipped(out: Path, number: int, seed: int, names: bool) -> None:
    """Write utterances as they are generated, without keeping them."""
    from dpassay.core.files import write_pieces
    from dpassay.text.corpora.corpus import pieces_of
    from dpassay.text.corpora.flights import endless

    begun = time.perf_counter()
    sample = list(islice(pieces_of(endless(seed, names), out), min(SAMPLE, number)))
    seconds = (time.perf_counter() - begun) / len(sample) * number
    _announce(out, number, seconds, sum(len(piece.encode()) for piece in sample) / len(sample) * number)

    with progress_bar(number) as tell:

        def told() -> Iterator[str]:
            pieces = pieces_of(islice(endless(seed, names), number), out)
            for done, piece in enumerate(pieces):
                yield piece
                if tell is not None and done % TELL_EVERY == 0:
                    tell(done, number, "utterances")

        write_pieces(out, told())


def _announce(out: Path, number: int, seconds: float, size: float) -> None:
    """Report how long it will take and how large the file will be; refuse if the disk has no room."""
    free = shutil.disk_usage(out.parent).free
    needed = f"{number:,} utterances need about {size_in_words(size)} and {in_words(seconds)}"
    if size > free:
        raise InputError(
            f"{needed}, but {out.parent.absolute()} has room for {size_in_words(free)}: give fewer --lines (at most "
            f"about {int(number * free / size):,}), or a file on another disk"
        )
    if seconds > SOON:
        note(needed)


def size_in_words(size: float) -> str:
    """A number of bytes, in readable precision.

    >>> size_in_words(640), size_in_words(2.34e6), size_in_words(1.2e14)
    ('640 bytes', '2.3 MB', '120.0 TB')
    """
    if size < 1000:
        return f"{size:.0f} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 1000 or unit == "TB":
            break
    return f"{size:,.1f} {unit}"
