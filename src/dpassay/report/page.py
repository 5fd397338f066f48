"""One self-contained page: the verdict first, then what could make it meaningless, then the evidence.

Nothing is fetched and nothing is a script. All text is escaped.
"""

from __future__ import annotations

import base64
import html
import math
import platform
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.verdict import witness_rows
from dpassay.core.interval import outward
from dpassay.core.numbers import middle
from dpassay.errors import harmless
from dpassay.evidence.sampled import SampledWitness
from dpassay.evidence.verdict import Verdict
from dpassay.exact.witness import Witness
from dpassay.pipeline.pipeline import Pipeline
from dpassay.report import svg
from dpassay.report.gallery import claimed, true
from dpassay.report.plot import pair_deltas
from dpassay.report.terminal import SIGNS, describe_pair, event_words

FORMULA = (
    "What is judged is the formula, in exact arithmetic. A program that computes it in floating point, or computes "
    "something else, can leak more; run it with dpassay audit."
)


def escape(text: Any) -> str:
    """Any text as HTML: no markup, no control characters."""
    return html.escape(harmless(str(text)))


def document(title: str, body: str) -> str:
    """A whole page."""
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body>\n{body}\n</body></html>\n"
    )


def verdict_page(verdict: Verdict, command: str) -> str:
    """The page of one verdict; `command` is the line that makes it again."""
    parts = [f"<h1>{escape(headline(verdict))}</h1>", *_sections(verdict, drawn=True), *_made(command, verdict)]
    return document(f"{verdict.name}: {verdict.word}", "\n".join(parts))


def gallery_page(verdicts: Sequence[tuple[Any, Verdict]], command: str) -> str:
    """The page of many verdicts: a table, then each of them to unfold."""
    refuted = sum(verdict.word == "refuted" for _, verdict in verdicts)
    parts = ["<h1>Is that ε real?</h1>", f"<p>{len(verdicts)} claims, {refuted} of them refuted.</p>", "<table>"]
    parts.append("<tr><th>claim</th><th>claimed ε</th><th>true ε</th><th>verdict</th><th>why</th></tr>")
    for claim, verdict in verdicts:
        cells = (claimed(verdict), true(verdict.epsilon, verdict.least_delta))
        word = f'<td class="{verdict.word}">{SIGNS[verdict.word]} {verdict.word}</td>'
        name = f"<td><b>{escape(claim.title or claim.name)}</b></td>"
        why = f'<td class="why">{escape(claim.why or verdict.reason)}</td>'
        numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        parts.append(f"<tr>{name}{numbers}{word}{why}</tr>")
    parts.append("</table>")
    for claim, verdict in verdicts:
        inside = "\n".join([f"<p>{escape(headline(verdict))}</p>", *_sections(verdict, drawn=False)])
        parts.append(f"<details><summary>{escape(claim.title or claim.name)}</summary>\n{inside}</details>")
    return document("dpassay gallery", "\n".join([*parts, *_made(command)]))


def figures_page(figures: Sequence[tuple[dict[str, Any], str]], command: str) -> str:
    """The page of reproduced figures: the data of each, and its drawing."""
    parts = ["<h1>The documents' figures, made again</h1>"]
    for data, picture in figures:
        found = "".join(f"<li>{escape(sentence)}</li>" for sentence in data["found"])
        source = base64.b64encode(picture.encode()).decode()  # an image runs nothing, whatever a file holds
        drawing = f'<img alt="{escape(data["name"])}" src="data:image/svg+xml;base64,{source}">'
        caption = f"<figcaption>{escape(data['caption'])}</figcaption>"
        parts.append(f"<details open><summary>{escape(data['name'])}</summary><figure>{drawing}{caption}</figure>")
        parts.append(f'<p class="soft">Published: {escape(data["published"])}</p><ul>{found}</ul>')
        parts.append(f"{_compared(data)}</details>")
    return document("dpassay reproduce", "\n".join([*parts, *_made(command)]))


