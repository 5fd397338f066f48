"""The page: the verdict first, all text escaped, nothing fetched, and it opens in a real browser."""

import html
import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay import Claim, audit, check
from dpassay.api import with_samples
from dpassay.claims.registry import REGISTRY
from dpassay.core.files import write_whole
from dpassay.report.pages import page as page_module
from dpassay.report.pages.page import figures_page, gallery_page, headline, verdict_page
from dpassay.report.pages.typeset import typeset
from dpassay.report.pictures import svg
from dpassay.reproduce import FIGURES
from dpassay.reproduce.result import ReproductionOptions, read_back, save
from published import published_verdict

EVIL = Claim(
    "<script>alert(1)</script>",
    "clip(l2, 1) | laplace(2/eps)",
    epsilon=1,
    dim=4,
    source='"><img src=x onerror=alert(2)> \x1b[31m',
    title="<b>bold</b>",
    why="a & b <i>c</i>.",
)


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


KINDS = [
    *("adept", "adept-l1", "dptext-nan", "dpnr-dropout", "dpnr-training", "ome", "rappor", "exponential", "copy"),
    *("gaussian-large-eps", "leak-everything", "leak-rows", "coin-flip", "post-processing", "composition"),
]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_claim_has_a_page(name: str) -> None:
    verdict = published_verdict(name)
    page = verdict_page(verdict, f"dpassay check {name} --html x.html")
    assert len(page) < 200_000  # with the proofs that it rests on, their formulas as MathML
    assert page.index(html.escape(headline(verdict))) < page.index(verdict.word.upper())
    for words in (typeset(verdict.reason), f"dpassay check {name}", *map(typeset, verdict.warnings)):
        assert " ".join(words.split()) in " ".join(text_of(page).split()), words
    assert_alone(page)


def test_the_witness_of_an_audit_has_examples_and_a_table_and_is_escaped() -> None:
    def telling(x: int, rng: Any) -> str:
        return ["<script>alert(1)</script>", "\x1b[2Jyes"][x if rng.random() < 0.9 else 1 - x]

    verdict = audit(telling, [(0, 1)], epsilon=1)
    page = verdict_page(verdict, "dpassay audit")
    assert_alone(page)
    assert "\x1b" not in page
    shown = " ".join(text_of(page).split())
    assert "'<script>alert(1)</script>' → first" in shown
    assert r"'\x1b[2Jyes' → second" in shown
    (one, other, runs), _ = verdict.witness.table
    assert f"first {one:,} {other:,} {runs - one - other:,} {runs:,}" in shown
    assert "times as often" in shown


TEMPLATES = Path(page_module.__file__).parents[1] / "templates"
SCRIPT = re.compile(r'<script type="module">\n(.*?)</script>', re.DOTALL)


def assert_own_scripts(page: str) -> None:
    """Every script is in a template, letter by letter."""
    own = "".join(path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.iterdir()))
    scripts = SCRIPT.findall(page)
    assert scripts
    assert all(script.strip() in own for script in scripts)
    assert page.count("<script") == len(scripts)


