from __future__ import annotations

from pathlib import Path

import pytest
from built import clip_of, said_of

from equivox.core.errors import UsageError
from equivox.dataset_builders import Clip, CremaD, open_builder


def clip(source: Path, clip_id: str) -> Clip:
    return clip_of(CremaD(source), clip_id)


def said(source: Path, words: str) -> str:
    return said_of(CremaD(source), words)


def test_a_clip_carries_the_actor_and_what_its_name_says(crema_d: Path) -> None:
    found = clip(crema_d, "1001_AAA_SAD_XX")
    assert found.path == crema_d / "AudioWAV" / "1001_AAA_SAD_XX.wav"
    assert (found.speaker, found.text) == ("1001", "The door is open.")
    assert found.columns == {
        "sentence": "AAA",
        "emotion": "SAD",
        "level": "XX",
        "gender": "male",
        "age": 51,
        "age_group": "50-59",
        "race": "african american",
        "ethnicity": "not hispanic",
    }


def test_clips_are_sorted_and_every_declared_column_is_there(crema_d: Path) -> None:
    builder = CremaD(crema_d)
    clips = builder.clips()
    assert [c.clip_id for c in clips] == sorted(c.clip_id for c in clips)
    assert {tuple(c.columns) for c in clips} == {tuple(column.name for column in builder.facts.columns)}
    assert (builder.facts.cluster, builder.facts.strata) == ("speaker", ("sentence", "emotion"))


def test_counts_are_held_against_the_published_ones(crema_d: Path) -> None:
    # 4 actors, 2 of them male, 2 sentences, 2 emotions; published: 7,442 clips of 91 actors, 48 male and 43 female.
    assert CremaD(crema_d).differences() == [
        "clips: 7,442 published, 16 found",
        "speakers: 91 published, 4 found",
        "male: 48 published, 2 found",
        "female: 43 published, 2 found",
        "sentences: 12 published, 2 found",
        "emotions: 6 published, 2 found",
    ]


def test_a_source_can_state_its_own_counts(crema_d: Path) -> None:
    (crema_d / "facts.json").write_text('{"title": "a part", "published": {"clips": 16, "speakers": 4}}')
    builder = CremaD(crema_d)
    assert (builder.facts.title, builder.facts.licence_id) == ("a part", "odbl")
    assert builder.differences() == []


@pytest.mark.parametrize("text", ["[1]", "{", '{"titel": "x"}'])
def test_facts_that_cannot_be_used_are_refused(crema_d: Path, text: str) -> None:
    (crema_d / "facts.json").write_text(text)
    with pytest.raises(UsageError, match=r"facts\.json"):
        CremaD(crema_d)


def test_damage_is_named_and_no_clip_is_lost(crema_d: Path) -> None:
    audio = crema_d / "AudioWAV"
    (audio / "1001_AAA_NEU_XX.wav").rename(audio / "1001-AAA-NEU.wav")
    (audio / "1002_AAA_NEU_XX.wav").rename(audio / "1002_AAA_NEU_X.wav")
    (audio / "1003_AAA_NEU_XX.wav").write_bytes((audio / "1003_AAA_SAD_XX.wav").read_bytes())
    (audio / "1004_AAA_NEU_XX.flac").write_bytes((audio / "1004_AAA_NEU_XX.wav").read_bytes())
    table = crema_d / "VideoDemographics.csv"
    rows = table.read_text().splitlines()
    rows = [*rows[:4], '1009,30,"Female","Unknown","Hispanic"', rows[3].replace("1003", "1001")]
    table.write_text("\n".join(rows))
    (crema_d / "SentenceFilenames.csv").write_text("Stimulus_Number,Filename\n1,1001_AAA_NEU_XX\n2,1001_AAA_SAD_XX\n")
    assert said(crema_d, "not named") == (
        "files not named <actor>_<sentence>_<emotion>_<level>, not used: 1 (1001-AAA-NEU.wav)"
    )
    assert said(crema_d, "second files") == "second files of a clip, not used: 1 (1004_AAA_NEU_XX.flac)"
    assert said(crema_d, "level other").endswith("1 (1002_AAA_NEU_X)")
    assert said(crema_d, "same content").endswith("1 (1003_AAA_NEU_XX = 1003_AAA_SAD_XX)")
    assert said(crema_d, "without a row").endswith("1 (1004)")
    assert said(crema_d, "without a clip").endswith("1 (1009)")
    assert said(crema_d, "several rows").endswith("1 (1001)")
    assert said(crema_d, "lacks").endswith("1 (1001_AAA_NEU_XX)")
    assert len(CremaD(crema_d).clips()) == 15
    assert clip(crema_d, "1004_AAA_NEU_XX").columns["gender"] is None
    assert clip(crema_d, "1004_AAA_NEU_XX").path.suffix == ".wav"
    assert clip(crema_d, "1001_AAA_SAD_XX").columns["age"] == 51


