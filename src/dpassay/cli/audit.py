"""The audit command: run a mechanism and try to refute its claim."""

from __future__ import annotations

import json
import math
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    ClaimName,
    ClusterAddress,
    Command,
    Device,
    Dim,
    OfModel,
    Page,
    Python,
    Relation,
    RequireDecision,
    Settings,
    Text,
    TimeLimit,
    Url,
    Workers,
    check_claimed,
    check_writable,
    claim_named,
    close,
    command_line,
    finish,
    needs,
    print_json,
    progress_bar,
    read_values,
    runnable,
    usable_device,
    write_page,
)
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.claims.claim import Claim

Pairs = Annotated[list[str] | None, typer.Option("--pair", help="Two inputs as JSON, '[X, Y]'; may be given often.")]
Inputs = Annotated[Path | None, typer.Option(help="A file of inputs, a line each: JSON (.jsonl) or plain text.")]
Region = Annotated[
    str | None, typer.Option(help="Search pairs of a region, such as 'clip(l2, 1)' or 'query(linf, 1)'.")
]
Neighbour = Annotated[str | None, typer.Option("--text", help="Search texts that differ from this one in one word.")]
Candidates = Annotated[
    Path | None, typer.Option(help="A file of M candidate inputs; the guess is which of them it was.")
]
Release = Annotated[
    str | None,
    typer.Option(
        "--mechanism", help="Of the --model: gaussian, l1, sqrt-n or adept-as-published, at the claimed epsilon."
    ),
]
Alpha = Annotated[float, typer.Option(help="Total probability of refuting a claim that holds.")]
Runs = Annotated[int, typer.Option(help="Runs of the mechanism, at most.")]
Fixed = Annotated[bool, typer.Option("--fixed", help="Make all runs and give the best bound; else stop when refuted.")]
SearchRuns = Annotated[
    int | None,
    typer.Option(help="How many of the runs may go into finding a pair. Default: 15 of 100."),
]
Shrink = Annotated[bool, typer.Option("--shrink/--no-shrink", help="Look for a smaller pair that still refutes.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same counts.")]
Bits = Annotated[
    bool | None,
    typer.Option(
        "--bits/--no-bits",
        help="Whether the last bits of floats count. Default: a few runs look at them, for a warning.",
    ),
]
Save = Annotated[
    Path | None, typer.Option(help="Keep rules and counts in this file, for --resume and 'dpassay verify'.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the audit that --save names; ask the same again.")]
Plan = Annotated[bool, typer.Option("--plan", help="Only say how many runs it takes, and stop.")]


def audit(
    name: ClaimName = None,
    pipeline: Text = None,
    python: Python = None,
    command: Command = None,
    url: Url = None,
    model: OfModel = None,
    release: Release = None,
    settings: Settings = None,
    dim: Dim = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    pair: Pairs = None,
    inputs: Inputs = None,
    region: Region = None,
    text: Neighbour = None,
    candidates: Candidates = None,
    neighbours: Relation = None,
    alpha: Alpha = 0.001,
    runs: Runs = 100_000,
    fixed: Fixed = False,
    search_runs: SearchRuns = None,
    shrink: Shrink = True,
    seed: Seed = 0,
    bits: Bits = None,
    time_limit: TimeLimit = 30.0,
    save: Save = None,
    resume: Resume = False,
    workers: Workers = None,
    cluster: ClusterAddress = None,
    device: Device = "cpu",
    plan: Plan = False,
    html: Page = None,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
) -> None:
    """Run a mechanism and try to refute its claim from what it puts out.

    Samples can refute a claim, with the error probability stated; they can never prove one.

    \b
    Examples:
      dpassay audit adept --epsilon 1
      dpassay audit --python mymodule:rewrite --text 'book a flight to Rome' --epsilon 2
      dpassay audit --command 'python rewriter.py' --pair '["yes", "no"]' --epsilon 1 --save audit.json
      dpassay audit --url http://127.0.0.1:8000/ --inputs texts.txt --epsilon 1 --delta 1e-5
      dpassay audit --model models/atis --mechanism adept-as-published --epsilon 1 --candidates atis.txt
      dpassay audit --pipeline 'laplace(128)' --dim 128 --region 'clamp(0, 1)' --epsilon 1 --runs 100000000 --workers 2
      dpassay audit --plan --epsilon 3 --runs 1000000
    """
    options, values = read_values(settings, {"epsilon": epsilon, "delta": delta, "dim": dim})
    claim = None if name is None else claim_named(name)
    check_claimed(options["epsilon"], options["delta"], claim)
    device = usable_device(device, cluster)
    if plan:
        _plan(claim, options, alpha, runs, candidates, as_json)
        return
    mechanism = runnable(python, command, url, time_limit)
    check_writable(save, html)
    if resume and save is None:
        raise InputError("--resume needs --save FILE, the file of the audit to go on with")
    from dpassay.audit.runner import audit as play

    ways: dict[str, Any] = {
        "pairs": [_pair(given) for given in pair] if pair else None,
        "inputs": None if inputs is None else read_inputs(inputs),
        "region": region,
        "text": text,
        "candidates": None if candidates is None else read_inputs(candidates),
        "neighbours": neighbours,
    }
    if model is None:
        if release is not None:
            raise InputError("--mechanism is for a trained model: give its folder by --model")
        subject = _subject(claim, pipeline, mechanism, options["epsilon"])
    else:
        if pipeline is not None or mechanism is not None:
            raise InputError("say what to audit, once: --model, or --pipeline, --python, --command or --url")
        subject, options, values, ways = _of_model(model, claim, release, options, values, ways, seed)

    try:
        # What a Python mechanism prints must not get into the result.
        with progress_bar(runs) as progress, redirect_stdout(sys.stderr):
            verdict = play(
                subject,
                alpha=alpha,
                runs=runs,
                fixed=fixed,
                search_runs=search_runs,
                shrink=shrink,
                seed=seed,
                bits=bits,
                save=save,
                resume=resume,
                workers=workers,
                cluster=cluster,
                device=device,
                progress=progress,
                **ways,
                **options,
                **values,
            )
    finally:
        close(mechanism)
    if save is not None and not as_json:
        print(f"audit kept in {save}", file=sys.stderr)
    if html is not None:
        from dpassay.report.page import verdict_page

        write_page(verdict_page(verdict, command_line()), html)
    finish(verdict, as_json, require_decision)


