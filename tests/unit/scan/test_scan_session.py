import json
import time
import zipfile
from pathlib import Path

import pytest

import dpassay
from dpassay.errors import InputError, MechanismError
from dpassay.scan.findings import baseline

INVERTED = """
import numpy as np


def privatize(value, epsilon):
    return value + np.random.laplace(0, epsilon)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "noise.py").write_text(INVERTED)
    return tmp_path


def test_a_folder_a_file_and_a_wheel_give_the_same_finding(package: Path) -> None:
    with zipfile.ZipFile(package / "noise-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(package / "noise.py", "noise.py")
    for place in (package, package / "noise.py", package / "noise-1.0-py3-none-any.whl"):
        assert [(one.rule, one.place.line) for one in dpassay.scan(place).alarms] == [("scale-inverted", 6)]


def test_calls_are_followed_into_other_modules_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "samplers.py").write_text(
        "import numpy as np\n\ndef noise(scale, size):\n    return np.random.laplace(0, scale, size)\n"
    )
    (tmp_path / "pkg" / "release.py").write_text(
        "from .samplers import noise\n\ndef release(values, epsilon):\n    return values + noise(epsilon * 2, 3)\n"
    )
    found = dpassay.scan(tmp_path / "pkg").alarms
    assert [(one.rule, Path(one.place.file).name, one.place.line) for one in found] == [
        ("scale-inverted", "release.py", 4)
    ]


def test_what_is_not_python_is_named_and_the_rest_is_scanned(package: Path) -> None:
    (package / "broken.py").write_text("def f(:\n")
    (package / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (package / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000)
    result = dpassay.scan(package)
    assert [one.rule for one in result.alarms] == ["scale-inverted"]
    assert len(result.skipped) == 3
    assert any("broken.py, line 1" in one for one in result.skipped)


def test_places_without_python_and_unknown_rules_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no Python files"):
        dpassay.scan(tmp_path)
    with pytest.raises(InputError, match="there is no"):
        dpassay.scan(tmp_path / "missing")
    (tmp_path / "bad.whl").write_text("this is not an archive")
    with pytest.raises(InputError, match="cannot be read as a wheel"):
        dpassay.scan(tmp_path / "bad.whl")
    with pytest.raises(InputError, match="Did you mean 'seed-fixed'"):
        dpassay.scan(tmp_path, only=["seed-fixd"])
    with pytest.raises(InputError, match="NAME==VERSION"):
        dpassay.scan(package="not a package;")


def test_a_file_that_is_too_large_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text("#" * 2_000_001)
    with pytest.raises(InputError, match=r"large\.py was not read: it has more than 2,000,000 bytes"):
        dpassay.scan(path)


def test_a_package_that_pip_cannot_fetch_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(MechanismError, match="pip cannot fetch"):
        dpassay.scan(package="dpassay-no-such-package==1.0")


def test_a_baseline_keeps_known_findings_quiet_where_lines_move(package: Path) -> None:
    known = package / "known.json"
    known.write_text(baseline(dpassay.scan(package)))
    (package / "noise.py").write_text("# a comment\n" + INVERTED)
    quiet = dpassay.scan(package, baseline=known)
    assert not quiet.findings
    assert quiet.known == 2  # the inverted scale, and that floating point is used
    (package / "noise.py").write_text(INVERTED.replace("epsilon)\n", "2 * epsilon)\n"))
    assert dpassay.scan(package, baseline=known).alarms
    known.write_text("{}")
    with pytest.raises(InputError, match="not a baseline"):
        dpassay.scan(package, baseline=known)


def test_only_some_rules_and_json(package: Path) -> None:
    assert not dpassay.scan(package, only=["seed-fixed"]).findings
    data = json.loads(json.dumps(dpassay.scan(package).to_data()))
    assert data["schema"] == "dpassay/scan/1"
    assert data["findings"][0]["line"] == 6


def test_tests_are_left_out_unless_asked_for(package: Path) -> None:
    (package / "test_noise.py").write_text(INVERTED)
    assert dpassay.scan(package).files == 1
    assert dpassay.scan(package, tests=True).files == 2


def test_nothing_is_executed(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("import sys\nopen('executed', 'w')\nsys.exit(3)\n" + INVERTED)
    dpassay.scan(tmp_path)
    assert not Path("executed").exists()
    assert not (tmp_path / "executed").exists()


def test_ten_thousand_lines_within_five_seconds(tmp_path: Path) -> None:
    body = "".join(INVERTED.replace("privatize", f"privatize{i}") for i in range(15))
    for i in range(110):
        (tmp_path / f"module{i}.py").write_text(body)
    start = time.process_time()
    result = dpassay.scan(tmp_path)
    assert result.lines >= 9_900
    assert time.process_time() - start < 5
    assert len(result.alarms) == 110 * 15
