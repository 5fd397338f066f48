"""The models of `dpassay reproduce uedp-perplexity`, trained on another machine, several at a time.

1. Here: `python benchmarks/perplexity.py plan out/figure/plan.json --corpus out/figure/plays.csv
   --entities-from list:out/figure/names.txt --vocabulary out/figure/words.txt`
2. There, with only numpy and torch: `PYTHONPATH=src python benchmarks/perplexity.py run out/figure/plan.json
   out/figure/uedp-perplexity.partial.json --device cuda --processes 8`
3. Here: `dpassay reproduce uedp-perplexity --resume --out out/figure` with the same options of the corpus as in step 1.

If step 2 is interrupted, finished models are kept, and the same command does the rest.
"""

import argparse
import json
import multiprocessing
import time
from dataclasses import asdict
from pathlib import Path

from dpassay.core.files import write_whole
from dpassay.training.comparison import ComparedRun, Setup, TextSource, TrainingTask, run


def plan(given: argparse.Namespace) -> None:
    """Write all models to train, with the noise for each ε, and how finished ones are recognized."""
    from dpassay import __version__
    from dpassay.reproduce.perplexity import all_sources, all_tasks, header
    from dpassay.reproduce.result import PARTIAL

    own = (TextSource(given.corpus, given.entities_from, given.vocabulary, given.user_column),) if given.corpus else ()
    sources, setup = all_sources(own), Setup()
    tasks = all_tasks(sources, given.runs, given.seed, "cpu", setup)
    made = {"schema": PARTIAL, "version": __version__, **header(sources, given.runs, given.seed, setup)}
    content = {"made": made, "tasks": {name: asdict(task) for name, task in tasks.items()}}
    write_whole(given.plan, json.dumps(content, indent=1) + "\n")
    print(f"{len(tasks)} models to train: {given.plan}")


def task_of(data: dict, device: str) -> TrainingTask:
    return TrainingTask(
        **{**data, "source": TextSource(**data["source"]), "setup": Setup(**data["setup"]), "device": device}
    )


def trained(named: tuple[str, TrainingTask]) -> tuple[str, ComparedRun, float]:
    began = time.perf_counter()
    found = run(named[1])
    return named[0], found, time.perf_counter() - began


def train(given: argparse.Namespace) -> None:
    """Train what is not there yet, the longest first, and keep each model's perplexities as soon as they are known."""
    planned = json.loads(given.plan.read_text(encoding="utf-8"))
    made, counts = planned["made"], {}
    if given.out.exists():
        before = json.loads(given.out.read_text(encoding="utf-8"))
        counts = before.pop("counts")
        if before != made:
            raise SystemExit(f"{given.out} is of another plan: give another file")
    left = [(n, task_of(data, given.device)) for n, data in planned["tasks"].items() if n not in counts]
    left.sort(key=lambda named: (named[1].source.shipped, named[1].arm != "user-entity", named[1].arm != "user"))
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for name, found, seconds in pool.imap_unordered(trained, left):
            counts[name] = [found.perplexity, found.as_read, found.to_choose]
            write_whole(given.out, json.dumps({**made, "counts": counts}) + "\n")
            done = f"{len(counts)}/{len(planned['tasks'])}, {time.perf_counter() - began:.0f} s"
            print(f"{done}: {name} {found.perplexity:.1f} in {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(required=True)
    first = steps.add_parser("plan")
    first.add_argument("plan", type=Path)
    first.add_argument("--corpus", default="")
    first.add_argument("--entities-from", default="corpus")
    for name in ("--vocabulary", "--user-column"):
        first.add_argument(name, default="")
    first.add_argument("--runs", type=int, default=3)
    first.add_argument("--seed", type=int, default=0)
    first.set_defaults(step=plan)
    second = steps.add_parser("run")
    second.add_argument("plan", type=Path)
    second.add_argument("out", type=Path)
    second.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    second.add_argument("--processes", type=int, default=2)
    second.set_defaults(step=train)
    given = parser.parse_args()
    given.step(given)


if __name__ == "__main__":
    main()
