"""What the commands share: how they print, what they check before they start, and their common options."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.completion import complete_claim, complete_neighbours, complete_pipeline
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.claims.claim import Claim
    from dpassay.compute.executors import Executor
    from dpassay.evidence.verdict import Verdict

ClaimName = Annotated[
    str | None,
    typer.Argument(
        help="A published claim (see 'dpassay gallery'), or a .toml file with your own claim.",
        autocompletion=complete_claim,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        "--pipeline",
        help="The mechanism as text; 'dpassay check --stages' lists its stages.",
        autocompletion=complete_pipeline,
    ),
]
Settings = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE for a name in the pipeline; repeatable.")]
Dim = Annotated[int | None, typer.Option(help="Dimension of the vectors.")]
ClaimedEpsilon = Annotated[str | None, typer.Option("--epsilon", "-e", help="The claimed epsilon.")]
ClaimedDelta = Annotated[str | None, typer.Option("--delta", "-d", help="The claimed delta; 0 for pure DP.")]
ClaimedMetric = Annotated[
    str | None,
    typer.Option("--metric", help="Metric DP: epsilon per unit of distance in l1, l2, linf, angle or mahalanobis."),
]
ClaimedOrder = Annotated[
    str | None, typer.Option("--order", help="Rényi DP: epsilon is the divergence of this order; inf is pure DP.")
]
ClaimedRho = Annotated[str | None, typer.Option("--rho", help="The claimed rho of zCDP, instead of epsilon.")]
ClaimedMu = Annotated[str | None, typer.Option("--mu", help="The claimed mu of Gaussian DP, instead of epsilon.")]
Relation = Annotated[
    str | None,
    typer.Option(
        help="any, word, words(n), tokens(n), element, replace-record, add-remove-record, user, entity, user-entity, "
        "group(n) or query. Default: what the stages suggest.",
        autocompletion=complete_neighbours,
    ),
]
People = Annotated[int | None, typer.Option(help="Number of people in the data; warns unless delta is well below 1/N.")]
Page = Annotated[Path | None, typer.Option("--html", help="Write a self-contained HTML report.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON on stdout.")]
RequireDecision = Annotated[bool, typer.Option("--require-decision", help="Exit with code 3 if the verdict is open.")]
Python = Annotated[
    str | None,
    typer.Option("--python", help="A Python object, package.module:name or package.module:Class.method."),
]
Interpreter = Annotated[
    str | None,
    typer.Option(help="Run the --python code with this interpreter, from another environment that has numpy."),
]
Command = Annotated[str | None, typer.Option("--command", help="A program that answers JSON lines; docs/subjects.md.")]
Url = Annotated[str | None, typer.Option("--url", help="An HTTP endpoint that answers POSTed JSON; docs/subjects.md.")]
Workers = Annotated[int | None, typer.Option(help="Number of local processes. Default: work in this process.")]
ClusterAddress = Annotated[
    str | None,
    typer.Option("--cluster", help="The address of a Dask scheduler, such as tcp://127.0.0.1:8786."),
]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, or numpy (no kernels).")]


LINE_EVERY = 10.0  # seconds between lines of progress without a terminal; later ones are further apart
LINES_PER_TIME = 0.1  # of the time so far
MOST_DIGITS = 40  # of a count

Progress = Callable[[int, int, str], None]  # how much is done, of how much, and what is being done
_quiet = False


def be_quiet(quiet: bool = True) -> None:
    """Turn progress and notes off, or on again."""
    global _quiet
    _quiet = quiet


def note(text: str) -> None:
    """A sentence on stderr, such as which file was written; not with --quiet."""
    if not _quiet:
        print(text, file=sys.stderr)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr, on a terminal; otherwise a line, if it takes longer."""
    if _quiet:
        yield
        return
    if not sys.stderr.isatty():
        said = threading.Timer(LINE_EVERY, lambda: print(f"{what} …", file=sys.stderr, flush=True))
        said.daemon = True
        said.start()
        try:
            yield
        finally:
            said.cancel()
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def progress_bar(total: int) -> Iterator[Progress | None]:
    """A bar on stderr with the time left; without a terminal, an occasional line; None with --quiet."""
    if _quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield progress_lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total)

        def tell(done: int, of: int, what: str) -> None:
            bar.update(task, completed=done, total=max(done, of), description=what)

        yield tell


