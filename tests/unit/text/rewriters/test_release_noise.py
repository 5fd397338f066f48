"""Releases: clipping against exact fractions, OpenDP's noise against its stated distributions, and the promises."""

import importlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize_scalar
from scipy.stats import beta, gamma, laplace, norm

from dpassay.errors import InputError
from dpassay.text.rewriters.vectors import release as module
from dpassay.text.rewriters.vectors.release import (
    LEAST_RADIUS,
    LEAST_SCALE,
    MECHANISMS,
    MOST_DIM,
    MOST_RADIUS,
    Release,
    integer_noise,
    to_grid,
)
from statistics_helper import cdf_p_value, generator, require

ROOT = Path(__file__).parents[4]
DIM = 64
DELTA = {"gaussian": 1e-6}
ON_GRID = [name for name in MECHANISMS if name not in ("k-norm", "vmf")]
REASON = "noise in released outputs is drawn by OpenDP: pip install 'dpassay[release]'"
HARD = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1 / 3, 0.1, 0.7, 1.0, -1.0, math.nextafter(1, 2), 1e308, -1e308, 5e-324, 2**0.5 / 2, -0.0]),
)
RADII = st.sampled_from([2**power for power in range(12, 22)])


def made(mechanism: str, epsilon: float = 1.0, **fields: float) -> Release:
    return Release(mechanism, epsilon, DELTA.get(mechanism, 0.0), **fields)  # type: ignore[arg-type]


def drawn(mechanism: str, epsilon: float = 1.0, **fields: float) -> tuple[Release, module.IntegerNoise]:
    pytest.importorskip("opendp", reason=REASON)
    asked = made(mechanism, epsilon, **fields)
    return asked, integer_noise(asked)


# Clipping and the grid.


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    rows=hnp.arrays(np.float64, st.tuples(st.integers(0, 3), st.just(5)), elements=HARD),
    clip=st.sampled_from([1.0, 0.1, 1 / 3, 1e-100, 1e100, 7.0]),
    mechanism=st.sampled_from(MECHANISMS),
    radius=RADII,
)
def test_no_vector_on_the_grid_is_longer_than_the_radius(rows, clip, mechanism, radius) -> None:
    asked = made(mechanism, dim=5, clip=clip)
    order = asked.recipe.norm
    bounded = asked.bounded(rows)
    assert np.isfinite(bounded).all()
    whole = to_grid(bounded, clip, radius, order)
    assert whole.dtype == np.int64
    for row, kept in zip(bounded.tolist(), whole.tolist(), strict=True):
        assert sum(abs(value) ** order for value in kept) <= radius**order
        # The doubles that were clipped lie outside by a few units in the last place at most.
        length = sum(abs(Fraction(value)) ** order for value in row)
        assert length <= (Fraction(clip) * (1 + Fraction(1, 2**48))) ** order
        # Toward zero, up to the rounding of the quotient; by less than a step, or two where one inward was due.
        exact = [Fraction(value) / Fraction(clip) * radius for value in row]
        assert all(abs(k) <= abs(v) * (1 + Fraction(1, 2**50)) for v, k in zip(exact, kept, strict=True))
        assert all(abs(v - k) < 2 for v, k in zip(exact, kept, strict=True))


@pytest.mark.parametrize("order", [1, 2])
def test_what_lies_outside_by_a_rounding_error_is_brought_back(order: int) -> None:
    # Five times 1/5 in l1, and 3/5, 4/5 in l2, each entry a hair larger than on the sphere.
    row = [0.2] * 5 if order == 1 else [0.6, 0.8, 0.0, 0.0, 0.0]
    over = np.nextafter(np.array([row]), 2) * (1 + 1e-3)
    whole = to_grid(over, 1.0, 5 * LEAST_RADIUS, order)
    assert 0.99 < (np.abs(whole) ** order).sum() / (5 * LEAST_RADIUS) ** order <= 1


@pytest.mark.parametrize("mechanism", ON_GRID)
def test_what_is_inside_stays_as_it_is_and_what_is_outside_keeps_its_direction(mechanism: str) -> None:
    asked = made(mechanism, dim=3, clip=2.0)
    rows = np.array([[0.1, -0.2, 0.3], [0, 0, 0], [3e200, -3e200, 1e200]])
    bounded = asked.bounded(rows)
    assert (bounded[:2] == rows[:2]).all()
    assert np.linalg.norm(bounded[2], ord=asked.recipe.norm) == pytest.approx(2.0, rel=1e-15)
    assert bounded[2] / bounded[2, 2] == pytest.approx([3, -3, 1], rel=1e-15)


