"""White-box canaries: units without sentences, each with its own update that is far too long.

A canary pulls one coordinate of every large tensor as hard as it may. An attacker who sees the noisy sum of each round
looks along the same coordinates. If the sum is bounded as stated, a canary that takes part moves it by at most the
clip.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpassay.errors import InputError
from dpassay.training.aggregation import Part
from dpassay.training.federated import Federated

LONG = 1e6  # times the clip: a canary's update before clipping
_LARGEST = 50.0  # exponent


class CanaryRounds(Federated):
    """Federated averaging with canaries, the last units of its aggregation; `scores` measures how visible each one was.

    The aggregation counts all canaries as units. Those that are not `included` are drawn like the others, but
    contribute nothing.
    """

    def __init__(self, *parts: Any, included: NDArray[np.bool_], seed: int = 0) -> None:
        super().__init__(*parts)
        if self.aggregation is None:
            raise InputError("canaries need bounded updates: train with user or entity privacy")
        self.included, self.evidence = included, np.zeros(len(included))
        self.places, self.weight = self._places(np.random.default_rng([seed, 7]))

    def _places(self, rng: np.random.Generator) -> tuple[Tensor, float]:
        """For each canary a coordinate in every tensor that has one for each of them."""
        starts = np.cumsum([0, *(tensor.numel() for tensor in self.weights.values())])
        many = len(self.included)
        chosen = [
            start + rng.permutation(tensor.numel())[:many]
            for start, tensor in zip(starts[:-1].tolist(), self.weights.values(), strict=True)
            if tensor.numel() >= many
        ]
        if not chosen:
            raise InputError(f"no tensor of the model has {many:,} weights, one for each canary: use fewer canaries")
        return torch.from_numpy(np.stack(chosen, axis=1)).to(self.device), 1 / math.sqrt(len(chosen))

    def _parts(self, cells: Sequence[int], number: int) -> Iterator[Part]:
        first = len(self.sentences.cells)
        if own := [cell for cell in cells if cell < first]:
            yield from super()._parts(own, number)
        canaries = [cell for cell in cells if cell >= first]
        for start in range(0, len(canaries), self.local.together):
            some = canaries[start : start + self.local.together]
            yield some, self._updates(np.array(some) - first)

    def _updates(self, canaries: NDArray[np.int64]) -> dict[str, Tensor]:
        assert self.aggregation is not None
        pull = torch.from_numpy(self.included[canaries]).to(self.device) * (LONG * self.aggregation.sensitivity)
        rows = torch.zeros(len(canaries), self.size, device=self.device)
        rows.scatter_(1, self.places[canaries], (pull[:, None] * self.weight).expand(-1, self.places.shape[1]).float())
        parts = torch.split(rows, [tensor.numel() for tensor in self.weights.values()], dim=1)
        named = zip(self.weights.items(), parts, strict=True)
        return {name: part.view(len(canaries), *tensor.shape) for (name, tensor), part in named}

    def released(self, noisy: Tensor) -> None:
        """Add to each canary's evidence how much likelier this sum is if the canary may have taken part."""
        assert self.aggregation is not None
        moved = noisy[self.places].sum(1).double().cpu().numpy() * self.weight * (self.randomness.step or 1.0)
        far, rate, variance = self.aggregation.sensitivity, self.aggregation.rate, self.deviation**2
        ratio = np.clip(far * (moved - far / 2) / variance, -_LARGEST, _LARGEST)
        self.evidence += np.log1p(rate * np.expm1(ratio))

    def state(self) -> dict[str, NDArray[Any]]:
        return {**super().state(), "canary:evidence": self.evidence}

    def resume(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        super().resume(state, done)
        self.evidence = np.array(state["canary:evidence"])

    @property
    def scores(self) -> NDArray[np.float64]:
        """How much likelier all observations are if the canary was included, on a logarithmic scale."""
        return self.evidence.copy()
