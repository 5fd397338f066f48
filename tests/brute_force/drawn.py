"""Random cases for the enumeration: sampling, stages in any order, every noise, stages behind it, few dimensions."""

from __future__ import annotations

from random_pipelines import Case, Maker


class Drawer(Maker):
    """Draws small pipelines with a claim each."""

    def length(self) -> str:
        return self.one_of("1", "0.5", "2", "0.3", "1/3", "sqrt(2)", f"{0.2 + 3 * self.rng.random():.2g}")

    def limits(self) -> str:
        low = self.one_of("0", "-1", "-0.36", "2", "0.3", "-3", f"{self.rng.normal():.2f}")
        return f"clamp({low}, {low} + {self.length()})"

    def vector(self) -> str:
        """A stage that bounds a vector."""
        return self.one_of(
            f"clip({self.norm()}, {self.length()})",
            f"clip({self.norm()}, {self.length()})",
            self.limits(),
            self.limits(),
            "normalise(l2)",
            "squash(tanh)",
            "squash(sigmoid)",
            "minmax",
            "round",
        )

    def around(self, stages: list[str]) -> str:
        """Limits of what these stages give, or wider ones: where a value lies among them matters most."""
        for stage in reversed(stages):
            name, *arguments = stage.replace("(", ", ").rstrip(")").split(", ")
            more = self.one_of("0", "0", "0.5", "1", "3")
            if name == "clamp":
                return f"clamp({arguments[0]} - {more}, {arguments[1]} + {self.one_of('0', more)})"
            if name == "clip":
                return f"clamp(-{arguments[1]} - {more}, {arguments[1]} + {self.one_of('0', more)})"
        return f"clamp(-1 - {self.length()}, 1 + {self.length()})"

    def added(self) -> str:
        """A noise."""
        return self.one_of(
            *(f"laplace({self.length()})" for _ in range(3)),
            *(f"gaussian({self.length()})" for _ in range(2)),
            f"onesided({self.length()})",
            f"onesided({self.length()}, {self.one_of('0', '0.25')}, {self.one_of('0', '0.3')})",
            f"leak({self.one_of('0.3', '0.5', '1')})",
            f"radial({self.norm()}, {self.length()})",
            f"discrete_laplace({self.length()})",
            f"discrete_gaussian({self.length()})",
            *(f"truncated_laplace({self.length()}, {self.one_of('0.5', '1', '3', '8')})" for _ in range(2)),
            *(
                f"staircase({self.one_of('0.5', '1', '2')}, {self.length()}, {self.one_of('0', '0.38', '0.5', '1')})"
                for _ in range(2)
            ),
        )

    def small(self) -> tuple[str, int, str]:
        """The next pipeline, its dimension and its neighbours."""
        dim = int(self.one_of(1, 1, 1, 2))
        start = self.one_of(
            *("poisson", "poisson", "poisson", "subsample", "subsample", "subsample", "shuffle", "dropout"),
            *("rows", "query", "counts", "records", "records", "any", "any"),
        )
        stages: list[str] = []
        neighbours = "replace-record"
        if start == "poisson":
            stages.append(f"poisson({self.one_of('0.5', '0.1', '0.9', '0.01', '0.3', '1')})")
            neighbours = self.one_of("add-remove-record", "replace-record")
        elif start == "subsample":
            n = int(self.one_of(2, 3, 4, 5, 10, 20, 200))
            m = int(self.one_of(1, max(1, n // 2), max(1, n - 1), min(2, n), n if self.often(0.3) else 1))
            stages.append(f"subsample({m}, {n})")
        elif start == "shuffle":
            stages.append(f"shuffle({self.one_of(1, 2, 2, 3)})")
            dim = 1
        elif start == "dropout":
            stages += [f"dropout({self.one_of('0.3', '0.5', '0')})", "encode"]
            neighbours = self.one_of("word", "word", "any", "words(2)")
        elif start == "rows":
            stages.append("rows")
        elif start in ("query", "counts"):
            stages.append(f"{start}({self.norm()}, {self.length()})")
            neighbours = self.one_of("query", "query", "replace-record", "add-remove-record")
        elif start == "records":
            neighbours = self.one_of("replace-record", "add-remove-record", "add-remove-record", "user", "group(3)")
        else:
            neighbours = "any"
        kept = start in ("poisson", "subsample", "records", "any") and self.often(0.1)
        if kept:
            stages.append(f"onehot({self.one_of(1, 2)})")
            dim = 1
        elif start not in ("query", "counts") or self.often(0.3):
            stages += [self.vector() for _ in range(1 if self.often(0.8) else 2)]
        noise = self.added()
        if neighbours in ("any", "query") and self.often(0.1):
            low = self.one_of("0", "-1")
            noise = f"bounded_laplace({self.length()}, {low}, {low} + {self.length()})"
        if dim == 1 and not kept and start in ("poisson", "subsample", "any", "records") and self.often(0.05):
            stages.append("repeat(2)")
        if noise.startswith("discrete") and self.often(0.7) and not kept and start not in ("counts",):
            stages.append("round")
        stages.append(noise)
        sampled = start in ("poisson", "subsample", "records")
        if self.often(0.75 if sampled else 0.4):
            some = self.limits(), self.vector(), self.around(stages)
            behind = [self.one_of(*some) for _ in range(1 + self.often(0.25))]
            stages += (
                behind if self.often(0.9) else [*behind[1:], self.one_of("binary(0, 0)", "binary(1, 1)", "decode")]
            )
        if self.often(0.1):
            stages.append(f"times({self.one_of(2, 2, 3)})")
        return " | ".join(stages), dim, neighbours

    def choice(self) -> tuple[str, int, str]:
        """Bits, categories and choices."""
        k, kind = int(self.rng.integers(1, 5)), self.one_of("category", "hash", "onehot", "bloom", "scores", "scores")
        steps = " | times(2)" if self.often(0.15) else ""
        if kind in ("category", "hash"):
            return f"{kind}({k}) | flip({self.chance()})" + steps, 1, "any"
        if kind in ("onehot", "bloom"):
            first = f"onehot({k})" if kind == "onehot" else f"bloom({k}, {self.rng.integers(1, k + 1)})"
            return f"{first} | {self.bit_noise()}" + steps, 1, "any"
        chooses = self.one_of(
            *(f"exponential({self.length()})", f"softmax({self.length()})"),
            f"noisymax({self.one_of('laplace', 'exponential', 'gumbel')}, {self.length()})",
        )
        if self.often(0.4):
            return f"query({self.norm()}, {self.length()}) | {chooses}" + steps, min(k, 3), "query"
        first = self.one_of(f"clip({self.norm()}, {self.length()})", self.limits(), "squash(tanh)", "minmax")
        return f"{first} | {chooses}" + steps, min(k, 3), "any"

    def case(self) -> Case:
        text, dim, neighbours = self.choice() if self.often(0.1) else self.small()
        delta = "0" if self.often(0.45) else self.one_of("1e-4", "0.01", "0.02", "0.1", "0.3", "0.5", "0.9")
        epsilon = self.one_of("0", "0.1", "0.3", "0.5", "1", "1", "2", "5", f"{3 * self.rng.random():.3f}")
        return Case(text, dim, neighbours, epsilon, delta)
