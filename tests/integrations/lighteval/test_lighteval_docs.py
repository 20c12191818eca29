"""What docs/lighteval.md shows is what happens."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("lighteval.pipeline", reason="these tests need lighteval: make test-lighteval")

from evaluating import MODEL_FILE, Evaluated

from equivox.integrations.lighteval.runs import ANNOTATOR, DATA, LIMIT, MODEL, RUNS, SEED

PAGE = (Path(__file__).parents[3] / "docs" / "lighteval.md").read_text("utf-8")


def test_the_simulated_models_numbers_are_those_shown(lighteval: Callable[..., Evaluated]) -> None:
    (command,) = re.findall(r"^\$ (lighteval custom \"simulated.*)$", PAGE, re.MULTILINE)
    arguments = [MODEL_FILE if word == "$MODEL" else word for word in shlex.split(command)[1:]]
    given = arguments[: arguments.index("--custom-tasks")]
    (limit,) = re.findall(r"EQUIVOX_LIMIT=(\d+)", PAGE)
    numbers = lighteval(*given, limit=limit).results["vibe_gender:advisory|0"]
    shown = PAGE[PAGE.index(command) :].partition("```")[0]
    rows = re.findall(r"\|(\w+) *\| *(NaN|[\d.]+)\| ", shown)
    assert len(rows) > 15
    for name, value in rows:
        assert ("NaN" if numbers[name] != numbers[name] else f"{numbers[name]:.4f}") == value, name


def test_every_setting_is_explained() -> None:
    assert sorted(re.findall(r"^\| `(EQUIVOX_\w+)`", PAGE, re.MULTILINE)) == sorted(
        [ANNOTATOR, DATA, LIMIT, MODEL, RUNS, SEED]
    )
