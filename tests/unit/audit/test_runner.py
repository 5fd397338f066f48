"""Audits end to end: what they refute, what they do not, how they continue, and what they refuse."""

import json
import math
import time
from contextlib import suppress

import numpy as np
import pytest

from dpassay import Claim, InputError, MechanismError, Open, Refuted, audit, claims
from dpassay.audit.testing.inference import accuracy_bound, p_value
from dpassay.audit.testing.training import learn_rule
from dpassay.evidence.sampled import SampledWitness
from dpassay.pipeline.distributions import Laplace, Shifted
from dpassay.pipeline.regions import Ball, SensitivityBall


def laplace(x, n, rng):
    """ε = 2 between inputs that are 1 apart."""
    return x + rng.laplace(scale=0.5, size=n)


class KnownLaplace:
    def sample(self, x, n, rng):
        return x + rng.laplace(scale=0.5, size=(n, np.size(x)))

    def distribution(self, x):
        return Shifted(Laplace(0.5), np.atleast_1d(np.asarray(x, dtype=float)))


PAIR = [(0.0, 1.0)]


def played(verdict) -> SampledWitness:
    assert isinstance(verdict.witness, SampledWitness)
    return verdict.witness


@pytest.mark.parametrize("mechanism", [laplace, KnownLaplace()], ids=["learnt", "distribution"])
def test_a_wrong_claim_is_refuted_and_a_right_one_is_not(mechanism):
    wrong, right = (audit(mechanism, PAIR, epsilon=e, runs=20_000) for e in (1, 2.2))
    assert isinstance(wrong, Refuted)
    assert 1 < wrong.epsilon.lower <= 2
    assert isinstance(right, Open)
    assert right.epsilon.lower <= 2
    assert "proves nothing" in right.reason
    assert wrong.epsilon.upper == right.epsilon.upper == math.inf


def test_the_same_seed_gives_the_same_counts_and_another_does_not():
    first, again, other = (audit(laplace, PAIR, epsilon=1, seed=s) for s in (1, 1, 2))
    assert (first.runs, first.witness) == (again.runs, again.witness)
    assert (first.runs, played(first).right) != (other.runs, played(other).right)


def test_fixed_runs_give_the_exact_binomial_bound():
    verdict = audit(laplace, PAIR, epsilon=1, runs=40_000, fixed=True, shrink=False)
    game = played(verdict)
    assert verdict.runs == 40_000
    assert verdict.epsilon.lower == accuracy_bound(game.right, game.wrong, 0.001)
    assert p_value(game.right, game.wrong, 1.0) <= 0.001
    assert 1.6 < verdict.epsilon.lower < 2.0


def test_alpha_is_spent_once_and_stated():
    verdict = audit(KnownLaplace(), [(np.zeros(3), np.ones(3))], epsilon=1, alpha=0.01)
    assert verdict.alpha == 0.01
    assert math.fsum(alpha for _, alpha in verdict.ledger) <= 0.01 * (1 + 1e-9)
    assert {what for what, _ in verdict.ledger} >= {
        "the guessing game",
        "the sampler against its distribution",
        "a smaller pair",
    }


def gaussian(x, n, rng):
    return x + rng.normal(size=n)


def test_delta_by_betting():
    # δ(1) = 0.1269 between N(0, 1) and N(1, 1): see docs/proofs/hockey-stick.md
    wrong, right = (audit(gaussian, PAIR, epsilon=1, delta=d, runs=30_000) for d in (0.01, 0.1269367376))
    assert isinstance(wrong, Refuted)
    assert 0.01 <= wrong.delta.lower <= 0.1269367376
    assert wrong.epsilon.lower >= 1
    assert isinstance(right, Open)
    assert right.delta.lower <= 0.1269367376


def test_many_candidates():
    def response(x, n, rng):
        """10-ary response: the truth with probability 0.6."""
        return np.where(rng.random(n) < 0.6, x, rng.integers(0, 10, n))

    keep = 0.6 + 0.04
    true = math.log(keep / 0.04)
    wrong = audit(response, candidates=list(range(10)), epsilon=true - 0.5, runs=30_000)
    right = audit(response, candidates=list(range(10)), epsilon=true + 1e-9, runs=30_000)
    assert isinstance(wrong, Refuted)
    assert isinstance(right, Open)
    assert right.epsilon.lower <= true
    assert "which of 10 inputs" in wrong.reason


