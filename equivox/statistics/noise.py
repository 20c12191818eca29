"""Sampling error of the groups' distributions: how far they would move with other clusters of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from equivox.statistics.encode import Answers, Design, by_column, sizes_of
from equivox.statistics.inputs import Bools, Floats, Ints
from equivox.statistics.intervals import of_ratio

N_NOISE = 1_000
"""Number of draws of sampling error for an interval; its ends differ by about 0.1 standard errors between seeds."""

N_DEALT = 64
"""Number of equal heaps that responses are dealt into, to measure the noise of independent responses."""

PRIOR_DEGREES = 4.0
"""Weight of the noise of independent responses beside that of the clusters, in degrees of freedom."""

MOST_BORROWED = 1e6
"""Responses of the mean over groups that a group's noise borrows at most, where the groups do not differ at all."""

TINY = 1e-12
ALIKE = 1e-24
"""Up to this sum of squared pulls all clusters of a group give the same shares, up to rounding."""

MANY_CLUSTERS = 500
"""From this number on, the clusters' own degrees of freedom are taken; a jackknife would change no digit."""

MAX_NOISE_CELLS = 4_000_000
"""Cells of noise in memory at a time (32 MiB as doubles); with very many values, fewer draws are made."""

ONE_CLUSTER = "every group has one cluster: the interval treats responses as independent, too narrow"
LENT = "a group has one cluster: its noise is taken to be like that of the others"
"""The notes on an interval where clusters show no noise in any group, or in some."""


