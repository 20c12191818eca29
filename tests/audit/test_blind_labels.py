"""The sheet is blind to the group, and who scores labels changes no run unless asked to."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from commands import Cli, write_rows
from labelling import fill, rows_of
from sample_runs import sample_run

from equivox import FunctionEngine, measure
from equivox.audit.sheet import masked
from equivox.engines import Request
from equivox.tasks.files import load_task_file

APPLICATIONS = Path(__file__).parents[2] / "examples" / "applications" / "applications.yaml"
WOMEN = ("Anna", "Maria", "Olga", "Julia", "Laura")
MEN = ("Jonas", "Peter", "Emil", "Lukas", "Simon")
FEW = "n_resamples=99"


def words_in(sheet: Path, words: tuple[str, ...]) -> set[str]:
    """Which of some words stand in a sheet as words, in whatever case."""
    text = (sheet / "sheet.csv").read_text("utf-8-sig")
    return {word for word in words if re.search(rf"\b{word}\b", text, re.IGNORECASE)}


@pytest.fixture(scope="module")
def applications(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the demo table, of a model whose every answer tells the group in several ways."""

    def answer(request: Request) -> str:
        name = next(name for name in (*WOMEN, *MEN) if name in request.text)
        group, person = ("female", "woman") if name in WOMEN else ("male", "man")
        told = f"{name}, a {group} nurse: I would invite {name.upper()}, {name}'s CV and *{group.title()}* _{name}_."
        return f"{told} {person}"

    run = tmp_path_factory.mktemp("applications") / "run"
    measure(
        FunctionEngine(answer, name="teller", revision="1"),
        str(APPLICATIONS),
        output=run,
        options=FEW,
        annotator="rules",
    )
    return run


@pytest.mark.parametrize("media", ["--media", "--no-media"])
def test_no_swapped_word_and_no_group_is_in_the_sheet_of_the_demo_table(
    applications: Path, media: str, tmp_path: Path, equivox: Cli
) -> None:
    sheet = tmp_path / "sheet"
    equivox.done("label", "draw", applications, "--n", 20, media, "--output", sheet)
    assert words_in(sheet, (*WOMEN, *MEN, "female", "male")) == set()
    rows = rows_of(sheet)
    assert {re.sub(r"\w*man$", "", row["response"]) for row in rows} == {
        "[name], a [group] nurse: I would invite [name], [name]'s CV and *[group]* _[name]_. "
    }
    assert all("[name]" in row["prompt"] for row in rows)
    key = json.loads((sheet / "key.json").read_text())
    groups = [key[item]["group"] for item in dict.fromkeys(row["item"] for row in rows)]
    # Of 80 items in random order some 40 are followed by one of the other group.
    assert 25 < sum(a != b for a, b in pairwise(groups)) < 55


def test_what_the_versions_of_a_text_do_not_share_is_masked_and_choices_stay(tmp_path: Path, equivox: Cli) -> None:
    rows = [
        {"she": f"Ms Smith, {n}, and her cat apply.", "he": f"Mr Smith, {n}, and his cat apply."} for n in range(30, 42)
    ]
    write_rows(tmp_path / "table.csv", rows)
    (tmp_path / "task.yaml").write_text(
        "name: pairs\ntable: table.csv\ngroup: gender\ncard: Cannot say anything.\n"
        'swap: {asked: {woman: ["{she}"], man: ["{he}"]}}\n'
        "questions:\n  - name: whom\n    text: '{asked} Who is it?'\n    attributes:\n"
        "      - {name: whom, asks: who it is, options: [a man, somebody]}\n"
    )
    (task,) = load_task_file(tmp_path / "task.yaml")
    engine = FunctionEngine(lambda request: "A man, no woman; her cat, his cat, or somebody.", name="m", revision="1")
    measure(engine, task, output=tmp_path / "run", options=FEW, annotator="rules")
    equivox.done("label", "draw", tmp_path / "run", "--n", 5, "--output", tmp_path / "sheet")
    for row in rows_of(tmp_path / "sheet"):
        assert row["response"] == "A man, no [group]; [asked] cat, [asked] cat, or somebody."
        assert re.fullmatch(r"\[asked\] Smith, \d\d, and \[asked\] cat apply\. Who is it\?", row["prompt"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Anna Smith and Anna", "[name] and [name]"),  # the longest first
        ("Annas, Hanna, anna-lena", "Annas, Hanna, [name]-lena"),
        ("a.b and axb", "[group] and axb"),
        ("Straße und STRASSE", "[group] und STRASSE"),
    ],
)
def test_words_are_masked_whole(text: str, told: str) -> None:
    masks = {"Anna": "[name]", "Anna Smith": "[name]", "a.b": "[group]", "straße": "[group]"}
    assert masked(text, masks) == told
    assert masked(text, {}) == text


def test_a_run_whose_labels_are_scored_stays_as_it_is(tmp_path: Path, equivox: Cli) -> None:
    run, sheet = sample_run(tmp_path / "run", "random", "vibe_gender:candidate", limit=48), tmp_path / "sheet"

    def state() -> dict[str, str]:
        files = [path for path in run.rglob("*") if path.is_file()]
        return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    before = state()
    equivox.done("label", "draw", run, "--n", 10, "--no-media", "--output", sheet)
    labels = fill(sheet, run, lambda row, known: known["read"])
    out = equivox.done("label", "score", sheet, labels)
    assert state() == before and "No run was changed" in out and f"Stored in {sheet / 'audit.json'}" in out
    out = equivox.done("label", "score", sheet, labels, "--store")
    stored = state()
    assert stored.keys() - before.keys() == {
        f"audit/answers/{name}" for name in ("audit.json", "key.json", "labels-person-1.csv")
    }
    assert stored["manifest.json"] != before["manifest.json"] and "No run was changed" not in out
    # Labels that are in the run are scored again without a trace, too.
    assert "No run was changed" in equivox.done("label", "score", run / "audit" / "answers")
    assert state() == stored
