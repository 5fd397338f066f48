"""Rewriting: an utterance to its vector, noise on the vector, and an utterance written from the noisy vector.

Whatever a line holds, its rewritten form comes from the noisy vector alone: an empty line, a line of ten thousand words
and a line of unknown words are each one utterance, and the guarantee covers them like any other. Only the first words
of a long line are read; words that the model does not know are all the same to it, and it never writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from socket import gethostname
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.text.rewriters.adept import Model, load
from dpassay.text.rewriters.release import Release

LINES = 512  # that are rewritten together
SCHEMA = "dpassay/rewriting/1"

WHY_NOT = (
    "ADePT as published is not as private as it says: it clips in l2 but its Laplace noise must hide l1 distances, "
    "which are up to sqrt(n) times as large. Use gaussian, l1 or sqrt-n; to study it all the same, give --as-published."
)


@dataclass(frozen=True)
class Rewriter:
    """A trained autoencoder with a mechanism: what an audit runs, and what rewrites lines.

    `sample` draws numpy's noise, for audits; `rewrite` draws OpenDP's, for text that leaves the house.
    """

    model: Model
    release: Release

    def __post_init__(self) -> None:
        latent, clip = self.model.about.latent, self.model.about.clip
        if self.release.dim != latent:
            raise InputError(f"the model's vectors have {latent} coordinates, the noise has {self.release.dim}")
        if self.release.recipe.norm == 2 and self.release.clip != clip:
            raise InputError(f"the model's vectors are clipped at {clip}, the mechanism clips at {self.release.clip}")

    @property
    def dim(self) -> int:
        """How many coordinates a vector has."""
        return self.release.dim

    def sample(self, x: str, n: int, rng: np.random.Generator) -> list[str]:
        """n rewritings of one utterance, with numpy's noise."""
        vector = _vector(self.model, checked(x))
        return self.write(self.release.sample(np.repeat(vector, n, axis=0), rng))

    def sampled(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each utterance, with numpy's noise."""
        return self.write(self.release.sample(self.model.vectors(texts), rng))

    def rewrite(self, texts: Sequence[str]) -> list[str]:
        """One rewriting of each utterance, with OpenDP's noise; what is written for one depends on no other one."""
        return self.write(self.release.release(self.model.vectors_apart(texts)))

    def write(self, noisy: NDArray[np.float64]) -> list[str]:
        """What the model writes for noisy vectors. Only their direction counts, so their size is brought back first."""
        return self.model.texts(noisy * self.stretch)

    @property
    def stretch(self) -> float:
        """Vectors clipped in l1 are short; the writer has learnt from vectors of the model's size."""
        return self.model.about.clip / self.release.clip * (self.dim**0.5 if self.release.recipe.norm == 1 else 1.0)

    def describe(self) -> dict[str, str]:
        """What it is, for a certificate."""
        release = self.release
        noise = {name: str(getattr(release, name)) for name in ("mechanism", "epsilon", "delta", "dim", "clip")}
        return {"kind": "model", "type": f"rewriter, {release.mechanism}", **noise, "sha256": self.model.about.sha256}

    def statement(self) -> dict[str, Any]:
        """What is promised for the output, ready for JSON."""
        about = self.model.about
        return {
            "schema": SCHEMA,
            **self.release.statement(),
            "per": "utterance",
            "model": {"system": about.system, "sha256": about.sha256, "latent": about.latent, "longest": about.longest},
            "outside": "the model's weights and words: it was trained without privacy on the texts of its corpus",
        }


@dataclass(frozen=True, slots=True)
class Order:
    """What lines are to be rewritten with, as plain data that can be sent to another process.

    `sha256` is that of the model that the statement names; `threads` is how many torch may use, None for all.
    """

    folder: str
    mechanism: str
    epsilon: float | None = None
    delta: float = 0.0
    device: str = "cpu"
    sha256: str | None = None
    threads: int | None = None


def opened(order: Order) -> tuple[Callable[[list[str]], list[str]], dict[str, Any]]:
    """What rewrites some lines, and what it promises."""
    if order.mechanism == "none":
        if order.epsilon is not None or order.delta:
            raise InputError("without noise there is no epsilon: leave --epsilon and --delta out")
        model = _model(order)
        promised = {"schema": SCHEMA, "mechanism": "none", "guarantee": "none: no noise"}
        return (lambda lines: model.texts(model.vectors(lines))), {**promised, "model": {"sha256": model.about.sha256}}
    if order.epsilon is None:
        raise InputError("say which epsilon the output is to have: --epsilon 50")
    model = _model(order)
    release = Release(order.mechanism, order.epsilon, order.delta, dim=model.about.latent, clip=model.about.clip)
    private = Rewriter(model, release)
    return private.rewrite, private.statement()


def _model(order: Order) -> Model:
    model = load(order.folder, order.device)
    found = model.about.sha256
    if order.sha256 not in (None, found):
        raise InputError(
            f"{order.folder} holds another model at a worker on {gethostname()}: its sha256 is {found[:16]}…, the "
            f"statement names {str(order.sha256)[:16]}…; copy the model to the same folder on every machine"
        )
    return model


_kept = lru_cache(maxsize=2)(opened)


def rewritten(order: Order, lines: list[str]) -> list[str]:
    """Some lines rewritten by a worker, which loads the model once."""
    if order.threads is not None:
        import torch

        torch.set_num_threads(order.threads)
    return _kept(order)[0](lines)


@lru_cache(maxsize=4096)
def _vector(model: Model, text: str) -> NDArray[np.float32]:
    return model.vectors([text])


def checked(text: Any) -> str:
    """A text, or a sentence about what was given instead.

    >>> checked(3)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: a rewriter takes a text, got int
    """
    if not isinstance(text, str):
        raise InputError(f"a rewriter takes a text, got {type(text).__name__}")
    return text


def lines_of(stream: Iterable[bytes], name: str = "the input") -> Iterator[str]:
    r"""The lines of a binary stream as text, split at line feeds alone.

    >>> list(lines_of([b"one\r\n", b"", b"\xc3\xa9t\xc3\xa9\n"]))
    ['one', '', 'été']
    """
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}, is not UTF-8 (byte {error.start + 1}); convert it, for example with iconv"
            ) from None


def in_groups(lines: Iterable[str], size: int = LINES) -> Iterator[list[str]]:
    """So many lines at a time.

    >>> list(in_groups("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    group: list[str] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == size:
                yield group
                group = []
    except InputError:
        if group:
            yield group  # what comes before a line that cannot be read is not lost
        raise
    if group:
        yield group
