"""What the explorer's page reads: tables of answers, pairs of runs, the document, a folder that tells no secrets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli
from made_requests import three_kinds
from sample_runs import sample_run

from equivox.core.attributes import Attribute, Number
from equivox.core.errors import RequestError
from equivox.core.files import read_document, write_document
from equivox.report.view.answers import RunTables, answers_table, joined_known
from equivox.report.view.build import build
from equivox.report.view.media import Media
from equivox.report.view.pairs import losing_pair, paired, telling_pair
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


def table_of(folder: Path) -> pa.Table:
    (task,) = read_tasks(folder)
    table, reason = answers_table(RunTables.of(folder, "rules"), task)
    assert reason is None
    return table


def test_a_row_for_every_request_sorted_as_it_is_shown(run: Path) -> None:
    table = table_of(run)
    rows = table.to_pylist()
    assert len(rows) == 96
    assert [(r["stratum"], r["group"], r["cluster"]) for r in rows] == sorted(
        (r["stratum"], r["group"], r["cluster"]) for r in rows
    )
    for row in rows:
        assert (row["text"] is None) == (row["status"] == "failed") == (row["error"] is not None)
        assert (row["status"] == "parsed") == bool(row["values.hobby"])
    assert {"parsed", "refused", "failed"} == {row["status"] for row in rows}


def test_rows_of_nothing_are_kept_when_texts_are_joined() -> None:
    # pyarrow's own join leaves the second row out.
    parts = [pa.array(["a", None, None]), pa.array(["b", None, "c"])]
    assert joined_known(parts, "|").to_pylist() == ["a|b", "", "c"]


def test_the_annotators_own_words_stand_beside_what_it_misunderstood(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    key = next(row["key"] for row in table_of(folder).to_pylist() if row["status"] == "parsed")
    record = {
        **{"key": "another", "response_key": key, "task": TASK, "status": "unparsed", "values": [], "attempts": 3},
        **{"segment": "", "output": '{"hobby": see /home/me/judge.log'},
    }
    with Store(folder / "annotations" / "rules", annotation_schema()) as store:
        store.append(record)
    rows = {row["key"]: row for row in table_of(folder).to_pylist()}
    # Places on this machine are cut.
    assert rows[key]["raw"] == '{"hobby": see judge.log'
    assert all(row["raw"] is None for other, row in rows.items() if other != key)


def answers(rows: Sequence[tuple[str, str, str | None, list[str] | None]]) -> pa.Table:
    columns: dict[str, Any] = {
        "sample": [row[0] for row in rows],
        "repeat": pa.array([0] * len(rows), pa.int32()),
        "stratum": ["s"] * len(rows),
        "group": ["g"] * len(rows),
        "status": [row[1] for row in rows],
        "text": pa.array([row[2] for row in rows], pa.string()),
        "values.hobby": pa.array([row[3] for row in rows], pa.list_(pa.string())),
    }
    return pa.table(columns)


def test_two_runs_are_matched_by_request_and_differences_are_named() -> None:
    first = answers(
        [
            ("a", "parsed", "chess", ["chess"]),
            ("b", "parsed", "yoga", ["yoga"]),
            ("c", "parsed", "golf", ["golf"]),
            ("d", "failed", None, None),
            ("only here", "parsed", "x", ["x"]),
        ]
    )
    second = answers(
        [
            ("d", "parsed", "knitting", ["knitting"]),
            ("c", "parsed", "golf it is", ["golf"]),
            ("b", "parsed", "yoga", ["yoga"]),
            ("a", "parsed", "guitar", ["guitar"]),
        ]
    )
    table, counts = paired(first, second)
    assert counts == {"matched": 4, "same": 1, "only_words": 1}
    assert table.select(["first", "second", "changed"]).to_pylist() == [
        {"first": 0, "second": 3, "changed": "hobby"},
        {"first": 2, "second": 1, "changed": ""},
        {"first": 3, "second": 0, "changed": "status\x1fhobby"},
    ]


def test_a_run_compared_with_itself_differs_in_nothing(run: Path) -> None:
    table, counts = paired(table_of(run), table_of(run))
    assert counts == {"matched": 96, "same": 96, "only_words": 0} and len(table) == 0


def test_the_answers_of_two_runs_stand_side_by_side(run: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", "planted,shift=0.9,seed=5")
    document, shown = build([run, other], tmp_path / "data")
    (pair,) = document["pair"]
    one, two = ({row["sample"]: row["text"] for row in table_of(folder).to_pylist()} for folder in shown)
    differ = sum(one[sample] != two[sample] for sample in one)
    assert (pair["matched"], pair["n"], pair["same"]) == (96, differ, 96 - differ) and differ > 48
    assert pq.read_metadata(tmp_path / "data" / pair["file"]).num_rows == differ
    with pytest.raises(RequestError, match="given a run twice"):
        build([run, run], tmp_path / "twice")


def test_the_document_counts_each_request_once(run: Path, tmp_path: Path) -> None:
    before = hashes_of(run)
    document = build([run], tmp_path / "data")[0]
    (shown,) = document["runs"]
    (task,) = shown["tasks"]
    assert sum(n for _, _, n in task["statuses"]) == task["n"] == 96
    assert task["groups"] == ["female", "male"]
    (hobby,) = [one for one in task["moves"] if one["attribute"] == "hobby"]
    spreads = [abs(one["shares"]["female"] - one["shares"]["male"]) for one in hobby["values"]]
    assert spreads == sorted(spreads, reverse=True) and len(spreads) == 8
    assert shown["verdict"]["question"] and shown["verdict"]["sentences"]
    assert pq.read_metadata(tmp_path / "data" / task["file"]).num_rows == 96
    # A run is read and never written.
    assert hashes_of(run) == before


def test_a_run_that_is_not_scored_is_shown_as_far_as_it_is(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    (folder / "scores.json").unlink()
    shutil.rmtree(folder / "annotations")
    (task,) = build([folder], tmp_path / "data")[0]["runs"][0]["tasks"]
    assert {status for status, _, _ in task["statuses"]} == {"unannotated", "failed"}
    assert "no annotations by 'rules'" in task["reason"] and str(tmp_path) not in task["reason"]
    (folder / "plan.parquet").unlink()
    assert build([folder], tmp_path / "again")[0]["runs"][0]["tasks"] == []


@pytest.fixture(scope="module")
def unusable(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders that no page may show, by what is wrong with them."""
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
    assert code == 1 and len([line for line in said if line.startswith("left out: ")]) == len(unusable)
    whole = page.read_text()
    for name, folder in unusable.items():
        assert any(line.startswith(f"left out: {folder}: ") for line in said), err
        assert f"{name} is left out: " in whole
    assert "its numbers are not what its answers give" in whole and str(tmp_path.parent) not in whole
    assert whole.count('<p class="origin">') == 1
    # None of them can be used: nothing is written.
    code, _, err = equivox("report", *unusable.values(), "--output", tmp_path / "none.html")
    assert code == 2 and "none of the 4 runs can be used" in err and not (tmp_path / "none.html").exists()


