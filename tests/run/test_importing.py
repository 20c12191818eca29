"""Responses that were made elsewhere: they fit a corpus or describe their samples, and score as a run's own do."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest
from commands import Cli

import equivox as eq
from equivox.core.errors import UsageError
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.run.generating import count_failures
from equivox.run.importing import _refuse_sparse
from equivox.run.plan import samples_of
from equivox.run.response_table import Table
from equivox.tasks.registry import resolve_tasks

Record = dict[str, Any]
SHOWN = [{"sample_id": "gender/00000_ada", "text": "A"}]
TONES = {"f": "warm", "m": "cool"}
OPTIONS = eq.ScoringOptions(min_count=1, n_resamples=99)


def hobbies() -> list[Record]:
    """All four women are told of yoga; of four men two of chess: half of the men's answers lie elsewhere."""
    told = {"female": ["yoga"] * 4, "male": ["yoga", "chess"] * 2}
    return [
        {"speaker": f"{gender}{place}", "gender": gender, "sentence": "IEO", "emotion": "neutral",
         "response": f"Try {hobby}."}
        for gender, own in told.items() for place, hobby in enumerate(own)
    ]  # fmt: skip


def sample_corpus() -> Corpus:
    return open_corpus(resolve_tasks("vibe_gender:advisory")[0].data, "sample")


def imported(told: Any, folder: Path, tasks: Any = "vibe_gender:advisory", **options: Any) -> eq.Result:
    return eq.import_responses(told, tasks, model="mine", output=folder, options=OPTIONS, **options)


def numbers(result: eq.Result) -> dict[tuple[Any, ...], float]:
    return {
        (score.task, score.metric, score.attribute, score.subset): score.value
        for score in result.scores
        if not math.isnan(score.value)
    }


def test_rows_describe_their_samples(tmp_path: Path) -> None:
    result = imported(hobbies(), tmp_path / "run")
    assert result.scores[0].value == pytest.approx(50)
    assert result.scores[0].n_units == 8
    answers = result.to_pandas("responses")
    assert answers["hobby"].tolist() == [["yoga"]] * 4 + [["yoga"], ["chess"]] * 2
    assert result.manifest["command"]["model"] == "imported:mine"


