"""What is wrong in the code according to a pair's replays, each with a rule, the line and the resulting loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpassay.core.interval import bound, grouped
from dpassay.core.numbers import INFINITY, Number, down
from dpassay.trace.laws.formulas import in_words, place_of_nan, sources_of
from dpassay.trace.laws.number_laws import NOISE_KINDS, NodeLaw, law_of
from dpassay.trace.replay.replaying import NoiseSite, Replay
from dpassay.trace.watch.loaders import mismatch
from dpassay.trace.watch.record import CodeLine, DrawRecord, RecordedRun, distinct
from dpassay.values import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the code: a rule, the line, and a sentence that names both.

    `infinite` means that the two inputs are told apart with certainty.
    """

    rule: str
    place: CodeLine | None
    message: str
    infinite: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        where = {} if self.place is None else {"file": self.place.file, "line": self.place.line}
        return {"rule": self.rule, **where, "message": self.message}


def unaccounted(run: RecordedRun) -> tuple[Finding, ...]:
    """Batches that are not sampled as the accountant of the code assumes."""
    ordering = {at for at, _, _ in run.orders}
    laws = [law_of(draw) for k, draw in enumerate(run.draws) if k not in ordering]
    noise = all(law is not None and law.kind in ("gaussian", "laplace") for law in laws)
    found = mismatch(run, by_hand=noise)
    return () if found is None else (Finding("sampling-not-accounted", *found),)


def stale(replays: Sequence[Replay], use: NoiseSite) -> Finding | None:
    """Noise that is not fresh in each call, although it hides a difference of the inputs that is output."""
    moved = bool((np.abs(use.gap) > use.tolerance).any())
    if not (use.released and moved):
        return None
    older = [draw for draw in use.draws if draw.run != replays[0].x.number]
    if older and len(older) == len(use.draws):
        draw = older[0]
        said = f"{use.x.place} adds noise that {draw.place} drew in an earlier call: two outputs differ by exactly "
        return Finding("noise-made-once", draw.place, f"{said}what the inputs differ by (ε = ∞)", infinite=True)
    if not older and use.draws and all(_repeated(replays, draw) for draw in use.draws):
        draw = use.draws[0]
        if not use.laws[0].scale.any():
            return Finding(
                "no-noise", draw.place, f"{draw.place} draws noise of scale 0, which is none (ε = ∞)", infinite=True
            )
        said = f"{draw.place} draws the same noise in every call with the same input, as a fixed seed does"
        return Finding("fixed-seed", draw.place, f"{said}: each input has one output (ε = ∞)", infinite=True)
    return None


def _repeated(replays: Sequence[Replay], draw: DrawRecord) -> bool:
    number_of = next(k for k, one in enumerate(replays[0].x.draws) if one is draw)
    return bool(draw.values.size) and not varies(replays, number_of, draw)


def varies(replays: Sequence[Replay], number_of: int, draw: DrawRecord) -> bool:
    """Whether a draw may have other values in another run. Integers can be equal in a few runs by chance."""
    law = law_of(draw)
    if draw.values.dtype.kind != "f" or (law is not None and law.kind == "bernoulli"):
        return True
    if not draw.values.size:
        return law is None
    others = [replay.x.draws[number_of].values for replay in replays[1:] if number_of < len(replay.x.draws)]
    return not all(np.array_equal(draw.values, values) for values in others)


def shared(uses: Sequence[NoiseSite]) -> Finding | None:
    """One number of a draw in several released numbers whose differences depend on the input."""
    released = [use for use in uses if use.released and use.x.alone and use.y.alone]
    for use in released:
        if (found := _shared_within(use)) is not None:
            return found
    places: dict[int, tuple[float, NoiseSite]] = {}
    lines = {str(use.x.place) for use in released}
    for use in released:
        for k, shift in zip(use.y.index.reshape(-1).tolist(), use.shift.reshape(-1).tolist(), strict=True):
            if k < 0 or not math.isfinite(shift):
                continue
            before, other = places.setdefault(k, (shift, use))
            if abs(before - shift) > max(use.shift_tolerance, other.shift_tolerance):
                alike = distinct(np.concatenate([other.y.factor.reshape(-1), use.y.factor.reshape(-1)])).size == 1
                what = "their difference is released exactly" if alike else "a combination of them has no noise"
                where = f"{other.x.place} and {use.x.place} use" if len(lines) > 1 else f"{use.x.place} uses"
                times = "" if len(lines) > 1 else " in several outputs"
                said = f"{where} the same noise of {_drawn_at(use)}{times}: {what} (ε = ∞)"
                return Finding("noise-reused", use.x.place, said, infinite=True)
    return None


