"""A run folder from a stranger: hostile tasks and odd files against every command that opens a run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import Cli
from sample_runs import sample_run

from equivox.cli.app import app
from equivox.core import files
from equivox.core.files import read_document
from equivox.integrations.hub import remote
from equivox.run import declarations
from equivox.run.manifest import state_hashes

TASK = "vibe_gender:advisory"

NEEDED = {
    "FIGURE": "forest:vibe_gender", "A,B,C": "rules,one,two", "model_repo": "org/model",
    "benchmark": "org/data", "repo": "org/data", "annotator": "rules", "n": "1",
}  # fmt: skip
"""What a command that opens a run needs beside it, by the metavar of an argument or the name of an option."""
TAKEN = {("submit", "model_repo"), ("submit", "benchmark")}
"""Options that a command needs in one of its forms."""
WRITES = ("output", "out", "csv", "latex")
FEW = {"scoring": "n_resamples=99", "resamples": "99"}
"""Options that say how often a command resamples."""


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*path, name))
    if not getattr(command, "commands", {}):
        yield path, command


def opens_a_run(parameter: Any) -> bool:
    """Whether a run is given here: its metavar says so, or its help."""
    return "RUN" in str(parameter.metavar) or "folder of a run" in str(getattr(parameter, "help", ""))


COMMANDS = {
    " ".join(path): (path, command)
    for path, command in leaves(typer.main.get_command(app))
    if any(parameter.param_type_name == "argument" and opens_a_run(parameter) for parameter in command.params)
}


DECIDING = {"leaderboard", "submit", "data push", "gate", "verify"}
"""The commands that publish or decide by a run: they verify it, and refuse one whose tasks cannot be read."""


def line(path: tuple[str, ...], command: Any, run: Path, place: Path) -> list[str]:
    """Return the arguments that make a command open `run`; what it writes goes below `place`."""
    words = list(path)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            if opens_a_run(parameter):
                words.append(str(run.parent if parameter.metavar == "RUNS" else run))
            elif parameter.metavar == "SHEET...":
                sheet = place.parent / "sheet.csv"
                sheet.write_text("item,attribute,label\ni1,hobby,chess\n")
                words.append(str(sheet))
            elif parameter.required:
                words.append(NEEDED[parameter.metavar])
        elif parameter.name in WRITES and (parameter.required or parameter.default is not None):
            words += [parameter.opts[0], str(place / "written")]
        elif parameter.name == "baseline":
            words += [parameter.opts[0], str(run)]
        elif parameter.required or (*path, parameter.name) in TAKEN:
            words += [parameter.opts[0], NEEDED[parameter.name]]
        elif parameter.name == "browser":
            words.append("--no-open")
        elif parameter.name in FEW:
            words += [parameter.opts[0], FEW[parameter.name]]
    return words


def test_the_registry_names_the_commands_that_open_runs() -> None:
    expected = {"status", "compare", "gate", "verify", "view", "report", "submit", "label draw", "label score",
                "data push", "score", "annotate", "leaderboard"}  # fmt: skip
    assert set(COMMANDS) >= DECIDING
    assert expected <= set(COMMANDS)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run(tmp_path_factory.mktemp("stored") / "run", "oracle", TASK, limit=48)


def popen(name: str, canary: Path) -> dict[str, Any]:
    return {"$type": name, "args": ["/bin/sh", "-c", f"touch {canary}"]}


def code(name: str) -> str:
    return name


def from_file(where: str) -> Callable[[dict[str, Any], Path], Any]:
    """A metric of a Python file that lies inside, beside or above the run, named as runs once named such files."""

    def change(document: dict[str, Any], canary: Path) -> None:
        import hashlib

        run = canary.parent / "arc" / "run"
        files = {"inside": run / "evil.py", "beside": run.parent / "evil.py", "above": canary.parent / "evil.py"}
        path = files[where.partition(" ")[0]]
        path.write_text(f"import pathlib\npathlib.Path({str(canary)!r}).touch()\nMETRIC = 1\nTASKS = []\n")
        named = {"relative": "evil.py", "dotted": f"{run}/../evil.py"}.get(where.partition(" ")[2], str(path))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        document["files"] = {"equivox_task_files.evil_1": {"path": named, "sha256": digest}}
        document["tasks"][0]["metric"] = code("equivox_task_files.evil_1:METRIC")

    return change


def field(name: str, value: Callable[[Path], Any]) -> Callable[[dict[str, Any], Path], None]:
    def change(document: dict[str, Any], canary: Path) -> None:
        document["tasks"][0][name] = value(canary)

    return change


def inner(name: str, entry: str, value: Callable[[Path], Any]) -> Callable[[dict[str, Any], Path], None]:
    def change(document: dict[str, Any], canary: Path) -> None:
        document["tasks"][0][name][entry] = value(canary)

    return change


def nested(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


TOOLS = "equivox.metrics.genres.annotation.tools:Tools"
HOSTILE: Mapping[str, Callable[[dict[str, Any], Path], Any]] = {
    "dots out of a module": field("simulate", lambda c: popen("equivox.run.reproducing:subprocess.Popen", c)),
    "dots as the metric": field("metric", lambda c: popen("equivox.core.files:os.subprocess.Popen", c)),
    "a class of the standard library": field("simulate", lambda c: popen("subprocess:Popen", c)),
    "a class of its own module": field("simulate", lambda c: popen("equivox.run.live:Path", c)),
    "a function in place of a class": field(
        "simulate", lambda c: {"$type": "equivox.core.files:write_text", "path": {"$path": str(c)}, "text": "x"}
    ),
    "a function of an imported module": field(
        "simulate", lambda c: {"$type": "equivox.core.files:os.system", "command": f"touch {c}"}
    ),
    "a method": field("simulate", lambda c: {"$type": "equivox.core.files:Path.touch", "self": {"$path": str(c)}}),
    "a partial": field("metric", lambda c: {"$type": "equivox.cli.scoring:functools.partial"}),
    "a builtin": field("simulate", lambda c: {"$type": "builtins:exec", "source": f"open({str(c)!r},'w')"}),
    "builtins of a module": field("metric", lambda c: code("equivox.metrics.ntvd.metric:__builtins__")),
    "globals of a function": field("metric", lambda c: code("equivox.core.task:Task.__init__.__globals__")),
    "subclasses of a class": field("metric", lambda c: code("equivox.core.task:Task.__subclasses__")),
    "an importer": field(
        "simulate", lambda c: {"$type": "equivox.run.declarations:importlib.import_module", "name": "antigravity"}
    ),
    "our loader of files": field(
        "simulate",
        lambda c: {"$type": "equivox.run.declarations:load_file", "path": {"$path": str(c.parent / "evil.py")}},
    ),
    "our reader of task files": field(
        "simulate",
        lambda c: {"$type": "equivox.tasks.registry:open_task_file", "path": {"$path": str(c.parent / "evil.py")}},
    ),
    "a class of ours that is no part of a task": field(
        "simulate", lambda c: {"$type": "equivox.run.store:Store", "folder": {"$path": str(c)}, "schema": None}
    ),
    "a name that a plug-in imported": field("simulate", lambda c: {"$type": "plugged:system", "command": f"touch {c}"}),
    "a class of a plug-in that no task has": field("simulate", lambda c: popen("plugged:Popen", c)),
    "a package that is not here": field("metric", lambda c: code("nowhere.at.all:METRIC")),
    "a file inside": from_file("inside"),
    "a file inside, relative": from_file("inside relative"),
    "a file beside": from_file("beside"),
    "a file beside, relative": from_file("beside relative"),
    "a file beside, dotted": from_file("beside dotted"),
    "a file above": from_file("above"),
    "a file above, relative": from_file("above relative"),
    "tools with a model of their own": field(
        "annotation", lambda c: {"$type": TOOLS, "parser": str(c.parent), "sentiment": str(c.parent)}
    ),
    "registered answers as a scheme": field(
        "annotation", lambda c: {"$type": "equivox.metrics.badf.simulated:SimulatedStories"}
    ),
    "a registered metric as presentations": inner(
        "prompt", "presentations", lambda c: code("equivox.metrics.ntvd.metric:METRIC")
    ),
    "registered presentations as a metric": field("metric", lambda c: code("equivox.tasks.genres:each_character")),
    "code in a mapping": inner(
        "data", "columns", lambda c: {"x": popen("equivox.run.reproducing:subprocess.Popen", c)}
    ),
    "a name of code that is no text": field("metric", lambda c: {"$type": {"$type": "x"}}),
    "a class that is no text": field("metric", lambda c: {"$type": ["equivox.core.task:Task"]}),
    "a card that is no text": field("card", lambda c: 7),
    "a name out of the folder": field("name", lambda c: "../../../outside"),
    "a name of half a sign": field("name", lambda c: "vibe_gender:\ud800"),
    "a name with a NUL": field("name", lambda c: "vibe_gender:\0"),
    "text where a list belongs": field("attributes", lambda c: "x"),
    "a number of repeats without end": inner("sampling", "repeats", lambda c: 10**12),
    "a temperature as text": inner("sampling", "temperature", lambda c: "hot"),
    "another class as the task": lambda document, c: document["tasks"].__setitem__(0, document["tasks"][0]["prompt"]),
    "a text as the task": lambda document, c: document["tasks"].__setitem__(0, "vibe_gender:story"),
    "a mapping as the tasks": lambda document, c: document.update(tasks={"a": 1}),
    "no tasks at all": lambda document, c: document.pop("tasks"),
    "deep nesting": field("card", lambda c: nested(400)),
}


def test_there_are_enough_hostile_runs() -> None:
    assert len(HOSTILE) >= 30


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with an entry point, which imports names that can do harm."""
    import os
    import subprocess

    module = types.ModuleType("plugged")
    vars(module).update(system=os.system, Popen=subprocess.Popen)
    monkeypatch.setitem(sys.modules, "plugged", module)
    packages = declarations.plugin_packages() | {"plugged"}
    monkeypatch.setattr(declarations, "plugin_packages", lambda: packages)