def test_rows_describe_the_blocks_and_items_of_their_samples(tmp_path: Path) -> None:
    rows: list[Record] = [
        {"speaker": f"s{i}", "accent": "ab"[i % 2], "gender": "fm"[i // 2 % 2], "sentence": f"t{n}", "response": told}
        for i in range(8)
        for n, told in enumerate(("Try yoga.", "Try chess."))
    ]
    task = replace(resolve_tasks("vibe_accent:advisory")[0], strata=())
    (score,) = (one for one in imported(rows, tmp_path / "run", task).scores if one.is_whole and one.role == "outcome")
    assert score.coverage.used == 16


def test_a_row_that_says_another_group_than_its_sample_is_refused(tmp_path: Path) -> None:
    """Answers that were shifted by one row were taken for those of the other group."""
    samples = sample_corpus().samples
    rows = [
        {"sample_id": own.sample_id, "gender": of.columns["gender"], "response": "Try yoga."}
        for own, of in zip(samples, [*samples[-1:], *samples[:-1]], strict=True)
    ]
    wrong = next(
        n for n, (row, own) in enumerate(zip(rows, samples, strict=True)) if row["gender"] != own.columns["gender"]
    )
    with pytest.raises(UsageError, match=rf"row {wrong + 1}: gender is '.*', and the sample .* are the rows shifted"):
        imported(rows, tmp_path / "run", data="sample")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_by_one_command_from_any_format(ending: str, tmp_path: Path, equivox: Cli) -> None:
    frame = pandas.DataFrame(hobbies()).rename(columns={"response": "answer"})
    path = tmp_path / f"answers{ending}"
    if ending == ".csv":
        frame.to_csv(path, index=False)
    elif ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    out = equivox.done(
        "import", path, "vibe_gender:advisory", "-o", tmp_path / "run", "--column", "response=answer",
        "--scoring", "min_count=1,n_resamples=99", "-q",
    )  # fmt: skip
    assert "imported:answers" in out and "TOO FEW DATA" in out
    assert f"8 responses of answers{ending}, the rows describe their samples." in out
    assert "Whether the media reached the model cannot be known" in out
    assert equivox("status", tmp_path / "run")[0] == 0
    assert equivox("score", tmp_path / "run", "--scoring", "min_count=1,n_resamples=99", "-q")[0] == 0


@pytest.mark.parametrize(("task", "data"), [("spoken_stereoset:gender", "sample"), ("genres_standin:ar", None)])
def test_what_a_run_answered_scores_the_same_when_it_is_imported(task: str, data: str | None, tmp_path: Path) -> None:
    run = eq.measure("simulated:planted,shift=0.3", task, data="sample", output=tmp_path / "run", options=OPTIONS)
    told = run.to_pandas("responses").drop(columns=["status", "group", "cluster", "stratum"])
    copy = imported(told.sample(frac=1, random_state=3), tmp_path / "copy", task, data=data)
    assert len(numbers(run)) > 5
    assert numbers(copy) == pytest.approx(numbers(run), abs=1e-12)
    assert sorted(copy.to_pandas("responses")["text"]) == sorted(told["text"])


def narrative(man: int, woman: int) -> str:
    sentences = ["Tom opened the shop."] * man + ["Eva counted the boxes."] * woman
    profiles = "**Profile of Tom**\n\nTom is calm.\n\n**Profile of Eva**\n\nEva is kind."
    return f"{profiles}\n\n**Narrative**\n\n{' '.join(sentences)}"


def test_narratives_by_hand(tmp_path: Path) -> None:
    counts = [(3, 1), (4, 2), (5, 2), (3, 2), (4, 2), (5, 3)]
    told = [
        {"nep": f"nep {place}", "relationship": "communal sharing", "plot": "conflict", "names": ["Tom", "Eva"],
         "gender_1": "male", "gender_2": "female", "text": narrative(man, woman)}
        for place, (man, woman) in enumerate(counts)
    ]  # fmt: skip
    result = imported(told, tmp_path / "run", "genres_standin")
    scores = {score.metric: score for score in result.scores if score.is_whole}
    # Subjects of sentences: 24/6 of the man, 12/6 of the woman.
    assert scores["M3"].value == pytest.approx(2)
    assert scores["M3"].coverage.used == 6
    assert {task.name for task in result.tasks} == {"genres_standin:cs"}


@pytest.mark.paper
def test_released_responses_need_neither_corpus_nor_images(reference_data: Path, tmp_path: Path) -> None:
    lines = (reference_data / "genres" / "responses" / "janus_mf_ar.jsonl").read_text("utf-8").splitlines()[:20]
    path = tmp_path / "janus.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    released = [json.loads(line) for line in lines]
    result = imported(path, tmp_path / "run", "genres_standin")
    answers = result.to_pandas("responses").set_index("sample_id")
    assert list(answers["text"]) == [record["response"] for record in released]
    for record in released:
        row = answers.loc[Path(record["image_name"]).stem]
        assert [row["name_1"], row["name_2"]] == record["names"]
        assert {row["gender_1"], row["gender_2"]} == {"male", "female"}
        # The first two of the four scenarios of authority ranking are conflicts.
        assert row["plot"] == ("conflict" if record["scenario_index"] < 2 else "cooperation")
        assert record["image_name"].startswith(f"{row['element']}_")
    subjects = next(score for score in result.scores if score.is_whole and score.metric == "M3")
    assert subjects.coverage.used == 20


def test_stories_are_matched_by_all_columns_that_they_share_with_the_task(tmp_path: Path, equivox: Cli) -> None:
    (task,) = resolve_tasks("badf_two:gender")
    grid = [sample.columns for sample in samples_of(open_corpus(task.data, "sample"), task)]
    rows = [
        {"d1": own["d1"], "d2": own["d2"], "loc": own["loc"], "story": f"{own['d1']} and {own['d2']} met, {number}."}
        for own in grid for number in (1, 2)
    ][:-1]  # fmt: skip
    pandas.DataFrame(rows).to_csv(tmp_path / "stories.csv", index=False)
    pandas.DataFrame(rows).drop(columns="loc").to_csv(tmp_path / "vague.csv", index=False)
    options = ("badf_two:gender", "-o", tmp_path / "run", "--data", "sample", "--column", "response=story", "-q")
    # A row that fits several samples is refused.
    assert "row 1 may be about gender/" in equivox.refused("import", tmp_path / "vague.csv", *options)
    # Rules cannot read a real story: the scores are undefined, and say so.
    code, out, _ = equivox("import", tmp_path / "stories.csv", *options)
    assert code == 1 and f"{len(rows)} responses of stories.csv, matched to the corpus" in out
    assert "failed 1 time: the table has no row for it" in out
    answers = eq.open_run(tmp_path / "run").to_pandas("responses")
    assert answers["text"].notna().sum() == len(rows) == 2 * len(grid) - 1
    assert set(answers["repeat"]) == {0, 1}


def test_a_row_without_a_text_is_a_failed_response(tmp_path: Path) -> None:
    told = hobbies()
    told[0] |= {"response": None, "error": "timed out"}
    told[1] |= {"response": float("nan")}
    told[2] |= {"response": "nan"}  # as pandas writes it where a column became texts
    told[7] |= {"response": "Nan"}  # a given name
    result = imported(told, tmp_path / "run")
    score = result.scores[0]
    assert math.isnan(score.value) and score.undefined_reason.values["share"] == 0.25
    assert (score.coverage.requested, score.coverage.generated) == (8, 5)
    assert count_failures(tmp_path / "run") == {"timed out": 1, "its row has no text": 2}


@pytest.mark.parametrize("emotions", ["neutral", ("neutral", "happy")])
def test_a_table_about_one_task_need_not_say_of_which_part_it_is(
    emotions: str | tuple[str, ...], tmp_path: Path
) -> None:
    task = eq.load_task("vibe_gender:advisory")
    part = replace(task, metadata=("emotion",), data=replace(task.data, where={"emotion": emotions}))
    told = [{name: value for name, value in row.items() if name != "emotion"} for row in hobbies()]
    result = imported(told, tmp_path / "run", [part])
    assert set(result.to_pandas("responses")["emotion"]) == {"neutral"}
    assert result.scores[0].value == pytest.approx(50)


@pytest.mark.parametrize(("rows", "refused"), [(1002, True), (1003, False)])
def test_a_table_that_answers_fewer_than_one_request_in_a_hundred_is_refused(rows: int, refused: bool) -> None:
    # 288 samples asked 348 times each are 100,224 requests.
    task, corpus = eq.load_task("vibe_gender:advisory"), sample_corpus()
    slots: dict[Any, Any] = dict.fromkeys(range(rows))
    given = (SimpleNamespace(name="told"), {"a": task}, {"crema_d": corpus}, slots)
    _refuse_sparse(*given, {"a": 347})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="100,224 requests") if refused else nullcontext():
        _refuse_sparse(*given, {"a": 348})  # type: ignore[arg-type]


def test_the_words_of_the_response_are_no_text_of_the_sample(tmp_path: Path) -> None:
    # The task's prompt has the transcript, in a column of the corpus that is called as that of the responses here.
    told = [
        {**{name: sample.columns[name] for name in ("speaker", "sentence", "emotion", "gender")}, "text": "Try yoga."}
        for sample in sample_corpus().samples
    ]
    result = imported(told, tmp_path / "run", data="sample", conditions="text_only")
    assert result.scores[0].coverage.generated == len(told)


def test_an_import_is_resumed_and_never_mixed(tmp_path: Path) -> None:
    first = imported(hobbies(), tmp_path / "run")
    shuffled = random.Random(0).sample(hobbies(), 8)
    assert numbers(imported(hobbies(), tmp_path / "run")) == numbers(first)
    with pytest.raises(UsageError, match="holds another run"):
        imported([*hobbies()[:-1], {**hobbies()[-1], "response": "Try tea."}], tmp_path / "run")
    assert numbers(imported(shuffled, tmp_path / "other")) == numbers(first)


def batch_line(text: str | None, ended: str = "stop", refusal: str | None = None) -> Record:
    """An answer as a provider's batch file has it."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": ended}]}
    return {"custom_id": "r", "response": {"status_code": 200, "body": body}, "error": None}


def sample_line(text: str) -> Record:
    """An answer as a harness logs it."""
    return {"doc_id": 0, "resps": [[text]], "filtered_resps": [text], "error": None}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (batch_line, "response.body.choices.0.message.content"), (batch_line, "response"),
        (sample_line, "resps.0.0"), (sample_line, "resps"),
    ],
)  # fmt: skip
def test_answers_deep_in_a_record_are_named_by_a_path(
    line: Callable[[str], Record], path: str, tmp_path: Path, equivox: Cli
) -> None:
    """A list of answers, and a completion, need no further path; one that the service failed to give has failed."""
    people = [{name: value for name, value in row.items() if name != "response"} for row in hobbies()]
    told = [{**line(row["response"]), "doc": own} for row, own in zip(hobbies(), people, strict=True)]
    failed: Record = {"response": None, "resps": [], "error": {"code": "batch_expired", "message": "It expired."}}
    told[-1] |= {name: value for name, value in failed.items() if name in told[-1]}
    file = tmp_path / "batch.jsonl"
    file.write_text("\n".join(map(json.dumps, told)))
    columns = [*(f"{name}=doc.{name}" for name in people[0]), f"response={path}"]
    options = [part for column in columns for part in ("--column", column)]
    command = ("import", file, "vibe_gender:advisory", "--output", tmp_path / "run", "--scoring", "min_count=1")
    if path == "resps.0.0":
        assert path in equivox.refused(*command, *options[:-2])
    _, out, _ = equivox(*command, *options)
    assert "failed 1 time: It expired." in out
    answers = eq.open_run(tmp_path / "run").to_pandas("responses")
    assert answers.groupby(["group", "status"], observed=True).size().to_dict() == {
        ("female", "parsed"): 4, ("male", "failed"): 1, ("male", "parsed"): 3,
    }  # fmt: skip


def test_what_became_of_each_request_of_a_batch_is_kept(tmp_path: Path, equivox: Cli) -> None:
    """A refusal has no content: it was a failure. Answers that were cut off or broke off passed for whole ones."""
    sorry, limit = "I'm sorry, I can't assist with that.", {"error": {"message": "Rate limit reached"}}
    lines = [
        batch_line(None, refusal=sorry), batch_line("", "content_filter"), batch_line("Try yo", "length"),
        {"response": {"status_code": 429, "body": limit}, "error": None}, batch_line("Try yo", "error"),
        {"response": {"status_code": 400, "body": {"error": {"code": "content_filter", "message": "filtered"}}}},
        {"response": None, "error": {"code": "content_filter", "message": "filtered"}}, batch_line("Try yoga."),
    ]  # fmt: skip
    told = [{**row, **line} for row, line in zip(hobbies(), lines, strict=True)]
    (tmp_path / "batch.jsonl").write_text("\n".join(map(json.dumps, told)))
    command = ("import", tmp_path / "batch.jsonl", "vibe_gender:advisory", "-o", tmp_path / "run", "-q")
    _, out, _ = equivox(*command, "--scoring", "min_count=1,n_resamples=99")
    answers = eq.open_run(tmp_path / "run").to_pandas("responses")
    assert answers["status"].tolist() == [
        "refused",
        "empty",
        "unparsed",
        "failed",
        "failed",
        "empty",
        "empty",
        "parsed",
    ]
    assert answers["text"][0] == sorry and "failed 1 time: Rate limit reached" in out
    ended = dict(answers["finish_reason"].value_counts())
    assert ended == {"content_filter": 3, "length": 1, "stop": 2, "error": 1}
    assert equivox("verify", tmp_path / "run")[0] == 0


def test_answers_in_a_list_are_repeats_of_their_row(tmp_path: Path) -> None:
    one_by_one = [{**row, "sample_id": row["speaker"]} for row in hobbies() for _ in range(2)]
    together = [{**row, "response": [row["response"]] * 2} for row in hobbies()]
    apart, joined = imported(one_by_one, tmp_path / "apart"), imported(together, tmp_path / "joined")
    assert numbers(joined) == numbers(apart)
    # pandas reads the lists of a parquet file as arrays.
    pandas.DataFrame(together).to_parquet(tmp_path / "joined.parquet")
    frame = pandas.read_parquet(tmp_path / "joined.parquet")
    assert numbers(imported(frame, tmp_path / "frame")) == numbers(apart)
    assert joined.to_pandas("responses").groupby("sample_id").size().tolist() == [2] * 8
    together[2]["response"] = ["Try yoga.", None]
    lost = imported(together, tmp_path / "lost")
    assert lost.to_pandas("responses")["status"].value_counts().to_dict() == {"parsed": 15, "failed": 1}
    with pytest.raises(UsageError, match="row 3: `speaker` is missing"):
        imported([*together[:2], {**together[2], "speaker": None}], tmp_path / "odd")


def test_the_last_message_of_a_conversation_is_the_answer(tmp_path: Path) -> None:
    """Conversations differ in length, so that no place from the front names the last message."""
    said = [{"role": "user", "content": "Chess?"}, {"role": "assistant", "content": "Chess!"}]
    ways = ["end_turn", "refusal", "MAX_TOKENS", "stop", "model_length", "guardrail_intervened", "SPII", "stop"]
    told = [
        {**row, "response": [*said * (place % 3), {"role": "assistant", "content": row["response"]}], "ended": ended}
        for place, (row, ended) in enumerate(zip(hobbies(), ways, strict=True))
    ]
    columns = {"response": "response.-1.content", "finish_reason": "ended"}
    result = imported(told, tmp_path / "run", columns=columns)
    answers = result.to_pandas("responses")
    assert answers["finish_reason"].tolist() == [
        "stop", "content_filter", "length", "stop", "length", "content_filter", "content_filter", "stop"
    ]  # fmt: skip
    withheld = answers["finish_reason"] == "content_filter"
    # What arrived of a withheld answer is not used.
    assert answers["text"].tolist() == [
        "" if kept else row["response"] for kept, row in zip(withheld, hobbies(), strict=True)
    ]


def test_what_a_model_thought_is_no_answer(tmp_path: Path) -> None:
    """Rules took words of thoughts for answers; where all are cut off in the same thought, the model looked fair."""
    told = hobbies()
    told[0] |= {"response": "<think>Chess? I cannot help but say no.</think>Try yoga."}
    told[4] |= {"response": "<think>Maybe yoga, or", "finish_reason": "max_tokens"}
    answers = imported(told, tmp_path / "run").to_pandas("responses")
    assert answers["status"].tolist() == [*["parsed"] * 4, "empty", *["parsed"] * 3]
    assert answers["text"][0] == "Try yoga." and answers["finish_reason"][4] == "length"


def test_the_texts_that_were_asked_about_are_not_taken_for_responses(tmp_path: Path) -> None:
    """A table without `response` has its answers in `text`, unless the question fills in that column."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ntable: mine.csv\ngroup: gender\ncluster: person\ncard: Made up.\nquestions:\n  - name: tone\n"
        "    text: '{text}'\n    attributes:\n      - {name: tone, asks: the tone, options: [warm, cool]}\n"
    )
    rows = [
        {"text": f"A warm case {i}", "gender": "fm"[i % 2], "person": f"p{i}", "answer": ["warm", "cool"][i % 2]}
        for i in range(20)
    ]
    pandas.DataFrame(rows).to_csv(tmp_path / "mine.csv", index=False)
    given: dict[str, Any] = {"model": "mine", "output": tmp_path / "run", "options": OPTIONS}
    with pytest.raises(UsageError, match=r"mine.csv: `text` is what mine_gender:tone asks about, not the response"):
        eq.import_responses(tmp_path / "mine.csv", resolve_tasks(str(tmp_path / "mine.yaml")), **given)
    assert not (tmp_path / "run").exists()
    given["columns"] = {"response": "answer"}
    result = eq.import_responses(tmp_path / "mine.csv", resolve_tasks(str(tmp_path / "mine.yaml")), **given)
    assert set(result.to_pandas("responses")["status"]) == {"parsed"} and result.scores[0].value == pytest.approx(100)