def test_a_sum_of_squares_fits_in_a_64_bit_number_whatever_the_doubles_did() -> None:
    assert MOST_DIM * MOST_RADIUS**2 < 2**63


# The promise, by OpenDP's map and by formulas of our own.


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.3, 1, 7, 10, 1000, 1e4])
@pytest.mark.parametrize("mechanism", ON_GRID)
def test_the_map_gives_at_most_what_was_asked_and_little_less(mechanism: str, epsilon: float) -> None:
    asked, noise = drawn(mechanism, epsilon)
    assert noise.claimed <= epsilon
    assert noise.claimed >= epsilon * (1 - 2 / LEAST_SCALE)
    assert noise.scale >= LEAST_SCALE
    assert noise.radius >= LEAST_RADIUS
    ratio = noise.scale * asked.clip / noise.radius / asked.scale()
    if mechanism != "gaussian":
        assert 1 - 1e-12 <= ratio <= 1.01  # the first for the double that 2C/ε is written as
        assert Fraction(noise.hidden, noise.scale) <= Fraction(epsilon) < Fraction(noise.hidden, noise.scale - 1)
    else:
        assert 1 < ratio < 1.45  # what the way through zCDP costs, at most


@pytest.mark.parametrize("dim", [1, 2, 3, 64, 65, 1000])
def test_the_integer_distance_is_the_floor_of_the_real_one(dim: int) -> None:
    for mechanism in ("sqrt-n", "adept-as-published"):
        distance = made(mechanism, dim=dim).recipe.distance(4096, dim)
        assert distance**2 <= 4 * 4096**2 * dim < (distance + 1) ** 2
    assert [made(name).recipe.distance(4096, dim) for name in ("l1", "gaussian")] == [8192, 8192]


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_what_was_published_loses_sqrt_n_times_its_claim(epsilon: float) -> None:
    asked, noise = drawn("adept-as-published", epsilon)
    assert noise.claimed == epsilon
    assert noise.epsilon == math.sqrt(DIM) * epsilon
    # The opposite diagonals are on the grid, and lose just that.
    each = noise.radius // 8
    assert DIM * each**2 == noise.radius**2
    assert Fraction(2 * DIM * each, noise.scale) == 8 * Fraction(epsilon)
    assert asked.true_epsilon == 8 * epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1, 1e-6), (1, 0.1), (10, 1e-9)])
def test_gaussian_noise_keeps_its_delta_by_the_exact_discrete_law(epsilon: float, delta: float) -> None:
    pytest.importorskip("opendp", reason=REASON)
    noise = integer_noise(Release("gaussian", epsilon, delta))
    # Canonne, Kamath and Steinke 2020: δ ≤ inf exp((α−1)(αρ−ε)) (1−1/α)^α / (α−1). OpenDP's ε is its inverse.
    rho = noise.distance**2 / (2 * noise.scale**2)

    def log_delta(t: float) -> float:
        order = 1 + math.exp(t)
        exponent = (order - 1) * (order * rho - noise.epsilon)
        return exponent - math.log(order - 1) + order * math.log1p(-1 / order)

    best = minimize_scalar(log_delta, bounds=(-10, 15), method="bounded", options={"xatol": 1e-9})
    assert best.fun == pytest.approx(math.log(delta), rel=1e-6)
    # And the exact δ of the farthest pair along a coordinate, of the discrete distribution itself, is smaller.
    reach = np.arange(-12 * noise.scale, 12 * noise.scale + 1, dtype=float)
    total = np.exp(-(reach**2) / (2 * noise.scale**2)).sum()
    first, second = (np.exp(-((reach - at) ** 2) / (2 * noise.scale**2)) / total for at in (0, noise.distance))
    exact = np.maximum(first - math.exp(epsilon) * second, 0).sum()
    assert 0.1 * delta < exact < delta


# What is drawn.


def laplace_cdf(k: np.ndarray, scale: float) -> np.ndarray:
    ratio = math.exp(-1 / scale)
    tail = np.exp(-np.abs(k) / scale) / (1 + ratio)
    return np.where(k < 0, tail, 1 - tail * ratio)


