"""Tables from elsewhere: what cannot be read, or would not fit, is one line before anything is expanded."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from datetime import datetime
from pathlib import Path

import datasets
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.dataset_builders import plain_tables, workbooks
from equivox.dataset_builders.opening import open_corpus
from equivox.dataset_builders.parts import flattened, names_of
from equivox.dataset_builders.plain_tables import as_columns, column_names, read_columns, read_table
from equivox.dataset_builders.table_limits import MOST_BYTES
from equivox.tasks.registry import builtin_tasks

HOSTILE = {
    "deep.json": "[" * 100_000,
    "deeper.json": '[{"a": ' + "[" * 100_000,
    "deep.jsonl": '{"a": 1}\n' + "[" * 100_000,
    "answers.jsonl": f'{{"response": {"[" * 800}"a"{"]" * 800}}}',
    "choices.jsonl": '{"response": ' + '{"choices": [' * 300 + "1" + "]}" * 300 + "}",
    "repeats.jsonl": json.dumps({"response": ["a"] * 20_000, **{f"c{n}": 1 for n in range(6_000)}}),
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
    err = equivox.refused("import", path, "vibe_gender:story", "--output", tmp_path / "run")
    assert name in err and len(err) < 1_000


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\ufeffsep={sign}\r\n", "\r\n"])
def test_cells_are_read_however_a_spreadsheet_separates_them(tmp_path: Path, name: str, sign: str, before: str) -> None:
    """In a German setting a spreadsheet writes semicolons; its texts have commas, its numbers decimal commas."""
    path = tmp_path / name
    rows = [
        ("id", "Antrag, kurz", "Gehalt"), ("1", "Bäcker, nachts", "52.000,50"),
        ("2", 'sagt "ja"; oder\nnein,\tgut', "1;2"), ("3", "طلب", ""),
    ]  # fmt: skip
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(before.format(sign=sign))
        csv.writer(file, delimiter=sign).writerows(rows)
    read = read_columns(path)
    assert list(read) == list(rows[0]) == column_names(path)
    assert [*zip(*read.values(), strict=True)] == [tuple(cell or None for cell in row) for row in rows[1:]]
    if not before.startswith("\ufeffsep"):
        assert read_table(path, ["id"]) == [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_of_signs_that_divide_a_header_equally_the_one_that_divides_the_rows_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Frage, kurz;Geschlecht\nSoll ich kündigen?;w\n")
    assert read_columns(path) == {"Frage, kurz": ["Soll ich kündigen?"], "Geschlecht": ["w"]}
    path.write_text("a,b;c\n1,x\n")
    assert read_columns(path) == {"a": ["1"], "b;c": ["x"]}
    path.write_text('"a;b"\n"1;2"\n')
    assert read_columns(path) == {"a;b": ["1;2"]}


def workbook(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    """Write an Excel file with these sheets."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def changed(path: Path, part: str, old: str, new: str) -> Path:
    """Change a text within one part of an Excel file, which is an archive of XML files."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert old in parts[part]
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text.replace(old, new) if name == part else text)
    return path


def test_an_excel_file_is_read_as_it_is_shown(tmp_path: Path) -> None:
    """Errors of formulas are no texts, blank rows and columns no entries; what stands hidden is not read."""
    rows: list[list[object]] = [
        [None, "prompt ", "paid", "full time"],
        [],
        [None, "Wie viel?\n", 52_000.5, True],
        [None, "  ", 7, False],
        [None, "#N/A", "", None],
    ]
    path = workbook(tmp_path / "Fälle.XLSX", {"Tabelle1": rows, "empty": [[]], "list": [["w", "m"]]})
    book = openpyxl.load_workbook(path)
    book["list"].sheet_state = "hidden"
    book["Tabelle1"]["B6"] = "Nobody reads this."
    book.save(path)
    changed(path, "xl/worksheets/sheet1.xml", 'ref="B1:D6"', 'ref="B1:C3"')  # some programs write too small a size
    assert read_columns(path) == {
        "prompt": ["Wie viel?\n", None, "Nobody reads this."],
        "paid": [52_000.5, 7, None],
        "full time": [True, False, None],
    }


def test_numbers_days_and_line_breaks_of_an_excel_file_are_read_as_they_are_shown(tmp_path: Path) -> None:
    """Google Sheets writes 34 as 34.0, a sum has its last bits, and a break of Windows is a sign of its own."""
    rows: list[list[object]] = [["age", "sum", "day", "text"], [34, 0.5, datetime(2024, 1, 2), "a\nb"], [35.5, 7]]
    path = workbook(tmp_path / "t.xlsx", {"a": rows})
    for old, new in (("<v>34</v>", "<v>34.0</v>"), ("<v>0.5</v>", "<v>409.99999999999994</v>"), ("a\n", "a_x000D_\n")):
        changed(path, "xl/worksheets/sheet1.xml", old, new)
    told = {name: [str(cell) for cell in own] for name, own in read_columns(path).items()}
    assert told == {
        "age": ["34", "35.5"], "sum": ["410", "7"], "day": ["2024-01-02", "None"], "text": ["a\nb", "None"],
    }  # fmt: skip


def test_which_sheet_of_an_excel_file_is_meant_is_not_guessed(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"2024": [["a"], [1]], "2025": [["a"], [2]]})
    with pytest.raises(UsageError, match="entries in the sheets 2024, 2025; save the one that is meant as a file"):
        read_columns(path)
    with pytest.raises(UsageError, match="column 2 has entries and no name"):
        read_columns(workbook(path, {"a": [["Table 1"], [None, "text"], ["x", "y"]]}))


def test_an_excel_file_that_is_none_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.xlsx"
    path.write_text("id,text\n1,a\n")
    with pytest.raises(UsageError, match=r"cannot read t\.xlsx as an Excel file .*not a zip file.*CSV UTF-8"):
        read_columns(path)
    changed(workbook(path, {"a": [["x"], [1]]}), "xl/worksheets/sheet1.xml", "</row>", "")
    with pytest.raises(UsageError, match=r"cannot read t\.xlsx as an Excel file"):
        read_columns(path)
    sparse = openpyxl.Workbook()
    sparse.worksheets[0]["A1"], sparse.worksheets[0]["XFD1048576"] = "x", "y"
    sparse.save(path)
    with pytest.raises(UsageError, match="is too large: it has 16,384 columns"):
        read_columns(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", bytes(3_000_000))
    monkeypatch.setattr(workbooks, "MOST_BYTES", 2_000_000)
    with pytest.raises(UsageError, match="is too large: it has 3,000,000 bytes when it is expanded"):
        read_columns(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r'"\.\[excel\]"`, or save the table in UTF-8'):
        read_columns(path)


def test_what_a_spreadsheet_leaves_around_a_table_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;text;;\n1;a;;\n;;;\n2;;;\n;;;\n;;;\n")
    assert read_columns(path) == {"id": ["1", "2"], "text": ["a", None]}
    path.write_text(",text\n0,a\n1,b\n")
    assert read_columns(path) == {"": ["0", "1"], "text": ["a", "b"]}, "an index has no name"
    path.write_text('hobby\n"yoga"\n""\n""\n')
    assert read_columns(path) == {"hobby": ["yoga", None, None]}, "a missing entry of one column is no empty row"


@pytest.mark.parametrize("above", ["Export of 3 April;;", "Export of 3 April;;\n;;", "Export, 3 April"])
def test_what_stands_above_a_header_is_told(tmp_path: Path, above: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{above}\nid;text;gender\n1;a;f\n2;b;m\n")
    with pytest.raises(UsageError, match=r"what stands above the header|begin the table with its header"):
        read_columns(path)


def test_a_quote_that_is_not_closed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('id,text\n1,"He said\n2,she said\n')
    with pytest.raises(UsageError, match=r"t\.csv, line 2: not a row of a CSV .*; is there a quote that is not closed"):
        read_columns(path)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_table_in_another_encoding_is_told_with_a_way_out(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;text\n1;Bäcker\n", encoding=encoding)
    for read in (read_columns, column_names):
        with pytest.raises(UsageError, match="in Excel as “CSV UTF-8”"):
            read(path)


RECORDS = [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}, {"id": 3}]
COLUMNS = {"id": [1, 2, 3], "text": ["a", "b", None]}


@pytest.mark.parametrize(
    "written",
    [
        "\n".join(map(json.dumps, RECORDS)),
        json.dumps({"data": RECORDS}),
        json.dumps({"version": 2, "plan": {"steps": [{"solver": "generate"}]}, "samples": RECORDS}),
        json.dumps({"id": "e", "results": {"prompts": [{"raw": "p"}], "results": RECORDS}, "config": {"tests": [{}]}}),
        json.dumps({name: dict(enumerate(column)) for name, column in COLUMNS.items()}),
        json.dumps(COLUMNS),
        json.dumps({"schema": {"fields": [{"name": n, "type": "string"} for n in "abcd"]}, "data": RECORDS}),
    ],
)
def test_json_is_read_as_libraries_and_tools_write_it(tmp_path: Path, written: str) -> None:
    """`datasets` writes lines into a file called .json, pandas columns of rows by number, tools a list among others."""
    (tmp_path / "t.json").write_text(written)
    assert read_columns(tmp_path / "t.json") == COLUMNS


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"version": 1, "train": RECORDS, "test": RECORDS[:1]}, "has two tables, train and test; give each a file"),
        ({"train": RECORDS, "test": RECORDS[:1]}, "columns have unequal lengths"),
        ({"a": {"0": 1, "1": 2}, "b": {"1": 1, "0": 2}}, "'a' is a dict, not a column"),
        ({"version": 1, "rows": 3}, "'version' is a int, not a column"),
    ],
)
def test_json_that_may_be_several_tables_is_refused(tmp_path: Path, written: object, told: str) -> None:
    (tmp_path / "t.json").write_text(json.dumps(written))
    with pytest.raises(UsageError, match=told):
        read_columns(tmp_path / "t.json")


def test_whole_characters_of_two_halves_are_read(tmp_path: Path) -> None:
    path = tmp_path / "smile.jsonl"
    path.write_text('{"response": "\\ud83d\\ude42 \\\\ud800"}')
    assert read_columns(path) == {"response": ["🙂 \\ud800"]}


@pytest.mark.parametrize("kind", plain_tables.FORMATS)
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    pipe, device = tmp_path / f"pipe{kind}", tmp_path / f"zero{kind}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(UsageError, match=r"is no file; save"):
            read_columns(path)


def test_a_folder_of_the_hub_is_told_with_a_way_out(tmp_path: Path, equivox: Cli) -> None:
    """The task file took a folder for recordings, and said that a CSV is missing which it does not name."""
    (tmp_path / "saved").mkdir()
    told = "`load_from_disk('saved')` of what was saved to disk, and then `.to_parquet('table.parquet')`"
    (tmp_path / "t.yaml").write_text(
        "{name: t, table: saved, group: g, questions: [{name: q, text: '{a}', attributes: [{name: b, asks: c}]}]}"
    )
    for command in (("tasks", "new", tmp_path / "saved"), ("tasks", tmp_path / "t.yaml")):
        assert told in equivox.refused(*command)


def test_a_sparse_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(UsageError, match="too large: it has 2,147,483,649 bytes, and the most is 2,147,483,648"):
        read_columns(path)


LIMITED = """
import resource, sys
from equivox.core.errors import UsageError
from equivox.dataset_builders.plain_tables import read_columns
import pyarrow.parquet, pyarrow.compute
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
try:
    read_columns(sys.argv[1])
