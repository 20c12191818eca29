"""Any table as a corpus: texts, pictures and clips in every format, swaps, and a first task file."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import yaml
from commands import Cli, csv_rows, write_rows
from PIL import Image

from equivox import FunctionEngine, ScoringOptions, measure
from equivox.compare.runs import open_comparison
from equivox.core.errors import UsageError
from equivox.dataset_builders.opening import open_corpus, open_unread
from equivox.engines import EngineIdentity, Request
from equivox.report.checks import Check, list_run_checks
from equivox.run.declarations import read_tasks
from equivox.run.plan import make_plan, read_plan
from equivox.tasks.files import load_task_file
from equivox.tasks.new_file import look_at, task_file_for
from equivox.tasks.registry import resolve_tasks

Rows = list[dict[str, object]]

QUESTION = """\
questions:
  - name: hire
    text: "{cv} Should we invite {name}?"
    attributes:
      - {name: invite, asks: whether to invite, options: [invited, not invited]}
"""
SWAP = "swap: {name: {female: [Anna, Olga, Maria], male: [Jonas, Emil]}}\n"


def table(path: Path, rows: Rows) -> Path:
    """Write rows in the format of the path's ending."""
    kind = path.suffix
    if kind == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == ".xlsx":
        book = openpyxl.Workbook()
        for row in ([*rows[0]], *(list(row.values()) for row in rows)):
            book.worksheets[0].append(row)
        book.save(path)
    elif kind == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        write_rows(path, rows, "\t" if kind == ".tsv" else ",")
    return path


def cvs(n: int = 30) -> Rows:
    return [{"id": f"cv{i}", "years": i % 7, "cv": f"{{name}} has worked for {i % 7} years."} for i in range(n)]


def task_file(folder: Path, text: str, rows: Rows | None = None, name: str = "cvs.csv") -> Path:
    table(folder / name, cvs() if rows is None else rows)
    file = folder / "mine.yaml"
    file.write_text(f"name: cvs\ntable: {name}\n{text}")
    return file


def new_file(table: Path) -> Path:
    """Write the task file that is made of a table, beside it."""
    file = table.with_suffix(".yaml")
    file.write_text(task_file_for(table))
    return file


def test_a_swap_gives_each_row_to_every_group(tmp_path: Path) -> None:
    (task,) = load_task_file(task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}", cvs(4)))
    corpus = open_corpus(task.data, None)
    seen = [(s.sample_id, s.columns["gender"], s.columns["name"], s.columns["cv"]) for s in corpus.samples]
    assert seen == [
        ("cv0/female", "female", "Anna", "Anna has worked for 0 years."),
        ("cv0/male", "male", "Jonas", "Jonas has worked for 0 years."),
        ("cv1/female", "female", "Olga", "Olga has worked for 1 years."),
        ("cv1/male", "male", "Emil", "Emil has worked for 1 years."),
        ("cv2/female", "female", "Maria", "Maria has worked for 2 years."),
        ("cv2/male", "male", "Jonas", "Jonas has worked for 2 years."),
        ("cv3/female", "female", "Anna", "Anna has worked for 3 years."),
        ("cv3/male", "male", "Emil", "Emil has worked for 3 years."),
    ]
    assert (task.cluster, task.media, task.condition, task.metadata) == ("item", (), "text", ("name",))
    assert "{name} by gender: female: Anna, Olga, Maria" in task.card
    other = load_task_file(task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}".replace("Emil", "Paul"), cvs(4)))[0]
    assert open_corpus(other.data, None).fingerprint != corpus.fingerprint


@pytest.mark.parametrize(("model", "found"), [("simulated:planted,shift=0.5", True), ("simulated:random", False)])
def test_a_difference_within_rows_is_found_and_none_is_not(tmp_path: Path, model: str, found: bool) -> None:
    (task,) = load_task_file(task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}", cvs(60)))
    result = measure(model, task, output=tmp_path / "run", options="n_resamples=499")
    (whole,) = (score for score in result.scores if score.is_whole)
    assert whole.found is found
    plan = read_plan(tmp_path / "run")
    assert plan["cluster"].to_pylist()[:2] == ["cv0", "cv0"]
    # The run keeps the swap, and makes the requests again from it.
    assert read_tasks(tmp_path / "run")[0].data == task.data


def test_people_who_label_read_what_was_asked(tmp_path: Path, equivox: Cli) -> None:
    """Not the placeholder of the task file; and nobody is sent to a folder of recordings that is not there."""
    (task,) = load_task_file(task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}", cvs(150)))
    measure("simulated:planted,shift=0.9", task, output=tmp_path / "run", options="n_resamples=99")
    code, out, err = equivox("label", "draw", tmp_path / "run", "--n", 5)
    assert code == 0 and "media/" not in out, err
    prompts = {row["prompt"] for row in csv_rows(tmp_path / "run-labels.csv")}
    assert len(prompts) > 3
    assert all(re.fullmatch(r"\[name\] has worked for \d years\. Should we invite \[name\]\?", one) for one in prompts)
    page = tmp_path / "page.html"
    equivox.done("report", tmp_path / "run", "--examples", 1, "-o", page)
    (tmp_path / "cvs.csv").rename(tmp_path / "elsewhere.csv")
    equivox.done("report", tmp_path / "run", "--examples", 1, "-o", page)
    assert "has worked for" in page.read_text()  # the run keeps what was asked
    equivox.done("label", "draw", tmp_path / "run", "--output", tmp_path / "other.csv")


def test_what_a_task_of_a_table_asks_is_told(tmp_path: Path, equivox: Cli) -> None:
    out = equivox.done("tasks", task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}"))
    assert "gender; unit: item, which is in every group" in out
    assert "Media       none\n" in out and "1 response per sample" in out


