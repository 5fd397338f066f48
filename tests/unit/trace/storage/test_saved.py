"""A saved trace replays: the same finding arises again, and a file alone runs nothing."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiers
from dpassay.errors import InputError, MechanismError
from dpassay.trace.session import trace
from dpassay.trace.storage import verifying
from dpassay.trace.storage.saved import load_trace
from dpassay.trace.storage.verifying import replay_trace


def too_little(x: Any, rng: Any) -> Any:
    return np.asarray(x) + rng.laplace(scale=0.25, size=2)


def enough(x: Any, rng: Any) -> Any:
    return np.asarray(x) + rng.laplace(scale=2.0, size=2)


def its_own(x: Any) -> Any:
    return np.asarray(x) + np.random.laplace(scale=0.25, size=2)


def lets_nan_through(x: Any, rng: Any) -> Any:
    return np.clip(x, -1.0, 1.0) + rng.laplace(scale=4.0, size=2)


def refuses_nan(x: Any, rng: Any) -> Any:
    return np.clip(np.nan_to_num(x), -1.0, 1.0) + rng.laplace(scale=4.0, size=2)


def keeps_odd_words(text: str, rng: Any) -> str:
    known = ["a", "flight", "to", "rome", "paris"]
    return " ".join(known[rng.integers(5)] if word in known else word for word in text.split())


def shared(x: Any, rng: Any) -> Any:
    return np.asarray(x) + rng.laplace(scale=4.0)


def fixed_seed(x: Any, rng: Any) -> Any:
    return np.asarray(x) + np.random.default_rng(1).laplace(scale=4.0, size=2)


PAIR = [((0.0, 1.0), (1.0, 1.0))]


def saved(subject: Any, folder: Path, **options: Any) -> Path:
    path = folder / "trace.json"
    trace(subject, **{"pairs": PAIR, "epsilon": 1, "save": path, **options})
    return path


def test_the_file_has_all_that_the_trace_showed(tmp_path: Path) -> None:
    data = json.loads(saved(too_little, tmp_path, seed=3).read_text())
    assert data["schema"] == "dpassay/trace/3"
    assert (data["verdict"], data["seed"], data["epsilon"]) == ("refuted", 3, "1")
    assert data["pair"] == [[0.0, 1.0], [1.0, 1.0]]
    assert data["forms"] == ["tuple", "tuple"]
    assert data["subject"]["type"].endswith("test_saved.too_little")
    assert {"dpassay", "Python", "numpy"} <= set(data["versions"])
    assert data["findings"][0]["rule"] == "loss-too-large"
    assert data["findings"][0]["line"] == too_little.__code__.co_firstlineno + 1
    assert data["draws"][0]["distribution"] == "laplace"
    assert data["traced_epsilon"] == pytest.approx([4.0, 4.0])
    assert data["pair_epsilon"] == [data["count"]["epsilon"], "inf"]
    assert load_trace(tmp_path / "trace.json").two == PAIR[0]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("subject", [too_little, enough])
def test_the_same_code_shows_the_same(subject: Any, tmp_path: Path) -> None:
    found = replay_trace(saved(subject, tmp_path), subject, seed=5)
    assert found.ok
    follows, recorded, fresh = found.established
    assert follows.endswith(", which were not made again")
    assert "with the recorded seed 0" in recorded
    assert "with the fresh seed 5" in fresh


@pytest.mark.long
def test_what_rests_on_hostile_inputs_is_counted_again(tmp_path: Path) -> None:
    path = saved(lets_nan_through, tmp_path, neighbours="any")
    record = load_trace(path)
    assert (record.verdict, record.findings[0].rule, record.neighbours) == ("refuted", "not-finite", "any")
    assert math.isnan(record.two[1][0])
    assert replay_trace(path, lets_nan_through, seed=5).ok
    words = tmp_path / "words.json"
    trace(keeps_odd_words, pairs=[("a flight to rome", "a flight to paris")], epsilon=1, save=words)
    assert load_trace(words).findings[0].rule == "odd-word-kept"
    assert replay_trace(words, keeps_odd_words, seed=5).ok


@pytest.mark.parametrize(
    ("before", "after"),
    [(too_little, enough), (enough, too_little), (lets_nan_through, refuses_nan), (shared, fixed_seed)],
)
@pytest.mark.long(every=2)
def test_code_that_has_changed_does_not_hold(
    before: Any, after: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"neighbours": "any"} if before is lets_nan_through else {}
    path = saved(before, tmp_path, **options)
    monkeypatch.setattr(after, "__qualname__", before.__qualname__)
    found = replay_trace(path, after, seed=5)
    assert not found.ok
    assert len(found.failures) == 2


def test_another_loss_does_not_hold(tmp_path: Path) -> None:
    path = saved(too_little, tmp_path)
    data = json.loads(path.read_text())
    assert data["traced_epsilon"] == pytest.approx([4.0, 4.0])
    path.write_text(json.dumps({**data, "traced_epsilon": [1.9, 1.9]}))
    found = replay_trace(path, too_little, seed=5)
    assert "where 1.9 is recorded" in found.failures[0]
    assert "where 1.9 to 1.9 is recorded" in found.failures[1]


def test_a_bound_with_a_delta_is_saved_and_holds(tmp_path: Path) -> None:
    path = saved(enough, tmp_path, delta=0.1, hostile=False)
    record = load_trace(path)
    # E(ε) = 1 − exp((ε − t)/2) for a shift of t = 1/2 scales in one coordinate
    assert record.pair_epsilon[1] == pytest.approx(0.5 + 2 * math.log(0.9), rel=1e-5)
    assert "at δ = 0.1, apart from" in record.reason
    assert replay_trace(path, enough, seed=5).ok


def test_a_refutation_is_given_its_time_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be slower now, and may have had longer then."""
    path = saved(too_little, tmp_path, hostile=False, time="6s")
    given = []

    def kept(tracer: Any, asked: Any) -> Any:
        given.append(asked.seconds)
        return traced(tracer, asked)

    traced = verifying.traced
    monkeypatch.setattr(verifying, "traced", kept)
    assert load_trace(path).seconds == 6
    assert replay_trace(path, too_little, seed=5).ok
    assert given == [60]


