"""Gates: a new run against a baseline, in each of the four outcomes, and nothing that failed ever passes."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import string
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from commands import Cli
from made_requests import APPLICATIONS, three_kinds
from made_scores import SUBJECT
from sample_runs import sample_run

from equivox.api import measure
from equivox.compare.asking import judge_of, unlike_settings
from equivox.compare.gate import (
    Check,
    Gate,
    Limits,
    _absolute,
    _against,
    _beside,
    _checked,
    _decided,
    _lacking,
    gate,
    read_limits,
)
from equivox.compare.pairs import open_runs, paired_tests
from equivox.compare.runs import ComparedRun, Origin, open_comparison
from equivox.core.errors import RequestError
from equivox.core.files import read_document, write_document
from equivox.core.scores import NAN, Score, ScoringOptions
from equivox.run.manifest import read_manifest, state_hashes, write_manifest
from equivox.run.opening import note_computed
from equivox.run.pipeline import rescore
from equivox.run.scoring import read_scores
from equivox.tasks.files import load_task_file

TASKS = "vibe_gender:candidate,vibe_gender:story"

SALARY = load_task_file(Path(APPLICATIONS))[1:]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs on the sample: models of known bias, one of which fails often, and one of fewer tasks."""
    folder = tmp_path_factory.mktemp("runs")
    models = {
        "fair": ("oracle", TASKS),
        "20": ("planted,shift=0.2", TASKS),
        "20 again": ("planted,shift=0.2,seed=1", TASKS),
        "60": ("planted,shift=0.6", TASKS),
        "failing": ("oracle,fail=0.15", TASKS),
        "silent": ("oracle,fail=1", TASKS),
        "one task": ("oracle", "vibe_gender:story"),
        "choices": ("planted,shift=0.4", "spoken_stereoset_orders:gender"),
        "other choices": ("random", "spoken_stereoset_orders:gender"),
    }
    for name, (model, tasks) in models.items():
        sample_run(folder / name, model, tasks, 499)
    return {name: folder / name for name in models}


@pytest.mark.parametrize(
    ("new", "baseline", "margin", "code", "outcome"),
    [
        ("fair", "20", "5", 0, "pass"),
        ("60", "20", "5", 3, "worse"),
        ("20 again", "20", "1", 4, "inconclusive"),
        ("20 again", "20", "60", 0, "pass"),
        ("failing", "20", "5", 1, "not comparable"),
        ("silent", "20", "90", 1, "not comparable"),
        ("one task", "20", "5", 1, "not comparable"),
        ("20", "silent", "90", 1, "not comparable"),
    ],
)
def test_each_outcome_has_its_exit_code(
    runs: dict[str, Path], new: str, baseline: str, margin: str, code: int, outcome: str, tmp_path: Path, equivox: Cli
) -> None:
    file = f"--json={tmp_path / 'gate.json'}"
    found, out, _ = equivox("gate", runs[new], "--baseline", runs[baseline], "--margin", margin, file)
    assert found == code and f": {outcome}" in out
    document = json.loads((tmp_path / "gate.json").read_text())
    assert (document["outcome"], document["exit_code"]) == (outcome, code)
    assert all(check["outcome"] == "pass" for check in document["checks"]) is (outcome == "pass")


def test_what_has_no_paired_test_says_so(runs: dict[str, Path]) -> None:
    score = read_scores(next(iter(runs.values())))[0]
    found = _against("m", score, None, 1.0, "", None)
    assert (found.outcome, found.reason) == ("not comparable", "the runs have no paired test of it")
    assert _against("m", score, None, 1.0, "it is lost", None).reason == "it is lost"


def test_the_interval_decides() -> None:
    assert _decided(-3.0, 4.9, 5.0) == "pass"
    assert _decided(5.1, 9.0, 5.0) == "worse"
    assert _decided(0.1, 9.0, 5.0) == "inconclusive"
    # The ends of the interval belong to it.
    assert _decided(-3.0, 5.0, 5.0) == "pass"
    assert _decided(5.0, 9.0, 5.0) == "inconclusive"


def test_the_worst_outcome_decides() -> None:
    checks = [
        Check(**SUBJECT, against="b", limit=5, outcome=outcome)
        for outcome in ("pass", "inconclusive", "not comparable", "worse")
    ]
    assert [Gate("model", checks[:n]).outcome for n in range(1, 5)] == [check.outcome for check in checks]
    assert Gate("model", []).outcome == "not comparable"


