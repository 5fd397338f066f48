"""diffprivlib's mechanisms: their claim against closed formulas, by recorded shapes and by the library itself."""

import math
import sys
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.adapters import adapted
from dpassay.audit.mechanisms.targets import load_python
from recorded import recorded

MODULE = "diffprivlib.mechanisms.some"


RNG = np.random.default_rng(0)


def mechanism(kind: str, **attributes: Any) -> Any:
    made = recorded(MODULE, f"DPMechanism {kind}", **{"delta": 0.0, **attributes})
    if "randomise" not in attributes:
        made.randomise = {**RANDOMISE, "Snapping": lambda one, x: x + RNG.laplace()}[kind].__get__(made)
    return made


def two_sided(scale: float) -> int:
    """Discrete Laplace noise: the difference of two geometric numbers."""
    failure = 1 - math.exp(-1 / scale)
    return int(RNG.geometric(failure) - RNG.geometric(failure))


def staircase(one: Any, x: float) -> float:
    """Geng and Viswanath's algorithm 1."""
    fall = math.exp(-one.epsilon)
    low = RNG.random() < one.gamma / (one.gamma + (1 - one.gamma) * fall)
    uniform, steps = RNG.random(), RNG.geometric(1 - fall) - 1
    inside = one.gamma * uniform if low else one.gamma + (1 - one.gamma) * uniform
    return float(x + RNG.choice([-1, 1]) * (steps + inside) * one.sensitivity)


def bounded_laplace(one: Any, x: float) -> float:
    while not one.lower <= (drawn := x + RNG.laplace(scale=one._find_scale())) <= one.upper:
        pass
    return float(drawn)


def binary(one: Any, x: str) -> str:
    keep = RNG.random() < math.exp(one.epsilon) / (math.exp(one.epsilon) + 1)
    return x if keep else ({one.value0, one.value1} - {x}).pop()


def exponential(one: Any, x: None = None) -> int:
    weights = np.exp(one.epsilon / one.sensitivity / (1 if one.monotonic else 2) * np.array(one.utility))
    return int(RNG.choice(len(weights), p=weights / weights.sum()))


def permute_and_flip(one: Any, x: None = None) -> int:
    """McKenna and Sheldon's algorithm 1."""
    for i in RNG.permutation(len(one.utility)):
        if RNG.random() < math.exp(one.epsilon * (one.utility[i] - max(one.utility)) / (2 * one.sensitivity)):
            return int(i)
    raise AssertionError("the best candidate is always taken")


def folded(one: Any, x: float) -> float:
    drawn = x + RNG.laplace(scale=one.sensitivity / one.epsilon)
    while not one.lower <= drawn <= one.upper:
        drawn = 2 * (one.lower if drawn < one.lower else one.upper) - drawn
    return float(drawn)


RANDOMISE: dict[str, Any] = {
    "Laplace": lambda one, x: x + RNG.laplace(scale=one.sensitivity / one.epsilon),
    "LaplaceTruncated": lambda one, x: np.clip(
        x + RNG.laplace(scale=one.sensitivity / one.epsilon), one.lower, one.upper
    ),
    "LaplaceFolded": folded,
    "LaplaceBoundedDomain": bounded_laplace,
    "Geometric": lambda one, x: x + two_sided(one.sensitivity / one.epsilon),
    "Staircase": staircase,
    "Binary": binary,
    "Exponential": exponential,
    "PermuteAndFlip": permute_and_flip,
    "Gaussian": lambda one, x: (
        x + RNG.normal(0, math.sqrt(2 * math.log(1.25 / one.delta)) * one.sensitivity / one.epsilon)
    ),
}


