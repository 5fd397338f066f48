"""What an output holds without showing it is a part of it: two outputs that look the same may differ there."""

import collections
import contextvars
import functools
import io
import itertools
import math
import re
import struct
import types
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.errors import MechanismError
from dpassay.trace.natural.outputs import described
from dpassay.trace.natural.whole import read
from dpassay.trace.session import trace


def slice_of_a_frame(x: float) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"shown": [0.5], "hidden": [x]}).iloc[:, :1]


def with_a_graph(x: float) -> Any:
    torch = pytest.importorskip("torch")
    return torch.tensor([x], requires_grad=True) * 0.0


def in_the_context(x: float) -> Exception:
    try:
        try:
            raise ValueError(x)
        except ValueError:
            raise KeyError("shown")  # noqa: B904 - this is what is hidden
    except KeyError as error:
        return error


def for_missing_keys(x: float) -> Any:
    return defaultdict(lambda: x, {"shown": 0.5})


def by_default(x: float) -> Any:
    def shown(value: float = x) -> float:
        return 0.5

    return shown


def around_a_match(x: float) -> Any:
    return re.search("shown", f"shown {x}")


HIDING: list[Callable[[float], Any]] = [
    *(slice_of_a_frame, with_a_graph, in_the_context, for_missing_keys, by_default, around_a_match),
]


@pytest.mark.parametrize("made", HIDING)
def test_hidden_parts_are_read(made: Callable[[float], Any]) -> None:
    assert read(made(3.0)).same(read(made(3.0)))
    assert not read(made(3.0)).same(read(made(4.0)))


def test_files_in_memory_are_read_and_are_no_tensors() -> None:
    assert not read(io.BytesIO(b"a")).same(read(io.BytesIO(b"b")))
    assert read(io.StringIO("a")).same(read(io.StringIO("a")))
    with pytest.raises(MechanismError, match="is of type StringIO, which cannot be read"):
        described([io.StringIO("a")])


async def later(x: float) -> float:
    return x + float(np.random.laplace())


def test_draws_of_a_coroutine_are_seen() -> None:
    for _ in range(2):  # the second time, the thread that coroutines run in is there already
        result = trace(later, pairs=[(0.0, 1.0)], epsilon=1, hostile=False)
        assert result.pair_epsilon.upper == pytest.approx(1, rel=1e-9)


def test_a_series_that_was_not_copied_is_read_once() -> None:
    """pandas gives the same numbers as a view or as a copy, depending on whether a condition holds anywhere."""
    pd = pytest.importorskip("pandas")
    bits = pd.Series([1, 0, 1])
    kept, copied = bits.where(np.array([True, True, True]), 1 - bits), bits.copy()
    assert read(kept).paths == read(copied).paths
    part = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})["a"].iloc[:1]
    assert any(".base" in path for path in read(part).paths)


class Releasing:
    """Holds itself, and on request its generator or the raw value."""

    def __init__(self, x: float, **more: Any) -> None:
        self.me, rng = self, np.random.default_rng()
        self.value = x + rng.laplace()
        self.raw = x if more.get("raw") else 0.0
        self.rng = rng if more.get("generator") else None


def test_an_object_is_read_by_what_it_holds() -> None:
    """The state of a generator tells what it drew last, so that no bound holds for an object with it."""

    def traced(**more: Any) -> Any:
        return trace(lambda x: Releasing(x, **more), pairs=[(0.0, 1.0)], epsilon=1, hostile=False)

    assert traced().pair_epsilon.upper == pytest.approx(1, rel=1e-9)
    assert traced(generator=True).pair_epsilon.upper == math.inf
    assert "output.raw has no noise" in traced(raw=True).verdict.reason


class Shared:
    """Keeps a value for all of its instances."""

    last: float = 0.0

    def __init__(self, value: float) -> None:
        self.value = value


def in_its_class(x: float, rng: Any) -> Any:
    Shared.last = x
    return Shared(x + rng.laplace())


def in_a_class_of_its_own(x: float, rng: Any) -> Any:
    made = type("Made", (), {"raw": x})()
    made.value = x + rng.laplace()
    return made


class Narrow:
    """Without a dictionary of attributes."""

    __slots__ = ("raw", "value")

    def __init__(self, value: float, raw: float) -> None:
        self.value, self.raw = value, raw


def in_a_slot(x: float, rng: Any) -> Any:
    return Narrow(x + rng.laplace(), x)


def in_the_type_of_numbers(x: float, rng: Any) -> Any:
    return np.array([x + rng.laplace()], dtype=np.dtype(float, metadata={"raw": x}))


def in_a_length(x: float, rng: Any) -> Any:
    return deque([x + rng.laplace()], maxlen=1 + int(x))


