"""Training: a published text system, or a language model with privacy. Each system has its own options."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from dpassay.cli.common import AsJson, needs, note, progress_bar
from dpassay.cli.options import Commands
from dpassay.cli.text.rewrite import Corpus, Device, Seed
from dpassay.cli.text.trained import found_of, show, show_private
from dpassay.errors import InputError

app = typer.Typer(
    help="Train a text system on a corpus; 'dpassay train lm' trains a language model with privacy.",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Out = Annotated[Path, typer.Option(help="The folder for the model.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue after an interruption, also to fewer or more steps or rounds.")
]


Vocabulary = Annotated[
    Path | None, typer.Option(help="A public list of words, one per line: the model's folder lists them.")
]
VocabularyFromCorpus = Annotated[
    bool, typer.Option("--vocabulary-from-corpus", help="Publish the words of the corpus; nothing is guaranteed then.")
]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="Allow a mechanism although its claim does not hold.")
]
# With privacy, samples and noise come from the operating system, whatever the seed.
AdeptSeed = Annotated[
    int,
    typer.Option(
        help="The same seed gives the same result; with --privacy it fixes the starting weights only, unless "
        "--noise-source is torch."
    ),
]
ModelSeed = Annotated[
    int,
    typer.Option(
        help="Fixes the starting weights and the canaries. Samples and noise differ from run to run, unless "
        "--noise-source is torch."
    ),
]
NoiseSource = Annotated[str, typer.Option(help="os, opendp, or torch, which takes it from --seed: no guarantee.")]


@app.command()
def adept(
    out: Out,
    source: Corpus = "flights",
    for_epsilon: Annotated[float, typer.Option(help="The true epsilon that texts will be released at; 0: any.")] = 0.0,
    latent: Annotated[int | None, typer.Option(help="Size of the vectors. Default: 64, or for the epsilon.")] = None,
    clip: Annotated[float, typer.Option(help="Clipping norm of vectors.")] = 1.0,
    steps: Annotated[int | None, typer.Option(help="Default: 2000, on a GPU 5000; with privacy 300 and 1000.")] = None,
    batch: Annotated[int | None, typer.Option(help="Texts per step. Default: 64 on a CPU, 128 on a GPU.")] = None,
    privacy: Annotated[str, typer.Option(help="none, example (one sentence) or user (all sentences of one).")] = "none",
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="With --privacy: the epsilon of the weights.")
    ] = None,
    delta: Annotated[
        float,
        typer.Option(
            "--delta", "-d", show_default=False, help="With --privacy: the delta of the weights. Default: 1e-5."
        ),
    ] = 1e-5,
    vocabulary: Vocabulary = None,
    vocabulary_from_corpus: VocabularyFromCorpus = False,
    rate: Annotated[
        float, typer.Option(help="With --privacy: the probability that a unit is sampled in a step.")
    ] = 0.1,
    gradient_clip: Annotated[float, typer.Option(help="With --privacy: clipping norm of a unit's gradient.")] = 0.5,
    noise_source: NoiseSource = "os",
    seed: AdeptSeed = 0,
    device: Device = "cpu",
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Train ADePT's autoencoder; 'dpassay rewrite' adds noise to its vectors.

    By default it is trained without privacy, and no guarantee covers its weights. With --privacy its gradients are
    clipped and get noise: the guarantee of a rewriting then covers the weights too, and their epsilons add up. Ctrl-C
    keeps the progress so far; the same command with --resume continues. With --for-epsilon it is also trained to
    predict the labels.

    \b
    Examples:
      dpassay train adept --corpus flights --out models/adept
      dpassay train adept --corpus atis/train.csv --out models/atis --for-epsilon 100 --device cuda
      dpassay train adept --corpus flights --out models/adept --steps 3000 --resume
      dpassay train adept --corpus mail.jsonl --out models/mail --privacy user --epsilon 8 --vocabulary words.txt
    """
    _check_folder(out, resume)
    if privacy != "none":
        if batch is not None or for_epsilon:
            raise InputError("--batch and --for-epsilon are not for private training: --rate says how many take part")
        from dpassay.cli.text.private_adept import train_privately

        if epsilon is None:
            raise InputError("training with privacy needs the epsilon of the weights: give --epsilon 8")
        _check_epsilon(epsilon)
        latent = 64 if latent is None else latent
        private = {"privacy": privacy, "epsilon": epsilon, "delta": delta, "rate": rate, "clip": gradient_clip}
        private |= {"noise_source": noise_source, "vocabulary_from_corpus": vocabulary_from_corpus, "seed": seed}
        words = _vocabulary(vocabulary, source, vocabulary_from_corpus)
        with _interruptible(out):
            found = train_privately(source, out, private, (latent, clip), steps, words, device, resume)
        show_private(found, as_json)
        return
    unused = (epsilon, delta, vocabulary, vocabulary_from_corpus, rate, gradient_clip, noise_source)
    if unused != (None, 1e-5, None, False, 0.1, 0.5, "os"):
        raise InputError("epsilon, delta, rate, noise and vocabulary are for privacy: add --privacy example or user")
    from dpassay.text.corpora.corpus import read_corpus, split
    from dpassay.text.models.training import EpochPlan, usable
    from dpassay.text.rewriters.vectors.adept import SHARES
    from dpassay.text.rewriters.vectors.adept import train as teach

    learning, held_out, _ = split(read_corpus(source), seed, SHARES)
    used = usable(device, note).type
    usual_steps, usual_batch, rate = (5000, 128, 2e-3) if used == "cuda" else (2000, 64, 3e-3)
    sizes = usual_steps if steps is None else steps, usual_batch if batch is None else batch
    plan = EpochPlan(*sizes, rate, seed, for_epsilon)
    with _interruptible(out), progress_bar(plan.steps) as bar:
        model = teach(
            [u.text for u in learning],
            [u.text for u in held_out],
            out,
            plan,
            labels=[u.label for u in learning],
            latent=latent,
            clip=clip,
            device=used,
            resume=resume,
            progress=bar,
        )
    numbers = {name: getattr(model.about, name) for name in ("steps", "loss", "token_accuracy")}
    from dpassay.text.rewriters.base import WEIGHTS

    show("adept", source, out, {**numbers, "words": len(model.about.words), "not_covered": [WEIGHTS]}, as_json)


