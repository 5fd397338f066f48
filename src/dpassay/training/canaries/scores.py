"""Canaries of training runs: which were in the training data, and how much each run seems to have learned about them.

A canary is in or out by its own fair coin. Its score is anything that tends to be higher when it was in: minus its
loss, or the product of the trained weights with its own direction.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpassay.core.files import write_whole
from dpassay.errors import InputError, MechanismError

Progress = Callable[[int, int, str], None]

COLUMNS = {
    "score": ("score", "scores"),
    "included": ("included", "in", "member", "is_in"),
    "run": ("run", "runs"),
}
MOST_CANARIES = 10**7
_YES_NO = {"1": True, "0": False, "true": True, "false": False, "in": True, "out": False, "yes": True, "no": False}
_FAR = 5.0  # standard deviations that the number of canaries in the data may be from a half


@dataclass(frozen=True)
class CanaryScores:
    """The score of every canary of every run, whether it was in, and which run it was.

    >>> scores = CanaryScores([2.5, 0.1, -0.3, 1.9], [True, False, False, True])
    >>> scores.canaries, scores.runs
    (4, 1)
    """

    score: NDArray[np.float64]
    included: NDArray[np.bool_]
    run: NDArray[np.int64]

    def __init__(self, score: ArrayLike, included: ArrayLike, run: ArrayLike | None = None) -> None:
        scores = _numbers(score)
        coins, runs = _coins(included), np.zeros(len(scores), dtype=np.int64) if run is None else _runs(run)
        if not len(scores) == len(coins) == len(runs):
            lengths = f"{len(scores)} scores, {len(coins)} of `included` and {len(runs)} of `run`"
            raise InputError(f"every canary has a score, whether it was included, and its run; got {lengths}")
        if not 2 <= len(scores) <= MOST_CANARIES:
            raise InputError(f"an audit needs from 2 to {MOST_CANARIES:,} canaries, got {len(scores):,}")
        for name, value in (("score", scores), ("included", coins), ("run", runs)):
            object.__setattr__(self, name, value)

    @property
    def canaries(self) -> int:
        """How many there are, in all runs."""
        return len(self.score)

    @property
    def runs(self) -> int:
        """How many training runs there were."""
        return len(np.unique(self.run))

    @property
    def unfair(self) -> bool:
        """Whether the number of included canaries is implausible for fair coins."""
        n = self.canaries
        return abs(int(self.included.sum()) - n / 2) > _FAR * 0.5 * math.sqrt(n)

    def of_run(self, run: int) -> CanaryScores:
        """The canaries of one run."""
        own = self.run == run
        return CanaryScores(self.score[own], self.included[own], self.run[own])

    def by_score(self) -> NDArray[np.bool_]:
        """Whether each canary was in, the highest score first; for several runs by the fraction of the run above it.

        Equal scores are put in a random order, the same for the same data. A file may list the included canaries first,
        so its order must reveal nothing: docs/proofs/one-run.md.

        >>> CanaryScores([2.5, 0.1, -0.3, 1.9], [True, False, True, True]).by_score().tolist()
        [True, True, False, True]
        """
        seed = zlib.crc32(self.score.tobytes() + self.included.tobytes())
        drawn = np.random.default_rng(seed).permutation(self.canaries)
        place = np.empty(self.canaries)
        for run in np.unique(self.run):
            own = drawn[self.run[drawn] == run]
            order = np.argsort(-self.score[own], kind="stable")
            place[own[order]] = (np.arange(len(own)) + 0.5) / len(own)
        return self.included[drawn[np.argsort(place[drawn], kind="stable")]]


def _numbers(score: ArrayLike) -> NDArray[np.float64]:
    try:
        scores = np.asarray(score, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the scores of canaries must be numbers") from None
    if scores.ndim != 1:
        raise InputError(f"the scores of canaries must be one number each, got an array of shape {scores.shape}")
    if np.isnan(scores).any():
        raise InputError(f"the score of canary {int(np.flatnonzero(np.isnan(scores))[0])} is not a number (NaN)")
    return scores


def _coins(included: ArrayLike) -> NDArray[np.bool_]:
    coins = np.asarray(included)
    if coins.ndim != 1 or not (coins.dtype == bool or np.isin(coins, (0, 1)).all()):
        raise InputError("whether a canary was included must be true or false, 1 or 0")
    return coins.astype(bool)


def _runs(run: ArrayLike) -> NDArray[np.int64]:
    runs = np.asarray(run)
    if runs.ndim != 1 or runs.dtype.kind not in "iu":
        raise InputError("the run of a canary must be a whole number")
    return runs.astype(np.int64)


def read_scores(path: str | Path) -> CanaryScores:
    """The canaries of a .csv file with a header, a .jsonl or an .npz file: score, included (1 or 0) and perhaps run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_scores(CanaryScores([1.5, -0.5], [True, False]), f"{folder}/scores.csv")
    ...     read_scores(f"{folder}/scores.csv").score.tolist()
    [1.5, -0.5]
    """
    path = Path(path)
    readers = {".csv": _from_csv, ".jsonl": _from_jsonl, ".npz": _from_npz}
    if path.suffix.lower() not in readers:
        raise InputError(f"cannot tell how to read {path.name!r}: canary scores are a .csv, .jsonl or .npz file")
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    return readers[path.suffix.lower()](path)


def write_scores(scores: CanaryScores, path: str | Path) -> None:
    """Write a .csv file that `read_scores` reads, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "included", "score"])
    rows = zip(scores.run.tolist(), scores.included.tolist(), scores.score.tolist(), strict=True)
    writer.writerows((run, int(included), repr(score)) for run, included, score in rows)
    write_whole(Path(path), text.getvalue())


