"""What a mechanism offers beside its outputs: log_prob(output, x) and encode(x, output)."""

import math
import shlex
import sys
import zlib
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.combined.encoded import Encoded
from dpassay.audit.mechanisms.mechanism_hints import offered
from dpassay.audit.mechanisms.seeding import seed_all
from dpassay.audit.mechanisms.targets import as_mechanism, load_python
from dpassay.audit.outputs.outputs import read
from dpassay.audit.remote.distributed import pack, run_batch
from dpassay.audit.remote.programs import Program
from dpassay.audit.storage.checkpoint import load
from dpassay.audit.storage.replay import replay
from dpassay.audit.testing.decision_rule import Hypothesis
from dpassay.audit.testing.experiment import Experiment, GameState
from dpassay.audit.testing.sequential import Task, anytime, run_by_input
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import Failure


@dataclass(frozen=True)
class Hashing:
    """Optimal local hashing (Wang et al. 2017): of e^ε + 1 buckets the right one has odds e^ε against each other."""

    epsilon: float

    @property
    def buckets(self):
        return round(math.exp(self.epsilon)) + 1

    def hashed(self, seed, x):
        return zlib.crc32(f"{seed} {x}".encode()) % self.buckets

    def drawn(self, x, rng):
        seed = int(rng.integers(2**32))
        others = self.buckets - 1
        kept = rng.random() < math.exp(self.epsilon) / (math.exp(self.epsilon) + others)
        return seed, (self.hashed(seed, x) + (0 if kept else int(rng.integers(1, others + 1)))) % self.buckets

    def __call__(self, x, rng):
        seed, bucket = self.drawn(x, rng)
        return {"seed": seed, "bucket": bucket}


class Encoding(Hashing):
    def encode(self, x, output):
        return self.hashed(output["seed"], x)


class InATuple(Hashing):
    def __call__(self, x, rng):
        return self.drawn(x, rng)

    def encode(self, x, output):
        return self.hashed(output[0], x)


class Whole(Hashing):
    """The encoder gives what the output would be without noise."""

    def encode(self, x, output):
        return {"seed": output["seed"], "bucket": self.hashed(output["seed"], x)}


class Likely(Hashing):
    def log_prob(self, output, x):
        return 0.0 if self.hashed(output["seed"], x) == output["bucket"] else -self.epsilon


class LikelyTheOtherWayRound(Likely):
    def log_prob(self, x, output):
        return super().log_prob(output, x)


class InAnArray(Hashing):
    """Batches of rows; seeds come as floats."""

    def sample(self, x, n, rng):
        return np.array([self.drawn(x, rng) for _ in range(n)])

    def encode(self, x, output):
        return self.hashed(int(output[0]), x)


KINDS = [Encoding, InATuple, Whole, InAnArray, Likely, LikelyTheOtherWayRound]
refuting = partial(audit, epsilon=1, until_refuted=True, shrink=False)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_local_hashing_of_epsilon_3_is_not_1(kind):
    """A guesser written by hand takes 320 runs, 256 of them to learn from."""
    taken = []
    for seed in range(5):
        verdict = refuting(kind(3), [(3, 4)], seed=seed)
        assert verdict.word == "refuted"
        taken.append(verdict.runs)
    assert np.median(taken) <= 450


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", [Encoding, Likely], ids=lambda kind: kind.__name__)
def test_local_hashing_that_keeps_its_promise_stays_open(kind):
    verdict = audit(kind(1), [(3, 4)], epsilon=1.01, alpha=1e-7, runs=8_000)
    assert verdict.word == "open"
    assert verdict.epsilon.lower <= 1.01  # but for a probability of 1e-7
    assert verdict.epsilon.lower > 0.5


def test_one_of_many_values_is_named():
    verdict = refuting(Encoding(3), candidates=list(range(6)))
    assert verdict.word == "refuted"
    assert "encode(x, output)" in verdict.witness.event


def test_the_witness_says_what_was_asked():
    event = refuting(Encoding(3), [(3, 4)]).witness.event
    assert 'the agreement of output["bucket"] with encode(x, output)' in event
    assert "the mechanism's own log_prob" in refuting(Likely(3), [(3, 4)]).witness.event


