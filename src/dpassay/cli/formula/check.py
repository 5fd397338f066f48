"""Check a claim."""

import sys
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dpassay.cli.code.reports import Annotate, Junit, Reports, Sarif
from dpassay.cli.common import (
    AsJson,
    ClaimedDelta,
    ClaimedEpsilon,
    ClaimedMetric,
    ClaimedMu,
    ClaimedOrder,
    ClaimedRho,
    ClaimName,
    Dim,
    Page,
    People,
    Python,
    Relation,
    RequireDecision,
    Settings,
    Text,
    check_claimed,
    check_stages,
    check_writable,
    claim_named,
    command_line,
    finish,
    needs,
    note,
    print_json,
    print_rich,
    progress_bar,
    read_values,
    working,
    write_page,
)
from dpassay.cli.formula.words import (
    Device,
    FirstWords,
    Numbers,
    StopWords,
    Unknown,
    VocabularyFile,
    check_words,
    of_words,
)
from dpassay.cli.text.rewriters import RewriterName, specification
from dpassay.errors import InputError

CertificateFile = Annotated[Path | None, typer.Option(help="Write a certificate for 'dpassay verify'.")]
ListStages = Annotated[bool, typer.Option("--stages", help="List the stages a pipeline may have and exit.")]
PrintSchema = Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of claim files and exit.")]
Samples = Annotated[
    int, typer.Option("--runs", help="In addition to the exact analysis, run the mechanism this often.")
]
Seed = Annotated[int, typer.Option(help="Seed of the runs.")]
Tight = Annotated[
    bool, typer.Option("--tight", help="Narrow the interval as far as possible, where the claim is decided without it.")
]
Sampled = Annotated[bool, typer.Option("--sample", help="Also run the mechanism, or the --model, 100,000 times.")]


def check(
    name: ClaimName = None,
    pipeline: Text = None,
    python: Python = None,
    settings: Settings = None,
    dim: Dim = None,
    epsilon: ClaimedEpsilon = None,
    delta: ClaimedDelta = None,
    metric: ClaimedMetric = None,
    order: ClaimedOrder = None,
    rho: ClaimedRho = None,
    mu: ClaimedMu = None,
    neighbours: Relation = None,
    people: People = None,
    certificate: CertificateFile = None,
    html: Page = None,
    model: RewriterName = None,
    sample: Sampled = False,
    runs: Samples = 0,
    seed: Seed = 0,
    tight: Tight = False,
    vocabulary: VocabularyFile = None,
    words: FirstWords = None,
    unknown: Unknown = None,
    stop_words: StopWords = None,
    numbers: Numbers = None,
    device: Device = "cpu",
    sarif: Sarif = None,
    junit: Junit = None,
    annotations: Annotate = False,
    as_json: AsJson = False,
    require_decision: RequireDecision = False,
    stages: ListStages = False,
    schema: PrintSchema = False,
) -> None:
    """Check a claim: is the mechanism as private as claimed?

    \b
    Examples:
      dpassay check --pipeline 'clip(l2, C) | laplace(2*C/eps)' --set C=1 --dim 32 --epsilon 1
      dpassay check --pipeline 'query(l2, 1) | gaussian(sigma)' --set sigma=2 --epsilon 2 --delta 1e-5
      dpassay check --pipeline 'radial(l2, 1/eps)' --metric l2 --dim 300 --epsilon 10
      dpassay check --pipeline 'query(l2, 1) | gaussian(2)' --rho 0.125
      dpassay check adept --set C=2 --set dim=1024 --epsilon 2 --json
      dpassay check mine.toml
      dpassay check --python mymodule:measurement
      dpassay check adept --delta 1e-6 --tight
      dpassay check adept --runs 10000
      dpassay check adept --model models/adept --sample
      dpassay check --model models/adept,mechanism=l1 --epsilon 10
      dpassay check santext --vocabulary glove.txt --words 5000 --epsilon 4 --unknown copied
    """
    if stages or schema:
        _list(stages)
        return
    subjects = sum(given is not None for given in (name, pipeline, python))
    if subjects != 1 and not (subjects == 0 and model is not None):  # a rewriter states its own claim
        raise InputError("specify exactly one of: a published claim, --pipeline or --python")
    check_stages(pipeline, "check")
    check_writable(certificate, html)
    reports = Reports(sarif, junit, annotations)
    of_vocabulary = {"vocabulary": vocabulary, "words": words, "unknown": unknown, "stop_words": stop_words}
    of_vocabulary |= {"numbers": numbers, "device": device}
    if of_words(name, of_vocabulary):
        claimed = {"epsilon": epsilon, "delta": delta, "metric": metric}
        others = {"dim": dim, "order": order, "rho": rho, "mu": mu, "neighbours": neighbours, "people": people}
        verdict = check_words(str(name), settings, claimed, of_vocabulary, {**others, "model": model, "runs": runs})
        _end(verdict, (certificate, html, reports), as_json, require_decision)
    from dpassay.api import check as judge

    failing = partial(reports.of_failures, name or python or "pipeline")
    with failing():
        subject: Any = _object(python) if python is not None else pipeline if name is None else claim_named(name)
    given, values = read_values(settings, {"epsilon": epsilon, "delta": delta, "dim": dim})
    others = {"metric": metric, "order": order, "rho": rho, "mu": mu}
    if pipeline is not None and given["epsilon"] is None and rho is None and mu is None:
        raise InputError("state the claimed epsilon: --epsilon 1 (or --rho, or --mu)")
    if any(value is not None for value in others.values()):
        stated = {**others, "epsilon": given.pop("epsilon"), "delta": given.pop("delta")}
        given["guarantee"] = _guarantee(stated, None if name is None else subject)
    else:
        check_claimed(given["epsilon"], given["delta"])
    runs = runs or (100_000 if sample else 0)
    if model is not None:
        verdict = _judge_model(subject, model, neighbours, people, runs, seed, {**given, **values})
    else:
        quiet = redirect_stdout(sys.stderr) if python is not None else nullcontext()  # hides what the object prints
        with working("checking"), quiet, failing():
            options = {"neighbours": neighbours, "people": people, "runs": runs, "seed": seed, "tight": tight, **given}
            verdict = judge(subject, parameters=values, **options)
    if verdict.expected and verdict.word != verdict.expected and name is not None and name.endswith(".toml"):
        print(f"not as expected: {verdict.word}, where the file expects {verdict.expected}", file=sys.stderr)
    _end(verdict, (certificate, html, reports), as_json, require_decision, name, python)


