"""Several models side by side: the published correlations, Table 1's layout, q over all, caveats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import Cli, csv_rows
from made_requests import three_kinds
from made_scores import made_score
from scipy import stats

from equivox.api import measure
from equivox.compare import agreement as agreeing
from equivox.compare.asking import judges_itself, unlike_runs
from equivox.compare.dimensions import dimension_contrasts, truths
from equivox.compare.ranking import missing_cohorts
from equivox.compare.runs import (
    ComparedRun,
    Comparison,
    _metrics,
    open_comparison,
    task_correlations,
)
from equivox.core.errors import RunError, UsageError
from equivox.core.files import write_document
from equivox.core.notes import describe_design
from equivox.core.plain import split_by
from equivox.core.progress import Event, Progress
from equivox.core.samples import Row
from equivox.core.scores import Score, ScoringOptions
from equivox.core.segments import WHOLE, AnnotationScheme, Segment, SegmentAnnotation
from equivox.core.task import Task
from equivox.metrics.genres.metric import METRIC as GENRES
from equivox.metrics.ntvd.metric import METRIC
from equivox.report.checks import list_run_checks
from equivox.report.details import list_score_grids
from equivox.run.manifest import read_manifest
from equivox.run.panel import PANEL
from equivox.run.spec import RunSpec
from equivox.statistics.distance import compute_ntvd, estimate_ntvd
from equivox.tasks.files import load_task_file
from equivox.tasks.registry import builtin_tasks, resolve_tasks


def score(task: str, value: float, null_mean: float = 0.0) -> Score:
    return made_score(
        task=task, value=value, estimate=value - null_mean, p=0.01, attainable_max=100.0,
        notes=(describe_design(null_mean=null_mean),),
        undefined_reason="nothing to compare" if math.isnan(value) else None,
    )  # fmt: skip


def comparison(values: dict[str, list[float]]) -> Comparison:
    models = range(len(next(iter(values.values()))))
    return Comparison(
        [
            ComparedRun(
                f"m{m}", Path(f"m{m}"), "rules", [score(task, column[m]) for task, column in values.items()],
                dict.fromkeys(values, METRIC),
            )
            for m in models
        ],
        [],
    )  # fmt: skip


def test_scores_that_an_annotator_may_have_misread_are_marked() -> None:
    made_up = ComparedRun("simulated:random", Path("a"), "rules", [score("gender:x", 10)], {"gender": METRIC})
    by_model = replace(made_up, annotator="qwen3-8b")
    real = replace(made_up, model="vllm:org/name")
    for runs, marked in (([made_up], 0), ([by_model], 1), ([made_up, real], 1), ([by_model, real], 1)):
        codes = {check.code for run in runs for check in list_run_checks(run)}
        assert ("unchecked_judge" in codes) == bool(marked)


def test_the_first_audit_that_knows_a_score_corrects_it() -> None:
    audits: Any = [SimpleNamespace(of=lambda asked: None), SimpleNamespace(of=lambda asked: f"{asked.task} corrected")]
    asked = score("gender:x", 10)
    audited = ComparedRun("m", Path("a"), "judge", [asked], audits=audits)
    assert audited.corrected(asked) == "gender:x corrected"
    assert replace(audited, audits=audits[:1]).corrected(asked) is None


@pytest.mark.paper
def test_fig_3_from_table_1(reference_data: Path) -> None:
    models = [row for row in csv_rows(reference_data / "vibe" / "vibe_table1.csv") if row["dimension"] == "gender"]
    tasks = ("Adv", "Cast", "Shop", "Story", "Cand")
    found = {
        frozenset((c.first, c.second)): c
        for c in task_correlations(comparison({task: [float(row[task]) for row in models] for task in tasks}))
    }
    printed = csv_rows(reference_data / "vibe" / "fig3_gender_correlations.csv")
    assert len(printed) == len(found) == 10
    for row in printed:
        entry = found[frozenset((row["task1"], row["task2"]))]
        assert entry.n_models == 11
        assert round(entry.r, 2) == float(row["r_printed"])
        assert entry.ci_low < entry.r < entry.ci_high
        assert entry.p <= entry.q


def test_a_correlation_by_hand_and_by_fisher() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 1.0, 4.0, 3.0, 6.0, 5.0]
    (found,) = task_correlations(comparison({"a": x, "b": y}))
    # Deviations ±2.5 ±1.5 ±0.5: Σxy = 14.5, Σx² = Σy² = 17.5.
    assert found.r == pytest.approx(14.5 / 17.5)
    z, width = math.atanh(14.5 / 17.5), stats.norm.ppf(0.975) / math.sqrt(3)
    assert (found.ci_low, found.ci_high) == pytest.approx((math.tanh(z - width), math.tanh(z + width)))
    t = found.r * math.sqrt(4 / (1 - found.r**2))
    assert found.p == pytest.approx(2 * stats.t.sf(t, 4))


def test_what_cannot_be_correlated_says_why() -> None:
    few = task_correlations(comparison({"a": [1.0, 2.0, 3.0], "b": [1.0, 3.0, 2.0]}))[0]
    assert not math.isnan(few.r)
    assert math.isnan(few.p) and "4 models" in str(few.undefined)
    (enough,) = task_correlations(comparison({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 3.0, 2.0, 4.0]}))
    assert enough.undefined is None and enough.ci_low < enough.r < enough.ci_high
    constant = task_correlations(comparison({"a": [1.0] * 5, "b": [1.0, 2.0, 3.0, 4.0, 5.0]}))[0]
    assert math.isnan(constant.r) and constant.undefined
    lost = task_correlations(comparison({"a": [1.0, 2.0, 3.0, 4.0, math.nan], "b": [2.0, 1.0, 4.0, 3.0, 9.0]}))[0]
    assert lost.n_models == 4


def test_a_family_of_which_a_part_was_asked_says_why_it_has_no_total() -> None:
    asked = comparison({"genres:stories": [1.0, 2.0]})
    runs = [replace(run, metrics={"genres": GENRES}) for run in asked.runs]
    assert missing_cohorts(replace(asked, runs=runs)) == [GENRES.cohort.needs]
    whole = [replace(run, scores=[*run.scores, score("genres", 1.0)]) for run in runs]
    assert missing_cohorts(replace(asked, runs=whole)) == []


def run(equivox: Cli, model: str, folder: Path, *more: object, scoring: str = "n_resamples=499") -> Path:
    tasks = "vibe_gender:candidate,vibe_gender:advisory"
    equivox.done("run", model, tasks, "--data", "sample", "--output", folder, "--scoring", scoring, *more)
    return folder


def test_questions_of_one_family_can_share_a_measure() -> None:
    """A metric of somebody's own that reports an nTVD, too, made every page of the run end."""
    task = builtin_tasks()["vibe_gender:story"]
    length = replace(METRIC.measures[0], name="length")
    own = replace(METRIC, name="own", measures=(length, replace(METRIC.measures[0], title="mine")))
    asked = (task, replace(task, name="vibe_gender:own", metric=own))
    found = _metrics(asked)["vibe_gender"]
    assert found.measures == (METRIC.measures[0], length)


