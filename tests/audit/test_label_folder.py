"""Labels saved one by one, differences settled, and audits that stay with their run."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import equivox as ex
from equivox.audit.folder import Asked, Item, LabelFolder, label_files, person_name, write_label_folder
from equivox.audit.kept import score_audit
from equivox.audit.label_studio import exported_labels, labelling_page, tasks_of
from equivox.audit.labels import comparable
from equivox.audit.stored import stored_audits
from equivox.compare.runs import compared_run
from equivox.core.errors import RequestError
from equivox.core.files import read_document, write_document
from equivox.core.scores import ScoringOptions
from equivox.integrations.hub.run_folder import write_run
from equivox.integrations.hub.submission import notes_of
from equivox.report.opening import opening
from equivox.report.score_tables import task_tables
from equivox.run.annotating import stored_annotations
from equivox.run.file_hashes import state_hashes
from equivox.run.manifest import read_manifest
from equivox.run.scoring import read_scores
from equivox.tasks.registry import resolve_tasks

Cli = Callable[..., tuple[int, str, str]]
LABEL = ("audit", "label", "--no-serve")
AUDIT = (*LABEL, "--per", "model,group")
JOB = Asked(name="job", asks="the job", options=("nurse", "engineer", "other", "unstated"))
HOBBY = Asked(name="hobby", asks="the hobby")
THINGS = Asked(name="things", asks="three things", count=3)
ITEMS = [
    Item(item="i1", prompt="Who?", response="A nurse who reads.", media="i1.ogg", asked=(JOB, HOBBY)),
    Item(item="i2", prompt="Who?", response="Someone.", media="", asked=(JOB, THINGS)),
]


@pytest.fixture
def folder(tmp_path: Path) -> LabelFolder:
    place = tmp_path / "labels"
    write_label_folder(place, ITEMS, {one.item: {"run": str(tmp_path / "run")} for one in ITEMS}, {"i1.ogg": b"clip"})
    return LabelFolder(place)


def test_what_is_saved_is_there_again(folder: LabelFolder) -> None:
    assert list(folder.items) == ITEMS
    folder.save("Ana", "i1", {"job": "NURSE", "hobby": "reading"})
    folder.save("Ana", "i1", {"hobby": "books"})
    folder.save("Ana", "i2", {"things": "a; b ;c"})
    again = LabelFolder(folder.folder)
    assert again.labels("Ana") == {"i1": {"job": "nurse", "hobby": "books"}, "i2": {"things": "a; b; c"}}
    assert (again.people(), again.done("Ana"), again.labels("Ben")) == (["Ana"], 1, {})
    again.save("Ana", "i1", {"hobby": ""})
    assert again.labels("Ana")["i1"] == {"job": "nurse"}
    assert folder.media("i1").read_bytes() == b"clip"  # type: ignore[union-attr]
    assert folder.media("i2") is folder.media("nothing") is None


@pytest.mark.parametrize(
    ("item", "labels", "words"),
    [
        ("i9", {"job": "nurse"}, "no item 'i9'"),
        ("i1", {"pay": "much"}, "no attribute 'pay'"),
        ("i1", {"job": "pilot"}, "job is one of nurse, engineer, other, unstated, got 'pilot'"),
        ("i1", {"hobby": "one; two"}, "takes one value, got 2"),
    ],
)
def test_a_label_that_is_none_is_refused_and_not_saved(
    folder: LabelFolder, item: str, labels: dict[str, str], words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        folder.save("Ana", item, {"job": "nurse"} | labels)
    assert folder.labels("Ana") == {}


@pytest.mark.parametrize("name", ["", "  ", "../..", "Adjudicated", "a" * 41, "a" + "🙂" * 39, "a\ud800"])
def test_a_name_is_a_name(name: str) -> None:
    with pytest.raises(RequestError, match="person's name"):
        person_name(name)


def test_names_stay_in_the_folder(folder: LabelFolder) -> None:
    assert "/" not in person_name("../../etc/passwd")
    folder.save("../../etc/passwd", "i1", {"job": "nurse"})
    assert len(list(folder.folder.glob("labels-*.csv"))) == 1 and folder.people() == ["../../etc/passwd"]


ALIKE = [
    "Bob Lee",
    "Bob_Lee",
    "Bob-Lee",
    "Bob.Lee",
    "Bob/Lee",
    "Bob%2FLee",
    "Bob*Lee",
    "Ana Lucía",
    "Ana Lucia",
    "王",
    "a" * 39,
]


def test_different_names_are_different_people(folder: LabelFolder) -> None:
    for number, name in enumerate(ALIKE):
        folder.save(name, "i1", {"hobby": f"hobby {number}"})
    assert [folder.labels(name) for name in ALIKE] == [{"i1": {"hobby": f"hobby {n}"}} for n in range(len(ALIKE))]
    assert sorted(folder.people()) == sorted(ALIKE)
    # One name, written twice: around it and within it blanks say nothing, and an accent has two spellings.
    assert person_name(" Ana  Lucía ") == person_name("Ana Luci\u0301a")


SAVES = """
import sys
from pathlib import Path
from equivox.audit.folder import LabelFolder
folder, first = LabelFolder(Path(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for n in range(first, 40, 2):
    folder.save("Ana", f"i{n}", {"hobby": f"hobby {n}"})
"""


def test_two_servers_on_one_folder_lose_nothing(tmp_path: Path) -> None:
    items = [Item(item=f"i{n}", prompt="", response="x", media="", asked=(HOBBY,)) for n in range(40)]
    write_label_folder(tmp_path, items, {}, {})
    with ExitStack() as started:
        servers = [
            started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", SAVES, str(tmp_path), str(first)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for first in (0, 1)
        ]
        for server in servers:
            assert server.stdout and server.stdout.readline() == b"ready\n"
        for server in servers:
            assert server.stdin
            server.stdin.write(b"go\n")
            server.stdin.flush()
        assert [server.wait() for server in servers] == [0, 0]
    assert LabelFolder(tmp_path).labels("Ana") == {f"i{n}": {"hobby": f"hobby {n}"} for n in range(40)}


def test_what_a_killed_server_left_half_written_is_removed(folder: LabelFolder) -> None:
    folder.save("Ana", "i1", {"job": "nurse"})
    left = folder.folder / ".writing-labels-Ana.csv"
    left.write_text("item,attr")
    assert LabelFolder(folder.folder).labels("Ana") == {"i1": {"job": "nurse"}}
    assert not left.exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../key.json", "../../secret", "/dev/zero"])
def test_media_are_files_of_the_folder(folder: LabelFolder, target: str) -> None:
    (folder.folder.parent / "secret").write_text("secret")
    clip = folder.folder / "media" / "i1.ogg"
    clip.unlink()
    clip.symlink_to(target)
    assert folder.media("i1") is None
    shutil.rmtree(clip.parent)
    clip.parent.symlink_to(folder.folder.parent)
    (folder.folder.parent / "i1.ogg").write_text("secret")
    assert folder.media("i1") is None


@pytest.mark.parametrize("label", ["a\u2028b", "a\nb", 'a "b", c', "a\x0bb", "a\x85b", "=1+1", "'"])
def test_every_text_is_there_again(folder: LabelFolder, label: str) -> None:
    folder.save("Ana", "i1", {"job": "nurse", "hobby": label})
    assert LabelFolder(folder.folder).labels("Ana") == {"i1": {"job": "nurse", "hobby": label}}


def test_many_save_at_once(folder: LabelFolder) -> None:
    def save(person: str) -> None:
        for job in ("nurse", "engineer", "nurse"):
            folder.save(person, "i1", {"job": job})

    threads = [threading.Thread(target=save, args=(f"p{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {person: folder.labels(person) for person in folder.people()} == {
        f"p{n}": {"i1": {"job": "nurse"}} for n in range(4)
    }


def test_only_what_people_say_differently_is_to_be_settled(folder: LabelFolder) -> None:
    folder.save("Ana", "i1", {"job": "nurse", "hobby": "reading books"})
    folder.save("Ben", "i1", {"job": "engineer", "hobby": "Reading book."})
    folder.save("Ana", "i2", {"job": "unstated"})
    # The hobby is the same for the scores; what one person alone labelled cannot differ. Names are not shown.
    assert folder.differing() == {"i1": {"job": ("engineer", "nurse")}}
    folder.decide("i1", {"job": "nurse"})
    assert folder.decisions() == {"i1": {"job": "nurse"}}
    assert folder.people() == ["Ana", "Ben"]
    assert [path.name for path in label_files(folder.folder)] == ["labels-Ana.csv", "labels-Ben.csv", "adjudicated.csv"]


def test_unstated_is_an_answer_and_no_word() -> None:
    assert comparable(["Unstated"]) == comparable([]) == ("unstated",)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="neither a run nor a label folder"):
        LabelFolder(tmp_path)


def test_label_studio_gets_tasks_and_a_page() -> None:
    (task, _) = tasks_of(ITEMS, {"i1": "data:audio/ogg;base64,AA=="})
    assert task["data"] == {
        "item": "i1", "prompt": "Who?", "response": "A nurse who reads.", "media": "data:audio/ogg;base64,AA=="
    }  # fmt: skip
    page = ElementTree.fromstring(labelling_page((JOB, THINGS), "audio"))
    assert page.find("Audio").get("value") == "$media"  # type: ignore[union-attr]
    choices = page.find("Choices")
    assert choices is not None
    assert [choices.get("name"), choices.get("toName"), choices.get("choice")] == ["job", "response", "single"]
    assert [choice.get("value") for choice in choices] == list(JOB.options)
    assert [area.get("name") for area in page.findall("TextArea")] == ["things"]
    assert {text.get("name") for text in page.iter("Text")} == {"prompt", "response"}


def answer(name: str, kind: str, *values: str) -> dict[str, Any]:
    return {
        "from_name": name,
        "to_name": "response",
        "type": kind,
        "value": {kind if kind == "choices" else "text": list(values)},
    }


def test_label_studios_export_is_read(tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    given = [answer("job", "choices", "nurse"), answer("things", "textarea", "a", "b; c")]
    annotations = [
        {"completed_by": 7, "result": given},
        {"completed_by": {"id": 8, "email": "ana@example.org"}, "result": given[:1]},
        {"completed_by": 9, "was_cancelled": True, "result": given},
    ]
    file.write_text(json.dumps([{"id": 1, "data": {"item": "i1"}, "annotations": annotations}]))
    assert [found[1:] for found in exported_labels(file)] == [
        ("label-studio-7", "i1", "job", "nurse"),
        ("label-studio-7", "i1", "things", "a; b; c"),
        ("label-studio-8", "i1", "job", "nurse"),
    ]
    file.write_text('[{"job": "nurse"}]')
    with pytest.raises(RequestError, match="choose JSON, not JSON-MIN"):
        list(exported_labels(file))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled") / "run"
    ex.measure(
        "simulated:planted?shift=0.4",
        "vibe_gender:candidate",
        output=folder,
        data="sample",
        options=ScoringOptions(n_resamples=99),
    )
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


def labels_like_the_annotator(sheet: Path, run: Path) -> Path:
    key = json.loads((sheet / "key.json").read_text())
    read: dict[tuple[str, str], str] = {}
    for record in stored_annotations(run, "rules").values():
        for value in record["values"]:
            place = (record["response_key"], value["attribute"])
            read[place] = "; ".join(filter(None, (read.get(place), value["value"])))
    with (sheet / "sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    path = sheet / "labels-Ana.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "attribute", "label"])
        for row in rows:
            said = read.get((key[row["item"]]["response"], row["attribute"]), "unstated")
            writer.writerow([row["item"], row["attribute"], said])
    return path


def test_an_audit_stays_with_its_run(run: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = tmp_path / "sheet"
    assert equivox(*LABEL, run, "--n", 40, "--per", "task,group", "--no-media", "--output", sheet)[0] == 0
    labels_like_the_annotator(sheet, run)
    code, out, err = equivox("audit", "score", sheet)
    assert (code, err) == (0, "")
    kept = run / "audit" / "answers"
    assert str(kept / "audit.json") in out and str(sheet / "audit.json") in out
    assert sorted(path.name for path in kept.iterdir()) == ["audit.json", "key.json", "labels-person-1.csv"]
    # Neither the name of the person nor where the run lies is passed on with it.
    assert all("Ana" not in path.read_text() and str(tmp_path) not in path.read_text() for path in kept.iterdir())
    (audit,) = stored_audits(run, "rules")
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    corrected = audit.of(whole)
    assert corrected is not None
    assert corrected.corrected == pytest.approx(whole.estimate, abs=0.5)
    assert (audit.name, audit.raters, audit.n_responses) == ("answers", 1, 80)
    assert set(audit.agreement.values()) == {100.0}
    # It stands beside the headline in the tables, on the first screen of a real model, and in what is submitted.
    shown = replace(compared_run("org/model", run, read_scores(run)), read_by_rules=False)
    (table,) = [table for tables in task_tables([shown]) for table in tables]
    assert table.columns[-2:] == ["with labels", "interval"]
    assert table.rows[0][-2] == f"{corrected.corrected:.2f}"
    assert any("annotator rules checked by 1 person on 80 responses; it agrees on 100 %" in one for one in shown.marks)
    assert any("checked by 1 person" in one.text and one.mark == "good" for one in opening([shown]).trust)
    (task,) = resolve_tasks("vibe_gender:candidate")
    notes = notes_of(whole, task, read_manifest(run), {}, compared=True, audits=[audit])
    assert f"with people's labels {corrected.corrected:.2f}, interval" in notes and "not audited" not in notes
    assert equivox("verify", run, "--data", "sample", "--quiet")[0] == 0
    changed = read_document(kept / "audit.json")
    changed["scores"][0]["corrected"] = 5.0
    (tmp_path / "other").mkdir()
    tampered = shutil.copytree(run, tmp_path / "other" / "run")
    write_document(tampered / "audit" / "answers" / "audit.json", changed)
    state_hashes(tampered)
    code, out, _ = equivox("verify", tampered, "--data", "sample", "--quiet")
    assert code == 1 and "corrected" in out
    # It stands though the scores are computed again, for it depends on annotations and labels alone.
    assert equivox("score", run, "--scoring", "n_resamples=199")[0] == 0
    (again,) = [score for score in read_scores(run) if score.is_whole]
    assert again.estimate != whole.estimate
    assert audit.of(again).corrected == corrected.corrected  # type: ignore[union-attr]
    assert equivox("verify", run, "--data", "sample", "--quiet")[0] == 0
    # It goes with the run to others, who compute it again.
    write_run(run, tmp_path / "pushed", repo="org/run")
    assert equivox("verify", tmp_path / "pushed", "--data", "sample", "--quiet")[0] == 0
    assert (tmp_path / "pushed" / "audit" / "answers" / "audit.json").is_file()
    # It is computed again from what is kept, and gives the same.
    before = read_document(kept / "audit.json")
    shutil.rmtree(sheet)
    assert equivox("audit", "score", kept)[0] == 0
    assert read_document(kept / "audit.json") == before


def test_an_audit_of_other_scores_or_of_another_annotator_does_not_count(run: Path, tmp_path: Path) -> None:
    place = run / "audit" / "answers"
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    one = {
        "model": "m", "task": whole.task, "attribute": "", "value": whole.value,
        "corrected": 3.0, "ci_low": 1.0, "ci_high": 5.0, "labels": {"female": 9},
        "labels_to_halve": None, "undefined": None, "notes": [],
    }  # fmt: skip
    document = {"annotator": "rules", "raters": 2, "n_responses": 9, "attributes": [], "scores": [one]}
    write_document(place / "audit.json", document)
    assert [audit.of(whole).corrected for audit in stored_audits(run, "rules")] == [3.0]  # type: ignore[union-attr]
    assert stored_audits(run, "another") == []
    write_document(place / "audit.json", document | {"scores": [one | {"value": whole.value + 1}]})
    assert [audit.of(whole) for audit in stored_audits(run, "rules")] == [None]
    (place / "audit.json").write_text("{}")
    assert stored_audits(run, "rules") == []


def test_what_was_decided_counts_in_place_of_what_people_said(run: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = tmp_path / "sheet"
    assert equivox(*AUDIT, run, "--n", 10, "--no-media", "--output", sheet)[0] == 0
    first = labels_like_the_annotator(sheet, run)
    head, *rows = [row for row in first.read_text().splitlines() if not row.strip().endswith("refusal,no")]
    of_job = [row for row in rows if ",competency," in row]
    (sheet / "labels-Ben.csv").write_text("\n".join([head, *(f"{row.rpartition(',')[0]},unstated" for row in of_job)]))
    split = score_audit(sheet, label_files(sheet))
    (entry,) = [one for one in split.attributes if one.attribute == "competency"]
    assert (entry.split, entry.n) == (len(of_job), 0)
    (sheet / "adjudicated.csv").write_text("\n".join([head, *of_job[:4]]))
    settled = score_audit(sheet, label_files(sheet))
    (entry,) = [one for one in settled.attributes if one.attribute == "competency"]
    assert (entry.split, entry.n, entry.agreement) == (len(of_job) - 4, 4, 100)
    # Who decides is no further person.
    assert settled.raters == ["Ana", "Ben"]


def test_labelling_is_begun_and_gone_on_with(
    run: Path, tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[tuple[Path, bool, int]] = []

    def serve(desk: Any, *, host: str, port: int, ready: Callable[[str], None]) -> None:
        served.append((desk.labels.folder, desk.adjudicate, len(desk.labels.items)))
        ready("http://127.0.0.1:1/")
        if not desk.adjudicate:
            item = desk.labels.items[0]
            desk.labels.save(f"p{len(served)}", item.item, {"refusal": "yes" if len(served) == 1 else "no"})

    monkeypatch.setattr("equivox.report.label.server.serve", serve)
    folder = tmp_path / "run-labels"
    first = ("audit", "label", run, "--n", 6, "--no-open")
    code, out, err = equivox(*first)
    assert (code, err) == (0, ""), err
    assert "female: 6 answers" in out and f"saved in {folder}" in out and "p1: 0 of 12 answers" in out
    assert len(list((folder / "media").iterdir())) == 12
    code, _, err = equivox("audit", "label", folder, "--adjudicate", "--no-open")
    assert code == 2 and "needs the labels of two people" in err
    code, out, _ = equivox(*first)
    assert code == 0 and "Going on with the labels" in out
    assert "People differ on 1 answer, 0 are decided" in out
    assert equivox("audit", "label", folder, "--adjudicate", "--no-open")[0] == 0
    assert served == [(folder, False, 12), (folder, False, 12), (folder, True, 12)]
    for arguments, words in (
        ([folder, "--output", tmp_path / "x"], "leave it out"),
        ([tmp_path / "nothing"], "nothing"),
        ([run, "--per", "speaker"], "got 'speaker'"),
    ):
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        code, _, err = equivox(
            "audit", "label", *arguments, *(["--output", tmp_path / "new"] if arguments[0] == run else [])
        )
        assert (code, err.count("\n")) == (2, 1) and words in err, err
        assert not (tmp_path / "new").exists()
    other = shutil.copytree(run, tmp_path / "other")
    code, _, err = equivox("audit", "label", other, "--output", folder)
    assert code == 2 and "holds labels of other runs" in err
