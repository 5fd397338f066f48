"""Verdicts on published claims that several files of tests look at: each is made once in a process."""

from functools import cache

from dpassay.api import check
from dpassay.claims.registry import REGISTRY
from dpassay.evidence.verdict import Verdict


@cache
def published_verdict(name: str) -> Verdict:
    """What `check` says of a published claim."""
    return check(REGISTRY[name])