def test_models_by_tasks_as_printed_in_the_paper(equivox: Cli, tmp_path: Path) -> None:
    biased = run(
        equivox, "simulated:biased,refusal_gap=0.5", tmp_path / "biased", scoring="min_coverage=0.2,n_resamples=499"
    )
    oracle = run(equivox, "simulated:oracle", tmp_path / "oracle")
    out = equivox.done("compare", biased, oracle, "--tables", tmp_path / "csv")
    assert "more biased" in out
    (grid,) = list_score_grids(open_comparison([biased, oracle]).runs)
    assert grid.columns == ["model", "candidate", "advisory"]
    # Estimates near 100, a little less where few answers are left; one group declines more often (†).
    (model, *estimates), (other, *none) = grid.rows
    assert (model, other) == ("simulated:biased,refusal_gap=0.5", "simulated:oracle")
    assert all(str(text).endswith("*†") and float(str(text).rstrip("*†")) > 98 for text in estimates)
    assert none == ["0.00", "0.00"]
    scores = csv_rows(tmp_path / "csv" / "scores.csv")
    refusals = {s["model"]: s for s in scores if s["role"] == "refusal" and s["task"] == "vibe_gender:candidate"}
    # Half of one group declines, nobody of the other: 50 in the population.
    assert float(refusals["simulated:biased,refusal_gap=0.5"]["ci_low"]) < 50
    assert float(refusals["simulated:biased,refusal_gap=0.5"]["ci_high"]) > 50
    assert refusals["simulated:oracle"]["undefined_reason"] == "no_refusals"
    # Columns that the first row leaves empty are there all the same.
    assert any(row["largest_shift"] for row in scores)
    values = csv_rows(tmp_path / "csv" / "values.csv")
    mine = [v for v in values if (v["model"], v["task"], v["attribute"], v["group"]) == (
        "simulated:oracle", "vibe_gender:candidate", "competency", "female")]  # fmt: skip
    assert sum(float(v["percent"]) for v in mine) == pytest.approx(100)


