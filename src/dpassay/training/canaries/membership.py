"""Membership inference: was a text, or a user, in the corpus that a model was trained on?

A member is paired with a text or user that was held out, and the attack names the one that the model knows better.
What is held out is decided at random, so that of each pair either could have been the member: given the pairs, these
are fair coins, and the guesses about one training run are judged like those on canaries (docs/proofs/one-run.md, point
7). The two possibilities of a pair are neighbors of neighbors: what one of them has is removed, the other's is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dpassay.core.guarantee import ApproxDP, Guarantee, PureDP
from dpassay.errors import InputError
from dpassay.text.corpora.corpus import split
from dpassay.text.corpora.utterance import Utterance, whose
from dpassay.text.inference_attacks import AttackResult
from dpassay.text.models.folder import read_folder, system_of
from dpassay.text.models.training import usable
from dpassay.text.models.words import PAD
from dpassay.text.rewriters.vectors.adept import SHARES, Learned, load
from dpassay.training.canaries.audit import lower_bound
from dpassay.training.canaries.scores import CanaryScores
from dpassay.training.canaries.sentences import sentence_scores
from dpassay.training.networks.by_name import reopened
from dpassay.training.run import Trained
from dpassay.training.statement import JSON_FILE, read_statement
from dpassay.training.units import is_held_out

Floats = NDArray[np.float64]
Group = list[Utterance]  # held out together, or not

DELTA = 1e-5  # at which ε is bounded, if nothing is guaranteed
ENOUGH = 100  # pairs; larger groups are left out if there are so many without them
COMPARED = ("example", "user")  # privacy for what is attacked here


@dataclass(frozen=True)
class TrainedSubject:
    """A trained model, as an attacker sees it: what is stated about it, and how well it knows a text."""

    folder: Path
    system: str
    stated: dict[str, Any] | None  # by training with privacy

    @staticmethod
    def of(folder: str | Path) -> TrainedSubject:
        """The model in a folder, which must have been trained on texts."""
        place = Path(folder)
        system = system_of(place)
        if system not in ("lm", "adept"):
            raise InputError(f"{place} is a model of {system}: membership is inferred from models of adept and lm")
        return TrainedSubject(place, system, read_statement(place) or _own_statement(place, system))

    @property
    def privacy(self) -> str:
        return "none" if self.stated is None else str(self.stated["privacy"])

    @property
    def guarantee(self) -> tuple[float | None, float]:
        """ε and δ for a sentence or a user; None if no such thing is stated."""
        held = None if self.stated is None else self.stated.get("guarantee") or self.stated.get("otherwise")
        if held is None or self.privacy not in COMPARED:
            return None, DELTA
        return float(held["epsilon"]["upper"]), float(held["delta"])

    def divided(self, corpus: Sequence[Utterance]) -> tuple[list[Group], list[Group]]:
        """What of its corpus it was trained on, and what was held out."""
        if self.system == "adept" and self.stated is None:
            about = load(self.folder).about
            members, *rest = split(corpus, int(about.plan["seed"]), SHARES)
            if len(members) != about.texts:
                raise InputError(
                    f"{self.folder} was trained on {about.texts or 0:,} texts, and of this corpus it would be "
                    f"{len(members):,}: give the corpus that it was trained on"
                )
            return [[u] for u in members], [[u] for part in rest for u in part]
        groups = grouped(corpus, "user")
        return [g for g in groups if not is_held_out(g[0])], [g for g in groups if is_held_out(g[0])]

    def scores(self, groups: Sequence[Group]) -> Floats:
        """Minus the loss per word of each group, the mean over its texts."""
        network, numbers = self._numbered([u.text for group in groups for u in group])
        each: Floats = sentence_scores(network.eval(), numbers) / (numbers != PAD).sum(axis=1)
        whose = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        return np.asarray(np.bincount(whose, each) / np.bincount(whose))

    def _numbered(self, texts: list[str]) -> tuple[torch.nn.Module, NDArray[np.int64]]:
        if self.system == "adept":
            model = load(self.folder)
            return model.network, model.vocabulary.numbers(texts, model.network.shape.longest)
        about, arrays = read_folder(self.folder, Trained)
        trainable = reopened(about.words, about.settings, usable("cpu"), self.folder)
        trainable.load(arrays, self.folder)
        return trainable.network, trainable.numbers(texts)


def _own_statement(folder: Path, system: str) -> dict[str, Any] | None:
    """What the model itself states, where statement.json is missing; None if it was trained without privacy."""
    if system == "adept":
        training = read_folder(folder, Learned)[0].training
        return None if training is None else training.statement
    if read_folder(folder, Trained)[0].settings.get("privacy") != "none":
        raise InputError(f"{folder / JSON_FILE} is missing, which states the guarantee: train the model again")
    return None


def grouped(utterances: Sequence[Utterance], privacy: str) -> list[Group]:
    """The texts of each user, and equal texts without one, as they are held out; each alone if users do not count."""
    if privacy != "user":
        return [[u] for u in utterances]
    groups: dict[tuple[str, str], Group] = {}
    for u in utterances:
        groups.setdefault(("user", name) if (name := whose(u.user)) else ("text", u.text), []).append(u)
    return list(groups.values())


def apart(corpus: Sequence[Utterance], others: Sequence[Utterance], privacy: str) -> tuple[list[Utterance], int]:
    """Those of the other texts that count as not trained on, and the number of those that do not.

    A text that is in the corpus, or with user privacy is by one of its users, is not new to the model. If most are like
    that, the corpus itself was probably given twice.
    """
    texts = {" ".join(u.text.lower().split()) for u in corpus}
    users = {name for u in corpus if (name := whose(u.user))} if privacy == "user" else set()
    left = [u for u in others if " ".join(u.text.lower().split()) not in texts and whose(u.user) not in users]
    known = len(others) - len(left)
    if 2 * known > len(others):
        raise InputError(
            f"{known:,} of the {len(others):,} texts of --others are in --corpus too, or of its users: give texts that "
            "the model was not trained on, or leave --others out"
        )
    return left, known


def membership(
    subject: TrainedSubject,
    members: Sequence[Group],
    others: Sequence[Group],
    alpha: float = 0.05,
    seed: int = 0,
    at_random: bool = True,
) -> AttackResult:
    """Attack a model: which of each pair was it trained on?

    The result is evidence about ε only if it was decided `at_random` which of them were held out: otherwise they may
    differ from members in ways that any model detects.
    If single sentences are protected and several were held out together, swapping a pair changes all of them, so that
    only small groups are used.
    """
    if min(len(members), len(others)) < 2:
        raise InputError(
            "membership inference needs texts or users that the model was trained on, and texts that it was not, "
            f"2 of each or more, got {len(members):,} and {len(others):,}"
        )
    most = 1
    if subject.privacy not in ("user", "none"):
        most = _largest([len(group) for group in (*members, *others)], min(len(members), len(others)))
        members, others = ([g for g in side if len(g) <= most] for side in (members, others))
    epsilon, delta = subject.guarantee
    found = of_scores(subject.scores(members), subject.scores(others), epsilon, delta, alpha, seed, 2 * most)
    if not at_random:
        why = "it is not known whether the other texts were held out at random, and any model can distinguish texts of "
        return replace(found, epsilon=None, lower=0.0, notes=(f"{why}another kind: nothing is shown about epsilon",))
    notes = ["the held-out texts must have been chosen at random; the interval assumes independent pairs"]
    if subject.stated is None:
        unit = "group of texts that were held out together" if any(len(g) > 1 for g in (*members, *others)) else "text"
        notes.append(f"nothing is guaranteed: the lower bound on epsilon is for one {unit}, at delta {delta:g}")
    elif subject.stated.get("guarantee") is None:
        notes.append(
            f"nothing is guaranteed: {subject.stated.get('none_because')}; the table shows what would hold otherwise"
        )
    if most > 1:
        notes.append(f"up to {most} sentences were held out together, and the guarantee is for one of them")
    if subject.privacy not in (*COMPARED, "none"):
        notes.append(f"{subject.privacy} privacy is not compared: sentences are attacked, whatever they name")
    return replace(found, notes=tuple(notes))


def _largest(sizes: list[int], pairs: int) -> int:
    """The largest size of groups that count: the smallest one that is expected to leave enough of this many pairs.

    It depends on all groups together, so that it stays the same if the two of a pair are swapped.

    >>> _largest([1] * 400 + [5] * 400, 400), _largest([1] * 100 + [5] * 400, 250)
    (1, 5)
    """
    ordered = sorted(sizes)
    enough = math.ceil(ENOUGH * len(ordered) / pairs)
    return ordered[min(enough, len(ordered)) - 1]


def of_scores(
    inside: Floats,
    outside: Floats,
    epsilon: float | None,
    delta: float,
    alpha: float = 0.05,
    seed: int = 0,
    steps: int = 2,
) -> AttackResult:
    """The result of naming the higher score in random pairs of a member and one that is not.

    >>> rng = np.random.default_rng(0)
    >>> found = of_scores(rng.normal(size=500) + 3, rng.normal(size=500), 0.5, 1e-5)
    >>> found.trials, found.success > 0.9, found.lower > 0.5
    (500, True, True)
    """
    rng = np.random.default_rng([seed, 0x3E3])
    pairs = min(len(inside), len(outside))
    difference = rng.permutation(inside)[:pairs] - rng.permutation(outside)[:pairs]
    first = rng.random(pairs) < 0.5  # whether the member is the first of its pair
    right = int((difference > 0).sum() + (rng.random(int((difference == 0).sum())) < 0.5).sum())
    scores = CanaryScores(np.where(first, difference, -difference), first)
    lower = lower_bound(scores, lambda value: in_steps(value, delta, steps), alpha)
    measured = {"area_under_roc": _area(inside, outside)}
    return AttackResult("membership", right, pairs, 2, lower, epsilon, delta, alpha, steps, measured)


def in_steps(epsilon: float, delta: float, steps: int) -> Guarantee:
    """What (ε, δ)-DP between neighbors implies for inputs that are so many neighbors apart: docs/proofs/group.md.

    >>> print(in_steps(1.0, 0.0, 2))
    2-DP
    """
    total = delta * sum(math.exp(min(k * epsilon, 700.0)) for k in range(steps))
    return ApproxDP(steps * epsilon, min(total, 1 - 1e-9)) if total else PureDP(steps * epsilon)


def _area(inside: Floats, outside: Floats) -> float:
    """The area under the ROC curve: the share of all pairs in which the member scores higher, ties counted half.

    >>> _area(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    0.625
    """
    order = np.sort(outside)
    below, upto = np.searchsorted(order, inside, "left"), np.searchsorted(order, inside, "right")
    return float((below + upto).sum() / (2 * len(inside) * len(outside)))
