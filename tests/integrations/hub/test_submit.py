"""`equivox submit`: what is written of a run, what is refused, and the pull request on a stand-in Hub."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from sample_runs import sample_run
from scored_here import scored_here

import equivox as package
from equivox.core.coverage import Coverage
from equivox.core.files import read_document, write_document
from equivox.core.scores import Score
from equivox.integrations.hub.dataset_card import submitted_metrics
from equivox.integrations.hub.dataset_folder import scalar
from equivox.run.scoring import read_scores
from equivox.tasks.registry import builtin_tasks

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

Command = Callable[..., tuple[int, str, str]]
FEW = package.ScoringOptions(n_resamples=99)
REPOS = ("--model-repo", "org/model", "--benchmark", "org/equivox-{corpus}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = "vibe_gender:story,vibe_gender:casting,spoken_stereoset_orders:gender,badf_two:gender,genres_standin:ar"
    return sample_run(tmp_path_factory.mktemp("submit") / "run", "planted,shift=0.3", tasks, limit=16)


@pytest.fixture
def submit(run: Path, tmp_path: Path, equivox: Command) -> Command:
    def call(*arguments: object, of: Path = run) -> tuple[int, str, str]:
        usual = {**dict(zip(REPOS[::2], REPOS[1::2], strict=True)), "-o": tmp_path / "out"}
        left = [part for option in usual.items() if option[0] not in arguments for part in option]
        return equivox("submit", of, *left, *arguments)

    return call


def test_scalars_are_higher_is_better() -> None:
    score = Score(
        task="t:x", condition="audio", dimension="gender", attribute=None, role="outcome", name="nTVD", unit="percent",
        zero_means="alike", value=30.0, null_mean=10.0, estimate=20.0, estimate_unclipped=20.0,
        coverage=Coverage(requested=1, generated=1, answered=1, parsed=1, used=1),
    )  # fmt: skip
    fair = replace(score, value=9.0, estimate=0.0, estimate_unclipped=-1.0)
    tasks = builtin_tasks()

    def submitted(task: str, score: Score, **changes: object) -> float:
        return scalar(tasks[task], replace(score, **changes))  # type: ignore[arg-type]

    assert (submitted("vibe_gender:story", score), submitted("vibe_gender:story", fair)) == (80, 100)
    assert submitted("spoken_stereoset:gender", score, name="parity deviation") == 70
    assert submitted("genres:cs", score, name="M1", value=-12.0) == 88
    assert submitted("genres:cs", score, name="M3", value=-2.0) == -2
    assert submitted("genres:cs", score, name="M8", value=-0.25) == 75
    assert submitted("badf_two:gender", score, name="associations tested", estimate_unclipped=7.5) == -7.5
    assert math.isnan(submitted("vibe_gender:story", score, undefined="too little", value=math.nan))


def test_ids_are_unique_over_all_tasks() -> None:
    ids = [task_id for task in builtin_tasks().values() for task_id in submitted_metrics(task).values()]
    assert len(set(ids)) == len(ids)


def test_entries_are_those_of_the_run(submit: Command, run: Path, tmp_path: Path) -> None:
    from huggingface_hub import parse_eval_result_entries

    code, out, error = submit("--mark", "modified-data", "--revision", "a" * 40, "--source-url", "https://x.org/r")
    assert code == 0, error
    assert "Marked modified-data: the data are the embedded sample" in out
    folder = tmp_path / "out"
    files = sorted(path.name for path in (folder / ".eval_results").iterdir())
    corpora = ["badf", "crema_d", "genres", "spoken_stereoset"]
    assert files == [f"equivox-{corpus}.yaml" for corpus in corpora]
    entries = parse_eval_result_entries(yaml.safe_load((folder / ".eval_results/equivox-crema_d.yaml").read_text()))
    scores = {s.task: s for s in read_scores(run) if s.is_whole and s.name == "nTVD"}
    assert [entry.task_id for entry in entries] == [name.replace(":", "-") for name in scores]
    for entry, score in zip(entries, scores.values(), strict=True):
        assert entry.dataset_id == "org/equivox-crema_d"
        assert entry.dataset_revision == "a" * 40
        assert entry.source_url == "https://x.org/r"
        assert entry.value == pytest.approx(100 - score.estimate, abs=1e-6)
        assert entry.notes is not None
        assert "value = 100 - the estimated nTVD" in entry.notes
        assert f"{score.coverage.used} of {score.coverage.requested} responses used" in entry.notes
        assert "MODIFIED-DATA: the data are the embedded sample" in entry.notes


def test_everything_else_is_written_too(submit: Command, run: Path, tmp_path: Path) -> None:
    assert submit("--mark", "modified-data")[0] == 0
    folder = tmp_path / "out"
    declared = yaml.safe_load((folder / "benchmark/genres/eval.yaml").read_text())
    entries = yaml.safe_load((folder / ".eval_results/equivox-genres.yaml").read_text())
    assert {entry["dataset"]["task_id"] for entry in entries} <= {task["id"] for task in declared["tasks"]}
    values = json.loads((folder / "equivox.json").read_text())["values"]
    assert {entry["dataset"]["task_id"] for entry in entries} <= set(values)


def test_an_unmarked_sample_is_refused(submit: Command, tmp_path: Path) -> None:
    code, _, error = submit()
    assert (code, error.count("\n")) == (2, 1)
    assert "the data are the embedded sample" in error
    assert "--mark modified-data" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"limit": 50}, "only 50 samples per task were used"),
        ({"compare": [["race"]]}, "other columns are compared than the tasks declare (race)"),
        ({"sampling": "greedy"}, "sampling is greedy"),
    ],
)
def test_other_data_or_questions_are_named(changed: dict[str, Any], said: str, run: Path, tmp_path: Path) -> None:
    from equivox.integrations.hub.submission import Wish, departures
    from equivox.run.manifest import read_manifest

    manifest = read_manifest(run)
    manifest["command"]["data"] = "data"
    manifest["identity"]["limit"] = None
    manifest["command"] |= {key: value for key, value in changed.items() if key != "limit"}
    manifest["identity"] |= {key: value for key, value in changed.items() if key == "limit"}
    wish = Wish(run=run, model_repo="org/m", benchmark="org/b", output=tmp_path / "out")
    assert departures(manifest, {}, wish, {}) == [said]


def test_data_that_differ_from_the_published_are_named(submit: Command, tmp_path: Path, equivox: Command) -> None:
    published = tmp_path / "org--equivox-badf"
    equivox("data", "push", "badf", "--data", "sample", "--repo", "org/equivox-badf", "-o", published)
    code, out, _ = submit("--mark", "modified-data")
    assert "is not as in" not in out
    record = json.loads((published / "equivox.json").read_text())
    record["corpora"]["badf"] = "0" * 64
    (published / "equivox.json").write_text(json.dumps(record))
    code, out, _ = submit("--mark", "modified-data")
    assert code == 0
    assert "badf is not as in org/equivox-badf" in out


@pytest.mark.parametrize("record", ["{", "[]", '{"corpora": 5}'])
def test_a_record_of_published_data_that_is_none_is_one_line(record: str, submit: Command, tmp_path: Path) -> None:
    place = tmp_path / "org--equivox-crema_d"
    place.mkdir()
    (place / "equivox.json").write_text(record)
    code, out, err = submit("--mark", "modified-data")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "is no record of a data set" in err


def test_undefined_scores_are_left_out_and_said(tmp_path: Path, equivox: Command) -> None:
    from equivox.core.requests import Request

    def model(request: Request) -> str:
        if "casting" in request.task:
            raise OSError("gone")
        return f"A nurse called Kim, {len(request.media[0].load()) % 3} years, plays chess."

    engine = package.FunctionEngine(model, name="half", revision="1")
    run = tmp_path / "run"
    result = package.measure(
        engine, "vibe_gender:story,vibe_gender:casting", data="sample", limit=48, output=run, options=FEW
    )
    undefined = [score for score in result.scores if score.is_whole and not score.defined]
    assert undefined
    arguments = ["submit", run, *REPOS, "-o", tmp_path / "out", "--mark", "modified-data"]
    error = equivox.refused(*arguments)
    assert "scores are undefined" in error
    assert "--mark undefined" in error


def test_low_coverage_is_refused_and_marked(run: Path, tmp_path: Path, equivox: Command) -> None:
    def nine_tenths(score: dict[str, Any]) -> None:
        groups = score["coverage"]["requested_by_group"]
        score["coverage"]["used_by_group"] = {group: int(0.9 * n) for group, n in groups.items()}

    thin = _changed(run, tmp_path / "thin", nine_tenths)
    arguments = ["submit", thin, *REPOS, "-o", tmp_path / "out", "--mark", "modified-data"]
    error = equivox.refused(*arguments)
    assert "below the floor of 95 %" in error
    assert "--mark low-coverage" in error
    assert "Marked low-coverage: vibe_gender-story" in equivox.done(*arguments, "--mark", "low-coverage")
    equivox.done(*arguments, "--min-coverage", "0.85")


def test_bad_requests(submit: Command, tmp_path: Path, equivox: Command, run: Path) -> None:
    for arguments, said in (
        (["--mark", "modified"], "`mark` is one of undefined, low-coverage, modified-data, got 'modified'"),
        (["--benchmark", "org/one"], "the run has 4 corpora"),
        (["--model-repo", "model"], "`repo` is written owner/name"),
    ):
        code, _, error = submit(*arguments)
        assert (code, error.count("\n")) == (2, 1)
        assert said in error
        assert not (tmp_path / "out").exists()
    assert "no manifest.json" in equivox.refused("submit", tmp_path, *REPOS, "-o", tmp_path / "out")


def test_scores_are_not_written_into_their_run(run: Path, equivox: Command) -> None:
    before = sorted(run.rglob("*"))
    for board in (REPOS, ("--to", "every-eval-ever")):
        assert "is in the run" in equivox.refused("submit", run, *board, "--output", run)
    assert sorted(run.rglob("*")) == before


def test_pull_request(submit: Command, tmp_path: Path, hub: Any) -> None:
    code, _, error = submit("--mark", "modified-data", "--push")
    assert code == 2
    assert "has no repository org/model" in error
    assert (tmp_path / "out" / ".eval_results").is_dir()
    from fake_hub import Repo

    hub.repos["model", "org/model"] = Repo()
    code, out, error = submit("--mark", "modified-data", "--push")
    assert code == 0, error
    assert f"Pull request: {hub.url}/org/model/discussions/1" in out
    repo = hub.repos["model", "org/model"]
    assert repo.files == {}
    (proposed,) = repo.pull_requests
    assert proposed == {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in (tmp_path / "out" / ".eval_results").iterdir()
    }
    assert all(not math.isnan(entry["value"]) for entry in yaml.safe_load(next(iter(proposed.values()))))


def _changed(run: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Return a copy of a run in whose scores the story's nTVD was changed."""
    shutil.copytree(run, folder)
    document = read_document(folder / "scores.json")
    for score in document["scores"]:
        whole = score["attribute"] is None and score["role"] == "outcome"
        if whole and (score["task"], score["name"]) == ("vibe_gender:story", "nTVD"):
            change(score)
    document["scores"] = [score for score in document["scores"] if not score.get("gone")]
    write_document(folder / "scores.json", document)
    scored_here(folder)
    return folder


