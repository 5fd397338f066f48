"""diffprivlib's mechanisms: their claim against closed formulas, by recorded shapes and by the library itself."""

import math
import sys
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.adapters import adapted
from dpassay.audit.targets import load_python
from recorded import recorded

MODULE = "diffprivlib.mechanisms.some"


def mechanism(kind: str, **attributes: Any) -> Any:
    rng = np.random.default_rng(0)
    plain = {"delta": 0.0, "randomise": lambda x: x + rng.laplace()}
    return recorded(MODULE, f"DPMechanism {kind}", **{**plain, **attributes})


@pytest.mark.parametrize(
    ("made", "epsilon"),
    [
        (mechanism("Laplace", epsilon=0.7, sensitivity=2.0), 0.7),
        (mechanism("LaplaceTruncated", epsilon=0.7, sensitivity=2.0, lower=0, upper=9), 0.7),
        (mechanism("Geometric", epsilon=0.3, sensitivity=2), 0.3),
        (mechanism("Staircase", epsilon=1.5, sensitivity=2.0, gamma=0.3), 1.5),
        (mechanism("Binary", epsilon=1.1, value0="a", value1="b"), 1.1),
        (mechanism("Exponential", epsilon=0.9, sensitivity=2.0, utility=[1, 2], monotonic=False, measure=None), 0.9),
        (mechanism("Exponential", epsilon=0.9, sensitivity=2.0, utility=[1, 2], monotonic=True, measure=None), 0.9),
        (mechanism("PermuteAndFlip", epsilon=0.9, sensitivity=2.0, utility=[1, 2], monotonic=False), 0.9),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_right_class_loses_exactly_what_it_claims(made: Any, epsilon: float) -> None:
    verdict = dpassay.check(made)
    assert verdict.proven
    assert verdict.guarantee.epsilon == epsilon
    assert verdict.epsilon.lower == pytest.approx(epsilon, rel=1e-9)


def bounded(scale: float) -> Any:
    return mechanism(
        "LaplaceBoundedDomain", epsilon=1.0, sensitivity=1.0, lower=0.0, upper=3.0, _find_scale=lambda: scale
    )


def test_a_scale_that_was_searched_for_is_judged() -> None:
    scale = 1.3
    inside = (2 - math.exp(-1 / scale) - math.exp(-2 / scale)) / (1 - math.exp(-3 / scale))
    verdict = dpassay.check(bounded(scale))
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(1 / scale + math.log(inside), rel=1e-9)
    assert dpassay.check(bounded(1.53)).proven


def test_the_classic_gaussian_is_proven_with_much_to_spare() -> None:
    verdict = dpassay.check(mechanism("Gaussian", epsilon=0.5, delta=1e-5, sensitivity=2.0))
    sigma = math.sqrt(2 * math.log(1.25e5)) / 0.5

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    expected = phi(0.5 / sigma - 0.5 * sigma) - math.exp(0.5) * phi(-0.5 / sigma - 0.5 * sigma)
    assert verdict.proven
    assert verdict.delta.upper == pytest.approx(expected, rel=1e-6)


def test_a_class_without_a_formula_is_run_on_its_own_inputs() -> None:
    unknown = mechanism("Snapping", epsilon=0.1, sensitivity=2.0, lower=1.0, upper=9.0)
    assert adapted(unknown).pairs == ((1.0, 3.0),)  # type: ignore[union-attr]
    assert dpassay.audit(unknown, runs=8_000, until_refuted=True).refuted  # the noise has scale 1: epsilon is 2
    assert dpassay.check(unknown, [(1.0, 3.0)], runs=8_000).refuted


def test_a_class_derived_from_the_librarys_has_no_formula() -> None:
    laplace = type(mechanism("Laplace", epsilon=1.0, sensitivity=1.0))
    mine = type("Laplace", (laplace,), {"__module__": "mine", "randomise": lambda self, x: x})()
    mine.epsilon, mine.delta, mine.sensitivity = 1.0, 0.0, 1.0
    assert adapted(mine).pipeline is None  # type: ignore[union-attr]


def test_an_object_is_found_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    made = mechanism("Laplace", epsilon=1.0, sensitivity=1.0, randomise=lambda x: [x])
    monkeypatch.setitem(sys.modules, "somebody", type("somebody", (), {"laplace": made}))
    assert load_python("somebody:laplace").sample(5, 2, np.random.default_rng(0)) == [[5], [5]]


def test_what_cannot_be_read_gets_a_sentence() -> None:
    with pytest.raises(dpassay.InputError, match=r"object of diffprivlib\..*\.Laplace without epsilon cannot be read"):
        dpassay.check(mechanism("Laplace", sensitivity=1.0))
    with pytest.raises(dpassay.InputError, match="sensitivity 0"):
        dpassay.check(mechanism("Laplace", epsilon=1.0, sensitivity=0.0))


def test_the_librarys_own_objects() -> None:
    library = pytest.importorskip("diffprivlib.mechanisms", reason="needs diffprivlib", exc_type=ImportError)
    assert dpassay.check(library.Laplace(epsilon=0.7, sensitivity=2), runs=2_000).proven
    assert dpassay.check(library.LaplaceBoundedDomain(epsilon=1, sensitivity=1, lower=0, upper=3)).proven
    assert dpassay.check(library.GaussianAnalytic(epsilon=2, delta=1e-5, sensitivity=1)).proven


class DiffprivlibMixin:
    """The base that the library's models have; see its models/utils or validation module."""


class MeanOf(DiffprivlibMixin):
    """A model that releases the largest value besides its noisy mean."""

    def __init__(self, epsilon: float = 1.0, bounds: tuple[float, float] = (0.0, 1.0)) -> None:
        self.epsilon, self.bounds = epsilon, bounds

    def get_params(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "bounds": self.bounds}

    def fit(self, x: Any, y: Any = None) -> None:
        self.mean_ = float(np.mean(x) + np.random.default_rng().laplace(scale=1 / (len(x) * self.epsilon)))
        self.largest_ = float(np.max(x))


def test_a_model_is_fitted_anew_and_judged_by_its_attributes() -> None:
    MeanOf.__module__ = "diffprivlib.models.some"
    model = MeanOf(epsilon=2.0)
    pair = ([0.1, 0.2, 0.3], [0.1, 0.2, 0.9])
    verdict = dpassay.audit(model, [pair], shrink=False)
    assert verdict.refuted
    assert verdict.guarantee.epsilon == 2.0
    assert 'output["largest_"]' in str(verdict.witness.event)  # type: ignore[union-attr]
    assert not hasattr(model, "mean_")  # the object itself stays as it was
    known = adapted(model)
    assert known is not None
    assert sorted(known.mechanism(([0.5], [1]))) == ["largest_", "mean_"]  # type: ignore[misc]
