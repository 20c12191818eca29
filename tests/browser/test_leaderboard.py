"""The leaderboard as a reader uses it: sort, filter, nothing undefined on top; and its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from equivox.report.board import board_pages, board_rows


@pytest.fixture
def board(runs: Sequence[Path], equivox: Cli, tmp_path: Path) -> Path:
    code, out, _ = equivox("leaderboard", runs[0].parent, "--output", tmp_path / "board")
    assert code == 1 and "of 5 runs" in out and "scores of whole tasks without a result" in out
    return tmp_path / "board"


def test_the_json_holds_what_was_scored(board: Path) -> None:
    rows = json.loads((board / "leaderboard.json").read_text())["rows"]
    story = [row for row in rows if (row["task"], row["metric"]) == ("vibe_gender:story", "nTVD")]
    # The undefined one comes last, with its reason; the oracle first.
    assert story[0]["model"] == "simulated:oracle" and story[0]["distance"] == 0
    assert story[-1]["model"].startswith("simulated:random,fail") and story[-1]["undefined"]
    assert story[-1]["distance"] is story[-1]["value"] is None
    assert story[-2]["model"] == "simulated:biased"
    slbs = next(r for r in rows if r["metric"] == "slbs" and r["model"] == "simulated:biased")
    assert slbs["distance"] == 50
    assert len({row["data"] for row in story}) == 1


def test_sorting_and_filtering(browser: Any, board: Path) -> None:
    page = browser.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((board / "index.html").as_uri())
    page.click("a:text-is('a table')")
    every = page.locator(".scores tbody tr").count()
    assert page.inner_text("#shown") == f"{every} of {every} scores"
    page.select_option("#by-task", "vibe_gender:story")
    page.select_option("#by-metric", "nTVD")
    assert page.inner_text("#shown") == f"5 of {every} scores"
    first = page.locator(".scores tbody tr:visible th").first
    page.click("th button:text-is('distance')")
    assert first.inner_text() == "simulated:oracle"
    page.click("th button:text-is('distance')")
    assert first.inner_text() == "simulated:biased"
    assert page.locator(".scores tbody tr:visible th").last.inner_text().startswith("simulated:random,fail")
    page.fill("#by-used", "90")
    assert page.inner_text("#shown") == f"4 of {every} scores"
    assert troubles == []


def test_models_are_filtered_by_size_and_licence(browser: Any, runs: Sequence[Path], tmp_path: Path) -> None:
    known = {"biased": (7_600_000_000, "apache-2.0"), "oracle": (72_000_000_000, "other")}
    rows = board_rows({run: run.name for run in runs}, lambda model, revision: known.get(model, (None, "")))
    for name, text in board_pages(rows, (), "").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("index.html", "scores.html"):
        page = browser.new_page()
        page.goto((tmp_path / name).as_uri())
        shown = page.locator("tbody tr:visible th")
        every = len(set(shown.all_inner_texts()))
        page.fill("#by-size", "8")
        assert set(shown.all_inner_texts()) == {"simulated:biased"}, "a model of unknown size is not a small one"
        page.fill("#by-size", "72.5")
        assert set(shown.all_inner_texts()) == {"simulated:biased", "simulated:oracle"}
        page.select_option("#by-licence", "other")
        assert set(shown.all_inner_texts()) == {"simulated:oracle"}
        page.fill("#by-size", "")
        page.select_option("#by-licence", "")
        assert len(set(shown.all_inner_texts())) == every > 2


def test_the_pages_fit_a_phone(browser: Any, board: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900})
    for name in ("index.html", "scores.html"):
        page.goto((board / name).as_uri())
        # Wide tables scroll inside of the page.
        assert page.evaluate("document.documentElement.scrollWidth") == 390, name


def test_screen_readers(browser: Any, board: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_context(bypass_csp=True).new_page()
    for name in ("index.html", "scores.html"):
        page.goto((board / name).as_uri())
        found = Axe().run(page)
        assert [v["id"] for v in found.response["violations"] if v["impact"] in {"serious", "critical"}] == []


def test_a_folder_without_runs_is_one_line(equivox: Cli, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        equivox.refused("leaderboard", folder, "--output", tmp_path / "board")
