"""The gallery of published claims, and the report of one."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.code.reports import Annotate, Junit, Reports, Sarif, place_of
from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    ClaimName,
    Dim,
    Page,
    RequireDecision,
    Settings,
    check_claimed,
    check_writable,
    claim_named,
    command_line,
    note,
    print_json,
    print_rich,
    progress_bar,
    read_values,
    working,
    write_page,
)
from dpassay.cli.completion import complete_claim
from dpassay.errors import InputError, counted, escape_control_chars

if TYPE_CHECKING:
    from dpassay.claims.claim import Claim
    from dpassay.evidence.verdict import Verdict
    from dpassay.report.claims.claim_report import TrialResult

Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Only these claims; names, or patterns such as 'adept*'; may be repeated.", autocompletion=complete_claim
    ),
]
Delta = Annotated[str | None, typer.Option("--delta", "-d", help="Check every claim at this delta instead of its own.")]
From = Annotated[Path | None, typer.Option("--from", help="Check the .toml claims in this folder instead.")]
Figure = Annotated[Path | None, typer.Option(help="Plot claimed and true epsilon (.svg, .pdf or .png).")]
Dark = Annotated[bool, typer.Option("--dark", help="Draw the --figure for a dark background.")]
Pages = Annotated[Path | None, typer.Option(help="Write one Markdown page per published system into this folder.")]
Coq = Annotated[
    Path | None,
    typer.Option("--coq", help="Write the verdicts that Coq can check into this folder, a file per system."),
]
Sample = Annotated[bool, typer.Option("--sample", help="Also run each claim in a small dimension; both must agree.")]
Latex = Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs, amssymb).")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")]
Seed = Annotated[int, typer.Option(help="Seed of the --sample runs.")]
Alpha = Annotated[float, typer.Option(help="Total error probability of the --sample runs.")]


def gallery(
    only: Only = None,
    delta: Delta = None,
    folder: From = None,
    sample: Sample = False,
    seed: Seed = 0,
    alpha: Alpha = 0.001,
    as_json: AsJson = False,
    as_latex: Latex = False,
    as_markdown: Markdown = False,
    figure: Figure = None,
    dark: Dark = False,
    html: Page = None,
    pages: Pages = None,
    coq: Coq = None,
    sarif: Sarif = None,
    junit: Junit = None,
    annotations: Annotate = False,
    require_decision: RequireDecision = False,
) -> None:
    """Every published claim with its verdict.

    The exit code is 0 if every verdict is the expected one (and, with --sample, if exact and sampled verdicts agree),
    otherwise 1: the gallery is also a test of the tool. With --delta, verdicts may differ, so they are not compared.
    With --from, a claim without an expected verdict should hold: the exit code is 1 if it is refuted.

    \b
    Examples:
      dpassay gallery
      dpassay gallery --only 'adept*' --only dpnr --figure gallery.svg
      dpassay gallery --sample
      dpassay gallery --from my-claims --latex
      dpassay gallery --from my-claims --sarif claims.sarif --junit claims.xml --annotations
    """
    from dpassay.api import check
    from dpassay.audit.options import check_alpha
    from dpassay.report.claims.gallery import check_suffix, latex, markdown, summary, table, tried_table

    if as_json + as_latex + as_markdown > 1:
        raise InputError("give one of --json, --latex and --markdown")
    if dark and figure is None:
        raise InputError("--dark requires --figure FILE")
    if delta is not None and sample:
        raise InputError("--sample runs each claim at its own delta: leave out --delta")
    for option, given in (("--pages", pages), ("--coq", coq)):
        if given is not None and (only or folder is not None or delta is not None):
            raise InputError(f"{option} writes all published systems: leave out --only, --from and --delta")
    check_alpha(alpha)
    if figure is not None:
        check_suffix(figure)
    check_claimed("1", delta)
    reports = Reports(sarif, junit, annotations)
    with reports.of_failures("gallery"):
        chosen, files = _chosen(only, folder)
    check_writable(figure, html)
    for path in (pages, coq):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    how = {"compared": delta is None, "require_decision": require_decision}
    left_out = "" if delta is None else "is left out at this delta"
    verdicts, stopped = _each(chosen, "checking", lambda claim: check(claim, delta=delta), left_out)
    tried: list[tuple[Claim, TrialResult]] = []
    if sample and not stopped:
        share = alpha / len(chosen)  # one error probability for all of them
        tried, stopped = _each(chosen, "running", lambda claim: _try(claim, seed, share), "was not run")
    if not stopped:
        _write(verdicts, (figure, dark), html, pages, coq)
        _report(verdicts, reports, files, **how)
    if as_json:
        print_json(_as_data(verdicts, {claim.name: both for claim, both in tried} if sample else None))
    elif as_latex or as_markdown:
        print(latex(verdicts) if as_latex else markdown(verdicts))
    else:
        print_rich(table(verdicts))
        print(summary(verdicts))
        if tried:
            print()
            print_rich(tried_table(tried))
    if stopped:
        raise typer.Exit(130)
    _alarm(verdicts, tried, folder is not None, **how)


def _write(
    verdicts: list[tuple[Claim, Verdict]],
    drawing: tuple[Path | None, bool],
    html: Path | None,
    pages: Path | None,
    coq: Path | None,
) -> None:
    """The requested files."""
    figure, dark = drawing
    if figure is not None:
        from dpassay.report.claims.gallery import draw

        draw(verdicts, figure, dark)
        note(f"{figure} written")
    if html is not None:
        from dpassay.report.pages.page import gallery_page

        write_page(gallery_page(verdicts, command_line()), html)
    if pages is not None:
        from dpassay.report.claims.show import write_pages

        with working("writing pages"):
            written = write_pages(pages)
        note(f"{counted(written, 'page')} written into {pages}")
    if coq is not None:
        from dpassay.report.claims.coq import write_modules

        with working("writing certificates"):
            written = write_modules(coq, {claim.name: verdict for claim, verdict in verdicts})
        note(f"{counted(written, 'file')} written into {coq}")


def _report(verdicts: list[tuple[Claim, Verdict]], reports: Reports, files: dict[str, Path], **how: bool) -> None:
    """Write the results for other tools, each at its claim's line."""
    if not reports.wanted:
        return
    from dpassay.report.ci.results import of_verdict

    compared, require_decision = how["compared"], how["require_decision"]
    results = []
    for claim, verdict in verdicts:
        place = place_of(str(files[claim.name])) if claim.name in files else place_of()
        expected = claim.expected if compared else ""
        results.append(of_verdict(verdict, place, expected=expected, require_decision=require_decision))
    reports.write(results)


