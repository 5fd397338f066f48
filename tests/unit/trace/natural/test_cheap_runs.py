"""Natural runs are cheap: what is read, drawn and planned quickly is what the slow way gives."""

import copy
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv

from dpassay.trace.natural.columns import RunOutputs
from dpassay.trace.natural.counting import planned_rates
from dpassay.trace.natural.runs import generators, own
from dpassay.trace.natural.whole import WholeReading, read, read_part_by_part
from dpassay.trace.remote.wire import Receiver, Sender, packed, unpacked
from dpassay.trace.session import trace

OUTPUTS: list[Any] = [
    *(1.5, -0.0, math.nan, math.inf, True, 3, 2**70, -(2**53) - 1, None, "", "a b", b"x", 1 + 2j),
    *([], [1.0, 2, True, None, "a", -0.0], (1.5,), ("a", 2**60 + 1), {}, {"a": 1.0, 'b"c': None, "d": "e"}, {1: 2.0}),
    *([[1.0], 2.0], [1.0, (2.0,)], {"a": [1.0]}, [b"x"], [np.float64(1.0)], [np.float32(0.1)], {"a": np.int64(3)}),
    *(np.array(2.5), np.arange(3.0), np.ones((2, 2), dtype=np.float32), np.zeros((0, 3)), np.ones(2, dtype=np.float16)),
    *(
        np.arange(3),
        np.array([True]),
        np.arange(6.0)[::2],
        np.ma.masked_array([1.0], [True]),
        np.ones(1, dtype=np.longdouble),
    ),
    *(np.arange(6.0).reshape(2, 3), np.array(["a"]), np.array([1.0, "a"], dtype=object), np.asfortranarray(np.eye(3))),
    *(
        np.ones(1, dtype=np.longdouble),
        np.array([1.0], dtype=np.dtype(float, metadata={"from": 3})),
        np.array([1.0], dtype=">f8"),
    ),
]


@pytest.mark.parametrize("output", OUTPUTS, ids=repr)
def test_a_simple_output_is_read_as_any_other(output: Any) -> None:
    slowly = read_part_by_part(output)
    for quickly in (read(output), read(output, lambda value: value)):
        assert quickly.same(slowly)
        assert [type(one) for one in quickly.values] == [type(one) for one in slowly.values]


def test_subclasses_of_simple_types_are_read_with_what_they_hold() -> None:
    class Hiding(list[float]):
        pass

    class Number(float):
        pass

    hiding, number = Hiding([1.0]), Number(1.0)
    hiding.secret = number.secret = 7.0  # type: ignore[attr-defined]
    for output in (hiding, number, [number], {"a": number}):
        assert 7.0 in read(output).values


@pytest.mark.parametrize("x", [[1, 2.0, "a"], (1, 2), [[1], 2], {"a": 1}, np.arange(3)], ids=repr)
def test_each_run_has_an_input_of_its_own(x: Any) -> None:
    mine = own(x)
    assert type(mine) is type(x)
    assert read(mine).same(read(x))
    if isinstance(x, list):
        mine[0] = 9
        assert x[0] != 9
    if isinstance(x, list) and isinstance(x[0], list):
        again = own(x)
        again[0][0] = 9
        assert x == [[1], 2]


def test_generators_of_a_batch_are_independent() -> None:
    """The correlation of 4,000 pairs has standard deviation 1/√4000: seven of these are too many at 10⁻¹¹."""
    first = np.array([rng.random(3) for rng in generators((0, 1, 0), 4_000)])
    other = np.array([rng.random(3) for rng in generators((0, 2, 0), 4_000)])
    together = np.vstack([first.T, other.T, np.roll(first, 1, axis=0).T])
    apart = np.abs(np.corrcoef(together) - np.eye(9))
    assert apart.max() < 7 / math.sqrt(4_000)
    assert abs(first.mean() - 0.5) < 7 / math.sqrt(12 * first.size)
    assert len(np.unique(together)) == first.size + other.size


SEEDED: list[Any] = [
    lambda rng: np.random.default_rng(rng.bit_generator.seed_seq.entropy),
    lambda rng: np.random.default_rng(rng.bit_generator.seed_seq.generate_state(4)),
    lambda rng: np.random.Generator(np.random.Philox(rng.bit_generator.seed_seq)),
    lambda rng: np.random.default_rng(rng.bit_generator.seed_seq.spawn(2)[1]),
    lambda rng: rng.spawn(1)[0],
    lambda rng: np.random.default_rng(rng),
    lambda rng: copy.deepcopy(rng),
]


@pytest.mark.parametrize("derived", SEEDED)
def test_generators_derived_from_those_of_a_batch_are_their_own(derived: Any) -> None:
    """Also those that code makes from the seed of the one that it gets: 1,000 doubles are different but for 10⁻⁹."""
    assert len({derived(rng).random() for rng in generators((0, 1, 0), 1_000)}) == 1_000


def test_outputs_of_many_forms_are_sent_together() -> None:
    some = [read(one) for one in (1.0, [1.0, math.nan], "a", [2.0, -0.0], np.arange(2.0), None, [1, "b"]) for _ in "ab"]
    for many in (some, []):
        got = unpacked(Receiver().value(Sender().message(packed(many))))
        assert len(got) == len(many)
        assert all(one.same(its) and isinstance(one, WholeReading) for one, its in zip(got, many, strict=True))


def test_columns_are_those_of_each_output() -> None:
    outputs = RunOutputs([read(one) for one in ([1.0, "x 2 y 3"], [2.0, "none"], "else", [3.0, 4.0])])
    assert outputs.numbers(1, "output[0]").tolist() == pytest.approx([1.0, 2.0, math.nan, 3.0], nan_ok=True)
    assert outputs.written(2, "output[1]", 1, 2).tolist() == pytest.approx([3.0] + 3 * [math.nan], nan_ok=True)


@pytest.mark.parametrize("runs", [12, 200, 5_000, 200_000])
@pytest.mark.parametrize("alpha", [0.32, 1e-3])
def test_rates_are_planned_about_as_they_are_bounded(runs: int, alpha: float) -> None:
    for hits in {0, 1, 5, runs // 10, runs // 2, runs - 1, runs}:
        low, high = planned_rates((hits, hits), runs, alpha)
        assert low == pytest.approx(betaincinv(hits, runs - hits + 1, alpha / 2) if hits else 0.0, rel=0.1)
        assert high == pytest.approx(betaincinv(hits + 1, runs - hits, 1 - alpha / 2) if hits < runs else 1, rel=0.05)


def clipped(x: list[float], rng: np.random.Generator) -> Any:
    """Four coordinates of norm 1, clipped in l2 and noised for l1: ε = 4·(1/2)·2/2 = 2 for opposite vectors."""
    vector = np.asarray(x, dtype=float)
    return vector / max(1.0, np.linalg.norm(vector)) + rng.laplace(scale=2.0, size=vector.shape)


@pytest.mark.long(every=10)
@pytest.mark.parametrize("seed", range(30))
def test_twice_the_claim_is_refuted_in_the_time_of_a_trace(seed: int) -> None:
    assert trace(clipped, pairs=[([1] * 4, [-1] * 4)], epsilon=1, seed=seed, hostile=False).verdict.refuted
