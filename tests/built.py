"""What is read of a corpus and of its build, for the tests of several builders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from equivox.dataset_builders import Builder, Clip


def clip_of(builder: Builder, clip_id: str) -> Clip:
    return next(clip for clip in builder.clips() if clip.clip_id == clip_id)


def said_of(builder: Builder, words: str) -> str:
    """Return the one difference that has these words."""
    (line,) = [line for line in builder.differences() if words in line]
    return line


def rows_in(folder: Path, *columns: str) -> list[dict[str, Any]]:
    """Return the rows of a build, with all columns or some."""
    shards = sorted(folder.glob("train-*.parquet"))
    return [row for shard in shards for row in pq.read_table(shard, columns=list(columns) or None).to_pylist()]
