from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from built import rows_in

from equivox import dataset_builders
from equivox.core.errors import RunError, UsageError
from equivox.core.plugins import Plugin
from equivox.core.progress import Event
from equivox.dataset_builders import ClipFolder, CremaD, build, open_builder, parquet, sample_source
from equivox.dataset_builders.base import Builder, Clip, Column, CorpusFacts, Scan
from equivox.dataset_builders.schema import COMMON, rows

SHARD = "train-00000-of-00001.parquet"


def hidden(output: Path) -> list[str]:
    return [path.name for path in output.iterdir() if path.name.startswith(".")]


def test_a_build_has_the_rows_that_the_builder_has(crema_d: Path, tmp_path: Path) -> None:
    steps: list[Event] = []
    report = build(CremaD(crema_d), tmp_path / "out", progress=steps.append)
    assert (report.status, report.rows, report.files, report.problems) == ("built", 16, (SHARD,), {})
    assert report.folder == tmp_path / "out" / "crema_d"
    assert sorted(path.name for path in report.folder.iterdir()) == ["README.md", "build.json", SHARD]
    assert steps == [Event("clips", n, 16) for n in range(1, 17)]
    assert rows_in(report.folder) == [row for row, _ in rows(CremaD(crema_d))]
    first = rows_in(report.folder)[0]
    assert first["audio"]["bytes"] == (crema_d / "AudioWAV" / "1001_AAA_NEU_XX.wav").read_bytes()
    assert (first["audio"]["path"], first["sampling_rate"]) == ("AudioWAV/1001_AAA_NEU_XX.wav", 16_000)
    assert first["duration_s"] == pytest.approx(0.2)


def test_damaged_clips_are_rows_with_a_problem(crema_d: Path, tmp_path: Path, write_audio: Callable[..., None]) -> None:
    audio = crema_d / "AudioWAV"
    (audio / "1001_AAA_NEU_XX.wav").write_bytes(b"")
    (audio / "1002_AAA_NEU_XX.wav").write_bytes(b"garbage, not audio")
    write_audio(audio / "1003_AAA_NEU_XX.wav", peak=0.0)
    write_audio(audio / "1004_AAA_NEU_XX.wav", rate=44_100, channels=2)
    report = build(CremaD(crema_d), tmp_path / "out")
    assert report.rows == 16
    assert report.problems == {
        "1001_AAA_NEU_XX": "empty file (0 bytes)",
        "1002_AAA_NEU_XX": "not wav, flac, ogg or mp3 (begins with 67 61 72 62 61 67 65 2c); convert it to one",
        "1003_AAA_NEU_XX": "silent",
    }
    found = {row["clip_id"]: row for row in rows_in(report.folder)}
    assert found["1002_AAA_NEU_XX"]["audio"]["bytes"] == b"garbage, not audio"
    assert found["1002_AAA_NEU_XX"]["sampling_rate"] is None
    assert (found["1004_AAA_NEU_XX"]["sampling_rate"], found["1004_AAA_NEU_XX"]["audio_problem"]) == (44_100, None)
    assert "`1003_AAA_NEU_XX`: silent" in (report.folder / "README.md").read_text()


def test_the_same_source_is_not_built_twice(crema_d: Path, tmp_path: Path) -> None:
    first = build(CremaD(crema_d), tmp_path)
    written = (first.folder / SHARD).stat()
    copy = tmp_path / "copy"
    crema_d.rename(copy)  # neither place nor times are part of the fingerprint
    os.utime(copy / "AudioWAV" / "1001_AAA_NEU_XX.wav", (0, 0))
    again = build(CremaD(copy), tmp_path)
    assert (again.status, again.fingerprint) == ("up to date", first.fingerprint)
    assert (first.folder / SHARD).stat() == written


