from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import soundfile
from built import clip_of, rows_in, said_of
from commands import csv_rows

from equivox.core.errors import UsageError
from equivox.core.media import sha256
from equivox.dataset_builders import BuildReport, Clip, SpokenStereoSet, build
from equivox.dataset_builders.spoken_stereoset import KINDS, parse_labels


def clip(source: Path, clip_id: str) -> Clip:
    return clip_of(SpokenStereoSet(source), clip_id)


def said(source: Path, words: str) -> str:
    return said_of(SpokenStereoSet(source), words)


def edit(source: Path, old: str, new: str, *, count: int = 1) -> None:
    table = source / "metadata" / "gender_v1.0.csv"
    text = table.read_text()
    assert old in text
    table.write_text(text.replace(old, new, count))


def test_an_instance_carries_its_row_and_the_counted_labels(spoken_stereoset: Path) -> None:
    found = clip(spoken_stereoset, "gender/00000_ann")
    assert (found.speaker, found.text) == ("ann", "I read at night.")
    assert found.path == spoken_stereoset / "speech" / "gender" / "00000_ann.wav"
    columns = dict(found.columns)
    assert (columns["gender"], columns["domain"], columns["id"]) == ("female", "gender", "00000")
    assert [columns[kind] for kind in KINDS] == ["Poems.", "Manuals.", "Chalk is white."]
    # Three annotators: 2 of 3 call the stereotypical one that, 1 of 3 the anti-stereotypical one, 3 of 3 the third.
    assert [columns[f"{kind}_agreement"] for kind in KINDS] == pytest.approx([2 / 3, 1 / 3, 1.0])
    assert [columns[f"anti_stereotypical_called_{label}"] for label in KINDS] == [1, 1, 1]
    assert [columns[f"stereotypical_called_{label}"] for label in KINDS] == [2, 0, 1]
    assert columns["annotators"] == "[11, 12, 13]"
    assert parse_labels(str(columns["labels"])) is not None


def test_the_speaker_is_the_cluster_and_the_context_the_stratum(spoken_stereoset: Path) -> None:
    builder = SpokenStereoSet(spoken_stereoset)
    assert (builder.facts.cluster, builder.facts.strata, builder.facts.demographics) == (
        "speaker", ("context",), ("gender",),
    )  # fmt: skip
    assert {frozenset(c.columns) for c in builder.clips()} == {frozenset(c.name for c in builder.facts.columns)}
    assert builder.counts() == {"gender instances": 8, "gender speakers": 4, "gender contexts": 2}


def test_turns_alternate_evenly_within_each_context(spoken_stereoset: Path) -> None:
    turns = defaultdict(list)
    for found in SpokenStereoSet(spoken_stereoset).clips():
        turns[found.columns["context"]].append(found.columns["turn"])
    assert sorted(sorted(t) for t in turns.values()) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_counts_are_held_against_the_published_ones(spoken_stereoset: Path) -> None:
    differences = SpokenStereoSet(spoken_stereoset).differences()
    assert differences[:4] == [
        "gender instances: 2,847 published, 8 found",
        "gender speakers: 6 published, 4 found",
        "age instances: 793 published, 0 found",
        "age speakers: 11 published, 0 found",
    ]


def test_everything_odd_is_named_and_no_row_is_lost(spoken_stereoset: Path) -> None:
    speech = spoken_stereoset / "speech" / "gender"
    (speech / "00001_bob.wav").rename(speech / "00001_jon.wav")
    (speech / "09999_ann.wav").write_bytes((speech / "00000_ann.wav").read_bytes())
    (speech / "00002_eve.flac").write_bytes(b"")
    (spoken_stereoset / "example").mkdir()
    (spoken_stereoset / "example" / "one.wav").write_bytes(b"")
    edit(spoken_stereoset, "female,I read at night.", 'female,"  I read at night. "')
    edit(spoken_stereoset, "00003,jon,male", "00003,jon,")
    edit(
        spoken_stereoset,
        "00004,ann,female,My garden is small.,Chalk is white.",
        "00004,ann,female,My garden is small.,",
    )
    edit(spoken_stereoset, "00005,bob,male,My garden is small.,Chalk is white.,Manuals.",
         "00005,bob,male,My garden is small.,Chalk is white.,POEMS.")  # fmt: skip
    table = spoken_stereoset / "metadata" / "gender_v1.0.csv"
    rows = table.read_text().splitlines()
    broken = rows[8].replace("{'stereotype'", "{'stereotypes'")
    table.write_text("\n".join([*rows[:8], broken, rows[1], rows[6].replace("00005,bob", "00010,eve")]) + "\n")
    assert said(spoken_stereoset, "context with stray spaces").endswith("1 (gender/00000_ann)")
    assert said(spoken_stereoset, "rows without gender").endswith("(kept, null): 1 (gender/00003_jon)")
    assert said(spoken_stereoset, "rows without irrelevant").endswith("1 (gender/00004_ann)")
    assert "2 (gender/00005_bob, gender/00010_eve)" in said(spoken_stereoset, "continuations alike")
    assert said(spoken_stereoset, "cannot be read").endswith("1 (gender/00007_jon)")
    assert said(spoken_stereoset, "repeat an id and speaker").endswith("1 (gender/00000_ann)")
    assert "gender/00001_bob" in said(spoken_stereoset, "rows without a file")
    assert said(spoken_stereoset, "row for another speaker").endswith("1 (gender/00001_jon.wav)")
    assert said(spoken_stereoset, "without a row in the metadata").endswith("1 (gender/09999_ann.wav)")
    assert said(spoken_stereoset, "second files").endswith("1 (gender/00002_eve.flac)")
    assert said(spoken_stereoset, "belongs to no table").endswith("1 (example/one.wav)")
    assert said(spoken_stereoset, "several values of gender").endswith("1 (eve)")
    # 9 rows of the table, one of them a repetition, one of them added.
    clips = SpokenStereoSet(spoken_stereoset).clips()
    assert len(clips) == 9
    assert clip(spoken_stereoset, "gender/00000_ann").text == "I read at night."
    assert clip(spoken_stereoset, "gender/00007_jon").columns["stereotypical_agreement"] is None


