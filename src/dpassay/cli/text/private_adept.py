"""'dpassay train adept' with privacy: by the same run as a language model, with ADePT's network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpassay.cli.common import note, progress_bar
from dpassay.cli.text.trained import found_of

STEPS = {"cpu": 300, "cuda": 1000}
LEARNING_RATE = 0.02
MEASURED = 1000  # held-out texts at most


def train_privately(
    source: str,
    out: Path,
    private: dict[str, Any],
    vectors: tuple[int, float],
    steps: int | None,
    words: list[str] | None,
    device: str,
    resume: bool,
) -> dict[str, Any]:
    """Train, and return the statement with what only whoever has the corpus may know.

    `private` are settings of the run, `vectors` the size and the clipping norm of vectors.
    """
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.models.training import token_accuracy, usable
    from dpassay.text.models.words import ModelVocabulary
    from dpassay.training.federated import RoundPlan
    from dpassay.training.run import train
    from dpassay.training.settings import Latent, Settings

    used = usable(device, note).type
    plan = RoundPlan(rounds=STEPS[used] if steps is None else steps, server_rate=LEARNING_RATE)
    settings = Settings(**private, autoencoder=Latent(*vectors), plan=plan)
    with progress_bar(plan.rounds) as tell:
        result = train(
            read_corpus(source),
            out,
            settings,
            vocabulary=words,
            device=used,
            resume=resume,
            progress=tell,
            warn=lambda message: note(f"warning: {message}"),
        )
    found = {"model": str(out), "system": "adept", "corpus": source, **found_of(result)}
    if held_out := result.units.held_out[:MEASURED]:
        network: Any = result.network.eval()
        numbers = ModelVocabulary(tuple(result.about.words)).numbers(held_out, network.shape.longest)
        found["private"]["token_accuracy"] = token_accuracy(network, numbers)
    return found
