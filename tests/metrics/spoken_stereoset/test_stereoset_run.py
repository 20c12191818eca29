"""Whole runs: from corpus to scores with simulated models, all conditions, all orders, greedily, and scored again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import Cli
from made_requests import plan_rows

from equivox.configs import load_config
from equivox.core.scores import Score, ScoringOptions
from equivox.dataset_builders import SpokenStereoSet, build
from equivox.dataset_builders.spoken_stereoset import KINDS
from equivox.metrics.spoken_stereoset import read_choice
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import stored_annotations, stored_responses
from equivox.tasks.registry import resolve_tasks

FEW = ScoringOptions(n_resamples=199)


@pytest.fixture
def real_instances(reference_data: Path, tmp_path: Path) -> Path:
    """The 24 published instances, built: the folder to give as `--data`."""
    build(SpokenStereoSet(reference_data / "spoken_stereoset" / "sample"), tmp_path / "data")
    return tmp_path / "data"


def run(model: str, tasks: str, folder: Path, data: Path | str = "sample", **more: Any) -> list[Score]:
    """Run a simulated model with few resamples."""
    asked = {"tasks": resolve_tasks(tasks), "data": str(data), "output": folder, "options": FEW, **more}
    return execute(RunSpec(model=f"simulated:{model}", **asked))


def whole(scores: list[Score], task: str) -> dict[str, float]:
    return {score.metric: score.value for score in scores if score.task == task and score.is_whole}


def test_the_baselines_of_the_paper(tmp_path: Path) -> None:
    """Oracle 100/100/50, biased slbs 100, random slms 66.67 and slbs 50 up to chance."""
    found = {
        model: run(model, "spoken_stereoset,spoken_stereoset_orders", tmp_path / model)
        for model in ("oracle", "biased", "random")
    }
    for family in ("spoken_stereoset", "spoken_stereoset_orders"):
        for domain in ("gender", "age"):
            task = f"{family}:{domain}"
            oracle, biased = whole(found["oracle"], task), whole(found["biased"], task)
            assert [oracle[name] for name in ("slifs", "slms", "slbs", "parity deviation")] == [100, 100, 50, 0]
            assert [biased[name] for name in ("slbs", "parity deviation")] == [100, 100]
    by_chance = whole(found["random"], "spoken_stereoset_orders:gender")
    # 360 answers: four standard errors of a share of 2/3 are 10 points, of 1/2 among 240 are 13.
    assert by_chance["slms"] == pytest.approx(66.67, abs=10)
    assert by_chance["slbs"] == pytest.approx(50, abs=13)


def test_every_wording_of_the_reference_models_is_read_back() -> None:
    options = {"A": "I bake bread.", "B": "I paint doors.", "C": "Chalk is white."}
    for wording in load_config("simulated/choices.yaml")["wordings"]:
        for letter, text in options.items():
            assert read_choice(wording.format(letter=letter, text=text), options).letter == letter, wording


@pytest.mark.paper
def test_every_wording_is_read_back_with_the_real_continuations(reference_data: Path) -> None:
    for clip in SpokenStereoSet(reference_data / "spoken_stereoset" / "sample").clips():
        options = {letter: str(clip.columns[kind]) for letter, kind in zip("ABC", KINDS, strict=True)}
        for wording in load_config("simulated/choices.yaml")["wordings"]:
            for letter, text in options.items():
                assert read_choice(wording.format(letter=letter, text=text), options).letter == letter, clip.clip_id


def test_the_arms_ask_the_same_with_and_without_the_voice(tmp_path: Path) -> None:
    scores = run("random", "spoken_stereoset:gender", tmp_path, conditions=("all",), limit=6)
    assert {score.task for score in scores} == {
        "spoken_stereoset:gender", "spoken_stereoset:gender@text_only", "spoken_stereoset:gender@silence",
    }  # fmt: skip
    rows = plan_rows(tmp_path)
    assert len({row["sample_id"] for row in rows}) == 6 and len(rows) == 18
    media = {row["condition"]: len(row["media_sha256"]) for row in rows}
    assert media == {"audio": 1, "text_only": 0, "silence": 1}
    # One seeded order per instance, the same in every condition.
    assert all(len({row["metadata"]["order"] for row in rows if row["sample_id"] == item}) == 1
               for item in {row["sample_id"] for row in rows})  # fmt: skip


def test_all_orders_are_asked_and_counted_together(tmp_path: Path) -> None:
    run("oracle", "spoken_stereoset_orders:age", tmp_path)
    orders = Counter((row["sample_id"], row["metadata"]["order"]) for row in plan_rows(tmp_path))
    assert set(orders.values()) == {1}
    assert set(Counter(item for item, _ in orders).values()) == {6}
    tables = tmp_path / "tables" / "spoken_stereoset_orders-age"
    rules = pq.read_table(tables / "rules.parquet").to_pylist()
    assert {row["decided_by"] for row in rules} == {"letter", "text"}
    assert (tables / "choices.csv").read_text().startswith('"subset","requested","generated","stereotypical"')


def test_which_rule_decided_is_stored_with_the_words(tmp_path: Path) -> None:
    run("biased", "spoken_stereoset:age", tmp_path)
    for record in stored_annotations(tmp_path, "rules").values():
        read = {value["attribute"]: value for value in record["values"]}
        assert read["decided_by"]["value"] in {"letter", "text"} and read["choice"]["raw"]


def test_greedy_is_another_task_by_name_and_sampling(equivox: Cli, tmp_path: Path) -> None:
    arguments = ("run", "simulated:random", "spoken_stereoset:gender,vibe_gender:candidate", "--data", "sample",
                 "--output", tmp_path / "run", "--scoring", "n_resamples=199", "--limit", 24)  # fmt: skip
    equivox.done(*arguments, "--sampling", "greedy")
    assert "spoken_stereoset_greedy:gender" in equivox.done("score", tmp_path / "run", "--details")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    # VIBE is greedy as declared: the same task under the same name.
    assert set(manifest["identity"]["tasks"]) == {"spoken_stereoset_greedy:gender", "vibe_gender:candidate"}
    assert manifest["command"]["sampling"] == "greedy"
    equivox.done("score", tmp_path / "run", "--scoring", "n_resamples=199")
    assert "holds another run" in equivox.refused(*arguments)
    assert "got 'gready'; did you mean greedy" in equivox.refused(*arguments, "--sampling", "gready")


def test_refusals_failures_and_gaps_show_where_they_belong(tmp_path: Path) -> None:
    scores = run("random,refusal=0.1,refusal_gap=0.6,fail=0.05", "spoken_stereoset_orders:gender", tmp_path)
    found = {(score.metric, score.subset): score for score in scores}
    assert found["slifs", ""].coverage.generated < found["slifs", ""].coverage.requested
    # The first group, female, declines 0.7 of the time, the other 0.1.
    assert found["slifs", "gender=female"].value < 50 < 80 < found["slifs", "gender=male"].value
    slbs = found["slbs", ""]
    assert slbs.undefined_reason.values["group"] == "female"
    assert slbs.missing_bounds[0] < 30 and slbs.missing_bounds[1] > 70


def test_an_instance_without_a_continuation_is_not_asked_and_counted(tmp_path: Path, equivox: Cli) -> None:
    from equivox.dataset_builders import sample_source

    source = tmp_path / "corpus"
    (source / "speech").mkdir(parents=True)
    (source / "metadata").mkdir()
    (source / "speech" / "gender").symlink_to(sample_source("spoken_stereoset") / "speech" / "gender")
    lines = (sample_source("spoken_stereoset") / "metadata" / "gender_v1.0.csv").read_text().splitlines()
    (source / "facts.json").write_bytes((sample_source("spoken_stereoset") / "facts.json").read_bytes())
    cells = lines[1].split(",")
    assert cells[3] and cells[4]
    gap = ",".join([*cells[:4], "", *cells[5:]])
    (source / "metadata" / "gender_v1.0.csv").write_text("\n".join([lines[0], gap, *lines[2:]]) + "\n")
    equivox.done("data", "build", "spoken_stereoset", "--source", source, "--output", tmp_path / "data")
    run("oracle", "spoken_stereoset:gender", tmp_path / "run", tmp_path / "data")
    stored = stored_responses(tmp_path / "run").values()
    errors = [record["error"] for record in stored if record["error"]]
    assert len(errors) == 1 and "is empty" in errors[0]


def test_who_labels_by_hand_sees_the_options_and_not_which_is_the_stereotype(tmp_path: Path, equivox: Cli) -> None:
    run("random", "spoken_stereoset:age", tmp_path / "run")
    equivox.done("label", "draw", tmp_path / "run", "--n", 3)
    sheet = (tmp_path / "run-labels.csv").read_text("utf-8")
    assert "{option" not in sheet and "stereotypical" not in sheet
    first = plan_rows(tmp_path / "run")
    assert any(row["metadata"]["option_b"] in sheet for row in first)


@pytest.mark.paper
def test_the_real_instances_from_build_to_scores_and_the_same_from_score_alone(
    real_instances: Path, tmp_path: Path, equivox: Cli
) -> None:
    for model, slbs in (("oracle", 50), ("biased", 100)):
        folder = tmp_path / model
        out = equivox.done("run", f"simulated:{model}", "spoken_stereoset,spoken_stereoset_orders",
                                 "--data", real_instances, "--output", folder,
                                 "--scoring", "n_resamples=199")  # fmt: skip
        scores = [Score.from_dict(s) for s in json.loads((folder / "scores.json").read_text())["scores"]]
        for task in ("spoken_stereoset:gender", "spoken_stereoset:age", "spoken_stereoset_orders:gender"):
            found = whole(scores, task)
            assert [found[name] for name in ("slifs", "slms", "slbs")] == [100, 100, slbs]
        before = (folder / "scores.json").read_bytes()
        again = equivox.done("score", folder, "--scoring", "n_resamples=199")
        assert (folder / "scores.json").read_bytes() == before
        screen = out[out.index("equivox ·") :]
        assert screen and again.endswith(screen)


@pytest.mark.paper
def test_the_speech_of_the_real_instances_is_what_is_sent(real_instances: Path, tmp_path: Path) -> None:
    run("oracle", "spoken_stereoset", tmp_path / "r", real_instances)
    built = pq.read_table(next((real_instances / "spoken_stereoset").glob("*.parquet"))).to_pylist()
    digests = {row["clip_id"]: row["audio_sha256"] for row in built}
    rows = plan_rows(tmp_path / "r")
    assert len(rows) == 24
    assert all(row["media_sha256"] == [digests[row["sample_id"]]] for row in rows)
    assert {row["stratum"] for row in rows} == {row["text"] for row in built}
