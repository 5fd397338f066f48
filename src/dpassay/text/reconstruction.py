"""The reconstruction attack: which of M candidates was the original, given only the rewritten text?

An attacker who has the model can rewrite the candidates any number of times and see the noisy vectors too. From these
rewritings it learns to predict the noisy vector that a text was written from: by ridge regression on the model's
encoding of the text, separately for short and long texts, since a long text reveals more. The probability of each
candidate follows from the distance between its own vector and the predicted one, with the noise marginalized by these
Monte Carlo draws. Nothing here affects the validity of an audit: a poor attack only refutes less.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpassay.audit.options import Progress
from dpassay.errors import InputError
from dpassay.text.models.words import PAD
from dpassay.text.rewriters.base import Rewriter
from dpassay.text.rewriters.vectors.latent import LatentRewriter
from dpassay.text.rewriters.vectors.release import Release

Floats = NDArray[np.float64]

DRAWS = 400  # rewritings of each candidate to learn from
LIKELIHOOD_DRAWS = 64  # draws of the noise per candidate, for the decoder's likelihood
FITTED = 3  # quarters of the rewritings that weights are fitted to; the others calibrate probabilities
FEWEST = 0.05  # smallest share of texts on which it guesses
LENGTHS = (0.2, 0.4, 0.6, 0.8)  # quantiles of text length that bound the ranges
RIDGE = 5.0
AT_ONCE = 4096
MOST_KEPT = 200_000  # guesses that are remembered
SHARPNESS = np.geomspace(0.01, 1000.0, 31)  # candidate values for how sharply the likelihood falls with the distance


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A distinguisher for `dpassay.audit(rewriter, candidates=…, guesser=…)`.

    Called with texts, it scores each candidate: 1 for the likeliest, and 0 for all others. It abstains (NaN) if the
    likeliest has a probability below `least`. That threshold was chosen from far more rewritings than an audit has
    when it begins, so the audit does not choose one itself.
    """

    rewriter: LatentRewriter
    candidates: tuple[str, ...]
    vectors: Floats
    lengths: Floats  # boundaries between short and long texts
    weights: Floats
    sharpness: float
    offsets: Floats
    least: float
    draws: int
    __name__: str = field(default="that reconstructs the input from the rewritten text", repr=False)
    _guessed: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, texts: Sequence[Any]) -> Floats:
        """Score each candidate for each text. An audit asks for the same texts several times."""
        asked = [text if isinstance(text, str) else "" for text in texts]
        if len(self._guessed) > MOST_KEPT:
            self._guessed.clear()
        if unknown := [text for text in dict.fromkeys(asked) if text not in self._guessed]:
            self._guessed.update(zip(unknown, self._guesses(unknown), strict=True))
        guesses = np.array([self._guessed[text] for text in asked], dtype=np.int64)
        scores = np.zeros((len(asked), len(self.candidates)))
        scores[np.arange(len(asked)), guesses] = 1.0
        scores[guesses < 0] = np.nan
        return scores

    def _guesses(self, texts: Sequence[str]) -> list[int]:
        """The likeliest candidate for each text, or -1."""
        logs = self.log_posterior(texts)
        best = logs.argmax(axis=1)
        likely = np.exp(logs[np.arange(len(texts)), best]) >= self.least
        return [int(guess) for guess in np.where(likely, best, -1)]

    def log_posterior(self, texts: Sequence[str]) -> Floats:
        """The log probability of each candidate, with a uniform prior."""
        logs = self.sharpness * _times(guessed_vectors(self, texts), self.vectors.T) + self.offsets
        return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))

    def log_likelihood(self, text: str, seed: int = 0) -> Floats:
        """For each candidate, the likelihood of this one text under the decoder, averaged over noise. Slow."""
        import torch

        rewriter, rng = self.rewriter, np.random.default_rng(seed)
        network = rewriter.model.network
        numbers = torch.from_numpy(rewriter.model.vocabulary.numbers([text], network.shape.longest))
        noise = rewriter.noise.sample(np.zeros((LIKELIHOOD_DRAWS, rewriter.dim)), rng)  # the same for all candidates
        found = np.empty(len(self.candidates))
        with torch.no_grad():
            for i, vector in enumerate(self.vectors):
                noisy = torch.from_numpy((rewriter.stretch * (vector + noise)).astype(np.float32)).to(network.device)
                rows = numbers.to(network.device).expand(len(noisy), -1)
                found[i] = logsumexp(network.log_likelihood(noisy, rows).cpu().numpy().astype(float))
        return np.asarray(found - np.log(LIKELIHOOD_DRAWS))