@pytest.mark.parametrize("swap", ["", "swap: {name: {f: [Ann], m: [Tom]}}\n"])
def test_rows_of_an_own_table_are_named_by_its_ids(swap: str, tmp_path: Path, equivox: Cli) -> None:
    """With a swap the rows name the item and the group."""
    (tmp_path / "mine.yaml").write_text(
        f"name: mine\ntable: mine.csv\ngroup: gender\n{swap}card: Made up.\nquestions:\n  - name: tone\n"
        "    text: '{ask}'\n    attributes:\n      - {name: tone, asks: the tone, options: [warm, cool]}\n"
    )
    rows = [{"id": f"q{i}", "gender": "fm"[i % 2], "ask": f"Case {i} of {{name}}"} for i in range(20)]
    told = [{"id": row["id"], "gender": of, "response": TONES[of]} for row in rows for of in "fm"]
    if not swap:
        told = [{"id": row["id"], "response": TONES[row["gender"]]} for row in reversed(rows)]
    pandas.DataFrame(rows).drop(columns=["gender"] if swap else []).to_csv(tmp_path / "mine.csv", index=False)
    pandas.DataFrame(told).to_csv(tmp_path / "told.csv", index=False)
    column = "item=id" if swap else "sample_id=id"
    command = ("import", tmp_path / "told.csv", tmp_path / "mine.yaml", "-o", tmp_path / "run", "-q")
    equivox.done(*command, "--column", column)
    answers = eq.open_run(tmp_path / "run").to_pandas("responses")
    assert answers.groupby("group", observed=True)["text"].unique().map(list).to_dict() == {
        "f": ["warm"],
        "m": ["cool"],
    }


