"""What a notebook shows for a verdict, a loss or a claim: a card with a plot, readable in light and dark themes.

Text has the color of the notebook, and nothing has a background. The two colors of the plots stand out on both: their
contrast is at least 3 to 1 on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape
from scipy.special import ndtr, ndtri

from dpassay.core.guarantee import GDP, ApproxDP, Guarantee, PureDP
from dpassay.core.interval import Interval, outward
from dpassay.core.numbers import as_written, middle
from dpassay.errors import DpassayError, counted, escape_control_chars
from dpassay.evidence.sampled import SampledWitness
from dpassay.evidence.word_witness import WordWitness
from dpassay.exact.pld.loss_masses import loss_masses
from dpassay.report.pages.meaning import meaning, shown
from dpassay.report.pictures import svg
from dpassay.report.terminal import SIGNS

if TYPE_CHECKING:
    from dpassay.claims.claim import Claim
    from dpassay.evidence.verdict import Verdict
    from dpassay.exact.pld.privacy_loss import PrivacyLoss

COLOURS = {"proven": "#0072B2", "refuted": "#D55E00", "open": "#808080"}
STYLE = """
.dpassay-card { color: inherit; background: transparent; max-width: 44rem; padding: .2rem 1rem; margin: .5rem 0;
  border-left: .35rem solid ACCENT; font: 14px/1.5 system-ui, sans-serif; }
.dpassay-card p { margin: .3rem 0; }
.dpassay-card table { color: inherit; background: transparent; border-collapse: collapse; margin: .5rem 0; }
.dpassay-card th, .dpassay-card td { color: inherit; text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0;
  border: 0; white-space: normal; overflow-wrap: anywhere; }
.dpassay-card th { white-space: nowrap; font-weight: 600; }
.dpassay-card .plot { overflow-x: auto; }
.dpassay-card svg { width: 100%; height: auto; min-width: 26rem; max-width: 36rem; display: block;
  background: transparent; font: 12px system-ui, sans-serif; }
