"""Self-contained pages: the verdict first, then what could make it meaningless, then the evidence.

The contents of a page are gathered here; its layout is in templates/. Jinja2 escapes all text.
"""

import base64
import math
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpassay.audit.witness import table_rows, witness_rows
from dpassay.claims.claim import Claim
from dpassay.claims.registry import REGISTRY
from dpassay.core.guarantee import GDP, ZCDP, ApproxDP, Guarantee, MetricDP, PureDP, RenyiDP
from dpassay.core.interval import bound
from dpassay.core.numbers import as_written, middle
from dpassay.errors import escape_control_chars
from dpassay.evidence.sampled import SampledWitness
from dpassay.evidence.verdict import Verdict
from dpassay.evidence.word_witness import WordWitness
from dpassay.exact.pld.loss_masses import loss_masses
from dpassay.exact.witness import Witness
from dpassay.packages.environment import program
from dpassay.pipeline.pipeline import Pipeline
from dpassay.report.claims.gallery import by_system, claimed, true
from dpassay.report.packages import Judged, cells, sections, summary
from dpassay.report.pages.meaning import definition, meaning, shown
from dpassay.report.pages.proofs import proof_texts
from dpassay.report.pages.trace_report import trace_shown
from dpassay.report.pages.typeset import sentence, typeset
from dpassay.report.pictures import svg
from dpassay.report.terminal import SIGNS
from dpassay.trace.result import TraceResult

if TYPE_CHECKING:
    from dpassay.scan.findings import Scan
    from dpassay.text.measurements import MeasuredRow

FORMULA = (
    "This verdict applies to the formula in exact arithmetic. A program that computes it in floating point, or "
    "computes something else, can leak more; run it with dpassay audit."
)


Rows = Sequence[Sequence[str]]

LARGEST = 6  # the power of ten at which the gallery's figure ends
BEYOND = 96.0  # where it draws larger values, behind the break of its axis
KINDS: dict[type[Guarantee], str] = {
    PureDP: "ε-DP",
    ApproxDP: "(ε, δ)-DP",
    MetricDP: "metric DP",
    RenyiDP: "Rényi DP",
    ZCDP: "zCDP",
    GDP: "Gaussian DP",
}
LETTERS = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("dpassay.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else escape_control_chars(str(value)),
    )
    made.filters["sentence"] = sentence
    return made


def _page(template: str, title: str, command: str, verdict: Verdict | None = None, **values: Any) -> str:
    page = _templates().get_template(template)
    return page.render(title=title, command=command, date=_today(), versions=list(_versions(verdict)), **values)


def _today() -> str:
    """The date, or the one that SOURCE_DATE_EPOCH gives, for pages that can be made again."""
    when = os.environ.get("SOURCE_DATE_EPOCH", "")
    return (datetime.fromtimestamp(int(when), UTC) if when.isdecimal() else datetime.now(UTC)).date().isoformat()


def verdict_page(verdict: Verdict, command: str) -> str:
    """The page of one verdict; `command` is the command that reproduces it."""
    title = f"{verdict.name}: {verdict.word}"
    proofs = proof_texts(verdict.theorems)
    return _page("verdict.html", title, command, verdict, shown=_shown(verdict, drawn=True), proofs=proofs)


def trace_page(result: TraceResult, command: str) -> str:
    """The page of one trace: the sentence, the lines of code, and what was drawn."""
    title = f"{result.verdict.name}: {result.verdict.word}"
    return _page("trace.html", title, command, shown={**trace_shown(result), "headline": headline(result.verdict)})


def scan_page(scan: "Scan", summary: str, words: Callable[[Any], str], command: str) -> str:
    """The page of a scan: its mechanisms, what is known of each in a few `words`, and each finding with its fix."""
    from dpassay.scan.rules import RULES

    title = f"Scan of {scan.subject}"
    return _page("scan.html", title, command, scan=scan, summary=summary, words=words, rules=RULES)


