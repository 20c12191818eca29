"""Labels against the annotator: agreement by hand, corrected scores, and results that stay with a run."""

from __future__ import annotations

import csv
import hashlib
import itertools
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Cli, csv_rows, write_rows
from labelling import Known, Labeller, draw_sheet, fill, known_of, only
from made_requests import three_kinds
from sample_runs import sample_run
from scipy import stats

from equivox.compare.runs import compared_run
from equivox.core.attributes import Number
from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document
from equivox.core.scores import Score
from equivox.core.task import Attribute
from equivox.integrations.hub.run_folder import write_run
from equivox.integrations.hub.submission import notes_of
from equivox.labels.checking import check_annotator
from equivox.labels.reading import Rating, comparable, label_of, read_sheets
from equivox.labels.result import Audit, list_audits
from equivox.report.checks import Check, list_run_checks
from equivox.report.frames import make_score_frame
from equivox.run.manifest import read_manifest, state_hashes
from equivox.run.scoring import read_scores
from equivox.statistics import krippendorff_alpha
from equivox.tasks.registry import resolve_tasks
from equivox.tasks.vibe import TASKS

COMPETENCY = next(
    a for task in TASKS if task.name == "vibe_gender:candidate" for a in task.attributes if a.name == "competency"
)
NOVICE, EXPERT = "junior novice", "exceptional expert"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run(tmp_path_factory.mktemp("labelled") / "run", "planted,shift=0.4", "vibe_gender:candidate")


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


def check(equivox: Cli, run: Path, n: int, *say: Labeller) -> Audit:
    """The result of labels that each of `say` gives on a sheet of `n` answers of each group."""
    sheet = draw_sheet(equivox, run, n)
    return check_annotator(
        run, read_sheets([fill(sheet, run, labeller, f"person{n}") for n, labeller in enumerate(say)])
    )


def store(equivox: Cli, run: Path, n: int, say: Labeller = lambda row, known: known.read) -> Audit:
    equivox.done("label", "score", run, fill(draw_sheet(equivox, run, n), run, say), "--store")
    (audit,) = list_audits(run, "rules")
    return audit


def trust_in_labels(run: Path) -> Check:
    """What the first screen of a run says of its labels, as if of a real model."""
    shown = replace(compared_run("org/model", run, read_scores(run)), read_by_rules=False)
    (audit,) = [check for check in list_run_checks(shown) if check.code == "audited"]
    return audit


def whole_score(run: Path) -> Score:
    (whole,) = [score for score in read_scores(run) if score.is_whole]
    return whole


def test_people_who_agree(run: Path, equivox: Cli) -> None:
    audit = check(equivox, run, 60, lambda row, known: known.read.upper())
    assert (audit.n_responses, audit.raters) == (120, 1)
    for entry in audit.attributes:
        assert (entry.agreement, entry.errors, entry.split, entry.unread) == (100, [], 0, 0)
        assert math.isnan(entry.p_groups)
        assert {group: share.n for group, share in entry.by_group.items()} == {"female": 60, "male": 60}
    scores = {score.attribute or "": score for score in read_scores(run)}
    assert {corrected.attribute for corrected in audit.scores} == {
        "competency", "interaction_style", "cultural_fit", "compensation", "hobby", ""
    } & scores.keys()  # fmt: skip
    whole, *parts = audit.scores
    assert [whole.corrected, whole.ci[0]] == pytest.approx(
        [sum(p.corrected for p in parts) / len(parts), sum(p.ci[0] for p in parts) / len(parts)]
    )
    for corrected in audit.scores:
        score = scores[corrected.attribute]
        # 60 labels a group without an error: nothing moves, but errors in up to 1 - .025^(1/60) = 6 % of each group's
        # answers are allowed for, which together are up to √2 · 6 = 9 points.
        assert corrected.corrected == pytest.approx(max(score.estimate, 0), abs=0.5)
        assert corrected.labels == {"female": 60, "male": 60}
        assert score.ci[1] - 0.5 <= corrected.ci[1] < score.ci[1] + 9


