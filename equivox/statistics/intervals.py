"""Confidence interval of the population nTVD by test inversion; docs/validity.md explains and checks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from equivox.statistics.arrays import Floats, Ints
from equivox.statistics.distance import ntvd_of_shares

TINY = 1e-12
"""Replaces a standard error of zero, so that any deviation is far larger than its noise."""

MAX_NOISE_CELLS = 4_000_000
"""Cells of noise in memory at a time (32 MiB as doubles); with very many values, fewer draws are made."""


def noise_of_clusters(counts: Ints, group: Ints, slices: Sequence[slice], n_groups: int) -> list[Floats]:
    """Return, for each group, the pull of its clusters on its distribution, m x V.

    Group g's distribution is a ratio of sums over its m clusters; a cluster's pull is its residual
    (x_c - N_c P_g) / N_g, and √(m/(m-1)) makes Σ_c pull pullᵀ an unbiased estimate of the covariance of P_g.
    """
    factors = []
    for code in range(n_groups):
        own = counts[group == code].astype(np.float64)
        own = own[np.lexsort(own.T[::-1])]
        pulls = [_pull(own[:, columns]) for columns in slices]
        m = len(own)
        factors.append(np.concatenate(pulls, axis=1) * np.sqrt(m / (m - 1)))
    return factors


def _pull(own: Floats) -> Floats:
    sizes = own.sum(axis=1, keepdims=True)
    return np.asarray((own - sizes * (own.sum(axis=0) / sizes.sum())) / sizes.sum(), dtype=np.float64)


def noise_of_responses(
    rows: Ints, columns: Ints, group_of_row: Ints, slices: Sequence[slice], n_groups: int
) -> list[Floats]:
    """Return, for each group, a V x V root of the covariance of its distribution over responses."""
    n_columns = slices[-1].stop
    factors = []
    for code in range(n_groups):
        mine = group_of_row[rows] == code
        present, row = np.unique(rows[mine], return_inverse=True)
        m = len(present)
        moments = _second_moments(row, columns[mine], m, n_columns, slices)
        scale, axes = np.linalg.eigh(moments)
        root = np.sqrt(np.clip(scale, 0, None))[:, None] * axes.T
        factors.append(root * np.sqrt(m / max(m - 1, 1)))
    return factors


def _second_moments(row: Ints, columns: Ints, m: int, n_columns: int, slices: Sequence[slice]) -> Floats:
    """Σ over responses of pull pullᵀ, from sparse counts: no responses x values array is made."""
    from scipy import sparse

    ones = np.ones(len(row))
    counts = sparse.csr_array((ones, (row, columns)), shape=(m, n_columns))
    sizes = np.zeros((m, len(slices)))
    shares = np.zeros((len(slices), n_columns))
    inverse = np.zeros(n_columns)
    for index, part in enumerate(slices):
        block = counts[:, [*range(part.start, part.stop)]]
        sizes[:, index] = block.sum(axis=1)
        total = sizes[:, index].sum()
        shares[index, part] = block.sum(axis=0) / total
        inverse[part] = 1.0 / total
    crossed = (counts.T @ sizes) @ shares
    raw = (counts.T @ counts).toarray() - crossed - crossed.T + shares.T @ (sizes.T @ sizes) @ shares
    return np.asarray(raw * inverse[:, None] * inverse[None, :], dtype=np.float64)


def draw_noise(factors: list[Floats], n_draws: int, degrees: float, rng: np.random.Generator) -> Floats:
    """Draw the sampling error of all group distributions: B x G x V.

    Each draw is scaled by √(df/χ²_df), as a Student's t is a normal: the covariance is estimated, too.
    """
    n_columns = factors[0].shape[1]
    n_draws = int(np.clip(MAX_NOISE_CELLS // (len(factors) * n_columns), 500, n_draws))
    order = np.lexsort(np.stack([np.abs(factor).sum(axis=0) for factor in factors]).T[::-1])
    noise = np.empty((n_draws, len(factors), n_columns))
    for code in order.tolist():
        noise[:, code] = rng.standard_normal((n_draws, len(factors[code]))) @ factors[code]
    if np.isfinite(degrees):
        noise *= np.sqrt(degrees / rng.chisquare(degrees, size=(n_draws, 1, 1)))
    return noise


def invert(deviations: Floats, noise: Floats, slices: Sequence[slice], confidence: float) -> tuple[float, float]:
    """Return the interval of population shifts that are compatible with the observed one.

    A plug-in distance is too long by an amount that depends on how the true shift is spread: a value whose
    true deviation is large against its noise adds none, one without a true deviation adds all of its noise.
    The true spread is not known exactly, so each limit is computed under the least favourable spread that is
    compatible with the data:

    - lower limit: the sparsest. Deviations within 2.5 standard errors are set to zero, the others are kept.
    - upper limit: the densest. Deviations beyond 3 standard errors are kept; all others have one size, the
      largest (one-sided 95 %) that their mean square allows.

    Along each spread S the candidates t·S are tested; a candidate is kept if the observed nTVD is not in a tail
    of nTVD(t·S + noise).

    Parameters
    ----------
    deviations
        G x V, P_g - P̄ as observed.
    noise
        B x G x V draws of the sampling error of P_g.
    slices
        The columns of each attribute; the distance is the mean over attributes.
    confidence
        Coverage; half of the remaining probability is on each side.
    """
    tail = (1.0 - confidence) / 2.0
    noise = noise - noise.mean(axis=1, keepdims=True)
    sd = noise.std(axis=0)
    sd = np.where(sd > 0, sd, TINY)

    def distance(shares: Floats) -> Floats:
        each = [ntvd_of_shares(shares[:, :, part]) for part in slices]
        return np.asarray(np.mean(each, axis=0), dtype=np.float64)

    observed = float(distance(deviations[None])[0])
    largest = 2.0 * observed + 4.0 * float(np.quantile(distance(noise), 0.99)) + 1.0

    def limit(spread: Floats, quantile: float) -> float:
        length = float(distance(spread[None])[0])
        if length == 0.0:  # no deviation at all: zero is the only candidate
            return 0.0
        unit = spread / length
        return _root(lambda t: float(np.quantile(distance(t * unit + noise), quantile)) - observed, largest)

    sparsest, densest = spreads(deviations, noise, sd, slices)
    low, high = limit(sparsest, 1.0 - tail), limit(densest, tail)
    return low, max(low, high)


def _root(rising: Callable[[float], float], largest: float) -> float:
    """Return the point where a rising function crosses zero on [0, largest]; 0 if it starts above zero."""
    from scipy.optimize import brentq

    if rising(0.0) >= 0.0:
        return 0.0
    if rising(largest) <= 0.0:
        return largest
    return float(brentq(rising, 0.0, largest, xtol=1e-3))


def spreads(deviations: Floats, noise: Floats, sd: Floats, slices: Sequence[slice]) -> tuple[Floats, Floats]:
    """Return the sparsest and the densest possible spread of the true shift over the values."""
    return _sparsest(deviations, sd), _densest(deviations, noise, sd, slices)


def _sparsest(deviations: Floats, sd: Floats) -> Floats:
    """Keep deviations of 2.5 standard errors or more, or else the largest one; set the others to zero."""
    z = np.abs(deviations) / sd
    return np.where(z > min(2.5, float(z.max()) * (1 - 1e-9)), deviations, 0.0)


def _densest(deviations: Floats, noise: Floats, sd: Floats, slices: Sequence[slice]) -> Floats:
    """Keep deviations of 3 standard errors or more; give all others the one size that their mean square allows.

    The mean square of z = deviation / error is 1 + size² (0.973 + size² when cut at 3); its own sampling
    error is read off the noise draws, whose values are dependent.
    """
    z = deviations / sd
    stands = np.abs(z) > 3.0
    spread = np.where(stands, deviations, 0.0)
    for part in slices:
        rest = ~stands[:, part]
        if not rest.any():
            continue
        surplus = max(0.0, float((z[:, part][rest] ** 2).mean()) - 0.973)
        error = float(((noise[:, :, part] / sd[:, part])[:, rest] ** 2).mean(axis=1).std())
        size = np.sqrt(surplus + 1.645 * error * np.sqrt(1 + 2 * surplus))
        spread[:, part] += np.where(rest, np.sign(z[:, part]) * size * sd[:, part], 0.0)
    return spread
