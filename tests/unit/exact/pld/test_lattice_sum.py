"""The rounding error of a folded sum."""

import math

import numpy as np

from dpassay.exact.pld import lattice_sum
from dpassay.exact.pld.lattice_sum import Window, fold
from rounding_adversary import Adversary, concentrated


def test_every_part_of_the_rounding_error_is_counted(monkeypatch):
    """As in test_pld_grid: logarithms, products and exponentials of one part err by 4·(3 + 1) units of roundoff."""
    unit, points, place = 2.0**-30, 64, 5
    eta, kappa, mass = 16 * unit * math.log2(points), 16 * unit, concentrated(40)
    monkeypatch.setattr(lattice_sum, "_U", unit)
    monkeypatch.setattr(lattice_sum, "np", Adversary(eta, kappa, place))
    folded = fold([(mass, 1)], 0, Window(0.1, 1.0, points, 0.0, (1.0, 1.0)), 0.0)
    off = abs(folded.mass[place] - mass[place])
    assert off <= folded.error
    norm = float(np.linalg.norm(mass))
    forward, inverse = eta * norm * math.sqrt(2 * (points // 2 + 1) / points), eta * norm
    powers = kappa * 2 * (points // 2 + 1) / points
    assert forward + inverse < off
    assert powers + max(forward, inverse) < off
