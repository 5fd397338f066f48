"""Fine-tuning of a sentence encoder with a classifier on noisy vectors, as DPNR was trained.

No step of it is private: the weights depend on the training texts. A guarantee for the noisy vector of one text holds
for any weights, and so is unaffected; it does not cover the training texts.
"""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.audit.options import Progress
from dpassay.core.numbers import number
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.text.models.encoders import Encoder, SentenceEncoder
from dpassay.text.models.folder import Arrays, weights_of

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 32
RATE, HEAD_RATE = 5e-5, 1e-2  # of Adam: for the encoder as in the authors' code, and for the classifier on top of it
PREFIX = "encoder."  # of its weights in a model's file


def scaled_rows(vectors: "Tensor") -> "Tensor":
    """Each row shifted and scaled to the range from 0 to 1; a constant row becomes zeros.

    >>> import torch
    >>> scaled_rows(torch.tensor([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]])).tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]
    """
    low, high = vectors.amin(dim=1, keepdim=True), vectors.amax(dim=1, keepdim=True)
    span = high - low
    return (vectors - low) / span.masked_fill(span == 0, 1.0)


def fine_tuned(
    encoder: Encoder,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    mu: float,
    noise: Noise,
    steps: int,
    seed: int = 0,
    rate: float = RATE,
    progress: Progress | None = None,
) -> SentenceEncoder:
    """A copy of the encoder, trained with a linear classifier on vectors with words dropped and noise added."""
    import torch
    from torch.nn.functional import cross_entropy

    model = copy.deepcopy(_tunable(encoder).model).train()
    prepared = getattr(model, "preprocess", None) or model.tokenize
    names = sorted(set(labels))
    targets = torch.tensor([names.index(label) for label in labels])
    rng, dropout = np.random.default_rng([seed, 4]), Dropout(number(mu))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = torch.nn.Linear(encoder.dim, len(names))
        groups = [{"params": model.parameters(), "lr": rate}, {"params": head.parameters(), "lr": HEAD_RATE}]
        optimiser = torch.optim.Adam(groups)
        for step in range(steps):
            some = rng.integers(0, len(texts), BATCH)
            vectors = model(prepared(dropout.run([texts[i] for i in some], rng)))["sentence_embedding"]
            drawn = torch.from_numpy(noise.draw(tuple(vectors.shape), rng).astype(np.float32))
            loss = cross_entropy(head(scaled_rows(vectors) + drawn), targets[some])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if progress is not None:
                progress(step + 1, steps, f"fine-tuning the encoder: loss {loss.item():.2f}")
    return SentenceEncoder(encoder.name, model.eval())


def to_arrays(encoder: Encoder) -> Arrays:
    """The weights of an encoder, to be saved beside a classifier's."""
    return {PREFIX + name: array for name, array in weights_of(_tunable(encoder).model).items()}


def with_arrays(encoder: Encoder, arrays: Arrays, place: Any) -> SentenceEncoder:
    """A copy of the encoder with weights from `to_arrays`; `place`, the file they are from, is for the error."""
    import torch

    model = copy.deepcopy(_tunable(encoder).model)
    found = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    wanted = weights_of(model)
    shapes = [{name: (array.shape, array.dtype) for name, array in some.items()} for some in (wanted, found)]
    if shapes[0] != shapes[1]:
        odd = min(name for name in wanted.keys() | found.keys() if shapes[0].get(name) != shapes[1].get(name))
        raise InputError(f"{place} does not fit the encoder {encoder.name}: see {odd}; train it again")
    if bad := [name for name, array in found.items() if array.dtype.kind == "f" and not np.isfinite(array).all()]:
        raise InputError(f"the weights in {place} are not all finite numbers: see {min(bad)}; train it again")
    model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in found.items()})
    return SentenceEncoder(encoder.name, model.eval())


def _tunable(encoder: Encoder) -> SentenceEncoder:
    if not isinstance(encoder, SentenceEncoder):
        raise InputError(f"the encoder {encoder.name} cannot be fine-tuned: give a sentence-transformers model")
    return encoder
