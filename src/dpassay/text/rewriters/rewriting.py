"""Rewriting: an utterance is encoded as a vector, the vector gets noise, and an utterance is decoded from it.

Whatever a line contains, its rewritten form depends on the noisy vector alone: an empty line, a line of ten thousand
words and a line of unknown words are each one utterance, covered by the guarantee like any other. Only the first words
of a long line are read; the model treats all unknown words as the same word, and never writes them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from socket import gethostname
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.text.models.words import as_text
from dpassay.text.rewriters.adept import Model, load
from dpassay.text.rewriters.release import Release

LINES = 512  # rewritten together
SCHEMA = "dpassay/rewriting/1"

WHY_NOT = (
    "ADePT as published is not as private as claimed: it clips in l2 but its Laplace noise must hide l1 distances, "
    "which are up to sqrt(n) times as large. Use gaussian, l1 or sqrt-n; to run it anyway, add --as-published."
)


@dataclass(frozen=True)
class Rewriter:
    """A trained autoencoder with a mechanism: what an audit runs, and what rewrites lines.

    `sample` draws numpy's noise, for audits; `rewrite` draws OpenDP's, for text that is released.
    """

    model: Model
    release: Release
    independent_rows: ClassVar[bool] = True  # each has noise of its own

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
        vector = _vector(self.model, as_text(x, "a rewriter"))
        return self.write(self.release.sample(np.repeat(vector, n, axis=0), rng))

    def sampled(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each utterance, with numpy's noise."""
        return self.write(self.release.sample(self.model.vectors(texts), rng))

    def rewrite(self, texts: Sequence[str]) -> list[str]:
        """One rewriting of each utterance, with OpenDP's noise; each depends on its own utterance alone."""
        return self.write(self.release.release(self.model.vectors_apart(texts)))

    def write(self, noisy: NDArray[np.float64]) -> list[str]:
        """What the model writes for noisy vectors. Only their direction matters, so their size is restored first."""
        return self.model.texts(noisy * self.stretch)

    @property
    def stretch(self) -> float:
        """The factor to the model's scale: vectors clipped in l1 are shorter than those the decoder was trained on."""
        return self.model.about.clip / self.release.clip * (self.dim**0.5 if self.release.recipe.norm == 1 else 1.0)

    def describe(self) -> dict[str, str]:
        """The model and its noise, for a certificate."""
        release = self.release
        noise = {name: str(getattr(release, name)) for name in ("mechanism", "epsilon", "delta", "dim", "clip")}
        return {"kind": "model", "type": f"rewriter, {release.mechanism}", **noise, "sha256": self.model.about.sha256}

    def statement(self) -> dict[str, Any]:
        """The guarantee of the output, ready for JSON."""
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
    """How lines are to be rewritten, as plain data that can be sent to another process.

    `sha256` is that of the model named in the statement; `threads` is how many torch may use, None for all.
    """

    folder: str
    mechanism: str
    epsilon: float | None = None
    delta: float = 0.0
    device: str = "cpu"
    sha256: str | None = None
    threads: int | None = None


def opened(order: Order) -> tuple[Callable[[list[str]], list[str]], dict[str, Any]]:
    """A function that rewrites lines, and the statement of its guarantee."""
    if order.mechanism == "none":
        if order.epsilon is not None or order.delta:
            raise InputError("without noise there is no epsilon: leave --epsilon and --delta out")
        model = _model(order)
        stated = {"schema": SCHEMA, "mechanism": "none", "guarantee": "none: no noise"}
        return (lambda lines: model.texts(model.vectors(lines))), {**stated, "model": {"sha256": model.about.sha256}}
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
    """Lines rewritten by a worker, which loads the model once."""
    if order.threads is not None:
        import torch

        torch.set_num_threads(order.threads)
    return _kept(order)[0](lines)


@lru_cache(maxsize=4096)
def _vector(model: Model, text: str) -> NDArray[np.float32]:
    return model.vectors([text])


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
    """Lines in groups of `size`.

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
            yield group  # the lines before one that cannot be read are not lost
        raise
    if group:
        yield group
