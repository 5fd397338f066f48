"""The trace command: run code a few times and see its noise."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from dpassay.cli.code.audit import Inputs, Pairs, read_inputs, read_pair
from dpassay.cli.code.reports import Annotate, Junit, Reports, Sarif, place_of
from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    Interpreter,
    Page,
    Python,
    RequireDecision,
    check_claimed,
    check_writable,
    close,
    command_line,
    note,
    print_json,
    working,
    write_page,
)
from dpassay.errors import InputError, escape_control_chars

Seed = Annotated[int, typer.Option(help="Seed of the generators that the code is given.")]
Hostile = Annotated[
    bool,
    typer.Option(help="Also try inputs that code is seldom tested on: NaN, huge numbers, unknown words, empty texts."),
]
Stated = Annotated[
    str | None,
    typer.Option(
        help="any, word, words(n), tokens(n), element, replace-record, add-remove-record, user, entity, user-entity or "
        "group(n): the relation that pairs must satisfy, which also decides which hostile inputs the claim covers. "
        "Default: pairs are not checked, the claim covers texts that differ in one word, and other hostile inputs "
        "give warnings."
    ),
]
RunLimit = Annotated[float, typer.Option(help="Seconds that one run of the code may take.")]
Time = Annotated[
    str | None,
    typer.Option(
        help="How long to make runs: 10s, 5m. Default: at most 3 seconds of work, until the claim is decided or a "
        "bound leaves out at most 5%."
    ),
]
Save = Annotated[Path | None, typer.Option(help="Keep the result in this file, for 'dpassay verify'.")]


def trace(
    python: Python = None,
    interpreter: Interpreter = None,
    time_limit: RunLimit = 60.0,
    pair: Pairs = None,
    inputs: Inputs = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    neighbours: Stated = None,
    hostile: Hostile = True,
    time: Time = None,
    seed: Seed = 0,
    save: Save = None,
    html: Page = None,
    sarif: Sarif = None,
    junit: Junit = None,
    annotations: Annotate = False,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
) -> None:
    """Run code and report which line draws which noise, what it is added to, and the resulting epsilon.

    The code is not changed. Events that are counted in runs of a pair can refute a claim, with a stated error
    probability; runs never prove one.

    \b
    Examples:
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1
      dpassay trace --python mymodule:Model.rewrite --inputs texts.txt --epsilon 8 --delta 1e-5
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1 --neighbours any --html trace.html
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1 --save trace.json
      dpassay verify trace.json --python mymodule:encode
      dpassay trace --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 4 --time 1m
      dpassay trace --interpreter old/bin/python --python mymodule:encode --pair '[[1, 0], [0, 1]]' --epsilon 1
    """
    if python is None:
        raise InputError("name the code to trace and the claim: --python package.module:name --epsilon 1")
    if pair is not None and inputs is not None:
        raise InputError("give the inputs to run it on, in one way: --pair '[X, Y]', or --inputs FILE")
    check_writable(save, html)
    reports = Reports(sarif, junit, annotations)
    check_claimed(epsilon, delta)
    from dpassay.trace.objects import trace_object as run_trace

    here = python if interpreter is None else None
    # The output of print in the code must not get into the result.
    with redirect_stdout(sys.stderr), reports.of_failures(python, here):
        given = read_inputs(inputs) if inputs is not None else ()
        pairs = [read_pair(one) for one in pair or ()]
        subject = traced(python, interpreter, seed, time_limit)
        try:
            claimed: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours}
            with working(f"running {python}"):
                result = run_trace(
                    subject,
                    given,
                    pairs=pairs,
                    seed=seed,
                    name=python,
                    hostile=hostile,
                    save=save,
                    time_limit=time_limit,
                    time=time,
                    **claimed,
                )
        finally:
            if interpreter is not None:
                close(subject)
    if save is not None and not as_json:
        note(f"trace kept in {save}")
    if html is not None:
        from dpassay.report.pages.page import trace_page

        write_page(trace_page(result, command_line()), html)
    if reports.wanted:
        from dpassay.report.ci.results import of_trace

        reports.write(of_trace(result, place_of(python=here), require_decision))
    if as_json:
        print_json(result.to_dict())
    else:
        print(escape_control_chars(str(result)))
    raise typer.Exit(3 if result.verdict.open and require_decision else result.verdict.exit_code)


def traced(python: str, interpreter: str | None, seed: int = 0, time_limit: float = 60.0) -> Any:
    """The named object, in this interpreter or in another one, which must be closed."""
    if interpreter is None:
        from dpassay.audit.mechanisms.targets import load_object

        return load_object(python)
    from dpassay.trace.remote.interpreter import RemoteTracer

    return RemoteTracer(interpreter, python, seed, time_limit)
