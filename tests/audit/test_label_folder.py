"""Labels out and back, differences settled, and audits that stay with their run."""

from __future__ import annotations

import codecs
import csv
import itertools
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from commands import Cli
from labelling import AUDIT, LABEL, fill, filled, readings, rows_of
from sample_runs import sample_run
from scipy import stats
from scipy.stats import binomtest

from equivox.audit.drawing import draw
from equivox.audit.kept import score_audit
from equivox.audit.labels import Unit, by_person, comparable, label_files, label_of
from equivox.audit.sheet import write_sheet
from equivox.audit.stored import stored_audits
from equivox.compare.runs import compared_run
from equivox.core.attributes import Number
from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document
from equivox.core.task import Attribute
from equivox.integrations.hub.run_folder import write_run
from equivox.integrations.hub.submission import notes_of
from equivox.report.checks import Check, list_run_checks
from equivox.report.frames import make_score_frame
from equivox.run.manifest import read_manifest, state_hashes
from equivox.run.scoring import read_scores
from equivox.tasks.registry import resolve_tasks


def test_unstated_is_an_answer_and_no_word() -> None:
    assert comparable(["Unstated"]) == comparable([]) == ("unstated",)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_labels_are_read_however_a_spreadsheet_separates_cells(separator: str, tmp_path: Path) -> None:
    file = tmp_path / "labels-Ana.csv"
    with file.open("w", encoding="utf-8-sig", newline="") as opened:
        rows = [("item", "attribute", "label"), ("i1", "things", "chess; yoga"), ("i2", "job", "nurse, at night\tonly")]
        csv.writer(opened, delimiter=separator).writerows(rows)
    assert [found[1:] for found in by_person([file])["Ana"]] == rows[1:]


def test_labels_that_were_saved_in_excel_are_found_and_never_those_of_two_files(tmp_path: Path) -> None:
    rows = [("item", "attribute", "label"), ("i1", "age", 34), ("i2", "happy", True)]
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    for name in ("adjudicated", "labels-Ben"):
        book.save(tmp_path / f"{name}.xlsx")
    assert [path.name for path in label_files(tmp_path)] == ["labels-Ben.xlsx", "adjudicated.xlsx"]
    assert [found[1:] for found in by_person(label_files(tmp_path))["Ben"]] == [
        ("i1", "age", "34"),
        ("i2", "happy", "true"),
    ]
    (tmp_path / "labels-Ben.csv").write_text("item,attribute,label\ni1,age,35\n")
    with pytest.raises(UsageError, match="is the second file of"):
        by_person(label_files(tmp_path))


def test_a_spreadsheet_knows_that_a_sheet_is_utf_8(tmp_path: Path) -> None:
    """Without the mark Excel shows other letters than English ones as signs, and saves what it shows."""
    run = sample_run(tmp_path / "run", "biased", "vibe_gender:advisory", limit=20)
    write_sheet(draw([run], n=2, per=["group"]), tmp_path / "sheet", media=False)
    assert (tmp_path / "sheet" / "sheet.csv").read_bytes().startswith(codecs.BOM_UTF8 + b"item,attribute,label,")
    assert by_person([tmp_path / "sheet" / "sheet.csv"]) == {"sheet": []}


