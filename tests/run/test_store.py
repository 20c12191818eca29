"""The store: every shard whole or absent, the latest record of a key counts, nothing lost by merging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equivox.core.errors import RunError, StorageError
from equivox.core.files import write_whole
from equivox.run.annotating import count_answered
from equivox.run.store import Store, response_schema


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


def test_some_columns_of_what_is_stored(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema(), shard_rows=2) as store:
        for key, text in (("a", "one"), ("b", None), ("a", "two")):
            store.append(record(key, text))
    table = Store(tmp_path, response_schema()).table(("key", "text"))
    assert table.to_pydict() == {"key": ["a", "b"], "text": ["two", None]}
    assert Store(tmp_path / "nothing", response_schema()).table(("key",)).to_pydict() == {"key": []}


def test_what_is_filled_and_what_has_a_value(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema(), shard_rows=2) as store:
        for key, text in (("a", None), ("b", "words"), ("c", "words"), ("a", "one"), ("c", None)):
            store.append(record(key, text))
    stored = Store(tmp_path, response_schema())
    assert stored.filled("text").to_pydict() == {"key": ["a", "b", "c"], "text": [True, True, False]}
    assert stored.where("text", ["one"])["key"].to_pylist() == ["a"]
    assert stored.where("key", ["a", "z"], ("key", "text")).to_pydict() == {"key": ["a"], "text": ["one"]}
    assert Store(tmp_path / "nothing", response_schema()).filled("text").num_rows == 0


def test_records_of_one_shard_come_after_what_was_appended_before(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema()) as store:
        store.append(record("a", "one"))
        store.append_all([record("a", "two"), record("b", "half \ud83d of a pair")])
        assert store.journals() == []
        store.append(record("b", "three"))
        store.append_all([])
    assert texts(tmp_path) == {"a": "two", "b": "three"}


def test_a_reopened_store_appends_after_what_is_there(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with Store(tmp_path, response_schema()) as store:
            store.append(record("a", text))
    assert texts(tmp_path) == {"a": "second"}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_record_is_stored_when_append_returns(tmp_path: Path) -> None:
    store = Store(tmp_path, response_schema())
    for number in range(3):
        store.append(record(f"k{number}"))
        assert len(texts(tmp_path)) == number + 1
    # The process is killed here: nothing is closed. Another one turns what it left into a shard.
    with Store(tmp_path, response_schema()):
        assert [path.name for path in tmp_path.iterdir()] == ["shard-000001.parquet"]
    assert texts(tmp_path) == {"k0": "words", "k1": "words", "k2": "words"}


def test_a_journal_that_became_a_shard_counts_once(tmp_path: Path) -> None:
    store = Store(tmp_path, response_schema())
    store.append(record("a"))
    (journal,) = store.journals()
    lines = journal.read_bytes()
    store.flush()
    journal.write_bytes(lines)  # killed between the two
    assert texts(tmp_path) == {"a": "words"}
    with Store(tmp_path, response_schema()) as store:
        store.append(record("b"))
    assert texts(tmp_path) == {"a": "words", "b": "words"}


def test_a_shard_is_never_made_again_from_less(tmp_path: Path) -> None:
    store = Store(tmp_path, response_schema())
    store.append(record("a"))
    (journal,) = store.journals()
    first = journal.read_bytes()
    store.append(record("b"))
    store.flush()
    journal.write_bytes(first)  # a loss of power kept the shard, which is flushed, and not the end of the journal
    with Store(tmp_path, response_schema()):
        assert store.journals() == []
    assert texts(tmp_path) == {"a": "words", "b": "words"}


def test_what_stands_in_the_journal_is_later_than_all_shards(tmp_path: Path) -> None:
    with Store(tmp_path, response_schema()) as store:
        store.append_all([record("a", "one"), record("b", "one")])
        store.append(record("a", "two"))
        assert len(store.shards()) == len(store.journals()) == 1
        assert texts(tmp_path) == {"a": "two", "b": "one"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"text": "half \ud83d of a pair"}, {"text": "half \ufffd of a pair"}),
        ({"text": "a\0b\u202e"}, {"text": "a\0b\u202e"}),
        ({"text": 7}, {"text": "7"}),
        ({"text": "x" * 20_000_000}, {"text": "x" * 20_000_000}),
        ({"finish_reason": 3}, {"finish_reason": "3"}),
        ({"prompt_tokens": 10**30}, {"prompt_tokens": None}),
        ({"prompt_tokens": 2**63 - 1}, {"prompt_tokens": 2**63 - 1}),
        ({"prompt_tokens": 2**63}, {"prompt_tokens": None}),
        ({"media_items": 2**31}, {"media_items": 0}),
        ({"completion_tokens": "12"}, {"completion_tokens": None}),
        ({"completion_tokens": float("nan")}, {"completion_tokens": None}),
        ({"thinking": ["a", 1]}, {"thinking": "['a', 1]"}),
        ({"media_items": None}, {"media_items": 0}),
    ],
)
def test_whatever_a_server_sends_is_stored(tmp_path: Path, given: dict[str, Any], stored: dict[str, Any]) -> None:
    with Store(tmp_path, response_schema()) as store:
        store.append(record("a") | given)
        (journaled,) = Store(tmp_path, response_schema()).records()
    (kept,) = Store(tmp_path, response_schema()).records()
    assert kept == journaled
    assert kept | stored == kept


def test_half_a_shard_left_by_a_kill_is_not_read_and_goes_away(tmp_path: Path) -> None:
    leftover = tmp_path / ".writing-shard-000001.parquet"
    leftover.write_bytes(b"PAR1 and then the power went")
    assert texts(tmp_path) == {}
    with Store(tmp_path, response_schema()) as store:
        store.append(record("a"))
    assert not leftover.exists()
    assert texts(tmp_path) == {"a": "words"}


@pytest.mark.parametrize(("rows", "left"), [(32, 32), (33, 1)])
def test_more_than_32_shards_become_one_and_keep_everything(tmp_path: Path, rows: int, left: int) -> None:
    with pytest.raises(KeyboardInterrupt), Store(tmp_path, response_schema(), shard_rows=1) as store:
        for number in range(rows):
            store.append(record(f"k{number}"))
        raise KeyboardInterrupt  # whoever stops a run does not wait for it
    assert len(store.shards()) == rows
    with store:
        pass
    assert len(list(tmp_path.iterdir())) == left
    assert len(texts(tmp_path)) == rows


def test_a_journal_becomes_a_shard_at_its_size_or_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, response_schema(), shard_rows=2)
    store.append(record("a"))
    size = store.journals()[0].stat().st_size
    store.append(record("b"))
    assert (len(store.journals()), len(store.shards())) == (0, 1)
    for most, left in ((size + 1, 1), (size, 0)):
        monkeypatch.setattr("equivox.run.store._JOURNAL_BYTES", most)
        store.append(record("c"))
        assert len(store.journals()) == left
        store.flush()


def test_files_that_are_always_gone_when_they_are_read_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: Path, columns: object) -> None:
        raise FileNotFoundError(path)

    with Store(tmp_path, response_schema()) as store:
        store.append(record("a"))
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr("equivox.run.store.read_table", gone)
    with pytest.raises(StorageError, match="faster than they can be read"):
        store.table(("key",))
    # 0, 10, 20, …, 190 milliseconds: 1.9 seconds in all.
    assert len(slept) == 20 and sum(slept) == pytest.approx(1.9) and slept[1] == 0.01


@pytest.mark.parametrize(("rows", "left"), [(1, 1), (1_025, 3)])
def test_shards_are_merged_if_they_are_more_than_allowed_and_small(tmp_path: Path, rows: int, left: int) -> None:
    with Store(tmp_path, response_schema()) as store:
        for shard in range(3):
            store.append_all([record(f"{shard}/{row}") for row in range(rows)])
        store.compact(above=3)
        assert len(store.shards()) == 3
        store.compact(above=2)
        assert len(store.shards()) == left
    assert len(texts(tmp_path)) == 3 * rows


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
    arguments = ["run", "simulated:random", "vibe_gender:story", "--data", "sample", "--output", str(tmp_path / "run")]
    arguments += ["--scoring", "n_resamples=99"]
    limited = (
        "import resource, sys, datasets, soundfile, pyarrow.parquet\n"
        "import equivox.run.pipeline; from equivox import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        f"sys.exit(cli.run({arguments!r}))"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1 and "nothing half-written" in done.stderr
    assert not list((tmp_path / "run").rglob(".writing-*"))
    again = subprocess.run([sys.executable, "-m", "equivox", *arguments], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr


def test_answers_are_counted_anew_only_when_a_file_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    filled = Store.filled
    monkeypatch.setattr(Store, "filled", lambda store, column: reads.append(column) or filled(store, column))
    assert count_answered(tmp_path) == 0
    with Store(tmp_path / "responses", response_schema()) as store:
        for number, (key, text) in enumerate((("a", "words"), ("b", None), ("b", "words"), ("c", "words"))):
            store.append(record(key, text))
            assert count_answered(tmp_path) == count_answered(tmp_path) == (1, 1, 2, 3)[number]
    assert count_answered(tmp_path) == 3
    # Nothing, each of the four records, and the journal as a shard.
    assert len(reads) == 6
