"""What rewritten text is good for, with rewriters whose behaviour is known."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="classifiers need torch: pip install 'dpassay[text]'")
pytest.importorskip("sacrebleu", reason="BLEU is computed by sacrebleu: pip install 'dpassay[text]'")

from dpassay.compute.workers import make_executor
from dpassay.errors import InputError, MechanismError
from dpassay.report.utility import cells_of, notes_of
from dpassay.text import metrics
from dpassay.text import utility as module
from dpassay.text.corpora.flights import flights
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.measurements import ACCURACIES, GuessedTexts, MeasuredRow, Measurement, Stated, load, rows_of, save
from dpassay.text.models import classifier
from dpassay.text.planning import plan
from dpassay.text.utility import Bench, UtilityOptions, measure

RESPONSE, LIKELY, COPY, BLANK, UNBOUNDED = (
    f"sample_rewriters:{name}" for name in ("Response", "Likely", "copy", "blank", "Unbounded")
)
TEXTS = flights(120, seed=3)
TRAIN, TEST = TEXTS[:80], TEXTS[80:]
QUICK = UtilityOptions(encoder=None, candidates=10, guesses=40)
BENCH = Bench.of(TRAIN, TEST, QUICK)


@pytest.fixture(scope="module", autouse=True)
def _few_steps() -> Iterator[None]:
    """Classifiers that learn for a shorter time: which, is another file's business."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(classifier, "STEPS", 15)
        yield


def measured(
    *rewriters: str, bench: Bench = BENCH, seeds: Any = (0,), done: Any = (), **asked: Any
) -> list[Measurement]:
    return list(measure(bench, plan(rewriters, **asked)[0], seeds, done=done))


@pytest.fixture(scope="module")
def at_the_ends() -> dict[str, MeasuredRow]:
    return {row.label: row for row in rows_of(measured(COPY, BLANK))}


# Which rewriters, at which ε.


def test_claimed_and_true_epsilon_stand_side_by_side() -> None:
    found, notes = plan([RESPONSE], epsilons=(4.0, 1.0), true_epsilons=(24.0,))
    held = [one.guarantee for one in found]
    assert [(one.epsilon, one.true_epsilon, one.holds) for one in held if one] == [
        (1.0, 12.0, False),
        (pytest.approx(2.0), pytest.approx(24.0), False),
        (4.0, 48.0, False),
    ]
    assert {one.neighbours for one in held if one} == {"words(12)"}
    assert not notes


def test_true_epsilons_are_the_default_and_a_rewriter_asked_for_twice_is_there_once() -> None:
    found, _ = plan([RESPONSE, RESPONSE])
    assert [one.guarantee.true_epsilon for one in found if one.guarantee] == pytest.approx([10, 100, 1000])
    both, _ = plan([LIKELY + ",longest=1"], epsilons=(3.0,), true_epsilons=(3.0,))
    assert len(both) == 1


def test_a_rewriter_that_has_no_epsilon_or_a_fixed_one_is_there_once() -> None:
    found, _ = plan([COPY, BLANK], epsilons=(1.0, 2.0), true_epsilons=(5.0,))
    assert [(one.rewriter, one.epsilon) for one in found] == [(COPY, None), (BLANK, None)]
    assert [one.guarantee.true_epsilon for one in found if one.guarantee] == [math.inf, 0.0]


def test_where_no_finite_epsilon_holds_that_of_the_authors_is_measured() -> None:
    found, notes = plan([UNBOUNDED, RESPONSE], epsilons=(1.0, 2.0), true_epsilons=(24.0,))
    assert [one.true for one in found if one.rewriter == UNBOUNDED] == [False, False]
    assert len(notes) == 1
    assert f"{UNBOUNDED} satisfies no finite epsilon" in notes[0]
    with pytest.raises(InputError, match="satisfies no finite epsilon, so it is compared at the epsilon of"):
        plan([UNBOUNDED], true_epsilons=(24.0,))


def test_a_true_epsilon_for_which_no_parameter_is_found_is_left_out_and_said() -> None:
    limited = "sample_rewriters:Limited"
    found, notes = plan([limited, RESPONSE], epsilons=(1.0,), true_epsilons=(24.0, 600.0))
    kept: dict[str, list[float]] = {limited: [], RESPONSE: []}
    for one in found:
        kept[one.rewriter].append(one.guarantee.true_epsilon if one.guarantee else math.nan)
    assert kept == {limited: pytest.approx([12, 24]), RESPONSE: pytest.approx([12, 24, 600])}
    assert len(notes) == 1
    assert notes[0].startswith(f"no parameter of {limited} was found with a true epsilon of 600 (")
    assert notes[0].endswith("; left out")


