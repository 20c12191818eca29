"""A dry run checks everything, writes nothing, and says what the run would ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Cli, write_rows

from equivox.run.live import add_usage, read_usage
from equivox.run.store import Store, response_schema


def test_nothing_is_written_and_the_requests_are_counted(equivox: Cli, tmp_path: Path) -> None:
    run = ("run", "simulated:biased", "vibe_gender:candidate", "--data", "sample", "--limit", 24, "--output")
    code, out, err = equivox(*run, tmp_path / "a", "--dry-run")
    assert (code, err) == (0, "")
    assert "Nothing was written. 1 task, 24 requests\n" in out
    assert not (tmp_path / "a").exists()
    assert equivox(*run, tmp_path / "a", "--scoring", "n_resamples=99")[0] in {0, 1}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    assert "24 requests, of which 24 have a response" in equivox(*run, tmp_path / "a", "--dry-run")[1]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")} == before


def test_requests_without_a_counterpart_are_told_before_they_are_asked(equivox: Cli, tmp_path: Path) -> None:
    # One of four women and one of four men live in a city that both have; each is asked about three times.
    cities = {"f": ("both", "north", "north", "east"), "m": ("both", "south", "south", "west")}
    rows = [
        {"person": f"{group}{place}", "group": group, "city": city, "text": f"Case {n} of {group}{place}?"}
        for group, own in cities.items() for place, city in enumerate(own) for n in range(3)
    ]  # fmt: skip
    write_rows(tmp_path / "cases.csv", rows)
    file = tmp_path / "cases.yaml"
    file.write_text(
        "name: cases\ntable: cases.csv\ngroup: group\ncluster: person\nstrata: city\nquestions:\n"
        "  - {name: advice, text: '{text}', attributes: [{name: advice, asks: it, options: [wait, act]}]}\n"
    )
    _, out, _ = equivox("run", "simulated:random", file, "--output", tmp_path / "a", "--dry-run")
    told = "18 requests will not be compared: in what the task holds equal, some group has none"
    assert f"cases_group:advice: {told}" in " ".join(out.split())
    file.write_text(file.read_text().replace("strata: city\n", ""))
    assert "will not be compared" not in equivox("run", "simulated:random", file, "-o", tmp_path / "a", "--dry-run")[1]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--data", "elsewhere"), "holds no built corpus"),
        (("--annotator", "qwen4"), "unknown `annotator`"),
        (("--conditions", "louder"), "louder"),
    ],
)
def test_what_a_run_refuses_a_dry_run_refuses(
    equivox: Cli, tmp_path: Path, changed: tuple[str, ...], words: str
) -> None:
    data = () if "--data" in changed else ("--data", "sample")
    run = ("run", "simulated:biased", "vibe_gender:story", *data, *changed, "--output", tmp_path / "a")
    err = equivox.refused(*run, "--dry-run")
    assert words in err
    assert err == equivox(*run)[2]


def test_an_endpoint_is_asked_one_word(equivox: Cli, tmp_path: Path, chat_server: Callable[..., str]) -> None:
    asked: list[object] = []

    def reply(body: dict[str, object]) -> tuple[int, str]:
        asked.append(body)
        return 200, "A nurse."

    arguments = f"model_name=m,base_url=http://{chat_server(reply)}/v1"
    run = (
        *("run", f"endpoint:{arguments}", "vibe_gender:story", "--data", "sample", "--limit", 20),
        *("--output", tmp_path / "a", "--dry-run", "--annotator"),
    )
    code, out, err = equivox(*run, "rules")
    assert (code, err) == (0, "")
    assert calls(out, "endpoint:m") == ["20", "—", "—"] and "annotated by" not in out and "base_url" not in out
    assert not (tmp_path / "a").exists()
    # Each dry run checks the server by one word; the media and the prompts are not sent.
    assert len(asked) == 1
    # One question to the annotator for each answer.
    assert calls(equivox(*run, f"endpoint:{arguments}")[1], "annotated by endpoint-m") == ["20", "—", "—"]


def calls(out: str, name: str) -> list[str]:
    """The numbers in the row of a model or an annotator."""
    (row,) = [line.strip() for line in out.splitlines() if line.strip().startswith(name)]
    return row.removeprefix(name).split()


def test_tokens_are_those_of_the_responses_in_the_folder(equivox: Cli, tmp_path: Path) -> None:
    run = ("run", "simulated:oracle", "vibe_gender:story", "--data", "sample", "--annotator", "rules")
    equivox(*run, "--limit", 24, "--output", tmp_path / "runs" / "oracle", "--scoring", "n_resamples=99")
    stored = Store(tmp_path / "runs" / "oracle" / "responses", response_schema()).table()
    means = [sum(stored[name].to_pylist()) / 24 for name in ("prompt_tokens", "completion_tokens")]
    file = tmp_path / "mine.yaml"
    file.write_text("models: ['simulated:oracle']\ntasks: vibe_gender:story\ndata: sample\n")
    out = equivox.done("reproduce", file, "--dry-run", "--output", tmp_path / "runs")
    assert calls(out, "simulated:oracle") == ["288", *(f"{288 * mean:,.0f}" for mean in means)]


def test_what_was_used_adds_up_over_starts(tmp_path: Path) -> None:
    add_usage(tmp_path, {"requests": 3, "tokens": 50})
    add_usage(tmp_path, {"requests": 7, "tokens": 90}, before={"requests": 3, "tokens": 50})
    add_usage(tmp_path, {"requests": 7, "tokens": 90}, before={"requests": 7, "tokens": 90})
    assert read_usage(tmp_path) == {"requests": 7, "tokens": 90}
