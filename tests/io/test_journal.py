"""The journal: what was added is there, half a line is not, and a changed line is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equivox.core.errors import DamageError, StorageError
from equivox.io.journal import Journal, read_journal


def test_records_follow_those_of_a_process_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.jsonl"
    killed = Journal(path)
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


def test_without_a_record_there_is_no_file(tmp_path: Path) -> None:
    Journal(tmp_path / "a.jsonl").close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        read_journal(tmp_path / "a.jsonl")


def test_a_changed_line_is_told_with_its_number(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.jsonl")
    for name in ("one", "two"):
        journal.append({"name": name})
    journal.close()
    journal.path.write_bytes(journal.path.read_bytes().replace(b"two", b"too"))
    with pytest.raises(DamageError, match="line 2 does not fit its checksum"):
        read_journal(journal.path)


def test_a_changed_end_of_the_last_line_is_no_line_cut_short(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append({"key": "one"})
    journal.close()
    whole = journal.path.read_bytes()
    for cut in range(1, len(whole)):
        journal.path.write_bytes(whole[:-cut])
        assert read_journal(journal.path) == []
    for bit in range(8):
        journal.path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1 << bit]))
        with pytest.raises(DamageError, match="line 1 does not end"):
            read_journal(journal.path)


def test_a_new_journal_does_not_go_on_with_another(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(StorageError, match="File exists"):
        Journal(tmp_path / "a.jsonl", new=True).append({})


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
