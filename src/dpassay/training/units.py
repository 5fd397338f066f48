"""Which sentences belong to whom: from a corpus to the units that a guarantee protects.

Each rule here looks at one sentence and its own user and entities, never at other sentences. So adding or removing
a unit changes only its own sentences.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance, whose

PRIVACY = ("example", "user", "entity", "user-entity", "none")
HELD_OUT = 0.1  # of the users; of the sentences where there are no users
COMMON = 0.5  # an entity in more than this fraction of the sentences causes a warning


@dataclass(frozen=True, eq=False)
class Units:
    """Sentences, in cells that are trained on together: of a user, of an entity, of both, or one sentence each."""

    privacy: str
    texts: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]  # each a user's, an entity's, … sentences, by their numbers
    names: tuple[str, ...]  # of units; with user-entity, of users, including those without a usable sentence
    user_of: NDArray[np.int64]  # user-entity: of each cell
    entity_of: NDArray[np.int64]
    held_out: tuple[str, ...]
    left_out: int = 0  # sentences with more than one entity
    warnings: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many units a guarantee is about; with user-entity, users."""
        return len(self.names)

    def fingerprint(self) -> str:
        """A fingerprint of the sentences and units: a secret, since it can confirm a guess."""
        parts = (self.privacy, self.texts, self.cells, self.names, self.held_out, self.user_of.tolist())
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def gathered(utterances: Sequence[Utterance], privacy: str, held_out: Sequence[str] | None = None) -> Units:
    """The units of a corpus. A tenth of the users are held out, unless other texts are given for measuring.

    >>> said = [Utterance(f"to rome {i}", user=f"u{i % 7}", entities=("rome",) * (i % 2)) for i in range(30)]
    >>> found = gathered(said, "user")
    >>> found.count, sum(map(len, found.cells)) == len(found.texts)
    (6, True)
    """
    if privacy not in PRIVACY:
        raise InputError(f"unknown privacy {privacy!r}; there are {', '.join(PRIVACY)}")
    if "user" in privacy and (lacking := sum(not whose(u.user) for u in utterances)):
        raise InputError(
            f"{lacking:,} of {len(utterances):,} utterances have no user, and {privacy} privacy needs to know whose "
            "each is: give the corpus a user column, or train with example privacy"
        )
    utterances = [u if u.user == (name := whose(u.user)) else replace(u, user=name) for u in utterances]
    used, measured = utterances, held_out
    if held_out is None:
        used = [u for u in utterances if not is_held_out(u)]
        measured = [u.text for u in utterances if is_held_out(u)]
    assert measured is not None
    kept, warnings = (used, ()) if "entity" not in privacy else _with_one_entity(used)
    found = _grouped(kept, privacy, tuple(sorted({u.user for u in used})))
    if not found.cells:
        raise InputError("no sentence is left to train on: each names more than one entity. Choose other entities")
    if len(found.names) < 2:
        unit = {"example": "sentence", "none": "sentence", "user-entity": "user"}.get(privacy, privacy)
        raise InputError(
            f"{len(found.names)} {unit} is left to train on, and a guarantee needs at least 2 to hide one among: "
            "give a larger corpus"
        )
    return Units(
        *(privacy, found.texts, found.cells, found.names, found.user_of, found.entity_of),
        held_out=tuple(measured),
        left_out=len(used) - len(kept),
        warnings=warnings,
    )


def named(entity: str) -> str:
    """An entity's normalized name: lower case, single spaces.

    >>> named(" New  York")
    'new york'
    """
    return " ".join(entity.lower().split())


def is_held_out(utterance: Utterance) -> bool:
    """Whether an utterance is used for measuring instead of training, unless other texts are given for that."""
    user = whose(utterance.user)
    who = f"user {user}" if user else f"text {utterance.text}"
    digest = hashlib.blake2b(f"dpassay held out {who}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < HELD_OUT * 2**64


def _with_one_entity(utterances: Sequence[Utterance]) -> tuple[list[Utterance], tuple[str, ...]]:
    """The utterances with at most one entity: only these belong to one entity alone."""
    sets = [{named(entity) for entity in u.entities} for u in utterances]
    counts = Counter(entity for some in sets for entity in some)
    warnings = []
    for entity, number in counts.most_common(1):
        if number == len(utterances):
            raise InputError(
                f"the entity {entity[:60]!r} is in every sentence: hiding it means hiding the whole corpus. "
                "Leave it out of the entities, or train with user or example privacy"
            )
        if number > COMMON * len(utterances):
            warnings.append(
                f"the entity {entity[:60]!r} is in {number:,} of {len(utterances):,} sentences: little can be learned "
                "from these while it is hidden"
            )
    return [u for u, some in zip(utterances, sets, strict=True) if len(some) <= 1], tuple(warnings)


@dataclass(frozen=True, eq=False)
class _Groups:
    texts: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    user_of: NDArray[np.int64]
    entity_of: NDArray[np.int64]


def _grouped(utterances: Iterable[Utterance], privacy: str, users: tuple[str, ...]) -> _Groups:
    """The cells by the names of their user and their entity, in alphabetical order."""
    cells: dict[tuple[str, str], list[int]] = {}
    texts = []
    for i, u in enumerate(utterances):
        texts.append(u.text)
        own = f"\n{i}"  # no entity name contains a line feed
        entity = named(u.entities[0]) if u.entities else own
        key = {"user": (u.user, ""), "entity": ("", entity), "user-entity": (u.user, entity)}.get(privacy, ("", own))
        cells.setdefault(key, []).append(i)
    keys = sorted(cells)
    names = tuple(user or entity for user, entity in keys) if privacy != "user-entity" else users
    place = {name: i for i, name in enumerate(users)}
    entities = {entity: i for i, entity in enumerate(sorted({entity for _, entity in keys}))}
    return _Groups(
        tuple(texts),
        tuple(tuple(cells[key]) for key in keys),
        names,
        np.array([place.get(user, 0) for user, _ in keys], dtype=np.int64),
        np.array([entities[entity] for _, entity in keys], dtype=np.int64),
    )