@dataclass(frozen=True)
class Noise:
    """The sampling error of the groups' distributions: normal, with an estimated covariance.

    `factors` has one R x V array per group; factorᵀ factor is the covariance of P_g. `supposed` has further rows, for
    groups whose clusters are alike. `shared`, R x G x V, is noise that the groups have together, since the same units
    are in all of them; it is that of the deviations P_g - P̄. `degrees` is the number of degrees of freedom of each
    attribute's noise, `joint_degrees` that of all attributes together.
    """

    factors: list[Floats]
    degrees: tuple[float, ...]
    joint_degrees: float
    supposed: list[Floats] | None = None
    shared: Floats | None = None

    @property
    def alike(self) -> bool:
        """Whether all clusters of some group give the same shares, so that part of the noise is supposed."""
        return self.supposed is not None and any(len(own) for own in self.supposed)

    def errors(self, *, seen: bool = False) -> Floats:
        """Return the standard error of each deviation P_g - P̄, G x V; with `seen`, without what is only supposed."""
        whole = self.factors if seen or self.supposed is None else self.whole()
        variances = of_deviations(np.stack([(own**2).sum(axis=0) for own in whole]))
        return np.sqrt(variances if self.shared is None else variances + (self.shared**2).sum(axis=0))

    def whole(self) -> list[Floats]:
        """Return the factors with what is supposed, one R x V array per group."""
        supposed = self.supposed or [factor[:0] for factor in self.factors]
        return [np.concatenate(both) for both in zip(self.factors, supposed, strict=True)]

    def draw(self, n_draws: int, rng: np.random.Generator, *, seen: bool = False) -> Floats:
        """Draw deviations under the noise alone, B x G x V, from a normal distribution with this covariance.

        The draws do not depend on the order of the groups. With `seen`, what is only supposed takes no part.
        """
        factors = self.factors if seen else self.whole()
        n_columns = factors[0].shape[1]
        n_draws = int(np.clip(MAX_NOISE_CELLS // (len(factors) * n_columns), 500, n_draws))
        noise = np.empty((n_draws, len(factors), n_columns))
        for code in noise_order(factors):
            noise[:, code] = rng.standard_normal((n_draws, len(factors[code]))) @ factors[code]
        noise -= noise.mean(axis=1, keepdims=True)
        if self.shared is not None:
            flat = self.shared.reshape(len(self.shared), -1)
            noise += (rng.standard_normal((n_draws, len(flat))) @ flat).reshape(noise.shape)
        return noise

    def scales(self, n_draws: int, degrees: Sequence[float], rng: np.random.Generator) -> list[Floats]:
        """Return factors √(df/χ²) for draws with each of `degrees`, those of an attribute or of all together.

        They turn normal draws into Student's t, since the covariance is estimated; all come from the same random
        numbers.
        """
        from scipy.special import gammaincinv

        chance = rng.random(n_draws)

        def scale(own: float) -> Floats:
            if not np.isfinite(own):
                return np.ones(n_draws)
            return np.asarray(np.sqrt(own / (2 * gammaincinv(own / 2, chance))), dtype=np.float64)

        return [scale(own) for own in degrees]


def noise_order(factors: Sequence[Floats]) -> list[int]:
    """Return the groups in the order of their noise, so that what is drawn for each does not depend on their names."""
    return [int(code) for code in np.lexsort(np.stack([np.abs(own).sum(axis=0) for own in factors]).T[::-1])]


def of_deviations(variances: Floats) -> Floats:
    """Return the variances of P_g - P̄ from those of P_g (... x G x V): groups are independent."""
    n_groups = variances.shape[-2]
    total = variances.sum(axis=-2, keepdims=True)
    return np.asarray((1 - 1 / n_groups) ** 2 * variances + (total - variances) / n_groups**2, dtype=np.float64)


def noise_over_clusters(
    answers: Answers, design: Design, rng: np.random.Generator, *, weights: Floats | None = None
) -> Noise:
    """Return the noise of the groups' distributions when clusters, two or more in some group, are the units.

    Group g's distribution is a ratio of sums over its m clusters; a cluster's pull is its residual
    (x_c - N_c P_g) / N_g, over √(1 - N_c/N_g), so that Σ_c pull pullᵀ is an unbiased estimate of the covariance of P_g
    (Bell & McCaffrey 2002, Survey Methodology 28:169-181); with clusters of one size that is √(m/(m-1)). With strata,
    residuals are taken within a group's stratum, so that a difference between strata is no noise. A cluster that is
    alone in its group's stratum shows no noise; the group's other strata lend it theirs.

    A group with a single cluster shows none either; it gets the correlation within clusters that the others have.

    A few clusters estimate a large covariance badly. It is therefore shrunk to a simpler one, with weights m - 1 and
    `PRIOR_DEGREES`: the covariance that independent responses would have, times the design effect of the group and
    attribute, which is how much noisier clusters are than that on average over the values. The shares of independent
    responses are those of the group with some responses from the mean over groups: one where groups differ, so that a
    value that a group never gave is not held impossible, and more the more alike groups are (`_alikeness`), because the
    noise of values with a few answers is known badly, and too small on average, from one group alone.

    If all clusters of a group give the same shares, their noise is not zero but unknown. Then one more cluster is
    supposed that answers as the other groups do, or with the rarest value: a share of 1/(m + 1) moves. About
    3/m of unseen clusters may do so at 95 % (rule of three, doi:10.1001/jama.1983.03330370053031). If a group shares no
    answer with another, one more cluster is supposed that answers as the other groups do, for the same reason.

    `weights` (K x A) say how much each cluster counts in each attribute; None: as it is.
    """
    slices, n_columns = answers.parts, answers.width
    counts, held = answers.of_clusters(design, weights), design.held
    heard: Bools = np.asarray(counts.any(axis=1))
    groups = [design.group_of_cluster == code for code in range(len(design.groups))]
    tables = np.stack([counts[mine].sum(axis=0) for mine in groups])
    sizes = sizes_of(tables, slices)
    shares = tables / by_column(np.maximum(sizes, 1), slices)
    pooled, of_group = _dealt(answers, design, tables, rng)
    each = [_pulls(counts[heard & mine], None if held is None else held[heard & mine], slices) for mine in groups]
    variances = np.array([[(pulls[:, part] ** 2).sum() for part in slices] for pulls, _ in each])
    independent = np.array([[(own[:, part] ** 2).sum() for part in slices] for own in of_group])
    effects = np.where(independent > 0, variances / np.maximum(independent, TINY), 1.0)
    freedoms = np.array([freedom for _, freedom in each])
    of_cluster = sizes_of(counts, slices)
    if (freedoms == 0).any():
        # How many values a value's cluster has on average in each group and attribute, G x A.
        squared, plain = (np.stack([own[mine].sum(axis=0) for mine in groups]) for own in (of_cluster**2, of_cluster))
        effects = _lent(effects, freedoms, squared / np.maximum(plain, TINY))
    known = sizes / np.maximum(effects, TINY)
    alike = [_alikeness(shares[:, part], known[:, place]) for place, part in enumerate(slices)]
    factors, spreads, added = [], [], []
    for code, (pulls, freedom) in enumerate(each):
        n_own = int((heard & groups[code]).sum())
        pulls = pulls[np.lexsort(pulls.T[::-1])]
        stacked = [pulls * np.sqrt(freedom / (freedom + PRIOR_DEGREES))]
        simple = np.zeros(n_columns)
        further = [np.empty((0, n_columns))]
        for place, part in enumerate(slices):
            if freedom:
                same = shares[code, part] if variances[code, place] <= ALIKE else None
                further.append(supposed(tables[:, part], code, n_own, part, n_columns, alike=same))
                if same is not None:
                    continue
            own, from_others = known[code, place], alike[place]
            weight = effects[code, place] * PRIOR_DEGREES / (freedom + PRIOR_DEGREES) / (own + from_others)
            target = np.zeros((2 * N_DEALT, n_columns))
            target[:N_DEALT, part] = of_group[code][:, part] * np.sqrt(weight * own)
            more = tables[:, part].sum() / sizes[code, place]
            target[N_DEALT:, part] = pooled[:, part] * np.sqrt(weight * from_others * more)
            simple[part] = (target[:, part] ** 2).sum(axis=0)
            stacked.append(target)
        # The attributes' arrays fill different columns: added up, their draws share random numbers.
        factors.append(np.concatenate([stacked[0], *([np.sum(stacked[1:], axis=0)] if stacked[1:] else [])]))
        added.append(np.concatenate(further))
        spreads.append((pulls, simple, freedom))
    n_answers = [of_cluster[mine] for mine in groups]
    degrees = [
        _fewest_degrees(spreads, [part], [own[:, place] for own in n_answers]) for place, part in enumerate(slices)
    ]
    joint = degrees[0] if len(slices) == 1 else _fewest_degrees(spreads, slices, [own.sum(axis=1) for own in n_answers])
    return Noise(factors, tuple(degrees), joint, added)


def _alikeness(shares: Floats, known: Floats) -> float:
    """Return how many responses of the mean over groups each group's noise borrows, from 1 to `MOST_BORROWED`.

    They are the precision α of a Dirichlet distribution of the groups' shares around their mean: a share p varies
    between groups by p(1 - p)/(α + 1) beyond what `known` independent responses of each group explain. It is
    found by moments (Weir & Cockerham 1984, doi:10.2307/2408641), and large where groups differ by no more than that.
    """
    if (known <= 0).any():
        return 1.0
    mean = (known[:, None] * shares).sum(axis=0) / known.sum()
    within = 1.0 - float((mean**2).sum())
    between = float((known[:, None] * (shares - mean) ** 2).sum())
    groups = len(shares) - 1
    scale = float(known.sum() - (known**2).sum() / known.sum())
    spread = (between - groups * within) / max(scale * within, TINY)
    return max(1.0, 1.0 / max(spread, 1.0 / MOST_BORROWED) - 1.0)


def _lent(effects: Floats, freedoms: Floats, sizes: Floats) -> Floats:
    """Return design effects in which groups without any degree of freedom have the correlation of the others.

    The effect of clusters of n values with a correlation r is 1 + (n - 1)r; r is the mean over the other groups,
    weighted by their degrees of freedom, and not below 0.
    """
    known = (freedoms > 0)[:, None] & (sizes > 1)
    weights = np.where(known, freedoms[:, None], 0.0)
    each = np.where(known, (effects - 1) / np.maximum(sizes - 1, TINY), 0.0)
    correlation = np.maximum((weights * each).sum(axis=0) / np.maximum(weights.sum(axis=0), TINY), 0.0)
    return np.where(freedoms[:, None] > 0, effects, 1 + (sizes - 1) * correlation)


def _pulls(own: Floats, stratum: Ints | None, slices: Sequence[slice]) -> tuple[Floats, float]:
    """Return the pulls of a group's clusters on its distribution, and their degrees of freedom.

    Only strata with two clusters of the group or more have pulls. They are lengthened by what the lone clusters of
    other strata add, whose noise is taken to be like theirs. Where every cluster is alone, strata are no longer told
    apart, which is careful: a difference between strata then counts as noise.
    """
    sizes = [own[:, part].sum() for part in slices]
    strata = np.zeros(len(own), dtype=np.int64) if stratum is None else np.unique(stratum, return_inverse=True)[1]
    members = np.bincount(strata)
    if members.max() < 2:
        strata, members = np.zeros(len(own), dtype=np.int64), np.array([len(own)])
    alone = members[strata] < 2
    found = np.zeros_like(own)
    for code in np.flatnonzero(members >= 2):
        mine = strata == code
        pulls = [_pull(own[mine][:, part], total) for part, total in zip(slices, sizes, strict=True)]
        found[mine] = np.concatenate(pulls, axis=1)
    for part in slices if alone.any() else ():
        squares = own[:, part].sum(axis=1) ** 2
        if squares[~alone].any():
            found[:, part] *= np.sqrt(1 + squares[alone].sum() / squares[~alone].sum())
    return found[~alone], float((members[members >= 2] - 1).sum())


def _pull(own: Floats, total: float) -> Floats:
    sizes = own.sum(axis=1, keepdims=True)
    if not total or not sizes.any():
        return np.zeros_like(own)
    part = sizes / sizes.sum()
    return np.asarray((own - part * own.sum(axis=0)) / total / np.sqrt(np.maximum(1 - part, TINY)), dtype=np.float64)


def _dealt(answers: Answers, design: Design, tables: Floats, rng: np.random.Generator) -> tuple[Floats, list[Floats]]:
    """Return the pulls of heaps of randomly dealt responses: of all groups together, and of each group.

    Responses keep all their values, so that dependence between values and between attributes stays. They are sorted by
    their answers before they are dealt; neither their order nor names change the result.
    """
    slices, n_groups = answers.parts, len(design.groups)
    present, row = np.unique(answers.rows, return_inverse=True)
    key = np.bincount(row, weights=rng.random(answers.width)[answers.columns]).astype(np.float64)
    group = design.group_of_row[present]
    sorted_groups = np.lexsort([*tables.T[::-1]])
    heap = np.empty(len(key), dtype=np.int64)
    pooled = np.empty(len(key), dtype=np.int64)
    pooled[np.argsort(key, kind="stable")] = rng.permutation(len(key)) % N_DEALT
    for code in sorted_groups.tolist():
        mine = np.flatnonzero(group == code)
        heap[mine[np.argsort(key[mine], kind="stable")]] = rng.permutation(len(mine)) % N_DEALT
    dealt = replace(answers, rows=row)
    each = dealt.counted(group * N_DEALT + heap, n_groups * N_DEALT).astype(np.float64)
    together = dealt.counted(pooled, N_DEALT).astype(np.float64)
    return _pulls(together, None, slices)[0], [
        _pulls(each[code * N_DEALT : (code + 1) * N_DEALT], None, slices)[0] for code in range(n_groups)
    ]


def supposed(tables: Floats, code: int, m: int, part: slice, n_columns: int, *, alike: Floats | None) -> Floats:
    """Return the pulls on a group of one more unit beside `m`, which answers unlike those seen: R x V, R from 0 to 2.

    `tables` (G x values) has the answers of the groups. The unit answers as the other groups do, in place of what units
    of its group do. Where all units are `alike`, which has the shares of one, a second pull puts the rarest value in
    their place. None is supposed where units differ and one gives another group's answer: then the noise was seen.
    """
    shares = tables / np.maximum(tables.sum(axis=1, keepdims=True), TINY)
    others = np.delete(shares, code, axis=0)
    if alike is None and (len(others) == 0 or (others @ shares[code]).any()):
        return np.empty((0, n_columns))
    pulls = np.zeros((1 if alike is None else 2, n_columns))
    if len(others):
        pulls[0, part] = others.mean(axis=0) - shares[code]
    if alike is not None:
        pulls[1, part] -= alike
        pulls[1, part.start + int(tables.sum(axis=0).argmin())] += 1.0
    return pulls / (m + 1)


def hidden_errors(shares: Floats, code: int, size: float, tail: float, *, seen: bool, left: float) -> Floats:
    """Return the pulls of errors that labels of a group did not show, 2 x V; `left` is the share without a label.

    If none of `size` labels shows an error, the share of wrong answers may be up to 1 - tail^(1/size): so many labels
    would show none with the probability `tail` (Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404). The pulls are so
    long that normal noise exceeds this share with the same probability. If some are wrong (`seen`), one more is
    supposed: few labels say little of how wrong they are, least of all where people give all of them one value. Errors
    move answers from the group's most frequent value to the rarest one, and towards the mean of the groups.
    """
    from scipy.special import ndtri

    share = 1 / (size + 1) if seen else (1 - tail ** (1 / size)) / -float(ndtri(tail))
    pulls = np.zeros((2, shares.shape[1]))
    pulls[0] = shares.mean(axis=0) - shares[code]
    pulls[1, int(shares.sum(axis=0).argmin())] += 1
    pulls[1, int(shares[code].argmax())] -= 1
    return left * share * pulls


def _fewest_degrees(
    spreads: Sequence[tuple[Floats, Floats, float]], slices: Sequence[slice], n_answers: Sequence[Floats]
) -> float:
    """Return the degrees of freedom of the noise's size: `_degrees`, of two values no more than of normal pulls.

    The two errors of two values are one, of which leaving out a cluster shows little: of four clusters that are as far
    from their mean, nothing. Clusters of unequal size have fewer (`of_ratio`); `n_answers` are those of each group's.
    """
    found = _degrees(spreads, slices)
    if any(part.stop - part.start != 2 for part in slices):
        return found
    most = [min(freedom, of_ratio(own)[1]) for (*_, freedom), own in zip(spreads, n_answers, strict=True)]
    one_of_two = [part.start for part in slices]
    return min(found, _degrees_if_normal([pulls[:, one_of_two] for pulls, *_ in spreads], most))


def _degrees(spreads: Sequence[tuple[Floats, Floats, float]], slices: Sequence[slice]) -> float:
    """Return the degrees of freedom of the noise's size, by leaving out one cluster at a time.

    The size is the sum of the standard errors. If an estimated size has relative variance r², it is that of a χ
    variable with 1/(2 r²) degrees. Over many values the errors average out, so that this exceeds clusters - groups.
    """
    columns = np.concatenate([np.arange(part.start, part.stop) for part in slices])
    own = [(pulls[:, columns] ** 2, simple[columns], freedom) for pulls, simple, freedom in spreads]
    least = float(sum(freedom for *_, freedom in own))
    if sum(len(square) for square, *_ in own) > MANY_CLUSTERS:
        return least
    if min(freedom for *_, freedom in own) < 2:
        # Two clusters pull equally far to both sides, so that leaving one out shows nothing.
        return max(least, 1.0)
    variances = np.stack(
        [square.sum(axis=0) * freedom / (freedom + PRIOR_DEGREES) + simple for square, simple, freedom in own]
    )
    sizes = []
    for code, (square, simple, freedom) in enumerate(own):
        total = square.sum(axis=0)
        if total.sum() <= ALIKE:  # The clusters are alike; what rounding leaves says nothing.
            continue
        left = np.maximum(total - square, 0.0) * ((freedom + 1) / freedom)
        moved = left * freedom / (freedom + PRIOR_DEGREES) + simple * (left.sum(axis=1, keepdims=True) / total.sum())
        without = np.repeat(variances[None], len(square), axis=0)
        without[:, code] = moved
        sizes.append(np.sqrt(of_deviations(without)).sum(axis=(1, 2)))
    if not sizes:
        return least
    size = np.concatenate(sizes)
    n = len(size)
    relative = (n - 1) / n * float(((size - size.mean()) ** 2).sum()) / float(size.mean()) ** 2
    return float(max(1.0, 1 / (2 * relative))) if relative > 1e-9 else float("inf")


def _degrees_if_normal(pulls: Sequence[Floats], freedoms: Sequence[float]) -> float:
    """Return the degrees of freedom that the size of `_degrees` has if pulls (clusters x V, by group) are normal.

    For one value they are Welch's (1947, doi:10.1093/biomet/34.1-2.28); the less values depend on each other, the more
    there are.
    """
    errors = np.sqrt(of_deviations(np.stack([(own**2).sum(axis=0) for own in pulls])))
    slopes = of_deviations(np.divide(0.5, errors, out=np.zeros_like(errors), where=errors > 0))
    variance = 0.0
    for own, slope, freedom in zip(pulls, slopes, freedoms, strict=True):
        scaled = own * np.sqrt(slope)
        variance += 2 * float(((scaled.T @ scaled) ** 2).sum()) / max(freedom, 1.0)
    return float(errors.sum() ** 2 / (2 * variance)) if variance > 0 else float("inf")


def noise_over_responses(answers: Answers, design: Design) -> Noise:
    """Return the noise of the groups' distributions when responses are independent.

    Where all responses of a group are alike, or unlike those of all other groups, one more is supposed that is not, as
    with clusters.
    """
    slices, n_columns, n_groups = answers.parts, answers.width, len(design.groups)
    tables = answers.counted(design.group_of_row, n_groups).astype(np.float64)
    factors, added = [], []
    for code in range(n_groups):
        mine = design.group_of_row[answers.rows] == code
        present, row = np.unique(answers.rows[mine], return_inverse=True)
        m = len(present)
        moments = _second_moments(Answers(row, answers.columns[mine], slices), m)
        factors.append(of_covariance(moments) * np.sqrt(m / max(m - 1, 1)))
        further = [np.empty((0, n_columns))]
        for part in slices:
            # A single response that differs pulls by about 1/m; rounding leaves far less.
            shares = tables[code, part] / tables[code, part].sum()
            same = shares if np.trace(moments[part, part]) <= 1e-9 / m**2 else None
            further.append(supposed(tables[:, part], code, m, part, n_columns, alike=same))
        added.append(np.concatenate(further))
    infinite = float("inf")
    return Noise(factors, (infinite,) * len(slices), infinite, added)


def of_covariance(covariance: Floats) -> Floats:
    """Return a factor F with FᵀF equal to a V x V covariance, as `Noise.factors` has it."""
    scale, axes = np.linalg.eigh(covariance)
    return np.asarray(np.sqrt(np.clip(scale, 0, None))[:, None] * axes.T, dtype=np.float64)


def _second_moments(answers: Answers, m: int) -> Floats:
    """Σ over `m` responses of pull pullᵀ, from sparse counts: no responses x values array is made."""
    from scipy import sparse

    slices, n_columns = answers.parts, answers.width
    counts = sparse.csr_array((np.ones(len(answers.rows)), (answers.rows, answers.columns)), shape=(m, n_columns))
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
