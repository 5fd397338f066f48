"""Small programs in the styles that people write, half of them right and half wrong, each with its true loss.

They are written as their authors would have written them: without types, some of them with habits of other times.
"""

from trace_programs import adaptive, branches, choices, conditions, flow, hidden, noise, shuffles, styles, training
from trace_programs.program import Program

_PARTS = (shuffles, conditions, hidden, choices, noise, flow, training, adaptive, styles, branches)
ALL: list[Program] = [one for part in _PARTS for one in part.PROGRAMS]
__all__ = ["ALL", "Program"]