def _drawn_at(use: NoiseSite) -> str:
    return str(use.draws[0].place)


def _shared_within(use: NoiseSite) -> Finding | None:
    index, shift = use.y.index.reshape(-1), use.shift.reshape(-1)
    kept = (index >= 0) & np.isfinite(shift)
    index, shift = index[kept], shift[kept]
    alike = distinct(use.y.factor.reshape(-1)[kept]).size == 1
    order = np.argsort(index, kind="stable")
    index, shift = index[order], shift[order]
    together = index[1:] == index[:-1]
    if not (together & (np.abs(np.diff(shift)) > use.shift_tolerance)).any():
        return None
    draws, all_of = len(distinct(index)), len(index)
    many = f"one {noise_in_words(use)}" if draws == 1 else f"{draws:,} numbers of {noise_in_words(use, noun='noise')}"
    what = "their differences are released exactly" if alike else "combinations of them have no noise"
    said = f"{use.x.place} adds {many} to {all_of:,} coordinates: {what} (ε = ∞)"
    return Finding("shared-noise", use.x.place, said, infinite=True)


_NAMES = {
    "laplace": ("Laplace", "scale"),
    "gaussian": ("Gaussian", "standard deviation"),
    "exponential": ("exponential", "scale"),
    "discrete laplace": ("two-sided geometric", "scale"),
    "uniform": ("uniform", "width"),
    "bernoulli": ("Bernoulli", "size"),
    "cauchy": ("Cauchy", "scale"),
    "gumbel": ("Gumbel", "scale"),
}


def noise_in_words(use: NoiseSite, noun: str = "number") -> str:
    """A description of the noise: "Laplace number of scale 0.5"."""
    law = use.laws[0]
    kinds = sorted(set(law.kind.reshape(-1).tolist()) - {"none"})
    if len(kinds) != 1:
        return f"{' and '.join(kinds)} {noun}"
    scales = distinct(np.abs(law.scale[law.kind == kinds[0]]))
    name, of = _NAMES.get(kinds[0], (kinds[0], "scale"))
    size = f"{scales[0]:.6g}" if len(scales) == 1 else f"{scales[0]:.6g} to {scales[-1]:.6g}"
    return f"{name} {noun} of {of} {size}"


def scaled_by_input(use: NoiseSite) -> Finding | None:
    """Noise whose scale is not the same for both inputs."""
    first, second = (np.abs(law.scale) for law in use.laws)
    known = np.isin(use.laws[0].kind, NOISE_KINDS)
    if not use.released or not known.any() or np.allclose(first[known], second[known], rtol=1e-9, atol=0):
        return None
    at = np.unravel_index(int(np.argmax(np.where(known, np.abs(first - second), 0.0))), first.shape)
    said = f"{use.x.place} adds noise whose scale depends on the input: {first[at]:.6g} for one input, "
    return Finding("scale-depends-on-input", use.x.place, f"{said}{second[at]:.6g} for the other")


def wrong_formula(use: NoiseSite) -> Finding | None:
    """A formula that turns uniform numbers into something other than two-sided noise."""
    law = use.laws[0]
    bad = (law.kind == "exponential") & (law.share > 0)
    made = [
        draw for draw in use.x.draws if draw.formula is not None and (one := law_of(draw)) is not None and one.share
    ]
    if not bad.any() or not made:
        return None
    one = law_of(made[0])
    assert one is not None
    source = law_of(sources_of(made[0])[0])
    assert source is not None
    t = one.span[0] or one.span[1]
    cut = float(source.location[0] + source.scale[0] * t)
    atom = float(np.asarray(one.atom).flat[0])
    side, place = "above" if one.span[0] == 0 else "below", place_of_nan(made[0])
    said = (
        f"{place} makes noise from uniform numbers by the formula {in_words(made[0])}, which gives "
        f"{'NaN' if math.isnan(atom) else f'{atom:.6g}'} for {float(law.share[bad][0]):.4%} of them, those {side} "
        f"{cut:.6g}, and numbers on one side of {float(one.location[0]):.6g} for the others"
    ).replace(".0000%", "%")
    return Finding("wrong-formula", place, said)


