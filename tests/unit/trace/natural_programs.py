"""Small programs that use random numbers in many ways: each takes a generator."""

import bisect
import collections
import copy
import dataclasses
import decimal
import fractions
import functools
import heapq
import itertools
import json
import math
import operator
import pickle
import random
import statistics
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[np.random.Generator], Any]


def _kept(z: Any) -> Any:
    """What code that is strict about types does."""
    if type(z) is not float:
        raise TypeError(f"expected a float, got {type(z).__name__}")
    return z


def _said(function: Any, *arguments: Any) -> str:
    """The error that a function raises."""
    try:
        return repr(function(*arguments))
    except (TypeError, ZeroDivisionError) as error:
        return repr(error)


def _shuffled(rng: np.random.Generator, shuffle: Any, things: Any) -> Any:
    other = things
    shuffle(things)
    return other


@dataclasses.dataclass
class Pair:
    one: Any
    two: Any


Named = collections.namedtuple("Named", ["a", "b"])

NUMBERS: dict[str, Program] = {
    "float": lambda r: r.laplace(),
    "type of a number": lambda r: [type(r.normal()) is float, type(random.gauss(0, 1)), type(r.normal(size=2)[0])],
    "type is asked for": lambda r: _kept(r.laplace()),
    "type of an array": lambda r: [type(r.normal(size=2)) is np.ndarray, type(r.integers(5)), type(r.binomial(3, 0.5))],
    "class": lambda r: [r.normal().__class__, r.integers(3).__class__, r.random(2).__class__.__name__],
    "isinstance": lambda r: [isinstance(r.normal(), np.floating), isinstance(r.normal(), float)],
    "sum": lambda r: r.normal() + 1,
    "sums": lambda r: sum(r.normal() for _ in range(9)),
    "sums with a start": lambda r: sum(r.normal(size=5), 0.5),
    "fsum": lambda r: math.fsum(r.normal(size=9).tolist()),
    "difference": lambda r: 1 - r.normal(),
    "product": lambda r: 3 * r.normal() * 2,
    "quotient": lambda r: [1 / r.normal(), r.normal() / 3],
    "floor division": lambda r: [r.normal() // 0.3, 5 // r.normal(), r.integers(9) // 2],
    "remainder": lambda r: [r.normal() % 0.3, 5 % r.normal(), r.integers(9) % 4],
    "divmod": lambda r: [divmod(r.normal(), 0.3), divmod(7, r.normal()), divmod(r.integers(5, 9), 3)],
    "power": lambda r: [r.random() ** 2, 2 ** r.normal(), r.random() ** 0.5, (-r.random()) ** 0.5, r.integers(9) ** 2],
    "power with a modulus": lambda r: pow(random.randint(1, 99), 3, 7),
    "negative": lambda r: [-r.normal(), +r.normal(), abs(r.normal()), ~r.integers(9), -random.randint(0, 5)],
    "bits": lambda r: [r.integers(9) ^ 3, 3 | random.getrandbits(3), r.integers(9) & 4, 1 << random.randint(0, 4)],
    "comparisons": lambda r: [r.normal() < 0, r.normal() >= 0, r.normal() == 0, r.normal() != 1, 1 > r.random() > 0],
    "compared with each other": lambda r: (a := r.normal()) < (b := r.normal()) and b > a,
    "maximum": lambda r: [max(0, r.normal()), min(r.normal(), 0.0), max(r.normal() for _ in range(4))],
    "round": lambda r: [round(r.normal()), round(r.normal(), 2), round(r.normal(size=2)[0], 1), round(r.integers(9))],
    "whole": lambda r: [int(5 * r.normal()), math.floor(r.normal()), math.ceil(r.normal()), math.trunc(9 * r.random())],
    "float()": lambda r: [float(r.normal()), float(r.integers(5)), float(r.normal(size=1)[0])],
    "bool()": lambda r: [bool(r.normal()), bool(r.integers(2)), not r.normal()],
    "complex": lambda r: [complex(r.normal(), 1), r.normal() * 1j],
    "text": lambda r: [
        str(r.normal()),
        repr(r.normal()),
        f"{r.normal():.3f}",
        f"{r.normal()}",
        format(r.normal(), ".2f"),
    ],
    "text of numpy's": lambda r: [str(r.normal(size=2)[0]), repr(r.normal(size=2)[0]), repr(r.integers(9))],
    "text of an array": lambda r: [str(r.normal(size=3)), repr(r.normal(size=3)), f"{r.integers(9, size=2)}"],
    "json": lambda r: json.dumps({"a": r.normal(), "b": [random.gauss(0, 1), random.randint(0, 9)]}),
    "hash": lambda r: [hash(r.normal()), hash(r.integers(9)), hash((r.normal(), 1))],
    "set": lambda r: sorted({r.normal(), r.normal(), 0.5}),
    "one in a set": lambda r: {r.normal()},
    "keys": lambda r: {r.integers(3): "a", random.randint(5, 6): r.normal()},
    "counter": lambda r: collections.Counter(r.integers(3, size=20).tolist()),
    "default dict": lambda r: collections.defaultdict(float, a=r.normal()),
    "named tuple": lambda r: Named(r.normal(), 1),
    "copies": lambda r: [copy.copy(r.normal()), copy.deepcopy([r.normal(), r.normal(size=2)])],
    "pickle": lambda r: pickle.loads(pickle.dumps([r.normal(), r.normal(size=2), r.integers(3)])),
    "struct": lambda r: struct.pack("<dq", r.normal(), random.randint(0, 9)),
    "decimal": lambda r: decimal.Decimal(r.normal()),
    "fraction": lambda r: fractions.Fraction(r.normal()),
    "methods": lambda r: [(z := r.normal()).hex(), z.is_integer(), z.as_integer_ratio(), z.real, z.conjugate()],
    "methods of numpy's": lambda r: [
        (z := r.normal(size=2)[0]).item(),
        z.round(1),
        z.astype(int),
        z.dtype,
        z.clip(0, 1),
    ],
    "math": lambda r: [math.log(r.random()), math.exp(r.normal()), math.sqrt(r.random()), math.hypot(r.normal(), 1)],
    "more math": lambda r: [
        math.isfinite(r.normal()),
        math.atan2(r.normal(), 2),
        math.erf(r.normal()),
        math.pi * r.random(),
    ],
    "statistics": lambda r: [
        statistics.mean(v := r.normal(size=5).tolist()),
        statistics.stdev(v),
        statistics.median(v),
    ],
    "as an index": lambda r: ["abc"[r.integers(3)], [1, 2, 3][random.randint(0, 2)], list(range(r.integers(2, 5)))],
    "repeated": lambda r: ["ab" * random.randint(1, 3), [0] * r.integers(1, 3)],
    "an error": lambda r: _said(operator.truediv, r.normal(), 0),
    "a type error": lambda r: _said(operator.xor, r.normal(), 1),
    "a sum with a text": lambda r: _said(operator.add, r.normal(), "a"),
    "reduce": lambda r: functools.reduce(operator.add, r.normal(size=4)),
    "accumulate": lambda r: list(itertools.accumulate(r.normal(size=4).tolist())),
    "numpy of one number": lambda r: [np.log(r.random()), np.exp(r.normal()), np.sqrt(r.random()), np.abs(r.normal())],
    "numpy's float": lambda r: [np.float64(1.5) + r.normal(), np.float32(r.normal()), np.float32(1) * r.normal()],
    "an array and a number": lambda r: [
        np.ones(2, np.float32) * r.normal(),
        r.normal() - np.arange(3),
        np.int8(3) + random.randint(1, 2),
    ],
    "in a dataclass": lambda r: dataclasses.asdict(Pair(r.normal(), [r.normal()])),
}
ORDERS: dict[str, Program] = {
    "sorted": lambda r: sorted(r.normal() for _ in range(5)),
    "sorted by a key": lambda r: sorted(range(4), key=lambda k: r.normal() + k),
    "sort": lambda r: (v := r.normal(size=5).tolist()).sort() or v,
    "heapq": lambda r: [*heapq.nsmallest(2, r.normal(size=6)), heapq.heappop(sorted(r.normal(size=3)))],
    "bisect": lambda r: bisect.bisect([0.1, 0.4, 0.8], r.random()),
    "searchsorted": lambda r: [
        np.searchsorted([0.1, 0.4, 0.8], r.random()),
        np.cumsum([0.1, 0.9]).searchsorted(r.random(3)),
    ],
    "digitize": lambda r: np.digitize(r.random(4), [0.2, 0.7]),
    "argmax": lambda r: [
        np.argmax(z := r.gumbel(size=5)),
        z.argmax(),
        int(np.argmin(z)),
        max(range(5), key=lambda i: z[i]),
    ],
    "argsort": lambda r: [
        np.argsort(r.normal(size=4)),
        r.normal(size=4).argsort(),
        np.argpartition(r.normal(size=4), 2),
    ],
    "unique": lambda r: np.unique(r.integers(3, size=9), return_counts=True),
    "shuffled list": lambda r: _shuffled(r, random.shuffle, list("abcde")),
    "shuffled long list": lambda r: _shuffled(r, random.shuffle, list(range(40))),
    "list shuffled by numpy": lambda r: _shuffled(r, r.shuffle, ["truth", "truth", "lie"]),
    "list shuffled by numpy's old functions": lambda r: _shuffled(r, np.random.shuffle, list("abcd")),
    "shuffled array": lambda r: _shuffled(r, r.shuffle, np.arange(5)),
    "shuffled long array": lambda r: [_shuffled(r, r.shuffle, np.arange(30.0)), r.random()],
    "shuffled rows": lambda r: _shuffled(r, r.shuffle, np.arange(12).reshape(4, 3)),
    "shuffled columns": lambda r: (a := np.arange(12).reshape(4, 3), r.shuffle(a, axis=1))[0],
    "shuffled noise": lambda r: _shuffled(r, r.shuffle, r.normal(size=4)),
    "permutation": lambda r: [r.permutation(4), r.permutation(40), r.permutation([3.0, 4.0, 5.0]), r.random()],
    "permutation of texts": lambda r: [r.permutation(["a", "b"]), r.permutation(np.eye(3)), r.permutation(3).tolist()],
    "permuted": lambda r: [r.permuted([1, 2, 3]), r.permuted(np.arange(6).reshape(2, 3), axis=1), r.random()],
    "old permutation": lambda r: [np.random.permutation(4), np.random.permutation([1.0, 2.0]), np.random.rand()],
    "choice": lambda r: [r.choice(5), r.choice([1.5, 2.5]), r.choice(["a", "bc"]), r.choice(4, p=[0.1, 0.2, 0.3, 0.4])],
    "choice of many": lambda r: [r.choice(5, 3), r.choice([1, 2], (2, 2)), r.choice(9, 3, replace=False), r.random()],
    "choice along an axis": lambda r: [
        r.choice(np.arange(6).reshape(2, 3), 2, axis=1),
        r.choice(np.eye(3)),
        r.random(),
    ],
    "choice unshuffled": lambda r: [r.choice(9, 4, replace=False, shuffle=False), r.random()],
    "old choice": lambda r: [
        np.random.choice(4),
        np.random.choice(["a", "b"], 3),
        np.random.choice(5, 2, replace=False),
    ],
    "random.choice": lambda r: [
        random.choice("abc"),
        random.choice([1, 2.5]),
        random.choice(range(9)),
        random.choice([(1,), (2,)]),
    ],
    "random.choices": lambda r: [
        random.choices("ab", k=4),
        random.choices([1, 2], [3, 1]),
        random.choices("ab", cum_weights=[1, 4]),
    ],
    "random.sample": lambda r: [
        random.sample(range(10), 3),
        random.sample(["a", "b"], 2),
        random.sample(range(10**6), 3),
    ],
    "random.sample with counts": lambda r: random.sample(["a", "b"], counts=[3, 2], k=3),
}
SOURCES: dict[str, Program] = {
    "python": lambda r: [
        random.random(),
        random.uniform(1, 2),
        random.gauss(0, 1),
        random.gauss(0, 1),
        random.normalvariate(0, 1),
        random.expovariate(2),
    ],
    "python's others": lambda r: [
        random.triangular(0, 1, 0.3),
        random.betavariate(1, 2),
        random.gammavariate(1, 2),
        random.lognormvariate(0, 1),
        random.vonmisesvariate(0, 1),
        random.paretovariate(2),
        random.weibullvariate(1, 2),
    ],
    "python's integers": lambda r: [
        random.randint(1, 6),
        random.randrange(3),
        random.randrange(2, 9, 3),
        random.getrandbits(5),
        random.getrandbits(80),
        random.randbytes(4),
    ],
    "python's own generator": lambda r: (
        g := random.Random(3),
        g.shuffle(v := [1, 2, 3]),
        g.random(),
        v,
        g.sample("abc", 2),
    )[2:],
    "python's state": lambda r: (
        s := random.getstate(),
        a := random.random(),
        random.setstate(s),
        random.random() == a,
    )[3],
    "seeded": lambda r: (
        random.seed(4),
        np.random.seed(4),
        random.gauss(0, 1),
        np.random.normal(),
        np.random.seed(4),
        np.random.normal(),
    )[2:],
    "old functions": lambda r: [
        np.random.rand(),
        np.random.randn(2),
        np.random.randint(5),
        np.random.laplace(),
        np.random.normal(1, 2, 2),
        np.random.random_sample(),
        np.random.bytes(3),
    ],
    "two old Gaussian numbers": lambda r: [
        np.random.normal(),
        np.random.normal(),
        np.random.standard_normal(3),
        np.random.random(),
    ],
    "an old generator": lambda r: [
        (g := np.random.RandomState(1)).normal(),
        g.normal(),
        g.randint(9, size=2),
        g.choice(3),
        g.multinomial(4, [0.5, 0.5]),
    ],
    "a generator": lambda r: [
        (g := np.random.default_rng(5)).normal(),
        g.spawn(1)[0].normal(),
        g.bit_generator.state["has_uint32"],
    ],
    "laws": lambda r: [
        r.laplace(1, 2),
        r.logistic(),
        r.gumbel(size=2),
        r.standard_cauchy(),
        r.geometric(0.3),
        r.poisson(3),
        r.exponential(2),
        r.gamma(2),
        r.beta(1, 2),
        r.dirichlet([1, 2]),
    ],
    "more laws": lambda r: [
        r.multivariate_normal([0, 1], np.eye(2)),
        r.multinomial(5, [0.2, 0.8]),
        r.binomial(1, 0.3, 4),
        r.hypergeometric(3, 4, 2),
        r.standard_t(3),
        r.bytes(3),
    ],
    "integers": lambda r: [
        r.integers(5),
        r.integers(2, 9, 3),
        r.integers(9, dtype=np.uint8),
        r.integers(0, 1, endpoint=True),
        r.integers(2**63, dtype=np.uint64),
    ],
    "noise as a parameter": lambda r: [
        r.normal(r.normal(), abs(r.normal())),
        random.gauss(r.normal(), 1),
        r.integers(r.integers(2, 9)),
        r.normal(r.normal(size=2)),
    ],
}


def _scipy(r: np.random.Generator) -> Any:
    from scipy import special, stats

    return [
        stats.laplace.ppf(np.random.rand()),
        stats.norm.ppf(r.random(3)),
        stats.norm.rvs(size=2, random_state=r),
        stats.laplace.rvs(),
        stats.laplace.cdf(r.normal()),
        special.ndtri(r.random()),
        special.expit(r.normal(size=2)),
        special.softmax(r.normal(size=3)),
        special.logsumexp(r.normal(size=3)),
    ]


def _pandas(r: np.random.Generator) -> Any:
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "g": ["x", "y", "x"]})
    frame["noisy"] = frame["a"] + r.normal(size=3)
    frame["more"] = frame["a"].apply(lambda v: v + r.laplace())
    grouped = frame.groupby("g")["noisy"].sum() + r.normal()
    series = pd.Series(r.normal(size=3))
    frame.loc[0, "a"] = r.normal()
    return [
        frame.to_dict(),
        grouped.to_dict(),
        series.clip(0).tolist(),
        (series > 0).tolist(),
        series.sum(),
        frame.sample(2, random_state=1).index.tolist(),
        frame.to_csv(),
        series.round(2).to_json(),
        pd.cut(series, [-9, 0, 9]).astype(str).tolist(),
        series.to_numpy(),
    ]


SOURCES |= {"scipy": _scipy, "pandas": _pandas}
