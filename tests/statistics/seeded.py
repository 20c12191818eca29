"""Random numbers of the tests of statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def generator(seed: int | Sequence[int] = 1) -> np.random.Generator:
    """Return a generator whose draws are the same everywhere."""
    return np.random.default_rng(seed)