def _subject(claim: Claim | None, pipeline: str | None, mechanism: Any, epsilon: str | None) -> Any:
    if sum(given is not None for given in (claim, pipeline, mechanism)) != 1:
        raise InputError("say what to audit, once: a claim's name, --pipeline, --python, --command or --url")
    if claim is None and epsilon is None:
        raise InputError("say which epsilon is claimed: --epsilon 1")
    return next(given for given in (claim, pipeline, mechanism) if given is not None)


def _of_model(
    folder: Path,
    claim: Claim | None,
    release: str | None,
    options: dict[str, Any],
    values: dict[str, Any],
    ways: dict[str, Any],
    seed: int,
) -> tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A trained system, what is claimed for it, and what to tell apart, by the guesser that knows the model."""
    needs("torch", "text")
    from dpassay.text.systems import Running, attacked, opened, rewriter

    given = {name: value for name, value in {**options, **values}.items() if value is not None}
    if claim is not None:
        if release is not None:
            raise InputError(f"{claim.name} says which mechanism it is about: leave --mechanism out")
        system = opened(claim, folder, given)
        asked = claim(**{**system.parameters, **given})
        guarantee = asked.guarantee
        options = {"epsilon": guarantee.exact_epsilon, "delta": guarantee.exact_delta}
        ways = {**ways, "neighbours": ways["neighbours"] or asked.neighbours}
    elif release is None or options["epsilon"] is None:
        raise InputError("say what is claimed for the model: a claim's name, or --mechanism with --epsilon")
    else:
        system = Running(rewriter(folder, release, options["epsilon"], options["delta"]), {})
        options = {name: options[name] for name in ("epsilon", "delta")}
    told = {name: value for name, value in ways.items() if value is not None}
    if set(told) & {"pairs", "region", "text"}:
        return system.subject, options, {}, told
    texts = told.pop("candidates", None) or told.pop("inputs", None)
    with progress_bar(1) as bar:
        system = attacked(system, texts, seed, bar)
    return system.subject, options, {"guesser": system.guesser}, {**told, **system.inputs}


def _pair(text: str) -> tuple[Any, Any]:
    try:
        pair = json.loads(text)
    except ValueError as error:
        raise InputError(f"--pair takes two inputs as JSON, such as '[0, 1]'; got {text!r}: {error}") from None
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(f"--pair takes two inputs as JSON, such as '[0, 1]'; got {text!r}")
    return pair[0], pair[1]


def read_inputs(path: Path) -> list[Any]:
    """Inputs from a file: JSON lines if it is called .jsonl, else a text a line; empty lines are left out."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    if path.suffix == ".json":
        raise InputError(f"{path}: JSON is read a value a line; write it like that and call it .jsonl")
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line) if path.suffix == ".jsonl" else line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}, is not JSON: {error}") from None
    if not found:
        raise InputError(f"{path} has no inputs: it needs at least two lines that are not empty")
    return found


def _plan(
    claim: Claim | None, options: dict[str, Any], alpha: float, runs: int, candidates: Path | None, as_json: bool
) -> None:
    """How many runs it takes at least, and what the given ones can show at most."""
    from dpassay.audit.inference import check_alpha, most_certifiable, runs_needed
    from dpassay.core.guarantee import make_guarantee

    check_alpha(alpha)
    if runs < 1:
        raise InputError(f"runs must be a whole number, 1 or more, got {runs}")
    changes = {name: value for name, value in options.items() if value is not None}
    if claim is None and "epsilon" not in changes:
        raise InputError("say which epsilon is claimed: --epsilon 1")
    guarantee = (
        make_guarantee(options["epsilon"], options["delta"] or 0) if claim is None else claim(**changes).guarantee
    )
    claimed, many = guarantee.epsilon, 2 if candidates is None else len(read_inputs(candidates))
    most = most_certifiable(runs, alpha, many)
    rows = [(factor, factor * claimed, runs_needed(claimed, factor * claimed, alpha, many)) for factor in (1.1, 1.5, 2)]
    if as_json:
        needed = [{"factor": f, "epsilon": e, "runs": n if n < 10**15 else "inf"} for f, e, n in rows]
        print_json({"claimed": claimed, "alpha": alpha, "runs": runs, "most": most, "needed": needed})
        return
    print(f"To refute epsilon {claimed:g} at error probability {alpha:g} it takes, in the best case, about")
    for factor, true, needed_runs in rows:
        print(f"  {_many(needed_runs):>22} runs if the truth is {factor:g} times as large, {true:g}")
    print("The best case is a guess in every run, as good as the truth allows. A guesser that has to be learnt,")
    print("or that abstains often, needs several times as many.")
    print(f"{runs:,} runs can show an epsilon of {most:.4g} at most, and that only if every guess is right.")
    if most <= claimed:
        print(f"So epsilon {claimed:g} is undetectable with {runs:,} runs.")
    if guarantee.delta:
        print("With a delta above 0 it takes more.")


def _many(runs: int) -> str:
    return f"{runs:,}" if runs < 10**15 else f"10^{math.log10(runs):.0f}" if runs < 10**300 else "more than 10^300"
