"""What users, entities, groups and several words mean for a verdict, from formulas."""

import json
import math
from pathlib import Path

import pytest

import dpassay
from dpassay import check
from dpassay.audit.inputs.checks import why_not_neighbours
from dpassay.audit.inputs.data_sets import why_not_records
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from forging import rechained


def epsilon(pipeline: str, neighbours: str, dim: int = 4) -> float:
    verdict = check(pipeline, epsilon=1, neighbours=neighbours, dim=dim)
    assert verdict.epsilon.upper == pytest.approx(verdict.epsilon.lower, rel=1e-7)
    return verdict.epsilon.upper


@pytest.mark.parametrize("unit", ["user", "entity", "user-entity", "add-remove-record", "group(1)"])
def test_a_user_is_a_record_that_is_clipped_as_a_whole(unit: str) -> None:
    assert epsilon("clip(l1, 3) | laplace(2)", unit) == pytest.approx(3 / 2)


@pytest.mark.parametrize(
    ("pipeline", "one"),
    [
        ("clip(l1, 1) | laplace(2)", 1 / 2),
        ("clip(l2, 1) | laplace(2)", 1),  # the diagonal of 4 dimensions
        ("clamp(-1, 3) | laplace(2)", 4 * 3 / 2),
        ("onehot(4) | laplace(2)", 1 / 2),
        ("query(l1, 1) | laplace(2)", 1 / 2),
        ("clip(linf, 1) | clip(l1, 2) | laplace(2)", 1),
    ],
)
def test_a_group_moves_a_sum_as_often_as_it_has_members(pipeline: str, one: float) -> None:
    for size in (1, 2, 5):
        assert epsilon(pipeline, f"group({size})") == pytest.approx(size * one, rel=1e-6)


def test_a_group_in_gaussian_noise_is_a_larger_distance() -> None:
    # μ = k·C/σ; exact δ at ε = 1.
    verdict = check("clip(l2, 1) | gaussian(4)", epsilon=1, delta=1e-5, neighbours="group(3)", dim=4)
    mu = 3 / 4
    tails = [0.5 * math.erfc(-z / math.sqrt(2)) for z in (mu / 2 - 1 / mu, -mu / 2 - 1 / mu)]
    assert verdict.delta.lower == pytest.approx(tails[0] - math.e * tails[1], rel=1e-9)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_monotone_scores_of_a_group_add_up(norm: str) -> None:
    # Each record is 1-DP on its own, so n of them are n-DP; n records that all raise one score attain it.
    for size in (1, 2, 3):
        found = epsilon(f"query({norm}, 1, monotone) | exponential(1)", f"group({size})")
        assert found == pytest.approx(size)
    # Scores that move in any way may move twice as far apart.
    assert epsilon("query(linf, 1) | exponential(1)", "group(2)") == pytest.approx(4)


# Element-level DP: one element moves by at most its range; a stage that mixes elements moves them all.
@pytest.mark.parametrize(
    ("pipeline", "truth"),
    [
        ("rows | clamp(0, 1) | laplace(20)", 0.05),
        ("rows | squash(tanh) | laplace(20)", 0.1),
        (
            "rows | minmax | laplace(20)",
            768 / 20,
        ),  # (2, 1, ..., 1) and (0, 1, ..., 1) become (1, 0, ...) and (0, 1, ...)
        ("rows | laplace(20)", math.inf),
    ],
)
def test_one_element_changes(pipeline: str, truth: float) -> None:
    assert epsilon(pipeline, "element", dim=768) == pytest.approx(truth)
    assert epsilon(pipeline, "element", dim=768) == epsilon(pipeline, "replace-record", dim=768)


@pytest.mark.parametrize(
    "pipeline", ["encode | minmax | laplace(20)", "clamp(0, 1) | laplace(1)", "query(l1, 1) | laplace(1)"]
)
def test_elements_of_a_text_do_not_change_one_at_a_time(pipeline: str) -> None:
    with pytest.raises(InputError, match="begins with rows, which states that elements change one at a time"):
        check(pipeline, epsilon=1, neighbours="element", dim=4)


def test_certificates_for_one_element(tmp_path: Path) -> None:
    path = tmp_path / "element.json"
    dpassay.save(check("rows | clamp(0, 1) | laplace(20)", epsilon="0.05", neighbours="element", dim=768), path)
    assert dpassay.verify(path).ok
    # A record is also replaced where no rows are stated, but an element is not.
    dpassay.save(check("clamp(0, 1) | laplace(1)", epsilon="4", neighbours="replace-record", dim=4), path)
    assert dpassay.verify(path).ok
    forged = json.loads(path.read_text())
    forged["steps"][0]["neighbours"] = "element"
    with pytest.raises(dpassay.CertificateError, match="begins with rows"):
        dpassay.verify(rechained(forged))


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ([1.0, 2.0, 3.0], [1.0, 5.0, 3.0], ""),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "they differ in 3 elements"),
        ([1.0, 2.0], [2.0, 1.0], "they differ in 2 elements"),
        ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [5.0, 6.0]], "they differ in 2 elements"),
        ([1.0, 2.0], [1.0], "they have different sizes"),
        ("fly to rome", "fly to oslo", "neighbors are two vectors, and these are not"),
    ],
)
def test_the_place_of_an_element_counts(x: list[float], y: list[float], why: str) -> None:
    assert why_not_records(x, y, Neighbours("element")).startswith(why)
    assert bool(why_not_records(x, y, Neighbours("element"))) == bool(why)
    assert why_not_neighbours(x, y, Neighbours("element")).startswith(why)  # before an audit of code


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_dropout_must_leave_out_all_words_that_differ(unit: str) -> None:
    for count in (1, 2, 6):
        found = epsilon("dropout(0.5) | encode | minmax | laplace(1)", f"{unit}({count})", dim=3)
        assert found == pytest.approx(math.log((1 - 0.5**count) * math.exp(3) + 0.5**count))


def test_what_rows_do_not_speak_of_is_refused() -> None:
    with pytest.raises(InputError, match="begins with rows"):
        check("rows | clamp(0, 1) | laplace(1)", epsilon=1, neighbours="group(2)", dim=3)
