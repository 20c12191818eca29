"""Published numbers, from the folder that EQUIVOX_REFERENCE_DATA names."""

import csv
import json
from collections import defaultdict

import numpy as np
import pytest

from equivox.statistics import (
    association_scores,
    association_test,
    correlations,
    parity_deviation,
    share_bounds,
    total_bias_score,
)

pytestmark = pytest.mark.paper


@pytest.fixture
def published(reference_data):
    def rows(name):
        with (reference_data / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return rows


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


def test_badf_gender_fixture(published):
    rows = published("badf/fixture_gender_counts_60.csv")
    assert len(rows) >= 60
    for row in rows:
        own, other, n, length = (int(row[name]) for name in ("a", "c", "n_docs", "cat_len"))
        assert association_scores([own, other], [length, length])[0] == pytest.approx(float(row["score"]), abs=1e-12)
        found = association_test([[own, n - own], [other, n - other]], n_resamples=1, rng=generator())
        assert found.p == pytest.approx(float(row["p"]), abs=1e-9)


def test_badf_multi_identity_fixture(published):
    rows = published("badf/fixture_multi_counts_60.csv")
    assert len(rows) >= 60
    for row in rows:
        counts, n = json.loads(row["doc_freq_by_identity"]), int(row["n_docs"])
        found = association_test([[count, n - count] for count in counts], n_resamples=1, rng=generator())
        assert found.p == pytest.approx(float(row["p"]), abs=1e-9)


@pytest.mark.parametrize("case", ["two", "four"])
def test_badf_golden_documents(reference_data, case):
    golden = json.loads((reference_data / "badf" / "reference_golden.json").read_text(encoding="utf-8"))[case]
    documents, expected = golden["documents"], golden["expected"]
    lengths = [sum(map(len, stories)) for stories in documents]
    tables = {
        phrase: [[sum(phrase in story for story in stories), sum(phrase not in story for story in stories)]
                 for stories in documents]
        for phrase in expected["tables"]
    }  # fmt: skip
    assert tables == expected["tables"]
    checked = 0
    for identity, printed in enumerate(expected["per_identity"]):
        for phrase, score, p in zip(printed["phrases"], printed["scores"], printed["pvals"], strict=True):
            scores = association_scores([row[0] for row in tables[phrase]], lengths)
            assert scores[identity] == pytest.approx(score, abs=1e-12)
            found = association_test(tables[phrase], n_resamples=1, rng=generator())
            assert found.p == pytest.approx(p, abs=1e-9)
            checked += 1
    assert checked >= 8


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


def test_genres_total_bias_scores(published):
    rows = published("genres/table2_llama_glm.csv")
    cohorts = defaultdict(dict)
    for row in rows:
        cohorts[row["evaluator"]][row["model"]] = {f"M{k}": float(row[f"M{k}"]) for k in range(1, 9)}
    for evaluator, models in cohorts.items():
        found = total_bias_score(models, cohort=models, cohort_name=evaluator)
        for row in rows:
            if row["evaluator"] == evaluator:
                assert found.total[row["model"]] == pytest.approx(float(row["TBS"]), abs=0.005)
