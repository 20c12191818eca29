"""One kind of table: the same cells on a terminal, in a page, in a paper and in a file."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from equivox.report.table import (
    Cell,
    Table,
    as_csv,
    as_html,
    as_latex,
    as_markdown,
    as_page,
    print_tables,
)

HOSTILE = "{} [bold]</td><script>alert(1)</script> & 50 % \\input{x} {0}"


class Page(HTMLParser):
    """Collects the tags and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def table(text: str = "x", **more: object) -> Table:
    rows = [[text, "1.50*", Cell(text, text, "above-1")], [text, "10.25", "—"], ["other", "3.00**", "—"]]
    fields = {"caption": text, "columns": [text, text, Cell(text, text)], "align": "lrr", "rows": rows, **more}
    return Table(**fields)  # type: ignore[arg-type]


def printed(*tables: Table, width: int = 400) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_tables(console, tables)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@settings(deadline=None)
@given(st.one_of(st.just(HOSTILE), st.text(min_size=1)))
def test_whatever_a_cell_holds_is_text_on_a_page(text: str) -> None:
    page = Page(as_html(table(text, remarks=[text], notes=[text])))
    assert set(page.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "span", "p"}
    # No style and no handler: the page's Content-Security-Policy stays as strict as it is.
    assert page.attributes <= {"class", "tabindex", "role", "aria-label", "scope"}
    if text == HOSTILE:
        assert page.texts.count(HOSTILE) == 11


def test_a_terminal_aligns_digits_and_leaves_out_repeats() -> None:
    lines = printed(
        table("a", grouped=1, remarks=["— missing"], notes=["what it means"]), table(notes=["what it means"])
    )
    assert lines[0] == "a"
    assert [line.index(".") for line in lines[2:5]] == [lines[2].index(".")] * 3
    assert lines[3].startswith(" ")
    assert lines[5] == "  — missing"
    assert [line for line in lines if line == "what it means"] == [lines[-1]]
    assert any(HOSTILE in line for line in printed(table(HOSTILE)))


def test_a_narrow_terminal_gets_a_wide_table_in_parts_that_name_their_rows() -> None:
    rows = [["m", "story", "1.50*", "0 to 2", "10"], ["m", "advisory", "12.25", "3 to 20", "9"]]
    wide = Table(
        caption="nTVD", columns=["model", "task", "estimate", "interval", "used"], align="llrrr", grouped=1, rows=rows
    )
    assert printed(wide, width=41) == printed(wide) == [
        "nTVD",
        "model  task      estimate  interval  used",
        "m      story        1.50*    0 to 2    10",
        "       advisory    12.25    3 to 20     9",
    ]  # fmt: skip
    # One sign less, and the model is named once; still less, and columns go below.
    assert [line.rstrip() for line in printed(wide, width=40)] == [
        "nTVD", "model: m", "task      estimate  interval  used", "story        1.50*    0 to 2    10",
        "advisory    12.25    3 to 20     9",
    ]  # fmt: skip
    assert [line.rstrip() for line in printed(wide, width=20)] == [
        "nTVD", "model: m", "task      estimate", "story        1.50*", "advisory    12.25", "task      interval",
        "story       0 to 2", "advisory   3 to 20", "task      used", "story       10", "advisory     9",
    ]  # fmt: skip
    two = Table(columns=wide.columns, align=wide.align, grouped=1, rows=[rows[0], ["n", *rows[1][1:]]])
    assert [line.split() for line in printed(two, width=25)][:3] == [
        ["model", "task", "estimate"], ["m", "story", "1.50*"], ["n", "advisory", "12.25"],
    ]  # fmt: skip


def test_a_name_that_is_that_of_its_column_is_shown() -> None:
    own = Table(columns=["model", "n"], align="lr", grouped=1, rows=[["model", "1"], ["model", "2"], ["b", "3"]])
    assert printed(own) == ["model  n", "model  1", "       2", "b      3"]


def test_no_cell_is_cut_where_the_columns_of_a_part_are_wider_than_the_terminal() -> None:
    rows = [["scores.json", "estimate of gender", "12.345678", "12.345679"]]
    texts = Table(columns=["file", "number", "stated", "recomputed"], align="llll", grouped=1, rows=rows)
    lines = printed(texts, width=20)
    assert lines[0] == "file: scores.json"
    assert lines[2].split() == ["estimate", "of", "gender", "12.345678", "12.345679"]
    # Without a heading, the name stands alone.
    block = Table(columns=["", "a", "b"], align="lrr", grouped=1, rows=[["Audio", "1.5", "2.5"]])
    assert [line.strip() for line in printed(block, width=4)] == ["Audio", "a", "1.5", "b", "2.5"]


def test_latex_prints_braces_in_headings_and_rules_off_groups() -> None:
    text = as_latex([table(HOSTILE, grouped=1)])
    heading = next(line for line in text.splitlines() if line.endswith(r" \\"))
    assert heading.count(r"\{\} {[}bold{]}") == 4
    assert text.count(r"\midrule") == 2
    assert r"\input{" not in text.replace(r"\textbackslash{}input", "")
    assert as_latex([table(rows=[])]) == ""


def test_csv_has_every_column_and_full_precision() -> None:
    text = as_csv([{"a": 0.1 + 0.2, "n": 1}, {"a": float("nan"), "b": HOSTILE, "n": None}])
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"a": "0.30000000000000004", "n": "1", "b": ""},
        {"a": "", "n": "", "b": HOSTILE},
    ]


@settings(deadline=None)
@given(st.one_of(st.just(HOSTILE), st.text(min_size=1)))
def test_whatever_a_cell_holds_is_text_in_markdown(text: str) -> None:
    from markdown_it import MarkdownIt

    shown = table(text, remarks=[text], notes=[text])
    page = Page(MarkdownIt("commonmark").enable("table").render(as_markdown([shown])))
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "p", "strong"}
    assert (page.tags.count("tr"), page.tags.count("td"), page.tags.count("th")) == (4, 9, 3)
    if text == HOSTILE:
        assert "".join(page.texts).count(HOSTILE) == 11


def test_markdown_marks_extremes_and_says_what_is_missing() -> None:
    rows = [["a", Cell("1.50*", "2 %", weight="bold")], ["b", "—"]]
    shown = Table(
        caption="nTVD", columns=["model", "task"], align="lr", rows=rows,
        remarks=["— b: few"], notes=["1. is - or q"],
    )  # fmt: skip
    assert as_markdown([shown, table(rows=[])]).splitlines() == [
        "**nTVD**", "", "| model | task |", "| :-- | --: |", r"| a | **1.50\*** (2 %) |", "| b | — |", "", "— b: few",
        "", r"1\. is - or q",
    ]  # fmt: skip


def test_a_page_of_tables_runs_nothing() -> None:
    page = Page(as_page([table(HOSTILE), table("second")], HOSTILE))
    assert page.tags.count("table") == 2 and "script" not in page.tags and HOSTILE in page.texts


def test_a_page_of_tables_keeps_its_numbers_where_they_stand() -> None:
    # Hebrew words would take the number behind them to their left; a sign would turn all that follows.
    page = as_page([table("נשים 75 %, גברים 9 %"), table("a\u202eb")], "t")
    assert "<bdi>נשים</bdi> 75 %, <bdi>גברים</bdi> 9 %" in page
    assert "\u202e" not in page and "a\\u202eb" in page
