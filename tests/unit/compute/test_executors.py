"""Executors: whichever worker does the work, results come in order, and a worker that dies loses only its items."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import executor_tasks
import pytest

from dpassay.compute import cluster as clusters
from dpassay.compute import executors
from dpassay.compute.workers import MOST_WORKERS, make_executor
from dpassay.errors import InputError, MechanismError
from processes import LIMIT, started, wait_until

SQUARES = [number**2 for number in range(14)]
QUIET = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
NO_DASK = "a cluster needs the extra: pip install 'dpassay[cluster]'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Two worker processes of Dask's own, on this machine; an item is given up after its second worker has died."""
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    import dask

    with (
        # On a busy machine a new process may start slower than the 15 seconds after which Dask gives a worker up.
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.deploy.lost-worker-timeout": "5m"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **QUIET) as started,
    ):
        yield started


@pytest.fixture(params=["here", "threads", "processes", "cluster"])
def workers(request: pytest.FixtureRequest) -> Iterator[executors.Executor]:
    kind = request.param
    made: executors.Executor
    if kind == "cluster":
        made = make_executor(cluster=request.getfixturevalue("cluster").scheduler_address)
    else:
        made = make_executor(workers=2 if kind == "processes" else None, threads=2 if kind == "threads" else 1)
    yield made
    made.close()


def test_results_come_as_they_are_finished_where_their_order_does_not_matter(workers, tmp_path):
    mark = str(tmp_path / "mark")
    tasks = [(number, mark) for number in range(10)]  # the first waits for the last
    if isinstance(workers, executors.InProcess):
        assert list(workers.map(executor_tasks.wait_for_nine, tasks[::-1], ordered=False)) == [*range(9, -1, -1)]
        return
    got = list(workers.map(executor_tasks.wait_for_nine, tasks, ordered=False))
    assert sorted(got) == [*range(10)]
    assert got[0] != 0


def test_results_come_in_order_and_items_are_asked_for_only_some_time_ahead(workers):
    asked = []
    results = workers.map(executor_tasks.slow_square, (asked.append(number) or number for number in range(14)))
    got = []
    for result in results:
        got.append(result)
        most = 1 if isinstance(workers, executors.InProcess) else executors.AHEAD * 2
        assert len(asked) < len(got) + most
    assert got == SQUARES
    assert list(workers.map(abs, [])) == []
    assert "2" in workers.describe() or isinstance(workers, executors.InProcess)


def test_what_goes_wrong_does_so_at_its_place(workers):
    def broken() -> Iterator[float]:
        yield from (1.0, 2.0)
        raise InputError("the third cannot be read")

    for items, error in (((1.0, 2.0, 0.0, 4.0), ZeroDivisionError), (broken(), InputError)):
        results = workers.map(executor_tasks.reciprocal, items)
        assert [next(results), next(results)] == [1, 0.5]
        with pytest.raises(error):
            next(results)
    assert list(workers.map(executor_tasks.reciprocal, [4.0])) == [0.25]  # and the executor goes on
    kind = executor_tasks.Untold if isinstance(workers, executors.InProcess | executors.Threads) else MechanismError
    with pytest.raises(kind, match="so it is"):
        list(workers.map(executor_tasks.fail_untold, [1]))


def test_who_stops_early_leaves_nothing_under_way(workers):
    results = workers.map(executor_tasks.slow_square, range(1000))
    assert next(results) == 0
    results.close()
    began = time.monotonic()
    assert list(workers.map(executor_tasks.slow_square, [5])) == [25]
    assert time.monotonic() - began < 20  # all of them would take 25 seconds at least


def test_a_process_that_dies_costs_its_items_only(tmp_path):
    made = executors.Processes(2)
    marks = {2: str(tmp_path / "first"), 9: str(tmp_path / "second")}
    assert list(made.map(executor_tasks.die_once, [(n, marks.get(n, "")) for n in range(14)])) == SQUARES
    assert len(list(tmp_path.iterdir())) == 2
    made.close()


def test_work_that_ends_every_process_is_given_up():
    made = executors.Processes(2)
    results = made.map(executor_tasks.die_at_three, range(9))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(MechanismError, match="3 workers died at the same piece of work"):
        next(results)
    made.close()


def test_items_that_may_not_be_redone_end_with_the_dask_worker(cluster, tmp_path):
    cluster.wait_for_workers(2, timeout=300)
    made = clusters.Cluster(cluster.scheduler_address)
    mark = tmp_path / "died"
    assert list(made.map(executor_tasks.slow_square, range(4), redo=False)) == SQUARES[:4]
    with pytest.raises(MechanismError, match="Its runs are not repeated"):
        list(made.map(executor_tasks.die_once, [(5, str(mark))], redo=False))
    assert mark.exists()
    assert made.marked == set()
    begun = made.client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.extensions["events"]._events))
    assert begun == []  # nothing is left on the scheduler
    made.close()


