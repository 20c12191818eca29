"""Spoken answers: their sound is stored, measured and verified, and a planted difference of a voice is found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Cli
from made_requests import made_request

from equivox import open_run
from equivox.core.errors import DamageError, RequestError
from equivox.core.media import encode_audio
from equivox.core.requests import Request, Response
from equivox.core.scores import ScoringOptions
from equivox.engines.function import FunctionEngine
from equivox.engines.simulated_numbers import spoken
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import Store, keep_sound, read_sound, response_schema, sound_path
from equivox.tasks.files import load_task_file
from equivox.tasks.registry import resolve_tasks

SILENCE = encode_audio(np.zeros(32_000), sampling_rate=16_000, container="WAV", subtype="PCM_16")
FILE = """\
name: voices
table: people.csv
group: gender
cluster: person
questions:
  - name: pace
    text: "Tell a story about {person}. {text}"
    spoken: true
    attributes: [{name: pace, asks: the pace, number: {measure: words_per_second, low: 1, high: 6}}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    people = [f"{gender}{number},{gender},Scene {scene}." for gender in ("f", "m") for number in range(24)
              for scene in range(4)]  # fmt: skip
    (tmp_path / "people.csv").write_text("\n".join(["person,gender,text", *people]))
    (tmp_path / "voices.yaml").write_text(FILE)
    return tmp_path / "voices.yaml"


class Speaker(FunctionEngine):
    """A model that speaks 3 words a second, give or take a fifth, and faster to one group by a share."""

    def __init__(self, faster: float, text: str = "One two three four. Five six seven eight nine.") -> None:
        super().__init__(lambda request: text, name=f"speaker {faster}", revision="1", able=["speech"])
        self.faster = faster

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            person = request.text.split("about ")[1].split(".")[0]
            own = np.random.default_rng(list(person.encode()))
            pace = 3 * own.normal(1, 0.08) * np.random.default_rng(request.seed).normal(1, 0.1)
            pace *= 1 + self.faster * person.startswith("f")
            (response,) = super().generate([request])
            yield replace(response, sound=spoken(str(response.text), {"words_per_second": max(1.2, pace)}))


def test_a_planted_difference_between_transcripts_is_found_and_said(file: Path, equivox: Cli) -> None:
    file.write_text(FILE.replace("words_per_second, low: 1, high: 6", "word_errors, low: 0, high: 100"))
    run = file.parent / "run"
    out = equivox.done("run", "simulated:planted,shift=0.3", file, "--output", run)
    # The first group has 30 percent more, of whole words; each answer has few words.
    (score,) = [score for score in open_run(run).scores if score.name == "mean difference"]
    assert score.found and score.ci_low < 30 < score.ci_high and score.unit == "percent of the words"
    said = " ".join(out.split())
    assert "transcribed by another model, which heard other words than simulated:planted,shift=0.3 wrote: f " in said
    equivox.done("verify", run)


def run_of(file: Path, engine: FunctionEngine, name: str = "run") -> RunSpec:
    run = RunSpec(
        model="speaker", tasks=load_task_file(file), output=file.parent / name,
        options=ScoringOptions(n_resamples=999),
    )  # fmt: skip
    execute(run, engine=engine)
    return run


def test_a_voice_that_is_a_tenth_faster_for_one_group_is_found(file: Path) -> None:
    run = run_of(file, Speaker(0.1))
    (score,) = [score for score in open_run(run.output).scores if score.name == "mean difference"]
    assert score.found and score.ci_low <= 0.3 <= score.ci_high
    assert score.unit == "words a second"


def test_each_answer_is_a_file_that_says_what_it_is(equivox: Cli, file: Path) -> None:
    run = run_of(file, Speaker(0.0))
    stored = Store(run.output / "responses", response_schema()).table(("key", "text", "sound")).to_pylist()
    assert len(stored) == 192 and {record["text"] for record in stored} == {
        "One two three four. Five six seven eight nine."
    }
    for record in stored[:5]:
        assert hashlib.sha256(read_sound(run.output, record["sound"])).hexdigest() == record["sound"]
    assert equivox("verify", str(run.output))[0] == 0
    path = sound_path(run.output, stored[0]["sound"])
    content = path.read_bytes()
    path.write_bytes(content[:-2] + b"\0\1")
    code, out, err = equivox("verify", str(run.output))
    assert code == 1 and path.name in out + err
    with pytest.raises(RequestError, match="was changed"):
        read_sound(run.output, stored[0]["sound"])


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a" * 63, "A" * 64, "0" * 64 + "/"])
def test_no_name_of_a_sound_leads_out_of_a_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="names no spoken answer"):
        read_sound(tmp_path, name)


def test_a_link_is_no_spoken_answer(tmp_path: Path) -> None:
    sha256 = keep_sound(tmp_path, b"secret")
    path = sound_path(tmp_path, sha256)
    path.rename(tmp_path / "secret")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(RequestError, match="a link"):
        read_sound(tmp_path, sha256)


