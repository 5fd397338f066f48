"""The loss of one coordinate, for each kind of noise that may be added to it."""

from dpassay.core.numbers import ONE, ZERO, Number, exp
from dpassay.errors import InputError
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss, LossComponent
from dpassay.exact.pld.noises.integer import whole_loss
from dpassay.exact.pld.noises.mixture import MixtureLoss
from dpassay.exact.pld.noises.staircase import staircase_loss
from dpassay.pipeline.discrete_noise import DiscreteNoise
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.pipeline.staircase import Staircase


def coordinate_loss(noise: Noise, shift: Number) -> LossComponent:
    """The loss of one coordinate: noise around 0 against the same noise around `shift`.

    >>> from dpassay.core.numbers import number
    >>> coordinate_loss(Laplace(2), number(1)).pure == number("0.5")
    True
    """
    size = abs(shift)
    if isinstance(noise, Laplace):
        return LaplaceLoss(size / noise.scale)
    if isinstance(noise, Gaussian):
        return GaussianLoss(size / noise.sigma)
    if isinstance(noise, OneSided):
        ratio = size / noise.scale
        if shift.mid >= 0:  # P can be where Q cannot
            return AtomLoss(((-ratio, exp(-ratio)),), 1 - exp(-ratio) if ratio != 0 else ZERO)
        return AtomLoss(((ratio, ONE),))
    if isinstance(noise, Mixture):
        return _one_sided_mixture(noise, shift) if noise.one_sided else MixtureLoss(noise, shift)
    if isinstance(noise, DiscreteNoise):
        return whole_loss(noise, shift)
    if isinstance(noise, Staircase):
        return staircase_loss(noise, size / noise.sensitivity)
    raise InputError(f"no exact loss is known for {type(noise).__name__}; use sampled evidence instead")


def _one_sided_mixture(noise: Mixture, shift: Number) -> AtomLoss:
    """Exponential noise that may be left out, or lost with its value: docs/proofs/mixture.md, point 5."""
    atoms, infinite = [(ZERO, noise.lost)] if noise.lost.b > 0 else [], noise.atom_weight
    for weight, component in noise.parts:
        assert isinstance(component, OneSided)
        ratio = abs(shift) / component.scale
        if shift.mid >= 0:
            atoms.append((-ratio, weight * exp(-ratio)))
            infinite += weight * (1 - exp(-ratio))
        else:
            atoms.append((ratio, weight))
    return AtomLoss(tuple(atoms), infinite)