def gaussian_cdf(k: np.ndarray, scale: float) -> np.ndarray:
    whole = np.arange(-15 * int(scale), 15 * int(scale) + 1)
    weights = np.exp(-(whole.astype(float) ** 2) / (2 * scale**2))
    return (np.cumsum(weights) / weights.sum())[np.asarray(k, dtype=int) + 15 * int(scale)]


def noise_p_value(name: str, mechanism: str, cdf: Callable[[np.ndarray, float], np.ndarray]) -> float:
    asked, noise = drawn(mechanism, 20, clip=3.0)
    latents = generator(name).normal(size=(400, DIM))
    released = asked.release(latents) / (asked.clip / noise.radius)
    assert released == pytest.approx(np.round(released), abs=1e-6)
    centre = to_grid(asked.bounded(latents), asked.clip, noise.radius, asked.recipe.norm)
    added = np.round(released).astype(np.int64) - centre
    return cdf_p_value(added.ravel(), lambda k: cdf(k, noise.scale), lambda k: cdf(k - 1, noise.scale))


def test_released_laplace_noise_follows_the_stated_discrete_law() -> None:
    name = "released laplace"
    require(name, noise_p_value(name, "l1", laplace_cdf))


def test_released_gaussian_noise_follows_the_stated_discrete_law() -> None:
    name = "released gaussian"
    require(name, noise_p_value(name, "gaussian", gaussian_cdf))


def test_noise_for_audits_follows_the_continuous_law() -> None:
    name = "rewriter noise for audits"
    rng = generator(name)
    p_values = []
    for mechanism in ON_GRID:
        asked = made(mechanism, 2, dim=8, clip=0.5)
        latents = rng.normal(size=(25_000, 8))  # a scale 5% off is seen, as tests/statistical says
        added = asked.sample(latents, rng) - asked.bounded(latents)
        distribution = (norm if mechanism == "gaussian" else laplace)(scale=asked.scale())
        p_values.append(cdf_p_value(added.ravel(), distribution.cdf))
    require(name, len(p_values) * min(p_values))


def test_k_norm_noise_has_a_gamma_length_and_any_direction() -> None:
    name = "k-norm noise of a rewriter"
    rng = generator(name)
    asked = made("k-norm", 2, dim=8, clip=0.5)  # density e^(−‖z‖₂/b) with b = 2·0.5/2
    latents = rng.normal(size=(20_000, 8))
    added = asked.sample(latents, rng) - asked.bounded(latents)
    lengths = np.linalg.norm(added, axis=1)
    halves = beta(3.5, 3.5).cdf  # one coordinate of a uniform direction, from −1 to 1, as a share
    parts = [cdf_p_value(lengths, gamma(8, scale=0.5).cdf), cdf_p_value((added[:, 0] / lengths + 1) / 2, halves)]
    require(name, 2 * min(parts))


def test_von_mises_fisher_noise_stays_on_the_sphere_and_its_cosine_follows_the_law() -> None:
    name = "von mises-fisher noise of a rewriter"
    rng = generator(name)
    asked = made("vmf", 6, dim=3, clip=2.0)  # κ = ε/2 = 3; in three dimensions the cosine has density ∝ e^(3c)
    latents = rng.normal(size=(20_000, 3))
    noisy = asked.sample(latents, rng)
    assert np.linalg.norm(noisy, axis=1) == pytest.approx(2.0)
    cosine = (noisy * latents).sum(axis=1) / (2 * np.linalg.norm(latents, axis=1))
    require(name, cdf_p_value(cosine, lambda c: (np.exp(3 * c) - math.exp(-3)) / (math.exp(3) - math.exp(-3))))
    assert asked.bounded([[0.0, 0.0, 0.0]]).tolist() == [[2, 0, 0]]
    assert asked.bounded([[3e200, 0.0, -4e200]])[0] == pytest.approx([1.2, 0, -1.6])


@pytest.mark.parametrize("mechanism", ["k-norm", "vmf"])
def test_noise_that_opendp_does_not_have_is_drawn_afresh_and_the_statement_says_so(mechanism: str) -> None:
    asked = made(mechanism, 5, dim=4)
    assert (asked.release(np.ones((2, 4))) != asked.release(np.ones((2, 4)))).all()
    assert "in double precision" in asked.statement()["drawn"]["sampler"]
    assert asked.true_epsilon == 5


