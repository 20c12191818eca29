"""Open values that count as one: by lemma, and by leader clustering against its definition."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import Cli
from hypothesis import given
from hypothesis import strategies as st

from equivox.annotate import merging
from equivox.annotate.merging import leader_clusters, merge_samples, merged
from equivox.annotate.schema import read_values
from equivox.core.attributes import Attribute
from equivox.core.errors import UsageError
from equivox.core.samples import Row, Samples
from equivox.core.scores import ScoringOptions, scoring_options
from equivox.tasks.vibe import TASKS

STORY = TASKS[0]


@pytest.mark.parametrize(
    "said", ["N/A", "n/a.", "NA", "null", "Not stated", "not specified", "None mentioned", "unstated"]
)
def test_a_judge_that_says_that_it_found_nothing_gave_no_value(said: str) -> None:
    """It was a value, equal in all groups, and hid the difference of the answers that say something."""
    hobbies = Attribute(name="hobbies", asks="hobbies", count=2)
    assert read_values([hobbies], {"hobbies": [said, said]}) == []
    assert [found.value for found in read_values([hobbies], {"hobbies": [said, "Chess"]})] == ["chess"]
    # A text can say these, and an option means what it says.
    assert [found.value for found in read_values([hobbies], {"hobbies": ["none", "Unknown"]})] == ["none", "unknown"]
    option = Attribute(name="state", asks="the state", options=("na", "null"))
    assert [found.value for found in read_values([option], {"state": "na"})] == ["na"]


def test_a_wording_weighs_as_often_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    led: list[str] = []

    def alone(values: list[str], encoder: str, threshold: float) -> list[str]:
        led.extend(values)
        return list(values)

    monkeypatch.setattr(merging, "unify", alone)
    # Nurses lead with 6 answers in one wording before 5 answers in two.
    merged({"doctor": 3, "doctors": 2, "nurse": 6}, ScoringOptions(merge="embedding"))
    assert led == ["nurse", "doctor"]


def test_an_answer_of_punctuation_states_no_value() -> None:
    attribute = Attribute(name="job", asks="the job")
    assert read_values((attribute,), {"job": "…"}) == []
    assert [value.value for value in read_values((attribute,), {"job": "A nurse!"})] == ["nurse"]


def test_an_option_is_stored_as_it_was_offered() -> None:
    attribute = Attribute(name="letter", asks="the letter", options=("The A.", "B"))
    assert [value.value for value in read_values((attribute,), {"letter": "The A."})] == ["The A."]


def test_the_most_frequent_wording_stands_for_its_lemma() -> None:
    counts = {"teacher": 2, "teachers": 5, "school teacher": 1, "School Teachers".casefold(): 1}
    assert merged(counts, ScoringOptions(merge="lemma")) == {
        "teacher": "teachers", "teachers": "teachers",
        "school teacher": "school teacher", "school teachers": "school teacher",
    }  # fmt: skip
    assert merged(counts, ScoringOptions(merge="none")) == {value: value for value in counts}


def row(**values: tuple[str, ...]) -> Row:
    return Row(group="g", cluster="c", stratum="s", status="parsed", values=values)


def test_closed_choices_stay_and_doubles_in_one_response_count_once() -> None:
    rows = [row(occupation=("nurses",), economic_situation=("poor",)), row(occupation=("nurse", "nurses"))]
    samples = {STORY.name: Samples.from_rows(rows)}
    changed, found = merge_samples(samples, [STORY], ScoringOptions(merge="lemma"))
    assert changed[STORY.name].values("occupation").lists() == [["nurses"], ["nurses"]]
    assert [r.values for r in changed[STORY.name].rows()] == [
        {"occupation": ("nurses",), "economic_situation": ("poor",)},
        {"occupation": ("nurses",)},
    ]
    assert [tuple(row.values()) for row in found] == [
        ("occupation", "nurses", "nurses", 2),
        ("occupation", "nurse", "nurses", 1),
    ]


def test_wordings_are_counted_over_all_tasks_with_the_attribute() -> None:
    # One "nurse" and two "nurses" in a task, two "nurse" in another: together "nurse" is the more frequent wording.
    other = replace(STORY, name="vibe_gender:another")
    samples = {
        STORY.name: Samples.from_rows([row(occupation=(value,)) for value in ("nurse", "nurses", "nurses")]),
        other.name: Samples.from_rows([row(occupation=("nurse",))] * 2),
    }
    changed, found = merge_samples(samples, [STORY, other], ScoringOptions(merge="lemma"))
    assert [(v["value"], v["counts_as"], v["n"]) for v in found] == [("nurse", "nurse", 3), ("nurses", "nurse", 2)]
    assert changed[STORY.name].values("occupation").lists() == [["nurse"]] * 3


def by_definition(vectors: np.ndarray, threshold: float) -> list[int]:
    """The definition, word for word: an unassigned phrase leads, every later unassigned one near enough joins it."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    leader = [-1] * len(units)
    for i in range(len(units)):
        if leader[i] >= 0:
            continue
        leader[i] = i
        for j in range(i + 1, len(units)):
            if leader[j] < 0 and float(units[i] @ units[j]) >= threshold:
                leader[j] = i
    return leader


