import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pip
import pytest

from dpassay.cli.main import main
from dpassay.packages.judging import current
from dpassay.packages.record import read_records
from dpassay.report.packages import markdown
from local_package import make_wheel, write_record

ROOT = Path(__file__).parents[3]


@pytest.fixture
def dpassay(monkeypatch, capfd):
    """The command in this process, which saves two seconds each time; pip and the mechanisms have theirs."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["dpassay", "packages", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        return subprocess.CompletedProcess(words, int(stopped.value.code or 0), *capfd.readouterr())

    return command


def test_the_table_says_what_was_found_and_when(dpassay):
    ran = dpassay()
    assert ran.returncode == 0, ran.stderr
    assert "pure-ldp-1.1.2-sue" in ran.stdout
    assert "1.68" in ran.stdout
    assert "Recorded 2026-11-16" in ran.stdout


def test_one_record_is_shown_in_full(dpassay):
    ran = dpassay("show", "pure-ldp-1.1.2-sue")
    assert ran.returncode == 0
    for part in ("UEClient", "p + (1 - p)q", "env/bin/pip install pure-ldp==1.1.2", "def mechanism(x)"):
        assert part in ran.stdout
    assert dpassay("show", "pure-ldp*").returncode == 2
    assert dpassay("show", "nothing").returncode == 2


def test_options_that_do_not_go_together_are_refused(dpassay, tmp_path):
    for words in (("--record",), ("--envs", "x"), ("nothing",), ("--from", str(tmp_path))):
        ran = dpassay(*words)
        assert ran.returncode == 2
        assert ran.stderr.startswith("dpassay: ")


def test_the_records_as_data_and_as_a_page(dpassay, tmp_path):
    ran = dpassay("pure-ldp-1.1.2-*", "--json", "--html", str(tmp_path / "x.html"))
    found = json.loads(ran.stdout)
    assert [one["found"]["word"] for one in found] == ["refuted", "refuted"]
    page = (tmp_path / "x.html").read_text()
    assert "pure-ldp==1.1.2" in page


def test_the_page_in_the_documentation_is_that_of_the_records():
    assert (ROOT / "docs" / "packages.md").read_text() == markdown(current(read_records()))


def test_a_local_package_is_installed_run_recorded_and_compared(dpassay, tmp_path):
    wheels, records = tmp_path / "wheels", tmp_path / "the records"
    wheels.mkdir()
    records.mkdir()
    make_wheel(wheels)
    write_record(records, "tinycoin-right", "1.2")  # ln 3 = 1.0986
    write_record(records, "tinycoin-wrong", "0.1")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    told = ("--from", str(records), "--run", "--envs", str(tmp_path / "envs"))
    ran = dpassay(*told, "--record", **offline)
    assert ran.returncode == 0, ran.stderr
    found = json.loads((records / "recorded.json").read_text())
    assert found["tinycoin-right"]["word"] == "open"
    assert found["tinycoin-wrong"]["word"] == "refuted"
    assert 0.1 < found["tinycoin-wrong"]["lower"] < 1.0987

    found["tinycoin-right"]["word"] = "refuted"  # as if it had been so
    (records / "recorded.json").write_text(json.dumps(found))
    ran = dpassay(*told, "tinycoin-right", **offline)
    assert ran.returncode == 1
    assert "not as recorded: tinycoin-right" in ran.stderr

    write_record(records, "tinycoin-dying", "1", "dies")
    ran = dpassay(*told, "tinycoin-dying", **offline)
    assert ran.returncode == 4
    assert "tinycoin-dying was not run: " in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_package_that_pip_does_not_find_is_a_sentence(dpassay, tmp_path):
    write_record(tmp_path, "tinycoin-right", "1.2")
    # An interpreter whose new environments get a link to the pip that is here: to install one takes four seconds.
    link = f'ln -s {shlex.quote(pip.__path__[0])} "$4"/lib/python*/site-packages/'
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n{shlex.quote(sys.executable)} "$@" --without-pip && {link}\n')
    python.chmod(0o755)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    ran = dpassay(
        *("--from", str(tmp_path), "--run", "--envs", str(tmp_path / "envs"), "--python", str(python)), **offline
    )
    assert ran.returncode == 4
    assert "pip cannot install tinycoin==1.0: No matching distribution" in ran.stderr


@pytest.mark.long
def test_a_package_from_pypi_is_found_as_recorded(dpassay, tmp_path):
    ran = dpassay("opendp-randomized-response", "--run", "--envs", str(tmp_path))
    if "pip cannot install" in ran.stderr:
        pytest.skip(f"needs the network: {ran.stderr.splitlines()[-1]}")
    assert ran.returncode == 0, ran.stderr