def _from_csv(path: Path) -> CanaryScores:
    lines = csv.DictReader(io.StringIO(_text(path)))
    return _from_rows(path, lines.fieldnames or (), enumerate(lines, start=2))


def _from_jsonl(path: Path) -> CanaryScores:
    rows: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f'{path}, line {number}, is not a JSON object such as {{"score": 1.5, "included": true}}')
        rows.append((number, row))
    return _from_rows(path, rows[0][1] if rows else (), rows)


def _from_rows(path: Path, names: Iterable[str], rows: Iterable[tuple[int, Mapping[str, Any]]]) -> CanaryScores:
    known = {role: _column(names, role) for role in COLUMNS}
    if not list(names):
        raise InputError(f"{path} is empty: it needs a line for each canary, with score and included")
    for role in ("score", "included"):
        if known[role] is None:
            raise InputError(
                f"{path} has no column {role!r} (or {', '.join(COLUMNS[role][1:])}): {', '.join(names) or 'none'}"
            )
    found: dict[str, list[Any]] = {role: [] for role in COLUMNS}
    for number, row in rows:
        try:
            found["score"].append(float(row[str(known["score"])]))
            found["included"].append(_YES_NO[str(row[str(known["included"])]).strip().lower()])
            found["run"].append(0 if known["run"] is None else int(row[known["run"]]))
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}, line {number}: a canary has a number `score`, `included` (1 or 0) and perhaps a whole "
                "number `run`"
            ) from None
    return CanaryScores(found["score"], found["included"], np.asarray(found["run"], dtype=np.int64))


def _column(names: Iterable[str], role: str) -> str | None:
    return next((name for name in names if str(name).strip().lower() in COLUMNS[role]), None)


def _from_npz(path: Path) -> CanaryScores:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            known = {role: _column(arrays.files, role) for role in COLUMNS}
            found = {role: arrays[name] for role, name in known.items() if name is not None}
    except (OSError, ValueError, zipfile.BadZipFile):
        raise InputError(f"{path} is not an .npz file of plain arrays") from None
    if "score" not in found or "included" not in found:
        raise InputError(f"{path} needs the arrays `score` and `included`")
    return CanaryScores(found["score"], found["included"], found.get("run"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None


def train_with_canaries(
    train: Callable[[NDArray[np.bool_], int], Sequence[float] | NDArray[np.float64]],
    canaries: int,
    runs: int = 1,
    seed: int = 0,
    save: str | Path | None = None,
    progress: Progress | None = None,
) -> CanaryScores:
    """Call `train(included, seed)` once per run, with a fair coin for every canary; it returns a score for each.

    With `save` the scores so far are written after every run, and runs that are already in the file are not repeated.

    >>> def train(included, seed):
    ...     return included + np.random.default_rng(seed).normal(size=len(included))
    >>> train_with_canaries(train, canaries=100, runs=2).canaries
    200
    """
    if canaries < 2 or runs < 1:
        raise InputError(f"an audit needs at least 2 canaries and 1 run, got {canaries} and {runs}")
    done = _saved(save, canaries, runs, seed)
    for run, included, own_seed in _coins_of_runs(canaries, runs, seed):
        if run < len(done):
            continue
        if progress is not None:
            progress(run, runs, f"training run {run + 1}")
        done.append(CanaryScores(_scores_of(train, included, own_seed), included, np.full(canaries, run)))
        if save is not None:
            write_scores(_joined(done), save)
    return _joined(done)


def _coins_of_runs(canaries: int, runs: int, seed: int) -> Iterator[tuple[int, NDArray[np.bool_], int]]:
    for run in range(runs):
        coins = np.random.default_rng([seed, run, 0])
        yield run, coins.random(canaries) < 0.5, int(np.random.default_rng([seed, run, 1]).integers(2**31))


def _saved(save: str | Path | None, canaries: int, runs: int, seed: int) -> list[CanaryScores]:
    if save is None or not Path(save).exists():
        return []
    kept = read_scores(save)
    found = [kept.of_run(int(run)) for run in np.unique(kept.run)]
    for (run, included, _), one in zip(_coins_of_runs(canaries, min(runs, len(found)), seed), found, strict=False):
        if one.canaries != canaries or not np.array_equal(one.included, included):
            raise InputError(f"{save} holds run {run} of other canaries or another seed; give another file")
    return found


def _scores_of(train: Callable[..., Any], included: NDArray[np.bool_], seed: int) -> NDArray[np.float64]:
    try:
        scores = _numbers(train(included.copy(), seed))
    except InputError as error:
        raise MechanismError(f"the training function returned no scores: {error}") from None
    except Exception as error:
        raise MechanismError(f"the training function failed: {type(error).__name__}: {error}") from error
    if len(scores) != len(included):
        raise MechanismError(f"the training function returned {len(scores)} scores for {len(included)} canaries")
    return scores


def _joined(parts: Sequence[CanaryScores]) -> CanaryScores:
    names = ("score", "included", "run")
    return CanaryScores(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
