"""Files of a run that were cut short, changed or exchanged are refused by one line; none changes a number."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from made_requests import sample_spec

from equivox.core.errors import EquivoxError
from equivox.core.files import read_table
from equivox.core.scores import ScoringOptions
from equivox.run.declarations import read_tasks
from equivox.run.live import read_usage
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import execute
from equivox.run.plan import read_plan
from equivox.run.scoring import read_records, read_scores
from equivox.run.store import Store, response_schema, samples_path, stored_annotations, stored_annotator

TASK = "vibe_gender:story"
FLIPS = 450


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, one of whose responses still lies in a journal."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    options = ScoringOptions(n_resamples=99)
    execute(sample_spec("simulated:random", TASK, folder, limit=48, options=options))
    store = Store(folder / "responses", response_schema())
    store.append({**next(store.records()), "thinking": "asked again"})
    return folder


def contents(folder: Path) -> tuple[Any, ...]:
    """Everything that a reader of a run sees."""
    return (
        read_manifest(folder),
        [task.fingerprint for task in read_tasks(folder)],
        read_plan(folder).to_pydict(),
        list(Store(folder / "responses", response_schema()).records()),
        stored_annotations(folder, "rules"),
        stored_annotator(folder, "rules"),
        read_table(samples_path(folder, "rules", TASK)).to_pydict(),
        read_table(samples_path(folder, "rules", TASK)).schema.metadata,
        [score.as_dict() for score in read_scores(folder)],
        read_records(folder, TASK, "values"),
        read_usage(folder),
    )


def files_of(folder: Path) -> list[Path]:
    """The files that a run is read from; CSV tables are for other programs, and the lock is empty."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix in {".json", ".jsonl", ".parquet"})


def test_no_flipped_bit_changes_what_is_read(whole: Path, tmp_path: Path) -> None:
    expected = contents(whole)
    folder = shutil.copytree(whole, tmp_path / "run")
    rng, files = random.Random(905), files_of(folder)
    assert {path.suffix for path in files} == {".json", ".jsonl", ".parquet"}
    refused, silent = 0, []
    for _ in range(FLIPS):
        path = rng.choice(files)
        data = bytearray(path.read_bytes())
        place, bit = rng.randrange(len(data)), rng.randrange(8)
        data[place] ^= 1 << bit
        original = path.read_bytes()
        path.write_bytes(data)
        try:
            if contents(folder) != expected:
                silent.append((path.name, place, bit))
        except EquivoxError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 1000
        path.write_bytes(original)
    assert silent == []
    assert refused > FLIPS / 2


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "without its last bytes": lambda data: data[:-2],
    "noise": lambda data: random.Random(1).randbytes(200),
    "a list": lambda data: b"[]",
    "null": lambda data: b"null",
    "another object": lambda data: b'{"format": 2}',
    "deep": lambda data: b"[" * 100_000,
    "not UTF-8": lambda data: data.replace(b"e", b"\xff"),
}
FILES = ("manifest.json", "tasks.json", "plan.parquet", "scores.json", "responses/shard-000001.parquet",
         "annotations/rules/shard-000001.parquet", "annotations/rules/annotator.json",
         "annotations/rules/samples/vibe_gender-story.parquet", "tables/vibe_gender-story/values.parquet")  # fmt: skip


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_one_line_that_names_it(whole: Path, tmp_path: Path, file: str, damage: str) -> None:
    folder = shutil.copytree(whole, tmp_path / "run")
    (folder / file).write_bytes(DAMAGE[damage]((folder / file).read_bytes()))
    with pytest.raises(EquivoxError) as caught:
        contents(folder)
    message = str(caught.value)
    assert file in message and "\n" not in message and len(message) < 1000


@pytest.mark.parametrize("command", ["status", "score", "report", "compare", "annotate", "leaderboard"])
def test_commands_leave_a_damaged_run_as_it_is(whole: Path, tmp_path: Path, equivox: Cli, command: str) -> None:
    for file in ("responses/shard-000001.parquet", "manifest.json", "tasks.json", "plan.parquet"):
        folder = shutil.copytree(whole, tmp_path / file.replace("/", "-") / "run")
        (folder / file).write_bytes((folder / file).read_bytes()[:-9])
        before = {path: path.read_bytes() for path in files_of(folder)}
        more: dict[str, list[object]] = {
            "report": ["-o", tmp_path / "r.html"], "annotate": ["--annotator", "rules"],
            "leaderboard": ["-o", tmp_path / "b"],
        }  # fmt: skip
        target = folder.parent if command == "leaderboard" else folder
        code, _, err = equivox(command, target, *more.get(command, []))
        if (command, file) == ("score", "plan.parquet") or (file != "manifest.json" and code == 0):
            assert command not in {"status", "annotate"}
            continue  # scores are computed from samples; what else is shown says of itself that it cannot be read
        # A line says that the files changed, and one ends the command.
        assert code in {1, 2} and err.count("\n") <= 2, (file, code, err)
        assert {path: path.read_bytes() for path in files_of(folder)} == before


@pytest.mark.parametrize("file", ["manifest.json", "tasks.json", "plan.parquet", "responses/shard-000001.parquet"])
def test_what_a_damaged_file_says_to_do_is_right(whole: Path, tmp_path: Path, equivox: Cli, file: str) -> None:
    folder = shutil.copytree(whole, tmp_path / "run")
    command = ("run", "simulated:random", TASK, "--data", "sample", "--limit", 48, "--scoring", "n_resamples=99")
    (folder / file).write_bytes(b"")
    err = equivox.refused(*command, "--output", folder)
    assert f"{file} is damaged" in err
    if "with another folder" in err:
        folder = tmp_path / "another"
    else:
        assert "delete it and give the run's command again" in err
        (folder / file).unlink()
    assert equivox(*command, "--output", folder)[0] == 0
    assert equivox("verify", folder)[0] == 0


def test_a_foreign_file_among_the_shards_is_named(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "run")
    (folder / "responses" / "shard-foo.parquet").write_bytes(b"")
    with pytest.raises(EquivoxError, match=r"shard-foo\.parquet"):
        contents(folder)


def test_a_document_with_other_fields_is_foreign(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["identity"]["seed"] = 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(EquivoxError, match=r"manifest\.json is damaged .*checksum"):
        contents(folder)
