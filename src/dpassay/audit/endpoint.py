"""Mechanisms behind an HTTP address. remote.py has the protocol that they speak."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpassay.audit.remote import Line, Remote, check_length, late, seconds_of, short
from dpassay.errors import InputError, MechanismError

if TYPE_CHECKING:
    from httpx import Response

KEPT_ALIVE = 1.0  # seconds: less than servers wait before they close an idle connection


@dataclass(slots=True, eq=False)
class Endpoint(Remote):
    """An HTTP address that answers a POST of JSON with JSON. Redirects are not followed.

    >>> Endpoint("http://127.0.0.1:8000/rewrite").describe()
    {'kind': 'url', 'url': 'http://127.0.0.1:8000/rewrite'}
    >>> Endpoint("ftp://example.org")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: the address must be http://host/... or https://host/..., ... got 'ftp://example.org'
    """

    url: str
    time_limit: float = 30.0

    def __post_init__(self) -> None:
        import httpx

        self.time_limit = seconds_of(self.time_limit)
        try:
            parts = httpx.URL(self.url)
            right = parts.scheme in ("http", "https") and parts.raw_host and not parts.userinfo
            right = right and (parts.port is None or 0 < parts.port < 2**16)
        except httpx.InvalidURL:
            right = False
        if not right or not self.url.isascii() or not self.url.isprintable() or " " in self.url:
            raise InputError(
                "the address must be http://host/... or https://host/..., in ASCII and without a password, "
                f"got {self.url!r}"
            )

    def __str__(self) -> str:
        return f"the endpoint {self.url}"

    def describe(self) -> dict[str, str]:
        return {"kind": "url", "url": self.url}

    def _open(self) -> Line:
        return _Connection(self.url, str(self), self.time_limit)


class _Connection:
    """A connection that stays open between requests, and is cut when a request's time is over.

    httpx limits each step of an exchange (connecting, sending, each piece read), but not their sum.
    """

    def __init__(self, url: str, name: str, limit: float) -> None:
        import httpx

        self.url, self.name, self.limit = url, name, limit
        # Not compressed: a small answer cannot unfold into a huge one.
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            self.client = httpx.Client(
                headers=headers,
                timeout=limit,
                follow_redirects=False,  # a redirected POST would lose its body, or go where nobody meant it to
                limits=httpx.Limits(max_connections=1, keepalive_expiry=KEPT_ALIVE),
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise InputError(f"the proxy that the environment names cannot be used: {error}") from None
        self.socket: socket.socket | None = None
        self.cut = False

    def exchange(self, request: bytes, n: int) -> bytes:
        """Post a request and read the answer."""
        import httpx

        watch = {"trace": self._watch}
        try:
            with self._deadline(), self.client.stream("POST", self.url, content=request, extensions=watch) as response:
                body = self._body(response)
        except httpx.HTTPError as error:
            if self.cut or isinstance(error, httpx.TimeoutException):
                raise MechanismError(late(self.name, self.limit, n)) from None
            cause: BaseException = error
            while cause.__context__ is not None and type(cause).__module__ in ("httpx", "httpcore"):
                cause = cause.__context__
            said = f"{type(cause).__name__}: {cause}"
            raise MechanismError(f"{self.name} cannot be used: {said}; is it running?") from None
        if self.cut:  # an answer of unknown length looks complete when it is cut
            raise MechanismError(late(self.name, self.limit, n))
        if response.is_success:
            return body
        where = response.headers.get("Location") if response.is_redirect else None
        advice = f"; redirects are not followed, give the address {where!r} if you mean it" if where else ""
        raise MechanismError(f"{self.name} answered with HTTP status {response.status_code}: {short(body)}{advice}")

    def close(self) -> None:
        self.client.close()

    def _body(self, response: Response) -> bytes:
        import httpx

        body = bytearray()
        try:
            for chunk in response.iter_raw():
                body += chunk
                check_length(self.name, body)
        except httpx.RemoteProtocolError:
            if self.cut or "Content-Length" not in response.headers:
                raise
            raise MechanismError(f"{self.name} broke off in its answer {short(body)}") from None
        return bytes(body)

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        self.cut = False
        timer = threading.Timer(self.limit, self._cut)
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
            if self.cut:
                self._cut()
        elif event == "http11.receive_response_headers.started" and self.socket and hasattr(socket, "TCP_QUICKACK"):
            # A server that sends headers and body apart waits for our word of the first, which Linux keeps for 40 ms.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
