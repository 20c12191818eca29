"""The leaderboard as a reader uses it: sort, filter, nothing undefined on top; and its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Cli


@pytest.fixture
def board(runs: Sequence[Path], equivox: Cli, tmp_path: Path) -> Path:
    code, out, _ = equivox("leaderboard", runs[0].parent, "--output", tmp_path / "board")
    assert code == 1 and "of 5 runs" in out and "scores of whole tasks without a result" in out
    return tmp_path / "board"


def test_the_json_holds_what_was_scored(board: Path) -> None:
    rows = json.loads((board / "leaderboard.json").read_text())["rows"]
    story = [row for row in rows if (row["task"], row["metric"]) == ("vibe_gender:story", "nTVD")]
    # The undefined one comes last, with its reason; the oracle first, at the distance that chance leaves.
    assert story[0]["model"] == "simulated:oracle" and story[0]["distance"] < 0.1
    assert story[-1]["model"].startswith("simulated:random,fail") and story[-1]["undefined_reason"]
    assert story[-1]["distance"] is story[-1]["value"] is None
    assert story[-2]["model"] == "simulated:biased"
    slbs = next(r for r in rows if r["metric"] == "slbs" and r["model"] == "simulated:biased")
    assert slbs["distance"] == 50
    assert len({row["measured"] for row in story}) == 1


def test_sorting_and_filtering(browser: Any, board: Path) -> None:
    page = browser.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.extend([request.url] * request.url.startswith("http")))
    page.goto((board / "index.html").as_uri())
    page.fill("[name=model]", "ORACLE")
    assert set(page.locator("tbody tr:visible th").all_inner_texts()) == {"simulated:oracle"}
    page.click("a:text-is('All scores')")
    every = page.locator("tbody tr").count()
    assert page.inner_text("#shown") == f"{every} of {every} rows"
    page.select_option("[name=task]", "vibe_gender:story")
    assert page.inner_text("#shown") == f"5 of {every} rows"
    shown = page.locator("tbody tr:visible th")
    page.click("th button:text-is('headline')")
    assert shown.first.inner_text() == "simulated:oracle"
    page.click("th button:text-is('headline')")
    assert shown.first.inner_text() == "simulated:biased"
    # What has no number stays last, whichever way.
    assert shown.last.inner_text().startswith("simulated:random,fail")
    page.select_option("[name=outcome]", "no result")
    assert shown.all_inner_texts() == ["simulated:random,fail=0.4"]
    page.click("tbody tr:visible th a")
    assert page.inner_text("h1") == "simulated:random,fail=0.4" and page.locator("form").count() == 0
    page.click("a:text-is('Ranks')")
    assert page.inner_text("h1") == "Leaderboard"
    assert troubles == []


@pytest.mark.parametrize("width", [320, 390, 1600])
def test_the_pages_fit_a_screen(browser: Any, board: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    for path in board.rglob("*.html"):
        page.goto(path.as_uri())
        # Wide tables scroll inside of the page.
        assert page.evaluate("document.documentElement.scrollWidth") == width, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers(browser: Any, board: Path, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_context(bypass_csp=True, color_scheme=scheme).new_page()
    for name in ("index.html", "scores.html"):
        page.goto((board / name).as_uri())
        found = Axe().run(page)
        assert [v["id"] for v in found.response["violations"] if v["impact"] in {"serious", "critical"}] == []


def test_a_folder_without_runs_is_one_line(equivox: Cli, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        equivox.refused("leaderboard", folder, "--output", tmp_path / "board")
