"""Files: a file is whole before it has its name, and each odd file from elsewhere is refused on one line."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equivox.core import foreign_files
from equivox.core.errors import DamageError, UsageError
from equivox.core.files import cache_folder, path_ends, read_table, write_table, write_whole
from equivox.core.foreign_files import refuse_odd_files, refuse_oversized, refuse_unusable


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"EQUIVOX_CACHE": "{home}/own"}, "own/sample"),
        ({"XDG_CACHE_HOME": "{home}/xdg"}, "xdg/equivox/sample"),
        ({}, ".cache/equivox/sample"),
        ({"EQUIVOX_CACHE": "~/kept"}, "kept/sample"),
    ],
)
def test_the_cache_lies_where_the_user_says(
    given: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("EQUIVOX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(tmp_path), **given}.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    assert cache_folder("sample") == tmp_path / expected


def test_a_file_gets_its_name_when_the_disk_has_all_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "folder" / "file"
    seen: list[tuple[str, bool]] = []

    def flushed(descriptor: int) -> None:
        seen.append((os.pread(descriptor, 9, 0).decode(), place.exists()))

    monkeypatch.setattr(os, "fsync", flushed)
    write_whole(place, lambda temporary: temporary.write_text("whole"))
    assert seen == [("whole", False)]
    assert place.read_text() == "whole" and list(place.parent.iterdir()) == [place]


def test_the_fewest_last_parts_tell_paths_apart() -> None:
    assert path_ends([Path("/x/a/run"), Path("/x/b/run")]) == ["a/run", "b/run"]
    assert path_ends([Path("/a/1"), Path("/a/2")]) == ["1", "2"]


def bind_socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))


def link(target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "link").symlink_to(target)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: os.mkfifo(folder / "pipe"), "pipe is not a regular file"),
        (bind_socket, "socket is not a regular file"),
        (link("link"), "link is not a regular file"),
        (link("missing"), "link is not a regular file"),
        (link("/dev/zero"), "link is a link out of"),
        (link("/etc/passwd"), "link is a link out of"),
        (link("../outside"), "link is a link out of"),
        (lambda folder: [(folder / f"{number}").touch() for number in range(9)], "holds more than 8 files"),
        (link("sub"), None),
    ],
)
def test_an_odd_folder_is_refused(
    make: Callable[[Path], object], words: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_files, "MOST_FILES", 8)
    monkeypatch.chdir(tmp_path)
    (folder := Path("run")).mkdir()
    (folder / "sub").mkdir()
    make(folder)
    if words is None:
        refuse_odd_files(folder)
        return
    with pytest.raises(UsageError, match=words):
        refuse_odd_files(folder)


@pytest.mark.parametrize(
    ("path", "words"), [("a" * 4_000, "name too long"), ("a\0b", "null"), ("circle/run", "symbolic links")]
)
def test_a_path_that_cannot_be_is_refused(path: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(UsageError, match=words):
        refuse_unusable(tmp_path / path, "output")


def bomb(kind: str) -> pa.Array:
    """Return 6 GB of texts, or 2 GB of numbers counted with 8 bytes each, that a file holds in some kilobytes."""
    indices = pa.array([0] * 30_000, pa.int32())
    texts: pa.Array = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 200_000]))
    return {
        "text": texts,
        "list": pa.ListArray.from_arrays(pa.array([0, 30_000], pa.int32()), texts),
        "struct": pa.StructArray.from_arrays([texts], ["inner"]),
        "numbers": pa.nulls(600_000_000, pa.int8()),
    }[kind]


@pytest.mark.parametrize("kind", ["text", "list", "struct", "numbers"])
def test_a_table_that_expands_without_end_is_refused(kind: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": bomb(kind)}), tmp_path / "t.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "t.parquet").stat().st_size < 2_000_000
    with pytest.raises(DamageError, match=r"t\.parquet is damaged \(it holds .* bytes or more"):
        refuse_oversized(tmp_path / "t.parquet")


def test_a_large_table_of_texts_is_read(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", pa.table({"a": ["x" * 1_000, "y" * 1_000] * 50_000}))
    refuse_oversized(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").num_rows == 100_000
