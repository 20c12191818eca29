"""A run file with several workers: the same scores, models side by side, and no more workers than there are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import slow_engines
from slow_engines import most_at_once, overlap, spans

from equivox.core.errors import RequestError
from equivox.core.progress import Event
from equivox.engines import Workers
from equivox.report.progress_bars import progress_bars
from equivox.run.reproducing import Finished, run_all
from equivox.run.run_files import open_run_file, settings_of
from equivox.tasks.registry import resolve_tasks

pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

Cli = Callable[..., tuple[int, str, str]]

SIMULATED = """\
models: ["simulated:planted?shift=0.3&refusal=0.05&fail=0.02", simulated:bised, simulated:biased, simulated:oracle]
tasks: [vibe_gender:candidate, vibe_gender:casting]
data: sample
limit: 48
"""
SLOW = """\
models: ["vllm:model_name=a,delay=0.2", "vllm:model_name=b,delay=0.2", "vllm:model_name=broken", "vllm:model_name=c"]
tasks: vibe_gender:candidate
annotator: {reader}
data: sample
limit: 20
"""
READER = "engine: vllm\nmodel_parameters: {model_name: reader}\n"


def run(file: Path, output: Path, workers: int, side_by_side: int = 1) -> dict[str, Finished]:
    settings = settings_of(open_run_file(str(file)), resolve_tasks)
    done = run_all(
        settings, output, lambda _: progress_bars(quiet=True), workers=Workers(workers), side_by_side=side_by_side
    )
    return {one.folder.name: one for one in done}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Finished]]:
    """The runs of the simulated models one after the other, without workers, and their folder."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "mine.yaml").write_text(SIMULATED)
    return folder, run(folder / "mine.yaml", folder, 1)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run file of slow models, whose log is in the folder `log`."""
    monkeypatch.setattr("equivox.engines._one_engine", slow_engines.one_engine)
    monkeypatch.setenv(slow_engines.LOG, str(tmp_path / "log"))
    (tmp_path / "log").mkdir()
    (tmp_path / "reader.yaml").write_text(READER)
    file = tmp_path / "slow.yaml"
    file.write_text(SLOW.format(reader=tmp_path / "reader.yaml"))
    return file


@pytest.mark.long
@pytest.mark.parametrize(("workers", "side_by_side"), [(2, 1), (3, 3)])
def test_the_scores_are_those_of_one_after_the_other(
    connected: None, alone: tuple[Path, dict[str, Finished]], tmp_path: Path, workers: int, side_by_side: int
) -> None:
    folder, one_by_one = alone
    several = run(folder / "mine.yaml", tmp_path, workers, side_by_side)
    assert list(one_by_one) == list(several)
    assert [one.error for one in one_by_one.values()] == [one.error for one in several.values()]
    assert "did you mean biased" in str(several["bised"].error)
    for name in several.keys() - {"bised"}:
        assert (tmp_path / name / "scores.json").read_bytes() == (folder / name / "scores.json").read_bytes()


@pytest.mark.long
def test_models_side_by_side(connected: None, slow: Path, tmp_path: Path) -> None:
    done = run(slow, tmp_path / "runs", 2, 2)
    found = spans(tmp_path / "log")
    # Two workers for two models: each has one, until the other has nothing left to do.
    assert most_at_once(found) == 2
    assert overlap(found, "a", "b")
    errors = [one.error for one in done.values()]
    assert [errors[0], errors[1], errors[3]] == [None, None, None]
    assert "broken needs 80 GB" in str(errors[2])
    assert all((one.folder / "annotations" / "reader").is_dir() for one in done.values() if one.error is None)


@pytest.mark.long
def test_each_takes_over_from_the_one_before(connected: None, slow: Path, tmp_path: Path) -> None:
    text = slow.read_text().replace('"vllm:model_name=broken", ', "")
    for model, successor in (("a,delay=0.2", "b"), ("b,delay=0.2", "c"), ("c", "reader")):
        text = text.replace(f"name={model}", f"name={model[0]},until={successor}")
    slow.write_text(text)
    run(slow, tmp_path / "runs", 3)
    found = spans(tmp_path / "log")
    assert most_at_once(found) == 3
    # One request of each model waits for the next one, which begins on the workers that are free meanwhile.
    for before, after in (("a", "b"), ("b", "c"), ("c", "reader")):
        assert min(began for began, _ in found[after]) < max(ended for _, ended in found[before]), (before, after)


@pytest.mark.parametrize(
    ("workers", "side_by_side", "words"),
    [
        (1, 2, "`side-by-side` 2 needs as many workers or more, and there are 1; give `--workers 2`"),
        (8, 5, "`side-by-side` 5 is more than the 4 models of a setting; give 4"),
        (8, 0, "`side-by-side` must be 1 or more, got 0"),
    ],
)
def test_what_cannot_stand_side_by_side(tmp_path: Path, workers: int, side_by_side: int, words: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SIMULATED)
    with pytest.raises(RequestError, match=words.replace("(", r"\(")):
        run(file, tmp_path / "runs", workers, side_by_side)
    assert not (tmp_path / "runs").exists()


def test_a_run_file_names_its_workers_and_the_command_line_wins(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def note(*_: object, workers: Workers | None = None, side_by_side: int) -> list[Finished]:
        asked.append((1 if workers is None else workers.count, side_by_side))
        raise RequestError("noted")

    monkeypatch.setattr("equivox.run.reproducing.run_all", note)
    file = tmp_path / "mine.yaml"
    file.write_text(f"{SIMULATED}workers: 3\nside_by_side: 2\n")
    for options in ((), ("--workers", 8), ("--side-by-side", 3), ("--models", "simulated:oracle"), ("--workers", 1)):
        assert equivox("reproduce", file, "--output", tmp_path / "runs", *options)[0] == 2
    # Those of the file are at most what fits: one model, or one worker.
    assert asked == [(3, 2), (8, 2), (3, 3), (3, 1), (1, 1)]
    code, _, err = equivox("reproduce", file, "--side-by-side", "0")
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.long
def test_an_interrupt_ends_all_of_them_and_leaves_no_worker(slow: Path, tmp_path: Path) -> None:
    slow.write_text(slow.read_text().replace("delay=0.2", "delay=2"))
    program = (
        "import signal, sys, slow_engines, equivox.engines, equivox.cli as cli\n"
        # A process that was started in the background ignores interrupts, and so do those that it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "equivox.engines._one_engine = slow_engines.one_engine\n"
        "cli.main(sys.argv[1:])\n"
    )
    command = ["reproduce", str(slow), "--output", str(tmp_path / "runs"), "--workers", "2", "--side-by-side", "2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    responses = tmp_path / "runs" / "model-name=a-delay=2" / "responses"
    deadline = time.monotonic() + 90
    while not list(responses.glob("journal*")) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 130, err
    assert b"interrupted; what was finished is stored" in err
    # Every process that held a model has said that it closed it.
    assert {"a", "b"} <= spans(tmp_path / "log").keys()


def test_bars_of_several_runs_have_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    from equivox.report.progress_bars import shared_bars

    with shared_bars(quiet=False) as bars_of, bars_of("one", "") as first, bars_of("two", "mind this") as second:
        first(Event("generate", 1, 2))
        second(Event("generate", 1, 2))
    shown = capsys.readouterr().err
    assert "one generate" in shown and "two generate" in shown and "warning: mind this" in shown
    with shared_bars(quiet=True) as bars_of, bars_of("one", "") as first:
        first(Event("generate", 1, 2))
    assert capsys.readouterr().err == ""
