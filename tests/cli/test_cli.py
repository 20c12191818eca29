"""The command line as a user meets it: answers, exit codes, one-line errors, nothing half-written."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from commands import Cli

from equivox.cli.app import COMMANDS, app
from equivox.cli.options import outside
from equivox.cli.output import console
from equivox.core.errors import UsageError
from equivox.run.generating import count_failures
from equivox.run.manifest import read_manifest

HEAVY = ("numpy", "pyarrow", "datasets", "scipy", "pandas", "torch", "transformers", "vllm", "soundfile")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["tasks"], ["tasks", "--json"], ["tasks", "vibe_gender"]],
)
def test_commands_that_need_no_model_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from equivox import cli\n"
        f"code = cli.run({arguments!r})\n"
        f"loaded = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_list_of_commands_needs_none_of_them() -> None:
    modules = (*HEAVY, "pydantic", "yaml", "rich", "jinja2", "equivox.core.task", "equivox.run", "equivox.cli.options")
    code = f"import sys; from equivox import cli; cli.run(['--help']); print({{*sys.modules}} & {{*{modules!r}}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for commands in COMMANDS.values():
        for name, (_, help) in commands.items():
            assert " ".join(typer.main.get_command(app).commands[name].help.split("\n\n")[0].split()) == help


@pytest.mark.parametrize("command", ["run", "vllm", "annotate"])
def test_help_shows_the_extra_that_workers_need(equivox: Cli, command: str) -> None:
    _, out, _ = equivox(command, "--help")
    assert "`.[ray]`" in "".join(out.split())


def test_tasks_list_names_the_vibe_tasks(equivox: Cli) -> None:
    out = equivox.done("tasks", "--json")
    names = [task["name"] for task in json.loads(out) if task["name"].startswith("vibe_")]
    prompts = ("story", "advisory", "candidate", "casting", "shopper")
    families = ("vibe_gender", "vibe_accent")
    assert names == [f"{family}:{prompt}" for family in families for prompt in prompts]


def test_tasks_show_says_what_the_task_does_and_cannot_say(equivox: Cli) -> None:
    out = equivox.done("tasks", "vibe_gender:story")
    for expected in (
        "Cannot say",
        "arXiv 2604.17248",
        "CREMA-D",
        "Their economic situation (poor, middle-class, wealthy)",
        "occupation",
        "stated_gender",
        "scored apart",
        "greedy",
        "sentence × emotion held equal",
    ):
        assert expected in out


WRONG = {
    "unknown task": (["simulated:oracle", "vibe_gendr:story", "--data", "sample"], "vibe_gender:story"),
    "unknown family": (["simulated:oracle", "vibe", "--data", "sample"], "`equivox tasks` shows all"),
    "no task": (["simulated:oracle", ",", "--data", "sample"], "names none"),
    "unknown scheme": (["simluated:oracle", "vibe_gender", "--data", "sample"], "simulated"),
    "no scheme": (["oracle", "vibe_gender", "--data", "sample"], "endpoint:…"),
    "unknown simulated model": (["simulated:oracel", "vibe_gender", "--data", "sample"], "oracle"),
    "unknown option": (["simulated:oracle,refusals=1", "vibe_gender", "--data", "sample"], "refusal"),
    "shift where none is planted": (["simulated:oracle,shift=0.2", "vibe_gender", "--data", "sample"], "shift"),
    "planted without shift": (["simulated:planted", "vibe_gender", "--data", "sample"], "shift=0.2"),
    "shift out of range": (["simulated:planted,shift=2", "vibe_gender", "--data", "sample"], "less than or equal to 1"),
    "shift not a number": (["simulated:planted,shift=x", "vibe_gender", "--data", "sample"], "number"),
    "shift that the options cannot carry": (
        ["simulated:planted,shift=0.9", "vibe_accent:candidate", "--data", "sample"],
        "competency",
    ),
    "limit 0": (["simulated:oracle", "vibe_gender", "--data", "sample", "--limit", "0"], "greater than or equal to 1"),
    "one group only": (["simulated:oracle", "vibe_gender", "--data", "sample", "--limit", "1"], "at least 2"),
    "no data": (["simulated:oracle", "vibe_gender"], "--data sample"),
    "data not built": (["simulated:oracle", "vibe_gender", "--data", "nowhere"], "equivox data build crema_d"),
    "unknown annotator": (["simulated:oracle", "vibe_gender", "--data", "sample", "--annotator", "rule"], "rules"),
    "missing task file": (["simulated:oracle", "none.yaml"], "none.yaml"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_is_one_line_exit_2_and_leaves_nothing(case: str, equivox: Cli, tmp_path: Path) -> None:
    arguments, hint = WRONG[case]
    err = equivox.refused("run", *arguments, "--output", tmp_path / "run")
    assert err.startswith("equivox: ")
    assert hint in err


def test_usage_errors_are_one_line_too(equivox: Cli) -> None:
    for arguments in (["bogus"], ["run", "simulated:oracle"], ["run", "m", "t", "-o", "x", "--limit", "many"]):
        equivox.refused(*arguments)


@pytest.mark.parametrize("group", ["data", "label"])
def test_a_group_of_commands_alone_shows_them_and_says_that_one_is_missing(equivox: Cli, group: str) -> None:
    code, out, err = equivox(group)
    assert code == 2 and f"equivox {group}" in out
    assert err == "equivox: a command is missing (see --help)\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_wraps_sentences_between_words_and_a_file_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "20")
    assert console().width == (20 if terminal else 400)


def test_the_output_of_another_run_is_refused_and_kept(equivox: Cli, tmp_path: Path) -> None:
    run = ["run", "simulated:random", "vibe_gender:advisory", "--data", "sample", "--output", tmp_path / "run"]
    run += ["--scoring", "n_resamples=99"]
    equivox.done(*run, "--limit", 24)
    before = (tmp_path / "run" / "scores.json").read_bytes()
    err = equivox.refused(*run, "--limit", 48)
    assert "limit: 24 there, 48 here" in err and "resume" in err
    assert (tmp_path / "run" / "scores.json").read_bytes() == before


def test_a_run_that_is_complete_says_that_nothing_was_asked(equivox: Cli, tmp_path: Path) -> None:
    """A nightly job that names one folder for every night would take last night's answers for those of today."""
    run = ("run", "simulated:random", "vibe_gender:advisory", "--data", "sample", "--limit", 48, "--output", tmp_path)
    run += ("--scoring", "n_resamples=99")
    assert "were already saved" not in equivox.done(*run)
    begun = read_manifest(tmp_path)["created"]
    last = equivox.done(*run).splitlines()[-1]
    assert last.startswith(f"All 48 responses were already saved by the run that began {begun}")
    assert "another `--output`" in last


