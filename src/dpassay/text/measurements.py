"""Measurements of a rewriter: one per seed, a summary row over all seeds, and files that hold them.

Rows carry intervals. With one seed, those for accuracies and for the attacker's success are Clopper-Pearson intervals
over the texts or guesses. With five or more, every metric has a Student interval over the seeds; fewer are too few.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator

from dpassay.audit.testing.inference import proportion_interval
from dpassay.core.files import write_whole
from dpassay.core.records import first_fault
from dpassay.errors import InputError
from dpassay.text.models.folder import read_json
from dpassay.text.rewriters.catalogue import Specification

SCHEMA = "dpassay/utility/2"
ORIGINAL, COMMONEST = "original", "commonest"
REFERENCES = (ORIGINAL, COMMONEST)  # what rewriters are compared with: the text itself, and always the same label
ERROR = 0.05  # probability that an interval misses the truth
LEAST_SEEDS = 5  # for a Student interval: with fewer it rests on the normal distribution alone
LARGEST_FILE = 100_000_000  # bytes

# The metrics by name. Those of the first two kinds are proportions, estimated from counts.
ACCURACIES = ("accuracy_original", "accuracy_rewritten", "encoder_original", "encoder_rewritten")
ATTACK = "attack"
SCORES = ("bleu", "chrf", "similarity", "perplexity", "unchanged", "words_kept", "length")
METRICS = (*ACCURACIES, *SCORES, ATTACK)
RANGES = {  # of metrics that are not proportions
    **{"bleu": (0.0, 100.0), "chrf": (0.0, 100.0), "similarity": (-1.0, 1.0)},
    **{"perplexity": (1.0, math.inf), "length": (0.0, math.inf)},
}

Count = Annotated[int, Field(ge=0, le=10**15)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]  # the range allowed in a file: everything in it can be plotted
Epsilon = Annotated[
    float,
    Field(ge=0),
    BeforeValidator(lambda value: math.inf if value == "inf" else value),
    PlainSerializer(lambda value: "inf" if math.isinf(value) else value, when_used="json"),
]


class KeptLines(BaseModel):
    """Data that is read from a file exactly as it was written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Stated(KeptLines):
    """A rewriter's guarantee for one text: the claimed ε, and the one that holds.

    `parameter` is what the mechanism's authors call ε, if that does not refer to a whole text: it may be per word, or
    per unit of distance.
    """

    epsilon: Epsilon
    parameter: Epsilon | None = None
    true_epsilon: Epsilon
    delta: Annotated[float, Field(ge=0, lt=1)]
    neighbours: Annotated[str, Field(max_length=40)]
    declared: bool = False  # declared by the user for their own rewriter; nothing of it was checked

    @property
    def holds(self) -> bool:
        """Whether the authors' ε holds; nothing infinite does."""
        return self.true_epsilon <= self.epsilon and math.isfinite(self.true_epsilon)


class GuessedTexts(KeptLines):
    """How often an attacker picked the true candidate, and an upper bound on how often any attacker can."""

    right: Count
    runs: Annotated[int, Field(ge=1, le=10**15)]
    candidates: Annotated[int, Field(ge=2, le=10**15)]
    how: Literal["exact", "learnt"]
    bound: Annotated[float, Field(ge=0, le=1)] | None = None


