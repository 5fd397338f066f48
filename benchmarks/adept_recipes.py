"""Recipes for ADePT's autoencoder: several are trained side by side, and texts rewritten at several ε.

`python benchmarks/adept_recipes.py DATA OUT [--device cuda] [--part valid] [--seeds 5] [--draws 3]`: DATA has folders
with train.csv, valid.csv and test.csv, `label,text` per line, such as ATIS and SNIPS; OUT gets one file with what each
recipe wrote. A recipe is chosen on the validation texts, and measured on the test texts with several seeds.
`--judge` then prints BLEU, the share of words kept, and the intent accuracy on the rewritten texts, of classifiers that
were trained on original texts, by words and by MiniLM's vectors: means over seeds, and the differences to the first
recipe, seed by seed, with their Student interval. Training needs numpy and torch alone.
"""

import argparse
import csv
import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch.multiprocessing import get_context

from dpassay.text.models.autoencoder import Autoencoder, Shape
from dpassay.text.models.training import EpochPlan, Learner, TrainingRecipe
from dpassay.text.models.words import ModelVocabulary

EPSILONS = (30.0, 100.0, 1000.0)
NOISES = ("l1", "k-norm")


RECIPES = {
    "former": TrainingRecipe(),
    "32": TrainingRecipe(32),
    "16": TrainingRecipe(16),
    "16 noisier": TrainingRecipe(16, 192, 0.9, (40.0, 1000.0)),
    "24 noisier": TrainingRecipe(24, 192, 0.8, (40.0, 2000.0)),
    "32 noisier": TrainingRecipe(32, 192, 0.9, (40.0, 2000.0)),
    "16 plain words": TrainingRecipe(16, 192, 0.9, (40.0, 1000.0), 0.03),
    "no labels": replace(TrainingRecipe.at(100), told=0.0),
    "for epsilon": TrainingRecipe.at(100),
}
MEASURED = ("intent by words", "intent by encoder", "BLEU", "words kept")


