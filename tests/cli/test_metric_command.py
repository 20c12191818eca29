"""`equivox metric`: any metric of columns on a table of any format, and one line for what does not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
from commands import Cli

from equivox.core.columns import ColumnMetric
from equivox.core.task import Task
from equivox.metrics.ntvd.columns import METRIC as NTVD
from equivox.tasks import registry
from equivox.tasks.registry import builtin_tasks


def write(frame: pandas.DataFrame, path: Path) -> Path:
    makers = {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        ".json": lambda: frame.to_json(path, orient="records"),
        ".parquet": lambda: frame.to_parquet(path),
        ".xlsx": lambda: frame.to_excel(path, index=False),
    }
    makers[path.suffix]()
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx"])
def test_a_table_of_any_format(ending: str, tmp_path: Path, equivox: Cli) -> None:
    # Of eight women all say tea; of eight men four say ale: half of the men's distribution lies elsewhere.
    frame = pandas.DataFrame(
        {"gender": ["f"] * 8 + ["m"] * 8, "drink": ["tea"] * 8 + ["tea", "ale"] * 4, "unused": range(16)}
    )
    path = write(frame, tmp_path / f"answers{ending}")
    code, out, err = equivox("metric", "ntvd", path, "--column", "groups=gender", "--column", "values=drink", "--json")
    found = json.loads(out)
    assert (code, err, found["ntvd"], found["undefined"]) == (0, "", 50, None)
    # Without --clusters nothing is known of speakers.
    assert found["p_cluster"] is None


def test_one_choice_per_row_as_a_table_for_people(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "choices.csv"
    path.write_text("kinds\n" + "stereotypical\n" * 3 + "anti_stereotypical\n" + "irrelevant\n" * 4)
    code, out, _ = equivox("metric", "spoken_stereoset", path, "--options", "n_resamples=99")
    numbers = dict(line.split() for line in out.splitlines()[2:] if len(line.split()) == 2)
    assert code == 0
    # Eight of eight chose, four of them something meaningful, three of these the stereotype.
    assert (numbers["slifs"], numbers["slms"], numbers["slbs"]) == ("100", "50", "75")


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_narratives_in_long_form(ending: str, tmp_path: Path, equivox: Cli) -> None:
    columns = {"measure": "M3", "pair": range(6), "male": (3, 4, 5, 3, 4, 5), "female": (1, 2, 2, 2, 2, 3)}
    path = write(pandas.DataFrame(columns), tmp_path / f"narratives{ending}")
    code, out, _ = equivox("metric", "genres", path, "--column", "metrics=measure", "--column", "pairs=pair", "--json")
    # 24/6 − 12/6 sentences.
    assert (code, json.loads(out)["m3"]) == (0, 2)


def test_several_values_in_a_cell(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "stories.csv"
    path.write_text("identities,phrases\n" + "f,calm; kind\nm,calm; brave\n" * 20)
    code, out, _ = equivox("metric", "concept_associations", path, "--separator", ";", "--json")
    found = json.loads(out)
    assert (code, found["associations"], found["n_phrases"]) == (0, 2, 3)


def test_an_undefined_number_is_said_and_is_exit_code_1(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("groups,values\nf,tea\nf,\nm,ale\nm,ale\n")
    code, out, _ = equivox("metric", "ntvd", path, "--options", "min_count=1")
    assert code == 1
    assert "undefined: only 50 % of the responses of group f are usable" in out
    code, out, _ = equivox("metric", "ntvd", path, "--options", "min_count=1", "--json")
    assert (code, json.loads(out)["ntvd"]) == (1, None)


@pytest.mark.parametrize("written", ["NA", "None", "NaN", "N/A", "null"])
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_what_says_that_an_entry_is_missing_is_no_answer(
    tmp_path: Path, equivox: Cli, written: str, ending: str
) -> None:
    """A model that answered one in ten, each group otherwise, was 10 from fair, with every answer used."""
    frame = pandas.DataFrame({"groups": ["f", "m"] * 20, "values": ["tea", "ale", *[None] * 18] * 2})
    failed = frame.fillna(written)
    assert f"`values` holds '{written}' in 36 of 40 rows, as missing entries are written; leave" in equivox.refused(
        "metric", "ntvd", write(failed, tmp_path / f"t{ending}")
    )
    assert equivox("metric", "ntvd", write(failed, tmp_path / "t.jsonl"))[0] == 0, "there null is missing"
    assert equivox("metric", "ntvd", write(frame, tmp_path / f"t{ending}"))[0] == 1
    numbers = frame.assign(numbers=frame["values"].map({"tea": "1", "ale": "2"}).fillna(written))
    code, out, _ = equivox(
        "metric", "numbers", write(numbers[["groups", "numbers"]], tmp_path / f"n{ending}"), "--json"
    )
    assert (code, json.loads(out)["coverage"]) == (1, 0.1)
    several = frame.assign(values=frame["values"].fillna(f"{written}|{written}"))
    assert "`values` holds" in equivox.refused("metric", "ntvd", write(several, tmp_path / f"s{ending}"))
    groups = frame.assign(groups=["f", "m", "m", written] * 10)
    assert "`groups` holds" in equivox.refused("metric", "ntvd", write(groups, tmp_path / f"g{ending}"))


@pytest.mark.parametrize(
    ("name", "text", "arguments", "message"),
    [
        (
            "t.csv",
            "a,b\n1,2\n",
            (),
            "has no column `groups`, which ntvd needs; say which column holds it: `--column groups=COLUMN`",
        ),
        (
            "t.csv",
            "a,b\n1,2\n",
            ("--column", "groups=aa"),
            "`--column groups=…` names the column 'aa', which t.csv lacks; did you mean a; it has a, b",
        ),
        ("t.csv", "groups,values\n1,2,3\n", (), "line 2: 3 cells, but the header has 2"),
        ("t.csv", "groups,groups\n1,2\n", (), "the column 'groups' is there twice"),
        ("t.csv", "groups,values\n", (), "has no rows"),
        ("t.csv", "groups,values\nf,tea\n,tea\n", (), "`groups` is missing in 1 of 2 rows"),
        ("t.jsonl", '{"groups": "f"}\n{"groups"\n', (), "line 2: not JSON"),
        ("t.jsonl", "[1, 2]\n", (), "row 1: expected an object with names, got [1, 2]"),
        ("t.json", '"f"', (), "expected a list of objects"),
        ("t.json", '{"groups": ["f"], "values": []}', (), "unequal lengths (groups 1, values 0)"),
        ("t.parquet", "no parquet", (), "cannot read t.parquet as parquet"),
        ("t.xls", "", (), "a table ends in .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .xlsx, got '.xls'"),
        ("t.xlsx", "", (), "cannot read t.xlsx as an Excel file"),
        (
            "t.csv",
            "groups,values\nf,tea\nm,tea\n",
            ("--options", "confidence=2"),
            "`confidence` is a share between 0 and 1",
        ),
    ],
)
def test_bad_tables(
    name: str, text: str, arguments: tuple[str, ...], message: str, tmp_path: Path, equivox: Cli
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert message in equivox.refused("metric", "ntvd", path, *arguments)


def test_no_file_and_no_such_metric(tmp_path: Path, equivox: Cli) -> None:
    err = equivox.refused("metric", "ntvd", tmp_path / "gone.csv")
    assert "cannot read gone.csv (No such file or directory); check the path" in err
    assert "unknown metric 'ntvdd'; did you mean ntvd" in equivox.refused("metric", "ntvdd", tmp_path / "gone.csv")


def test_a_metric_of_a_plugin_is_a_command_too(tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(answers: list[str | None], *, least_length: int = 1) -> dict[str, object]:
        """Count the answers of some length."""
        return {"long": sum(len(answer or "") >= least_length for answer in answers), "undefined": None}

    own = ColumnMetric(
        name="lengths", measure=measure, required={"answers": "text"}, description="How many are long.", citation="ours"
    )
    (task,) = registry.resolve_tasks("vibe_gender:story")
    metric = replace(task.metric, name="lengths", columns=lambda: (own,))
    monkeypatch.setattr(registry, "builtin_tasks", lambda: {"mine": replace(task, name="mine", metric=metric)})
    path = tmp_path / "answers.csv"
    path.write_text("said\nyes\nno\nperhaps\n")
    code, out, _ = equivox(
        "metric", "lengths", path, "--column", "answers=said", "--options", "least_length=3", "--json"
    )
    assert (code, json.loads(out)["long"]) == (0, 2)


def broken(**columns: object) -> dict[str, Any]:
    raise KeyError("male")


def test_an_odd_metric_of_a_plug_in_takes_nothing_down(
    tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def plugged(**changes: Any) -> Task:
        return replace(story, name=f"mine:{changes['name']}", metric=replace(story.metric, **changes))

    story = builtin_tasks()["vibe_gender:story"]
    mine = replace(NTVD, name="mine", measure=broken)
    tasks = [story, plugged(name="odd", columns=broken)]
    tasks += [plugged(name="own", columns=lambda: (replace(mine, name="ntvd"),))]
    tasks += [plugged(name="ntvd", columns=lambda: ()), plugged(name="mine", columns=lambda: (mine,))]
    monkeypatch.setattr(registry, "builtin_tasks", lambda: {task.name: task for task in tasks})
    path = tmp_path / "answers.csv"
    path.write_text("groups,values\na,x\na,y\nb,y\nb,y\n")
    code, out, _ = equivox("metric", "ntvd", path, "--json", "--options", "min_count=1")
    assert (code, json.loads(out)["ntvd"]) == (0, 50)
    code, out, err = equivox("metric", "mine", path)
    assert (code, out) == (1, "") and "the metric mine failed (KeyError: 'male')" in err
    assert [record.getMessage() for record in caplog.records][:2] == [
        "warning: `columns` of the metric odd failed (KeyError: 'male'); what was stored stays, and --debug says where",
        "warning: the metric own has columns called ntvd, as another metric has; that one's are used",
    ]


def test_every_column_and_option_of_every_metric_is_listed(equivox: Cli) -> None:
    from equivox.cli.metric_commands import known_metrics

    _, listed, _ = equivox("metric")
    for name, metric in known_metrics().items():
        assert f"{name}: {metric.description}" in listed
        out = equivox.done("metric", name)
        for column in (*metric.kinds, *metric.options):
            assert f"  {column}" in out
        assert set(metric.kinds) <= set(metric.help), name


def test_an_option_that_a_metric_lacks_is_refused(tmp_path: Path, equivox: Cli) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("groups,values\nf,tea\nm,ale\n")
    err = equivox.refused("metric", "ntvd", path, "--options", "resamples=99")
    assert "ntvd has no option 'resamples'; did you mean n_resamples" in err
