"""Several comparisons of one run: the model is asked once, at the run or later, and everything carries their names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import Cli

import equivox as eq
from equivox.core.errors import DamageError, UsageError
from equivox.core.files import write_table
from equivox.core.task import Task
from equivox.core.variants import vary
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.run.comparing import compare_further
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import Store, response_schema, samples_path
from equivox.tasks.registry import builtin_tasks

TASK = "vibe_gender:advisory"
OPTIONS = eq.ScoringOptions(n_resamples=199)
NAMES = [TASK, "vibe_gender_by_race:advisory", "vibe_gender_by_gender_race:advisory"]


def measured(folder: Path, **settings: Any) -> eq.Result:
    model = "simulated:planted,shift=0.4,seed=1"
    return eq.measure(model, TASK, data="sample", output=folder, options=OPTIONS, **settings)


def answers(folder: Path) -> int:
    return len(Store(folder / "responses", response_schema()).table(("key",)))


def numbers(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / "scores.json").read_text())["scores"])


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> eq.Result:
    folder = tmp_path_factory.mktemp("together") / "run"
    return measured(folder, compare="gender,race,gender×race", conditions="declared,shuffled")


def test_the_model_is_asked_once_for_all_comparisons(together: eq.Result, tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone")
    assert answers(together.folder) == answers(alone.folder) == 288
    whole = {score.task: score for score in together.scores if score.attribute is None}
    assert list(whole) == [*NAMES, *(f"{name}@shuffled" for name in NAMES)] or set(whole) == {
        *NAMES, *(f"{name}@shuffled" for name in NAMES)
    }  # fmt: skip
    assert [whole[name].dimension for name in NAMES] == ["gender", "race", "gender × race"]
    # What is planted is a shift between women and men: that it is no shift between races, both designs must find.
    assert whole[TASK].value == next(score.value for score in alone.scores if score.attribute is None)
    assert whole[TASK].estimate > 20 > whole[NAMES[1]].estimate
    assert whole[NAMES[1]].ci[0] == 0


def test_a_later_comparison_is_as_if_the_run_had_it(together: eq.Result, tmp_path: Path, equivox: Cli) -> None:
    folder = tmp_path / "later"
    measured(folder, compare="gender", conditions="declared,shuffled")
    before = answers(folder)
    out = equivox.done(*("score", folder, "--compare", "race,gender×race", "--scoring", "merge=none,n_resamples=199"))
    assert "3 tasks" in out
    assert answers(folder) == before
    assert equivox("verify", folder)[0] == 0

    def keyed(scores: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {(s["task"], s["condition"], s["attribute"], s["metric"], str(s["subset"])): s for s in scores}

    assert keyed(numbers(folder)) == keyed(numbers(together.folder))
    rows = [sorted(map(str, pq.read_table(run / "plan.parquet").to_pylist())) for run in (folder, together.folder)]
    assert rows[0] == rows[1]
    # The same comparison again changes nothing, and the run goes on with the arguments that make it.
    assert equivox("score", folder, "--compare", "race", "--scoring", "merge=none,n_resamples=199")[0] == 0
    assert keyed(numbers(folder)) == keyed(numbers(together.folder))
    measured(folder, compare="gender,race,gender×race", conditions="declared,shuffled")
    assert answers(folder) == before


def test_a_limit_takes_the_same_samples_for_every_comparison(tmp_path: Path) -> None:
    measured(tmp_path / "run", compare="gender,race", limit=12)
    assert answers(tmp_path / "run") == 12


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--compare", "rac"), "did you mean race"), (("--compare", "race", "--compare", "gender"), "given twice"),
     (("--compare", "race,race"), "twice")],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_line_and_changes_nothing(
    arguments: tuple[str, ...], said: str, tmp_path: Path, equivox: Cli
) -> None:
    measured(tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert said in equivox.refused("score", tmp_path / "run", *arguments)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


def people() -> Corpus:
    """Eight speakers of two sentences; nothing is known of the last one's accent, and age describes a speaker."""
    samples = [
        Sample(
            sample_id=f"{speaker}_{sentence}",
            columns={
                "gender": "fm"[speaker % 2], "accent": "" if speaker == 7 else "xy"[speaker // 2 % 2],
                "age": ["young", "old"][speaker // 4], "speaker": f"s{speaker}", "sentence": f"t{sentence}",
                "room": "one", "hall": "a × b",
            },
            sha256=f"{speaker}_{sentence}", file_name=f"{speaker}_{sentence}.wav", problem=None, load=lambda: b"",
        )
        for speaker in range(8) for sentence in range(2)
    ]  # fmt: skip
    return Corpus(name="crema_d", fingerprint="x", samples=tuple(samples))


def test_comparisons_one_after_the_other_make_the_plan_that_all_at_once_do(tmp_path: Path) -> None:
    # The room is the same everywhere: the plan keeps it in its strata and blocks alone.
    task = replace(builtin_tasks()[TASK], strata=("sentence", "age", "room"), blocks=("room",), metadata=())

    def run(folder: Path, *compare: tuple[str, ...]) -> Path:
        execute(
            RunSpec(model="simulated:random", tasks=[task], output=folder, data="sample", compare=compare,
                    options=eq.ScoringOptions(n_resamples=99, merge="none")),
            corpora={"crema_d": people()},
        )  # fmt: skip
        return folder

    def rows(folder: Path) -> list[str]:
        return sorted(map(str, pq.read_table(folder / "plan.parquet").to_pylist()))

    together, later = (
        run(tmp_path / "together", ("gender",), ("accent",), ("gender", "accent")),
        run(tmp_path / "later"),
    )
    compare_further(later, [("accent",)])
    compare_further(later, [("gender", "accent")])
    assert rows(later) == rows(together)
    # All speakers are compared by gender, seven of eight by accent; age is held equal, as a column of each speaker.
    assert len(rows(later)) == 16 + 14 + 14
    # The two sentences of the eighth are counted, once for each comparison that leaves them out.
    told = {"crema_d by accent": 2, "crema_d by gender × accent": 2}
    assert [read_manifest(folder)["samples_without_group"] for folder in (later, together)] == [told, told]
    table = pq.read_table(later / "plan.parquet").to_pylist()
    blocks = {row["block"] for row in table if row["task"] == "vibe_gender_by_gender_accent:advisory"}
    assert blocks == {"one × young", "one × old"}
    # Samples that are fewer than the plan's requests are damage, not a comparison of those that are left.
    path = samples_path(later, "rules", TASK)
    samples = pq.read_table(path)
    write_table(path, samples.slice(0, len(samples) - 1))
    with pytest.raises(DamageError, match="fewer rows than the plan has requests"):
        compare_further(later, [("age",)])
    # A part of crossed groups that is the same everywhere is held equal by the comparison of the other part.
    task = replace(task, group=("gender", "room"), strata=("sentence",), blocks=())
    compare_further(run(tmp_path / "part"), [("gender",)])
    assert rows(tmp_path / "part") == rows(run(tmp_path / "both", ("gender", "room"), ("gender",)))
    task = replace(task, group=("gender",), strata=("sentence", "hall"))
    with pytest.raises(UsageError, match="values of sentence, hall of vibe_gender:advisory cannot be told apart"):
        compare_further(run(tmp_path / "apart"), [("accent",)])


def test_variants_name_who_asked() -> None:
    task = builtin_tasks()[TASK]
    varied: list[Task] = vary([task], compare=[("race",), ("gender",)], conditions=("audio", "silence"))
    assert [(one.name, one.asked_as) for one in varied] == [
        ("vibe_gender_by_race:advisory", ""),
        (TASK, "vibe_gender_by_race:advisory"),
        ("vibe_gender_by_race:advisory@silence", ""),
        (f"{TASK}@silence", "vibe_gender_by_race:advisory@silence"),
    ]


def test_groups_of_a_later_comparison_that_are_one_are_refused(tmp_path: Path, equivox: Cli) -> None:
    own = tmp_path / "letters.csv"
    rows = [f"Letter {n},{'fm'[n % 2]},{'north' if n % 4 < 2 else 'North '}" for n in range(8)]
    own.write_text("\n".join(["text,gender,area", *rows]))
    (tmp_path / "letters.yaml").write_text(
        "name: letters\ntable: letters.csv\ngroup: gender\nquestions:\n  - name: reply\n    text: '{text}'\n"
        "    attributes: [{name: answer, asks: the answer, options: ['yes', 'no']}]\n"
    )
    assert equivox("run", "simulated:random", tmp_path / "letters.yaml", "-o", tmp_path / "run")[0] in (0, 1)
    error = equivox.refused("score", tmp_path / "run", "--compare", "area")
    assert "`area` holds 'north' and 'North '" in error and "write them in one way" in error