def test_annotators_who_disagree_or_count_twice_are_named(spoken_stereoset: Path) -> None:
    edit(spoken_stereoset, "[11, 12, 13]", "[11, 12, 11]")
    assert said(spoken_stereoset, "annotator twice").endswith("1 (gender/00000_ann)")
    # The fixture's anti-stereotypical continuations are called that by one of three.
    assert said(spoken_stereoset, "no majority").startswith(
        "continuations that no majority of annotators calls what they are (kept): 8 (gender/00000_ann anti-stereo"
    )


def test_other_encodings_and_rates_are_read_as_they_are(spoken_stereoset: Path, tmp_path: Path) -> None:
    speech = spoken_stereoset / "speech" / "gender"
    samples, rate = soundfile.read(speech / "00003_jon.wav")
    soundfile.write(speech / "mp3", samples, rate, format="MP3")
    (speech / "mp3").rename(speech / "00003_jon.wav")
    soundfile.write(speech / "00004_ann.wav", samples, 24_000)
    assert said(spoken_stereoset, "hold mp3") == "files named .wav that hold mp3 (used): 1 (gender/00003_jon)"
    report = build(SpokenStereoSet(spoken_stereoset), tmp_path / "data")
    assert report.problems == {}
    assert "clips at 24,000 Hz instead of 16,000 Hz (kept): 1 (gender/00004_ann)" in report.differences


def test_every_name_of_what_is_odd_is_in_the_record_of_the_build(spoken_stereoset: Path, tmp_path: Path) -> None:
    for number in range(20):
        (spoken_stereoset / "speech" / "gender" / f"0900{number}_ann.wav").write_bytes(b"")
    build(SpokenStereoSet(spoken_stereoset), tmp_path / "data")
    record = json.loads((tmp_path / "data" / "spoken_stereoset" / "build.json").read_text())
    assert "20 (" in next(line for line in record["differences"] if "without a row" in line)
    assert len(record["oddities"]["files without a row in the metadata, not used"]) == 20


def test_any_domain_is_the_column_that_its_table_is_named_after(spoken_stereoset: Path) -> None:
    table = spoken_stereoset / "metadata" / "gender_v1.0.csv"
    text = table.read_text().replace("speaker,gender", "speaker,home_region").replace("female", "north")
    (spoken_stereoset / "metadata" / "home_region_2.csv").write_text(text.replace("male", "south"))
    (spoken_stereoset / "speech" / "home_region").symlink_to(spoken_stereoset / "speech" / "gender")
    builder = SpokenStereoSet(spoken_stereoset)
    assert set(builder.facts.demographics) == {"gender", "home_region"}
    columns = clip(spoken_stereoset, "home_region/00000_ann").columns
    assert (columns["home_region"], columns["gender"]) == ("north", None)


def test_the_last_version_of_a_table_is_used(spoken_stereoset: Path) -> None:
    table = spoken_stereoset / "metadata" / "gender_v1.0.csv"
    (spoken_stereoset / "metadata" / "gender_v1.1.csv").write_text(table.read_text().replace("Poems", "Verses"))
    assert clip(spoken_stereoset, "gender/00000_ann").columns["stereotypical"] == "Verses."
    assert said(spoken_stereoset, "later version").endswith("1 (gender_v1.0.csv)")


