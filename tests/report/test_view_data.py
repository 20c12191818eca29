"""What the explorer shows: rows of answers in pairs, filters, the page, recordings, and no word of this machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from made_requests import APPLICATIONS, three_kinds
from sample_runs import sample_run

from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document
from equivox.report.page.examples import find_pairs, list_wordings
from equivox.report.verdict import list_verdicts
from equivox.report.view.answers import UNREAD, Answers, RunTables
from equivox.report.view.media import read_medium
from equivox.report.view.shown import open_shown
from equivox.run.declarations import read_tasks
from equivox.run.manifest import hashes_of
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import Store, annotation_schema, read_sound
from equivox.tasks.registry import resolve_tasks

TASK = "vibe_gender:advisory"


def make(folder: Path, model: str = "planted,shift=0.3,refusal=0.05,fail=0.05") -> Path:
    return sample_run(folder, model, TASK, limit=96)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("view") / "run")


def read(folder: Path, name: str = TASK) -> Answers:
    task = next(task for task in read_tasks(folder) if task.name == name)
    return Answers.read(RunTables.read(folder, "rules"), task)


def rows_of(answers: Answers) -> list[dict[str, Any]]:
    return [row for pair in answers.describe(sorted(set(answers.pairs.tolist()))) for row in pair]


def test_a_row_for_every_request_in_pairs_of_groups(run: Path) -> None:
    answers = read(run)
    rows = rows_of(answers)
    assert len(rows) == len({row["about"] for row in rows}) == 96 and answers.reason is None
    for row in rows:
        assert (row["status"] == "parsed") == any(name == "hobby" for name, _ in row["values"])
        assert row["text"] and (row["media"], row["before"]) == (["audio"], [])
    assert {row["status"] for row in rows} == {"parsed", "refused", "failed"}
    for pair in answers.describe(sorted(set(answers.pairs.tolist()))):
        # One answer of either group to one sentence in one emotion.
        assert len({row["group"] for row in pair}) == len(pair) <= 2
        assert len({row["about"].split(" · ")[0] for row in pair}) == 1


def test_answers_about_one_unit_are_a_pair(tmp_path: Path) -> None:
    execute(RunSpec(model="simulated:random", tasks=resolve_tasks(APPLICATIONS), output=tmp_path / "run"))
    answers = read(tmp_path / "run", "applications_gender:decision")
    pairs = answers.describe(list(range(40)))
    assert [sorted(row["group"] for row in pair) for pair in pairs] == [["female", "male"]] * 40
    assert all(one["unit"] == other["unit"] for one, other in pairs)
    # What was asked is filled in, as it was sent.
    first, second = pairs[0]
    assert "{" not in first["prompt"] and first["prompt"] != second["prompt"]


FILTERS = {
    "group": ({"group": "male"}, lambda row: row["group"] == "male"),
    "status": ({"status": "refused"}, lambda row: row["status"] == "refused"),
    "unread": ({"status": UNREAD}, lambda row: row["status"] != "parsed"),
    "value": ({"values": {"yoga", "chess"}}, lambda row: {"yoga", "chess"} & set(dict(row["values"]).get("hobby", []))),
    "words": ({"search": "YOGA"}, lambda row: "yoga" in row["text"].lower()),
    "two": ({"values": {"yoga"}, "group": "male"}, lambda row: row["group"] == "male" and "yoga" in str(row["values"])),
}  # fmt: skip


@pytest.mark.parametrize(("given", "fits"), FILTERS.values(), ids=FILTERS)
def test_filters(run: Path, given: dict[str, Any], fits: Any) -> None:
    answers = read(run)
    matching = answers.match(**given)
    rows = {row["row"]: row for row in rows_of(answers)}
    assert [bool(fits(rows[n])) for n in range(96)] == matching.tolist() and 0 < matching.sum() < 96
    # Pairs whose answers differ in it come first.
    order = answers.order_pairs(matching).tolist()
    differ = [not all(matching[row["row"]] for row in pair) for pair in answers.describe(order)]
    assert differ == sorted(differ, reverse=True)
    assert set(order) == {int(pair) for pair, fit in zip(answers.pairs, matching, strict=True) if fit}


def test_the_judges_own_words_stand_beside_what_it_misunderstood(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    key = next(row["about"].split(" · ")[-1] for row in rows_of(read(folder)) if row["status"] == "parsed")
    record = {
        **{"key": "another", "response_key": key, "task": TASK, "status": "unparsed", "values": [], "attempts": 3},
        **{"segment": "", "output": '{"hobby": see /home/me/judge.log \u202etxet'},
    }
    with Store(folder / "annotations" / "rules", annotation_schema()) as store:
        store.append(record)
    answers = read(folder)
    (told,) = (row for row in rows_of(answers) if row["raw"])
    # Places on this machine are cut, and nothing turns the direction of writing.
    assert told["about"].endswith(key) and told["raw"] == '{"hobby": see judge.log \\u202etxet'
    assert answers.match(search="JUDGE.log").sum() == 1


def test_examples_show_the_value_in_one_group_and_not_in_the_other(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", "biased")
    (found,) = list_verdicts(open_shown([folder]).runs[0])
    rate, answers = found.rates[0], read(folder)
    pairs = find_pairs(found, answers, 3)
    assert 0 < len(pairs) <= 3
    for pair in pairs:
        has = {row["group"]: rate.name in dict(row["values"])["hobby"] for row in pair}
        assert has == {"female": rate.groups[0] == "women", "male": rate.groups[0] == "men"}
    assert list_wordings(found.run, "no such value") == {"no such value"}


def test_the_page_counts_and_filters_what_its_run_holds(run: Path) -> None:
    before = hashes_of(run)
    shown = open_shown([run])
    assert "<h1>" in shown.page and f'value="0/{TASK}"' in shown.page
    found = shown.read_answers({"task": f"0/{TASK}"})
    assert (found["tally"], found["groups"], found["reason"]) == ("96 of 96 answers", ["female", "male"], None)
    pages = [shown.read_answers({"task": f"0/{TASK}", "page": str(n)})["pairs"] for n in range(found["pages"])]
    assert sum(len(pair) for page in pages for pair in page) == 96
    for given in ({"task": "9/x"}, {"task": TASK}, {}, {"task": "-1/" + TASK}):
        with pytest.raises(UsageError, match="no answers to this task"):
            shown.read_answers(given)
    # A run is read and never written.
    assert hashes_of(run) == before


def test_a_run_that_is_not_scored_is_shown_as_far_as_it_is(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    (folder / "scores.json").unlink()
    shutil.rmtree(folder / "annotations")
    shown = open_shown([folder])
    assert "not scored yet" in shown.page and "NO RESULT" not in shown.page
    assert {row["status"] for row in rows_of(read(folder))} == {"unannotated", "failed"}
    reason = shown.read_answers({"task": f"0/{TASK}"})["reason"]
    assert "no annotations by 'rules'" in reason and str(tmp_path) not in reason
    (folder / "plan.parquet").unlink()
    with pytest.raises(UsageError, match="no answers"):
        open_shown([folder]).read_answers({"task": f"0/{TASK}"})


@pytest.fixture(scope="module")
def unusable(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of damaged runs, by what is wrong with them."""
    place = tmp_path_factory.mktemp("unusable")
    found = {name: place / name for name in ("cut", "forged", "foreign", "nowhere")}
    for name in ("cut", "forged"):
        shutil.copytree(run, found[name])
    (shard,) = (found["cut"] / "responses").glob("*.parquet")
    shard.write_bytes(shard.read_bytes()[:99])
    scores = read_document(found["forged"] / "scores.json")
    scores["scores"][0]["value"] /= 2
    write_document(found["forged"] / "scores.json", scores)
    found["foreign"].mkdir()
    (found["foreign"] / "manifest.json").write_text('{"made by": "another program"}')
    return found


