"""Recipes for ADePT's autoencoder: several are trained side by side, and the test texts rewritten at several ε.

`python benchmarks/adept_recipes.py DATA OUT [--device cuda] [--steps N]`: DATA has folders with train.csv and test.csv,
`label,text` per line, such as ATIS and SNIPS; OUT gets a JSON file for each corpus with what each recipe wrote.
`--judge` then prints BLEU, the share of words kept, and the intent accuracy on the rewritten texts, of classifiers that
were trained on original texts: one by words and one by MiniLM's vectors.
Training needs numpy and torch alone.
"""

import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch.multiprocessing import get_context

from dpassay.text.models.autoencoder import Autoencoder, Shape
from dpassay.text.models.training import Learner, Plan, Recipe
from dpassay.text.models.words import Vocabulary

EPSILONS = (10.0, 30.0, 100.0, 300.0, 1000.0)
NOISES = ("l1", "k-norm")


RECIPES = {
    "former": Recipe(),
    "32": Recipe(32),
    "16": Recipe(16),
    "16 noisier": Recipe(16, 192, 0.9, (40.0, 1000.0)),
    "24 noisier": Recipe(24, 192, 0.8, (40.0, 2000.0)),
    "32 noisier": Recipe(32, 192, 0.9, (40.0, 2000.0)),
    "16 plain words": Recipe(16, 192, 0.9, (40.0, 1000.0), 0.03),
    "24 larger": Recipe.at(100),
}


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


def written(network: Autoencoder, words: Vocabulary, texts: list[str], kind: str, epsilon: float) -> list[str]:
    vectors = network.vectors(words.numbers(texts, network.shape.longest)).astype(float)
    stretch = 1.0
    if kind == "l1":
        vectors /= np.maximum(np.abs(vectors).sum(axis=1, keepdims=True), 1.0)
        stretch = vectors.shape[1] ** 0.5
    rng = np.random.default_rng([int(epsilon), NOISES.index(kind)])
    return words.texts(network.rows((vectors + noise(kind, epsilon, vectors.shape, rng)) * stretch))


def train(task: tuple[str, str, str, int, int, str]) -> dict:
    data, corpus, name, steps, batch, device = task
    torch.set_num_threads(1)
    recipe, began = RECIPES[name], time.perf_counter()
    (_, texts), (_, test) = (read(Path(data) / corpus / f"{part}.csv") for part in ("train", "test"))
    texts, test = ([text.lower() for text in some] for some in (texts, test))
    words = Vocabulary.of(texts)
    torch.manual_seed(0)
    shape = Shape(words=len(words), latent=recipe.latent, hidden=recipe.hidden)
    learner = Learner(Autoencoder(shape).to(device), words, texts, [], Plan(steps=steps, batch=batch))
    learner.recipe = recipe
    while learner.step < steps:
        learner.learn()
    network = learner.network.eval()
    rows = [
        {"noise": kind, "epsilon": epsilon, "written": written(network, words, test, kind, epsilon)}
        for kind in NOISES
        for epsilon in EPSILONS
    ]
    plain = words.texts(network.rows(network.vectors(words.numbers(test, shape.longest))))
    rows.append({"noise": "none", "epsilon": None, "written": plain})
    return {"corpus": corpus, "recipe": name, "seconds": time.perf_counter() - began, "rows": rows}


def judge(data: Path, out: Path) -> None:
    from dpassay.text.metrics import bleu, words_kept
    from dpassay.text.models.classifier import bag_of_words, fit
    from dpassay.text.models.encoders import sentence_encoder

    encoder = sentence_encoder("minilm")
    for path in sorted(out.glob("recipes-*.json")):
        found = json.loads(path.read_text())
        corpus = found[0]["corpus"]
        (labels, texts), (right, test) = (read(data / corpus / f"{part}.csv") for part in ("train", "test"))
        rng = np.random.default_rng(0)
        some = rng.permutation(len(texts))[:3000]
        table, vocabulary = bag_of_words(texts)
        by_words = fit(table, labels)
        by_encoder = fit(encoder.encode([texts[i] for i in some]), [labels[i] for i in some])
        for one in found:
            for row in one["rows"]:
                guesses = by_words.predict(bag_of_words(row["written"], vocabulary)[0])
                vectors = by_encoder.predict(encoder.encode(row["written"]))
                scores = [np.mean([a == b for a, b in zip(g, right, strict=True)]) for g in (guesses, vectors)]
                print(f"{corpus:6s} {one['recipe']:16s} {row['noise']:7s} {row['epsilon'] or 0:6g} "
                      f"BLEU {bleu(row['written'], test):5.1f} kept {words_kept(row['written'], test):.1%} "
                      f"intent {scores[0]:.1%} {scores[1]:.1%}", flush=True)  # fmt: skip


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
    parser.add_argument("--judge", action="store_true")
    given = parser.parse_args()
    if given.judge:
        judge(given.data, given.out)
        return
    corpora = given.corpus or sorted(p.name for p in given.data.iterdir() if (p / "train.csv").exists())
    tasks = [
        (str(given.data), corpus, name, given.steps, given.batch, given.device)
        for name in given.recipe or RECIPES
        for corpus in corpora
    ]
    found: dict[str, list[dict]] = {corpus: [] for corpus in corpora}
    with get_context("spawn").Pool(min(given.workers, len(tasks))) as pool:
        for one in pool.imap_unordered(train, tasks):
            print(f"{one['corpus']} {one['recipe']}: {one['seconds']:.0f} s", flush=True)
            found[one["corpus"]].append(one)
            (given.out / f"recipes-{one['corpus']}.json").write_text(json.dumps(found[one["corpus"]]))


if __name__ == "__main__":
    main()
