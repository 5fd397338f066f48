"""Corpora of tokens with tags. The tagged words of an utterance are its entities: B- begins one, I- continues it."""

import re
from collections.abc import Iterator, Sequence

from dpassay.text.corpora.utterance import FileLine, Utterance, made


def read_iob(text: str, source: str) -> Iterator[Utterance]:
    """A token and its tag per line with a blank line between utterances; or one utterance per line, from BOS to EOS."""
    block: list[tuple[FileLine, str]] = []
    label = ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        place, line = FileLine(source, number), line.strip()
        named = re.fullmatch(r"(?:#\s*)?(?:intent|label)\s*[:=]\s*(.*)", line, re.IGNORECASE)
        if line.startswith("BOS ") and "\t" in line:
            yield _one_line(line, place)
        elif named:
            label = named[1]
        elif line.startswith("-DOCSTART-") or (line.startswith("#") and not re.fullmatch(r"#\s+(O|[A-Z]-\S+)", line)):
            continue
        elif line:
            block.append((place, line))
        elif block:
            yield _of_block(block, label)
            block, label = [], ""


def tagged(words: Sequence[str], tags: Sequence[str]) -> list[str]:
    """The entities of some words, each once, in the order of the text.

    >>> tagged("fly from new york to rome".split(), ["O", "O", "B-city", "I-city", "O", "B-city"])
    ['new york', 'rome']
    """
    found: list[list[str]] = []
    before = "O"
    for word, tag in zip(words, tags, strict=True):
        kind = tag.partition("-")[2]
        if tag.startswith("I-") and before.partition("-")[2] == kind and found:
            found[-1].append(word)
        elif tag.startswith(("B-", "I-")):
            found.append([word])
        before = tag
    return list(dict.fromkeys(" ".join(entity) for entity in found))


def _one_line(line: str, place: FileLine) -> Utterance:
    left, _, right = line.partition("\t")
    words, tags = left.split(), right.split()
    if words[-1] != "EOS" or len(words) != len(tags):
        raise place.fail(f"{len(words)} words from BOS to EOS need as many tags, the last of them the label")
    entities = tagged(words[1:-1], tags[1:-1])
    return made({"text": " ".join(words[1:-1]), "label": tags[-1], "entities": entities}, place)


def _of_block(block: list[tuple[FileLine, str]], label: str) -> Utterance:
    """The tokens of some lines; a last line with a single word is the label."""
    rows = [(place, line.split()) for place, line in block]
    if len(rows) > 1 and len(rows[-1][1]) == 1 and not label:
        label = rows.pop()[1][0]
    for place, row in rows:
        if len(row) < 2:
            raise place.fail(f"the line {row[0]!r} needs a token and its tag, separated by a blank or a tab")
    words = [row[0] for _, row in rows]
    entities = tagged(words, [row[-1] for _, row in rows])
    return made({"text": " ".join(words), "label": label, "entities": entities}, rows[0][0])
