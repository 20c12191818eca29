"""Every page works as printed: its files, its Python and its commands, from top to bottom, and what they print.

Where a page uses a model that is not on this machine, a stand-in answers, so that every other option of the command is
run. A judge is a server that fills in the form it is asked for. Commands of other programs are not run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from docs_pages import (
    DOCS,
    PAGES,
    ROOT,
    all_blocks,
    commands,
    file_named,
    forget_package,
    install_package,
    unknown_options,
)

import equivox
from equivox.annotate import annotator_names
from equivox.dataset_builders import sample_source
from equivox.engines import model_names

EVERY_PAGE = [ROOT / "README.md", *(page for page in PAGES if page != DOCS / "reproduce.md")]
"""`reproduce.md` has tests of its own, in `test_miniatures.py`."""
OTHER_PROGRAMS = frozenset(
    ["pip", "make", "docker", "export", "mkdir", "sbatch", "ray", "vllm", "hf", "git", "touch", "lighteval"]
)
NOT_RUN = ("--push", "hf://", "--workers", "--ray-address", "--hub")
"""What needs an account, Ray or the Hub, and has tests of its own: here the options are checked."""
FEWER = {
    "run": ("--scoring", "n_resamples=199"),
    "score": ("--scoring", "n_resamples=199"),
    "compare": ("--resamples", "199"),
    "power": ("--design", "simulations=200"),
}
"""Options that make a command fast, unless the page prints what it computes."""
PRINTED = frozenset(page.name for page in EVERY_PAGE if any(language == "text" for language, _ in all_blocks(page)))


def fill_form(schema: dict[str, Any]) -> Any:
    """Return a value that a JSON schema allows: the first choice, and no refusal."""
    if "enum" in schema:
        return "no" if "no" in schema["enum"] else schema["enum"][0]
    if "anyOf" in schema:
        return fill_form(schema["anyOf"][0])
    kind = schema.get("type", "string")
    if kind == "object":
        return {name: fill_form(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [fill_form(schema["items"])] * schema.get("minItems", 1)
    return {"number": 1, "integer": 1, "boolean": False, "null": None}.get(kind, "word")


def reply(body: dict[str, Any]) -> tuple[int, str]:
    """Return the answer of the stand-in judge."""
    form = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return 200, json.dumps(fill_form(form)) if form else "A word."


@contextlib.contextmanager
def serve(words: list[str], port: int) -> Iterator[None]:
    """Run a server of the page, which listens at `port`, until the block is left."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, words
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def find_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class Runner:
    """What a page has done so far, in a folder of its own."""

    def __init__(self, page: Path, equivox: Cli, judge: str, stack: contextlib.ExitStack) -> None:
        self.page, self.equivox, self.judge, self.stack = page, equivox, judge, stack
        self.ports: dict[str, str] = {}
        self.namespace: dict[str, Any] = {}
        self.printed = ""

    def run_block(self, language: str, block: str) -> None:
        """Write, run or compare one block."""
        if name := file_named(block):
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(block)
        elif language == "toml":
            install_package(block, Path.cwd())
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block, str(self.page), "exec", dont_inherit=True), self.namespace)
            self.printed += out.getvalue()
        elif language == "text":
            for line in filter(None, map(str.strip, block.splitlines())):
                assert line in self.printed, line
        elif language == "console":
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("$ "):
                    self.run_line(shlex.split(line.removeprefix("$ ").partition("  #")[0]))

    def run_line(self, words: list[str]) -> None:
        """Run one command of a console block."""
        if words[0] == "equivox":
            self.run_command(words[1:])
        elif words[0] == "python" and words[-1] == "&":
            (port,) = (word for before, word in pairwise(words) if before == "--port")
            self.ports[port] = str(find_port())
            served = [self.ports.get(word, word) for word in words[1:-1]]
            self.stack.enter_context(serve(served, int(self.ports[port])))
        elif words[0] == "python" and Path(words[1]).exists():
            subprocess.run([sys.executable, *words[1:]], check=True)
        elif words[0] == "cp":
            subprocess.run(words, check=True)
        else:
            assert words[0] in (*OTHER_PROGRAMS, "python") or "=" in words[0], words

    def run_command(self, words: list[str]) -> None:
        """Run a command of equivox, with stand-ins for models and corpora that are not here."""
        assert not unknown_options(words), words
        if words[0] == "view" or any(mark in " ".join(words) for mark in NOT_RUN):
            return
        as_printed = words
        words = [self.find_stand_in(words, place) for place in range(len(words))]
        replaced = words != as_printed
        words = ["run", *words[1:]] if words[0] == "vllm" else words
        if words[:2] == ["label", "score"]:
            fill_sheets(words)
        if words[0] == "import":
            write_answers(Path(words[1]))
        fewer: tuple[str, ...] = ()
        if (replaced or self.page.name not in PRINTED) and "--scoring" not in words:
            fewer = FEWER.get(words[0], ())
        if replaced and words[0] == "run" and "--limit" not in words:
            fewer = (*fewer, "--limit", "48")
        code, out, error = self.equivox(*words, *fewer)
        # A stand-in judge gives every answer the same form, which can leave a task without a result.
        assert code == 0 or (code == 1 and "without a result" in out), (words, out, error)
        self.printed += out

    def find_stand_in(self, words: list[str], place: int) -> str:
        """Return a word of a command, or what stands in for a model or a corpus that is not here."""
        word, before = words[place], words[place - 1] if place else ""
        served = re.search(r"http://127\.0\.0\.1:(\d+)", word)
        if served and served[1] in self.ports:
            return word.replace(f":{served[1]}", f":{self.ports[served[1]]}")
        if before == "--annotator" and (served or word in annotator_names()) and word != "rules":
            if served:
                return word.replace(served[0], f"http://{self.judge}")
            # A file of the judge's name, so that later commands know the judge by it.
            parameters = {"model_name": word, "base_url": f"http://{self.judge}/v1"}
            Path(f"{word}.yaml").write_text(json.dumps({"engine": "endpoint", "model_parameters": parameters}))
            return f"{word}.yaml"
        if place == 1 and words[0] in ("run", "vllm"):
            here = word.startswith("simulated:") or (":" in word and not re.match("endpoint|transformers|vllm", word))
            return word if here and words[0] == "run" else "simulated:biased"
        if before in ("--data", "--data-dir") and word.split("/")[0] == "data" and not Path("data").exists():
            return "sample"
        return word


