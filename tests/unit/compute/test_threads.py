"""Work in threads: each number is computed once, and in its place."""

import threading

import numpy as np
import pytest

from dpassay.compute import threads
from dpassay.compute.threads import in_threads, lists_in_threads, numpy_in_one_thread, torch_in_threads


def test_every_number_is_computed_once_and_in_its_place(monkeypatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 3)
    sizes, beside = [], threading.Barrier(3, timeout=60)

    def doubled(part):
        sizes.append(len(part))
        if len(part) < 1000:
            beside.wait()  # passes only if all three work at the same time
        return [2 * int(number) for number in part]

    assert in_threads(doubled, np.arange(1000), least=100).tolist() == list(range(0, 2000, 2))
    assert sorted(sizes) == [333, 333, 334]
    sizes.clear()
    assert in_threads(doubled, np.arange(1000), least=501).tolist() == list(range(0, 2000, 2))
    assert sizes == [1000]


def test_lists_are_split_between_groups_and_joined_in_order(monkeypatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 3)
    parts, beside = [], threading.Barrier(3, timeout=60)

    def doubled(part):
        parts.append(tuple(part))
        beside.wait()  # passes only if all three work at the same time
        return [2 * number for number in part]

    assert lists_in_threads(doubled, range(22), size=4, most=8) == list(range(0, 44, 2))
    assert sorted(parts) == [tuple(range(8)), tuple(range(8, 16)), tuple(range(16, 22))]
    for items, most in ((range(4), 8), (range(22), 1), (range(0), 8)):
        assert lists_in_threads(lambda part: [part], items, size=4, most=most) == [items]


def test_torch_computes_in_one_thread_each_and_as_before_afterwards(monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(threads, "cores", lambda: 2)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch_in_threads(lambda part: [torch.get_num_threads()], range(2), size=1) == [1, 1]
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            torch_in_threads(lambda part: [1 // 0], range(2), size=1)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)  # as in a worker: others use the other cores
        assert torch_in_threads(lambda part: [len(part)], range(2), size=1) == [2]
    finally:
        torch.set_num_threads(before)


def test_numpy_multiplies_in_one_thread_inside_and_in_as_many_as_before_outside():
    library = threads._openblas()
    if library is None:
        pytest.skip("numpy has no OpenBLAS")
    number = library.scipy_openblas_get_num_threads64_
    before = number()
    library.scipy_openblas_set_num_threads64_(3)
    try:
        with numpy_in_one_thread():
            with numpy_in_one_thread():
                assert number() == 1
            assert number() == 1
        assert number() == 3
        with pytest.raises(ZeroDivisionError), numpy_in_one_thread():
            _ = 1 / 0
        assert number() == 3
    finally:
        library.scipy_openblas_set_num_threads64_(before)


def test_without_openblas_nothing_is_set(monkeypatch):
    monkeypatch.setattr(threads, "_openblas", lambda: None)
    with numpy_in_one_thread():
        assert (np.ones((2, 2)) @ np.ones(2)).tolist() == [2.0, 2.0]
