"""The published systems as Markdown pages, written from the registry: docs/claims is made of these, never by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dpassay.claims.claim import System
from dpassay.claims.registry import SYSTEMS
from dpassay.exact.witness import Witness
from dpassay.report.claim_report import ClaimReport
from dpassay.report.gallery import markdown
from dpassay.report.show import grid, remedies
from dpassay.report.terminal import describe_pair, event_words

NOTE = "*Written by `dpassay gallery --pages docs/claims` from the registry. Change the registry, not this page.*"


def write_pages(folder: Path) -> int:
    """Write an index and a page per system; how many pages there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in all_pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(SYSTEMS) + 1


def all_pages() -> dict[str, str]:
    """Every page by its file name."""
    stories = {name: [ClaimReport(claim) for claim in system.claims] for name, system in SYSTEMS.items()}
    pages = {f"{name}.md": "\n\n".join(_page(SYSTEMS[name], told)) + "\n" for name, told in stories.items()}
    return {"README.md": "\n\n".join(_index(stories)) + "\n", **pages}


def _index(stories: dict[str, list[ClaimReport]]) -> Iterator[str]:
    yield "# Published claims"
    yield NOTE
    yield "What each system claims and what is true. `dpassay gallery` prints the same, `dpassay show NAME` tells more."
    for name, told in stories.items():
        yield f"## [{SYSTEMS[name].title}]({name}.md)"
        yield markdown([(story.claim, story.verdict) for story in told])


def _page(system: System, stories: Sequence[ClaimReport]) -> Iterator[str]:
    yield f"# {system.title}"
    yield NOTE
    yield system.what
    yield system.reasoning
    yield markdown([(story.claim, story.verdict) for story in stories])
    for story in stories:
        yield from _chapter(story)


def _chapter(story: ClaimReport) -> Iterator[str]:
    claim, verdict = story.claim, story.verdict
    yield f"## {claim.title}"
    yield f"Claimed: {verdict.guarantee} between {verdict.neighbours}. Source: {claim.source}."
    yield f"    {claim.pipeline}"
    yield claim.why
    yield f"**{verdict.word.capitalize()}.** {verdict.reason}"
    if isinstance(verdict.witness, Witness):
        event = f" Event: {event_words(verdict.witness)}." if verdict.witness.event else ""
        yield f"Witness: {describe_pair(verdict.witness.pair)}.{event}"
    for warning in verdict.warnings:
        yield f"> Warning: {warning}"
    if rows := grid(story):
        yield "The true ε at other parameters (✓ the claim holds, ✗ it fails):"
        yield _markdown_table(rows)
    for label, value in story.beside:
        yield f"Shown beside: {label}: {value:.6g}."
    if rows := remedies(story):
        yield "Remedies, and what they cost in noise:"
        yield _markdown_table(rows)
    yield f"To check it: `dpassay check {claim.name}`. Rests on {_proofs(story)}."


def _proofs(story: ClaimReport) -> str:
    pages = [theorem.value for theorem in story.verdict.theorems]
    return ", ".join(f"[{page}](../proofs/{page}.md)" for page in pages)


def _markdown_table(rows: Sequence[Sequence[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
