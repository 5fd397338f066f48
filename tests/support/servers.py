"""HTTP servers that tests start, each in threads of this process, and none outlives its test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler, Any], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """The address of a server that lets `answer` respond to each POST of JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False  # joined at the end

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/path"
        finally:
            server.shutdown()
            thread.join()


def respond(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Send an answer; underscores in the names of headers stand for hyphens."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
