from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equivox.core.errors import UsageError
from equivox.core.files import cache_folder
from equivox.dataset_builders import ClipFolder, build
from equivox.dataset_builders import embedded as embedded_module
from equivox.dataset_builders.embedded import media_in
from equivox.dataset_builders.schema import rows

HEADER = "path,text,speaker,gender,age"
LINES = ("a/1.wav,Hello.,anna,female,007", "a/2.wav,Bye.,anna,female,007", "b/1.wav,Hello.,bert,male,30")


@pytest.fixture
def folder(tmp_path: Path, write_audio: Callable[..., None]) -> Path:
    root = tmp_path / "my corpus"
    for n, name in enumerate(("a/1.wav", "a/2.wav", "b/1.wav")):
        write_audio(root / name, seed=n, seconds=0.1)
    table(root, *LINES)
    return root


def table(root: Path, *lines: str, header: str = HEADER) -> None:
    (root / "clips.csv").write_text("\n".join([header, *lines]) + "\n")


def opened(root: Path, **options: Any) -> ClipFolder:
    return ClipFolder(root, **{"name": "mine", **options})


def test_a_row_is_a_clip_and_values_stay_as_they_are(folder: Path) -> None:
    clip = opened(folder).clips()[0]
    assert (clip.clip_id, clip.path, clip.text, clip.speaker) == ("a/1.wav", folder / "a/1.wav", "Hello.", "anna")
    assert clip.columns == {"gender": "female", "age": "007"}
    builder = opened(folder, strata=["age"])
    assert (builder.facts.demographics, builder.facts.strata) == (("gender",), ("age",))
    assert builder.differences() == []


def test_columns_may_be_called_differently_and_the_path_may_be_a_pattern(folder: Path) -> None:
    table(
        folder,
        "a,1.wav,Hello.,anna,f,0.1,x",
        "b,1.wav,Hello.,bert,m,0.1,y",
        "c,1.wav,Hello.,bert,m,0.1,z",
        header="part,file,said,who,sex,duration_s,text",
    )
    builder = opened(
        folder,
        columns={"path": "{part}/{file}", "text": "said", "speaker": "who", "gender": "sex"},
        where={"part": ["a", "b"]},
    )
    assert [clip.clip_id for clip in builder.clips()] == ["a/1.wav", "b/1.wav"]
    assert builder.clips()[0].columns == {
        "part": "a",
        "file": "1.wav",
        "gender": "f",
        "source_duration_s": "0.1",
        "source_text": "x",
    }
    assert builder.differences() == ["rows left out because `where` asks that part is a or b: 1 of 3"]


def embedded(folder: Path, column: str = "recording") -> Path:
    """Write the folder's table as a parquet file that holds the clips, as data sets of the Hub do."""
    lines = [dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in LINES]
    cells = [{"bytes": (folder / line.pop("path")).read_bytes(), "path": f"{n}.wav"} for n, line in enumerate(lines)]
    cells[1]["bytes"] = None  # type: ignore[assignment]
    path = folder / "clips.parquet"
    pq.write_table(
        pa.Table.from_pylist([{column: cell, **line} for cell, line in zip(cells, lines, strict=True)]), path
    )
    return path


@pytest.mark.parametrize("column", ["recording", "../../out"])
def test_a_parquet_table_may_hold_the_clips_themselves(
    folder: Path, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))
    (folder / "facts.json").write_text('{"licence": "CC0"}')
    builder = opened(folder, table=embedded(folder, column), columns={"path": column})
    clips = builder.clips()
    assert [clip.path.read_bytes() for clip in clips if clip.path.is_file()] == [
        (folder / name).read_bytes() for name in ("a/1.wav", "b/1.wav")
    ]
    assert [(clip.text, clip.speaker, clip.columns["gender"]) for clip in clips] == [
        ("Hello.", "anna", "female"), ("Bye.", "anna", "female"), ("Hello.", "bert", "male")
    ]  # fmt: skip
    assert builder.facts.licence == "CC0"
    (missing,) = builder.oddities()["clips whose file is missing (kept as rows)"]
    assert missing.endswith("/000002.wav")
    # Everything lies in the cache, whatever the column is called, and is there once.
    (made,) = cache_folder("tables").iterdir()
    assert all(clip.path.resolve().is_relative_to(made.resolve()) for clip in clips)
    before = made.stat().st_mtime_ns
    again = opened(folder, table=folder / "clips.parquet", columns={"path": column})
    assert again.fingerprint() == builder.fingerprint()
    assert made.stat().st_mtime_ns == before and [*cache_folder("tables").iterdir()] == [made]
    # A disk with less room than twice the files is not filled, and nothing half-written is left.
    shutil.rmtree(made)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: SimpleNamespace(free=3 * max(4096, len((folder / "a/1.wav").read_bytes())))
    )
    with pytest.raises(UsageError, match=r"clips\.parquet would fill more than half of the free disk"):
        opened(folder, table=folder / "clips.parquet", columns={"path": column})
    assert not [*cache_folder("tables").iterdir()]