def _entry(folder: Path, corpus: str, task_id: str) -> dict[str, Any]:
    entries = yaml.safe_load((folder / f".eval_results/equivox-{corpus}.yaml").read_text())
    return next(entry for entry in entries if entry["dataset"]["task_id"] == task_id)


def test_a_value_without_its_estimate_is_no_scalar(submit: Command, run: Path, tmp_path: Path) -> None:
    def no_estimate(score: dict[str, Any]) -> None:
        score |= {"null_mean": None, "estimate": None, "estimate_unclipped": None}

    folder = _changed(run, tmp_path / "run", no_estimate)
    code, _, error = submit("--mark", "modified-data", of=folder)
    assert (code, error.count("\n")) == (2, 1)
    assert "such as vibe_gender-story (its estimate is not known)" in error
    code, out, _ = submit("--mark", "modified-data", "--mark", "undefined", of=folder)
    assert code == 0
    assert "vibe_gender-story: left out, its estimate is not known" in out
    assert "nan" not in (tmp_path / "out/.eval_results/equivox-crema_d.yaml").read_text().lower()


def test_a_score_that_is_not_there_is_undefined(submit: Command, run: Path, tmp_path: Path) -> None:
    folder = _changed(run, tmp_path / "run", lambda score: score.update(gone=True))
    code, _, error = submit("--mark", "modified-data", of=folder)
    assert code == 2
    assert "such as vibe_gender-story (it was not scored)" in error