def guessed_vectors(attack: Reconstruction, texts: Sequence[str]) -> Floats:
    """The noisy vector that each rewritten text was probably written from, as the decoder sees it."""
    return _times(_features(*_read(attack.rewriter, texts), attack.lengths), attack.weights)


def learn(
    rewriter: LatentRewriter,
    candidates: Sequence[str],
    draws: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    claimed: float | None = None,
) -> Reconstruction:
    """Learn to tell candidates apart from rewritings of them, 400 each by default; no audit uses these rewritings.

    The abstention threshold is chosen so that the claimed epsilon, by default the mechanism's, is refuted as early as
    possible, if at all.
    """
    draws = DRAWS * len(candidates) if draws is None else draws
    if len(set(candidates)) < 2:
        raise InputError(f"a reconstruction needs 2 different candidates or more, got {len(set(candidates))}")
    if draws < 100:
        raise InputError(f"a reconstruction needs 100 draws or more to learn from, got {draws}")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    rng = np.random.default_rng([seed, 0xADE])
    vectors = rewriter.noise.bounded(rewriter.model.vectors(list(candidates)))
    who = rng.integers(0, len(candidates), draws)
    read, seen, known = [], [], []
    for start in range(0, draws, AT_ONCE):
        noisy = rewriter.noise.sample(vectors[who[start : start + AT_ONCE]], rng)
        read.append(_read(rewriter, rewriter.write(noisy)))
        seen.append(_as_seen(rewriter, noisy))
        known.append(_posterior_of_noisy(rewriter.noise, noisy, vectors))
        if progress is not None:
            progress(min(start + AT_ONCE, draws), draws, "learning to reconstruct")
    reread, lengths = (np.concatenate(parts) for parts in zip(*read, strict=True))
    edges = np.unique(np.quantile(lengths, LENGTHS))
    table, target = _features(reread, lengths, edges), np.concatenate(seen)
    fitted, held = slice(0, FITTED * draws // 4), slice(FITTED * draws // 4, draws)
    product = table[fitted].T @ table[fitted] + RIDGE * np.eye(table.shape[1], dtype=np.float32)
    weights = np.linalg.solve(product.astype(np.float64), (table[fitted].T @ target[fitted]).astype(np.float64))
    nearness = _times(_times(table[held], weights), vectors.T)
    sharpness, offsets = _calibrated(nearness, who[held])
    logs = sharpness * nearness + offsets
    posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    limit = 1 / (1 + (len(vectors) - 1) * np.exp(-(rewriter.noise.epsilon if claimed is None else claimed)))
    least = 0.0 if rewriter.noise.delta else _least(posterior, np.concatenate(known)[held], limit)
    return Reconstruction(rewriter, tuple(candidates), vectors, edges, weights, sharpness, offsets, least, draws)


def attack_on(
    rewriter: Rewriter,
    candidates: Sequence[str],
    draws: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Any:
    """The strongest attack available: an object with `log_posterior(texts)`.

    It uses the rewriter's own probabilities if there are any. For an autoencoder's noisy vectors it is the attack
    above. Otherwise it uses the words of rewritings of the candidates.
    """
    if isinstance(rewriter, LatentRewriter):
        return learn(rewriter, candidates, draws, seed, progress)
    from dpassay.text.attacks import ExactPosterior, NaiveBayesAttacker

    if hasattr(rewriter, "log_prob"):
        return ExactPosterior(rewriter, tuple(candidates))
    return NaiveBayesAttacker.learn(rewriter, candidates, draws or DRAWS * len(candidates), np.random.default_rng(seed))


def ranking(attack: Any, candidates: Sequence[str], text: str, most: int, seed: int = 0) -> list[dict[str, Any]]:
    """The likeliest candidates for a text, with probabilities; for an autoencoder, the decoder's likelihood too."""
    found = attack.log_posterior([text])[0]
    rows: list[dict[str, Any]] = [
        {"candidate": candidate, "log_probability": float(likely)}
        for candidate, likely in zip(candidates, found, strict=True)
    ]
    if isinstance(attack, Reconstruction):
        for row, likelihood in zip(rows, attack.log_likelihood(text, seed), strict=True):
            row["log_likelihood"] = float(likelihood)
    return sorted(rows, key=lambda row: -row["log_probability"])[:most]


def _least(posterior: Floats, known: NDArray[np.float32], limit: float) -> float:
    """The probability above which a guess pays off: many guesses, correct more often than the claim allows.

    The noisy vectors give a better estimate of how often a guess is correct than counting does: `known` holds the exact
    probabilities given those vectors. (For δ > 0 the limit applies to an attacker who always guesses.)
    """
    best = posterior.argmax(axis=1)
    rows = np.arange(len(best))
    order = np.argsort(-posterior[rows, best])
    right = np.cumsum(known[rows, best][order]) / (rows + 1)
    share = (rows + 1) / len(rows)
    gain = np.where(right > limit, share * (right - limit) ** 2, (right - 1) * 1e-9)
    gain[: max(1, int(FEWEST * len(rows)))] = -1.0
    return float(posterior[rows, best][order][int(gain.argmax())])


def log_densities(release: Release, noisy: Floats, vectors: Floats) -> Floats:
    """The log-density of each noisy vector for each candidate's vector, up to a constant: a row per noisy vector."""
    scale = release.scale()
    density: Callable[[Floats], Floats] = {
        "Laplace": lambda x: -np.abs(noisy - x).sum(axis=1) / scale,
        "Gaussian": lambda x: -((noisy - x) ** 2).sum(axis=1) / (2 * scale**2),
        "K-norm": lambda x: -np.sqrt(((noisy - x) ** 2).sum(axis=1)) / scale,
        "von Mises-Fisher": lambda x: noisy @ x / (scale * release.clip**2),
    }[release.recipe.noise]
    return np.stack([density(x) for x in vectors], axis=1)


def _posterior_of_noisy(release: Release, noisy: Floats, vectors: Floats) -> NDArray[np.float32]:
    """The exact probability of each candidate, given the noisy vector itself."""
    logs = log_densities(release, noisy, vectors)
    return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), dtype=np.float32)