def gallery_page(verdicts: Sequence[tuple[Any, Verdict]], command: str) -> str:
    """The page of many verdicts: a figure, a table, then each of them to unfold."""
    scale = Scale.of([verdict for _, verdict in verdicts])
    systems = [(title or "your own", [_entry(*each, scale) for each in found]) for title, found in by_system(verdicts)]
    kinds = kinds_of(verdict for _, verdict in verdicts)
    refuted = sum(verdict.word == "refuted" for _, verdict in verdicts)
    counts: dict[str, Any] = {"claims": len(verdicts), "refuted": refuted, "ticks": scale.ticks, "kinds": kinds}
    proofs = proof_texts(theorem for _, verdict in verdicts for theorem in verdict.theorems)
    return _page(
        "gallery.html", "dpassay gallery", command, systems=systems, released=_released(), proofs=proofs, **counts
    )


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis for many claims, in percent of its width.

    It is broken before its end: values beyond the last power of ten are arrows, and infinite ones are at the end.

    >>> scale = Scale(-1, 3)
    >>> scale.place(0.1), scale.place(10), scale.place(math.inf)
    (0.0, 46.0, 100.0)
    >>> [text for _, text in scale.ticks]
    ['0.1', '1', '10', '100', '1,000', '//', '∞']
    """

    low: int
    high: int

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "Scale":
        """From the smallest finite value to the largest, in whole powers of ten."""
        ends = [end for v in verdicts for end in (v.guarantee.claimed, v.value.lower, v.value.upper)]
        logs = [math.log10(end) for end in ends if 0 < end < math.inf] or [0.0]
        low = math.floor(min(logs))
        return cls(low, max(min(math.ceil(max(logs)), LARGEST), low + 1))

    def place(self, value: float) -> float:
        """The position of a value; 0 is at the beginning, values beyond the scale just before infinity."""
        if math.isinf(value):
            return 100.0
        share = 0.0 if value <= 0 else (math.log10(value) - self.low) / (self.high - self.low)
        return BEYOND if share > 1 else round(92 * max(share, 0.0), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten and infinity, with their positions."""
        powers = svg.whole_ticks(self.low, self.high)
        return [*((self.place(10.0**k), svg.power(10.0**k)) for k in powers), (BEYOND, "//"), (100.0, "∞")]


def _released() -> list[dict[str, Any]]:
    """The packages as released, as they are recorded."""
    from dpassay.packages.judging import current
    from dpassay.packages.record import read_records

    return _entries(current(read_records()))


def packages_page(judged: Judged, command: str) -> str:
    """The page of released packages."""
    return _page("packages.html", "dpassay packages", command, released=_entries(judged), summary=summary(judged))


def _entries(judged: Judged) -> list[dict[str, Any]]:
    return [
        {
            "title": f"{record.release}: {record.mechanism}",
            "cells": [typeset(cell) for cell in cells(record, found)],
            "word": "" if found is None else found.word,
            "why": typeset(record.why),
            "told": list(sections(record, found)),
            "program": program(record) if record.subject else "",
        }
        for record, found in judged.values()
    ]


def _entry(claim: Claim, verdict: Verdict, scale: Scale) -> dict[str, Any]:
    return {
        **charted(claim, verdict, scale),
        "claimed": typeset(claimed(verdict)),
        "why": typeset(claim.why or verdict.reason),
        "shown": _shown(verdict, drawn=False),
    }


def charted(claim: Claim, verdict: Verdict, scale: Scale) -> dict[str, Any]:
    """What templates/chart.html shows about a claim."""
    claimed_at, true_at = scale.place(verdict.guarantee.claimed), scale.place(verdict.value.upper)
    left, wide = min(claimed_at, true_at), round(abs(true_at - claimed_at), 2)
    return {
        "name": claim.name,
        "anchor": re.sub(r"[^a-z0-9]+", "-", claim.name.lower()),
        "title": claim.title or claim.name,
        "word": verdict.word,
        "sign": SIGNS[verdict.word],
        "true": true_shown(verdict),
        "sorts": _sorts(verdict),
        "places": {"claimed": claimed_at, "true": true_at, "left": left, "wide": wide, "beyond": true_at >= BEYOND},
    }


def kinds_of(verdicts: Iterable[Verdict]) -> list[str]:
    """The kinds of guarantees that these verdicts are about."""
    found = {type(verdict.guarantee) for verdict in verdicts}
    return [name for kind, name in KINDS.items() if kind in found]


def _sorts(verdict: Verdict) -> dict[str, Any]:
    """What a gallery is filtered and sorted by."""
    claimed, true = verdict.guarantee.claimed, verdict.value.lower if verdict.refuted else verdict.value.upper
    factor = true / claimed if claimed else math.inf if true else 1.0
    numbers = {"claimed": claimed, "true": true, "factor": factor}
    return {"guarantee": KINDS[type(verdict.guarantee)], **{name: f"{value:.6g}" for name, value in numbers.items()}}


def figures_page(figures: Sequence[tuple[dict[str, Any], str]], command: str) -> str:
    """The page of reproduced figures: the data of each, and its drawing."""
    shown = [
        {**data, "picture": base64.b64encode(picture.encode()).decode(), "rows": _compared(data)}
        for data, picture in figures
    ]
    return _page("figures.html", "dpassay reproduce", command, figures=shown)


def utility_page(rows: Sequence["MeasuredRow"], about: Sequence[tuple[str, str]], command: str) -> str:
    """The page of a comparison of rewriters: the table, the figure, and examples."""
    from dpassay.report.utility import page_values

    return _page("utility.html", "dpassay utility", command, **page_values(rows, about))


