"""Verdicts: three types, never a bool; how they print, with names that try to break out."""

import io
import re

import pytest
from rich.console import Console

from dpassay.api import check
from dpassay.claims.claim import Claim
from dpassay.evidence.verdict import Open, Proven, Refuted, Verdict

NASTY = '[red]<b>x</b>[/red] & <script>alert("1")</script> [link=http://x]y[/link]'


def refuted() -> Verdict:
    return check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1)


def shown(verdict: Verdict, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO(), color_system=None)
    console.print(verdict)
    return console.export_text()


def test_three_types() -> None:
    assert [(t.word, t.exit_code) for t in (Proven, Refuted, Open)] == [("proven", 0), ("refuted", 1), ("open", 0)]
    assert not issubclass(Proven, Refuted)
    with pytest.raises(AttributeError):
        refuted().reason = "else"  # type: ignore[misc]


def test_text() -> None:
    verdict = refuted()
    assert str(verdict) == f"REFUTED: {verdict.reason}"
    assert str(verdict.epsilon) == "[5.656854249, 5.656854250]"


def test_terminal() -> None:
    text = shown(refuted())
    for word in (
        "REFUTED",
        "5.656854249",
        "0.176777 × 32",
        "laplace(11.3",
        "repair",
        "what holds",
        "event",
        "rests on",
    ):
        assert word in text, word
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "mpi(" not in text


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("clip(l1, 1) | laplace(2)", {"epsilon": 1}),
        ("clip(l2, 1) | laplace(2)", {"epsilon": "1.9", "delta": "1e-6"}),
        ("encode | laplace(1)", {"epsilon": 1}),
        ("encode | binary(4, 5) | flip(0.6)", {"epsilon": 1, "delta": "1e-6"}),
        ("encode", {"epsilon": 1}),
        ("clip(l2, 1) | gaussian(0.01)", {"epsilon": 1}),
        ("clip(l2, 1) | laplace(0.00001)", {"epsilon": 1}),
    ],
)
def test_every_kind_prints(text: str, claim: dict[str, object], width: int) -> None:
    out = shown(check(text, dim=4, **claim), width)
    assert max(len(line) for line in out.splitlines()) <= width
    assert "nan" not in out.lower()


def test_probabilities_too_small_for_doubles_print() -> None:
    out = shown(check("clip(l2, 1) | laplace(2)", epsilon=1, dim=1_000_000), 200)
    # ln P = −10⁶ ln 2
    assert re.search(r"10\^-30103[0-9.]*", out)


def test_names_are_text_everywhere() -> None:
    claim = Claim(NASTY, "clip(l2, C) | laplace(2*C/eps)", 1, dim=4, parameters={"C": 1}, source=NASTY, why=NASTY)
    verdict = check(claim)
    page = verdict._repr_html_()
    assert "<script" not in page
    assert "<b>x" not in page
    assert "REFUTED" in page
    assert page.startswith("<pre>")
    text = shown(verdict)
    # Where a name is shown at all, its brackets are shown with it.
    assert "<b>" not in text or "[red]" in text.replace("\n", "")
    assert verdict.to_dict()["claim"]["name"] == NASTY


def test_html_escapes_what_it_shows() -> None:
    verdict = check("clip(l2, 1) | laplace(2)", epsilon=1, dim=4)
    hostile = type(verdict)(**{**verdict.__dict__, "reason": NASTY, "warnings": (NASTY,)})
    page = hostile._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "[red]" in page  # not taken for a colour
    assert "[link=http://x]" in shown(hostile, 200)
