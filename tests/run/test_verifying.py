"""`equivox verify`: an intact run is verified, every single change is found and named, and the run is never written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import Cli

import equivox as ex
from equivox.annotate import open_annotator
from equivox.core.annotation import Annotator, AnnotatorIdentity, Job
from equivox.core.files import read_document, read_table, write_document, write_table
from equivox.core.progress import Event, no_progress
from equivox.core.scores import ScoringOptions
from equivox.core.segments import Segment
from equivox.run.annotating import annotate
from equivox.run.declarations import read_tasks
from equivox.run.live import noting
from equivox.run.manifest import NOT_LISTED, forget_hashes, hashes_of, read_manifest, state_hashes
from equivox.run.panel import score_panel
from equivox.run.pipeline import annotate_run
from equivox.run.scoring import read_scores, score
from equivox.run.store import Store, annotation_schema, response_schema, stored_annotations
from equivox.run.verification import Verification, equal
from equivox.run.verifying import NOT_CHECKED, Replayed, verify

TASK = "vibe_gender:advisory"
SHARD = "responses/shard-000001.parquet"
ANNOTATIONS = "annotations/rules/shard-000001.parquet"
SAMPLES = "annotations/rules/samples/vibe_gender-advisory.parquet"
ANNOTATOR = "annotations/rules/annotator.json"
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


def responded(file: str = "responses", **entries: Any) -> Change:
    """Store another response, or annotation: to the first request, or to another one with a `key`."""

    def store(run: Path) -> None:
        with Store(run / file, response_schema() if file == "responses" else annotation_schema()) as records:
            records.append({**next(records.records()), **entries})
            records.flush()

    return store


def recoloured(file: str, name: str, change: Callable[[list[Any]], list[Any]]) -> Change:
    """Change a column of labels in a table of a run."""

    def write(run: Path) -> None:
        table = read_table(run / file)
        cells = pa.array(change(table[name].to_pylist())).dictionary_encode()
        write_table(run / file, table.set_column(table.schema.get_field_index(name), name, cells))

    return write


edit_score = edited("scores.json", lambda document: document["scores"][0].update(estimate=5.44))
drop_response = rewritten(SHARD, lambda records: records.pop(3))


def edit_table(run: Path) -> None:
    path = run / "tables/vibe_gender-advisory/values.csv"
    path.write_text(path.read_text().replace("1", "2", 1))


def _manifest(**entries: Any) -> Change:
    """Change the manifest of a run: its entries, or with `identity` and `model` entries of these."""

    def change(document: dict[str, Any]) -> None:
        identity, model = (entries.get(name, {}) for name in ("identity", "model"))
        document["identity"] |= identity
        document["identity"]["model"] |= model
        document |= {name: value for name, value in entries.items() if name not in ("identity", "model")}

    return edited("manifest.json", change)


SECOND = "responses/shard-000002.parquet"

CHANGES: dict[str, tuple[Change, str, str]] = {
    # What is changed: the change, its file, and a key word.
    "a score": (edit_score, "scores.json", "estimate"),
    "a response": (rewritten(SHARD, lambda records: records[0].update(text="I suggest knitting.")), SHARD, "status"),
    "an annotation": (
        rewritten(ANNOTATIONS, lambda records: records[0]["values"][0].update(value="polo")), ANNOTATIONS, "polo"
    ),
    "the groups of samples": (recoloured(SAMPLES, "group", lambda own: own[::-1]), SAMPLES, "group 1"),
    "a table": (edit_table, "tables/vibe_gender-advisory/values.csv", "line 2"),
    "the options": (edited("scores.json", lambda document: document["options"].update(seed=7)), "scores.json", "ci"),
    "a response removed": (drop_response, SHARD, "has no response"),
    "a response removed, and all scored anew": (
        lambda run: drop_response(run) or annotate_run(run, "rules", FEW), "", "has no response"
    ),
    "an answer that is hidden": (responded(text=None, error="timeout"), SECOND, "stored after its answer"),
    "a response too many": (responded(key="f" * 32), SECOND, "ffffffffffff is not in the plan"),
    "a second answer": (responded(text="chess"), SECOND, "has several different answers"),
    "a task": (edited("tasks.json", lambda own: own["tasks"][0].update(version=9)), "tasks.json", "fingerprint"),
    "another annotator": (edited(ANNOTATOR, lambda own: own.update(name="judge")), ANNOTATOR, "damaged: it is of"),
    "impossible options": (
        edited("scores.json", lambda own: own["options"].update(n_resamples=-1)), "scores.json", "n_resamples"
    ),
    "intervals of another level": (
        edited("scores.json", lambda own: own["options"].update(confidence=0.5)), "scores.json", "confidence"
    ),
    "scores of nobody": (
        lambda run: shutil.copyfile(run / "scores.json", run / "scores-judge.json"), "scores-judge.json", "a file"
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("restated", [False, True], ids=["", "with its hash stated anew"])
def test_each_single_change_is_named(run: Path, equivox: Cli, change: str, restated: bool) -> None:
    make, file, word = CHANGES[change]
    make(run)
    if restated:
        state_hashes(run)
    before = listing(run)
    code, out, _ = equivox("verify", run, "--quiet")
    assert code == 1 and out.startswith("differs: ") and word in out, out
    assert restated or file in out
    assert listing(run) == before


SAID: dict[str, tuple[Change, str, str, str]] = {
    # What is changed: the change, the field that says it once, a key word, and the outcome.
    "no scores": (lambda run: (run / "scores.json").unlink(), "problems", "no scores by its annotator rules", DIFFERS),
    "another model's name": (_manifest(model={"model": "a better one"}), "not_verified", "stated digest", IN_PART),
    "settings that are left out": (
        _manifest(model={"model": "a better one", "settings": {"api": "(left out)"}}), "remarks", "left out", VERIFIED
    ),
    "another annotation scheme": (
        lambda run: changed(run / "scores.json", lambda own: own["schemes"].update({TASK: "0" * 64})),
        "not_verified", "the annotation of vibe_gender:advisory has changed since", IN_PART,
    ),
    "an encoder that is not there": (
        lambda run: changed(
            run / "scores.json", lambda own: own["options"].update(merge="embedding", encoder="no/such-encoder")
        ),
        "not_verified", "all numbers by rules: ", IN_PART,
    ),
    "a task of another version": (
        _manifest(equivox="0.0.1", identity={"tasks": {TASK: "0" * 64}}),
        "not_verified", "equivox 0.0.1 made the run, ", IN_PART,
    ),
    "another version of a library": (
        _manifest(environment={"libraries": {"numpy": "1.0"}}), "remarks", "numpy 1.0 made the run", VERIFIED
    ),
    "no version of a library": (_manifest(environment={}), "remarks", "nothing in a run shows", VERIFIED),
    "annotations without scores": (
        lambda run: _annotated_like_rules(run, "other"), "remarks", "the annotations by other have no scores", VERIFIED
    ),
    "annotations of an earlier version": (
        responded(file="annotations/rules", key="e" * 32), "remarks", "nothing in a run shows", VERIFIED
    ),
    "no hashes": (lambda run: forget_hashes(run), "not_verified", "states no hashes", IN_PART),
}  # fmt: skip


@pytest.mark.parametrize("change", SAID)
def test_what_is_wrong_or_cannot_be_known_is_said_once(run: Path, change: str) -> None:
    make, field, word, outcome = SAID[change]
    make(run)
    if change != "no hashes":
        state_hashes(run)
    found = verify(run)
    assert [word in line for line in getattr(found, field)].count(True) == 1, found
    assert found.outcome == outcome
    assert outcome != IN_PART or "scheme" not in change or found.numbers < 10


def test_what_the_data_do_not_give_is_named_with_the_data(run: Path, whole: Path) -> None:
    # The groups are exchanged in the plan, and everything after it is made again: only the data can tell.
    other = {"female": "male", "male": "female"}
    recoloured("plan.parquet", "group", lambda own: [other[group] for group in own])(run)
    annotate_run(run, "rules", FEW)
    found = verify(run)
    assert (found.outcome, found.remarks[0]) == (VERIFIED, NOT_CHECKED)
    found = verify(run, data="sample")
    assert (found.outcome, len(found.differences)) == (DIFFERS, 48)
    assert all(entry.what.endswith(" group") and entry.where == TASK for entry in found.differences)
    # Another seed, a lower limit, and requests that are not those of the data.
    table = read_table(whole / "plan.parquet")
    others = table.set_column(0, "key", pa.array(["0" * 32, *table["key"].to_pylist()[1:]])).slice(0, 46)
    changes: tuple[tuple[Change, int], ...] = (
        (_manifest(identity={"seed": 5}), 96), (_manifest(identity={"limit": 24}), 24),
        (lambda run: write_table(run / "plan.parquet", others), 4),
    )  # fmt: skip
    for number, (make, n) in enumerate(changes):
        make(copy := shutil.copytree(whole, run.parent / f"copy-{number}"))
        requests = {entry.what.split()[1] for entry in verify(copy, data="sample").differences if entry.where == TASK}
        assert len(requests) == n, number


def test_a_score_is_shown_as_stated_and_as_recomputed(run: Path, whole: Path, equivox: Cli) -> None:
    true = read_document(whole / "scores.json")["scores"][0]["estimate"]
    edit_score(run)
    _, out, _ = equivox("verify", run, "--quiet")
    (line,) = [line for line in out.splitlines() if "5.44" in line]
    assert line.split()[-2:] == ["5.44", repr(true)] and TASK in line
    found = verify(run)
    assert found.wrong_files == {"scores.json": "changed since the run was scored"}
    assert len(found.differences) == 1


def test_files_that_are_added_missing_or_damaged_are_named(run: Path) -> None:
    (run / "notes.txt").write_text("hello")
    # A file beside the run is no doubt about its numbers.
    found = verify(run)
    assert (found.outcome, found.doubt, found.wrong_files) == (DIFFERS, None, {"notes.txt": NOT_LISTED})
    (run / ".DS_Store").write_text("")
    (run / "responses" / ".writing-shard-000009.parquet").write_text("half")
    (run / "tables/vibe_gender-advisory/values.csv").unlink()
    flip(run / "plan.parquet")
    found = verify(run)
    assert found.wrong_files.pop("plan.parquet").startswith("damaged: ")
    assert found.wrong_files == {"notes.txt": NOT_LISTED, "tables/vibe_gender-advisory/values.csv": "missing"}
    assert str(found.doubt).startswith("tables/vibe_gender-advisory/values.csv: missing")
    assert len(found.not_verified) == 1 and found.outcome == DIFFERS


FILES = ["manifest.json", "tasks.json", SHARD, ANNOTATIONS, SAMPLES, "scores.json", ANNOTATOR]


@pytest.mark.parametrize(
    ("file", "restated"),
    [*((file, False) for file in FILES), (SHARD, True), (ANNOTATIONS, True), ("scores.json", True)],
)
def test_a_flipped_byte_is_one_line_that_names_the_file(run: Path, equivox: Cli, file: str, restated: bool) -> None:
    flip(run / file)
    if restated:
        state_hashes(run)
    code, out, err = equivox("verify", run, "--quiet")
    assert (code, err) == (1, "")
    assert out.startswith("differs: 1 file")
    assert sum(f"{file} " in line for line in out.splitlines()) == 1, out


@pytest.mark.parametrize("file", ["tasks.json", "plan.parquet", "scores.json", ANNOTATOR])
def test_a_file_that_is_missing_or_of_another_kind_is_named(run: Path, file: str) -> None:
    (run / file).unlink()
    found = verify(run)
    assert (found.wrong_files[file], found.outcome) == ("missing", DIFFERS)
    if file.endswith(".json"):
        write_document(run / file, {"hello": "world"})
        assert verify(run).outcome == DIFFERS
        state_hashes(run)
        assert verify(run).outcome != VERIFIED


def test_bad_requests(run: Path, tmp_path: Path, equivox: Cli) -> None:
    for arguments, word in (
        ([tmp_path / "nowhere"], "is not a run"),
        ([run, "--json", run / "found.json"], "and would change it"),
        ([run, "--json", tmp_path], "is a folder"),
        ([run, "--data", tmp_path], "holds no built corpus crema_d"),
    ):
        assert word in equivox.refused("verify", *arguments)
    # A run that is under way.
    with pytest.raises(RuntimeError), noting(run, no_progress) as note:
        note(Event("generate", 4, 9))
        raise RuntimeError
    (run / "scores.json").unlink()
    shutil.rmtree(run / "annotations")
    for command in ("verify", "score", "compare"):
        code, out, err = equivox(command, run)
        assert (code, out) == (2, "") and "is running or was stopped (generate: 4 of 9)" in err


def test_a_file_that_takes_more_memory_than_any_of_a_run_is_not_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equivox.core.foreign_files.LONGEST_DOCUMENT", (run / "scores.json").stat().st_size - 1)
    found = verify(run)
    assert found.wrong_files["scores.json"].startswith("damaged: it holds")
    assert found.not_verified[-1].startswith("numbers: nothing is recomputed") and found.numbers == 0


def test_names_of_tasks_do_not_lead_out_of_a_run(run: Path, equivox: Cli) -> None:
    changed(run / "tasks.json", lambda document: document["tasks"][0].update(name="../../../outside"))
    assert "no file can be called after its task '../" in verify(run).wrong_files["tasks.json"]
    code, out, err = equivox("score", run)
    assert code != 0 and out == "" and "no file can be called after its task" in err
    state_hashes(run)
    assert verify(run).outcome == DIFFERS


def test_other_annotators_and_a_panel_are_verified(run: Path) -> None:
    # Two annotators that agree with the rules, but for one value.
    for name in ("first", "second"):
        _annotated_like_rules(run, name)
        score(run, read_tasks(run), name, FEW)
    score_panel(run, read_tasks(run), ["rules", "first", "second"], FEW)
    found = verify(run)
    assert found.outcome == "verified", (found.problems, found.differences[:3], found.not_verified)
    assert {"scores-panel.json", "scores-first.json"} <= set(read_manifest(run)["files"])
    assert any("by first were taken as they are stored" in line for line in found.remarks)
    path = run / "annotations/panel/samples/vibe_gender-advisory.parquet"
    table = read_table(path)
    names = [name for name in table.column_names if name.startswith("values.") and name.endswith("hobby")]
    lists = pa.array([["falconry"], *table[names[0]].to_pylist()[1:]], pa.list_(pa.string()))
    write_table(path, table.set_column(table.schema.get_field_index(names[0]), names[0], lists))
    state_hashes(run)
    assert {entry.where for entry in verify(run).differences} == {path.relative_to(run).as_posix()}


def _annotated_like_rules(run: Path, name: str) -> None:
    """Store annotations of another annotator in its own name, as its records and samples."""

    class Like(Annotator):
        identity = AnnotatorIdentity(name=name, version="1")

        def __init__(self) -> None:
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
    assert any("by judge were read again from its stored outputs" in line for line in found.remarks)
    records = stored_annotations(folder, "judge")
    assert {record["status"] for record in records.values()} >= {"parsed"}

    def change(records: list[dict[str, Any]]) -> None:
        parsed = next(record for record in records if record["status"] == "parsed")
        parsed["values"][0]["value"] = "falconry"

    rewritten("annotations/judge/shard-000001.parquet", change)(folder)
    state_hashes(folder)
    (entry,) = verify(folder).differences
    assert entry.stated == "falconry" != entry.recomputed


def test_a_run_with_another_annotator_of_its_own_is_verified(run: Path, equivox: Cli) -> None:
    _annotated_like_rules(run, "judge")
    before = read_scores(run)
    assert equivox("score", run, "--use", "judge", "--scoring", "n_resamples=99", "--quiet")[0] == 0
    assert read_manifest(run)["files"] == hashes_of(run)
    found = verify(run)
    assert found.outcome == VERIFIED, (found.problems, found.differences[:3], found.not_verified)
    # The annotator before stands beside it, with its scores.
    assert [score.as_dict() for score in read_scores(run, "rules")] == [score.as_dict() for score in before]


def test_a_text_that_nobody_annotated_has_failed() -> None:
    job = Job(key="k", response_key="r", task="t", segment=Segment(name="", text="A text.", attributes=()))
    (found,) = Replayed(AnnotatorIdentity(name="judge", version="1"), {}).annotate([job])
    assert (found.status, found.attempts) == ("failed", 0)


def test_plain_values_are_compared_by_hand() -> None:
    assert equal(100.0, 100.0 + 5e-8) and not equal(100.0, 100.0 + 1.5e-7)
    assert equal(0.0, 9e-13) and not equal(0.0, 1.5e-12)
    assert equal(float("nan"), None) and not equal(0.0, None) and not equal(0.0, float("nan"))
    column = pa.chunked_array([[0.5, None]])
    for stated, recomputed, differing, numbers in (
        ({"a": 1, "b": [1.0, 2.0], "c": None}, {"a": 1, "b": [1.0, 3.0], "c": 0.0}, ["b 2", "c"], 2),
        ({"yes": True, "text": "x"}, {"yes": True, "text": "y"}, ["text"], 0),  # what is yes or no is no number
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, ["a"], 0),
        ({"a": column}, {"a": column}, [], 1),
        ({"a": column}, {"a": pa.chunked_array([[0.5, 1.0]])}, ["a 2"], 1),
        ({"a": column}, {"a": pa.chunked_array([[0.5]])}, ["a"], 0),
    ):
        found = Verification(run=Path())
        found.values("t", "", stated, recomputed)
        assert [entry.what for entry in found.differences] == differing and found.numbers == numbers
