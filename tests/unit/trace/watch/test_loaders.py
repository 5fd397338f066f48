"""Batches that are taken in another way than an accountant assumes are named, with both lines."""

import random
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.trace.findings.findings import unaccounted
from dpassay.trace.watch.record import current
from dpassay.trace.watch.tracer import Tracer

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'dpassay[text]'")
accountants = pytest.importorskip("opacus.accountants", reason="needs opacus")
dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting")

from opacus.accountants.analysis import rdp  # noqa: E402
from opacus.accountants.utils import get_noise_multiplier  # noqa: E402
from torch.utils.data import DataLoader, RandomSampler, TensorDataset  # noqa: E402

PAIR = ([1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0])


def data(rows: list[float]) -> Any:
    return TensorDataset(torch.tensor(rows))


def loader_of(rows: list[float], kind: str) -> Any:
    if kind == "Poisson":
        from opacus.data_loader import DPDataLoader

        return DPDataLoader(data(rows), sample_rate=0.5)
    if kind == "with replacement":
        return DataLoader(data(rows), batch_size=2, sampler=RandomSampler(data(rows), replacement=True))
    return DataLoader(data(rows), batch_size=4 if kind == "whole" else 2, shuffle=kind == "shuffled")


def traced(kind: str, account: Any) -> Any:
    def step(rows: list[float]) -> float:
        account()
        (batch,) = next(iter(loader_of(rows, kind)))
        return float(batch.clamp(-1, 1).sum() + 100 * torch.randn(()))

    return dpassay.trace(step, pairs=[PAIR], epsilon=1, delta=1e-5, hostile=False, time=4)


def by_opacus(rate: float = 0.5) -> None:
    accountants.RDPAccountant().step(noise_multiplier=1.0, sample_rate=rate)


def by_events(kind: str) -> None:
    inner = dp_accounting.GaussianDpEvent(1.0)
    sampled = {
        "Poisson": lambda: dp_accounting.PoissonSampledDpEvent(0.5, inner),
        "without": lambda: dp_accounting.SampledWithoutReplacementDpEvent(4, 2, inner),
    }[kind]()
    relation = dp_accounting.NeighboringRelation
    replaced = relation.ADD_OR_REMOVE_ONE if kind == "Poisson" else relation.REPLACE_ONE
    made = dp_accounting.rdp.RdpAccountant([2.0, 4.0], replaced)
    made.compose(dp_accounting.SelfComposedDpEvent(sampled, 3))


@pytest.mark.long(every=2)
@pytest.mark.usefixtures("short_traces")
@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("shuffled", "batches of a shuffled data set"),
        ("with replacement", "samples with replacement"),
        ("in order", "batches in a fixed order"),
    ],
)
def test_other_batches_than_those_of_the_accountant_are_named(kind: str, taken: str) -> None:
    (warning,) = traced(kind, by_opacus).warnings
    assert warning.rule == "sampling-not-accounted"
    assert f"takes {taken}, and Opacus' RDPAccountant at test_loaders.py:" in warning.message
    assert warning.place.file == __file__


@pytest.mark.long(every=2)
@pytest.mark.usefixtures("short_traces")
@pytest.mark.parametrize(
    ("kind", "account"),
    [("Poisson", by_opacus), ("whole", by_opacus), ("shuffled", lambda: by_opacus(1.0)), ("shuffled", list)],
)
def test_batches_that_the_accountant_covers_are_not(kind: str, account: Any) -> None:
    assert traced(kind, account).warnings == ()


@pytest.mark.usefixtures("short_traces")
def test_a_loader_for_testing_needs_no_accountant() -> None:
    def step(rows: list[float]) -> float:
        by_opacus()
        trained = sum(float(batch.clamp(-1, 1).sum()) for (batch,) in loader_of(rows, "Poisson") if len(batch))
        tested = [len(batch) for (batch,) in loader_of(rows, "in order")]
        return trained + len(tested) + float(100 * torch.randn(()))

    assert dpassay.trace(step, pairs=[PAIR], epsilon=1, delta=1e-5, hostile=False, time=4).warnings == ()


@pytest.mark.usefixtures("short_traces")
def test_events_of_dp_accounting_are_read_inside_compositions() -> None:
    (warning,) = traced("shuffled", lambda: by_events("Poisson")).warnings
    assert "and dp-accounting's RdpAccountant at test_loaders.py:" in warning.message
    (warning,) = traced("with replacement", lambda: by_events("without")).warnings
    assert "accounts for samples without replacement" in warning.message


def by_rng(rows: list[float], rng: Any) -> Any:
    return np.array(rows)[rng.permutation(len(rows))[:2]]


