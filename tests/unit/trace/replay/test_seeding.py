"""Noise from a generator that is seeded with a drawn number, or whose state is in the output, is not bounded."""

import random
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dpassay.core.guarantee import make_guarantee
from dpassay.trace.findings.suggesting import suggested
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.replay.seeding import seeded_by_draws
from dpassay.trace.replay.trials import agreeing, agreeing_outcomes, agreeing_paths
from dpassay.trace.watch.tracer import Tracer

SEEDED, STATE = "seeded with a drawn number", "differs although all sums"
QUERIES = ([50, 40, 52], [51, 41, 51])


def different(code: Callable[..., Any], pair: Any = (0.0, 1.0)) -> str:
    """What differs in a few trials of what watched runs suggest."""
    tracer = Tracer(code)
    tracer.run(pair[0])
    watched = suggested(tracer, *pair, make_guarantee(2.0))
    assert float(watched.upper.b) <= 2
    limits: dict[str, Any] = {"alpha": 0.001, "least": 10, "most": 10, "budget": TimeBudget(60.0)}
    if watched.chosen is not None:
        return agreeing_outcomes(tracer, pair, watched.chosen.outcomes, **limits).different
    if watched.paths is not None:
        return agreeing_paths(tracer, pair, watched.paths, **limits).different
    return agreeing(tracer, pair, watched.sums, watched.matching, watched.uses, **limits).different


def _global_seed(x: float) -> Any:
    seed = np.random.randint(2**31)
    np.random.seed(seed)
    return seed, x + np.random.laplace()


def _local_seed(x: float) -> Any:
    seed = secrets.randbits(32)
    return {"seed": seed, "noisy": x + np.random.default_rng(seed).laplace()}


def _old_seed(x: float) -> Any:
    seed = random.randrange(2**32)
    return seed, x + np.random.RandomState(seed).laplace()


def _python_seed(x: float) -> Any:
    seed = random.random()
    random.seed(seed)
    return seed, x + random.expovariate(1) - random.expovariate(1)


def _torch_seed(x: float) -> Any:
    seed = int(torch.randint(0, 2**31, (1,)))
    torch.manual_seed(seed)
    return seed, x + torch.distributions.Laplace(0.0, 1.0).sample().item()


def _noise_as_seed(x: float, rng: Any) -> Any:
    u = rng.random()
    return u, x + np.random.default_rng(int(u * 2**40)).laplace()


def _few_seeds(x: int) -> Any:
    return x if random.Random(random.randrange(4)).random() < 0.75 else 1 - x


def _sparse_vector(queries: list[int]) -> Any:
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    level = 50 + rng.laplace(0, 2)
    return seed, next((k for k, q in enumerate(queries) if q + rng.laplace(0, 4) > level), None)


@pytest.mark.parametrize(
    "code",
    [_global_seed, _local_seed, _old_seed, _python_seed, _torch_seed, _noise_as_seed],
    ids=lambda one: one.__name__,
)
def test_a_drawn_seed_tells_the_noise(code: Callable[..., Any]) -> None:
    assert SEEDED in different(code)


def test_a_drawn_seed_of_choices_and_of_comparisons_is_seen() -> None:
    assert SEEDED in different(_few_seeds, (0, 1))
    assert SEEDED in different(_sparse_vector, QUERIES)


def _with_state(x: float) -> Any:
    rng = np.random.default_rng()
    return x + rng.laplace(), rng.bit_generator.state["state"]["state"]


def _with_entropy(x: float) -> Any:
    rng = np.random.default_rng()
    return x + rng.laplace(), rng.bit_generator.seed_seq.entropy


def _with_next_bits(x: float, rng: Any) -> Any:
    return x + rng.laplace(), rng.bit_generator.random_raw()


@pytest.mark.parametrize("code", [_with_state, _with_entropy, _with_next_bits], ids=lambda one: one.__name__)
def test_a_state_in_the_output_tells_the_noise(code: Callable[..., Any]) -> None:
    assert STATE in different(code)


def _lap(scale: float = 1) -> float:
    return float(np.random.default_rng().laplace(0, scale))


def _fresh_sparse_vector(queries: list[int]) -> Any:
    level = 50 + _lap(2)
    return next((k for k, q in enumerate(queries) if q + _lap(4) > level), None)


def _both_libraries(x: float) -> Any:
    if random.random() < 0.5:
        return x + np.random.laplace()
    return x + random.expovariate(1) - random.expovariate(1)


def _old_and_new(x: float) -> Any:
    first, second = np.random.RandomState(), np.random.Generator(np.random.PCG64())
    return x + first.laplace(), second.laplace()


def _spawned(x: float, rng: Any) -> Any:
    first, second = rng.spawn(2)
    return x + first.laplace(), second.laplace()


def _python_and_torch(x: float) -> Any:
    first = random.Random()
    return x + torch.distributions.Laplace(0.0, 1.0).sample().item(), first.random()


@pytest.mark.parametrize("code", [_old_and_new, _spawned, _python_and_torch], ids=lambda one: one.__name__)
def test_fresh_generators_are_independent(code: Callable[..., Any]) -> None:
    assert not different(code)


def test_libraries_that_take_turns_are_independent() -> None:
    tracer, ways = Tracer(_both_libraries), set[int]()
    for k in range(20):
        key = (0, 0, k)
        run = tracer.run(0.0, key=key)
        run.key = key
        ways.add(len(run.draws))
        assert seeded_by_draws(tracer, 0.0, run) == ""
    assert ways == {2, 3}  # both libraries had their turn


def test_a_fresh_generator_for_each_query_is_independent() -> None:
    assert not different(_fresh_sparse_vector, QUERIES)
