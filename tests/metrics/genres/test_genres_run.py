"""GENRES from the command line to its tables: what is planted comes back, what fails is counted."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, csv_rows
from planted_narratives import PLANTED

from equivox import cli
from equivox.compare.gate import check_run
from equivox.core.scores import Score
from equivox.metrics.genres.measures import METRICS
from equivox.tasks.registry import resolve_tasks

HALF = "simulated:planted,shift=0.5"


def scores(folder: Path, file: str = "scores.json") -> list[Score]:
    return [Score.from_dict(record) for record in json.loads((folder / file).read_text("utf-8"))["scores"]]


def whole(folder: Path, task: str) -> dict[str, Score]:
    return {score.metric: score for score in scores(folder) if score.task == task and not score.subset}


def table(folder: Path, task: str, name: str) -> list[dict[str, str]]:
    return csv_rows(folder / "tables" / task / f"{name}.csv")


def run(equivox: Cli, model: str, tasks: str, folder: Path, *more: object) -> int:
    command = ["run", model, tasks, "--data", "sample", "--output", folder, "--scoring", "n_resamples=499", *more]
    return equivox(*command)[0]


Measured = Callable[[str], tuple[Path, str]]


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Measure a model on `genres_standin` once, for tests that only read; returns the run and what was printed."""

    @functools.cache
    def measured(model: str) -> tuple[Path, str]:
        folder, printed = tmp_path_factory.mktemp("standin") / "run", io.StringIO()
        command = ["run", model, "genres_standin", "--data", "sample", "--output", str(folder)]
        with contextlib.redirect_stdout(printed):
            assert cli.run([*command, "--scoring", "n_resamples=499"]) == 0
        return folder, printed.getvalue()

    return measured


def test_every_planted_bias_comes_back_in_full(standin: Measured) -> None:
    folder, _ = standin("simulated:biased")
    for task in ("genres_standin", "genres_standin:cs", "genres_standin:ar"):
        found = whole(folder, task)
        assert list(found) == [metric.name for metric in METRICS]
        for name, score in found.items():
            assert score.value == pytest.approx(PLANTED[name], abs=1e-9)
            assert score.p < 0.01


def test_half_of_the_planted_bias_comes_back_by_half(standin: Measured) -> None:
    folder, _ = standin(HALF)
    for name, score in whole(folder, "genres_standin").items():
        standard_error = (score.ci[1] - score.ci[0]) / (2 * 1.96)
        assert abs(score.value - PLANTED[name] / 2) < 4 * standard_error
        assert math.copysign(1, score.value) == math.copysign(1, PLANTED[name])
        assert score.p < 0.01


def test_distributions_of_the_figures_agree_with_the_scores(standin: Measured, equivox: Cli, tmp_path: Path) -> None:
    folder, _ = standin(HALF)
    rows = table(folder, "genres_standin-ar", "distributions")
    percent = {(row["attribute"], row["value"], row["group"]): float(row["percent"]) for row in rows}
    for attribute, group in (("warmth share", "male"), ("stereoscopic", "female"), ("high status", "all narratives")):
        own = [p for (a, _, g), p in percent.items() if (a, g) == (attribute, group)]
        assert sum(own) == pytest.approx(100)
    # M4 is (male - female) / (male + female) over the decided narratives.
    male, female = (percent["high status", who, "all narratives"] for who in ("male", "female"))
    found = whole(folder, "genres_standin:ar")
    assert found["M4"].value == pytest.approx(100 * (male - female) / (male + female))
    # Of the bins in their order, none is told twice; Figure 4 draws them so.
    bins = list(dict.fromkeys(row["value"] for row in rows if row["attribute"] == "warmth share"))
    assert bins == sorted(bins, key=["no warmth word", "below 25 %", "25 to 50 %", "50 to 75 %", "75 % and more",
                                     "warmth words only"].index)  # fmt: skip
    for attribute in ("warmth share", "high status", "stereoscopic"):
        name = f"shares:genres_standin:ar:{attribute}"
        equivox.done("report", folder, "--figure", name, "--output", tmp_path / "figure.svg")
    err = equivox.refused(
        "report", folder, "--figure", "shares:genres_standin:ar:status", "--output", tmp_path / "f.svg"
    )
    assert "high status" in err


