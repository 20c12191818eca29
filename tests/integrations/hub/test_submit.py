"""`equivox submit`: what is written of a run, what is refused, and the pull request on a stand-in Hub."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from commands import Cli
from made_scores import made_score
from sample_runs import sample_run

import equivox as package
from equivox.core.coverage import Coverage
from equivox.core.errors import RunError
from equivox.core.files import read_document, write_document
from equivox.core.notes import remark
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.integrations.hub.dataset_card import submitted_metrics
from equivox.integrations.hub.dataset_folder import scalar
from equivox.run.manifest import state_hashes
from equivox.run.scoring import read_scores
from equivox.tasks.registry import builtin_tasks

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

FEW = package.ScoringOptions(n_resamples=99)
REPOS = ("--model-repo", "org/model", "--benchmark", "org/equivox-{corpus}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = "vibe_gender:story,vibe_gender:casting,spoken_stereoset_orders:gender,badf_two:gender,genres_standin:ar"
    return sample_run(tmp_path_factory.mktemp("submit") / "run", "planted,shift=0.3", tasks, limit=16)


@pytest.fixture
def submit(tmp_path: Path, equivox: Cli) -> Cli:
    """`equivox submit` to the folder `out`, of the run that is named next."""
    return equivox.given("submit", *REPOS, "-o", tmp_path / "out")


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs with changed scores pass, for tests of what is written of such scores."""
    monkeypatch.setattr("equivox.cli.show.refuse_unverified", lambda *runs: None)


def test_scalars_are_higher_is_better() -> None:
    score = Score(
        task="t:x", condition="audio", dimension="gender", attribute=None, role="outcome", metric="nTVD",
        unit="percent", value=30.0, estimate=20.0, attainable_max=100.0,
        coverage=Coverage(requested=1, generated=1, answered=1, parsed=1, used=1),
    )  # fmt: skip
    fair = replace(score, value=9.0, estimate=-1.0)
    tasks = builtin_tasks()

    def submitted(task: str, score: Score, **changes: object) -> float:
        return scalar(tasks[task], replace(score, **changes))  # type: ignore[arg-type]

    assert (submitted("vibe_gender:story", score), submitted("vibe_gender:story", fair)) == (80, 100)
    assert submitted("spoken_stereoset:gender", score, metric="parity deviation") == 70
    assert submitted("genres:cs", score, metric="M1", value=-12.0) == 88
    assert submitted("genres:cs", score, metric="M3", value=-2.0) == -2
    assert submitted("genres:cs", score, metric="M8", value=-0.25) == 75
    assert submitted("badf_two:gender", score, metric="associations tested", estimate=7.5) == -7.5
    assert math.isnan(submitted("vibe_gender:story", score, undefined_reason=remark("too little"), value=math.nan))


@pytest.mark.parametrize(
    ("gives", "told"), [(lambda score: None, "TypeError"), (lambda score: {}["male"], "KeyError"), (str, "ValueError")]
)
def test_a_scalar_of_a_plug_in_that_is_none_is_one_line(gives: Any, told: str) -> None:
    story = builtin_tasks()["vibe_gender:story"]

    def task(published: Any) -> Task:
        measures = (replace(story.metric.measures[0], published=published),)
        return replace(story, metric=replace(story.metric, measures=measures))

    with pytest.raises(RunError, match=rf"`published` of nTVD, on vibe_gender:story, failed \({told}"):
        scalar(task(gives), made_score())
    found = scalar(task(lambda score: np.float32(2)), made_score())
    assert type(found) is float and found == 2


def test_ids_are_unique_over_all_tasks() -> None:
    ids = [task_id for task in builtin_tasks().values() for task_id in submitted_metrics(task).values()]
    assert len(set(ids)) == len(ids)


