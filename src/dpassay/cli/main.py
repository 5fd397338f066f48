"""The command line: a thin layer. Results on stdout, progress and notes on stderr.

Exit codes: 0 proven or not refuted, 1 refuted (or an invalid certificate, or an unexpected verdict in
the gallery), 2 usage or bad input, 3 undecided although a decision was requested, 4 the mechanism
itself failed, 70 dpassay itself failed, 130 interrupted, 141 the reader of the output closed the pipe.
"""

import gc
import io
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from dpassay.cli.common import as_options
from dpassay.cli.options import CommandGroups
from dpassay.errors import (
    CertificateError,
    DpassayError,
    ExpressionError,
    InputError,
    MechanismError,
    escape_control_chars,
)

app = typer.Typer(
    name="dpassay",
    help="Is that epsilon real? Exact, re-checkable verdicts on differential-privacy claims.",
    cls=CommandGroups,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich costs 0.1 s, a third of what --help may take
)
OWN_ERROR = 70  # as sysexits.h has it
CLOSED_PIPE = 141  # as a shell reports SIGPIPE; 1 would mean that the claim is refuted


def main() -> None:
    """Run the command line; errors become one clear sentence and an exit code."""
    # What is imported is not garbage; looking for some after every 700 new objects takes a tenth of a command's time.
    gc.set_threshold(20_000, 10, 10)
    # typer loads pydantic, which would search every installed package for plugins: 0.1 s of a command's 0.6.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # A stream that the caller has closed is None here, and what asks it whether it is a terminal would fail.
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
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
        # click turns a closed pipe into exit 1, or it is noticed when Python flushes at its own exit.
        if isinstance(ending.__context__, BrokenPipeError) or not _flushed():
            _end_of_pipe()
        # typer turns Ctrl-C into a silent exit, unless a command has reported it and exited by itself.
        if isinstance(getattr(ending.__context__, "__cause__", None), KeyboardInterrupt):
            print("dpassay: interrupted; no file was changed", file=sys.stderr)
        raise
    except MemoryError:
        _fail(InputError("there is not enough memory: try a smaller dimension, or fewer runs"), 2)
    except BrokenPipeError:
        _end_of_pipe()
    except OSError as error:
        _fail(InputError(f"cannot use {error.filename or 'a file'}: {error.strerror or error}"), 2)
    except Exception as error:  # a bug in dpassay, which must not be taken for a verdict
        if os.environ.get("DPASSAY_TRACEBACK"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        said = f"an error in dpassay itself, {type(error).__name__}: {error} ({where}); DPASSAY_TRACEBACK=1 shows more"
        _fail(DpassayError(said), OWN_ERROR)


def _flushed() -> bool:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    return True


def _end_of_pipe() -> NoReturn:
    """The reader is gone; Python would complain again when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    raise SystemExit(CLOSED_PIPE) from None


def _fail(error: DpassayError, code: int) -> None:
    if isinstance(error, ExpressionError):  # the text below its message is the user's own
        said = str(ExpressionError(as_options(error.message), error.text, error.position))
    else:
        said = as_options(str(error))
    with suppress(OSError):  # the code that was run may have closed it; 1 would mean that the claim is refuted
        print(escape_control_chars(f"dpassay: {said}"), file=sys.stderr)
    raise SystemExit(code)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Is that epsilon real? Exact, re-checkable verdicts on differential-privacy claims."""
    if show:
        from dpassay import __version__

        print(f"dpassay {__version__}")
        raise typer.Exit


if __name__ == "__main__":
    main()
