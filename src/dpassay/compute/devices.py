"""Where numbers are computed: by numpy, by numba's kernels, or on a GPU. All give the same counts."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from dpassay.compute.kernels.draws import Span
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.kernels.philox import Key
from dpassay.errors import InputError

DEVICES = ("cpu", "cuda", "numpy")
NO_GPU = "there is no CUDA device that torch and Triton can use here: working on the CPU"


class Numbers(Protocol):
    """What computes the counts: `numpy_kernels`, `numba_kernels` and `triton_kernels` are such modules."""

    def count_votes(self, key: Key, start: int, runs: int, dim: int, ones: Span) -> int:
        """See `numpy_kernels.count_votes`."""

    def count_guesses(
        self, key: Key, start: int, runs: int, table: LikelihoodRatioTable, low: float, high: float, resolution: float
    ) -> tuple[int, int]:
        """See `numpy_kernels.count_guesses`."""

    def describe(self) -> str:
        """A description of what computes the counts."""


@lru_cache
def has_numba() -> bool:
    """Whether there are CPU kernels here."""
    return find_spec("numba") is not None


@lru_cache
def has_gpu() -> bool:
    """Whether there is a GPU that torch and Triton can use."""
    if find_spec("torch") is None or find_spec("triton") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def usable(device: str) -> tuple[str, str]:
    """The device that will be used when this one is requested, and a note if it is a different one.

    >>> usable("cpu")[0], usable("numpy")
    ('cpu', ('numpy', ''))
    >>> usable("abacus")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: unknown device 'abacus'; there are cpu, cuda, numpy
    """
    if device not in DEVICES:
        raise InputError(f"unknown device {device!r}; there are {', '.join(DEVICES)}")
    return ("cpu", NO_GPU) if device == "cuda" and not has_gpu() else (device, "")


def numbers(device: str = "cpu") -> Numbers:
    """What computes the counts on a device: numba's kernels on a CPU that has them, otherwise numpy.

    >>> numbers("numpy").describe()
    'numpy ...'
    """
    device, _ = usable(device)
    library = "triton" if device == "cuda" else "numba" if device == "cpu" and has_numba() else "numpy"
    return cast(Numbers, import_module(f"dpassay.compute.kernels.{library}_kernels"))
