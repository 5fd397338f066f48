"""The sanity check of Habernal, ACL 2022, for a mechanism of your own: its vote, and what sees more than a vote.

For each ε and each dimension n the mechanism runs on n zeros and on n ones. Each output is rounded to zeros and ones,
and the majority is the guess. The empirical ε of these guesses is the paper's estimate; next to it are two bounds that
hold together for the whole table, but for the error probability `ALPHA`: that of the same votes, and that of a rule
learned from other outputs. If the distribution is known, so is the exact loss between the two inputs.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.mechanisms.batches import known_independent
from dpassay.audit.mechanisms.targets import as_mechanism, draw, load_object
from dpassay.audit.options import AuditOptions
from dpassay.audit.runner import run_audit
from dpassay.audit.testing.experiment import stream
from dpassay.audit.testing.inference import proportion_interval
from dpassay.claims.claim import Claim
from dpassay.core.interval import Interval
from dpassay.errors import InputError, MechanismError
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.mechanism import Failure, HasDistribution, Mechanism
from dpassay.reproduce.published.acl2022 import DIMENSIONS, EPSILONS
from dpassay.reproduce.result import COLOURS, DASHES, MARKS, FigureResult, Partial, ReproductionOptions, label
from dpassay.reproduce.sanity import loss_axis, shown_at, votes_loss

RUNS = 10_000
ALPHA = 0.001  # of the whole table: half for the votes, half for the learned rules, in equal shares for its cells
MOST_DIM = 10_000
NUMBERS, CALLS = 1 << 20, 500  # drawn at a time: numbers by a batch, or outputs by single calls
ROUNDING = 1e-12  # two equal numbers may differ by so much, in parts
STREAM = 77  # sets these random numbers apart from those of audits


@dataclass(frozen=True)
class Subject:
    """What is checked: a Python object, the text of a pipeline, or both if the object implements the pipeline."""

    python: str | None = None
    pipeline: str | None = None

    def data(self) -> dict[str, str | None]:
        return {"python": self.python, "pipeline": self.pipeline}

    @property
    def name(self) -> str:
        """What files are called.

        >>> Subject("noisy.counts:laplace").name, Subject(pipeline="laplace(1)").name
        ('sanity-check-noisy-counts-laplace', 'sanity-check-pipeline')
        """
        what = "pipeline" if self.python is None else self.python.replace(":", "-").replace(".", "-")
        return f"sanity-check-{what}"


@dataclass(frozen=True)
class VoteGrid:
    """The values of ε and the dimensions of the table."""

    epsilons: tuple[float, ...] = tuple(map(float, EPSILONS))
    dims: tuple[int, ...] = DIMENSIONS

    @classmethod
    def read(cls, epsilons: str | None, dims: str | None) -> VoteGrid:
        """From lists with commas; those of the paper if they are left out.

        >>> VoteGrid.read("0.5, 2", None).epsilons, VoteGrid.read(None, "1,8").dims
        ((0.5, 2.0), (1, 8))
        """
        return cls(
            cls.epsilons if epsilons is None else _values(epsilons, "--epsilon", float, 1e-6, 1e6),
            cls.dims if dims is None else _values(dims, "--dim", int, 1, MOST_DIM),
        )

    @property
    def cells(self) -> list[tuple[float, int]]:
        return [(epsilon, n) for epsilon in self.epsilons for n in self.dims]


def _values(text: str, option: str, kind: Callable[[str], Any], least: float, most: float) -> tuple[Any, ...]:
    try:
        found = tuple(dict.fromkeys(kind(part.strip()) for part in text.split(",")))
    except ValueError:
        raise InputError(f"{option} takes numbers with commas between them, such as 1,2,8; got {text!r:.60}") from None
    if wrong := [value for value in found if not least <= value <= most]:
        raise InputError(f"{option} takes numbers from {least:g} to {most:,g}, got {wrong[0]}")
    return found


def at_epsilon(thing: Any, epsilon: float) -> Any:
    """A mechanism with its `epsilon` set: an argument of the function, or of the class.

    >>> at_epsilon(lambda x, epsilon, rng: x + epsilon, 0.5)(1.0, None)
    1.5
    """
    name, required = _parameters(thing)
    if not name:
        return thing
    if inspect.isclass(thing):
        return thing(**{name: epsilon})
    if len(required) == 1:
        return lambda x: thing(**{required[0]: x, name: epsilon})
    if len(required) == 2:
        return lambda x, rng: thing(**dict(zip(required, (x, rng), strict=True)), **{name: epsilon})
    if len(required) == 3:
        return lambda x, n, rng: thing(**dict(zip(required, (x, n, rng), strict=True)), **{name: epsilon})
    raise InputError(f"besides {name} the function takes ({', '.join(required)}); give f(x), f(x, rng) or f(x, n, rng)")


def takes_epsilon(thing: Any) -> bool:
    """Whether a function or a class has a parameter `epsilon` or `eps`.

    >>> takes_epsilon(lambda x, eps: x), takes_epsilon(lambda x, rng: x)
    (True, False)
    """
    return bool(_parameters(thing)[0])


def _parameters(thing: Any) -> tuple[str, list[str]]:
    """The name of the parameter that is ε, if there is one, and those of the others that must be given."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return "", []
    name = next((p.name for p in parameters if p.name in ("epsilon", "eps")), "")
    others = [p.name for p in parameters if p.name != name and p.default is p.empty and p.kind in _BY_NAME]
    return name, others


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def mechanisms(subject: Subject, grid: VoteGrid) -> Callable[[float, int], tuple[Mechanism, Any]]:
    """For each cell what is run, and what knows its distribution, or None. All are tried here once."""
    thing = None if subject.python is None else load_object(subject.python)
    if thing is not None and len(grid.epsilons) > 1 and not takes_epsilon(thing):
        raise InputError(
            f"{subject.python} has no parameter epsilon, so its epsilon is fixed: state it, --epsilon 1, or add the "
            "parameter"
        )

    def of(epsilon: float, n: int) -> tuple[Mechanism, Any]:
        text = subject.pipeline
        known: Any = None if text is None else Claim("pipeline", text, epsilon=f"{epsilon!r}", dim=n).mechanism
        if thing is None:
            return known, known
        try:
            mechanism = as_mechanism(at_epsilon(thing, epsilon))
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{subject.python} with epsilon {epsilon:g} raised {type(error).__name__}: {error}"
            ) from error
        return mechanism, known or (mechanism if isinstance(mechanism, HasDistribution) else None)

    for n, epsilon in ((grid.dims[0], grid.epsilons[0]), (grid.dims[-1], grid.epsilons[-1])):
        mechanism, _ = of(epsilon, n)
        vectors(draw(mechanism, np.zeros(n), 1, stream(0, STREAM)), n)
    return of


