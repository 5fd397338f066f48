"""Opacus: what its accountants state for a run, against the certified interval and dp-accounting."""

import math
import warnings
from pathlib import Path
from typing import Any

import pytest

import dpassay
from dpassay.adapters.opacus import step

opacus = pytest.importorskip("opacus", reason="needs opacus, the extra `training`")
torch = pytest.importorskip("torch")
pld = pytest.importorskip("dp_accounting.pld", reason="needs dp-accounting")
dp_event = pytest.importorskip("dp_accounting.dp_event", reason="needs dp-accounting")


def trained(norm: float, accountant: str = "prv", **more: Any) -> tuple[Any, Any]:
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
            **more,
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
    with pytest.raises(dpassay.InputError, match="has recorded no steps yet"):
        dpassay.check(accountant("prv"), delta=1e-5)
    mixed = accountant("prv", (1.0, 0.01, 5), (2.0, 0.01, 5))
    with pytest.raises(dpassay.InputError, match=r"2 kinds of steps.*dpassay\.compose\('poisson"):
        dpassay.check(mixed, delta=1e-5)
    with pytest.raises(dpassay.InputError, match="states no epsilon of its own"):
        dpassay.check(accountant("prv", (1.0, 0.01, 5)))
    parameters = [torch.nn.Parameter(torch.zeros(1))]
    alone = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(parameters, lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=4
    )
    with pytest.raises(dpassay.InputError, match="does not report its steps to an accountant"):
        dpassay.check(alone, delta=1e-5)


def test_the_same_steps_in_two_parts_are_one_run() -> None:
    parts = accountant("prv", (1.5, 0.1, 5), (1.5, 0.1, 7))
    assert str(dpassay.check(parts, delta=1e-5).mechanism).endswith("times(12)")