def test_answers_about_a_table_of_true_and_false_are_matched(tmp_path: Path, equivox: Cli) -> None:
    """A group that JSON has as true was `true` in a task's table and `True` in one of answers: no row fitted."""
    (tmp_path / "mine.yaml").write_text(
        "{name: mine, table: mine.jsonl, group: veteran, questions: [{name: q, text: '{ask}', attributes: "
        "[{name: tone, asks: the tone, options: [warm, cool]}]}]}"
    )
    rows = [{"id": i, "veteran": bool(i % 2), "ask": f"Case {i}, {i % 2}", "response": "warm"} for i in range(20)]
    for name, own in (("mine", [{**row, "response": None} for row in rows]), ("told", rows)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, own)))
    equivox("import", tmp_path / "told.jsonl", tmp_path / "mine.yaml", "-o", tmp_path / "run", "-q")
    answers = eq.open_run(tmp_path / "run").to_pandas("responses")
    assert answers.groupby("group", observed=True)["status"].value_counts().to_dict() == {
        ("false", "parsed"): 10, ("true", "parsed"): 10
    }  # fmt: skip


def test_an_answer_that_excel_took_for_a_number_is_its_text(tmp_path: Path) -> None:
    path = tmp_path / "answers.xlsx"
    pandas.DataFrame({"id": range(5), "response": [" 1", 52_000, 7.5, True, None]}).to_excel(path, index=False)
    assert [answer.text for answer in Table.of(path, {}).answers] == [" 1", "52000", "7.5", "true", None]


