"""Every claim of the registry by a second route: run in a small dimension. The wrong ones are refuted, no right one is.

And what they are run with draws from the distribution that the exact route speaks of.
"""

import numpy as np
import pytest
from scipy.stats import gamma, laplace, norm

from dpassay.claims.registry import REGISTRY
from dpassay.pipeline.distributions import BitDistribution, Gaussian, Mixture, Pmf, Shifted
from dpassay.pipeline.stages.noises.directions import Around, VonMisesFisher
from dpassay.pipeline.stages.noises.mahalanobis import ShiftedMahalanobis
from dpassay.pipeline.stages.noises.radial import ShiftedRadial
from dpassay.report.claims.claim_report import try_out
from statistics_helper import (
    FALSE_ALARMS,
    cdf_p_value,
    counts_p_value,
    frequencies_p_value,
    frequency_p_value,
    generator,
    require,
)

RUNS = 40_000


@pytest.mark.long(every=6)
@pytest.mark.parametrize("claim", REGISTRY.values(), ids=lambda c: c.name)
def test_both_routes_agree(claim):
    name = "claims by their samples"
    # Together the audits of right claims refute one with at most this probability.
    alpha = FALSE_ALARMS[name] / len(REGISTRY)
    both = try_out(claim, runs=max(200_000 if claim.expected == "refuted" else 0, claim.trial.runs), alpha=alpha)
    assert both.exact.word == claim.expected
    assert (both.sampled.word == "refuted") == (claim.expected == "refuted")
    assert both.sampled.alpha <= alpha
    assert both.sampled.epsilon.lower <= both.exact.epsilon.upper


# ── Samplers against distributions ───────────────────────────────────────────────────────────────────────


def inputs(claim, pipeline):
    """Two inputs: those of the trial, or a low and a high vector (categories are whole numbers)."""
    if claim.trial.pairs:
        return claim.trial.pairs[0]
    return np.zeros(pipeline.dim), np.ones(pipeline.dim)


def law_p_value(outputs, distribution):
    """p-value of outputs against a distribution, coordinate by coordinate."""
    if isinstance(distribution, Pmf):
        return counts_p_value(
            np.bincount(outputs[:, 0].astype(int), minlength=len(distribution.probabilities)), normed(distribution)
        )
    if isinstance(distribution, BitDistribution):
        return frequencies_p_value(outputs.sum(axis=0), len(outputs), distribution.one)
    if isinstance(distribution, ShiftedRadial):  # the length is Gamma(n); its direction is tested with the samplers
        noise, lengths = distribution.noise, outputs - distribution.centre
        law = gamma(outputs.shape[1], scale=float(noise.scale.mid))
        return cdf_p_value(np.linalg.norm(lengths, ord=noise.q, axis=1), law.cdf)
    if isinstance(distribution, ShiftedMahalanobis):
        lengths = (outputs - distribution.centre) / distribution.noise.roots(outputs.shape[1])
        law = gamma(outputs.shape[1], scale=float(distribution.noise.scale.mid))
        return cdf_p_value(np.linalg.norm(lengths, axis=1), law.cdf)
    if isinstance(distribution, Around):
        assert outputs.shape[1] == 3
        return direction_p_value(outputs @ distribution.centre, distribution.noise)
    assert isinstance(distribution, Shifted)
    p_values = [
        coordinate_p_value(outputs[:, i] - distribution.centre[i], distribution.noise) for i in range(outputs.shape[1])
    ]
    return min(1.0, len(p_values) * min(p_values))


def direction_p_value(cosines, noise):
    """In three dimensions the cosine of von Mises-Fisher noise has the density e^(κt), and Purkayastha's angle the
    density e^(-κa) sin a."""
    kappa = float(noise.kappa.mid)
    if isinstance(noise, VonMisesFisher):
        return cdf_p_value(cosines, lambda t: (np.exp(kappa * t) - np.exp(-kappa)) / (2 * np.sinh(kappa)))

    def integral(a):
        return 1 - np.exp(-kappa * a) * (kappa * np.sin(a) + np.cos(a))

    angles = np.arccos(np.clip(cosines, -1, 1))
    return cdf_p_value(angles, lambda a: integral(a) / integral(np.pi))


