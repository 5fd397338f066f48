"""Streams that are closed, and files that are not files: no verdict may be read from an accident."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processes import LIMIT

PROVEN = ["check", "--pipeline", "query(l1, 1) | laplace(1)", "--epsilon", "1"]


def shell(line: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which "$@" is the real command."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "dpassay", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT, check=False)


@pytest.mark.parametrize("arguments", [PROVEN, [*PROVEN, "--json"], ["gallery", "--only", "adept-l1"]])
def test_a_closed_pipe_is_not_a_refutation(arguments: list[str]) -> None:
    # The reader is certainly gone: it has ended before the command starts to print.
    ended = shell('{ sleep 0.2; "$@"; echo $? >&2; } | true', *arguments)
    assert ended.stderr.split()[-1] == "141"
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", [PROVEN, ["gallery", "--only", "adept-l1"], [*PROVEN, "--json"]])
def test_stderr_may_be_closed(arguments: list[str]) -> None:
    ended = shell('"$@" 2>&-', *arguments)
    assert ended.returncode == 0
    assert "proven" in ended.stdout.lower()


def test_stdout_may_be_closed() -> None:
    assert shell('"$@" >&-', *PROVEN).returncode == 0


def test_bad_input_with_stderr_closed_is_bad_input() -> None:
    assert shell('"$@" 2>&-', "check", "--pipeline", "nonsense(1)", "--epsilon", "1").returncode == 2


def test_a_certificate_can_go_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = shell(f'timeout 30 cat {pipe} > {tmp_path}/copy.json & "$@" && wait', *PROVEN, "--certificate", str(pipe))
    assert ended.returncode == 0
    assert pipe.is_fifo()
    assert (tmp_path / "copy.json").read_text().startswith("{")


def test_a_certificate_can_go_to_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(target)
    assert shell('"$@"', *PROVEN, "--certificate", str(link)).returncode == 0
    assert link.is_symlink()
    assert target.read_text().startswith("{")