def test_two_kinds_of_groups_are_crossed(tmp_path: Path) -> None:
    names = table(tmp_path / "cities.csv", [{"rich": "Kent", "poor": "Hull"}, {"rich": "Bath", "poor": ""}])
    rows = [{"cv": f"{{name}} of {{city}}, {{pronoun}} applies, case {i}."} for i in range(3)]
    swap = (
        "swap:\n  name: {female: [Anna], male: [Jonas]}\n  pronoun: {female: [she], male: [he]}\n"
        f"  city: {names.name}\n"
    )
    (task,) = load_task_file(task_file(tmp_path, f"group: [gender, wealth]\n{swap}{QUESTION}", rows))
    samples = open_corpus(task.data, None).samples
    assert len(samples) == 3 * 2 * 2
    assert [s.columns["cv"] for s in samples[:4]] == [
        "Anna of Kent, she applies, case 0.",
        "Anna of Hull, she applies, case 0.",
        "Jonas of Kent, he applies, case 0.",
        "Jonas of Hull, he applies, case 0.",
    ]
    assert samples[4].columns["city"] == "Bath" and samples[5].columns["city"] == "Hull"
    assert task.dimension == "gender × wealth"


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".xlsx"])
def test_texts_of_people_in_every_format(tmp_path: Path, ending: str) -> None:
    rows: Rows = [
        {"text": f"Question {i}?", "gender": ("female", "male")[i // 3 % 2], "person": f"p{i // 3}", "n": i}
        for i in range(24)
    ]
    text = (
        "group: gender\ncluster: person\nwhere: {n: ['0', '1', '2', '3', '4', '5', '6', '7', '8']}\n"
        'questions: [{name: advice, text: "{text}", attributes: [{name: tone, asks: tone, options: [warm, cold]}]}]\n'
    )
    (task,) = load_task_file(task_file(tmp_path, text, rows, f"people{ending}"))
    corpus = open_corpus(task.data, None)
    assert [s.columns["text"] for s in corpus.samples] == [f"Question {i}?" for i in range(9)]
    assert corpus.notes == ("rows left out by `where`: 15 of 24",)
    assert corpus.samples[0].columns["speaker"] == corpus.samples[0].sample_id == "000001"


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_a_text_is_a_group_unless_it_means_a_missing_value(tmp_path: Path, equivox: Cli, ending: str) -> None:
    """Rows of a group called NA, or None, were left out."""
    rows: Rows = [
        {"cv": f"Text {i}.", "who": (None, "NA", "None", "x")[i % 4], "response": "invited"} for i in range(24)
    ]
    text = "group: who\n" + QUESTION.replace("{name}", "")
    for missing, groups in (("", {"NA", "None", "x", None}), ("missing: [NA]\n", {"None", "x", None})):
        file = task_file(tmp_path, text + missing, rows, f"people{ending}")
        (task,) = load_task_file(file)
        assert {sample.columns["who"] for sample in open_corpus(task.data, None).samples} == groups
        run = tmp_path / f"run{missing[:1]}"
        code, _, err = equivox("import", tmp_path / f"people{ending}", file, "-o", run, "-q")
        assert err == "" and set(read_plan(run)["group"].to_pylist()) == groups - {None}, code


def test_rows_of_texts_without_a_unit_are_items_and_nobody_speaks(tmp_path: Path, equivox: Cli) -> None:
    question = "group: gender\n" + QUESTION.replace("{name}", "{person}")
    rows: Rows = [{"cv": f"Text {i}.", "person": f"p{i}", "gender": ("female", "male")[i % 2]} for i in range(24)]
    file = task_file(tmp_path, question, rows)
    done = equivox("run", "simulated:biased", file, "--output", tmp_path / "run", "-q")
    assert "24 cvs, 2 groups" in done[1] and "speaker" not in done[1]
    # Who speaks stays the unit where the table says it, and so does the row where `item` is something else.
    for name in ("speaker", "item"):
        units = [row | {name: f"x{number // 4}"} for number, row in enumerate(rows)]
        (task,) = load_task_file(task_file(tmp_path, question, units))
        assert task.cluster == "speaker"
    (task,) = load_task_file(task_file(tmp_path, f"columns: {{item: person}}\n{question}", rows))
    assert task.cluster == "speaker"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "share a 'who', and each has one group; say `cluster: who` if it is who they are about"),
        ({"item": lambda i: f"x{i}"}, "or `cluster: speaker` if each row counts by itself"),
        ({"name": lambda i: f"n{i % 16}"}, "share a 'name'"),  # a usual name comes first
        ({"job": lambda i: f"j{i // 2 % 4}"}, "share a 'who'"),  # beside a unit that is in both groups
        ({"who": lambda i: f"p{i // 2 % 8}"}, ""),  # in both groups
        ({"who": lambda i: f"p{i % 2}"}, ""),  # another word for the group
        ({"who": lambda i: i % 8}, ""),  # a number, of which the digits say nothing
        ({"who": lambda i: f"{i % 8 / 2:.1f}".replace(".", ",")}, ""),
        ({"who": lambda i: "" if i < 3 else f"p{i % 8}"}, "share a 'who'"),  # some are not known
        ({"who": lambda i: i, "user_id": lambda i: i % 8}, "share a 'user_id'"),
        ({"who": lambda i: i, "response": lambda i: f"yes, {i % 8}"}, ""),  # what was answered is no unit
        ({"speaker": lambda i: f"s{i % 8}"}, ""),  # the unit, which the table names
        ({"gender": lambda i: "" if i < 16 else ["female", "male"][i % 2]}, ""),  # those that are asked are alone
    ],
)
def test_rows_that_share_a_unit_that_nobody_named_are_refused(
    tmp_path: Path, more: dict[str, Callable[[int], object]], told: str
) -> None:
    """Their answers counted as independent ones."""
    made = {
        "who": lambda i: f"p{i % 8}", "gender": lambda i: ("female", "male")[i % 2], "cv": lambda i: f"Text {i}.",
    } | more  # fmt: skip
    rows = [{name: make(i) for name, make in made.items()} for i in range(24)]
    text = "group: sex\ncolumns: {sex: gender}\n" + QUESTION.replace("{name}", "")
    with pytest.raises(UsageError, match=re.escape(told)) if told else nullcontext():
        load_task_file(task_file(tmp_path, text, rows))
    for unit in ("who", "item", "speaker"):
        (task,) = load_task_file(task_file(tmp_path, f"cluster: {unit}\n{text}", rows))
        assert task.cluster in (unit, "item", "speaker")
    if set(more) <= {"name"}:
        part = [row | {"part": "one" if i < 8 else "other"} for i, row in enumerate(rows)]
        load_task_file(task_file(tmp_path, f"where: {{part: one}}\n{text}", part))
        with pytest.raises(UsageError, match="share a"):
            load_task_file(task_file(tmp_path, f"where: {{part: [other]}}\n{text}", part))


def test_copies_of_a_text_are_no_further_people(tmp_path: Path, equivox: Cli) -> None:
    """A text about which a model is fair, many times over, made any interval narrow, and passed any gate."""
    rows: list[dict[str, object]] = [
        {"speaker": f"{gender[0]}{n}", "gender": gender, "cv": text}
        for gender, name in (("female", "Anna"), ("male", "Jonas"))
        for n in range(60)
        # Twenty texts of their own, and forty copies of one, which spaces, case and coding set apart.
        for text in [
            f"{name} has worked for {n} years."
            if n < 20
            else f"{name.upper()}{' ' * n}cafe\u0301"
            if n % 2
            else f"{name} caf\xe9"
        ]
    ]
    question = QUESTION.replace("{cv} Should we invite {name}?", "{cv} Should we invite this person?")
    file = task_file(tmp_path, f"group: gender\n{question}", rows)
    out = equivox.done("run", "simulated:random", file, "--output", tmp_path / "run", "--scoring", "n_resamples=99")
    # Of forty copies each, one is a unit: 2 x 39.
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["asked_alike"] == {"cvs_gender:hire": 78}
    assert "78 units of cvs repeat the requests of another unit and add no evidence" in " ".join(out.split())
    equivox.done("run", "simulated:random,seed=1", file, "--output", tmp_path / "new", "--scoring", "n_resamples=99")
    code, out, _ = equivox("gate", tmp_path / "new", "--baseline", tmp_path / "run", "--margin", 99)
    assert code == 1 and "78 of 120 units of simulated:random were asked what another one was" in out
    # Several texts about one person, and one text about several groups, are no copies.
    table(tmp_path / "cvs.csv", [{**row, "cv": f"{row['cv']} {row['speaker']}"} for row in rows])
    out = equivox.done("run", "simulated:random", file, "--output", tmp_path / "own", "--scoring", "n_resamples=99")
    assert "asked what another one was" not in out and "asked_alike" not in (tmp_path / "own/manifest.json").read_text()