def progress_lines(clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress as plain lines on stderr: how far it is, what is being done, and the time left."""
    begun = said = clock()
    first: int | None = None

    def tell(done: int, of: int, what: str) -> None:
        nonlocal said, first
        first = done if first is None or done < first else first
        now = clock()
        if now - said < max(LINE_EVERY, LINES_PER_TIME * (now - begun)):
            return
        said = now
        left = f", about {in_words((now - begun) / (done - first) * (of - done))} left" if first < done < of else ""
        print(f"{what}: {done:,} of {max(done, of):,}{left}", file=sys.stderr, flush=True)

    return tell


def in_words(seconds: float) -> str:
    """A duration, in readable precision.

    >>> in_words(7.4), in_words(200), in_words(6000), in_words(1e6), in_words(1e9)
    ('7 s', '3 min', '1 h 40 min', '12 days', '32 years')
    """
    minutes, days = round(seconds / 60), round(seconds / 86_400)
    if days >= 3:
        return f"{days} days" if days < 1000 else f"{days / 365.25:,.0f} years"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60:,} h {minutes % 60} min"


def command_line() -> str:
    """The command line, for a page to show how it was made. Values of headers, which may be secret, are left out."""
    words = ["dpassay", *sys.argv[1:]]
    for i, word in enumerate(words):
        if words[i - 1] == "--header" or word.startswith("--header="):
            words[i] = f"{word.partition(':')[0]}: ***"
    return shlex.join(words)


def write_page(text: str, path: Path) -> None:
    """Write a page and report it."""
    from dpassay.core.files import write_whole

    write_whole(path, text)
    note(f"{path} written")


def print_json(data: Any) -> None:
    """Data on stdout."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_rich(renderable: Any) -> None:
    """Something rich on stdout."""
    from rich.console import Console

    Console().print(renderable)


def finish(verdict: Verdict, as_json: bool, require_decision: bool) -> None:
    """Print a verdict and end with its exit code; 130 is what a shell gives for Ctrl-C."""
    if as_json:
        print_json(verdict.to_dict())
    else:
        print_rich(verdict)
    code = 3 if verdict.word == "open" and require_decision else verdict.exit_code
    raise typer.Exit(130 if verdict.interrupted and verdict.word == "open" else code)


def check_writable(*paths: Path | None) -> None:
    """Check before the work is done whether its result can be written; a folder that is missing is made."""
    given = [path for path in paths if path is not None]
    for path in given:
        if path.is_dir():
            raise InputError(f"cannot write {path}: it is a folder; name a file")
        if path.exists() and not path.is_file():  # a device or a pipe
            if not os.access(path, os.W_OK):
                raise InputError(f"cannot write {path}: permission denied")
        else:
            _make_folder(path)
        if given.count(path) > 1:
            raise InputError(f"cannot write two results to {path}: name two files")


def _make_folder(path: Path) -> None:
    folder = path.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: its folder cannot be created ({error.strerror or error})") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: its folder is not writable")


def check_stages(pipeline: str | None, command: str) -> None:
    """Refuse the name of a published claim, or of a file, as the text of a pipeline: it would be judged instead."""
    if pipeline is None:
        return
    from dpassay.claims.registry import REGISTRY

    text = pipeline.strip()
    if text in REGISTRY or text.endswith(".toml"):
        instead = f"for the claim, use 'dpassay {command} {text}'"
        raise InputError(f"--pipeline takes stages with their arguments, such as laplace(1); {instead}")


