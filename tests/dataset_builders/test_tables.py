"""Tables from elsewhere: each case is read as these columns, or refused on one line with these words."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import datasets
import openpyxl
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.dataset_builders import tables
from equivox.dataset_builders.opening import open_corpus
from equivox.dataset_builders.tables import convert_to_columns, flatten_columns, list_paths, read_columns
from equivox.tasks.registry import builtin_tasks

Writer = Callable[[Path], object]


def parquet(columns: Any, **metadata: bytes) -> Writer:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    notes = {name.encode(): value for name, value in metadata.items()}
    return lambda path: pq.write_table(table.replace_schema_metadata(notes or None), path)


def workbook(sheets: dict[str, list[list[object]]], *changes: tuple[str, str], hidden: str = "") -> Writer:
    """Return what writes an Excel file with these sheets; `changes` replace texts in the XML of the first."""

    def write(path: Path) -> None:
        book, buffer = openpyxl.Workbook(), io.BytesIO()
        book.remove(book.worksheets[0])
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            sheet.sheet_state = "hidden" if name == hidden else "visible"
            for row in rows:
                sheet.append(row)
        book.save(buffer)
        with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                text = old.read(name).decode()
                for before, after in changes if name.endswith("sheet1.xml") else ():
                    assert before in text
                    text = text.replace(before, after)
                new.writestr(name, text)

    return write


def sparse(path: Path) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"], book.worksheets[0]["XFD1048576"] = "x", "y"
    book.save(path)


def oversized(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(tables.MOST_BYTES + 1)


def cut_off(path: Path) -> None:
    parquet({"a": ["x"]})(path)
    path.write_bytes(path.read_bytes()[:-20])


AUDIO = [{"bytes": b"a", "path": "a.wav"}, None, None]
MANY = {
    "text": ["a", None, "a"], "words": [["x", "y"], [], None], "n": [1, 2, None], "f": [0.5, None, 1.0],
    "inner": [{"a": "x"}, None, {"a": None}], "when": [datetime(2024, 1, 2), datetime(2024, 1, 2, 3), None],
}  # fmt: skip
BYTES = {"bytes": [b"a", b"", None], "audio": AUDIO, "fixed": pa.array([b"ab"] * 3, pa.binary(2))}
LABELS = b'{"info": {"features": {"g": {"_type": "ClassLabel", "names": ["male", "female"]}}}}'
RECORDS: list[dict[str, object]] = [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}, {"id": 3}]
COLUMNS = {"id": [1, 2, 3], "text": ["a", "b", None]}
EXCEL: list[list[object]] = [
    [None, "prompt ", "paid", "full time", "day"],
    [],
    [None, "Wie viel?\n", 52_000.5, True, datetime(2024, 1, 2)],
    [None, "  ", 34, False],
    [None, "#N/A", "", None],
    [None, "NA", 0.5],
]

CASES: dict[str, tuple[str, str | bytes | object, Any]] = {
    # Texts: the cells are texts, and an empty one is missing.
    "a byte order mark": ("csv", "\ufeffid,text\n1,a\n", {"id": ["1"], "text": ["a"]}),
    "a separator that is said": ("csv", "\ufeffsep=;\r\nid;a,b\r\n1;x\r\n", {"id": ["1"], "a,b": ["x"]}),
    "signs that divide a header equally": ("csv", "a, b;c\nIch?;w\n", {"a, b": ["Ich?"], "c": ["w"]}),
    "commas that divide the rows": ("csv", "a,b;c\n1,x\n", {"a": ["1"], "b;c": ["x"]}),
    "signs in quotes": ("csv", '"a;b"\n"1;2"\n', {"a;b": ["1;2"]}),
    "an inch in the header": ("csv", 'size 5";b\n1;"x"\n', {'size 5"': ["1"], "b": ["x"]}),
    "texts that look missing": ("csv", "g,h\nNA,None\nnull,nan\nN/A,#N/A\n",
                                {"g": ["NA", "null", "N/A"], "h": ["None", "nan", "#N/A"]}),
    "numbers that are names": ("csv", "id,n\n007,1.0\n1e5,\n", {"id": ["007", "1e5"], "n": ["1.0", None]}),
    "a long cell": ("csv", f"id,text\n1,{'x' * 150_000}\n", {"id": ["1"], "text": ["x" * 150_000]}),
    "what spreadsheets leave": ("csv", "id;b;;\n1;a;;\n;;;\n2; ;;\n\n;;;\n", {"id": ["1", "2"], "b": ["a", None]}),
    "an index": ("csv", ",text\n0,a\n1,b\n", {"": ["0", "1"], "text": ["a", "b"]}),
    "missing entries of one column": ("csv", 'hobby\n"yoga"\n""\n\n""\n', {"hobby": ["yoga", None, None]}),
    "a doubled column": ("csv", "a,b,a\n1,2,3\n", "'a' is there twice"),
    "more cells, after a line break": ("csv", 'a,b\n\n1,"x\ny"\n1,2,3\n', "line 5: 3 cells"),
    "fewer cells": ("tsv", "a\tb\n1\n", "line 2: 1 cell,"),
    "a quote that is open": ("csv", 'id,text\n1,"He said\n2,she said\n', "line 2: not a row of a CSV"),
    "a text after a quote": ("csv", 'id,text\n1,x\n1,"Bye"x\n', "line 3: not a row of a CSV"),
    "cp1252": ("csv", "id;text\n1;Bäcker\n".encode("cp1252"), "line 2: not a text in UTF-8; save the table in UTF-8"),
    "UTF-16": ("csv", "id;text\n1;Bäcker\n".encode("utf-16"), "save the table in UTF-8"),
    "a NUL": ("csv", "id;text\n1;a\0\n", "line 2: not a text in UTF-8"),
    "a title": ("csv", "Export of 3 April;;\nid;text;gender\n1;a;f\n", "begin the table with its header"),
    "a title and a blank row": ("csv", "Export of 3 April;;\n;;\nid;text;gender\n1;a;f\n", "begin the table with"),
    "a title with a comma": ("csv", "Export, 3 April\nid;text;gender\n1;a;f\n", "begin with the header"),
    "a header alone": ("csv", "id,text\n", "has no rows"),
    "nothing": ("csv", "", "has no rows"),
    "many columns": ("csv", ",".join(f"c{n}" for n in range(50_000)) + "\n" + ",".join("x" * 50_000), "too large"),
    "a large file": ("csv", oversized, "too large: it has 2,147,483,649 bytes"),
    "another ending": ("docx", "a", "a table ends in .csv, .tsv"),
    "no file": ("csv", lambda path: None, "check the path"),
    "a folder": ("parquet", Path.mkdir, "is no file"),
    # JSON: a list of objects, alone or beside other things, objects by line, or columns.
    "lines": ("jsonl", "\n\n".join(map(json.dumps, RECORDS)), COLUMNS),
    "lines as datasets writes them": ("json", "\n".join(map(json.dumps, RECORDS)), COLUMNS),
    "a list": ("json", "\ufeff" + json.dumps(RECORDS), COLUMNS),
    "a list in an object": ("json", json.dumps({"version": 2, "a": {"b": [{"c": 1}]}, "d": RECORDS}), COLUMNS),
    "a list further down": (
        "json",
        json.dumps({"id": "e", "results": {"prompts": [{"raw": 1}], "results": RECORDS}, "config": {"tests": [{}]}}),
        COLUMNS,
    ),
    "a table of pandas": ("json", json.dumps({"schema": {"fields": [{"a": 1}] * 4}, "data": RECORDS}), COLUMNS),
    "columns of pandas": ("json", json.dumps({name: dict(enumerate(own)) for name, own in COLUMNS.items()}), COLUMNS),
    "columns": ("json", json.dumps(COLUMNS), COLUMNS),
    "nulls and whole numbers": ("json", '[{"n": 9007199254740993, "g": "None", "f": 1.0}, {"n": null, "f": NaN}]',
                                {"n": [9007199254740993, None], "g": ["None", None], "f": [1, None]}),
    "true and false": ("jsonl", '{"a": true}\n{"a": false}', {"a": ["true", "false"]}),
    "two halves of a character": ("jsonl", '{"response": "\\ud83d\\ude42 \\\\ud800"}', {"response": ["🙂 \\ud800"]}),
    "two tables": ("json", json.dumps({"v": 1, "train": RECORDS, "test": RECORDS[:1]}), "two tables, train and test"),
    "columns of two lengths": ("json", json.dumps({"train": RECORDS, "test": RECORDS[:1]}), "same length"),
    "no column": ("json", '{"version": 1, "rows": 3}', "a list per name"),
    "no objects": ("json", "[1, 2]", "row 1: expected an object"),
    "a line that is cut off": ("jsonl", '{"a": 1}\n{"a":', "not JSON"),
    "depth": ("json", "[" * 100_000, "not JSON"),
    "depth in an object": ("json", '[{"a": ' + "[" * 100_000, "not JSON"),
    "depth in a line": ("jsonl", '{"a": 1}\n' + "[" * 100_000, "not JSON"),
    "a deep answer": ("jsonl", f'{{"response": {"[" * 800}"a"{"]" * 800}}}', "t.jsonl"),
    "deep choices": ("jsonl", '{"response": ' + '{"choices": [' * 300 + "1" + "]}" * 300 + "}", "t.jsonl"),
    "half of a character": ("json", '[{"response": "\\ud800"}]', "not JSON"),
    "half of a character in a name": ("jsonl", '{"\\uDFFF": 1}', "not JSON"),
    "many digits": ("json", "[" + "9" * 5_000 + "]", "not JSON"),
    "many names": ("json", json.dumps([{f"c{n}": 1 for n in range(50_000)}]), "too large"),
    "many lists": ("json", json.dumps({f"c{n}": [1] for n in range(50_000)}), "too large"),
    "scattered names": ("jsonl", "\n".join(json.dumps({f"c{n % 9_000}": 1}) for n in range(20_000)), "too large"),
    # Parquet: nulls are missing, and bytes are left out.
    "parquet": ("parquet", parquet(MANY | BYTES), MANY | {"when": [date(2024, 1, 2), datetime(2024, 1, 2, 3), None]}),
    "bytes in lists": ("parquet", parquet({"images": [AUDIO, None, []], "a.b": ["x", "y", None]}),
                       {"images": [[{"path": "a.wav"}, None, None], None, []], "a.b": ["x", "y", None]}),
    "words of numbers": ("parquet", parquet({"g": [1, None, -1]}, huggingface=LABELS), {"g": ["female", None, None]}),
    "words of other columns": ("parquet", parquet({"g": [[1], [0]]}, huggingface=LABELS), {"g": [[1], [0]]}),
    **{
        f"odd notes {number}": ("parquet", parquet({"g": [1, 0]}, huggingface=odd), {"g": [1, 0]})
        for number, odd in enumerate((b"{", b"[]", b"[" * 100_000, b"\xff", LABELS.split(b"[")[0] + b"3}}}}"))
    },
    "bytes alone": ("parquet", parquet({"text": [b"as some writers store texts"]}), "every column holds bytes"),
    "a doubled column of parquet": ("parquet", parquet(pa.table([["a"], ["b"]], ["b", "b"])), "'b' is there twice"),
    "parquet that expands without end": (
        "parquet",
        parquet({"response": pa.DictionaryArray.from_arrays(pa.array([0] * 20_000), pa.array(["x" * 200_000]))}),
        "too large: it has",
    ),
    "parquet that is cut off": ("parquet", cut_off, "cannot read t.parquet as parquet"),
    # Excel: cells as they are shown, errors missing, the one visible sheet with entries.
    "a workbook": (
        "xlsx",
        workbook(
            {"Tabelle1": EXCEL, "empty": [[]], "list": [["w", "m"]]},
            ('ref="A1:E6"', 'ref="A1:C3"'), ("<v>34</v>", "<v>34.0</v>"), ("<v>0.5</v>", "<v>409.99999999999994</v>"),
            ("viel?\n", "viel?_x000D_\n"),
            hidden="list",
        ),
        {
            "prompt": ["Wie viel?\n", None, "NA"], "paid": [52_000.5, 34, 410], "full time": ["true", "false", None],
            "day": [date(2024, 1, 2), None, None],
        },
    ),
    "two sheets": ("xlsx", workbook({"2024": [["a"], [1]], "2025": [["a"], [2]]}), "sheets 2024, 2025"),
    "a title in a sheet": ("xlsx", workbook({"a": [["Table 1"], [None, "text"], ["x", "y"]]}), "begin the table with"),
    "a CSV called .xlsx": ("xlsx", "id,text\n1,a\n", "cannot read t.xlsx as xlsx (File is not a zip file)"),
    "a damaged sheet": ("xlsx", workbook({"a": [["x"], [1]]}, ("</row>", "")), "cannot read t.xlsx as xlsx"),
    "a sparse sheet": ("xlsx", sparse, "too large: it has 16,384 columns"),
}  # fmt: skip
"""By what is tested: the ending, the content or what writes it, and the columns, or words of the refusal."""


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_read_as_these_columns_or_refused_on_one_line(case: str, tmp_path: Path, equivox: Cli) -> None:
    ending, content, expected = CASES[case]
    path = tmp_path / f"t.{ending}"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)  # type: ignore[arg-type]
    if isinstance(expected, str):
        err = equivox.refused("import", path, "vibe_gender:story", "--output", tmp_path / "run")
        assert expected in err and f"t.{ending}" in err and len(err) < 1_000
    else:
        assert read_columns(path) == expected


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\ufeffsep={sign}\r\n", "\r\n"])
def test_cells_are_read_however_a_spreadsheet_separates_them(tmp_path: Path, name: str, sign: str, before: str) -> None:
    """In a German setting a spreadsheet writes semicolons; its texts have commas, its numbers decimal commas."""
    rows = [
        ("id", "Antrag, kurz", "Gehalt"), ("1", "Bäcker, nachts", "52.000,50"),
        ("2", 'sagt "ja"; oder\nnein,\tgut', "1;2"), ("3", "طلب", ""),
    ]  # fmt: skip
    with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
        file.write(before.format(sign=sign))
        csv.writer(file, delimiter=sign).writerows(rows)
    read = read_columns(tmp_path / name)
    assert list(read) == list(rows[0])
    assert [*zip(*read.values(), strict=True)] == [tuple(cell or None for cell in row) for row in rows[1:]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pandas.DataFrame({"n": [1, None], "g": ["NA", None], "s": pandas.array(["x", pandas.NA], dtype="string")}),
         {"n": [1, None], "g": ["NA", None], "s": ["x", None]}),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "'a' is there twice"),
        (pa.table({"g": ["nan", None]}), {"g": ["nan", None]}),
        (pa.table([[1], [2]], ["a", "a"]), "'a' is there twice"),
        (datasets.Dataset.from_dict({"g": ["a", None]}), {"g": ["a", None]}),
        (datasets.Dataset.from_dict({"g": ["a", None]}).to_iterable_dataset(), {"g": ["a", None]}),
        (datasets.DatasetDict(train=datasets.Dataset.from_dict({"g": ["a"]})), "give one: table['train']"),
        (({"g": float("nan")}, {"g": "NaN", 1: 2.0}), {"g": [None, "NaN"], "1": [None, 2]}),
        ({"g": [["a"], {"b": 1}]}, {"g": [["a"], {"b": 1}]}),
        (5, "int is no table"),
        (b"a", "bytes is no table"),
    ],
)  # fmt: skip
def test_a_table_in_memory_is_read_or_refused(given: object, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(UsageError) as refused:
            convert_to_columns(given)
        assert expected in str(refused.value)
    else:
        assert convert_to_columns(given) == expected


@pytest.mark.parametrize("kind", tables.FORMATS)
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
    (tmp_path / "t.yaml").write_text(
        "{name: t, table: saved, group: g, questions: [{name: q, text: '{a}', attributes: [{name: b, asks: c}]}]}"
    )
    for command in (("tasks", "new", tmp_path / "saved"), ("tasks", tmp_path / "t.yaml")):
        assert "`load_from_disk('saved')`" in equivox.refused(*command)


def test_what_excel_needs_and_would_expand_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", bytes(3_000_000))
    monkeypatch.setattr(tables, "MOST_BYTES", 2_000_000)
    with pytest.raises(UsageError, match="is too large: it has 3,000,000 bytes"):
        read_columns(path)
    workbook({"a": [["x"], [1]]})(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r"install .*openpyxl.*, or save the table in UTF-8"):
        read_columns(path)


def test_parts_of_lists_and_objects_are_columns_of_texts_alone() -> None:
    """A content that is a list in some rows was sent as Python prints it; so was a column that is a list in some."""
    parts = [{"type": "text", "text": "Hi"}]
    given = {"m": [{"content": "Hello"}, {"content": parts}], "t": ["Hello", ["Hi"]], "n": [[], None]}
    assert flatten_columns(given) == {
        "m.content": ["Hello", None], "m.content.0.type": [None, "text"], "m.content.0.text": [None, "Hi"],
        "t": ["Hello", None], "t.0": [None, "Hi"], "n": [None, None],
    }  # fmt: skip


def test_parts_without_end_are_refused_or_left_out() -> None:
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    assert set(flatten_columns({"m": [deep], "text": ["Hello"]})) == {f"m{'.0' * 50}", "text"}
    tokens = [{f"token {n}": 0.5 for n in range(row, row + 20)} for row in range(0, 20_000, 20)]
    with pytest.raises(UsageError, match="what 'logprobs' holds is too large: it has 20,000 columns"):
        flatten_columns({"logprobs": tokens})
    assert list_paths({"id": [1] * 1_000, "logprobs": tokens}).startswith("id, logprobs.token 0, ")


def test_many_responses_of_one_sample_are_no_design(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "one.jsonl"
    first = open_corpus(builtin_tasks()["vibe_gender:story"].data, "sample").samples[0].sample_id
    path.write_text("\n".join(json.dumps({"sample_id": first, "response": f"A nurse, {n}."}) for n in range(500)))
    err = equivox.refused("import", path, "vibe_gender:story", "--data", "sample", "--output", tmp_path / "run")
    assert "one.jsonl has 500 responses of one sample" in err and "144,000 requests" in err
    path.write_text(json.dumps({"response": ["a"] * 20_000, **{f"c{n}": 1 for n in range(6_000)}}))
    err = equivox.refused("import", path, "vibe_gender:story", "--data", "sample", "--output", tmp_path / "run")
    assert "one.jsonl is too large: it has 6,001 columns" in err
