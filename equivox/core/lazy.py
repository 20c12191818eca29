"""Packages that are imported when they are first used: a command that computes nothing starts without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Later", "NDArray", "datasets", "np", "on_one_core", "pa", "pandas", "pc", "pq", "soundfile", "torch"]


class Later:
    """Stands for a package, and keeps each name of it that was used."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # `inspect` asks everything, also where the package is not installed
            raise AttributeError(name)
        found = getattr(import_module(self._package), name)
        setattr(self, name, found)
        return found


@contextmanager
def on_one_core() -> Iterator[None]:
    """Let numpy multiply matrices on one core in this block, or in the function that this decorates.

    The matrices of a statistic are small: more cores bring little, wait for each other, and take twice the time where
    another process is busy.
    """
    # Only what is loaded can be told.
    import_module("numpy")
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


if TYPE_CHECKING:
    import datasets
    import numpy as np
    import pandas
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import soundfile
    import torch
    from numpy.typing import NDArray
else:
    NDArray = Any
    np, pa, pc, pq = map(Later, ("numpy", "pyarrow", "pyarrow.compute", "pyarrow.parquet"))
    datasets, pandas, soundfile, torch = map(Later, ("datasets", "pandas", "soundfile", "torch"))
