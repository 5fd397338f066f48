"""The command line: a thin face. Results on stdout, progress and notes on stderr.

Exit codes: 0 proven or not refuted, 1 refuted (or a certificate that does not hold, or an unexpected
verdict in the gallery), 2 usage or bad input, 3 undecided where a decision was asked for, 4 the
mechanism itself failed.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.errors import CertificateError, DpassayError, InputError, MechanismError

if TYPE_CHECKING:
    from dpassay.verdict import Verdict

app = typer.Typer(
    name="dpassay",
    help="Is that epsilon real? Exact, re-checkable verdicts on differential-privacy claims.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich costs 0.1 s, a third of what --help may take
)
calibrate_app = typer.Typer(
    help="From a guarantee to the least noise that keeps it.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(calibrate_app, name="calibrate")

Epsilon = Annotated[str, typer.Option("--epsilon", "-e", help="The claimed epsilon.", show_default=False)]
Delta = Annotated[str, typer.Option("--delta", "-d", help="The claimed delta; 0 for pure DP.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON on stdout.")]


def main() -> None:
    """Run the command line; errors become one clear sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ε shows a question mark
    try:
        app()
    except MechanismError as error:
        _fail(error, 4)
    except CertificateError as error:
        _fail(error, 1)
    except DpassayError as error:
        _fail(error, 2)
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        _fail(InputError(f"cannot use {error.filename or 'a file'}: {error.strerror or error}"), 2)


