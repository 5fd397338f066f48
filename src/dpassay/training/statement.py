"""What a trained model guarantees, for which neighbors, and what that rests on: written next to the model.

A statement is published with its model. So it holds nothing that depends on the corpus: no counts, no perplexity.
`statement.json` is for programs, `statement.md` for people. For a model whose training is not finished it says so.
"""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpassay.core.files import write_whole
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.text.models.folder import read_json
from dpassay.training.accountant import Account
from dpassay.training.aggregation import UserEntity
from dpassay.training.units import Units

FORMAT = "dpassay/training-statement/2"
JSON_FILE, TEXT_FILE = "statement.json", "statement.md"
LARGEST = 10**6  # bytes
NEIGHBOURS = {
    "example": "two corpora that differ in one sentence, added or removed",
    "user": "two corpora that differ in all sentences of one user, added or removed",
    "entity": "two corpora that differ in all sentences that name one entity, added or removed; "
    "a sentence without an entity is an entity of its own",
    "user-entity": "two corpora that differ in one user, with all sentences, and in one entity, with all sentences "
    "that name it; a sentence without an entity is an entity of its own, and other users stay even if no sentence is "
    "left to them",
}
REWRITTEN = (
    "Texts that this model rewrites: a rewriting has an epsilon and a delta of its own, which add up with these; "
    "'dpassay rewrite' states the sum."
)
WITHOUT_PRIVACY = "it was trained without privacy"
KNOWN_SEED = "noise from a known seed, which anyone who knows the seed can subtract"
CORPUS_WORDS = "the folder lists the words of the corpus, which may be private"


@dataclass(frozen=True)
class Terms:
    """What a statement needs to know about a run; `account` is None for training without privacy."""

    units: Units
    account: Account | None
    aggregation: Any
    rounds: int
    done: int
    randomness: str
    noise_source: str
    vocabulary: str
    base: str = ""
    words_of_corpus: bool = False
    rewrites: bool = False
    most: int = 0  # rounds that were ever planned
    keyed: bool = False  # whether the key of the noise still exists

    @property
    def finished(self) -> bool:
        return self.done >= self.rounds and not self.keyed

    @property
    def stopped_early(self) -> bool:
        """Whether it was ended before the rounds that were once planned."""
        return self.done >= self.rounds and self.most > self.rounds

    def as_data(self) -> dict[str, Any]:
        """The statement, ready for JSON."""
        stated: dict[str, Any] = {
            "format": FORMAT,
            "finished": self.finished,
            "rounds": {"done": self.done, "planned": self.rounds},
            "privacy": self.units.privacy,
        }
        if self.account is None:
            return stated | {"guarantee": None, "none_because": WITHOUT_PRIVACY}
        account, spent = self.account, _after(self.account, self.most if self.stopped_early else self.done)
        planned = _after(account, self.most if self.stopped_early else self.rounds)
        guarantee = {
            "epsilon": {"lower": spent[0], "upper": spent[1]},
            "delta": account.delta,
            "neighbours": NEIGHBOURS[self.units.privacy],
            "when_finished": {"lower": planned[0], "upper": planned[1]},
        }
        if self.stopped_early:
            guarantee |= {"of_rounds": self.most}
        reasons = [KNOWN_SEED] * (self.noise_source == "torch") + [CORPUS_WORDS] * self.words_of_corpus
        void = {"guarantee": None, "none_because": "; ".join(reasons), "otherwise": guarantee}
        return stated | {
            **(void if reasons else {"guarantee": guarantee}),
            "mechanism": {
                "pipeline": replace(account, rounds=self.most).pipeline if self.stopped_early else account.pipeline,
                "rate": account.rate,
                "sensitivity": account.sensitivity,
                "noise_deviation": account.deviation,
                "noise_multiplier": account.deviation / account.sensitivity,
                **_parts(self.aggregation),
            },
            "noise_source": self.noise_source,
            "theorems": [theorem.page for theorem in self._theorems()],
            "assumptions": self._assumptions(),
            "not_covered": self._not_covered(),
        }

    def _theorems(self) -> tuple[Theorem, ...]:
        assert self.account is not None
        own = (Theorem.USER_ENTITY,) if self.units.privacy == "user-entity" else ()
        return (*own, *self.account.profile().theorems, Theorem.POST_PROCESSING, Theorem.ROUNDING)

    def _assumptions(self) -> list[str]:
        who = {"example": "sentence", "user-entity": "user and each entity"}.get(self.units.privacy, self.units.privacy)
        found = [
            f"Each {who} takes part in a round independently of all others, with the stated probability.",
            self.randomness,
            "The settings, such as rounds, rate and clip, were chosen without looking at this corpus, and no "
            "perplexity on it decided when training was stopped or continued; what is computed from the weights "
            f"{'may have stopped it' if self.stopped_early else 'may not have prolonged it'}. For the corpora "
            "that dpassay ships, flights and bookings, this does not hold: the default learning rate was chosen among "
            "four by the perplexity on flights.",
            self.vocabulary,
        ]
        if self.noise_source != "opendp":
            found.insert(
                3, "The theorems are about real numbers; training computes with 32-bit floating-point numbers."
            )
        if "user" in self.units.privacy:
            found.append("All sentences of a person carry the same user name.")
        if "entity" in self.units.privacy:
            found.append(
                "The entities of each sentence were found by a rule that looks at that sentence alone. An entity that "
                "the rule missed in a sentence is hidden there only as that one sentence. Sentences that name more "
                "than one entity were left out."
            )
        if self.base:
            found.append(f"The base model, {self.base}, was trained on other data than this corpus.")
        return found

    def _not_covered(self) -> list[str]:
        return [
            "Perplexities, and numbers of users and sentences: 'dpassay train' prints them for whoever has the corpus, "
            "and they are not in this folder.",
            *([REWRITTEN] if self.rewrites else []),
            "Other models trained on the same corpus: each spends its own epsilon and delta, which add up.",
            "Facts that many units share: what all of them say can be learned, whoever takes part.",
            "This folder while training is unfinished: it then holds the secrets that a resumed run needs.",
        ]


