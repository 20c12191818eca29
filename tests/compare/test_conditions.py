"""Tests between conditions: a bias that needs the voice is found to need it, one that does not is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from commands import Cli, csv_rows

from equivox.compare.conditions import ConditionTest, condition_tests
from equivox.compare.pairs import open_runs
from equivox.compare.ranking import judge
from equivox.compare.runs import open_comparison
from equivox.core.scores import ScoringOptions
from equivox.core.task import Task
from equivox.core.variants import EVERY_CONDITION, vary
from equivox.engines import Engine, EngineIdentity, Request, Response, open_engine
from equivox.report.details import name_more_biased
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

TASKS = "vibe_gender:candidate,vibe_gender:advisory,spoken_stereoset_orders:gender"


class Hears(Engine):
    """A model that is biased where it hears a voice, and even-handed where it does not."""

    modalities = frozenset({"text", "audio"})

    def __init__(self, tasks: Sequence[Task], without: str) -> None:
        self.engines = {
            True: open_engine("simulated:planted,shift=0.6", tasks),
            False: open_engine(f"simulated:{without}", tasks),
        }
        self.identity = EngineIdentity(engine="simulated", model=f"hears, else {without}", revision="1")

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            yield from self.engines[request.condition == "audio"].generate([request])


def made(folder: Path, without: str) -> Path:
    tasks = resolve_tasks(TASKS)
    spec = RunSpec(
        model="simulated:hears",
        tasks=tasks,
        data="sample",
        output=folder,
        conditions=(EVERY_CONDITION,),
        options=ScoringOptions(n_resamples=199),
    )
    execute(spec, engine=Hears(vary(tasks, conditions=spec.conditions), without))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("conditions")
    return {without: made(folder / str(n), without) for n, without in enumerate(("random", "planted,shift=0.6"))}


def shown(folder: Path) -> list[ConditionTest]:
    return condition_tests(open_runs(open_comparison([folder])), n_resamples=999)


def test_a_bias_that_needs_the_voice(runs: dict[str, Path]) -> None:
    found = {(test.task, test.metric, test.model_b): test for _, test in shown(runs["random"])}
    for other in ("text_only", "silence"):
        for task in ("vibe_gender:candidate", "vibe_gender:advisory", "vibe_gender: all tasks"):
            test = found[task, "nTVD", other]
            # 60 with the voice and 0 without, by construction; the same 288 samples of 72 speakers.
            assert test.model_a == "audio" and test.undefined is None
            assert test.ci_low < 60 < test.ci_high and test.further > 30
            assert test.p <= test.q < 0.05
            assert test.n_clusters == 72
    assert {other for *_, other in found} == {"text_only", "silence"}
    tests = list(found.values())
    assert {name_more_biased(test, tests) for test in tests if test.metric == "nTVD"} == {"audio"}


def test_a_bias_that_does_not_need_the_voice(runs: dict[str, Path]) -> None:
    found = [test for _, test in shown(runs["planted,shift=0.6"]) if test.metric in ("nTVD", "slbs")]
    assert found and all(test.q > 0.05 and test.undefined is None for test in found)
    assert {name_more_biased(test, found) for test in found} <= {"no difference shown", "too few data"}


def test_a_score_that_is_undefined_in_one_condition_is_told(tmp_path: Path) -> None:
    found = [test for _, test in shown(made(tmp_path / "run", "random,fail=0.6")) if test.metric == "nTVD"]
    # Without the voice too many requests fail for a score.
    assert found and all("has no score" in str(test.undefined) for test in found)
    assert all(test.p != test.p and test.q != test.q for test in found)


def test_compare_and_report_show_them(equivox: Cli, runs: dict[str, Path], tmp_path: Path) -> None:
    out = equivox.done(*("compare", runs["random"], "--resamples", 199, "--tables", tmp_path / "csv"))
    assert "The same samples in another condition: vibe_gender" in out
    rows = csv_rows(tmp_path / "csv" / "conditions.csv")
    assert {(row["condition_a"], row["condition_b"]) for row in rows} == {("audio", "text_only"), ("audio", "silence")}
    assert (tmp_path / "csv" / "conditions.tex").is_file()


def test_a_run_in_one_condition_has_none(tmp_path: Path) -> None:
    options = ScoringOptions(n_resamples=99)
    tasks = resolve_tasks("vibe_gender:advisory")
    execute(RunSpec(model="simulated:random", tasks=tasks, data="sample", limit=24, output=tmp_path, options=options))
    assert judge(open_comparison([tmp_path])).conditions == []
