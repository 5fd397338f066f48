"""The trace command: run code a few times and see its noise."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from dpassay.cli.audit import Inputs, Pairs, read_inputs, read_pair
from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    Page,
    Python,
    RequireDecision,
    check_writable,
    command_line,
    print_json,
    write_page,
)
from dpassay.errors import InputError, harmless

Seed = Annotated[int, typer.Option(help="Seed of the generators that the code is given.")]
Hostile = Annotated[
    bool,
    typer.Option(help="Also try inputs that code is seldom tried on: NaN, huge numbers, unknown words, empty texts."),
]
Stated = Annotated[
    str | None,
    typer.Option(
        help="any, word, replace-record or add-remove-record: which hostile inputs the claim speaks of. "
        "Default: of texts that differ in a word; others give warnings."
    ),
]
Save = Annotated[Path | None, typer.Option(help="Keep the result in this file, for 'dpassay verify'.")]


def trace(
    python: Python = None,
    pair: Pairs = None,
    inputs: Inputs = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    neighbours: Stated = None,
    hostile: Hostile = True,
    seed: Seed = 0,
    save: Save = None,
    html: Page = None,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
) -> None:
    """Run code a few times and say which line draws which noise, what it is added to and what epsilon that gives.

    The code is not changed. One pair can refute a claim; runs never prove one.

    \b
    Examples:
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1
      dpassay trace --python mymodule:Model.rewrite --inputs texts.txt --epsilon 8 --delta 1e-5
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1 --neighbours any --html trace.html
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1 --save trace.json
      dpassay verify trace.json --python mymodule:encode
    """
    if python is None:
        raise InputError("say what to trace and what is claimed: --python package.module:name --epsilon 1")
    if pair is not None and inputs is not None:
        raise InputError("say what to run it on, once: --pair '[X, Y]', or --inputs FILE")
    check_writable(save, html)
    from dpassay.audit.targets import load_object
    from dpassay.trace.objects import trace_object as run_trace

    with redirect_stdout(sys.stderr):  # what the code prints must not get into the result
        result = run_trace(
            load_object(python),
            read_inputs(inputs) if inputs is not None else (),
            pairs=[read_pair(given) for given in pair or ()],
            epsilon=epsilon,
            delta=delta,
            seed=seed,
            name=python,
            neighbours=neighbours,
            hostile=hostile,
            save=save,
        )
    if save is not None and not as_json:
        print(f"trace kept in {save}", file=sys.stderr)
    if html is not None:
        from dpassay.report.page import trace_page

        write_page(trace_page(result, command_line()), html)
    if as_json:
        print_json(result.to_dict())
    else:
        print(harmless(str(result)))
    raise typer.Exit(3 if result.verdict.open and require_decision else result.verdict.exit_code)
