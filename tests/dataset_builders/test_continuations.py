from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Cli
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.core.errors import UsageError
from equivox.core.progress import no_progress
from equivox.dataset_builders import SpokenStereoSet, sample_source
from equivox.dataset_builders.spoken_stereoset import corpus_facts, rouge_l_diversity

WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=6).map(" ".join)


def common(first: list[str], second: list[str]) -> int:
    """Length of the longest common subsequence, by the recursion that defines it."""
    if not first or not second:
        return 0
    if first[0] == second[0]:
        return 1 + common(first[1:], second[1:])
    return max(common(first[1:], second), common(first, second[1:]))


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS, min_size=2, max_size=5, unique=True))
def test_averages_are_those_of_the_definition(texts: list[str]) -> None:
    found = rouge_l_diversity(texts)
    for text in texts:
        others = [other for other in texts if other != text]
        scores = [2 * common(text.split(), o.split()) / (len(text.split()) + len(o.split())) for o in others]
        assert found[text] == pytest.approx(sum(scores) / len(scores))


def test_case_and_punctuation_do_not_matter_and_repetitions_count_once() -> None:
    found = rouge_l_diversity(["The sea, the sea!", "the sea the sea", "The sea, the sea!"])
    assert found == {"The sea, the sea!": 1.0, "the sea the sea": 1.0}
    assert rouge_l_diversity(["alone", "alone"]) == {} == rouge_l_diversity([])


def test_without_rouge_score_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    with pytest.raises(UsageError, match=r'pip install -c constraints.txt "\.\[diversity\]"'):
        rouge_l_diversity(["one", "two"])


def test_domains_are_described_apart_and_what_is_unknown_is_a_dash() -> None:
    row = {
        "context": "c",
        "speaker": "ann",
        "stereotypical": "a b",
        "anti_stereotypical": "a b c d",
        "irrelevant": None,
    }
    gender = {**row, "domain": "gender", "gender": "female", "stereotypical_agreement": 0.5,
              "anti_stereotypical_agreement": 1.0, "irrelevant_agreement": None}  # fmt: skip
    accent = {**row, "domain": "accent", "accent": None, "stereotypical_agreement": None,
              "anti_stereotypical_agreement": None, "irrelevant_agreement": None}  # fmt: skip
    (nothing, found), _ = corpus_facts([gender, gender, accent], [1.0, None, None], False, no_progress)
    # Continuations of 2 and 4 words; the clip without a length counts as an instance alone.
    assert found == {
        "domain": "gender", "speakers": "1", "instances": "2", "contexts": "1", "mean seconds": "1.00",
        "mean words": "3.00", "agreement": "75.00", "groups": "female 2",
    }  # fmt: skip
    assert [nothing[name] for name in ("mean seconds", "agreement", "groups")] == ["—", "—", ""]
    alone = {**accent, "anti_stereotypical": None}
    (line,), _ = corpus_facts([alone], [None], True, no_progress)
    # One continuation has no other to be like.
    assert (line["mean ROUGE-L"], line["largest"], line["agreement"]) == ("—", "—", "—")


@pytest.mark.paper
def test_the_real_instances_are_described(reference_data: Path) -> None:
    from equivox.dataset_builders.schema import rows

    source = SpokenStereoSet(reference_data / "spoken_stereoset" / "sample")
    columns = [row for row, _ in rows(source)]
    (age, gender), averages = corpus_facts(columns, [row["duration_s"] for row in columns], True, no_progress)
    assert (gender["instances"], gender["speakers"]) == ("10", "6")
    assert (age["instances"], age["speakers"]) == ("14", "11")
    # The ten lengths in the manifest add up to 17.6125 seconds.
    assert gender["mean seconds"] == "1.76"
    # The whole corpus stays below 0.14; a handful of texts shares more.
    assert 0 < max(averages["gender"]) < 0.5


def test_what_is_built_is_described(equivox: Cli, tmp_path: Path) -> None:
    command = ("data", "build", "spoken_stereoset", "--source", sample_source("spoken_stereoset"), "-o", tmp_path)
    out = equivox.done(*command, "--figure", tmp_path / "rouge.svg")
    line = next(line for line in out.splitlines() if line.startswith("gender"))
    assert line.split()[1:4] == ["6", "60", "10"]
    assert "female 30, male 30" in line
    assert 0 < float(line.split()[-1]) < 0.5
    drawn = (tmp_path / "rouge.svg").read_text()
    # Figure 1 of the paper: a panel per domain, with the number of distinct continuations.
    assert "average ROUGE-L" in drawn and "gender (" in drawn and "age (" in drawn
    assert ".svg" in equivox.refused(*command, "--figure", tmp_path / "rouge.txt")
    out = equivox.done(*command)
    assert "up to date" in out and "gender" in out and "ROUGE-L" not in out
    other = ("crema_d", "--source", sample_source("crema_d"), "-o", tmp_path / "other")
    assert "corpora of continuations" in equivox.refused("data", "build", *other, "--figure", tmp_path / "rouge.svg")
    assert not (tmp_path / "other").exists()
    for rest in (other[1:], ("--figure", tmp_path / "rouge.svg")):
        assert "lists all corpora" in equivox.refused("data", "build", *rest)
