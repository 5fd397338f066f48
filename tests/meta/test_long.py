"""Long tests: in a reduced form, or not at all, unless --all is given; and how they are marked."""

from pathlib import Path

import pytest

import tiers

CONFTEST = Path(__file__).parents[1] / "conftest.py"
LONG = """
import pytest

@pytest.mark.long(reduced=3, full=7)
def test_repeated(repetitions):
    print(f"{repetitions} times")

@pytest.mark.parametrize("size", [1, pytest.param(9, marks=pytest.mark.long)])
def test_large(size):
    print(f"of size {size}")

@pytest.mark.long(every=3)
@pytest.mark.parametrize(("letter", "other"), [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_grid(letter, other, number):
    print(f"at {letter}{other}{number}")

@pytest.mark.long(reduced=3, full=7)
@pytest.mark.parametrize("size", [4, pytest.param(8, marks=pytest.mark.long(every=2))])
def test_repeated_in_two_sizes(size, repetitions):
    print(f"{repetitions} times of {size}")
"""


REDUCED = ["3 times", "of size 1", "at aA0", "at dD0", "at cC1", "at bB2", "3 times of 4"]
FULL = ["7 times", "of size 9", *(f"at {a}{a.upper()}{n}" for n in range(3) for a in "abcd"), "7 times of 8"]


@pytest.mark.parametrize(
    ("options", "said", "outcomes"),
    [((), REDUCED, {"passed": 7, "skipped": 10}), (("--all",), FULL, {"passed": 17})],
)
def test_both_forms(pytester, monkeypatch, options, said, outcomes):
    monkeypatch.setattr(tiers, "in_full", False)
    pytester.makeconftest(CONFTEST.read_text().replace('pytest_plugins = ["pytester"]', ""))
    pytester.makepyfile(LONG)
    result = pytester.runpytest("-p", "no:cacheprovider", "-rP", *options)
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines_random(said)