def test_q_is_over_the_tests_of_each_run_whatever_is_beside_it(equivox: Cli, tmp_path: Path) -> None:
    folders = [run(equivox, f"simulated:random,seed={seed}", tmp_path / str(seed)) for seed in (1, 2)]
    for one in open_comparison(folders).runs:
        # Holm: the smaller p times 2, the other times 1; none is below the one before it.
        first, second = sorted((s for s in one.scores if s.is_whole), key=lambda score: score.p)
        assert first.q == pytest.approx(min(1.0, 2 * first.p))
        assert second.q == pytest.approx(max(first.q, second.p))
        assert one.scores == open_comparison([one.folder]).runs[0].scores


def test_the_value_shares_are_those_of_the_answers(equivox: Cli, tmp_path: Path) -> None:
    found = open_comparison([run(equivox, "simulated:biased", tmp_path / "biased")])
    named = {"hobby", "competency", "interaction_style", "cultural_fit", "compensation"}
    for (_, attribute), shares in split_by(found.runs[0].value_shares, lambda s: (s.task, s.attribute)).items():
        if attribute not in named:
            continue
        assert all(min(share.by_group.values()) == 0 for share in shares)
        assert sum(share.by_group["female"] for share in shares) == pytest.approx(100)
    other = open_comparison([run(equivox, "simulated:planted,shift=0.3", tmp_path / "other")]).runs[0]
    for (_, attribute), most_common in split_by(other.value_shares, lambda s: (s.task, s.attribute)).items():
        if attribute not in named:
            continue
        often = [sum(share.by_group.values()) for share in most_common]
        assert len(often) > 1 and often == sorted(often, reverse=True)


def test_runs_that_do_not_compare_are_told(equivox: Cli, tmp_path: Path) -> None:
    whole = run(equivox, "simulated:random", tmp_path / "whole")
    part = run(equivox, "simulated:random", tmp_path / "part", "--limit", 96)
    out = equivox.done("compare", whole, part)
    assert "`limit` differs between runs" in out
    assert "simulated:random (part)" in out
    assert "twice" in equivox.refused("compare", whole, whole)
    # The last parts of the paths may be alike, as in a folder for each night.
    moved = tmp_path / "night" / "whole"
    copytree(whole, moved)
    assert [one.model for one in open_comparison([whole, part]).runs] == [
        "simulated:random (whole)",
        "simulated:random (part)",
    ]
    several = open_comparison([whole, part, moved]).runs
    # A folder above, which may be that of a user, is shown where it is needed alone.
    ends = [f"{tmp_path.name}/whole", "part", "night/whole"]
    assert [one.model for one in several] == [f"simulated:random ({end})" for end in ends]
    code, out, err = equivox("compare", whole, part, tmp_path)
    assert (code, err.count("\n")) == (1, 1) and f"left out: {tmp_path}: " in err and "not a run" in err
    assert f"check {tmp_path.name} is left out" in " ".join(out.split())