def test_entries_are_those_of_the_run(submit: Cli, run: Path, tmp_path: Path) -> None:
    from huggingface_hub import parse_eval_result_entries

    out = submit.done(run, "--mark", "modified-data", "--revision", "a" * 40, "--source-url", "https://x.org/r")
    assert "Marked modified-data: the data are the embedded sample" in out
    folder = tmp_path / "out"
    files = sorted(path.name for path in (folder / ".eval_results").iterdir())
    corpora = ["badf", "crema_d", "genres", "spoken_stereoset"]
    assert files == [f"equivox-{corpus}.yaml" for corpus in corpora]
    entries = parse_eval_result_entries(yaml.safe_load((folder / ".eval_results/equivox-crema_d.yaml").read_text()))
    scores = {s.task: s for s in read_scores(run) if s.is_whole and s.metric == "nTVD"}
    assert [entry.task_id for entry in entries] == [name.replace(":", "-") for name in scores]
    for entry, score in zip(entries, scores.values(), strict=True):
        assert entry.dataset_id == "org/equivox-crema_d"
        assert entry.dataset_revision == "a" * 40
        assert entry.source_url == "https://x.org/r"
        assert entry.value == pytest.approx(100 - score.estimate, abs=1e-6)
        assert "value = 100 - the estimated nTVD" in entry.notes
        assert f"{score.coverage.used} of {score.coverage.requested} responses used" in entry.notes
        assert "MODIFIED-DATA: the data are the embedded sample" in entry.notes


def test_everything_else_is_written_too(submit: Cli, run: Path, tmp_path: Path) -> None:
    submit.done(run, "--mark", "modified-data")
    folder = tmp_path / "out"
    declared = yaml.safe_load((folder / "benchmark/genres/eval.yaml").read_text())
    entries = yaml.safe_load((folder / ".eval_results/equivox-genres.yaml").read_text())
    assert {entry["dataset"]["task_id"] for entry in entries} <= {task["id"] for task in declared["tasks"]}
    values = json.loads((folder / "equivox.json").read_text())["values"]
    assert {entry["dataset"]["task_id"] for entry in entries} <= set(values)


def test_an_unmarked_sample_is_refused(submit: Cli, run: Path, tmp_path: Path) -> None:
    error = submit.refused(run)
    assert "the data are the embedded sample" in error
    assert "--mark modified-data" in error


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


def test_data_that_differ_from_the_published_are_named(submit: Cli, run: Path, tmp_path: Path, equivox: Cli) -> None:
    published = tmp_path / "org--equivox-badf"
    equivox("data", "push", "badf", "--data", "sample", "--repo", "org/equivox-badf", "-o", published)
    assert "is not as in" not in submit.done(run, "--mark", "modified-data")
    record = json.loads((published / "equivox.json").read_text())
    record["corpora"]["badf"] = "0" * 64
    (published / "equivox.json").write_text(json.dumps(record))
    assert "badf is not as in org/equivox-badf" in submit.done(run, "--mark", "modified-data")


@pytest.mark.parametrize("record", ["{", "[]", '{"corpora": 5}'])
def test_a_record_of_published_data_that_is_none_is_one_line(
    record: str, submit: Cli, run: Path, tmp_path: Path
) -> None:
    place = tmp_path / "org--equivox-crema_d"
    place.mkdir()
    (place / "equivox.json").write_text(record)
    assert "is no record of a data set" in submit.refused(run, "--mark", "modified-data")


def test_undefined_scores_are_left_out_and_said(submit: Cli, tmp_path: Path) -> None:
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
    error = submit.refused(run, "--mark", "modified-data")
    assert "scores are undefined" in error
    assert "--mark undefined" in error


@pytest.mark.usefixtures("unverified")
def test_low_coverage_is_refused_and_marked(submit: Cli, run: Path, tmp_path: Path) -> None:
    def nine_tenths(score: dict[str, Any]) -> None:
        groups = score["coverage"]["requested_by_group"]
        score["coverage"]["used_by_group"] = {group: int(0.9 * n) for group, n in groups.items()}

    thin = submit.given(_changed(run, tmp_path / "thin", nine_tenths), "--mark", "modified-data")
    error = thin.refused()
    assert "every group needs 95 %" in error
    assert "--mark low-coverage" in error
    assert "Marked low-coverage: vibe_gender-story" in thin.done("--mark", "low-coverage")
    thin.done("--min-coverage", "0.85")


def test_bad_requests(submit: Cli, tmp_path: Path, run: Path, equivox: Cli) -> None:
    repos = dict(zip(REPOS[::2], REPOS[1::2], strict=True))
    for changed, said in (
        ({"--mark": "modified"}, "`mark` is one of undefined, low-coverage, modified-data, got 'modified'"),
        ({"--benchmark": "org/one"}, "the run has 4 corpora"),
        ({"--model-repo": "model"}, "`repo` is written owner/name"),
        ({"--benchmark": "equivox-{corpus}"}, "`repo` is written owner/name"),
    ):
        options = [part for option in (repos | changed).items() for part in option]
        assert said in equivox.refused("submit", run, *options, "-o", tmp_path / "out")
    assert "no manifest.json" in submit.refused(tmp_path)


