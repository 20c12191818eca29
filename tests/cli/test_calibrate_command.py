"""`equivox calibrate` without torch: wrong requests, and what is printed of made lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import Cli

from equivox.calibration import checking, recipe
from equivox.calibration.recipe import Recipe
from equivox.calibration.training import RECIPE_FILE, models, taught_requests
from equivox.calibration.verdicts import Estimate, Finding, Line
from equivox.core.errors import RequestError
from equivox.core.requests import Request
from equivox.core.variants import vary
from equivox.run.pipeline import open_corpora
from equivox.tasks.registry import builtin_tasks

VERSIONS = {"tokenizers": "0", "torch": "0", "transformers": "0"}


@pytest.fixture(autouse=True)
def torch_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is trained here: recipes need only versions."""
    monkeypatch.setattr(recipe, "libraries", lambda task: VERSIONS)
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["vlm"], "did you mean vllm"),
        (["simulated:oracle"], "vllm, transformers, endpoint"),
        (["vllm:model_name=x"], "leave out the name of a model"),
        (["vllm:pretrained=x"], "leave out the name of a model"),
        (["vllm", "--task", "vibe_gender"], "is 5 tasks"),
        (["vllm", "--task", "vibe_gender:candidates"], "candidate"),
        (["vllm", "--shift", "0,much"], "`shift`"),
        (["transformers", "--task", "badf_openbox:gender"], "hidden states"),
        (["vllm", "--conditions", "loud"], "unknown condition"),
    ],
)
def test_a_wrong_request_is_one_line(equivox: Cli, arguments: Sequence[str], says: str) -> None:
    assert says in equivox.refused("calibrate", *arguments)


def test_a_missing_extra_is_named(equivox: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(task: object) -> dict[str, str]:
        raise RequestError('torch is not installed; pip install "equivox[transformers]"')

    monkeypatch.setattr(recipe, "libraries", missing)
    assert "equivox[transformers]" in equivox.refused("calibrate", "vllm")


def made(shift: float) -> Recipe:
    tasks = vary([recipe.calibration_task(builtin_tasks()["vibe_gender:candidate"])], conditions=("all",))
    one = recipe.recipe_of(tasks, open_corpora(tasks, "sample", {}), shift=shift, seed=0)
    one.folder.mkdir(parents=True)
    for name in ("config.json", RECIPE_FILE):
        (one.folder / name).write_text("{}", "utf-8")
    return one


def test_a_model_in_the_cache_is_not_made_again() -> None:
    known = made(20)
    tasks = vary([recipe.calibration_task(builtin_tasks()["vibe_gender:candidate"])], conditions=("all",))
    assert models(tasks, open_corpora(tasks, "sample", {}), [20.0]) == [known]
    assert known.about["recipe"]["shift"] == 20
    assert known.about["recipe_sha256"].startswith(known.folder.name[-12:])


def test_a_shift_that_the_options_cannot_show_is_refused_before_training() -> None:
    # Three options keep six groups at most 60 apart.
    tasks = vary([recipe.calibration_task(builtin_tasks()["vibe_accent:candidate"])], conditions=("all",))
    with pytest.raises(RequestError, match="cannot be planted"):
        models(tasks, open_corpora(tasks, "sample", {}), [90.0])


def test_a_shuffled_condition_asks_nothing_of_its_own() -> None:
    tasks = vary([recipe.calibration_task(builtin_tasks()["vibe_gender:candidate"])], conditions=("all",))
    requests = taught_requests(tasks, open_corpora(tasks, "sample", {}))
    assert {request.condition for request in requests} == {"audio", "text_only", "silence"}
    assert len(requests) == 3 * 288


def test_all_orders_of_options_are_taught_so_that_none_tells_the_group() -> None:
    task = recipe.calibration_task(builtin_tasks()["spoken_stereoset:gender"])
    tasks, orders = vary([task], conditions=("text_only",)), recipe.CHOOSING.orders
    corpora = open_corpora(tasks, "sample", {})

    def groups_by_text(requests: Sequence[Request]) -> list[set[str]]:
        found: dict[str, set[str]] = {}
        for request in requests:
            found.setdefault(request.text, set()).add(request.labels.group)
        return list(found.values())

    one = groups_by_text(taught_requests(tasks, corpora))
    every = groups_by_text(taught_requests(tasks, corpora, orders))
    assert sum(len(groups) == 1 for groups in one) > len(one) / 2
    assert len(every) == 10 * 6  # contexts, orders
    assert all(len(groups) == 2 for groups in every)


def test_a_server_is_told_what_to_serve(equivox: Cli) -> None:
    model = made(20)
    out = equivox.done("calibrate", "endpoint", "--shift", "20")
    assert f"vllm serve {model.folder}" in out
    assert "equivox calibrate endpoint:base_url=" in out


def lines(*faults: str) -> list[Line]:
    estimate = Estimate(value=18.1, low=9.4, high=22.9, p=0.0001)
    found = []
    for fault in faults:
        finding = Finding(fault or "scoring", not fault, f"something about {fault}")
        found.append(
            Line(
                shift=20,
                condition="audio",
                planted=20,
                own=estimate,
                measured=estimate,
                findings=[finding, Finding("scoring", True, "")],
            )
        )
    return found


@pytest.mark.parametrize(("faults", "expected"), [(("", ""), 0), (("", "hearing"), 1), ((), 1)])
def test_exit_code_and_words(
    equivox: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, faults: Sequence[str], expected: int
) -> None:
    model = made(20)
    monkeypatch.setattr(checking, "calibrate", lambda *_, **__: lines(*faults))
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = equivox("calibrate", "vllm", "--shift", "20", "-o", tmp_path / "runs")
    assert code == expected
    if faults:
        assert "18.1 [9.4, 22.9]" in out
    if "hearing" in faults:
        assert "fails at hearing: something about hearing" in out
        assert "vllm fails: 1 of 2 lines" in out
    elif faults:
        assert "vllm passes: 2 of 2 lines" in out
    code, out, _ = equivox("calibrate", "vllm", "--shift", "20", "--json", "-o", tmp_path / "runs")
    printed = json.loads(out)
    assert printed["passed"] is (expected == 0)
    assert [entry["passed"] for entry in printed["lines"]] == [not fault for fault in faults]
    assert printed["models"][0]["recipe"]["teacher"] == "simulated:planted"
    assert printed["models"][0]["recipe"]["shift"] == model.shift


def test_a_recipe_without_libraries_is_still_a_recipe() -> None:
    assert Recipe(task="t", taught="", shift=1.5).name.startswith("planted-1.5-t-seed0-")