def vectors(outputs: Any, n: int) -> NDArray[np.float64]:
    """Outputs as rows of n numbers.

    >>> vectors([[0.5, 2.0], [1, -1]], 2).shape, vectors([3.0], 1).shape
    ((2, 2), (1, 1))
    """
    if failed := next((one for one in outputs if isinstance(one, Failure)), None):
        raise MechanismError(f"the mechanism raised {failed.kind}: {failed.said}")
    rows: NDArray[np.float64] = np.empty((0, 0))
    try:
        arrays = [np.asarray(one) for one in outputs]
        real = all(array.dtype.kind in "biuf" for array in arrays)  # no None, text or complex number
        if real:
            rows = np.asarray([array.astype(float).ravel() for array in arrays])
    except (TypeError, ValueError):
        pass  # rows of different lengths
    if rows.ndim != 2 or rows.shape[1] != n:
        raise InputError(
            f"the sanity check is for mechanisms that turn n numbers into n numbers; for {n} of them this one gave "
            f"{outputs[0]!r:.60}"
        )
    return rows


@dataclass(frozen=True)
class Votes:
    """How many runs on zeros, and on ones, were voted to be ones; and how many coordinates were NaN."""

    of_zeros: int
    of_ones: int
    nan: int

    def bound(self, runs: int, alpha: float) -> float:
        """A lower bound on ε, with confidence 1 − α if the runs are independent.

        >>> Votes(0, 0, 0).bound(100, 0.05), round(Votes(0, 10_000, 0).bound(10_000, 0.001), 3)
        (0.0, 7.094)
        """
        low, high = zip(*(proportion_interval(k, runs, alpha / 2) for k in (self.of_zeros, self.of_ones)), strict=True)
        ratios = ((low[1], high[0]), (1 - high[0], 1 - low[1]))
        return max(0.0, *(math.log(p / q) if p > 0 else 0.0 for p, q in ratios))


