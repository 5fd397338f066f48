"""A control: short utterances whose words give away the speaker's dialect, the private attribute.

The label, what the speaker asks for, is expressed by a British or an American word. So a vector that keeps the words
keeps the dialect, while one that keeps only the label need not. Both are drawn independently, so hiding the dialect
costs no accuracy on the label. There are only twelve different texts. The corpus shows whether a method really hides an
attribute that would be visible otherwise.
"""

import random

from dpassay.errors import InputError
from dpassay.text.corpora.flights import DIALECTS
from dpassay.text.corpora.utterance import Utterance

OPENINGS = ("which", "what")
NAMES = {"lift": ("lift", "elevator"), "flat": ("flat", "apartment"), "lorry": ("lorry", "truck")}


def dialects(n: int = 1000, seed: int = 0) -> list[Utterance]:
    """Utterances labeled with what is asked for; with the same seed, a longer corpus begins with the shorter one.

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