def test_labels_as_json_are_read_and_anything_else_is_none() -> None:
    votes = {"stereotype": ["stereotype"], "anti-stereotype": ["irrelevant"], "irrelevant": []}
    counts = parse_labels(json.dumps(votes))
    assert counts == parse_labels(repr(votes))
    assert counts is not None and counts["anti_stereotypical"] == {
        "stereotypical": 0, "anti_stereotypical": 0, "irrelevant": 1,
    }  # fmt: skip
    for text in (
        "",
        "{}",
        "[1]",
        "{'stereotype': 1}",
        "__import__('os')",
        "{" * 200,
        repr({**votes, "irrelevant": [1]}),
    ):
        assert parse_labels(text) is None


def test_a_folder_of_something_else_is_refused(spoken_stereoset: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "speech").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"expected metadata/ and speech/, found speech/; give"):
        SpokenStereoSet(tmp_path / "other")
    with pytest.raises(UsageError, match="give the folder above it"):
        SpokenStereoSet(spoken_stereoset / "metadata")
    table = spoken_stereoset / "metadata" / "gender_v1.0.csv"
    table.rename(table.with_name("sex_v1.0.csv"))
    with pytest.raises(UsageError, match=r"the column that the file is named after .* ones are gender"):
        SpokenStereoSet(spoken_stereoset)
    (table.parent / "sex_v1.0.csv").unlink()
    with pytest.raises(UsageError, match="holds no table"):
        SpokenStereoSet(spoken_stereoset)


@pytest.mark.paper
class TestTheRealInstances:
    @pytest.fixture
    def source(self, reference_data: Path) -> Path:
        return reference_data / "spoken_stereoset" / "sample"

    @pytest.fixture
    def built(self, source: Path, tmp_path: Path) -> BuildReport:
        return build(SpokenStereoSet(source), tmp_path / "data")

    def test_all_24_are_built_with_the_bytes_that_were_distributed(self, source: Path, built: BuildReport) -> None:
        manifest = {
            f"{row['domain']}/{row['file'].removesuffix('.wav')}": row for row in csv_rows(source / "manifest.csv")
        }
        rows = rows_in(built.folder)
        assert {row["clip_id"] for row in rows} == set(manifest)
        for row in rows:
            listed = manifest[row["clip_id"]]
            assert sha256(row["audio"]["bytes"]) == row["audio_sha256"] == listed["sha256"]
            assert row["sampling_rate"] == int(listed["sample_rate"])
            # The header of an mp3 promises up to a frame or two more than is decoded.
            assert row["duration_s"] == pytest.approx(float(listed["duration_s"]), abs=0.06)
            assert (row["text"], row["speaker"]) == (listed["context"].strip(), listed["speaker"])
            assert row[listed["domain"]] == listed["group"]
            assert row["audio_problem"] is None
        assert built.problems == {}

    def test_what_is_odd_in_them_is_said(self, source: Path, built: BuildReport) -> None:
        builder = SpokenStereoSet(source)
        assert builder.counts() == {
            "gender instances": 10, "gender speakers": 6, "gender contexts": 3,
            "age instances": 14, "age speakers": 11, "age contexts": 3,
        }  # fmt: skip
        assert builder.oddities()["context with stray spaces (trimmed)"] == ["age/00002_old_women"]
        mp3 = [
            f"{r['domain']}/{r['file'][:-4]}" for r in csv_rows(source / "manifest.csv") if r["codec"].startswith("mp3")
        ]
        assert sorted(builder.oddities()["files named .wav that hold mp3 (used)"]) == sorted(mp3)
        rates = [line.partition(" (kept)")[0] for line in built.differences if line.startswith("clips at")]
        assert rates == ["clips at 24,000 Hz instead of 16,000 Hz", "clips at 44,100 Hz instead of 16,000 Hz"]

    def test_labels_are_counted(self, source: Path) -> None:
        # 00357: one of the six gives the anti-stereotypical continuation as stereotype, two as irrelevant, three agree.
        columns = clip(source, "gender/00357_en-US-BrianMultilingualNeural").columns
        assert [columns[f"anti_stereotypical_called_{label}"] for label in KINDS] == [1, 3, 2]
        assert columns["anti_stereotypical_agreement"] == 0.5
        assert columns["stereotypical_agreement"] == 1.0

    def test_groups_and_speakers_are_those_of_the_tables(self, source: Path) -> None:
        groups = Counter(
            (c.columns["domain"], c.columns["gender"] or c.columns["age"]) for c in SpokenStereoSet(source).clips()
        )
        assert groups == {
            ("gender", "female"): 5, ("gender", "male"): 5,
            ("age", "elderly"): 6, ("age", "child"): 3, ("age", "young"): 5,
        }  # fmt: skip