def by_sample(rows: list[float], rng: Any) -> Any:
    return np.array(random.sample(rows, 2))


def by_torch(rows: list[float], rng: Any) -> Any:
    return np.array(rows)[torch.randperm(len(rows))[:2].numpy()]


def by_choice(rows: list[float], rng: Any) -> Any:
    return rng.choice(rows, 2, replace=False)


def by_coins(rows: list[float], rng: Any) -> Any:
    return np.array(rows)[rng.random(len(rows)) < 0.5]


def by_coins_of_a_shuffled_list(rows: list[float], rng: Any) -> Any:
    rows = list(rows)
    rng.shuffle(rows)
    return [row for row in rows if rng.random() < 0.5]


@pytest.mark.parametrize("many", [4, 40])
@pytest.mark.parametrize(
    ("pick", "taken"),
    [
        (by_rng, "batches of a shuffled data set"),
        (by_sample, "samples without replacement"),
        (by_torch, "batches of a shuffled data set"),
        (by_choice, "samples without replacement"),
        (by_coins, ""),
        (by_coins_of_a_shuffled_list, ""),
    ],
)
def test_batches_that_the_code_draws_itself_are_held_against_the_accountant(pick: Any, taken: str, many: int) -> None:
    def step(rows: list[float], rng: Any) -> float:
        by_opacus(0.1)
        return float(np.clip(pick(rows, rng), -1, 1).sum() + rng.normal(0, 100))

    run = Tracer(step).run([1.0, *[0.0] * (many - 1)])
    found = [one.message for one in unaccounted(run)]
    assert len(found) == bool(taken)
    assert all(f"takes {taken}, and Opacus' RDPAccountant" in said for said in found)


def test_orders_are_no_batches_beside_a_loader_that_is_as_accounted() -> None:
    def step(rows: list[float]) -> float:
        by_opacus()
        trained = sum(float(batch.clamp(-1, 1).sum()) for (batch,) in loader_of(rows, "Poisson") if len(batch))
        return trained + float(np.random.permutation(3)[0]) + float(100 * torch.randn(()))

    assert unaccounted(Tracer(step).run(PAIR[0])) == ()


@pytest.mark.filterwarnings("ignore:GDP accounting")
def test_functions_that_account_for_steps_are_accountants_too() -> None:
    def calibrated(rows: list[float]) -> float:
        sigma = get_noise_multiplier(target_epsilon=3, target_delta=1e-5, sample_rate=0.5, steps=1, accountant="gdp")
        (batch,) = next(iter(loader_of(rows, "shuffled")))
        return float(batch.sum() + sigma * torch.randn(()))

    def computed(rows: list[float]) -> float:
        rdp.compute_rdp(q=0.5, noise_multiplier=1.0, steps=1, orders=[2, 4])
        (batch,) = next(iter(loader_of(rows, "shuffled")))
        return float(batch.sum() + torch.randn(()))

    for step, name in ((calibrated, "get_noise_multiplier"), (computed, "compute_rdp")):
        (found,) = unaccounted(Tracer(step).run(PAIR[0]))
        assert f"Opacus' {name} at test_loaders.py:" in found.message


def test_what_an_accountant_computes_is_not_watched() -> None:
    """It takes several times as long otherwise, and draws nothing."""
    seen = []

    class Accountant(dp_accounting.rdp.RdpAccountant):
        def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
            seen.append(current() is not None)
            return super()._maybe_compose(event, count, do_compose)

    def step(x: float) -> float:
        Accountant([2.0]).compose(dp_accounting.GaussianDpEvent(1.0))
        seen.append(current() is not None)
        return x

    Tracer(step).run(1.0)
    assert seen.pop()
    assert seen
    assert not any(seen)


class Eagerly(torch.utils.data.Sampler):  # type: ignore[misc, name-defined]
    """Which draws when its iterator is made, as torch draws the seed of its processes."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __iter__(self) -> Any:
        first = int(torch.empty((), dtype=torch.int64).random_(len(self.rows)))
        return iter([first])

    def __len__(self) -> int:
        return 1


def test_the_seed_of_processes_that_a_loader_does_not_have_is_no_draw() -> None:
    def step(rows: list[float], sampler: Any = None) -> float:
        (batch,) = next(iter(DataLoader(data(rows), batch_size=2, sampler=sampler)))
        return float(batch.sum() + 2 * torch.randn(()))

    rows = [1.0, 0.5]
    assert [draw.distribution for draw in Tracer(step).run(rows).draws] == ["standard_normal"]
    eager = Tracer(lambda rows: step(rows, Eagerly(rows))).run(rows)
    assert [draw.distribution for draw in eager.draws] == ["random", "standard_normal"]
