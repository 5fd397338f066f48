"""Published claims, one system per file: as published, why it fails, its remedies."""

from dpassay.claims.claim import Claim, System
from dpassay.claims.registry.basics import central, controls, extremes, gaussian, laplace, properties, response
from dpassay.claims.registry.local import binary, hashing
from dpassay.claims.registry.text import adept, directions, dpbart, dpnr, dpprompt, dptext, madlib, uedp, words
from dpassay.errors import InputError, did_you_mean

_FILES = (
    laplace,
    adept,
    dptext,
    dpnr,
    madlib,
    directions,
    words,
    dpbart,
    dpprompt,
    uedp,
    binary,
    hashing,
    response,
    gaussian,
    extremes,
    controls,
    central,
    properties,
)
SYSTEMS: dict[str, System] = {file.SYSTEM.name: file.SYSTEM for file in _FILES}
REGISTRY: dict[str, Claim] = {claim.name: claim for system in SYSTEMS.values() for claim in system.claims}


def find(name: str) -> Claim:
    """A claim by its name.

    >>> find("adept").expected
    'refuted'
    """
    if name in REGISTRY:
        return REGISTRY[name]
    if "(" in name:
        raise InputError(f"{name[:60]!r} is not the name of a claim; 'dpassay check --pipeline TEXT' takes a mechanism")
    if ":" in name:
        raise InputError(f"{name[:60]!r} is not the name of a claim; code is given by --python MODULE:NAME")
    hint = did_you_mean(name, REGISTRY) or ";"
    there = "'dpassay show' lists them; your own are .toml files, and 'dpassay gallery --from' takes a folder of these"
    raise InputError(f"unknown claim {name[:60]!r}{hint} {there}")


def claim_called(name: str) -> Claim | None:
    """A published claim by its name, or one of a .toml file; None for any other text.

    >>> claim_called("adept").expected, claim_called("clip(l2, 1) | laplace(2)")
    ('refuted', None)
    """
    if name.endswith(".toml"):
        from dpassay.claims.toml import read_claim

        return read_claim(name)
    return REGISTRY.get(name)
