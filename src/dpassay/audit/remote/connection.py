"""A connection to an HTTP endpoint: it stays open, retries after transient failures, and observes time limits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from dpassay.audit.remote.lines import Reply, Troubles, check_length, late, short
from dpassay.audit.remote.timing import OutOfTime, Pacer, pause, within
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass

if TYPE_CHECKING:
    import ssl

    from httpx import Response

KEPT_ALIVE = 1.0  # seconds: less than servers wait before they close an idle connection
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a request is repeated, doubled each time
LONGEST_WAIT = 600.0  # the longest wait, in seconds, that a server may ask for
SHORTEST_SECRET = 8  # characters: a shorter string may occur anywhere


@cache
def _authorities() -> ssl.SSLContext:
    """The CA certificates for https, loaded once because that takes 0.05 s, as long as many requests."""
    import httpx

    return httpx.create_ssl_context()


class Manners:
    """How requests may be made, for all connections to one endpoint, and what is known about it."""

    def __init__(self, retries: int, pacer: Pacer | None, troubles: Troubles) -> None:
        self.retries, self.pacer, self.troubles = retries, pacer, troubles
        self.answered = False  # whether it has ever answered
        self.fails = False  # whether a run failed for good: failures are then outputs, and not repeated


@dataclass(frozen=True, slots=True)
class _Trouble:
    """An attempt that failed.

    `ran` means that the mechanism may have been run. A request that was refused before that (too many requests, no
    connection) is simply repeated, whatever the output would have been.
    """

    kind: str  # what a failed run is called
    said: str  # what the user is told
    passing: bool = True  # it may be transient
    ran: bool = True
    final: bool = False  # if it persists, it is the output of the run
    wait: float = 0.0  # seconds that the server asks for


class Connection:
    """A connection that stays open between requests, and is cut when a request runs out of time.

    httpx limits each step of an exchange (connecting, sending, each piece read), but not their sum.
    """

    def __init__(
        self,
        url: str,
        name: str,
        limit: float,
        headers: Mapping[str, str],
        secrets: list[bytes],
        manners: Manners,
        over: threading.Event,
    ) -> None:
        import httpx

        self.url, self.name, self.limit = url, name, limit
        self.secrets = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        self.manners, self.over = manners, over
        # Not compressed, so that a small answer cannot expand into a huge one.
        usual = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        given = {name.lower() for name in headers}
        try:
            self.client = httpx.Client(
                verify=_authorities(),
                headers={name: value for name, value in usual.items() if name.lower() not in given} | dict(headers),
                timeout=limit,
                follow_redirects=False,  # a redirected POST would lose its body, or go to an unintended address
                limits=httpx.Limits(max_connections=1, keepalive_expiry=KEPT_ALIVE),
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise InputError(f"the proxy that the environment names cannot be used: {error}") from None
        self.socket: socket.socket | None = None
        self.cut = False

    def exchange(self, request: bytes, n: int) -> Reply:
        """Post a request and read the answer; after a transient failure, repeat it after a pause."""
        manners, first, attempt = self.manners, None, 0
        while True:
            if manners.pacer is not None:
                manners.pacer.turn(self.over)
            came = self._post(request, n)
            if isinstance(came, bytes):
                manners.answered = True
                return Reply(came, first)
            if came.ran and came.passing and first is None:
                first = Failure(came.kind, came.said[:200])
            if not came.passing or (came.final and manners.fails) or attempt == manners.retries or self.over.is_set():
                break
            manners.troubles.count(f"was asked again: {came.kind}")
            usual = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt)
            pause(max(usual, came.wait), self.over)
            attempt += 1
        if came.final and manners.answered:
            manners.fails = True
            return Reply(None, first)
        again = f", and so {attempt} times more" if attempt else ""
        raise MechanismError(f"{self.name} {came.said}{again}")

    def _post(self, request: bytes, n: int) -> bytes | _Trouble:
        """One attempt."""
        import httpx

        seconds, last = within(self.limit)
        asked: dict[str, Any] = {"content": request, "extensions": {"trace": self._watch}, "timeout": seconds}
        try:
            with self._cut_after(seconds), self.client.stream("POST", self.url, **asked) as response:
                body = self._body(response)
        except httpx.HTTPError as error:
            if not (self.cut or isinstance(error, httpx.TimeoutException)):
                return self._no_answer(error)
            self.cut = True
        if self.cut:  # an answer of unknown length looks complete when it is cut
            raise OutOfTime if last else MechanismError(late(self.name, self.limit, n))
        if not isinstance(body, bytes):
            return body
        return body if response.is_success else self._refused(response, body)

    def _no_answer(self, error: Exception) -> _Trouble:
        import httpx

        cause: BaseException = error
        while cause.__context__ is not None and type(cause).__module__ in ("httpx", "httpcore"):
            cause = cause.__context__
        said = f"cannot be used: {type(cause).__name__}: {self._hidden(str(cause))}; is it running?"
        if isinstance(error, httpx.ConnectError | httpx.ProxyError):
            return _Trouble("no connection", said, passing=self.manners.answered, ran=False)
        lasting = isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL)
        return _Trouble("broken connection", said, passing=not lasting, final=True)

    def _refused(self, response: Response, body: bytes) -> _Trouble:
        status = response.status_code
        where = response.headers.get("Location") if response.is_redirect else None
        advice = f"; redirects are not followed, give the address {where!r} if you mean it" if where else ""
        said = f"answered with HTTP status {status}: {short(body)}{advice}"
        busy = status == 429
        wait = _asked_to_wait(response.headers.get("Retry-After", "")) if busy or status >= 500 else 0.0
        if wait > LONGEST_WAIT:
            raise MechanismError(f"{self.name} {said}; it asks us to wait for {wait:,.0f} s: continue after that")
        return _Trouble(f"HTTP status {status}", said, busy or status >= 500, not busy, status == 500, wait)

    def abort(self) -> None:
        """Cancel what another thread is waiting for."""
        self._cut()

    def close(self) -> None:
        self.client.close()

    def _body(self, response: Response) -> bytes | _Trouble:
        import httpx

        body = bytearray()
        try:
            for chunk in response.iter_raw():
                body += chunk
                check_length(self.name, body)
        except httpx.RemoteProtocolError:
            if self.cut or "Content-Length" not in response.headers:
                raise
            return _Trouble(
                "broken connection", f"broke off in the middle of its answer {short(self._masked(body))}", final=True
            )
        return self._masked(body)

    def _masked(self, said: bytes | bytearray) -> bytes:
        """A message without the token: a server may echo what it was sent."""
        for secret in self.secrets:
            said = said.replace(secret, b"***")
        return bytes(said)

    def _hidden(self, text: str) -> str:
        return self._masked(text.encode("utf-8", "replace")).decode("utf-8")

    @contextmanager
    def _cut_after(self, seconds: float) -> Iterator[None]:
        self.cut = False
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _cut(self) -> None:
        self.cut = True
        if self.socket is not None:
            with suppress(OSError):  # it is closed already
                self.socket.shutdown(socket.SHUT_RDWR)

    def _watch(self, event: str, info: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self.socket = info["return_value"].get_extra_info("socket")
            if self.cut or self.over.is_set():
                self._cut()
        elif event == "http11.receive_response_headers.started" and self.socket and hasattr(socket, "TCP_QUICKACK"):
            # A server that sends headers and body separately waits for our ACK of the first, delayed 40 ms by Linux.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _asked_to_wait(text: str) -> float:
    """The seconds of a Retry-After header, which may be a number or a date; 0 if it is neither."""
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    with suppress(ValueError, TypeError, OverflowError):
        then = parsedate_to_datetime(text)
        return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    return 0.0
