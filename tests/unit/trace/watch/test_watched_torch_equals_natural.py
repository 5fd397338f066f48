"""Programs with torch do the same when they are watched: the same tensors to the last bit, and the same state after."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.trace.watch.numbers import plain
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.sources import watch

torch = pytest.importorskip("torch")
F = torch.nn.functional

PROGRAMS: dict[str, Callable[[], Any]] = {
    "normal": lambda: [
        torch.randn(3),
        torch.normal(0.0, 2.0, (2,)),
        torch.zeros(3).normal_(1, 2),
        torch.randn(1).item(),
    ],
    "uniform": lambda: [
        torch.rand(2, 2),
        torch.empty(3).uniform_(-1, 1),
        torch.rand_like(torch.ones(2)),
        torch.rand(()),
    ],
    "double": lambda: [
        torch.randn(2, dtype=torch.float64),
        torch.rand(2).double() + 1,
        torch.rand(1, dtype=torch.float64).item(),
    ],
    "half": lambda: [torch.randn(3).half(), torch.rand(3, dtype=torch.bfloat16)],
    "bernoulli": lambda: [
        torch.bernoulli(torch.full((4,), 0.3)),
        torch.ones(3).bernoulli_(0.5),
        torch.bernoulli(torch.tensor(0.5)).item(),
    ],
    "multinomial": lambda: [
        torch.multinomial(torch.tensor([0.2, 0.8]), 1),
        torch.multinomial(torch.ones(5), 3),
        torch.multinomial(torch.ones(2, 3), 4, replacement=True),
    ],
    "permutation": lambda: [
        torch.randperm(4),
        torch.randperm(40),
        torch.randint(5, (3,)),
        torch.randint(2, 9, (2,)).tolist(),
    ],
    "other laws": lambda: [
        torch.empty(2).exponential_(2),
        torch.empty(2).cauchy_(),
        torch.empty(2).geometric_(0.3),
        torch.poisson(torch.ones(3)),
        torch.empty(2).log_normal_(),
    ],
    "distributions": lambda: [
        torch.distributions.Laplace(0.0, 2.0).sample((2,)),
        torch.distributions.Normal(1.0, 2.0).sample(),
        torch.distributions.Categorical(logits=torch.arange(3.0)).sample((2,)),
        torch.distributions.Gumbel(0.0, 1.0).sample(),
        torch.distributions.Bernoulli(0.3).sample((3,)),
    ],
    "arithmetic": lambda: [
        1 + torch.randn(2) * 3 / 2 - 1,
        torch.randn(2).abs().log().exp(),
        torch.randn(2) ** 2,
        torch.randn(3) @ torch.ones(3),
        -torch.randn(2),
    ],
    "in place": lambda: [
        torch.randn(2).add_(1).mul_(2),
        torch.ones(2).add_(torch.randn(2)),
        torch.zeros(3).copy_(torch.randn(3)),
        torch.randn(3).clamp_(0),
    ],
    "set": lambda: (a := torch.zeros(3), a.__setitem__(1, torch.randn(())), a.__setitem__(0, 2.0))[0],
    "comparisons": lambda: [
        torch.rand(4) < 0.5,
        (torch.randn(3) > 0).sum(),
        torch.where(torch.rand(3) < 0.5, 1, 0),
        bool(torch.rand(()) < 0.5),
        torch.rand(3)[torch.rand(3) < 0.5],
    ],
    "reductions": lambda: [
        torch.randn(2, 3).sum(),
        torch.randn(2, 3).mean(dim=1),
        torch.randn(4).std(),
        torch.randn(4).max(),
        torch.randn(3).argmax(),
        torch.randn(4).norm(),
    ],
    "orders": lambda: [
        torch.randn(4).sort(),
        torch.randn(4).topk(2),
        torch.randn(4).argsort(),
        torch.randn(3).cumsum(0),
        torch.searchsorted(torch.tensor([0.2, 0.7]), torch.rand(2)),
    ],
    "softmax": lambda: [
        F.softmax(torch.randn(3), dim=0),
        F.log_softmax(torch.randn(3), 0),
        F.gumbel_softmax(torch.zeros(3)),
        F.one_hot(torch.randint(3, (2,))),
    ],
    "dropout": lambda: [
        F.dropout(torch.ones(6), 0.3),
        torch.nn.Dropout(0.5)(torch.ones(4)),
        F.dropout(torch.ones(3), 0.0),
        F.dropout(torch.full((5,), 0.7), 0.3),
    ],
    "to numpy": lambda: [
        torch.randn(2).numpy(),
        torch.randn(2).numpy() + 1,
        torch.randn(2).tolist(),
        float(torch.randn(())),
        int(torch.rand(()) * 5),
        np.asarray(torch.randn(2)),
        f"{torch.randn(())}",
        str(torch.randn(2)),
    ],
    "from numpy": lambda: [
        torch.tensor(np.random.normal(size=2)),
        torch.from_numpy(np.random.normal(size=2)) * 2,
        torch.as_tensor([np.random.normal(), 1.0]),
        torch.tensor(np.random.normal()),
    ],
    "shapes": lambda: [
        torch.randn(2, 3).T,
        torch.randn(4).view(2, 2),
        torch.randn(2, 3).reshape(-1),
        torch.cat([torch.randn(1), torch.ones(1)]),
        torch.stack([torch.randn(1)] * 2),
        torch.randn(2, 3)[0],
        torch.randn(3)[[0, 2]],
    ],
    "a generator": lambda: [torch.randn(2, generator=torch.Generator().manual_seed(3)), torch.rand(1)],
    "gradients": lambda: (w := torch.ones(2, requires_grad=True), ((w * torch.randn(2)).sum() ** 2).backward(), w.grad)[
        2
    ],
    "a layer": lambda: (torch.nn.Linear(2, 2)(torch.randn(1, 2))).detach(),
    "a copy": lambda: [
        torch.randn(2).clone(),
        torch.randn(2).detach().cpu(),
        torch.randn(2).to(torch.float64),
        torch.randn(2).contiguous(),
    ],
}


def _plainly(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, tuple(value.shape), value.requires_grad, repr(value.double().tolist())
    if isinstance(value, list | tuple):
        return type(value), [_plainly(one) for one in value]
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.tobytes()
    return type(value), repr(value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_output_is_the_same(name: str) -> None:
    outputs = []
    for watching in (False, True):
        torch.manual_seed(7)
        np.random.seed(7)
        if watching:
            with watch(RecordedRun(0), PROGRAMS[name]):
                output = plain(PROGRAMS[name]())
        else:
            output = PROGRAMS[name]()
        outputs.append((_plainly(output), torch.rand(1).item(), np.random.rand()))
    assert outputs[1] == outputs[0]
