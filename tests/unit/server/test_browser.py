"""The page in a real browser, on a desk and on a phone: readable, usable without a mouse, and without errors."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import dpassay
from dpassay.core.neighbours import KINDS

SIZES = [(1280, 800, "light"), (390, 844, "dark")]
LIMIT = 300_000  # milliseconds; on a busy machine everything takes many times as long
LAPLACE = "?pipeline=query(l1, 1) | laplace(1)&epsilon="
# Every piece of text that is seen: how much its colour stands out from what is behind it, by WCAG's formula.
CONTRASTS = """() => {
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const read = (text) => text.match(/[\\d.]+/g).map(Number);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility() || element.closest("script, style, option")) continue;
    const style = getComputedStyle(element);
    const ink = read(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    let behind = [0, 0, 0, 0];
    for (let e = element; e && behind[3] === 0; e = e.parentElement) behind = read(getComputedStyle(e).backgroundColor);
    const [a, b] = [light(ink.slice(0, 3)), light(behind.slice(0, 3))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text.data.trim().slice(0, 40)]);
  }
  return found;
}"""
FOCUS = """() => {
  const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
  const there = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return {
    name: e.id || e.dataset.copy || e.textContent.trim(),
    ring: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    seen: there !== null && (e.contains(there) || there.contains(e)),
    labelled: e.matches("a, button, summary") || !!(e.labels?.length || e.ariaLabel),
  };
}"""


class Opened:
    """A page with everything that it logged and requested."""

    def __init__(self, browser: Any, served: Any, path: str, size: tuple[int, int, str]) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=size[2])
        self.page.set_default_timeout(LIMIT)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append("a dialog was shown"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(served.address + path)

    def wait_for(self, word: str) -> None:
        self.page.wait_for_selector(f'#verdict[data-word="{word}"]')

    def end(self, served: Any) -> None:
        assert self.said == []
        assert all(url.startswith(served.address) for url in self.asked)  # nothing from another host
        self.page.close()


def in_view(page: Any, selector: str) -> bool:
    box, height = page.locator(selector).bounding_box(), page.viewport_size["height"]
    return bool(box["y"] >= 0 and box["y"] + box["height"] <= height)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_the_page(browser, served, size) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, "", size)
    page = opened.page
    opened.wait_for("refuted")  # ADePT
    page.wait_for_selector("#facts li")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert in_view(page, "#verdict")
    assert "√" not in page.inner_text("#headline")
    assert "The true ε is 5.657." in page.inner_text("#headline")
    assert page.inner_text("#truth") == "true ε 5.657"  # written in one way everywhere
    assert "true 5.657" in page.inner_text("#axis")
    assert page.locator("#meaning").is_visible() == (size[0] > 1000)
    assert "from 1:1 to 286:1" in page.text_content("#meaning")  # e^5.65685 is 286.2
    assert page.inner_text('label[for="set-C"]') == "clipping norm C"
    assert page.locator("#evidence .drawing svg").count() == 5
    assert all(page.locator("figure svg[aria-label]").nth(i).get_attribute("aria-label") for i in range(5))
    worst = min(page.evaluate(CONTRASTS))
    assert worst[0] >= 4.5, worst
    page.locator("#run").click()
    page.wait_for_selector("#run:not([disabled])")
    assert "That refutes the claim." in page.inner_text("#audit figcaption")
    page.locator("#more > summary").click()
    page.locator(".stages > summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    opened.end(served)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_without_a_mouse(browser, served, size) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + "0.5", size)
    page = opened.page
    opened.wait_for("refuted")
    page.wait_for_selector("#facts li")
    order = []
    while order[-1:] != ["run"]:
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUS)
        order.append(here["name"])
        assert len(order) < 40, order
        assert here["ring"] >= 2, here
        assert here["seen"], here
        assert here["labelled"], here
        if here["name"] == "epsilon-slider":
            page.keyboard.press("End")
            opened.wait_for("proven")
            assert parse_qs(urlsplit(page.url).query)["epsilon"] == ["100"]
            page.wait_for_selector("#facts h2")
    while here["name"] != "starter":  # and back, where the verdict, which stays in place on a phone, could hide them
        page.keyboard.press("Shift+Tab")
        here = page.evaluate(FOCUS)
        assert here["seen"], here
    fields = ["starter", "pipeline", "epsilon", "epsilon-slider", "delta", "delta-slider", "dim", "dim-slider"]
    start = order.index("starter")
    assert order[start : start + len(fields)] == fields
    after = [name for name in order if name in ("link", "command", "python", "certificate", "report", "prior", "run")]
    assert after == ["link", "command", "python", "certificate", "report", "prior", "run"]
    opened.end(served)


def test_the_address_holds_the_state(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + "2&prior=20", SIZES[0])
    page = opened.page
    opened.wait_for("proven")
    assert page.inner_text("#prior-shown") == "20%"
    page.fill("#epsilon", "0.25")
    opened.wait_for("refuted")
    page.fill("#pipeline", "clip(l1, C) | laplace(2*C/eps)")
    page.wait_for_selector("#error:not([hidden])")  # the dimension is missing
    page.fill("#dim", "7")
    opened.wait_for("proven")
    page.fill("#set-C", "3")
    page.wait_for_selector("#facts h2")
    address = page.url
    stated = parse_qs(urlsplit(address).query)
    assert stated == {
        **{"pipeline": ["clip(l1, C) | laplace(2*C/eps)"], "set": ["C=3"], "dim": ["7"], "epsilon": ["0.25"]},
        "prior": ["20"],
    }
    again = Opened(browser, served, address.removeprefix(served.address), SIZES[1])
    again.wait_for("proven")
    assert again.page.input_value("#set-C") == "3"
    again.end(served)
    assert all("status of 400" in said for said in opened.said)  # what the browser itself says of the missing dimension
    page.close()


def test_neighbours_that_differ_in_n_words_or_records_are_in_the_form(browser, served) -> None:  # type: ignore[no-untyped-def]
    """Each record can move the answer by 1, so a group of three can move it by 3: the true ε is 3."""
    opened = Opened(browser, served, LAPLACE + "2", SIZES[1])
    page = opened.page
    opened.wait_for("proven")  # the true ε is 1
    page.locator("#more > summary").click()
    assert not page.locator("#count").is_visible()
    page.select_option("#neighbours", "group(n)")
    assert page.input_value("#count") == "2"
    page.fill("#count", "3")
    opened.wait_for("refuted")
    assert page.inner_text("#truth") == "true ε 3"
    assert parse_qs(urlsplit(page.url).query)["neighbours"] == ["group(3)"]
    again = Opened(browser, served, page.url.removeprefix(served.address), SIZES[0])
    again.wait_for("refuted")
    assert again.page.input_value("#neighbours") == "group(n)"
    assert again.page.input_value("#count") == "3"
    assert again.page.locator("#count").is_visible()
    again.end(served)
    offered = page.evaluate('[...document.querySelectorAll("#neighbours option")].map((option) => option.value)')
    assert offered == ["", *sorted(KINDS, key=offered.index)]  # all of them, each once
    opened.end(served)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "2", "12", "3800"])
def test_the_picture_of_the_odds_rounds_as_the_sentence_does(browser, served, epsilon) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + epsilon, SIZES[0])
    page = opened.page
    page.wait_for_selector("#odds svg")
    sentence, caption = page.text_content("#meaning"), page.text_content("#odds figcaption")
    found = re.findall(r"[\d.,⁰¹²³⁴-⁹]+:1", sentence)[1:]  # after "from 1:1 to"
    assert found
    assert all(f" {odds}" in caption for odds in found), (sentence, caption)
    opened.end(served)


LABELS = """() => [...document.querySelectorAll("#loss svg .halo")].map((label) => {
  const box = label.getBBox();
  return [label.textContent, box.x, box.x + box.width, label.ownerSVGElement.viewBox.baseVal.width];
})"""


@pytest.mark.long(every=2)
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
@pytest.mark.parametrize(
    "asked",
    [
        LAPLACE + "0.37",  # the mean is 1/e
        LAPLACE + "1",
        "?pipeline=query(l2, 1) | gaussian(10)&epsilon=0.004&delta=1e-5",  # the mean is 0.005
        "?pipeline=poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)&dim=10&epsilon=0.01&delta=1e-5",
        "?pipeline=query(l1, 1) | laplace(0.1)&epsilon=0.01",
    ],
)
def test_labels_of_the_loss_lie_inside_and_apart(browser, served, asked, size) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, asked, size)
    opened.page.wait_for_selector("#loss svg")
    labels = opened.page.evaluate(LABELS)
    assert sorted(words for words, *_ in labels) == ["claimed ε", "mean"]
    (_, start, end, _), (_, after, last, width) = sorted(labels, key=lambda label: label[1])
    assert 52 <= start < end < after < last <= width  # the axis stands at 52
    opened.end(served)


def test_downloads_and_what_keeps_them_from_being_written(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + "0.5", SIZES[0])
    page = opened.page
    opened.wait_for("refuted")
    for kind, name in (("certificate", "certificate.json"), ("report", "report.html")):
        with page.expect_download() as download:
            page.locator(f"#{kind}").click()
        assert download.value.suggested_filename == name
    assert opened.said == []
    page.route("**/certificate?*", lambda route: route.fulfill(status=400, json={"error": "it cannot be written"}))
    address = page.url
    page.locator("#certificate").click()
    page.locator("#said", has_text="it cannot be written").wait_for()
    assert page.inner_text("#said") == "No certificate: it cannot be written"
    assert page.url == address
    page.close()


def test_text_of_the_address_is_text(browser, served) -> None:  # type: ignore[no-untyped-def]
    evil = "?pipeline=<img src=x onerror=alert(1)>&epsilon=<script>alert(2)</script>"
    opened = Opened(browser, served, evil, SIZES[0])
    opened.page.wait_for_selector("#error:not([hidden])")
    assert opened.page.locator("#claim img, #error script").count() == 0
    assert not any("dialog" in said for said in opened.said)
    opened.page.close()


SHOWN = """() => [...document.querySelectorAll("#evidence, #axis svg, figure svg, #facts *, #certificate, #report")]
  .filter((e) => e.checkVisibility()).map((e) => e.id || e.tagName)"""


@pytest.mark.long(every=2)
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_after_an_error_nothing_of_the_old_claim_is_left(browser, served, size) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + "0.5", size)
    page = opened.page
    opened.wait_for("refuted")
    page.wait_for_selector("#facts li")
    page.fill("#pipeline", "query(l1, 1) | laplce(1)")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#headline") == "No verdict: this claim cannot be checked as it is written."
    assert page.evaluate(SHOWN) == []
    page.fill("#pipeline", "query(l1, 1) | laplace(2)")
    opened.wait_for("proven")
    assert "evidence" in page.evaluate(SHOWN)
    page.close()


def test_a_bad_pipeline_opened_directly_shows_the_form_and_the_error(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, "?pipeline=clip(l2, 1) | clop(1)&epsilon=1&dim=4", SIZES[0])
    page = opened.page
    page.wait_for_selector("#error:not([hidden])")
    assert page.evaluate(SHOWN) == []
    assert page.locator("#pipeline").is_visible()
    assert "clop" in page.inner_text("#error")
    page.close()


def test_a_server_that_is_gone_is_not_a_claim_that_is_wrong(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + "0.5", SIZES[0])
    page = opened.page
    page.wait_for_selector("#facts li")
    page.route("**/api/**", lambda route: route.abort())
    page.fill("#epsilon", "2")
    page.locator("#headline", has_text="No verdict").wait_for()
    assert page.inner_text("#headline") == "No verdict: the server is not responding."
    assert page.evaluate(SHOWN) == []
    page.unroute("**/api/**")
    page.route("**/api/**", lambda route: route.fulfill(status=503, json={"error": "The server is busy."}))
    page.fill("#epsilon", "3")
    page.locator("#headline", has_text="could not").wait_for()
    assert page.inner_text("#headline") == "No verdict: the server could not answer."
    page.close()


def test_a_verdict_stays_where_only_the_rest_takes_too_long(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, "", SIZES[0])
    page = opened.page
    page.route("**/api/check?*", lambda route: route.fulfill(status=400, json={"error": "This takes too long."}))
    page.goto(served.address + LAPLACE + "0.5")
    page.locator("#facts", has_text="This takes too long.").wait_for()
    assert page.inner_text("#headline").startswith("Refuted: ")
    assert page.locator("#outputs svg").is_visible()
    page.close()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_the_gallery(browser, served, size) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, "gallery", size)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    worst = min(page.evaluate(CONTRASTS))
    assert worst[0] >= 4.5, worst
    assert page.locator(".chart a.row").count() == page.locator(".claims li").count()
    heights = page.evaluate('[...document.querySelectorAll("form select")].map((one) => one.offsetHeight)')
    assert len(heights) == 4
    assert len(set(heights)) == 1
    assert page.locator("#filter").bounding_box()["width"] > 150
    ends = page.evaluate('[...document.querySelectorAll(".chart .end")].map((end) => end.getBoundingClientRect().x)')
    assert len(set(ends)) > 10  # they stand at their places
    assert 0 < min(ends) < max(ends) < size[0]
    page.keyboard.press("Tab")
    page.fill("#filter", "adept refuted")
    assert page.locator(".chart a.row:visible").count() == page.locator(".claims li:visible").count()
    shown = page.locator(".claims li:visible")
    assert 0 < shown.count() < 10
    assert all("refuted" in text for text in shown.all_inner_texts())
    page.locator(".claims li:visible a").first.click()
    page.wait_for_selector(".verdict-line .refuted")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert in_view(page, ".verdict-line")
    worst = min(page.evaluate(CONTRASTS))
    assert worst[0] >= 4.5, worst
    page.locator("a[href='/proofs/laplace']").first.click()
    page.wait_for_selector("h1:has-text('Laplace noise')")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.go_back()
    page.locator("a.button").click()
    opened.wait_for("refuted")
    opened.end(served)


def test_the_gallery_is_filtered_and_sorted(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, "gallery?verdict=proven", SIZES[0])
    page = opened.page
    rows = page.locator(".claims li:visible")
    assert {rows.nth(i).get_attribute("data-word") for i in range(rows.count())} == {"proven"}
    page.select_option("#guarantee", "metric DP")
    assert 0 < rows.count() < 20
    assert page.locator(".chart a.row:visible").count() == rows.count()
    page.select_option("#guarantee", "")
    page.select_option("#verdict", "")
    page.select_option("#order", "factor")
    factors = [float(rows.nth(i).get_attribute("data-factor")) for i in range(rows.count())]
    assert factors == sorted(factors, reverse=True)
    assert parse_qs(urlsplit(page.url).query) == {"order": ["factor"]}
    page.select_option("#order", "")
    assert page.locator("#sorted li").count() == 0  # all are back under their systems
    assert page.locator(".system:visible").count() == page.locator(".system").count()
    opened.end(served)


def test_values_of_a_plot_are_read_with_the_mouse_and_with_keys(browser, served) -> None:  # type: ignore[no-untyped-def]
    opened = Opened(browser, served, LAPLACE + "0.5", SIZES[0])
    page = opened.page
    opened.wait_for("refuted")
    page.locator("#outputs svg").focus()
    page.keyboard.press("Home")
    first = page.inner_text("#outputs .reading")
    assert re.fullmatch(r"output -?[\d.]+: first input [\d.]+, second input [\d.]+", first)
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#outputs .reading") != first
    assert page.locator("#outputs svg").get_attribute("aria-valuetext") == page.inner_text("#outputs .reading")
    page.locator("#odds svg").hover()
    assert re.match(r"belief before 0\.[45]\d*: claimed 0\.\d+, true 0\.\d+", page.inner_text("#odds .reading"))
    opened.end(served)


@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_what_epsilon_is(browser, served, size) -> None:  # type: ignore[no-untyped-def]
    """The numbers of the page against closed forms, and against the exact composition of the library."""
    opened = Opened(browser, served, "learn", size)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.wait_for_selector("#bayes svg")
    said = {name: page.inner_text(f"#{name} figcaption") for name in ("response", "laplace", "delta", "somebody")}
    assert "= 1.099." in said["response"]  # ln 3
    assert "= 2.718, so ε = 1/b = 1." in said["laplace"]
    assert "δ = 9.44×10⁻⁶" in said["delta"]
    assert "probability 8.84×10⁻⁵, which is larger" in said["delta"]
    assert "probability 63.2%" in said["somebody"]  # 1 − (1 − 1e-6)^1e6
    exact = dpassay.compose("0.1 x 100", delta=1e-6).exact
    shown = page.inner_text("#composition figcaption")
    assert f"({exact.upper:.5g}, 10⁻⁶)-DP" in shown
    page.locator("#bayes-prior").fill("0.01")
    assert "2.67%" in page.inner_text("#bayes figcaption")  # e·0.01/(e·0.01 + 0.99)
    assert page.locator("details").count() == 6
    assert all(page.locator("details").nth(i).get_attribute("open") is None for i in range(6))
    worst = min(page.evaluate(CONTRASTS))
    assert worst[0] >= 4.5, worst
    opened.end(served)
