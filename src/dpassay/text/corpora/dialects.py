"""A control: short utterances whose words give the speaker's dialect away, as its private attribute.

What is asked for, the label, is named by a British or an American word, so a vector that keeps the words keeps the
dialect, and one that keeps the label alone need not. Both are drawn independently: hiding the dialect costs nothing of
the label. There are only twelve different texts. The corpus shows whether a method hides what it could have shown.
"""

import random

from dpassay.errors import InputError
from dpassay.text.corpora.flights import DIALECTS
from dpassay.text.corpora.utterance import Utterance

OPENINGS = ("which", "what")
NAMES = {"lift": ("lift", "elevator"), "flat": ("flat", "apartment"), "lorry": ("lorry", "truck")}


def dialects(n: int = 1000, seed: int = 0) -> list[Utterance]:
    """Utterances with what is asked for as their label; more of them for the same seed begin with the same ones.

    >>> dialects(2) == dialects(50)[:2]
    True
    >>> {u.attribute for u in dialects(50) if "elevator" in u.text}
    {'american'}
    """
    if n < 0:
        raise InputError(f"the number of utterances must be 0 or more, got {n}")
    rng = random.Random(f"dpassay dialects {seed}")  # only rng.random() is guaranteed never to change
    found = []
    for _ in range(n):
        label, dialect, opening = (int(rng.random() * count) for count in (len(NAMES), len(DIALECTS), len(OPENINGS)))
        name = list(NAMES)[label]
        found.append(Utterance(f"{OPENINGS[opening]} {NAMES[name][dialect]}", name, DIALECTS[dialect]))
    return found