def test_an_answer_without_a_sound_is_missing(file: Path) -> None:
    class Mute(Speaker):
        def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
            for place, response in enumerate(super().generate(requests)):
                yield response if place % 2 else replace(response, sound=(None, SILENCE)[place % 4 // 2])

    run = run_of(file, Mute(0.1))
    (score,) = [score for score in open_run(run.output).scores if score.name == "mean difference"]
    # Half of the answers are silent: nothing is computed of the other half.
    assert not score.defined and "usable" in str(score.undefined)
    assert score.coverage.parsed == score.coverage.used < 120


def test_a_refusal_that_is_spoken_has_no_pace(file: Path) -> None:
    run = run_of(file, Speaker(0.1, text="I'm sorry, but I can't help with that."))
    (score,) = [score for score in open_run(run.output).scores if score.name == "mean difference"]
    assert score.coverage.answered == 0 and not score.defined


def test_sounds_are_measured_again_for_nobody(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(file, Speaker(0.0))
    monkeypatch.setattr("equivox.annotate.sounds.measures_of", None)
    # What was measured is stored with the annotations, and all annotators share it.
    assert execute(run, engine=Speaker(0.0))


def test_any_task_can_be_answered_by_voice_and_is_compared_with_the_written_answer(
    equivox: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    out = equivox.done(
        *("run", "simulated:planted,shift=0.3", "spoken_stereoset:gender", "--data", "sample"),
        *("--conditions", "declared,spoken", "--output", str(folder), "--scoring", "n_resamples=99"),
    )
    assert "what does answering by voice change?" in out
    sounds = Store(folder / "responses", response_schema()).table(("sound",))["sound"]
    assert sounds.null_count == len(sounds) // 2


def test_engines_without_a_voice_are_refused_before_anything_is_written(file: Path) -> None:
    engine = FunctionEngine(lambda request: "Hm.", name="mute", revision="1")
    with pytest.raises(RequestError, match="is answered by voice, which function does not do here; use endpoint"):
        run_of(file, engine)
    assert not (file.parent / "run").exists()


def test_shards_from_before_there_were_spoken_answers_are_read(tmp_path: Path) -> None:
    import pyarrow as pa

    from equivox.core.files import write_table

    schema = response_schema()
    before = pa.schema([field for field in schema if field.name != "sound"])
    record = dict.fromkeys(before.names) | {"key": "a", "text": "Hm.", "media_items": 0}
    write_table(tmp_path / "shard-000001.parquet", pa.Table.from_pylist([record], schema=before))
    store = Store(tmp_path, schema)
    assert store.table().to_pylist() == [record | {"sound": None}]
    without = pa.schema([field for field in schema if field.name not in ("sound", "text")])
    lacking = {name: value for name, value in record.items() if name != "text"}
    write_table(tmp_path / "shard-000002.parquet", pa.Table.from_pylist([lacking], schema=without))
    with pytest.raises(DamageError, match="shard-000002"):
        store.table()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    spoken: true\n", "", "pace is measured of spoken answers; add `spoken: true`"),
        ("measure: words_per_second", "measure: warmth", "measure"),
    ],
)
def test_mistakes_in_a_task_file_are_named(equivox: Cli, file: Path, old: str, new: str, problem: str) -> None:
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    assert problem in equivox.refused("run", "simulated:oracle", str(file), "--output", str(file.parent / "run"))


def test_requests_for_a_voice_have_keys_of_their_own() -> None:
    from equivox.core.requests import EngineIdentity, request_key

    identity, request = EngineIdentity(engine="e", model="m", revision="1"), made_request(1)
    assert request_key(identity, request, 1) != request_key(identity, replace(request, spoken=True), 1)
    assert resolve_tasks("vibe_gender:story")[0].prompt.needs == set()


def test_a_dry_run_says_what_the_sounds_take_on_disk(equivox: Cli, file: Path) -> None:
    arguments = ("run", "simulated:oracle", str(file), "--output", str(file.parent / "run"), "--dry-run")
    out = equivox.done(*arguments)
    # 192 answers of at most 300 tokens, 0.3 s each, and 48,000 bytes a second.
    assert "Answers by voice take about" in out
    (megabytes,) = [float(line.split()[5].replace(",", "")) for line in out.splitlines() if "Answers by voice" in line]
    assert megabytes == round(192 * 300 * 0.3 * 48_000 / 1e6)
    file.write_text(FILE.replace("    spoken: true\n", "").replace("words_per_second, low: 1, high: 6", "words"))
    assert "by voice" not in equivox(*arguments)[1]


def test_a_run_that_is_killed_loses_no_spoken_answer(file: Path) -> None:
    from test_resume import CONTEXT, run_killed

    arguments = ["run", "simulated:oracle", str(file), "--output", str(file.parent / "killed")]
    for kill_at in (30, 75, 200):
        process = CONTEXT.Process(target=run_killed, args=(arguments, kill_at, "after", None))
        process.start()
        process.join()
        assert process.exitcode == -9
        kept = Store(file.parent / "killed" / "responses", response_schema()).table(("sound",))["sound"].to_pylist()
        assert all(read_sound(file.parent / "killed", sha256) for sha256 in kept)
    few = ScoringOptions(n_resamples=99)
    whole = RunSpec(model="simulated:oracle", tasks=load_task_file(file), output=file.parent / "whole", options=few)
    execute(whole)
    execute(replace(whole, output=file.parent / "killed"))
    scores = [(file.parent / name / "scores.json").read_bytes() for name in ("whole", "killed")]
    assert scores[0] == scores[1]


def test_a_published_run_has_its_sounds_on_request_and_no_verified_numbers_without(
    equivox: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A secret is looked for in sounds, too, which are no UTF-8.
    monkeypatch.setenv("SOME_API_KEY", "not-in-any-file-0123")
    run = run_of(file, Speaker(0.1))
    for option, n_sounds in (("--sounds", 192), ("--public", 0)):
        copy = file.parent / f"copy{option}"
        equivox.done("data", "push", str(run.output), "--repo", "lab/run", "--output", str(copy), option)
        assert len(list(copy.glob("sounds/*.wav"))) == n_sounds
        code, out, _ = equivox("verify", str(copy))
        # Whoever could leave the sounds out and keep the numbers could write any numbers.
        assert (code == 0 and "Not verified" not in out) == bool(n_sounds)
        assert ("published without its sounds?" in out) == (not n_sounds)