def test_no_more_than_noise_is_no_proof_of_fairness(submit: Command, run: Path, tmp_path: Path) -> None:
    folder = _changed(
        run,
        tmp_path / "run",
        lambda score: score.update(value=9.0, null_mean=12.0, estimate=0.0, estimate_unclipped=-3.0),
    )
    assert submit("--mark", "modified-data", of=folder)[0] == 0
    entry = _entry(tmp_path / "out", "crema_d", "vibe_gender-story")
    assert entry["value"] == 100
    assert "no more than noise gives by itself, which does not prove fairness" in entry["notes"]
    assert "does not prove fairness" not in _entry(tmp_path / "out", "crema_d", "vibe_gender-casting")["notes"]


def test_notes_name_model_data_and_the_worst_group(submit: Command, run: Path, tmp_path: Path) -> None:
    from equivox.run.manifest import read_manifest

    def one_group(score: dict[str, Any]) -> None:
        coverage = score["coverage"]
        coverage["used_by_group"] = {
            **coverage["used_by_group"],
            "female": coverage["requested_by_group"]["female"] - 2,
        }
        coverage["used"] = sum(coverage["used_by_group"].values())

    folder = _changed(run, tmp_path / "run", one_group)
    assert submit("--mark", "modified-data", "--mark", "low-coverage", of=folder)[0] == 0
    notes = _entry(tmp_path / "out", "crema_d", "vibe_gender-story")["notes"]
    identity = read_manifest(run)["identity"]
    # Eight requests of each group.
    assert "14 of 16 responses used, 75 % in female, the least" in notes
    assert "annotated by rules; data" in notes
    assert "answered by simulated:planted,shift=0.3;" in notes
    assert f"data crema_d {identity['corpora']['crema_d'][:12]}, not compared with the published" in notes


