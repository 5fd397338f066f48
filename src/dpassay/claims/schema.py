"""The JSON Schema of claim files, for editors that check and complete TOML: docs/claims.schema.json is a copy.

It lists the keys and their kinds. Errors that only the pipeline's parser can find are reported by `read_claim`.
"""

from __future__ import annotations

import re
from typing import Any, get_args

from dpassay.claims.toml import ClaimFile
from dpassay.core.guarantee import Metric
from dpassay.core.neighbours import KINDS

FORMULA = {"type": ["number", "string"], "minLength": 1}
# What an editor shows for each key.
MEANING = {
    "pipeline": "The mechanism as text, such as clip(l2, C) | laplace(2*C/eps).",
    "epsilon": "What is claimed: a number, or a formula of the parameters and dim as a text.",
    "delta": "The claimed delta; 0 if left out.",
    "metric": "Metric DP: epsilon is per unit of distance in this metric.",
    "order": "Rényi DP: epsilon is the divergence of this order; inf is pure DP.",
    "rho": "The claimed rho of zero-concentrated DP, instead of epsilon.",
    "mu": "The claimed mu of Gaussian DP, instead of epsilon.",
    "dim": "The dimension of the vectors.",
    "parameters": "Numbers for the names in the pipeline and in the formulas.",
    "neighbours": "Which two inputs the guarantee is about; if left out, what the stages suggest.",
    "privacy_unit": "Whose data are protected, in words: what the deployments registry calls the privacy unit.",
    "deployment_model": "Who is trusted, in the words of the deployments registry.",
    "people": "How many people are in the data; delta must be far below one over that number.",
    "caveats": "Warnings that no formula shows.",
    "expected": "The expected verdict, which 'dpassay gallery --from' compares.",
    "name": "What the claim is called; the file's name if left out.",
    "title": "A heading.",
    "source": "Who claims it, and where.",
    "brief": "Why it holds or fails, in a few words, for a table.",
    "why": "Why it holds or fails, in a sentence or two.",
}


def claim_schema() -> dict[str, Any]:
    """The schema, from the model that reads the files.

    >>> claim_schema()["required"], claim_schema()["properties"]["expected"]["enum"]
    (['pipeline'], ['proven', 'refuted', 'open'])
    """
    made = ClaimFile.model_json_schema()["properties"]
    made |= {key: dict(FORMULA) for key in ("epsilon", "delta", "order", "rho", "mu")}
    made["parameters"] = {"type": "object", "additionalProperties": FORMULA}
    made["metric"] = {"type": "string", "enum": list(get_args(Metric))}
    made["neighbours"] = {"type": "string", "pattern": f"^({'|'.join(map(_pattern, KINDS))})$"}
    properties = {}
    for key, form in made.items():
        kept = {name: value for name, value in form.items() if name not in ("title", "default", "description")}
        properties[key] = {"description": MEANING[key], **kept}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",  # the newest that TOML editors know
        "title": "A claim of differential privacy, for dpassay",
        "type": "object",
        "properties": properties,
        "required": ["pipeline"],
        "anyOf": [{"required": [key]} for key in ("epsilon", "rho", "mu")],
        "additionalProperties": False,
    }


def _pattern(kind: str) -> str:
    """The neighbors of one kind, as a regular expression; n stands for a number."""
    return re.escape(kind).replace(r"\(n\)", r"\([0-9]{1,7}\)").replace(r"\-", "-")
