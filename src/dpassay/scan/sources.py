"""The files to read: a folder, a file, a wheel, or an installed package. A file that cannot be read is a sentence."""

from __future__ import annotations

import ast
import os
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dpassay.errors import InputError
from dpassay.scan.reading.index import Module

MOST_BYTES = 2_000_000  # of one file; larger ones are tables written as code
MOST_FILES = 200_000
SKIPPED_FOLDERS = {
    "__pycache__",
    ".git",
    ".hg",
    "node_modules",
    "site-packages",
    ".venv",
    "venv",
    ".tox",
    "build",
    "dist",
}
TESTS = {"tests", "test", "testing"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: the path that reports show, its dotted name, and its bytes."""

    file: str
    module: str
    content: bytes
    is_package: bool = False


@dataclass(slots=True)
class Skipped:
    """What was not read, and why."""

    sentences: list[str] = field(default_factory=list)


def sources(place: Path, skipped: Skipped, tests: bool = False) -> Iterator[SourceFile]:
    """The Python files at a place, one after the other, so that memory does not grow with their number."""
    if place.is_file() and place.suffix == ".py":
        yield from _file(place, str(place), place.stem, skipped)
    elif place.is_file() and place.suffix in (".whl", ".zip"):
        yield from _wheel(place, skipped, tests)
    elif place.is_dir():
        yield from _folder(place, skipped, tests)
    elif not place.exists():
        raise InputError(f"there is no {place}: name a folder, a .py file or a wheel, or use --package NAME==VERSION")
    else:
        raise InputError(f"cannot scan {place}: name a folder, a .py file or a wheel")


def _folder(place: Path, skipped: Skipped, tests: bool) -> Iterator[SourceFile]:
    count = 0
    for folder, names, files in os.walk(place):
        names[:] = sorted(one for one in names if one not in SKIPPED_FOLDERS and not one.startswith("."))
        if not tests:
            names[:] = [one for one in names if one not in TESTS]
        for name in sorted(files):
            if not name.endswith(".py") or (not tests and is_test(name)):
                continue
            count += 1
            if count > MOST_FILES:
                skipped.sentences.append(f"only the first {MOST_FILES:,} files of {place} were read")
                return
            path = Path(folder) / name
            yield from _file(path, str(path), _dotted(path), skipped)


def is_test(name: str) -> bool:
    """Whether a file name is that of a test, whose fixed seeds are right."""
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def _dotted(path: Path) -> str:
    """The dotted name of a file: as far up as folders are packages."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.resolve().parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or path.resolve().parent.name


def _file(path: Path, shown: str, module: str, skipped: Skipped) -> Iterator[SourceFile]:
    try:
        if path.stat().st_size > MOST_BYTES:
            skipped.sentences.append(f"{shown} was not read: it has more than {MOST_BYTES:,} bytes")
            return
        content = path.read_bytes()
    except OSError as error:
        skipped.sentences.append(f"{shown} cannot be read: {error.strerror}")
        return
    yield SourceFile(shown, module, content, path.name == "__init__.py")


def _wheel(place: Path, skipped: Skipped, tests: bool) -> Iterator[SourceFile]:
    try:
        with zipfile.ZipFile(place) as archive:
            for info in archive.infolist():
                path = Path(info.filename)
                if path.suffix != ".py" or (not tests and (TESTS & set(path.parts) or is_test(path.name))):
                    continue
                if info.file_size > MOST_BYTES:
                    skipped.sentences.append(f"{info.filename} was not read: it has more than {MOST_BYTES:,} bytes")
                    continue
                parts = path.parts[:-1] if path.name == "__init__.py" else path.with_suffix("").parts
                yield SourceFile(info.filename, ".".join(parts), archive.read(info), path.name == "__init__.py")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError(f"{place} cannot be read as a wheel: {error}") from None


def parse(source: SourceFile, skipped: Skipped) -> Module | None:
    """A file as a syntax tree; None, with a sentence, where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.content, source.file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        skipped.sentences.append(f"{source.file}{line} is not valid Python and was not read: {what}")
        return None
    return Module(source.file, source.module, tree, source.content.decode("utf-8", "replace"), source.is_package)
