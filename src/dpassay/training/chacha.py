"""ChaCha20 (RFC 8439) on many blocks at once, on any device of torch: random numbers that need the key to predict.

Words are 32 bits in 64-bit integers, so that nothing depends on how a device treats overflow. It needs torch alone.
"""

from __future__ import annotations

import struct

import torch
from torch import Tensor

CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
MASK = 0xFFFFFFFF
WORDS = 16  # of 32 bits, in a block
QUARTERS = (  # which words a round mixes: columns, then diagonals
    *((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)),
    *((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)),
)


def blocks(key: bytes, first: int, count: int, device: torch.device, nonce: bytes = bytes(12)) -> Tensor:
    """Blocks `first` to `first + count - 1` of the key stream: a row of 16 words each."""
    if not 0 <= first <= first + count <= 1 << 32:
        raise ValueError(f"a key stream has 2^32 blocks, got {first} to {first + count}")
    fixed = [*CONSTANTS, *struct.unpack("<8I", key), 0, *struct.unpack("<3I", nonce)]
    begin = torch.tensor(fixed, dtype=torch.int64, device=device)[:, None].repeat(1, count)
    begin[12] = torch.arange(first, first + count, device=device)
    state = [row.clone() for row in begin]
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[x].add_(state[y]).bitwise_and_(MASK)
                mixed = state[z].bitwise_xor_(state[x])
                state[z] = (mixed << turn).bitwise_and_(MASK).bitwise_or_(mixed >> (32 - turn))
    return torch.stack(state).add_(begin).bitwise_and_(MASK).T


def uniform_doubles(key: bytes, first: int, count: int, device: torch.device) -> Tensor:
    """Numbers in [0, 1), multiples of 2^-53, from the blocks from `first` on; a block has eight.

    >>> uniform_doubles(bytes(32), 0, 3, torch.device("cpu")).shape
    torch.Size([3])
    """
    words = blocks(key, first, -(-count // 8), device).reshape(-1, 2)[:count]
    return (((words[:, 1] << 21) | (words[:, 0] >> 11)).double()).mul_(2.0**-53)
