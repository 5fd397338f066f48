"""Re-check certificates, and repeat saved audits and traces."""

import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from dpassay.cli.code.subjects import runnable, subject_options
from dpassay.cli.common import (
    AsJson,
    Command,
    Interpreter,
    Python,
    Url,
    check_writable,
    close,
    note,
    print_json,
    working,
)
from dpassay.cli.text.rewriters import RewriterName, specification
from dpassay.errors import CertificateError, InputError, escape_control_chars


@subject_options
def verify(
    file: Annotated[
        Path, typer.Argument(help="A file written by 'check --certificate', 'audit --save' or 'trace --save'.")
    ],
    python: Python = None,
    interpreter: Interpreter = None,
    command: Command = None,
    url: Url = None,
    model: RewriterName = None,
    vocabulary: Annotated[Path | None, typer.Option(help="The vocabulary that a certificate is about.")] = None,
    coq: Annotated[
        Path | None,
        typer.Option("--coq", help="Write a certificate that holds as a file that Coq checks; see proofs/README.md."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds that an answer (default: 30) or a run of traced code (default: 60) may take."),
    ] = None,
    fresh_seed: Annotated[
        int | None, typer.Option(help="Seed of the new runs of an audit or a trace. Default: random.")
    ] = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Re-check a certificate with independent arithmetic, or replay a saved audit or trace.

    Of an audit, everything that its conclusion rests on is checked and printed: the inputs, the relation, the rule and
    the error probability. It is replayed with the recorded seed, where the counts must be the same, and with a fresh
    one. A trace runs its pair again with both. Nothing named in the file is started: a program, an address or a Python
    object must be given again.

    The exit code is 0 if everything holds, 1 if something does not or a field cannot be read, and 2 if the file is none
    of these. With --coq it is also 2 if the certificate holds but no theorem in proofs states its claim: nothing is
    written then, and the message says why.

    \b
    Examples:
      dpassay check adept --certificate adept.json; dpassay verify adept.json
      dpassay audit adept --save audit.json; dpassay verify audit.json
      dpassay verify other.json --command 'python rewriter.py'
      dpassay verify lines.json --command './noisy.sh' --lines
      dpassay verify text.json --model models/atis
      dpassay verify santext.json --vocabulary glove.txt
      dpassay verify adept.json --coq adept.v; coqc -Q proofs Dpassay adept.v
      dpassay verify trace.json --python mymodule:encode
    """
    kind = _kind(file)
    if interpreter is not None and kind != "trace":
        raise InputError("--interpreter is for the code of a saved trace: leave it out")
    if coq is not None:
        _check_coq(kind, file, coq)
    result: Any
    if kind == "trace":
        others, limit = [command, url, model, vocabulary], 60.0 if time_limit is None else time_limit
        result = _replayed_trace(file, python, interpreter, limit, fresh_seed, others)
    elif kind == "audit":
        mechanism = runnable(python, command, url, 30.0 if time_limit is None else time_limit, asked)
        result = _replayed_audit(file, mechanism, model, fresh_seed)
    else:
        result = _rechecked(file, vocabulary, as_json)
    if as_json:
        found = {"holds": result.ok, "verdict": result.verdict, "claim": result.claim}
        print_json({**found, "steps": list(result.established), "failures": list(result.failures)})
    else:
        _print_result(kind, result)
    if coq is not None and result.ok:
        _write_coq(file, coq)
    raise typer.Exit(0 if result.ok else 1)


def _print_result(kind: str, result: Any) -> None:
    """What was established, what failed, and whether the file holds."""
    for sentence in (*result.established, *result.failures):
        print(escape_control_chars(sentence))
    word = str(result.verdict)
    if kind != "certificate":
        word = {"open": "not refuted", "unfinished": "not yet refuted"}.get(word, word)
    name = "" if result.claim in ("", "pipeline") else f" {result.claim}"
    said = escape_control_chars(f"the claim{name} is {word}")
    print(f"The {kind} holds: {said}." if result.ok else f"The {kind} does not hold. It says that {said}.")


def _rechecked(file: Path, vocabulary: Path | None, as_json: bool) -> Any:
    """What the independent verifier says about a certificate."""
    from dpassay.evidence.verifier import examine
    from dpassay.evidence.verifier import verify as recheck

    try:
        with working("re-checking"):
            return examine(file, vocabulary) if as_json else recheck(file, vocabulary)
    except CertificateError as error:  # a field that cannot be read; the sentence itself goes to stderr
        if as_json:
            unread: dict[str, Any] = {"holds": False, "verdict": None, "claim": None, "steps": []}
            print_json({**unread, "failures": [escape_control_chars(str(error))]})
        raise


def _check_coq(kind: str, file: Path, coq: Path) -> None:
    """Whether Coq could check the file and read one of this name, which must not be the certificate itself."""
    if kind != "certificate":
        raise InputError("--coq is for certificates: an audit or a trace rests on samples, which Coq cannot check")
    if coq.suffix != ".v" or not (coq.stem.isascii() and coq.stem.isidentifier()):
        raise InputError(f"--coq {coq}: Coq takes file names of letters, digits and _ that end in .v, such as claim.v")
    if coq.resolve() == file.resolve():
        raise InputError(f"--coq {coq} is the certificate itself: give another file")
    check_writable(coq)


def _write_coq(file: Path, coq: Path) -> None:
    """The certificate as a file for Coq."""
    from dpassay.core.files import write_whole
    from dpassay.evidence.coq import coq_file

    write_whole(coq, coq_file(file))
    note(f"{coq} written; to check it: coqc -Q proofs Dpassay {shlex.quote(str(coq))}")


def _replayed_audit(file: Path, mechanism: Any, model: str | None, seed: int | None) -> Any:
    """A saved audit, checked and run again on the mechanism named on the command line."""
    from dpassay.audit.storage.replay import replay

    guesser = None
    if model is not None:
        from dpassay.text.systems import of_audit

        with working("learning to reconstruct"):
            mechanism, guesser = of_audit(file, specification(model))
    try:
        with working("playing again"):
            return replay(file, mechanism, seed=seed, guesser=guesser)
    finally:
        close(mechanism)


def _replayed_trace(
    file: Path, python: str | None, interpreter: str | None, limit: float, seed: int | None, others: list[Any]
) -> Any:
    """The pair of a saved trace run again, on the object named on the command line."""
    from dpassay.cli.code.trace import traced
    from dpassay.trace.storage.verifying import replay_trace

    if any(other is not None for other in others):
        raise InputError("a trace is of Python code: give it again with --python package.module:name")
    with working("running again"), redirect_stdout(sys.stderr):
        subject = None if python is None else traced(python, interpreter, time_limit=limit)
        try:
            return replay_trace(file, subject, name=python or "", seed=seed, time_limit=limit)
        finally:
            if interpreter is not None:
                close(subject)


def _kind(file: Path) -> str:
    """What a file declares near its beginning: an audit or a trace; otherwise it may be a certificate."""
    try:
        with file.open("rb") as opened:
            start = opened.read(200)
    except OSError:
        return "certificate"  # the next reader reports why it cannot be read
    return next((kind for kind in ("audit", "trace") if f'"dpassay/{kind}/'.encode() in start), "certificate")
