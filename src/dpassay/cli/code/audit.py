"""The audit command: run a mechanism and try to refute its claim."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import fields, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dpassay.audit.options import AuditOptions
from dpassay.cli.code.reports import Annotate, Junit, Reports, Sarif
from dpassay.cli.code.subjects import TimeLimit, runnable, subject_options, taken
from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    ClaimName,
    Command,
    Dim,
    Page,
    Python,
    Relation,
    RequireDecision,
    Settings,
    Text,
    Url,
    as_options,
    check_claimed,
    check_stages,
    check_writable,
    claim_named,
    close,
    command_line,
    finish,
    needs,
    note,
    print_json,
    progress_bar,
    read_values,
    usable_device,
    write_page,
)
from dpassay.cli.text.rewriters import RewriterName, rewriter_or_object, specification
from dpassay.errors import InputError, counted

if TYPE_CHECKING:
    from dpassay.claims.claim import Claim
    from dpassay.evidence.verdict import Verdict

Pairs = Annotated[list[str] | None, typer.Option("--pair", help="Two inputs as JSON, '[X, Y]'; may be repeated.")]
Inputs = Annotated[Path | None, typer.Option(help="A file of inputs, one per line: JSON (.jsonl) or plain text.")]
Region = Annotated[
    str | None, typer.Option(help="Search pairs of a region, such as 'clip(l2, 1)' or 'query(linf, 1)'.")
]
Neighbour = Annotated[str | None, typer.Option("--text", help="Search texts that differ from this one in one word.")]
Vocabulary = Annotated[
    Path | None,
    typer.Option(help="A file of words, one per line, also tried as replacements in the --text."),
]
Candidates = Annotated[Path | None, typer.Option(help="A file of M candidate inputs, of which the guess names one.")]
Generate = Annotated[
    int | None, typer.Option(help="For a --model: let a language model of the --corpus write this many candidates.")
]
Corpus = Annotated[
    str, typer.Option("--corpus", help="With --generate: the texts that the language model learns from.")
]
Release = Annotated[
    str | None,
    typer.Option("--mechanism", help="For an ADePT --model: gaussian, l1, sqrt-n, k-norm, vmf or adept-as-published."),
]
Plan = Annotated[bool, typer.Option("--plan", help="Show how many runs are needed, and exit.")]


def audit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `**asked` an option for each field of AuditOptions that has a help text."""
    *named, _ = signature(command, eval_str=True).parameters.values()
    kinds = get_type_hints(AuditOptions, localns={"Region": Any, "Neighbours": Any})
    options = []
    for option in fields(AuditOptions):
        if "help" in option.metadata:
            flags = [f"--{option.name.replace('_', '-')}"] if option.default is False else []  # without its opposite
            kind = kinds[option.name]
            kind = Annotated[kind, typer.Option(*flags, help=option.metadata["help"])]
            options.append(Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=kind))
    what = [parameter for parameter in named if parameter.kind is not Parameter.KEYWORD_ONLY]
    vars(command)["__signature__"] = Signature([*what, *options, *named[len(what) :]])
    return command


