"""Appendix H as a command: labels in, how often each stage is right out."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.metrics.badf.labels import clustering, score_badf_labels

Cli = Callable[..., tuple[int, str, str]]


@pytest.mark.paper
def test_the_released_samples_give_the_published_values(reference_data: Path, equivox: Cli) -> None:
    folder = reference_data / "badf"
    files = [folder / "Sample_eva.csv", folder / "sample_phrase_filter_res.csv"]
    audit = score_badf_labels(files)
    found = {measure.name: measure for measure in audit.measures}
    for name, printed in (("recall", 0.9856), ("precision", 0.9330), ("decomposition accuracy", 0.9711)):
        assert round(found[name].value, 4) == printed
        assert found[name].n == 50
        assert found[name].low < printed < found[name].high
    # The paper prints 98 %, the sum of a column of its own; the labels agree in 97.
    assert found["exclusivity agreement"].note == "97 of 100; of the exclusive ones 8 of 10"
    code, out, err = equivox("audit", "score", "--benchmark", "badf", *files)
    assert code == 0, err
    assert all(value in out for value in ("0.9856", "0.9330", "0.9711", "97 of 100"))
    assert "8 rows of Sample_eva.csv" in out


def test_labels_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("story,recall,precision,decomposition_accuracy\nS1,1,0.5,1\nS2,0.5,0.5,\nS3,0.5,1,0\n")
    audit = score_badf_labels([file])
    # S2 has no label of the decomposition: what is not labelled is left out, and said so.
    assert [(m.name, m.value, m.n) for m in audit.measures] == [
        ("recall", 0.75, 2),
        ("precision", 0.75, 2),
        ("decomposition accuracy", 0.5, 2),
    ]
    assert audit.left_out == {"mine.csv": 1}
    same = tmp_path / "same.csv"
    same.write_text("gold,answer\nNO,NO\nno,No\n")
    agreement, alpha = score_badf_labels([same]).measures
    assert (agreement.value, agreement.note) == (1.0, "2 of 2; none is exclusive")
    assert math.isnan(agreement.low) and math.isnan(alpha.value)


def test_clusters_by_hand(tmp_path: Path) -> None:
    """Two labels of two phrases; one cluster holds three of them.

    H(gold) = ln 2; H(found) = ¾ ln 4/3 + ¼ ln 4; H(both) = ½ ln 2 + ½ ln 4 = 1.5 ln 2.
    """
    found = clustering(["a", "a", "b", "b"], [1, 1, 1, 2])
    h_found = 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
    homogeneity = 1 - (1.5 * math.log(2) - h_found) / math.log(2)
    completeness = 1 - (1.5 * math.log(2) - math.log(2)) / h_found
    assert found["homogeneity"] == pytest.approx(homogeneity)
    assert found["completeness"] == pytest.approx(completeness)
    assert found["V-measure"] == pytest.approx(2 * homogeneity * completeness / (homogeneity + completeness))
    # As printed in Table 1: homogeneity 1 and completeness .89 make V .94.
    assert round(2 * 1 * 0.89 / 1.89, 2) == 0.94
    assert clustering("abcd", "1234")["V-measure"] == 1
    assert clustering("aaaa", "1111") == {"homogeneity": 1.0, "completeness": 1.0, "V-measure": 1.0}
    file = tmp_path / "clusters.csv"
    file.write_text("phrase,gold_cluster,cluster\ncalm,a,1\nserene,a,1\nchef,b,2\n")
    assert [measure.value for measure in score_badf_labels([file]).measures] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("story,recall,precision,decomposition_accuracy\nS,1.5,1,1\n", "is a share from 0 to 1, got '1.5'"),
        ("story,recall,precision,decomposition_accuracy\nS,,,\n", "hold no row with all of"),
        ("gold,answer\nYES,maybe\n", "are YES or NO, got 'MAYBE'"),
        ("colour\nred\n", "have the columns colour; needed are"),
        ("", "have the columns none"),
    ],
)
def test_labels_that_are_none_are_one_line(text: str, said: str, tmp_path: Path, equivox: Cli) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(text)
    code, _, err = equivox("audit", "score", file, "--benchmark", "badf")
    assert code == 2
    assert said in err


def test_what_the_command_does_not_know_is_refused(tmp_path: Path, equivox: Cli) -> None:
    code, _, err = equivox("audit", "score", tmp_path / "no.csv", "--benchmark", "badf")
    assert code == 2 and "cannot be read" in err
    code, _, err = equivox("audit", "score", tmp_path / "no.csv", "--benchmark", "bad")
    assert code == 2 and "did you mean" in err
