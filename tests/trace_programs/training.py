"""Training loops: gradients that are clipped and noised, and the loaders that choose the records of a step."""

import math
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from trace_programs.program import INF, Program, adding_to, gaussian

PROGRAMS: list[Program] = []
training = adding_to(PROGRAMS, "training")


# One step from w = 0: the gradient of a record (a, b) is −b a, clipped to [−1, 1]. Then the noise is Gaussian.
@training([[1, 1], [2, 1]], [[1, 1], [2, -1]], 3, gaussian(2 / 4, 1e-5), delta=1e-5)
def clipped_step(rows, rng):
    gradients = [max(-1.0, min(1.0, -b * a)) for a, b in rows]
    return -0.1 * (sum(gradients) + rng.normal(0, 4)) / len(rows)


# The outlier's gradient is 100, and nobody clips it.
@training([[1, 1], [1, 1]], [[1, 1], [100, 1]], 3, gaussian(99 / 4, 1e-5), delta=1e-5)
def unclipped_step(rows, rng):
    gradients = np.array([-b * a for a, b in rows])
    return -0.1 * (gradients.sum() + rng.normal(0, 4)) / len(rows)


# The noise is made for the mean and added to the sum: 2 / (4 / 2).
@training([[1, 1], [2, 1]], [[1, 1], [2, -1]], 2.5, gaussian(2 / 2, 1e-5), delta=1e-5)
def noise_of_the_mean(rows):
    total = torch.stack([torch.tensor(-b * a).float().clamp(-1, 1) for a, b in rows]).sum()
    return float(total + torch.randn(()) * 4 / len(rows))


# The weight has noise, the intercept has none.
@training([[1, 1], [2, 1]], [[1, 1], [2, -1]], 3, INF, delta=1e-5, leak=1)
def noise_on_the_weight_alone(rows, rng):
    weight = sum(np.clip(-b * a, -1, 1) for a, b in rows) + rng.normal(0, 4)
    intercept = sum(np.clip(-b, -1, 1) for a, b in rows)
    return [float(weight), float(intercept)]


# Autograd: the squared error of w·a at w = 0 has the gradient −2ab, of norm 2 and clipped to 1.
@training([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, -1.0]], 5, gaussian(2 / 2, 1e-5), delta=1e-5)
def autograd_by_hand(rows):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    total = torch.zeros(1, 1)
    for a, b in rows:
        model.zero_grad()
        (model(torch.tensor([a])) - b).pow(2).sum().backward()
        gradient = model.weight.grad
        total += gradient / max(1.0, float(gradient.norm()))
    noisy = (total + 2 * torch.randn(1, 1)) / len(rows)
    return (-0.5 * noisy).flatten().tolist()


# The gradient of the whole batch is clipped, −4 and 0 before and −1 and 0 after; the noise is for 0.1.
@training([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, -1.0]], 5, gaussian(10, 1e-5), delta=1e-5)
def clipped_batch(rows):
    weight = torch.zeros(1, requires_grad=True)
    a, b = torch.tensor(rows).T
    ((a * weight - b) ** 2).sum().backward()
    gradient = weight.grad.clamp(-1, 1)
    return float(gradient + 0.1 * torch.randn(1))


# Three epochs; the order of the batches does not show in a sum: each record three times, noise of six steps.
@training([1.0, 0.0, 0.5, 0.5], [-1.0, 0.0, 0.5, 0.5], 5, gaussian(6 / (3 * math.sqrt(6)), 1e-5), delta=1e-5)
def shuffled_epochs(rows):
    rows, weight = list(rows), 0.0
    for _ in range(3):
        random.shuffle(rows)
        for start in (0, 2):
            weight += sum(rows[start : start + 2]) + random.gauss(0, 3)
    return weight


# δ(ε) = 0.9 Φ(−t) + 0.1 Φ(1 − t) − e^ε Φ(−t), where 0.9 + 0.1 e^(t − ½) = e^ε. The other direction has less.
@training([0.0, 0.0], [0.0, 0.0, 1.0], 1.8, 1.6845438143, delta=1e-5)
def poisson_step(rows, rng):
    batch = [v for v in rows if rng.random() < 0.1]
    return float(sum(batch) + rng.normal(0, 1))


# The same without sampling, and the claim of the sampled one.
@training([0.0, 0.0], [0.0, 0.0, 1.0], 1.8, gaussian(1, 1e-5), delta=1e-5)
def poisson_step_that_takes_all(rows, rng):
    batch = [v for v in rows if rng.random() < 0.1 or True]
    return float(sum(batch) + rng.normal(0, 1))


@training([1.0, 0.5], [1.0, 0.5, 0.5], 1, INF, leak=1)
def size_of_the_data(rows, rng):
    return {"examples": len(rows), "mean": float(np.mean(rows) + rng.laplace(scale=10))}


# Two epochs, each record once in each; noise of four steps.
@training([1.0, 0.0, 0.5, 0.5], [-1.0, 0.0, 0.5, 0.5], 5, gaussian(4 / (3 * math.sqrt(4)), 1e-5), delta=1e-5)
def shuffled_loader(rows):
    loader = DataLoader(TensorDataset(torch.tensor(rows)), batch_size=2, shuffle=True)
    weight = 0.0
    for _ in range(2):
        for (batch,) in loader:
            weight += float(batch.clamp(-1, 1).sum() + 3 * torch.randn(()))
    return weight


# Two of four records are in the batch: ½ N(0, 1) + ½ N(1, 1) against ½ N(0, 1) + ½ N(−1, 1), by quadrature.
# Opacus says 3.89: it takes Poisson sampling, and a record that is added.
@training([1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], 3.89, 4.2226075630, delta=1e-5)
def shuffled_loader_accounted_as_poisson(rows):
    from opacus.accountants import RDPAccountant

    loader = DataLoader(TensorDataset(torch.tensor(rows)), batch_size=2, shuffle=True)
    accountant = RDPAccountant()
    (batch,) = next(iter(loader))
    accountant.step(noise_multiplier=1.0, sample_rate=2 / len(rows))
    return float(batch.clamp(-1, 1).sum() + torch.randn(()))


# The record is drawn k times with the binomial probabilities 9/16, 6/16 and 1/16: N(k, 1) against N(−k, 1).
@training([1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], 2, 6.5813534210, delta=1e-5)
def loader_with_replacement(rows):
    data = TensorDataset(torch.tensor(rows))
    loader = DataLoader(data, batch_size=2, sampler=RandomSampler(data, replacement=True, num_samples=2))
    (batch,) = next(iter(loader))
    return float(batch.clamp(-1, 1).sum() + torch.randn(()))


# The third record is in the batch that is dropped.
@training([1.0, 0.5], [1.0, 0.5, 1.0], 1, 0, delta=1e-5)
def last_batch_dropped(rows):
    loader = DataLoader(TensorDataset(torch.tensor(rows)), batch_size=2, drop_last=True)
    return sum(float(batch.sum() + 2 * torch.randn(())) for (batch,) in loader)


# The last batch is kept: one step more, and so one number more.
@training([1.0, 0.5], [1.0, 0.5, 1.0], 1, INF, delta=1e-5, leak=1)
def losses_of_all_batches(rows):
    loader = DataLoader(TensorDataset(torch.tensor(rows)), batch_size=2)
    return [float(batch.sum() + 10 * torch.randn(())) for (batch,) in loader]
