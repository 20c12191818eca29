"""Spoken answers: their sound is stored, their transcript is annotated, and no name leads out of a run."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli
from made_requests import made_request

from equivox import open_run
from equivox.core.errors import UsageError
from equivox.core.requests import EngineIdentity, request_key
from equivox.engines.function import FunctionEngine
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import Store, keep_sound, read_sound, response_schema, sound_path
from equivox.tasks.files import load_task_file

FILE = """\
name: voices
table: people.csv
group: gender
cluster: person
questions:
  - name: advice
    text: "Advise {person}. {text}"
    spoken: true
    attributes: [{name: answer, asks: the answer, options: [go, stay, wait]}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    people = [f"{group}{n},{group},Scene {scene}." for group in "fm" for n in range(24) for scene in range(4)]
    (tmp_path / "people.csv").write_text("\n".join(["person,gender,text", *people]))
    (tmp_path / "voices.yaml").write_text(FILE)
    return tmp_path / "voices.yaml"


def stored_sounds(run: Path) -> list[str]:
    return Store(run / "responses", response_schema()).table(("sound",))["sound"].drop_null().to_pylist()


def test_a_difference_in_what_is_said_aloud_is_found_in_its_transcripts(equivox: Cli, file: Path) -> None:
    run = file.parent / "run"
    equivox.done("run", "simulated:planted,shift=0.4", file, "--scoring", "n_resamples=999", "--output", run)
    (score,) = [s for s in open_run(run).scores if s.is_whole and s.role == "outcome"]
    assert score.found and score.ci[0] < 40 < score.ci[1] and score.coverage.used == 192
    sounds = stored_sounds(run)
    assert len(sounds) == 192
    assert all(hashlib.sha256(read_sound(run, sound)).hexdigest() == sound for sound in sounds[:5])
    equivox.done("verify", run)
    path = sound_path(run, sounds[0])
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(UsageError, match="was changed"):
        read_sound(run, sounds[0])


def test_a_published_run_has_transcripts_and_no_voices(equivox: Cli, file: Path) -> None:
    run, copy = file.parent / "run", file.parent / "copy"
    equivox.done("run", "simulated:random", file, "--scoring", "n_resamples=99", "--output", run)
    equivox.done("data", "push", run, "--repo", "lab/run", "--output", copy)
    assert not list(copy.rglob("*.wav"))
    equivox.done("verify", copy)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a" * 63, "A" * 64, "0" * 64 + "/"])
def test_no_name_of_a_sound_leads_out_of_a_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not the SHA-256 of a spoken answer"):
        read_sound(tmp_path, name)


def test_a_link_is_no_spoken_answer(tmp_path: Path) -> None:
    sha256 = keep_sound(tmp_path, b"secret")
    path = sound_path(tmp_path, sha256)
    path.rename(tmp_path / "secret")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="a link"):
        read_sound(tmp_path, sha256)


def test_any_task_can_be_answered_by_voice_and_is_compared_with_the_written_answer(
    equivox: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    out = equivox.done(
        *("run", "simulated:planted,shift=0.3", "spoken_stereoset:gender", "--data", "sample"),
        *("--conditions", "declared,spoken", "--output", folder, "--scoring", "n_resamples=99"),
    )
    assert "The same samples in another condition: spoken_stereoset" in out
    sounds = Store(folder / "responses", response_schema()).table(("sound",))["sound"]
    assert sounds.null_count == len(sounds) // 2


def test_engines_without_a_voice_are_refused_before_anything_is_written(file: Path) -> None:
    engine = FunctionEngine(lambda request: "Hm.", name="mute", revision="1")
    run = RunSpec(model="mute", tasks=load_task_file(file), output=file.parent / "run")
    with pytest.raises(UsageError, match="is answered by voice, which function does not do here; use endpoint"):
        execute(run, engine=engine)
    assert not run.output.exists()


def test_requests_for_a_voice_have_keys_of_their_own() -> None:
    identity, request = EngineIdentity(engine="e", model="m", revision="1"), made_request(1)
    assert request_key(identity, request, 1) != request_key(identity, replace(request, spoken=True), 1)


def test_a_run_that_is_killed_loses_no_spoken_answer(file: Path) -> None:
    from test_resume import CONTEXT, run_killed

    arguments = ["run", "simulated:oracle", str(file), "--output", str(file.parent / "killed")]
    for kill_at in (30, 75, 60):
        process = CONTEXT.Process(target=run_killed, args=(arguments, kill_at, "after", None))
        process.start()
        process.join()
        assert process.exitcode == -9
        assert all(read_sound(file.parent / "killed", sound) for sound in stored_sounds(file.parent / "killed"))
    whole = RunSpec(model="simulated:oracle", tasks=load_task_file(file), output=file.parent / "whole")
    execute(whole)
    execute(replace(whole, output=file.parent / "killed"))
    scores = [(file.parent / name / "scores.json").read_bytes() for name in ("whole", "killed")]
    assert scores[0] == scores[1]
