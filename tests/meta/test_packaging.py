"""What is released: the source distribution is complete, and the wheel works without the repository."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import dpassay
from processes import LIMIT

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ADEPT = ("check", "--pipeline", "clip(l2, C) | laplace(2*C/eps)", "--set", "C=1", "--dim", "32", "--epsilon", "1")


def tracked() -> list[str]:
    """The files of the repository."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def test_all_that_is_tracked_is_in_the_source_distribution() -> None:
    included = {name.removeprefix("/") for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    assert {name.split("/")[0] for name in tracked()} - {"pyproject.toml"} <= included


def test_torch_is_pinned_for_our_environments_alone() -> None:
    """A user may have another torch; every install of ours must use the constraints."""
    extras = PROJECT["project"]["optional-dependencies"]
    stated = {one for extra in extras.values() for one in extra if one.startswith("torch")}
    assert stated == {"torch>=2.2"}
    assert re.search(r"^torch==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    installs = re.findall(r"pip install .*", (ROOT / "Makefile").read_text())
    assert installs
    assert all("--constraint constraints.txt" in line for line in installs)


def extras_named_in_the_code() -> set[str]:
    """Those in `dpassay[NAME]`, and those given to `needs(package, extra)`."""
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        for names in re.findall(r"dpassay\[([a-z,-]+)\]", text):
            found |= set(names.split(","))
        found |= set(re.findall(r'\bneeds\("[^"]+", "([^"]+)"\)', text))
    return found


def test_each_extra_that_a_message_names_can_be_installed() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    named = extras_named_in_the_code()
    assert {"text", "serve", "minilm", "hub"} <= named  # one of each way in which they are written
    assert named <= set(extras)
    within = {name for extra in extras.values() for one in extra for name in re.findall(r"dpassay\[([^]]+)\]", one)}
    assert {name for names in within for name in names.split(",")} <= set(extras)


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == dpassay.__version__ == PROJECT["project"]["version"]
    assert cited["license"] == PROJECT["project"]["license"]
    for key in ("cff-version", "message", "title", "authors"):  # what the format requires
        assert cited[key]


def python_of(version: str) -> str:
    """An interpreter of this version."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    found = shutil.which(f"python{version}")
    ran = found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    if not found or not ran:
        pytest.skip(f"there is no Python {version}")
    return found


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A program that sees nothing of this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**kept, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=2 * LIMIT,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, built from what is tracked and nothing else."""
    folder = tmp_path_factory.mktemp("built")
    source, tools = folder / "source", folder / "tools"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    run(sys.executable, "-m", "venv", tools, cwd=folder)
    python = tools / "bin" / "python"
    for words in (
        ("pip", "install", "--quiet", *PROJECT["build-system"]["requires"]),
        ("hatchling", "build", "-d", folder),
    ):
        done = run(python, "-m", *words, cwd=source)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_the_source_distribution_is_complete(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert set(tracked()) - names == set()
    (wheel,) = built.glob("*.whl")
    packaged = {name.removeprefix("src/") for name in tracked() if name.startswith("src/")}
    assert packaged - set(zipfile.ZipFile(wheel).namelist()) == set()


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_works_without_the_repository(built: Path, tmp_path: Path, version: str) -> None:
    assert run(python_of(version), "-m", "venv", "env", cwd=tmp_path).returncode == 0
    (wheel,) = built.glob("*.whl")
    program, python = tmp_path / "env" / "bin" / "dpassay", tmp_path / "env" / "bin" / "python"
    done = run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where = run(python, "-c", "import dpassay; print(dpassay.__file__)", cwd=tmp_path).stdout.strip()
    assert Path(where).is_relative_to(tmp_path / "env")
    # As `make demo` does.
    gallery = run(program, "gallery", "--figure", "out/gallery.svg", "--html", "out/gallery.html", cwd=tmp_path)
    assert gallery.returncode == 0, gallery.stderr
    assert "adept" in gallery.stdout
    assert (tmp_path / "out" / "gallery.html").stat().st_size > 10_000
    check = run(program, *ADEPT, "--certificate", "a.json", "--html", "a.html", cwd=tmp_path)
    assert check.returncode == 1, check.stderr
    assert "[5.656854249, 5.656854250]" in check.stdout  # √32
    assert run(program, "verify", "a.json", cwd=tmp_path).returncode == 0
    audited = run(program, "audit", "adept", "--runs", "2e4", cwd=tmp_path)
    assert audited.returncode == 1, audited.stderr
    refused = run(program, "train", "lm", "--out", "m", cwd=tmp_path)
    assert refused.returncode == 2
    assert "pip install 'dpassay[text]'" in refused.stderr