def test_the_explorer_names_what_cannot_be_read_and_shows_the_rest(
    run: Path, unusable: dict[str, Path], tmp_path: Path
) -> None:
    readable = [unusable[name] for name in ("cut", "foreign", "nowhere")]
    document, shown = build([*readable, run], tmp_path / "data")
    assert len(document["runs"]) == 1 and document["picture"]["runs"] == [0] and shown == [run]
    assert sorted(caveat.partition(" is left out: ")[0] for caveat in document["caveats"]) == [
        "cut",
        "foreign",
        "nowhere",
    ]
    assert str(tmp_path.parent) not in json.dumps(document)
    with pytest.raises(RequestError, match=r"cut is left out: .* is damaged"):
        build(readable[:2], tmp_path / "none")


def test_wrong_requests_are_one_line(run: Path, tmp_path: Path, equivox: Cli) -> None:
    for arguments, said in (
        ((tmp_path / "no run",), "not a run"),
        ((tmp_path,), "not a run"),
        ((run, "--port", 0, "--host", "no-such-host"), "no-such-host"),
    ):
        assert said in equivox.refused("view", *arguments, "--no-open")


def test_a_folder_of_own_clips_with_relative_paths_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from equivox.dataset_builders import sample_source
    from equivox.report.view.media import Media

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
    media = Media.of([tmp_path / "run"])
    assert len(media.places) == 8
    content, kind = media.read(next(iter(media.places)))
    assert kind == "audio/ogg" and content in [clip.read_bytes() for clip in clips]


def answers_of(*rows: tuple[str, str, str, list[str]]) -> pa.Table:
    """Return a table of answers: group, stratum, status and the values of `job`."""
    group, stratum, status, job = zip(*rows, strict=True)
    values = pa.array(job, pa.list_(pa.string()))
    columns = {"group": group, "stratum": stratum, "item": [""] * len(rows), "status": status, "values.job": values}
    return pa.table(columns)


JOB = Attribute(name="job", asks="the occupation")


