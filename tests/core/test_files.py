"""Files: where what is kept lies, and that a file is whole on the disk before it has its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equivox.core.files import cache_folder, write_whole


def test_what_is_kept_lies_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "own"))
    assert cache_folder("sample") == tmp_path / "own" / "sample"
    monkeypatch.delenv("EQUIVOX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder("sample") == tmp_path / "xdg" / "equivox" / "sample"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("sample") == tmp_path / ".cache" / "equivox" / "sample"
    monkeypatch.setenv("EQUIVOX_CACHE", "~/kept")
    assert cache_folder("sample") == tmp_path / "kept" / "sample"


def test_a_file_gets_its_name_when_the_disk_has_all_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "folder" / "file"
    seen: list[tuple[str, bool]] = []

    def flushed(descriptor: int) -> None:
        seen.append((os.pread(descriptor, 9, 0).decode(), place.exists()))

    monkeypatch.setattr(os, "fsync", flushed)
    write_whole(place, lambda temporary: temporary.write_text("whole"))
    assert seen == [("whole", False)]
    assert place.read_text() == "whole" and list(place.parent.iterdir()) == [place]