def test_a_model_that_has_not_changed_passes(runs: dict[str, Path], tmp_path: Path) -> None:
    """Two runs that agree in every cluster have no interval: a nightly gate was not comparable, or inconclusive."""
    again, words = (shutil.copytree(runs[name], tmp_path / name) for name in ("choices", "20"))
    for copy in (again, words):
        write_manifest(copy, read_manifest(copy) | {"created": "2026-01-02T03:00:00+00:00"})
        note_computed(copy)
    (check,) = gate(runs["choices"], again, Limits(margin={"slbs": 5.0})).checks
    for own in (check, *gate(runs["20"], words, Limits(margin={"nTVD": 1.0})).checks):
        assert (own.outcome, own.difference) == ("pass", 0.0) and math.isnan(own.low)
        assert "no cluster sets the distances of the runs apart" in own.reason
    # Clusters that all changed by as much have no interval either, and did change.
    (test,) = [t for t in paired_tests(open_runs(open_comparison([runs["choices"], again]))) if t.metric == "slbs"]
    for other in (replace(test, further=3.0), replace(test, p=0.5), replace(test, undefined="one cluster")):
        assert _against("m", other, other, 5.0, "", None).outcome == "not comparable"


def test_no_bias_of_choices_is_fifty(runs: dict[str, Path]) -> None:
    (score,) = [score for score in read_scores(runs["choices"]) if score.is_whole and score.name == "slbs"]
    (check, *_) = gate(runs["choices"], None, Limits(most={"slbs": 5.0})).checks
    assert check.value == check.difference == abs(score.headline - 50) > 5
    assert (check.low, check.high) == pytest.approx((score.ci_low - 50, score.ci_high - 50))
    assert (check.name, check.outcome) == ("spoken_stereoset_orders:gender slbs alone", "worse")
    # Beside a baseline, each has the distance of its own value.
    (paired,) = gate(runs["choices"], runs["other choices"], Limits(margin={"slbs": 90.0})).checks
    (test,) = [
        test
        for test in paired_tests(open_runs(open_comparison([runs["choices"], runs["other choices"]])))
        if test.metric == "slbs"
    ]
    assert (paired.value, paired.baseline) == (abs(test.value_a - 50), abs(test.value_b - 50))
    assert paired.name.endswith("slbs against simulated:random") and paired.limit == 90


def test_the_limit_of_a_task_comes_before_that_of_a_metric_and_of_all() -> None:
    limits = Limits(margin={"t": 1.0, "m": 2.0, "": 3.0}, most={"m": 4.0})
    assert [limits.of("margin", metric, task) for metric, task in (("m", "t"), ("m", "u"), ("n", "u"))] == [1, 2, 3]
    assert (limits.of("most", "m", "t"), limits.of("most", "n", "t")) == (4, None)
    assert read_limits(["5", "a@turn=2=0.5", "b=1e3"], "margin") == {"": 5, "a@turn=2": 0.5, "b": 1000}
    with pytest.raises(RequestError, match="`margin` is given twice for b"):
        read_limits(["b=1", "b=2"], "margin")
    for wrong in ({"margin": {"t": -0.1}}, {"most": {"": math.inf}}):
        with pytest.raises(RequestError, match="a limit must be 0 or more"):
            gate(Path("new"), Path("old"), Limits(**wrong))


@pytest.mark.parametrize(
    ("difference", "low", "high", "told"),
    [
        # Above the limit: the lower end is 6 away from the difference, the limit 2, so that (6 / 2)² are needed.
        (7.0, 1.0, 13.0, "9 times as many clusters would do"),
        (4.0, 1.0, 5.5, "2.3 times as many clusters would do"),  # (1.5 / 1)² = 2.25
        (5.0, 1.0, 9.0, ""),
        (4.0, NAN, NAN, ""),
    ],
)
def test_what_would_decide_an_open_check(difference: float, low: float, high: float, told: str) -> None:
    check = Check(**SUBJECT, against="b", limit=5.0, outcome="inconclusive", difference=difference, low=low, high=high)
    assert check.would_do == told and replace(check, outcome="pass").would_do == ""


