"""Private training on the shipped corpus: seconds for 1,000 rounds, against training without privacy, and accounting.

`python benchmarks/training.py [--device cuda] [--rounds N]`. It measures N rounds and scales up to 1,000; with
`--rounds 1000` it runs them all. Only numpy and torch are needed; without mpmath the accountant's row is left out.
Bars: 1,000 rounds within 10 minutes on two cores and 1 minute on an H200; at most 3 times as long as without privacy;
the accountant, called at every round, under 5% of the time.
"""

import argparse
import os
import time
from importlib.util import find_spec

import torch

from dpassay.text.corpora.flights import flights, known_words
from dpassay.text.models.words import ModelVocabulary
from dpassay.training.aggregation import Aggregation, PerUnit, UserEntity, usual_most
from dpassay.training.federated import Federated, RoundPlan, Sentences, Server, StackedTraining
from dpassay.training.networks.language_model import LanguageModel, Sizes, perplexity
from dpassay.training.randomness import Keyed
from dpassay.training.units import Units, gathered
from rows import Row

ROUNDS, WARM = 1000, 3
RATE, CLIP, MULTIPLIER, LONGEST = 0.1, 0.5, 2.05, 40
BARS = {"cpu": 600.0, "cuda": 60.0}


def aggregation_of(units: Units, privacy: str) -> Aggregation:
    if privacy != "user-entity":
        return PerUnit(len(units.cells), RATE, CLIP)
    most = usual_most(units.count, RATE)
    return UserEntity(units.names, units.user_of, units.entity_of, RATE, 0.5, CLIP, CLIP / 4, most)


def seconds_per_round(privacy: str, private: bool, rounds: int, device: torch.device) -> tuple[float, float]:
    """Seconds for each round, and the held-out perplexity at the end."""
    units = gathered(flights(5000), privacy)
    words = ModelVocabulary(tuple(known_words()))
    torch.manual_seed(0)
    network = LanguageModel(Sizes(len(words))).to(device)
    weights = {name: parameter.data for name, parameter in network.named_parameters()}
    plan, aggregation = RoundPlan(rounds=rounds), aggregation_of(units, privacy)
    sentences = Sentences(words.numbers(units.texts, LONGEST), units.cells, plan)
    engine = Federated(
        weights,
        StackedTraining(device),
        sentences,
        Server(weights, plan),
        Keyed(),
        aggregation.drawn,
        aggregation if private else None,
        MULTIPLIER * aggregation.sensitivity,
    )
    began, done = time.perf_counter(), 0
    for number in range(rounds + WARM):
        if number == WARM:
            _wait(device)
            began = time.perf_counter()
        done += engine.round(number)
    _wait(device)
    taken = (time.perf_counter() - began) / rounds
    return taken, perplexity(network, words.numbers(units.held_out, LONGEST))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def accounting() -> float:
    """Seconds for ε at each of 1,000 rounds."""
    from dpassay.training.accountant import Account

    account = Account(RATE, CLIP, MULTIPLIER * CLIP, ROUNDS, 1e-5)
    began = time.perf_counter()
    for number in range(1, ROUNDS + 1):
        account.spent(number)
    return time.perf_counter() - began


def rows(device: torch.device, rounds: int) -> list[Row]:
    found: list[Row] = []
    bar = BARS[device.type]
    plain, reached = seconds_per_round("user", False, rounds, device)
    found.append(Row("1,000 rounds without privacy", "–", f"{ROUNDS * plain:.0f} s, perplexity {reached:.0f}", True))
    for privacy in ("user", "entity", "user-entity"):
        taken, reached = seconds_per_round(privacy, True, rounds, device)
        whole = ROUNDS * taken
        said = f"{whole:.0f} s, perplexity {reached:.0f} after {rounds + WARM} rounds"
        found.append(Row(f"1,000 rounds, {privacy}", f"≤ {bar:.0f} s", said, whole <= bar))
        if privacy == "user":
            ratio = taken / plain
            found.append(Row("per-unit clipping and noise, against none", "≤ 3×", f"{ratio:.2f}×", ratio <= 3))
            user = whole
    if find_spec("mpmath") is not None:
        share = accounting() / user
        found.append(Row("the accountant at every round", "< 5%", f"{share:.1%}", share < 0.05))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=tuple(BARS), default="cpu")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if given.device == "cuda" else f"{os.cpu_count()} cores"
    print(f"{name}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    for row in rows(torch.device(given.device), given.rounds):
        print(f"{row.what:45} {row.bar:>8}  {row.found:50} {'met' if row.met else 'MISSED'}", flush=True)


if __name__ == "__main__":
    main()
