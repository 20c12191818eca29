"""`equivox data push`: the files that are written, the same rows back from them, and uploads to a stand-in Hub."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Cli
from sample_runs import sample_run

from equivox.core.media import sha256
from equivox.dataset_builders.opening import open_corpus
from equivox.integrations.hub.dataset_folder import corpus_tasks, write_dataset
from equivox.integrations.hub.run_folder import _without_places
from equivox.run.manifest import state_hashes
from equivox.run.plan import samples_of
from equivox.tasks.registry import builtin_tasks

# huggingface_hub hands files to its HTTP library in a way that the latter calls outdated.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

CORPORA = ("crema_d", "l2_arctic", "spoken_stereoset", "genres", "badf")

ACCEPTED = {
    "exgentic", "inspect-ai", "math-arena", "mteb", "olmocr-bench", "harbor", "ifstruct", "pier", "redline-bench",
    "archipelago", "benchflow", "apex-evals", "screenspot-pro", "swe-bench", "swe-bench-pro", "nemo-evaluator",
    "yc-bench", "open-asr-leaderboard", "mdpbench", "real5-omnidocbench", "parsebench", "video-mme-v2", "claw-eval",
    "researchclawbench", "pbench", "wildclawbench", "wbench", "nanofold", "mmmu", "extractbench",
}  # fmt: skip
"""The names in `packages/tasks/src/eval.ts` of huggingface.js at commit fe42e68 of 21 August 2026."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.long) if name == "l2_arctic" else name for name in CORPORA],
)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("hub") / request.param
    write_dataset(request.param, "sample", folder, repo=f"org/{request.param}")
    return request.param, folder


@pytest.fixture
def push_badf(tmp_path: Path, equivox: Cli) -> Cli:
    """Write BADF's grid to the folder `out`, and send it with `--push`."""
    return equivox.given("data", "push", "badf", "--repo", "org/badf", "--data", "sample", "-o", tmp_path / "out")


def _card(folder: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1]))


def test_every_task_gives_its_rows_back(written: tuple[str, Path], tmp_path: Path) -> None:
    import datasets

    name, folder = written
    tasks = {task.name.replace(":", "-"): task for task in corpus_tasks(name)}
    configs = datasets.get_dataset_config_names(str(folder), cache_dir=str(tmp_path))
    assert sorted(configs) == sorted(tasks)
    for config, task in tasks.items():
        rows = datasets.load_dataset(str(folder), config, split="test", cache_dir=str(tmp_path))
        items = samples_of(open_corpus(task.data, "sample"), task)
        assert [row["sample_id"] for row in rows] == [item.sample_id for item in items]
        for row, item in zip(rows, items, strict=True):
            assert {column: row[column] for column in item.columns} == dict(item.columns)
            for medium in task.media:
                assert row[medium.kind]["bytes"] == item.load()
                assert row[f"{medium.kind}_sha256"] == sha256(item.load())


def test_the_card_declares_what_is_there(written: tuple[str, Path]) -> None:
    name, folder = written
    card = _card(folder)
    record = json.loads((folder / "equivox.json").read_text("utf-8"))
    assert set(record["configs"]) == {entry["config_name"] for entry in card["configs"]}
    for info in card["dataset_info"]:
        (split,) = info["splits"]
        assert (split["name"], split["num_examples"]) == ("test", record["configs"][info["config_name"]]["rows"])
    assert card["license"] in {"cc0-1.0", "apache-2.0"}
    assert "extra_gated_prompt" not in card
    text = (folder / "README.md").read_text("utf-8")
    assert record["content_hash"] in text
    for task in corpus_tasks(name):
        assert task.prompt.text.splitlines()[0] in text


def test_hashes_are_those_of_the_files(written: tuple[str, Path]) -> None:
    _, folder = written
    record = json.loads((folder / "equivox.json").read_text("utf-8"))
    on_disk = {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
    assert set(record["files"]) == on_disk
    for name, entry in record["files"].items():
        assert sha256((folder / name).read_bytes()) == entry["sha256"]
        assert entry["bytes"] < 500_000_000


def test_eval_file_lists_every_scalar(written: tuple[str, Path]) -> None:
    name, folder = written
    declared = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))
    configs = {entry["config_name"] for entry in _card(folder)["configs"]}
    ids = [task["id"] for task in declared["tasks"]]
    assert {task["config"] for task in declared["tasks"]} == configs
    assert len(set(ids)) == len(ids) == len(configs) * (8 if name == "genres" else 1)
    assert declared["evaluation_framework"] in ACCEPTED


