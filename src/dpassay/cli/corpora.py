"""The command for corpora: write the shipped one, of any length, or convert another."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from dpassay.cli.common import check_writable, in_words, note, progress_bar
from dpassay.cli.text import Seed
from dpassay.errors import InputError

SAMPLE = 300  # utterances generated to estimate how long all of them take
TELL_EVERY = 1000
SOON = 1.0  # seconds; longer jobs are announced


def corpus(
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .tsv, .jsonl, or .txt for the texts alone.")],
    source: Annotated[str, typer.Option("--corpus", help="What to read; see 'dpassay train --help'.")] = "flights",
    lines: Annotated[int | None, typer.Option(help="Number of utterances; for another corpus, the first ones.")] = None,
    seed: Seed = 0,
) -> None:
    """Write the shipped corpus of flight-booking utterances, or convert another corpus.

    \b
    Examples:
      dpassay corpus --out flights.csv --lines 2000
      dpassay corpus --corpus atis.iob --out atis.jsonl
      dpassay corpus --corpus train.csv --out train.tsv
      dpassay corpus --corpus sst2:validation --out sst2.csv      a data set from the hub
      dpassay corpus --corpus atis.csv --out lines.txt            the texts alone, one per line
    """
    from dpassay.text.corpora.corpus import SHIPPED, read_corpus, write_corpus

    check_writable(out)
    if out.exists():
        raise InputError(f"{out} exists already; give another file")
    if lines is not None and lines < 2:
        raise InputError(f"a corpus needs 2 utterances or more, got {lines}")
    if source in SHIPPED:
        number = lines or 5000
        _write_shipped(out, number, seed, names=source == "bookings")
    else:
        found = read_corpus(source)[:lines]
        write_corpus(found, out)
        number = len(found)
    note(f"{number:,} utterances written to {out}")


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
