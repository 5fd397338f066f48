"""The search for the worst pair of words on a GPU: as `worst_pair` does it on a CPU, with torch and Triton."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dpassay.compute.kernels import triton_word_gaps as kernels
from dpassay.words.mechanisms import ScoredWords
from dpassay.words.vocabulary import Array
from dpassay.words.worst_pair import AIMS, BLOCK, SINGLE, Errors, WordRows, laws_of

STRIP = 1024  # words whose scores are computed at a time


def log_sum(scores: torch.Tensor) -> torch.Tensor:
    """ln Σ e^score of each row."""
    top = scores.amax(1)
    return top + (scores - top[:, None]).exp().sum(1).log()


class Blocks:
    """Like `worst_pair._Blocks`; anything as large as all pairs stays on the GPU."""

    def __init__(self, mechanism: ScoredWords, metric: str, epsilon: float, short: bool) -> None:
        self.mechanism, self.metric, self.epsilon, self.short = mechanism, metric, epsilon, short
        self.vectors = torch.from_numpy(mechanism.vocabulary.vectors.copy()).to(kernels.DEVICE)
        self.words = len(self.vectors)
        self.laws = laws_of(mechanism)
        # A row for each output and a column for each word, repeated to fill the kernel's blocks.
        self.width = self.words + -self.words % BLOCK
        outputs = 0 if short else self.words + -self.words % kernels.UNROLLED.value
        self.single, self.apart = (self._empty(rows) for rows in (outputs, 0 if short else self.width))
        parts = [self._prepare(start) for start in range(0, self.words, STRIP)]
        if not short:
            self.single[self.words :] = self.single[self.words - 1]
            self.single[:, self.words :] = self.single[:, self.words - 1 : self.words]
        self.sums, *ends = (torch.cat(part) for part in zip(*parts, strict=True))
        self.rows = WordRows(self.sums.cpu().numpy(), *(end.cpu().numpy() for end in ends))
        self.errors = Errors.of(mechanism, self.rows, metric)

    def _empty(self, rows: int) -> torch.Tensor:
        return torch.zeros((rows, self.width), dtype=torch.float32, device=kernels.DEVICE)

    def _prepare(self, start: int) -> tuple[torch.Tensor, ...]:
        strip = slice(start, min(start + STRIP, self.words))
        own = self._apart(strip, self.mechanism.metric)
        scores = self.mechanism.row_scores(own, start)
        if not self.short:
            self.apart[strip, : self.words] = (
                own if self.metric == self.mechanism.metric else self._apart(strip, self.metric)
            )
            self.single[: self.words, strip] = scores.t()
        return log_sum(scores), scores.amin(1), scores.amax(1)

    def _apart(self, rows: slice, metric: str, others: slice | None = None) -> torch.Tensor:
        return kernels.distances(self.vectors[rows], self.vectors[others or slice(None)], metric)

    def _scores(self, rows: slice) -> Any:
        return self.mechanism.row_scores(self._apart(rows, self.mechanism.metric), rows.start)

    def _losses(self, rows: slice, others: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses in doubles, and distances."""
        if self.short:
            gaps = -self.mechanism.scores(self._apart(rows, self.mechanism.metric, others))
        else:
            first, second = (self._scores(part) for part in (rows, others))
            gaps = torch.stack([(row - second).amax(1) for row in first])
        return gaps + (self.sums[None, others] - self.sums[rows, None]), self._apart(rows, self.metric, others)

    def bounds(self) -> NDArray[Any]:
        if self.short:
            return np.stack([self._short_bounds(start) for start in range(0, self.words, BLOCK)], axis=1)
        # Single precision throughout: docs/proofs/vocabulary.md, point 6.
        size = self.rows.spread + float(abs(self.rows.log_sums).max()) + 1
        margin = 16 * SINGLE * size + self.errors.loss + self.epsilon * self.errors.absolute
        less = 1 - 16 * SINGLE - self.errors.relative
        limits = torch.tensor([margin, less, self.epsilon], dtype=torch.float32, device=kernels.DEVICE)
        sums = torch.nn.functional.pad(self.sums.to(torch.float32), (0, self.width - self.words))
        laws = torch.full((self.width,), -1, dtype=torch.int32)
        laws[: self.words] = torch.from_numpy(self.laws)
        found = kernels.block_bounds(self.single, sums, laws.to(kernels.DEVICE), self.apart, limits, self.words, BLOCK)
        rounded = found.cpu().numpy().astype(np.float64)
        return rounded + 64 * SINGLE * abs(np.where(np.isfinite(rounded), rounded, 0.0))

    def _short_bounds(self, start: int) -> NDArray[Any]:
        """Bounds for one block with every other, in doubles: no loop over outputs."""
        losses, apart = self._losses(slice(start, start + BLOCK), slice(0, self.words))
        laws = torch.from_numpy(self.laws).to(kernels.DEVICE)
        same = laws[None, :] == laws[start : start + BLOCK, None]
        found = []
        for aim in AIMS:
            above = self.errors.above(aim, losses, apart, self.epsilon)
            above = above.masked_fill(same, -torch.inf)
            tallest = torch.nn.functional.pad(above.amax(0), (0, -self.words % BLOCK), value=-torch.inf)
            found.append(tallest.reshape(-1, BLOCK).amax(1).cpu().numpy())
        return np.array(found)

    def exactly(self, i: int, j: int) -> tuple[Array, Array]:
        blocks = (slice(n * BLOCK, min((n + 1) * BLOCK, self.words)) for n in (i, j))
        losses, apart = (part.cpu().numpy() for part in self._losses(*blocks))
        return losses, apart

    def output(self, x: int, y: int) -> int:
        if self.short:
            return x
        first, second = (self._scores(slice(n, n + 1))[0] for n in (x, y))
        return int((first - second).argmax())

    def extreme(self, x: int, sign: int) -> int:
        return int((sign * self._scores(slice(x, x + 1))[0]).argmax())
