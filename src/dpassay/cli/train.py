"""Training: a published text system, or a language model with privacy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import AsJson, needs, print_json, progress_bar
from dpassay.cli.text import Corpus, Device, Seed
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.text.corpora.utterance import Utterance

# Which systems an option of `train` is for.
SYSTEMS_OF = {
    **dict.fromkeys(("clip", "batch", "device", "resume"), ("adept", "lm")),
    **dict.fromkeys(("latent", "steps"), ("adept", "dptext")),
    **dict.fromkeys(("mu", "encoder", "fine_tune"), ("dpnr",)),
    "epsilon": ("dptext", "dpnr", "lm"),
    **dict.fromkeys(("reading", "adversary"), ("dptext",)),
    **dict.fromkeys(
        (
            *("privacy", "delta", "noise_multiplier", "rounds", "rate", "entity_rate", "cell_clip", "most_users"),
            *("local_steps", "learning_rate", "noise_source", "vocabulary", "entities_from", "held_out", "base"),
            *("canaries", "canary_kind"),
        ),
        ("lm",),
    ),
}


def train(
    context: typer.Context,
    system: Annotated[str, typer.Argument(help="adept, dptext, dpnr, or lm for a language model.")],
    out: Annotated[Path, typer.Option(help="The folder for the model.")],
    source: Corpus = "flights",
    latent: Annotated[int | None, typer.Option(help="Size of the vectors. Default: 64 (adept), 16 (dptext).")] = None,
    clip: Annotated[
        float | None,
        typer.Option(
            help="adept: clipping norm of vectors (default: 1). lm: clipping norm of a unit's updates (default: 0.5)."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps. Default: 2000 on a CPU, 5000 on a GPU.")] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Texts per step. Default: 64 on a CPU, 128 on a GPU; lm: 8 per unit."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", "-e", help="dptext: fix it instead of learning it. dpnr: default 0.05. lm: of the guarantee."
        ),
    ] = None,
    mu: Annotated[float, typer.Option(help="dpnr: the probability that a word is dropped.")] = 0.5,
    encoder: Annotated[str, typer.Option(help="dpnr: a sentence encoder's folder or hub name.")] = "minilm",
    fine_tune: Annotated[
        int, typer.Option(help="dpnr: steps of training the encoder too, on noisy vectors. Default: 0, it is frozen.")
    ] = 0,
    reading: Annotated[str, typer.Option(help="dptext: zero, resampled, nan or right.")] = "zero",
    adversary: Annotated[
        float, typer.Option(help="dptext: weight of the discriminator that the attribute is hidden from; 0: none.")
    ] = 1.0,
    privacy: Annotated[str, typer.Option(help="lm: example, user, entity, user-entity or none.")] = "user",
    delta: Annotated[float, typer.Option("--delta", "-d", help="lm: the delta of the guarantee.")] = 1e-5,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="lm: give this instead of --epsilon, which is then computed.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="lm: number of rounds.")] = 1000,
    rate: Annotated[float, typer.Option(help="lm: the probability that a unit is sampled in a round.")] = 0.1,
    entity_rate: Annotated[float, typer.Option(help="lm, user-entity: the same for an entity.")] = 0.5,
    cell_clip: Annotated[
        float | None,
        typer.Option(help="lm, user-entity: clipping norm for a user's sentences with one entity. Default: clip/4."),
    ] = None,
    most_users: Annotated[int | None, typer.Option(help="lm, user-entity: maximum number of users per round.")] = None,
    local_steps: Annotated[int, typer.Option(help="lm: steps of each unit in a round.")] = 1,
    learning_rate: Annotated[
        float | None, typer.Option(help="lm: the server's learning rate. Default: 0.02; without privacy 0.003.")
    ] = None,
    noise_source: Annotated[str, typer.Option(help="lm: os, torch (reproducible with --seed) or opendp.")] = "os",
    vocabulary: Annotated[Path | None, typer.Option(help="lm: a public list of words, one per line.")] = None,
    entities_from: Annotated[str, typer.Option(help="lm: corpus, iob, list:FILE, spacy or presidio.")] = "corpus",
    held_out: Annotated[
        str | None, typer.Option(help="lm: a corpus to measure on, instead of a held-out tenth.")
    ] = None,
    base: Annotated[str, typer.Option(help="lm: a causal transformers model's folder or name to start from.")] = "",
    canaries: Annotated[int, typer.Option(help="lm: number of canaries to plant, for 'dpassay audit-training'.")] = 0,
    canary_kind: Annotated[
        str, typer.Option(help="lm: updates (an attacker who sees each round) or sentences (one who has the model).")
    ] = "updates",
    seed: Seed = 0,
    device: Device = "cpu",
    resume: Annotated[bool, typer.Option("--resume", help="adept, lm: continue after an interruption.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a text system on a corpus: ADePT's autoencoder, DPText, DPNR's classifier, or a private language model.

    Ctrl-C keeps what adept or lm has learnt; the same command with --resume continues. Models are saved as safetensors
    and JSON. The guarantee of a language model is in statement.md in its folder.

    \b
    Examples:
      dpassay train adept --corpus flights --out models/adept
      dpassay train adept --corpus atis/train.csv --out models/atis --device cuda
      dpassay train dptext --corpus flights --out models/dptext --reading zero
      dpassay train dptext --corpus dialects --out models/control --reading right --epsilon 400 --adversary 0
      dpassay train dpnr --corpus flights:1000 --out models/dpnr --epsilon 0.05
      dpassay train lm --corpus flights --out models/lm --privacy user --epsilon 8 --delta 1e-5
      dpassay train lm --out models/audited --epsilon 2 --rounds 200 --canaries 500
      dpassay train lm --corpus mail.jsonl --out models/mail --privacy user-entity --noise-multiplier 2 --rounds 200
    """
    trainers = {"adept": _train_adept, "dptext": _train_dptext, "dpnr": _train_dpnr, "lm": _train_lm}
    if system not in trainers:
        raise InputError(f"unknown system {system!r}; there are {', '.join(trainers)}")
    if epsilon is not None and not 0 < epsilon < float("inf"):
        raise InputError(f"epsilon must be a positive number, got {epsilon:g}")
    for name, systems in SYSTEMS_OF.items():
        source_of = context.get_parameter_source(name)
        if system not in systems and source_of is not None and source_of.name == "COMMANDLINE":
            option = name.replace("_", "-")
            raise InputError(f"--{option} is not an option of {system}; it is for {' and '.join(systems)}")
    if not resume and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists already and is not empty: give another folder, or --resume for adept or lm")
    needs("torch", "text")
    from dpassay.text.corpora.corpus import read_corpus

    found = trainers[system](read_corpus(source), out, context.params)
    if system == "lm" and not as_json:
        _print_lm(found)
        return
    found = {"model": str(out), "system": system, "corpus": source, **found}
    if as_json:
        print_json(found)
    else:
        print(f"{system} trained on {source}, kept in {out}")
        for line in _dptext_lines(found) if system == "dptext" else _lines(found):
            print(f"  {line}")


