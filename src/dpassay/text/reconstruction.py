"""The attack: which of M candidates was it, judging by the rewritten text alone?

Whoever has the model can rewrite the candidates as often as he likes and look at the noisy vectors, too. From such
rewritings he learns to guess the noisy vector that a text was written from: by ridge regression on the vector that the
model reads from the text, apart for short and long texts, since a long text tells more. How likely each candidate is
follows from the distance of its own vector to the guessed one, with the noise marginalised by these Monte Carlo draws.
Nothing here needs to be right for an audit to be right: a bad attack only wins less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpassay.errors import InputError
from dpassay.text.rewriting import Rewriter
from dpassay.text.words import PAD

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]

DRAWS = 400  # rewritings of each candidate to learn from
LIKELIHOOD_DRAWS = 64  # noises for each candidate where the writer's likelihood is used
CALIBRATION = 10_000  # of the rewritings, at most, on which probabilities are calibrated
LENGTHS = (0.2, 0.4, 0.6, 0.8)  # quantiles of texts' lengths, between which they are treated alike
RIDGE = 5.0
AT_ONCE = 4096
SHARPNESS = np.geomspace(0.01, 1000.0, 31)  # of the likelihood as a function of the distance, to choose from


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A guesser for `dpassay.audit(rewriter, candidates=…, guesser=…)`.

    Called with texts it gives a score for each candidate: the probability of the likeliest, and 0 for all others. So
    an audit abstains where the likeliest is not likely.
    """

    rewriter: Rewriter
    candidates: tuple[str, ...]
    vectors: Floats
    lengths: Floats  # at which texts are told apart into short and long
    weights: Floats
    sharpness: float
    offsets: Floats
    draws: int
    __name__: str = field(default="that reconstructs the input from the rewritten text", repr=False)

    def __call__(self, texts: Sequence[Any]) -> Floats:
        """The scores."""
        scores = np.zeros((len(texts), len(self.candidates)))
        if len(texts):
            logs = self.log_posterior([text if isinstance(text, str) else "" for text in texts])
            best = logs.argmax(axis=1)
            rows = np.arange(len(texts))
            scores[rows, best] = np.exp(logs[rows, best])
        return scores

    def log_posterior(self, texts: Sequence[str]) -> Floats:
        """The logarithm of the probability of each candidate, if all were equally likely before."""
        guessed = _times(_features(*_read(self.rewriter, texts), self.lengths), self.weights)
        logs = self.sharpness * _times(guessed, self.vectors.T) + self.offsets
        return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))

    def log_likelihood(self, text: str, seed: int = 0) -> Floats:
        """For each candidate, how likely the writer is to write this text, averaged over noises: slow, one text."""
        import torch

        rewriter, rng = self.rewriter, np.random.default_rng(seed)
        network = rewriter.model.network
        numbers = torch.from_numpy(rewriter.model.vocabulary.numbers([text], network.shape.longest))
        noise = rewriter.release.sample(np.zeros((LIKELIHOOD_DRAWS, rewriter.dim)), rng)  # the same for all candidates
        found = np.empty(len(self.candidates))
        with torch.no_grad():
            for i, vector in enumerate(self.vectors):
                noisy = torch.from_numpy((rewriter.stretch * (vector + noise)).astype(np.float32)).to(network.device)
                rows = numbers.to(network.device).expand(len(noisy), -1)
                found[i] = logsumexp(network.log_likelihood(noisy, rows).cpu().numpy().astype(float))
        return np.asarray(found - np.log(LIKELIHOOD_DRAWS))