def test_a_dask_worker_that_dies_costs_its_items_only(cluster):
    cluster.wait_for_workers(2, timeout=300)
    made = clusters.Cluster(cluster.scheduler_address)
    victim = next(iter(made.client.run(os.getpid).values()))
    got = []
    for result in made.map(executor_tasks.slow_square, range(14)):
        got.append(result)
        if len(got) == 3:
            os.kill(victim, signal.SIGKILL)
    assert got == SQUARES == list(executors.InProcess().map(executor_tasks.slow_square, range(14)))
    with pytest.raises(MechanismError, match="workers died at the same piece of work"):
        list(made.map(executor_tasks.die_at_three, range(3, 4)))
    made.close()


def test_items_that_may_not_be_redone_end_with_the_process(tmp_path):
    made = executors.Processes(2)
    mark = tmp_path / "died"
    items = [(n, str(mark) if n == 5 else "") for n in range(14)]
    results, got = made.map(executor_tasks.die_once, items, redo=False), []
    with pytest.raises(MechanismError, match="Its runs are not repeated"):
        got += results
    assert mark.exists()
    assert got == SQUARES[: len(got)]
    assert len(got) <= 5
    assert list(made.map(executor_tasks.slow_square, range(3))) == SQUARES[:3]  # there are workers for what comes next
    made.close()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("nowhere", "missing port number"),
        ("http://127.0.0.1:1", "unknown address scheme"),
        ("", "address is empty"),
    ],
)
def test_a_scheduler_that_is_not_there_is_said(address, said, monkeypatch):
    pytest.importorskip("distributed", reason=NO_DASK)
    monkeypatch.setattr(clusters, "CONNECT", 0.3)
    with pytest.raises(InputError, match=said):
        clusters.Cluster(address)


def test_a_cluster_without_workers_is_said_and_one_that_they_leave_not_waited_for(monkeypatch, capfd):
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    monkeypatch.setattr(clusters, "DESERTED", 0.2)
    monkeypatch.setattr(clusters, "COUNTED", 0.1)
    options = {"threads_per_worker": 1, "processes": False, "protocol": "tcp://", **QUIET}
    with distributed.LocalCluster(n_workers=0, **options) as few, pytest.raises(InputError, match="has no workers"):
        clusters.Cluster(few.scheduler_address)
    with distributed.LocalCluster(n_workers=1, **options) as few:
        made = clusters.Cluster(few.scheduler_address)
        results = made.map(executor_tasks.slow_square, range(1000), ordered=False)
        assert next(results) == 0
        few.scale(0)
        with pytest.raises(MechanismError, match=r"all workers of the cluster at .* have left"):
            list(results)
        results = made.map(executor_tasks.slow_square, range(1000))
    with pytest.raises(MechanismError, match=r"the Dask scheduler at .* is gone"):
        next(results)
    made.close()
    # Nothing of Dask's own.
    said = capfd.readouterr().err.splitlines()
    assert said == [clusters.WAITING.format(made.address, 0.2)]


def test_without_dask_the_pip_line_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[cluster\]'"):
        make_executor(cluster="tcp://127.0.0.1:1")


def test_workers_and_a_cluster_exclude_each_other():
    with pytest.raises(InputError, match="not both"):
        make_executor(workers=2, cluster="tcp://127.0.0.1:1")
    for odd in (0, True, MOST_WORKERS + 1, 1.5):
        with pytest.raises(InputError, match="workers must be a whole number"):
            make_executor(workers=odd)  # type: ignore[arg-type]


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import executor_tasks
from dpassay.compute import executors
if __name__ == "__main__":
    made = executors.Processes(2)
    try:
        list(made.map(executor_tasks.sleep_long, [sys.argv[2]] * 9))
    except KeyboardInterrupt:
        made.close()
        sys.exit(130)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_process_outlives_the_one_that_started_it(tmp_path, number, code):
    notes, script = tmp_path / "notes", tmp_path / "script.py"
    notes.mkdir()
    script.write_text(SCRIPT)
    line = [sys.executable, str(script), str(Path(__file__).parent), str(notes)]
    with started(line, stderr=subprocess.PIPE) as running:
        wait_until(lambda: len(list(notes.iterdir())) == 2, running)
        if number == signal.SIGINT:  # as a terminal does it: to all of them
            os.killpg(running.pid, number)
        else:
            running.kill()
        _, err = running.communicate(timeout=LIMIT)
        assert running.returncode == code
        assert err == b"" or number == signal.SIGKILL
        wait_until(lambda: not any(alive(int(path.name)) for path in notes.iterdir()))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
