"""How verdicts are shown: in a terminal, as a figure, as a page."""