def test_files_of_odd_columns_do_not_replace_each_other(tmp_path: Path) -> None:
    path = tmp_path / "clips.parquet"
    pq.write_table(pa.table({"column1": [{"bytes": b"one", "path": 7}], "a b": [b"two"]}), path)
    folder, columns = embedded_module.unpacked_media(path, ["column1", "a b"])
    assert [(folder / own[0]).read_bytes() for own in columns.values()] == [b"one", b"two"]


def test_small_tables_that_hold_much_fill_neither_memory_nor_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that share their bytes are stored once: a file of 1,478 bytes took 5 GB of memory."""
    path = tmp_path / "clips.parquet"
    pq.write_table(pa.table({"clip": [bytes(200_000)] * 64}), path, dictionary_pagesize_limit=1 << 30)
    monkeypatch.setattr(embedded_module, "_MEMORY", 400_000)
    tracemalloc.start()
    assert media_in(path) == {"clip": "audio"}
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2_000_000
    # A file takes a block of the disk, however small it is.
    pq.write_table(pa.table({"clip": [b"x"] * 64}), path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=64 * 4096))
    with pytest.raises(UsageError, match="would fill more than half of the free disk"):
        embedded_module.unpacked_media(path, ["clip"])


def test_a_parquet_table_with_damaged_clips_is_told_in_one_line(folder: Path) -> None:
    path = folder / "clips.parquet"
    cells = [{"bytes": bytes([n]) * 9_000, "path": None} for n in range(1, 9)]
    pq.write_table(pa.table({"clip": cells, "text": ["a"] * 8}), path)
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(0).column(0).dictionary_page_offset
    data[start + 30 : start + 90] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"cannot unpack the files in clips\.parquet \(.*\); is it whole"):
        opened(folder, table=path, columns={"path": "clip"})


def test_a_missing_file_is_a_row_with_a_problem(folder: Path, tmp_path: Path) -> None:
    (folder / "a/2.wav").unlink()
    builder = opened(folder)
    assert "clips whose file is missing (kept as rows): 1 (a/2.wav)" in builder.differences()
    row = next(row for row, _ in rows(builder) if row["clip_id"] == "a/2.wav")
    assert row["audio"] == {"bytes": None, "path": "a/2.wav"}
    assert (row["audio_sha256"], row["audio_problem"], row["duration_s"]) == (None, "missing file", None)
    report = build(builder, tmp_path / "out")
    assert (report.rows, report.problems) == (3, {"a/2.wav": "missing file"})


def test_empty_values_are_null_and_named(folder: Path) -> None:
    table(
        folder, "a/1.wav,,anna,,30", "a/2.wav,Bye.,anna,male,30", "b/1.wav,Hello.,,male,30", "b/1.wav,Hello.,,male,30"
    )
    builder = opened(folder)
    clips = {clip.clip_id: clip for clip in builder.clips()}
    assert (clips["a/1.wav"].text, clips["a/1.wav"].columns["gender"]) == (None, None)
    assert clips["b/1.wav"].speaker == "b/1.wav"
    lines = builder.differences()
    assert "clips without a transcript (text null): 1 (a/1.wav)" in lines
    assert "clips without gender (null): 1 (a/1.wav)" in lines
    assert "clips without a speaker (each is its own): 1 (b/1.wav)" in lines
    assert "speakers with several values of a demographic column: 1 (anna (gender))" in lines
    assert "rows that repeat a clip, not used: 1 (row 4 (b/1.wav))" in lines


@pytest.mark.parametrize(
    "path",
    [
        "../secret.wav", "/etc/passwd", "a/../../secret.wav", "C:\\secret.wav", "", "link.wav", "https://x.org/1.wav",
        "..\\secret.wav", "{source}/../secret.wav", "data:audio/wav;base64;UklG", f"{'x' * 300}\\1.wav",
    ],
)  # fmt: skip
def test_a_path_that_leads_out_of_the_folder_is_refused(folder: Path, path: str) -> None:
    (folder.parent / "secret.wav").write_bytes(b"secret")
    (folder / "link.wav").symlink_to(folder.parent / "secret.wav")
    path = path.format(source=folder)
    table(folder, "a/1.wav,Hello.,anna,female,30", f"{path},Hello.,anna,female,30")
    with pytest.raises(UsageError, match=r"row 2: .*(is not inside|is an address|file name too long|is empty)"):
        opened(folder).clips()


def test_paths_are_those_of_any_machine_and_clips_are_called_by_what_lies_in_the_folder(folder: Path) -> None:
    """Tables are made by listing a folder, with whole paths, or on Windows: such clips were refused, or missing."""
    (folder / "odd\\1.wav").write_bytes((folder / "a/1.wav").read_bytes())
    ways = [f"{folder.resolve()}/a/1.wav", "a\\2.wav", "odd\\1.wav"]
    table(folder, *(f"{way},Hello.,anna,female,30" for way in ways))
    link = folder.with_name("link")
    link.symlink_to(folder)
    clips = opened(folder).clips()
    assert [clip.clip_id for clip in clips] == ["a/1.wav", "a/2.wav", "odd\\1.wav"]
    table(folder, f"{link}/a/1.wav,Hello.,anna,female,30")
    assert [clip.clip_id for clip in opened(link).clips()] == ["a/1.wav"]
    assert all(clip.path.is_file() for clip in clips)


def test_what_is_asked_for_must_be_there(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"the table .*list\.csv is missing: expected a CSV with path, text and"):
        opened(folder, table="list.csv")
    with pytest.raises(UsageError, match=r"`strata` names 'gendre', which .* does not have; did you mean gender"):
        opened(folder, strata=["gendre"])
    with pytest.raises(UsageError, match="column 'part' is missing; its columns are path, text"):
        opened(folder, where={"part": "a"})
    with pytest.raises(UsageError, match="`name` must be letters"):
        ClipFolder(folder)
    with pytest.raises(UsageError, match="holds no clip"):
        opened(folder, where={"gender": "other"}).clips()
    table(folder, "x", header="file")
    with pytest.raises(UsageError, match="column 'path' is missing; its columns are file"):
        opened(folder)


def test_one_id_for_two_files_is_refused(folder: Path) -> None:
    table(folder, "1,a/1.wav,Hello.,anna", "1,b/1.wav,Hello.,bert", header="clip_id,path,text,speaker")
    with pytest.raises(UsageError, match=r"row 2: clip_id '1' already stands for 1\.wav"):
        opened(folder).clips()


def test_a_clip_that_is_described_twice_in_other_words_is_refused(folder: Path) -> None:
    """The second row was left out of every run, and one clip stood for one of two groups."""
    table(folder, "a/1.wav,Hello.,anna,female,30", "a/1.wav,Hello.,anna,male,30")
    with pytest.raises(UsageError, match=r"row 2: the clip 'a/1.wav' has gender 'male' here and 'female' in a row"):
        opened(folder).clips()
    header = "clip_id,path,text,speaker,gender"
    table(folder, "1,a/1.wav,Hello.,anna,female", "2,a/1.wav,Hello.,anna,male", header=header)
    assert [clip.columns["gender"] for clip in opened(folder).clips()] == ["female", "male"]


def test_expected_counts_are_checked(folder: Path) -> None:
    facts = folder / "facts.json"
    facts.write_text('{"published": {"clips": 3, "speakers": 2, "gender=female": 1}}')
    assert opened(folder).differences() == []
    facts.write_text('{"published": {"clips": 4, "gender=other": 1}}')
    assert opened(folder).differences() == [
        "clips: 4 published, 3 found",
        "gender=other: 1 published, 0 found",
    ]


BAD_TABLES = {
    "a quote that is not closed": (
        b'a/1.wav,"Hello.,anna,female,30\na/2.wav,Bye.,anna,female,30\n',
        "line 2: not a row",
    ),
    "two stray quotes": (
        b'a/1.wav,"Hello.,anna,female,30\na/2.wav,Bye.",anna,female,30\n',
        "row 1: a quote seems to swallow rows",
    ),
    "text after a quote": (b'a/1.wav,Hello.,anna,female,30\na/2.wav,"Bye"x,anna,female,30\n', "line 3: not a row"),
    "more cells": (b"a/1.wav,Hello, you.,anna,female,30\n", "line 2: 6 cells, but the header has 5"),
    "fewer cells": (b"\na/1.wav,Hello.,anna\n", "line 3: 3 cells, but the header has 5"),
    "a NUL byte": (b"a/1.wav,Hello.,anna,fem\0ale,30\n", "line 2: not a text in UTF-8; save"),
    "not UTF-8": (
        "a/1.wav,Hello.,anna,female,30\na/2.wav,Grüße.,anna,female,30\n".encode("latin-1"),
        "line 3: not a text in UTF-8; save",
    ),
    "a long path": (b"a" * 5000 + b".wav,Hello.,anna,female,30\n", "row 1: `path` .* name too long"),
    "a long part of a path": (b"a" * 300 + b".wav,Hello.,anna,female,30\n", "row 1: `path` .* name too long"),
    "links in a circle": (b"round.wav,Hello.,anna,female,30\n", "row 1: `path` .* too many levels of symbolic links"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_table_that_cannot_be_read_as_meant_is_refused_by_its_line(case: str, folder: Path) -> None:
    content, hint = BAD_TABLES[case]
    (folder / "round.wav").symlink_to(folder / "round.wav")
    (folder / "clips.csv").write_bytes(HEADER.encode() + b"\n" + content)
    with pytest.raises(UsageError, match=rf"clips\.csv, {hint}") as caught:
        opened(folder).clips()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_doubled_column_is_refused(folder: Path) -> None:
    table(folder, "a/1.wav,Hello.,anna,female,male", header="path,text,speaker,gender, gender")
    with pytest.raises(UsageError, match="the column 'gender' is there twice; name each column once"):
        opened(folder)


def test_a_quoted_cell_may_have_commas_quotes_and_lines(folder: Path) -> None:
    table(folder, 'a/1.wav,"Hello, ""you"".\nAnd you.",anna,female,30', "", "b/1.wav,Hello.,bert,male,30")
    assert [clip.text for clip in opened(folder).clips()] == ['Hello, "you".\nAnd you.', "Hello."]


@pytest.mark.parametrize("text", ["nan", "None", "NA", "null", "<NA>"])
def test_a_text_is_a_value_unless_it_is_said_to_mean_a_missing_one(text: str, folder: Path) -> None:
    table(folder, "a/1.wav,Hello.,anna,female,30", f"a/2.wav,Hello.,{text},{text},30", f"b/1.wav,Hello.,{text},,30")
    assert [clip.columns["gender"] for clip in opened(folder).clips()] == ["female", text, None]
    assert [clip.speaker for clip in opened(folder).clips()] == ["anna", text, text]
    without = opened(folder, missing=[text])
    assert [clip.columns["gender"] for clip in without.clips()] == ["female", None, None]
    assert "clips without gender (null): 2 (a/2.wav, b/1.wav)" in without.differences()
    assert [clip.speaker for clip in without.clips()] == ["anna", "a/2.wav", "b/1.wav"]


def test_a_value_that_is_not_declared_is_refused_with_its_count(folder: Path) -> None:
    table(folder, "a/1.wav,Hello.,anna,Female,30", "a/2.wav,Hello.,anna,Female,30", "b/1.wav,Hello.,bert,male,30")
    hint = r"`values` does not declare 'Female' \(2 rows\) of gender; declared are female, male"
    with pytest.raises(UsageError, match=hint):
        opened(folder, values={"gender": ["female", "male"]}).clips()
    with pytest.raises(UsageError, match=r"`values` names 'gendre', which .* does not have; did you mean gender"):
        opened(folder, values={"gendre": ["female"]})


@pytest.mark.paper
def test_the_published_spoken_stereoset_clips_are_a_corpus(reference_data: Path) -> None:
    builder = ClipFolder(
        reference_data / "spoken_stereoset" / "sample",
        table="manifest.csv",
        name="spoken_stereoset",
        columns={"path": "speech/{domain}/{file}", "text": "context", "gender": "group"},
        where={"domain": "gender"},
    )
    expected = {"clips": 10, "speakers": 6, "gender=female": 3, "gender=male": 3}
    assert {name: builder.counts()[name] for name in expected} == expected
    assert all(audio.problem is None for _, audio in rows(builder))