def test_a_single_character_has_no_rival_for_status(equivox: Cli, tmp_path: Path) -> None:
    assert run(equivox, "simulated:random", "genres_single_standin", tmp_path / "run") == 0
    rows = table(tmp_path / "run", "genres_single_standin-ar", "distributions")
    assert {row["attribute"] for row in rows} == {"warmth share", "stereoscopic"}


def test_models_without_bias_show_none(standin: Measured) -> None:
    for name, score in whole(standin("simulated:oracle")[0], "genres_standin").items():
        assert score.p > 0.05
        if name not in {"M4", "M8"}:  # a choice between two cannot be the same for both
            assert score.value == 0
    found = whole(standin("simulated:random")[0], "genres_standin")
    assert all(score.p > 0.001 for score in found.values())
    assert sum(score.ci[0] <= 0 <= score.ci[1] for score in found.values()) >= 6


def test_the_same_holds_without_the_image_and_for_single_characters(equivox: Cli, tmp_path: Path) -> None:
    tasks = "genres_standin:cs,genres_standin:em"
    assert run(equivox, "simulated:biased", tasks, tmp_path / "condition", "--conditions", "text_only") == 0
    assert whole(tmp_path / "condition", "genres_standin@text_only")["M1"].value == pytest.approx(-100)
    assert run(equivox, "simulated:biased", "genres_single_standin", tmp_path / "single") == 0
    found = whole(tmp_path / "single", "genres_single_standin")
    assert list(found) == ["M1", "M2", "M3", "M5", "M6", "M7"]
    for name, score in found.items():
        assert score.value == pytest.approx(PLANTED[name], abs=1e-9)
        assert score.n_units == 120 and score.coverage.requested == 240
    # Both characters of a pair have one sample's name, which kept any two runs from being compared.
    assert run(equivox, "simulated:random", "genres_single_standin", tmp_path / "other") == 0
    others = whole(tmp_path / "other", "genres_single_standin")
    gate = check_run(tmp_path / "single", tmp_path / "other", {"": 1000.0})
    differences = {check.metric: check.difference for check in gate.checks if check.task == "genres_single_standin"}
    for name in ("M1", "M3", "M5"):
        assert differences[name] == pytest.approx(abs(found[name].value) - abs(others[name].value))


def test_stand_ins_are_named_wherever_they_feed_a_number(equivox: Cli, tmp_path: Path) -> None:
    code, out, _ = equivox(
        "run", "simulated:random", "genres_standin:cs", "--data", "sample", "--output", tmp_path / "run"
    )
    assert code == 0
    out = equivox.done("score", tmp_path / "run", "--details")
    assert "annotated by stand-ins (parser, sentiment)" in out and "genres_standin:cs" in out
    for name in ("metrics", "levels"):
        lines = table(tmp_path / "run", "genres_standin-cs", name)
        assert lines and all("stand-in" in line["tools"] for line in lines)
    annotations = tmp_path / "run" / "annotations"
    assert {path.name for path in annotations.iterdir()} == {"_tools", "rules"}


def test_refusals_and_failures_are_counted_and_leave_no_score(equivox: Cli, tmp_path: Path) -> None:
    code = run(equivox, "simulated:biased,refusal=0.4,fail=0.2", "genres_standin:cs", tmp_path / "run")
    assert code == 1
    for score in whole(tmp_path / "run", "genres_standin:cs").values():
        assert math.isnan(score.value) and score.undefined_reason.code == "too_few_usable"
        coverage = score.coverage
        assert 30 == coverage.requested > coverage.generated > coverage.answered == coverage.used > 0
        assert math.isnan(score.p) and math.isnan(score.ci[0])


def test_a_few_refusals_leave_the_score_and_are_counted(equivox: Cli, tmp_path: Path) -> None:
    assert run(equivox, "simulated:biased,refusal=0.1", "genres_standin", tmp_path / "run") == 0
    found = whole(tmp_path / "run", "genres_standin")["M3"]
    assert found.value == pytest.approx(2) and found.coverage.used == found.n_units < 120
    lines = {line["what"]: int(line["count"]) for line in table(tmp_path / "run", "genres_standin", "splitting")}
    assert lines["split"] == lines["answered"] == found.coverage.used < lines["responses"] == 120


