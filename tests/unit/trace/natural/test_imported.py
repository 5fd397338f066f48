"""Noise that a module draws when it is imported is one outcome: its runs in one process refute nothing."""

from importlib import import_module
from pathlib import Path

import pytest

import dpassay

CODE = """
import secrets
import numpy as np

Z = np.random.default_rng().laplace(0, 1)
KEY = secrets.randbits(40)
RNG = np.random.default_rng()


def shifted(x):
    return x + Z


def hidden(x):
    return int(x) ^ KEY


class Model:
    def __init__(self):
        self.z = np.random.laplace()

    def __call__(self, x):
        return x + self.z

    def answer(self, x):
        return x + self.z


model = Model()


def plain(x):
    return 2 * x


def own_noise(x):
    return x + RNG.laplace(0, 0.1)
"""


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("shifted", "open"),
        ("hidden", "open"),
        ("model", "open"),
        ("plain", "refuted"),
        ("own_noise", "refuted"),  # a generator made at import begins anew for each run
    ],
)
def test_noise_that_is_drawn_at_import(
    name: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"drawing_{name}"
    (tmp_path / f"{module}.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    loaded = import_module(module)
    result = dpassay.trace(getattr(loaded, name), pairs=[(0.0, 1.0)], epsilon=1, hostile=False)
    assert result.verdict.word == verdict
    assert ("only when its module is imported" in result.verdict.reason) == (verdict == "open")
    assert import_module(module) is loaded


def test_a_method_of_such_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drawing_method.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    answer = import_module("drawing_method").model.answer
    assert dpassay.trace(answer, pairs=[(0.0, 1.0)], epsilon=1, hostile=False).verdict.open
