"""Generators that were made from a seed are found wherever a program holds them, with the line that states the seed."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import seeded_programs as programs

from dpassay.trace.natural.seeds import fixed_seeds
from dpassay.trace.session import trace

LINES = Path(programs.__file__).read_text().splitlines()


@pytest.mark.parametrize(
    ("subject", "name", "mark"),
    [
        (programs.by_constant, "BY_CONSTANT", "# of a constant"),
        (programs.legacy, "self.g", "# of an object"),
        (programs.python, "self.g", "# of Python"),
        (programs.closure, "a generator that it holds", "# in a closure"),
    ],
)
def test_a_stated_seed_is_found_with_its_line(subject: Any, name: str, mark: str) -> None:
    (found,) = fixed_seeds(subject)
    assert found.name == name
    assert LINES[found.line - 1].endswith(mark)


@pytest.mark.parametrize(
    "subject",
    [
        programs.by_system,
        programs.legacy_of_system,
        programs.python_of_system,
        programs.of_system,
        programs.many_bits,
    ],
)
def test_what_begins_from_the_systems_entropy_is_not_named(subject: Any) -> None:
    """Nor is a global generator that has the name of an attribute, and is not used."""
    assert fixed_seeds(subject) == []


def test_a_seed_of_unknown_origin_bounds_nothing_and_refutes_nothing() -> None:
    (found,) = fixed_seeds(programs.few_bits)
    assert (found.name, found.line) == ("self.g", 0)
    result = trace(programs.few_bits, pairs=[(0.0, 1.0)], epsilon=6, delta=0.1, hostile=False, time="2s")
    assert result.verdict.open
    assert result.pair_epsilon.upper == float("inf")
    assert "self.g was made from a seed" in result.verdict.reason


def test_a_new_generator_of_torch_begins_the_same_in_every_process(tmp_path: Path, monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    source = "import torch\nclass Held:\n    def __init__(self, seed):\n        self.g = torch.Generator()\n"
    source += "        if seed:\n            self.g.seed()\n    def __call__(self, x):\n"
    source += "        return x + torch.rand(1, generator=self.g)\n"
    path = tmp_path / "with_torch_generators.py"
    path.write_text(source)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, path.stem, module)
    exec(compile(source, str(path), "exec"), vars(module))
    assert torch.Generator().initial_seed() == torch.Generator().initial_seed()
    assert [(one.name, one.line) for one in fixed_seeds(module.Held(seed=False))] == [("self.g", 4)]
    assert fixed_seeds(module.Held(seed=True)) == []
