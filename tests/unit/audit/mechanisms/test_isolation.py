"""Calls share nothing: inputs, outputs and random numbers of one call are out of reach of the next.

Each right mechanism below is exactly 1-DP on its pair, by the Laplace mechanism, if its calls are independent runs. A
claim that holds is refuted with probability at most α = 1e-9, so one refutation shows that they are not.
"""

import copy
import math
from collections import deque
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.isolation import CallGenerators, copied
from dpassay.audit.mechanisms.targets import as_mechanism, draw, draw_each, draw_singly
from dpassay.audit.outputs.outputs import read
from dpassay.audit.storage.replay import replay
from dpassay.audit.testing.decision_rule import Hypothesis
from dpassay.audit.testing.experiment import Experiment
from dpassay.audit.testing.training import training_outputs
from dpassay.errors import InputError

ALPHA = 1e-9


@dataclass
class Record:
    values: list[float]


def array_in_place(x, rng):
    x += rng.laplace(size=x.shape)
    return x


def list_in_place(x, rng):
    x.append(float(rng.laplace()))
    return sum(x)


def dict_in_place(x, rng):
    x["count"] += rng.laplace()
    return x


def nested_in_place(x, rng):
    x[0][0] += rng.laplace()
    return x[0][0]


def object_in_place(x, rng):
    x.values[0] += rng.laplace()
    return x.values[0]


class Plain:
    """Its repr says nothing of what it holds."""

    def __init__(self, value):
        self.value, self.log = value, []


def plain_in_place(x, rng):
    x.log.append(0)
    return x.value + rng.laplace() + len(x.log)


IN_PLACE = {
    "array": (array_in_place, np.zeros(1), np.ones(1)),
    "list": (list_in_place, [0.0], [1.0]),
    "dict": (dict_in_place, {"count": 0.0}, {"count": 1.0}),
    "nested": (nested_in_place, [[0.0], "a"], [[1.0], "a"]),
    "object": (object_in_place, Record([0.0]), Record([1.0])),
    "plain object": (plain_in_place, Plain(0.0), Plain(1.0)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_mechanism_may_change_its_input(name):
    mechanism, x, y = IN_PLACE[name]
    before = repr((x, y))
    verdict = audit(mechanism, [(x, y)], epsilon=1, alpha=ALPHA, runs=3000)
    assert verdict.open
    assert repr((x, y)) == before
    assert sum("changes its input" in said for said in verdict.warnings) == 1


def test_a_frame_may_be_changed():
    pandas = pytest.importorskip("pandas")

    def in_place(frame, rng):
        frame["age"] += rng.laplace(size=len(frame))
        frame["tags"].iloc[0].append("seen")
        return float(frame["age"].sum()), len(frame["tags"].iloc[0])

    frames = [pandas.DataFrame({"age": [age], "tags": [["a"]]}) for age in (0.0, 1.0)]
    assert audit(in_place, [tuple(frames)], epsilon=1, alpha=ALPHA, runs=600).open
    assert [(frame["age"].tolist(), frame["tags"].tolist()) for frame in frames] == [
        ([0.0], [["a"]]),
        ([1.0], [["a"]]),
    ]


def test_a_refuted_mechanism_that_changes_its_input_is_replayed_on_the_inputs_that_were_given(tmp_path):
    def too_little(x, rng):
        x += rng.laplace(scale=0.2, size=x.shape)
        return x

    saved, pair = tmp_path / "audit.json", (np.zeros(1), np.ones(1))
    verdict = audit(too_little, [pair], epsilon=1, save=saved)
    assert verdict.refuted
    assert [x.tolist() for x in verdict.witness.inputs] == [[0.0], [1.0]]
    assert replay(saved, too_little, seed=1).ok


@pytest.mark.parametrize("make", [draw, draw_singly])
def test_a_batch_gets_its_own_input_too(make):
    def batch(x, n, rng):
        x += 1
        return np.repeat(x, n)

    x = np.zeros(1)
    found = [make(as_mechanism(batch), x, 3, np.random.default_rng(0)) for _ in range(2)]
    assert np.array_equal(found[0], found[1])
    assert x[0] == 0


def test_what_cannot_be_copied_is_named():
    def first(x, rng):
        return next(x, 0) * 0 + rng.laplace()

    pair = tuple((k for k in range(10**6)) for _ in range(2))
    verdict = audit(first, [pair], epsilon=1, runs=300)
    assert any("type generator cannot be copied" in said for said in verdict.warnings)


def outputs_of(mechanism):
    """What a training, single runs and two batches see of a mechanism."""
    experiment = Experiment(as_mechanism(mechanism), (0.0, 1.0), Hypothesis(1.0), 0)
    seen, _ = training_outputs(experiment, 400, experiment.paired_streams(0))
    stream = np.random.default_rng(0)
    single = read(draw_each(experiment.mechanism, [0.0, 1.0] * 20, stream))
    batches = [read(batch) for batch in [draw(experiment.mechanism, 0.0, 10, stream) for _ in range(2)]]
    return [one.rows() for one in (*seen, single, *batches)]


def test_a_buffer_is_read_before_it_is_filled_again():
    buffers = {0.0: np.zeros(2), 1.0: np.zeros(2)}

    def fresh(x, rng):
        return np.array([x + rng.laplace(), rng.normal()])

    def buffered(x, rng):
        buffers[x][:] = fresh(x, rng)
        return buffers[x]

    assert np.array_equal(np.concatenate(outputs_of(buffered)), np.concatenate(outputs_of(fresh)))


def test_a_buffer_of_rows_is_read_before_it_is_filled_again():
    buffer = np.zeros((1000, 2))

    def fresh(x, n, rng):
        return np.column_stack([x + rng.laplace(size=n), rng.normal(size=n)])

    def buffered(x, n, rng):
        buffer[:n] = fresh(x, n, rng)
        return buffer[:n]

    assert np.array_equal(np.concatenate(outputs_of(buffered)), np.concatenate(outputs_of(fresh)))


@pytest.mark.parametrize("buffer", [np.zeros(2), [0.0, 0.0], {0: 0.0, 1: 0.0}, deque([0.0, 0.0])])
def test_one_buffer_hides_no_leak(buffer):
    def leak(x, rng):
        buffer[0], buffer[1] = x, float(rng.normal())
        return buffer

    verdict = audit(leak, [(0.0, 1.0)], epsilon=1, runs=2000)
    assert verdict.refuted
    assert not verdict.warnings


SEEDED = {
    "seed sequence": lambda rng: np.random.default_rng(rng.bit_generator.seed_seq),
    "entropy": lambda rng: np.random.default_rng(rng.bit_generator.seed_seq.entropy),
    "key": lambda rng: np.random.default_rng(rng.bit_generator.state["state"]["key"]),
    "jumped": lambda rng: np.random.Generator(rng.bit_generator.jumped()),
    "copy": copy.deepcopy,
    "spawned": lambda rng: rng.spawn(1)[0],
    "spawned seed": lambda rng: np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0]),
}


