"""An oracle for pipelines: what is true of their privacy loss by the definition of their stages.

It imports nothing of dpassay. Finite mechanisms are enumerated, input by input and output by output; additive noise is
judged by closed forms at the sets' diameters, with textbook theorems above and real pairs of inputs below; discrete
noise by sums over whole numbers, directions on the sphere by an integral over the angle. Where these do not meet, or
nothing is known, the answer is an interval, at worst [0, ∞].
"""

from oracle.judge import Statement, false_statement, judged
from oracle.losses import Truth
from oracle.mechanism import composed_truth, truth_of
from oracle.text import Unreadable

__all__ = ["Statement", "Truth", "Unreadable", "composed_truth", "false_statement", "judged", "truth_of"]
