"""Brute force over small data sets: what a pipeline's loss is, by the definition of its stages.

It imports nothing of dpassay. Records are taken from a few values, data sets and their neighbours are enumerated, with
all samples that the sampling can draw, and the laws of their outputs are compared cell by cell.
"""

from brute_force.judge import Said, contradictions, judged
from brute_force.truth import Found, Refused, Unreadable, found_in

__all__ = ["Found", "Refused", "Said", "Unreadable", "contradictions", "found_in", "judged"]