def test_randomness_of_its_own_is_named(tmp_path: Path) -> None:
    found = replay_trace(saved(its_own, tmp_path), its_own, seed=5)
    assert found.ok
    assert found.established[-1] == "the code uses its own random source"


def test_a_file_starts_nothing_by_itself(tmp_path: Path) -> None:
    path = saved(too_little, tmp_path)
    with pytest.raises(InputError, match="verify never starts code that a file names"):
        replay_trace(path)
    with pytest.raises(InputError, match="of something else"):
        replay_trace(path, enough)
    with pytest.raises(InputError, match="the recorded seed"):
        replay_trace(path, too_little, seed=0)
    with pytest.raises(InputError, match="already exists"):
        trace(too_little, pairs=PAIR, epsilon=1, save=path)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "dpassay/trace/9"}, "its schema is not"),
        ({"verdict": "proven"}, "is damaged: verdict"),
        ({"pair": [1]}, "is damaged: pair"),
        ({"more": 1}, "is damaged: more"),
        ({"runs": "9"}, "is damaged: runs"),
        ({"hostile": 1}, "is damaged: hostile"),
        ({"pairs": [[0.0, 1.0], [0.0, 1.0]]}, "equal inputs cannot be distinguished"),
        ({"inputs": [1.0, 2.0]}, "it must have either inputs or pairs"),
        ({"neighbours": "word"}, "neighbors are two texts"),
        ({"verdict": "open"}, "so the claim is not open"),
        ({"pair_epsilon": [1.9, "inf"]}, "the lower end for its pair is 1.9"),
        ({"pair_epsilon": [1.9, 2.0]}, "the lower end for its pair is 1.9"),
        ({"reason": "ε ≥ 50"}, "its reason is not what its counts show"),
        ({"apart_from": 0.001}, "leave out a probability of 1, not 0.001"),
        ({"alpha": 0.5}, "its error probability is 0.5"),
        ({"count": None}, "its counts show epsilon 0, so the claim is not refuted"),
    ],
)
def test_damaged_files_are_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = saved(too_little, tmp_path, hostile=False)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=said):
        load_trace(path)
    path.write_text("{")
    with pytest.raises(InputError, match="cut off"):
        load_trace(path)