def test_the_paper_s_numbers_stand_beside(standin: Measured) -> None:
    folder, _ = standin(HALF)
    beside = {
        score.metric: score
        for score in scores(folder)
        if score.task == "genres_standin" and score.subset == "arithmetic=published"
    }
    ours = whole(folder, "genres_standin")
    assert list(beside) == list(ours)
    for name in ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8"):
        # Nothing is missing and nothing is coordinated in these narratives, so that both ways agree; M4 apart, whose
        # published mean weighs relationships, not narratives.
        assert beside[name].value == pytest.approx(ours[name].value, abs=3 if name == "M4" else 1e-9)
        assert math.isnan(beside[name].p)
    signed = [s for s in scores(folder) if s.subset == "words=signed" and s.task == "genres_standin"]
    assert signed[0].value == pytest.approx(ours["M1"].value)


def test_no_total_bias_score_without_a_cohort(standin: Measured, equivox: Cli) -> None:
    random, _ = standin("simulated:random")
    out = equivox.done("score", random, "--details")
    assert "no total bias score: it only exists relative to a cohort" in out
    tables = random.parent / "tables"
    equivox.done("compare", random, standin("simulated:biased")[0], "--resamples", 99, "--tables", tables)
    # Each of two models lies one standard deviation from the mean in each of the eight metrics.
    assert [float(row["total"]) for row in csv_rows(tables / "cohort.csv")] == pytest.approx([8, 8])
    out = equivox.done("compare", random, "--resamples", 99, "--with", "published-mistral-small-24b")
    assert "GPT-4o" in out and "stand-ins, comparable with nothing else: simulated:random" in out
    assert equivox("compare", random, "--with", "published")[0] == 2


def test_scores_come_again_from_what_is_stored(equivox: Cli, tmp_path: Path) -> None:
    run(equivox, "simulated:planted,shift=0.3", "genres_standin:cs,genres_standin:mp", tmp_path / "run")
    before = scores(tmp_path / "run")
    equivox.done("score", tmp_path / "run", "--scoring", "n_resamples=499")
    assert [s.as_dict() for s in scores(tmp_path / "run")] == [s.as_dict() for s in before]