def test_what_differs_between_runs_is_told_once() -> None:
    def manifest(**changes: object) -> dict[str, Any]:
        identity = {"tasks": {"f:t": "1"}, "corpora": {"c": "1"}, "limit": None, "seed": 0, "model": {}}
        return {"identity": identity | changes}

    one, other = comparison({"f:t": [1.0, 2.0]}).runs
    assert unlike_runs([one, other], [manifest(), manifest(tasks={"f:u": "2"})]) == []
    found = unlike_runs(
        [one, replace(other, annotator="judge", options=ScoringOptions(min_count=3, look_for=30.0))],
        [
            manifest(model={"settings": {"system_prompt": "Be fair."}}),
            manifest(tasks={"f:t": "2", "f:u": "2"}, corpora={"c": "2"}, limit=4, seed=1),
        ],
    )
    assert found == [
        "the task f:t is not the same in all runs: their numbers do not compare",
        "the corpus c is not the same in all runs: their numbers do not compare",
        "`limit` differs between runs: they did not use the same samples or seeds",
        "`seed` differs between runs: they did not use the same samples or seeds",
        "not all runs were annotated by the same annotator (m0: rules, m1: judge)",
        "not all runs were asked and scored alike (m0: asked with `system_prompt` Be fair., m1: scored with min_count "
        "3 (as declared: None); scored with look_for 30.0 (as declared: 10.0))",
    ]
    assert not one.read_by_rules
    assert "unchecked_judge" in {check.code for check in list_run_checks(one)}


def test_a_model_that_annotates_its_own_answers_is_known(equivox: Cli, tmp_path: Path) -> None:
    folder = run(equivox, "simulated:random", tmp_path / "run")
    assert read_manifest(folder)["identity"]["model"]["model"] == "random"
    for name, model in (("itself", "Random"), ("other", "random-2")):
        engine = {"engine": "endpoint", "model": model}
        place = folder / "annotations" / name / "annotator.json"
        write_document(place, {"name": name, "version": "2", "settings": {"engine": engine}})
    found = {name: judges_itself(folder, name) for name in ("itself", "other", "rules", "nobody")}
    assert [name for name, alike in found.items() if alike] == ["itself"]


def test_a_comparison_of_one_run_has_no_correlations() -> None:
    assert task_correlations(comparison({"a": [1.0], "b": [2.0]})) == []
    with pytest.raises(UsageError):
        open_comparison([Path("/nowhere")])


def test_runs_of_different_tasks_and_of_one_have_no_correlation_and_no_crash() -> None:
    one, other = comparison({"a": [1.0]}).runs[0], comparison({"b": [1.0, 2.0]}).runs[1]
    (found,) = task_correlations(Comparison([one, other], []))
    assert found.n_models == 0 and math.isnan(found.r)
    assert found.undefined == "no model has a score in both"
    assert task_correlations(comparison({"a": [1.0, 2.0]})) == []


def test_rules_on_a_real_model_are_warned_of(equivox: Cli, tmp_path: Path) -> None:
    """Told of somebody "single-minded", `rules` find `single`: tables and stderr say that they cannot know."""
    table = tmp_path / "answers.csv"
    rows = [f"{g}{s},{g},{g}{s},a,b,1,hiking and chess and yoga" for g in ("female", "male") for s in range(6)]
    table.write_text("\n".join(["sample_id,gender,speaker,sentence,emotion,level,response", *rows]) + "\n")
    code, out, err = equivox(
        *("import", table, "vibe_gender:advisory", "--model", "real", "--output", tmp_path / "run")
    )
    assert code in (0, 1), err
    assert "word lists read the answers; nobody checked them" in " ".join(out.split())