def test_tasks_on_the_same_rows_share_files(tmp_path: Path) -> None:
    write_dataset("crema_d", "sample", tmp_path / "out", repo="org/x")
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 1
    assert len(_card(tmp_path / "out")["configs"]) == 5


def test_a_corpus_with_terms_gets_a_gate(tmp_path: Path, hub: Any, equivox: Cli) -> None:
    from equivox.dataset_builders import sample_source

    source = shutil.copytree(sample_source("l2_arctic"), tmp_path / "source")
    facts = json.loads((source / "facts.json").read_text("utf-8"))
    facts |= {"licence": "CC BY-NC 4.0", "licence_id": "cc-by-nc-4.0", "homepage": "https://example.org/terms"}
    (source / "facts.json").write_text(json.dumps(facts), "utf-8")
    equivox.done("data", "build", "l2_arctic", "--source", source, "--output", tmp_path / "data")
    out = equivox.done(
        "data", "push", "l2_arctic", "--repo", "org/l2", "--data", tmp_path / "data", "-o", tmp_path / "out", "--push",
        "--public",
    )  # fmt: skip
    card = _card(tmp_path / "out")
    assert "CC BY-NC 4.0" in card["extra_gated_prompt"]
    assert "https://example.org/terms" in card["extra_gated_prompt"]
    assert hub.repos["dataset", "org/l2"].gated == "manual"
    assert "agree to the licence" in out
    # The gate stands before the first file is there.
    assert hub.requests.index("PUT /api/datasets/org/l2/settings") < next(
        place for place, request in enumerate(hub.requests) if "commit" in request
    )


def test_unknown_licences_are_not_made_public(clip_corpus: Callable[..., Path], tmp_path: Path, equivox: Cli) -> None:
    task_file = clip_corpus(extra="asks: Tell a story.\nattributes:\n  - {name: mood, asks: the mood}\n")
    arguments = ["data", "push", task_file, "--repo", "org/mine", "-o", tmp_path / "out"]
    assert "licence" in equivox.refused(*arguments, "--public")


def test_dry_run_sends_nothing(hub: Any, push_badf: Cli) -> None:
    out = push_badf.done()
    assert hub.requests == []
    assert "Nothing was uploaded; add --push" in out
    assert "badf_two-gender: 20 rows" in out


def test_upload_is_what_was_written(tmp_path: Path, hub: Any, equivox: Cli) -> None:
    out = equivox.done(
        "data", "push", "crema_d", "--repo", "org/crema", "--data", "sample", "-o", tmp_path / "out", "--push"
    )
    assert f"Uploaded: {hub.url}/datasets/org/crema/commit/" in out
    repo = hub.repos["dataset", "org/crema"]
    assert repo.private
    assert repo.gated is None
    assert repo.files == {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }


def test_what_an_earlier_version_left_goes_and_what_others_added_stays(hub: Any, push_badf: Cli) -> None:
    push_badf.done("--push")
    repo = hub.repos["dataset", "org/badf"]
    whole = set(repo.files)
    # A second shard of a larger version would match the configuration's pattern, and be read as further rows.
    stale = next(name for name in whole if name.endswith(".parquet")).replace("00000-of-00001", "00001-of-00002")
    # Spoken answers of a run that is now sent without them.
    repo.files |= {stale: b"PAR1", "sounds/0a.wav": b"RIFF", ".gitattributes": b"*", "docs/paper.pdf": b"%PDF"}
    push_badf.done("--push")
    assert set(repo.files) == whole | {".gitattributes", "docs/paper.pdf"}


def test_an_interrupted_upload_goes_on(hub: Any, push_badf: Cli) -> None:
    hub.fail(r"^POST .*/commit/", 500)
    code, _, error = push_badf("--push")
    assert code == 1
    assert "HTTP 500" in error
    assert "give the same command again" in error
    assert hub.repos["dataset", "org/badf"].files == {}
    sent = hub.sent("^PUT /objects/")
    assert sent == 6
    hub.failures.clear()
    push_badf.done("--push")
    assert hub.sent("^PUT /objects/") == sent  # what had arrived is not sent twice
    assert len(hub.repos["dataset", "org/badf"].files) == 10


