"""Serve the page."""

from __future__ import annotations

import ipaddress
import socket
import sys
from contextlib import suppress
from typing import Annotated

import typer

from dpassay.cli.common import needs
from dpassay.errors import InputError

Host = Annotated[
    str, typer.Option(help="The address to listen on. Any address other than loopback is open to other machines.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for a free one.")]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")]


def serve(host: Host = "127.0.0.1", port: Port = 8765, open_page: Open = True) -> None:
    """Show a claim on a web page: move ε, see the verdict and the pictures.

    \b
    Examples:
      dpassay serve
      dpassay serve --port 0 --no-open
    """
    needs("starlette", "serve")
    needs("uvicorn", "serve")
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    if not _is_loopback(host):
        print(
            f"warning: {host} can be reached from other machines, and anybody who reaches it can use the page; there "
            "is no password. Without --host only this machine can.",
            file=sys.stderr,
        )
    print(f"Serving at {address} (press Ctrl-C to stop)", file=sys.stderr, flush=True)
    import uvicorn

    from dpassay.server.app import make_app

    config = uvicorn.Config(
        make_app(host),
        http="h11",
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
    )
    if open_page:
        _open_soon(address)
    with suppress(KeyboardInterrupt):  # this is how it is ended
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    if not host.strip():
        raise InputError("--host needs an address, such as 127.0.0.1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host}, port {port}: {said}; --port 0 takes a free one") from None


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [_is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _open_soon(address: str) -> None:
    import threading
    import webbrowser

    threading.Timer(1.0, webbrowser.open, [address]).start()