@pytest.mark.parametrize(
    ("made", "epsilon"),
    [
        (mechanism("Laplace", epsilon=0.7, sensitivity=2.0), 0.7),
        (mechanism("LaplaceTruncated", epsilon=0.7, sensitivity=2.0, lower=0, upper=9), 0.7),
        (mechanism("LaplaceTruncated", epsilon=0.7, sensitivity=2.0, lower=-math.inf, upper=9), 0.7),
        (mechanism("LaplaceFolded", epsilon=0.7, sensitivity=2.0, lower=0, upper=3), 0.7),
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


SAME = RNG.laplace()  # noise that is drawn once, for all calls


@pytest.mark.parametrize(
    ("randomise", "said"),
    [
        (lambda x: x, "On the input 0.0 the output equals 0 in 99.5% to 100% of runs"),
        (lambda x: x + RNG.laplace(scale=0.5), " is at most "),
        (lambda x: x + RNG.laplace(scale=1 if x == 0 else 0.3), "On the input 1.0 the"),
        (lambda x: x if RNG.random() < 0.05 else x + RNG.laplace(), "the output equals 0 in"),
        (lambda x: x + SAME, "On the input 0.0"),
        (lambda x: "secret", "the object put out 'secret', which the formula cannot"),
        (lambda x: math.nan, "the object put out nan, which the formula cannot"),
        (lambda x: 1 / 0, "the object raised ZeroDivisionError: division by zero"),
    ],
    ids=["identity", "half", "one input", "sometimes", "constant", "text", "nan", "raises"],
)
def test_a_patched_object_is_judged_by_what_it_does(randomise: Any, said: str) -> None:
    made = mechanism("Laplace", epsilon=1.0, sensitivity=1.0, randomise=randomise)
    verdict = dpassay.check(made)
    assert verdict.open
    assert (verdict.epsilon.lower, verdict.epsilon.upper) == (0, math.inf)
    assert "was read as query(l1, 1) | laplace(1), but running it does not confirm that" in verdict.reason
    assert said in verdict.reason
    with pytest.raises(dpassay.InputError, match="a certificate is for a pipeline"):
        dpassay.certify(verdict)


def test_a_patched_object_is_refuted_by_its_runs() -> None:
    made = mechanism("Laplace", epsilon=1.0, sensitivity=1.0, randomise=lambda x: x)
    assert dpassay.check(made, runs=4_000).refuted


def laplace(self: Any, x: float) -> float:
    return float(x + RNG.laplace())


laplace.__module__ = MODULE


def own(**attributes: Any) -> Any:
    """A mechanism whose class has a method of its own, as the library's have."""
    parts = {"epsilon": 1.0, "delta": 0.0, "sensitivity": 1.0, "random_state": None, **attributes}
    made = recorded(MODULE, "DPMechanism Laplace", **parts)
    type(made).randomise = laplace
    return made


def test_a_replaced_method_has_no_formula_and_is_run() -> None:
    """Raw for one answer in a thousand, and for all but two inputs: too rare, and too far away, for a confirmation."""
    assert dpassay.check(own()).proven
    rare = own(randomise=lambda x: x if RNG.random() < 1e-3 else x + RNG.laplace())
    far = own(randomise=lambda x: x + RNG.laplace() if x in (0, 1) else x)
    for one in (rare, far):
        assert adapted(one).pipeline is None  # type: ignore[union-attr]
    assert dpassay.check(own(randomise=lambda x: x), runs=4_000).refuted
    in_class = own()
    type(in_class).randomise = lambda self, x: x
    assert dpassay.check(in_class, runs=4_000).refuted


def test_a_fixed_seed_is_not_proven() -> None:
    verdict = dpassay.check(own(random_state=7))
    assert verdict.open
    assert "Its random_state=7 is a fixed seed" in verdict.reason
    assert dpassay.check(own(random_state=np.int64(7))).open
    verdict = dpassay.check(own(_rng=np.random.RandomState()))
    assert verdict.proven
    assert any("whoever knows its seed knows the noise" in warning for warning in verdict.warnings)


def test_a_patched_choice_is_judged_by_what_it_chooses() -> None:
    parts = {"epsilon": 0.9, "sensitivity": 2.0, "utility": [1, 2], "monotonic": False, "measure": None}
    best = mechanism("Exponential", **parts, randomise=lambda: 1)
    assert dpassay.check(best).open
    assert dpassay.check(mechanism("Exponential", **parts, randomise=lambda: 7)).open


def test_the_confirmation_is_a_sentence_of_the_verdict_and_leaves_generators_alone() -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[union-attr,index]
    made = mechanism("Laplace", epsilon=1.0, sensitivity=1.0, randomise=lambda x: x + np.random.laplace())
    verdict = dpassay.check(made)
    assert verdict.reason.endswith("8,000 runs of the object agree with this formula (false-alarm rate 1e-06).")
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]
    assert dpassay.verify(dpassay.certify(verdict))