def test_agreement_and_alpha_by_hand(run: Path, equivox: Cli) -> None:
    # The annotator's experts are novices to people every second time; nothing else differs.
    turns = itertools.count()
    pairs: list[tuple[str, str, str]] = []

    def say(row: dict[str, str], known: Known) -> str:
        label = NOVICE if known.read == EXPERT and next(turns) % 2 else known.read
        pairs.append((known.group, label, known.read))
        return label

    (entry,) = check(equivox, run, 60, only("competency", say)).attributes
    n, met = len(pairs), sum(people == annotator for _, people, annotator in pairs)
    assert (entry.n, entry.agreement) == (n, pytest.approx(100 * met / n))
    wilson = stats.binomtest(met, n).proportion_ci(method="wilson")
    assert entry.ci == pytest.approx((100 * wilson.low, 100 * wilson.high))
    assert entry.alpha == pytest.approx(krippendorff_alpha([pair[1:] for pair in pairs]).alpha)
    table = []
    for group, share in entry.by_group.items():
        hits = [people == annotator for name, people, annotator in pairs if name == group]
        low, high = stats.binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
        assert (share.n, share.agreement, *share.ci) == pytest.approx(
            (len(hits), 100 * np.mean(hits), 100 * low, 100 * high)
        )
        table.append([sum(hits), len(hits) - sum(hits)])
    assert entry.p_groups == pytest.approx(stats.fisher_exact(table).pvalue)
    assert {error[1:3] for error in entry.errors} == {(NOVICE, EXPERT)}
    assert sum(error[3] for error in entry.errors) == n - met


def test_an_annotator_that_errs_on_a_group_is_corrected_and_has_no_good_mark(run: Path, equivox: Cli) -> None:
    # Whatever a woman is called, people say novice.
    def say(row: dict[str, str], known: Known) -> str:
        return NOVICE if known.group == "female" else known.read

    audit = check(equivox, run, 60, only("competency", say))
    (entry,) = audit.attributes
    assert entry.by_group["male"].agreement == 100 and entry.by_group["female"].agreement < 75
    assert entry.p_groups < 0.001 and audit.unequal == ["competency"]
    score = next(corrected for corrected in audit.scores if corrected.attribute == "competency")
    male = [known.read for (_, name), known in known_of(run).items() if name == "competency" and known.group == "male"]
    truth = 100 * np.mean([read != NOVICE for read in male])  # women are all novices
    assert score.corrected == pytest.approx(truth, abs=12) and score.ci[0] < truth < score.ci[1]
    # Of 120 answers to women 30 were misread, of 120 to men none: 210 of 240 are met, surely more than the 80 % for a
    # good mark.
    women = itertools.count()

    def say_quarter(row: dict[str, str], known: Known) -> str:
        if row["attribute"] != "competency" or known.group != "female" or next(women) % 4:
            return known.read
        return next(option for option in (NOVICE, EXPERT) if option != known.read)

    audit = store(equivox, run, 120, say_quarter)
    assert audit.attributes[0].agreement == pytest.approx(87.5) and audit.least_agreement > 80
    assert stats.fisher_exact([[90, 30], [120, 0]]).pvalue < 0.001
    check_ = trust_in_labels(run)
    assert check_.mark == "check" and str(check_.values["audit"]).endswith("and errs more on some groups in competency")


def test_errors_on_all_groups_shrink_a_difference(equivox: Cli, tmp_path: Path) -> None:
    run = sample_run(tmp_path / "run", "biased", "vibe_gender:candidate")
    rng = np.random.default_rng(5)

    def say(row: dict[str, str], known: Known) -> str:
        return known.read if rng.random() < 0.7 else str(rng.choice(COMPETENCY.options))

    audit = check(equivox, run, 100, only("competency", say))
    score = next(corrected for corrected in audit.scores if corrected.attribute == "competency")
    # Three in ten answers are anything at all: seven tenths of the distance of 100 are left.
    assert score.value == pytest.approx(100)
    assert score.corrected == pytest.approx(70, abs=10) and score.ci[0] < 70 < score.ci[1]


@pytest.mark.parametrize("number_first", [False, True], ids=["words first", "number first"])
def test_words_are_corrected_wherever_a_number_stands_in_their_file(
    number_first: bool, equivox: Cli, tmp_path: Path
) -> None:
    run = three_kinds(tmp_path, "planted,shift=0.9", number_first=number_first)
    audit = check(equivox, run, 40, lambda row, known: known.read)
    assert {score.task for score in audit.scores} >= {"hire_gender:talk", "hire_gender:talk@turn=2"}