@pytest.mark.parametrize(("lost", "left"), [(SHARD, None), ("README.md", None), (SHARD, b"cut")])
def test_a_build_that_lost_a_file_is_made_again(crema_d: Path, tmp_path: Path, lost: str, left: bytes | None) -> None:
    folder = build(CremaD(crema_d), tmp_path).folder
    (folder / lost).unlink() if left is None else (folder / lost).write_bytes(left)
    assert build(CremaD(crema_d), tmp_path).status == "rebuilt"
    assert len(rows_in(folder)) == 16 and (folder / lost).is_file()


def test_a_changed_source_is_built_again(crema_d: Path, tmp_path: Path, write_audio: Callable[..., None]) -> None:
    first = build(CremaD(crema_d), tmp_path)
    audio = crema_d / "AudioWAV"
    changed = audio / "1001_AAA_SAD_XX.wav"
    size = changed.stat().st_size
    write_audio(changed, seed=99)
    assert changed.stat().st_size == size
    second = build(CremaD(crema_d), tmp_path)
    assert second.status == "rebuilt" and second.fingerprint != first.fingerprint
    demographics = crema_d / "VideoDemographics.csv"
    demographics.write_text(demographics.read_text().replace("1002,52", "1002,53"))
    assert build(CremaD(crema_d), tmp_path).status == "rebuilt"
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_build_leaves_the_earlier_one(
    crema_d: Path, tmp_path: Path, error: BaseException | type[BaseException], write_audio: Callable[..., None]
) -> None:
    def stop(event: Event) -> None:
        if event.done == 8:
            raise error

    expected = RunError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        build(CremaD(crema_d), tmp_path / "out", progress=stop)
    assert list((tmp_path / "out").iterdir()) == []
    first = build(CremaD(crema_d), tmp_path / "out")
    write_audio(crema_d / "AudioWAV" / "1001_AAA_SAD_XX.wav", seed=99)
    with pytest.raises(expected):
        build(CremaD(crema_d), tmp_path / "out", progress=stop)
    assert hidden(tmp_path / "out") == []
    assert json.loads((first.folder / "build.json").read_text())["fingerprint"] == first.fingerprint
    assert len(rows_in(first.folder)) == 16


def test_a_full_disk_leaves_nothing_and_is_one_line(crema_d: Path, tmp_path: Path) -> None:
    """The system refuses to let any file grow beyond 20 kB, as a full disk would; a clip has 6 kB."""
    code = f"""
import resource, signal
import datasets, pyarrow.parquet, soundfile
from equivox.dataset_builders import CremaD, build
from equivox.core.errors import RunError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    build(CremaD({str(crema_d)!r}), {str(tmp_path / "out")!r})
except RunError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(f"crema_d was not built in {tmp_path / 'out' / 'crema_d'}: ")
    assert len(run.stdout.splitlines()) == 1
    assert list((tmp_path / "out").iterdir()) == []


def test_a_killed_build_is_cleared_away_by_the_next(crema_d: Path, tmp_path: Path) -> None:
    code = f"""
