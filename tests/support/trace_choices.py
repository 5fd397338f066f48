"""Code that draws one of several things, each fault beside the code that does it right: claimed to be 1-DP."""

import math
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Generator = np.random.Generator
WORDS = ("good", "bad", "fine", "poor", "fair", "great")
X, Y = [3.0, 1.0, 0.5, 0.0, 0.2, 2.0], [0.0, 1.0, 2.5, 2.0, 0.2, 0.1]
CLIP = 0.5  # logits from −½ to ½: between any two inputs a word's probability changes by a factor of e² at most


def clipped(logits: list[float], most: float = CLIP) -> Vector:
    return np.clip(np.asarray(logits), -most, most)


def softmax(logits: Vector) -> Vector:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def token(logits: list[float], rng: Generator) -> str:
    """Right for ε = 1: logits within ¼ of 0 and a temperature of 1."""
    return WORDS[rng.choice(6, p=softmax(clipped(logits, 0.25)))]


def token_of_names(logits: list[float], rng: Generator) -> str:
    return str(rng.choice(WORDS, p=softmax(clipped(logits, 0.25))))


def token_by_python(logits: list[float]) -> str:
    return random.choices(WORDS, weights=softmax(clipped(logits, 0.25)).tolist())[0]


def tokens(logits: list[float], rng: Generator) -> list[int]:
    """Two tokens, each with half of the budget."""
    p = softmax(clipped(logits, 0.125))
    return [int(rng.choice(6, p=p)) for _ in range(2)]


def tokens_at_once(logits: list[float], rng: Generator) -> list[int]:
    numbers: list[int] = rng.choice(6, size=2, p=softmax(clipped(logits, 0.125))).tolist()
    return numbers


def unclipped(logits: list[float], rng: Generator) -> str:
    return WORDS[rng.choice(6, p=softmax(np.asarray(logits)))]


def top_k(logits: list[float], rng: Generator, k: int = 3) -> str:
    """Only the k largest logits can be drawn, so that the others rule out an input."""
    given = np.asarray(logits)
    kept = np.where(given >= np.sort(given)[-k], clipped(logits, 0.25), -np.inf)
    return WORDS[rng.choice(6, p=softmax(kept))]


def public_top_k(logits: list[float], rng: Generator, k: int = 3) -> str:
    """Right: which words can be drawn does not depend on the input."""
    kept = np.where(np.arange(6) < k, clipped(logits, 0.25), -np.inf)
    return WORDS[rng.choice(6, p=softmax(kept))]


def temperature_after_argmax(logits: list[float], rng: Generator) -> dict[str, Any]:
    """The likeliest word is told before one is drawn with the right temperature."""
    return {"best": WORDS[int(np.argmax(logits))], "token": WORDS[rng.choice(6, p=softmax(clipped(logits, 0.25)))]}


def too_cold(logits: list[float], rng: Generator) -> int:
    return int(rng.choice(6, p=softmax(clipped(logits, 0.25) / 0.1)))


def merged(logits: list[float], rng: Generator) -> bool:
    """The output is only whether the word is one of the first three."""
    return bool(rng.choice(6, p=softmax(np.asarray(logits))) < 3)


def unclipped_sequence(logits: list[float], rng: Generator) -> list[int]:
    return [int(rng.choice(6, p=softmax(np.asarray(logits) / 2))) for _ in range(2)]


def by_hand(bit: int, rng: Generator) -> int:
    """Randomised response, ε = 1."""
    return bit if rng.random() < math.e / (1 + math.e) else 1 - bit


def by_hand_in_python(bit: int) -> str:
    """The same with other words, and the comparison turned round."""
    return ("yes" if bit else "no") if math.e / (1 + math.e) > random.random() else ("no" if bit else "yes")


def kept_too_often(bit: int, rng: Generator) -> int:
    """A coin instead of the other bit: kept with e/(1 + e) + ½/(1 + e)."""
    return bit if rng.random() < math.e / (1 + math.e) else int(rng.integers(2))


def kept_by_python(bit: int) -> int:
    return bit if random.uniform(0, 2) < 2 * math.e / (1 + math.e) else random.randint(1, 2) - 1