def test_what_cannot_be_used_is_named_and_the_rest_is_shown(
    run: Path, unusable: dict[str, Path], tmp_path: Path, equivox: Cli
) -> None:
    page = tmp_path / "report.html"
    code, _, err = equivox("report", run, *unusable.values(), "--output", page)
    said = err.splitlines()
    assert code == 1 and len([line for line in said if line.startswith("left out: ")]) == 3
    whole = page.read_text()
    # A run whose stored numbers were edited is shown, and named.
    broken = {name: folder for name, folder in unusable.items() if name != "forged"}
    for name, folder in broken.items():
        assert any(line.startswith(f"left out: {folder}: ") for line in said), err
        assert f"{name} is left out: " in whole
    assert "1 file is not as it was when the run was scored" in whole and str(tmp_path.parent) not in whole
    assert whole.count("<summary>Manifest of") == 2
    # None of them can be used: nothing is written.
    code, _, err = equivox("report", *broken.values(), "--output", tmp_path / "none.html")
    assert code == 2 and "none of the 3 runs can be used" in err and not (tmp_path / "none.html").exists()


def test_the_explorer_names_what_cannot_be_read_and_shows_the_rest(
    run: Path, unusable: dict[str, Path], tmp_path: Path
) -> None:
    readable = [unusable[name] for name in ("cut", "foreign", "nowhere")]
    shown = open_shown([*readable, run])
    assert [one.folder for one in shown.runs] == [run]
    assert [caveat.partition(" is left out: ")[0] for caveat in shown.caveats] == ["cut", "foreign", "nowhere"]
    assert str(tmp_path.parent) not in json.dumps([*shown.caveats, shown.page])
    with pytest.raises(UsageError, match=r"cut is left out: .* is damaged"):
        open_shown(readable[:2])
    with pytest.raises(UsageError, match="given a run twice"):
        open_shown([run, run])


