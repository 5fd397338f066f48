"""The loss of one coordinate, for each kind of noise that may be added to it."""

from functools import singledispatch

from dpassay.core.numbers import ONE, ZERO, Number, exp
from dpassay.errors import InputError
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss, LossComponent
from dpassay.exact.pld.noises.integer import whole_loss
from dpassay.exact.pld.noises.mixture import MixtureLoss
from dpassay.exact.pld.noises.staircase import staircase_loss
from dpassay.pipeline.discrete_noise import DiscreteNoise
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.pipeline.staircase import Staircase


@singledispatch
def coordinate_loss(noise: Noise, shift: Number) -> LossComponent:
    """The loss of one coordinate: noise around 0 against the same noise around `shift`.

    >>> from dpassay.core.numbers import number
    >>> coordinate_loss(Laplace(2), number(1)).pure == number("0.5")
    True
    """
    raise InputError(f"no exact loss is known for {type(noise).__name__}; use sampled evidence instead")


coordinate_loss.register(DiscreteNoise, whole_loss)


@coordinate_loss.register(Laplace)
def _(noise: Laplace, shift: Number) -> LaplaceLoss:
    return LaplaceLoss(abs(shift) / noise.scale)


@coordinate_loss.register(Gaussian)
def _(noise: Gaussian, shift: Number) -> GaussianLoss:
    return GaussianLoss(abs(shift) / noise.sigma)


@coordinate_loss.register(OneSided)
def _(noise: OneSided, shift: Number) -> AtomLoss:
    ratio = abs(shift) / noise.scale
    if shift.mid >= 0:  # P can be where Q cannot
        return AtomLoss(((-ratio, exp(-ratio)),), 1 - exp(-ratio) if ratio != 0 else ZERO)
    return AtomLoss(((ratio, ONE),))


@coordinate_loss.register(Staircase)
def _(noise: Staircase, shift: Number) -> LossComponent:
    return staircase_loss(noise, abs(shift) / noise.sensitivity)


@coordinate_loss.register(Mixture)
def _(noise: Mixture, shift: Number) -> LossComponent:
    return _one_sided_mixture(noise, shift) if noise.one_sided else MixtureLoss(noise, shift)


def _one_sided_mixture(noise: Mixture, shift: Number) -> AtomLoss:
    """Exponential noise that may be left out, or lost with its value: docs/proofs/mixture.md, point 5."""
    atoms, infinite = [(ZERO, noise.lost)] if noise.lost.b > 0 else [], noise.atom_weight
    for weight, component in noise.parts:
        ratio = abs(shift) / component.width
        if shift.mid >= 0:
            atoms.append((-ratio, weight * exp(-ratio)))
            infinite += weight * (1 - exp(-ratio))
        else:
            atoms.append((ratio, weight))
    return AtomLoss(tuple(atoms), infinite)