def too_large(
    uses: Sequence[NoiseSite], epsilon: Number, claimed: str, least: bool = False, behind: bool = False
) -> Finding:
    """A loss that exceeds the claim, at the line where most of it arises.

    `least`: other parts of the output may add to it; `behind`: of what rounding or clamping leaves of the sum.
    """
    worst = max(uses, key=lambda use: float(np.nansum(np.abs(use.gap))))
    law = worst.laws[0]
    bits = int((law.kind == "bernoulli").sum())
    if set(law.kind.reshape(-1).tolist()) - {"none"} == {"bernoulli"} and epsilon.a == INFINITY.a:
        each = "a number" if bits == 1 else f"each of {bits:,} numbers"
        said = f"{worst.x.place} keeps or drops {each}, and adds no noise to what it keeps"
        if law.centre[law.kind == "bernoulli"].any():  # neither of the two values is 0
            said = f"{worst.x.place} gives {each} one of two values, which depend on the input"
        return Finding("loss-too-large", worst.x.place, f"{said}: ε = ∞ for this pair, where {claimed} is claimed")
    size = "∞" if epsilon.a == INFINITY.a else bound(down(epsilon), -1) if least else grouped(float(epsilon.a))
    sign = "≥" if least and size != "∞" else "="
    if (law.kind == "bernoulli").all():
        shares = [float(np.asarray(one.share).flat[0]) for one in worst.laws]
        numbers = "a bit" if law.kind.size == 1 else f"{law.kind.size:,} bits, the first of which"
        said = (
            f"{worst.x.place} draws {numbers} is 1 with probability {shares[0]:.6g} for one input and {shares[1]:.6g}"
        )
        said = said.replace("a bit is", "a bit that is")
        return Finding(
            "loss-too-large",
            worst.x.place,
            f"{said} for the other: ε {sign} {size} for this pair, where {claimed} is claimed",
        )
    gaps = np.abs(worst.gap[law.kind != "none"]).reshape(-1)
    gaussian = bool((law.kind == "gaussian").any())
    distance = np.sqrt((gaps**2).sum()) if gaussian else gaps.sum()
    what = "a number" if gaps.size == 1 else f"{gaps.size:,} coordinates"
    norm = "" if gaps.size == 1 else " in l2" if gaussian else " in l1"
    differ = "differs" if gaps.size == 1 else "differ"
    moved = [use for use in uses if (np.abs(use.gap) > use.tolerance).any()]
    others = len({draw.start for use in moved for draw in use.draws} - {draw.start for draw in worst.draws})
    more = f"with the noise of {others:,} other draw{'s' * (others > 1)} " if others else ""
    return Finding(
        "loss-too-large",
        worst.x.place,
        f"{worst.x.place} adds {noise_in_words(worst, 'noise')} to {what} that {differ} by {distance:.6g}{norm}: "
        f"{more}ε {sign} {size} for this pair{', after rounding or clamping too' if behind else ''}, "
        f"where {claimed} is claimed",
    )


@dataclass
class _SameNoise:
    """Numbers with the same noise at the same line: their centers for each input, and the drawn numbers in each."""

    centres: list[list[float]]
    index: list[tuple[int, ...]]


