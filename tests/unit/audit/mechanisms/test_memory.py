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
from dpassay.audit.mechanisms.memory import Memory, memory_of
from dpassay.audit.mechanisms.targets import as_mechanism, draw, draw_each, settle

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


def in_a_list_of_pairs():
    kept = []

    def noisy(x, rng):
        if x not in [one for one, _ in kept]:
            kept.append((x, x + rng.laplace()))
        return dict(kept)[x]

    return noisy


def in_an_array():
    kept = np.full(2, np.nan)

    def noisy(x, rng):
        if np.isnan(kept[x]):
            kept[x] = x + rng.laplace()
        return float(kept[x])

    return noisy


def in_a_list_inside_a_list():
    kept = [[None], [None]]

    def noisy(x, rng):
        if kept[x][0] is None:
            kept[x][0] = x + rng.laplace()
        return kept[x][0]

    return noisy


def in_entries_that_were_there():
    kept = {0: None, 1: None}

    def noisy(x, rng):
        if kept[x] is None:
            kept[x] = x + rng.laplace()
        return kept[x]

    return noisy


def beside_a_counter():
    kept, calls = [None, None], [0]

    def noisy(x):
        calls[0] += 1
        if kept[x] is None:
            kept[x] = x + RNG(calls[0]).laplace()  # another seed at each call, which must move on
        return kept[x]

    return noisy


KEEPING = {
    "in a list of pairs": in_a_list_of_pairs,
    "in an array": in_an_array,
    "in a list inside a list": in_a_list_inside_a_list,
    "in entries that were there": in_entries_that_were_there,
    "beside a counter": beside_a_counter,
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


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", KEEPING)
def test_kept_noise_refutes_nothing(name):
    verdict = audit(KEEPING[name](), [(0, 1)], epsilon=1, alpha=ALPHA, runs=600, bits=False)
    assert not verdict.refuted
    assert any("keeps something for each input" in said for said in verdict.warnings)


def last_in_variables():
    last = answer = None

    def noisy(x, rng):
        nonlocal last, answer
        if x != last:
            last, answer = x, x + rng.random()
        return answer

    return noisy


class LastInAttributes:
    def __init__(self):
        self.last = self.answer = None

    def __call__(self, x, rng):
        if x != self.last:
            self.last, self.answer = x, x + rng.random()
        return self.answer


class LastInSlots(LastInAttributes):
    __slots__ = ("answer", "last")


LAST = ANSWER = None


def last_in_the_module():
    def noisy(x, rng):
        global LAST, ANSWER
        if x != LAST:
            LAST, ANSWER = x, x + rng.random()
        return ANSWER

    return noisy


@pytest.mark.parametrize("make", [last_in_variables, LastInAttributes, LastInSlots, last_in_the_module])
def test_the_answer_to_the_last_input_is_forgotten(make):
    mechanism = as_mechanism(make())
    assert settle(mechanism, (0, 1), RNG(0)) == 16
    assert len(set(draw_each(mechanism, [0] * 10 + [1] * 10, RNG(0)))) == 20


def supply():
    noise = RNG(1).random(100).tolist()
    return lambda x: x + noise.pop()


def supply_in_an_array():
    noise, place = RNG(1).random(100), [0]

    def noisy(x):
        place[0] += 1
        return x + noise[place[0]]

    return noisy


def seeds_in_a_variable():
    seed = 7

    def noisy(x):
        nonlocal seed
        seed = seed * 16807 % (2**31 - 1)
        return x + seed

    return noisy


def spare_number():
    """Two numbers are drawn at every second call."""
    spare, rng = None, RNG(3)

    def noisy(x):
        nonlocal spare
        if spare is None:
            answer, spare = rng.random(2)
        else:
            answer, spare = spare, None
        return x + answer

    return noisy


@pytest.mark.parametrize("make", [supply, supply_in_an_array, seeds_in_a_variable, spare_number])
def test_what_moves_on_at_every_call_is_not_put_back(make):
    mechanism = as_mechanism(make())
    assert settle(mechanism, (0, 1), RNG(0)) == 4
    assert len(set(draw_each(mechanism, [0] * 10 + [1] * 10, RNG(0)))) == 20


def test_a_seed_that_changes_with_the_input_is_not_put_back():
    """It makes a new generator when the input changes: to put back its number would repeat its noise."""
    last, number, rng = None, 0, None

    def noisy(x):
        nonlocal last, number, rng
        if x != last:
            last, number = x, number + 1
            rng = RNG([7, number])
        return x + rng.laplace()

    mechanism = as_mechanism(noisy)
    settle(mechanism, (0, 1), RNG(0))
    assert len(set(draw_each(mechanism, [0, 0, 1, 1] * 5, RNG(0)))) == 20
    assert not memory_of(mechanism).by_input


def test_the_calls_that_show_what_is_kept_are_counted_as_runs():
    calls = []
    verdict = audit(
        lambda x, rng: (calls.append(x), rng.random())[1], [(0, 1)], epsilon=1, runs=400, bits=False, shrink=False
    )
    assert verdict.runs == len(calls) <= 400


class OneBuffer:
    """A batch whose rows are the input, in a buffer that changes only with it."""

    def __init__(self):
        self.rows = np.zeros(1000)

    def sample(self, x, n, rng):
        self.rows[:] = x
        return self.rows[:n]


def test_an_output_is_read_before_it_is_put_back():
    mechanism = as_mechanism(OneBuffer())
    settle(mechanism, (1.0, 2.0), RNG(0))
    assert draw_each(mechanism, [1.0, 2.0] * 3, RNG(0)) == [1.0, 2.0] * 3
    assert draw(mechanism, 2.0, 3, RNG(0)).tolist() == [2.0] * 3


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
