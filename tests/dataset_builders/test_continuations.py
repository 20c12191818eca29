from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli

from equivox.dataset_builders import SpokenStereoSet, sample_source
from equivox.dataset_builders.spoken_stereoset import corpus_facts


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
    nothing, found = corpus_facts([gender, gender, accent], [1.0, None, None])
    # Continuations of 2 and 4 words; the clip without a length counts as an instance alone.
    assert found == {
        "domain": "gender", "speakers": "1", "instances": "2", "contexts": "1", "mean seconds": "1.00",
        "mean words": "3.00", "agreement": "75.00", "groups": "female 2",
    }  # fmt: skip
    assert [nothing[name] for name in ("mean seconds", "agreement", "groups")] == ["—", "—", ""]


@pytest.mark.paper
def test_the_real_instances_are_described(reference_data: Path) -> None:
    from equivox.dataset_builders.schema import rows

    source = SpokenStereoSet(reference_data / "spoken_stereoset" / "sample")
    columns = [row for row, _ in rows(source)]
    age, gender = corpus_facts(columns, [row["duration_s"] for row in columns])
    assert (gender["instances"], gender["speakers"]) == ("10", "6")
    assert (age["instances"], age["speakers"]) == ("14", "11")
    # The ten lengths in the manifest add up to 17.6125 seconds.
    assert gender["mean seconds"] == "1.76"


def test_what_is_built_is_described(equivox: Cli, tmp_path: Path) -> None:
    command = ("data", "build", "spoken_stereoset", "--source", sample_source("spoken_stereoset"), "-o", tmp_path)
    out = equivox.done(*command)
    line = next(line for line in out.splitlines() if line.startswith("gender"))
    assert line.split()[1:4] == ["6", "60", "10"]
    assert "female 30, male 30" in line
    out = equivox.done(*command)
    assert "up to date" in out and "gender" in out
    assert "lists them" in equivox.refused("data", "build", "--source", sample_source("crema_d"), "-o", tmp_path)