def in_the_name_of_an_index(x: float, rng: Any) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"value": [x + rng.laplace()]}, index=pd.Index([0], name=f"n={x}"))


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("code", "where"),
    [
        (in_its_class, "output.class.last"),
        (in_a_class_of_its_own, "output.class.raw"),
        (in_a_slot, "output.raw"),
        (in_the_type_of_numbers, 'output.dtype.metadata["raw"]'),
        (in_a_length, "output.maxlen"),
        (in_the_name_of_an_index, "output.index.names[0]"),
    ],
)
def test_what_an_object_reaches_is_a_part_of_it(code: Any, where: str) -> None:
    result = trace(code, pairs=[(3.0, 4.0)], epsilon=1, hostile=False)
    assert result.verdict.refuted
    assert where in result.verdict.reason


class _Kept:
    """An object to which a program gives more than a noisy number."""

    def __init__(self, value: float) -> None:
        self.value = value


def _itself(value: Any) -> Any:
    return value


class _Called:
    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self) -> float:
        return self.value


def _local_class(x: float) -> Any:
    class Local:
        def raw(self) -> float:
            return x

    return Local()


def _local_property(x: float) -> Any:
    class Local:
        raw = property(lambda self: x)

    return Local()


def _private(x: float) -> Any:
    array = np.array([1.0]).view(type("Array", (np.ndarray,), {}))
    array._raw = x
    return array


CARRIERS: dict[str, Callable[[float], Any]] = {
    "partial": lambda x: functools.partial(_itself, x),
    "method": lambda x: types.MethodType(_itself, _Called(x)),
    "callable": _Called,
    "iterator": lambda x: iter([x]),
    "map": lambda x: map(str, [x]),
    "method of a list": lambda x: [x].copy,
    "method of a local class": _local_class,
    "property of a local class": _local_property,
    "private attribute of an array": _private,
    "options of a masked array": lambda x: np.ma.masked_array([1.0], fill_value=x),
    "field of a record": lambda x: np.array([(1.0, x)], dtype=[("a", float), ("b", float)])[["a"]],
    "default of a dictionary": lambda x: collections.defaultdict(functools.partial(_itself, x)),
    "place in a text": lambda x: _at(io.StringIO("abcdef"), int(x)),
}


def _at(text: io.StringIO, place: int) -> io.StringIO:
    text.seek(place)
    return text


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_what_carries_a_value_is_read(carrier: Callable[[float], Any]) -> None:
    first, again, second = ({"held": _holder(carrier(x))} for x in (3.0, 3.0, 4.0))
    assert read(first).same(read(again))
    assert not read(first).same(read(second))


def _holder(held: Any) -> _Kept:
    found = _Kept(1.0)
    found.held = held  # type: ignore[attr-defined]
    return found


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "held",
    [(one for one in [3.0]), functools.lru_cache(lambda: 3.0), contextvars.ContextVar("v", default=3.0)],
    ids=["generator", "cache", "context"],
)
def test_what_cannot_be_looked_into_is_said_and_bounds_nothing(held: Any) -> None:
    assert "cannot be looked into" in str(read(_holder(held)).unseen)
    result = trace(lambda x, rng: _noisy(x, rng, held), pairs=[(3.0, 4.0)], epsilon=1, hostile=False)
    assert result.verdict.open
    assert result.pair_epsilon.upper == math.inf
    assert "cannot be looked into" in result.verdict.reason


def _noisy(x: float, rng: Any, held: Any) -> _Kept:
    found = _holder(held)
    found.value = x + rng.laplace()
    return found


def test_ordinary_objects_are_read_whole() -> None:
    import datetime
    import decimal

    for one in (decimal.Decimal("1.5"), datetime.date(2020, 1, 1), ValueError("no"), _Kept(2.0), {1, 2}, range(3), abs):
        assert read(one).unseen is None


class _Refusing:
    """Whatever is asked of it, it raises."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_an_object_that_refuses_to_be_asked_is_no_error_of_ours() -> None:
    result = trace(lambda x, rng: _Refusing(x + rng.laplace()), pairs=[(3.0, 4.0)], epsilon=1, hostile=False)
    assert result.verdict.open
    wrong = trace(lambda x, rng: _Refusing(x), pairs=[(3.0, 4.0)], epsilon=1, hostile=False)
    assert wrong.verdict.refuted


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (lambda x, rng: io.BytesIO(struct.pack("dd", x + rng.laplace(), x)), "refuted"),
        (lambda x, rng: itertools.chain([x + rng.laplace()], [x]), "refuted"),
        (lambda x, rng: io.StringIO(f"{x + rng.laplace(scale=0.1):.3f}"), "refuted"),
        (lambda x, rng: itertools.chain([x + rng.laplace(scale=2)], [1]), "open"),
    ],
)
def test_an_output_without_numbers_in_the_open_is_left_to_natural_runs(code: Any, verdict: str) -> None:
    result = trace(code, pairs=[(0.0, 1.0)], epsilon=1)
    assert result.verdict.word == verdict
    assert result.pair_epsilon.upper == math.inf
    if verdict == "open":
        assert "cannot be read: return numbers" in result.verdict.reason
