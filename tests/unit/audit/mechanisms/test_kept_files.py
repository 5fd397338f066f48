"""Answers that a mechanism keeps in files and databases: no verdict rests on runs that repeat them."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import dpassay
from dpassay.audit.storage.replay import replay
from dpassay.errors import InputError


def in_json(folder):
    path = folder / "answers.json"

    def noisy(x, rng):
        known = json.loads(path.read_text()) if path.exists() else {}
        if str(x) not in known:
            path.write_text(json.dumps({**known, str(x): x + rng.laplace()}))
        return json.loads(path.read_text())[str(x)]

    return noisy


def beside_others(folder):
    """Only a part of the output is kept."""
    kept = in_json(folder)
    return lambda x, rng: {"kept": kept(x, rng), "new": rng.random()}


class Connection(sqlite3.Connection):
    """What libraries that wrap SQLite connect with."""


def in_a_database(place, kind=sqlite3.Connection):
    database = sqlite3.connect(place, factory=kind)
    database.execute("CREATE TABLE answers (x, y)")

    def noisy(x, rng):
        known = database.execute("SELECT y FROM answers WHERE x = ?", (x,)).fetchone()
        if known is None:
            known = (x + rng.laplace(),)
            database.execute("INSERT INTO answers VALUES (?, ?)", (x, *known))
            database.commit()
        return known[0]

    return noisy


def in_a_database_opened_each_time(folder):
    path = folder / "opened.db"
    sqlite3.connect(path).execute("CREATE TABLE answers (x, y)").connection.close()

    def noisy(x, rng):
        database = sqlite3.connect(path)
        known = database.execute("SELECT y FROM answers WHERE x = ?", (x,)).fetchone()
        if known is None:
            known = (x + rng.laplace(),)
            database.execute("INSERT INTO answers VALUES (?, ?)", (x, *known))
            database.commit()
        database.close()
        return known[0]

    return noisy


KEPT = {
    "json": in_json,
    "json, beside others": beside_others,
    "database": lambda folder: in_a_database(folder / "answers.db"),
    "database in memory": lambda folder: in_a_database(":memory:"),
    "database of a wrapping library": lambda folder: in_a_database(":memory:", Connection),
    "database opened each time": in_a_database_opened_each_time,
}


@pytest.mark.parametrize("kind", KEPT)
def test_a_mechanism_that_reads_its_answers_back_is_not_refuted(kind, tmp_path):
    """Laplace noise of scale 1, drawn once for each input: exactly 1-DP. The kept answers differ with probability 1."""
    with pytest.raises(InputError, match="which earlier calls wrote"):
        dpassay.audit(KEPT[kind](tmp_path), [(0.0, 1.0)], epsilon=1, runs=400, alpha=0.05)


def seeded_from_a_file(folder):
    path = folder / "seed"
    path.write_text("0")

    def noisy(x):
        seed = int(path.read_text()) + 1
        path.write_text(str(seed))
        return x + np.random.default_rng(seed).laplace(scale=0.25)

    return noisy


def logged(folder):
    def noisy(x, rng):
        with (folder / "log").open("a") as log:
            log.write("called\n")
        return x + rng.laplace(scale=0.25)

    return noisy


def logged_in_a_database(folder):
    database = sqlite3.connect(folder / "log.db")
    database.execute("CREATE TABLE log (x)")

    def noisy(x, rng):
        database.execute("INSERT INTO log VALUES (?)", (x,))
        return x + rng.laplace(scale=0.25)

    return noisy


def of_this_code(folder):
    return lambda x, rng: x + rng.laplace(scale=0.25) * bool(Path(__file__).read_text())


@pytest.mark.parametrize("make", [seeded_from_a_file, logged, logged_in_a_database, of_this_code])
def test_what_every_call_writes_or_none_did_is_no_answer(make, tmp_path):
    """Noise of a quarter of the scale has ε = 4."""
    assert dpassay.audit(make(tmp_path), [(0.0, 1.0)], epsilon=1, runs=4_000, until_refuted=True).refuted


def test_a_saved_audit_is_not_verified_by_answers_that_are_read_back(tmp_path):
    """The file was made with another program of the same name, which keeps nothing and is wrong."""

    def program(kept):
        def noisy(x, rng):
            return kept(x, rng) if kept else x + rng.laplace(scale=0.1)

        return noisy

    saved = tmp_path / "audit.json"
    assert dpassay.audit(program(None), [(0.0, 1.0)], epsilon=1, runs=2_000, until_refuted=True, save=saved).refuted
    with pytest.raises(InputError, match="which earlier calls wrote"):
        replay(saved, program(in_a_file_without_noise(tmp_path)), seed=1)


def in_a_file_without_noise(folder):
    """Gives each input back, from a file: as likely as any other two answers, and told apart at once."""
    path = folder / "kept.json"

    def kept(x, rng):
        known = json.loads(path.read_text()) if path.exists() else {}
        if str(x) not in known:
            path.write_text(json.dumps({**known, str(x): x}))
        return json.loads(path.read_text())[str(x)]

    return kept