def one_of_three(x: int, rng: Generator) -> str:
    """0.5, 0.2 and 0.3, or 0.25, 0.25 and 0.5, by one number that is compared twice."""
    u, (first, second) = rng.random(), ((0.5, 0.7), (0.25, 0.5))[x]
    return "a" if u < first else "b" if u < second else "c"


def until_the_end(logits: list[float], rng: Generator) -> list[int]:
    """At most three tokens; the token 0 ends the text."""
    text: list[int] = []
    while len(text) < 3 and (not text or text[-1] != 0):
        text.append(int(rng.choice(3, p=softmax(np.asarray(logits[:3])))))
    return text


def log_ratio(first: Vector, second: Vector) -> float:
    """The largest loss between two vectors of probabilities."""
    return max(abs(math.log(a / b)) for a, b in zip(first, second, strict=True))


# ── Right code, each ln 3 between 0 and 1, of which not everything can be seen ──────────────────


def kept_word(x: str, rng: Generator) -> Any:
    """A str or one of numpy's texts: they are equal, and their types tell whether it is x."""
    return x if rng.random() < 0.5 else rng.choice(["a", "b"])


def kept_answer(x: bool, rng: Generator) -> Any:
    """A bool, or what a comparison gives."""
    return x if rng.random() < 0.5 else rng.random() < 0.5


def signed_zero(x: float, rng: Generator) -> Any:
    """x is 1.0 or −1.0: nothing comes out as 0.0 or −0.0."""
    return x * rng.choice([1, 0, -1], p=[0.45, 0.4, 0.15])


def flipped(x: int, rng: Generator) -> int:
    return x ^ int(rng.choice(2, p=[0.75, 0.25]))


def in_another_order(x: int, rng: Generator) -> dict[str, int]:
    """The order of the keys tells x."""
    answer = flipped(x, rng)
    return {"yes": answer, "no": 1 - answer} if x else {"no": 1 - answer, "yes": answer}


def a_set(x: int, rng: Generator) -> set[int]:
    """{0, 8} and {8, 0} are equal, but written differently."""
    made: set[int] = set()
    for one in ((0, 8), (8, 0))[x]:
        made.add(one)
    return made if flipped(x, rng) else {1}


def one_of_four(x: int, rng: Generator) -> int:
    """The end of the range is the fifth argument."""
    return x ^ int(rng.integers(0, 3, None, np.int64, True) == 0)


def flipped_between(x: int, rng: Generator) -> int:
    u = float(rng.random())
    return x ^ int(0.4 < u < 0.65)


def flipped_by_a_search(x: int, rng: Generator) -> int:
    return x ^ int(np.searchsorted([0.3, 0.55, 1.0], rng.random()) == 1)


def flipped_by_a_rest(x: int, rng: Generator) -> int:
    return x ^ int(rng.random() // 0.25 == 1)


def flipped_if_smaller(x: int, rng: Generator) -> int:
    """Two numbers are compared with each other: a fair coin."""
    return x ^ int(rng.random() < rng.random())


def flipped_by_one_number(x: int, rng: Generator) -> int:
    """The same number decides again, out of sight."""
    u = rng.random()
    return x if u < 0.5 else x ^ int(0.6 < float(u) < 0.85)


def mostly_public(x: int, rng: Generator) -> int:
    one = int(rng.choice(1000))
    return one if one < 990 else -1 - x


class Kept:
    """Draws an answer once for each input, and again each time from it."""

    def __init__(self) -> None:
        self.kept: dict[int, int] = {}

    def __call__(self, x: int, rng: Generator) -> int:
        if x not in self.kept:
            self.kept[x] = flipped(x, rng)
        return self.kept[x] ^ int(rng.choice(2, p=[0.95, 0.05]))


class Counting:
    """Each second answer is turned over, as everybody knows."""

    calls = 0

    def __call__(self, x: int, rng: Generator) -> int:
        self.calls += 1
        return flipped(x, rng) ^ (self.calls & 1)


class InRounds:
    """Says in which round an answer was given."""

    def __init__(self, length: int) -> None:
        self.calls, self.length = 0, length

    def __call__(self, x: int, rng: Generator) -> list[int]:
        self.calls += 1
        return [self.calls // self.length, flipped(x, rng)]
