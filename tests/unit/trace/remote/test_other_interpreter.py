"""Code in another interpreter, which has numpy alone, is traced as if it ran in this one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import remote_code
from typer.testing import CliRunner

from dpassay.cli.main import app
from dpassay.errors import InputError, MechanismError
from dpassay.trace.remote.interpreter import RemoteTracer
from dpassay.trace.remote.wire import Receiver, Sender
from dpassay.trace.session import trace
from dpassay.trace.watch.record import CodeLine

X, Y = [1.0, 0.0], [0.0, 1.0]
# What the other interpreter must do without: our dependencies, and all of ours that does not watch a run.
WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        needed = ("dpassay.trace", "dpassay.errors", "dpassay.values")
        ours = name.startswith("dpassay.") and not name.startswith(needed)
        if ours or name in ("mpmath", "scipy", "pydantic", "typer", "rich", "torch", "jinja2", "httpx"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
"""


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.chdir(Path(__file__).parents[1])
    return str(script)


@pytest.fixture
def started(interpreter: str) -> Iterator[Any]:
    tracers: list[RemoteTracer] = []

    def start(name: str, **options: Any) -> RemoteTracer:
        tracers.append(RemoteTracer(interpreter, f"remote_code:{name}", **options))
        return tracers[-1]

    yield start
    for tracer in tracers:
        tracer.close()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", ["shared", "right", "single", "seeded"])
def test_the_result_is_that_of_this_interpreter(name: str, started: Any) -> None:
    """Up to the numbers that depend on the time that a run takes."""
    options: dict[str, Any] = {"epsilon": 0.6, "delta": 1e-3 if name == "single" else 0, "name": name, "seed": 3}
    there, here = (
        trace(one, [X, Y], **options, hostile=name == "shared")
        for one in (started(name, seed=3), getattr(remote_code, name))
    )
    assert there.verdict.word == here.verdict.word == ("open" if name == "right" else "refuted")
    assert (there.pipeline, str(there.traced_epsilon)) == (here.pipeline, str(here.traced_epsilon))
    for mine, its in ((there.findings, here.findings), (there.warnings, here.warnings)):
        assert [(one.rule, one.place, said(one)) for one in mine] == [(one.rule, one.place, said(one)) for one in its]
    assert there.to_dict()["draws"] == here.to_dict()["draws"]


def said(finding: Any) -> str:
    return str(finding.message).partition("; counted:")[0]


@pytest.mark.long
def test_noise_of_an_earlier_call_stays_the_same_noise(started: Any) -> None:
    result = trace(started("MadeOnce.encode"), [X, Y], epsilon=1, hostile=False)
    assert result.rules == ("noise-made-once",)
    assert result.findings[0].place is not None
    assert Path(result.findings[0].place.file).name == "remote_code.py"


def test_an_exception_that_the_noise_decides_is_an_output(started: Any) -> None:
    result = trace(started("checked"), pairs=[(3.0, 4.0)], epsilon=1, hostile=False, time="60s")
    assert result.pair_epsilon.upper == pytest.approx(1.0), result.verdict.reason


def test_an_object_with_sample(started: Any) -> None:
    result = trace(started("Sampler"), [X, Y], epsilon=1, hostile=False)
    assert result.rules == ("loss-too-large",)
    assert result.traced_epsilon.lower == pytest.approx(2 / 0.5)


def test_what_cannot_be_run_is_named(started: Any, interpreter: str) -> None:
    with pytest.raises(MechanismError, match=r"^remote_code.py:\d+ raised ValueError: no$"):
        trace(started("refuses"), [X, Y], epsilon=1)
    with pytest.raises(InputError, match="it needs 4 arguments"):
        started("too_many")
    with pytest.raises(InputError, match="AttributeError"):
        started("missing")
    with pytest.raises(InputError, match="cannot be started"):
        RemoteTracer(str(Path(interpreter).with_name("none")), "remote_code:right")
    with pytest.raises(InputError, match="ended with exit code"):
        RemoteTracer("false", "remote_code:right")


def test_a_program_that_ends_is_told_with_its_status(started: Any) -> None:
    """It is not asked again, and neither is one whose answer may come later: that would be taken for another's."""
    ends = started("ends")
    for _ in range(2):
        with pytest.raises(
            MechanismError, match=r"^the interpreter \S+ was ended by signal 9 in a run of remote_code:ends$"
        ):
            trace(ends, [X, Y], epsilon=1)
    slow = started("slow", time_limit=1)
    for _ in range(2):
        with pytest.raises(MechanismError, match=r" 1 s"):
            trace(slow, [X, Y], epsilon=1)


def test_the_folder_that_is_lent_goes_away(started: Any) -> None:
    tracer = started("right")
    folder = Path(tracer._folder.name)
    assert folder.exists()
    tracer.close()
    assert not folder.exists()


def test_on_the_command_line(interpreter: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    subject = ["--interpreter", interpreter, "--python", "remote_code:shared"]
    arguments = ["trace", *subject, "--pair", json.dumps([X, Y]), "--epsilon", "1", "--save", str(file), "--json"]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 1
    assert json.loads(run.stdout)["findings"][0]["rule"] == "shared-noise"
    assert json.loads(file.read_text())["versions"]["numpy of the code"] == np.__version__
    again = CliRunner().invoke(app, ["verify", str(file), *subject])
    assert (again.exit_code, "The trace holds" in again.stdout) == (0, True)


def test_the_wire_keeps_numbers_types_and_identity() -> None:
    place = CodeLine("a.py", 1)
    numbers = np.array([0.1, np.nan, -0.0, np.inf], np.float32)
    value = {"a": [place, place], 1: (numbers, np.add, np.clip, None, True, "é"), "s": np.float64(0.1)}
    sender, receiver = Sender(), Receiver()
    found = receiver.value(json.loads(json.dumps(sender.message(value))))
    assert found["a"][0] is found["a"][1]
    assert found["a"][0] == place
    back, add, clip, *rest = found[1]
    assert back.dtype == np.float32
    assert back.tobytes() == numbers.tobytes()
    assert (add, clip, rest) == (np.add, np.clip, [None, True, "é"])
    again = sender.message(place)
    assert again["objects"] == []
    assert receiver.value(again) is found["a"][0]


def test_the_wire_makes_nothing_else() -> None:
    with pytest.raises(MechanismError, match="not known here"):
        Receiver().value({"value": None, "objects": [["subprocess:Popen", {}]]})
    lost = Receiver().value({"value": {"code": ["os", "system"]}, "objects": []})
    with pytest.raises(MechanismError, match="cannot be sent"):
        lost("true")
