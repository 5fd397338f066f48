"""What a worker computes: each kind of question is a generator of JSON-ready parts, the fastest first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from dpassay.api import check
from dpassay.claims.claim import Claim
from dpassay.claims.judge import quick_check
from dpassay.claims.registry import SYSTEMS, find
from dpassay.claims.registry.sources import paper_address
from dpassay.core.guarantee import ApproxDP, PureDP, epsilon_delta
from dpassay.core.interval import bound
from dpassay.core.numbers import as_written
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verdict import Bounds, JudgedClaim, Open, Proven, Refuted, Verdict
from dpassay.exact.analysis import analyse
from dpassay.exact.witness import Witness
from dpassay.report.claims.claim_report import ClaimReport
from dpassay.report.claims.gallery import claimed, latex
from dpassay.report.claims.show import grid, remedies
from dpassay.report.pages.meaning import meaning
from dpassay.report.pages.meaning import shown as shorter
from dpassay.report.pages.page import LETTERS, Scale, charted, headline, kinds_of, true_shown
from dpassay.report.pages.typeset import sentence, typeset
from dpassay.server.asked import PageQuestion, of_claim
from dpassay.server.pictures import pictures

Parts = Iterator[dict[str, Any]]
KINDS: dict[str, type[Verdict]] = {"proven": Proven, "refuted": Refuted, "open": Open}
MOST_DRAWN = 2_000_000  # numbers that the sanity check may draw at once, as runs times dimensions
RUNS, ALPHA = 20_000, 0.001


def glance_parts(asked: PageQuestion) -> Parts:
    """The verdict as a word, a sentence and an interval, with the pictures: what can be computed quickly.

    >>> (quick,) = glance_parts(PageQuestion("query(l1, 1) | laplace(1)", epsilon="0.5"))
    >>> quick["word"], quick["interval"]
    ('refuted', '1')
    """
    claim = asked.claim()
    pipeline = claim.mechanism
    neighbours = claim.neighbours or pipeline.neighbours
    word, value, least_delta = quick_check(claim)
    judged = JudgedClaim(claim.name, "", pipeline, claim.pipeline, neighbours, claim.guarantee)
    quick = KINDS[word](judged, Bounds(value, None, least_delta), "")
    yield {
        **_face(quick),
        "pictures": pictures(pipeline, analyse(pipeline, neighbours), claim.guarantee, value),
        "copy": {"command": asked.command, "python": asked.python},
    }


def check_parts(asked: PageQuestion) -> Parts:
    """The reason, the witness, the repairs and what does hold, and the whole verdict as in its schema.

    >>> (full,) = check_parts(PageQuestion("query(l1, 1) | laplace(1)", epsilon="0.5"))
    >>> full["repairs"][0]["mechanism"]
    'query(l1, 1) | laplace(2)'
    """
    claim = asked.claim()
    yield _rest(claim, check(claim))


def _face(verdict: Verdict) -> dict[str, Any]:
    guarantee, value = verdict.guarantee, verdict.value
    return {
        "word": verdict.word,
        "headline": headline(verdict),
        "meaning": meaning(verdict),
        "interval": typeset(str(value)),
        "short": true_shown(verdict),
        "lower": _number(value.lower),
        "upper": _number(value.upper),
        "claimed": guarantee.claimed,
        "delta": guarantee.delta,
        "letter": LETTERS[guarantee.parameter],
        "unit": guarantee.unit,
        "guarantee": typeset(str(guarantee)),
        "mechanism": str(verdict.mechanism),
        "neighbours": str(verdict.neighbours),
        "odds": isinstance(guarantee, PureDP | ApproxDP),
    }


def _rest(claim: Claim, verdict: Verdict) -> dict[str, Any]:
    witness = verdict.witness
    shown = None
    if isinstance(witness, Witness):
        event = sentence(witness.event_text) if witness.event else ""
        shown = {"pair": sentence(witness.values), "event": event}
    return {
        "word": verdict.word,
        "reason": typeset(verdict.reason),
        "warnings": [typeset(warning) for warning in verdict.warnings],
        "witness": shown,
        "true_delta": None if verdict.delta is None else typeset(shorter(verdict.delta, verdict.guarantee.delta, 1)),
        "repairs": [
            {
                "mechanism": str(repair.mechanism or ""),
                "guarantee": typeset(str(repair.guarantee or "")),
                "noise": "" if repair.deviation is None else typeset(f"{repair.deviation:.4g}"),
                "advice": typeset(repair.advice),
            }
            for repair in verdict.repairs
        ],
        "holds": [[typeset(f"{delta:g}"), typeset(bound(held.upper, 1))] for delta, held in verdict.holds],
        "theorems": [theorem.value for theorem in verdict.theorems],
        "latex": latex([(replace(claim, name=verdict.subject), verdict)]),
        "verdict": verdict.to_dict(),
    }


def certificate_parts(asked: PageQuestion) -> Parts:
    """The certificate, as the text of a file."""
    yield {"text": json.dumps(certify(check(asked.claim())), indent=1, ensure_ascii=False) + "\n"}


def report_parts(asked: PageQuestion) -> Parts:
    """The self-contained page."""
    yield {"text": check(asked.claim()).to_html(asked.command)}


def audit_parts(asked: PageQuestion) -> Parts:
    """The sanity check as runs come in: a lower bound on ε that holds at all times simultaneously.

    >>> *_, last = audit_parts(PageQuestion("query(l1, 1) | laplace(1)", epsilon="0.2"))
    >>> 0.2 < last["bound"] < 1, last["refuted"]
    (True, True)
    """
    from dpassay.audit.inputs.pair_search import search
    from dpassay.audit.options import AuditOptions
    from dpassay.audit.resolved import resolve
    from dpassay.audit.testing.experiment import GameState, bound
    from dpassay.audit.testing.sequential import anytime

    claim = asked.claim()
    epsilon_delta(claim.guarantee)  # refused here if samples cannot test it
    dim = max(region.region.dim for region in claim.mechanism.output_regions())
    if dim * 100 > MOST_DRAWN:
        raise InputError(f"the sanity check runs in up to {MOST_DRAWN // 100:,} dimensions here, and this has {dim:,}")
    runs = min(RUNS, MOST_DRAWN // dim)
    question, _ = resolve(claim, AuditOptions.of({"runs": runs, "alpha": ALPHA, "shrink": False}))
    inputs, searched = question.input_sets[0], 0
    if len(question.input_sets) > 1:
        budget = question.options.search_budget
        for cost, found in search(question.experiment, question.input_sets, question.hypothesis, budget, fixed=False):
            searched, inputs = searched + cost, found or inputs
    experiment, game, best = question.experiment(inputs, 0), GameState(kept=[[] for _ in inputs]), 0.0
    claimed_at, said = question.guarantee.epsilon, 0
    for _ in anytime(experiment, game, runs - searched, None):
        if game.runs >= 1.15 * said + 20:
            said = game.runs
            best = max(best, bound(game, question.hypothesis, ALPHA, False))
            yield _counted(searched, game, best, claimed_at)
    if not game.runs:
        used = f"the search for a pair of inputs used all {searched:,} runs" if searched else "no run was made"
        raise InputError(f"there is no result: {used} that this dimension allows here; dpassay audit has no such limit")
    best = max(best, bound(game, question.hypothesis, ALPHA, False))
    yield {**_counted(searched, game, best, claimed_at), "last": True}


def _counted(searched: int, game: Any, best: float, claimed_at: float) -> dict[str, Any]:
    right, wrong, _ = game.totals()
    counts = {"runs": searched + game.runs, "right": right, "wrong": wrong}
    why = "" if right + wrong else "In no run did the output favor one input enough for a guess."
    return {**counts, "bound": _number(best), "refuted": best > claimed_at, "alpha": ALPHA, "why": why}


def gallery_parts() -> Parts:
    """Every claim of the registry, by system: what is claimed, what is true, and why in a few words; and one axis."""
    verdicts = {claim.name: check(claim) for system in SYSTEMS.values() for claim in system.claims}
    scale = Scale.of(verdicts.values())
    systems: list[dict[str, Any]] = []
    for system in SYSTEMS.values():
        rows = []
        for claim in system.claims:
            verdict = verdicts[claim.name]
            why = claim.brief or claim.why or verdict.reason
            rows.append({**charted(claim, verdict, scale), "claimed": typeset(claimed(verdict)), "why": why})
        systems.append({"system": system.title, "rows": sorted(rows, key=lambda row: row["word"] != "refuted")})
    yield {"systems": systems, "ticks": scale.ticks, "kinds": kinds_of(verdicts.values())}


def story_parts(name: str) -> Parts:
    """Everything that is known about one claim of the registry."""
    claim = find(name)
    report = ClaimReport(claim)
    verdict, system = report.verdict, report.system
    rest = _rest(claim, verdict)
    rest.pop("verdict")
    yield {
        **_face(verdict),
        **rest,
        **{"name": claim.name, "title": claim.title or claim.name, "source": claim.source, "why": typeset(claim.why)},
        **{"pipeline": claim.pipeline, "address": of_claim(claim).address},
        "paper": paper_address(claim.source),
        "proofs": [theorem.value for theorem in verdict.theorems],
        "told": [] if system is None else [typeset(system.what), typeset(system.reasoning)],
        "system": "" if system is None else system.title,
        "others": [] if system is None else [[c.name, c.title] for c in system.claims if c.name != name],
        "grid": [[typeset(cell) for cell in row] for row in grid(report)],
        "beside": [[label, f"{value:.6g}"] for label, value in report.beside],
        "remedies": [[typeset(cell) for cell in row] for row in remedies(report)],
        "value": as_written(verdict.guarantee.value),
    }


def _number(value: float) -> float | None:
    """A number for JSON; None stands for infinity."""
    return value if math.isfinite(value) else None


QUESTIONS: dict[str, Callable[..., Parts]] = {
    "glance": glance_parts,
    "check": check_parts,
    "certificate": certificate_parts,
    "report": report_parts,
    "audit": audit_parts,
    "gallery": gallery_parts,
    "story": story_parts,
}


def answer(question: dict[str, Any]) -> Parts:
    """The parts of the answer to a question, which is a kind with a claim, or with the name of one.

    >>> next(answer({"kind": "glance", "asked": {"pipeline": "query(l1, 1) | laplace(1)", "epsilon": "1"}}))["word"]
    'proven'
    """
    kind = QUESTIONS[question["kind"]]
    if "asked" in question:
        return kind(PageQuestion(**question["asked"]))
    return kind(question["name"]) if "name" in question else kind()
