"""What an unfinished rewriting remembers of its input, so that only the same input is continued."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from dpassay.errors import InputError


class Rewritten:
    """A digest of the texts that are in the output, in a file next to it until the rewriting is finished.

    Where the lines of an author are limited, there is a digest of the authors too.

    A digest can confirm a guess of a text: only the owner may read the file. It covers what is already rewritten, so a
    line that ended the run can be repaired before the rest is rewritten.
    """

    def __init__(self, out: Path, authors: Callable[[], str] = lambda: "") -> None:
        self.out, self.path, self.authors = out, out.with_name(out.name + ".resume"), authors
        self.digest, self.number = hashlib.sha256(), 0
        self.read: deque[tuple[int, str, str]] = deque()  # for each group that was read and is not yet written

    def begin(self) -> None:
        """Nothing is written yet."""
        self.path.unlink(missing_ok=True)
        self.path.touch(mode=0o600)
        self._keep(0, self.digest.hexdigest(), self.authors())

    def behind(self, texts: Iterator[str], done: int) -> Iterator[str]:
        """The texts after the first `done` ones, if the first ones are those that were rewritten."""
        try:
            known = json.loads(self.path.read_text(encoding="utf-8"))
            number, expected = int(known["texts"]), (str(known["sha256"]), str(known.get("authors", "")))
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.out} is finished, or {self.path} was deleted, which says of what it is the rewriting: write to "
                "another file"
            ) from None
        digest, ahead, count = hashlib.sha256(), [], 0
        for count, text in enumerate(islice(texts, max(done, number)), 1):
            _add(digest, text)
            if count == done:
                self.digest, self.number = digest.copy(), done
            if count > done:
                ahead.append(text)
            if count == number and (digest.hexdigest(), self.authors()) != expected:
                break
        else:
            if count == max(done, number):
                return chain(ahead, texts)
        raise InputError(f"{self.out} is the rewriting of another input: give the same one, or another output file")

    def groups(self, groups: Iterable[list[str]]) -> Iterator[list[str]]:
        """The same groups, remembered as they are read."""
        for group in groups:
            for text in group:
                _add(self.digest, text)
            self.number += len(group)
            self.read.append((self.number, self.digest.hexdigest(), self.authors()))
            yield group

    def written(self) -> None:
        """The next group is in the output."""
        self._keep(*self.read.popleft())

    def finish(self) -> None:
        """All is written."""
        self.path.unlink(missing_ok=True)

    def _keep(self, number: int, digest: str, authors: str) -> None:
        known = {"texts": number, "sha256": digest} | ({"authors": authors} if authors else {})
        self.path.write_text(json.dumps(known) + "\n", encoding="utf-8")


def _add(digest: hashlib._Hash, text: str) -> None:
    content = text.encode("utf-8")
    digest.update(len(content).to_bytes(8, "big") + content)