def _compared(data: dict[str, Any]) -> Rows:
    """The published numbers next to ours, with a header row; empty if none are compared."""
    if not data["comparisons"]:
        return []
    rows = [("what", "published", "ours", "standard errors apart")]
    for row in data["comparisons"]:
        shown = (row["published"], row["ours"], row["apart"])
        rows.append((row["what"], *("" if v is None else v if isinstance(v, str) else f"{v:.5g}" for v in shown)))
    return rows


def true_shown(verdict: Verdict) -> str:
    """The true loss as pages write it; if it is infinite, with the δ that every finite ε needs.

    >>> from dpassay import check
    >>> true_shown(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    '5.657'
    """
    value, claimed_at = verdict.value, verdict.guarantee.claimed
    return typeset(true(value, verdict.least_delta) if math.isinf(value.lower) else shown(value, claimed_at))


def headline(verdict: Verdict) -> str:
    """The verdict in one or two short sentences.

    >>> from dpassay import check
    >>> headline(check("query(l2, 1) | gaussian(2)", epsilon=2, delta="1e-5"))
    'Proven: this pipeline satisfies (2, 10⁻⁵)-DP.'
    """
    guarantee, value = verdict.guarantee, verdict.value
    what = "this pipeline" if verdict.name == "pipeline" else called(verdict)
    if verdict.word == "proven":
        return typeset(f"Proven: {what} satisfies {guarantee}.")
    if verdict.word == "open":
        return typeset(f"Open: whether {what} satisfies {guarantee} was neither proven nor refuted.")
    letter, at = LETTERS[guarantee.parameter], guarantee.unit
    at = f" at δ = {as_written(guarantee.exact_delta)}" if guarantee.delta else at
    if math.isinf(value.lower):
        truth = f"No finite {letter} holds{at}"
    elif math.isinf(value.upper):
        truth = f"The true {letter}{at} is at least {bound(value.lower, -1, guarantee.claimed)}"
    else:
        least = shown(value, guarantee.claimed)
        truth = f"The true {letter}{at} {'lies in' if least.startswith('[') else 'is'} {least}"
    return typeset(f"Refuted: {what} does not satisfy {guarantee}. {truth}.")


def called(verdict: Verdict) -> str:
    """The title of a published claim, or the name of another subject."""
    published = REGISTRY.get(verdict.name)
    if published is None or verdict.source != published.source:
        return verdict.name
    return f"“{published.title}”" if " " in published.title else published.title


def _shown(verdict: Verdict, drawn: bool) -> dict[str, Any]:
    """What a page shows about a verdict, for templates/parts.html."""
    warnings = list(verdict.warnings)
    if verdict.alpha is not None:
        warnings.append(_error(verdict, verdict.alpha))
    some = verdict.guarantee.claimed > 0 or verdict.value.lower > 0
    largest = ((d, bound(one.upper, 1)) for d, one in verdict.holds)
    held = [("δ", "ε at most"), *((typeset(f"{d:g}"), typeset(epsilon)) for d, epsilon in largest)]
    return {
        "name": "" if verdict.name == "pipeline" else verdict.name,
        "headline": headline(verdict),
        "meaning": meaning(verdict),
        "definition": definition(verdict),
        "word": verdict.word,
        "reason": typeset(verdict.reason),
        "warnings": [typeset(warning) for warning in warnings],
        "note": FORMULA if isinstance(verdict.mechanism, Pipeline) and verdict.alpha is None else "",
        "axis": _axis(verdict) if some else None,
        "facts": list(_facts(verdict)),
        "witness": None if verdict.witness is None else list(_witness(verdict)),
        "counts": table_rows(verdict.witness) if isinstance(verdict.witness, SampledWitness) else [],
        "curves": list(_curves(verdict)) if drawn else [],
        "holds": held if verdict.holds else [],
        "repairs": list(_repairs(verdict)),
    }


def _error(verdict: Verdict, alpha: float) -> str:
    """What the error probability is of: the verdict, or only a bound that runs gave beside an exact one."""
    if verdict.open or isinstance(verdict.witness, SampledWitness):
        return f"This verdict rests on samples: a claim that holds is refuted with probability {alpha:g} at most."
    what = "proof" if verdict.proven else "refutation"
    return f"The bound found by sampling has an error probability of {alpha:g}; the {what} itself is exact."


def _axis(verdict: Verdict) -> Markup:
    value, guarantee = verdict.value, verdict.guarantee
    written = as_written(guarantee.value), shown(value, guarantee.claimed)
    return svg.axis(guarantee.claimed, value.lower, value.upper, verdict.word, *written)


