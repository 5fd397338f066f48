"""Certificates about words: the claim, the vocabulary's digest, and evidence that the verifier has accepted."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.core.guarantee import MetricDP
from dpassay.core.numbers import as_written
from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier.words.certificates import MOST_FOR_ALL_PAIRS, SCHEMA, check_words
from dpassay.evidence.word_witness import WordWitness
from dpassay.words.mechanisms import TEM, CusText, ScoredWords
from dpassay.words.rules import STOP_WORDS

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict
    from dpassay.words.judge import Treatment

Data = dict[str, Any]
_SLACKS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-5, 1e-3, 0.1, 0.5)


def certify_words(verdict: Verdict) -> Data:
    """The certificate of a verdict about words, with evidence that the verifier accepts.

    >>> from dpassay.words.judge import check_words
    >>> from dpassay.words.vocabulary import Vocabulary
    >>> found = check_words("santext", epsilon=4, vocabulary=Vocabulary(("yes", "no"), np.eye(2)))
    >>> certify_words(found)["evidence"]
    {'kind': 'triangle inequality'}
    """
    if verdict.open:
        raise InputError("an open verdict proves nothing that a certificate could show")
    from dpassay import __version__

    treated = verdict.mechanism
    vocabulary = treated.mechanism.vocabulary
    about = {"words": len(vocabulary), "dim": vocabulary.dim, "sha256": vocabulary.digest}
    head = {"schema": SCHEMA, "written_by": f"dpassay {__version__}", "verdict": verdict.word}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "words.npz")
        np.savez(path, words=np.array(vocabulary.words), vectors=vocabulary.vectors)
        for evidence in _evidence(verdict, treated):
            written = {**head, "claim": _claim(verdict, treated), "vocabulary": about, "evidence": evidence}
            try:
                check_words(written, path)
            except CertificateError:
                continue
            return written
    if verdict.proven and len(vocabulary) > MOST_FOR_ALL_PAIRS:
        raise InputError(
            "no certificate is written: this proof goes through all pairs of words, which can be re-checked for at "
            "most "
            f"{MOST_FOR_ALL_PAIRS:,} words"
        )
    raise InputError(
        f"no certificate is written: the verifier, whose arithmetic is coarser, cannot confirm that the claim is "
        f"{verdict.word}"
    )


def _claim(verdict: Verdict, treated: Treatment) -> Data:
    made, rules, guarantee = treated.mechanism, treated.rules, verdict.guarantee
    parameters: Data = {"distance": made.distance} if isinstance(made, ScoredWords) else {}
    if isinstance(made, TEM):
        parameters |= {"gamma": repr(made.gamma), "far": made.far}
    if isinstance(made, CusText):
        parameters["K"] = made.K
    return {
        "mechanism": made.name,
        "epsilon": repr(float(made.epsilon)),
        "parameters": parameters,
        "rules": {"unknown": rules.unknown, "stop_words": rules.stop_words, "numbers": rules.numbers},
        "stop_words": sorted(STOP_WORDS) if rules.stop_words else [],
        "guarantee": {
            "epsilon": as_written(guarantee.value),
            "metric": guarantee.metric if isinstance(guarantee, MetricDP) else None,
        },
    }


def _evidence(verdict: Verdict, treated: Treatment) -> Iterator[Data]:
    """Evidence that may convince the verifier, the strongest first."""
    if verdict.proven:
        yield {"kind": "triangle inequality"}
        for slack in (0.0, *_SLACKS):
            yield {"kind": "all pairs", "at_most": repr(verdict.value.upper * (1 + slack))}
        yield {"kind": "all pairs", "at_most": as_written(verdict.guarantee.value)}
        return
    seen = verdict.witness
    assert isinstance(seen, WordWitness)
    if treated.rules.example(treated.mechanism.vocabulary) is not None:
        yield {"kind": "rule", "x": seen.x, "y": seen.y}
        return
    x, y = (word if word in treated.mechanism.vocabulary else None for word in (seen.x, seen.y))
    pair = {"kind": "pair", "x": x, "y": y, "output": seen.output}
    if math.isinf(verdict.value.lower):
        yield {**pair, "loss": "inf", "distance": None}
    loss = seen.log_p.lower - seen.log_q.upper
    for slack in _SLACKS:
        apart = None if seen.distance is None else repr(seen.distance * (1 + slack))
        yield {**pair, "loss": repr(loss * (1 - slack)), "distance": apart}
