"""From a file to the steps of a certificate. Data only: JSON of a known form and size, nothing is executed."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpassay.errors import InputError
from dpassay.evidence.verifier.fields import MOST_STEPS, STEPS, VERDICTS, Step
from dpassay.evidence.verifier.forms import Reader

SCHEMA = "dpassay/certificate/1"
LARGEST_FILE = 20_000_000  # bytes
_ORDER = re.compile(r"claim( stage){1,100}( witness)?( bounds){1,2}( holds){0,20}( repair){0,20} decision")


@dataclass(frozen=True, slots=True)
class Certificate:
    """The steps as read, and for each whether its digest is the right one."""

    verdict: str
    names: tuple[str, ...]
    steps: tuple[Step, ...]
    intact: tuple[bool, ...]


def load(source: str | Path | dict[str, Any]) -> Certificate:
    """Read a certificate from a file, or from data that was one.

    >>> load({"schema": "something else"})
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: this certificate cannot be read: the schema is 'something else', not ...
    """
    data = source if isinstance(source, dict) else _from_file(Path(source))
    read = Reader("the certificate")
    if data.get("schema") != SCHEMA:
        shown = repr(data.get("schema"))[:60] if isinstance(data.get("schema"), str) else "missing"
        audit = "; a saved audit is replayed by 'dpassay verify FILE'" if shown.startswith("'dpassay/audit/") else ""
        raise InputError(f"this certificate cannot be read: the schema is {shown}, not {SCHEMA!r}{audit}")
    read.record(data, {"schema", "written_by", "verdict", "steps"})
    read.text(data["written_by"], "written_by")
    verdict = read.text(data["verdict"], "verdict", VERDICTS)
    raw = read.items(data["steps"], "steps", MOST_STEPS)
    names, steps, intact = [], [], []
    last = hashlib.sha256(SCHEMA.encode()).hexdigest()
    for i, step in enumerate(raw):
        name, parsed, plain, digest = _step(i, step)
        last = chained(last, plain)
        names.append(name)
        steps.append(parsed)
        intact.append(digest == last)
        last = digest  # so that a change is reported at its own step only
    if not _ORDER.fullmatch(" ".join(names)):
        raise InputError(f"this certificate cannot be read: its steps are not in order: {', '.join(names)}"[:300])
    return Certificate(verdict, tuple(names), tuple(steps), tuple(intact))


def chained(previous: str, step: dict[str, Any]) -> str:
    """The digest of a step that follows another: SHA-256 of its canonical JSON behind the digest before.

    >>> chained("", {"step": "decision"})[:8]
    '00bd3e0d'
    """
    text = json.dumps(step, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _step(index: int, step: Any) -> tuple[str, Step, dict[str, Any], str]:
    read = Reader(f"step {index}")
    if not isinstance(step, dict):
        raise read.fail("expected an object")
    name = read.text(step.get("step"), "step", tuple(STEPS))
    read = Reader(f"step {index} ({name})")
    digest = step.get("digest")
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise read.fail("digest must be 64 hexadecimal digits")
    plain = {key: value for key, value in step.items() if key != "digest"}
    return name, STEPS[name](read, plain), plain, digest


def _from_file(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"{path} has {size} bytes; a certificate has at most {LARGEST_FILE}")
        if not path.is_file():
            raise InputError(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if not content.strip():
        raise InputError(f"{path} is empty; a certificate is a JSON file that dpassay check --certificate writes")
    return _parsed(content, path)


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(content.decode("utf-8"), object_pairs_hook=_without_doubles, parse_constant=_refused)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply to be a certificate") from None
    except InputError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON, or was cut off: {error}"[:300]) from None
    if not isinstance(data, dict):
        raise InputError(f"{path} is not a certificate: expected a JSON object")
    return data


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InputError("a field is given twice")
    return found


def _refused(name: str) -> Any:
    raise InputError(f"{name} is not a number")