def read(path: Path) -> tuple[list[str], list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return [row[0] for row in rows], [row[1] for row in rows]


def noise(kind: str, epsilon: float, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """For vectors in a ball of radius 1, in l1 or l2: density e^(-norm * epsilon / 2)."""
    if kind == "l1":
        return rng.laplace(0.0, 2 / epsilon, shape)
    direction = rng.normal(size=shape)
    return (
        direction / np.linalg.norm(direction, axis=1, keepdims=True) * rng.gamma(shape[1], 2 / epsilon, (shape[0], 1))
    )


def written(
    network: Autoencoder, words: ModelVocabulary, texts: list[str], kind: str, epsilon: float, draw: int
) -> list[str]:
    vectors = network.vectors(words.numbers(texts, network.shape.longest)).astype(float)
    stretch = 1.0
    if kind == "l1":
        vectors /= np.maximum(np.abs(vectors).sum(axis=1, keepdims=True), 1.0)
        stretch = vectors.shape[1] ** 0.5
    rng = np.random.default_rng([int(epsilon), NOISES.index(kind), draw])
    return words.texts(network.rows((vectors + noise(kind, epsilon, vectors.shape, rng)) * stretch))


def train(task: tuple) -> dict:
    given, corpus, name, seed = task
    torch.set_num_threads(1)
    recipe, began = RECIPES[name], time.perf_counter()
    (labels, texts), (_, asked) = (read(given.data / corpus / f"{part}.csv") for part in ("train", given.part))
    texts, asked = ([text.lower() for text in some] for some in (texts, asked))
    words = ModelVocabulary.of(texts)
    torch.manual_seed(seed)
    shape = Shape(words=len(words), latent=recipe.latent, hidden=recipe.hidden)
    plan, labels = EpochPlan(steps=given.steps, batch=given.batch, seed=seed), labels if recipe.told else []
    learner = Learner(Autoencoder(shape).to(given.device), words, texts, [], plan, labels, recipe)
    while learner.step < given.steps:
        learner.learn()
    network = learner.network.eval()
    rows = [
        {"noise": kind, "epsilon": epsilon, "written": written(network, words, asked, kind, epsilon, draw)}
        for kind in NOISES
        for epsilon in given.epsilon or EPSILONS
        for draw in range(given.draws)
    ]
    plain = words.texts(network.rows(network.vectors(words.numbers(asked, shape.longest))))
    rows.append({"noise": "none", "epsilon": 0.0, "written": plain})
    named = {"corpus": corpus, "recipe": name, "seed": seed, "part": given.part, "steps": given.steps}
    return {**named, "seconds": time.perf_counter() - began, "rows": rows}


def judge(data: Path, path: Path) -> None:
    from dpassay.text.measurements import student
    from dpassay.text.metrics import bleu, words_kept
    from dpassay.text.models.classifier import bag_of_words, fit
    from dpassay.text.models.encoders import sentence_encoder

    encoder = sentence_encoder("minilm")
    with gzip.open(path, "rt") as file:
        found = json.load(file)
    for corpus in sorted({one["corpus"] for one in found}):
        labels, texts = read(data / corpus / "train.csv")
        right, asked = read(data / corpus / f"{found[0]['part']}.csv")
        some = np.random.default_rng(0).permutation(len(texts))[:3000]
        table, vocabulary = bag_of_words(texts)
        by_words = fit(table, labels)
        by_encoder = fit(encoder.encode([texts[i] for i in some]), [labels[i] for i in some])
        measured: dict[tuple, dict[str, dict[int, list]]] = {}
        for one in (one for one in found if one["corpus"] == corpus):
            for row in one["rows"]:
                guessed = (
                    by_words.predict(bag_of_words(row["written"], vocabulary)[0]),
                    by_encoder.predict(encoder.encode(row["written"])),
                )
                scores = [100 * np.mean([a == b for a, b in zip(g, right, strict=True)]) for g in guessed]
                scores += [bleu(row["written"], asked), 100 * words_kept(row["written"], asked)]
                at = measured.setdefault((row["noise"], row["epsilon"]), {})
                at.setdefault(one["recipe"], {}).setdefault(one["seed"], []).append(scores)
        for (kind, epsilon), recipes in sorted(measured.items()):
            first, *_ = (name for name in RECIPES if name in recipes)
            for name, seeds in recipes.items():
                means = {seed: np.mean(draws, axis=0) for seed, draws in seeds.items()}
                print(f"{corpus:6s} {kind:7s} {epsilon:6g} {name:14s}", *np.mean([*means.values()], axis=0).round(1))
                if name == first or len(means) < 2:
                    continue
                for i, what in enumerate(MEASURED):
                    gains = [float(means[s][i] - np.mean(recipes[first][s], axis=0)[i]) for s in sorted(means)]
                    low, high = student(gains)
                    print(f"{'':32s}{what}: {np.mean(gains):+.1f} ({low:+.1f} to {high:+.1f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--recipe", action="append", choices=RECIPES)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--part", choices=("valid", "test"), default="valid")
    parser.add_argument("--epsilon", type=float, action="append")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--judge", action="store_true")
    given = parser.parse_args()
    path = given.out / f"recipes-{given.part}.json.gz"
    if given.judge:
        judge(given.data, path)
        return
    corpora = given.corpus or sorted(p.name for p in given.data.iterdir() if (p / "train.csv").exists())
    tasks = [
        (given, corpus, name, seed)
        for seed in range(given.seeds)
        for name in given.recipe or RECIPES
        for corpus in corpora
    ]
    found: list[dict] = []
    with get_context("spawn").Pool(min(given.workers, len(tasks))) as pool:
        for one in pool.imap_unordered(train, tasks, chunksize=1):
            print(f"{one['corpus']} {one['recipe']} {one['seed']}: {one['seconds']:.0f} s", flush=True)
            found.append(one)
            with gzip.open(path, "wt") as file:
                json.dump(found, file)


if __name__ == "__main__":
    main()