def sometimes(kind):
    def mechanism(x, rng):
        """One run in four gives something strange, if the input is 1."""
        if x == 1 and rng.random() < 0.25:
            if kind == "raise":
                raise ValueError("empty")
            return {"nan": math.nan, "none": None, "text": "oops", "list": [1, 2], "inf": math.inf}[kind]
        return float(rng.normal())

    return mechanism


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", ["nan", "none", "text", "list", "inf", "raise"])
def test_outputs_that_only_one_side_gives_are_evidence(kind):
    verdict = audit(sometimes(kind), [(0, 1)], epsilon=3, runs=5_000)
    assert isinstance(verdict, Refuted)
    assert played(verdict).wrong == 0


def test_a_batch_that_raises_is_evidence_without_bias():
    def mechanism(x, n, rng):
        failed = rng.random(n) < (0.05 if x == 0 else 0.05 * math.e)
        if failed.any():
            raise RuntimeError("a run failed")
        return np.zeros(n)

    right = audit(mechanism, [(0, 1)], epsilon=1.0, runs=20_000)
    assert isinstance(right, Open)  # the truth is exactly 1
    wrong = audit(mechanism, [(0, 1)], epsilon=0.3, runs=20_000)
    assert isinstance(wrong, Refuted)


def test_exact_copies_are_evidence():
    def half_kept(x, n, rng):
        """DPText's reading of NaN as zero: half of the coordinates are output unchanged."""
        return x + rng.exponential(size=(n, 4)) * (rng.random((n, 4)) < 0.5)

    verdict = audit(half_kept, [(np.zeros(4), np.ones(4))], epsilon=4, runs=5_000)
    assert isinstance(verdict, Refuted)


def test_the_last_bits_of_floats_count_only_when_asked():
    assert isinstance(audit(laplace, PAIR, epsilon=2.5, runs=20_000, bits=False), Open)
    assert isinstance(audit(laplace, PAIR, epsilon=2.5, runs=20_000, bits=True), Refuted)


def test_bits_of_a_known_law_are_refused():
    with pytest.raises(InputError, match="distribution is unknown"):
        audit(KnownLaplace(), PAIR, epsilon=2.5, bits=True)


@pytest.mark.parametrize("fixed", [False, True])
def test_a_lesson_that_broke_off_is_not_learnt_again_with_the_same_random_numbers(tmp_path, fixed):
    def dying(x, rng):  # the same generator, the same end
        noise = rng.laplace(scale=0.5)
        if noise > 3.3:
            raise MechanismError("it is gone")
        return x + noise

    for seed in range(6):
        options = {"epsilon": 2.5, "runs": 3_000, "save": tmp_path / f"{seed}.json", "fixed": fixed, "seed": seed}
        finished = False
        for attempt in range(60):  # one run in 1,500 dies, and so do many lessons
            with suppress(MechanismError):
                audit(dying, PAIR, **options, resume=attempt > 0)
                finished = True
                break
        assert finished, seed


@pytest.mark.parametrize("outputs", [np.zeros((0, 0)), []], ids=["array", "lists"])
def test_empty_vectors_tell_nothing(outputs):
    def nothing(x, n, rng):
        return np.zeros((n, 0)) if isinstance(outputs, np.ndarray) else [[] for _ in range(n)]

    assert isinstance(audit(nothing, PAIR, epsilon=1, runs=2_000), Open)


def test_texts_that_differ_in_a_word_and_the_smallest_of_them():
    def dropping(text, rng):
        return " ".join(word for word in text.split() if rng.random() < 0.8)

    verdict = audit(dropping, text="book a flight to Rome", epsilon=2)
    assert isinstance(verdict, Refuted)
    first, second = played(verdict).inputs
    assert len(first.split()) == len(second.split()) == 1
    assert verdict.neighbours.kind == "word"