@pytest.mark.parametrize(
    ("model", "task", "warned"),
    [
        ("endpoint:model_name=m,base_url=http://127.0.0.1:9/v1", "vibe_gender:story", True),
        ("simulated:random", "vibe_gender:story", False),
        ("reference:random", "vibe_gender:story", False),
        # Choices have a parser of their own; rules leave open what it leaves open.
        ("endpoint:model_name=m,base_url=http://127.0.0.1:9/v1", "spoken_stereoset:gender", False),
    ],
)
def test_the_warning_comes_before_the_model_answers(
    model: str, task: str, warned: bool, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begins(spec: RunSpec, progress: Progress) -> None:
        progress(Event("generate", 0, 1))
        progress(Event("generate", 1, 1))
        raise RunError("stopped here")

    monkeypatch.setattr("equivox.run.pipeline.execute", begins)
    _, _, err = equivox("run", model, task, "--data", "sample", "--output", "nowhere", "-q", "--annotator", "rules")
    assert err.count("warning: the answers of endpoint:m will be read by `rules`") == warned
    assert "stopped here" in err


def test_gender_against_accent_from_table_1() -> None:
    """VIBE, section 3.2: "gender effects are often stronger than accent effects under the same task", tested.

    Advisory of the eleven models; all 2,048 exchanges of the two dimensions within models are counted by hand.
    """
    gender = [46.77, 7.66, 16.55, 2.45, 6.47, 18.83, 19.33, 7.00, 11.93, 7.14, 20.19]
    accent = [27.44, 7.53, 3.27, 3.86, 4.04, 3.54, 3.89, 2.97, 11.73, 9.72, 13.45]
    story = [[20.17, 19.38], [19.65, 4.98]]
    runs = []
    for m, (one, other) in enumerate(zip(gender, accent, strict=True)):
        scores = [
            replace(score("vibe_gender:advisory", one), dimension="gender"),
            replace(score("vibe_accent:advisory", other), dimension="accent"),
        ]
        if m < 2:
            scores += [
                replace(score("vibe_gender:story", story[m][0]), dimension="gender"),
                replace(score("vibe_accent:story", story[m][1]), dimension="accent"),
            ]
        families = dict.fromkeys(("vibe_gender", "vibe_accent"), METRIC)
        runs.append(ComparedRun(f"m{m}", Path(f"m{m}"), "rules", scores, families))
    found = {contrast.task: contrast for contrast in dimension_contrasts(Comparison(runs, []))}
    assert set(found) == {"advisory", "story", ""}
    gaps = [one - other for one, other in zip(gender, accent, strict=True)]
    advisory = found["advisory"]
    assert (advisory.first, advisory.second, advisory.n_models) == ("gender", "accent", 11)
    assert advisory.difference == pytest.approx(sum(gaps) / 11) == advisory.estimate  # 72.88 / 11 = 6.63
    signs = itertools.product((1, -1), repeat=11)
    extreme = sum(abs(sum(s * g for s, g in zip(row, gaps, strict=True))) >= abs(sum(gaps)) - 1e-9 for row in signs)
    student = stats.ttest_1samp(gaps, 0).pvalue
    assert advisory.p == pytest.approx(max(extreme / 2048, student)) and advisory.p < 0.05
    assert advisory.ci_low < advisory.difference < advisory.ci_high
    # The mean over tasks is of the models that have them all.
    assert found[""].n_models == 2
    assert found[""].difference == pytest.approx((19.33 + 0.79 + 0.13 + 14.67) / 4)
    # One shared task has no mean over tasks beside it.
    fewer = [replace(run, scores=run.scores[:2]) for run in runs]
    assert {contrast.task for contrast in dimension_contrasts(Comparison(fewer, []))} == {"advisory"}
    assert dimension_contrasts(Comparison(runs[:1], [])) == []


def _two_dimensions(first: float, second: float, null_mean: float = 4.0) -> Comparison:
    """Eight models whose estimates are these in two dimensions of one task, give or take .02."""
    runs = []
    for m in range(8):
        more = 0.02 if m % 2 else -0.02
        scores = [
            replace(score("v_gender:t", first + null_mean + more, null_mean), dimension="gender"),
            replace(score("v_accent:t", second + null_mean, null_mean), dimension="accent"),
        ]
        runs.append(
            ComparedRun(f"m{m}", Path(f"m{m}"), "rules", scores, dict.fromkeys(("v_gender", "v_accent"), METRIC))
        )
    return Comparison(runs, [])


def test_two_dimensions_are_apart_however_each_is_spread_over_values() -> None:
    """With noise of a length of 4, 10 may be 8.8 to 13.33, and 4 may be 2.8 to 7.42."""
    apart = dimension_contrasts(_two_dimensions(10, 4))[0]
    margin = float(stats.t.ppf(0.975, 7)) * stats.sem([0.02, -0.02] * 4)
    assert apart.estimate == pytest.approx(6)
    assert (apart.ci_low, apart.ci_high) == pytest.approx((8.8 - 7.42 - margin, 13.33 - 2.8 + margin), abs=0.01)
    assert apart.p == pytest.approx(2 / 2**8)
    near = dimension_contrasts(_two_dimensions(10, 6))[0]
    assert near.ci_low < 0 < near.ci_high and near.p > 0.05
    # The other way round, and of scores to which noise adds nothing.
    other = dimension_contrasts(_two_dimensions(4, 10))[0]
    assert other.p == pytest.approx(2 / 2**8) and other.ci_high < 0
    exact = dimension_contrasts(_two_dimensions(10, 9.5, 0.0))[0]
    assert exact.p == pytest.approx(2 / 2**8) and exact.ci_low > 0


@pytest.mark.parametrize("n_groups", [2, 6])
@pytest.mark.parametrize("values", [3, 8, 40])
@pytest.mark.parametrize("differ", [1, 3, 8, 40])
def test_what_an_estimate_may_stand_for(n_groups: int, values: int, differ: int) -> None:
    """Differences of many sizes in one, some or all values: the truth is among those of the mean of many estimates."""
    rng = np.random.default_rng(values)
    noise = rng.standard_normal((150, n_groups, values))
    for axis, n in ((1, n_groups), (2, values)):  # shares add up to 1, and deviations to 0
        noise = (noise - noise.mean(axis=axis, keepdims=True)) / np.sqrt(1 - 1 / n)
    whole = [slice(0, values)]
    length = float(compute_ntvd(noise, whole).mean())
    side = np.where(np.arange(n_groups) % 2 == 0, 1.0, -1.0)
    shift = side[:, None] * np.where(np.arange(values) % 2 == 0, 1.0, -1.0) * (np.arange(values) < differ)
    shift -= shift.mean(axis=1, keepdims=True)
    shift -= shift.mean(axis=0, keepdims=True)
    shift *= length / float(compute_ntvd(shift, whole))
    for size in (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0):
        moved = noise + size * shift
        estimates = [estimate_ntvd(own, np.ones_like(own), whole) for own in moved]
        one = replace(score("v:t", 0.0, length), estimate=float(np.mean(estimates)))
        least, most = truths([one])
        assert least - 0.05 * length <= size * length <= most + 0.05 * length, size


def test_agreement_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(key: str, **segments: tuple[Any, dict[str, tuple[str, ...]]]) -> Row:
        named = {name.replace("whole", WHOLE): SegmentAnnotation(*own) for name, own in segments.items()}
        return Row(group="g", cluster="c", stratum="", status="parsed", key=key, segments=named)

    def read(*hobbies: str) -> list[Row]:
        """Rows with one hobby each; "-" states none, "?" is refused and "!" could not be parsed."""
        kinds = {"?": ("refused", {"refusal": ("yes",)}), "!": ("unparsed", {"hobby": ("a",)}), "-": ("parsed", {})}
        return [
            row(f"k{place}", whole=kinds.get(told, ("parsed", {"hobby": tuple(told), "rule": (told,)})),
                **{"part#2": ("parsed", {"hobby": (told,)}), "aside": ("parsed", {"hobby": (told,)})})
            for place, told in enumerate(hobbies)
        ]  # fmt: skip

    (task,) = resolve_tasks("vibe_gender:advisory")
    (whole,) = task.annotation.asks(task)
    asked = [whole, replace(whole, name="part"), replace(whole, name="aside", alone=True)]
    task = replace(task, annotation=Asking(attributes=task.annotation.attributes, asked=tuple(asked)))
    told = {"one": {task.name: read("a", "b", "ba", "!", "-")}, "two": {task.name: read("a", "b", "ab", "b", "-")}}
    monkeypatch.setattr(agreeing, "annotators_of", lambda folder: list(told))
    monkeypatch.setattr(agreeing, "sample_rows", lambda folder, tasks, name: told[name])
    found = {one.attribute: one for one in agreeing.agreement(Path("run"), [task])}
    # What a tool reads alone, and what it stores beside the attributes of the answer, is no matter of agreement.
    assert set(found) == {"hobby", "part#2: hobby"}
    # Of the answer, four units: a, b, both in any order, and nothing stated; the fourth lacks a reading.
    assert (found["hobby"].alpha, found["hobby"].n_responses) == (1, 4)
    # Of the part, the third unit (ba, ab) and the fourth (!, b) differ.
    part = found["part#2: hobby"]
    assert part.n_responses == 5 and part.annotators == ("one", "two")
    # Four of ten coincidences lie off the diagonal; a, b, -, ba, ab and ! are given 2, 3, 2, 1, 1 and 1 times.
    assert part.alpha == pytest.approx(1 - 0.4 / ((100 - (4 + 9 + 1 + 1 + 1 + 4)) / 90))


@dataclass(frozen=True, kw_only=True)
class Asking(AnnotationScheme):
    """A scheme that asks about some segments."""

    asked: tuple[Segment, ...]

    def asks(self, task: Task) -> Sequence[Segment]:
        return self.asked


def test_an_annotator_does_not_agree_with_the_majority_that_it_is_part_of(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(agreeing, "annotators_of", lambda folder: ["one", PANEL, "two"])
    monkeypatch.setattr(agreeing, "sample_rows", lambda folder, tasks, name: read.append(name) or {})
    assert agreeing.agreement(Path("run"), []) == [] and read == ["one", "two"]


@pytest.mark.parametrize("number_first", [False, True], ids=["words first", "number first"])
def test_a_family_of_words_and_numbers_is_compared_and_reported(
    number_first: bool, equivox: Cli, tmp_path: Path
) -> None:
    runs = [str(three_kinds(tmp_path, "planted,shift=0.9", name, number_first)) for name in ("one", "two")]
    for words in (("compare", *runs), ("report", *runs, "--output", str(tmp_path / "report.html"))):
        equivox.done(*words)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(f">{words}</" in page for words in ("nTVD", "mean difference"))
    assert "shares:hire_gender:talk:decision" in equivox.done("report", runs[0], "--figure", "list")


def test_runs_with_other_questions_of_one_family_are_in_one_report(equivox: Cli, tmp_path: Path) -> None:
    three_kinds(tmp_path)
    call, _, voice = load_task_file(tmp_path / "hire.yaml")
    runs = [tmp_path / "call", tmp_path / "voice"]
    for task, output in zip((call, voice), runs, strict=True):
        measure("simulated:planted,shift=0.9", task, output=output, options=ScoringOptions(n_resamples=99))
    equivox.done("report", *runs, "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "simulated:planted,shift=0.9 (call)" in page and "nTVD" in page
