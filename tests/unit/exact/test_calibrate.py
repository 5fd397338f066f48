"""Calibration against the exact formulas in 60 digits: the result meets the guarantee, slightly less noise does not."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.api import check
from dpassay.core.guarantee import make_guarantee
from dpassay.core.numbers import number, up
from dpassay.errors import InputError
from dpassay.exact.calibrate import classic_gaussian_sigma, flip, gaussian, laplace
from oracles import gaussian_delta

EPSILONS = ["0", "0.001", "0.3", "1", "8", "10", "100", "10000"]
DELTAS = ["1e-15", "1e-6", "0.01", "0.4"]


@pytest.fixture(autouse=True)
def sixty_digits():  # type: ignore[no-untyped-def]
    with mp.workdps(60):
        yield


def delta_of(sigma: mpf, sensitivity: str, epsilon: str) -> mpf:
    with mp.workdps(80):
        return gaussian_delta(mpf(sensitivity) / sigma, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("sensitivity", ["1", "0.07"])
def test_gaussian(epsilon: str, delta: str, sensitivity: str) -> None:
    # The result is read as the decimal it prints as, like everything that people write.
    sigma = mpf(repr(gaussian(epsilon, delta, sensitivity)))
    assert delta_of(sigma, sensitivity, epsilon) <= mpf(delta)
    assert delta_of(sigma * (1 - mpf("1e-6")), sensitivity, epsilon) > mpf(delta)


@pytest.mark.parametrize(("delta", "epsilon"), [("0.9", "1"), ("0.9", "50"), ("1e-100", "1")])
def test_gaussian_at_extreme_deltas(delta: str, epsilon: str) -> None:
    sigma = mpf(repr(gaussian(epsilon, delta)))
    assert delta_of(sigma, "1", epsilon) <= mpf(delta)
    assert delta_of(sigma * (1 - mpf("1e-6")), "1", epsilon) > mpf(delta)


@pytest.mark.parametrize(("epsilon", "delta"), [("0", "1e-10"), ("1", "1e-6"), ("10", "1e-5"), ("1000", "1e-300")])
def test_gaussian_is_two_doubles_above_the_least_at_most(epsilon: str, delta: str) -> None:
    sigma = gaussian(epsilon, delta)
    assert delta_of(mpf(repr(sigma)), "1", epsilon) <= mpf(delta)
    less = sigma - 2 * math.ulp(sigma)
    assert delta_of(mpf(repr(less)), "1", epsilon) > mpf(delta)


def test_gaussian_beyond_115_digits_is_refused() -> None:
    with pytest.raises(InputError, match="too small to determine"):
        gaussian(0, "1e-150")


def test_facts_of_the_classic_formula() -> None:
    # FACTS §1: at δ = 1e-5 and ε = 10 the classic formula gives 0.48448, and 0.49989 is needed; at 8 it is enough.
    ten, eight = make_guarantee(10, "1e-5"), make_guarantee(8, "1e-5")
    assert up(classic_gaussian_sigma(ten, number(1))) == pytest.approx(0.48448, abs=5e-6)
    assert gaussian(10, "1e-5") == pytest.approx(0.49989, abs=5e-6)
    assert up(classic_gaussian_sigma(eight, number(1))) > gaussian(8, "1e-5")


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.decimals("0.001", "10000", allow_nan=False, places=3),
    st.sampled_from(["0", "1e-15", "1e-5", "0.3"]),
    st.sampled_from(["1", "2", "0.1", "3.7"]),
)
def test_laplace(epsilon: object, delta: str, sensitivity: str) -> None:
    with mp.workdps(60):
        scale, d = mpf(repr(laplace(str(epsilon), delta, sensitivity))), mpf(sensitivity)

        def loss(b: mpf) -> mpf:
            """δ at ε, or for δ = 0 by how much ε is exceeded."""
            if delta == "0":
                return d / b - mpf(str(epsilon))
            return 1 - mp.exp((mpf(str(epsilon)) - d / b) / 2) - mpf(delta)

        assert loss(scale) <= 0
        assert loss(scale * (1 - mpf("1e-9"))) > 0


def test_laplace_at_zero_epsilon() -> None:
    # δ = 1 − e^(−1/(2b))
    assert laplace(0, "0.1") == pytest.approx(-0.5 / math.log(0.9), rel=1e-15)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.decimals("0.001", "10000", allow_nan=False, places=3), st.sampled_from([(1, 2), (7, 2), (10000, 2), (1, 9)]))
def test_flip(epsilon: object, shape: tuple[int, int]) -> None:
    bits, k = shape
    with mp.workdps(60):
        keep = mpf(repr(flip(str(epsilon), bits, k)))
        limit = mpf(str(epsilon)) / bits
        assert 0 < keep < 1
        assert mp.log(keep * (k - 1) / (1 - keep)) <= limit
        more = keep + (1 - keep) * mpf("1e-6") + mpf(2) ** -53  # a double cannot come closer to 1
        assert mp.log(more * (k - 1) / abs(1 - more)) > limit or more >= 1


@pytest.mark.parametrize("epsilon", ["0", "1e-300", "1e-17", "3e-16"])
@pytest.mark.parametrize(("bits", "k"), [(1, 2), (5, 2), (1, 3), (1, 10)])
def test_flip_at_a_tiny_epsilon(epsilon: str, bits: int, k: int) -> None:
    """A keep that is rounded to below 1/k makes the other names likelier: that is a loss, too."""
    if k > 2 and mpf(epsilon) < mpf("2e-16"):  # 1/3 and 1/10 are no doubles
        with pytest.raises(InputError, match="give a larger epsilon"):
            flip(epsilon, bits, k)
        return
    keep = flip(epsilon, bits, k)
    with mp.workdps(60):
        assert abs(mp.log(mpf(repr(keep)) * (k - 1) / (1 - mpf(repr(keep))))) * bits <= mpf(epsilon)


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "0.7", "1", "1.7", "3", "7", "11", "123.456"])
def test_what_is_printed_is_proven(epsilon: str) -> None:
    noise = laplace(epsilon)
    assert check(f"query(l1, 1) | laplace({noise!r})", epsilon=epsilon).word == "proven"
    assert check(f"query(l2, 1) | gaussian({gaussian(epsilon, '1e-5')!r})", epsilon=epsilon, delta="1e-5").word == (
        "proven"
    )
    assert check(f"category(3) | flip({flip(epsilon, categories=3)!r})", epsilon=epsilon).word == "proven"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laplace(0), "epsilon"),
        (lambda: laplace(-1), "epsilon"),
        (lambda: laplace("nan"), "number"),
        (lambda: laplace(math.inf), "epsilon"),
        (lambda: laplace(1, 1), "delta"),
        (lambda: laplace(1, 0, 0), "sensitivity"),
        (lambda: laplace(1, 0, -2), "sensitivity"),
        (lambda: laplace("1e-400"), "epsilon|scale|large"),
        (lambda: gaussian(1, 0), "delta"),
        (lambda: gaussian(1, 1), "delta"),
        (lambda: gaussian(1, "1e-5", math.nan), "NaN|number"),
        (lambda: flip(-1), "epsilon"),
        (lambda: flip(1, bits=0), "bits"),
        (lambda: flip(1, bits=-3), "bits"),
        (lambda: flip(1, categories=1), "categories"),
        (lambda: flip(1, bits=2, categories=3), "not both"),
    ],
)
def test_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()