@pytest.mark.parametrize(
    ("rewriters", "asked", "message"),
    [
        ([], {}, "name one rewriter or more"),
        ([RESPONSE], {"epsilons": (0.0,)}, "epsilon must be a number above 0, got 0"),
        ([RESPONSE], {"true_epsilons": (math.inf,)}, "epsilon must be a number above 0, got inf"),
        ([RESPONSE + ",longst=3"], {}, "there is no setting 'longst'"),
        (["sample_rewriters:Respons"], {}, "close names: Response"),
        (["adpt"], {}, "did you mean 'adept'"),
    ],
)
def test_bad_rewriters_are_refused_before_any_work(rewriters: list[str], asked: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(rewriters, **asked)


# What is measured.


def test_of_copied_text_nothing_is_lost(at_the_ends: dict[str, MeasuredRow]) -> None:
    copy, original = at_the_ends["copy"], at_the_ends["original"]
    for row in (copy, original):
        assert [row.mean(name) for name in ("bleu", "chrf", "unchanged", "words_kept", "length")] == [100, 100, 1, 1, 1]
        assert row.estimates["accuracy_original"] == row.estimates["accuracy_rewritten"]
        assert row.mean("accuracy_original") == original.mean("accuracy_original")
    assert copy.mean("attack") == 1
    assert copy.guesses is not None
    assert copy.guesses.bound is None
    assert original.guesses is None


def test_of_blank_texts_nothing_is_left_but_the_commonest_label(at_the_ends: dict[str, MeasuredRow]) -> None:
    blank, floor = at_the_ends["blank"], at_the_ends["commonest"]
    (label, most), (_, second) = Counter(u.label for u in TRAIN).most_common(2)
    assert most > second
    assert floor.mean("accuracy_original") == sum(u.label == label for u in TEST) / len(TEST)
    assert blank.estimates["accuracy_original"] == floor.estimates["accuracy_original"]
    assert [blank.mean(name) for name in ("bleu", "chrf", "unchanged", "words_kept", "length")] == [0, 0, 0, 0, 0]
    assert blank.guesses is not None
    assert blank.guesses.bound == pytest.approx(1 / blank.guesses.candidates)  # what ε = 0 allows
    assert "bleu" not in floor.estimates


def test_more_is_learned_from_the_text_than_from_noise(at_the_ends: dict[str, MeasuredRow]) -> None:
    low = at_the_ends["original"].estimates["accuracy_original"].low
    floor = at_the_ends["commonest"].mean("accuracy_original")
    assert low is not None
    assert floor is not None
    assert low > floor


def test_what_is_learned_from_the_original_text_is_tested_on_it(at_the_ends: dict[str, MeasuredRow]) -> None:
    rows, words = classifier.bag_of_words([u.text for u in TRAIN])
    learned = classifier.fit(rows, [u.label for u in TRAIN])
    asked, _ = classifier.bag_of_words([u.text for u in TEST], words)
    assert at_the_ends["original"].mean("accuracy_original") == learned.accuracy(asked, [u.label for u in TEST])


def test_an_encoder_adds_a_classifier_and_the_similarity(monkeypatch: pytest.MonkeyPatch) -> None:
    class Letters:
        name, dim, forgotten = "letters", 26, 0

        def forget(self) -> None:
            self.forgotten += 1

        def encode(self, texts: Any) -> np.ndarray:
            return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], dtype=float)

    letters: Any = Letters()
    monkeypatch.setattr(module, "_loaded", lambda name: letters)
    bench = Bench.of(TRAIN, TEST, UtilityOptions(encoder="letters", candidates=0))
    original, _, blank, response = rows_of(measured(BLANK, RESPONSE, bench=bench, epsilons=(1.0,)))
    assert letters.forgotten == 3  # once for each that has texts
    assert original.mean("similarity") == pytest.approx(1)
    assert blank.mean("similarity") == 0
    assert response.guesses is None
    rows = letters.encode([u.text for u in TRAIN])
    learned = classifier.fit(rows, [u.label for u in TRAIN])
    wanted = learned.accuracy(letters.encode([u.text for u in TEST]), [u.label for u in TEST])
    assert original.mean("encoder_original") == original.mean("encoder_rewritten") == wanted
    new = [text for _, text in response.examples]
    assert len(new) == 3
    assert set(response.estimates) >= set(ACCURACIES)


def test_perplexity_is_measured_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "perplexity", lambda texts: 7.0 if any(texts) else None)
    bench = Bench.of(TRAIN, TEST, UtilityOptions(encoder=None, candidates=0, perplexity=True))
    original, _, blank = rows_of(measured(BLANK, bench=bench))
    assert original.mean("perplexity") == 7
    assert "perplexity" not in blank.estimates


