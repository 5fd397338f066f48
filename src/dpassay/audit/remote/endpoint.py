"""Mechanisms behind an HTTP address. programs.py has their protocol, connection.py the connection."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from threading import Event
from typing import Any

from dpassay.audit.remote.connection import Connection, Manners
from dpassay.audit.remote.lines import Line, number_of_lines, seconds_of, short
from dpassay.audit.remote.mapping import AnswerPath, Template
from dpassay.audit.remote.programs import Remote, RequestMaker, independent_rows, plain_value
from dpassay.audit.remote.timing import Pacer, interval
from dpassay.errors import InputError, MechanismError
from dpassay.values import dataclass

MOST_RETRIES = 100
RESERVED = ("content-length", "transfer-encoding", "connection", "host")  # set by HTTP itself
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(slots=True, eq=False)
class Endpoint(Remote):
    """An HTTP address that answers a POST of JSON with JSON. Redirects are not followed.

    `headers` and the token in the environment variable `token_env` are sent with each request, to this address only,
    and are written to no file. `request` and `answer` are for an endpoint with its own format: JSON in which "$input"
    stands for the input, and the path of the output. Up to `concurrency` requests are in flight at a time, `rate`
    ("5/s") limits how often one is sent, and after a transient failure a request is repeated up to `retries` times.
    `independent_rows` states that the n outputs of one answer are independent of one another.

    >>> Endpoint("http://127.0.0.1:8000/rewrite").describe()
    {'kind': 'url', 'url': 'http://127.0.0.1:8000/rewrite'}
    >>> Endpoint("http://127.0.0.1:8000/", request='{"text": "$input"}', answer="$.result[0]").describe()["answer"]
    '$.result[0]'
    >>> Endpoint("ftp://example.org")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: the address must be http://host/... or https://host/..., ... got 'ftp://example.org'
    """

    url: str
    time_limit: float = 30.0
    headers: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)  # values may be secret
    token_env: str | None = field(default=None, kw_only=True)
    request: str | None = field(default=None, kw_only=True)
    answer: str | None = field(default=None, kw_only=True)
    concurrency: int = field(default=1, kw_only=True)
    rate: str | None = field(default=None, kw_only=True)
    retries: int = field(default=5, kw_only=True)
    independent_rows: bool = field(default=False, kw_only=True)
    _token: str = field(default="", init=False, repr=False)
    _template: Template | None = field(default=None, init=False, repr=False)
    _path: AnswerPath | None = field(default=None, init=False, repr=False)
    _manners: Manners = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.time_limit = seconds_of(self.time_limit)
        _check_address(self.url)
        self.headers = _checked_headers(self.headers)
        self._token = "" if self.token_env is None else _token_of(self.token_env)
        if self._token and "authorization" in {name.lower() for name in self.headers}:
            raise InputError("the header Authorization is given twice, as a header and as a token")
        self._template = None if self.request is None else Template.read(self.request)
        self._path = None if self.answer is None else AnswerPath.read(self.answer)
        self._most = 0 if self._template is None and self._path is None else 1
        self.independent_rows = independent_rows(self, "a custom request or answer" if self._most else "")
        self.concurrency = number_of_lines(self.concurrency, "concurrency")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or not 0 <= self.retries <= MOST_RETRIES:
            raise InputError(f"retries must be a whole number from 0 to {MOST_RETRIES}, got {self.retries!r}")
        pacer = None if self.rate is None else Pacer(interval(self.rate))
        self._manners = Manners(self.retries, pacer, self._troubles)

    def __str__(self) -> str:
        return f"the endpoint {self.url}"

    @property
    def replays(self) -> bool:
        """Whether it is sent the seed."""
        return self._template is None or self._template.seeded

    def describe(self) -> dict[str, str]:
        asked = {"request": self.request, "answer": self.answer, "headers": ", ".join(sorted(self.headers))}
        asked["rows"] = "independent" if self.independent_rows else ""
        return {"kind": "url", "url": self.url, **{name: value for name, value in asked.items() if value}}

    def settings(self) -> dict[str, Any]:
        """What else is needed to recreate it, except the token itself."""
        names = ("token_env", "request", "answer", "concurrency", "rate", "retries", "independent_rows")
        return {"headers": dict(self.headers), **{name: getattr(self, name) for name in names}}

    @property
    def _width(self) -> int:
        return self.concurrency

    def _open(self, over: Event) -> Line:
        sent = {**self.headers, **({"Authorization": f"Bearer {self._token}"} if self._token else {})}
        secrets = [self._token.encode("ascii")] if self._token else []
        return Connection(self.url, str(self), self.time_limit, sent, secrets, self._manners, over)

    def _request_for(self, x: Any) -> RequestMaker:
        if self._template is None:
            return Remote._request_for(self, x)
        template = self._template
        try:
            value = plain_value(x)
        except RecursionError:
            raise InputError("the input is nested too deeply to be written as JSON, or contains itself") from None
        return lambda n, seed: template.fill(value, seed).encode("ascii")

    def _parsed(self, said: bytes) -> Any:
        reply = Remote._parsed(self, said)
        if self._path is None:
            return reply
        try:
            return {"output": self._path.find(reply)}
        except LookupError as error:
            raise MechanismError(
                f"{self} answered {short(said)}, which has nothing at {self._path.text}: {error}; check the path"
            ) from None


def parse_header(line: str) -> tuple[str, str]:
    """A header from its text form.

    >>> parse_header("X-Tenant: research")
    ('X-Tenant', 'research')
    """
    name, colon, value = line.partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise InputError(f"a header is 'Name: value', such as 'X-Tenant: a'; got one that starts {name!r:.40}")
    return name, value.strip()


def _checked_headers(headers: Any) -> dict[str, str]:
    """Headers that can be sent. Errors do not show a header's value, which may be secret."""
    checked: dict[str, str] = {}
    for name, value in dict(headers).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(value, str):
            raise InputError(f"a header is a name and a text, such as X-Tenant: research; got the name {name!r:.40}")
        if not (value.isascii() and value.isprintable()):
            raise InputError(f"the value of the header {name} must be printable ASCII")
        if name.lower() in RESERVED:
            raise InputError(f"the header {name} cannot be set: it follows from the address and the request")
        if name.lower() in {other.lower() for other in checked}:
            raise InputError(f"the header {name} is given twice")
        checked[name] = value
    return checked


def _token_of(name: str) -> str:
    """The token from the environment; it is never shown."""
    token = os.environ.get(name, "").strip() if isinstance(name, str) else ""
    if not token:
        raise InputError(
            f"the environment has no variable {name!r}, or it is empty: put the token there, export {name}=…, and give "
            "its name"
        )
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise InputError(f"the variable {name} does not hold a valid token: it must be printable ASCII without spaces")
    return token


def _check_address(url: str) -> None:
    import httpx

    try:
        parts = httpx.URL(url)
        right = parts.scheme in ("http", "https") and parts.raw_host and not parts.userinfo
        right = right and (parts.port is None or 0 < parts.port < 2**16)
    except httpx.InvalidURL:
        right = False
    if not right or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(
            f"the address must be http://host/... or https://host/..., in ASCII and without a password, got {url!r}"
        )