@subject_options
@audit_options
def audit(
    name: ClaimName = None,
    pipeline: Text = None,
    python: Python = None,
    command: Command = None,
    url: Url = None,
    model: RewriterName = None,
    release: Release = None,
    settings: Settings = None,
    dim: Dim = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    pair: Pairs = None,
    inputs: Inputs = None,
    region: Region = None,
    text: Neighbour = None,
    vocabulary: Vocabulary = None,
    candidates: Candidates = None,
    generate: Generate = None,
    corpus: Corpus = "flights",
    neighbours: Relation = None,
    *,
    time_limit: TimeLimit = 30.0,
    plan: Plan = False,
    html: Page = None,
    sarif: Sarif = None,
    junit: Junit = None,
    annotations: Annotate = False,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
    **asked: Any,
) -> None:
    """Run a mechanism and try to refute its claim from its outputs.

    Samples can refute a claim, with a stated error probability; they can never prove one.

    \b
    Examples:
      dpassay audit adept --epsilon 1
      dpassay audit --python mymodule:rewrite --text 'book a flight to Rome' --epsilon 2
      dpassay audit --python mymodule:rewrite --text 'book a flight' --vocabulary words.txt --epsilon 2
      dpassay audit --python mymodule:rewrite --pair '["a", "b"]' --epsilon 2 --until-refuted --seed-all
      dpassay audit --command 'python rewriter.py' --pair '["yes", "no"]' --epsilon 1 --save audit.json
      dpassay audit --command './noisy.sh' --lines --processes 4 --pair '["yes", "no"]' --epsilon 1 --time 10m
      dpassay audit --url http://127.0.0.1:8000/ --inputs texts.txt --epsilon 1 --delta 1e-5
      dpassay audit --url https://example.org/v1/rewrite --token-env API_TOKEN --request '{"text": "$input"}' \\
        --answer '$.result[0]' --concurrency 8 --rate 20/s --pair '["yes", "no"]' --epsilon 1
      dpassay audit --python mymodule:Model.rewrite --pair '["yes", "no"]' --epsilon 1
      dpassay audit --model models/atis --mechanism adept-as-published --epsilon 1 --candidates atis.txt
      dpassay audit --model models/atis --mechanism adept-as-published --epsilon 1 --generate 500 --corpus atis.csv
      dpassay audit --pipeline 'laplace(128)' --dim 128 --region 'clamp(0, 1)' --epsilon 1 --runs 100000000 --workers 2
      dpassay audit --python mymodule:measurement
      dpassay audit --plan --epsilon 3 --runs 1000000
    """
    given, reports = taken(asked), Reports(sarif, junit, annotations)
    claimed, values = read_values(settings, {"epsilon": epsilon, "delta": delta, "dim": dim})
    claim = None if name is None else claim_named(name)
    check_claimed(claimed["epsilon"], claimed["delta"])
    if asked["resume"] and asked["save"] is None:
        raise InputError("--resume needs --save FILE, the file of the audit to continue")
    if vocabulary is not None and text is None:
        raise InputError("--vocabulary gives replacement words for a text: give one with --text 'book a flight'")
    asked["device"] = usable_device(asked["device"], asked["cluster"])
    options = AuditOptions(
        pairs=[read_pair(given) for given in pair] if pair else None,
        inputs=None if inputs is None else read_inputs(inputs),
        region=region,
        text=text,
        vocabulary=vocabulary,
        candidates=None if candidates is None else read_inputs(candidates),
        neighbours=neighbours,
        parameters=values,
        **claimed,
        **asked,
    )
    if plan:
        _plan(claim, options, as_json)
        return
    model, python = rewriter_or_object(model, python)
    mechanism = runnable(python, command, url, time_limit, given, with_claim=True)
    check_writable(options.save, html)
    exact = None
    if model is None:
        _without_model(release, generate)
        subject = _subject(claim, pipeline, mechanism, options.epsilon)
    else:
        if pipeline is not None or mechanism is not None:
            raise InputError("name one thing to audit: --model, or --pipeline, --python, --command or --url")
        if generate is not None:
            options = replace(options, candidates=_written(generate, corpus, options))
        subject, options, exact = _of_model(model, claim, release, options)
    try:
        with reports.of_failures(name or python or command or url or "pipeline", python):
            verdict = _run(subject, options)
    finally:
        close(mechanism)
    verdict = _with_formula(verdict, claim if model is None else None, pipeline, options, exact)
    if options.save is not None and not as_json:
        note(f"audit kept in {options.save}")
    if html is not None:
        from dpassay.report.pages.page import verdict_page

        write_page(verdict_page(verdict, command_line()), html)
    reports.write_verdict(verdict, name, python, require_decision=require_decision, can_prove=False)
    finish(verdict, as_json, require_decision)


