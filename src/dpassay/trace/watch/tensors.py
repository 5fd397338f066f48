"""Torch's numbers followed at its dispatcher: draws, in-place fills, sums and products, also inside layers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from dpassay.trace.laws.picking import picked
from dpassay.trace.watch.choosing import noted as choice_noted
from dpassay.trace.watch.choosing import ordered
from dpassay.trace.watch.deciding import compared_with, placed_among
from dpassay.trace.watch.follow import accumulated, combined, consistent, dotted, joined, moved, of_draw, summed
from dpassay.trace.watch.loaders import is_base_seed
from dpassay.trace.watch.numbers import gathered, plain, with_node
from dpassay.trace.watch.overriding import is_of
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun, current

# For each operation, the distribution, and the position of its first parameter among the arguments, with names.
_PARAMETERS: dict[str, tuple[int, tuple[tuple[str, str, Any], ...]]] = {
    "normal": (0, (("loc", "mean", 0.0), ("scale", "std", 1.0))),
    "normal_": (1, (("loc", "mean", 0.0), ("scale", "std", 1.0))),
    "uniform_": (1, (("low", "from", 0.0), ("high", "to", 1.0))),
    "bernoulli_": (1, (("p", "p", 0.5),)),
    "bernoulli": (0, (("p", "p", 0.5),)),
    "exponential_": (1, (("lambd", "lambd", 1.0),)),
}
_DRAWS = {
    **dict.fromkeys(("randn", "randn_like"), "standard_normal"),
    **dict.fromkeys(("rand", "rand_like", "uniform_"), "uniform"),
    **dict.fromkeys(("normal", "normal_"), "normal"),
    **{"exponential_": "expovariate"},
    **{name: name.strip("_") for name in ("bernoulli", "bernoulli_", "multinomial", "randint")},
    **{name: name.strip("_") for name in ("randperm", "geometric_", "log_normal_", "cauchy_", "poisson", "random_")},
}
_UFUNCS: dict[str, Any] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "neg": np.negative},
    **{"abs": np.abs, "sign": np.sign, "log": np.log, "log1p": np.log1p, "exp": np.exp, "sqrt": np.sqrt},
    **{"cos": np.cos, "sin": np.sin, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round},
    **{"clamp": np.clip, "where": np.where, "nan_to_num": np.nan_to_num, "tanh": np.tanh, "pow": np.power},
    **{"lt": np.less, "gt": np.greater, "le": np.less_equal, "ge": np.greater_equal},
    **{"maximum": np.maximum, "minimum": np.minimum, "reciprocal": np.reciprocal},
}
_EQUAL = {"eq": np.equal, "ne": np.not_equal}
_DECIDING = {"lt", "gt", "le", "ge", *_EQUAL}
_MOVES = {
    *("view", "_unsafe_view", "reshape", "transpose", "t", "permute", "squeeze", "unsqueeze", "expand", "slice"),
    *("select", "clone", "detach", "alias", "index", "flatten", "lift_fresh", "_reshape_alias", "repeat"),
}
_PRODUCTS = {"mv", "mm", "dot"}
_watched: MutableMapping[Any, Node] = WeakTensorKeyDictionary()
_named: list[bool] = []  # not empty while a distribution draws that is recorded under its own name


def array(tensor: Any) -> Array:
    """The numbers of a tensor; those of fewer than 32 bits as floats."""
    whole = tensor.detach().cpu()
    return np.asarray(whole.numpy() if whole.dtype not in (torch.bfloat16, torch.float16) else whole.float().numpy())


class WatchTorch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what torch draws, and follows it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would import its compiler otherwise, which takes seconds: longer than a trace."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run, name = current(), func.overloadpacket.__name__
        kwargs = kwargs or {}
        if run is None or _named:
            return func(*args, **kwargs)
        if name in _DRAWS or name in ("native_dropout", "multinomial", "randperm"):
            before = state_of_torch(kwargs.get("generator"))
            result = func(*args, **kwargs)
            run.take_bits(before, state_of_torch(kwargs.get("generator")))
            if name == "random_" and is_base_seed(sys._getframe(1)):
                return result
            if name == "native_dropout":
                return _dropped(run, args, result)
            if name == "multinomial":
                return _chosen(run, result, args, kwargs)
            return _permuted(run, result) if name == "randperm" else _drawn(run, name, result, args, kwargs)
        _decide(name, args)
        node = _followed(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if name in ("argmax", "argmin") and len(args) == 1:
            _pick(name, args[0], result)
        if isinstance(result, torch.Tensor):
            _keep(run, result, node, written_over=name.endswith("_"))
        return result


def _pick(name: str, tensor: Any, result: Any) -> None:
    """Record which of some noisy numbers is the largest or smallest, as a draw."""
    index = int(result)
    with suppress(Exception):  # it must not disturb the code
        at = picked(_node(tensor), index, largest=name == "argmax")
        if at != index:
            result.fill_(at)


def state_of_torch(generator: Any) -> int:
    """A value that identifies the state of a generator."""
    state = (torch.default_generator if generator is None else generator).get_state()
    return hash(state.numpy().tobytes())


def _decide(name: str, args: Any) -> None:
    """Record what a function of torch decides by noisy numbers."""
    nodes = [_node(one) for one in args[:2]]
    if not any(node is not None for node in nodes):
        return
    if name in _DECIDING and len(args) == 2:
        compared_with(_UFUNCS.get(name, _EQUAL.get(name)), nodes, [_value(one) for one in args])
    elif name in ("floor", "ceil", "trunc", "round"):
        compared_with(_UFUNCS[name], nodes[:1], [])
    elif name == "_to_copy" and array(args[0]).dtype.kind == "f":
        return
    elif name in ("searchsorted", "bucketize"):
        numbers, edges = (1, 0) if name == "searchsorted" else (0, 1)
        placed_among(nodes[numbers], _value(args[edges]))


def _keep(run: RecordedRun, result: Any, node: Node | None, written_over: bool = False) -> None:
    if node is not None and tuple(result.shape) == node.offset.shape and consistent(node, array(result)):
        after = run.note(node, np.array(array(result)))
        if run.forced:
            with torch.no_grad():
                result.copy_(torch.from_numpy(np.asarray(after)))
        _watched[result] = node
    elif written_over:
        _watched.pop(result, None)


def _drawn(run: RecordedRun, name: str, result: Any, args: Any, kwargs: Any) -> Any:
    if name == "randint":
        low, high = (0, args[0]) if isinstance(args[1], list | tuple) else args[:2]
        return noted(run, "integers", {"low": low, "high": high}, result)
    first, names = _PARAMETERS.get(name, (0, ()))
    given = args[first:]
    parameters = {
        own: _value(given[k] if len(given) > k else kwargs.get(theirs, default))
        for k, (own, theirs, default) in enumerate(names)
    }
    return noted(run, _DRAWS[name], parameters, result)


def noted(run: RecordedRun, distribution: str, parameters: dict[str, Any], result: Any) -> Any:
    """A draw that torch made, or the requested values in its place if there are any."""
    draw = run.drawn("torch", distribution, parameters, array(result))
    _replace(result, draw)
    node = of_draw(draw)
    run.note(node, draw.values)
    _watched[result] = node
    return result


def _chosen(run: RecordedRun, result: Any, args: Any, kwargs: Any) -> Any:
    """One of several, with its probabilities; several without replacement are only recorded."""
    weights = array(args[0]).astype(float)
    many = args[1] if len(args) > 1 else kwargs.get("num_samples", 1)
    replace = many == 1 or bool(args[2] if len(args) > 2 else kwargs.get("replacement", False))
    p = weights / weights.sum(axis=-1, keepdims=True)
    draw = choice_noted(run, "torch", array(result), p, weights.shape[-1], replace)
    _replace(result, draw)
    return result


def _permuted(run: RecordedRun, result: Any) -> Any:
    """A permutation, of a few or of many."""
    at = array(result).tolist()
    order = ordered(run, "torch", at, range(len(at)))
    if order != at:
        with torch.no_grad():
            result.copy_(torch.tensor(order))
    return result


def _replace(result: Any, draw: DrawRecord) -> bool:
    """Write the requested values if they differ from those drawn."""
    if np.array_equal(array(result), draw.values, equal_nan=draw.values.dtype.kind == "f"):
        return False
    with torch.no_grad():
        result.copy_(torch.from_numpy(draw.values))
    return True


def _dropped(run: RecordedRun, args: Any, result: Any) -> Any:
    """Dropout: each number times 0 or 1, with kept numbers scaled up."""
    given, p = args[0], float(args[1])
    output, mask = result
    draw = run.drawn("torch", "bernoulli", {"p": 1 - p}, array(mask).astype(np.uint8))
    if _replace(mask, draw):
        with torch.no_grad():
            output.copy_(given * mask / (1 - p) if p < 1 else given * 0)
    if _node(given) is None and p < 1:
        node = combined(np.multiply, [of_draw(draw), None], [draw.values, array(given).astype(float) / (1 - p)])
        _keep(run, output, node)
    return output, mask


def _value(given: Any) -> Any:
    return array(given) if isinstance(given, torch.Tensor) else given


def _node(value: Any) -> Node | None:
    return _watched.get(value) if isinstance(value, torch.Tensor) else None


def _followed(func: Any, name: str, args: Any, kwargs: Any) -> Node | None:
    """The node of the result, given the noise in the arguments."""
    first = _node(args[0]) if args else None
    if name in _MOVES:
        if first is None:
            return None
        return moved(first, lambda part: func(torch.from_numpy(np.array(part)), *args[1:], **kwargs).numpy())
    if name in ("_to_copy", "_conj", "contiguous") and first is not None:
        return moved(first, np.array) if (kwargs.get("dtype") or torch.float32).is_floating_point else None
    if name in ("cat", "stack") and any(_node(one) is not None for one in args[0]):
        rest = args[1:]
        return joined(
            [(_node(one), array(one)) for one in args[0]],
            lambda parts: func([torch.from_numpy(np.array(part)) for part in parts], *rest, **kwargs).numpy(),
        )
    if name in _PRODUCTS and len(args) == 2 and not kwargs:
        return dotted([_node(one) for one in args], [_double(_value(one)) for one in args])
    if name == "cumsum" and first is not None:
        return accumulated(first, args[1]) if len(args) == 2 and not kwargs else None
    if name in ("sum", "mean") and first is not None:
        axis = args[1] if len(args) > 1 else None
        axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
        return summed(first, axis, mean=name == "mean") if len(args) < 3 and not kwargs else None
    ufunc = np.subtract if name == "rsub" else _UFUNCS.get(name.removesuffix("_"))
    if ufunc is None or kwargs.get("rounding_mode") is not None or kwargs.get("alpha", 1) != 1:
        return None
    operands = [args[1], args[0]] if name == "rsub" else list(args)
    nodes = [_node(one) for one in operands]
    if not any(node is not None for node in nodes):
        return None
    extra = {"a_min": kwargs["min"]} if "min" in kwargs else {}
    extra |= {"a_max": kwargs["max"]} if "max" in kwargs else {}
    if set(kwargs) - {"min", "max", "alpha"}:
        return None
    return combined(ufunc, nodes, [_double(_value(one)) for one in operands], extra or None)


def _double(value: Any) -> Any:
    return value.astype(float) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def named_distributions() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """What is replaced in torch: distributions made from uniform numbers, and conversions from and to numpy."""
    laplace = import_module("torch.distributions.laplace")
    if is_of(laplace, laplace.Laplace.rsample):
        yield laplace.Laplace, "rsample", _rsample(laplace.Laplace.rsample)
    yield torch.Tensor, "item", _out(torch.Tensor.item)
    yield torch.Tensor, "tolist", _out(torch.Tensor.tolist)
    yield torch.Tensor, "numpy", _out(torch.Tensor.numpy)
    for name in ("tensor", "as_tensor", "from_numpy"):
        yield torch, name, _in(getattr(torch, name))


@cache
def _out(function: Callable[..., Any]) -> Callable[..., Any]:
    """A tensor's numbers as numpy or Python numbers, which stay watched."""

    @wraps(function)
    def out(self: Any, *arguments: Any, **options: Any) -> Any:
        result, node = function(self, *arguments, **options), _node(self)
        if current() is None or node is None or _named:
            return result
        if isinstance(result, list):
            return with_node(np.array(array(self)), moved(node, np.array), scalar=False).tolist()
        if isinstance(result, np.ndarray):
            return with_node(result, moved(node, np.array), scalar=False)
        return with_node(result, moved(node, lambda part: part.reshape(())), scalar=True)

    return out


@cache
def _in(function: Callable[..., Any]) -> Callable[..., Any]:
    """A tensor from numpy or Python numbers, which stay watched."""

    @wraps(function)
    def made(data: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        node = gathered(data) if run is not None else None
        result = function(plain(data), *arguments, **options)
        if run is not None and node is not None:
            _keep(run, result, moved(node, np.array))
        return result

    return made


@cache
def _rsample(draw: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(draw)
    def drawn(self: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or _named or type(self).__module__ != draw.__module__:  # a subclass: its scale may vary
            return draw(self, *arguments, **options)
        _named.append(True)
        try:
            before = state_of_torch(None)
            result = draw(self, *arguments, **options)
            run.take_bits(before, state_of_torch(None))
            return noted(run, "laplace", {"loc": array(self.loc), "scale": array(self.scale)}, result)
        finally:
            _named.pop()

    return drawn
