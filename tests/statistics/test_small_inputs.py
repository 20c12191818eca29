"""Tiny, ragged and degenerate inputs: every number is defined and in range, or NaN with a reason; nothing warns."""

import dataclasses
import inspect
import math
import sys
from contextlib import suppress

import numpy as np
import pytest

from equivox import statistics
from equivox.core.errors import UsageError
from equivox.statistics import (
    association_test,
    cluster_correlation,
    compare_joint_shift,
    group_means,
    joint_shift,
    ntvd_bounds,
    parity_deviation,
    sign_flip_test,
)

RESULTS = [
    kind
    for kind in {value for module in list(sys.modules.values()) for value in vars(module).values()
                 if getattr(module, "__name__", "").startswith("equivox.statistics") and isinstance(value, type)}
    if dataclasses.is_dataclass(kind) and "undefined" in {field.name for field in dataclasses.fields(kind)}
]  # fmt: skip


def test_a_result_of_nothing_has_no_number_and_has_counted_nothing():
    assert len(RESULTS) > 10
    for kind in RESULTS:
        for field in dataclasses.fields(kind):
            given = field.default
            if isinstance(given, float):
                assert math.isnan(given), (kind, field.name)
            elif isinstance(given, int):
                # Whether a table is sparse asks for the exact test: without numbers it is asked for.
                assert given == (field.name == "sparse"), (kind, field.name)


WRONG = {"n_resamples": 0, "confidence": 95, "min_count": 0, "level": 5, "alpha": 5, "power": 80}
SETTINGS = [
    (called, name)
    for called in map(vars(statistics).get, statistics.__all__) if inspect.isfunction(called)
    for name in WRONG if name in inspect.signature(called).parameters
]  # fmt: skip


@pytest.mark.parametrize(("called", "name"), SETTINGS, ids=lambda one: getattr(one, "__name__", one))
def test_a_setting_that_cannot_be_meant_is_refused_whatever_it_is_used_with(called, name):
    given = {"groups": ["a", "b"], "clusters": ["s", "t"], "choices": [0, 1]}
    needed = {
        one.name: given.get(one.name)
        for one in inspect.signature(called).parameters.values() if one.default is inspect.Parameter.empty
    }  # fmt: skip
    with pytest.raises(UsageError, match=f"`{name}` is {WRONG[name]}: use"):
        called(**{**needed, name: WRONG[name]})


def drawn(rng):
    """Up to 40 responses of up to 7 speakers in up to 3 groups, many of them missing."""
    n_groups, n = int(rng.integers(1, 4)), int(rng.integers(1, 40))
    cluster = rng.integers(0, rng.integers(1, 8), size=n)
    values = [[f"v{code}" for code in rng.integers(0, 4, size=k)] for k in rng.integers(0, 3, size=n)]
    return values, [f"g{code % n_groups}" for code in cluster], [f"c{code}" for code in cluster]


@pytest.mark.parametrize("seed", range(40))
def test_shifts_are_in_range_or_undefined(seed):
    rng = np.random.default_rng(seed)
    values, groups, clusters = drawn(rng)
    fewer = [answer[:1] for answer in values]
    for given in (clusters, None):
        task = joint_shift({"a": values, "b": fewer}, groups, clusters=given, min_count=2, n_resamples=30, rng=rng)
        for shift in (task, *task.attributes.values()):
            if shift.undefined is not None:
                assert math.isnan(shift.ntvd)
                assert math.isnan(shift.ci_low)
                continue
            assert 0 <= shift.ntvd <= shift.attainable_max + 1e-9
            assert 0 <= shift.ci_low <= shift.ci_high <= shift.attainable_max
            assert 0 < shift.p_response <= 1
            assert math.isnan(shift.p_cluster) if given is None else 0 < shift.p_cluster <= 1
            assert 0 <= shift.null_mean <= shift.attainable_max
    asked = {"clusters": clusters, "min_count": 1, "n_resamples": 30, "rng": rng}
    compared = compare_joint_shift({"a": values}, {"a": fewer}, groups, **asked)
    assert (compared.undefined is None) == math.isfinite(compared.difference)


@pytest.mark.parametrize("seed", range(40))
def test_other_tests_are_in_range_or_undefined(seed):
    rng = np.random.default_rng(seed)
    _, groups, clusters = drawn(rng)
    outcome = np.where(rng.random(len(groups)) < 0.1, np.nan, rng.integers(0, 2, size=len(groups))).tolist()
    label = rng.integers(0, 2, size=len(groups))
    asked = {"clusters": clusters, "n_resamples": 50, "rng": rng}
    found = [
        parity_deviation(outcome, **asked),
        sign_flip_test(outcome, **asked),
        cluster_correlation(label.astype(float).tolist(), outcome, **asked),
    ]
    for sides in (groups, label.astype(str).tolist()):
        with suppress(UsageError):  # some clusters in one group and some in several are refused
            found.append(group_means(outcome, sides, **asked))
    table = rng.integers(0, 5, size=rng.integers(2, 4, size=2))
    found.append(association_test(table, n_resamples=30, rng=rng))
    for result in found:
        assert math.isnan(result.p) if result.undefined is not None else 0 < result.p <= 1
    bounds = ntvd_bounds(table + (table.sum(axis=1) == 0)[:, None], rng.integers(0, 4, size=len(table)).tolist())
    assert 0 <= bounds.low <= bounds.observed + 1e-7 <= bounds.high + 2e-7 <= 100 + 1e-6