@pytest.mark.parametrize("name", SEEDED)
def test_noise_from_the_seed_of_the_generator_is_fresh_in_every_call(name):
    seeded = SEEDED[name]
    mechanism = as_mechanism(lambda x, rng: seeded(rng).laplace())
    batches = as_mechanism(lambda x, n, rng: seeded(rng).laplace(size=n))
    stream = np.random.default_rng(5)
    found = [*draw(mechanism, 0.0, 50, stream), *draw_singly(batches, 0.0, 50, stream)]
    found += [noise for _ in range(5) for noise in draw(batches, 0.0, 10, stream)]
    assert len(set(found)) == 150  # 53 bits each
    assert draw(mechanism, 0.0, 9, np.random.default_rng(5)) == found[:9]
    verdicts = [
        audit(lambda x, rng: x + seeded(rng).laplace(), [(0.0, 1.0)], epsilon=1, alpha=ALPHA, runs=600, seed=seed)
        for seed in range(2)
    ]
    assert all(verdict.open for verdict in verdicts)


def test_calls_draw_what_a_generator_of_numpy_would():
    calls = CallGenerators(np.random.default_rng(1))
    for _ in range(3):
        rng = calls.begin()
        key = rng.bit_generator.state["state"]["key"]
        assert rng.normal(size=4).tolist() == np.random.Generator(np.random.Philox(key=key)).normal(size=4).tolist()


