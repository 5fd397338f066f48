"""Code that imports libraries inside its functions is decided like any other."""

import math
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay.trace.natural.bits import _imported_inside
from dpassay.trace.session import trace


def pandas_inside(x: float, rng: np.random.Generator) -> Any:
    import pandas as pd

    frame = pd.DataFrame({"a": [x, 2 * x]})
    frame["a"] += rng.laplace(scale=0.75, size=2)  # the loss is 3/0.75 = 4
    return frame["a"].tolist()


def torch_inside(x: float) -> float:
    return _with_torch(x)


def _with_torch(x: float) -> float:
    import torch

    return float(x + torch.distributions.Laplace(0.0, 1.0).sample())


class WithScipy:
    def __call__(self, x: float) -> float:
        from scipy import stats

        return float(x + stats.laplace.rvs(scale=0.5))


CODE = """
    import sys
    sys.path.insert(0, {folder!r})
    from {module} import {name} as subject
    from dpassay.trace.session import trace
    library = {library!r}
    assert library not in sys.modules
    subject = subject() if isinstance(subject, type) else subject
    result = trace(subject, pairs=[(0.0, 1.0)], epsilon={claim}, hostile=False)
    print(result.verdict.word, result.pair_epsilon.upper, *(draw.place for draw in result.draws))
"""


@pytest.mark.parametrize(
    ("name", "library", "claim", "said"),
    [
        ("pandas_inside", "pandas", 1, "refuted inf"),
        ("pandas_inside", "pandas", 4, "open 4"),
        ("torch_inside", "torch", 1, "open 1"),
        ("torch_inside", "torch", 0.2, "refuted inf"),
        ("WithScipy", "scipy.stats", 2, "open 2"),
        ("WithScipy", "scipy.stats", 1, "refuted inf"),
    ],
)
@pytest.mark.long(every=3)
def test_a_library_that_is_imported_inside(name: str, library: str, claim: float, said: str) -> None:
    """In a new process, which has not loaded it; the bounds are Δ/b, up to rounding in single precision."""
    pytest.importorskip(library)
    here = Path(__file__)
    code = CODE.format(folder=str(here.parent), module=here.stem, name=name, library=library, claim=claim)
    words = [sys.executable, "-c", textwrap.dedent(code)]
    got = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    verdict, upper = said.split()
    assert got[0] == verdict
    assert float(got[1]) == pytest.approx(float(upper), rel=1e-6) or float(got[1]) == math.inf == float(upper)
    assert all(place.startswith(here.name) for place in got[2:])


def test_what_functions_import_is_found_through_those_that_they_use() -> None:
    assert _imported_inside(torch_inside) == {"torch"}
    assert _imported_inside(WithScipy()) == {"scipy", "scipy.stats"}
    assert _imported_inside(pandas_inside) == {"pandas"}
    assert _imported_inside(trace) >= {"dpassay.trace.storage.saved"}
    assert _imported_inside(len) == set()
