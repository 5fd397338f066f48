"""Saved traces that were changed: what still verifies as refuted is true of the pair that the file states.

Every leaf of the files is changed in several ways, and a sample of these is verified. The true loss of each program
is a formula in the pair and in δ. A trace refutes a claim that holds with probability at most α = 0.001, and seeds are
fixed.
"""

import json
import math
import random

import numpy as np
import pytest

import dpassay
from dpassay.errors import DpassayError
from dpassay.trace.storage.verifying import replay_trace
from mutations import WORDS, places, put


def laplace_loss(distance, scale, delta):
    """The least ε for δ: E(ε) = 1 − exp((ε − t)/2) below t = distance/scale."""
    return max(0.0, distance / scale + 2 * math.log1p(-delta))


def response_loss(kept, delta):
    """A fair answer is kept with this probability: E(ε) = kept − e^ε (1 − kept)."""
    return max(0.0, math.log((kept - delta) / (1 - kept))) if delta < kept else 0.0


def all_or_nothing(x, y, delta):
    return math.inf if x != y and delta < 1 else 0.0


def narrow(x, rng):
    return x + rng.laplace(scale=0.5)


def fitting(x, rng):
    return x + rng.laplace(scale=1)


def rounded(x, rng):
    return round(x + rng.laplace(scale=0.25), 3)


def answer(x, rng):
    return x if rng.random() < 0.9 else 1 - x


def cards(x):
    deck = ["truth", "truth", "lie"]
    random.shuffle(deck)
    return x if deck[0] == "truth" else 1 - x


def plain(x):
    return x


def shared(x, rng):
    z = rng.laplace(scale=4.0)
    return [x + z, z]


def remainder(x, rng):
    return f"{x + rng.laplace(scale=1):.2f} of {x}"


def twice(x, rng):
    return [x + rng.laplace(scale=2), x + rng.laplace(scale=2)]


def doubled(x, rng):
    return 2 * x + rng.laplace(scale=1)


def bit(x):
    return x if random.random() < 0.75 else 1 - x


def shifted(x, rng):
    return x + rng.laplace(scale=1) - 3


def distance_over(scale):
    return lambda x, y, delta: laplace_loss(abs(x - y), scale, delta)


def kept(share):
    return lambda x, y, delta: response_loss(share, delta) if {x, y} == {0, 1} else 0.0 if x == y else math.nan


PROGRAMS = [  # what is traced, its pair, the claim, and the true loss of any pair; nan where no formula is known
    (narrow, (0.0, 1.0), 1, distance_over(0.5)),
    (answer, (0, 1), 1, kept(0.9)),
    (plain, (0, 1), 2, all_or_nothing),
    (fitting, (0.0, 1.0), 1, distance_over(1.0)),
    (cards, (0, 1), 0.5, kept(2 / 3)),
    (shared, (0.0, 1.0), 1, all_or_nothing),
    (cards, (0, 1), 1, kept(2 / 3)),
    (remainder, (0.0, 1.0), 1, all_or_nothing),
    (twice, (0.0, 3.0), 1, distance_over(1.0)),
    (twice, (0.0, 1.0), 1, distance_over(1.0)),
    (doubled, (0.0, 1.0), 1, distance_over(0.5)),
    (doubled, (0.0, 0.5), 1, distance_over(0.5)),
    (rounded, (0.0, 1.0), 2, distance_over(0.25)),
    (bit, (0, 1), 1, kept(0.75)),
    (bit, (1, 0), 1.2, kept(0.75)),
    (shifted, (2.0, 5.0), 2, distance_over(1.0)),
    (shifted, (2.0, 3.0), 2, distance_over(1.0)),
    (narrow, (0.0, 0.25), 1, distance_over(0.5)),
    (answer, (1, 0), 2.5, kept(0.9)),
    (plain, (3, 4), 5, all_or_nothing),
]
MUTANTS = 300
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    found = []
    for k, (program, pair, epsilon, _) in enumerate(PROGRAMS):
        path = folder / f"{k}.json"
        dpassay.trace(program, pairs=[pair], epsilon=epsilon, seed=k, hostile=False, save=path)
        found.append(json.loads(path.read_text()))
    return found


def changes(name, value):
    """What to put in place of a leaf."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        numbers = [0, 1, 2 * value, value / 2, -value, value + 1, value - 1, 0.15]
        yield from (int(one) if isinstance(value, int) else float(one) for one in numbers)
    elif name in ("epsilon", "delta"):
        yield from ("0", "0.15", "0.6", "1", "2", "4", "30")
    elif name in WORDS:
        yield from WORDS[name].split()
    elif isinstance(value, str):
        yield from ("", f"{value} ", "x + y")
    else:
        yield from (None, [], 0)


def mutants(which, data):
    for path, value in places(data):
        if path and not isinstance(value, dict) and (not isinstance(value, list) or not value):
            yield from ((which, path, put(data, path, new)) for new in changes(path[-1], value) if new != value)
    for epsilon in ("0.1", "0.5", "3", "30"):  # a verdict that goes with another claim
        for verdict in ("refuted", "open"):
            yield which, ("claim", epsilon), put(put(data, ("epsilon",), epsilon), ("verdict",), verdict)
    for moved in ([0, 0.01], [0, 100], [1, 0]):  # another pair, wherever it stands
        yield which, ("pair", moved), put(put(data, ("pair",), moved), ("pairs",), moved)


def harm(which, data, path):
    """Why a file that verifies states something false; empty if it does not verify, or states nothing false."""
    path.write_text(json.dumps(data))
    program, _, _, loss = PROGRAMS[which]
    try:
        found = replay_trace(path, program, seed=77)
    except DpassayError:
        return ""
    if not found.ok:
        return ""
    x, y = data["pair"]
    epsilon, delta = float(data["epsilon"]), float(data["delta"])
    least = loss(x, y, delta)
    if found.verdict == "refuted" and least <= epsilon:
        return f"refuted, though {least:.6g} is the loss between {x} and {y}, and {epsilon} is claimed"
    return f"{found.verdict}, which a trace cannot say" if found.verdict not in ("refuted", "open") else ""


def test_the_files_verify_and_state_the_truth(saved, tmp_path):
    for k, data in enumerate(saved):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(data))
        again = replay_trace(path, PROGRAMS[k][0], seed=77)
        assert again.ok, (PROGRAMS[k][0].__name__, again.failures)
        assert not harm(k, data, path)


def test_no_changed_trace_verifies_and_is_false(saved, tmp_path):
    found = [one for k, data in enumerate(saved) for one in mutants(k, data)]
    order = np.random.default_rng(1).permutation(len(found))[:MUTANTS]
    asked = [found[k] for k in order]
    harmful = [(which, where, why) for which, where, data in asked if (why := harm(which, data, tmp_path / "t.json"))]
    assert not harmful
