"""Torch's numbers followed at its dispatcher: draws, in-place fills, sums and products, also inside layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from dpassay.trace.numbers import combined, moved, of_draw
from dpassay.trace.record import Array, Node, Run, current

# For each operation the distribution, and where its location and its scale stand among the arguments.
_NORMAL = {"normal": 0, "normal_": 1}
_DRAWS = {
    **dict.fromkeys(("randn", "randn_like"), "standard_normal"),
    **dict.fromkeys(("rand", "rand_like", "uniform_"), "uniform"),
    **dict.fromkeys(_NORMAL, "normal"),
    **{name: name.strip("_") for name in ("exponential_", "bernoulli", "bernoulli_", "multinomial", "randint")},
    **{name: name.strip("_") for name in ("randperm", "geometric_", "log_normal_", "cauchy_", "poisson", "random_")},
}
_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "neg": np.negative}
_MOVES = {
    *("view", "_unsafe_view", "reshape", "transpose", "t", "permute", "squeeze", "unsqueeze", "expand", "slice"),
    *("select", "clone", "detach", "alias", "index", "flatten", "lift_fresh", "_reshape_alias"),
}
_watched: MutableMapping[Any, Node] = WeakTensorKeyDictionary()
_named: list[bool] = []  # not empty while a distribution draws that is noted by its own name


def array(tensor: Any) -> Array:
    """The numbers of a tensor; those of fewer than 32 bits as floats."""
    plain = tensor.detach().cpu()
    return np.asarray(plain.numpy() if plain.dtype not in (torch.bfloat16, torch.float16) else plain.float().numpy())


class WatchTorch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes what torch draws, and follows it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run, name = current(), func.overloadpacket.__name__
        kwargs = kwargs or {}
        if run is None or _named:
            return func(*args, **kwargs)
        if name in _DRAWS:
            return _drawn(run, name, func(*args, **kwargs), args, kwargs)
        node = _followed(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if node is not None and isinstance(result, torch.Tensor) and tuple(result.shape) == node.offset.shape:
            run.note(node, array(result))
            _watched[result] = node
        elif name.endswith("_") and isinstance(result, torch.Tensor):
            _watched.pop(result, None)  # written over
        return result


def _drawn(run: Run, name: str, result: Any, args: Any, kwargs: Any) -> Any:
    parameters: dict[str, Any] = {}
    if name in _NORMAL:
        given = args[_NORMAL[name] :]
        parameters = {
            "loc": _value(given[0] if given else kwargs.get("mean", 0.0)),
            "scale": _value(given[1] if len(given) > 1 else kwargs.get("std", 1.0)),
        }
    return noted(run, _DRAWS[name], parameters, result)


def noted(run: Run, distribution: str, parameters: dict[str, Any], result: Any) -> Any:
    """A draw that torch made, with the values that are asked for instead if there are some."""
    draw = run.drawn("torch", distribution, parameters, array(result))
    with torch.no_grad():
        result.copy_(torch.from_numpy(draw.values))
    if result.is_floating_point():
        node = of_draw(draw)
        run.note(node, draw.values)
        _watched[result] = node
    return result


def _value(given: Any) -> Any:
    return array(given) if isinstance(given, torch.Tensor) else given


def _node(value: Any) -> Node | None:
    return _watched.get(value) if isinstance(value, torch.Tensor) else None


def _followed(func: Any, name: str, args: Any, kwargs: Any) -> Node | None:
    """What the noise in the arguments becomes."""
    first = _node(args[0]) if args else None
    if name in _MOVES:
        return (
            None
            if first is None
            else moved(first, lambda part: func(torch.from_numpy(part.copy()), *args[1:], **kwargs))
        )
    ufunc = np.subtract if name == "rsub" else _UFUNCS.get(name.removesuffix("_"))
    if ufunc is None or kwargs.get("rounding_mode") is not None:
        return None
    operands = [args[1], args[0]] if name == "rsub" else list(args[: ufunc.nin])
    nodes = [_node(one) for one in operands]
    if not any(nodes) or kwargs.get("alpha", 1) != 1:
        return None
    return combined(ufunc, nodes, [_value(one) for one in operands])


def named_distributions() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Distributions that torch makes of uniform numbers, to be noted by their names."""
    yield torch.distributions.Laplace, "rsample", _rsample(torch.distributions.Laplace.rsample)


def _rsample(draw: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(draw)
    def drawn(self: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or _named:
            return draw(self, *arguments, **options)
        _named.append(True)
        try:
            result = draw(self, *arguments, **options)
            return noted(run, "laplace", {"loc": array(self.loc), "scale": array(self.scale)}, result)
        finally:
            _named.pop()

    return drawn
