"""Mechanisms in torch, each fault beside the code that does it right: claimed to be 1-DP between any two inputs."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Laplace, Normal


def clip_l1(x: list[float]) -> Tensor:
    vector = torch.tensor(x)
    return vector / vector.abs().sum().clamp(min=1.0)


def clip_l2(x: list[float]) -> Tensor:
    vector = torch.tensor(x)
    return vector / vector.norm().clamp(min=1.0)


def laplace(x: list[float]) -> Tensor:
    return clip_l1(x) + Laplace(0.0, 2.0).sample((3,))


def laplace_as_list(x: list[float]) -> list[float]:
    noisy: list[float] = (clip_l1(x) + Laplace(torch.zeros(3), 2.0).rsample()).tolist()
    return noisy


def shared_number(x: list[float]) -> Tensor:
    return clip_l1(x) + Laplace(0.0, 2.0).sample()


def shared_column(x: list[float]) -> Tensor:
    return torch.stack([clip_l1(x), -clip_l1(x)]) + Laplace(0.0, 4.0).sample((2, 1))


def fixed_seed(x: list[float]) -> Tensor:
    torch.manual_seed(0)
    return clip_l1(x) + Laplace(0.0, 2.0).sample((3,))


class NoisyLayer(nn.Module):
    """Adds Gaussian noise to what it gets; `made_once` keeps the noise of its first call."""

    def __init__(self, sigma: float, made_once: bool = False, residual: bool = False) -> None:
        super().__init__()
        self.sigma, self.made_once, self.residual = sigma, made_once, residual
        self.noise: Tensor | None = None
        self.weight = nn.Parameter(torch.eye(3))

    def forward(self, x: Tensor) -> Tensor:
        hidden = x @ self.weight
        if self.noise is None or not self.made_once:
            self.noise = torch.empty(3).normal_(0, self.sigma)
        noisy = hidden + self.noise
        return noisy + x if self.residual else noisy


def in_place(x: list[float]) -> Tensor:
    vector = clip_l2(x)
    vector += 8.5 * torch.randn_like(vector)
    return vector


def variance(x: list[float]) -> Tensor:
    return torch.normal(clip_l2(x), 8.5**0.5)


def deviation(x: list[float]) -> Tensor:
    return torch.normal(clip_l2(x), 8.5)


def by_distribution(x: list[float]) -> Tensor:
    return Normal(clip_l2(x), 8.5).sample()


def swapped(x: list[float]) -> Tensor:
    return clip_l1(x) + Laplace(0.0, 0.5).sample((3,))


def original(x: list[float]) -> Tensor:
    vector = clip_l1(x)
    noisy = vector.clone()
    noisy += Laplace(0.0, 2.0).sample((3,))
    return vector


def appended(x: list[float]) -> tuple[Tensor, float]:
    return clip_l1(x) + Laplace(0.0, 2.0).sample((3,)), max(x)


def greatest(x: list[float]) -> int:
    return int((clip_l1(x) + Laplace(0.0, 2.0).sample((3,))).argmax())


def dropout(x: list[float]) -> Tensor:
    return nn.Dropout(0.5)(clip_l1(x))


def one_by_one(x: list[float]) -> Tensor:
    return torch.stack([value + Laplace(0.0, 2.0).sample() for value in clip_l1(x)])


def noise_put_together(x: list[float]) -> Tensor:
    return clip_l1(x) + torch.cat([Laplace(0.0, 2.0).sample((1,)), Laplace(0.0, 2.0).sample((2,))])


def by_items(x: list[float]) -> list[float]:
    return [value + Laplace(0.0, 2.0).sample().item() for value in clip_l1(x).tolist()]


def from_numpy(x: list[float]) -> Tensor:
    return clip_l1(x) + torch.from_numpy(np.random.default_rng().laplace(scale=2, size=3)).float()


def inverse_cdf(x: list[float]) -> Tensor:
    u = torch.rand(3, dtype=torch.float64) - 0.5
    return clip_l1(x) - 2 * torch.sign(u) * torch.log1p(-2 * u.abs())


def wrong_uniform(x: list[float]) -> Tensor:
    u = torch.rand(3, dtype=torch.float64)
    return clip_l1(x) - 2 * torch.sign(u) * torch.log1p(-2 * u.abs())


def wrong_uniform_replaced(x: list[float]) -> Tensor:
    return torch.nan_to_num(wrong_uniform(x))


def full_of_one(x: list[float]) -> Tensor:
    return clip_l1(x) + torch.ones(3) * Laplace(0.0, 2.0).sample()


def clipped_after(x: list[float]) -> Tensor:
    return torch.clamp(torch.tensor(x) + Laplace(0.0, 2.0).sample((3,)), -1, 1)


def clamped(x: list[float]) -> Tensor:
    return torch.clamp(clip_l1(x) + Laplace(0.0, 2.0).sample((3,)), -1, 1)


def wrong_norm(x: list[float]) -> Tensor:
    return clip_l2(x) + Laplace(0.0, 2.0).sample((3,))


def clipped_singly(x: list[float]) -> Tensor:
    """Two tensors, each of norm 1 at most."""
    return torch.cat([clip_l1(x[:2]), clip_l1(x[2:])]) + Laplace(0.0, 2.0).sample((len(x),))


def clipped_together(x: list[float]) -> Tensor:
    return clip_l1(x) + Laplace(0.0, 2.0).sample((len(x),))


def nan_replaced(x: list[float]) -> Tensor:
    return torch.nan_to_num(torch.tensor(x) + Laplace(0.0, 2.0).sample((3,)))


def nan_replaced_first(x: list[float]) -> Tensor:
    vector = torch.nan_to_num(torch.tensor(x))
    return vector / vector.abs().sum().clamp(min=1.0) + Laplace(0.0, 2.0).sample((3,))


def rounded_before(x: list[float]) -> Tensor:
    return torch.round(torch.tensor(x)) + Laplace(0.0, 0.5).sample((3,))


def token(x: list[float]) -> int:
    """Right for ε = 1: logits within ¼ of 0."""
    return int(torch.multinomial(torch.softmax(torch.tensor(x).clamp(-0.25, 0.25), 0), 1))


def token_by_distribution(x: list[float]) -> int:
    return int(Categorical(logits=torch.tensor(x).clamp(-0.25, 0.25)).sample())


def unclipped(x: list[float]) -> int:
    return int(Categorical(logits=torch.tensor(x)).sample())


def top_k(x: list[float]) -> int:
    logits = torch.tensor(x)
    kept = torch.where(logits >= logits.topk(2).values[-1], logits.clamp(-0.25, 0.25), -torch.inf)
    return int(torch.multinomial(torch.softmax(kept, 0), 1))


def temperature_after_argmax(x: list[float]) -> tuple[int, int]:
    logits = torch.tensor(x)
    return int(logits.argmax()), int(Categorical(logits=logits.clamp(-0.25, 0.25)).sample())


def unclipped_sequence(x: list[float]) -> list[int]:
    tokens: list[int] = torch.multinomial(torch.softmax(torch.tensor(x), 0), 2, replacement=True).tolist()
    return tokens