def test_an_engine_that_was_told_to_decode_otherwise_was_not_asked_alike(runs: dict[str, Path], tmp_path: Path) -> None:
    assert unlike_settings(runs["fair"], runs["20"]) == ""
    other = shutil.copytree(runs["fair"], tmp_path / "other")
    manifest = json.loads((other / "manifest.json").read_text())
    settings = {"extra_body": {"top_k": 5}, "generation_parameters": {}, "dtype": "float32"}
    manifest["identity"]["model"]["settings"] = settings
    manifest["identity"]["corpora"]["crema_d"] = "0"
    write_manifest(other, manifest)
    told = "the corpus crema_d is not the same; `extra_body` is {'top_k': 5} and not given"
    assert unlike_settings(other, runs["20"]) == f"the two runs were not asked alike: {told}"
    # Nor was one that was told to be fair before each question.
    manifest["identity"]["model"]["settings"] = {"system_prompt": "Treat all alike."}
    write_manifest(other, manifest)
    told = "the corpus crema_d is not the same; `system_prompt` is Treat all alike. and not given"
    assert unlike_settings(other, runs["20"]) == f"the two runs were not asked alike: {told}"


def test_equal_models_pass_from_the_margin_that_is_named(runs: dict[str, Path]) -> None:
    found = gate(runs["20 again"], runs["20"], Limits(margin={"": 60.0}))
    for check in found.checks:
        assert check.decides_from == pytest.approx((check.high - check.low) / 2)
        # Ten percent of a family of 24 speakers: far above the margin of 1 that stayed undecided.
        assert 4 < check.decides_from < 20


def test_a_gap_in_what_is_lost_that_grew_is_worse_whatever_the_margin(
    runs: dict[str, Path], tmp_path: Path, equivox: Cli
) -> None:
    for gap in ("0.08", "0.18", "0.4"):
        refusing = tmp_path / gap
        sample_run(refusing, f"oracle,refusal_gap={gap}", TASKS, 499)
        asked = ("gate", refusing, "--baseline", runs["fair"], "--margin", 90, "--min-coverage", 0.1)
        code, out, _ = equivox(*asked)
        assert code == 3 and "group female loses" in out, gap
    # The same gap in both runs did not grow, and a smaller one is better.
    again = tmp_path / "again"
    sample_run(again, "oracle,refusal_gap=0.4,seed=1", TASKS, 499)
    same = gate(again, tmp_path / "0.4", Limits(margin={"": 90.0})).checks
    assert {check.outcome for check in same if check.metric == "refusal"} == {"pass"}
    fewer = gate(runs["fair"], tmp_path / "0.4", Limits(margin={"": 90.0})).checks
    assert {check.outcome for check in fewer if check.metric == "refusal"} == {"pass"}
    # Without a baseline, the distance of what is refused has the limit of any other.
    for most, outcome in ((0.0, "worse"), (90.0, "pass")):
        alone = gate(again, None, Limits(most={"": most}), min_coverage=0.1).checks
        refused = {check.task: check for check in alone if check.metric == "refusal"}
        assert sorted(refused) == sorted(TASKS.split(","))
        for check in refused.values():
            assert (check.outcome, check.against) == (outcome, "") and check.low < 40 < check.high


def test_what_is_used_as_often_as_is_asked_for_is_enough(runs: dict[str, Path]) -> None:
    (compared,) = open_comparison([runs["failing"]]).runs
    score = next(one for one in compared.scores if one.is_whole)
    halves = replace(score.coverage, used_by_group={"f": 1, "m": 2}, requested_by_group={"f": 2, "m": 2})
    half = replace(score, coverage=halves, undefined=None)
    assert _lacking(compared, half, 0.5) == ""
    assert "50% of the answers of simulated:oracle,fail=0.15 about group f were used" in _lacking(compared, half, 0.51)


def test_a_number_that_no_test_compares_is_checked_where_no_other_is(runs: dict[str, Path]) -> None:
    (run,) = open_comparison([runs["fair"]]).runs
    metrics = {
        family: replace(metric, measures=[replace(measure, compare=None) for measure in metric.measures])
        for family, metric in run.metrics.items()
    }
    checked = {score.task for score in _checked(run, {})}
    assert checked and {score.task for score in _checked(replace(run, metrics=metrics), {})} == checked


def test_failures_that_spare_no_group_did_not_grow_unequally(runs: dict[str, Path]) -> None:
    found = gate(runs["failing"], runs["fair"], Limits(margin={"": 90.0}), min_coverage=0.1).checks
    assert {check.outcome for check in found if check.metric == "failure"} == {"pass"}


