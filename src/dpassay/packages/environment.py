"""The environment of a record, made by pip, and the program that runs its subject there."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dpassay.core.files import write_whole
from dpassay.errors import MechanismError
from dpassay.packages.record import Record

# The subject goes between these two; what it prints itself must not be taken for an answer.
HEAD = """\
import json
import random
import sys

answers, sys.stdout = sys.stdout, sys.stderr

"""
TAIL = '''

def plain(value):
    """Arrays, tensors and numpy numbers as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def answer(request):
    """What dpassay asks for: n outputs, or the exact chances of the record's event."""
    if "chances" in request:
        return {"chances": chances()}
    random.seed(request["seed"])
    for name in {"numpy", "torch"} & set(sys.modules):
        seed = sys.modules[name].random.seed if name == "numpy" else sys.modules[name].manual_seed
        seed(request["seed"] % 2**32)
    try:
        return {"outputs": [plain(mechanism(request["input"])) for _ in range(request["n"])]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
'''


def default_folder() -> Path:
    """Where environments are kept: the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpassay" / "packages"


def program(record: Record) -> str:
    """The complete program to run: the subject with the loop that answers JSON lines."""
    return f"{HEAD}{record.subject.strip()}\n{TAIL}"


@dataclass(frozen=True)
class Environment:
    """A folder with its own Python, in which pip has installed what a record names."""

    folder: Path

    @classmethod
    def of(cls, record: Record, below: Path) -> Environment:
        """The place of a record's environment; records of one release share it."""
        digest = hashlib.sha256("\n".join(record.requirements).encode()).hexdigest()[:8]
        return cls(below.resolve() / f"{record.package.lower()}-{record.version}-{digest}")

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def make(self, record: Record, interpreter: str = sys.executable) -> None:
        """Make it, unless it is already complete. If pip cannot install it, the error states what is missing."""
        done = self.folder / "complete"
        if done.exists():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        _run([interpreter, "-I", "-m", "venv", str(self.folder)], f"no environment can be made for {record.release}")
        pip = [str(self.python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        _run([*pip, *record.requirements], f"pip cannot install {record.release}")
        done.touch()

    def command(self, record: Record) -> str:
        """The command line that runs the record's subject here; its program is written first."""
        folder = self.folder / "subjects"
        folder.mkdir(exist_ok=True)
        path = folder / f"{record.name}.py"
        write_whole(path, program(record))
        return shlex.join([str(self.python), "-I", str(path)])


def _run(words: list[str], failed: str) -> None:
    try:
        ended = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise MechanismError(f"{failed}: {words[0]}: {error.strerror}") from None
    if ended.returncode:
        lines = [line for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["it said nothing"]
        raise MechanismError(f"{failed}: {errors[-1].removeprefix('ERROR: ').strip()}")