class Measurement(KeptLines):
    """One rewriter, or one reference, with one seed. The first text of an example is the original one.

    `right` counts the test texts that each classifier labels correctly, by the name of the metric.
    """

    rewriter: str
    identity: str
    seed: Count
    utterances: Annotated[int, Field(ge=1, le=10**15)]
    right: dict[Literal["accuracy_original", "accuracy_rewritten", "encoder_original", "encoder_rewritten"], Count]
    scores: dict[Literal["bleu", "chrf", "similarity", "perplexity", "unchanged", "words_kept", "length"], Number] = (
        Field(default_factory=dict)
    )
    guarantee: Stated | None = None
    guesses: GuessedTexts | None = None
    examples: tuple[tuple[str, str], ...] = ()

    @model_validator(mode="after")
    def _counted(self) -> Measurement:
        if max(self.right.values(), default=0) > self.utterances:
            raise ValueError("there are more right guesses than utterances")
        if self.guesses is not None and self.guesses.right > self.guesses.runs:
            raise ValueError("there are more right guesses than guesses")
        return self

    @property
    def key(self) -> tuple[str, int]:
        """What identifies it in a file."""
        return self.identity, self.seed

    def shares(self) -> dict[str, tuple[int, int]]:
        """The counts, as successes and trials, by the name of the metric."""
        found: dict[str, tuple[int, int]] = {name: (n, self.utterances) for name, n in self.right.items()}
        if self.guesses is not None:
            found[ATTACK] = self.guesses.right, self.guesses.runs
        return found


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval, where there is one."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MeasuredRow:
    """One rewriter at one ε, over all seeds; `label` is its short name, `estimates` has each metric by name."""

    label: str
    rewriter: str
    guarantee: Stated | None
    seeds: int
    utterances: int
    estimates: Mapping[str, Estimate]
    guesses: GuessedTexts | None = None
    examples: tuple[tuple[str, str], ...] = ()

    @property
    def reference(self) -> bool:
        """Whether this is a reference that rewriters are compared with, not a rewriter."""
        return self.guarantee is None

    @property
    def exceeded(self) -> bool:
        """Whether its attacker was right more often than its ε allows, by the interval for one seed."""
        if self.seeds > 1 or self.guesses is None or self.guesses.bound is None or ATTACK not in self.estimates:
            return False
        low = self.estimates[ATTACK].low
        return low is not None and low > self.guesses.bound

    def mean(self, metric: str) -> float | None:
        """The mean of a metric; None where it was not measured."""
        return self.estimates[metric].mean if metric in self.estimates else None

    def to_dict(self) -> dict[str, Any]:
        """The row, ready for a table: fields that do not apply are empty, and an infinite ε is "inf"."""
        stated = self.guarantee.model_dump(mode="json") if self.guarantee else {}
        found: dict[str, Any] = {"rewriter": self.rewriter, "label": self.label}
        found |= {name: stated.get(name) for name in ("epsilon", "parameter", "true_epsilon", "delta", "neighbours")}
        unknown = self.guarantee is None or (self.guarantee.declared and self.guarantee.holds)
        found |= {"holds": None if unknown or self.guarantee is None else self.guarantee.holds}
        found |= {"declared": stated.get("declared")}
        found |= {"seeds": self.seeds, "utterances": self.utterances}
        for name in METRICS:
            one = self.estimates.get(name)
            found |= {name: one and one.mean, f"{name}_low": one and one.low, f"{name}_high": one and one.high}
        guesses = self.guesses.model_dump() if self.guesses else {}
        return found | {f"attack_{name}": guesses.get(name) for name in ("how", "candidates", "bound")}


def rows_of(measurements: Iterable[Measurement]) -> list[MeasuredRow]:
    """A row for each rewriter at each ε, in the order of the measurements."""
    groups: dict[str, list[Measurement]] = {}
    for one in measurements:
        groups.setdefault(one.identity, []).append(one)
    labels = short_names([group[0].rewriter for group in groups.values()])
    return [_row(group, labels[group[0].rewriter]) for group in groups.values()]