def test_a_pair_is_shrunk_to_the_coordinates_that_matter():
    def first_only(x, n, rng):
        noise = rng.laplace(scale=[0.2, 100, 100, 100], size=(n, 4))
        return x + noise

    verdict = audit(first_only, [(np.zeros(4), np.ones(4))], epsilon=1)
    x, y = played(verdict).inputs
    assert np.flatnonzero(np.asarray(x) != np.asarray(y)).tolist() == [0]


def test_pairs_are_searched_in_a_list_and_in_a_region():
    def step(x, n, rng):
        """Only inputs from 7 on are told from the others."""
        return rng.normal(size=n) + 5 * (np.asarray(x) >= 7)

    verdict = audit(step, inputs=list(range(9)), epsilon=1)
    assert sum(x >= 7 for x in played(verdict).inputs) == 1

    def tail(x, n, rng):
        return np.asarray(x)[-1] + rng.laplace(scale=0.3, size=n)

    for region in (SensitivityBall(math.inf, 1, 5), SensitivityBall(1, 1, 5), Ball(math.inf, 1, 5)):
        assert isinstance(audit(tail, region=region, epsilon=1, runs=50_000, until_refuted=True), Refuted)
    assert isinstance(audit(tail, region="query(linf, 1)", dim=5, epsilon=1, runs=50_000, until_refuted=True), Refuted)


def test_published_claims_and_texts_of_pipelines():
    assert isinstance(audit(claims["adept"], dim=8, runs=20_000), Refuted)
    assert isinstance(audit("clip(l1, 1) | laplace(2/eps)", epsilon=1, dim=4, runs=5_000), Open)


def test_a_sampler_that_is_not_its_law_is_caught_within_1000_draws():
    class OnlyPositive(KnownLaplace):
        def sample(self, x, n, rng):
            return x + np.abs(rng.laplace(scale=0.5, size=(n, np.size(x))))

    verdict = audit(OnlyPositive(), PAIR, epsilon=50, runs=1_000)
    assert any("does not draw from the declared distribution" in warning for warning in verdict.warnings)
    assert verdict.runs <= 1_000
    assert not audit(KnownLaplace(), PAIR, epsilon=50, runs=1_000).warnings


def test_an_own_guesser():
    verdict = audit(laplace, PAIR, epsilon=1, guesser=lambda outputs: [y - 0.5 for y in outputs])
    assert isinstance(verdict, Refuted)
    assert "guesser" in played(verdict).event


def test_out_of_reach_is_said():
    verdict = audit(laplace, PAIR, epsilon=20, runs=1_000, bits=False)
    assert "undetectable with 1,000 runs" in verdict.reason
    # ln(0.001) / ln(p) with p = 1 / (1 + e^-20): docs/proofs/guessing-game.md
    needed = int(verdict.reason.split("at least ")[-1].split(" runs")[0].replace(",", ""))
    assert needed == pytest.approx(math.log(1000) * math.exp(20), rel=1e-3)


class Breaks:
    """Dies after some runs, until it is repaired."""

    def __init__(self, after):
        self.left = after

    def sample(self, x, n, rng):
        self.left -= n
        if self.left < 0:
            raise MechanismError("the program died; it said last 'out of memory'")
        return x + rng.laplace(scale=1.0, size=n)


def test_a_device_that_is_not_there_is_said_on_the_verdict(monkeypatch):
    monkeypatch.setattr("dpassay.compute.devices.has_gpu", lambda: False)
    verdict = audit("laplace(1)", [([0.0], [1.0])], epsilon=1, dim=1, runs=200, device="cuda")
    assert verdict.warnings[0].startswith("there is no CUDA device")