def test_the_two_answers_that_show_it_best_are_of_the_value_that_differs_most_and_of_one_stratum() -> None:
    table = answers_of(
        ("a", "s1", "parsed", ["cook", "nurse"]), ("a", "s2", "parsed", ["nurse"]), ("a", "s3", "parsed", ["cook"]),
        ("b", "s1", "refused", []), ("b", "s2", "parsed", ["cook"]), ("b", "s3", "parsed", ["cook"]),
    )  # fmt: skip
    # nurse: 2 of 3 and 0 of 2 answers; cook: 2 of 3 and 2 of 2. Of s1 group b has no answer that could be used.
    found = telling_pair(table, [JOB])
    assert found is not None and (found.attribute, found.value, found.rows) == ("job", "nurse", (1, 4))
    assert found.shares == pytest.approx((200 / 3, 0.0))
    lost = losing_pair(table)
    assert lost is not None and (lost.attribute, lost.rows) == ("", (3, 0))
    assert lost.shares == pytest.approx((100 / 3, 0.0))
    # A value that an answer gives twice counts once.
    twice = answers_of(("a", "s", "parsed", ["cook", "cook"]), ("b", "s", "parsed", ["cook"]))
    assert telling_pair(twice, [JOB]) is None


def test_a_number_is_shown_by_one_above_the_median_and_one_that_is_not() -> None:
    table = answers_of(
        ("a", "s1", "parsed", ["10"]), ("a", "s2", "parsed", ["9"]),
        ("b", "s1", "parsed", ["70"]), ("b", "s2", "parsed", ["10"]),
    )  # fmt: skip
    found = telling_pair(table, [Attribute(name="job", asks="the pay", number=Number(unit="EUR"))])
    assert found is not None and (found.value, found.rows, found.shares) == ("above 10", (2, 0), (50.0, 0.0))


def test_a_choice_among_offered_texts_is_shown_by_the_text_within_its_stratum() -> None:
    choice = Attribute(name="job", asks="the choice", options=("A", "B"))
    rows = [
        ("a", "s1", ["A"], "tea", "beer"), ("a", "s1", ["B"], "beer", "tea"),
        ("b", "s1", ["B"], "tea", "beer"), ("b", "s1", ["A"], "tea", "beer"), ("b", "s1", ["unstated"], "tea", "beer"),
        # Group b has no answer here: nothing can be compared. The same text in another stratum is another choice.
        ("a", "s2", ["A"], "wine", "tea"), ("a", "s3", ["B"], "tea", "milk"), ("b", "s3", ["A"], "milk", "tea"),
    ]  # fmt: skip
    table = answers_of(*((group, stratum, "parsed", job) for group, stratum, job, *_ in rows))
    for place, name in ((3, "a"), (4, "b")):
        table = table.append_column(f"metadata.option_{name}", [[row[place] for row in rows]])
    found = telling_pair(table, [choice])
    # s1: tea in 2 of 2 and 1 of 2 answers; s3: both chose milk.
    assert found is not None and (found.value, found.among, found.rows) == ("tea", "s1", (0, 2))
    assert found.shares == (100.0, 50.0)
    # Without the texts the letters are values like any other: A in 2 of 4 and 2 of 4, B in 2 of 4 and 1 of 4.
    letters = telling_pair(table.drop_columns(["metadata.option_b"]), [choice])
    assert letters is not None and letters.among == "" and letters.value in ("B", "unstated")


def test_nothing_is_shown_best_where_no_two_groups_differ() -> None:
    alike = answers_of(("a", "s", "parsed", ["cook"]), ("b", "s", "parsed", ["cook"]))
    one = answers_of(("a", "s", "parsed", ["cook"]), ("a", "s", "failed", []))
    for table in (alike, one, one.slice(0, 0)):
        assert telling_pair(table, [JOB]) is None and losing_pair(table) is None


def test_spoken_answers_are_played_and_turns_have_what_was_said_before(tmp_path: Path) -> None:
    run = three_kinds(tmp_path)
    tasks = {task.name: task for task in read_tasks(run)}
    tables = RunTables.of(run, "rules")
    voice, _ = answers_table(tables, tasks["hire_gender:voice"])
    media = Media.of([run])
    content, kind = media.read(voice["sound"][0].as_py())
    assert kind == "audio/wav" and content == read_sound(run, voice["sound"][0].as_py())
    with pytest.raises(RequestError, match="no request of these runs"):
        media.read("0" * 64)
    first, _ = answers_table(tables, tasks["hire_gender:talk"])
    second, _ = answers_table(tables, tasks["hire_gender:talk@turn=2"])
    assert second["before"].to_pylist() == first["text"].to_pylist()
    assert first["before"].null_count == first["sound"].null_count == len(first)
    document = build([run], tmp_path / "built")[0]["runs"][0]
    told = {task["name"]: task["before"] for task in document["tasks"]}
    assert told["hire_gender:talk@turn=2"] == ["{text}"]
    assert told["hire_gender:plain"] == []
