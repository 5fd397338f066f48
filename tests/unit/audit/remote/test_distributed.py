"""Audits on other processes and machines: the same counts, and clear words where something cannot travel."""

import contextlib
import hashlib
import json
import os
import shlex
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpassay
from dpassay import audit
from dpassay.audit.mechanisms.targets import RunnableObject, as_mechanism, load_python
from dpassay.audit.remote import connection
from dpassay.audit.remote import distributed as sharing_module
from dpassay.audit.remote.distributed import SentSubject, made, named, on_executor, pack, run_batch
from dpassay.audit.remote.endpoint import Endpoint
from dpassay.audit.remote.programs import Program
from dpassay.audit.testing.decision_rule import Hypothesis
from dpassay.audit.testing.experiment import Experiment, GameState, RoundResult
from dpassay.audit.testing.sequential import anytime, in_this_process
from dpassay.compute import executors as crews
from dpassay.errors import InputError, MechanismError
from dpassay.evidence.schema import record
from dpassay.pipeline.parser import parse
from servers import respond, serving

MODULE = '''
import numpy as np

def noisy(x, n, rng):
    return x + rng.laplace(scale=0.52, size=n)

class Breaks:
    """Breaks off at batches of some sizes, which come by chance."""
    independent_rows = True
    def sample(self, x, n, rng):
        from dpassay.errors import MechanismError
        if n > 20 and n % 7 == 3:
            raise MechanismError("the program died")
        return x + rng.laplace(scale=0.52, size=n)

breaks = Breaks()

_rng = np.random.default_rng(0)

def seeded(x):
    return x + _rng.laplace(scale=0.52)

def wrapped(function):
    import functools
    return functools.wraps(function)(lambda x, n, rng: x + rng.laplace(size=n))

other = wrapped(noisy)

class Words:
    def noisy(self, x):
        return x
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "shared_subjects.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "shared_subjects"
    sys.modules.pop("shared_subjects", None)
    sharing_module._SOURCES.pop("shared_subjects", None)
    made.cache_clear()


def counts(game):
    return [(e.counts, e.sizes) for e in game.rounds], game.runs


def finish(experiment, run_tasks, budget=30_000):
    game = GameState(kept=[[], []])
    for _ in anytime(experiment, game, budget, 0.001, run_tasks):
        pass
    return game


@pytest.fixture
def threads():
    with contextlib.closing(crews.Threads(3)) as executor:
        yield executor


def test_a_crew_plays_the_same_game(module, threads):
    experiment = Experiment(load_python(f"{module}:noisy"), (0.0, 1.0), Hypothesis(1.9), 5)
    assert counts(finish(experiment, on_executor(threads))) == counts(finish(experiment, in_this_process))


def test_a_pipeline_whose_law_is_known(threads):
    experiment = Experiment(parse("laplace(2)", dim=4), (np.zeros(4), np.ones(4)), Hypothesis(1.99), 5)
    alone, shared = finish(experiment, in_this_process, 200_000), finish(experiment, on_executor(threads), 200_000)
    assert counts(alone) == counts(shared)
    assert all(sum(map(len, side)) >= 1000 for side in shared.kept)  # the first runs were made here, to be compared


def test_a_mechanism_that_breaks_off_does_so_at_its_place(module, threads):
    experiment = Experiment(load_python(f"{module}:breaks"), (0.0, 1.0), Hypothesis(1.9), 5)
    found = []
    for run_tasks in (in_this_process, on_executor(threads)):
        game = GameState(kept=[[], []])
        with pytest.raises(MechanismError, match="the program died"):
            for _ in anytime(experiment, game, 10**5, 1e-12, run_tasks):
                pass
        found.append(counts(game))
    assert found[0] == found[1]
    assert found[0][0][-1][1][-1] == (0, 1)


@pytest.mark.long
def test_two_processes_and_a_saved_audit(module, tmp_path):
    options = {"epsilon": 1.9, "runs": 20_000, "seed": 3, "shrink": False}
    mechanism = load_python(f"{module}:noisy")
    alone = audit(mechanism, [(0.0, 1.0)], **options, save="alone.json")
    shared = audit(mechanism, [(0.0, 1.0)], **options, save="shared.json", workers=2)
    assert record(alone) == record(shared)
    assert (tmp_path / "alone.json").read_text() == (tmp_path / "shared.json").read_text()


@pytest.mark.long
def test_a_dask_worker_that_is_killed_changes_no_count(module):
    distributed = pytest.importorskip("distributed")
    options = {"epsilon": 1.0, "dim": 16, "runs": 200_000, "seed": 3, "device": "numpy"}
    subject, pair = "laplace(16)", [(np.zeros(16), np.ones(16))]
    alone = audit(subject, pair, **options)
    quiet = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **quiet) as cluster:
        first = next(iter(cluster.workers.values())).pid
        victims = [first]

        def progress(done, total, note):
            if victims and done > 20_000:
                os.kill(victims.pop(), signal.SIGKILL)

        shared = audit(subject, pair, **options, cluster=cluster.scheduler_address, progress=progress)
    assert victims == []
    assert record(alone) == record(shared)
    assert alone.runs == 200_000


def test_programs_on_two_workers():
    example = Path(__file__).parents[4] / "docs" / "examples" / "noisy_count.py"
    with Program(shlex.join([sys.executable, str(example)])) as program:
        pair = [("one two three", "one two three four")]
        verdict = audit(program, pair, epsilon=3, runs=3000, workers=2, neighbours="any", bits=False)
    assert verdict.runs == 3000  # neither is taken for the other, though both are sent seeds


MORTAL = """
import json, random, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["seed"] % 50 == 0 and request["input"] == 1:
        sys.exit(3)
    print(json.dumps({"output": random.Random(request["seed"]).random()}), flush=True)
"""


def test_programs_that_die_are_counted_on_workers_too(threads):
    """Which runs they die in is a matter of the seed, so they die as often, and in the same runs, wherever they are."""
    found = []
    for run_tasks in (in_this_process, on_executor(threads)):
        with Program(shlex.join([sys.executable, "-I", "-S", "-c", MORTAL])) as program:
            game = finish(Experiment(program, (0, 1), Hypothesis(3.0), 5), run_tasks, 600)
            found.append((counts(game), program.notes()))
    made.cache_clear()
    assert found[0] == found[1]
    assert "ended with exit code 3 and was started again" in found[0][1][0]


def test_requests_that_are_repeated_are_counted_on_workers_too(threads, monkeypatch):
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.001)
    seen, lock = set(), threading.Lock()

    def answer(handler, request):
        with lock:
            busy = request["seed"] % 20 == 1 and request["seed"] not in seen
            seen.add(request["seed"])
        respond(handler, json.dumps({"output": request["seed"] % 7}).encode(), 503 if busy else 200)

    found = []
    with serving(answer) as url:
        for run_tasks in (in_this_process, on_executor(threads)):
            seen.clear()
            with Endpoint(url) as endpoint:
                game = finish(Experiment(endpoint, (0, 1), Hypothesis(1.0), 5), run_tasks, 300)
                found.append((counts(game), endpoint.notes()))
    made.cache_clear()
    assert found[0] == found[1]
    assert "was asked again: HTTP status 503" in found[0][1][0]


HANGS = """
import itertools, random, time
_calls = itertools.count()
def hangs(x):
    time.sleep(600 if next(_calls) > 300 else 0)
    return random.random()
"""


@pytest.mark.long
def test_a_worker_that_hangs_is_ended_with_the_time(module, tmp_path):
    (tmp_path / "hanging_subject.py").write_text(HANGS)
    verdict = audit(load_python("hanging_subject:hangs"), [(0, 1)], epsilon=1, workers=1, time="6s")
    assert verdict.word == "open"
    assert any("The time limit of 6s was reached" in warning for warning in verdict.warnings)


def test_names_of_mechanisms(module):
    assert named(parse("clip(l2, 1) | laplace(2)", dim=3)) == SentSubject("pipeline", "clip(l2, 1) | laplace(2)", 3.0)
    source = hashlib.sha256(MODULE.encode()).hexdigest()
    assert named(load_python(f"{module}:noisy")) == SentSubject("python", "shared_subjects:noisy", source=source)
    assert named(Program("prog -x", 7.0)) == SentSubject("command", "prog -x", 7.0)
    assert named(Endpoint("http://127.0.0.1:1/")) == SentSubject("url", "http://127.0.0.1:1/", 30.0)
    noisy = as_mechanism(sys.modules[module].noisy)
    assert named(noisy) == SentSubject("python", "shared_subjects:noisy", source=source)
    for subject in (named(parse("laplace(2)", dim=3)), named(Program("prog", 7.0)), named(noisy)):
        assert named(made(subject)) == subject


def test_what_cannot_travel_is_refused_before_anything_runs():
    asked = []

    def mine(x, n, rng):
        asked.append(n)
        return x + rng.laplace(size=n)

    with pytest.raises(InputError, match=r"cannot be sent to workers: .*mine; they can run a pipeline, a function"):
        audit(mine, [(0.0, 1.0)], epsilon=1, workers=2)
    with pytest.raises(InputError, match="your own guesser cannot be sent"):
        audit("laplace(1)", [([0.0], [1.0])], epsilon=1, dim=1, workers=2, guesser=lambda outputs: [0] * len(outputs))
    with pytest.raises(InputError, match="workers must be a whole number"):
        audit("laplace(1)", [([0.0], [1.0])], epsilon=1, dim=1, workers=0)
    with pytest.raises(InputError, match="give workers or a cluster, not both"):
        audit("laplace(1)", [([0.0], [1.0])], epsilon=1, dim=1, workers=1, cluster="tcp://127.0.0.1:1")
    assert asked == []


def test_a_name_must_lead_to_the_very_function(module):
    load_python(f"{module}:noisy")
    there = sys.modules[module]
    for function in (there.other, there.Words().noisy):
        with pytest.raises(InputError, match="cannot be sent"):
            named(as_mechanism(function))


def test_an_encoder_of_this_process_stays_here():
    with pytest.raises(InputError, match="cannot be sent"):
        named(dpassay.claims["dpnr"].runnable)


def test_a_worker_with_other_code_refuses(module):
    experiment = Experiment(load_python(f"{module}:noisy"), (0.0, 1.0), Hypothesis(1.9), 5)
    game = finish(experiment, in_this_process, 2000)
    batch = pack(experiment, game.rounds[0], ())
    assert len(batch.subject.source) == 64
    assert pack(replace(experiment, device="numpy"), game.rounds[0], ()).experiment.device == "numpy"
    assert run_batch(batch).counts == ()
    with pytest.raises(
        InputError,
        match=r"a worker on .* says: there is another version of shared_subjects here: install the same",
    ):
        run_batch(replace(batch, subject=replace(batch.subject, source="0" * 64)))
    with pytest.raises(InputError, match=r"a worker has dpassay .*, not 0\.0\.7: install the same"):
        crews.told(abs, "0.0.7", -1)


def test_workers_that_draw_the_same_are_found_out(module):
    with pytest.raises(MechanismError, match="two workers drew the same outputs"):
        audit(load_python(f"{module}:seeded"), [(0.0, 1.0)], epsilon=1.9, runs=20_000, workers=2, alpha=1e-9)


def test_parcels_are_plain_data(module):
    import pickle

    experiment = Experiment(load_python(f"{module}:noisy"), (0.0, 1.0), Hypothesis(1.9), 5)
    game = finish(experiment, in_this_process, 2000)
    batch = pack(experiment, game.rounds[0], ())
    assert b"noisy" in pickle.dumps(batch)
    assert json.loads(json.dumps(batch.rule.guesser)) == batch.rule.guesser
    assert isinstance(game.rounds[0], RoundResult)
    with pytest.raises(InputError):
        named(RunnableObject(lambda x: x, 1))


def test_settings_travel_and_a_rate_does_not():
    plain = Program("prog -x", 7.0, lines=True, processes=2)
    again = made(named(plain))
    assert (again.command, again.time_limit, again.lines, again.processes) == ("prog -x", 7.0, True, 2)
    endpoint = Endpoint("http://127.0.0.1:9/", headers={"X": "secret"}, request='"$input"', answer="$", retries=0)
    subject = named(endpoint)
    assert "secret" not in repr(subject)
    assert made(subject).settings() == endpoint.settings()
    with pytest.raises(InputError, match="several workers cannot share one rate limit"):
        named(Endpoint("http://127.0.0.1:9/", rate="5/s"))