def test_several_people(run: Path, equivox: Cli) -> None:
    first, second = only("competency"), only("competency", lambda row, known: NOVICE)
    audit = check(equivox, run, 30, first, second)
    (entry,) = audit.attributes
    # Where two differ nothing is settled; where they agree, both say novice.
    assert audit.raters == 2 and entry.n + entry.split == 60 and entry.agreement == 100 and entry.alpha < 1
    # A third person makes a majority.
    (entry,) = check(equivox, run, 30, first, second, second).attributes
    assert (entry.n, entry.split) == (60, 0) and entry.agreement < 100


@pytest.mark.parametrize(
    ("said", "agreed"),
    [("n", "n"), ("nn", "n"), ("nc", None), ("nnc", "n"), ("ncw", None), ("nnccw", None), ("nncw", "n"), ("", None)],
)
def test_what_most_people_say_is_agreed_and_a_tie_is_not(said: str, agreed: str | None) -> None:
    people = {f"person {n}": (value,) for n, value in enumerate(said)}
    rating = Rating(attribute=COMPETENCY, group="f", response="k", annotated=("n",), people=people)
    assert rating.agreed == (None if agreed is None else (agreed,))


def test_labels_of_chosen_answers_give_no_good_mark_and_correct_nothing(run: Path, equivox: Cli) -> None:
    counted = itertools.count()

    def say(row: dict[str, str], known: Known) -> str:
        # Of three answers the annotator erred on one, which is passed over.
        return "" if row["attribute"] == "competency" and next(counted) % 3 == 0 else known.read

    def check_chosen() -> None:
        (audit,) = list_audits(run, "rules")
        entry = audit.attributes[0]
        assert (entry.attribute, entry.agreement, entry.unlabelled) == ("competency", 100, 40)
        # Wilson 1927, z = 1.95996: (80 + z² / 2 - z √(80 · 40 / 120 + z² / 4)) / (120 + z²).
        assert entry.least == pytest.approx(57.8311016)
        check_ = trust_in_labels(run)
        assert check_.mark == "check"
        assert str(check_.values["audit"]).endswith("(surely 58 % or more, 40 without one counted as not met)")
        corrected = audit.of(whole_score(run))
        assert corrected is not None and math.isnan(corrected.corrected)
        assert "competency: people settled on a label of " in str(corrected.undefined)

    store(equivox, run, 60, say)
    check_chosen()
    # It is the same if whoever chooses deletes the other rows.
    filled = fill(draw_sheet(equivox, run, 60), run, say)
    write_rows(filled, [row for row in csv_rows(filled) if row["label"]])
    equivox.done("label", "score", run, filled, "--store")
    check_chosen()


