"""`equivox verify`: an intact run is verified, every single change is found and named, and the run is never written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import Cli
from equivox.compare.believing import believe

import equivox as ex
from equivox.core.annotation import AnnotatorIdentity, Job
from equivox.core.errors import UsageError
from equivox.core.files import read_document, read_table, write_document, write_table
from equivox.core.scores import ScoringOptions
from equivox.core.segments import Segment
from equivox.run.manifest import hashes_of, read_manifest, state_hashes, write_manifest
from equivox.run.recomputing import Compared, Replayed, equal
from equivox.run.scoring import read_scores
from equivox.run.store import Store, annotation_schema, response_schema, stored_annotations
from equivox.run.verifying import Verification, verify

TASK = "vibe_gender:advisory"
SHARD = "responses/shard-000001.parquet"
ANNOTATIONS = "annotations/rules/shard-000001.parquet"
SAMPLES = "annotations/rules/samples/vibe_gender-advisory.parquet"
FEW = ScoringOptions(n_resamples=99)
VERIFIED, IN_PART, DIFFERS = "verified", "verified in part", "differs"
INTACT = {
    "vibe": ("simulated:planted,shift=0.3,refusal=0.05,fail=0.02", "vibe_gender:advisory,vibe_gender:casting"),
    "spoken_stereoset": ("simulated:biased", "spoken_stereoset_orders:gender"),
    "genres": ("simulated:biased", "genres_standin:ar"),
    "badf": ("simulated:biased", "badf_two:gender"),
}


def measured(folder: Path, model: str, tasks: str, **more: Any) -> Path:
    return ex.measure(model, tasks, output=folder, data="sample", options=FEW, **more).folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("verify") / "run", "simulated:planted,shift=0.4", TASK, limit=48)


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The size and the times of change of everything in a folder, the folder itself included."""
    paths = [folder, *folder.rglob("*")]
    return {str(path): (s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path in paths for s in [path.stat()]}


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a document and give it the checksum that fits."""
    document = read_document(path)
    change(document)
    write_document(path, document)


def flip(path: Path) -> None:
    """Change a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def told(found: Verification) -> set[tuple[str, str]]:
    return {(entry.where, entry.what) for entry in found.differences}


@pytest.mark.parametrize("benchmark", INTACT)
def test_an_intact_run_is_verified_and_not_written(benchmark: str, tmp_path: Path, equivox: Cli) -> None:
    model, tasks = INTACT[benchmark]
    folder = measured(tmp_path / "run", model, tasks)
    (folder / ".lock").unlink()
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = listing(folder)
    code, out, err = equivox("verify", folder, "--data", "sample", "--json", tmp_path / "found.json", "--quiet")
    assert (code, err) == (0, ""), out
    assert listing(folder) == before
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    found = json.loads((tmp_path / "found.json").read_text())
    assert out.startswith(f"verified: {len(hashes_of(folder))} files and {found['numbers']:,} numbers\n")
    assert (found["outcome"], found["exit_code"], found["differences"]) == ("verified", 0, [])
    assert "requests were made again from the data" in out
    # Every score has some 30 fields with a number, and the numbers of tables and samples are compared as well.
    assert found["numbers"] > 10 * len(read_document(folder / "scores.json")["scores"])
    assert not list(folder.rglob("*verify*"))


def test_the_hashes_are_those_of_sha256sum(whole: Path) -> None:
    import hashlib

    stated = read_manifest(whole)["files"]
    there = {p.relative_to(whole).as_posix() for p in whole.rglob("*") if p.is_file() and not p.name.startswith(".")}
    assert set(stated) == there - {"manifest.json"}
    for name, value in stated.items():
        assert hashlib.sha256((whole / name).read_bytes()).hexdigest() == value


Change = Callable[[Path], Any]


def edited(file: str, change: Callable[[dict[str, Any]], Any]) -> Change:
    """Change a document of a run and give it the checksum that fits."""
    return lambda run: changed(run / file, change)


def rewritten(file: str, change: Callable[[list[dict[str, Any]]], Any]) -> Change:
    """Change the records of a shard and write it with the checksums that fit."""
    schema = response_schema() if file.startswith("responses") else annotation_schema()

    def write(run: Path) -> None:
        records = read_table(run / file).to_pylist()
        change(records)
        write_table(run / file, pa.Table.from_pylist(records, schema=schema))

    return write


def responded(**entries: Any) -> Change:
    """Store another response: to the first request, or to another one with a `key`."""

    def store(run: Path) -> None:
        with Store(run / "responses", response_schema()) as responses:
            responses.append({**next(responses.records()), **entries})
            responses.flush()

    return store


def recoloured(file: str, name: str, change: Callable[[list[Any]], list[Any]]) -> Change:
    """Change a column of labels in a table of a run."""

    def write(run: Path) -> None:
        table = read_table(run / file)
        cells = pa.array(change(table[name].to_pylist())).dictionary_encode()
        write_table(run / file, table.set_column(table.schema.get_field_index(name), name, cells))

    return write


def edit_table(run: Path) -> None:
    path = run / "tables/vibe_gender-advisory/values.csv"
    path.write_text(path.read_text().replace("1", "2", 1))


edit_score = edited("scores.json", lambda document: document["scores"][0].update(estimate=5.44))
drop_response = rewritten(SHARD, lambda records: records.pop(3))
SECOND = "responses/shard-000002.parquet"

CHANGES: dict[str, tuple[Change, str, str]] = {
    "a score": (edit_score, "scores.json", "estimate"),
    "a response": (
        rewritten(SHARD, lambda records: records[0].update(text="I would suggest knitting, gardening and baking.")),
        SHARD,
        "no annotation of this text",
    ),
    "an annotation": (
        rewritten(ANNOTATIONS, lambda records: records[0]["values"][0].update(value="falconry")),
        ANNOTATIONS,
        "hobby=falconry",
    ),
    "the groups of samples": (recoloured(SAMPLES, "group", lambda own: own[::-1]), SAMPLES, "group, row 1"),
    "a table": (edit_table, "tables/vibe_gender-advisory/values.csv", "the file"),
    "the options": (
        edited("scores.json", lambda document: document["options"].update(seed=7)), "scores.json", "ci"
    ),
    "a response removed": (drop_response, SHARD, "1 response(s) that rules annotated are not in the run"),
    "a response missing": (drop_response, SHARD, "1 planned request(s) without a response"),
    "an answer that is hidden": (
        responded(text=None, error="timeout"), SECOND, "1 request(s) with a failure that was stored after an answer"
    ),
    "a response too many": (responded(key="f" * 32), SECOND, "not in the plan: ffffffffffff"),
    "a second answer": (responded(text="chess"), SECOND, "1 request(s) with several different"),
    "a task": (
        edited("tasks.json", lambda document: document["tasks"][0].update(version=9)),
        "tasks.json",
        "fingerprint of vibe_gender:advisory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("restated", [False, True], ids=["", "with its hash stated anew"])
def test_each_single_change_is_found_and_named(run: Path, equivox: Cli, change: str, restated: bool) -> None:
    make, file, words = CHANGES[change]
    make(run)
    if restated:
        state_hashes(run)
    before = listing(run)
    code, out, _ = equivox("verify", run, "--quiet")
    assert code == 1 and out.startswith("differs: "), out
    assert words in out
    assert (f"{file}" in out.split("Stated and recomputed")[0].split("Problems")[0]) is not restated
    assert listing(run) == before


def _manifest(**entries: Any) -> Change:
    """Change the manifest of a run: its own entries, or with `identity` and `model` entries of these."""

    def change(document: dict[str, Any]) -> None:
        identity, model = (entries.get(name, {}) for name in ("identity", "model"))
        document["identity"] |= identity
        document["identity"]["model"] |= model
        document |= {name: value for name, value in entries.items() if name not in ("identity", "model")}

    return edited("manifest.json", change)


TOLD: dict[str, tuple[Change, str, str, str]] = {
    # What is changed: what is told of it, where it is told, and what comes out.
    "another seed": (_manifest(identity={"seed": 5}), "problems", "seeds that the stated seed 5 does not", DIFFERS),
    "a lower limit": (_manifest(identity={"limit": 1}), "problems", "where the limit is stated as 1", DIFFERS),
    "a task that no request is of": (
        edited("manifest.json", lambda document: document["identity"]["tasks"].update({"a:b": "0"})),
        "problems", "the manifest and the plan do not have the same tasks: a:b", DIFFERS,
    ),
    "another annotator's name": (
        edited("annotations/rules/annotator.json", lambda document: document.update(name="judge")),
        "problems", "annotations/rules is by 'judge', as its", DIFFERS,
    ),
    "intervals of another level": (
        edited("scores.json", lambda document: document["options"].update(confidence=0.5)),
        "problems", "the options in scores.json are none", DIFFERS,
    ),
    "impossible options": (
        edited("scores.json", lambda document: document["options"].update(n_resamples=-1)),
        "problems", "the options in scores.json are none", DIFFERS,
    ),
    "no scores": (
        lambda run: (run / "scores.json").unlink(), "problems", "has no scores by its annotator rules", DIFFERS
    ),
    "scores of nobody": (
        lambda run: shutil.copyfile(run / "scores.json", run / "scores-judge.json") and state_hashes(run),
        "problems", "scores-judge.json is of an annotator whose annotations are not in the run", DIFFERS,
    ),
    "another model's name": (
        _manifest(model={"model": "a better one"}),
        "not_verified", "stated name and settings do not give its stated digest", IN_PART,
    ),
    "settings that are left out": (
        _manifest(model={"model": "a better one", "settings": {"api": "(left out)"}}),
        "remarks", "some settings are left out", VERIFIED,
    ),
    "another annotation scheme": (
        lambda run: changed(run / "scores.json", lambda own: own["schemes"].update({TASK: "0" * 64}))
        or state_hashes(run),
        "not_verified", "the annotation of vibe_gender:advisory has changed since", IN_PART,
    ),
    "an encoder that is not there": (
        lambda run: changed(
            run / "scores.json", lambda own: own["options"].update(merge="embedding", encoder="no/such-encoder")
        ) or state_hashes(run),
        "not_verified", "all numbers by rules: ", IN_PART,
    ),
    "what cannot be known": (
        _manifest(created="1999-01-01", served_as=["gpt"]),
        "remarks", "when and where it was made, by which names a server answered", VERIFIED,
    ),
    "another version of a library": (
        _manifest(environment={"libraries": {"numpy": "1.0"}}),
        "remarks", "the run was made with numpy 1.0 (here ", VERIFIED,
    ),
    "annotations without scores": (
        lambda run: _annotated_like_rules(run, "other") or state_hashes(run),
        "remarks", "the annotations by other have no scores", VERIFIED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", TOLD)
def test_what_is_wrong_or_cannot_be_known_is_told_once(run: Path, change: str) -> None:
    make, field, words, outcome = TOLD[change]
    assert not any(words in line for line in getattr(verify(run), field)) or change == "what cannot be known"
    make(run)
    found = verify(run)
    assert [words in line for line in getattr(found, field)].count(True) == 1, found
    assert found.outcome == outcome
    assert change != "another annotation scheme" or found.numbers == 0


def test_a_task_that_means_something_else_since_is_not_called_changed(run: Path) -> None:
    _manifest(equivox="0.0.1", identity={"tasks": {TASK: "0" * 64}})(run)
    found = verify(run)
    assert any("equivox 0.0.1 made the run," in line for line in found.not_verified), found.not_verified
    assert not any("fingerprint" in difference.what for difference in found.differences)


def test_a_manifest_that_names_no_library_is_no_remark_and_no_crash(run: Path) -> None:
    _manifest(environment={})(run)
    assert not any("the run was made with" in line for line in verify(run).remarks)


def test_missing_answers_that_are_annotated_and_scored_anew_are_seen(run: Path) -> None:
    from equivox.run.pipeline import annotate_run, rescore

    drop_response(run)
    annotate_run(run, "rules")
    rescore(run)
    assert any(problem.startswith("1 planned request(s) without a response") for problem in verify(run).problems)
    with pytest.raises(UsageError, match="the run's command sends missing requests"):  # scoring would not help
        believe(run)


def test_a_score_is_told_as_stated_and_as_recomputed(run: Path, whole: Path, equivox: Cli) -> None:
    true = read_document(whole / "scores.json")["scores"][0]["estimate"]
    edit_score(run)
    _, out, _ = equivox("verify", run, "--quiet")
    (line,) = [line for line in out.splitlines() if "5.44" in line]
    assert line.split()[-2:] == ["5.44", repr(true)] and line.startswith(TASK)
    found = verify(run)
    assert found.wrong_files == {"scores.json": "changed since the run was scored"}
    assert len(found.differences) == 1


def test_files_that_are_added_missing_or_damaged_are_named(run: Path) -> None:
    (run / "notes.txt").write_text("hello")
    (run / ".DS_Store").write_text("")
    (run / "responses" / ".writing-shard-000009.parquet").write_text("half")
    (run / "tables/vibe_gender-advisory/values.csv").unlink()
    flip(run / "plan.parquet")
    found = verify(run)
    assert found.wrong_files.pop("plan.parquet").startswith("damaged: ")
    assert found.wrong_files == {
        "notes.txt": "not listed in the manifest",
        "tables/vibe_gender-advisory/values.csv": "missing",
    }
    assert found.not_verified == ["numbers: not all could be recomputed, because a file is damaged"]
    assert found.outcome == "differs"


@pytest.mark.parametrize(
    "file",
    ["manifest.json", "tasks.json", SHARD, ANNOTATIONS, SAMPLES, "scores.json", "annotations/rules/annotator.json"],
)
def test_a_flipped_byte_is_one_line_that_names_the_file(run: Path, equivox: Cli, file: str) -> None:
    flip(run / file)
    code, out, err = equivox("verify", run, "--quiet")
    assert (code, err) == (1, "")
    assert out.startswith("differs: 1 file")
    assert sum(file in line for line in out.splitlines()) == 1, out


def test_every_damaged_file_is_named_though_its_hash_is_stated_anew(run: Path) -> None:
    damaged = [SHARD, ANNOTATIONS]
    for file in damaged:
        flip(run / file)
    state_hashes(run)
    found = verify(run).wrong_files
    assert set(found) == set(damaged) and all(why.startswith("damaged: ") for why in found.values())


def test_annotations_of_an_earlier_version_may_stay_in_the_store(run: Path) -> None:
    with Store(run / "annotations" / "rules", annotation_schema()) as store:
        store.append({**next(store.records()), "key": "e" * 32})
    state_hashes(run)
    found = verify(run)
    assert (found.outcome, found.problems) == ("verified", [])


def test_a_file_beside_the_run_is_no_doubt_about_its_numbers(run: Path) -> None:
    (run / "notes.txt").write_text("hello")
    found = verify(run)
    assert (found.outcome, found.doubt) == ("differs", None)
    edit_table(run)
    assert str(verify(run).doubt).startswith("tables/vibe_gender-advisory/values.csv: changed")


@pytest.mark.parametrize("file", ["tasks.json", "plan.parquet", "scores.json", "annotations/rules/annotator.json"])
def test_a_file_that_is_not_there_is_named(run: Path, file: str) -> None:
    (run / file).unlink()
    found = verify(run)
    assert found.wrong_files[file] == "missing"
    assert found.outcome == "differs"


def test_documents_of_another_kind_are_no_traceback(run: Path) -> None:
    for file in ("scores.json", "tasks.json", "annotations/rules/annotator.json"):
        kept = (run / file).read_bytes()
        write_document(run / file, {"hello": "world"})
        assert verify(run).outcome == "differs", file
        (run / file).write_bytes(kept)
    assert verify(run).outcome == "verified"


def test_a_run_without_hashes_is_recomputed_and_says_so(run: Path, equivox: Cli) -> None:
    manifest = read_manifest(run)
    del manifest["files"]
    write_manifest(run, manifest)
    code, out, _ = equivox("verify", run, "--quiet")
    assert code == 1
    assert out.startswith("verified in part: 0 files and ") and "the manifest states no hashes" in out
    edit_score(run)
    code, out, _ = equivox("verify", run, "--quiet")
    assert code == 1 and "5.44" in out


def test_a_run_that_is_under_way_is_refused(run: Path, equivox: Cli) -> None:
    from equivox.core.progress import Event, no_progress
    from equivox.run.live import noting

    with pytest.raises(RuntimeError), noting(run, no_progress) as note:
        note(Event("generate", 4, 9))
        raise RuntimeError
    (run / "scores.json").unlink()
    shutil.rmtree(run / "annotations")
    for command in ("verify", "score", "compare"):
        code, out, err = equivox(command, run)
        assert (code, out) == (2, "")
        assert "is running or was stopped (generate: 4 of 9); wait, or repeat its command to resume" in err


def test_bad_requests(run: Path, tmp_path: Path, equivox: Cli) -> None:
    for arguments, words in (
        ([tmp_path / "nowhere"], "is not a run"),
        ([run, "--json", run / "found.json"], "and would change it"),
        ([run, "--json", tmp_path], "is a folder"),
        ([run, "--data", tmp_path], "holds no built corpus crema_d"),
    ):
        assert words in equivox.refused("verify", *arguments)


def test_a_plan_that_the_data_do_not_give_is_found_with_the_data(run: Path) -> None:
    # The groups are exchanged in the plan, and everything after it is made again: only the data can tell.
    other = {"female": "male", "male": "female"}
    recoloured("plan.parquet", "group", lambda own: [other[group] for group in own])(run)
    from equivox.run.pipeline import annotate_run

    annotate_run(run, "rules", FEW)
    found = verify(run)
    assert found.outcome == "verified"
    assert any("not checked against the data" in line for line in found.remarks)
    found = verify(run, data="sample")
    assert found.outcome == "differs"
    assert len(found.differences) == 48
    assert all(entry.what.endswith(": group") and entry.where == TASK for entry in found.differences)


def test_names_of_tasks_do_not_lead_out_of_a_run(run: Path, equivox: Cli) -> None:
    changed(run / "tasks.json", lambda document: document["tasks"][0].update(name="../../../outside"))
    found = verify(run)
    assert found.wrong_files["tasks.json"].startswith("damaged: no file can be called after its task '../")
    code, out, err = equivox("score", run)
    assert code != 0 and out == "" and "no file can be called after its task" in err
    state_hashes(run)
    assert verify(run).outcome == "differs"


def test_other_annotators_and_a_panel_are_verified(run: Path) -> None:
    from equivox.run.declarations import read_tasks
    from equivox.run.panel import score_panel
    from equivox.run.scoring import score

    # Two annotators that agree with the rules, but for one value.
    for name in ("first", "second"):
        _annotated_like_rules(run, name)
        score(run, read_tasks(run), name, FEW)
    score_panel(run, read_tasks(run), ["rules", "first", "second"], FEW)
    found = verify(run)
    assert found.outcome == "verified", (found.problems, found.differences[:3], found.not_verified)
    assert {"scores-panel.json", "scores-first.json"} <= set(read_manifest(run)["files"])
    assert any("the annotations by first were taken as they are stored" in line for line in found.remarks)
    path = run / "annotations/panel/samples/vibe_gender-advisory.parquet"
    table = read_table(path)
    names = [name for name in table.column_names if name.startswith("values.") and name.endswith("hobby")]
    lists = pa.array([["falconry"], *table[names[0]].to_pylist()[1:]], pa.list_(pa.string()))
    write_table(path, table.set_column(table.schema.get_field_index(names[0]), names[0], lists))
    state_hashes(run)
    assert {where for where, _ in told(verify(run))} == {path.relative_to(run).as_posix()}


def _annotated_like_rules(run: Path, name: str) -> None:
    """Store annotations of another annotator in its own name, as its records and samples."""
    from contextlib import closing

    from equivox.core.annotation import Annotator, AnnotatorIdentity
    from equivox.run.annotating import annotate
    from equivox.run.declarations import read_tasks

    class Like(Annotator):
        identity = AnnotatorIdentity(name=name, version="1")

        def __init__(self) -> None:
            from equivox.annotate import open_annotator

            self.rules = open_annotator("rules")
            self.annotate = self.rules.annotate  # type: ignore[method-assign]

    with closing(Like()) as annotator:
        annotate(run, read_tasks(run), annotator, engine="simulated")


def test_a_models_stored_outputs_are_read_again(
    tmp_path: Path, chat_server: Callable[[Callable[[dict[str, Any]], tuple[int, str]]], str]
) -> None:
    answer = json.dumps({"refusal": "no", "hobby": ["chess", "rowing", "sailing"]})
    address = chat_server(lambda body: (200, answer if len(str(body)) % 5 else "no JSON"))
    judge = tmp_path / "judge.yaml"
    judge.write_text(
        f"engine: endpoint\nmodel_parameters: {{model_name: judge, base_url: 'http://{address}/v1'}}\nattempts: 1\n"
    )
    folder = measured(tmp_path / "run", "simulated:biased", TASK, limit=24, annotator=str(judge))
    found = verify(folder)
    assert found.outcome == "verified", (found.problems, found.differences[:3], found.not_verified)
    assert (
        "the annotations by judge were read again from its stored outputs; judge was not asked again" in found.remarks
    )
    records = stored_annotations(folder, "judge")
    assert {record["status"] for record in records.values()} >= {"parsed"}

    def change(records: list[dict[str, Any]]) -> None:
        parsed = next(record for record in records if record["status"] == "parsed")
        parsed["values"][0]["value"] = "falconry"

    rewritten("annotations/judge/shard-000001.parquet", change)(folder)
    state_hashes(folder)
    (entry,) = verify(folder).differences
    assert "hobby=falconry" in entry.stated and "falconry" not in entry.recomputed


def test_a_file_that_takes_more_memory_than_any_of_a_run_is_not_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equivox.core.foreign_files.LONGEST_DOCUMENT", (run / "scores.json").stat().st_size - 1)
    found = verify(run)
    assert found.wrong_files["scores.json"].startswith("damaged: it holds")
    assert found.not_verified[-1].startswith("numbers: nothing is recomputed") and found.numbers == 0


def test_scores_that_do_not_say_whom_they_used_are_told_where_there_are_others(run: Path) -> None:
    changed(run / "scores.json", lambda document: document.pop("others"))
    words = "the scores by rules do not say which other annotators they used; none is assumed"
    assert words not in verify(run).remarks
    _annotated_like_rules(run, "first")
    assert words in verify(run).remarks


def test_requests_that_the_data_do_not_give_and_those_that_the_plan_lacks_are_counted(run: Path) -> None:
    table = read_table(run / "plan.parquet")
    others = pa.array(["0" * 32, *table["key"].to_pylist()[1:]])
    write_table(run / "plan.parquet", table.set_column(0, "key", others).slice(0, 46))
    problems = verify(run, data="sample").problems
    assert f"1 request(s) in the plan that these data do not give: {'0' * 12}" in problems
    (lacking,) = [line for line in problems if "the plan lacks" in line]
    assert lacking.startswith("3 request(s) that these data give") and lacking.count(", ") == 2 and "…" not in lacking


def test_what_nobody_annotated_is_failed_and_was_never_tried() -> None:
    job = Job(key="k", response_key="r", task="t", segment=Segment(name="", text="A text.", attributes=()))
    (found,) = Replayed(AnnotatorIdentity(name="judge", version="1"), {}).annotate([job])
    assert (found.status, found.attempts, found.output) == ("failed", 0, "no annotation is stored for this text")


def test_tables_are_compared_by_their_columns_their_rows_and_their_cells() -> None:
    table = pa.table({"a": [1, 2], "b": [0.5, None], "c": ["x", "y"]})
    for other, told, numbers in (
        (table, [], 3),
        (table.drop_columns(["b"]), [("columns", ["a", "b", "c"], ["a", "c"])], 2),
        (table.slice(0, 1), [("rows", 2, 1)], 0),
        (table.set_column(1, "b", pa.array([0.5, 1.0])), [("b, row 2", None, 1.0)], 3),
    ):
        compared = Compared()
        compared.tables("t", table, other)
        assert [(one.what, one.stated, one.recomputed) for one in compared.differences] == told
        assert compared.numbers == numbers


def test_scores_that_nothing_tells_apart_are_compared_in_their_order() -> None:
    score = {"task": "t", "name": "n", "attribute": None, "subset": ""}
    three = [{**score, "value": value} for value in (1.0, 2.0, 3.0)]
    compared = Compared()
    compared.scores("scores.json", three, three)
    assert (compared.differences, compared.numbers) == ([], 3)
    compared.scores("scores.json", three, three[:2])
    assert [(one.what, one.stated, one.recomputed) for one in compared.differences] == [("n", "a score", None)]


def test_numbers_are_equal_within_1e_9_and_missing_ones_are_equal() -> None:
    assert equal(100.0, 100.0 + 5e-8) and not equal(100.0, 100.0 + 1.5e-7)
    assert equal(0.0, 9e-13) and not equal(0.0, 1.5e-12)
    assert equal(float("nan"), None) and not equal(0.0, None) and not equal(0.0, float("nan"))
    compared = Compared()
    compared.values("t", "score", {"a": 1, "b": [1.0, 2.0], "c": None}, {"a": 1, "b": [1.0, 3.0], "c": 0.0})
    assert [(entry.what, entry.stated, entry.recomputed) for entry in compared.differences] == [
        ("score b 2", 2.0, 3.0), ("score c", None, 0.0),
    ]  # fmt: skip
    assert compared.numbers == 2
    # What is yes or no is no number.
    compared.values("t", "score", {"exact": True}, {"exact": True})
    assert compared.numbers == 2
    compared = Compared()
    score = {"task": "t", "name": "n", "attribute": None, "subset": "", "value": 1.0}
    compared.scores("scores.json", [score], [score, {**score, "attribute": "hobby"}])
    assert [(e.what, e.stated, e.recomputed) for e in compared.differences] == [("n hobby", None, "a score")]


def test_a_stopped_run_states_no_hashes(run: Path) -> None:
    from equivox.run.manifest import forget_hashes
    from equivox.run.pipeline import rescore

    forget_hashes(run)
    assert "files" not in read_manifest(run)
    rescore(run, options=FEW)
    assert read_manifest(run)["files"] == hashes_of(run)


def test_a_run_with_another_annotator_of_its_own_is_verified(run: Path, equivox: Cli) -> None:
    _annotated_like_rules(run, "judge")
    before = read_scores(run)
    assert equivox("score", run, "--use", "judge", "--scoring", "n_resamples=99", "--quiet")[0] == 0
    assert read_manifest(run)["files"] == hashes_of(run)
    found = verify(run)
    assert found.outcome == "verified", (found.problems, found.differences[:3], found.not_verified)
    # The annotator before stands beside it, with its scores.
    assert [score.as_dict() for score in read_scores(run, "rules")] == [score.as_dict() for score in before]