def test_a_pair_is_shrunk_also_where_the_mechanism_was_asked():
    verdict = audit(Encoding(3), [("fly to Rome", "fly to Oslo")], epsilon=1, until_refuted=True)
    assert sorted(verdict.witness.inputs) == ["Oslo", "Rome"]


# ── Codes that are noisy numbers ────────────────────────────────────────────────────────────────


class Sketch:
    """A public direction, and the input's component along it with Laplace noise: 1/scale times the length it has."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, rng):
        seed = int(rng.integers(2**32))
        return {"seed": seed, "value": self.encode(x, {"seed": seed}) + rng.laplace(scale=self.scale)}

    def encode(self, x, output):
        return float(np.random.default_rng(output["seed"]).choice([-1.0, 1.0], 4) @ x)


class Bloom:
    """Eight public bits of which a value sets one; a set bit stays with probability 1/2, others appear with q."""

    def __init__(self, q):
        self.q = q

    def __call__(self, x, rng):
        cohort = int(rng.integers(1000))
        ones = np.array(self.encode(x, {"cohort": cohort}), dtype=bool)
        return {"cohort": cohort, "bits": (rng.random(8) < np.where(ones, 0.5, self.q)).astype(int).tolist()}

    def encode(self, x, output):
        place = zlib.crc32(f"{output['cohort']} {x}".encode()) % 8
        return [int(i == place) for i in range(8)]


def test_codes_may_be_numbers_that_get_noise():
    # In half of the directions the two inputs are 4 apart: their loss there is 4/scale.
    x, y = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]
    assert refuting(Sketch(1.0), [(x, y)], runs=5_000).word == "refuted"


def test_codes_may_be_bits():
    # The loss of optimized unary encoding is ln((1 − q)/q): 3 here.
    q = 1 / (1 + math.exp(3))
    assert refuting(Bloom(q), [("a", "b")], runs=5_000).word == "refuted"


# ── What is an offer ────────────────────────────────────────────────────────────────────────────


class Rewriter:
    """Methods of the same names that are something else."""

    def sample(self, x, n, rng):
        return [x] * n

    def encode(self, text, batch_size=32):
        raise AssertionError("it was not meant")

    def log_prob(self, value):
        raise AssertionError("nor was this")


def plain(x, rng):
    return {"seed": 0, "bucket": x}


def test_other_methods_of_these_names_are_left_alone():
    assert offered(as_mechanism(Rewriter()), (0, 1)) == ()
    assert audit(Rewriter(), [(0, 1)], epsilon=1).word == "refuted"


def test_a_method_that_does_not_say_which_parameter_is_the_output_is_named():
    class Unsaid(Hashing):
        def log_prob(self, y, x):
            raise AssertionError("it was not meant")

    warnings = audit(Unsaid(3), [(3, 4)], epsilon=1, runs=500).advice.warnings
    assert any(said.startswith("log_prob(y, x) of the mechanism was not used") for said in warnings)


def test_offers_are_found_wherever_the_mechanism_came_from(tmp_path, monkeypatch):
    (tmp_path / "offering.py").write_text(
        "class Client:\n"
        "    def privatise(self, x, rng):\n        return x\n"
        "    def encode(self, x, output):\n        return x\n"
        "def report(x, rng):\n    return x\n"
        "report.log_prob = lambda output, x: -abs(output - x)\n"
    )
    monkeypatch.chdir(tmp_path)
    kinds = {path: [d.kind for d in offered(load_python(path), (0, 1))] for path in ("offering:Client.privatise",)}
    assert kinds == {"offering:Client.privatise": ["Encoded"]}
    assert [d.kind for d in offered(seed_all(load_python("offering:report")), (0, 1))] == ["OwnLikelihood"]
    assert offered(as_mechanism(plain), (0, 1)) == ()


class Elsewhere(Program):
    """A program in Python's hands."""

    def encode(self, x, output):
        return zlib.crc32(f"{output['seed']} {x}".encode()) % 21


def test_a_program_may_have_an_encoder_in_python(tmp_path):
    (tmp_path / "hashing.py").write_text(
        "import json, random, sys, zlib\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    rng = random.Random(request['seed'])\n"
        "    outputs = []\n"
        "    for _ in range(request['n']):\n"
        "        seed, moved = rng.getrandbits(32), 0 if rng.random() < 0.5 else rng.randrange(1, 21)\n"
        "        code = zlib.crc32(f'{seed} {request[\"input\"]}'.encode()) % 21\n"
        "        outputs.append({'seed': seed, 'bucket': (code + moved) % 21})\n"
        "    print(json.dumps({'outputs': outputs}), flush=True)\n"
    )
    subject = Elsewhere(shlex.join([sys.executable, str(tmp_path / "hashing.py")]))
    assert refuting(subject, [("yes", "no")]).runs < 1_000


