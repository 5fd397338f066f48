"""What a mechanism keeps for an input is forgotten after each call, and nothing else.

Each mechanism below is 1-DP in a single call by the Laplace mechanism or by randomised response, and keeps its noise.
If it were not forgotten, every run would give the same output, and the claim would be refuted each time. A claim that
holds is refuted with probability at most α = 1e-9.
"""

import functools
import math

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.memory import Memory
from dpassay.audit.mechanisms.targets import as_mechanism, draw_each

ALPHA = 1e-9
RNG = np.random.default_rng
IN_MODULE = {}


def in_closure():
    kept = {}
    return lambda x, rng: kept.setdefault(x, x + rng.laplace())


def in_module():
    def helper(x, rng):
        if (x, "noisy") not in IN_MODULE:
            IN_MODULE[x, "noisy"] = x + rng.laplace()
        return IN_MODULE[x, "noisy"]

    return lambda x, rng: helper(x, rng)


def in_a_default():
    def noisy(x, rng, kept={}):  # noqa: B006
        return kept.setdefault(str(x), x + rng.laplace())

    return noisy


def in_a_cache():
    rng = RNG(5)

    @functools.lru_cache
    def noisy(x):
        return x + rng.laplace()

    return noisy


class OfAnObject:
    def __init__(self):
        self.kept = {"first stage": {}}

    def __call__(self, x, rng):
        return self.kept["first stage"].setdefault(x, x + rng.laplace())


class Batches:
    def __init__(self):
        self.kept = {}

    def sample(self, x, n, rng):
        """One bit of randomised response, kept, behind noise of its own."""
        bit = self.kept.setdefault(x, x if rng.random() < math.e / (1 + math.e) else 1 - x)
        return bit + rng.laplace(scale=0.01, size=n)


class InAttributes:
    """Its generator is made by the first call, and must not begin again in each."""

    def __call__(self, x):
        if not hasattr(self, "own"):
            self.own = RNG(7)
        if not hasattr(self, f"answer{x}"):
            setattr(self, f"answer{x}", x + self.own.laplace())
        return getattr(self, f"answer{x}")


class InSlots:
    __slots__ = ("kept",)

    def __init__(self):
        self.kept = {}

    def __call__(self, x, rng):
        return self.kept.setdefault(x, x + rng.laplace())


def of_a_function():
    def noisy(x, rng):
        if not hasattr(noisy, "kept"):
            noisy.kept = {}
        return noisy.kept.setdefault(x, x + rng.laplace())

    return noisy


def in_a_dict_of_the_first_call():
    kept = {}
    return lambda x, rng: kept.setdefault("answers", {}).setdefault(x, x + rng.laplace())


KEEPING = {
    "in a closure": in_closure,
    "in the module": in_module,
    "in a default": in_a_default,
    "in a cache": in_a_cache,
    "of an object": OfAnObject,
    "in batches": Batches,
    "in attributes": InAttributes,
    "in slots": InSlots,
    "of a function": of_a_function,
    "in a dict of the first call": in_a_dict_of_the_first_call,
}


@pytest.mark.parametrize("name", KEEPING)
def test_kept_noise_refutes_nothing(name):
    verdict = audit(KEEPING[name](), [(0, 1)], epsilon=1, alpha=ALPHA, runs=600, bits=False)
    assert not verdict.refuted
    assert any("keeps something for each input" in said for said in verdict.warnings)


def test_a_leak_behind_kept_answers_is_found():
    kept = {}
    verdict = audit(lambda x, rng: kept.setdefault(x, x + rng.laplace(scale=0.1)), [(0, 1)], epsilon=1)
    assert verdict.refuted


def test_what_was_there_before_and_what_is_loaded_once_stay():
    tables, loads = {"before": 1}, []

    def noisy(x, rng):
        if "model" not in tables:
            loads.append(x)
            tables["model"] = 0.5
        return x + tables["model"] + rng.laplace()

    draw_each(as_mechanism(noisy), [0, 1] * 20, RNG(0))
    assert tables == {"before": 1, "model": 0.5}
    assert len(loads) == 1


def test_what_the_first_call_made_of_another_kind_stays_where_later_ones_are_forgotten():
    """A seed that moves on is made by the first call, and the answers that are kept beside it are forgotten."""

    class Seeded:
        def __call__(self, x):
            self.seed = getattr(self, "seed", 0) + 1
            if not hasattr(self, f"answer{x}"):
                setattr(self, f"answer{x}", x + RNG(self.seed).laplace())
            return getattr(self, f"answer{x}")

    assert len(set(draw_each(as_mechanism(Seeded()), [0, 1] * 10, RNG(0)))) == 20


def test_the_first_call_of_each_input_is_forgotten_with_those_after_it():
    kept = {}

    def noisy(x, rng):
        return kept.setdefault(f"answer {x}", rng.random())

    memory = Memory(as_mechanism(noisy))
    for x in (0, 0, 1, 1):
        noisy(x, RNG(x))
        memory.forget(x)
    assert memory.by_input
    assert not kept
    outputs = draw_each(as_mechanism(noisy), [0, 1] * 8, RNG(1))
    assert len(set(outputs[2:])) == 14  # until both were seen, an answer may have come twice


def test_noise_that_is_kept_for_all_inputs_is_still_a_finding():
    kept = []

    def noisy(x, rng):
        if not kept:
            kept.append(rng.laplace())
        return x + kept[0]

    verdict = audit(noisy, [(0.0, 1.0)], epsilon=1)
    assert verdict.refuted
    assert any("drawn once and kept" in said for said in verdict.warnings)