def as_coded(uses: Sequence[NoiseSite], others: Mapping[int, Sequence[NodeLaw]] | None = None) -> str:
    """The pipeline as observed: norms of what is hidden, and the noise on it.

    `others` are the laws of the same numbers for other inputs, by the position of the use.
    """
    groups: dict[tuple[Any, ...], _SameNoise] = {}
    covered, sums = set[tuple[int, ...]](), set[Any]()
    order = sorted(range(len(uses)), key=lambda k: (not uses[k].released, -uses[k].x.offset.size))
    for use, laws in ((uses[k], (*uses[k].laws, *(others or {}).get(k, ()))) for k in order):
        first = laws[0]
        kinds = sorted(set(first.kind.reshape(-1).tolist()) - {"none"})
        at = first.kind != "none"
        index = [row for row, kept in zip(_in_each(use), at.reshape(-1).tolist(), strict=True) if kept]
        own = set(zip(index, first.centre[at].reshape(-1).tolist(), first.scale[at].reshape(-1).tolist(), strict=True))
        if not (use.x.added or use.released) or (sums >= own if use.released else covered >= set(index)):
            continue
        covered |= set(index)
        sums |= own
        scales = distinct(np.abs(first.scale[at]))
        size = f"{scales[0]:.6g}" if len(scales) == 1 else f"{scales[0]:.6g}..{scales[-1]:.6g}"
        if kinds == ["bernoulli"]:
            size = f"{float(first.share.flat[0]):.6g}"
        mixed = bool(first.mixed[at].any())
        alike = [key for key in groups if key[:3] == (tuple(kinds), size, mixed) and {*groups[key].index} & {*index}]
        key = alike[0] if alike else (tuple(kinds), size, mixed, use.x.place)  # 0 + z has the line of z
        seen = groups.setdefault(key, _SameNoise([[] for _ in laws], []))
        for side, law in enumerate(laws[: len(seen.centres)]):
            half = np.where(law.kind == "uniform", law.scale / 2, 0.0)
            seen.centres[side] += (law.centre + half)[at].reshape(-1).tolist()
        seen.index += index
    return "; ".join(dict.fromkeys(_group(key[0], key[1], key[2], seen) for key, seen in groups.items()))


def _in_each(use: NoiseSite) -> list[tuple[int, ...]]:
    """The drawn numbers in each number of a use, by their index."""
    columns = [index.reshape(-1).tolist() for index, _ in use.y.terms]
    return [tuple(sorted({one for one in row if one >= 0})) for row in zip(*columns, strict=True)]


def _group(kinds: tuple[str, ...], size: str, mixed: bool, seen: _SameNoise) -> str:
    if kinds == ("bernoulli",):
        numbers = "1 number" if len(seen.index) == 1 else f"{len(seen.index):,} numbers, each"
        return f"{numbers} kept with probability {size}"
    q = 2 if kinds == ("gaussian",) else 1
    norms = [float(np.linalg.norm(centre, q)) for centre in seen.centres]
    most, inputs = max(norms), len(norms)
    alike = sum(math.isclose(norm, most, rel_tol=1e-6) for norm in norms) if most > 0 else 0
    clip = f", and exactly that on {alike}, as after a clip" if alike > 2 else ""
    many, rest = len(seen.index), _sharing(seen.index)
    name = " and ".join(kinds).replace(" ", "_")
    if mixed:  # a norm would be that of the other noise too
        return f"{'a number' if many == 1 else f'{many:,} numbers'} with other noise | {name}({size}){rest}"
    return f"l{q} norm at most {most:.6g} on {inputs} inputs{clip} | {name}({size}){rest}"


def _sharing(index: Sequence[tuple[int, ...]]) -> str:
    """How numbers share the drawn numbers in them; "" if each has its own."""
    times = Counter(one for row in index for one in row)
    if max(times.values(), default=1) == 1:
        return ""
    if len(times) > 1 and (len(set(times.values())) > 1 or any(len(row) > 1 for row in index)):
        return f", {len(times):,} numbers for {len(index):,} coordinates"
    return f", one number for {'all ' if len(times) == 1 else ''}{max(times.values()):,} coordinates"


def beyond_runs(pipeline: str) -> str:
    """What runs leave open. Norms are not distances: a bound on them need not give the loss of the pair."""
    return (
        f"As coded it is {pipeline}. Runs cannot show whether other inputs have a larger loss; "
        "'dpassay check' can, from a bound that holds for all inputs."
    )


def without_noise(outputs: Sequence[Any]) -> str:
    """The message about code that gives the same output for both inputs, without noise."""
    what = "gave the same output, without noise." if outputs else "gave no output: does the code return its result?"
    return f"No violation in these runs: both inputs {what}"


def formula_of(run: RecordedRun, lost: DrawRecord) -> str:
    """A description of the longest formula that was applied to a draw."""
    made = [draw for node in run.nodes for draw in node.draws if draw.formula is not None and lost in sources_of(draw)]
    return f" (the formula {in_words(made[-1])})" if made else ""
