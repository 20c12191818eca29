"""Gates: a new run against a baseline in each of the four outcomes, and no failure that passes."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import string
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from commands import Cli
from made_requests import three_kinds
from made_scores import SUBJECT
from sample_runs import sample_run

from equivox.compare.asking import judge_of, unlike_settings
from equivox.compare.gate import Check, Gate, _check, _doubt, _explain_lack, _propose, check_run, decide, read_margins
from equivox.compare.pairs import PairedTest
from equivox.compare.runs import ComparedRun, Origin, open_comparison
from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document
from equivox.core.notes import Note, NoteCode, remark
from equivox.core.scores import Score, ScoringOptions
from equivox.report.gate import make_gate_table
from equivox.report.notes import write_note
from equivox.run.manifest import read_manifest, state_hashes, write_manifest
from equivox.run.pipeline import rescore

TASKS = "vibe_gender:candidate,vibe_gender:story"


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
        ("20 again", "20", "1", 4, "undecided"),
        ("20 again", "20", "60", 0, "pass"),
        ("failing", "20", "5", 1, "not comparable"),
        ("silent", "20", "90", 1, "not comparable"),
        ("one task", "20", "5", 1, "not comparable"),
        ("20", "silent", "90", 1, "not comparable"),
    ],
)
def test_each_outcome_has_its_exit_code_and_files(
    runs: dict[str, Path], new: str, baseline: str, margin: str, code: int, outcome: str, tmp_path: Path, equivox: Cli
) -> None:
    files = {name: tmp_path / f"gate.{name}" for name in ("json", "junit", "summary")}
    options = [f"--{name}={file}" for name, file in files.items()]
    exit_code, out, _ = equivox("gate", runs[new], "--baseline", runs[baseline], "--margin", margin, *options)
    assert exit_code == code and out.startswith(f"{outcome.upper()}: ")
    document = json.loads(files["json"].read_text())
    assert (document["outcome"], document["exit_code"]) == (outcome, code)
    outcomes = [check["outcome"] for check in document["checks"]]
    assert all(one == "pass" for one in outcomes) is (outcome == "pass")
    suite = ElementTree.parse(files["junit"]).getroot()
    kinds = [[child.tag for child in case] for case in suite]
    tags = {"pass": [], "worse": ["failure"], "undecided": ["failure"], "not comparable": ["error"]}
    assert kinds == [tags[one] for one in outcomes] and suite.get("tests") == str(len(kinds))
    assert [suite.get(name) for name in ("failures", "errors")] == [
        str(kinds.count([tag])) for tag in ("failure", "error")
    ]
    summary = files["summary"].read_text()
    assert f"**{outcome.upper()}: " in summary and summary.count("| vibe\\_gender:") == len(outcomes)


def test_without_a_margin_the_smallest_that_decides_is_proposed(
    runs: dict[str, Path], tmp_path: Path, equivox: Cli
) -> None:
    code, out, _ = equivox("gate", runs["20 again"], "--baseline", runs["20"], "--json", tmp_path / "gate.json")
    proposal = json.loads((tmp_path / "gate.json").read_text())["proposal"]
    assert code == 4 and proposal.keys() == {""}
    margin = out.split("--margin ")[1].split()[0]
    assert proposal[""] <= float(margin) < 1.1 * proposal[""]
    assert equivox("gate", runs["20 again"], "--baseline", runs["20"], "--margin", margin)[0] == 0
    # Units that differ have margins of their own, and the line can be copied.
    old, new = (three_kinds(tmp_path, f"random,seed={seed}", f"run{seed}") for seed in (0, 1))
    _, out, _ = equivox("gate", new, "--baseline", old)
    words = shlex.split(next(line for line in out.splitlines() if "--margin" in line))
    names = {words[n + 1].rpartition("=")[0] for n, word in enumerate(words) if word == "--margin"}
    assert names >= {"hire_gender:voice", "hire_gender:talk@turn=2"}


@pytest.mark.parametrize(
    ("low", "high", "margin", "outcome"),
    [
        (-3.0, 4.9, 5.0, "pass"),
        (5.1, 9.0, 5.0, "worse"),
        (0.1, 9.0, 5.0, "undecided"),
        (-3.0, 5.0, 5.0, "pass"),  # the ends of the interval belong to it
        (5.0, 9.0, 5.0, "undecided"),
        (-3.0, 4.9, math.nan, "undecided"),
    ],
)
def test_the_interval_decides(low: float, high: float, margin: float, outcome: str) -> None:
    assert decide(low, high, margin) == outcome


def test_the_heaviest_outcome_decides() -> None:
    checks = [Check(**SUBJECT, outcome=outcome) for outcome in ("pass", "undecided", "not comparable", "worse")]
    assert [Gate("m", "b", checks[:n]).outcome for n in range(1, 5)] == [check.outcome for check in checks]
    assert Gate("m", "b", []).outcome == "not comparable"


def test_the_proposed_margin_by_hand() -> None:
    # Half the width is 5; for one check 1.5 % of a normal lie above 2.170 errors, and 5 is 1.960 errors.
    check = Check(**SUBJECT, outcome="pass", difference=1.0, low=-4.0, high=6.0)
    assert _propose(check, 1).decides_from == pytest.approx(5 * (1 + 2.170 / 1.960), rel=1e-3)
    # For three checks 0.5 % lie above 2.576 errors.
    assert _propose(check, 3).decides_from == pytest.approx(5 * (1 + 2.576 / 1.960), rel=1e-3)


def test_a_model_that_has_not_changed_passes(runs: dict[str, Path], tmp_path: Path) -> None:
    """Two runs that agree in every cluster have no interval: a nightly gate was not comparable, or undecided."""
    for name in ("choices", "20"):
        copy = shutil.copytree(runs[name], tmp_path / name)
        write_manifest(copy, read_manifest(copy) | {"created": "2026-01-02T03:00:00+00:00"})
        for check in check_run(runs[name], copy, {"": 1.0}).checks:
            assert (check.outcome, check.difference) == ("pass", 0.0) and math.isnan(check.low)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"p": 1.0, "further": 0.0}, "pass"),  # no cluster changed
        ({"p": 1.0, "further": 3.0}, "not comparable"),  # all clusters changed by as much
        ({"p": 0.5, "further": 0.0}, "not comparable"),
        ({"p": 1.0, "further": 0.0, "undefined": "one cluster"}, "not comparable"),
        ({"p": 0.2, "further": 1.0, "ci_low": -2.0, "ci_high": 4.0}, "pass"),
    ],
)
def test_a_difference_without_an_interval(runs: dict[str, Path], changes: dict[str, Any], outcome: str) -> None:
    score = find_score(open_run(runs["fair"]))
    test = PairedTest.of(score, model_a="a", model_b="b", **changes)
    assert _check(score, test, 5.0, "", None).outcome == outcome
    assert _check(score, test, 5.0, "it is lost", None).reason == "it is lost"
    assert _check(score, None, 5.0, "", None).outcome == "not comparable"


def test_the_distance_of_choices_is_from_fifty(runs: dict[str, Path]) -> None:
    (check,) = check_run(runs["choices"], runs["other choices"], {"slbs": 90.0}).checks
    shares = [find_score(open_run(runs[name]), "slbs").headline for name in ("choices", "other choices")]
    assert (check.new, check.baseline) == pytest.approx([abs(share - 50) for share in shares])
    assert check.difference == pytest.approx(check.new - check.baseline)


def test_margins_by_name() -> None:
    assert read_margins(["5", "a@turn=2=0.5", "b=1e3"]) == {"": 5, "a@turn=2": 0.5, "b": 1000}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nTVd=5"], "no checked number is called 'nTVd'; did you mean nTVD"),
        (["much"], "`margin` is a number, or NAME=number, got 'much'"),
        (["=5"], "`margin` is a number, or NAME=number, got '=5'"),
        (["nan"], "`margin` must be 0 or more, got 'nan'"),
        (["nTVD=-0.1"], "`margin` must be 0 or more, got 'nTVD=-0.1'"),
        (["inf"], "`margin` must be 0 or more, got 'inf'"),
        (["5", "6"], "`margin` comes twice"),
        (["b=5", "b=6"], "`margin` comes twice for b"),
    ],
)
def test_bad_margins_are_one_line(runs: dict[str, Path], options: list[str], message: str, equivox: Cli) -> None:
    margins = [word for option in options for word in ("--margin", option)]
    assert message in equivox.refused("gate", runs["20"], "--baseline", runs["fair"], *margins)


def test_the_margin_of_a_task_comes_before_that_of_a_metric(runs: dict[str, Path]) -> None:
    gate = check_run(runs["20 again"], runs["20"], {"vibe_gender:story": 1.0, "nTVD": 2.0})
    assert {check.task: check.margin for check in gate.checks} == {
        "vibe_gender:story": 1.0,
        "vibe_gender:candidate": 2.0,
    }
    gate = check_run(runs["20 again"], runs["20"], {"vibe_gender:story": 1.0})
    assert (len(gate.checks), gate.unchecked) == (1, ["vibe_gender:candidate nTVD"])
    assert any("vibe_gender:candidate nTVD: not checked" in remark for remark in make_gate_table(gate).remarks)


def test_a_margin_without_a_name_holds_in_one_unit_alone(equivox: Cli, tmp_path: Path) -> None:
    old, new = three_kinds(tmp_path, name="old"), three_kinds(tmp_path, "planted,shift=0.5", "new")
    arguments = ("gate", str(new), "--baseline", str(old), "--margin", "90")
    assert 'give hire_gender:voice a margin of its own: `--margin "hire_gender:voice=90"`' in equivox.refused(
        *arguments
    )
    file = tmp_path / "gate.json"
    code, *_ = equivox(
        *arguments, "--margin", "hire_gender:voice=0.1", "--margin", "hire_gender:talk@turn=2=95", "--json", file
    )
    margins = {check["task"]: check["margin"] for check in json.loads(file.read_text())["checks"]}
    assert (margins["hire_gender:voice"], margins["hire_gender:talk@turn=2"]) == (0.1, 95)
    assert code in (3, 4)


def test_a_gap_in_what_is_lost_that_grew_is_worse_whatever_the_margin(runs: dict[str, Path], tmp_path: Path) -> None:
    def check_refusals(new: Path, baseline: Path) -> set[str]:
        gate = check_run(new, baseline, {"": 90.0})
        return {check.outcome for check in gate.checks if check.metric == "refusal"}

    for gap in ("0.18", "0.4"):
        sample_run(tmp_path / gap, f"oracle,refusal_gap={gap}", TASKS, 499)
        gate = check_run(tmp_path / gap, runs["fair"], {"": 90.0})
        assert gate.outcome == "worse" and any(
            "group female loses" in write_note(check.reason) for check in gate.checks
        ), gap
    # The same gap in both runs did not grow, and a smaller gap is better.
    sample_run(tmp_path / "again", "oracle,refusal_gap=0.4,seed=1", TASKS, 499)
    assert check_refusals(tmp_path / "again", tmp_path / "0.4") == {"pass"}
    assert check_refusals(runs["fair"], tmp_path / "0.4") == {"pass"}
    # Failures that spare no group did not grow unequally.
    gate = check_run(runs["failing"], runs["fair"], {"": 90.0})
    assert {check.outcome for check in gate.checks if check.metric == "failure"} == {"pass"}


def open_run(folder: Path) -> ComparedRun:
    return open_comparison([folder]).runs[0]


def find_score(run: ComparedRun, name: str = "nTVD") -> Score:
    return next(score for score in run.scores if score.is_whole and score.metric == name)


def change_coverage(score: Score, used: int, **changes: Any) -> Score:
    counts = {"used_by_group": {"f": used, "m": 100}, "requested_by_group": {"f": 100, "m": 100}}
    return replace(score, coverage=replace(score.coverage, **counts), **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"undefined_reason": remark("it is lost")}, "simulated:oracle has no score: it is lost"),
        # At the level .0001 chance finds a hidden difference in one night of 10,000; at .01 it is none.
        ({"notes": (Note(NoteCode.WITHIN_ITEMS, {"p": 0.0001}),)}, "groups differ within"),
        ({"notes": (Note(NoteCode.WITHIN_ITEMS, {"p": 0.01}),)}, ""),
        ({"notes": (Note(NoteCode.RARE_VALUES, {"share": 0.69, "min_count": 10}),)}, "seen fewer than 10 times"),
    ],
)
def test_scores_that_cannot_pass(runs: dict[str, Path], changes: dict[str, Any], reason: str) -> None:
    run = open_run(runs["fair"])
    score = replace(find_score(run), **changes)
    lack = write_note(_explain_lack(run, score, score.task, 0.001))
    assert reason in lack and bool(reason) is bool(lack)


def test_runs_that_cannot_pass(runs: dict[str, Path]) -> None:
    run = open_run(runs["fair"])
    score = find_score(run)

    def explain(run: ComparedRun, score: Score = score) -> str:
        return write_note(_explain_lack(run, score, score.task, 0.001))

    assert _explain_lack(run, None, "t", 0.001) == "simulated:oracle did not run t"
    assert explain(run, change_coverage(score, 90)) == ""
    assert "89% of the answers of simulated:oracle about group f were used" in explain(run, change_coverage(score, 89))
    # A run that never sent a voice.
    silent = [replace(one, task=f"{one.task}@silence", condition="silence") for one in run.scores]
    assert "controls alone" in explain(replace(run, scores=silent))
    assert explain(replace(run, scores=[*silent, *run.scores])) == ""
    # A mean that leaves out an attribute, because too few answers state it.
    mean = replace(score, notes=(Note(NoteCode.MEAN_OF, {"attributes": ["age"]}),))
    part = change_coverage(score, 70, attribute="education", undefined_reason=remark("only 70 % are usable"))
    assert explain(replace(run, scores=[mean, part]), mean) == (
        "simulated:oracle has no score of education: only 70 % are usable"
    )
    few = replace(run, origin=Origin(alike={score.task: score.n_units // 5}))
    assert explain(few) == ""
    many = replace(run, origin=Origin(alike={score.task: score.n_units // 5 + 1}))
    assert "were asked what another one was" in explain(many)


def test_equal_means_of_other_distributions_do_not_pass(runs: dict[str, Path]) -> None:
    """Women who get 20 or 80 where men get 50: the means are equal, and the gate passed."""
    mean = find_score(open_run(runs["fair"]))
    check = Check.of(mean, outcome="pass", margin=30.0)

    def outcome(distance: float, q: float, before: float = 0.0, margins: dict[str, float] | None = None) -> str:
        other = replace(mean, metric="distance", q=q)
        scores = [{(mean.task, "distance"): replace(other, value=n, estimate=n)} for n in (distance, before)]
        return _doubt(check, scores, margins or {}).outcome

    assert outcome(40, 0.001) == "undecided"
    assert outcome(40, 0.5) == outcome(29, 0.001) == outcome(40, 0.001, before=20) == "pass"
    assert outcome(40, 0.001, margins={"distance": 90.0}) == "pass"  # a margin of its own holds for it


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


@pytest.mark.parametrize(
    ("further", "named"), [({"seed": 3}, "`seed` is 3 and 0"), ({"limit": 96}, "`limit` is 96 and not given")]
)
def test_runs_that_were_not_asked_alike_are_not_comparable(
    runs: dict[str, Path], tmp_path: Path, further: dict[str, int], named: str
) -> None:
    other = tmp_path / "other"
    sample_run(other, "oracle", TASKS, 499, **further)
    found = check_run(other, runs["20"], {"": 90.0})
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
        outcomes.append(check_run(other, runs["fair"], {"": 60.0}))
    assert [found.outcome for found in outcomes] == ["pass", "not comparable"]
    assert all("not annotated alike" in check.reason for check in outcomes[1].checks)
    assert "(answered by judge-2026-01-02)" in outcomes[1].caveats[0]
    assert judge_of(other, "rules") != judge_of(runs["fair"], "rules")


def test_units_that_were_asked_alike_were_so_in_later_turns_too(runs: dict[str, Path]) -> None:
    run = replace(open_comparison([runs["20"]]).runs[0], origin=Origin(alike={"vibe_gender:story": 20}))
    asked = ("vibe_gender:story", "vibe_gender:story@turn=2", "vibe_gender@turn=2", "vibe_gender:candidate@turn=2")
    assert [run.alike(task) for task in asked] == [20, 20, 20, 0]


def test_a_run_is_not_held_against_itself(runs: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="`baseline` is the new run itself"):
        check_run(runs["20"], runs["20"], {"": 90.0})


def test_a_run_is_not_held_against_a_copy_of_itself(runs: dict[str, Path], tmp_path: Path) -> None:
    """A job that copies last night's folder and runs into it asks nothing: no model has answered twice."""
    copy = shutil.copytree(runs["20"], tmp_path / "copy")
    rescore(copy, options=ScoringOptions(n_resamples=99))
    with pytest.raises(UsageError, match="copies of one run, which began 20"):
        check_run(copy, runs["20"], {"": 90.0})


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
        assert equivox("gate", forged, "--baseline", runs["20"], "--margin", 5)[0] == 2


