"""Run files with several settings, annotators and evaluations; and the list of what is missing."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, csv_rows
from pydantic import ValidationError

from equivox.annotate import Annotation, Job, open_annotator, open_evaluations
from equivox.annotate.rules import RulesAnnotator
from equivox.configs import config_names
from equivox.core.errors import UsageError
from equivox.core.progress import no_progress
from equivox.core.segments import AnnotationScheme
from equivox.dataset_builders import sample_source
from equivox.dataset_builders.corpus import Corpus
from equivox.engines import Workers
from equivox.report.dry_run import count_requests
from equivox.run import reproducing
from equivox.run.declarations import read_tasks
from equivox.run.generating import count_failures
from equivox.run.manifest import read_manifest
from equivox.run.reproducing import run_all
from equivox.run.run_files import RunFile, default_folder, open_run_file, settings_of, split_models
from equivox.run.scoring import read_scores, sample_rows
from equivox.run.store import annotators_of, evaluations_of
from equivox.tasks.registry import resolve_tasks

ChatServer = Callable[[Callable[[dict[str, Any]], tuple[int, str]]], str]

HOBBIES = ("chess", "yoga", "hiking", "sailing")


def test_two_settings_of_one_model_do_not_collide(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(
        "models: [simulated:random]\ntasks: vibe_gender:candidate\ndata: sample\nlimit: 24\n"
        "settings:\n  first: {}\n"
        "  other: {tasks: vibe_gender:casting, seed: 3, models: [simulated:random, simulated:oracle]}\n"
    )
    code, out, err = equivox("reproduce", file, "--output", tmp_path / "runs")
    # The oracle always gives one answer: too few data, and no error.
    assert code == 0, err
    assert "simulated:oracle (other)" in out
    found = {path.parent.relative_to(tmp_path / "runs").as_posix() for path in tmp_path.glob("runs/*/*/manifest.json")}
    assert found == {"first/random", "other/random", "other/oracle"}
    assert [task.name for task in read_tasks(tmp_path / "runs/other/random")] == ["vibe_gender:casting"]


def test_settings_with_different_data_have_corpora_of_their_own(equivox: Cli, tmp_path: Path) -> None:
    sample, part = sample_source("crema_d"), tmp_path / "part"
    part.mkdir()
    # Speakers 2001 to 2008 of the sample's 72, with four clips each.
    lines = (sample / "VideoDemographics.csv").read_text().splitlines()
    (part / "VideoDemographics.csv").write_text("\n".join(lines[:9]) + "\n")
    (part / "README.md").write_bytes((sample / "README.md").read_bytes())
    (part / "facts.json").write_bytes((sample / "facts.json").read_bytes())
    (part / "AudioWAV").mkdir()
    for clip in (sample / "AudioWAV").glob("200[1-8]_*"):
        (part / "AudioWAV" / clip.name).symlink_to(clip)
    for name, source in (("all", sample), ("few", part)):
        assert equivox("data", "build", "crema_d", "--source", source, "--output", tmp_path / name)[0] == 0
    settings = settings_of(
        declared(
            models=["simulated:random"],
            tasks="vibe_gender:candidate",
            settings={name: {"data": str(tmp_path / name)} for name in ("all", "few")},
        ),
        resolve_tasks,
    )
    finished = run_all(settings, tmp_path / "runs", lambda _: nullcontext(no_progress))
    assert [run.error for run in finished] == [None, None]
    built = [json.loads((tmp_path / name / "crema_d" / "build.json").read_text()) for name in ("all", "few")]
    used = [read_manifest(run.folder)["identity"]["corpora"]["crema_d"] for run in finished]
    assert used == [record["fingerprint"] for record in built] and used[0] != used[1]
    # 24 speakers and 8 of them, each with 12 clips.
    assert [count_requests(one.file, one.varied, {})[0] for one in settings] == [288, 32]
    shutil.rmtree(tmp_path / "few")
    (gone,) = (why for kind, why in reproducing.missing(settings, tmp_path / "runs") if kind == "data")
    assert str(tmp_path / "few") in gone


def declared(**fields: Any) -> RunFile:
    return RunFile.model_validate({"models": ["simulated:oracle"], "tasks": "vibe_gender", **fields})


def test_models_and_tasks_replace_those_of_the_file() -> None:
    file = declared(
        settings={
            "one": {"models": ["simulated:oracle", "simulated:random"]},
            "two": {"tasks": "spoken_stereoset:gender"},
        }
    )
    everything = settings_of(file, resolve_tasks)
    assert [(s.name, s.file.models, len(s.tasks)) for s in everything] == [
        ("one", ["simulated:oracle", "simulated:random"], 5),
        ("two", ["simulated:oracle"], 1),
    ]
    # A model of the file runs in its own settings; a new one in all.
    (one,) = settings_of(file, resolve_tasks, models=["simulated:random"])
    assert (one.name, one.file.models) == ("one", ["simulated:random"])
    assert [s.name for s in settings_of(file, resolve_tasks, models=["simulated:biased"])] == ["one", "two"]
    (two,) = settings_of(file, resolve_tasks, tasks="spoken_stereoset:gender")
    assert (two.name, [task.name for task in two.tasks]) == ("two", ["spoken_stereoset:gender"])
    with pytest.raises(UsageError, match="vibe_accent:story, which the run file does not have"):
        settings_of(file, resolve_tasks, tasks="vibe_accent:story")
    with pytest.raises(UsageError, match="nothing is left"):
        settings_of(file, resolve_tasks, models=["simulated:random"], tasks="spoken_stereoset:gender")


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ("models", [[]], [["a"], ["a", "b"]]),
        ("annotators", [[]], ["rules", ["rules", "judge"]]),
        ("evaluations", [0, 100], [1, 99]),
        ("limit", [0], [1, None]),
        ("workers", [0], [1]),
        ("sedd", [1], []),
        *(
            ("settings", [{"one": {name: value}} for value in wrong], [{"one": {name: value}} for value in right])
            for name, wrong, right in (
                ("models", [[]], [["a"]]),
                ("annotator", [[]], ["rules"]),
                ("evaluations", [0, 100], [1, 99]),
                ("limit", [0], [1]),
                ("sedd", [1], []),
            )
        ),
    ],
)
def test_a_field_of_a_run_file_is_in_its_range(field: str, wrong: list[Any], right: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(ValidationError, match=field):
            declared(**{field: value})
    for value in right:
        declared(**{field: value})


def test_a_run_file_says_once_what_it_says() -> None:
    file = declared(settings={"one": {}})
    assert (file.seed, file.evaluations, file.workers, file.limit) == (0, 1, 1, None)
    for fields in (file, file.settings["one"]):
        with pytest.raises(ValidationError, match="frozen"):
            fields.limit = 5  # type: ignore[misc, union-attr]
    assert not any(setting.trust_remote_code for setting in settings_of(file, resolve_tasks))


@pytest.mark.parametrize(("length", "cut"), [(80, False), (81, True)])
def test_a_folder_has_a_name_of_at_most_eighty_characters_and_eight_of_a_hash(length: int, cut: bool) -> None:
    name = "m" * (length - len("simulated--badf"))
    whole = f"simulated-{name}-badf"
    found = default_folder(f"simulated:{name}", "badf").name
    assert len(whole) == length and (found != whole) == cut
    assert not cut or (found.startswith(whole[:80] + "-") and len(found) == 89)


def test_two_models_with_one_folder_are_refused() -> None:
    with pytest.raises(UsageError, match="share the folder model"):
        settings_of(declared(models=["a/model.yaml", "b/model.yaml"]), resolve_tasks)


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("", []),
        ("qwen3-8b, simulated:planted,shift=0.2", ["qwen3-8b", "simulated:planted,shift=0.2"]),
        ("vllm:model_name=a,dtype=bfloat16,b.yaml", ["vllm:model_name=a,dtype=bfloat16", "b.yaml"]),
        ("vllm:model_name=a,chat_template=b.yaml", ["vllm:model_name=a,chat_template=b.yaml"]),
        ("unknown,qwen3-8b", ["unknown", "qwen3-8b"]),
    ],
)
def test_commas_of_arguments_part_no_models(text: str, models: list[str]) -> None:
    assert split_models(text) == models


class Reader:
    """A server that annotates: hobbies that depend on its seed and, at temperature 0, on nothing else."""

    def __init__(self, chat_server: ChatServer) -> None:
        self.temperatures: list[float] = []
        self.url = f"http://{chat_server(self.reply)}/v1"

    def reply(self, body: dict[str, Any]) -> tuple[int, str]:
        self.temperatures.append(body.get("temperature", -1))
        seed = body.get("seed") if body.get("temperature") else 0
        drawn = int(hashlib.sha256(f"{seed} {body['messages']}".encode()).hexdigest(), 16)
        fields = re.findall(r"^- (\w+) \(", json.dumps(body["messages"]).replace("\\n", "\n"), re.MULTILINE)
        form = {name: [HOBBIES[(drawn >> shift) % 4] for shift in (0, 8, 16)] for name in fields if name != "refusal"}
        return 200, json.dumps({"refusal": "no", **form})


@pytest.fixture
def reader(chat_server: ChatServer) -> Reader:
    return Reader(chat_server)


def annotator_file(folder: Path, name: str, url: str, **fields: Any) -> Path:
    path = folder / f"{name}.yaml"
    arguments = {"model_name": "reader", "base_url": url, "modalities": ["text"]}
    path.write_text(json.dumps({"engine": "endpoint", "model_parameters": arguments, **fields}))
    return path


def test_independent_evaluations_are_sampled_stored_and_scored_apart(
    equivox: Cli, reader: Reader, tmp_path: Path
) -> None:
    sampled = {"sampling": {"temperature": 0.0}, "evaluation_sampling": {"temperature": 0.7}}
    file = tmp_path / "twice.yaml"
    annotators = [str(annotator_file(tmp_path, name, reader.url, **sampled)) for name in ("kim", "lee")]
    file.write_text(
        json.dumps(
            {
                "models": ["simulated:random"],
                "tasks": "vibe_gender:advisory",
                "data": "sample",
                "limit": 48,
                "annotators": annotators,
                "evaluations": 2,
            }
        )
    )
    code, _, err = equivox("reproduce", file, "--output", tmp_path / "runs")
    run = tmp_path / "runs" / "random"
    assert code == 0, err
    assert annotators_of(run) == ["kim@1", "kim@2", "lee@1", "lee@2"]
    # Those of `kim` are averaged; one evaluation, and an annotator that is not there, stand for themselves.
    assert [evaluations_of(run, name) for name in ("kim", "kim@2", "li")] == [["kim@1", "kim@2"], ["kim@2"], ["li"]]
    assert set(reader.temperatures) >= {0.7} and 0.0 not in reader.temperatures
    tasks = read_tasks(run)
    hobbies = {
        name: [row.values.get("hobby") for row in sample_rows(run, tasks, name)["vibe_gender:advisory"]]
        for name in annotators_of(run)
    }
    assert all(len(values) == 48 and None not in values for values in hobbies.values())
    # Seeds differ, so that no two evaluations are copies.
    assert len({str(values) for values in hobbies.values()}) == 4
    assert read_scores(run) == read_scores(run, "kim@1")
    assert read_scores(run, "kim@1") != read_scores(run, "kim@2")
    asked = len(reader.temperatures)
    assert equivox("reproduce", file, "--output", tmp_path / "runs")[0] == code
    # Resumed: nothing is asked again, but for the greetings of the server.
    assert len(reader.temperatures) - asked < 8


def test_what_failed_is_asked_again_and_no_secret_is_shown(
    equivox: Cli, tmp_path: Path, chat_server: ChatServer
) -> None:
    asked: list[str] = []

    def reply(body: dict[str, Any]) -> tuple[int, str]:
        if body["max_tokens"] > 1:  # no greeting
            asked.append(body["model"])
        return (400, "no") if asked.count("m") in range(3, 9) and body["model"] == "m" else (200, "It says nothing.")

    file, place = tmp_path / "mine.yaml", f"base_url=http://anybody:secret77@{chat_server(reply)}/v1,max_retries=0"
    people = "".join(f"p{number},{'fm'[number % 2]}\n" for number in range(12))
    (tmp_path / "people.csv").write_text(f"name,gender\n{people}")
    (tmp_path / "people.yaml").write_text(
        "name: people\ntable: people.csv\nmedia: text\ngroup: gender\ncluster: name\ncard: toys\n"
        "questions: [{name: hobby, text: 'What does {name} like?', attributes: [{name: hobby, asks: a hobby}]}]\n"
    )
    file.write_text(f"models: ['endpoint:model_name=m,{place}']\ntasks: {tmp_path / 'people.yaml'}\n")
    command = ("reproduce", file, "--output", tmp_path / "runs", "--scoring", "n_resamples=99")
    command += ("--annotator", f"rules,endpoint:model_name=judge,{place}")
    told = [equivox(*command, "--dry-run"), equivox(*command)]
    (run,) = (tmp_path / "runs").iterdir()
    assert annotators_of(run) == ["endpoint-judge", "rules"] and count_failures(run).total() == 6, told
    told += [equivox(*command), equivox(*command, "--retry-failed")]
    assert count_failures(run).total() == 0 and asked.count("m") == 12 + 6
    assert not [words for words in (str(told), run.name) if "secret77" in words]


class Breaking(RulesAnnotator):
    """Rules that fail at the first response, and that know whether they were closed."""

    closed = False

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        raise RuntimeError("broken")

    def close(self) -> None:
        self.closed = True


def test_annotators_are_closed_when_one_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Breaking] = []

    def open_one(name: str, workers: Workers | None = None) -> Breaking:
        opened.append(Breaking())
        return opened[-1]

    monkeypatch.setattr(reproducing, "open_annotator", open_one)
    monkeypatch.setattr(
        reproducing, "open_evaluations", lambda name, numbers, workers: [open_one(name) for _ in numbers]
    )
    settings = settings_of(
        declared(models=["simulated:random"], tasks="vibe_gender:candidate", data="sample", limit=24, evaluations=2),
        resolve_tasks,
    )
    (run,) = run_all(settings, tmp_path, lambda _: nullcontext(no_progress))
    assert "the annotator rules failed (RuntimeError: broken)" in str(run.error)
    # One that checks the run before the model answers, then two evaluations.
    assert [annotator.closed for annotator in opened] == [True] * 3


def test_evaluations_that_would_be_copies_are_refused(tmp_path: Path) -> None:
    greedy = annotator_file(tmp_path, "greedy", "http://127.0.0.1:9/v1", sampling={"temperature": 0.0})
    with pytest.raises(UsageError, match="all its evaluations would be alike"):
        open_evaluations(str(greedy), [1, 2])
    with pytest.raises(UsageError, match="no independent evaluations"):
        open_annotator("rules@2")
    for name in open_run_file("genres").annotators:
        assert "evaluation_sampling" in (Path("configs/annotators") / f"{name}.yaml").read_text()


def test_what_is_missing_is_one_list(
    equivox: Cli, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    monkeypatch.setattr(reproducing, "gpu_memory_gb", lambda: 24.0)
    model = tmp_path / "served.yaml"
    arguments = {"model_name": "m", "base_url": "http://127.0.0.1:9/v1", "timeout_s": 1}
    model.write_text(json.dumps({"engine": "endpoint", "model_parameters": arguments}))
    far = tmp_path / "far.yaml"
    arguments = {"model_name": "m", "base_url": "http://far.invalid/v1", "api_key_env": "SOME_KEY", "timeout_s": 1}
    ended = {"date": "2020-01-01", "then": "answers no more", "source": "a page"}
    far.write_text(json.dumps({"engine": "endpoint", "model_parameters": arguments, "retires": ended}))
    model_ends = {"date": "2999-01-01", "then": "answers no more", "source": "a page"}
    model.write_text(json.dumps({**json.loads(model.read_text()), "retires": model_ends}))
    fields = {"models": ["simulated:oracle", str(model), str(far)], "tasks": ["vibe_gender:story", "vibe_accent:story"]}
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps({**fields, "data": str(tmp_path / "nowhere")}))
    code, out, _ = equivox("reproduce", file, "--dry-run")
    flat = " ".join(out.split())
    assert code == 1
    assert "6 missing" in flat
    assert "far.yaml: from 2020-01-01 on the provider answers no more (a page)" in flat
    assert "2999-01-01" not in flat
    assert "data" in flat and "nowhere" in flat
    assert "no server answers at http://127.0.0.1:9/v1" in flat
    assert "SOME_KEY is not set: put the key of far.invalid into it" in flat
    assert not (tmp_path / "runs").exists()
    file.write_text(json.dumps({**fields, "data": "sample", "models": ["simulated:oracle"]}))
    code, out, _ = equivox("reproduce", file, "--dry-run")
    assert code == 0 and out.endswith("Nothing is missing.\n")


def test_a_model_that_the_gpu_does_not_hold_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproducing, "gpu_memory_gb", lambda: None)
    (setting,) = settings_of(declared(models=["qwen3-8b"], data="sample"), resolve_tasks)
    found = reproducing.missing([setting], Path("runs"))
    assert any(kind == "GPU memory" and "no GPU" in why for kind, why in found)
    monkeypatch.setattr(reproducing, "gpu_memory_gb", lambda: 8.0)
    (told,) = (entry for entry in reproducing.missing([setting], Path("runs")).items() if entry[0][0] == "GPU memory")
    assert "the GPU has 8 GB" in told[0][1] and told[1] == ["qwen3-8b"]
    needed = reproducing.model_file("qwen3-8b").gpu_memory_gb  # type: ignore[union-attr]
    for there, lacks in ((needed, False), (needed - 0.5, True)):
        monkeypatch.setattr(reproducing, "gpu_memory_gb", lambda there=there: there)
        assert any(kind == "GPU memory" for kind, _ in reproducing.missing([setting], Path("runs"))) == lacks


@pytest.mark.parametrize(
    ("told", "memory"), [("24564\n24564\n", 25.757), ("", None), ("[N/A]\n", None), (OSError("no nvidia-smi"), None)]
)
def test_the_memory_of_the_first_gpu_is_told_by_its_driver(
    told: str | OSError, memory: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if isinstance(told, OSError):
            raise told
        return subprocess.CompletedProcess(command, 0, stdout=told)

    monkeypatch.setattr("equivox.run.reproducing.subprocess.run", run)
    # 24,564 MiB are 25.757 thousand million bytes.
    found = reproducing.gpu_memory_gb.__wrapped__()
    assert found == (memory and pytest.approx(memory, abs=1e-3))


def test_word_lists_encoders_and_keys_of_annotators_are_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(encoder: str) -> None:
        raise UsageError("the encoder is not there")

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(AnnotationScheme, "missing_tools", lambda self: ["no word list"])
    monkeypatch.setattr(reproducing, "load_encoder", absent)
    file = declared(tasks="vibe_gender:story,vibe_gender:advisory", annotators=["gpt-4o", "rules"], data="sample")
    for scoring, has_encoder in (("merge=embedding", True), ("merge=none", False)):
        found = reproducing.missing(
            settings_of(file.model_copy(update={"scoring": scoring}), resolve_tasks), Path("runs")
        )
        assert found["word lists and tools", "no word list"] == ["vibe_gender:story", "vibe_gender:advisory"]
        assert (("word lists and tools", "the encoder is not there") in found) == has_encoder
        assert any(kind == "keys" and who == ["gpt-4o"] for (kind, _), who in found.items())


def test_a_paper_in_one_command_ends_in_its_tables(equivox: Cli, tmp_path: Path) -> None:
    command = ("reproduce", "vibe", "--data", "sample", "--limit", 24, "--annotator", "rules", "--models")
    where = ("--output", tmp_path / "runs", "--tables", tmp_path / "out")
    out = equivox.done(*command, "simulated:biased", "--tasks", "vibe_gender,spoken_stereoset_orders:gender", *where)
    rows = {(row["block"], row["row"], row["column"]): row for row in csv_rows(tmp_path / "out" / "table_1.csv")}
    story = rows["gender", "simulated:biased", "Story"]
    whole = next(s for s in read_scores(tmp_path / "runs/open_ended/biased") if s.is_whole and "story" in s.task)
    assert float(story["measured"]) == whole.value
    # A model that the paper does not have; the paper's own were not run, and say so instead of 0.
    assert story["published"] == ""
    desta = rows["gender", "DeSTA", "Story"]
    assert (desta["published"], desta["measured"]) == ("20.17", "") and "no run" in desta["undefined"]
    assert "not the published corpus" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "figure_3.csv",
            "figure_3.svg",
            "table_1.csv", "table_1.tex", "table_2.csv", "table_2.tex",
    ]  # fmt: skip
    err = equivox.refused("reproduce", "demo", "--output", tmp_path / "demo", "--tables", tmp_path / "out")
    assert "`paper`" in err


def reckoned(file: RunFile) -> dict[str, tuple[int, int, list[str]]]:
    """The requests to each model of each setting, the calls to each annotator, and the sources."""
    corpora: dict[str, Corpus] = {}
    return {one.name: count_requests(one.file, one.varied, corpora) for one in settings_of(file, resolve_tasks)}


def test_what_reproducing_vibe_takes(equivox: Cli) -> None:
    found = reckoned(open_run_file("vibe"))
    # 7,442 clips and 24 speakers × 600 sentences, five prompts each; 2,847 contexts in six orders.
    per_model, choices = 5 * (7_442 + 24 * 600), 6 * 2_847
    calls = {setting: own[:2] for setting, own in found.items()}
    assert calls == {"open_ended": (per_model, per_model), "choices": (choices, choices)}
    code, out, _ = equivox("reproduce", "configs/runs/vibe.yaml", "--dry-run")
    assert code == 1 and "missing" in out
    models = [line.split()[:3] for line in out.splitlines() if line.strip().startswith(("open_ended", "choices"))]
    asked = Counter((setting, n) for setting, name, n in models if name != "annotated")
    # Table 2 has the open models alone.
    assert asked == {("open_ended", f"{per_model:,}"): 11, ("choices", f"{choices:,}"): 10}
    assert "7,442 samples as published" in out
    assert "gemini-2.5-flash: from 2026-12-01 on the provider lets gemini-3.5-flash-lite answer" in out


def test_items_are_counted_where_the_data_are_there() -> None:
    found = reckoned(open_run_file("vibe", data="sample", limit=48))
    assert {setting: requests for setting, (requests, *_) in found.items()} == {"open_ended": 480, "choices": 6 * 48}
    assert "crema_d: 288 samples in sample" in found["open_ended"][2]


def test_repeats_of_published_items_are_requests_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = "models: [simulated:oracle]\ntasks: [vibe_gender:story]\n"
    calls = []
    for more in ("", "sampling: temperature=0.5,repeats=3\n", "limit: 10\n"):
        file.write_text(text + more)
        ((requests, *_),) = reckoned(open_run_file(str(file))).values()
        calls.append(requests)
    assert calls == [7_442, 3 * 7_442, 10]


RUN_FILE = """\
models: [simulated:oracle, "simulated:biased"]
tasks: [vibe_gender:candidate, vibe_gender:casting]
conditions: [audio, shuffled]
data: sample
limit: 48
"""


def test_system_prompts_of_a_file_and_of_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    (tmp_path / "fair.txt").write_text("Be fair.")
    file.write_text(
        f"{RUN_FILE}system: fair.txt\nsettings: {{plain: {{limit: 24}}, kind: {{system: {{kind: Be kind.}}}}}}\n"
    )
    plain, kind = settings_of(open_run_file(str(file)), resolve_tasks)
    asked = {task.condition: task.prompt.system for task in plain.varied}
    assert asked == {"audio": "", "shuffled": "", "system=fair": "Be fair."}
    assert {task.condition for task in kind.varied} == {"audio", "shuffled", "system=kind"}
    file.write_text(f"{RUN_FILE}system: [missing.txt]\n")
    with pytest.raises(UsageError, match=r"missing\.txt cannot be read"):
        open_run_file(str(file))


def test_annotations_are_found_by_the_names_that_a_run_stores(tmp_path: Path) -> None:
    judge, file = "endpoint:model_name=org/judge,base_url=http://127.0.0.1:9/v1", tmp_path / "mine.yaml"
    for evaluations, names in ((1, ["endpoint-org-judge"]), (2, ["endpoint-org-judge@1", "endpoint-org-judge@2"])):
        file.write_text(f"{RUN_FILE}annotators: ['{judge}']\nevaluations: {evaluations}\n")
        (setting,) = settings_of(open_run_file(str(file)), resolve_tasks)
        assert setting.names_of(judge) == names


def test_many_models_in_one_command(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE)
    found = reckoned(open_run_file(str(file)))
    # Shuffling deals the groups anew and asks nothing.
    assert [own[0] for own in found.values()] == [96]
    assert "equivox · 2 models" in equivox.done("reproduce", file, "--output", tmp_path / "runs")
    for name in ("oracle", "biased"):
        assert read_manifest(tmp_path / "runs" / name)["identity"]["limit"] == 48


def test_a_model_that_cannot_be_run_stops_no_other_and_shows(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE.replace('"simulated:biased"', "simulated:bised, simulated:random"))
    code, out, _ = equivox("reproduce", file, "--output", tmp_path / "runs")
    assert code == 1
    assert "simulated:bised was not run: unknown simulated model" in out
    assert (tmp_path / "runs" / "random" / "scores.json").is_file()


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [("limit: 48", "limit: 0", "limit"), ("models", "modles", "models"), ("data: sample", "dta: sample", "dta")],
)
def test_a_wrong_run_file_is_one_line(old: str, new: str, hint: str, equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE.replace(old, new))
    assert hint in equivox.refused("reproduce", file, "--dry-run")
    code, _, err = equivox("reproduce", "vibr")
    assert (code, "did you mean" in err) == (2, True)


# BADF's, of which every request is planned, is reckoned once, with its numbers, in tests/metrics/badf/test_overlap.py.
@pytest.mark.parametrize("name", [name for name in config_names("runs") if name != "badf"])
def test_every_packaged_run_file_can_be_reckoned(name: str) -> None:
    assert all(requests > 0 for requests, *_ in reckoned(open_run_file(name)).values())
