"""Is that ε real? Exact, re-checkable verdicts on differential-privacy claims."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay import claims
    from dpassay.api import check
    from dpassay.audit.runner import audit
    from dpassay.claims.claim import Claim
    from dpassay.claims.toml import read_claim
    from dpassay.core.guarantee import GDP, ZCDP, ApproxDP, MetricDP, PureDP, RenyiDP
    from dpassay.core.interval import Interval
    from dpassay.core.neighbours import Neighbours
    from dpassay.errors import (
        AmbiguousError,
        CertificateError,
        DpassayError,
        ExpressionError,
        InputError,
        MechanismError,
    )
    from dpassay.evidence.certificate import certify, save
    from dpassay.evidence.verdict import Open, Proven, Refuted, Verdict
    from dpassay.evidence.verifier import verify
    from dpassay.exact import calibrate
    from dpassay.exact.composition import compose
    from dpassay.exact.pld.privacy_loss import PrivacyLoss
    from dpassay.pipeline.mechanism import Mechanism
    from dpassay.pipeline.parser import parse
    from dpassay.pipeline.pipeline import Pipeline
    from dpassay.scan.session import scan
    from dpassay.testing.assertion import assert_dp
    from dpassay.testing.trace_assertion import assert_trace
    from dpassay.trace.session import trace

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used, so that the command line starts fast
# and `verify` can run without the modules whose work it checks.
_HOMES = {
    "api": ("check",),
    "claims.claim": ("Claim",),
    "claims.toml": ("read_claim",),
    "core.guarantee": ("GDP", "ZCDP", "ApproxDP", "MetricDP", "PureDP", "RenyiDP"),
    "core.interval": ("Interval",),
    "core.neighbours": ("Neighbours",),
    "errors": ("AmbiguousError", "CertificateError", "DpassayError", "ExpressionError", "InputError", "MechanismError"),
    "evidence.certificate": ("certify", "save"),
    "evidence.verdict": ("Open", "Proven", "Refuted", "Verdict"),
    "evidence.verifier": ("verify",),
    "exact.composition": ("compose",),
    "exact.pld.privacy_loss": ("PrivacyLoss",),
    "pipeline.mechanism": ("Mechanism",),
    "pipeline.parser": ("parse",),
    "pipeline.pipeline": ("Pipeline",),
    "testing.assertion": ("assert_dp",),
    "testing.trace_assertion": ("assert_trace",),
}
# Modules that are public themselves; four of them can be called, or asked for a claim.
_MODULES = {"audit": "audit", "calibrate": "exact.calibrate", "claims": "claims", "scan": "scan", "trace": "trace"}

__all__ = [
    "GDP",
    "ZCDP",
    "AmbiguousError",
    "ApproxDP",
    "CertificateError",
    "Claim",
    "DpassayError",
    "ExpressionError",
    "InputError",
    "Interval",
    "Mechanism",
    "MechanismError",
    "MetricDP",
    "Neighbours",
    "Open",
    "Pipeline",
    "PrivacyLoss",
    "Proven",
    "PureDP",
    "Refuted",
    "RenyiDP",
    "Verdict",
    "assert_dp",
    "assert_trace",
    "audit",
    "calibrate",
    "certify",
    "check",
    "claims",
    "compose",
    "parse",
    "read_claim",
    "save",
    "scan",
    "trace",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpassay.{_MODULES[name]}")
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"dpassay.{home}"), name)
            return value
    raise AttributeError(f"module 'dpassay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
