"""People label in the browser: by keys, saved at once, blind to each other, with the recording hidden."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from serving import Served
from starlette.testclient import TestClient

from equivox.audit.folder import Asked, Item, LabelFolder, write_label_folder
from equivox.dataset_builders import sample_source
from equivox.report.label.server import Desk, application

HOSTILE = '<img src=x onerror="document.title=\'gone\'"> <script>document.title="gone"</script>'
REFUSAL = Asked(name="refusal", asks="whether the text declines", options=("yes", "no"))
JOB = Asked(name="job", asks="the job", options=("nurse", "engineer", "other", "unstated"))
HOBBY = Asked(name="hobby", asks="the hobby")
"""A choice, free text, and whether the text declines."""


@pytest.fixture
def folder(tmp_path: Path) -> LabelFolder:
    clip = sorted((sample_source("crema_d") / "AudioWAV").glob("*.ogg"))[0].read_bytes()
    items = [
        Item(item=f"i{n}", prompt="Who is it?", response=f"{HOSTILE} number {n}", media="i0.ogg" if n == 0 else "",
             asked=(JOB, HOBBY, REFUSAL))
        for n in range(3)
    ]  # fmt: skip
    write_label_folder(tmp_path / "labels", items, {one.item: {"run": "run"} for one in items}, {"i0.ogg": clip})
    return LabelFolder(tmp_path / "labels")


@pytest.fixture
def served(folder: LabelFolder) -> Iterator[Served]:
    server = Served(application(Desk(folder)))
    yield server
    server.close()


def opened(browser: Any, address: str, **context: Any) -> Any:
    page = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | context)).new_page()
    page.goto(address)
    page.wait_for_selector("main section")
    return page


def until(said: Any, seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not said():
        assert time.monotonic() < ends
        time.sleep(0.02)


def begin(page: Any, name: str) -> None:
    page.fill("#name", name)
    page.keyboard.press("Enter")
    page.wait_for_selector(".item")


def test_by_keys_alone_and_saved_at_once(browser: Any, served: Served, folder: LabelFolder) -> None:
    page = opened(browser, served.address)
    begin(page, "Ana")
    assert page.title() == "equivox label" and HOSTILE in page.inner_text(".response")
    page.keyboard.press("2")
    until(lambda: folder.labels("Ana") == {"i0": {"job": "engineer", "refusal": "no"}})
    # The field of the next question has the focus.
    page.keyboard.type("chess; no, reading")
    page.keyboard.press("Enter")
    until(lambda: "takes one value" in page.inner_text("#saved"))
    assert "hobby" not in folder.labels("Ana")["i0"]
    page.fill("input[aria-label='the hobby']", "reading")
    page.keyboard.press("Enter")
    until(lambda: folder.labels("Ana")["i0"].get("hobby") == "reading")
    page.keyboard.press("Enter")
    assert "Answer 2 of 3" in page.inner_text("h2 >> nth=0")
    page.keyboard.press("r")
    until(lambda: folder.labels("Ana").get("i1") == {"job": "unstated", "hobby": "unstated", "refusal": "yes"})
    assert page.inner_text("#count") == "2 of 3 done"
    page.keyboard.press("Backspace")
    assert page.get_attribute(".options button >> nth=1", "aria-pressed") == "true"
    # Loaded again, it goes on at the first answer that is not done.
    page.goto(page.url)
    page.wait_for_selector(".item")
    assert "Answer 3 of 3" in page.inner_text("h2 >> nth=0")
    page.keyboard.press("u")
    until(lambda: folder.labels("Ana").get("i2", {}).get("job") == "unstated")


def test_the_recording_is_hidden_until_it_is_asked_for_and_then_plays(browser: Any, served: Served) -> None:
    page = opened(browser, f"{served.address}?person=Ana")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert page.locator("audio").count() == 0
    page.keyboard.press("Escape")
    page.keyboard.press("h")
    page.wait_for_selector("audio")
    page.keyboard.press(" ")
    until(lambda: page.evaluate("document.querySelector('audio').currentTime > 0"))
    assert asked and all(url.startswith(served.address) for url in asked)


def test_a_server_that_is_away_loses_no_label(browser: Any, folder: LabelFolder) -> None:
    desk = Desk(folder)
    server = Served(application(desk))
    page = opened(browser, f"{server.address}?person=Ana")
    server.close()
    page.keyboard.press("1")
    until(lambda: "not saved" in page.inner_text("#saved"))
    assert folder.labels("Ana") == {}
    server = Served(application(desk), server.port)
    until(lambda: folder.labels("Ana") == {"i0": {"job": "nurse", "refusal": "no"}})
    server.close()


class Slow(LabelFolder):
    """Its labels are stored at once, and the answer that they are waits to be let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.answers = threading.Event()

    def save(self, person: str, item: str, labels: Mapping[str, str]) -> None:
        super().save(person, item, labels)
        self.answers.wait(60)