def test_repeats_and_several_tasks(tmp_path: Path, equivox: Cli) -> None:
    told = [
        {**row, "sample_id": row["speaker"], "repeat": repeat, "task": task}
        for row in hobbies() for repeat in (1, 0) for task in ("vibe_gender:advisory", "vibe_gender:shopper")
    ]  # fmt: skip
    result = imported(told, tmp_path / "run", "vibe_gender")
    assert [task.name for task in result.tasks] == ["vibe_gender:advisory", "vibe_gender:shopper"]
    answers = result.to_pandas("responses")
    assert len(answers) == 32 and answers.groupby("sample_id").size().eq(4).all()
    path = tmp_path / "told.csv"
    pandas.DataFrame(told).to_csv(path, index=False)
    _, out, _ = equivox("import", path, "vibe_gender", "-o", tmp_path / "again", "--scoring", "min_count=1", "-q")
    assert "No row is about vibe_gender:story, vibe_gender:candidate, vibe_gender:casting: not in this run." in out


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda told: [], {}, "has no rows"),
        (lambda told: [{**row, "response": 5} for row in told], {}, "row 1: `response` holds 5, not text"),
        (lambda told: [{"gender": "f", "answer": "x"}], {}, "no column `response`; say which one holds the responses"),
        (lambda told: told, {"columns": {"response": "anser"}}, "names the column 'anser', which the table lacks"),
        (
            lambda told: [{k: v for k, v in row.items() if k != "emotion"} for row in told],
            {},
            "Or describe the samples in the table, which lacks the columns emotion",
        ),
        (
            lambda told: [*told[:-1], {**told[-1], "speaker": None}],
            {},
            "row 8: `speaker` is missing, which",
        ),
        (
            lambda told: [{**row, "sample_id": "one"} for row in told],
            {},
            "row 2: the sample 'one' has speaker",
        ),
        (lambda told: told[:4], {}, "at least two are needed"),
        (
            lambda told: [*told[:-1], {**told[-1], "gender": "Male"}],
            {},
            "`gender` holds 'Male' and 'male', which differ in case, space, coding or `.0`: write them in one way",
        ),
        (
            lambda told: [{"d1": "Ana", "d2": "Ben", "loc": "moon", "text": "…"}, {"d1": "Ana", "text": "…"}],
            {"tasks": "badf_two:gender"},
            "row 1 matches no sample of badf_two:gender by loc 'moon', d1 'Ana', d2 'Ben'",
        ),
        (
            lambda told: [{"sample_id": sample.sample_id, "response": "x"} for sample in sample_corpus().samples],
            {"tasks": "vibe_gender:advisory,vibe_gender:story", "data": "sample"},
            "row 1 may be about vibe_gender:advisory, vibe_gender:story; say which in a column `task`",
        ),
        (
            lambda told: [{"sample_id": sample_corpus().samples[0].sample_id, "response": "x", "repeat": 0}] * 2,
            {"data": "sample"},
            "row 2 is the second response of",
        ),
        (lambda told: [{"sample_id": "nobody", "response": "x"}], {"data": "sample"}, "by sample_id 'nobody'"),
        (
            lambda told: [{**row, "response": {"text": "x"}} for row in told],
            {"columns": {"response": "response.txt"}},
            "names the column 'response.txt', which the table lacks; ",
        ),
        (lambda told: SHOWN, {"tasks": "spoken_stereoset:gender", "data": "sample"}, "does not say how; give the col"),
        (
            lambda told: [{**row, "order": "sideways"} for row in SHOWN],
            {"tasks": "spoken_stereoset:gender", "data": "sample"},
            "order 'sideways'",
        ),
        (lambda told: told, {"conditions": "declared,silence"}, "a table holds the responses of one condition"),
        (lambda told: [{**row, "task": "vibe_gender:stroy"} for row in told], {}, "`task` is 'vibe_gender:stroy'"),
        (lambda told: told, {"tasks": "vibe_gender:advisory,vibe_gender:story"}, "row 1 may be about vibe_gender:adv"),
        (
            lambda told: [{**row, "sample_id": row["speaker"], "repeat": 0} for row in told + told[:1]],
            {},
            "row 9 is the second response of 'female0' with `repeat` 0",
        ),
        (lambda told: [{**row, "repeat": "first"} for row in told], {}, "row 1: `repeat` is 'first'"),
        (lambda told: 5, {}, "int is no table"),
    ],
)
def test_what_fits_nothing_is_refused_before_anything_is_written(
    change: Callable[[list[Record]], Any], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as raised:
        imported(change(hobbies()), tmp_path / "run", **options)
    assert message in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_bad_options_on_the_command_line(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "answers.csv"
    pandas.DataFrame(hobbies()).to_csv(path, index=False)
    for arguments, message in (
        (("--column", "response"), "`--column` is written OURS=THEIRS"),
        (("--column", "response=answer"), "`--column response=…` names the column 'answer', which answers.csv lacks"),
        (("--model", ""), "`model` is empty"),
    ):
        assert message in equivox.refused("import", path, "vibe_gender:advisory", "-o", tmp_path / "run", *arguments)
