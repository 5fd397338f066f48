"""Cards: what they say, that text is escaped, and that they can be read on light and on dark backgrounds."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import dpassay
from dpassay import Claim, check
from dpassay.report.pages.cards import COLOURS, STYLE

NASTY = "<script>alert(1)</script> & <b>x"
WORDS = Path(__file__).parents[4] / "docs" / "examples" / "words.txt"
BACKGROUNDS = ["#ffffff", "#111111", "#131416"]  # of notebooks and of the site


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("colour", COLOURS.values())
def test_colours_stand_out(colour: str, background: str) -> None:
    one, other = sorted([luminance(colour), luminance(background)])
    assert (other + 0.05) / (one + 0.05) >= 3  # what WCAG 2.1 asks of graphics


def test_text_has_the_colour_of_the_notebook() -> None:
    assert not re.search(r"#[0-9a-fA-F]{3,6}|\b(?:white(?!-)|black|rgb)", STYLE)
    backgrounds = re.findall(r"background: ([^;]+);", STYLE)
    assert backgrounds
    assert set(backgrounds) == {"transparent"}
    assert "svg text { fill: currentColor" in STYLE


def cards() -> dict[str, str]:
    verdict = check("clip(l2, 1) | laplace(2)", epsilon=1, dim=32)
    assert verdict.loss is not None
    return {
        "refuted": verdict._repr_html_(),
        "proven": check("query(l1, 1) | laplace(1)", epsilon=1)._repr_html_(),
        "open": check("clip(l2, 1) | laplace(2) | times(4)", epsilon=6.5, delta=1e-3, dim=4)._repr_html_(),
        "infinite": check("encode | laplace(1)", epsilon=1, dim=2)._repr_html_(),
        "words": check("santext", epsilon=4, vocabulary=str(WORDS))._repr_html_(),
        "sampled": dpassay.audit(lambda x, n, rng: x + rng.laplace(size=n) / 9, [(0.0, 1.0)], epsilon=1)._repr_html_(),
        "loss": verdict.loss._repr_html_(),
        "one-sided": check("query(l1, 1) | onesided(1)", epsilon=1, delta=0.1, dim=1).loss._repr_html_(),  # type: ignore[union-attr]
        "claim": dpassay.claims["adept"]._repr_html_(),
        "gdp": Claim("mine", "query(l2, 1) | gaussian(2)", mu=0.5)._repr_html_(),
        "large": Claim("mine", "query(l1, 1) | laplace(1/eps)", epsilon=53_013)._repr_html_(),
        "unfinished": Claim("mine", "clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=2)._repr_html_(),
    }


def test_every_card_is_well_formed_and_says_what_it_should() -> None:
    made = cards()
    for name, card in made.items():
        ET.fromstring(card)  # a tag left open, a stray & or < would be an error
        assert ("<svg" in card) == (name != "unfinished"), name
        assert "http" not in card, name
        assert "nan" not in re.sub(r"<style>.*?</style>", "", card, flags=re.DOTALL).lower(), name
    assert "✗ REFUTED" in made["refuted"]
    assert "5.65685" in made["refuted"]
    assert "from 1:1 to 286:1" in made["refuted"]  # e^5.657
    assert "0.176777 × 32" in made["refuted"]
    assert "✓ PROVEN" in made["proven"]
    assert "? OPEN" in made["open"]
    assert "probability 0.001 at most" in made["sampled"]
    assert "5.656854249" in made["loss"]
    assert "with probability" in made["one-sided"]
    assert "not yet judged" in made["claim"]


def test_text_is_escaped() -> None:
    claim = Claim(NASTY, "clip(l2, C) | laplace(2*C/eps)", 1, dim=4, parameters={"C": 1}, source=NASTY, why=NASTY)
    for card in (claim._repr_html_(), check(claim)._repr_html_()):
        assert "<script" not in card
        assert "<b>x" not in card
    assert "&lt;script&gt;" in claim._repr_html_()


def test_what_a_claim_allows() -> None:
    """At no false alarms (ε, δ)-DP allows δ to be recognised; at half of them 0.5-GDP allows Φ(0.5) = 0.69."""
    claims = (
        Claim("mine", "query(l1, 1) | laplace(1)", epsilon=0, delta=0.25),
        Claim("mine", "query(l2, 1) | gaussian(2)", mu=0.5),
    )
    lines = [re.findall(r'polyline class="line" points="([^"]*)"', claim._repr_html_())[0] for claim in claims]
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in lines]
    for line, least, middle in ((heights[0], 0.25, 0.75), (heights[1], 0.0, 0.6915)):
        assert (line[0] - line[50]) / (line[0] - line[100]) == pytest.approx((middle - least) / (1 - least), abs=0.005)
