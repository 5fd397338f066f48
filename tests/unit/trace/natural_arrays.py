"""Small programs with arrays of random numbers: each takes a generator."""

import io
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[np.random.Generator], Any]


def _set_shape(array: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from numpy 2.5 on, and still allowed
        array.shape = (2, 3)


def _in_place(rng: np.random.Generator, change: Any) -> Any:
    a = rng.normal(size=6)
    b = a
    change(a)
    return b


ARRAYS: dict[str, Program] = {
    "clip": lambda r: [r.normal(size=3).clip(0), r.normal(size=3).clip(max=0), np.clip(r.normal(size=3), -1, 1)],
    "clip of one": lambda r: [np.clip(r.normal(), 0, 1), np.clip(5, 0, r.normal())],
    "xor": lambda r: np.array([1, 0, 1]) ^ (r.random(3) < 0.25).astype(int),
    "xor of bits": lambda r: [int(b ^ r.binomial(1, 0.25)) for b in (0, 1, 1)],
    "where": lambda r: np.where(r.random(4) < 0.5, [1, 0, 1, 0], 0),
    "where of one": lambda r: [np.where(r.random() < 0.5, 1, 0), np.where([True, False], r.normal(), 0)],
    "masks": lambda r: [
        (a := r.normal(size=5))[a > 0],
        np.count_nonzero(a > 0),
        (a > 0).any(),
        (a > 0).sum(),
        a[a > 9],
    ],
    "fancy": lambda r: [
        (a := r.normal(size=(3, 4)))[[0, 2], [1, 3]],
        a[:, ::-1],
        a[..., None].shape,
        a[1],
        a[-1, 2],
        a[None],
    ],
    "cumsum": lambda r: [r.normal(size=4).cumsum(), np.cumprod(r.random(3)), np.diff(r.normal(size=4))],
    "reductions": lambda r: [
        (a := r.normal(size=(2, 3))).sum(),
        a.sum(axis=0),
        a.mean(),
        a.std(),
        a.var(axis=1),
        a.max(),
        a.min(0),
        a.prod(),
    ],
    "sums by numpy": lambda r: [
        np.sum([r.normal(), 1.0]),
        np.mean([r.normal(), r.normal()]),
        np.sum(r.normal(size=3), keepdims=True),
    ],
    "nan functions": lambda r: [
        np.nansum(r.normal(size=3)),
        np.median(r.normal(size=3)),
        np.percentile(r.normal(size=4), 30),
    ],
    "powers": lambda r: [
        r.random(3) ** 2,
        r.random(3) ** 0.5,
        r.random(3) ** -1,
        2 ** r.normal(size=2),
        r.random(2) ** 0.3,
    ],
    "products": lambda r: [
        r.normal(size=(2, 2)) @ np.eye(2),
        np.ones(2) @ r.normal(size=2),
        np.dot(r.normal(size=2), [1, 2]),
        np.outer(r.normal(size=2), [1, 2]),
    ],
    "linear algebra": lambda r: [
        np.linalg.norm(r.normal(size=3)),
        np.linalg.inv(r.normal(size=(2, 2))),
        np.einsum("i,i", r.normal(size=2), [1, 2]),
    ],
    "in place": lambda r: _in_place(r, lambda a: operator.iadd(a, 1)),
    "in place on a slice": lambda r: _in_place(r, lambda a: operator.imul(a[1:3], 2)),
    "in place with noise": lambda r: operator.iadd(np.arange(3.0), r.normal(size=3)),
    "assigned": lambda r: _in_place(r, lambda a: operator.setitem(a, [0, 2], 5.0)),
    "set by a mask": lambda r: _in_place(r, lambda a: operator.setitem(a, a < 0, 0)),
    "set noise": lambda r: (a := np.zeros(3), operator.setitem(a, 1, r.normal()), operator.setitem(a, 0, a[1]))[0],
    "sort in place": lambda r: _in_place(r, lambda a: a.sort()),
    "fill": lambda r: _in_place(r, lambda a: a.fill(2)),
    "put": lambda r: _in_place(r, lambda a: np.put(a, [0], 2)),
    "copyto": lambda r: _in_place(r, lambda a: np.copyto(a, 1.5)),
    "shape": lambda r: _in_place(r, _set_shape),
    "add.at": lambda r: _in_place(r, lambda a: np.add.at(a, [0, 0], 1.0)),
    "out": lambda r: (a := np.empty(3), np.add(r.normal(size=3), 1, out=a), np.clip(a, 0, 1, out=a))[0],
    "out is returned": lambda r: (a := r.normal(size=3), np.multiply(a, 2, out=a) is a, a.clip(0, 1, out=a) is a),
    "out of a draw": lambda r: (a := np.empty(3), r.random(out=a) is a, r.standard_normal(out=a))[0],
    "out of a sum": lambda r: (a := np.zeros(()), np.sum(r.normal(size=3), out=a))[0],
    "shapes": lambda r: [
        (a := r.normal(size=(2, 3))).T,
        a.reshape(-1),
        a.ravel(),
        a.flatten(),
        a.swapaxes(0, 1),
        a.transpose(1, 0),
    ],
    "joins": lambda r: [
        np.concatenate([r.normal(size=2), [1.0]]),
        np.stack([r.normal(size=2)] * 2),
        np.append(r.normal(size=2), 3),
    ],
    "makes": lambda r: [
        np.array([r.normal(), 1]),
        np.full(2, r.normal()),
        np.zeros_like(r.normal(size=2)),
        np.asarray(r.integers(3, size=2)),
    ],
    "asarray is the same": lambda r: np.asarray(a := r.normal(size=2)) is a,
    "types": lambda r: [
        r.normal(size=2).astype(np.float32),
        r.normal(size=2).astype(int),
        r.integers(2, size=3).astype(bool),
        r.random(2).astype(str),
    ],
    "views": lambda r: [
        (a := r.normal(size=2)).view(np.int64),
        a.base,
        a[1:].base is a,
        a.flags.owndata,
        a.tobytes(),
        a.nbytes,
    ],
    "lists": lambda r: [
        r.normal(size=(2, 2)).tolist(),
        list(r.normal(size=2)),
        [*r.integers(3, size=2)],
        r.normal(size=1).item(),
    ],
    "no dimension": lambda r: [
        np.array(r.normal()),
        np.array(r.normal())[()],
        np.asarray(r.normal()).item(),
        np.array(r.normal()) + 1,
    ],
    "unpacked": lambda r: divmod(*r.normal(size=2)),
    "zip": lambda r: [a + b for a, b in zip(r.normal(size=2), [1, 2], strict=True)],
    "several results": lambda r: [
        np.modf(r.normal(size=2)),
        np.divmod(r.normal(size=2), 0.3),
        np.histogram(r.normal(size=9), bins=3),
    ],
    "methods of ufuncs": lambda r: [
        np.add.reduce(r.normal(size=3)),
        np.add.accumulate(r.normal(size=3)),
        np.maximum.outer(r.normal(size=2), [0, 1]),
    ],
    "ufunc options": lambda r: [
        np.add(r.normal(size=2), 1, dtype=np.float32),
        np.add(np.ones(2), r.normal(size=2), where=[True, False], out=np.zeros(2)),
    ],
    "rounded": lambda r: [
        np.round(r.normal(size=2), 1),
        np.rint(r.normal(size=2)),
        np.floor(r.normal()),
        r.normal(size=2).round(),
    ],
    "vectorize": lambda r: np.vectorize(lambda z: z * 2)(r.normal(size=3)),
    "apply along": lambda r: np.apply_along_axis(np.sum, 0, r.normal(size=(2, 2))),
    "masked": lambda r: [np.ma.masked_less(r.normal(size=4), 0), np.ma.array(r.normal(size=2), mask=[0, 1]).sum()],
    "records": lambda r: np.array([(r.normal(), 1)], dtype=[("a", float), ("b", int)]),
    "single": lambda r: [
        r.random(3, dtype=np.float32),
        r.standard_normal(dtype=np.float32),
        r.random(2, np.float32)[0] * 2,
    ],
    "nothing": lambda r: [r.normal(size=0), r.normal(size=0).sum(), r.normal(size=(0, 3)).shape],
    "saved": lambda r: (f := io.BytesIO(), np.save(f, r.normal(size=2)))[0].getvalue(),
    "overlap": lambda r: (a := r.normal(size=4), b := a[1:], operator.iadd(b, a[:-1]), a + 0)[3],
}
