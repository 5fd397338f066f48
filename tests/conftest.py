"""For all tests: this folder on the path, one thread per process, Hypothesis without a clock, and long tests.

`@pytest.mark.long` is left to `--all` (`make test-all`). `@pytest.mark.long(reduced=200, full=2000)` always runs, and
its fixture `repetitions` is the one number or, with `--all`, the other.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tiers

pytest_plugins = ["pytester"]

if not Path("/proc/driver/nvidia").exists():  # before Triton is imported: kernels are interpreted where there is no GPU
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Before numpy and torch are imported, and for the processes that tests start: with as many test processes as cores,
# more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Every run tries the same examples, and none fails because the machine is busy.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the long tests too, and every test in full")


def pytest_configure(config: pytest.Config) -> None:
    tiers.in_full = config.getoption("--all")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if tiers.in_full:
        return
    for item in items:
        mark = item.get_closest_marker("long")
        if mark is not None and "reduced" not in mark.kwargs:
            item.add_marker(pytest.mark.skip(reason="a long test: make test-all runs it"))


@pytest.fixture
def repetitions(request: pytest.FixtureRequest) -> int:
    """How often a long test repeats what it does."""
    return tiers.repetitions(**request.node.get_closest_marker("long").kwargs)
