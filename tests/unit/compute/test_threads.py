"""Work in threads: each number is computed once, and in its place."""

import threading

import numpy as np

from dpassay.compute import threads
from dpassay.compute.threads import in_threads


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