except UsageError as error:
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


def test_numbers_that_stand_for_words_on_the_hub_are_read_as_words(tmp_path: Path) -> None:
    path = tmp_path / "faces.parquet"
    features = datasets.Features(gender=datasets.ClassLabel(names=["male", "female"]), age=datasets.Value("int64"))
    given = {"gender": [1, 0, None, -1], "age": [0, 1, 2, 3]}
    datasets.Dataset.from_dict(given, features=features).to_parquet(path)
    assert read_columns(path) == {"gender": ["female", "male", None, None], "age": [0, 1, 2, 3]}
    for odd in (
        b"{",
        b"[]",
        b"[" * 100_000,
        b"\xff",
        b'{"info": {"features": {"gender": {"_type": "ClassLabel", "names": 3}}}}',
    ):
        pq.write_table(pa.table(given).replace_schema_metadata({b"huggingface": odd}), path)
        assert read_columns(path) == given
    # The library's record may be of other columns than those of the file.
    codes = {"gender": [[1], [0]], "age": [[0], [1]]}
    about = b'{"info": {"features": {"gender": {"_type": "ClassLabel", "names": ["male", "female"]}}}}'
    pq.write_table(pa.table(codes).replace_schema_metadata({b"huggingface": about}), path)
    assert read_columns(path) == codes