def fill_sheets(words: list[str]) -> None:
    """Write what people would hand in: the sheet with the first choice as every label."""
    with Path(f"{words[2]}-labels.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for name in words[3:]:
        if name.endswith(".csv") and not Path(name).exists():
            with Path(name).open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["item", "attribute", "label"])
                for row in rows:
                    label = row["choices"].split(" / ")[0] if " / " in row["choices"] else "word"
                    writer.writerow([row["item"], row["attribute"], label])


def write_answers(path: Path) -> None:
    """Write a table of answers that another program gave to one task on the sample."""
    if not path.exists():
        made = equivox.measure("simulated:biased", "vibe_gender:story", data="sample", output="made")
        answers = made.to_pandas("responses")[["sample_id", "text"]].rename(columns={"text": "answer"})
        answers.to_json(path, orient="records", lines=True)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_works_as_printed(
    page: Path, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_server: Callable[..., str]
) -> None:
    if page.name == "lighteval.md":
        pytest.importorskip("evaluate")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for name in ("examples", "metrics"):
        (tmp_path / name).symlink_to(ROOT / name)
    corpora = {"CREMA-D": "crema_d", "l2arctic_v5": "l2_arctic", "Genres": "genres"}
    for folder, corpus in {**corpora, "spoken_stereoset": "spoken_stereoset"}.items():
        (tmp_path / folder).symlink_to(sample_source(corpus))
    if page.name == "README.md":
        shutil.copy(ROOT / "examples" / "applications" / "applications.csv", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        with contextlib.ExitStack() as stack:
            runner = Runner(page, equivox, chat_server(reply), stack)
            for language, block in all_blocks(page):
                runner.run_block(language, block)
    finally:
        forget_package(page)


def test_the_stand_ins_are_for_models_that_exist() -> None:
    """A name of a model or judge on a page is one that equivox knows."""
    for page in EVERY_PAGE:
        for words in commands(page):
            if words[0] == "run":
                assert ":" in words[1] or words[1].endswith(".yaml") or words[1] in model_names(), words
            for before, word in pairwise(words):
                if before == "--annotator" and ":" not in word and not word.endswith(".yaml"):
                    assert word in annotator_names() or word == "keywords" or word.isupper(), words
