"""A running program and the line to it: what is sent, what is received, and how it ends."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from dpassay.audit.remote.lines import Reply, check_length, late, short
from dpassay.audit.remote.timing import OutOfTime, within
from dpassay.errors import InputError, MechanismError

PATIENCE = 0.5  # seconds for a program to end after it was told to


class Died(MechanismError):
    """The program ended. `unread` means that it had not read the request, which therefore was not the cause."""

    def __init__(self, message: str, how: str, unread: bool) -> None:
        super().__init__(message)
        self.how, self.unread = how, unread


class Process:
    """A running program and the line to it. A single thread handles its three pipes, which never block."""

    def __init__(self, words: list[str], name: str, limit: float) -> None:
        import subprocess

        self.name, self.limit = name, limit
        pipe = subprocess.PIPE
        try:
            # In its own session: its children end with it, and Ctrl-C is left to us.
            self.process = subprocess.Popen(
                words, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise InputError(f"{name} cannot be started: {error.strerror}; check the command") from None
        streams = (self.process.stdin, self.process.stdout, self.process.stderr)
        self.input, self.output, self.errors = (stream.fileno() for stream in streams if stream)
        for end in (self.input, self.output, self.errors):
            os.set_blocking(end, False)
        self.last = b""  # the last answer
        self.heard = bytearray()  # the answer being read
        self.complaints = bytearray()  # the end of what it wrote on stderr
        self.written = 0  # bytes of the request that went into the pipe

    def exchange(self, request: bytes, n: int) -> Reply:
        """Send a line and read a line. When the audit's time is over, the program is killed."""
        import selectors

        seconds, last = within(self.limit)
        deadline = time.monotonic() + seconds
        self.written = 0
        if self._hear():
            raise self._broken(f"wrote {short(self.heard)} without a request; only answers may be written to stdout")
        unsent = memoryview(request)
        complete = False
        with selectors.DefaultSelector() as ready:
            ready.register(self.input, selectors.EVENT_WRITE)
            ready.register(self.output, selectors.EVENT_READ)
            ready.register(self.errors, selectors.EVENT_READ)
            while unsent or not complete:
                if (left := deadline - time.monotonic()) <= 0:
                    if last:
                        self.abort()
                        raise OutOfTime
                    raise MechanismError(late(self.name, self.limit, n) + self._said())
                for end in [key.fd for key, _ in ready.select(left)]:
                    if end == self.output:
                        complete |= b"\n" in self._hear()
                    elif end == self.errors:
                        if not self._complain():
                            ready.unregister(end)
                    else:
                        try:
                            sent = os.write(end, unsent[:65536])
                            unsent, self.written = unsent[sent:], self.written + sent
                        except BrokenPipeError:  # it no longer reads; its output will show why
                            unsent = unsent[:0]
                        if not unsent:
                            ready.unregister(end)
        line, _, rest = self.heard.partition(b"\n")
        if rest:
            raise self._broken(f"answered one request with several lines: {short(self.heard)}")
        self.last, self.heard = bytes(line[:1000]), bytearray()
        return Reply(bytes(line))

    def _hear(self) -> bytes:
        try:
            chunk = os.read(self.output, 65536)
        except BlockingIOError:
            return b""
        if not chunk:
            how = self._ending()
            raise Died(str(self._broken(how)), how, self._unread())
        self.heard += chunk
        check_length(self.name, self.heard)
        return chunk

    def _complain(self) -> bool:
        """Whether more may arrive on stderr."""
        try:
            chunk = os.read(self.errors, 65536)
        except BlockingIOError:
            return True
        self.complaints = (self.complaints + chunk)[-4000:]
        return bool(chunk)

    def _unread(self) -> bool:
        """Whether it read nothing of the request, as far as the system can tell."""
        import fcntl
        import termios

        try:
            left = int.from_bytes(fcntl.ioctl(self.input, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            left = 0
        return left >= self.written

    def _ending(self) -> str:
        from subprocess import TimeoutExpired

        try:
            code = self.process.wait(1)
        except TimeoutExpired:
            return "closed its output"
        return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"

    def _broken(self, what: str) -> MechanismError:
        for _ in range(4):  # a pipe holds at most that much
            self._complain()
        return MechanismError(f"{self.name} {what}{self._said()}")

    def _said(self) -> str:
        last = bytes(self.heard) or self.last
        errors = self.complaints.decode("utf-8", "replace").strip()
        answer = f"; its last output was {short(last)}" if last else "; it had not answered before"
        return answer + (f", and on stderr {errors[-500:]!r}" if errors else "")

    def abort(self) -> None:
        """Kill it: a thread that waits for its answer learns that it ended."""
        import signal

        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes, terminate, kill: each only if the previous step was not enough."""
        import signal
        import subprocess

        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        for then in (signal.SIGTERM, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
                return
            with suppress(OSError):  # it ended just now
                os.killpg(self.process.pid, then)
        self.process.wait()