def _after(account: Account, done: int) -> tuple[float, float]:
    """The ε of the rounds that are done."""
    if not done:
        return 0.0, 0.0
    spent = Account(account.rate, account.sensitivity, account.deviation, done, account.delta).epsilon()
    return spent.lower, spent.upper


def _parts(aggregation: Any) -> dict[str, Any]:
    if not isinstance(aggregation, UserEntity):
        return {"clip": aggregation.clip}
    names = ("clip", "cell_clip", "user_rate", "entity_rate")
    return {"users_at_most": aggregation.most, **{name: getattr(aggregation, name) for name in names}}


def as_text(stated: dict[str, Any]) -> str:
    """The statement for people to read, in Markdown."""
    rounds, guarantee = stated["rounds"], stated["guarantee"]
    lines = ["# What this model guarantees", ""]
    if not stated["finished"]:
        lines += [
            f"**Training is not finished**: {rounds['done']:,} of {rounds['planned']:,} rounds are done. What follows "
            "holds for the rounds so far. The folder holds the key of the noise: continue with --resume.",
            "",
        ]
    if guarantee is None and "otherwise" not in stated:
        return "\n".join([*lines, f"{in_words(stated).capitalize()}.", ""])
    if guarantee is None:
        guarantee = stated["otherwise"]
        lines += [f"{in_words(stated).capitalize()}.", "", "Without that, it would be:", ""]
    epsilon, made = guarantee["epsilon"], stated["mechanism"]
    ends = below(epsilon["lower"], 6), above(epsilon["upper"], 6)
    command = ["dpassay", "check", "--pipeline", made["pipeline"], "--neighbours", "add-remove-record"]
    command += ["--dim", "1", "--delta", repr(guarantee["delta"]), "--epsilon", above(epsilon["upper"])]
    whose = f" of all {guarantee['of_rounds']:,} planned rounds" if "of_rounds" in guarantee else ""
    lines += [
        f"({above(epsilon['upper'])}, {guarantee['delta']:g})-differential privacy between {guarantee['neighbours']}.",
        f"The true ε{whose} lies in [{ends[0]}, {ends[1]}] if the assumptions below hold. It "
        "holds for all weights of all rounds together, not only for the last ones.",
        *(_early(rounds["done"], guarantee["of_rounds"]) if "of_rounds" in guarantee else ()),
        "",
        "## How",
        "",
        f"- a unit affects a round with probability {made['rate']:.6g}, in each of "
        f"{guarantee.get('of_rounds', rounds['done']):,} rounds",
        f"- the sums of two neighbors lie at most {made['sensitivity']:.6g} apart (l2), clipped as a whole",
        f"- Gaussian noise of standard deviation {made['noise_deviation']:.6g} per weight: "
        f"{made['noise_multiplier']:.4g} times that distance",
        "- the noisy sum is divided by that distance, and Adam takes a step; the number of units is not used",
        "",
        "Check it with:",
        "",
        f"    {shlex.join(command)}",
        "",
        f"Proofs: {', '.join(stated['theorems'])}.",
    ]
    for title, name in (("What this rests on", "assumptions"), ("What is not covered", "not_covered")):
        lines += ["", f"## {title}", "", *(f"- {line}" for line in stated[name])]
    return "\n".join([*lines, ""])


