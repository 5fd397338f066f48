"""An HTTP endpoint that dpassay can audit: a yes or no, told truly with probability 3/4.

Start it with a port, or with none to get a free one. It prints its address.
"""

import json
import random
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


def answer(request: dict) -> dict:
    """What a request is answered with."""
    if request["input"] not in ("yes", "no"):
        return {"error": "ValueError: the input must be yes or no"}
    rng = random.Random(request["seed"])
    other = "no" if request["input"] == "yes" else "yes"
    return {"outputs": [request["input"] if rng.random() < 0.75 else other for _ in range(request["n"])]}


class Handler(BaseHTTPRequestHandler):
    """Answers each POST."""

    def do_POST(self) -> None:
        """Read JSON, write JSON."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with HTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()
