"""Tasks asked of another corpus than their own, by `--data` alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli, write_rows

from equivox.core.errors import UsageError
from equivox.core.task import IMAGE, Task
from equivox.core.variants import with_group
from equivox.dataset_builders import ClipFolder, build
from equivox.run.design import asked_of, moved_tasks, task_design
from equivox.run.scoring import read_scores
from equivox.tasks.registry import builtin_tasks, resolve_tasks

TASKS = builtin_tasks()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of recordings with the columns gender, dialect and room (a stratum), and one of drawings."""
    import numpy as np
    import soundfile
    from matplotlib import image

    folder = tmp_path_factory.mktemp("voices")
    lines = ["path,text,speaker,gender,dialect,room"]
    for n in range(16):
        speaker, gender, room = n // 2, ("female", "male")[n // 2 % 2], ("hall", "cellar")[n % 2]
        soundfile.write(folder / f"{n}.wav", np.random.default_rng(n).uniform(-0.3, 0.3, 3200), 16_000)
        lines.append(f"{n}.wav,Hello.,s{speaker},{gender},{('north', 'south')[n // 8]},{room}")
    (folder / "clips.csv").write_text("\n".join(lines) + "\n")
    build(ClipFolder(folder, name="voices", strata=("room",)), folder / "data")
    drawings = ["path,gender"]
    for n in range(8):
        image.imsave(folder / f"{n}.png", np.random.default_rng(n).uniform(size=(16, 16, 3)))
        drawings.append(f"{n}.png,{('female', 'male')[n % 2]}")
    (folder / "drawings.csv").write_text("\n".join(drawings) + "\n")
    faces = ClipFolder(folder, table="drawings.csv", name="faces", needs=("path",), media="image")
    build(faces, folder / "data")
    return folder / "data"


def test_the_corpus_says_what_carries_the_group_and_what_is_held_equal(data: Path) -> None:
    (task,) = asked_of(str(data / "voices"), [TASKS["vibe_accent:story"]])
    assert (task.name, task.data.corpus) == ("vibe_accent_on_voices:story", "voices")
    # The blocks of vibe_accent are gender, which the corpus has; its items are sentences, which the corpus has not.
    assert (task.cluster, task.strata, task.blocks, task.items) == ("speaker", ("room",), ("gender",), ())
    assert task.prompt == TASKS["vibe_accent:story"].prompt
    assert "Asked of:   voices (not stated) instead of the data above." in task.card
    assert moved_tasks([task, TASKS["vibe_accent:story"]]) == [task.name]
    assert moved_tasks(list(builtin_tasks().values())) == []
    assert moved_tasks([with_group(task, ("dialect",))]) == ["vibe_accent_on_voices_by_dialect:story"]


@pytest.mark.parametrize("where", [None, "sample", "."])
def test_nothing_changes_without_a_build(data: Path, where: str | None) -> None:
    tasks = [TASKS["vibe_gender:story"], TASKS["badf_two:gender"]]
    assert asked_of(str(data) if where == "." else where, tasks) == tasks


def test_tasks_on_that_corpus_and_corpora_of_their_own_kind_stay(data: Path) -> None:
    tasks = [TASKS["badf_two:gender"], TASKS["genres:cs"]]
    assert asked_of(str(data / "faces"), tasks) == tasks


