"""The page of a trace: the sentence first, the line with its neighbours, and nothing that is not escaped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay.report.pages.page import trace_page
from dpassay.report.pages.typeset import sentence
from dpassay.trace.findings.code import code_around
from dpassay.trace.findings.rules import meaning
from dpassay.trace.session import trace

pytestmark = pytest.mark.usefixtures("short_traces")


def shared(x: Any, rng: Any) -> Any:
    vector = np.asarray(x)  # before <b> & "quotes"
    return vector + rng.laplace(scale=2.0)  # the line <script>alert(1)</script>
    # after


def test_the_page_shows_line_pair_draws_and_rule() -> None:
    result = trace(shared, [[1.0, 0.0], [0.0, 1.0]], epsilon=1, name="mine:<i>shared</i>")
    page = trace_page(result, "dpassay trace …")
    line = shared.__code__.co_firstlineno + 2
    assert page.index("<h1>Refuted: mine:") < page.index("REFUTED</b> test_trace_page.py:") < page.index("shared-noise")
    for number, words in (
        (line - 1, "before &lt;b&gt; &amp;"),
        (line, "the line &lt;script&gt;"),
        (line + 1, "# after"),
    ):
        shown = next(one for one in page.splitlines() if words in one)
        assert shown.replace('<b class="refuted">', "").replace("<pre>", "").startswith(f"{number} ")
        assert ("<b " in shown) == (number == line)
    for words in (
        sentence(meaning("shared-noise")),
        "laplace(loc=0.0, scale=2.0)",
        "[1, 0]",
        "one number for all 2 coordinates",
        "∞: the two inputs can be distinguished with certainty",
        "warning: not-finite",
        "mine:&lt;i&gt;shared",
    ):
        assert words in page
    assert page.count("<script") == 1  # the template's own
    assert "<i>" not in page


def test_what_rests_on_runs_says_so_and_open_proves_nothing() -> None:
    def lets_nan_through(x: Any, rng: Any) -> Any:
        return np.clip(x, -1.0, 1.0) + rng.laplace(scale=4.0, size=2)

    inputs = [[1.0, 0.0], [0.0, 1.0]]
    assert "its error probability is 0.002" in trace_page(
        trace(lets_nan_through, inputs, epsilon=1, neighbours="any"), ""
    )
    page = trace_page(trace(lets_nan_through, inputs, epsilon=1, hostile=False), "")
    assert "was neither proven nor refuted.</h1>" in page
    assert "at most 0.5, apart from a probability of at most " in page
    assert "error probability" not in page


def test_code_that_is_gone_is_left_out(tmp_path: Path) -> None:
    assert code_around(str(tmp_path / "gone.py"), 3) == []
    (tmp_path / "short.py").write_text("one\ntwo\n")
    assert code_around(str(tmp_path / "short.py"), 1) == [(1, "one", True), (2, "two", False)]
