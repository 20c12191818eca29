"""The report as a reader sees it: verdicts, matrix, cards, paper, small screens, and nothing that hostile runs do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equivox.compare.ranking import Judged, judge
from equivox.compare.runs import open_comparison
from equivox.core.scores import ScoringOptions
from equivox.report.notes import write_note
from equivox.report.page import build_report
from equivox.report.page.document import set_quotes
from equivox.report.safe_page import STYLE, kept_apart
from equivox.report.verdict import SHORT, list_verdicts, write_gap, write_headline, write_lead
from equivox.run.manifest import read_manifest, write_manifest
from equivox.run.pipeline import annotate_run


def open_page(browser: Any, file: Path, **options: Any) -> tuple[Any, list[str]]:
    """Open a file; returns the page and the list that its errors and requests to elsewhere are added to."""
    page = browser.new_context(**options).new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None)
    page.goto(file.as_uri())
    return page, troubles


@pytest.fixture(scope="module")
def judged(runs: Sequence[Path]) -> Judged:
    return judge(open_comparison(list(runs)), n_resamples=999)


@pytest.fixture(scope="module")
def report(runs: Sequence[Path], judged: Judged, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    with pytest.MonkeyPatch.context() as patch:  # five runs take long to compare; a test compares with the same
        patch.setattr("equivox.report.page.judge", lambda comparison: judged)
        file.write_text(build_report(list(runs), examples=1), "utf-8")
    return file


def test_it_says_what_the_terminal_says(browser: Any, report: Path, runs: Sequence[Path]) -> None:
    page, troubles = open_page(browser, report)
    compared = open_comparison(list(runs)).runs
    verdicts = [list_verdicts(run) for run in compared]
    label, where = write_lead(verdicts)
    assert page.inner_text("h1") == f"{label.capitalize()} {where}"
    for number, (run, each) in enumerate(zip(compared, verdicts, strict=True)):
        page.locator(".pick label").nth(number).click()
        cards = page.locator(".model:not([hidden]) .card")
        assert cards.count() == len(each) and page.locator(".model:not([hidden])").count() == 1
        for card, verdict in zip(cards.all_inner_texts(), each, strict=True):
            assert set_quotes(write_headline(verdict)) in card and verdict.title in card
            if verdict.outcome == "difference":
                assert write_gap(verdict)[2] in card  # what chance says of q
        column = [cell.inner_text() for cell in page.locator(f'td[data-model="{run.model}"] .word').all()]
        assert sorted(word.split(" ")[0] for word in column) == sorted(SHORT[v.outcome].split(" ")[0] for v in each)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    numbers = page.inner_text(".all")
    for _, score in open_comparison(list(runs)).scores():
        assert score.defined or write_note(score.undefined_reason) in numbers
    assert "failed" in numbers and troubles == []


def test_a_cell_leads_to_its_card_and_a_card_to_two_answers(browser: Any, report: Path) -> None:
    page, troubles = open_page(browser, report)
    cell = page.locator('td[data-model="simulated:biased"] a.differs').first
    target = str(cell.get_attribute("href"))
    cell.click()
    card = page.locator(target)
    assert card.is_visible() and page.evaluate("document.activeElement.id") == target[1:]
    card.locator(".two > summary").click()
    answers = card.locator(".answer")
    assert answers.count() == 2 and len(set(answers.locator(".by b").all_inner_texts())) == 2
    left, right = (answers.nth(n).bounding_box() for n in (0, 1))
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]
    played = page.evaluate("""async (card) => {
      const audio = document.querySelector(`${card} audio`);
      await audio.play();
      await new Promise((done) => setTimeout(done, 400));
      return audio.currentTime;
    }""", target)  # fmt: skip
    assert played > 0.1 and troubles == []


def test_dots_and_bars_lie_where_the_numbers_say(browser: Any, report: Path) -> None:
    page, _ = open_page(browser, report)
    dots = page.locator(".matrix a:has(circle)").evaluate_all(
        "all => all.map((a) => [a.querySelector('.scale').getBoundingClientRect(), "
        "a.querySelector('circle').getBoundingClientRect()]).map(([s, d]) => [s.left, d.left + d.width / 2, s.right])"
    )
    assert len(dots) > 10 and all(left - 1 <= dot <= right + 1 for left, dot, right in dots)
    page.locator('td[data-model="simulated:biased"] a.differs').first.click()
    for bar in page.locator(".model:not([hidden]) .bar").all():
        drawn = (bar.locator("rect").bounding_box() or {"width": 0})["width"] > 0
        assert drawn or " 0 " in f"{bar.get_attribute('aria-label')} "


@pytest.mark.parametrize("width", [320, 768, 1600])
def test_nothing_overflows_and_little_is_said(browser: Any, report: Path, width: int) -> None:
    page, troubles = open_page(browser, report, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(page.inner_text("body").split()) < 1000
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert troubles == []


def test_without_a_script_and_on_paper_all_models_are_there(browser: Any, report: Path) -> None:
    page, _ = open_page(browser, report, java_script_enabled=False)
    assert page.locator(".model").count() == 5 and not page.is_visible(".pick")
    assert all(model.is_visible() for model in page.locator(".model").all())
    assert not page.is_visible(".all table") and page.locator(".all > summary").is_visible()
    page, _ = open_page(browser, report, viewport={"width": 718, "height": 1000})  # A4 less its margins
    page.emulate_media(media="print")
    assert all(model.is_visible() for model in page.locator(".model, .model > .name").all())
    assert not page.is_visible(".pick") and page.evaluate("document.documentElement.scrollWidth") <= 718


def test_nothing_single_is_shown_unless_asked_for(runs: Sequence[Path]) -> None:
    page = build_report(runs[:1])
    assert not any(tag in page for tag in ("<audio", "<img", 'class="answer"', 'class="words"'))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screen_readers_and_keyboards(browser: Any, report: Path, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, _ = open_page(browser, report, bypass_csp=True, color_scheme=scheme)
    for folded in (True, False):
        page.evaluate(
            f"document.querySelectorAll('.model details').forEach((d) => {{ d.open = {str(not folded).lower()}; }})"
        )
        found = Axe().run(page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the results"


TRICKS = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "'><script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "</style><script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<a href=javascript:window.hit=1>a</a>",
    "<iframe src=javascript:window.hit=1></iframe>",
    "<body onload=window.hit=1>",
    "<details open ontoggle=window.hit=1>",
    "<input autofocus onfocus=window.hit=1>",
    "<video><source onerror=window.hit=1></video>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hit=1>",
    "<object data=javascript:window.hit=1>",
    "<embed src=javascript:window.hit=1>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<form action=//evil.example><button>b</button></form>",
]
SHAPES = ["{}", "a {} b", "{}{{{{7*7}}}}", "<!--{}-->", "$\\alpha$ {}"]


def test_a_hundred_hostile_texts_stay_text(browser: Any, runs: Sequence[Path], tmp_path: Path) -> None:
    """As responses, values, groups, speakers, items, errors and the model's name."""
    hostile = [shape.format(trick) for trick in TRICKS for shape in SHAPES]
    assert len(set(hostile)) == 100
    folder = shutil.copytree(runs[1], tmp_path / "run")
    turn = iter(hostile * 10_000)
    for file in [folder / "plan.parquet", *folder.glob("responses/*.parquet"), *folder.glob("annotations/*/*.parquet")]:
        rows = pq.read_table(file).to_pylist()
        for row in rows:
            if "group" in row:
                row["group"] = f"{row['group']}{hostile[len(row['group']) % 2]}"
                row["cluster"] += hostile[3]
            if "error" in row and row["text"] is not None and len(row["key"]) and int(row["key"][:4], 16) % 2:
                row["text"] += next(turn)
                if int(row["key"][:4], 16) % 16 == 1:
                    row["text"], row["error"] = None, next(turn)
            for value in row.get("values") or ():
                if value["attribute"] in {"hobby", "occupation", "department"}:
                    value["value"] = next(turn)
        pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(file)), file)
    manifest = read_manifest(folder)
    manifest["command"]["model"] = f"simulated:{hostile[0]}"
    write_manifest(folder, manifest)
    annotate_run(folder, "rules", ScoringOptions(n_resamples=4_999, min_coverage=0.2))
    hit = tmp_path / "report.html"
    hit.write_text(build_report([folder, runs[0]], examples=5, data="sample"), "utf-8")
    page, troubles = open_page(browser, hit)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert troubles == []
    shown = page.content()
    for part in (".words", ".by", ".card h3, .card .value", ".all", ".matrix"):
        assert "window.hit=1" in " ".join(page.locator(part).all_inner_texts()), part
    assert "<script>window.hit" not in shown and '<img src="x"' not in shown
    assert (
        page.locator("main script, main iframe, main object, main embed, main base, main form, main link").count() == 0
    )