def test_parts_of_lists_and_objects_are_columns_of_texts_alone() -> None:
    """A content that is a list in some rows was sent as Python prints it; so was a column that is a list in some."""
    parts = [{"type": "text", "text": "Hi"}]
    assert flattened({"m": [{"content": "Hello"}, {"content": parts}], "t": ["Hello", ["Hi"]]}) == {
        "m.content": ["Hello", None], "m.content.0.type": [None, "text"], "m.content.0.text": [None, "Hi"],
        "t": ["Hello", None], "t.0": [None, "Hi"],
    }  # fmt: skip


def test_parts_without_end_are_refused_or_left_out() -> None:
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    assert set(flattened({"m": [deep], "text": ["Hello"]})) == {f"m{'.0' * 50}", "text"}
    tokens = [{f"token {n}": 0.5 for n in range(row, row + 20)} for row in range(0, 20_000, 20)]
    with pytest.raises(UsageError, match="what 'logprobs' holds is too large: it has 20,000 columns"):
        flattened({"logprobs": tokens})
    assert names_of({"id": [1] * 1_000, "logprobs": tokens}).startswith("id, logprobs.token 0, ")


def test_parquet_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    columns = {
        "text": ["a", None, "a"], "words": [["x", "y"], [], None], "n": [1, 2, None], "f": [0.5, None, 1.0],
        "inner": [{"a": "x"}, None, {"a": None}], "when": [True, False, None],
    }  # fmt: skip
    audio = [{"bytes": b"a", "path": "a.wav"}, None, None]
    files = {"bytes": [b"a", b"", None], "audio": audio, "fixed": pa.array([b"ab"] * 3, pa.binary(2))}
    pq.write_table(pa.table(columns | files), path)
    assert read_columns(path) == columns
    # Bytes beside texts were texts, too: "b'\\x89PNG…'".
    pq.write_table(pa.table({"images": [audio, None, []], "a.b": ["x", "y", None]}), path)
    assert read_columns(path) == {
        "images": [[{"path": "a.wav"}, None, None], None, []], "a.b": ["x", "y", None]
    }  # fmt: skip
    pq.write_table(pa.table({"text": [b"as some writers store texts"]}), path)
    with pytest.raises(UsageError, match="every column holds bytes"):
        read_columns(path)
    pq.write_table(pa.table([["a"], ["b"]], ["text", "text"]), path)
    with pytest.raises(UsageError, match="the column 'text' is there twice"):
        read_columns(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UsageError, match=r"cannot read table\.parquet as parquet"):
        read_columns(path)


def test_a_data_set_is_a_table_and_its_splits_are_several() -> None:
    import datasets

    rows = datasets.Dataset.from_dict({"response": ["a", None]})
    assert as_columns(rows) == {"response": ["a", None]}
    assert as_columns(rows.to_iterable_dataset()) == {"response": ["a", None]}
    with pytest.raises(UsageError, match=r"the table has splits, train, test; give one, such as table\['train'\]"):
        as_columns(datasets.DatasetDict(train=rows, test=rows))


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the column 'a' twice"):
        as_columns(pa.table([[1], [2]], ["a", "a"]))
    path = tmp_path / "twice.csv"
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(UsageError, match="the column 'a' is there twice"):
        read_columns(path)


def test_many_responses_of_one_sample_are_no_design(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "one.jsonl"
    first = open_corpus(builtin_tasks()["vibe_gender:story"].data, "sample").samples[0].sample_id
    path.write_text("\n".join(json.dumps({"sample_id": first, "response": f"A nurse, {n}."}) for n in range(500)))
    err = equivox.refused("import", path, "vibe_gender:story", "--data", "sample", "--output", tmp_path / "run")
    assert "one.jsonl has 500 responses of one sample" in err and "144,000 requests" in err
