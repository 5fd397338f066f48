"""The attack of Habernal 2021, appendix C: a language model writes the search space, and the latent space is explored.

The attacker has the trained autoencoder and a corpus without the text under attack. It probes the model to learn which
noisy vector a rewritten text came from, lets a language model of the corpus write feasible utterances, projects them to
the latent space, and takes the nearest. Their neighborhood is then explored: beginnings of the nearest utterances are
continued in other ways. A guess that is not the original may still be just good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import Progress
from dpassay.errors import InputError
from dpassay.text.metrics import sentence_bleu, unchanged, words_kept
from dpassay.text.models.next_word import Writer
from dpassay.text.models.words import tokenise
from dpassay.text.reconstruction import Reconstruction, guessed_vectors, learn
from dpassay.text.rewriters.vectors.latent import LatentRewriter

TRIES = 5  # times as many texts are written as are wanted, at most: many are the same
PROBED, DRAWS = 400, 8000  # utterances that are rewritten to probe the model, and how often in all
ROUNDS, NEW = 3, 100  # rounds of exploring the neighborhood, and texts written in each
MOST_GENERATED = 1_000_000

Floats = NDArray[np.float64]
Similarity = Callable[[Sequence[str], Sequence[str]], Floats]


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Feasible utterances with their vectors, and a probe that guesses the noisy vector of a rewritten text."""

    rewriter: LatentRewriter
    writer: Writer
    probe: Reconstruction
    texts: tuple[str, ...]
    vectors: Floats

    def nearest(self, rewritten: str, top: int, rng: np.random.Generator) -> list[tuple[str, float]]:
        """The utterances nearest to the noisy vector of a rewritten text, and how near; the neighborhood included."""
        guess = guessed_vectors(self.probe, [rewritten])[0]
        found = dict(zip(self.texts, (self.vectors @ guess).tolist(), strict=True))
        best = _best(found, top)
        for _ in range(ROUNDS):
            beginnings = [_beginning(best[i % len(best)][0], rng) for i in range(NEW)]
            new = [text for text in dict.fromkeys(self.writer.write(beginnings, rng)) if text and text not in found]
            if new:
                found |= dict(zip(new, (_vectors(self.rewriter, new) @ guess).tolist(), strict=True))
                best = _best(found, top)
        return best


def _best(found: Mapping[str, float], top: int) -> list[tuple[str, float]]:
    return sorted(found.items(), key=lambda item: -item[1])[:top]


def _beginning(text: str, rng: np.random.Generator) -> str:
    words = tokenise(text)
    return " ".join(words[: int(rng.integers(0, len(words)))])


def _vectors(rewriter: LatentRewriter, texts: Sequence[str]) -> Floats:
    return np.asarray(rewriter.noise.bounded(rewriter.model.vectors(list(texts))), dtype=np.float64)


def check_number(number: int) -> None:
    """Refuse to generate too few or too many utterances, before a language model is trained for it."""
    if not 2 <= number <= MOST_GENERATED:
        raise InputError(f"from 2 to {MOST_GENERATED:,} utterances can be generated, got {number:,}")


def generate(writer: Writer, number: int, rng: np.random.Generator, progress: Progress | None = None) -> list[str]:
    """Different utterances: `number` of them, or as many as the writer can write."""
    check_number(number)
    found: dict[str, None] = {}
    for _ in range(0, TRIES * number, writer.at_once):
        found.update(dict.fromkeys(text for text in writer.write([""] * writer.at_once, rng) if text))
        if progress is not None:
            progress(min(len(found), number), number, "generating utterances")
        if len(found) >= number:
            break
    if len(found) < 2:
        raise InputError("the language model writes only one text; train it on a larger corpus")
    return list(found)[:number]


def search_space(
    rewriter: Any,
    writer: Writer,
    number: int,
    draws: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> SearchSpace:
    """Write the utterances, project them, and probe the model with rewritings of some of them."""
    if not isinstance(rewriter, LatentRewriter):
        raise InputError("a generated search space needs the vectors of an autoencoder: give a trained ADePT model")
    texts = generate(writer, number, np.random.default_rng([seed, 1]), progress)
    probe = learn(rewriter, texts[:PROBED], DRAWS if draws is None else draws, seed, progress)
    return SearchSpace(rewriter, writer, probe, tuple(texts), _vectors(rewriter, texts))


def similarity_of(rewriter: LatentRewriter) -> Similarity:
    """The cosine between two texts' vectors in the autoencoder's own space."""

    def cosines(first: Sequence[str], second: Sequence[str]) -> Floats:
        one, other = (_vectors(rewriter, texts) for texts in (first, second))
        norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        return np.asarray((one * other).sum(axis=1) / np.maximum(norms, 1e-12))

    return cosines


def nearness(guess: str, original: str, similarity: Similarity) -> dict[str, float]:
    """How near a guess is to the original: the same or not, words, BLEU, similarity of the vectors."""
    return {
        "exact": unchanged([guess], [original]),
        "words": words_kept([guess], [original]),
        "bleu": sentence_bleu(guess, original),
        "similarity": float(similarity([guess], [original])[0]),
    }


def attack_all(
    space: SearchSpace,
    originals: Sequence[str],
    top: int,
    seed: int = 0,
    similarity: Similarity | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Rewrite each original once and attack what comes out: means of how near the guesses are.

    `first` is the nearest utterance, `best` the best of the `top` nearest (which the attacker cannot tell from the
    others), `random` and `best_random` the same for utterances of the search space taken at random, and `rewritten` the
    released text itself.
    """
    rng, alike = np.random.default_rng([seed, 2]), similarity or similarity_of(space.rewriter)
    rewritten = space.rewriter.rewrite(list(originals), rng)
    found: dict[str, list[dict[str, float]]] = {
        way: [] for way in ("first", "best", "random", "best_random", "rewritten")
    }
    for done, (original, released) in enumerate(zip(originals, rewritten, strict=True)):
        if progress is not None:
            progress(done, len(originals), "attacking")
        guesses = [text for text, _ in space.nearest(released, top, rng)]
        others = [space.texts[i] for i in rng.choice(len(space.texts), min(top, len(space.texts)), replace=False)]
        for name, some in (("first", guesses), ("random", others)):
            near = [nearness(guess, original, alike) for guess in some]
            found[name].append(near[0])
            found[name.replace("first", "best").replace("random", "best_random")].append(_largest(near))
        found["rewritten"].append(nearness(released, original, alike))
    known = set(space.texts)
    covered = fmean(" ".join(tokenise(text)) in known for text in originals)
    means = {way: {name: fmean(row[name] for row in rows) for name in rows[0]} for way, rows in found.items()}
    return {"attacked": len(originals), "generated": len(space.texts), "top": top, "in_search_space": covered, **means}


def _largest(near: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: max(row[name] for row in near) for name in near[0]}
