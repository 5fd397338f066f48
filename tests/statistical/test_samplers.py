"""Whether samplers draw from their stated distributions; false-alarm probabilities are in statistics_helper."""

import itertools
import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteLaplace
from dpassay.pipeline.distributions import BitDistribution, Gaussian, Laplace, Mixture, OneSided, Pmf, Shifted
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.bounds.scaling import Clip
from dpassay.pipeline.stages.categories import Bloom, Category, Hash
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.pipeline.stages.exponential import Choose, Softmax, TopK
from dpassay.pipeline.stages.noises.additive import Additive, leak, one_sided
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.directions import Purkayastha, VonMisesFisher
from dpassay.pipeline.stages.noises.mahalanobis import Mahalanobis
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.stages.noisy_max import noisy_max
from dpassay.pipeline.stages.query import PersonRows
from dpassay.pipeline.stages.repeat import Repeat
from dpassay.pipeline.stages.sampling import Times
from dpassay.pipeline.staircase import Staircase
from dpassay.pipeline.truncated_laplace import TruncatedLaplace
from statistics_helper import (
    FALSE_ALARMS,
    TOTAL,
    cdf_p_value,
    counts_p_value,
    frequencies_p_value,
    frequency_p_value,
    generator,
    require,
)

RUNS = 200_000


def bits_as_number(rows):
    return (rows @ (2 ** np.arange(rows.shape[1])[::-1])).astype(int)


# ── The helper itself ───────────────────────────────────────────────────────────────────────────


def test_the_suite_rarely_fails_by_chance():
    # Both tiers run them all: a long one has a reduced form, whose p-value is as valid as that of the full one.
    assert TOTAL < 1e-4
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    stated = re.findall(r"`(make [\w-]+)`: (\d+) statistical tests, ([\d.e-]+) in total", readme)
    assert [tier for tier, _, _ in stated] == ["make test", "make test-all"]
    for _, tests, total in stated:
        assert int(tests) == len(FALSE_ALARMS)
        assert math.isclose(float(total), TOTAL, rel_tol=1e-9)


def test_every_line_of_the_list_is_used_once():
    # Wherever it is: `name = "…"`, or `name, other = "…", …`. That no test uses another name is `require`'s affair.
    source = "".join(path.read_text() for path in sorted(Path(__file__).parents[1].rglob("test_*.py")))
    used = re.findall(r"^    name(?:, \w+)* = \"(.*?)\"", source, re.MULTILINE)
    assert sorted(used) == sorted(FALSE_ALARMS)


def test_a_p_value_is_small_where_the_law_is_wrong():
    # Power, not luck: a scale 5% off moves the distribution function by 0.9%, and e^(−2·200000·0.009²) is 1e-14.
    sample = np.random.default_rng(1).laplace(size=RUNS)
    assert cdf_p_value(sample, stats.laplace(scale=1.05).cdf) < 1e-7
    assert frequency_p_value(52_000, 100_000, 0.5) < 1e-7
    assert counts_p_value(np.array([52_000, 48_000]), np.array([0.5, 0.5])) < 1e-7
    with pytest.raises(AssertionError):
        require("pmf", 1e-8)


def test_p_values_are_exact_where_they_can_be_counted():
    # 10 heads of 10: both tails together have probability 2/1024.
    assert frequency_p_value(10, 10, 0.5) == pytest.approx(2 / 1024, rel=1e-12)
    assert frequency_p_value(5, 10, 0.5) == 1.0
    assert frequency_p_value(0, 10, 0.0) == 1.0
    assert frequency_p_value(1, 10, 0.0) == 0.0


# ── Noises ──────────────────────────────────────────────────────────────────────────────────────


def test_laplace_draws():
    name = "laplace draws"
    require(name, cdf_p_value(Laplace("1.7").draw((RUNS,), generator(name)), stats.laplace(scale=1.7).cdf))


def test_gaussian_draws():
    name = "gaussian draws"
    require(name, cdf_p_value(Gaussian("0.4").draw((RUNS,), generator(name)), stats.norm(scale=0.4).cdf))


def test_one_sided_draws():
    name = "one-sided draws"
    require(name, cdf_p_value(OneSided(3).draw((RUNS,), generator(name)), stats.expon(scale=3).cdf))


def on_whole_numbers(draws, chances, most):
    """A p-value for whole numbers from −most to most, and those beyond on either side."""
    assert (draws == np.rint(draws)).all()
    counts = np.bincount((np.clip(draws, -most - 1, most + 1) + most + 1).astype(int), minlength=2 * most + 3)
    beyond = (1 - sum(chances)) / 2
    return counts_p_value(counts, np.array([beyond, *chances, beyond]))


