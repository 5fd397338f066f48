"""Batches that are taken in another way than an accountant assumes are named, with both lines."""

from typing import Any

import pytest

import dpassay

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'dpassay[text]'")
accountants = pytest.importorskip("opacus.accountants", reason="needs opacus")
dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting")

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