def forge(path: Path, document: dict[str, Any]) -> None:
    """Write a document with the checksum that equivox would give it, half signs included."""
    document.pop(files.CHECKSUM, None)
    path.write_text(json.dumps(document | {files.CHECKSUM: files._checksum(document)}))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_command_executes_what_a_run_names(
    name: str, stored: Path, tmp_path: Path, equivox: Cli, plugged: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, canary = tmp_path / "arc" / "run", tmp_path / "executed"
    shutil.copytree(stored, run)
    document = read_document(run / "tasks.json")
    HOSTILE[name](document, canary)
    forge(run / "tasks.json", document)
    state_hashes(run)  # what a forger would do
    monkeypatch.chdir(run.parent)
    for command, (path, declared) in COMMANDS.items():
        exit_code, _, err = equivox(*line(path, declared, run, tmp_path / "written"))
        assert not canary.exists(), command
        assert exit_code in ((1, 2) if command in DECIDING else (0, 1, 2)), (command, exit_code)
        # A gate opens two runs, here one run twice.
        assert "Traceback" not in err and len(err.splitlines()) <= (3 if command == "gate" else 2), (command, err)
    monkeypatch.setattr(remote, "downloaded", lambda address: nullcontext(run))
    exit_code, _, err = equivox("verify", "hf://datasets/org/run")
    assert not canary.exists() and exit_code in (1, 2) and "Traceback" not in err
    assert "antigravity" not in sys.modules


def fifo(run: Path) -> None:
    os.mkfifo(run / "responses" / "shard-000009.parquet")


def link(target: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / "responses" / "shard-000009.parquet").symlink_to(target)

    return change


def stated_device(run: Path) -> None:
    (run / "usage.json").symlink_to("/dev/zero")
    manifest = read_document(run / "manifest.json")
    manifest["files"]["usage.json"] = "0" * 64
    forge(run / "manifest.json", manifest)


def edited(file: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def write(run: Path) -> None:
        document = read_document(run / file)
        change(document)
        forge(run / file, document)
        if file != "manifest.json":
            state_hashes(run)

    return write


def text(file: str, content: str | bytes) -> Callable[[Path], None]:
    def write(run: Path) -> None:
        (run / file).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def bomb(file: str) -> Callable[[Path], None]:
    """A table of 20 GB in a few hundred bytes: one text of a megabyte, 20,000 times."""

    def write(run: Path) -> None:
        import pyarrow as pa

        old = files.read_table(run / file)
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 1_000_000]))
        columns = {
            n: texts if t == pa.string() else pa.nulls(20_000, t)
            for n, t in zip(old.schema.names, old.schema.types, strict=True)
        }
        files.write_table(run / file, pa.table(columns))
        state_hashes(run)

    return write