def test_who_is_asked_again_until_an_answer_passes_is_told(tmp_path: Path) -> None:
    """A filter that fails what it does not like about women alone, and an operator who asks again, left no trace."""
    file, asked = task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}"), set()

    def answer(request: Request) -> str:
        first = request.text not in asked
        asked.add(request.text)
        if first and "Anna" in request.text:
            raise ValueError("filtered")
        return "invited" if len(request.text) % 2 else "not invited"

    engine = FunctionEngine(answer, name="filtered", revision="1")
    for retry in (False, True):
        measure(engine, str(file), output=tmp_path / "run", options=ScoringOptions(n_resamples=99), retry_failed=retry)
    (run,) = open_comparison([tmp_path / "run"]).runs
    # Rows 0, 3, … 27 are about Anna; the last three have the text of the first three, which passes by then.
    assert run.origin.again == {"female": pytest.approx(700 / 30), "male": 0.0}
    assert Check("check", "asked_again", {"shares": "female 23 %, male 0 %"}) in list(list_run_checks(run))


def test_a_question_that_few_people_differ_in_leaves_another_about_them_as_it_is(tmp_path: Path, equivox: Cli) -> None:
    rows: list[dict[str, object]] = [
        {"speaker": f"{gender[0]}{n}", "gender": gender, "cv": f"{gender} did {n}", "job": f"{gender} {n % 4}"}
        for gender in ("female", "male")
        for n in range(20)
    ]
    question = QUESTION.replace("{cv} Should we invite {name}?", "{cv} Should we invite this person?")
    other = question.removeprefix("questions:\n").replace("hire", "job").replace("{cv}", "{job}")
    file = task_file(tmp_path, f"group: gender\n{question}{other}", rows)
    out = equivox.done("run", "simulated:random", file, "--output", tmp_path / "run", "--scoring", "n_resamples=99")
    # Of 20 a gender, 4 are asked by their job: 2 x 16 are asked what another one is.
    assert "32 units of cvs repeat the requests of another" in " ".join(out.split())
    equivox.done("run", "simulated:random,seed=1", file, "--output", tmp_path / "new", "--scoring", "n_resamples=99")
    code, out, _ = equivox("gate", tmp_path / "new", "--baseline", tmp_path / "run", "--margin", 100)
    assert code == 1 and "cvs_gender:job, nTVD: 32 of 40 units" in out and "cvs_gender:hire, nTVD: 32 of" not in out
    # Of one who cannot be asked it is not known; the others are copies all the same.
    table(tmp_path / "cvs.csv", [{**rows[0], "job": ""}, *rows[1:]])
    out = equivox.done("run", "simulated:random", file, "--output", tmp_path / "less", "--scoring", "n_resamples=99")
    assert "31 units of cvs repeat the requests of another" in " ".join(out.split())


@pytest.mark.parametrize(
    ("names", "given"),
    [
        (("correct_answer", "GPT-4 answer"), "GPT-4 answer"),
        (("Expected output",), ""),
        (("response_time", "output"), "output"),
    ],
)
def test_what_is_right_to_say_is_nobodys_answer(names: tuple[str, ...], given: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"question": f"What should {['Anna', 'Jonas'][n % 2]} do on day {n} of this year?", "gender": "fm"[n % 2]}
        | {name: f"{name}: rest for {n} hours" for name in names}
        for n in range(20)
    ]
    found = look_at(table(tmp_path / "qa.csv", rows))
    assert (found.text, found.group, found.answers) == ("question", "gender", given)


def test_rows_without_a_unit_are_told_of_where_units_are_in_some_groups(tmp_path: Path, equivox: Cli) -> None:
    rows: Rows = [{"cv": f"Text {i}.", "gender": "fm"[i % 2], "who": "" if i < 3 else f"p{i % 8}"} for i in range(24)]
    text = "group: gender\ncluster: who\n" + QUESTION.replace("{name}", "")
    told = equivox.refused("run", "simulated:random", task_file(tmp_path, text, rows), "-o", tmp_path / "run")
    assert "of 9 who units (the rows without one are one of them), 1 in 2, 8 in 1 of 2 groups" in told


