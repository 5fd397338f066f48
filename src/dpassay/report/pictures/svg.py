"""Small drawings for the page: no library, no fixed colors, so that they follow its light or dark theme."""

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from dpassay.report.pages.typeset import typeset

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 240, 70, 40


def axis(claimed: float, lower: float, upper: float, word: str, stated: str, true: str) -> Markup:
    """The claimed and the true ε on one logarithmic axis, with a label for each; an infinite end is an arrow.

    >>> "true: 5.657" in axis(1, 5.656854249, 5.65685425, "refuted", "1", "5.657")
    True
    """
    finite = [value for value in (claimed, lower, upper) if 0 < value < math.inf]
    low = 10 ** (math.floor(math.log10(min(finite, default=1))) - 1)
    high = 10 ** (math.ceil(math.log10(max(finite, default=1))) + 1)

    def place(value: float) -> float:
        inside = min(max(value, low), high)
        return 20 + (WIDTH - 40) * (math.log10(inside) - math.log10(low)) / (math.log10(high) - math.log10(low))

    ticks = [10.0**k for k in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    ticks = ticks[:: max(1, len(ticks) // 8)]
    parts = [f'<line class="axis" x1="20" y1="60" x2="{WIDTH - 20}" y2="60"/>']
    for tick in ticks:
        parts.append(f'<text class="tick" x="{place(tick):.1f}" y="80">{power(tick)}</text>')
    start, end = place(lower), place(upper) if upper < math.inf else WIDTH - 12
    parts.append(f'<line class="{word} thick" x1="{start - 4:.1f}" y1="40" x2="{max(end, start + 4):.1f}" y2="40"/>')
    if math.isinf(upper):
        parts.append(f'<path class="{word}" d="M{WIDTH - 16} 33 L{WIDTH - 2} 40 L{WIDTH - 16} 47 Z"/>')
    middle = start if math.isinf(upper) else (start + end) / 2
    parts.append(f'<text x="{min(max(middle, 80), WIDTH - 80):.1f}" y="28">true: {escape(true)}</text>')
    parts.append(f'<circle class="claimed" cx="{place(claimed):.1f}" cy="60" r="6"/>')
    parts.append(f'<text x="{place(claimed):.1f}" y="100">claimed: {escape(stated)}</text>')
    return _svg(parts, 110, f"claimed: {stated}; true: {true}")


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten between two numbers, as many as fit.

    >>> round_ticks(0, 5.94), round_ticks(-0.3, 0.4)
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [-0.2, 0.0, 0.2, 0.4])
    """
    if not high > low:
        return [low]
    exponent = math.floor(math.log10((high - low) / most))
    candidates = [(factor, power) for power in (exponent, exponent + 1, exponent + 2) for factor in (1, 2, 5)]
    for factor, power in candidates:
        step = factor * 10.0**power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [float(f"{k * factor}e{power}") for k in range(first, last + 1)]
    raise AssertionError("a larger step always fits")


def whole_ticks(low: float, high: float, most: int = 6) -> list[int]:
    """Evenly spaced integers between two, including the highest.

    >>> whole_ticks(-15, 0), whole_ticks(-3, 0)
    ([-15, -12, -9, -6, -3, 0], [-3, -2, -1, 0])
    """
    step = max(1, math.ceil((high - low) / (most - 1)))
    return sorted(range(math.floor(high), math.ceil(low) - 1, -step))


def power(value: float) -> str:
    """A power of ten as an axis shows it.

    >>> power(100.0), power(1e-12)
    ('100', '10⁻¹²')
    """
    return f"{value:,g}" if 1e-3 <= value <= 1e4 else typeset(f"1e{math.log10(value):.0f}")


def curve(
    x: Sequence[float],
    y: Sequence[float],
    marks: Sequence[tuple[float, float, str]],
    labels: tuple[str, str],
    filled: bool = False,
) -> Markup:
    """A line through points, y on a logarithmic axis unless it is filled, with marked and labeled points."""
    top_x = max([*x, *(m[0] for m in marks)]) or 1.0
    values = [*y, *(m[1] for m in marks)]
    if filled:
        low, high = 0.0, max(values) * 1.1 or 1.0
    else:
        positive = [v for v in values if v > 1e-15]
        low, high = math.floor(math.log10(min(positive, default=1e-3))), 0.0
        low = min(low, high - 1)

    start = min([*x, 0.0])

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * (value - start) / ((top_x - start) or 1.0)

    def down(value: float) -> float:
        share = (value - low) / (high - low) if filled else (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return 15 + (HEIGHT - BOTTOM - 15) * (1 - share)

    floor = HEIGHT - BOTTOM
    points = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(x, y, strict=True))
    parts = []
    if filled:
        parts.append(
            f'<polygon class="area" points="{across(x[0]):.1f},{floor} {points} {across(x[-1]):.1f},{floor}"/>'
        )
    parts.append(f'<polyline class="line" points="{points}"/>')
    parts.append(f'<path class="axis" fill="none" d="M{LEFT} 10 L{LEFT} {floor} L{WIDTH - 20} {floor}"/>')
    for value in round_ticks(start, top_x):
        parts.append(f'<text class="tick" x="{across(value):.1f}" y="{floor + 16}">{value:.6g}</text>')
    levels = round_ticks(low, high) if filled else [10.0**k for k in whole_ticks(low, high)]
    for level in levels:
        written = f"{level:.6g}" if filled else power(level)
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{down(level) + 4:.1f}">{written}</text>')
    for place, (a, b, what) in enumerate(marks):
        parts.append(f'<circle class="{what}" cx="{across(a):.1f}" cy="{down(b):.1f}" r="5"/>')
        left = across(a) > WIDTH - 80 or (place > 0 and across(a) > LEFT + 60)  # labels stay apart, and off the curve
        side, shift = ("end", -9) if left else ("begin", 9)
        lower = min(down(b) + 18, floor - 5) if place else down(b) - 8
        parts.append(f'<text class="label {side}" x="{across(a) + shift:.1f}" y="{lower:.1f}">{escape(what)}</text>')
    parts.append(f'<text class="tick" x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 4}">{escape(labels[0])}</text>')
    parts.append(f'<text class="tick begin" x="{LEFT + 6}" y="12">{escape(labels[1])}</text>')
    return _svg(parts, HEIGHT, f"{labels[1]} over {labels[0]}")


def _svg(parts: Sequence[str], height: int, title: str) -> Markup:
    body = "".join(parts)
    # Safe because it is made here, from numbers and escaped labels: pages show it unescaped.
    return Markup(f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{body}</svg>')
