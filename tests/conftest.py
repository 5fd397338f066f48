"""For all tests: this folder on the path, one thread per process, Hypothesis without a clock, and long tests.

`@pytest.mark.long` is left to `--all` (`make test-all`). `@pytest.mark.long(reduced=200, full=2000)` always runs, and
its fixture `repetitions` is the one number or, with `--all`, the other. `@pytest.mark.long(every=3)` runs a third of a
test's cases, and all of them with `--all`.
"""

import gc
import os
from collections.abc import Iterator
from functools import cache
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

collect_ignore_glob = ["*conftest.py"]  # they have no doctests, and all of them the same name

# Every run tries the same examples, and none fails because the machine is busy.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the long tests too, and every test in full")


def pytest_configure(config: pytest.Config) -> None:
    tiers.in_full = config.getoption("--all")
    gc.disable()  # while modules are imported: nearly all that they make stays


def pytest_collection_finish() -> None:
    gc.freeze()  # 12,000 tests and large libraries are not searched for garbage again and again
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # so that extension modules find no leak where there is none


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if tiers.in_full:
        return
    for item in items:
        if any(_left_out(item, **mark.kwargs) for mark in item.iter_markers("long")):
            item.add_marker(pytest.mark.skip(reason="a long test: make test-all runs it"))


def _left_out(item: pytest.Item, every: int = 0, reduced: int = 0, full: int = 0) -> bool:
    """Whether a long test waits for `--all`. Of a grid those cases run whose places in the lists of values add up to a
    multiple of `every`: each value occurs, wherever another list has as many."""
    if not every:
        return not reduced
    number, total = next(iter(item.callspec.indices.values())), 0  # type: ignore[attr-defined]
    for mark in reversed([*item.iter_markers("parametrize")]):  # the last list's place changes from case to case
        number, place = divmod(number, len(mark.args[1]))
        total += place
    return total % every != 0


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Typer makes all commands anew for each command that is run in this process, which takes longer than most run."""
    import typer.main
    import typer.testing

    made = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", made)
        patch.setattr(typer.testing, "_get_command", made)
        yield


@pytest.fixture
def repetitions(request: pytest.FixtureRequest) -> int:
    """How often a long test repeats what it does."""
    marks = (mark.kwargs for mark in request.node.iter_markers("long"))
    return tiers.repetitions(**next(given for given in marks if "reduced" in given))
