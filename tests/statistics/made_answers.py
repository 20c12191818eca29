"""Answers of units that are drawn from known shares."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Column = NDArray[Any]


def draw_answers(
    shares: ArrayLike, units: Sequence[int], n_answers: int, correlation: Sequence[float], rng: np.random.Generator
) -> tuple[Column, Column, Column]:
    """Return answers, groups and units by row; two answers of a unit have the correlation of its group."""
    group, codes = np.repeat(np.arange(len(units)), units), []
    for code in group.tolist():
        share, rho = np.asarray(shares, dtype=np.float64)[code], correlation[code]
        codes.append(rng.choice(len(share), size=n_answers, p=rng.dirichlet(share * (1 - rho) / rho)))
    return np.concatenate(codes), group.repeat(n_answers), np.arange(len(group)).repeat(n_answers)
