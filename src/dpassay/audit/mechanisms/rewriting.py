"""Rewriters as mechanisms: an object with `rewrite(texts, rng)` and a `guarantee`, run one text at a time.

text/rewriters/base.py defines what a rewriter is, and what else it may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dpassay.errors import InputError
from dpassay.values import dataclass


def is_rewriter(thing: Any) -> bool:
    """Whether something is a rewriter, ready to be run.

    >>> is_rewriter(3)
    False
    """
    return not isinstance(thing, type) and callable(getattr(thing, "rewrite", None)) and _has_guarantee(thing)


def _has_guarantee(thing: Any) -> bool:
    try:
        return hasattr(thing, "guarantee")
    except Exception:  # a property that fails: whoever needs the guarantee reports that
        return True


def checked(written: Any, texts: Sequence[str]) -> list[str]:
    """The texts that a rewriter returned, checked to be one per input text; a line break in one becomes a space.

    >>> checked(["a\\nb"], ["ab"])
    ['a b']
    >>> checked(["a"], ["a", "b"])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: a rewriter must give a text for each text: 2 texts went in, 1 came out
    """
    found = list(written)
    if len(found) != len(texts):
        raise InputError(
            f"a rewriter must give a text for each text: {len(texts)} texts went in, {len(found)} came out"
        )
    return [_in_one_line(_text(text, "a rewriting is")) for text in found]


def _in_one_line(text: str) -> str:
    """The text itself if it is one line, since it may carry the tokens that were drawn."""
    lines = text.splitlines()
    return text if lines in ([], [text]) else " ".join(lines)


def describe(rewriter: Any) -> dict[str, str]:
    """What identifies a rewriter: its own description, or its type and its guarantee."""
    own = getattr(rewriter, "describe", None)
    if own is not None:
        return dict(own())
    return {"kind": "model", "type": type(rewriter).__name__, "guarantee": str(rewriter.guarantee)}


@dataclass(frozen=True, eq=False)
class RewritingMechanism:
    """A rewriter as a mechanism that an audit runs: `sample(x, n, rng)`."""

    rewriter: Any
    made_with: dict[str, str] = field(default_factory=dict)  # ε and δ, if the rewriter does not state them itself

    @property
    def independent_rows(self) -> bool:
        """Whether the rewriter declares the rewritings of one batch independent of one another."""
        return bool(getattr(self.rewriter, "independent_rows", False))

    def sample(self, x: str, n: int, rng: np.random.Generator) -> list[str]:
        """Draw n rewritings of one text."""
        texts = [_text(x, "a rewriter takes")] * n
        return checked(self.rewriter.rewrite(texts, rng), texts)

    def describe(self) -> dict[str, str]:
        """What identifies the rewriter, for a saved audit."""
        return {**self.made_with, **describe(self.rewriter)}


@dataclass(frozen=True, eq=False)
class LikelyRewriting(RewritingMechanism):
    """The same for a rewriter that knows the probability of what it writes."""

    def log_prob(self, output: str, x: str) -> float:
        """The exact log-probability of an output for a text."""
        return float(self.rewriter.log_prob(output, x))


def as_mechanism(rewriter: Any, made_with: dict[str, str] | None = None) -> RewritingMechanism:
    """A rewriter as a mechanism, with its likelihood if it has one."""
    return (LikelyRewriting if hasattr(rewriter, "log_prob") else RewritingMechanism)(rewriter, made_with or {})


def _text(given: Any, said: str) -> str:
    if not isinstance(given, str):
        raise InputError(f"{said} a text, got {given!r:.60}")
    return given