def test_keys_that_come_faster_than_the_answers_are_all_saved(browser: Any, folder: LabelFolder) -> None:
    slow = Slow(folder.folder)
    server = Served(application(Desk(slow)))
    page = opened(browser, f"{server.address}?person=Ana")
    page.keyboard.press("2")
    until(lambda: folder.labels("Ana") == {"i0": {"job": "engineer", "refusal": "no"}})
    # The first label is stored and the page does not know it; the second one is wrong, the third one right.
    page.keyboard.type("chess; reading")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.keyboard.press("1")
    slow.answers.set()
    until(lambda: folder.labels("Ana").get("i1") == {"job": "nurse", "refusal": "no"})
    # What was refused is open again, and the page does not say that all is saved.
    until(lambda: "takes one value" in page.inner_text("#saved"))
    assert "hobby" not in folder.labels("Ana")["i0"]
    assert page.inner_text("#count") == "0 of 3 done"
    assert page.evaluate("localStorage.length") == 0
    server.close()


def test_what_people_say_differently_is_decided_without_their_names(browser: Any, folder: LabelFolder) -> None:
    folder.save("Ana", "i1", {"job": "nurse", "hobby": "reading"})
    folder.save("Ben", "i1", {"job": "engineer", "hobby": "reading"})
    server = Served(application(Desk(folder, adjudicate=True)))
    page = opened(browser, server.address)
    assert "Answer 1 of 1" in page.inner_text("h2 >> nth=0")
    shown = page.inner_text("main")
    assert "engineer · nurse" in shown and "hobby" not in shown and "Ana" not in page.content()
    page.keyboard.press("1")
    until(lambda: folder.decisions() == {"i1": {"job": "nurse"}})
    server.close()


def test_on_a_phone_in_the_dark_and_for_a_screen_reader(browser: Any, served: Served) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(
        browser, f"{served.address}?person=Ana", viewport={"width": 390, "height": 844}, color_scheme="dark",
        bypass_csp=True,
    )  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == []


def test_only_the_page_itself_saves_and_nothing_else_is_shown(folder: LabelFolder) -> None:
    folder.save("Ben", "i0", {"job": "nurse"})
    client = TestClient(application(Desk(folder)), base_url="http://127.0.0.1")
    document = client.get("/label.json", params={"person": "Ana"}).json()
    assert document["labels"] == {} and "Ben" not in json.dumps(document) and "run" not in document["items"][0]
    label = {"person": "Ana", "item": "i0", "labels": {"job": "nurse"}}
    token = {"x-equivox-token": document["token"]}
    assert client.post("/labels", json=label).status_code == 403
    assert client.post("/labels", json=label, headers={"x-equivox-token": "other"}).status_code == 403
    for wrong in (
        {},
        [],
        {"person": "Ana", "item": "i0"},
        label | {"person": "../x", "item": "i9"},
        label | {"labels": 3},
    ):
        assert client.post("/labels", json=wrong, headers=token).status_code == 400, wrong
    assert client.post("/labels", json=label | {"labels": {"job": "x" * 200_000}}, headers=token).status_code == 413
    assert client.post("/labels", json=label, headers=token | {"host": "evil.example"}).status_code == 421
    assert folder.labels("Ana") == {}
    assert client.post("/labels", json=label, headers=token).status_code == 200
    assert folder.labels("Ana") == {"i0": {"job": "nurse"}}
    for path in ("key.json", "sheet.json", "labels-Ben.csv", "media/..%2Fkey.json", "media/i1", "media/x"):
        assert client.get(f"/{path}").status_code == 404, path
    assert "default-src 'none'" in client.get("/").headers["content-security-policy"]