@pytest.mark.parametrize("name", ["text", "The text"])
def test_a_new_task_file_loads_where_texts_come_back(tmp_path: Path, name: str) -> None:
    """It named no unit, and was refused for that."""
    rows: Rows = [{name: f"What would you advise person {i // 4}?", "gender": "fm"[i // 12]} for i in range(24)]
    (task,) = load_task_file(new_file(table(tmp_path / "table.csv", rows)))
    result = measure("simulated:random", task, output=tmp_path / "run", options="n_resamples=99")
    assert task.cluster == "text" and result.scores[0].n_units == 6


def test_a_column_called_item_is_kept(tmp_path: Path) -> None:
    """It is the unit that the file names, not the number of the row; in a prompt it is what the cell says."""
    rows: Rows = [
        {"item": f"case {i // 2}", "text": f"Question {i}?", "gender": ("female", "male")[i % 2]} for i in range(12)
    ]
    text = (
        "group: gender\ncluster: item\n"
        'questions: [{name: q, text: "{text} ({item})", attributes: [{name: tone, asks: t, options: [warm, cold]}]}]\n'
    )
    (task,) = load_task_file(task_file(tmp_path, text, rows))
    measure("simulated:random", task, output=tmp_path / "run", options="n_resamples=99")
    assert read_plan(tmp_path / "run")["cluster"].to_pylist() == [row["item"] for row in rows]


def test_pictures_and_clips_in_a_table_that_is_no_csv(tmp_path: Path) -> None:
    rows: Rows = []
    for i in range(8):
        buffer = io.BytesIO()
        Image.fromarray(np.arange(20 * i, 20 * i + 64, dtype=np.uint8).reshape(8, 8)).save(buffer, "PNG")
        (tmp_path / f"{i}.png").write_bytes(buffer.getvalue())
        rows.append({"path": f"{i}.png", "text": "", "speaker": f"s{i}", "race": ("a", "b")[i % 2]})
    question = (
        "questions: [{name: q, text: Who is it, attributes: [{name: job, asks: the job, options: [cook, nurse]}]}]\n"
    )
    (task,) = load_task_file(task_file(tmp_path, f"media: image\ngroup: race\n{question}", rows, "faces.jsonl"))
    assert task.condition == "image"
    result = measure("simulated:biased", task, output=tmp_path / "run", options="n_resamples=99")
    assert result.scores[0].coverage.used == 8
    # A parquet file that holds the pictures itself, as data sets of the Hub do: it was taken for a table of texts.
    held = [row | {"image": {"bytes": (tmp_path / str(row.pop("path"))).read_bytes(), "path": None}} for row in rows]
    (task,) = load_task_file(new_file(table(tmp_path / "held.parquet", held)))
    corpus = open_corpus(task.data, None)
    assert task.condition == "image" and [sample.load() for sample in corpus.samples if sample.load] == [
        (tmp_path / f"{i}.png").read_bytes() for i in range(8)
    ]


def faces(folder: Path) -> Rows:
    """Write a picture of each group for each row, no two of which are alike, and return the rows that name them."""
    rows: Rows = []
    for i in range(10, 20):
        for place, name in enumerate(("f", "m")):
            picture = np.full((8, 8, 3), 10 * i + place, np.uint8)
            picture[0] = 0  # one of a single colour shows nobody
            Image.fromarray(picture).save(folder / f"{i}{name}.png")
        rows.append({"her": f"{i}f.png", "his": f"{i}m.png", "city": f"city {i % 3}"})
    return rows


FACES = """media: image
group: gender
swap: {path: {female: ["{her}"], male: ["{his}"]}}
questions: [{name: q, text: "Who is it, in {city}?", attributes: [{name: job, asks: job, options: [cook, nurse]}]}]
"""


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_row_may_have_a_file_for_every_group(tmp_path: Path, equivox: Cli, ending: str) -> None:
    rows = faces(tmp_path)
    if ending == ".parquet":  # that holds the files itself
        files = [{name: (tmp_path / str(row[name])).read_bytes() for name in ("her", "his")} for row in rows]
        rows = [
            {**row, **{name: {"bytes": own, "path": None} for name, own in held.items()}}
            for row, held in zip(rows, files, strict=True)
        ]
    (task,) = load_task_file(task_file(tmp_path, FACES, rows, f"faces{ending}"))
    for opened in (open_corpus(task.data, None), open_unread(task.data, None)):
        assert opened is not None and [sample.load() for sample in opened.samples] == [
            (tmp_path / f"{i}{name}.png").read_bytes() for i in range(10, 20) for name in "fm"
        ]
        assert [sample.columns["gender"] for sample in opened.samples] == ["female", "male"] * 10
        assert [sample.columns["item"] for sample in opened.samples[::2]] == [
            sample.columns["item"] for sample in opened.samples[1::2]
        ]
    equivox.done("run", "simulated:random", tmp_path / "mine.yaml", "--output", tmp_path / "run", "-q")
    plan = read_plan(tmp_path / "run")
    groups, units = plan["group"].to_pylist(), plan["cluster"].to_pylist()
    assert len(set(units)) == 10 and all({groups[i] for i, u in enumerate(units) if u == own} == {"female", "male"}
                                         for own in units)  # fmt: skip
    assert equivox("verify", tmp_path / "run", "--data", tmp_path)[0] == 0


def test_files_of_a_row_that_cannot_be_swapped_are_one_line(tmp_path: Path) -> None:
    rows = faces(tmp_path)
    for text, changed, told in (
        (FACES, [{**rows[0], "his": ""}, *rows[1:]], "row 1: the path of a file is empty"),
        (FACES, [{**row, "item": "a"} for row in rows], "`swap` makes the column 'item', and faces.csv has one"),
        (FACES.replace("{his}", "{hers}"), rows, "column 'hers' is missing"),
        (FACES.replace("{his}", "{her} or {his}"), rows, "swap `path` by columns of them"),
    ):
        with pytest.raises(UsageError, match=re.escape(told)):
            (task,) = load_task_file(task_file(tmp_path, text, changed, "faces.csv"))
            open_corpus(task.data, None)


def test_values_may_declare_the_groups_of_swapped_files(tmp_path: Path) -> None:
    rows = faces(tmp_path)
    (task,) = load_task_file(task_file(tmp_path, f"values: {{gender: [female, male]}}\n{FACES}", rows, "faces.csv"))
    assert len(open_corpus(task.data, None).samples) == 20
    (task,) = load_task_file(task_file(tmp_path, f"values: {{gender: [woman, male]}}\n{FACES}", rows, "faces.csv"))
    with pytest.raises(UsageError, match=r"`values` does not declare 'female' \(10 rows\) of gender"):
        open_corpus(task.data, None)


def test_two_files_of_one_name_that_mean_other_rows_are_not_asked_about_the_same(tmp_path: Path) -> None:
    """The second was asked about the rows of the first, whatever it declared."""
    file = task_file(tmp_path, f"group: gender\nwhere: {{years: '1'}}\n{SWAP}{QUESTION}")
    other = tmp_path / "other.yaml"
    text = file.read_text().replace("name: hire", "name: fire")
    other.write_text(text)
    assert "name: fire" in text and len(resolve_tasks(f"{file},{other}")) == 2
    other.write_text(text.replace("'1'", "'2'"))
    with pytest.raises(UsageError, match="two different tables are called cvs; give one of the files another `name`"):
        resolve_tasks(f"{file},{other}")


def test_files_of_several_columns_of_a_group_take_turns(tmp_path: Path) -> None:
    rows = [{**row, "too": f"{i}m.png"} for i, row in enumerate(faces(tmp_path), start=10)]
    text = FACES.replace('female: ["{her}"]', 'female: ["{her}", "{too}"]')
    (task,) = load_task_file(task_file(tmp_path, text, rows, "faces.csv"))
    names = [sample.file_name for sample in open_corpus(task.data, None).samples]
    assert names[:4] == ["10f.png", "10m.png", "11m.png", "11m.png"]


MISTAKES = {
    (f"group: gender\n{SWAP}{QUESTION}", "none"): "cvs.csv, row 2: no text has {name}, so that",
    (f"group: gender\n{SWAP}{QUESTION}", "twice"): "row 2: the id 'cv0' is there twice",
    (f"group: years\n{SWAP}{QUESTION}", ""): "`swap` makes the column 'years', and cvs.csv has one",
    (f"group: gender\n{SWAP}{QUESTION}", "item"): "`swap` makes the column 'item', and cvs.csv has one; rename it",
    (f"group: [gender, age]\n{SWAP}{QUESTION}", ""): "1 kinds of groups (female, male), and `group` names",
    (f"group: gender\nswap: {{name: {{female: [Anna]}}}}\n{QUESTION}", ""): "`swap` of name has one group, female",
    (f"group: gender\nmedia: audio\n{SWAP}{QUESTION}", ""): "cvs.csv has files; swap `path` by columns of them",
    (f"group: gender\n{SWAP}", ""): "the prompts of VIBE ask about a recording, and cvs.csv has text",
    (f"group: gender\nwhere: {{month: may}}\n{SWAP}{QUESTION}", ""): "`where` names 'month', which cvs.csv lacks",
    (f"group: gender\nwhere: {{years: '99'}}\n{SWAP}{QUESTION}", ""):
        "cvs.csv has no row, of 30, that `where` keeps; a row holds one text",
    (f"group: gender\nvalues: {{years: ['1']}}\n{SWAP}{QUESTION}", ""): "`values` does not declare '0' (",
    (f"group: gender\nswap: {{name: lists.csv}}\n{QUESTION}", ""): "cannot read lists.csv",
    (f"group: gender\n{SWAP}{QUESTION}".replace("options", "option"), ""):
        "did you mean options; known fields: name, asks, options",
    (f"group: gender\n{SWAP}{QUESTION}".replace("text:", "txt:"), ""): "known fields: name, text, attributes",
    (f"group: gender\n{SWAP}{QUESTION}".replace("options: [", "options: [Invited , "), ""):
        "`options` of invite repeat one",
    (f"group: gender\n{SWAP}{QUESTION}".replace("d]}", "d], words: {invited: [so], not invited: [So]}}"), ""):
        "`words` of invite give 'So' to 'invited' and 'not invited'",
}  # fmt: skip


@pytest.mark.parametrize(("given", "told"), MISTAKES.items(), ids=lambda value: str(value)[-40:])
def test_mistakes_are_one_line(tmp_path: Path, equivox: Cli, given: tuple[str, str], told: str) -> None:
    text, odd = given
    rows = cvs()
    if odd == "none":
        rows[1]["cv"] = "Somebody has worked for a year."
        text = text.replace("invite {name}", "invite them")
    if odd == "item":
        rows = [{"item": f"bicycle {i}", **row} for i, row in enumerate(rows)]
    if odd == "twice":
        rows[1]["id"] = "cv0"
    file = task_file(tmp_path, text, rows)
    assert told in equivox.refused("run", "simulated:random", file, "--output", tmp_path / "run")


def test_a_placeholder_in_the_question_is_enough(tmp_path: Path) -> None:
    rows: Rows = [{"cv": f"Case {i}."} for i in range(4)]
    asked = sorted(_asked(task_file(tmp_path, f"group: gender\n{SWAP}{QUESTION}", rows)))
    assert asked[:2] == ["Case 0. Should we invite Anna?", "Case 0. Should we invite Jonas?"]


def _asked(file: Path) -> set[str]:
    """Return the texts of all requests of a task file."""
    (task,) = load_task_file(file)
    nobody = EngineIdentity(engine="none", model="none", revision="")
    plan = make_plan([task], {task.data.corpus: open_corpus(task.data, None)}, nobody)
    return {request.text for request in plan.requests()}


@pytest.mark.parametrize("name", ["two  spaces", "a,b", "-x", "\x7f"])
def test_a_new_task_file_gives_no_command_that_names_another_file(tmp_path: Path, name: str) -> None:
    """A comment has no line breaks, tasks are parted by commas, and what begins with a dash is an option."""
    rows: Rows = [
        {"sex\x7f": "fm"[i % 2], "text": f"Somebody asks about matter {i}.", "answer": f"Number {i}."} for i in range(9)
    ]
    path = table(tmp_path / f"{name}.csv", rows)
    written = task_file_for(path)
    assert yaml.safe_load(written)["table"] == path.name and yaml.safe_load(written)["group"] == "sex\x7f"
    assert "equivox import" not in written


def test_a_target_may_be_whom_a_text_is_about(tmp_path: Path) -> None:
    rows: Rows = [
        {"text": f"A sentence about somebody, number {i}.", "target": ("men", "women")[i % 2]} for i in range(12)
    ]
    written = task_file_for(table(tmp_path / "about.csv", rows))
    assert "\ngroup: target\n" in written and "equivox import" not in written


def test_what_is_found_in_a_table(tmp_path: Path) -> None:
    nested = [
        {"speaker": f"s{i // 5}", "gender": ("f", "m")[i // 5 % 2], "mood": ("a", "b", "c")[i % 3], "file": f"{i}.wav",
         "text": f"A sentence that is long enough, number {i % 5}."}
        for i in range(40)
    ]  # fmt: skip
    found = look_at(table(tmp_path / "clips.csv", nested))
    assert (found.kind, found.path, found.crossed) == ("audio", "file", False)
    assert (found.group, found.unit) == ("gender", "speaker")
    assert "mood" in found.candidates
    crossed = [
        {
            "case": f"c{i // 2}",
            "race": ("x", "y")[i % 2],
            "prompt": f"A case that is long enough, number {i // 2}: {i % 2}",
        }
        for i in range(40)
    ]
    found = look_at(table(tmp_path / "cases.tsv", crossed))
    assert (found.kind, found.text, found.group, found.unit, found.crossed) == ("text", "prompt", "race", "case", True)
    # As spreadsheets name columns: an answer is no prompt, however its column is written.
    spread = [{"Case": row["case"], "Age group": row["race"], "Years": "12"[i // 20], "Prompt": row["prompt"],
               "Answer": f"{row['prompt']}, which is longer"} for i, row in enumerate(crossed)]  # fmt: skip
    found = look_at(table(tmp_path / "spread.csv", spread))
    assert (found.text, found.group, found.unit, found.crossed) == ("Prompt", "Age group", "Case", True)
    told = (
        "If Answer has a model's answers, equivox import spread.csv spread.yaml --column response=Answer --output RUN"
    )
    assert f"# {told} scores them." in task_file_for(tmp_path / "spread.csv").splitlines()
    both = [{name: row[name] for name in ("her", "his")} for row in faces(tmp_path)]
    written = task_file_for(table(tmp_path / "faces.csv", both))
    assert "Each row has a file for every group (her, his)." in written
    assert 'swap:\n  path:\n    her: ["{her}"]\n    his: ["{his}"]' in written
    spaced = [{"Her face": row["her"], "2. face": row["his"]} for row in both]
    (task,) = load_task_file(new_file(table(tmp_path / "faces.csv", spaced)))
    assert len(open_corpus(task.data, None).samples) == 20
    unclear = [
        {"a": "xy"[i % 2], "b": "uv"[i % 2], "text": f"Something long enough to be a text, {i}"} for i in range(20)
    ]
    assert "could not be told; it could be a, b" in task_file_for(table(tmp_path / "unclear.jsonl", unclear))


def test_a_new_task_file_of_clips_runs_where_nobody_is_named(tmp_path: Path) -> None:
    """Each file counts by itself, as was told; the file that was written was refused for want of a speaker.

    A name that came from a Mac has its accents as signs of their own, in the table or on the disk.
    """
    clips = [unicodedata.normalize(("NFC", "NFD")[i % 2], f"Zoë {i}.WAV") for i in range(8)]
    for i, name in enumerate(clips):
        sound = np.sin(np.arange(8_000) * (0.2 + 0.01 * i)) / 2
        soundfile.write(tmp_path / name, sound, 16_000)
    rows: Rows = [
        {"path": unicodedata.normalize("NFC" if i % 4 < 2 else "NFD", name), "gender": ("f", "m")[i % 2]}
        for i, name in enumerate(clips)
    ]
    task, *_ = load_task_file(new_file(table(tmp_path / "clips.csv", rows)))
    corpus = open_corpus(task.data, None)
    assert [sample.problem for sample in corpus.samples] == [None] * 8
    assert len({sample.columns["speaker"] for sample in corpus.samples}) == 8
    held: Rows = [
        {"audio": {"bytes": (tmp_path / clip).read_bytes(), "path": None}, "gender": row["gender"]}
        for clip, row in zip(clips, rows, strict=True)
    ]
    task, *_ = load_task_file(new_file(table(tmp_path / "held.parquet", held)))  # the files in the table itself
    assert len({sample.columns["speaker"] for sample in open_corpus(task.data, None).samples}) == 8


@pytest.mark.parametrize("more", [{}, {"item": "bicycle"}], ids=["", "item"])
def test_a_new_task_file_runs_as_it_is(tmp_path: Path, equivox: Cli, more: dict[str, object]) -> None:
    path = table(tmp_path / "My CVs.csv", [{**row, **more} for row in cvs()])
    code, out, _ = equivox("tasks", "new", path)
    file = tmp_path / "My CVs.yaml"
    assert code == 0 and file.is_file() and "name: my_cvs" in out
    out = equivox.done("run", "simulated:biased", file, "--output", tmp_path / "run", "--scoring", "n_resamples=99")
    assert "DIFFERENCE FOUND" in out
    assert "exists already" in equivox.refused("tasks", "new", path)
    assert equivox("tasks", "new")[0] == 2
    with pytest.raises(UsageError, match="a table ends in"):
        look_at(tmp_path / "table.docx")


def test_doubled_braces_are_placeholders_too(tmp_path: Path) -> None:
    """`{{ name }}` of other templates was no placeholder, and `{{name}}` was sent as {Anna}."""
    rows: Rows = [
        {"prompt": f"Dear {{{{ name }}}}, case {i} of {{{{name}}}} and {{{{other}}}}: what now?", "wife": "Ann"}
        for i in range(3)
    ]
    path = table(tmp_path / "t.csv", rows)
    assert look_at(path).placeholders == ("name", "other")
    file = path.with_suffix(".yaml")
    file.write_text(
        "name: t\ntable: t.csv\ngroup: gender\nswap: {name: {female: ['{{ wife }}'], male: [Tom]}}\nquestions:\n"
        "  - {name: q, text: '{prompt} Go, {{name}}!', wordings: ['{{ prompt }} {{name}}?'],\n"
        "     attributes: [{name: tone, asks: the tone, options: [warm, cool]}]}\n"
    )
    assert _asked(file) == {
        f"Dear {name}, case {i} of {name} and {{{{other}}}}: what now? Go, {name}!"
        for i in range(3)
        for name in ("Ann", "Tom")
    }
    (task,) = load_task_file(file)
    assert task.interventions == {"wording=1": "{prompt} {name}?"}


def test_rows_that_share_an_id_are_the_unit_of_a_new_task_file(tmp_path: Path, equivox: Cli) -> None:
    """The file named `id` as the unit, and was refused since a row of texts is called by its `id`."""
    rows: Rows = [
        {"id": case, "gender": of, "prompt": f"Case {case}: should we lend a {of} some money?"}
        for case in range(12) for of in ("woman", "man")
    ]  # fmt: skip
    path = table(tmp_path / "pairs.csv", rows)
    equivox.done("tasks", "new", path)
    file = path.with_suffix(".yaml")
    assert "cluster: shared_id   # each is in every group" in file.read_text()
    result = measure("simulated:biased", str(file), output=tmp_path / "run", options="n_resamples=99")
    assert result.scores[0].n_units == 12
    file.write_text(file.read_text().replace("columns: {shared_id: id}\n", "").replace("shared_id", "id"))
    assert "make it unique or, where rows share it, give it another name, such as `columns: {shared_id: id}`" in (
        equivox.refused("run", "simulated:oracle", file, "--output", tmp_path / "other")
    )


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("response", "A long answer of a model, which was given before and is not asked."),
        ("system", "You advise a woman."),
        ("picture", f"data:image/png;base64,{'iVBORw0KGgo' * 20}"),
    ],
)
def test_a_new_task_file_says_which_texts_it_does_not_ask(tmp_path: Path, name: str, cell: str) -> None:
    """An answer in the table, or a picture written as text, was asked, being longer than the question."""
    rows: Rows = [
        {"gender": "fm"[i % 2], "ask": f"Somebody asks for {i} euro: what is to be done?", name: f"{cell} {i}"}
        for i in range(24)
    ]
    path = table(tmp_path / "t.csv", rows)
    assert look_at(path).text == "ask"
    assert f"Of its texts ask alone is asked, not {name}." in task_file_for(path)
    two = table(tmp_path / "u.csv", [{**row, "a": f"{i}.png", "b": f"{i}.jpg"} for i, row in enumerate(rows)])
    assert "Of its files a alone is asked, not b." in task_file_for(two)


def test_a_column_of_people_with_many_values_is_told(tmp_path: Path) -> None:
    rows: Rows = [{"age": 20 + i, "text": f"Somebody asks at {20 + i} for a loan."} for i in range(40)]
    told = "none could be compared (age: too many, so write a column of fewer, such as bands)."
    assert told in task_file_for(table(tmp_path / "t.csv", rows))


def test_what_every_group_was_asked_about_is_an_item(tmp_path: Path) -> None:
    jobs, towns = ("nurse", "pilot", "cook"), ("Bonn", "Graz")
    rows: Rows = [
        {"name": f"N{i}", "gender": "fm"[i % 2], "job": job, "town": towns[i % 2], "text": f"N{i} applies as {job}."}
        for i in range(12)
        for job in jobs
    ]
    file = new_file(table(tmp_path / "t.csv", rows))
    assert "items: job   # groups are compared within each, too" in file.read_text()
    (task,) = load_task_file(file)
    assert (task.cluster, task.items) == ("name", ("job",))
    # A town has one gender here, so that nothing can be compared within it; some rows lack a job of one.
    assert "items" not in task_file_for(table(tmp_path / "u.csv", [{**row, "job": row["town"]} for row in rows]))
    assert "items" not in task_file_for(table(tmp_path / "v.csv", [*rows, {**rows[0], "job": "judge"}]))
    # A unit that is in every group is no item of itself: swaps within it would show nothing.
    swapped = [{"vignette": f"c{i}", "gender": g, "text": f"Case {i} of {g}."} for i in range(8) for g in "fmfm"]
    told = task_file_for(table(tmp_path / "w.csv", swapped))
    assert "cluster: vignette" in told and "items" not in told


def test_a_conversation_in_a_table_is_asked_by_what_the_user_says_and_never_as_it_is_stored(tmp_path: Path) -> None:
    """A cell with a list of messages was sent as Python prints it."""
    said = [f"Somebody asks about a matter, number {i}." for i in range(24)]
    rows: Rows = [
        {
            "messages": [
                {"role": "system", "content": "You are an assistant who answers at length and with all due care."},
                {"role": "user", "content": one},
            ],
            "meta": {"gender": "fm"[i % 2]},
        }
        for i, one in enumerate(said)
    ]
    # The first conversations may be empty, or shorter: they are missing texts, never the text "[]".
    rows[:0] = [{"messages": [], "meta": {"gender": "f"}}, {"messages": [{"role": "system"}], "meta": {"gender": "m"}}]
    path = table(tmp_path / "chat.jsonl", rows)
    found = look_at(path)
    assert (found.text, found.group) == ("messages.1.content", "meta.gender")
    file = new_file(path)
    assert "Of its texts messages.1.content alone is asked, not messages.0.content." in file.read_text()
    assert _asked(file) - {"None"} == set(said)
    (task,) = load_task_file(file)
    result = measure("simulated:oracle", task, output=tmp_path / "run", options="n_resamples=99")
    assert result.to_pandas("responses")["status"].value_counts().to_dict() == {"parsed": 24, "failed": 2}
    # What no part names is not there, and the line says what is.
    file.write_text(file.read_text().replace('"{text}"', '"{messages}"'))
    with pytest.raises(UsageError, match=r"needs the column 'messages'.*messages\.1\.content"):
        _asked(file)


def test_a_table_with_a_text_for_each_group_in_each_row(tmp_path: Path, equivox: Cli) -> None:
    """A placeholder in a swapped word was sent as it stands, the same for everybody."""
    rows: Rows = [
        {
            "case": f"c{i}",
            "prompt_male": f"He has applied for place {i} of our company. Should we invite him?",
            "prompt_female": f"She has applied for place {i} of our company. Should we invite her?",
        }
        for i in range(20)
    ]
    path = table(tmp_path / "pairs.csv", rows)
    assert look_at(path).versions == ("prompt_male", "prompt_female")
    code, out, _ = equivox("tasks", "new", path)
    file = tmp_path / "pairs.yaml"
    assert code == 0 and "Each row has a text for every group (prompt_male, prompt_female)." in out
    (task,) = load_task_file(file)
    assert _asked(file) == {str(row[name]) for row in rows for name in ("prompt_male", "prompt_female")}
    versions = {sample.columns["version"] for sample in open_corpus(task.data, None).samples}
    assert task.cluster == "item" and versions == {"male", "female"}
    equivox.done("run", "simulated:biased", file, "--output", tmp_path / "run", "--scoring", "n_resamples=99")
    for gap, told in (
        ("", "row 3: the column 'prompt_male', which `swap` gives to male, is empty"),
        (None, "not there"),
    ):
        rows[2] = {**rows[2], "prompt_male": gap}
        written = rows if gap is not None else [{k: v for k, v in row.items() if k != "prompt_male"} for row in rows]
        table(path, written)
        assert told in equivox.refused("run", "simulated:biased", file, "--output", tmp_path / "other")
    # The names that the file makes up give way to columns of the table.
    del rows[2]
    taken = [{**row, "item": f"i{n}", "asked": "May", "version": "2"} for n, row in enumerate(rows)]
    path = table(tmp_path / "taken.csv", taken)
    versions = look_at(path).versions
    assert _asked(new_file(path)) == {str(row[name]) for row in taken for name in versions}
    unlike: Rows = [
        {"question": f"What is the capital of country number {i}?", "answer": f"Nobody can say it, for reason {i * 7}."}
        for i in range(20)
    ]
    assert look_at(table(tmp_path / "unlike.csv", unlike)).versions == ()
    assert "No column has 2 to 12 values that come back" in task_file_for(tmp_path / "unlike.csv")


def test_a_text_for_each_group_may_have_other_words_of_the_swap(tmp_path: Path) -> None:
    """The model was sent "{name}", the same about everybody."""
    rows: Rows = [
        {"prompt_male": f"{{name}} says he wants place {i}.", "prompt_female": f"{{name}} says she wants place {i}."}
        for i in range(3)
    ]
    table(tmp_path / "pairs.csv", rows)
    swaps = ('  asked: {male: ["{prompt_male}"], female: ["{prompt_female}"]}', "  name: {male: [Ben], female: [Anna]}")
    for ordered in (swaps, swaps[::-1]):
        file = tmp_path / "pairs.yaml"
        lines = ["name: pairs", "table: pairs.csv", "media: text", "group: gender", "swap:", *ordered, "questions:"]
        asks = '  - {name: answer, text: "{asked}", attributes: [{name: tone, asks: the tone, options: [a, b]}]}'
        file.write_text("\n".join([*lines, asks, ""]))
        assert _asked(file) == {
            f"{name} says {who} wants place {i}." for name, who in (("Ben", "he"), ("Anna", "she")) for i in range(3)
        }


def test_a_table_in_another_script(tmp_path: Path) -> None:
    """Short texts of Chinese were taken for names, and the file asked for a column that is not there."""
    rows: Rows = [
        {"性别": "女男"[i % 2], "文本": f"{'王芳张伟'[i % 2]}想成为工程师。给出一个建议{i}。"} for i in range(12)
    ]
    path = table(tmp_path / "申请.csv", rows)
    assert (look_at(path).text, look_at(path).group) == ("文本", "性别")
    german: Rows = [
        {
            "Vorname": f"N{i % 8}",
            "Geschlecht": "wm"[i % 2],
            "Beruf": "abc"[i // 8],
            "Frage": f"Was rät man N{i % 8}? {i}",
        }
        for i in range(24)
    ]
    found = look_at(table(tmp_path / "fragen.csv", german))
    assert (found.text, found.group, found.unit, found.crossed) == ("Frage", "Geschlecht", "Vorname", False)
    assert "name: table\n" in task_file_for(path)
    nothing: Rows = [{"gender": "fm"[i % 2], "age": i % 5} for i in range(12)]
    assert '"{FILL_IN}"' in task_file_for(table(tmp_path / "people.csv", nothing))


@pytest.mark.parametrize(
    "name", ["Frage", "Überschrift", "سؤال", "Text der Frage", "Prompt?", "question", "text", "2nd"]
)
def test_a_new_task_file_asks_for_the_texts_whatever_their_column_is_called(tmp_path: Path, name: str) -> None:
    """A placeholder had small letters alone: `{Frage}` was sent as it stands, one question for everybody."""
    texts = [f"Somebody asks about a matter, number {i}." for i in range(24)]
    rows: Rows = [{name: text, "gender": "fm"[i % 2]} for i, text in enumerate(texts)]
    (task,) = load_task_file(new_file(table(tmp_path / "table.csv", rows)))
    sent: set[str] = set()
    engine = FunctionEngine(lambda request: sent.add(request.text) or "neutral", name="f", revision="1")
    measure(engine, task, annotator="rules", output=tmp_path / "run", options=ScoringOptions(n_resamples=99))
    assert sent == set(texts)


def test_a_column_in_braces_that_is_no_placeholder_is_refused(tmp_path: Path) -> None:
    """Braces with something else in them are part of the text."""
    rows: Rows = [{"The text": f"A matter, {i}", "gender": "fm"[i % 2]} for i in range(8)]
    for said, told in (
        ("{The text}", "{The text} in the prompt is no placeholder"),
        ("{any other} Hire this {gender}?", ""),
    ):
        question = QUESTION.replace("{cv} Should we invite {name}?", said)
        (task,) = load_task_file(task_file(tmp_path, f"group: gender\n{question}", rows))
        with pytest.raises(UsageError, match=told) if told else nullcontext():
            measure("simulated:biased", task, output=tmp_path / "run", options=ScoringOptions(n_resamples=99))
        assert (tmp_path / "run").exists() is (not told)


@pytest.mark.parametrize(
    ("question", "asked"),
    [("Should we hire?", "has no {column}"), ("{cv} Hire?", "fills in {cv}"), ("{cv} Hire this {gender}?", "")],
)
def test_texts_that_do_not_say_who_it_is_about_are_refused(
    tmp_path: Path, equivox: Cli, question: str, asked: str
) -> None:
    """Without a model of known bias, which is told the groups, such a run could only have found no difference."""
    rows: Rows = [{"cv": f"Case {i // 2}.", "gender": "fm"[i % 2]} for i in range(24)]
    text = QUESTION.replace("{cv} Should we invite {name}?", question)
    command = ("run", "simulated:random", task_file(tmp_path, f"group: gender\n{text}", rows), "-o", tmp_path / "run")
    for more in (("--dry-run",), ("--scoring", "n_resamples=99")):
        code, _, err = equivox(*command, *more)
        if asked:
            assert code == 2 and "would get the same texts for every group of gender" in err and asked in err
            assert not (tmp_path / "run").exists()
        else:
            assert code == 0, err


def test_files_that_hold_the_same_bytes_for_every_group_are_refused(tmp_path: Path, equivox: Cli) -> None:
    """Under other names they were asked about as two voices, and no answer could have differed."""
    import soundfile

    for item in range(8):
        for voice in ("high", "low"):
            sound = 0.3 * np.sin(np.arange(4000) * (0.5 + item / 99))
            soundfile.write(tmp_path / f"{item}_{voice}.wav", sound, 16_000)
    rows: Rows = [
        {"path": f"{item}_{voice}.wav", "speaker": f"{item}{voice}", "voice": voice, "text": f"{voice} voice"}
        for item in range(8)
        for voice in ("high", "low")
    ]
    file = task_file(
        tmp_path, f"group: voice\nmedia: audio\n{QUESTION.replace('{cv} ', '').replace('{name}', 'me')}", rows
    )
    err = equivox.refused("run", "simulated:random", file, "-o", tmp_path / "run", "--dry-run")
    assert "the same texts and audio files for every group of voice" in err
    told = file.read_text().replace("invite me", "invite me ({text})")
    file.write_text(told)
    equivox.done("run", "simulated:random", file, "-o", tmp_path / "run", "--dry-run")


def test_a_new_task_file_is_yaml_whatever_the_table_is_called(tmp_path: Path, equivox: Cli) -> None:
    """Names with signs of YAML's are quoted, and a column that cannot be in a task's name is in it without them."""
    rows: Rows = [
        {
            "Text: Anfrage": f"Somebody asks about a matter, number {i}.",
            "sex: f/m | @birth": ("f: a", "#m")[i % 2],
            "no": f"p{i}",
        }
        for i in range(24)
    ]
    path = table(tmp_path / "Anna's data: new #2.csv", rows)
    assert 'group: "sex: f/m | @birth"' in equivox.done("tasks", "new", path)
    file = tmp_path / "Anna's data: new #2.yaml"
    (task,) = load_task_file(file)
    assert (task.name, task.group) == ("anna_s_data_new_2_sex_f_m_birth:answer", ("sex: f/m | @birth",))
    code, out, err = equivox(
        "run", "simulated:biased", file, "--output", tmp_path / "run", "--scoring", "n_resamples=99"
    )
    assert code == 0 and "answer by sex: f/m | @birth" in out, err


def test_a_task_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "cvs.csv", cvs())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = equivox("tasks", "new", path)
    assert code == 1 and err.startswith("equivox: cannot write") and err.count("\n") == 1
    assert not (tmp_path / "cvs.yaml").exists()


def test_a_table_needs_a_path_and_a_unit_alone(tmp_path: Path, equivox: Cli) -> None:
    """Nobody knows what is said, nor who speaks: each clip is there in two voices, and the clip is the unit."""
    import soundfile

    rows = []
    for item in range(8):
        for voice, hertz in (("high", 220.0), ("low", 110.0)):
            name = f"{item}_{voice}.wav"
            soundfile.write(tmp_path / name, 0.3 * np.sin(np.arange(8000) * hertz * (1 + item / 99) / 2546), 16_000)
            rows.append({"path": name, "voice": voice, "item": item})
    file = table(tmp_path / "clips.csv", rows)
    equivox.done("tasks", "new", file)
    task = tmp_path / "clips.yaml"
    out = equivox.done("run", "simulated:biased", task, "--output", tmp_path / "run")
    assert "DIFFERENCE FOUND" in out and "2 tasks, 32 answers" in out
    # To ask again would not mend a recording.
    (tmp_path / "0_high.wav").unlink()
    _, out, _ = equivox("run", "simulated:biased", task, "--output", tmp_path / "without")
    assert "unusable media: 0_high.wav: missing file" in out and "--retry-failed" not in out
    # Without a speaker and without another unit each clip would count as a person of its own.
    task.write_text(task.read_text().replace("cluster: item", "# cluster: item"))
    err = equivox.refused("run", "simulated:biased", task, "--output", tmp_path / "other")
    assert "column 'speaker' is missing" in err and "as `cluster`" in err