@pytest.mark.parametrize(
    "value",
    [
        [1, "a", None],
        [[1.0], [2.0, [3.0]]],
        {"a": [1], "b": {"c": np.zeros(2)}},
        ([1], [2]),
        {(1, 2): [3]},
        {1, 2},
        bytearray(b"ab"),
        np.arange(4.0).reshape(2, 2).T,
        np.array([[1], [2, 3]], dtype=object),
        {"a": 1}.keys(),
        {"a": [1]}.values(),
        {"a": [1]}.items(),
    ],
    ids=repr,
)
def test_copies_are_equal_and_share_nothing(value):
    made = copied(value)
    assert type(made) is type(value)
    assert made is not value
    assert repr(made) == repr(value)
    assert repr(copied([value, value])) == repr([value, value])


def test_what_is_the_same_object_twice_stays_so():
    row = [0.0]
    made = copied([row, row])
    made[0][0] = 1.0
    assert made[1] == [1.0]
    assert row == [0.0]
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    assert not copied(fixed).flags.writeable


def answering(value):
    """A function as an input: it keeps its first answer in a variable around it."""
    kept = None

    def answer(rng):
        nonlocal kept
        kept = value + rng.laplace() if kept is None else kept
        return kept

    return answer


def by_default(value):
    def answer(rng, kept=[]):  # noqa: B006
        kept[:] = kept or [value + rng.laplace()]
        return kept[0]

    return answer


class Holder:
    def __init__(self, value):
        self.answer = answering(value)

    def __call__(self, rng):
        return self.answer(rng)


class Bound:
    """An object with a function that holds the object."""

    def __init__(self, value):
        self.value, self.kept = value, None
        self.answer = lambda rng: self.first(rng)

    def first(self, rng):
        self.kept = self.value + rng.laplace() if self.kept is None else self.kept
        return self.kept

    def __call__(self, rng):
        return self.answer(rng)


@pytest.mark.parametrize(
    "make",
    [answering, by_default, Holder, lambda value: partial(answering(value)), lambda value: [answering(value)], Bound],
    ids=["variable", "default", "attribute", "partial", "list", "of itself"],
)
def test_functions_in_inputs_keep_nothing_from_call_to_call(make):
    def released(x, rng):
        return (x[0] if isinstance(x, list) else x)(rng)

    assert audit(released, [(make(0.0), make(1.0))], epsilon=1, alpha=ALPHA, runs=600).open


def test_variables_that_functions_of_an_input_share_stay_shared():
    def counter():
        count = 0

        def more():
            nonlocal count
            count += 1
            return more

        return more, lambda: count

    more, counted = counter()
    made = copied([more, counted])
    assert made[0]() is made[0]
    assert (made[1](), counted()) == (1, 0)
    assert copied(counter) is counter


def test_of_what_cannot_be_copied_the_part_is_named():
    pair = [((0.0, iter([])), (1.0, (i for i in range(3))))]
    verdict = audit(lambda x, rng: x[0] + rng.laplace(), pair, epsilon=1, alpha=ALPHA, runs=600)
    assert any("Values of type generator cannot be copied" in said for said in verdict.warnings)


def test_the_same_noise_in_every_call_is_named():
    def fixed_seed(x, rng):
        return x + np.random.default_rng(7).laplace()

    verdict = audit(fixed_seed, [(0.0, 1.0)], epsilon=1, runs=2000)
    assert verdict.refuted
    assert any("same output in every run" in said for said in verdict.warnings)
    assert not audit(lambda x, rng: 5.0, [(0.0, 1.0)], epsilon=1, runs=300).warnings


@pytest.mark.parametrize("seed", range(3))
def test_seldom_other_answers_are_not_the_same_output_in_every_run(seed):
    keeps = math.e**4 / (1 + math.e**4)
    right = audit(lambda x, rng: x if rng.random() < keeps else 1 - x, [(0, 1)], epsilon=4, runs=1000, seed=seed)
    assert not right.warnings


class Uncopyable:
    def __init__(self, value):
        self.value = value

    def __deepcopy__(self, memo):
        return self


def test_an_input_that_calls_share_and_change_is_refused():
    def noisy(x, rng):
        x.value += rng.laplace()
        return x.value

    with pytest.raises(InputError, match=r"changes its input of type .*Uncopyable, which cannot be copied"):
        audit(noisy, [(Uncopyable(0.0), Uncopyable(1.0))], epsilon=1)


def test_an_input_that_calls_share_and_leave_is_noted():
    def noisy(x, rng):
        return x.value + rng.laplace()

    verdict = audit(noisy, [(Uncopyable(0.0), Uncopyable(1.0))], epsilon=1, alpha=ALPHA, runs=600)
    assert not verdict.refuted
    assert any("Uncopyable cannot be copied" in said for said in verdict.warnings)
