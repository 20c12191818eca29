"""The explorer as a reader uses it: by mouse, by keys, on a phone, in the dark, with a screen reader, and by ear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from made_requests import plan_rows, three_kinds
from markupsafe import escape
from sample_runs import sample_run
from serving import Served

from equivox.core.scores import ScoringOptions
from equivox.report.safe_page import kept_apart
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
def served(two: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = Served(application(Explorer(two, tmp_path_factory.mktemp("scratch"))))
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
        page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else troubles.append(r.url))
        page.goto(f"{address}index.html#/{where}")
        page.wait_for_selector("main .screen")
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


def tally(page: Any) -> str:
    """Return what stands above the answers once all of them were looked at."""
    said = "document.querySelector('.tally')?.textContent"
    until(page, f"{said}?.includes(' of ') && !{said}.includes('so far')")
    return str(page.inner_text(".tally"))


def test_the_verdict_comes_first_and_leads_to_the_answers(opened: Opened) -> None:
    page = opened()
    assert page.inner_text("nav a[aria-current]") == "Verdict"
    assert page.inner_text(".verdict h2").startswith("Does simulated:planted")
    assert page.inner_text(".verdict .answer") and page.locator(".trust li").count() > 2
    assert (
        page.locator(".picture thead th").count() == 3 and page.locator(".picture tbody tr:not(.family)").count() == 3
    )
    page.click(".picture td a >> nth=0")
    assert page.inner_text("nav a[aria-current]") == "Answers"
    assert tally(page) == "96 of 96 answers"
    # The two answers stand side by side: one has the value, the other has not, and each can be heard.
    page.wait_for_selector(".best .cell")
    value = page.inner_text(".best h2").partition(": ")[2]
    shown = [set(cell.locator(".value").all_inner_texts()) for cell in page.locator(".best .cell").all()]
    assert [value in one for one in shown] == [True, False]
    left, right = (page.locator(".best .cell").nth(n).bounding_box() for n in (0, 1))
    assert left["y"] == right["y"] and page.locator(".best .play").count() == 2
    page.click(".best .link")
    assert page.locator(".best").count() == 0


def test_an_unequal_loss_leads_to_an_answer_that_is_lost_and_one_that_is_not(
    opened: Opened, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = made(tmp_path / "run", "random,refusal_gap=0.5")
    with closing(Served(application(Explorer([run], tmp_path_factory.mktemp("scratch"))))) as server:
        page = opened("", server.address)
        page.click(".picture .losses a")
        page.wait_for_selector(".best .cell")
        assert page.inner_text(".best h2") == "Shown best by answers that are lost"
        cells = page.locator(".best .cell")
        assert [cells.nth(n).get_attribute("data-status") for n in (0, 1)] == ["refused", "parsed"]


def test_the_report_of_all_runs_is_one_click_away(opened: Opened) -> None:
    page = opened()
    page.click("text=The whole report")
    page.wait_for_selector("header h1")
    assert page.locator("header .picture thead th").count() == 3
    # The report's own policy holds: its style is applied, and nothing of it is loaded from elsewhere.
    assert page.evaluate("getComputedStyle(document.querySelector('.skip')).position") == "absolute"


def test_side_by_side_and_filtered_by_a_click_on_a_value(opened: Opened) -> None:
    page = opened("answers?task=vibe_gender:advisory")
    tally(page)
    assert page.locator(".headings b").all_inner_texts() == ["female", "male"]
    page.wait_for_selector(".row")
    # Each row holds one answer of each group, beside each other.
    left, right = (page.locator(".row >> nth=0").locator(".cell").nth(n).bounding_box() for n in (0, 1))
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]
    mover = page.locator(".mover").first
    value = mover.get_attribute("data-value")
    mover.click()
    found = tally(page)
    n = int(found.split()[0])
    assert 0 < n < 96 and f"hobby: {value}" in found
    page.wait_for_selector(".row")
    shown = page.locator(".row .cell:not(.none)").count()
    assert page.locator(".value[aria-pressed=true]").count() >= shown > 0
    page.click(".filter")
    assert tally(page) == "96 of 96 answers"
    # The same by a value below an answer, and back with the browser's button.
    page.locator(".value").first.click()
    assert tally(page) != "96 of 96 answers"
    page.go_back()
    assert tally(page) == "96 of 96 answers"


def test_search(opened: Opened) -> None:
    page = opened("answers?task=vibe_gender:advisory")
    tally(page)
    page.keyboard.press("/")
    page.keyboard.type("YOGA")
    until(page, "document.querySelector('.tally').textContent.includes('“YOGA”')")
    tally(page)
    page.wait_for_selector(".row mark")
    assert {text.lower() for text in page.locator("mark").all_inner_texts() if text != "equivox"} == {"yoga"}
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    assert tally(page) == "96 of 96 answers"
    page.fill("#search", "nothing says this")
    until(page, "document.querySelector('.rows').innerText === 'No answer fits.'")


def test_keys(opened: Opened) -> None:
    page = opened("answers?task=vibe_gender:advisory")
    tally(page)
    page.wait_for_selector(".row")
    rows = page.locator(".rows > .row").count()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Row 2"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Row 1"
    page.keyboard.press("o")
    page.wait_for_selector(".row.current details[open] .facts")
    for _ in range(rows):
        page.keyboard.press("j")
    until(page, f"document.activeElement.getAttribute('aria-label') === 'Row {rows + 1}'")
    page.keyboard.press("p")
    until(page, "document.querySelector('.where').textContent.startsWith('Page 1 ')")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    page.keyboard.press("]")
    assert page.input_value("#task") == "vibe_gender:story"
    page.keyboard.press("3")
    assert page.inner_text("nav a[aria-current]") == "Unreadable"


def test_a_recording_is_heard(opened: Opened) -> None:
    page = opened("answers?task=vibe_gender:advisory")
    tally(page)
    page.wait_for_selector(".row")
    page.keyboard.press("j")
    page.keyboard.press(" ")
    until(page, "document.getElementById('audio').currentTime > 0.2")
    assert page.locator(".play[aria-pressed=true]").count() == 1
    page.keyboard.press(" ")
    until(page, "document.getElementById('audio').paused")


def test_what_could_not_be_read_with_the_annotators_words(opened: Opened) -> None:
    page = opened("unreadable?task=vibe_gender:advisory")
    found = int(tally(page).split()[0])
    page.wait_for_selector(".row")
    statuses = set(page.locator(".row .cell").evaluate_all("cells => cells.map((cell) => cell.dataset.status)"))
    assert statuses <= {"failed", "refused", "unparsed"} and found >= len(statuses) > 1
    assert "raw <img src=x" in page.inner_text(".raw")
    page.click(".chip:has-text('refused')")
    assert int(tally(page).split()[0]) < found


def test_two_runs_and_what_changed(opened: Opened) -> None:
    page = opened("changes?task=vibe_gender:advisory")
    assert "answers differ, of 96" in tally(page)
    page.wait_for_selector(".row .differs")
    assert page.locator(".row >> nth=0").locator(".cell").count() == 2
    page.select_option("#changed", "status")
    assert int(tally(page).split()[0]) < 20


def test_a_gate_in_the_page(opened: Opened) -> None:
    page = opened("verdict?run=1")
    page.get_by_role("link", name="Gate").click()
    assert page.locator("main table").count() == 0
    # Nothing is offered that the run lacks: no labels are kept with it.
    assert page.locator("#screens li").all_inner_texts() == ["Verdict", "Answers", "Unreadable", "Changes", "Gate"]
    page.get_by_label("At most this far from no bias").fill("100")
    page.get_by_role("button", name="Check").click()
    until(page, "document.querySelectorAll('main tbody tr').length === 2", 60)
    assert page.locator("main tbody tr th").all_inner_texts() == ["pass", "pass"]
    assert "run=1" in page.url and "max=100" in page.url
    # The other run was changed after it was scored.
    page.get_by_label("At most this much further from no bias").fill("5")
    page.get_by_role("button", name="Check").click()
    until(page, "document.querySelector('main .warn')?.textContent.includes('not what its answers give')", 60)


def test_a_hostile_answer_stays_text(opened: Opened) -> None:
    page = opened("answers?task=vibe_gender:advisory&search=onerror")
    assert tally(page).startswith("1 of 96")
    page.wait_for_selector(".row .words")
    assert "<script>document.title" in page.inner_text(".row .words")
    # What turns the direction of writing would turn the words beside it.
    assert "\\u202etxet" in page.inner_text(".row .words") and "\u202e" not in page.inner_text("body")
    assert page.locator("main img, main script, main b:not(.heading b)").count() == 0
    assert page.title() != "gone"


def test_words_from_right_to_left_stand_in_an_element_of_their_own(opened: Opened) -> None:
    drawn = """async (text) => {
      const { el } = await import("./dom.js");
      const made = [el("p", {}, text), el("p", { class: "words raw" }, text), el("option", {}, text)];
      return made.map((one) => one.innerHTML);
    }"""
    shares = "בנות ונשים 75 %, זקן 9 %"
    told = "<bdi>בנות ונשים</bdi> 75 %, <bdi>זקן</bdi> 9 %"
    assert opened("verdict").evaluate(drawn, shares) == [told, shares, shares]
    assert kept_apart(f"<p>{shares}</p>") == f"<p>{told}</p>"
    # Signs within a name do not part it: its halves would stand in the order of an English sentence.
    for name in ("צ'רלי", 'ארה"ב', "ת.ז", "ה/ב", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u05d0\u200f"):
        assert opened("verdict").evaluate(drawn, f"{name} 9 %")[0] == f"<bdi>{name}</bdi> 9 %"
        assert kept_apart(f"<p>{escape(name)} 9 %</p>") == f"<p><bdi>{escape(name)}</bdi> 9 %</p>"


def test_a_phone(opened: Opened, chromium: Any) -> None:
    phone = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = opened("verdict", within=phone)
    for screen in ("verdict", "answers", "unreadable", "changes"):
        page.evaluate(f"location.hash = '#/{screen}'")
        until(page, f"document.querySelector('nav a[aria-current]').hash.includes('{screen}')")
        until(page, "document.querySelector('main .row, main table') !== null")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, screen
    page.evaluate("location.hash = '#/answers'")
    page.wait_for_selector(".answers .row")
    # Groups stand below one another, each under its name.
    first, second = (page.locator(".row >> nth=0").locator(".cell").nth(n).bounding_box() for n in (0, 1))
    assert second["y"] >= first["y"] + first["height"]
    assert page.locator(".cell .group >> nth=0").is_visible()
    phone.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers_and_contrast(chromium: Any, opened: Opened, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    within = chromium.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page = opened("verdict", within=within)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(251, 251, 250)" if scheme == "light" else "rgb(20, 23, 27)"
    )
    screens = ("verdict", "answers?attribute=hobby&value=yoga", "unreadable", "changes", "gate?run=1&max=20")
    for screen in screens if scheme == "light" else screens[1:3]:
        page.evaluate(f"location.hash = '#/{screen}'")
        until(page, "document.querySelector('main .row, main table') !== null", 60)
        found = Axe().run(page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in {"serious", "critical"}] == [], screen
    within.close()


def test_a_voice_answers_and_a_turn_says_what_was_said_before(
    opened: Opened, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with closing(Served(application(Explorer([three_kinds(tmp_path)], tmp_path_factory.mktemp("scratch"))))) as server:
        page = opened("answers?task=hire_gender%3Avoice", server.address)
        page.get_by_role("button", name="Play the answer to").first.click()
        until(page, "document.getElementById('audio').duration > 0.1")
        page = opened("answers?task=hire_gender%3Atalk%40turn%3D2", server.address)
        page.locator(".cell summary").first.click()
        until(page, "document.querySelector('.cell .before')?.textContent.trim().length > 5")
