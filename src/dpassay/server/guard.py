"""Checks on every request: host, method, length; and the headers of every answer."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_QUERY = 8_000  # bytes of a query string
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def refusal(sentence: str, status: int = 400, **more: Any) -> Response:
    """An error as JSON: one sentence, never a traceback.

    >>> refusal("say what is claimed").body
    b'{"error": "say what is claimed"}'
    """
    text = json.dumps({"error": sentence, **more}, ensure_ascii=False)
    return Response(text, status, media_type="application/json")


def allowed_host(given: str, bound: str) -> bool:
    """Whether a Host header names this server: by a loopback address, or by what it is bound to.

    A page from elsewhere whose name was made to resolve to this server would send that name: this detects DNS
    rebinding. Other addresses are allowed only if the server listens on all of them.

    >>> [allowed_host(name, "127.0.0.1") for name in ("127.0.0.1:8765", "localhost", "[::1]:80", "evil.example:8765")]
    [True, True, True, False]
    >>> [allowed_host("192.168.1.5:8765", bound) for bound in ("127.0.0.1", "192.168.1.5", "0.0.0.0")]
    [False, True, True]
    """
    name, _, port = given.strip().lower().rpartition(":") if not given.endswith("]") else (given, "", "")
    if not name or not port.isdecimal():
        name = given.strip().lower()
    name = name.removeprefix("[").removesuffix("]")
    if name in ("localhost", bound.lower()):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or bound in ("0.0.0.0", "::")


class Guard:
    """An application behind these checks; a bug in it becomes a one-sentence error too."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, guarded)
            return
        try:
            await self.app(scope, receive, guarded)
        except Exception as error:
            if begun:
                return  # the answer ends here; its status has already been sent
            said = f"dpassay itself failed ({type(error).__name__}); please report this bug."
            await refusal(said, 500)(scope, receive, guarded)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not allowed_host(host, self.host):
            return refusal(f"This server responds to {self.host}, not to {host[:80]!r}.", 403)
        if scope["method"] not in ("GET", "HEAD"):
            return refusal("Only GET and HEAD requests are accepted.", 405)
        if len(scope["query_string"]) > MOST_QUERY:
            size = len(scope["query_string"])
            return refusal(f"The address is too long: {size:,} bytes where {MOST_QUERY:,} are read.", 414)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and self._computes(scope["path"], headers):
            return refusal("Pages of other sites may link here but may not send requests.", 403)
        return None

    @staticmethod
    def _computes(path: str, headers: Headers) -> bool:
        """Whether a request makes the server compute. A link to the gallery that somebody follows is welcome."""
        if path.startswith("/gallery"):
            return headers.get("sec-fetch-user") != "?1"
        return path.startswith("/api/") or path in ("/report", "/certificate")