import os, signal
from equivox.dataset_builders import CremaD, build
kill = lambda event: os.kill(os.getpid(), signal.SIGKILL) if event.done == 9 else None
build(CremaD({str(crema_d)!r}), {str(tmp_path / "out")!r}, progress=kill)
"""
    run = subprocess.run([sys.executable, "-c", code])
    assert run.returncode == -signal.SIGKILL
    assert len(hidden(tmp_path / "out")) == 1
    assert build(CremaD(crema_d), tmp_path / "out").status == "built"
    assert hidden(tmp_path / "out") == []


def test_a_build_killed_while_it_was_put_in_place_is_made_again(crema_d: Path, tmp_path: Path) -> None:
    folder = build(CremaD(crema_d), tmp_path).folder
    folder.rename(tmp_path / ".crema_d.replaced")
    (tmp_path / ".crema_d.partial").mkdir()
    assert build(CremaD(crema_d), tmp_path).status == "built"
    assert len(rows_in(folder)) == 16 and hidden(tmp_path) == []


def test_a_source_that_changes_while_it_is_read_is_not_built(
    crema_d: Path, tmp_path: Path, write_audio: Callable[..., None]
) -> None:
    def meddle(event: Event) -> None:
        write_audio(crema_d / "AudioWAV" / "1004_BBB_SAD_XX.wav", seed=99)

    with pytest.raises(RunError, match=r"1004_BBB_SAD_XX\.wav changed while it was read"):
        build(CremaD(crema_d), tmp_path / "out", progress=meddle)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_with_other_files_is_not_replaced(crema_d: Path, tmp_path: Path) -> None:
    (tmp_path / "crema_d").mkdir()
    (tmp_path / "crema_d" / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match=r"holds files that were not built here \(thesis\.tex\)"):
        build(CremaD(crema_d), tmp_path)
    with pytest.raises(UsageError, match="cannot write in"):
        build(CremaD(crema_d), crema_d / "README.md")


def test_shards_are_split_and_numbered(crema_d: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A clip has 6,444 bytes; two make a row group, and a shard takes no more than three groups: 6 + 6 + 4 clips.
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2)
    monkeypatch.setattr(parquet, "SHARD_BYTES", 41_000)
    report = build(CremaD(crema_d), tmp_path)
    assert report.files == tuple(f"train-{n:05d}-of-00003.parquet" for n in range(3))
    assert [pq.read_metadata(report.folder / name).num_rows for name in report.files] == [6, 6, 4]
    assert [row["clip_id"] for row in rows_in(report.folder)] == [clip.clip_id for clip in CremaD(crema_d).clips()]


def test_the_same_source_gives_the_same_bytes(crema_d: Path, tmp_path: Path) -> None:
    one, two = (build(CremaD(crema_d), tmp_path / name).folder for name in ("one", "two"))
    for name in ("README.md", "build.json", SHARD):
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_the_card_says_what_was_built(crema_d: Path, tmp_path: Path) -> None:
    report = build(CremaD(crema_d), tmp_path)
    _, head, body = (report.folder / "README.md").read_text().split("---\n", maxsplit=2)
    header = yaml.safe_load(head)
    names = [feature["name"] for feature in header["dataset_info"]["features"]]
    assert (header["license"], header["language"], header["size_categories"]) == ("odbl", ["en"], ["n<1K"])
    assert header["dataset_info"]["splits"][0]["num_examples"] == 16
    assert header["dataset_info"]["download_size"] == (report.folder / SHARD).stat().st_size
    assert names == pq.read_schema(report.folder / SHARD).names
    assert set(names) - set(COMMON) == {column.name for column in CremaD.FACTS.columns}
    assert all(f"| `{name}` |" in body for name in names)
    assert "| clips | 7,442 | 16 |" in body
    assert all(f"- {line}" in body for line in report.differences)
    assert report.fingerprint in body
    assert str(tmp_path) not in body


def test_the_record_is_complete(crema_d: Path, tmp_path: Path) -> None:
    report = build(CremaD(crema_d), tmp_path)
    record = json.loads((report.folder / "build.json").read_text())
    assert record["builder"] == {"name": "crema_d", "version": 1}
    assert (record["rows"], record["fingerprint"]) == (16, report.fingerprint)
    assert record["counts"]["male"] == 2
    assert record["duration_s"] == pytest.approx(16 * 0.2)
    assert record["files"][SHARD]["bytes"] == (report.folder / SHARD).stat().st_size
    assert {"equivox", "datasets", "pyarrow", "libsndfile"} <= set(record["versions"])


def test_options_that_change_the_rows_change_the_fingerprint(crema_d: Path) -> None:
    lines = ["path,text,speaker,gender", *(f"{p.name},Hi.,{p.name[:4]},x" for p in (crema_d / "AudioWAV").iterdir())]
    (crema_d / "AudioWAV" / "clips.csv").write_text("\n".join(lines))
    one = lines[1].split(",")[0]
    options: list[dict[str, Any]] = [
        {}, {"strata": ["gender"]}, {"columns": {"sex": "gender"}}, {"where": {"path": one}}
    ]  # fmt: skip
    prints = {ClipFolder(crema_d / "AudioWAV", name="mine", **option).fingerprint() for option in options}
    assert len(prints) == 4


def test_the_build_loads_offline_with_datasets_alone(tmp_path: Path) -> None:
    """Two ways to the same 288 rows: the folder, and the parquet loader."""
    folder = build(open_builder("crema_d", sample_source("crema_d")), tmp_path / "out").folder
    code = f"""