def test_the_attack_is_exact_where_there_is_a_likelihood_and_the_bound_is_for_texts_of_one_length() -> None:
    equal = [u for u in flights(400, seed=5) if len(u.text.split()) == 10]
    bench = Bench.of(TRAIN, equal, QUICK)
    assert len(bench.candidates) == 10
    *_, exact = measured(LIKELY, bench=bench, epsilons=(1.0,))
    *_, learned = measured(RESPONSE, bench=bench, epsilons=(1.0,))
    assert exact.guesses
    assert learned.guesses
    assert (exact.guesses.how, learned.guesses.how) == ("exact", "learnt")
    assert exact.guesses.runs == 40
    assert exact.guesses.bound == learned.guesses.bound == pytest.approx(math.exp(12) / (math.exp(12) + 9))
    *_, short = measured(LIKELY + ",longest=9", bench=bench, epsilons=(1.0,))  # the texts are longer than it covers
    assert short.guesses
    assert short.guesses.bound is None


@pytest.mark.long
def test_a_cell_is_the_same_whichever_others_are_measured_and_whoever_does_it() -> None:
    asked: Any = {"epsilons": (1.0, 3.0)}
    together = {one.key: one for one in measured(RESPONSE, COPY, seeds=(0, 1), **asked)}
    alone = measured(RESPONSE, epsilons=(3.0,), seeds=(1,))
    assert together[alone[-1].key] == alone[-1]
    assert len({json.dumps(one.scores) for one in together.values() if one.rewriter == RESPONSE}) == 4
    executor = make_executor(workers=2)
    try:
        subjects, _ = plan([RESPONSE, COPY], **asked, executor=executor)
        shared = list(measure(BENCH, subjects, (0, 1), executor))
    finally:
        executor.close()
    counted = ("scores", "guesses", "examples", "identity")  # the workers' classifiers learn for a longer time
    for one in shared:
        assert all(getattr(one, name) == getattr(together[one.key], name) for name in counted)


def test_finished_cells_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measured(RESPONSE, epsilons=(1.0, 3.0))
    monkeypatch.setattr(module, "_compared", None)
    told: list[tuple[int, int, str]] = []
    subjects, _ = plan([RESPONSE], epsilons=(1.0, 3.0))
    again = measure(BENCH, subjects, done=whole, progress=lambda *now: told.append(now))
    assert list(again) == whole
    assert told[-2:] == [(3, 4, f"{RESPONSE}, ε = 1"), (4, 4, "done")]  # what was finished last


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([Utterance("fly", "a"), Utterance("go")], TEST, "1 of the 2 utterances of the training corpus have"),
        ([Utterance("fly", "a"), Utterance("go", "a")], TEST, "has one label only, 'a'"),
        (TRAIN, [Utterance("fly")], "the test corpus have no label"),
        (TRAIN, [], "the test corpus has no utterances"),
    ],
)
def test_bad_texts_are_refused(train: Any, test: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Bench.of(train, test, QUICK)


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="2 candidates or more and 1 guess or more"):
        UtilityOptions(candidates=1)
    with pytest.raises(InputError, match="seeds are whole numbers of 0 or more"):
        measure(BENCH, [], seeds=(-1,))


# Rows over seeds, and on file.


def one_of(seed: int, right: int, bleu: float, **more: Any) -> Measurement:
    held = Stated(epsilon=1.0, true_epsilon=math.inf, delta=0.0, neighbours="any")
    guesses = GuessedTexts(right=3 + seed, runs=10, candidates=5, how="learnt")
    about: Any = {"rewriter": "tem", "identity": "x", "guarantee": held, "guesses": guesses, **more}
    counts: Any = {"accuracy_original": right}
    return Measurement(**about, seed=seed, utterances=100, right=counts, scores={"bleu": bleu})


def test_one_seed_has_clopper_and_pearson_s_intervals_where_something_is_counted() -> None:
    (row,) = rows_of([one_of(0, 70, 12.5)])
    interval = stats.binomtest(70, 100).proportion_ci(0.95, "exact")
    found = row.estimates["accuracy_original"]
    assert (found.mean, found.low, found.high) == pytest.approx((0.7, interval.low, interval.high))
    interval = stats.binomtest(3, 10).proportion_ci(0.95, "exact")
    assert (row.estimates["attack"].low, row.estimates["attack"].high) == pytest.approx((interval.low, interval.high))
    assert (row.estimates["bleu"].mean, row.estimates["bleu"].low) == (12.5, None)