def _early(done: int, most: int) -> list[str]:
    """Why a run that was stopped early is charged for all rounds that were planned."""
    return [
        f"Training was once planned for {most:,} rounds and ended after {done:,}. The ε is that of all {most:,}: it "
        "holds even if the decision to end it was based on the weights."
    ]


def in_words(stated: dict[str, Any]) -> str:
    """The guarantee in a line; where there is none, why.

    >>> in_words({"guarantee": None, "none_because": KNOWN_SEED})
    'none: noise from a known seed, which anyone who knows the seed can subtract'
    """
    if (guarantee := stated["guarantee"]) is None:
        return f"none: {stated['none_because']}"
    return f"({above(guarantee['epsilon']['upper'])}, {guarantee['delta']:g})-DP between {guarantee['neighbours']}"


def above(epsilon: float, digits: int = 4) -> str:
    """A number with that many digits that is not below ε.

    >>> above(1.00001)
    '1.0001'
    """
    return f"{math.ceil(epsilon * 10**digits) / 10**digits:.{digits}f}"


def below(epsilon: float, digits: int = 4) -> str:
    """A number with that many digits that is not above ε.

    >>> below(0.99999)
    '0.9999'
    """
    return f"{math.floor(epsilon * 10**digits) / 10**digits:.{digits}f}"


def read_statement(folder: Path) -> dict[str, Any] | None:
    """The statement in a model's folder; None where there is none, or where the model was trained without privacy."""
    path = folder / JSON_FILE
    if not path.is_file():
        return None
    stated = read_json(path, "a statement", ("format", FORMAT), "train the model again", LARGEST)
    if stated.get("privacy") not in NEIGHBOURS and stated.get("privacy") != "none":
        raise InputError(f"{path} is damaged: it does not say for whom the model was trained; train it again")
    return None if stated["privacy"] == "none" else stated


def stated_as_finished(folder: Path) -> bool:
    """Whether a folder has the statement of a finished run."""
    try:
        return bool(json.loads((folder / JSON_FILE).read_text(encoding="utf-8"))["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_statement(folder: Path, stated: dict[str, Any]) -> None:
    """Write both files."""
    write_whole(folder / JSON_FILE, json.dumps(stated, indent=1, ensure_ascii=False) + "\n")
    write_whole(folder / TEXT_FILE, as_text(stated))
