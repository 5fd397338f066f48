"""An audit that is killed while it runs is continued without its lost tasks: their coins are never used again.

A mechanism whose draws kill the process would otherwise be judged by the outputs that do not (docs/proofs/anytime.md,
point 10).
"""

import json
import os
import sys

import pytest

from dpassay import audit
from dpassay.audit.mechanisms.targets import load_python
from dpassay.audit.storage.replay import replay
from dpassay.errors import MechanismError

PAIR = [(0.0, 1.0)]


class Killed(BaseException):
    """Ends a process like SIGKILL: nothing catches it, and nothing is saved."""


class Subject:
    """Laplace noise from a source of its own, which dies in a task of a later round."""

    def __init__(self, dies=True):
        self.inputs, self.dies = [], dies

    def __call__(self, x, rng):
        self.inputs.append(x)
        if self.dies and self.done > 600 and len(self.inputs) - self.before >= 30:
            raise Killed
        return x + rng.laplace()

    done = before = 0

    def progress(self, done, total, note):
        self.done, self.before = done, len(self.inputs)


def killed(path, **options):
    """The inputs of the task in which the process died, and the file that it left."""
    subject = Subject()
    with pytest.raises(Killed):
        audit(subject, PAIR, save=path, progress=subject.progress, **options)
    return subject.inputs[subject.before :], json.loads(path.read_text())


@pytest.mark.parametrize("delta", [0, 0.01])
def test_no_coin_is_used_again(tmp_path, delta):
    path, options = tmp_path / "audit.json", {"epsilon": 1, "delta": delta, "runs": 5000}
    lost, left = killed(path, **options)
    assert left["running"]
    subject = Subject(dies=False)
    verdict = audit(subject, PAIR, save=path, resume=True, **options)
    assert len(lost) == 30
    assert subject.inputs[:30] != lost  # equal with probability 2^-30, and the seed is fixed
    assert any("killed while it ran" in said for said in verdict.warnings)
    after = json.loads(path.read_text())
    assert not after["running"]
    kept = len(left["main"]["epochs"])
    assert (
        after["main"]["epochs"][kept - 1]["sizes"][: len(left["main"]["epochs"][-1]["sizes"])]
        == (left["main"]["epochs"][-1]["sizes"])
    )
    assert all(epoch["sizes"][0][0] == 0 for epoch in after["main"]["epochs"][kept:])  # nor in rounds that came later
    assert replay(path, Subject(dies=False)).ok


def test_runs_that_may_be_lost_count_as_wrong_guesses_if_delta_is_positive(tmp_path):
    path, options = tmp_path / "audit.json", {"epsilon": 1, "delta": 0.01, "runs": 5000}
    lost, left = killed(path, **options)
    assert left["announced"] >= left["main"]["runs"] + len(lost)
    epoch, place = left["main"]["epochs"][-1], len(left["main"]["epochs"]) - 1
    audit(Subject(dies=False), PAIR, save=path, resume=True, **options)
    after = json.loads(path.read_text())["main"]["epochs"][place]
    finished = sum(size * times for size, times in after["sizes"])
    assert after["runs"] - finished == left["announced"] - left["main"]["runs"]
    assert after["wrong"] >= epoch["wrong"] + after["runs"] - finished


def test_without_delta_nothing_is_counted_that_was_not_seen(tmp_path):
    path, options = tmp_path / "audit.json", {"epsilon": 1, "runs": 5000}
    _, left = killed(path, **options)
    assert left["announced"] == 0
    verdict = audit(Subject(dies=False), PAIR, save=path, resume=True, **options)
    assert verdict.runs == 5000


def test_what_was_refuted_before_the_kill_stays_refuted(tmp_path):
    path, options = tmp_path / "audit.json", {"epsilon": 0.1, "delta": 0.001, "runs": 50_000}
    _, left = killed(path, **options)
    assert left["refuted_after"] > 0
    assert audit(Subject(dies=False), PAIR, save=path, resume=True, **options).refuted


def test_an_audit_that_was_stopped_in_order_is_continued_as_it_was(tmp_path):
    path, options = tmp_path / "audit.json", {"epsilon": 1, "runs": 3000}

    def stop(done, total, note):
        if done > 1000:
            raise KeyboardInterrupt

    audit(Subject(dies=False), PAIR, save=path, progress=stop, **options)
    assert not json.loads(path.read_text())["running"]
    resumed = audit(Subject(dies=False), PAIR, save=path, resume=True, **options)
    assert not any("killed" in said for said in resumed.warnings)


DYING = """
import os, random, signal
from pathlib import Path

from distributed_calls import FOLDER

source = random.Random(os.urandom(16))
calls = 0
parent = os.environ["DYING_PARENT"]

def dies(x):
    \"\"\"Laplace noise of its own; in a worker it ends the process once, when guesses have been made.\"\"\"
    global calls
    calls += 1
    died = Path(FOLDER) / "died"
    late = str(os.getpid()) != parent and calls > 1000 and x == 1.0
    if late and source.random() < 0.05 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x + source.choice((-1, 1)) * source.expovariate(1)

def follows(x, rng):
    \"\"\"The same, but its noise is drawn from the given generator.\"\"\"
    dies(x)
    return x + rng.laplace()
"""


@pytest.fixture
def dying(tmp_path, monkeypatch):
    """A module whose functions end a worker's process, and the mark that they leave."""
    (tmp_path / "distributed_calls.py").write_text(f"FOLDER = {str(tmp_path)!r}")
    (tmp_path / "dying_subjects.py").write_text(DYING)
    monkeypatch.setenv("DYING_PARENT", str(os.getpid()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "died"
    for name in ("dying_subjects", "distributed_calls"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("delta", [0, pytest.param(0.01, marks=pytest.mark.long)])
def test_runs_of_a_worker_that_died_are_not_repeated(dying, tmp_path, delta):
    path, options = tmp_path / "audit.json", {"epsilon": 1, "delta": delta, "runs": 3000, "workers": 1}
    with pytest.raises(MechanismError, match=r"(?s)Its runs are not repeated.*resume=True continues"):
        audit(load_python("dying_subjects:dies"), PAIR, save=path, **options)
    assert dying.exists()
    left = json.loads(path.read_text())["main"]
    *finished, (size, lost) = left["epochs"][-1]["sizes"]
    assert (size, lost > 0) == (0, True)  # their numbers are taken, so their coins are not used again
    made = sum(size * times for size, times in finished)
    assert (left["epochs"][-1]["runs"] > made) == bool(delta)  # then all guesses of lost runs are wrong
    verdict = audit(load_python("dying_subjects:dies"), PAIR, save=path, resume=True, **options)
    after = json.loads(path.read_text())["main"]["epochs"]
    assert after[len(left["epochs"]) - 1]["sizes"][: len(finished) + 1] == [*finished, [0, lost]]
    assert verdict.runs == options["runs"]


def test_runs_that_replay_are_repeated_wherever_a_worker_died(dying):
    options = {"epsilon": 1, "runs": 3000}
    alone = audit(load_python("dying_subjects:follows"), PAIR, **options)
    assert not dying.exists()
    shared = audit(load_python("dying_subjects:follows"), PAIR, workers=1, **options)
    assert dying.exists()
    assert (shared.runs, shared.epsilon) == (alone.runs, alone.epsilon)