def test_an_interval_of_one_cluster_in_every_group_passes_no_limit(runs: dict[str, Path]) -> None:
    (run,) = open_comparison([runs["fair"]]).runs
    # One speaker of each group: two permutations, both as far out as the answers, whatever they say.
    told = {"p_least": 1.0, "cannot_tell": "2 permutations: no p below 1"}
    alone = replace(run, scores=[replace(score, **told) if score.defined else score for score in run.scores])  # type: ignore[arg-type]
    for limit in (0.0, 100.0):
        (check,) = _absolute(alone, Limits(most={"vibe_gender:story": limit}), 0.95)
        assert check.outcome == "not comparable"
        assert check.reason.endswith("clusters say nothing (2 permutations: no p below 1)")


def test_an_interval_without_rare_values_that_differ_passes_no_limit(runs: dict[str, Path]) -> None:
    (run,) = open_comparison([runs["fair"]]).runs
    rare = replace(run, scores=[replace(score, p_cluster=0.2, p_every_value=0.001) for score in run.scores])
    (check,) = _absolute(rare, Limits(most={"vibe_gender:story": 100.0}), 0.95)
    assert check.outcome == "not comparable"
    differ = "of simulated:oracle, the rare values that are left out differ between groups (p every value 0.001)"
    assert check.reason == differ
    rare = replace(run, scores=[replace(score, removed_share=0.69, min_count=10) for score in run.scores])
    (check,) = _absolute(rare, Limits(most={"vibe_gender:story": 100.0}), 0.95)
    assert check.outcome == "not comparable"
    assert "over 20 % of the values are seen fewer than 10 times and left out" in check.reason
    # What it hides does not bring a score back that is beyond the limit.
    (story,) = (s for s in rare.scores if (s.task, s.attribute) == ("vibe_gender:story", None) and s.name == "nTVD")
    far = replace(run, scores=[replace(story, value=60.0, estimate=60.0, ci_low=50.0, ci_high=70.0, p_cluster=0.001)])
    (check,) = _absolute(far, Limits(most={"vibe_gender:story": 20.0}), 0.95)
    assert check.outcome == "worse"


def test_controls_alone_pass_no_limit(runs: dict[str, Path]) -> None:
    """A run that never sent a voice, `--conditions silence`, passed."""
    (run,) = open_comparison([runs["fair"]]).runs
    silent = [replace(score, task=f"{score.task}@silence", condition="silence") for score in run.scores]
    metrics = {**run.metrics, **{f"{family}@silence": metric for family, metric in run.metrics.items()}}
    for scores, outcome in ((silent, {"not comparable"}), ([*silent, *run.scores], {"pass"})):
        found = _absolute(replace(run, scores=scores, metrics=metrics), Limits(most={"": 100.0}), 0.95)
        assert {check.outcome for check in found} == outcome


def test_a_mean_does_not_pass_without_an_attribute_that_is_seldom_stated(runs: dict[str, Path]) -> None:
    (run,) = open_comparison([runs["fair"]]).runs
    limits = Limits(most={"vibe_gender:story": 100.0})
    assert [check.outcome for check in _absolute(run, limits, 0.95)] == ["pass"]

    def rarely(score: Score) -> Score:
        # As if 70 % of the answers to women said who has which education.
        if score.task != "vibe_gender:story" or score.name != "nTVD" or score.role != "outcome":
            return score
        if score.attribute is None:
            return replace(score, parts=tuple(name for name in score.parts if name != "education"))
        if score.attribute != "education":
            return score
        coverage = replace(score.coverage, used_by_group={"female": 70, "male": 100},
                           requested_by_group={"female": 100, "male": 100})  # fmt: skip
        return replace(score, coverage=coverage, undefined="only 70 % are usable")

    lacking = replace(run, scores=[rarely(score) for score in run.scores])
    (check,) = _absolute(lacking, limits, 0.95)
    assert check.outcome == "not comparable"
    assert check.reason == "simulated:oracle has no score of education: only 70 % are usable"


