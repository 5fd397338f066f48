"""Transforms that err as much as docs/proofs/discretisation.md, point 6, allows, all in the same direction.

A bound on rounding errors is far above what a processor does, so that no computation notices if a part of it is lost.
Here every error is as large as the proof's premises permit, and adds up at one place of the result.
"""

import math

import numpy as np


class Adversary:
    """numpy, with transforms of relative error η in the 2-norm, and products of relative error κ per frequency."""

    def __init__(self, eta, kappa, place):
        self.eta, self.kappa, self.place, self.fft = eta, kappa, place, self

    def __getattr__(self, name):
        return getattr(np, name)

    def _towards_place(self, n):
        return np.exp(-2j * np.pi * self.place * np.arange(n // 2 + 1) / n)

    def rfft(self, weight, n):
        """The transform, off by η‖φ‖₂ = η√n‖w‖₂ in the 2-norm over all n frequencies."""
        off = self.eta * math.sqrt(n) * float(np.linalg.norm(weight)) / math.sqrt(n)
        return np.fft.rfft(weight, n) + off * self._towards_place(n)

    def irfft(self, spectrum, n):
        """The inverse, off by η‖v‖₂ at the place; products before it were off by κ at each frequency."""
        spectrum = spectrum + self.kappa * np.abs(spectrum) * self._towards_place(n)
        whole = np.fft.irfft(spectrum, n)
        whole[self.place] += self.eta * float(np.linalg.norm(whole))
        return whole


def concentrated(size, rest=1e-4):
    """Masses of which the first is nearly 1: all frequencies are as large as they can be."""
    return np.array([1 - (size - 1) * rest, *[rest] * (size - 1)])
