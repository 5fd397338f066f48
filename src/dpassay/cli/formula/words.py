"""Options for mechanisms that replace words, and the check of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import read_values, usable_device, working
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict

NAMES = ("santext", "custext", "tem")
_RULE = "are copied, dropped, or replaced by any word."

VocabularyFile = Annotated[
    Path | None,
    typer.Option("--vocabulary", help="For santext, custext, tem: words with vectors, as text, npz or safetensors."),
]
FirstWords = Annotated[int | None, typer.Option("--words", help="Use only the first N words of the vocabulary.")]
Unknown = Annotated[str | None, typer.Option("--unknown", help=f"Words outside the vocabulary {_RULE}")]
StopWords = Annotated[
    str | None, typer.Option("--stop-words", help=f"Stop words {_RULE} Default: treated like other words.")
]
Numbers = Annotated[str | None, typer.Option("--numbers", help=f"Numbers {_RULE} Default: treated like other words.")]
Device = Annotated[str, typer.Option("--device", help="Where to compare all pairs of words: cpu, cuda or numpy.")]


def of_words(name: str | None, given: dict[str, Any]) -> bool:
    """Whether a mechanism that replaces words is requested; options without one, or one without them, are refused."""
    stated = [option for option, value in given.items() if value is not None and (option, value) != ("device", "cpu")]
    if name in NAMES:
        if given["vocabulary"] is None:
            raise InputError(f"{name} needs a vocabulary, a file of words with vectors: --vocabulary FILE")
        return True
    if stated:
        option = stated[0].replace("_", "-")
        raise InputError(f"--{option} is for mechanisms that replace words: {', '.join(NAMES)}")
    return False


def check_words(
    name: str, settings: list[str] | None, claimed: dict[str, Any], given: dict[str, Any], refused: dict[str, Any]
) -> Verdict:
    """Judge such a mechanism; `refused` are options that it does not have."""
    for option, value in refused.items():
        if value not in (None, 0):
            raise InputError(f"--{option} is not for {name}, which is judged by its words alone")
    stated, parameters = read_values(settings, {"epsilon": claimed["epsilon"], "delta": claimed["delta"]})
    given = {**given, "device": usable_device(given["device"])}
    from dpassay.words.judge import check_words as judge

    with working("going through all pairs of words"):
        return judge(name, **{**claimed, **stated}, **given, **parameters)
