"""Blind sheets of one stage of an annotation, and the agreement of the labels that come back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from commands import Cli
from labelling import AUDIT, LABEL, filled, rows_of
from made_requests import sample_spec
from sample_runs import sample_run

from equivox import cli
from equivox.annotate.model import ModelAnnotator
from equivox.audit.kept import score_audit, score_shares
from equivox.audit.labels import Unit, read_key
from equivox.core.errors import UsageError
from equivox.core.files import read_table, write_table
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.scores import ScoringOptions
from equivox.core.task import GREEDY, Attribute
from equivox.run.manifest import state_hashes
from equivox.run.pipeline import execute
from equivox.run.scoring import read_records
from equivox.run.store import stored_annotations


@pytest.fixture(scope="module")
def narratives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narratives")
    sample_run(folder / "run", "planted,shift=0.5", "genres_standin:cs", limit=12)
    command = [*AUDIT, str(folder / "run"), "--stage", "narrative", "--n", "10"]
    assert cli.run([*command, "--output", str(folder / "sheet")]) == 0
    return folder


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run(tmp_path_factory.mktemp("stories") / "run", "random", "badf_two:gender", limit=4)


def told(row: dict[str, str]) -> str:
    """What the made-up narratives say in so many words, read from the sheet alone."""
    passage = row["response"].split("The passage:")[1]
    if row["attribute"] == "high_status":
        found = re.search(r"Everyone knew that (\w+) held the higher post", passage)
        return found[1] if found else "NA"
    found = re.search(r"it was clear that (\w+) took the first step", passage)
    return found[1] if found else "NA"


def test_the_sheet_shows_what_the_annotator_saw_and_no_more(narratives: Path) -> None:
    rows = rows_of(narratives / "sheet")
    assert {row["attribute"] for row in rows} == {
        "high_status", "main_character", "pros_1", "cons_1", "pros_2", "cons_2"
    }  # fmt: skip
    assert len({row["item"] for row in rows}) == 10
    for row in rows:
        assert "You will be given" in row["response"] or "Here are some tasks" in row["response"]
        assert "Profile of" not in row["response"] and row["label"] == "" and row["prompt"] == ""
    text = (narratives / "sheet" / "sheet.csv").read_text("utf-8")
    assert "simulated" not in text and "planted" not in text and "genres_standin" not in text
    assert "(up to 20 values, separated by ;)" in rows[2]["what to say"]


def test_a_response_counts_once_however_many_of_its_segments_are_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two segments of one response, the same response of another run, and two findings that are about none: 4.
    places = [("1", "a"), ("1", "a"), ("2", "a"), ("2", ""), ("2", "")]
    happy = Attribute(name="happy", asks="whether somebody is happy", options=("yes", "no"))
    units = [
        Unit(
            item=f"i{n}",
            run=Path(run),
            attribute=happy,
            group="",
            response=response,
            given=("yes",),
            people={"ana": ("yes",)},
        )
        for n, (run, response) in enumerate(places)
    ]
    monkeypatch.setattr("equivox.audit.kept.read_key", lambda folder: {unit.item: {"stage": "s"} for unit in units})
    monkeypatch.setattr("equivox.audit.kept.units_of", lambda *given: units)
    audit = score_audit(Path(), [])
    assert audit.n_responses == 4


def test_people_and_annotator_are_compared_by_attribute(narratives: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = narratives / "sheet"
    rows = [row for row in rows_of(sheet) if row["attribute"] in {"high_status", "main_character"}]
    kim = filled(tmp_path / "kim.csv", rows, told)
    audit = score_audit(sheet, [kim])
    assert audit.stage == "narrative" and audit.n_responses == 10
    found = {entry.attribute: entry for entry in audit.attributes}
    # The lists were not labelled: they are not there, rather than agreed on.
    assert set(found) == {"high_status", "main_character"}
    assert [(entry.n, entry.agreement, entry.unlabelled) for entry in found.values()] == [(10, 100.0, 0)] * 2
    # Names differ by story; what is compared is the first, the second, or neither.
    assert found["high_status"].kappa == pytest.approx(1)
    # Three wrong answers of ten, two empty ones: 5 of 8 agree.
    wrong = iter(range(10))

    def sometimes(row: dict[str, str]) -> str:
        if row["attribute"] != "high_status":
            return ""
        number = next(wrong)
        right = told(row)
        names = row["choices"].split(" / ")[:3]
        other = next(name for name in names if name != right)
        return other if number < 3 else "" if number < 5 else right

    lee = filled(tmp_path / "lee.csv", rows, sometimes)
    (entry,) = score_audit(sheet, [lee]).attributes
    assert (entry.n, entry.unlabelled) == (8, 2) and entry.agreement == pytest.approx(62.5)
    assert all(said.startswith("option ") or said == "NA" for pair in entry.errors for said in pair[:2])
    out = equivox.done("label", "score", sheet, lee)
    assert "at the stage narrative against 1 person (lee), 8 responses" in out and "62.5" in out
    assert json.loads((sheet / "audit.json").read_text())["stage"] == "narrative"


def test_lists_have_precision_and_recall(stories: Path, tmp_path: Path, equivox: Cli) -> None:
    equivox.done(*AUDIT, stories, "--stage", "extract", "--n", 2, "-o", tmp_path / "sheet")
    sheet = tmp_path / "sheet"
    rows = rows_of(sheet)
    key = json.loads((sheet / "key.json").read_text())
    assert {row["attribute"] for row in rows} == {"character_1", "character_2", "refusal"}
    stored = [r for r in stored_annotations(stories, "rules").values() if r["segment"] == "extract"]
    answers = {
        (record["response_key"], name): [v["value"] for v in record["values"] if v["attribute"] == name]
        for record in stored
        for name in ("character_1", "character_2")
    }
    first = sorted({row["item"] for row in rows})[0]

    def say(row: dict[str, str]) -> str:
        if row["item"] != first or row["attribute"] != "character_1":
            return ""
        annotated = answers[key[row["item"]]["response"], "character_1"]
        assert len(annotated) >= 2
        # One of the annotator's phrases, and one that it lacks.
        return f"{annotated[0]}; collects stamps"

    (entry,) = score_audit(sheet, [filled(tmp_path / "kim.csv", rows, say)]).attributes
    n = len(answers[key[first]["response"], "character_1"])
    assert entry.precision == pytest.approx(100 / n) and entry.recall == pytest.approx(50)
    assert (entry.attribute, entry.n, entry.agreement, entry.unlabelled) == ("character_1", 1, 0.0, 0)


def test_people_judge_the_annotators_lists(stories: Path, tmp_path: Path, equivox: Cli) -> None:
    sheet = tmp_path / "sheet"
    equivox.done(*AUDIT, stories, "--stage", "refine", "--n", 3, "--judge", "-o", sheet)
    rows = rows_of(sheet)
    assert {row["attribute"] for row in rows} == {
        "character_1 precision", "character_1 recall", "character_2 precision", "character_2 recall"
    }  # fmt: skip
    assert all("What was listed:" in row["response"] and row["choices"] == "a number from 0 to 1" for row in rows)
    # Two people judge the precision of the first character's list of three stories; nobody judges the rest.
    said = {"kim": iter(("1", "0.5", "")), "lee": iter(("0.5", "0.5", ""))}
    files = [
        filled(tmp_path / f"{name}.csv", rows,
               lambda row, own=own: next(own) if row["attribute"] == "character_1 precision" else "")  # type: ignore[misc]
        for name, own in said.items()
    ]  # fmt: skip
    measures, left_out = score_shares(sheet, files)
    # (1 + 0.5) / 2 and (0.5 + 0.5) / 2 are 0.75 and 0.5; their mean is 0.625. 12 were asked, 2 are judged.
    (measure,) = measures
    assert (measure["name"], measure["value"], measure["n"]) == ("refine: character_1 precision", 0.625, 2)
    assert left_out == {"sheet": 10}
    code, out, err = equivox("label", "score", sheet, *files)
    assert code == 0 and "0.6250" in out and "10 texts of sheet" in out, err
    filled(files[0], rows, lambda row: "1.5")
    assert "is a number from 0 to 1, got '1.5'" in equivox.refused("label", "score", sheet, files[0])
    err = equivox.refused(*AUDIT, stories, "--judge", "-o", tmp_path / "x")
    assert "is annotated in stages; name one by `--stage` for `--judge`" in err


def test_people_judge_how_phrases_were_split(tmp_path: Path, equivox: Cli) -> None:
    """Appendix H of BADF: the accuracy of the decomposition, drawn evenly over the kinds of places."""
    stories = sample_run(tmp_path / "run", "biased", "badf_two:gender", limit=400)
    places = set(read_table(stories / "plan.parquet", ["metadata.category"]).column(0).to_pylist())
    sheet = tmp_path / "sheet"
    command = (*LABEL, stories, "--stage", "decompose", "--judge", "--per", "category", "--n", 1, "-o", sheet)
    equivox.done(*command)
    rows = rows_of(sheet)
    assert {row["attribute"] for row in rows} == {"character_1 accuracy", "character_2 accuracy"}
    assert len({row["item"] for row in rows}) == len(places) > 1
    files = [filled(tmp_path / "kim.csv", rows, lambda row: "0.5" if row["attribute"][10] == "1" else "1")]
    measures, left_out = score_shares(sheet, files)
    assert [(m["name"], m["value"]) for m in sorted(measures, key=lambda one: one["name"])] == [
        ("decompose: character_1 accuracy", 0.5), ("decompose: character_2 accuracy", 1.0),
    ]  # fmt: skip
    assert left_out == {}
    assert "did you mean category" in equivox.refused(*LABEL, stories, "--per", "categori", "-o", tmp_path / "x")


def test_people_name_what_wordings_mean(tmp_path: Path, equivox: Cli) -> None:
    """Appendix H of BADF: homogeneity and completeness of what was counted as one, from names that people give."""
    run = sample_run(tmp_path / "run", "biased", "badf_two:gender", limit=40)
    assert read_records(run, "badf_two", "unified")
    place = "media"
    wordings = [("glad", "glad"), ("happy", "glad"), ("joyful", "joyful"), ("tired", "tired")]
    records = [
        {"task": "badf_two:gender", "category": place, "wording": w, "counts_as": c, "n": 1} for w, c in wordings
    ]
    write_table(run / "tables" / "badf_two" / "unified.parquet", pa.Table.from_pylist(records))
    state_hashes(run)
    sheet = tmp_path / "sheet"
    equivox.done(*LABEL, run, "--stage", "unify", "--n", 4, "-o", sheet)
    rows = rows_of(sheet)
    assert {row["response"] for row in rows} == {f"{place}: {wording}" for wording, _ in wordings}
    assert "glad" not in "".join(row["response"] for row in rows if "happy" in row["response"])  # blind to the cluster
    means = {"glad": "joy", "happy": "joy", "joyful": "joy", "tired": "weary"}
    files = [filled(tmp_path / "kim.csv", rows, lambda row: means[row["response"].partition(": ")[2]])]
    out = equivox.done("label", "score", sheet, *files)
    # No cluster mixes meanings: homogeneity 1. H(clusters) = 1.5 bits, H(meanings) = 0.8113, both together 1.5:
    # completeness 1 - (1.5 - 0.8113) / 1.5 = 0.5409, V = 2 * 0.5409 / 1.5409 = 0.7020.
    for name, value in (("homogeneity", "1.0000"), ("completeness", "0.5409"), ("V-measure", "0.7020")):
        assert re.search(rf"unify: {name} +{value}", out), out


def test_people_verify_what_was_extracted(tmp_path: Path, equivox: Cli) -> None:
    """Section 2.4 of VIBE: 10 answers a model, of each dimension apart; what was extracted stands below the answer."""
    run = sample_run(tmp_path / "run", "biased", "vibe_gender:advisory,vibe_accent:advisory", limit=48)
    sheet = tmp_path / "sheet"
    equivox.done(*LABEL, run, "--judge", "--per", "model,task", "--n", 10, "-o", sheet)
    rows = rows_of(sheet)
    assert {row["attribute"] for row in rows} == {"hobby correct"} and len(rows) == 20
    assert all("What was listed:\n- hobby" in row["response"] for row in rows)
    key = read_key(sheet)
    # Of the first dimension one answer of ten has one wrong hobby of three: (9 + 2/3) / 10.
    first = next(row["item"] for row in rows if key[row["item"]]["task"].startswith("vibe_gender"))
    files = [filled(tmp_path / "kim.csv", rows, lambda row: "0.6667" if row["item"] == first else "1")]
    measures, _ = score_shares(sheet, files)
    found = {measure["name"]: (measure["n"], measure["value"]) for measure in measures}
    assert found["vibe_gender: hobby correct"] == (10, pytest.approx(0.96667, abs=1e-5))
    assert found["vibe_accent: hobby correct"] == (10, 1.0)
    code, out, err = equivox("label", "score", sheet, *files)
    assert code == 0 and "vibe_gender: hobby correct" in out and "0.9667" in out, err


def test_a_profile_is_one_text_for_each_character(narratives: Path, tmp_path: Path, equivox: Cli) -> None:
    out = equivox.done(*AUDIT, narratives / "run", "--stage", "profile", "--n", 3, "-o", tmp_path / "sheet")
    assert ": 6 answers" in out
    assert {row["attribute"] for row in rows_of(tmp_path / "sheet")} == {"personality", "occupation", "interests"}


class Reader(Engine):
    """A model that says YES of phrases that begin with a vowel, and cannot be read of those with an s at the end."""

    identity = EngineIdentity(engine="scripted", model="reader", revision="1")

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            (phrase,) = re.findall(r"^Phrase: (.*)$", request.text, re.MULTILINE)
            answer = "perhaps" if phrase.endswith("s") else "YES" if phrase[0] in "aeiou" else "NO"
            yield Response(key=request.key, text=json.dumps({"exclusive": answer}))


def test_questions_about_findings_are_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equivox: Cli) -> None:
    monkeypatch.setattr(
        "equivox.run.pipeline.open_annotator",
        lambda name, workers: ModelAnnotator("reader", Reader(), sampling=GREEDY, attempts=1),
    )
    run, few = tmp_path / "run", ScoringOptions(n_resamples=99)
    execute(
        sample_spec("simulated:planted,shift=0.8", "badf_two:gender", run, limit=100, annotator="reader", options=few)
    )
    equivox.done(*AUDIT, run, "--stage", "exclusivity", "--n", 1000, "-o", tmp_path / "sheet")
    rows = rows_of(tmp_path / "sheet")
    phrases = {row["item"]: re.findall(r"^Phrase: (.*)$", row["response"], re.MULTILINE)[0] for row in rows}
    readable = {item for item, phrase in phrases.items() if not phrase.endswith("s")}
    assert 0 < len(readable) < len(phrases)
    exclusive = {item for item in readable if phrases[item][0] in "aeiou"}
    # Somebody who says NO to everything agrees with the annotator on what it does not call exclusive.
    kim = filled(tmp_path / "kim.csv", rows, lambda row: "no")
    (entry,) = score_audit(tmp_path / "sheet", [kim]).attributes
    assert (entry.n, entry.unread) == (len(readable), len(phrases) - len(readable))
    assert entry.agreement == pytest.approx(100 * (1 - len(exclusive) / len(readable)))
    assert entry.errors in ([("NO", "YES", len(exclusive))], [])
    assert math.isnan(entry.precision)
    # Without readable scores the options are not known, and neither are the findings that were asked about.
    (run / "scores.json").write_text((run / "scores.json").read_text()[:100])
    code, _, err = equivox(*AUDIT, run, "--stage", "exclusivity", "-o", tmp_path / "again")
    assert code == 2 and "scores.json is damaged" in err and not (tmp_path / "again").exists()


@pytest.mark.parametrize("stage", ["exclusivity", "narrative", "finale"])
def test_a_stage_without_answers_is_one_line(stories: Path, tmp_path: Path, equivox: Cli, stage: str) -> None:
    err = equivox.refused(*AUDIT, stories, "--stage", stage, "-o", tmp_path / "sheet")
    if stage == "exclusivity":  # rules are not asked about findings
        assert "the annotator answered nothing at the stage 'exclusivity'" in err
    else:
        assert "known: extract, refine, decompose, final, exclusivity" in err
        assert ("did you mean final" in err) == (stage == "finale")


def test_malformed_labels_are_one_line(narratives: Path, tmp_path: Path) -> None:
    sheet = narratives / "sheet"
    item = rows_of(sheet)[0]["item"]
    for line, reason in (
        ("nobody,high_status,NA", "row 1: nothing is called 'nobody' on the sheet"),
        (f"{item},high_statu,NA", "has no attribute 'high_statu'; did you mean high_status"),
        (f"{item},high_status,Zorro", "high_status is one of .*, got 'Zorro'"),
        (f"{item},high_status,NA\n{item},high_status,NA", "row 2: labels has labelled high_status of"),
        (f"{item},high_status,", "no label is filled in"),
    ):
        (tmp_path / "labels.csv").write_text(f"item,attribute,label\n{line}\n")
        with pytest.raises(UsageError, match=reason):
            score_audit(sheet, [tmp_path / "labels.csv"])


def test_tasks_without_stages_say_so(tmp_path: Path, equivox: Cli) -> None:
    run = sample_run(tmp_path / "run", "random", "vibe_gender:advisory", limit=24)
    err = equivox.refused(*AUDIT, run, "--stage", "story", "-o", tmp_path / "sheet")
    assert "annotated as a whole, so leave `--stage` out" in err