def test_an_empty_batch_is_released_empty() -> None:
    asked, _ = drawn("l1")
    assert asked.release(np.empty((0, DIM))).shape == (0, DIM)


def test_a_second_release_uses_the_same_measurement_and_fresh_noise() -> None:
    asked, noise = drawn("l1", 0.5)
    assert integer_noise(made("l1", 0.5)) is noise
    # Equal by chance with a probability below 2^(−64·10).
    assert (asked.release(np.zeros((1, DIM))) != asked.release(np.zeros((1, DIM)))).any()


@pytest.mark.parametrize("mechanism", ON_GRID)
def test_the_statement_is_json_and_says_what_was_drawn(mechanism: str) -> None:
    asked, noise = drawn(mechanism, clip=2.0)
    stated = json.loads(json.dumps(asked.statement()))
    distribution = "Gaussian" if mechanism == "gaussian" else "Laplace"
    assert stated["drawn"]["sampler"].startswith("OpenDP 0.")
    assert stated["drawn"]["sampler"].endswith(f"discrete {distribution}")
    assert stated["drawn"]["grid_step"] == 2.0 / noise.radius
    assert stated["drawn"]["scale"] == noise.scale * 2.0 / noise.radius
    assert stated["drawn"]["epsilon_by_opendp"] == pytest.approx(asked.true_epsilon, rel=0.01)
    assert all((ROOT / page).exists() for page in asked.proofs)


def test_numbers_of_the_proof_page() -> None:
    def numbers(name: str) -> tuple[int, int, int, float]:
        noise = drawn(name)[1]
        return noise.radius, noise.distance, noise.scale, noise.epsilon

    assert numbers("l1") == (4096, 8192, 8192, 1.0)
    assert numbers("sqrt-n") == (4096, 65536, 65536, 1.0)
    assert numbers("adept-as-published") == (4096, 65536, 8192, 8.0)
    assert numbers("gaussian")[2] == 37117
    assert made("gaussian").scale() == pytest.approx(8.4494, abs=5e-5)


# What is refused.


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mechanism": "gausian"}, "did you mean 'gaussian'"),
        ({"mechanism": "adept"}, "did you mean 'adept-as-published'"),
        ({"epsilon": 0}, "epsilon must be a number from 1e-06 to 10000, got 0"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"epsilon": "much"}, "epsilon must be a number from 1e-06 to 10000, got 'much'"),
        ({"delta": 1e-6}, "leave delta out, got 1e-06"),
        ({"mechanism": "gaussian"}, "needs a delta strictly between 0 and 1, such as 1e-6; got 0.0"),
        ({"mechanism": "gaussian", "delta": 1}, "needs a delta strictly between 0 and 1"),
        ({"mechanism": "gaussian", "delta": math.nan}, "delta must be"),
        ({"dim": 0}, "dim must be a number from 1"),
        ({"dim": 2.5}, "dim must be a whole number, got 2.5"),
        ({"clip": 0}, "clip must be"),
        ({"clip": -1}, "clip must be"),
        ({"clip": math.inf}, "clip must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(fields: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        Release(**{"mechanism": "l1", "epsilon": 1.0, **fields})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("latents", "message"),
    [
        ([[1.0, math.nan]], "row 0 is not"),
        ([[1.0, 2.0], [math.inf, 0.0]], "row 1 is not"),
        ([1.0, 2.0], "a row of 2 numbers per utterance, got shape (2,)"),
        ([[1.0, 2.0, 3.0]], "got shape (1, 3)"),
        ([["one", "two"]], "must be an array of numbers"),
    ],
)
def test_latents_that_cannot_be_clipped_are_refused(latents: list, message: str) -> None:
    asked = made("l1", dim=2)
    for use in (asked.bounded, lambda rows: asked.sample(rows, generator("unused"))):
        with pytest.raises(InputError) as error:
            use(latents)
        assert message in str(error.value)


def test_without_opendp_the_line_to_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    asked = made("l1", 1.2345)
    for use in (lambda: asked.release(np.zeros((1, DIM))), asked.statement):
        with pytest.raises(InputError, match=r"pip install 'dpassay\[release\]'"):
            use()
    assert asked.sample(np.zeros((1, DIM)), generator("unused")).shape == (1, DIM)