def _lines(found: dict[str, Any]) -> list[str]:
    numbers = {name.replace("_", " "): value for name, value in found.items() if isinstance(value, int | float)}
    notes = [f"not covered: {found['not_covered']}"] if "not_covered" in found else []
    return [*(f"{name}: {value:.4g}" for name, value in numbers.items()), *notes]


def _dptext_lines(found: dict[str, Any]) -> list[str]:
    """A report on DPText: its ε always with the one that holds, and each accuracy with that of guessing."""
    how, weight = ("learnt" if found["learnt"] else "fixed"), found["adversary"]
    hidden = f"with the adversary (weight {weight:g})" if weight else "without the adversary"
    return [
        f"epsilon {found['epsilon']:.4g}, {how}; what holds: {found['guarantee']['sentence']}",
        f"attacker: {found['attacker']:.3f} of the attributes {hidden}; chance: {found['chance']:.3f}",
        f"label: {found['task']:.3f}; always the most common one: {found['commonest_task']:.3f}",
        f"without noise: attacker {found['clean_attacker']:.3f}, label {found['clean_task']:.3f}",
        f"words at their place: {found['tokens']:.3f}; without noise {found['clean_tokens']:.3f}",
        f"texts: {found['texts']:,}, held out to measure on: {found['held_out']:,}; reading: {found['reading']}",
    ]


def _train_adept(utterances: list[Utterance], out: Path, given: dict[str, Any]) -> dict[str, Any]:
    from dpassay.text.corpora.corpus import split
    from dpassay.text.models.training import Plan, usable
    from dpassay.text.rewriters.adept import train as teach

    learning, held_out, _ = split(utterances, given["seed"], (0.9, 0.05, 0.05))
    device = usable(given["device"]).type
    usual = (5000, 128) if device == "cuda" else (2000, 64)
    rate = 2e-3 if device == "cuda" else 3e-3  # fewer but larger steps
    steps, batch = (usual[i] if given[name] is None else given[name] for i, name in enumerate(("steps", "batch")))
    plan = Plan(steps, batch, rate, given["seed"])
    try:
        with progress_bar(plan.steps) as bar:
            model = teach(
                [u.text for u in learning],
                [u.text for u in held_out],
                out,
                plan,
                latent=64 if given["latent"] is None else given["latent"],
                clip=1.0 if given["clip"] is None else given["clip"],
                device=device,
                resume=given["resume"],
                progress=bar,
            )
    except KeyboardInterrupt:
        print(f"interrupted; what was learnt is in {out}. To continue, add --resume", file=sys.stderr)
        raise typer.Exit(130) from None
    about = model.about
    return {"steps": about.steps, "loss": about.loss, "token_accuracy": about.token_accuracy, "words": len(about.words)}


def _train_dptext(utterances: list[Utterance], out: Path, given: dict[str, Any]) -> dict[str, Any]:
    from dpassay.text.rewriters import dptext

    sizes = {name: given[key] for name, key in (("dim", "latent"), ("steps", "steps")) if given[key] is not None}
    with progress_bar(100) as bar:
        system, report = dptext.train(
            utterances,
            given["reading"],
            epsilon=given["epsilon"],
            seed=given["seed"],
            adversary=given["adversary"],
            progress=bar,
            **sizes,
        )
    dptext.save(system, out)
    return report


