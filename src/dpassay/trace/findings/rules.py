"""The rules of a trace: an id that stays the same from version to version, and what it means."""

from __future__ import annotations

RULES: dict[str, str] = {
    "shared-noise": "one random number hides several coordinates, whose differences are released",
    "noise-reused": "the same noise is in two released values, or is released itself",
    "noise-made-once": "the noise was drawn in an earlier call",
    "fixed-seed": "every call, or every new process, draws the same noise",
    "loss-too-large": "the noise is too small for what it hides (a wrong norm, σ² for σ, ε for 1/ε, a residual, a clip "
    "after the noise), is on one side only, or is dropout; or the probabilities of what is drawn differ too much "
    "(unclipped logits, top-k)",
    "wrong-formula": "a formula turns some of the uniform numbers it is given into NaN or no noise, and the others "
    "into numbers of one sign",
    "leak": "the input reaches the output without passing through the noise",
    "no-noise": "the output is the same in every run, and no noise was drawn",
    "raises": "an exception, or its message, tells the inputs apart",
    "told-apart": "natural runs tell the two inputs apart more often than the claim allows, whatever the cause",
    "scale-depends-on-input": "the two inputs get noise of different scales",
    "draws-differ": "the two inputs draw different noise, so the runs cannot be compared",
    "unfollowed": "drawn numbers could not be followed to what they hide: a formula whose distribution is not known, "
    "or code that cannot be seen",
    "sampling-not-accounted": "batches are shuffled, drawn with replacement or taken in order, contrary to what "
    "the privacy accountant of the code assumes, so its ε does not apply to them",
    "opaque": "random numbers come from a source that cannot be followed",
}
# For hostile inputs: warnings, unless the claim covers the pair.
HOSTILE_RULES: dict[str, str] = {
    "odd-word-kept": "a word that the code does not know, or treats differently from others, comes out unchanged",
    "not-finite": "an input produces NaN or an infinity in the output, which no noise hides",
    "unbounded-input": "nothing bounds what the noise is added to: a huge number reaches it",
    "same-every-run": "an input gives the same output in every run, while others do not",
    "size-shows": "the size of the output reveals how many rows the input has",
    "some-refused": "some inputs of one kind are refused and others are not, so a failure reveals which it was",
}


def meaning(rule: str) -> str:
    """What a rule means, in one line; empty for an unknown rule.

    >>> meaning("fixed-seed")
    'every call, or every new process, draws the same noise'
    """
    return {**RULES, **HOSTILE_RULES}.get(rule, "")
