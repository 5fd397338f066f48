"""Logits of a causal or encoder-decoder network, token by token, with earlier computations cached.

A network is anything that can be called like a model of transformers, with `input_ids`, `attention_mask`,
`past_key_values` and `use_cache`, and returns `logits` and `past_key_values`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


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

    def __init__(self, network: Any, prompts: Tensor, mask: Tensor, start: int | None = None) -> None:
        """`start` is the token with which the decoder of an encoder-decoder begins; None for a causal network."""
        self.network, self.mask, self.start = network, mask, start
        self._past: Any = None
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
