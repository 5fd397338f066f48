"""Files written whole: what the target may be, and what must survive."""

import os
import threading
from pathlib import Path

import pytest

from dpassay.core.files import write_whole
from dpassay.errors import InputError


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, "all of it")
    assert pipe.is_fifo()
    reader.join(10)
    assert read == [b"all of it"]


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    write_whole(tmp_path / "new" / "deep" / "x.txt", "all of it")
    assert (tmp_path / "new" / "deep" / "x.txt").read_text() == "all of it"
    with pytest.raises(InputError, match="cannot write"):
        write_whole(tmp_path / "new" / "deep" / "x.txt" / "y.txt", "a file is not a folder")


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "real.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert {path.name for path in tmp_path.rglob("*")} == {"kept", "real.json", "link.json"}


def test_a_link_to_a_file_that_is_not_there_creates_it(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "new.json")
    write_whole(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "new.json").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_device_is_an_error_and_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(InputError, match="No space left on device"):
        write_whole(link, "x")
    assert Path("/dev/full").is_char_device()
    assert link.is_symlink()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write_whole(tmp_path, "x")
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}*"))