def _compared(data: dict[str, Any]) -> str:
    """The published numbers beside ours, to unfold."""
    if not data["comparisons"]:
        return ""
    rows = [("what", "published", "ours", "standard errors apart")]
    for row in data["comparisons"]:
        shown = (row["published"], row["ours"], row["apart"])
        rows.append((row["what"], *("" if v is None else v if isinstance(v, str) else f"{v:.5g}" for v in shown)))
    note = f'<p class="soft">{escape(data["compared"])}</p>'
    return f"<details><summary>Published and ours</summary>{note}{_table(rows, head=True)}</details>"


def headline(verdict: Verdict) -> str:
    """The verdict in one sentence for somebody who does not know the field."""
    what, promised = verdict.name, f"a privacy loss of at most {verdict.guarantee.epsilon:.4g}"
    promised += f" up to a probability of {verdict.guarantee.delta:g}" if verdict.guarantee.delta else ""
    low, high = verdict.epsilon.lower, verdict.epsilon.upper
    if verdict.word == "proven":
        return f"Yes: {what} keeps what it claims, {promised}."
    if verdict.word == "open":
        return f"Undecided: whether {what} keeps {promised} could be neither proved nor refuted. This proves nothing."
    if math.isinf(low):
        return f"No: {what} claims {promised}, but there is no limit to what it can give away."
    claimed_at = verdict.guarantee.epsilon
    ratio = low / claimed_at if claimed_at > 0 else 0.0
    times = f", {ratio:,.0f} times as much" if ratio >= 100 else f", {ratio:.3g} times as much" if ratio > 1.001 else ""
    least = f"at least {outward(low, -1, 5)}" if high > low * (1 + 1e-6) else f"{(low + high) / 2:.5g}"
    return f"No: {what} claims {promised}, but its true loss is {least}{times}."


def _sections(verdict: Verdict, drawn: bool) -> Iterator[str]:
    yield f'<div class="verdict {verdict.word}"><b>{verdict.word.upper()}</b> {escape(verdict.reason)}</div>'
    warnings = list(verdict.warnings)
    if verdict.alpha is not None:
        warnings.append(
            f"This rests on samples: a claim that holds is refuted with probability {verdict.alpha:g} at most."
        )
    for warning in warnings:
        yield f'<div class="warning">{escape(warning)}</div>'
    if isinstance(verdict.mechanism, Pipeline) and verdict.alpha is None:
        yield f'<p class="soft">{escape(FORMULA)}</p>'
    if verdict.guarantee.epsilon > 0 or verdict.epsilon.lower > 0:
        yield "<h2>Claimed and true</h2>"
        yield svg.axis(verdict.guarantee.epsilon, verdict.epsilon.lower, verdict.epsilon.upper, verdict.word)
    yield _table(list(_facts(verdict)))
    if verdict.witness is not None:
        yield f"<details open><summary>Witness</summary>{_table(list(_witness(verdict)))}</details>"
    if drawn:
        yield from _curves(verdict)
    if verdict.holds:
        held = [("δ", "ε at most"), *((f"{d:g}", outward(one.upper, 1, 6)) for d, one in verdict.holds)]
        yield f"<details><summary>What does hold</summary>{_table(held, head=True)}</details>"
    if verdict.repairs:
        remedies = [("mechanism", "keeps", "noise a coordinate", ""), *_repairs(verdict)]
        yield f"<details open><summary>Remedies</summary>{_table(remedies, head=True)}</details>"


