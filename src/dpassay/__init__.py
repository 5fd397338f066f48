"""Is that ε real? Exact, re-checkable verdicts on differential-privacy claims."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay import claims
    from dpassay.asserting import assert_dp
    from dpassay.auditing import audit
    from dpassay.certificate import certify, save
    from dpassay.checking import check
    from dpassay.claim import Claim
    from dpassay.claimfile import read_claim
    from dpassay.errors import CertificateError, DpassayError, ExpressionError, InputError, MechanismError
    from dpassay.expression import parse
    from dpassay.guarantee import ApproxDP, PureDP
    from dpassay.interval import Interval
    from dpassay.loss import Loss
    from dpassay.mechanism import Mechanism
    from dpassay.neighbours import Neighbours
    from dpassay.pipeline import Pipeline
    from dpassay.verdict import Open, Proven, Refuted, Verdict
    from dpassay.verification import verify

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used, so that the command line starts fast
# and `verify` can run without the modules whose work it checks.
_HOMES = {
    "ApproxDP": "guarantee",
    "CertificateError": "errors",
    "Claim": "claim",
    "DpassayError": "errors",
    "ExpressionError": "errors",
    "InputError": "errors",
    "Interval": "interval",
    "Loss": "loss",
    "Mechanism": "mechanism",
    "MechanismError": "errors",
    "Neighbours": "neighbours",
    "Open": "verdict",
    "Pipeline": "pipeline",
    "Proven": "verdict",
    "PureDP": "guarantee",
    "Refuted": "verdict",
    "Verdict": "verdict",
    "assert_dp": "asserting",
    "audit": "auditing",
    "certify": "certificate",
    "check": "checking",
    "parse": "expression",
    "read_claim": "claimfile",
    "save": "certificate",
    "verify": "verification",
}

__all__ = [
    "ApproxDP",
    "CertificateError",
    "Claim",
    "DpassayError",
    "ExpressionError",
    "InputError",
    "Interval",
    "Loss",
    "Mechanism",
    "MechanismError",
    "Neighbours",
    "Open",
    "Pipeline",
    "Proven",
    "PureDP",
    "Refuted",
    "Verdict",
    "assert_dp",
    "audit",
    "certify",
    "check",
    "claims",
    "parse",
    "read_claim",
    "save",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "claims":
        return import_module("dpassay.claims")
    if name in _HOMES:
        value = getattr(import_module(f"dpassay.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dpassay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
