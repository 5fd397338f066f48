"""The command that guesses what a rewritten text was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import AsJson, needs, note, print_json, print_rich, progress_bar
from dpassay.cli.text import rewriters
from dpassay.cli.text.rewrite import Seed, order_of
from dpassay.errors import InputError, escape_control_chars

if TYPE_CHECKING:
    from dpassay.text.rewriters.base import TextGuarantee
    from dpassay.text.rewriters.rewriting import Order


def reconstruct(
    text: Annotated[str | None, typer.Argument(help="A rewritten text; not with --originals.")] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="A file of possible original texts, one per line; or use --generate.")
    ] = None,
    generate: Annotated[
        int | None, typer.Option(help="Let a language model of the --corpus write this many possible originals.")
    ] = None,
    top: Annotated[int, typer.Option(help="With --generate: how many of the nearest utterances to show.")] = 5,
    source: Annotated[
        str, typer.Option("--corpus", help="With --generate: the texts that the language model learns from.")
    ] = "flights",
    language_model: Annotated[
        str | None,
        typer.Option(
            help="With --generate: a causal transformers model's folder, prompted with texts of the corpus. Default: a "
            "small one of our own, trained on the corpus."
        ),
    ] = None,
    original: Annotated[
        str | None, typer.Option(help="With --generate: the true original, to report how near the guesses are.")
    ] = None,
    originals: Annotated[
        str | None, typer.Option(help="With --generate: a corpus whose texts are rewritten and attacked.")
    ] = None,
    trials: Annotated[int, typer.Option(help="With --originals: how many of them to attack.")] = 50,
    model: rewriters.RewriterName = None,
    python: rewriters.RewriterPath = None,
    mechanism: rewriters.MechanismName = None,
    settings: rewriters.RewriterSettings = None,
    epsilon: rewriters.ReleaseEpsilon = None,
    true_epsilon: rewriters.TrueEpsilon = None,
    delta: rewriters.ReleaseDelta = None,
    draws: Annotated[
        int | None,
        typer.Option(help="Number of rewritings to learn from. Default: 400 per candidate; 8,000 with --generate."),
    ] = None,
    most: Annotated[int, typer.Option(help="How many candidates to show.")] = 10,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Guess the original of a rewritten text: the attack that 'dpassay audit --model' uses.

    Where the rewriter knows the probability of what it writes, the guess is the best that anybody can make. Otherwise
    the attack learns from rewritings of the candidates. With --generate, no candidates are needed: a language model,
    trained on the corpus without the text under attack, writes them, and the neighborhood of the noisy vector is
    explored.

    \b
    Examples:
      dpassay reconstruct 'on april first i need a ticket' --model models/atis --mechanism adept-as-published \\
        --candidates atis.txt --epsilon 100
      dpassay reconstruct 'on april first i need a ticket' --model models/atis --mechanism adept-as-published \\
        --epsilon 100 --generate 5000 --top 5 --corpus atis.csv
      dpassay reconstruct --originals atis-test.csv --trials 50 --model models/atis --mechanism l1 --epsilon 100 \\
        --generate 5000 --corpus atis.csv
    """
    for option, value in (("--most", most), ("--top", top), ("--trials", trials)):
        if value < 1:
            raise InputError(f"{option} must be 1 or more, got {value}")
    given = (model, python, mechanism, settings, (epsilon, true_epsilon, delta), "cpu", None)
    if generate is not None:
        if candidates is not None:
            raise InputError("give --candidates or --generate, not both")
        if (text is None) == (originals is None):
            raise InputError("with --generate, give either a rewritten text or --originals with texts to attack")
        _generated(
            (text, original, originals, trials),
            (generate, top, source, language_model, draws, seed),
            order_of(*given),
            as_json,
        )
        return
    if candidates is None or text is None:
        raise InputError("give a rewritten text and --candidates FILE, or --generate N to have candidates written")
    if original is not None or originals is not None or language_model is not None:
        raise InputError("--original, --originals and --language-model are for --generate")
    from dpassay.cli.code.audit import read_inputs

    known = list(dict.fromkeys(str(line) for line in read_inputs(candidates)))
    order = order_of(*given)
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

    with_likelihood = any("log_likelihood" in row for row in rows)
    table = Table("probability", *(["log-likelihood"] if with_likelihood else []), "candidate", box=None)
    table.header_style = "bold"
    for row in rows:
        likely = [f"{math.exp(row['log_probability']):.3%}"]
        likely += [f"{row['log_likelihood']:.1f}"] if with_likelihood else []
        table.add_row(*likely, Text(escape_control_chars(str(row["candidate"]))))
    print_rich(table)


