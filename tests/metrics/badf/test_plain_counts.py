"""Associations from tables that were made elsewhere: a row per phrase, counts, and lists such as the released files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from commands import csv_rows
from scipy.stats import chi2_contingency

from equivox.core.errors import UsageError
from equivox.metrics import association_list, concept_associations, concept_counts
from equivox.metrics.badf.chance import kept_by_chance, tally


def test_a_row_per_phrase_is_the_same_as_a_row_per_document() -> None:
    stories = [f"s{number}" for number in range(20)]
    said = {"f": ["calm", "kind"], "m": ["calm", "brave"]}
    wide = concept_associations(
        identities=["f", "m"] * 20, stories=[story for story in stories for _ in "fm"], phrases=[*said.values()] * 20
    )
    rows = [(story, who, phrase) for story in stories for who, phrases in said.items() for phrase in phrases]
    long = concept_associations(
        stories=[story for story, _, _ in rows], identities=[who for _, who, _ in rows],
        phrases=[phrase for _, _, phrase in rows],
    )  # fmt: skip
    assert (wide["n_rows"], long["n_rows"]) == (40, 80)
    assert {**wide, "n_rows": 0} == {**long, "n_rows": 0}
    # "calm" is told of everybody; "kind" of all women, "brave" of all men.
    assert (long["n_documents"], long["associations_f"], long["associations_m"]) == (40, 1, 1)


def test_a_document_is_missing_when_one_of_its_rows_is() -> None:
    found = concept_associations(
        stories=["a", "a", "b", "b"], identities=["f", "f", "m", "m"], phrases=["calm", None, "kind", "calm"]
    )
    assert (found["n_documents"], found["coverage"]) == (2, 0.5)
    assert "group f" in found["undefined"]


def test_documents_that_say_nothing_are_no_evidence() -> None:
    """Zero associations were found in stories of which nine in ten describe nobody, and all of them were used."""
    said = [["calm"], ["brave"]] + [[], []] * 9
    found = concept_associations(identities=["f", "m"] * 100, phrases=said * 10)
    assert found["n_documents"] == 200 and found["coverage"] == pytest.approx(0.1)
    assert math.isnan(found["associations"]) and "group f, share 0.1" in found["undefined"]


def test_counts_by_hand() -> None:
    # calm: 9 of 10 and 1 of 10; kind: 5 and 5; every number of the first table by scipy.
    found = concept_counts(
        identities=["f", "m"] * 2, phrases=["calm", "calm", "kind", "kind"], counts=[9, 1, 5, 5],
        documents=[10] * 4, tokens=[40, 50] * 2,
    )  # fmt: skip
    assert found["undefined"] is None
    assert (found["associations"], found["associations_f"], found["associations_m"]) == (1, 1, 0)
    assert found["mean_score"] == pytest.approx((9 - 1) / 40)
    assert found["mean_p"] == pytest.approx(chi2_contingency([[9, 1], [1, 9]]).pvalue)
    # Both phrases are in 10 of 20 documents. With Yates' correction 8 to 2 is significant and 7 to 3 is not:
    # 2 (C(10,8)² + C(10,9)² + C(10,10)²) of C(20,10) ways, for each phrase.
    assert chi2_contingency([[8, 2], [2, 8]]).pvalue <= 0.05 < chi2_contingency([[7, 3], [3, 7]]).pvalue
    assert found["expected_by_chance"] == pytest.approx(2 * 2 * (45**2 + 10**2 + 1) / 184756)


def test_counts_without_tokens_lack_the_score_alone() -> None:
    given = {"identities": ["f", "m"], "phrases": ["calm"] * 2, "counts": [9, 1], "documents": [10, 10]}
    found, whole = concept_counts(**given), concept_counts(**given, tokens=[40, 50])
    assert math.isnan(found["mean_score"])
    assert {**found, "mean_score": 0} == {**whole, "mean_score": 0}


def test_counts_and_documents_agree() -> None:
    said = {"f": [["calm"]] * 8 + [["kind"]] * 2, "m": [["calm", "kind"]] * 1 + [["kind"]] * 9}
    documents = [(who, phrases) for who, own in said.items() for phrases in own]
    told = concept_associations(identities=[who for who, _ in documents], phrases=[words for _, words in documents])
    counted = concept_counts(
        identities=["f", "m"] * 2, phrases=["calm"] * 2 + ["kind"] * 2, counts=[8, 1, 2, 10], documents=[10] * 4,
        tokens=[10, 11] * 2,
    )  # fmt: skip
    for name in ("associations", "associations_f", "associations_m", "with_q", "mean_score", "mean_p"):
        assert counted[name] == pytest.approx(told[name]), name
    # 199 permutations of documents estimate what the counts give exactly.
    assert counted["expected_by_chance"] == pytest.approx(told["expected_by_chance"], abs=0.1)


def test_what_chance_gives_of_four_identities_is_its_mean_over_draws() -> None:
    import numpy as np

    rng = np.random.default_rng(5)
    documents = np.array([10, 10, 10, 10])
    who = np.repeat(np.arange(4), 10)
    drawn = [np.bincount(rng.permutation(who)[:12], minlength=4) for _ in range(4_000)]
    found = kept_by_chance(12, documents.tolist(), n_resamples=10_000, seed=0)
    kept = [tally(counts[:, None, None], documents)[0, 0] for counts in drawn]
    assert found == pytest.approx(np.mean(kept), abs=0.03)


def test_a_missing_count_is_no_zero() -> None:
    phrases = [f"p{number}" for number in range(10)]
    found = concept_counts(
        identities=["f"] * 10 + ["m"] * 10, phrases=phrases * 2, counts=[9] * 10 + [1] * 9 + [None], documents=[10] * 20
    )
    assert (found["n_phrases"], found["associations"], found["coverage"]) == (9, 9, 0.95)
    none = concept_counts(identities=["f", "m"], phrases=["a", "a"], counts=[9, None], documents=[10, 10])
    assert math.isnan(none["associations"]) and "group m" in none["undefined"]


def test_one_identity_alone_is_compared_with_nobody() -> None:
    told = concept_associations(identities=["f"] * 3, phrases=[["calm"]] * 3)
    counted = concept_counts(identities=["f"], phrases=["calm"], counts=[3], documents=[3])
    for found in (told, counted):
        assert math.isnan(found["associations"])
        assert found["undefined"] == "only f is told of: two identities are compared"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [11, 1]}, "`counts` is 11 for 'calm' and f, which has 10 documents"),
        ({"counts": [0.5, 1]}, "`counts` is 0.5 for f: give a whole number"),
        ({"identities": ["f", "f"]}, "'calm' has two rows for f"),
        ({"documents": [10, None]}, "`documents` is missing for m"),
        ({"phrases": ["calm", "kind"]}, "'calm' has no row for m: give one, with the count 0"),
    ],
)
def test_counts_that_cannot_be(change: dict[str, list[object]], message: str) -> None:
    given = {"identities": ["f", "m"], "phrases": ["calm"] * 2, "counts": [9, 1], "documents": [10, 10], **change}
    with pytest.raises(UsageError, match=message):
        concept_counts(**given)


def test_documents_are_one_number_per_identity_and_category() -> None:
    with pytest.raises(UsageError, match="`documents` is 10 and 12 for f in parks"):
        concept_counts(
            identities=["f", "m"] * 2, phrases=["a", "a", "b", "b"], counts=[1] * 4, documents=[10, 10, 12, 10],
            categories=["parks"] * 4,
        )  # fmt: skip


def test_a_list_by_hand() -> None:
    found = association_list(
        identities=["f", "f", "f", "m", "m"], scores=[0.2, 0.4, 0.3, 0.1, -0.1],
        p_values=[0.01, 0.03, 0.04, 0.02, 0.01], exclusive=["NO", "no", "YES", None, None],
    )  # fmt: skip
    assert (found["associations_f"], found["associations_m"], found["exclusive"]) == (2, 1, 1)
    assert found["mean_score_f"] == pytest.approx(0.3) and found["mean_p_f"] == pytest.approx(0.02)
    # A score of 0, and a p above .05, is no association, and a p of .05 is one.
    edges = association_list(identities=["f"] * 3, scores=[0.0, 0.2, 0.4], p_values=[0.01, 0.051, 0.05])
    assert (edges["associations"], edges["mean_score"], edges["mean_p"]) == (1, 0.4, 0.05)
    with pytest.raises(UsageError, match="`exclusive` holds 'perhaps'"):
        association_list(identities=["f"], scores=[1], p_values=[0.01], exclusive=["perhaps"])


@pytest.mark.paper
def test_published_counts(reference_data: Path) -> None:
    """The p of sixty released phrases of four identities: each is kept, and its p is the mean p of a list of one."""
    for row in csv_rows(reference_data / "badf" / "fixture_multi_counts_60.csv")[:12]:
        counts = json.loads(row["doc_freq_by_identity"])
        names = [f"identity {place}" for place in range(len(counts))]
        found = concept_counts(
            identities=names, phrases=[row["phrase"]] * len(counts), counts=counts,
            documents=[int(row["n_docs"])] * len(counts), n_resamples=99,
        )  # fmt: skip
        assert found["mean_p"] == pytest.approx(float(row["p"]), abs=1e-9)
        # Kept are the identities above the least.
        assert found["associations"] == sum(count > min(counts) for count in counts)


@pytest.mark.paper
def test_table_14_of_one_list(reference_data: Path) -> None:
    folder = reference_data / "badf"
    printed = [row for row in csv_rows(folder / "table14_gender.csv") if row["setting"] == "Two-Character Base"]
    rows = csv_rows(folder / "associations" / printed[0]["file"])
    found = association_list(
        identities=[row["Demographic Identity"] for row in rows],
        scores=[row["Score"] for row in rows],
        p_values=[row["P-Value"] for row in rows],
        exclusive=[row["Prompt Response"] for row in rows],
    )
    for row in printed:
        identity = row["identity"].lower()
        assert found[f"associations_{identity}"] == int(row["paper_count"])
        assert round(found[f"mean_score_{identity}"], 4) == float(row["paper_score"])
        assert round(found[f"mean_p_{identity}"], 4) == float(row["paper_p"])
