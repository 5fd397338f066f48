"""How long users of `dpassay serve` wait while others ask slow questions.

20 users move a slider; two of them have pipelines that take seconds per question. The limit applies to the other 18:
95% of their answers must arrive within 0.5 s. Each user asks again about two seconds after an answer. A fast question
takes about 0.06 s of processor time. On an idle machine the fast users waited 0.067 s in the median and 0.386 s at the
95th percentile. A slow user abandons a question after 2 seconds without an answer, as the page does when the slider
moves on.

    python benchmarks/serve.py [SECONDS]
"""

import asyncio
import os
import random
import re
import subprocess
import sys
import time
from contextlib import suppress
from urllib.parse import urlencode

import httpx

USERS, SLOW, LIMIT, PAUSE, PATIENCE = 20, 2, 0.5, 2.0, 2.0
FAST = "clip(l2, C) | laplace(2*C/eps)"
LONG = "poisson(0.01) | clip(l2, 1) | gaussian(1) | times(100000)"


async def user(client: httpx.AsyncClient, number: int, until: float, waited: list[float]) -> None:
    """Move the slider until the time is over; every position is a question of its own."""
    slow, position = number < SLOW, 0
    while time.monotonic() < until:
        position += 1
        epsilon = f"{1 + number / 100 + position / 10_000:.4f}"
        asked = {"pipeline": LONG if slow else FAST, "dim": "32", "epsilon": epsilon}
        asked |= {"delta": "1e-5"} if slow else {"set": "C=1"}
        begun = time.monotonic()
        with suppress(httpx.TimeoutException):
            answer = await client.get(f"/api/glance?{urlencode(asked)}", timeout=PATIENCE if slow else 60.0)
            assert answer.status_code == 200, answer.text
        if not slow:
            waited.append(time.monotonic() - begun)
        await asyncio.sleep(PAUSE * (0.5 + random.random()))


async def measure(address: str, seconds: float) -> list[float]:
    """How long each answer to a fast user took."""
    waited: list[float] = []
    limits = httpx.Limits(max_connections=USERS)
    async with httpx.AsyncClient(base_url=address, limits=limits) as client:
        await client.get(
            f"/api/glance?{urlencode({'pipeline': FAST, 'set': 'C=1', 'dim': '2', 'epsilon': '1'})}", timeout=120
        )
        await asyncio.sleep(10)  # until all workers have started
        until = time.monotonic() + seconds
        await asyncio.gather(*(user(client, number, until, waited) for number in range(USERS)))
    return sorted(waited)


def main(seconds: float) -> float:
    """Start a server, measure, and print the ratio to the limit."""
    command = [sys.executable, "-m", "dpassay", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+", server.stderr.readline())
            assert found is not None
            waited = asyncio.run(measure(found[0], seconds))
        finally:
            server.terminate()
    middle, late = (waited[int(share * len(waited))] for share in (0.5, 0.95))
    print(f"{len(waited):,} answers to {USERS - SLOW} fast users beside {SLOW} slow ones")
    print(f"median {middle:.3f} s, 95% within {late:.3f} s: {late / LIMIT:.2f} of the limit of {LIMIT:g} s")
    return late / LIMIT


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0) > 1)
