"""The exact pure loss between two shifts of noise that is neither Laplace nor Gaussian, if it has a closed form.

For d = |shift| / scale:

- logistic: log f(t)/f(t − d) = 2·ln((1 + e^{−t+d})/(1 + e^{−t})) − d increases from −d to d as t falls, so ε = d.
- Cauchy: (1 + (t − d)²)/(1 + t²) has its largest value ((√(d² + 4) + d)/2)² at t = (d − √(d² + 4))/2, and its
  smallest, the reciprocal, at the other root of t² − d·t − 1 = 0: ε = 2·ln((√(d² + 4) + d)/2).
- Gumbel: log f(t)/f(t − d) = −d + e^{−t}·(e^d − 1) has no bound as t → −∞: ε = ∞ unless d = 0.
"""

from __future__ import annotations

from dpassay.core.numbers import INFINITY, ZERO, Number, log, maximum, real, sqrt

KINDS = ("logistic", "cauchy", "gumbel")


def pure_loss(kind: str, shift: Number, scale: Number) -> Number:
    """ε at δ = 0 between a noise of this kind and itself shifted, in the worse direction.

    >>> from dpassay.core.numbers import number
    >>> round(float(pure_loss("logistic", number(3), number(2)).mid), 12)
    1.5
    """
    d = maximum(shift, -shift) / scale
    if d.b <= 0:
        return ZERO
    if kind == "logistic":
        return d
    if kind == "cauchy":
        return 2 * log((sqrt(d**2 + 4) + d) / 2)
    if kind == "gumbel":
        return INFINITY if d.a > 0 else real([ZERO.a, INFINITY.b])
    raise ValueError(f"the loss of {kind} noise has no closed form here: one of {', '.join(KINDS)}")
