"""Rewriting lines, in this process or in workers: an order as plain data, and the lines of a stream in groups."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from socket import gethostname

from dpassay.errors import InputError
from dpassay.text.rewriters.base import Rewriter, describe, released
from dpassay.text.rewriters.catalogue import Specification

LINES = 512  # rewritten together

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


def opened(order: Order) -> Rewriter:
    """The rewriter that was requested."""
    specification = Specification.read(order.rewriter)
    if order.true and order.epsilon is not None:
        rewriter = specification.at_true(order.epsilon, order.delta)
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
    return released(_kept(order), lines)


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
