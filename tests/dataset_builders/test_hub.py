"""Public copies on the Hub: offline snapshots in their layouts give the rows of the original distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built import rows_in
from commands import Cli

from equivox.core.errors import UsageError
from equivox.dataset_builders import build, open_builder, sample_source
from equivox.dataset_builders.hub import download, open_hub_file

REVISION = "0123456789abcdef0123456789abcdef01234567"
AUDIO = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def snapshot(folder: Path, rows: list[dict[str, Any]], fields: Mapping[str, Any], shards: int = 2) -> Path:
    """Write rows as the Hub stores a data set: data/train-…-of-….parquet."""
    (folder / "data").mkdir(parents=True)
    schema = pa.schema(list(fields.items()))
    for shard in range(shards):
        table = pa.Table.from_pylist(rows[shard::shards], schema=schema)
        pq.write_table(table, folder / "data" / f"train-{shard:05d}-of-{shards:05d}.parquet")
    return folder


def audio(path: Path) -> dict[str, Any]:
    return {"bytes": path.read_bytes(), "path": path.name}


@pytest.fixture
def cremad(tmp_path: Path) -> Path:
    """As confit/cremad-parquet lays it out: the clip and its emotion."""
    clips = sorted((sample_source("crema_d") / "AudioWAV").iterdir())
    rows = [{"audio": audio(path), "emotion": path.stem.split("_")[2]} for path in clips]
    return snapshot(tmp_path / "snapshot", rows, {"audio": AUDIO, "emotion": pa.string()})


@pytest.fixture
def l2arctic(tmp_path: Path) -> Path:
    """As KoelLabs/L2Arctic lays it out: clip, words and the speaker's columns."""
    source = sample_source("l2_arctic")
    original = open_builder("l2_arctic", source)
    rows = [
        {
            "audio": audio(clip.path),
            "text": clip.text,
            "speaker_code": clip.speaker,
            "speaker_gender": str(clip.columns["gender"]).title(),
            "speaker_native_language": str(clip.columns["accent"]).title(),
        }
        for clip in original.clips()
    ]
    return snapshot(tmp_path / "snapshot", rows, {"audio": AUDIO} | {name: pa.string() for name in list(rows[0])[1:]})


def table(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "audio"} for row in rows_in(folder)]


def built_from_original(corpus: str, folder: Path) -> list[dict[str, Any]]:
    build(open_builder(corpus, sample_source(corpus)), folder)
    return table(folder / corpus)


@pytest.mark.parametrize("copy", ["confit-cremad", "abstracttts-cremad"])
def test_cremad_from_the_hub_is_cremad(copy: str, cremad: Path, equivox: Cli, tmp_path: Path) -> None:
    demographics = sample_source("crema_d") / "VideoDemographics.csv"
    equivox.done(
        "data", "build", "crema_d", "--hub", copy, "--source", cremad, "--revision", REVISION,
        "--demographics", demographics, "--output", tmp_path / "data",
    )  # fmt: skip
    assert table(tmp_path / "data" / "crema_d") == built_from_original("crema_d", tmp_path / "original")
    record = json.loads((tmp_path / "data" / "crema_d" / "build.json").read_text())
    assert record["origin"] == {"hf_repo": open_hub_file(copy).hf_repo, "revision": REVISION}
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["crema_d"]


def test_l2arctic_from_the_hub_is_l2arctic(l2arctic: Path, equivox: Cli, tmp_path: Path) -> None:
    equivox.done(
        "data", "build", "l2_arctic", "--hub", "koellabs-l2arctic", "--source", l2arctic, "--output", tmp_path / "data"
    )
    assert table(tmp_path / "data" / "l2_arctic") == built_from_original("l2_arctic", tmp_path / "original")


def test_sentences_without_names_are_told_apart_by_their_words(l2arctic: Path, equivox: Cli, tmp_path: Path) -> None:
    for n, shard in enumerate(sorted((l2arctic / "data").iterdir())):
        rows = pq.read_table(shard).to_pylist()
        for m, row in enumerate(rows):
            row["audio"]["path"] = f"{n}_{m}.wav"
        pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(shard)), shard)
    equivox.done(
        "data", "build", "l2_arctic", "--hub", "koellabs-l2arctic", "--source", l2arctic, "--output", tmp_path / "data"
    )
    rows = table(tmp_path / "data" / "l2_arctic")
    original = built_from_original("l2_arctic", tmp_path / "original")
    assert sorted((r["speaker"], r["text"], r["audio_sha256"]) for r in rows) == sorted(
        (r["speaker"], r["text"], r["audio_sha256"]) for r in original
    )
    assert len({row["sentence"] for row in rows}) == len({row["text"] for row in rows})


def test_a_pinned_snapshot_comes_from_the_cache(cremad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache" / "datasets--confit--cremad-parquet"
    (place / "snapshots").mkdir(parents=True)
    (place / "refs").mkdir()
    cremad.rename(place / "snapshots" / REVISION)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    found = download(open_hub_file("confit-cremad"), REVISION)
    assert found.name == REVISION
    with pytest.raises(UsageError, match="not on this machine"):
        download(open_hub_file("confit-cremad"), REVISION[::-1])


@pytest.mark.parametrize("revision", [None, "main", "5a54051"])
def test_a_branch_is_no_revision(revision: str | None) -> None:
    with pytest.raises(UsageError, match="40 hexadecimal digits"):
        download(open_hub_file("confit-cremad"), revision)


def test_what_is_wrong_with_a_copy_is_one_line(cremad: Path, equivox: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("corpus: crema_d\nhf_repo: some/where\ncolumns: {audio: clip}\n")
    half = tmp_path / "half.yaml"
    half.write_text("corpus: l2_arctic\nhf_repo: some/where\ncolumns: {audio: audio}\n")
    demographics = sample_source("crema_d") / "VideoDemographics.csv"
    for arguments, hint in (
        (("crema_d", "--hub", mine, "--source", cremad, "--demographics", demographics), "has no column 'clip'"),
        (("crema_d", "--hub", half, "--source", cremad), "`columns` lacks 'text'"),
        (("crema_d", "--hub", "confit-cremad", "--source", cremad), "VideoDemographics.csv"),
        (("crema_d", "--hub", "confit-cremad", "--source", tmp_path / "data"), "holds no parquet"),
        (("l2_arctic", "--hub", "confit-cremad", "--source", cremad), "is a copy of crema_d"),
        (("crema_d", "--hub", "confit-crema", "--source", cremad), "did you mean"),
        (("crema_d",), "give `--source`"),
    ):
        assert hint in equivox.refused("data", "build", *arguments, "--output", tmp_path / "out")
        assert not list((tmp_path / "out").glob("*"))
