"""The command line: a thin face. Results on stdout, progress and notes on stderr.

Exit codes: 0 proven or not refuted, 1 refuted (or a certificate that does not hold, or an unexpected
verdict in the gallery), 2 usage or bad input, 3 undecided where a decision was asked for, 4 the
mechanism itself failed, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from dpassay.cli.audit import audit
from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    ClaimName,
    Command,
    Dim,
    OfModel,
    Page,
    People,
    Python,
    Relation,
    RequireDecision,
    Settings,
    Text,
    TimeLimit,
    Url,
    as_options,
    check_claimed,
    check_writable,
    claim_named,
    close,
    command_line,
    finish,
    needs,
    print_json,
    print_rich,
    progress_bar,
    read_values,
    runnable,
    working,
    write_page,
)
from dpassay.cli.gallery import gallery, show
from dpassay.cli.reproduce import reproduce
from dpassay.cli.text import corpus, reconstruct, rewrite, train
from dpassay.cli.utility import utility
from dpassay.errors import CertificateError, DpassayError, InputError, MechanismError, harmless

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

app.command()(audit)
app.command()(gallery)
app.command()(show)
app.command()(reproduce)
app.command()(corpus)
app.command()(train)
app.command()(rewrite)
app.command()(utility)
app.command()(reconstruct)

Epsilon = Annotated[str, typer.Option("--epsilon", "-e", help="The claimed epsilon.", show_default=False)]
Delta = Annotated[str, typer.Option("--delta", "-d", help="The claimed delta; 0 for pure DP.")]


OWN_ERROR = 70  # as sysexits.h has it


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
    except SystemExit as ending:
        # typer turns Ctrl-C into a silent exit, unless a command has said more and ended by itself.
        if isinstance(getattr(ending.__context__, "__cause__", None), KeyboardInterrupt):
            print("dpassay: interrupted; no file was changed", file=sys.stderr)
        raise
    except MemoryError:
        _fail(InputError("this needs more memory than there is: try a smaller dimension, or fewer runs"), 2)
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        _fail(InputError(f"cannot use {error.filename or 'a file'}: {error.strerror or error}"), 2)
    except Exception as error:  # a mistake of ours, which must not be taken for a verdict
        if os.environ.get("DPASSAY_TRACEBACK"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        said = f"an error of dpassay itself, {type(error).__name__}: {error} ({where}); DPASSAY_TRACEBACK=1 shows more"
        _fail(DpassayError(said), OWN_ERROR)


def _fail(error: DpassayError, code: int) -> None:
    print(harmless(f"dpassay: {as_options(str(error))}"), file=sys.stderr)
    raise SystemExit(code)


CertificateFile = Annotated[Path | None, typer.Option(help="Write a certificate for 'dpassay verify'.")]
ListStages = Annotated[bool, typer.Option("--stages", help="List the stages a pipeline may have, and stop.")]
Samples = Annotated[int, typer.Option("--runs", help="Besides the exact analysis, run the mechanism so many times.")]
Seed = Annotated[int, typer.Option(help="Seed of these runs.")]
Sampled = Annotated[bool, typer.Option("--sample", help="Besides, run the mechanism, or the --model: --runs 100000.")]
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
    people: People = None,
    certificate: CertificateFile = None,
    html: Page = None,
    model: OfModel = None,
    sample: Sampled = False,
    runs: Samples = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
    stages: ListStages = False,
) -> None:
    """Judge a claim: is the mechanism as private as it is said to be?

    \b
    Examples:
      dpassay check --pipeline 'clip(l2, C) | laplace(2*C/eps)' --set C=1 --dim 32 --epsilon 1
      dpassay check --pipeline 'query(l2, 1) | gaussian(sigma)' --set sigma=2 --epsilon 2 --delta 1e-5
      dpassay check adept --set C=2 --set dim=1024 --epsilon 2 --json
      dpassay check mine.toml
      dpassay check adept --runs 10000
      dpassay check adept --model models/adept --sample
    """
    if stages:
        from dpassay.report.terminal import stage_table

        print_rich(stage_table())
        return
    if (name is None) == (pipeline is None):
        raise InputError("give the name of a published claim, or a mechanism with --pipeline (not both)")
    check_writable(certificate, html)
    from dpassay.api import check as judge

    subject: Any = pipeline if name is None else claim_named(name)
    given, values = read_values(settings, {"epsilon": epsilon, "delta": delta, "dim": dim})
    if name is None and given["epsilon"] is None:
        raise InputError("say which epsilon is claimed: --epsilon 1")
    check_claimed(given["epsilon"], given["delta"], None if name is None else subject)
    runs = runs or (100_000 if sample else 0)
    if model is not None:
        verdict = _judge_model(subject, model, neighbours, people, runs, seed, {**given, **values})
    else:
        with working("checking"):
            options = {"neighbours": neighbours, "people": people, "runs": runs, "seed": seed, **given}
            verdict = judge(subject, parameters=values, **options)
    if certificate is not None:
        with working("writing the certificate"):
            verdict.save_certificate(certificate)
        if not as_json:
            print(f"certificate written to {certificate}", file=sys.stderr)
    if html is not None:
        with working("drawing"):
            text = verdict.to_html(command_line())
        write_page(text, html)
    if verdict.expected and verdict.word != verdict.expected and name is not None and name.endswith(".toml"):
        print(f"not as expected: {verdict.word}, where the file expects {verdict.expected}", file=sys.stderr)
    finish(verdict, as_json, require_decision)


def _judge_model(
    claim: Any, model: Path, neighbours: str | None, people: int | None, runs: int, seed: int, given: dict[str, Any]
) -> Any:
    """A claim, judged for a trained model."""
    if isinstance(claim, str) or neighbours is not None or people is not None:
        raise InputError(
            "a model is checked against a published claim: 'dpassay check adept --model DIR', without more"
        )
    needs("torch", "text")
    from dpassay.text.systems import check_model

    changes = {name: value for name, value in given.items() if value is not None}
    with progress_bar(max(runs, 1)) as bar:
        return check_model(claim, model, runs=runs, seed=seed, progress=bar, **changes)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="What 'check --certificate' or 'audit --save' wrote.")],
    python: Python = None,
    command: Command = None,
    url: Url = None,
    model: OfModel = None,
    time_limit: TimeLimit = 30.0,
    fresh_seed: Annotated[int | None, typer.Option(help="Seed of the new game of an audit. Default: random.")] = None,
    as_json: AsJson = False,
) -> None:
    """Re-check a certificate with independent arithmetic, or play a saved audit again.

    An audit is played with the recorded seed, where the counts must be the same, and with a fresh one. What the file
    names is never started: a program, an address or a Python object must be given again.

    Exit code 0 if everything holds, 1 if something does not, 2 if the file cannot be read.

    \b
    Examples:
      dpassay check adept --certificate adept.json; dpassay verify adept.json
      dpassay audit adept --save audit.json; dpassay verify audit.json
      dpassay verify other.json --command 'python rewriter.py'
      dpassay verify text.json --model models/atis
    """
    result: Any
    if _is_audit(file):
        from dpassay.audit.replay import replay

        mechanism: Any = runnable(python, command, url, time_limit)
        guesser = None
        if model is not None:
            needs("torch", "text")
            from dpassay.text.systems import of_audit

            with working("learning to reconstruct"):
                mechanism, guesser = of_audit(file, model)
        try:
            with working("playing again"):
                result = replay(file, mechanism, seed=fresh_seed, guesser=guesser)
        finally:
            close(mechanism)
    else:
        from dpassay.evidence.verifier import verify as recheck

        with working("re-checking"):
            result = recheck(file)
    if as_json:
        found = {"holds": result.ok, "verdict": result.verdict, "claim": result.claim}
        print_json({**found, "steps": list(result.established), "failures": list(result.failures)})
    else:
        for sentence in (*result.established, *result.failures):
            print(harmless(sentence))
        what, word = "audit" if _is_audit(file) else "certificate", str(result.verdict)
        if what == "audit":
            word = {"open": "not refuted", "unfinished": "not yet refuted"}.get(word, word)
        said = harmless(f"{result.claim} is {word}")
        print(f"The {what} holds: {said}." if result.ok else f"The {what} does not hold. It says that {said}.")
    raise typer.Exit(0 if result.ok else 1)


def _is_audit(file: Path) -> bool:
    """Whether a file says of itself, near its beginning, that it is an audit."""
    try:
        with file.open("rb") as opened:
            return b'"dpassay/audit/' in opened.read(200)
    except OSError:
        return False  # whoever reads it next says why it cannot be read


def _calibrated(stage: str, value: float, note: str, as_json: bool) -> None:
    if as_json:
        print_json({"stage": f"{stage}({value!r})", "value": value, "guarantee": note})
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
    from dpassay.core.guarantee import make_guarantee
    from dpassay.exact.calibrate import laplace

    scale = laplace(epsilon, delta, sensitivity)
    _calibrated("laplace", scale, f"{make_guarantee(epsilon, delta)} at l1 sensitivity {sensitivity}", as_json)


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
    from dpassay.core.guarantee import make_guarantee
    from dpassay.exact.calibrate import gaussian

    sigma = gaussian(epsilon, delta, sensitivity)
    _calibrated("gaussian", sigma, f"{make_guarantee(epsilon, delta)} at l2 sensitivity {sensitivity}", as_json)


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
    from dpassay.core.guarantee import PureDP
    from dpassay.exact.calibrate import flip

    check_claimed(epsilon, None)
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
    from dpassay.exact.composition import compose as add_up

    with working("composing"):
        total = add_up(*answers, delta=delta, dim=dim)
    if as_json:
        from pydantic import TypeAdapter

        from dpassay.evidence.schema import Real

        write = TypeAdapter(Real).dump_python
        named = (("basic", total.basic), ("exact", total.exact))
        rows = {name: {"lower": write(i.lower), "upper": write(i.upper)} for name, i in named}
        print_json({"answers": total.count, "delta": total.delta, **rows})
        return
    print(f"{total.count} answers at total delta {delta}")
    print(f"  basic composition  epsilon {total.basic}")
    print(f"  exact composition  epsilon {total.exact}")


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
