"""Grids for certificates: a step and a tilt with which the verifier's own lattice bounds δ(ε) closely.

Any step and any tilt give a valid bound; these only make it a good one.
"""

import math
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, digits, iv, middle, number
from dpassay.exact.loss_components import AtomLoss
from dpassay.exact.privacy_loss import PrivacyLoss

LEVELS = (1 << 12, 1 << 14, 1 << 16)  # how many points of the sum are to be kept, about
_WIDTH = 11.0  # standard deviations that are kept on either side
_MOST_CELLS = 1 << 15  # of one coordinate, as the verifier allows


def grid_for(loss: PrivacyLoss, epsilon: Number, points: int, below: bool) -> dict[str, Any]:
    """A grid on which a sum of losses is precise at an ε; one loss is a multiple of its step.

    From below the step is smaller by less than matters, for pairs that were moved a little inwards.
    """
    coarse = loss.composed("delta-up", loss.step(1 << 12), epsilon=middle(epsilon))
    weights = coarse.mass / coarse.mass.sum()
    mean = float((weights * coarse.losses).sum())
    deviation = math.sqrt(max(float((weights * (coarse.losses - mean) ** 2).sum()), 1e-300))
    whole = 2 * sum(component.span * count for component, count in loss.components)
    width = min(whole, 2 * _WIDTH * deviation)
    widest, _ = max(loss.components, key=lambda part: part[0].span)
    copies = sum(count for _, count in loss.components)
    cells = max(1, points // (2 * copies), min(points // 16, math.floor(points * widest.span / max(width, 1e-300))))
    span = number(widest.span) if isinstance(widest, AtomLoss) else iv.mpf(widest.pure.mid)
    if below:
        span *= 1 - iv.mpf("1e-33")
    tilt = number(float(np.round(coarse.tilt, 9)))
    return {"step": list(digits(span / min(cells, _MOST_CELLS - 1))), "tilt": list(digits(tilt))}