PLACES = """(id) => {
  const all = document.getElementById(id), walker = document.createTreeWalker(all, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) for (const one of walker.currentNode.data.matchAll(/[^ %,.]+|[.]/g)) {
    const range = document.createRange();
    range.setStart(walker.currentNode, one.index);
    range.setEnd(walker.currentNode, one.index + one[0].length);
    found.push([range.getBoundingClientRect().left, one[0]]);
  }
  return found.sort(([a], [b]) => a - b).map(([, word]) => word);
}"""
"""The words of an element from left to right, as they are drawn."""


def test_words_from_right_to_left_turn_no_number_beside_them(browser: Any, tmp_path: Path) -> None:
    shares = "נשים 75 %, גברים 9 %"
    file = tmp_path / "page.html"
    text = f"<title>{shares}</title><p id='told'>{shares}</p>" + f'<p class="words">{shares}</p>'
    text += "<p id='names'>ארה&#34;ב 75 %, צ&#39;רלי 9 %</p>"
    kept = kept_apart(f"<meta charset='utf-8'><style>{STYLE.read_text('utf-8')}</style>{text}")
    card = "<pre>נשים, גברים. ילדים</pre>"
    assert kept_apart(card) == card and kept_apart(f"<pre tabindex='0'>{shares}</pre>").count("bdi") == 0
    answer = '<p class="words" id="answer">אני לא יודע.</p>'
    file.write_text(f"{kept}<p id='plain'>{shares}</p>{answer}", "utf-8")
    page, troubles = open_page(browser, file)
    assert page.evaluate(PLACES, "told") == ["נשים", "75", "גברים", "9"]
    assert page.evaluate(PLACES, "names") == ['ארה"ב', "75", "צ'רלי", "9"]  # each in one piece
    assert page.evaluate(PLACES, "plain") != ["נשים", "75", "גברים", "9"]  # what a browser makes of it by itself
    assert page.evaluate(PLACES, "answer") == [".", "יודע", "לא", "אני"]
    assert page.title() == shares and page.inner_html("p.words") == shares and page.inner_text("#told") == shares
    assert not troubles