def _fail(error: DpassayError, code: int) -> None:
    print(f"dpassay: {error}", file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def _working(what: str) -> Iterator[None]:
    """A spinner on stderr, where a person can see it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def _print(renderable: Any) -> None:
    from rich.console import Console

    Console().print(renderable)


def _writable(*paths: Path | None) -> None:
    """Find out before the work is done whether its result can be written."""
    for path in paths:
        if path is not None and (path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK)):
            raise InputError(f"cannot write {path}: its folder must exist and be writable")


def _values(settings: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"--set takes NAME=VALUE, got {setting!r}")
        if name.strip() in values:
            raise InputError(f"--set gives {name.strip()} twice")
        values[name.strip()] = value.strip()
    return values


def _claimed(epsilon: str | None, delta: str | None) -> None:
    """Refuse an ε of 0 at δ = 0: a claim that only a mechanism without output keeps is surely a slip."""
    from dpassay.guarantee import guarantee

    if epsilon is not None:
        promise = guarantee(epsilon, delta or 0)
        if promise.exact_epsilon == 0 and promise.exact_delta == 0:
            raise InputError(f"epsilon must be positive, got {epsilon}")


ClaimName = Annotated[str | None, typer.Argument(help="A published claim, see 'dpassay gallery'.")]
Text = Annotated[str | None, typer.Option("--pipeline", help="The mechanism as text; --stages lists what it may use.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE for a name in the text; repeatable.")]
Dim = Annotated[int | None, typer.Option(help="Dimension of the vectors.")]
ClaimedEpsilon = Annotated[str | None, typer.Option("--epsilon", "-e", help="The claimed epsilon.")]
ClaimedDelta = Annotated[str | None, typer.Option("--delta", "-d", help="The claimed delta; 0 for pure DP.")]
Relation = Annotated[
    str | None,
    typer.Option(help="any, word, replace-record, add-remove-record or query. Default: what the stages suggest."),
]
CertificateFile = Annotated[Path | None, typer.Option(help="Write a certificate for 'dpassay verify'.")]
RequireDecision = Annotated[bool, typer.Option("--require-decision", help="Exit with 3 if the verdict is open.")]
ListStages = Annotated[bool, typer.Option("--stages", help="List the stages a pipeline may have, and stop.")]
Answers = Annotated[
    list[str],
    typer.Argument(help="Each 'EPS', 'EPS,DELTA' or a pipeline; ' x N' behind it says that it is given N times."),
]


@app.command()
def check(
    name: ClaimName = None,
    pipeline: Text = None,
    settings: Settings = None,
    dim: Dim = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    neighbours: Relation = None,
    certificate: CertificateFile = None,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
    stages: ListStages = False,
) -> None:
    """Judge a claim: is the mechanism as private as it is said to be?

    \b
    Examples:
      dpassay check --pipeline 'clip(l2, C) | laplace(2*C/eps)' --set C=1 --dim 32 --epsilon 1
      dpassay check --pipeline 'query(l2, 1) | gaussian(sigma)' --set sigma=2 --epsilon 2 --delta 1e-5
      dpassay check adept --set C=2 --dim 1024 --json
    """
    if stages:
        from dpassay.report.terminal import stage_table

        return _print(stage_table())
    if (name is None) == (pipeline is None):
        raise InputError("give the name of a published claim, or a mechanism with --pipeline (not both)")
    _claimed(epsilon, delta)
    _writable(certificate)
    with _working("checking"):
        verdict = _verdict(name, pipeline, _values(settings or []), dim, epsilon, delta, neighbours)
    if certificate is not None:
        from dpassay.certificate import save

        with _working("writing the certificate"):
            save(verdict, certificate)
    if as_json:
        _print_json(verdict.to_dict())
    else:
        _print(verdict)
        if certificate is not None:
            print(f"certificate written to {certificate}", file=sys.stderr)
    if verdict.word == "open" and require_decision:
        raise typer.Exit(3)
    raise typer.Exit(verdict.exit_code)


def _verdict(
    name: str | None,
    pipeline: str | None,
    values: dict[str, str],
    dim: int | None,
    epsilon: str | None,
    delta: str | None,
    neighbours: str | None,
) -> Verdict:
    from dpassay.checking import check as judge

    subject: Any = pipeline
    if name is not None:
        from dpassay.claims import find

        subject = find(name)
    elif epsilon is None:
        raise InputError("say which epsilon is claimed: --epsilon 1")
    clash = {"epsilon", "delta", "dim", "eps", "subject", "neighbours"} & set(values)
    if clash:
        raise InputError(f"{min(clash)} has an option of its own: use --epsilon, --delta, --dim or --neighbours")
    return judge(subject, epsilon=epsilon, delta=delta, dim=dim, neighbours=neighbours, **values)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A certificate written by 'dpassay check --certificate'.")],
    as_json: AsJson = False,
) -> None:
    """Re-check a certificate with independent arithmetic, trusting nothing of the code that wrote it.

    Exit code 0 if every step holds, 1 if one does not, 2 if the file cannot be read.

    \b
    Example:
      dpassay check adept --certificate adept.json; dpassay verify adept.json
    """
    from dpassay.verification import verify as recheck

    with _working("re-checking"):
        result = recheck(file)
    if as_json:
        _print_json(
            {"holds": True, "verdict": result.verdict, "claim": result.claim, "steps": list(result.established)}
        )
        return
    for sentence in result.established:
        print(sentence)
    print(f"The certificate holds: {result.claim} is {result.verdict}.")


def _calibrated(stage: str, value: float, note: str, as_json: bool) -> None:
    if as_json:
        _print_json({"stage": f"{stage}({value!r})", "value": value, "guarantee": note})
    else:
        print(f"{stage}({value!r})  keeps {note}")


@calibrate_app.command("laplace")
def calibrate_laplace(
    epsilon: Epsilon,
    delta: Delta = "0",
    sensitivity: Annotated[str, typer.Option(help="l1 distance of two neighbours' answers.")] = "1",
    as_json: AsJson = False,
) -> None:
    """The least Laplace scale.

    \b
    Example:
      dpassay calibrate laplace --epsilon 0.5 --sensitivity 2
    """
    from dpassay.calibrate import laplace
    from dpassay.guarantee import guarantee

    scale = laplace(epsilon, delta, sensitivity)
    _calibrated("laplace", scale, f"{guarantee(epsilon, delta)} at l1 sensitivity {sensitivity}", as_json)


@calibrate_app.command("gaussian")
def calibrate_gaussian(
    epsilon: Epsilon,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The delta to keep, above 0.", show_default=False)],
    sensitivity: Annotated[str, typer.Option(help="l2 distance of two neighbours' answers.")] = "1",
    as_json: AsJson = False,
) -> None:
    """The least Gaussian standard deviation, exact for every epsilon.

    \b
    Example:
      dpassay calibrate gaussian --epsilon 10 --delta 1e-5
    """
    from dpassay.calibrate import gaussian
    from dpassay.guarantee import guarantee

    sigma = gaussian(epsilon, delta, sensitivity)
    _calibrated("gaussian", sigma, f"{guarantee(epsilon, delta)} at l2 sensitivity {sensitivity}", as_json)


@calibrate_app.command("flip")
def calibrate_flip(
    epsilon: Epsilon,
    bits: Annotated[int, typer.Option(help="How many bits can differ between two neighbours.")] = 1,
    categories: Annotated[int, typer.Option(help="How many categories, for one category instead of bits.")] = 2,
    as_json: AsJson = False,
) -> None:
    """The largest probability of keeping a bit or a category.

    \b
    Example:
      dpassay calibrate flip --epsilon 1 --bits 10
    """
    from dpassay.calibrate import flip
    from dpassay.guarantee import PureDP

    _claimed(epsilon, None)
    what = f"one of {categories} categories" if categories != 2 else f"{bits} bit{'s' * (bits > 1)}"
    _calibrated("flip", flip(epsilon, bits, categories), f"{PureDP(epsilon)} on {what}", as_json)


@app.command()
def compose(
    answers: Answers,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The total delta at which epsilon is stated.")] = "1e-6",
    dim: Dim = None,
    as_json: AsJson = False,
) -> None:
    """Add up the privacy loss of several answers about the same data: basic and exact side by side.

    \b
    Examples:
      dpassay compose '0.1 x 100' --delta 1e-6
      dpassay compose '1,1e-8 x 10' 'query(l2, 1) | gaussian(4) x 20'
    """
    from dpassay.composition import basic_epsilon, exact_epsilon, read_answer
    from dpassay.enclosure import number
    from dpassay.interval import Interval

    given = [read_answer(text, dim) for text in answers]
    with _working("composing"):
        at = number(delta)
        if at.a < 0 or at.b >= 1:
            raise InputError(f"delta must be from 0 up to, not including, 1, got {delta}")
        exact, simple = Interval.around(exact_epsilon(given, at)), Interval.around(basic_epsilon(given, at))
    count = sum(answer.count for answer in given)
    if as_json:
        from pydantic import TypeAdapter

        from dpassay.record import Real

        write = TypeAdapter(Real).dump_python
        named = (("basic", simple), ("exact", exact))
        rows = {name: {"lower": write(i.lower), "upper": write(i.upper)} for name, i in named}
        _print_json({"answers": count, "delta": float(delta), **rows})
        return
    print(f"{count} answers at total delta {delta}")
    print(f"  basic composition  epsilon {simple}")
    print(f"  exact composition  epsilon {exact}")


@app.command()
def gallery(
    only: Annotated[list[str] | None, typer.Option(help="Only these claims; may be given often.")] = None,
    as_json: AsJson = False,
    figure: Annotated[Path | None, typer.Option(help="Draw claimed against true epsilon (.svg, .pdf or .png).")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with all verdicts.")] = None,
) -> None:
    """Every published claim with its verdict.

    Exit code 0 if every verdict is the expected one: the gallery is also a test of the tool.

    \b
    Example:
      dpassay gallery --only adept --only dpnr --figure gallery.svg
    """
    from rich.console import Console
    from rich.progress import track

    from dpassay.checking import check as judge
    from dpassay.claims import REGISTRY, find
    from dpassay.report.gallery import check_suffix, draw, page, table

    chosen = [find(name) for name in only] if only else list(REGISTRY.values())
    for path in (figure, html):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    _writable(figure, html)
    if figure is not None:
        check_suffix(figure)
    quiet = not sys.stderr.isatty()
    progress = track(chosen, "checking", console=Console(stderr=True), disable=quiet, transient=True)
    verdicts = [(claim, judge(claim)) for claim in progress]
    for path, write in ((figure, draw), (html, page)):
        if path is not None:
            write(verdicts, path)
            print(f"{path} written", file=sys.stderr)
    if as_json:
        _print_json([verdict.to_dict() for _, verdict in verdicts])
    else:
        _print(table(verdicts))
    surprising = [claim.name for claim, verdict in verdicts if verdict.word != claim.expected]
    if surprising:
        print(f"not as expected: {', '.join(surprising)}", file=sys.stderr)
        raise typer.Exit(1)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Is that epsilon real? Exact, re-checkable verdicts on differential-privacy claims."""
    if show:
        from dpassay import __version__

        print(f"dpassay {__version__}")
        raise typer.Exit


if __name__ == "__main__":
    main()