@pytest.mark.parametrize(
    ("further", "named"), [({"seed": 3}, "`seed` is 3 and 0"), ({"limit": 96}, "`limit` is 96 and not given")]
)
def test_runs_that_were_not_asked_alike_are_not_comparable(
    runs: dict[str, Path], tmp_path: Path, further: dict[str, int], named: str
) -> None:
    other = tmp_path / "other"
    sample_run(other, "oracle", TASKS, 499, **further)
    found = gate(other, runs["20"], Limits(margin={"": 90.0}))
    assert found.outcome == "not comparable"
    assert all(named in check.reason for check in found.checks if check.metric == "nTVD")


def test_a_judge_whose_server_answered_by_another_name_is_another_judge(runs: dict[str, Path], tmp_path: Path) -> None:
    """Names such as gpt-4o or latest move to another version between two nights."""
    other = shutil.copytree(runs["fair"], tmp_path / "other")
    manifest = read_manifest(other) | {"created": "2026-01-02T03:00:00+00:00"}
    served = {"rules": ["judge-2026-01-02"]}
    alike, moved = ({**manifest, "annotators_served_as": how} for how in ({"another": ["x"]}, served))
    outcomes = []
    for one in (alike, moved):
        write_manifest(other, one)
        note_computed(other)
        outcomes.append(gate(other, runs["fair"], Limits(margin={"": 60.0})))
    assert [found.outcome for found in outcomes] == ["pass", "not comparable"]
    assert all("not annotated alike" in check.reason for check in outcomes[1].checks)
    assert "(answered by judge-2026-01-02)" in outcomes[1].caveats[0]
    assert judge_of(other, "rules") != judge_of(runs["fair"], "rules")


def test_units_that_were_asked_alike_were_so_in_later_turns_too(runs: dict[str, Path]) -> None:
    run = replace(open_comparison([runs["20"]]).runs[0], origin=Origin(alike={"vibe_gender:story": 20}))
    asked = ("vibe_gender:story", "vibe_gender:story@turn=2", "vibe_gender@turn=2", "vibe_gender:candidate@turn=2")
    assert [run.alike(task) for task in asked] == [20, 20, 20, 0]


def test_a_run_is_not_held_against_itself(runs: dict[str, Path]) -> None:
    with pytest.raises(RequestError, match="`baseline` is the new run itself"):
        gate(runs["20"], runs["20"], Limits(margin={"": 90.0}))


def test_a_run_is_not_held_against_a_copy_of_itself(runs: dict[str, Path], tmp_path: Path) -> None:
    """A job that copies last night's folder and runs into it asks nothing: no model has answered twice."""
    copy = shutil.copytree(runs["20"], tmp_path / "copy")
    rescore(copy, options=ScoringOptions(n_resamples=99))
    with pytest.raises(RequestError, match="copies of one run, which began 20"):
        gate(copy, runs["20"], Limits(margin={"": 90.0}))


def test_the_columns_stand_on_one_scale(runs: dict[str, Path]) -> None:
    for check in gate(runs["60"], runs["20"], Limits(margin={"": 5.0})).checks:
        assert check.value - check.baseline == pytest.approx(check.difference)


def test_scores_that_the_answers_do_not_give_decide_nothing(
    runs: dict[str, Path], tmp_path: Path, equivox: Cli
) -> None:
    for restated in (False, True):
        forged = shutil.copytree(runs["60"], tmp_path / f"forged-{restated}")
        document = read_document(forged / "scores.json")
        for score in document["scores"]:
            score.update(value=0.0, estimate=0.0, ci_low=0.0, ci_high=0.0)
        write_document(forged / "scores.json", document)
        if restated:
            state_hashes(forged)
        assert equivox("gate", forged, "--max", 5)[0] == 2


def test_the_mean_over_tasks_decides_smaller_margins(runs: dict[str, Path]) -> None:
    single = gate(runs["20 again"], runs["20"], Limits(margin={"": 5.0}))
    (mean,) = gate(runs["20 again"], runs["20"], Limits(margin={"": 5.0}), overall=True).checks
    assert mean.task == "vibe_gender: all tasks"
    assert mean.decides_from < min(check.decides_from for check in single.checks)
    gone, *losses = gate(runs["failing"], runs["20"], Limits(margin={"": 50.0}), overall=True).checks
    assert gone.outcome == "not comparable" and gone.reason.startswith("vibe_gender:")  # which of them
    assert {check.metric for check in losses} == {"failure"}


