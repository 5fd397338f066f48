"""Files that are written completely or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from dpassay.errors import InputError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a temporary file next to the target and then rename it: an interruption leaves the old file intact.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "x.txt"), "all of it")
    ...     [path.name for path in Path(folder).iterdir()]
    ['x.txt']
    """
    write_pieces(path, [content])


def write_pieces(path: Path, pieces: Iterable[str | bytes]) -> None:
    """The same for a file that is written piece by piece, and need not fit into memory.

    A folder that is missing is made. A link keeps pointing to its file, which is replaced. A device or a pipe is
    written to: it must not be replaced.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            with path.open("wb") as file:
                _write(file, pieces)
            return
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with partial.open("wb") as file:
                _write(file, pieces)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _write(file: BinaryIO, pieces: Iterable[str | bytes]) -> None:
    for piece in pieces:
        file.write(piece.encode("utf-8") if isinstance(piece, str) else piece)