def _generated(
    attacked: tuple[str | None, str | None, str | None, int],
    how: tuple[int, int, str, str | None, int | None, int],
    order: Order,
    as_json: bool,
) -> None:
    """The attack with a generated search space, on one rewritten text or on texts that are rewritten here."""
    text, original, originals, trials = attacked
    number, top, source, language_model, draws, seed = how
    needs("torch", "text")
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.generated_space import attack_all, check_number, nearness, search_space, similarity_of
    from dpassay.text.models.next_word import prompted, train
    from dpassay.text.models.words import tokenise
    from dpassay.text.rewriters.rewriting import opened

    check_number(number)
    if draws is not None and draws < 1:
        raise InputError(f"--draws must be 1 or more, got {draws}")
    if text is not None and not tokenise(text):
        raise InputError("the rewritten text has no word")
    rewriter: Any = opened(order)
    secret = [u.text for u in read_corpus(originals)][:trials] if originals else [original] if original else []
    hidden = {tuple(tokenise(one)) for one in secret}
    known = [u.text for u in read_corpus(source) if tuple(tokenise(u.text)) not in hidden]
    with progress_bar(1) as bar:
        writer: Any = prompted(language_model, known) if language_model else train(known, seed, progress=bar)
        space = search_space(rewriter, writer, number, draws, seed, bar)
        if originals:
            found = attack_all(space, secret, top, seed, progress=bar)
        else:
            nearest = space.nearest(str(text), top, np.random.default_rng([seed, 3]))
    if originals:
        _print_means(found, order.guarantee_of(rewriter), as_json)
        return
    rows: list[dict[str, Any]] = [{"candidate": one, "nearness": near} for one, near in nearest]
    if original is not None:
        alike = similarity_of(rewriter)
        rows = [row | nearness(str(row["candidate"]), original, alike) for row in rows]
    if as_json:
        print_json({"generated": len(space.texts), "nearest": rows})
        return
    columns = ["nearness", *(["exact", "words", "bleu", "similarity"] if original is not None else [])]
    table = Table(*columns, "utterance", box=None, header_style="bold")
    for row in rows:
        table.add_row(
            *(f"{float(row[name]):.3g}" for name in columns), Text(escape_control_chars(str(row["candidate"])))
        )
    left_out = "without the original" if original else "if the original may be in it, name it with --original"
    note(f"{len(space.texts):,} utterances were generated by a language model of the corpus, {left_out}")
    print_rich(table)


def _print_means(found: dict[str, Any], guarantee: TextGuarantee, as_json: bool) -> None:
    if as_json:
        print_json(found | {"guarantee": guarantee.to_dict()})
        return
    from rich.table import Table

    print(f"guarantee: {guarantee}")
    print(f"attacked: {found['attacked']:,}, each with {found['generated']:,} generated utterances")
    print(f"in the search space: {found['in_search_space']:.1%}")
    names = {
        "first": "nearest utterance",
        "best": f"best of the {found['top']} nearest",
        "random": "random utterance",
        "best_random": f"best of {found['top']} random ones",
        "rewritten": "the released text",
    }
    table = Table("guess", "exact", "words", "BLEU", "similarity", box=None, header_style="bold")
    for way, title in names.items():
        row = found[way]
        shown = (f"{row['exact']:.1%}", f"{row['words']:.1%}", f"{row['bleu']:.1f}", f"{row['similarity']:.3f}")
        table.add_row(title, *shown)
    print_rich(table)