def test_a_mean_that_leaves_an_attribute_out_is_no_whole_score(submit: Command, run: Path, tmp_path: Path) -> None:
    """A model that never states a trait would have the mean of the others, with all of its answers used."""

    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    document = read_document(folder / "scores.json")
    own = [s for s in document["scores"] if (s["task"], s["role"]) == ("vibe_gender:casting", "outcome")]
    (whole,) = (one for one in own if one["attribute"] is None)
    first = whole["parts"][0]
    whole |= {"parts": whole["parts"][1:], "notes": [f"{first} is not in the mean"]}
    (part,) = (one for one in own if one["attribute"] == first and not one["subset"])
    part["coverage"] |= {"used": 0, "used_by_group": dict.fromkeys(part["coverage"]["requested_by_group"], 0)}
    part |= dict.fromkeys(("value", "estimate", "ci_low", "ci_high"), None) | {"undefined": "nobody states it"}
    write_document(folder / "scores.json", document)
    scored_here(folder)
    code, _, error = submit("--mark", "modified-data", of=folder)
    told = f"vibe_gender-casting: {first} is not in the mean: nobody states it"
    assert code == 2 and told in error and "`--mark low-coverage`" in error
    assert submit("--mark", "modified-data", "--mark", "low-coverage", of=folder)[0] == 0
    notes = _entry(tmp_path / "out", "crema_d", "vibe_gender-casting")["notes"]
    assert f"LOW-COVERAGE: {told}" in notes and f"; {first} is not in the mean; " in notes