def test_what_fails_is_named():
    class Fails(Likely):
        def log_prob(self, output, x):
            raise KeyError("seeds")

    class Many(Likely):
        def log_prob(self, output, x):
            return [0.0, 0.0]

    with pytest.raises(MechanismError, match="log_prob of the mechanism raised KeyError: 'seeds', for the output"):
        audit(Fails(3), [(3, 4)], epsilon=1)
    with pytest.raises(MechanismError, match="must give one number for one output, but gave "):
        audit(Many(3), [(3, 4)], epsilon=1)


def test_runs_that_failed_are_not_asked_about():
    encoding, likely = (offered(kind(3), (3, 4))[0] for kind in (Encoding, Likely))
    outputs = read([{"seed": 5, "bucket": 1}, Failure("ValueError")])
    assert math.isnan(likely.score(outputs)[1])
    assert Encoded(encoding.encoder, (('output["bucket"]', "output"),)).score(outputs)[1] == 0


def test_a_wrong_likelihood_refutes_nothing_and_hides_nothing():
    class Wrong(Hashing):
        def __call__(self, x, rng):
            return float(x + rng.laplace(scale=1 / self.epsilon))

        def log_prob(self, output, x):
            return abs(output - x) * 100.0

    assert audit(Wrong(1), [(0.0, 1.0)], epsilon=1, alpha=1e-7, runs=5_000).word == "open"
    assert refuting(Wrong(2), [(0.0, 1.0)], runs=5_000).word == "refuted"


def test_outputs_that_no_input_gives_say_nothing():
    class Impossible(Likely):
        def log_prob(self, output, x):
            return -math.inf if output == 0 else 0.0 if output == x else -math.inf

    (found,) = offered(Impossible(1), (1, 2))
    scores = found.score(read([0, 1, 2]))
    assert math.isnan(scores[0])
    assert scores[1:].tolist() == [-math.inf, math.inf]


def test_entries_of_a_row_are_compared_one_by_one():
    """A public number that is often the code by chance is told from the code."""
    (offer,) = offered(InATuple(3), (3, 4))
    rng = np.random.default_rng(1)
    sides = tuple(
        read([(int(rng.integers(3)), b) for _ in range(200) for b in (int(rng.integers(3)),)]) for _ in (3, 4)
    )
    found = list(Encoded.fit(TrainingSet(sides, (3, 4), offered=(offer,))))
    assert {path for one in found for path, _ in one.compared} <= {"output", "output[0]", "output[1]"}
    assert {"output[0]", "output[1]"} <= {path for one in found for path, _ in one.compared}


# ── Files and workers ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [Encoding, Likely], ids=lambda kind: kind.__name__)
def test_saved_audits_are_replayed_and_resumed_with_what_the_mechanism_offers(kind, tmp_path):
    path = tmp_path / "hashing.json"
    first = audit(kind(3), [(3, 4)], epsilon=1, save=path, until_refuted=True)
    assert (
        load(path).main.epochs[0].rule.guesser["kind"]
        == {"Encoding": "Encoded", "Likely": "OwnLikelihood"}[kind.__name__]
    )
    assert replay(path, kind(3), seed=1).ok
    again = audit(kind(3), [(3, 4)], epsilon=1, save=path, until_refuted=True, resume=True)
    assert (again.word, again.runs) == (first.word, first.runs)


def test_workers_ask_the_mechanism_that_they_have():
    mechanism = load_python("test_mechanism_hints:HASHING")
    experiment = Experiment(mechanism, (3, 4), Hypothesis(1.0), 0)
    game = GameState(kept=[[], []])
    next(anytime(experiment, game, 1_000, None))
    current = game.rounds[0]
    (counted,) = run_batch(pack(experiment, current, (Task(0, 0, 16, 0),))).counts
    assert counted == run_by_input(experiment, current, Task(0, 0, 16, 0), [])


HASHING = Encoding(3)
