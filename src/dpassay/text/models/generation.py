"""Logits of a causal or encoder-decoder network, token by token, with earlier computations cached.

A network is anything that can be called like a model of transformers, with `input_ids`, `attention_mask`,
`past_key_values` and `use_cache`, and returns `logits` and `past_key_values`.

`Alone` reads each prompt by itself: no padding is computed, what all prompts begin with is read once, and equal prompts
are read once. A GPU is faster with all prompts in one table.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad


def padded(rows: Sequence[Sequence[int]], pad: int, length: int, left: bool) -> tuple[Tensor, Tensor]:
    """Rows of token numbers in a table, and its mask: padded on the left if they are to be continued.

    >>> table, mask = padded([[5, 6], [7]], pad=0, length=2, left=True)
    >>> table.tolist(), mask.tolist()
    ([[5, 6], [0, 7]], [[1, 1], [0, 1]])
    """
    free = [length - len(row) for row in rows]
    table = [[*[pad] * n * left, *row, *[pad] * n * (not left)] for n, row in zip(free, rows, strict=True)]
    mask = [[*[0] * n * left, *[1] * len(row), *[0] * n * (not left)] for n, row in zip(free, rows, strict=True)]
    return torch.tensor(table, dtype=torch.long), torch.tensor(mask, dtype=torch.long)


class Writing:
    """Prompts that a network continues: `logits` are those of the next tokens, one row per prompt."""

    def __init__(self, network: Any, prompts: Tensor, mask: Tensor, start: int | None = None, past: Any = None) -> None:
        """`start` is the token with which the decoder of an encoder-decoder begins; None for a causal network.

        `past` is what was cached of the tokens before the prompts, which the mask covers too.
        """
        self.network, self.mask, self.start = network, mask, start
        self._past: Any = past
        self._more: dict[str, Any] = {}
        self._takes = inspect.signature(network.forward).parameters
        if start is None:
            self.logits = self._read(prompts)
        else:
            self._more = {"encoder_outputs": network.get_encoder()(input_ids=prompts, attention_mask=mask)}
            self.logits = self._read(torch.full_like(prompts[:, :1], start))

    def write(self, tokens: Tensor) -> None:
        """Append a token to each row; `logits` are then those of the tokens after it."""
        if self.start is None:
            self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=1)
        self.logits = self._read(tokens[:, None])

    def _read(self, tokens: Tensor) -> Tensor:
        given = {**self._more, "past_key_values": self._past, "attention_mask": self.mask, "use_cache": True}
        given["input_ids" if self.start is None else "decoder_input_ids"] = tokens
        if self.start is None and "position_ids" in self._takes:
            given["position_ids"] = positions(self.mask)[:, -tokens.shape[1] :]
        if "logits_to_keep" in self._takes:
            given["logits_to_keep"] = 1
        answer = self.network(**given)
        self._past = answer.past_key_values
        return answer.logits[:, -1]  # type: ignore[no-any-return]

    @classmethod
    def together(cls, parts: Sequence[Writing], length: int) -> Writing:
        """Prompts that were read one by one, as one table of this length, padded on the left."""
        made = cls.__new__(cls)
        first = parts[0]
        made.network, made.start, made._more, made._takes = first.network, None, {}, first._takes
        free = [length - part.mask.shape[1] for part in parts]
        made.mask = torch.cat([pad(part.mask, (n, 0)) for part, n in zip(parts, free, strict=True)])
        made.logits = torch.cat([part.logits for part in parts])
        cached = zip(*(_layers(part._past) for part in parts), strict=True)
        made._past = type(first._past)(
            [
                tuple(
                    torch.cat([pad(layer[i], (0, 0, n, 0)) for layer, n in zip(layers, free, strict=True)])
                    for i in range(2)
                )
                for layers in cached
            ]
        )
        return made


class Alone:
    """Prompts that begin with the same tokens, each read by itself, by a causal network with a plain cache."""

    def __init__(self, network: Any, before: Sequence[int]) -> None:
        """`before` is what all prompts begin with."""
        self.network, self.before = network, list(before)
        self.past = Writing(network, *self._table(self.before))._past

    @property
    def possible(self) -> bool:
        """Whether the network caches keys and values of each place, one after the other, and nothing else."""
        layers = getattr(self.past, "layers", [])
        plain = type(self.past).__name__ == "DynamicCache" and len(layers) > 0
        return plain and all(type(layer).__name__ == "DynamicLayer" for layer in layers)

    def read(self, prompts: Sequence[Sequence[int]], length: int) -> Writing:
        """The prompts as one table of this length. No digit of a row depends on the other rows."""
        begun: dict[tuple[int, ...], Writing] = {}
        for prompt in prompts:
            if (given := tuple(prompt)) not in begun:
                table, _ = self._table(given[len(self.before) :])
                whole = torch.ones(1, len(given), dtype=torch.long, device=table.device)
                past = type(self.past)([(keys, values) for keys, values in _layers(self.past)])
                begun[given] = Writing(self.network, table, whole, past=past)
        return Writing.together([begun[tuple(prompt)] for prompt in prompts], length)

    def _table(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        table = torch.tensor([list(tokens)], dtype=torch.long, device=self.network.device)
        return table, torch.ones_like(table)


def _layers(past: Any) -> list[tuple[Tensor, Tensor]]:
    """The keys and values of each layer of a cache."""
    return [(layer.keys, layer.values) for layer in past.layers]


def positions(mask: Tensor) -> Tensor:
    """The place of each token in its row; padding before it does not count.

    >>> positions(torch.tensor([[0, 1, 1]])).tolist()
    [[0, 0, 1]]
    """
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


def forced(network: Any, prompts: Tensor, mask: Tensor, tokens: Sequence[int], start: int | None = None) -> Tensor:
    """The logits of each of the given tokens after each prompt, computed in one pass."""
    written = torch.tensor([list(tokens[:-1])] * len(prompts), dtype=torch.long, device=prompts.device)
    given: dict[str, Any] = {"input_ids": prompts, "attention_mask": mask}
    if start is None:
        mask = torch.cat([mask, torch.ones_like(written)], dim=1)
        given = {"input_ids": torch.cat([prompts, written], dim=1), "attention_mask": mask}
        if "position_ids" in inspect.signature(network.forward).parameters:
            given["position_ids"] = positions(mask)
    else:
        given["decoder_input_ids"] = torch.cat([torch.full_like(prompts[:, :1], start), written], dim=1)
    return network(**given).logits[:, -len(tokens) :]  # type: ignore[no-any-return]