def _row(group: Sequence[Measurement], label: str) -> MeasuredRow:
    first = group[0]
    shares = [one.shares() for one in group]
    pairs = zip(shares, group, strict=True)
    values = [{name: a / b for name, (a, b) in share.items()} | one.scores for share, one in pairs]
    found = {}
    for name in METRICS:
        numbers = [value[name] for value in values if name in value]
        if not numbers:
            continue
        ends: tuple[float, float] | tuple[()] = ()
        if len(numbers) >= LEAST_SEEDS:
            least, most = RANGES.get(name, (0.0, 1.0))
            low, high = student(numbers)
            ends = max(low, least), min(high, most)
        elif len(numbers) == 1 and name in shares[0]:
            ends = proportion_interval(*shares[0][name], ERROR)
        found[name] = Estimate(math.fsum(numbers) / len(numbers), *ends)
    described = (first.guarantee, len(group), first.utterances, found, first.guesses, first.examples)
    return MeasuredRow(label, first.rewriter, *described)


def student(numbers: Sequence[float]) -> tuple[float, float]:
    """Student's interval for the mean of a normal distribution, from two numbers or more.

    >>> [round(end, 3) for end in student([1.0, 3.0])]  # 2 ± 12.706
    [-10.706, 14.706]
    """
    from scipy.special import stdtrit

    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)
    half = float(stdtrit(len(numbers) - 1, 1 - ERROR / 2)) * math.sqrt(variance / len(numbers))
    return mean - half, mean + half


def short_names(rewriters: Sequence[str]) -> dict[str, str]:
    """Names that fit into a table: the mechanism, and those settings in which rewriters of the same name differ.

    >>> list(short_names(["models/a,mechanism=l1", "santext,vocabulary=g.txt", "my.pack:Coin"]).values())
    ['a l1', 'santext', 'Coin']
    >>> list(short_names(["tem,vocabulary=x/g.txt", "tem,vocabulary=x/h.txt"]).values())
    ['tem g.txt', 'tem h.txt']
    """
    read = {text: Specification.read(text) for text in dict.fromkeys(rewriters)}
    names = {text: one.name.rpartition(":")[2].rstrip("/").rpartition("/")[2] for text, one in read.items()}
    found = {}
    for text, one in read.items():
        others = [other.settings for name, other in read.items() if names[name] == names[text]]
        keys = [k for k, v in one.settings.items() if k == "mechanism" or any(o.get(k) != v for o in others)]
        found[text] = " ".join([names[text], *(one.settings[key].rpartition("/")[2] for key in keys)])
    short = list(found.values())
    return {text: name if short.count(name) == 1 else text for text, name in found.items()}


# --- on file ---


def to_data(asked: Mapping[str, Any], measurements: Iterable[Measurement]) -> dict[str, Any]:
    """A question and its measurements, ready for JSON."""
    return {
        "schema": SCHEMA,
        "asked": dict(asked),
        "measurements": [one.model_dump(mode="json") for one in measurements],
    }


def save(path: Path, asked: Mapping[str, Any], measurements: Iterable[Measurement]) -> None:
    """Write the question and the measurements so far, whole or not at all."""
    write_whole(path, json.dumps(to_data(asked, measurements), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def load(path: Path, asked: Mapping[str, Any]) -> list[Measurement]:
    """The measurements in a file about the same question. Other rewriters, values of ε and seeds may be added to it."""
    absent = "without --resume it is started from scratch"
    data = read_json(path, "a measurement's file", ("schema", SCHEMA), absent, LARGEST_FILE)
    known, rows = data.get("asked"), data.get("measurements")
    if not isinstance(known, dict) or not isinstance(rows, list):
        raise InputError(f"{path} is damaged: it has no question or no measurements; measure again into another file")
    if changed := [name for name, value in asked.items() if known.get(name) != value]:
        raise InputError(
            f"{path} is another measurement: it differs in {', '.join(changed)}. "
            "Give the same corpus and options again, or save to another file."
        )
    try:
        found = [Measurement.model_validate_json(json.dumps(row)) for row in rows]
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {first_fault(error)}; measure again into another file"[:300]) from None
    for one in found:
        if one.rewriter not in REFERENCES and one.guarantee is None:
            raise InputError(f"{path} is damaged: {one.rewriter[:60]!r} has no guarantee; measure again")
    return found