@pytest.mark.parametrize(
    ("pattern", "status", "code", "said"),
    [
        ("^POST /api/repos/create", 401, 2, "does not accept this token"),
        ("^POST /api/repos/create", 403, 2, "may not write to org/badf"),
        ("/preupload/", 403, 2, "may not write to org/badf"),
        ("/preupload/", 404, 2, "has no repository org/badf"),
        ("/preupload/", 429, 1, "the Hub limits requests"),
        ("/commit/", 503, 1, "the Hub failed (HTTP 503)"),
        ("^PUT /objects/", 500, 1, "HTTP 500"),
    ],
)
def test_refusals_are_one_line(
    pattern: str, status: int, code: int, said: str, tmp_path: Path, hub: Any, push_badf: Cli
) -> None:
    hub.fail(pattern, status)
    got, _, error = push_badf("--push")
    assert (got, error.count("\n")) == (code, 1), error
    assert said in error
    assert "the files are complete in" in error
    assert (tmp_path / "out" / "equivox.json").is_file()


def test_not_logged_in_and_offline(hub: Any, push_badf: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN")
    code, _, error = push_badf("--push")
    assert (code, hub.requests) == (2, [])
    assert "not logged in to the Hub; run `hf auth login` or set HF_TOKEN" in error
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    code, _, error = push_badf("--push")
    assert (code, hub.requests) == (2, [])
    assert "HF_HUB_OFFLINE is set" in error


def test_a_hub_that_is_not_there(hub: Any, push_badf: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    code, _, error = push_badf("--push")
    assert (code, error.count("\n")) == (1, 1), error
    assert "cannot be reached" in error


def test_hf_endpoint_and_token_are_honoured(tmp_path: Path, hub: Any) -> None:
    settings = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_test", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
    command = [
        sys.executable, "-m", "equivox", "data", "push", "badf", "--repo", "org/badf", "--data", "sample",
        "-o", str(tmp_path / "out"), "--push",
    ]  # fmt: skip
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "equivox.json" in hub.repos["dataset", "org/badf"].files


@pytest.mark.parametrize("repo", ["badf", "a/b/c", "org/", "org/na me", "org/" + "x" * 97])
def test_bad_names(repo: str, tmp_path: Path, equivox: Cli) -> None:
    error = equivox.refused("data", "push", "badf", "--repo", repo, "--data", "sample", "-o", tmp_path / "out")
    assert "`repo` is written owner/name" in error


def test_bad_requests(tmp_path: Path, equivox: Cli) -> None:
    for arguments, said in (
        (["crema", "--data", "sample"], "did you mean crema_d"),
        (["crema_d"], "the corpus crema_d is needed"),
        (["crema_d", "--data", tmp_path / "gone"], "holds no built corpus crema_d"),
    ):
        assert said in equivox.refused("data", "push", *arguments, "--repo", "org/x", "-o", tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("…")
    error = equivox.refused("data", "push", "badf", "--data", "sample", "--repo", "org/x", "-o", tmp_path / "mine")
    assert "holds files that were not written here" in error
    assert (tmp_path / "mine" / "thesis.tex").is_file()


def test_every_task_can_be_published() -> None:
    from equivox.integrations.hub.dataset_folder import source_corpus

    for task in builtin_tasks().values():
        # Made-up applications are combined from words of the package: there is nothing to publish.
        assert source_corpus(task) in (*CORPORA, "made_applications")


def test_a_run_is_a_run_again(tmp_path: Path, equivox: Cli) -> None:
    import datasets
    import pyarrow.parquet as pq

    run, out = tmp_path / "run", tmp_path / "out"
    sample_run(run, "biased", "vibe_gender:story,badf_two:gender", limit=24)
    (run / "notes.html").write_text("mine")
    text = equivox.done("data", "push", run, "--repo", "org/run", "-o", out)
    planned = pq.read_table(run / "plan.parquet").num_rows
    assert f"responses: {planned:,} rows" in text
    assert not (out / ".lock").exists()
    before = json.loads((run / "scores.json").read_text("utf-8"))
    equivox("score", out, "--scoring", "n_resamples=99")
    assert json.loads((out / "scores.json").read_text("utf-8")) == before
    for config in ("responses", "plan", "annotations-rules"):
        rows = datasets.load_dataset(str(out), config, split="test", cache_dir=str(tmp_path / "cache"))
        assert len(rows) >= planned
    assert not (out / "notes.html").exists()
    assert "not-for-all-audiences" in _card(out)["tags"]


def test_the_folder_of_the_corpus_stays_at_home(tmp_path: Path, equivox: Cli) -> None:
    from equivox.dataset_builders import sample_source

    equivox("data", "build", "crema_d", "--source", sample_source("crema_d"), "--output", tmp_path / "private data")
    equivox(
        "run", "simulated:biased", "vibe_gender:story", "--data", tmp_path / "private data", "--limit", "8",
        "-o", tmp_path / "run", "--scoring", "n_resamples=99",
    )  # fmt: skip
    equivox("data", "push", tmp_path / "run", "--repo", "org/run", "-o", tmp_path / "out")
    assert str(tmp_path) in (tmp_path / "run" / "manifest.json").read_text("utf-8")
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            assert str(tmp_path).encode() not in path.read_bytes()


PRIVATE = ("hunter2", "sk-querysecret", "tok-topsecret", "/home/somebody")


@pytest.fixture
def private_run(tmp_path: Path) -> Path:
    """A run whose model has credentials in its settings, and fails with paths and addresses in its errors."""
    import equivox as package

    asked = iter(range(1000))

    def model(request: Any) -> str:
        if next(asked) % 8 == 0:
            raise OSError("https://me:hunter2@host/v1?key=sk-querysecret says no to '/home/somebody/clips/a.wav'")
        return f"A {'nurse' if next(asked) % 3 else 'pilot'} called Kim, {len(request.media[0].load()) % 3} years old."

    settings = {
        "base_url": "https://me:hunter2@host/v1?key=sk-querysecret", "extra_body": {"api_token": "tok-topsecret"},
        "chat_template": "/home/somebody/secret/template.jinja",
    }  # fmt: skip
    engine = package.FunctionEngine(model, name="private", revision="1", settings=settings)
    few = "n_resamples=99"
    package.measure(engine, "vibe_gender:story", data="sample", limit=16, output=tmp_path / "run", options=few)
    return tmp_path / "run"


def _all_text(folder: Path) -> str:
    import pyarrow.parquet as pq

    return "\n".join(
        str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    )


def test_nothing_private_is_published_with_a_run(private_run: Path, tmp_path: Path, equivox: Cli) -> None:
    # The run itself holds no credential either, but where things lie.
    assert [secret for secret in PRIVATE if secret in _all_text(private_run)] == ["/home/somebody"]
    for place, content in {
        "notes.txt": "hunter2",
        "labels/key.json": "hunter2",
        "annotations/rules/draft.csv": "hunter2",
        ".env": "hunter2",
    }.items():
        (private_run / place).parent.mkdir(exist_ok=True)
        (private_run / place).write_text(content)
    equivox.done("data", "push", private_run, "--repo", "org/run", "-o", tmp_path / "out")
    published = _all_text(tmp_path / "out")
    assert not [secret for secret in (*PRIVATE, str(tmp_path)) if secret in published]
    assert "(left out)" in published  # the settings of a function are not known to be public
    before = json.loads((private_run / "scores.json").read_text("utf-8"))
    equivox("score", tmp_path / "out", "--scoring", "n_resamples=99")
    assert json.loads((tmp_path / "out" / "scores.json").read_text("utf-8")) == before


def test_a_key_that_a_server_repeated_stops_everything(
    private_run: Path, tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "years old")
    error = equivox.refused("data", "push", private_run, "--repo", "org/run", "-o", tmp_path / "out")
    assert "responses/shard-000001.parquet would hold a secret, SOME_API_KEY" in error
    assert "years old" not in error
    # So does the token of somebody who is logged in to the Hub, which stands in a file and in no variable.
    (tmp_path / "token").write_text("years old")
    monkeypatch.delenv("SOME_API_KEY")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    error = equivox.refused("data", "push", private_run, "--repo", "org/run", "-o", tmp_path / "out")
    assert "would hold a secret, the Hub's token" in error and "years old" not in error


@pytest.mark.parametrize(("clips", "kept"), [("/data/clips/a", "clips/a"), ("/elsewhere/clips", "clips")])
def test_the_folder_of_clips_is_told_from_its_table(clips: str, kept: str) -> None:
    found = _without_places([{"table": {"$path": "/data/people.csv"}, "folder": {"$path": clips}}])
    assert found == [{"table": {"$path": "people.csv"}, "folder": {"$path": kept}}]


def test_a_pushed_run_can_be_pushed_again(private_run: Path, tmp_path: Path, equivox: Cli) -> None:
    for source, target in ((private_run, "one"), (tmp_path / "one", "two")):
        equivox.done("data", "push", source, "--repo", "org/run", "-o", tmp_path / target)
    one, two = (json.loads((tmp_path / name / "equivox.json").read_text("utf-8")) for name in ("one", "two"))
    assert one == two


def test_places_of_the_output(private_run: Path, tmp_path: Path, equivox: Cli) -> None:
    for output in (private_run, private_run.parent):
        assert "holds the run itself" in equivox.refused("data", "push", private_run, "--repo", "org/run", "-o", output)
    assert (private_run / "manifest.json").is_file()
    (tmp_path / "file").write_text("")
    error = equivox.refused("data", "push", private_run, "--repo", "org/run", "-o", tmp_path / "file" / "out")
    assert "cannot write" in error


def test_scores_of_other_responses_are_not_published(private_run: Path, tmp_path: Path, equivox: Cli) -> None:
    import pyarrow.parquet as pq

    (shard,) = (private_run / "responses").glob("*.parquet")
    table = pq.read_table(shard)
    # As if `--retry-failed` had been stopped before it scored: one more answer than the scores know of.
    assert table.column("text").null_count
    answers = ["A late answer." if text is None else text for text in table.column("text").to_pylist()]
    pq.write_table(table.set_column(1, table.schema.field(1), [answers]), shard)
    push = ("data", "push", private_run, "--repo", "org/run", "-o", tmp_path / "out")
    assert equivox(*push)[0] == 2
    state_hashes(private_run)
    assert "cannot be used" in equivox.refused(*push)
    (private_run / "scores.json").unlink()
    code, _, error = equivox(*push)
    assert code == 2 and "scores.json" in error and not (tmp_path / "out").exists()


def test_a_task_file_says_nothing_of_where_things_lie(
    clip_corpus: Callable[..., Path], tmp_path: Path, equivox: Cli
) -> None:
    task_file = clip_corpus()
    text = task_file.read_text("utf-8").replace("table: ", f"table: {task_file.parent}/")
    assert str(tmp_path) in text
    task_file.write_text(text, "utf-8")
    few = ("--scoring", "n_resamples=99")
    assert equivox("run", "simulated:biased", task_file, "-o", tmp_path / "run", *few)[0] in {0, 1}
    equivox.done("data", "push", tmp_path / "run", "--repo", "org/run", "-o", tmp_path / "out")
    assert str(tmp_path) not in _all_text(tmp_path / "out")
    assert equivox("score", tmp_path / "out", *few)[0] in {0, 1}
    equivox("data", "push", task_file, "--repo", "org/mine", "-o", tmp_path / "corpus")
    assert str(tmp_path) not in _all_text(tmp_path / "corpus")


def test_columns_of_ones_own_replace_none_of_ours(clip_corpus: Callable[..., Path], tmp_path: Path) -> None:
    import datasets

    task_file = clip_corpus()
    table = task_file.with_name("clips.csv")
    head, *rows = table.read_text("utf-8").splitlines()
    table.write_text("\n".join([f"{head},sample_id,audio", *(f"{row},mine,„ä“" for row in rows)]), "utf-8")
    written = write_dataset(str(task_file), None, tmp_path / "out", repo="org/mine")
    config = next(iter(written[0]))
    rows_back = datasets.load_dataset(str(tmp_path / "out"), config, split="test", cache_dir=str(tmp_path / "cache"))
    (task, *_) = corpus_tasks(str(task_file))
    assert rows_back["sample_id"][:] == [item.sample_id for item in samples_of(open_corpus(task.data, None), task)]
    assert len(set(rows_back["sample_id"])) == len(rows) == 48
    assert {(row["source_sample_id"], row["source_audio"]) for row in rows_back} == {("mine", "„ä“")}
    # Nobody said which language it is in.
    assert "language" not in _card(tmp_path / "out")


def test_a_table_of_texts_is_published_as_its_task_file_asks_about_it(tmp_path: Path) -> None:
    import datasets

    (tmp_path / "letters.csv").write_text("text,post\nMay {name} nurse?,nurse\nMay {name} weld?,welder\n")
    (tmp_path / "letters.yaml").write_text(
        "name: letters\ntable: letters.csv\ngroup: gender\nswap: {name: {female: [Anna], male: [Paul]}}\n"
        'questions: [{name: told, text: "{text}", attributes: [{name: tone, asks: the tone, options: [warm, cold]}]}]\n'
    )
    (tmp_path / "facts.json").write_text('{"licence": "CC0 1.0", "licence_id": "cc0-1.0"}')
    written, facts = write_dataset(str(tmp_path / "letters.yaml"), None, tmp_path / "out", repo="org/letters")
    assert (written, facts.licence) == ({"letters_gender-told": 4}, "CC0 1.0")
    rows = datasets.load_dataset(str(tmp_path / "out"), "letters_gender-told", split="test", cache_dir=str(tmp_path))
    assert sorted(zip(rows["gender"], rows["text"], strict=True)) == [
        ("female", "May Anna nurse?"), ("female", "May Anna weld?"),
        ("male", "May Paul nurse?"), ("male", "May Paul weld?"),
    ]  # fmt: skip
    assert _card(tmp_path / "out")["license"] == "cc0-1.0"