def assert_alone(page: str) -> None:
    """Nothing is run but the scripts of the templates, and nothing is fetched."""
    assert_own_scripts(page)
    page = SCRIPT.sub("", page)
    assert not re.search(r"""\son\w+\s*=""", re.sub(r">[^<]*<", "><", page))
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?!data:)\w""", re.sub(r">[^<]*<", "><", page))
    assert "@import" not in page


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("adept", {}, "Refuted: ADePT does not satisfy 1-DP. The true ε is 5.657."),
        ("copy", {}, "Refuted: “Copying the input” does not satisfy 10-DP. No finite ε holds."),
        ("laplace", {}, "Proven: “Laplace, counting query” satisfies 1-DP."),
        ("ome", {}, "Refuted: OME does not satisfy 1-DP. The true ε is 53,013."),
        ("adept", {"epsilon": "4.5", "delta": "1e-6", "dim": 1}, "Proven: ADePT satisfies (4.5, 10⁻⁶)-DP."),
        ("leak-rows", {}, "Proven: “Each row, with probability δ” satisfies (0, 10⁻⁶)-DP."),
    ],
)
def test_the_first_sentence(name: str, changes: dict[str, object], words: str) -> None:
    assert headline(check(REGISTRY[name], **changes)) == words


def test_delta_is_not_the_probability_of_a_loss_above_epsilon() -> None:
    """(2, 1e-5)-DP holds, but the loss exceeds 2 with probability Φ(−ε/μ + μ/2) = 8.84e-5 at μ = 1/2."""
    page = text_of(verdict_page(check("query(l2, 1) | gaussian(2)", epsilon=2, delta="1e-5"), "x"))
    beyond = math.erfc((2 / 0.5 - 0.25) / math.sqrt(2)) / 2
    assert f"{beyond:.3g}" == "8.84e-05"
    assert "It exceeds ε = 2 with probability 8.84×10⁻⁵, which is not δ." in page
    assert "is at most 7.39 times its probability under the other, plus 10⁻⁵" in page
    assert "up to a probability" not in page
    assert "apart from a probability" not in page


@pytest.mark.parametrize(("begin", "said"), [("", ""), ("dropout(0.1) | encode | ", ", before word dropout")])
def test_word_dropout_is_named_only_where_it_is(begin: str, said: str) -> None:
    page = text_of(verdict_page(check(f"{begin}clip(l1, 1) | laplace(2)", epsilon=9, dim=4), "x"))
    assert f"Computed on a grid{said}." in page


def test_an_open_verdict_says_that_it_proves_nothing() -> None:
    verdict = check("clip(l2, 1) | laplace(2) | times(4)", epsilon="6.5", delta="1e-3", dim=4)
    assert headline(verdict).endswith(" was neither proven nor refuted.")
    assert_alone(verdict_page(verdict, "x"))


def test_text_from_users_is_text() -> None:
    verdict = check(EVIL)
    for page in (verdict_page(verdict, "dpassay check '<script>'"), gallery_page([(EVIL, verdict)], "<script>")):
        assert_alone(page)
        assert "<script>alert(1)</script>" in text_of(page)
        assert "\x1b" not in page
    assert "<b>bold</b>" in text_of(gallery_page([(EVIL, verdict)], "x"))


def test_an_audit_states_its_error() -> None:
    verdict = audit(REGISTRY["dpnr"](dim=8, epsilon=1), runs=2000)
    page = text_of(verdict_page(verdict, "x"))
    assert "probability 0.001 at most" in page
    assert "seed" in page
    assert "guesses correct in" in page


def test_an_exact_refutation_does_not_rest_on_samples() -> None:
    claim = REGISTRY["adept"](dim=8)
    verdict = with_samples(check(claim), audit(claim, runs=500, shrink=False))
    page = text_of(verdict_page(verdict, "x"))
    assert "rests on samples" not in page
    assert "error probability of 0.001; the refutation itself is exact." in page


def test_what_lies_beyond_the_axis_of_the_gallery_is_an_arrow() -> None:
    """An ε of 8e16 must not look like one of 1e6."""
    large, small = (Claim(f"a{e}", f"query(l1, {e}) | laplace(1)", epsilon=1) for e in ("8e16", "5e5"))
    page = gallery_page([(claim, check(claim)) for claim in (large, small)], "dpassay gallery")
    ends = re.findall(r'<svg x="([\d.]+)%" class="arrow">|<rect class="end refuted" x="([\d.]+)%"', page)
    assert [bool(arrow) for arrow, _ in ends] == [True, False]
    ticks = dict(re.findall(r'class="tick" x="([\d.]+)%" y="12">([^<]+)<', page))
    assert ticks["96.0"] == "//"
    assert float(ends[1][1]) < 92.0 < float(ends[0][0]) < 100.0


def test_the_gallery() -> None:
    verdicts = [(claim, check(claim)) for claim in list(REGISTRY.values())[:6]]
    page = gallery_page(verdicts, "dpassay gallery")
    assert page.count("<details data-claim=") == 6
    assert "6 claims, 2 of them refuted." in page
    assert_alone(page)


def test_figures_from_files(tmp_path: Path) -> None:
    save(FIGURES["bayes"].make(ReproductionOptions()), "bayes", tmp_path, {})
    page = figures_page([read_back("bayes", tmp_path)], "dpassay reproduce bayes")
    assert "data:image/svg+xml;base64," in page
    assert_alone(page)
    data = json.loads((tmp_path / "bayes.json").read_text())
    assert html.escape(data["caption"]) in page


def test_what_a_file_of_figures_says_is_text(tmp_path: Path) -> None:
    save(FIGURES["bayes"].make(ReproductionOptions()), "bayes", tmp_path, {})
    data, picture = read_back("bayes", tmp_path)
    rows = [{"what": "<script>", "published": 1.23456789, "ours": None, "apart": "<b>"}]
    evil = {**data, "name": '"><script>', "caption": "<script>", "found": ["<script>"], "comparisons": rows}
    page = figures_page([(evil, picture + "<script>")], "x")
    assert_alone(page)
    assert "1.2346" in page
    assert text_of(page).count("<script>") == 4  # name, caption, what was found, and what was compared


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "x.html", verdict_page(check(EVIL), "x"))
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
    assert "<title>&lt;script&gt;alert(1)&lt;/script&gt;: refuted</title>" in (tmp_path / "x.html").read_text()


def test_the_axis() -> None:
    point = svg.axis(1.0, 5.656, 5.657, "refuted", "1", "5.656")
    assert "true: 5.656" in point
    assert "claimed: 1" in point
    assert "&lt;b&gt;" in svg.axis(1.0, 2.0, 2.0, "refuted", "<b>", "2")
    for drawn in (point, svg.axis(0.0, 0.0, 0.0, "proven", "0", "0"), svg.axis(1e-9, 1e9, 1e9, "refuted", "1", "2")):
        assert not re.search(r"nan|inf", drawn)
        places = [float(x) for x in re.findall(r'x\d?="([-\d.]+)"', drawn)]
        assert all(0 <= x <= svg.WIDTH for x in places)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
@settings(max_examples=60, derandomize=True)
def test_ticks_are_round_numbers_within_the_axis(low: float, wide: float) -> None:
    ticks = svg.round_ticks(low, low + wide)
    assert 2 <= len(ticks) <= 6
    margin = 1e-8 * max(abs(low), abs(low + wide), wide)
    assert all(low - margin <= tick <= low + wide + margin for tick in ticks)
    steps = [Fraction(str(b)) - Fraction(str(a)) for a, b in itertools.pairwise(ticks)]
    assert len(set(steps)) == 1
    digits = f"{float(steps[0]):.6e}".partition("e")[0]
    assert float(digits) in (1, 2, 5)


def test_a_page_writes_a_number_in_one_way() -> None:
    page, rest = text_of(verdict_page(published_verdict("adept"), "x")).split("What holds instead")
    assert "5.371" in rest  # a guarantee that holds is rounded up, from 5.37035...
    bounds = set(re.findall(r"at least (5\.65\d*)", page))
    assert bounds == {"5.65685"}  # rounded down
    assert set(re.findall(r"5\.65\d*", page)) - bounds == {"5.657"}  # elsewhere to the nearest: 5.656854...
    assert "from 1:1 to 286:1" in page  # e^5.65685 is 286.25


def test_a_page_carries_its_proofs() -> None:
    verdict = published_verdict("adept")
    page = verdict_page(verdict, "x")
    assert_links_lead_somewhere(page)
    assert 'href="#proof-laplace"' in page
    proof = page.split('<div id="proof-laplace" class="proof"')[1].split(">", 1)[1].split("</details>")[0]
    assert proof.startswith("<h3>Laplace noise</h3>")
    assert "coordinate by coordinate, the supremum of the loss is still" in text_of(proof)
    assert proof.count("<math>") > 50
    assert not re.search(r"\$|\\\w|\*\*", text_of(page.split("<h2>Proofs</h2>")[1].split("<h2>Generated")[0]))


def assert_links_lead_somewhere(page: str) -> None:
    for target in set(re.findall(r'href="#([^"]+)"', page)):
        assert page.count(f'id="{target}"') == 1, target


def test_every_row_of_the_gallery_is_drawn_and_linked() -> None:
    verdicts = [(claim, published_verdict(name)) for name, claim in list(REGISTRY.items())[:12]]
    page = gallery_page(verdicts, "dpassay gallery")
    assert_links_lead_somewhere(page)
    assert page.index('class="chart"') < page.index("<table")
    for name, verdict in zip(list(REGISTRY)[:12], (v for _, v in verdicts), strict=True):
        assert page.count(f'href="#claim-{name}"') == 2  # in the figure and in the table
        row = page.split(f'<a class="row" data-claim="{name}" href="#claim-{name}">')[1].split("</a>")[0]
        places = [float(place) for place in re.findall(r'c?x="([\d.]+)%"', row)]
        assert all(0 <= place <= 100 for place in places)
        start, true_at, claimed_at = places
        assert start == min(true_at, claimed_at)
        assert (true_at == 100) == (verdict.value.upper == float("inf"))


# ── In a browser ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long(every=3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_in_a_browser(browser, tmp_path: Path, scheme: str) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "page.html"
    write_whole(file, verdict_page(check(EVIL), "dpassay check mine.toml"))
    page = browser.new_page(viewport={"width": 900, "height": 1200}, color_scheme=scheme)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append("an alert was shown"))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]  # the page itself, and nothing else
    assert said == []
    assert page.inner_text("h1") == headline(check(EVIL))
    assert "<script>alert(1)</script>" in page.inner_text("h1")
    folded = page.locator("details", has_text="What holds instead")
    assert not folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert not folded.locator("table").is_visible()
    assert page.locator("svg").first.bounding_box()["width"] > 400
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 21, 21)")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 900  # nothing sticks out to the right
    assert len(page.screenshot(full_page=True)) > 20_000
    assert len(page.pdf()) > 10_000
    page.close()


def test_the_gallery_in_a_narrow_window(browser, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "gallery.html"
    write_whole(file, gallery_page([(claim, check(claim)) for claim in list(REGISTRY.values())[:4]], "dpassay gallery"))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first = page.locator("table.cards tr", has=page.locator("td")).first
    for cell in ("td.title", "td.number", "td.word", "td.why"):
        box = first.locator(cell).first.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390  # a card: nothing is hidden at the right
    assert page.locator(".chart a.row").first.bounding_box()["y"] < 800
    svg_in = page.locator("#claim-adept svg")
    assert not svg_in.is_visible()
    page.locator('table a[href="#claim-adept"]').click()  # leads into the folded part and opens it
    svg_in.wait_for(state="visible")
    page.close()
