"""Time and memory of the explorer on a large run: `python -m benchmarks.view [100000]`.

A simulated model answers VIBE's five tasks on gender, and once more all answers are of one task. Printed are the
seconds until what the page reads is built, until a page in Chromium shows answers, until the next page, a value's
answers and a search are there, and the peak memory of the server and of the page. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scale import OPTIONS, clips, peak
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

SIZE = 100_000
KINDS = ("five tasks", "one task")
BROWSER = "/usr/bin/chromium"
PRESSED = "document.querySelector('.values button[aria-pressed=true]') !== null"


def asked(kind: str, size: int) -> tuple[list[Task], dict[str, Corpus]]:
    """Return tasks and corpora that make about `size` requests: of VIBE's five tasks on gender, or of one of them."""
    actors = {f"a{n}": ("female", "male")[n % 2] for n in range(91)}
    tasks = resolve_tasks("vibe_gender" if kind == KINDS[0] else "vibe_gender:story")
    return tasks, {"crema_d": clips("crema_d", size // len(tasks), actors, "gender")}


def make(kind: str, size: int, folder: Path) -> None:
    """Make the run."""
    tasks, corpora = asked(kind, size)
    spec = RunSpec(model="simulated:planted,shift=0.2,fail=0.01", tasks=tasks, output=folder, options=OPTIONS)
    execute(spec, corpora=corpora)


def serve(folder: Path) -> None:
    """Build and serve the run until stdin ends, then print the peak memory."""
    import threading

    from equivox.report.view.server import serve as served

    began = time.perf_counter()

    def ready(address: str, left_out: Sequence[object]) -> None:
        sys.stdout.write(json.dumps({"address": address, "built": time.perf_counter() - began}) + "\n")
        sys.stdout.flush()
        threading.Thread(target=ended, daemon=True).start()

    def ended() -> None:
        import os

        sys.stdin.read()
        sys.stdout.write(json.dumps({"peak": peak()}) + "\n")
        sys.stdout.flush()
        os._exit(0)

    served([folder], ready=ready)


def look(address: str) -> dict[str, Any]:
    """Return the seconds that a reader waits, and the memory of the page in MiB."""
    from playwright.sync_api import sync_playwright

    found: dict[str, Any] = {}

    def timed(name: str, act: Callable[[], Any], until: str) -> None:
        began = time.perf_counter()
        act()
        wait(until)
        found[name] = time.perf_counter() - began

    def wait(until: str) -> None:
        # Playwright's own waiting evaluates text in the page, which the page's policy forbids.
        ends = time.perf_counter() + 60
        while not page.evaluate(until):
            if time.perf_counter() > ends:
                raise SystemExit(f"waited in vain until {until}")
            time.sleep(0.005)

    shown = "document.querySelectorAll('#pairs .answer').length > 3"

    def turned(number: int) -> str:
        return f"document.querySelector('#where').textContent.startsWith('Page {number} ') && {shown}"

    with sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-quic", "--enable-precise-memory-info"]
        browser = driver.chromium.launch(executable_path=BROWSER, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        timed("verdict", lambda: page.goto(address, wait_until="commit"), "document.querySelector('h1') !== null")
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        timed("answers", lambda: page.goto(f"{address}#answers", wait_until="commit"), shown)
        for number in (2, 3):
            timed(f"page {number}", lambda: page.click("#next"), turned(number))
        timed("value", lambda: page.click(".values button >> nth=0"), f"{turned(1)} && {PRESSED}")
        page.click("#unfilter")
        wait(f"document.querySelector('#unfilter').hidden && {shown}")
        word = page.evaluate("document.querySelector('#pairs .words').textContent.match(/[a-z]{5,}/)[0]")
        timed("search", lambda: page.fill("[name=search]", word), "document.querySelector('mark') !== null")
        found["heap"] = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
        browser.close()
    return found


def main(size: int) -> None:
    """Print the figures of both runs."""
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run"
            worker = [sys.executable, "-m", "benchmarks.view", "--worker"]
            subprocess.run([*worker, "make", str(folder), kind, str(size)], check=True)
            server = subprocess.Popen(
                [*worker, "serve", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            if server.stdout is None or server.stdin is None:
                raise SystemExit("the server has no pipes")
            told = json.loads(server.stdout.readline())
            found = look(told["address"])
            server.stdin.close()
            used = json.loads(server.stdout.readline())["peak"]
            server.wait()
        heap = found.pop("heap")
        sys.stdout.write(
            f"{kind}, {size:,} answers: built in {told['built']:.1f} s; server {used:.0f} MiB, page {heap:.0f} MiB\n"
        )
        for name, seconds in found.items():
            sys.stdout.write(f"  {name:16} {seconds:6.2f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", type=int, default=SIZE)
    parser.add_argument("--worker", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker and given.worker[0] == "make":
        make(given.worker[2], int(given.worker[3]), Path(given.worker[1]))
    elif given.worker:
        serve(Path(given.worker[1]))
    else:
        main(given.size)