import datasets, json
folder = {str(folder)!r}
ways = [datasets.load_dataset(folder, split="train"), datasets.load_dataset("parquet", data_dir=folder, split="train")]
assert ways[0].features == ways[1].features
assert ways[0].features["audio"] == datasets.Audio(decode=False)
assert ways[0].features["age"] == datasets.Value("int64")
assert ways[0].to_list() == ways[1].to_list()
print(json.dumps([[row["clip_id"], row["audio_sha256"], len(row["audio"]["bytes"])] for row in ways[0]]))
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [
        [row["clip_id"], row["audio_sha256"], len(row["audio"]["bytes"])] for row in rows_in(folder)
    ]


FACTS = CorpusFacts(name="shelf", title="A shelf", licence="CC0", columns=(Column(name="gender", meaning="as told"),))


class Shelf(Builder):
    """Somebody's builder of two clips, which come one by one; `odd` are other fields of the second."""

    FACTS = FACTS
    odd: Mapping[str, Any] = {}

    def _check_source(self) -> None: ...

    def _scan(self) -> Scan:
        first = Clip(clip_id="a", path=self.source / "a.wav", text=None, speaker="s", columns={"gender": "f"})
        clips = iter([first, replace(first, **({"clip_id": "b"} | self.odd))])
        return Scan(clips=clips, counts={}, oddities={})  # type: ignore[arg-type]


def test_clips_may_come_one_by_one(tmp_path: Path) -> None:
    assert [clip.clip_id for clip in Shelf(tmp_path).clips()] == ["a", "b"]


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"clip_id": "a"}, "shelf gave a clip the name 'a', which is empty or taken; give each its own"),
        ({"clip_id": ""}, "shelf gave a clip the name '', which is empty or taken"),
        (
            {"path": "b.wav"},
            "gave a clip with an odd field: Clip: `path`: input should be an instance of path, got 'b.wav'",
        ),
        ({"speaker": None}, "gave a clip with an odd field: Clip: `speaker`: input should be a valid string"),
        ({"columns": {}}, "shelf gave 'b' other columns than `FACTS.columns`: gender"),
        ({"columns": {"gender": "f", "mood": "?"}}, "shelf gave 'b' other columns than `FACTS.columns`: mood"),
        ({"columns": {"gender": math.nan}}, "shelf gave 'b' NaN as gender, which would be a group; use None"),
        ({"columns": {"gender": Path("f")}}, "gave a clip with an odd field: Clip: `columns.gender"),
    ],
)
def test_odd_clips_of_a_plug_in_are_refused_in_one_line(tmp_path: Path, odd: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as found:
        type("Odd", (Shelf,), {"odd": odd})(tmp_path).clips()
    assert told in str(found.value)


def test_a_plug_in_builder_says_what_its_corpus_is_and_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"gives .* without `FACTS`, which describe its corpus"):
        dataset_builders._class_or_function(type("Bare", (Builder,), {}), "the entry point bare of the package p")
    copied = type("Copied", (Shelf,), {"FACTS": replace(FACTS, name="crema_d")})
    monkeypatch.setattr(dataset_builders, "added_builders", lambda: {"shelf": Plugin(package="p", given=copied)})
    # Its build would be taken for the published corpus.
    with pytest.raises(UsageError, match="the builder shelf of p calls its corpus 'crema_d'; name it shelf"):
        open_builder("shelf", tmp_path)