def read_values(settings: list[str] | None, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options epsilon, delta and dim, which NAME=VALUE settings may give too, and the other settings."""
    values: dict[str, Any] = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"--set takes NAME=VALUE, got {setting!r}")
        if name.strip() in values:
            raise InputError(f"--set gives {name.strip()} twice")
        values[name.strip()] = value.strip()
    if "eps" in values:
        raise InputError("eps has its own option: use --epsilon")
    for name in [name for name in options if name in values]:
        if options[name] is not None:
            raise InputError(f"{name} is given twice, with --{name} and with --set")
        given: Any = values.pop(name)
        if name == "dim":
            given = whole_number(given)
        options = {**options, name: given}
    return options, values


def whole_number(given: str | int) -> int:
    """A count in any usual notation.

    >>> whole_number("1e5"), whole_number("2.5e3"), whole_number("100_000"), whole_number("-3")
    (100000, 2500, 100000, -3)
    >>> whole_number("1.5")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: 1.5 is not a whole number; give one such as 100000 or 1e5
    """
    with suppress(InvalidOperation, ValueError):
        number = Decimal(given)
        if number.is_finite() and number.adjusted() < MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    raise InputError(f"{str(given)[:60]} is not a whole number; give one such as 100000 or 1e5")


INPUTS = "--pair '[X, Y]', --inputs FILE, --region STAGES, --text TEXT or --candidates FILE"
FLAGS = "bits|fixed|hostile|lines|odd_words|resume|seed_all|shrink|until_refuted"  # options without a value


def as_options(message: str) -> str:
    """A message of the library, which names arguments, in terms of the command line.

    >>> as_options("pass dim=N"), as_options("pass parameters={'C': VALUE}"), as_options("resume=True needs save=FILE")
    ('pass --dim N', 'pass --set C=VALUE', '--resume needs --save FILE')
    >>> as_options("search_runs must be a whole number"), as_options("in one way, not in 2: pairs and text")
    ('--search-runs must be a whole number', 'in one way, not in 2: --pair and --text')
    >>> as_options("until_refuted=True stops early, bits=False ignores them, unknown='repr' reads its repr")
    '--until-refuted stops early, --no-bits ignores them, --unknown repr reads its repr'
    >>> as_options("--model madlib,vocabulary=FILE, or vocabulary=FILE")  # a setting of the rewriter stays one
    '--model madlib,vocabulary=FILE, or --vocabulary FILE'
    """
    message = message.replace("given as parameters", "given with --set")
    message = re.sub(r"parameters=\{'(\w+)': VALUE\}", r"--set \1=VALUE", message)
    message = re.sub(r"\b(?:check|audit|verify|trace)\(\.\.\., (\w+=[\w-]+)\)", r"\1", message)
    message = message.replace("pairs=[(X, Y)], or more inputs", "--pair '[X, Y]', or --inputs FILE")
    message = message.replace("pairs=[(X, Y)], or inputs, a region, a text, or candidates", INPUTS)
    message = re.sub(rf"\b({FLAGS})=(True|False)\b", _as_flag, message)
    message = message.replace("leave neighbours out", "leave --neighbours out")
    message = message.replace("give workers or a cluster, not both", "give --workers or --cluster, not both")
    message = re.sub(r"^(alpha|runs|search_runs|seed|workers) (?=must be |is an error )", _as_subject, message)
    message = re.sub(r"(?<=in one way, not in )(\d): ([a-z ]+)$", _as_sources, message)
    message = re.sub(r"\b(text|unknown|neighbours)='([^']*)'", _as_quoted, message)
    message = re.sub(r"(?<!,)\b(vocabulary|unknown)=(FILE|RULE)\b", r"--\1 \2", message)
    return re.sub(r"(?<![?&\w])(epsilon|delta|dim|runs|save)=(1e-5|1|10000|N|VALUE|FILE)\b", r"--\1 \2", message)


def _as_flag(found: re.Match[str]) -> str:
    return f"--{'' if found[2] == 'True' else 'no-'}{found[1].replace('_', '-')}"


def _as_subject(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')} "


def _as_sources(found: re.Match[str]) -> str:
    names = (f"--{'pair' if name == 'pairs' else name}" for name in found[2].split(" and "))
    return f"{found[1]}: {' and '.join(names)}"


def _as_quoted(found: re.Match[str]) -> str:
    return f"--{found[1]} {shlex.quote(found[2])}"


def check_claimed(epsilon: Any, delta: Any) -> None:
    """Refuse an impossible ε or δ. An ε of 0 is possible: by an output that is independent of the input."""
    from dpassay.core.guarantee import make_guarantee

    if epsilon is not None:
        make_guarantee(epsilon, delta or 0)


def claim_named(name: str) -> Claim:
    """A claim of the registry, or of the user's .toml file."""
    if name.endswith(".toml"):
        from dpassay.claims.toml import read_claim

        return read_claim(name)
    from dpassay.claims.registry import find

    return find(name)


def needs(package: str, extra: str) -> None:
    """Check that a package of an extra is installed; otherwise the error shows the command that installs it."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise InputError(f"this needs {package}, which is not installed: pip install 'dpassay[{extra}]'")


def usable_device(device: str, cluster: str | None = None) -> str:
    """The device that is used when this one is requested; if it is another one, a note says so.

    A cluster's workers determine it themselves.
    """
    from dpassay.compute.devices import usable

    used, sentence = usable(device)
    if cluster is not None:
        return device
    if sentence:
        note(sentence)
    return used


@contextmanager
def executor_of(workers: int | None, cluster: str | None) -> Iterator[Executor | None]:
    """The requested workers; None if there are none."""
    if workers is None and cluster is None:
        yield None
        return
    from dpassay.compute.workers import make_executor

    executor = make_executor(workers, cluster)
    try:
        yield executor
    finally:
        executor.close()


def close(mechanism: Any) -> None:
    """End a program or a connection, if the mechanism is one."""
    if hasattr(mechanism, "close"):
        mechanism.close()
