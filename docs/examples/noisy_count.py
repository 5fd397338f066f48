"""A program that dpassay can audit: the number of words in a text, with Laplace noise."""

import json
import random
import sys

EPSILON = 1.0


def noisy_count(text: str, rng: random.Random) -> float:
    """One output. The difference of two exponential variables is a Laplace variable."""
    return len(text.split()) + rng.expovariate(EPSILON) - rng.expovariate(EPSILON)


for line in sys.stdin:
    request = json.loads(line)
    rng = random.Random(request["seed"])
    outputs = [noisy_count(request["input"], rng) for _ in range(request["n"])]
    print(json.dumps({"outputs": outputs}), flush=True)
