"""Tables from elsewhere: what cannot be read, or would not fit, is one line before anything is expanded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equivox.core.errors import RequestError
from equivox.dataset_builders import plain_tables
from equivox.dataset_builders.opening import open_corpus
from equivox.dataset_builders.plain_tables import as_columns, read_columns, read_table
from equivox.tasks.registry import builtin_tasks

Cli = Callable[..., tuple[int, str, str]]
HOSTILE = {
    "deep.json": "[" * 100_000,
    "deeper.json": '[{"a": ' + "[" * 100_000,
    "deep.jsonl": '{"a": 1}\n' + "[" * 100_000,
    "half.json": '[{"response": "\\ud800"}]',
    "half.jsonl": '{"\\uDFFF": 1}',
    "digits.json": "[" + "9" * 5_000 + "]",
    "wide.csv": ",".join(f"c{n}" for n in range(50_000)) + "\n" + ",".join("x" * 50_000),
    "wide.json": json.dumps([{f"c{n}": 1 for n in range(50_000)}]),
    "wider.json": json.dumps({f"c{n}": [1] for n in range(50_000)}),
    "scattered.jsonl": "\n".join(json.dumps({f"c{n % 9_000}": 1}) for n in range(20_000)),
}
"""Files by name, each of which once took a traceback, a minute or all memory."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_table_is_one_line(tmp_path: Path, name: str, equivox: Cli) -> None:
    path = tmp_path / name
    path.write_text(HOSTILE[name])
    for command in (("import", path, "vibe_gender:story", "--output", tmp_path / "run"), ("metric", "ntvd", path)):
        code, out, err = equivox(*command)
        assert (code, out, err.count("\n")) == (2, "", 1), err[:300]
        assert name in err and len(err) < 1_000
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "sign", "told"),
    [
        ("t.csv", ";", "semicolons, where commas"),
        ("t.csv", "\t", "tabs, where commas"),
        ("t.tsv", ",", "commas, where tabs"),
    ],
)
def test_cells_that_something_else_separates_are_told(tmp_path: Path, name: str, sign: str, told: str) -> None:
    """A spreadsheet in a German setting writes semicolons; the texts have commas, and quotes would mend nothing."""
    path = tmp_path / name
    path.write_text(f"id{sign}text{sign}gender\n1{sign}Dear Sir, please{sign}f\n")
    for read in (read_columns, lambda file: read_table(file, ["id"])):
        if name == "t.tsv" and read is not read_columns:
            continue
        with pytest.raises(RequestError, match=f"separated by {told} are expected"):
            read(path)


def test_whole_characters_of_two_halves_are_read(tmp_path: Path) -> None:
    path = tmp_path / "smile.jsonl"
    path.write_text('{"response": "\\ud83d\\ude42 \\\\ud800"}')
    assert read_columns(path) == {"response": ["🙂 \\ud800"]}


@pytest.mark.parametrize("kind", plain_tables.FORMATS)
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    pipe, device = tmp_path / f"pipe{kind}", tmp_path / f"zero{kind}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device, tmp_path):
        with pytest.raises(RequestError, match=r"is no file; save|a table ends in"):
            read_columns(path)


def test_a_sparse_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    with path.open("wb") as file:
        file.truncate(plain_tables.MOST_BYTES + 1)
    with pytest.raises(RequestError, match="too large: it has 2,147,483,649 bytes, and the most is 2,147,483,648"):
        read_columns(path)


LIMITED = """
import resource, sys
from equivox.core.errors import RequestError
from equivox.dataset_builders.plain_tables import read_columns
import pyarrow.parquet, pyarrow.compute
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
try:
    read_columns(sys.argv[1])
except RequestError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["text", "list", "struct", "numbers"])
def test_a_table_that_would_fill_the_memory_is_refused_before_it_does(tmp_path: Path, kind: str) -> None:
    indices = pa.array([0] * 100_000, pa.int32())
    column: pa.Array = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 200_000]))
    if kind == "list":
        column = pa.ListArray.from_arrays(pa.array([0, 100_000], pa.int32()), column)
    if kind == "struct":
        column = pa.StructArray.from_arrays([column], ["inner"])
    if kind == "numbers":
        column = pa.nulls(200_000_000, pa.int8())
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"response": column}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 600_000
    found = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True)
    assert "too large: it has" in found.stdout, found.stderr


def test_parquet_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    columns = {
        "text": ["a", None, "a"], "words": [["x", "y"], [], None], "n": [1, 2, None], "f": [0.5, None, 1.0],
        "bytes": [b"a", b"", None], "inner": [{"a": "x"}, None, {"a": None}], "when": [True, False, None],
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    assert read_columns(path) == columns
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RequestError, match=r"cannot read table\.parquet as parquet"):
        read_columns(path)


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="the column 'a' twice"):
        as_columns(pa.table([[1], [2]], ["a", "a"]))
    path = tmp_path / "twice.csv"
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(RequestError, match="the column 'a' is there twice"):
        read_columns(path)


def test_many_responses_of_one_sample_are_no_design(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "one.jsonl"
    first = open_corpus(builtin_tasks()["vibe_gender:story"].data, "sample").samples[0].sample_id
    path.write_text("\n".join(json.dumps({"sample_id": first, "response": f"A nurse, {n}."}) for n in range(500)))
    code, _, err = equivox("import", path, "vibe_gender:story", "--data", "sample", "--output", tmp_path / "run")
    assert code == 2 and "one.jsonl has 500 responses of one sample" in err and "144,000 requests" in err
    assert not (tmp_path / "run").exists()
