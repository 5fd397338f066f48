"""Black-box canaries: sentences that nobody would say, and how much a trained model has learned about them.

Each is a separate user, with a secret of random words. An attacker with the trained model compares its loss on each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.words import PAD
from dpassay.training.units import is_held_out

LENGTH = 6  # words of a secret
_BATCH = 64


def secrets(words: Sequence[str], count: int, seed: int = 0) -> list[str]:
    """Sentences of random words, all different.

    >>> len(set(secrets(["fly", "to", "rome", "oslo"], 10)))
    10
    """
    known = sorted(set(words))
    if len(known) ** LENGTH < 4 * count:
        raise InputError(f"{len(known)} words are too few for {count:,} different canaries of {LENGTH} words")
    rng, found = np.random.default_rng([seed, 11]), dict[str, None]()
    while len(found) < count:
        found[" ".join(known[i] for i in rng.integers(len(known), size=LENGTH))] = None
    return list(found)


def with_canaries(
    utterances: Sequence[Utterance], sentences: Sequence[str], included: NDArray[np.bool_], copies: int = 1
) -> list[Utterance]:
    """The corpus and, for every canary that is in, a user who says its sentence `copies` times.

    >>> [u.user for u in with_canaries([], ["a b", "c d"], np.array([True, False]), copies=2)]
    ['canary 0', 'canary 0']
    """
    chosen = [_spoken(text, f"canary {i}") for i, text in enumerate(sentences) if included[i]]
    return [*utterances, *(said for said in chosen for _ in range(copies))]


def _spoken(text: str, user: str) -> Utterance:
    """A user who says it, with a name whose hash is not held out."""
    while is_held_out(said := Utterance(text, user=user)):
        user += "'"
    return said


@torch.no_grad()
def sentence_scores(network: nn.Module, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Minus the loss of each sentence, ends included: higher for what the model has learned.

    >>> same = nn.Embedding(9, 9, _weight=torch.zeros(9, 9))  # all of nine words are equally likely
    >>> sentence_scores(same, np.array([[5, 6, 1], [4, 1, 0]])).round(4).tolist()  # 3 ln 9 and 2 ln 9
    [-6.5917, -4.3944]
    """
    device = next(network.parameters()).device
    found = []
    for start in range(0, len(numbers), _BATCH):
        target = torch.from_numpy(np.ascontiguousarray(numbers[start : start + _BATCH])).to(device)
        losses = cross_entropy(network(target).transpose(1, 2), target, ignore_index=PAD, reduction="none")
        found.append(-losses.double().sum(1).cpu().numpy())
    return np.concatenate(found)


def exposure(scores: NDArray[np.float64], included: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For each included canary, how many bits its rank among excluded ones reveals (Carlini et al. 2019).

    >>> exposure(np.array([5.0, 1.0, 2.0, 3.0]), np.array([True, False, False, False])).tolist()  # the first of four
    [2.0]
    """
    out = np.sort(scores[~included])
    if not len(out):
        raise InputError("exposure compares with canaries that are out, and there are none")
    ranks = 1 + len(out) - np.searchsorted(out, scores[included], side="left")
    return np.asarray(math.log2(len(out) + 1) - np.log2(ranks))