def test_wrong_requests_are_one_line(run: Path, tmp_path: Path, equivox: Cli) -> None:
    for arguments, said in (
        ((tmp_path / "no run",), "not a run"),
        ((tmp_path,), "not a run"),
        ((run, "--port", 0, "--host", "no-such-host"), "no-such-host"),
    ):
        assert said in equivox.refused("view", *arguments, "--no-open")


def test_a_folder_of_own_clips_with_relative_paths_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from equivox.dataset_builders import sample_source

    clips = sorted(sample_source("crema_d").rglob("*.ogg"))[:8]
    own = tmp_path / "own" / "clips"
    own.mkdir(parents=True)
    lines = ["path,text,speaker,gender"]
    for n, clip in enumerate(clips):
        shutil.copy(clip, own / clip.name)
        lines.append(f"clips/{clip.name},Words.,s{n % 4},{('female', 'male')[n % 2]}")
    (own.parent / "voices.csv").write_text("\n".join(lines) + "\n")
    (own.parent / "own.yaml").write_text(
        "name: own\ntable: voices.csv\ngroup: gender\nprompts: [advisory]\ncard: Ours.\n"
    )
    monkeypatch.chdir(tmp_path)
    tasks = resolve_tasks("own/own.yaml")
    execute(RunSpec(model="simulated:biased", tasks=tasks, output=tmp_path / "run"))
    monkeypatch.chdir("/")
    answers = read(tmp_path / "run", tasks[0].name)
    content, kind = read_medium(answers, 0, 0, None, {})
    assert kind == "audio/ogg" and content in [clip.read_bytes() for clip in clips]
    for row, number in ((-1, 0), (8, 0), (0, 1), (0, -1)):
        with pytest.raises(UsageError, match="no such recording"):
            read_medium(answers, row, number, None, {})


def test_spoken_answers_are_played_and_turns_have_what_was_said_before(tmp_path: Path) -> None:
    run = three_kinds(tmp_path)
    voice = read(run, "hire_gender:voice")
    assert voice.list_media(0) == ["sound"]
    content, kind = read_medium(voice, 0, 0, None, {})
    assert kind == "audio/wav" and content == read_sound(run, voice.responses["sound"][0].as_py())
    first = {row["about"].split(" · ")[0]: row for row in rows_of(read(run, "hire_gender:talk"))}
    for row in rows_of(read(run, "hire_gender:talk@turn=2")):
        ((prompt, said),) = row["before"]
        assert said == first[row["about"].split(" · ")[0]]["text"] and "{" not in prompt
    assert rows_of(read(run, "hire_gender:plain"))[0]["before"] == []