@app.command()
def dptext(
    out: Out,
    source: Corpus = "flights",
    reading: Annotated[str, typer.Option(help="zero, resampled, nan or right.")] = "zero",
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="Fix it instead of learning it, which guarantees nothing.")
    ] = None,
    adversary: Annotated[
        float, typer.Option(help="Weight of the discriminator that the attribute is hidden from; 0: none.")
    ] = 1.0,
    latent: Annotated[int, typer.Option(help="Size of the vectors.")] = 16,
    steps: Annotated[int, typer.Option(help="Number of steps.")] = 600,
    as_published: AsPublished = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train DPText, as published or with the right noise, and measure what it hides.

    \b
    Examples:
      dpassay train dptext --corpus flights --out models/dptext --reading zero --as-published
      dpassay train dptext --corpus dialects --out models/control --reading right --epsilon 400 --adversary 0
    """
    _check_epsilon(epsilon)
    _check_folder(out)
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.rewriters.vectors import dptext as system

    named = system.reading_of(reading)
    planned = system.guarantee_of(named, inf if epsilon is None else epsilon, epsilon is None)
    if not planned.holds and not as_published:
        raise InputError(
            f"the guarantee would be: {planned}. Use --reading right with an --epsilon of your choice; to train it "
            "anyway, add --as-published."
        )
    utterances = read_corpus(source)
    with progress_bar(100) as bar:
        trained, report = system.train(
            utterances,
            named,
            latent,
            epsilon,
            steps=steps,
            seed=seed,
            adversary=adversary,
            progress=bar,
        )
    system.save(trained, out)
    show("dptext", source, out, report, as_json)


@app.command()
def dpnr(
    out: Out,
    source: Corpus = "flights",
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The epsilon of the noise on a vector.")] = 0.05,
    delta: Annotated[
        float, typer.Option("--delta", "-d", help="Above 0: Gaussian noise, by the classic formula for one element.")
    ] = 0.0,
    mu: Annotated[float, typer.Option(help="The probability that a word is dropped.")] = 0.5,
    encoder: Annotated[str, typer.Option(help="A sentence encoder's folder or hub name.")] = "minilm",
    fine_tune: Annotated[
        int, typer.Option(help="Steps of training the encoder too, on noisy vectors. Default: 0, it is frozen.")
    ] = 0,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Add the published noise, k times too little for the epsilon.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train DPNR's classifier on noisy vectors of an encoder.

    The noise is what the epsilon of a whole vector needs. The published noise, for one of its k numbers, needs
    --as-published; the true epsilon is printed.

    \b
    Examples:
      dpassay train dpnr --corpus flights:1000 --out models/dpnr --epsilon 50
      dpassay train dpnr --corpus flights:1000 --out models/published --epsilon 0.05 --as-published
      dpassay train dpnr --corpus flights:1000 --out models/gaussian --epsilon 0.05 --delta 1e-5
    """
    _check_epsilon(epsilon)
    _check_folder(out)
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.models.encoders import sentence_encoder
    from dpassay.text.rewriters.vectors import dpnr as system

    utterances = read_corpus(source)
    with progress_bar(5) as bar:
        made, classifier, report = system.train(
            utterances, sentence_encoder(encoder), epsilon, mu, seed, bar, fine_tune, delta, as_published
        )
    system.save(made, classifier, out, fine_tuned=fine_tune > 0)
    show("dpnr", source, out, report, as_json)