def test_an_absolute_limit_holds_for_tasks_beside_a_mean_over_them(runs: dict[str, Path]) -> None:
    """With `overall` a model that was 60 from no bias passed `--max 5`, without a word about it."""
    limits = Limits(margin={"": 90.0}, most={"nTVD": 5.0})
    *alone, mean = gate(runs["60"], runs["20"], limits, overall=True).checks
    assert (mean.task, mean.outcome) == ("vibe_gender: all tasks", "pass")
    assert sorted((check.task, check.outcome) for check in alone) == [(task, "worse") for task in TASKS.split(",")]


def test_an_absolute_limit_needs_no_baseline(runs: dict[str, Path]) -> None:
    def outcomes(run: str, most: float) -> set[str]:
        found = gate(runs[run], None, Limits(most={"nTVD": most})).checks
        return {check.outcome for check in found if check.metric == "nTVD"}

    assert outcomes("fair", 20) == {"pass"}
    assert outcomes("60", 40) == {"worse"}
    assert outcomes("20", 20) == {"inconclusive"}
    assert outcomes("failing", 100) == outcomes("silent", 100) == {"not comparable"}


def test_an_undecided_check_can_be_told_to_pass_or_fail(runs: dict[str, Path], equivox: Cli) -> None:
    asked = ("gate", runs["20 again"], "--baseline", runs["20"], "--margin", 1, "--inconclusive")
    assert [equivox(*asked, told)[0] for told in ("fail", "pass")] == [3, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--margin", "5"], "`margin` is a distance from a baseline"),
        ([], "nothing is checked; give `--margin` with `--baseline`"),
        (["--max", "nTVd=5"], "no checked number is called 'nTVd'; did you mean nTVD"),
        (["--max", "much"], "`max` is a number, or NAME=number, got 'much'"),
        (["--max", "=5"], "`max` is a number, or NAME=number, got '=5'"),
        (["--max", "nan"], "a limit must be 0 or more, got nan"),
        (["--max", "5", "--max", "6"], "`max` is given twice"),
        (["--max", "5", "--overall"], "has no number that a limit could hold for"),
        (["--max", "5", "--inconclusive", "maybe"], "`inconclusive` is one of inconclusive, pass, fail"),
    ],
)
def test_bad_limits_are_one_line(runs: dict[str, Path], options: list[str], message: str, equivox: Cli) -> None:
    assert message in equivox.refused("gate", runs["20"], *options)


def test_a_metric_that_needs_code_says_which_file_to_name(runs: dict[str, Path], tmp_path: Path, equivox: Cli) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs["20"], run)
    declared = json.dumps(read_document(run / "tasks.json"))
    code = "equivox_task_files.mine_0123456789abcdef:METRIC"
    write_document(run / "tasks.json", json.loads(declared.replace("equivox.metrics.ntvd.metric:METRIC", code)))
    state_hashes(run)
    note_computed(run)
    assert "the run needs code of mine.py" in equivox.refused("gate", run, "--max", 5)


def test_the_workflow_file_runs_on_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equivox: Cli) -> None:
    workflow = yaml.safe_load((Path(__file__).parents[2] / "examples" / "ci" / "fairness.yml").read_text())
    monkeypatch.chdir(tmp_path)
    given = workflow["env"]
    steps = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    told = [string.Template(step).substitute(given) for step in steps if step.startswith("equivox ")]
    assert len(told) == 3
    assert [equivox(*shlex.split(line)[1:])[0] for line in told] == [0, 0, 0]
    assert json.loads((tmp_path / "gate.json").read_text())["outcome"] == "pass"


def test_a_limit_without_a_name_is_no_limit_in_several_units(equivox: Cli, tmp_path: Path) -> None:
    old, new = three_kinds(tmp_path, name="old"), three_kinds(tmp_path, "planted,shift=0.5", "new")
    arguments = ("gate", str(new), "--baseline", str(old), "--margin", "90")
    assert 'give hire_gender:voice a limit of its own: `--margin "hire_gender:voice=90"`' in equivox.refused(*arguments)
    code, out, _ = equivox(*arguments, "--margin", "hire_gender:voice=0.1", "--margin", "hire_gender:talk@turn=2=95")
    limits = {line.split()[1]: line.split()[-2] for line in out.splitlines() if "hire_gender" in line}
    assert (limits["hire_gender:voice"], limits["hire_gender:talk@turn=2"]) == ("0.1", "95")
    assert code in (3, 4)


