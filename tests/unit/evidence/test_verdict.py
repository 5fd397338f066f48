"""Verdicts: three types, never a bool; how they print, with names that try to break out."""

import io
import json
import math
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

import dpassay
from dpassay.api import check
from dpassay.claims.claim import Claim
from dpassay.errors import AmbiguousError, DpassayError, InputError
from dpassay.evidence.verdict import Advice, Open, Proven, Refuted, Verdict
from dpassay.exact.repair import Repair

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
    assert page.startswith("<div")
    text = shown(verdict)
    # Where a name is shown at all, its brackets are shown with it.
    assert "<b>" not in text or "[red]" in text.replace("\n", "")
    assert verdict.to_dict()["claim"]["name"] == NASTY


def test_html_escapes_what_it_shows() -> None:
    verdict = check("clip(l2, 1) | laplace(2)", epsilon=1, dim=4)
    hostile = replace(verdict, reason=NASTY, advice=Advice(warnings=(NASTY,)))
    page = hostile._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "[red]" in page  # not taken for a colour
    assert "[link=http://x]" in shown(hostile, 200)


# ── What a verdict answers ──────────────────────────────────────────────────────────────────────


def noisy(x, n, rng):  # type: ignore[no-untyped-def]
    return x + rng.laplace(scale=0.5, size=n)


def test_a_verdict_is_neither_true_nor_false() -> None:
    assert issubclass(AmbiguousError, DpassayError)
    for verdict in (refuted(), check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4)):
        with pytest.raises(TypeError, match=r"neither true nor false.*\.refuted, \.proven or \.open"):
            bool(verdict)


@pytest.mark.parametrize(("kind", "word"), [(Proven, "proven"), (Refuted, "refuted"), (Open, "open")])
def test_words_as_booleans(kind: type[Verdict], word: str) -> None:
    verdict = refuted()
    verdict = kind(verdict.claim, verdict.bounds, verdict.reason)
    assert [name for name in ("proven", "refuted", "open") if getattr(verdict, name)] == [word]


def test_no_attribute_can_be_set() -> None:
    for name in ("epsilon", "alpha", "claim", "word"):
        with pytest.raises(AttributeError):
            setattr(refuted(), name, None)


def test_repr_is_one_short_line() -> None:
    assert repr(refuted()) == "<Refuted: 1-DP for clip(l2, 1) | laplace(2), true epsilon [5.656854249, 5.656854250]>"
    verdict = check("query(l1, 1) | laplace(1)", epsilon=1, delta="1e-6")
    assert repr(verdict).endswith(" at delta 1e-06>")
    named = replace(verdict, claim=replace(verdict.claim, mechanism=None, name="a\nb\x1b[2J"))
    assert "\n" not in repr(named)
    assert "\x1b" not in repr(named)