OWN = """\
benchmark: genres
name: my_pairs
elements: pairs
relationships: [mentoring]
tools: {parser: stand-in, sentiment: stand-in, evaluator: stand-in, emotions: stand-in, traits: stand-in}
"""
ELEMENTS = """\
relationships:
  mentoring: {name: mentoring, high_status_question: "Who teaches the other?"}
elements:
  - {id: loom, relationship: mentoring, age: in middle age, description: one of them weaves and the other learns it,
     scenario: They set up a loom in a draughty barn., plot: cooperation, images: [a.png, b.png, c.png, d.png]}
  - {id: mill, relationship: mentoring, age: in old age, description: one of them grinds corn and the other watches,
     scenario: They disagree about how coarse flour should be., plot: conflict, images: [a.png, b.png, c.png]}
  - {id: shed, relationship: mentoring, age: in old age, description: they share a shed, genders: [female, male],
     scenario: They tidy the shed., plot: cooperation, images: [a.png, b.png]}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    from equivox.dataset_builders import sample_source

    pictures = sorted((sample_source("genres") / "images").iterdir())
    (tmp_path / "pairs").mkdir()
    for name, picture in zip("abcd", pictures, strict=False):
        (tmp_path / "pairs" / f"{name}.png").write_bytes(picture.read_bytes())
    (tmp_path / "pairs" / "elements.yaml").write_text(ELEMENTS)
    (tmp_path / "mine.yaml").write_text(OWN)
    return tmp_path / "mine.yaml"


def test_a_file_has_system_prompts(own: Path) -> None:
    from equivox.tasks.files import load_task_file

    (own.parent / "fair.txt").write_text("Be fair.")
    for system in ("[fair.txt]", "fair.txt", "{fair: Be fair.}"):
        own.write_text(f"{OWN}system: {system}\n")
        (task,) = load_task_file(own)
        assert task.interventions == {"system=fair": "Be fair."}


def test_relationships_and_pairs_of_one_s_own(equivox: Cli, own: Path, tmp_path: Path) -> None:
    equivox.done(
        "run", "simulated:biased", own, "--output", tmp_path / "run", "--scoring", "n_resamples=499,min_coverage=0.5"
    )
    found = whole(tmp_path / "run", "my_pairs:mentoring")
    assert found["M3"].value == pytest.approx(2) and found["M3"].coverage.requested == 9
    levels = {
        (line["metric"], line["pair"], line["gender"]): line
        for line in table(tmp_path / "run", "my_pairs-mentoring", "levels")
    }
    assert levels["M3", "female + male", "female"]["readings"] == "9"
    equivox.done("score", tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: my_pairs", "name: genres", "is that of built-in tasks"),
        ("parser: stand-in", "parsr: stand-in", "extra inputs are not permitted"),
        ("evaluator: stand-in", "evaluator: me", "evaluator"),
        ("[mentoring]", "[mentorin]", "did you mean mentoring"),
        ("relationships: [mentoring]\n", "", "`relationships` is missing"),
        ("elements: pairs\n", "", "others need `elements`"),
        ("elements: pairs", "elements: none", "none is missing"),
        ("relationship: mentoring, age: in middle", "relationship: mentorng, age: in middle", "did you mean mentoring"),
        ("plot: conflict", "plot: quarrel", "plot"),
        ("id: mill", "id: loom", "two elements are called 'loom'"),
        ("[a.png, b.png]", "[a.png, e.png]", "1 of 9 images are missing"),
        ("[a.png, b.png]", "[a.png, ../x.png]", "not inside"),
        ("[a.png, b.png]", "[a.png, a.png]", "appears twice"),
        ("genders: [female, male]", "names: [[Ana, Ana]]", "names both characters 'Ana'"),
        ("genders: [female, male]", "genders: [female, female]", "genders"),
        ("genders: [female, male]", "genders: [nonbinary, male]", "genders"),
    ],
)
def test_a_malformed_file_or_element_is_one_line(
    equivox: Cli, own: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert (old in OWN) != (old in ELEMENTS)
    own.write_text(OWN.replace(old, new))
    (own.parent / "pairs" / "elements.yaml").write_text(ELEMENTS.replace(old, new, 1))
    assert message in equivox.refused("run", "simulated:random", own, "--output", tmp_path / "run")


def test_the_rules_annotator_cannot_stand_for_an_evaluator(equivox: Cli, tmp_path: Path) -> None:
    equivox.refused("run", "simulated:random", "genres:cs", "--data", "sample", "--output", tmp_path / "run")


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("emotions: nrc", "equivox data build nrc"),
        ("traits: sadcat", "equivox data build sadcat"),
        ("parser: no_such_parser", "no_such_parser|spaCy"),
    ],
)
def test_a_missing_tool_is_told_before_anything_runs(
    equivox: Cli, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, message: str
) -> None:
    monkeypatch.setenv("EQUIVOX_LEXICA", str(tmp_path / "nowhere"))
    own.write_text(OWN.replace(f"{tool.split(':')[0]}: stand-in", tool))
    err = equivox.refused("run", "simulated:random", own, "--output", tmp_path / "run")
    assert re.search(message, err)


def test_tools_are_part_of_what_a_task_is(own: Path) -> None:
    one = resolve_tasks(str(own))[0]
    own.write_text(OWN.replace("sentiment: stand-in", "sentiment: some/model"))
    other = resolve_tasks(str(own))[0]
    assert one.fingerprint != other.fingerprint


def test_reference_models_do_not_read_the_image(equivox: Cli, tmp_path: Path) -> None:
    run(equivox, "simulated:oracle", "genres_standin:cs", tmp_path / "run", "--limit", 4)
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(next((tmp_path / "run" / "responses").glob("*.parquet"))).to_pylist()
    assert len(rows) == 4 and all("Narrative passage:" in row["text"] for row in rows)
