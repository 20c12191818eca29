"""The store: every shard whole or absent, the latest record of a key counts, nothing lost by merging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equivox.core.errors import RunError, StorageError
from equivox.run.store import Store, response_schema, write_whole


def record(key: str, text: str | None = "words") -> dict[str, object]:
    return {"key": key, "text": text, "media_items": 1}


def texts(folder: Path) -> dict[str, str | None]:
    return {r["key"]: r["text"] for r in Store(folder, response_schema()).records()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    records=st.lists(st.tuples(st.sampled_from("abcdefgh"), st.text(max_size=5)), max_size=30),
    shard_rows=st.integers(1, 7),
    compact=st.booleans(),
)
def test_what_was_appended_last_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, str]], shard_rows: int, compact: bool
) -> None:
    folder = tmp_path_factory.mktemp("store")
    with Store(folder, response_schema(), shard_rows=shard_rows) as store:
        for key, text in records:
            store.append(record(key, text))
        store.flush()
        if compact:
            store.compact(above=0)
    assert texts(folder) == dict(records)
    assert Store(folder, response_schema()).keys() == {key for key, _ in records}


def test_some_columns_of_what_is_stored(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema(), shard_rows=2) as store:
        for key, text in (("a", "one"), ("b", None), ("a", "two")):
            store.append(record(key, text))
    table = Store(tmp_path, response_schema()).table(("key", "text"))
    assert table.to_pydict() == {"key": ["a", "b"], "text": ["two", None]}
    assert Store(tmp_path / "nothing", response_schema()).table(("key",)).to_pydict() == {"key": []}


def test_a_reopened_store_appends_after_what_is_there(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with Store(tmp_path, response_schema()) as store:
            store.append(record("a", text))
    assert texts(tmp_path) == {"a": "second"}
    assert len(list(tmp_path.iterdir())) == 2


def test_records_wait_no_longer_than_asked(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema(), shard_seconds=0.0) as store:
        store.append(record("a"))
        assert texts(tmp_path) == {"a": "words"}


def test_half_a_shard_left_by_a_kill_is_not_read_and_goes_away(tmp_path: Path) -> None:
    leftover = tmp_path / ".writing-shard-000001.parquet"
    leftover.write_bytes(b"PAR1 and then the power went")
    assert texts(tmp_path) == {}
    with Store(tmp_path, response_schema()) as store:
        store.append(record("a"))
    assert not leftover.exists()
    assert texts(tmp_path) == {"a": "words"}


def test_compacting_keeps_everything_and_few_files(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema(), shard_rows=1) as store:
        for number in range(40):
            store.append(record(f"k{number}"))
        store.compact(above=32)
    assert len(list(tmp_path.iterdir())) == 1
    assert len(texts(tmp_path)) == 40


@pytest.mark.parametrize("error", [RunError("the audio did not arrive"), KeyboardInterrupt()])
def test_what_was_answered_before_an_error_is_stored(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), Store(tmp_path, response_schema()) as store:
        store.append(record("a"))
        raise error
    assert texts(tmp_path) == {"a": "words"}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "scores.json"
    target.write_text("old")

    def fails(path: Path) -> None:
        path.write_text("ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left"):
        write_whole(target, fails)
    assert [p.name for p in tmp_path.iterdir()] == ["scores.json"]
    assert target.read_text() == "old"


def test_a_disk_that_refuses_more_bytes_ends_in_one_line_and_the_run_can_go_on(tmp_path: Path) -> None:
    # A real refusal by the kernel: no file of this process may grow beyond a few kilobytes.
    arguments = ["run", "simulated:random", "vibe_gender", "--data", "sample", "--output", str(tmp_path / "run")]
    limited = (
        "import resource, sys, datasets, soundfile, pyarrow.parquet\n"
        "import equivox.run.pipeline; from equivox import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        f"sys.exit(cli.run({arguments!r}))"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1 and "nothing half-written" in done.stderr
    assert not list((tmp_path / "run").rglob(".writing-*"))
    again = subprocess.run([sys.executable, "-m", "equivox", *arguments], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
