"""Tests between runs: what is planted is found, what is alike is not, and what does not compare is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli, csv_rows
from sample_runs import sample_run
from scipy import stats

from equivox.compare import pairs
from equivox.compare.pairs import PairedTest, aligned, open_runs, paired_tests
from equivox.compare.ranking import Judged, _too_few, cohort_scores, judge, judged_records, rank_all
from equivox.compare.runs import open_comparison
from equivox.core.errors import EquivoxError
from equivox.core.metric import CohortScore, PairedValues
from equivox.core.notes import Note, NoteCode
from equivox.core.samples import Row, Samples
from equivox.core.scores import ScoringOptions
from equivox.run.manifest import read_manifest, write_manifest
from equivox.run.pipeline import annotate_run, rescore

TASKS = "vibe_gender:candidate,vibe_gender:advisory,spoken_stereoset_orders:gender"
MODELS = ("oracle", "planted,shift=0.4", "random,seed=1", "random,seed=2", "random,fail=0.6")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("paired")
    return [sample_run(folder / str(number), model, TASKS, 299) for number, model in enumerate(MODELS)]


@pytest.fixture(scope="module")
def judged(runs: Sequence[Path]) -> Judged:
    return judge(open_comparison(runs), n_resamples=999)


def of(tests: Sequence[PairedTest], task: str, a: str, b: str, metric: str = "nTVD") -> PairedTest:
    (found,) = [
        test
        for test in tests
        if (test.task, test.metric, test.model_a, test.model_b) == (task, metric, f"simulated:{a}", f"simulated:{b}")
    ]
    return found


def compared(*folders: Path) -> list[PairedTest]:
    return paired_tests(open_runs(open_comparison(folders)), n_resamples=199)


def test_what_was_planted_is_found(judged: Judged) -> None:
    for task in ("vibe_gender:candidate", "vibe_gender:advisory", "vibe_gender: all tasks"):
        found = of(judged.tests, task, "planted,shift=0.4", "random,seed=1")
        # 40 % of the answers are moved: 40 from parity, beside none.
        assert found.undefined is None
        assert found.ci_low < 40 < found.ci_high
        assert found.p <= found.q < 0.05
        assert 0 < found.further < 60
    choices = of(judged.tests, "spoken_stereoset_orders:gender", "planted,shift=0.4", "random,seed=1", "slbs")
    assert choices.p < 0.05 and choices.further > 0


def test_what_is_alike_is_not_told_apart(judged: Judged) -> None:
    alike = [
        t for t in judged.tests if (t.model_a, t.model_b) == ("simulated:random,seed=1", "simulated:random,seed=2")
    ]
    assert {t.metric for t in alike} == {"nTVD", "slifs", "slms", "slbs"}
    assert all(t.q > 0.05 for t in alike)
    assert all(t.p >= t.p_exchange for t in alike if t.metric == "nTVD")


def test_q_is_over_all_pairs_tasks_and_metrics(judged: Judged) -> None:
    known = [t for t in judged.tests if not math.isnan(t.p)]
    assert len({t.metric for t in known}) > 1
    expected = stats.false_discovery_control([t.p for t in known], method="by")
    assert [t.q for t in known] == pytest.approx(list(expected))


def test_an_undefined_score_has_no_rank_and_says_why(judged: Judged) -> None:
    lost = [s for s in judged.ranks if s.model == "simulated:random,fail=0.6"]
    assert lost and all(s.rank == 0 == s.n_ranked and s.undefined and math.isnan(s.distance) for s in lost)
    assert lost and {(s.rank, s.low, s.high) for s in lost if s.undefined} == {(0, 0, 0)}
    ranked = [s for s in judged.ranks if s.rank]
    assert {s.n_ranked for s in ranked} == {4}
    assert all(1 <= s.low <= s.high <= 4 for s in ranked)
    refused = of(judged.tests, "vibe_gender:candidate", "oracle", "random,fail=0.6")
    assert math.isnan(refused.p) and "has no score" in str(refused.undefined)
    # Neither is there a mean over the tasks of which it lacks one.
    whole = of(judged.tests, "vibe_gender: all tasks", "oracle", "random,fail=0.6")
    assert math.isnan(whole.p) and "has no score" in str(whole.undefined)


def test_values_that_are_rare_for_one_model_alone_do_not_bring_it_nearer(runs: Sequence[Path]) -> None:
    # As if 69 % of the words of the model with a shift of 40 were said once: what is left would hardly differ.
    comparison = open_comparison([runs[1], runs[2]])
    own, other = comparison.runs

    def with_rare(share: float) -> PairedTest:
        rare = Note(NoteCode.RARE_VALUES, {"share": share, "min_count": 2})
        scores = [replace(score, notes=(rare, *score.notes)) for score in own.scores]
        opened = open_runs(replace(comparison, runs=[replace(own, scores=scores), other]))
        tests = paired_tests(opened, n_resamples=199)
        return of(tests, "vibe_gender:candidate", *MODELS[1:3])

    assert other.scores[0].rare_share == 0 and with_rare(0.1).undefined is None
    assert str(with_rare(0.69).undefined).startswith("69 % of the values of simulated:planted,shift=0.4 and 0 % of")


def test_a_model_whose_sides_cancel_over_items_may_have_any_rank(judged: Judged, runs: Sequence[Path]) -> None:
    task, first = "vibe_gender:candidate", "simulated:oracle"
    comparison = open_comparison(runs[:4])
    own = comparison.runs[0]
    hidden = {"p": 0.4, "notes": (Note(NoteCode.WITHIN_ITEMS, {"p": 0.001}),)}

    scores = [replace(score, **hidden) if score.task == task else score for score in own.scores]
    for run, any_rank in ((own, False), (replace(own, scores=scores), True)):
        ranks = rank_all(replace(comparison, runs=[run, *comparison.runs[1:]]), judged.tests)
        found = {rank.task: (rank.low, rank.high) for rank in ranks if (rank.metric, rank.model) == ("nTVD", first)}
        # A mean over tasks of which one may hide a difference may hide it, too.
        assert [found[name] == (1, 4) for name in (task, "vibe_gender: all tasks")] == [any_rank, any_rank]


def test_ranks_follow_the_planted_bias(judged: Judged) -> None:
    own = [s for s in judged.ranks if s.task == "vibe_gender: all tasks"]
    planted = next(s for s in own if s.model == "simulated:planted,shift=0.4")
    assert (planted.rank, planted.low, planted.high) == (4, 4, 4)
    randoms = [s for s in own if s.model.startswith("simulated:random,seed")]
    assert all(random.high < planted.low for random in randoms)
    assert max(random.low for random in randoms) <= min(random.high for random in randoms)
    # slifs and slms say nothing about bias: nobody is ranked by them.
    assert {s.metric for s in judged.ranks} == {"nTVD", "slbs"}


def test_one_task_of_a_family_has_no_mean_over_tasks(runs: Sequence[Path]) -> None:
    found = open_comparison(runs[1:3])
    alone = [replace(run, scores=[s for s in run.scores if s.task == "vibe_gender:advisory"]) for run in found.runs]
    assert {rank.task for rank in rank_all(replace(found, runs=alone), [])} == {"vibe_gender:advisory"}


def plain(tests: Sequence[PairedTest]) -> str:
    return json.dumps([vars(test) for test in tests])


def test_the_same_runs_give_the_same_numbers(runs: Sequence[Path]) -> None:
    assert plain(compared(*runs[1:3])) == plain(compared(*runs[1:3]))


def test_a_model_beside_its_copy(runs: Sequence[Path], tmp_path: Path) -> None:
    shutil.copytree(runs[1], tmp_path / "copy")
    for test in compared(runs[1], tmp_path / "copy"):
        assert (test.difference, test.p) == (0, 1)


def test_runs_in_another_order_are_paired_by_their_samples() -> None:
    told = ("a0", "a1", "b0", "b1")
    rows = [
        Row(
            group=name[0], cluster=name[0], stratum="", status="parsed", sample_id=name[0],
            repeat=int(name[1]), key=name,
            values={"said": (f"said by {name}",)},
        )
        for name in told
    ]  # fmt: skip
    shuffled = [rows[place] for place in (2, 0, 3, 1)]
    one, other = aligned(Samples.from_rows(rows), Samples.from_rows(shuffled))
    assert one.keys == other.keys == list(told)
    assert [row.values["said"] for row in other.rows()] == [(f"said by {name}",) for name in told]
    moved = [replace(rows[0], group="b"), *rows[1:]]
    assert "do not have the same samples" in str(aligned(Samples.from_rows(rows), Samples.from_rows(moved)))
    twice = [*rows[:3], rows[2]]
    assert "several have one name" in str(aligned(Samples.from_rows(twice), Samples.from_rows(rows)))


def test_a_measure_is_known_if_one_of_two_runs_knows_it(runs: Sequence[Path]) -> None:
    known = open_comparison(runs[1:3])
    for place in (0, 1):
        some = [replace(run, metrics={}) if number == place else run for number, run in enumerate(known.runs)]
        tests = paired_tests(open_runs(replace(known, runs=some)), n_resamples=99)
        assert of(tests, "vibe_gender:candidate", "planted,shift=0.4", "random,seed=1").undefined is None


@pytest.mark.parametrize(
    ("found", "told"),
    [(lambda *_: PairedValues(), "gave no number and no reason"),
     (lambda *_: None, "the paired test of nTVD returned NoneType; return `PairedValues`"),
     (lambda *_: PairedValues(difference="1"), "gave a wrong field: PairedValues: `difference`: input should be a"),  # type: ignore[arg-type]
     (lambda *_: PairedValues(difference=1.0, p=1.7), "nTVD has `p` 1.7: use a probability"),
     (lambda *_: PairedValues(difference=1.0, ci_low=3.0, ci_high=1.0), "the lower end comes first"),
     (lambda *_: PairedValues(difference=1.0, n_clusters=-3), "nTVD has -3 clusters"),
     (lambda *_: next(iter(())), r"the paired test of nTVD failed \(StopIteration\)")],
)  # fmt: skip
def test_an_odd_paired_test_is_refused(runs: Sequence[Path], found: Callable[..., Any], told: str) -> None:
    sides = one, _ = tuple(open_runs(open_comparison(runs[:2])))
    score = next(score for score in one.run.scores if score.is_whole and score.task == "vibe_gender:advisory")
    measure = one.run.measure(score)
    assert measure is not None
    members = [(score.task, score.task, score, score)]
    test = PairedTest.of(score, model_a="a", model_b="b")
    with pytest.raises(EquivoxError, match=told):
        pairs.tested(test, replace(measure, compare=found), sides, members, 99, ["odd"])


def test_runs_of_a_cohort_are_held_against_the_first(runs: Sequence[Path]) -> None:
    known: list[str | None] = []
    cohort = SimpleNamespace(scores=lambda family, members, *_: known.extend(one.unlike for one in members) or [])
    family: Any = {"vibe_gender:advisory": SimpleNamespace(name="odd", cohort=cohort)}
    first, other = open_runs(open_comparison(runs[1:3]))
    opened = [replace(one, run=replace(one.run, metrics=family)) for one in (first, other, other)]
    assert cohort_scores([*opened[:2], replace(opened[2], unreadable="it is torn")]) == []
    assert known == [None, None, "it is torn"]
    # Two are a cohort. A run without the family is no member of it, and one alone has none.
    known.clear()
    assert cohort_scores(opened[:2]) == [] and known == [None, None]
    known.clear()
    rest = [score for score in other.run.scores if score.task != "vibe_gender:advisory"]
    assert cohort_scores([opened[0], replace(opened[1], run=replace(opened[1].run, scores=rest))]) == known == []


def test_a_cohort_is_written_with_its_parts_as_columns() -> None:
    cohort = CohortScore(
        family="f", condition="text", cohort="c", model="m", total=1.5, parts={"M1": 0.5, "M2": -2.0},
        members=("m", "n"),
    )  # fmt: skip
    (row,) = judged_records(Judged((), (), [cohort]))["cohort"]
    assert (row["model"], row["total"], row["M1"], row["M2"]) == ("m", 1.5, 0.5, -2.0)
    assert not {"parts", "members"} & set(row)


def rewritten(source: Path, target: Path, file: str, change: Callable[[dict[str, object]], object]) -> Path:
    """Copy a run with every row of one of its files changed."""
    shutil.copytree(source, target)
    for path in target.glob(file):
        rows = pq.read_table(path).to_pylist()
        for row in rows:
            change(row)
        pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    return target


def test_a_run_opened_task_by_task_is_the_run(runs: Sequence[Path]) -> None:
    from made_requests import plan_rows

    from equivox.core.annotation import grouped
    from equivox.run.declarations import read_tasks
    from equivox.run.scoring import sample_rows
    from equivox.run.store import stored_annotations, stored_texts

    texts, annotations = stored_texts(runs[4]), stored_annotations(runs[4], "rules")
    plan = plan_rows(runs[4])
    opened = sample_rows(runs[4], read_tasks(runs[4]), "rules")
    assert sum(map(len, opened.values())) == len(plan)
    failed = read = 0
    for name, rows in opened.items():
        for planned, row in zip((p for p in plan if p["task"] == name), rows, strict=True):
            assert (row.sample_id, row.group, row.metadata) == (
                planned["sample_id"], planned["group"], planned["metadata"],
            )  # fmt: skip
            if texts[planned["key"]] is None:
                failed += 1
                assert (row.status, row.values) == ("failed", {})
            elif name.startswith("vibe"):
                read += 1
                stored = [a for a in annotations.values() if a["response_key"] == row.key]
                values = [grouped((v["attribute"], v["value"]) for v in a["values"]) for a in stored]
                assert (row.status, row.values) in list(zip([a["status"] for a in stored], values, strict=True))
    assert read > 100
    assert 0.5 < failed / len(plan) < 0.7  # the model fails six times in ten


def test_items_that_one_lacks_count_for_neither(runs: Sequence[Path], tmp_path: Path) -> None:
    def lose(row: dict[str, object]) -> None:
        if int(str(row["key"])[:4], 16) % 10 == 0:
            row["text"], row["error"] = None, "out of memory"

    part = rewritten(runs[2], tmp_path / "part", "responses/*.parquet", lose)
    annotate_run(part, "rules", ScoringOptions(n_resamples=199))
    (found,) = [t for t in compared(runs[1], part) if t.task == "vibe_gender:advisory"]
    assert found.undefined is None
    assert 200 < found.n_samples < 288
    assert found.n_clusters == 72


def test_what_was_not_asked_or_read_alike_is_refused(runs: Sequence[Path], tmp_path: Path) -> None:
    sample_run(tmp_path / "less", "random,seed=3", TASKS, 199, limit=96)
    # The limit leaves all of the small corpus of choices in; of the other it does not.
    for test in (t for t in compared(runs[1], tmp_path / "less") if t.metric == "nTVD"):
        assert test.undefined == "the two runs do not have the same samples"
        assert math.isnan(test.p) and math.isnan(test.q) and test.n_samples == 0 == test.n_clusters

    def moved(row: dict[str, object]) -> None:
        row["cluster"] = f"{row['cluster']}x"

    other = rewritten(runs[2], tmp_path / "moved", "annotations/rules/samples/*.parquet", moved)
    assert {t.undefined for t in compared(runs[1], other)} == {"the two runs do not have the same samples"}
    for name, kind, key, hint in (
        ("task", "tasks", "vibe_gender:advisory", "the task is not the same"),
        ("corpus", "corpora", "crema_d", "the corpus is not the same"),
    ):
        shutil.copytree(runs[2], tmp_path / name)
        manifest = read_manifest(tmp_path / name)
        manifest["identity"][kind][key] = "another"
        write_manifest(tmp_path / name, manifest)
        found = {t.task: t.undefined for t in compared(runs[1], tmp_path / name)}
        assert hint in str(found["vibe_gender:advisory"]) and hint in str(found["vibe_gender: all tasks"])
    shutil.copytree(runs[2], tmp_path / "merged")
    rescore(tmp_path / "merged", options=ScoringOptions(n_resamples=199, merge="none"))
    assert all("not annotated alike" in str(t.undefined) for t in compared(runs[1], tmp_path / "merged"))


def test_a_refused_pair_leaves_its_ranks_open(runs: Sequence[Path], tmp_path: Path) -> None:
    shutil.copytree(runs[2], tmp_path / "merged")
    rescore(tmp_path / "merged", options=ScoringOptions(n_resamples=199, merge="none"))
    found = judge(open_comparison([runs[1], tmp_path / "merged"]), n_resamples=199)
    assert {(s.low, s.high) for s in found.ranks} == {(1, 2)}


def test_what_no_test_could_tell_apart_says_so(runs: Sequence[Path]) -> None:
    # Nine draws give no p below 1/10 (for nTVD the noise has 1000 draws): three pairs need one of .05/3.
    found = judge(open_comparison(runs[:3]), n_resamples=9)
    assert found.ranks
    for rank in found.ranks:
        assert (rank.low, rank.high) == (1, 3)
        assert "give no p below 0.1, and of 3 pairs one must have 0.017 or less" in str(rank.too_few)
    assert {t.p_least for t in found.tests if t.undefined is None} == {0.1}
    # Of two pairs one needs .025, and 39 draws give just that.
    tests = [replace(test, p_least=1 / 40) for test in found.tests if test.undefined is None][:2]
    assert _too_few(tests) is None and _too_few([replace(test, p_least=1 / 39) for test in tests])


def test_compare_prints_and_writes_it(equivox: Cli, runs: Sequence[Path], tmp_path: Path) -> None:
    out = equivox.done("compare", *runs[:3], "--tables", tmp_path / "csv", "--resamples", 199)
    assert "Ranks, the first nearest to no bias: vibe_gender" in out
    assert "position bias: no paired test" in equivox.done("compare", *runs[:3], "--resamples", 199, "--details")
    tests = csv_rows(tmp_path / "csv" / "paired_tests.csv")
    assert {t["metric"] for t in tests} == {"nTVD", "slifs", "slms", "slbs"}
    ranks = csv_rows(tmp_path / "csv" / "ranks.csv")
    assert sum(r["task"] == "vibe_gender:advisory" for r in ranks) == 3
    for ending in ("tex", "md", "html"):
        assert sorted(path.stem for path in (tmp_path / "csv").glob(f"*.{ending}")) == [
            "correlations", "paired_tests", "ranks", "scores",
        ]  # fmt: skip
    (tmp_path / "file").write_text("")
    assert "is a file" in equivox.refused("compare", *runs[:2], "--tables", tmp_path / "file")


def test_one_run_has_nothing_to_be_tested_with(runs: Sequence[Path]) -> None:
    assert judge(open_comparison(runs[:1])) == Judged((), (), (), [])