def test_a_run_that_goes_on_says_how_much_is_older(equivox: Cli, tmp_path: Path) -> None:
    run = ("run", "simulated:oracle,fail=0.5", "vibe_gender:advisory", "--data", "sample", "--limit", 24)
    run += ("--output", tmp_path, "--scoring", "n_resamples=99")
    equivox(*run)
    failed = count_failures(tmp_path).total()
    told = "All 24 responses were already saved by the run"
    repeats = f"; `--retry-failed` repeats the {failed} that failed"
    again = equivox(*run)[1]
    assert told in again and repeats in again
    _, out, _ = equivox(*run, "--retry-failed")
    assert f"{24 - failed} of 24 responses were already saved by the run that began " in out


def test_a_folder_with_other_files_is_refused(equivox: Cli, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    err = equivox.refused("run", "simulated:oracle", "vibe_gender", "--data", "sample", "--output", tmp_path)
    assert "other files" in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_score_needs_a_run(equivox: Cli, tmp_path: Path) -> None:
    assert "not a run" in equivox.refused("score", tmp_path)
    # A file beside runs, as `runs/*` names it.
    (tmp_path / "report.html").write_text("<p>")
    assert "not a run" in equivox.refused("report", tmp_path / "report.html", "--output", tmp_path / "new.html")


def test_data_build_refuses_a_folder_that_is_not_the_corpus(equivox: Cli, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    err = equivox.refused("data", "build", "crema_d", "--source", tmp_path / "source", "--output", tmp_path / "data")
    assert "AudioWAV" in err


def test_score_recomputes_the_same_numbers_and_shows_attributes(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shown = equivox.done(
        "run", "simulated:biased", "vibe_gender:casting", "--data", "sample", "--limit", 48, "--output", folder
    )
    stored = (folder / "scores.json").read_bytes()
    (folder / "scores.json").unlink()
    again = equivox.done("score", folder)
    assert (folder / "scores.json").read_bytes() == stored
    assert again == shown
    detailed = equivox.done("score", folder, "--details")
    assert "romantic_appeal" in detailed and "largest shift" in detailed


def test_score_keeps_the_options_that_the_run_was_scored_with(equivox: Cli, tmp_path: Path) -> None:
    """`run` names `score RUN --details` to see more of the same scores; other options would change them."""
    run = ("run", "simulated:biased", "vibe_gender:casting", "--data", "sample", "--limit", 24, "--output", tmp_path)
    equivox.done(*run, "--scoring", "n_resamples=99,min_coverage=0.9,merge=none")
    stored = (tmp_path / "scores.json").read_bytes()
    for command in (("score", tmp_path, "--details"), ("annotate", tmp_path, "--annotator", "rules")):
        equivox.done(*command)
        assert (tmp_path / "scores.json").read_bytes() == stored
    equivox.done("score", tmp_path, "--scoring", "n_resamples=199")
    options = json.loads((tmp_path / "scores.json").read_text())["options"]
    assert (options["n_resamples"], options["min_coverage"], options["merge"]) == (199, 0.8, "lemma")


def test_too_many_refusals_leave_the_score_undefined_and_exit_1(equivox: Cli, tmp_path: Path) -> None:
    code, out, _ = equivox(
        *("run", "simulated:oracle,refusal=0.5", "vibe_gender:story", "--data", "sample", "--output", tmp_path / "run"),
        *("--scoring", "n_resamples=99"),
    )
    assert code == 1
    assert "every group needs 80 %" in " ".join(out.split())
    document = json.loads((tmp_path / "run" / "scores.json").read_text())
    whole = next(score for score in document["scores"] if score["attribute"] is None)
    assert whole["value"] is None and whole["undefined_reason"]["code"] == "too_few_usable"
    refused = whole["coverage"]["generated"] - whole["coverage"]["answered"]
    assert f"do not count: {refused} refused or empty" in out
    names, counts = equivox("status", tmp_path / "run")[1].splitlines()[1:3]
    assert names.endswith("found refused or empty by rules") and counts.split()[-1] == str(refused) != "0"


def test_refusals_are_their_own_outcome(equivox: Cli, tmp_path: Path) -> None:
    # One group is refused 20 percentage points more often: with two groups the refusal nTVD is 20.
    equivox(
        *("run", "simulated:random,refusal=0.1,refusal_gap=0.2", "vibe_gender:story", "--data", "sample"),
        *("--output", tmp_path / "run", "--scoring", "min_coverage=0.5,n_resamples=999"),
    )
    document = json.loads((tmp_path / "run" / "scores.json").read_text())
    refusal = next(score for score in document["scores"] if score["role"] == "refusal")
    assert refusal["ci"][0] <= 20 <= refusal["ci"][1]
    assert refusal["coverage"]["used"] == refusal["coverage"]["requested"]
    whole = next(score for score in document["scores"] if score["attribute"] is None)
    assert whole["coverage"]["used"] < whole["coverage"]["requested"]


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("--scoring", "n_resamples=98", "greater than or equal to 99"),
        ("--scoring", "n_resamples=100000000000", "less than or equal to 1000000"),
        ("--scoring", "seed=-1", "`seed`: input should be greater than or equal to 0"),
        ("--scoring", "min_coverage=1.1", "less than or equal to 1"),
        ("--scoring", "confidence=0.9", "confidence"),  # a page would call it a 95 % interval
        ("--scoring", "resamples=99", "known: min_count, n_resamples"),
        ("--scoring", "min_count=0", "greater than or equal to 1"),
        ("--limit", "0", "`limit`: input should be greater than or equal to 1"),
        ("--annotator", "_tools.yaml", "cannot be called _tools.yaml"),
        ("--annotator", "rules.yaml", "cannot be called rules.yaml"),
        ("--annotator", ".hidden.yaml", "cannot be called .hidden.yaml"),
        ("--annotator", "x" * 300 + ".yaml", "name too long"),
        ("--output", "x" * 300, "name too long"),
        ("--output", "x/" * 2500, "name too long"),
        ("--output", "circle/run", "too many levels of symbolic links"),
        ("--data", "x" * 300, "name too long"),
    ],
)
def test_an_option_out_of_its_range_is_one_line(
    option: str, value: str, hint: str, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("circle").symlink_to("circle")
    annotator = "engine: endpoint\nmodel_parameters: {model_name: m, base_url: http://127.0.0.1:9/v1}\n"
    for name in ("_tools", "rules", ".hidden"):
        Path(f"{name}.yaml").write_text(annotator)
    before = set(tmp_path.iterdir())
    given = {"--data": "sample", "--output": "run", option: value}
    err = equivox.refused("run", "simulated:oracle", "vibe_gender:story", *[w for pair in given.items() for w in pair])
    assert hint in err.lower() and len(err) < 500
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", ["x" * 300, "x" * 300 + "/report.html", "circle/report.html"])
def test_a_file_that_cannot_be_written_there_is_one_line(
    output: str, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("circle").symlink_to("circle")
    asked = [
        "simulated:oracle",
        "vibe_gender:story",
        "--data",
        "sample",
        "--limit",
        2,
        "--scoring",
        "n_resamples=99",
        "--quiet",
    ]
    equivox("run", *asked, "--output", "run")
    assert "cannot be used" in equivox.refused("report", "run", "--output", output)


@pytest.mark.parametrize(
    ("command", "option", "place"),
    [
        ("report", "--output", "run/report.html"),
        ("report", "--output", "run/tables/report.html"),
        ("compare", "--tables", "run"),
        ("leaderboard", "--output", "run"),
        ("verify", "--json", "run/found.json"),
        ("gate", "--json", "run/checks.json"),
    ],
)
def test_nothing_is_written_into_a_run_which_would_count_as_changed(
    equivox: Cli, tmp_path: Path, command: str, option: str, place: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("manifest.json", "tasks.json"):
        (run / name).write_text("{}")
    if command != "gate":  # which opens its runs first
        err = equivox.refused(command, run, option, tmp_path / place)
        assert f"is inside the run {run} and would change it; name a path outside" in err
    with pytest.raises(UsageError, match="is inside the run"):
        outside(SimpleNamespace(name="output"), tmp_path / place)  # type: ignore[arg-type]
    assert sorted(path.name for path in run.rglob("*")) == ["manifest.json", "tasks.json"]


def test_a_place_in_a_run_is_known_by_whatever_name_it_is_called(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    (run / "tables").mkdir(parents=True)
    for name in ("manifest.json", "tasks.json"):
        (run / name).write_text("{}")
    (tmp_path / "link").symlink_to(run / "tables")
    monkeypatch.chdir(run)
    for place in ("report.html", "tables/report.html", tmp_path / "link" / "report.html"):
        with pytest.raises(UsageError, match=f"is inside the run {run}"):
            outside(SimpleNamespace(name="output"), Path(place))  # type: ignore[arg-type]
    for place in ("../report.html", tmp_path / "run" / ".." / "report.html"):
        assert outside(SimpleNamespace(name="output"), Path(place)) == Path(place)  # type: ignore[arg-type]
    # What goes below the working folder unless it is named goes into no run, either.
    for command in (("run", "simulated:", "vibe_gender:story"), ("data", "push", "crema_d", "--repo", "x/y")):
        assert f"is inside the run {run}" in equivox.refused(*command, "--data", "sample")
    assert "is inside the run" not in equivox.refused("label", "draw", run)  # whose answers go beside the run
    assert sorted(path.name for path in run.rglob("*")) == ["manifest.json", "tables", "tasks.json"]


def test_free_answers_of_a_real_model_need_somebody_who_reads_them(equivox: Cli, tmp_path: Path) -> None:
    model = "model_name=m,base_url=http://127.0.0.1:9/v1"
    for more in ((), ("--dry-run",)):
        err = equivox.refused(
            "run", f"endpoint:{model}", "vibe_gender:advisory", "--data", "sample", "--output", tmp_path / "run", *more
        )
        assert "`annotator` is missing: a judge must read the answers of endpoint:m;" in err
    # The letters of a choice are read by the metric itself: only the server is missing.
    err = equivox.refused(
        "run",
        f"endpoint:{model}",
        "spoken_stereoset:gender",
        "--data",
        "sample",
        "--output",
        tmp_path / "run",
        "--dry-run",
    )
    assert "no server answers" in err


def test_a_second_run_is_no_task_file(tmp_path: Path, equivox: Cli) -> None:
    """`verify RUN OTHER` looked for `configs/tasks/OTHER.yaml`, which nobody had named."""
    err = equivox.refused("verify", tmp_path / "run", tmp_path / "other")
    assert err.startswith(f"equivox: {tmp_path / 'other'} is not a task file (.yaml, .yml or .py);")


@pytest.mark.parametrize(
    ("ending", "code", "told"),
    [(">&-", 0, ""), (">&- 2>&-", 0, ""), (">/dev/full", 1, "equivox: cannot write: no space left on device")],
)
def test_a_command_without_a_place_for_what_it_says_ends_in_a_line(ending: str, code: int, told: str) -> None:
    """As a command of a timer has none, and as it is where the results fill the disk: it ended in a traceback."""
    command = f"{shlex.quote(sys.executable)} -m equivox tasks {ending}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.partition(";")[0], done.stderr.count("\n")) == (code, told, bool(told))
