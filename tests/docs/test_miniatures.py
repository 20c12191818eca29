"""Every paper in miniature: the command of docs/reproduce.md, as printed, to tables that say what stands in."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli
from docs_pages import DOCS, blocks, commands

from equivox.compare.papers import TableRun, fill_tables
from equivox.configs.published import published_names
from equivox.report.notes import write_note


@pytest.mark.parametrize("paper", published_names())
def test_a_paper_in_miniature(paper: str, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = (words for words in commands(DOCS / "reproduce.md") if words[:2] == ["reproduce", paper])
    (command,) = (words for words in printed if "sample" in words)
    tables = tmp_path / command[command.index("--tables") + 1]
    fast = ("--scoring", "n_resamples=199,merge=none")
    code, out, error = equivox(*command, "--output", tmp_path / "runs", *fast)
    assert code in {0, 1} and not error.count("Traceback")
    assert "was not run" not in out and "downloaded" not in out
    (shown,) = blocks(DOCS / "reproduce.md", "text")
    assert (shown in out) is (paper == "spoken_stereoset")
    folders = sorted(path.parent for path in (tmp_path / "runs").rglob("scores.json") if path.parent.name == "biased")
    settings = [folder.parent.name if folder.parents[1] == tmp_path / "runs" else "" for folder in folders]
    runs = [
        TableRun(folder, "simulated:biased", setting, {"rules": ["rules"]})
        for folder, setting in zip(folders, settings, strict=True)
    ]
    for table in fill_tables(paper, runs):
        name = table.declared.name
        if name == "figure_6":  # two thirds of the evaluators cannot agree where there is one
            continue
        assert any(cell.measured and cell.undefined is None for cell in table.cells.itertuples()), name
        remarks = " ".join(map(write_note, table.remarks))
        assert "the embedded sample" in remarks and "annotated by rules" in remarks
        assert ("stand-ins, comparable with nothing else" in remarks) is (paper == "genres")
        assert (tables / f"{name}.csv").is_file()
