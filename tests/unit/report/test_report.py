"""The gallery's table and figure."""

import io
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

from dpassay.api import check
from dpassay.claims.claim import Claim
from dpassay.claims.registry import REGISTRY
from dpassay.core.interval import Interval
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict
from dpassay.report.claims.gallery import claimed, draw, short, table
from published import published_verdict

EVIL = Claim(
    '<script>alert("name")</script>',
    "clip(l2, C) | laplace(2*C/eps)",
    epsilon=1,
    dim=4,
    parameters={"C": 1},
    source='<img src=x onerror="alert(1)"> & [red]',
    why="<b>why</b> [bold]not[/bold] & so on {rows} {0}",
    expected="refuted",
)


@pytest.fixture(scope="module")
def verdicts() -> list[tuple[Claim, Verdict]]:
    names = ("laplace", "copy", "coin-flip", "adept", "gaussian-large-eps", "ome")
    return [(REGISTRY[name], check(REGISTRY[name])) for name in names]


def printed(thing: object, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), record=True, color_system=None)
    console.print(thing)
    return console.export_text()


# ── The table ───────────────────────────────────────────────────────────────────────────────────


def test_the_whole_gallery_fits_eighty_columns() -> None:
    whole = [(claim, published_verdict(claim.name)) for claim in REGISTRY.values()]
    text = printed(table(whole), 80)
    assert max(len(line) for line in text.splitlines()) <= 80
    for claim, verdict in whole:
        # No name is cut, no verdict is broken.
        assert re.search(rf"^{re.escape(claim.name)} .* {verdict.word} ", text, re.MULTILINE), claim.name
    assert "…" not in text


def test_markup_in_a_table_is_text() -> None:
    text = printed(table([(EVIL, check(EVIL))]), 200)
    assert "[bold]not[/bold]" in text
    assert EVIL.name in text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(1, 1), "1"),
        (Interval(0, 0), "0"),
        (Interval(5.656854249, 5.65685425), "5.657"),
        (Interval(4.25, 4.5), "[4.25, 4.5]"),
        (Interval(4.40012, 4.60018), "[4.400, 4.601]"),  # outward
        (Interval(math.inf, math.inf), "∞"),
        (Interval(3, math.inf), "[3, ∞]"),
        (Interval(53013.355, 53013.356), "53,013"),
    ],
)
def test_short_intervals(interval: Interval, text: str) -> None:
    assert short(interval) == text


def test_claimed_in_few_letters() -> None:
    assert claimed(check("query(l1, 1) | laplace(1)", epsilon="0.05")) == "0.05"
    assert claimed(check("query(l2, 1) | gaussian(9)", epsilon=10, delta="1e-5")) == "10, δ 1e-5"


# ── The figure ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures(verdicts: list[tuple[Claim, Verdict]], tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"gallery.{suffix}"
    draw(verdicts, path)
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size > 3000


def test_the_drawing_is_the_same_every_time(verdicts: list[tuple[Claim, Verdict]], tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(verdicts, tmp_path / name)
    first, second = ((tmp_path / name).read_text(encoding="utf-8") for name in ("one.svg", "two.svg"))
    assert first == second
    assert not re.search(r"20\d\d-\d\d-\d\dT", first)
    for word in ("ADePT", "OME", "5.657", "53,013", "∞", "claimed"):
        assert word in first, word


@pytest.mark.parametrize("name", ["x.gif", "x", "x.svgz", "x.html"])
def test_other_suffixes_are_refused(verdicts: list[tuple[Claim, Verdict]], tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"\.svg, \.pdf or \.png"):
        draw(verdicts, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("title", ["<b>x</b> & y", "costs $5", "$\\frac{", "a_b^c"])
def test_titles_are_text_in_a_figure(tmp_path: Path, title: str) -> None:
    claim = Claim("x", "query(l1, 1) | laplace(1)", epsilon=1, title=title)
    draw([(claim, check(claim))], tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<b>x" not in text


def test_nothing_to_draw(tmp_path: Path) -> None:
    # ε = 0 has no place on a logarithmic axis.
    draw([(REGISTRY["coin-flip"], check(REGISTRY["coin-flip"]))], tmp_path / "x.svg")
    assert (tmp_path / "x.svg").exists()


# ── Pairs in words ──────────────────────────────────────────────────────────────────────────────


def test_a_pair_in_a_line() -> None:
    pair = check("clip(l2, 1) | laplace(2)", epsilon=1, dim=4).witness.pair
    assert str(pair) == "(0.5 × 4) against (-0.5 × 4)"
    bits = check("binary(1, 1) | bits(0.9, 0.1, 0.2)", epsilon=1, dim=1).witness.pair
    assert "even places" in str(bits)
