"""Options of commands, converted as typer does or not at all."""

import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from dpassay.cli.coercion import Command
from dpassay.errors import InputError


class Size(Enum):
    small = "s"
    large = "l"


def values(cls, arguments, catch=True):
    app, seen = typer.Typer(), []

    def command(
        word: str = "w",
        some: Annotated[list[str] | None, typer.Option()] = None,
        numbers: Annotated[list[int] | None, typer.Option()] = None,
        share: float = 0.5,
        count: Annotated[int, typer.Option(min=0)] = 3,
        path: Path | None = None,
        kind: Literal["a", "b"] = "a",
        size: Size = Size.small,
        flag: bool = False,
        other: bool | None = None,
        names: Annotated[list[str] | None, typer.Argument()] = None,
    ):
        seen.append((word, some, numbers, share, count, path, kind, size, flag, other, names))

    app.command(cls=cls)(command)
    result = CliRunner().invoke(app, arguments, catch_exceptions=catch)
    return result.exit_code, seen, result.output


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--word", "x", "--some", "1", "--some", "2", "--numbers", "4", "--numbers", "5"],
        ["--share", "1e-3", "--count", "0", "--path", "a b", "--kind", "b", "--size", "l", "--flag", "--no-other"],
        ["--share", "0.5", "--count", "3", "--kind", "a", "first", "second"],
    ],
)
def test_values_are_those_of_typer(arguments):
    assert values(Command, arguments) == values(None, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--count", "many"], "--count must be a whole number, got many"),
        (["--share", "half"], "--share must be a number, got half"),
        (["--kind", "c"], "--kind must be one of a, b, got c"),
        (["--size", "m"], "--size"),
        (["--count", "-1"], "--count: "),
        (["--share"], "--share needs a value"),
        (["--flag=1"], "--flag takes no value"),
        (["--shares", "1"], "there is no option --shares; did you mean '--share'?"),
    ],
)
def test_what_typer_refuses_is_refused_in_one_sentence(arguments, said):
    assert values(None, arguments)[:2] == (2, [])
    with pytest.raises(InputError) as refused:
        values(Command, arguments, catch=False)
    error = str(refused.value)
    assert error.startswith(said)
    assert error.endswith("--help' lists the options")
    assert "\n" not in error


def test_an_audit_imports_nothing_that_it_does_not_need(tmp_path):
    (tmp_path / "mine.py").write_text("def noisy(x, rng):\n    return x + rng.laplace(scale=0.5)\n")
    arguments = ["audit", "--python", "mine:noisy", "--pair", "[0, 1]", "--epsilon", "1"]
    heavy = "pydantic", "scipy.special", "dpassay.exact.analysis", "dpassay.evidence.certificate", "asyncio", "http"
    code = f"""
import sys
from dpassay.cli.main import main
sys.argv = ["dpassay", *{arguments!r}]
try:
    main()
except SystemExit as ending:
    print("ended with", ending.code)
print([name for name in {heavy!r} if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-2:] == ["ended with 1", "[]"]  # refuted