def _list(stages: bool) -> None:
    """The stages of a pipeline, or the schema of claim files."""
    if not stages:
        from dpassay.claims.schema import claim_schema

        print_json(claim_schema())
        return
    from dpassay.report.terminal import stage_table

    print_rich(stage_table())


def _object(path: str) -> Any:
    """A Python object that has its own formula, or at least its own claim."""
    from dpassay.adapters import adapted
    from dpassay.audit.mechanisms.targets import load_object, load_subject
    from dpassay.claims.claim import Claim
    from dpassay.pipeline.pipeline import Pipeline

    with redirect_stdout(sys.stderr):
        found = load_object(path)
        if isinstance(found, Claim | Pipeline):
            return found
        if adapted(found) is not None:
            return load_subject(path)
    raise InputError(
        f"{path} is of type {type(found).__name__}; dpassay cannot derive a formula from it (docs/adapters.md lists "
        f"what it reads); run it instead: dpassay trace --python {path} --pair '[X, Y]' --epsilon 1, or dpassay audit "
        "likewise"
    )


def _end(
    verdict: Any,
    wanted: tuple[Path | None, Path | None, Reports],
    as_json: bool,
    require_decision: bool,
    name: str | None = None,
    python: str | None = None,
) -> None:
    """Write the requested files (certificate, page, reports), print the verdict, and exit with its code."""
    certificate, html, reports = wanted
    with working("what holds instead, and repairs"):
        verdict.advice.complete()
    if certificate is not None:
        with working("writing the certificate"):
            verdict.save_certificate(certificate)
        if not as_json:
            note(f"certificate written to {certificate}")
    if html is not None:
        with working("drawing"):
            text = verdict.to_html(command_line())
        write_page(text, html)
    reports.write_verdict(verdict, name, python, require_decision=require_decision)
    finish(verdict, as_json, require_decision)


def _guarantee(stated: dict[str, Any], claim: Any) -> Any:
    """A guarantee that is not stated by epsilon and delta; omitted values are the claim's."""
    from dpassay.core.guarantee import stated_guarantee, statement

    if claim is not None:
        own = statement(claim.guarantee)
        missing = {key: value for key, value in own.items() if stated.get(key) is None}
        stated = {**stated, **(missing if not (stated["rho"] or stated["mu"]) else {})}
    return stated_guarantee(**stated)


def _judge_model(
    claim: Any, model: str, neighbours: str | None, people: int | None, runs: int, seed: int, given: dict[str, Any]
) -> Any:
    """A claim, judged for a trained model; or without a claim, what a rewriter itself states."""
    if isinstance(claim, str) or neighbours is not None or people is not None:
        raise InputError(
            "a model is checked against a published claim, 'dpassay check adept --model DIR', or for what it states "
            "itself, 'dpassay check --model NAME --epsilon 10'; without other options"
        )
    changes = {name: value for name, value in given.items() if value is not None}
    with progress_bar(max(runs, 1)) as bar:
        if claim is None:
            from dpassay.text.systems import check_rewriter

            epsilon, delta = changes.pop("epsilon", None), changes.pop("delta", None)
            named = specification(model, settings=[f"{name}={value}" for name, value in changes.items()])
            return check_rewriter(named, epsilon, delta, runs=runs, seed=seed, progress=bar)
        needs("torch", "text")
        from dpassay.text.systems import check_model

        return check_model(claim, model, runs=runs, seed=seed, progress=bar, **changes)