def test_several_seeds_have_student_s_interval_for_everything() -> None:
    right, bleu = [70, 74, 75, 71, 72], [12.0, 15.0, 13.0, 14.0, 12.5]
    (row,) = rows_of([one_of(seed, *both) for seed, both in enumerate(zip(right, bleu, strict=True))])
    assert row.seeds == 5
    for name, numbers in (
        ("accuracy_original", [n / 100 for n in right]),
        ("bleu", bleu),
        ("attack", [0.3, 0.4, 0.5, 0.6, 0.7]),
    ):
        low, high = stats.t.interval(0.95, 4, np.mean(numbers), stats.sem(numbers))
        found = row.estimates[name]
        assert (found.mean, found.low, found.high) == pytest.approx((np.mean(numbers), low, high))
    wide = [one_of(seed, 90 * (seed % 2), 100.0 * (seed % 2)) for seed in range(5)]
    (row,) = rows_of(wide)  # no share is below 0 or above 1
    assert (row.estimates["accuracy_original"].low, row.estimates["bleu"].low) == (0, 0)
    sure = [one_of(seed, 100 - 30 * (seed == 0), 100.0) for seed in range(5)]
    (row,) = rows_of(sure)
    shown = cells_of([row])[1]
    assert "94+6−17" in shown  # 94 ± 16.7 would be above 100


@pytest.mark.parametrize("right", [0, 1, 37, 63, 99, 100])
def test_a_shown_interval_contains_the_interval_and_stays_within_0_and_100(right: int) -> None:
    (row,) = rows_of([one_of(0, right, 12.0)])
    cell = cells_of([row])[1][cells_of([row])[0].index("words o")]
    mean, above, *below = map(int, re.split("[±+−]", cell))
    low, high = stats.binomtest(right, 100).proportion_ci(0.95, "exact")
    assert 0 <= mean - (below or [above])[0] <= 100 * low
    assert 100 * high <= mean + above <= 100


def test_two_to_four_seeds_have_a_warning_and_no_interval() -> None:
    rows = rows_of([one_of(0, 10, 0.0), one_of(1, 90, 100.0)])
    estimates = rows[0].estimates.values()
    assert all(one.low is None and one.high is None for one in estimates)
    assert "Warning: 2 seeds are too few for an interval; take one, or at least 5." in notes_of(rows)
    rows = rows_of([one_of(seed, 50, 0.0) for seed in range(5)])
    assert "Warning" not in notes_of(rows)


def test_a_file_gives_back_its_measurements_and_refuses_another_question(tmp_path: Path) -> None:
    path, asked = tmp_path / "x.json", BENCH.question()
    found = [*measured(COPY, RESPONSE, epsilons=(1.0,)), one_of(0, 70, 12.0)]
    save(path, asked, found)
    assert load(path, asked) == found
    for other, name in (
        (Bench.of(TRAIN[1:], TEST, QUICK), "train"),
        (Bench.of(TRAIN, TEST, UtilityOptions(encoder="minilm", candidates=10, guesses=40)), "encoder"),
        (Bench.of(TRAIN, TEST, UtilityOptions(encoder=None, candidates=10, guesses=41)), "guesses"),
    ):
        with pytest.raises(InputError, match=f"is another measurement: it differs in {name}"):
            load(path, other.question())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"utterances": 1}, "more right guesses than utterances"),
        ({"utterances": 10**400}, "utterances: "),
        ({"right": {"accuracy_original": -1}}, "accuracy_original: .*greater than or equal to 0"),
        ({"right": {"accuracy": 1}}, "right.accuracy"),
        ({"scores": {"bleu": "high"}}, "bleu: .*valid number"),
        ({"scores": {"bleu": math.inf}}, "bleu: .*less than or equal"),
        ({"scores": {"bleu": math.nan}}, "bleu: "),
        ({"guarantee": None}, "'tem' has no guarantee"),
        ({"more": 1}, "more: .*not permitted"),
    ],
)
def test_damaged_files_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    save(path, {}, [one_of(0, 70, 12.0)])
    data = json.loads(path.read_text())
    data["measurements"][0] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message):
        load(path, {})
    for text in ("{", "[]", '{"schema": "dpassay/audit/1"}'):
        path.write_text(text)
        with pytest.raises(InputError, match="is not a measurement's file"):
            load(path, {})


def test_a_rewriter_that_fails_is_to_blame() -> None:
    with pytest.raises(
        MechanismError, match="sample_rewriters:Failing, ε = 1 failed: ZeroDivisionError: no noise left"
    ):
        measured("sample_rewriters:Failing", epsilons=(1.0,))
