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
"""


@pytest.mark.parametrize(
    ("options", "said", "skipped"), [((), ["3 times", "of size 1"], 1), (("--all",), ["7 times", "of size 9"], 0)]
)
def test_both_forms(pytester, monkeypatch, options, said, skipped):
    monkeypatch.setattr(tiers, "in_full", False)
    pytester.makeconftest(CONFTEST.read_text().replace('pytest_plugins = ["pytester"]', ""))
    pytester.makepyfile(LONG)
    result = pytester.runpytest("-p", "no:cacheprovider", "-rP", *options)
    result.assert_outcomes(passed=3 - skipped, skipped=skipped)
    result.stdout.fnmatch_lines(said)
