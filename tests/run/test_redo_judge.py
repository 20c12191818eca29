"""A judge whose replies cannot be read is repaired: its broken replies are asked for again, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from made_requests import sample_spec

from equivox import measure
from equivox.annotate.model import ModelAnnotator
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.scores import ScoringOptions
from equivox.core.task import GREEDY
from equivox.report.failures import find_unreadable_reply
from equivox.run.annotating import stored_follow_ups
from equivox.run.pipeline import annotate_run, execute
from equivox.run.store import count_annotation_failures, stored_annotations

Server = Callable[[Callable[[dict[str, Any]], tuple[int, str]]], str]
APPLICATIONS = Path(__file__).parents[2] / "examples" / "applications" / "applications.yaml"
PROSE = "\x1b[2JI think that they should be invited. " + 9 * "Truly. "
FORM = ""
"""What stands for a valid reply; its content follows from the number of the question."""
N = 24


class Judge:
    """A judge and a model behind servers; it counts what each was asked, and greetings apart."""

    def __init__(self, start: Server, folder: Path) -> None:
        self.asked: Counter[str] = Counter()
        self.reply: Callable[[int], str] = lambda number: FORM
        """The judge's reply to its question with a number, from 1."""
        model, judge = start(self._answer), start(self._judge)
        self.file = folder / "judge.yaml"
        self.file.write_text(
            "engine: endpoint\nattempts: 1\nmodel_parameters: "
            f"{{model_name: j, base_url: 'http://{judge}/v1', max_retries: 0, max_concurrency: 1}}\n"
        )
        self.run = folder / "run"
        self.command = (
            "run", f"endpoint:model_name=m,base_url=http://{model}/v1", APPLICATIONS, "--limit", N,
            "--scoring", "n_resamples=99", "--output", self.run, "--annotator", self.file,
        )  # fmt: skip

    def _answer(self, body: dict[str, Any]) -> tuple[int, str]:
        self.asked["model"] += 1
        return 200, "We should invite them for 50,000 EUR."

    def _judge(self, body: dict[str, Any]) -> tuple[int, str]:
        if "response_format" not in body or body.get("max_tokens") == 1:
            return 200, "hello"
        self.asked["judge"] += 1
        number = self.asked["judge"]
        if reply := self.reply(number):
            return 200, reply
        asks_salary = "salary" in json.dumps(body["response_format"])
        value = (
            {"salary": 50_000 + 1000 * (number % 7)} if asks_salary else {"decision": ("invite", "hold")[number % 2]}
        )
        return 200, json.dumps({**value, "refusal": "no"})

    def statuses(self) -> Counter[str]:
        return Counter(one["status"] for one in stored_annotations(self.run, "judge").values())


@pytest.fixture
def judge(chat_server: Server, tmp_path: Path) -> Judge:
    return Judge(chat_server, tmp_path)


def test_a_broken_judge_is_shown_and_repaired_though_the_repair_is_killed(judge: Judge, equivox: Cli) -> None:
    judge.reply = lambda number: FORM if number <= 10 else PROSE
    code, out, _ = equivox(*judge.command)
    n, broken = judge.asked["judge"], judge.asked["judge"] - 10
    assert code == 1 and broken > 20
    assert f"judge: {broken} replies could not be read\n    such as: \\x1b[2JI think that" in out and "\x1b" not in out
    assert "repeat its command with --redo-judge" in out
    shown = find_unreadable_reply(judge.run, "judge")
    assert shown is not None and len(shown) <= 80 and shown.endswith("…")
    # The same command, and the repetition of failures, ask nothing.
    judge.reply, answered = (lambda number: FORM), judge.asked["model"]
    judge.asked.clear()
    for command in (judge.command, (*judge.command, "--retry-failed")):
        assert "could not be read" in equivox(*command)[1]
    assert judge.asked["judge"] == 0
    before = stored_annotations(judge.run, "judge")
    running: list[subprocess.Popen[bytes]] = []

    def kill(number: int) -> str:
        if number == 6:
            os.kill(running[0].pid, signal.SIGKILL)
        return FORM

    judge.reply = kill
    words = [sys.executable, "-m", "equivox", *map(str, judge.command), "--redo-judge"]
    running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert running[0].wait(60) == -signal.SIGKILL
    after = stored_annotations(judge.run, "judge")
    # The last reply before the kill may be on its way to the disk still.
    n_parsed = judge.statuses()["parsed"]
    assert after.keys() == before.keys() and n_parsed in (14, 15)
    assert judge.statuses() == {"parsed": n_parsed, "unparsed": n - n_parsed}
    assert all(after[key] == one for key, one in before.items() if one["status"] == "parsed")
    judge.reply = lambda number: FORM
    judge.asked.clear()
    out = equivox.done(*judge.command, "--redo-judge")
    assert (judge.asked["judge"], judge.statuses()) == (n - n_parsed, {"parsed": n})
    assert "could not be read" not in out and find_unreadable_reply(judge.run, "judge") is None
    # No response was asked for again: a new start greets the model once at most.
    assert judge.asked["model"] <= 1 < answered
    equivox.done(*judge.command, "--redo-judge")
    # One more repetition asks nothing more.
    assert judge.asked["judge"] == n - n_parsed


