"""Small programs with a false claim, in the styles that people write, each with its true loss: what audits must find.

They are written as their authors would have written them: without types, some of them with habits of other times.
"""

from wrong_programs import choices, noise, relations, sparse, structures, texts
from wrong_programs.program import Program

_PARTS = (noise, choices, sparse, structures, relations, texts)
ALL: list[Program] = [one for part in _PARTS for one in part.PROGRAMS]
__all__ = ["ALL", "Program"]