def test_an_audit_that_broke_goes_on_from_its_counts(tmp_path):
    options = {"epsilon": 0.95, "runs": 30_000, "shrink": False, "save": tmp_path / "audit.json"}
    with pytest.raises(
        MechanismError, match=r"it said last 'out of memory'\nUntil then, .* guesses in .* runs were correct"
    ) as caught:
        audit(Breaks(1_000), PAIR, **options)
    assert "resume=True continues" in str(caught.value)
    kept = json.loads((tmp_path / "audit.json").read_text())
    assert kept["verdict"] == "unfinished"
    assert kept["main"]["epochs"][0]["right"] > 0
    resumed = audit(Breaks(10**9), PAIR, **options, resume=True)
    assert resumed.runs <= 30_000
    finished = json.loads((tmp_path / "audit.json").read_text())["main"]["epochs"]
    before = kept["main"]["epochs"]
    assert finished[: len(before) - 1] == before[:-1]
    # The task that broke off is not played again with the same coins.
    assert finished[len(before) - 1]["sizes"][: len(before[-1]["sizes"])] == before[-1]["sizes"]
    assert before[-1]["sizes"][-1] == [0, 1]
    assert any("of these runs come from" in warning for warning in resumed.warnings)


def test_an_audit_that_broke_while_it_learnt_goes_on_from_its_counts(tmp_path, monkeypatch):
    """Between two rounds, while it draws outputs to learn from: every task before is kept."""
    options = {"epsilon": 0.95, "runs": 30_000, "shrink": False, "save": tmp_path / "audit.json"}

    def dies(experiment, *arguments, had=(), **more):
        if had:
            raise MechanismError("the program died")
        return learn_rule(experiment, *arguments, had=had, **more)

    with monkeypatch.context() as patched:
        patched.setattr("dpassay.audit.testing.sequential.learn_rule", dies)
        with pytest.raises(MechanismError, match=r"guesses in .* runs were correct"):
            audit(Breaks(10**9), PAIR, **options)
    before = json.loads((tmp_path / "audit.json").read_text())["main"]["epochs"]
    assert before[-1]["sizes"][-1][0] > 0  # no task broke off
    assert audit(Breaks(10**9), PAIR, **options, resume=True).runs <= 30_000
    after = json.loads((tmp_path / "audit.json").read_text())["main"]["epochs"]
    assert after[: len(before)] == before


def test_an_audit_may_go_on_with_more_runs_later(tmp_path):
    options = {"epsilon": 1.7, "shrink": False, "save": tmp_path / "audit.json"}
    assert isinstance(audit(laplace, PAIR, runs=700, **options), Open)
    later = audit(laplace, PAIR, runs=100_000, resume=True, **options)
    assert isinstance(later, Refuted)


def test_an_interrupted_audit_keeps_what_it_has(tmp_path):
    def stop(done, total, note):
        if done > 2_000:
            raise KeyboardInterrupt

    options = {"epsilon": 2.0, "runs": 30_000, "bits": False, "save": tmp_path / "audit.json"}
    verdict = audit(laplace, PAIR, progress=stop, **options)
    assert "interrupted after" in verdict.reason
    assert verdict.interrupted
    assert verdict.to_dict()["interrupted"] is True
    finished = audit(laplace, PAIR, resume=True, **options)
    assert finished.runs == 30_000
    assert finished.to_dict()["interrupted"] is False


def test_another_audits_file_is_refused(tmp_path):
    path = tmp_path / "audit.json"
    audit(laplace, PAIR, epsilon=1, save=path)
    for changed, said in (
        ({"epsilon": 2}, r"epsilon \(1\.0 in the file, 2\.0 here\)"),
        ({"seed": 5}, r"seed \(0 in the file, 5 here\)"),
        ({"alpha": 0.05}, r"alpha \(0\.001 in the file, 0\.05 here\)"),
        ({"bits": True}, r"whether the last bits of floats count \(None in the file, True here\)"),
        ({"fixed": True, "runs": 500}, r"the number of runs that fixed=True fixes \(none in the file, 500 here\)"),
    ):
        with pytest.raises(InputError, match=f"another audit: it differs in {said}"):
            audit(laplace, PAIR, **{"epsilon": 1, "save": path, "resume": True, **changed})
    with pytest.raises(InputError, match="differs in the inputs"):
        audit(laplace, [(0.0, 2.0)], epsilon=1, save=path, resume=True)
    with pytest.raises(InputError, match="differs in the mechanism"):
        audit(gaussian, PAIR, epsilon=1, save=path, resume=True)
    with pytest.raises(InputError, match="needs save"):
        audit(laplace, PAIR, epsilon=1, resume=True)