@pytest.mark.parametrize(
    ("task", "corpus", "told"),
    [
        (TASKS["vibe_gender:story"], "faces", "sends audio, but the corpus faces holds images; choose a task"),
        (
            replace(TASKS["vibe_gender:story"], media=(IMAGE,)),
            "voices",
            "sends image, but the corpus voices holds recordings; choose a task",
        ),
        (
            TASKS["spoken_stereoset:gender"],
            "voices",
            "needs the column 'turn', which the corpus voices lacks; it has: dialect,",
        ),
    ],
)
def test_what_the_corpus_cannot_answer_is_refused_in_one_line(data: Path, task: Task, corpus: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        asked_of(str(data / corpus), [task])


def test_the_command_line_needs_data_alone(data: Path, tmp_path: Path, equivox: Cli) -> None:
    run = ("run", "simulated:planted,shift=0.4", "--output", tmp_path / "run", "--quiet")
    equivox.done(*run, "vibe_gender:advisory", "--data", data / "voices")
    assert {score.task for score in read_scores(tmp_path / "run")} == {"vibe_gender_on_voices:advisory"}
    assert equivox("score", tmp_path / "run", "--quiet")[0] == 0  # the run keeps its tasks
    for task, place, told in (
        (
            "vibe_accent:story",
            "voices",
            "vibe_accent_on_voices:story needs the column 'accent', which the corpus voices",
        ),
        ("vibe_gender:story", "", f"or ask about faces with `--data {data / 'faces'}`"),
        ("badf_two:gender,vibe_gender:story", "faces", "vibe_gender:story sends audio"),
    ):
        assert told in equivox.refused(*run, task, "--data", data / place)


@pytest.mark.parametrize(
    ("task", "data", "expected"),
    [
        # CREMA-D: 7,442 clips of 91 actors are 81 each; L2-ARCTIC: 24 speakers read 600 sentences.
        ("vibe_gender:story", None, (91, 81, 2)),
        ("vibe_accent:story", None, (24, 600, 6)),
        ("vibe_gender:story", "sample", (72, 4, 2)),
        ("vibe_accent:story", "sample", (72, 4, 6)),
    ],
)
def test_the_design_of_a_task(task: str, data: str | None, expected: tuple[int, int, int]) -> None:
    design = task_design(TASKS[task], data)
    assert (design.n_clusters, design.responses_per_cluster, design.n_groups) == expected and not design.crossed


def test_a_design_about_which_nothing_is_published(clip_corpus: Callable[..., object]) -> None:
    (task, *_) = resolve_tasks(str(clip_corpus()))
    design = task_design(task)
    assert (design.n_clusters, design.responses_per_cluster, design.n_groups) == (8, 6, 2)
    with pytest.raises(UsageError, match="by race are not published"):
        task_design(replace(TASKS["vibe_gender:story"], group=("race",)))


def test_power_counts_the_samples_of_that_corpus(data: Path) -> None:
    design = task_design(TASKS["vibe_gender:story"], str(data / "voices"))
    assert (design.n_clusters, design.responses_per_cluster, design.n_groups) == (8, 2, 2)


def test_a_column_that_is_compared_is_not_held_but_the_declared_one_is(data: Path) -> None:
    task = replace(
        TASKS["vibe_gender:story"], name="faces_gender:story", blocks=("race", "age_group"), strata=(), items=()
    )
    assert with_group(task, ("race",)) == replace(
        task, name="faces_gender_by_race:story", group=("race",), blocks=("age_group",), strata=("gender",)
    )
    # Nor is it an item: within it there would be no other group.
    assert with_group(replace(task, items=("race", "sentence")), ("race",)).items == ("sentence",)


def test_a_damaged_record_of_a_build_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "build.json").write_text("{")
    with pytest.raises(UsageError, match=r"cannot read .*build\.json \(.*\); build the corpus again"):
        asked_of(str(tmp_path), [TASKS["vibe_gender:story"]])


def test_what_has_no_other_group_beside_it_is_not_counted(tmp_path: Path, equivox: Cli) -> None:
    """Four people of each group in one place; of sixteen each, women in a second place and men in a third."""
    rows = [
        {"text": f"A {who}, number {n}.", "who": who, "place": "both" if n < 4 else f"{who}s alone"}
        for who in ("woman", "man")
        for n in range(20)
    ]
    write_rows(tmp_path / "people.csv", rows)
    file = tmp_path / "people.yaml"
    form = (
        "name: p\ntable: people.csv\ngroup: who\n{held}questions:\n"
        "  - {{name: q, text: '{{text}}', attributes: [{{name: a, asks: it, options: [b, c]}}]}}\n"
    )
    for held, clusters in (("", 40), ("strata: place\n", 8), ("blocks: place\n", 8)):
        file.write_text(form.format(held=held))
        (task,) = resolve_tasks(str(file))
        assert task_design(task).n_clusters == clusters
    file.write_text(form.format(held="strata: text\n"))
    told = equivox.refused("tasks", "plan", file)
    assert "holds text equal, but no value has samples of every group" in told
