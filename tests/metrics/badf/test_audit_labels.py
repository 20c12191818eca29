"""Appendix H as metrics of columns: labels in, how often each stage is right out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from commands import csv_rows

from equivox.core.errors import UsageError
from equivox.metrics import annotated_stories, exclusivity_labels
from equivox.metrics.badf.released import cluster_agreement, exclusivity_agreement, story_shares


@pytest.mark.paper
def test_the_released_samples_give_the_published_values(reference_data: Path) -> None:
    folder = reference_data / "badf"
    # Below the fifty stories, the file has a summary of them.
    stories = [row for row in csv_rows(folder / "Sample_eva.csv") if row["responses"] and row["accuracy_2"]]
    columns = {"recall": "recall_1", "precision": "precision_1", "decomposition_accuracy": "accuracy_2"}
    found = annotated_stories(**{ours: [row[theirs] for row in stories] for ours, theirs in columns.items()})
    for name, printed in (("recall", 0.9856), ("precision", 0.9330), ("decomposition_accuracy", 0.9711)):
        assert round(found[name], 4) == printed
        assert found[f"{name}_low"] < printed < found[f"{name}_high"]
    assert (found["n_rows"], found["left_out"]) == (50, 0)
    labels = csv_rows(folder / "sample_phrase_filter_res.csv")
    found = exclusivity_labels(gold=[row["gt"] for row in labels], answer=[row["filter_res"] for row in labels])
    # The paper prints 98 %, the sum of a column of its own; the labels agree in 97.
    assert (found["agreed"], found["n_rows"]) == (97, 100)
    assert (found["exclusive_found"], found["exclusive"]) == (8, 10)


def test_labels_of_ones_own() -> None:
    found = story_shares(recall=[1, 0.5, 0.5], precision=[0.5, 0.5, 1], decomposition_accuracy=[1, None, 0])
    # The second story has no label of the decomposition: what is not labelled is left out, and said so.
    assert [found[name] for name in ("recall", "precision", "decomposition_accuracy")] == [0.75, 0.75, 0.5]
    assert (found["n_rows"], found["left_out"], found["undefined"]) == (2, 1, None)
    found = exclusivity_agreement(gold=["NO", "no", "YES"], answer=["NO", "No", None])
    assert (found["agreement"], found["agreed"], found["exclusive"], found["left_out"]) == (1.0, 2, 0, 1)
    assert math.isnan(found["agreement_low"]) and math.isnan(found["alpha"])


def test_no_label_is_no_number() -> None:
    for found in (
        story_shares(recall=[None], precision=[None], decomposition_accuracy=[None]),
        exclusivity_agreement(gold=["YES"], answer=[None]),
        cluster_agreement(gold=[None], found=["1"]),
    ):
        assert found["undefined"] and found["n_rows"] == 0
        assert any(isinstance(value, float) and math.isnan(value) for value in found.values())


def test_clusters_of_ones_own() -> None:
    found = cluster_agreement(gold=["a", "a", "b"], found=["1", "1", "2"])
    assert [found[name] for name in ("homogeneity", "completeness", "v_measure")] == [1, 1, 1]


def test_labels_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match=r"`recall` holds 1.5: give a share from 0 to 1"):
        story_shares(recall=[1.5], precision=[1], decomposition_accuracy=[1])
    with pytest.raises(UsageError, match="`answer` holds 'maybe': give YES or NO"):
        exclusivity_agreement(gold=["YES"], answer=["maybe"])