def test_another_versions_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "audit.json"
    audit(laplace, PAIR, epsilon=1, save=path)
    monkeypatch.setattr("dpassay.__version__", "0.0.9")
    with pytest.raises(InputError, match="another audit: it differs in the version of dpassay"):
        audit(laplace, PAIR, epsilon=1, save=path, resume=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pairs": [(1.0, 1.0)]}, "are the same, 1.0"),
        ({"pairs": [("a", "a")]}, "are the same, 'a'"),
        ({"pairs": [(np.zeros(2), [0, 0])]}, "are the same"),
        ({"pairs": []}, "the list of pairs is empty"),
        ({"pairs": [(1,)]}, "a pair is two inputs"),
        ({"inputs": []}, "the list of inputs is empty"),
        ({"inputs": "ab"}, "inputs must be a list, got 'ab'"),
        ({"pairs": (0.0, 1.0)}, "a pair is two inputs"),
        ({"text": 3}, "text must be a text, got 3"),
        ({"pairs": [("a b", "c d")], "neighbours": "word"}, "are not neighbors: they differ in 2 words"),
        ({"inputs": ["a b", "c d", "e"], "neighbours": "word"}, "no two of the inputs are neighbors"),
        ({"pairs": PAIR, "search_runs": -1}, "search_runs must be"),
        ({"inputs": ["a", "a"]}, "at least two that differ"),
        ({"text": "  "}, "has no words"),
        ({"candidates": [1]}, "at least two inputs"),
        ({}, "specify the inputs to compare"),
        ({"pairs": PAIR, "text": "a b"}, "in one way"),
        ({"pairs": PAIR, "alpha": 0}, "alpha is an error probability.*got 0"),
        ({"pairs": PAIR, "alpha": 2}, "alpha is an error probability.*got 2"),
        ({"pairs": PAIR, "runs": -1}, "runs must be a whole number, 1 or more, got -1"),
        ({"pairs": PAIR, "runs": 2.5}, "runs must be a whole number"),
        ({"pairs": PAIR, "seed": -1}, "seed must be"),
        ({"pairs": PAIR, "epsilon": None}, "state the claimed epsilon"),
        ({"pairs": PAIR, "epsilon": -1}, "epsilon must be"),
        ({"pairs": PAIR, "colour": 1}, "unknown option colour"),
        ({"region": "query(l1, 1)"}, "dim"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, said):
    pairs = options.pop("pairs", None)
    with pytest.raises(InputError, match=said):
        audit(laplace, pairs, **{"epsilon": 1, **options})


def test_mechanisms_that_cannot_be_used():
    class Wrong:
        def sample(self, x):
            return x

    with pytest.raises(InputError, match="cannot be called as sample"):
        audit(Wrong(), PAIR, epsilon=1)
    with pytest.raises(InputError, match="gave 3 outputs where"):
        audit(lambda x, n, rng: np.zeros(3), PAIR, epsilon=1)
    with pytest.raises(InputError, match="an object with sample"):
        audit(7, PAIR, epsilon=1)

    def fails(x, rng):
        raise OSError("no model")

    with pytest.raises(MechanismError, match="failed in every run, for every input: OSError: no model"):
        audit(fails, PAIR, epsilon=1)


def test_one_run_and_other_tiny_budgets():
    for runs in (1, 2, 3, 17, 40):
        for fixed in (True, False):
            verdict = audit(laplace, PAIR, epsilon=1, runs=runs, fixed=fixed)
            assert isinstance(verdict, Open)
            assert verdict.runs <= max(runs, 4)


def test_the_search_takes_no_more_runs_than_there_are():
    verdict = audit(laplace, inputs=list(range(50)), epsilon=40, runs=1_000, search_runs=5_000)
    assert verdict.runs <= 1_000


def test_verdicts_print_and_are_data():
    verdict = audit(laplace, PAIR, epsilon=1)
    data = verdict.to_dict()
    assert data["witness"]["right"] == played(verdict).right
    assert data["alpha"] == 0.001
    assert data["runs"] == verdict.runs
    assert data["epsilon"]["upper"] == "inf"
    assert "REFUTED" in str(verdict)
    assert "guesses correct in" in verdict._repr_html_()


def test_copies_count_on_the_side_that_they_name():
    """The input itself with probability 0.02, else a number that tells nothing: exactly (0, 0.02)-DP."""

    def leaks(x, n, rng):
        return np.where(rng.random(n) < 0.02, x, rng.random(n))

    for seed in range(5):
        right = audit(leaks, [(2.0, 3.0)], epsilon=0.5, delta=0.03, runs=20_000, seed=seed)
        assert isinstance(right, Open)
    assert isinstance(audit(leaks, [(2.0, 3.0)], epsilon=0.5, delta=0.005, runs=20_000, until_refuted=True), Refuted)


def test_a_pipelines_pairs_are_as_near_as_its_query_says():
    text = "query(l1, 1) | clip(l1, 5) | laplace(1)"  # 1-DP: clipping a number brings no two answers apart
    assert isinstance(audit(text, epsilon=1.2, dim=1, runs=20_000), Open)
    with pytest.raises(InputError, match="are not neighbors: they are 5 apart"):
        audit("query(l1, 1) | laplace(1)", [([0.0], [5.0])], epsilon=1.1, dim=1)
    with pytest.raises(InputError, match="takes 2 finite numbers, got"):
        audit("clip(l1, 1) | laplace(2)", [([0.0], [5.0])], epsilon=1, dim=2)


@pytest.mark.long(reduced=1, full=3)
def test_a_look_at_a_fixed_number_of_runs_before_its_end_is_no_second_chance(tmp_path, repetitions):
    def response(x, n, rng):
        return np.where(rng.random(n) < 1 / (1 + math.exp(-1)), x, 1 - x)

    def stop(done, total, note):
        if note == "playing":
            raise KeyboardInterrupt

    options = {"epsilon": 1, "alpha": 0.05, "runs": 200_000, "fixed": True, "save": tmp_path / "audit.json"}
    for seed in range(repetitions):
        (tmp_path / "audit.json").unlink(missing_ok=True)
        first = audit(response, [(0, 1)], progress=stop, seed=seed, **options)
        assert isinstance(first, Open)
        last = audit(response, [(0, 1)], resume=True, seed=seed, **options)
        assert first.epsilon.lower <= last.epsilon.lower


@pytest.mark.parametrize("period", [2, 3, 16, 64, 97])
def test_a_counter_does_not_tell_inputs_apart(period):
    calls = iter(range(10**9))

    def counts(x, rng):
        return next(calls) % period

    assert isinstance(audit(counts, [(0, 1)], epsilon=0.3, runs=4_000), Open)


def test_texts_and_numbers_inside_objects_are_looked_at():
    def service(x, rng):
        return {"text": x, "score": float(rng.random()), "more": [1, {"id": 7}]}

    assert isinstance(audit(service, [("yes", "no")], epsilon=1, runs=20_000, until_refuted=True), Refuted)

    def numbers(x, rng):
        return {"id": "a", "value": x + float(rng.laplace(scale=0.3))}

    assert isinstance(audit(numbers, [(0.0, 1.0)], epsilon=1, runs=20_000, until_refuted=True), Refuted)


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    path = tmp_path / "audit.json"
    path.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        audit(laplace, PAIR, epsilon=1, save=path)
    assert path.read_text() == "mine"


def test_a_parameter_of_a_claim_may_have_the_name_of_an_option():
    # The claim's own argument people is another thing than the parameter that its text uses.
    claim = Claim("mine", "query(l1, people) | laplace(1)", epsilon=1, dim=1, parameters={"people": 1})
    verdict = audit(claim, parameters={"people": 5}, runs=2000)
    assert str(verdict.mechanism) == "query(l1, 5) | laplace(1)"
    assert verdict.refuted


def test_a_published_claim_is_audited_by_its_name():
    assert audit("adept", dim=2, runs=100).name == "adept"


def tells(x, n, rng):
    """No epsilon holds for it."""
    return np.full(n, x)


def test_after_a_refutation_some_runs_say_how_wrong_the_claim_is():
    at_once = audit(tells, PAIR, epsilon=1, until_refuted=True)
    default = audit(tells, PAIR, epsilon=1)
    assert isinstance(at_once, Refuted)
    assert isinstance(default, Refuted)
    assert at_once.runs < 1_000
    assert "the remaining runs tighten the lower bound" in default.reason
    # 4,000 runs more, of which a quarter may go into learning: with all guesses right epsilon is at least ln(n / 30).
    assert default.epsilon.lower > math.log(3_000 / 30) > at_once.epsilon.lower
    assert default.runs <= at_once.runs + 5_000
    assert audit(tells, PAIR, epsilon=1).epsilon == default.epsilon


@pytest.mark.parametrize(("mechanism", "least"), [(tells, 4_000), (lambda x: x, 1_000)], ids=["batches", "one a call"])
def test_how_long_it_goes_on_depends_on_runs_and_not_on_the_clock(mechanism, least):
    def dawdle(done, total, note):
        if note.startswith("refuted") and not slept:
            slept.append(time.sleep(1))

    slept = []
    at_once = audit(mechanism, PAIR, epsilon=1, until_refuted=True, bits=False)
    quick, slow = (audit(mechanism, PAIR, epsilon=1, bits=False, progress=one) for one in (None, dawdle))
    assert slept
    assert quick.runs == slow.runs == at_once.runs + least
    assert quick.epsilon == slow.epsilon


def test_how_wrong_a_claim_is_is_a_bound_that_holds():
    # Each bound is wrong with probability at most 0.001: 10 of them, seeded one by one, are all right but for 0.01.
    for seed in range(10):
        verdict = audit(laplace, PAIR, epsilon=1, seed=seed, bits=False)
        assert isinstance(verdict, Refuted)
        assert 1 < verdict.epsilon.lower <= 2


def test_a_mechanism_that_breaks_after_the_refutation_is_refuted():
    class BreaksLater:
        left = 1_500

        def sample(self, x, n, rng):
            self.left -= n
            if self.left < 0:
                raise MechanismError("the program died")
            return np.full(n, x)

    verdict = audit(BreaksLater(), PAIR, epsilon=1, bits=False)
    assert isinstance(verdict, Refuted)
    assert any("in a later run the mechanism failed: the program died" in warning for warning in verdict.warnings)


def test_ctrl_c_after_the_refutation_keeps_it(tmp_path):
    def stop(done, total, note):
        if note.startswith("refuted"):
            raise KeyboardInterrupt

    options = {"epsilon": 1, "save": tmp_path / "audit.json", "bits": False}
    stopped = audit(laplace, PAIR, progress=stop, **options)
    assert isinstance(stopped, Refuted)
    resumed = audit(laplace, PAIR, resume=True, **options)
    assert isinstance(resumed, Refuted)
    assert resumed.runs == audit(laplace, PAIR, epsilon=1, bits=False).runs


def test_stopping_at_once_and_making_all_runs_exclude_each_other():
    with pytest.raises(InputError, match="specify only one of them"):
        audit(laplace, PAIR, epsilon=1, fixed=True, until_refuted=True)


def test_after_a_refutation_the_runs_that_are_still_to_come_are_counted():
    """As many again, at least 1,000 of single outputs; not all that are allowed."""
    told = []
    verdict = audit(
        lambda x, rng: x + rng.laplace(scale=0.25),
        PAIR,
        epsilon=1,
        bits=False,
        shrink=False,
        progress=lambda *said: told.append(said),
    )
    assert verdict.refuted
    totals = {of for _, of, note in told if note.startswith("refuted")}
    assert len(totals) == 1
    assert max(done for done, _, _ in told) <= totals.pop() <= 2 * 1000 < 100_000 == told[0][1]
