"""The embedded sample: raw distributions in miniature, each one parquet file of the files that it holds.

`tests/sample/` has the scripts that make them. They are unpacked into the user's cache when they are first read.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path, PurePosixPath

from equivox.core.errors import RequestError, nearest
from equivox.core.files import cache_folder
from equivox.core.lazy import pq
from equivox.dataset_builders.base import sha256_of

ARCHIVES = Path(__file__).resolve().parent / "sample"


@cache
def sample_source(name: str) -> Path:
    """Return the folder of the embedded synthetic sample of a corpus, by the builder's name.

    The folder lies in the user's cache, or in a temporary folder if nothing can be written there. RequestError for a
    corpus without a sample.
    """
    archive = ARCHIVES / f"{name}.parquet"
    have = sorted(path.stem for path in ARCHIVES.glob("*.parquet"))
    if name not in have:
        raise RequestError(f"there is no sample of {name!r}{nearest(name, have)}; samples are {', '.join(have)}")
    try:
        return _unpacked(archive, cache_folder("sample") / f"{name}-{sha256_of(archive)[:16]}")
    except OSError:
        made = tempfile.mkdtemp(prefix="equivox-sample-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return _unpacked(archive, Path(made) / name)


def _unpacked(archive: Path, folder: Path) -> Path:
    """Return `folder` with the files of an archive in it; a folder that is there was unpacked whole."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as made:
        for row in pq.read_table(archive).to_pylist():
            path = Path(made) / "whole" / PurePosixPath(row["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row["bytes"])
        try:
            (Path(made) / "whole").rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was first
                raise
    return folder
