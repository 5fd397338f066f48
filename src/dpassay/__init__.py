"""Is that ε real? Exact, re-checkable verdicts on differential-privacy claims."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay import claims
    from dpassay.api import check
    from dpassay.audit.runner import audit
    from dpassay.claims.claim import Claim
    from dpassay.claims.toml import read_claim
    from dpassay.core.guarantee import ApproxDP, PureDP
    from dpassay.core.interval import Interval
    from dpassay.core.neighbours import Neighbours
    from dpassay.errors import CertificateError, DpassayError, ExpressionError, InputError, MechanismError
    from dpassay.evidence.certificate import certify, save
    from dpassay.evidence.verdict import Open, Proven, Refuted, Verdict
    from dpassay.evidence.verifier import verify
    from dpassay.exact.privacy_loss import PrivacyLoss
    from dpassay.pipeline.mechanism import Mechanism
    from dpassay.pipeline.parser import parse
    from dpassay.pipeline.pipeline import Pipeline
    from dpassay.testing.assertion import assert_dp

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used, so that the command line starts fast
# and `verify` can run without the modules whose work it checks.
_HOMES = {
    "ApproxDP": "core.guarantee",
    "CertificateError": "errors",
    "Claim": "claims.claim",
    "DpassayError": "errors",
    "ExpressionError": "errors",
    "InputError": "errors",
    "Interval": "core.interval",
    "PrivacyLoss": "exact.privacy_loss",
    "Mechanism": "pipeline.mechanism",
    "MechanismError": "errors",
    "Neighbours": "core.neighbours",
    "Open": "evidence.verdict",
    "Pipeline": "pipeline.pipeline",
    "Proven": "evidence.verdict",
    "PureDP": "core.guarantee",
    "Refuted": "evidence.verdict",
    "Verdict": "evidence.verdict",
    "assert_dp": "testing.assertion",
    "certify": "evidence.certificate",
    "check": "api",
    "parse": "pipeline.parser",
    "read_claim": "claims.toml",
    "save": "evidence.certificate",
    "verify": "evidence.verifier",
}

__all__ = [
    "ApproxDP",
    "CertificateError",
    "Claim",
    "DpassayError",
    "ExpressionError",
    "InputError",
    "Interval",
    "Mechanism",
    "MechanismError",
    "Neighbours",
    "Open",
    "Pipeline",
    "PrivacyLoss",
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
    if name in ("audit", "claims"):  # packages that can be called, or asked for a claim
        return import_module(f"dpassay.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"dpassay.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dpassay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
