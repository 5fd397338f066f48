"""What tests start, they end: the helper that sees to it, and that no test does without."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import LIMIT, interruptible, started, wait_until

TESTS = Path(__file__).parents[1]


def test_processes_are_started_by_the_helper_alone():
    starts = {path.name for path in TESTS.rglob("*.py") if "Popen(" in path.read_text()}
    assert starts == {"processes.py", Path(__file__).name}


@pytest.fixture
def ignored():
    """As in a suite that a script has started by `&`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_child_hears_ctrl_c_though_the_suite_does_not(ignored):
    with started([sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(LIMIT) == -signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


# A process that starts another and ignores what asks it to end; both write their numbers.
STUBBORN = r"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
os.write(1, b"%d\n" % os.getpid())
time.sleep(3600)
"""


def test_a_test_that_fails_leaves_nothing_running():
    def test() -> None:
        with started([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as child:
            numbers.extend(int(child.stdout.readline()) for _ in range(2))
            raise AssertionError("as intended")

    numbers: list[int] = []
    with pytest.raises(AssertionError, match="as intended"):
        test()
    wait_until(lambda: not any(running(number) for number in numbers))


def running(number: int) -> bool:
    """Whether the process is running, not merely a zombie whose exit code has not been collected."""
    status = Path(f"/proc/{number}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_waiting_for_a_process_that_has_ended_fails_at_once():
    with (
        started([sys.executable, "-c", "import sys; sys.exit('no such file')"], stderr=subprocess.PIPE) as child,
        pytest.raises(AssertionError, match=r"1, \(None, b'no such file"),
    ):
        wait_until(lambda: False, child)