def _facts(verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield "mechanism", verdict.subject
    yield "claimed", str(verdict.guarantee)
    yield "between", str(verdict.neighbours)
    yield "true ε", f"{verdict.epsilon}" + (f" at δ {verdict.guarantee.delta:g}" if verdict.guarantee.delta else "")
    if verdict.delta is not None:
        yield "true δ", f"{verdict.delta} at ε {verdict.guarantee.epsilon:g}"
    if 0 < verdict.least_delta < 1:
        yield "δ at every ε", f"at least {outward(verdict.least_delta, -1, 6)}"
    if verdict.source:
        yield "source", verdict.source
    yield "lower end from", verdict.epsilon.lower_from
    yield "upper end from", verdict.epsilon.upper_from


def _witness(verdict: Verdict) -> Iterator[tuple[str, str]]:
    if isinstance(verdict.witness, SampledWitness):
        yield from witness_rows(verdict.witness)
    elif isinstance(verdict.witness, Witness):
        yield "two values", describe_pair(verdict.witness.pair)
        if verdict.witness.event:
            yield "event", event_words(verdict.witness)


def _repairs(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    for repair in verdict.repairs:
        noise = "" if repair.deviation is None else f"deviation {repair.deviation:.4g}"
        yield str(repair.mechanism or ""), str(repair.guarantee or ""), noise, repair.advice


def _curves(verdict: Verdict) -> Iterator[str]:
    """δ(ε) and the loss of the worst pair, drawn from a lattice: pictures, not bounds."""
    profile = verdict.profile
    loss = None if profile is None else profile.dominating_loss(verdict.guarantee)
    if profile is None or loss is None or not loss.components or middle(loss.infinite) >= 1:
        return
    losses, masses = loss.density(300)
    infinite = middle(loss.infinite)
    top = max(float(losses[masses > 1e-12].max(initial=0.0)), verdict.guarantee.epsilon) * 1.05 or 1.0
    epsilons = np.linspace(0, top, 120)
    deltas = pair_deltas(loss, profile.mu, epsilons)
    guarantee = verdict.guarantee
    marks = [(guarantee.epsilon, max(guarantee.delta, 1e-15), "claimed")]
    true_at = verdict.epsilon.lower if guarantee.delta else None
    if true_at is not None and math.isfinite(true_at):
        marks.append((true_at, guarantee.delta, "true"))
    yield "<details open><summary>δ at every ε, for the worst pair that is known</summary>"
    yield svg.curve(epsilons.tolist(), deltas.tolist(), marks, ("ε", "δ(ε)")) + "</details>"
    if len(losses) > 1:
        yield "<details><summary>The loss as a random variable</summary>"
        share = f" With probability {infinite:.4g} it is infinite." if infinite > 0 else ""
        yield svg.curve(*_fewer(losses, masses), [], ("loss", "probability"), filled=True)
        yield f'<p class="soft">{escape("Masses on a lattice, before word dropout." + share)}</p></details>'


def _fewer(losses: NDArray[Any], masses: NDArray[Any]) -> tuple[list[float], list[float]]:
    """Masses joined in at most 300 equal steps, from the first loss that occurs to the last."""
    there = np.flatnonzero(masses > 1e-12 * masses.max())
    low, high = losses[there[0]], losses[there[-1]]
    steps = min(300, there[-1] - there[0] + 1)
    edges = np.linspace(low, high, steps + 1) if high > low else np.array([low - 0.5, low + 0.5])
    joined, _ = np.histogram(losses, edges, weights=masses)
    return ((edges[:-1] + edges[1:]) / 2).tolist(), joined.tolist()


def _table(rows: Sequence[Sequence[str]], head: bool = False) -> str:
    lines = []
    for i, row in enumerate(rows):
        kind = "th" if head and i == 0 else "td"
        first = "th" if not head else kind
        cells = [f"<{first}>{escape(row[0])}</{first}>", *(f"<{kind}>{escape(cell)}</{kind}>" for cell in row[1:])]
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return "<table>" + "".join(lines) + "</table>"


def _made(command: str, verdict: Verdict | None = None) -> Iterator[str]:
    from dpassay import __version__

    rows = [("dpassay", __version__), ("Python", platform.python_version()), ("numpy", np.__version__)]
    if verdict is not None:
        rows += [(key, str(value)) for key, value in verdict.parameters.items()]
        rows += [("rests on", ", ".join(theorem.page for theorem in verdict.theorems))]
        if verdict.seed is not None:
            rows += [("seed", str(verdict.seed)), ("runs", f"{verdict.runs:,}")]
    yield f"<h2>Made by</h2><pre>{escape(command)}</pre>"
    yield f"<details><summary>Parameters and versions</summary>{_table(rows)}</details>"
