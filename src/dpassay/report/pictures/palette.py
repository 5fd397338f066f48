"""The colors of the pages, for figures that matplotlib draws: the same in light and in dark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Colors of text, background, soft text, rules, and of each verdict; all readable on the background.

    >>> LIGHT.of("refuted")
    '#a63c00'
    """

    ink: str
    paper: str
    soft: str
    rule: str
    proven: str
    refuted: str
    open: str

    def of(self, word: str) -> str:
        """The color of a verdict."""
        return {"proven": self.proven, "refuted": self.refuted, "open": self.open}[word]

    def style(self, size: float) -> dict[str, object]:
        """Settings of matplotlib for text of this size in points."""
        text = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), self.ink)
        lines = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), self.soft)
        return {**text, **lines, "axes.facecolor": self.paper, "figure.facecolor": self.paper, "font.size": size}


LIGHT = Palette("#1a1c1f", "#ffffff", "#565b63", "#dcdde0", "#00598c", "#a63c00", "#5d5a52")
DARK = Palette("#e9eaec", "#131519", "#abb1bb", "#343942", "#6cc0f0", "#ff9d63", "#c9c4b6")
