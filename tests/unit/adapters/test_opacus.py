"""Opacus: what its accountants state for a run, against the certified interval and dp-accounting."""

import warnings
from typing import Any

import pytest

import dpassay

opacus = pytest.importorskip("opacus", reason="needs opacus, the extra `training`")
torch = pytest.importorskip("torch")
pld = pytest.importorskip("dp_accounting.pld", reason="needs dp-accounting")
dp_event = pytest.importorskip("dp_accounting.dp_event", reason="needs dp-accounting")


def trained(norm: float, accountant: str = "prv") -> tuple[Any, Any]:
    """A real run of three steps: the engine and the optimizer."""
    data = torch.utils.data.TensorDataset(torch.randn(20, 2), torch.randn(20, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.nn.Linear(2, 1)
        engine = opacus.PrivacyEngine(accountant=accountant)
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(data, batch_size=5),
            noise_multiplier=1.5,
            max_grad_norm=norm,
        )
        for x, y in [next(iter(loader)) for _ in range(3)]:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return engine, optimizer


def independent(noise: float, rate: float, steps: int, delta: float) -> float:
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    return float(pld.PLDAccountant().compose(dp_event.SelfComposedDpEvent(step, steps)).get_epsilon(delta))


def test_a_run_is_judged_by_what_opacus_accounts() -> None:
    engine, optimizer = trained(norm=2.0)
    verdicts = [dpassay.check(thing, delta=1e-5) for thing in (engine, engine.accountant, optimizer)]
    for verdict in verdicts:
        assert verdict.proven
        assert verdict.guarantee.epsilon == engine.get_epsilon(1e-5)
        assert verdict.epsilon.upper == pytest.approx(independent(1.5, 0.25, 3, 1e-5), rel=1e-3)
    assert str(verdicts[0].mechanism) == "poisson(0.25) | clip(l2, 1) | gaussian(1.5) | times(3)"
    assert str(verdicts[2].mechanism) == "poisson(0.25) | clip(l2, 2) | gaussian(3) | times(3)"


def accountant(kind: str, *history: tuple[float, float, int]) -> Any:
    made = opacus.accountants.create_accountant(kind)
    made.history = list(history)
    return made


def test_the_accountant_of_the_central_limit_theorem_states_too_little() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus says itself that it may be too low
        few = accountant("gdp", (1.0, 0.01, 5))
        assert few.get_epsilon(1e-5) < 0.5 * independent(1.0, 0.01, 5, 1e-5)
        assert dpassay.check(few, delta=1e-5).refuted
    assert dpassay.check(accountant("rdp", (1.0, 0.01, 5)), delta=1e-5).proven


def test_what_cannot_be_read_gets_a_sentence() -> None:
    with pytest.raises(dpassay.InputError, match="has recorded no step yet"):
        dpassay.check(accountant("prv"), delta=1e-5)
    mixed = accountant("prv", (1.0, 0.01, 5), (2.0, 0.01, 5))
    with pytest.raises(dpassay.InputError, match=r"2 kinds of steps.*dpassay\.compose\('poisson"):
        dpassay.check(mixed, delta=1e-5)
    with pytest.raises(dpassay.InputError, match="states no epsilon by itself"):
        dpassay.check(accountant("prv", (1.0, 0.01, 5)))
    parameters = [torch.nn.Parameter(torch.zeros(1))]
    alone = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(parameters, lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=4
    )
    with pytest.raises(dpassay.InputError, match="reports its steps to no accountant"):
        dpassay.check(alone, delta=1e-5)


def test_the_same_steps_in_two_parts_are_one_run() -> None:
    parts = accountant("prv", (1.5, 0.1, 5), (1.5, 0.1, 7))
    assert str(dpassay.check(parts, delta=1e-5).mechanism).endswith("times(12)")
