"""Random pipelines with a claim each, for tests that hold dpassay against the oracle: the same ones in every run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

from oracle import Truth, Unreadable, truth_of

DELTAS = ("1e-30", "1e-12", "1e-6", "1e-3", "0.01", "0.1", "0.3", "0.5", "0.7", "0.9", "0.95")
PROBABILITIES = ("0", "1", "0.5", "1e-9", "0.999999")


@dataclass(frozen=True)
class Case:
    """A pipeline and what is claimed of it; numbers as text."""

    text: str
    dim: int
    neighbours: str
    epsilon: str
    delta: str = "0"

    @property
    def truth(self) -> Truth:
        """What the oracle knows."""
        values = {"eps": self.epsilon, "delta": self.delta}
        return truth_of(self.text, values, self.dim, self.neighbours)

    @property
    def arguments(self) -> dict[str, object]:
        """What `dpassay.check` takes besides the text."""
        one = {"dim": self.dim, "neighbours": self.neighbours, "epsilon": self.epsilon}
        return one if self.delta == "0" else one | {"delta": self.delta}


class Maker:
    """Draws pipelines from one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one_of(self, *choices: object) -> str:
        return str(choices[int(self.rng.integers(len(choices)))])

    def often(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def size(self) -> str:
        """A length or a scale: mostly between 0.05 and 20, with few digits."""
        return self.one_of(
            "1", "2", "0.5", "3", "1/3", "sqrt(2)", *(f"{x:.3g}" for x in np.exp(self.rng.normal(size=8)))
        )

    def chance(self) -> str:
        if self.often(0.25):
            return self.one_of(*PROBABILITIES)
        return f"{self.rng.random():.3g}"

    def norm(self) -> str:
        return self.one_of("l1", "l2", "linf")

    def bound(self) -> str:
        low = round(float(self.rng.normal()), 2)
        return self.one_of(
            f"clip({self.norm()}, {self.size()})",
            f"clip({self.norm()}, {self.size()})",
            f"clamp({low}, {low} + {self.size()})",
            "normalise",
            "minmax",
            "squash(tanh)",
            "squash(sigmoid)",
        )

    def clamps(self) -> str:
        """Two clamps that share a limit."""
        low, one, other = round(float(self.rng.normal()), 2), self.size(), self.size()
        if self.often(0.5):
            return f"clamp({low}, {low} + {one}) | clamp({low}, {low} + {other})"
        return f"clamp({low} - {one}, {low}) | clamp({low} - {other}, {low})"

    def before(self) -> tuple[list[str], int, str]:
        """Stages that bound a vector, the dimension, and neighbours that they allow."""
        dim = int(self.one_of(1, 1, 2, 2, 3, 4, 5, 8, 17, 33))
        kind = self.one_of(
            *("bound", "bound", "bound", "two", "clamps", "query", "query", "rows", "onehot", "dropout", "binary"),
            "bloom",
        )
        if kind in ("onehot", "bloom"):
            k = int(self.rng.integers(1, 6))
            first = f"onehot({k})" if kind == "onehot" else f"bloom({k}, {self.rng.integers(1, k + 1)})"
            return [first], 1, self.one_of("any", "any", "replace-record", "add-remove-record")
        if kind == "query":
            stages = [f"query({self.norm()}, {self.size()})"]
            if self.often(0.25):
                stages.append(self.bound())
            return stages, dim, self.one_of("query", "query", "replace-record", "add-remove-record")
        if kind == "rows":
            return ["rows", *([self.bound()] if self.often(0.9) else [])], dim, "replace-record"
        stages = [self.clamps()] if kind == "clamps" else [self.bound() for _ in range(2 if kind == "two" else 1)]
        if kind == "binary":
            stages, dim = (
                [*stages[: int(self.often(0.5))], f"binary({self.rng.integers(0, 3)}, {self.rng.integers(0, 2)})"],
                1,
            )
        if kind == "dropout":
            return (
                [f"dropout({self.one_of('0', '0.3', '0.5', '0.999')})", "encode", *stages],
                dim,
                self.one_of("word", "any"),
            )
        return stages, dim, self.one_of("any", "any", "word", "replace-record", "add-remove-record")

    def after(self) -> list[str]:
        if self.often(0.8):
            return []
        return [
            self.one_of(
                "decode",
                "round",
                "clamp(0, 1)",
                "clip(l2, 1)",
                "squash(tanh)",
                "minmax",
                "binary(1, 1)",
                "laplace(2)",
                "gaussian(1)",
            )
        ]

    def additive(self) -> tuple[str, int, str]:
        """Laplace, Gaussian and other noise on a bounded vector."""
        stages, dim, neighbours = self.before()
        if dim <= 8 and self.often(0.1):
            stages.append(f"repeat({self.rng.integers(1, 4)})")
        noise = self.one_of(
            f"laplace({self.size()})",
            f"laplace({self.size()})",
            f"gaussian({self.size()})",
            f"gaussian({self.size()})",
            f"onesided({self.size()})",
            f"onesided({self.size()}, {self.one_of('0', '0.25', '0.5')}, {self.one_of('0', '0.25', '0.5')})",
            f"leak({self.chance()})",
            f"radial({self.norm()}, {self.size()})",
        )
        return " | ".join([*stages, noise, *self.after()]), dim, neighbours

    def whole(self) -> tuple[list[str], int, str]:
        """Stages that give whole numbers, mostly."""
        dim = int(self.one_of(1, 1, 1, 2, 3, 5))
        kind = self.one_of("counts", "counts", "counts", "round", "query", "rows", "onehot", "any")
        if kind == "counts":
            near = self.one_of("query", "query", "replace-record", "add-remove-record")
            return [f"counts({self.norm()}, {self.one_of('1', '1', '2', '3', '1.5', '2.9', '0.5', '6')})"], dim, near
        if kind == "onehot":
            near = self.one_of("any", "replace-record", "add-remove-record")
            return [f"onehot({self.rng.integers(1, 5)})"], 1, near
        if kind == "query":
            return [f"query({self.norm()}, {self.size()})", "round"], dim, "query"
        if kind == "rows":
            return (
                ["rows", f"clamp({self.one_of('0', '-0.5', '1.5')}, {self.one_of('2', '2.5', '6')})", "round"],
                (dim),
                "replace-record",
            )
        if kind == "any":
            return self.before()
        near = self.one_of("any", "any", "replace-record", "add-remove-record")
        return [self.bound(), "round", *(["clamp(0, 2)"] if self.often(0.3) else [])], dim, near

    def shifted(self) -> tuple[str, int, str]:
        """Discrete noise, and noise that is truncated, stepped, or in its own norm."""
        kind = self.one_of("discrete_laplace", "discrete_gaussian", "truncated_laplace", "staircase", "mahalanobis")
        stages, dim, neighbours = self.whole() if kind.startswith("discrete") else self.before()
        size = self.size()
        noise = {
            "truncated_laplace": f"({size}, {self.one_of('1', '3', '10')}*{self.size()})",
            "staircase": f"({size}, {self.size()}, {self.one_of('0', '1', '0.5', '0.38', '0.1')})",
            "mahalanobis": f"({size}, {self.one_of('0.25', '1', '0.1')}, {self.one_of('1', '4')})",
        }.get(kind, f"({size})")
        after = self.after() if self.often(0.3) else []
        return " | ".join([*stages, f"{kind}{noise}", *after]), dim, neighbours

    def placed(self) -> tuple[str, int, str]:
        """Random directions, outputs between limits, noisy max and top-k: where the values lie matters, too."""
        kind = self.one_of("vmf", "purkayastha", "bounded_laplace", "bounded_laplace", "noisymax", "noisymax", "topk")
        after = ["decode"] if self.often(0.1) else []
        if kind in ("vmf", "purkayastha"):
            first = self.one_of("", "normalise(l2) | ", "encode | normalise | ", "clip(l2, 2) | normalise(l2) | ")
            return first + " | ".join([f"{kind}({self.size()})", *after]), int(self.one_of(2, 2, 3, 4, 7, 20)), "any"
        dim = int(self.one_of(1, 1, 2, 3)) if kind == "bounded_laplace" else int(self.rng.integers(1, 7))
        first, neighbours = self.bound(), "any"
        if self.often(0.4):
            first, neighbours = f"{self.one_of('query', 'query', 'counts')}({self.norm()}, {self.size()})", "query"
        elif self.often(0.1):
            first, neighbours = "rows | clamp(-1, 2)", "replace-record"
        low = self.one_of("0", "0", "-1", "0.3", "-2.5")
        noise = {
            "bounded_laplace": f"bounded_laplace({self.size()}, {low}, {low} + {self.size()})",
            "noisymax": f"noisymax({self.one_of('laplace', 'laplace', 'exponential', 'gumbel')}, {self.size()})",
            "topk": f"topk({self.rng.integers(1, 6)}) | {self.one_of('softmax', 'exponential')}({self.size()})",
        }[kind]
        return " | ".join([first, noise, *after]), dim, neighbours

    def records(self) -> tuple[str, int, str]:
        """Vectors of records, summed before the noise, of which one is added, removed or replaced."""
        dim = int(self.one_of(1, 1, 2, 3, 5))
        stages, single = ([f"onehot({dim})"], 1) if self.often(0.2) else ([self.bound()], dim)
        noise = self.one_of("laplace", "laplace", "gaussian", "onesided", "radial")
        scale = f"{self.norm()}, {self.size()}" if noise == "radial" else self.size()
        after = self.after() if self.often(0.5) else []
        return (
            " | ".join([*stages, f"{noise}({scale})", *after]),
            single,
            self.one_of("replace-record", "add-remove-record"),
        )

    def behind(self) -> tuple[str, int, str]:
        """One number, with stages behind its noise."""
        query = self.often(0.4)
        first = f"query({self.norm()}, {self.size()})" if query else self.bound()
        after = [
            self.one_of(
                *("round", "clamp(0, 10)", "binary(1, 1)", "binary(0, 0)", self.bound(), self.bound(), self.clamps())
            )
        ]
        if "binary" not in after[0] and self.often(0.4):
            after.append(self.one_of("round", self.bound()))
        noise = self.one_of(f"laplace({self.size()})", f"laplace({self.size()})", f"gaussian({self.size()})")
        return " | ".join([first, noise, *after]), 1, "query" if query else "any"

    def bit_noise(self) -> str:
        return self.one_of(f"flip({self.chance()})", f"bits({self.chance()}, {self.chance()}, {self.chance()})")

    def finite(self) -> tuple[str, int, str]:
        """Mechanisms that can be enumerated."""
        kind = self.one_of(
            *("category", "onehot", "bloom", "binary", "bounded-binary", "rows-binary", "row-bits", "hash", "choice"),
            "choice",
        )
        k, dim, neighbours = int(self.rng.integers(1, 7)), 1, "any"
        squashed = f"squash({self.one_of('tanh', 'sigmoid')}) | squash({self.one_of('tanh', 'sigmoid')}) | round"
        tail = [self.one_of("decode", "round", self.bit_noise(), "minmax", squashed)] if self.often(0.15) else []
        if kind in ("category", "hash"):
            stages = [f"{kind}({k})", f"flip({self.chance()})"]
        elif kind in ("onehot", "bloom"):
            first = f"onehot({k})" if kind == "onehot" else f"bloom({k}, {self.rng.integers(1, k + 1)})"
            stages = [first, self.bit_noise()]
        elif kind == "choice":
            dim = int(self.rng.integers(1, 6))
            stages = [
                self.bound() if self.often(0.7) else f"query({self.norm()}, {self.size()})",
                f"{self.one_of('exponential', 'softmax')}({self.size()})",
            ]
            neighbours = "query" if stages[0].startswith("query") else "any"
        else:
            dim = int(self.rng.integers(1, 3))
            low = self.one_of("-1", "0", "0.3", "-0.7", "-2.5", "1")
            limits = f"rows | clamp({low}, {low} + {self.size()})"
            first = {"binary": "encode", "bounded-binary": self.bound(), "rows-binary": "rows", "row-bits": limits}[
                kind
            ]
            neighbours = "replace-record" if kind.startswith("row") else "any"
            stages = [first, f"binary({self.rng.integers(0, 2)}, {self.rng.integers(0, 2)})", self.bit_noise()]
        if neighbours == "any" and self.often(0.1):
            neighbours = self.one_of("word", "replace-record", "add-remove-record")
        return " | ".join([*stages, *tail]), dim, neighbours

    def composed(self) -> tuple[list[str], int, str]:
        """Two finite mechanisms for the same inputs, their dimension, and a δ."""
        kind = self.one_of("category", "onehot", "cube")
        k, dim = int(self.rng.integers(2, 5)), 1
        if kind == "cube":
            dim, size = k, self.size()
            texts = [f"clip(linf, {size}) | exponential({self.size()})" for _ in range(2)]
        elif kind == "category":
            texts = [f"category({k}) | flip({self.chance()})" for _ in range(2)]
        else:
            texts = [f"onehot({k}) | {self.bit_noise()}" for _ in range(2)]
        return texts, dim, "0" if self.often(0.3) else self.one_of(*DELTAS)

    def claim(self, text: str, dim: int, neighbours: str) -> Case:
        """A claim near what is true, where that is known, or anywhere."""
        delta = "0" if self.often(0.45) else self.one_of(*DELTAS, f"{self.rng.random() * 0.95:.4g}")
        epsilon = self.one_of("0", "0.1", "1", "1", "3", "10", "100", f"{3 * self.rng.random():.4g}")
        if self.often(0.5):
            try:
                known = truth_of(text, {"eps": 1, "delta": 0}, dim, neighbours).pure[int(self.often(0.5))]
            except Unreadable:
                known = mp.inf
            if 0 < known < 500:
                with mp.workdps(50):
                    factor = mpf(self.one_of("1", "1", "0.9999999", "1.0000001", "0.5", "0.9", "1.2"))
                    epsilon = mp.nstr(known * factor, 17)
        return Case(text, dim, neighbours, epsilon, delta)

    def case(self) -> Case:
        """The next random case."""
        family = self.one_of(
            *("finite", "finite", "additive", "additive", "behind", "records", "shifted", "shifted", "placed", "placed")
        )
        return self.claim(*getattr(self, family)())
