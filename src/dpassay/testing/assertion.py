"""An audit as an assertion: `assert_dp` passes unless the claim is refuted.

Outside pytest each call is independent. Inside, the plugin gives each test a budget, from which its calls take their
error probability and their random streams. This file needs neither pytest nor, until an audit begins, numpy.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Any

from dpassay.audit.options import INPUT_SOURCES, show_options

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict

RUNS = 20_000
ALPHA = 1e-4
SEED = 0
DEFAULTS = {"alpha": ALPHA, "seed": SEED, "runs": RUNS, "bits": False, "until_refuted": True}


class NotPrivate(AssertionError):
    """A claim that an audit refuted; the `verdict` holds the evidence."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class AuditWarning(UserWarning):
    """Something about an audit that is not visible from its passing."""


def two_digits(alpha: float) -> float:
    """An error probability rounded down to two digits, so that it can be read and typed again.

    >>> two_digits(1e-4 / 3), two_digits(3.3e-05)
    (3.3e-05, 3.3e-05)
    """
    exact = Decimal(repr(alpha))
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - 1)), ROUND_DOWN))


def merged(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments, of which the inner ones win. Another source of inputs replaces the outer one.

    >>> merged({"epsilon": 1, "inputs": [0, 1]}, {"pairs": [(0, 2)]})
    {'epsilon': 1, 'pairs': [(0, 2)]}
    """
    hidden = [*INPUT_SOURCES] if inner.keys() & set(INPUT_SOURCES) else []
    hidden += ["vocabulary"] if hidden and "text" not in inner else []  # it belongs to a text
    return {**{key: value for key, value in outer.items() if key not in hidden}, **inner}


@dataclass
class AlphaShares:
    """What one test may spend, its mark's arguments, and what its audits have found so far.

    Its k-th audit gets 6/(π²k²) of its error probability: these shares add up to 1 however many there are. Its random
    stream depends on the seed, the test's name and k, so no other test changes it.

    >>> place = "test_a.py::test_b"
    >>> budget = AlphaShares(alpha=1e-4, seed=0, runs=1000, place=place, replay=f"pytest {place}")
    >>> [budget.next()["alpha"] for _ in range(3)]
    [6e-05, 1.5e-05, 6.7e-06]
    """

    alpha: float
    seed: int
    runs: int
    place: str
    replay: str
    defaults: dict[str, Any] = field(default_factory=dict)
    calls: int = 0
    found: list[tuple[bool, float]] = field(default_factory=list)  # refuted or not, and the call's own alpha
    traces: list[tuple[bool, float]] = field(default_factory=list)  # the same for traces

    def next(self) -> dict[str, Any]:
        """What the next audit gets."""
        self.calls += 1
        stream = self._stream(str(self.calls))
        return {"alpha": two_digits(self.alpha * 6 / (math.pi * self.calls) ** 2), "seed": stream, "runs": self.runs}

    def next_trace(self) -> int:
        """The seed of the next trace."""
        return self._stream(f"trace {len(self.traces) + 1}")

    def _stream(self, which: str) -> int:
        name = f"{self.seed} {self.place} {which}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(name).digest()[:6], "big")


RUNNING: list[AlphaShares] = []  # that of the running test is last; a test may run pytest itself


@show_options(**DEFAULTS)
def assert_dp(mechanism: Any, pairs: Any = None, **more: Any) -> Verdict:
    """Audit a mechanism and raise an AssertionError if its claim is refuted; otherwise return the verdict.

    It takes what `dpassay.audit` takes; floating-point artifacts are searched for only with `bits=True`. A claim that
    is not refuted is not thereby proven. In a pytest session the error probability is the test's share of `--dp-alpha`,
    see docs/pytest.md; elsewhere it is 0.0001 for each call.

    >>> def noisy(x, n, rng):
    ...     return x + rng.laplace(scale=1, size=n)
    >>> assert_dp(noisy, [(0.0, 1.0)], epsilon=1.1).word
    'open'
    >>> assert_dp(noisy, [(0.0, 3.0)], epsilon=1.1)
    Traceback (most recent call last):
    ...
    dpassay.testing.assertion.NotPrivate: the claim of 1.1-DP for ...noisy is refuted
    ...
    """
    __tracebackhide__ = True
    from dpassay.audit.runner import audit

    asked = {name: value for name, value in {"pairs": pairs, **more}.items() if value is not None or name == "bits"}
    budget = RUNNING[-1] if RUNNING else None
    own = None
    if budget is not None:
        asked = merged(budget.defaults, asked)
        own = asked.get("alpha")
        asked = {**budget.next(), **asked}
    asked = {**DEFAULTS, **({"until_refuted": False} if asked.get("fixed") else {}), **asked}
    verdict = audit(mechanism, **asked)
    if verdict.word != "refuted" and verdict.interrupted:
        raise KeyboardInterrupt
    if budget is not None:
        budget.found.append((verdict.word == "refuted", 0.0 if own is None else float(own)))
    if verdict.word == "refuted":
        again = f"call assert_dp again with seed={asked['seed']}, runs={asked['runs']} and alpha={asked['alpha']!r}"
        failed = getattr(verdict.witness, "failure", None)  # if the outputs are failures, show the mechanism's own
        raise NotPrivate(_failure(verdict, budget.replay if budget is not None else again), verdict) from failed
    for warning in (*verdict.warnings, *_cannot_fail(verdict, asked)):
        warnings.warn(warning, AuditWarning, stacklevel=2)
    return verdict


def _failure(verdict: Verdict, replay: str) -> str:
    """What a refuted claim prints: the evidence, and finally the command that reproduces it."""
    from dpassay.audit.witness import table_rows, witness_rows
    from dpassay.evidence.sampled import SampledWitness

    rows = [("reason", verdict.reason)]
    if isinstance(verdict.witness, SampledWitness):
        rows += witness_rows(verdict.witness, verdict.guarantee)
        table = table_rows(verdict.witness)
        rows += [("", f"{row[0]:<8}" + "".join(f"{cell:>14}" for cell in row[1:])) for row in table]
    rows.append(("alpha", f"{verdict.alpha:g}, the probability that this audit refutes a correct mechanism"))
    rows += [("warning", warning) for warning in verdict.warnings]
    if not verdict.replays:
        rows.append(("note", "the mechanism's randomness is its own: a replay draws other outputs"))
    rows.append(("replay", replay))
    lines = [f"  {label:<8} {' '.join(words.splitlines())}".rstrip() for label, words in rows]
    return "\n".join([f"the claim of {verdict.guarantee} for {verdict.subject} is refuted", *lines])


def _cannot_fail(verdict: Verdict, asked: dict[str, Any]) -> list[str]:
    """A warning if no outcome of these runs could have refuted the claim."""
    from dpassay.audit.verdict import out_of_reach

    of_game = dict(verdict.ledger)["the guessing game"]
    candidates = asked.get("candidates")
    many = 2 if candidates is None else len(candidates)
    out = out_of_reach(verdict.guarantee.claimed, asked["runs"], of_game, many)
    return [f"this assertion cannot fail: {verdict.guarantee} for {verdict.subject} is {out}"] if out else []
