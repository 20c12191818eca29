"""Makes the pictures of the docs, from the runs of the demonstration: report.png, view.png and board.png.

    equivox demo --output runs/demo
    equivox leaderboard runs/demo --output site
    python docs/make_screenshot.py runs/demo site/index.html

Needs Chromium and the package playwright.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).parent


@contextmanager
def explorer(demo: Path) -> Iterator[str]:
    """Serve the runs of the demonstration and yield the address of the page."""
    folders = sorted(str(path.parent) for path in demo.glob("*/manifest.json"))
    command = [sys.executable, "-m", "equivox", "view", *folders, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield next(line.split()[0] for line in server.stdout or () if line.startswith("http"))
        finally:
            server.terminate()


def main(demo: Path, board: Path) -> None:
    """Save what a reader sees first of each page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver, explorer(demo) as served:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, address, height in (
            ("report", (demo / "report.html").resolve().as_uri(), 1400),
            ("view", served, 1000),
            ("board", board.resolve().as_uri(), 1300),
        ):
            page = browser.new_page(viewport={"width": 1280, "height": height})
            page.goto(address)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=DOCS / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