def votes(mechanism: Mechanism, n: int, runs: int, place: tuple[int, ...], tell: Callable[[int], None]) -> Votes:
    """Run it on n zeros and on n ones; a coordinate of at least 1/2 rounds to one, NaN to zero, and a tie is zeros.

    Rows of a batch may share their noise, and code may change from call to call. So calls are made one by one and in
    random order, unless the rows of a batch are known to be independent.
    """
    inputs, found, nan, done = (np.zeros(n), np.ones(n)), [0, 0], 0, 0
    if known_independent(mechanism):
        size = max(1, NUMBERS // n)
        pieces = [(side, min(size, runs - start)) for side in (0, 1) for start in range(0, runs, size)]
    else:
        order = stream(*place, 2).permutation(np.repeat([0, 1], runs))
        pieces = [(side, 1) for side in order.tolist()]
    rngs = [stream(*place, side) for side in (0, 1)]
    for side, size in pieces:
        rows = vectors(draw(mechanism, inputs[side].copy(), size, rngs[side]), n)
        nan += int(np.isnan(rows).sum())
        found[side] += int(np.count_nonzero(2 * (rows >= 0.5).sum(axis=1) > n))
        done += size
        if done >= CALLS:
            tell(done)
            done = 0
    tell(done)
    return Votes(found[0], found[1], nan)


def exact_loss(known: Any, n: int) -> float:
    """The exact loss between n zeros and n ones, the larger of the two orders; NaN if it is not known.

    >>> exact_loss(Claim("x", "laplace(dim/eps)", epsilon=2, dim=8).mechanism, 8)
    2.0
    """
    if known is None:
        return math.nan
    try:
        zeros, ones = (known.distribution(x) for x in (np.zeros(n), np.ones(n)))
        return max(Interval.around(PrivacyLoss.between(*both).pure).lower for both in ((zeros, ones), (ones, zeros)))
    except (InputError, NotImplementedError):
        return math.nan


def beyond(bound: float, epsilon: float) -> bool:
    """Whether a lower bound is above the claimed ε; equal ones may differ by rounding."""
    return bound > epsilon * (1 + ROUNDING)


def sanity_check_of(subject: Subject, grid: VoteGrid, options: ReproductionOptions) -> FigureResult:
    """The table of a mechanism, over ε and n."""
    runs, cells = options.runs or RUNS, grid.cells
    made: dict[str, Any] = {"figure": subject.name, **subject.data(), "runs": runs, "seed": options.seed}
    made |= {"epsilons": list(grid.epsilons), "dims": list(grid.dims)}
    partial = Partial(options.partial, made, lambda found: isinstance(found, list) and len(found) == 4)
    of, done = mechanisms(subject, grid), 0
    alpha = ALPHA / 2 / len(cells)
    rows: list[dict[str, Any]] = []

    def tell(more: int) -> None:
        nonlocal done
        done += more
        options.progress(min(1.0, done / (4 * runs * len(cells))))  # two inputs, and as many runs to learn from

    for place, (epsilon, n) in enumerate(cells):
        mechanism, known = of(epsilon, n)
        if (cell := f"{epsilon!r} {n}") not in partial.found:
            counted = votes(mechanism, n, runs, (options.seed, STREAM, place), tell)
            asked = AuditOptions(
                pairs=[(np.zeros(n), np.ones(n))],
                epsilon=epsilon,
                runs=2 * runs,
                alpha=alpha,
                seed=options.seed,
                fixed=True,
                shrink=False,
            )
            verdict = run_audit(mechanism, asked)
            if verdict.interrupted:
                raise KeyboardInterrupt  # a bound from some of the runs is not kept as that of all
            learned = verdict.epsilon.lower
            tell(2 * runs)
            partial.keep(cell, [counted.of_zeros, counted.of_ones, counted.nan, learned])
        zeros, ones, nan, learned = partial.found[cell]
        counted = Votes(int(zeros), int(ones), int(nan))
        row = {"epsilon": epsilon, "dim": n, "runs": runs, "ones_of_zeros": counted.of_zeros}
        row |= {"ones_of_ones": counted.of_ones, "nan": counted.nan}
        row |= {"empirical": votes_loss(counted.of_zeros, counted.of_ones, runs)}
        row |= {"vote_bound": counted.bound(runs, alpha), "learnt_bound": learned, "exact": exact_loss(known, n)}
        shown = ("vote_bound", "learnt_bound", *(["exact"] if known is mechanism else []))  # a formula is not the code
        row["refuted"] = any(beyond(row[what], epsilon) for what in shown)
        rows.append(row)
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw(figure, rows, grid),
        caption=f"The sanity check of {subject.python or subject.pipeline}, with {runs:,} runs on n zeros and as many "
        "on n ones. Left: the empirical loss of the majority vote. Then a lower bound learned from outputs and, if the "
        "distribution is known, the exact loss between the two inputs. Dotted: the claimed epsilon.",
        published="Habernal, ACL 2022, section 4, proposes this check for any real-valued mechanism.",
        found=_findings(rows),
        size=(7.2, 3.4),
    )