def test_the_profile_is_kept_and_is_no_part_of_equality(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = refuted()
    assert verdict == refuted()
    assert verdict == replace(verdict, exact=replace(verdict.exact, profile=None))
    assert verdict != replace(verdict, reason="else")
    monkeypatch.setattr("dpassay.exact.analysis.analyse", lambda *_: pytest.fail("analysed again"))
    assert verdict.profile is verdict.exact.profile
    assert "δ at every ε" in verdict.to_html()
    assert verdict.loss is not None


def test_an_audit_of_a_pipeline_can_be_asked_for_its_profile() -> None:
    verdict = dpassay.audit("query(l1, 1) | laplace(1)", epsilon="0.1", runs=2000)
    assert verdict.exact.profile is None
    assert float(verdict.profile.pure.mid) == 1
    assert dpassay.audit(noisy, [(0.0, 1.0)], epsilon=1, runs=2000).profile is None


def test_the_loss_is_that_of_the_worst_pair() -> None:
    loss = refuted().loss
    # Each of 32 coordinates is shifted by 2/√32, which is √2/8 = 1/√32 scales; the mean of one is a − 1 + e^(−a).
    one = 1 / math.sqrt(32)
    mean = 32 * (one - 1 + math.exp(-one))
    assert loss.mean().lower == pytest.approx(mean, rel=1e-12)
    assert float(loss.pure.mid) == pytest.approx(math.sqrt(32), rel=1e-14)


def test_the_loss_goes_the_worse_way() -> None:
    # A bit is 1 with probability 1/2 or 1/10: one way the loss of each is at most ln 5, the other way ln (9/5).
    verdict = check("encode | binary(4, 5) | bits(0.5, 0.5, 0.1)", epsilon=1, dim=1)
    assert float(verdict.loss.pure.mid) == pytest.approx(10 * math.log(5), rel=1e-14)


def test_where_no_exact_loss_is_known_there_is_none() -> None:
    assert check("dropout(0.5) | encode | minmax | laplace(20)", epsilon=1, dim=8).loss is None
    assert dpassay.audit(noisy, [(0.0, 1.0)], epsilon=1, runs=2000).loss is None


def test_the_page_is_that_of_the_command_line() -> None:
    from dpassay.report.pages.page import verdict_page

    assert refuted().to_html("dpassay check") == verdict_page(refuted(), "dpassay check")


def test_a_certificate_is_saved_and_holds(tmp_path) -> None:  # type: ignore[no-untyped-def]
    refuted().save_certificate(tmp_path / "claim.json")
    assert json.loads((tmp_path / "claim.json").read_text())["verdict"] == "refuted"
    assert dpassay.verify(tmp_path / "claim.json").ok
    with pytest.raises(InputError, match=r"audit\(\.\.\., save=FILE\)"):
        dpassay.audit(noisy, [(0.0, 1.0)], epsilon=1, runs=2000).save_certificate(tmp_path / "audit.json")


def test_a_plot_marks_the_claim_and_bounds_the_truth() -> None:
    # δ(ε) of Laplace noise on one number is 1 − e^((ε − 1)/2).
    axes = check("query(l1, 1) | laplace(1)", epsilon="0.5", delta="1e-3").plot().axes[0]
    lines = {re.split(r",|:| \(", line.get_label())[0]: line.get_xydata() for line in axes.get_lines()}
    assert lines["claimed"].tolist() == [[0.5, 1e-3]]
    bounds = [(delta, -math.expm1((epsilon - 1) / 2)) for epsilon, delta in lines["upper bound"]]
    assert all(delta >= true * (1 - 1e-6) for delta, true in bounds)
    tight = [delta for delta, true in bounds if delta == pytest.approx(true, rel=1e-6)]
    assert len([delta for delta in tight if f"{delta:.3g}" in {"1e-12", "2e-05", "0.001", "0.05", "0.2"}]) == 5
    seen = [(epsilon, delta) for epsilon, delta in lines["worst known pair"] if 0 < epsilon < 0.9]
    assert len(seen) > 100
    for epsilon, delta in seen:
        assert delta == pytest.approx(-math.expm1((epsilon - 1) / 2), rel=1e-2)


def test_a_plot_at_delta_0_and_without_a_profile() -> None:
    assert check("encode | laplace(1)", epsilon=1, dim=2).plot().axes
    assert check("category(2) | flip(0.5)", epsilon=0).plot().axes
    with pytest.raises(InputError, match="only the verdict on a pipeline"):
        dpassay.audit(noisy, [(0.0, 1.0)], epsilon=1, runs=2000).plot()


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        refuted().plot()


def test_the_class_has_no_bounds_of_its_own():
    with pytest.raises(AttributeError, match="least_delta is known of a verdict, not of Verdict"):
        _ = Verdict.least_delta


def test_repairs_are_searched_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object) -> tuple[Repair, ...]:
        searched.append(1)
        return (Repair("Do it."),)

    searched: list[int] = []
    monkeypatch.setattr("dpassay.claims.judge.find_repairs", search)
    verdict = check("clip(l2, 1) | laplace(2)", epsilon=1, dim=4)
    assert (str(verdict), searched) == (f"REFUTED: {verdict.reason}", [])
    assert [str(repair) for repair in verdict.repairs] == ["Do it."]
    assert verdict.repairs is verdict.repairs
    assert searched == [1]


def test_what_is_computed_later_is_compared_by_its_value() -> None:
    verdict, again = refuted(), refuted()
    assert again == verdict
    assert again.repairs == verdict.repairs
    assert again.advice == Advice(verdict.holds, verdict.repairs, verdict.warnings)
    assert hash(again.advice.holds) == hash(verdict.holds)
    assert verdict.advice != Advice()