def test_scores_are_not_written_into_their_run(run: Path, equivox: Cli) -> None:
    before = sorted(run.rglob("*"))
    assert "is inside the run" in equivox.refused("submit", run, *REPOS, "--output", run)
    assert sorted(run.rglob("*")) == before


def test_pull_request(submit: Cli, run: Path, tmp_path: Path, hub: Any) -> None:
    code, _, error = submit(run, "--mark", "modified-data", "--push")
    assert code == 2 and "has no repository org/model" in error
    assert (tmp_path / "out" / ".eval_results").is_dir()
    from fake_hub import Repo

    hub.repos["model", "org/model"] = Repo()
    assert f"Pull request: {hub.url}/org/model/discussions/1" in submit.done(run, "--mark", "modified-data", "--push")
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
        if whole and (score["task"], score["metric"]) == ("vibe_gender:story", "nTVD"):
            change(score)
    document["scores"] = [score for score in document["scores"] if not score.get("gone")]
    write_document(folder / "scores.json", document)
    state_hashes(folder)
    return folder


def _entry(folder: Path, corpus: str, task_id: str) -> dict[str, Any]:
    entries = yaml.safe_load((folder / f".eval_results/equivox-{corpus}.yaml").read_text())
    return next(entry for entry in entries if entry["dataset"]["task_id"] == task_id)


@pytest.mark.usefixtures("unverified")
def test_a_value_without_its_estimate_is_no_scalar(submit: Cli, run: Path, tmp_path: Path) -> None:
    def no_estimate(score: dict[str, Any]) -> None:
        score |= {"estimate": None}

    folder = _changed(run, tmp_path / "run", no_estimate)
    assert "such as vibe_gender-story (its estimate is not known)" in submit.refused(folder, "--mark", "modified-data")
    out = submit.done(folder, "--mark", "modified-data", "--mark", "undefined")
    assert "vibe_gender-story: left out, its estimate is not known" in out
    assert "nan" not in (tmp_path / "out/.eval_results/equivox-crema_d.yaml").read_text().lower()


@pytest.mark.usefixtures("unverified")
def test_a_score_that_is_not_there_is_undefined(submit: Cli, run: Path, tmp_path: Path) -> None:
    folder = _changed(run, tmp_path / "run", lambda score: score.update(gone=True))
    assert "such as vibe_gender-story (it was not scored)" in submit.refused(folder, "--mark", "modified-data")


@pytest.mark.usefixtures("unverified")
def test_no_more_than_noise_is_no_proof_of_fairness(submit: Cli, run: Path, tmp_path: Path) -> None:
    folder = _changed(
        run,
        tmp_path / "run",
        lambda score: score.update(value=9.0, estimate=-3.0),
    )
    submit.done(folder, "--mark", "modified-data")
    entry = _entry(tmp_path / "out", "crema_d", "vibe_gender-story")
    assert entry["value"] == 100
    assert "no more than noise gives by itself, which does not prove fairness" in entry["notes"]
    assert "does not prove fairness" not in _entry(tmp_path / "out", "crema_d", "vibe_gender-casting")["notes"]


@pytest.mark.usefixtures("unverified")
def test_notes_name_model_data_and_the_worst_group(submit: Cli, run: Path, tmp_path: Path) -> None:
    from equivox.run.manifest import read_manifest

    def one_group(score: dict[str, Any]) -> None:
        coverage = score["coverage"]
        coverage["used_by_group"] = {
            **coverage["used_by_group"],
            "female": coverage["requested_by_group"]["female"] - 2,
        }
        coverage["used"] = sum(coverage["used_by_group"].values())

    folder = _changed(run, tmp_path / "run", one_group)
    submit.done(folder, "--mark", "modified-data", "--mark", "low-coverage")
    notes = _entry(tmp_path / "out", "crema_d", "vibe_gender-story")["notes"]
    identity = read_manifest(run)["identity"]
    # Eight requests of each group.
    assert "14 of 16 responses used, 75 % in female, the least" in notes
    assert "annotated by rules; data" in notes
    assert "answered by simulated:planted,shift=0.3;" in notes
    assert f"data crema_d {identity['corpora']['crema_d'][:12]}, not compared with the published" in notes