def _findings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    voted, learned, exact = (
        [row for row in rows if beyond(row[what], row["epsilon"])] for what in ("vote_bound", "learnt_bound", "exact")
    )
    many = f"of {len(rows)} cells"
    found = [
        f"The vote refutes the claimed epsilon in {len(voted)} {many}, a learned rule in {len(learned)}. If runs are "
        f"independent, all these bounds hold at once with {1 - ALPHA:.1%} confidence."
    ]
    if not all(math.isnan(row["exact"]) for row in rows):
        found.append(
            f"The exact loss of the stated distribution between zeros and ones is above the claimed epsilon in "
            f"{len(exact)} {many}."
        )
    endless = sum(row["empirical"] == math.inf for row in rows)
    if endless:
        found.append(
            f"In {endless} {many} no mistake was seen: the empirical loss is infinite there, its bound is not, and "
            "only the bound is evidence."
        )
    if nan := sum(row["nan"] for row in rows):
        drawn = sum(2 * row["runs"] * row["dim"] for row in rows)
        found.append(f"{nan / drawn:.1%} of the coordinates are NaN; they were rounded to zero, as in the paper.")
    if not voted + learned + exact:
        found.append("Nothing was refuted. That proves nothing: the vote and the rule compare one pair of inputs.")
    return found


TABLES = {
    "empirical": "Empirical ε of the majority vote",
    "vote_bound": "Lower bound from the votes; * refutes the claimed ε",
    "learnt_bound": "Lower bound learned from outputs; * refutes the claimed ε",
    "exact": "Exact loss of the stated distribution between n zeros and n ones; * above the claimed ε",
}


def table(rows: Sequence[Mapping[str, Any]], grid: VoteGrid, what: str) -> list[list[str]] | None:
    """One quantity over ε and n; an asterisk marks what refutes the claimed ε. None if it is not known anywhere.

    >>> table([{"epsilon": 1.0, "dim": 8, "vote_bound": 1.25}], VoteGrid((1.0,), (8,)), "vote_bound")
    [['1', '1.25*']]
    """
    values = {(row["epsilon"], row["dim"]): row[what] for row in rows}
    if all(math.isnan(value) for value in values.values()):
        return None

    def shown(epsilon: float, n: int) -> str:
        value = values[epsilon, n]
        text = "-" if math.isnan(value) else "∞" if value == math.inf else f"{value:.4g}"
        return text + "*" * (what != "empirical" and beyond(value, epsilon))

    return [[f"{epsilon:g}", *(shown(epsilon, n) for n in grid.dims)] for epsilon in grid.epsilons]


PANELS = {"empirical": "the vote's empirical ε", "learnt_bound": "learned bound", "exact": "exact, zeros and ones"}


def _draw(figure: Any, rows: Sequence[dict[str, Any]], grid: VoteGrid) -> None:
    panels = [what for what in PANELS if not all(math.isnan(row[what]) for row in rows)]
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    claimed = (min(grid.epsilons), max(grid.epsilons) * (1.0 if len(grid.epsilons) > 1 else 1.01))
    for axis, what in zip(axes, panels, strict=True):
        for i, n in enumerate(grid.dims):
            chosen = [row for row in rows if row["dim"] == n]
            x, y = [row["epsilon"] for row in chosen], shown_at(row[what] for row in chosen)
            look = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)], "linewidth": 1}
            axis.plot(
                x, y, marker=MARKS[i % len(MARKS)], markersize=3.5, markerfacecolor="none", label=f"n = {n}", **look
            )
        loss_axis(axis, PANELS[what], claimed)
        label(axis, "claimed ε")
    label(axes[0], y="loss")
    axes[0].plot([], [], ":", color="black", label="claimed ε")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=8)