@pytest.mark.parametrize("share", ["nan", "0.1", "0", "1.5", "-1"])
def test_low_coverage_has_no_other_way_in(share: str, submit: Command, tmp_path: Path) -> None:
    code, _, error = submit("--mark", "modified-data", "--min-coverage", share)
    assert (code, error.count("\n")) == (2, 1)
    assert "`min-coverage` is a share from 0.8" in error
    assert not (tmp_path / "out").exists()


def test_scoring_otherwise_is_named(run: Path, tmp_path: Path, submit: Command, equivox: Command) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    equivox("score", folder, "--scoring", "n_resamples=99,min_coverage=0.5,min_count=3")
    code, out, error = submit("--mark", "modified-data", "--mark", "undefined", of=folder)
    assert code == 0, error
    assert "scored with min_count 3 (as declared: None); scored with min_coverage 0.5 (as declared: 0.8)" in out


def test_a_data_set_of_another_corpus_is_not_this_one(submit: Command, tmp_path: Path, equivox: Command) -> None:
    equivox("data", "push", "badf", "--data", "sample", "--repo", "o/x", "-o", tmp_path / "org--equivox-crema_d")
    code, out, _ = submit("--mark", "modified-data")
    assert code == 0
    assert "org/equivox-crema_d names no fingerprint of crema_d" in out


def test_who_has_no_recordings_can_submit(tmp_path: Path, equivox: Command) -> None:
    from equivox.dataset_builders import sample_source

    equivox("data", "build", "crema_d", "--source", sample_source("crema_d"), "--output", tmp_path / "data")
    package.measure(
        "simulated:planted,shift=0.3", "vibe_gender:story", data=tmp_path / "data", output=tmp_path / "run", options=FEW
    )
    shutil.rmtree(tmp_path / "data")
    arguments = ["submit", tmp_path / "run", *REPOS, "-o", tmp_path / "out"]
    equivox.done(*arguments)
    assert _entry(tmp_path / "out", "crema_d", "vibe_gender-story")["value"] < 100


def test_nothing_private_is_submitted(tmp_path: Path, equivox: Command) -> None:
    asked = iter(range(1000))

    def model(request: Any) -> str:
        if next(asked) % 50 == 10:
            raise OSError("no such file: '/home/somebody/a.wav'")
        return f"A {'nurse' if len(request.media[0].load()) % 3 else 'teacher'} called Kim, {next(asked) % 3 + 20}."

    settings = {"base_url": "https://me:hunter2@host/v1?key=1", "chat_template": "/home/somebody/t.jinja"}
    engine = package.FunctionEngine(model, name="private", revision="1", settings=settings)
    run = tmp_path / "run"
    package.measure(engine, "vibe_gender:story", data="sample", output=run, options=FEW)
    equivox.done("submit", run, *REPOS, "-o", tmp_path / "out", "--mark", "modified-data", "--mark", "low-coverage")
    written = "\n".join(path.read_text("utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not [secret for secret in ("hunter2", "/home/somebody", str(tmp_path)) if secret in written]


def test_where_the_disk_refuses_nothing_is_left(submit: Command, run: Path, tmp_path: Path, equivox: Command) -> None:
    (tmp_path / "file").write_text("")
    code, _, error = submit("--mark", "modified-data", "-o", tmp_path / "file" / "out")
    assert (code, error.count("\n")) == (2, 1)
    assert "cannot write" in error
    code, _, error = submit("--mark", "modified-data", "--source-url", "my page")
    assert code == 2
    assert "`source-url`" in error
