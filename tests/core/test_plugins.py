"""Entry points of installed packages: one that is broken is named, and takes nothing else down."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import Cli

from equivox.core import plugins
from equivox.core.errors import RunError, UsageError
from equivox.core.plugins import freed, told_in_one_line
from equivox.dataset_builders import opening
from equivox.tasks import registry

STORY = "vibe_gender:story"
MODULE = """
from dataclasses import replace
from equivox.engines.simulated import SimulatedEngine
from equivox.tasks import ALL_TASKS

VIBE = [task for task in ALL_TASKS if task.name == "vibe_gender:story"]
TASKS = [replace(VIBE[0], name="greeting:one"), replace(VIBE[0], name="greeting:two")]
CLASHING = [replace(VIBE[0], name="greeting:two"), replace(VIBE[0], name="vibe_gender:story")]
MORE = [replace(VIBE[0], name="vibe_gender:dating")]
NUMBER = 5

def open_engine(arguments):
    return SimulatedEngine.from_spec("oracle", VIBE)

def leave(arguments):
    raise SystemExit(0)

def open_rules():
    from equivox.annotate.rules import RulesAnnotator
    return RulesAnnotator()
"""
Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with these entry points, and the module `foreign_code`; returns the folder of packages."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "foreign_code.py").write_text(MODULE)
    (site / "leaving.py").write_text("import sys\nsys.exit('no licence')\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)

    def write(package: str, entry_points: str) -> Path:
        info = site / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        forget()
        return site

    yield write
    for module in ("foreign_code", "leaving", "own_annotator"):
        sys.modules.pop(module, None)
    monkeypatch.undo()
    forget()


def forget() -> None:
    for cached in (plugins.added, plugins.plugin_packages, registry._added_tasks, opening.openers):
        cached.cache_clear()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "equivox.core.plugins"]


BROKEN = (
    "[equivox.engines]\nmissing = foreign_code:nothere\nfine = foreign_code:open_engine\nleaves = foreign_code:leave\n"
    "[equivox.tasks]\nabsent = nowhere_at_all:TASKS\nnumber = foreign_code:NUMBER\n"
    "[equivox.annotators]\nquits = leaving:annotator\nmine = foreign_code:open_rules\n"
    "[equivox.dataset_builders]\nshelf = foreign_code:nothere\nno_builder = builtins:dict\n"
)


def test_broken_entry_points_are_a_warning_each_and_everything_else_works(
    tmp_path: Path, install: Install, equivox: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    install("equivox-bad", BROKEN)
    for model, annotator in (("simulated:oracle", "rules"), ("fine:model_name=x", "mine")):
        run = tmp_path / model.partition(":")[0]
        asked = ("run", model, STORY, "--data", "sample", "--scoring", "n_resamples=99")
        equivox.done(*asked, "--annotator", annotator, "--output", run)
        equivox.done("score", run, "--scoring", "n_resamples=99")
        equivox.done("report", run)
    assert equivox.done("tasks") and equivox.done("data", "build")
    told = warnings_of(caplog)
    for name in ("missing", "absent", "number", "quits", "shelf", "no_builder"):
        assert [text for text in told if f"'{name}'" in text and "the package equivox-bad" in text] != [], name
    assert len(told) == len(set(told)) == 6
    assert not any("\n" in text for text in told)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("run", "missing:model_name=x", STORY, "--annotator", "rules"), "has no attribute 'nothere'"),
        (("run", "simulated:oracle", "absent", "--data", "sample"), "No module named 'nowhere_at_all'"),
        (("run", "simulated:oracle", "number:one", "--data", "sample"), "gives 5, not tasks"),
        (("run", "simulated:oracle", STORY, "--data", "sample", "--annotator", "quits"), "no licence"),
        (("data", "build", "shelf", "--source", "."), "has no attribute 'nothere'"),
    ],
)
def test_asking_for_a_broken_name_gives_the_reason(
    tmp_path: Path, install: Install, equivox: Cli, asked: tuple[str, ...], reason: str
) -> None:
    install("equivox-bad", BROKEN)
    err = equivox.refused(*asked, "--output", tmp_path / "out")
    assert reason in err and "the package equivox-bad adds" in err


SECRET = "has what looks like a secret in the settings of its `identity`, which are written down:"


@pytest.mark.parametrize(
    ("identity", "told"),
    [
        ("name='rules', version='1'", "is called 'rules', as one of equivox is; give it another name"),
        ("name='own', version='1', settings={'n': 1, 'api_key': 'sk-hunter2'}", f"{SECRET} in 'api_key'; leave it out"),
        ("name='own', version='1', settings={'at': 'http://me:pw@host/v1'}", f"{SECRET} in 'at'; leave it out"),
        (
            "name='own', version='1', settings={'prompt': 'as key: value'}",
            f"{SECRET} in 'prompt'; leave it out, or put",
        ),
    ],
)
def test_an_annotator_that_would_mislead_or_tell_a_secret_is_refused(
    tmp_path: Path, install: Install, equivox: Cli, identity: str, told: str
) -> None:
    site = install("equivox-own", "[equivox.annotators]\nown = own_annotator:Own\n")
    (site / "own_annotator.py").write_text(
        "from equivox.annotate import AnnotatorIdentity\nfrom equivox.annotate.rules import RulesAnnotator\n"
        "class Own(RulesAnnotator):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.identity = AnnotatorIdentity({identity})\n"
    )
    asked = ("run", "simulated:oracle", STORY, "--data", "sample", "--annotator", "own", "--output", tmp_path / "out")
    assert f"the annotator own of the package equivox-own {told}" in equivox.refused(*asked)
    assert not (tmp_path / "out").exists()


def test_an_engine_that_leaves_the_process_has_failed(tmp_path: Path, install: Install, equivox: Cli) -> None:
    install("equivox-bad", BROKEN)
    asked = ("run", "leaves:x=1", STORY, "--annotator", "rules", "--data", "sample", "--output", tmp_path / "out")
    code, out, err = equivox(*asked)
    assert (code, out) == (1, "")
    assert "the engine leaves of the package equivox-bad failed (SystemExit: 0)" in err
    assert not (tmp_path / "out").exists()


def test_a_name_of_two_packages_is_refused_alone_and_both_are_named(
    tmp_path: Path, install: Install, equivox: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    engines = "[equivox.engines]\nshared = foreign_code:open_engine\n"
    install("equivox-one", f"{engines}vllm = foreign_code:nothere\n[equivox.tasks]\none = foreign_code:TASKS\n")
    install("equivox-two", f"{engines}[equivox.tasks]\ntwo = foreign_code:CLASHING\n")
    output = ("--data", "sample", "--scoring", "n_resamples=99", "--annotator", "rules", "--output")
    equivox.done("run", "simulated:oracle", "greeting:one", *output, tmp_path / "one")
    for model, task in (("shared:model_name=x", STORY), ("simulated:oracle", "greeting:two")):
        err = equivox.refused("run", model, task, *output, tmp_path / "two")
        assert "equivox-one" in err and "equivox-two" in err
    assert "foreign_code" not in registry.builtin_tasks()[STORY].prompt.name
    told = warnings_of(caplog)
    assert len(told) == 4, told  # the engine, the task of both, and two names of equivox
    assert sum("which equivox has" in text for text in told) == 2


def test_a_family_of_ours_stays_what_it_is(
    tmp_path: Path, install: Install, equivox: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    install("equivox-more", "[equivox.tasks]\nmore = foreign_code:MORE\n")
    assert "vibe_gender:dating" not in [task.name for task in registry.resolve_tasks("vibe_gender")]
    err = equivox.refused(
        "run", "simulated:oracle", "vibe_gender:dating", "--data", "sample", "--output", tmp_path / "o"
    )
    told = (
        "the package equivox-more adds vibe_gender:dating to a family of equivox, whose tasks are averaged; rename it"
    )
    assert told in err
    assert warnings_of(caplog) == [f"warning: {told}"]


def test_a_package_may_start_from_a_task_of_ours(install: Install) -> None:
    site = install("equivox-start", "[equivox.tasks]\nstarted = started:TASKS\n")
    (site / "started.py").write_text(
        "from dataclasses import replace\nimport equivox\n"
        f"TASKS = [replace(equivox.load_task({STORY!r}), name='started:story')]\n"
    )
    # The module is imported before anything looks for what packages add, and asks for a task while it is.
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import started, equivox; print(equivox.list_tasks()[-1])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("started:story\n", "")


def test_the_command_line_warns_in_one_line_on_stderr(install: Install) -> None:
    site = install("equivox-bad", "[equivox.tasks]\nabsent = nowhere_at_all:TASKS\n")
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from equivox.cli import main; main(['tasks'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        "warning: the package equivox-bad adds 'absent' to equivox.tasks, which cannot be loaded "
        "(ModuleNotFoundError: No module named 'nowhere_at_all'); update or uninstall it"
    ]
    assert STORY in done.stdout


def test_what_cannot_be_closed_hides_no_error_before_it() -> None:
    def close() -> None:
        raise ConnectionError("the server is gone")

    opened = SimpleNamespace(named="the engine e of m", close=close)
    cause = "ConnectionError: the server is gone"
    told = f"the engine e of m failed ({cause}); stored responses are kept; --debug shows where it failed"
    with pytest.raises(RunError) as alone, freed(opened):
        pass
    assert str(alone.value) == told
    for first in (UsageError("no such task"), KeyboardInterrupt()):
        with pytest.raises(type(first)) as found, freed(opened):
            raise first
        assert found.value is first and found.value.__notes__ == [told]


def test_too_little_memory_is_no_fault_of_a_plug_in() -> None:
    with pytest.raises(MemoryError), told_in_one_line("the engine e of m"):
        raise MemoryError
