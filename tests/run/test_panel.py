"""A panel of three annotators, two of which are the first one with known mistakes."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli
from made_requests import sample_spec

from equivox.core.errors import UsageError
from equivox.core.files import write_document
from equivox.core.samples import Row, samples_table
from equivox.core.scores import ScoringOptions
from equivox.core.segments import WHOLE, SegmentAnnotation
from equivox.report.audit_tables import panel_table
from equivox.run.annotating import count_answered, write_samples
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.panel import combine, score_panel
from equivox.run.pipeline import _others, execute, use_annotator
from equivox.run.scoring import open_samples, read_scores, sample_rows, score
from equivox.run.store import annotations_folder

TASK = "vibe_gender:advisory"
OPTIONS = ScoringOptions(n_resamples=99)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("panel") / "run"
    spec = sample_spec("simulated:planted,shift=0.4", TASK, folder, limit=24, options=OPTIONS)
    execute(spec)
    return folder


def annotated_by(folder: Path, name: str, change: Callable[[int, Row], Row]) -> None:
    """Store the annotations of `rules`, changed, as those of another annotator, and score them."""
    (task,) = read_tasks(folder)
    rows = [change(number, row) for number, row in enumerate(open_samples(folder, [task], "rules")[TASK].rows())]
    write_document(annotations_folder(folder, name) / "annotator.json", {"name": name, "version": "1", "settings": {}})
    write_samples(folder, name, task, samples_table(rows), n_answered=count_answered(folder))
    score(folder, [task], name, OPTIONS)


def said(row: Row, **values: tuple[str, ...]) -> Row:
    whole = {**row.values, **values}
    return replace(row, values=whole, segments={**row.segments, WHOLE: SegmentAnnotation(row.status, whole)})


def test_the_majority_outvotes_one_annotator(run: Path) -> None:
    # `odd` says chess everywhere; `capitals` writes the same values in capitals. Two of three agree on all.
    annotated_by(run, "odd", lambda number, row: said(row, hobby=("chess",)))
    annotated_by(run, "capitals", lambda number, row: said(row, hobby=tuple(v.upper() for v in row.values["hobby"])))
    tasks = read_tasks(run)
    scores, compared = score_panel(run, tasks, ["rules", "odd", "capitals"], OPTIONS)
    by_rules = {row.key: row.values for row in sample_rows(run, tasks, "rules")[TASK]}
    for row in sample_rows(run, tasks, "panel")[TASK]:
        assert row.values["hobby"] == by_rules[row.key]["hobby"]
    whole = next(entry for entry in compared if entry.attribute is None)
    own = next(entry for entry in scores if entry.is_whole)
    assert whole.headline == own.headline
    # A constant answer is undefined, so nothing is said of what one annotator alone gives.
    assert whole.undefined is not None and whole.alone_low != whole.alone_low
    table = panel_table(["rules", "odd", "capitals"], compared)
    assert f"— {TASK} nTVD: {whole.undefined}" in table.remarks
    assert whole.disagreement == pytest.approx(100.0, abs=10)


def test_beside_the_panel_s_score_stand_the_ends_of_its_annotators_own(run: Path) -> None:
    for name, every in (("third", 3), ("fourth", 4)):
        annotated_by(run, name, lambda number, row, n=every: said(row, hobby=("chess",)) if number % n == 0 else row)
    members = ["rules", "third", "fourth"]
    _, compared = score_panel(run, read_tasks(run), members, OPTIONS)
    (whole,) = [one for one in compared if one.attribute is None]
    alone = [
        one.headline for name in members for one in read_scores(run, name) if one.is_whole and not one.undefined_reason
    ]
    assert len(set(alone)) > 1
    assert (whole.alone_low, whole.alone_high) == (min(alone), max(alone))


def test_without_a_majority_nothing_is_annotated(run: Path) -> None:
    # Three annotators with three answers in every fourth response; the second answers alike with the first elsewhere.
    annotated_by(run, "second", lambda number, row: said(row, hobby=("sailing",)) if number % 4 == 0 else row)
    annotated_by(run, "third", lambda number, row: said(row, hobby=("rowing",)) if number % 4 == 0 else row)
    tasks = read_tasks(run)
    scores, compared = score_panel(run, tasks, ["rules", "second", "third"], OPTIONS)
    rows = sample_rows(run, tasks, "panel")[TASK]
    assert [number for number, row in enumerate(rows) if not row.values.get("hobby")] == list(range(0, 24, 4))
    hobby = next(entry for entry in scores if entry.attribute == "hobby")
    assert hobby.coverage.used == 18
    entry = next(entry for entry in compared if entry.attribute == "hobby")
    assert entry.disagreement == pytest.approx(25.0)


def test_half_of_four_annotators_is_no_majority(run: Path) -> None:
    def extra(row: Row, number: int) -> Row:
        return replace(row, segments={**row.segments, f"part/{number}": SegmentAnnotation("parsed", {})})

    annotated_by(run, "one", lambda number, row: extra(extra(said(row, hobby=("chess",)), 1), 2))
    annotated_by(run, "two", lambda number, row: extra(extra(said(row, hobby=("chess", "yoga")), 1), 2))
    annotated_by(run, "three", lambda number, row: extra(said(row, hobby=("yoga", "rowing")), 1))
    annotated_by(run, "four", lambda number, row: said(row, hobby=("Yoga", "rowing")))
    tasks = read_tasks(run)
    combine(run, tasks, ["one", "two", "three", "four"])
    for row in sample_rows(run, tasks, "panel")[TASK]:
        # Yoga has three of four, chess and rowing two.
        assert row.values["hobby"] == ("yoga",)
        # Three of four annotated the first part, two the second.
        assert {name for name in row.segments if name != WHOLE} == {"part/1"}


def test_one_of_three_makes_no_refusal(run: Path) -> None:
    # `strict` takes every answer for a refusal, `lost` understands none: with `rules`, one vote for each status.
    def as_status(status: str) -> Callable[[int, Row], Row]:
        return lambda number, row: replace(
            row, status=status, values={}, segments={**row.segments, WHOLE: SegmentAnnotation(status, {})}  # type: ignore[arg-type]
        )  # fmt: skip

    annotated_by(run, "strict", as_status("refused"))
    annotated_by(run, "lost", as_status("unparsed"))
    tasks = read_tasks(run)
    for members in (["strict", "rules", "lost"], ["rules", "strict", "lost"]):
        combine(run, tasks, members)
        assert {row.status for row in sample_rows(run, tasks, "panel")[TASK]} == {"unparsed"}


def test_a_response_without_a_value_from_anybody_is_no_agreement(run: Path) -> None:
    # Half of the responses have no hobby; of the twelve others the third annotator reads six otherwise.
    def silent(number: int, row: Row) -> Row:
        return said(row, hobby=()) if number % 2 == 0 else row

    for name in ("fifth", "sixth"):
        annotated_by(run, name, silent)
    annotated_by(run, "seventh", lambda n, row: said(row, hobby=("rowing",)) if n % 4 == 1 else silent(n, row))
    disagreement = combine(run, read_tasks(run), ["fifth", "sixth", "seventh"])
    assert disagreement[TASK, "hobby"] == pytest.approx(50)


def test_fewer_than_three_are_no_panel(run: Path) -> None:
    with pytest.raises(UsageError, match="a panel needs three or more different annotators, got rules, rules"):
        score_panel(run, read_tasks(run), ["rules", "rules"], OPTIONS)
    # One annotator twice would outvote every other.
    with pytest.raises(UsageError, match="different annotators, got rules, second, rules"):
        score_panel(run, read_tasks(run), ["rules", "second", "rules"], OPTIONS)


def test_the_command_shows_the_panel(run: Path, equivox: Cli) -> None:
    for name in ("fourth", "fifth"):
        annotated_by(run, name, lambda number, row: row)
    out = equivox.done("annotate", str(run), "--panel", "rules,fourth,fifth", "--scoring", "n_resamples=99")
    assert "A panel of rules, fourth, fifth" in out
    assert "nobody" in equivox.refused("annotate", str(run), "--panel", "rules,nobody,fourth")


def test_the_other_annotators_of_an_evaluation_are_those_of_its_number_or_without_one(tmp_path: Path) -> None:
    for name in ("judge@1", "judge@2", "second@1", "second@2", "rules"):
        place = tmp_path / "annotations" / name
        place.mkdir(parents=True)
        (place / "annotator.json").write_text("{}")
    assert _others(tmp_path, "judge@1") == ["rules", "second@1"]
    assert _others(tmp_path, "rules") == []


def test_another_annotator_becomes_the_run_s_own_and_the_first_stays_beside_it(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    annotated_by(folder, "other", lambda number, row: said(row, hobby=(("chess", "yoga")[number % 3 > 0],)))
    (first,) = [one for one in read_scores(folder, "rules") if one.is_whole]
    (second,) = [one for one in use_annotator(folder, "other", OPTIONS) if one.is_whole]
    assert second.value != first.value
    assert read_manifest(folder)["command"]["annotator"] == "other"
    assert [one.value for one in read_scores(folder) if one.is_whole] == [second.value]
    assert [one.value for one in read_scores(folder, "rules") if one.is_whole] == [first.value]
    with pytest.raises(UsageError, match="nobody"):
        use_annotator(folder, "nobody", OPTIONS)
    # Nothing was changed: the run has the scores that it had.
    assert read_manifest(folder)["command"]["annotator"] == "other"
    assert [one.value for one in read_scores(folder) if one.is_whole] == [second.value]