def _run(subject: Any, options: AuditOptions) -> Verdict:
    """The verdict of the runs, with its warnings in terms of the command line."""
    from dpassay.audit.runner import run_audit

    # The output of print in a Python mechanism must not get into the result.
    with progress_bar(options.runs) as progress, redirect_stdout(sys.stderr):
        verdict = run_audit(subject, replace(options, progress=progress))
    return replace(verdict, advice=replace(verdict.advice, warnings=tuple(map(as_options, verdict.advice.warnings))))


def _subject(claim: Claim | None, pipeline: str | None, mechanism: Any, epsilon: str | None) -> Any:
    from dpassay.adapters import adapted

    check_stages(pipeline, "audit")
    if sum(given is not None for given in (claim, pipeline, mechanism)) != 1:
        raise InputError("name one thing to audit: a claim's name, --pipeline, --python, --command or --url")
    if claim is None and epsilon is None and adapted(mechanism) is None:
        raise InputError("state the claimed epsilon: --epsilon 1")
    return next(given for given in (claim, pipeline, mechanism) if given is not None)


def _with_formula(
    sampled: Verdict, claim: Claim | None, pipeline: str | None, options: AuditOptions, exact: Verdict | None
) -> Verdict:
    """The sampled verdict combined with the exact one, if the subject is a formula: one subject has one verdict.

    A pipeline whose inputs were given is judged only for these; the formula is not about them in particular.
    """
    chosen = (options.pairs, options.inputs, options.region, options.text, options.candidates)
    subject = claim or (pipeline if all(given is None for given in chosen) else None)
    if subject is None and exact is None:
        return sampled
    from dpassay.api import check, with_samples
    from dpassay.core.guarantee import ApproxDP, PureDP

    if exact is not None:
        return with_samples(exact, sampled)
    exact = check(subject, neighbours=options.neighbours, parameters=options.parameters, **options.claimed)
    return with_samples(exact, sampled) if isinstance(exact.guarantee, PureDP | ApproxDP) else sampled


def _without_model(release: str | None, generate: int | None) -> None:
    """Refuse options that are for a --model only."""
    if release is not None:
        raise InputError("--mechanism is for a trained model: give its folder with --model")
    if generate is not None:
        raise InputError("--generate writes texts for a rewriter: give one with --model")


def _written(number: int, corpus: str, options: AuditOptions) -> list[str]:
    """Candidates that a language model of a corpus writes."""
    if any(given is not None for given in (options.candidates, options.pairs, options.inputs, options.text)):
        raise InputError("--generate writes the candidates itself: leave --candidates, --pair, --inputs and --text out")
    needs("torch", "text")
    import numpy as np

    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.generated_space import check_number, generate
    from dpassay.text.models.next_word import train

    check_number(number)
    with progress_bar(1) as bar:
        writer = train([utterance.text for utterance in read_corpus(corpus)], options.seed, progress=bar)
        return generate(writer, number, np.random.default_rng([options.seed, 1]), bar)