def _train_dpnr(utterances: list[Utterance], out: Path, given: dict[str, Any]) -> dict[str, Any]:
    from dpassay.text.models.encoders import sentence_encoder
    from dpassay.text.rewriters import dpnr

    with progress_bar(5) as bar:
        encoder = sentence_encoder(given["encoder"])
        epsilon = 0.05 if given["epsilon"] is None else given["epsilon"]
        system, classifier, report = dpnr.train(
            utterances, encoder, epsilon, given["mu"], given["seed"], bar, fine_tune=given["fine_tune"]
        )
    dpnr.save(system, classifier, out, fine_tuned=given["fine_tune"] > 0)
    return {**report, "not_covered": dpnr.NOT_COVERED}


def _train_lm(utterances: list[Utterance], out: Path, given: dict[str, Any]) -> dict[str, Any]:
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.corpora.entities import with_entities
    from dpassay.training.federated import Plan
    from dpassay.training.run import CANARY_FILE, Settings
    from dpassay.training.run import train as teach

    usual = 0.003 if given["privacy"] == "none" else 0.02
    rate = usual if given["learning_rate"] is None else given["learning_rate"]
    sizes = {"rounds": given["rounds"], "local_steps": given["local_steps"], "server_rate": rate}
    names = ("privacy", "epsilon", "delta", "noise_multiplier", "rate", "entity_rate", "cell_clip", "most_users")
    chosen = {name: given[name] for name in (*names, "noise_source", "seed", "base", "canaries", "canary_kind")}
    if given["clip"] is not None:
        chosen["clip"] = given["clip"]
    batch = {} if given["batch"] is None else {"batch": given["batch"]}
    settings = Settings(**chosen, plan=Plan(**sizes, **batch))
    if "entity" in settings.privacy:
        utterances = with_entities(utterances, given["entities_from"])
    elif given["entities_from"] != "corpus":
        raise InputError(f"--entities-from is for entity and user-entity privacy, not for {settings.privacy}")
    held_out = None if given["held_out"] is None else [u.text for u in read_corpus(given["held_out"])]
    try:
        with progress_bar(settings.plan.rounds) as tell:
            result = teach(
                utterances,
                out,
                settings,
                vocabulary=_vocabulary(given),
                held_out=held_out,
                device=given["device"],
                resume=given["resume"],
                progress=tell,
                warn=lambda message: print(f"warning: {message}", file=sys.stderr),
            )
    except KeyboardInterrupt:
        print(f"interrupted; what was learnt is in {out}. To continue, add --resume", file=sys.stderr)
        raise typer.Exit(130) from None
    more = {"canaries": str(out / CANARY_FILE)} if settings.canaries else {}
    return {**result.statement, "seconds": round(result.seconds, 1), "folder": str(out), **more}


def _vocabulary(given: dict[str, Any]) -> list[str] | None:
    """The words of a public list: the given one or, for the shipped corpus, its grammar's."""
    from dpassay.text.corpora.corpus import SHIPPED
    from dpassay.text.corpora.flights import known_words

    path: Path | None = given["vocabulary"]
    if path is None:
        shipped = given["source"].partition(":")[0] in SHIPPED and not given["base"]
        return known_words() if shipped else None
    try:
        return path.read_text(encoding="utf-8").lower().split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the vocabulary {path} cannot be read: {error}; give a UTF-8 file, one word per line"
        ) from None


def _print_lm(found: dict[str, Any]) -> None:
    guarantee, perplexity = found["guarantee"], found["held_out_perplexity"]
    print(f"language model trained, kept in {found['folder']}")
    if guarantee is None:
        print("  guarantee: none")
    else:
        low, high = guarantee["epsilon"]["lower"], guarantee["epsilon"]["upper"]
        print(f"  epsilon: [{low:.5f}, {high:.5f}] at delta {guarantee['delta']:g}")
        print(f"  between: {guarantee['neighbours']}")
        print(f"  noise multiplier: {found['mechanism']['noise_multiplier']:.4g}")
    if perplexity["before"] is not None and perplexity["after"] is not None:
        print(f"  held-out perplexity: {perplexity['before']:.1f} before, {perplexity['after']:.1f} after")
    used, left = found["sentences"]["used"], found["sentences"]["left_out"]
    print(f"  units: {found['units']:,}, with {used:,} sentences" + f"; {left:,} left out" * (left > 0))
    print(f"  rounds: {found['rounds']['done']:,}")
    print(f"  time: {found['seconds']:.1f} s")
    print(f"  what holds, and on what it rests: {Path(found['folder'], 'statement.md')}")
    if "canaries" in found and guarantee is not None:
        claimed = f"--epsilon {high:.6g} --delta {guarantee['delta']:g}"
        print(f"  to audit it: dpassay audit-training --scores {found['canaries']} {claimed}")
