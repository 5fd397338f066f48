"""A worker process: questions come in as lines of JSON, the parts of their answers go out as lines of JSON.

It ends when its input does, so it never outlives the server.
"""

import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from dpassay.errors import DpassayError, ExpressionError, escape_control_chars

MOST_MEMORY = 6 << 30  # bytes of address space
TIRED = 700 << 10  # kilobytes: a worker that has grown this large is replaced


def main() -> None:
    """Answer questions until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    _limit_memory()
    if hasattr(os, "nice"):  # not on Windows
        os.nice(int(os.environ.get("DPASSAY_NICE", "0")))
    import scipy.special  # noqa: F401

    from dpassay.server.answers import answer

    known = {"pipeline": "query(l2, 1) | gaussian(2)", "epsilon": "1", "delta": "1e-5"}
    for kind in ("glance", "check"):  # triggers lazy imports now
        list(answer({"kind": kind, "asked": known}))
    _send(out, {"ready": True})
    for line in sys.stdin:
        question = json.loads(line)
        try:
            for part in answer(question):
                _send(out, {"part": part})
            end: dict[str, Any] = {}
        except Exception as error:
            end = _sentence(error)
        _send(out, {"end": True, "tired": _size() > TIRED, **end})


def _sentence(error: Exception) -> dict[str, Any]:
    """What went wrong, in a sentence and without a traceback; and whether the question caused it."""
    if isinstance(error, ExpressionError):
        return {"error": _of_the_page(error.message), "at": error.position, "status": 400}
    if isinstance(error, DpassayError):
        return {"error": _of_the_page(str(error)), "status": 400}
    if isinstance(error, MemoryError):
        return {"error": "This needs more memory than a request may use: try a smaller dimension.", "status": 400}
    if isinstance(error, OverflowError | RecursionError | ZeroDivisionError | ValueError | FloatingPointError):
        return {"error": "These numbers are too extreme to compute with: try more moderate ones.", "status": 400}
    return {"error": f"dpassay itself failed ({type(error).__name__}); please report this bug.", "status": 500}


def _of_the_page(message: str) -> str:
    """A message of the library, which names arguments, in terms of the page.

    >>> _of_the_page("unknown name 'C'; pass parameters={'C': VALUE}"), _of_the_page("pass dim=N")
    ("unknown name 'C'; give C a value", 'give it a dimension')
    """
    message = re.sub(r"pass parameters=\{'(\w+)': VALUE\}", r"give \1 a value", message)
    message = message.replace("pass dim=N", "give it a dimension").replace("pass epsilon=1", "give it an epsilon")
    message = message.replace("pass delta=VALUE", "give it a delta")
    return escape_control_chars(message)[:600]


def _send(out: TextIO, data: dict[str, Any]) -> None:
    out.write(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")
    out.flush()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # there is no such limit on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))


def _size() -> int:
    """The peak memory of this process, in kilobytes; 0 if unknown.

    On Linux, `getrusage` starts from the memory of the parent process.
    """
    with suppress(OSError):
        peak = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
        if peak is not None:
            return int(peak[1])
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