def test_counts_are_computed_again(tmp_path: Path) -> None:
    path = saved(too_little, tmp_path, hostile=False)
    data = json.loads(path.read_text())
    (_, b), n = data["count"]["hits"], data["count"]["runs"][0]
    for change in ({"hits": [n, 0]}, {"runs": [n, 10 * n]}, {"alpha": 0.1}, {"epsilon": 3.0}, {"hits": [n + 1, b]}):
        path.write_text(json.dumps({**data, "count": {**data["count"], **change}}))
        with pytest.raises(InputError, match="its counts"):
            load_trace(path)


def every_leaf(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if entries is None:
        yield path
    else:
        for key, one in entries:
            yield from every_leaf(one, (*path, key))


def changed(data: Any, path: tuple[Any, ...]) -> Any:
    """The same with another value at one leaf."""
    if path:
        copied = dict(data) if isinstance(data, dict) else list(data)
        copied[path[0]] = changed(data[path[0]], path[1:])
        return copied
    if isinstance(data, bool) or data is None:
        return not data
    return data + 1 if isinstance(data, int | float) else f"{data}1" if data[-1:].isdigit() else f"{data}x"


@pytest.mark.long(every=2)
@pytest.mark.parametrize("subject", [too_little, enough])
def test_no_change_of_a_leaf_goes_unnoticed(subject: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked may be changed if the same comes of it, and what depends on the time; other versions are named;
    all else is refused.
    """
    path = saved(subject, tmp_path, hostile=False)
    data, known = json.loads(path.read_text()), dict[str, Any]()
    asked = ("epsilon", "delta", "neighbours", "seed", "inputs", "pairs", "given_forms", "hostile", "tried")
    asked += ("seconds", "verdict")

    def once(function: Any, parts: tuple[str, ...]) -> Any:
        def remembered(record: Any, *rest: Any) -> Any:
            key = repr([function.__name__, [getattr(record, name) for name in parts]])
            if key not in known:
                known[key] = function(record, *rest)
            return known[key]

        return remembered

    monkeypatch.setattr(verifying, "_repeated", once(verifying._repeated, asked))
    of_pair = ("epsilon", "delta", "pair", "forms", "findings")
    monkeypatch.setattr(verifying, "_pair_again", once(verifying._pair_again, of_pair))
    assert replay_trace(path, subject, seed=5).ok
    leaves = list(every_leaf(data))
    assert len(leaves) > 35
    unnoticed = []
    for leaf in leaves[:: 1 if tiers.in_full else 4]:
        other = changed(data, leaf)
        path.write_text(json.dumps(other))
        try:
            found = replay_trace(path, subject, seed=5)
        except (InputError, MechanismError):
            continue
        told = leaf[0] == "versions" and "recorded with other versions, which is not checked" in str(found.established)
        if found.ok and not told and json.dumps(other) != json.dumps(data):  # NaN and one is NaN
            unnoticed.append(leaf)
    # What is asked: the same comes of other inputs behind a clip and of no hostile input, and an exact loss does not
    # depend on the seed.
    asked_otherwise = {"seed", "epsilon", "delta", "pairs", "runs", "hostile", "seconds"}
    if subject is too_little:
        assert set(unnoticed) <= {("seed",), ("runs",), ("replays",), ("hostile",), ("seconds",), ("count", "first")}
    else:
        assert {leaf[0] for leaf in unnoticed} <= {*asked_otherwise, "reason"}


def test_nothing_may_be_missing_or_there_twice(tmp_path: Path) -> None:
    path = saved(too_little, tmp_path, hostile=False)
    text = path.read_text()
    data = json.loads(text)
    for name in data.keys() - {"seconds", "left_out"}:  # which files did not have at first
        path.write_text(json.dumps({key: one for key, one in data.items() if key != name}))
        with pytest.raises(InputError, match=f"is damaged: {name}|its schema is not"):
            load_trace(path)
    for name in data["findings"][0]:
        finding = {key: one for key, one in data["findings"][0].items() if key != name}
        path.write_text(json.dumps({**data, "findings": [finding]}))
        with pytest.raises(InputError, match=f"is damaged: findings.0.{name}"):
            load_trace(path)
    path.write_text(text.replace('"seed": 0', '"seed": 1, "seed": 0'))
    with pytest.raises(InputError, match="'seed' is given twice"):
        load_trace(path)
