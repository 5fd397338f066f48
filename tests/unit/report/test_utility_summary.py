"""Utility against the true ε: one picture of all rewriters, and from where on each is useful."""

import math

from dpassay.report.utility_summary import in_words, summary_figure, useful_from, utility_of
from dpassay.text.measurements import Estimate, MeasuredRow, Stated


def row(name: str, true: float, low: float, mean: float, metric: str = "accuracy_original") -> MeasuredRow:
    held = Stated(epsilon=true, true_epsilon=true, delta=0.0, neighbours="any")
    return MeasuredRow(name, name, held, 1, 100, {metric: Estimate(mean, low, 1.0)})


REFERENCES = [
    MeasuredRow("original", "original", None, 1, 100, {"accuracy_original": Estimate(0.9)}),
    MeasuredRow("commonest", "commonest", None, 1, 100, {"accuracy_original": Estimate(0.5)}),
]
ROWS = [
    *REFERENCES,
    row("good", 1000, 0.8, 0.85),
    row("good", 10, 0.4, 0.5),
    row("good", 100, 0.71, 0.75),  # the middle is 0.7
    row("uncertain", 100, 0.69, 0.8),
    row("odd", 10, 0.8, 0.9),
    row("odd", 100, 0.5, 0.6),
    row("no epsilon", math.inf, 0.9, 0.9),
]


def test_useful_is_above_the_middle_there_and_at_all_larger_epsilons() -> None:
    assert useful_from(ROWS) == {"good": 100, "uncertain": None, "odd": None}
    assert "good: 100; uncertain: none; odd: none" in in_words(ROWS)
    assert useful_from(ROWS[1:]) == {}
    assert in_words(ROWS[1:]) == ""


def test_without_an_interval_the_mean_decides_and_the_sentence_says_so() -> None:
    held = Stated(epsilon=10.0, true_epsilon=10.0, delta=0.0, neighbours="any")
    few = MeasuredRow("few", "few", held, 3, 100, {"accuracy_original": Estimate(0.75)})
    assert "its mean accuracy, with too few seeds for an interval, is above" in in_words([*REFERENCES, few])
    assert "the lower end of its accuracy is above" in in_words(ROWS)


def test_the_encoder_comes_first_and_shares_the_commonest_label() -> None:
    rows = [*REFERENCES, row("good", 10, 0.65, 0.7, "encoder_original")]
    rows[0] = MeasuredRow("original", "original", None, 1, 100, {"encoder_original": Estimate(0.7)})
    assert utility_of(rows)[0] == "encoder_original"
    assert useful_from(rows) == {"good": 10}  # the middle of 0.5 and 0.7


def test_the_picture_has_every_rewriter_that_has_an_epsilon_and_is_the_same_each_time() -> None:
    drawn = summary_figure(ROWS, "svg")
    assert drawn == summary_figure(ROWS, "svg")
    for name in ("good", "uncertain", "odd", "original text", "commonest label", "true ε for one text"):
        assert name.encode() in drawn
    assert b"no epsilon" not in drawn
    assert summary_figure(ROWS[:2], "png").startswith(b"\x89PNG")
    assert summary_figure([], "pdf").startswith(b"%PDF")
