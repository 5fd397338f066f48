"""Guarantees without a claim: the smallest noise for one, and what several add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import AsJson, Dim, check_claimed, print_json, working
from dpassay.cli.options import Commands

if TYPE_CHECKING:
    from dpassay.core.guarantee import EpsilonDelta
    from dpassay.exact.composition import Composition

app = typer.Typer(
    help="Find the least noise for a guarantee.", cls=Commands, no_args_is_help=True, rich_markup_mode=None
)

Epsilon = Annotated[str, typer.Option("--epsilon", "-e", help="The claimed epsilon.", show_default=False)]
Delta = Annotated[str, typer.Option("--delta", "-d", help="The claimed delta; 0 for pure DP.")]
Answers = Annotated[
    list[str],
    typer.Argument(help="Each 'EPS', 'EPS,DELTA', 'rho=RHO', 'mu=MU' or a pipeline; add ' x N' to repeat it N times."),
]


def _calibrated(stage: str, value: float, note: str, as_json: bool) -> None:
    if as_json:
        print_json({"stage": f"{stage}({value!r})", "value": value, "guarantee": note})
    else:
        print(f"{stage}({value!r})  satisfies {note}")


@app.command("laplace")
def calibrate_laplace(
    epsilon: Epsilon,
    delta: Delta = "0",
    sensitivity: Annotated[str, typer.Option(help="l1 distance between two neighbors' answers.")] = "1",
    as_json: AsJson = False,
) -> None:
    """The least Laplace scale.

    \b
    Example:
      dpassay calibrate laplace --epsilon 0.5 --sensitivity 2
    """
    from dpassay.core.guarantee import make_guarantee
    from dpassay.exact.calibrate import laplace

    scale = laplace(epsilon, delta, sensitivity)
    _calibrated("laplace", scale, f"{make_guarantee(epsilon, delta)} at l1 sensitivity {sensitivity}", as_json)


@app.command("gaussian")
def calibrate_gaussian(
    epsilon: Epsilon,
    delta: Annotated[
        str, typer.Option("--delta", "-d", help="The delta of the guarantee, above 0.", show_default=False)
    ],
    sensitivity: Annotated[str, typer.Option(help="l2 distance between two neighbors' answers.")] = "1",
    as_json: AsJson = False,
) -> None:
    """The least Gaussian standard deviation, exact for every epsilon.

    \b
    Example:
      dpassay calibrate gaussian --epsilon 10 --delta 1e-5
    """
    from dpassay.core.guarantee import make_guarantee
    from dpassay.exact.calibrate import gaussian

    sigma = gaussian(epsilon, delta, sensitivity)
    _calibrated("gaussian", sigma, f"{make_guarantee(epsilon, delta)} at l2 sensitivity {sensitivity}", as_json)


@app.command("flip")
def calibrate_flip(
    epsilon: Epsilon,
    bits: Annotated[int, typer.Option(help="How many bits can differ between two neighbors.")] = 1,
    categories: Annotated[int, typer.Option(help="Number of categories, to keep one category instead of bits.")] = 2,
    as_json: AsJson = False,
) -> None:
    """The largest probability of keeping a bit or a category.

    \b
    Example:
      dpassay calibrate flip --epsilon 1 --bits 10
    """
    from dpassay.core.guarantee import PureDP
    from dpassay.exact.calibrate import flip

    check_claimed(epsilon, None)
    what = f"one of {categories} categories" if categories != 2 else f"{bits} bit{'s' * (bits > 1)}"
    _calibrated("flip", flip(epsilon, bits, categories), f"{PureDP(epsilon)} on {what}", as_json)


def compose(
    answers: Answers,
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta",
            "-d",
            help="The total delta at which epsilon is stated. Default: 1e-6, or the sum of the given deltas if larger.",
        ),
    ] = None,
    dim: Dim = None,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="The answers are about disjoint parts of the data: parallel composition.")
    ] = False,
    group: Annotated[
        int | None, typer.Option(help="Also print what holds for data sets that differ in this many records.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compose the privacy loss of several answers about the same data: basic and exact composition.

    \b
    Examples:
      dpassay compose '0.1 x 100' --delta 1e-6
      dpassay compose '1,1e-8 x 10' 'query(l2, 1) | gaussian(4) x 20'
      dpassay compose 'rho=0.1 x 5' 'mu=0.5' --delta 1e-5
      dpassay compose '0.5,1e-6' --group 3                what a group of 3 people may expect
      dpassay compose '0.5,1e-6' '1' --parallel           each about other people
    """
    from dpassay.core.numbers import as_written
    from dpassay.exact import composition

    with working("composing"):
        add_up = composition.compose_parallel if parallel else composition.compose
        total = add_up(*answers, delta=delta, dim=dim)
        groups = {} if group is None else _groups(total, group)
    if as_json:
        _print_composition(total, parallel, group, groups)
        return
    at = delta or as_written(total.exact_delta).replace("e-0", "e-")
    parts = " about disjoint parts of the data, each at" if parallel else " at total"
    print(f"{total.count} answer{'s' * (total.count > 1)}{parts} delta {at}")
    if parallel:
        print(f"  parallel composition  epsilon {total.exact}")
    else:
        print(f"  basic composition  epsilon {total.basic}")
        print(f"  exact composition  epsilon {total.exact}")
    if total.neighbours:
        words = ", and ".join(map(str, total.neighbours))
        every = " (neighbors in every one of these senses)" * (len(total.neighbours) > 1 and not parallel)
        print(f"  this holds for {words}{every}")
    if parallel:
        print("  this holds for data sets that differ in one part only, in which they are neighbors")
    if group is not None:
        print(f"  a group of {group:,} (inputs {group:,} steps between neighbors apart)")
    for formula, found in groups.items():
        print(f"    {found}, by {formula}" if found is not None else f"    no guarantee by {formula}")


def _groups(total: Composition, size: int) -> dict[str, EpsilonDelta | None]:
    """Both bounds for a group; None where nothing is guaranteed."""
    from dpassay.errors import InputError
    from dpassay.exact.composition import MOST_ANSWERS, group, simple_group

    if not 1 <= size <= MOST_ANSWERS:
        raise InputError(f"--group must be a whole number from 1 to {MOST_ANSWERS:,}, got {size}")
    found: dict[str, EpsilonDelta | None] = {}
    for name, bound in (("delta*(1 + e^eps + ... + e^((k-1)*eps))", group), ("k*e^((k-1)*eps)*delta", simple_group)):
        try:
            found[name] = None if total.guarantee is None else bound(total.guarantee, size)
        except InputError:  # delta would be 1 or more
            found[name] = None
    return found


def _print_composition(
    total: Composition, parallel: bool, size: int | None, groups: dict[str, EpsilonDelta | None]
) -> None:
    from pydantic import TypeAdapter

    from dpassay.evidence.schema import Real

    write = TypeAdapter(Real).dump_python
    named = (("parallel", total.exact),) if parallel else (("basic", total.basic), ("exact", total.exact))
    rows: dict[str, Any] = {name: {"lower": write(i.lower), "upper": write(i.upper)} for name, i in named}
    if size is not None:
        pairs = (
            None if found is None else {"epsilon": found.epsilon, "delta": found.delta} for found in groups.values()
        )
        rows["group"] = {"size": size, **dict(zip(("bound", "simple_bound"), pairs, strict=True))}
    relations = [relation.kind for relation in total.neighbours]
    print_json({"answers": total.count, "delta": total.delta, "neighbours": relations, **rows})
