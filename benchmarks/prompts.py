"""DP-Prompt's prompt, number of tokens and width of logits, measured at equal true ε.

`python benchmarks/prompts.py CORPUS_FOLDER … [--texts N] [--save FILE]`: each folder has train.csv and test.csv with
`label,text` per line, such as ATIS and SNIPS. For each prompt and ε: the mean cosine between the embeddings (MiniLM) of
original and rewriting, the share of rewritings from which a classifier trained on original texts tells the intent, and
the share of the original's words. One draw of the tokens for each text, seed 0. Needs the extras `language-models` and
`minilm`, and SmolLM2.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from dpassay.text.corpora.corpus import read_corpus
from dpassay.text.metrics import mean_cosine, words_kept
from dpassay.text.models.classifier import fit
from dpassay.text.models.encoders import sentence_encoder
from dpassay.text.models.generation import Writing
from dpassay.text.rewriters.tokens import prompt
from dpassay.text.rewriters.tokens.drawing import seeded

FORMER = "Say the following text in other words. Answer with the new text only.\n\nText: {text}\n\nNew text:"
PROMPTS = {
    "other words": FORMER,
    "paraphrase": "Paraphrase: {text}",
    "few words": "Say this in as few words as possible. Answer with these words only.\n\n{text}",
    "repeat": "Repeat this text word for word: {text}",
    "examples": "Shorten each request.\n\n"
    "Request: could you please play some jazz music for me\nShort: play jazz music\n\n"
    "Request: i would like to know if it is going to rain in paris tomorrow\nShort: rain in paris tomorrow\n\n"
    "Request: {text}\nShort:",
    "keywords": "List the keywords of the text, most important first.\n\n"
    "Text: could you please play some jazz music for me\nKeywords: play jazz music\n\n"
    "Text: i would like to know if it is going to rain in paris tomorrow\nKeywords: rain paris tomorrow\n\n"
    "Text: {text}\nKeywords:",
}
EPSILONS = (100.0, 250.0, 500.0, 1000.0, 2000.0)
SETTINGS = {"former": {"tokens": "16", "width": "20"}, "chosen": {}}


class Judge:
    """What a rewriting has kept of its original."""

    def __init__(self, folder: Path, texts: int, encoder, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        train, test = (list(read_corpus(str(folder / f"{part}.csv"))) for part in ("train", "test"))
        chosen = [train[i] for i in rng.permutation(len(train))[:2000]]
        asked = [test[i] for i in rng.permutation(len(test))[:texts]]
        self.encoder, self.texts = encoder, [u.text for u in asked]
        self.labels, self.rows = [u.label for u in asked], encoder.encode(self.texts)
        self.classifier = fit(encoder.encode([u.text for u in chosen]), [u.label for u in chosen])

    def __call__(self, written: list[str]) -> dict[str, float]:
        rows = self.encoder.encode(written)
        right = np.mean([a == b for a, b in zip(self.classifier.predict(rows), self.labels, strict=True)])
        return {
            "similarity": float(mean_cosine(rows, self.rows)),
            "intent": float(right),
            "words": words_kept(written, self.texts),
        }


def read(rewriter, texts: list[str]) -> list[Writing]:
    """Each text's prompt, read once for all ε."""
    with torch.inference_mode():
        alone, found = rewriter._alone, []
        for text in texts:
            found.append(alone.read([rewriter._prompt(text)], len(rewriter._prompt(text))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--prompt", action="append", choices=PROMPTS)
    parser.add_argument("--settings", action="append", choices=SETTINGS)
    parser.add_argument("--epsilon", action="append", type=float)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    encoder, found = sentence_encoder("minilm"), []
    for folder in given.folders:
        judge = Judge(folder, given.texts, encoder)
        print(f"{folder.name}: originals {judge(judge.texts)}", flush=True)
        for name in given.prompt or PROMPTS:
            begun = time.process_time()
            parts = read(prompt.make(100, "smollm2", prompt=PROMPTS[name], tokens="64"), judge.texts)
            for settings in given.settings or SETTINGS:
                for epsilon in given.epsilon or EPSILONS:
                    rewriter = prompt.make(epsilon, "smollm2", prompt=PROMPTS[name], **SETTINGS[settings])
                    length = max(part.mask.shape[1] for part in parts)
                    vars(rewriter)["_begun"] = lambda *_, parts=parts, length=length: Writing.together(parts, length)
                    drawn = [*rewriter._written([[]] * len(parts), seeded(np.random.default_rng(0)), apart=False)]
                    written = [str(text) for text, _ in drawn]
                    kept = judge(written)
                    about = {"corpus": folder.name, "prompt": name, "settings": settings, "epsilon": epsilon}
                    found.append(
                        {
                            **about,
                            "tokens": rewriter.tokens,
                            **kept,
                            "examples": list(zip(judge.texts, written, strict=True))[:3],
                        }
                    )
                    print(f"{folder.name:6s} {name:12s} {settings:8s} {epsilon:6g} {rewriter.tokens:3d} tokens "
                          f"similarity {kept['similarity']:.3f} intent {kept['intent']:.1%} words {kept['words']:.1%} "
                          f"{written[0]!r:.70}", flush=True)  # fmt: skip
                    if given.save:
                        given.save.write_text(json.dumps(found, indent=1) + "\n")
            print(f"{time.process_time() - begun:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
