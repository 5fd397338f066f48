"""All sources of randomness are seen during a run, with the line, and left alone after it."""

import os
import random
import secrets
import statistics
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng, normal

from dpassay import trace
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.sources import watch
from dpassay.trace.watch.tracer import Tracer

held = np.random.default_rng(3)


class Holder:
    """Has a generator of each kind."""

    def __init__(self) -> None:
        self.many = {"new": [np.random.default_rng(1)], "old": np.random.RandomState(1)}

    def draw(self) -> list[Any]:
        return [self.many["new"][0].laplace(), self.many["old"].normal()]  # type: ignore[index]


def seen(subject: Any) -> RecordedRun:
    run = RecordedRun(0)
    with watch(run, subject):
        subject()
    return run


def test_every_source_is_seen_with_its_line() -> None:
    rng = np.random.default_rng(0)

    def subject() -> None:
        rng.laplace(scale=2, size=(2, 3))
        held.normal(1.0, 5.0)
        default_rng(7).exponential(3)
        np.random.Generator(np.random.PCG64(1)).integers(0, 5, 2)
        normal(size=2)
        np.random.RandomState(1).uniform(-1, 1)
        random.gauss(0, 4)
        random.Random(1).random()

    draws = seen(subject).draws
    named = ["laplace", "normal", "exponential", "integers", "normal", "uniform", "gauss", "random"]
    assert [draw.distribution for draw in draws] == named
    assert [draw.place.line - draws[0].place.line for draw in draws] == list(range(8))
    assert {draw.place.file for draw in draws} == {__file__}
    assert draws[0].parameters == {"loc": 0.0, "scale": 2}
    assert draws[0].shape == (2, 3)
    assert draws[1].parameters == {"loc": 1.0, "scale": 5.0}


def test_generators_in_objects_are_seen() -> None:
    assert [draw.distribution for draw in seen(Holder().draw).draws] == ["laplace", "normal"]


def test_sources_that_cannot_be_followed_are_named() -> None:
    run = seen(lambda: (os.urandom(4), secrets.token_hex(8), secrets.token_bytes(2)))
    assert {name for name, _ in run.opaque} >= {"os.urandom", "secrets.token_hex", "secrets.token_bytes"}


def test_everything_is_put_back() -> None:
    before = (np.random.default_rng, np.random.normal, np.random.mtrand._rand, random.gauss, os.urandom, held)
    methods = [dict(vars(kind)) for kind in (random.Random, random.SystemRandom, statistics.NormalDist)]
    secret = dict(vars(secrets))
    seen(lambda: np.random.normal())
    assert before == (np.random.default_rng, np.random.normal, np.random.mtrand._rand, random.gauss, os.urandom, held)
    assert methods == [dict(vars(kind)) for kind in (random.Random, random.SystemRandom, statistics.NormalDist)]
    assert dict(vars(secrets)) == secret


def test_a_run_can_be_given_other_values() -> None:
    run = RecordedRun(0, {0: np.array([1.0, 2.0])})
    with watch(run, None):
        values = np.random.default_rng().laplace(size=2)
    assert values.tolist() == [1.0, 2.0]


def test_what_other_threads_draw_is_not_the_runs() -> None:
    stop, drew = threading.Event(), threading.Event()

    def other() -> None:
        while not stop.is_set():
            os.urandom(4)
            random.random()
            drew.set()

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with watch(run := RecordedRun(0), None):
            drew.clear()
            assert drew.wait(5)
    finally:
        stop.set()
        thread.join()
    assert (run.draws, run.opaque) == ([], [])


def test_what_a_thread_of_its_own_draws_is_the_runs() -> None:
    with watch(run := RecordedRun(0), None):
        thread = threading.Thread(target=random.random)
        thread.start()
        thread.join()
    assert [draw.distribution for draw in run.draws] == ["random"]


def test_what_an_import_draws_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drawing_when_imported.py").write_text("import os, random\nSALT = os.urandom(4), random.random()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def subject(x: float, rng: np.random.Generator) -> float:
        import drawing_when_imported

        return x + len(drawing_when_imported.SALT) + rng.laplace()

    run = Tracer(subject).run(1.0)
    assert ([draw.distribution for draw in run.draws], run.opaque) == (["laplace"], [])


def test_the_seed_of_a_generator_is_no_opaque_source() -> None:
    run = seen(lambda: [np.random.default_rng().laplace(), np.random.Generator(np.random.PCG64()).normal()])
    assert ([draw.distribution for draw in run.draws], run.opaque) == (["laplace", "normal"], [])
    system = seen(lambda: (random.SystemRandom().getrandbits(8), secrets.randbits(3)))
    assert ([draw.parameters for draw in system.draws], system.opaque) == ([{"k": 8}, {"k": 3}], [])


def test_distributions_of_scipy_that_were_imported_before_are_watched() -> None:
    """They hold numpy's shared generator from their import on."""
    from scipy import stats

    before = stats.laplace._random_state
    result = trace(lambda x: x + stats.laplace.rvs(scale=0.5), [0.0, 1.0], epsilon=0.5, hostile=False)
    assert (result.rules, str(result.traced_epsilon)) == (("loss-too-large",), "2")
    assert stats.laplace._random_state is before
