"""Rewriting lines, in this process or in workers: an order as plain data, and the lines of a stream in groups."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from socket import gethostname

from dpassay.audit.options import Progress
from dpassay.compute.workers import make_executor
from dpassay.errors import InputError
from dpassay.text.rewriters.base import Rewriter, TextGuarantee, describe, released
from dpassay.text.rewriters.catalogue import Specification

LINES = 512  # rewritten together
# Texts of five words that show whether a user's own rewriter is random, and how often each is rewritten in a run.
PROBES = (
    *(
        "book a flight to rome",
        "my password is seven three",
        "the doctor called about anna",
        "nobody knows where we live",
    ),
    *("please cancel tomorrow's early meeting", "rain is expected on sunday", "he owes me forty euros", "a b c d e"),
)
COPIES = 4
CALLS = 16  # at least, that look for any randomness at all
LOOKS = (2, CALLS, 128, 1024)  # calls, after which it is decided whether they are enough
SECONDS = 1.0  # of CPU time, after which calls that show nothing end
WAITED = 10.0  # seconds after which they end too: on a busy machine, or for a rewriter that waits
UNLIKELY = 1e-6  # at most the probability of a doubt about independent calls, all looks together

WHY_NOT = (
    "ADePT as published is not as private as claimed: it clips in l2 but its Laplace noise must hide l1 distances, "
    "which are up to sqrt(n) times as large. Use gaussian, l1 or sqrt-n; to run it anyway, add --as-published."
)


@dataclass(frozen=True, slots=True)
class Order:
    """How lines are to be rewritten, as plain data that can be sent to another process.

    `rewriter` is what --model takes, with its settings. With `true`, ε is what must hold for one text; otherwise it
    is the parameter of the mechanism's authors. `sha256` is the model's, from the statement; `threads` is how many
    torch may use, None for all.
    """

    rewriter: str
    epsilon: float | None = None
    delta: float | None = None
    true: bool = False
    sha256: str | None = None
    threads: int | None = None

    def guarantee_of(self, made: Rewriter) -> TextGuarantee:
        """The guarantee to state for the rewriter that was made by this order."""
        return Specification.read(self.rewriter).guarantee_of(made)


def opened(order: Order, progress: Progress | None = None) -> Rewriter:
    """The rewriter that was requested."""
    specification = Specification.read(order.rewriter)
    if order.true and order.epsilon is not None:
        rewriter = specification.at_true(order.epsilon, order.delta, progress)
    else:
        rewriter = specification.at(order.epsilon, order.delta)
    found = describe(rewriter).get("sha256")
    if order.sha256 not in (None, found):
        raise InputError(
            f"{specification.name} holds another model at a worker on {gethostname()}: its sha256 is "
            f"{str(found)[:16]}…, the statement names {str(order.sha256)[:16]}…; copy the model to the same folder on "
            "every machine"
        )
    return rewriter


_kept = lru_cache(maxsize=2)(opened)


def rewritten(order: Order, lines: list[str]) -> list[str]:
    """Lines rewritten for publication by a worker, which makes its rewriter once."""
    if order.threads is not None:
        import torch

        torch.set_num_threads(order.threads)
    return released(_kept(order), lines, order.rewriter)


def with_randomness_seen(order: Order, rewriter: Rewriter, guarantee: TextGuarantee) -> TextGuarantee:
    """What somebody's own rewriter declares, with what two runs show of its randomness.

    If two processes write exactly the same from some call on, calls continue and grow longer until chance cannot
    explain it; the guarantee then has a doubt. If that takes longer than `SECONDS` or `WAITED`, the guarantee states
    what was seen. At least `CALLS` calls are compared if they are fast, and the first two if not. The rewriter must be
    new: what it writes first here is compared with what it writes first in another process. One whose calls are
    independent, and for which a text's place among the others does not matter, is doubted with a probability of at most
    `UNLIKELY`.
    """
    texts = [text for text in PROBES for _ in range(COPIES)]
    here: list[list[str]] = []
    calls, until, latest = 0, time.process_time() + SECONDS, time.monotonic() + WAITED
    with closing(make_executor(1)) as other:  # a new process, which begins as this one did
        for target in LOOKS:
            batches = [texts] * (target - calls - 1) + [texts * max(1, target // COPIES)]
            calls, begun = target, time.monotonic()
            written = [released(rewriter, batch, order.rewriter) for batch in batches]
            took = time.monotonic() - begun
            here = alike_at_the_end(here, written, other.map(partial(rewritten, order), batches))
            if not here and (calls >= CALLS or took * CALLS > SECONDS):
                return guarantee
            if not here:
                continue
            # Half of it is for calls that are alike from the first on, half for all other beginnings together.
            rare = UNLIKELY / len(LOOKS) / (2 if len(here) == calls else 2 * calls)
            if likeliest(here) <= rare:
                return replace(
                    guarantee, doubt="its randomness comes from a fixed seed: another run wrote exactly the same"
                )
            usual = here[0][::COPIES]
            constant = all(run == [t for t in usual for _ in range(COPIES)] * (len(run) // len(texts)) for run in here)
            if constant and chance_of_no_randomness(guarantee, len(set(usual)), 2 * len(here)) <= rare:
                seen = (
                    f"no randomness was seen: each of {len(PROBES)} texts was rewritten in the same way in "
                    f"{2 * len(here):,} calls, which at the declared epsilon has a probability below {UNLIKELY:g}"
                )
                return replace(guarantee, doubt=seen)
            if calls >= CALLS and (time.process_time() > until or time.monotonic() > latest):
                break
    if len(here) < CALLS:
        return guarantee
    if constant:
        return _noting(guarantee, f"no randomness was seen in {CALLS} calls and more")
    return _noting(guarantee, "two runs wrote exactly the same, as with a fixed seed")


def alike_at_the_end(
    before: list[list[str]], mine: Sequence[list[str]], theirs: Iterable[list[str]]
) -> list[list[str]]:
    """The calls since the last one in which two runs wrote different texts: a fixed seed may begin after the first.

    >>> alike_at_the_end([["a"]], [["b"], ["c"], ["d"]], [["x"], ["c"], ["d"]])
    [['c'], ['d']]
    """
    found = before
    for one, other in zip(mine, theirs, strict=True):
        found = [*found, one] if one == other else []
    return found


def _noting(guarantee: TextGuarantee, seen: str) -> TextGuarantee:
    """With what was seen in its sentence: no number that differs from run to run, so that a run can be continued."""
    return replace(guarantee, outside="; ".join(filter(None, (guarantee.outside, seen))))


def likeliest(runs: Sequence[Sequence[str]]) -> float:
    """An upper bound on the probability of what some calls wrote for the probes, each of them given `COPIES` times.

    The rewritings of one text come in each order with the same probability, so that one order has at most 1 over their
    number. The probability that two independent runs agree, in something for which this bound is at most t, is at
    most t: the sum of P(s)² over such s is at most t times that of P(s).

    >>> likeliest([["a", "b", "b", "b", "c", "c", "c", "c"]])
    0.25
    """
    orders = 1
    for run in runs:
        for start in range(0, len(run), COPIES):
            counts = Counter(run[start : start + COPIES]).values()
            orders *= math.factorial(COPIES) // math.prod(map(math.factorial, counts))
    return 1 / orders


def chance_of_no_randomness(guarantee: TextGuarantee, different: int, times: int) -> float:
    """At most how likely it is that each probe is rewritten in the same way every time, in so many different ways.

    Let K texts have different rewritings, each with a probability of at least q for its own text. The first text yields
    those of the others with at least e^−ε(q − δ) each, so that q ≤ (1 + (K−1)e^−ε δ)/(1 + (K−1)e^−ε). Hence one
    of any K different rewritings has at most this q, and comes n times with q^(n−1) at most after the first; the
    factor counts the sets of K probes.

    >>> chance_of_no_randomness(TextGuarantee(0.0), 8, 3)  # 1/8 squared
    0.015625
    """
    kind, words = guarantee.neighbours, len(PROBES[0].split())
    if kind.kind != "any" and not (kind.kind.startswith("words(") and kind.count >= words):
        return 1.0
    share = (different - 1) * math.exp(-guarantee.epsilon)
    least = (1 + share * guarantee.delta) / (1 + share)
    return float(min(1.0, math.comb(len(PROBES), different) * least ** (times - 1)))


def lines_of(stream: Iterable[bytes], name: str = "the input") -> Iterator[str]:
    r"""The lines of a binary stream as text, split at line feeds alone.

    >>> list(lines_of([b"one\r\n", b"", b"\xc3\xa9t\xc3\xa9\n"]))
    ['one', '', 'été']
    """
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}, is not UTF-8 (byte {error.start + 1}); convert it, for example with iconv"
            ) from None


def in_groups(lines: Iterable[str], size: int = LINES) -> Iterator[list[str]]:
    """Lines in groups of `size`.

    >>> list(in_groups("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    group: list[str] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == size:
                yield group
                group = []
    except InputError:
        if group:
            yield group  # the lines before one that cannot be read are not lost
        raise
    if group:
        yield group
