"""One server for the tests of a process; it ends with them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from processes import started

pytest.importorskip("starlette", reason="the page needs the extra: pip install 'dpassay[serve]'")


@dataclass(frozen=True)
class Served:
    address: str
    process: int

    def get(self, path: str, query: Any = None, **options: Any) -> httpx.Response:
        question = query if isinstance(query, str) else urlencode(query or [])
        # verify=False: it is http, and to load the certificates of authorities takes 0.05 s for each request
        address = f"{self.address}{path}{'?' if question else ''}{question}"
        return httpx.get(address, timeout=300, verify=False, **options)

    def check(self, pipeline: str, **stated: Any) -> dict[str, Any]:
        settings = [("set", f"{name}={stated.pop(name)}") for name in list(stated) if len(name) == 1]
        answer = self.get("api/check", [("pipeline", pipeline), *settings, *stated.items()])
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = json.loads(answer.text)
        return data

    def memory(self) -> int:
        """What the server and its workers use, in bytes."""
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process)], capture_output=True, text=True)
        pages = [Path(f"/proc/{pid}/statm") for pid in (self.process, *children.stdout.split())]
        return sum(int(page.read_text().split()[1]) for page in pages if page.exists()) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    command = [sys.executable, "-m", "dpassay", "serve", "--port", "0", "--no-open"]
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line + process.stderr.read()
        yield Served(found[0], process.pid)