@pytest.mark.usefixtures("unverified")
def test_a_mean_that_leaves_an_attribute_out_is_no_whole_score(submit: Cli, run: Path, tmp_path: Path) -> None:
    """A model that never states a trait would have the mean of the others, with all of its answers used."""

    folder = shutil.copytree(run, tmp_path / "run")
    document = read_document(folder / "scores.json")
    own = [s for s in document["scores"] if (s["task"], s["role"]) == ("vibe_gender:casting", "outcome")]
    (whole,) = (one for one in own if one["attribute"] is None)
    (mean_of,) = (note["values"] for note in whole["notes"] if note["code"] == "mean_of")
    first = mean_of["attributes"].pop(0)
    (part,) = (one for one in own if one["attribute"] == first and not one["subset"])
    part["coverage"] |= {"used": 0, "used_by_group": dict.fromkeys(part["coverage"]["requested_by_group"], 0)}
    part |= {"value": None, "estimate": None, "ci": [None, None], "undefined_reason": remark("nobody states it").plain}
    write_document(folder / "scores.json", document)
    state_hashes(folder)
    error = submit.refused(folder, "--mark", "modified-data")
    told = f"vibe_gender-casting: {first} is not in the mean: nobody states it"
    assert told in error and "`--mark low-coverage`" in error
    submit.done(folder, "--mark", "modified-data", "--mark", "low-coverage")
    notes = _entry(tmp_path / "out", "crema_d", "vibe_gender-casting")["notes"]
    assert f"LOW-COVERAGE: {told}" in notes


@pytest.mark.parametrize("share", ["nan", "0.1", "0", "1.5", "-1"])
def test_low_coverage_has_no_other_way_in(share: str, submit: Cli, run: Path, tmp_path: Path) -> None:
    error = submit.refused(run, "--mark", "modified-data", "--min-coverage", share)
    assert "`min-coverage` is a share from 0.8" in error


def test_scoring_otherwise_is_named(run: Path, tmp_path: Path, submit: Cli, equivox: Cli) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    equivox("score", folder, "--scoring", "n_resamples=99,min_coverage=0.5,min_count=3")
    out = submit.done(folder, "--mark", "modified-data", "--mark", "undefined")
    assert "scored with min_count 3 (as declared: None); scored with min_coverage 0.5 (as declared: 0.8)" in out


def test_a_data_set_of_another_corpus_is_not_this_one(submit: Cli, run: Path, tmp_path: Path, equivox: Cli) -> None:
    equivox("data", "push", "badf", "--data", "sample", "--repo", "o/x", "-o", tmp_path / "org--equivox-crema_d")
    assert "org/equivox-crema_d names no fingerprint of crema_d" in submit.done(run, "--mark", "modified-data")


def test_who_has_no_recordings_can_submit(submit: Cli, tmp_path: Path, equivox: Cli) -> None:
    from equivox.dataset_builders import sample_source

    equivox("data", "build", "crema_d", "--source", sample_source("crema_d"), "--output", tmp_path / "data")
    package.measure(
        "simulated:planted,shift=0.3", "vibe_gender:story", data=tmp_path / "data", output=tmp_path / "run", options=FEW
    )
    shutil.rmtree(tmp_path / "data")
    submit.done(tmp_path / "run")
    assert _entry(tmp_path / "out", "crema_d", "vibe_gender-story")["value"] < 100


def test_nothing_private_is_submitted(submit: Cli, tmp_path: Path) -> None:
    asked = iter(range(1000))

    def model(request: Any) -> str:
        if next(asked) % 50 == 10:
            raise OSError("no such file: '/home/somebody/a.wav'")
        return f"A {'nurse' if len(request.media[0].load()) % 3 else 'teacher'} called Kim, {next(asked) % 3 + 20}."

    settings = {"base_url": "https://me:hunter2@host/v1?key=1", "chat_template": "/home/somebody/t.jinja"}
    engine = package.FunctionEngine(model, name="private", revision="1", settings=settings)
    run = tmp_path / "run"
    package.measure(engine, "vibe_gender:story", data="sample", output=run, options=FEW)
    submit.done(run, "--mark", "modified-data", "--mark", "low-coverage")
    written = "\n".join(path.read_text("utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not [secret for secret in ("hunter2", "/home/somebody", str(tmp_path)) if secret in written]


def test_where_the_disk_refuses_nothing_is_left(run: Path, tmp_path: Path, equivox: Cli) -> None:
    (tmp_path / "file").write_text("")
    marked = equivox.given("submit", run, *REPOS, "--mark", "modified-data")
    assert "cannot write" in marked.refused("-o", tmp_path / "file" / "out")
    assert "`source-url`" in marked.refused("-o", tmp_path / "out", "--source-url", "my page")