def _facts(verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield "mechanism", Markup("<code>{}</code>").format(escape_control_chars(verdict.subject))
    yield "claimed", typeset(str(verdict.guarantee))
    yield "between", typeset(str(verdict.neighbours))
    at = f" at δ = {verdict.guarantee.delta:g}" if verdict.guarantee.delta else verdict.guarantee.unit
    true_at = shown(verdict.value, verdict.guarantee.claimed)
    yield f"true {LETTERS[verdict.guarantee.parameter]}", typeset(f"{true_at}{at}")
    if verdict.delta is not None:
        true_delta = shown(verdict.delta, verdict.guarantee.delta, 1)
        yield "true δ", typeset(f"{true_delta} at ε = {as_written(verdict.guarantee.value)}")
    if 0 < verdict.least_delta < 1:
        yield "δ at every ε", f"at least {bound(verdict.least_delta, -1)}"
    if verdict.source:
        yield "source", verdict.source
    yield "lower bound from", _linked(verdict.value.lower_from)
    yield "upper bound from", _linked(verdict.value.upper_from)


def _linked(text: str) -> Markup:
    """A text in which each name of a proof's page links to the proof, further down on the same page."""
    parts = re.split(r"(docs/proofs/[a-z-]+\.md)", text)
    for i in range(1, len(parts), 2):
        name = parts[i].removeprefix("docs/proofs/").removesuffix(".md")
        parts[i] = Markup('<a href="#proof-{0}">{0}</a>').format(name)
    return Markup("").join(parts)


def _witness(verdict: Verdict) -> Iterator[tuple[str, str]]:
    if isinstance(verdict.witness, SampledWitness):
        yield from witness_rows(verdict.witness, verdict.guarantee)
    elif isinstance(verdict.witness, WordWitness):
        yield "two words", verdict.witness.pair
        yield "event", sentence(verdict.witness.event)
    elif isinstance(verdict.witness, Witness):
        sets = verdict.witness.data_sets is not None
        yield "two data sets" if sets else "two values", sentence(verdict.witness.values)
        if verdict.witness.event:
            yield "event", sentence(verdict.witness.event_text)


def _repairs(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    for repair in verdict.repairs:
        noise = "" if repair.deviation is None else f"standard deviation {repair.deviation:.4g} per coordinate"
        guarantee = "" if repair.guarantee is None else f"satisfies {repair.guarantee}"
        yield str(repair.mechanism or ""), typeset(guarantee), typeset(noise), typeset(repair.advice)


def _curves(verdict: Verdict) -> Iterator[tuple[str, Markup, str]]:
    """δ(ε) and the loss of the worst pair, each with a title and a note: plots, not bounds."""
    profile = verdict.profile
    loss = None if profile is None else profile.dominating_loss(verdict.guarantee)
    if profile is None or loss is None or not loss.components or middle(loss.infinite) >= 1:
        return
    found = loss_masses(loss)
    if found is None:
        return
    top = max(float(found.losses[found.masses > 1e-12].max(initial=0.0)), verdict.guarantee.claimed) * 1.05 or 1.0
    epsilons = np.linspace(0, top, 120)
    deltas = found.delta(epsilons, profile.mu)
    guarantee = verdict.guarantee
    stated = isinstance(guarantee, PureDP | ApproxDP)  # others are not a point of this curve
    marks = [(guarantee.claimed, max(guarantee.delta, 1e-15), "claimed")] if stated else []
    true_at = verdict.value.lower if guarantee.delta else None
    if true_at is not None and math.isfinite(true_at):
        marks.append((true_at, guarantee.delta, "true"))
    drawing = svg.curve(epsilons.tolist(), deltas.tolist(), marks, ("ε", "δ(ε)"))
    yield "δ at every ε, for the worst pair that is known", drawing, ""
    if len(found.losses) > 1:
        x, y = found.histogram(300)
        share = f" With probability {found.infinite:.4g} it is infinite." if found.infinite > 0 else ""
        drawing = svg.curve(x.tolist(), y.tolist(), [], ("loss", "probability"), filled=True)
        note = "Computed on a grid, before word dropout." if middle(profile.mu) else "Computed on a grid."
        if stated and guarantee.delta and not middle(profile.mu):
            tail = float(found.tail(np.array([guarantee.claimed]))[0])
            share += f" It exceeds ε = {as_written(guarantee.value)} with probability {tail:.3g}, which is not δ."
        yield "The privacy loss as a random variable", drawing, typeset(note + share)


def _versions(verdict: Verdict | None) -> Iterator[tuple[str, str]]:
    from dpassay import __version__

    yield "dpassay", __version__
    yield "Python", platform.python_version()
    yield "numpy", np.__version__
    if verdict is not None:
        yield from ((key, str(value)) for key, value in verdict.parameters.items())
        if verdict.seed is not None:
            yield "seed", str(verdict.seed) + ("" if verdict.replays else ", which cannot replay the outputs")
            yield "runs", f"{verdict.runs:,}"