def test_a_metric_that_needs_code_says_which_file_to_name(runs: dict[str, Path], tmp_path: Path, equivox: Cli) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs["20"], run)
    declared = json.dumps(read_document(run / "tasks.json"))
    code = "equivox_task_files.mine_0123456789abcdef:METRIC"
    write_document(run / "tasks.json", json.loads(declared.replace("equivox.metrics.ntvd.metric:METRIC", code)))
    state_hashes(run)
    assert "the run needs code of mine.py" in equivox.refused("gate", run, "--baseline", runs["fair"], "--margin", 5)


def test_the_workflow_file_runs_on_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equivox: Cli) -> None:
    workflow = yaml.safe_load((Path(__file__).parents[2] / "examples" / "ci" / "fairness.yml").read_text())
    monkeypatch.chdir(tmp_path)
    given = {**workflow["env"], "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    steps = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    told = [string.Template(step).substitute(given) for step in steps if step.startswith("equivox ")]
    assert len(told) == 3
    assert [equivox(*shlex.split(line)[1:])[0] for line in told] == [0, 0, 0]
    assert "**PASS: " in (tmp_path / "summary.md").read_text()
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "0"


def test_options_that_make_scores_mean_something_else_are_told(
    runs: dict[str, Path], equivox: Cli, tmp_path: Path
) -> None:
    """With a larger `min_count` most words are left out of a score, and the gate held what was left to its limit."""
    new, old = (shutil.copytree(runs[name], tmp_path / name) for name in ("60", "20"))
    for run in (new, old):
        rescore(run, options=ScoringOptions(n_resamples=99, min_count=3))
    caveats = check_run(new, old, {"": 100.0}).caveats
    assert [caveat.split(" was ")[1] for caveat in caveats] == ["scored with min_count 3 (as declared: None)"] * 2