@pytest.mark.parametrize("item", ["053340528712", "12345678e123"])
def test_no_item_is_a_number_to_a_spreadsheet(item: str, tmp_path: Path) -> None:
    """It would save 5.33E+10 in its place: of 200 items, more often than not, the labels of one were refused."""
    run = sample_run(tmp_path / "run", "biased", "vibe_gender:advisory", limit=20)
    (one,) = draw([run], n=1, per=["task"])
    write_sheet([replace(one, item=item)], tmp_path / "sheet", media=False)
    for row in rows_of(tmp_path / "sheet"):
        with pytest.raises(ValueError, match="could not convert"):
            float(row["item"])
        assert list(json.loads((tmp_path / "sheet" / "key.json").read_text())) == [row["item"]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run(tmp_path_factory.mktemp("labelled") / "run", "planted,shift=0.4", "vibe_gender:candidate")


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


def labels_like_the_annotator(sheet: Path, run: Path) -> Path:
    key, read = json.loads((sheet / "key.json").read_text()), readings(run)
    rows = [{name: row[name] for name in ("item", "attribute", "label")} for row in rows_of(sheet)]
    return filled(
        sheet / "labels-Ana.csv",
        rows,
        lambda row: "; ".join(read.get((key[row["item"]]["response"], row["attribute"]), ("unstated",))),
    )


def test_an_annotator_that_errs_on_one_group_alone_has_no_good_mark(run: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = tmp_path / "sheet"
    equivox.done(*LABEL, run, "--n", 120, "--per", "task,group", "--no-media", "--output", sheet)
    women = itertools.count()

    def say(row: dict[str, str], known: dict[str, str]) -> str:
        if row["attribute"] != "competency" or known["group"] != "female" or next(women) % 4:
            return known["read"]
        return next(option for option in ("junior novice", "exceptional expert") if option != known["read"])

    equivox.done("label", "score", sheet, fill(sheet, run, say), "--store")
    (audit,) = stored_audits(run, "rules")
    # Of 120 answers to women 30 were misread, of 120 to men none: 210 of 240 are met, surely more than the 80 % for a
    # good mark.
    assert audit.agreement["competency"] == pytest.approx(87.5) and audit.least_agreement > 80
    assert stats.fisher_exact([[90, 30], [120, 0]]).pvalue < 0.001
    assert list(audit.unequal) == ["competency"]
    told = trust_in_audits(run)
    assert told.mark == "check" and str(told.values["audit"]).endswith("and errs more on some groups in competency")


def test_an_attribute_that_nobody_labelled_is_not_checked(run: Path, tmp_path: Path, equivox: Cli) -> None:
    """An annotator that calls everything the same in one attribute had a good mark for the others."""
    sheet = tmp_path / "sheet"
    equivox.done(*LABEL, run, "--n", 40, "--per", "task,group", "--no-media", "--output", sheet)
    labels = fill(sheet, run, lambda row, known: "" if row["attribute"] == "cultural_fit" else known["read"])
    out = equivox.done("label", "score", sheet, labels, "--store")
    told = trust_in_audits(run)
    assert told.mark == "check"
    (audit,) = stored_audits(run, "rules")
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    corrected = audit.of(whole)
    assert corrected is not None and corrected.undefined == "no label is about cultural_fit"
    # Nothing was refused, so that labels of refusals correct no score.
    assert "— refusal: labels correct no score of it" in out


def trust_in_audits(run: Path) -> Check:
    """What the first screen of a run says of its audits, as if of a real model."""
    shown = replace(compared_run("org/model", run, read_scores(run)), read_by_rules=False)
    (audit,) = [check for check in list_run_checks(shown) if check.code == "audited"]
    return audit


def audited(equivox: Cli, run: Path, n: int) -> Path:
    """Label `n` answers of each group as the annotator does, and keep the audit; return the label folder."""
    sheet = run.parent / "sheet"
    equivox.done(*LABEL, run, "--n", n, "--per", "task,group", "--no-media", "--output", sheet)
    labels_like_the_annotator(sheet, run)
    equivox.done("label", "score", sheet, "--store")
    return sheet


@pytest.mark.parametrize(("n", "mark"), [(5, "check"), (8, "ok")])
def test_few_labels_give_no_good_mark_though_all_are_met(run: Path, equivox: Cli, n: int, mark: str) -> None:
    # n answers of each of two groups. An annotator that meets three of four meets 10 of 10 in 6 % of cases.
    assert 0.75**10 > 0.05 and 0.75**16 < 0.05
    audited(equivox, run, n)
    (audit,) = stored_audits(run, "rules")
    assert set(audit.agreement.values()) == {100.0}
    low = 100 * binomtest(2 * n, 2 * n).proportion_ci(method="wilson").low
    assert audit.least_agreement == pytest.approx(low) and f"by attribute (surely {low:.0f} % or more)" in audit.told
    assert trust_in_audits(run).mark == mark


@pytest.mark.parametrize(
    "change",
    [
        {"unread": 40},  # 80 of 120 labels are met, the others are of answers that it could not annotate
        {"n": 0, "agreement": None, "unread": 80, "by_group": {}},  # it annotated none of the labelled answers
        {"n": 0, "agreement": None, "by_group": {}, "split": 80},  # people are split on every answer
        {"n": 60, "split": 20},  # of 80, 60 are met: a second person says something else wherever it errs
        {"n": 60, "unlabelled": 20},  # or whoever labels passes over these
        {"by_group": {"female": 100.0}, "p_groups": None},  # labels of one group alone
    ],
)
def test_an_audit_that_says_little_of_an_attribute_gives_no_good_mark(
    run: Path, equivox: Cli, change: dict[str, Any]
) -> None:
    audited(equivox, run, 40)
    assert trust_in_audits(run).mark == "ok"
    file = run / "audit" / "answers" / "audit.json"
    document = read_document(file)
    document["attributes"][0] |= change
    write_document(file, document)
    assert trust_in_audits(run).mark == "check"


def test_labels_of_chosen_answers_give_no_good_mark_and_correct_nothing(run: Path, equivox: Cli) -> None:
    """An annotator that met every label that was given had a good mark, whoever chose which to give."""
    sheet = run.parent / "sheet"
    equivox.done(*LABEL, run, "--n", 60, "--per", "task,group", "--no-media", "--output", sheet)
    given, chosen = itertools.count(), []

    def met_alone(row: dict[str, str], known: dict[str, str]) -> str:
        # Of three answers the annotator erred on one, which is passed over.
        chosen.append(row["attribute"] != "competency" or next(given) % 3 != 0)
        return known["read"] if chosen[-1] else ""

    out = equivox.done("label", "score", sheet, fill(sheet, run, met_alone), "--store")
    (audit,) = stored_audits(run, "rules")
    assert audit.agreement["competency"] == 100 and chosen.count(False) == 40
    # Wilson 1927, z = 1.95996: (80 + z² / 2 - z √(80 · 40 / 120 + z² / 4)) / (120 + z²).
    low = 57.8311016
    assert audit.surely["competency"] == pytest.approx(low) and low < 60
    told = trust_in_audits(run)
    assert told.mark == "check" and str(told.values["audit"]).endswith(
        f"(surely {low:.0f} % or more, 40 without one counted as not met)"
    )
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    corrected = audit.of(whole)
    assert corrected is not None and math.isnan(corrected.corrected)
    assert "competency: people settled on a label of " in str(corrected.undefined)
    assert "passed over" in out


def test_decisions_about_what_nobody_labelled_are_no_check_by_people(run: Path, equivox: Cli) -> None:
    """A file of decisions alone was "checked by 0 people", with a good mark."""
    sheet = run.parent / "sheet"
    equivox.done(*LABEL, run, "--n", 40, "--per", "task,group", "--no-media", "--output", sheet)
    labels_like_the_annotator(sheet, run).rename(sheet / "adjudicated.csv")
    told = "competency of .* is decided, and nobody has labelled it"
    assert re.search(told, equivox.refused("label", "score", sheet))
    assert not (run / "audit").exists()


def test_who_labels_the_top_of_the_sheet_passes_nothing_over(run: Path, equivox: Cli) -> None:
    sheet = run.parent / "sheet"
    equivox.done(*LABEL, run, "--n", 60, "--per", "task,group", "--no-media", "--output", sheet)
    top = {row["item"] for row in rows_of(sheet)[: len(rows_of(sheet)) // 2]}
    labels = fill(sheet, run, lambda row, known: known["read"] if row["item"] in top else "")
    equivox.done("label", "score", sheet, labels, "--store")
    (audit,) = stored_audits(run, "rules")
    assert (audit.n_responses, audit.unsettled, trust_in_audits(run).mark) == (60, 0, "ok")


def test_who_says_that_an_answer_declines_need_not_say_that_it_states_nothing(run: Path, equivox: Cli) -> None:
    """Rows that nobody can fill in, of answers that decline, were passed over."""
    sheet = run.parent / "sheet"
    equivox.done(*LABEL, run, "--n", 60, "--per", "task,group", "--no-media", "--output", sheet)
    declined = sorted({row["item"] for row in rows_of(sheet)})[:40]

    def say(row: dict[str, str], known: dict[str, str]) -> str:
        if row["item"] not in declined:
            return known["read"]
        return "yes" if row["attribute"] == "refusal" else ""

    equivox.done("label", "score", sheet, fill(sheet, run, say), "--store")
    (audit,) = stored_audits(run, "rules")
    # The annotator read values in 40 of 120 answers, which have none.
    assert (audit.unsettled, audit.agreement["competency"]) == (0, pytest.approx(100 * 80 / 120))
    equivox.done("verify", run, "--data", "sample", "--quiet")
    # Nothing is passed over by people who label nothing but refusals.
    alone = fill(sheet, run, lambda row, known: "yes" if row["attribute"] == "refusal" else "")
    equivox.done("label", "score", sheet, alone, "--store")
    (audit,) = stored_audits(run, "rules")
    assert (audit.unsettled, [*audit.agreement]) == (0, ["refusal"])


def test_labels_of_one_model_say_nothing_of_how_another_was_read(run: Path, equivox: Cli) -> None:
    """Agreement was that of all runs on a sheet: those that are read well hid one that is not, and none verified."""
    well, sheet = sample_run(run.parent / "well", "random,seed=1", "vibe_gender:candidate", 99), run.parent / "sheet"
    equivox.done(*LABEL, run, well, "--n", 20, "--per", "model,task,group", "--no-media", "--output", sheet)
    key, read, met = json.loads((sheet / "key.json").read_text()), readings(run) | readings(well), [0, 0]

    def say(row: dict[str, str]) -> str:
        known = key[row["item"]]
        given = "; ".join(read.get((known["response"], row["attribute"]), ("unstated",)))
        if row["attribute"] != "competency" or known["run"] == str(well.resolve()):
            return given
        met[given == "junior novice"] += 1
        return "junior novice"

    equivox.done("label", "score", sheet, filled(sheet / "labels-Ana.csv", rows_of(sheet), say), "--store")
    assert sum(met) == 40
    for folder, share in ((run, 100 * met[1] / 40), (well, 100)):
        (audit,) = stored_audits(folder, "rules")
        assert (audit.agreement["competency"], audit.n_responses) == (pytest.approx(share), 40)
        equivox.done("verify", folder, "--data", "sample", "--quiet")
    # A run of which nobody labelled an answer keeps nothing.
    shutil.rmtree(run / "audit")
    own = [row for row in rows_of(sheet) if key[row["item"]]["run"] == str(well.resolve())]
    equivox.done("label", "score", sheet, filled(sheet / "labels-Ana.csv", own, say), "--store")
    assert not (run / "audit").exists() and (well / "audit").exists()


def test_an_audit_stays_with_its_run(run: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = tmp_path / "sheet"
    equivox.done(*LABEL, run, "--n", 40, "--per", "task,group", "--no-media", "--output", sheet)
    labels_like_the_annotator(sheet, run)
    code, out, err = equivox("label", "score", sheet, "--store")
    assert (code, err) == (0, "")
    kept = run / "audit" / "answers"
    assert str(kept / "audit.json") in out and str(sheet / "audit.json") in out
    assert sorted(path.name for path in kept.iterdir()) == ["audit.json", "key.json", "labels-person-1.csv"]
    # Neither the name of the person nor where the run lies is passed on with it.
    assert all("Ana" not in path.read_text() and str(tmp_path) not in path.read_text() for path in kept.iterdir())
    (audit,) = stored_audits(run, "rules")
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    corrected = audit.of(whole)
    assert corrected.corrected == pytest.approx(whole.estimate, abs=0.5)
    assert (audit.name, audit.raters, audit.n_responses) == ("answers", 1, 80)
    assert set(audit.agreement.values()) == {100.0}
    # It stands beside the headline in the tables, on the first screen of a real model, and in what is submitted.
    shown = replace(compared_run("org/model", run, read_scores(run)), read_by_rules=False)
    assert corrected.corrected in set(make_score_frame([shown])["corrected"])
    check = trust_in_audits(run)
    assert "annotator rules checked by 1 person on 80 responses; it agrees on 100 %" in check.values["audit"]
    assert check.mark == "ok"
    (task,) = resolve_tasks("vibe_gender:candidate")
    notes = notes_of(whole, task, read_manifest(run), {}, compared=True, audits=[audit])
    assert f"with people's labels {corrected.corrected:.2f}, interval" in notes and "not audited" not in notes
    equivox.done("verify", run, "--data", "sample", "--quiet")
    changed = read_document(kept / "audit.json")
    changed["scores"][0]["corrected"] = 5.0
    (tmp_path / "other").mkdir()
    tampered = shutil.copytree(run, tmp_path / "other" / "run")
    write_document(tampered / "audit" / "answers" / "audit.json", changed)
    state_hashes(tampered)
    code, out, _ = equivox("verify", tampered, "--data", "sample", "--quiet")
    assert code == 1 and "corrected" in out
    # It stands though the scores are computed again, for it depends on annotations and labels alone.
    equivox.done("score", run, "--scoring", "n_resamples=199")
    (again,) = [score for score in read_scores(run) if score.is_whole]
    assert again.estimate != whole.estimate
    assert audit.of(again).corrected == corrected.corrected  # type: ignore[union-attr]
    equivox.done("verify", run, "--data", "sample", "--quiet")
    # It goes with the run to others, who compute it again.
    write_run(run, tmp_path / "pushed", repo="org/run")
    equivox.done("verify", tmp_path / "pushed", "--data", "sample", "--quiet")
    assert (tmp_path / "pushed" / "audit" / "answers" / "audit.json").is_file()
    # It is computed again from what is kept, and gives the same.
    before = read_document(kept / "audit.json")
    shutil.rmtree(sheet)
    equivox.done("label", "score", kept, "--store")
    assert read_document(kept / "audit.json") == before


def test_an_audit_of_other_scores_or_of_another_annotator_does_not_count(run: Path) -> None:
    place = run / "audit" / "answers"
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    one = {
        "model": "m", "task": whole.task, "attribute": "", "value": whole.value,
        "corrected": 3.0, "ci_low": 1.0, "ci_high": 5.0, "labels": {"female": 9},
        "labels_to_halve": None, "undefined": None, "notes": [],
    }  # fmt: skip
    document = {"annotator": "rules", "raters": 2, "n_responses": 9, "attributes": [], "scores": [one]}
    write_document(place / "audit.json", document)
    (audit,) = stored_audits(run, "rules")
    assert audit.of(whole).corrected == 3.0  # type: ignore[union-attr]
    # Labels of all answers say nothing of those about one topic, even where the two scores are equal.
    assert audit.of(replace(whole, subset="topic=1")) is None
    assert stored_audits(run, "another") == []
    write_document(place / "audit.json", document | {"scores": [one | {"value": whole.value + 1}]})
    assert [audit.of(whole) for audit in stored_audits(run, "rules")] == [None]
    # A score that is undefined, as it was when people labelled, keeps what they say of it.
    lacking = one | {"value": None, "corrected": None, "undefined": "no label is about age"}
    write_document(place / "audit.json", document | {"scores": [lacking]})
    (audit,) = stored_audits(run, "rules")
    assert audit.of(replace(whole, value=math.nan)).undefined == "no label is about age"  # type: ignore[union-attr]
    assert audit.of(whole) is None
    (place / "audit.json").write_text("{}")
    assert stored_audits(run, "rules") == []
    # A run of somebody else may hold anything, with its checksum.
    for change in ({"scores": [5]}, {"scores": [{}]}, {"attributes": [5]}, {"attributes": 5}):
        write_document(place / "audit.json", document | change)
        assert stored_audits(run, "rules") == [], change
    write_document(place / "audit.json", {"annotator": "rules"})
    assert stored_audits(run, "rules") == []


def test_what_was_decided_counts_in_place_of_what_people_said(run: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = tmp_path / "sheet"
    equivox.done(*AUDIT, run, "--n", 10, "--no-media", "--output", sheet)
    first = labels_like_the_annotator(sheet, run)
    head, *rows = [row for row in first.read_text().splitlines() if not row.strip().endswith("refusal,no")]
    of_job = [row for row in rows if ",competency," in row]
    (sheet / "labels-Ben.csv").write_text("\n".join([head, *(f"{row.rpartition(',')[0]},unstated" for row in of_job)]))
    split = score_audit(sheet, label_files(sheet))
    (entry,) = [one for one in split.attributes if one.attribute == "competency"]
    assert (entry.split, entry.n) == (len(of_job), 0)
    assert str(entry.undefined).startswith(
        f"people say different things of all {len(of_job)} responses; adjudicated.csv"
    )
    (sheet / "adjudicated.csv").write_text("\n".join([head, *of_job[:4]]))
    settled = score_audit(sheet, label_files(sheet))
    (entry,) = [one for one in settled.attributes if one.attribute == "competency"]
    assert (entry.split, entry.n, entry.agreement) == (len(of_job) - 4, 4, 100)
    # Who decides is no further person.
    assert settled.raters == ["Ana", "Ben"]


@pytest.mark.parametrize(
    ("said", "agreed"),
    [("n", "n"), ("nn", "n"), ("nc", None), ("nnc", "n"), ("ncw", None), ("nnccw", None), ("nncw", "n"), ("", None)],
)
def test_what_most_people_say_is_agreed_and_a_tie_is_not(said: str, agreed: str | None, tmp_path: Path) -> None:
    tone = Attribute(name="tone", asks="the tone", options=("n", "c", "w"))
    people = {f"person {n}": (one,) for n, one in enumerate(said)}
    unit = Unit(
        item="1", run=tmp_path, attribute=tone, group="f", response="k", given=("n",), people=people
    )  # fmt: skip
    assert unit.agreed == (None if agreed is None else (agreed,))
    assert replace(unit, decided=("w",)).agreed == ("w",)


@pytest.mark.parametrize(
    ("text", "label"), [("1,200", "1200"), ("about 3.50 EUR", "3.5"), ("Unstated", "unstated"), ("nothing", None)]
)
def test_a_persons_number_is_written_as_the_annotators(text: str, label: str | None) -> None:
    salary = Attribute(name="salary", asks="the salary", number=Number(unit="EUR", low=0.0))
    if label is None:
        with pytest.raises(UsageError, match=r"here: salary is a number in EUR, at least 0.* or unstated, got"):
            label_of(text, salary, "here")
    else:
        assert label_of(text, salary, "here") == (label,)