def test_what_the_distribution_calls_unknown_is_null(crema_d: Path) -> None:
    table = crema_d / "VideoDemographics.csv"
    table.write_text(table.read_text().replace('1001,51,"Male","African American"', '1001,,"Male","Unknown"'))
    columns = clip(crema_d, "1001_AAA_SAD_XX").columns
    assert (columns["race"], columns["age"], columns["age_group"]) == (None, None, None)
    assert said(crema_d, "without race") == "speakers without race (null): 1 (1001)"


def test_sentences_come_from_a_table_or_the_readme_or_are_null(crema_d: Path) -> None:
    (crema_d / "sentences.csv").write_text("code,text\nAAA,From the table.\n")
    assert clip(crema_d, "1001_AAA_SAD_XX").text == "From the table."
    assert said(crema_d, "transcript").startswith("clips without a transcript (text null): 8 (")
    (crema_d / "sentences.csv").unlink()
    (crema_d / "README.md").unlink()
    assert clip(crema_d, "1001_AAA_SAD_XX").text is None
    assert said(crema_d, "transcript").startswith("clips without a transcript (text null): 16 (")


def test_a_folder_of_something_else_is_refused(crema_d: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "Actor_01").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"is not CREMA-D: expected AudioWAV/ .* found Actor_01/; give"):
        CremaD(other)
    with pytest.raises(UsageError, match="the folder is empty"):
        CremaD(other / "Actor_01")
    with pytest.raises(UsageError, match="is missing"):
        CremaD(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is a file"):
        CremaD(crema_d / "README.md")
    with pytest.raises(UsageError, match="give the folder that holds AudioWAV"):
        CremaD(crema_d / "AudioWAV")


def test_an_empty_corpus_and_a_broken_table_are_refused(crema_d: Path) -> None:
    (crema_d / "VideoDemographics.csv").write_text("ActorID,Age\n1001,20\n")
    with pytest.raises(UsageError, match="column 'Sex' is missing; its columns are ActorID, Age"):
        CremaD(crema_d).clips()
    (crema_d / "VideoDemographics.csv").write_bytes(b"ActorID,Age,Sex,Race,Ethnicity\n\xff\xfe")
    with pytest.raises(UsageError, match="not a text in UTF-8"):
        CremaD(crema_d).clips()
    for path in (crema_d / "AudioWAV").iterdir():
        path.unlink()
    (crema_d / "VideoDemographics.csv").write_text("ActorID,Age,Sex,Race,Ethnicity\n1001,20,Male,,\n")
    with pytest.raises(UsageError, match="holds no clip"):
        CremaD(crema_d).clips()


def test_git_lfs_pointers_are_recognised(crema_d: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 80000\n"
    (crema_d / "AudioWAV" / "1001_AAA_NEU_XX.wav").write_text(pointer)
    with pytest.raises(UsageError, match=r"1 file .*1001_AAA_NEU_XX\.wav.*git lfs pull"):
        CremaD(crema_d).clips()
    (crema_d / "VideoDemographics.csv").write_text(pointer)
    with pytest.raises(UsageError, match="git lfs pull"):
        CremaD(crema_d)


def test_a_corpus_is_opened_by_name(crema_d: Path) -> None:
    assert isinstance(open_builder("crema_d", crema_d), CremaD)
    with pytest.raises(UsageError, match="unknown corpus 'cremad'; did you mean crema_d"):
        open_builder("cremad", crema_d)
