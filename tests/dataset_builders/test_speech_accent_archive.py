from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from equivox.core.errors import RequestError
from equivox.dataset_builders import SpeechAccentArchive, build

# The columns, the empty ones at the end and the word "famale" are as in the published table; the people are made up.
HEADER = "age,age_onset,birthplace,filename,native_language,sex,speakerid,country,file_missing?,,,"
ROWS = (
    '27,9,"a town, south africa",zulu1,zulu,female,1,south africa,FALSE,,,',
    '15.5,5,"a town, south africa",zulu2,zulu,male,2,south africa,FALSE,,,',
    '40.5,2.5,"a town, laos, ",lao1,lao,famale,3,,FALSE,,,',
    '33,3,"a town, laos",lao2,lao,male,4,laos,FALSE,,,',
    '61,3,"a town, laos",lao3,lao,female,5,laos,FALSE,,,',
    "0,0,,synthesized1,synthesized,male,6,,FALSE,,,",
    '30,3,"a town, peru",quechua1,quechua,male,7,peru,TRUE,,,',
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Seven rows: four adults with a recording, of whom three share a first language."""
    root = tmp_path / "archive"
    folder = root / "recordings" / "recordings"
    folder.mkdir(parents=True)
    for n, name in enumerate(("zulu1", "zulu2", "lao1", "lao2", "lao3", "synthesized1")):
        noise = np.random.default_rng(n).uniform(-0.3, 0.3, 3200)
        soundfile.write(folder / f"{name}.mp3", noise, 16_000, format="MP3")
    (root / "speakers_all.csv").write_text("\n".join((HEADER, *ROWS)) + "\n")
    (root / "reading-passage.txt").write_text("One passage\nfor all.\n")
    return root


def said(source: Path, words: str) -> str:
    (line,) = [line for line in SpeechAccentArchive(source, speakers_per_accent=3).differences() if words in line]
    return line


def test_adults_with_a_recording_are_used_and_everybody_else_is_counted(archive: Path) -> None:
    clips = {clip.clip_id: clip for clip in SpeechAccentArchive(archive, speakers_per_accent=3).clips()}
    assert list(clips) == ["lao1", "lao2", "lao3", "zulu1"]
    assert {clip.text for clip in clips.values()} == {"One passage for all."}
    assert clips["lao1"].columns == {
        "gender": None, "accent": "lao", "native_language": "lao", "age": 40, "age_group": "40-49", "country": None,
        "age_onset": 2.5,
    }  # fmt: skip
    assert (clips["zulu1"].columns["accent"], clips["zulu1"].columns["native_language"]) == (None, "zulu")
    assert said(archive, "calls missing") == "rows not used, whose recording the table calls missing: 1 of 7"
    assert said(archive, "not people") == "rows not used, synthesized, not people: 1 of 7"
    assert said(archive, "below 18") == "rows not used, below 18 years: 1 of 7"
    assert said(archive, "neither female nor male").endswith("1 (lao1: 'famale')")
    assert said(archive, "without country").endswith("1 (lao1)")
    assert said(archive, "fewer than 3").endswith("1 of 4 (zulu)")


def test_recordings_may_lie_in_one_folder_and_need_no_passage(archive: Path) -> None:
    inner = archive / "recordings" / "recordings"
    for path in inner.iterdir():
        path.rename(inner.parent / path.name)
    inner.rmdir()
    (archive / "reading-passage.txt").unlink()
    clips = SpeechAccentArchive(archive).clips()
    assert all(clip.path.is_file() and clip.text is None for clip in clips) and len(clips) == 4
    assert said(archive, "text null").startswith("clips without a transcript (text null): 4 (")


def test_damage_is_named_and_counted(archive: Path, tmp_path: Path) -> None:
    folder = archive / "recordings" / "recordings"
    (folder / "lao2.mp3").unlink()
    (folder / "lao3.mp3").write_bytes((folder / "lao3.mp3").read_bytes()[:3])
    (folder / "zulu1.mp3").rename(folder / "isizulu1.mp3")
    rows = [*ROWS[:2], ROWS[2].replace("40.5", "?"), *ROWS[3:], ROWS[3], ROWS[4].replace("lao3", "../lao3")]
    (archive / "speakers_all.csv").write_text("\n".join((HEADER, *rows)) + "\n")
    assert said(archive, "without a row").endswith("not used: 1 (isizulu1)")
    assert said(archive, "repeats").endswith("first used: 1 (lao2)")
    assert said(archive, "no file can have").endswith("1 (../lao3)")
    assert said(archive, "age is no number").endswith("1 (lao1)")
    built = build(SpeechAccentArchive(archive), tmp_path / "built")
    assert built.problems.keys() == {"lao2", "lao3", "zulu1"}


def test_something_else_is_refused_in_one_line(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"is not the Speech Accent Archive: expected speakers_all\.csv"):
        SpeechAccentArchive(tmp_path)
    table = archive / "speakers_all.csv"
    table.write_text(table.read_text().replace("sex", "gender"))
    with pytest.raises(RequestError, match=r"speakers_all\.csv: column 'sex' is missing; its columns are age"):
        SpeechAccentArchive(archive).clips()
    table.write_text("\n".join((HEADER, ROWS[0].removesuffix(",") + ",a remark")) + "\n")
    with pytest.raises(RequestError, match=r"line 2: 'a remark' is in a column without a name"):
        SpeechAccentArchive(archive).clips()
