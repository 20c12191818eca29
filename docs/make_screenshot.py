"""Makes docs/report.png, the picture in the README, from the report of the demonstration.

    equivox demo --output runs/demo
    python docs/make_screenshot.py runs/demo/report.html

Needs Chromium and the package playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main(report: Path, picture: Path) -> None:
    """Save what a reader sees first."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1400})
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent / "report.png")