.dpassay-card svg text { fill: currentColor; text-anchor: middle; }
.dpassay-card svg text.end { text-anchor: end; }
.dpassay-card svg text.begin { text-anchor: start; }
.dpassay-card svg .axis { stroke: currentColor; opacity: .5; }
.dpassay-card svg .line { fill: none; stroke: ACCENT; stroke-width: 2; }
.dpassay-card svg .area { fill: ACCENT; opacity: .25; }
.dpassay-card svg .claimed { fill: none; stroke: currentColor; stroke-width: 2; }
.dpassay-card svg .mark { fill: ACCENT; }
.dpassay-card svg .thick { stroke-width: 5; }
.dpassay-card svg line.proven, .dpassay-card svg line.refuted, .dpassay-card svg line.open { stroke: ACCENT; }
.dpassay-card svg path.proven, .dpassay-card svg path.refuted, .dpassay-card svg path.open { fill: ACCENT; }
"""

Rows = Iterable[tuple[str, object]]


def verdict_card(verdict: Verdict) -> str:
    """The verdict and the reason, the claimed and the true value, and the evidence.

    >>> from dpassay import check
    >>> "✗ REFUTED" in verdict_card(check("clip(l2, 1) | laplace(2)", epsilon=1, dim=32))
    True
    """
    word, claimed, true = verdict.word, verdict.guarantee.claimed, verdict.value
    written = as_written(verdict.guarantee.value), shown(true, claimed)
    plot = svg.axis(claimed, true.lower, true.upper, word, *written) if claimed > 0 or true.lower > 0 else None
    return _card(word, f"{SIGNS[word]} {word.upper()}", verdict.reason, plot, _of_verdict(verdict))


def loss_card(loss: PrivacyLoss) -> str:
    """δ(ε) of the pair, its largest and its mean loss.

    >>> from dpassay import check
    >>> "largest loss" in loss_card(check("query(l1, 1) | laplace(1)", epsilon=1).loss)
    True
    """
    plot, infinite = None, middle(loss.infinite)
    drawn = loss_masses(loss)
    if drawn is not None:
        top = float(drawn.losses[drawn.masses > 1e-12].max(initial=0.0)) * 1.05 or 1.0
        epsilons = np.linspace(0, top, 120)
        plot = svg.curve(epsilons.tolist(), drawn.delta(epsilons).tolist(), [], ("ε", "δ(ε), from a grid"))
    rows: list[tuple[str, object]] = [("largest loss", Interval.around(loss.pure, "")), ("mean", loss.mean())]
    if infinite > 0:
        rows.append(("infinite", f"with probability {infinite:.6g}"))
    return _card("proven", "Privacy loss", "between two inputs, in this order", plot, rows)


def claim_card(claim: Claim) -> str:
    """What is claimed for which mechanism, and how well it allows two inputs to be distinguished.

    >>> from dpassay import claims
    >>> "Krishna" in claim_card(claims["adept"])
    True
    """
    guarantee: Guarantee | None
    try:
        guarantee, mechanism = claim.guarantee, str(claim.mechanism)
    except DpassayError as error:  # a claim may lack a parameter until it is called with one
        guarantee, mechanism = None, str(error)
    plot = None if guarantee is None else _allowed(guarantee)
    rows = [
        ("claimed", guarantee or ""),
        ("pipeline", claim.pipeline),
        ("mechanism", mechanism),
        ("between", claim.neighbours or "what the stages suggest"),
        ("source", claim.source),
        ("why", claim.why),
    ]
    said = "A claim, not yet judged: dpassay.check(claim) does that."
    return _card("open", claim.title or claim.name, said, plot, ((name, value) for name, value in rows if value))


def _of_verdict(verdict: Verdict) -> Iterator[tuple[str, object]]:
    if means := meaning(verdict):
        yield "this means", means
    yield "claim", f"{verdict.guarantee} for {verdict.subject}"
    yield "between", verdict.neighbours
    at = f" at delta {verdict.guarantee.delta:g}" if verdict.guarantee.delta else ""
    yield f"true {verdict.guarantee.parameter}", f"{verdict.value}{at}{verdict.guarantee.unit}"
    witness = verdict.witness
    if isinstance(witness, SampledWitness):
        from dpassay.audit.witness import witness_rows

        yield from witness_rows(witness, verdict.guarantee)
    elif isinstance(witness, WordWitness):
        yield "witness", witness.pair
        yield "event", witness.event
    elif witness is not None:
        yield "witness", witness.values
        if witness.event:
            yield "event", witness.event_text
    if verdict.alpha is not None:
        at_most = f"a correct claim is refuted with probability {verdict.alpha:g} at most"
        yield "error", f"{at_most}; {counted(verdict.runs, 'run')}"
    for delta, held in verdict.holds:
        yield "holds", f"epsilon {outward(held.upper, 1, 6)} at delta {delta:.3g}"
    for repair in verdict.repairs:
        yield "repair", repair.advice if repair.mechanism is None else f"{repair.mechanism} ({repair.guarantee})"
    for warning in verdict.warnings:
        yield "warning", warning
    yield "rests on", ", ".join(theorem.value for theorem in verdict.theorems)


def _allowed(guarantee: Guarantee) -> Markup | None:
    """How often the first input may be recognized, at each false alarm rate, if the guarantee holds."""
    alarms = np.linspace(0, 1, 101)
    if isinstance(guarantee, PureDP | ApproxDP) and math.isfinite(guarantee.claimed):
        grown = np.exp(min(guarantee.claimed, 700.0))
        found = np.minimum(grown * alarms + guarantee.delta, 1 - (1 - guarantee.delta - alarms) / grown)
    elif isinstance(guarantee, GDP):
        found = ndtr(ndtri(alarms) + guarantee.claimed)
    else:
        return None
    found = np.clip(found, 0.0, 1.0)
    return svg.curve(alarms.tolist(), found.tolist(), [], ("false alarms", "recognized, at most"), filled=True)


def _card(kind: str, title: str, said: str, plot: Markup | None, rows: Rows) -> str:
    """All text is escaped here."""
    style = STYLE.replace("ACCENT", COLOURS[kind]).replace("dpassay-card", f"dpassay-{kind}")
    body = Markup("").join(
        Markup("<tr><th>{}</th><td>{}</td></tr>").format(_text(name), _text(value)) for name, value in rows
    )
    drawn = "" if plot is None else Markup('<div class="plot">{}</div>').format(plot)
    return str(
        Markup('<div class="dpassay-{}"><style>{}</style><p><b>{}</b></p><p>{}</p>{}<table>{}</table></div>').format(
            kind, Markup(style), _text(title), _text(said), drawn, body
        )
    )


def _text(value: object) -> Markup:
    return escape(escape_control_chars(str(value)))
