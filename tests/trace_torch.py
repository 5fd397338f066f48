"""Mechanisms in torch, each fault beside the code that does it right: claimed to be 1-DP between any two inputs."""

import torch
from torch import Tensor, nn
from torch.distributions import Laplace, Normal


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