def normed(distribution):
    return distribution.probabilities / distribution.probabilities.sum()


def coordinate_p_value(noise, distribution):
    lost = float(distribution.lost.mid) if isinstance(distribution, Mixture) else 0.0
    there = noise[~np.isnan(noise)]
    missing = frequency_p_value(len(noise) - len(there), len(noise), lost)

    def upto(t):
        return distribution.cdf(np.where(np.abs(t) < 1e-12, 0.0, t)) / (1 - lost)  # x + 0 − x is 0 up to rounding

    def below(t):
        return upto(t) - distribution.atom / (1 - lost) * (np.abs(t) < 1e-12)

    return min(1.0, 2 * min(missing, cdf_p_value(np.round(there, 12), upto, below)))


def rounded_p_value(outputs, scale):
    """Laplace noise around 0, rounded: each whole number gets the mass within half a unit of it."""
    edge = 30
    k = np.arange(-edge, edge + 1)
    cdf = np.where(k + 0.5 < 0, np.exp((k + 0.5) / scale) / 2, 1 - np.exp(-(k + 0.5) / scale) / 2)
    cdf[-1] = 1.0
    counts = np.bincount(np.clip(outputs, -edge, edge).astype(int) + edge, minlength=2 * edge + 1)
    return counts_p_value(counts, np.diff(cdf, prepend=0.0))


def sampled_p_value(pipeline, outputs, vector):
    """One record that takes part or not: Gaussian noise about its clipped vector, or about 0."""
    sampling, clip, noise = pipeline.stages[:3]
    rate, sigma = float(sampling.rate.mid), float(noise.noise.sigma.mid)
    centre = min(vector[0], float(clip.radius.mid))

    def cdf(t):
        return (1 - rate) * norm.cdf(t / sigma) + rate * norm.cdf((t - centre) / sigma)

    return cdf_p_value(outputs[:, 0], cdf)


def dropped_p_value(claim, pipeline, outputs):
    """A word kept or dropped: a mixture of the distributions of the two texts' vectors."""
    mu, vector = float(claim.parameters["mu"]), np.eye(pipeline.dim)[0]
    noise = pipeline.stages[-1].noise
    law = norm(scale=float(noise.sigma.mid)) if isinstance(noise, Gaussian) else laplace(scale=float(noise.scale.mid))

    def cdf(t, centre):
        return law.cdf(t - centre)

    p_values = [
        cdf_p_value(outputs[:, i], lambda t, v=v: (1 - mu) * cdf(t, v) + mu * cdf(t, 1 - v))
        for i, v in enumerate(vector)
    ]
    return min(1.0, len(p_values) * min(p_values))


@pytest.mark.parametrize("claim", REGISTRY.values(), ids=lambda c: c.name)
def test_samplers_draw_from_their_laws(claim):
    name = "samplers of claims"
    small = claim(**claim.trial.changes)
    pipeline, rng = small.runnable, generator(f"{name} {claim.name}")
    first, second = inputs(claim, pipeline)
    outputs = np.asarray(pipeline.sample(first, RUNS, rng))
    if claim.name in ("copy", "average-length-raw"):
        assert (outputs == first).all()
        return
    if "dropout" in claim.pipeline:
        p_value = dropped_p_value(small, pipeline, outputs)
    elif claim.pipeline.startswith("poisson"):
        p_value = sampled_p_value(pipeline, outputs, first)
    elif "round" in claim.pipeline:
        p_value = rounded_p_value(outputs[:, 0], 1.0)
    else:
        p_value = law_p_value(outputs, pipeline.distribution(first))
        if claim.name not in ("coin-flip", "exponential"):  # for these two, both inputs have the same distribution
            assert (
                law_p_value(outputs, pipeline.distribution(second)) < 1e-7
            )  # so the test can tell one distribution from another
    require(name, len(REGISTRY) * p_value)
