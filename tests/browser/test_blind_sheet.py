"""The blind sheet as somebody fills it in: what the page saves is what `audit score` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Cli = Callable[..., tuple[int, str, str]]


def test_labels_filled_in_and_saved_are_read_back(
    browser: Any, runs: Sequence[Path], equivox: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    code, _, err = equivox("audit", "export", runs[1], "--n", 4, "--output", folder)
    assert code == 0, err
    page = browser.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((folder / "sheet.html").as_uri())
    selects = page.locator("select[data-attribute]")
    assert selects.count() > 5
    for number in range(selects.count()):
        selects.nth(number).select_option(index=1)
    page.locator("input[data-attribute]").first.fill('a "quoted", text')
    assert "fields filled in" in page.inner_text("#count")
    page.fill("#rater", "Anna B.")
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "labels-Anna-B-.csv"
    labels = tmp_path / "labels-anna.csv"
    download.value.save_as(labels)
    code, out, err = equivox("audit", "score", folder, labels, "--no-store")
    assert code == 0, err
    assert "1 person (anna)" in out
    stored = json.loads((folder / "audit.json").read_text())
    assert stored["n_responses"] == len(json.loads((folder / "key.json").read_text()))
    assert troubles == []
