"""The command that guesses what a rewritten text was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from dpassay.cli.common import AsJson, print_json, print_rich, progress_bar
from dpassay.cli.rewriters import (
    MechanismName,
    ReleaseDelta,
    ReleaseEpsilon,
    RewriterName,
    RewriterPath,
    RewriterSettings,
    TrueEpsilon,
)
from dpassay.cli.text import Seed, order_of
from dpassay.errors import InputError


def reconstruct(
    text: Annotated[str, typer.Argument(help="A rewritten text.")],
    candidates: Annotated[Path, typer.Option(help="A file of possible original texts, one per line.")],
    model: RewriterName = None,
    python: RewriterPath = None,
    mechanism: MechanismName = None,
    settings: RewriterSettings = None,
    epsilon: ReleaseEpsilon = None,
    true_epsilon: TrueEpsilon = None,
    delta: ReleaseDelta = None,
    draws: Annotated[
        int | None, typer.Option(help="Number of rewritings to learn from. Default: 400 per candidate.")
    ] = None,
    most: Annotated[int, typer.Option(help="How many candidates to show.")] = 10,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Guess the original of a rewritten text: the attack that 'dpassay audit --model' uses.

    Where the rewriter knows the probability of what it writes, the guess is the best that anybody can make. Otherwise
    the attack learns from rewritings of the candidates.

    \b
    Examples:
      dpassay reconstruct 'on april first i need a ticket' --model models/atis --mechanism adept-as-published \\
        --candidates atis.txt --epsilon 100
    """
    if most < 1:
        raise InputError(f"--most must be 1 or more, got {most}")
    from dpassay.cli.audit import read_inputs

    known = list(dict.fromkeys(str(line) for line in read_inputs(candidates)))
    order = order_of(model, python, mechanism, settings, (epsilon, true_epsilon, delta), "cpu", None)
    from dpassay.text.reconstruction import attack_on, ranking
    from dpassay.text.rewriters.rewriting import opened

    attacked = opened(order)
    with progress_bar(draws or 1) as bar:
        attack = attack_on(attacked, known, draws, seed, bar)
    rows = ranking(attack, known, text, most, seed)
    if as_json:
        print_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    from dpassay.errors import harmless

    with_likelihood = any("log_likelihood" in row for row in rows)
    table = Table("probability", *(["log-likelihood"] if with_likelihood else []), "candidate", box=None)
    table.header_style = "bold"
    for row in rows:
        likely = [f"{math.exp(row['log_probability']):.3%}"]
        likely += [f"{row['log_likelihood']:.1f}"] if with_likelihood else []
        table.add_row(*likely, Text(harmless(str(row["candidate"]))))
    print_rich(table)