def _alarm(
    verdicts: list[tuple[Claim, Verdict]], tried: list[tuple[Claim, TrialResult]], own: bool, **how: bool
) -> None:
    """Exit with 1 if something is not as expected: the gallery is also a test of the tool.

    A user's claim without an expected verdict should hold.
    """
    compared = [(c, v) for c, v in verdicts if how["compared"] and c.expected]
    others = [(c, v) for c, v in verdicts if own and not (how["compared"] and c.expected)]
    surprising = [c.name for c, v in compared if v.word != c.expected]
    refuted = [c.name for c, v in others if v.refuted]
    undecided = [c.name for c, v in others if v.open and how["require_decision"]]
    # The trials of published claims are designed so that samples find the flaw.
    contradicting = [c.name for c, both in tried if both.contradictory or (both.missed and not own)]
    wrong = {"not as expected": surprising, "refuted": refuted, "exact and sampled verdicts differ": contradicting}
    for what, names in {**wrong, "open": undecided}.items():
        if names:
            print(escape_control_chars(f"{what}: {', '.join(names)}"), file=sys.stderr)
    if any(wrong.values()):
        raise typer.Exit(1)
    if undecided:
        raise typer.Exit(3)


def _chosen(only: list[str] | None, folder: Path | None) -> tuple[list[Claim], dict[str, Path]]:
    """The requested claims, and the user's files."""
    files: dict[str, Path] = {}
    if folder is not None:
        from dpassay.claims.toml import read_files

        read = read_files(folder)
        claims, files = {one.name: one for one in read.values()}, {one.name: file for file, one in read.items()}
    else:
        from dpassay.claims.registry import REGISTRY

        claims = REGISTRY
    for pattern in only or ():
        if not fnmatch.filter(claims, pattern):
            if folder is None:
                claim_named(pattern)  # its error lists the claims
            raise InputError(f"no claim is called {pattern!r}; there are {', '.join(claims)}")
    wanted = only or ["*"]
    return [one for name, one in claims.items() if any(fnmatch.fnmatchcase(name, like) for like in wanted)], files


def _each(claims: list[Claim], what: str, do: Callable[[Claim], Any], left_out: str) -> tuple[list[Any], bool]:
    """The result for each claim up to Ctrl-C, and whether it was pressed; a claim that cannot be processed is named."""
    found = []
    try:
        with progress_bar(len(claims)) as bar:
            for number, claim in enumerate(claims):
                if bar is not None:
                    bar(number, len(claims), what)
                try:
                    found.append((claim, do(claim)))
                except InputError as error:
                    if not left_out:
                        raise
                    print(escape_control_chars(f"{claim.name} {left_out}: {error}").splitlines()[0], file=sys.stderr)
    except KeyboardInterrupt:
        shown = f"{len(found)} of {len(claims)} claims are shown, no file is written"
        print(f"interrupted while {what}: {shown}", file=sys.stderr)
        return found, True
    return found, False


def _try(claim: Claim, seed: int, alpha: float) -> TrialResult:
    from dpassay.report.claims.claim_report import try_out

    tried = try_out(claim, seed=seed, alpha=alpha)
    if tried.sampled.interrupted:  # an audit handles Ctrl-C itself
        raise KeyboardInterrupt
    return tried


def _as_data(verdicts: list[tuple[Claim, Verdict]], tried: dict[str, TrialResult] | None) -> list[Any]:
    if tried is None:
        return [verdict.to_dict() for _, verdict in verdicts]
    small = {
        name: {"exact": both.exact.to_dict(), "sampled": both.sampled.to_dict(), "agreement": both.agreement}
        for name, both in tried.items()
    }
    return [{"verdict": verdict.to_dict(), "small": small.get(claim.name)} for claim, verdict in verdicts]


def show(
    name: ClaimName = None,
    settings: Settings = None,
    dim: Dim = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    as_json: AsJson = False,
) -> None:
    """Show one claim: who claimed what, why it fails or holds, the counterexample and the repairs.

    \b
    Examples:
      dpassay show                 list the claims
      dpassay show adept
      dpassay show ome --set L=10
      dpassay show mine.toml
    """
    from dpassay.report.claims.claim_report import ClaimReport
    from dpassay.report.claims.show import listing, render

    if name is None:
        from dpassay.claims.registry import REGISTRY

        if as_json:
            print_json([{"name": one.name, "title": one.title, "source": one.source} for one in REGISTRY.values()])
        else:
            print_rich(listing())
        return
    claim = claim_named(name)
    options, values = read_values(settings, {"epsilon": epsilon, "delta": delta, "dim": dim})
    check_claimed(options["epsilon"], options["delta"])
    changes = {key: value for key, value in options.items() if value is not None}
    report = ClaimReport(claim(values, **changes), published=claim)
    with working("looking"):
        shown = report.to_dict() if as_json else render(report)
    (print_json if as_json else print_rich)(shown)
