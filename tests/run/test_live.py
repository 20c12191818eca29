"""RUN/live.json: how far a run is, for somebody who looks on from elsewhere."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from equivox.cli import run as command
from equivox.core.errors import RunError
from equivox.core.files import read_document, write_document
from equivox.core.progress import Event, no_progress
from equivox.core.requests import Request
from equivox.engines.function import FunctionEngine
from equivox.run.live import LIVE_FILE, noting, read_live, read_usage
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks


def test_a_later_versions_note_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    waiting = "2 of 4 workers, 1 lost"
    with noting(tmp_path, no_progress, now=lambda: 100.0) as progress:
        progress(Event("generate", 40, 100, 2, waiting))
        known = read_live(tmp_path)
        write_document(tmp_path / LIVE_FILE, read_document(tmp_path / LIVE_FILE) | {"weather": "fine"})
        # As texts: a rate that is not known is NaN, which equals nothing.
        assert known is not None and str(read_live(tmp_path)) == str(known)


def test_the_rate_is_that_of_the_stage(tmp_path: Path) -> None:
    clock = iter([100.0, 101.0, 110.0])
    waiting = "2 of 4 workers, 1 lost"
    with noting(tmp_path, no_progress, now=lambda: next(clock)) as progress:
        progress(Event("generate", 20, 100))
        progress(Event("generate", 25, 100))
        first = read_live(tmp_path)
        progress(Event("generate", 43, 100, 2, waiting))
        second = read_live(tmp_path)
    # A second after the first note nothing is written.
    assert (first.done, first.noted) == (20, 100.0)
    assert math.isnan(first.per_second)
    # 18 in the 9 seconds since the first answers of this start, and 57 are left.
    assert (second.per_second, second.seconds_left) == (2.0, 28.5)
    assert (second.failed, second.waiting) == (2, waiting)
    assert second.age(115.0) == 5.0
    assert second.age(100.0) == 0.0
    assert math.isnan(replace(second, per_second=0.0).seconds_left)
    assert read_live(tmp_path) is None


def test_what_a_killed_start_used_is_counted_by_the_next_one_and_once(tmp_path: Path) -> None:
    def start(until: BaseException | None) -> None:
        with suppress(RunError), noting(tmp_path, no_progress) as progress:
            progress(Event("generate", 40, 100, usage={"requests": 40, "cost": 0.5}))
            if until is not None:
                raise until

    with suppress(KeyboardInterrupt):
        start(KeyboardInterrupt())
    # A start that ends itself counts what it used, so the note says nothing of it; one that is killed cannot.
    stopped = read_document(tmp_path / LIVE_FILE)
    assert (stopped["done"], stopped["usage"]) == (40, {})
    write_document(tmp_path / LIVE_FILE, stopped | {"usage": {"requests": 40, "cost": 0.5, "odd": "x"}})
    start(RunError("the server is gone"))
    start(None)
    assert read_usage(tmp_path) == {"requests": 40, "cost": 0.5}


def test_what_a_killed_annotator_used_is_none_of_the_models(tmp_path: Path) -> None:
    judge = tmp_path / "annotations" / "judge"
    with suppress(RunError), noting(tmp_path, no_progress, annotator="judge") as progress:
        progress(Event("annotate", 40, 100, usage={"requests": 40, "cost": 0.5}))
        raise RunError("the server is gone")
    stopped = read_document(tmp_path / LIVE_FILE) | {"usage": {"requests": 40, "cost": 0.5}}
    for name in ("../../judge", "judge"):
        write_document(tmp_path / LIVE_FILE, stopped | {"annotator": name})
        with noting(tmp_path, no_progress):
            pass
    assert (read_usage(tmp_path), read_usage(judge)) == ({}, {"requests": 40, "cost": 0.5})
    assert [path.name for path in tmp_path.iterdir()] == ["annotations"]


def test_notes_are_two_seconds_apart_and_the_last_one_is_always_made(tmp_path: Path) -> None:
    clock = iter([100.0, 101.9, 102.0, 102.1])
    noted = []
    with noting(tmp_path, no_progress, now=lambda: next(clock)) as progress:
        for done in (1, 2, 3, 4):
            progress(Event("generate", done, 4))
            found = read_live(tmp_path)
            noted.append(found and found.done)
    assert noted == [1, 1, 3, 4]


def test_a_run_that_was_stopped_says_where(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="broke"), noting(tmp_path, no_progress, now=lambda: 5.0) as progress:
        progress(Event("generate", 0, 10))
        progress(Event("generate", 7, 10))
        raise RunError("broke")
    found = read_live(tmp_path)
    assert (found.stage, found.done, found.total) == ("generate", 7, 10)


def test_status_looks_on_while_a_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, seen = tmp_path / "run", []
    # As if it had been killed long ago.
    stopped = {"stage": "generate", "done": 3, "total": 9, "failed": 0, "per_second": 1.5}
    stopped |= {"noted": 0.0, "host": "gpu7", "process": 42}

    def answer(request: Request) -> str:
        while len(seen) < 2:
            assert command(["status", str(folder)]) == 1
            seen.append(capsys.readouterr().out)
            write_document(folder / LIVE_FILE, stopped)
        for part in request.media:
            part.load()
        return "Call me Kim."

    engine = FunctionEngine(answer, name="kim", revision="1")
    tasks = resolve_tasks("vibe_gender:story")
    execute(RunSpec(model="function:kim", tasks=tasks, output=folder, data="sample", limit=4), engine=engine)
    assert "  generate: 0 of " in seen[0]
    assert "Repeat the command that began this run" not in seen[0]
    assert "Repeat the command that began this run to resume it." in seen[1]
    assert not (folder / LIVE_FILE).exists() and command(["status", str(folder)]) == 0
    assert "Give the command" not in capsys.readouterr().out
    # Every request is answered, and the run was stopped before it was scored: while annotating, or after that.
    write_document(folder / LIVE_FILE, stopped)
    assert command(["status", str(folder)]) == 1
    out = capsys.readouterr().out
    (folder / LIVE_FILE).rename(tmp_path / "live.json")
    (folder / "scores.json").unlink()
    assert command(["status", str(folder)]) == 1
    assert all(
        "Repeat the command that began this run to resume it." in told for told in (out, capsys.readouterr().out)
    )
    (tmp_path / "live.json").rename(folder / LIVE_FILE)
    assert "  generate stopped, or hangs: 3 of 9 (noted " in out
    assert "by process 42 on gpu7)" in out
    json.loads((folder / LIVE_FILE).read_text())
