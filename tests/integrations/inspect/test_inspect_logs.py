"""`equivox export --to inspect` and `equivox import LOG`: the same scores again, nothing private, no foreign log."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import soundfile
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log
from planted import TOLERATED, assert_same, evaluated, metrics, planted_model

from equivox.core.scores import Score
from equivox.core.variants import parse_conditions
from equivox.run.annotating import plan_rows, stored_responses
from equivox.run.pipeline import execute
from equivox.run.scoring import read_scores
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

Command = Callable[..., tuple[int, str, str]]
pytestmark = TOLERATED
LIMIT = 16


def made(folder: Path, model: str, tasks: str, **changes: Any) -> Path:
    execute(RunSpec(model=model, tasks=resolve_tasks(tasks), output=folder, data="sample", limit=LIMIT, **changes))
    return folder


def records(folder: Path) -> list[dict[str, Any]]:
    return [score.as_dict() for score in read_scores(folder)]


def logs_in(folder: Path) -> Iterable[EvalLog]:
    return [read_eval_log(str(path)) for path in sorted(folder.glob("*.eval"))]


@pytest.mark.parametrize(
    ("model", "tasks", "changes"),
    [
        ("simulated:planted?shift=0.4", "vibe_gender:story,vibe_gender:advisory", {}),
        pytest.param(
            "simulated:planted?shift=0.4&fail=0.1",
            "vibe_gender:story",
            {"conditions": parse_conditions("audio,silence,shuffled")},
            marks=pytest.mark.long,
        ),
        ("simulated:biased", "spoken_stereoset:gender", {"sampling": "greedy"}),
        pytest.param("simulated:biased", "badf_two", {}, marks=pytest.mark.long),
        ("simulated:biased", "vibe_gender:advisory", {"group": ("age_group",)}),
    ],
)
def test_a_run_comes_back_with_every_number_and_reason(
    model: str, tasks: str, changes: dict[str, Any], tmp_path: Path, equivox: Command
) -> None:
    run = made(tmp_path / "run", model, tasks, **changes)
    assert equivox("export", run, "--to", "inspect", "--out", tmp_path / "logs")[0] == 0
    code, out, err = equivox("import", tmp_path / "logs", "-o", tmp_path / "back", "-q")
    assert (code, err) == (0 if all(score.defined for score in whole(run)) else 1, "")
    assert "with the log's annotations by rules" in out
    assert records(tmp_path / "back") == records(run)
    # A log shows the numbers of its task, which are those of the run.
    for log in logs_in(tmp_path / "logs"):
        own = [score for score in read_scores(run) if score.task == log.eval.task_display_name]
        assert_same(metrics(log), own)


def whole(run: Path) -> list[Score]:
    return [score for score in read_scores(run) if score.is_whole]


def test_an_evaluation_is_imported_with_its_annotations_and_can_be_annotated_anew(
    tmp_path: Path, equivox: Command
) -> None:
    task = "vibe_gender:advisory"
    run = made(tmp_path / "run", "simulated:planted?shift=0.4", task)
    stored = stored_responses(run)
    answers = {(row["sample_id"], row["repeat"]): stored[row["key"]]["text"] for row in plan_rows(run)}
    log = evaluated(task, planted_model(answers), tmp_path / "logs", data="sample", limit=LIMIT, annotator="rules")
    for given in ([], ["--annotator", "rules"]):
        back = tmp_path / f"back{len(given)}"
        code, out, _ = equivox("import", log.location, "-o", back, "-q", *given)
        assert code == 0
        assert ("annotated by rules" if given else "with the log's annotations by rules") in out
        assert_same(metrics(log), [score for score in read_scores(back) if score.task == task])
    assert "imported:mockllm/model" in out
    # An answer that the log lacks is a failed request.
    shorter = read_eval_log(log.location)
    assert shorter.samples is not None
    del shorter.samples[0]
    (tmp_path / "less.json").write_text(shorter.model_dump_json(), "utf-8")
    _, out, _ = equivox("import", tmp_path / "less.json", "-o", tmp_path / "less", "-q")
    assert "15 answers of less.json" in out
    assert "requests without an answer, which count as failed: 1" in out
    assert {score.coverage.generated for score in whole(tmp_path / "less")} == {LIMIT - 1}


def test_media_are_in_a_log_on_request_alone(tmp_path: Path, equivox: Command) -> None:
    run = made(tmp_path / "run", "simulated:biased", "vibe_gender:advisory")
    equivox("export", run, "--to", "inspect", "--out", tmp_path / "with.eval", "--media")
    equivox("export", run, "--to", "inspect", "--out", tmp_path / "without.json")
    (log, plain) = (
        read_eval_log(str(tmp_path / name), resolve_attachments=True) for name in ("with.eval", "without.json")
    )
    assert log.samples is not None
    assert plain.samples is not None
    for sample, bare in zip(log.samples, plain.samples, strict=True):
        audio, text = sample.input[0].content  # type: ignore[union-attr]
        data = base64.b64decode(audio.audio.partition(",")[2])  # type: ignore[union-attr]
        samples, rate = soundfile.read(io.BytesIO(data))
        assert rate == 16_000
        assert len(samples) > rate / 2
        placeholder, same = bare.input[0].content  # type: ignore[union-attr]
        assert placeholder.text.startswith("[audio ")  # type: ignore[union-attr]
        assert placeholder.text.endswith(", not included]")  # type: ignore[union-attr]
        assert same == text
        assert (sample.id, sample.metadata) == (bare.id, bare.metadata)


def test_credentials_and_local_paths_do_not_leave_with_a_log(
    tmp_path: Path, equivox: Command, chat_server: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = chat_server(lambda body: (400, "no such file /home/me/private/model.bin, key sk-0123456789abcdef"))
    run = tmp_path / "run"
    model = f"endpoint:model_name=m,base_url=http://me:pass4711@{place}/v1,max_retries=0,trust_media=true"
    made(run, model, "vibe_gender:advisory", stop_after=0)
    assert equivox("export", run, "--to", "inspect", "--out", tmp_path / "log.json")[0] == 0
    text = (tmp_path / "log.json").read_text("utf-8")
    assert "model.bin" in text
    for private in ("/home/me", "sk-0123456789abcdef", "pass4711", str(tmp_path)):
        assert private not in text
    # A secret of this process in what the model said is refused, and nothing is written.
    monkeypatch.setenv("SOME_API_KEY", "advisory-not-a-word")
    run = made(tmp_path / "run2", "simulated:biased", "vibe_gender:advisory")
    monkeypatch.setenv("SOME_API_KEY", "You might enjoy")
    code, _, err = equivox("export", run, "--to", "inspect", "--out", tmp_path / "secret.json")
    assert code == 2
    assert "would hold a secret, SOME_API_KEY: nothing is written" in err
    assert not (tmp_path / "secret.json").exists()


def foreign(folder: Path) -> Path:
    task = Task(dataset=[Sample(input="1 + 1?", target="2", metadata={"sample_id": "x", "repeat": 0})], name="sums")
    (log,) = inspect_eval(task, model=planted_model({("x", 0): "2"}), log_dir=str(folder), display="none")
    return Path(log.location)


def test_foreign_and_damaged_logs_are_refused_in_one_line(tmp_path: Path, equivox: Command) -> None:
    log = foreign(tmp_path / "foreign")
    damaged = tmp_path / "damaged.eval"
    damaged.write_bytes(log.read_bytes()[:100])
    run = made(tmp_path / "run", "simulated:biased", "vibe_gender:advisory")
    equivox("export", run, "--to", "inspect", "--out", tmp_path / "own.json")
    document = json.loads((tmp_path / "own.json").read_text("utf-8"))
    document["eval"]["metadata"]["equivox"]["fingerprint"] = "0" * 64
    (tmp_path / "older.json").write_text(json.dumps(document), "utf-8")
    document = json.loads((tmp_path / "own.json").read_text("utf-8"))
    document["samples"][0]["id"] = "unknown"
    (tmp_path / "other.json").write_text(json.dumps(document), "utf-8")
    for path, given, message in (
        (log, [], "which is no task of equivox; import logs of `inspect eval equivox/TASK`"),
        (damaged, [], "cannot be read as a log of inspect_ai"),
        (tmp_path / "older.json", [], "asked vibe_gender:advisory in another version"),
        (tmp_path / "other.json", [], "1 of 16 samples of other.json are no requests of vibe_gender:advisory"),
        (tmp_path / "own.json", ["--match", "speaker"], "`--match` is for tables; a log says it itself"),
        (tmp_path / "own.json", ["badf_two"], "the logs are about vibe_gender:advisory, which is not among"),
    ):
        code, _, err = equivox("import", path, *given, "-o", tmp_path / "out")
        assert code == 2
        assert message in err
        assert err.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_logs_of_several_models_or_settings_are_not_one_run(tmp_path: Path, equivox: Command) -> None:
    for number, (model, task) in enumerate(
        [("simulated:biased", "vibe_gender:advisory"), ("simulated:oracle", "vibe_gender:story")]
    ):
        run = made(tmp_path / f"run{number}", model, task)
        equivox("export", run, "--to", "inspect", "--out", tmp_path / "logs")
    code, _, err = equivox("import", tmp_path / "logs", "-o", tmp_path / "out")
    assert (code, "import them apart" in err) == (2, True)


def test_exports_that_cannot_be_are_refused_in_one_line(
    tmp_path: Path, equivox: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path / "run", "simulated:biased", "vibe_gender:advisory,vibe_gender:story")
    for arguments, message in (
        (["--to", "nothing"], "`--to` 'nothing' is not known; inspect: logs for `inspect view`"),
        (["--to", "inspect", "--out", tmp_path / "a.eval"], "has 2 tasks, and a log is about one"),
        (["--to", "inspect", "--data", tmp_path], "the text and the media of each request need the corpus"),
    ):
        code, _, err = equivox("export", run, *arguments)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    monkeypatch.delitem(sys.modules, "equivox.integrations.inspect.exporting", raising=False)
    code, _, err = equivox("export", run, "--to", "inspect")
    assert code == 2
    assert "pip install 'equivox[inspect]'" in err
    assert not (tmp_path / "export").exists()
