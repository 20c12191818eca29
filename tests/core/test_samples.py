"""Samples in a file: a small table is read once, a large one column by column, and both are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from equivox.core import samples
from equivox.core.files import read_table, write_table
from equivox.core.samples import Row, Samples, samples_table

ROWS = [
    Row(group=group, cluster=group, stratum="", status="parsed", values={"mood": (mood,)}, key=f"k{number}")
    for number, (group, mood) in enumerate(zip("aabb", ("glad", "sad", "glad", "calm"), strict=True))
]


@pytest.mark.parametrize(("small", "reads"), [(samples.SMALL, 1), (0, 4)])
def test_a_small_table_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int, reads: int) -> None:
    write_table(tmp_path / "t.parquet", samples_table(ROWS))
    asked: list[Sequence[str] | None] = []

    def counted(path: Path, columns: Sequence[str] | None = None, **given: Any) -> Any:
        asked.append(columns)
        return read_table(path, columns, **given)

    monkeypatch.setattr(samples, "read_table", counted)
    monkeypatch.setattr(samples, "SMALL", small)
    found = Samples(tmp_path / "t.parquet")
    assert found.groups.texts() == ["a", "a", "b", "b"]
    assert found.keys == ["k0", "k1", "k2", "k3"]
    moods = found.values("mood")
    assert (moods.names, moods.codes.tolist()) == (("calm", "glad", "sad"), [1, 2, 1, 0])
    assert len(found) == 4
    assert len(asked) == reads
