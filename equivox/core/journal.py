"""A journal: a file of JSON lines that grows at its end, each line with its checksum.

A line is handed to the operating system at once: a kill of the process loses nothing. Against a loss of power a thread
flushes the journal to disk, at most `sync_seconds` after a line; the writer does not wait for it. Runs store responses
and annotations this way, and the construction of corpora stores the answers of models.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from equivox.core.files import WRITTEN, damaged, refused


class Journal:
    """The end of a journal, where records are added; the file is made with the first record.

    With `new` the file must not be there yet. Otherwise records follow those in it, and half a line that a kill left at
    its end goes away. Only one process may append; any number may read meanwhile.
    """

    def __init__(self, path: Path, *, new: bool = False, sync_seconds: float = 1.0) -> None:
        self.path = path
        self.size = 0
        """The size of the file in bytes, 0 before the first record."""
        self._new, self._sync_seconds = new, sync_seconds
        self._descriptor: int | None = None
        self._lock = threading.Lock()
        """Held while the file is flushed, so that it is not closed meanwhile."""
        self._timer: threading.Timer | None = None
        """The thread that flushes what was written; None if nothing waits for a flush."""
        self._error: OSError | None = None
        """What the disk said to the last flush, for the next record."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Store one record: a kill of the process after this returns does not lose it.

        Raises StorageError when the disk refuses; what was stored before is whole.
        """
        text = to_json(record)
        line = b"%08x %b\n" % (zlib.crc32(text), text)
        try:
            descriptor = self._open()
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            except OSError:
                os.ftruncate(descriptor, self.size)
                raise
            self.size += len(line)
            if self._error is not None:
                raise self._error
        except OSError as error:
            raise refused(self.path, error) from error
        if self._timer is None:
            self._timer = threading.Timer(self._sync_seconds, self._flush)
            self._timer.name, self._timer.daemon = "equivox-journal", True
            self._timer.start()

    def _open(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            WRITTEN.add(self.path)
            how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | (os.O_EXCL if self._new else 0)
            self._descriptor = os.open(self.path, how, 0o666)
            # Half a line that a kill left at the end is cut off.
            self.size = self.path.read_bytes().rfind(b"\n") + 1
            os.ftruncate(self._descriptor, self.size)
        return self._descriptor

    def _flush(self) -> None:
        with self._lock:
            # What is written from here on asks for a flush of its own.
            self._timer = None
            try:
                if self._descriptor is not None:
                    os.fsync(self._descriptor)
            except OSError as error:
                self._error = error

    def close(self, *, flush: bool = True) -> None:
        """Close the file; with `flush`, first see that it is on disk. StorageError when the disk refuses.

        A flush that has begun is ended first.
        """
        if (timer := self._timer) is not None:
            timer.cancel()
            timer.join()
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            self._timer = self._error = None
        if descriptor is not None:
            try:
                if flush:
                    os.fsync(descriptor)
            except OSError as error:
                raise refused(self.path, error) from error
            finally:
                os.close(descriptor)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Return the records of a journal; a last line that a kill cut short is not one.

    Raises DamageError for a line that was changed, and FileNotFoundError if there is no journal.
    """
    records = []
    # After a loss of power the end of a file may be there in length alone.
    *lines, rest = path.read_bytes().rstrip(b"\0").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if (text := _text_of(line)) is None:
            raise damaged(path, f"line {number} does not fit its checksum")
        records.append(json.loads(text))
    # A kill cuts a line short; it leaves no other byte where the line ends.
    if _text_of(rest[:-1]) is not None:
        raise damaged(path, f"line {len(lines) + 1} does not end")
    return records


def _text_of(line: bytes) -> bytes | None:
    """Return the text of a line; None if it does not fit the line's checksum."""
    checksum, _, text = line.partition(b" ")
    return text if checksum == b"%08x" % zlib.crc32(text) else None
