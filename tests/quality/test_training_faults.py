"""Faults of private training that an audit finds from canaries alone, and right training, which it leaves alone.

Every fault is a few lines in which released code differs from what was proved. The claim is that of the right run.
"""

import dataclasses

import numpy as np
import pytest
import torch

from dpassay.training.accountant import Account
from dpassay.training.aggregation import PerUnit, flat, projected
from dpassay.training.canaries.audit import audit_training
from dpassay.training.canaries.rounds import CanaryRounds
from dpassay.training.canaries.scores import CanaryScores
from dpassay.training.federated import RoundPlan, Sentences, Server
from dpassay.training.randomness import SeededNoise
from statistics_helper import FALSE_ALARMS, generator

USERS, CANARIES, ROUNDS, RATE, CLIP, MULTIPLIER, DELTA = 50, 400, 100, 0.05, 0.1, 2.0, 1e-5
SHAPES = {**{f"layer {i}": (20, 20) for i in range(16)}, "bias": (20,)}


class SmallUpdates:
    """Users whose updates are noise of about the clip's length, without a network."""

    together = 64

    def updates(self, weights, tables, rate, round_):
        rng = torch.Generator().manual_seed(int(tables.sum()))
        return {name: 0.01 * torch.randn(len(tables), *shape, generator=rng) for name, shape in SHAPES.items()}


class SingleTensors(PerUnit):
    """Each tensor is clipped for itself, so that the whole is not."""

    def combine(self, cells, parts, step=None):
        return sum(
            flat({name: projected(t.flatten(1), self.clip).view_as(t) for name, t in updates.items()}).sum(0)
            for _, updates in parts
        )


class AfterAveraging(PerUnit):
    """The mean of the updates is clipped instead of each of them."""

    def combine(self, cells, parts, step=None):
        total = sum(flat(updates).sum(0) for _, updates in parts)
        return projected(total[None] / len(cells), self.clip)[0] * len(cells)


class Restored(PerUnit):
    """An adaptive learning rate multiplies the clipped update by its length before noise is added."""

    def combine(self, cells, parts, step=None):
        rows = torch.cat([flat(updates) for _, updates in parts])
        lengths = rows.norm(dim=1, keepdim=True) / self.clip
        return (projected(rows, self.clip) * lengths.clamp(min=1)).sum(0)


class SameEveryRound(PerUnit):
    """Units are drawn once, not afresh in every round."""

    def drawn(self, randomness, round_):
        return super().drawn(randomness, 0)


def scores(aggregation=PerUnit, noise=1.0, runs=1, seed=0):
    """One training run with the fault, and what it shows of its canaries."""
    found = []
    for run in range(runs):
        rng = generator(f"training {aggregation.__name__} {noise} {seed} {run}")
        included = rng.random(CANARIES) < 0.5
        weights = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
        numbers = np.arange(USERS)[:, None] + 1
        plan = RoundPlan(rounds=ROUNDS)
        sentences = Sentences(numbers, [[i] for i in range(USERS)], plan)
        rule = aggregation(USERS + CANARIES, RATE, CLIP)
        randomness = SeededNoise(int(rng.integers(2**31)))
        engine = CanaryRounds(
            *(weights, SmallUpdates(), sentences, Server(weights, plan), randomness, rule.drawn, rule),
            noise * MULTIPLIER * CLIP,
            included=included,
        )
        for number in range(ROUNDS):
            engine.round(number)
        found.append(CanaryScores(engine.scores, included, np.full(CANARIES, run)))
    return CanaryScores(
        *(np.concatenate([getattr(one, f.name) for one in found]) for f in dataclasses.fields(CanaryScores))
    )


@pytest.fixture(scope="module")
def claimed():
    return Account(RATE, CLIP, MULTIPLIER * CLIP, ROUNDS, DELTA).epsilon().upper


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"noise": 0.2}, id="noise too small"),
        pytest.param({"noise": MULTIPLIER * CLIP}, id="variance for deviation"),
        pytest.param({"aggregation": SingleTensors, "runs": 2}, id="single tensors"),
        pytest.param({"aggregation": AfterAveraging}, id="clip after averaging"),
        pytest.param({"aggregation": Restored}, id="learning rate undoes the clip"),
        pytest.param({"aggregation": SameEveryRound, "runs": 6}, id="drawn once"),
    ],
)
def test_a_fault_is_found(fault, claimed):
    verdict = audit_training(scores(**fault), epsilon=claimed, delta=DELTA)
    assert verdict.refuted, verdict.reason


def test_right_training_is_left_alone(claimed):
    name = "right training with canaries"
    found = scores(runs=2)
    assert not audit_training(found, epsilon=claimed, delta=DELTA, alpha=FALSE_ALARMS[name]).refuted
    # Nor is the audit blind: with as many canaries it would see a tenth of the noise.
    assert audit_training(scores(noise=0.1), epsilon=claimed, delta=DELTA).epsilon.lower > 2 * claimed
