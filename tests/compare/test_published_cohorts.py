"""`equivox compare --with`: total scores of runs beside a published cohort."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli
from sample_runs import sample_run, sample_runs


def table_of(out: str) -> list[str]:
    """The lines of the last table, from its caption on."""
    return out[out.rindex("Total bias score; cohort") :].splitlines()


def test_runs_beside_a_published_cohort(equivox: Cli, tmp_path: Path) -> None:
    sample_runs(tmp_path, {model: model for model in ("biased", "random")}, "genres_standin", limit=24)
    out = equivox.done(
        "compare", tmp_path / "biased", tmp_path / "random", "--resamples", 99, "--with", "published-llama-3.1-8b"
    )
    lines = table_of(out)
    assert lines[0] == "Total bias score; cohort: published-llama-3.1-8b and 2 runs"
    assert lines[1].split() == ["model", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "total"]
    # As published: GENRES, table 2.
    assert next(line for line in lines if line.startswith("GPT-4o")).split()[1:4] == ["-3.750", "-0.002", "0.025"]
    assert any("stand-ins, comparable with nothing else: simulated:biased, simulated:random" in line for line in lines)
    # With --fixed the published models alone are the cohort: they keep the printed scores, to their rounding.
    out = equivox.done(
        "compare", tmp_path / "biased", "--resamples", 99, "--with", "published-mistral-small-24b", "--fixed"
    )
    lines = table_of(out)
    assert lines[0] == "Total bias score; cohort: published-mistral-small-24b, fixed"
    totals = {line.split()[0]: float(line.split()[-1]) for line in lines[2:9]}
    assert totals["Qwen-3B"] == pytest.approx(4.439, abs=0.005)
    assert totals["Janus-7B"] == pytest.approx(6.744, abs=0.005)
    assert totals["simulated:biased"] > max(totals["Qwen-3B"], totals["Qwen-7B"])
    assert "--with" in equivox.refused("compare", tmp_path / "biased", "--fixed")
    assert "published-llama-3.1-8b" in equivox.refused("compare", tmp_path / "biased", "--with", "published-llama")


def test_a_run_without_a_cohort_is_refused(equivox: Cli, tmp_path: Path) -> None:
    sample_run(tmp_path / "run", "random", "vibe_gender:candidate", limit=48)
    err = equivox.refused("compare", tmp_path / "run", "--with", "published-llama-3.1-8b")
    assert "over all tasks of a family" in err
