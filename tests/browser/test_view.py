"""The explorer as a reader uses it: by mouse, by keys, on a phone, in the dark, with a screen reader, and by ear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from made_requests import plan_rows, three_kinds
from sample_runs import sample_run
from serving import Served

from equivox.core.scores import ScoringOptions
from equivox.report.view.server import Explorer, application
from equivox.run.pipeline import annotate_run
from equivox.run.store import Store, annotation_schema, response_schema

HOSTILE = '<img src=x onerror="document.title=\'gone\'"><script>document.title="gone"</script><b>bold</b> {{7*7}} ‮txet'
TASKS = "vibe_gender:advisory,vibe_gender:story"


def made(folder: Path, model: str) -> Path:
    return sample_run(folder, model, TASKS, limit=96)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two small runs; in the first an answer is hostile, and the judge's words about it are."""
    folder = tmp_path_factory.mktemp("view")
    first, second = made(folder / "one", "planted,shift=0.3,refusal=0.05,fail=0.03"), made(folder / "two", "biased")
    with Store(first / "responses", response_schema()) as store:
        asked = {row["key"] for row in plan_rows(first) if row["task"] == "vibe_gender:advisory"}
        records = [one for one in store.records() if one["key"] in asked]
        record = next(one for one in records if one["text"] and "I'm sorry" not in one["text"])
        store.append({**record, "text": HOSTILE})
    annotate_run(first, annotator="rules", options=ScoringOptions(n_resamples=99))
    with Store(first / "annotations" / "rules", annotation_schema()) as store:
        refused = (one for one in store.records() if one["status"] == "refused" and one["response_key"] in asked)
        found = next(refused)
        store.append({**found, "key": "raw", "status": "unparsed", "values": [], "output": f"raw {HOSTILE}"})
    return [first, second]


@pytest.fixture(scope="module")
def served(two: list[Path]) -> Iterator[str]:
    server = Served(application(Explorer(two)))
    yield server.address
    server.close()


@pytest.fixture(scope="module")
def context(chromium: Any) -> Iterator[Any]:
    made = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield made
    made.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(context: Any, served: str) -> Iterator[Opened]:
    """Open the page at an address within it; whatever goes wrong in it fails the test."""
    troubles: list[str] = []
    pages: list[Any] = []

    def open_page(where: str = "", address: str = served, within: Any = context) -> Any:
        page = within.new_page()
        page.on("console", lambda message: troubles.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda r: None if r.url.startswith((address, "data:")) else troubles.append(r.url))
        page.goto(f"{address}#{where}")
        tally(page)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == []


def until(page: Any, said: str, seconds: float = 8) -> None:
    """Wait until something is true in the page; its policy forbids Playwright's own waiting."""
    ends = time.monotonic() + seconds
    while not page.evaluate(said):
        assert time.monotonic() < ends, said
        time.sleep(0.02)


def tally(page: Any, said: str = " of ") -> str:
    """Return how many answers are shown, once it says so."""
    until(page, f"document.getElementById('tally').textContent.includes({said!r})")
    return str(page.inner_text("#tally"))


ADVISORY = "answers?task=0/vibe_gender:advisory"


def test_a_card_leads_to_its_answers_side_by_side(opened: Opened) -> None:
    page = opened()
    card = page.locator(".model:not([hidden]) .card").first
    card.locator(".more a").click()
    value = tally(page, " with ").partition(" with ")[2]
    assert value and "answers?" in page.url
    # The answers of a pair stand beside each other, and those that differ come first.
    left, right = (page.locator("#pairs .pair").first.locator(".answer").nth(n) for n in (0, 1))
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    assert sum(one.locator("[aria-pressed=true]").count() for one in (left, right)) == 1
    page.click("#unfilter")
    assert tally(page, "96 of 96") == "96 of 96 answers"
    # A click on a value below an answer filters, too.
    page.locator("#pairs .values button").first.click()
    assert " with " in tally(page, " with ")


def test_filters_search_and_pages(opened: Opened) -> None:
    page = opened(ADVISORY)
    page.fill("input[type=search]", "YOGA")
    until(page, "document.querySelector('#pairs mark') !== null")
    assert {text.lower() for text in page.locator("mark").all_inner_texts()} == {"yoga"}
    page.fill("input[type=search]", "nothing says this")
    assert tally(page, "0 of 96") and page.locator("#pairs .answer").count() == 0
    page.click("#unfilter")
    tally(page, "96 of 96")
    page.select_option("[name=status]", "unread")
    until(page, "[...document.querySelectorAll('.answer')].some((one) => one.dataset.status === 'refused')")
    assert "raw <img src=x" in page.inner_text(".raw")
    page.select_option("[name=status]", "")
    tally(page, "96 of 96")
    first = page.inner_text("#pairs")
    page.click("#next")
    until(page, "document.getElementById('where').textContent.startsWith('Page 2 ')")
    assert page.inner_text("#pairs") != first
    page.select_option("[name=task]", "1/vibe_gender:story")
    until(page, "document.getElementById('where').textContent.startsWith('Page 1 ')")


def test_a_recording_is_heard(opened: Opened) -> None:
    page = opened(ADVISORY)
    page.evaluate("document.querySelector('#pairs audio').play()")
    until(page, "document.querySelector('#pairs audio').currentTime > 0.2")


def test_a_hostile_answer_stays_text(opened: Opened) -> None:
    page = opened(f"{ADVISORY}&search=onerror")
    assert tally(page, "2 of 96") == "2 of 96 answers"  # an answer, and words of the judge
    text = " ".join(page.locator("#pairs .words").all_inner_texts())
    assert "<script>document.title" in text
    # What turns the direction of writing would turn the words beside it.
    assert "\\u202etxet" in text and "\u202e" not in page.inner_text("body")
    assert page.locator("main img, main script").count() == 0 and page.title() != "gone"


def test_a_phone_and_screen_readers(opened: Opened, chromium: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for scheme, width in (("light", 390), ("dark", 1280)):
        within = chromium.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 844})
        page = opened(ADVISORY, within=within)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#pairs details").first.evaluate("one => { one.open = true; }")
        found = Axe().run(page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
        within.close()


def test_a_voice_answers_and_a_turn_says_what_was_said_before(opened: Opened, tmp_path: Path) -> None:
    with closing(Served(application(Explorer([three_kinds(tmp_path)])))) as server:
        page = opened("answers?task=0/hire_gender:voice", server.address)
        page.evaluate("document.querySelector('#pairs audio').play()")
        until(page, "document.querySelector('#pairs audio').duration > 0.1")
        page = opened("answers?task=0/hire_gender:talk%40turn%3D2", server.address)
        page.locator("#pairs summary").first.click()
        assert len(page.locator("#pairs .before").first.inner_text().strip()) > 5
