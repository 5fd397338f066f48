"""The noise that a run needs so that a number has a wanted value: drawn numbers, also inside a formula."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import array, asarray, full, ones, zeros

from dpassay.trace.laws.formulas import NOISES, Law, bases, bases_of_draw, sources_of
from dpassay.trace.laws.number_laws import field_of, law_of, node_law
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun


class Wanted:
    """The numbers of all draws of a run, some of them changed; if a number is set twice, the first value is kept."""

    def __init__(self, run: RecordedRun) -> None:
        self.draws = {draw.start: k for k, draw in enumerate(run.draws)}
        self.shapes = [draw.shape for draw in run.draws]
        self.values = [draw.values.astype(float).reshape(-1).copy() for draw in run.draws]
        self.done = [zeros(values.size, bool) for values in self.values]

    def noise(self) -> dict[int, Array]:
        """The numbers by the index of the draw."""
        return {
            k: values.reshape(shape) for k, (values, shape) in enumerate(zip(self.values, self.shapes, strict=True))
        }

    def node(self, node: Node, target: Array) -> None:
        """Change drawn numbers so that a node has these values."""
        if node.single and target.shape == ():
            self._single(node, float(target))
            return
        with np.errstate(all="ignore"):
            change = asarray(target - node.value)
        change = np.where(np.isfinite(change), change, np.nan)
        if node.alone:
            self._term(node, 0, change, ones(change.shape, bool))
            return
        law = node_law(node)
        used = np.stack([(index >= 0) & (factor != 0) for index, factor in node.terms])
        pairs = (used.sum(axis=0) == 2) & np.isin(law.kind, ("laplace", "discrete laplace")) & ~law.mixed
        kinds = np.stack([node.of_numbers(_noise_kind, index) for index, _ in node.terms])
        first = np.argmax(used & (kinds | ~kinds.any(axis=0)), axis=0)
        # A sum of Gaussian numbers has the loss of its own scale only if each takes a share as large as its variance.
        sums = (used.sum(axis=0) > 1) & (law.kind == "gaussian") & ~law.mixed
        scales = [factor * node.of_numbers(lambda draw: field_of(draw, "scale"), index) for index, factor in node.terms]
        variances = np.where(used, np.stack(scales) ** 2, 0.0)
        with np.errstate(all="ignore"):
            shares = np.where(sums, variances / variances.sum(axis=0), 1.0)
        for k in range(len(node.terms)):
            self._term(node, k, change * shares[k], used[k] & ~pairs & (sums | (first == k)))
        for at in map(tuple, np.argwhere(pairs).tolist()):
            self._pair(node, [k for k in range(len(used)) if used[(k, *at)]], at, float(change[at]))

    def _single(self, node: Node, target: float) -> None:
        """The same for one number with one drawn number in it, as below, in less time."""
        index, factor = int(node.index.item()), float(node.factor)
        draw = next((one for one in node.draws if one.start <= index < one.start + one.values.size), None)
        if draw is None or not factor:
            return
        number = float(draw.values.reshape(-1)[index - draw.start])
        wanted = number + (target - (float(node.offset) + factor * number)) / factor
        if not math.isfinite(wanted):
            return
        if draw.formula is None:
            self._drawn(draw, array([index - draw.start]), array([wanted]))
        else:
            self._made(draw, array([index - draw.start]), array([wanted]))

    def _term(self, node: Node, k: int, change: Array, where: Array) -> None:
        """One number of each coordinate takes the whole change."""
        index, factor = node.terms[k]
        numbers = node.of_numbers(lambda draw: draw.values, index)
        with np.errstate(all="ignore"):
            wanted = numbers + change / factor
        where = where & (index >= 0) & (factor != 0)
        self.numbers(node.draws, index[where], wanted[where])

    def _pair(self, node: Node, terms: list[int], at: Any, change: float) -> None:
        """Two numbers with different signs: the difference goes to one of them."""
        parts = [(node.terms[k][0][at], float(node.terms[k][1][at])) for k in terms]
        values = [float(node.of_numbers(lambda draw: draw.values, asarray(index))) for index, _ in parts]
        sizes = [factor * value for (_, factor), value in zip(parts, values, strict=True)]
        wanted = sum(sizes) + change
        if not math.isfinite(wanted):
            return
        both = min(map(abs, sizes))
        for (index, factor), size in zip(parts, sizes, strict=True):
            more = max(math.copysign(1, size) * wanted, 0.0)
            number = math.copysign(both + more, size) / factor
            self.numbers(node.draws, array([index]), array([number]))

    def numbers(self, draws: tuple[DrawRecord, ...], index: Array, wanted: Array) -> None:
        """Change numbers, by their indices in the process."""
        index, wanted = index.reshape(-1), wanted.reshape(-1)
        for draw in draws:
            inside = (index >= draw.start) & (index < draw.start + draw.values.size) & np.isfinite(wanted)
            if not inside.any():
                continue
            at = index[inside] - draw.start
            if draw.formula is None:
                self._drawn(draw, at, wanted[inside])
            else:
                self._made(draw, at, wanted[inside])

    def _drawn(self, draw: DrawRecord, at: Array, wanted: Array) -> None:
        k = self.draws.get(draw.start)
        if k is None:
            return  # of an earlier run
        usable = ~self.done[k][at]
        law = None if NOISES.get(draw.distribution, ("exponential",))[0] != "exponential" else law_of(draw)
        if law is not None and law.kind in ("uniform", "exponential"):  # other noise has no ends
            ends = law.location[at], law.location[at] + law.scale[at]
            usable &= wanted >= ends[0]
            usable &= (wanted <= ends[1]) | (law.kind != "uniform")
        if draw.values.dtype.kind in "iub":
            wanted = np.rint(wanted)
        self.values[k][at[usable]] = wanted[usable]
        self.done[k][at[usable]] = True

    def _made(self, draw: DrawRecord, at: Array, wanted: Array) -> None:
        law, formula = law_of(draw), draw.formula
        assert formula is not None
        if law is not None and law.product:
            (self._turned if law.kind == "gaussian" else self._product)(draw, at, wanted)
            return
        found, sources = bases_of_draw(draw), sources_of(draw)
        if len(found) != 1 or any(source_kind(one) != "uniform" for one in sources):
            return
        index = found[0][at]
        base = Node(sources, ((index, ones(index.shape)),), zeros(index.shape), draw.place)
        uniform = node_law(base)
        low, width = uniform.centre, uniform.scale
        if law is not None:
            t = quantile_of(law, wanted, at)
        elif formula.function in (np.cos, np.sin):
            t = ((base.value - low) / width + 0.5) % 1.0  # half a turn changes the sign
        else:
            return
        self.numbers(sources, index, np.where(t > 0.5, low + width - width * (1 - t), low + width * t))

    def _product(self, draw: DrawRecord, at: Array, wanted: Array) -> None:
        """A sign and a size, each a factor."""
        assert draw.formula is not None
        nodes = draw.formula.nodes
        kinds = [node_law(node).kind for node in nodes]
        sign, size = (nodes[0], nodes[1]) if np.isin(kinds[1], ("exponential", "rayleigh")).all() else nodes[::-1]
        own = np.broadcast_to(sign.value, draw.shape).reshape(-1)[at]
        turned = np.sign(own) != np.sign(wanted)
        self._part(sign, draw, at[turned], -own[turned])
        self._part(
            size, draw, at, np.abs(wanted / own) * np.sign(np.broadcast_to(size.value, draw.shape).reshape(-1)[at])
        )

    def _turned(self, draw: DrawRecord, at: Array, wanted: Array) -> None:
        """A size and the cosine or sine of an angle (Box and Muller): the other coordinate of the point stays."""
        assert draw.formula is not None
        nodes = draw.formula.nodes
        wave, size = nodes if np.isin(node_law(nodes[1]).kind, ("rayleigh",)).all() else nodes[::-1]
        own, long = (np.broadcast_to(node.value, draw.shape).reshape(-1)[at] for node in (wave, size))
        turn, base = wave.draws[0], bases(wave)[0]
        index = np.broadcast_to(base, draw.shape).reshape(-1)[at]
        uniform = Node(sources_of(turn), ((index, ones(index.shape)),), zeros(index.shape), draw.place)
        law = node_law(uniform)
        angle = 2 * math.pi * (uniform.value - law.centre) / law.scale
        factor = np.broadcast_to(wave.factor, draw.shape).reshape(-1)[at]
        cosine = np.allclose(np.abs(np.cos(angle) * factor), np.abs(own), rtol=0, atol=1e-6)
        sign = np.where(own * (np.cos(angle) if cosine else np.sin(angle)) * factor < 0, -1.0, 1.0) * factor
        across = long * (np.sin(angle) if cosine else np.cos(angle))
        along = wanted / sign
        turned = np.arctan2(across, along) if cosine else np.arctan2(along, across)
        share = np.mod(turned / (2 * math.pi), 1.0)
        self.numbers(uniform.draws, index, law.centre + law.scale * share)
        self._part(size, draw, at, np.hypot(along, across) * np.sign(long))

    def _part(self, node: Node, draw: DrawRecord, at: Array, wanted: Array) -> None:
        if not node.alone or not len(at):
            return
        index, factor, offset = (
            np.broadcast_to(part, draw.shape).reshape(-1)[at] for part in (node.index, node.factor, node.offset)
        )
        self.numbers(node.draws, index, (wanted - offset) / factor)


def _noise_kind(draw: DrawRecord) -> Array:
    law = law_of(draw)
    return full(draw.shape, law is not None and law.kind in ("laplace", "gaussian"))


def source_kind(draw: DrawRecord) -> str:
    """The kind of law that was drawn from; "" if it is not known."""
    law = law_of(draw)
    return "" if law is None else law.kind


def quantile_of(law: Law, wanted: Array, at: Array) -> Array:
    """The point of (0, 1) at which a formula of a uniform number gives what is wanted."""
    with np.errstate(all="ignore"):
        standard = (wanted - law.location[at]) / law.scale[at]
        if law.kind == "bernoulli":
            one = standard > 0.5
            t = np.where(one, 1 - law.share / 2, (1 - law.share) / 2)
            return asarray(1 - t if law.falling else t)
        if law.kind == "laplace":
            tail = np.exp(-np.abs(standard)) / 2
            t = np.where(standard < 0, tail, 1 - tail)
        elif law.kind == "gaussian":
            t = array([math.erfc(-one / math.sqrt(2)) / 2 for one in standard.tolist()])
        elif law.kind == "exponential":
            t = np.where(standard < 0, np.nan, np.exp(-standard) if law.falling else -np.expm1(-standard))
        elif law.kind == "rayleigh":
            t = np.exp(-(standard**2) / 2) if law.falling else -np.expm1(-(standard**2) / 2)
        elif law.kind == "gumbel":
            t = -np.expm1(-np.exp(-standard)) if law.falling else np.exp(-np.exp(-standard))
        elif law.kind == "logistic":
            t = 1 / (1 + np.exp(-standard))
        elif law.kind == "geometric":  # in the middle of a step
            rest = np.power(1 - law.share, np.rint(standard) - 0.5)
            t = np.where(standard < 0.5, np.nan, rest if law.falling else 1 - rest)
        elif law.kind == "cauchy":
            t = 0.5 + np.arctan(standard) / math.pi
        else:
            t = standard
    return asarray(law.span[0] + (law.span[1] - law.span[0]) * t)
