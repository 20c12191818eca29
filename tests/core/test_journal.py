"""The journal: what was added is there, half a line is not, and a changed line is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from equivox.core.errors import DamageError, StorageError
from equivox.core.files import WRITTEN
from equivox.core.journal import Journal, read_journal


def test_records_follow_those_of_a_process_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "below" / "a.jsonl"
    killed = Journal(path)
    assert killed.size == 0
    for number in range(2):
        killed.append({"n": number, "text": "ä\n"})
        assert [record["n"] for record in read_journal(path)] == list(range(number + 1))
    whole = path.read_bytes()
    for rest in (b"", b"0000", b'00000000 {"n": 2', bytes(512)):
        path.write_bytes(whole + rest)
        assert [record["n"] for record in read_journal(path)] == [0, 1]
        again = Journal(path)
        again.append({"n": 2})
        again.close()
        assert again.size == path.stat().st_size
        assert read_journal(path) == [{"n": 0, "text": "ä\n"}, {"n": 1, "text": "ä\n"}, {"n": 2}]
    killed.close()
    # An interrupt says which files there are.
    assert path in WRITTEN


def test_without_a_record_there_is_no_file(tmp_path: Path) -> None:
    Journal(tmp_path / "a.jsonl").close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        read_journal(tmp_path / "a.jsonl")


def test_a_change_is_named_and_a_cut_is_none(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.jsonl")
    for name in ("one", "two"):
        journal.append({"name": name})
    journal.close()
    whole = journal.path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(1, len(whole) - first):
        journal.path.write_bytes(whole[:-cut])
        assert read_journal(journal.path) == [{"name": "one"}]
    ends = [(whole[:-1] + bytes([whole[-1] ^ 1 << bit]), "line 2 does not end") for bit in range(8)]
    for changed, words in ((whole.replace(b"two", b"too"), "line 2 does not fit its checksum"), *ends):
        journal.path.write_bytes(changed)
        with pytest.raises(DamageError, match=words):
            read_journal(journal.path)


def test_a_new_journal_does_not_go_on_with_another(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(StorageError, match="File exists"):
        Journal(tmp_path / "a.jsonl", new=True).append({})


def test_closing_flushes_to_the_disk_unless_it_is_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    for options, n in (({}, 1), ({"flush": True}, 2), ({"flush": False}, 2)):
        journal = Journal(tmp_path / "a.jsonl", sync_seconds=60)
        journal.append({})
        journal.close(**options)
        assert len(flushed) == n
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(flushed[-1])


def test_the_last_record_reaches_the_disk_though_no_other_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.set())
    journal = Journal(tmp_path / "a.jsonl", sync_seconds=0.01)
    for number in range(2):
        flushed.clear()
        journal.append({"n": number})
        assert flushed.wait(10)
    journal.close(flush=False)


class Timed:
    """A timer whose time comes when the test says so."""

    made: ClassVar[list[Timed]] = []
    daemon = started = cancelled = joined = False

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self.seconds, self.function = seconds, function
        self.made.append(self)

    def start(self) -> None:
        self.started = True

    def cancel(self) -> None:
        self.cancelled = True

    def join(self) -> None:
        self.joined = self.cancelled


def test_one_flush_is_for_all_that_was_written_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(Timed, "made", made := list[Timed]())
    monkeypatch.setattr(threading, "Timer", Timed)
    monkeypatch.setattr(os, "fsync", flushed.append)
    journal = Journal(tmp_path / "a.jsonl", sync_seconds=7.0)
    for number in range(3):
        journal.append({"n": number})
    assert [(timer.seconds, timer.started, timer.daemon) for timer in made] == [(7.0, True, True)]
    made[0].function()
    assert len(flushed) == 1
    journal.append({"n": 3})
    assert len(made) == 2 and not made[1].cancelled
    journal.close(flush=False)
    made[1].function()  # its time came when the file was closed already
    assert made[1].cancelled and made[1].joined and len(flushed) == 1


def test_no_thread_outlives_a_journal(tmp_path: Path) -> None:
    before = threading.active_count()
    journal = Journal(tmp_path / "a.jsonl", sync_seconds=600.0)
    journal.append({"n": 1})
    assert threading.active_count() == before + 1
    journal.close()
    assert threading.active_count() == before


def test_a_disk_that_refuses_a_flush_stops_the_next_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Timed, "made", made := list[Timed]())
    monkeypatch.setattr(threading, "Timer", Timed)
    monkeypatch.setattr(os, "fsync", refuse)
    journal = Journal(tmp_path / "a.jsonl")
    journal.append({"n": 0})
    made[0].function()
    for act in (lambda: journal.append({"n": 1}), journal.close):
        with pytest.raises(StorageError, match="Input/output error"):
            act()
    assert read_journal(journal.path)[0] == {"n": 0}


def test_a_disk_that_refuses_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, write = Journal(tmp_path / "a.jsonl"), os.write
    journal.append({"n": 1})

    def torn(file: int, data: memoryview) -> int:
        if len(data) < 12:
            raise OSError(28, "No space left on device")
        return write(file, data[: len(data) - 5])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", torn)
        with pytest.raises(StorageError, match="No space left"):
            journal.append({"n": 2, "text": "long enough for two writes"})
    assert read_journal(journal.path) == [{"n": 1}]
    journal.append({"n": 3})
    journal.close()
    assert read_journal(journal.path) == [{"n": 1}, {"n": 3}]
