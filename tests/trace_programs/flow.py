"""Code that does not run straight on: coroutines, generators, threads, processes; and bad manners."""

import asyncio
import functools
import math
import os
import queue
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from trace_programs.program import INF, LN3, LN9, Program, adding_to

PROGRAMS: list[Program] = []
flow, bad = (adding_to(PROGRAMS, kind) for kind in ("flow", "bad input"))


@flow(3.0, 4.0, 1, 1)
async def coroutine(x, rng):
    await asyncio.sleep(0)
    return x + rng.laplace()


@flow([3.0, 1.0], [4.0, 2.0], 1, 2)
async def gathered(x):
    async def noisy(value):
        await asyncio.sleep(0)
        return value + np.random.laplace()

    return await asyncio.gather(*map(noisy, x))


@flow([3, 4], [3, 5], 1, 1)
def collected_from_a_generator(counts, rng):
    def noisy():
        for c in counts:
            yield c + rng.laplace()

    return list(noisy())


@flow([3, 4], [3, 5], 1, 10, may_fail=True)
def generator_function(counts, rng):
    for c in counts:
        yield c + rng.laplace(scale=0.1)


@flow([3, 4], [3, 5], 1, 0.5)
def pool_of_threads(counts):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda c: c + np.random.laplace(scale=2), counts))


@flow(3, 4, 1, 10)
def thread_with_little_noise(count):
    results = []
    worker = threading.Thread(target=lambda: results.append(count + _laplace(0.1)))
    worker.start()
    worker.join()
    return results[0]


def _laplace(scale):
    return scale * (random.expovariate(1) - random.expovariate(1))


@flow(0, 1, 1.2, LN3)
def thread_with_a_queue(bit):
    coins = queue.Queue()
    worker = threading.Thread(target=lambda: coins.put(random.random()))
    worker.start()
    worker.join()
    return bit if coins.get() < 0.75 else 1 - bit


_NOISE = "import random; print(random.expovariate(1) - random.expovariate(1))"


@flow(3.0, 4.0, 1, 1)
def noise_of_another_process(x):
    ran = subprocess.run([sys.executable, "-S", "-E", "-c", _NOISE], capture_output=True, text=True, check=True)
    return x + float(ran.stdout)


@flow(3, 5, 1, INF, leak=1)
def echo_of_another_process(x):
    said = f"import random; random.random(); print({x})"
    ran = subprocess.run([sys.executable, "-S", "-E", "-c", said], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@flow(3.0, 4.0, 1, 1)
def scale_of_the_environment(x, rng):
    return x + rng.laplace(scale=float(os.environ.get("COUNT_NOISE_SCALE", "1")))


@flow(3.0, 4.0, 1, 1)
def timed(x, rng):
    start = time.perf_counter()
    noisy = x + rng.laplace()
    return noisy if time.perf_counter() >= start else x


# The same answer to the same question, as often as it is asked.
@flow(3.0, 4.0, 1, 1)
@functools.cache
def remembered(x):
    return x + np.random.laplace()


@flow([1.0, 2.0], [2.0, 2.0], 1, 0.5)
class NoisyTransformer:
    def fit(self, x, y=None):
        return self

    def transform(self, x):
        return np.asarray(x) + np.random.laplace(scale=2, size=np.shape(x))


class NoisyLayer(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.noise = torch.distributions.Laplace(0.0, scale)

    def forward(self, x):
        return x.clamp(-1, 1) + self.noise.sample(x.shape)


flow([5.0, 0.0], [-5.0, 0.0], 2, 2, name="layer")(NoisyLayer(1.0))
flow([5.0, 0.0], [-5.0, 0.0], 1, 8, name="layer_of_little_noise")(NoisyLayer(0.25))


@bad(1, 2, 1, 0, may_fail=True)
def always_raises(x):
    raise ValueError("no model was loaded")


@bad(-1, 1, 1, INF, leak=1)
def raises_for_one(x, rng):
    if x < 0:
        raise ValueError("a count cannot be negative")
    return x + rng.laplace(scale=10)


@bad(0, 1, 1, LN9)
def raises_more_often_for_one(bit):
    if random.random() < (0.9 if bit else 0.1):
        raise RuntimeError("try again")
    return "done"


@bad(3.0, 4.0, 1.1, 1, may_fail=True)
def raises_now_and_then(x, rng):
    if rng.random() < 0.1:
        raise RuntimeError("try again")
    return x + rng.laplace()


@bad(1, 2, 1, 0, may_fail=True, seconds=0.5)
def hangs(x):
    while True:
        time.sleep(0.01)


@bad(1, 2, 1, 0, may_fail=True)
def leaves(x):
    sys.exit(3)


@bad(1, 2, 1, 0, may_fail=True)
def leaves_at_once(x):
    os._exit(3)


@bad(3.0, 4.0, 1, 1)
def talks(x, rng):
    print("adding noise …")
    print("careful!", file=sys.stderr)
    return x + rng.laplace()


@bad(3.0, 4.0, 1, 0, may_fail=True)
def not_a_number(x):
    return math.nan


@bad(-4.0, 4.0, 1, INF, leak=1)
def not_a_number_for_one(x, rng):
    return (math.sqrt(x) if x >= 0 else math.nan) + rng.laplace(scale=10)


@bad(3.0, 4.0, 1, 0, may_fail=True)
def itself(x):
    return itself


@bad(3.0, 4.0, 1, 1, may_fail=True)
def list_in_itself(x, rng):
    out = [x + rng.laplace()]
    out.append(out)
    return out


@bad([4, 1], [5, 1], 1.1, 1)
def changes_its_input(rows, rng):
    rows.sort()
    rows[-1] += rng.laplace()
    rows.append(0)
    return rows[1] - rows[0]


@bad([4, 2], [5, 2], 1, 8)
def empties_its_input(rows, rng):
    total = 0
    while rows:
        total += rows.pop()
    return total + rng.laplace(scale=1 / 8)


@bad({"n": 3}, {"n": 4}, 2, 2)
def changes_a_dict(row, rng):
    row["n"] += rng.laplace(scale=0.5)
    return row


@bad(3.0, 4.0, 1, 0, may_fail=True)
def forgets_to_return(x, rng):
    x = x + rng.laplace()


@bad(30, 40, 1, 0, may_fail=True)
def calls_itself_forever(x):
    return calls_itself_forever(x + 1)