def _of_model(
    name: str, claim: Claim | None, release: str | None, options: AuditOptions
) -> tuple[Any, AuditOptions, Verdict | None]:
    """A rewriter or trained system, what is claimed for it, what to tell apart, and the exact verdict on it."""
    if Path(name).is_dir():
        needs("torch", "text")
    from dpassay.api import check as judge
    from dpassay.text.systems import Running, attacked, claimed_of, opened

    given = {**options.claimed, **options.parameters}
    if claim is not None:
        if release is not None:
            raise InputError(f"{claim.name} says which mechanism it is about: leave --mechanism out")
        system = opened(claim, Path(name), given)
        asked = claim(**{**system.parameters, **given})
        epsilon, delta = asked.guarantee.value, asked.guarantee.exact_delta
        options = replace(options, epsilon=epsilon, delta=delta, neighbours=options.neighbours or asked.neighbours)
        exact: Verdict | None = judge(asked, neighbours=options.neighbours)
    else:
        named = specification(name, None, release, [f"{key}={value}" for key, value in options.parameters.items()])
        subject, guarantee, exact = claimed_of(named, options.epsilon, options.delta)
        system, kept = Running(subject, {}), options.neighbours or guarantee.neighbours
        exact = exact if options.neighbours is None else None  # it does not apply to other neighbors
        options = replace(options, epsilon=guarantee.stated, delta=guarantee.delta or None, neighbours=kept)
    options = replace(options, dim=None, parameters={})
    if not (options.pairs is None and options.region is None and options.text is None):
        return system.subject, options, exact
    with progress_bar(1) as bar:
        draws = max(10_000, 4 * options.runs)  # for an attack to learn from, at most
        system = attacked(system, options.candidates or options.inputs, options.seed, bar, draws)
    chosen_from = "candidates" if options.candidates else "inputs"
    given_up = {chosen_from: None} if system.inputs else {}
    return system.subject, replace(options, **{**given_up, "guesser": system.guesser, **system.inputs}), exact


def read_pair(text: str) -> tuple[Any, Any]:
    """Two inputs, as --pair takes them."""
    try:
        pair = json.loads(text)
    except ValueError as error:
        raise InputError(f"--pair takes two inputs as JSON, such as '[0, 1]'; got {text!r}: {error}") from None
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(f"--pair takes two inputs as JSON, such as '[0, 1]'; got {text!r}")
    return pair[0], pair[1]


def read_inputs(path: Path) -> list[Any]:
    """Inputs from a file: JSON lines if it ends in .jsonl, otherwise one text per line; empty lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    if path.suffix == ".json":
        raise InputError(f"{path}: JSON is read one value per line; write it that way and name the file .jsonl")
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


def _plan(claim: Claim | None, options: AuditOptions, as_json: bool) -> None:
    """How many runs are needed at least, and what the given ones can show at most."""
    from dpassay.audit.testing.inference import most_certifiable, runs_needed
    from dpassay.core.guarantee import make_guarantee

    if claim is None and options.epsilon is None:
        raise InputError("state the claimed epsilon: --epsilon 1")
    own = None if claim is None else claim(**options.claimed).guarantee
    guarantee = own or make_guarantee(options.epsilon, options.delta or 0)
    alpha, runs = options.alpha, options.runs
    claimed, many = guarantee.claimed, 2 if options.candidates is None else len(options.candidates)
    most = most_certifiable(runs, alpha, many)
    rows = [(factor, factor * claimed, runs_needed(claimed, factor * claimed, alpha, many)) for factor in (1.1, 1.5, 2)]
    if as_json:
        needed = [{"factor": f, "epsilon": e, "runs": n if n < 10**15 else "inf"} for f, e, n in rows]
        print_json({"claimed": claimed, "alpha": alpha, "runs": runs, "most": most, "needed": needed})
        return
    print(f"To refute epsilon {claimed:g} at error probability {alpha:g} it takes, in the best case, about")
    for factor, true, needed_runs in rows:
        print(f"  {_many(needed_runs):>22} runs if the truth is {factor:g} times as large, {true:g}")
    print("The best case is a guess in every run, as good as the truth allows. A guesser that has to be learned,")
    print("or that abstains often, needs several times as many.")
    print(f"{counted(runs, 'run')} can show an epsilon of at most {most:.4g}, and only if every guess is correct.")
    if most <= claimed:
        print(f"So epsilon {claimed:g} is undetectable with {counted(runs, 'run')}.")
    if guarantee.delta:
        print("With a delta above 0, more runs are needed.")


def _many(runs: int) -> str:
    return f"{runs:,}" if runs < 10**15 else f"10^{math.log10(runs):.0f}" if runs < 10**300 else "more than 10^300"