def scores(name: str, value: Any) -> Callable[[Path], None]:
    return edited("scores.json", lambda document: [score.update({name: value}) for score in document["scores"]])


DEEP = "[" * 100_000 + "]" * 100_000
SHARD = "responses/shard-000001.parquet"
ODD: Mapping[str, Callable[[Path], Any]] = {
    "a pipe": fifo,
    "a link to a device": link("/dev/zero"),
    "a device that the manifest states": stated_device,
    "a link out of the folder": link("/etc/passwd"),
    "a link in a circle": link("shard-000009.parquet"),
    "a deep manifest": text("manifest.json", DEEP),
    "a manifest that is a list": text("manifest.json", "[]"),
    "a manifest without a command": edited("manifest.json", lambda d: d.pop("command")),
    "a model that is no mapping": edited("manifest.json", lambda d: d["identity"].update(model="x")),
    "a model without an engine": edited("manifest.json", lambda d: d["identity"]["model"].pop("engine")),
    "tasks that are a list": edited("manifest.json", lambda d: d["identity"].update(tasks=[])),
    "hashes that are numbers": edited("manifest.json", lambda d: d["files"].update(x=1)),
    "an annotator out of the folder": edited("manifest.json", lambda d: d["command"].update(annotator="../../x")),
    "a model that is no text": edited("manifest.json", lambda d: d["command"].update(model=7)),
    "a large document": lambda run: os.truncate(run / "scores.json", 2**27),
    "deep scores": text("scores.json", DEEP),
    "scores as strings": scores("value", "0"),
    "scores that are no numbers": scores("ci_low", True),
    "coverage that is a number": scores("coverage", 3),
    "half a sign in a score": scores("task", "\ud800"),
    "scores that are text": edited("scores.json", lambda d: d.update(scores="all fair")),
    "no list of scores": edited("scores.json", lambda d: d.pop("scores")),
    "a bomb of responses": bomb(SHARD),
    "a bomb of a plan": bomb("plan.parquet"),
    "responses that are no table": text(SHARD, b"PAR1" + b"\0" * 100 + b"PAR1"),
    "a pickle for a plan": text("plan.parquet", pickle.dumps({"a": 1})),
    "a folder for a document": lambda run: ((run / "scores.json").unlink(), (run / "scores.json").mkdir()),
}


@pytest.fixture
def unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers end as soon as they would listen."""
    monkeypatch.setattr("uvicorn.Server.run", lambda *arguments, **options: None)


@pytest.mark.parametrize("name", ODD)
def test_no_command_needs_a_traceback_for_an_odd_run(
    name: str, stored: Path, tmp_path: Path, equivox: Cli, unserved: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "arc" / "run"
    for command, (path, declared) in COMMANDS.items():
        shutil.rmtree(run, ignore_errors=True)  # some commands mend what is odd
        shutil.copytree(stored, run)
        ODD[name](run)
        monkeypatch.chdir(run.parent)
        exit_code, _, err = equivox(*line(path, declared, run, tmp_path / "written"))
        assert exit_code in ((1, 2) if command in DECIDING else (0, 1, 2)), (command, exit_code)
        # A gate opens two runs, here one run twice.
        assert "Traceback" not in err and len(err.splitlines()) <= (3 if command == "gate" else 2), (command, err)