def _calibrated(nearness: Floats, who: NDArray[np.int64]) -> tuple[float, Floats]:
    """How sharply probability falls with distance, and an offset for each candidate.

    The sharpness is the one that gives the true candidates the highest likelihood. The offsets make the candidates'
    average probabilities equal, since each was drawn equally often.
    """
    best, found = -np.inf, (0.0, np.zeros(nearness.shape[1]))
    for sharpness in SHARPNESS / max(float(nearness.std()), 1e-12) * 0.1:
        logs = sharpness * nearness
        offsets = np.zeros(nearness.shape[1])
        for _ in range(3):
            offsets -= np.log(_normalised(logs + offsets).mean(axis=0)) + np.log(nearness.shape[1])
        posterior = _normalised(logs + offsets)[np.arange(len(who)), who]
        likelihood = float(np.log(posterior).mean())
        if likelihood > best:
            best, found = likelihood, (float(sharpness), offsets)
    return found


def _normalised(logs: Floats) -> Floats:
    """The probabilities in each row, each at least 1e-300: that of a candidate far away must have a logarithm."""
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(np.maximum(likely / likely.sum(axis=1, keepdims=True), 1e-300))


def _as_seen(rewriter: LatentRewriter, noisy: Floats) -> NDArray[np.float32]:
    """Noisy vectors as the decoder sees them: a text can reveal no more."""
    import torch

    with torch.no_grad():
        given = torch.from_numpy((rewriter.stretch * noisy).astype(np.float32))
        return np.asarray(rewriter.model.network.seen(given).numpy())


def _read(rewriter: LatentRewriter, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The vector that the model encodes each text to, and the number of its words."""
    model = rewriter.model
    numbers = model.vocabulary.numbers(texts, model.network.shape.longest)
    return model.network.vectors(numbers), (numbers != PAD).sum(axis=1) - 1


def _features(vectors: NDArray[np.float32], lengths: NDArray[np.int64], edges: Floats) -> NDArray[np.float32]:
    """The vectors and a constant, in separate columns for each range of lengths."""
    place = np.searchsorted(edges, lengths)
    table = np.zeros((len(vectors), len(edges) + 1, vectors.shape[1] + 1), dtype=np.float32)
    rows = np.arange(len(vectors))
    table[rows, place, :-1] = vectors
    table[rows, place, -1] = 1.0
    return table.reshape(len(vectors), -1)


def _times(rows: NDArray[Any], matrix: NDArray[Any]) -> Floats:
    """A matrix product in double precision: a row must not depend on how many rows there are."""
    return np.asarray(rows, dtype=np.float64) @ np.asarray(matrix, dtype=np.float64)


def far_apart(rewriter: LatentRewriter, texts: Sequence[str], number: int) -> list[str]:
    """Texts whose vectors lie far apart: each one is the farthest from those chosen before it."""
    different = list(dict.fromkeys(texts))
    if len(different) <= number:
        return different
    vectors = rewriter.noise.bounded(rewriter.model.vectors(different))
    chosen = [int(np.abs(vectors - vectors.mean(axis=0)).sum(axis=1).argmax())]
    nearest = np.full(len(different), np.inf)
    while len(chosen) < number:
        nearest = np.minimum(nearest, np.abs(vectors - vectors[chosen[-1]]).sum(axis=1))
        chosen.append(int(nearest.argmax()))
    return [different[i] for i in chosen]
