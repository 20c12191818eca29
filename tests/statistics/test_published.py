"""Published numbers, from the folder that EQUIVOX_REFERENCE_DATA names."""

import json

import numpy as np
import pytest
from commands import csv_rows

from equivox.statistics import (
    association_test,
    correlations,
    parity_deviation,
    share_bounds,
)

pytestmark = pytest.mark.paper


@pytest.fixture
def published(reference_data):
    return lambda name: csv_rows(reference_data / name)


def generator():
    return np.random.default_rng(1)


def test_vibe_correlations_between_tasks(published):
    tasks = ("Adv", "Cast", "Shop", "Story", "Cand")
    models = [row for row in published("vibe/vibe_table1.csv") if row["dimension"] == "gender"]
    found = {
        frozenset((pair.first, pair.second)): pair
        for pair in correlations({task: [float(row[task]) for row in models] for task in tasks})
    }
    printed = [row for row in published("vibe/fig3_gender_correlations.csv") if row["dimension"] == "gender"]
    assert len(printed) == len(found) == 10
    for row in printed:
        pair = found[frozenset((row["task1"], row["task2"]))]
        assert pair.n == 11
        assert pair.r == pytest.approx(float(row["r_printed"]), abs=0.005 + 1e-9)


def test_badf_multi_identity_fixture(published):
    rows = published("badf/fixture_multi_counts_60.csv")
    assert len(rows) >= 60
    for row in rows:
        counts, n = json.loads(row["doc_freq_by_identity"]), int(row["n_docs"])
        found = association_test([[count, n - count] for count in counts], n_resamples=1, rng=generator())
        assert found.p == pytest.approx(float(row["p"]), abs=1e-9)


def test_spoken_stereoset_shares(published):
    rows = published("spoken_stereoset/table3_counts.csv")
    assert len(rows) == 8
    for row in rows:
        n, meaningful, stereotypical, anti = (int(row[name]) for name in ("N", "meaningful", "stereotypical", "anti"))
        assert share_bounds(int(row["valid"]), n, 0).observed == pytest.approx(float(row["slifs"]), abs=0.00501)
        assert share_bounds(meaningful, n, 0).observed == pytest.approx(float(row["slms"]), abs=0.00501)
        choices = [1.0] * stereotypical + [0.0] * anti + [float("nan")] * (n - meaningful)
        found = parity_deviation(choices, clusters=None, n_resamples=100, rng=generator())
        assert found.share == pytest.approx(float(row["slbs"]), abs=0.00501)
        assert found.n_missing == n - meaningful