def learn(
    rewriter: Rewriter,
    candidates: Sequence[str],
    draws: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Reconstruction:
    """Learn to reconstruct some candidates, from rewritings of them that nobody is tested on: 400 each by default."""
    draws = DRAWS * len(candidates) if draws is None else draws
    if len(set(candidates)) < 2:
        raise InputError(f"a reconstruction needs 2 different candidates or more, got {len(set(candidates))}")
    if draws < 100:
        raise InputError(f"a reconstruction needs 100 draws or more to learn from, got {draws}")
    rng = np.random.default_rng([seed, 0xADE])
    vectors = rewriter.release.bounded(rewriter.model.vectors(list(candidates)))
    who = rng.integers(0, len(candidates), draws)
    read, seen = [], []
    for start in range(0, draws, AT_ONCE):
        noisy = rewriter.release.sample(vectors[who[start : start + AT_ONCE]], rng)
        read.append(_read(rewriter, rewriter.write(noisy)))
        seen.append(_as_seen(rewriter, noisy))
        if progress is not None:
            progress(min(start + AT_ONCE, draws), draws, "learning to reconstruct")
    reread, lengths = (np.concatenate(parts) for parts in zip(*read, strict=True))
    edges = np.unique(np.quantile(lengths, LENGTHS))
    table, target = _features(reread, lengths, edges), np.concatenate(seen)
    product = table.T @ table + RIDGE * np.eye(table.shape[1], dtype=np.float32)
    weights = np.linalg.solve(product.astype(np.float64), (table.T @ target).astype(np.float64))
    some = slice(0, CALIBRATION)
    sharpness, offsets = _calibrated(_times(_times(table[some], weights), vectors.T), who[some])
    return Reconstruction(rewriter, tuple(candidates), vectors, edges, weights, sharpness, offsets, draws)


def _calibrated(nearness: Floats, who: NDArray[np.int64]) -> tuple[float, Floats]:
    """How sharply probability falls with distance, and what it is for each candidate at no distance.

    Of some values the one that gives the true candidates the highest likelihood. Each candidate's probabilities,
    averaged over all texts, are to be equal: so often it was drawn.
    """
    best, found = -np.inf, (0.0, np.zeros(nearness.shape[1]))
    for sharpness in SHARPNESS / max(float(nearness.std()), 1e-12) * 0.1:
        logs = sharpness * nearness
        offsets = np.zeros(nearness.shape[1])
        for _ in range(3):
            posterior = logs + offsets - logsumexp(logs + offsets, axis=1, keepdims=True)
            offsets -= logsumexp(posterior, axis=0) - np.log(len(logs) / nearness.shape[1])
        posterior = logs + offsets - logsumexp(logs + offsets, axis=1, keepdims=True)
        likelihood = float(posterior[np.arange(len(who)), who].mean())
        if likelihood > best:
            best, found = likelihood, (float(sharpness), offsets)
    return found


def _as_seen(rewriter: Rewriter, noisy: Floats) -> NDArray[np.float32]:
    """Noisy vectors as the writer sees them: that is all that a text can tell of them."""
    import torch

    with torch.no_grad():
        given = torch.from_numpy((rewriter.stretch * noisy).astype(np.float32))
        return np.asarray(rewriter.model.network.seen(given).numpy())


def _read(rewriter: Rewriter, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The vector that the model reads from each text, and how many words the text has."""
    model = rewriter.model
    numbers = model.vocabulary.numbers(texts, model.network.shape.longest)
    return model.network.vectors(numbers), (numbers != PAD).sum(axis=1) - 1


def _features(vectors: NDArray[np.float32], lengths: NDArray[np.int64], edges: Floats) -> NDArray[np.float32]:
    """The vectors and a one, in columns of their own for each range of lengths."""
    place = np.searchsorted(edges, lengths)
    table = np.zeros((len(vectors), len(edges) + 1, vectors.shape[1] + 1), dtype=np.float32)
    rows = np.arange(len(vectors))
    table[rows, place, :-1] = vectors
    table[rows, place, -1] = 1.0
    return table.reshape(len(vectors), -1)


def _times(rows: NDArray[Any], matrix: NDArray[Any]) -> Floats:
    """A matrix product in double precision: each row's numbers must not depend on how many rows there are."""
    return np.asarray(rows, dtype=np.float64) @ np.asarray(matrix, dtype=np.float64)


def far_apart(rewriter: Rewriter, texts: Sequence[str], number: int) -> list[str]:
    """So many texts whose vectors lie far apart: each next one is the farthest from those chosen before."""
    different = list(dict.fromkeys(texts))
    if len(different) <= number:
        return different
    vectors = rewriter.release.bounded(rewriter.model.vectors(different))
    chosen = [int(np.abs(vectors - vectors.mean(axis=0)).sum(axis=1).argmax())]
    nearest = np.full(len(different), np.inf)
    while len(chosen) < number:
        nearest = np.minimum(nearest, np.abs(vectors - vectors[chosen[-1]]).sum(axis=1))
        chosen.append(int(nearest.argmax()))
    return [different[i] for i in chosen]