def test_discrete_laplace_draws():
    # The difference of two geometric numbers, against its definition.
    name = "discrete laplace draws"
    rng, found = generator(name), []
    for scale, most in (("2.5", 12), ("0.3", 1)):
        ratio = math.exp(-1 / float(scale))
        chances = [(1 - ratio) / (1 + ratio) * ratio ** abs(t) for t in range(-most, most + 1)]
        draws = DiscreteLaplace(scale).draw((RUNS // 2, 2), rng).ravel()
        found.append(on_whole_numbers(draws, chances, most))
    require(name, len(found) * min(found))


def test_discrete_gaussian_draws():
    name = "discrete gaussian draws"
    rng, found = generator(name), []
    for sigma, most in (("3.3", 14), ("0.4", 1)):
        weights = {t: math.exp(-(t**2) / (2 * float(sigma) ** 2)) for t in range(-200, 201)}
        chances = [weights[t] / sum(weights.values()) for t in range(-most, most + 1)]
        draws = DiscreteGaussian(sigma).draw((RUNS // 2, 2), rng).ravel()
        found.append(on_whole_numbers(draws, chances, most))
    require(name, len(found) * min(found))


def test_truncated_laplace_draws():
    name = "truncated laplace draws"
    law = stats.laplace(scale=2)
    draws = TruncatedLaplace(2, 3).draw((RUNS,), generator(name))

    def inside(t):
        return (law.cdf(np.clip(t, -3, 3)) - law.cdf(-3)) / (law.cdf(3) - law.cdf(-3))

    require(name, cdf_p_value(draws, inside))


def test_staircase_draws():
    # The integral of the density of Geng and Viswanath, one rectangle after the other.
    name = "staircase draws"
    epsilon, sensitivity, gamma = 0.7, 2.0, 0.3
    draws = Staircase("0.7", 2, "0.3").draw((RUNS,), generator(name))
    top = -math.expm1(-epsilon) / (2 * sensitivity * (gamma + math.exp(-epsilon) * (1 - gamma)))

    def below(t):
        half = np.zeros_like(t)
        for k in range(200):
            for start, end, height in ((k, k + gamma, k), (k + gamma, k + 1, k + 1)):
                width = np.clip(np.abs(t), sensitivity * start, sensitivity * end) - sensitivity * start
                half += top * math.exp(-epsilon * height) * width
        return 0.5 + np.sign(t) * half

    require(name, cdf_p_value(draws, below))


def test_bounded_laplace_draws():
    # The conditional distribution of Laplace noise; from a value inside, at a limit, and beyond one.
    name = "bounded laplace draws"
    rng, found = generator(name), []
    for centre in (0.7, -1.0, 9.0):
        law = stats.laplace(loc=min(max(centre, -1.0), 3.0), scale=1.5)
        draws = BoundedLaplace("1.5", -1, 3).run(np.full((RUNS,), centre), rng)

        def inside(t, law=law):
            return (law.cdf(np.clip(t, -1, 3)) - law.cdf(-1)) / (law.cdf(3) - law.cdf(-1))

        found.append(cdf_p_value(draws, inside))
    require(name, len(found) * min(found))


def test_radial_lengths():
    # Gamma(n) in each norm, and in l1 by another way of drawing.
    name = "radial lengths"
    rng = generator(name)
    found = []
    for norm, power, dim in (("l1", 1, 3), ("l2", 2, 5), ("linf", np.inf, 4)):
        draws = Radial(norm, "1.7").run(np.zeros((RUNS, dim)), rng)
        found.append(cdf_p_value(np.linalg.norm(draws, ord=power, axis=1), stats.gamma(dim, scale=1.7).cdf))
    require(name, len(found) * min(found))


def on_a_face(t, dim, before=False):
    """A coordinate on one of a cube's 2n faces: 1 or −1 with total probability 1/n, otherwise uniform."""
    at_end = (t > -1) * 1.0 + (t > 1) if before else (t >= -1) * 1.0 + (t >= 1)
    return (1 - 1 / dim) * stats.uniform(-1, 2).cdf(t) + at_end / (2 * dim)


def test_radial_directions():
    # Whatever the length: the first coordinate over the length, for draws that are short and for draws that are long.
    name = "radial directions"
    rng = generator(name)
    found = []
    for norm, power, dim in (("l2", 2, 5), ("linf", np.inf, 4)):
        draws = Radial(norm, 2).run(np.zeros((RUNS, dim)), rng)
        lengths = np.linalg.norm(draws, ord=power, axis=1)
        long = lengths > stats.gamma(dim, scale=2).median()
        for half in (long, ~long):
            first = draws[half, 0] / lengths[half]
            if norm == "l2":  # on the sphere
                law = stats.beta((dim - 1) / 2, (dim - 1) / 2, loc=-1, scale=2).cdf
                found.append(cdf_p_value(first, law))
                continue
            found.append(cdf_p_value(first, partial(on_a_face, dim=dim), partial(on_a_face, dim=dim, before=True)))
    require(name, len(found) * min(found))


def test_mahalanobis_noise():
    # Each coordinate over the root of its eigenvalue: lengths as in l2, and directions on the sphere.
    name = "mahalanobis noise"
    draws = Mahalanobis("1.7", "0.25", 4).run(np.zeros((RUNS, 4)), generator(name)) / np.sqrt([0.25, 1.5, 2.75, 4])
    lengths = np.linalg.norm(draws, axis=1)
    found = [cdf_p_value(lengths, stats.gamma(4, scale=1.7).cdf)]
    law = stats.beta(1.5, 1.5, loc=-1, scale=2).cdf
    found += [cdf_p_value(draws[:, i] / lengths, law) for i in range(4)]
    require(name, len(found) * min(found))


def angular_cdf(density, dim):
    """The distribution function of an angle whose density is proportional to density(a)·sin^(n−2)(a), tabulated."""
    grid = np.linspace(0, math.pi, 200_001)
    values = density(grid) * np.sin(grid) ** (dim - 2)
    sums = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    return lambda a: np.interp(a, grid, sums / sums[-1])  # off by 1e-9 at most, which no sample sees


def angles(stage, dim, rng):
    centre = np.full(dim, 1 / math.sqrt(dim))
    draws = stage.run(np.tile(centre, (RUNS, 1)), rng)
    return 2 * np.arctan2(np.linalg.norm(draws - centre, axis=1), np.linalg.norm(draws + centre, axis=1))


def test_von_mises_fisher_cosines():
    name = "von Mises-Fisher cosines"
    rng, found = generator(name), []
    for kappa, dim in ((0.5, 2), (3.0, 3), (4.0, 10), (80.0, 20)):
        law = angular_cdf(lambda a, kappa=kappa: np.exp(kappa * (np.cos(a) - 1)), dim)
        found.append(cdf_p_value(angles(VonMisesFisher(kappa), dim, rng), law))
    require(name, len(found) * min(found))


def test_purkayastha_angles():
    name = "Purkayastha angles"
    rng, found = generator(name), []
    for kappa, dim in ((0.5, 2), (3.0, 3), (4.0, 10), (80.0, 20)):
        law = angular_cdf(lambda a, kappa=kappa: np.exp(-kappa * a), dim)
        found.append(cdf_p_value(angles(Purkayastha(kappa), dim, rng), law))
    require(name, len(found) * min(found))


def test_random_directions():
    # What is orthogonal to the centre is uniform on its sphere, whatever the angle: for near outputs and for far ones.
    name = "random directions"
    rng, found, dim = generator(name), [], 5
    for stage in (VonMisesFisher(3), Purkayastha(2)):
        draws = stage.run(np.tile(np.eye(dim)[0], (RUNS, 1)), rng)
        near = draws[:, 0] > 0.5
        for half in (near, ~near):
            other = draws[half, 1:]
            law = stats.beta((dim - 2) / 2, (dim - 2) / 2, loc=-1, scale=2).cdf
            found.append(cdf_p_value(other[:, 2] / np.linalg.norm(other, axis=1), law))
    require(name, len(found) * min(found))


MIXED = Mixture("0.3", (("0.2", Laplace(1)), ("0.4", Gaussian(2)), ("0.1", OneSided(5))))


def smooth(t):
    return 0.2 * stats.laplace.cdf(t) + 0.4 * stats.norm.cdf(t, scale=2) + 0.1 * stats.expon.cdf(t, scale=5)


def test_mixture_draws():
    name = "mixture draws"
    draws = MIXED.draw((RUNS // 2, 2), generator(name)).ravel()
    require(name, cdf_p_value(draws, lambda t: smooth(t) + 0.3 * (t >= 0), lambda t: smooth(t) + 0.3 * (t > 0)))


def test_mixture_atom():
    name = "mixture atom"
    draws = MIXED.draw((RUNS,), generator(name))
    require(name, frequency_p_value(int((draws == 0).sum()), RUNS, 0.3))


LOSING = Mixture("0.3", (("0.5", OneSided(2)),), "0.2")


def test_lost_values():
    name = "lost values"
    draws = LOSING.draw((RUNS,), generator(name))
    counts = np.array([np.isnan(draws).sum(), (draws == 0).sum(), (draws > 0).sum()])
    require(name, counts_p_value(counts, np.array([0.2, 0.3, 0.5])))


def test_one_sided_noise_that_may_be_lost():
    name = "one-sided noise that may be lost"
    pipeline = Pipeline((Clamp(0, 1), one_sided(2, "0.3", "0.2")), dim=1)
    sample = pipeline.sample([9.0], RUNS, generator(name))[:, 0]
    kept = sample[~np.isnan(sample)] - 1  # given how many are kept, each is drawn from the distribution of what is
    smooth = stats.expon(scale=2).cdf
    require(
        name,
        cdf_p_value(kept, lambda t: (3 * (t >= 0) + 5 * smooth(t)) / 8, lambda t: (3 * (t > 0) + 5 * smooth(t)) / 8),
    )


# ── Laws ────────────────────────────────────────────────────────────────────────────────────────


def test_shifted_coordinates():
    name = "shifted coordinates"
    centre = np.array([0.0, 5.0, -2.0])
    sample = Shifted(Laplace(2), centre).sample(RUNS, generator(name))
    p_values = [cdf_p_value(sample[:, i], stats.laplace(loc=c, scale=2).cdf) for i, c in enumerate(centre)]
    require(name, min(1.0, len(p_values) * min(p_values)))


def test_shifted_coordinates_are_independent():
    name = "shifted independence"
    sample = Shifted(Laplace(2), np.zeros(3)).sample(RUNS, generator(name))
    require(name, counts_p_value(np.bincount(bits_as_number(sample > 0), minlength=8), np.full(8, 1 / 8)))


ONE = np.array([0.9, 0.01, 0.5])


def test_bit_law():
    name = "bit distribution"
    sample = BitDistribution(ONE).sample(RUNS, generator(name))
    require(name, frequencies_p_value(sample.sum(axis=0), RUNS, ONE))


def test_bit_law_is_independent():
    name = "bit distribution independence"
    sample = BitDistribution(ONE).sample(RUNS, generator(name))
    table = [math.prod(p if b else 1 - p for p, b in zip(ONE, row, strict=True)) for row in strings(3)]
    require(name, counts_p_value(np.bincount(bits_as_number(sample), minlength=8), np.array(table)))


def strings(length):
    return list(itertools.product((0, 1), repeat=length))


def test_pmf():
    name = "pmf"
    probabilities = np.array([0.5, 0.3, 0.15, 0.05, 0.0])
    sample = Pmf(probabilities).sample(RUNS, generator(name))
    require(name, counts_p_value(np.bincount(sample[:, 0].astype(int), minlength=5), probabilities))


# ── Noise stages ────────────────────────────────────────────────────────────────────────────────


def test_bit_noise():
    name = "bit noise"
    bits = np.tile([1.0, 1.0, 0.0, 0.0], (RUNS, 1))
    outputs = BitNoise("0.9", "0.2", "0.35").run(bits, generator(name))
    require(name, frequencies_p_value(outputs.sum(axis=0), RUNS, np.array([0.9, 0.2, 0.35, 0.35])))


def test_flipped_bits():
    name = "flipped bits"
    outputs = Flip("0.7").run(np.tile([1.0, 0.0], (RUNS, 1)), generator(name))
    require(name, frequencies_p_value(outputs.sum(axis=0), RUNS, np.array([0.7, 0.3])))


def test_flipped_category():
    name = "flipped category"
    outputs = Flip("0.7", 4).run(np.full((RUNS, 1), 2.0), generator(name))
    require(name, counts_p_value(np.bincount(outputs[:, 0].astype(int), minlength=4), np.array([0.1, 0.1, 0.7, 0.1])))


def test_flipped_category_of_two():
    name = "flipped category of two"
    outputs = Flip("0.7", 2).run(np.zeros((RUNS, 1)), generator(name))
    require(name, counts_p_value(np.bincount(outputs[:, 0].astype(int), minlength=2), np.array([0.7, 0.3])))


def test_exponential_choice():
    name = "exponential choice"
    scores = np.array([0.0, 1.0, 2.5, -1.0])
    outputs = Choose("0.8").run(np.tile(scores, (RUNS, 1)), generator(name))
    weights = np.exp(0.8 * scores)
    require(name, counts_p_value(np.bincount(outputs[:, 0].astype(int), minlength=4), weights / weights.sum()))


def test_softmax_draws():
    name = "softmax draws"
    logits = np.array([0.0, 1.0, 2.5, -1.0])
    outputs = Softmax("1.25").run(np.tile(logits, (RUNS, 1)), generator(name))
    weights = np.exp(logits / 1.25)
    require(name, counts_p_value(np.bincount(outputs[:, 0].astype(int), minlength=4), weights / weights.sum()))


def test_top_k_draws():
    name = "top-k draws"
    pipeline = Pipeline((TopK(3), Softmax(2)), dim=5)
    sample = pipeline.sample([1.0, -1.0, 3.0, 1.0, 1.0], RUNS, generator(name))[:, 0].astype(int)
    counts = np.bincount(sample, minlength=5)
    assert counts[1] == counts[4] == 0  # of the equal ones the first two are kept
    weights = np.exp(np.array([1.0, 3.0, 1.0]) / 2)
    require(name, counts_p_value(counts[[0, 2, 3]], weights / weights.sum()))


def test_noisy_max_draws():
    # With exponential noise P(j) = r_j ∫ Π (1 − r_i y) dy over i ≠ j from 0 to 1, r_i = e^((u_i − max u)/b), by hand
    # for three; with Laplace noise by quadrature; with Gumbel noise the softmax.
    name = "noisy max draws"
    rng, scores = generator(name), np.array([0.0, 1.0, -0.5])
    r = np.exp((scores - 1) / 2)
    flips = [r[j] * (1 - (r.sum() - r[j]) / 2 + r.prod() / r[j] / 3) for j in range(3)]
    noise, z = stats.laplace(scale=2), np.linspace(-60, 60, 400_001)
    cdfs = [noise.cdf(z - u) for u in scores]
    reports = [float(np.trapezoid(noise.pdf(z - u) * math.prod(cdfs) / cdfs[j], z)) for j, u in enumerate(scores)]
    laws = {"exponential": np.array(flips), "laplace": np.array(reports), "gumbel": r / r.sum()}
    found = []
    for kind, law in laws.items():
        draws = noisy_max(kind, 2).run(np.tile(scores, (RUNS, 1)), rng)[:, 0].astype(int)
        found.append(counts_p_value(np.bincount(draws, minlength=3), law / law.sum()))
    require(name, len(found) * min(found))


def test_tokens_one_after_the_other():
    name = "tokens one after the other"
    pipeline = Pipeline((Clamp(-1, 1), Softmax(1), Times(2)), dim=2)
    sample = pipeline.sample([5.0, -5.0], RUNS, generator(name))
    first = math.exp(2) / (1 + math.exp(2))
    chances = np.array([first * first, first * (1 - first), (1 - first) * first, (1 - first) ** 2])
    require(name, counts_p_value(np.bincount((2 * sample[:, 0] + sample[:, 1]).astype(int), minlength=4), chances))


def test_dropout():
    name = "dropout"
    outputs = Dropout("0.4").run(["a b c"] * 50_000, generator(name))
    table = {"": 0.064, "a": 0.096, "b": 0.096, "c": 0.096, "a b": 0.144, "a c": 0.144, "b c": 0.144, "a b c": 0.216}
    counts = np.array([outputs.count(text) for text in table])
    assert counts.sum() == len(outputs)
    require(name, counts_p_value(counts, np.array(list(table.values()))))


# ── Pipelines draw what their distribution says ──────────────────────────────────────────────────────────


def test_pipeline_with_laplace():
    name = "pipeline laplace"
    pipeline = Pipeline((Clip("l2", 1), Additive(Laplace("0.5"))), dim=2)
    sample = pipeline.sample([3.0, 4.0], RUNS, generator(name))
    distribution = pipeline.distribution([3.0, 4.0])
    p_values = [
        cdf_p_value(sample[:, i], lambda t, i=i: distribution.noise.cdf(t - distribution.centre[i])) for i in range(2)
    ]
    require(name, min(1.0, 2 * min(p_values)))


def test_pipeline_with_bits():
    name = "pipeline bits"
    pipeline = Pipeline((Binary(1, 1), BitNoise("0.8", "0.6", "0.3")), dim=1)
    sample = pipeline.sample([-1.5], RUNS, generator(name))
    rows = np.array(strings(3), dtype=float)
    probabilities = np.exp(pipeline.distribution([-1.5]).log_likelihood(rows))
    require(name, counts_p_value(np.bincount(bits_as_number(sample), minlength=8), probabilities))


def test_pipeline_with_categories():
    name = "pipeline categories"
    pipeline = Pipeline((Category(3), Flip("0.5")), dim=1)
    sample = pipeline.sample([1], RUNS, generator(name))
    probabilities = np.exp(pipeline.distribution([1]).log_likelihood(np.arange(3.0)[:, None]))
    require(name, counts_p_value(np.bincount(sample[:, 0].astype(int), minlength=3), probabilities))


def test_pipeline_with_leaked_rows():
    name = "leaked rows"
    pipeline = Pipeline((PersonRows(), leak("0.3")), dim=3)
    sample = pipeline.sample([1.0, 2.0, 3.0], RUNS, generator(name))
    shown = bits_as_number((sample == [1.0, 2.0, 3.0]).astype(float))
    assert (np.isnan(sample) | (sample == [1.0, 2.0, 3.0])).all()
    table = [math.prod(0.3 if b else 0.7 for b in row) for row in strings(3)]
    require(name, counts_p_value(np.bincount(shown, minlength=8), np.array(table)))


def test_copies_get_noise_of_their_own():
    name = "repeated noise"
    pipeline = Pipeline((Clamp(0, 1), Repeat(3), Additive(Laplace(2))), dim=1)
    sample = pipeline.sample([0.5], RUNS, generator(name)) - 0.5
    require(name, counts_p_value(np.bincount(bits_as_number(sample > 0), minlength=8), np.full(8, 1 / 8)))


def test_pipeline_with_hashed_categories():
    name = "hashed categories"
    pipeline = Pipeline((Hash(4), Flip("0.7")), dim=1)
    sample = pipeline.sample([12345], RUNS, generator(name))
    kept = int(Hash(4).run(np.array([[12345.0]]), generator(name))[0, 0])
    counts = np.bincount(sample[:, 0].astype(int), minlength=4)
    require(name, counts_p_value(counts, np.where(np.arange(4) == kept, 0.7, 0.1)))


def test_pipeline_with_a_flipped_bloom_filter():
    name = "flipped bloom filter"
    pipeline = Pipeline((Bloom(6, 2), Flip("0.75")), dim=1)
    sample = pipeline.sample([7], RUNS, generator(name))
    bits = Bloom(6, 2).run(np.array([[7.0]]), generator(name))[0]
    require(name, frequencies_p_value(sample.sum(axis=0), RUNS, np.where(bits == 1, 0.75, 0.25)))


def test_pipeline_with_the_exponential_mechanism():
    name = "pipeline exponential"
    pipeline = Pipeline((Clip("linf", 1), Choose(2)), dim=3)
    sample = pipeline.sample([5.0, 0.0, -5.0], RUNS, generator(name))
    weights = np.exp(2 * np.array([1.0, 0.0, -1.0]))
    require(name, counts_p_value(np.bincount(sample[:, 0].astype(int), minlength=3), weights / weights.sum()))


# ── The loss is the log-likelihood ratio of samples ─────────────────────────────────────────────


def test_the_tail_of_the_laplace_loss():
    name = "loss of laplace"
    first, second = Shifted(Laplace(1), np.zeros(5)), Shifted(Laplace(1), np.full(5, 0.4))
    sample = first.sample(RUNS, generator(name))
    losses = first.log_likelihood(sample) - second.log_likelihood(sample)
    tail = PrivacyLoss.between(first, second).tail(0.5)
    successes = int((losses > 0.5).sum())
    low, high = frequency_p_value(successes, RUNS, tail.lower), frequency_p_value(successes, RUNS, tail.upper)
    require(name, 1.0 if tail.lower * RUNS <= successes <= tail.upper * RUNS else max(low, high))


def test_the_tail_of_the_loss_of_bits():
    name = "loss of bits"
    first, second = BitDistribution(np.full(8, 0.7)), BitDistribution(np.full(8, 0.4))
    sample = first.sample(RUNS, generator(name))
    losses = first.log_likelihood(sample) - second.log_likelihood(sample)
    tail = PrivacyLoss.between(first, second).tail(1)
    successes = int((losses > 1).sum())
    low, high = frequency_p_value(successes, RUNS, tail.lower), frequency_p_value(successes, RUNS, tail.upper)
    require(name, 1.0 if tail.lower * RUNS <= successes <= tail.upper * RUNS else max(low, high))