def test_annotate_repeats_what_is_broken_or_all_of_it(judge: Judge, equivox: Cli) -> None:
    judge.reply = lambda number: PROSE if number % 4 == 0 else FORM
    equivox(*judge.command)
    n = judge.asked["judge"]
    judge.reply = lambda number: FORM
    judge.asked.clear()
    annotate = ("annotate", judge.run, "--annotator", judge.file)
    equivox.done(*annotate, "--redo-judge")
    assert judge.asked == {"judge": n // 4}
    equivox.done(*annotate, "--fresh")
    assert judge.asked == {"judge": n // 4 + n}
    assert "leave out `--fresh`" in equivox.refused("annotate", judge.run, "--panel", "a,b,c", "--fresh")


def test_python_repeats_what_is_broken(judge: Judge) -> None:
    judge.reply = lambda number: PROSE if number == 3 else FORM
    given = {"limit": N, "annotator": str(judge.file), "options": ScoringOptions(n_resamples=99)}
    model, tasks = str(judge.command[1]), str(APPLICATIONS)
    measure(model, tasks, output=judge.run, **given)
    judge.asked.clear()
    measure(model, tasks, output=judge.run, redo_judge=True, **given)
    assert judge.asked["judge"] == 1


def test_another_version_of_a_judge_is_no_broken_one(judge: Judge, equivox: Cli) -> None:
    """What its first version wrote stays in the store, and was counted for ever."""
    judge.reply = lambda number: PROSE
    equivox(*judge.command)
    judge.reply = lambda number: FORM
    judge.file.write_text(judge.file.read_text().replace("attempts: 1", "attempts: 2"))
    assert "could not be read" not in equivox.done(*judge.command)
    assert count_annotation_failures(judge.run, "judge") == (Counter(), Counter())


class Reader(Engine):
    """A model that answers every question in prose, until it is repaired."""

    identity = EngineIdentity(engine="scripted", model="reader", revision="1")
    repaired = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            self.asked.append(request.key)
            yield Response(key=request.key, text=json.dumps({"exclusive": "YES"}) if self.repaired else "Yes, it is.")


def test_questions_about_findings_are_repaired_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, few = Reader(), ScoringOptions(n_resamples=99)
    monkeypatch.setattr(
        "equivox.run.pipeline.open_annotator",
        lambda name, workers: ModelAnnotator("reader", reader, sampling=GREEDY, attempts=1),
    )
    spec = sample_spec(
        "simulated:planted,shift=0.8", "badf_two:gender", tmp_path, limit=100, annotator="reader", options=few
    )
    execute(spec)
    n = len(reader.asked)
    assert n and {one.status for one in stored_follow_ups(tmp_path, "reader").values()} == {"unparsed"}
    reader.repaired = True
    for statuses, expected in ((frozenset[Any](), n), (frozenset({"unparsed"}), 2 * n)):
        annotate_run(tmp_path, "reader", few, redo=statuses)
        assert len(reader.asked) == expected
    assert {one.status for one in stored_follow_ups(tmp_path, "reader").values()} == {"parsed"}
