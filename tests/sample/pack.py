"""Pack the samples that the other scripts here made: `python tests/sample/pack.py FOLDER`.

FOLDER holds one folder for each corpus; each becomes one parquet file of its files in `dataset_builders/sample/`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLES = Path(__file__).resolve().parents[2] / "dataset_builders" / "sample"


def pack(folder: Path, archive: Path) -> None:
    """Write the files below `folder` into one parquet file, in the order of their names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in paths]
    content = pa.array([path.read_bytes() for path in paths], pa.binary())
    pq.write_table(pa.table({"path": names, "bytes": content}), archive, compression="zstd", use_dictionary=False)


if __name__ == "__main__":
    for one in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
        pack(one, SAMPLES / f"{one.name}.parquet")
