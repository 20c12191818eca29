"""Tasks of other kinds: no media, several ways to ask, responses annotated in segments, scores of a whole family."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import Cli

from equivox.dataset_builders import opening as corpora
from equivox.dataset_builders.corpus import Corpus, text_sample
from equivox.run.annotating import TOOLS
from equivox.run.python_files import load_file
from equivox.run.store import stored_annotations

TOY = Path(__file__).with_name("toy_tasks.py")


def calls_of_the_rule() -> int:
    return int(load_file(TOY).LetterRule.calls)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    items = tuple(
        text_sample(f"item{n}", {"topic": f"topic{n % 2}", "orders": "both" if n < 2 else "one"}) for n in range(4)
    )
    known = {"toy": lambda source, data: Corpus(name="toy", fingerprint="0", samples=items)}
    monkeypatch.setattr(corpora, "openers", lambda: known)


def test_a_text_benchmark_end_to_end(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    out = equivox.done("run", "simulated:random", TOY, "--output", folder)
    plan = pq.read_table(folder / "plan.parquet").to_pylist()
    # Two items asked in both orders and two in one, for each of two tasks; all metadata are kept.
    assert len(plan) == 12
    asked = [row["metadata.first"] for row in plan if row["task"] == "toy:one" and row["sample_id"] == "item0"]
    assert sorted(asked) == ["A", "B"]
    assert {row["metadata.topic"] for row in plan} == {"topic0", "topic1"}
    assert len({(row["key"]) for row in plan}) == 12
    # The rule's readings lie apart; the annotator read only what the rule had found a letter in.
    read = list(stored_annotations(folder, "rules").values())
    assert {row["segment"] for row in read} == {"rest/A", "rest/B"}
    assert len(read) == 10
    rule = list(stored_annotations(folder, TOOLS).values())
    assert [row["status"] for row in rule].count("unparsed") == 2
    assert len(rule) == 12
    scores = json.loads((folder / "scores.json").read_text())["scores"]
    assert [(s["task"], s["subset"]) for s in scores[:3]] == [
        ("toy:one", ""), ("toy:one", "topic=topic0"), ("toy:one", "topic=topic1")
    ]  # fmt: skip
    assert scores[-1]["task"] == "toy"
    assert scores[-1]["value"] == 12.0
    hobbies = (folder / "tables" / "toy-one" / "hobbies.csv").read_text().splitlines()
    assert hobbies[0] == '"item","hobby"'
    assert hobbies[1].endswith('"chess"')
    assert len(hobbies) == 6
    assert "no task of this run was tested" in out


def test_what_is_stored_is_not_read_again(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert equivox("run", "simulated:random", TOY, "--output", folder)[0] == 0
    before, calls = (folder / "scores.json").read_text(), calls_of_the_rule()
    stale = folder / "tables" / "toy-one" / "of_before.csv"
    stale.write_text("left by an earlier scoring")
    for command in (["run", "simulated:random", TOY, "--output", folder], ["score", folder]):
        assert equivox(*command)[0] == 0
    assert calls_of_the_rule() == calls
    assert (folder / "scores.json").read_text() == before
    assert not stale.exists()
    assert (folder / "tables" / "toy-one" / "hobbies.csv").exists()


def test_arms_that_a_task_does_not_offer_are_refused(equivox: Cli, tmp_path: Path) -> None:
    err = equivox.refused("run", "simulated:random", TOY, "--conditions", "silence", "--output", tmp_path / "run")
    assert "toy:one has no condition 'silence'; it offers text" in err


def test_code_of_a_task_file_is_found_only_where_the_user_names_the_file(tmp_path: Path) -> None:
    import shutil
    import subprocess
    import sys

    start = (
        "import sys; from equivox import cli; from equivox.dataset_builders import corpus, opening as corpora;"
        "items = tuple(corpus.text_sample(f'item{n}', {'topic': f'topic{n % 2}', 'orders': 'one'}) for n in range(4));"
        "corpora.openers = lambda: {'toy': lambda source, data: "
        "corpus.Corpus(name='toy', fingerprint='0', samples=items)};"
        "print(*[cli.run(line.split(chr(31))) for line in sys.argv[1:]])"
    )

    def equivox(*commands: tuple[object, ...]) -> tuple[list[int], str]:
        """Run commands one after the other in a process of their own, which knows no file of an earlier one."""
        lines = [chr(31).join(map(str, command)) for command in commands]
        done = subprocess.run([sys.executable, "-c", start, *lines], capture_output=True, text=True, check=True)
        return [int(code) for code in done.stdout.splitlines()[-1].split()], done.stderr

    folder, moved = tmp_path / "run", tmp_path / "elsewhere" / "toy_tasks.py"
    assert equivox(("run", "simulated:random", TOY, "--output", folder, "--quiet")) == ([0], "")
    codes, err = equivox(("score", folder), ("score", folder, TOY, "--quiet"))
    assert codes == [2, 0] and err.count("\n") == 1
    assert "name the file behind the run, as in `equivox score RUN toy_tasks.py`" in err
    # The file may lie anywhere; another text of it is another file.
    moved.parent.mkdir()
    shutil.copy(TOY, moved)
    assert equivox(("score", folder, moved, "--quiet")) == ([0], "")
    assert equivox(("compare", folder, moved))[0] == [0]
    moved.write_text(f"{moved.read_text()}\n# changed\n")
    assert equivox(("score", folder, moved))[0] == [2]