@app.command()
def binary(
    out: Out,
    source: Corpus = "flights",
    mechanism: Annotated[str, typer.Option(help="symmetric, latent-moue, latent-uer or ome.")] = "symmetric",
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The claimed epsilon of all bits of a text.")] = 1.0,
    strength: Annotated[
        float, typer.Option("--lambda", help="OME's lambda, LATENT's alpha: at 1 their claims hold.")
    ] = 100.0,
    integer: Annotated[int, typer.Option(help="Integer bits of a number.")] = 4,
    fraction: Annotated[int, typer.Option(help="Fraction bits of a number.")] = 5,
    factor: Annotated[float, typer.Option(help="What numbers are multiplied by before they become bits.")] = 1.0,
    encoder: Annotated[str, typer.Option(help="A sentence encoder's folder or hub name.")] = "minilm",
    as_published: AsPublished = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on the redrawn bits of an encoder's numbers: OME, LATENT, or symmetric flips.

    Each number becomes a sign bit, integer bits and fraction bits, and every bit is redrawn. The true epsilon is
    printed next to the claimed one.

    \b
    Examples:
      dpassay train binary --corpus flights:1000 --out models/symmetric --epsilon 1
      dpassay train binary --corpus flights:1000 --out models/ome --mechanism ome --as-published
      dpassay train binary --corpus flights:1000 --out models/moue --mechanism latent-moue --epsilon 1000
    """
    _check_epsilon(epsilon)
    _check_folder(out)
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.models.encoders import sentence_encoder
    from dpassay.text.rewriters.vectors import binary as system

    named = system.mechanism_of(mechanism)
    utterances = read_corpus(source)
    with progress_bar(6) as bar:
        if bar is not None:
            bar(0, 6, "loading the encoder")
        made = system.BinaryText(sentence_encoder(encoder), epsilon, named, integer, fraction, strength, factor)
        if made.guarantee.as_published and not as_published:
            raise InputError(
                f"the guarantee would be: {made.guarantee}. Use symmetric or latent-moue, or --lambda 1; to train it "
                "anyway, add --as-published."
            )
        classifier, report = system.train(utterances, made, seed, bar)
    system.save(made, classifier, out)
    show("binary", source, out, {"mechanism": named, **report}, as_json)


@app.command()
def lm(
    out: Out,
    source: Corpus = "flights",
    privacy: Annotated[str, typer.Option(help="example, user, entity, user-entity or none.")] = "user",
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="The epsilon of the guarantee.")] = None,
    delta: Annotated[
        float, typer.Option("--delta", "-d", show_default=False, help="The delta of the guarantee. Default: 1e-5.")
    ] = 1e-5,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Give this instead of --epsilon, which is then computed.")
    ] = None,
    vocabulary: Vocabulary = None,
    vocabulary_from_corpus: VocabularyFromCorpus = False,
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = 1000,
    rate: Annotated[float, typer.Option(help="The probability that a unit is sampled in a round.")] = 0.1,
    clip: Annotated[float, typer.Option(help="Clipping norm of a unit's updates.")] = 0.5,
    batch: Annotated[int, typer.Option(help="Sentences of a unit per step.")] = 8,
    local_steps: Annotated[int, typer.Option(help="Steps of each unit in a round.")] = 1,
    learning_rate: Annotated[
        float | None, typer.Option(help="The server's learning rate. Default: 0.02; without privacy 0.003.")
    ] = None,
    noise_source: NoiseSource = "os",
    entities_from: Annotated[str, typer.Option(help="corpus, iob, list:FILE, spacy or presidio.")] = "corpus",
    entity_rate: Annotated[
        float, typer.Option(help="user-entity: the probability that an entity is sampled in a round.")
    ] = 0.5,
    cell_clip: Annotated[
        float | None,
        typer.Option(help="user-entity: clipping norm for a user's sentences with one entity. Default: clip/4."),
    ] = None,
    most_users: Annotated[
        int | None, typer.Option(help="user-entity: maximum number of users per round. Default: 32.")
    ] = None,
    held_out: Annotated[str | None, typer.Option(help="A corpus to measure on, instead of a held-out tenth.")] = None,
    base: Annotated[str, typer.Option(help="A causal transformers model's folder or name to start from.")] = "",
    adapter: Annotated[str, typer.Option(help="With --base: lora, or lora:RANK, to train small matrices only.")] = "",
    at_once: Annotated[int | None, typer.Option(help="With --base: units in memory together.")] = None,
    canaries: Annotated[int, typer.Option(help="Number of canaries to plant, for 'dpassay audit-training'.")] = 0,
    canary_kind: Annotated[
        str, typer.Option(help="updates (an attacker who sees each round) or sentences (one who has the model).")
    ] = "updates",
    seed: ModelSeed = 0,
    device: Device = "cpu",
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Train a language model with privacy. Its guarantee is in statement.md in its folder.

    The guarantee covers everything in the folder. What depends on the corpus, such as perplexities, is printed only.
    Ctrl-C keeps the progress so far; the same command with --resume continues.

    \b
    Examples:
      dpassay train lm --corpus flights --out models/lm --privacy user --epsilon 8 --delta 1e-5
      dpassay train lm --corpus flights --out models/gpt2 --base gpt2 --adapter lora --epsilon 8
      dpassay train lm --corpus mail.jsonl --vocabulary words.txt --out models/mail --privacy user --epsilon 4
    """
    _check_epsilon(epsilon)
    _check_folder(out, resume)
    from dpassay.text.corpora.corpus import read_corpus
    from dpassay.text.corpora.entities import with_entities
    from dpassay.training.federated import RoundPlan
    from dpassay.training.run import CANARY_FILE, train
    from dpassay.training.settings import Settings

    usual = 0.003 if privacy == "none" else 0.02
    server_rate = usual if learning_rate is None else learning_rate
    settings = Settings(
        privacy=privacy,
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=noise_multiplier,
        rate=rate,
        entity_rate=entity_rate,
        clip=clip,
        cell_clip=cell_clip,
        most_users=most_users,
        noise_source=noise_source,
        vocabulary_from_corpus=vocabulary_from_corpus,
        seed=seed,
        base=base,
        adapter=adapter,
        at_once=at_once,
        canaries=canaries,
        canary_kind=canary_kind,
        plan=RoundPlan(rounds=rounds, local_steps=local_steps, batch=batch, server_rate=server_rate),
    )
    utterances = read_corpus(source)
    if "entity" in privacy:
        utterances = with_entities(utterances, entities_from)
    elif entities_from != "corpus":
        raise InputError(f"--entities-from is for entity and user-entity privacy, not for {privacy}")
    with _interruptible(out), progress_bar(rounds) as tell:
        result = train(
            utterances,
            out,
            settings,
            vocabulary=_vocabulary(vocabulary, source, bool(base) or vocabulary_from_corpus),
            held_out=None if held_out is None else [u.text for u in read_corpus(held_out)],
            device=device,
            resume=resume,
            progress=tell,
            warn=lambda message: note(f"warning: {message}"),
        )
    found = {"model": str(out), "system": "lm", "corpus": source, **found_of(result)}
    found |= {"canaries": str(out / CANARY_FILE)} if canaries else {}
    show_private(found, as_json)


def _check_epsilon(epsilon: float | None) -> None:
    if epsilon is not None and not 0 < epsilon < float("inf"):
        raise InputError(f"epsilon must be a positive number, got {epsilon:g}")


def _check_folder(out: Path, resume: bool = False) -> None:
    """Check before anything is read that the model can be trained and written."""
    if not resume and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists already and is not empty: give another folder, or --resume for adept or lm")
    needs("torch", "text")


@contextmanager
def _interruptible(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        from dpassay.text.models.folder import MODEL

        kept = f"the progress so far is in {out}. To continue, add --resume"
        how = kept if (out / MODEL).is_file() else "no step was taken, and nothing was saved"
        print(f"interrupted; {how}", file=sys.stderr)
        raise typer.Exit(130) from None


def _vocabulary(path: Path | None, source: str, other: bool) -> list[str] | None:
    """The words of a public list: the given one or, for the shipped corpora, their grammar's unless others are used."""
    from dpassay.text.corpora.corpus import SHIPPED
    from dpassay.text.corpora.flights import known_words

    if path is None:
        return known_words() if source.partition(":")[0] in SHIPPED and not other else None
    try:
        return path.read_text(encoding="utf-8").lower().split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the vocabulary {path} cannot be read: {error}; give a UTF-8 file of words") from None
