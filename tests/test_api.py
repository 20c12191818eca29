"""The Python API: what a notebook does in a few lines is what the command line does."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import equivox
from equivox.core.requests import Request
from equivox.core.scores import ScoringOptions
from equivox.core.task import AnnotationScheme, Attribute
from equivox.run.scoring import read_scores

FEW = equivox.ScoringOptions(n_resamples=99)

OPTIONS = ScoringOptions(n_resamples=199)


def test_a_few_lines(tmp_path: Path) -> None:
    task = equivox.load_task("vibe_gender:story")
    result = equivox.measure(
        "simulated:planted,shift=0.3", task, data="sample", output=tmp_path / "run", limit=48, options=FEW
    )
    scores = result.to_pandas()
    assert len(scores) == len(result.scores)
    whole = scores[scores["attribute"].isna()].iloc[0]
    assert whole["value"] == pytest.approx(result.scores[0].value)
    assert whole["coverage"] == 1
    responses = result.to_pandas("responses")
    assert list(responses["task"].unique()) == ["vibe_gender:story"]
    assert len(responses) == 48
    # What the table says by group is what the score was computed from: nTVD by hand from it.
    of = responses.explode("occupation").groupby(["group", "occupation"]).size().unstack(fill_value=0)
    of = of.loc[:, of.sum() >= result.scores[1].min_count]
    shares = of.div(of.sum(axis=1), axis=0)
    by_hand = 100 * (shares.iloc[0] - shares.iloc[1]).abs().sum() / 2
    (occupation,) = (score for score in result.scores if score.attribute == "occupation")
    assert occupation.value == pytest.approx(by_hand)
    assert result.undefined == {}
    assert result.manifest["command"]["model"] == "simulated:planted,shift=0.3"


def test_it_is_the_command_line(tmp_path: Path, equivox: object) -> None:
    arguments = ["vibe_gender:story", "--data", "sample", "--limit", "24", "--scoring", "n_resamples=99"]
    equivox("run", "simulated:biased", *arguments, "--output", tmp_path / "cli")
    from equivox.api import measure, open_run

    here = measure(
        "simulated:biased", "vibe_gender:story", data="sample", limit=24, output=tmp_path / "api", options=FEW
    )
    assert [s.as_dict() for s in here.scores] == [s.as_dict() for s in read_scores(tmp_path / "cli")]
    assert [s.as_dict() for s in open_run(tmp_path / "cli").scores] == [s.as_dict() for s in here.scores]


def test_a_function_is_a_model_and_is_asked_once(tmp_path: Path) -> None:
    asked: list[Request] = []

    def model(request: Request) -> str:
        asked.append(request)
        return "<think>Or angry?</think>They are calm."

    engine = equivox.FunctionEngine(model, name="calm", revision="1")
    for _ in range(2):
        result = equivox.measure(engine, "badf_two:gender", data="sample", limit=10, output=tmp_path / "run")
    responses = result.to_pandas("responses")
    assert len(asked) == len(responses) > 0
    assert set(responses["text"]) == {"They are calm."}, "what a model thinks is kept apart"
    assert result.undefined  # one answer to everything shows no difference and no fairness
    assert all(request.text and not request.labels.group and not request.labels.metadata for request in asked)


def test_a_model_that_does_not_listen_is_not_scored(tmp_path: Path) -> None:
    deaf = equivox.FunctionEngine(lambda request: "A story.", name="deaf", revision="1")
    with pytest.raises(equivox.RunError, match="used 0 of 1 media items"):
        equivox.measure(deaf, "vibe_gender:story", data="sample", limit=8, output=tmp_path / "deaf")

    def listen(request: Request) -> str:
        return f"A story of {len(request.media[0].load())} bytes."

    hearing = equivox.FunctionEngine(listen, name="hearing", revision="1")
    result = equivox.measure(hearing, "vibe_gender:story", data="sample", limit=8, output=tmp_path / "run")
    assert result.to_pandas("responses")["text"].str.contains("bytes").all()


def test_what_raises_is_a_failed_response(tmp_path: Path) -> None:
    def model(request: Request) -> str:
        if int(request.key[:2], 16) % 2:
            raise OSError("rate limit")
        return None  # type: ignore[return-value]

    engine = equivox.FunctionEngine(model, name="broken", revision="1")
    result = equivox.measure(engine, "badf_two:gender", data="sample", limit=10, output=tmp_path / "run")
    responses = result.to_pandas("responses")
    assert set(responses["status"]) == {"failed"}
    assert all(math.isnan(score.value) for score in result.scores if score.is_whole)
    assert result.undefined


def test_a_result_shows_and_draws_itself(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    task = replace(equivox.load_task("vibe_gender:candidate"), name="vibe_gender:<script>alert(1)")
    result = equivox.measure("simulated:biased", [task], data="sample", limit=24, output=tmp_path / "run", options=FEW)
    shown = result._repr_html_()
    assert "DIFFERENCE FOUND" in shown or "TOO FEW DATA" in shown
    assert "<script>" not in shown and "interval" in shown and "Before you rely on it" in shown
    figure = result.figure("forest:vibe_gender")
    assert isinstance(figure, Figure) and figure.axes[0].get_yticklabels()
    # What a notebook asks an object for, without `%matplotlib inline`: PNG, 720 pixels wide (big-endian, in IHDR).
    picture = figure._repr_png_()  # type: ignore[attr-defined]
    assert picture.startswith(b"\x89PNG") and int.from_bytes(picture[16:20], "big") == 720
    assert isinstance(result.figure(f"shares:{task.name}:competency"), Figure)
    with pytest.raises(equivox.UsageError, match="there are shares:"):
        result.figure(f"shares:{task.name}:nothing")


def test_a_task_whose_name_no_file_can_have_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    for name, told in (
        ("a/b:story", "cannot be a file name"),
        ("..:x/y", "cannot be a file name"),
        (".hidden", "family:task"),
    ):
        task = replace(equivox.load_task("vibe_gender:story"), name=name)
        with pytest.raises(equivox.UsageError, match=told):
            equivox.measure("simulated:biased", task, data="sample", limit=4, output=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"tasks": None}, "`tasks` gives None, not tasks"), ({"tasks": 5}, "`tasks` gives 5, not tasks"),
     ({"tasks": ["badf_two:gender", "vibe_gender:story"]}, "as one text, 'badf_two:gender,vibe_gender:story'"),
     ({"limit": "5"}, "`limit`"), ({"limit": 0}, "`limit`"), ({"seed": 1.5}, "`seed`"), ({"seed": True}, "`seed`"),
     ({"stop_after": -1}, "`stop_after`"), ({"options": {"look_for": 5}}, "`options`"), ({"compare": 5}, "`compare`"),
     ({"compare": ["gender"]}, "`compare.0`"), ({"compare": [5]}, "`compare.0`"),
     ({"compare": [("gender", 5)]}, "`compare.0.1`"), ({"data": {"id": [1]}}, "`data`"),
     ({"annotator": 3}, "`annotator`"), ({"system": ["a"]}, "`system`"), ({"system": {"fair": 5}}, "`system.fair`"),
     ({"conditions": 5}, "`conditions`"), ({"conditions": ["declared", 5]}, "`conditions.1`"),
     ({"sampling": 5}, "`sampling`"), ({"progress": 5}, "`progress` is a function that takes an `Event`, got 5"),
     ({"retry_failed": "no"}, "`retry_failed`"), ({"trust_remote_code": "no"}, "`trust_remote_code`"),
     ({"options": equivox.ScoringOptions(n_resamples="a")}, "n_resamples"),  # type: ignore[arg-type]
     ({"options": equivox.ScoringOptions(look_for="x")}, "look_for"),  # type: ignore[arg-type]
     ({"options": equivox.ScoringOptions(min_coverage=80)}, "min_coverage")],
)  # fmt: skip
def test_a_setting_of_another_type_is_refused_in_words(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(equivox.UsageError) as raised:
        equivox.measure("simulated:random", **{"tasks": "badf_two:gender", "output": tmp_path / "run", **wrong})
    assert told in str(raised.value)
    assert not (tmp_path / "run").exists()


def responses(**wrong: Any) -> equivox.Result:
    given: dict[str, Any] = {"model": "mine", "output": "run", **wrong}
    return equivox.import_responses([{"response": "a"}], "vibe_gender:advisory", **given)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: equivox.measure("simulated:random", "badf_two:gender", output=None),  # type: ignore[arg-type]
         "`output`: input should be an instance of path, got None"),
        (lambda: responses(output=5), "`output`: input should be an instance of path, got 5"),
        (lambda: responses(model=5), "`model`: input should be a valid string, got 5"),
        (lambda: responses(columns=["a"]), "`columns` is our name of a column"),
        (lambda: responses(columns={"response": 5}), "`columns` is our name of a column"),
        (lambda: responses(progress=5), "`progress` is a function"),
        (lambda: equivox.open_run(None), "`folder` is the folder of a run, a text or a path, got None"),  # type: ignore[arg-type]
        (lambda: equivox.open_run("run", tasks=5), "`tasks` is a text that names task files"),  # type: ignore[arg-type]
        (lambda: equivox.load_task(3), "`name` is the name of a task, such as vibe_gender:story, got 3"),  # type: ignore[arg-type]
        (lambda: equivox.FunctionEngine(5, name="a", revision="1"), "`function` is a function that takes"),  # type: ignore[arg-type]
        (lambda: equivox.Result(Path("run"), []).to_pandas(5), "`table` is one of scores, responses, got 5"),  # type: ignore[arg-type]
        (lambda: equivox.Result(Path("run"), []).figure(5), "`name` is the name of a figure"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_an_argument_of_another_type_is_refused_in_words(
    call: Callable[[], Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(equivox.UsageError) as raised:
        call()
    assert told in str(raised.value) and not list(tmp_path.iterdir())


def test_names(tmp_path: Path) -> None:
    assert "vibe_gender:story" in equivox.list_tasks()
    with pytest.raises(equivox.UsageError, match="is 5 tasks"):
        equivox.load_task("vibe_gender")
    with pytest.raises(equivox.UsageError, match="did you mean vibe_gender:story"):
        equivox.load_task("vibe_gender:stori")
    with pytest.raises(equivox.UsageError, match="`table` is one of scores, responses, got 'score'; did you mean"):
        equivox.Result(tmp_path, []).to_pandas("score")  # type: ignore[arg-type]
    with pytest.raises(equivox.UsageError, match=r"no manifest\.json"):
        equivox.open_run(tmp_path)
    with pytest.raises(equivox.UsageError, match="must both be set"):
        equivox.FunctionEngine(lambda request: "", name="", revision="1")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = equivox.nothing


def test_a_task_made_in_python_runs_and_is_scored_again_by_another_process(tmp_path: Path) -> None:
    story = equivox.load_task("vibe_gender:story")
    task = replace(
        story,
        name="mine:colour",
        version=3,
        prompt=replace(story.prompt, name="mine/colour", text="Which colour suits the speaker?"),
        annotation=AnnotationScheme(
            attributes=(Attribute(name="colour", asks="the colour", options=("red", "green", "blue")),)
        ),
    )
    result = equivox.measure(
        "simulated:planted,shift=0.4", task, data="sample", output=tmp_path / "run", options=OPTIONS
    )
    (whole,) = [score for score in result.scores if score.is_whole]
    assert whole.defined and whole.task == "mine:colour" and whole.parts == ("colour",)
    assert equivox.open_run(tmp_path / "run").tasks[0].fingerprint == task.fingerprint
    run = str(tmp_path / "run")
    commands = [
        ["score", run, "--scoring", "n_resamples=199"], ["report", run, "-o", str(tmp_path / "r.html")],
        ["compare", run, "--resamples", "99"],
    ]  # fmt: skip
    again = f"import sys; from equivox import cli; sys.exit(max(map(cli.run, {commands!r})))"
    done = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again_scored = equivox.open_run(tmp_path / "run").scores
    assert [score.as_dict() for score in again_scored] == [score.as_dict() for score in result.scores]


def test_code_that_no_other_process_could_find_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    story = equivox.load_task("vibe_gender:story")
    mine = replace(story.metric, name="mine", score=lambda task, samples, options: None)
    with pytest.raises(equivox.UsageError, match=r"the metric mine cannot be imported by another process"):
        equivox.measure("simulated:biased", replace(story, metric=mine), data="sample", output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_importing_costs_nothing() -> None:
    code = (
        "import sys, equivox; equivox.__version__; "
        "sys.exit(any(m in sys.modules for m in ('numpy', 'yaml', 'pandas', 'datasets')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there() -> None:
    for name in equivox.__all__:
        assert getattr(equivox, name).__doc__