def test_options_that_make_scores_mean_something_else_are_told(
    runs: dict[str, Path], equivox: Cli, tmp_path: Path
) -> None:
    """With a larger `min_count` most words are left out of a score, and the gate held what was left to its limit."""
    run, file = shutil.copytree(next(iter(runs.values())), tmp_path / "run"), tmp_path / "gate.json"
    rescore(run, options=ScoringOptions(n_resamples=99, min_count=3))
    _, out, _ = equivox("gate", run, "--max", "100", "--json", file)
    (told,) = json.loads(file.read_text())["caveats"]
    assert told.endswith(" was scored with min_count 3 (as declared: None)") and told in " ".join(out.split())


def test_a_limit_without_a_name_holds_for_numbers_of_one_unit(tmp_path: Path) -> None:
    folder = measure("simulated:oracle", SALARY, output=tmp_path / "run").folder
    checks = gate(folder, None, Limits(most={"": 90000.0})).checks
    assert checks and {check.limit for check in checks} == {90000.0}


def test_a_limit_in_euros_is_none_of_what_is_lost(tmp_path: Path) -> None:
    """A refusal of 20 % of one group, and of none of the other, was held against 90,000 percent."""

    def outcomes(gap: float, **most: float) -> dict[str, str]:
        model = f"simulated:oracle,refusal_gap={gap}"
        folder = measure(model, SALARY, output=tmp_path / f"run-{gap}").folder
        found = gate(folder, None, Limits(most={"applications_gender:salary": 90000.0, **most}), min_coverage=0.1)
        return {check.metric: check.outcome for check in found.checks}

    assert outcomes(0.2)["refusal"] == outcomes(0.2, nTVD=1.0)["refusal"] == "worse"
    assert outcomes(0.2, nTVD=90.0)["refusal"] == outcomes(0.05)["refusal"] == "pass"


def test_equal_means_of_other_distributions_pass_no_limit(tmp_path: Path) -> None:
    """Women got 20 or 80, where men got 50: the means are equal, the answer was yes, and the gate passed."""
    folder = measure("simulated:random", SALARY, output=tmp_path / "run").folder
    (run,) = open_comparison([folder]).runs

    def apart(by: float, q: float) -> ComparedRun:
        scores = [replace(s, value=by, q=q) if s.name == "distance of distributions" else s for s in run.scores]
        return replace(run, scores=scores)

    def outcome(by: float, q: float, **most: float) -> str:
        return _absolute(apart(by, q), Limits(most={"mean difference": 60000.0, **most}), 0.5)[0].outcome

    assert outcome(90000, 0.001) == "inconclusive"
    assert outcome(90000, 0.5) == outcome(50000, 0.001) == "pass"
    passed = _absolute(run, Limits(most={"mean difference": 60000.0}), 0.5)[0]
    assert _beside(passed, apart(90000, 0.001), {}, apart(5000, 0.5)).outcome == "inconclusive"
    assert _beside(passed, apart(90000, 0.001), {}, apart(40000, 0.5)) == passed


def test_a_number_that_no_limit_holds_for_is_named(equivox: Cli, tmp_path: Path) -> None:
    """A margin for words alone passed a run whose numbers were far apart, and nothing said that they were not held."""
    run, file = three_kinds(tmp_path, "planted,shift=0.5"), tmp_path / "gate.json"
    _, out, _ = equivox("gate", run, "--max", "nTVD=100", "--json", file)
    assert "hire_gender:voice mean difference: not checked: it has no limit, or is in no mean of `--overall`" in out
    assert json.loads(file.read_text())["unchecked"] == ["hire_gender:voice mean difference"]
    _, out, _ = equivox("gate", run, "--max", "nTVD=100", "--max", "mean difference=9", "--json", file)
    assert "not checked" not in out and json.loads(file.read_text())["unchecked"] == []
    # Of a family with one task there is no mean, and a limit that is given for it holds nothing.
    old, overall = three_kinds(tmp_path, name="old"), ("--overall", "--margin", "nTVD=99", "--json", file)
    for option, number in (("--margin", ["hire_gender:voice mean difference"]), ("--max", [])):
        equivox("gate", run, "--baseline", old, *overall, option, "mean difference=9")
        assert json.loads(file.read_text())["unchecked"] == ["hire_gender:talk@turn=2 nTVD", *number]


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
