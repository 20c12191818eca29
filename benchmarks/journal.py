"""Cost of storing every record on disk at once: `python -m benchmarks.journal [20000]`.

The same made-up responses are stored by the journal and, in the same run and in turns, by the parquet shards alone.
The difference per record is the journal's cost; the last column is its share of a run at several speeds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equivox.run.store import Store, response_schema

ROUNDS = 5
RATES = (8, 60, 500, 2000)
"""Responses a second: a served model, one GPU, eight GPUs, the most that one driver is asked for."""


class Shards(Store):
    """A store without its journal."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Keep one record in memory until there are enough for a shard."""
        self._buffer.append({name: fit(record.get(name)) for name, fit in self._fits.items()})
        if len(self._buffer) >= self._shard_rows:
            self.flush()

    def flush(self) -> None:
        """Write the records as a shard; the empty journal is there because a store removes it."""
        if self._buffer:
            (self.folder / f"journal-{self._next:06d}.jsonl").touch()
        super().flush()


def seconds(kind: type[Store], records: list[dict[str, Any]]) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "responses"
        folder.mkdir()
        begun = time.perf_counter()
        with kind(folder, response_schema()) as store:
            for record in records:
                store.append(record)
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=int, default=20_000)
    n = parser.parse_args().records
    text = "She is a nurse of thirty-four who studied in the evenings and lives with her brother. " * 12
    records = [
        {"key": f"{number:032x}", "text": text + str(number), "finish_reason": "stop", "prompt_tokens": 80,
         "completion_tokens": 250, "media_items": 1, "media_tokens": 25}
        for number in range(n)
    ]  # fmt: skip
    taken: dict[type[Store], list[float]] = {Store: [], Shards: []}
    for _ in range(ROUNDS):
        for kind, found in taken.items():
            found.append(seconds(kind, records))
    with_journal, without = (1e6 * statistics.median(taken[kind]) / n for kind in (Store, Shards))
    cost = with_journal - without
    print(f"{n:,} responses of {len(text):,} characters, median of {ROUNDS} rounds in turns")
    print(f"with the journal {with_journal:.1f} µs a record, shards alone {without:.1f} µs: {cost:.1f} µs more")
    for rate in RATES:
        print(f"  at {rate:>5,} responses a second: {100 * cost * rate / 1e6:.3f} % of the time")


if __name__ == "__main__":
    main()