def private(norm: float, noise: float, **more: Any) -> tuple[Any, Any, Any]:
    """A model, its optimizer and a batch whose first example has a gradient far above the norm."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        data = torch.utils.data.TensorDataset(torch.randn(8, 2), torch.randn(8, 1))
        model, optimizer, _ = opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(data, batch_size=4),
            noise_multiplier=noise,
            max_grad_norm=norm,
            **more,
        )
    x, y = torch.tensor([[30.0, -40.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([[100.0], [1.0], [2.0]])
    return model, optimizer, (x, y)


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """ε of the analytic formula at sensitivity 1, by bisection."""

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    low, high = 0.0, 100.0
    for _ in range(100):
        mid = (low + high) / 2
        found = phi(0.5 / sigma - mid * sigma) - math.exp(mid) * phi(-0.5 / sigma - mid * sigma)
        low, high = (mid, high) if found > delta else (low, mid)
    return high


def test_a_step_is_traced_to_the_optimizers_own_lines() -> None:
    model, optimizer, batch = private(norm=2.0, noise=1.5)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    result = dpassay.trace(step(model, optimizer, torch.nn.functional.mse_loss, batch), delta=1e-5)
    assert result.verdict.open
    assert {(draw.distribution, float(draw.parameters["scale"])) for draw in result.draws} == {("normal", 1.5 * 2.0)}
    assert {Path(draw.place.file).parts[-2:] for draw in result.draws} == {("optimizers", "optimizer.py")}
    assert result.traced_epsilon.upper == pytest.approx(gaussian_epsilon(1.5, 1e-5), rel=1e-3)
    assert "gaussian(0.75)" in result.pipeline  # divided by the batch size, 4
    assert result.verdict.source == "stated by the noise multiplier 1.5, for one step without sampling"
    assert all(torch.equal(one, two) for one, two in zip(before, model.parameters(), strict=True))


def test_a_step_whose_optimizer_adds_less_noise_is_refuted_at_its_line() -> None:
    model, optimizer, batch = private(norm=2.0, noise=1.5)
    right = step(model, optimizer, torch.nn.functional.mse_loss, batch)
    optimizer.noise_multiplier = 0.2
    result = dpassay.trace(right, epsilon=0.5, delta=1e-5, time="20s")
    assert result.verdict.refuted
    assert (result.rules, Path(str(result.findings[0].place).split(":")[0]).name) == (
        ("loss-too-large",),
        "optimizer.py",
    )
    assert result.traced_epsilon.lower == pytest.approx(gaussian_epsilon(0.2, 1e-5), rel=1e-3)


def test_a_step_is_checked_and_leaves_the_accountant_alone() -> None:
    model, optimizer, batch = private(norm=2.0, noise=1.5)
    made = step(model, optimizer, torch.nn.functional.mse_loss, batch)
    verdict = dpassay.check(made, delta=1e-5)
    assert (verdict.word, str(verdict.mechanism)) == ("proven", "query(l2, 2) | gaussian(3)")
    made.mechanism(batch)
    with pytest.raises(dpassay.InputError, match="has recorded no steps yet"):
        dpassay.check(optimizer, delta=1e-5)


def test_a_step_that_cannot_be_run_gets_a_sentence() -> None:
    model, optimizer, (x, y) = private(norm=2.0, noise=1.5)
    with pytest.raises(dpassay.InputError, match="got a Linear and a DPOptimizer"):
        step(model._module, optimizer, torch.nn.functional.mse_loss, (x, y))
    with pytest.raises(dpassay.InputError, match="at least two examples, got 1 and 1"):
        step(model, optimizer, torch.nn.functional.mse_loss, (x[:1], y[:1]))
    with pytest.raises(dpassay.InputError, match="states no epsilon of its own"):
        dpassay.trace(step(model, optimizer, torch.nn.functional.mse_loss, (x, y)))


@pytest.mark.parametrize("kind", ["rdp", "prv", "gdp"])
def test_the_verdict_names_the_accountant(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = accountant(kind, (1.0, 0.01, 5))
        assert dpassay.check(made, delta=1e-5).source == f"stated by Opacus' {type(made).__name__}"


@pytest.mark.long(every=2)
@pytest.mark.parametrize("poisson", [True, False])
def test_what_opacus_does_not_record_is_a_line_of_the_verdict(poisson: bool) -> None:
    engine, optimizer = trained(norm=2.0, poisson_sampling=poisson)
    for thing in (engine, engine.accountant, optimizer):
        (line,) = dpassay.check(thing, delta=1e-5).warnings
        assert (
            "with poisson_sampling=False, or a loader of one's own, neither its epsilon nor this verdict holds" in line
        )


def quiet(optimizer: Any) -> None:
    for parameter in optimizer.params:
        parameter.grad = parameter.summed_grad


def loud(optimizer: Any) -> None:
    for parameter in optimizer.params:
        parameter.summed_grad = parameter.grad_sample.sum(dim=0)


def test_the_seed_of_a_generator_is_a_line_of_the_verdict() -> None:
    _, optimizer = trained(norm=1.0, noise_generator=torch.Generator().manual_seed(42))
    verdict = dpassay.check(optimizer, delta=1e-5)
    assert any("began with the seed 42" in warning for warning in verdict.warnings)
    assert not any("seed" in warning for warning in dpassay.check(trained(norm=1.0)[1], delta=1e-5).warnings)


def test_an_optimizer_that_does_not_do_what_it_recorded_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    _, optimizer = trained(norm=2.0)
    right = dpassay.check(optimizer, delta=1e-5)
    assert right.proven
    assert "runs of the object agree with this formula" in right.reason
    optimizer.noise_multiplier = 0.5  # where 1.5 is recorded
    assert dpassay.check(optimizer, delta=1e-5).open
    optimizer.noise_multiplier = 1.5
    for method, patched, said in (
        ("add_noise", quiet, "equals 0 in"),
        ("clip_and_accumulate", loud, "after clipping to 2"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(type(optimizer), method, patched)
            verdict = dpassay.check(optimizer, delta=1e-5)
        assert verdict.open
        assert said in verdict.reason


def test_a_check_leaves_the_optimizer_as_it_was() -> None:
    _, optimizer = trained(norm=2.0)
    before = [parameter.grad.clone() for parameter in optimizer.params]
    state = torch.get_rng_state()
    assert dpassay.check(optimizer, delta=1e-5).proven
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(before, optimizer.params, strict=True))
    assert torch.equal(state, torch.get_rng_state())


def test_a_step_that_adds_other_noise_or_does_not_clip_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer, batch = private(norm=2.0, noise=1.5)
    made = step(model, optimizer, torch.nn.functional.mse_loss, batch)
    optimizer.noise_multiplier = 0.5
    assert dpassay.check(made, delta=1e-5).open
    optimizer.noise_multiplier = 1.5
    monkeypatch.setattr(type(optimizer), "clip_and_accumulate", loud)
    verdict = dpassay.check(made, delta=1e-5)
    assert verdict.open
    assert "the clipped gradients are" in verdict.reason
