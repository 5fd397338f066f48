"""An utterance, and how one is made from named fields that were read from a file."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpassay.errors import InputError

COLUMNS = {
    "text": ("text", "sentence", "utterance", "query"),
    "label": ("label", "intent", "category"),
    "attribute": ("attribute",),
    "user": ("user", "user_id", "speaker", "author"),
    "entities": ("entities", "entity"),
}
ROLES = {name: role for role, names in COLUMNS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text, its label, a private attribute of the speaker, who the speaker is, and the entities that the text names.

    >>> Utterance("fly me to rome", label="flight", user="ann", entities=("rome",))
    Utterance(text='fly me to rome', label='flight', attribute='', user='ann', entities=('rome',))
    """

    text: str
    label: str = ""
    attribute: str = ""
    user: str = ""
    entities: tuple[str, ...] = ()


def whose(name: str) -> str:
    """A name in the form that identifies a person: no blanks around it, and equivalent characters are the same.

    >>> whose(" Jose\u0301") == whose("Jos\u00e9")
    True
    """
    return unicodedata.normalize("NFC", name).strip()


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file, so that an error can name it."""

    source: str
    line: int
    unit: str = "line"

    def fail(self, message: str) -> InputError:
        return InputError(f"{self.source}, {self.unit} {self.line}: {message}")


def columns(names: Sequence[str], user: str = "") -> dict[str, str]:
    """The name for each role; the first in the order of `COLUMNS` if several fit. The user's may be given.

    >>> columns(["id", "intent", "query", "speaker"])
    {'text': 'query', 'label': 'intent', 'user': 'speaker'}
    """
    known_as = COLUMNS | ({"user": (user,)} if user else {})
    fitting = {role: [name for name in known if name in names] for role, known in known_as.items()}
    return {role: found[0] for role, found in fitting.items() if found}


def made(fields: Mapping[str, Any], place: FileLine) -> Utterance:
    """An utterance from fields named as in `COLUMNS`; the entities are texts, or objects with a `text`."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "entities":
            found[name] = _entities(value, place)
            continue
        found[name] = _text(value, name, place)
    if not found["text"].strip():
        label = f" beside the label {found['label']!r}" if found.get("label") else ""
        raise place.fail(f"there is no text{label}; give a text, or take the {place.unit} out")
    return Utterance(**found)


def _entities(value: Any, place: FileLine) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise place.fail(f"the entities must be a list of texts, got {value!r:.60}")
    named = (entity["text"] if isinstance(entity, dict) and "text" in entity else entity for entity in value)
    found = tuple(_text(entity, "entity", place) for entity in named)
    if not all(entity.strip() for entity in found):
        raise place.fail("an entity is blank; leave it out")
    return found


def _text(value: Any, name: str, place: FileLine) -> str:
    if value is not None and (not isinstance(value, str | int) or isinstance(value, bool)):
        raise place.fail(f"the {name} must be text, got {value!r:.60}")
    text = "" if value is None else str(value)
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise place.fail(f"the {name} has half a character in it (a lone surrogate); write the character in full")
    return text
