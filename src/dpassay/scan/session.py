"""One scan as a user asks for it: a place or a package, some rules, a baseline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from dpassay.errors import InputError, MechanismError
from dpassay.scan.findings import Scan, read_baseline
from dpassay.scan.rules import RULES
from dpassay.scan.scanning import Progress, scan_and_index

REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(==[0-9][A-Za-z0-9.+!]*)?")
LONGEST_FETCH = 600  # seconds that pip may take


def scan(
    place: str | os.PathLike[str] | None = None,
    *,
    package: str | None = None,
    only: Sequence[str] = (),
    baseline: str | os.PathLike[str] | None = None,
    tests: bool = False,
    run: bool = False,
    work: str | os.PathLike[str] = "dpassay-scan",
    progress: Progress | None = None,
) -> Scan:
    """Read a folder, a file, a wheel or a package, and report what the rules find; nothing of it is executed.

    With `run`, each mechanism is then run in a process with limits, and audited; programs and results are kept in the
    folder `work`, so that an interrupted run continues where it stopped.

    A package is `NAME` for one that is installed here, or `NAME==VERSION`, which pip downloads without running it.
    """
    if (place is None) == (package is None):
        raise InputError("name what to scan: a folder, a file or a wheel, or a package with --package NAME==VERSION")
    for rule in only:
        if rule not in RULES:
            from difflib import get_close_matches

            near = get_close_matches(rule, RULES, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"there is no rule {rule!r}.{hint} docs/scan.md lists them")
    known = read_baseline(Path(baseline)) if baseline is not None else []
    if package is not None:
        with fetched(package) as found:
            result, index = scan_and_index(found, subject=package, tests=tests, progress=progress)
    else:
        result, index = scan_and_index(Path(place or "."), tests=tests, progress=progress)
    if run and not result.interrupted:
        from dpassay.scan.running.runner import run_mechanisms

        python = _environment(package) if package is not None and "==" in package else ()
        root = None if package is not None else _root(Path(place or "."))
        result = run_mechanisms(result, index, Path(work), root=root, python=python, progress=progress)
    if only:
        result = result.only(only)
    return result.without(known) if known else result


@contextmanager
def fetched(package: str) -> Iterator[Path]:
    """The place of a package: installed here, or downloaded as a wheel into a folder of its own."""
    match = REQUIREMENT.fullmatch(package)
    if match is None:
        raise InputError(f"{package!r} is not a package; write NAME or NAME==VERSION")
    if match[2] is None:
        try:
            spec = find_spec(match[1].replace("-", "_"))
        except (ImportError, ValueError):
            spec = None
        if spec is not None and (spec.submodule_search_locations or spec.origin):
            yield Path(next(iter(spec.submodule_search_locations or [spec.origin or ""])))
            return
    with tempfile.TemporaryDirectory(prefix="dpassay-scan-") as folder:
        yield _download(package, Path(folder))


def _download(package: str, folder: Path) -> Path:
    """The package's wheel; where there is none, its source archive is not built, since that would run it."""
    pip = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command = [*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(folder), package]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=LONGEST_FETCH
        )
    except subprocess.TimeoutExpired:
        raise MechanismError(f"pip did not fetch {package} within {LONGEST_FETCH} s") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["it said nothing"]
        said = errors[-1].removeprefix("ERROR: ")
        raise MechanismError(f"pip cannot fetch a wheel of {package}: {said}; unpack its source and scan the folder")
    return wheels[0]


def _root(place: Path) -> Path:
    """The folder from which the scanned modules are imported."""
    folder = place.resolve() if place.is_dir() else place.resolve().parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def _environment(package: str) -> list[str]:
    """The interpreter of an environment that pip makes for a package, as `dpassay packages` does."""
    from dpassay.packages.environment import Environment, default_folder
    from dpassay.packages.record import Record

    name, _, version = package.partition("==")
    record = Record(
        name="scan",
        package=name,
        version=version,
        mechanism="all",
        epsilon=1,
        pair=[0, 1],
        neighbours="any",
        source="scan",
        why="scan",
        subject="pass",
    )
    environment = Environment.of(record, default_folder())
    environment.make(record)
    return [str(environment.python), "-I"]