def test_who_labels_the_top_of_the_sheet_passes_nothing_over(run: Path, equivox: Cli) -> None:
    rows = csv_rows(draw_sheet(equivox, run, 60))
    top = {row["item"] for row in rows[: len(rows) // 2]}
    audit = store(equivox, run, 60, lambda row, known: known.read if row["item"] in top else "")
    assert (audit.n_responses, audit.unsettled, trust_in_labels(run).mark) == (60, 0, "ok")


def test_who_says_that_an_answer_declines_need_not_fill_in_the_rest(run: Path, equivox: Cli) -> None:
    declined = sorted({row["item"] for row in csv_rows(draw_sheet(equivox, run, 60))})[:40]

    def say(row: dict[str, str], known: Known) -> str:
        if row["item"] not in declined:
            return known.read
        return "yes" if row["attribute"] == "refusal" else ""

    audit = store(equivox, run, 60, say)
    # The annotator read values in 40 of 120 answers, which have none.
    assert (audit.unsettled, audit.attributes[0].agreement) == (0, pytest.approx(100 * 80 / 120))
    # Nothing is passed over by people who label nothing but refusals.
    audit = store(equivox, run, 60, only("refusal", lambda row, known: "yes"))
    assert (audit.unsettled, [entry.attribute for entry in audit.attributes]) == (0, ["refusal"])


def test_an_attribute_that_nobody_labelled_is_not_checked(run: Path, equivox: Cli) -> None:
    audit = store(equivox, run, 40, lambda row, known: "" if row["attribute"] == "cultural_fit" else known.read)
    shown = replace(compared_run("org/model", run, read_scores(run)), read_by_rules=False)
    checks = {check.code: check for check in list_run_checks(shown)}
    assert checks["audited"].mark == "check" and checks["unlabelled"].values["what"] == "cultural_fit"
    corrected = audit.of(whole_score(run))
    assert corrected is not None and corrected.undefined == "no label is about cultural_fit"


@pytest.mark.parametrize(("n", "mark"), [(5, "check"), (8, "ok")])
def test_few_labels_give_no_good_mark_though_all_are_met(run: Path, equivox: Cli, n: int, mark: str) -> None:
    # n answers of each of two groups. An annotator that meets three of four meets 10 of 10 in 6 % of cases.
    assert 0.75**10 > 0.05 and 0.75**16 < 0.05
    audit = store(equivox, run, n)
    low = 100 * stats.binomtest(2 * n, 2 * n).proportion_ci(method="wilson").low
    assert audit.least_agreement == pytest.approx(low) and f"by attribute (surely {low:.0f} % or more)" in audit.summary
    assert trust_in_labels(run).mark == mark
    if n == 5:  # four labels a group correct nothing
        few = check(equivox, run, 4, lambda row, known: known.read)
        assert all("few_labels" in str(corrected.undefined) for corrected in few.scores)


@pytest.mark.parametrize(
    "change",
    [
        {"unread": 40},  # 80 of 120 labels are met, the others are of answers that it could not annotate
        {"n": 0, "agreement": None, "unread": 80, "by_group": {}},  # it annotated none of the labelled answers
        {"n": 0, "agreement": None, "by_group": {}, "split": 80},  # people are split on every answer
        {"n": 60, "split": 20},  # of 80, 60 are met: a second person says something else wherever it errs
        {"n": 60, "unlabelled": 20},  # or whoever labels passes over these
        {"by_group": {"female": {"agreement": 100.0, "ci": [90.0, 100.0], "n": 40}}},  # labels of one group alone
    ],
)
def test_labels_that_say_little_of_an_attribute_give_no_good_mark(
    made: Path, equivox: Cli, change: dict[str, Any]
) -> None:
    if not list_audits(made, "rules"):
        store(equivox, made, 40)
    file = made / "labels" / "labels.json"
    before = file.read_bytes()
    assert trust_in_labels(made).mark == "ok"
    document = read_document(file)
    document["attributes"][0] |= change
    write_document(file, document)
    assert trust_in_labels(made).mark == "check"
    file.write_bytes(before)


def hash_files(run: Path) -> dict[str, str]:
    files = [path for path in run.rglob("*") if path.is_file()]
    return {path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_labels_change_no_run_and_stay_with_it_if_wanted(tmp_path: Path, equivox: Cli) -> None:
    run = sample_run(tmp_path / "run", "planted,shift=0.4", "vibe_gender:candidate")
    before = hash_files(run)
    filled = fill(draw_sheet(equivox, run, 40), run)
    out = equivox.done("label", "score", run, filled)
    assert "competency" in out and "female 40" in out and "No run was changed" in out
    assert hash_files(run) == before
    equivox.done("label", "score", run, filled, "--store")
    assert hash_files(run).keys() - before.keys() == {"labels/labels.json", "labels/person-1.csv"}
    # Neither the name of the person nor where the run lies is passed on with it.
    for path in (run / "labels").iterdir():
        assert "ana" not in path.read_text() and str(tmp_path) not in path.read_text()
    (audit,) = list_audits(run, "rules")
    whole = whole_score(run)
    corrected = audit.of(whole)
    assert corrected is not None and corrected.corrected == pytest.approx(whole.estimate, abs=0.5)
    # It stands beside the headline in the tables, on the first screen of a real model, and in what is submitted.
    shown = replace(compared_run("org/model", run, read_scores(run)), read_by_rules=False)
    assert corrected.corrected in set(make_score_frame([shown])["corrected"])
    assert "annotator rules checked by 1 person on 80 responses; it agrees on 100 %" in audit.summary
    assert trust_in_labels(run).mark == "ok"
    (task,) = resolve_tasks("vibe_gender:candidate")
    notes = notes_of(whole, task, read_manifest(run), {}, compared=True, audits=[audit])
    assert f"with people's labels {corrected.corrected:.2f}, interval" in notes and "not audited" not in notes
    # It is computed again by whoever verifies the run, or a published copy of it.
    equivox.done("verify", run, "--data", "sample", "--quiet")
    write_run(run, tmp_path / "pushed", repo="org/run")
    equivox.done("verify", tmp_path / "pushed", "--data", "sample", "--quiet")
    assert (tmp_path / "pushed" / "labels" / "labels.json").is_file()
    # It does not depend on the options of the scores.
    equivox.done("score", run, "--scoring", "n_resamples=199")
    assert audit.of(whole_score(run)) == corrected
    equivox.done("verify", run, "--data", "sample", "--quiet")
    changed = read_document(run / "labels" / "labels.json")
    changed["scores"][0]["corrected"] = 5.0
    write_document(run / "labels" / "labels.json", changed)
    state_hashes(run)
    code, out, _ = equivox("verify", run, "--data", "sample", "--quiet")
    assert code == 1 and "corrected" in out


def test_a_result_of_other_scores_or_of_another_annotator_does_not_count(run: Path) -> None:
    file, whole = run / "labels" / "labels.json", whole_score(run)
    corrected = {
        "task": whole.task, "attribute": "", "metric": whole.metric, "value": whole.value, "corrected": 3.0,
        "ci": [1.0, 5.0], "labels": {"female": 9}, "undefined": None, "notes": [],
    }  # fmt: skip
    document = {"annotator": "rules", "raters": 2, "n_responses": 9, "attributes": [], "scores": [corrected]}
    write_document(file, document)
    (audit,) = list_audits(run, "rules")
    assert audit.of(whole).corrected == 3.0  # type: ignore[union-attr]
    # Labels of all answers say nothing of those about one topic, even where the two scores are equal.
    assert audit.of(replace(whole, subset="topic=1")) is None
    assert list_audits(run, "another") == []
    write_document(file, document | {"scores": [corrected | {"value": whole.value + 1}]})
    assert [audit.of(whole) for audit in list_audits(run, "rules")] == [None]
    # A score that is undefined, as it was when people labelled, keeps what they say of it.
    write_document(file, document | {"scores": [corrected | {"value": None, "undefined": "no label is about age"}]})
    (audit,) = list_audits(run, "rules")
    assert audit.of(replace(whole, value=math.nan)).undefined == "no label is about age"  # type: ignore[union-attr]
    assert audit.of(whole) is None
    # A run of somebody else may hold anything, with its checksum.
    odd: list[dict[str, Any]] = [
        {"scores": [5]}, {"scores": [{}]}, {"attributes": [5]}, {"attributes": 5}, {"raters": "many"}
    ]  # fmt: skip
    for change in odd:
        write_document(file, document | change)
        assert list_audits(run, "rules") == [], change
    write_document(file, {"annotator": "rules"})
    assert list_audits(run, "rules") == []
    file.write_text("{}")
    assert list_audits(run, "rules") == []


def first_label(label: str) -> Callable[[list[dict[str, str]]], None]:
    def change(rows: list[dict[str, str]]) -> None:
        rows[0]["label"] = label

    return change


REFUSED: dict[str, tuple[Callable[[list[dict[str, str]]], Any], str]] = {
    "an unknown value": (first_label("junior"), "did you mean"),
    "no label": (lambda rows: None, "no label is filled in"),
    "a doubled row": (lambda rows: rows.append(rows[0] | {"label": NOVICE}), "has two rows"),
    "an unknown item": (lambda rows: rows[0].update(item="i000", label=NOVICE), "is no answer of"),
    "an unknown attribute": (lambda rows: rows[0].update(attribute="competence", label=NOVICE), "did you mean"),
    "a lost column": (lambda rows: [row.pop("label") for row in rows], "lack the column 'label'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_sheet_that_does_not_fit_the_run_is_refused(case: str, made: Path, tmp_path: Path, equivox: Cli) -> None:
    change, hint = REFUSED[case]
    rows = csv_rows(draw_sheet(equivox, made, 3))
    change(rows)
    filled = write_rows(tmp_path / "ana.csv", rows)
    assert hint in equivox.refused("label", "score", made, filled)
    assert "named twice" in equivox.refused("label", "score", made, filled, filled)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_labels_are_read_however_a_spreadsheet_separates_cells(separator: str, tmp_path: Path) -> None:
    rows = [("item", "attribute", "label"), ("i1", "things", "chess; yoga"), ("i2", "job", "nurse, at night\tonly")]
    for person in ("ana", "ben"):
        (tmp_path / person).mkdir()
        with (tmp_path / person / "sheet.csv").open("w", encoding="utf-8-sig", newline="") as opened:
            csv.writer(opened, delimiter=separator).writerows(rows)
    sheets = read_sheets([tmp_path / "ana" / "sheet.csv", tmp_path / "ben" / "sheet.csv"])
    assert len(sheets) == 2 and all(read == rows[1:] for read in sheets.values())


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


def test_unstated_is_an_answer_and_no_word() -> None:
    assert comparable(["Unstated"]) == comparable([]) == ("unstated",)
