"""The command that audits a training run from its canaries."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpassay.cli.common import AsJson, check_writable, command_line, finish, note, progress_bar, write_page
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict
    from dpassay.training.canaries.scores import CanaryScores


def audit_training(
    scores: Annotated[
        Path | None, typer.Option(help="A .csv, .jsonl or .npz file: score, included (1 or 0) and optionally run.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="package.module:name of train(included, seed), which returns a score per canary.")
    ] = None,
    canaries: Annotated[int, typer.Option(help="With --python: number of canaries per run.")] = 1000,
    runs: Annotated[int, typer.Option(help="With --python: number of training runs.")] = 1,
    seed: Annotated[int, typer.Option(help="With --python: decides which canaries are included, and the seeds.")] = 0,
    save: Annotated[
        Path | None,
        typer.Option(help="With --python: a .csv file for the scores; runs already in it are not repeated."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", "-e", help="The claimed epsilon, for one canary.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", "-d", help="The claimed delta.")] = None,
    mu: Annotated[str | None, typer.Option(help="The claimed mu of Gaussian DP, instead of epsilon.")] = None,
    alpha: Annotated[float, typer.Option(help="The probability of refuting a claim that is true.")] = 0.05,
    anytime: Annotated[
        bool, typer.Option("--anytime", help="Test runs one after another; you may stop after any of them.")
    ] = False,
    neighbours: Annotated[str, typer.Option(help="What a canary is: add-remove-record, user or entity.")] = (
        "add-remove-record"
    ),
    figure: Annotated[
        Path | None, typer.Option(help="Plot the ROC curve of the canaries, and what the claim allows (.svg, .png).")
    ] = None,
    exposure: Annotated[
        Path | None, typer.Option(help="Plot the exposure, in bits, of the included canaries (.svg, .png).")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report page.")] = None,
    as_json: AsJson = False,
    require_decision: Annotated[bool, typer.Option("--require-decision", help="Exit with code 3 if open.")] = False,
) -> None:
    """Audit the guarantee of a training run with canaries: artificial units, each included with probability ½.

    A score is anything that tends to be higher for canaries that were included: minus the loss, or the inner product
    of the weights with the canary's own direction. The canaries' coins must be independent; the guesses need not be.

    \b
    Examples:
      dpassay audit-training --scores canaries.csv --epsilon 2 --delta 1e-5
      dpassay audit-training --scores canaries.npz --mu 0.5 --figure roc.svg --exposure bits.svg
      dpassay audit-training --python mymodule:train --runs 4 --save canaries.csv --epsilon 1 --delta 1e-5
    """
    if (scores is None) == (python is None):
        raise InputError("give the scores: --scores FILE, or --python package.module:name")
    if save is not None and (scores is not None or save.suffix != ".csv"):
        raise InputError("--save is for --python, and is a .csv file")
    check_writable(save, html, figure, exposure)
    from dpassay.training.canaries.audit import TrainingClaim
    from dpassay.training.canaries.scores import read_scores

    name = f"training of {scores or python}"
    claim = TrainingClaim(epsilon, delta, mu, alpha, neighbours, name)  # before anything is trained
    found = read_scores(scores) if scores is not None else _trained(str(python), canaries, runs, seed, save)
    verdict = claim.judge(found, anytime)
    _draw(found, verdict, figure, exposure)
    if html is not None:
        from dpassay.report.pages.page import verdict_page

        write_page(verdict_page(verdict, command_line()), html)
    finish(verdict, as_json, require_decision)


def _draw(found: CanaryScores, verdict: Verdict, figure: Path | None, exposure: Path | None) -> None:
    """Draw the requested figures. If all canaries are on one side, nothing can be drawn, but there is a verdict."""
    if figure is None and exposure is None:
        return
    from dpassay.report.pictures.canaries import exposure_figure, roc_figure

    if (inside := int(found.included.sum())) in (0, found.canaries):
        here, there = ("in", "out") if inside else ("out", "in")
        print(
            f"nothing is drawn: all {found.canaries:,} canaries were {here}, and none was {there} to compare them with",
            file=sys.stderr,
        )
        return
    if figure is not None:
        roc_figure(found, verdict.guarantee).savefig(figure)
    if exposure is not None:
        exposure_figure(found).savefig(exposure)
    for drawn in filter(None, (figure, exposure)):
        note(f"drawn in {drawn}")


def _trained(python: str, canaries: int, runs: int, seed: int, save: Path | None) -> CanaryScores:
    from dpassay.audit.mechanisms.targets import load_object
    from dpassay.training.canaries.scores import train_with_canaries

    train = load_object(python)
    try:
        with progress_bar(runs) as bar, redirect_stdout(sys.stderr):
            return train_with_canaries(train, canaries, runs, seed, save, bar)
    except KeyboardInterrupt:
        kept = (
            "nothing is kept: --save FILE keeps the scores of every run"
            if save is None
            else (f"finished runs are in {save}; the same command makes the others")
        )
        print(f"interrupted; {kept}", file=sys.stderr)
        raise typer.Exit(130) from None
