"""What the train command prints of a model that it trained."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.cli.common import print_json
from dpassay.errors import counted

if TYPE_CHECKING:
    from dpassay.training.run import TrainedModel


def show(system: str, source: str, out: Path, found: dict[str, Any], as_json: bool) -> None:
    """Print what was trained and measured."""
    found = {"model": str(out), "system": system, "corpus": source, **found}
    if as_json:
        print_json(found)
        return
    print(f"{system} trained on {source}, kept in {out}")
    for line in _dptext_lines(found) if system == "dptext" else _lines(found):
        print(f"  {line}")


def _lines(found: dict[str, Any]) -> list[str]:
    numbers = {name.replace("_", " "): value for name, value in found.items() if isinstance(value, int | float)}
    guarantee = found.get("guarantee", {})
    notes = [f"not covered: {sentence}" for sentence in guarantee.get("not_covered", found.get("not_covered", ()))]
    held = [f"what holds: {guarantee['sentence']}"] if guarantee else []
    return [*held, *(f"{name}: {_number(name, value)}" for name, value in numbers.items()), *notes]


def _number(name: str, value: float) -> str:
    from dpassay.text.rewriters.base import upward

    if isinstance(value, int):
        return f"{value:,}"
    return upward(value) if name.startswith("epsilon") else f"{value:.4g}"


def _dptext_lines(found: dict[str, Any]) -> list[str]:
    """A report on DPText: its ε always with the one that holds, and each accuracy with that of guessing."""
    how, weight = ("learned" if found["learnt"] else "fixed"), found["adversary"]
    hidden = f"with the adversary (weight {weight:g})" if weight else "without the adversary"
    return [
        f"epsilon {found['epsilon']:.4g}, {how}; what holds: {found['guarantee']['sentence']}",
        f"attacker: {found['attacker']:.3f} of the attributes {hidden}; chance: {found['chance']:.3f}",
        f"label: {found['task']:.3f}; always the most common one: {found['commonest_task']:.3f}",
        f"without noise: attacker {found['clean_attacker']:.3f}, label {found['clean_task']:.3f}",
        f"words at their place: {found['tokens']:.3f}; without noise {found['clean_tokens']:.3f}",
        f"texts: {found['texts']:,}, held out to measure on: {found['held_out']:,}; reading: {found['reading']}",
        *(f"not covered: {sentence}" for sentence in found["guarantee"]["not_covered"]),
    ]


def found_of(result: TrainedModel) -> dict[str, Any]:
    """The statement, and what only whoever has the corpus may know."""
    private = {
        "units": result.units.count,
        "sentences": {"used": len(result.units.texts), "left_out": result.units.left_out},
        "held_out_perplexity": dict(zip(("before", "after"), result.perplexity, strict=True)),
        "not_covered": "these numbers depend on the corpus, and no guarantee covers them",
    }
    about = {"private": private, "seconds": round(result.seconds, 1), "folder": str(result.folder)}
    return {**result.statement, **about}


def show_private(found: dict[str, Any], as_json: bool) -> None:
    """Print the statement of a model that was trained with privacy, and what is not protected."""
    if as_json:
        print_json(found)
        return
    from dpassay.training.statement import above, below, in_words

    guarantee, private = found["guarantee"], found["private"]
    perplexity = private["held_out_perplexity"]
    print(f"{'language model' if found['system'] == 'lm' else found['system']} trained, kept in {found['folder']}")
    if guarantee is None:
        print(f"  guarantee: {in_words(found)}")
    else:
        low, high = guarantee["epsilon"]["lower"], guarantee["epsilon"]["upper"]
        print(f"  epsilon: [{below(low, 5)}, {above(high, 5)}] at delta {guarantee['delta']:g}")
        if "of_rounds" in guarantee:
            print(f"  that is for all {guarantee['of_rounds']:,} planned rounds; training ended early, which may have")
            print("  depended on the weights, so that fewer rounds are not charged less")
        print(f"  between: {guarantee['neighbours']}")
        print(f"  noise multiplier: {found['mechanism']['noise_multiplier']:.4g}")
    if perplexity["before"] is not None and perplexity["after"] is not None:
        print(f"  held-out perplexity: {perplexity['before']:.1f} before, {perplexity['after']:.1f} after")
    if private.get("token_accuracy") is not None:
        print(f"  held-out words that come back at their place, without noise: {private['token_accuracy']:.1%}")
    used, left = private["sentences"]["used"], private["sentences"]["left_out"]
    print(f"  units: {private['units']:,}, with {counted(used, 'sentence')}" + f"; {left:,} left out" * (left > 0))
    print("  (units, sentences and perplexity depend on the corpus; they are not protected, so the folder has none)")
    print(f"  rounds: {found['rounds']['done']:,}")
    print(f"  time: {found['seconds']:.1f} s")
    print(f"  what holds, and on what it rests: {Path(found['folder'], 'statement.md')}")
    if "canaries" in found and (claimed := guarantee or found.get("otherwise")) is not None:
        unit = {"example": "add-remove-record", "user-entity": "user"}.get(found["privacy"], found["privacy"])
        command = ["dpassay", "audit-training", "--scores", found["canaries"], "--neighbours", unit]
        command += ["--epsilon", above(claimed["epsilon"]["upper"], 6), "--delta", repr(claimed["delta"])]
        print(f"  to audit it: {shlex.join(command)}")