@given(
    n=st.integers(1, 60),
    dimensions=st.integers(2, 4),
    threshold=st.floats(0.3, 0.99),
    seed=st.integers(0, 10_000),
)
def test_leader_clusters_are_those_of_the_definition(n: int, dimensions: int, threshold: float, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)
    assert leader_clusters(vectors, threshold).tolist() == by_definition(vectors.astype(np.float64), threshold)


def test_members_do_not_attract() -> None:
    # b is near a; c is near b and far from a: c leads a cluster of its own.
    angles = np.radians([0.0, 40.0, 80.0])
    vectors = np.column_stack([np.cos(angles), np.sin(angles)])
    assert leader_clusters(vectors, np.cos(np.radians(45.0))).tolist() == [0, 0, 2]


def test_a_cosine_at_the_threshold_joins() -> None:
    assert leader_clusters([[1.0, 0.0], [0.6, 0.8]], 0.6).tolist() == [0, 0]
    # At a threshold of 1 equal phrases are one, and no others.
    assert leader_clusters([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], 1.0).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("vectors", "threshold", "says"),
    [
        ([[1.0]], 0.0, "threshold"),
        ([[1.0]], 1.01, "threshold"),
        ([[1.0], [0.0]], 0.5, "length"),
        ([[float("nan")]], 0.5, "length"),
    ],
)
def test_what_leader_clusters_refuses(vectors: list[list[float]], threshold: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        leader_clusters(vectors, threshold)


def test_merging_is_chosen_when_scoring(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = ("simulated:random", "vibe_gender:advisory", "--data", "sample", "--limit", 48, "--output", folder)
    equivox.done("run", *run)
    table = pq.read_table(folder / "tables" / "open_values.parquet").to_pylist()
    assert {entry["attribute"] for entry in table} == {"hobby"}
    assert sum(entry["n"] for entry in table) == 3 * 48
    assert json.loads((folder / "scores.json").read_text())["options"]["merge"] == "lemma"
    equivox.done("score", folder, "--scoring", "merge=none")
    assert json.loads((folder / "scores.json").read_text())["options"]["merge"] == "none"
    code, _, err = equivox("score", folder, "--scoring", "merge=lema")
    assert (code, "did you mean" in err or "lemma" in err) == (2, True)


def test_merging_by_meaning_without_the_library_is_one_line(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    folder = tmp_path / "run"
    run = ("simulated:random", "vibe_gender:advisory", "--data", "sample", "--limit", 48, "--output", folder)
    err = equivox.refused("run", *run, "--scoring", "merge=embedding")
    assert 'pip install -c constraints.txt ".[embeddings]"' in err
    assert "Traceback" not in err
    assert not folder.exists()


def test_a_threshold_out_of_range() -> None:
    with pytest.raises(UsageError, match="`merge_threshold`: input should be greater than 0, got 0"):
        scoring_options(merge="embedding", merge_threshold=0.0)


def test_phrases_are_clustered_by_what_the_encoder_says_and_no_bar_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Encoder:
        """Knows two meanings; the length of a vector says nothing."""

        def encode(self, phrases: list[str], *, show_progress_bar: bool, **settings: Any) -> np.ndarray:
            assert not show_progress_bar
            return np.array([[len(phrase), 0] if "nurse" in phrase else [0, len(phrase)] for phrase in phrases])

    monkeypatch.setattr(merging, "load_encoder", lambda name: Encoder())
    phrases = ["nurse", "chef", "a nurse of children", "cook"]
    assert merging.unify(phrases, "any", 0.5) == ["nurse", "chef", "nurse", "chef"]
